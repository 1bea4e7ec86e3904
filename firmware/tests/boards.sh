#!/bin/sh
# The programs of examples/c on boards in QEMU. Each checks its own numbers and ends with PASS and status 0.
cd "$(dirname "$0")/.." || exit 1
. tests/claim.sh
need_boards boards || exit 0

passes() { # BOARD CHOICE PROGRAM
    program "$1" "$2" "$3" "examples/c/$3.c" || return
    said=$(./run "$1" "$elf" 2>&1) && [ "$(echo "$said" | answers | tail -n 1)" = PASS ] ||
        { echo "$said"; return 1; }
}

for board in $boards; do
    for choice in $choices; do
        claim "example_on_${board}_$choice" passes "$board" "$choice" main
    done
done
# Duty cycles for a year of virtual time, debts over resets, shaping: on cores without atomics and with them.
for board in microbit lm3s6965evb rv32imc rv32imac; do
    for example in lora sleep shaping; do
        claim "example_${example}_on_$board" passes "$board" single "$example"
    done
done

# Code without privileges on a Cortex-M3 cannot mask interrupts, and the library's own question must find that out.
is_told() { # BOARD
    program "$1" single privilege privilege/privilege.c &&
        said=$(./run "$1" "$elf" 2>&1) || { echo "$said"; return 1; }
    case $said in *"privileged: 0"*"unprivileged: -26"*) ;; *) echo "$said"; return 1 ;; esac
}
for board in lm3s6965evb mps2-an385; do
    claim "unprivileged_code_is_told_that_it_cannot_mask_on_$board" is_told "$board"
done

# The control: with a wrong expectation the same program must not end with status 0.
wrong_is_seen() {
    sed 's/5 + 99)/5 + 98)/' examples/c/main.c > "$work/wrong.c"
    program microbit single wrong "$work/wrong.c" &&
        refused 'wanted 103' ./run microbit "$elf"
}
claim control_an_example_with_a_wrong_expectation_fails wrong_is_seen
exit $failed

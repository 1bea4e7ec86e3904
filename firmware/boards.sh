# Targets and boards, for the scripts here, which run in this folder: . ./boards.sh
# shellcheck shell=sh disable=SC2034
root=$(cd .. && pwd)
# Everything that is built here but the archives, which are in $archives/TRIPLE.
out=$root/firmware/target
archives=${TATCELL_FIRMWARE_DIR:-$root/target/firmware}

targets="thumbv6m-none-eabi thumbv7m-none-eabi thumbv7em-none-eabihf riscv32imc-unknown-none-elf \
riscv32imac-unknown-none-elf"
# How interrupts are kept out: the archive masks them, or calls two functions that the firmware defines.
choices="single critical"
boards="microbit lm3s6965evb mps2-an385 mps2-an386 rv32imc rv32imac"

# The functions of the archives, and those of them that have an object of their own.
exports=$(sed -n 's/^ *\(tatcell_[a-z0-9_]*\);.*/\1/p' "$root/include/tatcell_small.map" | LC_ALL=C sort)
apart="tatcell_small32_cancel tatcell_small32_charge tatcell_small32_debt tatcell_small32_limit_init \
tatcell_small32_refund tatcell_small32_set_debt tatcell_small_cancel tatcell_small_charge tatcell_small_debt \
tatcell_small_limit_init tatcell_small_log tatcell_small_refund tatcell_small_section_check tatcell_small_set_debt"

# The prefix of gcc and binutils for a target, a board or a core.
prefix_of() {
    case $1 in
        r*) echo riscv64-unknown-elf- ;;
        *) echo arm-none-eabi- ;;
    esac
}

target_of() { # BOARD
    case $1 in
        microbit) echo thumbv6m-none-eabi ;;
        lm3s6965evb | mps2-an385) echo thumbv7m-none-eabi ;;
        mps2-an386) echo thumbv7em-none-eabihf ;;
        *) echo "risc${1#r}-unknown-none-elf" ;;
    esac
}

# ld for a target: the options of the core included.
ld_of() {
    case $1 in
        r*) echo "riscv64-unknown-elf-ld -m elf32lriscv" ;;
        *) echo arm-none-eabi-ld ;;
    esac
}

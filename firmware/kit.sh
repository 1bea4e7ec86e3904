# Shared by the firmware tests: names of boards, and how to run them. Sourced from the repository's root.

# board, Rust target, nanoseconds a clock tick is near to (as -icount shift: 2^n ns an instruction)
BOARDS=(
    "microbit thumbv6m-none-eabi 6"
    "lm3s6965evb thumbv7m-none-eabi 6"
    "mps2-an385 thumbv7m-none-eabi 5"
    "mps2-an386 thumbv7em-none-eabihf 5"
    "rv32imc riscv32imc-unknown-none-elf 6"
    "rv32imac riscv32imac-unknown-none-elf 6"
)

# SKIP lines for a name whose tools are missing; returns 1 then.
tools() { # test name, board
    local tool
    for tool in make:make awk:mawk $(case $2 in
        rv32*) echo qemu-system-riscv32:qemu-system-misc riscv64-unknown-elf-gcc:gcc-riscv64-unknown-elf ;;
        *) echo qemu-system-arm:qemu-system-arm arm-none-eabi-gcc:gcc-arm-none-eabi ;;
        esac); do
        command -v "${tool%%:*}" >/dev/null 2>&1 || {
            echo "SKIP $1: ${tool%%:*} is not installed (apt-get install ${tool##*:})"
            return 1
        }
    done
}

# Builds a program for a board: build_program BOARD CHOICE NAME SOURCE DEFINES
build_program() {
    "${MAKE:-make}" --no-print-directory -s -C examples/firmware BOARD="$1" CHOICE="$2" OUT="$out" PROGRAM="$3" SOURCE="$4" \
        DEFINES="$5" >"$out/build.log" 2>&1 || { tail -n 15 "$out/build.log"; return 1; }
}

# Runs a program: emulate BOARD SHIFT ELF. Its exit status is the program's.
emulate() {
    local machine=(qemu-system-arm -machine "$1") rc
    case $1 in rv32*) machine=(qemu-system-riscv32 -machine virt -cpu rv32 -bios none) ;; esac
    timeout 120 "${machine[@]}" -icount "shift=$2,sleep=off" -nographic -monitor none -serial null \
        -semihosting-config enable=on,target=native -kernel "$3" >"$3.txt" 2>&1 </dev/null
    rc=$?
    grep -v '^Timer with period zero' "$3.txt"
    return $rc
}

pass() {
    echo "PASS $1"
}

fail() {
    echo "FAIL $1: $2"
    status=1
}

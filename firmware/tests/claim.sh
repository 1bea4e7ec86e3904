# The lines of the tests: . tests/claim.sh in a script that runs in firmware/ and ends with `exit $failed`.
# shellcheck shell=sh disable=SC2034
. ./boards.sh
failed=0
# The jobs of make are its own: cargo would look for them.
unset MAKEFLAGS MFLAGS
# A folder for each script, so that they can run at the same time.
work=$out/$(basename "$0" .sh)
mkdir -p "$work"

# claim NAME COMMAND...: PASS if the command succeeds, else FAIL with the end of its output. Status 77 means that
# something is missing, and its last line says what. A function must chain its commands with && or `|| return`.
claim() {
    claimed=$1
    shift
    said=$("$@" 2>&1)
    case $? in
        0) echo "PASS $claimed" ;;
        77) echo "SKIP $claimed: $(echo "$said" | tail -n 1)" ;;
        *)
            failed=1
            echo "FAIL $claimed:"
            echo "$said" | tail -n 15 | sed 's/^/    /'
            ;;
    esac
}

# need NAME TOOL PACKAGE...: one line SKIP, and false, if the tool is missing.
need() {
    command -v "$2" > /dev/null && return
    needed_by=$1 tool=$2
    shift 2
    echo "SKIP $needed_by: $tool is missing (apt-get install $*)"
    return 1
}

need_archives() { # NAME
    for archive in $(for t in $targets; do for c in $choices; do echo "$archives/$t/libtatcell-$c.a"; done; done); do
        [ -f "$archive" ] || { echo "SKIP $1: $archive is not built: make -C firmware lib says why"; return 1; }
    done
}

# Whether the archives are built, and both compilers and both emulators of boards are here.
need_boards() { # NAME
    need_archives "$1" && need "$1" arm-none-eabi-gcc gcc-arm-none-eabi &&
        need "$1" riscv64-unknown-elf-gcc gcc-riscv64-unknown-elf &&
        need "$1" qemu-system-arm qemu-system-arm && need "$1" qemu-system-riscv32 qemu-system-misc
}

# The command must fail and say this (a pattern of grep -E, wherever its lines break).
refused() { # PATTERN COMMAND...
    pattern=$1
    shift
    if said=$("$@" 2>&1); then
        echo "not refused: $*"
        return 1
    fi
    echo "$said" | tr -s '\n ' ' ' | grep -qE "$pattern" && return
    echo "refused, but it does not say \"$pattern\":"
    echo "$said" | tail -n 5
    return 1
}

# Without what QEMU itself has to remark.
answers() {
    grep -v '^Timer with period zero\|^qemu'
}

# Builds a program for a board: program BOARD CHOICE NAME SOURCE [VARIABLE=VALUE]...; it is then $elf.
program() {
    elf=$work/$3-$1-$2.elf
    for_board="BOARD=$1 CHOICE=$2 PROGRAM=$3" source=$(realpath "$4")
    shift 4
    # shellcheck disable=SC2086
    make -s --no-print-directory -C examples/c $for_board SOURCE="$source" OUT="$work" "$@"
}

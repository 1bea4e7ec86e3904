# Sourced by the scripts that build Rust for another machine. Finds a compiler for a target, or says what is missing.
#
#   rust_target TRIPLE  sets RUST (the cargo command), STD (its build-std arguments) and the variables of the target;
#                       returns 1 with `missing` set where no compiler can be had.
#
# Rustup's target where there is one or it can be added; else Debian's Rust with its sources, which builds core and std
# for any target but brings no linker for bare ones. TATCELL_NO_INSTALL=1: add nothing.
# TATCELL_RUST=debian: try only Debian's.

# Bare machines: triple, machine, emulator and its options.
BARE_MACHINES=(
    "thumbv6m-none-eabi microbit qemu-system-arm"
    "thumbv7m-none-eabi lm3s6965evb qemu-system-arm"
    "thumbv7m-none-eabi mps2-an385 qemu-system-arm"
    "thumbv7em-none-eabihf mps2-an386 qemu-system-arm"
    "riscv32imc-unknown-none-elf virt qemu-system-riscv32 -cpu rv32 -bios none"
    "riscv32imac-unknown-none-elf virt qemu-system-riscv32 -cpu rv32 -bios none"
)

# Hosts: triple, prefix of gcc and of the C library's directory, emulator, what it shows.
HOSTS=(
    "s390x-unknown-linux-gnu s390x-linux-gnu qemu-s390x-static 64-bit_big_endian"
    "powerpc-unknown-linux-gnu powerpc-linux-gnu qemu-ppc-static 32-bit_big_endian_no_64-bit_atomics"
    "armv7-unknown-linux-gnueabihf arm-linux-gnueabihf qemu-arm-static 32-bit_LL/SC"
    "aarch64-unknown-linux-gnu aarch64-linux-gnu qemu-aarch64-static 64-bit_weakly_ordered"
    "i686-unknown-linux-gnu i686-linux-gnu native 32-bit_x86"
)

upper() { printf '%s' "$1" | tr 'a-z-' 'A-Z_'; }

# The cross linker of a host, and how to run its programs; sets `runner` or `missing`.
host_tools() { # triple, prefix, emulator
    local var
    var=CARGO_TARGET_$(upper "$1")
    # The 32-bit program of an x86-64 machine runs by itself, through the cross C library's loader: the emulator's
    # threads are not to be trusted for it.
    local loader=/usr/$2/lib/ld-linux.so.2
    if [ "$3" = native ] && [ "$(uname -m)" = x86_64 ]; then
        runner="$loader --library-path /usr/$2/lib"
        [ -x "$loader" ] || { missing="$loader (apt-get install libc6-dev-i386-cross)"; return 1; }
    else
        local emulator=${3/native/qemu-i386-static}
        command -v "$emulator" >/dev/null 2>&1 || { missing="$emulator (apt-get install qemu-user-static)"; return 1; }
        runner="$emulator -L /usr/$2"
    fi
    command -v "$2-gcc" >/dev/null 2>&1 || { missing="$2-gcc (apt-get install gcc-$2 and its libc6-dev-*-cross)"; return 1; }
    [ -d "/usr/$2/lib" ] || { missing="the C library of $2 (apt-get install its libc6-dev-*-cross)"; return 1; }
    export "${var}_LINKER=$2-gcc" "${var}_RUNNER=$runner"
}

has_core() { # rustc, triple
    local dir
    dir=$("$1" --print target-libdir --target "$2" 2>/dev/null) && compgen -G "$dir/libcore-*.rlib" >/dev/null
}

rust_target() { # triple
    local t=$1 var own=${RUSTC_OF_PATH:-rustc}
    var=CARGO_TARGET_$(upper "$t")
    RUST=(cargo) STD=()
    missing="a Rust compiler for $t (rustup target add $t, or apt-get install rustc-web cargo-web rust-web-src)"
    if [ "${TATCELL_RUST:-}" != debian ]; then
        has_core "$own" "$t" && return 0
        if [ -z "${TATCELL_NO_INSTALL:-}" ] && command -v rustup >/dev/null 2>&1; then
            timeout 120 rustup target add "$t" >/dev/null 2>&1
            has_core "$own" "$t" && return 0
        fi
    fi
    # Debian's: the compiler of the system's own prefix, with the library sources beside it.
    local debian=/usr/bin/rustc sources
    sources=$("$debian" --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library/core
    [ -x /usr/bin/cargo ] && [ -d "$sources" ] || return 1
    case $t in
    thumb*)
        command -v arm-none-eabi-ld >/dev/null 2>&1 || { missing="arm-none-eabi-ld (apt-get install binutils-arm-none-eabi)"; return 1; }
        export "${var}_LINKER=arm-none-eabi-ld"
        ;;
    riscv32*)
        command -v riscv64-unknown-elf-ld >/dev/null 2>&1 || { missing="riscv64-unknown-elf-ld (apt-get install binutils-riscv64-unknown-elf)"; return 1; }
        export "${var}_LINKER=riscv64-unknown-elf-ld" "${var}_RUSTFLAGS=-Clink-arg=-melf32lriscv"
        ;;
    esac
    RUST=(env RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc RUSTC_BOOTSTRAP=1 /usr/bin/cargo)
    case $t in *-none-*) STD=(-Z build-std=core) ;; *) STD=(-Z build-std=std,panic_abort,test) ;; esac
}

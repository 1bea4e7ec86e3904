#!/bin/sh
# Firmware in Rust: the example on four boards, whose report is compared with that of the C example, tasks of embassy
# with their defmt lines, the crate tatcell-embedded on this host and compiled for bare cores, and the sizes of the forms
# of a check.
cd "$(dirname "$0")/.." || exit 1
. tests/claim.sh
export CARGO_TARGET_DIR=$out/rust
need_boards rust || exit 0

build() { # FOLDER TRIPLE OPTION...
    folder=$1 triple=$2
    shift 2
    ./cargo "$triple" build --quiet --locked --release --manifest-path "$folder/Cargo.toml" "$@"
}

example() { # BOARD OPTION...
    board=$1 triple=$(target_of "$1")
    shift
    build examples/rust "$triple" "$@" &&
        ./run "$board" "$out/rust/$triple/release/firmware-rust" > "$out/rust.said" 2>&1 &&
        [ "$(answers < "$out/rust.said" | tail -n 1)" = PASS ] || { cat "$out/rust.said"; return 1; }
}

# How often the timer came depends on the length of the code.
reports_as_in_c() { # BOARD
    answers < "$out/rust.said" | grep -v '^timer' > "$out/rust.report"
    program "$1" single main examples/c/main.c &&
        ./run "$1" "$elf" 2>&1 | answers | grep -v '^timer' | diff - "$out/rust.report"
}

for board in microbit lm3s6965evb mps2-an385 mps2-an386; do
    option=
    [ $board != lm3s6965evb ] || option="--features lm3s6965"
    claim "rust_example_on_$board" example $board $option
    claim "rust_example_reports_as_c_example_on_$board" reports_as_in_c $board
done

# A limit that cannot be represented must stop the compiler, not the device.
bad_limit() {
    rm -rf "$out/bad"
    cp -r examples/rust "$out/bad"
    sed -i "s|path = \"\.\./\.\./\.\.\"|path = \"$root\"|; s|path = \"\.\./\.\./rust|path = \"$root/firmware/rust|" \
        "$out/bad/Cargo.toml"
    build "$out/bad" thumbv6m-none-eabi || return
    sed -i 's/SmallLimit32::new(10, 1000, 5)/SmallLimit32::new(0, 1000, 5)/' "$out/bad/src/main.rs"
    refused 'this limit cannot be represented' build "$out/bad" thumbv6m-none-eabi
}
claim rust_example_with_a_bad_limit_does_not_compile bad_limit

# Lines of one tick may come in another order with another compiler; those of different ticks may not.
tasks() { # BOARD
    triple=$(target_of "$1")
    build examples/embassy "$triple" || return
    elf=$out/rust/$triple/release/firmware-embassy
    ./run "$1" "$elf" > "$out/tasks.defmt" 2> "$out/tasks.said" || { cat "$out/tasks.said"; return 1; }
    arm-none-eabi-nm "$elf" > "$out/tasks.symbols" &&
        python3 tests/defmt.py "$out/tasks.symbols" < "$out/tasks.defmt" | LC_ALL=C sort > "$out/tasks.lines" &&
        LC_ALL=C sort examples/embassy/lines.txt | diff - "$out/tasks.lines"
}
# A core without compare-and-swap, and one with.
for board in microbit mps2-an385; do
    claim "tasks_of_embassy_wait_and_log_on_$board" tasks $board
done

cargo test --quiet --locked --manifest-path rust/Cargo.toml -p tatcell-embedded --all-features -- --format pretty ||
    failed=1
for triple in $targets; do
    claim "embedded_crate_compiles_for_${triple%%-*}" ./cargo "$triple" check --quiet --locked --release \
        --manifest-path rust/Cargo.toml -p tatcell-embedded \
        --features embassy-time,fugit,tatcell/single-core,tatcell/defmt
done

# Bytes that stay if only this function is wanted, zeroed memory included.
size_of() { # TRIPLE FUNCTION
    $(ld_of "$1") -r --gc-sections -u "$2" -o "$out/one.o" "$out/rust/$1/release/libsizes.a" &&
        "$(prefix_of "$1")size" -A "$out/one.o" | awk '/^\.(text|s?rodata|s?data|s?bss)/ { n += $2 } END { print n + 0 }'
}
# A limit that is a constant takes less than one in memory; one that is made when the program runs, and a log line, take
# no more than this.
sizes() { # TRIPLE
    build rust "$1" -p sizes || return
    list=
    for function in const64 memory64 const32 memory32 made32 line; do
        list="$list $(size_of "$1" $function)"
    done
    echo "const64 memory64 const32 memory32 made32 line:$list"
    # shellcheck disable=SC2086
    set -- $list
    [ $# = 6 ] && [ "$1" -gt 0 ] && [ "$1" -lt "$2" ] && [ "$3" -gt 0 ] && [ "$3" -lt "$4" ] &&
        [ "$5" -gt 0 ] && [ "$5" -le 1024 ] && [ "$6" -gt 0 ] && [ "$6" -le 160 ]
}
for triple in $targets; do
    claim "forms_of_a_check_have_their_sizes_on_${triple%%-*}" sizes "$triple"
done
exit $failed

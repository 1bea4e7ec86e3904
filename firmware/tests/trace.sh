#!/bin/sh
# One trace of requests gives the same answers everywhere: rust/trace is built for this host, for boards in QEMU and for
# other hosts, and what it prints there must be the same, byte for byte.
cd "$(dirname "$0")/.." || exit 1
. tests/claim.sh
export CARGO_TARGET_DIR=$out/rust

build() { # TRIPLE or host
    cargo="./cargo $1 build" program=$out/rust/$1/release/trace
    [ "$1" != host ] || cargo="cargo build" program=$out/rust/release/trace
    $cargo --quiet --locked --release --manifest-path rust/Cargo.toml -p trace
}

# The owner of a cell or table gets the answers of a shared one: the program compares them, and fails.
here() {
    build host && "$program" > "$work/here.txt" || { grep ^FAIL "$work/here.txt"; return 1; }
}

has_enough() {
    [ "$(sed -n 's/^EVENTS //p' "$work/here.txt")" -ge 100000 ]
}

# A comparison that cannot fail shows nothing: from request 200 on each costs one more, and no digest may be the same.
changes() {
    build host && "$program" 200 | grep -E ' [0-9a-f]{16}$' > "$work/changed.txt"
    [ -s "$work/changed.txt" ] && ! grep -xFf "$work/changed.txt" "$work/here.txt"
}

same() { # TRIPLE RUNNER...
    build "$1" || return
    shift
    # A program of a board writes to QEMU's standard error.
    "$@" "$program" > "$work/other.txt" 2>&1 || { tail -n 3 "$work/other.txt"; return 1; }
    answers < "$work/other.txt" | diff "$work/here.txt" -
}

claim trace_exclusive_forms_equal_shared_forms here
claim trace_has_at_least_1e5_requests has_enough
claim control_changed_costs_change_every_digest changes
for board in $boards; do
    emulator=qemu-system-arm
    case $board in rv32*) emulator=qemu-system-riscv32 ;; esac
    need "trace_same_on_$board" $emulator qemu-system-arm qemu-system-misc &&
        claim "trace_same_on_$board" same "$(target_of "$board")" ./run "$board"
done
sed -n 's/^\[target\.\(.*\)\]/\1/p' targets.toml > "$work/hosts.txt"
while read -r triple; do
    runner=$(sed -n "/^.target.$triple/,/^runner/s/^runner = \[\(.*\)\]/\1/p" targets.toml | tr -d '",')
    linker=$(sed -n "/^.target.$triple/,/^runner/s/^linker = \"\(.*\)\"/\1/p" targets.toml)
    need "trace_same_on_$triple" "$linker" "gcc-${linker%-gcc}" && need "trace_same_on_$triple" "${runner%% *}" \
        qemu-user-static libc6-dev-i386-cross && claim "trace_same_on_$triple" same "$triple" $runner
done < "$work/hosts.txt"
exit $failed

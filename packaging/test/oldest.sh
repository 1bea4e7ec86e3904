# oldest FOLDER WHAT FLAG...: the oldest compiler that the Cargo.toml of the folder promises compiles it.
oldest() {
    manifest=$1/Cargo.toml what=$2; shift 2
    rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$manifest")
    if have rustup && { rustup run "$rust" rustc --version || rustup toolchain install "$rust" --profile minimal; } \
        > "$out/log" 2>&1; then
        check "Rust $rust compiles $what" rustup run "$rust" cargo check --quiet --locked \
            --manifest-path "$manifest" --target-dir "$out/oldest" "$@"
    else skip "Rust $rust compiles $what" "it is not there: rustup toolchain install $rust"; fi
}

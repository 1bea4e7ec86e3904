//! The binary that libFuzzer drives: the target that `TATCELL_TARGET` names.

#![no_main]

use std::sync::LazyLock;

use tatcell_fuzz::Target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("TATCELL_TARGET").expect("TATCELL_TARGET names a target");
    tatcell_fuzz::find(&name).unwrap_or_else(|| panic!("there is no target {name}"))
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| (TARGET.run)(input));

//! Gives the shared library its SONAME; nothing else happens at build time.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={CODES}");
    let set = |name: &str| std::env::var_os(name).is_some();
    // Only the C library is linked without std, and only ELF linkers know -soname.
    let c_library = set("CARGO_FEATURE_CAPI") && !set("CARGO_FEATURE_STD");
    if c_library && std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-link-arg=-Wl,-soname,libtatcell.so.{}", abi());
    }
}

const CODES: &str = "src/capi/codes.rs";

/// The number of `TATCELL_ABI_VERSION`.
fn abi() -> String {
    let codes = std::fs::read_to_string(CODES).expect(CODES);
    let line = codes.lines().find_map(|line| line.strip_prefix("pub const TATCELL_ABI_VERSION: u32 = "));
    line.and_then(|line| line.strip_suffix(';')).expect("TATCELL_ABI_VERSION").to_owned()
}

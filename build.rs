//! Gives the shared library its SONAME; nothing else happens at build time.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let set = |name: &str| std::env::var_os(name).is_some();
    // Only the C library is linked without std, and only ELF linkers know -soname. The number is the ABI version.
    let c_library = set("CARGO_FEATURE_CAPI") && !set("CARGO_FEATURE_STD");
    if c_library && std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-link-arg=-Wl,-soname,libtatcell.so.0");
    }
}

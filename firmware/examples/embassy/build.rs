//! Names the linker scripts of cortex-m-rt and defmt (the memory map comes with `semi`), and the level of the lines.
fn main() {
    println!("cargo:rustc-link-arg=-Tlink.x");
    println!("cargo:rustc-link-arg=-Tdefmt.x");
    println!("cargo:rerun-if-env-changed=DEFMT_LOG");
    // Without it defmt keeps errors only.
    if std::env::var_os("DEFMT_LOG").is_none() {
        println!("cargo:rustc-env=DEFMT_LOG=info");
    }
}

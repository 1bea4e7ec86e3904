//! Puts the memory map and, for RISC-V, the linker script where the linker finds them.
use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=memory.x");
    println!("cargo:rerun-if-changed=riscv.x");
    if let Ok(here) = std::env::var("CARGO_MANIFEST_DIR") {
        println!("cargo:rustc-link-search={}", PathBuf::from(here).display());
    }
}

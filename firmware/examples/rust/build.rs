//! Names the linker script of cortex-m-rt; the memory map comes with `semi`.
fn main() {
    println!("cargo:rustc-link-arg=-Tlink.x");
}

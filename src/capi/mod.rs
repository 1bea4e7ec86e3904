//! The C ABI: checks pointers, forms references, calls Rust. No logic lives here and nothing imports it.
//!
//! - `codes`: what functions return, and its names and texts. `decision`: the full answer.
//! - `pointers`: where pointers are checked, under the contract that each call makes once; all unsafe code.
//! - `limit`, `cell`, `table`, `combine`, `shaper`, `refusal`, `host`: a room a noun, as in the rest of the crate.
//!
//! Every function is listed in `include/tatcell.map`; a test compares that list with the archive.
#![allow(non_camel_case_types)]
#![allow(dead_code)] // the constants are the C contract; Rust uses only some
#![allow(clippy::missing_safety_doc)] // the C contract is in each doc comment, for both languages

mod cell;
mod codes;
mod combine;
mod decision;
#[cfg(all(feature = "host", not(tatcell_loom)))]
mod host;
mod limit;
mod pointers;
mod refusal;
mod shaper;
mod table;

/// A library without std needs a panic handler to link, though nothing here can panic: a test asserts that this
/// one is not in the archive.
#[cfg(not(feature = "std"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

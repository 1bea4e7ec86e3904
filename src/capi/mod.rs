//! The C ABI: checks pointers, forms references, calls Rust. It has no logic, and nothing imports it.
//!
//! - `codes`: what functions return, with names and texts. `decision`: the full answer.
//! - `pointers`: checks and follows pointers, under the contract that each call makes once.
//! - `limit`, `cell`, `table`, `combine`, `shaper`, `refusal`, `host`: one module a noun, as in the rest of the crate.
//!
//! Every function is listed in `include/tatcell.map`; a test compares that list with the archive.
#![allow(non_camel_case_types)]
#![allow(dead_code)] // the constants are the C contract; Rust uses only some of them
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

/// A library without std needs a panic handler to link. Nothing here panics: a test asserts that this one is not in the
/// archive.
#[cfg(not(feature = "std"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

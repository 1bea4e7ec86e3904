//! The C ABI: checks pointers, forms references, calls Rust. No logic lives here and nothing imports it.
//!
//! - `codes`: what functions return, and its names and texts.
//! - `kit`: where pointers are checked, under the contract that each call makes once; all unsafe code.
//! - one file a noun: `limit`, `cell`, `cell32`, `lease`, `meter`, `sliding_log`, `chain`, `ladder`, `shaper`,
//!   `group`, `leaky_queue`, `decision`, `table` (and what is done with one), `info`, `http`, `log`, `slip`, `host`.
//!
//! Every function is listed in `include/tatcell.map`; a test compares that list with the archive.
#![allow(non_camel_case_types)]
#![allow(dead_code)] // the constants are the C contract; Rust uses only some
#![allow(clippy::missing_safety_doc)] // the C contract is in each doc comment, for both languages

mod cell;
mod cell32;
mod chain;
mod codes;
mod decision;
mod group;
#[cfg(all(feature = "host", not(tatcell_loom)))]
mod host;
mod http;
mod info;
mod kit;
mod ladder;
mod leaky_queue;
mod lease;
mod limit;
mod limit_algorithms;
mod limit_table;
mod log;
mod meter;
mod meter_params;
mod shaper;
mod shaper_submit;
mod sliding_log;
mod slip;
mod table;
mod table_burst;
mod table_charge;
mod table_check;
mod table_mark;
mod table_migrate;
mod table_options;
mod table_override;
mod table_pair;
mod table_top;
mod table_upkeep;

/// A library without std needs a panic handler to link, though nothing here can panic: a test asserts that this
/// one is not in the archive.
#[cfg(not(feature = "std"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

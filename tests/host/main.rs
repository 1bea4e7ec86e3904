//! Tests that need an operating system: clocks, memory, seeds, stopped processes.

#[path = "../common/mod.rs"]
mod common;

mod clock;
mod counters;
mod read_only;
mod system;

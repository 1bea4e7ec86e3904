//! Tests that need an operating system: clocks, memory, seeds, processes that are stopped.

#[path = "../common/mod.rs"]
mod common;

mod clock;
mod system;

//! The algorithms that count: each against an oracle without bounds, one file each.
//!
//! Sizes by environment: TATCELL_COUNTED_STEPS of every day's tests; TATCELL_DECISIONS (1e9) of the long one, which is
//! ignored otherwise: `cargo test --release --features std --test counted -- --ignored --nocapture`. A seed that fails
//! is printed, and TATCELL_SEED=it runs that one alone.

mod common;

#[path = "counted/buckets.rs"]
mod buckets;
#[path = "counted/decay.rs"]
mod decay;
#[path = "counted/fixed_window.rs"]
mod fixed_window;
#[path = "counted/frame.rs"]
mod frame;
#[path = "counted/lives.rs"]
mod lives;
#[path = "counted/long.rs"]
mod long;
#[path = "counted/quota_linear.rs"]
mod quota_linear;
#[path = "counted/sliding_counter.rs"]
mod sliding_counter;
#[path = "counted/sliding_error.rs"]
mod sliding_error;
#[path = "counted/sliding_log.rs"]
mod sliding_log;
#[path = "counted/tables.rs"]
mod tables;
#[path = "long/tally.rs"]
mod tally;

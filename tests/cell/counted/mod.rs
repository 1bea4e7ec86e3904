//! The algorithms that count: each against an oracle without bounds, one file each.
//!
//! Sizes by environment: TATCELL_COUNTED_STEPS of every day's tests; TATCELL_DECISIONS (1e9) of the long one, which is
//! ignored otherwise: `cargo test --release --test cell -- --ignored --nocapture counted`. A seed that fails
//! is printed, and TATCELL_SEED=it runs that one alone.

mod buckets;
mod changes;
mod decay;
mod fixed_window;
mod frame;
mod lives;
mod long;
mod quota_linear;
mod sliding_counter;
mod sliding_error;
mod sliding_log;
mod tables;

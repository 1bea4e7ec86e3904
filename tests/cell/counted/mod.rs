//! The counting algorithms, each against an unbounded oracle, one file each.
//!
//! The environment sets the sizes: TATCELL_COUNTED_STEPS for the usual tests, TATCELL_DECISIONS for those of `long`.
//! A failing seed is printed, and TATCELL_SEED runs it alone.

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

//! The algorithms that count: each against an oracle without bounds, one file each.

mod common;

#[path = "counted/buckets.rs"]
mod buckets;
#[path = "counted/decay.rs"]
mod decay;
#[path = "counted/fixed_window.rs"]
mod fixed_window;
#[path = "counted/frame.rs"]
mod frame;
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

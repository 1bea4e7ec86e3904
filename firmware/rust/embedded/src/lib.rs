//! tatcell together with crates that firmware in Rust already uses.
//!
//! - Feature `embassy-time`: [`Paced`], a cell whose tasks wait for their turn.
//! - Feature `fugit`: [`limit`], [`limit32`] and [`wait`], limits and waits as durations.
//!
//! Nothing here allocates, locks or panics. How cells are shared with interrupts is chosen by the features of `tatcell`
//! itself (`single-core`, `critical-section`, ...).
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "fugit")]
mod durations;
#[cfg(feature = "embassy-time")]
mod paced;

#[cfg(feature = "fugit")]
pub use durations::{limit, limit32, wait};
#[cfg(feature = "embassy-time")]
pub use paced::{Paced, Refused};

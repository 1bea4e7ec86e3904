//! The one file that names an atomic type.
//!
//! Everywhere else an atomic is one of these names, so the shipped code runs unchanged under the loom model
//! checker (`--cfg tatcell_loom`). `portable-atomic` is used without its default features: where a target has no
//! atomic of this width, the build fails instead of falling back to a spin lock that an interrupt could hang on.

#[cfg(not(tatcell_loom))]
pub(crate) use portable_atomic::{fence, AtomicU32, AtomicU64, Ordering};

#[cfg(all(tatcell_loom, test))]
pub(crate) use crate::loom_atomic::{fence, AtomicU32, AtomicU64, Ordering};

#[cfg(all(tatcell_loom, not(test)))]
pub(crate) use loom::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

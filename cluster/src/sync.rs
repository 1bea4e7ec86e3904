//! The atomics of the shared words: the processor's, or loom's for the models (`--cfg tatcell_cluster_loom`; the core
//! is then still compiled as it is shipped).

#[cfg(tatcell_cluster_loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(tatcell_cluster_loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

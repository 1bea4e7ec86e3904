//! The shipped code of cells under loom, the model checker. Nothing imports this module.

mod loom_cells;
mod loom_decay;
mod loom_meters;
mod loom_quota;
mod loom_refusals;
mod loom_sliding;
mod loom_sliding_log;
mod loom_window;

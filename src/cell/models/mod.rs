//! The shipped code of cells under the model checker loom. Nothing imports this room.

mod loom_cells;
mod loom_decay;
mod loom_meters;
mod loom_quota;
mod loom_refusals;
mod loom_sliding;
mod loom_sliding_log;
mod loom_window;

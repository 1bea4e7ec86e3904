//! Requests that wait for their departure: shapers, groups, and the leaky bucket as a queue.

mod group;
mod leaky_queue;
#[allow(clippy::module_inception)] // the file of its noun, as in the other modules
pub(super) mod shaper;
mod submit;

//! Shaping: the wheel against a sorted list, flows against the textbook's queue, hierarchies, groups of 802.1Qcr, and
//! the leaky bucket as a queue with its payloads.

mod common;

#[path = "shaper/flows.rs"]
mod flows;
#[path = "shaper/group.rs"]
mod group;
#[path = "shaper/hierarchy.rs"]
mod hierarchy;
#[path = "shaper/queue.rs"]
mod queue;
#[path = "shaper/wheel.rs"]
mod wheel;

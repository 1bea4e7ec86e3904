//! Shaping: the wheel against a sorted list, flows against the textbook's queue, hierarchies, groups of 802.1Qcr, and
//! the leaky bucket as a queue with its payloads.

mod flows;
mod group;
mod hierarchy;
mod queue;
mod wheel;

//! Shaping: requests wait for their departure instead of being refused.
//!
//! ```text
//!  submit.rs      request -> reserve on a cell, a key or a chain -> departure -> wheel
//!  wheel.rs       handles by departure, released in order when they are due, one a call
//!  hierarchy.rs   due at its flow -> reserve at its tenant, at that instant -> wheel -> ... -> port -> out
//!  eligibility.rs the word of a group: when its last request was eligible (802.1Qcr)
//!  group.rs       flows that leave in the order of their eligibility
//!  queue.rs       one flow with its payloads: the leaky bucket as a queue
//! ```
//!
//! There is no drip process. The state word of a limit is the queue's length in time: a reservation moves it and
//! returns when the request leaves. A queue of Q jobs of one unit is a `max_delay` of `Q * T`. Wheel and queue only
//! keep what waits until then; they decide nothing.
//!
//! Each has one owner (`&mut`), for instance a shaper a core; cells and tables behind several shapers are shared as
//! usual. Nothing here reads a clock or wakes anybody: [`Shaper::next_departure`] returns when to come back.

mod eligibility;
mod error;
mod group;
mod hierarchy;
mod queue;
mod submit;
mod wheel;

pub use eligibility::Group;
pub use error::ShaperError;
pub use queue::{ring_words, Fifo, LeakyQueue, NotQueued, Ring};
pub use submit::Shaper;
pub use wheel::{wheel_words, Waiting, Wheel};

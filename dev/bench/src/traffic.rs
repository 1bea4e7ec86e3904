//! Keys that return after an idle time, with new ones between them, for the rows of [`stagger`](crate::stagger).

use crate::keys::Stream;
use crate::suite::DT;

/// What comes to one fixture.
#[derive(Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Keys of a pass, and how many of them come in each.
    pub keys: u32,
    pub known: u32,
    pub slots: usize,
    /// The emission interval.
    pub period: u64,
}

impl Traffic {
    pub fn new(keys: u32, load: u64, new: u32) -> Traffic {
        let slots = keys as usize * 2;
        Traffic { keys, known: keys - keys / 100 * new, slots, period: slots as u64 * load / 1_000 * DT }
    }

    /// Passes before the stream repeats: one, or enough for a visit.
    pub fn passes(&self) -> u32 {
        if self.keys < 1 << 16 {
            64
        } else {
            1
        }
    }

    pub fn stream(&self) -> Stream {
        Stream::passes(self.keys, self.known, self.passes())
    }

    /// Decisions of a visit: a stream, or a fifth of one, so that each pass is a whole one.
    pub fn visit(&self) -> u64 {
        let stream = u64::from(self.passes() * self.keys);
        if stream > 1 << 18 {
            stream / 5
        } else {
            stream
        }
    }
}

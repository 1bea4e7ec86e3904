//! The clock of decisions, in nanoseconds: a system clock that runs during suspend, if there is one.

use std::sync::Arc;

use tatcell::host::{now_ns, Clock, HostError};

use crate::sync::{AtomicU64, Ordering};

/// A clock that was read once without an error.
#[derive(Clone, Debug)]
pub(crate) struct NodeClock {
    source: Source,
    /// Its first reading, less a second, so that no hold reaches below 0.
    start: u64,
}

/// What a reading is read from.
#[derive(Clone, Debug)]
enum Source {
    System(Clock),
    /// Whoever runs the node sets the reading.
    Given(Arc<AtomicU64>),
}

const SECOND: u64 = 1_000_000_000;

impl NodeClock {
    pub(crate) fn new() -> Result<NodeClock, HostError> {
        let clock = if now_ns(Clock::Boottime).is_ok() { Clock::Boottime } else { Clock::Monotonic };
        Ok(NodeClock { source: Source::System(clock), start: now_ns(clock)?.saturating_sub(SECOND) })
    }

    /// Makes a clock whose reading somebody else sets.
    #[cfg_attr(not(feature = "sim"), allow(dead_code))]
    pub(crate) fn given(reading: Arc<AtomicU64>) -> NodeClock {
        // ORDERING: Relaxed; a value.
        let start = reading.load(Ordering::Relaxed).saturating_sub(SECOND);
        NodeClock { source: Source::Given(reading), start }
    }

    /// Reads the clock: nanoseconds since the machine started. Returns 0 if the system suddenly refuses.
    #[inline]
    pub(crate) fn read(&self) -> u64 {
        match &self.source {
            Source::System(clock) => now_ns(*clock).unwrap_or(0),
            // ORDERING: Relaxed; a value.
            Source::Given(reading) => reading.load(Ordering::Relaxed),
        }
    }

    /// Converts a reading to nanoseconds since a second before the node started.
    #[inline]
    pub(crate) fn of(&self, reading: u64) -> u64 {
        reading.saturating_sub(self.start)
    }

    /// Converts such nanoseconds back to a reading.
    pub(crate) fn reading(&self, now: u64) -> u64 {
        now.saturating_add(self.start)
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.of(self.read())
    }
}

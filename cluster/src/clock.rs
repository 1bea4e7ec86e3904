//! The clock of decisions, in nanoseconds: a system clock that runs during suspend, if there is one.

use tatcell::host::{now_ns, Clock, HostError};

/// A clock that was read once without an error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeClock {
    clock: Clock,
    /// Its first reading, less a second, so that no hold reaches below 0.
    start: u64,
}

impl NodeClock {
    pub(crate) fn new() -> Result<NodeClock, HostError> {
        let clock = if now_ns(Clock::Boottime).is_ok() { Clock::Boottime } else { Clock::Monotonic };
        Ok(NodeClock { clock, start: now_ns(clock)?.saturating_sub(1_000_000_000) })
    }

    /// Reads the clock: nanoseconds since the machine started. Returns 0 if the system suddenly refuses.
    #[inline]
    pub(crate) fn read(&self) -> u64 {
        now_ns(self.clock).unwrap_or(0)
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

    /// Sets the clock. No system sets a clock that runs during suspend.
    #[cfg(all(test, not(tatcell_cluster_loom)))]
    pub(crate) fn set_forward(&mut self, ns: i64) {
        self.start = self.start.saturating_add_signed(-ns);
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.of(self.read())
    }
}

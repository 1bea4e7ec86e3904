//! A wall clock that nobody can set while the program runs.

use super::clock::{now_ns, Clock};
use super::HostError;

/// Guards time stamps of the wall clock, or of other machines, by a clock that nobody can set.
///
/// A limit charges a request at the time that it is given. A stamp from the future locks a key or takes units of
/// another month, and a stamp from long ago may find no debt. The guard remembers one stamp, at its start. Afterwards
/// it knows what time it is from the running clock (`Boottime`, or `Monotonic` if the system has no other), and each
/// stamp counts only as far as it is at most `step` before or after that.
///
/// So `now` is never more than `step` ahead of the first stamp and the time that has run since. With a step of 0 stamps
/// after the first do not count at all. If the first stamp is wrong, all are: compare it with the last one that you
/// have saved. To follow a clock that was set on purpose, start another guard.
///
/// Immutable: any number of threads may use one, and processes after a fork. It is good until the next boot.
///
/// ```
/// use tatcell::host::ClockGuard;
/// let (second, day) = (1_000_000_000, 86_400_000_000_000);
/// let november = 1_793_491_200 * second; // in a program the wall clock, in nanoseconds
/// let guard = ClockGuard::start(november, 5 * second).unwrap();
/// let ahead = guard.now(november + 7 * day).unwrap();
/// assert!(ahead >= november + 5 * second && ahead < november + 60 * second);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockGuard {
    /// The first stamp less the running clock at that moment; wraps.
    offset: u64,
    step: u64,
}

/// Reads the clock that runs whatever anybody sets.
fn running() -> Result<u64, HostError> {
    match now_ns(Clock::Boottime) {
        Err(HostError::Unsupported) => now_ns(Clock::Monotonic),
        read => read,
    }
}

impl ClockGuard {
    /// Starts a guard with a stamp that the caller trusts. Stamp and step are in nanoseconds.
    ///
    /// # Errors
    /// [`HostError::System`] if the running clock cannot be read.
    pub fn start(stamp: u64, step: u64) -> Result<ClockGuard, HostError> {
        Ok(ClockGuard { offset: stamp.wrapping_sub(running()?), step })
    }

    /// Returns the time in nanoseconds: the stamp, or the nearest time to it that the guard allows.
    ///
    /// Cost: one reading of the running clock, a few tens of nanoseconds.
    ///
    /// # Errors
    /// The same as those of [`start`](Self::start).
    pub fn now(&self, stamp: u64) -> Result<u64, HostError> {
        Ok(self.allowed(running()?, stamp))
    }

    fn allowed(&self, running: u64, stamp: u64) -> u64 {
        let due = running.wrapping_add(self.offset);
        stamp.clamp(due.saturating_sub(self.step), due.saturating_add(self.step))
    }

    /// The two numbers of a guard, for the C structure.
    #[cfg(feature = "capi")]
    pub(crate) const fn parts(&self) -> (u64, u64) {
        (self.offset, self.step)
    }

    #[cfg(feature = "capi")]
    pub(crate) const fn from_parts(offset: u64, step: u64) -> ClockGuard {
        ClockGuard { offset, step }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000_000_000;

    #[test]
    fn a_stamp_counts_as_far_as_the_step_allows() {
        // The wall clock is behind the running one, as after a wrong start, and far ahead of it.
        for first in [5 * DAY, 20_000 * DAY] {
            let guard = ClockGuard { offset: first.wrapping_sub(100 * DAY), step: 7 };
            for run in [0, 1, 400 * DAY] {
                let (running, due) = (100 * DAY + run, first + run);
                for (stamp, wanted) in [
                    (due, due),
                    (due + 7, due + 7),
                    (due - 7, due - 7),
                    (due + 8, due + 7),
                    (due - 8, due - 7),
                    (due + 5 * DAY, due + 7),
                    (0, due - 7),
                    (u64::MAX, due + 7),
                ] {
                    assert_eq!(guard.allowed(running, stamp), wanted, "{first} {run} {stamp}");
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_axis_are_no_wraps() {
        let guard = ClockGuard { offset: 0, step: u64::MAX };
        for stamp in [0, 1, DAY, u64::MAX] {
            assert_eq!(guard.allowed(DAY, stamp), stamp);
        }
    }

    #[test]
    fn time_goes_on_whatever_the_stamps_say() {
        let guard = ClockGuard::start(20_000 * DAY, 0).unwrap();
        let first = guard.now(0).unwrap();
        let second = guard.now(u64::MAX).unwrap();
        assert!(first >= 20_000 * DAY && second >= first && second < 20_001 * DAY, "{first} {second}");
    }
}

//! The system's monotonic clocks, in nanoseconds.
//!
//! They only go forward, and none of them tells the time of day. Read one once per burst of requests, not once per
//! request: a read costs a few tens of nanoseconds, a coarse one a few; a decision costs less.

use core::mem::MaybeUninit;

use super::{last_error, HostError};

/// Names one of the system's monotonic clocks.
///
/// ```
/// use tatcell::host::{now_ns, Clock};
/// // The cheapest clock that this system has.
/// let clock = if now_ns(Clock::Coarse).is_ok() { Clock::Coarse } else { Clock::Monotonic };
/// assert!(now_ns(clock)? > 0);
/// # Ok::<(), tatcell::host::HostError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// Slewed towards true time by NTP; stops while the system sleeps. All systems.
    Monotonic,
    /// The bare oscillator, never slewed; stops while the system sleeps. Linux, Android, Apple.
    Raw,
    /// Monotonic as of the last timer tick, which is 1 to 10 ms old; cheapest to read. Linux, Android.
    Coarse,
    /// Monotonic, and runs while the system sleeps, so debts drain during a suspend. Linux, Android.
    Boottime,
}

impl Clock {
    fn id(self) -> Result<libc::clockid_t, HostError> {
        match self {
            Clock::Monotonic => Ok(libc::CLOCK_MONOTONIC),
            #[cfg(tatcell_raw_clock)]
            Clock::Raw => Ok(libc::CLOCK_MONOTONIC_RAW),
            #[cfg(tatcell_linux)]
            Clock::Coarse => Ok(libc::CLOCK_MONOTONIC_COARSE),
            #[cfg(tatcell_linux)]
            Clock::Boottime => Ok(libc::CLOCK_BOOTTIME),
            #[allow(unreachable_patterns)] // on Linux all are there
            _ => Err(HostError::Unsupported),
        }
    }
}

/// Returns the nanoseconds of a timespec that is not negative.
fn nanoseconds(t: libc::timespec) -> u64 {
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}

/// Reads a clock, in nanoseconds since a moment that is fixed until the next boot.
///
/// ```
/// use tatcell::host::{now_ns, Clock};
/// let before = now_ns(Clock::Monotonic)?;
/// assert!(now_ns(Clock::Monotonic)? >= before);
/// # Ok::<(), tatcell::host::HostError>(())
/// ```
///
/// # Errors
/// [`HostError::Unsupported`] if the system lacks the clock, [`HostError::System`] if it refuses the call.
#[inline]
pub fn now_ns(clock: Clock) -> Result<u64, HostError> {
    let id = clock.id()?;
    let mut t = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: room for one timespec.
    if unsafe { libc::clock_gettime(id, t.as_mut_ptr()) } != 0 {
        return Err(last_error());
    }
    // SAFETY: filled in by the call above.
    Ok(nanoseconds(unsafe { t.assume_init() }))
}

/// Returns the resolution of a clock: the nanoseconds between two of its values, as the system reports it.
///
/// ```
/// use tatcell::host::{resolution_ns, Clock};
/// assert!(resolution_ns(Clock::Monotonic)? < 1_000_000);
/// # Ok::<(), tatcell::host::HostError>(())
/// ```
///
/// # Errors
/// The same as those of [`now_ns`].
pub fn resolution_ns(clock: Clock) -> Result<u64, HostError> {
    let id = clock.id()?;
    let mut t = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: room for one timespec.
    if unsafe { libc::clock_getres(id, t.as_mut_ptr()) } != 0 {
        return Err(last_error());
    }
    // SAFETY: filled in by the call above.
    Ok(nanoseconds(unsafe { t.assume_init() }))
}

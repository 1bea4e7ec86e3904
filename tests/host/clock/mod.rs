//! Clocks that differ, and readings that are old when they are used: under default options neither adds units.
//!
//! A caller reads its clock and asks some time later. It may be stopped in between, or its clock may be coarse or
//! cached. So a key may get a reading that is older than one it has already seen. Within the skew S the answer is then
//! stricter; a reading older than S finds the debt expired. What is admitted is bounded:
//! ```text
//!   units admitted <= B + (last reading - first reading) / T
//!
//!   An admission by reading r makes TAT' = max(TAT, r) + c*T, and only where TAT' <= r + B*T. So a TAT is at most the
//!   latest reading R + B*T, it is live for every reading r >= R - S, and the TAT of a key never falls. It begins at
//!   the first admission's reading r1, every unit moves it by T or more, and it ends at R + B*T or below:
//!   r1 + n*T <= R + B*T.
//! ```
//!
//! Each key has its own set here. In a shared set a caller whose clock is ahead may reuse a slot that a caller behind
//! still counts; the README has another bound for that.
//!
//! The tests of `virtual_time` read no clock. Those of `coarse` and `stopped` need the real clock and real time, and
//! have controls: the same with a skew of one burst time must exceed the bound.

#[cfg(all(target_os = "linux", target_has_atomic = "64"))]
mod coarse;
mod faults;
#[cfg(all(target_os = "linux", target_has_atomic = "64"))]
mod stopped;
mod virtual_time;
#[cfg(all(target_os = "linux", target_has_atomic = "64"))]
mod workers;

/// A rate and a burst, apart from the rest of a `LimitSpec`.
#[derive(Clone, Copy, Debug)]
struct Rate {
    units: u64,
    period: u64,
    burst: u64,
}

impl Rate {
    const fn spec(self) -> tatcell::LimitSpec {
        tatcell::LimitSpec::new(self.units, self.period, self.burst)
    }

    /// B*T in ticks, rounded up.
    const fn burst_time(self) -> u64 {
        (self.burst as u128 * self.period as u128).div_ceil(self.units as u128) as u64
    }

    /// B + ticks / T.
    const fn most_within(self, ticks: u64) -> u64 {
        self.burst + (ticks as u128 * self.units as u128 / self.period as u128) as u64
    }
}

/// S under default options of the fast limits of `coarse` and `stopped`, in ticks.
#[cfg(all(target_os = "linux", target_has_atomic = "64"))]
const DEFAULT_SKEW: u64 = 1 << 30;

/// CLOCK_MONOTONIC in nanoseconds: one clock for all threads and processes. Allocates nothing.
#[cfg(all(target_os = "linux", target_has_atomic = "64"))]
fn monotonic() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for one timespec.
    let rc = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    assert_eq!(rc, 0);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

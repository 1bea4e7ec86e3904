//! The processor's own counter: a clock that costs no call.
//!
//! ```text
//!  x86, x86-64   TSC, if invariant (CPUID 0x8000_0007, EDX bit 8): constant rate in all power states
//!  aarch64       CNTVCT_EL0, constant by architecture; CNTFRQ_EL0 reports its rate
//! ```
//!
//! The rate of a TSC is measured against CLOCK_MONOTONIC_RAW. At both ends of the interval, counter, clock, counter are
//! read several times, and the tightest reading counts. The clock was read between the two counts, so the result is
//! wrong by at most half of both gaps, divided by the interval; that error is reported with it.
//!
//! A limit takes the rate as it is: `Limit::from_rate(units_per_sec, clock.ticks_per_sec(), burst)`, and `now` is
//! [`counter`]. If the counters of the cores differ (the kernel does not use the TSC then), the difference is a clock
//! skew like any other: either the limit's skew covers it, or it admits that much more.

use super::clock::{now_ns, Clock};
use super::HostError;

/// Reads the processor's counter; returns 0 if there is none.
///
/// The read is not ordered against the instructions around it; a rate limiter does not need that. Use it only if
/// [`TickClock::calibrate`] succeeded, which shows that the counter can be a clock.
///
/// ```
/// use tatcell::host::counter;
/// let before = counter();
/// assert!(counter() >= before);
/// ```
#[inline(always)]
pub fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has RDTSC; a process that has forbidden it to itself (prctl) gets a signal.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(all(target_arch = "x86", target_feature = "sse2"))]
    // SAFETY: as above; a processor with SSE2 has it.
    return unsafe { core::arch::x86::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads one register, which programs may read on every system with a vDSO.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
        }
        return ticks;
    }
    #[allow(unreachable_code)]
    0
}

/// Returns whether the counter runs at one rate, whatever the processor does.
fn invariant() -> bool {
    #[cfg(any(target_arch = "x86_64", all(target_arch = "x86", target_feature = "sse2")))]
    {
        #[cfg(target_arch = "x86")]
        use core::arch::x86::__cpuid;
        #[cfg(target_arch = "x86_64")]
        use core::arch::x86_64::__cpuid;
        #[allow(unused_unsafe)] // a safe function in later compilers than the oldest supported one
        // SAFETY: CPUID is on every processor with SSE2.
        return unsafe { __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0 };
    }
    #[allow(unreachable_code)]
    {
        cfg!(target_arch = "aarch64")
    }
}

/// Returns the rate that the processor itself reports.
fn told() -> Option<u64> {
    #[cfg(target_arch = "aarch64")]
    {
        let hertz: u64;
        // SAFETY: reads one register, which programs may read.
        unsafe {
            core::arch::asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags));
        }
        if hertz != 0 {
            return Some(hertz);
        }
    }
    None
}

/// Holds the rate of a counter that can be a clock.
///
/// Limits by address, with the fastest clock:
///
/// ```
/// use std::net::IpAddr;
/// use tatcell::host::TickClock;
/// use tatcell::{Address, HashKind, LimitSpec, Line, Table, TableOptions};
/// static MEMORY: [Line; 66] = [Line::EMPTY; 66];
///
/// let clock = TickClock::calibrate(10_000_000)?; // spins for 10 ms
/// let spec = LimitSpec::new(100, clock.ticks_per_sec(), 20); // 100 a second, 20 at once
/// let hash = if HashKind::Aes.is_available() { HashKind::Aes } else { HashKind::SipHash13 };
/// let table = Table::init(&MEMORY, &TableOptions::new(spec).seed(*b"16 random bytes!").hash(hash))?;
/// let limit = table.limit(&spec)?;
/// // For each request: one key for an IPv4 address, one for the /64 of an IPv6 address.
/// let peer: IpAddr = "2001:db8::1".parse()?;
/// let key = Address::from(peer).prefix(if peer.is_ipv4() { 32 } else { 64 });
/// assert!(table.check(&limit, clock.now(), key.as_ref(), 1)?.passes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickClock {
    ticks_per_sec: u64,
    uncertainty_ppb: u32,
}

/// One reading of both clocks: counter, nanoseconds, and half the ticks that the reading took.
#[derive(Clone, Copy)]
struct Pair {
    ticks: u64,
    ns: u64,
    error: u64,
}

fn pair() -> Result<Pair, HostError> {
    let mut best = Pair { ticks: 0, ns: 0, error: u64::MAX };
    for _ in 0..16 {
        let before = counter();
        let ns = now_ns(Clock::Raw)?;
        let gap = counter().wrapping_sub(before);
        let error = gap.div_ceil(2);
        if error < best.error {
            best = Pair { ticks: before.wrapping_add(gap / 2), ns, error };
        }
    }
    Ok(best)
}

impl TickClock {
    /// The shortest and longest calibration, in nanoseconds.
    pub const INTERVAL_NS: core::ops::RangeInclusive<u64> = 1_000_000..=1_000_000_000;

    /// Finds the rate of the processor's counter; spins for `interval_ns`, 1 ms to 1 s.
    ///
    /// 10 ms give about 10 ppm, 100 ms about 1; [`uncertainty_ppb`](Self::uncertainty_ppb) reports it. It takes the
    /// interval and some microseconds, if the thread keeps its processor; no time if the processor reports the rate.
    ///
    /// # Errors
    /// [`HostError::Unsupported`] if there is no counter of constant rate, or if it does not keep up with the clock
    /// (some emulators); [`HostError::BadInterval`]; [`HostError::System`] from the clock.
    pub fn calibrate(interval_ns: u64) -> Result<TickClock, HostError> {
        if !Self::INTERVAL_NS.contains(&interval_ns) {
            return Err(HostError::BadInterval);
        }
        if !invariant() {
            return Err(HostError::Unsupported);
        }
        if let Some(ticks_per_sec) = told() {
            return Ok(TickClock { ticks_per_sec, uncertainty_ppb: 0 });
        }
        let first = pair()?;
        let mut last = first;
        while last.ns.wrapping_sub(first.ns) < interval_ns {
            core::hint::spin_loop();
            last.ns = now_ns(Clock::Raw)?;
            // A clock that stands still would never end this loop; no processor makes 64 ticks per nanosecond.
            if counter().wrapping_sub(first.ticks) >> 6 > interval_ns {
                return Err(HostError::Unsupported);
            }
        }
        let last = pair()?;
        let (ticks, ns) = (last.ticks.wrapping_sub(first.ticks), last.ns.wrapping_sub(first.ns));
        TickClock::rate(ticks, ns, first.error.saturating_add(last.error))
    }

    /// Returns the rate of `ticks` in `ns` nanoseconds; the ticks are wrong by at most `error`.
    fn rate(ticks: u64, ns: u64, error: u64) -> Result<TickClock, HostError> {
        let hertz = (ticks as u128 * 1_000_000_000 + ns as u128 / 2).checked_div(ns as u128).unwrap_or(0);
        // A counter below a kilohertz or above a terahertz is not one.
        if !(1_000..=1_000_000_000_000).contains(&hertz) {
            return Err(HostError::Unsupported);
        }
        // One more nanosecond for the clock's own rounding at each end; neither divisor is 0.
        let counted = (error as u128 * 1_000_000_000).checked_div(ticks as u128).unwrap_or(0);
        let ppb = counted + 2_000_000_000u128.checked_div(ns as u128).unwrap_or(0) + 1;
        let uncertainty_ppb = if ppb > u32::MAX as u128 { u32::MAX } else { ppb as u32 };
        Ok(TickClock { ticks_per_sec: hertz as u64, uncertainty_ppb })
    }

    /// Makes a clock from a known rate, for instance from another process's calibration.
    ///
    /// # Errors
    /// [`HostError::Unsupported`] if there is no counter of constant rate, or if no counter can have this rate.
    pub fn from_rate(ticks_per_sec: u64) -> Result<TickClock, HostError> {
        if invariant() && (1_000..=1_000_000_000_000).contains(&ticks_per_sec) {
            Ok(TickClock { ticks_per_sec, uncertainty_ppb: 0 })
        } else {
            Err(HostError::Unsupported)
        }
    }

    /// Returns the ticks per second, to make limits from.
    pub const fn ticks_per_sec(&self) -> u64 {
        self.ticks_per_sec
    }

    /// Returns how far the rate may be off, in parts per billion of itself; 0 if the processor reported it.
    pub const fn uncertainty_ppb(&self) -> u32 {
        self.uncertainty_ppb
    }

    /// Reads the counter.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        counter()
    }

    /// Converts ticks to nanoseconds, rounded up, as a retry time should be; saturates. Divides; not for the hot path.
    pub const fn to_ns(&self, ticks: u64) -> u64 {
        scale(ticks, 1_000_000_000, self.ticks_per_sec)
    }

    /// Converts nanoseconds to ticks, rounded up; saturates. Divides; not for the hot path.
    pub const fn from_ns(&self, ns: u64) -> u64 {
        scale(ns, self.ticks_per_sec, 1_000_000_000)
    }
}

/// Returns `a * b / c`, rounded up; saturates, also if c is 0.
pub(crate) const fn scale(a: u64, b: u64, c: u64) -> u64 {
    // (2^64 - 1)^2 + 2^64 fits 128 bits.
    match (a as u128 * b as u128 + (c as u128).saturating_sub(1)).checked_div(c as u128) {
        Some(x) if x <= u64::MAX as u128 => x as u64,
        _ => u64::MAX,
    }
}

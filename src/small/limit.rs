//! Limits for small machines: the numbers that a plain check needs, in the width of the cell.
//!
//! ```text
//!  SmallLimit32, 24 bytes   t | limit | window | delay | burst | shift        6 x u32
//!  SmallLimit,   40 bytes   t | limit | window | delay   4 x u64, burst : u32, shift | 31 - shift   2 x u16
//!
//!  t       T_q, emission interval          q-unit = 2^-shift ticks, shift 0..=31 (never coarser than a tick)
//!  limit   D = burst * T_q                 burst is cut at 2^32 - 1, which no u32 cost exceeds
//!  window  H + S                           delay: most lead beyond D that a reservation may build
//! ```
//!
//! The numbers are those of [`Limit`] and [`Limit32`] for the same rate, and so are the answers. They are constants of
//! the program: these `const fn` compute them in Rust, the macros of `tatcell_small.h` in C, and the tests compare the
//! two. A program can also make them at run time, by the same `const fn` (`rate.rs`). The target divides nothing.
#![warn(clippy::arithmetic_side_effects)]

use super::rate::{numbers, Numbers};
use crate::limit::params::Params;
use crate::limit::{Limit, Limit32, LimitError};

/// Holds a plain limit for a 64-bit cell on a small machine. A tick is 2^shift q-units; the only option is a delay.
///
/// ```
/// use tatcell::{Cell, Outcome, SmallLimit};
/// const LIMIT: SmallLimit = match SmallLimit::new(1, 1_000_000, 5) {
///     Ok(limit) => limit, // 1 a second in microseconds, 5 at once
///     Err(_) => panic!("cannot be represented"),
/// };
/// let cell = Cell::new();
/// assert_eq!(cell.check_small(&LIMIT, 0, 5), Outcome::Conforming);
/// assert_eq!(cell.check_small(&LIMIT, 0, 1), Outcome::NonConforming { retry_after: 1_000_000 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SmallLimit {
    pub(crate) t: u64,
    pub(crate) limit: u64,
    pub(crate) window: u64,
    pub(crate) delay: u64,
    pub(crate) burst: u32,
    pub(crate) shift: u16,
    /// 31 - shift: the part of a 64-bit shift that crosses from one register to the other.
    pub(crate) back: u16,
}

/// Holds a plain limit for a 32-bit cell and 32-bit ticks: no decision uses a 64-bit number.
///
/// The clock may wrap: only differences of `now` count. A cell that rests longer than the limit's
/// [`span`](SmallLimit32::span) may read as a debt of at most its window until that drains; see
/// [`Cell32::idle`](crate::Cell32::idle).
///
/// ```
/// use tatcell::{Cell32, Outcome, SmallLimit32};
/// const LIMIT: SmallLimit32 = match SmallLimit32::new(10, 1_000, 3) {
///     Ok(limit) => limit, // 10 a second in milliseconds, 3 at once
///     Err(_) => panic!("cannot be represented"),
/// };
/// let cell = Cell32::new();
/// let just_before_the_wrap = u32::MAX - 1;
/// assert_eq!(cell.check_small(&LIMIT, just_before_the_wrap, 3), Outcome::Conforming);
/// assert_eq!(cell.check_small(&LIMIT, 0, 1), Outcome::NonConforming { retry_after: 98 });
/// assert_eq!(cell.check_small(&LIMIT, 98, 1), Outcome::Conforming);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SmallLimit32 {
    pub(crate) t: u32,
    pub(crate) limit: u32,
    pub(crate) window: u32,
    pub(crate) delay: u32,
    pub(crate) burst: u32,
    pub(crate) shift: u32,
}

/// Refuses what the small form cannot express: options, and q-units coarser than a tick or finer than 2^-31.
const fn plain(p: &Params) -> Result<(), LimitError> {
    if p.flags != 0 || p.room != 0 || p.soft_q != u64::MAX || p.debt_q != p.burst_q || p.t_q == 0 {
        return Err(LimitError::NotSmall);
    }
    if p.shr != 0 {
        return Err(LimitError::HorizonTooLong);
    }
    if p.shl > 31 {
        return Err(LimitError::NotRepresentable);
    }
    Ok(())
}

/// Tells the compiler that the shift is at most 31: an ARM core shifts by the low eight bits of a register, so
/// otherwise the compiler would mask each shift first.
#[inline(always)]
const fn bounded(shift: u32) -> u32 {
    // SAFETY: the constructors refuse more, and the C header demands a limit made by its macros, which do the same.
    unsafe { core::hint::assert_unchecked(shift <= 31) };
    shift
}

/// Multiplies 32 bits by 32 bits to 64. A Cortex-M0 only multiplies 32 bits to 32 bits, and a call of the compiler's
/// 64-bit multiplication costs more than these multiplications.
#[inline(never)]
const fn times(x: u32, y: u32) -> u64 {
    let (a, b) = (x & 0xffff, x >> 16);
    let (c, d) = (y & 0xffff, y >> 16);
    let cross = (a.wrapping_mul(d) as u64).wrapping_add(b.wrapping_mul(c) as u64);
    ((b.wrapping_mul(d) as u64) << 32 | a.wrapping_mul(c) as u64).wrapping_add(cross << 16)
}

/// Returns `cost * t` by way of [`times`], if it fits.
#[inline(always)]
const fn by_halves(cost: u32, t: u64) -> u64 {
    times(cost, t as u32).wrapping_add((cost.wrapping_mul((t >> 32) as u32) as u64) << 32)
}

/// Whether this is a Cortex-M0: its instructions reach eight registers, and it has no 64-bit product.
const SCARCE: bool = cfg!(all(target_arch = "arm", not(target_has_atomic = "32")));

/// Reads a field at the place of its use. A Cortex-M0 has few registers: otherwise the compiler loads all fields first
/// and spills those that it cannot hold.
#[inline(always)]
pub(crate) fn fresh<T: Copy>(field: &T) -> T {
    // SAFETY: a reference is valid for reads; volatile only fixes the place of the load.
    unsafe { core::ptr::from_ref(field).read_volatile() }
}

/// Reads a field at the place of its use, or with `FOLD` plainly, for a limit that is a constant of the program.
#[inline(always)]
pub(crate) fn read<const FOLD: bool, T: Copy>(field: &T) -> T {
    if FOLD {
        *field
    } else {
        fresh(field)
    }
}

/// Returns units and period of the rate that a burst of `longest` leaves of `on` ticks in each `window`.
const fn duty_rate(on: u64, window: u64, longest: u64) -> Result<(u64, u64), LimitError> {
    if longest >= on || on > window {
        return Err(LimitError::BadDuty);
    }
    Ok((on.wrapping_sub(longest), window.saturating_add(1)))
}

const fn cut(burst: u64) -> u32 {
    if burst > u32::MAX as u64 {
        u32::MAX
    } else {
        burst as u32
    }
}

impl SmallLimit {
    /// Makes a limit of `units` per `period` ticks, and at most `burst` units at one instant after idle.
    ///
    /// # Errors
    /// The [`LimitError`]s of [`Limit::new`]; `NotRepresentable` also if a unit takes less than 2^-15 ticks.
    pub const fn new(units: u64, period: u64, burst: u64) -> Result<SmallLimit, LimitError> {
        SmallLimit::shaped(units, period, burst, 0)
    }

    /// Makes a limit for [`reserve_small`](crate::Cell::reserve_small), with departures up to `max_delay` ticks ahead.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub const fn shaped(
        units: u64,
        period: u64,
        burst: u64,
        max_delay: u64,
    ) -> Result<SmallLimit, LimitError> {
        match numbers::<64>(units, period, burst, max_delay) {
            Ok(Numbers { t, limit, window, delay, shift }) => Ok(SmallLimit {
                t,
                limit,
                window,
                delay,
                burst: cut(burst),
                shift: shift as u16,
                // shift <= 31.
                back: 31u16.wrapping_sub(shift as u16),
            }),
            Err(e) => Err(e),
        }
    }

    /// Makes the limit of a duty cycle: at most `on` ticks of transmission in any `window` ticks, wherever the window
    /// begins. Units are ticks of transmission; the burst is the `longest` transmission.
    ///
    /// `on` units per `window` with a burst of `on` would let nearly twice that through in one window, because burst +
    /// rate * window may pass. So the rate is what the burst leaves: `on - longest` in `window + 1` ticks (one more for
    /// a clock of whole ticks). Charge a transmission when it begins, with its length rounded up.
    ///
    /// # Errors
    /// [`BadDuty`](LimitError::BadDuty) if `longest` is not below `on`, or if `on` is above `window`; otherwise those
    /// of [`new`](Self::new).
    pub const fn duty(on: u64, window: u64, longest: u64) -> Result<SmallLimit, LimitError> {
        match duty_rate(on, window, longest) {
            Ok((units, period)) => SmallLimit::new(units, period, longest),
            Err(e) => Err(e),
        }
    }

    /// Converts a limit; both then decide alike.
    ///
    /// # Errors
    /// `NotSmall` if it has an option that the small form lacks; otherwise those of [`new`](Self::new).
    pub const fn from_limit(limit: &Limit) -> Result<SmallLimit, LimitError> {
        let p = &limit.0;
        match plain(p) {
            Ok(()) => Ok(SmallLimit {
                t: p.t_q,
                limit: p.burst_q,
                window: p.window_q,
                delay: p.delay_q(),
                burst: cut(p.burst),
                shift: p.shl as u16,
                // shl <= 31: checked above.
                back: 31u16.wrapping_sub(p.shl as u16),
            }),
            Err(e) => Err(e),
        }
    }

    /// Returns `shift` and 31 - `shift`.
    #[inline(always)]
    fn shifts(&self) -> (u32, u32) {
        let back = bounded(fresh(&self.back) as u32);
        (bounded(fresh(&self.shift) as u32), back)
    }

    /// Converts the caller's clock to q-units, mod 2^64: `now << shift` by 32-bit shifts, because a core without 64-bit
    /// shifts would call a function.
    #[inline(always)]
    pub(crate) fn now_q(&self, now: u64) -> u64 {
        let (shift, back) = self.shifts();
        let (low, high) = (now as u32, (now >> 32) as u32);
        let carry = (low >> 1).wrapping_shr(back);
        let high = high.wrapping_shl(shift) | carry;
        (high as u64) << 32 | low.wrapping_shl(shift) as u64
    }

    /// Converts a negative room in q-units to ticks of wait, rounded up: ceil(-room / 2^shift) = -floor(room / 2^shift)
    #[inline(always)]
    pub(crate) fn ticks_up(&self, room: u64) -> u64 {
        let (shift, back) = self.shifts();
        let (low, high) = (room as u32, (room >> 32) as u32);
        let low = low.wrapping_shr(shift) | high.wrapping_shl(1).wrapping_shl(back);
        let high = (high as i32).wrapping_shr(shift) as u32;
        ((high as u64) << 32 | low as u64).wrapping_neg()
    }

    /// Returns `cost * t`. It fits, because cost <= burst.
    #[inline(always)]
    pub(crate) fn charge(&self, cost: u32) -> u64 {
        if SCARCE {
            by_halves(cost, fresh(&self.t))
        } else {
            (cost as u64).wrapping_mul(self.t)
        }
    }
}

impl SmallLimit32 {
    /// Makes a limit of `units` per `period` ticks, and at most `burst` units at one instant after idle.
    ///
    /// # Errors
    /// [`LimitError`], as [`Limit32::new`]; and `HorizonTooLong` where the burst takes longer than 2^30 ticks to
    /// refill: use a slower clock or a 64-bit cell.
    pub const fn new(units: u64, period: u64, burst: u64) -> Result<SmallLimit32, LimitError> {
        SmallLimit32::shaped(units, period, burst, 0)
    }

    /// Makes a limit for [`reserve_small`](crate::Cell32::reserve_small), with departures up to `max_delay` ticks
    /// ahead.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub const fn shaped(
        units: u64,
        period: u64,
        burst: u64,
        max_delay: u64,
    ) -> Result<SmallLimit32, LimitError> {
        match numbers::<32>(units, period, burst, max_delay) {
            // All below 2^31.
            Ok(Numbers { t, limit, window, delay, shift }) => Ok(SmallLimit32 {
                t: t as u32,
                limit: limit as u32,
                window: window as u32,
                delay: delay as u32,
                burst: cut(burst),
                shift,
            }),
            Err(e) => Err(e),
        }
    }

    /// Makes the limit of a duty cycle: at most `on` ticks of transmission in any `window` ticks, wherever the window
    /// begins. See [`SmallLimit::duty`].
    ///
    /// ```
    /// use tatcell::{Cell32, Outcome, SmallLimit32};
    /// // One percent of an hour in milliseconds, packets of at most 1.5 s.
    /// const LAW: SmallLimit32 = match SmallLimit32::duty(36_000, 3_600_000, 1_500) {
    ///     Ok(limit) => limit,
    ///     Err(_) => panic!("cannot be represented"),
    /// };
    /// let radio = Cell32::new();
    /// assert_eq!(radio.check_small(&LAW, 0, 1_500), Outcome::Conforming);
    /// assert_eq!(radio.check_small(&LAW, 1_500, 50), Outcome::NonConforming { retry_after: 3_719 });
    /// ```
    ///
    /// # Errors
    /// Those of [`SmallLimit::duty`].
    pub const fn duty(on: u64, window: u64, longest: u64) -> Result<SmallLimit32, LimitError> {
        match duty_rate(on, window, longest) {
            Ok((units, period)) => SmallLimit32::new(units, period, longest),
            Err(e) => Err(e),
        }
    }

    /// Converts a limit; both then decide alike.
    ///
    /// # Errors
    /// `NotSmall` if it has an option that the small form lacks; otherwise those of [`new`](Self::new).
    pub const fn from_limit(limit: &Limit32) -> Result<SmallLimit32, LimitError> {
        let p = &limit.0;
        match plain(p) {
            // H + S < 2^31 bounds every one of these.
            Ok(()) => Ok(SmallLimit32 {
                t: p.t_q as u32,
                limit: p.burst_q as u32,
                window: p.window_q as u32,
                delay: p.delay_q() as u32,
                burst: cut(p.burst),
                shift: p.shl as u32,
            }),
            Err(e) => Err(e),
        }
    }

    /// Returns the ticks that a cell may rest after a charge without ever reading as a debt: (2^32 - H - S) q-units.
    ///
    /// With 1 ms ticks that is 49 days if a unit takes whole ticks, and days or minutes if it takes a fraction of one.
    /// [Sweep](crate::Cell32::idle) cells that rest longer.
    pub const fn span(&self) -> u32 {
        0u32.wrapping_sub(self.window).wrapping_shr(self.shift)
    }

    /// Returns the ticks within which an idle cell or slot needs one [sweep](crate::Cell32::idle), so that it never
    /// reads as a debt again.
    pub const fn sweep_interval(&self) -> u32 {
        0u32.wrapping_sub(self.window.wrapping_mul(2)).wrapping_shr(self.shift)
    }

    /// Returns `cost * t`. It fits, because cost <= burst.
    #[inline(always)]
    pub(crate) fn charge(&self, cost: u32) -> u32 {
        cost.wrapping_mul(self.t)
    }

    /// Converts the caller's clock to q-units, mod 2^32.
    #[inline(always)]
    pub(crate) fn now_q(&self, now: u32) -> u32 {
        now.wrapping_shl(bounded(if SCARCE { fresh(&self.shift) } else { self.shift }))
    }

    /// Converts a negative room in q-units to ticks of wait, rounded up: ceil(-room / 2^shift) = -floor(room / 2^shift)
    #[inline(always)]
    pub(crate) fn ticks_up(&self, room: u32) -> u32 {
        ((room as i32).wrapping_shr(bounded(if SCARCE { fresh(&self.shift) } else { self.shift })) as u32)
            .wrapping_neg()
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    /// A core without a 64-bit product computes these.
    #[test]
    fn products_by_halves_are_whole_products() {
        let mut word = 7u64;
        let mut random = || {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            word ^ word >> 29
        };
        for _ in 0..10_000 {
            let (x, y) = (random() as u32, random() as u32);
            assert_eq!(times(x, y), u64::from(x).wrapping_mul(u64::from(y)), "{x} * {y}");
            let (cost, t) = (random() as u32, random());
            assert_eq!(by_halves(cost, t), u64::from(cost).wrapping_mul(t), "{cost} * {t}");
        }
        let most = u32::MAX;
        assert_eq!(times(most, most), u64::from(most).wrapping_mul(u64::from(most)));
    }
}

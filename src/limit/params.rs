//! The fixed-point form of a limit: what a decision needs, with every division already done.
//!
//! ```text
//! q-unit                  2^-s ticks. s >= 0: finer than the caller's clock; s < 0: coarser, `now` is floored
//! T_q   emission interval ceil(period * 2^s / units), so the configured rate is never exceeded
//! D     burst_q           burst * T_q: the debt of a whole burst
//! H     horizon_q         the largest lead a store can make: burst + the largest of room, delay, debt, penalty
//! S     skew              how far `now` may step back before a word reads as expired
//! window_q                H + S: a word is live iff 1 <= TAT - now <= H + S (mod 2^W)
//! ```
//!
//! Invariants, checked once here: `T_q >= 1`, `D < 2^62`, `H + S < 2^(W-1)`, and `(H + S)` in ticks fits 64 bits.
//! They are why no sum or product of a decision can overflow.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::error::LimitError;
use super::spec::LimitSpec;
use crate::time::{self, ticks_to_q_down, ticks_to_q_up};

/// What marks parameters as made by this layout of [`Params`] and for what sort of word: neither stack garbage nor the
/// parameters of another library version have it.
///
/// ```text
///  63           48 47                                   0
/// [ kind, layout  |  ties of a table, mixed; 0 for cells ]
/// ```
pub(crate) const MARK_CELL64: u64 = mark(Kind::Cell64, [0; 4]);
pub(crate) const MARK_CELL32: u64 = mark(Kind::Cell32, [0; 4]);
/// Counts up whenever [`Params`] changes.
const PARAMS_LAYOUT: u64 = 2;

/// A sort of word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Cell64 = 1,
    Cell32 = 2,
    Table = 3,
}

/// The mark of a kind, and for a table of what its limits are tied to.
pub(crate) const fn mark(kind: Kind, ties: [u64; 4]) -> u64 {
    let [a, b, c, d] = ties;
    let mixed = mix(mix(mix(mix(0, a), b), c), d);
    (0x7c00 | (kind as u64) << 4 | PARAMS_LAYOUT) << 48 | mixed >> 16
}

/// Is this a mark of that kind, whatever it is tied to?
#[allow(dead_code)] // the C layer asks
pub(crate) const fn is_of(mark: u64, kind: Kind) -> bool {
    mark >> 48 == self::mark(kind, [0; 4]) >> 48
}

/// One round: the finaliser of SplitMix64.
const fn mix(state: u64, word: u64) -> u64 {
    let z = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Treat a word that is ahead of `now` by more than H + S as a full debt of one burst.
pub(crate) const FLAG_HEAL: u8 = 1;
/// Pass what would have been denied, and store nothing for it.
pub(crate) const FLAG_SHADOW: u8 = 2;
/// Denied requests are charged too.
pub(crate) const FLAG_PENALTY: u8 = 4;
/// A permit drains from the moment of its charge on, whatever debt lay before it.
pub(crate) const FLAG_STRICT: u8 = 8;
/// Any of these keeps a limit off the plain path of a check.
pub(crate) const FLAGS_NOT_PLAIN: u8 = FLAG_HEAL | FLAG_SHADOW | FLAG_PENALTY;

/// A limit in q-units. `repr(C)`: it is stored as it is inside the C ABI's opaque limit. What a plain decision reads
/// stands in the first 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Params {
    /// [`MARK_CELL64`], [`MARK_CELL32`] or the mark of a table; zeroed memory has none of them.
    pub mark: u64,
    /// T_q; 0 only when unlimited.
    pub t_q: u64,
    /// D = burst * T_q: the debt of a whole burst.
    pub burst_q: u64,
    /// Largest cost that [`plain`](crate::algorithms::gcra::plain) decides: B, or 0 where an option needs more than
    /// that.
    pub plain: u64,
    /// H + S.
    pub window_q: u64,
    /// H.
    pub horizon_q: u64,
    /// Conforming above this lead is soft; `u64::MAX` = off.
    pub soft_q: u64,
    /// Given by the caller; permits carry it.
    pub epoch: u32,
    /// s when positive.
    pub shl: u8,
    /// -s when positive.
    pub shr: u8,
    pub flags: u8,
    /// W: bits of the word that hold the TAT.
    pub bits: u8,
    /// B, in units.
    pub burst: u64,
    /// Most lead that `reserve` may build beyond the burst.
    pub delay_q: u64,
    /// Most lead that `charge` may build, burst included.
    pub debt_q: u64,
    /// Most lead that a denied request may build, burst included; 0 = denied requests cost nothing.
    pub penalty_q: u64,
    /// Most elastic room of a call, in units.
    pub room: u64,
    /// What the limit was made from: units per period ticks.
    pub units: u64,
    pub period: u64,
}

/// Up to this resolution the span of a 64-bit word exceeds a year of nanoseconds: 2^55 ns are 417 days.
const LONG_SPAN_SHL: u32 = 9;

/// How the resolution is chosen when the caller does not give one.
#[derive(Clone, Copy)]
pub(crate) struct Width {
    /// W: bits of the word that hold the TAT.
    pub bits: u32,
    /// T_q is at least 2^this.
    pub precision: u32,
    /// H + S < 2^(bits - this) for a resolution chosen here; 3 keeps seven eighths of the span free of phantoms.
    pub spare: u32,
    pub mark: u64,
}

impl Width {
    /// A whole 64-bit word: 15.3 ppm.
    pub const CELL64: Width = Width { bits: 64, precision: 16, spare: 1, mark: MARK_CELL64 };
    /// A whole 32-bit word: 0.1 %, or no error at all where the emission interval is a whole number of ticks.
    pub const CELL32: Width = Width { bits: 32, precision: 10, spare: 3, mark: MARK_CELL32 };
}

/// T_q for a resolution, or 0 where it is below one q-unit or does not fit 64 bits.
const fn emission_q(units: u64, period: u64, shift: i32) -> u64 {
    // Both shifts stay below 2^127: a u64 moved by at most 63.
    let (num, den) = if shift >= 0 {
        ((period as u128) << (shift as u32), units as u128)
    } else {
        (period as u128, (units as u128) << shift.unsigned_abs())
    };
    // T_q < 1 is a rate that this resolution cannot tell from "one unit a q-unit": refuse it, do not round it up.
    if num < den {
        return 0;
    }
    let t = ceil_div(num, den);
    if t >= 1 << 62 {
        0
    } else {
        t as u64
    }
}

/// `num / den` rounded up; saturates where `den` is 0, so that no division can panic.
const fn ceil_div(num: u128, den: u128) -> u128 {
    match num.checked_div(den) {
        Some(q) if q.wrapping_mul(den) == num => q,
        Some(q) => q.wrapping_add(1),
        None => u128::MAX,
    }
}

/// `amount * t_q`, or `u64::MAX` where it does not fit 62 bits.
const fn times(amount: u64, t_q: u64) -> u64 {
    match amount.checked_mul(t_q) {
        Some(v) if v < 1 << 62 => v,
        _ => u64::MAX,
    }
}

const fn max(a: u64, b: u64) -> u64 {
    if a > b {
        a
    } else {
        b
    }
}

impl Params {
    /// Validates a specification for a word of `width`; `shift` None = chosen here.
    pub const fn build(spec: &LimitSpec, width: Width, shift: Option<i8>) -> Result<Params, LimitError> {
        if let Err(e) = spec.validate() {
            return Err(e);
        }
        if let Some(s) = shift {
            // The caller knows the idle times: only what decoding itself needs is refused.
            return Params::at(spec, Width { spare: 1, ..width }, s as i32);
        }
        // The coarsest resolution that is precise enough, and no coarser than the caller's clock if that fits.
        let mut low = if width.bits == 64 { 0i32 } else { -63 };
        while low <= 63 && emission_q(spec.units, spec.period, low) < 1 << width.precision {
            low = low.wrapping_add(1);
        }
        if low > 63 {
            return Err(LimitError::NotRepresentable);
        }
        if low > 0 && width.bits == 32 && matches!(spec.period.checked_rem(spec.units), Some(0)) {
            low = 0;
        }
        if low >= 0 {
            return Params::at(spec, width, low);
        }
        // Precise enough with a coarser clock: come as close to the caller's tick as the word allows.
        let mut s = 0i32;
        let mut result = Params::at(spec, width, s);
        while result.is_err() && s > low {
            s = s.wrapping_sub(1);
            result = Params::at(spec, width, s);
        }
        result
    }

    /// Validates a specification at one resolution.
    pub const fn at(spec: &LimitSpec, width: Width, shift: i32) -> Result<Params, LimitError> {
        if let Err(e) = spec.validate() {
            return Err(e);
        }
        if shift < -63 || shift > 63 {
            return Err(LimitError::BadResolution);
        }
        let t_q = emission_q(spec.units, spec.period, shift);
        if t_q == 0 {
            return Err(LimitError::NotRepresentable);
        }
        let burst_q = times(spec.burst, t_q);
        if burst_q == u64::MAX {
            return Err(LimitError::NotRepresentable);
        }
        let (shl, shr) = if shift >= 0 { (shift as u32, 0) } else { (0, shift.unsigned_abs()) };
        let delay_q = ticks_to_q_down(spec.max_delay, shl, shr);
        let room_q = times(spec.max_room, t_q);
        let debt_q = times(spec.max_debt, t_q);
        let penalty_q = times(spec.penalty, t_q);
        if delay_q >= 1 << 62 || room_q == u64::MAX || debt_q == u64::MAX || penalty_q == u64::MAX {
            return Err(LimitError::HorizonTooLong);
        }
        let extra = max(max(delay_q, room_q), max(debt_q, penalty_q));
        // burst_q and extra are below 2^62.
        let horizon_q = burst_q.wrapping_add(extra);
        let skew_q = match spec.skew {
            Some(ticks) => ticks_to_q_up(ticks, shl, shr),
            None => default_skew(width.bits, shl, shr, horizon_q),
        };
        let window = (horizon_q as u128).wrapping_add(skew_q as u128);
        if window >= 1 << (width.bits.wrapping_sub(width.spare)) || window << shr >= 1 << 63 {
            return Err(LimitError::HorizonTooLong);
        }
        let mut flags = 0;
        if spec.heal {
            if width.bits != 64 || shl > LONG_SPAN_SHL {
                return Err(LimitError::BadHeal);
            }
            flags |= FLAG_HEAL;
        }
        if spec.shadow {
            flags |= FLAG_SHADOW;
        }
        if spec.penalty != 0 {
            flags |= FLAG_PENALTY;
        }
        if spec.strict_refunds {
            flags |= FLAG_STRICT;
        }
        Ok(Params {
            t_q,
            burst_q,
            horizon_q,
            window_q: window as u64,
            soft_q: if spec.soft == 0 { u64::MAX } else { times(spec.soft, t_q) },
            delay_q,
            debt_q: burst_q.wrapping_add(debt_q),
            penalty_q: if spec.penalty == 0 { 0 } else { burst_q.wrapping_add(penalty_q) },
            burst: spec.burst,
            plain: if flags & FLAGS_NOT_PLAIN == 0 { spec.burst } else { 0 },
            room: spec.max_room,
            epoch: spec.epoch,
            shl: shl as u8,
            shr: shr as u8,
            flags,
            bits: width.bits as u8,
            mark: width.mark,
            units: spec.units,
            period: spec.period,
        })
    }

    /// A limit that everything conforms to.
    pub const fn unlimited(width: Width) -> Params {
        // Above every lead that any word can show, so that whatever is in the word conforms.
        let far = u64::MAX >> 1;
        Params {
            t_q: 0,
            burst_q: far,
            horizon_q: far,
            window_q: far,
            soft_q: u64::MAX,
            delay_q: 0,
            debt_q: far,
            penalty_q: 0,
            burst: u64::MAX,
            plain: 0,
            room: 0,
            epoch: 0,
            shl: 0,
            shr: 0,
            flags: 0,
            bits: width.bits as u8,
            mark: width.mark,
            units: 0,
            period: 0,
        }
    }

    /// The caller's clock in q-units, mod 2^64.
    #[inline(always)]
    pub const fn now_q(&self, now: u64) -> u64 {
        time::now_q(now, self.shl, self.shr)
    }

    /// Ticks after `now` until `q` more q-units have passed: rounded up, exact against the caller's own tick.
    #[inline(always)]
    pub const fn ticks_up(&self, q: u64, now: u64) -> u64 {
        time::ticks_up(q, now, self.shl, self.shr)
    }

    /// Says whether the given option flag is set.
    #[inline(always)]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// 2^bits - H - S q-units, in ticks, rounded down.
    pub const fn span(&self) -> u64 {
        let q = (1u128 << self.bits).wrapping_sub(self.window_q as u128);
        let ticks = (q >> self.shl) << self.shr;
        if ticks > u64::MAX as u128 {
            u64::MAX
        } else {
            ticks as u64
        }
    }

    /// The emission interval and the resolution, for reports: (q-units, s).
    pub const fn resolution(&self) -> (u64, i32) {
        (self.t_q, (self.shl as i32).wrapping_sub(self.shr as i32))
    }
}

/// Default S: an eighth of the span where that exceeds a year of nanosecond ticks; otherwise a 64th of it, at most
/// 2^30 ticks (about a second of nanoseconds), and at least H.
///
/// A reading older than S finds a word expired and mints a burst. A thread that is stopped between its clock and the
/// call, a cached and a coarse clock are the normal case, so S does not follow the burst of a fast limit down to
/// microseconds. Nor is it longer than it needs to be: sweeps wait for it, and H + S is how long a false debt can last.
pub(crate) const fn default_skew(bits: u32, shl: u32, shr: u32, horizon_q: u64) -> u64 {
    // Coarser than a tick: an eighth of the span of the caller's clock.
    if bits == 64 && shl <= LONG_SPAN_SHL {
        return (1u64 << 61).wrapping_shr(shr);
    }
    let part = 1u64.wrapping_shl(bits.wrapping_sub(6));
    let second = ticks_to_q_up(1 << 30, shl, shr);
    max(horizon_q, if part < second { part } else { second })
}

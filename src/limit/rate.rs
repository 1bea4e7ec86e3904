//! The fixed-point form of limits with a rate and a burst: GCRA.
//!
//! This file chooses the numbers that `params` draws, in this order: the resolution s, T_q, H and S.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::algorithm::Algorithm;
use super::error::LimitError;
use super::params::{Params, Width, FLAGS_NOT_PLAIN, FLAG_HEAL, FLAG_PENALTY, FLAG_SHADOW, FLAG_STRICT};
use super::spec::LimitSpec;
use crate::time::{ceil_div, max, ticks_to_q_down, ticks_to_q_up};

/// Up to this resolution a 64-bit word spans more than a year of nanoseconds: 2^55 ns are 417 days.
const LONG_SPAN_SHL: u32 = 9;

/// Returns T_q for a resolution, or 0 if it is below one q-unit or does not fit 62 bits.
pub(crate) const fn emission_q(units: u64, period: u64, shift: i32) -> u64 {
    // Both stay below 2^127: a u64 shifted by at most 63.
    let (num, den) = if shift >= 0 {
        ((period as u128) << (shift as u32), units as u128)
    } else {
        (period as u128, (units as u128) << shift.unsigned_abs())
    };
    // T_q < 1 is a rate that this resolution cannot tell from "one unit per q-unit": refuse it, do not round it up.
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

/// Returns `amount * t_q`, or `u64::MAX` if it does not fit 62 bits.
const fn times(amount: u64, t_q: u64) -> u64 {
    match amount.checked_mul(t_q) {
        Some(v) if v < 1 << 62 => v,
        _ => u64::MAX,
    }
}

/// Validates a specification for a word of `width`. If `shift` is `None`, chooses the resolution.
pub(crate) const fn build(spec: &LimitSpec, width: Width, shift: Option<i8>) -> Result<Params, LimitError> {
    if let Some(s) = shift {
        return at(spec, width, s as i32);
    }
    // The coarsest resolution that is precise enough, but never coarser than the tick: a clock that is floored to a
    // coarser q-unit jumps where a counter of 32 bits wraps, and the word would then read as expired.
    let mut s = 0i32;
    while s <= 63 && emission_q(spec.units, spec.period, s) < 1 << width.precision {
        s = s.wrapping_add(1);
    }
    if s > 63 {
        return Err(LimitError::NotRepresentable);
    }
    // Whole ticks are exact in a tick.
    if width.bits == 32 && matches!(spec.period.checked_rem(spec.units), Some(0)) {
        s = 0;
    }
    at(spec, width, s)
}

/// Validates a specification at one resolution.
pub(crate) const fn at(spec: &LimitSpec, width: Width, shift: i32) -> Result<Params, LimitError> {
    if spec.phase.is_some() {
        return Err(LimitError::BadAlgorithm);
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
    // One tick must fit into the span next to H + S: a clock that stands still mod 2^W would never drain a word.
    if window.wrapping_add(1 << shl) > 1 << width.bits {
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
        extra: [delay_q, if spec.penalty == 0 { 0 } else { burst_q.wrapping_add(penalty_q) }],
        debt_q: burst_q.wrapping_add(debt_q),
        burst: spec.burst,
        plain: if flags & FLAGS_NOT_PLAIN == 0 { spec.burst } else { 0 },
        room: spec.max_room,
        epoch: spec.epoch,
        shl: shl as u8,
        shr: shr as u8,
        flags,
        bits: width.bits as u8,
        fingerprint: width.fingerprint,
        units: spec.units,
        period: spec.period,
        algorithm: Algorithm::Gcra as u8,
        reserved: [0; 3],
        guard: 0,
    })
}

/// Returns the default S: an eighth of the span if that exceeds a year of nanosecond ticks; otherwise a 64th of it, at
/// most 2^30 ticks (about a second of nanoseconds), and at least H.
///
/// A clock reading older than S finds a word expired and grants a new burst. Threads stop between their clock and the
/// call, and clocks are cached or coarse: that is the normal case. So S does not shrink with the burst of a fast limit
/// to microseconds. Nor is it longer than needed: sweeps wait for S, and a false debt can last H + S.
pub(crate) const fn default_skew(bits: u32, shl: u32, shr: u32, horizon_q: u64) -> u64 {
    // If a q-unit is coarser than a tick, this is an eighth of the span of the caller's clock.
    if bits == 64 && shl <= LONG_SPAN_SHL {
        return (1u64 << 61).wrapping_shr(shr);
    }
    let part = 1u64.wrapping_shl(bits.wrapping_sub(6));
    let second = ticks_to_q_up(1 << 30, shl, shr);
    max(horizon_q, if part < second { part } else { second })
}

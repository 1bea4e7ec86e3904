//! Ticks and q-units: the two scales of time, and every conversion between them.
//!
//! A tick is the unit of the caller's clock. A q-unit is `2^-s` ticks, the unit of state words: `shl` is s where it is
//! positive (finer than a tick), `shr` is -s where it is negative (coarser; `now` is floored). At least one of them is
//! 0, but for words that hold a count below their time: there `shl` is the bits of the count.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

/// Is a q-unit a tick? One comparison: both shifts are 0.
#[inline(always)]
pub(crate) const fn is_whole(shl: u8, shr: u8) -> bool {
    u16::from_ne_bytes([shl, shr]) == 0
}

/// The caller's clock in q-units, mod 2^64. A shift of 64 or more cannot be configured.
#[inline(always)]
pub(crate) const fn now_q(now: u64, shl: u8, shr: u8) -> u64 {
    if is_whole(shl, shr) {
        return now;
    }
    shifted(now, shl, shr)
}

/// As [`now_q`] without asking whether there is anything to shift.
#[inline(always)]
pub(crate) const fn shifted(now: u64, shl: u8, shr: u8) -> u64 {
    now.wrapping_shr(shr as u32).wrapping_shl(shl as u32)
}

/// Ticks after `now` at which the q-clock has advanced by `q`. `q << shr` fits: `rate::at` and `window::at` checked
/// H + S.
#[inline(always)]
pub(crate) const fn ticks_up(q: u64, now: u64, shl: u8, shr: u8) -> u64 {
    if q == 0 || is_whole(shl, shr) {
        return q;
    }
    let up = 1u64.wrapping_shl(shl as u32).wrapping_sub(1);
    let whole = q.wrapping_add(up).wrapping_shr(shl as u32).wrapping_shl(shr as u32);
    // The part of the current q-unit that has already passed.
    whole.wrapping_sub(now & 1u64.wrapping_shl(shr as u32).wrapping_sub(1))
}

/// A difference of q-units in ticks, rounded down. Any shift is taken modulo 64: a limit from C may be forged.
#[inline(always)]
pub(crate) const fn ticks_down(q: u64, shl: u8, shr: u8) -> u64 {
    q.wrapping_shr(shl as u32).wrapping_shl(shr as u32)
}

/// Ticks to q-units, rounded down; saturates at `u64::MAX`.
pub(crate) const fn ticks_to_q_down(ticks: u64, shl: u32, shr: u32) -> u64 {
    let q = ((ticks as u128) << shl) >> shr;
    if q > u64::MAX as u128 {
        u64::MAX
    } else {
        q as u64
    }
}

/// Ticks to q-units, rounded up; saturates at `u64::MAX`.
pub(crate) const fn ticks_to_q_up(ticks: u64, shl: u32, shr: u32) -> u64 {
    let part = (1u128 << shr).wrapping_sub(1);
    let q = ((ticks as u128) << shl).wrapping_add(part) >> shr;
    if q > u64::MAX as u128 {
        u64::MAX
    } else {
        q as u64
    }
}

/// `num / den` rounded up; saturates where `den` is 0, so that no division can panic.
pub(crate) const fn ceil_div(num: u128, den: u128) -> u128 {
    match num.checked_div(den) {
        Some(q) if q.wrapping_mul(den) == num => q,
        Some(q) => q.wrapping_add(1),
        None => u128::MAX,
    }
}

pub(crate) const fn max(a: u64, b: u64) -> u64 {
    if a > b {
        a
    } else {
        b
    }
}

/// Ticks in whole seconds of a clock with this frequency, rounded up; without a frequency `u64::MAX`.
pub(crate) const fn seconds_up(ticks: u64, ticks_per_second: u64) -> u64 {
    match (ticks.checked_div(ticks_per_second), ticks.checked_rem(ticks_per_second)) {
        (Some(whole), Some(0)) => whole,
        // A rest needs a divisor of 2 or more, so there is room for one more.
        (Some(whole), Some(_)) => whole.wrapping_add(1),
        _ => u64::MAX,
    }
}

//! Ticks and q-units: the two scales of time, and every conversion between them.
//!
//! A tick is the unit of the caller's clock. A q-unit is the unit of state words: `2^-s` ticks. If `s` is positive
//! (finer than a tick), `shl` is `s`. If it is negative, `shr` is `-s`, and `now` is rounded down. So one of the two is
//! 0, except in words that keep a count below their time: there `shl` is the bits of the count.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

/// Returns whether a q-unit is one tick, that is, whether both shifts are 0. Costs one comparison.
#[inline(always)]
pub(crate) const fn is_whole(shl: u8, shr: u8) -> bool {
    u16::from_ne_bytes([shl, shr]) == 0
}

/// Converts the caller's clock to q-units, mod 2^64. No valid limit has a shift of 64 or more.
#[inline(always)]
pub(crate) const fn now_q(now: u64, shl: u8, shr: u8) -> u64 {
    if is_whole(shl, shr) {
        return now;
    }
    shifted(now, shl, shr)
}

/// Converts the caller's clock to q-units like [`now_q`], but always shifts.
#[inline(always)]
pub(crate) const fn shifted(now: u64, shl: u8, shr: u8) -> u64 {
    now.wrapping_shr(shr as u32).wrapping_shl(shl as u32)
}

/// Returns the ticks after `now` at which the q-clock has advanced by `q`, rounded up. `q << shr` cannot overflow,
/// because `rate::at` and `window::at` have checked H + S.
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

/// Converts a difference of q-units to ticks, rounded down. Shifts count mod 64: a limit from C may be forged.
#[inline(always)]
pub(crate) const fn ticks_down(q: u64, shl: u8, shr: u8) -> u64 {
    q.wrapping_shr(shl as u32).wrapping_shl(shr as u32)
}

/// Converts ticks to q-units, rounded down; saturates at `u64::MAX`.
pub(crate) const fn ticks_to_q_down(ticks: u64, shl: u32, shr: u32) -> u64 {
    let q = ((ticks as u128) << shl) >> shr;
    if q > u64::MAX as u128 {
        u64::MAX
    } else {
        q as u64
    }
}

/// Converts ticks to q-units, rounded up; saturates at `u64::MAX`.
pub(crate) const fn ticks_to_q_up(ticks: u64, shl: u32, shr: u32) -> u64 {
    let part = (1u128 << shr).wrapping_sub(1);
    let q = ((ticks as u128) << shl).wrapping_add(part) >> shr;
    if q > u64::MAX as u128 {
        u64::MAX
    } else {
        q as u64
    }
}

/// Returns `num / den`, rounded up. Returns `u128::MAX` if `den` is 0, so that no division can panic.
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

/// Converts ticks to whole seconds of a clock with this frequency, rounded up; `u64::MAX` if that is 0.
pub(crate) const fn seconds_up(ticks: u64, ticks_per_second: u64) -> u64 {
    match (ticks.checked_div(ticks_per_second), ticks.checked_rem(ticks_per_second)) {
        (Some(whole), Some(0)) => whole,
        // A remainder needs a divisor of at least 2, so `whole` is at most half of `u64::MAX`.
        (Some(whole), Some(_)) => whole.wrapping_add(1),
        _ => u64::MAX,
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_division_by_nothing_is_the_most_there_is() {
        assert_eq!([ceil_div(1, 0), ceil_div(0, 0)], [u128::MAX; 2]);
        assert_eq!([(0, 3), (1, 3), (3, 3), (4, 3)].map(|(n, d)| ceil_div(n, d)), [0, 1, 1, 2]);
        assert_eq!([seconds_up(1, 0), seconds_up(0, 0)], [u64::MAX; 2]);
        assert_eq!(
            [(0, 5), (1, 5), (5, 5), (6, 5), (7, 1)].map(|(t, hz)| seconds_up(t, hz)),
            [0, 1, 1, 2, 7]
        );
        assert_eq!(seconds_up(u64::MAX, 2), 1 << 63);
    }

    #[test]
    fn ticks_become_units_and_units_ticks_with_the_rounding_that_is_asked() {
        assert_eq!([0, 1, 7, 8, 9].map(|t| ticks_to_q_down(t, 0, 3)), [0, 0, 0, 1, 1]);
        assert_eq!([0, 1, 7, 8, 9].map(|t| ticks_to_q_up(t, 0, 3)), [0, 1, 1, 1, 2]);
        assert_eq!([ticks_to_q_down(5, 2, 0), ticks_to_q_up(5, 2, 0)], [20; 2]);
        assert_eq!([ticks_to_q_down(5, 1, 2), ticks_to_q_up(5, 1, 2)], [2, 3]);
        assert_eq!([ticks_to_q_down(u64::MAX, 1, 0), ticks_to_q_up(u64::MAX, 1, 0)], [u64::MAX; 2]);
        assert_eq!([ticks_to_q_down(u64::MAX, 0, 0), ticks_to_q_up(u64::MAX, 0, 0)], [u64::MAX; 2]);
        assert_eq!([ticks_to_q_down(1 << 63, 1, 1), ticks_to_q_up(1 << 63, 1, 1)], [1 << 63; 2]);
        assert_eq!([max(1, 2), max(2, 1), max(2, 2)], [2; 3]);
    }
}

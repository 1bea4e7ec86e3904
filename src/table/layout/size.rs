//! How large a table must be, from the chance that a new key finds its set full.
//!
//! A key that sends one unit occupies a slot for one emission interval, so the load is alpha = (new keys per second) *
//! T / slots. A set of 16 slots is a loss system: Erlang B with 16 servers and 16 * alpha erlangs is the chance that a
//! new key finds it full: 4e-6 at 0.25, 5e-3 at 0.5, 2 % at 0.6. Integers only: 2^-32 resolution, no floating point.

use super::image::lines_for;

/// Returns the chance, in billionths, that a new key finds its set full at a load of `alpha_ppm` millionths.
///
/// Source: Erlang B by its recursion B(n) = aB(n-1) / (n + aB(n-1)), checked against the closed form in the tests.
///
/// ```
/// use tatcell::full_set_ppb;
/// assert!((3_000..5_000).contains(&full_set_ppb(250_000))); // a quarter of the slots in use: 4 in a million
/// ```
pub const fn full_set_ppb(alpha_ppm: u64) -> u64 {
    let alpha_ppm = if alpha_ppm > 1_000_000_000 { 1_000_000_000 } else { alpha_ppm };
    // Offered load of a set, 32.32 fixed point.
    let offered = (16u128 * alpha_ppm as u128 * (1 << 32)) / 1_000_000;
    // offered < 2^46, so ab < 2^62 and every product below 2^128.
    let one = 1u128 << 48;
    let mut blocked = one;
    let mut n = 1u128;
    while n <= 16 {
        let ab = (offered * blocked) >> 32;
        blocked = ab * one / (n * one + ab);
        n += 1;
    }
    ((blocked * 1_000_000_000 + one / 2) >> 48) as u64
}

/// Returns the lines of memory (header included) with which a new key finds its set full with a chance of at most
/// `target_ppb` billionths, while `slots_busy` keys hold a slot.
///
/// `slots_busy` is the number of new keys per second times the seconds each stays in debt (one emission interval for a
/// key that sends one unit), plus the keys that are always in debt. A line has 64 bytes. 0 if no table is large enough.
///
/// ```
/// use tatcell::{lines_for_load, Line};
/// let lines = lines_for_load(100_000, 1_000); // one in a million
/// assert_eq!(lines * size_of::<Line>() / 100_000, 35); // bytes a key
/// ```
pub const fn lines_for_load(slots_busy: u64, target_ppb: u64) -> usize {
    // Bisection for the largest load that meets the target: the chance grows with the load.
    let (mut low, mut high) = (0u64, 4_000_000u64);
    while low + 1 < high {
        let mid = (low + high) / 2;
        if full_set_ppb(mid) <= target_ppb {
            low = mid;
        } else {
            high = mid;
        }
    }
    if low == 0 {
        return 0;
    }
    let slots = (slots_busy as u128 * 1_000_000).div_ceil(low as u128);
    if slots > 1 << 34 || slots > usize::MAX as u128 / 16 {
        return 0;
    }
    lines_for(slots as usize)
}

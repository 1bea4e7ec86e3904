//! Computes the numbers of a small limit without a division. The compiler does it for constants; the code is small
//! enough for a device that learns its limits at run time.
//!
//! ```text
//!  period / units, one bit per step:  64 steps  [ whole ticks of T : 64 ]
//!                                 and s steps more  [ fraction : s ]         until T_q has 10 or 16 bits
//! ```
//!
//! The fraction takes the same steps as the quotient, so one loop gives both resolution and emission interval. The
//! results are those of [`LimitSpec`](crate::LimitSpec) for a limit whose only option is a delay. The tests compare
//! them with those and with the macros of `tatcell_small.h`. On a Cortex-M0 this takes a tenth of the code.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::limit::LimitError;

/// A limit in q-units of 2^-shift ticks; see [`SmallLimit`](super::SmallLimit).
pub(super) struct Numbers {
    pub t: u64,
    pub limit: u64,
    pub window: u64,
    pub delay: u64,
    pub shift: u32,
}

/// The finest q-unit: 2^-31 ticks.
const FINEST: u32 = 31;

/// Returns the numbers for words of `BITS` bits, 32 or 64.
///
/// 64: at least 2^16 q-units a unit, products below 2^62. 32: whole ticks where a unit takes a whole number of them,
/// else at least 2^10 q-units a unit; the horizon below 2^30.
#[inline(always)]
pub(super) const fn numbers<const BITS: u32>(
    units: u64,
    period: u64,
    burst: u64,
    max_delay: u64,
) -> Result<Numbers, LimitError> {
    if units == 0 {
        return Err(LimitError::ZeroRate);
    }
    if period == 0 {
        return Err(LimitError::ZeroPeriod);
    }
    if burst == 0 {
        return Err(LimitError::ZeroBurst);
    }
    let narrow = BITS == 32;
    let coarsest = if narrow { 1 << 10 } else { 1 << 16 };
    let (mut quotient, mut rest, mut steps) = (period, 0u64, 0u32);
    let (t, shift) = loop {
        if steps >= 64 {
            let shift = steps.wrapping_sub(64);
            // A remainder needs two units or more, so the quotient is below 2^63.
            let t = quotient.wrapping_add((rest != 0) as u64);
            if t >= coarsest || (narrow && shift == 0 && rest == 0) {
                break (t, shift);
            }
            if shift == FINEST {
                return Err(LimitError::NotRepresentable);
            }
        }
        // Moves one bit of the dividend into the rest, and one bit of the quotient out of it. The rest is below
        // `units`, so twice the rest less `units` fits, even if twice the rest does not.
        let carried = rest >> 63 != 0;
        rest = rest << 1 | quotient >> 63;
        quotient <<= 1;
        if carried || rest >= units {
            rest = rest.wrapping_sub(units);
            quotient |= 1;
        }
        steps = steps.wrapping_add(1);
    };
    let too_long = if narrow { LimitError::HorizonTooLong } else { LimitError::NotRepresentable };
    let Some(limit) = product::<BITS>(t, burst) else { return Err(too_long) };
    let Some(delay) = product::<BITS>(max_delay, (1u32 << shift) as u64) else {
        return Err(LimitError::HorizonTooLong);
    };
    // Both are below 2^62.
    let horizon = limit.wrapping_add(delay);
    let least = if narrow {
        1 << 26
    } else if shift <= 9 {
        1 << 61
    } else if shift >= 28 {
        1 << 58
    } else {
        // 2^(30 + shift), above the low half.
        ((1u32 << shift.wrapping_sub(2)) as u64) << 32
    };
    // With up to nine bits of fraction a 64-bit word has room for years, and the skew need not grow with the burst.
    let skew = if horizon > least && (narrow || shift > 9) { horizon } else { least };
    // A horizon is below 2^63, and so is a skew.
    let window = horizon.wrapping_add(skew);
    if window >> (if narrow { 31 } else { 63 }) != 0 {
        return Err(LimitError::HorizonTooLong);
    }
    Ok(Numbers { t, limit, window, delay, shift })
}

/// `a * b` where it is below 2^62 (`BITS` 64) or 2^30 (32), by shifts and additions: a Cortex-M0 would call a function
/// of the compiler's for the product.
#[inline(never)]
const fn product<const BITS: u32>(mut a: u64, mut b: u64) -> Option<u64> {
    let bits = if BITS == 32 { 30 } else { 62 };
    let mut sum = 0u64;
    while b != 0 {
        if a >> bits != 0 {
            return None;
        }
        if b & 1 != 0 {
            // Both are below 2^62.
            sum = sum.wrapping_add(a);
            if sum >> bits != 0 {
                return None;
            }
        }
        a <<= 1;
        b >>= 1;
    }
    Some(sum)
}

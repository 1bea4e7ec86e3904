//! The numbers of a validated meter: its word, its times in ticks, and what rounding costs.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::params::{Bucket, MeterParams, FLAG_COUPLED};
use super::spec::MeterKind;

/// Reports the numbers of a validated meter.
///
/// ```
/// use tatcell::MeterSpec;
/// let info = MeterSpec::rfc2697(1_000, 100, 50, 1_000).build()?.info(); // 1000 bytes a second, milliseconds
/// assert_eq!((info.cir, info.cbs, info.burst2), (1_000, 100, 50));
/// # Ok::<(), tatcell::MeterError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MeterInfo {
    /// The standard that it marks by; RFC 2697 for a coupled meter without an excess rate.
    pub kind: MeterKind,
    /// Whether, in an RFC 4115 meter, overflow of the committed burst fills the excess burst.
    pub coupled: bool,
    /// The committed rate in units per second, as asked for.
    pub cir: u64,
    /// The committed burst in units, as asked for.
    pub cbs: u64,
    /// Peak or excess rate; 0 for RFC 2697.
    pub rate2: u64,
    /// Peak or excess burst.
    pub burst2: u64,
    /// The frequency of the clock in ticks per second, as given.
    pub tick_hz: u64,
    /// W, the bits of the word that hold the later time; the others hold the difference.
    pub word_bits: u32,
    /// One q-unit is 2^-resolution ticks.
    pub resolution: i32,
    /// (m, k): a unit of the committed rate takes m / 2^k q-units; (0, 0) for a rate of 0.
    pub committed_emission: (u64, u32),
    /// (m, k): a unit of the second rate takes m / 2^k q-units; (0, 0) for a rate of 0.
    pub second_emission: (u64, u32),
    /// H, the longest debt that a store can make, in ticks. Without a rate no debt drains: `u64::MAX`, as the others.
    pub horizon: u64,
    /// S, how far the clock may step back, in ticks.
    pub skew: u64,
    /// Ticks after which an untouched word may read as a debt again, for at most H + S.
    pub span: u64,
    /// Ticks within which an idle word needs one [`sweep`](crate::Meter::sweep).
    pub sweep_interval: u64,
    /// The most by which a charge of the committed bucket is rounded up: one q-unit, in billionths of a unit. 0 if a
    /// unit takes a whole number of q-units.
    pub committed_rounding_ppb: u64,
    /// The same for the second bucket.
    pub second_rounding_ppb: u64,
}

impl MeterInfo {
    pub(super) const fn of(p: &MeterParams) -> MeterInfo {
        MeterInfo {
            kind: match p.kind {
                2697 => MeterKind::Rfc2697,
                2698 => MeterKind::Rfc2698,
                _ => MeterKind::Rfc4115,
            },
            coupled: p.flags & FLAG_COUPLED != 0,
            cir: p.cir,
            cbs: p.committed.burst,
            rate2: p.rate2,
            burst2: p.second.burst,
            tick_hz: p.tick_hz,
            word_bits: 64u32.wrapping_sub(p.diff_bits as u32),
            resolution: (p.shl as i32).wrapping_sub(p.shr as i32),
            committed_emission: emission(&p.committed, p.cir),
            second_emission: emission(&p.second, if p.kind == 2697 { p.cir } else { p.rate2 }),
            horizon: p.ticks_up(p.horizon_q),
            skew: p.ticks_up(p.skew_q()),
            span: p.span(),
            sweep_interval: p.sweep_interval(),
            committed_rounding_ppb: rounding_ppb(&p.committed),
            second_rounding_ppb: rounding_ppb(&p.second),
        }
    }
}

/// (M, k) of a bucket that this rate fills.
const fn emission(bucket: &Bucket, rate: u64) -> (u64, u32) {
    if rate == 0 {
        return (0, 0);
    }
    (bucket.m, bucket.k as u32)
}

/// 10^9 * 2^k / M, rounded up.
const fn rounding_ppb(bucket: &Bucket) -> u64 {
    if bucket.add == 0 {
        return 0;
    }
    let ppb =
        1_000_000_000u128.wrapping_shl(bucket.k as u32).div_ceil(bucket.m as u128 | (bucket.m == 0) as u128);
    if ppb > u64::MAX as u128 {
        u64::MAX
    } else {
        ppb as u64
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    /// T is at least one q-unit, so M is at least 2^k; only forged numbers saturate.
    #[test]
    fn a_rounding_is_one_q_unit_of_the_interval_and_saturates() {
        let bucket = |m, k| Bucket { burst: 1, m, add: 1, k };
        assert_eq!(rounding_ppb(&bucket(1 << 40, 40)), 1_000_000_000);
        assert_eq!(rounding_ppb(&bucket(3 << 40, 40)), 333_333_334);
        assert_eq!(rounding_ppb(&bucket(1, 40)), u64::MAX);
        assert_eq!(rounding_ppb(&bucket(0, 40)), u64::MAX);
        assert_eq!(rounding_ppb(&Bucket { add: 0, ..bucket(1, 40) }), 0);
    }
}

//! The fixed-point form of a meter: the numbers that a step needs, with every division already done.
//!
//! ```text
//! q-unit     2^-s ticks, as for limits: the finest that gives the word its span and the faster rate a T below 2^11
//! T          q-units that one unit takes at a rate: tick_hz * 2^s / rate, a rational
//! M, k       M = ceil(T * 2^k); k is the largest number up to 40 with B * M + 2^k < 2^62
//! A          makes the charge (n * M + A) >> k round up: to exactly ceil(n * T) if B is small enough, see `Scale`
//! room(n)    ((B - n) * M) >> k: the most debt that leaves room for n units
//! He, Hc     ceil(B * M / 2^k): the debt of a whole burst
//! b          bits of the word's difference: bits(He) for RFC 2697, else bits(Hc + He). At most 44
//! bias       the stored form of a difference of 0: 0 for RFC 2697, else Hc
//! H          the longest debt: Hc + He for RFC 2697, else the larger one
//! counts     a bucket that no rate fills: a unit is a q-unit, the debt never drains. Beside a bucket that drains it is
//!            the word's difference, bias 0; where no rate is above 0, the clock stands still (shl = shr = 63)
//! S          skew; the default is max(H, 2^W / 64), W = 64 - b, at most 2^61 ticks
//! ```
//!
//! A charge is rounded up, but its test is exact. If T is a fraction of a q-unit, a test of the rounded charge against
//! a rounded burst would admit up to one q-unit more than the burst.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::spec::{MeterError, MeterKind, MeterSpec};
use crate::time::{self, ticks_to_q_up};

/// The fingerprint of parameters of this layout of [`MeterParams`]; its low bits count up whenever that changes.
pub(crate) const FINGERPRINT_METER: u64 = 0x7c6d_6574_6572_0002;

/// [`MeterParams::flags`]: overflow of the committed bucket fills the second one.
pub(crate) const FLAG_COUPLED: u8 = 1;
/// No rate fills the committed bucket, but one the second bucket: the difference is what it has given.
pub(crate) const FLAG_COUNTS_COMMITTED: u8 = 2;
/// No rate fills the second bucket, but one the committed bucket: the difference is what it has given.
pub(crate) const FLAG_COUNTS_SECOND: u8 = 4;

/// The most bits of a word's difference: that leaves 20 for the time.
const MAX_DIFF_BITS: u32 = 44;
/// The most fractional bits of M.
const MAX_K: u32 = 40;
/// log2 of the upper bound of the faster rate's emission interval, in q-units.
const FINEST: u32 = 11;
/// The default span in seconds.
const DEFAULT_SPAN: u64 = 8;

/// One bucket: a burst, and the time that each unit of it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Bucket {
    /// B, in units.
    pub burst: u64,
    /// M.
    pub m: u64,
    /// A.
    pub add: u64,
    /// k.
    pub k: u64,
}

impl Bucket {
    /// A bucket that no rate fills: it counts units.
    const fn counting(burst: u64) -> Bucket {
        Bucket { burst, m: 1, add: 0, k: 0 }
    }

    /// Returns the most debt that leaves room for `cost` units; `None` if the cost is above the burst.
    ///
    /// This cannot overflow: B * M is below 2^62.
    #[inline(always)]
    pub const fn room(&self, cost: u64) -> Option<u64> {
        if cost > self.burst {
            return None;
        }
        Some(self.burst.wrapping_sub(cost).wrapping_mul(self.m).wrapping_shr(self.k as u32))
    }

    /// Returns the debt that `cost` units add. The cost must have a [`room`](Self::room): then n * M + A is below 2^62.
    #[inline(always)]
    pub const fn charge(&self, cost: u64) -> u64 {
        cost.wrapping_mul(self.m).wrapping_add(self.add).wrapping_shr(self.k as u32)
    }

    /// Returns the debt of the whole burst, rounded up.
    const fn horizon(&self) -> u64 {
        let up = 1u64.wrapping_shl(self.k as u32).wrapping_sub(1);
        self.burst.wrapping_mul(self.m).wrapping_add(up).wrapping_shr(self.k as u32)
    }
}

/// The parameters of a meter in q-units. `repr(C)`: the C ABI's opaque parameters hold this structure as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct MeterParams {
    /// [`FINGERPRINT_METER`]; zeroed memory does not have it.
    pub fingerprint: u64,
    /// C.
    pub committed: Bucket,
    /// E, or P for RFC 2698. For RFC 2697 its debt is that of both buckets together.
    pub second: Bucket,
    /// H + S.
    pub window_q: u64,
    /// H.
    pub horizon_q: u64,
    /// The stored form of a difference of 0.
    pub bias: u64,
    /// Coupled: floor(2^32 * CIR / EIR), what a q-unit of overflow is worth in the second bucket.
    pub ratio: u64,
    /// The committed rate that it was made from.
    pub cir: u64,
    pub rate2: u64,
    pub tick_hz: u64,
    /// The number of a [`MeterKind`].
    pub kind: u16,
    pub flags: u8,
    /// b.
    pub diff_bits: u8,
    /// s if positive, else 0.
    pub shl: u8,
    /// -s if positive, else 0.
    pub shr: u8,
    pub reserved: [u8; 2],
}

impl MeterParams {
    /// Validates a specification and chooses its resolution.
    pub const fn build(spec: &MeterSpec) -> Result<MeterParams, MeterError> {
        if let Err(e) = spec.validate() {
            return Err(e);
        }
        let spec = spec.effective();
        let wanted = match spec.span {
            Some(ticks) => ticks,
            None => DEFAULT_SPAN.saturating_mul(spec.tick_hz),
        };
        let fastest = if spec.cir > spec.rate2 { spec.cir } else { spec.rate2 };
        if fastest == 0 {
            return MeterParams::at(&spec, 0);
        }
        // From fine to coarse: each step doubles the span of a given split of the word.
        let (mut s, mut best) = (63i32, Err(MeterError::NotRepresentable));
        while s >= -63 && is_at_least(spec.tick_hz, s, fastest) {
            if !is_at_least(spec.tick_hz, s.wrapping_sub(FINEST as i32), fastest) {
                let made = MeterParams::at(&spec, s);
                match made {
                    Ok(p) if p.span() >= wanted => return made,
                    // An error counts only until some resolution fits.
                    Err(_) if best.is_ok() => {}
                    _ => best = made,
                }
            }
            s = s.wrapping_sub(1);
        }
        match best {
            Ok(_) if spec.span.is_some() => Err(MeterError::SpanTooShort),
            coarsest => coarsest,
        }
    }

    /// Validates a specification at one resolution.
    const fn at(spec: &MeterSpec, s: i32) -> Result<MeterParams, MeterError> {
        let single = matches!(spec.kind, MeterKind::Rfc2697);
        // Nothing is ever filled: units are q-units, and the clock stands still.
        let stands = spec.cir == 0 && spec.rate2 == 0;
        let (committed, second) = if single && !stands {
            // One rate: both bursts in one scale, so that the debt of both is a sum.
            let most = if spec.cbs > spec.burst2 { spec.cbs } else { spec.burst2 };
            match Scale::of(spec.cir, most, spec.tick_hz, s) {
                Some(scale) => (scale.bucket(spec.cbs), scale.bucket(spec.burst2)),
                None => return Err(MeterError::NotRepresentable),
            }
        } else {
            match (
                Scale::bucket_of(spec.cir, spec.cbs, spec.tick_hz, s),
                Scale::bucket_of(spec.rate2, spec.burst2, spec.tick_hz, s),
            ) {
                (Some(committed), Some(second)) => (committed, second),
                _ => return Err(MeterError::NotRepresentable),
            }
        };
        // Each is below 2^62.
        let (hc, h2) = (committed.horizon(), second.horizon());
        let both = hc.wrapping_add(h2);
        let larger = if hc > h2 { hc } else { h2 };
        let (horizon_q, bias, diff_bits, mut flags) = match (spec.cir, spec.rate2) {
            _ if single => (both, 0, bits(h2), 0),
            (0, 1..) => (h2, 0, bits(hc), FLAG_COUNTS_COMMITTED),
            (1.., 0) => (hc, 0, bits(h2), FLAG_COUNTS_SECOND),
            _ => (larger, hc, bits(both), 0),
        };
        if diff_bits > MAX_DIFF_BITS {
            return Err(MeterError::NotRepresentable);
        }
        let word_bits = 64u32.wrapping_sub(diff_bits);
        let (shl, shr) = match s {
            // (now >> 63) << 63 has no bit of the word: it is shifted by b >= 1 more, or taken mod 2^W.
            _ if stands => (63, 63),
            0.. => (s as u32, 0),
            _ => (0, s.unsigned_abs()),
        };
        let skew_q = match spec.skew {
            _ if stands => 0,
            Some(ticks) => ticks_to_q_up(ticks, shl, shr),
            None => default_skew(word_bits, shr, horizon_q),
        };
        let window = (horizon_q as u128).wrapping_add(skew_q as u128);
        if window >= 1 << word_bits.wrapping_sub(1) || !stands && window << shr >= 1 << 63 {
            return Err(MeterError::HorizonTooLong);
        }
        // A tick must not go beyond the span: a word whose clock stands still, mod 2^W, would never drain.
        if !stands && window.wrapping_add(1 << shl) > 1 << word_bits {
            return Err(MeterError::HorizonTooLong);
        }
        let mut ratio = 0;
        if spec.coupled {
            flags |= FLAG_COUPLED;
            match ((spec.cir as u128) << 32).checked_div(spec.rate2 as u128) {
                Some(q) if q < 1 << 60 => ratio = q as u64,
                _ => return Err(MeterError::NotRepresentable),
            }
        }
        Ok(MeterParams {
            fingerprint: FINGERPRINT_METER,
            committed,
            second,
            window_q: window as u64,
            horizon_q,
            bias,
            ratio,
            cir: spec.cir,
            rate2: spec.rate2,
            tick_hz: spec.tick_hz,
            kind: spec.kind as u16,
            flags,
            diff_bits: diff_bits as u8,
            shl: shl as u8,
            shr: shr as u8,
            reserved: [0; 2],
        })
    }

    /// Converts the caller's clock to q-units, mod 2^64.
    #[inline(always)]
    pub const fn now_q(&self, now: u64) -> u64 {
        time::now_q(now, self.shl, self.shr)
    }

    /// Does no rate fill a bucket, so that the clock stands still?
    pub const fn stands(&self) -> bool {
        self.shl != 0 && self.shr != 0
    }

    /// q-units in ticks, rounded up; a clock that stands still has no end of them.
    pub const fn ticks_up(&self, q: u64) -> u64 {
        if self.stands() {
            return u64::MAX;
        }
        time::ticks_up(q, 0, self.shl, self.shr)
    }

    /// Returns 2^W - H - S q-units, in ticks, rounded down.
    pub const fn span(&self) -> u64 {
        self.range_less(self.window_q)
    }

    /// Returns 2^W - H - 2S q-units, in ticks, rounded down: a sweep this soon after a charge precedes any false debt.
    pub const fn sweep_interval(&self) -> u64 {
        // Below 2^W, because H + S is below half of that.
        self.range_less(self.window_q.wrapping_add(self.skew_q()))
    }

    /// Returns S.
    pub const fn skew_q(&self) -> u64 {
        self.window_q.wrapping_sub(self.horizon_q)
    }

    const fn range_less(&self, q: u64) -> u64 {
        if self.stands() {
            return u64::MAX;
        }
        let left = (1u128 << 64u32.wrapping_sub(self.diff_bits as u32)).wrapping_sub(q as u128);
        let ticks = (left >> self.shl) << self.shr;
        if ticks > u64::MAX as u128 {
            u64::MAX
        } else {
            ticks as u64
        }
    }
}

impl MeterSpec {
    /// The same meter without a coupling that has no effect: of a rate of 0, or to one.
    const fn effective(&self) -> MeterSpec {
        let mut spec = *self;
        if spec.coupled && spec.rate2 == 0 {
            (spec.kind, spec.coupled) = (MeterKind::Rfc2697, false);
        }
        if spec.cir == 0 {
            spec.coupled = false;
        }
        spec
    }
}

/// Returns the default S: a 64th of the word's range, and at least H. H alone is too short: a fast meter has a horizon
/// of microseconds, and threads often stop between reading their clock and the call.
const fn default_skew(word_bits: u32, shr: u32, horizon_q: u64) -> u64 {
    let part = 1u64.wrapping_shl(word_bits.wrapping_sub(6));
    let most = (1u64 << 61).wrapping_shr(shr);
    let part = if part < most { part } else { most };
    if horizon_q > part {
        horizon_q
    } else {
        part
    }
}

/// M, A and k of one rate.
///
/// Let T = p / q in lowest terms, and M = T * 2^k + e with 0 <= e < 1. Then n * M + A = n * T * 2^k + (n * e + A). If B
/// < floor(2^k / q), then A = ceil(2^k * (q - 1) / q) makes the shifted sum exactly ceil(n * T) for every n <= B: it
/// lifts a fraction of 1/q or more to the next whole number, and n * e + A stays below 2^k. Otherwise A = 2^k - 1 makes
/// it ceil(n * M / 2^k), the charge at a rate that is slower by less than 1 / M.
struct Scale {
    m: u64,
    add: u64,
    k: u32,
}

impl Scale {
    /// Returns the finest scale in which a burst fits, or `None`.
    const fn of(rate: u64, burst: u64, tick_hz: u64, s: i32) -> Option<Scale> {
        let mut k = MAX_K;
        loop {
            if let Some(m) = times_hz(tick_hz, s.wrapping_add(k as i32), rate) {
                let whole = (m as u128).wrapping_mul(if burst == 0 { 1 } else { burst as u128 });
                if whole.wrapping_add(1 << k) < 1 << 62 {
                    return Some(Scale { m, add: Scale::add(rate, burst, tick_hz, s, k), k });
                }
            }
            if k == 0 {
                return None;
            }
            k = k.wrapping_sub(1);
        }
    }

    const fn bucket(&self, burst: u64) -> Bucket {
        Bucket { burst, m: self.m, add: self.add, k: self.k as u64 }
    }

    /// The bucket of a rate; without one it counts.
    const fn bucket_of(rate: u64, burst: u64, tick_hz: u64, s: i32) -> Option<Bucket> {
        if rate == 0 {
            return if burst < 1 << 62 { Some(Bucket::counting(burst)) } else { None };
        }
        match Scale::of(rate, burst, tick_hz, s) {
            Some(scale) => Some(scale.bucket(burst)),
            None => None,
        }
    }

    /// Returns A.
    const fn add(rate: u64, burst: u64, tick_hz: u64, s: i32, k: u32) -> u64 {
        let all = 1u64 << k;
        // |s| <= 63, so both stay within 127 bits.
        let (num, den) = match s {
            0.. => ((tick_hz as u128) << s, rate as u128),
            _ => (tick_hz as u128, (rate as u128) << s.unsigned_abs()),
        };
        let q = match den.checked_div(gcd(num, den)) {
            Some(q) => q,
            None => return all.wrapping_sub(1),
        };
        match (all as u128).checked_div(q) {
            // q is at most 2^k here.
            Some(most) if (burst as u128) < most => {
                (all as u128).wrapping_mul(q.wrapping_sub(1)).div_ceil(q) as u64
            }
            _ => all.wrapping_sub(1),
        }
    }
}

/// Returns ceil(tick_hz * 2^e / rate), if that is below 2^62.
const fn times_hz(tick_hz: u64, e: i32, rate: u64) -> Option<u64> {
    let (num, den) = if e < 0 {
        (tick_hz as u128, (rate as u128) << e.unsigned_abs())
    } else if (tick_hz as u128).leading_zeros() > e as u32 {
        ((tick_hz as u128) << e, rate as u128)
    } else {
        // At least 2^127, divided by any rate: 2^63 or more.
        return None;
    };
    match num.checked_div(den) {
        Some(m) => {
            let m = if m.wrapping_mul(den) == num { m } else { m.wrapping_add(1) };
            if m < 1 << 62 {
                Some(m as u64)
            } else {
                None
            }
        }
        None => None,
    }
}

/// Returns whether tick_hz * 2^s is at least `rate`, so that T is at least one q-unit.
const fn is_at_least(tick_hz: u64, s: i32, rate: u64) -> bool {
    if s >= 0 {
        ((tick_hz as u128) << s) >= rate as u128
    } else if s < -63 {
        // The rate times 2^64 or more is above any frequency.
        false
    } else {
        tick_hz as u128 >= (rate as u128) << s.unsigned_abs()
    }
}

const fn gcd(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}

/// Returns the length of a number in bits; 1 for 0.
const fn bits(n: u64) -> u32 {
    let bits = 64u32.wrapping_sub(n.leading_zeros());
    if bits == 0 {
        1
    } else {
        bits
    }
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "params_tests.rs"]
mod tests;

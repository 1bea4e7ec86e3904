//! The fixed-point form of a limit: the numbers that a decision needs, with every division already done.
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
//! `rate` and `window` make the parameters and check these invariants once: `T_q >= 1`, `D < 2^62`, `H + S < 2^(W-1)`,
//! and `(H + S)` in ticks fits 64 bits. So no sum or product of a decision can overflow.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::algorithm::Algorithm;
use crate::time::{self, ticks_down};

/// Identifies this layout of [`Params`] and the kind of word that they are for. Stack garbage and the parameters of
/// another library version do not have it.
///
/// ```text
///  63           48 47                                   0
/// [ kind, layout  |  mix of four ties; cells: of zeros  ]
/// ```
pub(crate) const FINGERPRINT_CELL64: u64 = fingerprint(Kind::Cell64, [0; 4]);
pub(crate) const FINGERPRINT_CELL32: u64 = fingerprint(Kind::Cell32, [0; 4]);
/// Counts up whenever [`Params`] changes.
const PARAMS_LAYOUT: u64 = 3;

/// The kinds of words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Cell64 = 1,
    Cell32 = 2,
    Table = 3,
}

/// Returns the fingerprint of a kind; the limits of a table are also tied to four numbers of the table.
pub(crate) const fn fingerprint(kind: Kind, ties: [u64; 4]) -> u64 {
    let [a, b, c, d] = ties;
    let mixed = mix(mix(mix(mix(0, a), b), c), d);
    (0x7c00 | (kind as u64) << 4 | PARAMS_LAYOUT) << 48 | mixed >> 16
}

/// Returns whether a fingerprint is of this kind, whatever its ties.
#[allow(dead_code)] // the C layer asks
pub(crate) const fn is_of(fingerprint: u64, kind: Kind) -> bool {
    fingerprint >> 48 == self::fingerprint(kind, [0; 4]) >> 48
}

/// One round of mixing: the finaliser of SplitMix64.
pub(crate) const fn mix(state: u64, word: u64) -> u64 {
    let z = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Returns the next number of SplitMix64, for tests.
#[cfg(test)]
pub(crate) fn random(seed: &mut u64) -> u64 {
    let next = mix(*seed, 0);
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    next
}

/// Treats a word that is ahead of `now` by more than H + S as a full debt of one burst.
pub(crate) const FLAG_HEAL: u8 = 1;
/// Passes a request that would be denied, and stores nothing for it. A reservation is not held up.
pub(crate) const FLAG_SHADOW: u8 = 2;
/// Charges denied requests too.
pub(crate) const FLAG_PENALTY: u8 = 4;
/// Lets a permit drain from the moment of its charge on, whatever debt lay before it.
pub(crate) const FLAG_STRICT: u8 = 8;
/// Starts windows at fixed times.
pub(crate) const FLAG_ALIGNED: u8 = 16;
/// The algorithm is not GCRA.
pub(crate) const FLAG_COUNTED: u8 = 32;
/// A limit with any of these flags is not for the plain path of a check.
pub(crate) const FLAGS_NOT_PLAIN: u8 = FLAG_HEAL | FLAG_SHADOW | FLAG_PENALTY;

/// A limit in q-units; for algorithms other than GCRA see also `window`. `repr(C)`: the C ABI's opaque limit holds this
/// structure as it is. The fields that a plain decision reads are in the first 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Params {
    /// [`FINGERPRINT_CELL64`], [`FINGERPRINT_CELL32`] or the fingerprint of a table; zeroed memory has none of them.
    pub fingerprint: u64,
    /// T_q; 0 only if unlimited. 1 for limits that count units in windows; quota-linear: w, which is T in parts of a
    /// unit of time, `quota` of them.
    pub t_q: u64,
    /// D = burst * T_q: the debt of a whole burst, or the most that a window may count.
    pub burst_q: u64,
    /// The largest cost that [`plain`](crate::algorithms::gcra::plain) decides: B, or 0 if the limit has an option that
    /// `plain` does not know.
    pub plain: u64,
    /// H + S.
    pub window_q: u64,
    /// H.
    pub horizon_q: u64,
    /// A request that conforms above this lead is soft; `u64::MAX` = off.
    pub soft_q: u64,
    /// The caller's number, which permits carry.
    pub epoch: u32,
    /// s if positive, else 0.
    pub shl: u8,
    /// -s if positive, else 0.
    pub shr: u8,
    pub flags: u8,
    /// W: the bits of the word that hold the TAT.
    pub bits: u8,
    /// B, in units.
    pub burst: u64,
    /// Numbers of one algorithm only: see [`delay_q`](Params::delay_q), [`penalty_q`](Params::penalty_q),
    /// [`phase`](Params::phase), [`half_life`](Params::half_life), [`reciprocal`](Params::reciprocal).
    pub extra: [u64; 2],
    /// The most lead that `charge` may build, burst included.
    pub debt_q: u64,
    /// The most elastic room of a call, in units.
    pub room: u64,
    /// The rate that the limit was made from: `units` per `period` ticks.
    pub units: u64,
    pub period: u64,
    /// An [`Algorithm`]; a limit from C may hold any byte.
    pub algorithm: u8,
    pub reserved: [u8; 3],
    /// Aligned windows in a table: the units of time by which clocks may differ.
    pub guard: u32,
}

/// How to choose a resolution if the caller gives none.
#[derive(Clone, Copy)]
pub(crate) struct Width {
    /// W: the bits of the word that hold the TAT.
    pub bits: u32,
    /// T_q is at least 2^this.
    pub precision: u32,
    /// H + S < 2^(bits - this): 1 is what decoding needs, 3 keeps seven eighths of the span free of false debts.
    pub spare: u32,
    pub fingerprint: u64,
}

impl Width {
    /// A whole 64-bit word: 15.3 ppm.
    pub const CELL64: Width = Width { bits: 64, precision: 16, spare: 1, fingerprint: FINGERPRINT_CELL64 };
    /// A whole 32-bit word: 0.1 %, or no error at all where the emission interval is a whole number of ticks.
    pub const CELL32: Width = Width { bits: 32, precision: 10, spare: 1, fingerprint: FINGERPRINT_CELL32 };
}

impl Params {
    /// Makes a limit that everything conforms to.
    pub const fn unlimited(width: Width) -> Params {
        // Above every lead that a word can show, so that every word conforms.
        let far = u64::MAX >> 1;
        Params {
            t_q: 0,
            burst_q: far,
            horizon_q: far,
            window_q: far,
            soft_q: u64::MAX,
            extra: [0; 2],
            debt_q: far,
            burst: u64::MAX,
            plain: 0,
            room: 0,
            epoch: 0,
            shl: 0,
            shr: 0,
            flags: 0,
            bits: width.bits as u8,
            fingerprint: width.fingerprint,
            units: 0,
            period: 0,
            algorithm: Algorithm::Gcra as u8,
            reserved: [0; 3],
            guard: 0,
        }
    }

    /// Returns the algorithm. A byte that no valid limit has reads as GCRA.
    pub const fn algorithm(&self) -> Algorithm {
        match Algorithm::of(self.algorithm as u32) {
            Some(algorithm) => algorithm,
            None => Algorithm::Gcra,
        }
    }

    /// Returns whether the limit decides by GCRA.
    #[inline(always)]
    pub const fn is_gcra(&self) -> bool {
        !self.has(FLAG_COUNTED)
    }

    /// Returns what a refund reports: q-units as ticks, rounded down; counted units as they are.
    pub const fn credited(&self, back: u64) -> u64 {
        if self.is_gcra() {
            ticks_down(back, self.shl, self.shr)
        } else {
            back
        }
    }

    /// GCRA: returns the most lead that `reserve` may build beyond the burst.
    #[inline(always)]
    pub const fn delay_q(&self) -> u64 {
        let [delay, _] = self.extra;
        delay
    }

    /// Returns the longest delay of a reservation, in ticks, rounded up; `None` if there are no reservations.
    pub const fn max_delay(&self) -> Option<u64> {
        if self.is_gcra() {
            Some(self.ticks_up(self.delay_q(), 0))
        } else {
            None
        }
    }

    /// GCRA: returns the most lead that a denied request may build, burst included; 0 = denied requests cost nothing.
    #[inline(always)]
    pub const fn penalty_q(&self) -> u64 {
        let [_, penalty] = self.extra;
        penalty
    }

    /// Aligned windows: returns the tick at which the first of them starts, below the period.
    #[inline(always)]
    pub const fn phase(&self) -> u64 {
        let [phase, _] = self.extra;
        phase
    }

    /// Decay: returns the half-life, in units of time.
    #[inline(always)]
    pub const fn half_life(&self) -> u64 {
        let [half_life, _] = self.extra;
        half_life
    }

    /// Returns the largest number r with r * period < 2^64 (quota-linear: r * quota), for remainders without division.
    /// Decay: 2^(62 + bits of the half-life) / half-life, rounded up.
    #[inline(always)]
    pub const fn reciprocal(&self) -> u64 {
        let [_, reciprocal] = self.extra;
        reciprocal
    }

    /// Returns the mask of the count that a word keeps below its time; 0 for GCRA at any resolution.
    #[inline(always)]
    pub const fn aux_mask(&self) -> u64 {
        if self.is_gcra() {
            0
        } else {
            1u64.wrapping_shl(self.shl as u32).wrapping_sub(1)
        }
    }

    /// Converts the clock like [`now_q`](Params::now_q), but past every count that a word of this moment can hold.
    #[inline(always)]
    pub const fn clock_q(&self, now: u64) -> u64 {
        self.now_q(now) | self.aux_mask()
    }

    /// Returns whether a q-unit is one tick. GCRA only.
    #[inline(always)]
    #[allow(dead_code)] // the C layer asks
    pub const fn is_whole(&self) -> bool {
        time::is_whole(self.shl, self.shr)
    }

    /// Converts the caller's clock to q-units, mod 2^64.
    #[inline(always)]
    pub const fn now_q(&self, now: u64) -> u64 {
        time::now_q(now, self.shl, self.shr)
    }

    /// Returns the q-units from `now` until tick `from`, rounded up; 0 if that has passed.
    #[inline(always)]
    pub const fn q_until(&self, now: u64, from: u64) -> u64 {
        if from <= now {
            return 0;
        }
        // The wait counts from the start of a coarse q-unit, so add the part of it that has passed.
        let passed = now & 1u64.wrapping_shl(self.shr as u32).wrapping_sub(1);
        let ticks = from.wrapping_sub(now).saturating_add(passed);
        time::ticks_to_q_up(ticks, self.shl as u32, self.shr as u32)
    }

    /// Returns the ticks after `now` until `q` more q-units have passed, rounded up to the caller's own tick.
    #[inline(always)]
    pub const fn ticks_up(&self, q: u64, now: u64) -> u64 {
        time::ticks_up(q, now, self.shl, self.shr)
    }

    /// Returns whether the given option flag is set.
    #[inline(always)]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns 2^bits - H - S q-units, in ticks, rounded down.
    pub const fn span(&self) -> u64 {
        let q = (1u128 << self.bits).wrapping_sub(self.window_q as u128);
        let ticks = (q >> self.shl) << self.shr;
        if ticks > u64::MAX as u128 {
            u64::MAX
        } else {
            ticks as u64
        }
    }

    /// Returns the emission interval, rounded up, and the resolution, for reports: (q-units, s).
    pub const fn resolution(&self) -> (u64, i32) {
        let (t_q, shl) = match self.algorithm() {
            Algorithm::Gcra => (self.t_q, self.shl as i32),
            // All aux bits but one, the mode, are a fraction of time.
            Algorithm::QuotaLinear => {
                let bits = (self.shl as u32).wrapping_sub(1);
                let fine = (self.t_q as u128).wrapping_shl(bits);
                (time::ceil_div(fine, self.units as u128) as u64, bits as i32)
            }
            _ => (self.t_q, 0),
        };
        (t_q, shl.wrapping_sub(self.shr as i32))
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_mixed_by_splitmix64() {
        for (word, expected) in [(0, 0xe220_a839_7b1d_cdaf), (1_234_567, 6_457_827_717_110_365_317)] {
            assert_eq!(mix(0, word), expected);
            assert_eq!(mix(word, 0), expected);
        }
        assert_eq!(mix(0, 0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
    }
}

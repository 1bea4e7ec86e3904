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
//! Invariants, checked once where they are made (`rate`, `window`): `T_q >= 1`, `D < 2^62`, `H + S < 2^(W-1)`, and
//! `(H + S)` in ticks fits 64 bits. They are why no sum or product of a decision can overflow.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::algorithm::Algorithm;
use crate::time;

/// Says that parameters have this layout of [`Params`], and for what sort of word they are: neither stack garbage nor
/// the parameters of another library version have it.
///
/// ```text
///  63           48 47                                   0
/// [ kind, layout  |  ties of a table, mixed; 0 for cells ]
/// ```
pub(crate) const FINGERPRINT_CELL64: u64 = fingerprint(Kind::Cell64, [0; 4]);
pub(crate) const FINGERPRINT_CELL32: u64 = fingerprint(Kind::Cell32, [0; 4]);
/// Counts up whenever [`Params`] changes.
const PARAMS_LAYOUT: u64 = 3;

/// A sort of word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Cell64 = 1,
    Cell32 = 2,
    Table = 3,
}

/// The fingerprint of a kind, and for a table of what its limits are tied to.
pub(crate) const fn fingerprint(kind: Kind, ties: [u64; 4]) -> u64 {
    let [a, b, c, d] = ties;
    let mixed = mix(mix(mix(mix(0, a), b), c), d);
    (0x7c00 | (kind as u64) << 4 | PARAMS_LAYOUT) << 48 | mixed >> 16
}

/// Is this a fingerprint of that kind, whatever it is tied to?
#[allow(dead_code)] // the C layer asks
pub(crate) const fn is_of(fingerprint: u64, kind: Kind) -> bool {
    fingerprint >> 48 == self::fingerprint(kind, [0; 4]) >> 48
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
/// Windows start at fixed times.
pub(crate) const FLAG_ALIGNED: u8 = 16;
/// Another algorithm than GCRA.
pub(crate) const FLAG_COUNTED: u8 = 32;
/// Any of these keeps a limit off the plain path of a check.
pub(crate) const FLAGS_NOT_PLAIN: u8 = FLAG_HEAL | FLAG_SHADOW | FLAG_PENALTY;

/// A limit in q-units; for other algorithms than GCRA see also `window`. `repr(C)`: it is stored as it is inside the C
/// ABI's opaque limit. What a plain decision reads stands in the first 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Params {
    /// [`FINGERPRINT_CELL64`], [`FINGERPRINT_CELL32`] or the fingerprint of a table; zeroed memory has none of them.
    pub fingerprint: u64,
    /// T_q; 0 only when unlimited. What counts units in windows has 1 here, and quota-linear its T in 2^-b of one.
    pub t_q: u64,
    /// D = burst * T_q: the debt of a whole burst; what a window may count.
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
    /// What one algorithm alone has: see [`delay_q`](Params::delay_q), [`penalty_q`](Params::penalty_q),
    /// [`phase`](Params::phase), [`half_life`](Params::half_life), [`reciprocal`](Params::reciprocal).
    pub extra: [u64; 2],
    /// Most lead that `charge` may build, burst included.
    pub debt_q: u64,
    /// Most elastic room of a call, in units.
    pub room: u64,
    /// What the limit was made from: units per period ticks.
    pub units: u64,
    pub period: u64,
    /// An [`Algorithm`]; a limit from C may hold any byte.
    pub algorithm: u8,
    pub reserved: [u8; 3],
    /// Aligned windows in a table: by so many units of time clocks may differ.
    pub guard: u32,
}

/// How the resolution is chosen when the caller does not give one.
#[derive(Clone, Copy)]
pub(crate) struct Width {
    /// W: bits of the word that hold the TAT.
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

    /// Which algorithm; what no limit of ours says is read as GCRA.
    pub const fn algorithm(&self) -> Algorithm {
        match Algorithm::of(self.algorithm as u32) {
            Some(algorithm) => algorithm,
            None => Algorithm::Gcra,
        }
    }

    /// Does it decide by GCRA?
    #[inline(always)]
    pub const fn is_gcra(&self) -> bool {
        !self.has(FLAG_COUNTED)
    }

    /// GCRA: most lead that `reserve` may build beyond the burst.
    #[inline(always)]
    pub const fn delay_q(&self) -> u64 {
        let [delay, _] = self.extra;
        delay
    }

    /// The longest delay of a reservation, in ticks rounded up; None where there are none.
    pub const fn max_delay(&self) -> Option<u64> {
        if self.is_gcra() {
            Some(self.ticks_up(self.delay_q(), 0))
        } else {
            None
        }
    }

    /// GCRA: most lead that a denied request may build, burst included; 0 = denied requests cost nothing.
    #[inline(always)]
    pub const fn penalty_q(&self) -> u64 {
        let [_, penalty] = self.extra;
        penalty
    }

    /// Aligned windows: the tick at which one of them starts, below the period.
    #[inline(always)]
    pub const fn phase(&self) -> u64 {
        let [phase, _] = self.extra;
        phase
    }

    /// Decay: the half-life, in units of time.
    #[inline(always)]
    pub const fn half_life(&self) -> u64 {
        let [half_life, _] = self.extra;
        half_life
    }

    /// The largest number r with r * period < 2^64, for remainders without a division. Decay: 2^(62 + bits of the
    /// half-life) / half-life, rounded up.
    #[inline(always)]
    pub const fn reciprocal(&self) -> u64 {
        let [_, reciprocal] = self.extra;
        reciprocal
    }

    /// What a word counts beside its time: all its bits set. 0 for GCRA, whatever its resolution.
    #[inline(always)]
    pub const fn aux_mask(&self) -> u64 {
        if self.is_gcra() {
            0
        } else {
            1u64.wrapping_shl(self.shl as u32).wrapping_sub(1)
        }
    }

    /// As [`now_q`](Params::now_q) for words of any algorithm: after every count that a word of this moment can hold.
    #[inline(always)]
    pub const fn clock_q(&self, now: u64) -> u64 {
        self.now_q(now) | self.aux_mask()
    }

    /// Is a q-unit a tick? GCRA only.
    #[inline(always)]
    #[allow(dead_code)] // the C layer asks
    pub const fn is_whole(&self) -> bool {
        time::is_whole(self.shl, self.shr)
    }

    /// The caller's clock in q-units, mod 2^64.
    #[inline(always)]
    pub const fn now_q(&self, now: u64) -> u64 {
        time::now_q(now, self.shl, self.shr)
    }

    /// The q-units from `now` until tick `from`, rounded up; 0 where that has passed.
    #[inline(always)]
    pub const fn q_until(&self, now: u64, from: u64) -> u64 {
        if from <= now {
            return 0;
        }
        // Of a coarse q-unit, the part that has passed at now counts again.
        let passed = now & 1u64.wrapping_shl(self.shr as u32).wrapping_sub(1);
        let ticks = from.wrapping_sub(now).saturating_add(passed);
        time::ticks_to_q_up(ticks, self.shl as u32, self.shr as u32)
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
        let shl = match self.algorithm() {
            Algorithm::Gcra => self.shl as i32,
            // The fraction of a time; the mode takes the other bit.
            Algorithm::QuotaLinear => (self.shl as i32).wrapping_sub(1),
            _ => 0,
        };
        (self.t_q, shl.wrapping_sub(self.shr as i32))
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

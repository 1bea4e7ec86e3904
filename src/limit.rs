//! Rate limits: units per period of ticks, and a burst, validated once into fixed point.
//!
//! All division of the library happens here; a decision only multiplies, adds and compares. Every constructor is
//! a `const fn`, so a limit can be a `static` and a bad one fails to compile (see [`limit!`](crate::limit!)).
//!
//! `burst` is the most units that conform at one instant after idle: with `burst` 5, five requests pass at once.
//! It is 1 + tau / T in the words of ITU-T I.371. Peers differ by one here: the "burst" knobs of throttled,
//! redis-cell, Redis and nginx admit one more than they say.
//!
//! The rate is never exceeded: the emission interval is rounded up to a q-unit, so the error is at most 1 / T_q, 15
//! ppm for 64-bit cells. What cannot be represented is refused, never rounded into something else.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::params::{Params, Width, KIND_CELL32, KIND_CELL64};

/// Says why a limit cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// `units` is 0: nothing would ever conform. For no limit use `Limit::UNLIMITED`.
    ZeroRate,
    /// `period` is 0 ticks.
    ZeroPeriod,
    /// `burst` is 0: no request could ever conform.
    ZeroBurst,
    /// The rate is too fast for the resolution (less than one q-unit a unit), or burst times emission interval
    /// does not fit: choose another resolution, a slower clock or a smaller burst.
    NotRepresentable,
    /// Burst, room, delay, debt, penalty and skew together do not fit the word: choose a coarser resolution, a
    /// slower clock, a smaller allowance or a wider word.
    HorizonTooLong,
    /// The resolution is outside -63..=63.
    BadResolution,
    /// The soft threshold is above the burst.
    BadSoft,
    /// `heal` is for 64-bit cells whose span exceeds a year: in shorter ones it would turn idle keys into debtors.
    BadHeal,
    /// A small limit has no option but a delay.
    NotSmall,
}

impl core::fmt::Display for LimitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            LimitError::ZeroRate => "rate is zero",
            LimitError::ZeroPeriod => "period is zero",
            LimitError::ZeroBurst => "burst is zero",
            LimitError::NotRepresentable => "rate or burst cannot be represented at this resolution",
            LimitError::HorizonTooLong => "burst and allowances are too long for the word",
            LimitError::BadResolution => "resolution is outside -63..=63",
            LimitError::BadSoft => "soft threshold is above the burst",
            LimitError::BadHeal => "heal needs a 64-bit cell with a span of more than a year",
            LimitError::NotSmall => "a small limit has no option but a delay",
        })
    }
}

impl core::error::Error for LimitError {}

/// Describes a limit with all its options, before it is validated for a word.
///
/// The plain limit is [`Limit::new`]; this is for the rest. Each option that needs room above the burst (elastic
/// room, delay, debt, penalty) lengthens the horizon H of the limit by the largest of them.
///
/// ```
/// use tatcell::LimitSpec;
/// // 100 packets a second, 50 at once, ticks are nanoseconds; warn above 40; shape up to 20 ms.
/// let limit = LimitSpec::new(100, 1_000_000_000, 50).soft(40).max_delay(20_000_000).build().unwrap();
/// # let _ = limit;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSpec {
    pub(crate) units: u64,
    pub(crate) period: u64,
    pub(crate) burst: u64,
    pub(crate) soft: u64,
    pub(crate) max_room: u64,
    pub(crate) max_delay: u64,
    pub(crate) max_debt: u64,
    pub(crate) penalty: u64,
    pub(crate) skew: Option<u64>,
    pub(crate) shift: Option<i8>,
    pub(crate) epoch: u32,
    pub(crate) heal: bool,
    pub(crate) shadow: bool,
    pub(crate) strict_refunds: bool,
}

impl LimitSpec {
    /// Starts a specification: `units` per `period` ticks, at most `burst` units at one instant after idle.
    pub const fn new(units: u64, period: u64, burst: u64) -> LimitSpec {
        LimitSpec {
            units,
            period,
            burst,
            soft: 0,
            max_room: 0,
            max_delay: 0,
            max_debt: 0,
            penalty: 0,
            skew: None,
            shift: None,
            epoch: 0,
            heal: false,
            shadow: false,
            strict_refunds: false,
        }
    }

    /// Flags conforming decisions whose debt is above this many units ([`Decision::SOFT`](crate::Decision::SOFT)).
    pub const fn soft(mut self, units: u64) -> Self {
        self.soft = units;
        self
    }

    /// Allows calls to ask for up to this many units of elastic room above the burst.
    pub const fn max_room(mut self, units: u64) -> Self {
        self.max_room = units;
        self
    }

    /// Lets `reserve` promise departures up to this many ticks away.
    pub const fn max_delay(mut self, ticks: u64) -> Self {
        self.max_delay = ticks;
        self
    }

    /// Lets `charge` build a debt of up to this many units above the burst.
    pub const fn max_debt(mut self, units: u64) -> Self {
        self.max_debt = units;
        self
    }

    /// Charges denied requests too, until the debt is this many units above the burst.
    ///
    /// The floor keeps one client from locking itself out for ever. With 1 and unit costs this is the penalty of
    /// Finch's linear limiter: at most one cost beyond full.
    pub const fn penalty(mut self, units: u64) -> Self {
        self.penalty = units;
        self
    }

    /// Tolerates a clock that steps back by up to this many ticks (default: an eighth of the span where that is
    /// long, otherwise the horizon). A longer step forgives the debt of the word. A thread that is stopped between
    /// reading its clock and calling counts as such a step: for fast limits, whose horizon is microseconds, give the
    /// longest time a thread may be stopped.
    pub const fn skew(mut self, ticks: u64) -> Self {
        self.skew = Some(ticks);
        self
    }

    /// Fixes the resolution: one q-unit is `2^-shift` ticks; negative is coarser than the clock.
    ///
    /// Limits that are exchanged for one another under traffic must have the same resolution. With a negative one the
    /// caller's clock itself must not wrap: 64 bits of nanoseconds last 584 years.
    pub const fn resolution(mut self, shift: i8) -> Self {
        self.shift = Some(shift);
        self
    }

    /// Marks permits with this number; a refund of another epoch credits nothing.
    pub const fn epoch(mut self, epoch: u32) -> Self {
        self.epoch = epoch;
        self
    }

    /// Treats a word that is impossibly far ahead of `now` (the clock was stepped back by more than the skew) as a
    /// full debt of one burst instead of forgiving it. 64-bit cells with a resolution of at most 9 only.
    pub const fn heal(mut self) -> Self {
        self.heal = true;
        self
    }

    /// Passes what would have been denied, flagged ([`Decision::SHADOW`](crate::Decision::SHADOW)) and uncharged.
    pub const fn shadow(mut self) -> Self {
        self.shadow = true;
        self
    }

    /// Makes several refunds of one key safe in any order: what a permit can give back drains from the moment of its
    /// charge on, as if no debt had lain before it.
    ///
    /// Without this a refund gives back all that has not drained, which is exact for one charge, and for several as
    /// long as the newest is refunded first. Refunded oldest first, the older refund moves the newer charge forward
    /// without its permit knowing, and the newer refund can then give back what has drained already: at most one cost
    /// a refund. Choose this where a key can have several permits outstanding and their order is not yours.
    pub const fn strict_refunds(mut self) -> Self {
        self.strict_refunds = true;
        self
    }

    /// Validates the limit for a 64-bit cell.
    ///
    /// # Errors
    /// Every [`LimitError`]; nothing is rounded into a limit that was not asked for.
    pub const fn build(&self) -> Result<Limit, LimitError> {
        match Params::build(self, Width::CELL64, self.shift) {
            Ok(p) => Ok(Limit(p)),
            Err(e) => Err(e),
        }
    }

    /// Validates the limit for a 32-bit cell.
    ///
    /// # Errors
    /// Every [`LimitError`]; horizon and skew together must stay below an eighth of the 32-bit span.
    pub const fn build32(&self) -> Result<Limit32, LimitError> {
        match Params::build(self, Width::CELL32, self.shift) {
            Ok(p) => Ok(Limit32(p)),
            Err(e) => Err(e),
        }
    }

    /// The checks that do not depend on a word.
    pub(crate) const fn validate(&self) -> Result<(), LimitError> {
        if self.units == 0 {
            Err(LimitError::ZeroRate)
        } else if self.period == 0 {
            Err(LimitError::ZeroPeriod)
        } else if self.burst == 0 {
            Err(LimitError::ZeroBurst)
        } else if self.soft > self.burst {
            Err(LimitError::BadSoft)
        } else {
            Ok(())
        }
    }
}

macro_rules! limit_type {
    ($(#[$doc:meta])* $name:ident, $kind:expr, $width:expr, $build:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(transparent)]
        pub struct $name(pub(crate) Params);

        impl $name {
            /// A limit that everything conforms to; nothing is ever charged.
            pub const UNLIMITED: $name = $name(Params::unlimited($kind));

            /// Makes a limit of `units` per `period` ticks and at most `burst` units at one instant after idle.
            ///
            /// # Errors
            /// [`LimitError`]: zero rate, period or burst, or values the word cannot represent.
            pub const fn new(units: u64, period: u64, burst: u64) -> Result<$name, LimitError> {
                LimitSpec::new(units, period, burst).$build()
            }

            /// Makes a limit from a rate in units per second and the frequency of the caller's clock.
            ///
            /// # Errors
            /// As [`new`](Self::new).
            pub const fn from_rate(
                units_per_sec: u64,
                ticks_per_sec: u64,
                burst: u64,
            ) -> Result<$name, LimitError> {
                $name::new(units_per_sec, ticks_per_sec, burst)
            }

            /// Most units at one instant after idle (`u64::MAX` when unlimited).
            pub const fn burst(&self) -> u64 {
                self.0.burst
            }

            /// The emission interval as (q-units, resolution): T = q-units * 2^-resolution ticks.
            pub const fn emission_interval(&self) -> (u64, i32) {
                self.0.resolution()
            }

            /// Ticks after which an untouched word reads as a debt again for at most H + S ticks: sweep or reset
            /// idle words at least this often where false denials of returning keys matter. Saturates.
            pub const fn span(&self) -> u64 {
                span(&self.0, $width.bits)
            }
        }
    };
}

limit_type! {
    /// A validated limit for a 64-bit [`Cell`](crate::Cell) or [`ExclusiveCell`](crate::ExclusiveCell).
    Limit, KIND_CELL64, Width::CELL64, build
}
limit_type! {
    /// A validated limit for a 32-bit [`Cell32`](crate::Cell32).
    Limit32, KIND_CELL32, Width::CELL32, build32
}

/// A validated limit in the q-unit of one keyed table; made by [`Table::limit`](crate::Table::limit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct TableLimit(pub(crate) Params);

impl TableLimit {
    /// Most units at one instant after idle (`u64::MAX` when unlimited).
    pub const fn burst(&self) -> u64 {
        self.0.burst
    }

    /// The emission interval as (q-units, resolution): T = q-units * 2^-resolution ticks.
    pub const fn emission_interval(&self) -> (u64, i32) {
        self.0.resolution()
    }
}

/// 2^bits - H - S q-units, in ticks, rounded down.
pub(crate) const fn span(p: &Params, bits: u32) -> u64 {
    let q = (1u128 << bits).wrapping_sub(p.window_q as u128);
    let ticks = (q >> p.shl) << p.shr;
    if ticks > u64::MAX as u128 {
        u64::MAX
    } else {
        ticks as u64
    }
}

/// Makes a [`Limit`] at compile time; a bad one does not compile.
///
/// ```
/// use tatcell::{limit, Limit};
/// static PER_CLIENT: Limit = limit!(10 per 1_000_000_000, burst 20); // 10 a second in nanoseconds
/// assert_eq!(PER_CLIENT.burst(), 20);
/// ```
///
/// ```compile_fail
/// static NOTHING: tatcell::Limit = tatcell::limit!(0 per 1_000, burst 1);
/// ```
#[macro_export]
macro_rules! limit {
    ($units:literal per $period:expr, burst $burst:expr) => {
        const {
            match $crate::Limit::new($units, $period, $burst) {
                Ok(limit) => limit,
                Err(_) => panic!("tatcell: this limit cannot be represented"),
            }
        }
    };
}

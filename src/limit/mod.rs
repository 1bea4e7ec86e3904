//! Rate limits: units per period of ticks, and a burst, validated once into fixed point.
//!
//! GCRA divides only here and in full answers: its other decisions multiply, add and compare. Every constructor is a
//! `const fn`, so a limit can be a `static`, and a bad one fails to compile (see [`limit!`](crate::limit!)).
//!
//! `burst` is the most units that conform at one instant after idle: with `burst` 5, five requests pass at once. In the
//! words of ITU-T I.371 it is 1 + tau / T. Other limiters count differently: throttled, redis-cell, Redis and nginx
//! admit one more than their "burst" says.
//!
//! The rate is never exceeded, because the emission interval is rounded up to a q-unit. The error is at most 1 / T_q:
//! 15 ppm for 64-bit cells. A limit that cannot be represented is refused, never rounded into another one.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

pub(crate) mod algorithm;
#[cfg(all(test, not(tatcell_loom)))]
mod border_tests;
#[cfg(all(test, not(tatcell_loom)))]
mod edge_tests;
mod error;
mod info;
pub(crate) mod meter;
mod numbers;
pub(crate) mod params;
mod parse;
pub(crate) mod rate;
mod spec;
pub(crate) mod validate;
pub(crate) mod window;

pub use algorithm::Algorithm;
pub use error::LimitError;
pub use info::LimitInfo;
pub use meter::{MeterError, MeterInfo, MeterKind, MeterLimit, MeterSpec};
pub use numbers::LimitNumbers;
pub use parse::{ParseError, ParseErrorKind};
pub use spec::LimitSpec;

use params::{Params, Width};

macro_rules! limit_type {
    ($(#[$doc:meta])* $name:ident, $width:expr, $build:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(transparent)]
        pub struct $name(pub(crate) Params);

        impl $name {
            /// The limit that every request conforms to; nothing is ever charged.
            pub const UNLIMITED: $name = $name(Params::unlimited($width));

            /// Makes a limit of `units` per `period` ticks, and at most `burst` units at one instant after idle.
            ///
            /// # Errors
            /// [`LimitError`]: zero rate, period or burst, or values that the word cannot represent.
            pub const fn new(units: u64, period: u64, burst: u64) -> Result<$name, LimitError> {
                LimitSpec::new(units, period, burst).$build()
            }

            /// Makes a limit from a rate in units per second and the frequency of the caller's clock.
            ///
            /// # Errors
            /// The same as those of [`new`](Self::new).
            pub const fn from_rate(
                units_per_sec: u64,
                ticks_per_sec: u64,
                burst: u64,
            ) -> Result<$name, LimitError> {
                $name::new(units_per_sec, ticks_per_sec, burst)
            }

            /// Returns the most units that conform at one instant after idle (`u64::MAX` if unlimited).
            pub const fn burst(&self) -> u64 {
                self.0.burst
            }

            /// Returns the longest delay of a reservation, in ticks; `None` for algorithms other than GCRA.
            pub const fn max_delay(&self) -> Option<u64> {
                self.0.max_delay()
            }

            /// Returns the emission interval as (q-units, resolution): T = q-units * 2^-resolution ticks.
            pub const fn emission_interval(&self) -> (u64, i32) {
                self.0.resolution()
            }

            /// Returns the ticks after which an untouched word reads as a debt again, for at most H + S ticks;
            /// saturates. If returning keys must not be refused falsely, sweep or reset idle words at least this often.
            pub const fn span(&self) -> u64 {
                self.0.span()
            }

            /// Returns everything about this limit, for reports. Divides.
            pub const fn info(&self) -> LimitInfo {
                LimitInfo::of(&self.0)
            }

            /// Returns the numbers that decide a request, for a program that decides by itself.
            ///
            /// # Errors
            /// [`LimitError::BadAlgorithm`]: the limit is not of GCRA, to which these numbers belong.
            pub const fn numbers(&self) -> Result<LimitNumbers, LimitError> {
                LimitNumbers::of(&self.0)
            }
        }
    };
}

limit_type! {
    /// Holds a validated limit for a 64-bit [`Cell`](crate::Cell) or [`ExclusiveCell`](crate::ExclusiveCell).
    ///
    /// ```
    /// use tatcell::{Limit, LimitError};
    /// let limit = Limit::new(10, 1_000_000_000, 20)?; // 10 a second in nanoseconds
    /// assert_eq!(limit.burst(), 20);
    /// assert_eq!(Limit::new(0, 1_000, 20), Err(LimitError::ZeroRate));
    /// # Ok::<(), LimitError>(())
    /// ```
    Limit, Width::CELL64, build
}
limit_type! {
    /// A validated limit for a 32-bit [`Cell32`](crate::Cell32).
    ///
    /// A q-unit is a tick or less, so a tick counter of 32 bits may wrap: only differences of `now` count. A q-unit of
    /// several ticks must be asked for ([`LimitSpec::resolution`]), and then the clock must not wrap.
    ///
    /// ```
    /// use tatcell::{Cell32, Limit32};
    /// let (limit, cell) = (Limit32::new(10, 1_000, 20)?, Cell32::new()); // ticks are milliseconds
    /// assert!(cell.check(&limit, 0, 20).passes() && !cell.check(&limit, 99, 1).passes());
    /// # Ok::<(), tatcell::LimitError>(())
    /// ```
    Limit32, Width::CELL32, build32
}

impl Limit {
    /// Makes a limit of at most `units` in a window of `window` ticks; see [`LimitSpec::fixed_window`].
    ///
    /// # Errors
    /// [`LimitError`]: zero units or window, or values that the word cannot represent.
    pub const fn fixed_window(units: u64, window: u64) -> Result<Limit, LimitError> {
        LimitSpec::fixed_window(units, window).build()
    }

    /// Makes a limit of about `units` in any `window` ticks; see [`LimitSpec::sliding_counter`].
    ///
    /// # Errors
    /// [`LimitError`]: zero units or window, or values that the word cannot represent.
    pub const fn sliding_counter(units: u64, window: u64) -> Result<Limit, LimitError> {
        LimitSpec::sliding_counter(units, window).build()
    }

    /// Makes a limit of `quota` in `window` ticks, and of the rate `quota / window` for keys that use it up; see
    /// [`LimitSpec::quota_linear`].
    ///
    /// # Errors
    /// [`LimitError`]: zero quota or window, or values that the word cannot represent.
    pub const fn quota_linear(quota: u64, window: u64) -> Result<Limit, LimitError> {
        LimitSpec::quota_linear(quota, window).build()
    }

    /// Makes a limit on a level that halves in every `half_life` ticks; see [`LimitSpec::decay`].
    ///
    /// # Errors
    /// [`LimitError`]: zero units or half-life, less than 100 ticks of half-life per unit, or 2^31 units or more.
    pub const fn decay(units: u64, half_life: u64) -> Result<Limit, LimitError> {
        LimitSpec::decay(units, half_life).build()
    }
}

/// Holds a validated limit in the q-unit of one keyed table; made by [`Table::limit`](crate::Table::limit).
///
/// ```
/// use tatcell::{LimitSpec, Line, Table, TableOptions};
/// let (few, many) = (LimitSpec::new(10, 1_000, 20), LimitSpec::new(100, 1_000, 200));
/// let lines = [const { Line::EMPTY }; 66];
/// let table = Table::init(&lines, &TableOptions::new(many).slowest(few).seed(*b"16 random bytes!"))?;
/// let (guest, customer) = (table.limit(&few)?, table.limit(&many)?);
/// assert!(!table.check(&guest, 0, b"192.0.2.1", 21)?.passes());
/// assert!(table.check(&customer, 0, b"192.0.2.2", 21)?.passes());
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct TableLimit(pub(crate) Params);

impl TableLimit {
    /// Returns the most units that conform at one instant after idle (`u64::MAX` if unlimited).
    pub const fn burst(&self) -> u64 {
        self.0.burst
    }

    /// Returns the longest delay of a reservation, in ticks; `None` for algorithms other than GCRA.
    pub const fn max_delay(&self) -> Option<u64> {
        self.0.max_delay()
    }

    /// Returns the emission interval as (q-units, resolution): T = q-units * 2^-resolution ticks.
    pub const fn emission_interval(&self) -> (u64, i32) {
        self.0.resolution()
    }

    /// Returns everything about this limit, for reports; skew and span are those of the table. Divides.
    pub const fn info(&self) -> LimitInfo {
        LimitInfo::of(&self.0)
    }

    /// Returns the numbers that decide a request, for a program that decides by itself.
    ///
    /// # Errors
    /// [`LimitError::BadAlgorithm`]: the limit is not of GCRA, to which these numbers belong.
    pub const fn numbers(&self) -> Result<LimitNumbers, LimitError> {
        LimitNumbers::of(&self.0)
    }
}

impl LimitSpec {
    /// Validates the limit for a 64-bit cell.
    ///
    /// # Errors
    /// Any [`LimitError`]; a limit is never rounded into another one.
    pub const fn build(&self) -> Result<Limit, LimitError> {
        match validate::build(self, Width::CELL64, self.shift) {
            Ok(p) => Ok(Limit(p)),
            Err(e) => Err(e),
        }
    }

    /// Validates the limit for a 32-bit cell.
    ///
    /// # Errors
    /// Every [`LimitError`]; horizon and skew together must stay below 2^31 q-units.
    pub const fn build32(&self) -> Result<Limit32, LimitError> {
        match validate::build(self, Width::CELL32, self.shift) {
            Ok(p) => Ok(Limit32(p)),
            Err(e) => Err(e),
        }
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
                Err(error) => panic!("{}", error.text()),
            }
        }
    };
}

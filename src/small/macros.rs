//! Macros that make a small limit or log in one line of a program; a bad limit does not compile.

use super::{SmallLimit, SmallLimit32};
use crate::limit::LimitError;

/// A unit of time of the macros in seconds: the first number divided by the second.
const fn seconds(unit: &str) -> (u64, u64) {
    match unit.as_bytes() {
        b"hours" => (3_600, 1),
        b"minutes" => (60, 1),
        b"secs" => (1, 1),
        b"millis" => (1, 1_000),
        b"micros" => (1, 1_000_000),
        _ => (0, 0),
    }
}

/// Returns units, and period in ticks. Both numbers of `seconds` go into the ratio, so that nothing is rounded.
const fn ratio(units: u64, n: u64, unit: &str, ticks_per_sec: u64) -> Result<(u64, u64), LimitError> {
    let (seconds, parts) = seconds(unit);
    match (units.checked_mul(parts), n.saturating_mul(seconds).checked_mul(ticks_per_sec)) {
        (Some(units), Some(period)) => Ok((units, period)),
        _ => Err(LimitError::NotRepresentable),
    }
}

impl SmallLimit {
    /// The function behind [`small_limit!`](crate::small_limit!).
    ///
    /// # Errors
    /// Those of [`new`](Self::new); `ZeroRate` if the macro does not know the unit.
    #[doc(hidden)]
    pub const fn per_time(
        units: u64,
        n: u64,
        unit: &str,
        ticks_per_sec: u64,
        burst: u64,
    ) -> Result<SmallLimit, LimitError> {
        match ratio(units, n, unit, ticks_per_sec) {
            Ok((units, period)) => SmallLimit::new(units, period, burst),
            Err(e) => Err(e),
        }
    }
}

impl SmallLimit32 {
    /// The function behind [`small_limit32!`](crate::small_limit32!).
    ///
    /// # Errors
    /// Those of [`SmallLimit32::new`]; `ZeroRate` if the macro does not know the unit.
    #[doc(hidden)]
    pub const fn per_time(
        units: u64,
        n: u64,
        unit: &str,
        ticks_per_sec: u64,
        burst: u64,
    ) -> Result<SmallLimit32, LimitError> {
        match ratio(units, n, unit, ticks_per_sec) {
            Ok((units, period)) => SmallLimit32::new(units, period, burst),
            Err(e) => Err(e),
        }
    }
}

/// Makes a [`SmallLimit32`](crate::SmallLimit32) at compile time: in ticks, or in time and ticks per second.
///
/// ```
/// use tatcell::{small_limit32, SmallLimit32};
/// const HZ: u64 = 1_000; // a millisecond clock
/// static PER_SENDER: SmallLimit32 = small_limit32!(10 per 1.secs(), HZ, burst 3);
/// assert_eq!(PER_SENDER, small_limit32!(10 per 1_000, burst 3));
/// static SLOW: SmallLimit32 = small_limit32!(1 per 5.minutes(), HZ, burst 2);
/// ```
///
/// The time is a number and `secs`, `millis`, `micros`, `minutes` or `hours`. It need not be a whole number of ticks.
///
/// ```compile_fail
/// static NOTHING: tatcell::SmallLimit32 = tatcell::small_limit32!(0 per 1.secs(), 1_000, burst 3);
/// ```
#[macro_export]
macro_rules! small_limit32 {
    ($units:literal per $n:literal . $unit:ident (), $hz:expr, burst $burst:expr) => {
        const {
            match $crate::SmallLimit32::per_time($units, $n, stringify!($unit), $hz, $burst) {
                Ok(limit) => limit,
                Err(error) => panic!("{}", error.text()),
            }
        }
    };
    ($units:literal per $period:expr, burst $burst:expr) => {
        const {
            match $crate::SmallLimit32::new($units, $period, $burst) {
                Ok(limit) => limit,
                Err(error) => panic!("{}", error.text()),
            }
        }
    };
}

/// Makes a [`SmallLimit`](crate::SmallLimit) at compile time; see [`small_limit32!`](crate::small_limit32!).
///
/// ```
/// use tatcell::{small_limit, SmallLimit};
/// static PER_SENDER: SmallLimit = small_limit!(10 per 1.secs(), 1_000_000, burst 3); // a microsecond clock
/// assert_eq!(PER_SENDER, small_limit!(10 per 1_000_000, burst 3));
/// ```
#[macro_export]
macro_rules! small_limit {
    ($units:literal per $n:literal . $unit:ident (), $hz:expr, burst $burst:expr) => {
        const {
            match $crate::SmallLimit::per_time($units, $n, stringify!($unit), $hz, $burst) {
                Ok(limit) => limit,
                Err(error) => panic!("{}", error.text()),
            }
        }
    };
    ($units:literal per $period:expr, burst $burst:expr) => {
        const {
            match $crate::SmallLimit::new($units, $period, $burst) {
                Ok(limit) => limit,
                Err(error) => panic!("{}", error.text()),
            }
        }
    };
}

/// Decides one log line of this place. `Some(n)` means: write it; `n` lines before it were left out. `None` means:
/// leave it out. Its state and limit are statics of the place: 8 bytes of RAM, 24 of flash.
///
/// The limit is written as in [`small_limit32!`](crate::small_limit32!). Any logger can write the line:
///
/// ```
/// fn queue_full(now_ms: u32) -> usize {
///     let mut lines = 0;
///     for _ in 0..100 {
///         if let Some(left_out) = tatcell::log_limited!(now_ms, 2 per 1.secs(), 1_000, burst 3) {
///             println!("queue full ({left_out} more were not logged)"); // or log::warn!, defmt::warn!
///             lines += 1;
///         }
///     }
///     lines
/// }
/// assert_eq!(queue_full(5_000), 3);
/// assert_eq!(queue_full(6_000), 2); // the first of them reports 97
/// ```
#[macro_export]
macro_rules! log_limited {
    ($now:expr, $units:literal per $n:literal . $unit:ident (), $hz:expr, burst $burst:expr) => {{
        static LIMIT: $crate::SmallLimit32 =
            match $crate::SmallLimit32::per_time($units, $n, stringify!($unit), $hz, $burst) {
                Ok(limit) => limit,
                Err(error) => panic!("{}", error.text()),
            };
        static LOG: $crate::SmallLog = $crate::SmallLog::new();
        LOG.check(&LIMIT, $now)
    }};
    ($now:expr, $units:literal per $period:expr, burst $burst:expr) => {{
        static LIMIT: $crate::SmallLimit32 = match $crate::SmallLimit32::new($units, $period, $burst) {
            Ok(limit) => limit,
            Err(error) => panic!("{}", error.text()),
        };
        static LOG: $crate::SmallLog = $crate::SmallLog::new();
        LOG.check(&LIMIT, $now)
    }};
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    /// The macros call it at compile time; this test calls it at run time.
    #[test]
    fn each_unit_of_time_is_its_part_of_a_second() {
        const HZ: u64 = 1_000_000;
        let units = [
            ("hours", 3_600 * HZ),
            ("minutes", 60 * HZ),
            ("secs", HZ),
            ("millis", HZ / 1_000),
            ("micros", 1),
        ];
        for (unit, ticks) in units {
            for n in [1, 7] {
                assert_eq!(
                    SmallLimit::per_time(1, n, unit, HZ, 3),
                    SmallLimit::new(1, n * ticks, 3),
                    "{unit}"
                );
                let small = SmallLimit32::per_time(1, n, unit, HZ, 3);
                assert_eq!(small, SmallLimit32::new(1, n * ticks, 3), "{unit}");
            }
        }
        // Less than a tick: the ratio keeps it.
        assert_eq!(SmallLimit::per_time(1, 1, "micros", 1_000, 3), SmallLimit::new(1_000_000, 1_000, 3));
        assert_eq!(SmallLimit::per_time(1, 1, "days", HZ, 3), Err(LimitError::ZeroRate));
        assert_eq!(SmallLimit::per_time(1, u64::MAX, "hours", HZ, 3), Err(LimitError::NotRepresentable));
    }
}

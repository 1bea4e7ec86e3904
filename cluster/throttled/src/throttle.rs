//! One `CL.THROTTLE`: its words, and its five integers.
//!
//! `CL.THROTTLE <key> <max_burst> <count per period> <period> [<quantity>]`: `max_burst + 1` units at once after idle,
//! and `count` in `period` seconds. The reply has five integers: limited (0 or 1); `max_burst + 1`; how many are left;
//! seconds until the same quantity passes (-1 if it did, or never will); seconds until the whole burst is back. Times
//! are rounded up to seconds, so a client that waits as long as it was told is not refused for having come too early.

use tatcell_door::{Answer, Rate};

use crate::resp;

/// The form of the command.
pub const USAGE: &str = "CL.THROTTLE <key> <max_burst> <count per period> <period> [<quantity>]";

/// Parses a limit from `max_burst`, `count` and `period`.
///
/// # Errors
/// A line without the error code.
pub fn rate(words: &[&[u8]]) -> Result<Rate, String> {
    let [max_burst, count, period] = words else { return Err(format!("usage: {USAGE}")) };
    let (max_burst, count, period) = (integer(max_burst)?, integer(count)?, integer(period)?);
    if count == 0 || period == 0 {
        return Err("Zero rates are not supported".into());
    }
    let positive = |name: &str, value: i64| {
        u64::try_from(value).map_err(|_| format!("{name} must not be negative: {value}"))
    };
    let burst = positive("max_burst", max_burst)? + 1;
    Ok(Rate { units: positive("count", count)?, period: positive("period", period)?, burst })
}

/// Parses a quantity: 1 if none is given; 0 only peeks, and a negative one gives units back.
///
/// # Errors
/// A line without the error code.
pub fn quantity(word: Option<&&[u8]>) -> Result<i64, String> {
    word.map_or(Ok(1), |word| integer(word))
}

fn integer(word: &[u8]) -> Result<i64, String> {
    resp::integer(word).ok_or_else(|| format!("Couldn't parse as integer: {}", resp::shown(word)))
}

/// Returns the five integers.
pub fn integers(answer: &Answer, rate: &Rate) -> [i64; 5] {
    let retry_after = match answer.passes || !answer.ever {
        true => -1,
        // A store can refuse without a wait.
        false => seconds(answer.retry_after).max(1),
    };
    [
        i64::from(!answer.passes),
        whole(rate.burst),
        whole(answer.remaining),
        retry_after,
        seconds(answer.reset_after),
    ]
}

fn seconds(ns: u64) -> i64 {
    whole(ns.div_ceil(1_000_000_000))
}

fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_a_limit_or_an_error_that_names_them() {
        let rate = |text: &str| super::rate(&text.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        assert_eq!(rate("15 30 60"), Ok(Rate { units: 30, period: 60, burst: 16 }));
        assert_eq!(rate("0 1 2"), Ok(Rate { units: 1, period: 2, burst: 1 }));
        assert_eq!(rate("9223372036854775807 1 1").map(|r| r.burst), Ok(1 << 63));
        for (text, word) in [
            ("x 1 1", "Couldn't parse as integer: x"),
            ("1 0 1", "Zero rates"),
            ("1 1 0", "Zero rates"),
            ("-1 1 1", "max_burst"),
            ("1 -1 1", "count"),
            ("1 1 -1", "period"),
            ("1 1", "usage"),
            ("1 1 9223372036854775808", "Couldn't"),
        ] {
            assert!(rate(text).is_err_and(|e| e.contains(word)), "{text}");
        }
        assert_eq!(quantity(None), Ok(1));
        assert_eq!((quantity(Some(&&b"0"[..])), quantity(Some(&&b"-1"[..]))), (Ok(0), Ok(-1)));
        assert!(quantity(Some(&&b"1.5"[..])).is_err());
    }

    #[test]
    fn times_are_rounded_up_to_seconds() {
        let cases =
            [(0, 0), (1, 1), (999_999, 1), (1_000_000_000, 1), (1_000_000_001, 2), (1_001_000_000, 2)];
        cases.iter().for_each(|(ns, s)| assert_eq!(seconds(*ns), *s, "{ns}"));
    }

    #[test]
    fn a_refusal_asks_for_a_second_at_least() {
        let rate = Rate { units: 1, period: 1, burst: 1 };
        let refused = |retry_after| {
            let (remaining, reset_after, untracked, bound) = (0, retry_after, false, false);
            Answer { passes: false, ever: true, remaining, retry_after, reset_after, untracked, bound }
        };
        for (ns, told) in [(0, 1), (500_000, 1), (1_000_900_000, 2)] {
            assert_eq!(integers(&refused(ns), &rate)[3], told, "{ns}");
        }
    }
}

//! Times as logs write them. The shape tells which: nobody has to name it.
//!
//! ```text
//! 1700000000  1700000000.123  1700000000123     seconds, milli-, micro- and nanoseconds, by size
//! 10/Oct/2023:13:55:36 +0200                    nginx, Apache; HAProxy adds .123 and has no zone
//! 2023-10-10T13:55:36.123Z                      ISO 8601, with or without a zone; a space may replace the T
//! 2023/10/10 13:55:36.123                       Caddy, as `wall`
//! 10-Oct-2023 13:55:36.123                      BIND
//! ```
//!
//! A time without a zone is taken as UTC: differences are what counts.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::record::digits;

const SECOND: u64 = 1_000_000_000;
pub(super) const DAY: u64 = 86_400 * SECOND;

/// Reads a time, in nanoseconds since 1970.
pub fn parse(text: &[u8]) -> Option<u64> {
    match text {
        [_, _, b'/', ..] => clf(text),
        [_, _, b'-', ..] => bind(text),
        [_, _, _, _, b'-' | b'/', ..] => iso(text),
        _ => epoch(text),
    }
}

/// Reads seconds with decimals, in nanoseconds: a duration.
pub fn seconds(text: &[u8]) -> Option<u64> {
    let (whole, part) = match memchr::memchr(b'.', text) {
        Some(at) => (&text[..at], fraction(&text[at + 1..])?),
        None => (text, 0),
    };
    digits(whole)?.checked_mul(SECOND)?.checked_add(part)
}

fn epoch(text: &[u8]) -> Option<u64> {
    let (whole, part) = match text.iter().position(|byte| *byte == b'.') {
        Some(at) => (&text[..at], fraction(&text[at + 1..])?),
        None => (text, 0),
    };
    let number = digits(whole)?;
    // 10^11 seconds are the year 5138, 10^11 milliseconds are 1973.
    let unit = match number {
        0..100_000_000_000 => SECOND,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1,
    };
    number.checked_mul(unit)?.checked_add(part / (SECOND / unit))
}

/// Decimals of a second, in nanoseconds. Digits after the ninth are dropped.
fn fraction(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let kept = &text[..text.len().min(9)];
    Some(digits(kept)? * 10u64.pow(9 - kept.len() as u32))
}

fn two(text: &[u8]) -> Option<u64> {
    match text {
        [a @ b'0'..=b'9', b @ b'0'..=b'9'] => Some(u64::from(a - b'0') * 10 + u64::from(b - b'0')),
        _ => None,
    }
}

fn month(name: &[u8]) -> Option<u64> {
    const NAMES: &[u8; 36] = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let number = NAMES.chunks(3).position(|month| month.eq_ignore_ascii_case(name))?;
    Some(number as u64 + 1)
}

/// Days from 1970 to a date of the Gregorian calendar; the year begins in March, so that leap days come last.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=2500).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468)
}

/// `HH:MM:SS` at the start of a text, in nanoseconds with its decimals; and the rest, where a zone may be.
fn clock(text: &[u8]) -> Option<(u64, &[u8])> {
    let [h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = text else { return None };
    let (hour, minute, second) = (two(&[*h1, *h2])?, two(&[*m1, *m2])?, two(&[*s1, *s2])?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let whole = (hour * 3600 + minute * 60 + second) * SECOND;
    let [b'.' | b',', rest @ ..] = rest else { return Some((whole, rest)) };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some((whole + fraction(&rest[..length])?, &rest[length..]))
}

/// The seconds by which a zone is ahead of UTC.
fn zone(text: &[u8]) -> Option<i64> {
    let (sign, rest) = match text {
        b"" | b"Z" | b"z" => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest {
        [h1, h2, b':', m1, m2] | [h1, h2, m1, m2] => (two(&[*h1, *h2])?, two(&[*m1, *m2])?),
        _ => return None,
    };
    Some(sign * (hours * 3600 + minutes * 60) as i64)
}

fn instant(days: u64, clock: u64, zone: i64) -> Option<u64> {
    let local = days.checked_mul(86_400 * SECOND)?.checked_add(clock)?;
    local.checked_add_signed(-zone * SECOND as i64)
}

fn clf(text: &[u8]) -> Option<u64> {
    let [d1, d2, b'/', m1, m2, m3, b'/', year @ ..] = text else { return None };
    let (year, rest) = year.split_at_checked(4)?;
    let days = days(digits(year)?, month(&[*m1, *m2, *m3])?, two(&[*d1, *d2])?)?;
    let (clock, rest) = clock(rest.strip_prefix(b":")?)?;
    instant(days, clock, zone(rest.strip_prefix(b" ").unwrap_or(rest))?)
}

fn bind(text: &[u8]) -> Option<u64> {
    let [d1, d2, b'-', m1, m2, m3, b'-', year @ ..] = text else { return None };
    let (year, rest) = year.split_at_checked(4)?;
    let days = days(digits(year)?, month(&[*m1, *m2, *m3])?, two(&[*d1, *d2])?)?;
    let (clock, rest) = clock(rest.strip_prefix(b" ")?)?;
    instant(days, clock, zone(rest)?)
}

fn iso(text: &[u8]) -> Option<u64> {
    let (year, rest) = text.split_at_checked(4)?;
    let [dash @ (b'-' | b'/'), m1, m2, other, d1, d2, b'T' | b't' | b' ', rest @ ..] = rest else {
        return None;
    };
    if other != dash {
        return None;
    }
    let days = days(digits(year)?, two(&[*m1, *m2])?, two(&[*d1, *d2])?)?;
    let (clock, rest) = clock(rest)?;
    instant(days, clock, zone(rest.strip_prefix(b" ").unwrap_or(rest))?)
}

/// The time now, in nanoseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads `Nov  8 03:31:36` with or without decimals, at the start of a text, and returns the rest. The year is the last
/// one that has this day, and in which it is at most a day later than `now`. If none is, it is the first one from 1971
/// on: what such a text is does not depend on a clock that nobody has set.
pub fn without_year(text: &[u8], now: u64) -> Option<(u64, &[u8])> {
    let [m1, m2, m3, b' ', d1, d2, b' ', rest @ ..] = text else { return None };
    let month = month(&[*m1, *m2, *m3])?;
    let day = two(&[if *d1 == b' ' { b'0' } else { *d1 }, *d2])?;
    let (clock, rest) = clock(rest)?;
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let most = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month as usize - 1];
    if !(1..=most).contains(&day) {
        return None;
    }
    // A year has at most 366 days, so this one is that of `now` or the next. A leap year is among them.
    let next = (1970 + now / (365 * 86_400 * SECOND) + 1).clamp(1972, 2500);
    let years = (1970..=next).rev().filter(|year| month != 2 || day < 29 || is_leap(*year));
    let mut found = None;
    for (year, time) in years.filter_map(|year| Some((year, instant(days(year, month, day)?, clock, 0)?))) {
        if time <= now.saturating_add(DAY) {
            return Some((time, rest));
        }
        found = if year > 1970 { Some((time, rest)) } else { found };
    }
    found
}

/// Writes a time as ISO 8601 in UTC, with as many decimals as it needs, in groups of three.
pub fn show(time: u64) -> String {
    let (seconds, part) = (time / SECOND, time % SECOND);
    let (day, clock) = (seconds / 86_400, seconds % 86_400);
    // The inverse of `days`.
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let decimals = match part {
        0 => String::new(),
        _ if part % 1_000_000 == 0 => format!(".{:03}", part / 1_000_000),
        _ if part % 1_000 == 0 => format!(".{:06}", part / 1_000),
        _ => format!(".{part:09}"),
    };
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}{decimals}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_of_a_time_is_read() {
        for (text, want) in [
            ("0", 0),
            ("1700000000", 1_700_000_000_000_000_000),
            ("1700000000.25", 1_700_000_000_250_000_000),
            ("1700000000123", 1_700_000_000_123_000_000),
            ("1700000000123.25", 1_700_000_000_123_250_000),
            ("1700000000123456.7899", 1_700_000_000_123_456_789),
            ("1700000000123456789.9", 1_700_000_000_123_456_789),
            ("1700000000123456", 1_700_000_000_123_456_000),
            ("1700000000123456789", 1_700_000_000_123_456_789),
            ("1700000000.1234567899", 1_700_000_000_123_456_789),
            ("14/Nov/2023:22:13:20 +0000", 1_700_000_000_000_000_000),
            ("14/Nov/2023:23:43:20 +0130", 1_700_000_000_000_000_000),
            ("14/Nov/2023:22:13:20.007", 1_700_000_000_007_000_000),
            ("2023-11-14T22:13:20Z", 1_700_000_000_000_000_000),
            ("2023-11-14T20:13:20.5-02:00", 1_700_000_000_500_000_000),
            ("2023-11-14 22:13:20,001", 1_700_000_000_001_000_000),
            ("14-Nov-2023 22:13:20.123", 1_700_000_000_123_000_000),
            ("2023/11/14 22:13:20", 1_700_000_000_000_000_000),
            ("2023/11/14 22:13:20.123456789", 1_700_000_000_123_456_789),
            ("29/Feb/2024:00:00:00 +0000", 1_709_164_800_000_000_000),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let bad = ["", "-", "x", "12x", "1.", "14/Foo/2023:22:13:20 +0000", "14/Nov/2023:25:13:20 +0000"];
        let more = [
            "14/Nov/2023",
            "2023-11-14",
            "2023-11/14 22:13:20",
            "2023/11/14",
            "2023-13-14T22:13:20Z",
            "2023-11-14T22:13:20+1",
            "99999999999999999999",
        ];
        for text in bad.iter().chain(&more) {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_shown_time_is_read_back() {
        for day in (0..193_000).step_by(13) {
            let time = day * 86_400 * SECOND + day * 7_919 % (86_400 * SECOND);
            assert_eq!(parse(show(time).as_bytes()), Some(time), "{}", show(time));
        }
        assert_eq!(show(1_700_000_000_123_000_000), "2023-11-14T22:13:20.123Z");
    }
}

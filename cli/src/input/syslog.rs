//! What stands before the text of a program where its lines go through syslog or the journal: the head.
//!
//! ```text
//! <134>Nov  8 03:31:36 host haproxy[12]: ...             RFC 3164, with or without the priority and the host
//! <134>1 2026-11-28T03:31:36.750+00:00 host haproxy 12 - - ...    RFC 5424, with or without the priority
//! 2026-11-28T03:31:36+0000 host unbound[12]: ...         the journal's short-iso, rsyslog's default
//! Nov 28 03:31:36 unbound[12:0] info: ...                Unbound's log-time-ascii: a time, and no name before a colon
//! ```
//!
//! A head gives a line the time that it may lack. RFC 3164 has no year. For the first line it is the last one in which
//! the time is not more than a day ahead; for each other line the one that puts it next to the line before it: at most
//! 32 days earlier, else later. So a log that passes the day of today is not cut there, and may be silent for 11
//! months.

use super::time;
use crate::failure::Problem;

/// The head of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// How many bytes it has.
    pub length: usize,
    /// Its time, in nanoseconds since 1970.
    pub time: Option<u64>,
}

/// By how much the time of a line without a year may be later than that of the line before it, less a day: 333 days, so
/// that it may also be 32 days earlier.
const AHEAD: u64 = 332 * time::DAY;

/// Divides a text at its first space.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b' ', text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Leaves out `<134>`.
fn priority(text: &[u8]) -> &[u8] {
    let Some(rest) = text.strip_prefix(b"<") else { return text };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match rest[digits..].strip_prefix(b">") {
        Some(rest) if (1..=3).contains(&digits) => rest,
        _ => text,
    }
}

/// Leaves out the structured data of RFC 5424: `-`, or elements such as `[id name="a \"b\" ]"]`.
fn structured(text: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = text.strip_prefix(b"-") {
        return Some(rest);
    }
    let mut rest = text;
    while let Some(after) = rest.strip_prefix(b"[") {
        let (mut quoted, mut escaped) = (false, false);
        let end = after.iter().position(|byte| {
            let ends = *byte == b']' && !quoted;
            quoted ^= *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        })?;
        rest = &after[end + 1..];
    }
    (rest.len() < text.len()).then_some(rest)
}

/// Leaves out a head of RFC 5424, behind its priority: version, time, host, program, process, message, data.
fn rfc5424(text: &[u8]) -> Option<(&[u8], Option<u64>)> {
    let (stamp, mut rest) = word(text.strip_prefix(b"1 ")?)?;
    let time = match stamp {
        b"-" => None,
        stamp => Some(time::parse(stamp)?),
    };
    for _ in 0..4 {
        rest = word(rest)?.1;
    }
    let rest = structured(rest)?;
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    Some((rest.strip_prefix(super::BYTE_ORDER_MARK).unwrap_or(rest), time))
}

/// Leaves out a time, of RFC 3164 or ISO 8601, and the space behind it.
fn stamp(text: &[u8], now: u64) -> Option<(&[u8], u64)> {
    if let Some((time, rest)) = time::without_year(text, now) {
        return Some((rest.strip_prefix(b" ")?, time));
    }
    if text.get(4) != Some(&b'-') {
        return None;
    }
    let (first, rest) = word(text)?;
    if let Some(time) = time::parse(first) {
        return Some((rest, time));
    }
    // A space may replace the T.
    let (second, rest) = word(rest)?;
    Some((rest, time::parse(&text[..first.len() + 1 + second.len()])?))
}

/// Whether a word is the name of a program before its text: `named[12]:`, or without the process `nginx:`.
fn is_tag(word: &[u8], needs_process: bool) -> bool {
    let Some(name) = word.strip_suffix(b":") else { return false };
    let (name, process) = match name.strip_suffix(b"]") {
        Some(name) => match memchr::memchr(b'[', name) {
            Some(at) => (&name[..at], true),
            None => return false,
        },
        None => (name, false),
    };
    let fits = |byte: &u8| byte.is_ascii_graphic() && !br#"[]"{}:"#.contains(byte);
    !name.is_empty() && name.iter().all(fits) && (process || !needs_process)
}

/// Finds the head of a line.
pub fn head(line: &[u8], now: u64) -> Option<Head> {
    // Most lines have none: one look says so.
    let is_dated = line.get(4) == Some(&b'-') || line.starts_with(b"1 ");
    if !line.first().is_some_and(|byte| *byte == b'<' || byte.is_ascii_alphabetic() || is_dated) {
        return None;
    }
    let mut rest = priority(line);
    let made = |rest: &[u8], time| Some(Head { length: line.len() - rest.len(), time });
    if let Some((rest, time)) = rfc5424(rest) {
        return made(rest, time);
    }
    let time = stamp(rest, now).map(|(after, time)| {
        rest = after;
        time
    });
    let is_bare = rest.len() == line.len();
    if let Some((first, after)) = word(rest) {
        // A host stands before the program, if something else has shown that this is a head.
        let behind_host = || word(after).filter(|(second, _)| !is_bare && is_tag(second, false));
        if is_tag(first, is_bare) {
            return made(after, time);
        } else if let Some((_, after)) = behind_host().filter(|_| !first.contains(&b'[')) {
            return made(after, time);
        }
    }
    if is_bare {
        return None;
    }
    made(rest, time)
}

/// Reads a line of text behind its head, and if that is none of the format, the whole line. Returns the length of the
/// head. `now` tells the year of its time, and is then the one for the next line.
pub fn behind_head(
    line: &[u8],
    now: &mut u64,
    mut read: impl FnMut(&[u8], Option<u64>) -> Result<(), Problem>,
) -> Result<usize, Problem> {
    let Some(Head { length, time }) = head(line, *now) else { return read(line, None).map(|()| 0) };
    let behind = match read(&line[length..], time) {
        Ok(()) => {
            *now = time.map_or(*now, |time| time.saturating_add(AHEAD));
            return Ok(length);
        }
        Err(problem) => Problem { column: problem.column + length, ..problem },
    };
    read(line, None).map(|()| 0).map_err(|_| behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-28 03:31:36.
    const T: u64 = 1_795_836_696_000_000_000;

    #[test]
    fn each_head_is_left_out_and_its_time_is_read() {
        for (text, time) in [
            ("<30>Nov 28 03:31:36 host unbound[27047]: ", Some(T)),
            ("<30>Nov 28 03:31:36 unbound[27047]: ", Some(T)),
            ("Nov 28 03:31:36 host nginx: ", Some(T)),
            ("Nov 28 03:31:36.250 host named[1]: ", Some(T + 250_000_000)),
            ("2026-11-28T03:31:36+00:00 host haproxy[1]: ", Some(T)),
            ("2026-11-28T04:31:36+0100 host named[1]: ", Some(T)),
            ("2026-11-28 03:31:36 host named[1]: ", Some(T)),
            ("<134>1 2026-11-28T03:31:36Z - haproxy 16026 - - ", Some(T)),
            ("<134>1 2026-11-28T03:31:36Z h a 1 id [x@1 a=\"b\\\"] c\" d=\"]\"][y@1] \u{feff}", Some(T)),
            ("<134>1 - h a - - - ", None),
            ("1 2026-11-28T03:31:36Z h haproxy 12 - - ", Some(T)),
            ("<6>", None),
            ("haproxy[1401]: ", None),
            ("Nov 28 03:31:36 ", Some(T)),
        ] {
            for rest in ["[1:0] info: 192.0.2.1 example.com. A IN", "client @0x7 192.0.2.1#5", "{\"a\": 1}"] {
                let line = format!("{text}{rest}");
                assert_eq!(head(line.as_bytes(), T), Some(Head { length: text.len(), time }), "{line}");
            }
        }
        // Unbound's own: no name stands before a colon.
        let line = b"Nov 28 03:31:36 unbound[27047:0] info: 192.0.2.1 example.com. A IN";
        assert_eq!(head(line, T), Some(Head { length: 16, time: Some(T) }));
    }

    #[test]
    fn other_lines_have_no_head() {
        for line in [
            "",
            "192.0.2.1 - - [28/Nov/2026:03:31:36 +0000] \"GET / HTTP/1.1\" 200 1",
            "example.com:80 192.0.2.1 - - [28/Nov/2026:03:31:36 +0000]",
            "2001:db8::1 - - [28/Nov/2026:03:31:36 +0000]",
            "nov.example.com - - [28/Nov/2026:03:31:36 +0000]",
            "{\"a\": 1}",
            "[1700000000] unbound[1:0] info: 192.0.2.1 example.com. A IN",
            "28-Nov-2026 03:31:36.123 queries: info: client",
            "<x> y",
            "Nov 32 03:31:36 host a: b",
        ] {
            assert_eq!(head(line.as_bytes(), T), None, "{line}");
        }
    }

    #[test]
    fn a_time_without_a_year_is_of_the_last_year_that_fits() {
        const DAY: u64 = 86_400_000_000_000;
        let read = |text: &str, now| head(text.as_bytes(), now).and_then(|head| head.time).map(time::show);
        assert_eq!(read("Dec 31 23:59:59 h a: ", T).as_deref(), Some("2025-12-31T23:59:59Z"));
        assert_eq!(read("Nov 29 03:31:36 h a: ", T).as_deref(), Some("2026-11-29T03:31:36Z"));
        assert_eq!(read("Nov 29 03:31:37 h a: ", T).as_deref(), Some("2025-11-29T03:31:37Z"));
        assert_eq!(read("Jan  1 00:00:00 h a: ", T + 34 * DAY).as_deref(), Some("2027-01-01T00:00:00Z"));
        // The last year that has this day.
        assert_eq!(read("Feb 29 12:00:00 h a: ", T).as_deref(), Some("2024-02-29T12:00:00Z"));
        // Of a clock that nobody has set; what a head is does not depend on it.
        assert_eq!(read("Jan  1 00:00:05 h a: ", 0).as_deref(), Some("1970-01-01T00:00:05Z"));
        assert_eq!(read("Dec 31 23:59:00 h a: ", 365 * DAY).as_deref(), Some("1970-12-31T23:59:00Z"));
        assert_eq!(read("Nov 28 03:31:36 h a: ", 0).as_deref(), Some("1971-11-28T03:31:36Z"));
        assert_eq!(read("Feb 29 12:00:00 h a: ", 60 * DAY).as_deref(), Some("1972-02-29T12:00:00Z"));
    }
}

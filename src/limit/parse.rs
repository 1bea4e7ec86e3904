//! Limits as text: `"10/s burst 20"`, `"100r/m"`, `"1.5MB/s burst 64kB"`, `"5/15min"`.
//!
//! ```text
//! limit  = amount "/" [ number ] unit [ "burst" [ "=" ] amount ]
//! amount = number [ prefix ] [ "B" | "r" ]          number: digits, and a point and digits
//! prefix = k M G T: powers of 1000;  Ki Mi Gi Ti: powers of 1024
//! unit   = ns us ms s m h d w, or a name: sec, second, min, minute, hour, day, week, with or without a final s
//! ```
//!
//! Spaces may stand between any two of these. Case matters: `m` is a minute and `M` a million. The burst counts the
//! first unit, so it is one more than nginx's and redis-cell's numbers. Without it, it is the amount of the rate: all
//! units of a period may come at once. A rate that is no whole number of units a period is kept exactly: `0.5/s` is one
//! unit in two seconds. Nothing is rounded but the default burst, upwards.
//!
//! Not a configuration language: options and algorithms are the program's.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::LimitSpec;
use crate::time::ceil_div;

/// Says why a text is no limit, and at which byte.
///
/// ```
/// use tatcell::{LimitSpec, ParseErrorKind};
/// let error = LimitSpec::parse("10 a second", 1_000).unwrap_err();
/// assert_eq!((error.position, error.kind), (3, ParseErrorKind::Slash));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// The first byte of the text that cannot be read, from 0; the length of the text if something is missing there.
    pub position: usize,
    /// What is wrong there.
    pub kind: ParseErrorKind,
}

/// Says what is wrong with the text of a limit.
///
/// ```
/// use tatcell::{LimitSpec, ParseErrorKind};
/// let kind = |text| LimitSpec::parse(text, 1_000).unwrap_err().kind;
/// assert_eq!(kind("10/fortnight"), ParseErrorKind::Unit);
/// assert_eq!(kind("10/s burst 1.5"), ParseErrorKind::Fraction);
/// assert_eq!(kind("10/s or so"), ParseErrorKind::Rest);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// A number is missing.
    Number,
    /// A slash is missing between the units and the time.
    Slash,
    /// The unit of time is missing or unknown.
    Unit,
    /// There is more text after the limit, and it is not "burst".
    Rest,
    /// The number is 0.
    Zero,
    /// The burst is not a whole number of units.
    Fraction,
    /// The number needs more than 64 bits.
    TooLarge,
    /// The clock has 0 ticks a second.
    Frequency,
}

impl core::fmt::Display for ParseError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let what = match self.kind {
            ParseErrorKind::Number => "a number is missing, as in \"10/s burst 20\"",
            ParseErrorKind::Slash => "\"/\" and a time are missing, as in \"10/s\"",
            ParseErrorKind::Unit => "not a unit of time: use ns, us, ms, s, m, h, d or w",
            ParseErrorKind::Rest => "only \"burst\" and a number may follow the rate",
            ParseErrorKind::Zero => "the number is 0",
            ParseErrorKind::Fraction => "a burst is a whole number of units",
            ParseErrorKind::TooLarge => "the number is too large for 64 bits",
            ParseErrorKind::Frequency => "the clock has 0 ticks a second",
        };
        write!(f, "byte {}: {what}", self.position)
    }
}

impl core::error::Error for ParseError {}

/// Names of units of time, and each as a fraction of seconds. A name may end with an s more.
const UNITS: [(&str, u64, u64); 15] = [
    ("ns", 1, 1_000_000_000),
    ("us", 1, 1_000_000),
    ("ms", 1, 1_000),
    ("s", 1, 1),
    ("sec", 1, 1),
    ("second", 1, 1),
    ("m", 60, 1),
    ("min", 60, 1),
    ("minute", 60, 1),
    ("h", 3_600, 1),
    ("hour", 3_600, 1),
    ("d", 86_400, 1),
    ("day", 86_400, 1),
    ("w", 604_800, 1),
    ("week", 604_800, 1),
];

/// A number as a fraction.
#[derive(Clone, Copy)]
struct Amount {
    over: u128,
    under: u128,
}

impl Amount {
    fn times(self, over: u128, under: u128) -> Option<Amount> {
        Some(Amount { over: self.over.checked_mul(over)?, under: self.under.checked_mul(under)? })
    }

    /// The fraction in lowest terms.
    fn reduced(self) -> Amount {
        let (mut a, mut b) = (self.over, self.under);
        while b != 0 {
            (a, b) = (b, a.checked_rem(b).unwrap_or(0));
        }
        let part = |n: u128| n.checked_div(a).unwrap_or(n);
        Amount { over: part(self.over), under: part(self.under) }
    }
}

/// A text that is being read.
struct Reader<'t> {
    text: &'t [u8],
    position: usize,
}

/// Compares byte by byte: a comparison of slices would call a function of the C library.
fn is(word: &[u8], name: &[u8]) -> bool {
    word.len() == name.len() && word.iter().zip(name).all(|(a, b)| a == b)
}

impl Reader<'_> {
    fn error(&self, kind: ParseErrorKind) -> ParseError {
        ParseError { position: self.position, kind }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.position).copied()
    }

    fn skip(&mut self) {
        self.position = self.position.saturating_add(1);
    }

    fn spaces(&mut self) {
        while let Some(b' ' | b'\t') = self.peek() {
            self.skip();
        }
    }

    /// Takes the byte if it comes next.
    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.skip();
        }
        is_next
    }

    /// The letters that come next. They are not taken.
    fn word(&self) -> &[u8] {
        let rest = self.text.get(self.position..).unwrap_or(&[]);
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        rest.get(..length).unwrap_or(&[])
    }

    fn number(&mut self) -> Result<Amount, ParseError> {
        let start = self.position;
        let (mut amount, mut digits, mut after_point) = (Amount { over: 0, under: 1 }, 0u32, false);
        loop {
            match self.peek() {
                Some(digit @ b'0'..=b'9') => {
                    let digit = u128::from(digit.wrapping_sub(b'0'));
                    let next = amount.over.checked_mul(10).and_then(|over| over.checked_add(digit));
                    let under = if after_point { amount.under.checked_mul(10) } else { Some(1) };
                    match (next, under) {
                        // No more than 64 bits each, so that what follows multiplies without overflow.
                        (Some(over), Some(under)) if (over | under) >> 64 == 0 => {
                            amount = Amount { over, under }
                        }
                        _ => return Err(ParseError { position: start, kind: ParseErrorKind::TooLarge }),
                    }
                    digits = digits.saturating_add(1);
                }
                Some(b'.') if !after_point && digits > 0 => after_point = true,
                _ if digits == 0 => return Err(self.error(ParseErrorKind::Number)),
                _ if amount.over == 0 => {
                    return Err(ParseError { position: start, kind: ParseErrorKind::Zero })
                }
                _ => return Ok(amount),
            }
            self.skip();
        }
    }

    /// A number of units, with its prefix.
    fn amount(&mut self) -> Result<Amount, ParseError> {
        let amount = self.number()?;
        let power = match self.peek() {
            Some(b'k' | b'K') => 1,
            Some(b'M') => 2,
            Some(b'G') => 3,
            Some(b'T') => 4,
            _ => 0,
        };
        let mut base: u128 = 1_000;
        if power > 0 {
            self.skip();
            if self.takes(b'i') {
                base = 1_024;
            }
        }
        if !self.takes(b'B') {
            self.takes(b'r');
        }
        // Below 2^64 and 2^40.
        let amount = Amount { over: amount.over.wrapping_mul(base.wrapping_pow(power)), ..amount };
        Ok(amount.reduced())
    }

    /// The time of a rate, in seconds.
    fn time(&mut self) -> Result<Amount, ParseError> {
        let count = match self.peek() {
            Some(b'0'..=b'9' | b'.') => self.number()?,
            _ => Amount { over: 1, under: 1 },
        };
        self.spaces();
        let word = self.word();
        let named = |name: &str| {
            is(word, name.as_bytes())
                || name.len() > 2 && matches!(word, [start @ .., b's'] if is(start, name.as_bytes()))
        };
        let Some((_, over, under)) = UNITS.iter().find(|(name, ..)| named(name)) else {
            return Err(self.error(ParseErrorKind::Unit));
        };
        self.position = self.position.saturating_add(word.len());
        // Below 2^64 and 2^30 each.
        let over = count.over.wrapping_mul(u128::from(*over));
        Ok(Amount { over, under: count.under.wrapping_mul(u128::from(*under)) })
    }
}

impl LimitSpec {
    /// Reads a limit from text: `"10/s burst 20"`, `"100r/m"`, `"1.5MB/s burst 64kB"`, `"5/15min"`.
    ///
    /// The text is an amount of units, a slash and a time, and after that possibly `burst` and an amount. An amount may
    /// have a prefix: `k`, `M`, `G`, `T` for powers of 1000, `Ki` and so on for powers of 1024; a `B` or `r` after it
    /// is ignored. Times are `ns`, `us`, `ms`, `s`, `m` (minutes), `h`, `d` and `w`, or their names, with a number
    /// before them or not. The burst counts the first unit. Without `burst` it is the amount of the rate, rounded up
    /// to whole units. `ticks_per_second` is the frequency of the caller's clock. The rate is exact; options and
    /// another algorithm come after it.
    ///
    /// # Errors
    /// [`ParseError`] tells the byte and what is wrong there. What no word can hold is an error of the build.
    ///
    /// ```
    /// use tatcell::LimitSpec;
    /// let spec = LimitSpec::parse("1.5MB/s burst 64kB", 1_000_000_000)?;
    /// assert_eq!(spec, LimitSpec::new(1_500_000, 1_000_000_000, 64_000));
    /// let error = LimitSpec::parse("10/fortnight", 1_000).unwrap_err();
    /// assert_eq!(error.to_string(), "byte 3: not a unit of time: use ns, us, ms, s, m, h, d or w");
    /// # Ok::<(), tatcell::ParseError>(())
    /// ```
    pub fn parse(text: &str, ticks_per_second: u64) -> Result<LimitSpec, ParseError> {
        LimitSpec::parse_bytes(text.as_bytes(), ticks_per_second)
    }

    /// Reads a limit from bytes that need not be UTF-8: see [`parse`](Self::parse).
    pub(crate) fn parse_bytes(text: &[u8], ticks_per_second: u64) -> Result<LimitSpec, ParseError> {
        let mut reader = Reader { text, position: 0 };
        if ticks_per_second == 0 {
            return Err(reader.error(ParseErrorKind::Frequency));
        }
        reader.spaces();
        let start = reader.position;
        let too_large = |position| ParseError { position, kind: ParseErrorKind::TooLarge };
        let amount = reader.amount()?;
        reader.spaces();
        if !reader.takes(b'/') {
            return Err(reader.error(ParseErrorKind::Slash));
        }
        reader.spaces();
        let time = reader.time()?;
        // A whole number of units in a whole number of ticks, each no larger than that takes.
        let ticks = time.times(ticks_per_second.into(), 1).map(Amount::reduced).ok_or(too_large(start))?;
        let units = amount.over.checked_mul(ticks.under).and_then(|n| u64::try_from(n).ok());
        let period = ticks.over.checked_mul(amount.under).and_then(|n| u64::try_from(n).ok());
        let (Some(units), Some(period)) = (units, period) else {
            return Err(too_large(start));
        };
        let at_once = ceil_div(amount.over, amount.under);
        reader.spaces();
        let burst = if reader.position == text.len() {
            u64::try_from(at_once).map_err(|_| too_large(start))?
        } else {
            reader.burst()?
        };
        Ok(LimitSpec::new(units, period, burst))
    }
}

impl Reader<'_> {
    /// The burst, which ends the text.
    fn burst(&mut self) -> Result<u64, ParseError> {
        if !is(self.word(), b"burst") {
            return Err(self.error(ParseErrorKind::Rest));
        }
        self.position = self.position.saturating_add(b"burst".len());
        self.spaces();
        self.takes(b'=');
        self.spaces();
        let start = self.position;
        let burst = self.amount()?;
        if burst.under != 1 {
            return Err(ParseError { position: start, kind: ParseErrorKind::Fraction });
        }
        self.spaces();
        if self.position != self.text.len() {
            return Err(self.error(ParseErrorKind::Rest));
        }
        u64::try_from(burst.over).map_err(|_| ParseError { position: start, kind: ParseErrorKind::TooLarge })
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::ParseErrorKind::{Fraction, Frequency, Number, Rest, Slash, TooLarge, Unit, Zero};
    use super::*;

    const NS: u64 = 1_000_000_000;

    fn read(text: &str, hz: u64) -> Result<(u64, u64, u64), (usize, ParseErrorKind)> {
        LimitSpec::parse(text, hz).map(|s| (s.units, s.period, s.burst)).map_err(|e| (e.position, e.kind))
    }

    #[test]
    fn a_text_gives_units_period_and_burst() {
        for (text, hz, made) in [
            ("10/s burst 20", NS, (10, NS, 20)),
            ("  10 / s  burst=20 ", NS, (10, NS, 20)),
            ("100r/m", NS, (100, 60 * NS, 100)),
            ("1.5MB/s burst 64kB", NS, (1_500_000, NS, 64_000)),
            ("1.5MiB/s burst 64KiB", NS, (1_572_864, NS, 65_536)),
            ("5/15min", 1_000, (5, 900_000, 5)),
            ("5/15minutes", 1_000, (5, 900_000, 5)),
            ("20/day", 1, (20, 86_400, 20)),
            ("1/2w", 1, (1, 1_209_600, 1)),
            ("0.5/s", NS, (1, 2 * NS, 1)),
            ("2.50/s", 1_000, (5, 2_000, 3)),
            ("3/us burst 1", 1_000, (3_000, 1, 1)),
            ("1/0.5s", 1, (2, 1, 1)),
            ("18446744073709551615/s", 1, (u64::MAX, 1, u64::MAX)),
        ] {
            assert_eq!(read(text, hz), Ok(made), "{text}");
        }
    }

    #[test]
    fn an_error_names_the_byte() {
        for (text, error) in [
            ("", (0, Number)),
            ("ten/s", (0, Number)),
            (".5/s", (0, Number)),
            ("10", (2, Slash)),
            ("10 per s", (3, Slash)),
            ("10m/s", (2, Slash)),
            ("10/", (3, Unit)),
            ("10/S", (3, Unit)),
            ("10/secs burst", (13, Number)),
            ("10/ss", (3, Unit)),
            ("0/s", (0, Zero)),
            ("10/0s", (3, Zero)),
            ("10/s burst 0.0", (11, Zero)),
            ("10/s burst 1.5", (11, Fraction)),
            ("10/s bursts 3", (5, Rest)),
            ("10/s burst 3 nodelay", (13, Rest)),
            ("10/s \u{e9}", (5, Rest)),
            ("18446744073709551616/s", (0, TooLarge)),
            ("18446744073709551615k/s", (0, TooLarge)),
            ("1/18446744073709551615w", (0, TooLarge)),
            ("0.00000000000000000001/s", (0, TooLarge)),
            ("1/s burst 99999999T", (10, TooLarge)),
        ] {
            assert_eq!(read(text, NS), Err(error), "{text}");
        }
        assert_eq!(read("10/s", 0), Err((0, Frequency)));
        // Whatever the bytes and wherever they end, there is an answer.
        let whole = "1.5MiB/15minutes burst=64KiB";
        for length in 0..=whole.len() {
            for byte in 0..=255u8 {
                let mut text = whole.as_bytes()[..length].to_vec();
                text.push(byte);
                if let Err(e) = LimitSpec::parse_bytes(&text, u64::MAX) {
                    assert!(e.position <= text.len());
                }
            }
        }
    }
}

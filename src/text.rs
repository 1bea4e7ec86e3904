//! The spelling of texts: integers, decimal fractions, strings in quotes, and byte sequences of structured fields
//! (RFC 9651), into any sink. Without `core::fmt`, which would bring code that can panic.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use core::fmt;

/// The value of each digit of an integer.
const POWERS: [u64; 20] = {
    let mut powers = [1u64; 20];
    let mut i = powers.len().wrapping_sub(1);
    while i > 0 {
        i = i.wrapping_sub(1);
        powers[i] = powers[i.wrapping_add(1)].wrapping_mul(10);
    }
    powers
};

const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns whether this is a String of structured fields.
pub(crate) const fn is_string(text: &str) -> bool {
    let mut rest = text.as_bytes();
    while let [byte, more @ ..] = rest {
        if !matches!(*byte, 0x20..=0x7e) {
            return false;
        }
        rest = more;
    }
    true
}

/// The sink of text, piece by piece.
pub(crate) struct Text<F>(pub F);

impl<F: FnMut(&str) -> fmt::Result> Text<F> {
    pub(crate) fn put(&mut self, text: &str) -> fmt::Result {
        (self.0)(text)
    }

    /// Writes an integer.
    pub(crate) fn number(&mut self, number: u64) -> fmt::Result {
        self.digits(number, &POWERS, false)
    }

    /// Writes a number with nine decimal places.
    pub(crate) fn fixed(&mut self, whole: u64, billionths: u32) -> fmt::Result {
        self.number(whole)?;
        self.put(".")?;
        let [.., a, b, c, d, e, f, g, h, i] = POWERS;
        self.digits(billionths.min(999_999_999).into(), &[a, b, c, d, e, f, g, h, i], true)
    }

    /// Writes the digits of these values, the last one always, leading zeros only if `started`.
    fn digits(&mut self, number: u64, powers: &[u64], mut started: bool) -> fmt::Result {
        let mut rest = number;
        for power in powers {
            // At most nine times.
            let mut digits = DIGITS.iter();
            let mut digit = digits.next();
            while let (Some(less), true) = (rest.checked_sub(*power), digit.is_some()) {
                (rest, digit) = (less, digits.next());
                started = true;
            }
            if started || *power == 1 {
                self.put(digit.unwrap_or_else(|| impossible!(&"0")))?;
            }
        }
        Ok(())
    }

    /// Writes a text in quotes, with a backslash before quotes and backslashes, and `\n` for an end of line. A String
    /// of structured fields has no ends of lines.
    pub(crate) fn string(&mut self, text: &str) -> fmt::Result {
        self.put("\"")?;
        let mut from = 0;
        for (at, found) in text.match_indices(['"', '\\', '\n']) {
            self.put(text.get(from..at).unwrap_or_else(|| impossible!("")))?;
            let is_end = found == "\n";
            self.put(if is_end { "\\n" } else { "\\" })?;
            from = at.wrapping_add(is_end.into());
        }
        self.put(text.get(from..).unwrap_or_else(|| impossible!("")))?;
        self.put("\"")
    }

    /// Writes a Byte Sequence of structured fields: Base64 with padding, between colons.
    pub(crate) fn partition(&mut self, key: Option<&[u8]>) -> fmt::Result {
        let Some(key) = key else { return Ok(()) };
        self.put(";pk=:")?;
        for bytes in key.chunks(3) {
            // 24 bits, the first byte on top, make 4 digits; digits without a bit are padding.
            let bits = [16u32, 8, 0].into_iter().zip(bytes);
            let bits = bits.fold(0, |bits, (shift, byte)| bits | u32::from(*byte).wrapping_shl(shift));
            for (i, shift) in [18, 12, 6, 0].into_iter().enumerate() {
                let at = (bits.wrapping_shr(shift) & 63) as usize;
                let digit = BASE64.get(at..at.wrapping_add(1)).filter(|_| i <= bytes.len());
                self.put(digit.unwrap_or("="))?;
            }
        }
        self.put(":")
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;
    use std::string::{String, ToString};

    fn written(write: impl FnOnce(&mut Text<&mut dyn FnMut(&str) -> fmt::Result>) -> fmt::Result) -> String {
        let mut out = String::new();
        let mut sink = |piece: &str| {
            out.push_str(piece);
            Ok(())
        };
        write(&mut Text(&mut sink)).expect("a String takes all");
        out
    }

    #[test]
    fn numbers_have_all_their_digits_and_no_other() {
        let powers = (0..20).map(|places| 10u64.wrapping_pow(places));
        let near = powers.flat_map(|n| [n.wrapping_sub(1), n, n.wrapping_mul(7)]);
        for number in near.chain([1_234_567_890, u64::MAX]) {
            assert_eq!(written(|text| text.number(number)), number.to_string());
        }
    }

    #[test]
    fn fractions_have_nine_places() {
        for (whole, billionths, want) in [
            (0, 0, "0.000000000"),
            (7, 1, "7.000000001"),
            (10, 200_000_000, "10.200000000"),
            (u64::MAX, 999_999_999, "18446744073709551615.999999999"),
        ] {
            assert_eq!(written(|text| text.fixed(whole, billionths)), want);
        }
    }

    #[test]
    fn what_would_end_a_text_is_escaped() {
        for (text, want) in [
            ("", "\"\""),
            ("plain", "\"plain\""),
            ("\"\\\n", "\"\\\"\\\\\\n\""),
            ("a\nb\nü", "\"a\\nb\\nü\""),
        ] {
            assert_eq!(written(|to| to.string(text)), want);
        }
    }
}

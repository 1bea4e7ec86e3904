//! The spelling of fields: integers, strings and byte sequences of structured fields (RFC 9651), into any sink.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use core::fmt;

/// The largest integer of structured fields: 15 digits.
const MOST: u64 = 999_999_999_999_999;

/// The value of each digit of such an integer.
const POWERS: [u64; 15] = {
    let mut powers = [1u64; 15];
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

    /// Writes an integer of structured fields.
    pub(crate) fn number(&mut self, number: u64) -> fmt::Result {
        let (mut rest, mut started) = (number.min(MOST), false);
        for power in POWERS {
            // At most nine times.
            let mut digits = DIGITS.iter();
            let mut digit = digits.next();
            while let (Some(less), true) = (rest.checked_sub(power), digit.is_some()) {
                (rest, digit) = (less, digits.next());
                started = true;
            }
            if started || power == 1 {
                self.put(digit.unwrap_or_else(|| impossible!(&"0")))?;
            }
        }
        Ok(())
    }

    pub(crate) fn parameter(&mut self, key: &str, number: u64) -> fmt::Result {
        self.put(key)?;
        self.number(number)
    }

    /// Writes a String of structured fields: in quotes, with a backslash before quotes and backslashes.
    pub(crate) fn string(&mut self, text: &str) -> fmt::Result {
        self.put("\"")?;
        let mut from = 0;
        for (at, _) in text.match_indices(['"', '\\']) {
            self.put(text.get(from..at).unwrap_or_else(|| impossible!("")))?;
            self.put("\\")?;
            from = at;
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

    #[test]
    fn numbers_have_all_their_digits_and_no_other() {
        let written = |number| {
            let mut out = String::new();
            let mut text = Text(|piece: &str| {
                out.push_str(piece);
                Ok(())
            });
            text.number(number).expect("a String takes all");
            out
        };
        let powers = (0..15).map(|places| 10u64.wrapping_pow(places));
        for number in powers.flat_map(|n| [n.wrapping_sub(1), n, n.wrapping_mul(7)]).chain([1_234_567_890]) {
            assert_eq!(written(number), number.to_string());
        }
        assert_eq!([MOST, u64::MAX].map(written), ["999999999999999", "999999999999999"]);
    }
}

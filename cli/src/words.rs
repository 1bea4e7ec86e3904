//! Numbers in words: shares, sizes, chances, counts, times.

/// A share as percents, with the digits that matter.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        _ if value == 0.0 => "0 %".into(),
        _ if value < 0.01 => "< 0.01 %".into(),
        _ if value < 1.0 => format!("{value:.2} %"),
        _ => format!("{value:.1} %"),
    }
}

/// A size, in bytes where it is small.
pub fn bytes(count: u64) -> String {
    match count {
        0..10_240 => format!("{count} bytes"),
        10_240..10_485_760 => format!("{} KiB", count.div_ceil(1 << 10)),
        _ => format!("{} MiB", count.div_ceil(1 << 20)),
    }
}

/// A chance; below what the library tells apart it says so.
pub fn chance(chance: f64) -> String {
    if chance == 0.0 {
        "below 1e-9".into()
    } else {
        format!("{chance:e}")
    }
}

/// What stands before a number that may be an estimate.
pub fn about(is_estimate: bool) -> &'static str {
    if is_estimate {
        "about "
    } else {
        ""
    }
}

/// A count and what it counts.
pub fn plural(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// The unit in which a time is said, in nanoseconds, and its name.
fn unit(ns: u128) -> (u128, &'static str) {
    match ns {
        0..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        1_000_000_000..120_000_000_000 => (1_000_000_000, "s"),
        120_000_000_000..7_200_000_000_000 => (60_000_000_000, "min"),
        7_200_000_000_000..172_800_000_000_000 => (3_600_000_000_000, "h"),
        _ => (86_400_000_000_000, "days"),
    }
}

/// A time with three digits, rounded: that of one unit, which its decimals tell from others.
pub fn interval(ns: f64) -> String {
    let (unit, name) = unit(ns as u128);
    let value = ns / unit as f64;
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {name}")
}

/// A time, with one decimal, never more than it is.
pub fn span(ns: u128) -> String {
    if ns == 0 {
        return "0 s".into();
    }
    let (unit, name) = unit(ns);
    let tenths = ns * 10 / unit;
    match tenths % 10 {
        0 => format!("{} {name}", tenths / 10),
        rest => format!("{}.{rest} {name}", tenths / 10),
    }
}

/// Returns a text, or only its start if it has more than `most` characters.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['\u{2026}']).collect(),
    }
}

/// Breaks a text at spaces into lines of at most 118 characters; the lines after the first are indented.
pub fn wrap(text: &str) -> String {
    let (mut out, mut length) = (String::new(), 0);
    for word in text.split(' ') {
        let wide = word.chars().count();
        if length > 0 && length + 1 + wide > 118 {
            out += "\n  ";
            length = 2;
        } else if length > 0 {
            out.push(' ');
            length += 1;
        }
        out += word;
        length += wide;
    }
    out
}

/// Shows a text of a client on one line, so that two different ones look different.
pub fn escaped(text: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in text.utf8_chunks() {
        shown.extend(chunk.valid().escape_debug());
        chunk.invalid().iter().for_each(|byte| shown += &format!("\\x{byte:02x}"));
    }
    shown
}

/// The bytes of a text that [`escaped`] shows. None if a backslash stands for nothing.
pub fn unescaped(shown: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), std::str::from_utf8(shown).ok()?);
    while let Some((plain, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        // A sign is no digit.
        let number = |digits: &str| u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
        let (kind, after) = after.split_at_checked(1)?;
        let (made, after) = match kind {
            "\\" | "'" | "\"" => (kind.into(), after),
            "0" => (vec![0], after),
            "t" => (vec![b'\t'], after),
            "n" => (vec![b'\n'], after),
            "r" => (vec![b'\r'], after),
            "x" => {
                let (digits, after) = after.split_at_checked(2)?;
                (vec![u8::try_from(number(digits)?).ok()?], after)
            }
            "u" => {
                let (digits, after) = after.strip_prefix('{')?.split_once('}')?;
                (char::from_u32(number(digits)?)?.to_string().into(), after)
            }
            _ => return None,
        };
        bytes.extend(made);
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_unit_is_rounded_to_three_digits() {
        for (ns, want) in [
            (0.5, "0.5 ns"),
            (333.3, "333 ns"),
            (8_571_428_571.4, "8.57 s"),
            (100_000_000.0, "100 ms"),
            (60_000_000_000.0, "60 s"),
            (62_500_000_000.0, "62.5 s"),
            (300_000_000_000.0, "5 min"),
            (7_200_000_000_000.0, "2 h"),
            (172_800_000_000_000.0, "2 days"),
        ] {
            assert_eq!(interval(ns), want);
        }
    }
}

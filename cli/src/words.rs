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

/// A time, with one decimal, never more than it is.
pub fn span(ns: u128) -> String {
    let (unit, name) = match ns {
        0 => return "0 s".into(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        1_000_000_000..120_000_000_000 => (1_000_000_000, "s"),
        120_000_000_000..7_200_000_000_000 => (60_000_000_000, "min"),
        7_200_000_000_000..172_800_000_000_000 => (3_600_000_000_000, "h"),
        _ => (86_400_000_000_000, "days"),
    };
    let tenths = ns * 10 / unit;
    match tenths % 10 {
        0 => format!("{} {name}", tenths / 10),
        rest => format!("{}.{rest} {name}", tenths / 10),
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

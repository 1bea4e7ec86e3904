//! Pictures of the page, as SVG in it. Each has a title and a description for screen readers.

use std::cmp::Reverse;
use std::fmt::Write;

use super::limits::{HoursReport, TimelineReport};
use super::report::{PeakReport, Report};
use crate::words::cut;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 240.0;
/// The frame of a picture: left, right, top and bottom of what it shows.
const FRAME: [f64; 4] = [64.0, 704.0, 28.0, 206.0];

/// Most keys of a picture, and of the table with its numbers.
pub const KEYS: usize = 1000;
/// Characters of a key in a table, and where the pointer is on it.
pub const TITLE: usize = 200;

/// Those of the keys that the page shows: the first ones.
pub fn shown<T>(keys: &[T]) -> &[T] {
    &keys[..keys.len().min(KEYS)]
}

/// Escapes a text for an element or an attribute.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

/// Starts a picture.
fn svg(id: &str, height: f64, title: &str, description: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-about\">\
         <title id=\"{id}-title\">{}</title><desc id=\"{id}-about\">{}</desc>\n",
        escape(title),
        escape(description)
    )
}

/// The least round number that is not below: 1, 2 or 5 and zeros.
fn round(value: u64) -> u64 {
    let mut power = 1u64;
    loop {
        for digit in [1, 2, 5] {
            if power.saturating_mul(digit) >= value {
                return power.saturating_mul(digit);
            }
        }
        power = power.saturating_mul(10);
    }
}

/// A number with k, M, G, T, P or E.
fn short(mut value: u64) -> String {
    let mut units = ["", "k", "M", "G", "T", "P", "E"].iter();
    let mut unit = units.next();
    while value >= 10_000 {
        (value, unit) = (value / 1_000, units.next());
    }
    format!("{value}{}", unit.unwrap_or(&""))
}

/// About how wide a letter is: half that of a small one is 1.
fn width(c: char) -> usize {
    match c {
        'm' | 'w' | 'A'..='Z' | '#' | '%' | '&' | '+' | '<'..='>' | '@' | '~' => 3,
        ' '..='~' => 2,
        _ => 4,
    }
}

/// About how long a text is.
fn length(text: &str) -> f64 {
    text.chars().map(width).sum::<usize>() as f64 * 3.9
}

/// Shortens a name that is too long for a picture: its beginning, its end and its number in the list remain. The number
/// keeps it apart from others.
fn fitted(name: &str, at: usize) -> String {
    const MOST: usize = 62;
    let wide = |text: &str| text.chars().map(width).sum::<usize>();
    if wide(name) <= MOST {
        return name.to_owned();
    }
    let number = format!(" #{}", at + 1);
    let half = (MOST - wide(&number)) / 2 - 2;
    let part = |letters: &mut dyn Iterator<Item = char>| -> Vec<char> {
        let mut used = 0;
        let fits = |c: &char| {
            used += width(*c);
            used <= half
        };
        letters.take_while(fits).collect()
    };
    let (head, tail) = (part(&mut name.chars()), part(&mut name.chars().rev()));
    head.into_iter().chain(['\u{2026}']).chain(tail.into_iter().rev()).chain(number.chars()).collect()
}

/// What is written in a picture: where each text begins and ends, and its line.
#[derive(Default)]
struct Texts(Vec<[f64; 3]>);

impl Texts {
    /// Writes a text that is in the picture and over no other one; returns whether it did.
    fn put(&mut self, out: &mut String, x: f64, y: f64, anchor: &str, text: &str) -> bool {
        let from = match anchor {
            "start" => x,
            "middle" => x - length(text) / 2.0,
            _ => x - length(text),
        };
        let to = from + length(text);
        let is_free =
            |[begin, end, line]: &[f64; 3]| to + 4.0 < *begin || from > *end + 4.0 || (y - line).abs() > 13.5;
        let fits = from >= 0.0 && to <= WIDTH && self.0.iter().all(is_free);
        if fits {
            label(out, x, y, anchor, text);
            self.0.push([from, to, y]);
        }
        fits
    }

    /// A line across, with its number.
    fn level(&mut self, out: &mut String, y: f64, text: &str) {
        let [left, right, ..] = FRAME;
        let _ =
            writeln!(out, "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
        self.put(out, left - 8.0, y + 4.0, "end", text);
    }
}

fn label(out: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape(text));
}

/// The time of a day, of a start such as 2023-11-14T22:13:20Z. It has the day if all parts together last longer than a
/// day, and seconds if a part is shorter than a minute.
fn clock(start: &str, part_seconds: f64, days: bool) -> &str {
    let from = if days { 5 } else { 11 };
    let to = if part_seconds < 60.0 { 19 } else { 16 };
    start.get(from..to).unwrap_or(start)
}

/// Times below a picture, where there is room for them.
fn times(
    out: &mut String,
    texts: &mut Texts,
    starts: &[String],
    part_seconds: f64,
    x: impl Fn(usize) -> f64,
    y: f64,
) {
    let days = part_seconds * starts.len() as f64 > 86_400.0;
    for (at, start) in starts.iter().enumerate() {
        texts.put(out, x(at), y, "middle", &clock(start, part_seconds, days).replace('T', " "));
    }
}

/// What is admitted and what is refused over time.
pub fn timeline(line: &TimelineReport, id: &str) -> String {
    let [left, right, top, bottom] = FRAME;
    let most = round(line.came.iter().copied().max().unwrap_or(1).max(1));
    let refused: u64 = line.refused.iter().sum();
    let about = format!("{} records in all, {refused} of them refused.", line.came.iter().sum::<u64>());
    let mut out = svg(id, HEIGHT, "Records admitted and refused over time", &about);
    let y = |value: u64| bottom - (bottom - top) * value as f64 / most as f64;
    let mut texts = Texts::default();
    // Half of 1 is 0, too, which is written once.
    [0, most / 2, most].iter().for_each(|value| texts.level(&mut out, y(*value), &short(*value)));
    let step = (right - left) / line.came.len().max(1) as f64;
    let x = |at: usize| left + step * at as f64;
    let width = (step * 0.86).max(0.5);
    for (at, (came, refused)) in line.came.iter().zip(&line.refused).enumerate() {
        let start = line.starts.get(at).map_or("", |start| start);
        let _ = write!(
            out,
            "<g><title>{}: {} admitted, {refused} refused</title>",
            escape(start),
            came - refused
        );
        for (class, from, to) in [("pass", 0, came - refused), ("no", came - refused, *came)] {
            if to > from {
                let (high, low) = (y(to), y(from));
                let _ = write!(
                    out,
                    "<rect class=\"{class}\" x=\"{:.1}\" y=\"{high:.1}\" width=\"{width:.1}\" \
                    height=\"{:.1}\"/>",
                    x(at),
                    low - high
                );
            }
        }
        out += "</g>\n";
    }
    for (at, (class, name)) in [("pass", "admitted"), ("no", "refused")].iter().enumerate() {
        let x = right - 170.0 + 90.0 * at as f64;
        let _ = write!(
            out,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"11\" height=\"11\"/>",
            top - 22.0
        );
        texts.put(&mut out, x + 16.0, top - 12.0, "start", name);
    }
    times(&mut out, &mut texts, &line.starts, line.part_seconds, |at| x(at) + step / 2.0, bottom + 18.0);
    out + "</svg>"
}

/// The same alone, as a file, with the style of the page and the limit over it.
pub fn alone(line: &TimelineReport, limit: &str, style: &str) -> String {
    let (came, refused): (u64, u64) = (line.came.iter().sum(), line.refused.iter().sum());
    let mut head = String::new();
    label(&mut head, FRAME[0], FRAME[2] - 12.0, "start", &format!("{limit}: {refused} of {came} refused"));
    let svg = timeline(line, "traffic").replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
    svg.replacen("<title", &format!("<style>{style}</style><title"), 1).replacen(
        "</svg>",
        &(head + "</svg>\n"),
        1,
    )
}

/// How many keys need which burst; those beyond `burst` are in the other colour.
pub fn peaks(peaks: &[PeakReport], burst: Option<u64>, id: &str) -> String {
    let [left, right, top, bottom] = FRAME;
    let most = peaks.iter().map(|peak| peak.keys).max().unwrap_or(1).max(1);
    let keys: u64 = peaks.iter().map(|peak| peak.keys).sum();
    let mut out = svg(id, HEIGHT, "Keys by the burst that they need", &format!("{keys} keys in all."));
    // One key is to be seen next to a million.
    let height =
        |keys: u64| if keys == 0 { 0.0 } else { (1.0 + (keys as f64).ln()) / (1.0 + (most as f64).ln()) };
    let y = |keys: u64| bottom - (bottom - top) * 0.9 * height(keys);
    let mut texts = Texts::default();
    texts.level(&mut out, bottom, "0");
    let step = (right - left) / peaks.len().max(1) as f64;
    let mut last = 0;
    for (at, peak) in peaks.iter().enumerate() {
        let (x, high) = (left + step * at as f64, y(peak.keys));
        let class = if burst.is_some_and(|burst| last >= burst) { "no" } else { "pass" };
        if peak.keys > 0 {
            let _ = writeln!(
                out,
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{high:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
                <title>{} keys need a burst of {} to {}</title></rect>",
                x + 2.0,
                step - 4.0,
                bottom - high,
                peak.keys,
                last + 1,
                peak.burst
            );
            texts.put(&mut out, x + step / 2.0, high - 4.0, "middle", &short(peak.keys));
        }
        texts.put(&mut out, x + step / 2.0, bottom + 18.0, "middle", &short(peak.burst));
        if let Some(burst) = burst.filter(|burst| (last..peak.burst).contains(burst)) {
            let share = (burst - last) as f64 / (peak.burst - last) as f64;
            let x = x + step * share;
            let _ = writeln!(
                out,
                "<line class=\"edge\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{bottom}\"/>"
            );
        }
        last = peak.burst;
    }
    out + "</svg>"
}

/// Who is refused when: a row for each key.
pub fn hours(hours: &HoursReport, id: &str) -> String {
    const ROW: f64 = 20.0;
    let (left, right, top) = (250.0, 704.0, 10.0);
    let keys = shown(&hours.keys);
    let rows = keys.len() as f64;
    let most = keys.iter().flat_map(|key| &key.refused).copied().max().unwrap_or(1).max(1);
    let about = format!("{} keys; the most in one cell is {most}.", keys.len());
    let mut out = svg(id, top + ROW * rows + 30.0, "Who is refused, and when", &about);
    let mut texts = Texts::default();
    let step = (right - left) / hours.starts.len().max(1) as f64;
    for (row, key) in keys.iter().enumerate() {
        let y = top + ROW * row as f64;
        texts.put(&mut out, left - 8.0, y + 14.0, "end", &fitted(&key.key, row));
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>",
            y + ROW - 0.5
        );
        for (at, count) in key.refused.iter().enumerate().filter(|(_, count)| **count > 0) {
            // A cell grows with its count, so that it is read without colours, too.
            let share = (*count as f64 / most as f64).sqrt();
            let (wide, high) = ((step - 1.0) * (0.2 + 0.8 * share), (ROW - 4.0) * (0.2 + 0.8 * share));
            let (x, y) = (left + step * (at as f64 + 0.5) - wide / 2.0, y + ROW / 2.0 - high / 2.0);
            let start = hours.starts.get(at).map_or("", |start| start);
            let _ = writeln!(
                out,
                "<rect class=\"no\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\">\
                <title>{} from {}: {count} refused</title></rect>",
                escape(&cut(&key.key, TITLE)),
                escape(start)
            );
        }
    }
    let below = top + ROW * rows + 18.0;
    let x = |at: usize| left + step * (at as f64 + 0.5);
    times(&mut out, &mut texts, &hours.starts, hours.part_seconds, x, below);
    out + "</svg>"
}

/// The curves of the neediest keys over all rates, and the limits. Both axes are logarithmic.
pub fn curves(report: &Report, id: &str) -> String {
    let [left, right, top, bottom] = FRAME;
    let points =
        report.limits.iter().filter_map(|limit| Some((&*limit.limit, limit.per_second?, limit.burst?)));
    let points: Vec<_> = points.collect();
    let rates = report.rates.iter().map(|rate| rate.per_second).chain(points.iter().map(|point| point.1));
    let (low, high) = rates.fold((f64::MAX, 0f64), |(low, high), rate| (low.min(rate), high.max(rate)));
    let neediest = shown(&report.neediest);
    let needed = neediest.iter().flat_map(|key| &key.needed).copied();
    let most = round(needed.chain(points.iter().map(|point| point.2)).max().unwrap_or(1).max(10));
    let about = format!("{} keys; the most that one of them needs is read from the table.", neediest.len());
    let mut out = svg(id, HEIGHT, "The burst that keys need, by rate", &about);
    let x = |rate: f64| left + 10.0 + (right - left - 20.0) * (rate / low).ln() / (high / low).ln().max(1e-9);
    let y = |burst: u64| bottom - (bottom - top) * (burst.max(1) as f64).ln() / (most as f64).ln();
    let mut texts = Texts::default();
    let powers = std::iter::successors(Some(1u64), |power| power.checked_mul(10));
    powers
        .take_while(|power| *power <= most)
        .for_each(|power| texts.level(&mut out, y(power), &short(power)));
    for rate in &report.rates {
        texts.put(&mut out, x(rate.per_second), bottom + 18.0, "middle", &rate.rate);
    }
    for key in neediest.iter().rev() {
        let line = report.rates.iter().zip(&key.needed);
        let line: Vec<_> =
            line.map(|(rate, needed)| format!("{:.1},{:.1}", x(rate.per_second), y(*needed))).collect();
        let _ = writeln!(
            out,
            "<polyline class=\"curve\" points=\"{}\"><title>{}</title></polyline>",
            line.join(" "),
            escape(&cut(&key.key, TITLE))
        );
    }
    // From above, so that a name that makes room is on the side of its mark.
    let mut points: Vec<_> = points.into_iter().enumerate().collect();
    points.sort_by_key(|(_, point)| Reverse(point.2));
    for (at, (name, rate, burst)) in points {
        let (x, y) = (x(rate), y(burst));
        let _ = writeln!(
            out,
            "<path class=\"mark\" d=\"M{x:.1} {:.1}l6 6l-6 6l-6 -6z\"><title>{}</title></path>",
            y - 6.0,
            escape(name)
        );
        let name = fitted(name, at);
        let (x, anchor) =
            if x + 10.0 + length(&name) > right { (x - 10.0, "end") } else { (x + 10.0, "start") };
        // Below or above those of other limits, where there is room.
        let below = (0..14).map(|row| y - 6.0 + 14.0 * f64::from(row));
        let above = (1..14).map(|row| y - 6.0 - 14.0 * f64::from(row));
        let mut inside = below.chain(above).filter(|y| (14.0..bottom).contains(y));
        let _ = inside.any(|y| texts.put(&mut out, x, y, anchor, &name));
    }
    // Names of the curves, where there is room for them.
    let first = report.rates.first().map_or(low, |rate| rate.per_second);
    for (at, key) in neediest.iter().enumerate() {
        let name = fitted(&key.key, at);
        let x = (x(first) + 4.0).min(right - length(&name));
        texts.put(&mut out, x, y(key.needed.first().copied().unwrap_or(1)) - 5.0, "start", &name);
    }
    out + "</svg>"
}

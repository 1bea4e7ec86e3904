//! The bar chart: the time of a decision, ours next to floors and peers. SVG, written by hand.
//!
//! ```text
//!  title, machine, legend
//!  panel heading
//!                                0    5    10   15 ns            one linear axis a panel
//!              label of a bar |======    5.2
//! ```

use std::fmt::Write as _;

const WIDTH: f64 = 980.0;
/// Where bars begin, and how long the longest may be.
const LEFT: f64 = 380.0;
const LENGTH: f64 = 520.0;
/// Width of a letter of the numbers, and what stays free around them.
const LETTER: f64 = 6.6;
const GAP: f64 = 6.0;
/// Height of a bar and of what it takes.
const BAR: f64 = 14.0;
const STEP: f64 = 20.0;

type Bar = (&'static str, &'static str);

const PANELS: &[(&str, &[Bar])] = &[
    (
        "One limit",
        &[
            ("floor.cmpxchg", "one load + lock cmpxchg"),
            ("cell.conforming", "tatcell, conforming"),
            ("cell.denied", "tatcell, denied"),
            ("cell.exclusive", "tatcell, one owner"),
            ("peer.governor_conforming", "governor, conforming"),
            ("peer.governor_denied", "governor, denied"),
            ("peer.ratelimit_conforming", "ratelimit, conforming"),
            ("peer.srtcm_conforming", "DPDK srTCM, not shared between threads"),
        ],
    ),
    (
        "Several limits at once, from C, 1e3 clients",
        &[
            ("c.singles2", "two keys, two calls"),
            ("c.chain2", "two keys, chain"),
            ("c.prepared2", "two keys, prepared chain"),
            ("c.singles5", "five keys, five calls"),
            ("c.ladder6", "five prefixes of an IPv6 address, ladder"),
            ("c.chain3_denied3", "three keys, chain, the last one denies"),
            ("c.ladder6_denied", "five prefixes, ladder, denied"),
        ],
    ),
    (
        "Several limits at once, from C, 1e6 clients",
        &[
            ("c.singles2_1e6", "two keys, two calls"),
            ("c.chain2_1e6", "two keys, chain"),
            ("c.chains2_1e6", "two keys, prepared chains, burst of 32"),
            ("c.singles5_1e6", "five keys, five calls"),
            ("c.ladder6_1e6", "five prefixes of an IPv6 address, ladder"),
            ("c.ladders6_1e6", "five prefixes, ladders, burst of 32"),
        ],
    ),
    (
        "1e3 keys",
        &[
            ("table1e3.ahead64", "tatcell, burst of 64, next one in between"),
            ("table1e3.burst32", "tatcell, burst of 32"),
            ("table1e3.single", "tatcell, single call"),
            ("table1e3.single_denied", "tatcell, single call, denied"),
            ("peer1e3.hash_srtcm_bulk32", "DPDK hash bulk of 32 + srTCM"),
            ("peer1e3.hash_srtcm", "DPDK hash + srTCM"),
            ("peer1e3.map", "mutex + unordered_map"),
            ("peer1e3.pingora", "pingora-limits (a sketch; with its clock)"),
            ("peer1e3.foldhash", "governor, foldhash"),
            ("peer1e3.governor", "governor as shipped"),
        ],
    ),
    (
        "1e6 keys",
        &[
            ("floor1e6.ahead64", "prefetch 64 ahead + lock cmpxchg, no table"),
            ("table1e6.ahead64", "tatcell, burst of 64, next one in between"),
            ("table1e6.burst32", "tatcell, burst of 32"),
            ("table1e6.single", "tatcell, single call"),
            ("peer1e6.index_srtcm_ahead32", "DPDK srTCM, index given, 32 ahead"),
            ("peer1e6.hash_srtcm_bulk32", "DPDK hash bulk of 32 + srTCM"),
            ("peer1e6.hash_srtcm", "DPDK hash + srTCM"),
            ("peer1e6.map", "mutex + unordered_map"),
            ("peer1e6.pingora", "pingora-limits (a sketch; with its clock)"),
            ("peer1e6.foldhash", "governor, foldhash"),
            ("peer1e6.governor", "governor as shipped"),
        ],
    ),
    (
        "1e7 keys",
        &[
            ("floor1e7.ahead64", "prefetch 64 ahead + lock cmpxchg, no table"),
            ("table1e7.ahead64", "tatcell, burst of 64, next one in between"),
            ("table1e7.burst32", "tatcell, burst of 32"),
            ("table1e7.single", "tatcell, single call"),
            ("peer1e7.hash_srtcm_bulk32", "DPDK hash bulk of 32 + srTCM"),
            ("peer1e7.hash_srtcm", "DPDK hash + srTCM"),
            ("peer1e7.map", "mutex + unordered_map"),
            ("peer1e7.pingora", "pingora-limits (a sketch; with its clock)"),
            ("peer1e7.foldhash", "governor, foldhash"),
            ("peer1e7.governor", "governor as shipped"),
        ],
    ),
];

/// What others reported, elsewhere: ns, and the text behind the bar. If it is a range, its upper end is drawn.
const REPORTED: &[(&str, f64, &str)] = &[
    ("nginx limit_req, its code alone", 1_700.0, "1700, and 129 bytes a key"),
    ("Java, Guava in a ConcurrentHashMap", 1_500.0, "1500, and 207 bytes a key"),
    ("Go, x/time/rate in a map", 900.0, "370 to 900, and 138 bytes a key"),
];
const REPORTED_OF: &str =
    "1e6 keys, not measured in this run: reported from a trial on an Intel Sapphire Rapids machine";

/// Writes the chart of a run, whose minimum of each row is `min`; None if no bar of it was measured.
pub fn write(
    min: impl Fn(&str) -> Option<f64>,
    machine: &str,
    date: &str,
    path: &str,
) -> Result<Option<()>, String> {
    let Some(text) = draw(min, machine, date) else { return Ok(None) };
    std::fs::write(path, text).map_err(|e| format!("{path}: {e}"))?;
    Ok(Some(()))
}

fn draw(min: impl Fn(&str) -> Option<f64>, machine: &str, date: &str) -> Option<String> {
    let (mut body, mut y) = (String::new(), 96.0);
    for (title, bars) in PANELS {
        let measured = bars.iter().filter_map(|(id, label)| Some((*id, *label, min(id)?)));
        let bars: Vec<(&str, &str, f64, String)> =
            measured.map(|(id, label, ns)| (id, label, ns, format!("{ns:.1}"))).collect();
        if !bars.is_empty() {
            panel(&mut body, title, &bars, &mut y);
        }
    }
    if body.is_empty() {
        return None;
    }
    if let Some(ours) = min("table1e6.single") {
        let text = format!("{ours:.1}, and 17 bytes a key");
        let mut bars = vec![("table1e6.single", "tatcell, single call, this run", ours, text)];
        bars.extend(REPORTED.iter().map(|(what, ns, text)| ("peer", *what, *ns, text.to_string())));
        panel(&mut body, REPORTED_OF, &bars, &mut y);
    }
    let mut out = String::new();
    let text = format!(r#"font-family="Helvetica, Arial, sans-serif" font-size="13" fill="{INK}""#);
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" {text}>"#
    );
    let _ = writeln!(out, r#"<rect width="{WIDTH}" height="{y}" fill="white"/>"#);
    label(
        &mut out,
        24.0,
        32.0,
        "start",
        "Time per decision (ns, shorter is better)",
        r#" font-size="18" font-weight="bold""#,
    );
    let what = format!("{machine}; {date}; fastest round, conforming unless labelled");
    label(&mut out, 24.0, 52.0, "start", &what, GREY_TEXT);
    let mut x = 24.0;
    for (colour, text, width) in
        [(OURS, "tatcell", 90.0), (PEER, "others", 85.0), (FLOOR, "bare operation", 0.0)]
    {
        let _ = writeln!(out, r#"<rect x="{x}" y="64" width="14" height="14" fill="{colour}"/>"#);
        label(&mut out, x + 20.0, 76.0, "start", text, "");
        x += width;
    }
    out += &body;
    out += "</svg>\n";
    Some(out)
}

const INK: &str = "#1a1a1a";
const OURS: &str = "#1f6fb4";
const PEER: &str = "#e08a2e";
const FLOOR: &str = "#8c8c8c";
const GREY_TEXT: &str = r##" font-size="11" fill="#555555""##;

fn panel(out: &mut String, title: &str, bars: &[(&str, &str, f64, String)], y: &mut f64) {
    let most = bars.iter().map(|bar| bar.2).fold(0.0, f64::max);
    // Every number has its place behind its bar, the longest one too.
    let widest = bars.iter().map(|bar| bar.3.len()).max().unwrap_or(0) as f64 * LETTER;
    let length = LENGTH.min(WIDTH - LEFT - widest - 2.0 * GAP);
    let tick = tick(most);
    let scale = length / (most / tick).ceil() / tick;
    // The heading has a line of its own, above the numbers of the axis.
    label(out, 24.0, *y + 16.0, "start", title, r#" font-size="15" font-weight="bold""#);
    let (top, bottom) = (*y + 40.0, *y + 44.0 + STEP * bars.len() as f64);
    let mut at = 0.0;
    while at * scale <= length + 0.5 {
        let x = LEFT + at * scale;
        let _ = writeln!(out, r##"<path d="M{x:.1} {top:.1}V{bottom:.1}" stroke="#dddddd"/>"##);
        label(out, x, *y + 35.0, "middle", &format!("{at}"), GREY_TEXT);
        at += tick;
    }
    for (i, (id, text, ns, value)) in bars.iter().enumerate() {
        let colour = match id.split('.').next().unwrap_or("") {
            group if group.starts_with("floor") => FLOOR,
            group if group.starts_with("peer") => PEER,
            _ => OURS,
        };
        let (row, long) = (top + 5.0 + STEP * i as f64, (ns * scale).max(1.0));
        label(out, LEFT - 10.0, row + 11.5, "end", text, "");
        let _ = writeln!(
            out,
            r#"<rect x="{LEFT}" y="{row:.1}" width="{long:.1}" height="{BAR}" fill="{colour}"/>"#
        );
        // White under the number: a grid line may cross it.
        let (x, wide) = (LEFT + long + 1.0, value.len() as f64 * LETTER + GAP);
        let _ =
            writeln!(out, r#"<rect x="{x:.1}" y="{row:.1}" width="{wide:.1}" height="{BAR}" fill="white"/>"#);
        label(out, x + GAP, row + 11.5, "start", value, r#" font-size="12""#);
    }
    *y = bottom + 20.0;
}

/// 1, 2 or 5 times a power of ten, so that an axis to `most` has four to ten of them.
fn tick(most: f64) -> f64 {
    let power = 10f64.powf((most / 4.0).log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|n| n * power).find(|tick| most / tick >= 4.0).unwrap_or(power)
}

fn label(out: &mut String, x: f64, y: f64, anchor: &str, text: &str, style: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(out, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}"{style}>{text}</text>"#);
}

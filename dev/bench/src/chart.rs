//! The bar chart: the time of a decision, ours next to floors and peers.
//!
//! ```text
//!  title, machine, legend
//!  panel heading
//!                                0    5    10   15 ns            one linear axis a panel
//!              label of a bar |======    5.2
//! ```

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const WIDTH: u32 = 980;
/// Height of what stands above the panels, of a bar, and of the rest of a panel.
const HEAD: u32 = 96;
const STEP: u32 = 20;
const AROUND: u32 = 64;
/// Where bars begin, and the width of a letter of the numbers.
const LEFT: u32 = 380;
const LETTER: u32 = 7;

const OURS: RGBColor = RGBColor(31, 111, 180);
const PEER: RGBColor = RGBColor(224, 138, 46);
const FLOOR: RGBColor = RGBColor(140, 140, 140);
const INK: RGBColor = RGBColor(26, 26, 26);
const GREY: RGBColor = RGBColor(85, 85, 85);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

/// The row of a bar, its label, its nanoseconds and the text behind it.
type Bar = (&'static str, &'static str, f64, String);

const PANELS: &[(&str, &[(&str, &str)])] = &[
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
    let bar = |(id, label)| min(id).map(|ns| (id, label, ns, format!("{ns:.1}")));
    let panels = PANELS.iter().map(|(title, bars)| (*title, bars.iter().copied().filter_map(bar).collect()));
    let mut panels: Vec<(&str, Vec<Bar>)> =
        panels.filter(|(_, bars): &(_, Vec<_>)| !bars.is_empty()).collect();
    if panels.is_empty() {
        return Ok(None);
    }
    if let Some(ours) = min("table1e6.single") {
        let text = format!("{ours:.1}, and 17 bytes a key");
        let mut bars = vec![("table1e6.single", "tatcell, single call, this run", ours, text)];
        bars.extend(REPORTED.iter().map(|(what, ns, text)| ("peer", *what, *ns, text.to_string())));
        panels.push((REPORTED_OF, bars));
    }
    let height = HEAD + panels.iter().map(|(_, bars)| height(bars)).sum::<u32>();
    let root = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    let what = format!("{machine}; {date}; fastest round, conforming unless labelled");
    let drawn = paint(&root, &what, &panels).and_then(|()| root.present());
    drawn.map(Some).map_err(|e| format!("{path}: {e}"))
}

fn height(bars: &[Bar]) -> u32 {
    AROUND + STEP * bars.len() as u32
}

fn paint<'a>(root: &Area<'a>, what: &str, panels: &[(&str, Vec<Bar>)]) -> Result<(), Failure<'a>> {
    root.fill(&WHITE)?;
    let (head, mut body) = root.split_vertically(HEAD);
    let title = ("sans-serif", 22).into_font().style(FontStyle::Bold).color(&INK);
    head.draw_text("Time per decision (ns, shorter is better)", &title, (24, 18))?;
    head.draw_text(what, &("sans-serif", 13.5).into_font().color(&GREY), (24, 44))?;
    for (x, colour, text) in [(24, OURS, "tatcell"), (114, PEER, "others"), (199, FLOOR, "bare operation")] {
        head.draw(&Rectangle::new([(x, 64), (x + 14, 78)], colour.filled()))?;
        head.draw_text(text, &("sans-serif", 16).into_font().color(&INK), (x + 20, 65))?;
    }
    for (title, bars) in panels {
        let (area, rest) = body.split_vertically(height(bars));
        panel(&area, title, bars)?;
        body = rest;
    }
    Ok(())
}

fn panel<'a>(area: &Area<'a>, title: &str, bars: &[Bar]) -> Result<(), Failure<'a>> {
    // The heading has a line of its own, above the numbers of the axis.
    let bold = ("sans-serif", 18.5).into_font().style(FontStyle::Bold).color(&INK);
    area.draw_text(title, &bold, (24, 3))?;
    let most = bars.iter().map(|bar| bar.2).fold(0.0, f64::max);
    let width = |text: &str| 12 + LETTER * text.len() as u32;
    let mut chart = ChartBuilder::on(area)
        .margin_top(26)
        .margin_bottom(20)
        .margin_left(LEFT)
        // Every number has its place behind its bar, the longest one too.
        .margin_right(20 + bars.iter().map(|bar| width(&bar.3)).max().unwrap_or(0))
        .top_x_label_area_size(18)
        .build_cartesian_2d(0.0..most, bars.len() as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .max_light_lines(0)
        .bold_line_style(RGBColor(221, 221, 221))
        .axis_style(TRANSPARENT)
        .set_all_tick_mark_size(2)
        .x_label_style(("sans-serif", 13.5).into_font().color(&GREY))
        .x_label_formatter(&|x| format!("{}", *x as f32))
        .draw()?;
    let style = |h_pos| ("sans-serif", 16).into_font().color(&INK).pos(Pos::new(h_pos, VPos::Center));
    for ((id, label, ns, text), y) in bars.iter().zip((0..).map(|i| f64::from(i) + 0.5)) {
        let colour = match id {
            id if id.starts_with("floor") => FLOOR,
            id if id.starts_with("peer") => PEER,
            _ => OURS,
        };
        chart.draw_series([Rectangle::new([(0.0, y - 0.35), (*ns, y + 0.35)], colour.filled())])?;
        // White under the number: a grid line may cross it.
        let white = Rectangle::new([(1, -7), (width(text) as i32, 7)], WHITE.filled());
        chart.draw_series([EmptyElement::at((*ns, y))
            + white
            + Text::new(text.clone(), (7, 0), style(HPos::Left))])?;
        chart.draw_series([EmptyElement::at((0.0, y)) + Text::new(*label, (-10, 0), style(HPos::Right))])?;
    }
    Ok(())
}

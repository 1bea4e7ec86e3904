//! cluster.svg: the hot key's admissions over time next to R t + B, by leases and by round trips.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::audit::Run;
use crate::schedule::{BURST, END, GO_ON, KILL, NODES, RATE, STOP};

const GREEN: RGBColor = RGBColor(30, 120, 70);
const BLUE: RGBColor = RGBColor(40, 90, 170);
const RED: RGBColor = RGBColor(190, 50, 40);
const GREY: RGBColor = RGBColor(110, 110, 110);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Writes the picture.
pub fn draw(path: &str, leases: &Run, trips: &Run) -> Result<(), Box<dyn Error + 'static>> {
    let root = SVGBackend::new(path, (1100, 560)).into_drawing_area();
    paint(&root, leases, trips).map_err(|e| format!("cannot write {path}: {e}"))?;
    root.present().map_err(|e| format!("cannot write {path}: {e}").into())
}

fn paint(root: &Area<'_>, leases: &Run, trips: &Run) -> Result<(), String> {
    let failed = |e: &dyn Error| e.to_string();
    root.fill(&WHITE).map_err(|e| failed(&e))?;
    let (head, body) = root.split_vertically(64);
    let title = ("sans-serif", 24).into_font().style(FontStyle::Bold);
    let small = ("sans-serif", 15).into_font();
    let said =
        format!("tatcell-cluster: {NODES} nodes, one hot key, {RATE}/s for all of them, burst {BURST}");
    head.draw_text(&said, &title.color(&BLACK), (20, 12)).map_err(|e| failed(&e))?;
    let about = "admitted by all nodes over time; also Zipf keys and a flood of keys that come once; \
                 red: R t + B, above which nothing may come";
    head.draw_text(about, &small.color(&GREY), (20, 42)).map_err(|e| failed(&e))?;
    let cells = body.split_evenly((1, 2));
    panel(&cells[0], "pieces of the axis and reserves", leases, GREEN)?;
    panel(&cells[1], "the same script, one round trip a decision", trips, BLUE)
}

fn panel(area: &Area<'_>, title: &str, run: &Run, colour: RGBColor) -> Result<(), String> {
    let text = |e: DrawingAreaErrorKind<std::io::Error>| e.to_string();
    // A point for each hundredth of a second.
    let admitted: Vec<(f64, f64)> = (0..=(END * 100.0) as usize)
        .map(|i| (i as f64 / 100.0, run.hot.partition_point(|at| *at < i as f64 / 100.0) as f64))
        .collect();
    let first = run.hot.first().copied().unwrap_or(0.0);
    let bound = |t: f64| BURST as f64 + RATE as f64 * (t - first);
    let top = bound(END) * 1.05;
    let (chart_area, words) = area.split_vertically(396);
    let mut chart = ChartBuilder::on(&chart_area)
        .caption(title, ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(26)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..END, 0.0..top)
        .map_err(text)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(0)
        .bold_line_style(RGBColor(225, 225, 225))
        .y_labels(6)
        .x_label_formatter(&|x| format!("{x:.0} s"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .draw()
        .map_err(text)?;
    let away = Rectangle::new([(STOP, 0.0), (GO_ON, top)], RGBColor(235, 235, 235).filled());
    chart.draw_series([away]).map_err(text)?;
    let bounds = LineSeries::new([(first, bound(first)), (END, bound(END))], RED.stroke_width(2));
    chart.draw_series(bounds).map_err(text)?;
    chart.draw_series(LineSeries::new([(KILL, 0.0), (KILL, top)], GREY.stroke_width(1))).map_err(text)?;
    chart
        .draw_series(AreaSeries::new(admitted, 0.0, colour.mix(0.25)).border_style(colour.stroke_width(2)))
        .map_err(text)?;
    let font = ("sans-serif", 14).into_font().color(&GREY);
    let marks = [("a node is killed", KILL + 0.06, 0.05), ("store stopped", STOP + 0.35, 0.95)];
    let marks = marks.map(|(said, x, y)| Text::new(said, (x, top * y), font.clone()));
    chart.draw_series(marks).map_err(text)?;
    let [decisions, asks, p50, p99, longest] = run.speed();
    let ns = |ns: f64| match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns => format!("{:.1} ms", ns / 1e6),
    };
    let lines = [
        format!("{decisions:.0} decisions a second a node, {asks:.4} asks of the store a decision"),
        format!("hot key: p50 {}, p99 {}, the longest {}", ns(p50), ns(p99), ns(longest)),
        format!("{} admitted; at most {:.0} in {END} s", run.hot.len(), bound(END)),
    ];
    let font = ("sans-serif", 15).into_font().color(&BLACK);
    for (i, line) in lines.iter().enumerate() {
        words.draw_text(line, &font, (70, 8 + 24 * i as i32)).map_err(text)?;
    }
    Ok(())
}

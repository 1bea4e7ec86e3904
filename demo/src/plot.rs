//! demo.svg: offered against answered per class over time, the reply time, and the verdict.

use crate::schedule::{
    spray_sources, ABUSERS, ABUSER_PER_SEC, BIN_US, END_US, LIMIT_PER_SEC, POLITE, POLITE_PER_SEC, SWITCH_US,
};
use crate::verdict::{grouped, judge, speed, Outcome};
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

const GREY: RGBColor = RGBColor(150, 150, 150);
const COLOURS: [RGBColor; 4] =
    [RGBColor(30, 120, 70), RGBColor(190, 50, 40), RGBColor(40, 90, 170), RGBColor(140, 80, 160)];
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

/// Draws one value per bin as a step: both ends of the bin.
fn steps(values: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    let edge = |bin: usize| bin as f64 * BIN_US as f64 / 1e6;
    values.enumerate().flat_map(|(bin, value)| [(edge(bin), value), (edge(bin + 1), value)]).collect()
}

/// Writes the picture.
pub fn draw(path: &Path, outcome: &Outcome) -> Result<(), String> {
    let failed = |e: String| format!("cannot write {}: {e}", path.display());
    let root = SVGBackend::new(path, (1100, 980)).into_drawing_area();
    paint(&root, outcome).map_err(|e| failed(e.to_string()))?;
    root.present().map_err(|e| failed(e.to_string()))
}

fn paint<'a>(root: &Area<'a>, outcome: &Outcome) -> Result<(), Failure<'a>> {
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(66);
    let title = ("sans-serif", 24).into_font().style(FontStyle::Bold);
    let small = ("sans-serif", 15).into_font();
    let c = &outcome.calibration;
    let titles = [
        format!("{} polite sources, {}/s each", grouped(POLITE.into()), POLITE_PER_SEC * c.scale),
        format!("{ABUSERS} abusers, {}/s each", grouped((ABUSER_PER_SEC * c.scale) as u64)),
        format!("one source at exactly the limit, {LIMIT_PER_SEC}/s"),
        format!("spray: {} sources, one request each, twice", grouped(spray_sources(c.scale).into())),
    ];
    head.draw_text("tatcell: the same attack, limiter off, then on", &title.color(&BLACK), (20, 14))?;
    let about = format!(
        "offered up to {} requests per second, {:.2} times what the server can answer; limit 10/s per source, \
         burst 20; grey = offered, colour = answered",
        grouped(c.peak_per_sec as u64),
        c.peak_per_sec / c.answers_per_sec
    );
    head.draw_text(&about, &small.color(&RGBColor(70, 70, 70)), (20, 44))?;
    let cells = body.split_evenly((3, 2));
    for (class, cell) in cells.iter().take(4).enumerate() {
        rates(cell, class, &titles[class], outcome)?;
    }
    latency(&cells[4], outcome)?;
    words(&cells[5], outcome)
}

fn rates<'a>(area: &Area<'a>, class: usize, title: &str, outcome: &Outcome) -> Result<(), Failure<'a>> {
    let per_sec = 1e6 / BIN_US as f64;
    let series = |column: &[u64]| steps(column.iter().map(|n| *n as f64 * per_sec));
    let (sent, answered) = (series(&outcome.stats.sent[class]), series(&outcome.stats.answered[class]));
    let top = sent.iter().map(|p| p.1).fold(1.0, f64::max) * 1.25;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(26)
        .y_label_area_size(66)
        .build_cartesian_2d(0.0..END_US as f64 / 1e6, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(0)
        .bold_line_style(RGBColor(225, 225, 225))
        .y_labels(5)
        .x_label_formatter(&|x| format!("{x:.0} s"))
        .y_label_formatter(&|y| format!("{}/s", grouped(*y as u64)))
        .draw()?;
    let (grey, colour) = (GREY, COLOURS[class]);
    chart
        .draw_series(AreaSeries::new(sent.clone(), 0.0, grey.mix(0.25)).border_style(grey.stroke_width(2)))?;
    chart
        .draw_series(AreaSeries::new(answered, 0.0, colour.mix(0.55)).border_style(colour.stroke_width(2)))?;
    mark(&mut chart, 0.0, top, top * 0.97)
}

fn latency<'a>(area: &Area<'a>, outcome: &Outcome) -> Result<(), Failure<'a>> {
    let (bottom, top) = (0.1, 10_000.0);
    let mut chart = ChartBuilder::on(area)
        .caption("reply time of polite sources: p99 and median, ms", ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(26)
        .y_label_area_size(66)
        .build_cartesian_2d(0.0..END_US as f64 / 1e6, (bottom..top).log_scale())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(0)
        .bold_line_style(RGBColor(225, 225, 225))
        .x_label_formatter(&|x| format!("{x:.0} s"))
        .y_label_formatter(&|y| {
            if *y < 1.0 {
                format!("{y:.1} ms")
            } else {
                format!("{} ms", grouped(*y as u64))
            }
        })
        .draw()?;
    for (quantile, colour) in [(0.99, COLOURS[0].to_rgba()), (0.5, COLOURS[0].mix(0.4))] {
        let values = outcome
            .stats
            .latency
            .iter()
            .map(|h| (h.value_at_quantile(quantile) as f64 / 1e6).clamp(bottom, top));
        chart.draw_series(LineSeries::new(steps(values), colour.stroke_width(2)))?;
    }
    mark(&mut chart, bottom, top, 4_000.0)
}

/// Marks the switch in one chart, with its two words at the height `text`.
fn mark<'a, Y: Ranged<ValueType = f64>>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, Y>>,
    bottom: f64,
    top: f64,
    text: f64,
) -> Result<(), Failure<'a>> {
    let at = SWITCH_US as f64 / 1e6;
    let font = ("sans-serif", 13).into_font();
    chart.draw_series([PathElement::new(vec![(at, bottom), (at, top)], BLACK.stroke_width(2))])?;
    let left = TextStyle::from(font.clone()).pos(Pos::new(HPos::Right, VPos::Top));
    chart.draw_series([
        Text::new("limiter off", (at - 0.2, text), left),
        Text::new("limiter on", (at + 0.2, text), TextStyle::from(font)),
    ])?;
    Ok(())
}

/// Writes the verdict into the last cell.
fn words<'a>(area: &Area<'a>, outcome: &Outcome) -> Result<(), Failure<'a>> {
    let font = ("sans-serif", 13).into_font();
    let mut y = 34;
    for line in judge(outcome) {
        let (word, colour) = if line.pass { ("PASS", COLOURS[0]) } else { ("FAIL", COLOURS[1]) };
        area.draw_text(word, &font.clone().style(FontStyle::Bold).color(&colour), (14, y))?;
        for row in wrapped(&line.text.replace(" %", "\u{a0}%"), 68) {
            area.draw_text(&row, &font.color(&BLACK), (60, y))?;
            y += 17;
        }
        y += 7;
    }
    area.draw_text(&speed(outcome), &font.color(&BLACK), (60, y))
}

/// Breaks a text at spaces into rows of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    for word in text.split(' ') {
        let row = rows.last_mut().expect("never empty");
        if !row.is_empty() && row.chars().count() + 1 + word.chars().count() > width {
            rows.push(word.to_string());
        } else {
            if !row.is_empty() {
                row.push(' ');
            }
            row.push_str(word);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn wrapped_text_keeps_its_words_and_its_width() {
        let text = "nothing over-admitted of 1 234 567 decisions about 65 021 sources";
        let rows = wrapped(text, 20);
        assert!(rows.len() > 1 && rows.iter().all(|r| r.chars().count() <= 20));
        assert_eq!(rows.join(" "), text);
    }
}

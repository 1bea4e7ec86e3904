//! compare.svg: units admitted over time, one panel per stream, one line per limiter.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::limiters::ALL;
use crate::streams::{SECOND, SECONDS, UNITS};
use crate::Run;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

const GREY: RGBColor = RGBColor(160, 160, 160);

/// Colours that differ in lightness, too.
fn colour(i: usize) -> RGBColor {
    const COLOURS: [RGBColor; 9] = [
        RGBColor(20, 90, 160),
        RGBColor(110, 170, 220),
        RGBColor(190, 50, 40),
        RGBColor(235, 140, 90),
        RGBColor(30, 120, 70),
        RGBColor(140, 80, 160),
        RGBColor(90, 90, 90),
        RGBColor(180, 150, 30),
        RGBColor(20, 150, 150),
    ];
    COLOURS[i % COLOURS.len()]
}

/// Writes the picture.
pub fn draw(path: &Path, runs: &[Run]) -> Result<(), String> {
    let failed = |e: String| format!("cannot write {}: {e}", path.display());
    let root = SVGBackend::new(path, (1100, 900)).into_drawing_area();
    paint(&root, runs).map_err(|e| failed(e.to_string()))?;
    root.present().map_err(|e| failed(e.to_string()))
}

fn paint<'a>(root: &Area<'a>, runs: &[Run]) -> Result<(), Failure<'a>> {
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(92);
    let title = ("sans-serif", 24).into_font().style(FontStyle::Bold);
    head.draw_text("tatcell: the same arrivals through every algorithm", &title.color(&BLACK), (20, 12))?;
    let small = ("sans-serif", 14).into_font();
    let about = format!("limit {UNITS} a second; units admitted since the start; grey = asked for");
    head.draw_text(&about, &small.color(&RGBColor(70, 70, 70)), (20, 42))?;
    let mut x = 20;
    for (i, limiter) in ALL.iter().enumerate() {
        head.draw(&PathElement::new(vec![(x, 74), (x + 22, 74)], colour(i).stroke_width(3)))?;
        head.draw_text(limiter.name, &small.color(&BLACK), (x + 27, 67))?;
        x += 45 + 7 * limiter.name.len() as i32;
    }
    for (run, area) in runs.iter().zip(body.split_evenly((2, 2))) {
        panel(&area, run)?;
    }
    Ok(())
}

/// Counts over time, at steps that a picture can show: two points a fortieth of a second in which something passed.
fn counted(at: &[u64]) -> Vec<(f64, f64)> {
    const STEP: u64 = SECOND / 40;
    let mut points = vec![(0.0, 0.0)];
    let mut count = 0.0;
    for passed in at.chunk_by(|a, b| a / STEP == b / STEP) {
        let start = (passed[0] / STEP * STEP) as f64 / SECOND as f64;
        points.push((start, count));
        count += passed.len() as f64;
        points.push((start + STEP as f64 / SECOND as f64, count));
    }
    points.push((SECONDS as f64, count));
    points
}

fn panel<'a>(area: &Area<'a>, run: &Run) -> Result<(), Failure<'a>> {
    let top = run.stream.arrivals.len() as f64 * 1.05;
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{}: {}", run.stream.name, run.stream.about), ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(26)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..SECONDS as f64, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(0)
        .bold_line_style(RGBColor(225, 225, 225))
        .y_labels(6)
        .x_label_formatter(&|x| format!("{x:.0} s"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .draw()?;
    let asked = counted(&run.stream.arrivals);
    chart.draw_series(AreaSeries::new(asked, 0.0, GREY.mix(0.2)).border_style(GREY.stroke_width(1)))?;
    // Where lines lie on each other, the first ones show beside the last.
    for (i, admitted) in run.admitted.iter().enumerate() {
        let width = 1 + (ALL.len() - i) as u32 / 2;
        chart.draw_series(LineSeries::new(counted(admitted), colour(i).stroke_width(width)))?;
    }
    Ok(())
}

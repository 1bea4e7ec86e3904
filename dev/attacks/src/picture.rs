//! attacks.svg: innocents and abusers by policy, lasting abusers by memory, full sets compared with Erlang B.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::world::POLICIES;
use crate::Figures;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;
/// A name and points.
type Line = (String, Vec<(f64, f64)>);

const COLOURS: [RGBColor; 4] =
    [RGBColor(20, 90, 160), RGBColor(30, 120, 70), RGBColor(190, 50, 40), RGBColor(180, 150, 30)];

/// Writes the picture.
pub fn draw(path: &Path, figures: &Figures) -> Result<(), String> {
    let failed = |e: String| format!("cannot write {}: {e}", path.display());
    let root = SVGBackend::new(path, (1100, 860)).into_drawing_area();
    paint(&root, figures).map_err(|e| failed(e.to_string()))?;
    root.present().map_err(|e| failed(e.to_string()))
}

fn paint<'a>(root: &Area<'a>, f: &Figures) -> Result<(), Failure<'a>> {
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(60);
    let title = ("sans-serif", 24).into_font().style(FontStyle::Bold);
    head.draw_text("tatcell: a table under attack", &title.color(&BLACK), (20, 16))?;
    let areas = body.split_evenly((2, 2));
    let by_policy = |value: fn(&crate::world::Flood) -> f64| -> Vec<Line> {
        let line = |(i, (_, name)): (usize, &(_, &str))| {
            (name.to_string(), f.floods[i].iter().map(|row| (row.load, value(row))).collect())
        };
        POLICIES.iter().enumerate().map(line).collect()
    };
    panel(
        &areas[0],
        "innocents refused under a flood of forged keys",
        ("load", "%"),
        100.0,
        by_policy(|r| r.innocents_refused),
    )?;
    panel(
        &areas[1],
        "what abusers get beside that flood",
        ("load", "times their rate"),
        1.3,
        by_policy(|r| r.abusers),
    )?;
    let memory = |i: usize| f.lasting.iter().map(|(load, m)| (*load, m[i])).collect();
    let lines = [1, 2, 4, 8].iter().enumerate().map(|(i, n)| (format!("{n} x memory"), memory(i))).collect();
    panel(&areas[2], "lasting abusers: excess that passes under Admit", ("load", "%"), 80.0, lines)?;
    let log = |p: f64| p.max(1e-6).log10();
    let full = vec![
        ("seen".to_owned(), f.full.iter().map(|(load, seen, _)| (*load, log(*seen))).collect()),
        ("Erlang B".to_owned(), f.full.iter().map(|(load, _, erlang)| (*load, log(*erlang))).collect()),
    ];
    panel(&areas[3], "new keys that find their set full", ("load", "log10 of the share"), 0.0, full)
}

fn panel<'a>(
    area: &Area<'a>,
    title: &str,
    (x, y): (&str, &str),
    top: f64,
    lines: Vec<Line>,
) -> Result<(), Failure<'a>> {
    let far = lines.iter().flat_map(|(_, points)| points).map(|(x, _)| *x).fold(0.0, f64::max);
    // Where no line runs: below those that stay above, else above those that rise.
    let corner = match title {
        t if t.starts_with("innocents") => SeriesLabelPosition::MiddleRight,
        t if t.starts_with("lasting") => SeriesLabelPosition::UpperLeft,
        t if t.starts_with("what") => SeriesLabelPosition::LowerLeft,
        _ => SeriesLabelPosition::LowerRight,
    };
    let low = lines.iter().flat_map(|(_, points)| points).map(|(_, y)| *y).fold(0.0, f64::min);
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..far * 1.04, low..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(0)
        .bold_line_style(RGBColor(225, 225, 225))
        .x_desc(x)
        .y_desc(y)
        .draw()?;
    for (i, (name, points)) in lines.into_iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        // Where lines lie on each other, the first ones show beside the last.
        let width = [9, 6, 4, 2][i % 4];
        let line = chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(width)))?;
        line.label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(3)));
        chart.draw_series(points.into_iter().map(|at| Circle::new(at, 3, colour.filled())))?;
    }
    let legend = chart
        .configure_series_labels()
        .border_style(RGBColor(200, 200, 200))
        .background_style(WHITE.mix(0.8))
        .position(corner)
        .draw();
    legend
}

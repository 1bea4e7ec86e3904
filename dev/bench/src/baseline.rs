//! Compares this run with the baseline of the same processor: how much longer or shorter each row takes than then. Two
//! runs have two machines, or two moments of one, so nothing is judged.
//!
//! ```text
//!  # family: AuthenticAMD 26       maker and family, as the processor names them
//!  # model: 17                     missing in older files; if two files fit, the newer one is taken
//!  # features: aes avx2 avx512     what the library uses of the processor; a file without fits none
//!  # machine: ... # date: ...
//!  row  unit  min  median ...      as `run --tsv` writes it, times alone: gates.tsv has the instructions
//! ```
//!
//! A family may hold several microarchitectures: family 25 is Zen 3, which ends with AVX2, and Zen 4, which has
//! AVX-512. So a run is compared only with one of the same features, and the names of the files in the folder
//! `baseline` have microarchitecture and features.

use std::path::{Path, PathBuf};

use crate::machine::Machine;
use crate::suite::Suite;

/// A row is listed if it takes this much more or less, in hundredths; the others are counted.
const LISTED: f64 = 15.0;

/// A file of an earlier run.
pub struct Baseline {
    path: PathBuf,
    family: String,
    model: String,
    features: String,
    pub machine: String,
    pub date: String,
    /// Rows and ns, by minimum.
    rows: Vec<(String, f64)>,
}

impl Baseline {
    /// The row's minimum, in ns.
    pub fn min(&self, id: &str) -> Option<f64> {
        self.rows.iter().find(|(row, _)| row == id).map(|(_, ns)| *ns)
    }

    fn is_of(&self, machine: &Machine) -> bool {
        let same_model = self.model.is_empty() || self.model == machine.model;
        self.family == machine.family && same_model && self.features == machine.features
    }
}

pub fn read(path: PathBuf) -> Option<Baseline> {
    let text = std::fs::read_to_string(&path).ok()?;
    let field = |name: &str| {
        let mark = format!("# {name}: ");
        text.lines().find_map(|line| line.strip_prefix(&mark)).unwrap_or("").to_string()
    };
    let rows = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut columns = line.split('\t');
        let (row, unit, min) = (columns.next()?, columns.next()?, columns.next()?);
        (unit == "ns").then_some((row.to_string(), min.parse().ok()?))
    });
    let [family, model, features] = ["family", "model", "features"].map(field);
    let [machine, date] = ["machine", "date"].map(field);
    let rows = rows.collect();
    Some(Baseline { path, family, model, features, machine, date, rows })
}

/// Prints the comparison with the baseline of this processor in `folder`, or that there is none.
pub fn print(suite: &Suite, machine: &Machine, folder: &str) {
    let files = std::fs::read_dir(Path::new(folder)).into_iter().flatten().flatten().map(|file| file.path());
    let all = files.filter(|path| path.extension().is_some_and(|e| e == "tsv")).filter_map(read);
    let same = all.filter(|baseline| baseline.is_of(machine)).max_by(|a, b| a.date.cmp(&b.date));
    let Some(baseline) = same else {
        let Machine { family, model, features, .. } = machine;
        println!("\nno baseline of this processor ({family} model {model}, {features}) in {folder}");
        return;
    };
    let Baseline { path, machine, date, .. } = &baseline;
    println!("\nCOMPARED with {} ({machine}; {date})", path.display());
    let mut logs = Vec::new();
    let mut listed = Vec::new();
    for (id, then) in &baseline.rows {
        let Some(row) = suite.row(id).filter(|_| *then > 0.0) else { continue };
        let ratio = row.min() / then;
        logs.push(ratio.ln());
        if (ratio - 1.0).abs() * 100.0 > LISTED {
            listed.push((ratio, id, *then, row.min()));
        }
    }
    if logs.is_empty() {
        println!("  no row in common");
        return;
    }
    listed.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (ratio, id, then, now) in &listed {
        println!("  {id:<40} {then:>8.2} then {now:>8.2} now {:>+6.0} %", (ratio - 1.0) * 100.0);
    }
    let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    println!(
        "  {} rows in common, {} of them within {LISTED:.0} %; all together (geometric mean) {:+.1} %",
        logs.len(),
        logs.len() - listed.len(),
        (mean - 1.0) * 100.0
    );
}

//! This run beside the one that is kept of the same family of processors (`docs/bench`), row by row: by how much a row
//! takes longer or less long than it did. Two runs have two machines, or two minutes of one, so nothing is judged.
//!
//! ```text
//!  # family: AuthenticAMD 26       maker and family, as the processor says them; of two files the newer one is taken
//!  # machine: ... # date: ...
//!  row  unit  min  median ...      as `run --tsv` writes it
//! ```

use std::path::{Path, PathBuf};

use crate::machine::Machine;
use crate::suite::Suite;

/// A row is listed if it takes this much more or less, in hundredths; the others are counted.
const LISTED: f64 = 15.0;

/// A file of an earlier run.
struct Kept {
    path: PathBuf,
    family: String,
    machine: String,
    date: String,
    /// Rows and ns, by minimum.
    rows: Vec<(String, f64)>,
}

fn read(path: PathBuf) -> Option<Kept> {
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
    let (family, machine, date) = (field("family"), field("machine"), field("date"));
    let rows = rows.collect();
    Some(Kept { path, family, machine, date, rows })
}

/// Prints the comparison with the run of this family that lies in `folder`, or that there is none.
pub fn print(suite: &Suite, machine: &Machine, folder: &str) {
    let files = std::fs::read_dir(Path::new(folder)).into_iter().flatten().flatten().map(|file| file.path());
    let kept = files.filter(|path| path.extension().is_some_and(|e| e == "tsv")).filter_map(read);
    let same = kept.filter(|kept| kept.family == machine.family).max_by(|a, b| a.date.cmp(&b.date));
    let Some(kept) = same else {
        println!("\nno run of this family of processors ({}) is kept in {folder}", machine.family);
        return;
    };
    println!("\nCOMPARED with {} ({}; {})", kept.path.display(), kept.machine, kept.date);
    let mut logs = Vec::new();
    let mut listed = Vec::new();
    for (id, then) in &kept.rows {
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

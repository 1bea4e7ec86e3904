//! The gate: no row may take more instructions than the committed file of counts allows, alone and next to others.
//!
//! ```text
//!  bench/gates.tsv        row <tab> instructions per decision <tab> what the processor has
//!                         row/other <tab> the largest ratio of the two counts <tab> ratio
//!  # rustc 1.95           the compiler of the numbers
//!  tatcell-bench gate     counts each row of the file, PASS or FAIL a line: fail above the file's number + 2 %,
//!                         + 25 % with another compiler
//!  ... --write            writes what was counted; lines of other processors stay
//! ```
//!
//! A row must meet the line of this processor, or, if there is none, the largest number that the file has for it: no
//! processor skips a gate. The numbers belong to a compiler, which the file names. Other compilers choose registers and
//! inline differently, so they only have to meet a wide margin. A line with count 0 adds a row, which `--write` counts.
//!
//! The ratios hold a composed call to the price of its parts, also if both rows have changed. People choose them, so
//! `--write` keeps them, and only the margin of another compiler is added.

use std::fmt::Write as _;

use crate::count::{Count, Counts};

/// Rows and ratios that the file has: one that is lost, or added without a thought, shows.
const ROWS: usize = 107;
const RATIOS: usize = 22;

/// How far a count may lie above its line, in percent: with the compiler of the file, and with another.
const SLACK: [f64; 2] = [2.0, 25.0];
/// How the file names its compiler.
const COMPILER: &str = "# rustc ";

const HEAD: &str = "\
# Instructions per decision, loop and key making included: row, count, what the processor has.
# `make -C dev gates` checks them, `make -C dev write-gates` writes them. A row fails above its count + 2 %, or + 25 %
# with another compiler than the one named below. A processor that has no line of its own is held to the largest count.
# Callgrind counts them. It emulates a processor with AES if the machine has it, but without AVX-512, so on every x86-64
# machine it counts the SSE2 form of the tag search: a change of the AVX-512 search alone moves no number here.
# A line of two rows is the largest ratio of their counts, which people choose.
";
/// What stands in the place of the processor in the line of a ratio.
const RATIO: &str = "ratio";

/// One line of the file.
struct Line {
    row: String,
    each: f64,
    processor: String,
}

/// `gate FILE`, with `--write` to write the file.
pub fn run(path: &str, lib: Option<&str>, write: bool) -> Result<(), String> {
    let (ratios, lines): (Vec<Line>, Vec<Line>) =
        read(path)?.into_iter().partition(|line| line.processor == RATIO);
    let mut rows: Vec<&str> = Vec::new();
    for line in &lines {
        if !rows.contains(&line.row.as_str()) {
            rows.push(&line.row);
        }
    }
    let counts = Counts::collect(&rows, lib)?;
    if write {
        return rewrite(path, &lines, &ratios, &rows, &counts);
    }
    if let Some(why) = counts.none {
        println!("SKIP instruction_gates: {why}");
        return Ok(());
    }
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let same = text.lines().any(|line| line.strip_prefix(COMPILER) == Some(&compiler()));
    let slack = SLACK[usize::from(!same)];
    let mut failed = 0;
    for id in &rows {
        let name = id.replace('.', "_");
        let verdict = match counts.rows.iter().find(|count| count.id == *id) {
            Some(count) => judge(&lines, count, slack),
            None => {
                println!("SKIP {name}_takes_no_more_instructions: {}", counts.why_absent(id));
                continue;
            }
        };
        match verdict {
            Ok(text) => println!("PASS {name}_takes_no_more_instructions: {text}"),
            Err(text) => {
                println!("FAIL {name}_takes_no_more_instructions: {text}");
                failed += 1;
            }
        }
    }
    for ratio in &ratios {
        let name = ratio.row.replace('.', "_").replace('/', "_compared_with_");
        match compare(ratio, &counts, slack) {
            Some(Ok(text)) => println!("PASS {name}_stays_below_its_ratio: {text}"),
            Some(Err(text)) => {
                println!("FAIL {name}_stays_below_its_ratio: {text}");
                failed += 1;
            }
            None => println!("SKIP {name}_stays_below_its_ratio: one of both was not counted"),
        }
    }
    if (rows.len(), ratios.len()) != (ROWS, RATIOS) {
        let (rows, ratios) = (rows.len(), ratios.len());
        println!(
            "FAIL every_gated_row_is_there: {rows} rows and {ratios} ratios in {path}, and not {ROWS} and {RATIOS}"
        );
        failed += 1;
    }
    match failed {
        0 => Ok(()),
        n => Err(format!("{n} gates of {path} failed")),
    }
}

fn judge(lines: &[Line], count: &Count, slack: f64) -> Result<String, String> {
    let of_row = || lines.iter().filter(|line| line.row == count.id);
    let (is, known) = (count.each(), of_row().find(|line| line.processor == count.processor));
    let largest = || of_row().max_by(|a, b| a.each.total_cmp(&b.each));
    let Some(line) = known.or_else(largest) else { return Err("no line in the file; write it again".into()) };
    let of = if known.is_some() { &line.processor } else { "the largest, none of this processor" };
    let most = line.each * (1.0 + slack / 100.0);
    let text = format!("{is:.2}, at most {most:.2} ({:.2} + {slack} %, {of})", line.each);
    if is > most {
        Err(text)
    } else {
        Ok(text)
    }
}

/// Whether two rows keep their ratio; None if one of them was not counted.
fn compare(ratio: &Line, counts: &Counts, slack: f64) -> Option<Result<String, String>> {
    let Some((row, other)) = ratio.row.split_once('/') else {
        return Some(Err(format!("{} does not name two rows", ratio.row)));
    };
    let count = |id: &str| counts.rows.iter().find(|count| count.id == id).map(Count::each);
    // The margin of this file's compiler is in both counts.
    let most = ratio.each * if slack > SLACK[0] { 1.0 + slack / 100.0 } else { 1.0 };
    let (row, other) = (count(row)?, count(other)?);
    let text = format!("{row:.2} / {other:.2} = {:.2}, at most {most:.2}", row / other);
    Some(if row / other > most { Err(text) } else { Ok(text) })
}

/// Major and minor version of the compiler; empty where there is none to ask.
fn compiler() -> String {
    let asked = std::process::Command::new("rustc").arg("--version").output();
    let text = asked.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
    let version = text.split_whitespace().nth(1).unwrap_or_default();
    version.rsplit_once('.').map_or(String::new(), |(minor, _)| minor.to_owned())
}

fn read(path: &str) -> Result<Vec<Line>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(i, line)| {
            let mut parts = line.split_whitespace();
            let (row, each) = (parts.next(), parts.next().and_then(|each| each.parse().ok()));
            match (row, each, parts.next()) {
                (Some(row), Some(each), Some(processor)) if row.contains('/') == (processor == RATIO) => {
                    Ok(Line { row: row.into(), each, processor: processor.into() })
                }
                _ => Err(format!("{path}, line {}: not a row, a count and a processor, nor a ratio", i + 1)),
            }
        })
        .collect()
}

/// Lines of rows that were counted replace those of the same processor.
fn rewrite(
    path: &str,
    lines: &[Line],
    ratios: &[Line],
    rows: &[&str],
    counts: &Counts,
) -> Result<(), String> {
    if let Some(why) = counts.none {
        return Err(why.into());
    }
    let mut text = format!("{HEAD}{COMPILER}{}\n", compiler());
    for id in rows {
        let count = counts.rows.iter().find(|count| count.id == *id);
        let others = lines.iter().filter(|line| {
            line.row == *id && line.each > 0.0 && count.is_none_or(|count| count.processor != line.processor)
        });
        let lines = others.map(|line| (line.each, &line.processor));
        for (each, processor) in lines.chain(count.map(|count| (count.each(), &count.processor))) {
            let _ = writeln!(text, "{id}\t{each:.2}\t{processor}");
        }
    }
    for ratio in ratios {
        let _ = writeln!(text, "{}\t{:.2}\t{RATIO}", ratio.row, ratio.each);
    }
    for (id, why) in &counts.absent {
        println!("not counted: {id}: {why}");
    }
    std::fs::write(path, text).map_err(|e| format!("{path}: {e}"))?;
    println!("counts: {path}");
    Ok(())
}

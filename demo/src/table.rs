//! The live table, twice a second: redrawn in place on a terminal, single lines elsewhere.

use crate::schedule::{BIN_US, END_US, NAMES, SWITCH_US};
use crate::verdict::grouped;
use std::io::{IsTerminal, Write};

/// What one drawing shows: totals by class, the p99 since the last drawing, and what the oracle has found.
pub struct Now {
    pub elapsed_us: u64,
    pub sent: [u64; 4],
    pub answered: [u64; 4],
    pub p99_ns: u64,
    pub resident_kib: u64,
    pub decisions: u64,
    pub over_admitted: u64,
    pub wrongly_refused: u64,
}

/// The table and the totals at its last drawing.
pub struct Table {
    quiet: bool,
    terminal: bool,
    drawn: usize,
    at_us: u64,
    sent: [u64; 4],
    answered: [u64; 4],
}

impl Table {
    /// Returns a table that nothing has been drawn of; a quiet one draws nothing.
    pub fn new(quiet: bool) -> Self {
        let terminal = std::io::stdout().is_terminal();
        Table { quiet, terminal, drawn: 0, at_us: 0, sent: [0; 4], answered: [0; 4] }
    }

    /// Draws the rates since the last drawing.
    pub fn draw(&mut self, now: &Now) {
        if self.quiet {
            return;
        }
        let seconds = (now.elapsed_us - self.at_us).max(1) as f64 / 1e6;
        let rate = |after: u64, before: u64| ((after - before) as f64 / seconds).round() as u64;
        let of = |c: usize| (rate(now.sent[c], self.sent[c]), rate(now.answered[c], self.answered[c]));
        let rates = [of(0), of(1), of(2), of(3)];
        (self.at_us, self.sent, self.answered) = (now.elapsed_us, now.sent, now.answered);
        let p99_ms = now.p99_ns as f64 / 1e6;
        let text = if self.terminal { self.panel(&rates, p99_ms, now) } else { line(&rates, p99_ms, now) };
        let mut out = std::io::stdout().lock();
        // A closed pipe must not end the run before its verdict, so an error here is let go.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn panel(&mut self, rates: &[(u64, u64)], p99_ms: f64, now: &Now) -> String {
        let width = 38;
        let column = |us: u64| (us * width / END_US).min(width);
        let bar: String = (0..width)
            .map(|i| match i {
                _ if i == column(SWITCH_US) => '|',
                _ if i < column(now.elapsed_us) => '=',
                _ => '.',
            })
            .collect();
        let (colour, word) = if now.elapsed_us > SWITCH_US { (32, "ON ") } else { (31, "OFF") };
        let mut rows = vec![
            format!(
                "limiter \x1b[{colour};1m{word}\x1b[0m  [{bar}] {:4.1} of {:.1} s",
                now.elapsed_us.min(END_US) as f64 / 1e6,
                END_US as f64 / 1e6
            ),
            format!("{:<10}{:>12}{:>13}{:>9}", "", "offered/s", "answered/s", "share"),
        ];
        for (name, (sent, answered)) in NAMES.iter().zip(rates) {
            let share = if *sent == 0 { "-".to_string() } else { format!("{} %", answered * 100 / sent) };
            rows.push(format!("{name:<10}{:>12}{:>13}{share:>9}", grouped(*sent), grouped(*answered)));
        }
        rows.push(format!(
            "reply p99 {p99_ms:9.2} ms   memory of the gate {} KiB",
            grouped(now.resident_kib)
        ));
        rows.push(format!(
            "oracle: {} decisions, {} over-admitted, {} wrongly refused",
            grouped(now.decisions),
            now.over_admitted,
            now.wrongly_refused
        ));
        let up = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        self.drawn = rows.len();
        rows.iter().fold(up, |text, row| text + "\r\x1b[K" + row + "\n")
    }
}

fn line(rates: &[(u64, u64)], p99_ms: f64, now: &Now) -> String {
    let word = if now.elapsed_us > SWITCH_US + BIN_US / 2 { "on" } else { "off" };
    let mut text = format!("{:4.1} s {word:<3}", now.elapsed_us as f64 / 1e6);
    for (name, (sent, answered)) in NAMES.iter().zip(rates) {
        text += &format!("  {name} {answered}/{sent}");
    }
    text + &format!("  p99 {p99_ms:.2} ms  decisions {}\n", now.decisions)
}

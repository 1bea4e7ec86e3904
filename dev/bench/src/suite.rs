//! The suite: the rows, and the rounds that visit them.
//!
//! A round visits every row once, so slow phases of the machine hit all rows alike. Each visit first makes some
//! decisions untimed, because the rows before have emptied the caches. Time is the CPU time of the pinned thread:
//! waiting for other processes does not count, but their effect on the caches does. The minimum over rounds is the
//! undisturbed machine, the median is what this run saw.

use std::time::Instant;

pub use crate::row::{Body, Crew, Mix, Row, Visit, Work, DT, GRAIN};
use crate::{cpu, memory, progress};

/// MiB that must be free for the rows of 1e7 keys, and for those of 1e8.
const LARGE: u64 = 6144;
const LARGEST: u64 = 12288;

/// Visits of two threads that are begun until one counts; on a busy machine one in many does.
const TRIES: u32 = 24;

/// Which rows to build.
pub enum Wanted {
    All,
    Containing(String),
    Exactly(String),
}

pub struct Suite {
    pub rows: Vec<Row>,
    /// Remarks for the report: huge pages, skipped rows.
    pub notes: Vec<String>,
    /// Rows whose id starts like this were not run, and why.
    skipped: Vec<(String, String)>,
    wanted: Wanted,
    /// All rows that there are, wanted or not.
    #[cfg(test)]
    pub known: Vec<String>,
}

impl Suite {
    pub fn new(wanted: Wanted) -> Suite {
        let (rows, notes, skipped) = (Vec::new(), Vec::new(), Vec::new());
        let mut suite = Suite {
            rows,
            notes,
            skipped,
            wanted,
            #[cfg(test)]
            known: Vec::new(),
        };
        if memory::available_mib().is_some_and(|mib| mib < LARGE) {
            let why = format!("less than {LARGE} MiB of free memory");
            for rows in ["floor1e7", "table1e7", "peer1e7"] {
                suite.skip(rows, &why);
            }
        }
        if let Some(mib) = memory::available_mib().filter(|mib| *mib < LARGEST) {
            let why = format!("{mib} MiB of memory are free, and {LARGEST} are needed");
            suite.notes.push(format!("rows of 1e8 keys not run: {why}"));
            for rows in ["floor1e8", "table1e8", "threads.1e8"] {
                suite.absent(rows, &why);
            }
        }
        suite
    }

    /// Adds a row if it is wanted; only then is it built.
    pub fn add(
        &mut self,
        id: &str,
        text: &str,
        mix: Mix,
        visit: (u64, u64),
        make: impl FnOnce(&mut Vec<String>) -> Body,
    ) {
        #[cfg(test)]
        self.known.push(id.to_owned());
        if self.wants(id) {
            progress::tell(&format!("building {id}"));
            let body = make(&mut self.notes);
            self.push(id, text, mix, visit, Work::Alone(body));
        }
    }

    /// Adds a row that brings its own threads.
    pub fn add_crew(
        &mut self,
        id: &str,
        text: &str,
        mix: Mix,
        visit: (u64, u64),
        make: impl FnOnce(&mut Vec<String>) -> Crew,
    ) {
        #[cfg(test)]
        self.known.push(id.to_owned());
        if self.wants(id) {
            progress::tell(&format!("building {id}"));
            let crew = make(&mut self.notes);
            self.push(id, text, mix, visit, Work::Together(crew));
        }
    }

    /// Whether a row of this id is to be built.
    pub fn wants(&self, id: &str) -> bool {
        self.asks(id) && !self.skipped.iter().any(|(rows, _)| id.starts_with(rows.as_str()))
    }

    /// Whether the command line asked for a row of this id.
    pub fn asks(&self, id: &str) -> bool {
        match &self.wanted {
            Wanted::All => true,
            Wanted::Containing(part) => part.split(',').any(|p| id.contains(p)),
            Wanted::Exactly(one) => id == one,
        }
    }

    fn push(&mut self, id: &str, text: &str, mix: Mix, (warm, timed): (u64, u64), work: Work) {
        let (id, text, samples, wall) = (id.to_string(), text.to_string(), Vec::new(), Vec::new());
        self.rows.push(Row { id, text, mix, warm, timed, work, samples, wall, passed: 0, decided: 0 });
    }

    /// Says why rows whose id starts with `rows` do not run; before they are added.
    pub fn skip(&mut self, rows: &str, why: &str) {
        self.absent(rows, why);
        self.notes.push(format!("{rows}* not run: {why}"));
    }

    /// The same without a note: the goals say it where they need such a row.
    pub fn absent(&mut self, rows: &str, why: &str) {
        self.skipped.push((rows.to_string(), why.to_string()));
    }

    pub fn row(&self, id: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// Why there is no such row.
    pub fn why_absent(&self, id: &str) -> &str {
        let unknown = if self.asks(id) { "not on this machine" } else { "left out of this run" };
        self.why_skipped(id).unwrap_or(unknown)
    }

    /// The same where it is known.
    pub fn why_skipped(&self, id: &str) -> Option<&str> {
        let known = self.skipped.iter().find(|(rows, _)| id.starts_with(rows.as_str()));
        known.map(|(_, why)| why.as_str())
    }

    /// Visits every row in turn until the time is used up (at least 5 rounds); returns the rounds.
    pub fn run(&mut self, seconds: f64) -> Result<usize, String> {
        let start = Instant::now();
        let mut rounds = 0;
        while rounds < 5 || start.elapsed().as_secs_f64() < seconds {
            for row in &mut self.rows {
                let spent = start.elapsed().as_secs_f64();
                progress::tell(&format!("round {}, {spent:.0} of {seconds:.0} s, {}", rounds + 1, row.id));
                visit(row);
                row.verify()?;
            }
            rounds += 1;
        }
        progress::clear();
        self.drop_unmeasured();
        Ok(rounds)
    }

    /// Rows whose threads never ran together have no time.
    fn drop_unmeasured(&mut self) {
        let lost: Vec<String> =
            self.rows.iter().filter(|row| row.samples.is_empty()).map(|row| row.id.clone()).collect();
        self.rows.retain(|row| !row.samples.is_empty());
        for id in lost {
            self.skip(&id, "other processes never let its threads run together");
        }
    }
}

fn visit(row: &mut Row) {
    if matches!(row.work, Work::Alone(_)) {
        row.decide(row.warm);
        let before = cpu::thread_ns();
        row.decide(row.timed);
        let spent = cpu::thread_ns() - before;
        row.samples.push(spent as f64 / row.timed as f64);
        return;
    }
    // Some tries: only a visit in which the threads ran together counts.
    row.decide(row.warm);
    for _ in 0..TRIES {
        match row.decide(row.timed) {
            Some(visit) if visit.together => {
                row.samples.push(visit.cpu);
                row.wall.push(visit.wall);
                return;
            }
            _ => {}
        }
    }
}

//! Rows, rounds and clocks.
//!
//! A row is a loop body that makes n decisions and returns how many passed. Rounds visit every row once, so slow
//! phases of the machine hit all rows alike; each visit first runs some decisions untimed, because the rows before
//! it have emptied the caches. Time is the CPU time of the pinned thread: waiting for other processes does not
//! count, what they do to the caches does. The minimum over rounds is the machine undisturbed, the median what this
//! run saw.

use std::time::Instant;

/// Decisions per visit are a multiple of this, so that bursts of 32 and 64 come out even.
pub const GRAIN: u64 = 64;

/// Ticks (ns) between two decisions, in every row.
pub const DT: u64 = 64;

/// What a row must decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mix {
    /// At least 99.9 % pass.
    Pass,
    /// At most 1 % pass.
    Deny,
    /// No verdict (floors).
    Bare,
}

/// Which rows to build.
pub enum Wanted {
    All,
    Containing(String),
    Exactly(String),
}

/// Makes n decisions (a multiple of [`GRAIN`]) and returns how many passed.
pub type Body = Box<dyn FnMut(u64) -> u64>;

pub struct Row {
    pub id: String,
    pub text: String,
    pub mix: Mix,
    /// Decisions per visit: untimed first, then timed.
    pub warm: u64,
    pub timed: u64,
    body: Body,
    pub samples: Vec<f64>,
    pub passed: u64,
    pub decided: u64,
}

impl Row {
    pub fn min(&self) -> f64 {
        self.samples.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn median(&self) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::INFINITY)
    }

    /// The group is the first part of the id.
    pub fn group(&self) -> &str {
        self.id.split('.').next().unwrap_or("")
    }

    /// Runs n decisions and counts the verdicts.
    pub fn decide(&mut self, n: u64) -> u64 {
        let passed = (self.body)(n);
        self.passed += passed;
        self.decided += n;
        passed
    }

    /// A row that lies about what it measures is an error.
    pub fn verify(&self) -> Result<(), String> {
        let share = self.passed as f64 / self.decided.max(1) as f64;
        let right = match self.mix {
            Mix::Pass => share >= 0.999,
            Mix::Deny => share <= 0.01,
            Mix::Bare => true,
        };
        if right {
            return Ok(());
        }
        Err(format!(
            "{}: {:.3} % passed, which is not {:?}: the row measures something else",
            self.id,
            share * 100.0,
            self.mix
        ))
    }
}

pub struct Suite {
    pub rows: Vec<Row>,
    /// Remarks for the report: huge pages, skipped rows.
    pub notes: Vec<String>,
    wanted: Wanted,
}

impl Suite {
    pub fn new(wanted: Wanted) -> Suite {
        Suite { rows: Vec::new(), notes: Vec::new(), wanted }
    }

    /// Whether a row of this id is to be built.
    pub fn wants(&self, id: &str) -> bool {
        match &self.wanted {
            Wanted::All => true,
            Wanted::Containing(part) => part.split(',').any(|p| id.contains(p)),
            Wanted::Exactly(one) => id == one,
        }
    }

    /// Adds a row if it is wanted; only then is it built.
    pub fn add(
        &mut self,
        id: &str,
        text: &str,
        mix: Mix,
        (warm, timed): (u64, u64),
        make: impl FnOnce(&mut Vec<String>) -> Body,
    ) {
        if self.wants(id) {
            let body = make(&mut self.notes);
            let (id, text) = (id.to_string(), text.to_string());
            let row = Row { id, text, mix, warm, timed, body, samples: Vec::new(), passed: 0, decided: 0 };
            self.rows.push(row);
        }
    }

    pub fn row(&self, id: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// Visits every row in turn until the time is used up (at least 5 rounds); returns the rounds.
    pub fn run(&mut self, seconds: f64) -> Result<usize, String> {
        let start = Instant::now();
        let mut rounds = 0;
        while rounds < 5 || start.elapsed().as_secs_f64() < seconds {
            for row in &mut self.rows {
                row.decide(row.warm);
                let before = thread_ns();
                row.decide(row.timed);
                let spent = thread_ns() - before;
                row.samples.push(spent as f64 / row.timed as f64);
                row.verify()?;
            }
            rounds += 1;
            eprint!("\rbench: round {rounds}, {:.0} of {seconds:.0} s ", start.elapsed().as_secs_f64());
        }
        eprintln!();
        Ok(rounds)
    }
}

/// CPU time of this thread.
fn thread_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: t is a place for one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Pins this thread to the last processor that it may use; the first one serves most interrupts.
pub fn pin_last() -> Option<usize> {
    // SAFETY: a cpu_set_t is plain bits, all zero is the empty set, and both calls get its true size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let size = std::mem::size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &mut set) != 0 {
            return None;
        }
        let last = (0..libc::CPU_SETSIZE as usize).rev().find(|&cpu| libc::CPU_ISSET(cpu, &set))?;
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(last, &mut one);
        (libc::sched_setaffinity(0, size, &one) == 0).then_some(last)
    }
}

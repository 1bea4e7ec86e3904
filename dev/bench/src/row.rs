//! A row: a body or a crew that makes n decisions, what it must decide, and the measurements.
//!
//! A body runs on the bench's thread, which times it; a crew brings threads and times itself. Neither knows the row: it
//! returns how many requests passed, and [`Row::verify`] compares that with the mix.

/// Decisions per visit are a multiple of this, so that bursts of 32 and 64 come out even.
pub const GRAIN: u64 = 64;

/// Ticks (ns) between two decisions, in every row.
pub const DT: u64 = 64;

/// What a row must decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mix {
    /// Every one passes.
    All,
    /// At least 99.9 % pass.
    Pass,
    /// At most 1 % pass.
    Deny,
    /// About half pass, in no order that a processor could predict.
    Mixed,
    /// At least 80 % pass, the others lose every swap to a rival (`Contended`).
    Rivals,
    /// No verdict (floors).
    Bare,
}

/// Makes n decisions (a multiple of [`GRAIN`]) and returns how many passed.
pub type Body = Box<dyn FnMut(u64) -> u64>;

/// One visit of a row that uses threads of its own and times itself.
pub struct Visit {
    pub made: u64,
    pub passed: u64,
    /// ns per decision, all threads together, by the CPU time of each thread.
    pub cpu: f64,
    /// The same by the time that passed.
    pub wall: f64,
    /// Every thread ran nearly all the time: none was alone for long.
    pub together: bool,
}

/// Makes about n decisions on several threads.
pub type Crew = Box<dyn FnMut(u64) -> Visit>;

pub enum Work {
    Alone(Body),
    Together(Crew),
}

pub struct Row {
    pub id: String,
    pub text: String,
    pub mix: Mix,
    /// Decisions per visit: untimed first, then timed.
    pub warm: u64,
    pub timed: u64,
    pub work: Work,
    /// ns of CPU time per decision, one a visit.
    pub samples: Vec<f64>,
    /// ns of wall time per decision; rows with threads only.
    pub wall: Vec<f64>,
    pub passed: u64,
    pub decided: u64,
}

impl Row {
    pub fn min(&self) -> f64 {
        least(&self.samples)
    }

    pub fn min_wall(&self) -> Option<f64> {
        (!self.wall.is_empty()).then(|| least(&self.wall))
    }

    pub fn median(&self) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::INFINITY)
    }

    /// What a tenth of the visits stayed below, and what a tenth was above.
    pub fn spread(&self) -> (f64, f64) {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |tenths: usize| sorted.get((sorted.len().saturating_sub(1)) * tenths / 10);
        (at(1).copied().unwrap_or(f64::INFINITY), at(9).copied().unwrap_or(f64::INFINITY))
    }

    /// The group is the first part of the id.
    pub fn group(&self) -> &str {
        self.id.split('.').next().unwrap_or("")
    }

    /// Runs n decisions and counts the verdicts.
    pub fn decide(&mut self, n: u64) -> Option<Visit> {
        let (made, passed, visit) = match &mut self.work {
            Work::Alone(body) => (n, body(n), None),
            Work::Together(crew) => {
                let visit = crew(n);
                (visit.made, visit.passed, Some(visit))
            }
        };
        self.passed += passed;
        self.decided += made;
        visit
    }

    /// The share that passed.
    pub fn share(&self) -> f64 {
        self.passed as f64 / self.decided.max(1) as f64
    }

    /// A row that lies about what it measures is an error.
    pub fn verify(&self) -> Result<(), String> {
        let share = self.share();
        let right = match self.mix {
            Mix::All => self.passed == self.decided,
            Mix::Pass => share >= 0.999,
            Mix::Deny => share <= 0.01,
            Mix::Mixed => (0.3..=0.7).contains(&share),
            Mix::Rivals => share >= 0.8,
            Mix::Bare => true,
        };
        if right {
            return Ok(());
        }
        let (id, share, mix) = (&self.id, share * 100.0, self.mix);
        Err(format!("{id}: {share:.3} % passed, which is not {mix:?}: the row measures something else"))
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

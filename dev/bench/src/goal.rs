//! A goal, and its result.

/// Of one row, or of two.
pub enum Goal {
    /// At most this many ns.
    Ns(f64, &'static str),
    /// The first takes at most this multiple of the second's time.
    Times(f64, &'static str, &'static str),
    /// The second is at least this many times faster than the first.
    Faster(f64, &'static str, &'static str),
    /// The same of a peer and of ours, judged by medians: a peer's time may swing by half in a run.
    Beside(f64, &'static str, &'static str),
    /// At most this many instructions.
    Instructions(f64, &'static str),
    /// The first takes at most this many instructions more than the second.
    More(f64, &'static str, &'static str),
    /// The first takes at most this multiple of the second's instructions.
    Counts(f64, &'static str, &'static str),
}

use Goal::{Beside, Faster, Instructions, More, Ns, Times};

impl Goal {
    /// The row of ours that is to become faster.
    pub fn judged(&self) -> &'static str {
        match self {
            Ns(_, row)
            | Instructions(_, row)
            | Times(_, row, _)
            | More(_, row, _)
            | Goal::Counts(_, row, _) => row,
            Faster(_, _, fast) | Beside(_, _, fast) => fast,
        }
    }

    /// All rows that it names.
    pub fn rows(&self) -> Vec<&'static str> {
        match self {
            Ns(_, row) | Instructions(_, row) => vec![row],
            Times(_, a, b) | Faster(_, a, b) | Beside(_, a, b) | More(_, a, b) | Goal::Counts(_, a, b) => {
                vec![a, b]
            }
        }
    }
}

/// What a goal asks for and what was measured.
pub struct Found {
    pub is: f64,
    pub by_median: f64,
    pub wanted: f64,
    pub at_least: bool,
    pub unit: &'static str,
    /// The medians decide.
    pub median: bool,
}

impl Found {
    /// How far on the right side, in hundredths of what is wanted.
    pub fn spare(&self) -> f64 {
        let is = if self.median { self.by_median } else { self.is };
        let spare = (1.0 - is / self.wanted) * 100.0;
        if self.at_least {
            -spare
        } else {
            spare
        }
    }

    pub fn verdict(&self) -> String {
        match self.spare() {
            spare if spare >= 0.0 => format!("met, {spare:.0} % to spare"),
            spare => format!("MISSED by {:.0} %", -spare),
        }
    }
}

//! What a program has counted, and what passed and was refused a second.

use std::fmt;
use std::time::Instant;

use serde::Serialize;
use tatcell::host::ReadOnlyCounters;
use tatcell::Counters;

use super::Place;
use crate::failure::Failure;

/// The counters of a program, and when they were read last.
pub struct Source {
    counters: ReadOnlyCounters,
    last: Option<(Instant, Counters)>,
}

/// Counts since the program began.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counts {
    /// Requests that passed.
    pub passed: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests without a verdict, because other threads won every swap.
    pub contended: u64,
    /// Requests that a full set left without a slot.
    pub untracked: u64,
    /// New keys that got a slot.
    pub inserted: u64,
    /// Since the last reading; `None` at the first one.
    pub per_second: Option<Rates>,
}

/// Requests a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// That passed.
    pub passed: f64,
    /// That were refused.
    pub refused: f64,
}

fn passed(counters: &Counters) -> u64 {
    counters.conforming.wrapping_add(counters.shadow)
}

fn refused(counters: &Counters) -> u64 {
    counters.non_conforming.wrapping_add(counters.never)
}

/// The rates between two readings; `None` if no time has passed. Counters wrap.
fn rates(old: &Counters, new: &Counters, seconds: f64) -> Option<Rates> {
    let per_second = |of: fn(&Counters) -> u64| of(new).wrapping_sub(of(old)) as f64 / seconds;
    (seconds > 0.0).then(|| Rates { passed: per_second(passed), refused: per_second(refused) })
}

impl Source {
    /// Maps the counters of this name for reading alone.
    pub fn open(text: &str) -> Result<Source, Failure> {
        let place = Place::parse(text)?;
        let counters = ReadOnlyCounters::attach(&place.name).map_err(|error| place.refused(error, "read"))?;
        Ok(Source { counters, last: None })
    }

    /// Reads them.
    pub fn read(&mut self) -> Counts {
        let (now, sum) = (Instant::now(), self.counters.sum());
        let last = self.last.replace((now, sum));
        Counts {
            passed: passed(&sum),
            refused: refused(&sum),
            contended: sum.contended,
            untracked: sum.untracked,
            inserted: sum.inserted,
            per_second: last.and_then(|(then, old)| rates(&old, &sum, (now - then).as_secs_f64())),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { passed, refused, contended, untracked, inserted, .. } = self;
        writeln!(f, "  counted: {passed} passed, {refused} refused, {contended} contended")?;
        writeln!(f, "  {untracked} untracked in full sets, {inserted} new keys")?;
        match self.per_second {
            Some(Rates { passed, refused }) => {
                writeln!(f, "  a second: {passed:.1} passed, {refused:.1} refused")
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_by_time_also_where_a_counter_wraps() {
        let old = Counters { conforming: u64::MAX, non_conforming: 5, ..Counters::default() };
        let new =
            Counters { conforming: 99, shadow: 100, non_conforming: 6, never: 9, ..Counters::default() };
        assert_eq!(rates(&old, &new, 2.0), Some(Rates { passed: 100.0, refused: 5.0 }));
        assert_eq!(rates(&old, &new, 0.0), None);
    }
}

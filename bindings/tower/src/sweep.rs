//! Requests sweep the tables. A word that nobody sweeps wraps, and then an old debt counts once more.

use std::sync::atomic::{AtomicU64, Ordering};

use tatcell::Table;

/// Slots of a part, some microseconds.
const PART: usize = 4096;

/// Says which part of a table is due when. All parts are swept four times in the interval of the table.
pub(crate) struct Sweeps {
    due: AtomicU64,
    every: u64,
    parts: u64,
}

impl Sweeps {
    pub fn new(table: &Table<'_>, now: u64) -> Sweeps {
        let parts = table.slots().div_ceil(PART).max(1) as u64;
        let every = (table.sweep_interval() / 4 / parts).max(1);
        Sweeps { due: AtomicU64::new(now.saturating_add(every)), every, parts }
    }

    /// Sweeps the parts that are due: after a pause more than one, at most the whole table once.
    pub fn sweep(&self, table: &Table<'_>, now: u64) {
        // ORDERING: Relaxed; only the value counts, and the swap below decides.
        let due = self.due.load(Ordering::Relaxed);
        let Some(late) = now.checked_sub(due) else { return };
        let parts = late / self.every + 1;
        let next = due.saturating_add(parts.saturating_mul(self.every));
        // ORDERING: Relaxed; only the value counts: one thread takes the parts, and a sweep may meet any other call.
        if self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            for part in (0..parts.min(self.parts)).map(|i| (due / self.every + i) % self.parts) {
                table.sweep(now, part as usize * PART, PART);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tatcell::{LimitSpec, Line, TableOptions};

    /// The most keys that are in debt at one time, from an hour to 48 hours after all were. There is a request in each
    /// `gap` of seconds.
    fn false_debts(gap: u64) -> u64 {
        let limit = LimitSpec::parse("5/15min", 1_000_000_000).expect("a limit");
        let lines: Vec<Line> = (0..8_200).map(|_| Line::EMPTY).collect();
        let table = Table::init(&lines, &TableOptions::new(limit).seed([7; 16])).expect("a table");
        let (limit, sweeps) = (table.limit(&limit).expect("a limit"), Sweeps::new(&table, 0));
        for key in 0..100u32 {
            assert!(table.check(&limit, 0, &key.to_le_bytes(), 5).expect("a decision").passes());
        }
        assert_eq!(table.stats(0).live, 100);
        let (mut most, mut counted) = (0, 3_000);
        for now in (1..48 * 3_600 / gap).map(|i| i * gap) {
            sweeps.sweep(&table, now * 1_000_000_000);
            if now > counted + 600 {
                counted = now;
                most = most.max(table.stats(now * 1_000_000_000).live);
            }
        }
        most
    }

    #[test]
    fn a_client_that_was_away_meets_no_false_debt() {
        assert_eq!(false_debts(60), 0, "a request a minute");
        assert_eq!(false_debts(601), 0, "a request in ten minutes");
        assert_eq!(false_debts(3_001), 0, "a request in fifty minutes");
    }
}

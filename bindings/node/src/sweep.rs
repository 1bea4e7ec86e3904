//! Calls sweep their table. A word that nobody sweeps wraps after hours, and then an old debt counts once more.

use std::cell::Cell;

use tatcell::Table;

/// Slots of a part, some microseconds.
const PART: usize = 4096;

/// Says which part of a table is due when. All parts are swept four times in the interval of the table.
pub(crate) struct Sweeps {
    parts: u64,
    every: u64,
    /// The next slot to sweep.
    next: Cell<usize>,
    /// Until when all is swept that was due.
    done: Cell<u64>,
}

impl Sweeps {
    /// A table that others have used may have words that are due already.
    pub fn new(table: &Table<'_>, is_old: bool) -> Sweeps {
        let parts = (table.slots() / PART + 1) as u64;
        let every = table.sweep_interval() / (4 * parts) + 1;
        // The first call on a fresh table only starts the clock.
        Sweeps { parts, every, next: Cell::new(0), done: Cell::new(if is_old { 0 } else { u64::MAX }) }
    }

    /// Sweeps the parts that are due: after a pause more than one, at most the whole table once.
    pub fn sweep(&self, table: &Table<'_>, now: u64) {
        // To an older clock, live debts look expired: sweep none of them, and go on from here.
        let done = self.done.get().min(now);
        let due = (now - done) / self.every;
        self.done.set(done + due * self.every);
        for _ in 0..due.min(self.parts) {
            self.next.set(table.sweep(now, self.next.get(), PART));
        }
    }
}

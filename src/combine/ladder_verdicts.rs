//! Many addresses under the limits of a ladder, of which only the verdicts are wanted.

use super::ladder_burst::LadderBurst;
use super::ladder_look::{Order, Tiers};
use super::link::{TableRef, Target};
use super::short;
use crate::keys::{Address, MAX_RUNGS};
use crate::table::{Override, TableError};

impl<'a> LadderBurst<'a> {
    /// Decides like [`check`](LadderBurst::check), and returns only the verdicts: the fastest form. Bursts with rooms
    /// take as long as there.
    ///
    /// # Errors
    /// The errors of [`check`](LadderBurst::check).
    ///
    /// # Concurrency
    /// Like [`check`](LadderBurst::check).
    ///
    /// # Cost
    /// For each address that of a single call, without most of its cache misses.
    pub fn verdicts(&self, table: impl Into<TableRef<'a>>) -> Result<u64, TableError> {
        let table = table.into();
        if self.rooms.is_some() {
            return self.check(table, None, |_, _, _| ());
        }
        self.decide_each(table, |i, address, hashes, found| match found {
            Some(found) => Ok(matches!(found, Override::Exempt { .. })),
            None => match self.passes(table, address, self.cost(i), hashes) {
                Some(passes) => Ok(passes),
                None => Ok(self.limits.chain(table, address, self.cost(i))?.check_long(self.now).passes()),
            },
        })
    }

    /// Decides if the short way can, in a frame of its own.
    #[inline(never)]
    fn passes(
        &self,
        table: TableRef<'a>,
        address: &Address,
        cost: u64,
        hashes: &[u64; MAX_RUNGS],
    ) -> Option<bool> {
        let (v4, limits) = (address.is_v4(), self.limits);
        let limits = if v4 { &limits.v4 } else { &limits.v6 };
        let [first, ..] = limits;
        // The others differ in units alone, and have no smaller burst.
        if !Target::Key(table, Some(first), 0).is_plain(cost) {
            return None;
        }
        let count = self.limits.ladder.rungs(v4).len();
        let tiers = Tiers { table, limits, hashes, count, cost, overrides: None, order: Order::Ends };
        short::passes(&tiers, self.now)
    }
}

//! Many addresses under the limits of a ladder, of which only the verdicts are wanted.

use super::ladder_burst::LadderBurst;
use super::ladder_look::{look, Order};
use super::link::{TableRef, Target};
use super::short::{self, All, Links, Short};
use crate::keys::{Address, MAX_RUNGS};
use crate::limit::TableLimit;
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
        short::passes(&Tiers { table, limits, hashes, count, cost }, self.now)
    }
}

/// The tiers of one address, as plain links. Their lines are prefetched.
struct Tiers<'a, 'h> {
    table: TableRef<'a>,
    limits: &'a [TableLimit; MAX_RUNGS],
    hashes: &'h [u64; MAX_RUNGS],
    count: usize,
    cost: u64,
}

impl<'a> Links<'a> for Tiers<'a, '_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn at(&self, i: usize) -> Option<(Target<'a>, u64)> {
        Some((Target::Key(self.table, Some(self.limits.get(i)?), *self.hashes.get(i)?), self.cost))
    }

    #[inline(always)]
    fn prefetch(&self, _: usize) {}

    #[inline(always)]
    fn look(&self, now: u64, all: &mut All<'a>) -> Result<bool, Short> {
        look((self.table, self.limits, Order::Ends), self.hashes, (self.count, self.cost), now, all)
    }
}

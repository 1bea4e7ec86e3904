//! Many addresses under the limits of a ladder, of which only the verdicts are wanted.
//!
//! ```text
//!  addresses  0   1   2 ...        AHEAD      a ring of hashes: each address is hashed, and its lines are prefetched,
//!             ^                    ^          AHEAD addresses before it is decided by the short way
//!             decided, in order    hashed
//! ```

use super::ladder_burst::LadderBurst;
use super::ladder_limits::{hash_all, look};
use super::link::{either, TableRef, Target};
use super::short::{self, All, Links, Short};
use crate::keys::{Address, MAX_RUNGS};
use crate::limit::TableLimit;
use crate::table::{TableError, MAX_BURST};

/// How many addresses ahead lines are prefetched, and the ring that holds their hashes.
const AHEAD: usize = 7;
const RING: usize = (AHEAD + 1).next_power_of_two();

impl<'a> LadderBurst<'a> {
    /// Decides like [`check`](LadderBurst::check), and returns only the verdicts: the fastest form. Bursts with rooms
    /// or overrides take as long as there.
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
        let (table, count) = (table.into(), self.addresses.len());
        let known = count <= MAX_BURST && self.costs.is_none_or(|costs| costs.len() == count);
        if self.overrides.is_some() || self.rooms.is_some() || !known {
            return self.check(table, None, |_, _, _| ());
        }
        for limits in [&self.limits.v4, &self.limits.v6] {
            let [first, ..] = limits;
            either!(table, t => t.verify_limit(first))?;
        }
        let mut ring = [[0; MAX_RUNGS]; RING];
        for (address, hashes) in self.addresses.iter().zip(&mut ring).take(AHEAD) {
            self.fetch(table, address, hashes)?;
        }
        let mut pass = 0u64;
        for (i, address) in self.addresses.iter().enumerate() {
            let ahead = i.wrapping_add(AHEAD);
            if let (Some(next), Some(hashes)) = (self.addresses.get(ahead), ring.get_mut(ahead % RING)) {
                self.fetch(table, next, hashes)?;
            }
            let hashes = ring.get(i % RING).unwrap_or_else(|| impossible!(&[0; MAX_RUNGS]));
            let passes = match self.passes(table, address, self.cost(i), hashes) {
                Some(passes) => passes,
                None => self.limits.chain(table, address, self.cost(i))?.check_long(self.now).passes(),
            };
            pass |= u64::from(passes).wrapping_shl(i as u32);
        }
        Ok(pass)
    }

    /// Hashes the prefixes of an address, and prefetches their lines.
    #[inline(never)]
    fn fetch(
        &self,
        table: TableRef<'a>,
        address: &Address,
        hashes: &mut [u64; MAX_RUNGS],
    ) -> Result<(), TableError> {
        // The longest prefix is the one that is often new, so that its second line is read. For the others that line
        // would only keep memory busy: with 1e6 addresses a ladder took 20 to 35 % longer.
        let fetch = |i, hash| match i {
            0 => either!(table, t => t.prefetch(core::slice::from_ref(&hash))),
            _ => either!(table, t => t.prefetch_home(hash)),
        };
        hash_all(table, address, self.limits.ladder.rungs(address.is_v4()), hashes, fetch)
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
        look((self.table, self.limits), self.hashes, (self.count, self.cost), now, all)
    }
}

//! Bursts with elastic room, and bursts that are charged after the fact.
//!
//! Each request is one call of [`Table::check_ex`] or [`Table::charge`], in order, with the cache misses overlapped.
//! The groups of [`simd`](super::simd) are for plain requests.

use super::call::{cost_of, Burst, Next, NextBurst};
use crate::answer::Decision;
use crate::limit::TableLimit;
use crate::sync::access::Access;
use crate::table::calls::full_answer::Request;
use crate::table::counters::Counters;
use crate::table::error::TableError;
use crate::table::handle::Table;

impl Burst<'_> {
    /// Decides the requests in order like [`check_ex`](Burst::check_ex), with elastic room: `rooms[i]` units above the
    /// burst for request i, at most the limit's `max_room`, as the `room` of [`Table::check_ex`].
    ///
    /// # Errors
    /// As [`check`](Burst::check); [`TableError::BadCosts`] also unless there is one room for each hash.
    ///
    /// # Cost
    /// As [`check_ex`](Burst::check_ex).
    pub fn check_elastic<M: Access, const N: usize>(
        &self,
        table: &Table<'_, M>,
        rooms: &[u32],
        counters: Option<&mut Counters>,
        next: NextBurst<'_, impl Fn(usize) -> [u8; N]>,
        each: impl FnMut(usize, &Decision),
    ) -> Result<u64, TableError> {
        if rooms.len() != self.hashes.len() {
            return Err(TableError::BadCosts);
        }
        self.start(table, next)?;
        let request = |i| Some((self.limit, self.cost(i)));
        Ok(table.decide_elastic((self.now, self.hashes), request, Some(rooms), counters, each))
    }

    /// Charges the requests in order after the fact, as [`Table::charge`] does for one key: for packets or requests
    /// that were let through, whose costs are known only now. Bit i of the result is 0 only if request i was contended,
    /// or refused by a full set. Under `Admit` and `Sampled` a full set charges nothing, and the bit is 1.
    ///
    /// ```
    /// # use tatcell::{Burst, Line, LimitSpec, NextBurst, Table, TableOptions};
    /// # static MEMORY: [Line; 66] = [Line::EMPTY; 66];
    /// let spec = LimitSpec::new(1_000, 1_000_000_000, 2_000).max_debt(8_000); // bytes of answers
    /// # let table = Table::init(&MEMORY, &TableOptions::new(spec).seed([7; 16]))?;
    /// # let limit = table.limit(&spec)?;
    /// let hashes = [table.hash(b"192.0.2.1")?, table.hash(b"192.0.2.2")?];
    /// let sizes = Burst { costs: Some(&[5_000, 300]), ..Burst::new(&limit, 0, &hashes) };
    /// assert_eq!(sizes.charge(&table, None, NextBurst::NONE, |_, _| ())?, 0b11);
    /// let asked = Burst { costs: Some(&[0, 0]), ..Burst::new(&limit, 0, &hashes) };
    /// assert_eq!(asked.check(&table, None, NextBurst::NONE)?, 0b10); // the first is in debt
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Errors
    /// As [`check`](Burst::check). Nothing is charged then.
    ///
    /// # Cost
    /// That of the same calls one by one, with the cache misses overlapped.
    pub fn charge<M: Access, const N: usize>(
        &self,
        table: &Table<'_, M>,
        counters: Option<&mut Counters>,
        next: NextBurst<'_, impl Fn(usize) -> [u8; N]>,
        each: impl FnMut(usize, &Decision),
    ) -> Result<u64, TableError> {
        self.start(table, next)?;
        let request = |i| Some((self.limit, self.cost(i)));
        Ok(table.decide_elastic((self.now, self.hashes), request, None, counters, each))
    }

    /// Verifies the burst and prefetches what was not prefetched, and the next burst.
    pub(super) fn start<M: Access, const N: usize>(
        &self,
        table: &Table<'_, M>,
        next: NextBurst<'_, impl Fn(usize) -> [u8; N]>,
    ) -> Result<(), TableError> {
        self.verify(table, &next)?;
        match next.0 {
            Next::Nothing => table.prefetch_both(self.hashes),
            Next::Hashes(hashes) => table.prefetch_both(hashes),
            Next::Keys(hashes, key) => table.prepare(hashes, key)?,
        }
        Ok(())
    }

    pub(super) fn cost(&self, i: usize) -> u64 {
        self.costs.map_or(1, |costs| cost_of(costs, i))
    }
}

impl<M: Access> Table<'_, M> {
    /// Decides one by one with these rooms, or charges one by one without, under limits that the caller has verified,
    /// until `request` returns `None`.
    pub(crate) fn decide_elastic<'l>(
        &self,
        (now, hashes): (u64, &[u64]),
        request: impl Fn(usize) -> Option<(&'l TableLimit, u64)>,
        rooms: Option<&[u32]>,
        mut counters: Option<&mut Counters>,
        mut each: impl FnMut(usize, &Decision),
    ) -> u64 {
        let mut pass = 0u64;
        for (i, &hash) in hashes.iter().enumerate() {
            let Some((limit, cost)) = request(i) else { break };
            let counted = counters.as_deref_mut();
            let decision = match rooms {
                Some(rooms) => {
                    let room = rooms.get(i).map_or(0, |&room| room.into());
                    self.decide_ex(&Request { limit, now, cost, room }, hash, counted)
                }
                None => self.charge_owned(limit, (now, hash), cost, counted, 0),
            };
            each(i, &decision);
            pass |= (decision.passes() as u64).wrapping_shl(i as u32);
        }
        pass
    }
}

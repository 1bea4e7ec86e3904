//! Top talkers: the keys with the largest debts, and how to find whose they are.
//!
//! A table keeps no keys. A slot knows a tag and a set, so of any hash it can say whether it may hold that key; it is
//! wrong for one other key in 2^(tag bits) * sets. Keep a small sample of hashes with their keys, for instance of
//! refused requests, to find the names of the largest debts: a key that is refused often is almost surely in it.
#![forbid(unsafe_code)]

use super::sweep::Slot;
use crate::sync::access::Mode;
use crate::table::handle::Table;
use crate::table::layout::geometry::SLOTS_PER_LINE;

impl<M: Mode> Table<'_, M> {
    /// Finds the live slots with the longest debts, longest first, as many as `out` has places. Returns their number;
    /// the rest of `out` stays as it is.
    ///
    /// A debt is measured in time, by `reset_after`. Where words hold a count, slots whose windows end last come first.
    /// In a table of overrides these are the bans and exemptions that end last.
    ///
    /// ```
    /// use tatcell::{LimitSpec, Line, Slot, Table, TableOptions};
    /// let lines = [Line::EMPTY; 34];
    /// let spec = LimitSpec::new(10, 1_000_000_000, 20);
    /// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
    /// let limit = table.limit(&spec)?;
    /// for (client, cost) in [("192.0.2.1", 3), ("192.0.2.2", 20), ("192.0.2.3", 9)] {
    ///     assert!(table.check(&limit, 0, client.as_bytes(), cost)?.passes());
    /// }
    /// // What a server keeps of the requests that it refused: a few hashes with their names.
    /// let seen = ["192.0.2.2", "192.0.2.9"].map(|client| (table.hash(client.as_bytes()), client));
    /// let mut top = [Slot::default(); 2];
    /// assert_eq!(table.top(0, &mut top), 2);
    /// let named = |slot: &Slot| seen.iter().find(|(hash, _)| hash.is_ok_and(|hash| table.may_be(slot, hash)));
    /// assert_eq!(named(&top[0]).map(|(_, client)| *client), Some("192.0.2.2"));
    /// assert_eq!(named(&top[1]), None);
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Concurrency
    /// Together with any other call; each word is as of its load. Reads every line once. For each live slot it does a
    /// binary search in `out`, and moves the entries behind the place that it found.
    pub fn top(&self, now: u64, out: &mut [Slot]) -> usize {
        let mut found = 0usize;
        let mut from = 0;
        while let Some(slot) = self.next_live(now, from) {
            from = slot.number as usize + 1;
            let kept = out.get(..found).unwrap_or_else(|| impossible!(&[]));
            let place = kept.partition_point(|longer| longer.reset_after >= slot.reset_after);
            if found < out.len() {
                found += 1;
            }
            // Everything behind the place moves back by one, and the last entry drops out.
            let rest = out.get_mut(place..found).unwrap_or_else(|| impossible!(&mut []));
            rest.iter_mut().fold(slot, |moved, place| core::mem::replace(place, moved));
        }
        found
    }

    /// Returns whether the key of this hash may be the one in this slot: the tag and one of its lines match.
    pub fn may_be(&self, slot: &Slot, hash: u64) -> bool {
        let (set, tag) = self.place(hash);
        let layout = &self.geometry.layout;
        let line = slot.number / SLOTS_PER_LINE as u32;
        line ^ set.line <= 1 && slot.tag as u64 == tag.0 >> layout.bits
    }
}

//! Giving units back without a permit.

use crate::answer::Decision;
use crate::limit::TableLimit;
use crate::sync::access::Access;
use crate::table::error::TableError;
use crate::table::handle::Table;
use crate::table::layout::policy::FullPolicy;

impl<M: Access> Table<'_, M> {
    /// Gives up to `units` back to a key, although nobody has the permit of the charge. The caller vouches for it: in
    /// any time w a key is admitted at most R w + B and what is credited. If there is a permit,
    /// [`refund`](Table::refund) proves more.
    ///
    /// A key owes less by at most what it owes now, so it never has more than a full burst. Nothing is inserted: a key
    /// that owes nothing stays absent. Nothing is given back under [`FullPolicy::Inherit`] and [`FullPolicy::Sampled`],
    /// because the debt of the slot may be that of a key that lost it. Afterwards the key owes at least the claim
    /// lifetime and 18 q-units if it did before, as after a [change](Table::change). That is less than a unit, and soon
    /// drained, so `units` counts it as given back, but `remaining` does not.
    ///
    /// Returns the state of the key afterwards, and in `units` the units given back. A part of a unit, if the key owed
    /// no more, counts as a whole one: so R w + B and the sum of these is a bound. If contended, nothing changed: ask
    /// again.
    ///
    /// ```
    /// use tatcell::{LimitSpec, Line, Table, TableOptions};
    /// let spec = LimitSpec::new(10, 60_000, 10);
    /// let lines = [Line::EMPTY; 34];
    /// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
    /// let (limit, hash) = (table.limit(&spec)?, table.hash(b"a customer")?);
    /// assert!(table.check_hash(&limit, 0, hash, 6)?.passes());
    /// let after = table.credit(&limit, 0, hash, 4)?;
    /// assert_eq!((after.units, after.remaining), (4, 8));
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`]; [`TableError::BadAlgorithm`] unless the limit is a GCRA limit.
    ///
    /// # Concurrency
    /// Safe next to any other call, with a clock that is up to date: by one that is behind that of a later insert of
    /// the key, a credit lowers the slot further than the claim allows, as a refund does (see the guide). One
    /// compare-and-swap, two divisions.
    pub fn credit(
        &self,
        limit: &TableLimit,
        now: u64,
        hash: u64,
        units: u64,
    ) -> Result<Decision, TableError> {
        self.verify_limit(limit)?;
        if !limit.0.is_gcra() {
            return Err(TableError::BadAlgorithm);
        }
        // Under a GCRA limit a unit takes at least one q-unit.
        let unit = limit.0.t_q.max(1);
        Ok(match self.credit_q(limit, (now, hash), units) {
            Some((back, _)) => self.peek(limit, now, hash, 0)?.refunded(now, back.div_ceil(unit)),
            None => Decision::contended(0, limit.burst()),
        })
    }

    /// Does the same as [`credit`](Table::credit) under a GCRA limit of this table. Returns the q-units given back, and
    /// those by which the debt fell already; or `None` if contended.
    pub(in crate::table) fn credit_q(
        &self,
        limit: &TableLimit,
        (now, hash): (u64, u64),
        units: u64,
    ) -> Option<(u64, u64)> {
        let g = &self.geometry;
        let credit = units.saturating_mul(limit.0.t_q);
        // Where slots are taken over, the debt of a slot may be that of another key.
        if credit == 0 || !matches!(g.policy, FullPolicy::Admit | FullPolicy::Deny) {
            return Some((0, 0));
        }
        let (layout, now_q) = (&g.layout, g.clock_q(now));
        let (set, tag) = self.place(hash);
        let back = set.update::<M, _>(layout, tag, |word| {
            let lead = layout.lead(word, now_q);
            let back = credit.min(lead);
            // Not to before the claim that took the slot: a stalled thread could take a later claim for its own.
            let next = lead.wrapping_sub(back).max(lead.min(layout.grace.wrapping_add(2)));
            let moved = layout.live(tag, now_q.wrapping_add(next));
            ((back, lead.wrapping_sub(next)), (next != lead).then_some(moved))
        });
        back.map(|back| back.unwrap_or((0, 0)))
    }
}

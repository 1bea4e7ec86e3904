//! The calls for one key that return the full answer (remaining, retry, reset, permit), and those that do more than
//! decide: peek, charge after the fact, reserve, refund.

use crate::algorithms::{self, gcra, Call, Change, Kind, Op, Operation};
use crate::answer::{units_of, Answer, Decision, Permit, Place, Tracking};
use crate::limit::{LimitError, TableLimit};
use crate::sync::access::{Access, Ways};
use crate::table::counters::Counters;
use crate::table::error::TableError;
use crate::table::handle::Table;
use crate::table::layout::policy::FullPolicy;
use crate::table::set::attempt::{Ask, Done, Met};

/// One request with its options, for [`Table::check_ex`].
///
/// ```
/// use tatcell::{LimitSpec, Line, Request, Table, TableOptions};
/// let spec = LimitSpec::new(10, 1_000_000_000, 20);
/// let lines = [const { Line::EMPTY }; 66];
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// let limit = table.limit(&spec)?;
/// let request = Request { limit: &limit, now: 0, cost: 15, room: 0 };
/// let decision = table.check_ex(&request, table.hash(b"192.0.2.1")?, None)?;
/// assert_eq!((decision.passes(), decision.remaining), (true, 5));
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The limit that applies to this key now.
    pub limit: &'a TableLimit,
    /// The caller's clock, in ticks.
    pub now: u64,
    /// Units asked for; 0 peeks and never writes.
    pub cost: u64,
    /// Elastic room: units above the burst, at most the limit's `max_room`.
    pub room: u64,
}

impl<M: Access> Table<'_, M> {
    /// Decides like [`check_hash`](Table::check_hash), with elastic room and counters, and returns the full answer.
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`].
    #[inline]
    pub fn check_ex(
        &self,
        request: &Request<'_>,
        hash: u64,
        counters: Option<&mut Counters>,
    ) -> Result<Decision, TableError> {
        self.verify_limit(request.limit)?;
        Ok(self.decide_ex(request, hash, counters))
    }

    /// Does the same as [`check_ex`](Table::check_ex) under a limit of this table.
    pub(crate) fn decide_ex(
        &self,
        request: &Request<'_>,
        hash: u64,
        counters: Option<&mut Counters>,
    ) -> Decision {
        let Request { limit, now, cost, room } = *request;
        let op = Op::new(&limit.0, Kind::Check, cost, room);
        let done = self.run(hash, now, &op);
        let decision = self.decision(limit, now, cost, &done);
        if let Some(counters) = counters {
            counters.count(&decision, done.inserted);
        }
        decision
    }

    /// Does the same as [`check_ex`](Table::check_ex) under a limit of this table. A key without a slot takes over none
    /// of those in `kept`.
    pub(crate) fn check_beside(
        &self,
        request: &Request<'_>,
        hash: u64,
        counters: Option<&mut Counters>,
        kept: u32,
    ) -> Decision {
        let Request { limit, now, cost, room } = *request;
        self.operate((limit, now, hash), &Op::new(&limit.0, Kind::Check, cost, room), counters, kept)
    }

    /// Does the same as [`reserve`](Table::reserve) under a limit of GCRA of this table. A key without a slot takes
    /// over none of those in `kept`.
    pub(crate) fn reserve_beside(
        &self,
        limit: &TableLimit,
        (now, hash): (u64, u64),
        cost: u64,
        counters: Option<&mut Counters>,
        kept: u32,
    ) -> Decision {
        self.operate((limit, now, hash), &Op::new(&limit.0, Kind::Reserve, cost, 0), counters, kept)
    }

    #[cold]
    #[inline(never)]
    fn run_beside(&self, hash: u64, now: u64, op: &Op<'_>, kept: u32) -> Done {
        let call = Call::new(op, now);
        let op: &dyn Operation = if op.p.is_gcra() { op } else { &call };
        let (set, tag) = self.place(hash);
        let ask = self.ask(tag, hash, self.geometry.clock_q(now), op);
        set.settle(Ways::of::<M>(), Ask { kept, ..ask }, Met::default())
    }

    /// Returns the answer that a request of this cost would get, without charging it. Only reads; a key whose insert is
    /// in progress counts as absent.
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`].
    pub fn peek(&self, limit: &TableLimit, now: u64, hash: u64, cost: u64) -> Result<Decision, TableError> {
        self.verify_limit(limit)?;
        Ok(self.peek_with(limit, (now, hash), cost, 0).peeked())
    }

    /// Peeks with elastic room, under a limit of this table.
    pub(crate) fn peek_with(
        &self,
        limit: &TableLimit,
        (now, hash): (u64, u64),
        cost: u64,
        room: u64,
    ) -> Decision {
        let answer = self.answer_of(limit, (now, hash), cost, room);
        algorithms::decision(&answer, &limit.0, now, cost, Tracking::Tracked, Permit::NONE)
    }

    /// Returns what [`reserve`](Table::reserve) would answer under a limit of GCRA of this table, without charging it.
    pub(crate) fn peek_reserve(&self, limit: &TableLimit, (now, hash): (u64, u64), cost: u64) -> Decision {
        let answer = self.answer_of(limit, (now, hash), cost, 0);
        let answer = gcra::peek_reserve(&limit.0, answer.lead, cost);
        algorithms::decision(&answer, &limit.0, now, cost, Tracking::Tracked, Permit::NONE)
    }

    /// Returns the raw answer of [`peek`](Table::peek) under a limit of this table, with elastic room.
    pub(crate) fn answer_of(
        &self,
        limit: &TableLimit,
        (now, hash): (u64, u64),
        cost: u64,
        room: u64,
    ) -> Answer {
        let layout = &self.geometry.layout;
        let ((set, tag), now_q) = (self.place(hash), self.geometry.clock_q(now));
        let lead = set.find(layout, tag).map_or(0, |(_, _, word)| layout.lead(word, now_q));
        algorithms::peek(&limit.0, lead, now, cost, room)
    }

    /// Charges after the fact, up to the burst plus the limit's `max_debt`. Inserts an absent key. If its set is full,
    /// nothing may be charged: the decision then passes with `units` of 0 under `Admit` and `Sampled`, and under
    /// `Inherit` if the debt that it would inherit leaves no room. It is non-conforming under `Deny`, and under
    /// `Inherit` if no slot can be taken over.
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`].
    pub fn charge(
        &self,
        limit: &TableLimit,
        now: u64,
        hash: u64,
        cost: u64,
        counters: Option<&mut Counters>,
    ) -> Result<Decision, TableError> {
        self.verify_limit(limit)?;
        Ok(self.charge_owned(limit, (now, hash), cost, counters, 0))
    }

    /// Does the same as [`charge`](Table::charge) under a limit of this table. A key without a slot takes over none of
    /// those in `kept`.
    pub(crate) fn charge_owned(
        &self,
        limit: &TableLimit,
        (now, hash): (u64, u64),
        cost: u64,
        counters: Option<&mut Counters>,
        kept: u32,
    ) -> Decision {
        self.operate((limit, now, hash), &Op::new(&limit.0, Kind::Charge, cost, 0), counters, kept)
    }

    /// Reserves `cost` units for the earliest conforming instant, at most `max_delay` away: the decision's `departure`.
    ///
    /// Departures of one key are monotone as long as callers' clocks do not step back. Under `Admit` and `Sampled`, a
    /// key that finds its set full may leave at once, uncharged.
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`]; [`TableError::BadAlgorithm`] unless the limit is a GCRA limit, because only GCRA
    /// knows when a request may leave.
    pub fn reserve(
        &self,
        limit: &TableLimit,
        now: u64,
        hash: u64,
        cost: u64,
        counters: Option<&mut Counters>,
    ) -> Result<Decision, TableError> {
        if !limit.0.is_gcra() {
            self.verify_limit(limit)?;
            return Err(TableError::BadAlgorithm);
        }
        self.verify_limit(limit)?;
        Ok(self.reserve_beside(limit, (now, hash), cost, counters, 0))
    }

    /// Reserves like [`reserve`](Table::reserve), but for the earliest conforming instant at or after tick `from`, as
    /// if the request came then. `max_delay` and `retry_after` still count from `now`.
    ///
    /// # Errors
    /// The errors of [`reserve`](Table::reserve).
    pub fn reserve_from(
        &self,
        limit: &TableLimit,
        (now, from): (u64, u64),
        hash: u64,
        cost: u64,
    ) -> Result<Decision, TableError> {
        if !limit.0.is_gcra() {
            self.verify_limit(limit)?;
            return Err(TableError::BadAlgorithm);
        }
        let op = Op::new(&limit.0, Kind::Reserve, cost, limit.0.q_until(now, from));
        self.verify_limit(limit)?;
        Ok(self.operate((limit, now, hash), &op, None, 0).not_before(from))
    }

    /// Gives back what a permit proves was charged, has not drained since, and is still in the key's slot.
    ///
    /// Never inserts, and never lifts a key above a full burst. Gives back only what it can prove: nothing under
    /// [`FullPolicy::Sampled`], nothing for a permit from before a restore, and only in the slot that was charged. So
    /// it gives back nothing after a [reset](Table::reset_key), which moves the key to another slot.
    ///
    /// Use a permit once. Refund several permits of one key newest first, or make the limit with
    /// [`strict_refunds`](crate::LimitSpec::strict_refunds): refunded oldest first, the newer one can give back up to
    /// its cost that has drained, also after a reset. Refund only the last one of a queue of reservations, with or
    /// without strict refunds: see [`Cell::refund`](crate::Cell::refund).
    ///
    /// Returns the ticks of debt removed, rounded down (units if the limit counts units), or `None` when contended.
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`].
    pub fn refund(
        &self,
        limit: &TableLimit,
        now: u64,
        hash: u64,
        permit: &Permit,
    ) -> Result<Option<u64>, TableError> {
        Ok(self.give_back(limit, now, hash, permit)?.map(|back| limit.0.credited(back)))
    }

    /// As [`refund`](Table::refund) with the full answer: the state of the key afterwards, and in `units` the units
    /// given back.
    ///
    /// # Errors
    /// As [`refund`](Table::refund).
    pub fn refund_ex(
        &self,
        limit: &TableLimit,
        now: u64,
        hash: u64,
        permit: &Permit,
    ) -> Result<Decision, TableError> {
        Ok(match self.give_back(limit, now, hash, permit)? {
            Some(back) => self.peek(limit, now, hash, 0)?.refunded(now, units_of(&limit.0, 0, back)),
            None => Decision::contended(0, limit.burst()),
        })
    }

    /// As [`refund`](Table::refund), in q-units or counted units.
    fn give_back(
        &self,
        limit: &TableLimit,
        now: u64,
        hash: u64,
        permit: &Permit,
    ) -> Result<Option<u64>, TableError> {
        self.verify_limit(limit)?;
        let g = &self.geometry;
        let (layout, now_q) = (&g.layout, g.clock_q(now));
        let op = algorithms::refund(&limit.0, permit, g.generation, now, layout.mask);
        // A sampled table may have forgiven this debt together with another key's, so nothing proves what is left.
        if op.amount == 0 || matches!(g.policy, FullPolicy::Sampled) {
            return Ok(Some(0));
        }
        let (set, tag) = self.place(hash);
        let back = set.update_in::<M, u64>(permit.slot, layout, tag, |word| {
            let lead = layout.lead(word, now_q);
            let step = algorithms::step(&op, now, lead);
            // A decaying level is only a time, which a refund moves back. It must not move before the claim that took
            // the slot: a stalled thread could take a later claim for its own. A count keeps its time; GCRA permits
            // exclude the claim.
            let level = !g.is_gcra() && g.shl == 0;
            let least = if level { lead.min(layout.grace.wrapping_add(2)) } else { 0 };
            let next = step.store.map(|lead| layout.live(tag, now_q.wrapping_add(lead.max(least))));
            (step.answer.stored, next)
        });
        // If it is gone (drained, reset or evicted), there is nothing to give back.
        Ok(back.map(|back| back.unwrap_or(0)))
    }

    /// Moves one key from one limit of this table to another, from now on, like [`Cell::change`](crate::Cell::change).
    /// An absent key stays absent. Returns false when contended: nothing changed, ask again.
    ///
    /// Use it if keys have several limits, for instance when one customer gets another plan: a word does not say its
    /// limit. Call it once for each change of the key. Give the new limit another epoch, or permits from before may be
    /// taken for its own. Afterwards the key owes at least the claim lifetime and 18 q-units if it did before.
    ///
    /// ```
    /// use tatcell::{Change, LimitSpec, Line, Table, TableOptions};
    /// let (few, many) = (LimitSpec::new(60, 3_600_000, 60), LimitSpec::new(600, 3_600_000, 600));
    /// let lines = [Line::EMPTY; 34];
    /// let table = Table::init(&lines, &TableOptions::new(many).slowest(few).seed(*b"16 random bytes!"))?;
    /// let (old, new, hash) = (table.limit(&few)?, table.limit(&many)?, table.hash(b"a customer")?);
    /// assert!(table.check_hash(&old, 0, hash, 60)?.passes());
    /// assert!(table.change(&old, &new, 0, hash, Change::KeepUnits)?);
    /// assert_eq!(table.peek(&new, 0, hash, 1)?.remaining, 540);
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`]. The errors of [`Cell::change`](crate::Cell::change), in [`TableError::Limit`].
    ///
    /// # Concurrency
    /// Safe next to any other call. Under [`FullPolicy::Inherit`] and [`FullPolicy::Sampled`] a smaller debt may lie
    /// below the claim by which the key took over its slot. A thread that stalls inside that insert could then give the
    /// key two slots, so stop the callers first. One compare-and-swap, one 128-bit division.
    pub fn change(
        &self,
        old: &TableLimit,
        new: &TableLimit,
        now: u64,
        hash: u64,
        how: Change,
    ) -> Result<bool, TableError> {
        self.verify_limit(old)?;
        self.verify_limit(new)?;
        let (layout, now_q) = (&self.geometry.layout, self.geometry.clock_q(now));
        let (set, tag) = self.place(hash);
        if matches!(how, Change::Reset) {
            return Ok(set.reset::<M>(layout, tag, now_q));
        }
        algorithms::keeps(&old.0, &new.0).map_err(TableError::Limit)?;
        if algorithms::keeps_word(&old.0, &new.0) {
            return Ok(true);
        }
        let op = Op::new(&new.0, Kind::Check, 0, 0);
        let made = set.update::<M, _>(layout, tag, |word| {
            let lead = layout.lead(word, now_q);
            let (next, is_cut) = algorithms::change(&old.0, &new.0, lead, now, how);
            if is_cut && !op.p.is_gcra() {
                return (Err(TableError::Limit(LimitError::LargerCount)), None);
            }
            // Not to before the claim that took the slot; a refund of a level does the same.
            let next = algorithms::no_less(&op, now, next, lead.min(layout.grace.wrapping_add(2)));
            let moved = layout.live(tag, now_q.wrapping_add(next));
            (Ok(()), (lead != 0 && next != lead).then_some(moved))
        });
        match made {
            Some(Some(Err(e))) => Err(e),
            made => Ok(made.is_some()),
        }
    }

    /// Runs an operation under a limit of this table, and counts it. A key without a slot takes over none of those in
    /// `kept`.
    #[inline(never)]
    fn operate(
        &self,
        (limit, now, hash): (&TableLimit, u64, u64),
        op: &Op<'_>,
        counters: Option<&mut Counters>,
        kept: u32,
    ) -> Decision {
        let done = if kept == 0 { self.run(hash, now, op) } else { self.run_beside(hash, now, op, kept) };
        let decision = self.decision(limit, now, op.cost, &done);
        if let Some(counters) = counters {
            counters.count(&decision, done.inserted);
        }
        decision
    }

    pub(crate) fn permit(&self, limit: &TableLimit, now: u64, done: &Done) -> Permit {
        match &done.answer {
            Some(answer) if !matches!(done.tracking, Tracking::Untracked) => {
                let (slot, g) = (done.slot, &self.geometry);
                answer.permit(&limit.0, Place { now, mask: g.layout.mask, generation: g.generation, slot })
            }
            _ => Permit::NONE,
        }
    }

    pub(crate) fn decision(&self, limit: &TableLimit, now: u64, cost: u64, done: &Done) -> Decision {
        match &done.answer {
            Some(answer) => {
                let permit = self.permit(limit, now, done);
                let answer = Answer { stored: done.charged, ..*answer };
                algorithms::decision(&answer, &limit.0, now, cost, done.tracking, permit)
            }
            None => Decision::contended(cost, limit.0.burst),
        }
    }
}

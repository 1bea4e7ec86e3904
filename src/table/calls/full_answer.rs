//! The calls for one key that give the full answer: remaining, retry, reset, permits; and those that do more than
//! decide: looking, charging after the fact, reserving, giving back.

use crate::algorithms::{self, Change, Kind, Op};
use crate::answer::{Answer, Decision, Permit, Place, Tracking};
use crate::limit::{LimitError, TableLimit};
use crate::sync::access::Access;
use crate::table::counters::Counters;
use crate::table::error::TableError;
use crate::table::handle::Table;
use crate::table::layout::policy::FullPolicy;
use crate::table::set::attempt::Done;

/// One request with its options, for [`Table::check_ex`].
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The limit that applies to this key now.
    pub limit: &'a TableLimit,
    /// The caller's clock, in ticks.
    pub now: u64,
    /// Units asked for; 0 looks and never writes.
    pub cost: u64,
    /// Elastic room in units above the burst, at most the limit's `max_room`.
    pub room: u64,
}

impl<M: Access> Table<'_, M> {
    /// As [`check_hash`](Table::check_hash) with the full answer, elastic room and counters.
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

    /// [`check_ex`](Table::check_ex) under a limit of this table.
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

    /// Answers what a request of this cost would be told, without charging it. Reads only; an insert in progress
    /// reads as absent.
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`].
    pub fn peek(&self, limit: &TableLimit, now: u64, hash: u64, cost: u64) -> Result<Decision, TableError> {
        self.verify_limit(limit)?;
        let answer = self.answer_of(limit, now, hash, cost);
        Ok(algorithms::decision(&answer, &limit.0, now, cost, Tracking::Tracked, Permit::NONE))
    }

    /// As [`peek`](Table::peek) under a limit of this table, without what is to be told.
    pub(crate) fn answer_of(&self, limit: &TableLimit, now: u64, hash: u64, cost: u64) -> Answer {
        let layout = &self.geometry.layout;
        let ((set, tag), now_q) = (self.place(hash), self.geometry.clock_q(now));
        let lead = set.find(layout, tag).map_or(0, |(_, _, word)| layout.lead(word, now_q));
        algorithms::peek(&limit.0, lead, now, cost)
    }

    /// Charges after the fact, up to the burst plus the limit's `max_debt`; inserts an absent key.
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
        self.operate(limit, now, hash, &Op::new(&limit.0, Kind::Charge, cost, 0), counters)
    }

    /// Reserves `cost` units for the earliest conforming instant, at most `max_delay` away: the decision's `departure`.
    ///
    /// Departures of one key are monotone as long as the callers' clocks do not step back. A key that finds its set
    /// full is told to leave at once, uncharged, under `Admit` and `Sampled`.
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`]; [`TableError::BadAlgorithm`] under any but GCRA, which alone knows when a request
    /// may leave.
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
        self.operate(limit, now, hash, &Op::new(&limit.0, Kind::Reserve, cost, 0), counters)
    }

    /// As [`reserve`](Table::reserve) for the earliest conforming instant that is not before tick `from`, as if the
    /// request came then; `max_delay` and `retry_after` count from `now` still.
    ///
    /// # Errors
    /// As [`reserve`](Table::reserve).
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
        self.operate(limit, now, hash, &op, None)
    }

    /// Gives back what a permit proves was charged, has not drained since and still lies in the key's slot.
    ///
    /// Never inserts and never lifts a key above a full burst. Credits what it can prove: nothing under
    /// [`FullPolicy::Sampled`], nothing for a permit of before a restore, and only in the slot that was charged, so
    /// nothing once the key has been [reset](Table::reset_key), whose next slot is another one.
    ///
    /// Use a permit once, and of several permits of one key refund the newest first, or make the limit with
    /// [`strict_refunds`](crate::LimitSpec::strict_refunds): refunded oldest first, the newer one can give back up to
    /// its cost that has drained, also after a reset. Of a line of reservations give back the last one only, strict
    /// refunds or not: see [`Cell::refund`](crate::Cell::refund).
    ///
    /// Returns the ticks of debt removed, rounded down (where the limit counts units, those); `None` when contended.
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
        self.verify_limit(limit)?;
        let g = &self.geometry;
        let (layout, now_q) = (&g.layout, g.clock_q(now));
        let op = algorithms::refund(&limit.0, permit, g.generation, now, layout.mask);
        // A sampled table may have forgiven the debt together with another key's, so nothing proves what is left of it.
        if op.amount == 0 || matches!(g.policy, FullPolicy::Sampled) {
            return Ok(Some(0));
        }
        let (set, tag) = self.place(hash);
        let back = set.update_in::<M, u64>(permit.slot, layout, tag, |word| {
            let lead = layout.lead(word, now_q);
            let step = algorithms::step(&op, now, lead);
            // A level is a time alone, and a refund moves it back: not to before the claim that its slot was taken by,
            // or a stalled thread could take a later claim for its own. A count keeps its time, and the permits of GCRA
            // exclude the claim.
            let level = !g.is_gcra() && g.shl == 0;
            let least = if level { lead.min(layout.grace.wrapping_add(2)) } else { 0 };
            let next = step.store.map(|lead| layout.live(tag, now_q.wrapping_add(lead.max(least))));
            (step.answer.stored, next)
        });
        // Not there any more: drained, reset or evicted, so there is nothing to give back.
        let back = back.map(|back| back.unwrap_or(0));
        Ok(back.map(|back| if g.is_gcra() { crate::time::ticks_down(back, g.shl, g.shr) } else { back }))
    }

    /// Moves one key from one limit of this table to another, from now on: as [`Cell::change`](crate::Cell::change).
    /// An absent key stays absent. Returns false when contended: nothing changed, ask again.
    ///
    /// For keys of several limits, of which no word tells its own, as where one customer gets another plan. Call it
    /// once for each change of the key, and give the new limit another epoch, or permits of before may be taken for
    /// its own. The key owes at least the claim lifetime and 18 q-units afterwards, if it owed as much before.
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
    /// [`TableError::ForeignLimit`]; those of [`Cell::change`](crate::Cell::change) as [`TableError::Limit`].
    ///
    /// # Concurrency
    /// Beside any other call. Under [`FullPolicy::Inherit`] and [`FullPolicy::Sampled`] a smaller debt may lie below
    /// the claim by which the key took its slot over: a thread that stands still inside that insert could then give
    /// the key two slots, so stop the callers first. One compare-and-swap, one 128-bit division.
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
        let op = Op::new(&new.0, Kind::Check, 0, 0);
        let made = set.update::<M, _>(layout, tag, |word| {
            let lead = layout.lead(word, now_q);
            let (next, is_cut) = algorithms::change(&old.0, &new.0, lead, now, how);
            if is_cut && !op.p.is_gcra() {
                return (Err(TableError::Limit(LimitError::LargerCount)), None);
            }
            // As of a refund of a level: not to before the claim that its slot was taken by.
            let next = algorithms::no_less(&op, now, next, lead.min(layout.grace.wrapping_add(2)));
            let moved = layout.live(tag, now_q.wrapping_add(next));
            (Ok(()), (lead != 0 && next != lead).then_some(moved))
        });
        match made {
            Some(Some(Err(e))) => Err(e),
            made => Ok(made.is_some()),
        }
    }

    /// Runs an operation under a limit of this table, and counts it.
    fn operate(
        &self,
        limit: &TableLimit,
        now: u64,
        hash: u64,
        op: &Op<'_>,
        counters: Option<&mut Counters>,
    ) -> Result<Decision, TableError> {
        self.verify_limit(limit)?;
        let done = self.run(hash, now, op);
        let decision = self.decision(limit, now, op.cost, &done);
        if let Some(counters) = counters {
            counters.count(&decision, done.inserted);
        }
        Ok(decision)
    }

    fn permit(&self, limit: &TableLimit, now: u64, done: &Done) -> Permit {
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
                algorithms::decision(answer, &limit.0, now, cost, done.tracking, permit)
            }
            None => Decision::contended(cost, limit.0.burst),
        }
    }
}

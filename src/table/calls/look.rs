//! One key of a request that is decided by several limits together: its word, without storing, and the parts of an
//! answer about a swap that was made elsewhere (`combine::short`).

use crate::algorithms::gcra::{self, Plain};
use crate::algorithms::{self, Kind, Op};
use crate::answer::{Answer, Decision, Permit, Tracking, Verdict};
use crate::limit::params::Params;
use crate::limit::TableLimit;
use crate::sync::access::{Access, Shared, Ways};
use crate::sync::{AtomicU64, Look, Ordering, Swap};
use crate::table::handle::Table;
use crate::table::layout::geometry::SLOTS_PER_LINE;
use crate::table::layout::policy::FullPolicy;
use crate::table::layout::word::{Layout, Tag};
use crate::table::set::attempt::{Ask, Done, Met, PlainCheck};
use crate::table::set::search::{Avx512, Base, Scan};
use crate::table::set::set::Set;

/// What a look at a word needs to know of its table and of the time. It is the same for tables of either mode, so that
/// there is one code for both.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    layout: &'a Layout,
    now_q: u64,
    wide: Option<Avx512>,
}

impl View<'_> {
    /// Looks at the word of a key; stores nothing.
    #[inline(always)]
    pub fn look_at<'m>(
        &self,
        (set, tag): (Set<'m, SLOTS_PER_LINE>, Tag),
        limit: &TableLimit,
        cost: u64,
    ) -> Look<'m> {
        match self.wide {
            Some(wide) => self.look_by(wide, (set, tag), limit, cost),
            None => self.look_by(Base, (set, tag), limit, cost),
        }
    }

    #[inline(always)]
    fn look_by<'m>(
        &self,
        scan: impl Scan,
        (set, tag): (Set<'m, SLOTS_PER_LINE>, Tag),
        limit: &TableLimit,
        cost: u64,
    ) -> Look<'m> {
        // A plain cost is at most the burst, so an absent key conforms.
        match set.find_by::<Shared>(scan, self.layout, tag) {
            Some((_, slot, word)) => self.look_in(limit, tag, cost, (slot, word)),
            None => Look::Absent,
        }
    }

    /// Looks again at the word of a slot in which this key was; absent if it has left the slot.
    pub fn look_again<'m>(&self, hash: u64, slot: &'m AtomicU64, limit: &TableLimit, cost: u64) -> Look<'m> {
        let tag = self.layout.tag(hash);
        // ORDERING: Relaxed; single word, value only, and the swap decides.
        let word = slot.load(Ordering::Relaxed);
        match self.layout.is_live_of(word, tag) {
            true => self.look_in(limit, tag, cost, (slot, word)),
            false => Look::Absent,
        }
    }

    /// Looks at a live word of this key.
    #[inline(always)]
    fn look_in<'m>(
        &self,
        limit: &TableLimit,
        tag: Tag,
        cost: u64,
        (slot, word): (&'m AtomicU64, u64),
    ) -> Look<'m> {
        // For a live word of this key `word ^ tag` is the payload, without a mask.
        let lead = self.layout.lead(word ^ tag.0, self.now_q);
        match gcra::plain(&limit.0, lead, cost) {
            Plain::Store(lead) => {
                let next = self.layout.live(tag, self.now_q.wrapping_add(lead));
                Look::Fits(Swap { slot, word, next })
            }
            Plain::Wait(_) => Look::Refuses(lead),
            Plain::Other => Look::Other,
        }
    }
}

impl<M: Access> Table<'_, M> {
    /// Returns whether the limit belongs to this table, and one inequality decides a request of this cost.
    #[inline(always)]
    pub(crate) fn is_plain(&self, limit: &TableLimit, cost: u64) -> bool {
        limit.0.fingerprint == self.timed && gcra::is_plain(&limit.0, cost)
    }

    /// Returns what a look at a word of this table needs to know.
    #[inline(always)]
    pub(crate) fn view(&self, now: u64) -> View<'_> {
        View { layout: &self.geometry.layout, now_q: self.now_q(now), wide: self.wide }
    }

    /// Charges a key that was absent a moment ago, by a plain request. Its two parts have their frames one after the
    /// other, because both lie below that of a chain. `kept` returns the slots that it must not take over.
    #[inline(always)]
    pub(crate) fn charge_absent(
        &self,
        limit: &TableLimit,
        (now, hash): (u64, u64),
        cost: u64,
        kept: impl FnOnce() -> u32,
    ) -> Done {
        match self.insert_plain(limit, now, hash, cost) {
            Ok(done) => done,
            Err(met) => self.settle_plain(limit, (now, hash), cost, met, kept()),
        }
    }

    #[inline(never)]
    fn insert_plain(&self, limit: &TableLimit, now: u64, hash: u64, cost: u64) -> Result<Done, Met> {
        let ((set, tag), op) = (self.place(hash), PlainCheck(Op::new(&limit.0, Kind::Check, cost, 0)));
        set.insert_absent::<M, _>(self.ask(tag, hash, self.now_q(now), &op))
    }

    #[cold]
    #[inline(never)]
    fn settle_plain(
        &self,
        limit: &TableLimit,
        (now, hash): (u64, u64),
        cost: u64,
        met: Met,
        kept: u32,
    ) -> Done {
        let ((set, tag), op) = (self.place(hash), PlainCheck(Op::new(&limit.0, Kind::Check, cost, 0)));
        let ask = Ask { kept, ..self.ask(tag, hash, self.now_q(now), &op) };
        set.settle(Ways::of::<M>(), ask.any(), met)
    }

    /// Returns whether an insert may take over the slot of another key.
    pub(crate) fn takes_over(&self) -> bool {
        matches!(self.geometry.policy, FullPolicy::Inherit | FullPolicy::Sampled)
    }

    /// Returns the slot that key `other` has in the set of key `hash`, one bit for its position in search order, or 0.
    #[inline(never)]
    pub(crate) fn slot_beside(&self, hash: u64, other: u64) -> u32 {
        let ((set, _), (home, tag)) = (self.place(hash), self.place(other));
        if set.line ^ home.line > 1 {
            return 0;
        }
        set.find(&self.geometry.layout, tag).map_or(0, |(at, ..)| 1u32.wrapping_shl(at as u32))
    }

    /// Returns whether a refund of a swap that was stored would store the word that the swap replaced. It does if that
    /// word lies ahead of now, except where a refund gives nothing back.
    pub(crate) fn is_refund(&self, now: u64, swap: &Swap<'_>) -> bool {
        let sampled = matches!(self.geometry.policy, FullPolicy::Sampled);
        !sampled && self.geometry.layout.lead(swap.word, self.now_q(now)) != 0
    }

    /// Returns how far ahead a key lies after a swap that was stored.
    #[inline(always)]
    pub(crate) fn lead_after(&self, now: u64, swap: &Swap<'_>) -> u64 {
        swap.next.wrapping_sub(self.now_q(now)) & self.geometry.layout.mask
    }

    /// Returns how a request ended whose swap was stored.
    pub(crate) fn stored(&self, limit: &TableLimit, now: u64, cost: u64, swap: &Swap<'_>) -> Done {
        let (p, lead) = (&limit.0, self.lead_after(now, swap));
        let charged = cost.wrapping_mul(p.t_q);
        let flags = if lead > p.soft_q { Decision::SOFT } else { 0 };
        let answer = Answer { verdict: Verdict::Conforming, flags, lead, wait: 0, stored: charged };
        let bytes = core::ptr::from_ref(swap.slot).addr().wrapping_sub(self.slots.as_ptr().addr());
        let slot = (bytes / size_of::<AtomicU64>()) as u32;
        Done { answer: Some(answer), tracking: Tracking::Tracked, slot, inserted: false, charged }
    }
}

/// Returns the units that are left at this lead, under a limit for which the request was plain.
#[inline(always)]
pub(crate) fn left(p: &Params, lead: u64) -> u64 {
    gcra::left(p, lead)
}

/// Returns the q-units until a plain request conforms whose word lies `lead` q-units ahead.
pub(crate) fn wait(p: &Params, lead: u64, now: u64, cost: u64) -> u64 {
    algorithms::peek(p, lead, now, cost, 0).wait
}

/// Returns the decision of a plain request that ended so, without a permit.
pub(crate) fn told(p: &Params, now: u64, cost: u64, answer: &Answer, tracking: Tracking) -> Decision {
    algorithms::decision(answer, p, now, cost, tracking, Permit::NONE)
}

/// Returns the decision of a plain request that has passed, without a permit: the same as [`told`], where it is known
/// that `left` units are left.
#[inline(always)]
pub(crate) fn passed(
    p: &Params,
    now: u64,
    (cost, units): (u64, u64),
    flags: u32,
    lead: u64,
    left: u64,
) -> Decision {
    let numbers = gcra::numbers_with(p, lead, now, left);
    Decision {
        verdict: Verdict::Conforming,
        tracking: Tracking::Tracked,
        flags,
        policy: 0,
        cost,
        burst: p.burst,
        remaining: left,
        retry_after: 0,
        next_unit: numbers.next_unit,
        reset_after: numbers.reset_after,
        departure: now,
        permit: Permit::NONE,
        units,
        in_debt: false,
    }
}

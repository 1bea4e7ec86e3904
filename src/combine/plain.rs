//! What the short way of a chain asks of a link: its word, without storing; a charge; and the parts of an answer.

use super::link::{either, override_answer, TableRef, Target};
use crate::answer::{Answer, Decision, Permit, Tracking, Verdict};
use crate::cell::Cell;
use crate::limit::params::Params;
use crate::limit::TableLimit;
use crate::sync::{AtomicU64, Look, Swap};
use crate::table::{left, passed, told, wait, Done};

/// What was charged to a key that was absent when its word was looked for.
#[derive(Clone, Copy)]
pub(crate) struct Made {
    lead: u64,
    /// The part that a permit may give back, in q-units.
    stored: u64,
    slot: u32,
    tracking: Tracking,
    soft: bool,
    /// Whether a slot was taken for it.
    inserted: bool,
}

/// How a link refuses.
#[derive(Clone, Copy)]
pub(crate) struct Refusal {
    lead: u64,
    /// q-units until the request conforms.
    wait: u64,
    tracking: Tracking,
}

/// What the short way knows of a link.
#[derive(Clone, Copy)]
pub(crate) enum Seen<'a> {
    /// Nothing is stored, and no word is known.
    Absent,
    /// The same, of a link that is kept here because it takes long to make.
    #[allow(dead_code)] // the C layer makes it
    Named(Target<'a>),
    Word(Swap<'a>),
    Made(Made),
    /// It refuses after others were charged.
    Refuses(Refusal),
}

impl Seen<'_> {
    pub fn is_inserted(&self) -> bool {
        matches!(self, Seen::Made(made) if made.inserted)
    }
}

/// A link as its charge left it.
#[derive(Clone, Copy)]
pub(super) struct After<'a> {
    p: &'a Params,
    lead: u64,
    pub tracking: Tracking,
    /// Whether it lies above the soft threshold, if that is known.
    soft: Option<bool>,
}

impl After<'_> {
    /// Returns the units that are left.
    #[inline(always)]
    pub fn left(&self) -> u64 {
        left(self.p, self.lead)
    }

    /// Writes the decision about the charge, without its permit. `left` is what [`left`](After::left) returned.
    #[inline(always)]
    pub fn tell(&self, now: u64, cost: u64, left: u64, to: &mut Decision) {
        let After { p, lead, tracking, soft } = *self;
        let flags = if soft.unwrap_or(lead > p.soft_q) { Decision::SOFT } else { 0 };
        let units = if tracking == Tracking::Untracked { 0 } else { cost };
        *to = passed(p, now, (cost, units), flags, lead, left);
    }
}

/// Looks at the word of a key of a table.
#[inline(always)]
pub(crate) fn look_at<'a>(
    table: TableRef<'a>,
    limit: &TableLimit,
    now: u64,
    hash: u64,
    cost: u64,
) -> Look<'a> {
    let (view, place) = (either!(table, t => t.view(now)), either!(table, t => t.place(hash)));
    view.look_at(place, limit, cost)
}

impl<'a> Target<'a> {
    /// Returns whether one inequality decides a request of this cost.
    #[inline(always)]
    pub fn is_plain(&self, cost: u64) -> bool {
        match self {
            Target::Cell(_, limit) => cost.wrapping_sub(1) < limit.0.plain,
            Target::Key(table, Some(limit), _) => either!(table, t => t.is_plain(limit, cost)),
            _ => false,
        }
    }

    #[inline(always)]
    pub fn prefetch(&self) {
        if let Target::Key(table, limit, hash) = self {
            either!(table, t => if limit.is_some() || t.was_used() {
                t.prefetch(core::slice::from_ref(hash));
            });
        }
    }

    /// Looks at the word; stores nothing.
    #[inline(always)]
    pub fn look_at(&self, now: u64, cost: u64) -> Look<'a> {
        let hash = if let Target::Key(_, _, hash) = *self { hash } else { 0 };
        self.look_as(now, hash, cost)
    }

    /// Does the same as [`look_at`](Target::look_at) with the hash of another key.
    #[inline(always)]
    pub fn look_as(&self, now: u64, hash: u64, cost: u64) -> Look<'a> {
        // Each of these tests one condition: four cases at once would be an indirect jump.
        if let Target::Key(table, Some(limit), _) = *self {
            look_at(table, limit, now, hash, cost)
        } else if let Target::Cell(cell, limit) = *self {
            cell.look_at(limit, now, cost)
        } else if self.is_overrides() {
            Look::Nothing
        } else {
            Look::Other
        }
    }

    /// Looks again at the word of a swap that was lost; absent if the key has left the slot.
    pub(super) fn look_again(&self, now: u64, cost: u64, slot: &'a AtomicU64) -> Look<'a> {
        match *self {
            Target::Key(table, Some(limit), hash) => {
                either!(table, t => t.view(now)).look_again(hash, slot, limit, cost)
            }
            _ => self.look_at(now, cost),
        }
    }

    /// Charges a key that was absent, and takes over none of the slots that `kept` returns. `Err`: it does not pass,
    /// and nothing is charged; `None` = contended.
    #[inline(always)]
    pub(super) fn insert(
        &self,
        now: u64,
        cost: u64,
        kept: impl FnOnce() -> u32,
    ) -> Result<Made, Option<Refusal>> {
        let Target::Key(table, Some(limit), hash) = *self else { return Err(None) };
        let Done { answer, tracking, slot, inserted, .. } =
            either!(table, t => t.charge_absent(limit, (now, hash), cost, kept));
        match answer {
            Some(Answer { verdict, flags, lead, stored, .. }) if verdict.passes() => {
                Ok(Made { lead, stored, slot, tracking, soft: flags & Decision::SOFT != 0, inserted })
            }
            answer => Err(answer.map(|Answer { lead, wait, .. }| Refusal { lead, wait, tracking })),
        }
    }

    /// Gives back what the short way has charged, by one attempt: the swap the other way round.
    pub(super) fn take_back(&self, now: u64, swap: &Swap<'_>) -> bool {
        let is_refund = match self {
            Target::Cell(_, limit) => Cell::is_refund(limit, now, swap),
            Target::Key(table, Some(_), _) => either!(table, t => t.is_refund(now, swap)),
            _ => false,
        };
        is_refund && swap.take_back()
    }

    fn params(&self) -> Option<&'a Params> {
        match *self {
            Target::Cell(_, limit) => Some(&limit.0),
            Target::Key(_, Some(limit), _) => Some(&limit.0),
            _ => None,
        }
    }

    /// Returns how a charge of the short way ended.
    fn done(&self, now: u64, cost: u64, seen: &Seen<'_>) -> Option<Done> {
        match (*self, *seen) {
            (Target::Cell(_, limit), Seen::Word(swap)) => {
                let answer = Some(Cell::stored_answer(limit, now, cost, &swap));
                Some(Done { answer, tracking: Tracking::Tracked, slot: 0, inserted: false, charged: 0 })
            }
            (Target::Key(table, Some(limit), _), Seen::Word(swap)) => {
                Some(either!(table, t => t.stored(limit, now, cost, &swap)))
            }
            (
                Target::Key(_, Some(limit), _),
                Seen::Made(Made { lead, stored, slot, tracking, soft, inserted }),
            ) => {
                let flags = if soft { Decision::SOFT } else { 0 };
                let answer = Answer { verdict: Verdict::Conforming, flags, lead, wait: 0, stored };
                let is_charged = tracking != Tracking::Untracked;
                let charged = if is_charged { cost.wrapping_mul(limit.0.t_q) } else { 0 };
                Some(Done { answer: Some(answer), tracking, slot, inserted, charged })
            }
            _ => None,
        }
    }

    /// Returns the permit of a charge of the short way.
    pub(super) fn permit(&self, now: u64, cost: u64, seen: &Seen<'_>) -> Permit {
        let Some(done) = self.done(now, cost, seen) else { return Permit::NONE };
        match (*self, &done.answer) {
            (Target::Cell(_, limit), Some(answer)) => Cell::permit(limit, now, answer),
            (Target::Key(table, Some(limit), _), _) => either!(table, t => t.permit(limit, now, &done)),
            _ => Permit::NONE,
        }
    }

    /// Returns the decision about a charge of the short way, or about its refusal.
    pub(super) fn charged(&self, now: u64, cost: u64, seen: &Seen<'_>) -> Decision {
        if let Seen::Refuses(refusal) = seen {
            return self.refused(now, cost, refusal);
        }
        if self.is_overrides() {
            // The key has none, or the override would have decided.
            return override_answer(now, None);
        }
        let done = self.done(now, cost, seen);
        match (*self, &done) {
            (Target::Cell(_, limit), Some(done)) => Cell::decision(limit, now, cost, done.answer),
            (Target::Key(table, Some(limit), _), Some(done)) => {
                either!(table, t => t.decision(limit, now, cost, done))
            }
            _ => Decision::contended(cost, 0),
        }
    }

    /// Returns the link as a charge of the short way left it; `None` for overrides.
    #[inline(always)]
    pub(super) fn after(&self, now: u64, seen: &Seen<'_>) -> Option<After<'a>> {
        let p = self.params()?;
        let lead = match (*self, seen) {
            (Target::Cell(_, limit), Seen::Word(swap)) => Cell::lead_after(limit, now, swap),
            (Target::Key(table, _, _), Seen::Word(swap)) => either!(table, t => t.lead_after(now, swap)),
            (_, Seen::Made(Made { lead, tracking, soft, .. })) => {
                return Some(After { p, lead: *lead, tracking: *tracking, soft: Some(*soft) });
            }
            _ => return None,
        };
        Some(After { p, lead, tracking: Tracking::Tracked, soft: None })
    }

    /// Returns how a request is refused whose word lies `lead` q-units ahead.
    pub(super) fn refusal(&self, now: u64, cost: u64, lead: u64) -> Refusal {
        let wait = self.params().map_or(0, |p| wait(p, lead, now, cost));
        Refusal { lead, wait, tracking: Tracking::Tracked }
    }

    /// Returns the ticks until a request conforms that is refused so.
    pub(super) fn wait_after(&self, now: u64, cost: u64, lead: u64) -> u64 {
        self.params().map_or(0, |p| p.ticks_up(wait(p, lead, now, cost), now))
    }

    /// Returns the decision of a request that is refused so.
    pub(super) fn refused(&self, now: u64, cost: u64, refusal: &Refusal) -> Decision {
        let Refusal { lead, wait, tracking } = *refusal;
        let answer = Answer { verdict: Verdict::NonConforming, flags: 0, lead, wait, stored: 0 };
        match self.params() {
            Some(p) => told(p, now, cost, &answer, tracking),
            None => Decision::contended(cost, 0),
        }
    }
}

//! The generic cell rate algorithm (ITU-T I.371, virtual scheduling form), as pure functions.
//!
//! ```text
//!  word   [                TAT : W                ]   0 = EMPTY; a computed 0 is stored as 1
//!
//!         now            TAT              now + D      now + H          now + H + S
//!  -------+---------------+-----------------+------------+-----------------+------------>
//!   expired  <--- lead -->| <- available -> | room/debt  | backward clock  |  expired
//! ```
//!
//! The whole state of a key is its theoretical arrival time (TAT). `lead` is TAT - now if that is within the window of
//! H + S q-units, else 0: an expired word is the same as an absent one. A request of cost c conforms iff
//! `lead + c * T <= D`, D = burst * T, and then moves the TAT by `c * T`. A step only adds to a live lead, so the TAT
//! never goes back, and a wrap of the word can only make a false debt, never extra units (the tests exhaust the decode
//! theorem for W = 16).
//!
//! The functions here map a lead to an answer and, if something is stored, to the next lead. They know no word layout,
//! no atomics and no clock; cells and tables drive them. No step divides.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::state::{scaled, Change, Kind, Op, Operation};
use crate::answer::{Answer, Decision, Numbers, Permit, Step, Verdict};
use crate::limit::params::{Params, FLAG_HEAL, FLAG_PENALTY, FLAG_SHADOW};

// The window decode (`lead_of`) and the inequality (`fits`) are defined here, and all deciding code inlines them. A
// copy exists only if they would cost instructions that a gate counts, or for another language. These are all copies;
// if you change one of the two functions, change them too:
//
//   decode      plain_word (below)                            a TAT equal to now needs no second case
//               Layout::lead (table/layout/word.rs)           the words of a table, without a comparison
//               LineWords::oldest (table/set/search/line.rs)  eight of them at once
//               lead_as (small/cell.rs)                       words of 32 and 64 bits, for firmware
//   inequality  run_plain (table/burst/scalar.rs)             a burst needs no answer, only the next lead
//               Step::decode (table/burst/simd: portable.rs, avx2.rs, avx512.rs)
//               take_as, reserve (small/cell.rs)
//   both in C   include/tatcell_inline.h, include/tatcell_bpf.h
//   both in Go  bindings/go (gcra.go; Check of cells and tables), which its tests compare with this crate
//
// The cluster's scripts count units, and `algorithms/meters.rs` has an inequality of its own.

/// Returns the lead of TAT `tat` at `now_q` in a word of `mask`'s width: TAT - now if that is in 1..=window, else 0.
///
/// This takes one comparison. (`d > window` means the same, but a cell's check takes one to three instructions more.)
#[inline(always)]
pub(crate) const fn lead_of(tat: u64, now_q: u64, mask: u64, window: u64) -> u64 {
    let d = tat.wrapping_sub(now_q) & mask;
    if d.wrapping_sub(1) < window {
        d
    } else {
        0
    }
}

/// Tests whether a charge conforms: `lead + charge <= limit`. `Ok` is the lead after it, `Err` the excess.
///
/// No overflow: a lead is at most H + S, a charge at most H, and both are below 2^63.
#[inline(always)]
pub(crate) const fn fits(lead: u64, charge: u64, limit: u64) -> Result<u64, u64> {
    let next = lead.wrapping_add(charge);
    if next <= limit {
        Ok(next)
    } else {
        Err(next.wrapping_sub(limit))
    }
}

/// Returns the lead of a whole-word cell, in which 0 is EMPTY.
#[inline(always)]
pub(crate) const fn whole_lead(word: u64, now_q: u64, mask: u64, window: u64) -> u64 {
    if word == 0 {
        0
    } else {
        lead_of(word, now_q, mask, window)
    }
}

/// Encodes a lead as a whole-word cell; 0 is EMPTY and therefore stored as 1.
#[inline(always)]
pub(crate) const fn encode(now_q: u64, lead: u64, mask: u64) -> u64 {
    let word = now_q.wrapping_add(lead) & mask;
    word | (word == 0) as u64
}

/// Decodes a whole-word cell. The bool says whether the word is so far ahead that `heal` applies.
#[inline(always)]
pub(crate) const fn decode(p: &Params, word: u64, now_q: u64, mask: u64) -> (u64, bool) {
    let lead = whole_lead(word, now_q, mask, p.window_q);
    // The word lies beyond the window, in the half of the span that counts as ahead of now.
    if p.has(FLAG_HEAL) && lead == 0 && word != 0 && lead_of(word, now_q, mask, mask >> 1) != 0 {
        return (p.burst_q, true);
    }
    (lead, false)
}

/// Returns what a request adds to the lead, and how large the lead may be then.
#[inline(always)]
const fn asked(p: &Params, cost: u64, room: u64) -> (u64, u64) {
    (cost.wrapping_mul(p.t_q), p.burst_q.wrapping_add(room.wrapping_mul(p.t_q)))
}

/// Decides a request: it conforms iff `lead + cost <= D + room`.
///
/// No overflow: cost <= burst + room bounds the product by H < 2^63, and lead <= H + S < 2^63.
#[inline(always)]
pub(crate) fn check(p: &Params, lead: u64, cost: u64, room: u64) -> Step {
    let room = if room < p.room { room } else { p.room };
    if cost > p.burst.saturating_add(room) {
        if p.has(FLAG_SHADOW) {
            return Step::keep(Verdict::Conforming, Decision::SHADOW, lead, u64::MAX);
        }
        return Step::keep(Verdict::Never, 0, lead, u64::MAX);
    }
    let (charge, limit) = asked(p, cost, room);
    let over = match fits(lead, charge, limit) {
        Ok(next) => {
            let mut flags = 0;
            if next > p.soft_q {
                flags |= Decision::SOFT;
            }
            if next > p.burst_q {
                flags |= Decision::ELASTIC;
            }
            let answer = Answer { verdict: Verdict::Conforming, flags, lead: next, wait: 0, stored: charge };
            // Cost 0 only peeks: it never writes.
            return Step { answer, store: if charge == 0 { None } else { Some(next) } };
        }
        Err(over) => over,
    };
    if p.has(FLAG_SHADOW) {
        return Step::keep(Verdict::Conforming, Decision::SHADOW, lead, over);
    }
    if p.has(FLAG_PENALTY) && lead < p.penalty_q() && charge != 0 {
        let next = limit.wrapping_add(over);
        let next = if next < p.penalty_q() { next } else { p.penalty_q() };
        // The penalty raises the lead, and the wait with it.
        let over = over.wrapping_add(next.wrapping_sub(lead));
        return Step { store: Some(next), ..Step::keep(Verdict::NonConforming, 0, next, over) };
    }
    Step::keep(Verdict::NonConforming, 0, lead, over)
}

/// Returns the answer of [`check`] without its store.
#[inline(always)]
pub(crate) fn peek(p: &Params, lead: u64, cost: u64, room: u64) -> Step {
    let mut step = check(p, lead, cost, room);
    if let Some(next) = step.store.take() {
        step.answer.lead = lead;
        step.answer.stored = 0;
        if step.answer.verdict == Verdict::NonConforming {
            // The penalty is not stored here, so it does not lengthen the wait.
            step.answer.wait = step.answer.wait.wrapping_sub(next.wrapping_sub(lead));
        }
    }
    step
}

/// Charges after the fact: always, until the debt reaches its cap (`debt_q`, burst included).
#[inline(always)]
pub(crate) fn charge(p: &Params, lead: u64, cost: u64) -> Step {
    let wanted = cost.saturating_mul(p.t_q);
    let wanted = if wanted < p.debt_q { wanted } else { p.debt_q };
    // lead <= H + S < 2^63 and debt_q <= H < 2^63.
    let next = lead.wrapping_add(wanted);
    let next = if next < p.debt_q { next } else { p.debt_q };
    let next = if next > lead { next } else { lead };
    let flags = if next > p.soft_q { Decision::SOFT } else { 0 };
    let stored = next.wrapping_sub(lead);
    let answer = Answer { verdict: Verdict::Conforming, flags, lead: next, wait: 0, stored };
    Step { answer, store: if stored == 0 { None } else { Some(next) } }
}

/// Decides a request that may be sent later, but not before `ahead` q-units from now. `wait` is the time until
/// departure; beyond the maximum delay the request is refused.
///
/// In shadow mode it is neither refused nor sent later than it asks for, but stores what it would store without.
#[inline(always)]
pub(crate) fn reserve(p: &Params, lead: u64, cost: u64, ahead: u64) -> Step {
    let mut step = place(p, lead, cost, ahead);
    let answer = &mut step.answer;
    if p.has(FLAG_SHADOW) && (answer.verdict != Verdict::Conforming || answer.wait > ahead) {
        answer.verdict = Verdict::Conforming;
        answer.flags |= Decision::SHADOW;
    }
    step
}

/// Returns the step of [`reserve`] without shadow mode.
///
/// The request counts as if it came at now + ahead. Seen from now, its lead is the larger of `lead` and `ahead`.
#[inline(always)]
fn place(p: &Params, lead: u64, cost: u64, ahead: u64) -> Step {
    if cost > p.burst {
        return Step::keep(Verdict::Never, 0, lead, u64::MAX);
    }
    let (charge, limit) = asked(p, cost, 0);
    // The delay is room above the burst: D + delay <= H.
    let most = limit.wrapping_add(p.delay_q());
    let late = ahead.saturating_sub(p.delay_q());
    let start = if lead > ahead || late != 0 { lead } else { ahead };
    let next = match fits(start, charge, most) {
        Ok(next) if late == 0 => next,
        Ok(_) => return Step::keep(Verdict::NonConforming, 0, lead, late),
        Err(over) => {
            return Step::keep(Verdict::NonConforming, 0, lead, if over > late { over } else { late })
        }
    };
    let wait = next.saturating_sub(p.burst_q);
    let wait = if wait > ahead { wait } else { ahead };
    let flags = if next > p.soft_q { Decision::SOFT } else { 0 };
    let answer = Answer { verdict: Verdict::Conforming, flags, lead: next, wait, stored: charge };
    Step { answer, store: if charge == 0 { None } else { Some(next) } }
}

/// Returns the answer of [`reserve`] at once, without its store.
pub(crate) fn peek_reserve(p: &Params, lead: u64, cost: u64) -> Answer {
    Answer { lead, stored: 0, ..reserve(p, lead, cost, 0).answer }
}

/// Returns the units that are left at this lead, under a limit for which a request was plain. Divides.
#[inline(always)]
pub(crate) const fn left(p: &Params, lead: u64) -> u64 {
    match p.burst_q.saturating_sub(lead).checked_div(p.t_q) {
        Some(left) if left < p.burst => left,
        _ => p.burst,
    }
}

/// Returns the numbers of an answer at a lead at which [`left`] units are left.
#[inline(always)]
pub(crate) const fn numbers_with(p: &Params, lead: u64, now: u64, left: u64) -> Numbers {
    let next_unit = if left >= p.burst { 0 } else { until_next(p, lead, left) };
    Numbers { remaining: left, next_unit: p.ticks_up(next_unit, now), reset_after: p.ticks_up(lead, now) }
}

/// Returns the q-units until one unit more than these is left.
#[inline(always)]
const fn until_next(p: &Params, lead: u64, left: u64) -> u64 {
    // left + 1 <= burst, so this is at most burst_q.
    let wanted = left.wrapping_add(1).wrapping_mul(p.t_q);
    lead.wrapping_add(wanted).wrapping_sub(p.burst_q)
}

/// Returns what is left at this lead. Divides.
pub(super) const fn numbers(p: &Params, lead: u64, now: u64) -> Numbers {
    let available = p.burst_q.saturating_sub(lead);
    // t_q is 0 only for an unlimited limit.
    let (remaining, next_unit) = match available.checked_div(p.t_q) {
        None => (u64::MAX, 0),
        Some(left) if left >= p.burst => (p.burst, 0),
        Some(left) => (left, until_next(p, lead, left)),
    };
    Numbers { remaining, next_unit: p.ticks_up(next_unit, now), reset_after: p.ticks_up(lead, now) }
}

/// Returns what a permit can still give back at `now`: min(stored, TAT after the charge - now). That is 0 if the charge
/// has drained, belongs to another epoch or generation, or lies beyond H.
///
/// The 64-bit tick of the charge decides its age: one span of the word later the TAT alone would look undrained again.
pub(crate) const fn credit(p: &Params, permit: &Permit, generation: u64, now: u64, mask: u64) -> u64 {
    if !is_fresh(p, permit, generation, now) {
        return 0;
    }
    let left = lead_of(permit.tat, p.now_q(now), mask, p.horizon_q);
    if left < permit.stored {
        left
    } else {
        permit.stored
    }
}

/// Returns whether a permit is of this epoch and generation, and recent enough to have anything left.
pub(super) const fn is_fresh(p: &Params, permit: &Permit, generation: u64, now: u64) -> bool {
    permit.epoch == p.epoch && permit.generation == generation && is_recent(p, permit.tick, now)
}

/// Returns whether `tick` was at most H before `now`, or at most S after it.
const fn is_recent(p: &Params, tick: u64, now: u64) -> bool {
    let age = now.wrapping_sub(tick);
    // H and S in ticks stay below 2^63 (checked by `rate::at`).
    let skew_q = p.window_q.saturating_sub(p.horizon_q);
    age <= p.ticks_up(p.horizon_q, 0) || age.wrapping_neg() <= p.ticks_up(skew_q, 0)
}

/// Gives credit back; a key never gets more than a full burst.
#[inline(always)]
pub(crate) const fn refund(lead: u64, credit: u64) -> Step {
    let back = if credit < lead { credit } else { lead };
    let next = lead.wrapping_sub(back);
    let answer = Answer { verdict: Verdict::Conforming, flags: 0, lead: next, wait: 0, stored: back };
    Step { answer, store: if back == 0 { None } else { Some(next) } }
}

impl Operation for Op<'_> {
    #[inline]
    fn step(&self, lead: u64) -> Step {
        match self.kind {
            Kind::Check => check(self.p, lead, self.cost, self.amount),
            Kind::Charge => charge(self.p, lead, self.cost),
            Kind::Reserve => reserve(self.p, lead, self.cost, self.amount),
            Kind::Refund => refund(lead, self.amount),
        }
    }

    #[inline(always)]
    fn first_step(&self) -> Step {
        match plain(self.p, 0, self.cost) {
            Plain::Store(lead) if matches!(self.kind, Kind::Check) => {
                let flags = if lead > self.p.soft_q { Decision::SOFT } else { 0 };
                let answer = Answer { verdict: Verdict::Conforming, flags, lead, wait: 0, stored: lead };
                Step { answer, store: Some(lead) }
            }
            _ => self.step(0),
        }
    }

    fn shadows(&self) -> bool {
        self.p.has(FLAG_SHADOW) && matches!(self.kind, Kind::Check | Kind::Reserve)
    }

    #[inline(always)]
    fn commit_lead(&self, lead: u64, claim: u64) -> u64 {
        if lead > claim {
            lead
        } else {
            claim
        }
    }

    #[inline(always)]
    fn refundable(&self, stored: u64, above: u64) -> u64 {
        // The permit covers only what lies above the claim. If a refund brought the payload below the claim, a stalled
        // thread could take a later claim for its own.
        if stored < above {
            stored
        } else {
            above
        }
    }
}

/// The result of the common case of [`check`] (no options, no room), for the first attempt of a hot path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    /// Conforms; store this lead.
    Store(u64),
    /// Does not conform, and will not for this many q-units.
    Wait(u64),
    /// A cost of 0, options, an unlimited limit or a cost above the burst: [`check`] decides.
    Other,
}

/// Returns whether [`plain`] decides a request of this cost. One comparison: a cost of 0 wraps to the largest number.
#[inline(always)]
pub(crate) const fn is_plain(p: &Params, cost: u64) -> bool {
    cost.wrapping_sub(1) < p.plain
}

/// Decides the common case with one multiplication and two comparisons; the decision is that of [`check`].
#[inline(always)]
pub(crate) const fn plain(p: &Params, lead: u64, cost: u64) -> Plain {
    if !is_plain(p, cost) {
        return Plain::Other;
    }
    match fits(lead, cost.wrapping_mul(p.t_q), p.burst_q) {
        Ok(next) => Plain::Store(next),
        Err(over) => Plain::Wait(over),
    }
}

/// Decides a plain request on a whole-word cell: `Ok` is the next word, `Err` the excess. Returns `None` if the request
/// is not plain, or if the word would be 0. Equal to [`plain`] on [`whole_lead`], [`encode`]d.
///
/// The next request on a busy cell waits for this word, so its computation is short: the TAT itself moves on, instead
/// of a lead that is added to the clock again, and the branch predictor takes the common case. A check with
/// [`whole_lead`] and one place that makes the word takes two instructions more (of 34; of 24 if refused).
#[inline(always)]
pub(crate) const fn plain_word(
    p: &Params,
    word: u64,
    now_q: u64,
    mask: u64,
    cost: u64,
) -> Option<Result<u64, u64>> {
    if !is_plain(p, cost) {
        return None;
    }
    let charge = cost.wrapping_mul(p.t_q);
    let ahead = word.wrapping_sub(now_q) & mask;
    // The same as `whole_lead`, except for a TAT equal to now: that moves on to the same word, live or not.
    if word != 0 && ahead <= p.window_q {
        return match fits(ahead, charge, p.burst_q) {
            Ok(_) => stored(word.wrapping_add(charge) & mask),
            Err(over) => Some(Err(over)),
        };
    }
    // A plain cost is at most the burst.
    stored(now_q.wrapping_add(charge) & mask)
}

/// Returns the word of a TAT, unless that is EMPTY.
#[inline(always)]
const fn stored(tat: u64) -> Option<Result<u64, u64>> {
    if tat == 0 {
        None
    } else {
        Some(Ok(tat))
    }
}

/// Returns the lead under `new` of a key that has `lead` under `old` at tick `now`, rounded up, and whether it was cut
/// to the new horizon. The new limit counts from now on; it changes nothing in the past.
pub(super) fn change(old: &Params, new: &Params, lead: u64, now: u64, how: Change) -> (u64, bool) {
    let moved = match how {
        _ if lead == 0 => 0,
        Change::Reset => 0,
        Change::KeepTime => {
            // q -> ticks -> q, as one rational, rounded up once. A lead counts from the start of a q-unit. If that is
            // coarser than a tick, subtract its passed part under `old`, and add it under `new`.
            let passed = |shr: u8| (now & 1u64.wrapping_shl(shr as u32).wrapping_sub(1)) as u128;
            let ticks = (lead as u128).wrapping_shl(old.shr as u32).wrapping_sub(passed(old.shr));
            let up =
                ticks.wrapping_add(passed(new.shr).wrapping_shl(old.shl as u32)).wrapping_shl(new.shl as u32);
            let down = (old.shl as u32).wrapping_add(new.shr as u32);
            up.wrapping_add(1u128.wrapping_shl(down).wrapping_sub(1)).wrapping_shr(down)
        }
        Change::KeepUnits => scaled(lead, new.t_q, old.t_q) as u128,
    };
    if moved > new.horizon_q as u128 {
        (new.horizon_q, true)
    } else {
        (moved as u64, false)
    }
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "gcra_tests.rs"]
mod tests;

//! The short way of a chain whose links are all plain: one look and one swap for each link.
//!
//! ```text
//!  prefetch  0, 1, ... n-1    the lines of all keys
//!  overrides                 a ban or an exemption decides, and nothing is charged
//!  look      0, 1, ... n-1    the word of each link, and the word that a charge makes of it; a refusal ends here.
//!                            A ladder of which only the verdict is wanted looks at the last one after the first
//!  swap      0, 1, ... n-1    the word that was seen by the next one; lost: looks again at that word
//!  insert    keys without a word, by the ordinary insert, which takes over the slot of no other link
//!  undo      n-1, ... 1, 0    only if a swap or an insert refuses after all: that link decides. If it was only
//!                            contended, the long way decides
//! ```
//!
//! Invariants, besides those of `chain.rs`:
//!
//! - **Each charge is a check of its own word.** A swap replaces exactly the word for which the inequality held, like
//!   the swap of a single check. The time between look and swap is longer, which only makes the swap fail more often.
//! - **An undo is a refund.** It stores what a refund by the permit of the charge would store. If the slot still
//!   holds what this call stored, and the word before it lies ahead of now, that word is this one: it is restored by
//!   one swap. In every other case the refund itself runs. So no store lowers a word that a refund would not lower.
//! - **A stopped thread leaves charges, never credits.** A link is given back only after this call has charged it.
//!
//! Progress: [`MAX_LOST`] more swaps for each link that lost its first one, an insert for each absent key, and
//! [`UNDO`] refunds for each link that is undone. At that last bound the charge stays until it drains, which is the
//! safe side.

use super::link::{either, override_answer, Target};
#[cfg(feature = "capi")]
pub(crate) use super::plain::look_at;
pub(crate) use super::plain::Seen;
use crate::answer::{Decision, Permit, Tracking};
pub(crate) use crate::sync::Look;
use crate::sync::{back_off, Swap, MAX_LOST};
use crate::table::Override;

/// The largest number of links.
pub(crate) const MOST: usize = 8;

/// Refunds that are tried for one link. Each fails only after `MAX_LOST` swaps lost to others.
const UNDO: u32 = 8;

/// The links of a chain, all of them plain and of different cells or keys. What needs a size is not in the table of the
/// functions that serve all kinds of links, where it would be a copy that nobody calls.
pub(crate) trait Links<'a> {
    fn count(&self) -> usize;
    /// Returns link i and its cost.
    fn at(&self, i: usize) -> Option<(Target<'a>, u64)>;
    /// Does the same for a link that is not charged, of which this is known.
    #[inline(always)]
    fn known(&self, i: usize, _seen: &Seen<'a>) -> Option<(Target<'a>, u64)> {
        self.at(i)
    }
    /// Prefetches the lines of link i.
    #[inline(always)]
    fn prefetch(&self, i: usize)
    where
        Self: Sized,
    {
        if let Some((target, _)) = self.at(i) {
            target.prefetch();
        }
    }
    /// Looks at the words of all links, and stores nothing. `Ok` says whether a key is absent.
    #[inline(always)]
    fn look(&self, now: u64, all: &mut All<'a>) -> Result<bool, Short>
    where
        Self: Sized,
    {
        let mut absent = false;
        for (i, seen) in all.iter_mut().enumerate().take(self.count()) {
            let Some((target, cost)) = self.at(i) else { return Err(Short::Long) };
            absent |= note(target.look_at(now, cost), i, seen)?;
        }
        Ok(absent)
    }
    /// Returns the override that decides instead of the links. Called when their lines are on the way.
    #[inline(always)]
    fn overridden(&self, _now: u64, _all: &All<'a>) -> Option<Override>
    where
        Self: Sized,
    {
        None
    }
    /// Writes the decision of that override; false if the long way must make it.
    fn told(&self, _now: u64, _found: Override, _to: &mut Decision) -> bool {
        false
    }
}

/// What becomes of a chain. Two words, so that it is returned in registers.
pub(crate) enum Short {
    /// All links are charged.
    Passes,
    /// Nothing is charged, because link `at` refuses: its word lies `lead` q-units ahead. The links that were looked
    /// at before it conform.
    Refused { at: u32, lead: u64 },
    /// Nothing is charged any more: link `at`, which is [`Seen::Refuses`], refuses after others were charged, because
    /// of a race or a full set.
    Late { at: u32 },
    /// Nothing is charged, because an override decides, which ends after `ticks`.
    Overridden { exempts: bool, ticks: u64 },
    /// Nothing is charged: the long way decides. Contended undoing may have left charges.
    Long,
}

const _: () = assert!(size_of::<Short>() <= 16);

impl Short {
    fn of(found: Override) -> Short {
        match found {
            Override::Banned { retry_after } => Short::Overridden { exempts: false, ticks: retry_after },
            Override::Exempt { left } => Short::Overridden { exempts: true, ticks: left },
        }
    }

    /// Returns whether the request passes; `None` if the long way must decide.
    #[inline(always)]
    pub fn passes(&self) -> Option<bool> {
        match *self {
            Short::Passes => Some(true),
            Short::Refused { .. } | Short::Late { .. } => Some(false),
            Short::Overridden { exempts, .. } => Some(exempts),
            Short::Long => None,
        }
    }
}

/// What is known of each link.
pub(crate) type All<'a> = [Seen<'a>; MOST];

/// Decides, and charges all links or none.
#[inline(always)]
pub(super) fn decide<'a>(links: &impl Links<'a>, now: u64, all: &mut All<'a>) -> Short {
    let count = links.count();
    if count > 1 {
        (0..count).for_each(|i| links.prefetch(i));
    }
    if let Some(found) = links.overridden(now, all) {
        return Short::of(found);
    }
    let absent = match links.look(now, all) {
        Ok(absent) => absent,
        Err(why) => return why,
    };
    if let Some(i) = swap_all(all.get(..count).unwrap_or(all)) {
        if let Err(why) = swap_rest(links, now, all, i) {
            return why;
        }
    }
    match absent {
        true => insert_all(links, now, all),
        false => Short::Passes,
    }
}

/// Notes what the look at link `at` has found, and returns whether its key is absent.
#[inline(always)]
pub(crate) fn note<'a>(found: Look<'a>, at: usize, seen: &mut Seen<'a>) -> Result<bool, Short> {
    match found {
        Look::Fits(swap) => *seen = Seen::Word(swap),
        Look::Absent => return Ok(true),
        Look::Nothing => {}
        Look::Refuses(lead) => return Err(Short::Refused { at: at as u32, lead }),
        Look::Other => return Err(Short::Long),
    }
    Ok(false)
}

/// Decides and returns whether the request passes. Returns `None`, nothing charged, if the long way must decide.
#[allow(dead_code)] // the C layer asks
#[inline(always)]
pub(crate) fn passes<'a>(links: &impl Links<'a>, now: u64) -> Option<bool> {
    passes_of(links, now, &mut [Seen::Absent; MOST])
}

/// Does the same as [`passes`] for links of which something is known.
#[allow(dead_code)] // the C layer asks
#[inline(always)]
pub(crate) fn passes_of<'a>(links: &impl Links<'a>, now: u64, all: &mut All<'a>) -> Option<bool> {
    decide(links, now, all).passes()
}

/// Does the same as [`passes`] and writes the whole decision. Returns false, nothing charged and nothing written, if
/// the long way must decide. (Returned by value, a decision was copied at each of five calls.)
#[inline(always)]
pub(super) fn check<'a>(links: &impl Links<'a>, now: u64, to: &mut Decision) -> bool {
    let mut all = [Seen::Absent; MOST];
    match decide(links, now, &mut all) {
        Short::Passes => {
            passed(links, now, &all, to);
            true
        }
        made => tell(links, now, &all, made, to),
    }
}

/// Does the same as [`check`], but works out a decision only of a request that does not pass; else `Some(None)`.
#[inline(always)]
pub(super) fn refusal<'a>(links: &impl Links<'a>, now: u64) -> Option<Option<Decision>> {
    let mut all = [Seen::Absent; MOST];
    match decide(links, now, &mut all) {
        Short::Passes => Some(None),
        made => told(links, now, &all, made).map(|made| (!made.passes()).then_some(made)),
    }
}

/// Returns the decision of a request that was not charged.
#[inline(never)]
fn told<'a>(links: &dyn Links<'a>, now: u64, all: &All<'a>, made: Short) -> Option<Decision> {
    let mut to = Decision::contended(0, 0);
    tell(links, now, all, made, &mut to).then_some(to)
}

/// Writes the decision of a request that was not charged. Returns false if the long way must decide.
#[inline(never)]
fn tell<'a>(links: &dyn Links<'a>, now: u64, all: &All<'a>, made: Short, to: &mut Decision) -> bool {
    match made {
        Short::Refused { at, lead } => refused(links, now, at as usize, lead, to),
        Short::Late { at } => {
            let (Some((target, cost)), Some(seen)) = (links.at(at as usize), all.get(at as usize)) else {
                return false;
            };
            *to = Decision { policy: at, ..target.charged(now, cost, seen) };
        }
        Short::Overridden { exempts: false, ticks: retry_after } => {
            return links.told(now, Override::Banned { retry_after }, to)
        }
        Short::Overridden { exempts: true, ticks: left } => {
            return links.told(now, Override::Exempt { left }, to)
        }
        Short::Passes | Short::Long => return false,
    }
    true
}

/// Swaps the word of a link that has one, and returns whether the swap was lost.
#[inline(always)]
pub(super) fn is_lost(seen: &Seen<'_>) -> bool {
    matches!(seen, Seen::Word(swap) if !swap.store())
}

/// Swaps the words of all links, and returns the first link that lost its swap.
///
/// Out of line, so that it reads the records by a pointer. Inlined, it names them by the stack pointer, as do the
/// stores that clear them, while the stores in between use an index. A Zen 4 then mispredicts on which store a load
/// depends.
#[inline(never)]
fn swap_all(all: &[Seen<'_>]) -> Option<usize> {
    all.iter().position(is_lost)
}

/// Goes on with the swaps from link i on, which has lost its own.
#[cold]
#[inline(never)]
pub(super) fn swap_rest<'a>(
    links: &dyn Links<'a>,
    now: u64,
    all: &mut All<'a>,
    i: usize,
) -> Result<(), Short> {
    let mut lost = i;
    loop {
        swap_again(links, now, all, lost)?;
        let next = lost.wrapping_add(1);
        let mut rest = all.iter().take(links.count()).skip(next);
        match rest.position(is_lost) {
            Some(after) => lost = next.wrapping_add(after),
            None => return Ok(()),
        }
    }
}

/// Returns the override that the links name: a ban outweighs an exemption.
#[inline(never)]
pub(crate) fn overriding<'a>(links: &dyn Links<'a>, now: u64, all: &All<'a>) -> Option<Override> {
    let mut exempt = None;
    for (i, seen) in all.iter().enumerate().take(links.count()) {
        let Some((Target::Key(table, None, hash), _)) = links.known(i, seen) else { continue };
        match either!(table, t => if t.was_used() { t.look(now, hash) } else { None }) {
            Some(ban @ Override::Banned { .. }) => return Some(ban),
            found => exempt = exempt.or(found),
        }
    }
    exempt
}

/// Looks again at the word of link i, which has lost its swap. `Err`: the request does not pass, and all is undone.
fn swap_again<'a>(links: &dyn Links<'a>, now: u64, all: &mut All<'a>, i: usize) -> Result<(), Short> {
    let (Some((target, cost)), Some(seen)) = (links.at(i), all.get_mut(i)) else { return Err(Short::Long) };
    let Seen::Word(Swap { slot, .. }) = *seen else { return Err(Short::Long) };
    let mut refuses = None;
    for lost in 1..=MAX_LOST {
        back_off(lost);
        match target.look_again(now, cost, slot) {
            Look::Fits(swap) if swap.store() => {
                *seen = Seen::Word(swap);
                return Ok(());
            }
            Look::Fits(_) => {}
            Look::Refuses(lead) => {
                refuses = Some(target.refusal(now, cost, lead));
                break;
            }
            Look::Absent | Look::Nothing | Look::Other => break,
        }
    }
    // The swaps from this one on are not made.
    all.iter_mut().skip(i).for_each(|seen| *seen = Seen::Absent);
    undo(links, now, all);
    let (Some(refusal), Some(seen)) = (refuses, all.get_mut(i)) else { return Err(Short::Long) };
    *seen = Seen::Refuses(refusal);
    Err(Short::Late { at: i as u32 })
}

/// Charges the keys that had no word. If one of them refuses, all is undone.
#[inline(never)]
fn insert_all<'a>(links: &dyn Links<'a>, now: u64, all: &mut All<'a>) -> Short {
    for i in 0..links.count() {
        let Some(seen) = all.get(i) else { break };
        if !matches!(seen, Seen::Absent | Seen::Named(_)) {
            continue;
        }
        let Some((target, cost)) = links.known(i, seen) else {
            undo(links, now, all);
            return impossible!(Short::Long);
        };
        if target.is_overrides() {
            continue;
        }
        let made = target.insert(now, cost, || kept(links, &target));
        let Some(seen) = all.get_mut(i) else { break };
        match made {
            Ok(made) => *seen = Seen::Made(made),
            Err(refuses) => {
                *seen = refuses.map_or(Seen::Absent, Seen::Refuses);
                undo(links, now, all);
                return if refuses.is_some() { Short::Late { at: i as u32 } } else { Short::Long };
            }
        }
    }
    Short::Passes
}

/// Returns the slots that the insert of a link must not take over: those that the other links have in its set now.
#[cold]
#[inline(never)]
pub(super) fn kept<'a>(links: &dyn Links<'a>, target: &Target<'a>) -> u32 {
    let slot = |i| links.at(i).map_or(0, |(other, _)| target.kept(&other));
    (0..links.count()).map(slot).fold(0, |kept, slot| kept | slot)
}

/// Gives back what is charged, the last link first.
#[cold]
#[inline(never)]
fn undo<'a>(links: &dyn Links<'a>, now: u64, all: &All<'a>) {
    for i in (0..links.count()).rev() {
        let (Some((target, cost)), Some(seen)) = (links.at(i), all.get(i)) else { continue };
        let done = match seen {
            Seen::Absent | Seen::Named(_) | Seen::Refuses(_) => true,
            Seen::Word(swap) => target.take_back(now, swap),
            Seen::Made(_) => false,
        };
        if !done {
            let permit = target.permit(now, cost, seen);
            let again = |lost| {
                back_off(lost);
                target.refund(now, &permit)
            };
            let _ = permit == Permit::NONE || (0..UNDO).any(again);
        }
    }
}

/// Writes the decision of a chain that has passed. Works out only what is left of each link, and all of the tightest,
/// but no permit: each link has its own.
#[inline(always)]
fn passed<'a>(links: &impl Links<'a>, now: u64, all: &All<'a>, to: &mut Decision) {
    let (mut tightest, mut least, mut tracking) = (None, (0, 0), Tracking::Tracked);
    for (i, seen) in all.iter().enumerate().take(links.count()) {
        let Some((target, cost)) = links.at(i) else { break };
        // Overrides have no end.
        let Some(after) = target.after(now, seen) else { continue };
        let left = (cost, after.left());
        if tightest.is_none() || is_tighter(left, least) {
            (tightest, least) = (Some((i, after)), left);
        }
        if tracking == Tracking::Tracked {
            tracking = after.tracking;
        }
    }
    match tightest {
        Some((at, after)) => {
            let (cost, left) = least;
            after.tell(now, cost, left, to);
            (to.policy, to.tracking) = (at as u32, tracking);
        }
        None => *to = override_answer(now, None),
    }
}

/// Writes the decision of a chain that is refused by link `at` and perhaps by others behind it.
#[inline(never)]
fn refused<'a>(links: &dyn Links<'a>, now: u64, at: usize, lead: u64, to: &mut Decision) {
    let of =
        |(target, cost): (Target<'a>, u64), lead| target.refused(now, cost, &target.refusal(now, cost, lead));
    let Some(link) = links.at(at) else { return };
    *to = of(link, lead);
    to.policy = at as u32;
    for (target, cost) in (at.wrapping_add(1)..links.count()).filter_map(|i| links.at(i)) {
        if let Look::Refuses(lead) = target.look_at(now, cost) {
            to.retry_after = to.retry_after.max(target.wait_after(now, cost, lead));
        }
    }
}

/// Returns whether what is left of `a` pays for fewer requests of its cost than what is left of `b`. Cost 0: as 1.
pub(super) fn is_tighter((cost_a, a): (u64, u64), (cost_b, b): (u64, u64)) -> bool {
    if cost_a == cost_b {
        return a < b;
    }
    let worth = |left: u64, of: u64| left as u128 * of.max(1) as u128;
    worth(a, cost_b) < worth(b, cost_a)
}

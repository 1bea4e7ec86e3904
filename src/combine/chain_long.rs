//! The long way of a chain: full answers of the calls of each link, whatever their limits are. Its order is that of the
//! short way (`short.rs`): absent keys are charged last, and take over no slot that another link has then.

use super::chain::{Answers, Chain, Charge};
use super::counters::ChainCounters;
use super::link::MAX_LINKS;
use super::short::kept;
use crate::answer::Decision;
use crate::table::Counters;

impl Chain<'_> {
    /// Decides the long way at once.
    #[inline(never)]
    pub(crate) fn check_long(&self, now: u64) -> Decision {
        let mut answers = [None; MAX_LINKS];
        self.long_answers(now, &mut answers, false, false);
        self.finish(&answers, 0, ChainCounters::default(), |_, _| ())
    }

    /// Decides, or reserves, by the calls of each link. Returns the charges that inserted a key, one bit each.
    #[inline(never)]
    pub(super) fn long_answers(&self, now: u64, answers: &mut Answers, counted: bool, reserves: bool) -> u64 {
        // A link's full answer is computed only once: when the link is charged, or when a link refuses.
        let would_pass = |charge: &Charge<'_>| charge.target.would_pass(now, charge.cost, charge.room);
        let mut passes = !reserves && !self.overrides && self.charges().all(would_pass);
        if !passes {
            self.look(now, answers, reserves);
            passes = self.all_pass(answers) && !self.is_exempt(answers);
        }
        if passes {
            self.charge_all(now, answers, counted, reserves)
        } else {
            0
        }
    }

    /// Charges or reserves all links: in order, but keys without a slot last. If one refuses after all, undoes what was
    /// charged. Returns the charges that inserted a key, one bit each.
    fn charge_all(&self, now: u64, answers: &mut Answers, counted: bool, reserves: bool) -> u64 {
        let absent = self.bits(|charge| charge.target.is_absent());
        let (mut charged, mut inserted) = (0u32, 0u64);
        let order = [false, true].into_iter().flat_map(|last| (0..self.count).map(move |i| (last, i)));
        for (last, i) in order {
            let bit = 1u32.wrapping_shl(i as u32);
            let (Some(charge), Some(answer)) = (self.charges.get(i), answers.get_mut(i)) else { break };
            if (absent & bit != 0) != last {
                continue;
            }
            let Charge { target, cost, room, .. } = charge;
            // An insert that took over the slot of another link would lose what this call has charged there.
            let kept = if last { kept(self, target) } else { 0 };
            let mut made = Counters::default();
            let counters = counted.then_some(&mut made);
            let answer = answer.insert(match reserves {
                true => target.reserve(now, *cost, counters, kept),
                false => target.check(now, *cost, *room, counters, kept),
            });
            charged |= bit;
            inserted |= if made.inserted != 0 { bit.into() } else { 0 };
            // If an exemption came after the peek, the other links are charged all the same.
            answer.flags &= !Decision::EXEMPT;
            if !answer.passes() {
                break;
            }
        }
        // The links after a refusal are only peeked at.
        for (i, (charge, answer)) in self.charges().zip(answers.iter_mut()).enumerate() {
            if charged.wrapping_shr(i as u32) & 1 == 0 {
                *answer = Some(charge.peek(now, reserves));
            }
        }
        if self.all_pass(answers) {
            self.charge_extras(now, answers);
        } else {
            self.undo(now, answers);
        }
        inserted
    }

    /// Returns a bit for each charge of which this is true.
    fn bits(&self, of: impl Fn(&Charge<'_>) -> bool) -> u32 {
        self.charges().rev().fold(0, |bits, charge| bits << 1 | u32::from(of(charge)))
    }

    /// Gives back what these answers charged, the last link first.
    pub(super) fn undo(&self, now: u64, answers: &mut Answers) {
        // By index, because `Zip::next_back` could panic.
        for i in (0..self.count).rev() {
            if let (Some(charge), Some(Some(answer))) = (self.charges.get(i), answers.get_mut(i)) {
                if charge.give_back(now, &mut answer.permit) {
                    answer.units = 0;
                }
            }
        }
    }
}

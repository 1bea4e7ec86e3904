//! The long way of a chain: full answers of the calls of each link, whatever their limits are.

use super::chain::{Answers, Chain, Charge};
use super::counters::ChainCounters;
use super::link::MAX_LINKS;
use crate::answer::Decision;
use crate::table::Counters;

impl Chain<'_> {
    /// Decides the long way at once.
    #[inline(never)]
    pub(crate) fn check_long(&self, now: u64) -> Decision {
        let mut answers = [None; MAX_LINKS];
        self.long_answers(now, &mut answers, false);
        self.finish(&answers, 0, ChainCounters::default(), |_, _| ())
    }

    /// Decides by the calls of each link. Returns the charges that inserted a key, one bit each.
    #[inline(never)]
    pub(super) fn long_answers(&self, now: u64, answers: &mut Answers, counted: bool) -> u64 {
        // A link's full answer is computed only once: when the link is charged, or when a link refuses.
        let would_pass = |charge: &Charge<'_>| charge.target.would_pass(now, charge.cost, charge.room);
        let mut passes = !self.overrides && self.charges().all(would_pass);
        if !passes {
            self.look(now, answers);
            passes = self.all_pass(answers) && !self.is_exempt(answers);
        }
        if passes {
            self.charge_all(now, answers, counted)
        } else {
            0
        }
    }

    /// Charges in order, up to the first link that refuses after all; then undoes what was charged. Returns the charges
    /// that inserted a key, one bit each.
    fn charge_all(&self, now: u64, answers: &mut Answers, counted: bool) -> u64 {
        let mut inserted = 0;
        let mut charges = self.charges().zip(answers.iter_mut());
        let mut bit = 1;
        for (charge, answer) in &mut charges {
            let (mut made, Charge { target, cost, room, .. }) = (Counters::default(), charge);
            let answer = answer.insert(target.check(now, *cost, *room, counted.then_some(&mut made)));
            if made.inserted != 0 {
                inserted |= bit;
            }
            bit <<= 1;
            // If an exemption came after the peek, the other links are charged all the same.
            answer.flags &= !Decision::EXEMPT;
            if !answer.passes() {
                break;
            }
        }
        // The links after a refusal are only peeked at.
        for (charge, answer) in charges {
            *answer = Some(charge.target.peek(now, charge.cost, charge.room));
        }
        if self.all_pass(answers) {
            self.charge_extras(now, answers);
        } else {
            self.undo(now, answers);
        }
        inserted
    }

    /// Gives back what these answers charged, the newest first.
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

//! The calls that never insert: refund, reset of a key, sweep.

use super::model::{
    even_from, Choice, Kind, Op, Pc, Permit, Policy, Rules, State, Thread, Word, World, FINISHED, GRACE,
    RESET,
};

impl World {
    /// The key of the charge that is operation `of` of a script.
    pub fn key_of(&self, script: u8, of: usize) -> u8 {
        match self.scripts[usize::from(script)][of] {
            Op::Charge { key, .. } | Op::Past { key, .. } => key,
            _ => unreachable!("a refund is of a charge"),
        }
    }

    fn is_tombstone(&self, word: Word, now: i32) -> bool {
        word.kind() == Kind::Empty && word.payload() & 1 == 0 && self.lead(word.payload(), now) > 0
    }

    /// What a permit is worth at a reading.
    fn credit(&self, permit: Permit, charged: Op, now: i32) -> i32 {
        let read = match charged {
            Op::Charge { now, .. } => now,
            Op::Past { read, .. } => read,
            _ => unreachable!("a refund is of a charge"),
        };
        let (stored, left) = (i32::from(permit.stored), i32::from(permit.tat) - now);
        if self.rules == Rules::RefundAll {
            stored
        } else if left <= 0 || left > self.limit || self.policy == Policy::Sampled {
            0
        } else if self.permits.aged {
            left.min(stored - (now - read).max(0)).max(0)
        } else {
            left.min(stored)
        }
    }

    pub(super) fn refund(&self, s: &mut State, who: usize, of: usize, now: i32, choice: &mut Choice) {
        let t = &mut s.threads[who];
        let key = self.key_of(t.script, of);
        let number = self.permit_of(t, of).expect("the script refunds it");
        let permit = t.permits[number];
        let credit = self.credit(permit, self.scripts[usize::from(t.script)][of], now);
        let own_slot = self.permits.own_slot || self.policy == Policy::Inherit;
        let order = self.order[usize::from(key)];
        let at = usize::from(t.at);
        let slot = order[at];
        let mut back = None;
        match t.pc {
            Pc::Scan if credit == 0 => back = Some(0),
            Pc::Scan if self.rules == Rules::RefundLooksFirst && t.own.0 == 0 => {
                // own.0 is this variant's mark that it has looked.
                if self.is_tombstone(s.slots[slot], now) && s.slots[slot].payload() >= i32::from(permit.tat) {
                    back = Some(0);
                } else if at + 1 == self.slots {
                    t.own.0 = 1;
                    t.at = 0;
                } else {
                    t.at += 1;
                }
            }
            Pc::Scan => {
                t.seen[at] = s.slots[slot];
                let live = t.seen[at].is(Kind::Live, key);
                let moved = own_slot && slot != usize::from(permit.slot);
                let drained = self.lead(t.seen[at].payload(), now) == 0 && self.rules != Rules::RefundAll;
                if !live && at + 1 < self.slots {
                    t.seen[at] = Word(0);
                    t.at += 1;
                } else if !live || moved || drained {
                    back = Some(0);
                } else if self.permits.own_slot
                    || matches!(self.rules, Rules::RefundBlind | Rules::RefundLooksFirst | Rules::RefundAll)
                {
                    t.pc = Pc::Act;
                } else {
                    // known.0 keeps the position of the live word while the others are looked at.
                    t.known.0 = t.at;
                    (t.pc, t.at) = (Pc::Look, 0);
                }
            }
            Pc::Look => {
                let word = s.slots[slot];
                if self.is_tombstone(word, now) && word.payload() >= i32::from(permit.tat) {
                    back = Some(0);
                } else if at + 1 == self.slots {
                    (t.pc, t.at, t.known.0) = (Pc::Act, t.known.0, 0);
                } else {
                    t.at += 1;
                }
            }
            Pc::Act if s.slots[slot] != t.seen[at] => {
                t.own.0 = 0;
                if self.may_give_up && choice.toss() {
                    back = Some(0);
                } else {
                    self.rescan(t);
                }
            }
            Pc::Act => {
                let lead = self.lead(t.seen[at].payload(), now);
                let credit = if self.rules == Rules::RefundAll { credit } else { credit.min(lead) };
                s.slots[slot] = Word::live(key, t.seen[at].payload() - credit);
                back = Some(credit);
            }
            Pc::Drop => unreachable!("charges only"),
        }
        if let Some(credit) = back {
            t.permits[number].stored = credit as u8;
            t.permits[number].tat = 0;
            t.permits[number].slot = 0;
            self.finish(t, FINISHED);
        }
    }

    pub(super) fn reset(&self, s: &mut State, who: usize, key: u8, now: i32, choice: &mut Choice) {
        let t = &mut s.threads[who];
        let at = usize::from(t.at);
        let slot = self.order[usize::from(key)][at];
        let floor = if self.rules == Rules::ResetFloor { self.lifetime + GRACE } else { 0 };
        if t.pc == Pc::Scan {
            let word = s.slots[slot];
            if word.is(Kind::Live, key) {
                if self.lead(word.payload(), now) > floor {
                    t.seen[at] = word;
                    t.pc = Pc::Act;
                    return;
                }
                self.finish(t, FINISHED);
                self.void(s, key);
            } else if at + 1 == self.slots {
                self.finish(t, FINISHED);
            } else {
                t.at += 1;
            }
        } else if s.slots[slot] != t.seen[at] {
            if self.may_give_up && choice.toss() {
                self.finish(t, FINISHED);
            } else {
                self.rescan(t);
            }
        } else {
            let r = t.seen[at].payload();
            let above = if self.permits.high_tombstone { r.max(now + self.limit) } else { r };
            s.slots[slot] = match self.rules {
                Rules::ResetFloor => Word::live(key, now + floor),
                _ => Word::empty(even_from(above + 2)),
            };
            self.finish(t, RESET);
            self.void(s, key);
        }
    }

    /// Marks every permit of the key as one of before a reset.
    fn void(&self, s: &mut State, key: u8) {
        for t in &mut s.threads[..self.scripts.len()] {
            let script = &self.scripts[usize::from(t.script)];
            let refunds = script.iter().filter_map(|op| match op {
                Op::Refund { of, .. } => Some(*of),
                _ => None,
            });
            for (i, of) in refunds.enumerate() {
                if t.permits[i].tat != 0 && self.key_of(t.script, of) == key {
                    t.permits[i].void = true;
                }
            }
        }
    }

    pub(super) fn sweep(&self, slot: &mut Word, t: &mut Thread, now: i32) {
        if t.pc == Pc::Scan {
            t.seen[0] = *slot;
            t.pc = Pc::Act;
            if slot.kind() != Kind::Empty && self.reusable(*slot, now) {
                return;
            }
        } else if *slot == t.seen[0] {
            *slot = match self.rules {
                Rules::Unversioned => Word::empty(0),
                _ => Word::empty(even_from((slot.payload() + 2).max(now))),
            };
        }
        self.finish(t, FINISHED);
    }
}

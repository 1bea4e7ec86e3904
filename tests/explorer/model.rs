//! The insert protocol as a transition system: one atomic access per step.
//!
//! A word is EMPTY(p), CLAIM(key, v) or LIVE(key, r); the all-zero word is EMPTY and its payload counts as
//! `now`. Payloads are plain small integers. A thread runs a list of operations, each with its own clock
//! reading; what a thread computes between two atomic accesses belongs to the step before.

pub use super::words::{Kind, Op, Policy, Rules, Word};

/// Most slots and threads of one world.
pub const MAX_SLOTS: usize = 3;
pub const MAX_THREADS: usize = 4;

/// Answers, as stored in `Thread::verdicts` (3 bits each).
pub const ADMIT: u16 = 1;
pub const DENY: u16 = 2;
pub const UNTRACKED: u16 = 3;
pub const CONTENDED: u16 = 4;
pub const FINISHED: u16 = 5;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Pc {
    #[default]
    Scan,
    Act,
    Drop,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Thread {
    pub script: u8,
    pub op: u8,
    pub pc: Pc,
    /// Next position to load, or where to look for the next claim to kill.
    pub at: u8,
    /// The scan, in key order.
    pub seen: [Word; MAX_SLOTS],
    /// Own claim and last claim met, as (position, word); the zero word is none.
    pub own: (u8, Word),
    pub known: (u8, Word),
    /// TAT after the last tracked charge, kept only if a refund follows.
    pub tat: u16,
    /// What that charge can give back; after the refund, what it gave back.
    pub stored: u8,
    pub verdicts: u16,
}

impl Thread {
    pub fn verdict(&self, op: usize) -> u16 {
        self.verdicts >> (3 * op) & 7
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct State {
    pub slots: [Word; MAX_SLOTS],
    pub threads: [Thread; MAX_THREADS],
}

/// A choice of the world inside a step: give up or go on, sample or not.
#[derive(Clone, Copy, Default)]
pub struct Coin {
    pub heads: bool,
    pub asked: bool,
}

impl Coin {
    fn toss(&mut self) -> bool {
        self.asked = true;
        self.heads
    }
}

/// What a thread does after a scan.
enum Move {
    Again((u8, Word)),
    Answer(u16),
    Charge(usize, Word),
    Kill(usize, Word),
    Commit(usize, Word),
    Claim(usize, Word),
}

/// One configuration.
#[derive(Clone)]
pub struct World {
    pub slots: usize,
    /// Scan order per key.
    pub order: [[usize; MAX_SLOTS]; 4],
    /// Cost of a unit, burst limit, claim lifetime and decode horizon (H + S), in time units.
    pub unit: i32,
    pub limit: i32,
    pub lifetime: i32,
    pub horizon: i32,
    pub policy: Policy,
    pub rules: Rules,
    /// A thread may answer Contended before any pass but its first (covers every bound on passes).
    pub may_give_up: bool,
    pub scripts: Vec<Vec<Op>>,
    pub initial: [Word; MAX_SLOTS],
}

fn even_from(n: i32) -> i32 {
    n + (n & 1)
}

fn odd_from(n: i32) -> i32 {
    n | 1
}

impl World {
    pub fn lead(&self, payload: i32, now: i32) -> i32 {
        let d = payload - now;
        if 1 <= d && d <= self.horizon {
            d
        } else {
            0
        }
    }

    pub fn takes_over(&self) -> bool {
        matches!(self.policy, Policy::Inherit | Policy::Sampled)
    }

    fn reusable(&self, word: Word, now: i32) -> bool {
        word.kind() == Kind::Empty || self.lead(word.payload(), now) == 0
    }

    /// The word a dropped or killed claim leaves.
    fn tombstone(&self, claim: Word) -> Word {
        match self.rules {
            Rules::Unversioned => Word::empty(0),
            Rules::ParityLost => Word::empty(even_from(claim.payload() + 1)),
            _ => Word::empty(claim.payload() + 2),
        }
    }

    /// The version a claim of this slot carries.
    fn version(&self, old: Word, now: i32) -> i32 {
        if self.rules == Rules::Unversioned {
            return even_from(now + self.lifetime);
        }
        let p = old.payload();
        if self.keeps_debt(old, now) {
            return odd_from(p + 1);
        }
        let p = if self.lead(p, now) > 0 { p } else { now };
        even_from((p + 1).max(now + self.lifetime))
    }

    /// True for the word of a takeover that was given up: EMPTY, odd, not yet expired.
    fn keeps_debt(&self, word: Word, now: i32) -> bool {
        let p = word.payload();
        self.takes_over() && word.kind() == Kind::Empty && p & 1 == 1 && self.lead(p, now) > 0
    }

    /// The debt a claim brings to its commit.
    fn claim_lead(&self, version: i32, now: i32) -> i32 {
        if version & 1 == 1 && self.policy == Policy::Inherit {
            self.lead(version - 1, now)
        } else {
            0
        }
    }

    fn decide(&self, t: &Thread, key: u8, now: i32, cost: i32, coin: &mut Coin) -> Move {
        let seen = &t.seen[..self.slots];
        if let Some(i) = seen.iter().position(|w| w.is(Kind::Live, key)) {
            let lead = self.lead(seen[i].payload(), now);
            if lead + cost > self.limit {
                return Move::Answer(DENY);
            }
            return Move::Charge(i, Word::live(key, now + lead + cost));
        }
        let lowest = if self.rules == Rules::OwnFirst {
            seen.iter().rposition(|w| w.is(Kind::Claim, key))
        } else {
            seen.iter().position(|w| w.is(Kind::Claim, key))
        };
        if let Some(i) = lowest {
            return self.decide_claim(t, i, key, now, cost);
        }
        let owed = |w: &Word| {
            self.rules != Rules::DebtReusable && self.policy == Policy::Inherit && self.keeps_debt(*w, now)
        };
        if let Some(j) = seen.iter().position(|w| self.reusable(*w, now) && !owed(w)) {
            if self.rules == Rules::Naive {
                return Move::Commit(j, Word::live(key, now + cost));
            }
            return Move::Claim(j, Word::claim(key, self.version(seen[j], now)));
        }
        match self.policy {
            Policy::Admit => return Move::Answer(UNTRACKED),
            Policy::Deny => return Move::Answer(DENY),
            Policy::Sampled if !coin.toss() => return Move::Answer(UNTRACKED),
            _ => {}
        }
        let evictable = |w: &Word| w.kind() == Kind::Live || owed(w) || self.rules == Rules::EvictClaims;
        let victim =
            (0..self.slots).filter(|j| evictable(&seen[*j])).min_by_key(|j| seen[*j].payload() - now);
        let Some(j) = victim else { return Move::Answer(CONTENDED) };
        let version = odd_from(seen[j].payload() + 1);
        if self.claim_lead(version, now) + cost > self.limit {
            return Move::Answer(DENY);
        }
        Move::Claim(j, Word::claim(key, version))
    }

    fn decide_claim(&self, t: &Thread, i: usize, key: u8, now: i32, cost: i32) -> Move {
        let word = t.seen[i];
        let known = match self.rules {
            Rules::ForeignAfterOneScan => true,
            Rules::KnownBySlot => t.known.1 != Word(0) && t.known.0 == i as u8,
            _ => t.known == (i as u8, word),
        };
        if !known {
            return Move::Again((i as u8, word));
        }
        let v = word.payload();
        let lead = self.claim_lead(v, now);
        if lead + cost > self.limit {
            return Move::Answer(DENY);
        }
        if self.rules != Rules::NoKill {
            let from = (i + 1).max(usize::from(t.at));
            let higher = (from..self.slots).find(|k| t.seen[*k].is(Kind::Claim, key));
            if let Some(k) = higher {
                return Move::Kill(k, self.tombstone(t.seen[k]));
            }
        }
        let falls = v & 1 == 1 && self.rules != Rules::SampledRises;
        let tat = if falls { now + lead + cost } else { v.max(now + cost) };
        Move::Commit(i, Word::live(key, tat))
    }

    /// One step of thread `who`.
    pub fn step(&self, state: &State, who: usize, coin: &mut Coin) -> State {
        let mut s = *state;
        let t = &mut s.threads[who];
        match self.scripts[usize::from(t.script)][usize::from(t.op)] {
            Op::Charge { key, now, units } => self.charge(&mut s.slots, t, key, now, units * self.unit, coin),
            Op::Refund { now } => self.refund(&mut s.slots, t, now),
            Op::Sweep { slot, now } => self.sweep(&mut s.slots[slot], t, now),
        }
        s
    }

    fn charge(&self, slots: &mut [Word], t: &mut Thread, key: u8, now: i32, cost: i32, coin: &mut Coin) {
        let order = &self.order[usize::from(key)];
        match t.pc {
            Pc::Scan => {
                let at = usize::from(t.at);
                t.seen[at] = slots[order[at]];
                t.at += 1;
                if usize::from(t.at) < self.slots && !t.seen[at].is(Kind::Live, key) {
                    return;
                }
                t.at = 0;
                match self.decide(t, key, now, cost, coin) {
                    Move::Again(met) => {
                        t.known = met;
                        self.next_pass(t, coin);
                    }
                    Move::Answer(verdict) => self.answer(t, verdict),
                    _ => t.pc = Pc::Act,
                }
            }
            Pc::Act => {
                let choice = self.decide(t, key, now, cost, &mut Coin { heads: true, asked: false });
                let (Move::Charge(at, new)
                | Move::Kill(at, new)
                | Move::Commit(at, new)
                | Move::Claim(at, new)) = choice
                else {
                    unreachable!("a settled answer is given in the step that finds it")
                };
                let slot = &mut slots[order[at]];
                let won = *slot == t.seen[at];
                if won {
                    *slot = new;
                }
                match choice {
                    Move::Kill(..) if won || self.rules == Rules::IgnoreFailedKill => {
                        if t.own == (at as u8, t.seen[at]) {
                            t.own = (0, Word(0));
                        }
                        t.at = at as u8 + 1;
                        if let Move::Answer(verdict) = self.decide(t, key, now, cost, coin) {
                            self.answer(t, verdict);
                        }
                    }
                    _ if !won => self.next_pass(t, coin),
                    Move::Claim(..) => {
                        t.own = (at as u8, new);
                        t.known = t.own;
                        if self.rules == Rules::OwnWithoutRescan {
                            t.seen = [Word(0); MAX_SLOTS];
                            t.seen[at] = new;
                        } else {
                            self.next_pass(t, coin);
                        }
                    }
                    _ => {
                        t.tat = new.payload() as u16;
                        let refund_next = self.refund_next(t, 1);
                        let was = t.stored;
                        t.stored = cost as u8;
                        if matches!(choice, Move::Commit(..)) {
                            t.own = (0, Word(0));
                            if !matches!(self.rules, Rules::RefundWhole | Rules::RefundAll) {
                                t.stored = t.stored.min((new.payload() - t.seen[at].payload()).max(0) as u8);
                            }
                        }
                        if !refund_next {
                            (t.tat, t.stored) = (0, was);
                        }
                        self.answer(t, ADMIT);
                    }
                }
            }
            Pc::Drop => {
                let slot = &mut slots[order[usize::from(t.own.0)]];
                if *slot == t.own.1 {
                    *slot = self.tombstone(t.own.1);
                }
                self.end(t);
            }
        }
    }

    fn refund(&self, slots: &mut [Word], t: &mut Thread, now: i32) {
        let Op::Charge { key, .. } = self.scripts[usize::from(t.script)][usize::from(t.op) - 1] else {
            unreachable!("a refund follows a charge")
        };
        let at = usize::from(t.at);
        let slot = &mut slots[self.order[usize::from(key)][at]];
        if t.pc == Pc::Scan {
            t.seen[at] = *slot;
            let left = i32::from(t.tat) - now;
            let idle = left <= 0 || left > self.limit;
            if slot.is(Kind::Live, key) && (!idle || self.rules == Rules::RefundAll) {
                t.pc = Pc::Act;
            } else if slot.is(Kind::Live, key) || at + 1 == self.slots {
                (t.tat, t.stored) = (0, 0);
                self.finish(t, FINISHED);
            } else {
                t.at += 1;
            }
            return;
        }
        if *slot != t.seen[at] {
            self.rescan(t);
            return;
        }
        let stored = i32::from(t.stored);
        let credit = if self.rules == Rules::RefundAll { stored } else { stored.min(i32::from(t.tat) - now) };
        *slot = Word::live(key, slot.payload() - credit);
        t.stored = credit as u8;
        t.tat = 0;
        self.finish(t, FINISHED);
    }

    fn sweep(&self, slot: &mut Word, t: &mut Thread, now: i32) {
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

    fn next_pass(&self, t: &mut Thread, coin: &mut Coin) {
        if self.may_give_up && coin.toss() {
            self.answer(t, CONTENDED);
        } else {
            self.rescan(t);
        }
    }

    fn rescan(&self, t: &mut Thread) {
        t.pc = Pc::Scan;
        t.at = 0;
        t.seen = [Word(0); MAX_SLOTS];
    }

    /// Records the answer of a charge; an own claim is dropped in the next step.
    fn answer(&self, t: &mut Thread, verdict: u16) {
        t.verdicts |= verdict << (3 * u16::from(t.op));
        if t.own.1 == Word(0) {
            self.end(t);
        } else {
            self.rescan(t);
            t.known = (0, Word(0));
            t.pc = Pc::Drop;
        }
    }

    fn finish(&self, t: &mut Thread, verdict: u16) {
        t.verdicts |= verdict << (3 * u16::from(t.op));
        self.end(t);
    }

    /// Ends an operation; a refund of a charge that stored nothing ends at once.
    fn end(&self, t: &mut Thread) {
        self.rescan(t);
        t.own = (0, Word(0));
        t.known = (0, Word(0));
        let admitted = t.verdict(usize::from(t.op)) == ADMIT;
        t.op += 1;
        if !admitted && self.refund_next(t, 0) {
            self.finish(t, FINISHED);
        }
    }

    fn refund_next(&self, t: &Thread, ahead: usize) -> bool {
        let next = self.scripts[usize::from(t.script)].get(usize::from(t.op) + ahead);
        matches!(next, Some(Op::Refund { .. }))
    }

    pub fn done(&self, t: &Thread) -> bool {
        usize::from(t.op) == self.scripts[usize::from(t.script)].len()
    }
}

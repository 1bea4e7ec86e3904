//! The insert protocol as a transition system: one atomic access per step.
//!
//! A word is EMPTY(p), CLAIM(key, v) or LIVE(key, r); the all-zero word is EMPTY and its payload counts as
//! `now`. Payloads are plain small integers. A thread runs a list of operations, each with its own clock
//! reading; what a thread computes between two atomic accesses belongs to the step before.

pub use super::words::{Kind, Op, Permits, Placement, Policy, Rules, Word};

/// Most slots, threads and permits of one thread.
pub const MAX_SLOTS: usize = 3;
pub const MAX_THREADS: usize = 4;
pub const MAX_PERMITS: usize = 2;

/// q-units above the claim lifetime that an even EMPTY may lie ahead and still be taken: the table's own number.
pub const GRACE: i32 = 16;

/// Answers, as stored in `Thread::verdicts` (3 bits each).
pub const ADMIT: u16 = 1;
pub const DENY: u16 = 2;
pub const UNTRACKED: u16 = 3;
pub const CONTENDED: u16 = 4;
pub const FINISHED: u16 = 5;
/// A reset that left a tombstone.
pub const RESET: u16 = 6;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Pc {
    #[default]
    Scan,
    Act,
    Drop,
    /// A refund looks for tombstones.
    Look,
}

/// What a refund of the thread will know of its charge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Permit {
    /// TAT after the charge; 0 before the charge and after the refund.
    pub tat: u16,
    /// What the charge can give back; after the refund, what it gave back.
    pub stored: u8,
    /// The slot charged.
    pub slot: u8,
    /// A reset of the key has come after the charge.
    pub void: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Thread {
    pub script: u8,
    pub op: u8,
    pub pc: Pc,
    /// Next position to load, where to look for the next claim to kill, or the free slot chosen.
    pub at: u8,
    /// The scan, in key order.
    pub seen: [Word; MAX_SLOTS],
    /// Own claim and last claim met, as (position, word); the zero word is none.
    pub own: (u8, Word),
    pub known: (u8, Word),
    /// Permit i is that of the script's refund number i.
    pub permits: [Permit; MAX_PERMITS],
    pub verdicts: u16,
    /// The operation has taken a step; kept only where clocks are bound to each other.
    pub begun: bool,
}

impl Thread {
    pub fn verdict(&self, op: usize) -> u16 {
        self.verdicts >> (3 * op) & 7
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct State {
    pub slots: [Word; MAX_SLOTS],
    /// The highest claim that each slot has held; 0 where nobody asks.
    pub highest: [u16; MAX_SLOTS],
    /// A claim at or below an earlier one of its slot was placed.
    pub recurred: bool,
    pub threads: [Thread; MAX_THREADS],
}

/// A choice of the world inside a step: give up or go on, sample or not, which slot.
#[derive(Clone, Copy, Default)]
pub struct Choice {
    pub pick: u8,
    /// How many ways the step could go on; 0 = one.
    pub ways: u8,
}

impl Choice {
    pub fn among(&mut self, n: usize) -> usize {
        if n > 1 {
            self.ways = n as u8;
        }
        usize::from(self.pick) % n
    }

    pub fn toss(&mut self) -> bool {
        self.among(2) == 1
    }
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
    pub placement: Placement,
    pub rules: Rules,
    pub permits: Permits,
    /// A thread may answer Contended before any pass but its first (covers every bound on passes).
    pub may_give_up: bool,
    /// How far a thread's reading may lie behind one already used: None = any schedule.
    pub skew: Option<i32>,
    /// Keep the highest claim of each slot.
    pub history: bool,
    pub scripts: Vec<Vec<Op>>,
    pub initial: [Word; MAX_SLOTS],
}

pub fn even_from(n: i32) -> i32 {
    n + (n & 1)
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

    pub fn reusable(&self, word: Word, now: i32) -> bool {
        let lead = self.lead(word.payload(), now);
        let grace = if self.rules == Rules::TombstoneReusable { self.horizon } else { self.lifetime + GRACE };
        lead == 0 || word.kind() == Kind::Empty && (word.payload() & 1 == 1 || lead <= grace)
    }

    /// True for the word of a takeover that was given up: EMPTY, odd, not yet expired.
    pub fn keeps_debt(&self, word: Word, now: i32) -> bool {
        let p = word.payload();
        self.takes_over() && word.kind() == Kind::Empty && p & 1 == 1 && self.lead(p, now) > 0
    }

    /// One step of thread `who`.
    pub fn step(&self, state: &State, who: usize, choice: &mut Choice) -> State {
        let mut s = *state;
        s.threads[who].begun = self.skew.is_some();
        let op = self.scripts[usize::from(s.threads[who].script)][usize::from(s.threads[who].op)];
        match op {
            Op::Charge { key, now, units } => self.charge(&mut s, who, key, now, units * self.unit, choice),
            Op::Refund { of, now } => self.refund(&mut s, who, of, now, choice),
            Op::Reset { key, now } => self.reset(&mut s, who, key, now, choice),
            Op::Sweep { slot, now } => self.sweep(&mut s.slots[slot], &mut s.threads[who], now),
            Op::Past { .. } => unreachable!("taken at the start"),
        }
        s
    }

    pub fn next_pass(&self, t: &mut Thread, choice: &mut Choice) {
        if self.may_give_up && choice.toss() {
            self.answer(t, CONTENDED);
        } else {
            self.rescan(t);
        }
    }

    pub fn rescan(&self, t: &mut Thread) {
        t.pc = Pc::Scan;
        t.at = 0;
        t.seen = [Word(0); MAX_SLOTS];
    }

    /// Records the answer of a charge; an own claim is dropped in the next step.
    pub fn answer(&self, t: &mut Thread, verdict: u16) {
        t.verdicts |= verdict << (3 * u16::from(t.op));
        if t.own.1 == Word(0) {
            self.end(t);
        } else {
            self.rescan(t);
            t.known = (0, Word(0));
            t.pc = Pc::Drop;
        }
    }

    pub fn finish(&self, t: &mut Thread, verdict: u16) {
        t.verdicts |= verdict << (3 * u16::from(t.op));
        self.end(t);
    }

    /// Ends an operation; a refund whose charge stored nothing ends at once.
    pub fn end(&self, t: &mut Thread) {
        self.rescan(t);
        t.own = (0, Word(0));
        t.known = (0, Word(0));
        t.op += 1;
        t.begun = false;
        let script = &self.scripts[usize::from(t.script)];
        if let Some(Op::Refund { of, .. }) = script.get(usize::from(t.op)) {
            if t.permits[self.permit_of(t, *of).expect("the script refunds it")].stored == 0 {
                self.finish(t, FINISHED);
            }
        }
    }

    /// Which permit holds the charge that is operation `of`: the number of its refund in the script.
    pub fn permit_of(&self, t: &Thread, of: usize) -> Option<usize> {
        let script = &self.scripts[usize::from(t.script)];
        let refunds = script.iter().filter(|op| matches!(op, Op::Refund { .. }));
        refunds.enumerate().find(|(_, op)| matches!(op, Op::Refund { of: o, .. } if *o == of)).map(|(i, _)| i)
    }

    /// Has a thread not finished, and does no reading used so far lie too far ahead of its own?
    pub fn may_step(&self, s: &State, who: usize) -> bool {
        let t = &s.threads[who];
        if self.done(t) {
            return false;
        }
        let Some(skew) = self.skew else { return true };
        let used = s.threads[..self.scripts.len()].iter().flat_map(|t| {
            let begun = usize::from(t.op) + usize::from(t.begun);
            self.scripts[usize::from(t.script)][..begun].iter().filter_map(Op::now)
        });
        let own = self.scripts[usize::from(t.script)][usize::from(t.op)].now();
        own.is_none_or(|own| used.max().is_none_or(|latest| own >= latest - skew))
    }

    pub fn done(&self, t: &Thread) -> bool {
        usize::from(t.op) == self.scripts[usize::from(t.script)].len()
    }
}

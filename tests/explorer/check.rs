//! What must hold in every state of a world.

use super::model::{
    Choice, Kind, Op, Policy, State, Thread, Word, World, ADMIT, CONTENDED, DENY, FINISHED, GRACE, MAX_SLOTS,
    RESET,
};
use super::store::{pack_thread, PER_THREAD};
use std::collections::HashSet;

/// Most steps a thread that runs alone may need: four passes over three slots, their swaps and a drop fit.
const SOLO_STEPS: usize = 40;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// At most one LIVE word per key.
    OneLive,
    /// No claim is at or below an earlier one of its slot, so no claim word recurs.
    ClaimsRise,
    /// Net charges of a key fit a token bucket over the clock readings used, and one more for each reset and each time
    /// that a clock a unit or more ahead gave its slot away.
    KeyEnvelope,
    /// The same for every window that ends at the last reading (one key, nothing forgets it); a refund counts
    /// only with its charge.
    Windows,
    /// The payloads account for every net charge in the set (equal clocks, no reset).
    SetConserves,
    /// The net charges of the whole set fit one token bucket per slot and reset over the clock readings used.
    SetEnvelope,
    /// When all have answered, the key X was admitted.
    SomeoneAdmitted,
    /// No word carries more debt than was charged (a refused call charges nothing).
    NothingExtra,
    /// A permit of before a reset of its key gives back no more than G + 16 and the clock difference.
    VoidPermits,
    /// From every state every thread, and a fresh one, ends when it runs alone.
    Progress,
}

impl Check {
    fn broken(self) -> &'static str {
        match self {
            Check::OneLive => "two LIVE words of one key",
            Check::ClaimsRise => "a claim is not above the earlier ones of its slot",
            Check::KeyEnvelope => "a key was admitted more than its bucket allows",
            Check::Windows => "a window admitted more than a bucket allows",
            Check::SetConserves => "the set lost debt",
            Check::SetEnvelope => "the set admitted more than its slots allow",
            Check::SomeoneAdmitted => "nobody was admitted",
            Check::NothingExtra => "a word carries more debt than was charged",
            Check::VoidPermits => "a permit of before a reset gave back more than it may",
            Check::Progress => "stuck",
        }
    }
}

pub struct Checker {
    world: World,
    checks: Vec<Check>,
    threads: usize,
    first: i32,
    last: i32,
    solo: HashSet<[u64; 1 + PER_THREAD]>,
    probed: HashSet<[Word; MAX_SLOTS]>,
}

/// Units of time that each key was charged, with and without what refunds gave back, and its resets.
struct Sums {
    net: [i32; 4],
    gross: [i32; 4],
    resets: [i32; 4],
}

impl Checker {
    pub fn new(world: World, checks: &[Check]) -> Checker {
        let readings: Vec<i32> = world.scripts.iter().flatten().filter_map(Op::now).collect();
        let (first, last) = (*readings.iter().min().unwrap(), *readings.iter().max().unwrap());
        let (solo, probed, threads) = (HashSet::new(), HashSet::new(), world.scripts.len());
        Checker { world, checks: checks.to_vec(), threads, first, last, solo, probed }
    }

    pub fn violated(&mut self, s: &State) -> Option<String> {
        let sums = self.sums(s);
        for i in 0..self.checks.len() {
            let check = self.checks[i];
            if check == Check::Progress {
                if let Some(what) = self.stuck(s) {
                    return Some(what);
                }
            } else if self.is_broken(check, s, &sums) {
                return Some(check.broken().into());
            }
        }
        None
    }

    fn sums(&self, s: &State) -> Sums {
        let mut sums = Sums { net: [0; 4], gross: [0; 4], resets: [0; 4] };
        for t in &s.threads[..self.threads] {
            for (i, op) in self.world.scripts[usize::from(t.script)].iter().enumerate() {
                match op {
                    Op::Charge { key, units, .. } if t.verdict(i) == ADMIT => {
                        sums.net[usize::from(*key)] += units * self.world.unit;
                        sums.gross[usize::from(*key)] += units * self.world.unit;
                    }
                    Op::Refund { of, .. } if t.verdict(i) == FINISHED => {
                        let permit = self.world.permit_of(t, *of).expect("it is in the script");
                        let key = self.world.key_of(t.script, *of);
                        sums.net[usize::from(key)] -= i32::from(t.permits[permit].stored);
                    }
                    Op::Reset { key, .. } if t.verdict(i) == RESET => sums.resets[usize::from(*key)] += 1,
                    _ => {}
                }
            }
        }
        sums
    }

    fn is_broken(&self, check: Check, s: &State, sums: &Sums) -> bool {
        let slots = &s.slots[..self.world.slots];
        let Sums { net, gross, resets } = sums;
        match check {
            Check::OneLive => (0..4).any(|k| slots.iter().filter(|w| w.is(Kind::Live, k)).count() > 1),
            Check::ClaimsRise => s.recurred,
            Check::KeyEnvelope => (0..4).any(|k: u8| {
                let anew = resets[usize::from(k)] + self.forgets(s, k);
                net[usize::from(k)] > self.envelope(k, anew)
            }),
            Check::Windows => self.windows_overrun(s),
            Check::SetConserves => {
                let sum = |words: &[Word]| words.iter().map(|w| self.debt(*w)).sum::<i32>();
                sum(slots) - sum(&self.world.initial) < net.iter().sum()
            }
            Check::SetEnvelope => {
                let one = self.world.limit + (self.last - self.first);
                net.iter().sum::<i32>() > one * (slots.len() as i32 + resets.iter().sum::<i32>())
            }
            Check::SomeoneAdmitted => {
                s.threads[..self.threads].iter().all(|t| self.world.done(t)) && gross[0] == 0
            }
            Check::NothingExtra => (0..4).any(|k| {
                let before = self.world.initial.iter().filter(|w| w.is(Kind::Live, k));
                let before: i32 = before.map(|w| (w.payload() - self.last).max(0)).sum();
                let most = self.last + before + gross[usize::from(k)];
                slots.iter().any(|w| w.is(Kind::Live, k) && w.payload() > most.max(self.last))
                    && self.world.policy != Policy::Inherit
            }),
            Check::VoidPermits => {
                let skew = self.world.skew.unwrap_or(self.last - self.first);
                let most = self.world.lifetime + GRACE - 2 + skew;
                let mut permits = s.threads[..self.threads].iter().flat_map(|t| t.permits);
                permits.any(|p| p.void && p.tat == 0 && i32::from(p.stored) > most)
            }
            Check::Progress => unreachable!("it runs calls"),
        }
    }

    fn windows_overrun(&self, s: &State) -> bool {
        (self.first..=self.last).step_by(self.world.unit as usize).any(|from| {
            let mut net = 0;
            for t in &s.threads[..self.threads] {
                let script = &self.world.scripts[usize::from(t.script)];
                for (i, op) in script.iter().enumerate() {
                    let Op::Charge { now, units, .. } = op else { continue };
                    let undone = script.iter().enumerate().any(|(j, op)| {
                        matches!(op, Op::Refund { of, .. } if *of == i)
                            && j < usize::from(t.op)
                            && self.world.permit_of(t, i).is_some_and(|p| t.permits[p].stored > 0)
                    });
                    if t.verdict(i) == ADMIT && *now >= from && !undone {
                        net += units * self.world.unit;
                    }
                }
            }
            net > self.world.limit + self.last - from
        })
    }

    /// How often a clock that is a unit or more ahead may have given the key's slot away: once for each call of
    /// another key.
    fn forgets(&self, s: &State, key: u8) -> i32 {
        if self.last - self.first < self.world.unit {
            return 0;
        }
        let begun = s.threads[..self.threads]
            .iter()
            .flat_map(|t| self.world.scripts[usize::from(t.script)].iter().take(usize::from(t.op) + 1));
        begun.filter(|op| matches!(op, Op::Charge { key: other, .. } if *other != key)).count() as i32
    }

    /// What an exact token bucket admits between the first and the last clock reading, if it begins anew so often.
    fn envelope(&self, key: u8, anew: i32) -> i32 {
        let before = self.world.initial.iter().filter(|w| w.is(Kind::Live, key));
        let before: i32 = before.map(|w| (w.payload() - self.first).max(0)).sum();
        let one = self.world.limit + (self.last - self.first);
        let owed = if self.first < self.last { 0 } else { before };
        (one - owed).max(0) + anew * one
    }

    /// The debt a word stands for (equal clocks).
    fn debt(&self, w: Word) -> i32 {
        let p = w.payload();
        match (w.kind(), p & 1) {
            (Kind::Live, _) => self.world.lead(p, self.last),
            (_, 1) if self.world.takes_over() => self.world.lead(p - 1, self.last),
            _ => 0,
        }
    }

    /// Runs each thread, then fresh calls, alone.
    fn stuck(&mut self, s: &State) -> Option<String> {
        let slots = s.slots.iter().fold(0, |acc, w| acc << 16 | u64::from(w.0));
        for who in 0..self.threads {
            let t = s.threads[who];
            let [a, b, c] = pack_thread(&t);
            if self.world.done(&t) || !self.solo.insert([slots, a, b, c]) {
                continue;
            }
            if self.alone(&self.world, s, who).is_none() {
                return Some(format!("thread {who} alone does not end"));
            }
        }
        if !self.probed.insert(s.slots) {
            return None;
        }
        let latest = self.world.initial.iter().map(|w| w.payload()).fold(self.last, i32::max);
        let drained = latest + self.world.limit + self.world.lifetime + 32;
        for key in [0, 3] {
            for now in [self.last, self.last + self.world.lifetime + 1, drained] {
                if let Some(what) = self.probe(s, key, now, now == drained) {
                    return Some(format!("a fresh call of key {key} at {now} alone {what}"));
                }
            }
        }
        self.probe_reset(s)
    }

    /// A fresh call: it ends; refused, it writes nothing; contended only where claims fill the set; admitted once
    /// all has drained.
    fn probe(&self, s: &State, key: u8, now: i32, drained: bool) -> Option<String> {
        let world = self.fresh(vec![Op::Charge { key, now, units: 1 }]);
        let Some((verdict, after)) = self.alone(&world, &State { slots: s.slots, ..State::default() }, 0)
        else {
            return Some("does not end".into());
        };
        let slots = &s.slots[..world.slots];
        let claimed = slots.iter().any(|w| w.is(Kind::Claim, key));
        if verdict != ADMIT && !claimed && after.slots != s.slots {
            return Some(format!("answers {verdict} and writes"));
        }
        let blocked = slots.iter().all(|w| w.kind() == Kind::Claim);
        let wrong = drained && verdict != ADMIT || verdict == CONTENDED && !blocked;
        wrong.then(|| format!("answers {verdict}"))
    }

    /// A fresh reset of a key by the last reading makes it full: a whole burst is not refused.
    fn probe_reset(&self, s: &State) -> Option<String> {
        if self.world.policy != Policy::Admit {
            return None;
        }
        let (key, now) = (0, self.last);
        let reset = self.fresh(vec![Op::Reset { key, now }]);
        let Some((_, after)) = self.alone(&reset, &State { slots: s.slots, ..State::default() }, 0) else {
            return Some("a fresh reset alone does not end".into());
        };
        let units = self.world.limit / self.world.unit;
        let burst = self.fresh(vec![Op::Charge { key, now, units }]);
        match self.alone(&burst, &State { slots: after.slots, ..State::default() }, 0) {
            Some((DENY, _)) => Some("a burst behind a reset is refused".into()),
            _ => None,
        }
    }

    fn fresh(&self, script: Vec<Op>) -> World {
        World { scripts: vec![script], history: false, may_give_up: false, ..self.world.clone() }
    }

    /// The answer of the thread's present operation when nothing else runs, and what it leaves.
    fn alone(&self, world: &World, s: &State, who: usize) -> Option<(u16, State)> {
        let mut s = *s;
        let op = s.threads[who].op;
        for _ in 0..SOLO_STEPS {
            s = world.step(&s, who, &mut Choice::default());
            if s.threads[who].op != op {
                return Some((answer(&s.threads[who], op), s));
            }
        }
        None
    }
}

fn answer(t: &Thread, op: u8) -> u16 {
    t.verdict(usize::from(op))
}

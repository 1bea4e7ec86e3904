//! Breadth-first search over every interleaving of a world, with the properties checked in every state.

use super::check::{Check, Checker};
use super::model::{Choice, Op, Permit, State, World, MAX_PERMITS};
use super::store::{pack, unpack, Visited};

pub struct Found {
    pub states: usize,
    /// Of the shortest schedule that violates.
    pub steps: usize,
    pub violation: Option<String>,
}

pub struct Search {
    world: World,
    checker: Checker,
    threads: usize,
}

impl Search {
    pub fn new(world: World, checks: &[Check]) -> Search {
        let threads = world.scripts.len();
        for script in &world.scripts {
            let refunds = script.iter().filter(|op| matches!(op, Op::Refund { .. })).count();
            assert!(refunds <= MAX_PERMITS && script.len() <= 5, "a script is too long for the packing");
        }
        let world = World { history: checks.contains(&Check::ClaimsRise), ..world };
        let checker = Checker::new(world.clone(), checks);
        Search { world, checker, threads }
    }

    /// The state before the first step: permits of before the world are in the hands of their threads.
    fn start(&self) -> State {
        let mut s = State { slots: self.world.initial, ..State::default() };
        for i in 0..self.threads {
            let script = &self.world.scripts[i];
            let equal = (0..=i).find(|j| self.world.scripts[*j] == *script);
            let t = &mut s.threads[i];
            t.script = equal.unwrap() as u8;
            while let Some(Op::Past { units, tat, slot, .. }) = script.get(usize::from(t.op)) {
                if let Some(permit) = self.world.permit_of(t, usize::from(t.op)) {
                    let stored = (units * self.world.unit) as u8;
                    t.permits[permit] = Permit { tat: *tat as u16, stored, slot: *slot as u8, void: false };
                }
                t.op += 1;
            }
        }
        s
    }

    /// Explores everything reachable; stops at a violation, or at `cap` states.
    pub fn run(mut self, cap: usize) -> Found {
        let mut seen = Visited::new(self.threads);
        let mut packed = Vec::new();
        pack(&self.start(), self.threads, &mut packed);
        seen.insert(&packed, 0);
        let mut next = 0;
        while next < seen.len() && seen.len() < cap {
            let s = unpack(seen.get(next), self.threads);
            if let Some(what) = self.checker.violated(&s) {
                let trace = self.trace(&seen, next, &what);
                return Found {
                    states: seen.len(),
                    steps: trace.lines().count() - 2,
                    violation: Some(trace),
                };
            }
            for who in 0..self.threads {
                if !self.world.may_step(&s, who) {
                    continue;
                }
                let mut choice = Choice::default();
                loop {
                    let after = self.world.step(&s, who, &mut choice);
                    pack(&after, self.threads, &mut packed);
                    seen.insert(&packed, next);
                    if choice.pick + 1 >= choice.ways {
                        break;
                    }
                    choice = Choice { pick: choice.pick + 1, ways: 0 };
                }
            }
            next += 1;
        }
        Found { states: seen.len(), steps: 0, violation: None }
    }

    fn trace(&self, seen: &Visited, mut i: usize, what: &str) -> String {
        let mut lines = vec![];
        loop {
            let s = unpack(seen.get(i), self.threads);
            let mut line = format!("{:?}", &s.slots[..self.world.slots]);
            for t in &s.threads[..self.threads] {
                let looked = &t.seen[..self.world.slots];
                line += &format!(" | T{} op{} {:?}{} {looked:?}", t.script, t.op, t.pc, t.at);
                line += &format!(" own {:?} verdicts {:o}", t.own, t.verdicts);
                for p in t.permits.iter().filter(|p| **p != Permit::default()) {
                    let void = if p.void { " void" } else { "" };
                    line += &format!(" permit {} to {}{void}", p.stored, p.tat);
                }
            }
            lines.push(line);
            if i == 0 {
                break;
            }
            i = seen.parents[i] as usize;
        }
        lines.reverse();
        format!("{what} after {} steps\n{}", lines.len() - 1, lines.join("\n"))
    }
}

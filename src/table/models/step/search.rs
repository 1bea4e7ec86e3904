//! Finds every state that the threads of a world can reach, breadth first, and the shortest way to a wrong one.

use std::collections::{HashSet, VecDeque};
use std::format;
use std::hash::Hash;
use std::string::String;
use std::vec;
use std::vec::Vec;

use super::calls;
use super::check::{Check, Checker};
use super::state::{Lists, Seen, State, Thread};
use super::world::{World, MOST};
use crate::sync::access::Access;
use crate::sync::step_atomic::{step, AtomicU64};

/// What a search has found.
pub(super) struct Found {
    pub states: usize,
    /// What is wrong, and the shortest schedule that leads there.
    pub violation: Option<String>,
    /// The number of its steps.
    pub steps: usize,
}

pub(super) struct Search<'w, A: Access> {
    world: &'w World<A>,
    checker: Checker<'w, A>,
    watched: Vec<*const AtomicU64>,
    lists: Lists,
    /// A payload below all payloads of the world.
    origin: u64,
}

impl<'w, A: Access> Search<'w, A> {
    pub fn new(world: &'w World<A>, checks: &'w [Check]) -> Search<'w, A> {
        let layout = &world.table.geometry.layout;
        let first = world.scripts.iter().flatten().map(|op| op.now()).min().expect("a call");
        let origin = world.table.geometry.clock_q(first).wrapping_sub(layout.window);
        let (checker, watched) = (Checker::new(world, checks), world.watched());
        Search { world, checker, watched, lists: Lists::new(), origin }
    }

    fn height(&self, word: u64) -> u64 {
        let layout = &self.world.table.geometry.layout;
        if layout.is_claim(word) {
            (word.wrapping_sub(self.origin) & layout.mask) + 1
        } else {
            0
        }
    }

    fn start(&self) -> State {
        let mut s = State {
            words: [0; MOST],
            highest: [0; MOST],
            recurred: false,
            threads: [Thread::default(); MOST],
        };
        s.words[..self.world.words.len()].copy_from_slice(&self.world.words);
        s.highest = s.words.map(|word| self.height(word));
        for (i, thread) in s.threads.iter_mut().enumerate().take(self.world.scripts.len()) {
            let script = &self.world.scripts[i];
            thread.script = self.world.scripts.iter().position(|other| other == script).unwrap_or(i) as u8;
        }
        s
    }

    /// Returns the state after one step of a thread.
    fn step(&mut self, s: &State, who: usize) -> State {
        let thread = s.threads[who];
        let script = &self.world.scripts[usize::from(thread.script)];
        self.world.set(&s.words);
        let before = &self.lists.outcomes[thread.outcomes as usize];
        let log = self.lists.log(thread.log);
        let call = || self.world.call(script, thread.done.into(), before);
        let taken = step(&self.watched, log, call);
        let mut after = State { words: self.world.get(), ..*s };
        for i in 0..MOST {
            let height = self.height(after.words[i]);
            if after.words[i] != s.words[i] && height != 0 {
                after.recurred |= height <= after.highest[i];
                after.highest[i] = after.highest[i].max(height);
            }
        }
        let thread = &mut after.threads[who];
        match (taken.end, taken.found) {
            (Some(outcome), _) => {
                thread.outcomes = self.lists.ended(thread.outcomes, outcome);
                thread.log = 0;
                thread.done += 1;
            }
            (None, Some(found)) => thread.log = self.lists.longer(thread.log, found),
            (None, None) => unreachable!("a call was stopped before its first access"),
        }
        // Threads with one script are interchangeable, so they are kept in order.
        for i in 1..self.world.scripts.len() {
            let mut j = i;
            while j > 0
                && after.threads[j].script == after.threads[j - 1].script
                && after.threads[j] < after.threads[j - 1]
            {
                after.threads.swap(j, j - 1);
                j -= 1;
            }
        }
        after
    }

    pub fn may_step(&self, thread: &Thread) -> bool {
        usize::from(thread.done) < self.world.scripts[usize::from(thread.script)].len()
    }

    /// Checks everything reachable. Stops at a fault, or at `cap` states.
    pub fn run(mut self, cap: usize) -> Found {
        let threads = self.world.scripts.len();
        let start = self.start();
        let mut seen = Seen::new();
        seen.is_new(&start);
        // For each state, the state before it and the thread that took the step.
        let mut ways = vec![(0u32, 0u8)];
        let (mut left, mut next) = (VecDeque::from([start]), 0);
        while let Some(s) = left.pop_front().filter(|_| ways.len() < cap) {
            if let Some(what) = self.checker.wrong(&s, &self.lists) {
                let (steps, violation) = self.trace(&ways, next, &s, &what);
                return Found { states: ways.len(), violation: Some(violation), steps };
            }
            for who in 0..threads {
                if self.may_step(&s.threads[who]) {
                    let after = self.step(&s, who);
                    if seen.is_new(&after) {
                        left.push_back(after);
                        ways.push((next as u32, who as u8));
                    }
                }
            }
            next += 1;
        }
        Found { states: ways.len(), violation: None, steps: 0 }
    }

    /// Explores everything reachable. Returns what `of` makes of the states in which all threads have ended.
    pub fn ends<T: Eq + Hash>(mut self, of: impl Fn(&State, &Lists) -> T) -> HashSet<T> {
        let (mut left, mut ends) = (vec![self.start()], HashSet::new());
        let mut seen = Seen::new();
        seen.is_new(&left[0]);
        while let Some(s) = left.pop() {
            assert!(seen.len() < MANY, "its states do not end");
            if self.checker.have_ended(&s) {
                ends.insert(of(&s, &self.lists));
            }
            for who in 0..self.world.scripts.len() {
                if self.may_step(&s.threads[who]) {
                    let after = self.step(&s, who);
                    if seen.is_new(&after) {
                        left.push(after);
                    }
                }
            }
        }
        ends
    }

    fn trace(&mut self, ways: &[(u32, u8)], mut at: usize, wrong: &State, what: &str) -> (usize, String) {
        let mut takers = vec![];
        while at != 0 {
            takers.push(usize::from(ways[at].1));
            at = ways[at].0 as usize;
        }
        let mut s = self.start();
        let mut lines = vec![self.line(&s)];
        for &who in takers.iter().rev() {
            s = self.step(&s, who);
            lines.push(self.line(&s));
        }
        assert!(s == *wrong, "the way leads elsewhere");
        (takers.len(), format!("{what} after {} steps\n{}", takers.len(), lines.join("\n")))
    }

    fn line(&self, s: &State) -> String {
        let words: Vec<String> =
            s.words[..self.world.slots.len()].iter().map(|word| self.word(*word)).collect();
        let mut line = words.join(" ");
        for thread in &s.threads[..self.world.scripts.len()] {
            let (log, outcomes) = (self.lists.log(thread.log).len(), &self.lists.outcomes);
            let ended = &outcomes[thread.outcomes as usize];
            line += &format!(" | T{} call {} access {log} {ended:?}", thread.script, thread.done);
        }
        line
    }

    fn word(&self, word: u64) -> String {
        let layout = &self.world.table.geometry.layout;
        let kind = match (layout.is_empty(word), layout.is_claim(word)) {
            (true, _) => "EMPTY",
            (_, true) => "CLAIM",
            _ => "LIVE",
        };
        let above = layout.payload(word).wrapping_sub(self.origin) & layout.mask;
        format!("{kind}({}, {})", layout.tag_field(word) >> layout.bits, above as i64 - layout.window as i64)
    }
}

/// Explores the answers that single calls get in place of a world's bursts, for `Check::AsCalls`.
pub(super) fn answered_singly<A: Access>(mut world: World<A>) -> World<A> {
    let singles = world.scripts.iter().map(|script| calls::singly(script)).collect();
    let scripts = std::mem::replace(&mut world.scripts, singles);
    world.answers = Search::new(&world, &[]).ends(|s, lists| calls::verdicts(&world, s, lists));
    world.scripts = scripts;
    world
}

/// More states than any world here has. A world with more has threads that undo each other without end; so many states
/// would take 10 GB.
const MANY: usize = 200_000_000;

/// Checks every state of a world, and panics at a fault.
pub(super) fn holds<A: Access>(name: &str, world: &World<A>, checks: &[Check]) {
    let found = Search::new(world, checks).run(MANY);
    std::println!("step: {name}: {} states", found.states);
    assert!(found.states < MANY, "{name}: its states do not end");
    if let Some(what) = found.violation {
        panic!("{name}: {what}");
    }
}

/// Expects this fault in a state of a world, and no other before it. Returns the number of steps to it.
pub(super) fn breaks<A: Access>(name: &str, world: &World<A>, checks: &[Check], what: &str) -> usize {
    let found = Search::new(world, checks).run(MANY);
    let wrong = found.violation.unwrap_or_else(|| panic!("{name}: it holds, in {} states", found.states));
    let first = wrong.lines().next().unwrap_or_default();
    std::println!("step: {name}: {} states: {first}", found.states);
    assert!(first.starts_with(what), "{name}: {wrong}");
    found.steps
}

//! What the explorer knows of a state: the words, what each thread has learnt of them, and which states it has seen.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::vec;
use std::vec::Vec;

use super::world::{Outcome, MOST};

/// The words, and for each thread what it has learnt: how its calls ended, and what the accesses of the present one
/// found. A thread stores both as numbers of lists in [`Lists`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct State {
    pub words: [u64; MOST],
    /// The highest claim that each slot has held, as its distance above a payload below all of the world; 0 = none.
    pub highest: [u64; MOST],
    /// Whether a claim at or below an earlier one of its slot was placed.
    pub recurred: bool,
    pub threads: [Thread; MOST],
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(super) struct Thread {
    /// How its calls ended.
    pub outcomes: u32,
    /// What the accesses of its present call have found.
    pub log: u32,
    /// The number of its script.
    pub script: u8,
    /// How many calls have ended.
    pub done: u8,
}

/// Lists that states share, each known by a number; 0 is the empty one.
#[derive(Default)]
pub(super) struct Lists {
    /// A log is a shorter one plus what one more access found.
    logs: Vec<(u32, u64)>,
    log_of: HashMap<(u32, u64), u32>,
    pub outcomes: Vec<Vec<Outcome>>,
    outcome_of: HashMap<Vec<Outcome>, u32>,
}

impl Lists {
    pub fn new() -> Lists {
        Lists {
            logs: vec![(0, 0)],
            outcomes: vec![vec![]],
            outcome_of: HashMap::from([(vec![], 0)]),
            ..Lists::default()
        }
    }

    pub fn longer(&mut self, log: u32, found: u64) -> u32 {
        *self.log_of.entry((log, found)).or_insert_with(|| {
            self.logs.push((log, found));
            self.logs.len() as u32 - 1
        })
    }

    pub fn log(&self, mut log: u32) -> Vec<u64> {
        let mut found = vec![];
        while log != 0 {
            let (before, last) = self.logs[log as usize];
            found.push(last);
            log = before;
        }
        found.reverse();
        found
    }

    pub fn ended(&mut self, outcomes: u32, outcome: Outcome) -> u32 {
        let mut list = self.outcomes[outcomes as usize].clone();
        list.push(outcome);
        *self.outcome_of.entry(list).or_insert_with_key(|list| {
            self.outcomes.push(list.clone());
            self.outcomes.len() as u32 - 1
        })
    }
}

/// What was seen, as 128 bits of two keyed hashes: among 1e8 random states two would have the same bits with a chance
/// of 1e-23, and one of them would be skipped. A state itself is about eight times as long.
pub(super) struct Seen {
    prints: HashSet<u128>,
    hashes: [RandomState; 2],
}

impl Seen {
    pub fn new() -> Seen {
        Seen { prints: HashSet::new(), hashes: [RandomState::new(), RandomState::new()] }
    }

    pub fn len(&self) -> usize {
        self.prints.len()
    }

    pub fn is_new(&mut self, what: &impl Hash) -> bool {
        let [high, low] = self.hashes.each_ref().map(|hash| u128::from(hash.hash_one(what)));
        self.prints.insert(high << 64 | low)
    }
}

//! The parts of a world of the explorer: a table of one set, what its slots hold, and what its threads call.

use std::boxed::Box;
use std::collections::HashSet;
use std::vec;
use std::vec::Vec;

use super::migration::{How, Target};
use crate::algorithms::Change;
use crate::answer::{Permit, Tracking, Verdict};
use crate::combine::{Chain, Link, PreparedChain};
use crate::limit::{LimitSpec, TableLimit};
use crate::sync::access::{Access, Shared};
use crate::sync::AtomicU64;
use crate::table::burst::call::{Burst, NextBurst};
use crate::table::burst::scalar::nothing;
use crate::table::calls::full_answer::Request;
use crate::table::counters::Counters;
use crate::table::handle::Table;
use crate::table::layout::image::Line;
use crate::table::layout::options::{AttachOptions, TableOptions};
use crate::table::layout::policy::FullPolicy;
use crate::table::set::search::Base;

/// Ticks of an emission interval. Ticks are q-units.
pub(super) const T: u64 = 4096;
/// The clock of a world, far from 0 and from a wrap.
pub(super) const NOW: u64 = 1 << 30;
/// The most words that a world watches, and the most threads.
pub(super) const MOST: usize = 4;

/// Keys, which are their own hashes: a tag, and the home line in the highest bit.
pub(super) const X: u64 = 1;
pub(super) const Y: u64 = 2;
pub(super) const Z: u64 = 3;
/// A key whose home line is the other one.
pub(super) const Y2: u64 = 1 << 63 | Y;

/// A call of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    Check {
        key: u64,
        now: u64,
        cost: u64,
    },
    /// One unit for each key, in one burst call.
    Burst {
        keys: &'static [u64],
        now: u64,
    },
    /// The same in groups of two lanes.
    Groups {
        keys: &'static [u64],
        now: u64,
    },
    /// The same in groups, with counters.
    Counted {
        keys: &'static [u64],
        now: u64,
    },
    /// One unit of each key, all or none, in a table that is shared.
    Chain {
        keys: &'static [u64],
        now: u64,
    },
    /// Charges after the fact.
    Charge {
        key: u64,
        now: u64,
        cost: u64,
    },
    /// Refunds the call number `of` of the same thread.
    Refund {
        of: usize,
        now: u64,
    },
    /// Gives units back without a permit.
    Credit {
        key: u64,
        now: u64,
        units: u64,
    },
    Reset {
        key: u64,
        now: u64,
    },
    /// To a limit of twice the rate, keeping units: the debt is half of what it was.
    Halve {
        key: u64,
        now: u64,
    },
    Sweep {
        slot: usize,
        now: u64,
    },
    /// Saves the table.
    Save {
        now: u64,
    },
    /// Migrates the table into memory of its own.
    Migrate {
        now: u64,
    },
}

impl Op {
    pub fn now(&self) -> u64 {
        match *self {
            Op::Check { now, .. }
            | Op::Burst { now, .. }
            | Op::Groups { now, .. }
            | Op::Counted { now, .. }
            | Op::Chain { now, .. }
            | Op::Charge { now, .. }
            | Op::Refund { now, .. }
            | Op::Credit { now, .. }
            | Op::Reset { now, .. }
            | Op::Halve { now, .. }
            | Op::Sweep { now, .. }
            | Op::Save { now }
            | Op::Migrate { now } => now,
        }
    }

    /// Returns the units of a single call that charges.
    pub fn cost(&self) -> u64 {
        match *self {
            Op::Check { cost, .. } | Op::Charge { cost, .. } => cost,
            _ => 0,
        }
    }
}

/// Makes a request of one unit.
pub(super) fn check(key: u64, now: u64) -> Op {
    Op::Check { key, now, cost: 1 }
}

/// How a call ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Decided {
        verdict: Verdict,
        tracking: Tracking,
        /// The permit, if a refund of this call follows; else none.
        permit: Permit,
    },
    /// Bit i is 1 if key i passed.
    Passed(u64),
    /// The same, and how many of those that passed got no slot, or one whose debt was forgiven.
    Counted {
        pass: u64,
        untracked: u64,
        forgiven: u64,
    },
    /// Ticks or units given back; `None`: contended.
    Refunded(Option<u64>),
    /// False: contended.
    Reset(bool),
    Swept,
    /// The watched words, as saved.
    Saved(Vec<u64>),
    /// The words of all slots of the new table.
    Migrated(Vec<u64>),
}

impl core::hash::Hash for Outcome {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        match self {
            Outcome::Decided { verdict, permit, .. } => (*verdict as u8, permit.tat, permit.slot).hash(state),
            Outcome::Passed(bits) => bits.hash(state),
            Outcome::Counted { pass, untracked, forgiven } => (pass, untracked, forgiven).hash(state),
            Outcome::Refunded(back) => back.hash(state),
            Outcome::Reset(done) => done.hash(state),
            Outcome::Swept => {}
            Outcome::Saved(words) | Outcome::Migrated(words) => words.hash(state),
        }
    }
}

/// For each thread what passed, one bit a request. Threads with the same requests are in no particular order.
pub(super) type Verdicts = Vec<(usize, u64)>;

/// One configuration, with memory of its own.
pub(super) struct World<A: Access = Shared> {
    pub table: Table<'static, A>,
    /// The same memory, for chains.
    shared: Table<'static>,
    pub limit: TableLimit,
    pub spec: LimitSpec,
    options: TableOptions,
    /// Where its migrations go.
    target: Option<Target<A>>,
    /// Whether its chains are prepared ones.
    prepared: bool,
    /// Numbers of the watched slots.
    pub slots: Vec<usize>,
    /// What they hold at the start.
    pub words: Vec<u64>,
    pub scripts: Vec<Vec<Op>>,
    /// The answers that its threads may get by single calls, if a check asks for them.
    pub answers: HashSet<Verdicts>,
}

impl World<Shared> {
    /// Makes a world like [`of`](World::of), with nothing weakened.
    pub fn shared(spec: LimitSpec, policy: FullPolicy, lifetime: u64, slots: &[usize]) -> World {
        World::of(spec, policy, lifetime, slots)
    }
}

impl<A: Access> World<A> {
    /// Makes a table of one set whose keys have this limit, with these slots free and no thread yet.
    pub fn of(spec: LimitSpec, policy: FullPolicy, lifetime: u64, slots: &[usize]) -> World<A> {
        let options = TableOptions::new(spec).caller_hash().resolution(0).policy(policy);
        World::with(spec, options.claim_lifetime(lifetime).skew(16 * T), slots)
    }

    /// Does the same with other options.
    pub fn with(spec: LimitSpec, options: TableOptions, slots: &[usize]) -> World<A> {
        assert!(slots.len() <= MOST, "more slots than a state has room for");
        let memory: &'static [Line; 4] = Box::leak(Box::new([Line::EMPTY; 4]));
        let table = Table::init_as(memory, &options).expect("a table");
        let shared = match A::EXCLUSIVE {
            false => Table::attach_as(memory, &AttachOptions::new()).expect("a table"),
            // No world has chains of such a table.
            true => Table::init(Box::leak(Box::new([Line::EMPTY; 4])), &options).expect("a table"),
        };
        let (limit, answers) = (table.limit(&spec).expect("a limit"), HashSet::new());
        let (words, scripts) = (vec![0; slots.len()], vec![]);
        World {
            table,
            shared,
            limit,
            spec,
            options,
            target: None,
            prepared: false,
            slots: slots.into(),
            words,
            scripts,
            answers,
        }
        .surrounded(NOW)
    }

    /// Fills the slots that are not watched with claims that outlive all readings near this one.
    pub fn surrounded(self, now: u64) -> World<A> {
        self.surround(now);
        self
    }

    pub fn surround(&self, now: u64) {
        let layout = &self.table.geometry.layout;
        let end = self.table.geometry.clock_q(now).wrapping_add(layout.window - 3 * T);
        for number in (0..self.table.slots()).filter(|n| !self.slots.contains(n)) {
            let claim = layout.claim_of_debt(layout.tag(100 + number as u64), end);
            self.slot(number).set(claim);
        }
    }

    pub fn thread(mut self, calls: &[Op]) -> World<A> {
        assert!(self.scripts.len() < MOST, "more threads than a state has room for");
        self.scripts.push(calls.into());
        self
    }

    /// Sets what a watched slot holds at the start, by its place in the list.
    pub fn start(mut self, at: usize, word: u64) -> World<A> {
        self.words[at] = word;
        self
    }

    /// Returns LIVE(key) with this payload: a time, below it a count if the table counts.
    pub fn live(&self, key: u64, payload: u64) -> u64 {
        let layout = &self.table.geometry.layout;
        layout.live(layout.tag(key), payload)
    }

    /// Returns a claim left by a thread that died.
    pub fn claim(&self, key: u64, payload: u64) -> u64 {
        let layout = &self.table.geometry.layout;
        self.live(key, payload) | (!layout.field & !layout.mask)
    }

    /// Sends migrations into a table of this resolution and number of sets, in this way.
    pub fn migrating(mut self, resolution: i8, sets: usize, how: How<A>) -> World<A> {
        self.target = Some(Target::of(self.options.resolution(resolution), sets, how));
        self
    }

    /// Decides chains by [`PreparedChain`].
    pub fn prepared(mut self) -> World<A> {
        self.prepared = true;
        self
    }

    pub fn target(&self) -> &Target<A> {
        self.target.as_ref().expect("a world whose migrations go somewhere")
    }

    pub fn slot(&self, number: usize) -> &'static AtomicU64 {
        &self.table.slots[number / 8].words[number % 8]
    }

    /// Returns the addresses of the watched words.
    pub fn watched(&self) -> Vec<*const AtomicU64> {
        self.slots.iter().map(|&n| self.slot(n) as *const AtomicU64).collect()
    }

    pub fn set(&self, words: &[u64]) {
        for (&number, &word) in self.slots.iter().zip(words) {
            self.slot(number).set(word);
        }
    }

    pub fn get(&self) -> [u64; MOST] {
        let mut words = [0; MOST];
        for (word, &number) in words.iter_mut().zip(&self.slots) {
            *word = self.slot(number).get();
        }
        words
    }

    /// Returns the key of a call that charges.
    pub fn key_of(&self, op: &Op) -> u64 {
        match *op {
            Op::Check { key, .. } | Op::Charge { key, .. } => key,
            _ => unreachable!("a refund is of a single charge"),
        }
    }

    /// Makes the call number `number` of a script whose earlier calls ended as in `before`.
    pub fn call(&self, script: &[Op], number: usize, before: &[Outcome]) -> Outcome {
        let (table, limit) = (&self.table, &self.limit);
        let refunded = |of| script.iter().any(|op| matches!(op, Op::Refund { of: o, .. } if *o == of));
        let decided = |decision: crate::answer::Decision| Outcome::Decided {
            verdict: decision.verdict,
            tracking: decision.tracking,
            permit: if refunded(number) { decision.permit } else { Permit::NONE },
        };
        match script[number] {
            Op::Check { key, now, cost } => {
                let request = Request { limit, now, cost, room: 0 };
                decided(table.check_ex(&request, key, None).expect("its own limit"))
            }
            Op::Charge { key, now, cost } => {
                decided(table.charge(limit, now, key, cost, None).expect("its own limit"))
            }
            Op::Burst { keys, now } => {
                let pass = Burst::new(limit, now, keys).check(&table, None, NextBurst::NONE);
                Outcome::Passed(pass.expect("its own limit"))
            }
            Op::Groups { keys, now } => {
                let burst = Burst::new(limit, now, keys);
                Outcome::Passed(table.decide_groups::<Base, 2>(Base, &burst, 0, None, nothing))
            }
            Op::Counted { keys, now } => {
                let burst = Burst::new(limit, now, keys);
                let mut counters = Counters::default();
                let pass = table.decide_groups::<Base, 2>(Base, &burst, 0, Some(&mut counters), nothing);
                let Counters { untracked, forgiven, .. } = counters;
                Outcome::Counted { pass, untracked, forgiven }
            }
            Op::Chain { keys, now } => {
                let links: Vec<Link<'_>> =
                    keys.iter().map(|&key| Link::hash(&self.shared, limit, key, 1)).collect();
                let verdict = match self.prepared {
                    false => Chain::new(&links).expect("its own limit").verdict(now),
                    true => {
                        let chain = PreparedChain::new(&links).expect("its own limit");
                        chain.verdict(now, keys, None).expect("different keys")
                    }
                };
                let passes = verdict.passes();
                Outcome::Passed(if passes { (1 << keys.len()) - 1 } else { 0 })
            }
            Op::Refund { of, now } => {
                let Outcome::Decided { permit, .. } = &before[of] else { unreachable!("a single charge") };
                let key = self.key_of(&script[of]);
                Outcome::Refunded(table.refund(limit, now, key, permit).expect("its own limit"))
            }
            Op::Credit { key, now, units } => {
                // A q-unit is a tick in these worlds.
                Outcome::Refunded(table.credit_q(limit, (now, key), units).map(|(_, fell)| fell))
            }
            Op::Reset { key, now } => Outcome::Reset(table.reset_key(now, key)),
            Op::Halve { key, now } => {
                let faster = table.limit(&LimitSpec { period: self.spec.period / 2, ..self.spec });
                let faster = faster.expect("a limit of the table");
                Outcome::Reset(
                    table.change(limit, &faster, now, key, Change::KeepUnits).expect("of one algorithm"),
                )
            }
            Op::Sweep { slot, now } => {
                table.sweep(now, slot, 1);
                Outcome::Swept
            }
            Op::Save { now } => {
                let mut image = vec![0; table.image_words()];
                table.save(now, &mut image).expect("room for it");
                Outcome::Saved(self.slots.iter().map(|n| image[16 + n]).collect())
            }
            Op::Migrate { now } => Outcome::Migrated(self.target().call(table, now)),
        }
    }
}

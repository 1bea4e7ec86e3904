//! What the threads of a world may be answered if each request of a burst is a call of its own, in the order of its
//! keys. A burst must not be answered anything else.
//!
//! Every schedule of these calls is explored access by access, like the world's own. Orders of whole calls would be too
//! few: a takeover in progress keeps others from its slot, so they forgive or inherit another debt.

use std::vec;
use std::vec::Vec;

use super::state::{Lists, State, Thread};
use super::world::{Op, Outcome, Verdicts, World};
use crate::answer::{Tracking, Verdict};
use crate::sync::access::Access;

/// Returns the number of requests in a call: more than one only in a burst.
fn size(op: &Op) -> usize {
    match op {
        Op::Burst { keys, .. } | Op::Groups { keys, .. } | Op::Counted { keys, .. } => keys.len(),
        _ => 1,
    }
}

/// Returns a script with single calls for its bursts.
pub(super) fn singly(script: &[Op]) -> Vec<Op> {
    let before = |call: usize| script[..call].iter().map(size).sum();
    let of_call = |op: &Op| match *op {
        Op::Burst { keys, now } | Op::Groups { keys, now } | Op::Counted { keys, now } => {
            keys.iter().map(|&key| Op::Check { key, now, cost: 1 }).collect()
        }
        Op::Refund { of, now } => vec![Op::Refund { of: before(of), now }],
        op => vec![op],
    };
    script.iter().flat_map(of_call).collect()
}

/// Returns which requests of a script passed, one bit each.
fn passed(script: &[Op], outcomes: &[Outcome]) -> u64 {
    let bits = |outcome: &Outcome| match outcome {
        Outcome::Decided { verdict, .. } => verdict.passes().into(),
        Outcome::Passed(bits) | Outcome::Counted { pass: bits, .. } => *bits,
        _ => 0,
    };
    let mut at = 0;
    script.iter().zip(outcomes).fold(0, |all, (op, outcome)| {
        at += size(op);
        all | bits(outcome) << (at - size(op))
    })
}

/// Returns the verdicts of a state in which all threads have ended.
pub(super) fn verdicts<A: Access>(world: &World<A>, s: &State, lists: &Lists) -> Verdicts {
    let singles: Vec<Vec<Op>> = world.scripts.iter().map(|script| singly(script)).collect();
    let of_thread = |thread: &Thread| {
        let number = usize::from(thread.script);
        let same = singles.iter().position(|calls| *calls == singles[number]);
        (same.unwrap_or(number), passed(&world.scripts[number], &lists.outcomes[thread.outcomes as usize]))
    };
    let mut all: Verdicts = s.threads[..world.scripts.len()].iter().map(of_thread).collect();
    all.sort_unstable();
    all
}

/// Returns the units that ended calls have charged to a slot, and the debts that they have forgiven.
pub(super) fn charged_and_forgiven<A: Access>(world: &World<A>, s: &State, lists: &Lists) -> (u64, u64) {
    let mut sums = (0, 0);
    for thread in &s.threads[..world.scripts.len()] {
        let script = &world.scripts[usize::from(thread.script)];
        for (op, outcome) in script.iter().zip(&lists.outcomes[thread.outcomes as usize]) {
            match (op, outcome) {
                (_, Outcome::Counted { pass, untracked, forgiven }) => {
                    sums.0 += u64::from(pass.count_ones()) - untracked;
                    sums.1 += forgiven;
                }
                (Op::Check { cost, .. }, Outcome::Decided { verdict, tracking, .. })
                    if is_charged(outcome) =>
                {
                    let forgave = *verdict == Verdict::Conforming && *tracking == Tracking::Forgiven;
                    sums = (sums.0 + cost, sums.1 + u64::from(forgave));
                }
                _ => {}
            }
        }
    }
    sums
}

/// Returns whether a request was admitted to a slot.
pub(super) fn is_charged(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Decided {
            verdict: Verdict::Conforming,
            tracking: Tracking::Tracked | Tracking::Inherited | Tracking::Forgiven,
            ..
        }
    )
}

/// Returns the part of a key that identifies it in its set.
pub(super) fn tag(key: u64) -> u64 {
    key & (u64::MAX >> 1)
}

pub(super) fn keys_of(op: &Op) -> Vec<u64> {
    match op {
        Op::Check { key, .. }
        | Op::Charge { key, .. }
        | Op::Credit { key, .. }
        | Op::Reset { key, .. }
        | Op::Halve { key, .. } => [*key].into(),
        Op::Burst { keys, .. }
        | Op::Groups { keys, .. }
        | Op::Counted { keys, .. }
        | Op::Chain { keys, .. } => keys.to_vec(),
        _ => Vec::new(),
    }
}

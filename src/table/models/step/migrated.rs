//! What must hold of the table that a migration made.
//!
//! It waits for nobody: what is charged while it runs may be missing in the new table. What was owed before it began,
//! and was not given back, must be there.

use std::vec::Vec;

use super::calls::{is_charged, keys_of, tag};
use super::state::{Lists, State};
use super::world::{Op, Outcome, World, T};
use crate::sync::access::Access;
use crate::table::layout::geometry::MIN_SLOTS;
use crate::table::layout::policy::FullPolicy;

/// A migration that has ended.
struct Ended<'a> {
    now: u64,
    words: &'a [u64],
    /// The earlier calls of its thread, and how they ended.
    before: Vec<(&'a Op, &'a Outcome)>,
}

fn ended<'a, A: Access>(
    world: &'a World<A>,
    s: &State,
    lists: &'a Lists,
) -> impl Iterator<Item = Ended<'a>> + 'a {
    let threads: Vec<_> = s.threads[..world.scripts.len()].into();
    threads.into_iter().flat_map(move |thread| {
        let script = &world.scripts[usize::from(thread.script)];
        let calls = script.iter().zip(&lists.outcomes[thread.outcomes as usize]);
        calls.clone().enumerate().filter_map(move |(i, call)| match call {
            (Op::Migrate { now }, Outcome::Migrated(words)) => {
                Some(Ended { now: *now, words, before: calls.clone().take(i).collect() })
            }
            _ => None,
        })
    })
}

/// Returns when the debt that a key has at the start ends, by a clock that is at `last`; 0 if it has none then.
fn start_of<A: Access>(world: &World<A>, key: u64, last: u64) -> u64 {
    let layout = &world.table.geometry.layout;
    let live = world.words.iter().filter(|word| layout.is_live_of(**word, layout.tag(key)));
    live.map(|word| layout.lead(*word, last)).filter(|lead| *lead != 0).max().map_or(0, |lead| last + lead)
}

/// Returns the keys of which something is known: those that are asked for, and those that owe at the start.
fn known<A: Access>(world: &World<A>, keys: &[u64]) -> Vec<u64> {
    let layout = &world.table.geometry.layout;
    let start = world.words.iter().filter(|word| layout.is_live(**word));
    let mut all: Vec<u64> =
        start.map(|word| layout.tag_field(*word) >> layout.bits).chain(keys.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns whether some set has a claim, two words of one tag, a debt of an unknown key, or one above what `charged`
/// says of all calls that have begun; of all keys together if full sets bound all keys.
pub(super) fn too_much<A: Access>(
    world: &World<A>,
    keys: &[u64],
    last: u64,
    s: &State,
    lists: &Lists,
    charged: impl Fn(u64) -> u64,
) -> bool {
    let target = world.target();
    let (layout, unit) = (&target.geometry.layout, 1 << target.geometry.shr);
    let known = known(world, keys);
    let until = |key| start_of(world, key, last).max(last) + T * charged(key);
    let for_all = matches!(world.table.policy(), FullPolicy::Inherit | FullPolicy::Deny);
    let all = known.iter().map(|key| until(*key) - last).sum::<u64>() + last;
    let found = ended(world, s, lists).any(|Ended { now, words, .. }| {
        words.chunks(MIN_SLOTS).any(|set| {
            let live = set.iter().filter(|word| layout.is_live(**word));
            let of = |key: u64| set.iter().filter(move |word| layout.is_live_of(**word, layout.tag(key)));
            let strange = live.count() != known.iter().map(|key| of(*key).count()).sum();
            let most = |key| if for_all { all } else { until(key) };
            let more = known.iter().any(|key| {
                of(*key).count() > 1 || of(*key).any(|word| target.until(*word, now) >= most(*key) + unit)
            });
            strange || more || set.iter().any(|word| layout.is_claim(*word))
        })
    });
    found
}

/// Returns whether a debt from before the migration is lost: one at the start, or charged earlier by its own thread.
/// Counts debts that no clock finds drained, of keys that nobody resets, up to a horizon ahead of the migration's
/// clock. Under Inherit the words of a full set hold the debt if the key has lost its slot.
pub(super) fn lost<A: Access>(world: &World<A>, keys: &[u64], last: u64, s: &State, lists: &Lists) -> bool {
    let target = world.target();
    let layout = &target.geometry.layout;
    let inherits = world.table.policy() == FullPolicy::Inherit;
    let reset = |key| {
        let mut calls = world.scripts.iter().flatten();
        calls.any(|op| matches!(op, Op::Reset { key: k, .. } if tag(*k) == key))
    };
    let known: Vec<u64> = known(world, keys).into_iter().filter(|key| !reset(*key)).collect();
    let found = ended(world, s, lists).any(|Ended { now, words, before }| {
        known.iter().any(|key| {
            let until = before.iter().fold(start_of(world, *key, last), |until, call| match call {
                (op, outcome) if is_charged(outcome) && keys_of(op).iter().all(|k| tag(*k) == *key) => {
                    until.max(op.now()) + T * op.cost()
                }
                (Op::Refund { of, .. }, Outcome::Refunded(back))
                    if tag(world.key_of(before[*of].0)) == *key =>
                {
                    until - back.unwrap_or(0)
                }
                _ => until,
            });
            let holds = |word: &u64| target.until(*word, now) >= until.min(target.horizon(now));
            until > last
                && words.chunks(MIN_SLOTS).any(|set| {
                    match set.iter().find(|word| layout.is_live_of(**word, layout.tag(*key))) {
                        Some(word) => !holds(word),
                        None => !inherits || !set.iter().all(holds),
                    }
                })
        })
    });
    found
}

//! Worlds of chains on the short way: swaps from words that were seen before, inserts after the swaps, and undoing,
//! next to every other call that changes a word.
//!
//! A thread may stop anywhere, also between a swap and its undo: then its charge stays, which admits less. A refused
//! chain that has ended leaves no debt ([`Check::NothingExtra`]), but for the claim by which it inserted a key.

use super::check::Check;
use super::search::holds;
use super::world::{check, Op, World, NOW, T, X, Y, Z};
use crate::limit::LimitSpec;
use crate::sync::MAX_LOST;
use crate::table::layout::policy::FullPolicy;

const SAFE: &[Check] = &[Check::OneLive, Check::ClaimsRise, Check::KeyEnvelope, Check::Progress];
/// At one instant, where a debt may move to another key.
const KEPT: &[Check] =
    &[Check::OneLive, Check::ClaimsRise, Check::KeyEnvelope, Check::Conserves, Check::Progress];
/// At one instant: every word is what was charged, but for the claim of an undone insert.
pub(super) const EXACT: &[Check] = &[
    Check::OneLive,
    Check::ClaimsRise,
    Check::KeyEnvelope,
    Check::NothingExtra,
    Check::Conserves,
    Check::Progress,
];

fn chain(keys: &'static [u64], now: u64) -> Op {
    Op::Chain { keys, now }
}

/// Two slots with a word of X and of Y, which owe this much, and a burst of three units.
fn known(policy: FullPolicy, x: u64, y: u64) -> World {
    let w = World::shared(LimitSpec::new(1, T, 3), policy, 2, &[0, 8]);
    let words = [w.live(X, NOW + x), w.live(Y, NOW + y)];
    w.start(0, words[0]).start(1, words[1])
}

#[test]
fn chains_in_opposite_orders_never_pass_together() {
    for owed in [T, 2 * T] {
        let w = known(FullPolicy::Admit, owed, owed);
        let w = w.thread(&[chain(&[X, Y], NOW)]).thread(&[chain(&[Y, X], NOW)]);
        let w = w.thread(&[check(X, NOW)]);
        holds(&std::format!("opposite orders, {owed} owed"), &w, EXACT);
    }
}

#[test]
fn a_chain_beside_an_insert_of_its_key_doubles_nothing() {
    for slots in [&[0, 8][..], &[0, 1, 8]] {
        let w = World::shared(LimitSpec::new(1, T, 1), FullPolicy::Admit, 2, slots);
        let w = w.thread(&[chain(&[X, Y], NOW)]).thread(&[check(X, NOW), check(Y, NOW)]);
        holds(&std::format!("an insert, {} slots", slots.len()), &w, SAFE);
        let w = World::shared(LimitSpec::new(1, T, 1), FullPolicy::Deny, 2, slots);
        let stranger = w.live(Z, NOW + 1);
        let w = w.start(0, stranger).thread(&[chain(&[X, Y], NOW)]).thread(&[check(X, NOW + 2)]);
        holds(&std::format!("an insert, clocks apart, {} slots", slots.len()), &w, SAFE);
    }
}

/// Y has room for one unit, for which the threads race, so X is undone: by its word, or by a refund if others have
/// changed it.
#[test]
fn an_undo_takes_back_its_own_charge_and_no_more() {
    // X has room for another unit beside that of the chain.
    for owed in [0, 1] {
        let w = known(FullPolicy::Admit, owed * (T / 2), 2 * T).thread(&[chain(&[X, Y], NOW)]);
        let w = w.thread(&[check(Y, NOW)]).thread(&[check(X, NOW)]);
        holds(&std::format!("an undo beside a check, {owed}"), &w, EXACT);
        let w = known(FullPolicy::Admit, owed * (T / 2), 2 * T).thread(&[chain(&[X, Y], NOW)]);
        let w = w.thread(&[check(Y, NOW)]).thread(&[check(X, NOW), Op::Refund { of: 0, now: NOW }]);
        holds(&std::format!("an undo beside a refund, {owed}"), &w, EXACT);
    }
    let w = known(FullPolicy::Admit, T / 2, 2 * T).thread(&[chain(&[X, Y], NOW)]);
    let w = w.thread(&[check(Y, NOW)]).thread(&[Op::Reset { key: X, now: NOW }, check(X, NOW)]);
    holds("an undo beside a reset", &w, SAFE);
}

/// X has expired for the thread that sweeps. Y has room for one unit.
#[test]
fn an_undo_beside_a_sweep_doubles_nothing() {
    let w = World::shared(LimitSpec::new(1, T, 2), FullPolicy::Admit, 2, &[0, 8]);
    let expired = w.live(X, NOW - w.table.geometry.layout.window - 5);
    let y = w.live(Y, NOW + T);
    let w = w.start(0, expired).start(1, y).thread(&[chain(&[X, Y], NOW)]).thread(&[check(Y, NOW)]);
    let w = w.thread(&[Op::Sweep { slot: 0, now: NOW + 2 }, check(X, NOW + 2)]);
    holds("an undo beside a sweep", &w, SAFE);
}

/// X has expired, so a stranger may take its slot between the look of the chain and its swap.
#[test]
fn a_chain_that_lost_its_slot_leaves_the_word_of_the_stranger() {
    let w = World::shared(LimitSpec::new(1, T, 3), FullPolicy::Deny, 2, &[0, 8]);
    let expired = w.live(X, NOW - w.table.geometry.layout.window - 5);
    let y = w.live(Y, NOW + 2 * T);
    let w = w.start(0, expired).start(1, y).thread(&[chain(&[X, Y], NOW)]);
    holds("a stranger in the slot", &w.thread(&[check(Z, NOW)]).thread(&[check(Y, NOW)]), KEPT);
}

/// The set is full, so a stranger takes a slot over while the chain holds a charge there.
#[test]
fn an_undo_beside_a_takeover_doubles_nothing() {
    for policy in [FullPolicy::Inherit, FullPolicy::Sampled, FullPolicy::Deny] {
        let checks: &[Check] = match policy {
            FullPolicy::Sampled => &[Check::Progress],
            FullPolicy::Inherit => KEPT,
            _ => EXACT,
        };
        let w = known(policy, T / 2, 2 * T).thread(&[chain(&[X, Y], NOW)]);
        let w = w.thread(&[check(Y, NOW)]).thread(&[check(Z, NOW)]);
        holds(&std::format!("a takeover, {policy:?}"), &w, checks);
        // The chain itself inserts Z, after the swap of X; X is undone if that is refused.
        let w = known(policy, T / 2, 2 * T).thread(&[chain(&[X, Z], NOW)]);
        let w = w.thread(&[check(Y, NOW)]).thread(&[check(X, NOW)]);
        holds(&std::format!("a chain that takes over, {policy:?}"), &w, checks);
    }
}

/// One slot is free. A chain that inserts X there is refused Y, and gives X back down to its claim.
#[test]
fn an_undone_insert_leaves_its_claim() {
    let w = World::shared(LimitSpec::new(1, T, 3), FullPolicy::Deny, 2, &[0, 8]);
    let z = w.live(Z, NOW + 2 * T);
    let w = w.start(1, z).thread(&[chain(&[X, Y], NOW), chain(&[Y, X], NOW)]);
    holds("an undone insert", &w.thread(&[check(Y, NOW)]).thread(&[check(X, NOW)]), EXACT);
}

/// A rival charges X again and again, so the chain loses as many swaps as it may. Y was charged by then.
#[test]
fn a_chain_that_loses_every_swap_charges_nothing() {
    let spec = LimitSpec::new(1, T, u64::from(MAX_LOST) + 1);
    let w = World::shared(spec, FullPolicy::Admit, 2, &[0, 8]);
    let words = [w.live(X, NOW), w.live(Y, NOW + T)];
    let w = w.start(0, words[0]).start(1, words[1]).thread(&[chain(&[Y, X], NOW)]);
    holds("every swap lost", &w.thread(&[check(X, NOW); MAX_LOST as usize + 1]), EXACT);
}

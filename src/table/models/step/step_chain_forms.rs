//! Worlds of chains that `step_chains` has not: prepared chains, whose links are found in another way, and chains on a
//! full set that inherits, where no insert of a chain may take over the slot of another of its links.

use super::check::Check;
use super::search::holds;
use super::step_chains::EXACT;
use super::world::{check, Op, World, NOW, T, X, Y, Z};
use crate::limit::LimitSpec;
use crate::sync::MAX_LOST;
use crate::table::layout::policy::FullPolicy;

const SAFE: &[Check] = &[Check::OneLive, Check::ClaimsRise, Check::KeyEnvelope, Check::Progress];
/// A key that never has a slot.
const W: u64 = 4;

fn chain(keys: &'static [u64]) -> Op {
    Op::Chain { keys, now: NOW }
}

/// Two slots with a word of X and of Y, which owe this much.
fn known(policy: FullPolicy, burst: u64, x: u64, y: u64) -> World {
    let w = World::shared(LimitSpec::new(1, T, burst), policy, 2, &[0, 8]);
    let words = [w.live(X, NOW + x), w.live(Y, NOW + y)];
    w.start(0, words[0]).start(1, words[1])
}

#[test]
fn prepared_chains_in_opposite_orders_never_pass_together() {
    for owed in [T, 2 * T] {
        let w = known(FullPolicy::Admit, 3, owed, owed).prepared().thread(&[chain(&[X, Y])]);
        let w = w.thread(&[chain(&[Y, X])]).thread(&[check(X, NOW)]);
        holds(&std::format!("prepared, opposite orders, {owed} owed"), &w, EXACT);
    }
}

#[test]
fn a_prepared_chain_beside_an_insert_of_its_key_doubles_nothing() {
    let w = World::shared(LimitSpec::new(1, T, 1), FullPolicy::Admit, 2, &[0, 1, 8]).prepared();
    let w = w.thread(&[chain(&[X, Y])]).thread(&[check(X, NOW), check(Y, NOW)]);
    holds("prepared, an insert", &w, SAFE);
}

/// A rival charges X again and again, so the chain may lose as many swaps as the short way has. Y is charged before
/// that.
#[test]
fn a_prepared_chain_that_loses_every_swap_charges_nothing() {
    let w = known(FullPolicy::Admit, u64::from(MAX_LOST) + 1, 0, T).prepared();
    let w = w.thread(&[chain(&[Y, X])]).thread(&[check(X, NOW); MAX_LOST as usize + 1]);
    holds("prepared, every swap lost", &w, EXACT);
}

/// X has the smallest debt of a full set, and room for an insert on top of its own charge. The chain is refused all the
/// same: X keeps its slot and its debt, and Z and W get none.
#[test]
fn a_refused_chain_that_inherits_leaves_no_debt_and_evicts_no_key_of_its_own() {
    for keys in [&[X, Z, W][..], &[Z, X], &[Z, W, X]] {
        for prepared in [false, true] {
            let w = known(FullPolicy::Inherit, 3, T, 3 * T).thread(&[chain(keys)]).thread(&[check(X, NOW)]);
            let w = if prepared { w.prepared() } else { w };
            holds(&std::format!("inherits, {keys:?}, prepared: {prepared}"), &w, EXACT);
        }
    }
}

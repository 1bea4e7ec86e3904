//! Worlds of bursts by groups: rivals that charge, insert, take over and give back between decode and swaps.

use super::check::Check;
use super::search::{breaks, holds};
use super::step_inserts::{world, EXACT};
use super::weakened::StoresCharges;
use super::world::{check, Op, World, NOW, T, X, Y, Z};
use crate::limit::LimitSpec;
use crate::table::access::{Access, Shared};
use crate::table::FullPolicy;

/// Room for one unit of X beside whatever else is asked.
fn owing<A: Access>(keys: &'static [u64]) -> World<A> {
    let w = World::of(LimitSpec::new(1, T, 2), FullPolicy::Admit, 2, &[0, 8]);
    let live = w.live(X, NOW + T);
    w.start(0, live).thread(&[Op::Groups { keys, now: NOW }]).thread(&[check(X, NOW)])
}

#[test]
fn groups_beside_single_calls_admit_no_more() {
    let groups = Op::Groups { keys: &[X, Y, X, X], now: NOW };
    let w = world(&[0, 8], FullPolicy::Admit).thread(&[groups]).thread(&[check(X, NOW)]);
    holds("groups and an insert", &w, EXACT);
    let w = World::shared(LimitSpec::new(1, T, 2), FullPolicy::Deny, 2, &[0, 8]);
    let live = [w.live(X, NOW + 5), w.live(Z, NOW + 1)];
    let w = w.start(0, live[0]).start(1, live[1]).thread(&[groups]).thread(&[check(X, NOW)]);
    holds("groups on a live slot and one that expires", &w.thread(&[check(Y, NOW + 2)]), EXACT);
    // Room for one unit: whoever stores where it should swap admits two.
    holds("a group where there is room for one", &owing::<Shared>(&[X, X]), EXACT);
    holds("groups where there is room for one", &owing::<Shared>(&[X, Z, X, Z]), EXACT);
}

#[test]
fn groups_beside_a_refund_admit_no_more() {
    let w = World::shared(LimitSpec::new(1, T, 2), FullPolicy::Admit, 2, &[0, 8]);
    let live = w.live(X, NOW + 1);
    let w = w.start(0, live).thread(&[Op::Groups { keys: &[X, X], now: NOW + 1 }]);
    let w = w.thread(&[check(X, NOW + 1), Op::Refund { of: 0, now: NOW + 1 }]);
    holds(
        "a group and a refund",
        &w,
        &[Check::OneLive, Check::ClaimsRise, Check::NothingExtra, Check::Progress],
    );
}

#[test]
fn groups_under_takeovers_never_double_a_key() {
    let shared = &[Check::OneLive, Check::ClaimsRise, Check::SetEnvelope, Check::Progress];
    for policy in [FullPolicy::Inherit, FullPolicy::Deny] {
        let w = World::shared(LimitSpec::new(1, T, 2), policy, 2, &[0, 8]);
        let olds = [w.live(Z, NOW + 10), w.live(Y, NOW + 21)];
        // The first lane inserts where a later one was decoded from; a rival does the same meanwhile.
        let w = w.start(0, olds[0]).start(1, olds[1]);
        let w = w.thread(&[Op::Groups { keys: &[X, Z, Y, X], now: NOW }]).thread(&[check(4, NOW)]);
        holds(&std::format!("groups under takeovers, {policy:?}"), &w, shared);
    }
}

#[test]
fn step_must_fail_groups_by_stores() {
    let over = "a key was admitted more than its bucket allows";
    breaks("a group by stores", &owing::<StoresCharges>(&[X, Z]), EXACT, over);
}

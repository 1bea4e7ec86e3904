//! Worlds of bursts in groups, with rivals that charge, insert, take over and refund between decode and swaps.

use super::check::Check;
use super::search::{answered_singly, breaks, holds};
use super::step_inserts::{world, EXACT};
use super::weakened::StoresCharges;
use super::world::{check, Op, World, NOW, T, X, Y, Z};
use crate::limit::LimitSpec;
use crate::sync::access::{Access, Shared};
use crate::table::layout::policy::FullPolicy;

/// X has room for one unit, whatever else is asked.
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
    // Room for one unit: storing instead of swapping would admit two.
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
        // The first lane inserts where a later lane was decoded; a rival does the same meanwhile.
        let w = w.start(0, olds[0]).start(1, olds[1]);
        let w = w.thread(&[Op::Groups { keys: &[X, Z, Y, X], now: NOW }]).thread(&[check(4, NOW)]);
        holds(&std::format!("groups under takeovers, {policy:?}"), &w, shared);
    }
}

/// Keys whose requests at `NOW` are among the one in 16 that may take over a slot of a Sampled table.
const S: u64 = sampled(4);
const S2: u64 = sampled(S + 1);

/// Returns the first such key from this one on; its hash is the key.
const fn sampled(mut key: u64) -> u64 {
    while (key ^ NOW).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60 != 0 {
        key += 1;
    }
    key
}

/// A full set in which Y owes `y` ticks and Z a little more; one thread has the burst, the others are rivals.
fn full(policy: FullPolicy, y: u64, burst: Op, rivals: &[&[Op]]) -> World {
    let w = World::shared(LimitSpec::new(1, T, 2), policy, 2, &[0, 8]);
    let olds = [w.live(Y, NOW + y), w.live(Z, NOW + y + 40)];
    let w = w.start(0, olds[0]).start(1, olds[1]).thread(&[burst]);
    answered_singly(rivals.iter().fold(w, |w, rival| w.thread(rival)))
}

/// An insert by an earlier lane takes over the slot of a later one that was denied when the group was decoded.
///
/// Sampled does not promise one LIVE word a key.
#[test]
fn groups_that_forgive_a_denied_lane_its_debt_decide_as_single_calls() {
    let checks = &[Check::AsCalls, Check::Forgives, Check::Progress];
    let rivals: [(&str, &[&[Op]]); 6] = [
        ("nobody", &[]),
        ("its own key", &[&[check(Y, NOW)]]),
        ("a claim of the same", &[&[check(S, NOW)]]),
        ("another takeover", &[&[check(S2, NOW)]]),
        ("charges", &[&[check(S, NOW), check(Y, NOW)]]),
        ("a reset", &[&[Op::Reset { key: Y, now: NOW }]]),
    ];
    for (name, rivals) in rivals {
        for keys in [&[S, Y][..], &[S, Y, Z, S]] {
            let w = full(FullPolicy::Sampled, T + 10, Op::Counted { keys, now: NOW }, rivals);
            holds(&std::format!("Sampled, a denied lane, {keys:?} beside {name}"), &w, checks);
        }
    }
    let burst = Op::Counted { keys: &[S, Y], now: NOW };
    let w = full(FullPolicy::Sampled, T + 10, burst, &[&[check(S2, NOW)], &[check(Y, NOW)]]);
    holds("Sampled, a denied lane beside another takeover and its own key", &w, checks);
}

/// The same where the debt is inherited. A key that owes too much to pass also owes too much to be inherited, so a
/// rival refunds its own charge between decode and insert.
#[test]
fn groups_that_inherit_from_a_denied_lane_decide_as_single_calls() {
    let checks = &[
        Check::OneLive,
        Check::ClaimsRise,
        Check::SetEnvelope,
        Check::Conserves,
        Check::AsCalls,
        Check::Progress,
    ];
    let back: &[Op] = &[check(Y, NOW), Op::Refund { of: 0, now: NOW }];
    let rivals: [(&str, &[&[Op]]); 3] = [
        ("a refund", &[back]),
        ("another takeover", &[&[check(4, NOW)]]),
        ("a refund and another takeover", &[back, &[check(4, NOW)]]),
    ];
    for (name, rivals) in rivals {
        for keys in [&[X, Y][..], &[X, Y, Z, X]] {
            if keys.len() > 2 && rivals.len() > 1 {
                continue;
            }
            let w = full(FullPolicy::Inherit, 10, Op::Groups { keys, now: NOW }, rivals);
            holds(&std::format!("Inherit, a denied lane, {keys:?} beside {name}"), &w, checks);
        }
    }
}

#[test]
fn step_must_fail_groups_by_stores() {
    let over = "a key was admitted more than its bucket allows";
    breaks("a group by stores", &owing::<StoresCharges>(&[X, Z]), EXACT, over);
}

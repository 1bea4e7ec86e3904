//! An exhaustive explorer of the insert protocol of the keyed table.
//!
//! Every interleaving of two to four threads over two or three slots is visited, one atomic access per
//! step, and every state is checked:
//!
//! * at most one LIVE word per key, under every policy;
//! * no key is admitted more than an exact token bucket gives between the smallest and the largest clock
//!   reading used, `B + (last - first) / T` units. A refund gives back what it took off the word; where
//!   clocks differ, a refunded charge counts as never made;
//! * no word carries more debt than was charged, so a refused or contended call charged nothing;
//! * under Inherit with equal clocks the words of the set account for every unit admitted, and with
//!   clocks apart the set admits at most one bucket per slot;
//! * from every state every unfinished thread ends when it runs alone, and a fresh call of a present or an
//!   absent key ends alone: at once (Contended only where unexpired claims fill the set), and with a
//!   tracked admission once everything has expired. A thread that dies is a thread that is not run again,
//!   so this covers the death of any threads at any step. A fresh call that is refused writes nothing.
//!
//! Two rules are tighter than claim and commit alone, because the explorer found the need. A charge that
//! commits a claim can give back only `tat - v`: a whole refund lets the payload fall below the version,
//! the claim word recurs in the same instant, and a stale committer doubles the key
//! (`weakened_refunds_are_caught`). Under Inherit an EMPTY word with an odd payload is a debt and no free
//! slot: it is taken over like a LIVE word, or else refused calls would raise it.
//!
//! What is not modelled: weak memory (the models in `loom_*.rs` do that; here every access is sequentially
//! consistent), wrap of the payload, tag collisions, and clocks that differ by one unit or more: there a
//! clock ahead may reuse a slot that a clock behind still counts, and each such reuse can forgive one
//! burst. The bounds on passes are modelled by threads that may give up before any pass but the first.
//!
//! Each rule that is weakened on purpose must be caught: `weakened_*`.
//!
//! States seen: 53 619 for x x y y with clocks apart, 374 569 for refunds, sweeps and four threads; the
//! default tests visit 4 million in all, the random worlds 2.8 million of them. The long ones
//! (`--ignored`) visit 2 322 907 (four threads, clocks apart, giving up), 1 448 958 (takeovers) and
//! 245 590 226 (2 000 random worlds, 73 of them cut at 2 million).

#[path = "explorer/model.rs"]
mod model;
#[path = "explorer/random.rs"]
mod random;
#[path = "explorer/search.rs"]
mod search;
#[path = "explorer/words.rs"]
mod words;

use model::{Op, Policy, Rules, Word, World};
use search::{Check, Search};

const X: u8 = 0;
const Y: u8 = 1;
const Z: u8 = 2;
const NOW: i32 = 256;
const UNIT: i32 = 64;
const EXACT: &[Check] = &[Check::OneLive, Check::KeyEnvelope, Check::NothingExtra, Check::Progress];
const FORGIVING: &[Check] = &[Check::OneLive, Check::Progress];
const SHARED: &[Check] = &[Check::OneLive, Check::SetEnvelope, Check::Progress];

fn charge(key: u8, now: i32) -> Op {
    Op::Charge { key, now, units: 1 }
}

fn world(slots: usize, policy: Policy, scripts: &[&[Op]]) -> World {
    World {
        slots,
        order: [[0, 1, 2]; 4],
        unit: UNIT,
        limit: UNIT,
        lifetime: 2,
        horizon: 4 * UNIT,
        policy,
        rules: Rules::Shipped,
        may_give_up: false,
        scripts: scripts.iter().map(|s| s.to_vec()).collect(),
        initial: [Word(0); 3],
    }
}

fn holds(name: &str, world: &World, checks: &[Check]) {
    let found = Search::new(world.clone(), checks).run(usize::MAX);
    println!("{name}: {} states", found.states);
    if let Some(what) = found.violation {
        panic!("{name}: {what}");
    }
}

/// A weakened rule is caught, and the shipped rules hold in the same world.
fn caught(rules: Rules, world: &World, checks: &[Check]) {
    holds("shipped rules", world, checks);
    let weakened = World { rules, ..world.clone() };
    let found = Search::new(weakened, checks).run(usize::MAX);
    let what =
        found.violation.unwrap_or_else(|| panic!("{rules:?} is not caught in {} states", found.states));
    println!("{rules:?}: caught after {} states: {}", found.states, what.lines().next().unwrap());
}

/// Slot 0 expires between the clocks of the threads, all of one key.
fn clocks_apart(slots: usize, readings: &[i32]) -> World {
    let scripts: Vec<Vec<Op>> = readings.iter().map(|d| vec![charge(X, NOW + d)]).collect();
    let scripts: Vec<&[Op]> = scripts.iter().map(|s| &s[..]).collect();
    let mut w = world(slots, Policy::Admit, &scripts);
    w.initial[0] = Word::live(Y, NOW + 1);
    w
}

#[test]
fn one_instant_admits_one_unit() {
    let mut checks = EXACT.to_vec();
    checks.push(Check::SomeoneAdmitted);
    for (slots, threads) in [(2, 2), (3, 2), (2, 3), (3, 3), (2, 4), (3, 4)] {
        let call = [charge(X, NOW)];
        let scripts = vec![&call[..]; threads];
        let mut w = world(slots, Policy::Admit, &scripts);
        holds(&format!("{threads} threads, {slots} slots"), &w, &checks);
        w.may_give_up = true;
        holds(&format!("{threads} threads, {slots} slots, giving up"), &w, EXACT);
    }
}

#[test]
fn clocks_apart_still_give_a_key_one_slot() {
    for slots in 2..=3 {
        for readings in [&[0, 2][..], &[0, 2, 3], &[0, 0, 2], &[0, 2, 2], &[0, 0, 2, 3]] {
            if slots == 3 && readings.len() == 4 {
                continue; // long_four_threads_clocks_apart
            }
            holds(&format!("clocks {readings:?}, {slots} slots"), &clocks_apart(slots, readings), EXACT);
        }
    }
    let mut w = clocks_apart(2, &[0, 2, 3]);
    w.may_give_up = true;
    w.scripts[0].push(charge(X, NOW + 2));
    holds("a second call, giving up", &w, EXACT);
    w.limit = 2 * UNIT;
    w.scripts[1].push(charge(X, NOW + 3));
    holds("burst of two", &w, EXACT);
    w.initial[0] = Word(0);
    holds("every window", &w, &[Check::OneLive, Check::Windows]);
}

#[test]
fn strangers_and_full_slots_do_not_double_a_key() {
    let (a, b) = (charge(X, NOW), charge(X, NOW + 2));
    let (c, d) = (charge(Y, NOW), charge(Y, NOW + 2));
    for policy in [Policy::Admit, Policy::Deny] {
        let mut w = world(2, policy, &[&[a], &[b], &[d]]);
        w.initial[0] = Word::live(Z, NOW + 1);
        holds("x x y", &w, EXACT);
        w.scripts.push(vec![c]);
        holds("x x y y", &w, EXACT);
        w.initial[1] = Word::live(3, NOW + 20);
        holds("x x y y, one slot taken", &w, EXACT);
        w.initial = [Word::claim(X, NOW + 2), Word::claim(Y, NOW), Word(0)];
        holds("x x y y, claims left by the dead", &w, EXACT);
        w.may_give_up = true;
        holds("x x y y, claims left by the dead, giving up", &w, EXACT);
    }
}

#[test]
fn two_lines_hold_a_key_once_whatever_its_home() {
    let mut w = world(
        2,
        Policy::Admit,
        &[&[charge(X, NOW)], &[charge(X, NOW + 2)], &[charge(Y, NOW)], &[charge(Y, NOW + 2)]],
    );
    w.order[usize::from(Y)] = [1, 0, 2];
    holds("empty lines", &w, EXACT);
    w.initial = [Word::live(Z, NOW + 1), Word::live(3, NOW + 2), Word(0)];
    holds("both lines expire between the clocks", &w, EXACT);
}

#[test]
fn takeovers_never_double_a_key() {
    for policy in [Policy::Inherit, Policy::Sampled] {
        let checks = if policy == Policy::Inherit { SHARED } else { FORGIVING };
        let (x, y, z) = (charge(X, NOW), charge(Y, NOW), charge(Z, NOW + 1));
        let mut w = world(2, policy, &[&[x], &[x], &[y]]);
        w.limit = 2 * UNIT;
        w.initial = [Word::live(Z, NOW + 10), Word::live(3, NOW + 21), Word(0)];
        holds(&format!("{policy:?}, x x y"), &w, checks);
        w.scripts = vec![vec![x, y], vec![charge(X, NOW + 1)], vec![z]];
        w.may_give_up = true;
        holds(&format!("{policy:?}, x y x z, giving up"), &w, checks);
        w.may_give_up = false;
        w.scripts.push(vec![charge(Y, NOW + 1)]);
        w.order[usize::from(Y)] = [1, 0, 2];
        holds(&format!("{policy:?}, four threads, two lines"), &w, checks);
    }
}

/// Three keys that compete for two lines.
fn evicting_each_other(policy: Policy) -> World {
    let (x, y, z) = (charge(X, NOW), charge(Y, NOW), charge(Z, NOW + 1));
    let mut w = world(2, policy, &[&[x, y], &[y, x], &[z], &[charge(X, NOW + 1)]]);
    w.limit = 2 * UNIT;
    w.order[usize::from(Y)] = [1, 0, 2];
    w.initial = [Word::live(Z, NOW + 10), Word::live(3, NOW + 21), Word(0)];
    w
}

/// Sampled lets the payload fall at a commit, so a claim word can recur within one clock reading and a
/// stale committer can give a key a second word: one more burst forgiven, under the policy that forgives.
#[test]
fn sampled_can_double_a_key_that_others_evict() {
    let mut w = evicting_each_other(Policy::Sampled);
    let found = Search::new(w.clone(), &[Check::OneLive]).run(usize::MAX);
    println!("Sampled: {}", found.violation.as_deref().unwrap_or("holds").lines().next().unwrap());
    assert!(found.violation.is_some(), "the limit of Sampled that the documents state is gone");
    w.scripts.pop();
    w.rules = Rules::SampledRises;
    holds("Sampled without a fall", &w, FORGIVING);
}

#[test]
fn inherit_accounts_for_every_unit_of_the_set() {
    let checks = &[Check::OneLive, Check::SetConserves, Check::SetEnvelope, Check::Progress];
    let (x, y, z) = (charge(X, NOW), charge(Y, NOW), charge(Z, NOW));
    let mut w = world(2, Policy::Inherit, &[&[x, y], &[y, x], &[z]]);
    w.limit = 2 * UNIT;
    holds("empty set", &w, checks);
    w.may_give_up = true;
    w.initial = [Word::live(Z, NOW + 11), Word::empty(NOW + 7), Word(0)];
    holds("a debt left by a takeover given up", &w, checks);
    w.initial = [Word::claim(X, NOW + 11), Word::claim(Y, NOW + 3), Word(0)];
    holds("takeovers left by the dead", &w, checks);
    w.scripts[2].push(Op::Refund { now: NOW });
    holds("with a refund", &w, checks);
}

#[test]
fn refunds_and_sweeps_during_an_insert_double_nothing() {
    let (x, refund) = (charge(X, NOW), Op::Refund { now: NOW });
    let sweep = |slot, d| Op::Sweep { slot, now: NOW + d };
    let mut w = world(2, Policy::Admit, &[&[x, refund, x], &[x], &[x, refund]]);
    holds("refunds", &w, EXACT);
    w.scripts =
        vec![vec![x, refund, x], vec![charge(X, NOW + 2)], vec![sweep(0, 0), sweep(0, 3), sweep(1, 3)]];
    w.initial[0] = Word::live(Y, NOW + 1);
    holds("refund and sweeps, clocks apart", &w, EXACT);
    w.scripts[2] = vec![charge(Y, NOW + 2), Op::Refund { now: NOW + 2 }, sweep(0, 2)];
    holds("refunds of two keys and a sweep", &w, EXACT);
    w.scripts.push(vec![charge(X, NOW + 3)]);
    holds("the same with a fourth thread", &w, EXACT);
}

/// Two keys refunded in one instant: the world in which a whole refund lets a claim word recur.
fn refunded_neighbours() -> World {
    let (x, y, refund) = (charge(X, NOW), charge(Y, NOW), Op::Refund { now: NOW });
    let mut w = world(2, Policy::Admit, &[&[y], &[y, x, refund], &[y]]);
    w.lifetime = 1;
    w.limit = 2 * UNIT;
    w.initial = [Word::claim(X, NOW + 2), Word(0), Word(0)];
    w.scripts.push(vec![Op::Sweep { slot: 0, now: NOW + 2 }]);
    w
}

#[test]
fn weakened_naive_insert_is_caught() {
    caught(Rules::Naive, &clocks_apart(2, &[0, 2]), EXACT);
}

#[test]
fn weakened_commit_without_a_second_scan_is_caught() {
    caught(Rules::OwnWithoutRescan, &clocks_apart(2, &[0, 2]), EXACT);
    caught(Rules::ForeignAfterOneScan, &clocks_apart(2, &[0, 0, 2]), EXACT);
}

#[test]
fn weakened_versions_are_caught() {
    caught(Rules::Unversioned, &clocks_apart(2, &[0, 0, 2]), EXACT);
    caught(Rules::KnownBySlot, &clocks_apart(2, &[0, 0, 2]), EXACT);
}

#[test]
fn weakened_kills_are_caught() {
    caught(Rules::NoKill, &clocks_apart(2, &[0, 0, 2]), EXACT);
    caught(Rules::IgnoreFailedKill, &clocks_apart(2, &[0, 0, 2]), EXACT);
    caught(Rules::OwnFirst, &clocks_apart(2, &[0, 0, 2]), EXACT);
}

#[test]
fn weakened_refunds_are_caught() {
    caught(Rules::RefundWhole, &refunded_neighbours(), EXACT);
    let (early, late) = (charge(X, NOW), charge(X, NOW + UNIT));
    let refund = Op::Refund { now: NOW + UNIT };
    let mut w = world(2, Policy::Admit, &[&[early, refund, late], &[late, late]]);
    w.limit = 2 * UNIT;
    caught(Rules::RefundAll, &w, &[Check::OneLive, Check::Windows]);
}

#[test]
fn weakened_takeovers_are_caught() {
    let checks = &[Check::OneLive, Check::SetConserves, Check::Progress];
    let (x, y) = (charge(X, NOW), charge(Y, NOW));
    let mut w = world(2, Policy::Inherit, &[&[x, y], &[y, x]]);
    w.limit = 2 * UNIT;
    w.may_give_up = true;
    w.initial = [Word::live(Z, NOW + 11), Word::live(3, NOW + 7), Word(0)];
    caught(Rules::ParityLost, &w, checks);
    w.limit = UNIT;
    w.initial = [Word::empty(NOW + 3), Word::live(Z, NOW + 10), Word(0)];
    caught(Rules::DebtReusable, &w, checks);
}

/// Takeovers of unexpired claims take each other over without end: payloads, and so states, keep growing.
#[test]
fn weakened_takeover_of_claims_never_settles() {
    let mut w = world(2, Policy::Inherit, &[&[charge(X, NOW)], &[charge(Y, NOW)], &[charge(2, NOW)]]);
    w.limit = 2 * UNIT;
    w.initial = [Word::live(3, NOW + 10), Word::claim(Z, NOW + 21), Word(0)];
    let shipped = Search::new(w.clone(), SHARED).run(usize::MAX);
    assert!(shipped.violation.is_none(), "{:?}", shipped.violation);
    w.rules = Rules::EvictClaims;
    let weakened = Search::new(w, &[Check::OneLive]).run(40 * shipped.states);
    println!("shipped {} states, weakened {} and more", shipped.states, weakened.states);
    assert!(weakened.states >= 40 * shipped.states);
}

#[test]
fn random_worlds_hold() {
    random::explore(1, 60, 400_000);
}

/// 245 590 226 states in all, at most 2 million in one world: about three minutes, under 1 GB.
#[test]
#[ignore = "minutes"]
fn long_random_worlds_hold() {
    random::explore(2, 2_000, 2_000_000);
}

#[test]
#[ignore = "minutes"]
fn long_four_threads_clocks_apart() {
    holds("four threads, three slots", &clocks_apart(3, &[0, 0, 2, 3]), EXACT);
    let mut w = clocks_apart(2, &[0, 0, 2, 3]);
    w.may_give_up = true;
    w.scripts[0].push(charge(X, NOW + 3));
    w.scripts[2].push(Op::Refund { now: NOW + 3 });
    holds("a second call and a refund, giving up", &w, EXACT);
}

#[test]
#[ignore = "minutes"]
fn long_four_threads_refunds_and_sweeps() {
    let refund = Op::Refund { now: NOW };
    let mut w = refunded_neighbours();
    w.scripts[0].push(refund);
    w.scripts[2] = vec![charge(Y, NOW), charge(X, NOW), refund];
    holds("refunds of two keys", &w, EXACT);
    w.may_give_up = true;
    w.scripts[2] = vec![charge(X, NOW), refund];
    holds("refunds of two keys, giving up", &w, EXACT);
}

#[test]
#[ignore = "minutes"]
fn long_takeovers_of_three_keys() {
    let mut w = evicting_each_other(Policy::Inherit);
    holds("Inherit, four threads, two lines", &w, SHARED);
    w.may_give_up = true;
    w.scripts.pop();
    holds("Inherit, three threads, two lines, giving up", &w, SHARED);
    let mut w = evicting_each_other(Policy::Sampled);
    w.rules = Rules::SampledRises;
    holds("Sampled without a fall, four threads, two lines", &w, FORGIVING);
}

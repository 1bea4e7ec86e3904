//! Worlds of inserts: one instant, different clocks, strangers, full sets, takeovers, dead threads.

use super::check::Check;
use super::search::holds;
use super::world::{check, Op, World, NOW, T, X, Y, Y2, Z};
use crate::limit::LimitSpec;
use crate::sync::access::{Access, Shared};
use crate::table::layout::policy::FullPolicy;

pub(super) const EXACT: &[Check] =
    &[Check::OneLive, Check::ClaimsRise, Check::KeyEnvelope, Check::NothingExtra, Check::Progress];
const SHARED: &[Check] = &[Check::OneLive, Check::ClaimsRise, Check::SetEnvelope, Check::Progress];

pub(super) fn world(slots: &[usize], policy: FullPolicy) -> World {
    World::shared(LimitSpec::new(1, T, 1), policy, 2, slots)
}

/// One thread for each call of a key, with slot 0 expiring between their clocks.
pub(super) fn clocks_apart(slots: &[usize], readings: &[u64]) -> World {
    let w = world(slots, FullPolicy::Admit);
    let stranger = w.live(Y, NOW + 1);
    readings.iter().fold(w.start(0, stranger), |w, d| w.thread(&[check(X, NOW + d)]))
}

/// One thread for each call of a key. Those with a clock ahead first sweep slot 0, whose word has long expired. So they
/// find another slot free than the others: the case that a plain insert gets wrong.
pub(super) fn swept<A: Access>(readings: &[u64]) -> World<A> {
    let w = World::of(LimitSpec::new(1, T, 1), FullPolicy::Admit, 2, &[0, 8]);
    let expired = w.live(Y, NOW - w.table.geometry.layout.window - 5);
    readings.iter().fold(w.start(0, expired), |w, d| {
        let calls = [Op::Sweep { slot: 0, now: NOW + d }, check(X, NOW + d)];
        w.thread(if *d == 0 { &calls[1..] } else { &calls })
    })
}

#[test]
fn a_sweep_between_two_looks_gives_a_key_no_second_slot() {
    for readings in [&[0, 10][..], &[0, 0, 10]] {
        holds(&std::format!("a sweep, clocks {readings:?}"), &swept::<Shared>(readings), EXACT);
    }
}

#[test]
fn one_instant_admits_one_unit() {
    let checks = [EXACT, &[Check::SomeoneAdmitted]].concat();
    for (slots, threads) in [(&[0, 8][..], 2), (&[0, 1, 8], 2), (&[0, 8], 3), (&[0, 1, 8], 3)] {
        let w = (0..threads).fold(world(slots, FullPolicy::Admit), |w, _| w.thread(&[check(X, NOW)]));
        holds(&std::format!("{threads} threads, {} slots", slots.len()), &w, &checks);
    }
}

/// Three threads with one check each, and two with three, of a new key whose burst is less than they ask for. There is
/// no bound of preemptions; loom has one for these (`loom_every`).
#[test]
fn three_by_one_and_two_by_three_checks_of_a_new_key_stay_within_the_burst() {
    let checks = [EXACT, &[Check::SomeoneAdmitted, Check::Conserves]].concat();
    for (burst, threads) in [(2, &[1, 1, 1][..]), (4, &[3, 3])] {
        for slots in [&[0, 8][..], &[0, 1, 8]] {
            let w = World::shared(LimitSpec::new(1, T, burst), FullPolicy::Admit, 2, slots);
            let calls = [check(X, NOW); 3];
            let w = threads.iter().fold(w, |w, n| w.thread(&calls[..*n]));
            holds(&std::format!("{threads:?} checks of a new key, {} slots", slots.len()), &w, &checks);
        }
    }
}

#[test]
fn clocks_apart_still_give_a_key_one_slot() {
    for slots in [&[0, 8][..], &[0, 1, 8]] {
        for readings in [&[0, 2][..], &[0, 2, 3], &[0, 0, 2], &[0, 2, 2], &[0, T + 3]] {
            if slots.len() == 3 && readings.len() > 2 {
                continue;
            }
            holds(
                &std::format!("clocks {readings:?}, {} slots", slots.len()),
                &clocks_apart(slots, readings),
                EXACT,
            );
        }
    }
}

#[test]
fn strangers_and_full_sets_do_not_double_a_key() {
    for policy in [FullPolicy::Admit, FullPolicy::Deny] {
        let w = world(&[0, 8], policy);
        let z = w.live(Z, NOW + 1);
        let w =
            w.thread(&[check(X, NOW)]).thread(&[check(X, NOW + 2)]).thread(&[check(Y, NOW + 2)]).start(0, z);
        holds("x x y", &w, EXACT);
        let w = world(&[0, 8], policy);
        let dead = [w.claim(X, NOW + 2), w.claim(Y, NOW)];
        let w = w.start(0, dead[0]).start(1, dead[1]);
        let w = w.thread(&[check(X, NOW)]).thread(&[check(X, NOW + 2)]).thread(&[check(Y, NOW)]);
        holds("x x y, claims left by the dead", &w, EXACT);
    }
}

#[test]
fn two_lines_hold_a_key_once_whatever_its_home() {
    let w = world(&[0, 8], FullPolicy::Admit);
    let w = w.thread(&[check(Y, NOW)]).thread(&[check(Y2, NOW)]).thread(&[check(Y2, NOW)]);
    holds("both homes of a tag", &w, EXACT);
    let w = world(&[0, 8], FullPolicy::Admit);
    let olds = [w.live(Z, NOW + 1), w.live(4, NOW + 2)];
    let w = w.start(0, olds[0]).start(1, olds[1]);
    let w = w.thread(&[check(Y, NOW)]).thread(&[check(Y, NOW + 2)]).thread(&[check(Y2, NOW + 2)]);
    holds("both homes of a tag, lines that expire between the clocks", &w, EXACT);
}

/// A scan takes time. A thread that meets a claim at its end may have read another slot before a rival took that.
///
/// ```text
///   slot 0   stranger ............ claim of the rival, who scans and is alone: LIVE
///   slot 8   stranger ........................................ claim of one who had chosen it before
///   a scan              reads slot 0                                                    reads slot 8
/// ```
///
/// The rivals have the two homes of one tag, so each takes its own of two slots that expired together. The clock of the
/// thread that scans is behind: it finds no free slot, so `settle` scans for it.
#[test]
fn a_claim_that_is_met_once_is_not_committed() {
    let w = world(&[0, 8], FullPolicy::Deny);
    let olds = [w.live(Z, NOW + 1), w.live(4, NOW + 1)];
    let w = w.start(0, olds[0]).start(1, olds[1]);
    let w = w.thread(&[check(Y, NOW)]).thread(&[check(Y, NOW + 2)]).thread(&[check(Y2, NOW + 2)]);
    holds("both homes of a tag, lines that expire at once", &w, EXACT);
}

#[test]
fn takeovers_never_double_a_key() {
    let spec = LimitSpec::new(1, T, 2);
    let w = World::shared(spec, FullPolicy::Inherit, 2, &[0, 8]);
    let olds = [w.live(Z, NOW + 10), w.live(4, NOW + 21)];
    let w = w.start(0, olds[0]).start(1, olds[1]);
    let w = w.thread(&[check(X, NOW)]).thread(&[check(X, NOW)]).thread(&[check(Y2, NOW)]);
    holds("Inherit, x x y", &w, SHARED);
    let w = World::shared(spec, FullPolicy::Inherit, 2, &[0, 8]);
    let olds = [w.live(Z, NOW + 10), w.live(4, NOW + 21)];
    let w = w.start(0, olds[0]).start(1, olds[1]);
    let w =
        w.thread(&[check(X, NOW), check(Y2, NOW)]).thread(&[check(X, NOW + 1)]).thread(&[check(Z, NOW + 1)]);
    holds("Inherit, x y x z", &w, SHARED);
}

#[test]
fn inherit_accounts_for_every_unit_of_the_set() {
    let checks = &[Check::OneLive, Check::Conserves, Check::SetEnvelope, Check::Progress];
    let spec = LimitSpec::new(1, T, 2);
    let empty = || World::shared(spec, FullPolicy::Inherit, 2, &[0, 8]);
    let calls = |w: World| {
        w.thread(&[check(X, NOW), check(Y, NOW)]).thread(&[check(Y, NOW)]).thread(&[check(Z, NOW)])
    };
    let w = empty().thread(&[check(X, NOW), check(Y, NOW)]).thread(&[check(Y, NOW), check(Z, NOW)]);
    holds("Inherit, an empty set", &w, checks);
    let w = empty();
    let (live, debt) = (w.live(Z, NOW + 11), NOW + 7);
    holds("Inherit, a debt left by a takeover given up", &calls(w.start(0, live).start(1, debt)), checks);
    let w = empty();
    let dead = [w.claim(X, NOW + 11), w.claim(Y, NOW + 3)];
    holds("Inherit, takeovers left by the dead", &calls(w.start(0, dead[0]).start(1, dead[1])), checks);
    let w = empty();
    let dead = [w.claim(X, NOW + 11), w.claim(X, NOW + 7)];
    holds("Inherit, two takeovers for one key", &calls(w.start(0, dead[0]).start(1, dead[1])), checks);
}

#[test]
fn nothing_changes_where_payloads_wrap() {
    // A clock at which the payload of a debt has wrapped and the clock itself has not.
    let end = (1 << 43) - 2;
    let w = world(&[0, 8], FullPolicy::Admit).surrounded(end);
    let stranger = w.live(Y, end + 1);
    let w = w.start(0, stranger);
    let w =
        w.thread(&[check(X, end)]).thread(&[check(X, end + 2)]).thread(&[Op::Refund { of: 1, now: end + 3 }]);
    let mut w = w;
    w.scripts[2] = std::vec![check(Y, end + 3), Op::Refund { of: 0, now: end + 3 }];
    holds("a wrap", &w, EXACT);
}

//! Each rule of the insert that is weakened on purpose is caught.

use super::check::Check;
use super::model::{Op, Policy, Rules, Word, World};
use super::search::Search;
use super::{caught_by, charge, clocks_apart, world, NOW, SHARED, UNIT, X, Y, Z};

/// What a weakened rule must break in the end: not the versions alone.
const DOUBLED: &[Check] = &[Check::OneLive, Check::KeyEnvelope, Check::NothingExtra, Check::Progress];
const TWO_LIVE: &str = "two LIVE words of one key";

/// Two keys refunded in one instant: the world in which a whole refund lets a claim word recur.
pub fn refunded_neighbours() -> World {
    let (x, y, refund) = (charge(X, NOW), charge(Y, NOW), Op::Refund { of: 1, now: NOW });
    let mut w = world(2, Policy::Admit, &[&[y], &[y, x, refund], &[y]]);
    w.lifetime = 1;
    w.limit = 2 * UNIT;
    w.initial = [Word::claim(X, NOW + 2), Word(0), Word(0)];
    w.scripts.push(vec![Op::Sweep { slot: 0, now: NOW + 2 }]);
    w
}

#[test]
fn weakened_naive_insert_is_caught() {
    caught_by(Rules::Naive, &clocks_apart(2, &[0, 2]), DOUBLED, TWO_LIVE);
}

#[test]
fn weakened_commit_without_a_second_scan_is_caught() {
    caught_by(Rules::OwnWithoutRescan, &clocks_apart(2, &[0, 2]), DOUBLED, TWO_LIVE);
    caught_by(Rules::ForeignAfterOneScan, &clocks_apart(2, &[0, 0, 2]), DOUBLED, TWO_LIVE);
}

#[test]
fn weakened_versions_are_caught() {
    caught_by(Rules::Unversioned, &clocks_apart(2, &[0, 0, 2]), DOUBLED, TWO_LIVE);
    caught_by(Rules::KnownBySlot, &clocks_apart(2, &[0, 0, 2]), DOUBLED, TWO_LIVE);
}

#[test]
fn weakened_kills_are_caught() {
    caught_by(Rules::NoKill, &clocks_apart(2, &[0, 0, 2]), DOUBLED, TWO_LIVE);
    caught_by(Rules::IgnoreFailedKill, &clocks_apart(2, &[0, 0, 2]), DOUBLED, TWO_LIVE);
    caught_by(Rules::OwnFirst, &clocks_apart(2, &[0, 0, 2]), DOUBLED, TWO_LIVE);
}

#[test]
fn weakened_refunds_are_caught() {
    caught_by(Rules::RefundWhole, &refunded_neighbours(), DOUBLED, TWO_LIVE);
    let (early, late) = (charge(X, NOW), charge(X, NOW + UNIT));
    let refund = Op::Refund { of: 0, now: NOW + UNIT };
    let mut w = world(2, Policy::Admit, &[&[early, refund, late], &[late, late]]);
    w.limit = 2 * UNIT;
    caught_by(
        Rules::RefundAll,
        &w,
        &[Check::OneLive, Check::Windows],
        "a window admitted more than a bucket allows",
    );
}

#[test]
fn weakened_takeovers_are_caught() {
    let checks = &[Check::OneLive, Check::SetConserves, Check::Progress];
    let (x, y) = (charge(X, NOW), charge(Y, NOW));
    let mut w = world(2, Policy::Inherit, &[&[x, y], &[y, x]]);
    w.limit = 2 * UNIT;
    w.may_give_up = true;
    w.initial = [Word::live(Z, NOW + 11), Word::live(3, NOW + 7), Word(0)];
    caught_by(Rules::ParityLost, &w, checks, "the set lost debt");
    w.limit = UNIT;
    w.initial = [Word::empty(NOW + 3), Word::live(Z, NOW + 10), Word(0)];
    caught_by(Rules::DebtReusable, &w, checks, "a fresh call of key 0 at 256 alone answers 2 and writes");
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

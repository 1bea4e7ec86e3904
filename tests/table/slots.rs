//! What the word of a slot means, seen through the calls of a table alone: each test holds a rule that the unit tests
//! of `table::word` and of the insert hold, too, by what a caller would notice if it were broken.
#![cfg(target_has_atomic = "64")]

use crate::common::{hash_of, memory, words};
use std::sync::atomic::Ordering::Relaxed;
use tatcell::{Decision, FullPolicy, LimitSpec, Line, Request, Table, TableLimit, TableOptions, Tracking};

const T: u64 = 1 << 12;
const B: u64 = 8;
const SPEC: LimitSpec = LimitSpec::new(1, T, B);
const NOW: u64 = 1 << 40;

fn options(policy: FullPolicy) -> TableOptions {
    TableOptions::new(SPEC).caller_hash().resolution(0).policy(policy)
}

fn ask(table: &Table<'_>, limit: &TableLimit, now: u64, hash: u64, cost: u64) -> Decision {
    table.check_ex(&Request { limit, now, cost, room: 0 }, hash, None).unwrap()
}

/// A key of the first line, told by its tag.
fn key(tag: u32) -> u64 {
    hash_of(0, 2, tag)
}

/// A table of one set whose sixteen slots owe these units at `NOW`, by keys 1 to 16.
fn full<'m>(lines: &'m [Line], policy: FullPolicy, units: impl Fn(u32) -> u64) -> (Table<'m>, TableLimit) {
    let table = Table::init(lines, &options(policy)).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    for tag in 1..=16 {
        assert!(ask(&table, &limit, NOW, key(tag), units(tag)).passes());
    }
    assert_eq!(table.stats(NOW).live, 16);
    (table, limit)
}

#[test]
fn who_takes_an_expired_slot_inherits_nothing_whatever_its_payload() {
    for odd in 0..4 {
        let lines = memory(4);
        let (table, limit) = full(&lines, FullPolicy::Inherit, |tag| 1 + u64::from(tag) % 4);
        for tag in 17..=32 {
            let d = ask(&table, &limit, NOW + 5 * T + odd, key(tag), 1);
            assert_eq!((d.tracking, d.remaining), (Tracking::Tracked, B - 1), "{odd} ticks later, key {tag}");
        }
    }
}

#[test]
fn a_takeover_takes_the_smallest_debt_wherever_it_is() {
    for least in 1..=16 {
        let lines = memory(4);
        let (table, limit) = full(&lines, FullPolicy::Inherit, |tag| if tag == least { 2 } else { 7 });
        let d = ask(&table, &limit, NOW, key(99), 1);
        assert_eq!((d.tracking, d.passes()), (Tracking::Inherited, true));
        // Two units and its own, and what makes the claim one above the debt.
        assert!((3 * T..=3 * T + 2).contains(&d.reset_after), "least {least}: {d:?}");
    }
}

#[test]
fn a_full_set_denies_until_its_first_slot_drains() {
    for least in [1, 9, 16] {
        let lines = memory(4);
        let (table, limit) = full(&lines, FullPolicy::Deny, |tag| if tag == least { 3 } else { 5 });
        let d = ask(&table, &limit, NOW, key(99), 1);
        assert!(!d.passes() && d.tracking == Tracking::Untracked);
        assert_eq!(d.retry_after, 3 * T);
        assert!(!ask(&table, &limit, NOW + d.retry_after - 1, key(99), 1).passes());
        assert!(ask(&table, &limit, NOW + d.retry_after, key(99), 1).passes());
    }
}

#[test]
fn a_debt_is_live_for_a_clock_that_is_behind_by_all_of_the_skew() {
    let lines = memory(4);
    let table = Table::init(&lines, &options(FullPolicy::Deny).skew(64 * T)).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    let skew = limit.info().skew;
    assert!(ask(&table, &limit, NOW, key(1), B).passes());
    // The longest lead there is: a full debt by the latest clock, looked at by the earliest.
    assert!(!ask(&table, &limit, NOW - skew, key(1), 1).passes());
    assert_eq!(ask(&table, &limit, NOW - skew, key(1), 1).retry_after, skew + T);
}

#[test]
fn no_slot_of_a_full_set_is_taken_by_a_clock_that_is_behind_by_all_of_the_skew() {
    for policy in [FullPolicy::Deny, FullPolicy::Inherit, FullPolicy::Admit] {
        let lines = memory(4);
        let table = Table::init(&lines, &options(policy).skew(64 * T)).unwrap();
        let limit = table.limit(&SPEC).unwrap();
        let skew = limit.info().skew;
        (1..=16).for_each(|tag| assert!(ask(&table, &limit, NOW, key(tag), B).passes()));
        // Each word lies at the very end of the window.
        let d = ask(&table, &limit, NOW - skew, key(99), 1);
        assert_eq!(d.passes(), policy == FullPolicy::Admit, "{policy:?}");
        assert_ne!(d.tracking, Tracking::Tracked, "{policy:?}");
        (1..=16).for_each(|tag| assert_eq!(ask(&table, &limit, NOW, key(tag), 1).retry_after, T, "{tag}"));
    }
}

#[test]
fn a_swept_slot_charges_nothing_to_a_clock_that_is_behind() {
    let lines = memory(4);
    let table = Table::init(&lines, &options(FullPolicy::Deny).skew(64 * T)).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    (1..=16).for_each(|tag| assert!(ask(&table, &limit, NOW, key(tag), 1).passes()));
    let later = NOW + (1 << 36);
    table.sweep(later, 0, table.slots());
    assert_eq!(table.stats(later).live, 0);
    for (tag, behind) in (17..=32).zip((0..).step_by(4 * T as usize)) {
        let d = ask(&table, &limit, later - behind, key(tag), 1);
        assert!(d.passes() && d.tracking == Tracking::Tracked, "{behind} behind: {d:?}");
        assert_eq!((d.remaining, d.reset_after), (B - 1, T), "{behind} behind");
    }
}

#[test]
fn a_reset_finds_a_key_whose_home_line_was_full() {
    let lines = memory(4);
    let (table, limit) = full(&lines, FullPolicy::Deny, |_| 4);
    for tag in 1..=16 {
        assert!(table.reset_key(NOW, key(tag)));
        assert_eq!(table.peek(&limit, NOW, key(tag), 0).unwrap().remaining, B, "key {tag}");
    }
}

#[test]
fn a_refund_finds_a_key_whose_home_line_was_full() {
    let lines = memory(4);
    let (table, limit) = full(&lines, FullPolicy::Deny, |_| 4);
    for tag in 1..=16 {
        let d = ask(&table, &limit, NOW, key(tag), 1);
        assert!(d.passes());
        assert_eq!(table.refund(&limit, NOW, key(tag), &d.permit), Ok(Some(T)), "key {tag}");
    }
}

#[test]
fn a_table_that_evicts_gives_nothing_back() {
    let lines = memory(4);
    let (table, limit) = full(&lines, FullPolicy::Sampled, |_| 4);
    for tag in 1..=16 {
        let d = ask(&table, &limit, NOW, key(tag), 2);
        assert!(d.passes());
        assert_eq!(table.refund(&limit, NOW, key(tag), &d.permit), Ok(Some(0)));
        assert_eq!(table.peek(&limit, NOW, key(tag), 0).unwrap().remaining, 2, "key {tag}");
    }
}

#[test]
fn what_commits_a_claim_owes_what_it_says_and_not_less_than_the_claim() {
    for ahead in [0, 100, 3 * T] {
        let lines = memory(4);
        let table = Table::init(&lines, &options(FullPolicy::Deny)).unwrap();
        let limit = table.limit(&SPEC).unwrap();
        // Left by one who died, with a clock ahead.
        words(&lines)[16].store(1 << 63 | 9 << 43 | (NOW + ahead), Relaxed);
        let d = ask(&table, &limit, NOW, key(9), 2);
        let now = table.peek(&limit, NOW, key(9), 0).unwrap();
        assert!(d.passes() && d.reset_after >= ahead, "{d:?}");
        assert_eq!((d.reset_after, d.remaining), (now.reset_after, now.remaining), "{ahead} ahead");
        assert_eq!(now.reset_after, ahead.max(2 * T));
    }
}

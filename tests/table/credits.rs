//! Units given back without a permit, compared with integers.

use crate::common::memory;
use tatcell::{FullPolicy, LimitSpec, Line, Request, Table, TableError, TableLimit, TableOptions, Verdict};

const T: u64 = 1 << 12;
const BURST: u64 = 9;

fn made(lines: &[Line], policy: FullPolicy) -> (Table<'_>, TableLimit) {
    let spec = LimitSpec::new(1, T, BURST);
    let options = TableOptions::new(spec).policy(policy).caller_hash().resolution(0);
    let table = Table::init(lines, &options).unwrap();
    let limit = table.limit(&spec).unwrap();
    (table, limit)
}

/// What a key with this much debt owes at least after a credit.
fn least(table: &Table<'_>, lead: u64) -> u64 {
    lead.min(table.info().claim_lifetime + 18)
}

#[test]
fn a_credit_takes_off_what_it_says_and_never_more_than_is_owed() {
    for policy in [FullPolicy::Admit, FullPolicy::Deny] {
        let lines = memory(18);
        let (table, limit) = made(&lines, policy);
        let (mut tats, mut now, mut random) = ([0u64; 5], 1u64 << 30, 20_261_126u64);
        let (mut whole, mut part, mut none) = (0, 0, 0);
        for call in 0..60_000 {
            let mut any = |below: u64| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % below
            };
            now += any(T);
            let (key, units) = (any(5), any(BURST + 3));
            let tat = &mut tats[key as usize];
            let lead = tat.saturating_sub(now);
            // Keys in different sets, so that none is in the way of another.
            let hash = key << 61 | (key + 1);
            if any(2) == 0 {
                let decision =
                    table.check_ex(&Request { limit: &limit, now, cost: units, room: 0 }, hash, None);
                let passes = lead + units * T <= BURST * T;
                assert_eq!(decision.unwrap().passes(), passes, "call {call}");
                if passes && units > 0 {
                    // An insert lies above its claim, and a claim above what the slot held.
                    *tat = now + lead + units * T;
                }
                continue;
            }
            let next = lead.saturating_sub(units * T).max(least(&table, lead));
            let after = table.credit(&limit, now, hash, units).unwrap();
            assert_eq!(
                after.units,
                lead.min(units * T).div_ceil(T),
                "call {call}: {units} units at a lead of {lead}"
            );
            assert_eq!(after.reset_after, next, "call {call}");
            assert_eq!(after.remaining, (BURST * T - next) / T, "call {call}");
            match lead - next {
                0 => none += 1,
                back if back == units * T => whole += 1,
                _ => part += 1,
            }
            *tat = now + next;
        }
        assert!(whole > 1_000 && part > 1_000 && none > 1_000, "{whole} {part} {none}");
        assert_eq!(table.stats(now + 20 * T).live, 0);
    }
}

#[test]
fn a_key_that_owes_nothing_stays_absent() {
    let lines = memory(4);
    let (table, limit) = made(&lines, FullPolicy::Deny);
    let after = table.credit(&limit, 1_000_000, 7, 5).unwrap();
    assert_eq!((after.verdict, after.units, after.remaining), (Verdict::Conforming, 0, BURST));
    assert_eq!(table.stats(1_000_000).live, 0);
    // Nor does it come back after its debt has drained, by any number.
    assert!(table.check_hash(&limit, 1_000_000, 7, 3).unwrap().passes());
    assert_eq!(table.credit(&limit, 1_000_000 + 3 * T, 7, u64::MAX).unwrap().units, 0);
    assert_eq!(table.stats(1_000_000 + 3 * T).live, 0);
}

#[test]
fn where_slots_are_taken_over_nothing_is_given_back() {
    for policy in [FullPolicy::Inherit, FullPolicy::Sampled] {
        let lines = memory(4);
        let (table, limit) = made(&lines, policy);
        assert!(table.check_hash(&limit, 1_000_000, 7, 5).unwrap().passes());
        let after = table.credit(&limit, 1_000_000, 7, 2).unwrap();
        assert_eq!((after.units, after.remaining), (0, BURST - 5), "{policy:?}");
    }
}

#[test]
fn a_limit_of_another_table_or_algorithm_is_refused() {
    let (lines, others) = (memory(4), memory(4));
    let (table, limit) = made(&lines, FullPolicy::Admit);
    let spec = LimitSpec::fixed_window(10, 1_000);
    let windows = Table::init(&others, &TableOptions::new(spec).caller_hash()).unwrap();
    assert_eq!(windows.credit(&limit, 1, 1, 1), Err(TableError::ForeignLimit));
    let window = windows.limit(&spec).unwrap();
    assert_eq!(table.credit(&window, 1, 1, 1), Err(TableError::ForeignLimit));
    assert_eq!(windows.credit(&window, 1, 1, 1), Err(TableError::BadAlgorithm));
}

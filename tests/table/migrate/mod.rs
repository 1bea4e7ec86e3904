//! Migration: the debt of every key in the new table, how much is dropped, permits.

mod drive;
mod image;
mod in_place;
mod units;

use crate::common::{cases, memory, Rng};
use tatcell::{Access, LimitSpec, Migrated, Request, Table, TableLimit, TableOptions};

const T: u64 = 1 << 20;
const SPEC: LimitSpec = LimitSpec::new(1, T, 8);
const NOW: u64 = 1 << 40;
/// Slot lines of the old tables; the new ones have a multiple of it.
const LINES: usize = 480;

fn options() -> TableOptions {
    TableOptions::new(SPEC).caller_hash()
}

fn lead<M: Access>(table: &Table<'_, M>, limit: &TableLimit, now: u64, hash: u64) -> u64 {
    table.peek(limit, now, hash, 0).unwrap().reset_after
}

/// Keys of random debts that have a slot of their own, for a load in tenths.
fn fill(table: &Table<'_>, tenths: usize, rng: &mut Rng) -> Vec<u64> {
    let limit = table.limit(&SPEC).unwrap();
    let wanted = table.slots() * tenths / 10;
    let hashes: Vec<u64> = (0..wanted).map(|_| rng.next()).collect();
    for hash in &hashes {
        let request = Request { limit: &limit, now: NOW + rng.below(T), cost: rng.within(2, 8), room: 0 };
        let _ = table.check_ex(&request, *hash, None).unwrap();
    }
    hashes.into_iter().filter(|hash| lead(table, &limit, NOW + T, *hash) != 0).collect()
}

/// Checks each key; returns how many owe less than before.
fn compare<M: Access>(
    old: &Table<'_>,
    new: &Table<'_, M>,
    specs: [&LimitSpec; 2],
    now: u64,
    keys: &[u64],
) -> u64 {
    let (before, after) = (old.limit(specs[0]).unwrap(), new.limit(specs[1]).unwrap());
    let lost = keys.iter().filter(|k| lead(new, &after, now, **k) < lead(old, &before, now, **k));
    lost.count() as u64
}

fn copies(report: &Migrated) -> u64 {
    report.copied + report.merged + report.dropped
}

#[test]
fn every_key_owes_what_it_owed_unless_that_is_reported() {
    for (num, den) in [(1, 1), (2, 1), (3, 1), (3, 2), (11, 10), (2, 3), (1, 2), (1, 15)] {
        for tenths in [1, 5, 9] {
            cases(2, |rng| {
                let old_lines = memory(LINES + 2);
                let old = Table::init(&old_lines, &options()).unwrap();
                let keys = fill(&old, tenths, rng);
                let new_lines = memory(LINES * num / den + 2);
                let now = NOW + T + rng.below(T);
                let seen = old.foresee_migration(new_lines.len(), &options(), now).unwrap();
                let (new, report) = old.migrate(&new_lines, &options(), now).unwrap();
                assert_eq!(seen, report, "foreseen and done");
                let lost = compare(&old, &new, [&SPEC, &SPEC], now, &keys);
                assert!(lost <= report.dropped, "{lost} keys owe less, {report:?}");
                assert_eq!(new.stats(now).live, report.copied);
                assert_eq!((report.clamped, report.opened), (0, 0));
                if num % den == 0 {
                    let all = old.stats(now).live * num as u64;
                    assert_eq!(report, Migrated { copied: all, ..Migrated::default() }, "times {num}");
                }
            });
        }
    }
}

#[test]
fn what_is_dropped_are_the_smallest_debts_of_a_full_set() {
    cases(20, |rng| {
        let (old_lines, new_lines) = (memory(18), memory(10));
        let old = Table::init(&old_lines, &options()).unwrap();
        let keys = fill(&old, 9, rng);
        let (new, report) = old.migrate(&new_lines, &options(), NOW + T).unwrap();
        assert!(report.dropped > 0);
        let limit = new.limit(&SPEC).unwrap();
        let set = |hash: u64| (((hash >> 32) * 8) >> 32) as u32 / 2;
        for key in keys.iter().filter(|k| lead(&new, &limit, NOW + T, **k) == 0) {
            let owed = lead(&old, &limit, NOW + T, *key);
            let mut at = set(*key) as usize * 16;
            let end = at + 16;
            while at < end {
                let slot = new.next_live(NOW + T, at).expect("a full set");
                assert!(slot.number as usize == at && slot.reset_after >= owed, "{slot:?} for {owed}");
                at += 1;
            }
        }
    });
}

#[test]
fn share_of_dropped_copies_is_what_was_foreseen() {
    let mut rng = Rng(15);
    let old_lines = memory(12_000 + 2);
    let old = Table::init(&old_lines, &options()).unwrap();
    let keys = fill(&old, 5, &mut rng);
    println!("load {:.3}, {} keys", old.stats(NOW + T).load_ppm as f64 / 1e6, keys.len());
    // 1.1 with and without sets that begin where old ones do.
    for (lines, share) in [
        (18_000, 4.9),
        (13_202, 9.5),
        (13_200, 8.9),
        (8_000, 9.9),
        (24_000, 0.0),
        (36_000, 0.0),
        (6_000, 9.9),
    ] {
        let report = old.foresee_migration(lines + 2, &options(), NOW + T).unwrap();
        let dropped = 100.0 * report.dropped as f64 / copies(&report) as f64;
        println!(
            "x {:.2}: {dropped:.2} % of {} copies dropped, expected {share} %",
            lines as f64 / 12_000.0,
            copies(&report)
        );
        assert!((dropped - share).abs() <= 0.3, "{lines}: {report:?}");
    }
}

#[test]
fn narrower_tags_merge_and_lose_nothing() {
    for (from, to) in [(20, 12), (24, 23), (24, 12)] {
        cases(4, |rng| {
            let (old_lines, new_lines) = (memory(LINES + 2), memory(LINES + 2));
            let old = Table::init(&old_lines, &options().tag_bits(from)).unwrap();
            let mut keys = fill(&old, 5, rng);
            // Tags whose low bits are 0, and tags that are 0: both are 1 in the new table.
            let limit = old.limit(&SPEC).unwrap();
            for low in [0, 1 << to, 2 << to, 1] {
                let hash = rng.next() & !((1 << from) - 1) | low & ((1 << from) - 1);
                assert!(old.check_hash(&limit, NOW + T, hash, rng.within(1, 8)).unwrap().passes());
                keys.push(hash);
            }
            let (new, report) = old.migrate(&new_lines, &options().tag_bits(to), NOW + T).unwrap();
            assert_eq!(compare(&old, &new, [&SPEC, &SPEC], NOW + T, &keys), 0);
            assert!(report.is_whole() && report.copied + report.merged == old.stats(NOW + T).live);
            assert!(report.merged > 0 || to == 23, "{report:?}");
        });
    }
}

#[test]
fn another_resolution_rounds_up_and_a_shorter_horizon_cuts() {
    // The emission interval is no whole number of q-units at any resolution.
    let spec = |burst| LimitSpec::new(3, 1_000_003, burst);
    let full = |burst| burst * 1_000_003 / 3;
    let unit = |shift: i32| 1 << (-shift).max(0);
    for (a, b) in [(0, 0), (0, 3), (3, 0), (-4, 0), (0, -4), (-4, -2), (-2, -4), (-3, 2), (2, -3)] {
        for burst in [24, 8] {
            cases(5, |rng| {
                let (old_lines, new_lines) = (memory(34), memory(66));
                let with =
                    |burst, shift: i32| TableOptions::new(spec(burst)).caller_hash().resolution(shift as i8);
                let old = Table::init(&old_lines, &with(24, a)).unwrap();
                let limit = old.limit(&spec(24)).unwrap();
                let keys: Vec<u64> = (0..40).map(|_| rng.next()).collect();
                for key in &keys {
                    let _ = old.check_hash(&limit, NOW + rng.below(1000), *key, rng.within(1, 24)).unwrap();
                }
                let now = NOW + 1000 + rng.below(300_000);
                let (new, report) = old.migrate(&new_lines, &with(burst, b), now).unwrap();
                let after = new.limit(&spec(burst)).unwrap();
                let (mut cut, mut less) = (0, 0);
                for key in &keys {
                    let (before, after) = (lead(&old, &limit, now, *key), lead(&new, &after, now, *key));
                    assert!(after >= before.min(full(burst) - unit(b)), "{before} -> {after}, {a} -> {b}");
                    let most = (before + unit(a) + unit(b)).min(full(burst) + 100);
                    assert!(after <= most, "{before} -> {after}, {a} -> {b}");
                    less += (after < before) as u64;
                    cut += (before > full(burst) + 100) as u64;
                }
                assert!(less * 2 <= report.clamped && cut * 2 <= report.clamped, "{report:?}, {cut}, {less}");
                assert_eq!((report.dropped, report.is_whole()), (0, report.clamped == 0));
                assert!(if burst == 8 { cut > 0 } else { a != b || less == 0 });
            });
        }
    }
}

#[test]
fn permits_of_the_old_table_are_worth_nothing_in_the_new_one() {
    let (first, second, mut third) = (memory(4), memory(4), memory(4));
    let ask = |table: &Table<'_>, cost| {
        let limit = table.limit(&SPEC).unwrap();
        table.check_ex(&Request { limit: &limit, now: NOW, cost, room: 0 }, 7 << 40 | 7, None).unwrap().permit
    };
    let old = Table::init(&first, &options()).unwrap();
    let limit = old.limit(&SPEC).unwrap();
    let _ = ask(&old, 2);
    let permit = ask(&old, 2);
    let (new, _) = old.migrate(&second, &options(), NOW).unwrap();
    assert_eq!(new.limit(&SPEC).unwrap(), limit, "the same geometry: nothing else tells them apart");
    assert_eq!(new.refund(&limit, NOW, 7 << 40 | 7, &permit), Ok(Some(0)));
    assert_eq!(lead(&new, &limit, NOW, 7 << 40 | 7), 4 * T);
    let later = ask(&new, 2);
    assert_eq!(new.refund(&limit, NOW, 7 << 40 | 7, &later), Ok(Some(2 * T)), "its own");
    let (last, _) = new.migrate_exclusive(&mut third, &options(), NOW).unwrap();
    for permit in [&permit, &later] {
        assert_eq!(last.refund(&limit, NOW, 7 << 40 | 7, permit), Ok(Some(0)));
    }
    assert_eq!(lead(&last, &limit, NOW, 7 << 40 | 7), 4 * T);
}

//! The keyed table against one exact bucket per key, and its calls one by one.

use crate::common::oracle::{seen, Oracle};
use crate::common::{cases, hash_of, memory, Rng};
use std::collections::HashMap;
use tatcell::{
    Burst, Counters, ExclusiveTable, FullPolicy, LimitError, LimitSpec, NextBurst, Outcome, Permit, Request,
    Table, TableError, TableOptions, Tracking, MAX_BURST, SLOTS_PER_LINE,
};

const SPEC: LimitSpec = LimitSpec::new(1, 1 << 12, 8);
const SEED: [u8; 16] = *b"a seed for tests";

fn options() -> TableOptions {
    TableOptions::new(SPEC).seed(SEED)
}

fn refused(lines: usize, options: &TableOptions) -> TableError {
    let memory = memory(lines);
    Table::init(&memory, options).expect_err("must be refused")
}

#[test]
fn every_option_error_is_reported_and_memory_stays_untouched() {
    let limit = |e| TableError::Limit(e);
    for (options, error) in [
        (options().tag_bits(11), TableError::BadTagBits),
        (options().tag_bits(25), TableError::BadTagBits),
        (TableOptions::new(SPEC), TableError::MissingSeed),
        (options().claim_lifetime(1 << 11 | 1), TableError::BadLifetime),
        (options().skew(1 << 60), TableError::SpanTooShort),
        (options().skew(u64::MAX), TableError::SpanTooShort),
        (options().slowest(LimitSpec::new(1, 1 << 45, 8)), TableError::SpanTooShort),
        (options().slowest(LimitSpec::new(1, 1 << 20, 8).max_debt(1 << 30)), TableError::SpanTooShort),
        (TableOptions::new(LimitSpec::new(0, 1, 1)).seed(SEED), limit(LimitError::ZeroRate)),
        (options().slowest(LimitSpec::new(1, 0, 1)), limit(LimitError::ZeroPeriod)),
        (options().slowest(LimitSpec::new(1, 1, 0)), limit(LimitError::ZeroBurst)),
        (options().slowest(SPEC.soft(9)), limit(LimitError::BadSoft)),
        (options().slowest(SPEC.heal()), limit(LimitError::BadHeal)),
        (options().resolution(64), limit(LimitError::BadResolution)),
        (options().resolution(-10), limit(LimitError::NotRepresentable)),
    ] {
        assert_eq!(refused(4, &options), error, "{options:?}");
    }
    for lines in 0..4 {
        assert_eq!(refused(lines, &options()), TableError::TooSmall, "{lines} lines");
    }
    let lines = memory(4);
    let _ = Table::init(&lines, &options().tag_bits(11));
    assert!(crate::common::words(&lines).iter().all(|w| w.load(std::sync::atomic::Ordering::Relaxed) == 0));
    assert!(Table::init(&lines, &options()).is_ok());
}

#[test]
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn more_sets_than_a_line_number_holds_are_refused() {
    // 2^32 + 2 lines of address space, never touched: the size is looked at first.
    let bytes = ((1usize << 32) + 3) * 64;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh anonymous mapping; checked below.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        eprintln!("skipped: no 256 GiB of address space");
        return;
    }
    // SAFETY: readable zero memory of that size, and the call below only reads its length.
    let lines = unsafe { std::slice::from_raw_parts(at.cast::<tatcell::Line>(), bytes / 64) };
    assert_eq!(Table::init(lines, &options()).err(), Some(TableError::TooLarge));
    // SAFETY: as mapped above; no reference is left.
    unsafe { libc::munmap(at, bytes) };
}

#[test]
fn every_call_error_is_reported() {
    let lines = memory(6);
    let table = Table::init(&lines, &options()).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    // A longer horizon, a faster rate, an option that tables have not.
    assert_eq!(table.limit(&LimitSpec::new(1, 1 << 12, 9)), Err(TableError::LimitTooFast));
    assert_eq!(table.limit(&SPEC.max_delay(1)), Err(TableError::LimitTooFast));
    assert_eq!(table.limit(&LimitSpec::new(1, 1 << 60, 1)), Err(TableError::LimitTooFast));
    assert_eq!(table.limit(&LimitSpec::new(1 << 10, 1 << 12, 8)), Err(TableError::LimitTooFast), "faster");
    assert_eq!(
        table.limit(&LimitSpec::new(3, 1_000, 8)),
        Err(TableError::LimitTooFast),
        "less precise than 2^-10"
    );
    assert_eq!(table.limit(&SPEC.heal()), Err(TableError::Limit(LimitError::BadHeal)));
    assert_eq!(table.limit(&LimitSpec::new(0, 1, 1)), Err(TableError::Limit(LimitError::ZeroRate)));
    // A limit of another table: another resolution, a longer horizon.
    let more = memory(4);
    let other = Table::init(&more, &options().resolution(3)).unwrap();
    let finer = other.limit(&SPEC).unwrap();
    let more = memory(4);
    let other = Table::init(&more, &options().slowest(LimitSpec::new(1, 1 << 12, 9))).unwrap();
    let longer = other.limit(&LimitSpec::new(1, 1 << 12, 9)).unwrap();
    for foreign in [finer, longer] {
        let wrong = Some(TableError::ForeignLimit);
        let request = Request { limit: &foreign, now: 0, cost: 1, room: 0 };
        assert_eq!(table.check(&foreign, 0, b"k", 1).err(), wrong);
        assert_eq!(table.check_hash(&foreign, 0, 1, 1).err(), wrong);
        assert_eq!(table.check_ex(&request, 1, None).err(), wrong);
        assert_eq!(table.peek(&foreign, 0, 1, 1).err(), wrong);
        assert_eq!(table.charge(&foreign, 0, 1, 1, None).err(), wrong);
        assert_eq!(table.reserve(&foreign, 0, 1, 1, None).err(), wrong);
        assert_eq!(table.refund(&foreign, 0, 1, &Permit::NONE).err(), wrong);
        let burst = Burst::new(&foreign, 0, &[1]);
        assert_eq!(burst.check(&table, None, NextBurst::NONE).err(), wrong);
        assert_eq!(burst.check_ex(&table, None, NextBurst::NONE, |_, _| ()).err(), wrong);
    }
    let hashes = [1u64; MAX_BURST + 1];
    let costs = Some(&[0; 64][..]);
    let burst = Burst { costs, ..Burst::new(&limit, 0, &hashes[..64]) };
    assert_eq!(burst.check(&table, None, NextBurst::NONE), Ok(u64::MAX));
    assert_eq!(Burst::new(&limit, 0, &[]).check(&table, None, NextBurst::NONE), Ok(0));
    let mut short = vec![0; table.image_words() - 1];
    assert_eq!(table.save(0, &mut short), Err(TableError::BufferTooSmall));
    let lines = memory(4);
    let table = Table::init(&lines, &TableOptions::new(SPEC).caller_hash()).unwrap();
    assert_eq!(table.hash(b"k"), Err(TableError::BadHashKind));
    assert_eq!(table.check(&limit, 0, b"k", 1), Err(TableError::BadHashKind));
    assert_eq!(table.stats(0).live, 0, "refused calls touch nothing");
}

#[test]
fn every_error_has_its_own_words() {
    use TableError::*;
    let all = [
        TooSmall,
        TooLarge,
        SpanTooShort,
        BadTagBits,
        BadLifetime,
        MissingSeed,
        BadHashKind,
        ForeignLimit,
        TooManyKeys,
        NotReady,
        BadVersion,
        BadGeometry,
        WrongSeed,
        BadMode,
        BufferTooSmall,
        Limit(LimitError::ZeroRate),
        Limit(LimitError::ZeroBurst),
    ];
    let texts: std::collections::BTreeSet<String> = all.iter().map(|e| e.to_string()).collect();
    assert_eq!(texts.len(), all.len());
}

/// Keys with distinct (set, tag) pairs, so that each has its own slot.
fn distinct_hashes(table: &Table<'_>, n: usize) -> Vec<u64> {
    let lines = (table.slots() / SLOTS_PER_LINE) as u64;
    let mut taken = std::collections::HashSet::new();
    (0u64..)
        .map(|i| table.hash(&i.to_le_bytes()).unwrap())
        .filter(|h| taken.insert((((h >> 32) * lines) >> 33, (h & 0xf_ffff).max(1))))
        .take(n)
        .collect()
}

#[test]
fn table_equals_one_exact_bucket_per_key_and_the_exclusive_form_equals_it() {
    // 1000 keys on 8192 slots: load stays below 1/8, no set fills.
    let lines = memory(1 + 8_192 / 8);
    let table = Table::init(&lines, &options()).unwrap();
    let mut owned = memory(1 + 8_192 / 8);
    let owned = ExclusiveTable::init_exclusive(&mut owned, &options()).unwrap();
    let limits = [SPEC, LimitSpec::new(1, 1 << 13, 3), LimitSpec::new(3, 1 << 14, 5)];
    let limit = limits.map(|spec| table.limit(&spec).unwrap());
    let keys = distinct_hashes(&table, 1_000);
    let mut oracles: HashMap<u64, Oracle> = HashMap::new();
    let (mut rng, mut now) = (Rng(42), 1u64 << 20);
    let (mut counters, mut passed) = (Counters::default(), 0);
    for _ in 0..100_000 {
        now += rng.below(64);
        let class = rng.below(keys.len() as u64) as usize;
        let (key, class) = (keys[class], class % 3);
        let cost = rng.pick(&[0, 1, 1, 1, 2, 4, 9, u32::MAX]);
        let oracle = oracles.entry(key).or_insert_with(|| {
            let (t_q, s) = limit[class].emission_interval();
            Oracle::fixed(t_q, s, limit[class].burst())
        });
        let looked = oracle.peek(now as u128, cost);
        assert_eq!(seen(&table.peek(&limit[class], now, key, cost.into()).unwrap()), looked);
        let expected = oracle.check(now as u128, cost, 0);
        let request = Request { limit: &limit[class], now, cost: cost.into(), room: 0 };
        let d = table.check_ex(&request, key, Some(&mut counters)).unwrap();
        let mut answer = seen(&d);
        // A request that inserts its key gets a permit for all but the claim lifetime (2 q-units, made even).
        assert!(expected.stored - answer.stored <= 3);
        answer.stored = expected.stored;
        assert_eq!(answer, expected, "{cost} at {now}");
        assert_eq!(d.tracking, Tracking::Tracked);
        let same = owned.check_ex(&request, key, None).unwrap();
        assert_eq!((seen(&same), same.permit.tat), (seen(&d), d.permit.tat));
        passed += d.passes() as u64;
    }
    assert_eq!((counters.conforming, counters.contended, counters.untracked), (passed, 0, 0));
    assert_eq!(counters.conforming + counters.non_conforming + counters.never, 100_000);
    assert!(counters.inserted >= 1_000 && table.stats(now).live <= 1_000);
    assert_eq!(table.stats(now), owned.stats(now));
}

#[test]
fn keys_of_different_rates_share_a_table_and_one_key_shares_its_debt() {
    let lines = memory(6);
    let slow = LimitSpec::new(1, 1 << 16, 2);
    let table = Table::init(&lines, &options().slowest(slow)).unwrap();
    let (fast, slow) = (table.limit(&SPEC).unwrap(), table.limit(&slow).unwrap());
    assert_eq!(table.check(&fast, 0, b"a", 8), Ok(Outcome::Conforming));
    assert_eq!(table.check(&slow, 0, b"b", 2), Ok(Outcome::Conforming));
    assert_eq!(table.check(&slow, 0, b"b", 1), Ok(Outcome::NonConforming { retry_after: 1 << 16 }));
    assert_eq!(table.check(&fast, 0, b"a", 1), Ok(Outcome::NonConforming { retry_after: 1 << 12 }));
    // The same key under another limit: 8 * 2^12 ticks of debt are half a slow unit.
    assert_eq!(table.check(&slow, 0, b"a", 1), Ok(Outcome::Conforming));
    assert_eq!(table.check(&slow, 0, b"a", 1), Ok(Outcome::NonConforming { retry_after: 1 << 15 }));
}

#[test]
fn unlimited_keys_pass_and_use_no_slot() {
    let lines = memory(4);
    let table = Table::init(&lines, &options()).unwrap();
    let (all, limit) = (table.unlimited(), table.limit(&SPEC).unwrap());
    for cost in [0, 1, u32::MAX] {
        assert_eq!(table.check(&all, 5, b"friend", cost.into()), Ok(Outcome::Conforming));
        assert!(table.charge(&all, 5, table.hash(b"friend").unwrap(), cost.into(), None).unwrap().passes());
    }
    let words = crate::common::words(&lines);
    assert!(words[16..].iter().all(|w| w.load(std::sync::atomic::Ordering::Relaxed) == 0));
    // Not even where the key has a debt under another limit.
    assert!(table.check(&limit, 5, b"friend", 8).unwrap().passes());
    assert!(table.check(&all, 5, b"friend", 1_000).unwrap().passes());
    let d = table.peek(&all, 5, table.hash(b"friend").unwrap(), 1).unwrap();
    assert_eq!((d.remaining, d.burst), (u64::MAX, u64::MAX));
    assert!(!table.check(&limit, 5, b"friend", 1).unwrap().passes());
}

#[test]
fn reset_key_makes_the_key_full_at_once_and_touches_no_other() {
    let lines = memory(4);
    let table = Table::init(&lines, &options()).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    let (a, b) = (hash_of(0, 2, 7), hash_of(0, 2, 8));
    for hash in [a, b] {
        assert!(table.check_hash(&limit, 100, hash, 8).unwrap().passes());
    }
    assert!(table.reset_key(100, a));
    assert!(table.reset_key(100, hash_of(0, 2, 9)), "an absent key is full already");
    let d = table.peek(&limit, 100, a, 0).unwrap();
    assert_eq!((d.reset_after, d.remaining), (0, 8));
    assert_eq!(table.peek(&limit, 100, b, 0).unwrap().remaining, 0);
    assert_eq!(table.stats(100).live, 1);
}

#[test]
fn a_refund_never_inserts() {
    let lines = memory(4);
    let table = Table::init(&lines, &options()).unwrap();
    let (limit, hash) = (table.limit(&SPEC).unwrap(), table.hash(b"k").unwrap());
    let permit = Permit { tat: 9, stored: 9, generation: 1, ..Permit::NONE };
    assert_eq!(table.refund(&limit, 0, hash, &permit), Ok(Some(0)));
    assert_eq!(table.stats(0).live, 0);
}

#[test]
fn permit_of_an_insert_leaves_out_at_most_the_claim_lifetime() {
    for (lifetime, most) in [(1, 3), (100, 101), (2_048, 2_049)] {
        let lines = memory(4);
        let table = Table::init(&lines, &options().claim_lifetime(lifetime)).unwrap();
        let limit = table.limit(&SPEC).unwrap();
        for now in [0u64, 1, 1 << 30, (1 << 30) + 7] {
            let hash = hash_of(0, 2, now as u32 % 1_000 + 1);
            let d = table.check_ex(&Request { limit: &limit, now, cost: 2, room: 0 }, hash, None).unwrap();
            // Not the claim, which lies at least a tick ahead: a refund must not bring the word down to it.
            assert!((1..=most).contains(&((1 << 13) - d.permit.stored)), "{d:?}");
            let back = table.refund(&limit, now, hash, &d.permit).unwrap().unwrap();
            assert_eq!(back, d.permit.stored);
            assert_eq!(table.peek(&limit, now + most, hash, 0).unwrap().remaining, 8);
        }
    }
}

/// What the permit of an insert leaves out was charged all the same.
#[test]
fn every_call_tells_the_units_that_it_took_or_gave_back() {
    let (lines, spec) = (memory(4), SPEC.max_debt(3));
    let options = TableOptions::new(spec).seed(SEED).claim_lifetime(2_048);
    let table = Table::init(&lines, &options).unwrap();
    let (limit, hash) = (table.limit(&spec).unwrap(), hash_of(0, 2, 7));
    let first = table.charge(&limit, 0, hash, 400, None).unwrap();
    assert_eq!((first.units, first.remaining), (11, 0));
    assert!(first.permit.stored < 11 << 12, "{first:?}");
    assert_eq!(table.charge(&limit, 1 << 12, hash, 400, None).unwrap().units, 1);
    let request = Request { limit: &limit, now: 9 << 12, cost: 2, room: 0 };
    let second = table.check_ex(&request, hash, None).unwrap();
    let back = table.refund_ex(&limit, 9 << 12, hash, &second.permit).unwrap();
    assert_eq!((second.units, back.units, back.remaining, back.in_debt), (2, 2, 5, false));
    assert_eq!(table.refund_ex(&limit, 9 << 12, hash, &Permit::NONE).unwrap().units, 0);
    let new = table.check_ex(&request, hash_of(0, 2, 9), None).unwrap();
    let back = table.refund_ex(&limit, 9 << 12, hash_of(0, 2, 9), &new.permit).unwrap();
    assert_eq!((new.units, back.units), (2, 1), "the permit leaves out half a unit");
    let in_debt = table.charge(&limit, 9 << 12, hash, 99, None).unwrap();
    let back = table.refund_ex(&limit, 9 << 12, hash, &Permit { stored: 1 << 12, ..in_debt.permit }).unwrap();
    assert_eq!((back.passes(), back.in_debt, back.units, back.departure), (true, false, 1, 9 << 12));
}

#[test]
fn cost_zero_and_denied_requests_never_write() {
    cases(200, |rng| {
        let lines = memory(4);
        let policy =
            rng.pick(&[FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled]);
        let options = TableOptions::new(SPEC).caller_hash().policy(policy);
        let table = Table::init(&lines, &options).unwrap();
        let limit = table.limit(&SPEC).unwrap();
        let snapshot = || {
            crate::common::words(&lines)
                .iter()
                .map(|w| w.load(std::sync::atomic::Ordering::Relaxed))
                .collect::<Vec<_>>()
        };
        let mut now = rng.next() >> 24;
        for _ in 0..400 {
            now += rng.below(1 << 8);
            let hash = hash_of(rng.below(2) as u32, 2, rng.within(1, 24) as u32);
            let cost = rng.pick(&[0, 1, 4, 8, 9]);
            let before = snapshot();
            table.peek(&limit, now, hash, cost).unwrap().passes();
            assert_eq!(snapshot(), before, "a peek wrote");
            let outcome = table.check_hash(&limit, now, hash, cost).unwrap();
            if cost == 0 || !outcome.passes() {
                assert_eq!(snapshot(), before, "{policy:?} {cost} {outcome:?} wrote");
            }
        }
    });
}

#[test]
fn the_top_slots_are_the_longest_debts_of_a_sorted_scan() {
    cases(40, |rng| {
        let spec = LimitSpec::new(1, 1_000, 1 << 20);
        let lines = memory(2 + 32);
        let table = Table::init(&lines, &TableOptions::new(spec).caller_hash()).unwrap();
        let limit = table.limit(&spec).unwrap();
        let mut hashes = Vec::new();
        for _ in 0..rng.below(120) {
            let hash = rng.next();
            let _ = table.check_hash(&limit, 0, hash, 1 + rng.scaled(12)).unwrap();
            hashes.push(hash);
        }
        let from = |slot: &tatcell::Slot| slot.number as usize + 1;
        let mut all: Vec<_> =
            std::iter::successors(table.next_live(500, 0), |slot| table.next_live(500, from(slot))).collect();
        all.sort_by_key(|slot| std::cmp::Reverse(slot.reset_after));
        let mut top = [tatcell::Slot::default(); 9];
        let found = table.top(500, &mut top);
        assert_eq!(found, all.len().min(9));
        for (got, want) in top.iter().zip(&all).take(found) {
            assert_eq!(got.reset_after, want.reset_after);
            // It is a slot of the table as it stands, and somebody's who was there.
            assert!(all.contains(got));
            assert!(hashes.iter().any(|hash| table.may_be(got, *hash)));
            assert!(!table.may_be(got, rng.next()), "a stranger");
        }
        assert_eq!(table.top(500, &mut []), 0);
    });
}

#[test]
fn next_live_finds_every_live_slot_once_and_stats_agree() {
    let lines = memory(2 + 16);
    let table = Table::init(&lines, &options()).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    let mut keys = std::collections::BTreeMap::new();
    for (i, hash) in distinct_hashes(&table, 20).into_iter().enumerate() {
        let cost = 1 + i as u32 % 8;
        assert!(table.check_hash(&limit, 1_000, hash, cost.into()).unwrap().passes());
        keys.insert((hash & 0xf_ffff) as u32, cost as u64 * 4_096);
    }
    let stats = table.stats(1_000);
    assert_eq!((stats.live, stats.slots, stats.claims, stats.expired), (20, 128, 0, 0));
    assert_eq!(stats.load_ppm, 20 * 1_000_000 / 128);
    // Costs 1..=8 of 8: (H/2, H] holds 5 to 8, then 3 and 4, then 2, then 1.
    assert_eq!(stats.debt, [8, 6, 3, 3, 0, 0, 0, 0]);
    let mut from = 0;
    let mut found = 0;
    while let Some(slot) = table.next_live(1_000, from) {
        assert!(slot.number as usize >= from);
        assert_eq!(Some(slot.reset_after), keys.remove(&slot.tag));
        from = slot.number as usize + 1;
        found += 1;
    }
    assert_eq!((found, keys.len()), (20, 0));
    assert_eq!(table.next_live(1_000, usize::MAX), None);
    assert_eq!(table.stats(1_000 + 8 * 4_096).expired, 20);
}

#[test]
fn keys_that_come_back_find_their_slots_while_others_are_free() {
    // 1966 keys in 4096 slots, one after the other, each idle between its requests for 20 times as long as it is in
    // debt; of a hundred requests so many are of keys that come once. Were a new key to take the first slot that is
    // reusable, it would mostly be that of a key which is to come back: half of the requests would insert.
    for (new, most_ppm) in [(0, 0), (1, 3_000), (5, 10_000), (20, 50_000)] {
        let lines = memory(2 + 512);
        let table = Table::init(&lines, &TableOptions::new(SPEC).seed(SEED)).unwrap();
        let limit = table.limit(&SPEC).unwrap();
        let (keys, gap) = (1_966u64, 20 * 4_096 / 1_966);
        let (mut rng, mut now, mut stranger) = (Rng(24), 1u64 << 30, 1u64 << 40);
        let (mut asked, mut inserted) = (0u64, 0u64);
        for round in 0..60 {
            for key in 0..keys {
                now += gap;
                let mut counters = Counters::default();
                let mut ask = |key: u64| {
                    let request = Request { limit: &limit, now, cost: 1, room: 0 };
                    assert!(table
                        .check_ex(&request, table.hash(&key.to_le_bytes()).unwrap(), Some(&mut counters))
                        .unwrap()
                        .passes());
                    counters.inserted
                };
                let came_anew = ask(key);
                // The first rounds fill the table.
                if round >= 20 {
                    (asked, inserted) = (asked + 1, inserted + came_anew);
                }
                if rng.below(100) < new {
                    stranger += 1;
                    ask(stranger);
                }
            }
        }
        let ppm = inserted * 1_000_000 / asked;
        println!("{new} % new keys: {ppm} ppm of the known keys' requests inserted");
        assert!(ppm <= most_ppm, "{new} % new keys: {ppm} ppm of the known keys' requests inserted");
    }
}

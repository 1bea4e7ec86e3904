//! Bursts of keys under two limits each: equal to chains one by one, in verdicts, counters and memory.

use crate::common::memory;
use tatcell::{
    second_hash, Chain, Counters, ExclusiveTable, FullPolicy, LimitSpec, Link, PairBurst, Table, TableError,
    TableOptions, TableRef, MAX_BURST,
};

const PACKETS: LimitSpec = LimitSpec::new(1, 1 << 16, 5);
const BYTES: LimitSpec = LimitSpec::new(1, 1 << 10, 400);

fn options() -> TableOptions {
    TableOptions::new(BYTES).slowest(PACKETS.penalty(2)).seed([5; 16])
}

fn image(table: &Table<'_>, now: u64) -> Vec<u64> {
    let mut words = vec![0; table.image_words()];
    table.save(now, &mut words).unwrap();
    words
}

#[test]
fn pair_bursts_decide_count_and_store_as_chains_do() {
    let (mut passed, mut refused, mut inserted, mut untracked) = (0, 0, 0, 0);
    let kinds = [PACKETS, PACKETS.soft(3), PACKETS.shadow(), PACKETS.penalty(2)];
    for (kind, packets) in kinds.into_iter().enumerate() {
        for policy in [FullPolicy::Admit, FullPolicy::Deny, FullPolicy::Inherit] {
            let (a, b, mut c) = (memory(18), memory(18), memory(18));
            let options = options().policy(policy);
            let singles = Table::init(&a, &options).unwrap();
            let bursts = Table::init(&b, &options).unwrap();
            let owned = ExclusiveTable::init_exclusive(&mut c, &options).unwrap();
            let limits = [&singles.limit(&packets).unwrap(), &singles.limit(&BYTES).unwrap()];
            let mut counts = [Counters::default(); 3];
            let mut rng = crate::common::Rng(kind as u64);
            let (mut now, mut hashes) = (1 << 40, Vec::<u64>::new());
            let mut wide = 0;
            for round in 0..300u64 {
                now += rng.scaled(17);
                let next: Vec<u64> = (0..rng.pick(&[0, 1, 7, 64]))
                    .map(|_| {
                        // A few keys that are often there, and now and then one of many.
                        let key = if rng.one_in(8) { rng.below(90) } else { rng.below(6) };
                        singles.hash(&key.to_le_bytes()).unwrap()
                    })
                    .collect();
                let sizes: Vec<u32> = hashes.iter().map(|_| rng.pick(&[0, 1, 40, 150, 401])).collect();
                let ones: Vec<u32> = hashes.iter().map(|_| rng.pick(&[0, 1, 1, 2, 6])).collect();
                let costs = [(round % 3 == 0).then_some(&ones[..]), (round % 5 != 0).then_some(&sizes[..])];
                let mut wanted = 0u64;
                for (i, &hash) in hashes.iter().enumerate() {
                    let cost = |side: usize| costs[side].map_or(1, |c| c[i] as u64);
                    let links = [
                        Link::hash(&singles, limits[0], hash, cost(0)),
                        Link::hash(&singles, limits[1], second_hash(hash), cost(1)),
                    ];
                    let chain = Chain::new(&links).unwrap();
                    let d = chain.check_ex(now, Some(&mut counts[0]), |_, _| ());
                    wanted |= (d.passes() as u64) << i;
                }
                let burst = PairBurst { limits, now, hashes: &hashes, costs };
                // Counted and not: both ways lead to the same memory.
                let counter = if kind == 1 && round % 2 == 0 { None } else { Some(&mut counts[1]) };
                let uncounted = counter.is_none();
                assert_eq!(burst.check(&bursts, counter, &next), Ok(wanted), "round {round}");
                if uncounted {
                    wide += 1;
                }
                assert_eq!(
                    burst.check_ahead(&owned, Some(&mut counts[2]), &next),
                    Ok(wanted),
                    "round {round}"
                );
                hashes = next;
            }
            assert_eq!(image(&bursts, now)[16..], image(&singles, now)[16..]);
            assert_eq!(counts[2], counts[0]);
            assert!(wide > 0 || counts[1] == counts[0]);
            passed += counts[0].conforming;
            refused += counts[0].non_conforming + counts[0].never;
            inserted += counts[0].inserted;
            untracked += counts[0].untracked;
        }
    }
    let seen = [passed, refused, inserted, untracked];
    assert!(seen.iter().all(|&n| n > 30), "every kind of answer comes up: {seen:?}");
}

/// Under counts a pair goes the long way; the answers are those of chains as ever.
/// A pass above the soft threshold of either limit is counted as one.
#[test]
fn a_soft_pass_of_either_limit_is_counted() {
    let soft = (PACKETS.soft(1), BYTES.soft(1));
    for [packets, bytes] in [[soft.0, BYTES], [PACKETS, soft.1], [soft.0, soft.1], [PACKETS, BYTES]] {
        let lines = memory(18);
        let table = Table::init(&lines, &options()).unwrap();
        let limits = [&table.limit(&packets).unwrap(), &table.limit(&bytes).unwrap()];
        let mut counters = Counters::default();
        // The first makes the key known, the second is above both thresholds.
        for _ in 0..2 {
            let burst = PairBurst { limits, now: 5, hashes: &[9], costs: [None, None] };
            assert_eq!(burst.check(&table, Some(&mut counters), &[]), Ok(1));
        }
        let wanted = u64::from([packets, bytes] != [PACKETS, BYTES]);
        assert_eq!((counters.conforming, counters.soft), (2, wanted), "{packets:?} {bytes:?}");
    }
}

#[test]
fn pairs_of_windows_are_decided_as_chains() {
    let (packets, bytes) = (LimitSpec::fixed_window(5, 1 << 16), LimitSpec::fixed_window(400, 1 << 12));
    let (a, b) = (memory(18), memory(18));
    let options = TableOptions::new(bytes).slowest(packets).seed([5; 16]);
    let tables = [Table::init(&a, &options).unwrap(), Table::init(&b, &options).unwrap()];
    let limits = [&tables[0].limit(&packets).unwrap(), &tables[0].limit(&bytes).unwrap()];
    let mut rng = crate::common::Rng(7);
    let (mut now, mut passed) = (1 << 40, 0);
    for round in 0..300 {
        now += rng.scaled(15);
        let hashes: [u64; 8] = core::array::from_fn(|_| tables[0].hash(&rng.below(6).to_le_bytes()).unwrap());
        let sizes: [u32; 8] = core::array::from_fn(|_| rng.pick(&[0, 1, 40, 150, 401]));
        let mut wanted = 0u64;
        for (i, &hash) in hashes.iter().enumerate() {
            let links = [
                Link::hash(&tables[0], limits[0], hash, 1),
                Link::hash(&tables[0], limits[1], second_hash(hash), sizes[i].into()),
            ];
            wanted |= (Chain::new(&links).unwrap().check(now).passes() as u64) << i;
        }
        let burst = PairBurst { limits, now, hashes: &hashes, costs: [None, Some(&sizes)] };
        assert_eq!(burst.check(&tables[1], None, &[]), Ok(wanted), "round {round}");
        passed += wanted.count_ones();
    }
    assert_eq!(image(&tables[1], now)[16..], image(&tables[0], now)[16..]);
    assert!((100..2_300).contains(&passed), "{passed}");
}

#[test]
fn a_wrong_pair_burst_decides_nothing() {
    let (a, b) = (memory(18), memory(18));
    let table = Table::init(&a, &options()).unwrap();
    let other = Table::init(&b, &options().resolution(3)).unwrap();
    let (packets, bytes) = (table.limit(&PACKETS).unwrap(), table.limit(&BYTES).unwrap());
    let foreign = other.limit(&BYTES).unwrap();
    let many = [1u64; MAX_BURST + 1];
    let good = PairBurst { limits: [&packets, &bytes], now: 0, hashes: &many[..2], costs: [None; 2] };
    for (burst, error) in [
        (PairBurst { hashes: &many, ..good }, TableError::TooManyKeys),
        (PairBurst { costs: [Some(&[1]), None], ..good }, TableError::BadCosts),
        (PairBurst { costs: [None, Some(&[1; 3])], ..good }, TableError::BadCosts),
        (PairBurst { limits: [&foreign, &bytes], ..good }, TableError::ForeignLimit),
        (PairBurst { limits: [&packets, &foreign], ..good }, TableError::ForeignLimit),
    ] {
        assert_eq!(burst.check(&table, None, &[]), Err(error));
        assert_eq!(burst.check_ahead(TableRef::from(&table), None, &[]), Err(error));
    }
    assert_eq!(good.check(&table, None, &many), Err(TableError::TooManyKeys));
    assert_eq!(table.stats(0).live, 0);
    assert_eq!(good.check(&table, None, &[]), Ok(3));
    assert_eq!(table.stats(0).live, 2, "a slot a limit");
    assert_eq!(PairBurst { hashes: &[], ..good }.check(&table, None, &many[..1]), Ok(0));
}

/// A key of which both debts are one word, as set and tag have it: charged for both, with one owner, too.
#[test]
fn debts_that_share_a_word_by_chance_are_both_charged() {
    let hash = (1..).find(|&hash| hash & 0xfff == second_hash(hash) & 0xfff && hash & 0xfff != 0).unwrap();
    let spec = LimitSpec::new(1, 1 << 20, 100);
    let options = TableOptions::new(spec).tag_bits(12).seed([5; 16]);
    let (a, mut b) = (memory(4), memory(4));
    let shared = Table::init(&a, &options).unwrap();
    let owned = ExclusiveTable::init_exclusive(&mut b, &options).unwrap();
    let limit = shared.limit(&spec).unwrap();
    for (round, left) in [98, 96, 94].into_iter().enumerate() {
        let burst = PairBurst { limits: [&limit, &limit], now: 7, hashes: &[hash], costs: [None; 2] };
        assert_eq!(burst.check(&shared, None, &[]), Ok(1));
        assert_eq!(burst.check(&owned, None, &[]), Ok(1));
        let remaining = [
            shared.peek(&limit, 7, hash, 0).unwrap().remaining,
            owned.peek(&limit, 7, hash, 0).unwrap().remaining,
        ];
        assert_eq!(remaining, [left; 2], "round {round}");
    }
}

/// Threads with one reading of the clock over a few keys: both limits hold, and no debt of what was refused stays.
#[test]
fn threads_never_pass_more_than_either_limit_allows() {
    let lines = memory(66);
    let (narrow, wide) = (LimitSpec::new(1, 1 << 30, 3_000), LimitSpec::new(1, 1 << 30, 4_000));
    let table = Table::init(&lines, &TableOptions::new(wide).seed([5; 16])).unwrap();
    let limits = [&table.limit(&narrow).unwrap(), &table.limit(&wide).unwrap()];
    let hashes = [0u8, 1, 0, 2, 1].map(|key| table.hash(&[key]).unwrap());
    let passed: [u64; 3] = std::thread::scope(|scope| {
        let run = |costs: [u32; 5]| {
            let burst = PairBurst { limits, now: 7, hashes: &hashes, costs: [None, Some(&costs[..])] };
            let mut passed = [0u64; 3];
            for _ in 0..3_000 {
                let pass = burst.check(&table, None, &[]).unwrap();
                for (i, key) in [0, 1, 0, 2, 1].into_iter().enumerate() {
                    passed[key] += (pass >> i & 1) << (32 * (costs[i] == 2) as u32);
                }
            }
            passed
        };
        let threads = [scope.spawn(move || run([1; 5])), scope.spawn(move || run([2; 5]))];
        let [a, b] = threads.map(|t| t.join().unwrap());
        [0, 1, 2].map(|key| a[key] + b[key])
    });
    for (key, passed) in passed.into_iter().enumerate() {
        let (ones, twos) = (passed & u32::MAX as u64, passed >> 32);
        let hash = table.hash(&[key as u8]).unwrap();
        let left = |limit, hash| table.peek(limit, 7, hash, 0).unwrap();
        let (first, second) = (left(limits[0], hash), left(limits[1], second_hash(hash)));
        assert!(ones + twos <= 3_000 && ones + 2 * twos <= 4_000, "key {key}: {ones} and {twos}");
        assert_eq!((first.remaining, second.remaining), (3_000 - ones - twos, 4_000 - ones - 2 * twos));
    }
}

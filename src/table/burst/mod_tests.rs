//! Bursts with each kind of next burst against single calls: verdicts, counters and the memory afterwards.

use super::call::NextBurst;
use super::*;
use crate::keys::HashKind;
use crate::limit::params::random;
use crate::limit::LimitSpec;
use crate::sync::{Exclusive, Shared};
use crate::table::calls::full_answer::Request;
use crate::table::layout::geometry::MAX_BURST;
use crate::table::layout::image::lines_for;
use crate::table::layout::options::TableOptions;
use crate::table::layout::policy::FullPolicy;

extern crate std;
use std::vec::Vec;

/// One combination of the options that change which code runs.
struct World {
    hash: HashKind,
    policy: FullPolicy,
    spec: LimitSpec,
}

fn worlds() -> Vec<World> {
    let specs = [
        LimitSpec::new(1, 4_096, 3),
        LimitSpec::new(1, 4_096, 6).soft(3),
        LimitSpec::new(1, 4_096, 3).shadow(),
        LimitSpec::new(1, 4_096, 3).penalty(2),
    ];
    let mut worlds = Vec::new();
    for hash in [HashKind::SipHash13, HashKind::Aes].into_iter().filter(|hash| hash.is_available()) {
        for policy in [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled] {
            worlds.extend(specs.map(|spec| World { hash, policy, spec }));
        }
    }
    worlds
}

fn memory() -> Vec<Line> {
    (0..lines_for(64)).map(|_| Line::new()).collect()
}

fn image<M: Access>(table: &Table<'_, M>, now: u64) -> Vec<u64> {
    let mut words = std::vec![0; table.image_words()];
    table.save(now, &mut words).unwrap();
    words
}

fn key(id: u64) -> [u8; 16] {
    (id as u128 * 0x1_0000_0001_0000_0001).to_be_bytes()
}

fn play<M: Access>(
    world: &World,
    init: fn(&'static mut [Line], &TableOptions) -> Table<'static, M>,
) -> Counters {
    let options = TableOptions::new(world.spec).seed([9; 16]).hash(world.hash).policy(world.policy);
    let table = |wide: bool| {
        let mut table = init(Vec::leak(memory()), &options);
        (table.wide, table.half) = (table.wide.filter(|_| wide), table.half.filter(|_| wide));
        table
    };
    let (singles, plain, narrow, ahead, keyed) =
        (table(true), table(true), table(false), table(true), table(true));
    let limit = singles.limit(&world.spec).unwrap();
    let mut counters = [Counters::default(); 4];
    let (mut seed, mut now) = (7, 1u64 << 40);
    // More keys than the table has slots. Some of them come often.
    let mut ids = move |n: usize| -> Vec<u64> {
        (0..n).map(|_| random(&mut seed) % 100 * (random(&mut seed) % 2) + random(&mut seed) % 8).collect()
    };
    let mut sizes = [0usize, 1, 7, 32, 64].into_iter().cycle();
    let hash = |ids: &[u64]| -> Vec<u64> {
        let mut hashes = std::vec![0; ids.len()];
        singles.hash_burst(&mut hashes, |i| key(ids[i])).unwrap();
        assert!(ids.iter().zip(&hashes).all(|(&id, &hash)| singles.hash(&key(id)) == Ok(hash)));
        hashes
    };
    let mut hashes = Vec::new();
    for round in 0..200u64 {
        now += (round * round) % 1_500;
        let costs: Vec<u32> = (0..hashes.len()).map(|i| (i as u32 + round as u32) % 5).collect();
        let costs = (round % 3 == 0).then_some(costs.as_slice());
        let expected = hashes.iter().enumerate().fold(0u64, |bits, (i, &hash)| {
            let cost = costs.map_or(1, |c| c[i]);
            let request = Request { limit: &limit, now, cost: cost.into(), room: 0 };
            bits | (singles.check_ex(&request, hash, Some(&mut counters[0])).unwrap().passes() as u64) << i
        });
        let last = round.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let burst = Burst { costs, last, ..Burst::new(&limit, now, &hashes) };
        let next = ids(sizes.next().unwrap());
        let (known, mut made) = (hash(&next), std::vec![0; next.len()]);
        let [_, narrow_count, ahead_count, keyed_count] = counters.each_mut();
        assert_eq!(burst.check(&plain, None, NextBurst::NONE), Ok(expected));
        assert_eq!(burst.check(&narrow, Some(narrow_count), NextBurst::NONE), Ok(expected));
        assert_eq!(burst.check(&ahead, Some(ahead_count), NextBurst::hashes(&known)), Ok(expected));
        let next = NextBurst::keys(&mut made, |i| key(next[i]));
        assert_eq!(burst.check(&keyed, Some(keyed_count), next), Ok(expected));
        assert_eq!(made, known);
        hashes = made;
    }
    assert!(counters.iter().all(|c| c == &counters[0]), "{counters:?}");
    assert!(counters[0].conforming > 500 && counters[0].non_conforming + counters[0].shadow > 500);
    for other in [&plain, &narrow, &ahead, &keyed] {
        assert_eq!(image(other, now), image(&singles, now));
    }
    counters[0]
}

#[test]
fn bursts_decide_count_and_store_as_single_calls_do() {
    let mut seen = Counters::default();
    for world in worlds() {
        let shared = play::<Shared>(&world, |lines, options| Table::init(lines, options).unwrap());
        let owned =
            play::<Exclusive>(&world, |lines, options| Table::init_exclusive(lines, options).unwrap());
        assert_eq!(shared, owned);
        seen.soft += shared.soft;
        seen.shadow += shared.shadow;
        seen.never += shared.never;
        seen.untracked += shared.untracked;
        seen.inherited += shared.inherited;
        seen.forgiven += shared.forgiven;
        seen.inserted += shared.inserted;
    }
    // Every kind of answer occurred.
    let Counters { soft, shadow, never, untracked, inherited, forgiven, inserted, .. } = seen;
    assert!(
        [soft, shadow, never, untracked, inherited, forgiven, inserted].iter().all(|&n| n > 10),
        "{seen:?}"
    );
}

#[test]
fn an_unlimited_burst_passes_and_is_counted() {
    let spec = LimitSpec::new(1, 4_096, 3);
    let lines = memory();
    let table = Table::init(&lines, &TableOptions::new(spec).caller_hash()).unwrap();
    let (limit, hashes) = (table.unlimited(), [5u64; 40]);
    let burst = Burst::new(&limit, 9, &hashes);
    let mut counters = Counters::default();
    let all = (1 << 40) - 1;
    assert_eq!(burst.check(&table, None, NextBurst::NONE), Ok(all));
    assert_eq!(burst.check(&table, Some(&mut counters), NextBurst::NONE), Ok(all));
    // There is no key to hash, so the call is allowed although the caller hashes.
    assert_eq!(burst.check(&table, Some(&mut counters), NextBurst::keys(&mut [], |_| [0; 4])), Ok(all));
    assert_eq!((counters.conforming, counters.inserted), (80, 0));
}

/// Many threads may use one shared handle at once. An exclusive handle can only move to another thread.
#[test]
fn handles_go_where_their_words_may_go() {
    fn moves<T: Send>(_: &T) {}
    fn is_shared<T: Sync>(_: &T) {}
    let spec = LimitSpec::new(1, 4_096, 3);
    let (lines, mut owned) = (memory(), memory());
    let options = TableOptions::new(spec).caller_hash();
    let table = Table::init(&lines, &options).unwrap();
    moves(&table);
    is_shared(&table);
    moves(&Table::init_exclusive(&mut owned, &options).unwrap());
}

#[test]
fn a_wrong_burst_decides_counts_and_hashes_nothing() {
    let spec = LimitSpec::new(1, 4_096, 3);
    let lines = memory();
    let table = Table::init(&lines, &TableOptions::new(spec).seed([9; 16])).unwrap();
    let limit = table.limit(&spec).unwrap();
    let (empty, mut counters) = (image(&table, 0), Counters::default());
    let (many, one) = ([1u64; MAX_BURST + 1], [1u64]);
    let good = Burst::new(&limit, 0, &one);
    let bursts = [Burst { hashes: &many, ..good }, Burst { costs: Some(&[]), ..good }];
    let mut next = [77; 2];
    for (burst, wrong) in bursts.iter().zip([TableError::TooManyKeys, TableError::BadCosts]) {
        let c = &mut counters;
        assert_eq!(burst.check(&table, Some(c), NextBurst::NONE), Err(wrong));
        assert_eq!(burst.check(&table, Some(c), NextBurst::hashes(&one)), Err(wrong));
        assert_eq!(burst.check(&table, Some(c), NextBurst::keys(&mut next, |_| [0; 4])), Err(wrong));
        assert_eq!(burst.check_ex(&table, Some(c), NextBurst::NONE, |_, _| ()), Err(wrong));
    }
    let mut too_many = [77; MAX_BURST + 1];
    for burst in [good, Burst { hashes: &[], ..good }] {
        let (c, wrong) = (&mut counters, Err(TableError::TooManyKeys));
        assert_eq!(burst.check(&table, Some(c), NextBurst::hashes(&too_many)), wrong);
        assert_eq!(burst.check(&table, Some(c), NextBurst::keys(&mut too_many, |_| [0; 4])), wrong);
        let next = NextBurst::keys(&mut too_many, |_| [0; 4]);
        assert_eq!(burst.check_ex(&table, Some(c), next, |_, _| ()), wrong);
    }
    assert_eq!((next, too_many, counters), ([77; 2], [77; MAX_BURST + 1], Counters::default()));
    assert_eq!(image(&table, 0), empty);

    let lines = memory();
    let caller = Table::init(&lines, &TableOptions::new(spec).caller_hash()).unwrap();
    for burst in [good, Burst { hashes: &[], ..good }] {
        let wrong = Err(TableError::BadHashKind);
        assert_eq!(burst.check(&caller, None, NextBurst::keys(&mut next, |_| [0; 4])), wrong);
        let keys = NextBurst::keys(&mut next, |_| [0; 4]);
        assert_eq!(burst.check_ex(&caller, None, keys, |_, _| ()), wrong);
    }
    assert_eq!(next, [77; 2]);
    assert_eq!(image(&caller, 0)[16..], empty[16..]);
}

/// One key under a slow and a fast limit. A debt under the slow limit lies beyond the horizon of the fast one, which
/// must see it nevertheless.
#[test]
fn a_burst_reads_a_debt_with_the_horizon_of_the_table() {
    let (fast, slow) = (LimitSpec::new(1, 4_096, 2), LimitSpec::new(1, 1 << 24, 3));
    let memory = memory();
    let options = TableOptions::new(fast).slowest(slow).seed([9; 16]);
    let table = Table::init(&memory, &options).unwrap();
    let limits = [fast, slow].map(|spec| table.limit(&spec).unwrap());
    let (now, hash) = (1 << 40, table.hash(b"one key").unwrap());
    let burst = |limit, now| {
        let hashes = [hash; 3];
        let burst = Burst::new(limit, now, &hashes);
        [None, Some(&mut Counters::default())].map(|c| burst.check(&table, c, NextBurst::NONE).unwrap())
    };
    assert_eq!(burst(&limits[1], now), [0b111, 0]);
    for now in [now, now + (1 << 24), now + (3 << 24) - 2 * 4_096] {
        assert_eq!(burst(&limits[0], now), [0; 2], "at {now}");
    }
    assert_eq!(burst(&limits[0], now + (3 << 24)), [0b11, 0]);
}

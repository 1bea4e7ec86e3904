//! Bursts with elastic room and bursts that are charged after the fact: what single calls in order do, and count.

use crate::common::{cases, memory};
use tatcell::{
    Burst, Counters, Decision, LimitSpec, NextBurst, Request, Table, TableError, TableOptions, MAX_BURST,
};

#[test]
fn bursts_with_room_and_charged_bursts_are_single_calls_in_order() {
    let mut seen = [0; 3];
    let count = std::cell::RefCell::new(&mut seen);
    cases(60, |rng| {
        let (burst, window) = (rng.within(1, 6), rng.within(1, 6));
        let spec = rng.pick(&[
            LimitSpec::new(1, 1 << 10, burst).soft(1),
            LimitSpec::fixed_window(window, 1 << 12),
            LimitSpec::sliding_counter(window, 1 << 12),
        ]);
        let spec = spec.max_room(rng.below(5)).max_debt(rng.below(9));
        let lines = [memory(34), memory(34)];
        let [a, b] = [0, 1].map(|i| Table::init(&lines[i], &TableOptions::new(spec).seed([9; 16])).unwrap());
        let limit = a.limit(&spec).unwrap();
        let (mut counted, mut expected) = (Counters::default(), Counters::default());
        let mut now = 1 << 20;
        for _ in 0..40 {
            now += rng.scaled(13);
            let n = rng.below(MAX_BURST as u64 + 1) as usize;
            let keys: Vec<_> = (0..n).map(|_| rng.below(40).to_le_bytes()).collect();
            let hashes: Vec<_> = keys.iter().map(|key| a.hash(key).unwrap()).collect();
            let costs: Vec<_> = (0..n).map(|_| rng.below(4) as u32).collect();
            let rooms: Vec<_> = (0..n).map(|_| rng.below(6) as u32).collect();
            let charges = rng.one_in(4);
            let costs = rng.one_in(2).then_some(&costs[..]);
            let burst = Burst { costs, ..Burst::new(&limit, now, &hashes) };
            let (mut told, mut next) = (Vec::new(), [0; 2]);
            let each = |i: usize, d: &Decision| told.push((i, *d));
            let counters = Some(&mut counted);
            let pass = match (charges, rng.below(3)) {
                (false, 0) => burst.check_elastic(&a, &rooms, counters, NextBurst::NONE, each),
                (false, 1) => burst.check_elastic(&a, &rooms, counters, NextBurst::hashes(&[1, 2]), each),
                (false, _) => {
                    let ahead = NextBurst::keys(&mut next, |i| [i as u8; 8]);
                    burst.check_elastic(&a, &rooms, counters, ahead, each)
                }
                (true, 0) => burst.charge(&a, counters, NextBurst::NONE, each),
                (true, _) => burst.charge(&a, counters, NextBurst::keys(&mut next, |i| [i as u8; 8]), each),
            };
            let pass = pass.unwrap();
            assert_eq!(told.len(), n);
            for (i, &hash) in hashes.iter().enumerate() {
                let (cost, room) = (costs.map_or(1, |costs| costs[i].into()), rooms[i].into());
                let d = match charges {
                    false => {
                        b.check_ex(&Request { limit: &limit, now, cost, room }, hash, Some(&mut expected))
                    }
                    true => b.charge(&limit, now, hash, cost, Some(&mut expected)),
                };
                let d = d.unwrap();
                assert_eq!(
                    (told[i], pass >> i & 1 == 1),
                    ((i, d), d.passes()),
                    "request {i}, charged: {charges}"
                );
                let elastic = d.flags & Decision::ELASTIC != 0;
                count.borrow_mut()[if elastic { 2 } else { d.passes().into() }] += 1;
            }
            assert_eq!(counted, expected);
        }
    });
    assert!(seen.iter().all(|n| *n > 1_000), "{seen:?}");
}

#[test]
fn bursts_with_bad_arguments_are_refused_and_charge_nobody() {
    let spec = LimitSpec::new(1, 1 << 10, 3);
    let lines = [memory(34), memory(34)];
    let [table, other] = [1, 0].map(|i| {
        Table::init(&lines[i], &TableOptions::new(spec.max_room(1 << (8 * i))).caller_hash()).unwrap()
    });
    let (limit, foreign) = (table.limit(&spec).unwrap(), other.limit(&spec).unwrap());
    let (hashes, many) = ([1 << 40, 2 << 40], [7; MAX_BURST + 1]);
    let good = Burst::new(&limit, 0, &hashes);
    let nobody = |_: usize, _: &Decision| panic!("decided");
    for (burst, rooms, e) in [
        (good, &[1][..], TableError::BadCosts),
        (good, &[1; 3], TableError::BadCosts),
        (Burst { costs: Some(&[1]), ..good }, &[1; 2], TableError::BadCosts),
        (Burst { hashes: &many, ..good }, &[1; MAX_BURST + 1], TableError::TooManyKeys),
        (Burst { limit: &foreign, ..good }, &[1; 2], TableError::ForeignLimit),
    ] {
        assert_eq!(burst.check_elastic(&table, rooms, None, NextBurst::NONE, nobody), Err(e));
        if rooms.len() == burst.hashes.len() {
            assert_eq!(burst.charge(&table, None, NextBurst::NONE, nobody), Err(e));
        }
    }
    assert_eq!(table.stats(0).live, 0);
}

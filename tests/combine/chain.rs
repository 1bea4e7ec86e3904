//! Chains against one exact bucket for each cell or key, all or none; their errors, duplicates, undo and extras.

use crate::common::oracle::Oracle;
use crate::common::{cases, hash_of, in_shadow, memory, Rng};
use tatcell::{
    Cell, Cell32, Chain, ChainError, Counters, Decision, ExclusiveTable, FullPolicy, Limit, Limit32,
    LimitSpec, Link, Permit, Request, Table, TableLimit, TableOptions, Tracking, Verdict, MAX_LINKS,
};

/// One debt that links may stand for: a cell or a key, its limit, and its bucket.
struct Target {
    kind: Kind,
    limit: usize,
    bucket: Oracle,
}

enum Kind {
    Cell(Cell),
    Cell32(Cell32),
    Key(u64),
    OwnKey(u64),
}

/// The limits of a world, each in the three forms, in q-units of 2^-4 ticks.
struct Limits {
    cell: Vec<Limit>,
    cell32: Vec<Limit32>,
    key: Vec<TableLimit>,
    own: Vec<TableLimit>,
}

/// What must be answered for the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whole {
    verdict: i32,
    policy: u32,
    cost: u64,
    burst: u64,
    remaining: u64,
    retry_after: u64,
    next_unit: u64,
    reset_after: u64,
    departure: u64,
}

fn seen(d: &Decision) -> Whole {
    assert_eq!((d.permit, d.tracking, d.flags), (Permit::NONE, Tracking::Tracked, 0));
    Whole {
        verdict: d.verdict as i32,
        policy: d.policy,
        cost: d.cost,
        burst: d.burst,
        remaining: d.remaining,
        retry_after: d.retry_after,
        next_unit: d.next_unit,
        reset_after: d.reset_after,
        departure: d.departure,
    }
}

/// The links of a chain as (target, cost): the distinct targets with all their costs, and the first link of each.
fn merged(links: &[(usize, u32)]) -> Vec<(usize, u32, usize)> {
    let mut all: Vec<(usize, u32, usize)> = Vec::new();
    for (i, &(target, cost)) in links.iter().enumerate() {
        match all.iter_mut().find(|(known, ..)| *known == target) {
            Some((_, sum, _)) => *sum += cost,
            None => all.push((target, cost, i)),
        }
    }
    all
}

/// All or none by the buckets alone, one after the other.
fn expected(targets: &mut [Target], links: &[(usize, u32)], now: u64, reserve: bool) -> Whole {
    let links = merged(links);
    let mut after: Vec<Oracle> = targets.iter().map(|t| t.bucket.clone()).collect();
    let (mut departure, mut answers) = (now, Vec::new());
    for &(target, cost, _) in &links {
        let bucket = &mut after[target];
        let before = bucket.peek(now as u128, cost);
        let (verdict, retry) = match reserve {
            false => (bucket.check(now as u128, cost, 0).verdict, before.retry_after),
            true => match bucket.reserve(now as u128, cost) {
                Ok(at) => {
                    departure = departure.max(at as u64);
                    (0, 0)
                }
                Err((2, _)) => (2, u64::MAX),
                Err(refused) => refused,
            },
        };
        answers.push((verdict, retry));
    }
    let named = |i: usize, bucket: &Oracle| {
        let state = bucket.peek(now as u128, 0);
        let (_, cost, link) = links[i];
        (link as u32, cost as u64, bucket.burst as u64, state.remaining, state.next_unit, state.reset_after)
    };
    let worst = [2, 1].into_iter().find_map(|bad| answers.iter().position(|(verdict, _)| *verdict == bad));
    if let Some(i) = worst {
        let (policy, cost, burst, remaining, next_unit, reset_after) = named(i, &targets[links[i].0].bucket);
        let retry_after = answers.iter().map(|(_, retry)| *retry).max().unwrap();
        let verdict = answers[i].0;
        return Whole {
            verdict,
            policy,
            cost,
            burst,
            remaining,
            retry_after,
            next_unit,
            reset_after,
            departure: 0,
        };
    }
    for (target, after) in targets.iter_mut().zip(after) {
        target.bucket = after;
    }
    // Fewest further requests of this cost; of equal ones the first.
    let requests = |i: usize| {
        let (target, cost, _) = links[i];
        (targets[target].bucket.peek(now as u128, 0).remaining as u128, cost.max(1) as u128)
    };
    let tightest = (1..links.len()).fold(0, |best, i| {
        let ((left, cost), (least, of)) = (requests(i), requests(best));
        if left * of < least * cost {
            i
        } else {
            best
        }
    });
    let (policy, cost, burst, remaining, next_unit, reset_after) =
        named(tightest, &targets[links[tightest].0].bucket);
    Whole { verdict: 0, policy, cost, burst, remaining, retry_after: 0, next_unit, reset_after, departure }
}

/// A random world: three limits, eight targets of any kind, chains of one to eight links, repeated targets included.
fn play(rng: &mut Rng, reserve: bool) -> [u32; 3] {
    const SHIFT: i8 = 4;
    let delays: Vec<u64> = (0..3).map(|_| if reserve { rng.below(300) } else { 0 }).collect();
    let spec = |rng: &mut Rng| LimitSpec::new(1, rng.within(64, 200), rng.within(1, 12));
    let specs: Vec<LimitSpec> =
        delays.iter().map(|d| spec(rng).max_delay(*d).resolution(SHIFT).skew(1 << 14)).collect();
    // As fast and as long as the longest of them.
    let (fastest, slowest) = (LimitSpec::new(1, 64, 1), LimitSpec::new(1, 200, 12).max_delay(300));
    let options = TableOptions::new(fastest).slowest(slowest).seed([3; 16]).resolution(SHIFT).skew(1 << 14);
    let (shared, mut own) = (memory(34), memory(34));
    let table = Table::init(&shared, &options).expect("a table");
    let owned = ExclusiveTable::init_exclusive(&mut own, &options).expect("a table");
    let limits = Limits {
        cell: specs.iter().map(|s| s.build().expect("a limit")).collect(),
        cell32: specs.iter().map(|s| s.build32().expect("a limit")).collect(),
        key: specs.iter().map(|s| table.limit(s).expect("a limit")).collect(),
        own: specs.iter().map(|s| owned.limit(s).expect("a limit")).collect(),
    };
    let mut targets: Vec<Target> = (0..8u8)
        .map(|i| {
            let limit = rng.below(3) as usize;
            let (t_q, s) = limits.cell[limit].emission_interval();
            let delay = (delays[limit] << SHIFT) as u128;
            let bucket = Oracle { delay, ..Oracle::fixed(t_q, s, limits.cell[limit].burst()) };
            let kind = match rng.below(4) {
                0 => Kind::Cell(Cell::new()),
                1 => Kind::Cell32(Cell32::new()),
                2 => Kind::Key(table.hash(&[i]).unwrap()),
                _ => Kind::OwnKey(owned.hash(&[i]).unwrap()),
            };
            Target { kind, limit, bucket }
        })
        .collect();
    let mut verdicts = [0; 3];
    let mut now = rng.within(1, 1 << 30);
    // A key that is undone right after its insert owes what its claim does: here all have been there before.
    for target in &targets {
        let _ = match target.kind {
            Kind::Key(hash) => table.check_hash(&limits.key[target.limit], now, hash, 1).unwrap(),
            Kind::OwnKey(hash) => owned.check_hash(&limits.own[target.limit], now, hash, 1).unwrap(),
            _ => continue,
        };
    }
    now += 1 << 10;
    for _ in 0..60 {
        now += if rng.one_in(3) { 0 } else { rng.scaled(9) };
        let links: Vec<(usize, u32)> = (0..rng.within(1, 8))
            .map(|_| (rng.below(8) as usize, rng.pick(&[0, 1, 1, 1, 1, 2, 3])))
            .collect();
        let wanted = expected(&mut targets, &links, now, reserve);
        let made: Vec<Link<'_>> = links
            .iter()
            .map(|&(target, cost)| {
                let Target { kind, limit, .. } = &targets[target];
                match kind {
                    Kind::Cell(cell) => Link::cell(cell, &limits.cell[*limit], cost.into()),
                    Kind::Cell32(cell) => Link::cell32(cell, &limits.cell32[*limit], cost.into()),
                    Kind::Key(hash) => Link::hash(&table, &limits.key[*limit], *hash, cost.into()),
                    Kind::OwnKey(hash) => Link::hash(&owned, &limits.own[*limit], *hash, cost.into()),
                }
            })
            .collect();
        let chain = Chain::new(&made).expect("a chain");
        let looked = chain.peek(now);
        let decided = if reserve { chain.reserve(now).unwrap() } else { chain.check(now) };
        assert_eq!(seen(&decided), wanted, "{links:?} at {now}, {specs:?}");
        if !reserve {
            assert_eq!((looked.verdict, looked.retry_after), (decided.verdict, decided.retry_after));
        }
        verdicts[wanted.verdict as usize] += 1;
        // Whatever was decided, every debt is that of its bucket.
        for target in &targets {
            let state = target.bucket.peek(now as u128, 0);
            let found = match &target.kind {
                Kind::Cell(cell) => cell.peek(&limits.cell[target.limit], now, 0),
                Kind::Cell32(cell) => cell.peek(&limits.cell32[target.limit], now, 0),
                Kind::Key(hash) => table.peek(&limits.key[target.limit], now, *hash, 0).unwrap(),
                Kind::OwnKey(hash) => owned.peek(&limits.own[target.limit], now, *hash, 0).unwrap(),
            };
            assert_eq!((found.remaining, found.next_unit), (state.remaining, state.next_unit), "{links:?}");
        }
    }
    verdicts
}

#[test]
fn chains_of_cells_and_keys_answer_and_charge_as_exact_buckets_do() {
    let mut seen = [0; 3];
    let seen_by = std::sync::Mutex::new(&mut seen);
    cases(400, |rng| {
        let verdicts = play(rng, false);
        seen_by.lock().unwrap().iter_mut().zip(verdicts).for_each(|(n, more)| *n += more);
    });
    assert!(seen.iter().all(|&n| n > 500), "every verdict comes up: {seen:?}");
}

#[test]
fn reservations_of_chains_depart_at_the_latest_of_their_buckets() {
    let mut seen = [0; 3];
    let seen_by = std::sync::Mutex::new(&mut seen);
    cases(400, |rng| {
        let verdicts = play(rng, true);
        seen_by.lock().unwrap().iter_mut().zip(verdicts).for_each(|(n, more)| *n += more);
    });
    assert!(seen.iter().all(|&n| n > 500), "every verdict comes up: {seen:?}");
}

fn limit(units: u64, period: u64, burst: u64) -> Limit {
    Limit::new(units, period, burst).expect("a limit")
}

#[test]
fn the_retry_time_of_a_chain_is_exact_to_the_tick() {
    cases(300, |rng| {
        let limits = [0; 3].map(|_| limit(rng.within(1, 9), rng.within(10, 5_000), rng.within(1, 9)));
        let cells = [0; 3].map(|_| Cell::new());
        let costs = [0, 1, 2].map(|i: usize| rng.within(1, limits[i].burst()));
        let links: Vec<Link<'_>> = (0..3).map(|i| Link::cell(&cells[i], &limits[i], costs[i])).collect();
        let chain = Chain::new(&links).unwrap();
        let mut now = rng.below(1 << 40);
        for _ in 0..20 {
            let decided = chain.check(now);
            if decided.passes() {
                now += rng.below(40);
                continue;
            }
            assert!(!chain.peek(now + decided.retry_after - 1).passes(), "a tick too late");
            assert!(chain.peek(now + decided.retry_after).passes(), "a tick too early");
            now += decided.retry_after;
        }
    });
}

#[test]
fn a_cell_or_key_that_stands_twice_pays_both_costs_or_none() {
    let (limit, cell, other) = (limit(1, 100, 5), Cell::new(), Cell::new());
    let links =
        |a, b| [Link::cell(&cell, &limit, a), Link::cell(&other, &limit, 1), Link::cell(&cell, &limit, b)];
    let chain = |a, b| Chain::new(&links(a, b)).unwrap();
    let mut permits = [Permit::NONE; 3];
    assert!(chain(2, 1).check_ex(0, None, |i, d| permits[i] = d.permit).passes());
    assert_eq!((cell.peek(&limit, 0, 0).remaining, permits[2]), (2, Permit::NONE), "one charge, one permit");
    // Each alone would pass.
    let refused = chain(2, 1).check(0);
    assert_eq!((refused.verdict, refused.policy, refused.cost), (Verdict::NonConforming, 0, 3));
    assert_eq!((refused.retry_after, refused.remaining), (100, 2));
    assert_eq!(other.peek(&limit, 0, 0).remaining, 4);
    // Together more than the burst: no wait helps.
    let never = chain(3, 3).check(0);
    assert_eq!((never.verdict, never.policy, never.retry_after), (Verdict::Never, 0, u64::MAX));
    assert!(chain(2, 1).refund(0, &mut permits));
    assert_eq!((cell.peek(&limit, 0, 0).remaining, permits), (5, [Permit::NONE; 3]));
}

#[test]
fn every_error_is_named_and_nothing_is_touched() {
    let (limit, slower, cell) = (limit(1, 100, 5), limit(1, 200, 5), Cell::new());
    let spec = LimitSpec::new(1, 1 << 12, 8);
    let (a, b) = (memory(4), memory(4));
    let table = Table::init(&a, &TableOptions::new(spec).seed([1; 16])).unwrap();
    let finer = Table::init(&b, &TableOptions::new(spec).seed([1; 16]).resolution(3)).unwrap();
    let (own, foreign) = (table.limit(&spec).unwrap(), finer.limit(&spec).unwrap());
    let one = Link::cell(&cell, &limit, 1);
    let key = |limit, cost| Link::hash(&table, limit, 7, cost);
    let slow = table.limit(&LimitSpec::new(1, 1 << 12, 7)).unwrap();
    for (links, error) in [
        (vec![], ChainError::Empty),
        (vec![one; MAX_LINKS + 1], ChainError::TooManyLinks),
        (vec![one, key(&foreign, 1)], ChainError::ForeignLimit),
        (vec![one, key(&own, 1), key(&slow, 1)], ChainError::TwoLimits),
        (vec![one, Link::cell(&cell, &slower, 1)], ChainError::TwoLimits),
        (vec![one, Link::cell(&cell, &limit, u64::MAX)], ChainError::BadCost),
    ] {
        assert_eq!(Chain::new(&links).err(), Some(error), "{}", links.len());
    }
    assert!(Chain::new(&[one; MAX_LINKS]).is_ok());
    assert_eq!((cell.word(), table.stats(0).live), (0, 0));
    let texts: std::collections::BTreeSet<String> = [
        ChainError::Empty,
        ChainError::TooManyLinks,
        ChainError::ForeignLimit,
        ChainError::TwoLimits,
        ChainError::BadCost,
        ChainError::BadAlgorithm,
    ]
    .map(|e| e.to_string())
    .into();
    assert_eq!(texts.len(), 6);
}

/// Windows count: they take part in a chain, but only GCRA knows when a request may leave.
#[test]
fn chains_take_every_algorithm_and_reserve_under_gcra_alone() {
    let (lines, window) = (memory(4), LimitSpec::fixed_window(3, 1 << 12));
    let table = Table::init(&lines, &TableOptions::new(window).seed([1; 16])).unwrap();
    let (bucket, counted) = (limit(1, 100, 5), Limit::fixed_window(4, 100).unwrap());
    let key = table.limit(&window).unwrap();
    let cells = [Cell::new(), Cell::new()];
    let links = [
        Link::cell(&cells[0], &bucket, 1),
        Link::cell(&cells[1], &counted, 1),
        Link::hash(&table, &key, 7, 1),
    ];
    for links in [&links[..2], &links[1..], &links[..]] {
        assert_eq!(Chain::new(links).unwrap().reserve(0), Err(ChainError::BadAlgorithm));
    }
    assert_eq!((cells[0].word(), cells[1].word(), table.stats(0).live), (0, 0, 0));
    let chain = Chain::new(&links).unwrap();
    let mut permits = [Permit::NONE; 3];
    for left in (0..3).rev() {
        let passed = chain.check_ex(50, None, |i, d| permits[i] = d.permit);
        assert_eq!((passed.verdict, passed.policy, passed.remaining), (Verdict::Conforming, 2, left));
    }
    let refused = chain.check(50);
    assert_eq!((refused.verdict, refused.policy), (Verdict::NonConforming, 2));
    assert_eq!((cells[0].peek(&bucket, 50, 0).remaining, cells[1].peek(&counted, 50, 0).remaining), (2, 1));
    assert!(chain.refund(50, &mut permits));
    assert_eq!(permits, [Permit::NONE; 3]);
    assert_eq!((cells[0].peek(&bucket, 50, 0).remaining, cells[1].peek(&counted, 50, 0).remaining), (3, 2));
    assert_eq!(chain.peek(50).remaining, 1);
}

/// A full set is seen by the charge alone: the link before it has been charged by then, and gets it back.
#[test]
fn what_a_full_set_refuses_is_undone() {
    let spec = LimitSpec::new(1, 1 << 12, 8);
    let lines = memory(4);
    let options = TableOptions::new(spec).caller_hash().policy(FullPolicy::Deny);
    let table = Table::init(&lines, &options).unwrap();
    let (per_key, over_all) = (table.limit(&spec).unwrap(), limit(1, 1_000, 20));
    for tag in 1..=16 {
        assert!(table.check_hash(&per_key, 0, hash_of(0, 2, tag), 8).unwrap().passes());
    }
    let all = Cell::new();
    let links = [Link::cell(&all, &over_all, 3), Link::hash(&table, &per_key, hash_of(0, 2, 77), 1)];
    let chain = Chain::new(&links).unwrap();
    let (mut counters, mut permits) = (Counters::default(), [Permit { tat: 1, ..Permit::NONE }; 2]);
    assert!(chain.peek(0).passes(), "a look does not see a full set");
    let refused = chain.check_ex(0, Some(&mut counters), |i, d| permits[i] = d.permit);
    assert_eq!((refused.verdict, refused.policy), (Verdict::NonConforming, 1));
    assert_eq!(refused.tracking, Tracking::Untracked);
    assert_eq!((all.peek(&over_all, 0, 0).remaining, permits), (20, [Permit::NONE; 2]));
    assert_eq!((counters.non_conforming, counters.conforming, counters.inserted), (1, 0, 0));
    // A window is no plain limit, so this chain goes the long way.
    let (window, counted) = (Cell::new(), Limit::fixed_window(4, 100).unwrap());
    let stranger = Link::hash(&table, &per_key, hash_of(0, 2, 77), 1);
    let links = [Link::cell(&all, &over_all, 3), Link::cell(&window, &counted, 1), stranger];
    assert!(!Chain::new(&links).unwrap().check(0).passes());
    let left = |cell: &Cell, limit| cell.peek(limit, 0, 0).remaining;
    assert_eq!((left(&all, &over_all), left(&window, &counted)), (20, 4));
    // A key that is there passes, and both are charged.
    let links = [Link::cell(&all, &over_all, 3), Link::hash(&table, &per_key, hash_of(0, 2, 5), 1)];
    assert!(Chain::new(&links).unwrap().check(1 << 15).passes());
    assert_eq!(all.peek(&over_all, 1 << 15, 0).remaining, 17);
}

#[test]
fn an_inserted_key_that_is_undone_owes_no_more_than_its_claim() {
    let spec = LimitSpec::new(1, 1 << 12, 8);
    let (lines, full) = (memory(4), memory(4));
    let options = TableOptions::new(spec).caller_hash().policy(FullPolicy::Deny).resolution(0);
    let (table, deny) = (Table::init(&lines, &options).unwrap(), Table::init(&full, &options).unwrap());
    let limit = table.limit(&spec).unwrap();
    for tag in 1..=16 {
        assert!(deny.check_hash(&limit, 0, hash_of(0, 2, tag), 8).unwrap().passes());
    }
    let links = [Link::hash(&table, &limit, 9, 5), Link::hash(&deny, &limit, hash_of(0, 2, 99), 1)];
    assert!(!Chain::new(&links).unwrap().check(0).passes());
    let left = table.peek(&limit, 0, 9, 0).unwrap();
    assert!(left.reset_after <= 3, "{left:?}");
}

/// A link that refuses after others were charged decides, and its answer is told. Nothing is charged a second time.
#[test]
fn what_a_full_set_refuses_is_decided_once() {
    let spec = LimitSpec::new(1, 1 << 12, 8);
    for policy in [FullPolicy::Deny, FullPolicy::Sampled] {
        for form in 0..3 {
            let (lines, full) = (memory(4), memory(4));
            let options = TableOptions::new(spec).caller_hash().policy(FullPolicy::Deny).resolution(0);
            let table = Table::init(&lines, &options.policy(policy)).unwrap();
            let deny = Table::init(&full, &options).unwrap();
            let limits = [table.limit(&spec).unwrap(), deny.limit(&spec).unwrap()];
            for tag in 1..=16 {
                assert!(deny.check_hash(&limits[1], 0, hash_of(0, 2, tag), 8).unwrap().passes());
            }
            // A permit under Sampled gives nothing back, so that the charge of a known key stays.
            let stays = if policy == FullPolicy::Sampled { 3 } else { 0 };
            assert!(table.check_hash(&limits[0], 0, 7, 2).unwrap().passes());
            let links = [
                Link::hash(&table, &limits[0], 7, 3),
                Link::hash(&table, &limits[0], 9, 8),
                Link::hash(&deny, &limits[1], hash_of(0, 2, 99), 1),
            ];
            let links = if stays == 0 { &links[..] } else { &[links[0], links[2]] };
            let last = links.len() as u32 - 1;
            let chain = Chain::new(links).unwrap();
            let (mut each, mut counters) = (Vec::new(), Counters::default());
            let refused = match form {
                0 => chain.check(0),
                1 => chain.check_ex(0, Some(&mut counters), |_, d| each.push(*d)),
                _ => Decision { verdict: chain.verdict(0), ..chain.peek(0) },
            };
            assert_eq!(refused.verdict, Verdict::NonConforming);
            let left = table.peek(&limits[0], 0, 7, 0).unwrap().remaining;
            assert_eq!(left, 6 - stays, "{policy:?}, form {form}: charged more than once");
            if form < 2 {
                let alone = Request { limit: &limits[1], now: 0, cost: 1, room: 0 };
                let alone = deny.check_ex(&alone, hash_of(0, 2, 99), None).unwrap();
                assert_eq!(refused, Decision { policy: last, ..alone }, "{policy:?}, form {form}");
            }
            if form == 1 {
                assert_eq!(each.len(), links.len());
                assert!(each.iter().all(|d| d.permit == Permit::NONE && d.units == 0), "{each:?}");
                assert!(each.iter().enumerate().all(|(i, d)| d.passes() == (i as u32 != last)), "{each:?}");
                assert_eq!((counters.non_conforming, counters.inserted), (1, u64::from(last) - 1));
            }
        }
    }
}

#[test]
fn an_extra_refuses_nothing_and_is_not_given_back() {
    let (per_client, over_all) = (limit(1, 100, 3), limit(1, 10, 10));
    let (client, all) = (Cell::new(), Cell::new());
    let chain = |extra| {
        let links = [Link::cell(&client, &per_client, 1), Link::cell(&all, &over_all, 1).extra(extra)];
        Chain::new(&links).unwrap()
    };
    let mut permits = [Permit::NONE; 2];
    let passed = chain(2).check_ex(0, None, |i, d| permits[i] = d.permit);
    assert_eq!((passed.remaining, all.peek(&over_all, 0, 0).remaining), (2, 7), "one unit and two extra");
    assert!(chain(0).refund(0, &mut permits));
    assert_eq!((client.peek(&per_client, 0, 0).remaining, all.peek(&over_all, 0, 0).remaining), (3, 8));
    // More than is left: the burst is its end, and the request passes.
    assert!(chain(50).check(0).passes());
    let empty = all.peek(&over_all, 0, 1);
    assert_eq!((empty.remaining, empty.retry_after), (0, 10));
    // A refused chain charges no extra.
    assert_eq!((chain(2).check(0).policy, all.peek(&over_all, 0, 1).retry_after), (1, 10));
    assert_eq!(client.peek(&per_client, 0, 0).remaining, 2);
}

/// Whoever counts what is left of the aggregate after the requests of others reads, without the extra, their number.
#[test]
fn with_an_extra_what_is_left_of_an_aggregate_does_not_tell_how_many_passed() {
    let left_after = |passed: u64, rng: Option<&mut Rng>| {
        let (over_all, all) = (limit(1, 1_000, 50), Cell::new());
        let mut draw = rng;
        for _ in 0..passed {
            let extra = draw.as_mut().map_or(0, |rng| rng.below(3));
            assert!(Chain::new(&[Link::cell(&all, &over_all, 1).extra(extra)]).unwrap().check(0).passes());
        }
        all.peek(&over_all, 0, 0).remaining
    };
    assert_ne!(left_after(10, None), left_after(11, None));
    let mut rng = Rng(5);
    let mut seen = [[false; 51]; 2];
    for _ in 0..400 {
        seen[0][left_after(10, Some(&mut rng)) as usize] = true;
        seen[1][left_after(11, Some(&mut rng)) as usize] = true;
    }
    let both = (0..=50).filter(|&left| seen[0][left] && seen[1][left]).count();
    assert!(both >= 8, "only {both} readings that either number explains");
}

/// The whole has the flags of the link that decided, and each link its own; a peek tells each link's decision, too.
#[test]
fn flags_are_those_of_the_link_that_decided() {
    let soft = LimitSpec::new(1, 100, 100).soft(1).build().unwrap();
    let trial = LimitSpec::new(1, 100, 1).shadow().build().unwrap();
    let (tight, cells) = (limit(1, 100, 2), [Cell::new(), Cell::new(), Cell::new()]);
    let links = [Link::cell(&cells[0], &soft, 2), Link::cell(&cells[1], &tight, 1)];
    let chain = Chain::new(&links).unwrap();
    let seen = |d: &Decision| (d.verdict, d.flags, d.units);
    let check = |chain: &Chain<'_>, now| {
        let mut each = Vec::new();
        let whole = chain.check_ex(now, None, |_, d| each.push(seen(d)));
        (whole.policy, seen(&whole), each)
    };
    let peek = |chain: &Chain<'_>| {
        let mut each = Vec::new();
        let whole = chain.peek_ex(0, |_, d| each.push(seen(d)));
        (whole.policy, seen(&whole), each)
    };
    let (pass, refuse) = (Verdict::Conforming, Verdict::NonConforming);
    assert_eq!(peek(&chain), (1, (pass, 0, 0), vec![(pass, Decision::SOFT, 0), (pass, 0, 0)]));
    assert_eq!(check(&chain, 0), (1, (pass, 0, 1), vec![(pass, Decision::SOFT, 2), (pass, 0, 1)]));

    let links = [Link::cell(&cells[2], &trial, 1), Link::cell(&cells[1], &tight, 1)];
    let chain = Chain::new(&links).unwrap();
    assert!(chain.check(0).passes());
    let wanted = (1, (refuse, 0, 0), vec![(pass, Decision::SHADOW, 0), (refuse, 0, 0)]);
    assert_eq!((peek(&chain), check(&chain, 0)), (wanted.clone(), wanted));
    let alone = Chain::new(&links[..1]).unwrap();
    let shadowed = (pass, Decision::SHADOW, 0);
    assert_eq!(check(&alone, 0), (0, shadowed, vec![shadowed]));
}

/// A peek of cost 0 in debt refuses nobody; a link of cost 0 in a chain that asks for something does.
#[test]
fn a_chain_that_asks_for_nothing_is_a_status() {
    let debt = LimitSpec::new(1, 100, 2).max_debt(3).build().unwrap();
    let (free, cells) = (limit(1, 100, 2), [Cell::new(), Cell::new()]);
    assert!(cells[0].charge(&debt, 0, 4).passes());
    let status = Chain::new(&[Link::cell(&cells[0], &debt, 0)]).unwrap();
    let links = [Link::cell(&cells[0], &debt, 0), Link::cell(&cells[1], &free, 1)];
    let request = Chain::new(&links).unwrap();
    let refuse = Verdict::NonConforming;
    let (peeked, checked) = (status.peek(0), status.check(0));
    assert_eq!((peeked.verdict, peeked.in_debt, peeked.retry_after), (refuse, true, 200));
    assert_eq!((checked.verdict, checked.in_debt), (refuse, false));
    for whole in [request.peek(0), request.check(0), request.reserve(0).unwrap()] {
        assert_eq!((whole.verdict, whole.policy, whole.in_debt), (refuse, 0, false));
    }
}

#[test]
fn shadow_links_pass_uncharged_and_tell_what_they_would_have_said() {
    let trial = LimitSpec::new(1, 100, 1).shadow().build().unwrap();
    let (hard, cells) = (limit(1, 100, 3), [Cell::new(), Cell::new()]);
    let links = [Link::cell(&cells[0], &hard, 1), Link::cell(&cells[1], &trial, 1)];
    let chain = Chain::new(&links).unwrap();
    assert_eq!(chain.check(0).flags, 0);
    let second = chain.check(0);
    assert_eq!((second.passes(), second.flags, second.retry_after), (true, Decision::SHADOW, 100));
    assert!(chain.check(0).passes());
    let refused = chain.check(0);
    assert_eq!((refused.verdict, refused.policy, refused.retry_after), (Verdict::NonConforming, 0, 100));
    assert_eq!(cells[1].peek(&hard, 0, 0).reset_after, 100, "charged once");
}

#[test]
fn counters_count_one_decision_a_chain_and_every_key_inserted() {
    let spec = LimitSpec::new(1, 1 << 12, 2);
    let lines = memory(18);
    let table = Table::init(&lines, &TableOptions::new(spec).seed([1; 16])).unwrap();
    let limit = table.limit(&spec).unwrap();
    let links = [b"user 1", b"host 1"].map(|key| Link::key(&table, &limit, key, 1).unwrap());
    let chain = Chain::new(&links).unwrap();
    let mut counters = Counters::default();
    let verdicts = [0; 3].map(|_| chain.check_ex(0, Some(&mut counters), |_, _| ()).passes());
    assert_eq!(verdicts, [true, true, false]);
    assert_eq!((counters.conforming, counters.non_conforming, counters.inserted), (2, 1, 2));
    // A reservation, too.
    let others = [b"user 2", b"host 2", b"path 2"].map(|key| Link::key(&table, &limit, key, 1).unwrap());
    let chain = Chain::new(&others).unwrap();
    let mut counters = Counters::default();
    assert!(chain.reserve_ex(0, Some(&mut counters), |_, _| ()).unwrap().passes());
    assert!(chain.reserve_ex(0, Some(&mut counters), |_, _| ()).unwrap().passes());
    assert_eq!((counters.conforming, counters.inserted), (2, 3));
}

/// The tightest link names burst and remaining; how the table accounted, and what a shadow limit would have said, may
/// come from another.
#[test]
fn a_pass_tells_of_every_link_what_is_told_of_the_whole() {
    let spec = LimitSpec::new(1, 1 << 12, 8);
    let lines = memory(4);
    let table = Table::init(&lines, &TableOptions::new(spec).caller_hash()).unwrap();
    let of_table = table.limit(&spec).unwrap();
    for tag in 1..=16 {
        assert!(table.check_hash(&of_table, 0, hash_of(0, 2, tag), 8).unwrap().passes());
    }
    let (one, trial) = (limit(1, 100, 1), LimitSpec::new(1, 100, 1).shadow().build().unwrap());
    let cells = [Cell::new(), Cell::new()];
    assert!(cells[1].check(&trial, 0, 1).passes());
    let links = [
        Link::cell(&cells[0], &one, 1),
        Link::cell(&cells[1], &trial, 1),
        Link::hash(&table, &of_table, hash_of(0, 2, 99), 1),
    ];
    let chain = Chain::new(&links).unwrap();
    let mut each = Vec::new();
    let whole = chain.check_ex(0, None, |i, d| each.push((i as u32, d.policy, d.tracking, d.retry_after)));
    assert_eq!((whole.passes(), whole.policy, whole.remaining), (true, 0, 0));
    assert_eq!((whole.tracking, whole.retry_after), (Tracking::Untracked, 100));
    let wanted =
        [(0, 0, Tracking::Tracked, 0), (1, 1, Tracking::Tracked, 100), (2, 2, Tracking::Untracked, 0)];
    assert_eq!(each, wanted);
}

/// Threads with one reading of the clock: no limit is exceeded, and what is left is what did not pass.
#[test]
fn threads_never_pass_more_than_each_limit_allows_and_leave_no_debt_of_refused_chains() {
    let (narrow, wide) = (limit(1, 1 << 40, 1_000), limit(1, 1 << 40, 1_500));
    for round in 0..20 {
        let cells = [Cell::new(), Cell::new(), Cell::new()];
        let passed: Vec<u64> = std::thread::scope(|scope| {
            let run = |i: usize| {
                let (cells, narrow, wide) = (&cells, &narrow, &wide);
                move || {
                    // Each has a cell of its own and the common one, in either order.
                    let mine = Link::cell(&cells[i], narrow, 1);
                    let all = Link::cell(&cells[2], wide, 1);
                    let links = if i == round % 2 { [mine, all] } else { [all, mine] };
                    let chain = Chain::new(&links).unwrap();
                    (0..2_000).filter(|_| chain.check(0).passes()).count() as u64
                }
            };
            let threads = [scope.spawn(run(0)), scope.spawn(run(1))];
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let left = |cell: &Cell, limit| cell.peek(limit, 0, 0).remaining;
        assert_eq!(passed[0] + passed[1], 1_500, "with equal costs nothing is refused that could pass");
        assert_eq!(
            [left(&cells[0], &narrow), left(&cells[1], &narrow)],
            [1_000 - passed[0], 1_000 - passed[1]]
        );
        assert_eq!(left(&cells[2], &wide), 0);
    }
}

/// A link in shadow mode neither refuses nor delays a reservation. The others decide as without it, and it is charged
/// for what they let pass, as without shadow mode.
#[test]
fn a_link_in_shadow_mode_holds_up_no_reservation_of_a_chain() {
    let counted = std::cell::RefCell::new([0; 3]);
    cases(200, |rng| {
        let spec = |rng: &mut Rng| LimitSpec::new(1, 64, rng.within(1, 6)).max_delay(rng.below(600));
        let [own, all, tried] = [(); 3].map(|()| spec(rng));
        let [own, all, trial, plain] = [own, all, tried.shadow(), tried].map(|spec| spec.build().unwrap());
        let (cells, twins) = ([(); 3].map(|()| Cell::new()), [(); 3].map(|()| Cell::new()));
        let mut now = rng.below(1 << 40);
        for _ in 0..60 {
            now += rng.below(150);
            let costs = [(); 3].map(|()| rng.within(0, 3));
            let links = [
                Link::cell(&cells[0], &own, costs[0]),
                Link::cell(&cells[2], &trial, costs[2]),
                Link::cell(&cells[1], &all, costs[1]),
            ];
            let without = [Link::cell(&twins[0], &own, costs[0]), Link::cell(&twins[1], &all, costs[1])];
            let wanted = Chain::new(&without).unwrap().reserve(now).unwrap();
            let (mut counters, mut each) = (Counters::default(), [None; 3]);
            let got =
                Chain::new(&links).unwrap().reserve_ex(now, Some(&mut counters), |i, d| each[i] = Some(*d));
            let (got, tried) = (got.unwrap(), each[1].unwrap());
            assert_eq!((got.verdict, got.departure), (wanted.verdict, wanted.departure));
            assert_eq!([0, 1].map(|i| cells[i].word()), [0, 1].map(|i| twins[i].word()));
            if !got.passes() {
                assert_eq!((got.policy == 1, got.retry_after >= wanted.retry_after), (false, true));
                assert_eq!((cells[2].word(), counters.shadow), (twins[2].word(), 0));
                counted.borrow_mut()[0] += 1;
                continue;
            }
            let alone = in_shadow(twins[2].reserve(&plain, now, costs[2]), now, now);
            assert_eq!(tried, Decision { policy: 1, ..alone });
            assert_eq!((got.retry_after, cells[2].word()), (alone.retry_after, twins[2].word()));
            let held = u64::from(alone.flags != 0);
            assert_eq!((counters.shadow, counters.conforming), (held, 1 - held));
            counted.borrow_mut()[1 + held as usize] += 1;
        }
    });
    let counted = counted.into_inner();
    assert!(counted.iter().all(|&n| n > 500), "{counted:?}: refused, at once, held up");
}

//! Three-colour marking by two limits of a key: exact against the buckets of RFC 2698 and RFC 4115, one by one, in
//! bursts and among threads.

#[path = "../cell/meters/oracle.rs"]
mod oracle;
#[path = "../cell/meters/traffic.rs"]
mod traffic;

use crate::common::oracle::Oracle as Bucket;
use crate::common::{cases, memory, size_from, Rng};
use oracle::Rfc;
use tatcell::Colour::{Green, Red, Yellow};
use tatcell::{
    second_hash, Colour, Counters, ExclusiveTable, FullPolicy, LimitSpec, Mark, MarkBurst, Marked, MeterKind,
    Request, Table, TableError, TableLimit, TableOptions, TableRef, Verdict, MAX_BURST,
};
use traffic::{Packet, Traffic};

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;
const KINDS: [MeterKind; 2] = [MeterKind::Rfc2698, MeterKind::Rfc4115];

fn specs(rfc: Rfc) -> [LimitSpec; 2] {
    let Rfc { cir, cbs, rate2, burst2, hz, .. } = rfc;
    [LimitSpec::new(cir, hz, cbs), LimitSpec::new(rate2, hz, burst2)]
}

/// Options of a table for both limits of a flow.
fn options(rfc: Rfc) -> TableOptions {
    let [committed, second] = specs(rfc);
    let (fast, slow) = if rfc.cir > rfc.rate2 { (committed, second) } else { (second, committed) };
    TableOptions::new(fast).slowest(slow).tag_bits(12).seed([3; 16])
}

fn mark<'a>(rfc: Rfc, [committed, second]: &'a [TableLimit; 2]) -> Mark<'a> {
    match rfc.kind {
        MeterKind::Rfc2698 => Mark::rfc2698(committed, second),
        _ => Mark::rfc4115(committed, second),
    }
}

fn rfc(kind: MeterKind, cir: u64, cbs: u64, rate2: u64, burst2: u64) -> Rfc {
    Rfc { kind, coupled: false, cir, cbs, rate2, burst2, hz: SECOND }
}

/// Two exact buckets of a flow.
#[derive(Clone)]
struct Flow {
    committed: Bucket,
    second: Bucket,
}

impl Flow {
    /// As the RFC has them: a rate is not rounded.
    fn ideal(rfc: Rfc) -> Flow {
        let Rfc { cir, cbs, rate2, burst2, hz, .. } = rfc;
        Flow { committed: Bucket::exact(cir, hz, cbs), second: Bucket::exact(rate2, hz, burst2) }
    }

    /// Their units take what the limits say that they do.
    fn new(limits: &[TableLimit; 2]) -> Flow {
        let [committed, second] = [0, 1].map(|i| {
            let (t_q, resolution) = limits[i].emission_interval();
            Bucket::fixed(t_q, resolution, limits[i].burst())
        });
        Flow { committed, second }
    }

    /// Pays what this colour costs, and says whether it was there.
    fn pay(&mut self, kind: MeterKind, packet: Packet, colour: Colour) -> bool {
        let (committed, second) = match (kind, colour) {
            (_, Red) => (false, false),
            (MeterKind::Rfc2698, _) => (colour == Green, true),
            _ => (colour == Green, colour == Yellow),
        };
        let pay = |bucket: &mut Bucket| bucket.check(packet.now.into(), packet.cost as u32, 0).verdict == 0;
        (!committed || pay(&mut self.committed)) && (!second || pay(&mut self.second))
    }

    /// The colour of the RFC, each bucket charged as its text says.
    fn mark(&mut self, kind: MeterKind, packet: Packet) -> Colour {
        let Packet { now, cost, pre } = packet;
        let pay = |bucket: &mut Bucket| bucket.check(now.into(), cost as u32, 0).verdict == 0;
        match (kind, pre) {
            (_, Red) => Red,
            (MeterKind::Rfc2698, _) if !pay(&mut self.second) => Red,
            (MeterKind::Rfc2698, Yellow) => Yellow,
            (_, Green) if pay(&mut self.committed) => Green,
            (MeterKind::Rfc2698, _) => Yellow,
            (..) if pay(&mut self.second) => Yellow,
            (..) => Red,
        }
    }
}

// ---- colours --------------------------------------------------------------------------------------------------------

/// The table of DPDK's own test (app/test/test_meter.c): a fresh meter, one packet a second later.
#[test]
fn a_fresh_flow_gets_the_colours_of_dpdks_table() {
    for kind in KINDS {
        let rfc = rfc(kind, 46_000_000, 2048, 69_000_000, 4096);
        let table = [
            (Green, [Green, Yellow, Yellow, Red]),
            (Yellow, [Yellow, Yellow, Yellow, Red]),
            (Red, [Red, Red, Red, Red]),
        ];
        for (pre, colours) in table {
            for (cost, colour) in [2047, 2049, 4095, 4097].into_iter().zip(colours) {
                let lines = memory(10);
                let table = Table::init(&lines, &options(rfc)).unwrap();
                let limits = specs(rfc).map(|spec| table.limit(&spec).unwrap());
                let marking = mark(rfc, &limits).check(&table, 8 * SECOND, 7, cost, pre).unwrap();
                assert_eq!(marking.colour, colour, "{kind:?}: {cost} bytes that came {pre:?}");
                let never = pre != Red && cost == 4097;
                let verdict = match colour {
                    Red if never => Verdict::Never,
                    Red => Verdict::NonConforming,
                    _ => Verdict::Conforming,
                };
                assert_eq!(marking.verdict, verdict);
                let paid = match (kind, colour) {
                    (_, Red) => 0,
                    (MeterKind::Rfc2698, Green) => 2,
                    _ => 1,
                };
                assert_eq!(table.stats(8 * SECOND).live, paid, "{kind:?}: {cost} bytes that came {pre:?}");
            }
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    packets: u64,
    back: u64,
    worse: u64,
    colours: [u64; 3],
}

/// Marks `n` packets of some flows beside the flows' exact buckets, and beside those of the RFC, whose rates are not
/// rounded, with the same history: equal to the one, never better than the other. `back`: every hundredth reading of
/// the clock is old; then to the first alone, as an old reading finds a debt smaller in units, the longer each takes.
fn follow(rfc: Rfc, (aware, back): (bool, bool), n: u64, rng: &mut Rng, counts: &mut Counts) {
    const FLOWS: usize = 24;
    let lines = memory(130);
    let table = Table::init(&lines, &options(rfc)).unwrap();
    let limits = specs(rfc).map(|spec| table.limit(&spec).unwrap());
    let mark = mark(rfc, &limits);
    let hashes: [u64; FLOWS] = std::array::from_fn(|_| table.hash(&rng.next().to_le_bytes()).unwrap());
    let start = (1 << 44) + rng.below(1 << 50);
    let mut flows = hashes.map(|_| (Flow::new(&limits), Flow::ideal(rfc)));
    let horizon = limits[0].info().horizon.max(limits[1].info().horizon);
    let mut traffic = Traffic::new(rfc, aware, horizon * 4, start);
    let skew = table.info().skew;
    let mut swept = start;
    for _ in 0..n {
        let mut packet = traffic.next(rng);
        if packet.now - swept > table.sweep_interval() / 2 {
            swept = packet.now;
            table.sweep(swept, 0, table.slots());
        }
        // Most packets are of one flow, as the load is that of one.
        let flow = if rng.one_in(4) { rng.below(FLOWS as u64) as usize } else { 0 };
        if back && rng.one_in(100) {
            packet.now -= rng.below(horizon.min(skew));
            counts.back += 1;
        }
        let (exact, ideal) = &mut flows[flow];
        let wanted = exact.mark(rfc.kind, packet);
        let marking = mark.check(&table, packet.now, hashes[flow], packet.cost, packet.pre).unwrap();
        assert_eq!(marking.colour, wanted, "{packet:?} of flow {flow}, {rfc:?}");
        assert_eq!(marking.passes(), wanted != Red);
        counts.colours[marking.colour as usize] += 1;
        counts.packets += 1;
        if back {
            continue;
        }
        let best = ideal.clone().mark(rfc.kind, packet);
        assert!(marking.colour >= best, "minted: {packet:?} of flow {flow}, {rfc:?}: exactly {best:?}");
        assert!(ideal.pay(rfc.kind, packet, marking.colour), "overdrawn: {packet:?} of flow {flow}, {rfc:?}");
        counts.worse += (marking.colour > best) as u64;
    }
}

/// `TATCELL_METER_PACKETS` sets how many packets a kind.
#[test]
fn colours_are_those_of_exact_buckets_and_never_better_than_the_rfcs() {
    const RATES: [(u64, u64); 5] = [
        (8_000, 64_000),
        (46_000_000, 69_000_000),
        (125_000_000, 1_250_000_000),
        (999_999_937, 1_000_000_007),
        (1_250_000_000, 1_250_000_000),
    ];
    const BURSTS: [(u64, u64); 3] = [(9_000, 9_000), (20_000, 100_000), (100_000, 30_000)];
    let runs = (RATES.len() * BURSTS.len() * 4) as u64;
    let each = size_from("TATCELL_METER_PACKETS", 1_200_000).div_ceil(runs);
    for kind in KINDS {
        let mut counts = Counts::default();
        for ((cir, rate2), (cbs, burst2)) in RATES.iter().flat_map(|r| BURSTS.map(|b| (*r, b))) {
            for (i, how) in
                [(false, false), (false, true), (true, false), (true, true)].into_iter().enumerate()
            {
                let seed = (cir ^ cbs << 32) + i as u64;
                let _shown = crate::common::Seed(seed);
                follow(rfc(kind, cir, cbs, rate2, burst2), how, each, &mut Rng(seed), &mut counts);
            }
        }
        println!("{kind:?}: {counts:?}");
        assert!(counts.packets >= each * runs && counts.back > counts.packets / 400);
        assert!(counts.colours.iter().all(|&n| n > counts.packets / 50), "{counts:?}");
    }
}

/// Where a unit takes a whole number of q-units nothing rounds: colours are those of the RFC's buckets, which run
/// beside the table without ever looking at it.
#[test]
fn colours_equal_the_rfcs_where_a_unit_is_a_whole_number_of_q_units() {
    for kind in KINDS {
        cases(4, |rng| {
            let (cbs, burst2) = rng.pick(&[(9_000, 9_000), (20_000, 100_000), (100_000, 30_000)]);
            let rfc = rfc(kind, 125_000_000, cbs, 250_000_000, burst2);
            let lines = memory(66);
            let table = Table::init(&lines, &options(rfc)).unwrap();
            let limits = specs(rfc).map(|spec| table.limit(&spec).unwrap());
            assert!(limits.iter().all(|limit| limit.info().rate_error_ppb == 0));
            let mut oracle = oracle::Oracle::new(rfc);
            let mut traffic = Traffic::new(rfc, rng.one_in(2), 10 * SECOND, 1 << 40);
            for i in 0..20_000 {
                let packet = traffic.next(rng);
                oracle.fill(packet.now);
                let colour = oracle.colour(packet.cost, packet.pre);
                oracle.charge(packet.cost, colour);
                let marking =
                    mark(rfc, &limits).check(&table, packet.now, 99, packet.cost, packet.pre).unwrap();
                assert_eq!(marking.colour, colour, "packet {i} {packet:?} of {rfc:?}: {oracle:?}");
            }
        });
    }
}

#[test]
fn a_cost_of_nothing_looks_and_red_stores_nothing() {
    for kind in KINDS {
        let rfc = rfc(kind, 1_000_000, 1_000, 2_000_000, 2_000);
        let lines = memory(10);
        let table = Table::init(&lines, &options(rfc)).unwrap();
        let limits = specs(rfc).map(|spec| table.limit(&spec).unwrap());
        let mark = mark(rfc, &limits);
        let ask = |cost, pre| mark.check(&table, 5, 77, cost, pre).unwrap().colour;
        assert_eq!([Green, Yellow, Red].map(|pre| ask(0, pre)), [Green, Yellow, Red]);
        assert_eq!((ask(2_001, Green), ask(2_001, Yellow), ask(1, Red)), (Red, Red, Red));
        assert_eq!(table.stats(5).live, 0);
        assert_eq!(ask(2_000, Yellow), Yellow);
        assert_eq!(table.stats(5).live, 1, "yellow pays the second limit alone");
        let left = table.peek(&limits[1], 5, second_hash(77), 0).unwrap();
        assert_eq!((left.remaining, ask(1, Yellow)), (0, Red));
        // What the peak refuses never reaches the committed limit; green of RFC 4115 never asks the excess one.
        let wanted = if kind == MeterKind::Rfc2698 { Red } else { Green };
        assert_eq!(ask(1_000, Green), wanted);
        let left = table.peek(&limits[0], 5, 77, 0).unwrap().remaining;
        assert_eq!(left, if wanted == Green { 0 } else { 1_000 });
    }
}

/// Never is red for good: above every burst that a packet of its colour may use.
#[test]
fn never_is_the_verdict_of_what_no_burst_can_hold() {
    let rfc = rfc(MeterKind::Rfc4115, 1_000_000, 2_000, 1_000_000, 1_000);
    let lines = memory(10);
    let table = Table::init(&lines, &options(rfc)).unwrap();
    let limits = specs(rfc).map(|spec| table.limit(&spec).unwrap());
    let ask = |now, cost, pre| mark(rfc, &limits).check(&table, now, 1, cost, pre).unwrap();
    assert_eq!(ask(0, 2_001, Green).verdict, Verdict::Never);
    assert_eq!(ask(0, 1_001, Yellow).verdict, Verdict::Never);
    assert_eq!(ask(0, 5_000, Red).verdict, Verdict::NonConforming);
    assert_eq!(ask(0, 2_000, Green).colour, Green);
    // Too much for the excess burst, but the committed one will have it.
    let refused = ask(0, 2_000, Green);
    assert_eq!((refused.verdict, refused.colour), (Verdict::NonConforming, Red));
    assert_eq!(ask(2_000_000, 2_000, Green).colour, Green);
}

// ---- bursts ---------------------------------------------------------------------------------------------------------

fn image(table: &Table<'_>, now: u64) -> Vec<u64> {
    let mut words = vec![0; table.image_words()];
    table.save(now, &mut words).unwrap();
    words
}

#[test]
fn bursts_mark_count_and_store_as_single_calls_do() {
    let mut seen = [0u64; 5];
    for (kind, policy) in KINDS.into_iter().flat_map(|kind| {
        [FullPolicy::Admit, FullPolicy::Deny, FullPolicy::Inherit].map(|policy| (kind, policy))
    }) {
        let rfc = rfc(kind, 8_000, 2_000, 16_000, 4_000);
        let (a, b, mut c) = (memory(6), memory(6), memory(6));
        let options = options(rfc).policy(policy);
        let singles = Table::init(&a, &options).unwrap();
        let bursts = Table::init(&b, &options).unwrap();
        let owned = ExclusiveTable::init_exclusive(&mut c, &options).unwrap();
        let limits = specs(rfc).map(|spec| singles.limit(&spec).unwrap());
        let mark = mark(rfc, &limits);
        let (mut rng, mut now, mut hashes) = (Rng(11), 1 << 44, Vec::<u64>::new());
        let mut counts = [Counters::default(); 2];
        for round in 0..400u64 {
            now += rng.scaled(27);
            let next: Vec<u64> = (0..rng.pick(&[0, 1, 7, 64]))
                .map(|_| {
                    let key = if rng.one_in(8) { rng.below(60) } else { rng.below(6) };
                    singles.hash(&key.to_le_bytes()).unwrap()
                })
                .collect();
            let n = hashes.len();
            let sizes: Vec<u32> = (0..n).map(|_| rng.pick(&[0, 64, 577, 1_500, 4_001])).collect();
            let pre: Vec<Colour> = (0..n).map(|_| rng.pick(&[Green, Green, Green, Yellow, Red])).collect();
            let (costs, pre) = ((round % 5 != 0).then_some(&sizes[..]), (round % 3 != 0).then_some(&pre[..]));
            let mut wanted = Marked::default();
            let mut wanted_colours = Vec::new();
            for (i, &hash) in hashes.iter().enumerate() {
                let (cost, pre) = (costs.map_or(1, |c| c[i].into()), pre.map_or(Green, |p| p[i]));
                let made = mark.check(&singles, now, hash, cost, pre).unwrap();
                wanted.pass |= (made.passes() as u64) << i;
                wanted.colours[made.colour as usize] += 1;
                wanted_colours.push(made.colour);
                seen[made.verdict as usize] += 1;
            }
            let burst = MarkBurst { mark: &mark, now, hashes: &hashes, costs, pre };
            // Counted and not, asked for before and not: all lead to the same colours and memory.
            let counter = if round % 2 == 0 { Some(&mut counts[0]) } else { None };
            let mut colours = vec![Red; n];
            assert_eq!(burst.check(&bursts, &mut colours, counter, &next), Ok(wanted), "round {round}");
            assert_eq!(colours, wanted_colours, "round {round}");
            colours.fill(Red);
            let made = burst.check_ahead(&owned, &mut colours, Some(&mut counts[1]), &next);
            assert_eq!((made, &colours), (Ok(wanted), &wanted_colours), "round {round}");
            hashes = next;
        }
        assert_eq!(image(&bursts, now)[16..], image(&singles, now)[16..]);
        let [_, counted] = counts;
        let all = counted.conforming + counted.non_conforming + counted.never + counted.contended;
        assert!(counted.conforming > 500 && counted.never > 50 && all > 5_000, "{counted:?}");
        assert!(
            counted.inserted > 60 && counts[0].inserted > 30 && counts[0].conforming < counted.conforming
        );
        seen[4] += counted.untracked + counted.inherited;
    }
    assert!(seen[..3].iter().all(|&n| n > 1_000) && seen[4] > 50, "every kind of answer comes up: {seen:?}");
}

/// Keys that find their set full, each asked for once: under each policy as singles count them.
#[test]
fn counters_tell_what_became_of_debts_without_a_slot() {
    let spec = LimitSpec::new(1, 1 << 12, 8);
    let policies = [FullPolicy::Admit, FullPolicy::Deny, FullPolicy::Inherit, FullPolicy::Sampled];
    for policy in policies {
        let (a, b) = (memory(4), memory(4));
        let options = TableOptions::new(spec).caller_hash().policy(policy);
        let tables = [&a, &b].map(|lines| Table::init(lines, &options).unwrap());
        let limit = tables[0].limit(&spec).unwrap();
        for table in &tables {
            (1..=16).for_each(|tag| assert!(table.check_hash(&limit, 0, tag, 1).unwrap().passes()));
        }
        let hashes: Vec<u64> = (100..164).collect();
        let mut wanted = Counters::default();
        for &hash in &hashes {
            let request = Request { limit: &limit, now: 0, cost: 1, room: 0 };
            // Refused as committed, asked again as excess.
            if !tables[0].check_ex(&request, hash, Some(&mut wanted)).unwrap().passes() {
                let _ = tables[0].check_ex(&request, second_hash(hash), Some(&mut wanted)).unwrap();
            }
        }
        let mark = Mark::rfc4115(&limit, &limit);
        let burst = MarkBurst { mark: &mark, now: 0, hashes: &hashes, costs: None, pre: None };
        let mut counters = Counters::default();
        burst.check(&tables[1], &mut [Red; 64], Some(&mut counters), &[]).unwrap();
        let slots = |c: &Counters| [c.untracked, c.inherited, c.forgiven, c.inserted];
        assert_eq!(slots(&counters), slots(&wanted), "{policy:?}");
        let what = match policy {
            FullPolicy::Inherit => wanted.inherited,
            FullPolicy::Sampled => wanted.forgiven,
            _ => wanted.untracked,
        };
        assert!(what > 0, "{policy:?}: {wanted:?}");
    }
}

/// A key of which both debts are one word, as set and tag have it: charged for both, with one owner, too.
#[test]
fn debts_that_share_a_word_by_chance_are_both_charged() {
    let hash = (1..).find(|&hash| hash & 0xfff == second_hash(hash) & 0xfff && hash & 0xfff != 0).unwrap();
    for kind in KINDS {
        let rfc = rfc(kind, 1_000, 5_000, 1_000, 5_000);
        let (a, mut b) = (memory(4), memory(4));
        let shared = Table::init(&a, &options(rfc)).unwrap();
        let owned = ExclusiveTable::init_exclusive(&mut b, &options(rfc)).unwrap();
        let limits = specs(rfc).map(|spec| shared.limit(&spec).unwrap());
        let mark = mark(rfc, &limits);
        for (i, cost) in [700, 300, 900, 600, 100, 1_200].into_iter().enumerate() {
            let one = mark.check(&shared, 5, hash, cost, Green).unwrap();
            assert_eq!(mark.check(&owned, 5, hash, cost, Green).unwrap(), one, "packet {i}");
            let left =
                |limit| (shared.peek(limit, 5, hash, 0).unwrap(), owned.peek(limit, 5, hash, 0).unwrap());
            let (a, b) = left(&limits[0]);
            assert_eq!((a.remaining, a.reset_after), (b.remaining, b.reset_after), "packet {i}");
        }
        let paid = 5_000 - shared.peek(&limits[0], 5, hash, 0).unwrap().remaining;
        assert_eq!(paid, if kind == MeterKind::Rfc2698 { 5_000 } else { 3_800 }, "{kind:?}");
    }
}

#[test]
fn what_cannot_be_marked_is_refused_and_changes_nothing() {
    let rfc = rfc(MeterKind::Rfc2698, 1_000_000, 2_000, 2_000_000, 4_000);
    let (a, b, c) = (memory(10), memory(10), memory(10));
    let table = Table::init(&a, &options(rfc)).unwrap();
    let other = Table::init(&b, &options(rfc).resolution(3)).unwrap();
    let windows = LimitSpec::fixed_window(100, SECOND);
    let counts = Table::init(&c, &TableOptions::new(windows).seed([3; 16])).unwrap();
    let limits = specs(rfc).map(|spec| table.limit(&spec).unwrap());
    let foreign = specs(rfc).map(|spec| other.limit(&spec).unwrap());
    let window = counts.limit(&windows).unwrap();
    let [committed, peak] = &limits;
    let good = Mark::rfc2698(committed, peak);
    for (mark, error) in [
        (Mark::rfc2698(&foreign[0], peak), TableError::ForeignLimit),
        (Mark::rfc2698(committed, &foreign[1]), TableError::ForeignLimit),
        (Mark::rfc4115(committed, &window), TableError::ForeignLimit),
        (Mark::rfc2698(peak, committed), TableError::PeakBelowCommitted),
    ] {
        assert_eq!(mark.check(&table, 0, 1, 1, Green), Err(error));
        let burst = MarkBurst { mark: &mark, now: 0, hashes: &[1], costs: None, pre: None };
        assert_eq!(burst.check(&table, &mut [Red], None, &[]), Err(error));
    }
    // An unlimited limit is of GCRA in any table, and so not of this one's words.
    let all = counts.unlimited();
    for (committed, excess) in [(&window, &window), (&all, &window), (&window, &all)] {
        let counted = Mark::rfc4115(committed, excess);
        assert_eq!(counted.check(&counts, 0, 1, 1, Green), Err(TableError::BadAlgorithm));
    }
    let many = [1u64; MAX_BURST + 1];
    let burst = MarkBurst { mark: &good, now: 0, hashes: &many[..2], costs: None, pre: None };
    let too_many = MarkBurst { hashes: &many, ..burst };
    assert_eq!(too_many.check(&table, &mut [Red; MAX_BURST + 1], None, &[]), Err(TableError::TooManyKeys));
    assert_eq!(burst.check(&table, &mut [Red; 2], None, &many), Err(TableError::TooManyKeys));
    for wrong in [
        MarkBurst { costs: Some(&[1]), ..burst },
        MarkBurst { pre: Some(&[Green; 3]), ..burst },
        MarkBurst { hashes: &many[..3], ..burst },
    ] {
        let table = TableRef::from(&table);
        assert_eq!(wrong.check_ahead(table, &mut [Red; 2], None, &[]), Err(TableError::BadCosts));
    }
    assert_eq!((table.stats(0).live, counts.stats(0).live), (0, 0));
    // A peak as fast as the committed rate is one, and slower limits may exceed.
    assert_eq!(Mark::rfc2698(committed, committed).check(&table, 0, 1, 1, Green).unwrap().colour, Green);
    assert_eq!(Mark::rfc4115(peak, committed).check(&table, 0, 2, 1, Green).unwrap().colour, Green);
    assert_eq!(table.stats(0).live, 3);
}

// ---- threads --------------------------------------------------------------------------------------------------------

/// Threads on a few flows and one counting clock: no envelope of either RFC is broken, and the committed one is used.
#[cfg(target_has_atomic = "64")] // its clock and its sums
#[test]
fn threads_break_no_envelope() {
    use std::sync::atomic::{AtomicU64, Ordering};

    const FLOWS: usize = 3;
    for kind in KINDS {
        let rfc = rfc(kind, 1_250_000_000, 20_000, 1_875_000_000, 30_000);
        let lines = memory(34);
        let table = Table::init(&lines, &options(rfc)).unwrap();
        let limits = &specs(rfc).map(|spec| table.limit(&spec).unwrap());
        let hashes: [u64; FLOWS] = std::array::from_fn(|i| table.hash(&[i as u8]).unwrap());
        let start = 1u64 << 40;
        let clock = AtomicU64::new(start);
        let passed: [[AtomicU64; 2]; FLOWS] = Default::default();
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let (clock, passed, table) = (&clock, &passed, &table);
                scope.spawn(move || {
                    let (mark, mut rng) = (mark(rfc, limits), Rng(seed));
                    for _ in 0..4_000 {
                        // Singles and bursts, each at one instant.
                        let n = rng.pick(&[1, 1, 2, 8]);
                        let now = clock.fetch_add(70 * n as u64, Ordering::Relaxed);
                        let flows: Vec<usize> = (0..n).map(|_| rng.below(FLOWS as u64) as usize).collect();
                        let costs: Vec<u32> = (0..n).map(|_| rng.within(64, 1_500) as u32).collect();
                        let keys: Vec<u64> = flows.iter().map(|flow| hashes[*flow]).collect();
                        let mut colours = vec![Red; n];
                        let burst =
                            MarkBurst { mark: &mark, now, hashes: &keys, costs: Some(&costs), pre: None };
                        burst.check(table, &mut colours, None, &[]).unwrap();
                        for ((flow, cost), colour) in flows.iter().zip(&costs).zip(&colours) {
                            if let Some(sum) = passed[*flow].get(*colour as usize) {
                                sum.fetch_add((*cost).into(), Ordering::Relaxed);
                            }
                        }
                    }
                });
            }
        });
        let ticks = (clock.into_inner() - start) as u128;
        let of = |rate: u64, burst: u64| burst as u128 + ticks * rate as u128 / SECOND as u128;
        let (committed, second) = (of(rfc.cir, rfc.cbs), of(rfc.rate2, rfc.burst2));
        for sums in passed {
            let [green, yellow] = sums.map(|sum| sum.into_inner() as u128);
            println!("{kind:?}: green {green} of {committed}, yellow {yellow}, second {second}");
            assert!(green <= committed && green > committed / 10 * 9 && yellow > 0);
            let paid = if kind == MeterKind::Rfc2698 { green + yellow } else { yellow };
            assert!(paid <= second);
        }
    }
}

//! The rows of everything but plain GCRA words: limits that count or decay, logs, meters, chains and pairs.
//!
//! Each limit admits twice what the stream asks for, so every decision conforms and stores.

use std::hint::black_box;

use tatcell::{lines_for, Cell, Chain, Colour, Limit, LimitSpec, Line, Link, Meter, MeterSpec, PairBurst};
use tatcell::{SlidingLog, Table, TableLimit, TableOptions};

use crate::cells::{decide, Apart, CELL, STEADY};
use crate::fixture::mix64;
use crate::fixtures::slots_for;
use crate::keys::Stream;
use crate::suite::{Body, Mix, Suite, DT};
use crate::tables::visits;

/// Requests of a key in a window.
const REQUESTS: u64 = 1 << 10;

/// Ticks between requests of one word: a decaying level needs more of them than other rows have.
const STEP: u64 = 8 * DT;

/// The limits of a key that comes every `visit` ticks, by the names of their rows.
fn limits(visit: u64) -> [(&'static str, LimitSpec); 4] {
    let window = REQUESTS * visit;
    [
        ("fixed_window", LimitSpec::fixed_window(2 * REQUESTS, window)),
        ("sliding_counter", LimitSpec::sliding_counter(2 * REQUESTS, window)),
        ("quota_linear", LimitSpec::quota_linear(2 * REQUESTS, window)),
        // The level settles at the half-life in visits, over ln 2: at half of the units.
        ("decay", LimitSpec::decay(3 * REQUESTS, REQUESTS * visit)),
    ]
}

pub fn add(suite: &mut Suite) {
    for (name, spec) in limits(STEP) {
        let (id, text) = (format!("algorithm.{name}"), format!("Cell, {name}"));
        suite.add(&id, &text, Mix::Pass, CELL, |_| cell(spec));
    }
    for (keys, size) in [(1_000, "1e3"), (1_000_000, "1e6")] {
        for (name, spec) in limits(u64::from(keys) * DT) {
            let (id, text) = (format!("algorithm{size}.{name}"), format!("{size} keys, {name}, single call"));
            suite.add(&id, &text, Mix::Pass, visits(keys), |_| table(keys, spec));
        }
    }
    suite.add("algorithm.log8", "SlidingLog of 8 stamps", Mix::Pass, CELL, |_| log::<8>());
    suite.add("algorithm.log64", "SlidingLog of 64 stamps", Mix::Pass, CELL, |_| log::<64>());
    // Packets of 1500 bytes every DT ns: 23.4 GB/s, of 40 that are committed.
    let (rate, burst, second) = (40_000_000_000, 1 << 20, 1_000_000_000);
    for (name, spec) in [
        ("rfc2697", MeterSpec::rfc2697(rate, burst, burst, second)),
        ("rfc2698", MeterSpec::rfc2698(rate, burst, 2 * rate, burst, second)),
        ("rfc4115", MeterSpec::rfc4115(rate, burst, rate, burst, second)),
    ] {
        let (id, text) = (format!("algorithm.{name}"), format!("Meter, {name}, green"));
        suite.add(&id, &text, Mix::Pass, CELL, |_| meter(spec));
    }
    suite.add("algorithm.chain2", "Chain of two cells", Mix::Pass, CELL, |_| chain::<2>());
    suite.add("algorithm.chain4", "Chain of four cells", Mix::Pass, CELL, |_| chain::<4>());
    for (keys, size) in [(1_000, "1e3"), (1_000_000, "1e6")] {
        let (id, text) = (
            format!("algorithm{size}.pairs32"),
            format!("{size} keys, two limits each, burst of 32, next prefetched"),
        );
        suite.add(&id, &text, Mix::Pass, visits(keys), |_| pairs(keys));
    }
}

fn cell(spec: LimitSpec) -> Body {
    let pair = Box::new(Apart((Cell::new(), spec.build().expect("a limit"))));
    let mut now = DT;
    Box::new(move |n| {
        let (cell, limit) = &black_box(&*pair).0;
        decide(n, &mut now, STEP, |now| cell.check(limit, now, 1).passes())
    })
}

fn log<const N: usize>() -> Body {
    let stamps: Box<Apart<[Cell; N]>> = Box::new(Apart(std::array::from_fn(|_| Cell::new())));
    let mut now = DT;
    Box::new(move |n| {
        let log = SlidingLog::new(&black_box(&*stamps).0, N as u64 / 2 * DT).expect("a log");
        decide(n, &mut now, DT, |now| log.check(now).passes())
    })
}

fn meter(spec: MeterSpec) -> Body {
    let pair = Box::new(Apart((Meter::new(), spec.build().expect("a meter"))));
    let mut now = DT;
    Box::new(move |n| {
        let (meter, limit) = &black_box(&*pair).0;
        decide(n, &mut now, DT, |now| meter.check(limit, now, 1_500, Colour::Green).colour == Colour::Green)
    })
}

/// Made for each request, as a chain is.
fn chain<const N: usize>() -> Body {
    let (units, period, burst) = STEADY;
    let limit = Limit::new(units, period, burst).expect("a limit");
    let cells: Box<[Apart<Cell>; N]> = Box::new(std::array::from_fn(|_| Apart(Cell::new())));
    let mut now = DT;
    Box::new(move |n| {
        let (cells, limit) = black_box((&*cells, &limit));
        decide(n, &mut now, DT, |now| {
            let links: [Link<'_>; N] = std::array::from_fn(|i| Link::cell(&cells[i].0, limit, 1));
            Chain::new(&links).is_ok_and(|chain| chain.check(now).passes())
        })
    })
}

/// Room for `slots` slots, for as long as the program runs.
fn memory(slots: usize) -> &'static [Line] {
    let lines = lines_for(slots);
    Box::leak((0..lines).map(|_| Line::new()).collect::<Vec<_>>().into_boxed_slice())
}

fn table(keys: u32, spec: LimitSpec) -> Body {
    let options = TableOptions::new(spec).caller_hash().tag_bits(12);
    let table = Table::init(memory(slots_for(keys as usize)), &options).expect("a table");
    let limit = table.limit(&spec).expect("a limit");
    let mut stream = Stream::uniform(keys);
    let mut now = DT;
    Box::new(move |n| {
        let (ids, turn) = stream.take(n as usize);
        let mut ids = ids.iter();
        decide(n, &mut now, DT, |now| {
            let hash = mix64(&table, ids.next().map_or(0, |id| turn.id(*id)));
            table.check_hash(&limit, now, hash, 1).is_ok_and(|o| o.passes())
        })
    })
}

fn pairs(keys: u32) -> Body {
    let period = u64::from(keys) * DT / 2;
    let packets = LimitSpec::new(1, period, 32);
    let bytes = LimitSpec::new(1_500, period, 48_000);
    let options = TableOptions::new(bytes).slowest(packets).caller_hash();
    let table = Table::init(memory(2 * slots_for(keys as usize)), &options).expect("a table");
    let limits: [TableLimit; 2] = [packets, bytes].map(|spec| table.limit(&spec).expect("a limit"));
    let mut stream = Stream::uniform(keys);
    let mut now = DT;
    Box::new(move |n| {
        let (ids, turn) = stream.take(n as usize);
        let costs = [1_500; 32];
        let hashes = |ids: &[u32]| -> [u64; 32] { std::array::from_fn(|i| mix64(&table, turn.id(ids[i]))) };
        let mut bursts = ids.chunks_exact(32).map(hashes);
        let (mut passed, mut ahead) = (0, false);
        let mut next = bursts.next();
        while let Some(hashes) = next {
            next = bursts.next();
            now += 32 * DT;
            let burst = PairBurst {
                limits: [&limits[0], &limits[1]],
                now,
                hashes: &hashes,
                costs: [None, Some(&costs)],
            };
            let after = next.as_ref().map_or(&[][..], |next| &next[..]);
            let pass = match ahead {
                true => burst.check_ahead(&table, None, after),
                false => burst.check(&table, None, after),
            };
            ahead = true;
            passed += u64::from(pass.unwrap_or(0).count_ones());
        }
        passed
    })
}

//! Two threads compared with one: distinct keys of one table, one denied key, one hot key with and without leases, one
//! hot key of a table. [`thread_floors`](crate::thread_floors) has the bare operations, which show what the machine
//! allows.
//!
//! Rows come in pairs, `_1` and `_2`: the same loop on one thread and on two. The number is ns per decision of all
//! threads together, so two threads that do not disturb each other take half. `handover` is the least cost if they do:
//! two processors write one cache line in turn.

use std::cell::Cell as Now;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tatcell::{lines_for, Cell, Lease, Limit, LimitSpec, Shared, Table, TableOptions};

use crate::cells::{decide, Apart, BATCH, HOT, SPENT};
use crate::cpu::{pin_to, wall_ns, Cpus};
use crate::crew::{crew, Member};
use crate::fixture::Fixture;
use crate::fixtures::{Fixtures, Hashing, Order, What};
use crate::keys::{key, Stream};
use crate::memory::Memory;
use crate::steps::{ahead, single};
use crate::suite::{Mix, Suite, Visit, DT};
use crate::tables::{Step, LARGEST};

const KEYS: u32 = 1_000_000;
/// Short, so that a busy machine lets both threads finish now and then, but longer than a thread takes to warm up.
pub const TABLE: (u64, u64) = (1 << 18, 1 << 16);
pub const CELL: (u64, u64) = (1 << 15, 1 << 18);
pub const ONE_WORD: (u64, u64) = (1 << 13, 1 << 15);

pub fn add(suite: &mut Suite, fixtures: &mut Fixtures, cpus: Option<Cpus>) {
    let Some(cpu) = cpus.and_then(|cpus| cpus.other) else {
        suite.skip("threads.", "needs two processors that a thread can be pinned to");
        return;
    };
    let steady = What { order: Order::Threads, ..What::new(KEYS) };
    let turns = What { order: Order::EachTurn, ..What::new(KEYS) };
    let largest = What { order: Order::EachTurn, ..What::new(LARGEST) };
    for (name, text, what, steps) in [
        ("", "1e6 keys", steady, steps::<{ KEYS as u64 / 2 }>()),
        ("stagger_", "1e6 keys, staggered", turns, steps::<{ KEYS as u64 / 2 }>()),
        ("1e8_", "1e8 keys, staggered", largest, steps::<{ LARGEST as u64 / 2 }>()),
    ] {
        let clock = Rc::new(Now::new(1 << 41));
        for (call, how, lower, upper) in steps {
            for (threads, who) in [(1, "one thread"), (2, "two, distinct keys")] {
                let (id, text) = (format!("threads.{name}{call}_{threads}"), format!("{text}, {how}, {who}"));
                suite.add_crew(&id, &text, Mix::Pass, TABLE, |notes| {
                    let fixture = fixtures.get(what, notes);
                    let fixture = fixture.borrow();
                    // What has been made later may have decided later.
                    clock.set(clock.get().max(fixture.now));
                    let stream = |keys| match what.order {
                        Order::EachTurn => Stream::turns(keys),
                        _ => Stream::uniform(keys),
                    };
                    let part = |step, keys| OnTable { fixture: fixture.with(stream(keys)), step };
                    let members = match threads {
                        1 => vec![part(lower, what.keys)],
                        _ => vec![part(lower, what.keys / 2), part(upper, what.keys / 2)],
                    };
                    crew(members, cpu, clock.clone())
                });
            }
        }
    }
    let lease = format!("one hot key, Lease of {BATCH}");
    for (id, what, mix, rivals, spec, batch) in [
        ("denied", "one denied key, Cell", Mix::Deny, Mix::Deny, SPENT, None),
        ("lease", lease.as_str(), Mix::Pass, Mix::Pass, HOT, Some(BATCH)),
        ("hot", "one hot key, Cell", Mix::Pass, Mix::Rivals, HOT, None),
    ] {
        for (threads, text, mix) in [(1, "one thread", mix), (2, "two threads", rivals)] {
            let (id, text) = (format!("threads.{id}_{threads}"), format!("{what}, {text}"));
            let visit = if batch.is_none() && mix != Mix::Deny { ONE_WORD } else { CELL };
            suite.add_crew(&id, &text, mix, visit, |_| crew(on_cell(threads, spec, batch), cpu, start()));
        }
    }
    for (threads, text) in [(1, "one thread"), (2, "two threads")] {
        let mix = if threads == 1 { Mix::Pass } else { Mix::Rivals };
        let (id, text) = (format!("threads.hot_key_{threads}"), format!("one hot key of a table, {text}"));
        suite.add_crew(&id, &text, mix, ONE_WORD, |_| crew(on_one_key(threads), cpu, start()));
    }
    suite.add_crew(
        "threads.handover",
        "one line written in turn, each time",
        Mix::Bare,
        (64, 1 << 13),
        |_| Box::new(move |n| hand_over(n, cpu)),
    );
}

type Call = (&'static str, &'static str, Step<Shared>, Step<Shared>);

/// Ways to call, for the first thread and for the second, whose keys begin at HALF.
fn steps<const HALF: u64>() -> [Call; 2] {
    [
        (
            "ahead64",
            "64 ahead",
            |fixture, n| ahead::<_, 64, 16>(fixture, n, key),
            |fixture, n| ahead::<_, 64, 16>(fixture, n, |id| key(id + HALF)),
        ),
        (
            "single",
            "single call",
            |fixture, n| single(fixture, n, key),
            |fixture, n| single(fixture, n, |id| key(id + HALF)),
        ),
    ]
}

pub fn start() -> Rc<Now<u64>> {
    Rc::new(Now::new(DT))
}

struct OnTable {
    fixture: Fixture<Shared>,
    step: Step<Shared>,
}

impl Member for OnTable {
    fn decide(&mut self, n: u64) -> u64 {
        (self.step)(&mut self.fixture, n)
    }

    fn now(&mut self) -> Option<&mut u64> {
        Some(&mut self.fixture.now)
    }
}

struct OnCell {
    cell: &'static Apart<Cell>,
    limit: &'static Apart<Limit>,
    lease: Option<Lease>,
    now: u64,
}

fn on_cell(
    threads: usize,
    (units, period, burst): (u64, u64, u64),
    batch: Option<u32>,
) -> Vec<Apart<OnCell>> {
    let cell: &Apart<Cell> = Box::leak(Box::new(Apart(Cell::new())));
    let limit = Limit::new(units, period, burst).expect("a limit");
    let limit: &Apart<Limit> = Box::leak(Box::new(Apart(limit)));
    let _ = cell.0.check(&limit.0, DT, 1);
    let member = |_| Apart(OnCell { cell, limit, lease: batch.map(Lease::with_batch), now: DT });
    (0..threads).map(member).collect()
}

impl Member for Apart<OnCell> {
    fn decide(&mut self, n: u64) -> u64 {
        let OnCell { cell, limit, lease, now } = &mut self.0;
        let (cell, limit) = (&cell.0, &limit.0);
        match lease {
            Some(lease) => decide(n, now, DT, |now| lease.check(cell, limit, now, 1).passes()),
            None => decide(n, now, DT, |now| cell.check(limit, now, 1).passes()),
        }
    }

    fn now(&mut self) -> Option<&mut u64> {
        Some(&mut self.0.now)
    }
}

/// Each thread asks for the one key of a table that they share.
fn on_one_key(threads: usize) -> Vec<OnTable> {
    let (units, period, burst) = HOT;
    let spec = LimitSpec::new(units, period, burst);
    let options = TableOptions::new(spec).hash(Hashing::Fast.kind()).seed(*b"not so secret 16");
    let table = Table::init(Memory::new(lines_for(16) * 64).lines(), &options).expect("a table");
    let limit = table.limit(&spec).expect("a limit");
    let stream = || Stream::cycle(vec![0; 1 << 12]);
    let fixture = |_| Fixture { table, limit, stream: stream(), now: DT, fresh: 0 };
    (0..threads)
        .map(|i| OnTable { fixture: fixture(i), step: |fixture, n| single(fixture, n, key) })
        .collect()
}

/// n times in turn: wait for the other's number, write the next one.
fn hand_over(n: u64, cpu: usize) -> Visit {
    let word = Apart(AtomicU64::new(u64::MAX));
    let turns = |first: u64| {
        for turn in (first..n).step_by(2) {
            while word.0.load(Relaxed) != turn {}
            word.0.store(turn + 1, Relaxed);
        }
    };
    let wall = std::thread::scope(|scope| {
        scope.spawn(|| {
            pin_to(cpu);
            // Both are there: the first turn may begin.
            word.0.store(0, Relaxed);
            turns(1);
        });
        while word.0.load(Relaxed) == u64::MAX {}
        let from = wall_ns();
        turns(0);
        wall_ns() - from
    });
    let each = wall as f64 / n as f64;
    Visit { made: n, passed: n, cpu: each, wall: each, together: true }
}

//! Two threads beside one: distinct keys of one table, one denied key, one hot key with and without leases.
//!
//! Rows come in pairs, `_1` and `_2`: the same loop on one thread and on two; ns per decision of all threads
//! together, so two threads that do not disturb each other take half. `handover` is what it costs at least when they
//! do: one cache line that two processors write in turn.

use std::cell::Cell as Now;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tatcell::{Cell, Lease, Limit, Shared};

use crate::beds::{keyed, Bed, Beds, Order, What};
use crate::cells::{decide, Apart, BATCH, HOT, SPENT};
use crate::cpu::{pin_to, wall_ns, Cpus};
use crate::crew::{visit, Member};
use crate::keys::{key, Stream};
use crate::steps::{ahead, single};
use crate::suite::{Crew, Mix, Suite, Visit, DT};
use crate::tables::Step;

const KEYS: u32 = 1_000_000;
/// The second thread's keys, from here on, are never asked for by the first.
const HALF: u64 = 500_000;
/// Short, so that a busy machine lets both threads finish now and then.
const TABLE: (u64, u64) = (1 << 18, 1 << 16);
const CELL: (u64, u64) = (1 << 15, 1 << 18);

pub fn add(suite: &mut Suite, beds: &mut Beds, cpus: Option<Cpus>) {
    let Some(cpu) = cpus.and_then(|cpus| cpus.other) else {
        suite.skip("threads.", "needs two processors that a thread can be pinned to");
        return;
    };
    let now = Rc::new(Now::new(1 << 41));
    let one: [Step<Shared>; 2] = [|bed, n| ahead::<_, 64, 16>(bed, n, key), |bed, n| single(bed, n, keyed)];
    let upper: [Step<Shared>; 2] = [
        |bed, n| ahead::<_, 64, 16>(bed, n, |id| key(id + HALF)),
        |bed, n| single(bed, n, |table, id| keyed(table, id + HALF)),
    ];
    for (i, name, text) in [(0, "ahead64", "64 ahead"), (1, "single", "single call")] {
        let mut add = |threads: usize| {
            let text = format!("1e6 keys, {text}, {}", ["one thread", "two, distinct keys"][threads - 1]);
            let id = format!("threads.{name}_{threads}");
            suite.add_crew(&id, &text, Mix::Pass, TABLE, |notes| {
                let bed = beds.get(What { order: Order::Threads, ..What::new(KEYS) }, notes);
                let bed = bed.borrow();
                let part = |step, keys| OnTable { bed: bed.with(Stream::uniform(keys)), step };
                let members = match threads {
                    1 => vec![part(one[i], KEYS)],
                    _ => vec![part(one[i], KEYS / 2), part(upper[i], KEYS / 2)],
                };
                crew(members, cpu, now.clone())
            });
        };
        add(1);
        add(2);
    }
    let lease = format!("one hot key, Lease of {BATCH}");
    for (id, what, mix, rivals, spec, batch) in [
        ("denied", "one denied key, Cell", Mix::Deny, Mix::Deny, SPENT, None),
        ("lease", lease.as_str(), Mix::Pass, Mix::Pass, HOT, Some(BATCH)),
        ("hot", "one hot key, Cell", Mix::Pass, Mix::Rivals, HOT, None),
    ] {
        for (threads, text, mix) in [(1, "one thread", mix), (2, "two threads", rivals)] {
            let (id, text) = (format!("threads.{id}_{threads}"), format!("{what}, {text}"));
            suite.add_crew(&id, &text, mix, CELL, |_| crew(on_cell(threads, spec, batch), cpu, start()));
        }
    }
    suite.add_crew(
        "threads.handover",
        "one line written in turn, each time",
        Mix::Bare,
        (64, 1 << 13),
        |_| Box::new(move |n| hand_over(n, cpu)),
    );
}

fn start() -> Rc<Now<u64>> {
    Rc::new(Now::new(DT))
}

/// Rows over one table share its clock.
fn crew<M: Member + 'static>(mut members: Vec<M>, cpu: usize, clock: Rc<Now<u64>>) -> Crew {
    Box::new(move |n| {
        let mut now = clock.get();
        let visit = visit(&mut members, cpu, n, &mut now);
        clock.set(now);
        visit
    })
}

struct OnTable {
    bed: Bed<Shared>,
    step: Step<Shared>,
}

impl Member for OnTable {
    fn decide(&mut self, n: u64) -> u64 {
        (self.step)(&mut self.bed, n)
    }

    fn now(&mut self) -> &mut u64 {
        &mut self.bed.now
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

    fn now(&mut self) -> &mut u64 {
        &mut self.0.now
    }
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

//! A coarse clock next to a fine one: real threads on the real clock, which takes about a second.

use super::{monotonic, Rate, DEFAULT_SKEW};
use crate::common::memory;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::Barrier;
use tatcell::{Cell, Outcome, Table, TableOptions};

const MS: u64 = 1_000_000;
const PER_SECOND: Rate = Rate { units: 1_000, period: 1_000 * MS, burst: 20 };
/// Its burst time is 1 ms.
const PER_MICROSECOND: Rate = Rate { units: 1_000_000, period: 1_000 * MS, burst: 1_000 };
/// 10 Gbit/s in bytes, for a cell whose span is below a year.
const BYTES: Rate = Rate { units: 1_250_000_000, period: 1_000 * MS, burst: 1_000_000 };
const FRAME: u64 = 50_000;

/// What two threads were given, in units, and how far the oldest reading lay back when it had been used.
struct Run {
    keyed: u64,
    bytes: u64,
    elapsed: u64,
    oldest: u64,
}

impl Run {
    /// Two threads ask for one key of a table and for one cell, one by the clock as it is, the other by the clock
    /// rounded down to `grain`. They ask at the same time, but neither does so for long without the other, however
    /// busy the processors are.
    fn new(rate: Rate, grain: u64, ms: u64, one_burst_time: bool) -> Run {
        let (mut options, mut wide) = (TableOptions::new(rate.spec()).caller_hash(), BYTES.spec());
        if one_burst_time {
            (options, wide) = (options.skew(rate.burst_time()), wide.skew(BYTES.burst_time()));
        }
        let (lines, cell, cost) = (memory(4), Cell::new(), rate.burst / 20);
        let table = Table::init(&lines, &options).unwrap();
        let (limit, wide) = (table.limit(&rate.spec()).unwrap(), wide.build().unwrap());
        let [keyed, bytes, oldest] = [const { AtomicU64::new(0) }; 3];
        let (over, turn) = (AtomicBool::new(false), Barrier::new(2));
        // At or before every reading of both, so that what has elapsed since contains the grain.
        let begin = monotonic() / grain * grain;
        let end = monotonic() + ms * MS;
        let ask = |grain: u64| loop {
            if grain == 1 {
                over.store(monotonic() > end, SeqCst);
            }
            turn.wait();
            if over.load(SeqCst) {
                break;
            }
            for _ in 0..30 {
                let now = monotonic() / grain * grain;
                let passed = [
                    table.check_hash(&limit, now, 7, cost) == Ok(Outcome::Conforming),
                    cell.check(&wide, now, FRAME).passes(),
                ];
                keyed.fetch_add(cost * u64::from(passed[0]), SeqCst);
                bytes.fetch_add(FRAME * u64::from(passed[1]), SeqCst);
                oldest.fetch_max(monotonic() - now, SeqCst);
            }
            // Both have seen `over`.
            turn.wait();
        };
        std::thread::scope(|scope| {
            scope.spawn(|| ask(1));
            scope.spawn(|| ask(grain));
        });
        let all = [keyed, bytes, oldest].map(|n| n.into_inner());
        Run { keyed: all[0], bytes: all[1], oldest: all[2], elapsed: monotonic() - begin }
    }
}

/// At most B + (elapsed + grain) / T by the fine clock: the first reading may be a coarse one, older by up to `grain`.
#[test]
fn a_coarse_clock_beside_a_fine_one_admits_at_most_the_bound() {
    for (rate, grain) in
        [(PER_SECOND, 4 * MS), (PER_SECOND, 50 * MS), (PER_MICROSECOND, 4 * MS), (PER_MICROSECOND, 50 * MS)]
    {
        // A run whose threads were held back by more than the skew shows nothing.
        let run = (0..5).map(|_| Run::new(rate, grain, 200, false)).find(|run| run.oldest <= DEFAULT_SKEW);
        let run = run.expect("in none of five runs were all readings used within the skew");
        let bounds = [rate.most_within(run.elapsed), BYTES.most_within(run.elapsed)];
        let Run { keyed, bytes, oldest, .. } = run;
        println!("{rate:?}, clock of {grain} ns: {keyed} and {bytes} B admitted, at most {bounds:?}; oldest {oldest}");
        assert!(keyed <= bounds[0], "{rate:?}, clock of {grain} ns: {keyed} units above {}", bounds[0]);
        assert!(bytes <= bounds[1], "clock of {grain} ns: {bytes} bytes above {}", bounds[1]);
        assert!(keyed > rate.burst && bytes > BYTES.burst, "{keyed} units and {bytes} bytes show nothing");
    }
}

#[test]
fn control_a_skew_of_one_burst_time_mints_by_a_coarse_clock() {
    for (rate, grain) in [(PER_SECOND, 50 * MS), (PER_MICROSECOND, 4 * MS)] {
        let mut minted = [false; 2];
        for run in (0..20).map(|_| Run::new(rate, grain, 100, true)) {
            let bounds = [rate.most_within(run.elapsed), BYTES.most_within(run.elapsed)];
            let Run { keyed, bytes, .. } = run;
            println!("control, clock of {grain} ns: {keyed} and {bytes} B admitted, bounds {bounds:?}");
            minted = [minted[0] | (keyed > bounds[0]), minted[1] | (bytes > bounds[1])];
            if minted == [true; 2] {
                break;
            }
        }
        assert_eq!(minted, [true; 2], "{rate:?}, clock of {grain} ns: the test above cannot fail");
    }
}

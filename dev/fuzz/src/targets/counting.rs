//! The counting algorithms, in cells and in slots: each answers as its definition does, and every answer keeps its
//! promises (`frame::ask`).

use tatcell::{
    Decision, ExclusiveCell, Limit, LimitSpec, Request, SlidingLog, Table, TableOptions, Tracking, Verdict,
};

use super::pool::piece;
use crate::data::Data;
use crate::{decay, fixed_window, frame, quota_linear, sliding_counter, sliding_log};

/// A definition of one of them.
enum Oracle {
    Fixed(fixed_window::Oracle),
    Sliding(sliding_counter::Oracle),
    Quota(quota_linear::Oracle),
    Decay(decay::Oracle),
}

impl Oracle {
    /// The answer is that of the definition; `forgotten`: the key was full before.
    fn judge(&mut self, now: u64, cost: u64, made: &Decision, forgotten: bool) {
        let want = match self {
            Oracle::Fixed(oracle) => oracle.check(now, cost),
            Oracle::Sliding(oracle) => {
                let want = oracle.check(now, cost);
                assert_eq!(made.remaining, oracle.remaining(now), "remaining at {now}");
                want
            }
            Oracle::Quota(oracle) => oracle.check(now, cost),
            Oracle::Decay(oracle) => {
                oracle.judge(now, cost, made, forgotten);
                if made.passes() {
                    oracle.charged(now, cost as f64, forgotten);
                }
                return;
            }
        };
        assert_eq!(made.verdict, want, "{cost} at {now}");
    }
}

fn limit(data: &mut Data<'_>) -> Option<(LimitSpec, Limit, Oracle)> {
    let kind = data.below(5);
    let window = 1 + data.scaled(36);
    let coarse = data.below(64 - u64::from(window.leading_zeros())) as i8;
    let units = 1 + data.scaled(20);
    let coarser = |spec: LimitSpec| if coarse > 0 { spec.resolution(-coarse) } else { spec };
    let (spec, phase) = match kind {
        0 => (LimitSpec::fixed_window(units, window), None),
        1 => {
            let phase = data.scaled(36) % window;
            (LimitSpec::fixed_window(units, window).aligned(phase), Some(phase))
        }
        2 => (coarser(LimitSpec::sliding_counter(units, window)), None),
        3 => (coarser(LimitSpec::quota_linear(units, window)), None),
        _ => (LimitSpec::decay(units, units * 100 + window), None),
    };
    let limit = spec.build().ok()?;
    let oracle = match kind {
        0 | 1 => Oracle::Fixed(fixed_window::Oracle::new(&limit, phase)),
        2 => Oracle::Sliding(sliding_counter::Oracle::new(&limit)),
        3 => Oracle::Quota(quota_linear::Oracle::new(&limit)),
        _ => Oracle::Decay(decay::Oracle::new(&limit)),
    };
    Some((spec, limit, oracle))
}

/// A clock that goes where it hurts: around the ends of windows, back within the skew, idle for up to a span.
struct Clock {
    now: u64,
    top: u64,
    window: u64,
    skew: u64,
    idle: u64,
}

impl Clock {
    fn step(&mut self, data: &mut Data<'_>) {
        let w = self.window;
        self.top += match data.byte() & 15 {
            0 => data.word() % self.idle,
            1 => {
                self.now = self.top - data.scaled(50).min(self.skew);
                return;
            }
            2 | 3 => (w - 1).saturating_add(data.below(3)),
            4 | 5 => data.below(3),
            6..=9 => data.scaled(40) % (w / 4 + 2),
            10 => data.scaled(40) % (3 * w + 1),
            _ => data.below(256) % (w / 8 + 2),
        };
        self.now = self.top;
    }
}

fn cost(data: &mut Data<'_>, units: u64) -> u64 {
    match data.byte() & 15 {
        0 => units,
        1 => units + 1 + data.below(3),
        2..=5 => 1 + data.scaled(20) % units,
        _ => 1,
    }
}

pub fn run(input: &[u8]) {
    let data = &mut Data(input);
    if data.below(6) == 0 {
        return log(data);
    }
    let Some((spec, limit, mut oracle)) = limit(data) else { return };
    let info = limit.info();
    // So that even a reading S behind the next one decodes as expired.
    let idle = info.span.saturating_sub(2 * info.skew + 2 * info.horizon).clamp(1, 1 << 54);
    let top = (1 << 52) + data.scaled(54);
    let mut clock = Clock { now: top, top, window: info.period, skew: info.skew.min(1 << 50), idle };
    let mut cell = ExclusiveCell::new();
    let memory = piece();
    // Where a slot has the bits for it, it answers as a cell in the table's unit of time, while its words do not wrap.
    let table = Table::init(memory.lines(6), &TableOptions::new(spec).caller_hash()).ok();
    let mut slots = table.as_ref().and_then(|table| {
        let like = spec.resolution(table.resolution() as i8).build().ok()?;
        let limit = table.limit(&spec).ok()?;
        // The key has its slot already, long expired: the window of an insert lasts as long as a claim at least.
        let early = top.wrapping_sub(limit.info().span >> 1);
        assert!(table.check_hash(&limit, early, 77, 1).is_ok_and(|made| made.passes()));
        Some((table, limit, like))
    });
    let mut twin = ExclusiveCell::new();
    let mut stored = top;
    while !data.is_empty() && clock.top < 1 << 61 {
        clock.step(data);
        if clock.top - stored > idle {
            // Several idle times, of one span together, without a charge in between: a false debt, which sweeps remove.
            break;
        }
        let (now, cost) = (clock.now, cost(data, limit.burst()));
        let forgotten = cell.peek(&limit, now, 1).remaining == limit.burst();
        let made = frame::ask(&mut cell, &limit, now, cost);
        oracle.judge(now, cost, &made, forgotten);
        if made.passes() {
            stored = clock.top;
        }
        if let Some((table, limit, like)) = slots {
            // A slot has another skew and another span than a cell.
            let slot = limit.info();
            if clock.top - now > slot.skew || clock.top - top > slot.span >> 3 {
                slots = None;
                continue;
            }
            let made = twin.check_ex(&like, now, cost, 0);
            let request = Request { limit: &limit, now, cost, room: 0 };
            let slot = table.check_ex(&request, 77, None).expect("its own limit");
            assert_eq!(slot.tracking, Tracking::Tracked);
            let of = |d: &Decision| (d.verdict, d.remaining, d.retry_after, d.reset_after);
            assert_eq!(of(&slot), of(&made), "{spec:?} now {now} cost {cost}");
        }
    }
}

/// The log, whose oracle is a list.
fn log(data: &mut Data<'_>) {
    let units = 1 + data.below(12) as usize;
    let window = 1 + data.scaled(34);
    let skew = data.pick(&[0, 1, window / 2, window, 20 * window]);
    let shared: Vec<_> = (0..units).map(|_| tatcell::Cell::new()).collect();
    let mut own = vec![ExclusiveCell::new(); units];
    let (mut oracle, mut newest) = (sliding_log::Oracle::default(), 0);
    let top = (1 << 20) + 40 * window + data.scaled(60);
    let mut clock = Clock { now: top, top, window, skew, idle: 1 << 40 };
    assert!(SlidingLog::new(&shared, window).is_ok_and(|log| log.skew(skew).is_ok()));
    while !data.is_empty() && clock.top < 1 << 61 {
        clock.step(data);
        let now = clock.now;
        let inside = oracle.inside(now, window);
        let made = sliding_log::ask(&shared, &mut own, window, skew, now);
        // Of clocks that only go forward the answer is that of the list.
        assert!(now < newest || made.passes() == (inside < units));
        if made.passes() {
            oracle.admit(now);
            newest = newest.max(now);
            assert!(oracle.holds(now, window, units), "more than {units} in a window around {now}");
        } else {
            assert!(
                made.verdict == Verdict::NonConforming && inside >= units,
                "refused with {inside} of {units}"
            );
        }
    }
}

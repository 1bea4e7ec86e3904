//! Shared by the tests of counting algorithms: a clock that steps where it hurts, and the promises of every answer.

use crate::common::Rng;
use tatcell::{Cell, Decision, ExclusiveCell, Limit, LimitError, LimitInfo, LimitSpec, Verdict};

/// A clock in ticks: mostly small steps; to the borders of windows; back by up to the skew; idle for up to a span.
pub struct Clock {
    pub now: u64,
    /// The latest reading so far.
    pub top: u64,
    window: u64,
    skew: u64,
    idle: u64,
}

impl Clock {
    /// A clock for this limit that starts at some time after 2^52 ticks.
    pub fn new(rng: &mut Rng, limit: &Limit) -> Clock {
        Clock::of(rng, &limit.info())
    }

    /// The same for what any limit tells of itself.
    pub fn of(rng: &mut Rng, info: &LimitInfo) -> Clock {
        let top = (1 << 52) + rng.below(1 << 55);
        // So that even a reading S behind the next one decodes as expired.
        let idle = info.span.saturating_sub(2 * info.skew + 2 * info.horizon).clamp(1, 1 << 54);
        Clock { now: top, top, window: info.period, skew: info.skew.min(1 << 50), idle }
    }

    pub fn step(&mut self, rng: &mut Rng) {
        let w = self.window;
        self.top += match rng.below(1_000) {
            0 => rng.below(self.idle),
            1..=20 => rng.below(3 * w),
            21..=120 => {
                self.now = self.top - rng.below(self.skew + 1).min(rng.scaled(51));
                return;
            }
            121..=170 => w - 1 + rng.below(3),
            171..=230 => rng.below(3),
            231..=400 => rng.below(w / 64 + 2),
            _ => rng.below(w / 8 + 2),
        };
        self.now = self.top;
    }
}

/// A cost: mostly 1, sometimes all that a limit allows, sometimes more.
pub fn cost(rng: &mut Rng, units: u64) -> u64 {
    match rng.below(16) {
        0 => 1 + rng.below(units),
        1..=3 => 1 + rng.below(units / 4 + 1),
        4 if rng.one_in(8) => units + 1 + rng.below(3),
        _ => 1,
    }
}

/// Checks that specifications are refused, each with its error. And `good` fits no 32-bit word and reserves nothing.
pub fn refuses(good: LimitSpec, bad: &[(LimitSpec, LimitError)]) {
    for (spec, error) in bad {
        assert_eq!(spec.build().unwrap_err(), *error, "{spec:?}");
    }
    assert_eq!(good.build32().unwrap_err(), LimitError::BadAlgorithm);
    let (limit, cell) = (good.build().unwrap(), Cell::new());
    assert_eq!((cell.reserve(&limit, 5, 1).verdict, cell.word()), (Verdict::Never, 0));
}

/// Asks a shared and an exclusive cell that hold the same word, and the short and the full call: all agree. Checks what
/// every answer promises, and returns it.
pub fn ask(cell: &mut ExclusiveCell, limit: &Limit, now: u64, cost: u64) -> Decision {
    let before = cell.clone();
    let looked = before.peek(limit, now, cost);
    let shared = Cell::from_word(before.word());
    let made = shared.check_ex(limit, now, cost, 0);
    let short = cell.check(limit, now, cost);
    assert_eq!(short, made.outcome(), "short and full call differ");
    assert_eq!(shared.word(), cell.word(), "shared and exclusive cell differ");
    assert_eq!(looked.outcome(), made.outcome(), "a look promises another answer");
    assert_eq!(made.burst, limit.burst());
    assert!(made.remaining <= made.burst);
    let at = |cell: &ExclusiveCell, now: u64, cost: u64| cell.clone().check(limit, now, cost).passes();
    // What remains conforms now, and one more does not.
    if made.remaining > 0 {
        assert!(at(cell, now, made.remaining), "what remains does not conform: {made:?}");
    }
    if made.remaining < made.burst {
        assert!(!at(cell, now, made.remaining + 1), "more than what remains conforms: {made:?}");
        assert!(at(cell, now + made.next_unit, made.remaining + 1), "no next unit: {made:?}");
        assert!(!at(cell, now + made.next_unit - 1, made.remaining + 1), "a unit comes early: {made:?}");
        assert!(at(cell, now + made.reset_after, made.burst), "not full after the reset: {made:?}");
        assert!(!at(cell, now + made.reset_after - 1, made.burst), "full before the reset: {made:?}");
    } else {
        assert_eq!((made.next_unit, made.reset_after), (0, 0), "full, and still waits: {made:?}");
    }
    match made.verdict {
        Verdict::Conforming => {
            assert_eq!((made.retry_after, made.permit.stored), (0, cost));
            assert_eq!(made.departure, now);
        }
        Verdict::NonConforming => {
            assert_eq!(cell.word(), before.word(), "a refusal wrote");
            let wait = made.retry_after;
            assert!(at(cell, now + wait, cost), "refused after the wait: {made:?}");
            assert!(!at(cell, now + wait - 1, cost), "conforms before the wait is over: {made:?}");
        }
        Verdict::Never => {
            assert!(cost > limit.burst() && made.retry_after == u64::MAX);
            assert_eq!(cell.word(), before.word(), "a refusal wrote");
        }
        Verdict::Contended => panic!("contended alone"),
    }
    made
}

#[test]
fn any_resolution_is_taken_that_a_window_can_be_counted_in() {
    let all = [LimitSpec::fixed_window, LimitSpec::sliding_counter, LimitSpec::quota_linear];
    for (spec, z) in all.iter().flat_map(|spec| (0..=40).map(move |z| (spec(4, 1 << 40), z))) {
        let info =
            spec.resolution(-z).build().unwrap_or_else(|e| panic!("{spec:?}, 2^{z} ticks: {e}")).info();
        assert!(info.skew >= 1 << 50 && info.rate_error_ppb == 0, "2^{z} ticks: {info:?}");
    }
}

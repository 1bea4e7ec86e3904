//! The sliding window counter against its definition, in windows with unbounded numbers.

use super::frame::{ask, cost, refuses, Clock};
use crate::common::{cases, size_from, Rng};
use tatcell::{Cell, Decision, ExclusiveCell, Limit, LimitError, LimitSpec, Verdict};

fn any_spec(rng: &mut Rng) -> LimitSpec {
    let units = 1 + rng.scaled(20);
    let window =
        rng.pick(&[1, 7, 64, 1_000, 60_000, 1_000_003, 60_000_000_000]) * (1 + rng.below(9)) + rng.below(4);
    let spec = LimitSpec::sliding_counter(units, window);
    match rng.below(4) {
        0 => spec.resolution(-(rng.below(64 - window.leading_zeros() as u64) as i8)),
        _ => spec,
    }
}

/// The definition, on the clock of whole units of time: where the windows of a key start, and what each admitted.
pub struct Oracle {
    u: u128,
    w: u128,
    units: u128,
    /// Start of the latest window that something was charged to, its count, and that of the one before it.
    windows: Option<(u128, u128, u128)>,
}

impl Oracle {
    pub fn new(limit: &Limit) -> Oracle {
        let info = limit.info();
        let u = 1u128 << -info.resolution;
        Oracle { u, w: (info.period as u128).div_ceil(u), units: info.units as u128, windows: None }
    }

    /// The windows as they are at `now`: start, current, previous, and how much of the previous one is in sight. The
    /// first window starts at the first whole unit of time that is not before the request.
    fn at(&self, now: u64) -> (u128, u128, u128, u128) {
        let (t, first) = (now as u128 / self.u, (now as u128).div_ceil(self.u));
        let (start, current, previous) = self.windows.unwrap_or((first, 0, 0));
        let (start, current, previous) = match t.saturating_sub(start) / self.w {
            0 => (start, current, previous),
            1 => (start + self.w, 0, current),
            _ => (first, 0, 0),
        };
        (start, current, previous, self.w - t.saturating_sub(start))
    }

    pub fn check(&mut self, now: u64, cost: u64) -> Verdict {
        let cost = cost as u128;
        if cost > self.units {
            return Verdict::Never;
        }
        let (start, current, previous, seen) = self.at(now);
        if previous * seen + (current + cost) * self.w > self.units * self.w {
            return Verdict::NonConforming;
        }
        self.windows = Some((start, current + cost, previous));
        Verdict::Conforming
    }

    /// Largest cost that would conform now: searched, not computed.
    pub fn remaining(&self, now: u64) -> u64 {
        let (_, current, previous, seen) = self.at(now);
        let conforms = |n: u128| previous * seen + (current + n) * self.w <= self.units * self.w;
        let (mut low, mut high) = (0, self.units + 1);
        while high - low > 1 {
            let middle = (low + high) / 2;
            *(if conforms(middle) { &mut low } else { &mut high }) = middle;
        }
        low as u64
    }

    /// The window that was charged last: where it starts.
    pub fn charged(&self) -> u128 {
        self.windows.map_or(0, |(start, ..)| start)
    }

    /// Gives back what was charged to that window, while it is the current one.
    pub fn refund(&mut self, now: u64, charged: u128, units: u64) -> u64 {
        let t = now as u128 / self.u;
        match &mut self.windows {
            Some((start, current, _)) if *start == charged && t < *start + self.w => {
                let back = (*current).min(units.into());
                *current -= back;
                back as u64
            }
            _ => 0,
        }
    }

    /// From now on this number of units a window.
    pub fn retune(&mut self, units: u64) {
        self.units = units.into();
    }
}

#[test]
fn every_decision_is_that_of_the_definition() {
    let steps = size_from("TATCELL_COUNTED_STEPS", 1e6 as u64) / 1_000;
    let passed = std::cell::Cell::new((0u64, 0u64));
    cases(steps, |rng| {
        let spec = any_spec(rng);
        let Ok(limit) = spec.build() else {
            // One unit of time a window, or too coarse for 62 bits: nothing else is refused here.
            return assert_eq!(spec.build().unwrap_err(), LimitError::HorizonTooLong, "{spec:?}");
        };
        let (mut clock, mut oracle) = (Clock::new(rng, &limit), Oracle::new(&limit));
        let mut cell = ExclusiveCell::new();
        for _ in 0..1_000 {
            clock.step(rng);
            let cost = cost(rng, limit.burst());
            let want = oracle.check(clock.now, cost);
            let got = ask(&mut cell, &limit, clock.now, cost);
            assert_eq!(got.verdict, want, "{spec:?} now {} cost {cost}", clock.now);
            assert_eq!(got.remaining, oracle.remaining(clock.now), "{spec:?} now {}", clock.now);
            let (ok, no) = passed.get();
            passed.set((ok + u64::from(got.passes()), no + u64::from(!got.passes())));
        }
    });
    let (ok, no) = passed.get();
    assert!(
        ok + no > steps * 990,
        "only {} of {} steps: too many limits were refused",
        ok + no,
        steps * 1_000
    );
    assert!(ok > steps * 100 && no > steps * 100, "{ok} passed, {no} refused: the streams do not test");
}

#[test]
fn what_is_in_sight_of_the_previous_window_weighs_as_much() {
    let limit = Limit::sliding_counter(100, 1_000).unwrap();
    let cell = Cell::new();
    assert!(cell.check(&limit, 5_000, 60).passes());
    assert!(cell.check(&limit, 5_999, 40).passes());
    // All of it until the roll, then a tenth less every tenth of a window.
    assert_eq!(cell.peek(&limit, 6_000, 1).remaining, 0);
    assert_eq!(cell.peek(&limit, 6_000, 1).retry_after, 10);
    assert_eq!(cell.peek(&limit, 6_000, 25).retry_after, 250);
    assert_eq!(cell.peek(&limit, 6_250, 1).remaining, 25);
    assert!(cell.check(&limit, 6_500, 50).passes() && !cell.check(&limit, 6_509, 1).passes());
    assert!(cell.check(&limit, 6_510, 1).passes());
    // 51 in the window that ended at 7000.
    assert_eq!(cell.peek(&limit, 7_000, 1).remaining, 49);
    assert_eq!(cell.peek(&limit, 7_999, 1).remaining, 99);
    assert_eq!(cell.peek(&limit, 8_000, 1).reset_after, 0);
}

#[test]
fn a_key_that_was_idle_for_a_window_starts_anew_with_its_next_request() {
    let limit = Limit::sliding_counter(3, 1_000).unwrap();
    let cell = Cell::new();
    assert!(cell.check(&limit, 5_000, 3).passes());
    assert!(!cell.check(&limit, 6_999, 3).passes() && cell.check(&limit, 7_300, 3).passes());
    // Not at 8000, where the next window of the first request would start.
    assert_eq!(cell.peek(&limit, 8_299, 1).retry_after, 335);
    assert_eq!(cell.peek(&limit, 8_300, 1).retry_after, 334);
}

/// Most units that passed within any interval shorter than `w`.
fn most_within(passes: &[(u64, u64)], w: u64) -> u64 {
    let (mut first, mut sum, mut most) = (0, 0, 0);
    for &(at, units) in passes {
        sum += units;
        while passes[first].0 + w <= at {
            sum -= passes[first].1;
            first += 1;
        }
        most = most.max(sum);
    }
    most
}

#[test]
fn a_window_length_holds_up_to_twice_the_units_less_one() {
    // The bound that the documentation states is reached, so nobody can call it loose: a window that starts with a
    // refunded unit has all its units at its end, and the next one then has all but one at its own end.
    for (units, w) in [(1, 10), (2, 10), (10, 1_000), (100, 1_000), (4_999, 10_000)] {
        let limit = Limit::sliding_counter(units, w).unwrap();
        for refunded in [true, false] {
            let cell = Cell::new();
            let first = cell.check_ex(&limit, 5_000, 1, 0);
            if refunded {
                assert_eq!(cell.refund(&limit, 5_000, &first.permit), Some(1));
            }
            let mut passes = vec![];
            for now in 5_000 + w - 1..5_000 + 2 * w - 1 {
                let most = cell.peek(&limit, now, 1).remaining;
                if most > 0 && cell.check(&limit, now, most).passes() {
                    passes.push((now, most));
                }
            }
            let bound = if refunded { 2 * units - 1 } else { 2 * units - 2 };
            assert_eq!(most_within(&passes, w), bound, "{units} in {w}, refunded: {refunded}");
        }
    }
}

#[test]
fn no_stream_passes_more_than_twice_the_units_less_one_in_a_window_length() {
    cases(300, |rng| {
        let (units, w) = (1 + rng.scaled(8), 2 + rng.scaled(12));
        let limit = Limit::sliding_counter(units, w).unwrap();
        let cell = Cell::new();
        let (mut now, mut passes) = (1 << 40, vec![]);
        for _ in 0..2_000 {
            now += if rng.one_in(3) { rng.below(w) } else { rng.below(w / 16 + 2) };
            let cost = match rng.below(3) {
                0 => cell.peek(&limit, now, 1).remaining,
                _ => 1 + rng.below(units),
            };
            if cost > 0 && cell.check(&limit, now, cost).passes() {
                passes.push((now, cost));
            }
        }
        let most = most_within(&passes, w);
        assert!(most < 2 * units, "{most} of {units} within less than {w}");
    });
}

#[test]
fn a_clock_that_steps_back_admits_no_more_than_the_one_that_was_ahead() {
    cases(400, |rng| {
        let limit = LimitSpec::sliding_counter(20, 1_000).build().unwrap();
        let cell = Cell::new();
        let now = 100_000 + rng.below(10_000);
        for _ in 0..=rng.below(3) {
            let _ = cell.check(&limit, now - rng.below(1_500), 1 + rng.below(20));
        }
        let _ = cell.check(&limit, now, 1 + rng.below(20));
        let ahead = cell.peek(&limit, now, 1).remaining;
        for back in [1, 10, 500, 999, 1_000, 1_001, 5_000, 50_000] {
            let behind = cell.peek(&limit, now - back, 1).remaining;
            assert!(behind <= ahead, "a step back by {back} minted: {behind} of {ahead}");
        }
    });
}

#[test]
fn a_refund_returns_units_to_the_current_window_alone() {
    let limit = Limit::sliding_counter(10, 1_000).unwrap();
    let cell = Cell::new();
    let first = cell.check_ex(&limit, 100, 4, 0);
    let second = cell.check_ex(&limit, 200, 6, 0);
    assert_eq!(cell.refund(&limit, 300, &first.permit), Some(4));
    assert_eq!(cell.peek(&limit, 300, 1).remaining, 4);
    assert_eq!(cell.refund(&limit, 1_099, &second.permit), Some(6));
    assert_eq!((cell.peek(&limit, 1_099, 1).remaining, cell.peek(&limit, 1_099, 1).reset_after), (10, 0));
    // The roll ends it, whether or not anything was charged since.
    let last = cell.check_ex(&limit, 1_099, 10, 0);
    assert!(last.passes());
    let word = cell.word();
    assert_eq!((cell.refund(&limit, 1_100, &last.permit), cell.word()), (Some(0), word));
    assert!(cell.check(&limit, 1_600, 5).passes());
    assert_eq!(cell.refund(&limit, 1_600, &last.permit), Some(0));
    assert_eq!(cell.refund(&limit, 1_600, &first.permit), Some(0));
    assert_eq!(cell.peek(&limit, 1_600, 1).remaining, 0);
    // Of a charge in the current window the previous one keeps its weight.
    let third = cell.check_ex(&limit, 1_800, 2, 0);
    assert_eq!(cell.refund(&limit, 1_900, &third.permit), Some(2));
    assert_eq!(cell.peek(&limit, 1_900, 1).remaining, 3);
}

#[test]
fn refunds_never_leave_more_than_if_the_charge_had_not_been() {
    cases(2_000, |rng| {
        let (units, w) = (1 + rng.below(60), 1 + rng.below(2_000));
        let limit = Limit::sliding_counter(units, w).unwrap();
        let cell = Cell::new();
        let mut now = 1_000_000;
        // The window has started: a charge that starts it leaves its start behind, refunded or not.
        assert!(cell.check(&limit, now, 1 + rng.below(units)).passes());
        let other = Cell::from_word(cell.word());
        let charge = cell.charge(&limit, now, 1 + rng.below(units));
        for _ in 0..rng.below(6) {
            now += rng.below(w);
            let cost = 1 + rng.below(units);
            // What passes beside the charge passes without it.
            if cell.check(&limit, now, cost).passes() {
                let _ = other.charge(&limit, now, cost);
            }
        }
        let _ = cell.refund(&limit, now, &charge.permit);
        for later in [0, 1, w / 2, w, w + 1, 2 * w] {
            let (left, without) =
                (cell.peek(&limit, now + later, 1).remaining, other.peek(&limit, now + later, 1).remaining);
            assert!(left <= without, "{left} remain, {without} without the charge, {later} later");
        }
    });
}

#[test]
fn soft_room_debt_and_shadow_are_options_of_the_sliding_counter_too() {
    let spec = LimitSpec::sliding_counter(10, 1_000);
    let limit = spec.soft(6).max_room(5).build().unwrap();
    let cell = Cell::new();
    assert_eq!(cell.check_ex(&limit, 1, 6, 0).flags, 0);
    assert_eq!(cell.check_ex(&limit, 1, 4, 0).flags, Decision::SOFT);
    assert!(!cell.check_ex(&limit, 1, 1, 0).passes());
    let elastic = cell.check_ex(&limit, 1, 3, 99);
    assert_eq!(elastic.flags, Decision::SOFT | Decision::ELASTIC);
    assert!(!cell.check_ex(&limit, 1, 3, 99).passes() && cell.check_ex(&limit, 1, 2, 99).passes());
    // 15 are counted; in the next window they weigh less and less.
    assert_eq!(cell.peek(&limit, 1_001, 1).retry_after, 400);
    assert_eq!(cell.check_ex(&limit, 1_401, 1, 0).flags, Decision::SOFT);

    let limit = spec.max_debt(20).build().unwrap();
    let cell = Cell::new();
    assert_eq!(cell.charge(&limit, 1, 25).permit.stored, 25);
    assert_eq!(cell.charge(&limit, 1, 25).permit.stored, 5);
    assert_eq!(cell.charge(&limit, 1, 25).permit.stored, 0);
    // 30 until 1001, then a thirtieth of a window for each.
    assert_eq!((cell.peek(&limit, 1, 1).remaining, cell.peek(&limit, 1, 1).retry_after), (0, 1_700));
    // At 1201 they weigh 24: six more, and what weighs a part of a unit counts as a whole one.
    assert_eq!(cell.charge(&Limit::sliding_counter(10, 1_000).unwrap(), 1_201, 0).permit.stored, 0);
    assert_eq!(cell.charge(&limit, 1_201, 25).permit.stored, 6);
    assert_eq!(cell.charge(&limit, 1_234, 25).permit.stored, 0);
    assert_eq!(cell.charge(&limit, 1_235, 25).permit.stored, 1);

    let limit = spec.shadow().build().unwrap();
    let cell = Cell::new();
    assert!(cell.check(&limit, 1, 10).passes());
    let passed = cell.check_ex(&limit, 1, 1, 0);
    assert_eq!((passed.flags, passed.permit.stored), (Decision::SHADOW, 0));
    assert_eq!(passed.retry_after, 1_100);
    let passed = cell.check_ex(&limit, 1, 11, 0);
    assert_eq!((passed.flags, passed.permit.stored, passed.retry_after), (Decision::SHADOW, 0, u64::MAX));
}

#[test]
fn what_a_sliding_counter_does_not_have_is_refused_by_name() {
    let spec = LimitSpec::sliding_counter(10, 1_000);
    let all = [
        (spec.max_delay(1), LimitError::BadAlgorithm),
        (spec.penalty(1), LimitError::BadAlgorithm),
        (spec.aligned(0), LimitError::BadAlgorithm),
        (spec.heal(), LimitError::BadHeal),
        (spec.resolution(1), LimitError::BadResolution),
        (spec.resolution(-63), LimitError::BadResolution),
        (LimitSpec::sliding_counter(0, 1_000), LimitError::ZeroRate),
        (LimitSpec::sliding_counter(1, 0), LimitError::ZeroPeriod),
        (LimitSpec::sliding_counter(u64::MAX, 1_000), LimitError::TooManyUnits),
        // Two counts of 31 bits leave 2 for the time; of 30 bits 4, which no window fits beside a skew.
        (LimitSpec::sliding_counter((1 << 31) - 1, 1_000), LimitError::TooManyUnits),
        (LimitSpec::sliding_counter((1 << 30) - 1, 1_000), LimitError::HorizonTooLong),
        (spec.max_room(1 << 30), LimitError::TooManyUnits),
        (spec.skew(u64::MAX), LimitError::HorizonTooLong),
        (spec.soft(11), LimitError::BadSoft),
    ];
    refuses(spec, &all);
}

//! Fixed windows against their definition, counted in unbounded integers.

use std::collections::HashMap;

use super::frame::{ask, cost, refuses, Clock};
use crate::common::{cases, size_from, Rng};
use tatcell::{Cell, ExclusiveCell, Limit, LimitError, LimitSpec, Verdict};

/// A window of any length, a limit of any size, aligned or not.
fn any_spec(rng: &mut Rng) -> (LimitSpec, Option<u64>) {
    let units = 1 + rng.scaled(24);
    let window =
        rng.pick(&[1, 7, 1_000, 60_000, 1_000_003, 60_000_000_000]) * (1 + rng.below(9)) + rng.below(4);
    let spec = LimitSpec::fixed_window(units, window);
    match rng.below(2) {
        0 => (spec, None),
        _ => {
            let phase = rng.below(window);
            (spec.aligned(phase), Some(phase))
        }
    }
}

/// The definition: in units of u ticks for the ends, in tickets without bounds for the counts.
pub struct Oracle {
    u: u128,
    w: u128,
    units: u128,
    phase: Option<u128>,
    /// Anchored: end of the window in ticks, and its count.
    window: Option<(u128, u128)>,
    /// Aligned: counts by number, and the latest number that was charged.
    counts: HashMap<u128, u128>,
    latest: u128,
}

impl Oracle {
    pub fn new(limit: &Limit, phase: Option<u64>) -> Oracle {
        let info = limit.info();
        assert!(info.resolution <= 0);
        Oracle {
            u: 1 << -info.resolution,
            w: info.period as u128,
            units: info.units as u128,
            phase: phase.map(u128::from),
            window: None,
            counts: HashMap::new(),
            latest: 0,
        }
    }

    pub fn check(&mut self, now: u64, cost: u64) -> Verdict {
        let (now, cost) = (now as u128, cost as u128);
        if cost > self.units {
            return Verdict::Never;
        }
        let floored = now / self.u * self.u;
        let count = match self.phase {
            Some(phase) => {
                // A clock that is behind counts in the latest window.
                let number = ((floored + self.w - phase) / self.w).max(self.latest);
                let count = self.counts.entry(number).or_default();
                if *count + cost <= self.units {
                    self.latest = number;
                }
                count
            }
            None => {
                if self.window.is_none_or(|(end, _)| floored >= end) {
                    self.window = Some(((now + self.w).div_ceil(self.u) * self.u, 0));
                }
                &mut self.window.as_mut().unwrap().1
            }
        };
        if *count + cost > self.units {
            return Verdict::NonConforming;
        }
        *count += cost;
        Verdict::Conforming
    }

    /// The window that was charged last: where it ends, or its number.
    pub fn charged(&self) -> u128 {
        self.phase.map_or_else(|| self.window.map_or(0, |(end, _)| end), |_| self.latest)
    }

    /// Gives back what was charged to that window, if it goes on.
    pub fn refund(&mut self, now: u64, charged: u128, units: u64) -> u64 {
        let end = self.phase.map_or(charged, |phase| phase + charged * self.w);
        let ahead = end.div_ceil(self.u).saturating_sub(now as u128 / self.u);
        if ahead == 0 || charged != self.charged() {
            return 0;
        }
        let count = match &mut self.window {
            Some((_, count)) => count,
            None => self.counts.entry(charged).or_default(),
        };
        let back = (*count).min(units.into());
        *count -= back;
        back as u64
    }

    /// From now on this number of units a window.
    pub fn retune(&mut self, units: u64) {
        self.units = units.into();
    }
}

#[test]
fn every_decision_is_that_of_the_definition() {
    let steps = size_from("TATCELL_COUNTED_STEPS", 4e5 as u64) / 1_000;
    let passed = std::cell::Cell::new((0u64, 0u64));
    cases(steps, |rng| {
        let (spec, phase) = any_spec(rng);
        let limit = spec.build().unwrap();
        let (mut clock, mut oracle) = (Clock::new(rng, &limit), Oracle::new(&limit, phase));
        let mut cell = ExclusiveCell::new();
        for _ in 0..1_000 {
            clock.step(rng);
            let cost = cost(rng, limit.burst());
            let want = oracle.check(clock.now, cost);
            let got = ask(&mut cell, &limit, clock.now, cost).verdict;
            assert_eq!(got, want, "{spec:?} now {} cost {cost}", clock.now);
            let (ok, no) = passed.get();
            passed.set((ok + u64::from(got.passes()), no + u64::from(!got.passes())));
        }
    });
    let (ok, no) = passed.get();
    assert!(ok > steps * 100 && no > steps * 100, "{ok} passed, {no} refused: the streams do not test");
}

#[test]
fn the_window_starts_with_its_first_request_and_a_refusal_does_not_move_it() {
    let limit = Limit::fixed_window(3, 1_000).unwrap();
    let cell = Cell::new();
    for now in [5_000, 5_400, 5_999] {
        assert!(cell.check(&limit, now, 1).passes());
    }
    assert_eq!(cell.check_ex(&limit, 5_999, 1, 0).retry_after, 1);
    assert_eq!(cell.check_ex(&limit, 5_500, 1, 0).retry_after, 500);
    // The next window starts when somebody comes, not at 6000.
    assert!(cell.check(&limit, 6_300, 3).passes());
    assert_eq!(cell.peek(&limit, 7_299, 1).retry_after, 1);
    assert!(cell.peek(&limit, 7_300, 1).passes());
}

#[test]
fn aligned_windows_start_at_the_phase_for_all_keys() {
    let limit = LimitSpec::fixed_window(3, 1_000).aligned(250).build().unwrap();
    for first in [5_000, 5_100, 5_249] {
        let cell = Cell::new();
        assert!(cell.check(&limit, first, 3).passes());
        assert_eq!(cell.peek(&limit, first, 1).retry_after, 5_250 - first);
        assert!(cell.check(&limit, 5_250, 3).passes());
        assert_eq!(cell.peek(&limit, 5_250, 1).retry_after, 1_000);
    }
}

#[test]
fn two_neighbouring_windows_admit_twice_the_units_in_less_than_a_window() {
    // The bound that the documentation states is reached, so nobody can call it loose.
    let limit = LimitSpec::fixed_window(100, 1_000).aligned(0).build().unwrap();
    let cell = Cell::new();
    let passed = (999..=1_000).map(|now| (0..200).filter(|_| cell.check(&limit, now, 1).passes()).count());
    assert_eq!(passed.sum::<usize>(), 200);
}

#[test]
fn a_clock_that_steps_back_counts_in_the_window_it_finds() {
    for spec in [LimitSpec::fixed_window(5, 1_000), LimitSpec::fixed_window(5, 1_000).aligned(0)] {
        let limit = spec.build().unwrap();
        let cell = Cell::new();
        assert!(cell.check(&limit, 10_000, 5).passes());
        for back in [1, 500, 1_000, 5_000, 10_000] {
            assert!(!cell.check(&limit, 10_000 - back, 1).passes(), "a step back by {back} minted");
        }
    }
}

#[test]
fn a_refund_returns_units_to_their_own_window_alone() {
    let limit = Limit::fixed_window(10, 1_000).unwrap();
    let cell = Cell::new();
    let first = cell.check_ex(&limit, 100, 4, 0);
    let second = cell.check_ex(&limit, 200, 6, 0);
    // Any order: what is counted has no age.
    assert_eq!(cell.refund(&limit, 300, &first.permit), Some(4));
    assert_eq!(cell.peek(&limit, 300, 1).remaining, 4);
    assert_eq!(cell.refund(&limit, 300, &second.permit), Some(6));
    assert_eq!(cell.peek(&limit, 300, 1).remaining, 10);
    assert_eq!(cell.peek(&limit, 300, 1).reset_after, 0);
    // The window goes on.
    assert!(cell.check(&limit, 1_099, 10).passes());
    let last = cell.check_ex(&limit, 1_100, 10, 0);
    assert!(last.passes());
    assert_eq!(cell.refund(&limit, 1_200, &first.permit), Some(0));
    assert_eq!(cell.refund(&limit, 1_200, &second.permit), Some(0));
    assert_eq!(cell.peek(&limit, 1_200, 1).remaining, 0);
    // Over: nothing to give back, and nothing is stored.
    let word = cell.word();
    assert_eq!(cell.refund(&limit, 2_100, &last.permit), Some(0));
    assert_eq!(cell.word(), word);
}

#[test]
fn soft_room_debt_and_shadow_are_options_of_windows_too() {
    let spec = LimitSpec::fixed_window(10, 1_000);
    let limit = spec.soft(6).max_room(5).build().unwrap();
    let cell = Cell::new();
    assert_eq!(cell.check_ex(&limit, 1, 6, 0).flags, 0);
    assert_eq!(cell.check_ex(&limit, 1, 4, 0).flags, tatcell::Decision::SOFT);
    assert!(!cell.check_ex(&limit, 1, 1, 0).passes());
    let elastic = cell.check_ex(&limit, 1, 3, 99);
    assert_eq!(elastic.flags, tatcell::Decision::SOFT | tatcell::Decision::ELASTIC);
    assert!(!cell.check_ex(&limit, 1, 3, 99).passes() && cell.check_ex(&limit, 1, 2, 99).passes());

    let limit = spec.max_debt(20).build().unwrap();
    let cell = Cell::new();
    assert_eq!(cell.charge(&limit, 1, 25).permit.stored, 25);
    assert_eq!(cell.charge(&limit, 1, 25).permit.stored, 5);
    assert_eq!(cell.charge(&limit, 1, 25).permit.stored, 0);
    assert_eq!((cell.peek(&limit, 1, 1).remaining, cell.peek(&limit, 1, 1).retry_after), (0, 1_000));

    let limit = spec.shadow().build().unwrap();
    let cell = Cell::new();
    assert!(cell.check(&limit, 1, 10).passes());
    let passed = cell.check_ex(&limit, 1, 1, 0);
    assert_eq!((passed.flags, passed.permit.stored), (tatcell::Decision::SHADOW, 0));
    assert_eq!(passed.retry_after, 1_000);
}

#[test]
fn what_a_window_does_not_have_is_refused_by_name() {
    let spec = LimitSpec::fixed_window(10, 1_000);
    let all = [
        (spec.max_delay(1), LimitError::BadAlgorithm),
        (spec.penalty(1), LimitError::BadAlgorithm),
        (spec.heal(), LimitError::BadHeal),
        (spec.resolution(1), LimitError::BadResolution),
        (spec.aligned(1_000), LimitError::BadPhase),
        (LimitSpec::new(10, 1_000, 10).aligned(0), LimitError::BadAlgorithm),
        (LimitSpec::fixed_window(0, 1_000), LimitError::ZeroRate),
        (LimitSpec::fixed_window(1, 0), LimitError::ZeroPeriod),
        (LimitSpec::fixed_window(u64::MAX, 1_000), LimitError::TooManyUnits),
        (LimitSpec::fixed_window(1 << 60, 1_000), LimitError::HorizonTooLong),
        (spec.skew(u64::MAX), LimitError::HorizonTooLong),
        (spec.soft(11), LimitError::BadSoft),
    ];
    refuses(spec, &all);
}

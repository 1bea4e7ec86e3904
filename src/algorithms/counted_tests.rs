//! The common calls, and calls of algorithms that count without units, windows or a limit of their own.

#![allow(clippy::arithmetic_side_effects)]

use super::*;
use crate::limit::LimitSpec;

fn params(spec: LimitSpec) -> Params {
    spec.build().expect("a limit").0
}

/// Tables refuse such a limit; if it is forged, no algorithm counts it.
#[test]
fn a_limit_that_counts_nothing_here_admits_nothing_and_gives_nothing_back() {
    let p = params(LimitSpec::new(1, 10, 5));
    let (at, state) = (At { p: &p, now: 7 }, State { ahead: 3, aux: 2 });
    assert_eq!(fit(at, state, 1, 5), Err(u64::MAX));
    assert_eq!(add(at, state, 1), (state, 0));
    assert_eq!(give_back(at, state, state, 1), (state, 0));
    assert_eq!(changed(at, at, state, Change::KeepUnits), (state, false));
    let numbers = numbers_of(at, state);
    assert_eq!((numbers.remaining, numbers.next_unit, numbers.reset_after), (0, 0, 0));
    assert_eq!([merge(Algorithm::Gcra, 0, 3, 9), merge(Algorithm::Gcra, 0, 9, 3)], [9, 9]);
}

/// A limit from C may be forged: what would divide by nothing keeps nothing.
#[test]
fn a_change_from_a_forged_limit_of_no_interval_or_window_does_not_divide() {
    for spec in [LimitSpec::quota_linear(4, 1_000), LimitSpec::decay(4, 1_000), LimitSpec::new(4, 1_000, 4)] {
        let (p, mut forged) = (params(spec), params(spec));
        (forged.t_q, forged.period, forged.extra) = (0, 0, [0; 2]);
        for lead in [1, 500 << p.shl, u64::MAX >> 1] {
            let _ = change(&forged, &p, lead, 7, Change::KeepUnits);
            let (moved, _) = change(&p, &forged, lead, 7, Change::KeepUnits);
            assert!(moved <= p.horizon_q, "{spec:?}: {moved}");
        }
    }
}

/// An insert commits no earlier than its claim, with the count that it made.
#[test]
fn a_commit_lies_no_earlier_than_its_claim_and_counts_the_same() {
    let p = params(LimitSpec::fixed_window(5, 1_000).resolution(0));
    let op = Op::new(&p, Kind::Check, 1, 0);
    let lead = |ahead, aux| State { ahead, aux }.lead(&p);
    for (ahead, claim, committed) in [(10, 4, 10), (10, 10, 10), (10, 11, 11), (10, 40, 40)] {
        let made = Call::new(&op, 0).commit_lead(lead(ahead, 3), lead(claim, 1));
        assert_eq!(made, lead(committed, 3), "{ahead} beside a claim {claim} ahead");
    }
    assert_eq!(Call::new(&op, 0).refundable(3, 1), 3);
}

#[test]
fn a_shadow_limit_shadows_checks_and_reservations_alone() {
    for (spec, shadows) in
        [(LimitSpec::fixed_window(5, 1_000), false), (LimitSpec::fixed_window(5, 1_000).shadow(), true)]
    {
        let p = params(spec);
        let asked = |kind| Call::new(&Op::new(&p, kind, 1, 0), 0).shadows();
        assert_eq!([Kind::Check, Kind::Reserve].map(asked), [shadows; 2]);
        assert!(![Kind::Charge, Kind::Refund].into_iter().any(asked));
    }
}

/// In a table, an aligned window keeps its slot for `guard` units after its end.
#[test]
fn nothing_comes_back_to_a_window_that_is_over() {
    let mut p = params(LimitSpec::fixed_window(5, 100).resolution(0));
    p.guard = 8;
    let at = At { p: &p, now: 0 };
    for (ahead, back) in [(9, 2), (8, 0), (1, 0)] {
        let state = State { ahead, aux: 3 };
        assert_eq!(fixed_window::refund(at, state, state, 2).1, back, "{ahead} ahead");
        let other = State { ahead: ahead + 1, aux: 3 };
        assert_eq!(fixed_window::refund(at, state, other, 2), (state, 0));
    }
}

/// A peek at a used-up quota does not switch to smooth mode, nor does a request of the whole quota without a window.
#[test]
fn only_the_unit_that_uses_up_a_quota_of_others_switches_to_smooth() {
    let p = params(LimitSpec::quota_linear(4, 1_000).resolution(0));
    let at = At { p: &p, now: 0 };
    let bursty = |state: State| state.aux >> (p.shl as u32 - 1) == 0;
    let full = State { ahead: 500, aux: 4 };
    assert_eq!(quota_linear::fit(at, full, 0, p.burst_q), Ok(full));
    let whole = quota_linear::fit(at, State::ABSENT, 4, p.burst_q).expect("conforms");
    assert!(bursty(whole) && whole.aux == 4, "{whole:?}");
    let switched = quota_linear::fit(at, State { ahead: 500, aux: 3 }, 1, p.burst_q).expect("conforms");
    assert!(!bursty(switched), "{switched:?}");
}

/// A limit from C may be forged: a division by zero must give an answer of nothing.
#[test]
fn a_forged_limit_of_no_interval_or_window_has_nothing_left() {
    let mut p = params(LimitSpec::quota_linear(4, 1_000).resolution(0));
    p.t_q = 0;
    let smooth = State { ahead: 500, aux: 1 << (p.shl as u32 - 1) };
    assert_eq!(quota_linear::numbers(At { p: &p, now: 0 }, smooth).remaining, 0);
}

/// Windows from 7 on, 10 long: before the first start and after it, up to the end of the clock.
#[test]
fn an_aligned_window_ends_where_the_next_one_starts() {
    for phase in [0, 3, 7, 9] {
        let p = params(LimitSpec::fixed_window(5, 10).aligned(phase).resolution(0));
        for now in (0..40).chain(u64::MAX - 40..=u64::MAX) {
            let ends = (1..=10).find(|left| (u128::from(now) + left) % 10 == u128::from(phase)).unwrap();
            let window = fixed_window::fit(At { p: &p, now }, State::ABSENT, 1, 5).expect("conforms");
            assert_eq!((u128::from(window.ahead), window.aux), (ends, 1), "{phase} at {now}");
        }
    }
}

/// If a limit has longer windows, a window that has begun lasts to the end of the longer one and keeps its count.
#[test]
fn a_window_gets_longer_where_its_limit_does_and_never_shorter() {
    let [short, long] = [10, 100].map(|w| params(LimitSpec::fixed_window(5, w).aligned(0).resolution(0)));
    let state = State { ahead: 4, aux: 3 };
    let at = |p| At { p, now: 6 };
    assert_eq!(fixed_window::fit(at(&long), state, 1, 5), Ok(State { ahead: 94, aux: 4 }));
    let state = State { ahead: 94, aux: 3 };
    assert_eq!(fixed_window::fit(at(&short), state, 1, 5), Ok(State { ahead: 94, aux: 4 }));
}

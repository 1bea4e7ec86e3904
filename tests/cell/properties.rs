//! Every answer of a check against the exact token bucket, over random traces.

use crate::common::forms;
use crate::common::oracle::{seen, Oracle};
use crate::common::{cases, Rng};
use tatcell::{Cell, Cell32, ExclusiveCell, LimitSpec, Outcome};

/// A random limit that 64-bit cells and tables can hold, and its oracle. `exact`: T needs no rounding.
fn random_limit(rng: &mut Rng, exact: bool) -> (LimitSpec, i8, Oracle) {
    loop {
        let burst = rng.pick(&[1, 2, 3, 5, 10, 100, 1_000, 60_000]);
        let s = if exact { rng.within(0, 12) as i8 } else { rng.within(0, 20) as i8 - 8 };
        let (units, period) = if exact {
            let units = 1u64 << rng.within(0, s as u64);
            (units, rng.within(units, 1 << 20))
        } else {
            (rng.within(1, 5_000), rng.within(1, 1 << 26))
        };
        let spec = LimitSpec::new(units, period, burst).resolution(s);
        let Ok(limit) = spec.build() else { continue };
        let (t_q, s) = limit.emission_interval();
        let oracle = if exact { Oracle::exact(units, period, burst) } else { Oracle::fixed(t_q, s, burst) };
        return (spec, s as i8, oracle);
    }
}

/// How far the next request is from the last: at once, near, about a unit, about a burst, far idle.
fn random_step(rng: &mut Rng, oracle: &Oracle) -> u64 {
    let unit = (oracle.t * oracle.den / oracle.num) as u64;
    match rng.below(8) {
        0..=2 => 0,
        3 => rng.below(3),
        4 => rng.below(unit + 2),
        5 => unit,
        6 => rng.below(unit * oracle.burst as u64 + 2),
        _ => rng.below(4 * unit * oracle.burst as u64 + 2),
    }
}

fn random_cost(rng: &mut Rng, burst: u64) -> u32 {
    let burst = burst as u32;
    match rng.below(10) {
        0 => 0,
        1..=4 => 1,
        5 => burst,
        6 => burst + 1,
        7 => u32::MAX,
        _ => rng.within(0, burst as u64 + 1) as u32,
    }
}

/// Random requests, clock steps back included, through every form that holds the limit.
fn trace_agrees(rng: &mut Rng, exact: bool, steps: u64) {
    let (spec, s, mut oracle) = random_limit(rng, exact);
    let (mut forms, mut short) = (forms::at(&spec, s, None), forms::at(&spec, s, None));
    // Idle times beyond the span of 32 bits are the business of `cell_wrap`.
    let long = oracle.burst as u64 * spec.build().unwrap().emission_interval().0 > 1 << 24;
    forms.retain(|f| f.name() != "Cell32" || !long);
    short.retain(|f| f.name() != "Cell32" || !long);
    assert!(forms.len() >= 2, "{spec:?}");
    // The least default skew is the horizon: within it a step back must only show a larger lead.
    let skew = (oracle.burst * oracle.t * oracle.den / oracle.num) as u64;
    let mut now = forms::start(s) + rng.below(1 << 20);
    let mut latest = now;
    for _ in 0..steps {
        if rng.one_in(8) {
            now = now.saturating_sub(rng.below(skew + 1)).max(latest.saturating_sub(skew));
        } else {
            now += random_step(rng, &oracle);
            latest = latest.max(now);
        }
        let cost = random_cost(rng, oracle.burst as u64);
        let looked = oracle.peek(now as u128, cost);
        let expected = oracle.check(now as u128, cost, 0);
        for (form, twin) in forms.iter_mut().zip(&mut short) {
            let name = form.name();
            let before = form.state(now);
            assert_eq!(seen(&form.peek(now, cost)), looked, "{name} peek {cost} at {now} {spec:?}");
            assert_eq!(form.state(now), before, "{name}: a look wrote");
            let d = form.check_ex(now, cost, 0);
            let mut answer = seen(&d);
            // Grains of the oracle are not always q-units; what is stored is compared as units.
            let units = (answer.stored / form.resolution().0, answer.stored % form.resolution().0);
            assert_eq!(units, (expected.stored / oracle.t as u64, 0), "{name}: stored");
            answer.stored = expected.stored;
            assert_eq!(answer, expected, "{name} check {cost} at {now} {spec:?}");
            if cost == 0 || expected.verdict != 0 {
                assert_eq!(form.state(now), before, "{name}: a denied or free request wrote");
            }
            assert_eq!(twin.check(now, cost), d.outcome(), "{name}: short answer");
            assert_eq!(twin.state(now), form.state(now), "{name}: short and full answer store the same");
        }
    }
}

#[test]
fn every_form_answers_as_the_exact_bucket() {
    cases(400, |rng| trace_agrees(rng, true, 120));
}

#[test]
fn every_form_answers_as_the_bucket_of_its_q_units() {
    cases(400, |rng| trace_agrees(rng, false, 120));
}

#[test]
fn denied_request_conforms_exactly_after_retry_after() {
    cases(3_000, |rng| {
        let (spec, _, oracle) = random_limit(rng, false);
        let limit = spec.build().unwrap();
        let (mut cell, mut now) = (ExclusiveCell::new(), rng.next() >> 8);
        for _ in 0..40 {
            now += random_step(rng, &oracle);
            let cost = random_cost(rng, oracle.burst as u64);
            if let Outcome::NonConforming { retry_after } = cell.check(&limit, now, cost.into()) {
                assert!(retry_after > 0);
                assert_eq!(cell.clone().check(&limit, now + retry_after, cost.into()), Outcome::Conforming);
                let early = cell.clone().check(&limit, now + retry_after - 1, cost.into());
                assert_eq!(early, Outcome::NonConforming { retry_after: 1 }, "{spec:?}");
            }
        }
    });
}

#[test]
fn remaining_grows_exactly_after_next_unit_and_is_whole_after_reset() {
    cases(3_000, |rng| {
        let (spec, _, oracle) = random_limit(rng, false);
        let limit = spec.build().unwrap();
        let (mut cell, mut now) = (ExclusiveCell::new(), rng.next() >> 8);
        for _ in 0..20 {
            now += random_step(rng, &oracle);
            let d = cell.check_ex(&limit, now, random_cost(rng, oracle.burst as u64).into(), 0);
            let left = |ticks: u64| cell.peek(&limit, now + ticks, 0).remaining;
            assert_eq!(left(0), d.remaining);
            if d.next_unit > 0 {
                // More than one where a unit takes less than a tick.
                assert!(left(d.next_unit) > d.remaining && left(d.next_unit - 1) == d.remaining, "{spec:?}");
            } else {
                assert_eq!(d.remaining, limit.burst());
            }
            assert_eq!(left(d.reset_after), limit.burst());
            if d.reset_after > 0 {
                assert_eq!(cell.peek(&limit, now + d.reset_after, 0).reset_after, 0);
                assert_eq!(cell.peek(&limit, now + d.reset_after - 1, 0).reset_after, 1);
            }
            // What remains can be spent at once, and no unit more.
            let mut copy = cell.clone();
            let left = d.remaining as u32;
            assert_eq!(copy.check(&limit, now, left.into()), Outcome::Conforming);
            assert!(!copy.check(&limit, now, 1).passes());
        }
    });
}

#[test]
fn tat_never_regresses_whatever_the_clock_does() {
    cases(500, |rng| {
        let (spec, _, oracle) = random_limit(rng, false);
        let spec = spec.max_debt(3).penalty(2).max_delay(1_000).skew(1 << 40);
        let Ok(limit) = spec.build() else { return };
        let cell = Cell::new();
        let mut now = (1 << 41) + rng.below(1 << 41);
        let mut high = 0;
        for _ in 0..100 {
            now = if rng.one_in(3) {
                now - rng.below(1 << 20)
            } else {
                now + random_step(rng, &oracle) % (1 << 30)
            };
            let cost = random_cost(rng, oracle.burst as u64);
            match rng.below(3) {
                0 => drop(cell.check_ex(&limit, now, cost.into(), 0)),
                1 => drop(cell.charge(&limit, now, cost.into())),
                _ => drop(cell.reserve(&limit, now, cost.into())),
            }
            assert!(cell.word() >= high, "{spec:?}");
            high = cell.word();
        }
    });
}

#[test]
fn clock_beyond_the_skew_forgives_and_within_it_denies() {
    let spec = LimitSpec::new(1, 1_000, 5).skew(3_000);
    // With q-units of a tick the next reading is the next lead.
    for spec in [spec, spec.resolution(0)] {
        let (limit, cell) = (spec.build().unwrap(), Cell::new());
        assert_eq!(cell.check(&limit, 1 << 30, 5), Outcome::Conforming);
        // TAT - now = H + back: live up to H + S.
        assert_eq!(cell.peek(&limit, (1 << 30) - 3_000, 1).retry_after, 4_000);
        assert_eq!(cell.peek(&limit, (1 << 30) - 3_001, 1).retry_after, 0);
    }
}

#[test]
fn identical_limits_give_identical_answers_and_words_in_every_form() {
    cases(200, |rng| {
        let (units, period, burst) = (rng.within(1, 50), rng.within(1, 1 << 16), rng.within(1, 40));
        let spec = LimitSpec::new(units, period, burst).max_debt(4).max_room(3);
        let mut forms = forms::at(&spec, 6, Some(1 << 14));
        if forms.len() < 5 {
            return;
        }
        let mut now = rng.next();
        let mut permits = vec![tatcell::Permit::NONE; 5];
        for _ in 0..200 {
            now = now.wrapping_add(rng.scaled(14) + 1).wrapping_sub(rng.below(2));
            let cost = random_cost(rng, burst);
            let op = rng.below(6);
            let mut first = None;
            for (form, permit) in forms.iter_mut().zip(&mut permits) {
                let answer = match op {
                    0 | 1 => seen(&form.check_ex(now, cost, 0)),
                    2 => seen(&form.check_ex(now, cost, 2)),
                    3 => seen(&form.charge(now, cost)),
                    4 => {
                        let d = form.check_ex(now, cost.min(2), 0);
                        *permit = d.permit;
                        seen(&d)
                    }
                    _ => {
                        let mut d = seen(&form.peek(now, 1));
                        d.stored = form.refund(now, permit).unwrap();
                        d
                    }
                };
                assert_eq!(*first.get_or_insert(answer), answer, "{} op {op} {spec:?}", form.name());
            }
        }
    });
}

#[test]
fn any_word_is_valid_and_never_more_than_a_burst() {
    cases(20_000, |rng| {
        let (spec, _, _) = random_limit(rng, false);
        let (limit, word, now) = (spec.build().unwrap(), rng.next(), rng.next());
        let cell = Cell::from_word(word);
        let d = cell.check_ex(&limit, now, 1, 0);
        assert!(d.remaining <= limit.burst() && (d.verdict as i32) <= 1);
        if let Ok(limit) = spec.build32() {
            let d = Cell32::from_word(word as u32).check_ex(&limit, now, 1, 0);
            assert!(d.remaining <= limit.burst() && (d.verdict as i32) <= 1);
        }
    });
}

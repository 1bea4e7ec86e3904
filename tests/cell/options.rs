//! Charge, refund, reserve, change and the options of a limit, against the exact token bucket.

use crate::common::forms::{self, Form};
use crate::common::oracle::{seen, Oracle};
use crate::common::{cases, in_shadow, Rng};
use tatcell::{
    Cell, Cell32, Change, Decision, ExclusiveCell, Limit, LimitError, LimitSpec, Outcome, Permit, Verdict,
};

/// T = 64 ticks, 1024 q-units in every form.
fn spec(burst: u64) -> LimitSpec {
    LimitSpec::new(1, 64, burst)
}

fn every(spec: &LimitSpec) -> Vec<Box<dyn Form>> {
    // A short skew: the keys of the tables have been idle for up to a span, and the default one would turn a share of
    // those idle times into false debts.
    let forms = forms::at(spec, 4, Some(1 << 14));
    assert_eq!(forms.len(), 5);
    forms
}

fn oracle(burst: u64) -> Oracle {
    Oracle::fixed(1_024, 4, burst)
}

fn step(rng: &mut Rng) -> u64 {
    if rng.one_in(2) {
        rng.below(100)
    } else {
        rng.scaled(12)
    }
}

#[test]
fn charge_always_charges_up_to_the_debt_cap() {
    cases(300, |rng| {
        let (burst, debt) = (rng.within(1, 9), rng.within(0, 9));
        for mut form in every(&spec(burst).max_debt(debt)) {
            let mut oracle = Oracle { debt: debt as u128, ..oracle(burst) };
            let mut now = rng.below(1 << 40);
            for _ in 0..60 {
                now += step(rng);
                let cost = rng.pick(&[0, 1, 1, 2, 5, u32::MAX]);
                let (d, expected) = if rng.one_in(2) {
                    (form.charge(now, cost), oracle.charge(now as u128, cost))
                } else {
                    (form.check_ex(now, cost, 0), oracle.check(now as u128, cost, 0))
                };
                assert_eq!(seen(&d), expected, "{} {cost} at {now}", form.name());
                assert!(d.reset_after <= (burst + debt) * 64);
            }
        }
    });
}

#[test]
fn options_agree_with_the_oracle() {
    cases(400, |rng| {
        let burst = rng.within(1, 12);
        let (soft, room, penalty) = (rng.within(0, burst), rng.below(5), rng.below(4));
        let spec = spec(burst).soft(soft).max_room(room).penalty(penalty);
        for mut form in every(&spec) {
            let soft = if soft == 0 { u128::MAX } else { soft as u128 };
            let mut oracle = Oracle { soft, room: room as u128, penalty: penalty as u128, ..oracle(burst) };
            let mut now = rng.below(1 << 40);
            for _ in 0..80 {
                now += step(rng);
                let cost = rng.pick(&[0, 1, 1, 2, burst as u32, burst as u32 + 1, burst as u32 + 4]);
                let asked = rng.pick(&[0, 0, 1, room, u64::MAX]);
                assert_eq!(seen(&form.peek(now, cost)), oracle.peek(now as u128, cost), "{spec:?}");
                let answer = seen(&form.check_ex(now, cost, asked));
                let expected = oracle.check(now as u128, cost, asked);
                assert_eq!(answer, expected, "{} {cost} room {asked} at {now} {spec:?}", form.name());
            }
        }
    });
}

#[test]
fn a_cell_of_one_owner_that_is_reset_is_fresh() {
    let limit = spec(5).build().unwrap();
    let mut cell = ExclusiveCell::new();
    assert!(cell.check(&limit, 1_000, 5).passes() && !cell.check(&limit, 1_000, 1).passes());
    cell.reset();
    assert_eq!(cell.word(), 0);
    assert!(cell.check(&limit, 1_000, 5).passes());
}

/// One number in the words of a token bucket and of a leaky bucket.
#[test]
fn tokens_are_what_remains_and_the_level_is_the_rest_of_the_burst() {
    let limit = spec(5).max_debt(9).build().unwrap();
    let cell = Cell::new();
    for (cost, tokens) in [(0, 5), (2, 3), (2, 1), (1, 0), (4, 0)] {
        let d = cell.charge(&limit, 1_000, cost);
        assert_eq!((d.tokens(), d.level()), (tokens, 5 - tokens));
        assert_eq!(d.tokens(), d.remaining);
    }
}

#[test]
fn shadow_passes_flags_and_stores_nothing_it_would_have_denied() {
    for mut form in every(&spec(2).shadow()) {
        assert_eq!(form.check_ex(0, 2, 0).flags, 0);
        let before = form.state(0);
        let d = form.check_ex(0, 1, 0);
        assert_eq!(
            (d.verdict as i32, d.flags, d.retry_after, d.permit),
            (0, Decision::SHADOW, 64, Permit::NONE)
        );
        let d = form.check_ex(0, 3, 0);
        assert_eq!((d.verdict as i32, d.flags, d.retry_after), (0, Decision::SHADOW, u64::MAX));
        assert_eq!(form.check(0, 9), Outcome::Conforming);
        assert_eq!(form.state(0), before, "{}", form.name());
        assert_eq!((d.remaining, d.reset_after), (0, 128));
        assert_eq!(form.check_ex(64, 1, 0).flags, 0);
    }
}

#[test]
fn heal_turns_an_impossible_lead_into_one_burst_of_debt() {
    assert_eq!(spec(4).heal().build(), Err(LimitError::BadHeal), "its span is days, not years");
    let spec = spec(4).skew(1 << 20).resolution(4);
    let (plain, heal) = (spec.build().unwrap(), spec.heal().build().unwrap());
    let far = Cell::new();
    assert!(far.check(&plain, 1 << 40, 1).passes());
    // The clock steps back by far more than the skew.
    assert!(Cell::from_word(far.word()).check(&plain, 1 << 30, 1).passes(), "without heal: forgiven");
    assert_eq!(far.peek(&heal, 1 << 30, 1).retry_after, 64);
    assert_eq!(far.check(&heal, 1 << 30, 1), Outcome::NonConforming { retry_after: 64 });
    assert_eq!(far.check(&heal, (1 << 30) + 63, 1), Outcome::NonConforming { retry_after: 1 });
    assert_eq!(far.check(&heal, (1 << 30) + 64, 1), Outcome::Conforming, "the word is repaired, not stuck");
    assert_eq!(Cell::new().peek(&heal, 0, 0).remaining, 4, "a fresh cell owes nothing");
    // An old word is not ahead.
    let idle = Cell::new();
    assert!(idle.check(&heal, 5, 4).passes());
    assert_eq!(idle.peek(&heal, 1 << 50, 0).remaining, 4);
}

/// Wraps of the clock in q-units included: a 32-bit word keeps its low half.
#[test]
fn a_permit_names_the_word_that_its_charge_left() {
    let (limit, limit32) = (spec(4).build().unwrap(), spec(4).build32().unwrap());
    for now in [0, 7, 1 << 27, 1 << 33, u64::MAX >> 8, u64::MAX] {
        let (cell, cell32) = (Cell::new(), Cell32::new());
        for cost in 1..=2 {
            assert_eq!(cell.check_ex(&limit, now, cost, 0).permit.tat, cell.word(), "64 bits at {now}");
            let permit = cell32.check_ex(&limit32, now, cost, 0).permit;
            assert_eq!(permit.tat, u64::from(cell32.word()), "32 bits at {now}");
        }
    }
}

#[test]
fn a_change_between_algorithms_is_refused_or_starts_anew() {
    let limits = [
        Limit::new(1, 1 << 28, 4),
        Limit::fixed_window(4, 1 << 30),
        Limit::sliding_counter(4, 1 << 30),
        Limit::quota_linear(4, 1 << 30),
        Limit::decay(4, 1 << 30),
    ]
    .map(Result::unwrap);
    for (i, old) in limits.iter().enumerate() {
        for (j, new) in limits.iter().enumerate() {
            let cell = Cell::new();
            assert!(cell.check(old, 1_000, 2).passes());
            let word = cell.word();
            for how in [Change::KeepTime, Change::KeepUnits] {
                let want = if i == j { Ok(true) } else { Err(LimitError::BadAlgorithm) };
                assert_eq!(cell.change(old, new, 1_000, how), want, "{i} to {j}, {how:?}");
                assert_eq!(cell.word(), word, "{i} to {j}, {how:?}");
            }
            assert_eq!(cell.change(old, new, 1_000, Change::Reset), Ok(true), "{i} to {j}");
            assert_eq!(cell.peek(new, 1_000, 0).remaining, 4, "{i} to {j}");
        }
    }
}

/// An operation on a cell: limit, now, cost.
type Call = fn(&Cell, &Limit, u64, u64) -> Decision;

#[test]
fn a_healed_word_is_one_burst_of_debt_to_every_operation() {
    let spec = spec(4).skew(1 << 20).resolution(4).heal().max_debt(9).max_room(3).max_delay(5 * 64);
    let now = 1 << 30;
    for limit in [spec, spec.penalty(6)].map(|spec| spec.build().unwrap()) {
        let owes = Cell::new();
        assert!(owes.check(&limit, now, 4).passes());
        let far = Cell::new();
        assert!(far.check(&limit, 1 << 40, 1).passes());
        for cost in [0, 1, 2, 3, 8] {
            let calls: [Call; 4] = [
                |cell, limit, now, cost| cell.check_ex(limit, now, cost, 0),
                |cell, limit, now, cost| cell.check_ex(limit, now, cost, 3),
                |cell, limit, now, cost| cell.charge(limit, now, cost),
                |cell, limit, now, cost| cell.reserve(limit, now, cost),
            ];
            for (i, call) in calls.iter().enumerate() {
                let (healed, debtor) = (Cell::from_word(far.word()), Cell::from_word(owes.word()));
                let answers = [call(&healed, &limit, now, cost), call(&debtor, &limit, now, cost)];
                assert_eq!(answers[0], answers[1], "call {i}, cost {cost}");
                assert_eq!(healed.word(), debtor.word(), "call {i}, cost {cost}: what is stored");
            }
        }
    }
}

/// Units, whatever the limit counts; [`Cell::refund`] gives ticks here and units there.
#[test]
fn every_call_tells_the_units_that_it_took_or_gave_back() {
    let limit = spec(2).max_debt(3).build().unwrap();
    let cell = Cell::new();
    let took = |now, cost| cell.charge(&limit, now, cost);
    let wraps = (1 << 48) + 1; // times T it is T again, without its highest bits
    assert_eq!([took(0, 4).units, took(0, wraps).units, took(0, 1).units], [4, 1, 0]);
    assert_eq!((took(32, 1).permit.stored, took(32, 1).units), (32_768, 0), "half a unit");
    assert_eq!((cell.check_ex(&limit, 32, 1, 0).units, cell.peek(&limit, 32, 0).units), (0, 0));

    let third = LimitSpec::new(3, 1_000, 9).build().unwrap(); // T = 333.3 ticks
    let (cell, cell32) = (Cell::new(), Cell32::new());
    let charged = cell.check_ex(&third, 0, 3, 0);
    assert_eq!((charged.units, charged.remaining), (3, 6));
    assert_eq!(cell.refund(&third, 0, &charged.permit), Some(1_000));
    let charged = cell.check_ex(&third, 0, 3, 0);
    let back = cell.refund_ex(&third, 334, &charged.permit);
    assert_eq!((back.verdict, back.units, back.remaining, back.reset_after), (Verdict::Conforming, 1, 9, 0));
    assert_eq!((back.cost, back.permit, back.retry_after), (0, Permit::NONE, 0));
    assert_eq!(cell.refund_ex(&third, 334, &Permit::NONE).units, 0);
    let limit32 = spec(4).build32().unwrap();
    let charged = cell32.check_ex(&limit32, 0, 3, 0);
    assert_eq!(cell32.refund_ex(&limit32, 0, &charged.permit).units, 3);
    for limit in [
        Limit::fixed_window(9, 1 << 30),
        Limit::sliding_counter(9, 1 << 30),
        Limit::quota_linear(9, 1 << 30),
        Limit::decay(9, 1 << 30),
    ] {
        let (limit, mut cell) = (limit.unwrap(), ExclusiveCell::new());
        let charged = cell.check_ex(&limit, 5, 7, 0);
        assert_eq!((charged.units, cell.refund(&limit, 5, &charged.permit)), (7, Some(7)));
        let charged = cell.check_ex(&limit, 5, 7, 0);
        let back = cell.refund_ex(&limit, 5, &charged.permit);
        assert!(back.units == 7 && back.remaining >= 8, "{back:?}"); // a level rounds up
    }
    for spec in [spec(1).shadow(), spec(1).penalty(9)] {
        let (limit, cell) = (spec.build().unwrap(), Cell::new());
        assert_eq!([0; 2].map(|_| cell.check_ex(&limit, 0, 1, 0).units), [1, 0]);
    }
}

#[test]
fn refund_is_exact_until_it_drains() {
    cases(400, |rng| {
        let burst = rng.within(1, 12);
        for mut form in every(&spec(burst).max_debt(6)) {
            let mut oracle = Oracle { debt: 6, ..oracle(burst) };
            let horizon = (burst as u128 + 6) * 1_024;
            let mut now = rng.below(1 << 40);
            let mut permits: Vec<(Permit, u128)> = Vec::new();
            for _ in 0..60 {
                now += step(rng);
                let cost = rng.within(0, burst) as u32;
                if rng.one_in(3) && !permits.is_empty() {
                    let (permit, after) = permits.swap_remove(rng.below(permits.len() as u64) as usize);
                    let back = oracle.refund(now as u128, permit.stored, after, horizon);
                    assert_eq!(form.refund(now, &permit), Some((back >> 4) as u64), "{}", form.name());
                } else {
                    let (d, expected) = if rng.one_in(2) {
                        (form.charge(now, cost), oracle.charge(now as u128, cost))
                    } else {
                        (form.check_ex(now, cost, 0), oracle.check(now as u128, cost, 0))
                    };
                    assert_eq!(seen(&d), expected, "{}", form.name());
                    if d.permit.stored > 0 {
                        permits.push((d.permit, oracle.tat));
                    } else {
                        assert_eq!(d.permit, Permit::NONE);
                    }
                }
                let left = form.peek(now, 0);
                assert_eq!(
                    left.reset_after,
                    oracle.ticks(now as u128, oracle.lead(now as u128)),
                    "{}",
                    form.name()
                );
                assert!(left.remaining <= burst);
            }
        }
    });
}

#[test]
fn refund_never_leaves_more_than_if_it_had_not_been_charged() {
    // The counterfactual: the same later charges on a cell that never saw the refunded one.
    cases(5_000, |rng| {
        let limit = spec(8).max_debt(1_000).build().unwrap();
        let (mut with, mut without) = (ExclusiveCell::new(), ExclusiveCell::new());
        let mut now = rng.below(1 << 40);
        let charge = |cell: &mut ExclusiveCell, now, cost| cell.charge(&limit, now, cost);
        for _ in 0..rng.below(6) {
            now += rng.below(300);
            let cost = rng.below(5) as u32;
            (charge(&mut with, now, cost.into()), charge(&mut without, now, cost.into())).0.passes();
        }
        let permit = charge(&mut with, now, (rng.within(1, 8) as u32).into()).permit;
        for _ in 0..rng.below(6) {
            now += rng.below(300);
            let cost = rng.below(5) as u32;
            (charge(&mut with, now, cost.into()), charge(&mut without, now, cost.into())).0.passes();
        }
        let before = with.peek(&limit, now, 0).reset_after;
        let back = with.refund(&limit, now, &permit).unwrap();
        let (a, b) = (with.peek(&limit, now, 0).reset_after, without.peek(&limit, now, 0).reset_after);
        assert!(a >= b, "refund minted: {a} < {b}");
        assert!(before - a == back && with.peek(&limit, now, 0).remaining <= 8);
    });
}

#[test]
fn full_refund_at_once_leaves_a_full_burst_at_any_time() {
    for now in [0, 1, 63, (1 << 32) + 5, u64::MAX] {
        for mut form in every(&spec(5)) {
            let d = form.check_ex(now, 5, 0);
            assert_eq!(form.refund(now, &d.permit), Some(320));
            assert_eq!(form.peek(now, 0).remaining, 5, "{} at {now}", form.name());
        }
    }
    // Where the TAT of now is the word 0, which means EMPTY, it is stored as 1: a debt of one q-unit, 1/16 of a tick.
    for now in [1 << 28, 1 << 32, 1 << 60] {
        for mut form in every(&spec(5)) {
            let d = form.check_ex(now, 5, 0);
            assert!(form.refund(now, &d.permit) >= Some(319), "{} at {now}", form.name());
            assert!(form.peek(now, 0).reset_after <= 1, "{} at {now}", form.name());
        }
    }
}

#[test]
fn reservations_depart_at_the_earliest_conforming_instant_in_order() {
    cases(400, |rng| {
        let (burst, delay) = (rng.within(1, 6), rng.below(2_000));
        for mut form in every(&spec(burst).max_delay(delay)) {
            let mut oracle = Oracle { delay: delay as u128 * 16, ..oracle(burst) };
            let mut now = rng.below(1 << 40);
            let mut last = 0;
            for _ in 0..60 {
                now += rng.below(150);
                let cost = rng.within(0, burst + 1) as u32;
                let before = form.state(now);
                let waiting = form.peek(now, cost).retry_after;
                match (form.reserve(now, cost), oracle.reserve(now as u128, cost)) {
                    (Decision { verdict: Verdict::Conforming, departure, permit, .. }, Ok(expected)) => {
                        assert_eq!(departure as u128, expected, "{} {cost} at {now}", form.name());
                        assert_eq!(
                            departure - now,
                            waiting,
                            "as long as a denied request would be told to wait"
                        );
                        assert!(departure - now <= delay && (cost == 0 || departure >= last));
                        assert_eq!(permit.stored, cost as u64 * 1_024);
                        last = last.max(departure);
                    }
                    (Decision { verdict: Verdict::NonConforming, retry_after, .. }, Err((1, expected))) => {
                        assert_eq!(retry_after, expected, "{}", form.name());
                        assert_eq!(form.state(now), before, "too long stored something");
                    }
                    (Decision { verdict: Verdict::Never, .. }, Err((2, 0))) => {
                        assert_eq!(form.state(now), before)
                    }
                    (got, expected) => panic!("{}: {got:?} for {expected:?}", form.name()),
                }
            }
        }
    });
}

#[test]
fn too_long_reservation_is_accepted_exactly_after_retry_after() {
    cases(500, |rng| {
        let limit = spec(3).max_delay(rng.below(500)).resolution(rng.within(0, 8) as i8 - 4).build().unwrap();
        let (mut cell, mut now) = (ExclusiveCell::new(), rng.next() >> 8);
        for _ in 0..60 {
            now += rng.below(40);
            let cost = rng.within(1, 3) as u32;
            if let Outcome::NonConforming { retry_after } = cell.reserve(&limit, now, cost.into()).outcome() {
                let at = |ticks| cell.clone().reserve(&limit, now + ticks, cost.into()).outcome();
                assert_eq!(at(retry_after), Outcome::Conforming);
                assert_eq!(at(retry_after - 1), Outcome::NonConforming { retry_after: 1 });
            }
        }
    });
}

/// Lead in ticks, exact as a fraction over 2^20.
fn lead(limit: &Limit, cell: &ExclusiveCell, now: u64) -> u128 {
    let (_, s) = limit.emission_interval();
    let q = cell.word().wrapping_sub(if s >= 0 { now << s } else { now >> -s }) as u128;
    if cell.word() == 0 || q == 0 || q > 1 << 62 {
        return 0;
    }
    if s >= 0 {
        q << 20 >> s
    } else {
        // The part of the coarse unit that has passed does not count.
        ((q << -s) - (now & ((1 << -s) - 1)) as u128) << 20
    }
}

#[test]
fn change_keeps_time_or_tokens_or_resets_and_never_mints() {
    cases(20_000, |rng| {
        let mut any = || {
            let (units, period) = (rng.within(1, 300), rng.within(1 << 12, 1 << 20));
            let burst = rng.within(1, 50);
            let s = rng.within(0, 12) as i8 - 4;
            LimitSpec::new(units, period, burst).resolution(s).skew(1 << 30).build().unwrap()
        };
        let (old, new) = (any(), any());
        let now = rng.below(1 << 40);
        let mut cell = ExclusiveCell::new();
        assert!(cell.check(&old, now, (rng.within(0, old.burst()) as u32).into()).passes());
        let now = now + rng.scaled(20);
        let (before, was) = (cell.peek(&old, now, 0), lead(&old, &cell, now));
        let (t_new, s_new) = new.emission_interval();
        // One q-unit of the new limit, in 2^-20 ticks, and the new horizon.
        let unit = |s: i32| if s >= 0 { 1u128 << 20 >> s } else { 1 << 20 << -s };
        let grain = unit(s_new);
        let horizon = new.burst() as u128 * t_new as u128 * grain;
        let mut moved = cell.clone();
        assert!(moved.change(&old, &new, now, Change::KeepTime).unwrap());
        let is = lead(&new, &moved, now);
        assert!(is >= was.min(horizon.saturating_sub(grain)), "time was forgiven: {was} -> {is}");
        assert!(is < was + grain.max(1), "more than one q-unit was added: {was} -> {is}");
        let mut moved = cell.clone();
        assert!(moved.change(&old, &new, now, Change::KeepUnits).unwrap());
        let after = moved.peek(&new, now, 0);
        // Units short of full stay what they were; rounding may cost part of one more.
        let short = old.burst() - before.remaining;
        let short_now = new.burst() - after.remaining;
        assert!(short_now <= short.max(1).min(new.burst()) + 1 && short_now + 1 >= short.min(new.burst()));
        assert!(short_now <= new.burst());
        assert!(cell.change(&old, &new, now, Change::Reset).unwrap());
        assert_eq!(cell.peek(&new, now, 0).remaining, new.burst());
    });
}

#[test]
fn strict_refunds_mint_nothing_in_any_order() {
    // Two units at once, one per 10 ticks. Charges i and j at 1000; i is refunded, m is charged, j is refunded.
    let admitted = |strict: bool| {
        let spec = LimitSpec::new(1, 10, 2);
        let limit = if strict { spec.strict_refunds() } else { spec }.build().unwrap();
        let cell = Cell::new();
        let i = cell.check_ex(&limit, 1000, 1, 0).permit;
        let j = cell.check_ex(&limit, 1000, 1, 0).permit;
        assert!(cell.refund(&limit, 1000, &i).is_some());
        assert!(cell.check(&limit, 1010, 1).passes());
        assert!(cell.refund(&limit, 1010, &j).is_some());
        (0..5).filter(|_| cell.check(&limit, 1010, 1).passes()).count()
    };
    assert_eq!(admitted(true), 1, "m and one more make the burst of 2");
    assert_eq!(admitted(false), 2, "the documented excess of a refund out of order");
}

#[test]
fn strict_refunds_stay_above_the_counterfactual() {
    // Random charges and refunds in random order: what was charged and not refunded conforms by itself.
    let mut seed = 7u64;
    let mut next = |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    let limit = LimitSpec::new(1, 10, 8).strict_refunds().build().unwrap();
    for round in 0..20_000 {
        let cell = Cell::new();
        let mut now = 1000;
        let mut open = Vec::new();
        let mut kept: Vec<(u64, u32)> = Vec::new();
        for _ in 0..24 {
            now += next(25);
            if next(3) == 0 && !open.is_empty() {
                let (at, permit) = open.swap_remove(next(open.len() as u64) as usize);
                assert!(cell.refund(&limit, now, &permit).is_some());
                kept[at as usize].1 = 0;
            } else {
                let cost = 1 + next(4) as u32;
                let decision = cell.check_ex(&limit, now, cost.into(), 0);
                if decision.passes() {
                    open.push((kept.len() as u64, decision.permit));
                    kept.push((now, cost));
                }
            }
        }
        let alone = Cell::new();
        for (now, cost) in kept {
            assert!(alone.check(&limit, now, cost.into()).passes(), "round {round}");
        }
    }
}

/// A limit in shadow mode holds up no reservation, and its queue is that of the same limit without.
#[test]
fn a_reservation_in_shadow_mode_leaves_at_once_and_is_charged_as_without() {
    let seen = std::cell::RefCell::new([0; 4]);
    cases(300, |rng| {
        let burst = rng.within(1, 6);
        let spec = spec(burst).max_delay(rng.below(1_000)).soft(rng.within(1, burst));
        for (mut plain, mut trial) in every(&spec).into_iter().zip(every(&spec.shadow())) {
            let mut now = rng.below(1 << 40);
            for _ in 0..60 {
                now += rng.below(150);
                let cost = rng.within(0, burst + 1) as u32;
                let from = if rng.one_in(2) { now } else { (now + rng.below(1_200)).saturating_sub(200) };
                let (wanted, got) = match from == now {
                    true => (plain.reserve(now, cost), trial.reserve(now, cost)),
                    false => (plain.reserve_from(now, from, cost), trial.reserve_from(now, from, cost)),
                };
                assert_eq!(got, in_shadow(wanted, now, from), "{} {cost} at {now}", plain.name());
                assert_eq!(plain.state(now), trial.state(now), "{} {cost} at {now}", plain.name());
                let held = got.flags & Decision::SHADOW != 0;
                seen.borrow_mut()[if held { 1 + wanted.verdict as usize } else { 0 }] += 1;
            }
        }
    });
    let seen = seen.into_inner();
    assert!(seen.iter().all(|&n| n > 1_000), "{seen:?}: at once, delayed, too long, never");
}

#[test]
fn the_permit_of_a_delayed_reservation_in_shadow_mode_gives_its_charge_back() {
    for mut form in every(&spec(1).max_delay(100).shadow()) {
        let [first, second, third] = [0, 0, 0].map(|now| form.reserve(now, 1));
        assert_eq!([first, second, third].map(|d| d.flags), [0, Decision::SHADOW, Decision::SHADOW]);
        assert_eq!([first, second, third].map(|d| d.retry_after), [0, 64, 28]);
        assert_eq!([first, second, third].map(|d| d.units), [1, 1, 0]);
        assert_eq!((third.permit, form.peek(0, 0).reset_after), (Permit::NONE, 128));
        assert_eq!(form.refund(0, &second.permit), Some(64), "{}", form.name());
        let never = form.reserve(0, 2);
        assert_eq!((never.flags, never.retry_after), (Decision::SHADOW, u64::MAX));
    }
}

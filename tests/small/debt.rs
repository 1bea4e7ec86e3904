//! What changes a small cell besides a check: spans and wraps, charges, refunds, and debts that survive a reset.

use crate::common::Rng;
use tatcell::{Cell, Cell32, Limit, Limit32, LimitSpec, Outcome, SmallLimit, SmallLimit32};

/// Limits of the header's own examples: units, period, burst, and the 2^(32 - shift) ticks after which a word wraps.
const SPANS: [(u64, u64, u64, u64); 4] = [
    (10, 1_000, 5, 1 << 32),           // 10 a second in ms: whole ticks
    (11_520, 1_000, 64, 1 << 18),      // 115 200 baud in bytes and ms: 262 s
    (300, 1_000, 10, 1 << 23),         // 300 a second in ms: 2.33 h
    (37_500, 1_000_000, 128, 1 << 26), // CAN at 37.5 kbit/s in us: 67 s
];

#[test]
fn a_cell_that_rests_for_its_span_is_fresh_and_at_the_wrap_it_owes_at_most_a_window() {
    for (units, period, burst, wrap) in SPANS {
        let limit = SmallLimit32::new(units, period, burst).unwrap();
        let wide = Limit32::new(units, period, burst).unwrap();
        let what = format!("{units} per {period}");
        assert_eq!(u64::from(limit.span()), wide.span(), "{what}");
        assert!(u64::from(limit.span()) < wrap && u64::from(limit.span()) > wrap / 100 * 98, "{what}");
        // The window in ticks, rounded up: H + S.
        let window = wrap - u64::from(limit.span());
        let start = 77u32;
        let charged = || {
            let cell = Cell32::new();
            assert!(cell.check_small(&limit, start, burst as u32).passes());
            cell
        };
        let refilled = (period * burst / units + 2) as u32;
        for rest in [refilled, limit.span() / 2, limit.span() - 1, limit.span()] {
            let (cell, now) = (charged(), start.wrapping_add(rest));
            assert_eq!(cell.debt(&limit, now), 0, "{what} after {rest}");
            assert!(cell.check_small(&limit, now, burst as u32).passes(), "{what} after {rest}");
        }
        // Just before the TAT comes round again the false debt is largest: more than nothing, at most a window; it
        // drains as any debt does, and nothing is minted.
        let mut worst = 0;
        for back in [1, 2, window / 2, window - 1] {
            let now = u64::from(start) + wrap - back;
            let debt = charged().debt(&limit, now as u32);
            assert!(u64::from(debt) <= window, "{what}: {debt} of {window}");
            worst = worst.max(debt);
            let cell = charged();
            if !cell.check_small(&limit, now as u32, burst as u32).passes() {
                let later = now + u64::from(debt);
                assert!(cell.check_small(&limit, later as u32, burst as u32).passes(), "{what}: it drains");
            }
        }
        assert!(worst > 0, "{what}: the false debt that the span warns of");
        // The idle rule: swept once per interval, it is fresh for ever.
        let cell = charged();
        let mut now = u64::from(start);
        while now < 3 * wrap {
            now += u64::from(limit.sweep_interval());
            cell.idle(&limit, now as u32);
            for part in 0..4 {
                let at = now + part * (u64::from(limit.sweep_interval()) / 4);
                assert_eq!(cell.debt(&limit, at as u32), 0, "{what} at {at}");
            }
        }
    }
}

#[test]
fn charges_after_the_fact_equal_the_big_ones_and_tell_what_found_no_room() {
    let mut rng = Rng(0x5eed_0101);
    for round in 0..2_000 {
        let (units, period, burst) = (rng.within(1, 50), rng.within(1, 5_000), rng.within(1, 40));
        let (Ok(small), Ok(small32)) =
            (SmallLimit::new(units, period, burst), SmallLimit32::new(units, period, burst))
        else {
            continue;
        };
        let (big, big32) =
            (Limit::new(units, period, burst).unwrap(), Limit32::new(units, period, burst).unwrap());
        let (a, b, c, d) = (Cell::new(), Cell::new(), Cell32::new(), Cell32::new());
        let mut now = u64::from(u32::MAX) - 3_000;
        for step in 0..60 {
            let cost = rng.below(burst + 1) as u32;
            let what = format!("round {round} step {step}: {units} per {period}, burst {burst}, cost {cost}");
            let wanted = a.charge(&big, now, cost.into());
            let left = b.charge_small(&small, now, cost).unwrap();
            assert_eq!(b.word(), a.word(), "{what}");
            assert_eq!(
                left > 0,
                wanted.permit.stored < u64::from(cost) * big.emission_interval().0,
                "{what}"
            );
            assert!(c.charge(&big32, now, cost.into()).passes());
            d.charge_small(&small32, now as u32, cost).unwrap();
            assert_eq!(d.word(), c.word(), "32 bits, {what}");
            now += rng.below(period * 3 / units + 2);
        }
        assert_eq!(d.charge_small(&small32, 0, burst as u32 + 1), Err(Outcome::Never));
    }
    // With a delay there is room above the burst: all of a longer transmission counts.
    let limit = SmallLimit32::shaped(1, 100, 10, 300).unwrap();
    let cell = Cell32::new();
    assert!(cell.check_small(&limit, 0, 10).passes());
    assert_eq!(cell.charge_small(&limit, 0, 2), Ok(0));
    assert_eq!(cell.charge_small(&limit, 0, 2), Ok(100), "one of two units found no room");
    assert_eq!(cell.debt(&limit, 0), 1_300);
}

#[test]
fn refunds_equal_strict_refunds_of_permits_and_never_give_a_unit_twice() {
    let mut rng = Rng(0x5eed_0102);
    for round in 0..2_000 {
        let (units, period, burst) = (rng.within(1, 50), rng.within(50, 5_000), rng.within(2, 40));
        let spec = LimitSpec::new(units, period, burst);
        let Ok(small) = SmallLimit::new(units, period, burst) else { continue };
        let Ok(small32) = SmallLimit32::new(units, period, burst) else { continue };
        let big = spec.strict_refunds().build().unwrap();
        let (a, b, c) = (Cell::new(), Cell::new(), Cell32::new());
        let mut now = 1_000_000;
        let mut charged = Vec::new();
        for step in 0..60 {
            let cost = rng.within(1, burst) as u32;
            let what =
                || format!("round {round} step {step}: {units} per {period}, burst {burst}, cost {cost}");
            if rng.below(3) > 0 {
                let decision = a.check_ex(&big, now, cost.into(), 0);
                assert_eq!(b.check_small(&small, now, cost).passes(), decision.passes(), "{}", what());
                if decision.passes() {
                    charged.push((decision.permit, now, cost));
                }
            } else if !charged.is_empty() {
                let (permit, then, cost) = charged.swap_remove(rng.below(charged.len() as u64) as usize);
                let wanted = a.refund(&big, now, &permit).unwrap();
                assert_eq!(b.refund_small(&small, now, then, cost), Ok(wanted), "{}", what());
            }
            assert_eq!(b.word(), a.word(), "{}", what());
            now += rng.below(period * 2 / units + 2);
        }
        // In 32 bits the same rule, across the wrap of the clock: charged and given back at once is as before.
        let now = u32::MAX - 5;
        assert!(c.check_small(&small32, now, burst as u32).passes());
        c.refund_small(&small32, now, now, burst as u32).unwrap();
        assert_eq!(c.debt(&small32, now), 0, "round {round}");
        assert!(c.check_small(&small32, now, burst as u32).passes());
        let (later, owed) = (now.wrapping_add(10), c.debt(&small32, now.wrapping_add(10)));
        assert!(c.refund_small(&small32, later, now, burst as u32).unwrap() <= owed, "round {round}");
        assert!(
            c.debt(&small32, later) <= 10,
            "round {round}: what ten ticks have drained is not given back"
        );
    }
    let limit = SmallLimit32::new(1, 100, 10).unwrap();
    let cell = Cell32::new();
    assert!(cell.check_small(&limit, 0, 5).passes());
    assert_eq!(cell.refund_small(&limit, 200, 0, 5), Ok(300), "two units have drained");
    assert!(cell.check_small(&limit, 0, 5).passes());
    assert_eq!(cell.refund_small(&limit, 500, 0, 5), Ok(0), "all have");
    assert_eq!(cell.refund_small(&limit, 0, 0, 11), Ok(0), "more than was ever charged");
}

#[test]
fn a_debt_survives_a_reset_of_the_clock_neither_forgiven_nor_lengthened() {
    let mut rng = Rng(0x5eed_0103);
    for round in 0..5_000 {
        let (units, period) = (rng.within(1, 2_000), rng.within(1, 5_000));
        let (burst, delay) = (rng.within(1, 40), rng.below(2) * rng.below(500));
        let Ok(small) = SmallLimit::shaped(units, period, burst, delay) else { continue };
        let Ok(small32) = SmallLimit32::shaped(units, period, burst, delay) else { continue };
        let (a, b) = (Cell::new(), Cell32::new());
        let then = rng.next() as u32;
        let cost = rng.within(1, burst) as u32;
        assert!(
            a.check_small(&small, then.into(), cost).passes() && b.check_small(&small32, then, cost).passes()
        );
        let aged = rng.below(period * burst / units + 2) as u32;
        let (saved, saved32) =
            (a.debt(&small, u64::from(then) + u64::from(aged)), b.debt(&small32, then.wrapping_add(aged)));
        let what =
            format!("round {round}: {units} per {period}, burst {burst}, {cost} at {then}, after {aged}");
        let asleep = rng.below(u64::from(saved32) + 3) as u32;
        // A new device: nothing but the two numbers, and a clock that starts somewhere else.
        let (restored, restored32) = (Cell::new(), Cell32::new());
        let boot = rng.next() as u32;
        restored.set_debt(&small, boot.into(), saved.saturating_sub(asleep.into()));
        restored32.set_debt(&small32, boot, saved32.saturating_sub(asleep));
        let passed = aged + asleep;
        let waits = |outcome: Outcome| match outcome {
            Outcome::Conforming => 0,
            Outcome::NonConforming { retry_after } => retry_after,
            other => panic!("{other:?}"),
        };
        for cost in [1, burst as u32] {
            // What a device that ran on would be told, and what this one is.
            let on = waits(a.check_small(&small, u64::from(then) + u64::from(passed), cost));
            let now = waits(restored.check_small(&small, boot.into(), cost));
            assert!(now >= on && now <= on + 2, "{what}, cost {cost}: {now} after the reset, {on} without");
            if on > 0 {
                break;
            }
            a.reset();
            restored.reset();
        }
        let on = waits(b.check_small(&small32, then.wrapping_add(passed), burst as u32));
        let now = waits(restored32.check_small(&small32, boot, burst as u32));
        assert!(now >= on && now <= on + 2, "32 bits, {what}: {now} after the reset, {on} without");
    }
}

#[test]
fn garbage_from_backup_memory_is_at_most_a_full_debt() {
    let limit = SmallLimit32::shaped(3, 1_000, 5, 700).unwrap();
    let wide = SmallLimit::shaped(3, 1_000, 5, 700).unwrap();
    let full = limit_in_ticks(5, 1_000, 3) + 700;
    for ticks in [0, 1, full - 1, full, full + 1, 1 << 20, u32::MAX / 2, u32::MAX - 1, u32::MAX] {
        let (cell, big) = (Cell32::new(), Cell::new());
        cell.set_debt(&limit, 123, ticks);
        big.set_debt(&wide, 123, ticks.into());
        assert_eq!(cell.debt(&limit, 123), ticks.min(full + 1), "{ticks}");
        assert!(big.debt(&wide, 123) <= u64::from(full) + 1, "{ticks}");
    }
    let cell = Cell32::new();
    cell.set_debt(&limit, 0, 0);
    assert_eq!(cell.word(), 0, "no debt is a fresh cell");
}

/// As the readme says: the debt, times the new interval by the old one.
#[test]
fn a_debt_that_is_scaled_under_another_limit_is_as_many_units() {
    for (old, new, used) in [(60, 600, 60), (60, 600, 45), (600, 60, 7), (100, 60, 60)] {
        let [from, to] = [old, new].map(|units| SmallLimit32::new(units, 3_600_000, units).unwrap());
        let cell = Cell32::new();
        assert_eq!(cell.check_small(&from, 5, used), Outcome::Conforming);
        let debt = u64::from(cell.debt(&from, 5));
        cell.set_debt(&to, 5, (debt * (3_600_000 / new)).div_ceil(3_600_000 / old) as u32);
        let left = (0..1_000).filter(|_| cell.check_small(&to, 5, 1).passes()).count();
        assert_eq!(left as u32, (new as u32).saturating_sub(used), "{used} of {old}, then {new}");
    }
}

#[test]
fn who_polls_a_cell_that_others_reserve_from_starves() {
    let limit = SmallLimit32::shaped(1, 100, 1, 500).unwrap();
    let cell = Cell32::new();
    let (mut polled, mut reserved) = (0, 0);
    for now in 0..2_600 {
        polled += u32::from(cell.check_small(&limit, now, 1).passes());
        reserved += u32::from(cell.reserve_small(&limit, now, 1).is_ok());
    }
    assert_eq!((polled, reserved), (1, 30), "the header and the recipes say so");
}

fn limit_in_ticks(burst: u32, period: u32, units: u32) -> u32 {
    (burst * period).div_ceil(units)
}

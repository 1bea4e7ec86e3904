//! Limits: which are accepted, which are refused, and that the configured rate is a ceiling.

use crate::common::{cases, Rng};
use tatcell::{
    limit, Cell, Cell32, ExclusiveCell, Limit, Limit32, LimitError, LimitSpec, Outcome, Table, TableOptions,
};

const NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * NS;

#[test]
fn every_error_is_reported() {
    let spec = LimitSpec::new(10, NS, 20);
    let refused = [
        (LimitSpec::new(0, NS, 1), LimitError::ZeroRate),
        (LimitSpec::new(1, 0, 1), LimitError::ZeroPeriod),
        (LimitSpec::new(1, NS, 0), LimitError::ZeroBurst),
        (LimitSpec::new(2, 1, 1).resolution(0), LimitError::NotRepresentable),
        (LimitSpec::new(u64::MAX, 1, 1), LimitError::NotRepresentable),
        (LimitSpec::new(1, u64::MAX, 1), LimitError::NotRepresentable),
        (LimitSpec::new(1, DAY_NS, 1 << 20), LimitError::NotRepresentable),
        (LimitSpec::new(1, NS, u64::MAX), LimitError::NotRepresentable),
        (spec.max_delay(u64::MAX), LimitError::HorizonTooLong),
        (spec.max_room(u64::MAX), LimitError::HorizonTooLong),
        (spec.max_debt(u64::MAX), LimitError::HorizonTooLong),
        (spec.penalty(u64::MAX), LimitError::HorizonTooLong),
        (spec.skew(u64::MAX), LimitError::HorizonTooLong),
        (spec.resolution(64), LimitError::BadResolution),
        (spec.resolution(-64), LimitError::BadResolution),
        (spec.resolution(i8::MAX), LimitError::BadResolution),
        (spec.resolution(i8::MIN), LimitError::BadResolution),
        (spec.soft(21), LimitError::BadSoft),
    ];
    for (spec, error) in refused {
        assert_eq!(spec.build(), Err(error), "{spec:?}");
    }
    assert_eq!(LimitSpec::new(1, 1_000, 5).heal().build32(), Err(LimitError::BadHeal));
    assert!(LimitSpec::new(1, 1_000, 5).heal().build().is_ok());
    assert_eq!(Limit::new(0, 1, 1), Err(LimitError::ZeroRate));
    assert_eq!(Limit::from_rate(1, 0, 1), Err(LimitError::ZeroPeriod));
    assert_eq!(Limit32::new(1, 1_000, 1 << 30), Err(LimitError::HorizonTooLong));
    assert_eq!(LimitSpec::new(1, 1_000, 5).max_delay(1 << 31).build32(), Err(LimitError::HorizonTooLong));
}

#[test]
fn every_error_has_its_own_words() {
    use LimitError::*;
    let all =
        [ZeroRate, ZeroPeriod, ZeroBurst, NotRepresentable, HorizonTooLong, BadResolution, BadSoft, BadHeal];
    let texts: std::collections::BTreeSet<String> = all.iter().map(|e| e.to_string()).collect();
    assert_eq!(texts.len(), all.len());
    assert!(texts.iter().all(|t| !t.is_empty()));
}

/// T_q is the least that does not exceed the rate, and close to it.
fn assert_precise(units: u64, period: u64, (t_q, s): (u64, i32), precision: u32) {
    let (num, den) = (1u128 << s.max(0), 1u128 << (-s).max(0));
    // T_q >= period * 2^s / units > T_q - 1, in whole numbers.
    let cost = t_q as u128 * units as u128 * den;
    let ideal = period as u128 * num;
    assert!(cost >= ideal, "{units} per {period}: above the configured rate");
    assert!(cost - ideal < units as u128 * den, "{units} per {period}: T_q is not the least");
    // (cost - ideal) / ideal <= 2^-precision; 2^-16 is 15.26 ppm.
    assert!((cost - ideal) << precision <= ideal, "{units} per {period}: error above 2^-{precision}");
}

#[test]
fn rates_from_one_a_day_to_400_gbit_configure_within_15_ppm_and_never_above() {
    let rates = [
        (1, DAY_NS, 5),
        (1, NS, 5),
        (3, NS, 7),
        (700_000, NS, 1_000),
        (999_999_937, NS, 1_000),
        (1_000_000_000, NS, 1_000),
        (46_000_000, NS, 2_048),
        (1_250_000_000, NS, 1 << 20),
        (12_500_000_000, NS, 1 << 24),
        (50_000_000_000, NS, 1 << 24),
    ];
    for (units, period, burst) in rates {
        let limit = Limit::from_rate(units, period, burst).unwrap();
        assert_eq!(limit.burst(), burst);
        assert_precise(units, period, limit.emission_interval(), 16);
    }
}

#[test]
fn any_rate_that_configures_is_precise_and_never_above() {
    let mut accepted = (0, 0);
    let mut rng = Rng(7);
    for _ in 0..200_000 {
        let (units, period) = (rng.scaled(50).max(1), rng.scaled(50).max(1));
        let burst = rng.scaled(20).max(1);
        if let Ok(limit) = Limit::new(units, period, burst) {
            accepted.0 += 1;
            assert_precise(units, period, limit.emission_interval(), 16);
        }
        if let Ok(limit) = Limit32::new(units, period, burst) {
            accepted.1 += 1;
            let (t_q, s) = limit.emission_interval();
            // A whole number of ticks is exact, however small.
            if !(period % units == 0 && s == 0 && t_q == period / units) {
                assert_precise(units, period, (t_q, s), 10);
            }
        }
    }
    assert!(accepted.0 > 100_000 && accepted.1 > 10_000, "{accepted:?}");
}

#[test]
fn long_run_rate_is_the_configured_one_from_below() {
    cases(200, |rng| {
        let (units, period) = (rng.within(1, 5_000), rng.within(1, 100_000));
        let burst = rng.within(1, 50);
        let limit = Limit::new(units, period, burst).unwrap();
        let mut cell = ExclusiveCell::new();
        let (mut now, mut admitted) = (rng.next() >> 1, 0u128);
        let start = now;
        for _ in 0..5_000 {
            // Greedy: as much as passes at once, then wait exactly as long as told.
            let left = cell.peek(&limit, now, 0).remaining.min(u32::MAX as u64) as u32;
            assert_eq!(cell.check(&limit, now, left.into()), Outcome::Conforming);
            admitted += left as u128;
            let Outcome::NonConforming { retry_after } = cell.check(&limit, now, 1) else {
                panic!("more left")
            };
            let elapsed = (now - start) as u128;
            let ceiling = burst as u128 + elapsed * units as u128 / period as u128;
            assert!(admitted <= ceiling, "{units} per {period}: {admitted} above {ceiling}");
            // 15.3 ppm below at most, and what is under way at this tick.
            let floor = burst as u128 + elapsed * units as u128 * 999_984 / 1_000_000 / period as u128;
            // A burst of one loses the fraction of a tick: its bucket is full before the tick that sees it.
            assert!(burst == 1 || admitted + 1 >= floor, "{units} per {period}: {admitted} below {floor}");
            now += retry_after;
        }
    });
}

#[test]
fn any_partition_of_a_burst_admits_exactly_the_burst() {
    cases(2_000, |rng| {
        let (units, period) = (rng.scaled(30) | 1, rng.scaled(30) | 1);
        let burst = rng.within(1, 1 << 16);
        let Ok(limit) = Limit::new(units, period, burst) else { return };
        let (mut cell, now) = (ExclusiveCell::new(), rng.next());
        let mut left = burst;
        while left > 0 {
            let part = rng.within(1, rng.clone().within(1, left)).min(left);
            assert_eq!(
                cell.check(&limit, now, (part as u32).into()),
                Outcome::Conforming,
                "{part} of {left}"
            );
            left -= part;
        }
        assert!(matches!(cell.check(&limit, now, 1), Outcome::NonConforming { .. }));
        assert_eq!(cell.check(&limit, now, 0), Outcome::Conforming);
    });
}

#[test]
fn limits_are_constants() {
    const A: Limit = limit!(10 per NS, burst 20);
    const B: Limit =
        match LimitSpec::new(10, NS, 20).soft(10).max_debt(3).penalty(1).epoch(9).heal().shadow().build() {
            Ok(limit) => limit,
            Err(_) => panic!(),
        };
    static C: Limit32 = match Limit32::new(1, 100, 20) {
        Ok(limit) => limit,
        Err(_) => panic!(),
    };
    static CELL: Cell = Cell::new();
    static CELL32: Cell32 = Cell32::new();
    assert_eq!((A.burst(), B.burst(), C.burst()), (20, 20, 20));
    assert_eq!(CELL.check(&A, 0, 20), Outcome::Conforming);
    assert_eq!(CELL.check(&A, 0, 1), Outcome::NonConforming { retry_after: 100_000_000 });
    assert_eq!(CELL32.check(&C, 0, 21), Outcome::Never);
    assert_eq!(std::mem::size_of::<Cell>(), 8);
    assert_eq!(std::mem::size_of::<Cell32>(), 4);
}

#[test]
fn unlimited_passes_everything_and_stores_nothing() {
    let mut rng = Rng(11);
    for _ in 0..10_000 {
        let (word, now, cost) = (rng.next(), rng.next(), rng.next() as u32);
        let (cell, narrow) = (Cell::from_word(word), Cell32::from_word(word as u32));
        assert_eq!(
            cell.check(&Limit::UNLIMITED, now, cost.into()),
            Outcome::Conforming,
            "{word:#x} at {now:#x}"
        );
        assert_eq!(narrow.check(&Limit32::UNLIMITED, now, cost.into()), Outcome::Conforming);
        let d = cell.check_ex(&Limit::UNLIMITED, now, cost.into(), 0);
        assert!(d.passes() && d.remaining == u64::MAX && d.retry_after == 0 && d.next_unit == 0);
        assert_eq!((d.burst, d.permit.stored), (u64::MAX, 0));
        assert!(cell.charge(&Limit::UNLIMITED, now, cost.into()).passes());
        assert_eq!((cell.word(), narrow.word()), (word, word as u32));
    }
    assert_eq!(Limit::UNLIMITED.burst(), u64::MAX);
}

#[test]
fn given_resolution_is_used_and_exact_against_its_own_clock() {
    for s in [-20i8, -8, -3, -1, 0, 1, 7, 20] {
        let spec = LimitSpec::new(3, 1 << 40, 10).resolution(s);
        let limit = spec.build().unwrap_or_else(|e| panic!("resolution {s}: {e}"));
        let (t_q, used) = limit.emission_interval();
        assert_eq!(used, s as i32);
        assert_eq!(t_q as u128, (1u128 << (40 + s as i32)).div_ceil(3));
    }
    // 32-bit: coarser than the tick only where it is asked for.
    assert_eq!(Limit32::new(1, NS, 5), Err(LimitError::HorizonTooLong));
    let limit = LimitSpec::new(1, NS, 5).resolution(-4).build32().unwrap();
    assert_eq!(limit.emission_interval(), ((NS >> 4), -4));
    assert!(limit.span() > 50 * NS, "most of the word stays free of phantoms");
}

#[test]
fn a_limit_of_a_table_tells_its_longest_delay() {
    let lines = crate::common::memory(4);
    let spec = LimitSpec::new(1, 1 << 12, 8).max_delay(1 << 13);
    let table = Table::init(&lines, &TableOptions::new(spec).seed([1; 16])).unwrap();
    assert_eq!(table.limit(&spec).unwrap().max_delay(), Some(1 << 13));
    assert_eq!(table.limit(&spec.max_delay(0)).unwrap().max_delay(), Some(0));
    assert_eq!(table.unlimited().max_delay(), Some(0));
    let windows = LimitSpec::fixed_window(8, 1 << 12);
    let table = Table::init(&lines, &TableOptions::new(windows).seed([1; 16])).unwrap();
    assert_eq!(table.limit(&windows).unwrap().max_delay(), None);
}

/// A debt that has drained is none under an unlimited limit either.
#[test]
fn a_word_behind_the_clock_owes_nothing_under_an_unlimited_limit() {
    let limit = LimitSpec::new(1, 10, 5).resolution(0).build().unwrap();
    let cell = Cell::new();
    assert!(cell.check(&limit, 1_000, 5).passes());
    assert_eq!(cell.peek(&Limit::UNLIMITED, 1_000, 1).reset_after, 50);
    assert_eq!(cell.peek(&Limit::UNLIMITED, 2_000, 1).reset_after, 0);
}

#[test]
fn span_is_the_word_less_the_window() {
    let limit = LimitSpec::new(1, 1 << 20, 8).skew(1 << 22).build().unwrap();
    assert_eq!(limit.span(), (1u128 << 64).wrapping_sub((8 << 20) + (1 << 22)) as u64);
    let limit = LimitSpec::new(1, 1 << 10, 8).skew(1 << 14).resolution(-2).build32().unwrap();
    assert_eq!(limit.span(), ((1 << 32) - (8 << 8) - (1 << 12)) << 2);
    // An eighth of the span is the default skew where the span exceeds a year.
    let year = Limit::new(1, NS, 1).unwrap();
    assert_eq!(year.span(), u64::MAX - (1 << 61) - NS + 1);
}

#[test]
fn burst_is_what_passes_at_once_again_after_idle() {
    // The second burst, too: some peers admit one more after a pause.
    cases(300, |rng| {
        let (units, period, burst) = (rng.within(1, 100), rng.within(1, 10_000), rng.within(1, 30));
        let limit = Limit::new(units, period, burst).unwrap();
        let (mut cell, mut now) = (ExclusiveCell::new(), rng.next() >> 1);
        for _ in 0..3 {
            let passed = (0..burst + 5).filter(|_| cell.check(&limit, now, 1).passes()).count();
            assert_eq!(passed as u64, burst);
            now += cell.peek(&limit, now, 0).reset_after + rng.below(1_000);
        }
    });
}

#[test]
fn refund_of_another_epoch_credits_nothing() {
    let old = LimitSpec::new(1, NS, 5).epoch(1).build().unwrap();
    let new = LimitSpec::new(1, NS, 5).epoch(2).build().unwrap();
    let cell = Cell::new();
    let d = cell.check_ex(&old, 0, 3, 0);
    assert_eq!(d.permit.epoch, 1);
    assert_eq!(cell.refund(&new, 0, &d.permit), Some(0));
    assert_eq!(cell.peek(&old, 0, 0).remaining, 2);
    assert_eq!(cell.refund(&old, 0, &d.permit), Some(3 * NS));
    assert_eq!(cell.peek(&old, 0, 0).remaining, 5);
}

/// In q-units so fine that a tick is a whole turn of the word, its clock stands still and no debt ever drains.
#[test]
fn a_word_that_a_tick_turns_past_its_span_is_refused() {
    // 2^62 units a tick leave bits for a burst of one, and for less than a tick of time.
    let spec = LimitSpec::new(1 << 32, 1, 1);
    for s in 0..64 {
        if let Ok(limit) = spec.resolution(s).build32() {
            assert!(limit.span() > 0, "resolution {s}: {:?}", limit.info());
            let cell = tatcell::Cell32::new();
            assert!(cell.check(&limit, 100, 1).passes());
            let later = (101..200).filter(|now| cell.peek(&limit, *now, 1).passes()).count();
            assert!(later > 0, "resolution {s}: locked out for ever");
        }
    }
    assert_eq!(spec.resolution(32).build32().unwrap_err(), LimitError::HorizonTooLong);
    let meter = tatcell::MeterSpec::rfc4115(1 << 62, 3, 1 << 62, 123, 2);
    assert_eq!(meter.build().unwrap_err(), tatcell::MeterError::HorizonTooLong);
}

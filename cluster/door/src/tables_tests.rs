use super::*;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

fn tables() -> Tables {
    Tables::new(1_000, FullPolicy::Deny).expect("tables")
}

#[test]
fn every_usual_limit_has_a_table_and_the_finest_one() {
    let tables = tables();
    let resolution = |units, period, burst| {
        let limit = tables.limit(units, period, burst);
        limit.unwrap_or_else(|e| panic!("{units} per {period}, {burst}: {e}")).unit().1
    };
    assert_eq!(resolution(50_000_000, SECOND, 100_000_000), 6);
    assert_eq!(resolution(30, 60 * SECOND, 1), 6);
    assert_eq!(resolution(30, 60 * SECOND, 16), 0);
    assert_eq!(resolution(900_000, SECOND, 900_000_000), 0);
    assert_eq!(resolution(1_000, 3_600 * SECOND, 1_000), -5);
    assert_eq!(resolution(100, DAY, 100), -10);
    assert_eq!(resolution(100, 30 * DAY, 100), -15);
    assert_eq!(resolution(1, 36 * 365 * DAY, 1), -20);
    // The largest number of each unit of time, which the pages state; all below it have a table, too.
    let largest = [
        (1, 62_500_000),
        (60, 58_593_750),
        (3_600, 109_863_281),
        (86_400, 82_397_460),
        (7 * 86_400, 576_782_226),
        (30 * 86_400, 77_247_619),
        (365 * 86_400, 939_846_038),
    ];
    for (seconds, most) in largest {
        let period = seconds * SECOND;
        for units in [1, most / 1_000, most / 10, most / 2, most - 1, most] {
            resolution(units, period, units);
        }
        let why = tables.limit(2 * most, period, 2 * most).expect_err("too many");
        assert!(why.contains("needs units that take"), "{why}");
    }
    resolution(1_000, SECOND, 2_000_000);
}

#[test]
fn what_no_table_has_is_said() {
    let tables = tables();
    for (units, period, burst) in
        [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 10, 1), (1, 40 * 365 * DAY, 1), (1, SECOND, u64::MAX)]
    {
        assert!(tables.limit(units, period, burst).is_err(), "{units} per {period}, {burst}");
    }
    assert!(Tables::new(0, FullPolicy::Deny).is_err() && Tables::new(usize::MAX, FullPolicy::Deny).is_err());
}

#[test]
fn a_unit_is_never_shorter_than_asked_for_and_at_most_a_thousandth_longer() {
    let tables = tables();
    for count in (1..2_000).chain([9_999, 77_777, 999_983]) {
        for (period, burst) in [(1, 1), (60, 100), (3_600, 1_000), (86_400, 86_400)] {
            let Ok(limit) = tables.limit(count, period * SECOND, burst) else { continue };
            let (unit, resolution) = limit.unit();
            let kept = unit as f64 * 2f64.powi(-resolution);
            let asked = (period * SECOND) as f64 / count as f64;
            assert!(kept >= asked * (1.0 - 1e-12) && kept <= asked * (1.0 + 1.0 / 1024.0), "{kept} {asked}");
        }
    }
}

#[test]
fn a_key_is_forgotten_and_a_key_that_never_was_owes_nothing() {
    let tables = tables();
    let limits = [tables.limit(1, SECOND, 2), tables.limit(1, DAY, 2)].map(|l| l.expect("a limit"));
    let now = 5 * DAY;
    assert!(!tables.forget(b"k", now));
    for limit in &limits {
        assert!(Tables::check(limit, b"k", 2, now).is_some_and(|d| d.passes()));
        assert!(Tables::check(limit, b"k", 1, now).is_some_and(|d| !d.passes()));
    }
    assert_eq!(tables.in_use(now).0, 2);
    assert!(tables.forget(b"k", now));
    for limit in &limits {
        assert!(Tables::check(limit, b"k", 2, now).is_some_and(|d| d.passes()));
    }
}

#[test]
fn a_key_that_owes_in_a_full_table_takes_a_slot_over_and_says_so() {
    let tables = Tables::new(1, FullPolicy::Inherit).expect("tables");
    let limit = tables.limit(100, DAY, 100).expect("a limit");
    // The memory is one huge page, however few keys are asked for.
    for key in 0..600_000u32 {
        assert!(Tables::check(&limit, &key.to_le_bytes(), 1, DAY).is_some());
    }
    let (live, slots) = tables.in_use(DAY);
    assert!(live > slots * 99 / 100, "{live} of {slots}");
    for key in [b"a", b"b", b"c", b"d"] {
        assert_eq!(limit.owe(key, DAY / 2, DAY), Some(true));
        assert!(limit.owed(key, DAY) >= DAY / 2);
    }
}

#[test]
fn sweeps_reach_every_slot_within_the_span_of_the_finest_table() {
    let tables = tables();
    let limit = tables.limit(1_000, SECOND, 10).expect("a limit");
    let mut now = DAY;
    for key in 0..500u32 {
        assert!(Tables::check(&limit, &key.to_le_bytes(), 10, now).is_some_and(|d| d.passes()));
    }
    // Ten minutes; without a sweep a word of the finest table reads as a debt again after 137 s.
    for second in 0..600 {
        now += SECOND;
        tables.sweep(now, second);
        assert!(second < 1 || tables.in_use(now).0 == 0, "after {second} s: {:?}", tables.in_use(now));
    }
}

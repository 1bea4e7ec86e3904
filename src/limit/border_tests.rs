//! The numbers of a limit at the borders of each rule: the last that fits, and the first that does not.

#![allow(clippy::arithmetic_side_effects)]

use super::params::{Params, Width};
use super::spec::LimitSpec;
use super::LimitError::{BadHeal, BadResolution, BadSoft, HorizonTooLong, NotRepresentable, TooManyUnits};
use super::{window, Limit, LimitError};

/// The z of a limit that counts: its unit of time is 2^z ticks.
fn coarseness(spec: LimitSpec) -> i32 {
    let p = spec.build().unwrap_or_else(|error| panic!("{spec:?}: {error}")).0;
    i32::from(p.shr)
}

fn error(spec: LimitSpec) -> Option<LimitError> {
    spec.build().err()
}

// ---- rates ----------------------------------------------------------------------------------------------------------

#[test]
fn the_debt_of_a_burst_is_below_2_to_the_62() {
    let spec = |burst| LimitSpec::new(1, 1 << 61, burst).resolution(0);
    assert_eq!([error(spec(1)), error(spec(2))], [None, Some(NotRepresentable)]);
    assert_eq!(spec(1).build().map(|limit| limit.burst()), Ok(1));
    let room = |units| LimitSpec::new(1, 1 << 31, 1).resolution(0).max_room(units);
    assert_eq!([error(room((1 << 31) - 1)), error(room(1 << 31))], [None, Some(HorizonTooLong)]);
}

/// A 32-bit limit may use all but one bit of its word. Only a caller who asks for it gets a q-unit of several ticks.
#[test]
fn a_limit_of_32_bits_spares_one_bit_and_is_never_coarser_than_a_tick_by_itself() {
    let chosen = |skew| {
        let spec = LimitSpec::new(1, 1 << 20, 1 << 10).skew(skew);
        let fixed = spec.resolution(0).build32();
        assert_eq!(spec.build32(), fixed);
        fixed.map(|limit| (limit.0.window_q, limit.0.shr))
    };
    let most = (1 << 30) - 1;
    assert_eq!([chosen(0), chosen(most)], [Ok((1 << 30, 0)), Ok(((1 << 31) - 1, 0))]);
    assert_eq!(chosen(most + 1), Err(HorizonTooLong));
    let coarse = LimitSpec::new(1, 1 << 20, 1 << 10).skew(most + 1).resolution(-1).build32();
    assert_eq!(coarse.map(|limit| (limit.0.window_q, limit.0.shr)), Ok((1 << 30, 1)));
    // The fraction of a tick has no more room than a tick.
    let fine = |burst| LimitSpec::new(3, 1_000, burst).skew(0).build32().map(|limit| limit.0.shl);
    assert_eq!([fine((1 << 31) / 1_334), fine((1 << 31) / 1_334 + 1)], [Ok(2), Err(HorizonTooLong)]);
}

#[test]
fn resolutions_from_minus_63_to_63_are_tried() {
    // The finest: 2^16 q-units per unit take all 63.
    let fast = LimitSpec::new(1 << 47, 1, 1);
    assert_eq!(fast.build().map(|limit| limit.info().resolution), Ok(63));
    assert_eq!(error(LimitSpec::new(1 << 48, 1, 1)), Some(NotRepresentable));
    assert_eq!([error(fast.resolution(63)), error(fast.resolution(64))], [None, Some(BadResolution)]);
    // The coarsest is allowed, but no horizon fits it.
    let slow = LimitSpec::new(1, u64::MAX, 1);
    assert_eq!(
        [error(slow.resolution(-63)), error(slow.resolution(-64))],
        [Some(HorizonTooLong), Some(BadResolution)]
    );
}

#[test]
fn horizon_and_skew_together_are_below_2_to_the_63_ticks() {
    let spec = |skew| LimitSpec::new(1, 1 << 20, 1).resolution(-10).skew(skew);
    let most = (1 << 63) - (1 << 20);
    assert_eq!([error(spec(most - (1 << 10))), error(spec(most))], [None, Some(HorizonTooLong)]);
    assert_eq!(error(spec(u64::MAX)), Some(HorizonTooLong));
}

#[test]
fn heal_has_resolutions_up_to_9_and_soft_thresholds_reach_the_burst() {
    let spec = LimitSpec::new(1, 1_000, 5);
    assert_eq!([error(spec.heal().resolution(9)), error(spec.heal().resolution(10))], [None, Some(BadHeal)]);
    assert_eq!([error(spec.soft(5)), error(spec.soft(6))], [None, Some(BadSoft)]);
}

#[test]
fn an_option_that_a_plain_check_does_not_know_keeps_a_limit_off_it() {
    let spec = LimitSpec::new(1, 1_000, 5);
    let plain = |spec: LimitSpec| spec.build().map(|limit| limit.0.plain);
    for spec in [spec.heal(), spec.shadow(), spec.penalty(1)] {
        assert_eq!(plain(spec), Ok(0), "{spec:?}");
    }
    assert_eq!([plain(spec), plain(spec.strict_refunds())], [Ok(5), Ok(5)]);
}

#[test]
fn a_span_of_more_ticks_than_there_are_is_all_of_them() {
    let span = |shift| LimitSpec::new(1, 1 << 40, 1).resolution(shift).build().map(|limit| limit.span());
    assert_eq!(span(-20), Ok(u64::MAX));
    assert!(span(0).is_ok_and(|span| span < u64::MAX));
}

/// Above every lead of a word that lies ahead of its clock, and below those of words that lie behind it.
#[test]
fn an_unlimited_limit_reads_half_the_span_as_ahead() {
    // Made at run time too.
    let p = Params::unlimited(core::hint::black_box(Width::CELL64));
    assert_eq!(p, Limit::UNLIMITED.0);
    assert_eq!([p.window_q, p.horizon_q, p.burst_q, p.debt_q], [(1 << 63) - 1; 4]);
}

// ---- windows --------------------------------------------------------------------------------------------------------

/// The clock of a word that counts lies past every count of its moment.
#[test]
fn no_count_of_this_moment_lies_ahead_of_its_clock() {
    let p = LimitSpec::fixed_window(5, 100).resolution(0).build().expect("a limit").0;
    for now in [0, 1, 77, 1 << 40] {
        assert_eq!(p.clock_q(now), now << 3 | 7);
    }
}

/// 12 of 64 bits count here, and 52 are left for the time.
#[test]
fn a_border_is_exact_where_the_word_lasts_for_1024_windows_or_a_year_of_nanoseconds() {
    let z = |window| coarseness(LimitSpec::fixed_window(4095, window));
    assert_eq!([1, 1 << 41, 1 << 42].map(z), [0, 0, 1]);
    // Whole seconds of nanoseconds: a year of them is more than 2^54.
    let second = 1_000_000_000;
    assert_eq!([second, 86_400 * second, second - 1].map(z), [4, 5, 0]);
    assert_eq!(coarseness(LimitSpec::sliding_counter(4095, second)), 16);
    // 32 bits count: a year would leave 119 units in a second, so 64 windows do.
    assert_eq!(coarseness(LimitSpec::sliding_counter((1 << 16) - 1, second)), 4);
    // 18 years of nanoseconds are enough for any window.
    assert_eq!(z(1 << 52), 8);
}

#[test]
fn a_window_that_is_too_long_for_its_word_gets_a_coarser_unit() {
    // Horizon and skew are two windows and a unit, and 2^51 units are too many: so 2^49 units of 2^11 ticks.
    assert_eq!(coarseness(LimitSpec::fixed_window(4095, 1 << 60)), 11);
    assert_eq!(error(LimitSpec::fixed_window(4095, u64::MAX)), Some(HorizonTooLong));
}

#[test]
fn a_half_life_keeps_2_to_the_27_units_or_as_many_as_its_units_ask_for() {
    let z = |units, bits: u32| coarseness(LimitSpec::decay(units, 1 << bits));
    assert_eq!([z(1, 40), z(1, 28), z(1, 27)], [13, 1, 0]);
    // 2^10 times the square of the units.
    assert_eq!([z(1 << 9, 40), z(1 << 10, 40), z(1 << 15, 40)], [12, 10, 0]);
}

#[test]
fn a_decaying_level_has_31_bits() {
    let spec = |units| LimitSpec::decay(units, 1 << 40);
    assert_eq!([error(spec((1 << 31) - 1)), error(spec(1 << 31))], [None, Some(TooManyUnits)]);
}

/// In tables a chosen resolution keeps seven eighths free for rates, but three quarters for windows; in cells half.
#[test]
fn a_window_spares_two_bits_at_most() {
    let fits = |width, window| {
        let spec = LimitSpec::fixed_window(3, window).skew(0);
        window::at(&spec, width, 0).map(|p| p.horizon_q >> p.shl)
    };
    // 2 of the 64 bits count: below 2^61 units of time, or 2^60 with more to spare.
    let wide = Width { spare: 3, ..Width::CELL64 };
    let two = Width { spare: 2, ..wide };
    for (width, bits) in [(Width::CELL64, 61), (two, 60), (wide, 60)] {
        assert_eq!(fits(width, (1 << bits) - 2), Ok((1 << bits) - 1));
        assert_eq!(fits(width, (1 << bits) - 1), Err(HorizonTooLong), "2^{bits}");
    }
}

/// An eighth of the span if that is a year of nanoseconds; else 2^30 ticks.
#[test]
fn the_skew_of_a_window_is_long_where_its_span_is() {
    let skew = |window| LimitSpec::fixed_window(4095, window).build().map(|limit| limit.info().skew);
    assert_eq!([skew(1 << 17), skew(1 << 44)], [Ok(1 << 30), Ok(1 << 52)]);
}

/// T is w / quota exactly, so only the window is rounded.
#[test]
fn the_error_of_a_quota_is_what_its_window_is_rounded_up_by() {
    for (quota, window, shift) in [(3, 1_000, 0), (7, 1 << 20, -5), (1_000, 86_400_001, -9), (5, 1_003, -3)] {
        let info = LimitSpec::quota_linear(quota, window).resolution(shift).build().expect("a limit").info();
        let unit = 1u64 << -shift;
        let error = ((window.next_multiple_of(unit) - window) * 1_000_000_000).div_ceil(window);
        assert_eq!((info.rate_error_ppb, info.border_error), (error, unit - 1), "{quota} in {window}");
    }
}

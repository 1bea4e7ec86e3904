//! What geometry a table of limits that count chooses, and what it refuses.

use super::*;
use crate::limit::LimitError::{BadAlgorithm, TooManyUnits};

const W: u64 = 1 << 20;

fn made(options: TableOptions) -> Result<Geometry, TableError> {
    choose(&options, 64)
}

fn aligned(window: u64) -> LimitSpec {
    LimitSpec::fixed_window(5, window).aligned(0)
}

#[test]
fn clocks_of_aligned_windows_may_differ_by_an_eighth_or_as_said() {
    let options = |guard: Option<u64>, skew: Option<u64>| {
        made(TableOptions { guard, skew, ..TableOptions::new(aligned(W)).resolution(0) })
            .map(|g| g.guard as u64)
    };
    assert_eq!(options(None, None), Ok(W / 8));
    assert_eq!(options(Some(1_000), None), Ok(1_000));
    assert_eq!(options(Some(1_000), Some(5_000)), Ok(1_000));
    assert_eq!(options(None, Some(5_000)), Ok(5_000));
    assert_eq!(options(None, Some(W / 8)), Ok(W / 8));
    assert_eq!(options(None, Some(W / 8 - 1)), Ok(W / 8 - 1));
    assert_eq!(options(None, Some(W)), Ok(W / 8));
    // A reset's tombstone: with a count of three bits one unit is reusable; the guard has two more.
    assert_eq!(options(Some(0), None), Ok(3));
    assert_eq!(options(Some((1 << 32) - 1), None), Ok((1 << 32) - 1));
    assert_eq!(options(Some(1 << 32), None), Err(TableError::SpanTooShort));
}

#[test]
fn one_aligned_limit_makes_the_table_aligned_and_the_shorter_window_decides() {
    let anchored = |window| LimitSpec::fixed_window(5, window);
    let guard = |fastest, slowest: LimitSpec| {
        made(TableOptions::new(fastest).slowest(slowest).resolution(0)).map(|g| g.guard as u64)
    };
    assert_eq!(guard(anchored(W), anchored(2 * W)), Ok(0));
    assert_eq!(guard(anchored(W), aligned(2 * W)), Ok(W / 8));
    assert_eq!(guard(aligned(W), anchored(2 * W)), Ok(W / 8));
    assert_eq!(guard(aligned(2 * W), anchored(W)), Ok(W / 8));
}

/// Three of 43 bits count, and 40 are left for the time.
#[test]
fn the_unit_of_time_is_the_finest_that_lasts_for_1024_of_the_longer_window_or_a_year() {
    let shr = |fast, slow, hz| {
        let window = |w| LimitSpec::fixed_window(5, w);
        made(TableOptions::new(window(fast)).slowest(window(slow)).tick_hz(hz)).map(|g| g.shr)
    };
    // A quarter of an hour and a day of milliseconds, with the frequency and without.
    assert_eq!(
        [shr(900_000, 900_000, 0), shr(86_400_000, 900_000, 0), shr(900_000, 900_000, 1_000)],
        [Ok(0); 3]
    );
    assert_eq!(
        [shr(1 << 30, 1 << 29, 0), shr(1 << 29, 1 << 30, 0), shr(1 << 29, 1 << 29, 0)],
        [Ok(1), Ok(1), Ok(0)]
    );
    // A year: of nanoseconds, as told by the frequency or by whole seconds of them.
    let second = 1_000_000_000;
    assert_eq!([shr(second, second, 0), shr(second - 1, second - 1, second)], [Ok(15); 2]);
    assert_eq!([shr(second, second, 1_000), shr(second - 1, second - 1, 0)], [Ok(0); 2]);
    // A year would leave fewer than 1024 units in the shorter window, so 64 of the longer one do.
    assert_eq!([shr(1 << 24, 1 << 24, second), shr(1 << 20, 1 << 36, second)], [Ok(0), Ok(3)]);
}

#[test]
fn more_units_than_any_word_counts_are_refused_aligned_or_not() {
    for spec in [LimitSpec::fixed_window(u64::MAX, W), LimitSpec::fixed_window(u64::MAX, W).aligned(0)] {
        assert_eq!(made(TableOptions::new(spec)).err(), Some(TableError::Limit(TooManyUnits)));
    }
}

/// The options' fastest limit fits, but the slowest does not.
#[test]
fn the_slowest_limit_is_validated_too() {
    let spec = LimitSpec::quota_linear(5, W);
    let slow = LimitSpec { max_room: 1, ..spec };
    let error = made(TableOptions::new(spec).slowest(slow)).err();
    assert_eq!(error, Some(TableError::Limit(BadAlgorithm)));
    let error = made(TableOptions::new(slow).slowest(spec)).err();
    assert_eq!(error, Some(TableError::Limit(BadAlgorithm)));
}

#[test]
fn a_limit_with_an_option_that_its_algorithm_lacks_is_no_limit_of_the_table() {
    let spec = LimitSpec::quota_linear(5, W);
    let g = made(TableOptions::new(spec)).expect("a table");
    assert!(limit(&g, &spec).is_ok());
    assert_eq!(limit(&g, &LimitSpec { max_room: 1, ..spec }).err(), Some(TableError::Limit(BadAlgorithm)));
    assert_eq!(limit(&g, &LimitSpec::quota_linear(5, 2 * W)).err(), Some(TableError::LimitTooFast));
    assert_eq!(limit(&g, &LimitSpec::quota_linear(50, W)).err(), Some(TableError::LimitTooFast));
}

/// H + S fits the word but not 63 bits of ticks.
#[test]
fn a_skew_beyond_the_clock_is_refused() {
    let spec = LimitSpec::fixed_window(1, 1 << 60);
    let options = |skew| TableOptions::new(spec).resolution(-55).skew(skew);
    assert_eq!(made(options(1 << 60)).err(), None);
    assert_eq!(made(options(1 << 63)).err(), Some(TableError::SpanTooShort));
}

#[test]
fn a_claim_lives_for_a_unit_of_time_at_the_most() {
    let options = TableOptions::new(LimitSpec::fixed_window(5, W)).resolution(0);
    let lifetime = |ticks| made(TableOptions { lifetime: ticks, ..options }).map(|g| g.layout.lifetime);
    // With counts of three bits one unit of time is 8 q-units and one tick.
    assert_eq!(lifetime(None), Ok(8));
    assert_eq!([lifetime(Some(1)), lifetime(Some(0))], [Ok(8), Ok(2)]);
    assert_eq!(lifetime(Some(2)), Err(TableError::BadLifetime));
}

/// The fewest units of time in a window, at a requested and at a chosen resolution.
#[test]
fn a_window_has_at_least_thirty_two_units_of_time() {
    let coarse = Err(TableError::Limit(crate::limit::LimitError::NotRepresentable));
    let shr = |window, shift| {
        made(TableOptions::new(LimitSpec::fixed_window(5, window)).resolution(shift)).map(|g| g.shr)
    };
    assert_eq!([shr(1 << 20, -15), shr(31 << 15, -15), shr((31 << 15) + 1, -15)], [Ok(15), coarse, Ok(15)]);
    assert_eq!([shr(1 << 20, -16), shr(u64::MAX, -62)], [coarse; 2]);
    // Such a wide count leaves a span of few units: the window gets 32 of them, or the table is refused.
    let chosen = |units, skew| {
        made(TableOptions::new(LimitSpec::fixed_window(units, W)).tag_bits(24).skew(skew)).map(|g| g.shr)
    };
    assert_eq!([chosen(1 << 28, 0), chosen(1 << 30, 0)], [Ok(13), Ok(15)]);
    assert_eq!(chosen(1 << 31, 0), Err(TableError::SpanTooShort));
}

#[test]
fn a_unit_of_time_is_no_coarser_than_there_are_bits() {
    let made = |shift| made(TableOptions::overrides(1 << 61).skew(0).resolution(shift)).err();
    let refused = Some(TableError::Limit(crate::limit::LimitError::BadResolution));
    assert_ne!(made(-62), refused);
    assert_eq!([made(-63), made(1)], [refused; 2]);
}

/// The table has a skew of its own, which also bounds the life of permits; a limit's skew is for cells.
#[test]
fn the_skew_of_a_limit_is_not_counted() {
    let spec = LimitSpec::fixed_window(5, W);
    let plain = made(TableOptions::new(spec)).unwrap();
    for skew in [0, 1 << 40, u64::MAX] {
        let spec = spec.skew(skew);
        assert_eq!(made(TableOptions::new(spec)), Ok(plain), "{skew}");
        assert_eq!(limit(&plain, &spec).map(|p| p.window_q), Ok(plain.layout.window), "{skew}");
    }
}

//! What a limit refuses or answers at the ends of its numbers, and what only a forged one meets.

use std::string::ToString;

use super::algorithm::Algorithm;
use super::params::{fingerprint, is_of, Kind, Params, Width};
use super::spec::LimitSpec;
use super::{validate, window, LimitError};

#[test]
fn every_error_says_what_is_wrong_in_words_of_its_own() {
    use LimitError::{BadAlgorithm, BadHeal, BadPhase, BadResolution, HorizonTooLong, NotRepresentable};
    let errors = [
        LimitError::ZeroRate,
        LimitError::ZeroPeriod,
        LimitError::ZeroBurst,
        LimitError::BadSoft,
        BadHeal,
        BadResolution,
        HorizonTooLong,
        NotRepresentable,
        LimitError::NotSmall,
        BadAlgorithm,
        BadPhase,
        LimitError::TooManyUnits,
        LimitError::BadDuty,
    ];
    let texts = errors.map(|error| error.to_string());
    for (i, text) in texts.iter().enumerate() {
        assert!(
            text.len() > 10 && !texts.iter().skip(i.wrapping_add(1)).any(|other| other == text),
            "{text}"
        );
    }
}

#[test]
fn a_limit_that_counts_refuses_a_burst_of_its_own_a_delay_and_a_penalty() {
    let spec = LimitSpec::fixed_window(5, 100);
    for refused in [
        LimitSpec { burst: 6, ..spec },
        LimitSpec { max_delay: 1, ..spec },
        LimitSpec { penalty: 1, ..spec },
        LimitSpec { phase: Some(0), ..LimitSpec::decay(5, 100_000) },
        LimitSpec { max_room: 1, ..LimitSpec::quota_linear(5, 100) },
        LimitSpec { max_debt: 1, ..LimitSpec::quota_linear(5, 100) },
    ] {
        assert_eq!(refused.build().err(), Some(LimitError::BadAlgorithm), "{refused:?}");
    }
    assert_eq!(LimitSpec { phase: Some(100), ..spec }.build().err(), Some(LimitError::BadPhase));
    assert!(LimitSpec { phase: Some(99), ..spec }.build().is_ok());
    assert_eq!(LimitSpec { heal: true, ..spec }.build().err(), Some(LimitError::BadHeal));
    assert!(LimitSpec { max_room: 1, max_debt: 2, ..spec }.build().is_ok());
}

#[test]
fn one_resolution_is_validated_by_the_algorithm_that_is_asked_for() {
    let spec = LimitSpec::fixed_window(5, 100);
    let width = Width::CELL64;
    let made = validate::at(&spec, width, 0).expect("a limit");
    assert_eq!(Some(made), window::at(&spec, width, 0).ok());
    assert_eq!(made.algorithm, Algorithm::FixedWindow as u8);
    assert_eq!(validate::at(&LimitSpec::new(1, 10, 5), width, 0).map(|p| p.algorithm()), Ok(Algorithm::Gcra));
    assert_eq!(validate::at(&LimitSpec::new(0, 10, 5), width, 0).err(), Some(LimitError::ZeroRate));
}

#[test]
fn a_forged_algorithm_is_read_as_gcra_and_gcra_stores_no_window() {
    let mut p: Params = LimitSpec::fixed_window(5, 100).build().expect("a limit").0;
    assert_eq!(p.algorithm(), Algorithm::FixedWindow);
    p.algorithm = 200;
    assert_eq!(p.algorithm(), Algorithm::Gcra);
    assert_eq!(Algorithm::Gcra.horizon(100, 5), 0);
}

#[test]
fn a_mark_is_known_by_its_kind_whatever_it_is_tied_to() {
    let table = fingerprint(Kind::Table, [1, 2, 3, 4]);
    assert!(is_of(table, Kind::Table) && is_of(fingerprint(Kind::Table, [9; 4]), Kind::Table));
    assert!(!is_of(table, Kind::Cell64) && !is_of(0, Kind::Table) && !is_of(!table, Kind::Table));
    assert_ne!(table, fingerprint(Kind::Table, [1, 2, 3, 5]));
}

#[test]
fn the_same_numbers_under_another_algorithm_are_that_ones_limit() {
    let spec = LimitSpec::fixed_window(5, 100);
    let other = spec.algorithm(Algorithm::SlidingCounter).build().expect("a limit");
    assert_eq!(other.info().algorithm, Algorithm::SlidingCounter);
    assert_eq!((other.info().burst, other.info().period), (5, 100));
}

/// A unit of time of 2^61 ticks for a window of one: the error is too large to count in billionths.
#[test]
fn a_rounding_beyond_all_numbers_is_the_largest() {
    let limit = LimitSpec::fixed_window(1, 1).skew(0).resolution(-61).build().expect("a limit");
    assert_eq!(limit.info().rate_error_ppb, u64::MAX);
    let fine = LimitSpec::fixed_window(1, 1 << 20).resolution(0).build().expect("a limit");
    assert_eq!(fine.info().rate_error_ppb, 0);
}

#[test]
fn a_resolution_is_whole_where_a_q_unit_is_a_tick() {
    for shift in -4..=4i8 {
        let p = LimitSpec::new(3, 1 << 20, 5).resolution(shift).build().expect("a limit").0;
        assert_eq!(p.is_whole(), shift == 0, "{shift}");
    }
}

//! Limits and waits as durations, and what defmt can format.

use fugit::{HoursDurationU64, MicrosDurationU64, MillisDurationU64, SecsDurationU64};
use tatcell::{Outcome, SmallLimit, SmallLimit32};
use tatcell_embedded::{limit, limit32, wait};

#[test]
fn durations_make_the_limits_of_their_ticks() {
    const HZ: u64 = 32_768;
    assert_eq!(limit32::<HZ, 1, 1>(10, SecsDurationU64::from_ticks(2), 3), SmallLimit32::new(10, 65_536, 3));
    assert_eq!(
        limit32::<HZ, 3_600, 1>(1, HoursDurationU64::from_ticks(1), 3),
        SmallLimit32::new(1, 117_964_800, 3)
    );
    assert_eq!(
        limit::<HZ, 1, 1_000>(10, MillisDurationU64::from_ticks(250), 3),
        SmallLimit::new(10, 8_192, 3)
    );
    // No whole number of ticks: nothing is rounded but the fixed point.
    assert_eq!(
        limit::<HZ, 1, 1_000_000>(1, MicrosDurationU64::from_ticks(100), 3),
        SmallLimit::new(10_000, 32_768, 3)
    );
    assert!(limit32::<HZ, 1, 1>(1, SecsDurationU64::from_ticks(0), 3).is_err());
    assert!(limit32::<HZ, 1, 1>(1, SecsDurationU64::from_ticks(u64::MAX), 3).is_err());
}

#[test]
fn waits_are_durations_of_the_clock() {
    assert_eq!(
        wait::<1_000>(Outcome::NonConforming { retry_after: 1_500 }).unwrap(),
        MillisDurationU64::from_ticks(1_500)
    );
    assert_eq!(wait::<1_000>(Outcome::Conforming).unwrap().as_ticks(), 0);
    assert_eq!(wait::<1_000>(Outcome::Never), None);
    assert_eq!(wait::<1_000>(Outcome::Contended), None);
}

#[test]
fn defmt_formats_outcomes_and_errors() {
    fn formats<T: defmt::Format>() {}
    formats::<Outcome>();
    formats::<tatcell::Verdict>();
    formats::<tatcell::LimitError>();
    formats::<tatcell::TableError>();
    formats::<tatcell::MeterError>();
    formats::<tatcell::ChainError>();
    formats::<tatcell::ShaperError>();
    formats::<tatcell::LogLine>();
}

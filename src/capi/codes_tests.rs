//! Every error of the library has its number in C for ever, also those that no program can cause at will, such as a
//! call that lost all of its swaps, or a processor without AES.

use core::fmt::Debug;

use super::*;
use crate::capi::combine::links::chain_code;
use crate::capi::decision::{finish_done, finish_refund};
use crate::capi::refusal::http::http_code;
use crate::capi::shaper::shaper::shaper_code;
use crate::combine::{ChainError, ShaperError};
use crate::http::HttpError;

fn numbered<E: Copy + Debug>(errors: &[(E, i32)], code: impl Fn(E) -> i32) {
    for (error, number) in errors {
        assert_eq!(code(*error), *number, "{error:?}");
    }
}

#[test]
fn errors_of_limits_meters_and_images_have_their_numbers() {
    let limits = [
        (LimitError::ZeroRate, -4),
        (LimitError::BadDuty, -4),
        (LimitError::ZeroPeriod, -5),
        (LimitError::ZeroBurst, -6),
        (LimitError::NotRepresentable, -7),
        (LimitError::HorizonTooLong, -8),
        (LimitError::BadSoft, -23),
        (LimitError::BadResolution, -11),
        (LimitError::BadHeal, -11),
        (LimitError::NotSmall, -11),
        (LimitError::BadAlgorithm, -38),
        (LimitError::BadPhase, -39),
        (LimitError::TooManyUnits, -40),
        (LimitError::OtherWindow, -46),
        (LimitError::LargerCount, -47),
    ];
    numbered(&limits, limit_code);
    numbered(&limits, |error| table_code(TableError::Limit(error)));
    let meters = [
        (MeterError::ZeroRate, -4),
        (MeterError::ZeroBurst, -6),
        (MeterError::ZeroFrequency, -5),
        (MeterError::PeakBelowCommitted, -50),
        (MeterError::BadCoupling, -11),
        (MeterError::NotRepresentable, -7),
        (MeterError::HorizonTooLong, -8),
        (MeterError::SpanTooShort, -51),
    ];
    numbered(&meters, meter_code);
    let images = [
        (ImageError::Damaged, -48),
        (ImageError::BadVersion, -17),
        (ImageError::OtherLimit { saved: 5 }, -49),
        (ImageError::BadOffset, -39),
    ];
    numbered(&images, image_code);
}

#[test]
fn errors_of_tables_have_their_numbers() {
    let tables = [
        (TableError::TooSmall, -30),
        (TableError::TooLarge, -31),
        (TableError::BufferTooSmall, -34),
        (TableError::SpanTooShort, -14),
        (TableError::BadTagBits, -11),
        (TableError::TagTooWide, -11),
        (TableError::BadLifetime, -11),
        (TableError::NotSmall, -11),
        (TableError::BadCosts, -11),
        (TableError::NothingToKeep, -11),
        (TableError::Overlap, -32),
        (TableError::BadAlgorithm, -38),
        (TableError::BadPolicy, -41),
        (TableError::PeakBelowCommitted, -50),
        (TableError::BadUntil, -42),
        (TableError::FullSet, -43),
        (TableError::OverrideClash, -44),
        (TableError::Contended, 3),
        (TableError::MissingSeed, -12),
        (TableError::BadHashKind, -21),
        (TableError::HashUnavailable, -24),
        (TableError::ForeignLimit, -10),
        (TableError::LimitTooFast, -35),
        (TableError::TooManyKeys, -22),
        (TableError::NotReady, -16),
        (TableError::BadVersion, -17),
        (TableError::BadGeometry, -18),
        (TableError::WrongSeed, -19),
        (TableError::BadMode, -20),
    ];
    numbered(&tables, table_code);
}

#[test]
fn errors_of_chains_shapers_and_fields_have_their_numbers() {
    let chains = [
        (ChainError::Empty, -60),
        (ChainError::TooManyLinks, -60),
        (ChainError::ForeignLimit, -10),
        (ChainError::TwoLimits, -61),
        (ChainError::BadCost, -62),
        (ChainError::BadAlgorithm, -38),
    ];
    numbered(&chains, chain_code);
    numbered(&chains, |error| shaper_code(ShaperError::Chain(error)));
    let shapers = [
        (ShaperError::BadSlots, -67),
        (ShaperError::BadGranularity, -67),
        (ShaperError::TooSmall, -30),
        (ShaperError::TooLarge, -31),
        (ShaperError::Full, -65),
        (ShaperError::TooFar, -68),
        (ShaperError::Behind, -66),
    ];
    numbered(&shapers, shaper_code);
    let fields =
        [(HttpError::BadName, -55), (HttpError::ZeroFrequency, -56), (HttpError::TooManyPolicies, -57)];
    numbered(&fields, http_code);
}

#[cfg(feature = "host")]
#[test]
fn errors_of_the_host_have_their_numbers_and_that_of_the_system() {
    use crate::capi::host::host_code;
    use crate::host::HostError;
    let errors = [
        (HostError::Unsupported, -26),
        (HostError::BadName, -27),
        (HostError::BadInterval, -11),
        (HostError::WrongSize, -36),
        (HostError::Exists, -28),
        (HostError::Absent, -29),
        (HostError::NoFolder, -37),
        (HostError::NotReady, -16),
    ];
    numbered(&errors, |error| host_code(error, 1).0);
    assert!(errors.iter().all(|(error, _)| host_code(*error, 1).1 == 0));
    assert_eq!([host_code(HostError::BadSize, 0), host_code(HostError::BadSize, 1)], [(-30, 0), (-31, 0)]);
    assert_eq!(host_code(HostError::System(13), 1), (-25, 13));
}

#[test]
fn a_call_that_lost_all_of_its_swaps_says_so() {
    assert_eq!([finish_done(true), finish_done(false)], [0, 3]);
    assert_eq!(
        [finish_refund(Some(7), None), finish_refund(Some(0), None), finish_refund(None, None)],
        [0, 0, 3]
    );
}

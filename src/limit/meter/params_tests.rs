//! The numbers of a meter at the borders of each rule.

use super::*;

#[test]
fn a_scale_of_nothing_or_of_too_much_is_none() {
    assert_eq!([times_hz(1, 0, 0), times_hz(u64::MAX, 64, 1), times_hz(1, 127, u64::MAX)], [None; 3]);
    assert_eq!([times_hz(1, 62, 1), times_hz(1, 61, 1)], [None, Some(1 << 61)]);
    assert_eq!([times_hz(10, 0, 3), times_hz(9, 0, 3), times_hz(9, -1, 3)], [Some(4), Some(3), Some(2)]);
    assert_eq!(Scale::add(0, 0, 0, 0, 8), 255);
    assert_eq!(Scale::of(1, 0, 1, 0).map(|scale| (scale.m, scale.k)), Some((1 << 40, 40)));
}

/// The larger the burst, the fewer fractional bits are left in the product.
#[test]
fn a_scale_is_the_finest_in_which_its_burst_fits() {
    let places = |burst| Scale::of(1, burst, 1, 0).map(|scale| scale.k);
    assert_eq!(
        [places((1 << 22) - 2), places((1 << 22) - 1), places(1 << 22)],
        [Some(40), Some(39), Some(39)]
    );
    // T is 10 / 3: the charge is exact if the burst is below floor(2^8 / 3) units.
    assert_eq!([84, 85].map(|burst| Scale::add(3, burst, 10, 0, 8)), [171, 255]);
}

#[test]
fn a_rate_is_compared_at_every_resolution() {
    assert!(is_at_least(u64::MAX, -63, 1) && is_at_least(1 << 63, -63, 1));
    assert!(!is_at_least((1 << 63) - 1, -63, 1) && !is_at_least(u64::MAX, -64, 1));
    assert!(!is_at_least(1, -74, 1 << 54), "2^128");
}

#[test]
fn a_skew_is_a_64th_of_the_range_and_at_least_the_horizon() {
    let made = [1, 1 << 34, (1 << 34) + 1, 1 << 36].map(|horizon| default_skew(40, 0, horizon));
    assert_eq!(made, [1 << 34, 1 << 34, (1 << 34) + 1, 1 << 36]);
    assert_eq!(default_skew(40, 30, 1), 1 << 31, "2^61 ticks at most");
}

/// T is one q-unit, so both bursts together are the largest difference.
#[test]
fn a_difference_of_more_than_44_bits_is_refused_and_one_of_fewer_must_leave_room_for_the_time() {
    let at = |burst| MeterParams::at(&MeterSpec::rfc4115(1, burst, 1, burst, 1), 0).map(|p| p.diff_bits);
    assert_eq!(
        [at(1 << 42), at(1 << 43)],
        [Err(MeterError::HorizonTooLong), Err(MeterError::NotRepresentable)]
    );
    assert_eq!([at(1 << 20), at(1 << 44)], [Ok(22), Err(MeterError::NotRepresentable)]);
}

#[test]
fn a_span_beyond_all_ticks_is_the_longest() {
    let p = MeterParams::at(&MeterSpec::rfc4115(1, 10, 1, 10, 1 << 30), -20).expect("a meter");
    assert_eq!([p.span(), p.sweep_interval()], [u64::MAX; 2]);
    let fine = MeterParams::at(&MeterSpec::rfc4115(1, 10, 1, 10, 1 << 30), -10).expect("a meter");
    assert!(fine.span() < u64::MAX);
}

#[test]
fn a_coupling_of_rates_too_far_apart_is_refused() {
    let refused = |cir, rate2| {
        let spec = MeterSpec { coupled: true, ..MeterSpec::rfc4115(cir, 1, rate2, 1, 1 << 30) };
        MeterParams::at(&spec, 0).err()
    };
    assert_eq!(refused(1 << 30, 4), Some(MeterError::NotRepresentable));
    assert_eq!(refused(1 << 30, 0), Some(MeterError::NotRepresentable));
    assert_eq!(refused(1 << 30, 8), None);
}

/// Skew and horizon reach 2^63 ticks if a q-unit has more than 2^12 of them: their rounded sum is too long then. The
/// resolution that was found before stays.
#[test]
fn a_resolution_that_fits_is_not_lost_to_a_coarser_one_that_does_not() {
    let skew = (1 << 63) - (1025 << 12);
    let spec = MeterSpec::rfc4115(1 << 41, 4, 1 << 41, 4, 1 << 61).skew(skew);
    assert_eq!(MeterParams::build(&spec).map(|p| (p.shr, p.span())), Ok((12, (1 << 63) + (1 << 12))));
    assert_eq!(MeterParams::at(&spec, -13), Err(MeterError::HorizonTooLong));
    assert_eq!(MeterParams::build(&spec.span(u64::MAX)), Err(MeterError::SpanTooShort));
}

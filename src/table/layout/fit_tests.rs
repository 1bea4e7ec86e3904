//! What geometry a table of GCRA limits chooses, and what it refuses.

use super::*;
use crate::limit::LimitSpec;

fn made(options: TableOptions) -> Result<Geometry, TableError> {
    choose(&options, 66)
}

fn options(spec: LimitSpec) -> TableOptions {
    TableOptions::new(spec).caller_hash()
}

#[test]
fn a_limit_that_no_resolution_fits_is_refused_at_both_ends_of_the_search() {
    let made = |spec| made(options(spec)).err();
    // A debt of 2^120 ticks in the coarsest unit, and an interval of 2^-63 ticks in the finest.
    assert_eq!(made(LimitSpec::new(1, 1 << 60, 1 << 60)), Some(TableError::SpanTooShort));
    assert_eq!(made(LimitSpec::new(1 << 63, 1, 1)), Some(TableError::SpanTooShort));
    assert_eq!(made(LimitSpec::new(1, 1 << 30, 5)), None);
}

/// The fit chooses the resolution nearest to a tick among all that would be accepted on request.
#[test]
fn the_resolution_nearest_to_a_tick_is_chosen() {
    let spec = LimitSpec::new;
    let mut chosen = [0; 3];
    let with_each_option = |s: LimitSpec| {
        [
            s,
            s.soft(1),
            s.max_room(1 << 20),
            s.max_delay(1 << 20),
            s.max_debt(3),
            s.penalty(3),
            s.skew(1 << 61),
        ]
    };
    for spec in [
        spec(1, 1 << 30, 5),
        spec(1, 1_000, 5),
        spec(1_000_000, 1, 5),
        // The finest resolution there is, and one beyond.
        spec(1 << 32, 1, 1),
        spec(1 << 33, 1, 1),
        spec(7, 1 << 20, 1 << 30),
        spec(1, 1 << 40, 1 << 21),
        // 2^62 ticks of debt and more: the burst alone does not fit a q-unit of a tick.
        spec(1, 1 << 40, 1 << 22),
        spec(1, 1 << 30, 3 << 31),
        spec(1, 1 << 40, 1 << 23),
        spec(1, u64::MAX, 1 << 62),
    ]
    .into_iter()
    .flat_map(with_each_option)
    {
        let options = options(spec).skew(1_000);
        let asked = |shift: i8| made(options.resolution(shift)).ok();
        let nearest = asked(0).or_else(|| {
            let coarser = (1..=63).find_map(|s| asked(-s));
            coarser.or_else(|| (1..=63).find_map(asked))
        });
        let found = made(options);
        assert_eq!(found.ok(), nearest, "{spec:?}");
        if nearest.is_none() {
            assert_eq!(found, Err(TableError::SpanTooShort), "{spec:?}");
        }
        chosen[(found.map_or(0, |g| g.resolution().signum()) + 1) as usize] += 1;
    }
    assert!(chosen.iter().all(|&n| n > 5), "{chosen:?}");
}

/// At a requested resolution, a debt that is too long for the unit is a too short span, whatever other options the
/// limit has, unless there is no coarser unit.
#[test]
fn a_burst_beyond_the_unit_is_told_as_too_short_a_span() {
    let wide = LimitSpec::new(1, 1 << 40, 1 << 22);
    let (span, none) = (TableError::SpanTooShort, TableError::Limit(LimitError::NotRepresentable));
    for spec in [
        wide,
        wide.soft(100),
        wide.max_room(1 << 22),
        wide.max_delay(1 << 62),
        wide.max_debt(1 << 22),
        wide.penalty(1 << 22),
    ] {
        assert_eq!(made(options(spec).resolution(0)).err(), Some(span), "{spec:?}");
    }
    let widest = LimitSpec::new(1, 1 << 62, 1 << 62);
    let error = |shift| made(options(widest).resolution(shift)).err();
    assert_eq!([error(-60), error(-61), error(-62)], [Some(span), Some(span), Some(none)]);
    // A coarser unit does not help an interval that does not fit.
    assert_eq!(made(options(LimitSpec::new(3, 1, 5)).resolution(0)).err(), Some(none));
}

/// The window is at most an eighth of the word's span, and below 2^63 ticks.
#[test]
fn the_skew_fills_the_word_and_the_clock_and_no_more() {
    for tag_bits in [12, 16, 24] {
        let spec = LimitSpec::new(1, 1 << 20, 8);
        let made = |skew| made(options(spec).tag_bits(tag_bits).resolution(0).skew(skew));
        let most = 1u64 << (60 - tag_bits);
        let rest = most - (8 << 20);
        assert_eq!(made(rest).map(|g| g.layout.window), Ok(most), "{tag_bits} tag bits");
        for skew in [rest + 1, 2 * most, 8 * most, 16 * most] {
            assert_eq!(made(skew).err(), Some(TableError::SpanTooShort), "{tag_bits} tag bits, {skew}");
        }
    }
    let made = |skew| made(options(LimitSpec::new(1, 1 << 40, 8)).tag_bits(12).resolution(-20).skew(skew));
    let rest = (1u64 << 63) - (8 << 40);
    assert_eq!(made(rest - (1 << 20)).map(|g| g.layout.window), Ok((1 << 43) - 1));
    assert_eq!(made(rest).err(), Some(TableError::SpanTooShort));
    assert_eq!(made(u64::MAX).err(), Some(TableError::SpanTooShort));
}

/// A claim lives for one tick, or for half of the shortest interval if that is less.
#[test]
fn a_claim_lives_for_a_tick_or_half_an_interval() {
    let lifetime = |period, shift| {
        made(options(LimitSpec::new(1, period, 2)).resolution(shift)).map(|g| g.layout.lifetime)
    };
    assert_eq!([lifetime(1 << 20, 0), lifetime(1 << 20, 4), lifetime(1 << 20, -4)], [Ok(2), Ok(16), Ok(2)]);
    // Intervals of four ticks, of two and of one.
    assert_eq!([lifetime(4, 12), lifetime(2, 12), lifetime(1, 12)], [Ok(1 << 12), Ok(1 << 12), Ok(1 << 11)]);
}

#[test]
fn a_limit_whose_interval_is_less_than_two_claims_is_too_fast() {
    let slow = LimitSpec::new(1, 4_096, 4);
    let g = made(options(slow).resolution(0).claim_lifetime(2_048)).unwrap();
    assert_eq!(g.layout.lifetime, 2_048);
    for (period, fits) in [(4_096, true), (4_095, false), (2_048, false), (1_024, false)] {
        let made = limit(&g, &LimitSpec::new(1, period, 4));
        assert_eq!(made.err(), if fits { None } else { Some(TableError::LimitTooFast) }, "{period}");
    }
}

/// The table has a skew of its own; a limit's skew is for cells.
#[test]
fn the_skew_of_a_limit_is_not_counted() {
    let spec = LimitSpec::new(1, 1 << 20, 8);
    let plain = made(options(spec)).unwrap();
    for skew in [0, 1 << 40, 1 << 62, u64::MAX] {
        assert_eq!(made(options(spec.skew(skew))), Ok(plain), "{skew}");
        assert_eq!(limit(&plain, &spec.skew(skew)).err(), None, "{skew}");
    }
}

/// The header counts lines in 32 bits.
#[test]
#[cfg(target_pointer_width = "64")]
fn more_lines_than_a_header_counts_are_refused() {
    let made = |lines| choose(&options(LimitSpec::new(1, 1 << 20, 8)), HEADER_LINES + lines).map(|g| g.lines);
    assert_eq!([made((1 << 32) - 2), made((1 << 32) - 1)], [Ok(u32::MAX - 1); 2]);
    for lines in [1 << 32, (1 << 32) + 2, 1 << 33] {
        assert_eq!(made(lines), Err(TableError::TooLarge), "{lines}");
    }
}

/// Each of these tables refuses the limits of all others.
#[test]
fn tables_that_differ_in_anything_that_a_limit_depends_on_have_different_fingerprints() {
    let spec = LimitSpec::new(10, 1_000_000, 20);
    let g = choose(&options(spec), 4).expect("a geometry");
    let mut fingerprints = std::collections::BTreeSet::new();
    let mut made = 0;
    let mut add = |g: Geometry| {
        made += 1;
        assert!(fingerprints.insert(g.fingerprint_of()), "{g:?}");
    };
    for n in 0..=63u8 {
        add(Geometry { shl: n, shr: 0, ..g });
        add(Geometry { shl: 0, shr: n + 1, ..g });
    }
    for guard in [1, 2, 255, 256, 1 << 20, u32::MAX] {
        add(Geometry { guard, ..g });
    }
    let kinds = [Algorithm::FixedWindow, Algorithm::SlidingCounter, Algorithm::QuotaLinear];
    let kinds = kinds.into_iter().chain([Algorithm::Decay]).map(Content::Debts);
    for content in kinds.chain([Content::Overrides]) {
        add(Geometry { content, ..g });
        add(Geometry { content, guard: 1, ..g });
    }
    for n in 0..64 {
        add(Geometry { horizon: g.horizon ^ 1 << n, ..g });
        let mut add_with = |change: &dyn Fn(&mut Layout)| {
            let mut layout = g.layout;
            change(&mut layout);
            add(Geometry { layout, ..g });
        };
        add_with(&|layout| layout.window ^= 1 << n);
        if n < 40 {
            add_with(&|layout| layout.lifetime ^= 1 << n);
        }
    }
    for bits in (39..=51).filter(|bits| *bits != g.layout.bits) {
        let mut layout = g.layout;
        layout.bits = bits;
        add(Geometry { layout, ..g });
    }
    assert!(made > 300);
}

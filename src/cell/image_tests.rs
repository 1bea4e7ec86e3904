//! Images of cells: what they keep, and what they refuse.

use super::*;
use crate::answer::Outcome;
use crate::limit::LimitSpec;
use std::vec::Vec;

const DAY: u64 = 86_400_000;

fn all() -> Vec<LimitSpec> {
    let plain = LimitSpec::new(20, 60_000, 20).skew(120_000);
    std::vec![
        plain,
        LimitSpec::new(20, 60_000, 20).skew(120_000).max_debt(5),
        LimitSpec::new(7, 1_000, 3).resolution(-4),
        LimitSpec::new(7, 1_000_003, 3).resolution(9),
        LimitSpec::fixed_window(20, 60_000),
        LimitSpec::fixed_window(20, 60_000).aligned(12_345),
        LimitSpec::sliding_counter(20, 60_000),
        LimitSpec::quota_linear(20, 60_000),
        LimitSpec::decay(20, 60_000),
    ]
}

/// The cell goes on as if it had never been away, on its own clock and on another one, whatever the algorithm.
#[test]
fn a_restored_cell_answers_as_the_saved_one() {
    let mut state = 7u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for spec in all() {
        let limit = spec.build().unwrap();
        for _ in 0..300 {
            let (cell, mut now) = (Cell::new(), 1_000 * DAY + random(DAY));
            for _ in 0..random(30) {
                now += random(2_000);
                let _ = cell.check(&limit, now, random(4));
            }
            // A multiple of the window and of every q-unit. The other clock may be behind.
            let offset = (random(2_000) as i64 - 1_000) * 60_000 * 1_000_003 * 16;
            let offset = offset.max(-((now / 960_000 * 960_000) as i64)) / 960_000 * 960_000;
            let offset = if spec.period == 1_000_003 { offset / 512 * 512 } else { offset };
            let (restored, saved) = Cell::restore(&cell.save(&limit, now), &limit, offset).unwrap();
            assert_eq!(saved, now);
            for _ in 0..20 {
                now += random(3_000);
                let (cost, there) = (random(4), now.wrapping_add_signed(offset));
                let (before, after) = (cell.check(&limit, now, cost), restored.check(&limit, there, cost));
                assert_eq!(before, after, "{spec:?}, offset {offset}");
            }
        }
    }
}

#[test]
fn a_changed_bit_or_another_limit_is_named() {
    let specs = all();
    let other = [
        LimitSpec::new(21, 60_000, 20).skew(120_000),
        LimitSpec::new(20, 60_001, 20).skew(120_000),
        LimitSpec::new(20, 60_000, 21).skew(120_000),
        LimitSpec::new(20, 60_000, 20).skew(120_001),
        LimitSpec::new(20, 60_000, 20).skew(120_000).resolution(1),
        LimitSpec::fixed_window(20, 60_000).aligned(12_346),
    ];
    let limits: Vec<_> = specs.iter().chain(&other).map(|spec| spec.build().unwrap()).collect();
    for (i, limit) in limits.iter().enumerate() {
        let cell = Cell::new();
        let _ = cell.check(limit, DAY, 2);
        let image = cell.save(limit, DAY);
        for (k, second) in limits.iter().enumerate() {
            let made = Cell::restore(&image, second, 0).map(|(cell, saved)| (cell.word(), saved));
            let wanted =
                if i == k { Ok((cell.word(), DAY)) } else { Err(ImageError::OtherLimit { saved: DAY }) };
            assert_eq!(made, wanted, "{i} {k}");
        }
        for bit in 0..320 {
            let mut damaged = image;
            damaged[bit / 64] ^= 1 << (bit % 64);
            let error = Cell::restore(&damaged, limit, 0).unwrap_err();
            assert_eq!(error, ImageError::Damaged, "bit {bit}");
        }
    }
    // What does not change the meaning of a word: threshold, epoch, shadow.
    let soft = specs[0].soft(3).epoch(9).build().unwrap();
    assert!(Cell::restore(&Cell::from_word(5).save(&limits[0], 0), &soft, 0).is_ok());
}

#[test]
fn a_later_version_is_named_and_zeros_are_fresh() {
    let limit = all()[0].build().unwrap();
    let mut image = save(5, &limit.0, 9);
    image[0] += 1;
    image[4] = mixed(&[image[0], image[1], image[2], image[3]]);
    assert_eq!(Cell::restore(&image, &limit, 0).unwrap_err(), ImageError::BadVersion);
    let (cell, saved) = Cell::restore(&[0; CELL_IMAGE_WORDS], &limit, 5).unwrap();
    assert_eq!((cell.word(), saved), (0, 0));
    // A fresh cell that was saved has an image, and stays fresh.
    let image = Cell::new().save(&limit, 0);
    assert_ne!(image, [0; CELL_IMAGE_WORDS]);
    assert_eq!(Cell::restore(&image, &limit, 77).unwrap().0.word(), 0);
}

#[test]
fn windows_of_a_calendar_stay_where_they_are() {
    let spec = LimitSpec::fixed_window(5, DAY).aligned(3_600_000);
    let limit = spec.build().unwrap();
    let image = Cell::new().save(&limit, 0);
    assert_eq!(Cell::restore(&image, &limit, 1).unwrap_err(), ImageError::BadOffset);
    assert!(Cell::restore(&image, &limit, -(DAY as i64)).is_ok());
    assert!(Cell::restore(&image, &limit, i64::MIN).is_err());
}

#[test]
fn a_word_never_becomes_that_of_a_fresh_cell() {
    let limit = Limit32::new(10, 1_000, 5).unwrap();
    let cell = Cell32::new();
    let _ = cell.check(&limit, 4_000_000_000, 5);
    let image = cell.save(&limit, 4_000_000_000);
    for offset in -500..500 {
        let (restored, _) =
            Cell32::restore(&image, &limit, (1 << 32) - 4_000_000_000 - 500 + offset).unwrap();
        let now = ((1i64 << 32) - 500 + offset) as u32 as u64;
        // A word of 0 would be fresh, so it becomes 1: a tick longer.
        let longer = (offset == 0) as u64;
        let wanted = Outcome::NonConforming { retry_after: 100 + longer };
        assert_eq!(restored.check(&limit, now, 1), wanted, "{offset}");
    }
    let (restored, _) =
        ExclusiveCell::restore(&save(1, &Limit::UNLIMITED.0, 0), &Limit::UNLIMITED, -1).unwrap();
    assert_eq!(restored.word(), 1);
}

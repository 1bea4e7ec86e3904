//! A table accepts the limits for which it was made, whatever its options.

use crate::common::{cases, memory, Rng};
use std::cell::Cell;
use tatcell::{HashKind, LimitSpec, Outcome, Table, TableError, TableOptions};

const SEED: [u8; 16] = *b"a seed for tests";

/// A limit of this kind, often fast, slow or large.
fn spec(rng: &mut Rng, kind: u64) -> LimitSpec {
    let (units, period) = (1 + rng.scaled(20), 1 + rng.scaled(44));
    match kind {
        0 => LimitSpec::new(units, period, 1 + rng.scaled(16)),
        1 => LimitSpec::fixed_window(units, period),
        2 => LimitSpec::fixed_window(units, period).aligned(rng.below(period)),
        3 => LimitSpec::sliding_counter(units, period),
        4 => LimitSpec::decay(units, period),
        _ => LimitSpec::quota_linear(units, period),
    }
}

#[test]
fn a_table_takes_the_limits_it_was_made_for() {
    let (made, refused) = (Cell::new([0u32; 6]), Cell::new([0u32; 6]));
    let count = |of: &Cell<[u32; 6]>, kind: usize| {
        let mut counts = of.get();
        counts[kind] += 1;
        of.set(counts);
    };
    cases(20_000, |rng| {
        let kind = rng.below(6);
        let fastest = spec(rng, kind);
        let slowest = if rng.one_in(2) { spec(rng, kind) } else { fastest };
        let tag_bits = 12 + rng.below(13) as u32;
        let mut options = TableOptions::new(fastest).slowest(slowest).seed(SEED).tag_bits(tag_bits);
        if rng.one_in(2) {
            options = options.resolution(rng.below(256) as u8 as i8);
        } else if rng.one_in(2) {
            options = options.resolution(-(rng.below(30) as i8));
        }
        if rng.one_in(4) {
            options = options.skew(rng.scaled(40));
        }
        let lines = memory(4);
        let Ok(table) = Table::init(&lines, &options) else { return count(&refused, kind as usize) };
        count(&made, kind as usize);
        let told = [table.limit(&fastest), table.limit(&slowest)];
        assert!(told.iter().all(Result::is_ok), "{options:?}: {told:?}");
    });
    let (made, refused) = (made.get(), refused.get());
    println!("made {made:?}, refused {refused:?}");
    assert!(made.iter().all(|n| *n > 100) && refused.iter().all(|n| *n > 100), "{made:?} {refused:?}");
}

#[test]
fn a_rate_that_no_resolution_holds_is_refused() {
    let lines = memory(4);
    let options = TableOptions::new(LimitSpec::new(u64::MAX, 1, 1)).seed(SEED);
    assert_eq!(Table::init(&lines, &options).err(), Some(TableError::SpanTooShort));
}

/// A key that a call hashes by itself is the key that was hashed before, whichever hash the table has.
#[test]
fn a_key_and_its_hash_are_the_same_key() {
    for kind in [HashKind::SipHash13, HashKind::Aes] {
        if !kind.is_available() {
            continue;
        }
        let (spec, lines) = (LimitSpec::new(1, 1 << 20, 2), memory(66));
        let table = Table::init(&lines, &TableOptions::new(spec).seed(SEED).hash(kind)).expect("a table");
        let limit = table.limit(&spec).expect("a limit");
        for length in 0..40 {
            let key = &[b'k'; 40][..length];
            let hash = table.hash(key).expect("a hash");
            let verdicts = [
                table.check(&limit, 0, key, 1),
                table.check_hash(&limit, 0, hash, 1),
                table.check(&limit, 0, key, 1),
            ];
            assert_eq!(
                verdicts.map(|verdict| verdict.expect("a verdict").passes()),
                [true, true, false],
                "{key:?}"
            );
        }
        // Whatever a q-unit is; and a limit of another table is refused.
        for shift in [-3, 0, 5] {
            let (a, b) = (memory(66), memory(66));
            let options = TableOptions::new(spec).seed(SEED).hash(kind).resolution(shift);
            let table = Table::init(&a, &options).expect("a table");
            let other = Table::init(&b, &options.tag_bits(16)).expect("a table");
            let (limit, foreign) =
                (table.limit(&spec).expect("a limit"), other.limit(&spec).expect("a limit"));
            for length in [4, 7, 16] {
                let (key, now) = (&[b'q'; 40][..length], 1 << 30);
                assert_eq!(table.check(&foreign, now, key, 1), Err(TableError::ForeignLimit));
                assert_eq!(table.check(&limit, now, key, 2), Ok(Outcome::Conforming), "{length} at {shift}");
                let told = table.peek(&limit, now, table.hash(key).expect("a hash"), 1).expect("a look");
                assert_eq!(table.check(&limit, now, key, 1), Ok(told.outcome()), "{length} at {shift}");
                assert_eq!(told.retry_after, 1 << 20);
            }
        }
    }
}

/// What a table tells of itself, beside what it does.
#[test]
fn the_numbers_of_a_table_are_what_it_does() {
    const NOW: u64 = 1 << 50;
    let spec = LimitSpec::new(1, 1 << 12, 8);
    for lines in [4, 18, 66] {
        let memory = memory(lines);
        let info = Table::init(&memory, &TableOptions::new(spec).caller_hash()).unwrap().info();
        assert_eq!(info.image_bytes, size_of_val(&memory[..]) as u64);
        assert_eq!((info.lines, info.slots), (lines as u64 - 2, 8 * (lines as u64 - 2)));
    }
    // A slot that nobody touched reads as a debt a span after its TAT, and not a tick before.
    let memory = memory(4);
    let table = Table::init(&memory, &TableOptions::new(spec).caller_hash().resolution(0)).unwrap();
    let (limit, info) = (table.limit(&spec).unwrap(), table.info());
    assert!(!info.overrides);
    assert!(table.check_hash(&limit, NOW, 7, 8).unwrap().passes());
    let again = NOW + (8 << 12) + info.span;
    let looks = [again - 1, again].map(|now| table.peek(&limit, now, 7, 0).unwrap());
    assert_eq!(looks.map(|look| (look.remaining, look.reset_after)), [(8, 0), (0, info.window)]);
}

/// In time for a word that expired as the last sweep came by, and as long as there is a clock where that is longer.
#[test]
fn how_often_to_sweep_is_a_span_less_a_window() {
    let spec = LimitSpec::new(1, 1 << 34, 8);
    let info = |shift: i8| {
        let memory = memory(4);
        let options = TableOptions::new(spec).caller_hash().resolution(shift).skew(1 << 36);
        Table::init(&memory, &options).unwrap().info()
    };
    for shift in [0, -4, -12] {
        let info = info(shift);
        let unit = 1u64 << -shift;
        assert_eq!(info.sweep_interval, info.span - info.window - unit, "{shift}");
    }
    assert_eq!((info(-24).sweep_interval, info(-24).span), (u64::MAX, u64::MAX));
}

/// Of aligned windows, in ticks: what was asked for, in whole units of time.
#[test]
fn the_guard_of_a_table_is_told_in_ticks() {
    for (shift, asked, guard) in
        [(0, 1_001, 1_001), (-3, 1_000, 1_000), (-3, 1_001, 1_008), (-6, 1_001, 1_024)]
    {
        let spec = LimitSpec::fixed_window(5, 1 << 20).aligned(0);
        let memory = memory(4);
        let options = TableOptions::new(spec).caller_hash().resolution(shift).guard(asked);
        assert_eq!(Table::init(&memory, &options).unwrap().info().guard, guard, "{shift}, {asked}");
    }
}

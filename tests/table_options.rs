//! A table that is made takes the limits that it was made for, whatever its options.

mod common;

use common::{cases, memory, Rng};
use std::cell::Cell;
use tatcell::{LimitSpec, Table, TableOptions};

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

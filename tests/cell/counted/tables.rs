//! Every algorithm in the slots of a table: through every call, each key gets the answers of a cell.

use super::frame::{cost, Clock};
use crate::common::{cases, size_from, Rng};
use tatcell::{
    Burst, Counters, Decision, ExclusiveCell, ExclusiveTable, FullPolicy, Limit, LimitError, LimitSpec, Line,
    NextBurst, Request, Slot, Table, TableError, TableLimit, TableOptions, Tracking,
};

/// Lines of a table in which a few keys always find a slot.
const LINES: usize = 2 + 16;

fn memory(lines: usize) -> Vec<Line> {
    (0..lines).map(|_| Line::new()).collect()
}

fn any_spec(rng: &mut Rng) -> LimitSpec {
    let window = rng.pick(&[7, 1_000, 60_000, 1_000_003, 60_000_000_000]) * (1 + rng.below(9)) + rng.below(4);
    let units = 1 + rng.scaled(14);
    match rng.below(5) {
        4 => LimitSpec::decay(1 + units % 1_000, window + 1_000_000),
        0 => LimitSpec::fixed_window(units, window),
        1 => LimitSpec::fixed_window(units, window).aligned(rng.below(window)),
        2 => LimitSpec::sliding_counter(units, window),
        _ => LimitSpec::quota_linear(units, window),
    }
}

/// What a cell answers under the same limit in the same unit of time.
fn like(spec: &LimitSpec, table: &Table<'_>) -> Limit {
    spec.resolution(table.info().resolution as i8).build().unwrap()
}

/// A decision without what tells where it was made.
fn answer(d: &Decision) -> Decision {
    assert_eq!(d.tracking, Tracking::Tracked);
    let mut d = *d;
    (d.permit.slot, d.permit.generation, d.permit.tat) = (0, 0, 0);
    d
}

#[test]
fn every_call_of_a_table_answers_as_a_cell_of_the_key() {
    let steps = size_from("TATCELL_COUNTED_STEPS", 4e5 as u64) / 1_000;
    let (met, walked) = (std::cell::Cell::new([0u64; 3]), std::cell::Cell::new(0u64));
    cases(steps, |rng| {
        let spec = any_spec(rng);
        let options = TableOptions::new(spec).caller_hash().tag_bits(rng.pick(&[12, 16, 20]));
        let (lines, mut own) = (memory(LINES), memory(LINES));
        let table = match Table::init(&lines, &options) {
            Ok(table) => table,
            Err(TableError::SpanTooShort) => return,
            Err(e) => panic!("{spec:?}: {e}"),
        };
        let exclusive = ExclusiveTable::init_exclusive(&mut own, &options).unwrap();
        let (limit, single) = (table.limit(&spec).unwrap(), like(&spec, &table));
        assert_eq!(limit.info().horizon, table.info().horizon);
        // Tags apart from each other, and from 0: of 12 bits a stranger would now and then be taken for the key.
        let keys: [u64; 5] = core::array::from_fn(|k| rng.next() & !7 | (k as u64 + 2));
        let mut cells: [ExclusiveCell; 5] = Default::default();
        let mut clock = Clock::of(rng, &limit.info());
        let mut swept = clock.top;
        for _ in 0..1_000 {
            let before = clock.top;
            clock.step(rng);
            if clock.top - swept > limit.info().horizon {
                // Or a key that is asked seldom would find its debt ahead again, a span later. By the reading before,
                // so that the clock has not gone further than it may since.
                table.sweep(before, 0, table.slots());
                exclusive.sweep(before, 0, exclusive.slots());
                swept = before;
            }
            if rng.one_in(20) {
                walked.set(walked.get() + walk(&table, &limit, clock.now, &keys));
            }
            let (now, k) = (clock.now, rng.below(5) as usize);
            let (hash, cell, cost) = (keys[k], &mut cells[k], cost(rng, spec_units(&limit)));
            let want = cell.clone().check_ex(&single, now, cost, 0);
            assert_eq!(table.peek(&limit, now, hash, cost).unwrap().outcome(), want.outcome());
            let call = rng.below(5);
            let got = match call {
                0 => {
                    let got = table.check_hash(&limit, now, hash, cost).unwrap();
                    assert_eq!(got, want.outcome(), "{spec:?} now {now} cost {cost}");
                    want
                }
                1 | 2 => {
                    let (hashes, costs) = ([hash], [cost as u32]);
                    let burst = Burst { costs: Some(&costs), ..Burst::new(&limit, now, &hashes) };
                    let counters = &mut Counters::default();
                    let counted = (call == 2).then_some(counters);
                    let pass = burst.check(&table, counted, NextBurst::NONE).unwrap();
                    assert_eq!(pass == 1, want.passes());
                    want
                }
                _ => {
                    let request = Request { limit: &limit, now, cost, room: 0 };
                    answer(&table.check_ex(&request, hash, None).unwrap())
                }
            };
            assert_eq!(answer(&got), answer(&want), "{spec:?} now {now} cost {cost}");
            assert_eq!(exclusive.check_hash(&limit, now, hash, cost).unwrap(), want.outcome());
            let _ = cell.check_ex(&single, now, cost, 0);
            let mut seen = met.get();
            seen[got.verdict as usize] += 1;
            met.set(seen);
        }
    });
    let [pass, refused, never] = met.get();
    assert!(
        pass > 10_000 && refused > 10_000 && never > 100,
        "{pass} {refused} {never}: the streams do not test"
    );
    assert!(walked.get() > 10_000, "{} slots: the walks do not test", walked.get());
}

/// Walks the live slots, each of which tells what a look at its key tells; how many there were.
fn walk(table: &Table<'_>, limit: &TableLimit, now: u64, keys: &[u64]) -> u64 {
    let tag_bits = table.info().tag_bits;
    let after = |slot: &Slot| table.next_live(now, slot.number as usize + 1);
    std::iter::successors(table.next_live(now, 0), after)
        .map(|slot| {
            let has_tag = |key: &&u64| **key & ((1 << tag_bits) - 1) == u64::from(slot.tag);
            let key = keys.iter().find(has_tag).expect("a slot of a key that has asked");
            let look = table.peek(limit, now, *key, 0).unwrap();
            assert_eq!(slot.reset_after, look.reset_after, "key {key:#x} at {now}");
        })
        .count() as u64
}

fn spec_units(limit: &TableLimit) -> u64 {
    limit.info().units
}

#[test]
fn refunds_charges_and_resets_of_a_key_are_those_of_its_cell() {
    let spec = LimitSpec::fixed_window(10, 1_000_000).max_debt(20);
    let lines = memory(LINES);
    let table = Table::init(&lines, &TableOptions::new(spec).caller_hash()).unwrap();
    let limit = table.limit(&spec).unwrap();
    let charged = table.charge(&limit, 500, 77, 25, None).unwrap();
    assert_eq!(charged.permit.stored, 25);
    assert_eq!(table.refund(&limit, 600, 77, &charged.permit), Ok(Some(25)));
    assert_eq!(table.refund(&limit, 600, 78, &charged.permit), Ok(Some(0)), "another key");
    let again = table.charge(&limit, 700, 77, 25, None).unwrap();
    // A reset leaves nothing to refund to.
    assert!(table.reset_key(800, 77));
    assert_eq!(table.peek(&limit, 800, 77, 1).unwrap().remaining, 10);
    assert!(table.check_hash(&limit, 900, 77, 10).unwrap().passes());
    assert_eq!(table.refund(&limit, 900, 77, &again.permit), Ok(Some(0)));
    assert!(!table.check_hash(&limit, 900, 77, 1).unwrap().passes());
}

#[test]
fn what_a_table_that_counts_cannot_do_is_refused_by_name() {
    let lines = memory(LINES);
    let spec = LimitSpec::fixed_window(10, 1_000_000);
    let options = TableOptions::new(spec).caller_hash();
    let init = |options: &TableOptions| Table::init(&lines, options).map(|_| ()).unwrap_err();
    assert_eq!(init(&options.policy(FullPolicy::Inherit)), TableError::BadPolicy);
    assert_eq!(init(&options.slowest(LimitSpec::new(1, 1_000, 1))), TableError::BadAlgorithm);
    assert_eq!(init(&options.claim_lifetime(1_000_000)), TableError::BadLifetime);
    assert_eq!(init(&options.resolution(1)), TableError::Limit(LimitError::BadResolution));
    let wide = TableOptions::new(LimitSpec::fixed_window(1 << 50, 1_000_000)).caller_hash();
    assert_eq!(init(&wide), TableError::Limit(LimitError::TooManyUnits));
    let long = TableOptions::new(LimitSpec::fixed_window(1 << 38, 1_000_000)).caller_hash();
    assert_eq!(init(&long), TableError::SpanTooShort);

    let table = Table::init(&lines, &options).unwrap();
    let limit = table.limit(&spec).unwrap();
    assert_eq!(table.limit(&LimitSpec::new(1, 1_000_000, 1)).unwrap_err(), TableError::BadAlgorithm);
    assert_eq!(table.limit(&LimitSpec::fixed_window(16, 1_000_000)).unwrap_err(), TableError::LimitTooFast);
    assert_eq!(table.limit(&LimitSpec::fixed_window(10, 9_000_000)).unwrap_err(), TableError::LimitTooFast);
    assert_eq!(table.reserve(&limit, 0, 1, 1, None).unwrap_err(), TableError::BadAlgorithm);
    assert_eq!(table.reserve_from(&limit, (0, 5), 1, 1).unwrap_err(), TableError::BadAlgorithm);
    // A limit of another table that counts other bits.
    let others = memory(LINES);
    let other =
        Table::init(&others, &TableOptions::new(LimitSpec::fixed_window(100, 1_000_000)).caller_hash())
            .unwrap();
    assert_eq!(other.check_hash(&limit, 0, 1, 1), Err(TableError::ForeignLimit));
    // And a plain table knows no windows.
    let plain = memory(LINES);
    let plain = Table::init(&plain, &TableOptions::new(LimitSpec::new(1, 1_000, 1)).caller_hash()).unwrap();
    assert_eq!(plain.limit(&spec).unwrap_err(), TableError::BadAlgorithm);
    assert_eq!(
        table.migrate(&others, &TableOptions::new(LimitSpec::new(1, 1_000, 1)).caller_hash(), 0).err(),
        Some(TableError::BadAlgorithm)
    );
}

#[test]
fn a_restored_and_a_migrated_table_remember_every_count() {
    cases(60, |rng| {
        let spec = any_spec(rng);
        let options = TableOptions::new(spec).caller_hash().policy(FullPolicy::Deny);
        let lines = memory(2 + 8);
        let Ok(table) = Table::init(&lines, &options) else { return };
        let limit = table.limit(&spec).unwrap();
        let info = limit.info();
        let now = (1 << 40) + rng.below(1 << 40);
        let keys: Vec<u64> = (0..20).map(|_| rng.next()).collect();
        for &key in &keys {
            for _ in 0..rng.below(4) {
                let _ = table.check_hash(
                    &limit,
                    now + rng.below(info.period / 2 + 1),
                    key,
                    cost(rng, info.units),
                );
            }
        }
        let now = now + info.period / 2 + 1;
        let mut image = vec![0; table.image_words()];
        table.save(now, &mut image).unwrap();
        let offset = (rng.below(1 << 41) as i64) - (1 << 40);
        let (copy, larger) = (memory(2 + 8), memory(2 + 16));
        let attach = tatcell::AttachOptions::new();
        let restored = Table::restore(&copy, &image, &attach, offset).unwrap();
        let later = (now as i64 + offset) as u64;
        let fixed = options.resolution(table.info().resolution as i8);
        let (migrated, report) = table.migrate(&larger, &fixed, now).unwrap();
        assert!(report.is_whole(), "{report:?}");
        for &key in &keys {
            let before = table.peek(&limit, now, key, 1).unwrap();
            let moved = migrated.peek(&migrated.limit(&spec).unwrap(), now, key, 1).unwrap();
            assert!(moved.remaining <= before.remaining, "minted by a migration");
            // Aligned windows stand still while the clock moves: their limit is made anew, with another phase.
            if before.remaining < info.units && !format!("{spec:?}").contains("phase: Some") {
                let kept = restored.peek(&restored.limit(&spec).unwrap(), later, key, 1).unwrap();
                assert_eq!(kept.remaining, before.remaining);
                let unit = 1u64 << -table.info().resolution;
                assert!(
                    kept.reset_after >= before.reset_after && kept.reset_after <= before.reset_after + unit
                );
            }
        }
    });
}

/// An algorithm, the bits of its count, and the longest window in units of time at 20 and at 12 tag bits.
type Fit = (fn(u64, u64) -> LimitSpec, u32, [u32; 2]);

const FITS: &[Fit] = &[
    (LimitSpec::fixed_window, 10, [29, 37]),
    (LimitSpec::fixed_window, 16, [23, 31]),
    (LimitSpec::fixed_window, 20, [19, 27]),
    (LimitSpec::fixed_window, 32, [7, 15]),
    (LimitSpec::sliding_counter, 10, [18, 26]),
    (LimitSpec::sliding_counter, 14, [10, 18]),
    (LimitSpec::sliding_counter, 16, [6, 14]),
    (LimitSpec::sliding_counter, 18, [0, 10]),
    (LimitSpec::quota_linear, 16, [21, 29]),
    (LimitSpec::quota_linear, 20, [17, 25]),
    (LimitSpec::quota_linear, 24, [13, 21]),
];

#[test]
fn the_windows_that_the_documentation_says_fit_a_slot() {
    for (make, bits, longest) in FITS {
        for (tag_bits, power) in [20, 12].into_iter().zip(longest).filter(|(_, power)| **power != 0) {
            let spec = make((1 << bits) - 1, 1 << power);
            let options = TableOptions::new(spec).caller_hash().tag_bits(tag_bits).resolution(0);
            let made = Table::init(&memory(LINES), &options).map(|_| ());
            assert_eq!(made, Ok(()), "{bits} bits, 2^{power} units, {tag_bits} tag bits");
            let far = make((1 << bits) - 1, 1 << (power + 4));
            let far = TableOptions::new(far).caller_hash().tag_bits(tag_bits).resolution(0);
            assert_eq!(Table::init(&memory(LINES), &far).map(|_| ()), Err(TableError::SpanTooShort));
        }
    }
}

#[test]
fn every_image_of_a_table_that_counts_can_be_attached_and_restored() {
    let (hour, day) = (3_600_000_000_000, 86_400_000_000_000);
    let specs = [
        LimitSpec::sliding_counter(1_000, hour),
        LimitSpec::fixed_window(100_000, day),
        LimitSpec::fixed_window(10_000, 30 * day).aligned(day),
        LimitSpec::quota_linear(10_000, day),
        LimitSpec::decay(100, day),
    ];
    for spec in specs {
        let options = TableOptions::new(spec).caller_hash();
        let (lines, copy) = (memory(LINES), memory(LINES));
        let table = Table::init(&lines, &options).unwrap();
        assert!(table.check_hash(&table.limit(&spec).unwrap(), hour, 7, 60).unwrap().passes());
        let attached = Table::attach(&lines, &tatcell::AttachOptions::new()).unwrap();
        assert_eq!(attached.info(), table.info());
        let left = attached.peek(&attached.limit(&spec).unwrap(), hour, 7, 1).unwrap().remaining;
        assert!(left <= spec_units(&table.limit(&spec).unwrap()) - 60);
        let mut image = vec![0; table.image_words()];
        table.save(hour, &mut image).unwrap();
        let restored = Table::restore(&copy, &image, &tatcell::AttachOptions::new(), 0).unwrap();
        assert_eq!(
            restored.peek(&restored.limit(&spec).unwrap(), hour, 7, 1).unwrap().remaining,
            left,
            "{spec:?}"
        );
    }
}

#[test]
fn a_limit_that_the_options_did_not_provide_for_is_refused() {
    let lines = memory(LINES);
    let spec = LimitSpec::fixed_window(100, 60_000_000_000);
    let table = Table::init(&lines, &TableOptions::new(spec).caller_hash()).unwrap();
    // No guard for aligned windows, and no unit of time short enough.
    assert_eq!(table.limit(&spec.aligned(0)).unwrap_err(), TableError::LimitTooFast);
    assert_eq!(table.limit(&LimitSpec::fixed_window(100, 10_000_000)).unwrap_err(), TableError::LimitTooFast);
    let options = TableOptions::new(spec.aligned(0)).caller_hash();
    let wide = options.resolution(0).tag_bits(12).guard(5_000_000_000);
    assert_eq!(Table::init(&lines, &wide).map(|_| ()), Err(TableError::SpanTooShort));
    for shift in [64, 127, -64] {
        let bad = options.resolution(shift);
        assert_eq!(Table::init(&lines, &bad).map(|_| ()), Err(TableError::Limit(LimitError::BadResolution)));
    }
}

#[test]
fn a_permit_of_before_a_reset_is_worth_nothing_at_the_last_unit_of_a_window() {
    let spec = LimitSpec::fixed_window(10, 1_000).aligned(0);
    let lines = memory(LINES);
    let options = TableOptions::new(spec).caller_hash().resolution(0).guard(1);
    let table = Table::init(&lines, &options).unwrap();
    let limit = table.limit(&spec).unwrap();
    let request = Request { limit: &limit, now: 999, cost: 10, room: 0 };
    let first = table.check_ex(&request, 77, None).unwrap();
    assert!(first.passes() && table.reset_key(999, 77));
    assert!(table.check_ex(&request, 77, None).unwrap().passes());
    assert_eq!(table.refund(&limit, 999, 77, &first.permit), Ok(Some(0)));
    assert!(!table.check_ex(&request, 77, None).unwrap().passes());
}

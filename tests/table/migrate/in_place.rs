//! Migrations of a table in its own memory: what they make, and that they are done once.

use std::sync::atomic::Ordering::Relaxed;

use super::{fill, options, NOW, SPEC, T};
use crate::common::{cases, memory, words};
use tatcell::{
    AttachOptions, ExclusiveTable, FullPolicy, LimitSpec, Line, Request, Table, TableError, TableOptions,
};

fn image(lines: &[Line]) -> Vec<u64> {
    words(lines).iter().map(|word| word.load(Relaxed)).collect()
}

/// Word by word, with full sets of every policy, claims and tombstones of the dead, other resolutions, tags, horizons.
#[test]
fn in_place_the_same_is_made_as_in_other_memory() {
    cases(60, |rng| {
        let (lines, other) = (memory(2 + 30), memory(2 + 30));
        let policies = [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled];
        let table = Table::init(&lines, &options().policy(rng.pick(&policies))).unwrap();
        let keys = fill(&table, rng.within(1, 9) as usize, rng);
        for key in keys.iter().filter(|key| **key % 16 == 0) {
            table.reset_key(NOW + T, *key);
        }
        for word in &words(&lines)[16..] {
            if rng.one_in(7) {
                word.store(rng.next(), Relaxed);
            }
        }
        let double = LimitSpec::new(2, T, 8);
        let to = TableOptions::new(double).slowest(SPEC).caller_hash().policy(rng.pick(&policies));
        let to = to.resolution(rng.pick(&[0, 2, -3])).tag_bits(rng.pick(&[20, 14]));
        let to = if rng.one_in(2) { to } else { to.keep_units(SPEC, double) };
        let now = NOW + T + rng.below(T);
        let foreseen = table.foresee_migration(lines.len(), &to, now).unwrap();
        let (_, report) = table.migrate(&other, &to, now).unwrap();
        let (_, made) = Table::migrate_in_place(&lines, 1, &to, now).unwrap();
        assert_eq!((made, foreseen), (report, report));
        assert_eq!(image(&lines), image(&other));
    });
}

#[test]
fn it_is_done_once_and_permits_of_before_are_worth_nothing() {
    let (few, many) = (LimitSpec::new(60, 3_600_000, 60), LimitSpec::new(600, 3_600_000, 600));
    let options = TableOptions::new(many).slowest(few).caller_hash();
    let (to, mut lines) = (options.keep_units(few, many), memory(4));
    let table = Table::init(&lines, &options).unwrap();
    let request = Request { limit: &table.limit(&few).unwrap(), now: 0, cost: 60, room: 0 };
    let permit = table.check_ex(&request, 7, None).unwrap().permit;
    let before = image(&lines);
    for generation in [0, 2, u64::MAX] {
        assert_eq!(Table::migrate_in_place(&lines, generation, &to, 0).err(), Some(TableError::BadMode));
    }
    let wider = to.tag_bits(24);
    assert_eq!(Table::migrate_in_place(&lines, 1, &wider, 0).err(), Some(TableError::TagTooWide));
    assert_eq!(
        ExclusiveTable::migrate_in_place_exclusive(&mut lines, 1, &to, 0).err(),
        Some(TableError::BadMode)
    );
    assert_eq!(image(&lines), before, "what is refused changes nothing");

    let (table, report) = Table::migrate_in_place(&lines, 1, &to, 0).unwrap();
    let limit = table.limit(&many).unwrap();
    assert!(report.is_whole() && table.info().generation == 2);
    assert_eq!(table.refund(&limit, 0, 7, &permit), Ok(Some(0)));
    // Asked again, as by somebody who was killed before he wrote down that it is done.
    assert_eq!(Table::migrate_in_place(&lines, 1, &to, 0).err(), Some(TableError::BadMode));
    assert_eq!(table.peek(&limit, 0, 7, 1).unwrap().remaining, 540);

    // As a caller who was killed meanwhile leaves it.
    words(&lines)[0].store(0, Relaxed);
    let attached = Table::attach(&lines, &AttachOptions::new());
    assert_eq!(attached.err(), Some(TableError::NotReady));
    assert_eq!(Table::migrate_in_place(&lines, 2, &to, 0).err(), Some(TableError::NotReady));
    assert_eq!(
        Table::init(&lines, &options.zeroed()).err(),
        Some(TableError::BadMode),
        "it is not taken for fresh"
    );
}

#[test]
fn an_exclusive_table_is_migrated_by_its_owner() {
    let (few, many) = (LimitSpec::fixed_window(60, 3_600_000), LimitSpec::fixed_window(600, 3_600_000));
    let mut lines = memory(4);
    let table = ExclusiveTable::init_exclusive(&mut lines, &TableOptions::new(few).caller_hash()).unwrap();
    assert!(table.check_hash(&table.limit(&few).unwrap(), 0, 7, 60).unwrap().passes());
    let to = TableOptions::new(many).caller_hash().keep_units(few, many);
    let (table, report) = ExclusiveTable::migrate_in_place_exclusive(&mut lines, 1, &to, 0).unwrap();
    assert!(report.is_whole());
    assert_eq!(table.peek(&table.limit(&many).unwrap(), 0, 7, 1).unwrap().remaining, 540);
}

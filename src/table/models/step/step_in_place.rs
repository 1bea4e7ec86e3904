//! A migration of a table in its own memory, killed after each of its accesses, and with another one in between.

use std::vec;
use std::vec::Vec;

use crate::limit::LimitSpec;
use crate::sync::step_atomic::{alone, step, AtomicU64};
use crate::table::error::TableError;
use crate::table::handle::Table;
use crate::table::layout::image::Line;
use crate::table::layout::options::{AttachOptions, TableOptions};

const T: u64 = 4096;
const NOW: u64 = 1 << 30;
/// Keys of both lines, with the units that they have used.
const USED: [(u64, u64); 3] = [(1, 4), (2, 1), (1 << 63 | 3, 3)];
const OLD: LimitSpec = LimitSpec::new(1, T, 8);
const NEW: LimitSpec = LimitSpec::new(2, T, 8);

fn options() -> TableOptions {
    TableOptions::new(NEW).slowest(OLD).caller_hash().resolution(0)
}

fn owing() -> [Line; 4] {
    let lines = [Line::EMPTY; 4];
    let table = Table::init(&lines, &options()).expect("a table");
    let limit = table.limit(&OLD).expect("its own limit");
    for (key, units) in USED {
        assert!(table.check_hash(&limit, NOW, key, units).expect("its own limit").passes());
    }
    lines
}

fn watched(lines: &[Line]) -> Vec<*const AtomicU64> {
    lines.iter().flat_map(|line| &line.words).map(|word| word as *const AtomicU64).collect()
}

fn migrate(lines: &[Line]) -> Result<(), TableError> {
    Table::migrate_in_place(lines, 1, &options().keep_units(OLD, NEW), NOW).map(|_| ())
}

/// Each key has used as many units as before, under the limit of the table's generation.
fn sound(lines: &[Line]) -> Result<u64, TableError> {
    let table = Table::attach(lines, &AttachOptions::new())?;
    let generation = table.info().generation;
    let limit = table.limit(if generation == 1 { &OLD } else { &NEW }).expect("its own limit");
    for (key, units) in USED {
        let left = table.peek(&limit, NOW, key, 1).expect("its own limit").remaining;
        assert_eq!(left, 8 - units, "key {key} of generation {generation}");
    }
    Ok(generation)
}

#[test]
fn a_migration_killed_at_any_access_can_neither_be_attached_nor_done_twice() {
    let (lines, mut log, mut seen) = (owing(), vec![], [0; 3]);
    loop {
        let taken = step(&watched(&lines), log.clone(), || migrate(&lines));
        // It dies here: what does who comes then find?
        let found = sound(&lines);
        let again = |generation| {
            // In a copy, which goes on from the same words.
            let copy = [Line::EMPTY; 4];
            let pairs = copy.iter().zip(&lines).flat_map(|(to, from)| to.words.iter().zip(&from.words));
            pairs.for_each(|(to, from)| to.set(from.get()));
            let to = options().keep_units(OLD, NEW);
            let done = Table::migrate_in_place(&copy, generation, &to, NOW).map(|_| ());
            done.and_then(|()| sound(&copy))
        };
        match found {
            // Not begun: who does it now does it once.
            Ok(1) => assert_eq!(again(1), Ok(2)),
            Ok(_) => assert_eq!(again(1), Err(TableError::BadMode)),
            Err(e) => assert_eq!([Err(e), again(1), again(2)], [Err(TableError::NotReady); 3]),
        }
        seen[found.unwrap_or(0) as usize] += 1;
        match (taken.end, taken.found) {
            (Some(end), _) => {
                assert_eq!(end, Ok(()));
                break;
            }
            (None, found) => log.push(found.expect("one access")),
        }
    }
    // Every state was there: before, while it was withdrawn, afterwards.
    assert!(seen.iter().all(|states| *states > 1), "{seen:?}");
}

/// The first one stops after so many accesses; the other runs to its end, and then the first one goes on.
#[test]
fn of_two_migrations_at_once_one_is_done() {
    let mut turns = [0, 0];
    for accesses in 0.. {
        let (lines, mut log) = (owing(), vec![]);
        let mut ended = None;
        while ended.is_none() && log.len() < accesses {
            let taken = step(&watched(&lines), log.clone(), || migrate(&lines));
            log.extend(taken.found);
            ended = taken.end;
        }
        if ended.is_some() {
            break;
        }
        let other = migrate(&lines);
        let first = alone(&watched(&lines), log, || migrate(&lines)).expect("it ends");
        assert_eq!([&first, &other].iter().filter(|done| done.is_ok()).count(), 1, "{first:?}, {other:?}");
        assert_eq!(sound(&lines), Ok(2));
        turns[usize::from(first.is_ok())] += 1;
    }
    assert!(turns.iter().all(|n| *n > 1), "{turns:?}");
}

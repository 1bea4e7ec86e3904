//! What an override stores: next to words of the other sort, with the longest end, and where there is no room.

use std::vec::Vec;

use super::*;
use crate::table::layout::image::Line;
use crate::table::layout::options::{AttachOptions, TableOptions};

const NOW: u64 = 1 << 40;
const KEY: u64 = 0x1234_5678_9abc_def1;
/// The longest end, in units of time, which are ticks here: one more than was asked for, because a unit may be partial.
const LONGEST: u64 = (1 << 20) + 1;

fn memory(lines: usize) -> Vec<Line> {
    (0..lines).map(|_| Line::new()).collect()
}

fn table(lines: &[Line]) -> Table<'_> {
    let table = Table::init(lines, &TableOptions::overrides(LONGEST - 1).caller_hash()).unwrap();
    assert_eq!(table.info().horizon, LONGEST);
    table
}

fn words(lines: &[Line]) -> Vec<u64> {
    // ORDERING: Relaxed; one thread.
    lines.iter().flat_map(|line| &line.words).map(|word| word.load(Ordering::Relaxed)).collect()
}

#[test]
fn a_witness_only_becomes_later_and_is_nobodys_override() {
    let state = |ahead, aux| State { ahead, aux };
    for aux in [NONE, EXEMPT, BAN] {
        let next = |of: State, now| Put { state: of, floor: 6 }.next(now);
        assert_eq!(next(state(50, aux), state(90, WITNESS)), None);
        assert_eq!(next(state(50, WITNESS), state(90, aux)), None);
        // A state that has ended counts as absent.
        assert_eq!(next(state(50, WITNESS), state(0, aux)), Some(state(50, WITNESS)));
        assert_eq!(next(state(50, aux), state(0, WITNESS)), Some(state(50, aux)));
        for (now, then) in [(49, 50), (50, 50), (51, 51), (90, 90)] {
            assert_eq!(next(state(50, WITNESS), state(now, WITNESS)), Some(state(then, WITNESS)));
        }
    }
}

/// A key whose place holds the witness of another, and a key whose witness would take the place of another's override.
#[test]
fn a_clash_is_told_and_changes_nothing() {
    type Put = fn(&Table<'_>, u64) -> Result<(), TableError>;
    let puts: [Put; 2] = [|t, key| t.ban(NOW, key, NOW + 500), |t, key| t.exempt(NOW, key, NOW + 500)];
    let clash = Err(TableError::OverrideClash);
    for (first, second) in puts.into_iter().flat_map(|first| puts.map(|second| (first, second))) {
        for (there, asked) in [(KEY, second_hash(KEY)), (second_hash(KEY), KEY)] {
            let lines = memory(66);
            let table = table(&lines);
            first(&table, there).unwrap();
            let (before, found) = (words(&lines), table.overridden(NOW, there));
            assert!(matches!(found, Ok(Some(_))));
            assert_eq!((second(&table, asked), table.overridden(NOW, asked)), (clash, Ok(None)));
            assert_eq!((words(&lines), table.overridden(NOW, there)), (before, found));
        }
    }
}

/// An override that has no room leaves no witness.
#[test]
fn a_full_set_gets_no_witness_elsewhere() {
    let lines = memory(66);
    let table = table(&lines);
    // All keys are in one set, their witnesses anywhere.
    let key = |n: u64| 1 << 32 | (n + 1);
    let held = (0..64).take_while(|n| table.ban(NOW, key(*n), NOW + 500).is_ok()).count() as u64;
    assert!((12..=16).contains(&held), "{held}");
    let before = words(&lines);
    for n in held..64 {
        assert_eq!(table.exempt(NOW, key(n), NOW + 900), Err(TableError::FullSet));
        assert_eq!(table.ban(NOW, key(n), NOW + 900), Err(TableError::FullSet));
    }
    assert_eq!(words(&lines), before);
}

/// The longest end is accepted. To an earlier reading the exemption is longer than any can be, so it does not count.
#[test]
fn the_longest_end_may_be_said_and_no_exemption_is_longer() {
    let lines = memory(4);
    let table = table(&lines);
    let end = NOW + LONGEST;
    assert_eq!(table.ban(NOW, 1, end), Ok(()));
    assert_eq!(table.exempt(NOW, 2, end), Ok(()));
    assert_eq!(table.ban(NOW, 3, end + 1), Err(TableError::BadUntil));
    assert_eq!(table.exempt(NOW, 3, end + 1), Err(TableError::BadUntil));
    for (now, exempt) in [(NOW, true), (NOW + 1, true), (NOW - 1, false), (NOW - 9, false)] {
        let (left, is) = (end - now, |found| Ok(exempt.then_some(found)));
        assert_eq!(table.overridden(now, 2), is(Override::Exempt { left }), "at {now}");
        assert_eq!(table.overridden(now, 1), Ok(Some(Override::Banned { retry_after: left })), "at {now}");
    }
}

/// A lowered word lies above every claim that its slot may have had. Otherwise a stalled insert could take a later
/// claim for its own.
#[test]
fn a_lowered_word_stays_above_the_claims_of_its_slot() {
    type Lower = fn(&Table<'_>) -> bool;
    let ways: [Lower; 3] = [
        |t| t.ban(NOW, KEY, NOW + 1).is_ok(),
        |t| t.exempt(NOW, KEY, NOW + 1).is_ok(),
        |t| t.lift(NOW, KEY) == Ok(true),
    ];
    for lower in ways {
        let lines = memory(4);
        let table = table(&lines);
        table.ban(NOW, KEY, NOW + 500).unwrap();
        assert!(lower(&table));
        let (layout, (set, tag)) = (table.geometry.layout, table.place(KEY));
        let (_, _, word) = set.find(&layout, tag).unwrap();
        let lead = layout.lead(word, table.geometry.clock_q(NOW));
        // Above the longest claim that is no takeover, and above a drop of it.
        assert!(lead > layout.grace + 2 && lead < 100, "{lead} of {}", layout.grace);
    }
}

/// Whether an override was ever stored: no lookup of an address or a chain asks further before.
#[test]
fn a_table_says_whether_an_override_was_ever_stored() {
    let (lines, empty) = (memory(66), memory(66));
    let table = table(&lines);
    assert!(!table.was_used());
    // A call that stores nothing changes nothing.
    assert_eq!(table.ban(NOW, KEY, NOW), Err(TableError::BadUntil));
    assert_eq!((table.lift(NOW, KEY), table.was_used()), (Ok(false), false));
    let attach = AttachOptions::new();
    let image = |table: &Table<'_>| {
        let mut image = std::vec![0; table.image_words()];
        table.save(NOW, &mut image).unwrap();
        image
    };
    let restored = |image: &[u64]| Table::restore(&empty, image, &attach, 0).unwrap().was_used();
    let other = Table::attach(&lines, &attach).unwrap();
    assert!(!other.was_used() && !restored(&image(&table)));
    table.ban(NOW, KEY, NOW + 5).unwrap();
    // Every handle of the memory sees it.
    assert!(table.was_used() && other.was_used() && Table::attach(&lines, &attach).unwrap().was_used());
    assert!(restored(&image(&table)));
    // A lift and an end leave it: only a fresh table is unused again.
    assert_eq!((table.lift(NOW, KEY), table.was_used()), (Ok(true), true));
    assert!(Table::attach(&lines, &attach).unwrap().was_used());
    let options = TableOptions::overrides(LONGEST - 1).caller_hash();
    assert!(!Table::init(&lines, &options).unwrap().was_used());
    assert!(!Table::init(&memory(66), &options.zeroed()).unwrap().was_used());
}

/// An image of a library that does not know the word has 0 there, and its overrides are found.
#[test]
fn an_older_image_is_asked_for_every_override() {
    let (lines, to) = (memory(66), memory(66));
    let table = table(&lines);
    table.ban(NOW, KEY, NOW + 5).unwrap();
    let mut image = std::vec![0; table.image_words()];
    table.save(NOW, &mut image).unwrap();
    // Such a library saves what this one does, and restores it so, too.
    assert_eq!(image[10], 0);
    to.iter().flat_map(|line| &line.words).zip(&image).for_each(|(word, value)| {
        // ORDERING: Relaxed; one thread.
        word.store(*value, Ordering::Relaxed);
    });
    let older = Table::attach(&to, &AttachOptions::new()).unwrap();
    assert!(older.was_used());
    assert_eq!(older.overridden(NOW, KEY), Ok(Some(Override::Banned { retry_after: 5 })));
}

//! Publishing a table: a thread that sees the magic sees the geometry and freshly formatted slots.
//!
//! The memory holds garbage before it is formatted, so a stale word shows. See `loom_kit` for what loom does not show.
//! In particular, no model here re-formats memory in use, which `Table::init` forbids.

use std::sync::atomic::{AtomicUsize, Ordering as Plain};
use std::sync::Arc;

use super::loom_kit::{explore, race, race3, Bound, NOW, T};
use crate::limit::LimitSpec;
use crate::sync::{AtomicU64, Ordering};
use crate::table::error::TableError;
use crate::table::handle::Table;
use crate::table::layout::image::Line;
use crate::table::layout::options::{AttachOptions, TableOptions};

/// A header and sets in which every word but the magic is garbage: live words of tag 1.
fn rubbish<const N: usize>() -> Arc<[Line; N]> {
    let lines: [Line; N] = core::array::from_fn(|_| Line::new());
    for word in lines.iter().flat_map(|line| &line.words).skip(1) {
        // ORDERING: Relaxed; before the threads of the model start.
        word.store(1 << 43 | (NOW + T), Ordering::Relaxed);
    }
    Arc::new(lines)
}

fn options() -> TableOptions {
    TableOptions::new(LimitSpec::new(1, T, 1)).caller_hash().resolution(0)
}

/// Attaches or gets NotReady. An attached table must have the right geometry and 16 zeroed slots.
fn attach_and_look(lines: &[Line; 4]) -> bool {
    match Table::attach(lines, &AttachOptions::new()) {
        Err(e) => {
            assert_eq!(e, TableError::NotReady, "saw the magic before the header");
            false
        }
        Ok(table) => {
            let sound = Table::init(&[(); 4].map(|()| Line::new()), &options()).map(|t| t.geometry);
            assert_eq!(Ok(table.geometry), sound, "saw the magic before the header");
            for word in table.slots.iter().flat_map(|line| &line.words) {
                // ORDERING: Relaxed; as a lookup reads it.
                assert_eq!(word.load(Ordering::Relaxed), 0, "saw the magic before the slots");
            }
            true
        }
    }
}

/// One thread formats, one attaches. Both answers occur. Does not show: restoring an image.
#[test]
fn attach_beside_publish_sees_a_whole_table() {
    static ATTACHED: AtomicUsize = AtomicUsize::new(0);
    static WAITED: AtomicUsize = AtomicUsize::new(0);
    explore("attach/publish", Bound::Exhaustive, || {
        let lines = rubbish::<4>();
        let (a, b) = (lines.clone(), lines);
        let ((), attached) = race(
            move || {
                Table::init(&*a, &options()).expect("init");
            },
            move || attach_and_look(&b),
        );
        (if attached { &ATTACHED } else { &WAITED }).fetch_add(1, Plain::Relaxed);
    });
    assert!(ATTACHED.load(Plain::Relaxed) > 0 && WAITED.load(Plain::Relaxed) > 0);
}

/// Two threads attach, and each that succeeds charges a key at once: each sees a whole table, with the other's charge
/// or without it. Does not show: more than one request.
#[test]
fn attach_beside_the_first_request_sees_a_whole_table() {
    explore("attach/publish/check", Bound::First(3), || {
        let lines = rubbish::<4>();
        let (a, b, c) = (lines.clone(), lines.clone(), lines.clone());
        let spec = LimitSpec::new(1, T, 1);
        let check = move |lines: Arc<[Line; 4]>| {
            let table = Table::attach(&*lines, &AttachOptions::new()).ok()?;
            let limit = table.limit(&spec).expect("limit");
            Some(table.check_hash(&limit, NOW, 1, 1).expect("check").passes())
        };
        let ((), b, c) = race3(
            move || {
                Table::init(&*a, &options()).expect("init");
            },
            move || check(b),
            move || check(c),
        );
        let passed = [b, c].iter().filter(|r| **r == Some(true)).count();
        let asked = [b, c].iter().flatten().count();
        assert_eq!(passed, asked.min(1), "a key was refused its burst or got two: {b:?} {c:?}");
    });
}

/// Keys of tag 2, one in the first set and one in the last.
const KEYS: [u64; 2] = [2, 1 << 63 | 2];

/// A table in which both keys owe a burst.
fn owing<const N: usize>() -> Arc<[Line; N]> {
    let lines: Arc<[Line; N]> = Arc::new(core::array::from_fn(|_| Line::new()));
    let table = Table::init(&*lines, &options()).expect("init");
    let limit = table.limit(&LimitSpec::new(1, T, 1)).expect("limit");
    KEYS.iter().for_each(|key| {
        let _ = table.check_hash(&limit, NOW, *key, 1);
    });
    lines
}

/// Once a migrated table can be attached, it has both debts and nothing of what the memory held before. Returns whether
/// it could be attached.
fn attach_and_ask(lines: &[Line]) -> bool {
    match Table::attach(lines, &AttachOptions::new()) {
        Err(e) => {
            assert_eq!(e, TableError::NotReady, "saw the magic before the header");
            false
        }
        Ok(table) => {
            let limit = table.limit(&LimitSpec::new(1, T, 1)).expect("limit");
            for key in KEYS {
                let again = table.peek(&limit, NOW, key, 1).expect("peek");
                assert!(!again.passes(), "saw the magic before the slots");
            }
            for word in table.slots.iter().flat_map(|line| &line.words) {
                // ORDERING: Relaxed; as a lookup reads it.
                assert_ne!(
                    word.load(Ordering::Relaxed),
                    1 << 43 | (NOW + T),
                    "saw the magic before the slots"
                );
            }
            true
        }
    }
}

/// One thread migrates a table, another attaches to the new one: it is whole, with its debts. Does not show: parts.
#[test]
fn attach_beside_a_migration_sees_a_whole_table() {
    explore("attach/migrate", Bound::First(3), || {
        let (old, new) = (owing::<4>(), rubbish::<4>());
        let other = new.clone();
        race(
            move || {
                let table = Table::attach(&*old, &AttachOptions::new()).expect("attach");
                table.migrate(&*new, &options(), NOW).expect("migrate");
            },
            move || attach_and_ask(&*other),
        );
    });
}

/// One thread does the first part of a migration, another continues from there, and a third one attaches: what it sees
/// is whole. The second one must not attach, because the fence of `attach` would acquire the first part after all.
/// Does not show: more than two parts.
#[test]
fn a_migration_in_parts_of_two_threads_is_whole() {
    static ATTACHED: AtomicUsize = AtomicUsize::new(0);
    explore("migrate in parts", Bound::First(3), || {
        let (old, new) = (owing::<6>(), rubbish::<6>());
        let (old2, new2, new3) = (old.clone(), new.clone(), new.clone());
        let part = |old: &[Line; 6], new: &[Line; 6], from| {
            let table = Table::attach(old, &AttachOptions::new()).expect("attach");
            table.migrate_part::<crate::sync::Shared>(new, &options(), NOW, from, 1, &mut Default::default())
        };
        race3(
            move || assert_eq!(part(&old, &new, 0), Ok(16)),
            move || {
                let next = part(&old2, &new2, 16);
                assert!(matches!(next, Ok(0) | Err(TableError::NotReady)), "{next:?}");
            },
            move || {
                if attach_and_ask(&*new3) {
                    ATTACHED.fetch_add(1, Plain::Relaxed);
                }
            },
        );
    });
    assert!(ATTACHED.load(Plain::Relaxed) > 0, "the second part was never done");
}

/// MUST FAIL: the magic stored Relaxed in a copy of publish and attach. Loom finds a thread that sees the magic and an
/// old slot. Does not show: that Release is enough (the models above do).
#[test]
#[should_panic(expected = "saw the magic before the slots")]
fn relaxed_publish_is_caught() {
    explore("MUST FAIL: relaxed publish", Bound::Exhaustive, || {
        let words = Arc::new([AtomicU64::new(0), AtomicU64::new(NOW)]);
        let w = words.clone();
        race(
            move || {
                // ORDERING: Relaxed, wrong on purpose in the second store.
                w[1].store(0, Ordering::Relaxed);
                w[0].store(1, Ordering::Relaxed);
            },
            move || {
                // ORDERING: as in `image::read`.
                if words[0].load(Ordering::Acquire) == 1 {
                    assert_eq!(words[1].load(Ordering::Relaxed), 0, "saw the magic before the slots");
                }
            },
        );
    });
}

//! Models of overrides: whatever two threads set and lift at once, the override that results stands until its end.
//!
//! Both words of the key exist from the start; `loom_insert` shows how words are inserted. See `loom_kit` for the
//! bounds and for what loom does not show.

use std::sync::atomic::{AtomicUsize, Ordering as Plain};
use std::sync::Arc;
use std::vec::Vec;

use super::loom_kit::{explore, race, Bound, NOW};
use crate::algorithms::State;
use crate::keys::second_hash;
use crate::sync::{fence, Ordering};
use crate::sync::{Access, Shared};
use crate::table::handle::Table;
use crate::table::layout::image::Line;
use crate::table::layout::image::{header, FIRST_WORD};
use crate::table::layout::options::{AttachOptions, TableOptions};
use crate::table::layout::override_word::{BAN, OVERRIDE_BITS, WITNESS};
use crate::table::overrides::Override;

const HASH: u64 = 0x1234_5678_9abc_def0;
const SHORT: u64 = 100;
const LONG: u64 = 1_000;

/// A table without overrides.
fn empty() -> Arc<Table<'static>> {
    let lines: std::vec::Vec<Line> = (0..4).map(|_| Line::new()).collect();
    let lines: &'static [Line] = std::boxed::Box::leak(lines.into_boxed_slice());
    let table = Table::init(lines, &TableOptions::overrides(1 << 20).caller_hash()).expect("table");
    Arc::new(table)
}

/// A table with a ban of the key that is longer than SHORT and shorter than LONG.
fn world() -> Arc<Table<'static>> {
    let table = empty();
    table.ban(NOW, HASH, NOW + 500).expect("ban");
    table
}

fn ban(table: &Arc<Table<'static>>, ticks: u64) -> impl FnOnce() + 'static {
    let table = table.clone();
    move || table.ban(NOW, HASH, NOW + ticks).expect("ban")
}

/// Returns for how many ticks the key is banned, and checks that the ban stands until its end.
fn stands(table: &Table<'_>) -> u64 {
    match table.look(NOW, HASH) {
        Some(Override::Banned { retry_after }) => {
            let last = table.look(NOW + retry_after - 1, HASH);
            assert_eq!(last, Some(Override::Banned { retry_after: 1 }), "a ban was lost");
            assert_eq!(table.look(NOW + retry_after, HASH), None);
            retry_after
        }
        Some(Override::Exempt { left }) => panic!("exempt for {left}"),
        None => 0,
    }
}

/// A short ban and a long one: either may come last. Does not show: more threads, different clocks.
#[test]
fn loom_of_two_bans_one_stands_until_its_end() {
    static SEEN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    explore("overrides: two bans", Bound::First(3), || {
        let table = world();
        race(ban(&table, SHORT), ban(&table, LONG));
        let ticks = stands(&table);
        assert!(ticks == SHORT || ticks == LONG, "nobody set {ticks}");
        SEEN[(ticks == LONG) as usize].fetch_add(1, Plain::Relaxed);
    });
    assert!(SEEN.iter().all(|n| n.load(Plain::Relaxed) > 0), "one always won");
}

/// A ban and a lift of the one before it: the ban stands, or the lift came last. Does not show: more threads.
#[test]
fn loom_a_lift_takes_no_witness_from_a_ban_beside_it() {
    static SEEN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    explore("overrides: ban and lift", Bound::First(3), || {
        let table = world();
        let other = table.clone();
        race(ban(&table, LONG), move || other.lift(NOW, HASH).expect("lift"));
        let ticks = stands(&table);
        assert!(ticks == 0 || ticks == LONG, "nobody set {ticks}");
        SEEN[(ticks == LONG) as usize].fetch_add(1, Plain::Relaxed);
    });
    assert!(SEEN.iter().all(|n| n.load(Plain::Relaxed) > 0), "one always came last");
}

/// A lookup while a ban is made longer: it always finds a ban. Does not show: keys that are inserted.
#[test]
fn loom_a_ban_that_grows_has_no_gap() {
    explore("overrides: look beside a longer ban", Bound::Exhaustive, || {
        let table = world();
        let other = table.clone();
        let ((), seen) = race(ban(&table, LONG), move || other.look(NOW, HASH));
        assert!(matches!(seen, Some(Override::Banned { retry_after: 500 | LONG })), "a gap: {seen:?}");
    });
}

/// A key whose witness is read before its override when the slots are read in order.
fn in_order() -> u64 {
    let mix = |n: u64| second_hash(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let is = |hash: &u64| hash >> 63 == 1 && second_hash(*hash) >> 63 == 0;
    (1..).map(mix).find(is).expect("every fourth")
}

type Save = fn(&Table<'static>) -> Vec<u64>;

fn saved(table: &Table<'static>) -> Vec<u64> {
    let mut image = std::vec![0; table.image_words()];
    table.save(NOW, &mut image).expect("room for it");
    image
}

/// Saves without a second pass for witnesses.
fn saved_once(table: &Table<'static>) -> Vec<u64> {
    let mut image = std::vec![0; table.image_words()];
    image[0] = FIRST_WORD;
    let header = header(&table.geometry, false);
    image[1..=header.len()].copy_from_slice(&header);
    let words = table.slots.iter().flat_map(|line| &line.words);
    // ORDERING: Relaxed, as in `image::save`.
    image[header.len() + 1..].iter_mut().zip(words).for_each(|(to, word)| *to = word.load(Ordering::Relaxed));
    image
}

/// Checks what a restore finds of a key that is overridden during the save, and was banned for 500 ticks before or not.
fn saved_beside(
    name: &str,
    banned: bool,
    save: Save,
    change: fn(&Table<'static>, u64),
    may: fn(Option<Override>) -> bool,
) {
    explore(name, Bound::First(3), move || {
        let (table, hash) = (empty(), in_order());
        if banned {
            table.ban(NOW, hash, NOW + 500).expect("ban");
        }
        let other = table.clone();
        let (image, ()) = race(move || save(&table), move || change(&other, hash));
        let to: Vec<Line> = (0..4).map(|_| Line::new()).collect();
        let new = Table::restore(&to, &image, &AttachOptions::new(), 0).expect("restore");
        let found = new.look(NOW, hash);
        assert!(may(found), "not as before or after: {found:?}");
        if found.is_none() {
            // No override may remain without its witness: it would be taken for another key's.
            assert_eq!(new.ban(NOW, hash, NOW + LONG), Ok(()), "half an override stands in the way");
        }
        if let Some(Override::Banned { retry_after }) = found {
            let last = new.look(NOW + retry_after - 1, hash);
            assert_eq!(last, Some(Override::Banned { retry_after: 1 }), "a ban was lost");
        }
    });
}

fn grows(table: &Table<'static>, hash: u64) {
    table.ban(NOW, hash, NOW + LONG).expect("ban");
}

/// A ban that grows is saved with one end or the other, and stands until then.
#[test]
fn loom_a_save_beside_a_ban_that_grows_keeps_it_to_its_end() {
    saved_beside("overrides: save beside a longer ban", true, saved, grows, |found| {
        matches!(found, Some(Override::Banned { retry_after: 500 | LONG }))
    });
}

/// A first ban is saved whole or not at all.
#[test]
fn loom_a_save_beside_a_first_ban_has_it_whole_or_not() {
    saved_beside("overrides: save beside a first ban", false, saved, grows, |found| {
        matches!(found, None | Some(Override::Banned { retry_after: LONG }))
    });
}

/// An exemption replaces a ban: the save has one or the other.
#[test]
fn loom_a_save_beside_an_exemption_has_what_was_before_or_after() {
    let exempt = |table: &Table<'static>, hash| table.exempt(NOW, hash, NOW + LONG).expect("exempt");
    saved_beside("overrides: save beside an exemption", true, saved, exempt, |found| {
        matches!(found, Some(Override::Banned { retry_after: 500 } | Override::Exempt { left: LONG }))
    });
}

/// MUST FAIL: a save that reads each word once.
#[test]
#[should_panic(expected = "a ban was lost")]
fn loom_weak_save_that_looks_once_is_caught() {
    saved_beside("overrides, weakened: save looks once", true, saved_once, grows, |found| {
        matches!(found, Some(Override::Banned { .. }))
    });
}

/// MUST FAIL: a lift that takes the witness, too.
#[test]
#[should_panic(expected = "a ban was lost")]
fn loom_weak_lift_that_takes_the_witness_is_caught() {
    explore("overrides, weakened: lift takes the witness", Bound::First(3), || {
        let table = world();
        let other = table.clone();
        race(ban(&table, LONG), move || {
            let _ = other.lift(NOW, HASH);
            lower(&other, 10);
        });
        stands(&table);
    });
}

/// Makes the witness end `ticks` from now.
fn lower(table: &Table<'_>, ticks: u64) {
    let (g, now_q) = (&table.geometry, table.geometry.clock_q(NOW));
    let (set, tag) = table.place(second_hash(HASH));
    let Some((_, slot, word)) = set.find(&g.layout, tag) else { return };
    let state = State { aux: State::split(OVERRIDE_BITS, g.layout.lead(word, now_q)).aux, ahead: ticks };
    let next = g.layout.live(tag, now_q.wrapping_add(state.join(OVERRIDE_BITS)));
    let _ = Shared::replace(slot, word, next);
}

/// MUST FAIL: a witness that ends with the ban of its setter, and not with the later of both bans.
#[test]
#[should_panic(expected = "a ban was lost")]
fn loom_weak_witness_that_becomes_earlier_is_caught() {
    explore("overrides, weakened: the witness is lowered", Bound::First(3), || {
        let table = world();
        let other = table.clone();
        race(ban(&table, LONG), move || {
            lower(&other, SHORT);
            other.ban(NOW, HASH, NOW + SHORT).expect("ban");
        });
        stands(&table);
    });
}

/// What a request does that an override may decide: it asks further only where an override was ever stored.
fn asked(table: &Table<'static>) -> Option<Override> {
    table.was_used().then(|| table.look(NOW, HASH)).flatten()
}

type First = fn(&Table<'static>);

/// A first ban beside a thread that sees it in the memory, and then decides a request: the request finds the ban.
fn found_once_seen(name: &str, ban: First) {
    static SEEN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    explore(name, Bound::First(3), move || {
        let table = empty();
        assert_eq!((table.was_used(), asked(&table)), (false, None));
        let (one, other) = (table.clone(), table.clone());
        let ((), (seen, found)) = race(
            move || ban(&one),
            move || {
                let seen = other.look(NOW, HASH).is_some();
                // ORDERING: Acquire; pairs with the Release swap that placed what was read.
                fence(Ordering::Acquire);
                (seen, asked(&other).is_some())
            },
        );
        assert!(found || !seen, "an override was missed");
        // The call has returned.
        assert!(asked(&table).is_some(), "an override was missed");
        SEEN[seen as usize].fetch_add(1, Plain::Relaxed);
    });
    assert!(SEEN.iter().all(|n| n.load(Plain::Relaxed) > 0), "one always won");
}

/// Does not show: a thread that never saw the ban and starts before its call returns; it may find it or not.
#[test]
fn loom_an_override_that_is_seen_is_found_by_every_request_after() {
    found_once_seen("overrides: the first one", |table| {
        table.ban(NOW, HASH, NOW + LONG).expect("ban");
    });
}

/// MUST FAIL: a table that says only after it has stored an override that it has some.
#[test]
#[should_panic(expected = "an override was missed")]
fn loom_weak_override_that_is_stored_before_the_table_is_used_is_caught() {
    found_once_seen("overrides, weakened: used after the store", |table| {
        let state = |aux| State { ahead: LONG, aux };
        table.put(NOW, second_hash(HASH), state(WITNESS)).expect("room");
        table.put(NOW, HASH, state(BAN)).expect("room");
        table.use_it();
    });
}

/// MUST FAIL: a table that never says that it has overrides.
#[test]
#[should_panic(expected = "an override was missed")]
fn loom_weak_override_of_an_unused_table_is_caught() {
    found_once_seen("overrides, weakened: never used", |table| {
        let state = |aux| State { ahead: LONG, aux };
        table.put(NOW, second_hash(HASH), state(WITNESS)).expect("room");
        table.put(NOW, HASH, state(BAN)).expect("room");
    });
}

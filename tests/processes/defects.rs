//! Defects that a checker must report: `mk/sanitizers.sh` runs each of these tests alone under the checker of its kind,
//! and expects it to die. Without a checker they may do anything, so they run only when asked for.
//!
//! All but one reach their defect through the library. So a build whose library is not checked is found out. Searches
//! are loops there (`build.rs`), because no checker sees what assembly reads.
#![cfg(target_has_atomic = "64")]

#[path = "../common/mod.rs"]
mod common;

use common::{hash_of, memory, words};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tatcell::{AttachOptions, LimitSpec, Line, Table, TableOptions};

const SPEC: LimitSpec = LimitSpec::new(1, 1 << 12, 3);
const NOW: u64 = 1 << 30;
/// The lines of a table, its two of the header among them.
const LINES: usize = 10;

/// A table in this memory, by hashes.
fn table(lines: &[Line]) -> Table<'_> {
    Table::init(lines, &TableOptions::new(SPEC).caller_hash()).unwrap()
}

/// A key of the last set.
fn last_key() -> u64 {
    hash_of(LINES as u32 - 4, LINES as u32 - 2, 0x8_0001)
}

/// Runs both in turns of their own until each has made its rounds beside the other: neither may run alone, or a checker
/// that forgets finished threads sees no race. Says nothing to the memory model: Relaxed.
fn beside(one: impl Fn(u64) + Sync, other: impl Fn(u64) + Sync) {
    const ROUNDS: u64 = if cfg!(miri) { 5 } else { 1_000 };
    let rounds = [AtomicU64::new(0), AtomicU64::new(0)];
    let run = |me: usize, round: &dyn Fn(u64)| {
        for i in 0..ROUNDS {
            round(i);
            rounds[me].store(i + 1, Relaxed);
            while rounds[1 - me].load(Relaxed) < i {
                std::thread::yield_now();
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(0, &one));
        scope.spawn(|| run(1, &other));
    });
    println!("ran to its end");
}

/// A word that is written without an atomic.
fn write_plainly(word: &AtomicU64, value: u64) {
    // SAFETY: it is not: others read the word at the same time.
    unsafe { word.as_ptr().write(value) };
}

#[test]
#[ignore = "a defect: a slot written without an atomic while a call charges it"]
fn a_plain_write_of_a_slot_beside_a_charge() {
    let lines = memory(LINES);
    let (table, words) = (table(&lines), words(&lines));
    let limit = table.limit(&SPEC).unwrap();
    let _ = table.check_hash(&limit, NOW, last_key(), 1).unwrap();
    let slot = words.iter().rposition(|word| word.load(Relaxed) != 0).unwrap();
    let live = words[slot].load(Relaxed);
    beside(|i| _ = table.check_hash(&limit, NOW + i, last_key(), 1), |_| write_plainly(&words[slot], live));
}

#[test]
#[ignore = "a defect: a slot written without an atomic while a search for another key reads it"]
fn a_plain_write_of_a_slot_beside_a_search() {
    let lines = memory(LINES);
    let (table, words) = (table(&lines), words(&lines));
    let limit = table.limit(&SPEC).unwrap();
    beside(
        |i| _ = table.peek(&limit, NOW + i, last_key(), 1),
        |i| write_plainly(&words[LINES * 8 - 1 - i as usize % 16], 0),
    );
}

#[test]
#[ignore = "a defect: what a flag announces is read without waiting for more than the flag"]
fn a_publication_without_release() {
    struct Shared(UnsafeCell<u64>);
    // SAFETY: it is not: the race is the point.
    unsafe impl Sync for Shared {}
    for _ in 0..100 {
        let (told, ready) = (Shared(UnsafeCell::new(0)), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let told = &told;
            scope.spawn(|| {
                // SAFETY: nobody reads it before `ready` is set, or so one would think.
                unsafe { *told.0.get() = 7 };
                ready.store(true, Relaxed);
            });
            while !ready.load(Relaxed) {
                std::thread::yield_now();
            }
            // SAFETY: it is not: Relaxed hands nothing over.
            println!("{}", unsafe { *told.0.get() });
        });
    }
    println!("ran to its end");
}

#[test]
#[ignore = "a defect: a table is told of more memory than there is, and a search reads behind the end"]
fn a_search_behind_the_end_of_the_memory() {
    let whole = memory(LINES);
    let table = table(&whole);
    let limit = table.limit(&SPEC).unwrap();
    let short = memory(LINES - 2);
    words(&short).iter().zip(words(&whole)).for_each(|(to, from)| to.store(from.load(Relaxed), Relaxed));
    // SAFETY: it is not: the last two lines are nobody's.
    let told = unsafe { std::slice::from_raw_parts(short.as_ptr(), LINES) };
    let longer = Table::attach(told, &AttachOptions::new()).unwrap();
    println!("ran to its end: {:?}", longer.peek(&limit, NOW, last_key(), 1));
}

#[test]
#[ignore = "a defect: a table outlives its memory"]
fn a_search_of_memory_that_is_gone() {
    let lines = memory(LINES);
    // SAFETY: it is not: the table lives longer than `lines`.
    let told = unsafe { std::slice::from_raw_parts(lines.as_ptr(), LINES) };
    let table = table(told);
    let limit = table.limit(&SPEC).unwrap();
    drop(lines);
    println!("ran to its end: {:?}", table.peek(&limit, NOW, last_key(), 1));
}

#[test]
#[ignore = "a defect: a number becomes a pointer to a slot, which strict provenance forbids"]
fn a_slot_reached_through_a_number() {
    let lines = memory(LINES);
    let number = words(&lines).as_ptr() as usize + 16 * 8;
    // SAFETY: the word is there; what the pointer may be used for got lost on the way.
    let word = unsafe { &*(number as *const AtomicU64) };
    println!("ran to its end: {}", word.load(Relaxed));
}

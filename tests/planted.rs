//! What the sanitizers must report: a race, a read behind the end, a use after the end, of a lifetime. Each is a defect
//! on purpose, which `make test-sanitizers` runs alone and wants to see die. Never run otherwise.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Two threads that write one word without an atomic, in step, so that the checker has both in sight.
#[test]
#[ignore = "a race, for the thread sanitizer and Miri"]
fn planted_race() {
    struct Shared(std::cell::UnsafeCell<u64>);
    // SAFETY: it is not: the race is the point.
    unsafe impl Sync for Shared {}
    let (word, steps) = (Shared(std::cell::UnsafeCell::new(0)), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let word = &word;
                for _ in 0..100 {
                    // SAFETY: it is not.
                    unsafe { *word.0.get() += 1 };
                    steps.fetch_add(1, Relaxed);
                }
            });
        }
    });
    println!("ran to its end: {} steps", steps.load(Relaxed));
}

/// A word behind the last line of a table's memory.
#[test]
#[ignore = "a read behind the end, for the address sanitizer and Miri"]
fn planted_overflow() {
    let lines: Vec<tatcell::Line> = (0..4).map(|_| tatcell::Line::EMPTY).collect();
    let behind = std::hint::black_box(lines.len() * 8);
    // SAFETY: it is not: the word lies behind the end.
    let word = unsafe { lines.as_ptr().cast::<u64>().add(behind).read_volatile() };
    println!("ran to its end: {word}");
}

/// A table that outlives its memory.
#[test]
#[ignore = "a use after the end of a lifetime, for the address sanitizer and Miri"]
fn planted_use_after_free() {
    let lines: Box<[tatcell::Line]> = (0..4).map(|_| tatcell::Line::EMPTY).collect();
    let at = std::hint::black_box(lines.as_ptr());
    drop(lines);
    // SAFETY: it is not: the memory went back.
    let word = unsafe { at.cast::<u64>().read_volatile() };
    println!("ran to its end: {word}");
}

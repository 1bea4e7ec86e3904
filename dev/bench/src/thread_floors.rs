//! The bare operations on one thread and on two: how much a second thread can gain on this machine.
//!
//! ```text
//!  floor64      separate words on lines of both, write prefetch 64 ahead + cmpxchg
//!  floor64_52   the same with 52 other instructions, so that it takes as many as a decision of a burst
//!  floor1_68    the same, each prefetched for writing just before, with 68, as in single calls: without the prefetch
//!               the line moves twice, for the load and for the swap, and two threads are slower than the table
//!  1e8_..       over the words of 1e8 keys
//!  floorhot     one word, swapped until it is won; after a lost swap it waits as long as a check does, and loads again
//!  floorown     a separate word on a separate line, load and store, as in a lease or a refusal
//! ```

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::bare::{others, words, HAS_OTHERS};
use crate::cells::Apart;
use crate::cpu::Cpus;
use crate::crew::{crew, Member};
use crate::keys::Stream;
use crate::suite::{Mix, Suite, DT};
use crate::tables::LARGEST;
use crate::threads::{start, CELL, ONE_WORD, TABLE};

const KEYS: u32 = 1_000_000;
/// Repetitions of four instructions that make 52: what a burst has beside those of the floor, 78 less 26.
pub const R52: usize = 13;
/// The same for a single call: 68, 86 less the 18 that the floor has (those of `floor1e6.random`, and the prefetch).
pub const R68: usize = 17;
/// The same for a lease: 28, of 35.
const R28: usize = 7;

pub fn add(suite: &mut Suite, cpus: Option<Cpus>) {
    // Where there is none the rows of threads say so.
    let Some(cpu) = cpus.and_then(|cpus| cpus.other) else { return };
    for threads in [1, 2] {
        let (alone, who) =
            [("one thread", "one thread"), ("two threads", "two, distinct words of all lines")][threads - 1];
        let text = format!("words of 1e6 keys, write prefetch 64 ahead + cmpxchg, {who}");
        on_words::<true, 0>(suite, "floor64", &text, KEYS, threads, cpu);
        if HAS_OTHERS {
            for (name, size, keys) in [("", "1e6", KEYS), ("1e8_", "1e8", LARGEST)] {
                let text = format!("words of {size} keys, 64 ahead, 52 others, {alone}");
                on_words::<true, R52>(suite, &format!("{name}floor64_52"), &text, keys, threads, cpu);
                let text = format!("words of {size} keys, not ahead, 68 others, {alone}");
                on_words::<false, R68>(suite, &format!("{name}floor1_68"), &text, keys, threads, cpu);
            }
        }
        let text = format!("one word, cmpxchg until it is won, waiting between, {alone}");
        suite.add_crew(&format!("threads.floorhot_{threads}"), &text, Mix::Bare, ONE_WORD, |_| {
            let word: &Apart<AtomicU64> = Box::leak(Box::new(Apart(AtomicU64::new(0))));
            let part = |_| OnOne { word: &word.0, now: 0 };
            crew((0..threads).map(part).collect(), cpu, start())
        });
        let text = format!("load + store, a line each, 28 others, {alone}");
        suite.add_crew(&format!("threads.floorown_{threads}"), &text, Mix::Bare, CELL, |_| {
            let part = |_| Apart(OnOwn { word: AtomicU64::new(2 * DT), now: 0 });
            crew((0..threads).map(part).collect(), cpu, start())
        });
    }
}

fn on_words<const AHEAD: bool, const R: usize>(
    suite: &mut Suite,
    name: &str,
    text: &str,
    keys: u32,
    threads: usize,
    cpu: usize,
) {
    suite.add_crew(&format!("threads.{name}_{threads}"), text, Mix::Bare, TABLE, |_| {
        let part = |first| {
            let (words, stream) = part_of_words(keys, threads, first);
            OnWords::<AHEAD, R> { words, first, apart: threads, stream, now: 0 }
        };
        crew((0..threads).map(part).collect(), cpu, start())
    });
}

/// The words of a number of keys, and a stream over the share of thread `of`: not in the order of the other one, which
/// would be at the same lines at the same time.
pub fn part_of_words(keys: u32, threads: usize, of: usize) -> (&'static [AtomicU64], Stream) {
    let words = words(keys).words;
    let mut stream = Stream::uniform((words.len() / threads) as u32);
    stream.take(of << 20);
    (words, stream)
}

/// One thread's words: number `first` and each `apart` further ones.
struct OnWords<const AHEAD: bool, const R: usize> {
    words: &'static [AtomicU64],
    first: usize,
    apart: usize,
    stream: Stream,
    now: u64,
}

impl<const AHEAD: bool, const R: usize> Member for OnWords<AHEAD, R> {
    fn decide(&mut self, n: u64) -> u64 {
        let (words, first, apart) = (self.words, self.first, self.apart);
        let (ids, turn) = self.stream.take(n as usize);
        let word = |i: u32| &words[turn.id(i) as usize * apart + first];
        let mut coming = ids.iter().skip(64);
        for &id in ids {
            if !AHEAD {
                prefetch_to_write(word(id));
            } else if let Some(&next) = coming.next() {
                prefetch_to_write(word(next));
            }
            others::<R>();
            swap(word(id));
        }
        n
    }

    fn now(&mut self) -> Option<&mut u64> {
        Some(&mut self.now)
    }
}

/// Until it is won: of a word of one thread, at once.
#[inline(always)]
pub fn swap(word: &AtomicU64) {
    while {
        let seen = word.load(Relaxed);
        word.compare_exchange_weak(seen, seen.wrapping_add(DT), Relaxed, Relaxed).is_err()
    } {}
}

/// The word of all threads.
struct OnOne {
    word: &'static AtomicU64,
    now: u64,
}

impl Member for OnOne {
    fn decide(&mut self, n: u64) -> u64 {
        for _ in 0..n {
            let mut lost = 0u32;
            while {
                let seen = self.word.load(Relaxed);
                self.word.compare_exchange_weak(seen, seen.wrapping_add(DT), Relaxed, Relaxed).is_err()
            } {
                lost += 1;
                // As `back_off` of the library: 16 hints after the first lost swap, then 32.
                for _ in 0..8 << lost.min(2) {
                    std::hint::spin_loop();
                }
            }
        }
        n
    }

    fn now(&mut self) -> Option<&mut u64> {
        Some(&mut self.now)
    }
}

#[inline(always)]
pub fn prefetch_to_write(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of a live word.
    unsafe {
        std::arch::asm!("prefetchw [{0}]", in(reg) word, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}

/// One thread's word.
struct OnOwn {
    word: AtomicU64,
    now: u64,
}

impl Member for Apart<OnOwn> {
    fn decide(&mut self, n: u64) -> u64 {
        let OnOwn { word, now } = &mut self.0;
        for _ in 0..n {
            *now += DT;
            let seen = word.load(Relaxed);
            others::<R28>();
            word.store(seen.max(*now), Relaxed);
        }
        n
    }

    fn now(&mut self) -> Option<&mut u64> {
        Some(&mut self.0.now)
    }
}

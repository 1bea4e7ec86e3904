//! The parts of floors: the words of a table, a prefetch, and other instructions between the operations.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;

use tatcell::lines_for;

use crate::fixtures::slots_for;
use crate::keys::Stream;
use crate::memory::Memory;

/// Whether [`others`] makes instructions on this machine.
pub const HAS_OTHERS: bool = cfg!(target_arch = "x86_64");

/// The words of a table for a number of keys, and a random order to visit them.
pub struct Words {
    pub words: &'static [AtomicU64],
    pub stream: Stream,
}

/// The words of a table for a number of keys, made once, and a stream of one's own.
pub fn words(keys: u32) -> Words {
    static MADE: Mutex<Vec<(u32, &'static [AtomicU64])>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().expect("nobody panics with it");
    let known = made.iter().find(|(of, _)| *of == keys).map(|(_, words)| *words);
    let words = known.unwrap_or_else(|| {
        let words = Memory::new((lines_for(slots_for(keys as usize)) - 1) * 64).words();
        for word in words {
            word.store(1, Relaxed);
        }
        made.push((keys, words));
        words
    });
    Words { words, stream: Stream::uniform(words.len() as u32) }
}

/// Four instructions R times: none waits for another, and nothing waits for them.
#[inline(always)]
pub fn others<const R: usize>() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: arithmetic on two registers.
    unsafe {
        std::arch::asm!(
            ".rept {r}",
            "lea {b}, [{a} + 1]", "lea {c}, [{a} + 2]", "lea {b}, [{a} + 3]", "lea {c}, [{a} + 4]",
            ".endr",
            r = const R, a = in(reg) 0u64, b = out(reg) _, c = out(reg) _,
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// Asks for the line of a word, into the first cache, or (`OUTER`) the second.
#[inline(always)]
pub fn prefetch<const OUTER: bool>(word: *const AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address has no effect but on the caches.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0, _MM_HINT_T1};
        match OUTER {
            true => _mm_prefetch::<_MM_HINT_T1>(word.cast()),
            false => _mm_prefetch::<_MM_HINT_T0>(word.cast()),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}

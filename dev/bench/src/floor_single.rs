//! The floor of a single call: only the work that every decision about a key in memory must do.
//!
//! ```text
//!  loop, key    as the rows have it                                     stream, number, 16 bytes
//!  hash         AES, one xor and five rounds, keys from memory          as the table's
//!  line, tag    multiply-shift; a product that puts the tag in its place, 0 becoming 1
//!  search       eight words of the home line beside the tag, by the vectors that the table takes
//!  swap         load the word that was found, lock cmpxchg of it plus 1
//! ```
//!
//! A decision also finds out whose limit it is, how the table hashes, whether the word still belongs to the key, how
//! far it lies ahead, and whether the charge fits; then it makes the new word and the answer. So any implementation
//! takes this row's instructions and those, and the call is judged next to this row.

use std::arch::asm;
use std::arch::x86_64::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tatcell::lines_for;

use crate::fixtures::{slots_for, visits};
use crate::keys::{key, Random, Stream};
use crate::memory::Memory;
use crate::suite::{Mix, Suite, DT};

const TAG_BITS: u32 = 16;
/// A tag of 1, in its place; the tag's bits; a search for the high halves of words.
const ONE: u64 = 1 << (63 - TAG_BITS);
const FIELD: u64 = !(ONE - 1) & !(1 << 63);

#[repr(C, align(64))]
pub struct Line(pub [AtomicU64; 8]);

pub struct Lines {
    pub lines: &'static [Line],
    count: u64,
    round_keys: [[u64; 2]; 6],
    /// CLAIM and the tag's bits: once for each word of a vector, once for each half of one.
    above: u64,
    head: [u32; 4],
    one: u64,
    field: u64,
}

/// Why there is no such row where [`has_all`] is false.
pub const LACKS: &str = "no AES or no AVX in this processor";

pub fn has_all() -> bool {
    is_x86_feature_detected!("aes") && is_x86_feature_detected!("avx")
}

pub fn add(suite: &mut Suite) {
    for (keys, size) in [(1_000, "1e3"), (1_000_000, "1e6")] {
        let (id, text) =
            (format!("floor{size}.single"), format!("{size} keys, hash, search and one cmpxchg"));
        if !has_all() {
            suite.skip(&id, LACKS);
            continue;
        }
        suite.add(&id, &text, Mix::Bare, visits(keys), move |_| {
            let (lines, mut stream) = (Lines::new(keys), Stream::uniform(keys));
            Box::new(move |n| run(&lines, &mut stream, n))
        });
    }
}

impl Lines {
    /// As many lines as a table for these keys has, and each key's word in its home line, or in the other one.
    fn new(keys: u32) -> Lines {
        let made = Lines::with(keys, 0);
        for id in 0..u64::from(keys) {
            let (home, tag) = made.place(made.hash(key(id)));
            let slots = made.lines[home].0.iter().chain(&made.lines[home ^ 1].0);
            if let Some(free) = slots.into_iter().find(|word| word.load(Relaxed) == 0) {
                free.store(tag | 1, Relaxed);
            }
        }
        made
    }

    /// As many lines, each word this one.
    pub fn with(keys: u32, word: u64) -> Lines {
        let words = Memory::new((lines_for(slots_for(keys as usize)) - 2) * 64).words();
        words.iter().for_each(|at| at.store(word, Relaxed));
        // SAFETY: whole lines of words, aligned as the pages that they start.
        let lines =
            unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<Line>(), (words.len() / 8) & !1) };
        let mut random = Random(16);
        let round_keys = std::array::from_fn(|_| [random.next(), random.next()]);
        let (above, count) = (!(ONE - 1), lines.len() as u64);
        let head = [(above >> 32) as u32; 4];
        Lines { lines, count, round_keys, above, head, one: ONE, field: FIELD }
    }

    #[inline(always)]
    pub fn hash(&self, key: [u8; 16]) -> u64 {
        let [low, high] = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|i| key[at + i])));
        let hash: u64;
        // SAFETY: `add` asked for AES and AVX; what is loaded are the round keys.
        unsafe {
            asm!(
                "vmovq {s}, {low}",
                "vpinsrq {s}, {s}, {high}, 1",
                "vpxor {s}, {s}, [{k}]",
                "vaesenc {s}, {s}, [{k} + 16]",
                "vaesenc {s}, {s}, [{k} + 32]",
                "vaesenc {s}, {s}, [{k} + 48]",
                "vaesenc {s}, {s}, [{k} + 64]",
                "vaesenc {s}, {s}, [{k} + 80]",
                "vmovq {hash}, {s}",
                k = in(reg) &self.round_keys, low = in(reg) low, high = in(reg) high,
                s = out(xmm_reg) _, hash = lateout(reg) hash,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        hash
    }

    /// Home line and tag.
    #[inline(always)]
    pub fn place(&self, hash: u64) -> (usize, u64) {
        let home = ((hash >> 32) * self.count) >> 32;
        let tag = match hash.wrapping_mul(self.one) & self.field {
            0 => self.one,
            tag => tag,
        };
        (home as usize, tag)
    }
}

/// Bit i (of `BITS` bits each) where word i has this tag.
pub trait Search {
    const BITS: usize;
    fn search(line: &Line, lines: &Lines, tag: u64) -> u32;
}

pub struct Wide;
pub struct Sse2;

impl Search for Wide {
    const BITS: usize = 1;

    #[inline(always)]
    fn search(line: &Line, lines: &Lines, tag: u64) -> u32 {
        let bits: u32;
        // SAFETY: `run` asked for AVX-512; a line of eight words and one word are loaded.
        unsafe {
            asm!(
                "vpbroadcastq zmm17, {tag}",
                "vpxorq zmm17, zmm17, zmmword ptr [{line}]",
                "vptestnmq k1, zmm17, qword ptr [{above}]{{1to8}}",
                "kmovw {bits:e}, k1",
                tag = in(reg) tag, line = in(reg) line, above = in(reg) &lines.above,
                bits = lateout(reg) bits, out("xmm17") _, out("k1") _,
                options(nostack, preserves_flags, readonly),
            );
        }
        bits
    }
}

impl Search for Sse2 {
    const BITS: usize = 2;

    #[inline(always)]
    fn search(line: &Line, lines: &Lines, tag: u64) -> u32 {
        let (low, high): (__m128, __m128);
        // SAFETY: a line of eight words, aligned, is loaded; SSE2 is part of x86-64.
        unsafe {
            asm!(
                "movaps {low}, [{p}]",
                "movaps {high}, [{p} + 32]",
                "shufps {low}, [{p} + 16], 0xdd",
                "shufps {high}, [{p} + 48], 0xdd",
                p = in(reg) line, low = out(xmm_reg) low, high = out(xmm_reg) high,
                options(nostack, preserves_flags, readonly),
            );
            let head = _mm_loadu_si128(lines.head.as_ptr().cast());
            let want = _mm_shuffle_epi32::<0b01_01_01_01>(_mm_cvtsi64_si128(tag as i64));
            let low = _mm_cmpeq_epi32(_mm_and_si128(_mm_castps_si128(low), head), want);
            let high = _mm_cmpeq_epi32(_mm_and_si128(_mm_castps_si128(high), head), want);
            _mm_movemask_epi8(_mm_packs_epi32(low, high)) as u32
        }
    }
}

/// The slot that a search found.
#[inline(always)]
pub fn found<S: Search>(line: &Line, bits: u32) -> &AtomicU64 {
    // SAFETY: there are `BITS` bits for each of the eight words, and one of them is set.
    unsafe { &*line.0.as_ptr().byte_add(bits.trailing_zeros() as usize * (8 / S::BITS)) }
}

fn run(lines: &Lines, stream: &mut Stream, n: u64) -> u64 {
    match is_x86_feature_detected!("avx512f") {
        true => decide::<Wide>(lines, stream, n),
        false => decide::<Sse2>(lines, stream, n),
    }
}

#[inline(never)]
fn decide<S: Search>(state: &Lines, stream: &mut Stream, n: u64) -> u64 {
    let (mut won, mut t) = (0, 0u64);
    let (ids, turn) = stream.take(n as usize);
    for &id in ids {
        t += DT;
        let (home, tag) = state.place(state.hash(key(turn.id(id))));
        // SAFETY: the home is below the number of lines, which is even.
        let line = unsafe { state.lines.get_unchecked(home) };
        let bits = S::search(line, state, tag);
        let slot = if bits != 0 { found::<S>(line, bits) } else { elsewhere::<S>(state, home, tag) };
        let seen = slot.load(Relaxed);
        won += slot.compare_exchange(seen, seen.wrapping_add(1), Relaxed, Relaxed).is_ok() as u64;
    }
    std::hint::black_box(t);
    won
}

/// A few keys in a hundred are in the other line.
#[inline(never)]
fn elsewhere<S: Search>(state: &Lines, home: usize, tag: u64) -> &AtomicU64 {
    let line = &state.lines[home ^ 1];
    match S::search(line, state, tag) {
        0 => &line.0[0],
        bits => found::<S>(line, bits),
    }
}

//! One line as an insert sees it: which words have its tag, LIVE or CLAIM, and which it may take.
//!
//! As in [`search`](super), a branch on the position would cost more than the search. So the words are loaded once and
//! compared all together: on x86-64 in vectors, elsewhere in a loop that has no exit.
//!
//! A vector load is written in assembly and stands for loads of the eight words. An x86-64 processor reads each aligned
//! 8-byte part whole. Neither it nor the compiler moves the load before an earlier swap or fence or behind a later one.

use crate::sync::AtomicU64;
use crate::table::layout::word::{Layout, Tag};

#[cfg(not(tatcell_sse2))]
pub(in crate::table) use words::Words;
#[cfg(tatcell_sse2)]
pub(in crate::table) use x86::Words;

/// The words of a line, loaded once in no particular order. `N` is 8 except in models.
pub(in crate::table) trait LineWords<const N: usize> {
    fn load(line: &[AtomicU64; N]) -> Self;

    /// Returns bits: bit i is set if `word[i]` has this tag, LIVE or CLAIM.
    fn tagged(&self, layout: &Layout, tag: Tag) -> u32;

    /// Does the same as [`tagged`](LineWords::tagged) in two lines: bit i for words of the first, bit N + i for those
    /// of the second. Tag 0 finds the EMPTY words.
    fn tagged_in(home: &Self, next: &Self, layout: &Layout, tag: Tag) -> u32;

    /// Returns the place in two lines, 0 to 2 N - 1, of the word that has been expired longest at `now_q`, the first of
    /// several, or `None` if no word has expired. EMPTY words count like all others.
    fn oldest(home: &Self, next: &Self, layout: &Layout, now_q: u64) -> Option<usize>;
}

/// Orders words by age: `NORMAL | rest << 4 | place`, where rest is how far the word lies beyond the first lead that
/// has expired, modulo 2^W. A smaller number has been expired longer; live words have the largest numbers.
///
/// The bit makes it a positive normal number if it is read as floating point, so that the only 64-bit comparison of
/// SSE2 finds the smaller of two.
const NORMAL: u64 = 1 << 61;

/// Returns the place in the smallest number of all, if its word has expired.
#[inline(always)]
const fn place_of(least: u64, layout: &Layout) -> Option<usize> {
    if (least ^ NORMAL) >> 4 <= layout.mask - layout.window {
        Some((least & 15) as usize)
    } else {
        None
    }
}

#[cfg(any(test, not(tatcell_sse2)))]
mod words {
    use super::*;
    use crate::sync::Ordering;

    pub(in crate::table) struct Words<const N: usize>([u64; N]);

    impl<const N: usize> LineWords<N> for Words<N> {
        #[inline(always)]
        fn load(line: &[AtomicU64; N]) -> Self {
            // ORDERING: Relaxed; single words, values only. A fence precedes the scan that follows a claim.
            Words(core::array::from_fn(|i| line[i].load(Ordering::Relaxed)))
        }

        #[inline(always)]
        fn tagged(&self, layout: &Layout, tag: Tag) -> u32 {
            self.bits(|word| layout.has_tag(word, tag))
        }

        #[inline(always)]
        fn tagged_in(home: &Self, next: &Self, layout: &Layout, tag: Tag) -> u32 {
            home.tagged(layout, tag) | next.tagged(layout, tag) << N
        }

        #[inline(always)]
        fn oldest(home: &Self, next: &Self, layout: &Layout, now_q: u64) -> Option<usize> {
            let past = now_q.wrapping_add(layout.past);
            let words = home.0.iter().chain(&next.0).enumerate();
            let least = words.fold(u64::MAX, |least, (i, word)| {
                least.min(NORMAL | (word.wrapping_sub(past) & layout.mask) << 4 | i as u64)
            });
            place_of(least, layout)
        }
    }

    impl<const N: usize> Words<N> {
        #[inline(always)]
        fn bits(&self, is: impl Fn(u64) -> bool) -> u32 {
            self.0.iter().enumerate().fold(0, |bits, (i, word)| bits | (is(*word) as u32) << i)
        }
    }
}

#[cfg(tatcell_sse2)]
mod x86 {
    use super::*;
    use core::arch::asm;
    use core::arch::x86_64::*;

    /// Two words in each vector. SSE2 is part of x86-64: no detection.
    pub(in crate::table) struct Words<const N: usize>([__m128i; 4]);

    impl<const N: usize> LineWords<N> for Words<N> {
        #[inline(always)]
        fn load(line: &[AtomicU64; N]) -> Self {
            const { assert!(N == 8) };
            let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
            // SAFETY: `line` is a line of eight words, valid for 64 bytes and 16-byte aligned; the loads write nothing.
            unsafe {
                asm!(
                    "movdqa {a}, [{p}]",
                    "movdqa {b}, [{p} + 16]",
                    "movdqa {c}, [{p} + 32]",
                    "movdqa {d}, [{p} + 48]",
                    p = in(reg) line.as_ptr(),
                    a = out(xmm_reg) a,
                    b = out(xmm_reg) b,
                    c = out(xmm_reg) c,
                    d = out(xmm_reg) d,
                    options(nostack, preserves_flags),
                );
            }
            Words([a, b, c, d])
        }

        #[inline(always)]
        fn tagged(&self, layout: &Layout, tag: Tag) -> u32 {
            // SAFETY: SSE2 is enabled here.
            unsafe { _mm_movemask_epi8(_mm_packs_epi16(self.equal(layout, tag), _mm_setzero_si128())) as u32 }
        }

        #[inline(always)]
        fn tagged_in(home: &Self, next: &Self, layout: &Layout, tag: Tag) -> u32 {
            // SAFETY: SSE2 is enabled here.
            unsafe {
                _mm_movemask_epi8(_mm_packs_epi16(home.equal(layout, tag), next.equal(layout, tag))) as u32
            }
        }

        #[inline(always)]
        fn oldest(home: &Self, next: &Self, layout: &Layout, now_q: u64) -> Option<usize> {
            // SAFETY: SSE2 is enabled here.
            let least = unsafe {
                let past = _mm_set1_epi64x(now_q.wrapping_add(layout.past) as i64);
                let mask = _mm_set1_epi64x(layout.mask as i64);
                let both = _mm_min_pd(home.least(0, past, mask), next.least(8, past, mask));
                let one = _mm_min_sd(both, _mm_unpackhi_pd(both, both));
                _mm_cvtsi128_si64(_mm_castpd_si128(one)) as u64
            };
            place_of(least, layout)
        }
    }

    impl<const N: usize> Words<N> {
        /// Returns the smallest number of the even words and that of the odd words. The first word is at `place`.
        #[inline(always)]
        fn least(&self, place: u64, past: __m128i, mask: __m128i) -> __m128d {
            // SAFETY: SSE2 is enabled here.
            unsafe {
                let number = |pair: __m128i, place: u64| {
                    let places = _mm_set_epi64x((NORMAL | (place + 1)) as i64, (NORMAL | place) as i64);
                    let rest = _mm_slli_epi64::<4>(_mm_and_si128(_mm_sub_epi64(pair, past), mask));
                    _mm_castsi128_pd(_mm_or_si128(rest, places))
                };
                let [a, b, c, d] = self.0;
                let low = _mm_min_pd(number(a, place), number(b, place + 2));
                _mm_min_pd(low, _mm_min_pd(number(c, place + 4), number(d, place + 6)))
            }
        }

        /// Returns 16 bits for each word, all set if it has this tag. Tags lie in the high halves of the words.
        #[inline(always)]
        fn equal(&self, layout: &Layout, tag: Tag) -> __m128i {
            // SAFETY: SSE2 is enabled here.
            unsafe {
                let field = _mm_set1_epi32((layout.field >> 32) as i32);
                let tag = _mm_set1_epi32((tag.0 >> 32) as i32);
                let [a, b, c, d] = self.0.map(|pair| _mm_castsi128_ps(pair));
                let low = _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(a, b));
                let high = _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(c, d));
                let low = _mm_cmpeq_epi32(_mm_and_si128(low, field), tag);
                let high = _mm_cmpeq_epi32(_mm_and_si128(high, field), tag);
                _mm_packs_epi32(low, high)
            }
        }
    }
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "line_tests.rs"]
mod tests;

//! One line as an insert sees it: which words have its tag, LIVE or CLAIM, and which it may take.
//!
//! As in [`search`](super) a branch on the position would cost more than the search, so the words are loaded once
//! and compared all together: on x86-64 in vectors, elsewhere in a loop that has no exit.
//!
//! A vector load is written in assembly and stands for Acquire loads of the eight words, which on x86-64 is what every
//! load is: each aligned 8-byte part is read whole, and neither the processor nor the compiler moves it before an
//! earlier swap or fence or behind a later one.

use crate::sync::AtomicU64;
use crate::table::word::{Layout, Tag};

#[cfg(not(tatcell_sse2))]
pub(in crate::table) use words::Words;
#[cfg(tatcell_sse2)]
pub(in crate::table) use x86::Words;

/// The words of a line, loaded once in no particular order. `N` is 8 except in models.
pub(in crate::table) trait LineWords<const N: usize> {
    fn load(line: &[AtomicU64; N]) -> Self;

    /// Bit i is set where `word[i]` has this tag, LIVE or CLAIM.
    fn tagged(&self, layout: &Layout, tag: Tag) -> u32;

    /// Bit i is set where `word[i]` is EMPTY.
    fn empty(&self, layout: &Layout) -> u32;

    /// The slot whose word has been expired longest at `now_q`, the first of several: `OLD | age << 3 | 7 - slot`, so
    /// that of two lines the larger number is the older one; 0 where no word has expired. EMPTY words count as any
    /// other.
    fn oldest(&self, layout: &Layout, now_q: u64) -> u64;
}

/// Set in what [`LineWords::oldest`] found. It also makes the number a positive normal one if it is read as floating
/// point, so that the larger of two is found by the one comparison of 64 bits that SSE2 has.
const OLD: u64 = 1 << 61;

/// The slot that [`LineWords::oldest`] found.
#[inline(always)]
pub(in crate::table) const fn slot_of(oldest: u64) -> usize {
    7 - (oldest & 7) as usize
}

#[cfg(any(test, not(tatcell_sse2)))]
mod words {
    use super::*;
    use crate::sync::Ordering;

    pub(in crate::table) struct Words<const N: usize>([u64; N]);

    impl<const N: usize> LineWords<N> for Words<N> {
        #[inline(always)]
        fn load(line: &[AtomicU64; N]) -> Self {
            // ORDERING: Acquire; pairs with the AcqRel swap that placed what is seen.
            Words(core::array::from_fn(|i| line[i].load(Ordering::Acquire)))
        }

        #[inline(always)]
        fn tagged(&self, layout: &Layout, tag: Tag) -> u32 {
            self.bits(|word| layout.has_tag(word, tag))
        }

        #[inline(always)]
        fn empty(&self, layout: &Layout) -> u32 {
            self.bits(|word| layout.is_empty(word))
        }

        #[inline(always)]
        fn oldest(&self, layout: &Layout, now_q: u64) -> u64 {
            self.0.iter().enumerate().fold(0, |oldest, (i, word)| {
                let expired = layout.lead(*word, now_q) == 0;
                let this = (OLD | layout.age(*word, now_q) << 3 | (7 - i as u64)) * expired as u64;
                oldest.max(this)
            })
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
    ///
    /// With the loop of `words` an insert takes 696 instructions instead of 450, and 5 % of inserts make it 186
    /// instead of 158 a request.
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

        /// Tags lie in the high halves of the words.
        #[inline(always)]
        fn tagged(&self, layout: &Layout, tag: Tag) -> u32 {
            // SAFETY: SSE2 is enabled here.
            unsafe {
                let field = _mm_set1_epi32((layout.field >> 32) as i32);
                let tag = _mm_set1_epi32((tag.0 >> 32) as i32);
                bits(self.0, |high| _mm_cmpeq_epi32(_mm_and_si128(high, field), tag))
            }
        }

        /// As `tagged`, of tag 0.
        #[inline(always)]
        fn empty(&self, layout: &Layout) -> u32 {
            self.tagged(layout, Tag(0))
        }

        /// With `x = (word - now - 1) & mask`: expired iff `window - 1 - x` is negative, and then the age is
        /// `!x & mask`.
        #[inline(always)]
        fn oldest(&self, layout: &Layout, now_q: u64) -> u64 {
            // SAFETY: SSE2 is enabled here.
            unsafe {
                let next = _mm_set1_epi64x(now_q.wrapping_add(1) as i64);
                let last = _mm_set1_epi64x(layout.window.wrapping_sub(1) as i64);
                let mask = _mm_set1_epi64x(layout.mask as i64);
                let ages = |pair: __m128i, slots: __m128i| {
                    let x = _mm_and_si128(_mm_sub_epi64(pair, next), mask);
                    let expired =
                        _mm_srai_epi32::<31>(_mm_shuffle_epi32::<0b11_11_01_01>(_mm_sub_epi64(last, x)));
                    let age = _mm_slli_epi64::<3>(_mm_andnot_si128(x, mask));
                    _mm_castsi128_pd(_mm_and_si128(_mm_or_si128(age, slots), expired))
                };
                let slots = |i: u64| _mm_set_epi64x((OLD | (6 - i)) as i64, (OLD | (7 - i)) as i64);
                let [a, b, c, d] = self.0;
                let low = _mm_max_pd(ages(a, slots(0)), ages(b, slots(2)));
                let high = _mm_max_pd(ages(c, slots(4)), ages(d, slots(6)));
                let both = _mm_max_pd(low, high);
                let one = _mm_max_sd(both, _mm_unpackhi_pd(both, both));
                _mm_cvtsi128_si64(_mm_castpd_si128(one)) as u64
            }
        }
    }

    /// One bit a word: the sign that `is` leaves in its high half.
    #[inline(always)]
    fn bits(words: [__m128i; 4], is: impl Fn(__m128i) -> __m128i) -> u32 {
        // SAFETY: SSE2 is enabled here.
        unsafe {
            let [a, b, c, d] = words.map(|pair| _mm_castsi128_ps(pair));
            let low = is(_mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(a, b)));
            let high = is(_mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(c, d)));
            let both = _mm_packs_epi32(low, high);
            _mm_movemask_epi8(_mm_packs_epi16(both, _mm_setzero_si128())) as u32
        }
    }
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "line_tests.rs"]
mod tests;

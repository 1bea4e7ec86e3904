//! Finding a tag in a line: eight words compared at once, without a branch that depends on the position.
//!
//! ```text
//!  word  63 62        63-t            32 31            0
//!       [C |   tag    |  payload, high  | payload, low  ]     t >= 12 bits: CLAIM and tag lie in the high half
//!        '----- (word ^ tag) <= mask: CLAIM clear and this tag -----'
//! ```
//!
//! A loop over the slots would leave it at a random position, and the mispredicted exit costs more than the whole
//! decision. [`Scan`] has one implementation for each instruction set that pays.
//!
//! A vector load of shared words is not an access that the memory model knows, so it is written in assembly: to the
//! compiler it is opaque, and on these processors each aligned 8-byte part of it is read whole. Nothing is decided from
//! it but where to look: the caller loads the word that was found atomically and compares it again.

pub(in crate::table) mod line;

use crate::sync::{AtomicU64, Ordering};

/// A way to search a line.
pub(crate) trait Scan: Copy {
    /// Bit i is set where `word[i]` is LIVE with this tag: `word[i] ^ tag <= mask`, `mask` being that of the payload.
    /// `N` is 8 except in models.
    fn matches<const N: usize>(self, line: &[AtomicU64; N], mask: &u64, tag: u64) -> u32;
}

/// What every processor of the target runs: SSE2 on x86-64, NEON on aarch64, a loop elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct Base;

/// AVX-512 where there is one: a branch that never changes.
#[derive(Clone, Copy)]
pub(crate) struct Widest(pub Option<Avx512>);

impl Scan for Widest {
    #[inline(always)]
    fn matches<const N: usize>(self, line: &[AtomicU64; N], mask: &u64, tag: u64) -> u32 {
        match self.0 {
            Some(wide) => wide.matches(line, mask, tag),
            None => Base.matches(line, mask, tag),
        }
    }
}

impl Scan for Base {
    #[inline(always)]
    fn matches<const N: usize>(self, line: &[AtomicU64; N], mask: &u64, tag: u64) -> u32 {
        #[cfg(tatcell_sse2)]
        if N == 8 {
            return x86::sse2(line.as_ptr().cast(), (!*mask >> 32) as u32, (tag >> 32) as u32);
        }
        #[cfg(tatcell_neon)]
        if N == 8 {
            return neon(line.as_ptr().cast(), (!*mask >> 32) as u32, (tag >> 32) as u32);
        }
        let mut bits = 0;
        for (i, word) in line.iter().enumerate() {
            // ORDERING: Relaxed; single word, value only. The insert path looks again with Acquire.
            bits |= ((word.load(Ordering::Relaxed) ^ tag <= *mask) as u32) << i;
        }
        bits
    }
}

#[cfg(tatcell_sse2)]
pub(crate) use x86::Avx512;

/// Nothing wider than [`Base`] here.
#[cfg(not(tatcell_sse2))]
pub(crate) use Base as Avx512;

#[cfg(not(tatcell_sse2))]
impl Base {
    pub fn detect() -> Option<Base> {
        None
    }
}

#[cfg(tatcell_sse2)]
mod x86 {
    use super::{AtomicU64, Scan};
    use core::arch::asm;
    use core::arch::x86_64::*;

    /// One load, four instructions. (AVX2 takes eleven instead of fifteen: measured, and no faster than SSE2.)
    /// Only [`detect`](Avx512::detect) makes one: whoever has it may run it.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(());

    impl Avx512 {
        /// One, if this processor searches faster with AVX-512 and the system saves its registers.
        pub fn detect() -> Option<Avx512> {
            crate::cpu::avx512().then_some(Avx512(()))
        }
    }

    impl Scan for Avx512 {
        #[inline(always)]
        fn matches<const N: usize>(self, line: &[AtomicU64; N], mask: &u64, tag: u64) -> u32 {
            if N != 8 {
                return super::Base.matches(line, mask, tag);
            }
            let bits: u32;
            // SAFETY: `detect` found AVX-512; `line` is a line of eight words, valid for 64 bytes, and
            // `mask` a word; the loads write nothing. Registers above 15 leave no state that slows SSE code down.
            unsafe {
                asm!(
                    "vpbroadcastq zmm17, {tag}",
                    "vpxorq zmm17, zmm17, zmmword ptr [{line}]",
                    "vpcmpuq k1, zmm17, qword ptr [{mask}]{{1to8}}, 2",
                    "kmovw {bits:e}, k1",
                    tag = in(reg) tag, line = in(reg) line.as_ptr(), mask = in(reg) mask,
                    bits = lateout(reg) bits, out("xmm17") _, out("k1") _,
                    options(nostack, preserves_flags, readonly),
                );
            }
            bits
        }
    }

    /// SSE2 is part of x86-64: no detection.
    #[inline(always)]
    pub(super) fn sse2(line: *const u64, head: u32, want: u32) -> u32 {
        let (a, b, c, d): (__m128, __m128, __m128, __m128);
        // SAFETY: `line` is a line of eight words, valid for 64 bytes and 16-byte aligned; the loads write nothing.
        unsafe {
            asm!(
                "movaps {a}, [{p}]",
                "movaps {b}, [{p} + 16]",
                "movaps {c}, [{p} + 32]",
                "movaps {d}, [{p} + 48]",
                p = in(reg) line,
                a = out(xmm_reg) a,
                b = out(xmm_reg) b,
                c = out(xmm_reg) c,
                d = out(xmm_reg) d,
                options(nostack, preserves_flags, readonly),
            );
        }
        // SAFETY: SSE2 is enabled here.
        unsafe {
            let head = _mm_set1_epi32(head as i32);
            let want = _mm_set1_epi32(want as i32);
            // The high halves of words 0..3 and 4..7.
            let low = _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(a, b));
            let high = _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(c, d));
            let low = _mm_cmpeq_epi32(_mm_and_si128(low, head), want);
            let high = _mm_cmpeq_epi32(_mm_and_si128(high, head), want);
            let both = _mm_packs_epi32(low, high);
            _mm_movemask_epi8(_mm_packs_epi16(both, _mm_setzero_si128())) as u32
        }
    }
}

/// NEON is part of aarch64.
#[cfg(tatcell_neon)]
#[inline(always)]
fn neon(line: *const u64, head: u32, want: u32) -> u32 {
    use core::arch::aarch64::*;
    let (a, b, c, d): (uint32x4_t, uint32x4_t, uint32x4_t, uint32x4_t);
    // SAFETY: `line` is a line of eight words, valid for 64 bytes; the loads write nothing.
    unsafe {
        core::arch::asm!(
            "ldp {a:q}, {b:q}, [{p}]",
            "ldp {c:q}, {d:q}, [{p}, #32]",
            p = in(reg) line,
            a = out(vreg) a,
            b = out(vreg) b,
            c = out(vreg) c,
            d = out(vreg) d,
            options(nostack, preserves_flags, readonly),
        );
    }
    // SAFETY: NEON is enabled here.
    unsafe {
        let (head, want) = (vdupq_n_u32(head), vdupq_n_u32(want));
        let low = vceqq_u32(vandq_u32(vuzp2q_u32(a, b), head), want);
        let high = vceqq_u32(vandq_u32(vuzp2q_u32(c, d), head), want);
        // Eight 16-bit lanes of all ones or none, weighted 1, 2, 4 ...
        let both = vcombine_u16(vmovn_u32(low), vmovn_u32(high));
        let weights = [1u16, 2, 4, 8, 16, 32, 64, 128];
        vaddvq_u16(vandq_u16(both, vld1q_u16(weights.as_ptr()))) as u32
    }
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "mod_tests.rs"]
mod tests;

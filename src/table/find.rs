//! Finding a tag in a line: eight words compared at once, without a branch that depends on the position.
//!
//! ```text
//!  word  63 62        63-t            32 31            0
//!       [C |   tag    |  payload, high  | payload, low  ]     t >= 12 bits: CLAIM and tag lie in the high half
//!        '------ compared: high & head mask == tag ----'
//! ```
//!
//! A loop over the slots would leave it at a random position, and the mispredicted exit costs more than the whole
//! decision. On x86-64 and aarch64 the high halves of the eight words are gathered and compared as vectors.
//!
//! A vector load of shared words is not an access that the memory model knows, so it is written in assembly: to the
//! compiler it is opaque, and on these processors each aligned 8-byte part of it is read whole. Nothing is decided from
//! it but where to look: the caller loads the word that was found atomically and compares it again.

use crate::sync::{AtomicU64, Ordering};

/// Bit i is set where `word[i] & head == want`, `head` being a mask of the high half. `N` is 8 except in models.
#[inline(always)]
pub(crate) fn matches<const N: usize>(line: &[AtomicU64; N], head: u64, want: u64) -> u32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(tatcell_loom), not(miri)))]
    if N == 8 {
        return sse2(line.as_ptr().cast(), (head >> 32) as u32, (want >> 32) as u32);
    }
    #[cfg(all(
        target_arch = "aarch64",
        target_endian = "little",
        target_feature = "neon",
        not(tatcell_loom),
        not(miri)
    ))]
    if N == 8 {
        return neon(line.as_ptr().cast(), (head >> 32) as u32, (want >> 32) as u32);
    }
    let mut bits = 0;
    for (i, word) in line.iter().enumerate() {
        // ORDERING: Relaxed; single word, value only. The insert path looks again with Acquire.
        bits |= ((word.load(Ordering::Relaxed) & head == want) as u32) << i;
    }
    bits
}

/// SSE2 is part of x86-64: no detection. AVX2 would save four loads and needs a branch for it.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(tatcell_loom), not(miri)))]
#[inline(always)]
fn sse2(line: *const u64, head: u32, want: u32) -> u32 {
    use core::arch::x86_64::*;
    let (a, b, c, d): (__m128, __m128, __m128, __m128);
    // SAFETY: `line` is a line of eight words, valid for 64 bytes and 16-byte aligned; the loads write nothing.
    unsafe {
        core::arch::asm!(
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

/// NEON is part of aarch64.
#[cfg(all(
    target_arch = "aarch64",
    target_endian = "little",
    target_feature = "neon",
    not(tatcell_loom),
    not(miri)
))]
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
#[path = "find_tests.rs"]
mod tests;

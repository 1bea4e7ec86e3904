//! Finding a tag in a line: eight words compared at once, without a branch that depends on the position.
//!
//! ```text
//!  word  63 62        63-t            32 31            0
//!       [C |   tag    |  payload, high  | payload, low  ]     t >= 12 bits: CLAIM and tag lie in the high half
//!        '----- (word ^ tag) <= mask: CLAIM clear and this tag -----'
//! ```
//!
//! A loop over the slots would exit at a random position, and the mispredicted exit would cost more than the whole
//! decision. [`Scan`] has one implementation for each instruction set that pays.
//!
//! The memory model does not know vector loads of shared words, so they are written in assembly: the compiler cannot
//! see into the loads, and these processors read each aligned 8-byte part whole. The result decides only which slot to
//! use: the caller loads the word that was found atomically and compares it again.

pub(in crate::table) mod line;

use crate::sync::{AtomicU64, Ordering};
use crate::table::layout::word::{Layout, Tag};

/// A way to search a line.
pub(crate) trait Scan: Copy {
    /// Number of bits for one slot in what [`matches`](Scan::matches) returns.
    const BITS: u32;

    /// Sets bits `BITS * i` to `BITS * i + BITS - 1` if `word[i]` is LIVE with this tag, else none of them. `N` is 8
    /// except in models.
    fn matches<const N: usize>(self, line: &[AtomicU64; N], layout: &Layout, tag: Tag) -> u32;
}

/// The search that every processor of the target can run: SSE2 on x86-64, NEON on aarch64, a loop elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct Base;

impl Scan for Base {
    #[cfg(tatcell_sse2)]
    const BITS: u32 = 2;
    #[cfg(tatcell_neon)]
    const BITS: u32 = 4;
    #[cfg(not(any(tatcell_sse2, tatcell_neon)))]
    const BITS: u32 = 1;

    #[inline(always)]
    fn matches<const N: usize>(self, line: &[AtomicU64; N], layout: &Layout, tag: Tag) -> u32 {
        #[cfg(tatcell_sse2)]
        if N == 8 {
            return x86::sse2(line.as_ptr().cast(), layout, tag);
        }
        #[cfg(tatcell_neon)]
        if N == 8 {
            return neon(line.as_ptr().cast(), layout, tag);
        }
        let (mut bits, slot) = (0, (1 << Self::BITS) - 1);
        for (i, word) in line.iter().enumerate() {
            // ORDERING: Relaxed; single word, value only. The insert path scans again.
            let live = layout.is_live_of(word.load(Ordering::Relaxed), tag);
            bits |= (slot * live as u32) << (Self::BITS * i as u32);
        }
        bits
    }
}

#[cfg(tatcell_sse2)]
pub(crate) use x86::{Avx2, Avx512};

/// Nothing wider than [`Base`] here.
#[cfg(not(tatcell_sse2))]
pub(crate) use Base as Avx512;
#[cfg(not(tatcell_sse2))]
pub(crate) use Base as Avx2;

#[cfg(not(tatcell_sse2))]
impl Base {
    pub fn detect() -> Option<Base> {
        None
    }
}

#[cfg(tatcell_sse2)]
mod x86 {
    use super::{AtomicU64, Base, Layout, Scan, Tag};
    use core::arch::asm;
    use core::arch::x86_64::*;

    /// The search by AVX-512: one load, four instructions. (AVX2 takes eleven: measured, and no faster than SSE2.) Only
    /// [`detect`](Avx512::detect) makes one, and only where the search may run.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(());

    impl Avx512 {
        /// Returns one if this processor searches faster with AVX-512 and the system saves its registers.
        pub fn detect() -> Option<Avx512> {
            crate::cpu::avx512().then_some(Avx512(()))
        }
    }

    /// AVX2, for groups. Only [`detect`](Avx2::detect) makes one, and only where the search may run. A single line is
    /// searched as [`Base`] does, which is as fast.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(());

    impl Avx2 {
        /// Returns one if this processor has AVX2 and the system saves its registers.
        pub fn detect() -> Option<Avx2> {
            crate::cpu::avx2().then_some(Avx2(()))
        }
    }

    impl Scan for Avx2 {
        const BITS: u32 = Base::BITS;

        #[inline(always)]
        fn matches<const N: usize>(self, line: &[AtomicU64; N], layout: &Layout, tag: Tag) -> u32 {
            Base.matches(line, layout, tag)
        }
    }

    impl Scan for Avx512 {
        const BITS: u32 = 1;

        #[inline(always)]
        fn matches<const N: usize>(self, line: &[AtomicU64; N], layout: &Layout, tag: Tag) -> u32 {
            const { assert!(N == 8) };
            let bits: u32;
            // SAFETY: `detect` found AVX-512. `line` is a line of eight words, valid for 64 bytes, and `above` is a
            // word; the loads write nothing. Registers above 15 leave no state that slows SSE code down.
            unsafe {
                asm!(
                    "vpbroadcastq zmm17, {tag}",
                    "vpxorq zmm17, zmm17, zmmword ptr [{line}]",
                    "vptestnmq k1, zmm17, qword ptr [{above}]{{1to8}}",
                    "kmovw {bits:e}, k1",
                    tag = in(reg) tag.0, line = in(reg) line.as_ptr(), above = in(reg) &layout.above,
                    bits = lateout(reg) bits, out("xmm17") _, out("k1") _,
                    options(nostack, preserves_flags, readonly),
                );
            }
            bits
        }
    }

    /// SSE2 is part of x86-64: no detection. Two bits a slot: an addressing mode makes the byte offset, times 4.
    #[inline(always)]
    pub(super) fn sse2(line: *const u64, layout: &Layout, tag: Tag) -> u32 {
        let (low, high): (__m128, __m128);
        // SAFETY: `line` is a line of eight words, valid for 64 bytes and 16-byte aligned; the loads write nothing.
        unsafe {
            // The high halves of words 0..3 and 4..7.
            asm!(
                "movaps {low}, [{p}]",
                "movaps {high}, [{p} + 32]",
                "shufps {low}, [{p} + 16], 0xdd",
                "shufps {high}, [{p} + 48], 0xdd",
                p = in(reg) line,
                low = out(xmm_reg) low,
                high = out(xmm_reg) high,
                options(nostack, preserves_flags, readonly),
            );
        }
        // SAFETY: SSE2 is enabled here; `head` is 16 bytes.
        unsafe {
            let head = _mm_loadu_si128(layout.head.as_ptr().cast());
            let want = _mm_shuffle_epi32::<0b01_01_01_01>(_mm_cvtsi64_si128(tag.0 as i64));
            let low = _mm_cmpeq_epi32(_mm_and_si128(_mm_castps_si128(low), head), want);
            let high = _mm_cmpeq_epi32(_mm_and_si128(_mm_castps_si128(high), head), want);
            _mm_movemask_epi8(_mm_packs_epi32(low, high)) as u32
        }
    }
}

/// NEON is part of aarch64: no detection. Four bits a slot: narrowing twice leaves four, and needs no constant.
#[cfg(tatcell_neon)]
#[inline(always)]
fn neon(line: *const u64, layout: &Layout, tag: Tag) -> u32 {
    use core::arch::aarch64::*;
    // SAFETY: NEON is enabled here; `head` is 16 bytes.
    let (head, want) = unsafe { (vld1q_u32(layout.head.as_ptr()), vdupq_n_u32((tag.0 >> 32) as u32)) };
    let bits: u32;
    // SAFETY: `line` is a line of eight words, valid for 64 bytes; the loads write nothing.
    unsafe {
        // The high halves of words 0..3 and 4..7. All of it is assembly: with intrinsics the compiler adds two
        // instructions that prove again what a comparison leaves in its lanes.
        core::arch::asm!(
            "ldp {a:q}, {b:q}, [{p}]",
            "ldp {c:q}, {d:q}, [{p}, #32]",
            "uzp2 {a:v}.4s, {a:v}.4s, {b:v}.4s",
            "uzp2 {c:v}.4s, {c:v}.4s, {d:v}.4s",
            "and {a:v}.16b, {a:v}.16b, {head:v}.16b",
            "and {c:v}.16b, {c:v}.16b, {head:v}.16b",
            "cmeq {a:v}.4s, {a:v}.4s, {want:v}.4s",
            "cmeq {c:v}.4s, {c:v}.4s, {want:v}.4s",
            "uzp1 {a:v}.8h, {a:v}.8h, {c:v}.8h",
            "shrn {a:v}.8b, {a:v}.8h, #8",
            "shrn {a:v}.8b, {a:v}.8h, #4",
            "fmov {bits:w}, {a:s}",
            p = in(reg) line, head = in(vreg) head, want = in(vreg) want, bits = lateout(reg) bits,
            a = out(vreg) _, b = out(vreg) _, c = out(vreg) _, d = out(vreg) _,
            options(nostack, preserves_flags, readonly),
        );
    }
    bits
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "mod_tests.rs"]
mod tests;

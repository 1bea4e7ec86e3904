//! The step of a group with AVX2: the same as with AVX-512, with twice as many vectors of half the size.
//!
//! ```text
//!  B  words 0..3 ^ tag | words 4..7 ^ tag --shuffle--> their eight high halves, h
//!     (h - 2^k) & !h < 0       h has neither CLAIM nor a bit of another tag: it is below 2^k
//! ```
//!
//! AVX2 has neither mask registers nor comparisons of unsigned words. Signed comparisons are enough, because leads and
//! limits are far below 2^63. Each block clears the upper halves of its registers, because SSE code after it would
//! otherwise be slow.
//!
//! It is written in assembly, with the same loads of shared words, for the reasons that `avx512.rs` gives. All stores
//! go to the lanes of the caller.

use core::arch::asm;
use core::mem::offset_of;

use super::{Decoded, Homes, Rule, Side, Step, Words};
use crate::table::burst::Which;
use crate::table::set::search::Avx2;

/// The offset in its line of the first word that matched, for each mask of B: bits 0 to 7 are words 0, 1, 4, 5, 2, 3, 6
/// and 7. If none matched, that of the last word. A load takes the place of three instructions, one of which moves
/// data across lanes.
static OFFSETS: [u8; 256] = {
    let (words, mut offsets, mut mask) = ([0, 1, 4, 5, 2, 3, 6, 7], [56; 256], 0);
    while mask < 256 {
        let mut bit = 0;
        while bit < 8 {
            if mask >> bit & 1 != 0 && words[bit] * 8 < offsets[mask] {
                offsets[mask] = words[bit] * 8;
            }
            bit += 1;
        }
        mask += 1;
    }
    offsets
};

/// Assembly of A for the four lanes that start at byte `$at` of their arrays.
macro_rules! place {
    ($at:literal) => {
        concat!(
            "vmovdqu ymm0, [{hashes} + ",
            $at,
            "]\n",
            "vpsrlq ymm1, ymm0, 32\n",
            "vpmuludq ymm1, ymm1, ymm2\n",
            "vpsllvq ymm0, ymm0, ymm3\n",
            "vpand ymm0, ymm0, ymm4\n",
            // A tag of 0 becomes 1.
            "vpcmpeqq ymm5, ymm0, ymm7\n",
            "vpand ymm5, ymm5, ymm6\n",
            "vpor ymm0, ymm0, ymm5\n",
            "vmovdqa [{side} + ",
            $at,
            "], ymm0\n",
            "vpsrlq ymm1, ymm1, 32\n",
            "vpsllq ymm1, ymm1, 6\n",
            "vpaddq ymm1, ymm1, ymm8\n",
            "vmovdqa [{homes} + ",
            $at,
            "], ymm1\n",
        )
    };
}

/// Assembly of B for lane `$i`.
macro_rules! search {
    ($i:literal) => {
        concat!(
            "mov {line}, [{homes} + 8 * ",
            $i,
            "]\n",
            "vpbroadcastq ymm0, qword ptr [{side} + 8 * ",
            $i,
            "]\n",
            "vpxor ymm1, ymm0, [{line}]\n",
            "vpxor ymm0, ymm0, [{line} + 32]\n",
            // High halves of words 0, 1, 4, 5, 2, 3, 6, 7: see `OFFSETS`.
            "vshufps ymm1, ymm1, ymm0, 0xdd\n",
            "vpaddd ymm0, ymm1, ymm2\n",
            "vpandn ymm0, ymm1, ymm0\n",
            "vmovmskps {at:e}, ymm0\n",
            // The carry is set if no word matched. The lanes come last first, so bit i belongs to lane i.
            "cmp {at:e}, 1\n",
            "adc {absent:e}, {absent:e}\n",
            "movzx {at:e}, byte ptr [{offsets} + {at}]\n",
            "add {line}, {at}\n",
            "mov [{side} + 64 + 8 * ",
            $i,
            "], {line}\n",
        )
    };
}

/// Assembly of C for the four lanes that start at byte `$at` of their arrays. Their slots start at byte `$a` of the
/// side.
macro_rules! decode {
    ($at:literal, $a:literal, $b:literal, $c:literal, $d:literal, $live:literal, $pass:literal) => {
        concat!(
            "mov {slot}, [{side} + ",
            $a,
            "]\n",
            "vmovq xmm0, qword ptr [{slot}]\n",
            "mov {slot}, [{side} + ",
            $b,
            "]\n",
            "vmovhps xmm0, xmm0, qword ptr [{slot}]\n",
            "mov {slot}, [{side} + ",
            $c,
            "]\n",
            "vmovq xmm1, qword ptr [{slot}]\n",
            "mov {slot}, [{side} + ",
            $d,
            "]\n",
            "vmovhps xmm1, xmm1, qword ptr [{slot}]\n",
            "vinserti128 ymm0, ymm0, xmm1, 1\n",
            "vmovdqa [{words} + ",
            $at,
            "], ymm0\n",
            // The word is LIVE with this tag if only the payload is left. Then its lead, or 0 if it has expired.
            "vmovdqa ymm1, [{side} + ",
            $at,
            "]\n",
            "vpxor ymm0, ymm0, ymm1\n",
            "vpandn ymm2, ymm7, ymm0\n",
            "vpcmpeqq ymm2, ymm2, ymm6\n",
            "vpsubq ymm0, ymm0, ymm8\n",
            "vpand ymm0, ymm0, ymm7\n",
            "vpcmpgtq ymm3, ymm9, ymm0\n",
            "vpand ymm0, ymm0, ymm3\n",
            // The request conforms unless the lead is above the limit.
            "vpcmpgtq ymm3, ymm0, ymm10\n",
            "vpandn ymm3, ymm3, ymm2\n",
            // The new payload is one charge later. The new word is the tag | that payload.
            "vpaddq ymm0, ymm0, ymm11\n",
            "vpand ymm0, ymm0, ymm7\n",
            "vpor ymm0, ymm0, ymm1\n",
            "vmovdqa [{words} + 64 + ",
            $at,
            "], ymm0\n",
            "vmovmskpd {",
            $live,
            ":e}, ymm2\n",
            "vmovmskpd {",
            $pass,
            ":e}, ymm3\n",
        )
    };
}

impl Step<8> for Avx2 {
    const AHEAD: Which = Which::Home;

    #[inline(always)]
    fn place<'m>(self, rule: &Rule<'m>, homes: &mut Homes<'m, 8>, side: &mut Side<'m, 8>, hashes: &[u64; 8]) {
        // SAFETY: an `Avx2` exists only if the processor has AVX2. The block loads from `hashes` and `rule`, and stores
        // to `homes` and to the tags of `side`, which are aligned to 64 bytes. Multiply-shift yields numbers below
        // `lines`, so each stored home is a line of the table, whose first line is `base`.
        unsafe {
            asm!(
                "vpbroadcastq ymm2, qword ptr [{rule} + {lines}]",
                "vpbroadcastq ymm3, qword ptr [{rule} + {bits}]",
                "vpbroadcastq ymm4, qword ptr [{rule} + {field}]",
                "vpbroadcastq ymm6, qword ptr [{rule} + {one}]",
                "vpxor xmm7, xmm7, xmm7",
                "vpbroadcastq ymm8, qword ptr [{rule} + {base}]",
                place!("0"), place!("32"),
                "vzeroupper",
                hashes = in(reg) hashes, rule = in(reg) rule, homes = in(reg) homes, side = in(reg) side,
                base = const offset_of!(Rule<'static>, base), lines = const offset_of!(Rule<'static>, lines),
                bits = const offset_of!(Rule<'static>, bits), field = const offset_of!(Rule<'static>, field),
                one = const offset_of!(Rule<'static>, one),
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                out("xmm6") _, out("xmm7") _, out("xmm8") _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    fn search<'m>(self, rule: &Rule<'m>, homes: &Homes<'m, 8>, side: &mut Side<'m, 8>) -> u32 {
        let mut absent = 0u32;
        // SAFETY: an `Avx2` exists only if the processor has AVX2. `homes` are lines of the table, of 64 aligned bytes
        // each. A mask has eight bits, and `OFFSETS` an offset of one of the eight words for each mask, so each slot
        // that is stored to `side` is a word of its line. The block stores nothing else.
        unsafe {
            asm!(
                // The high half of the mask of all but the payload, which is -2^k.
                "vpbroadcastd ymm2, dword ptr [{rule} + {head} + 4]",
                search!("7"), search!("6"), search!("5"), search!("4"),
                search!("3"), search!("2"), search!("1"), search!("0"),
                "vzeroupper",
                rule = in(reg) rule, homes = in(reg) homes, side = in(reg) side, absent = inout(reg) absent,
                offsets = in(reg) OFFSETS.as_ptr(),
                head = const offset_of!(Rule<'static>, head),
                line = out(reg) _, at = out(reg) _, out("xmm0") _, out("xmm1") _, out("xmm2") _,
                options(nostack),
            );
        }
        absent
    }

    #[inline(always)]
    fn decode(self, rule: &Rule<'_>, side: &Side<'_, 8>, words: &mut Words<8>) -> Decoded {
        let (low_live, low_pass, live, pass): (u32, u32, u32, u32);
        // SAFETY: an `Avx2` exists only if the processor has AVX2. The slots of `side` are references to words, and one
        // aligned load of 8 bytes reads each. The block stores to both arrays of `words`, which is aligned to 64 bytes.
        // ORDERING: Relaxed; single words, value only. The swap of a lane fails if its word has changed.
        unsafe {
            asm!(
                "vpxor xmm6, xmm6, xmm6",
                "vpbroadcastq ymm7, qword ptr [{rule} + {mask}]",
                "vpbroadcastq ymm8, qword ptr [{rule} + {now}]",
                "vpbroadcastq ymm9, qword ptr [{rule} + {past}]",
                "vpbroadcastq ymm10, qword ptr [{rule} + {limit}]",
                "vpbroadcastq ymm11, qword ptr [{rule} + {charge}]",
                "vpaddq ymm11, ymm11, ymm8",
                decode!("0", "64", "72", "80", "88", "low_live", "low_pass"),
                decode!("32", "96", "104", "112", "120", "live", "pass"),
                "vzeroupper",
                rule = in(reg) rule, side = in(reg) side, words = in(reg) words, slot = out(reg) _,
                low_live = out(reg) low_live, low_pass = out(reg) low_pass, live = out(reg) live,
                pass = out(reg) pass,
                mask = const offset_of!(Rule<'static>, mask), now = const offset_of!(Rule<'static>, now),
                limit = const offset_of!(Rule<'static>, limit), past = const offset_of!(Rule<'static>, past),
                charge = const offset_of!(Rule<'static>, charge),
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm6") _, out("xmm7") _,
                out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                options(nostack, preserves_flags),
            );
        }
        Decoded { live: live << 4 | low_live, pass: pass << 4 | low_pass }
    }
}

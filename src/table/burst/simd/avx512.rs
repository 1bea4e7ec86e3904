//! The step of a group with AVX-512.
//!
//! It is written in assembly, because a vector load of shared words is not an access that the memory model knows: to
//! the compiler the block is opaque. C loads each word with a load of its own, which is whole like an atomic load. B
//! uses its vector loads only to choose the slots that C loads.
//!
//! It uses registers above 15, which leave no state that slows SSE code down. All stores go to the lanes of the caller.

use core::arch::asm;
use core::mem::offset_of;

use super::{Decoded, Homes, Rule, Side, Step, Words};
use crate::table::burst::Which;
use crate::table::set::search::Avx512;

/// Assembly of B for lane `$i`.
macro_rules! search {
    ($i:literal) => {
        concat!(
            "mov {line}, [{homes} + 8 * ",
            $i,
            "]\n",
            "vmovdqa64 zmm16, [{line}]\n",
            "vpxorq zmm16{{k1}}{{z}}, zmm16, qword ptr [{side} + 8 * ",
            $i,
            "]{{1to8}}\n",
            "vptestnmq k2, zmm16, qword ptr [{rule} + {head}]{{1to8}}\n",
            "kmovb {at:e}, k2\n",
            "tzcnt {at:e}, {at:e}\n",
            "lea {line}, [{line} + 8 * {at}]\n",
            "mov [{side} + 64 + 8 * ",
            $i,
            "], {line}\n",
        )
    };
}

impl Step<8> for Avx512 {
    const AHEAD: Which = Which::Both;

    #[inline(always)]
    fn place<'m>(self, rule: &Rule<'m>, homes: &mut Homes<'m, 8>, side: &mut Side<'m, 8>, hashes: &[u64; 8]) {
        // SAFETY: an `Avx512` exists only if the processor has AVX-512. The block loads from `hashes` and `rule`, and
        // stores to `homes` and to the tags of `side`, which are aligned to 64 bytes. Multiply-shift yields numbers
        // below `lines`, so each stored home is a line of the table, whose first line is `base`.
        unsafe {
            asm!(
                "vmovdqu64 zmm16, [{hashes}]",
                "vpsrlq zmm17, zmm16, 32",
                "vpmuludq zmm17, zmm17, qword ptr [{rule} + {lines}]{{1to8}}",
                "vpsllvq zmm16, zmm16, qword ptr [{rule} + {bits}]{{1to8}}",
                "vpandq zmm16, zmm16, qword ptr [{rule} + {field}]{{1to8}}",
                "vpmaxuq zmm16, zmm16, qword ptr [{rule} + {one}]{{1to8}}",
                "vmovdqa64 [{side}], zmm16",
                "vpsrlq zmm17, zmm17, 32",
                "vpsllq zmm17, zmm17, 6",
                "vpaddq zmm17, zmm17, qword ptr [{rule} + {base}]{{1to8}}",
                "vmovdqa64 [{homes}], zmm17",
                hashes = in(reg) hashes, rule = in(reg) rule, homes = in(reg) homes, side = in(reg) side,
                base = const offset_of!(Rule<'static>, base), lines = const offset_of!(Rule<'static>, lines),
                bits = const offset_of!(Rule<'static>, bits), field = const offset_of!(Rule<'static>, field),
                one = const offset_of!(Rule<'static>, one),
                out("xmm16") _, out("xmm17") _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    fn search<'m>(self, rule: &Rule<'m>, homes: &Homes<'m, 8>, side: &mut Side<'m, 8>) -> u32 {
        // SAFETY: an `Avx512` exists only if the processor has AVX-512. `homes` are lines of the table, of 64 aligned
        // bytes each. The last word is set to 0, so bit 7 of each mask is set, and each slot that is stored to `side`
        // is one of the eight words of its line. The block stores nothing else.
        unsafe {
            asm!(
                "mov {at:e}, 0x7f",
                "kmovb k1, {at:e}",
                search!("0"), search!("1"), search!("2"), search!("3"),
                search!("4"), search!("5"), search!("6"), search!("7"),
                rule = in(reg) rule, homes = in(reg) homes, side = in(reg) side,
                head = const offset_of!(Rule<'static>, head),
                line = out(reg) _, at = out(reg) _, out("xmm16") _, out("k1") _, out("k2") _,
                options(nostack),
            );
        }
        0
    }

    #[inline(always)]
    fn decode(self, rule: &Rule<'_>, side: &Side<'_, 8>, words: &mut Words<8>) -> Decoded {
        let (live, pass): (u32, u32);
        // SAFETY: an `Avx512` exists only if the processor has AVX-512. The slots of `side` are references to words,
        // and one aligned load of 8 bytes reads each. The block stores to both arrays of `words`, which is aligned to
        // 64 bytes.
        // ORDERING: Relaxed; single words, value only. The swap of a lane fails if its word has changed.
        unsafe {
            asm!(
                "mov {slot}, [{side} + 64]",
                "vmovq xmm20, qword ptr [{slot}]",
                "mov {slot}, [{side} + 72]",
                "vmovhps xmm20, xmm20, qword ptr [{slot}]",
                "mov {slot}, [{side} + 80]",
                "vmovq xmm21, qword ptr [{slot}]",
                "mov {slot}, [{side} + 88]",
                "vmovhps xmm21, xmm21, qword ptr [{slot}]",
                "mov {slot}, [{side} + 96]",
                "vmovq xmm22, qword ptr [{slot}]",
                "mov {slot}, [{side} + 104]",
                "vmovhps xmm22, xmm22, qword ptr [{slot}]",
                "mov {slot}, [{side} + 112]",
                "vmovq xmm23, qword ptr [{slot}]",
                "mov {slot}, [{side} + 120]",
                "vmovhps xmm23, xmm23, qword ptr [{slot}]",
                "vinserti32x4 ymm20, ymm20, xmm21, 1",
                "vinserti32x4 ymm22, ymm22, xmm23, 1",
                "vinserti64x4 zmm20, zmm20, ymm22, 1",
                "vmovdqa64 [{words}], zmm20",
                // The word is LIVE with this tag if only the payload is left. It passes if its lead is within the limit
                // or has expired.
                "vmovdqa64 zmm16, [{side}]",
                "vpxorq zmm21, zmm20, zmm16",
                "vpcmpuq k2, zmm21, qword ptr [{rule} + {mask}]{{1to8}}, 2",
                "vpsubq zmm22, zmm21, qword ptr [{rule} + {now}]{{1to8}}",
                "vpandq zmm22, zmm22, qword ptr [{rule} + {mask}]{{1to8}}",
                "vpcmpuq k3{{k2}}, zmm22, qword ptr [{rule} + {limit}]{{1to8}}, 2",
                "vpcmpuq k4{{k2}}, zmm22, qword ptr [{rule} + {past}]{{1to8}}, 5",
                // The new payload is one charge after the old one, or after now if the old one has expired. The new
                // word is the tag | that payload.
                "vpblendmq zmm21{{k4}}, zmm21, qword ptr [{rule} + {now}]{{1to8}}",
                "vpaddq zmm21, zmm21, qword ptr [{rule} + {charge}]{{1to8}}",
                "vpternlogq zmm21, zmm16, qword ptr [{rule} + {mask}]{{1to8}}, 0xec",
                "vmovdqa64 [{words} + 64], zmm21",
                "korb k3, k3, k4",
                "kmovb {live:e}, k2",
                "kmovb {pass:e}, k3",
                rule = in(reg) rule, side = in(reg) side, words = in(reg) words,
                slot = out(reg) _, live = lateout(reg) live, pass = lateout(reg) pass,
                mask = const offset_of!(Rule<'static>, mask), now = const offset_of!(Rule<'static>, now),
                limit = const offset_of!(Rule<'static>, limit), past = const offset_of!(Rule<'static>, past),
                charge = const offset_of!(Rule<'static>, charge),
                out("xmm16") _, out("xmm20") _, out("xmm21") _, out("xmm22") _, out("xmm23") _,
                out("k2") _, out("k3") _, out("k4") _,
                options(nostack, preserves_flags),
            );
        }
        Decoded { live, pass }
    }
}

//! The step of a group with AVX-512.
//!
//! Written in assembly, because the compiler must take it for opaque: a vector load of shared words is no access that
//! the memory model knows. The words of C are loaded one by one, as quadwords: each load is whole, as an atomic one is.
//! B decides nothing from its vectors but where C looks.
//!
//! Registers above 15 leave no state that slows SSE code down. All stores are to the lanes of the caller.

use core::arch::asm;
use core::mem::offset_of;

use super::{Decoded, Homes, Rule, Side, Step, Words};
use crate::table::set::search::Avx512;

/// Assembly of B for lane number `$i`.
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
    #[inline(always)]
    fn place<'m>(self, rule: &Rule<'m>, homes: &mut Homes<'m, 8>, side: &mut Side<'m, 8>, hashes: &[u64; 8]) {
        // SAFETY: whoever has an `Avx512` has found it. Loads from `hashes` and `rule`, stores to `homes` and to the
        // tags of `side`, which are aligned to 64 bytes. Multiply-shift gives numbers below `lines`, so what is stored
        // to `homes` are lines of the table, of which `base` is the first.
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
    fn search<'m>(self, rule: &Rule<'m>, homes: &Homes<'m, 8>, side: &mut Side<'m, 8>) {
        // SAFETY: whoever has an `Avx512` has found it. `homes` are lines of the table, of 64 aligned bytes each. A
        // mask has bit 7 set, since that word is made 0: what is stored to the slots of `side` is one of the eight
        // words of a line. Nothing else is stored.
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
    }

    #[inline(always)]
    fn decode(self, rule: &Rule<'_>, side: &Side<'_, 8>, words: &mut Words<8>) -> Decoded {
        let (live, pass): (u32, u32);
        // SAFETY: whoever has an `Avx512` has found it. The slots of `side` are references to words, each loaded by one
        // aligned load of 8 bytes; stores to both arrays of `words`, which is aligned to 64 bytes.
        // ORDERING: Relaxed; single words, value only. The swap of a lane decides whether it is still the same.
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
                // LIVE of this tag: the rest is the payload. Its distance ahead of now conforms, or has expired.
                "vmovdqa64 zmm16, [{side}]",
                "vpxorq zmm21, zmm20, zmm16",
                "vpcmpuq k2, zmm21, qword ptr [{rule} + {mask}]{{1to8}}, 2",
                "vpsubq zmm22, zmm21, qword ptr [{rule} + {now}]{{1to8}}",
                "vpandq zmm22, zmm22, qword ptr [{rule} + {mask}]{{1to8}}",
                "vpcmpuq k3{{k2}}, zmm22, qword ptr [{rule} + {limit}]{{1to8}}, 2",
                "vpcmpuq k4{{k2}}, zmm22, qword ptr [{rule} + {past}]{{1to8}}, 5",
                // From the payload, or from now where it has expired; a charge later; the tag | payload bits of that.
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

//! The features of this processor, looked up once.
//!
//! ```text
//!  leaf 1   ECX  25 AES, 27 OSXSAVE, 28 AVX         EAX  the family
//!  XCR0          1, 2; 5, 6, 7                      where OSXSAVE: the system saves the registers of AVX; of AVX-512
//!  leaf 0   EAX  the highest leaf, the maker's name where it does
//!  leaf 7   EBX  5 AVX2, 16 AVX512F, 17 AVX512DQ, 30 AVX512BW, 31 AVX512VL
//!           ECX  6 VBMI2                            where leaf 0 has it
//!
//!  kept     31       6   5    4    3    2     1    0
//!          [    0     |ZEN5|AVX2|AVX|AVX512| AES |looked]     0: nobody has looked yet
//! ```
//!
//! CPUID is slow: some hundred cycles. On a virtual machine the host answers for the processor, which takes one to tens
//! of microseconds. One lookup reads one to three leaves. With the feature `std` or `host` the process keeps the result
//! in four bytes, and later calls cost a load. Without them the library keeps no state, and every call looks again.
//!
//! This is not for the hot path: a table looks once, when it is made or attached to.

#[cfg(tatcell_sse2)]
use x86::Cpu;

/// Returns whether the processor has instructions for AES rounds.
#[inline]
pub(crate) fn aes() -> bool {
    #[cfg(tatcell_sse2)]
    return Cpu::aes();
    #[cfg(not(tatcell_sse2))]
    return cfg!(tatcell_aes_arm);
}

/// Returns whether 128-bit AVX instructions work: the processor has them, and the system saves their registers.
#[inline]
pub(crate) fn avx() -> bool {
    #[cfg(tatcell_sse2)]
    return Cpu::now().has(x86::AVX);
    #[cfg(not(tatcell_sse2))]
    return false;
}

/// Returns whether scans and groups with AVX-512 work and pay. The processor must have F, DQ, BW, VL and VBMI2, and the
/// system must save the registers. VBMI2 excludes older processors, which lower their clock under 512-bit instructions;
/// Ice Lake, Zen 4 and later have it.
#[cfg(tatcell_sse2)]
#[inline]
pub(crate) fn avx512() -> bool {
    !cfg!(tatcell_without_avx512) && Cpu::now().has(x86::AVX512)
}

/// Returns whether groups with AVX2 work: the processor has it, and the system saves its registers.
#[cfg(tatcell_sse2)]
#[inline]
pub(crate) fn avx2() -> bool {
    Cpu::now().has(x86::AVX2)
}

/// Returns whether groups also pay for requests that conform, each of which makes a locked swap. They pay on all
/// processors except AMD's family 26 (Zen 5), where measurements showed that they do not. See `table::burst`.
#[inline]
pub(crate) fn groups_pay() -> bool {
    #[cfg(tatcell_sse2)]
    return !Cpu::now().has(x86::ZEN5);
    #[cfg(not(tatcell_sse2))]
    return false;
}

#[cfg(tatcell_sse2)]
mod x86 {
    use core::arch::asm;
    use core::arch::x86_64::{__cpuid, CpuidResult};

    #[cfg(any(tatcell_kept, test))]
    use crate::sync::{AtomicU32, Ordering};

    const LOOKED: u32 = 1;
    pub(super) const AES: u32 = 1 << 1;
    pub(super) const AVX512: u32 = 1 << 2;
    pub(super) const AVX: u32 = 1 << 3;
    pub(super) const AVX2: u32 = 1 << 4;
    pub(super) const ZEN5: u32 = 1 << 5;

    /// EBX of leaf 0: the first four letters of "AuthenticAMD".
    const AMD: u32 = u32::from_le_bytes(*b"Auth");

    /// The features that the library asks about; never 0.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Cpu(u32);

    impl Cpu {
        #[inline]
        pub fn has(self, bit: u32) -> bool {
            self.0 & bit != 0
        }

        /// Returns whether leaf 1 lists AES. Without kept state there is nothing to gain from a full lookup.
        #[cfg(not(tatcell_kept))]
        pub fn aes() -> bool {
            Cpu::of_leaf_1(&leaf(1)).has(AES)
        }

        #[cfg(tatcell_kept)]
        pub fn aes() -> bool {
            Cpu::now().has(AES)
        }

        /// Looks up the features of this processor.
        #[cfg(not(tatcell_kept))]
        pub fn now() -> Cpu {
            Cpu::look(leaf, saved)
        }

        /// Returns the features of this processor. The first call looks them up, later calls load the result.
        #[cfg(tatcell_kept)]
        #[inline]
        pub fn now() -> Cpu {
            static KEPT: AtomicU32 = AtomicU32::new(0);
            Cpu::kept(&KEPT, || Cpu::look(leaf, saved))
        }

        /// Returns the features that the word keeps. If it keeps none, looks them up and stores them.
        #[cfg(any(tatcell_kept, test))]
        #[inline]
        fn kept(word: &AtomicU32, look: impl FnOnce() -> Cpu) -> Cpu {
            // ORDERING: Relaxed; single word, value only. A thread that reads 0 stores one value, which is the same for
            // all threads: if threads race, each looks and finds the same.
            match word.load(Ordering::Relaxed) {
                0 => {
                    let cpu = look();
                    // ORDERING: Relaxed; as above.
                    word.store(cpu.0, Ordering::Relaxed);
                    cpu
                }
                bits => Cpu(bits),
            }
        }

        fn of_leaf_1(one: &CpuidResult) -> Cpu {
            Cpu(if one.ecx & 1 << 25 != 0 { LOOKED | AES } else { LOOKED })
        }

        /// Reads one to three leaves. Calls `saved` (XCR0) only if the processor has XGETBV.
        #[cold]
        fn look(leaf: impl Fn(u32) -> CpuidResult, saved: impl Fn() -> u32) -> Cpu {
            let one = leaf(1);
            let mut cpu = Cpu::of_leaf_1(&one);
            let saved = if one.ecx & 1 << 27 == 0 { 0 } else { saved() };
            if saved & 6 != 6 || one.ecx & 1 << 28 == 0 {
                return cpu;
            }
            cpu.0 |= AVX;
            let zero = leaf(0);
            // The family is the sum of two fields if it is above 14.
            if zero.ebx == AMD && (one.eax >> 8 & 15) + (one.eax >> 20 & 255) == 26 {
                cpu.0 |= ZEN5;
            }
            if zero.eax < 7 {
                return cpu;
            }
            let (seven, ebx, ecx) = (leaf(7), 1 << 16 | 1 << 17 | 1 << 30 | 1 << 31, 1 << 6);
            if seven.ebx & 1 << 5 != 0 {
                cpu.0 |= AVX2;
            }
            if saved & 0xe6 == 0xe6 && seven.ebx & ebx == ebx && seven.ecx & ecx == ecx {
                cpu.0 |= AVX512;
            }
            cpu
        }
    }

    /// Reads the first subleaf of a leaf of CPUID.
    fn leaf(number: u32) -> CpuidResult {
        #[allow(unused_unsafe)] // a safe function in later compilers than the oldest supported one
        // SAFETY: CPUID is there on every x86-64 processor; it answers any number.
        unsafe {
            __cpuid(number)
        }
    }

    /// Returns the low half of XCR0: which registers the system saves. Leaf 1 must have OSXSAVE.
    fn saved() -> u32 {
        let saved: u32;
        // SAFETY: `look` calls this only if OSXSAVE is set, so XGETBV exists; register 0 always does.
        unsafe {
            asm!("xgetbv", in("ecx") 0, out("eax") saved, out("edx") _, options(nomem, nostack, preserves_flags));
        }
        saved
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use core::cell::RefCell;
        extern crate std;
        use std::vec::Vec;

        /// A processor on paper, which records the leaves that were read.
        struct Paper {
            highest: u32,
            maker: &'static [u8; 4],
            family: u32,
            one_ecx: u32,
            xcr0: u32,
            seven: (u32, u32),
            asked: RefCell<Vec<u32>>,
        }

        const AES_BIT: u32 = 1 << 25;
        const OSXSAVE: u32 = 1 << 27;
        const AVX_BIT: u32 = 1 << 28;

        impl Paper {
            /// A processor with every feature.
            fn full() -> Paper {
                let seven = (1 << 5 | 1 << 16 | 1 << 17 | 1 << 30 | 1 << 31, 1 << 6);
                Paper {
                    highest: 7,
                    maker: b"Auth",
                    family: 25,
                    one_ecx: AES_BIT | OSXSAVE | AVX_BIT,
                    xcr0: 0xe7,
                    seven,
                    asked: Vec::new().into(),
                }
            }

            fn look(&self) -> Cpu {
                let none = CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };
                let leaf = |number| {
                    self.asked.borrow_mut().push(number);
                    match number {
                        0 => CpuidResult { eax: self.highest, ebx: u32::from_le_bytes(*self.maker), ..none },
                        1 => {
                            // The model and the stepping may be anything.
                            let eax = (self.family - 15) << 20 | 0xf << 8 | 0x7_00ff;
                            CpuidResult { eax, ecx: self.one_ecx, ..none }
                        }
                        // A leaf above the highest may return anything.
                        7 => CpuidResult { ebx: self.seven.0, ecx: self.seven.1, ..none },
                        _ => unreachable!(),
                    }
                };
                let saved = || {
                    assert!(self.one_ecx & OSXSAVE != 0, "XGETBV is an invalid instruction here");
                    self.xcr0
                };
                Cpu::look(leaf, saved)
            }
        }

        #[test]
        fn a_look_takes_three_leaves_at_most_and_one_without_saved_registers() {
            let full = Paper::full();
            assert_eq!(full.look(), Cpu(LOOKED | AES | AVX | AVX2 | AVX512));
            assert_eq!(*full.asked.borrow(), [1, 0, 7]);
            let without = Paper { one_ecx: AES_BIT | AVX_BIT, ..Paper::full() };
            let half = Paper { xcr0: 0x7, ..Paper::full() };
            assert_eq!(half.look(), Cpu(LOOKED | AES | AVX | AVX2));
            assert_eq!(*half.asked.borrow(), [1, 0, 7]);
            for (poor, cpu) in [
                (Paper { xcr0: 0x3, ..Paper::full() }, LOOKED | AES),
                (Paper { xcr0: 0x5, ..Paper::full() }, LOOKED | AES),
                (without, LOOKED | AES),
            ] {
                assert_eq!(poor.look(), Cpu(cpu));
                assert_eq!(*poor.asked.borrow(), [1]);
            }
        }

        #[test]
        fn avx512_needs_every_bit_that_it_is_told_by() {
            assert_eq!(Paper { highest: 6, ..Paper::full() }.look(), Cpu(LOOKED | AES | AVX));
            for bit in [1, 2, 5, 6, 7] {
                let avx = if bit < 5 { 0 } else { AVX | AVX2 };
                let poor = Paper { xcr0: 0xe7 & !(1 << bit), ..Paper::full() };
                assert_eq!(poor.look(), Cpu(LOOKED | AES | avx), "{bit}");
            }
            let (ebx, ecx) = Paper::full().seven;
            let without = |(b, c): (u32, u32)| (ebx & !b, ecx & !c);
            for seven in [(1 << 16, 0), (1 << 17, 0), (1 << 30, 0), (1 << 31, 0), (0, 1 << 6)].map(without) {
                let poor = Paper { seven, ..Paper::full() };
                assert_eq!(poor.look(), Cpu(LOOKED | AES | AVX | AVX2), "{seven:x?}");
            }
            let seven = without((1 << 5, 0));
            assert_eq!(Paper { seven, ..Paper::full() }.look(), Cpu(LOOKED | AES | AVX | AVX512));
            let without_aes = Paper { one_ecx: OSXSAVE | AVX_BIT, ..Paper::full() };
            assert_eq!(without_aes.look(), Cpu(LOOKED | AVX | AVX2 | AVX512));
            let without_avx = Paper { one_ecx: OSXSAVE | AES_BIT, ..Paper::full() };
            assert_eq!(without_avx.look(), Cpu(LOOKED | AES));
            assert_eq!(Paper { one_ecx: 0, ..Paper::full() }.look(), Cpu(LOOKED));
        }

        #[test]
        fn groups_pay_everywhere_but_on_amds_family_26() {
            let of = |maker, family| Paper { maker, family, ..Paper::full() }.look().has(ZEN5);
            assert_eq!(
                [23, 24, 25, 26, 27].map(|family| of(b"Auth", family)),
                [false, false, false, true, false]
            );
            assert!(![23, 24, 25, 26, 27].map(|family| of(b"Genu", family)).contains(&true));
        }

        #[test]
        fn what_one_look_found_is_what_all_later_calls_get() {
            for found in [LOOKED, LOOKED | AES, LOOKED | AVX512, LOOKED | AES | AVX512] {
                let word = AtomicU32::new(0);
                assert_eq!(Cpu::kept(&word, || Cpu(found)), Cpu(found));
                assert_eq!(Cpu::kept(&word, || unreachable!()), Cpu(found));
            }
        }

        #[test]
        fn this_processor_has_what_the_standard_library_finds() {
            let avx512 = std::is_x86_feature_detected!("avx512f")
                && std::is_x86_feature_detected!("avx512dq")
                && std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512vl")
                && std::is_x86_feature_detected!("avx512vbmi2");
            assert_eq!(crate::cpu::avx(), std::is_x86_feature_detected!("avx"));
            assert_eq!(crate::cpu::avx2(), std::is_x86_feature_detected!("avx2"));
            assert_eq!(crate::cpu::aes(), std::is_x86_feature_detected!("aes"));
            assert_eq!(crate::cpu::avx512(), avx512 && !cfg!(tatcell_without_avx512));
            assert_eq!(Cpu::now(), Cpu::look(leaf, saved));
        }
    }
}

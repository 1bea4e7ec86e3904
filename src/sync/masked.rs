//! Atomics for cores that lack them: a plain word, which the firmware protects while it changes.
//!
//! The firmware chooses the protection by a feature. If several are set, the first of this list counts:
//!
//! - `critical-section-c`: two C functions of the firmware, `uint32_t tatcell_critical_enter(void)` and
//!   `void tatcell_critical_exit(uint32_t)`. The library passes the result of enter to exit, and calls them nested.
//!   Firmware with an RTOS or with two cores takes its own lock here.
//! - `critical-section`: the crate of that name, whose implementation the binary chooses.
//! - `single-core`: masks interrupts (PRIMASK on Cortex-M, mstatus.MIE on RISC-V). This is for one core, and for
//!   privileged code (Cortex-M) or machine mode (RISC-V) only: elsewhere the mask has no effect or traps. On a hosted
//!   system it is a spin lock, so that unit tests of firmware can run there with threads: a preempted holder runs again
//!   there, and tests have no interrupts.
//! - `exclusive`: no protection, and the words are not `Sync`. A `Cell` or `Table` then stays with one owner. In Rust
//!   the compiler enforces that; C firmware must see to it.
//!
//! `make -C firmware test` measures how much interrupt latency a masked section costs. No section contains a division,
//! a hash or a loop over more than one set of a table.
#![allow(dead_code)] // the target decides what is used

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;

/// Runs `f` while no interrupt, task or core can enter another section.
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce() -> R) -> R {
    let state = imp::enter();
    let result = f();
    imp::exit(state);
    result
}

#[cfg(tatcell_section = "c")]
mod imp {
    extern "C" {
        fn tatcell_critical_enter() -> u32;
        fn tatcell_critical_exit(state: u32);
    }

    #[inline(always)]
    pub fn enter() -> u32 {
        // SAFETY: the firmware's function; it takes nothing and returns a plain number.
        unsafe { tatcell_critical_enter() }
    }

    #[inline(always)]
    pub fn exit(state: u32) {
        // SAFETY: as above; `state` is what the matching enter returned.
        unsafe { tatcell_critical_exit(state) }
    }
}

#[cfg(tatcell_section = "crate")]
mod imp {
    use critical_section::RestoreState;

    #[inline(always)]
    pub fn enter() -> RestoreState {
        // SAFETY: `with` releases sections on the same core, in the reverse order of acquiring.
        unsafe { critical_section::acquire() }
    }

    #[inline(always)]
    pub fn exit(state: RestoreState) {
        // SAFETY: as above.
        unsafe { critical_section::release(state) }
    }
}

#[cfg(tatcell_section = "primask")]
mod imp {
    use core::arch::asm;

    #[inline(always)]
    pub fn enter() -> u32 {
        let primask: u32;
        // SAFETY: reads PRIMASK and masks interrupts; no memory operand, so nothing moves into or out of the section
        // (asm without `nomem` is a compiler barrier, and a Cortex-M sees its own accesses in order).
        unsafe { asm!("mrs {}, PRIMASK", "cpsid i", out(reg) primask, options(nostack, preserves_flags)) };
        primask
    }

    #[inline(always)]
    pub fn exit(primask: u32) {
        // SAFETY: puts back what `enter` read, so a section inside a section leaves interrupts masked.
        unsafe { asm!("msr PRIMASK, {}", in(reg) primask, options(nostack, preserves_flags)) };
    }
}

#[cfg(tatcell_section = "mstatus")]
mod imp {
    use core::arch::asm;

    #[inline(always)]
    pub fn enter() -> u32 {
        let mstatus: u32;
        // SAFETY: reads mstatus and clears MIE (bit 3); a compiler barrier, as no `nomem` is given.
        unsafe { asm!("csrrci {}, mstatus, 8", out(reg) mstatus, options(nostack, preserves_flags)) };
        mstatus & 8
    }

    #[inline(always)]
    pub fn exit(mie: u32) {
        // SAFETY: sets MIE if it was set before `enter`.
        unsafe { asm!("csrs mstatus, {}", in(reg) mie, options(nostack, preserves_flags)) };
    }
}

#[cfg(tatcell_section = "open")]
mod imp {
    #[cfg(all(tatcell_masked64, not(any(feature = "exclusive", feature = "single-core"))))]
    compile_error!(
        "tatcell: this target has no 64-bit atomics. Choose how cells are shared with interrupts and tasks, by a \
         feature: `single-core` (one core, privileged code: interrupts are masked), `critical-section` (the crate of \
         that name), `critical-section-c` (two C functions of the firmware), `exclusive` (nothing is shared), or on \
         a hosted system `fallback` (portable-atomic's spin lock)."
    );
    #[cfg(all(tatcell_masked64, feature = "single-core", not(feature = "exclusive")))]
    compile_error!(
        "tatcell: `single-core` works only on Cortex-M and RISC-V firmware; use `critical-section` on this target."
    );

    pub struct Open;

    #[inline(always)]
    pub fn enter() -> Open {
        Open
    }

    #[inline(always)]
    pub fn exit(_: Open) {}
}

// The section of hosted unit tests: one lock for all words, just as a device has one interrupt mask for all cells.
#[cfg(tatcell_section = "hosted")]
mod imp {
    use core::sync::atomic::{AtomicBool, Ordering};

    static TAKEN: AtomicBool = AtomicBool::new(false);

    pub struct Taken;

    pub fn enter() -> Taken {
        // ORDERING: Acquire; pairs with the Release of the previous holder, so this thread sees its writes.
        while TAKEN.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        Taken
    }

    pub fn exit(_: Taken) {
        // ORDERING: Release; pairs with the Acquire of the next holder.
        TAKEN.store(false, Ordering::Release);
    }
}

/// Returns whether sections keep interrupts out. Unprivileged code of a Cortex-M cannot mask them, and gets no error.
#[cfg(tatcell_section = "primask")]
pub(crate) fn works() -> bool {
    let before = imp::enter();
    let masked: u32;
    // SAFETY: reads PRIMASK; unprivileged code reads 0.
    unsafe { core::arch::asm!("mrs {}, PRIMASK", out(reg) masked, options(nomem, nostack, preserves_flags)) };
    imp::exit(before);
    masked & 1 != 0
}

/// Returns whether sections keep interrupts out. Other targets trap if they cannot, or call the firmware.
#[cfg(not(tatcell_section = "primask"))]
pub(crate) fn works() -> bool {
    true
}

/// A value that only its one owner touches, or only code in a masked section.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Masked<T>(pub UnsafeCell<T>);

// If no section was chosen, the type is not Sync and has one owner.
#[cfg(not(tatcell_section = "open"))]
// SAFETY: every shared access is inside a section that excludes all others.
unsafe impl<T: Send> Sync for Masked<T> {}

macro_rules! word {
    ($name:ident, $int:ty, $align:literal) => {
        /// Stands in for the atomic of the same name: same interface and meaning, in a masked section.
        #[repr(C, align($align))]
        pub struct $name(Masked<$int>);

        impl $name {
            pub const fn new(value: $int) -> $name {
                $name(Masked(UnsafeCell::new(value)))
            }

            #[inline(always)]
            pub fn load(&self, _: Ordering) -> $int {
                // SAFETY: valid for reads, and no other access overlaps the section.
                with(|| unsafe { self.0 .0.get().read() })
            }

            #[inline(always)]
            pub fn store(&self, value: $int, _: Ordering) {
                // SAFETY: valid for writes, and no other access overlaps the section.
                with(|| unsafe { self.0 .0.get().write(value) })
            }

            #[inline(always)]
            pub fn compare_exchange(
                &self,
                old: $int,
                new: $int,
                _: Ordering,
                _: Ordering,
            ) -> Result<$int, $int> {
                self.step(|word| if word == old { (Ok(word), Some(new)) } else { (Err(word), None) })
            }

            #[inline(always)]
            pub fn compare_exchange_weak(
                &self,
                old: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.compare_exchange(old, new, success, failure)
            }

            #[inline(always)]
            pub fn swap(&self, new: $int, _: Ordering) -> $int {
                self.step(|word| (word, Some(new)))
            }

            #[inline(always)]
            pub fn fetch_add(&self, n: $int, _: Ordering) -> $int {
                self.step(|word| (word, Some(word.wrapping_add(n))))
            }

            #[inline(always)]
            pub fn fetch_and(&self, n: $int, _: Ordering) -> $int {
                self.step(|word| (word, Some(word & n)))
            }

            #[inline(always)]
            pub fn fetch_max(&self, n: $int, _: Ordering) -> $int {
                self.step(|word| (word, if word < n { Some(n) } else { None }))
            }

            /// Reads the word, decides, and stores the result, all in one section.
            #[inline(always)]
            pub fn step<A>(&self, f: impl FnOnce($int) -> (A, Option<$int>)) -> A {
                with(|| {
                    // SAFETY: valid for reads and writes, and no other access overlaps the section.
                    unsafe {
                        let word = self.0 .0.get();
                        let (answer, next) = f(word.read());
                        if let Some(next) = next {
                            word.write(next);
                        }
                        answer
                    }
                })
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                // ORDERING: Relaxed; ignored here.
                self.load(Ordering::Relaxed).fmt(f)
            }
        }
    };
}

word!(AtomicU32, u32, 4);
word!(AtomicU64, u64, 8);

#[cfg(all(test, tatcell_section = "hosted"))]
mod tests {
    use super::{with, AtomicU32, AtomicU64, Masked};
    use core::cell::UnsafeCell;
    // ORDERING: Relaxed; one thread makes all accesses.
    use core::sync::atomic::{self, Ordering::Relaxed};
    use std::thread;

    /// Every operation returns and stores what the atomic's does, with operands that wrap, win and lose.
    macro_rules! as_atomics {
        ($name:ident, $int:ty) => {
            let (masked, real) = ($name::new(5), atomic::$name::new(5));
            let most = <$int>::MAX;
            // ORDERING: Relaxed; one thread.
            for n in [0, 1, 7, 7, most, 3, most - 2, 0, most / 2, 9] {
                assert_eq!(masked.fetch_add(n, Relaxed), real.fetch_add(n, Relaxed));
                assert_eq!(masked.load(Relaxed), real.load(Relaxed));
                assert_eq!(masked.fetch_max(n, Relaxed), real.fetch_max(n, Relaxed));
                assert_eq!(masked.load(Relaxed), real.load(Relaxed));
                // ORDERING: Relaxed; as above.
                for old in [n, real.load(Relaxed)] {
                    let both = (
                        masked.compare_exchange(old, n ^ 6, Relaxed, Relaxed),
                        real.compare_exchange(old, n ^ 6, Relaxed, Relaxed),
                    );
                    assert_eq!(both.0, both.1);
                }
                // ORDERING: Relaxed; as above.
                assert_eq!(masked.swap(n, Relaxed), real.swap(n, Relaxed));
                masked.store(n ^ 5, Relaxed);
                real.store(n ^ 5, Relaxed);
            }
        };
    }

    #[test]
    fn a_masked_word_does_what_the_atomic_of_its_name_does() {
        as_atomics!(AtomicU32, u32);
        as_atomics!(AtomicU64, u64);
    }

    #[test]
    fn a_hosted_section_keeps_threads_out_that_come_while_its_holder_waits() {
        const EACH: u32 = 100;
        static COUNT: Masked<u32> = Masked(UnsafeCell::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        with(|| {
                            let place = COUNT.0.get();
                            // SAFETY: only touched in a section.
                            let before = unsafe { place.read() };
                            thread::yield_now();
                            // SAFETY: as above.
                            unsafe { place.write(before + 1) };
                        });
                    }
                });
            }
        });
        // SAFETY: the threads have ended.
        assert_eq!(with(|| unsafe { COUNT.0.get().read() }), 2 * EACH);
    }
}

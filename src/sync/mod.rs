//! The one file that names an atomic type.
//!
//! Everywhere else an atomic is one of these names, so the shipped code runs unchanged under the loom model
//! checker (`--cfg tatcell_loom`) and on cores without the atomics.
//!
//! ```text
//!  target                                        AtomicU64                       AtomicU32
//!  64-bit atomics (x86-64, aarch64, s390x, ..)   core                            core
//!  hosted without (powerpc, mips, ..)            portable-atomic: `fallback`     core
//!  firmware: Cortex-M3/M4, riscv32imac           masked: the firmware's choice   core (ldrex/strex, lr/sc)
//!  firmware: Cortex-M0, riscv32imc               masked: the firmware's choice   masked: the same choice
//! ```
//!
//! The choice is explained in [`masked`]; a build that lacks one fails and says what to choose.
//! The spin lock of `portable-atomic` is for hosted systems only: on bare metal an interrupt that preempts its
//! holder would spin for ever. Nothing here uses `portable-atomic` on bare metal, so another crate that turns its
//! `fallback` on changes nothing.

#[cfg(all(tatcell_loom, test))]
pub(crate) mod loom_atomic;
pub(crate) mod masked;

#[cfg(all(tatcell_loom, test))]
pub(crate) use loom_atomic::{fence, AtomicU32, AtomicU64, Ordering};

#[cfg(not(tatcell_loom))]
pub(crate) use core::sync::atomic::{fence, Ordering};

#[cfg(all(not(tatcell_loom), target_has_atomic = "32"))]
pub(crate) use core::sync::atomic::AtomicU32;
#[cfg(all(not(tatcell_loom), not(target_has_atomic = "32")))]
pub(crate) use masked::AtomicU32;

#[cfg(all(not(tatcell_loom), target_has_atomic = "64"))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(all(not(tatcell_loom), not(target_has_atomic = "64"), not(feature = "fallback")))]
pub(crate) use masked::AtomicU64;
#[cfg(all(not(tatcell_loom), not(target_has_atomic = "64"), feature = "fallback"))]
pub(crate) use portable_atomic::AtomicU64;

// Systems where a preempted thread that holds a spin lock runs again. Small systems with priorities are not
// among them: there the thread that spins can keep the holder from running.
#[cfg(all(
    feature = "fallback",
    not(target_has_atomic = "64"),
    not(any(
        target_os = "linux",
        target_os = "android",
        target_os = "freebsd",
        target_os = "netbsd",
        target_os = "openbsd"
    ))
))]
compile_error!(
    "tatcell: `fallback` is a spin lock; on this target an interrupt or task that preempts its holder would hang. \
     Choose instead how cells are shared: `single-core` (masks interrupts), `critical-section` (the crate of that \
     name), `critical-section-c` (two C functions of the firmware) or `exclusive` (nothing is shared)."
);

/// Lost compare-and-swaps after which a call gives up with `Contended`.
///
/// At the bound nothing has been charged: the caller decides whether to drop, pass or ask again. Passing by itself
/// would over-admit, retrying for ever would let one core stall another.
pub const MAX_LOST: u32 = 8;

/// Attempts of a small step before it gives up: lost to interrupts, or failed for no reason (LL/SC).
#[allow(dead_code)] // unused where both widths are masked
const MAX_TRIES: u32 = 16;

macro_rules! step {
    ($(#[$doc:meta])* $name:ident, $atomic:ident, $int:ty, $has:meta) => {
        $(#[$doc])*
        #[cfg(any(tatcell_loom, $has))]
        #[inline(always)]
        pub(crate) fn $name<A>(word: &$atomic, f: impl Fn($int) -> (A, Option<$int>)) -> Option<A> {
            let mut tries = MAX_TRIES;
            loop {
                // ORDERING: Relaxed; the word is the whole state and orders nothing else.
                let old = word.load(Ordering::Relaxed);
                let (answer, next) = f(old);
                let Some(next) = next else { return Some(answer) };
                // ORDERING: Relaxed on both sides; as above.
                let swapped = word.compare_exchange_weak(old, next, Ordering::Relaxed, Ordering::Relaxed);
                if swapped.is_ok() {
                    return Some(answer);
                }
                tries -= 1;
                if tries == 0 {
                    return None;
                }
            }
        }
    };
}

step! {
    /// One step of a 32-bit word: `f` maps the word to an answer and what to store. None: contended, nothing stored.
    step32, AtomicU32, u32, target_has_atomic = "32"
}
step! {
    /// One step of a 64-bit word; see [`step32`].
    step64, AtomicU64, u64, any(target_has_atomic = "64", feature = "fallback")
}

/// As above where the word is changed in a masked section: the whole step is one section, and never contended.
#[cfg(not(any(tatcell_loom, target_has_atomic = "32")))]
#[inline(always)]
pub(crate) fn step32<A>(word: &AtomicU32, f: impl Fn(u32) -> (A, Option<u32>)) -> Option<A> {
    Some(word.step(f))
}

/// As above where the word is changed in a masked section: the whole step is one section, and never contended.
#[cfg(not(any(tatcell_loom, target_has_atomic = "64", feature = "fallback")))]
#[inline(always)]
pub(crate) fn step64<A>(word: &AtomicU64, f: impl Fn(u64) -> (A, Option<u64>)) -> Option<A> {
    Some(word.step(f))
}

//! The only module that names an atomic type: the types of words, the loops that change one word ([`drive`]), and how
//! the slots of a table change ([`access`]).
//!
//! All other modules import the names from here. So the shipped code runs unchanged under the loom model checker
//! (`--cfg tatcell_loom`), under the step explorer (`--cfg tatcell_step`) and on cores without such atomics.
//!
//! ```text
//!  target                                        AtomicU64                       AtomicU32
//!  64-bit atomics (x86-64, aarch64, s390x, ..)   core                            core
//!  hosted without (powerpc, mips, ..)            portable-atomic: `fallback`     core
//!  firmware: Cortex-M3/M4, riscv32imac           masked: the firmware's choice   core (ldrex/strex, lr/sc)
//!  firmware: Cortex-M0, riscv32imc               masked: the firmware's choice   masked: the same choice
//! ```
//!
//! [`masked`] explains the firmware's choice. A build without a choice fails, and the error names the options. The spin
//! lock of `portable-atomic` is for hosted systems only. On bare metal an interrupt could preempt its holder and then
//! spin for ever. The library never uses `portable-atomic` on bare metal, so it does not matter there whether another
//! crate turns on its `fallback`.

pub(crate) mod access;
#[cfg(all(tatcell_loom, test))]
pub(crate) mod loom_atomic;
pub(crate) mod masked;
#[cfg(all(tatcell_step, test))]
pub(crate) mod step_atomic;

mod drive;
mod swap;

pub use access::{Access, Exclusive, Shared};
pub use drive::MAX_LOST;
pub(crate) use drive::{add32, add64, and64, back_off, max64, step32, step64, take32, update32, update64};
pub(crate) use swap::{Look, Swap};

#[cfg(all(tatcell_loom, test))]
pub(crate) use loom_atomic::{fence, AtomicU32, AtomicU64, Ordering};
#[cfg(all(tatcell_step, test))]
pub(crate) use step_atomic::{fence, AtomicU64, Ordering};

#[cfg(not(any(tatcell_loom, tatcell_step)))]
pub(crate) use core::sync::atomic::{fence, Ordering};

#[cfg(not(any(tatcell_loom, tatcell_masked32)))]
pub(crate) use core::sync::atomic::AtomicU32;
#[cfg(tatcell_masked32)]
pub(crate) use masked::AtomicU32;

#[cfg(not(any(tatcell_loom, tatcell_step, tatcell_masked64, tatcell_portable64)))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(tatcell_masked64)]
pub(crate) use masked::AtomicU64;
#[cfg(tatcell_portable64)]
pub(crate) use portable_atomic::AtomicU64;

// These systems schedule a preempted holder of a spin lock again. Small systems with priorities are not among them:
// there the spinning thread can keep the holder from running.
#[cfg(all(
    tatcell_portable64,
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

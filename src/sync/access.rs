//! How a slot of a table is changed: by any number of threads and processes, or by its only owner.

use super::{fence, AtomicU64, Ordering};

/// How a slot is changed: by compare-and-swap, or by its only owner.
pub trait Access: sealed::Sealed {
    /// The image must be one that only this owner uses.
    #[doc(hidden)]
    const EXCLUSIVE: bool;

    /// Decides whether a handle is `Sync`.
    #[doc(hidden)]
    type Sharing;

    /// Replaces `old` by `new`; `Err` is the word found instead.
    #[doc(hidden)]
    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64>;

    /// Separates a claim from the look that follows it.
    #[doc(hidden)]
    fn fence();

    /// As [`fence`](Access::fence), where the last thing done was to [replace](Access::replace) a word.
    #[doc(hidden)]
    #[inline(always)]
    fn fence_behind_swap() {
        Self::fence();
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Shared {}
    impl Sealed for super::Exclusive {}
}

/// A table that any number of threads and processes use at once.
#[derive(Debug)]
pub enum Shared {}

/// A table with one owner at a time: plain loads and stores.
#[derive(Debug)]
pub enum Exclusive {}

impl Access for Shared {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    #[inline(always)]
    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        // ORDERING: Release pairs with the Acquire fence of an image: who saves this word saves the witness that was
        // placed before it; and no look goes behind it. Relaxed where it is lost: single word, value only.
        match slot.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(found) => Err(found),
        }
    }

    #[inline(always)]
    fn fence() {
        // ORDERING: SeqCst; pairs with the same fence of every other inserter of this tag. Of two threads that each
        // placed a claim, at least one sees the other's.
        fence(Ordering::SeqCst);
    }

    /// An x86-64 processor makes every locked instruction a fence: no later load goes before it. So only the compiler
    /// is told; what is behind it reads by assembly, as all looks of an insert do there.
    #[cfg(tatcell_sse2)]
    #[inline(always)]
    fn fence_behind_swap() {
        // ORDERING: SeqCst, of the compiler; that of the processor is the lock of the swap. Partner as of `fence`.
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    }
}

impl Access for Exclusive {
    const EXCLUSIVE: bool = true;
    type Sharing = core::cell::Cell<()>;

    #[inline(always)]
    fn replace(slot: &AtomicU64, _old: u64, new: u64) -> Result<(), u64> {
        // ORDERING: Relaxed; one owner, no rival (the exclusive handle is neither Sync nor Clone).
        slot.store(new, Ordering::Relaxed);
        Ok(())
    }

    #[inline(always)]
    fn fence() {}
}

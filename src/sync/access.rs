//! How the slot of a table changes: by any number of threads and processes at once, by one owner, or not at all.

use super::{fence, AtomicU64, Ordering};

/// Describes how slots change: by compare-and-swap ([`Shared`]), or by plain stores of one owner ([`Exclusive`]).
pub trait Access: sealed::Sealed {
    /// True if only one owner uses the image. An image that is shared must not be opened this way.
    #[doc(hidden)]
    const EXCLUSIVE: bool;

    /// Decides whether a handle is `Sync`: it is if this type is.
    #[doc(hidden)]
    type Sharing;

    /// Replaces `old` by `new`; returns `Err` with the word that it found instead.
    #[doc(hidden)]
    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64>;

    /// Keeps the scan that follows a claim from running ahead of the claim.
    #[doc(hidden)]
    fn fence();

    /// Does the same as [`fence`](Access::fence). The caller's last access must be a [`replace`](Access::replace).
    #[doc(hidden)]
    #[inline(always)]
    fn fence_behind_swap() {
        Self::fence();
    }
}

/// An [`Access`] as a value, for cold code that serves every kind of table.
pub(crate) struct Ways {
    pub replace: fn(&AtomicU64, u64, u64) -> Result<(), u64>,
    pub fence: fn(),
}

impl Ways {
    /// Returns those of a kind of table.
    #[inline(always)]
    pub const fn of<A: Access>() -> &'static Ways {
        const { &Ways { replace: A::replace, fence: A::fence } }
    }
}

/// Names what a handle may do with its table: change it ([`Access`]), or only look at it ([`ReadOnly`]).
pub trait Mode: sealed::Sealed {
    /// Whether the image must be exclusive. `None` takes either, because it only looks.
    #[doc(hidden)]
    const IMAGE: Option<bool>;

    /// Decides whether a handle is `Sync`: it is if this type is.
    #[doc(hidden)]
    type Held;
}

impl<A: Access> Mode for A {
    const IMAGE: Option<bool> = Some(A::EXCLUSIVE);
    type Held = A::Sharing;
}

impl Mode for ReadOnly {
    const IMAGE: Option<bool> = None;
    type Held = ();
}

pub(crate) mod sealed {
    pub trait Sealed {}
    impl Sealed for super::ReadOnly {}
    impl Sealed for super::Shared {}
    impl Sealed for super::Exclusive {}
}

/// The mode of a table that any number of threads and processes use at once.
#[derive(Debug)]
pub enum Shared {}

/// The mode of a table with one owner at a time: plain loads and stores.
#[derive(Debug)]
pub enum Exclusive {}

/// The mode of a handle that only looks: it stores nothing, so the memory may be mapped for reading alone.
#[derive(Debug)]
pub enum ReadOnly {}

impl Access for Shared {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    #[inline(always)]
    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        // ORDERING: Release pairs with the Acquire fence of an image: a save that sees this word sees the witness
        // placed before it; no scan moves below the swap. Relaxed on failure: single word, value only.
        match slot.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(found) => Err(found),
        }
    }

    #[inline(always)]
    fn fence() {
        // ORDERING: SeqCst; pairs with the same fence of every other inserter of this tag. If two threads have each
        // placed a claim, at least one of them sees the other's.
        fence(Ordering::SeqCst);
    }

    /// An x86-64 processor makes every locked instruction a full fence: no later load runs before it. So only the
    /// compiler is fenced; the scans of an insert, which follow it, are assembly here.
    #[cfg(tatcell_sse2)]
    #[inline(always)]
    fn fence_behind_swap() {
        // ORDERING: SeqCst, for the compiler; the locked swap is the processor's fence. Same partner as in `fence`.
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

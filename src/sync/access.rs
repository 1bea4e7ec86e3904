//! How the slot of a table changes: by any number of threads and processes at once, by one owner, or not at all.

use super::{fence, AtomicU64, Ordering};

/// Describes how slots change: by compare-and-swap ([`Shared`]), or by plain stores of one owner ([`Exclusive`]).
///
/// ```
/// use tatcell::{Access, Outcome, Table, TableError, TableLimit};
/// // Code for both kinds of table.
/// fn login<M: Access>(table: &Table<M>, limit: &TableLimit, now: u64, user: &str) -> Result<bool, TableError> {
///     Ok(table.check(limit, now, user.as_bytes(), 1)? == Outcome::Conforming)
/// }
/// # use tatcell::{ExclusiveTable, LimitSpec, Line, TableOptions};
/// # let (spec, mut lines) = (LimitSpec::new(1, 1_000, 1), [const { Line::EMPTY }; 66]);
/// # let table = ExclusiveTable::init_exclusive(&mut lines, &TableOptions::new(spec).seed([7; 16]))?;
/// # let limit = table.limit(&spec)?;
/// assert!(login(&table, &limit, 0, "alice")?);
/// assert!(!login(&table, &limit, 0, "alice")?);
/// # Ok::<(), TableError>(())
/// ```
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
///
/// ```
/// use tatcell::{Mode, Table};
/// // Code for tables that may be changed and for those that may not.
/// fn is_crowded<M: Mode>(table: &Table<M>, now: u64) -> bool {
///     table.stats(now).load_ppm > 700_000
/// }
/// # use tatcell::{AttachOptions, LimitSpec, Line, ReadOnlyTable, TableOptions};
/// # let (spec, lines) = (LimitSpec::new(1, 1_000, 1), [const { Line::EMPTY }; 66]);
/// # let table = Table::init(&lines, &TableOptions::new(spec).seed([7; 16]))?;
/// # let monitor = ReadOnlyTable::attach_read_only(&lines, &AttachOptions::new())?;
/// assert!(!is_crowded(&table, 0) && !is_crowded(&monitor, 0));
/// # Ok::<(), tatcell::TableError>(())
/// ```
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
///
/// ```
/// use tatcell::{Line, LimitSpec, Shared, Table, TableOptions};
/// static MEMORY: [Line; 66] = [Line::EMPTY; 66];
/// let spec = LimitSpec::new(10, 1_000, 20); // ticks are milliseconds
/// let table: Table<'static, Shared> = Table::init(&MEMORY, &TableOptions::new(spec).seed([7; 16]))?;
/// let limit = table.limit(&spec)?;
/// let ask = move || (0..10).filter(|_| table.check(&limit, 0, b"192.0.2.1", 1).unwrap().passes()).count();
/// let threads = [(); 4].map(|()| std::thread::spawn(ask));
/// assert!(threads.map(|thread| thread.join().unwrap()).iter().sum::<usize>() <= 20);
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Debug)]
pub enum Shared {}

/// The mode of a table with one owner at a time: plain loads and stores.
///
/// ```
/// use tatcell::{Exclusive, Line, LimitSpec, Table, TableOptions};
/// let (spec, mut lines) = (LimitSpec::new(10, 1_000, 20), [const { Line::EMPTY }; 66]);
/// let table = Table::<Exclusive>::init_exclusive(&mut lines, &TableOptions::new(spec).seed([7; 16]))?;
/// assert!(table.check(&table.limit(&spec)?, 0, b"192.0.2.1", 20)?.passes());
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Debug)]
pub enum Exclusive {}

/// The mode of a handle that only looks: it stores nothing, so the memory may be mapped for reading alone.
///
/// ```
/// use tatcell::{AttachOptions, LimitSpec, Line, ReadOnly, Table, TableOptions};
/// let (spec, lines) = (LimitSpec::new(10, 1_000, 20), [const { Line::EMPTY }; 66]);
/// let table = Table::init(&lines, &TableOptions::new(spec).seed([7; 16]))?;
/// assert!(table.check(&table.limit(&spec)?, 0, b"192.0.2.1", 20)?.passes());
/// let seen: Table<ReadOnly> = Table::attach_read_only(&lines, &AttachOptions::new())?; // it has no check
/// assert_eq!(seen.stats(0).live, 1);
/// # Ok::<(), tatcell::TableError>(())
/// ```
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

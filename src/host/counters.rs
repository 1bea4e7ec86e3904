//! Counters in named memory: a program counts, and others look.

use core::ffi::CStr;

use super::{HostError, Memory};
use crate::table::counter_blocks::{blocks, is_fresh, lines_for_blocks, publish, sum, NoCounters, HEADER};
use crate::table::{Counters, Line};

/// Opens named memory with counters of so many threads: creates it, or attaches to it. Finishes what a creator left
/// that died: to give the memory its size and to publish it are the same for all that open it, however often they are
/// done.
pub(crate) fn open(name: &CStr, threads: usize, mode: u32) -> Result<Memory, HostError> {
    let lines = lines_for_blocks(threads).ok_or(HostError::BadSize)?;
    let bytes = lines.checked_mul(size_of::<Line>()).ok_or(HostError::BadSize)?;
    let memory = Memory::open_or_create(name, bytes, mode)?;
    if is_fresh(memory.lines()) {
        publish(memory.lines());
    }
    check(memory.lines())?;
    Ok(memory)
}

/// Maps counters for reading alone.
pub(crate) fn look(name: &CStr) -> Result<Memory, HostError> {
    let memory = Memory::attach_to_read(name, 0)?;
    check(memory.lines())?;
    Ok(memory)
}

/// Returns the number of blocks in these lines.
pub(crate) fn check(lines: &[Line]) -> Result<usize, HostError> {
    blocks(lines).map_err(|no| match no {
        NoCounters::NotReady => HostError::NotReady,
        NoCounters::Other => HostError::NotCounters,
    })
}

/// Counters of several threads in named memory, which other processes may read.
///
/// Each thread counts in a block of its own, by plain additions: a decision costs what it costs with private counters.
/// If two threads or processes count in one block, counts are lost, and nothing else happens. So give each its number,
/// and open the memory once in a process.
///
/// ```
/// use tatcell::host::{unlink, ReadOnlyCounters, SharedCounters};
/// let name = c"/tatcell-doc-counters";
/// let mut counters = SharedCounters::open(name, 2, 0o640)?;
/// let [first, second] = counters.blocks() else { panic!("two threads") };
/// first.conforming += 3; // in a program, calls with `Some(first)` do this
/// second.non_conforming += 1;
///
/// let seen = ReadOnlyCounters::attach(name)?; // another process
/// assert_eq!((seen.sum().conforming, seen.sum().non_conforming), (3, 1));
/// unlink(name)?;
/// # Ok::<(), tatcell::host::HostError>(())
/// ```
#[derive(Debug)]
pub struct SharedCounters(Memory);

impl SharedCounters {
    /// Creates the memory, or attaches to it if it exists. Counts go on where they were. `name` and `mode` are those of
    /// [`Memory::create`].
    ///
    /// If a creator died before it was done, the next opener finishes its work. So memory of this name and size that is
    /// all zero is taken for counters: give a table another name.
    ///
    /// # Errors
    /// Those of [`Memory::create`] and [`Memory::attach`]: [`HostError::WrongSize`] if it was made for another number
    /// of threads. [`HostError::NotCounters`] for other memory. [`HostError::System`] (1, EPERM) if the file belongs to
    /// another user, who could truncate it and so end this process: only root's and this user's own are taken.
    pub fn open(name: &CStr, threads: usize, mode: u32) -> Result<SharedCounters, HostError> {
        open(name, threads, mode).map(SharedCounters)
    }

    /// Returns the blocks, one for each thread.
    pub fn blocks(&mut self) -> &mut [Counters] {
        let count = check(self.0.lines()).unwrap_or(0);
        let first = self.0.as_ptr().wrapping_add(HEADER * size_of::<Line>());
        // SAFETY: `count` blocks lie in the mapping, aligned, and any bytes are counters. The mapping lasts as long as
        // self, which is borrowed; nothing else of this object refers to it.
        unsafe { core::slice::from_raw_parts_mut(first.cast(), count) }
    }

    /// Keeps the mapping for the rest of the process, for threads that outlive the caller.
    pub fn leak(mut self) -> &'static mut [Counters] {
        let blocks = core::ptr::from_mut(self.blocks());
        core::mem::forget(self);
        // SAFETY: as in `blocks`; never unmapped, because it is forgotten here.
        unsafe { &mut *blocks }
    }

    /// Returns the sum of all blocks.
    pub fn sum(&self) -> Counters {
        sum(self.0.lines())
    }
}

/// The counters of another process, mapped for reading alone.
///
/// ```
/// use tatcell::host::{unlink, ReadOnlyCounters, SharedCounters};
/// let name = c"/tatcell-doc-read-only-counters";
/// let _theirs = SharedCounters::open(name, 1, 0o640)?; // another process
/// assert_eq!(ReadOnlyCounters::attach(name)?.sum().conforming, 0);
/// unlink(name)?;
/// # Ok::<(), tatcell::host::HostError>(())
/// ```
#[derive(Debug)]
pub struct ReadOnlyCounters(Memory);

impl ReadOnlyCounters {
    /// Maps the counters of this name. It needs no permission to write.
    ///
    /// # Errors
    /// Those of [`ReadOnlyMemory::attach`](super::ReadOnlyMemory::attach), and [`HostError::NotCounters`].
    pub fn attach(name: &CStr) -> Result<ReadOnlyCounters, HostError> {
        look(name).map(ReadOnlyCounters)
    }

    /// Returns the sum of all blocks. Each count is as of its load.
    pub fn sum(&self) -> Counters {
        sum(self.0.lines())
    }
}

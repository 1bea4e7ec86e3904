//! Counters in named memory: a program counts, and others look.

use core::ffi::CStr;
use core::ops::Range;

use super::names::File;
use super::{HostError, Memory};
use crate::table::counter_blocks::{blocks, is_fresh, lines_for_blocks, publish, sum, NoCounters, HEADER};
use crate::table::{Counters, Line};

/// Opens named memory with counters for this many threads: creates it, or attaches to it. Finishes what a creator left
/// that died: to give the memory its size and to publish it are the same for all that open it, however often they are
/// done. `lock` locks the blocks that the caller counts in.
fn open_with<R>(
    name: &CStr,
    threads: usize,
    mode: u32,
    lock: impl FnOnce(&File) -> Result<R, HostError>,
) -> Result<(Memory, R), HostError> {
    let lines = lines_for_blocks(threads).ok_or(HostError::BadSize)?;
    let bytes = lines.checked_mul(size_of::<Line>()).ok_or(HostError::BadSize)?;
    let (memory, locked) = Memory::open_or_create(name, bytes, mode, lock)?;
    if is_fresh(memory.lines()) {
        publish(memory.lines());
    }
    check(memory.lines())?;
    Ok((memory, locked))
}

/// Opens counters, and takes the first `count` blocks that nobody has, at a multiple of `count`. Returns the number of
/// the first one.
pub(crate) fn open(
    name: &CStr,
    threads: usize,
    count: usize,
    mode: u32,
) -> Result<(Memory, usize), HostError> {
    if count == 0 || count > threads {
        return Err(HostError::BadSize);
    }
    open_with(name, threads, mode, |file| {
        let mut first = 0usize;
        while threads.saturating_sub(first) >= count {
            match file.lock(first, count) {
                Ok(true) => return Ok(first),
                Ok(false) => {}
                // Where nothing locks, each program has a name of its own, and so all of its blocks.
                Err(HostError::Unsupported) if count == threads => return Ok(0),
                Err(e) => return Err(e),
            }
            first = first.saturating_add(count);
        }
        Err(HostError::Taken)
    })
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
/// If two threads count in one block, counts are lost, and nothing else happens. So give each its number. No other
/// process can open blocks that this one has: a lock on the file keeps it out, until this process and those that it has
/// forked have ended, or have unmapped the memory. (On 64-bit Linux, if the file system has locks. Elsewhere give each
/// program a name of its own.)
///
/// ```
/// use tatcell::host::{unlink, HostError, ReadOnlyCounters, SharedCounters};
/// let name = c"/tatcell-doc-counters";
/// let mut counters = SharedCounters::open(name, 2, 0o640)?;
/// let [first, second] = counters.blocks() else { panic!("two threads") };
/// first.conforming += 3; // in a program, calls with `Some(first)` do this
/// second.non_conforming += 1;
///
/// let seen = ReadOnlyCounters::attach(name)?; // another process
/// assert_eq!((seen.sum().conforming, seen.sum().non_conforming), (3, 1));
/// unlink(name)?;
/// # Ok::<(), HostError>(())
/// ```
#[derive(Debug)]
pub struct SharedCounters {
    memory: Memory,
    taken: Range<usize>,
}

impl SharedCounters {
    /// Creates the memory, or attaches to it if it exists, and takes all blocks. Counts go on where they were. `name`
    /// and `mode` are those of [`Memory::create`].
    ///
    /// If a creator died before it was done, the next opener finishes its work. So memory of this name and size that is
    /// all zero is taken for counters: give a table another name.
    ///
    /// # Errors
    /// Those of [`Memory::create`] and [`Memory::attach`]: [`HostError::WrongSize`] if it was made for another number
    /// of threads. [`HostError::Taken`] if another process has one of the blocks, or this one has opened it before:
    /// drop that object first. [`HostError::NotCounters`] for other memory. [`HostError::System`] (1, EPERM) if the
    /// file belongs to another user, who could truncate it and so end this process: only root's and this user's own
    /// are taken.
    pub fn open(name: &CStr, threads: usize, mode: u32) -> Result<SharedCounters, HostError> {
        SharedCounters::open_some(name, threads, threads, mode)
    }

    /// Does the same, but takes only the first `count` blocks that nobody has. For programs of several processes that
    /// count under one name, or of which the next version starts before the last one has ended.
    ///
    /// # Errors
    /// As [`open`](SharedCounters::open); [`HostError::Taken`] if fewer are free.
    /// [`HostError::Unsupported`] if this system, or the file system of the name, has no such locks.
    pub fn open_some(
        name: &CStr,
        threads: usize,
        count: usize,
        mode: u32,
    ) -> Result<SharedCounters, HostError> {
        let (memory, first) = open(name, threads, count, mode)?;
        Ok(SharedCounters { memory, taken: first..first.saturating_add(count) })
    }

    /// Returns the blocks that were taken, one for each thread.
    pub fn blocks(&mut self) -> &mut [Counters] {
        let count = check(self.memory.lines()).unwrap_or(0);
        let first = self.memory.as_ptr().wrapping_add(HEADER * size_of::<Line>());
        // SAFETY: `count` blocks lie in the mapping, aligned, and any bytes are counters. The mapping lasts as long as
        // self, which is borrowed; nothing else of this object refers to it.
        let blocks: &mut [Counters] = unsafe { core::slice::from_raw_parts_mut(first.cast(), count) };
        blocks.get_mut(self.taken.clone()).unwrap_or_default()
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
        sum(self.memory.lines())
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

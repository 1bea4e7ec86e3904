//! Memory for tables: whole pages from the system, never from a heap.
//!
//! ```text
//!  asked for      what happens                                        Pages
//!  anonymous      mmap                                                Normal
//!  huge           1. mmap with 2 MiB pages from the reserved pool     Huge      all of it, or the call fails
//!                 2. mmap aligned to 2 MiB, madvise(MADV_HUGEPAGE)    Advised   as many as the kernel finds
//!                 3. neither                                          Normal
//!  named          create: open exclusively, allocate, mmap            Normal    (a path in hugetlbfs: huge pages)
//!                 attach: open, compare sizes, mmap
//!                 look: open for reading, mmap for reading            `ReadOnlyMemory`
//! ```
//!
//! `Advised` is a request. [`Memory::huge_bytes`] asks the kernel how many huge pages there are, once the memory has
//! been written (initialising a table writes all of it).

use core::ffi::{c_int, c_void, CStr};
use core::ptr::NonNull;

use super::names::{self, File};
use super::{last_error, smaps, HostError};
use crate::table::{AttachOptions, Line, ReadOnlyTable, TableError};

/// The size of the huge pages that are asked for.
pub(super) const HUGE: usize = 2 << 20;

/// Says which pages the system gave.
///
/// ```
/// use tatcell::host::{Memory, Pages};
/// assert_eq!(Memory::anonymous(4_096)?.pages(), Pages::Normal);
/// let large = Memory::huge(2 << 20)?; // what it got depends on the system
/// println!("{:?} pages", large.pages());
/// # Ok::<(), tatcell::host::HostError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Pages {
    /// Pages of the usual size.
    Normal = 0,
    /// The kernel was asked to use huge pages where possible.
    Advised = 1,
    /// All of the memory lies on huge pages from the reserved pool.
    Huge = 2,
}

/// Owns a mapping: zeroed when fresh, aligned to a page, unmapped when dropped.
///
/// ```
/// use tatcell::{host::Memory, lines_for, LimitSpec, Table, TableOptions};
/// let memory = Memory::huge(lines_for(100_000) * 64)?;
/// let options = TableOptions::new(LimitSpec::new(10, 1_000_000_000, 20)).seed(*b"use getrandom() ");
/// let table = Table::init(memory.lines(), &options).unwrap();
/// # let _ = table;
/// # Ok::<(), tatcell::host::HostError>(())
/// ```
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    pages: Pages,
    shared: bool,
}

// SAFETY: it owns its mapping, and hands out only lines of atomics, or `&mut` from `&mut`.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Calls mmap once.
fn map(bytes: usize, flags: c_int, fd: c_int) -> Result<NonNull<u8>, HostError> {
    map_for(libc::PROT_READ | libc::PROT_WRITE, bytes, flags, fd)
}

/// Does the same for reading and writing, or for reading alone.
fn map_for(use_: c_int, bytes: usize, flags: c_int, fd: c_int) -> Result<NonNull<u8>, HostError> {
    // SAFETY: no address is given, so nothing that exists is touched.
    let p = unsafe { libc::mmap(core::ptr::null_mut(), bytes, use_, flags, fd, 0) };
    if p == libc::MAP_FAILED {
        return Err(last_error());
    }
    NonNull::new(p.cast()).ok_or(HostError::Unsupported)
}

/// Calls munmap once, but not for 0 bytes.
///
/// # Safety
/// The range must be (part of) a mapping that nobody uses any more, or no mapping at all.
pub(crate) unsafe fn unmap(start: *mut u8, bytes: usize) -> Result<(), HostError> {
    // SAFETY: passed on.
    if bytes == 0 || unsafe { libc::munmap(start.cast::<c_void>(), bytes) } == 0 {
        Ok(())
    } else {
        Err(last_error())
    }
}

/// Checks a size and rounds it up to whole units.
fn whole(bytes: usize, unit: usize) -> Result<usize, HostError> {
    match bytes.checked_next_multiple_of(unit) {
        Some(b) if b != 0 && b <= isize::MAX as usize => Ok(b),
        _ => Err(HostError::BadSize),
    }
}

impl Memory {
    /// The most bytes of a name ("/limits"), with its slash, without its final 0. Some systems take less: Apple's 31.
    pub const MAX_NAME: usize = names::MAX_NAME;

    /// The most bytes of a path ("/run/app/limits"), without the 0 at its end. File systems take at most 255 bytes for
    /// each part.
    pub const MAX_PATH: usize = names::MAX_PATH;

    /// Maps zeroed memory of this process, at least `bytes`.
    ///
    /// # Errors
    /// [`HostError::BadSize`]; [`HostError::System`] with the error of mmap (12, ENOMEM: none left).
    pub fn anonymous(bytes: usize) -> Result<Memory, HostError> {
        Memory::new(bytes, false, false)
    }

    /// Maps zeroed memory, rounded up to whole huge pages; [`pages`](Self::pages) says which pages it got.
    ///
    /// # Errors
    /// The same as those of [`anonymous`](Self::anonymous); a lack of huge pages is no error.
    pub fn huge(bytes: usize) -> Result<Memory, HostError> {
        Memory::new(bytes, true, false)
    }

    /// Maps zeroed memory, on huge pages or not. Processes that are forked later share it (`fork_shared`) or copy it.
    ///
    /// # Errors
    /// The same as those of [`anonymous`](Self::anonymous).
    pub fn new(bytes: usize, huge: bool, fork_shared: bool) -> Result<Memory, HostError> {
        let sharing = if fork_shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
        let flags = sharing | libc::MAP_ANON;
        if !huge {
            let bytes = whole(bytes, size_of::<Line>())?;
            return Ok(Memory {
                start: map(bytes, flags, -1)?,
                bytes,
                pages: Pages::Normal,
                shared: fork_shared,
            });
        }
        let bytes = whole(bytes, HUGE)?;
        #[cfg(tatcell_linux)]
        {
            // 21 is log2 of 2 MiB, at the position from which mmap reads it. The pages are reserved now, so their later
            // use cannot fail.
            let pool = libc::MAP_HUGETLB | 21 << 26;
            if let Ok(start) = map(bytes, flags | pool, -1) {
                return Ok(Memory { start, bytes, pages: Pages::Huge, shared: fork_shared });
            }
        }
        let start = aligned(bytes, flags)?;
        Ok(Memory { start, bytes, pages: advise(start, bytes), shared: fork_shared })
    }

    /// Creates memory to which other processes can attach by name. It is exclusive: there is one creator.
    ///
    /// `name` has one of two forms, which differ in the number of slashes:
    ///
    /// - a name, "/limits": shared memory that vanishes with the system. Its only slash comes first; at most
    ///   [`MAX_NAME`](Self::MAX_NAME) bytes.
    /// - an absolute path, "/run/app/limits": memory that is a file. In a hugetlbfs it lies on huge pages, and `bytes`
    ///   must be whole ones. Its folder must exist. At most [`MAX_PATH`](Self::MAX_PATH) bytes; not "//" at the start.
    ///
    /// In both, the part after the last slash is not empty, "." or "..". Everything else is [`HostError::BadName`].
    ///
    /// `mode` are permission bits, less the umask: 0o600 is for this user only. All of the memory is allocated here, so
    /// a full file system is an error now and not a SIGBUS later.
    ///
    /// The creator then makes the table in the memory. The others [`attach`](Self::attach), and retry while the table
    /// is not ready. If the creator dies before that, the name stays: [`unlink`](super::unlink) it.
    ///
    /// # Errors
    /// [`HostError::Exists`]: attach instead. [`HostError::NoFolder`]: make the folder of the path first.
    /// [`HostError::Unsupported`]: this system has no named shared memory (Android; a root folder without /dev/shm):
    /// use a path. [`HostError::BadName`], [`HostError::BadSize`], [`HostError::System`] (28, ENOSPC: no room). On
    /// error nothing is left behind.
    pub fn create(name: &CStr, bytes: usize, mode: u32) -> Result<Memory, HostError> {
        let bytes = whole(bytes, size_of::<Line>())?;
        let file = names::create(name, mode)?;
        let made = file.reserve(bytes).and_then(|()| Memory::of(&file, bytes));
        if made.is_err() {
            let _ = names::unlink(name);
        }
        made
    }

    /// Attaches to memory that another process has [created](Self::create) under this name. `bytes` is the size that
    /// the creator gave, or 0 for any size.
    ///
    /// On Linux the name may also be the path at which a map of BPF is pinned: see [`ReadOnlyMemory`].
    ///
    /// A table does not trust the contents of the memory. But a process that may write the file can also truncate it,
    /// and touching the missing part ends a process (SIGBUS): use names that only trusted users can write.
    ///
    /// # Errors
    /// [`HostError::Absent`] (no such name, or no such folder), [`HostError::NotReady`] (created but not sized yet):
    /// ask again. [`HostError::WrongSize`], [`HostError::BadName`], [`HostError::System`] (13, EACCES: not allowed).
    /// [`HostError::Unsupported`] if what is pinned there is no map of lines that can be mapped.
    pub fn attach(name: &CStr, bytes: usize) -> Result<Memory, HostError> {
        #[cfg(tatcell_linux)]
        if let Some(memory) = Memory::of_pin(name, bytes, libc::PROT_READ | libc::PROT_WRITE)? {
            return Ok(memory);
        }
        Memory::attach_named(name, bytes)
    }

    /// Does the same for shared memory and files alone.
    pub(crate) fn attach_named(name: &CStr, bytes: usize) -> Result<Memory, HostError> {
        let file = names::open(name)?;
        let found = expected_size(&file, bytes)?;
        Memory::of(&file, found)
    }

    /// Opens the name, or creates it: for contents that all who open it make alike, so that none waits for another, and
    /// each finishes what one left that died. On error the name stays, because others may use it already. A file of
    /// another user than this one and root is refused (EPERM). `lock` may lock parts of the file: see [`File::lock`].
    pub(super) fn open_or_create<R>(
        name: &CStr,
        bytes: usize,
        mode: u32,
        lock: impl FnOnce(&File) -> Result<R, HostError>,
    ) -> Result<(Memory, R), HostError> {
        let bytes = whole(bytes, size_of::<Line>())?;
        let file = match names::create(name, mode) {
            Err(HostError::Exists) => names::open(name)?,
            made => made?,
        };
        // Whoever owns the file can truncate it, which ends every process that has mapped it.
        if !file.is_trusted()? {
            return Err(HostError::System(libc::EPERM));
        }
        file.reserve_if_empty(bytes)?;
        let found = expected_size(&file, bytes)?;
        let locked = lock(&file)?;
        Ok((Memory::of(&file, found)?, locked))
    }

    /// Maps a map of BPF that is pinned at this path; `None` if the path is no pin.
    #[cfg(tatcell_linux)]
    fn of_pin(name: &CStr, bytes: usize, use_: c_int) -> Result<Option<Memory>, HostError> {
        let Some((map, found)) = super::bpf::open(name)? else { return Ok(None) };
        if bytes != 0 && whole(bytes, size_of::<Line>())? != found {
            return Err(HostError::WrongSize);
        }
        let start = map_for(use_, found, libc::MAP_SHARED, map.fd())?;
        Ok(Some(Memory { start, bytes: found, pages: Pages::Normal, shared: true }))
    }

    /// Maps a file; the mapping outlives the descriptor.
    fn of(file: &File, bytes: usize) -> Result<Memory, HostError> {
        let start = map(bytes, libc::MAP_SHARED, file.fd())?;
        Ok(Memory { start, bytes, pages: Pages::Normal, shared: true })
    }

    /// Maps named memory for reading alone: any store faults. So only [`ReadOnlyMemory`] and the C layer, whose callers
    /// the header tells, may have it.
    pub(crate) fn attach_to_read(name: &CStr, bytes: usize) -> Result<Memory, HostError> {
        let file = names::open_to_read(name)?;
        let bytes = expected_size(&file, bytes)?;
        let start = map_for(libc::PROT_READ, bytes, libc::MAP_SHARED, file.fd())?;
        Ok(Memory { start, bytes, pages: Pages::Normal, shared: true })
    }

    /// Returns how many bytes are mapped: at least as many as were asked for.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns which pages the system gave.
    pub const fn pages(&self) -> Pages {
        self.pages
    }

    /// Returns how many bytes lie on huge pages now; untouched memory lies on none. Reads a file of the kernel, which
    /// is slow: not for the hot path.
    ///
    /// # Errors
    /// [`HostError::Unsupported`] if the kernel does not report it (Linux does, in /proc/self/smaps);
    /// [`HostError::System`] if that file cannot be read.
    pub fn huge_bytes(&self) -> Result<usize, HostError> {
        smaps::huge_bytes(self.start.addr().get(), self.bytes)
    }

    /// Returns the address at which it starts.
    pub const fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns the memory as lines for a shared table.
    pub fn lines(&self) -> &[Line] {
        // SAFETY: mapped for as long as self, page-aligned, and any bytes are valid atomics.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes / size_of::<Line>()) }
    }

    /// Returns the memory as lines for an exclusive table; `None` if other processes may have mapped it.
    pub fn lines_mut(&mut self) -> Option<&mut [Line]> {
        if self.shared {
            return None;
        }
        let count = self.bytes / size_of::<Line>();
        // SAFETY: as in `lines`; private to the process and borrowed uniquely, so nobody else has it.
        Some(unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr().cast(), count) })
    }

    /// Keeps the mapping for the rest of the process.
    pub fn leak(self) -> &'static [Line] {
        // SAFETY: as in `lines`; never unmapped, because it is forgotten here.
        let lines = unsafe {
            core::slice::from_raw_parts(self.start.as_ptr().cast::<Line>(), self.bytes / size_of::<Line>())
        };
        core::mem::forget(self);
        lines
    }
}

/// Returns the size of a file, which should be `bytes` or, if that is 0, any.
fn expected_size(file: &File, bytes: usize) -> Result<usize, HostError> {
    let found = file.size()?;
    let expected = if bytes == 0 { found } else { whole(bytes, size_of::<Line>())? };
    if found == 0 {
        Err(HostError::NotReady)
    } else if found != expected || found > isize::MAX as usize {
        Err(HostError::WrongSize)
    } else {
        Ok(found)
    }
}

/// Named memory that is mapped for reading alone, to look at the table in it: shared memory, a file, or a saved image
/// in a file. Permission to write is not needed.
///
/// On Linux also a map of BPF, at the path where it is pinned: an array that can be mapped, with a line in each
/// element. The kernel then asks for permission to write the pin, and, unless it lets all users call bpf(2), for
/// CAP_BPF.
///
/// ```no_run
/// use tatcell::{host::ReadOnlyMemory, AttachOptions};
/// let memory = ReadOnlyMemory::attach(c"/limits", 0)?;
/// let table = memory.table(&AttachOptions::new())?;
/// println!("{} of {} slots are live", table.stats(0).live, table.info().slots);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ReadOnlyMemory(Memory);

impl ReadOnlyMemory {
    /// Maps the memory of this name, as [`Memory::attach`] does, but opens and maps it for reading alone. `bytes` is
    /// the size that it must have, or 0 for any size.
    ///
    /// # Errors
    /// The errors of [`Memory::attach`]; [`HostError::System`] (13, EACCES) if it may not be read;
    /// [`HostError::Unsupported`] if what is pinned there is no map of lines that can be mapped.
    pub fn attach(name: &CStr, bytes: usize) -> Result<ReadOnlyMemory, HostError> {
        #[cfg(tatcell_linux)]
        if let Some(memory) = Memory::of_pin(name, bytes, libc::PROT_READ)? {
            return Ok(ReadOnlyMemory(memory));
        }
        Memory::attach_to_read(name, bytes).map(ReadOnlyMemory)
    }

    /// Returns how many bytes are mapped.
    pub const fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Attaches to the table in this memory, only to look at it.
    ///
    /// # Errors
    /// The errors of [`Table::attach_read_only`](crate::Table::attach_read_only).
    pub fn table(&self, options: &AttachOptions) -> Result<ReadOnlyTable<'_>, TableError> {
        // The handle stores nothing, and the lines are not lent to anybody who may.
        ReadOnlyTable::attach_read_only(self.0.lines(), options)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this object's own, and no borrow of it is left.
        let _ = unsafe { unmap(self.start.as_ptr(), self.bytes) };
    }
}

/// Maps memory that starts on a huge-page boundary: maps one huge page more, and unmaps both ends.
fn aligned(bytes: usize, flags: c_int) -> Result<NonNull<u8>, HostError> {
    let all = bytes.checked_add(HUGE).ok_or(HostError::BadSize)?;
    let start = map(all, flags, -1)?;
    let before = start.as_ptr().align_offset(HUGE);
    if before >= HUGE {
        // SAFETY: just mapped, unused.
        unsafe { unmap(start.as_ptr(), all)? };
        return Err(HostError::Unsupported);
    }
    // SAFETY: before < HUGE, so these are the two ends of what was just mapped, and nobody uses them.
    unsafe {
        unmap(start.as_ptr(), before)?;
        let first = start.add(before);
        unmap(first.as_ptr().add(bytes), HUGE - before)?;
        Ok(first)
    }
}

/// Asks for huge pages.
fn advise(start: NonNull<u8>, bytes: usize) -> Pages {
    #[cfg(tatcell_linux)]
    // SAFETY: this range has just been mapped; advice does not change its contents.
    if unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) } == 0 {
        return Pages::Advised;
    }
    let _ = (start, bytes);
    Pages::Normal
}

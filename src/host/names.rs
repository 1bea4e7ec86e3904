//! Names of shared memory, and the files behind them.
//!
//! ```text
//!  "/limits"            a name: shared memory, on Linux the file /dev/shm/limits, elsewhere shm_open
//!  "/run/app/limits"    a path: a file
//!
//!  name = "/" part              at most MAX_NAME bytes; its only slash comes first
//!  path = "/" .. "/" part       at most MAX_PATH bytes; not "//" first: that may be meant as a name
//!  part = bytes without "/"     not empty; not "." and "..", which are folders
//! ```
//!
//! Everything else is [`HostError::BadName`], before the system sees it. The system checks what stands between the
//! first and the last slash of a path.
//!
//! On Linux a name is opened as a file, as shm_open itself does. Older C libraries keep shm_open in a separate library,
//! and one missing symbol would keep a program from starting.

use core::ffi::{c_int, CStr};

use super::{last_error, HostError};

/// The value of [`Memory::MAX_NAME`](super::Memory::MAX_NAME).
pub(super) const MAX_NAME: usize = 255;

/// The value of [`Memory::MAX_PATH`](super::Memory::MAX_PATH).
pub(super) const MAX_PATH: usize = 1023;

#[cfg(tatcell_linux)]
const SHM: &[u8] = b"/dev/shm";

/// An open file, closed when dropped.
#[derive(Debug)]
pub(super) struct File(c_int);

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this object's own.
        let _ = unsafe { libc::close(self.0) };
    }
}

impl File {
    /// Takes a descriptor that nobody else closes.
    #[cfg(tatcell_linux)]
    pub fn of(fd: c_int) -> File {
        File(fd)
    }

    /// Opens a file of the system for reading.
    #[cfg(not(tatcell_getentropy))]
    pub fn to_read(path: &CStr) -> Result<File, HostError> {
        // SAFETY: the path is a string with a terminating 0.
        match unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) } {
            -1 => Err(last_error()),
            fd => Ok(File(fd)),
        }
    }

    pub fn fd(&self) -> c_int {
        self.0
    }

    /// Whether it belongs to the user of this process, or to root.
    pub fn is_trusted(&self) -> Result<bool, HostError> {
        let owner = self.owner()?;
        // SAFETY: it takes nothing and always succeeds.
        Ok(owner == 0 || owner == unsafe { libc::geteuid() })
    }

    /// Asks by the number of the call: older C libraries have no function `statx`, and no symbol `fstat`.
    #[cfg(tatcell_linux)]
    fn owner(&self) -> Result<libc::uid_t, HostError> {
        const AT_EMPTY_PATH: c_int = 0x1000;
        const STATX_UID: c_int = 8;
        // struct statx, of which the sixth number is stx_uid.
        let mut found = [0u32; 64];
        // SAFETY: an open descriptor and an empty string; the place has the size of the structure.
        let done = unsafe {
            libc::syscall(libc::SYS_statx, self.0, c"".as_ptr(), AT_EMPTY_PATH, STATX_UID, found.as_mut_ptr())
        };
        match (done, found) {
            (0, [_, _, _, _, _, uid, ..]) => Ok(uid),
            _ => Err(last_error()),
        }
    }

    #[cfg(not(tatcell_linux))]
    fn owner(&self) -> Result<libc::uid_t, HostError> {
        let mut found = core::mem::MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: an open descriptor, and the place is large enough.
        if unsafe { libc::fstat(self.0, found.as_mut_ptr()) } != 0 {
            return Err(last_error());
        }
        // SAFETY: zeroed, which is a value of it, and written by the call.
        Ok(unsafe { found.assume_init() }.st_uid)
    }

    /// Locks bytes of the file, unless others have locked one of them: then it returns false. They need not exist.
    ///
    /// The lock belongs to the open file, which a mapping keeps open after its descriptor is closed. So it ends with
    /// the last mapping, of this process or of one that it has forked, however they end. It is
    /// [`HostError::Unsupported`] on systems and file systems without such locks.
    #[cfg(all(tatcell_linux, target_pointer_width = "64"))]
    pub fn lock(&self, first: usize, count: usize) -> Result<bool, HostError> {
        // SAFETY: integers, for which 0 is a value; there is padding on some processors.
        let mut lock: libc::flock = unsafe { core::mem::zeroed() };
        (lock.l_type, lock.l_whence) = (libc::F_WRLCK as _, libc::SEEK_SET as _);
        (lock.l_start, lock.l_len) = (off_t(first)?, off_t(count)?);
        // SAFETY: an open descriptor, and a structure that the call reads.
        if unsafe { libc::fcntl(self.0, libc::F_OFD_SETLK, core::ptr::from_ref(&lock)) } == 0 {
            return Ok(true);
        }
        match last_error() {
            HostError::System(libc::EAGAIN | libc::EACCES) => Ok(false),
            // A file system without locks, such as some of networks; EINVAL: a system without this kind of lock.
            HostError::System(libc::ENOLCK | libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => {
                Err(HostError::Unsupported)
            }
            e => Err(e),
        }
    }

    #[cfg(not(all(tatcell_linux, target_pointer_width = "64")))]
    pub fn lock(&self, _: usize, _: usize) -> Result<bool, HostError> {
        Err(HostError::Unsupported)
    }

    /// Returns its size in bytes; 0 until the creator has allocated it.
    pub fn size(&self) -> Result<usize, HostError> {
        // SAFETY: an open descriptor; nobody reads from it, so its position does not matter.
        match unsafe { libc::lseek(self.0, 0, libc::SEEK_END) } {
            -1 => Err(last_error()),
            size => usize::try_from(size).map_err(|_| HostError::BadSize),
        }
    }

    /// Gives the file its size, and allocates its pages if the file system can.
    pub fn reserve(&self, bytes: usize) -> Result<(), HostError> {
        match self.grow(bytes)? {
            true => Ok(()),
            false => self.truncate(bytes),
        }
    }

    /// The same for a file that others may give its size at this moment, perhaps another one: it never becomes smaller
    /// where the file system allocates. Elsewhere the size is read just before it is set.
    pub fn reserve_if_empty(&self, bytes: usize) -> Result<(), HostError> {
        if self.size()? != 0 || self.grow(bytes)? || self.size()? != 0 {
            return Ok(());
        }
        match self.truncate(bytes) {
            // Some systems set the size of shared memory once, and another opener was first.
            Err(e) if self.size()? == 0 => Err(e),
            _ => Ok(()),
        }
    }

    /// Allocates the pages of a file, which grows if it is smaller. Returns false if the file system cannot.
    fn grow(&self, bytes: usize) -> Result<bool, HostError> {
        let size = off_t(bytes)?;
        #[cfg(tatcell_linux)]
        for _ in 0..100 {
            // SAFETY: an open descriptor.
            if unsafe { libc::fallocate(self.0, 0, 0, size) } == 0 {
                return Ok(true);
            }
            match last_error() {
                HostError::System(libc::EINTR) => {} // a signal; again
                HostError::System(libc::EOPNOTSUPP | libc::ENOSYS) => break,
                e => return Err(e),
            }
        }
        let _ = size;
        Ok(false)
    }

    fn truncate(&self, bytes: usize) -> Result<(), HostError> {
        // SAFETY: an open descriptor.
        match unsafe { libc::ftruncate(self.0, off_t(bytes)?) } {
            0 => Ok(()),
            _ => Err(last_error()),
        }
    }
}

fn off_t(bytes: usize) -> Result<libc::off_t, HostError> {
    libc::off_t::try_from(bytes).map_err(|_| HostError::BadSize)
}

/// The meaning of a name.
enum Target<'a> {
    Path(&'a CStr),
    Shm(&'a CStr),
}

fn target(name: &CStr) -> Result<Target<'_>, HostError> {
    let [b'/', rest @ ..] = name.to_bytes() else { return Err(HostError::BadName) };
    let part = rest.rsplit(|&b| b == b'/').next().unwrap_or(&[]);
    let is_path = rest.len() != part.len();
    let longest = if is_path { MAX_PATH } else { MAX_NAME };
    match part {
        b"" | b"." | b".." => Err(HostError::BadName),
        _ if rest.starts_with(b"/") || rest.len() >= longest => Err(HostError::BadName),
        _ if is_path => Ok(Target::Path(name)),
        _ => Ok(Target::Shm(name)),
    }
}

/// Runs a call on the path of a shared-memory name.
#[cfg(tatcell_linux)]
fn with_path(name: &CStr, call: impl FnOnce(&CStr) -> c_int) -> Result<c_int, HostError> {
    let mut path = [0u8; SHM.len() + MAX_NAME + 1];
    let name = name.to_bytes_with_nul();
    path.get_mut(..SHM.len()).ok_or(HostError::BadName)?.copy_from_slice(SHM);
    path.get_mut(SHM.len()..SHM.len() + name.len()).ok_or(HostError::BadName)?.copy_from_slice(name);
    CStr::from_bytes_until_nul(&path).map(call).map_err(|_| HostError::BadName)
}

/// Opens a name; does not follow links.
fn open_with(name: &CStr, flags: c_int, mode: u32) -> Result<File, HostError> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the path is a string with a terminating 0; the mode is read only with O_CREAT.
    let open = |path: &CStr| unsafe { libc::open(path.as_ptr(), flags, mode) };
    let fd = match target(name)? {
        Target::Path(path) => open(path),
        #[cfg(tatcell_linux)]
        Target::Shm(name) => with_path(name, open)?,
        #[cfg(target_vendor = "apple")]
        // SAFETY: as above.
        Target::Shm(name) => unsafe { libc::shm_open(name.as_ptr(), flags, mode as libc::c_uint) },
        #[cfg(not(any(tatcell_linux, target_vendor = "apple")))]
        // SAFETY: as above.
        Target::Shm(name) => unsafe { libc::shm_open(name.as_ptr(), flags, mode as libc::mode_t) },
    };
    if fd >= 0 {
        return Ok(File(fd));
    }
    Err(refusal(last_error()))
}

/// Returns the meaning of the system's error for a valid name.
fn refusal(error: HostError) -> HostError {
    match error {
        HostError::System(libc::EEXIST) => HostError::Exists,
        HostError::System(libc::ENOENT) => HostError::Absent,
        // The file system allows fewer bytes than MAX_NAME or MAX_PATH.
        HostError::System(libc::ENAMETOOLONG) => HostError::BadName,
        e => e,
    }
}

pub(super) fn create(name: &CStr, mode: u32) -> Result<File, HostError> {
    open_with(name, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, mode & 0o777).map_err(|e| {
        match (e, target(name)) {
            // The file is to be made, so its folder is what is missing.
            (HostError::Absent | HostError::System(libc::ENOTDIR), Ok(Target::Path(_))) => {
                HostError::NoFolder
            }
            (HostError::Absent, Ok(Target::Shm(_))) => HostError::Unsupported,
            _ => e,
        }
    })
}

pub(super) fn open(name: &CStr) -> Result<File, HostError> {
    open_with(name, libc::O_RDWR, 0)
}

/// Opens a name only to read it.
pub(super) fn open_to_read(name: &CStr) -> Result<File, HostError> {
    open_with(name, libc::O_RDONLY, 0)
}

/// Removes a name. Processes that have mapped the memory keep it; the last of them that unmaps it frees it.
///
/// ```
/// use tatcell::host::{unlink, HostError, Memory};
/// let name = c"/tatcell-doc-unlink";
/// let memory = Memory::create(name, 4_096, 0o600)?;
/// unlink(name)?;
/// assert_eq!(unlink(name), Err(HostError::Absent)); // `memory` stays mapped
/// # drop(memory);
/// # Ok::<(), HostError>(())
/// ```
///
/// # Errors
/// [`HostError::Absent`], [`HostError::BadName`], [`HostError::System`] (13, EACCES: not allowed).
pub fn unlink(name: &CStr) -> Result<(), HostError> {
    // SAFETY: the path is a string with a terminating 0.
    let unlink = |path: &CStr| unsafe { libc::unlink(path.as_ptr()) };
    let rc = match target(name)? {
        Target::Path(path) => unlink(path),
        #[cfg(tatcell_linux)]
        Target::Shm(name) => with_path(name, unlink)?,
        #[cfg(not(tatcell_linux))]
        // SAFETY: as above.
        Target::Shm(name) => unsafe { libc::shm_unlink(name.as_ptr()) },
    };
    match rc {
        0 => Ok(()),
        _ => Err(refusal(last_error())),
    }
}

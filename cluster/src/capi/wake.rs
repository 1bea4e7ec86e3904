//! The eventfd that tells that answers wait.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};

/// An eventfd of this process: readable while it was rung and not silenced since.
pub(super) struct Bell(File);

impl Bell {
    pub(super) fn new() -> std::io::Result<Bell> {
        // SAFETY: no pointer is given; the descriptor is new, and the File's alone.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
            if fd < 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(Bell(File::from_raw_fd(fd)))
        }
    }

    pub(super) fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Makes it readable. It would block only where it is so already.
    pub(super) fn ring(&self) {
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    /// Makes it not readable, until it is rung again.
    pub(super) fn silence(&self) {
        let _ = (&self.0).read(&mut [0; 8]);
    }
}

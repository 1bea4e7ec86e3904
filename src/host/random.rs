//! Secret bytes from the system, for the seed of a table.
//!
//! ```text
//!  Linux, Android         the system call getrandom; without it (before 3.17, or forbidden) /dev/urandom, once
//!                         /dev/random says that the system has gathered enough secrets
//!  Apple, OpenBSD         getentropy
//!  other systems          /dev/urandom
//! ```
//!
//! On Linux the call is made by its number, for the reason in `names`: a missing symbol of the C library must not keep
//! a program from starting. There is no weaker source: if none of these works, the result is an error, never a clock or
//! an address.

#[cfg(not(tatcell_getentropy))]
use core::ffi::CStr;

#[cfg(not(tatcell_getentropy))]
use super::names::File;
use super::{last_error, HostError};

/// The most calls before this gives up; signals may interrupt one, and each may give less than asked.
const MAX_CALLS: u32 = 100;

/// Takes 16 secret bytes from the system: a seed for [`TableOptions::seed`](crate::TableOptions::seed).
///
/// ```
/// use tatcell::{host, LimitSpec, TableOptions};
/// let options = TableOptions::new(LimitSpec::new(10, 1_000_000_000, 20)).seed(host::random_seed()?);
/// # let _ = options;
/// # Ok::<(), host::HostError>(())
/// ```
///
/// Processes that share a table need the same bytes: one takes them and gives them to the others, by a way that
/// strangers cannot read. A system that has just started may have no secrets yet; then this waits for them.
///
/// # Errors
/// [`HostError::System`]: the system call failed, and /dev/urandom cannot be read. There is no weaker source.
///
/// # Cost
/// One system call: 0.3 us on a 2.5 GHz Xeon.
pub fn random_seed() -> Result<[u8; 16], HostError> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    Ok(bytes)
}

/// Fills a buffer of at most some hundred bytes with secret bytes; on error it may have written some of them.
#[cfg(tatcell_linux)]
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), HostError> {
    match gather(bytes, |rest| {
        // SAFETY: room for that many bytes; without flags it waits for the secrets of a fresh system.
        result(unsafe { libc::syscall(libc::SYS_getrandom, rest.as_mut_ptr(), rest.len(), 0) } as isize)
    }) {
        // An old kernel, or a filter that does not know getrandom.
        Err(HostError::System(libc::ENOSYS | libc::EPERM)) => {
            wait_for_secrets()?;
            device(c"/dev/urandom", bytes)
        }
        done => done,
    }
}

#[cfg(tatcell_getentropy)]
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), HostError> {
    gather(bytes, |rest| {
        // One call gives at most this many bytes.
        let part = rest.len().min(256);
        // SAFETY: room for that many bytes.
        result(unsafe { libc::getentropy(rest.as_mut_ptr().cast(), part) } as isize).map(|_| part)
    })
}

#[cfg(not(any(tatcell_linux, tatcell_getentropy)))]
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), HostError> {
    device(c"/dev/urandom", bytes)
}

/// Converts the result of a system call: a number of bytes, or an error.
fn result(n: isize) -> Result<usize, HostError> {
    usize::try_from(n).map_err(|_| last_error())
}

/// Fills a buffer by calls that give some bytes each. It repeats a call that a signal has interrupted, a bounded number
/// of times, because signals may never end.
fn gather(
    mut bytes: &mut [u8],
    mut some: impl FnMut(&mut [u8]) -> Result<usize, HostError>,
) -> Result<(), HostError> {
    for _ in 0..MAX_CALLS {
        if bytes.is_empty() {
            return Ok(());
        }
        match some(bytes) {
            // A device has no end, so this is not the device.
            Ok(0) => return Err(HostError::Unsupported),
            Ok(n) => bytes = bytes.get_mut(n..).ok_or(HostError::Unsupported)?,
            Err(HostError::System(libc::EINTR)) => {}
            Err(e) => return Err(e),
        }
    }
    if bytes.is_empty() {
        Ok(())
    } else {
        Err(HostError::System(libc::EINTR))
    }
}

/// Reads a device of the system.
#[cfg(not(tatcell_getentropy))]
fn device(path: &CStr, bytes: &mut [u8]) -> Result<(), HostError> {
    let file = File::to_read(path)?;
    gather(bytes, |rest| {
        // SAFETY: an open descriptor, and room for that many bytes.
        result(unsafe { libc::read(file.fd(), rest.as_mut_ptr().cast(), rest.len()) })
    })
}

/// Waits until the system has gathered enough secrets; /dev/urandom itself does not wait.
#[cfg(tatcell_linux)]
fn wait_for_secrets() -> Result<(), HostError> {
    let file = File::to_read(c"/dev/random")?;
    let mut random = libc::pollfd { fd: file.fd(), events: libc::POLLIN, revents: 0 };
    // One "byte", which is there when poll says so.
    gather(&mut [0], |_| {
        // SAFETY: one open descriptor; with -1 poll waits without a limit.
        result(unsafe { libc::poll(&mut random, 1, -1) } as isize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTED: Result<usize, HostError> = Err(HostError::System(libc::EINTR));

    /// Gathers 16 bytes from calls with these answers; each byte is the number of its call.
    fn gathered(answers: &[Result<usize, HostError>]) -> (Result<(), HostError>, [u8; 16]) {
        let (mut bytes, mut calls) = ([0; 16], 0);
        let done = gather(&mut bytes, |rest| {
            let answer = answers[calls % answers.len()];
            calls += 1;
            let n = answer?;
            rest.iter_mut().take(n).for_each(|b| *b = calls as u8);
            Ok(n.min(rest.len()))
        });
        (done, bytes)
    }

    #[test]
    fn short_and_interrupted_calls_are_joined() {
        assert_eq!(gathered(&[Ok(16)]), (Ok(()), [1; 16]));
        let (done, bytes) = gathered(&[Ok(5), INTERRUPTED, Ok(10), INTERRUPTED]);
        assert_eq!((done, bytes), (Ok(()), [1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 5]));
    }

    #[test]
    fn signals_without_end_end_it() {
        let (done, bytes) = gathered(&[INTERRUPTED]);
        assert_eq!((done, bytes), (Err(HostError::System(libc::EINTR)), [0; 16]));
    }

    #[test]
    fn an_error_or_an_end_is_not_taken_for_bytes() {
        assert_eq!(gathered(&[Ok(15), Ok(0)]).0, Err(HostError::Unsupported));
        assert_eq!(gathered(&[Ok(15), Err(HostError::System(5))]).0, Err(HostError::System(5)));
        // A call cannot give more bytes than there is room for.
        assert_eq!(gather(&mut [0; 16], |_| Ok(17)), Err(HostError::Unsupported));
    }

    #[cfg(tatcell_linux)]
    #[test]
    fn a_device_gives_what_it_gives() {
        let mut bytes = [7; 16];
        assert_eq!(device(c"/dev/null", &mut bytes), Err(HostError::Unsupported));
        assert_eq!(device(c"/no/such/device", &mut bytes), Err(HostError::System(libc::ENOENT)));
        assert_eq!(bytes, [7; 16]);
        assert_eq!((device(c"/dev/zero", &mut bytes), bytes), (Ok(()), [0; 16]));
        assert_eq!(wait_for_secrets(), Ok(()));
    }
}

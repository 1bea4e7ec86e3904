//! Secret bytes from the system, for the seed of a table.
//!
//! ```text
//!  Linux, Android         the system call getrandom; without it (before 3.17, or forbidden) /dev/urandom, once
//!                         /dev/random says that the system has gathered secrets enough
//!  Apple, OpenBSD         getentropy
//!  other systems          /dev/urandom
//! ```
//!
//! On Linux the call is made by its number, for the reason in `names`: a C library without it must not keep a program
//! from starting. Nothing is weaker than what was asked for: where none of these answers, the result is an error, and
//! never a clock or an address.

#[cfg(not(tatcell_getentropy))]
use core::ffi::CStr;

#[cfg(not(tatcell_getentropy))]
use super::names::File;
use super::{last_error, HostError};

/// Calls that may be interrupted by signals or give less than asked, before this gives up.
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
/// Processes that share a table need the same bytes: one takes them and gives them to the others, on a way that
/// strangers cannot read. While a system that has just started has no secrets yet, this waits.
///
/// # Errors
/// [`HostError::System`]: the system call failed and /dev/urandom cannot be read. There is no weaker answer.
///
/// # Cost
/// One system call: 0.3 us on a 2.5 GHz Xeon.
pub fn random_seed() -> Result<[u8; 16], HostError> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    Ok(bytes)
}

/// Fills a buffer with secret bytes, some hundred at most; on error some of it may have been written.
#[cfg(tatcell_linux)]
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), HostError> {
    match gather(bytes, |rest| {
        // SAFETY: room for that many bytes; without flags it waits for the secrets of a fresh system.
        result(unsafe { libc::syscall(libc::SYS_getrandom, rest.as_mut_ptr(), rest.len(), 0) } as isize)
    }) {
        // An old kernel, or a filter that knows no getrandom.
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
        // Most bytes that one call gives.
        let part = rest.len().min(256);
        // SAFETY: room for that many bytes.
        result(unsafe { libc::getentropy(rest.as_mut_ptr().cast(), part) } as isize).map(|_| part)
    })
}

#[cfg(not(any(tatcell_linux, tatcell_getentropy)))]
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), HostError> {
    device(c"/dev/urandom", bytes)
}

/// What a call of the system gave: bytes, or an error.
fn result(n: isize) -> Result<usize, HostError> {
    usize::try_from(n).map_err(|_| last_error())
}

/// Fills a buffer by calls that give some bytes each. A call that a signal has interrupted is made again; the bound is
/// there for signals that never end.
fn gather(
    mut bytes: &mut [u8],
    mut some: impl FnMut(&mut [u8]) -> Result<usize, HostError>,
) -> Result<(), HostError> {
    for _ in 0..MAX_CALLS {
        if bytes.is_empty() {
            return Ok(());
        }
        match some(bytes) {
            // The end of a file that has none: it is not the device.
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

/// Waits until the system has gathered secrets enough; /dev/urandom itself does not wait.
#[cfg(tatcell_linux)]
fn wait_for_secrets() -> Result<(), HostError> {
    let file = File::to_read(c"/dev/random")?;
    let mut random = libc::pollfd { fd: file.fd(), events: libc::POLLIN, revents: 0 };
    // One "byte", which is there when poll says so.
    gather(&mut [0], |_| {
        // SAFETY: one descriptor, open; -1 is no end to the wait.
        result(unsafe { libc::poll(&mut random, 1, -1) } as isize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTED: Result<usize, HostError> = Err(HostError::System(libc::EINTR));

    /// Gathers 16 bytes from calls that answer so, each byte being the number of its call.
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
        // A call that says more than there is room for is not believed.
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

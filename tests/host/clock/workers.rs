//! Forked processes that the tests stop and continue, and that never outlive their test.

use super::monotonic;
use crate::common::Rng;
use std::time::Duration;

/// Most of them are stopped at any time.
pub const WORKERS: usize = 12;
const MS: u64 = 1_000_000;

/// Ends a forked child when it is dropped, in a panic as well: a child must not return into the test.
struct Exit(i32);

impl Drop for Exit {
    fn drop(&mut self) {
        // SAFETY: ends the process at once; runs nothing of the parent's.
        unsafe { libc::_exit(self.0) }
    }
}

/// The workers that run or are stopped; none outlives this, however the test ends.
pub struct Workers([i32; WORKERS]);

impl Workers {
    pub fn start(child: impl Fn(usize) -> i32) -> Workers {
        let mut workers = Workers([0; WORKERS]);
        // SAFETY: no arguments.
        let parent = unsafe { libc::getpid() };
        for i in 0..WORKERS {
            // SAFETY: the child only makes calls that need no lock and ends by `_exit` or a kill.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                let mut exit = Exit(8);
                // It dies with the thread that forked it, and at once if that has died already.
                // SAFETY: plain system calls.
                let orphan = unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    libc::getppid() != parent
                };
                exit.0 = if orphan { 7 } else { child(i) };
                drop(exit);
            }
            assert!(pid > 0, "fork failed");
            workers.0[i] = pid;
        }
        workers
    }

    fn signal(&self, i: usize, signal: i32) {
        // SAFETY: a child of this process that has not been waited for: its number is still its own.
        assert_eq!(unsafe { libc::kill(self.0[i], signal) }, 0);
    }

    /// Waits until all have ended by themselves; false if one has not after ten seconds.
    pub fn ended(&mut self) -> bool {
        for _ in 0..10_000 {
            for pid in self.0.iter_mut().filter(|pid| **pid != 0) {
                let mut status = 0;
                // SAFETY: a child of this process that has not been waited for.
                if unsafe { libc::waitpid(*pid, &mut status, libc::WNOHANG) } == *pid {
                    *pid = 0;
                    assert_eq!(status, 0, "a worker went wrong");
                }
            }
            if self.0 == [0; WORKERS] {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Stops and continues random workers for a time; all run when it returns. Returns how many stops there were.
    pub fn stop_some(&self, ms: u64, longest: u64, rng: &mut Rng) -> u64 {
        let begin = monotonic();
        // When each worker is stopped or continued next, and whether it is stopped.
        let mut next = [(); WORKERS].map(|_| (begin + rng.within(5, 50) * MS, false));
        let mut stops = 0;
        loop {
            let i = (0..WORKERS).min_by_key(|&i| next[i].0).unwrap_or(0);
            let (at, stopped) = next[i];
            if at > begin + ms * MS {
                break;
            }
            std::thread::sleep(Duration::from_nanos(at.saturating_sub(monotonic())));
            self.signal(i, if stopped { libc::SIGCONT } else { libc::SIGSTOP });
            stops += u64::from(!stopped);
            let pause = if stopped { rng.within(5_000, 60_000) } else { rng.within(20_000, longest * 1_000) };
            next[i] = (monotonic() + pause * 1_000, !stopped);
        }
        (0..WORKERS).filter(|&i| next[i].1).for_each(|i| self.signal(i, libc::SIGCONT));
        stops
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for &pid in self.0.iter().filter(|&&pid| pid != 0) {
            // SAFETY: a child of this process that has not been waited for; a stopped one dies of this as well.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

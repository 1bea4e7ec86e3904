//! Processors: which ones there are, pinning, and the time that a thread has used.

use std::mem::size_of;

/// CPU time of this thread, in ns: waiting for other processes does not count.
pub fn thread_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Time that has passed, in ns.
pub fn wall_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: t is a place for one timespec.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// The processors of a run.
#[derive(Clone, Copy, Debug)]
pub struct Cpus {
    /// The last one that this process may use; the first one serves most interrupts.
    pub main: usize,
    /// The last one on another core, for a second thread.
    pub other: Option<usize>,
}

/// Chooses processors and pins this thread to the first choice; None where the system has no affinity.
pub fn pin() -> Option<Cpus> {
    // SAFETY: a cpu_set_t is plain bits, all zero is the empty set, and the call gets its true size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return None;
        }
        set
    };
    // SAFETY: the number is below the size of the set.
    let allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    let cpus = || (0..libc::CPU_SETSIZE as usize).rev().filter(allowed);
    let main = cpus().next()?;
    let core = core_of(main);
    let other = cpus().find(|&cpu| cpu != main && (core.is_none() || core_of(cpu) != core));
    pin_to(main).then_some(Cpus { main, other })
}

/// Pins this thread.
pub fn pin_to(cpu: usize) -> bool {
    // SAFETY: as above.
    unsafe {
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut one);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one) == 0
    }
}

/// The hardware threads that share this one's core, as the kernel names them.
fn core_of(cpu: usize) -> Option<String> {
    std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")).ok()
}

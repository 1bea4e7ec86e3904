//! `tatcell_host_*`: what a host with an operating system adds; only in libraries built with feature `host`.

use core::ffi::{c_char, c_void};
use core::mem::forget;

use super::codes::{
    TATCELL_ERR_ABSENT, TATCELL_ERR_EXISTS, TATCELL_ERR_FOLDER, TATCELL_ERR_NAME, TATCELL_ERR_NOT_READY,
    TATCELL_ERR_OPTION, TATCELL_ERR_SYSTEM, TATCELL_ERR_TOO_LARGE, TATCELL_ERR_TOO_SMALL,
    TATCELL_ERR_UNSUPPORTED, TATCELL_ERR_WRONG_SIZE, TATCELL_PASS,
};
use super::pointers::contract::{args, Contract, Grows, Out, Report};
use crate::host::{self, Clock, HostError, Memory, Pages, TickClock};

/// clock: CLOCK_MONOTONIC, slewed by NTP; stops while the system sleeps. On every Unix.
pub const TATCELL_HOST_CLOCK_MONOTONIC: u32 = 0;
/// clock: CLOCK_MONOTONIC_RAW, the bare oscillator. Linux, Apple.
pub const TATCELL_HOST_CLOCK_RAW: u32 = 1;
/// clock: CLOCK_MONOTONIC_COARSE, as of the last timer tick; cheapest. Linux.
pub const TATCELL_HOST_CLOCK_COARSE: u32 = 2;
/// clock: CLOCK_BOOTTIME, runs while the system sleeps. Linux.
pub const TATCELL_HOST_CLOCK_BOOTTIME: u32 = 3;

/// flags: ask for huge pages; bytes are rounded up to 2 MiB.
pub const TATCELL_HOST_HUGE: u32 = 1;
/// flags: share with processes forked later instead of giving them a copy.
pub const TATCELL_HOST_FORK_SHARED: u32 = 2;

/// pages: of the usual size.
pub const TATCELL_HOST_PAGES_NORMAL: u32 = 0;
/// pages: the kernel was asked for huge pages where it can; see tatcell_host_memory_huge_bytes.
pub const TATCELL_HOST_PAGES_ADVISED: u32 = 1;
/// pages: all of it lies on huge pages from the reserved pool.
pub const TATCELL_HOST_PAGES_HUGE: u32 = 2;

const _: () = assert!(TATCELL_HOST_PAGES_NORMAL == Pages::Normal as u32);
const _: () = assert!(TATCELL_HOST_PAGES_ADVISED == Pages::Advised as u32);
const _: () = assert!(TATCELL_HOST_PAGES_HUGE == Pages::Huge as u32);

/// Bytes of a tatcell_host_memory_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_HOST_MEMORY_MIN: usize = 16 + 2 * size_of::<*const u8>();

/// Memory from the system, for tatcell_table_init and tatcell_table_attach. Start from TATCELL_HOST_MEMORY_INIT.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tatcell_host_memory_t {
    /// sizeof(tatcell_host_memory_t); never written.
    pub size: u32,
    /// A TATCELL_HOST_PAGES_ constant.
    pub pages: u32,
    /// Where it starts, aligned to a page; NULL = nothing is mapped.
    pub memory: *mut c_void,
    /// Bytes that are mapped.
    pub bytes: usize,
    /// The errno of the system call that failed, with TATCELL_ERR_SYSTEM; otherwise 0.
    pub system_error: i32,
    /// Not for use.
    pub reserved: i32,
}

// SAFETY: repr(C), its size first, integers and a pointer without padding (asserted).
unsafe impl Grows for tatcell_host_memory_t {
    const FIRST: usize = TATCELL_HOST_MEMORY_MIN;
}
const _: () = assert!(size_of::<tatcell_host_memory_t>() == TATCELL_HOST_MEMORY_MIN);

impl tatcell_host_memory_t {
    const NONE: tatcell_host_memory_t = tatcell_host_memory_t {
        size: 0,
        pages: TATCELL_HOST_PAGES_NORMAL,
        memory: core::ptr::null_mut(),
        bytes: 0,
        system_error: 0,
        reserved: 0,
    };
}

/// The code of a host error, and its errno; `bytes` is the size that was asked for.
pub(super) const fn host_code(e: HostError, bytes: usize) -> (i32, i32) {
    match e {
        HostError::System(errno) => (TATCELL_ERR_SYSTEM, errno),
        HostError::Unsupported => (TATCELL_ERR_UNSUPPORTED, 0),
        HostError::BadName => (TATCELL_ERR_NAME, 0),
        HostError::BadInterval => (TATCELL_ERR_OPTION, 0),
        HostError::BadSize if bytes == 0 => (TATCELL_ERR_TOO_SMALL, 0),
        HostError::BadSize => (TATCELL_ERR_TOO_LARGE, 0),
        HostError::WrongSize => (TATCELL_ERR_WRONG_SIZE, 0),
        HostError::Exists => (TATCELL_ERR_EXISTS, 0),
        HostError::Absent => (TATCELL_ERR_ABSENT, 0),
        HostError::NoFolder => (TATCELL_ERR_FOLDER, 0),
        HostError::NotReady => (TATCELL_ERR_NOT_READY, 0),
    }
}

/// Writes a number, or the errno, and gives the code.
fn finish(
    made: Result<u64, HostError>,
    out: Option<Out<'_, u64>>,
    system_error: Option<Out<'_, i32>>,
) -> i32 {
    let (code, errno) = match (made, out) {
        (Ok(value), Some(out)) => {
            out.put(value);
            (TATCELL_PASS, 0)
        }
        (Ok(_), None) => (TATCELL_PASS, 0),
        (Err(e), _) => host_code(e, 0),
    };
    if let Some(place) = system_error {
        place.put(errno);
    }
    code
}

/// A clock from C.
const fn clock(number: u32) -> Result<Clock, i32> {
    match number {
        TATCELL_HOST_CLOCK_MONOTONIC => Ok(Clock::Monotonic),
        TATCELL_HOST_CLOCK_RAW => Ok(Clock::Raw),
        TATCELL_HOST_CLOCK_COARSE => Ok(Clock::Coarse),
        TATCELL_HOST_CLOCK_BOOTTIME => Ok(Clock::Boottime),
        _ => Err(TATCELL_ERR_OPTION),
    }
}

/// A structure that was brought, and where what becomes of it is written.
type Place<'a> = (tatcell_host_memory_t, Report<'a, tatcell_host_memory_t>);

impl<'a> Contract<'a> {
    fn place(self, p: *mut tatcell_host_memory_t) -> Result<Place<'a>, i32> {
        Ok((self.known(p)?, self.report(p)?))
    }
}

/// Writes a mapping, which is the caller's from now on, or the errno, and gives the code.
fn give(made: Result<Memory, HostError>, bytes: usize, (now, out): Place<'_>) -> i32 {
    let (code, next) = match made {
        Ok(memory) => {
            let (pages, start, bytes) = (memory.pages() as u32, memory.as_ptr().cast(), memory.bytes());
            forget(memory);
            (TATCELL_PASS, tatcell_host_memory_t { pages, memory: start, bytes, system_error: 0, ..now })
        }
        Err(e) => {
            let (code, system_error) = host_code(e, bytes);
            (code, tatcell_host_memory_t { system_error, ..now })
        }
    };
    out.put(&next);
    code
}

/// Reads one of the system's monotonic clocks.
///
/// @param clock        a TATCELL_HOST_CLOCK_ constant.
/// @param now          nanoseconds since a moment that is fixed until the next boot; not NULL.
/// @param system_error the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_OPTION unknown clock; TATCELL_ERR_UNSUPPORTED not on this system.
/// @retval TATCELL_ERR_SYSTEM the system refuses.
/// Thread: any. Cost: one clock_gettime, 3 to 30 ns; read it once per burst. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_clock(clock: u32, now: *mut u64, system_error: *mut i32) -> i32 {
    args!(c, clock = self::clock(clock), now = c.result(now), system_error = c.result_if(system_error));
    finish(host::now_ns(clock), Some(now), system_error)
}

/// Tells how fine a clock is.
///
/// @param clock        a TATCELL_HOST_CLOCK_ constant.
/// @param nanoseconds  between two of its values; not NULL.
/// @param system_error the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval as tatcell_host_clock.
/// Thread: any. Cost: one clock_getres. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_clock_resolution(
    clock: u32,
    nanoseconds: *mut u64,
    system_error: *mut i32,
) -> i32 {
    args!(
        c,
        clock = self::clock(clock),
        out = c.result(nanoseconds),
        system_error = c.result_if(system_error)
    );
    finish(host::resolution_ns(clock), Some(out), system_error)
}

/// Reads the processor's counter (TSC, CNTVCT), which tatcell_host_ticks_calibrate has found fit to be a clock.
///
/// @return ticks; 0 on processors without one.
/// Thread: any. Cost: one instruction, 5 to 10 ns. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_host_ticks() -> u64 {
    host::counter()
}

/// Finds the rate of the processor's counter, for tatcell_limit_init_rate; spins meanwhile.
///
/// On x86 the TSC, if invariant, is measured against CLOCK_MONOTONIC_RAW: 10 ms give about 10 ppm, 100 ms about 1. On
/// aarch64 the processor tells the rate and no time is spent.
///
/// @param interval_ns      how long, 1000000 (1 ms) to 1000000000 (1 s).
/// @param ticks_per_second rate; not NULL.
/// @param uncertainty_ppb  how far it may be off, in parts per billion of itself; 0 where the processor told it.
///                         NULL = not wanted.
/// @param system_error     the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_UNSUPPORTED no counter of constant rate: use tatcell_host_clock.
/// @retval TATCELL_ERR_OPTION interval out of range.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_SYSTEM the clock cannot be read.
/// Thread: any. Cost: the interval. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_ticks_calibrate(
    interval_ns: u64,
    ticks_per_second: *mut u64,
    uncertainty_ppb: *mut u64,
    system_error: *mut i32,
) -> i32 {
    args!(
        c,
        rate = c.result(ticks_per_second),
        uncertainty = c.result_if(uncertainty_ppb),
        system_error = c.result_if(system_error)
    );
    let made = TickClock::calibrate(interval_ns);
    if let (Ok(clock), Some(out)) = (made, uncertainty) {
        out.put(clock.uncertainty_ppb().into());
    }
    finish(made.map(|clock| clock.ticks_per_sec()), Some(rate), system_error)
}

/// Converts ticks to nanoseconds, rounded up, as a retry time should be.
///
/// @param ticks            of a clock.
/// @param ticks_per_second its rate.
/// @return nanoseconds; UINT64_MAX where they do not fit or the rate is 0.
/// Thread: any. Cost: one 128-bit division. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_host_ticks_to_ns(ticks: u64, ticks_per_second: u64) -> u64 {
    host::scale(ticks, 1_000_000_000, ticks_per_second)
}

/// Converts nanoseconds to ticks, rounded up.
///
/// @param ns               nanoseconds.
/// @param ticks_per_second rate of the clock.
/// @return ticks; UINT64_MAX where they do not fit.
/// Thread: any. Cost: one 128-bit division. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_host_ticks_from_ns(ns: u64, ticks_per_second: u64) -> u64 {
    host::scale(ns, ticks_per_second, 1_000_000_000)
}

/// Takes secret bytes from the system: 16 are a seed for tatcell_table_options_t.
///
/// Processes that share a table need the same bytes: one takes them and gives them to the others, on a way that
/// strangers cannot read. While a system that has just started has no secrets yet, this waits.
///
/// @param bytes        to fill; not NULL.
/// @param count        bytes, 1..256.
/// @param system_error the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_TOO_SMALL, TATCELL_ERR_TOO_LARGE count is 0, or above 256.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_SYSTEM the system has none to give; some bytes may have been written. There is no weaker
///         answer.
/// Thread: any. Cost: one system call. Since 0.2.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_host_random(
    bytes: *mut c_void,
    count: usize,
    system_error: *mut i32,
) -> i32 {
    args!(c, error = c.result_if(system_error), out = c.buffer(bytes.cast::<u8>(), count));
    match count {
        0 => TATCELL_ERR_TOO_SMALL,
        1..=256 => finish(host::fill(out).map(|()| 0), None, error),
        _ => TATCELL_ERR_TOO_LARGE,
    }
}

/// Maps zeroed memory of this process for a table; not from the heap.
///
/// @param bytes  at least; not 0.
/// @param flags  0 or any of TATCELL_HOST_HUGE, TATCELL_HOST_FORK_SHARED. With TATCELL_HOST_HUGE the reserved pool is
///               asked first, then the kernel is advised (transparent huge pages), then pages are normal;
///               memory->pages tells which.
/// @param memory started from TATCELL_HOST_MEMORY_INIT; not NULL. Unmap it with tatcell_host_memory_unmap.
/// @retval 0 done.
/// @retval TATCELL_ERR_TOO_SMALL bytes are 0; TATCELL_ERR_TOO_LARGE more than half of the address space.
/// @retval TATCELL_ERR_OPTION unknown flag.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM mmap failed; errno in memory->system_error (ENOMEM: none left).
/// Thread: any. Cost: one to four system calls. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_memory_map(
    bytes: usize,
    flags: u32,
    memory: *mut tatcell_host_memory_t,
) -> i32 {
    args!(c, out = c.place(memory));
    if flags & !(TATCELL_HOST_HUGE | TATCELL_HOST_FORK_SHARED) != 0 {
        return TATCELL_ERR_OPTION;
    }
    let (huge, shared) = (flags & TATCELL_HOST_HUGE != 0, flags & TATCELL_HOST_FORK_SHARED != 0);
    give(Memory::new(bytes, huge, shared), bytes, out)
}

/// Creates memory with a name, exclusively, for tatcell_table_init; other processes attach to it.
///
/// All of it is allocated here: a full file system is an error now and not a signal later. The creator then calls
/// tatcell_table_init. Others call tatcell_host_memory_attach and tatcell_table_attach, and ask again while either
/// says TATCELL_ERR_NOT_READY. A creator that dies in between leaves the name behind: tatcell_host_memory_unlink.
///
/// @param name   one of two forms, not NULL: a name, "/limits" (shared memory that vanishes with the system; one
///               slash, the first; at most 255 bytes), or an absolute path, "/run/app/limits" (a file, or in a
///               hugetlbfs memory on huge pages if bytes are whole ones; its folder must exist; at most 1023 bytes;
///               not "//" first). In both, what follows the last slash is not empty, "." or "..".
/// @param bytes  at least; not 0.
/// @param mode   permission bits, less the umask; 0 = 0600, this user alone.
/// @param memory started from TATCELL_HOST_MEMORY_INIT; not NULL.
/// @retval 0 done: this process is the one that initialises.
/// @retval TATCELL_ERR_EXISTS another was first: attach.
/// @retval TATCELL_ERR_FOLDER make the folder of the path first.
/// @retval TATCELL_ERR_UNSUPPORTED this system has no shared memory with names: use a path.
/// @retval TATCELL_ERR_NAME, TATCELL_ERR_OPTION bad name or mode.
/// @retval TATCELL_ERR_TOO_SMALL, TATCELL_ERR_TOO_LARGE as tatcell_host_memory_map.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM errno in memory->system_error (ENOSPC: no room). Nothing is left behind.
/// Thread: any. Cost: some system calls; allocates the file. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_memory_create(
    name: *const c_char,
    bytes: usize,
    mode: u32,
    memory: *mut tatcell_host_memory_t,
) -> i32 {
    args!(c, name = c.text(name), out = c.place(memory));
    if mode & !0o777 != 0 {
        return TATCELL_ERR_OPTION;
    }
    give(Memory::create(name, bytes, if mode == 0 { 0o600 } else { mode }), bytes, out)
}

/// Attaches to memory that another process has created, for tatcell_table_attach.
///
/// A table trusts nothing that is in it. But whoever may write the file may also cut it short, and touching what is
/// gone ends a process (SIGBUS): use names in places where only trusted users can write.
///
/// @param name   that it was created with; not NULL.
/// @param bytes  that it was created with; 0 = whatever it has, then in memory->bytes.
/// @param memory started from TATCELL_HOST_MEMORY_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_ABSENT no such name; TATCELL_ERR_NOT_READY its creator is not done: ask again.
/// @retval TATCELL_ERR_WRONG_SIZE it has another size.
/// @retval TATCELL_ERR_NAME bad name.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM errno in memory->system_error (EACCES: not allowed).
/// Thread: any. Cost: four system calls. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_memory_attach(
    name: *const c_char,
    bytes: usize,
    memory: *mut tatcell_host_memory_t,
) -> i32 {
    args!(c, name = c.text(name), out = c.place(memory));
    give(Memory::attach(name, bytes), bytes, out)
}

/// Unmaps memory; its name, if it has one, stays.
///
/// @param memory filled in by tatcell_host_memory_map, _create or _attach; not NULL. Emptied. If it is empty, nothing
///               is done.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM munmap failed; errno in memory->system_error: it does not describe a mapping.
/// Thread: one, when no thread uses the memory or a table in it any more. Cost: one system call. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_memory_unmap(memory: *mut tatcell_host_memory_t) -> i32 {
    args!(c, (now, out) = c.place(memory));
    // SAFETY: the contract: its own mapping, used by nobody any more.
    let (code, next) = match unsafe { host::unmap(now.memory.cast(), now.bytes) } {
        Ok(()) => (TATCELL_PASS, tatcell_host_memory_t::NONE),
        Err(e) => {
            let (code, system_error) = host_code(e, now.bytes);
            (code, tatcell_host_memory_t { system_error, ..now })
        }
    };
    out.put(&next);
    code
}

/// Removes a name. Processes that have the memory mapped keep it; it is freed when the last of them unmaps it.
///
/// @param name         not NULL.
/// @param system_error the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_ABSENT no such name; TATCELL_ERR_NAME bad name.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_SYSTEM the system refuses.
/// Thread: any. Cost: one system call. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_memory_unlink(name: *const c_char, system_error: *mut i32) -> i32 {
    args!(c, name = c.text(name), system_error = c.result_if(system_error));
    finish(host::unlink(name).map(|()| 0), None, system_error)
}

/// Counts how much of a mapping lies on huge pages, as the kernel tells. Memory that was never touched lies on none;
/// tatcell_table_init touches all of it.
///
/// @param memory       filled in; not NULL.
/// @param bytes        on huge pages; not NULL.
/// @param system_error the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_UNSUPPORTED this system does not tell.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM /proc/self/smaps cannot be read.
/// Thread: any. Cost: reads a file of the kernel; not for the hot path. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_memory_huge_bytes(
    memory: *const tatcell_host_memory_t,
    bytes: *mut u64,
    system_error: *mut i32,
) -> i32 {
    args!(c, memory = c.known(memory), out = c.result(bytes), system_error = c.result_if(system_error));
    let counted = host::huge_bytes(memory.memory.addr(), memory.bytes);
    finish(counted.map(|bytes| bytes as u64), Some(out), system_error)
}

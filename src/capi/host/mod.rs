//! `tatcell_host_*`: what a host with an operating system adds; only in libraries built with feature `host`.

mod counters;
mod guard;
mod look;
mod table;

use core::ffi::{c_char, c_void};
use core::mem::forget;

use crate::capi::codes::{
    TATCELL_ERR_ABSENT, TATCELL_ERR_EXISTS, TATCELL_ERR_FOLDER, TATCELL_ERR_NAME, TATCELL_ERR_NOT_READY,
    TATCELL_ERR_OPTION, TATCELL_ERR_SYSTEM, TATCELL_ERR_TOO_LARGE, TATCELL_ERR_TOO_SMALL,
    TATCELL_ERR_UNSUPPORTED, TATCELL_ERR_VERSION, TATCELL_ERR_WRONG_SIZE, TATCELL_PASS,
};
use crate::capi::pointers::contract::{args, Contract, Grows, Out, Report};
use crate::host::{self, Clock, HostError, Memory, Pages, TickClock, EBUSY};

/// clock: CLOCK_MONOTONIC. NTP slews it, and it stops while the system sleeps. Every Unix has it.
pub const TATCELL_HOST_CLOCK_MONOTONIC: u32 = 0;
/// clock: CLOCK_MONOTONIC_RAW, the oscillator without corrections. Linux and Apple have it.
pub const TATCELL_HOST_CLOCK_RAW: u32 = 1;
/// clock: CLOCK_MONOTONIC_COARSE, the time of the last timer tick. It is the cheapest one. Linux has it.
pub const TATCELL_HOST_CLOCK_COARSE: u32 = 2;
/// clock: CLOCK_BOOTTIME, which runs while the system sleeps. Linux has it.
pub const TATCELL_HOST_CLOCK_BOOTTIME: u32 = 3;

/// flags: ask for huge pages. The length is rounded up to 2 MiB.
pub const TATCELL_HOST_HUGE: u32 = 1;
/// flags: share the memory with processes that are forked later. Without the flag they get a copy.
pub const TATCELL_HOST_FORK_SHARED: u32 = 2;

/// pages: pages of the usual size.
pub const TATCELL_HOST_PAGES_NORMAL: u32 = 0;
/// pages: the kernel was asked to use huge pages where it can; see tatcell_host_memory_huge_bytes.
pub const TATCELL_HOST_PAGES_ADVISED: u32 = 1;
/// pages: all of the memory lies on huge pages from the reserved pool.
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
    /// Start of the memory, aligned to a page; NULL = nothing is mapped.
    pub memory: *mut c_void,
    /// Number of mapped bytes.
    pub bytes: usize,
    /// The errno of the system call that failed, with TATCELL_ERR_SYSTEM; otherwise 0.
    pub system_error: i32,
    /// Private to the library.
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

/// Returns the code of a host error, and its errno; `bytes` is the size that was asked for.
pub(super) const fn host_code(e: HostError, bytes: usize) -> (i32, i32) {
    match e {
        HostError::System(errno) => (TATCELL_ERR_SYSTEM, errno),
        HostError::Unsupported => (TATCELL_ERR_UNSUPPORTED, 0),
        HostError::BadName => (TATCELL_ERR_NAME, 0),
        HostError::BadInterval => (TATCELL_ERR_OPTION, 0),
        HostError::BadSize if bytes == 0 => (TATCELL_ERR_TOO_SMALL, 0),
        HostError::BadSize => (TATCELL_ERR_TOO_LARGE, 0),
        HostError::WrongSize => (TATCELL_ERR_WRONG_SIZE, 0),
        HostError::NotCounters => (TATCELL_ERR_VERSION, 0),
        HostError::Taken => (TATCELL_ERR_SYSTEM, EBUSY),
        HostError::Exists => (TATCELL_ERR_EXISTS, 0),
        HostError::Absent => (TATCELL_ERR_ABSENT, 0),
        HostError::NoFolder => (TATCELL_ERR_FOLDER, 0),
        HostError::NotReady => (TATCELL_ERR_NOT_READY, 0),
    }
}

/// Writes a number, or the errno, and returns the code.
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

/// Converts C's number for a clock.
const fn clock(number: u32) -> Result<Clock, i32> {
    match number {
        TATCELL_HOST_CLOCK_MONOTONIC => Ok(Clock::Monotonic),
        TATCELL_HOST_CLOCK_RAW => Ok(Clock::Raw),
        TATCELL_HOST_CLOCK_COARSE => Ok(Clock::Coarse),
        TATCELL_HOST_CLOCK_BOOTTIME => Ok(Clock::Boottime),
        _ => Err(TATCELL_ERR_OPTION),
    }
}

/// A structure from the caller, and the place where its new values are written.
type Place<'a> = (tatcell_host_memory_t, Report<'a, tatcell_host_memory_t>);

impl<'a> Contract<'a> {
    fn place(self, p: *mut tatcell_host_memory_t) -> Result<Place<'a>, i32> {
        Ok((self.known(p)?, self.report(p)?))
    }
}

/// Writes a mapping, which belongs to the caller from now on, or the errno. Returns the code.
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
/// @param now          gets nanoseconds since a moment that stays fixed until the next boot; not NULL.
/// @param system_error gets the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_OPTION unknown clock; TATCELL_ERR_UNSUPPORTED this system does not have the clock.
/// @retval TATCELL_ERR_SYSTEM the system call failed.
/// Thread: any. Cost: one clock_gettime, 3 to 30 ns; read it once per burst. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_clock(clock: u32, now: *mut u64, system_error: *mut i32) -> i32 {
    args!(c, clock = self::clock(clock), now = c.result(now), system_error = c.result_if(system_error));
    finish(host::now_ns(clock), Some(now), system_error)
}

/// Reports the resolution of a clock.
///
/// @param clock        a TATCELL_HOST_CLOCK_ constant.
/// @param nanoseconds  gets the time between two values of the clock; not NULL.
/// @param system_error gets the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
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

/// Reads the processor's counter (TSC, CNTVCT). Use it only after tatcell_host_ticks_calibrate has accepted it as a
/// clock.
///
/// @return ticks; 0 on processors without such a counter.
/// Thread: any. Cost: one instruction, 5 to 10 ns. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_host_ticks() -> u64 {
    host::counter()
}

/// Finds the rate of the processor's counter, for tatcell_limit_init_rate. It spins meanwhile.
///
/// On x86 an invariant TSC is measured against CLOCK_MONOTONIC_RAW: 10 ms give about 10 ppm, 100 ms about 1. On
/// aarch64 the processor reports the rate, so the call takes no time.
///
/// @param interval_ns      how long to measure, 1000000 (1 ms) to 1000000000 (1 s).
/// @param ticks_per_second gets the rate; not NULL.
/// @param uncertainty_ppb  gets the possible error of the rate, in billionths of it; 0 if the processor reports the
///                         rate. NULL = not wanted.
/// @param system_error     gets the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_UNSUPPORTED there is no counter of constant rate: use tatcell_host_clock.
/// @retval TATCELL_ERR_OPTION interval_ns is out of range.
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

/// Converts ticks to nanoseconds. It rounds up, as a retry time needs.
///
/// @param ticks            of a clock.
/// @param ticks_per_second rate of the clock.
/// @return nanoseconds; UINT64_MAX if they do not fit or the rate is 0.
/// Thread: any. Cost: one 128-bit division. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_host_ticks_to_ns(ticks: u64, ticks_per_second: u64) -> u64 {
    host::scale(ticks, 1_000_000_000, ticks_per_second)
}

/// Converts nanoseconds to ticks, rounded up.
///
/// @param ns               nanoseconds.
/// @param ticks_per_second rate of the clock.
/// @return ticks; UINT64_MAX if they do not fit.
/// Thread: any. Cost: one 128-bit division. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_host_ticks_from_ns(ns: u64, ticks_per_second: u64) -> u64 {
    host::scale(ns, ticks_per_second, 1_000_000_000)
}

/// Gets secret random bytes from the system. 16 bytes are a seed for tatcell_table_options_t.
///
/// Processes that share a table need the same seed. One process gets the bytes and passes them to the others,
/// through a channel that others cannot read. Shortly after boot, the call waits until the system has enough
/// entropy.
///
/// @param bytes        buffer to fill; not NULL.
/// @param count        bytes, 1..256.
/// @param system_error gets the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_TOO_SMALL, TATCELL_ERR_TOO_LARGE count is 0, or above 256.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_SYSTEM the system has no random bytes; some bytes may have been written. The call never
///         falls back to a weaker source.
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

/// Maps zeroed memory of this process for a table. The memory is not from the heap.
///
/// @param bytes  least length; not 0.
/// @param flags  0 or any of TATCELL_HOST_HUGE, TATCELL_HOST_FORK_SHARED. With TATCELL_HOST_HUGE the call first
///               asks the reserved pool, then advises the kernel (transparent huge pages), and else takes normal
///               pages. memory->pages reports which.
/// @param memory started from TATCELL_HOST_MEMORY_INIT; not NULL. Unmap it with tatcell_host_memory_unmap.
/// @retval 0 done.
/// @retval TATCELL_ERR_TOO_SMALL bytes is 0; TATCELL_ERR_TOO_LARGE it is more than half of the address space.
/// @retval TATCELL_ERR_OPTION unknown flag.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM mmap failed; the errno is in memory->system_error (ENOMEM: no memory left).
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

/// Creates memory with a name, exclusively, for tatcell_table_init. Other processes attach to it.
///
/// The call allocates all of the memory, so a full file system is an error now and not a signal later. The creator
/// then calls tatcell_table_init. Other processes call tatcell_host_memory_attach and tatcell_table_attach, and
/// retry while either returns TATCELL_ERR_NOT_READY. If the creator dies in between, the name remains: remove it
/// with tatcell_host_memory_unlink.
///
/// @param name   one of two forms, not NULL. Either a name, "/limits": shared memory that vanishes with the system,
///               with one slash, at the start, and at most 255 bytes. Or an absolute path, "/run/app/limits": a
///               file, or, in a hugetlbfs, memory on huge pages if bytes is a whole number of them. The folder of
///               the path must exist. A path has at most 1023 bytes and does not start with "//". In both forms,
///               the part after the last slash is not empty, "." or "..".
/// @param bytes  least length; not 0.
/// @param mode   permission bits, less the umask; 0 = 0600, only this user.
/// @param memory started from TATCELL_HOST_MEMORY_INIT; not NULL.
/// @retval 0 done: this process must initialise the table.
/// @retval TATCELL_ERR_EXISTS another process was first: attach.
/// @retval TATCELL_ERR_FOLDER the folder of the path does not exist: make it first.
/// @retval TATCELL_ERR_UNSUPPORTED this system has no shared memory with names: use a path.
/// @retval TATCELL_ERR_NAME, TATCELL_ERR_OPTION bad name or mode.
/// @retval TATCELL_ERR_TOO_SMALL, TATCELL_ERR_TOO_LARGE as tatcell_host_memory_map.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM the errno is in memory->system_error (ENOSPC: no room). Nothing is left behind.
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
/// A table trusts none of the content of its memory. But a process that may write the file may also truncate it,
/// and an access beyond its end then kills the process (SIGBUS). Use names in places where only trusted users can
/// write.
///
/// @param name   the name that the memory was created with; not NULL.
/// @param bytes  the length that it was created with; 0 = any length, which is then in memory->bytes.
/// @param memory started from TATCELL_HOST_MEMORY_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_ABSENT there is no such name; TATCELL_ERR_NOT_READY its creator is not done: ask again.
/// @retval TATCELL_ERR_WRONG_SIZE it has another length.
/// @retval TATCELL_ERR_NAME bad name.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM the errno is in memory->system_error (EACCES: not allowed).
/// Thread: any. Cost: four system calls. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_memory_attach(
    name: *const c_char,
    bytes: usize,
    memory: *mut tatcell_host_memory_t,
) -> i32 {
    args!(c, name = c.text(name), out = c.place(memory));
    give(Memory::attach_named(name, bytes), bytes, out)
}

/// Unmaps memory. If it has a name, the name stays.
///
/// @param memory filled in by tatcell_host_memory_map, _create or _attach; not NULL. The call empties the
///               structure. If it is empty already, the call does nothing.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM munmap failed, because the structure does not describe a mapping; the errno is in
///         memory->system_error.
/// Thread: one, once no thread uses the memory or a table in it. Cost: one system call. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_memory_unmap(memory: *mut tatcell_host_memory_t) -> i32 {
    args!(c, (now, out) = c.place(memory));
    let (code, next) = unmap(c, now);
    out.put(&next);
    code
}

/// Unmaps memory of a call under its contract. Returns the code, and what is left of the structure.
fn unmap(_: Contract<'_>, now: tatcell_host_memory_t) -> (i32, tatcell_host_memory_t) {
    // SAFETY: the contract: the mapping is the caller's, and nobody uses it any more.
    match unsafe { host::unmap(now.memory.cast(), now.bytes) } {
        Ok(()) => (TATCELL_PASS, tatcell_host_memory_t::NONE),
        Err(e) => {
            let (code, system_error) = host_code(e, now.bytes);
            (code, tatcell_host_memory_t { system_error, ..now })
        }
    }
}

/// Removes a name. Processes that have the memory mapped keep it. The system frees it when the last one unmaps it.
///
/// @param name         not NULL.
/// @param system_error gets the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_ABSENT there is no such name; TATCELL_ERR_NAME bad name.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_SYSTEM the system call failed.
/// Thread: any. Cost: one system call. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_memory_unlink(name: *const c_char, system_error: *mut i32) -> i32 {
    args!(c, name = c.text(name), system_error = c.result_if(system_error));
    finish(host::unlink(name).map(|()| 0), None, system_error)
}

/// Reports how many bytes of a mapping lie on huge pages, as the kernel counts them. Memory that was never touched
/// lies on none; tatcell_table_init touches all of it.
///
/// @param memory       filled in; not NULL.
/// @param bytes        gets the bytes on huge pages; not NULL.
/// @param system_error gets the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_UNSUPPORTED this system does not report it.
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

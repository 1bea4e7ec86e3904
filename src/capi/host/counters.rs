//! `tatcell_host_counters_*`: counters that other processes can read.

use core::ffi::{c_char, c_void};

use super::{give, host_code, tatcell_host_memory_t};
use crate::capi::codes::{TATCELL_ERR_COUNT, TATCELL_ERR_OPTION, TATCELL_PASS};
use crate::capi::pointers::contract::args;
use crate::host;
use crate::table::counter_blocks::{sum, HEADER};
use crate::table::{Counters, Line};

/// Opens counters in named memory, and takes all blocks: creates them, or attaches to them if they exist. Counts go on
/// where they were.
///
/// Each thread counts in a block of its own (tatcell_host_counters_block), by plain additions: a decision costs what it
/// costs with private counters. If two threads count in one block, counts are lost, and nothing else happens. Other
/// processes look with tatcell_host_counters_attach; they need permission to read, and no other.
///
/// On 64-bit Linux a lock on the file keeps other processes from opening blocks that are taken. It ends when this
/// process and those that it has forked have ended or have unmapped the memory. Elsewhere, and on file systems without
/// locks, give each program its own name.
///
/// If a creator died before it was done, the next call for the name finishes its work. So memory of this name and size
/// that is all zero is taken for counters: give a table another name.
///
/// @param name    as for tatcell_host_memory_create; not NULL.
/// @param threads number of blocks, the same for all that open them; not 0.
/// @param mode    permission bits, less the umask; 0 = 0600, only this user.
/// @param memory  started from TATCELL_HOST_MEMORY_INIT; not NULL. Unmap it with tatcell_host_memory_unmap.
/// @retval 0 done.
/// @retval TATCELL_ERR_WRONG_SIZE they were made for another number of threads.
/// @retval TATCELL_ERR_VERSION the memory holds something else, or another layout.
/// @retval TATCELL_ERR_SYSTEM with system_error 1 (EPERM): the file belongs to another user, who could truncate it and
///         so end this process. Only files of root and of this user are taken.
/// @retval TATCELL_ERR_SYSTEM with system_error 16 (EBUSY): another process has a block, or this one has opened them
///         before: unmap that memory first.
/// @retval TATCELL_ERR_OPTION bad mode; TATCELL_ERR_TOO_SMALL, TATCELL_ERR_TOO_LARGE bad number of threads.
/// @retval others as tatcell_host_memory_create and tatcell_host_memory_attach.
/// Thread: any. Cost: some system calls. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_counters_open(
    name: *const c_char,
    threads: u32,
    mode: u32,
    memory: *mut tatcell_host_memory_t,
) -> i32 {
    args!(c, name = c.text(name), out = c.place(memory));
    if mode & !0o777 != 0 {
        return TATCELL_ERR_OPTION;
    }
    let (threads, mode) = (threads as usize, if mode == 0 { 0o600 } else { mode });
    give(host::open_counters(name, threads, threads, mode).map(|(memory, _)| memory), threads, out)
}

/// Opens counters as tatcell_host_counters_open does, but takes only the first `count` blocks that nobody has. For
/// programs of several processes that count under one name, or of which the next version starts before the last one has
/// ended.
///
/// @param name    as for tatcell_host_memory_create; not NULL.
/// @param threads number of blocks, the same for all that open them; not 0.
/// @param count   number of blocks to take, which begin at a multiple of it; not 0.
/// @param mode    permission bits, less the umask; 0 = 0600, only this user.
/// @param memory  started from TATCELL_HOST_MEMORY_INIT; not NULL. Unmap it with tatcell_host_memory_unmap.
/// @param first   gets the number of the first block, for tatcell_host_counters_block; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_SYSTEM with system_error 16 (EBUSY): fewer than `count` are free.
/// @retval TATCELL_ERR_TOO_SMALL count is 0; TATCELL_ERR_TOO_LARGE count is above threads.
/// @retval TATCELL_ERR_UNSUPPORTED this system, or the file system of the name, has no such locks.
/// @retval others as tatcell_host_counters_open.
/// Thread: any. Cost: some system calls, and one for each part that is taken. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_counters_open_some(
    name: *const c_char,
    threads: u32,
    count: u32,
    mode: u32,
    memory: *mut tatcell_host_memory_t,
    first: *mut u32,
) -> i32 {
    args!(c, name = c.text(name), out = c.place(memory), first = c.result(first));
    if mode & !0o777 != 0 {
        return TATCELL_ERR_OPTION;
    }
    let mode = if mode == 0 { 0o600 } else { mode };
    let opened = host::open_counters(name, threads as usize, count as usize, mode).map(|(memory, taken)| {
        first.put(taken as u32);
        memory
    });
    give(opened, threads.min(count) as usize, out)
}

/// Maps the counters of another process for reading alone. A store to them ends the process with a signal.
///
/// @param name   the name that they were opened with; not NULL.
/// @param memory started from TATCELL_HOST_MEMORY_INIT; not NULL. Unmap it with tatcell_host_memory_unmap.
/// @retval 0 done.
/// @retval TATCELL_ERR_VERSION the memory holds something else, or another layout.
/// @retval others as tatcell_host_memory_attach_read_only.
/// Thread: any. Cost: four system calls. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_counters_attach(
    name: *const c_char,
    memory: *mut tatcell_host_memory_t,
) -> i32 {
    args!(c, name = c.text(name), out = c.place(memory));
    give(host::look_at_counters(name), 0, out)
}

/// Finds the block of one thread. It takes the place of a tatcell_counters_t in every call.
///
/// @param memory of the structure that tatcell_host_counters_open filled in; not NULL.
/// @param bytes  of that structure.
/// @param number of the thread, from 0.
/// @param block  gets the block; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_COUNT there are fewer blocks.
/// @retval TATCELL_ERR_NOT_READY, TATCELL_ERR_VERSION the memory holds no counters.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_TOO_LARGE bad argument.
/// Thread: any. Cost: one load. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_counters_block(
    memory: *mut c_void,
    bytes: usize,
    number: u32,
    block: *mut *mut Counters,
) -> i32 {
    args!(c, lines = c.lines(memory, bytes), out = c.result(block));
    match host::check_counters(lines) {
        Ok(blocks) if (number as usize) < blocks => {
            let first = memory.wrapping_byte_add(HEADER * size_of::<Line>()).cast::<Counters>();
            out.put(first.wrapping_add(number as usize));
            TATCELL_PASS
        }
        Ok(_) => TATCELL_ERR_COUNT,
        Err(e) => host_code(e, bytes).0,
    }
}

/// Sums the counters of all threads. Each count is as of its reading.
///
/// @param memory of the structure that tatcell_host_counters_open or tatcell_host_counters_attach filled in; not NULL.
/// @param bytes  of that structure.
/// @param total  gets the sum; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NOT_READY, TATCELL_ERR_VERSION the memory holds no counters.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_TOO_LARGE bad argument.
/// Thread: any, also while others count. Cost: reads all of the memory. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_counters_sum(
    memory: *const c_void,
    bytes: usize,
    total: *mut Counters,
) -> i32 {
    args!(c, lines = c.lines(memory.cast_mut(), bytes), out = c.result(total));
    match host::check_counters(lines) {
        Ok(_) => {
            out.put(sum(lines));
            TATCELL_PASS
        }
        Err(e) => host_code(e, bytes).0,
    }
}

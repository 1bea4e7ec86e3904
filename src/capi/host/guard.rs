//! `tatcell_host_guard_*`: time stamps that are held to a clock which nobody can set.

use super::finish;
use crate::capi::codes::TATCELL_ERR_OPTION;
use crate::capi::pointers::contract::{args, Grows};
use crate::host::ClockGuard;

/// Bytes of a tatcell_host_guard_t in its first release: the least size that a library accepts.
pub const TATCELL_HOST_GUARD_MIN: usize = 24;

/// A guard for time stamps. Start from TATCELL_HOST_GUARD_INIT.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tatcell_host_guard_t {
    /// sizeof(tatcell_host_guard_t); never written.
    pub size: u32,
    /// 1 = tatcell_host_guard_start has succeeded.
    pub started: u32,
    /// The first stamp less the running clock at that moment.
    pub offset: u64,
    /// The nanoseconds by which stamps may differ from the running clock.
    pub step: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_host_guard_t {
    const FIRST: usize = TATCELL_HOST_GUARD_MIN;
}
const _: () = assert!(size_of::<tatcell_host_guard_t>() == TATCELL_HOST_GUARD_MIN);

/// Starts a guard with a stamp of the wall clock.
///
/// A limit charges a request at the time that it is given. A stamp from the future locks a key or takes units of
/// another month, and a stamp from long ago may find no debt. The guard remembers this one stamp. Afterwards it
/// knows what time it is from a clock that nobody can set (CLOCK_BOOTTIME, or CLOCK_MONOTONIC if the system has no
/// other). Each later stamp counts only as far as it is at most step before or after that. With a step of 0 later
/// stamps do not count.
///
/// If the first stamp is wrong, all are: compare it with the last one that you have saved (tatcell_cell_restore
/// returns it). To follow a clock that was set on purpose, start the guard again. It is good until the next boot.
///
/// @param guard        started from TATCELL_HOST_GUARD_INIT; not NULL.
/// @param stamp        the wall clock, nanoseconds.
/// @param step         the nanoseconds by which stamps may differ from the running clock.
/// @param system_error gets the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM the running clock cannot be read.
/// Thread: one writer, no reader. Cost: one reading of a clock. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_guard_start(
    guard: *mut tatcell_host_guard_t,
    stamp: u64,
    step: u64,
    system_error: *mut i32,
) -> i32 {
    args!(c, now = c.known(guard), out = c.report(guard), error = c.result_if(system_error));
    let made = ClockGuard::start(stamp, step).map(|guard| {
        let (offset, step) = guard.parts();
        out.put(&tatcell_host_guard_t { started: 1, offset, step, ..now });
        0
    });
    finish(made, None, error)
}

/// Returns the time: the stamp, or the nearest time to it that the guard allows.
///
/// The time is never more than step ahead of the first stamp and the time that has run since, nor more than step
/// behind.
///
/// @param guard        started by tatcell_host_guard_start; not NULL.
/// @param stamp        the wall clock, or the stamp of a request, nanoseconds.
/// @param now          gets the time, nanoseconds; not NULL.
/// @param system_error gets the errno with TATCELL_ERR_SYSTEM, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_OPTION the guard was not started.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM the running clock cannot be read.
/// Thread: any number on one guard. Cost: one reading of a clock, some tens of nanoseconds. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_guard_now(
    guard: *const tatcell_host_guard_t,
    stamp: u64,
    now: *mut u64,
    system_error: *mut i32,
) -> i32 {
    args!(c, guard = c.known(guard), now = c.result(now), error = c.result_if(system_error));
    if guard.started != 1 {
        return TATCELL_ERR_OPTION;
    }
    finish(ClockGuard::from_parts(guard.offset, guard.step).now(stamp), Some(now), error)
}

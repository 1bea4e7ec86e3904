//! `tatcell_log_*`: log lines that are counted instead of written.

use crate::capi::codes::{TATCELL_CONTENDED, TATCELL_NON_CONFORMING, TATCELL_PASS};
use crate::capi::pointers::contract::{args, inside, Plain};
use crate::cell::{LogGate, LogLine};

/// Bytes of a tatcell_log_t.
pub const TATCELL_LOG_SIZE: usize = 8;
/// Alignment of a tatcell_log_t.
pub const TATCELL_LOG_ALIGN: usize = 8;
/// The largest count of lines left out: it means so many or more.
pub const TATCELL_LOG_MOST: u32 = 1073741824;

/// Lets one log line an interval be written and counts the others. All zero (static storage, TATCELL_LOG_INIT) is
/// fresh: the first line is written.
///
/// One gate has one interval. For many keys make an array and choose the gate by a hash of the key (tatcell_table_hash,
/// so that strangers cannot choose whose they share): two keys of one gate have their lines merged, and nothing worse.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct tatcell_log_t {
    /// When the next line may be written, and how many were left out. 0 = fresh.
    pub word: u64,
}

const _: () = assert!(size_of::<tatcell_log_t>() == TATCELL_LOG_SIZE);
const _: () = assert!(align_of::<tatcell_log_t>() == TATCELL_LOG_ALIGN);
const _: () = assert!(size_of::<LogGate>() == TATCELL_LOG_SIZE && align_of::<LogGate>() <= TATCELL_LOG_ALIGN);
const _: () = assert!(TATCELL_LOG_MOST == LogGate::MOST_LEFT_OUT);

// SAFETY: an atomic number.
unsafe impl Plain for LogGate {}

/// Decides one log line: to be written, or counted and left out.
///
///     static tatcell_log_t gates[256];
///     uint32_t more;
///     if (tatcell_log_check(&gates[hash & 255], 1000000000, now, &more) == TATCELL_PASS) {
///         if (more) fprintf(stderr, "%s refused, and %u more were not logged\n", address, more);
///         else fprintf(stderr, "%s refused\n", address);
///     }
///
/// Lines that are written are at least one interval apart, and at most 0.3 % more; intervals below 2048 ticks are
/// exact. Each line is written or counted exactly once, and each count told by exactly one written line. A reading of
/// the clock that is older than another by more than one interval writes a line too many. A gate that rests for 2^21
/// intervals or more may, with a chance of 2^-20, leave lines out for two intervals more.
///
/// @param log      not NULL.
/// @param interval ticks from one written line to the next; 0 writes every line. The same in all calls.
/// @param now      the caller's clock, ticks.
/// @param left_out lines left out since the last one that was written; 0 where this one is. TATCELL_LOG_MOST means so
///                 many or more. NULL = not wanted: then the count of a written line is lost.
/// @retval 0 write the line.
/// @retval TATCELL_NON_CONFORMING do not write it: it is counted.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any number on one gate. Cost: a load and an atomic addition where it is left out, one compare-and-swap
/// where it is written. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_log_check(
    log: *mut tatcell_log_t,
    interval: u64,
    now: u64,
    left_out: *mut u32,
) -> i32 {
    args!(c, log = c.input::<LogGate>(inside(log)), out = c.result_if(left_out));
    let (code, count) = match log.check(interval, now) {
        LogLine::Write { left_out } => (TATCELL_PASS, left_out),
        LogLine::LeaveOut => (TATCELL_NON_CONFORMING, 0),
    };
    if let Some(out) = out {
        out.put(count);
    }
    code
}

/// Takes the count of lines left out, for a line that a timer or the end of the program writes about them. When the
/// next line may be written stays as it is.
///
/// @param log      not NULL.
/// @param left_out lines left out and not told before; TATCELL_LOG_MOST means so many or more. Not NULL.
/// @retval 0 taken; also where the count was 0.
/// @retval TATCELL_CONTENDED nothing was taken, ask again; left_out is 0.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any number on one gate. Cost: one compare-and-swap, or one load where the count is 0. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_log_take(log: *mut tatcell_log_t, left_out: *mut u32) -> i32 {
    args!(c, log = c.input::<LogGate>(inside(log)), out = c.result(left_out));
    let taken = log.take();
    out.put(taken.unwrap_or(0));
    match taken {
        Some(_) => TATCELL_PASS,
        None => TATCELL_CONTENDED,
    }
}

/// Gives sizeof(tatcell_log_t) of the linked library, to compare with TATCELL_LOG_SIZE.
///
/// @return bytes.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_log_size() -> usize {
    TATCELL_LOG_SIZE
}

//! `tatcell_log_*`: log lines that are counted instead of written.

use crate::capi::codes::{TATCELL_CONTENDED, TATCELL_NON_CONFORMING, TATCELL_PASS};
use crate::capi::pointers::contract::{args, inside, Out, Plain};
use crate::cell::{LogGate, LogLine};

/// Bytes of a tatcell_log_t.
pub const TATCELL_LOG_SIZE: usize = 8;
/// Alignment of a tatcell_log_t.
pub const TATCELL_LOG_ALIGN: usize = 8;
/// The largest count of lines left out. It means this many or more.
pub const TATCELL_LOG_MOST: u32 = 1073741824;

/// Lets one log line pass in each interval and counts the others. All-zero memory (static storage,
/// TATCELL_LOG_INIT) is a fresh gate, which lets the first line be written.
///
/// One gate has one interval. For many keys, make an array and choose the gate by a hash of the key. Use
/// tatcell_table_hash, so that clients cannot choose whose gate they share. Two keys with one gate have their lines
/// merged; nothing worse happens.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct tatcell_log_t {
    /// The time of the next line, and the number of lines left out. 0 = fresh.
    pub word: u64,
}

const _: () = assert!(size_of::<tatcell_log_t>() == TATCELL_LOG_SIZE);
const _: () = assert!(align_of::<tatcell_log_t>() == TATCELL_LOG_ALIGN);
const _: () = assert!(size_of::<LogGate>() == TATCELL_LOG_SIZE && align_of::<LogGate>() <= TATCELL_LOG_ALIGN);
const _: () = assert!(TATCELL_LOG_MOST == LogGate::MOST_LEFT_OUT);

// SAFETY: an atomic number.
unsafe impl Plain for LogGate {}

fn line(log: &LogGate, (now, interval): (u64, u64), out: Option<Out<'_, u32>>) -> i32 {
    let (code, count) = match log.line(now, interval) {
        LogLine::Write { left_out } => (TATCELL_PASS, left_out),
        LogLine::LeaveOut => (TATCELL_NON_CONFORMING, 0),
    };
    if let Some(out) = out {
        out.put(count);
    }
    code
}

/// Decides whether to write one log line, or to count it and leave it out.
///
///     static tatcell_log_t gates[256];
///     uint32_t more;
///     if (tatcell_log_line(&gates[hash & 255], now, 1000000000, &more) == TATCELL_PASS) {
///         if (more) fprintf(stderr, "%s refused, and %u more were not logged\n", address, more);
///         else fprintf(stderr, "%s refused\n", address);
///     }
///
/// Written lines are at least one interval apart, and at most 0.3 % more than that; intervals below 2048 ticks are
/// exact. Each line is written or counted exactly once, and exactly one written line reports each count. A reading
/// of the clock that is older than another by more than one interval may write one line too many. A gate that was
/// unused for 2^21 intervals or more may, with a probability of 2^-20, leave out lines for two more intervals.
///
/// @param log      not NULL.
/// @param now      the caller's clock, ticks.
/// @param interval ticks from one written line to the next; 0 writes every line. The same in all calls.
/// @param left_out gets the number of lines left out since the last written one; 0 if this line is left out, too.
///                 TATCELL_LOG_MOST means this many or more. NULL = not wanted; the count of a written line is then
///                 lost.
/// @retval 0 write the line.
/// @retval TATCELL_NON_CONFORMING do not write it: it is counted.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any number on one gate. Cost: a load and an atomic addition if the line is left out, one
/// compare-and-swap if it is written. Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_log_line(
    log: *mut tatcell_log_t,
    now: u64,
    interval: u64,
    left_out: *mut u32,
) -> i32 {
    args!(c, log = c.input::<LogGate>(inside(log)), out = c.result_if(left_out));
    line(log, (now, interval), out)
}

/// As tatcell_log_line, but the interval comes before the clock. Deprecated: every other call takes the clock first,
/// and no compiler notices two numbers that are swapped.
///
/// @param log      not NULL.
/// @param interval as for tatcell_log_line.
/// @param now      the caller's clock, ticks.
/// @param left_out as for tatcell_log_line.
/// @retval as tatcell_log_line.
/// Thread: as tatcell_log_line. Cost: as tatcell_log_line. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_log_check(
    log: *mut tatcell_log_t,
    interval: u64,
    now: u64,
    left_out: *mut u32,
) -> i32 {
    args!(c, log = c.input::<LogGate>(inside(log)), out = c.result_if(left_out));
    line(log, (now, interval), out)
}

/// Takes the count of lines left out, for a summary line from a timer or at the end of the program. It does not
/// change when the next line may be written.
///
/// @param log      not NULL.
/// @param left_out gets the number of lines left out and not reported before; TATCELL_LOG_MOST means this many or
///                 more. Not NULL.
/// @retval 0 taken; also if the count was 0.
/// @retval TATCELL_CONTENDED nothing was taken and left_out is 0; ask again.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any number on one gate. Cost: one compare-and-swap, or one load if the count is 0. Since 0.3.
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

/// Returns sizeof(tatcell_log_t) of the linked library, to compare with TATCELL_LOG_SIZE. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_log_size() -> usize {
    TATCELL_LOG_SIZE
}

//! `tatcell_sliding_log_*`: a limit on the units in every window, with a stamp for each in the caller's memory.

use super::cell::tatcell_cell_t;
use crate::answer::Permit;
use crate::capi::codes::{limit_code, TATCELL_ERR_HANDLE, TATCELL_PASS};
use crate::capi::decision::{fill, finish, finish_done, finish_refund, tatcell_decision_t};
use crate::capi::limit::limit::TATCELL_SKEW_NONE;
use crate::capi::pointers::contract::{args, inside, Contract, Marked};
use crate::capi::pointers::places::Span;
use crate::cell::{Cell, ExclusiveCell};
use crate::cell::{ExclusiveSlidingLog, SlidingLog};
use crate::limit::LimitError;
use crate::table::Counters;

/// Bytes of a tatcell_sliding_log_t: of the handle, not of the stamps. This size never changes.
pub const TATCELL_SLIDING_LOG_SIZE: usize = 64;
/// Alignment of a tatcell_sliding_log_t.
pub const TATCELL_SLIDING_LOG_ALIGN: usize = 8;

/// Handle of a sliding log: at most N units in every window, exactly, for requests of one unit. All state is in N
/// cells that you own, one stamp in each. 8 cells that are aligned to 64 bytes are one cache line. The handle is
/// private to one process. After its init call it is read-only, and any number of threads may use it at once. The
/// library refuses a zeroed handle, and a handle of another version of the library, with TATCELL_ERR_HANDLE.
///
/// Use it for promises such as "at most 8 logins in any 10 minutes", for which a fixed window or an approximation
/// is not good enough. A decision reads up to N stamps, and a refusal reads all of them. For weighted costs, a
/// large N and most other limits, use a tatcell_limit_t and one cell.
#[repr(C, align(8))]
pub struct tatcell_sliding_log_t {
    /// Private to the library.
    pub opaque: [u64; 8],
}

/// The contents of a tatcell_sliding_log_t.
#[repr(C)]
struct Handle {
    /// `READY`.
    mark: u64,
    stamps: *mut tatcell_cell_t,
    count: usize,
    window: u64,
    /// As given: 0 = default, `TATCELL_SKEW_NONE` = none.
    skew: u64,
}

/// "tatcell", kind of object, version of `Handle`: raised whenever its layout changes.
const READY: u64 = 0x7461_7463_656c_7301;

const _: () = assert!(size_of::<tatcell_sliding_log_t>() == TATCELL_SLIDING_LOG_SIZE);
const _: () = assert!(align_of::<tatcell_sliding_log_t>() == TATCELL_SLIDING_LOG_ALIGN);
const _: () = assert!(size_of::<Handle>() <= TATCELL_SLIDING_LOG_SIZE);
const _: () = assert!(align_of::<Handle>() <= TATCELL_SLIDING_LOG_ALIGN);

// SAFETY: its mark comes first, and only `tatcell_sliding_log_init` writes that, with all of the rest.
unsafe impl Marked for Handle {
    const MARK: u64 = READY;
    const ERROR: i32 = TATCELL_ERR_HANDLE;
}

/// Sets the skew that C gave.
macro_rules! with_skew {
    ($log:expr, $skew:expr) => {
        match $skew {
            0 => Ok($log),
            TATCELL_SKEW_NONE => $log.skew(0),
            ticks => $log.skew(ticks),
        }
    };
}

/// Returns a log that any number of threads may use.
#[inline(always)]
fn view(stamps: &[Cell], window: u64, skew: u64) -> Result<SlidingLog<'_>, LimitError> {
    let log = SlidingLog::new(stamps, window)?;
    with_skew!(log, skew)
}

impl<'a> Contract<'a> {
    /// Returns the log of a handle. Its stamps last as long as the handle.
    #[inline(always)]
    fn sliding_log(self, p: *const tatcell_sliding_log_t) -> Result<SlidingLog<'a>, i32> {
        let handle: &Handle = self.marked(inside(p))?;
        let stamps = self.slice(handle.stamps.cast_const().cast::<Cell>(), handle.count)?;
        view(stamps, handle.window, handle.skew).map_err(limit_code)
    }

    /// Does the same for stamps that nobody else uses during the call.
    #[inline(always)]
    fn exclusive_sliding_log(self, p: *const tatcell_sliding_log_t) -> Result<ExclusiveSlidingLog<'a>, i32> {
        let handle: &Handle = self.marked(inside(p))?;
        let bytes = handle.count.saturating_mul(size_of::<ExclusiveCell>());
        let stamps = self.buffer(handle.stamps.cast::<ExclusiveCell>(), bytes)?;
        let log = ExclusiveSlidingLog::new(stamps, handle.window).map_err(limit_code)?;
        with_skew!(log, handle.skew).map_err(limit_code)
    }
}

/// Makes the handle of a sliding log. In every window, the log admits as many units as there are stamps.
///
/// The call does not touch the stamps. Zeroed stamps are an empty log. Several handles, also of several processes,
/// may use the same stamps with the same window.
///
/// @param log    handle to initialise, outside the stamps; not NULL.
/// @param stamps cells that belong to the log from now on; not NULL. Aligned to 64 bytes is better.
/// @param count  number of stamps: the most units in a window.
/// @param window ticks of the caller's clock.
/// @param skew   ticks by which a reading may be older than another; an older one finds the log empty. 0 = 2^61,
///               TATCELL_SKEW_NONE = none.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_OVERLAP the handle lies among the stamps.
/// @retval TATCELL_ERR_RATE there are no stamps; TATCELL_ERR_UNITS there are 2^32 or more, unless
///         TATCELL_ERR_TOO_LARGE comes first.
/// @retval TATCELL_ERR_PERIOD the window is 0.
/// @retval TATCELL_ERR_HORIZON window and skew together are 2^63 ticks or more.
/// Thread: one writer, no reader of the handle. Cost: a few comparisons. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_sliding_log_init(
    log: *mut tatcell_sliding_log_t,
    stamps: *mut tatcell_cell_t,
    count: usize,
    window: u64,
    skew: u64,
) -> i32 {
    args!(
        c,
        out = c.result(log),
        cells = c.slice(stamps.cast_const().cast::<Cell>(), count),
        () = Span::of(log, 1).apart(Span::of(stamps, count)),
    );
    match view(cells, window, skew) {
        Ok(_) => {
            out.put_inside(Handle { mark: READY, stamps, count, window, skew });
            TATCELL_PASS
        }
        Err(e) => limit_code(e),
    }
}

/// Decides one request of one unit and charges it if it conforms.
///
/// The request conforms iff fewer units than there are stamps were charged in the window up to now. Units that were
/// charged by a clock ahead of now count as well.
///
/// @param log         not NULL.
/// @param now         the caller's clock, ticks.
/// @param retry_after ticks until the next unit leaves the window, 0 if the request passes or is contended. If
///                    other threads charge meanwhile, it may be too short. NULL = not wanted. Not written on error.
/// @retval 0 passes, and is charged.
/// @retval TATCELL_NON_CONFORMING, TATCELL_CONTENDED does not pass; nothing is charged.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_HANDLE log is not initialised.
/// Thread: any number on one log. Cost: loads of up to all stamps, of all if refused; one compare-and-swap if it
/// charges. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_sliding_log_check(
    log: *const tatcell_sliding_log_t,
    now: u64,
    retry_after: *mut u64,
) -> i32 {
    args!(c, log = c.sliding_log(log), retry = c.result_if(retry_after));
    finish(log.check(now), retry)
}

/// Decides one request of one unit and charges it if it conforms, for stamps with one owner. It equals
/// tatcell_sliding_log_check with plain loads and stores, without atomic instructions.
///
/// @param log         not NULL; no other thread uses its stamps during the call.
/// @param now         the caller's clock, ticks.
/// @param retry_after ticks until the next unit leaves the window, as for tatcell_sliding_log_check; NULL = not
///                    wanted.
/// @retval as tatcell_sliding_log_check; never TATCELL_CONTENDED.
/// Thread: one at a time on one log. Cost: as tatcell_sliding_log_check, with a store. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_sliding_log_check_exclusive(
    log: *const tatcell_sliding_log_t,
    now: u64,
    retry_after: *mut u64,
) -> i32 {
    args!(c, mut log = c.exclusive_sliding_log(log), retry = c.result_if(retry_after));
    finish(log.check(now), retry)
}

/// Decides one request of one unit, charges it if it conforms, and returns the full answer. remaining, next_unit
/// and reset_after are exact for the stamps as they were read.
///
/// @param log      not NULL.
/// @param now      the caller's clock, ticks.
/// @param out      started from TATCELL_DECISION_INIT; not NULL.
/// @param counters this thread's counters; NULL = off.
/// @retval 0, TATCELL_NON_CONFORMING, TATCELL_CONTENDED equal to out->verdict; charged if 0.
/// @retval TATCELL_ERR_SIZE out->size is not set.
/// @retval others as tatcell_sliding_log_check.
/// Thread: any number on one log. Cost: loads of all stamps, one compare-and-swap if it charges. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_sliding_log_check_ex(
    log: *const tatcell_sliding_log_t,
    now: u64,
    out: *mut tatcell_decision_t,
    counters: *mut Counters,
) -> i32 {
    args!(c, log = c.sliding_log(log), out = c.report(out), counters = c.owned_if(counters));
    let made = log.check_ex(now);
    if let Some(counters) = counters {
        counters.count(&made, false);
    }
    fill(&made, out)
}

/// Reports how a request of one unit would be decided, without charging it.
///
/// @param log not NULL.
/// @param now the caller's clock, ticks.
/// @param out started from TATCELL_DECISION_INIT; not NULL.
/// @retval as tatcell_sliding_log_check_ex; never TATCELL_CONTENDED.
/// Thread: any number on one log; only reads. Cost: loads of all stamps. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_sliding_log_peek(
    log: *const tatcell_sliding_log_t,
    now: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, log = c.sliding_log(log), out = c.report(out));
    fill(&log.peek(now), out)
}

/// Takes the unit of a permit out of the log, if it is still in the window.
///
/// Use a permit once. Do not use a permit from before a reset.
///
/// @param log      the log that was charged; not NULL.
/// @param now      the caller's clock, ticks.
/// @param permit   from a decision; not NULL.
/// @param credited gets the units given back, 1 or 0; NULL = not wanted.
/// @retval 0 done (perhaps the unit had left the window).
/// @retval TATCELL_CONTENDED nothing is changed; ask again.
/// @retval others as tatcell_sliding_log_check.
/// Thread: any number on one log. Cost: one compare-and-swap. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_sliding_log_refund(
    log: *const tatcell_sliding_log_t,
    now: u64,
    permit: *const Permit,
    credited: *mut u64,
) -> i32 {
    args!(c, log = c.sliding_log(log), permit = c.input(permit), credited = c.result_if(credited));
    finish_refund(log.refund(now, permit), credited)
}

/// Empties a log.
///
/// @param log not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: any number on one log. Cost: a store of each stamp. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_sliding_log_reset(log: *const tatcell_sliding_log_t) -> i32 {
    args!(c, log = c.sliding_log(log));
    log.reset();
    finish_done(true)
}

/// Returns sizeof(tatcell_sliding_log_t) of the linked library, to compare with TATCELL_SLIDING_LOG_SIZE. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_sliding_log_size() -> usize {
    TATCELL_SLIDING_LOG_SIZE
}

//! `tatcell_cell32_*`: the 32-bit cell, for targets with 32-bit atomics or half the memory.

use crate::answer::Permit;
use crate::capi::codes::limit_code;
use crate::capi::decision::{fill, fill_if, finish, finish_done, finish_refund, tatcell_decision_t};
use crate::capi::limit::algorithms::change;
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, inside, Contract, Plain};
use crate::cell::Cell32;
use crate::table::Counters;

/// Bytes of a tatcell_cell32_t.
pub const TATCELL_CELL32_SIZE: usize = 4;
/// Alignment of a tatcell_cell32_t.
pub const TATCELL_CELL32_ALIGN: usize = 4;

/// One shared 32-bit cell. All-zero memory (static storage, calloc, TATCELL_CELL32_INIT) is a fresh cell with its
/// full burst.
///
/// The clock wraps after 2^32 q-units. A cell that was idle for nearly that long may read as a debt of at most
/// horizon and skew until it drains. If that matters, reset idle cells once per span (tatcell_limit_info).
#[derive(Debug)]
#[repr(C, align(4))]
pub struct tatcell_cell32_t {
    /// The state word. 0 = fresh. To save a cell, use tatcell_cell32_save.
    pub word: u32,
}

const _: () = assert!(size_of::<tatcell_cell32_t>() == TATCELL_CELL32_SIZE);
const _: () = assert!(align_of::<tatcell_cell32_t>() == TATCELL_CELL32_ALIGN);
const _: () =
    assert!(size_of::<Cell32>() == TATCELL_CELL32_SIZE && align_of::<Cell32>() <= TATCELL_CELL32_ALIGN);

// SAFETY: one word, and every value is a state.
unsafe impl Plain for Cell32 {}

impl<'a> Contract<'a> {
    /// Returns a cell that others may use: every access is atomic.
    #[inline(always)]
    pub(in crate::capi) fn cell32(self, p: *const tatcell_cell32_t) -> Result<&'a Cell32, i32> {
        self.input(inside(p))
    }
}

/// Decides one request and charges it if it conforms.
///
/// @param cell        not NULL.
/// @param limit       32-bit limit; not NULL.
/// @param now         the caller's clock, ticks.
/// @param cost        units; 0 only peeks and never writes.
/// @param retry_after ticks until the same cost conforms: 0 if it passes or is contended, UINT64_MAX if it never
///                    conforms. NULL = not wanted. Not written on error.
/// @retval 0 passes, and is charged.
/// @retval TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED does not pass; nothing is charged except a
///         penalty.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_LIMIT limit is not initialised for 32-bit cells.
/// Thread: any number on one cell. Cost: one compare-and-swap if it charges, else one load. Since 0.1.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_cell32_check(
    cell: *mut tatcell_cell32_t,
    limit: *const tatcell_limit_t,
    now: u64,
    cost: u32,
    retry_after: *mut u64,
) -> i32 {
    args!(c, cell = c.cell32(cell), limit = c.limit32(limit), retry = c.result_if(retry_after));
    finish(cell.check(limit, now, u64::from(cost)), retry)
}

/// Decides one request, charges it if it conforms, and returns the full answer.
///
/// @param cell     not NULL.
/// @param limit    32-bit limit; not NULL.
/// @param now      the caller's clock, ticks.
/// @param cost     units; 0 only peeks and never writes.
/// @param room     elastic room in units above the burst for this call; more than the limit's max_room counts as
///                 max_room. 0 = none.
/// @param out      started from TATCELL_DECISION_INIT; not NULL.
/// @param counters this thread's counters; NULL = off.
/// @retval 0, TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED equal to out->verdict. 0 is charged; the
///         others charge at most a penalty.
/// @retval TATCELL_ERR_SIZE out->size is not set.
/// @retval others as tatcell_cell32_check.
/// Thread: any number on one cell. Cost: as tatcell_cell32_check and one division. Since 0.1.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_cell32_check_ex(
    cell: *mut tatcell_cell32_t,
    limit: *const tatcell_limit_t,
    now: u64,
    cost: u32,
    room: u64,
    out: *mut tatcell_decision_t,
    counters: *mut Counters,
) -> i32 {
    args!(
        c,
        cell = c.cell32(cell),
        limit = c.limit32(limit),
        out = c.report(out),
        counters = c.owned_if(counters)
    );
    let made = cell.check_ex(limit, now, u64::from(cost), room);
    if let Some(counters) = counters {
        counters.count(&made, false);
    }
    fill(&made, out)
}

/// Reports how a request of this cost would be decided, without charging it.
///
/// @param cell  not NULL.
/// @param limit 32-bit limit; not NULL.
/// @param now   the caller's clock, ticks.
/// @param cost  units.
/// @param out   started from TATCELL_DECISION_INIT; not NULL.
/// @retval as tatcell_cell32_check_ex; never TATCELL_CONTENDED.
/// Thread: any number on one cell; only reads. Cost: one load, one division. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell32_peek(
    cell: *const tatcell_cell32_t,
    limit: *const tatcell_limit_t,
    now: u64,
    cost: u32,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, cell = c.cell32(cell), limit = c.limit32(limit), out = c.report(out));
    fill(&cell.peek(limit, now, u64::from(cost)), out)
}

/// Charges a cost that is known only afterwards. It always charges, until the debt is max_debt of the limit above
/// the burst.
///
/// @param cell  not NULL.
/// @param limit 32-bit limit; not NULL.
/// @param now   the caller's clock, ticks.
/// @param cost  units; may be above the burst.
/// @param out   started from TATCELL_DECISION_INIT; out->units is the number of units that it took. NULL = not
///              wanted.
/// @retval 0 charged, perhaps less than cost.
/// @retval TATCELL_CONTENDED nothing is charged; ask again.
/// @retval others as tatcell_cell32_check_ex.
/// Thread: any number on one cell. Cost: one compare-and-swap. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell32_charge(
    cell: *mut tatcell_cell32_t,
    limit: *const tatcell_limit_t,
    now: u64,
    cost: u32,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, cell = c.cell32(cell), limit = c.limit32(limit), out = c.report_if(out));
    fill_if(&cell.charge(limit, now, u64::from(cost)), out)
}

/// Reserves units for the earliest instant at which they conform, for shaping; out->departure is that instant.
///
/// Departures of one cell rise in the order of their reservations, as long as the callers' clocks do not step back.
/// If the reservation is refused, out->retry_after is the time until the same request would be accepted.
///
/// @param cell  not NULL.
/// @param limit 32-bit limit with a max_delay; not NULL.
/// @param now   the caller's clock, ticks.
/// @param cost  units, at most the burst.
/// @param out   started from TATCELL_DECISION_INIT; not NULL. Gets departure, the tick at which the request may
///              leave, and the permit for tatcell_cell32_refund if the sender gives up.
/// @retval 0 reserved.
/// @retval TATCELL_NON_CONFORMING the request would wait longer than max_delay; nothing is charged.
/// @retval TATCELL_NEVER, TATCELL_CONTENDED nothing is charged.
/// @retval others as tatcell_cell32_check_ex.
/// Thread: any number on one cell. Cost: one compare-and-swap. Since 0.1.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_cell32_reserve(
    cell: *mut tatcell_cell32_t,
    limit: *const tatcell_limit_t,
    now: u64,
    cost: u32,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, cell = c.cell32(cell), limit = c.limit32(limit), out = c.report(out));
    fill(&cell.reserve(limit, now, u64::from(cost)), out)
}

/// Gives back the part of a charge that has not drained since, as the permit of the charge proves. A permit that is
/// older than the limit's horizon gives back nothing.
///
/// Use a permit once. If a key has several permits, refund the newest first, or set TATCELL_LIMIT_STRICT_REFUNDS. A
/// cell that was reset does not recognise older permits: give its limit another epoch. If several reservations
/// wait, give back only the last one. After a refund from the middle, the next reservation may get the departure
/// that another one has.
///
/// @param cell     the cell that was charged; not NULL.
/// @param limit    the limit that it was charged under; not NULL.
/// @param now      the caller's clock, ticks.
/// @param permit   from a decision; not NULL.
/// @param credited gets the ticks of debt removed, rounded down; NULL = not wanted.
/// @retval 0 done (perhaps nothing was left to give back).
/// @retval TATCELL_CONTENDED nothing is changed; ask again.
/// @retval others as tatcell_cell32_check.
/// Thread: any number on one cell. Cost: one compare-and-swap. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell32_refund(
    cell: *mut tatcell_cell32_t,
    limit: *const tatcell_limit_t,
    now: u64,
    permit: *const Permit,
    credited: *mut u64,
) -> i32 {
    args!(
        c,
        cell = c.cell32(cell),
        limit = c.limit32(limit),
        permit = c.input(permit),
        credited = c.result_if(credited)
    );
    finish_refund(cell.refund(limit, now, permit), credited)
}

/// As tatcell_cell32_refund, with the full answer: the state of the cell afterwards, and the number of units given
/// back.
///
/// @param cell   the cell that was charged; not NULL.
/// @param limit  the limit that it was charged under; not NULL.
/// @param now    the caller's clock, ticks.
/// @param permit from a decision; not NULL.
/// @param out    started from TATCELL_DECISION_INIT; not NULL. out->units is the number of units given back.
/// @retval 0 done (perhaps nothing was left to give back).
/// @retval TATCELL_ERR_SIZE out->size is not set.
/// @retval others as tatcell_cell32_refund.
/// Thread: any number on one cell. Cost: one compare-and-swap, three divisions. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell32_refund_ex(
    cell: *mut tatcell_cell32_t,
    limit: *const tatcell_limit_t,
    now: u64,
    permit: *const Permit,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, cell = c.cell32(cell), limit = c.limit32(limit), permit = c.input(permit), out = c.report(out));
    fill(&cell.refund_ex(limit, now, permit), out)
}

/// Moves a cell from one limit to another, from now on. The key neither gains nor loses anything for the past.
///
/// @param cell      not NULL.
/// @param old_limit the limit so far; not NULL.
/// @param new_limit the limit from now on; not NULL.
/// @param now       the caller's clock, ticks.
/// @param how       a TATCELL_CHANGE_ constant.
/// @retval 0 done.
/// @retval TATCELL_CONTENDED nothing is changed; ask again.
/// @retval TATCELL_ERR_OPTION how is unknown.
/// @retval others as tatcell_cell32_check.
/// Thread: any number on one cell. If other threads still check with the old limit, both limits must have the same
/// resolution. Cost: one compare-and-swap, one 128-bit division. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell32_change(
    cell: *mut tatcell_cell32_t,
    old_limit: *const tatcell_limit_t,
    new_limit: *const tatcell_limit_t,
    now: u64,
    how: u32,
) -> i32 {
    args!(
        c,
        cell = c.cell32(cell),
        old = c.limit32(old_limit),
        new = c.limit32(new_limit),
        how = change(how)
    );
    match cell.change(old, new, now, how) {
        Ok(done) => finish_done(done),
        Err(e) => limit_code(e),
    }
}

/// Makes a cell fresh again, with its full burst.
///
/// @param cell not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any number on one cell. Cost: one store. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell32_reset(cell: *mut tatcell_cell32_t) -> i32 {
    args!(c, cell = c.cell32(cell));
    cell.reset();
    finish_done(true)
}

/// Returns sizeof(tatcell_cell32_t) of the linked library, to compare with TATCELL_CELL32_SIZE. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_cell32_size() -> usize {
    TATCELL_CELL32_SIZE
}

//! `tatcell_cell_*`: the 64-bit cell, shared; and `_exclusive` forms for one owner.

use crate::answer::{Outcome, Permit};
use crate::capi::codes::limit_code;
use crate::capi::decision::{fill, fill_if, finish, finish_done, finish_refund, tatcell_decision_t};
use crate::capi::limit::algorithms::change;
use crate::capi::limit::limit::{only_gcra, tatcell_limit_t};
use crate::capi::pointers::contract::{args, inside, Contract, Out, Plain};
use crate::cell::{Cell, ExclusiveCell};
use crate::limit::Limit;
use crate::table::Counters;

/// Bytes of a tatcell_cell_t.
pub const TATCELL_CELL_SIZE: usize = 8;
/// Alignment of a tatcell_cell_t.
pub const TATCELL_CELL_ALIGN: usize = 8;

/// One shared 64-bit cell. All-zero memory (static storage, calloc, TATCELL_CELL_INIT) is a fresh cell with its
/// full burst.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct tatcell_cell_t {
    /// The state word. 0 = fresh. To save a cell, use tatcell_cell_save.
    pub word: u64,
}

const _: () = assert!(size_of::<tatcell_cell_t>() == TATCELL_CELL_SIZE);
const _: () = assert!(align_of::<tatcell_cell_t>() == TATCELL_CELL_ALIGN);
const _: () = assert!(size_of::<Cell>() == TATCELL_CELL_SIZE && align_of::<Cell>() <= TATCELL_CELL_ALIGN);
const _: () = assert!(size_of::<ExclusiveCell>() == TATCELL_CELL_SIZE);

// SAFETY: one word, and every value is a state.
unsafe impl Plain for Cell {}
// SAFETY: as `Cell`.
unsafe impl Plain for ExclusiveCell {}

/// Limit, cell and place for the retry time of a check.
type Asked<'a, C> = (&'a Limit, C, Option<Out<'a, u64>>);

impl<'a> Contract<'a> {
    /// Returns a cell that others may use: every access is atomic.
    #[inline(always)]
    pub(in crate::capi) fn cell(self, p: *const tatcell_cell_t) -> Result<&'a Cell, i32> {
        self.input(inside(p))
    }

    /// Returns a cell that only this call uses.
    #[inline(always)]
    fn exclusive_cell(self, p: *mut tatcell_cell_t) -> Result<&'a mut ExclusiveCell, i32> {
        self.owned(inside::<_, ExclusiveCell>(p).cast_mut())
    }

    /// Returns the arguments of a check. Nearly all calls pass [`together`](Self::together).
    #[inline(always)]
    fn cell_asked(
        self,
        cell: *const tatcell_cell_t,
        limit: *const tatcell_limit_t,
        retry: *mut u64,
    ) -> Result<Asked<'a, &'a Cell>, i32> {
        match self.together::<Limit, Cell, _>(inside(limit), inside(cell), retry) {
            Some(asked) => Ok(asked),
            None => {
                let cell = self.cell(cell)?;
                Ok((self.limit64(limit)?, cell, self.result_if(retry)?))
            }
        }
    }

    /// Does the same as [`cell_asked`](Self::cell_asked) for a cell that only this call uses.
    #[inline(always)]
    fn owned_asked(
        self,
        cell: *mut tatcell_cell_t,
        limit: *const tatcell_limit_t,
        retry: *mut u64,
    ) -> Result<Asked<'a, &'a mut ExclusiveCell>, i32> {
        let place = inside::<_, ExclusiveCell>(cell).cast_mut();
        match self.together_owned::<Limit, _, _>(inside(limit), place, retry) {
            Some(asked) => Ok(asked),
            None => {
                let cell = self.exclusive_cell(cell)?;
                Ok((self.limit64(limit)?, cell, self.result_if(retry)?))
            }
        }
    }
}

/// Checks a cell whose q-unit is not a tick. Out of line, so that the common case has no shifts in its way. Like that
/// one it ends with a call of the function that decides the rest, so it saves no register for it.
macro_rules! out_of_line {
    ($shifted:ident, $again:ident, $cell:ty) => {
        #[inline(never)]
        fn $shifted(cell: $cell, limit: &Limit, now: u64, cost: u64, retry: Option<Out<'_, u64>>) -> i32 {
            match cell.check_shifted(limit, now, cost) {
                Some(Outcome::NonConforming { retry_after }) => late(limit, now, retry_after, retry),
                Some(outcome) => finish(outcome, retry),
                None => $again(cell, limit, now, cost, retry),
            }
        }

        #[inline(never)]
        fn $again(cell: $cell, limit: &Limit, now: u64, cost: u64, retry: Option<Out<'_, u64>>) -> i32 {
            finish(cell.check_again(limit, now, cost), retry)
        }
    };
}

/// Refuses a request that does not conform for `q` q-units.
#[inline(never)]
fn late(limit: &Limit, now: u64, q: u64, retry: Option<Out<'_, u64>>) -> i32 {
    // Otherwise the compiler would pass the shifts instead of the limit, and so keep them all along.
    let limit = core::hint::black_box(limit);
    finish(Outcome::NonConforming { retry_after: limit.0.ticks_up(q, now) }, retry)
}

out_of_line!(shifted, again, &Cell);
out_of_line!(shifted_owned, again_owned, &mut ExclusiveCell);

/// Decides one request and charges it if it conforms.
///
/// @param cell        not NULL.
/// @param limit       64-bit limit; not NULL.
/// @param now         the caller's clock, ticks.
/// @param cost        units; 0 only peeks and never writes.
/// @param retry_after ticks until the same cost conforms: 0 if it passes or is contended, UINT64_MAX if it never
///                    conforms. NULL = not wanted. Not written on error.
/// @retval 0 passes, and is charged.
/// @retval TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED does not pass; nothing is charged except a
///         penalty.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_LIMIT limit is not initialised for 64-bit cells.
/// Thread: any number on one cell. Cost: one compare-and-swap if it charges, else one load. Since 0.1.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_cell_check(
    cell: *mut tatcell_cell_t,
    limit: *const tatcell_limit_t,
    now: u64,
    cost: u64,
    retry_after: *mut u64,
) -> i32 {
    args!(c, (limit, cell, retry) = c.cell_asked(cell, limit, retry_after));
    match cell.check_whole(limit, now, cost) {
        Some(outcome) => finish(outcome, retry),
        None => shifted(cell, limit, now, cost, retry),
    }
}

/// Decides one request, charges it if it conforms, and returns the full answer.
///
/// @param cell     not NULL.
/// @param limit    64-bit limit; not NULL.
/// @param now      the caller's clock, ticks.
/// @param cost     units; 0 only peeks and never writes.
/// @param room     elastic room in units above the burst for this call; more than the limit's max_room counts as
///                 max_room. 0 = none.
/// @param out      started from TATCELL_DECISION_INIT; not NULL.
/// @param counters this thread's counters; NULL = off.
/// @retval 0, TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED equal to out->verdict. 0 is charged; the
///         others charge at most a penalty.
/// @retval TATCELL_ERR_SIZE out->size is not set.
/// @retval others as tatcell_cell_check.
/// Thread: any number on one cell. Cost: as tatcell_cell_check and one division. Since 0.1.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_cell_check_ex(
    cell: *mut tatcell_cell_t,
    limit: *const tatcell_limit_t,
    now: u64,
    cost: u64,
    room: u64,
    out: *mut tatcell_decision_t,
    counters: *mut Counters,
) -> i32 {
    args!(
        c,
        cell = c.cell(cell),
        limit = c.limit64(limit),
        out = c.report(out),
        counters = c.owned_if(counters)
    );
    let made = cell.check_ex(limit, now, cost, room);
    if let Some(counters) = counters {
        counters.count(&made, false);
    }
    fill(&made, out)
}

/// Reports how a request of this cost would be decided, without charging it.
///
/// @param cell  not NULL.
/// @param limit 64-bit limit; not NULL.
/// @param now   the caller's clock, ticks.
/// @param cost  units.
/// @param out   started from TATCELL_DECISION_INIT; not NULL.
/// @retval as tatcell_cell_check_ex; never TATCELL_CONTENDED.
/// Thread: any number on one cell; only reads. Cost: one load, one division. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell_peek(
    cell: *const tatcell_cell_t,
    limit: *const tatcell_limit_t,
    now: u64,
    cost: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, cell = c.cell(cell), limit = c.limit64(limit), out = c.report(out));
    fill(&cell.peek(limit, now, cost), out)
}

/// Charges a cost that is known only afterwards. It always charges, until the debt is max_debt of the limit above
/// the burst.
///
/// @param cell  not NULL.
/// @param limit 64-bit limit; not NULL.
/// @param now   the caller's clock, ticks.
/// @param cost  units; may be above the burst.
/// @param out   started from TATCELL_DECISION_INIT; out->units is the number of units that it took. NULL = not
///              wanted.
/// @retval 0 charged, perhaps less than cost.
/// @retval TATCELL_CONTENDED nothing is charged; ask again.
/// @retval others as tatcell_cell_check_ex.
/// Thread: any number on one cell. Cost: one compare-and-swap. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell_charge(
    cell: *mut tatcell_cell_t,
    limit: *const tatcell_limit_t,
    now: u64,
    cost: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, cell = c.cell(cell), limit = c.limit64(limit), out = c.report_if(out));
    fill_if(&cell.charge(limit, now, cost), out)
}

/// Reserves units for the earliest instant at which they conform, for shaping; out->departure is that instant.
///
/// Departures of one cell rise in the order of their reservations, as long as the callers' clocks do not step back.
/// If the reservation is refused, out->retry_after is the time until the same request would be accepted.
///
/// @param cell  not NULL.
/// @param limit 64-bit limit of GCRA with a max_delay; not NULL.
/// @param now   the caller's clock, ticks.
/// @param cost  units, at most the burst.
/// @param out   started from TATCELL_DECISION_INIT; not NULL. Gets departure, the tick at which the request may
///              leave, and the permit for tatcell_cell_refund if the sender gives up.
/// @retval 0 reserved.
/// @retval TATCELL_NON_CONFORMING the request would wait longer than max_delay; nothing is charged.
/// @retval TATCELL_NEVER, TATCELL_CONTENDED nothing is charged.
/// @retval TATCELL_ERR_ALGORITHM the limit is not of GCRA; other algorithms cannot reserve.
/// @retval others as tatcell_cell_check_ex.
/// Thread: any number on one cell. Cost: one compare-and-swap. Since 0.1.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_cell_reserve(
    cell: *mut tatcell_cell_t,
    limit: *const tatcell_limit_t,
    now: u64,
    cost: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, cell = c.cell(cell), limit = c.limit64(limit), out = c.report(out), _gcra = only_gcra(&limit.0));
    fill(&cell.reserve(limit, now, cost), out)
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
/// @param credited ticks of debt removed, rounded down (units if the limit counts units); NULL = not wanted.
/// @retval 0 done (perhaps nothing was left to give back).
/// @retval TATCELL_CONTENDED nothing is changed; ask again.
/// @retval others as tatcell_cell_check.
/// Thread: any number on one cell. Cost: one compare-and-swap. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell_refund(
    cell: *mut tatcell_cell_t,
    limit: *const tatcell_limit_t,
    now: u64,
    permit: *const Permit,
    credited: *mut u64,
) -> i32 {
    args!(
        c,
        cell = c.cell(cell),
        limit = c.limit64(limit),
        permit = c.input(permit),
        credited = c.result_if(credited)
    );
    finish_refund(cell.refund(limit, now, permit), credited)
}

/// As tatcell_cell_refund, with the full answer: the state of the cell afterwards, and the number of units given
/// back.
///
/// @param cell   the cell that was charged; not NULL.
/// @param limit  the limit that it was charged under; not NULL.
/// @param now    the caller's clock, ticks.
/// @param permit from a decision; not NULL.
/// @param out    started from TATCELL_DECISION_INIT; not NULL. out->units is the number of units given back.
/// @retval 0 done (perhaps nothing was left to give back).
/// @retval TATCELL_ERR_SIZE out->size is not set.
/// @retval others as tatcell_cell_refund.
/// Thread: any number on one cell. Cost: one compare-and-swap, three divisions. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell_refund_ex(
    cell: *mut tatcell_cell_t,
    limit: *const tatcell_limit_t,
    now: u64,
    permit: *const Permit,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, cell = c.cell(cell), limit = c.limit64(limit), permit = c.input(permit), out = c.report(out));
    fill(&cell.refund_ex(limit, now, permit), out)
}

/// Moves a cell from one limit to another, from now on. The key neither gains nor loses anything for the past.
///
/// Limits that count keep their count: a window its units and its end, a sliding counter both counts, a used-up quota
/// how many units it is short of full. A level stays the same and decays by the new half-life from now on;
/// TATCELL_CHANGE_KEEP_TIME keeps the time after which it is forgotten instead. Give the new limit another epoch, or
/// refunds of permits from before the change give back too much.
///
/// @param cell      not NULL.
/// @param old_limit the limit so far; not NULL.
/// @param new_limit the limit from now on; not NULL.
/// @param now       the caller's clock, ticks.
/// @param how       a TATCELL_CHANGE_ constant.
/// @retval 0 done.
/// @retval TATCELL_CONTENDED nothing is changed; ask again.
/// @retval TATCELL_ERR_OPTION how is unknown.
/// @retval TATCELL_ERR_ALGORITHM the limits have different algorithms: only TATCELL_CHANGE_RESET is possible.
/// @retval TATCELL_ERR_KEEP_WINDOW their windows differ in length: only TATCELL_CHANGE_RESET is possible.
/// @retval TATCELL_ERR_KEEP_COUNT the key has counted more than the word of the new limit holds.
/// @retval others as tatcell_cell_check.
/// Thread: any number on one cell. If other threads still check with the old limit, both limits must have the same
/// resolution and count_bits. Cost: one compare-and-swap, one 128-bit division. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell_change(
    cell: *mut tatcell_cell_t,
    old_limit: *const tatcell_limit_t,
    new_limit: *const tatcell_limit_t,
    now: u64,
    how: u32,
) -> i32 {
    args!(c, cell = c.cell(cell), old = c.limit64(old_limit), new = c.limit64(new_limit), how = change(how));
    match cell.change(old, new, now, how) {
        Ok(done) => finish_done(done),
        Err(e) => limit_code(e),
    }
}

/// Makes a cell fresh again, with its full burst. Return or zero the leases of the cell first.
///
/// @param cell not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any number on one cell. Cost: one store. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell_reset(cell: *mut tatcell_cell_t) -> i32 {
    args!(c, cell = c.cell(cell));
    cell.reset();
    finish_done(true)
}

/// Decides one request and charges it if it conforms, for a cell with one owner. It equals tatcell_cell_check with
/// a plain load and store, without atomic instructions.
///
/// @param cell        not NULL; no other thread uses it during the call.
/// @param limit       64-bit limit; not NULL.
/// @param now         the caller's clock, ticks.
/// @param cost        units; 0 only peeks and never writes.
/// @param retry_after ticks until the same cost conforms, as for tatcell_cell_check; NULL = not wanted.
/// @retval as tatcell_cell_check; never TATCELL_CONTENDED.
/// Thread: one at a time on one cell. Cost: one load, one store. Since 0.1.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_cell_check_exclusive(
    cell: *mut tatcell_cell_t,
    limit: *const tatcell_limit_t,
    now: u64,
    cost: u64,
    retry_after: *mut u64,
) -> i32 {
    args!(c, (limit, cell, retry) = c.owned_asked(cell, limit, retry_after));
    match cell.check_whole(limit, now, cost) {
        Some(outcome) => finish(outcome, retry),
        None => shifted_owned(cell, limit, now, cost, retry),
    }
}

/// Returns sizeof(tatcell_cell_t) of the linked library, to compare with TATCELL_CELL_SIZE. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_cell_size() -> usize {
    TATCELL_CELL_SIZE
}

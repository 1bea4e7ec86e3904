//! `tatcell_lease_*`: units of a shared cell, taken in advance by one core.

use super::cell::tatcell_cell_t;
use crate::answer::Outcome;
use crate::capi::codes::TATCELL_PASS;
use crate::capi::decision::finish;
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, inside, placed, Contract, Out, Plain};
use crate::capi::pointers::places::apart;
use crate::cell::Cell;
use crate::cell::Lease;
use crate::limit::Limit;

/// Bytes of a tatcell_lease_t. This size never changes.
pub const TATCELL_LEASE_SIZE: usize = 64;
/// Alignment of a tatcell_lease_t. If each core has a lease, a cache line of its own (64) is better.
pub const TATCELL_LEASE_ALIGN: usize = 8;

/// Units that one owner (a core or thread) takes from a shared cell in advance. The owner spends them without
/// touching the cell, so that one limit scales with cores. All-zero memory (static storage, TATCELL_LEASE_INIT) is
/// a valid lease that holds nothing.
///
/// Any number of leases on one cell, with any batches, together admit exactly what the cell alone would admit: in
/// every window of d ticks at most burst + d / T units. An unspent unit lapses when the cell would have regained
/// it, so the units that an idle core holds return by themselves. A request is refused only if the cell itself
/// cannot give the units that the lease lacks. At that moment other leases may hold up to their batches.
///
/// A lease belongs to the cell at the address that it was used with. Before you replace that cell at the same
/// address, or reset it, zero the lease or call tatcell_lease_return. Otherwise the units that it holds are
/// admitted once more. The same applies to refunds to the cell and to a change to a smaller debt. Never copy a
/// lease that is in use: both copies would spend the same units.
#[repr(C, align(8))]
pub struct tatcell_lease_t {
    /// Most units to take in advance; 0 = a sixteenth of the burst. The owner may set it at any time.
    pub batch: u32,
    /// Private to the library.
    pub reserved: u32,
    /// Private to the library.
    pub opaque: [u64; 7],
}

const _: () = assert!(size_of::<tatcell_lease_t>() == TATCELL_LEASE_SIZE);
const _: () = assert!(align_of::<tatcell_lease_t>() == TATCELL_LEASE_ALIGN);
const _: () = assert!(size_of::<Lease>() == TATCELL_LEASE_SIZE);
const _: () = assert!(align_of::<Lease>() == TATCELL_LEASE_ALIGN);

// SAFETY: numbers without padding.
unsafe impl Plain for Lease {}

/// Lease, cell, limit and place for the retry time of a check.
type Asked<'a> = (&'a mut Lease, &'a Cell, &'a Limit, Option<Out<'a, u64>>);

impl<'a> Contract<'a> {
    /// Returns a lease that nobody else uses during the call, its cell and its limit. One comparison each shows that it
    /// lies apart from them, because none is NULL by then.
    #[inline(always)]
    fn lease(
        self,
        lease: *mut tatcell_lease_t,
        cell: *mut tatcell_cell_t,
        limit: *const tatcell_limit_t,
    ) -> Result<(&'a mut Lease, &'a Cell, &'a Limit), i32> {
        placed(lease)?;
        placed(cell)?;
        placed(limit)?;
        apart(lease, cell)?;
        apart(lease, limit)?;
        let lease = self.owned(inside::<_, Lease>(lease).cast_mut())?;
        Ok((lease, self.cell(cell)?, self.limit64(limit)?))
    }

    /// Returns the arguments of a check. Nearly all calls pass [`together_apart`](Self::together_apart).
    #[inline(always)]
    fn lease_asked(
        self,
        lease: *mut tatcell_lease_t,
        cell: *mut tatcell_cell_t,
        limit: *const tatcell_limit_t,
        retry: *mut u64,
    ) -> Result<Asked<'a>, i32> {
        let own = inside::<_, Lease>(lease).cast_mut();
        if let Some(asked) = self.together_apart::<_, Cell, Limit, _>(own, inside(cell), inside(limit), retry)
        {
            return Ok(asked);
        }
        let (lease, cell, limit) = self.lease(lease, cell, limit)?;
        Ok((lease, cell, limit, self.result_if(retry)?))
    }
}

/// Decides what the lease cannot pay. Out of line and last, so that paying from the lease saves no register for it.
#[inline(never)]
fn ask(
    lease: &mut Lease,
    cell: &Cell,
    limit: &Limit,
    now: u64,
    cost: u64,
    retry_after: Option<Out<'_, u64>>,
) -> i32 {
    finish(lease.ask(cell, limit, now, cost), retry_after)
}

/// Decides one request from the units that the lease holds, and takes missing units from the cell.
///
/// A lease may be used with another cell or limit at any time. Units that it held of another cell, or in another
/// resolution, then lapse.
///
/// @param lease       of the calling core or thread; not NULL.
/// @param cell        shared by all; not NULL.
/// @param limit       64-bit limit; not NULL. With heal, shadow, a penalty or an algorithm other than GCRA, the
///                    call is a plain tatcell_cell_check.
/// @param now         the caller's clock, ticks.
/// @param cost        units; 0 only peeks and charges nothing.
/// @param retry_after ticks until the same cost conforms: 0 if it passes, UINT64_MAX if it never conforms. NULL =
///                    not wanted.
/// @retval 0 passes, and is charged.
/// @retval TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED does not pass; nothing is charged except a
///         penalty.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_LIMIT limit is not initialised for 64-bit cells.
/// @retval TATCELL_ERR_OVERLAP the lease overlaps cell or limit.
/// Thread: one at a time on one lease, any number on the cell. Cost: no shared memory while the lease holds enough
/// units, else one compare-and-swap, or one load if refused. Since 0.1.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_lease_check(
    lease: *mut tatcell_lease_t,
    cell: *mut tatcell_cell_t,
    limit: *const tatcell_limit_t,
    now: u64,
    cost: u64,
    retry_after: *mut u64,
) -> i32 {
    args!(c, (lease, cell, limit, retry) = c.lease_asked(lease, cell, limit, retry_after));
    match lease.spend(cell, limit, now, cost) {
        true => finish(Outcome::Conforming, retry),
        false => ask(lease, cell, limit, now, cost, retry),
    }
}

/// Returns the remaining units to the cell, before a core goes idle or the cell is reset. Afterwards the lease
/// holds nothing.
///
/// Units can be returned only if no other charge of the cell came after them; other units lapse with time.
///
/// @param lease of the calling core or thread; not NULL.
/// @param cell  the cell that the lease was used with; not NULL.
/// @param limit the limit that it was used with; not NULL.
/// @param now   the caller's clock, ticks.
/// @param given gets the ticks of debt removed from the cell, rounded down; 0 if none. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_LIMIT, TATCELL_ERR_OVERLAP as tatcell_lease_check.
/// Thread: as tatcell_lease_check. Cost: one compare-and-swap or one load. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_lease_return(
    lease: *mut tatcell_lease_t,
    cell: *mut tatcell_cell_t,
    limit: *const tatcell_limit_t,
    now: u64,
    given: *mut u64,
) -> i32 {
    args!(c, (lease, cell, limit) = c.lease(lease, cell, limit), out = c.result_if(given));
    let ticks = lease.give_back(cell, limit, now);
    if let Some(out) = out {
        out.put(ticks);
    }
    TATCELL_PASS
}

/// Reports how many units a lease could spend without touching the cell.
///
/// @param lease of the calling core or thread; not NULL.
/// @param cell  the cell that the lease was used with; not NULL.
/// @param limit the limit that it was used with; not NULL.
/// @param now   the caller's clock, ticks.
/// @param units gets the number, rounded down; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_LIMIT, TATCELL_ERR_OVERLAP as tatcell_lease_check.
/// Thread: as tatcell_lease_check. Cost: one division. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_lease_held(
    lease: *mut tatcell_lease_t,
    cell: *mut tatcell_cell_t,
    limit: *const tatcell_limit_t,
    now: u64,
    units: *mut u64,
) -> i32 {
    args!(c, (lease, cell, limit) = c.lease(lease, cell, limit), out = c.result(units));
    out.put(lease.held(cell, limit, now));
    TATCELL_PASS
}

/// Returns sizeof(tatcell_lease_t) of the linked library, to compare with TATCELL_LEASE_SIZE. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_lease_size() -> usize {
    TATCELL_LEASE_SIZE
}

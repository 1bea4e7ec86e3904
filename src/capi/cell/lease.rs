//! `tatcell_lease_*`: units of a shared cell, taken ahead by one core.

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

/// Bytes of a tatcell_lease_t; it never grows.
pub const TATCELL_LEASE_SIZE: usize = 64;
/// Alignment of a tatcell_lease_t. A cache line of its own (64) is better where each core has one.
pub const TATCELL_LEASE_ALIGN: usize = 8;

/// Units of a shared cell, taken ahead by one owner (a core or thread) and spent without touching the cell, so that
/// one limit scales with cores. All zero (static storage, TATCELL_LEASE_INIT) holds nothing and is valid.
///
/// Any number of leases on one cell, of any batch, admit together exactly what the cell alone would: in every window
/// of d ticks at most burst + d / T units. A unit that is not spent lapses when the cell would have regained it, so
/// what a silent core holds comes back by itself. A request is refused only when the cell itself cannot give the
/// part that the lease is missing; other leases may hold up to their batches for the moment.
///
/// A lease belongs to the cell at the address that it was used with. Before that cell is replaced by another at the
/// same address, or reset, zero the lease or call tatcell_lease_return: otherwise what it holds is admitted once
/// more. The same goes for refunds to the cell and for a change to a smaller debt. Never copy a lease that is in use:
/// both copies would spend the same units.
#[repr(C, align(8))]
pub struct tatcell_lease_t {
    /// Most units to take ahead of a request; 0 = a sixteenth of the burst. May be set at any time by the owner.
    pub batch: u32,
    /// Not for use.
    pub reserved: u32,
    /// Not for use.
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
    /// A lease, which nobody else uses during the call, its cell and its limit. Whether it lies apart from them is one
    /// comparison each, as none is NULL by then.
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

    /// The arguments of a check, which nearly always pass [`together`](Self::together_apart).
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

/// What the lease cannot pay, out of line and last, so that what it can pay saves no register for it.
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

/// Decides one request, from what the lease holds or, for what is missing, from the cell.
///
/// A lease may be used with another cell or limit at any time: what it held of another cell, or in another
/// resolution, lapses.
///
/// @param lease       of the calling core or thread; not NULL.
/// @param cell        shared by all; not NULL.
/// @param limit       64-bit limit; not NULL. Heal, shadow, penalty and every algorithm but GCRA make this the plain
///                    tatcell_cell_check.
/// @param now         the caller's clock, ticks.
/// @param cost        units; 0 looks and charges nothing.
/// @param retry_after ticks until the same cost conforms: 0 when it passes, UINT64_MAX when never. NULL = not wanted.
/// @retval 0 passes, charged.
/// @retval TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED does not pass; nothing charged but a penalty.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_LIMIT limit not initialised for 64-bit cells.
/// @retval TATCELL_ERR_OVERLAP the lease overlaps cell or limit.
/// Thread: one at a time on one lease, any number on the cell. Cost: no shared memory while the lease can pay, else
/// one compare-and-swap, or one load when refused. Since 0.1.
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

/// Gives what is left back to the cell, before a core goes idle or the cell is reset; afterwards the lease holds
/// nothing.
///
/// Only units that nobody was charged after can be given back; others lapse with time.
///
/// @param lease of the calling core or thread; not NULL.
/// @param cell  that it was used with; not NULL.
/// @param limit that it was used with; not NULL.
/// @param now   the caller's clock, ticks.
/// @param given ticks of debt removed from the cell, rounded down; 0 if none. NULL = not wanted.
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

/// Tells how many units a lease could spend without asking the cell.
///
/// @param lease of the calling core or thread; not NULL.
/// @param cell  that it was used with; not NULL.
/// @param limit that it was used with; not NULL.
/// @param now   the caller's clock, ticks.
/// @param units rounded down; not NULL.
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

/// Gives sizeof(tatcell_lease_t) of the linked library, to compare with TATCELL_LEASE_SIZE.
///
/// @return bytes.
/// Thread: any. Cost: none. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_lease_size() -> usize {
    TATCELL_LEASE_SIZE
}

//! What `tatcell_ladder_check` does: the verdict alone; or with the decision, permits and counters.

use core::ffi::c_void;

use crate::answer::{Decision, Permit};
use crate::capi::codes::{table_code, TATCELL_ERR_HANDLE, TATCELL_NON_CONFORMING, TATCELL_PASS};
use crate::capi::decision::{fill_if, tatcell_decision_t};
use crate::capi::pointers::contract::{Contract, Marked, Plain, Report};
use crate::capi::pointers::places::Span;
use crate::capi::table::handle::{tatcell_table_t, Handle};
use crate::combine::{Chain, LadderLimits, MAX_LINKS};
use crate::keys::{Address, Ladder};
use crate::limit::LimitSpec;
use crate::table::Counters;

/// The contents of a tatcell_ladder_t.
#[repr(C)]
pub(super) struct Inside {
    /// `READY`.
    mark: u64,
    pub limits: LadderLimits,
}

/// "tatcell", kind of object, version of `Inside`: raised whenever it, `LadderLimits` or `Params` change.
const READY: u64 = 0x7461_7463_656c_6c02;

// SAFETY: its mark comes first, and only tatcell_ladder_init writes that, with all of an Inside behind it.
unsafe impl Marked for Inside {
    const MARK: u64 = READY;
    const ERROR: i32 = TATCELL_ERR_HANDLE;
}

// SAFETY: numbers.
unsafe impl Plain for Inside {}

impl Inside {
    /// Makes the contents where they lie, the mark last.
    pub fn make(&mut self, table: &Handle, ladder: &Ladder, spec: &LimitSpec) -> Result<(), i32> {
        self.limits.fill(table.table(), ladder, spec).map_err(table_code)?;
        self.mark = READY;
        Ok(())
    }
}

/// Makes the chain of an address.
pub(super) fn chain_of<'a>(
    limits: &'a LadderLimits,
    table: &'a Handle,
    address: &Address,
    cost: u64,
) -> Result<Chain<'a>, i32> {
    limits.chain(table.table(), address, cost).map_err(table_code)
}

/// A check of which only the verdict is wanted. Its arguments are in registers.
#[inline(never)]
pub(super) fn check_verdict(
    c: Contract<'_>,
    ladder: *const Inside,
    table: *const tatcell_table_t,
    now: u64,
    address: *const c_void,
    address_len: usize,
    cost: u64,
) -> i32 {
    let decide = || {
        let (limits, table, address) =
            (&c.marked(ladder)?.limits, c.handle(table)?, c.address(address, address_len)?);
        match limits.passes(table.table(), now, &address, cost, None).map_err(table_code)? {
            Some(true) => Ok(TATCELL_PASS),
            Some(false) => Ok(TATCELL_NON_CONFORMING),
            None => check_each_told((limits, table), now, (&address, cost), None, &mut [], None),
        }
    };
    decide().unwrap_or_else(|error| error)
}

/// A check of which more is wanted.
#[inline(never)]
pub(super) fn check_wanted(
    c: Contract<'_>,
    (ladder, table): (*const Inside, *const tatcell_table_t),
    now: u64,
    (address, address_len): (*const c_void, usize),
    cost: u64,
    out: *mut tatcell_decision_t,
    (permits, counters): (*mut Permit, *mut Counters),
) -> i32 {
    let decide = || {
        let (limits, table) = (&c.marked(ladder)?.limits, c.handle(table)?);
        let address = c.address(address, address_len)?;
        let told = c.reach(out);
        let out = c.report_if(out)?;
        if permits.addr() | counters.addr() == 0 {
            return check_told((limits, table), now, (&address, cost), out);
        }
        c.result_if(permits)?;
        c.result_if(counters)?;
        let spans = [Span::of(permits, MAX_LINKS), Span::of(counters, 1)];
        told.apart_from(&spans)?;
        spans[0].apart(spans[1])?;
        let (permits, counters) = (c.permits_if(permits)?, c.owned_if(counters)?);
        check_each_told((limits, table), now, (&address, cost), out, permits, counters)
    };
    decide().unwrap_or_else(|error| error)
}

/// A check of which the decision is wanted.
#[inline(never)]
fn check_told(
    (limits, table): (&LadderLimits, &Handle),
    now: u64,
    (address, cost): (&Address, u64),
    out: Option<Report<'_, tatcell_decision_t>>,
) -> Result<i32, i32> {
    let mut made = Decision::contended(cost, 0);
    match limits.check_short(table.table(), now, (address, cost), None, &mut made) {
        Ok(true) => Ok(fill_if(&made, out)),
        Ok(false) => check_each_told((limits, table), now, (address, cost), out, &mut [], None),
        Err(e) => Err(table_code(e)),
    }
}

/// A check that the short way does not do.
#[inline(never)]
fn check_each_told(
    (limits, table): (&LadderLimits, &Handle),
    now: u64,
    (address, cost): (&Address, u64),
    out: Option<Report<'_, tatcell_decision_t>>,
    permits: &mut [Permit],
    counters: Option<&mut Counters>,
) -> Result<i32, i32> {
    let made = match permits.is_empty() && counters.is_none() {
        true => limits.check_long(table.table(), now, address, cost).map_err(table_code),
        false => check_each((limits, table), now, (address, cost), permits, counters),
    };
    Ok(fill_if(&made?, out))
}

/// A check with permits or counters.
#[inline(never)]
fn check_each(
    (limits, table): (&LadderLimits, &Handle),
    now: u64,
    (address, cost): (&Address, u64),
    permits: &mut [Permit],
    counters: Option<&mut Counters>,
) -> Result<Decision, i32> {
    // By reference: a move would copy it onto the stack again.
    match &chain_of(limits, table, address, cost) {
        Err(e) => Err(*e),
        Ok(chain) => {
            permits.fill(Permit::NONE);
            Ok(chain.check_ex(now, counters, |i, answer| {
                if let Some(permit) = permits.get_mut(i) {
                    *permit = answer.permit;
                }
            }))
        }
    }
}

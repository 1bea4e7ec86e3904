//! What `tatcell_ladder_check` does if more is wanted than the verdict: the decision, permits, counters.

use crate::answer::{Decision, Permit};
use crate::capi::codes::table_code;
use crate::capi::decision::{fill_if, tatcell_decision_t};
use crate::capi::pointers::contract::Report;
use crate::capi::table::handle::Handle;
use crate::combine::{Chain, LadderLimits};
use crate::keys::Address;
use crate::table::Counters;

/// Makes the chain of an address.
pub(super) fn chain_of<'a>(
    limits: &'a LadderLimits,
    table: &'a Handle,
    address: &Address,
    cost: u64,
) -> Result<Chain<'a>, i32> {
    limits.chain(table.table(), address, cost).map_err(table_code)
}

/// A check of which more is wanted than the verdict, or of limits that the short way does not know.
#[inline(never)]
pub(super) fn check_told(
    (limits, table): (&LadderLimits, &Handle),
    now: u64,
    (address, cost): (&Address, u64),
    out: Option<Report<'_, tatcell_decision_t>>,
    permits: &mut [Permit],
    counters: Option<&mut Counters>,
) -> i32 {
    if permits.is_empty() && counters.is_none() {
        let mut made = Decision::contended(cost, 0);
        match limits.check_short(table.table(), now, (address, cost), None, &mut made) {
            Ok(true) => return fill_if(&made, out),
            Ok(false) => {}
            Err(e) => return table_code(e),
        }
    }
    check_each_told((limits, table), now, (address, cost), out, permits, counters)
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
) -> i32 {
    let made = match permits.is_empty() && counters.is_none() {
        true => limits.check_long(table.table(), now, address, cost).map_err(table_code),
        false => check_each((limits, table), now, (address, cost), permits, counters),
    };
    match made {
        Ok(made) => fill_if(&made, out),
        Err(e) => e,
    }
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
    // By reference: a move would take its bytes of stack once more.
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

//! `tatcell_table_refund_ex`: a refund with the full answer.

use core::ffi::c_void;

use super::check::{hash_of, refused};
use super::handle::{tatcell_table_t, Handle};
use crate::answer::Permit;
use crate::capi::decision::{fill, tatcell_decision_t};
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, Report};
use crate::combine::link::either;
use crate::limit::TableLimit;

fn refund_ex(
    table: &Handle,
    limit: &TableLimit,
    (now, hash): (u64, u64),
    permit: &Permit,
    out: Report<'_, tatcell_decision_t>,
) -> i32 {
    match either!(table.table(), t => t.refund_ex(limit, now, hash, permit)) {
        Ok(made) => fill(&made, out),
        Err(e) => refused(e, limit),
    }
}

/// As tatcell_table_refund, with the full answer: the state of the key afterwards, and the number of units given
/// back.
///
/// @param table   handle; not NULL.
/// @param limit   the limit that the key was charged under; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key that was charged; not NULL.
/// @param key_len bytes.
/// @param permit  from a decision; not NULL.
/// @param out     started from TATCELL_DECISION_INIT; not NULL. out->units is the number of units given back.
/// @retval 0 done (perhaps nothing was left to give back).
/// @retval TATCELL_ERR_SIZE out->size is not set.
/// @retval others as tatcell_table_refund.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_refund and tatcell_table_peek.
/// Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_refund_ex(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    permit: *const Permit,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        limit = c.table_limit(limit),
        key = c.key(key, key_len),
        permit = c.input(permit),
        out = c.report(out),
        hash = hash_of(table, key)
    );
    refund_ex(table, limit, (now, hash), permit, out)
}

/// As tatcell_table_refund_ex, for a hash made by tatcell_table_hash. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_refund_ex_hash(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    permit: *const Permit,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        limit = c.table_limit(limit),
        permit = c.input(permit),
        out = c.report(out)
    );
    refund_ex(table, limit, (now, hash), permit, out)
}

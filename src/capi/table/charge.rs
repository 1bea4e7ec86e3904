//! `tatcell_table_*` for one key: charge, reserve, refund, reset. Each call with a key has a twin with its hash.

use core::ffi::c_void;

use super::check::{hash_of, refused};
use super::handle::{tatcell_table_t, Handle};
use crate::answer::Permit;
use crate::capi::decision::{fill, fill_if, finish_done, finish_refund, tatcell_decision_t};
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, Out, Report};
use crate::combine::link::either;
use crate::limit::TableLimit;
use crate::table::Counters;

/// The arguments of a charge or reservation: now, hash and cost.
type Asked = (u64, u64, u64);

fn charge(
    table: &Handle,
    limit: &TableLimit,
    (now, hash, cost): Asked,
    out: Option<Report<'_, tatcell_decision_t>>,
    counters: Option<&mut Counters>,
) -> i32 {
    match either!(table.table(), t => t.charge(limit, now, hash, cost, counters)) {
        Ok(made) => fill_if(&made, out),
        Err(e) => refused(e, limit),
    }
}

fn reserve(
    table: &Handle,
    limit: &TableLimit,
    (now, hash, cost): Asked,
    out: Report<'_, tatcell_decision_t>,
    counters: Option<&mut Counters>,
) -> i32 {
    match either!(table.table(), t => t.reserve(limit, now, hash, cost, counters)) {
        Ok(made) => fill(&made, out),
        Err(e) => refused(e, limit),
    }
}

fn refund(
    table: &Handle,
    limit: &TableLimit,
    (now, hash): (u64, u64),
    permit: &Permit,
    credited: Option<Out<'_, u64>>,
) -> i32 {
    match either!(table.table(), t => t.refund(limit, now, hash, permit)) {
        Ok(back) => finish_refund(back, credited),
        Err(e) => refused(e, limit),
    }
}

/// Charges a key a cost that is known only afterwards, whatever the limit says, until the debt is max_debt of the limit
/// above the burst.
///
/// Only a key that has no slot and finds its set full may be left uncharged. Under TATCELL_FULL_ADMIT and
/// TATCELL_FULL_SAMPLED the call then returns 0 with 0 in out->units, and under TATCELL_FULL_INHERIT if the debt that
/// it would inherit leaves no room. Under TATCELL_FULL_DENY, and under TATCELL_FULL_INHERIT if no slot can be taken
/// over, it returns TATCELL_NON_CONFORMING.
///
/// @param table   handle; not NULL.
/// @param limit   from tatcell_limit_init_table of this table; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key; not NULL, even when empty.
/// @param key_len bytes.
/// @param cost    units; may be above the burst.
/// @param out     started from TATCELL_DECISION_INIT; out->units is the number of units that it took. NULL = not
///                wanted.
/// @retval 0 charged, perhaps less than cost.
/// @retval TATCELL_NON_CONFORMING the set is full: nothing is charged. out->retry_after is the time until a slot is
///         free.
/// @retval TATCELL_CONTENDED nothing is charged; ask again.
/// @retval others as tatcell_table_check_ex.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_charge(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    cost: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        limit = c.table_limit(limit),
        key = c.key(key, key_len),
        out = c.report_if(out),
        hash = hash_of(table, key)
    );
    charge(table, limit, (now, hash, cost), out, None)
}

/// As tatcell_table_charge, for a hash made by tatcell_table_hash. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_charge_hash(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, table = c.handle(table), limit = c.table_limit(limit), out = c.report_if(out));
    charge(table, limit, (now, hash, cost), out, None)
}

/// Charges a key a cost that is known only afterwards, as tatcell_table_charge does, and counts the decision.
///
/// @param table    handle; not NULL.
/// @param limit    from tatcell_limit_init_table of this table; not NULL.
/// @param now      the caller's clock, ticks.
/// @param key      bytes of the key; not NULL, even when empty.
/// @param key_len  bytes.
/// @param cost     units; may be above the burst.
/// @param out      started from TATCELL_DECISION_INIT; out->units is the number of units that it took. NULL =
///                 not wanted.
/// @param counters this thread's counters; NULL = off.
/// @retval as tatcell_table_charge.
/// @retval TATCELL_ERR_OVERLAP out and counters overlap.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_charge. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_charge_ex(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    cost: u64,
    out: *mut tatcell_decision_t,
    counters: *mut Counters,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        limit = c.table_limit(limit),
        key = c.key(key, key_len),
        () = c.reach_apart(out, counters),
        out = c.report_if(out),
        counters = c.owned_if(counters),
        hash = hash_of(table, key)
    );
    charge(table, limit, (now, hash, cost), out, counters)
}

/// As tatcell_table_charge_ex, for a hash made by tatcell_table_hash. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_charge_ex_hash(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u64,
    out: *mut tatcell_decision_t,
    counters: *mut Counters,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        limit = c.table_limit(limit),
        () = c.reach_apart(out, counters),
        out = c.report_if(out),
        counters = c.owned_if(counters)
    );
    charge(table, limit, (now, hash, cost), out, counters)
}

/// Reserves units of a key for the earliest instant at which they conform, for shaping; out->departure is that
/// instant.
///
/// Departures of one key rise in the order of their reservations, as long as the callers' clocks do not step back.
/// If the set of the key is full, TATCELL_FULL_ADMIT and TATCELL_FULL_SAMPLED let the request leave at once,
/// uncharged.
///
/// @param table   handle; not NULL.
/// @param limit   from tatcell_limit_init_table of this table, with a max_delay; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key; not NULL, even when empty.
/// @param key_len bytes.
/// @param cost    units, at most the burst.
/// @param out     started from TATCELL_DECISION_INIT; not NULL. Gets departure, the tick at which the request may
///                leave, and the permit for tatcell_table_refund if the sender gives up.
/// @retval 0 reserved.
/// @retval TATCELL_NON_CONFORMING the request would wait longer than max_delay; nothing is charged.
///         out->retry_after is the time until the same request would be accepted.
/// @retval TATCELL_NEVER, TATCELL_CONTENDED nothing is charged.
/// @retval TATCELL_ERR_ALGORITHM the limit is not of GCRA; other algorithms cannot reserve.
/// @retval others as tatcell_table_check_ex.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check. Since 0.1.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_reserve(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    cost: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        limit = c.table_limit(limit),
        key = c.key(key, key_len),
        out = c.report(out),
        hash = hash_of(table, key)
    );
    reserve(table, limit, (now, hash, cost), out, None)
}

/// As tatcell_table_reserve, for a hash made by tatcell_table_hash. Since 0.2.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_reserve_hash(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, table = c.handle(table), limit = c.table_limit(limit), out = c.report(out));
    reserve(table, limit, (now, hash, cost), out, None)
}

/// Reserves units of a key for the earliest instant at which they conform, as tatcell_table_reserve does, and
/// counts the decision.
///
/// @param table    handle; not NULL.
/// @param limit    from tatcell_limit_init_table of this table, with a max_delay; not NULL.
/// @param now      the caller's clock, ticks.
/// @param key      bytes of the key; not NULL, even when empty.
/// @param key_len  bytes.
/// @param cost     units, at most the burst.
/// @param out      started from TATCELL_DECISION_INIT; not NULL.
/// @param counters this thread's counters; NULL = off.
/// @retval as tatcell_table_reserve.
/// @retval TATCELL_ERR_OVERLAP out and counters overlap.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_reserve. Since 0.2.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_reserve_ex(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    cost: u64,
    out: *mut tatcell_decision_t,
    counters: *mut Counters,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        limit = c.table_limit(limit),
        key = c.key(key, key_len),
        () = c.reach_apart(out, counters),
        out = c.report(out),
        counters = c.owned_if(counters),
        hash = hash_of(table, key)
    );
    reserve(table, limit, (now, hash, cost), out, counters)
}

/// As tatcell_table_reserve_ex, for a hash made by tatcell_table_hash. Since 0.2.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_reserve_ex_hash(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u64,
    out: *mut tatcell_decision_t,
    counters: *mut Counters,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        limit = c.table_limit(limit),
        () = c.reach_apart(out, counters),
        out = c.report(out),
        counters = c.owned_if(counters)
    );
    reserve(table, limit, (now, hash, cost), out, counters)
}

/// Gives back the part of a charge that has not drained since and still lies in the key's slot, as the permit of
/// the charge proves.
///
/// The call credits nothing for a permit that is older than the limit's horizon or than a restore of the table; for
/// a key that is in another slot than the charged one, as it is after a reset; or under TATCELL_FULL_SAMPLED, under
/// which nothing can be proved. The permit of the charge that inserted a key covers up to one claim lifetime and
/// one q-unit less than the charge. Use a permit once. If a key has several permits, refund the newest first, or
/// set TATCELL_LIMIT_STRICT_REFUNDS: with the oldest first, the newer permit can give back units that have drained.
/// If several reservations wait, give back only the last one: see tatcell_cell_refund.
///
/// @param table    handle; not NULL.
/// @param limit    the limit that the key was charged under; not NULL.
/// @param now      the caller's clock, ticks.
/// @param key      bytes of the key that was charged; not NULL.
/// @param key_len  bytes.
/// @param permit   from a decision; not NULL.
/// @param credited ticks of debt removed, rounded down (units if the limit counts units); NULL = not wanted.
/// @retval 0 done (perhaps nothing was left to give back).
/// @retval TATCELL_CONTENDED nothing is changed; ask again.
/// @retval others as tatcell_table_check.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check; never inserts. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_refund(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    permit: *const Permit,
    credited: *mut u64,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        limit = c.table_limit(limit),
        key = c.key(key, key_len),
        permit = c.input(permit),
        credited = c.result_if(credited),
        hash = hash_of(table, key)
    );
    refund(table, limit, (now, hash), permit, credited)
}

/// As tatcell_table_refund, for a hash made by tatcell_table_hash. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_refund_hash(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    permit: *const Permit,
    credited: *mut u64,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        limit = c.table_limit(limit),
        permit = c.input(permit),
        credited = c.result_if(credited)
    );
    refund(table, limit, (now, hash), permit, credited)
}

/// Makes the full burst of one key available at once. An absent key has it already.
///
/// No key uses the slot until its old debt has drained, which takes at most one horizon. Until then, permits from
/// before the reset credit nothing. A key whose debt has drained by now is left unchanged: to a clock behind now
/// the rest of its debt still counts.
///
/// @param table   handle; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key; not NULL, even when empty.
/// @param key_len bytes.
/// @retval 0 done.
/// @retval TATCELL_CONTENDED nothing is changed; ask again.
/// @retval TATCELL_ERR_HASH the caller hashes for this table.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE, TATCELL_ERR_KEY_LENGTH bad argument.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_reset(
    table: *const tatcell_table_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
) -> i32 {
    args!(c, table = c.handle(table), key = c.key(key, key_len), hash = hash_of(table, key));
    finish_done(either!(table.table(), t => t.reset_key(now, hash)))
}

/// As tatcell_table_reset, for a hash made by tatcell_table_hash. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_reset_hash(table: *const tatcell_table_t, now: u64, hash: u64) -> i32 {
    args!(c, table = c.handle(table));
    finish_done(either!(table.table(), t => t.reset_key(now, hash)))
}

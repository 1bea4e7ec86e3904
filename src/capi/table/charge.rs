//! `tatcell_table_*` for one key: charge, reserve, refund, reset. Each call with a key has a twin with its hash.

use core::ffi::c_void;

use super::check::{hash_of, refused};
use super::handle::{tatcell_table_t, Handle};
use crate::answer::Permit;
use crate::capi::decision::{fill, fill_if, finish_done, finish_refund, tatcell_decision_t};
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, Out, Report};
use crate::capi::pointers::places::apart;
use crate::combine::link::either;
use crate::limit::TableLimit;
use crate::table::Counters;

/// What a charge or reservation is asked for: now, hash and cost.
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

/// Charges after the fact: always, until the debt is the limit's max_debt beyond the burst.
///
/// @param table   handle; not NULL.
/// @param limit   from tatcell_limit_init_table of this table; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key; not NULL, even when empty.
/// @param key_len bytes.
/// @param cost    units; may be above the burst.
/// @param out     started from TATCELL_DECISION_INIT; out->permit.stored tells what was charged. NULL = not wanted.
/// @retval 0 charged, perhaps less than cost.
/// @retval TATCELL_CONTENDED nothing charged, ask again.
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

/// As tatcell_table_charge, and counts.
///
/// @param table    handle; not NULL.
/// @param limit    from tatcell_limit_init_table of this table; not NULL.
/// @param now      the caller's clock, ticks.
/// @param key      bytes of the key; not NULL, even when empty.
/// @param key_len  bytes.
/// @param cost     units; may be above the burst.
/// @param out      started from TATCELL_DECISION_INIT; out->permit.stored tells what was charged. NULL = not wanted.
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
        () = apart(out, counters),
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
        () = apart(out, counters),
        out = c.report_if(out),
        counters = c.owned_if(counters)
    );
    charge(table, limit, (now, hash, cost), out, counters)
}

/// Reserves units of a key for the earliest conforming instant, for shaping: out->departure.
///
/// Departures of one key are monotone as long as the callers' clocks do not step back. A key that finds its set full
/// is told to leave at once, uncharged, under TATCELL_FULL_ADMIT and TATCELL_FULL_SAMPLED.
///
/// @param table   handle; not NULL.
/// @param limit   from tatcell_limit_init_table of this table, with a max_delay; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key; not NULL, even when empty.
/// @param key_len bytes.
/// @param cost    units, at most the burst.
/// @param out     started from TATCELL_DECISION_INIT; not NULL. The tick at which it may leave is out->departure, and
///                out->permit is for tatcell_table_refund should the sender give up.
/// @retval 0 reserved.
/// @retval TATCELL_NON_CONFORMING would wait longer than max_delay; nothing charged. When to ask again is
///         out->retry_after.
/// @retval TATCELL_NEVER, TATCELL_CONTENDED nothing charged.
/// @retval TATCELL_ERR_ALGORITHM only GCRA knows when a request may leave.
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

/// As tatcell_table_reserve, and counts.
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
        () = apart(out, counters),
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
        () = apart(out, counters),
        out = c.report(out),
        counters = c.owned_if(counters)
    );
    reserve(table, limit, (now, hash, cost), out, counters)
}

/// Gives back what a permit proves was charged, has not drained since and still lies in the key's slot.
///
/// Nothing is credited for a permit older than the limit's horizon, of before a restore of the table, for a key that
/// is in another slot than the one charged, as it is after a reset, or under TATCELL_FULL_SAMPLED, where nothing can be
/// proved. The permit of the charge that brought a key into the table covers up to one claim lifetime and one q-unit
/// less than was charged. Use a permit once, and of several of one key the newest first (or set
/// TATCELL_LIMIT_STRICT_REFUNDS): refunded oldest first, the newer one can give back what has drained. Of a line of
/// reservations give back the last one only: see tatcell_cell_refund.
///
/// @param table    handle; not NULL.
/// @param limit    the limit that it was charged under; not NULL.
/// @param now      the caller's clock, ticks.
/// @param key      of the request that was charged; not NULL.
/// @param key_len  bytes.
/// @param permit   from a decision; not NULL.
/// @param credited ticks of debt removed, rounded down; NULL = not wanted.
/// @retval 0 done (perhaps nothing was left to give back).
/// @retval TATCELL_CONTENDED nothing changed, ask again.
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

/// Makes one key full again at once. An absent key is full already.
///
/// Its slot is nobody's until the debt that it held has drained, at most one horizon, and no permit of before the
/// reset is worth anything meanwhile. A key that has drained by now is full already and is left as it is: to a clock
/// behind now the rest of its debt still counts.
///
/// @param table   handle; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key; not NULL, even when empty.
/// @param key_len bytes.
/// @retval 0 done.
/// @retval TATCELL_CONTENDED nothing changed, ask again.
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

//! `tatcell_table_*` for one key: hash, check, peek. Each call with a key has a twin with its hash.

use core::ffi::c_void;

use super::handle::{tatcell_table_t, Any, Handle, Short};
use super::seen::look;
use crate::capi::codes::{table_code, TATCELL_PASS};
use crate::capi::decision::{fill, finish, tatcell_decision_t};
use crate::capi::limit::limit::{not_own, tatcell_limit_t};
use crate::capi::pointers::contract::{args, inside, Contract, Out, Report};
use crate::combine::link::either;
use crate::keys::aes;
use crate::limit::TableLimit;
use crate::table::{Access, Counters, Request, Shared, Table, TableError};

/// Returns the code of an error of a call with this limit.
pub(in crate::capi) fn refused(e: TableError, limit: &TableLimit) -> i32 {
    match e {
        TableError::ForeignLimit => not_own(limit),
        e => table_code(e),
    }
}

/// The hash of a key.
pub(in crate::capi) fn hash_of(table: &Handle, key: &[u8]) -> Result<u64, i32> {
    either!(table.table(), t => t.hash(key)).map_err(table_code)
}

/// Decides one request with the full answer.
fn check_ex(
    table: &Handle,
    (request, hash): (&Request<'_>, u64),
    out: Report<'_, tatcell_decision_t>,
    counters: Option<&mut Counters>,
) -> i32 {
    match either!(table.table(), t => t.check_ex(request, hash, counters)) {
        Ok(made) => fill(&made, out),
        Err(e) => refused(e, request.limit),
    }
}

fn peek(
    table: &Handle,
    limit: &TableLimit,
    now: u64,
    (hash, cost): (u64, u64),
    out: Report<'_, tatcell_decision_t>,
) -> i32 {
    match either!(table.table(), t => t.peek(limit, now, hash, cost)) {
        Ok(made) => fill(&made, out),
        Err(e) => refused(e, limit),
    }
}

/// Table, limit and place for the retry time of a check.
type Asked<'a> = (&'a Handle, &'a TableLimit, Option<Out<'a, u64>>);

impl<'a> Contract<'a> {
    /// Returns the arguments of a check except its key, which `key` tests. Most pass [`together`](Self::together).
    #[inline(always)]
    pub(super) fn table_asked(
        self,
        table: *const tatcell_table_t,
        limit: *const tatcell_limit_t,
        retry: *mut u64,
        key: impl FnOnce() -> Result<(), i32>,
    ) -> Result<Asked<'a>, i32> {
        let asked = self.together::<Handle, TableLimit, _>(inside(table), inside(limit), retry);
        if let Some(asked) = asked {
            return Ok(asked);
        }
        let (table, limit) = (self.handle(table)?, self.table_limit(limit)?);
        key()?;
        Ok((table, limit, self.result_if(retry)?))
    }
}

/// The shortest path, for a limit whose q-units are ticks: one attempt in the home line. Everything else is done by
/// another function, with whose call this one ends, so it saves no register for that.
#[inline(always)]
fn check_short(
    table: &Table<'_, Shared>,
    limit: &TableLimit,
    now: u64,
    hash: u64,
    retry: Option<Out<'_, u64>>,
    cost: u64,
) -> i32 {
    match table.check_whole(limit, now, hash, cost) {
        Some(outcome) => finish(outcome, retry),
        None => check_far(table, limit, now, hash, retry, cost),
    }
}

#[inline(never)]
fn check_far(
    table: &Table<'_, Shared>,
    limit: &TableLimit,
    now: u64,
    hash: u64,
    retry: Option<Out<'_, u64>>,
    cost: u64,
) -> i32 {
    finish(table.check_far(limit, now, hash, cost), retry)
}

/// Does the same as [`check_short`] for a key of 16 bytes. Its arguments stand where those of the C function do.
#[inline(never)]
fn check_short16(
    handle: Short<'_>,
    limit: &TableLimit,
    now: u64,
    key: &[u8; 16],
    retry: Option<Out<'_, u64>>,
    cost: u64,
) -> i32 {
    let (table, keys) = handle.parts();
    check_short(table, limit, now, aes::hash16(keys, key), retry, cost)
}

/// Does the same for a key of 4 bytes.
#[inline(never)]
fn check_short4(
    handle: Short<'_>,
    limit: &TableLimit,
    now: u64,
    key: &[u8; 4],
    retry: Option<Out<'_, u64>>,
    cost: u64,
) -> i32 {
    let (table, keys) = handle.parts();
    check_short(table, limit, now, aes::hash4(keys, key), retry, cost)
}

/// Makes one decision.
#[inline(always)]
fn check_one<M: Access>(
    table: &Table<'_, M>,
    limit: &TableLimit,
    now: u64,
    hash: u64,
    cost: u64,
    retry: Option<Out<'_, u64>>,
) -> i32 {
    match table.check_hash(limit, now, hash, cost) {
        Ok(outcome) => finish(outcome, retry),
        Err(e) => refused(e, limit),
    }
}

/// Makes one decision for any table and any hash. Out of line, as the two below: their values find registers besides
/// the arguments of the C function, which ends with this call and so saves none.
#[inline(never)]
fn check_hashed(
    table: &Handle,
    limit: &TableLimit,
    now: u64,
    hash: u64,
    cost: u64,
    retry: Option<Out<'_, u64>>,
) -> i32 {
    either!(table.table(), t => check_one(t, limit, now, hash, cost, retry))
}

/// Makes one decision for any table and any key.
#[inline(always)]
fn check_any(
    table: &Handle,
    limit: &TableLimit,
    now: u64,
    key: &[u8],
    retry: Option<Out<'_, u64>>,
    cost: u64,
) -> i32 {
    either!(table.table(), t => match t.hash(key) {
        Ok(hash) => check_one(t, limit, now, hash, cost, retry),
        Err(e) => refused(e, limit),
    })
}

/// Does the same as [`check_any`] for a key of `N` bytes, with one argument less.
#[inline(never)]
fn check_sized<const N: usize>(
    table: &Handle,
    limit: &TableLimit,
    now: u64,
    key: &[u8; N],
    retry: Option<Out<'_, u64>>,
    cost: u64,
) -> i32 {
    check_any(table, limit, now, key, retry, cost)
}

/// Does the same as [`check_any`] for a key of any length.
#[inline(never)]
fn check_other(
    table: &Handle,
    limit: &TableLimit,
    now: u64,
    key: &[u8],
    retry: Option<Out<'_, u64>>,
    cost: u64,
) -> i32 {
    check_any(table, limit, now, key, retry, cost)
}

/// Hashes a key with the table's secret seed, for the _hash calls and for bursts. For a table made with
/// TATCELL_HASH_CALLER, pass your own keyed hash there instead. Tables with the same seed and the same hash give a key
/// the same hash: one call serves the tables of limits and of overrides.
///
/// @param table   handle, also a read-only one; not NULL.
/// @param key     bytes of the key; not NULL, even when empty. Pass only identifying bytes: padding makes new keys.
/// @param key_len bytes.
/// @param hash    the 64-bit hash: the high 32 bits choose the line, the low bits are the tag. Not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_HASH the caller hashes for this table; TATCELL_ERR_SEED a read-only handle has no seed.
/// @retval TATCELL_ERR_KEY_LENGTH key_len is more than half of the address space.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: any. Cost: about 1 ns (AES) or 6 ns (SipHash-1-3) for 16 bytes. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_hash(
    table: *const tatcell_table_t,
    key: *const c_void,
    key_len: usize,
    hash: *mut u64,
) -> i32 {
    args!(
        c,
        table = c.seen(table),
        key = c.key(key, key_len),
        out = c.result(hash),
        hash = look!(table, t => t.hash(key)).map_err(table_code)
    );
    out.put(hash);
    TATCELL_PASS
}

/// Decides one request of a key and charges it if it conforms.
///
/// @param table       handle; not NULL.
/// @param limit       from tatcell_limit_init_table of this table; not NULL.
/// @param now         the caller's clock, ticks.
/// @param key         bytes of the key; not NULL, even when empty.
/// @param key_len     bytes.
/// @param cost        units; 0 only peeks and never writes.
/// @param retry_after ticks until the same cost conforms: 0 if it passes or is contended, UINT64_MAX if it never
///                    conforms. NULL = not wanted. Not written on error.
/// @retval 0 passes, and is charged. If the set of the key is full, the table's policy may pass it untracked.
/// @retval TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED does not pass; nothing is charged except a
///         penalty.
/// @retval TATCELL_ERR_HANDLE table is not initialised.
/// @retval TATCELL_ERR_LIMIT limit is not initialised, or not for a table.
/// @retval TATCELL_ERR_FOREIGN limit is of another table.
/// @retval TATCELL_ERR_HASH the caller hashes for this table.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_KEY_LENGTH bad argument.
/// Thread: any number, unless the table is exclusive. Cost: a hash, one or two cache lines, one compare-and-swap if
/// it passes; only loads if not. Since 0.1.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_check(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    cost: u64,
    retry_after: *mut u64,
) -> i32 {
    args!(c);
    if key_len == 16 {
        let key = key.cast::<[u8; 16]>();
        if let Some((short, limit, retry)) = c.short_asked(table, limit, retry_after) {
            args!(c, key = c.input(key));
            return check_short16(short, limit, now, key, retry, cost);
        }
        let tested = || c.input(key).map(drop);
        args!(
            c,
            (table, limit, retry) = c.table_asked(table, limit, retry_after, tested),
            key = c.input(key)
        );
        return check_sized(table, limit, now, key, retry, cost);
    }
    if key_len == 4 {
        let key = key.cast::<[u8; 4]>();
        if let Some((short, limit, retry)) = c.short_asked(table, limit, retry_after) {
            args!(c, key = c.input(key));
            return check_short4(short, limit, now, key, retry, cost);
        }
        let tested = || c.input(key).map(drop);
        args!(
            c,
            (table, limit, retry) = c.table_asked(table, limit, retry_after, tested),
            key = c.input(key)
        );
        return check_sized(table, limit, now, key, retry, cost);
    }
    let tested = || c.key(key, key_len).map(drop);
    args!(
        c,
        (table, limit, retry) = c.table_asked(table, limit, retry_after, tested),
        key = c.key(key, key_len)
    );
    check_other(table, limit, now, key, retry, cost)
}

/// As tatcell_table_check, for a hash made by tatcell_table_hash. Since 0.1.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_check_hash(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u64,
    retry_after: *mut u64,
) -> i32 {
    args!(c, (table, limit, retry) = c.table_asked(table, limit, retry_after, || Ok(())));
    match &table.table {
        Any::Shared(table) if limit.0.fingerprint == table.whole => {
            check_short(table, limit, now, hash, retry, cost)
        }
        _ => check_hashed(table, limit, now, hash, cost, retry),
    }
}

/// Decides one request of a key, charges it if it conforms, and returns the full answer.
///
/// @param table    handle; not NULL.
/// @param limit    from tatcell_limit_init_table of this table; not NULL.
/// @param now      the caller's clock, ticks.
/// @param key      bytes of the key; not NULL, even when empty.
/// @param key_len  bytes.
/// @param cost     units; 0 only peeks and never writes.
/// @param room     elastic room in units above the burst; more than the limit's max_room counts as max_room. 0 =
///                 none.
/// @param out      started from TATCELL_DECISION_INIT; not NULL.
/// @param counters this thread's counters; NULL = off.
/// @retval 0, TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED equal to out->verdict. 0 is charged; the
///         others charge at most a penalty.
/// @retval TATCELL_ERR_SIZE out->size is not set.
/// @retval TATCELL_ERR_OVERLAP out and counters overlap.
/// @retval others as tatcell_table_check.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check and one division. Since 0.1.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_check_ex(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    cost: u64,
    room: u64,
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
    check_ex(table, (&Request { limit, now, cost, room }, hash), out, counters)
}

/// As tatcell_table_check_ex, for a hash made by tatcell_table_hash. Since 0.2.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_check_ex_hash(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u64,
    room: u64,
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
    check_ex(table, (&Request { limit, now, cost, room }, hash), out, counters)
}

/// Reports how a request of this cost would be decided, without charging it. A key that another thread is inserting
/// reads as absent.
///
/// @param table   handle; not NULL.
/// @param limit   from tatcell_limit_init_table of this table; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key; not NULL, even when empty.
/// @param key_len bytes.
/// @param cost    units.
/// @param out     started from TATCELL_DECISION_INIT; not NULL.
/// @retval as tatcell_table_check_ex; never TATCELL_CONTENDED.
/// Thread: any number, unless the table is exclusive; only reads. Cost: a hash, one or two cache lines. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_peek(
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
    peek(table, limit, now, (hash, cost), out)
}

/// As tatcell_table_peek, for a hash made by tatcell_table_hash. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_peek_hash(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, table = c.handle(table), limit = c.table_limit(limit), out = c.report(out));
    peek(table, limit, now, (hash, cost), out)
}

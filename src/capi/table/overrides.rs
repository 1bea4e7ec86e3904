//! `tatcell_table_ban` and related calls: keys that are banned or exempt until a time.

use core::ffi::c_void;

use super::check::hash_of;
use super::handle::{tatcell_table_t, Handle};
use crate::capi::codes::{table_code, TATCELL_END, TATCELL_PASS};
use crate::capi::pointers::contract::{args, Contract};
use crate::combine::link::either;
use crate::table::Override;

/// kind: no override; the limits decide.
pub const TATCELL_OVERRIDE_NONE: u32 = 0;
/// kind: no request of the key passes.
pub const TATCELL_OVERRIDE_BAN: u32 = 1;
/// kind: every request of the key passes, and nothing is charged.
pub const TATCELL_OVERRIDE_EXEMPT: u32 = 2;

/// Returns the handle, and the hash of a key.
fn keyed<'a>(
    c: Contract<'a>,
    table: *const tatcell_table_t,
    (key, key_len): (*const c_void, usize),
) -> Result<(&'a Handle, u64), i32> {
    let table = c.handle(table)?;
    Ok((table, hash_of(table, c.key(key, key_len)?)?))
}

pub(super) fn ban(table: &Handle, now: u64, hash: u64, until: u64) -> i32 {
    either!(table.table(), t => t.ban(now, hash, until)).map_or_else(table_code, |()| TATCELL_PASS)
}

pub(super) fn exempt(table: &Handle, now: u64, hash: u64, until: u64) -> i32 {
    either!(table.table(), t => t.exempt(now, hash, until)).map_or_else(table_code, |()| TATCELL_PASS)
}

pub(super) fn lift(table: &Handle, now: u64, hash: u64) -> i32 {
    match either!(table.table(), t => t.lift(now, hash)) {
        Ok(true) => TATCELL_PASS,
        Ok(false) => TATCELL_END,
        Err(e) => table_code(e),
    }
}

/// Returns the kind of a key's override, and how long it lasts.
fn overridden(table: &Handle, now: u64, hash: u64) -> Result<(u32, u64), i32> {
    either!(table.table(), t => t.overridden(now, hash)).map(found_as).map_err(table_code)
}

/// The kind of an override, and for how long.
pub(super) fn found_as(found: Option<Override>) -> (u32, u64) {
    match found {
        None => (TATCELL_OVERRIDE_NONE, 0),
        Some(Override::Banned { retry_after }) => (TATCELL_OVERRIDE_BAN, retry_after),
        Some(Override::Exempt { left }) => (TATCELL_OVERRIDE_EXEMPT, left),
    }
}

/// Bans a key until a time: no request of it passes at a now before until. until is rounded up to the table's unit
/// of time. The ban replaces an earlier override of the key.
///
/// Overrides live in a table of their own, made with options.overrides. Your program checks it before the limits,
/// with tatcell_table_overridden or with a link of a chain (TATCELL_LINK_OVERRIDES). Overrides end by themselves.
/// Addresses have calls of their own: a key is bytes, and the bytes of 192.0.2.1 are not those of ::ffff:192.0.2.1
/// (tatcell_table_ban_address).
///
/// Sweep such a table at least once in its sweep interval (tatcell_table_info): an exemption that is never swept would
/// exempt again after a whole span.
/// Sweeping, statistics, saving and sharing work as for every table. A key takes two slots. The table takes another
/// key for a banned or exempt one with a probability of about (m / 2^tag_bits)^2, where m is the number of live
/// slots in a set of 16: 4e-12 at m = 2, 2e-10 if all are full.
///
/// An end that is earlier than that of the override it replaces, or of one that was lifted just before, cannot be
/// less than six units of time away. If until is less, a ban ends after at most six units, and an exemption ends at
/// once.
///
/// @param table   handle of a table of overrides; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key; not NULL, even when empty.
/// @param key_len bytes.
/// @param until   a reading of the clock after now, at most options.overrides ahead.
/// @retval 0 done.
/// @retval TATCELL_CONTENDED nothing is changed; ask again.
/// @retval TATCELL_ERR_ALGORITHM the table was not made for overrides.
/// @retval TATCELL_ERR_UNTIL until is not after now, or too far ahead.
/// @retval TATCELL_ERR_FULL_SET the set of the key is full: the ban is not stored. Other overrides are unchanged.
/// @retval TATCELL_ERR_CLASH the override of another key occupies this place, by chance. Neither is changed. More
///         tag bits make this rarer; another seed moves all keys.
/// @retval TATCELL_ERR_HANDLE, TATCELL_ERR_HASH, TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_KEY_LENGTH bad
///         argument.
/// Thread: any number, during any other call, unless the table is exclusive. Cost: two inserts, or two swaps if the
/// key has an override. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_ban(
    table: *const tatcell_table_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    until: u64,
) -> i32 {
    args!(c, (table, hash) = keyed(c, table, (key, key_len)));
    ban(table, now, hash, until)
}

/// As tatcell_table_ban, for a hash made by tatcell_table_hash. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_ban_hash(
    table: *const tatcell_table_t,
    now: u64,
    hash: u64,
    until: u64,
) -> i32 {
    args!(c, table = c.handle(table));
    ban(table, now, hash, until)
}

/// Exempts a key until a time: every request of it passes at a now before until, and nothing is charged. until is
/// rounded down to the table's unit of time. The exemption replaces an earlier override of the key.
///
/// @param table   handle of a table of overrides; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key; not NULL, even when empty.
/// @param key_len bytes.
/// @param until   a reading of the clock after now, at most options.overrides ahead; see tatcell_table_ban.
/// @retval as tatcell_table_ban; TATCELL_ERR_UNTIL also if until lies within the current unit of time.
/// Thread: as tatcell_table_ban. Cost: the same. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_exempt(
    table: *const tatcell_table_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    until: u64,
) -> i32 {
    args!(c, (table, hash) = keyed(c, table, (key, key_len)));
    exempt(table, now, hash, until)
}

/// As tatcell_table_exempt, for a hash made by tatcell_table_hash. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_exempt_hash(
    table: *const tatcell_table_t,
    now: u64,
    hash: u64,
    until: u64,
) -> i32 {
    args!(c, table = c.handle(table));
    exempt(table, now, hash, until)
}

/// Ends a key's override at once. One of its two slots stays taken until the override would have ended; the same
/// key can use it again.
///
/// @param table   handle of a table of overrides; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key; not NULL, even when empty.
/// @param key_len bytes.
/// @retval 0 the override has ended.
/// @retval TATCELL_END the key had none.
/// @retval TATCELL_CONTENDED nothing is changed; ask again.
/// @retval others as tatcell_table_ban, except TATCELL_ERR_UNTIL, TATCELL_ERR_FULL_SET and TATCELL_ERR_CLASH.
/// Thread: as tatcell_table_ban. Cost: a scan and a compare-and-swap. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_lift(
    table: *const tatcell_table_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
) -> i32 {
    args!(c, (table, hash) = keyed(c, table, (key, key_len)));
    lift(table, now, hash)
}

/// As tatcell_table_lift, for a hash made by tatcell_table_hash. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_lift_hash(table: *const tatcell_table_t, now: u64, hash: u64) -> i32 {
    args!(c, table = c.handle(table));
    lift(table, now, hash)
}

/// Reports whether a key is banned or exempt, and for how long. It only reads.
///
/// @param table   handle of a table of overrides; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key; not NULL, even when empty.
/// @param key_len bytes.
/// @param kind    gets TATCELL_OVERRIDE_NONE, TATCELL_OVERRIDE_BAN or TATCELL_OVERRIDE_EXEMPT; not NULL.
/// @param left    gets the ticks until the override ends, for a ban the retry time; 0 if there is none. NULL = not
///                wanted.
/// @retval 0 kind and left are written; on any other result neither is.
/// @retval TATCELL_ERR_ALGORITHM the table was not made for overrides.
/// @retval TATCELL_ERR_HANDLE, TATCELL_ERR_HASH, TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_KEY_LENGTH bad
///         argument.
/// Thread: as tatcell_table_ban. Cost: a hash, and one or two cache lines for a key without override. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_overridden(
    table: *const tatcell_table_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    kind: *mut u32,
    left: *mut u64,
) -> i32 {
    args!(
        c,
        (table, hash) = keyed(c, table, (key, key_len)),
        kind = c.result(kind),
        left = c.result_if(left),
        (found, ticks) = overridden(table, now, hash)
    );
    kind.put(found);
    if let Some(left) = left {
        left.put(ticks);
    }
    TATCELL_PASS
}

/// As tatcell_table_overridden, for a hash made by tatcell_table_hash. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_overridden_hash(
    table: *const tatcell_table_t,
    now: u64,
    hash: u64,
    kind: *mut u32,
    left: *mut u64,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        kind = c.result(kind),
        left = c.result_if(left),
        (found, ticks) = overridden(table, now, hash)
    );
    kind.put(found);
    if let Some(left) = left {
        left.put(ticks);
    }
    TATCELL_PASS
}

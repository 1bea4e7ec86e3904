//! `tatcell_table_change`: moves one key from one limit of its table to another.

use core::ffi::c_void;

use super::check::{hash_of, refused};
use super::handle::{tatcell_table_t, Handle};
use crate::algorithms::Change;
use crate::capi::decision::finish_done;
use crate::capi::limit::algorithms::change as how_of;
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::args;
use crate::combine::link::either;
use crate::limit::TableLimit;

fn change(table: &Handle, [old, new]: [&TableLimit; 2], now: u64, hash: u64, how: Change) -> i32 {
    if let Err(e) = either!(table.table(), t => t.verify_limit(old)) {
        return refused(e, old);
    }
    match either!(table.table(), t => t.change(old, new, now, hash, how)) {
        Ok(done) => finish_done(done),
        Err(e) => refused(e, new),
    }
}

/// Moves one key from one limit of its table to another, from now on, like tatcell_cell_change. An absent key stays
/// absent.
///
/// A word of a table does not say its limit. So if the keys of a table have several limits, change each key with a call
/// of its own, for example when one customer gets another plan. Call it once for each change: a second call scales the
/// debt again. Give the new limit another epoch, or refunds of permits from before the change give back too much. A key
/// that still owes something owes at least the claim lifetime and 18 q-units afterwards.
///
/// @param table     handle; not NULL.
/// @param old_limit the key's limit so far; not NULL.
/// @param new_limit the key's limit from now on; not NULL.
/// @param now       the caller's clock, ticks.
/// @param key       bytes of the key; not NULL, even when empty.
/// @param key_len   bytes.
/// @param how       a TATCELL_CHANGE_ constant.
/// @retval 0 done.
/// @retval TATCELL_CONTENDED nothing is changed; ask again.
/// @retval TATCELL_ERR_OPTION how is unknown.
/// @retval TATCELL_ERR_ALGORITHM a limit is unlimited, in a table that counts: only TATCELL_CHANGE_RESET is possible.
/// @retval TATCELL_ERR_KEEP_WINDOW, TATCELL_ERR_KEEP_COUNT as tatcell_cell_change.
/// @retval TATCELL_ERR_LIMIT, TATCELL_ERR_FOREIGN a limit is not one of this table.
/// @retval TATCELL_ERR_HASH the caller hashes for this table.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE, TATCELL_ERR_KEY_LENGTH bad argument.
/// Thread: any number, unless the table is exclusive. Under TATCELL_FULL_INHERIT and TATCELL_FULL_SAMPLED stop the
/// callers first: a thread that stalls inside an insert of the key could give it two slots. Cost: as
/// tatcell_table_check, and one 128-bit division. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_change(
    table: *const tatcell_table_t,
    old_limit: *const tatcell_limit_t,
    new_limit: *const tatcell_limit_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    how: u32,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        old = c.table_limit(old_limit),
        new = c.table_limit(new_limit),
        key = c.key(key, key_len),
        how = how_of(how),
        hash = hash_of(table, key)
    );
    change(table, [old, new], now, hash, how)
}

/// As tatcell_table_change, for a hash made by tatcell_table_hash. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_change_hash(
    table: *const tatcell_table_t,
    old_limit: *const tatcell_limit_t,
    new_limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    how: u32,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        old = c.table_limit(old_limit),
        new = c.table_limit(new_limit),
        how = how_of(how)
    );
    change(table, [old, new], now, hash, how)
}

//! `tatcell_table_*`, second part: sizing, saving, sweeping, counting.

use super::table::{either, handle, tatcell_table_t, words, Any};
use super::{output, result, table_code, TATCELL_CONTENDED, TATCELL_ERR_SIZE, TATCELL_PASS};
use crate::table::{full_set_ppb, lines_for, lines_for_load, Line, Slot, Stats};

/// Gives the bytes of memory for a table of at least this many slots, header line included: 8 bytes a slot.
///
/// @param slots at least; rounded up to whole sets of 16.
/// @return bytes, or 0 where that is more than a size_t holds.
/// Thread: any. Cost: none. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_table_bytes(slots: u64) -> usize {
    match usize::try_from(slots) {
        Ok(slots) => lines_for(slots).checked_mul(size_of::<Line>()).unwrap_or(0),
        Err(_) => 0,
    }
}

/// Gives the bytes of memory for an expected load, so that a new key seldom finds its set full.
///
/// @param slots_busy keys that hold a slot at the same time: new keys per second times the seconds that each stays in
///                   debt (one emission interval for a key that sends one unit), plus keys that are always in debt.
/// @param target_ppb tolerated chance of a full set, in billionths; 1000 is one in a million.
/// @return bytes, or 0 where no table is large enough.
/// Thread: any. Cost: some hundred divisions. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_table_size_for(slots_busy: u64, target_ppb: u64) -> usize {
    lines_for_load(slots_busy, target_ppb).checked_mul(size_of::<Line>()).unwrap_or(0)
}

/// Gives the chance that a new key finds its set full (Erlang B, 16 servers).
///
/// @param load_ppm live slots / slots, in millionths: load_ppm of tatcell_stats_t.
/// @return billionths.
/// Thread: any. Cost: 16 divisions. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_table_full_ppb(load_ppm: u64) -> u64 {
    full_set_ppb(load_ppm)
}

/// Copies the image of a table, each word whole; what has expired at now is left out.
///
/// @param table  handle; not NULL.
/// @param now    the caller's clock, ticks.
/// @param image  buffer outside the table's memory, aligned to 8 bytes; not NULL.
/// @param bytes  its length; the bytes that the table was initialised with are enough.
/// @param used   gets the bytes written; NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_MEMORY buffer too small; nothing written.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: beside any other call; a live table is saved word by word. Cost: reads all of it. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_save(
    table: *const tatcell_table_t,
    now: u64,
    image: *mut core::ffi::c_void,
    bytes: usize,
    used: *mut usize,
) -> i32 {
    // SAFETY: the caller's contract.
    let (table, image, used) = unsafe { args!(handle(table), words(image, bytes), output(used)) };
    match either!(table, t => t.save(now, image)) {
        Ok(n) => {
            if let Some(out) = used {
                *out = n * size_of::<u64>();
            }
            TATCELL_PASS
        }
        Err(e) => table_code(e),
    }
}

/// Makes one key full again, but for a trace of debt (the claim lifetime and 32 q-units at most) that keeps a stalled
/// insert from coming back to life. An absent key is full already.
///
/// @param table handle; not NULL.
/// @param now   the caller's clock, ticks.
/// @param hash  of the key.
/// @retval 0 done.
/// @retval TATCELL_CONTENDED nothing changed, ask again.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check_hash. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_reset_key(table: *const tatcell_table_t, now: u64, hash: u64) -> i32 {
    // SAFETY: the caller's contract.
    match unsafe { handle(table) } {
        Ok(table) if either!(table, t => t.reset_key(now, hash)) => TATCELL_PASS,
        Ok(_) => TATCELL_CONTENDED,
        Err(e) => e,
    }
}

/// Empties expired slots, a few at a time. Needed at most once per tatcell_table_sweep_interval; changes no decision.
///
/// @param table handle; not NULL.
/// @param now   the caller's clock, ticks.
/// @param from  slot to start at: 0, or what the last call put into next.
/// @param count slots to look at.
/// @param next  gets the slot to continue from, 0 after the last; NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: beside any other call, unless the table is exclusive. Cost: one load a slot. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_sweep(
    table: *const tatcell_table_t,
    now: u64,
    from: usize,
    count: usize,
    next: *mut usize,
) -> i32 {
    // SAFETY: the caller's contract.
    let (table, next) = unsafe { args!(handle(table), output(next)) };
    let at = either!(table, t => t.sweep(now, from, count));
    if let Some(out) = next {
        *out = at;
    }
    TATCELL_PASS
}

/// Gives the ticks within which every slot should be swept once: a key that stays away longer may, for a small share
/// of idle times, meet a false debt that drains.
///
/// @param table handle; not NULL.
/// @param ticks gets the interval; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: any. Cost: none. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_sweep_interval(table: *const tatcell_table_t, ticks: *mut u64) -> i32 {
    // SAFETY: the caller's contract.
    let (table, out) = unsafe { args!(handle(table), result(ticks)) };
    *out = either!(table, t => t.sweep_interval());
    TATCELL_PASS
}

/// Scans all slots and sums up: live keys, load, debts.
///
/// @param table handle; not NULL.
/// @param now   the caller's clock, ticks.
/// @param out   started from TATCELL_STATS_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_SIZE out->size is not set.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: beside any other call; each word as of its reading. Cost: reads all of it. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_stats(
    table: *const tatcell_table_t,
    now: u64,
    out: *mut Stats,
) -> i32 {
    // SAFETY: the caller's contract.
    let (table, out) = unsafe { args!(handle(table), result(out)) };
    if (out.size as usize) < size_of::<Stats>() {
        return TATCELL_ERR_SIZE;
    }
    *out = either!(table, t => t.stats(now));
    TATCELL_PASS
}

/// Finds the next live slot at or after a number; continue from out->number + 1.
///
/// @param table handle; not NULL.
/// @param now   the caller's clock, ticks.
/// @param from  slot number to start at.
/// @param out   gets the slot; not NULL.
/// @retval 0 found.
/// @retval TATCELL_END no more live slots; out is not written.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: beside any other call; each word as of its reading. Cost: one load a slot passed. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_next(
    table: *const tatcell_table_t,
    now: u64,
    from: usize,
    out: *mut Slot,
) -> i32 {
    // SAFETY: the caller's contract.
    let (table, out) = unsafe { args!(handle(table), result(out)) };
    match either!(table, t => t.next_live(now, from)) {
        Some(slot) => {
            *out = slot;
            TATCELL_PASS
        }
        None => super::TATCELL_END,
    }
}

/// Gives sizeof(tatcell_table_t) of the linked library, to compare with TATCELL_TABLE_HANDLE_SIZE.
///
/// @return bytes.
/// Thread: any. Cost: none. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_table_handle_size() -> usize {
    super::table::TATCELL_TABLE_HANDLE_SIZE
}

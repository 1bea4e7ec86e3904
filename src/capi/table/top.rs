//! `tatcell_table_top`: the keys with the largest debts, and whose they may be.

use super::handle::tatcell_table_t;
use super::upkeep::tatcell_slot_t;
use crate::capi::codes::{TATCELL_END, TATCELL_ERR_COUNT, TATCELL_PASS};
use crate::capi::pointers::contract::{args, Plain};
use crate::capi::table::seen::look;
use crate::table::{Slot, MAX_BURST};

// SAFETY: numbers without padding.
unsafe impl Plain for tatcell_slot_t {}

/// Finds the live slots with the longest debts, the longest first.
///
/// A table keeps no keys. To name a slot, keep a small sample of hashes with their keys, from refused requests for
/// instance, and call tatcell_table_may_be for each of them. If words hold a count, the slots whose windows end
/// last come first.
///
/// @param table handle, also a read-only one; not NULL.
/// @param now   the caller's clock, ticks.
/// @param top   gets up to count slots; not NULL unless count is 0.
/// @param count 0..64.
/// @param found gets the number of slots written; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_COUNT more than 64.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: during any other call; each word counts as of its reading. Cost: reads all of the table. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_top(
    table: *const tatcell_table_t,
    now: u64,
    top: *mut tatcell_slot_t,
    count: u32,
    found: *mut u32,
) -> i32 {
    let count = count as usize;
    let mut slots = [Slot::default(); MAX_BURST];
    let Some(own) = slots.get_mut(..count) else { return TATCELL_ERR_COUNT };
    let bytes = count.wrapping_mul(size_of::<tatcell_slot_t>());
    args!(
        c,
        table = c.seen(table),
        places = if count == 0 { Ok(Default::default()) } else { c.buffer(top, bytes) },
        out = c.result(found),
    );
    let filled = look!(table, t => t.top(now, own));
    for (place, slot) in places.iter_mut().zip(own.iter().take(filled)) {
        let (number, tag, reset_after) = (slot.number.into(), slot.tag, slot.reset_after);
        *place = tatcell_slot_t { number, reset_after, tag, reserved: 0, more: [0; 5] };
    }
    out.put(filled as u32);
    TATCELL_PASS
}

/// Reports whether the key of a hash may be the one in a slot. It is wrong for one other key in 2^tag_bits * sets.
///
/// @param table handle, also a read-only one; not NULL.
/// @param slot  from tatcell_table_top or tatcell_table_next of this table; not NULL.
/// @param hash  from tatcell_table_hash, or the caller's own hash.
/// @retval 0 it may be.
/// @retval TATCELL_END it is not.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: any. Cost: two multiplications. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_may_be(
    table: *const tatcell_table_t,
    slot: *const tatcell_slot_t,
    hash: u64,
) -> i32 {
    args!(c, table = c.seen(table), slot = c.input(slot));
    let Ok(number) = u32::try_from(slot.number) else { return TATCELL_END };
    let slot = Slot { number, tag: slot.tag, reset_after: slot.reset_after };
    if look!(table, t => t.may_be(&slot, hash)) {
        TATCELL_PASS
    } else {
        TATCELL_END
    }
}

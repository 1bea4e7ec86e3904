//! `tatcell_table_*`: sizing, prefetching, sweeping, counting, walking.

use super::handle::tatcell_table_t;
use crate::capi::codes::{TATCELL_END, TATCELL_PASS};
use crate::capi::pointers::contract::{args, inside, Grows, Plain};
use crate::capi::pointers::places::apart;
use crate::capi::table::seen::look;
use crate::combine::link::either;
use crate::table::{full_set_ppb, lines_for, lines_for_load, Counters, Line, Sweeper};

/// Bytes of a tatcell_counters_t. This size never changes.
pub const TATCELL_COUNTERS_SIZE: usize = 128;
const _: () = assert!(size_of::<Counters>() == TATCELL_COUNTERS_SIZE);
// SAFETY: numbers without padding (asserted).
unsafe impl Plain for Counters {}
/// Bytes of a tatcell_sweeper_t. This size never changes.
pub const TATCELL_SWEEPER_SIZE: usize = 8;
/// Alignment of a tatcell_sweeper_t.
pub const TATCELL_SWEEPER_ALIGN: usize = 8;
const _: () = assert!(size_of::<tatcell_sweeper_t>() == TATCELL_SWEEPER_SIZE);
const _: () = assert!(align_of::<tatcell_sweeper_t>() == TATCELL_SWEEPER_ALIGN);
// SAFETY: an atomic number.
unsafe impl Plain for Sweeper {}
/// Bytes of a tatcell_slot_t. This size never changes.
pub const TATCELL_SLOT_SIZE: usize = 64;
const _: () = assert!(size_of::<tatcell_slot_t>() == TATCELL_SLOT_SIZE);
/// Bytes of a tatcell_stats_t in its first release: the least size that a library accepts.
pub const TATCELL_STATS_MIN: usize = 104;

/// Statistics from a scan of the slots.
#[repr(C)]
pub struct tatcell_stats_t {
    /// sizeof(tatcell_stats_t); never written.
    pub size: u32,
    /// Load alpha in millionths: live slots / slots. In a table of overrides also the slots that hold the second word
    /// of an override, or one that was lifted.
    pub load_ppm: u32,
    /// Slots scanned.
    pub slots: u64,
    /// Slots with a live key; in a table of overrides those with a ban or an exemption.
    pub live: u64,
    /// Inserts in progress, and abandoned ones whose slot is not used again yet.
    pub claims: u64,
    /// Slots whose key's debt has drained; they count as empty.
    pub expired: u64,
    /// Live slots by lead. Element k counts leads in (H / 2^(k+1), H / 2^k]; the last one counts all smaller leads.
    pub debt: [u64; 8],
    /// Sets of 16 slots of which a new key could take none: there the policy decides. Since 0.4.
    pub full_sets: u64,
    /// The longest debt, ticks until that key has its burst again; 0 if there is none. In a table of overrides, how
    /// long the longest one lasts. Since 0.4.
    pub longest: u64,
    /// In a table of overrides, how many of the live ones are exemptions; the others are bans. Else 0. Since 0.4.
    pub exemptions: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_stats_t {
    const FIRST: usize = TATCELL_STATS_MIN;
}
const _: () = assert!(size_of::<tatcell_stats_t>() == 2 * 4 + 15 * 8);

/// What the library keeps of the sweeps of a table. All who use the table share one, which lies in shared memory if the
/// table does. All-zero memory (static storage, calloc, TATCELL_SWEEPER_INIT) is that of a fresh table.
#[repr(C, align(8))]
pub struct tatcell_sweeper_t {
    /// Private to the library.
    pub opaque: u64,
}

/// One live slot, at the time when it was read.
#[repr(C)]
pub struct tatcell_slot_t {
    /// Number of the slot.
    pub number: u64,
    /// Ticks until the key's burst is full again; in a table of overrides, until the ban or exemption ends.
    pub reset_after: u64,
    /// Tag of the slot's key: the low bits of the hash.
    pub tag: u32,
    /// Always 0.
    pub reserved: u32,
    /// Always 0.
    pub more: [u64; 5],
}

/// Returns the bytes of memory for a table of at least this many slots: 8 bytes a slot, and the header. For static
/// memory, TATCELL_TABLE_BYTES gives the same number.
///
/// @param slots least number of slots; rounded up to whole sets of 16.
/// @return bytes, or 0 if the number does not fit a size_t.
/// Thread: any. Cost: none. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_table_bytes(slots: u64) -> usize {
    match usize::try_from(slots) {
        Ok(slots) => lines_for(slots).checked_mul(size_of::<Line>()).unwrap_or(0),
        Err(_) => 0,
    }
}

/// Returns the bytes of memory for an expected load, such that a new key seldom finds its set full.
///
/// @param slots_busy keys that hold a slot at the same time. That is new keys per second times the seconds that
///                   each stays in debt (one emission interval for a key that sends one unit), plus keys that are
///                   always in debt.
/// @param target_ppb tolerated probability of a full set, in billionths; 1000 is one in a million.
/// @return bytes, or 0 if no table is large enough.
/// Thread: any. Cost: some hundred divisions. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_table_size_for(slots_busy: u64, target_ppb: u64) -> usize {
    lines_for_load(slots_busy, target_ppb).checked_mul(size_of::<Line>()).unwrap_or(0)
}

/// Returns the probability that a new key finds its set full (Erlang B, 16 servers).
///
/// @param load_ppm live slots / slots, in millionths: load_ppm of tatcell_stats_t.
/// @return billionths.
/// Thread: any. Cost: 16 divisions. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_table_full_ppb(load_ppm: u64) -> u64 {
    full_set_ppb(load_ppm)
}

/// Prefetches the lines of up to 64 hashes, for the calls that follow.
///
/// tatcell_table_check_burst prefetches by itself. It does so even after this call, unless the burst has
/// TATCELL_BURST_PREFETCHED.
///
/// @param table  handle; not NULL.
/// @param hashes from tatcell_table_hash, or the caller's own keyed hashes; not NULL unless count is 0.
/// @param count  0..64.
/// @retval 0 done.
/// @retval TATCELL_ERR_COUNT more than 64 hashes.
/// @retval TATCELL_ERR_HANDLE table is not initialised.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any number. Cost: one or two prefetches or loads for each hash; changes nothing. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_prefetch(
    table: *const tatcell_table_t,
    hashes: *const u64,
    count: u32,
) -> i32 {
    args!(c, table = c.handle(table), hashes = c.array(hashes, count as usize));
    either!(table.table(), t => t.prefetch(hashes));
    TATCELL_PASS
}

/// Empties expired slots, a few at a time. A table that runs for longer than the sweep_interval of tatcell_table_info_t
/// needs one sweep of all slots in each such interval: hours for nanoseconds and 20 tag bits, but 4.2 s for a limit of
/// 10 Gbit/s in bytes. A sweep changes no decision.
///
/// @param table handle; not NULL.
/// @param now   the caller's clock, ticks.
/// @param from  slot to start at: 0, or the value of next from the last call.
/// @param count slots to scan.
/// @param next  gets the slot to continue from, 0 after the last one; NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: during any other call, unless the table is exclusive. Cost: one load for each slot. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_sweep(
    table: *const tatcell_table_t,
    now: u64,
    from: u64,
    count: u64,
    next: *mut u64,
) -> i32 {
    args!(c, table = c.handle(table), next = c.result_if(next));
    let at = either!(table.table(), t => t.sweep(now, whole(from), whole(count)));
    if let Some(out) = next {
        out.put(at as u64);
    }
    TATCELL_PASS
}

/// Sweeps what is due, instead of a timer, and ends a silence. Call it with the same now before each call on the table,
/// also before a look at overrides. If no call came for so long that all debts are over, it empties the table, and no
/// old debt counts once more. A silence is longer than both a quarter of sweep_interval and the longest debt with the
/// skew.
///
/// It forgets what was charged without it. Use it, with one sweeper, in all calls of all processes, or in none.
///
/// A reading far ahead counts as a silence, and then all keys have their burst again: pass only a monotonic clock, or a
/// guarded one (tatcell_host_guard_now). One behind the last reading sweeps nothing, until the clock has caught up. If
/// the clock was set back, debts from before the step then count again. After a step back of more than sweep_interval,
/// sweeps go on from there.
///
/// To restore a table (tatcell_table_restore), call it before the save, with the same now. Make the first call on the
/// restored table with a fresh sweeper and that now plus the offset. Then the time in between may be a silence. Before
/// tatcell_table_migrate, call it on the old table. Make the first call on the new table with a fresh sweeper and the
/// now of the migration. Then a silence may follow.
///
/// @param table   handle; not NULL.
/// @param sweeper of this table; not NULL.
/// @param now     the caller's clock, ticks.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: during any other call, unless the table is exclusive. Cost: usually one load and some arithmetic, about a
/// third of a check; now and then some microseconds for 4096 slots, which may be all slots after a pause; to empty a
/// million slots takes milliseconds. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_sweep_due(
    table: *const tatcell_table_t,
    sweeper: *mut tatcell_sweeper_t,
    now: u64,
) -> i32 {
    args!(c, table = c.handle(table), sweeper = c.input::<Sweeper>(inside(sweeper)));
    either!(table.table(), t => sweeper.sweep(t, now));
    TATCELL_PASS
}

/// Returns the time at which a peek finds no old debt, and changes nothing: now, or during a silence
/// (tatcell_table_sweep_due) an earlier time when all debts were over. A departure that the peek returns is then as
/// early as that time.
///
/// @param table   handle; not NULL.
/// @param sweeper of this table; not NULL.
/// @param now     the caller's clock, ticks.
/// @param time    gets the time to pass to the peek; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: during any other call, unless the table is exclusive. Cost: one load. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_peek_time(
    table: *const tatcell_table_t,
    sweeper: *const tatcell_sweeper_t,
    now: u64,
    time: *mut u64,
) -> i32 {
    args!(c, table = c.handle(table), sweeper = c.input::<Sweeper>(inside(sweeper)), time = c.result(time));
    time.put(either!(table.table(), t => sweeper.peek_time(t, now)));
    TATCELL_PASS
}

/// Converts a number of slots; no table has more than a usize holds.
fn whole(slots: u64) -> usize {
    usize::try_from(slots).unwrap_or(usize::MAX)
}

/// Scans all slots and sums up live keys, load and debts.
///
/// @param table handle, also a read-only one; not NULL.
/// @param now   the caller's clock, ticks.
/// @param out   started from TATCELL_STATS_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_SIZE out->size is not set.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: during any other call; each word counts as of its reading. Cost: reads all of the table. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_stats(
    table: *const tatcell_table_t,
    now: u64,
    out: *mut tatcell_stats_t,
) -> i32 {
    args!(c, table = c.seen(table), out = c.report(out));
    let made = look!(table, t => t.stats(now));
    out.put(&tatcell_stats_t {
        size: 0,
        load_ppm: made.load_ppm as u32,
        slots: made.slots,
        live: made.live,
        claims: made.claims,
        expired: made.expired,
        debt: made.debt,
        full_sets: made.full_sets,
        longest: made.longest,
        exemptions: made.exemptions,
    });
    TATCELL_PASS
}

/// Finds the next live slot at or after a number. Continue from out->number + 1. In a table of overrides these are the
/// bans and the exemptions.
///
/// @param table handle, also a read-only one; not NULL.
/// @param now   the caller's clock, ticks.
/// @param from  number of the slot to start at.
/// @param out   gets the slot; not NULL.
/// @retval 0 found.
/// @retval TATCELL_END there are no more live slots; out is not written.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: during any other call; each word counts as of its reading. Cost: one load for each slot passed.
/// Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_next(
    table: *const tatcell_table_t,
    now: u64,
    from: u64,
    out: *mut tatcell_slot_t,
) -> i32 {
    args!(c, table = c.seen(table), out = c.result(out));
    match look!(table, t => t.next_live(now, whole(from))) {
        Some(slot) => {
            let (number, tag, reset_after) = (slot.number.into(), slot.tag, slot.reset_after);
            out.put(tatcell_slot_t { number, reset_after, tag, reserved: 0, more: [0; 5] });
            TATCELL_PASS
        }
        None => TATCELL_END,
    }
}

/// Adds the counts of another thread to these counters.
///
/// @param counters gets the sum; not NULL.
/// @param more     counters to add; not NULL, and not the same object.
/// @retval 0 done.
/// @retval TATCELL_ERR_OVERLAP they overlap.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: while no other thread counts in either. Cost: some additions. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_counters_add(counters: *mut Counters, more: *const Counters) -> i32 {
    args!(c, () = apart(counters, more), sum = c.owned(counters), more = c.input(more));
    sum.add(more);
    TATCELL_PASS
}

/// Returns sizeof(tatcell_counters_t) of the linked library, to compare with TATCELL_COUNTERS_SIZE. Since 0.2.
#[no_mangle]
pub extern "C" fn tatcell_counters_size() -> usize {
    TATCELL_COUNTERS_SIZE
}

/// Returns sizeof(tatcell_slot_t) of the linked library, to compare with TATCELL_SLOT_SIZE. Since 0.2.
#[no_mangle]
pub extern "C" fn tatcell_slot_size() -> usize {
    TATCELL_SLOT_SIZE
}

//! `tatcell_*_info` and `tatcell_*_export`: the numbers of limits and tables.

use super::handle::tatcell_table_t;
use super::options::TATCELL_TABLE_EXCLUSIVE;
use crate::capi::codes::{limit_code, table_code, TATCELL_PASS};
use crate::capi::limit::limit::{
    tatcell_limit_t, TATCELL_ALGORITHM_OVERRIDES, TATCELL_LIMIT_ALIGNED, TATCELL_LIMIT_HEAL,
    TATCELL_LIMIT_SHADOW, TATCELL_LIMIT_STRICT_REFUNDS,
};
use crate::capi::pointers::contract::{args, Grows};
use crate::capi::table::seen::look;
use crate::limit::params::{Params, FLAG_ALIGNED, FLAG_HEAL, FLAG_SHADOW, FLAG_STRICT};

/// Bytes of a tatcell_limit_info_t in its first release: the least size that a library accepts.
pub const TATCELL_LIMIT_INFO_MIN: usize = 80;
/// Bytes of a tatcell_limit_numbers_t in its first release: the least size that a library accepts.
pub const TATCELL_LIMIT_NUMBERS_MIN: usize = 104;
/// Bytes of a tatcell_table_info_t in its first release: the least size that a library accepts.
pub const TATCELL_TABLE_INFO_MIN: usize = 112;
/// Bytes of a tatcell_table_numbers_t in its first release: the least size that a library accepts.
pub const TATCELL_TABLE_NUMBERS_MIN: usize = 80;

/// The numbers of a limit, in ticks and units.
#[repr(C)]
pub struct tatcell_limit_info_t {
    /// sizeof(tatcell_limit_info_t); never written.
    pub size: u32,
    /// Any of the TATCELL_LIMIT_ flags except TATCELL_LIMIT_RESOLUTION.
    pub flags: u32,
    /// Bits of the word that the limit is for: 64, 32, or those of a table's slot.
    pub bits: u32,
    /// One q-unit is 2^-resolution ticks.
    pub resolution: i32,
    /// Units per period, as specified; 0 if unlimited.
    pub units: u64,
    /// Ticks, as specified; 0 if unlimited.
    pub period: u64,
    /// Most units that conform at one instant after idle; UINT64_MAX if unlimited.
    pub burst: u64,
    /// T, the emission interval, in q-units; 0 if unlimited. 1 for algorithms that count units in windows without a
    /// T: all of them except quota-linear.
    pub emission_q: u64,
    /// H, the longest debt that a store can make, in ticks. A permit older than this credits nothing.
    pub horizon: u64,
    /// S, in ticks. A reading that is older than another by more than this finds the key expired, with its full
    /// burst.
    pub skew: u64,
    /// Ticks after which an untouched word may read as a debt again, for at most horizon and skew.
    pub span: u64,
    /// By how much the rate is lower than the specified one, or the window longer, in billionths, rounded up. The
    /// rate is never higher, and the window never shorter.
    pub rate_error_ppb: u64,
    /// A TATCELL_ALGORITHM_ constant.
    pub algorithm: u32,
    /// Bits of the word that count units, next to the time; 0 for GCRA and decay.
    pub count_bits: u32,
    /// The most ticks by which a window ends later than specified; it never ends earlier. 0 if every border is exact,
    /// and for GCRA. Since 0.4.
    pub border_error: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_limit_info_t {
    const FIRST: usize = TATCELL_LIMIT_INFO_MIN;
}
const _: () = assert!(size_of::<tatcell_limit_info_t>() == 6 * 4 + 9 * 8);

/// The numbers that decide a request, in q-units, for a program that decides without the library (BPF). The key
/// conforms iff lead + cost * emission_q <= burst_q.
#[repr(C)]
pub struct tatcell_limit_numbers_t {
    /// sizeof(tatcell_limit_numbers_t); never written.
    pub size: u32,
    /// Any of the TATCELL_LIMIT_ flags except TATCELL_LIMIT_RESOLUTION.
    pub flags: u32,
    /// Bits of the word that hold the TAT.
    pub bits: u32,
    /// One tick is 2^shift_left q-units.
    pub shift_left: u32,
    /// One q-unit is 2^shift_right ticks. One of the two shifts is 0.
    pub shift_right: u32,
    /// The epoch that permits carry.
    pub epoch: u32,
    /// T, the emission interval; 0 if unlimited, and then every request conforms.
    pub emission_q: u64,
    /// The debt of a full burst.
    pub burst_q: u64,
    /// H, the longest debt.
    pub horizon_q: u64,
    /// H + S. A word is live iff 1 <= TAT - now <= this.
    pub window_q: u64,
    /// A request that passes above this lead is soft; UINT64_MAX = off.
    pub soft_q: u64,
    /// The most lead that a reservation may add beyond the burst.
    pub delay_q: u64,
    /// The most lead that a charge may make, including the burst.
    pub debt_q: u64,
    /// The most lead that a refused request may make, including the burst; 0 = a refused request costs nothing.
    pub penalty_q: u64,
    /// Units: the largest cost that can ever conform.
    pub burst: u64,
    /// Units: the most elastic room of a call.
    pub room: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_limit_numbers_t {
    const FIRST: usize = TATCELL_LIMIT_NUMBERS_MIN;
}
const _: () = assert!(size_of::<tatcell_limit_numbers_t>() == 6 * 4 + 10 * 8);

/// The numbers of a table; times are ticks.
#[repr(C)]
pub struct tatcell_table_info_t {
    /// sizeof(tatcell_table_info_t); never written.
    pub size: u32,
    /// TATCELL_TABLE_EXCLUSIVE or 0.
    pub flags: u32,
    /// A TATCELL_FULL_ constant.
    pub policy: u32,
    /// A TATCELL_HASH_ constant.
    pub hash: u32,
    /// Bits of a slot's tag.
    pub tag_bits: u32,
    /// One q-unit is 2^-resolution ticks.
    pub resolution: i32,
    /// Number of slots.
    pub slots: u64,
    /// Number of lines of 8 slots, without the header.
    pub lines: u64,
    /// Bytes of the image, including the header: the length that tatcell_table_save needs.
    pub image_bytes: u64,
    /// H, the longest debt that a slot can hold.
    pub horizon: u64,
    /// S. A reading that is older than another by more than this finds the key expired, and up to a burst passes
    /// once more.
    pub skew: u64,
    /// H + S: the longest time that a false debt lasts.
    pub window: u64,
    /// Ticks after which an untouched slot may read as a debt again.
    pub span: u64,
    /// Sweep every slot once within this many ticks. Otherwise a key that stays away longer may, for a small share
    /// of idle times, find a false debt that drains.
    pub sweep_interval: u64,
    /// Ticks for which a thread that stopped inside an insert keeps the slot.
    pub claim_lifetime: u64,
    /// Ticks per second, as in the options of tatcell_table_init; 0 = not stated.
    pub tick_hz: u64,
    /// One more than the number of restores of the table. Permits carry it.
    pub generation: u64,
    /// A TATCELL_ALGORITHM_ constant: the algorithm of all limits of the table.
    pub algorithm: u32,
    /// Bits of a slot that count units, next to the time; 0 for GCRA and decay.
    pub count_bits: u32,
    /// For aligned windows: ticks by which callers' clocks may differ; otherwise 0.
    pub guard: u64,
    /// The most ticks by which a window of the table ends later than specified; it never ends earlier. 0 if every
    /// border is exact, and for GCRA. Since 0.4.
    pub border_error: u64,
    /// A TATCELL_CLOCK_ constant: the callers' clock, as in the options of tatcell_table_init. Since 0.4.
    pub clock: u32,
    /// Always 0.
    pub reserved: u32,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_table_info_t {
    const FIRST: usize = TATCELL_TABLE_INFO_MIN;
}
const _: () = assert!(size_of::<tatcell_table_info_t>() == 10 * 4 + 13 * 8);

/// The numbers for reading and writing a table's slots, for a program that does it without the library (BPF). The
/// seed is not among them, because the caller has it.
#[repr(C)]
pub struct tatcell_table_numbers_t {
    /// sizeof(tatcell_table_numbers_t); never written.
    pub size: u32,
    /// TATCELL_TABLE_EXCLUSIVE or 0.
    pub flags: u32,
    /// A TATCELL_FULL_ constant.
    pub policy: u32,
    /// A TATCELL_HASH_ constant.
    pub hash: u32,
    /// One tick is 2^shift_left q-units.
    pub shift_left: u32,
    /// One q-unit is 2^shift_right ticks. One of the two shifts is 0.
    pub shift_right: u32,
    /// Number of lines of 8 slots, without the header. The home line of a hash is (hash >> 32) * lines >> 32.
    pub lines: u32,
    /// Bytes of the header. The slots follow it.
    pub header_bytes: u32,
    /// The bits of a slot word that hold the payload. Above them lies the tag, and at the top the claim bit.
    pub mask: u64,
    /// H, the longest debt.
    pub horizon_q: u64,
    /// H + S. A slot is live iff 1 <= payload - now <= this.
    pub window_q: u64,
    /// The claim lifetime.
    pub claim_lifetime_q: u64,
    /// How far the version of an empty slot may be ahead of now, for the slot to be taken.
    pub grace_q: u64,
    /// The generation that permits carry.
    pub generation: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_table_numbers_t {
    const FIRST: usize = TATCELL_TABLE_NUMBERS_MIN;
}
const _: () = assert!(size_of::<tatcell_table_numbers_t>() == 8 * 4 + 6 * 8);

/// Returns the flags of a limit, as C has them.
fn limit_flags(p: &Params) -> u32 {
    let all = [
        (FLAG_HEAL, TATCELL_LIMIT_HEAL),
        (FLAG_SHADOW, TATCELL_LIMIT_SHADOW),
        (FLAG_STRICT, TATCELL_LIMIT_STRICT_REFUNDS),
        (FLAG_ALIGNED, TATCELL_LIMIT_ALIGNED),
    ];
    all.iter().fold(0, |flags, &(inside, outside)| if p.has(inside) { flags | outside } else { flags })
}

/// Reports the numbers of a limit, its span, and how far its rate is from the specified one.
///
/// @param limit of any kind; not NULL.
/// @param info  started from TATCELL_LIMIT_INFO_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_LIMIT limit is not initialised.
/// @retval TATCELL_ERR_SIZE info->size is not set.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any. Cost: one 128-bit division. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_info(
    limit: *const tatcell_limit_t,
    info: *mut tatcell_limit_info_t,
) -> i32 {
    args!(c, limit = c.any_limit(limit), out = c.report(info));
    let made = limit.info();
    out.put(&tatcell_limit_info_t {
        size: 0,
        flags: limit_flags(&limit.0),
        bits: limit.0.bits.into(),
        resolution: made.resolution,
        units: made.units,
        period: made.period,
        burst: made.burst,
        emission_q: made.emission_q,
        horizon: made.horizon,
        skew: made.skew,
        span: made.span,
        rate_error_ppb: made.rate_error_ppb,
        algorithm: made.algorithm as u32,
        count_bits: made.count_bits,
        border_error: made.border_error,
    });
    TATCELL_PASS
}

/// Exports the numbers of a limit in q-units, for a program that decides without the library.
///
/// @param limit   of any kind; not NULL.
/// @param numbers started from TATCELL_LIMIT_NUMBERS_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_ALGORITHM the limit is not of GCRA; there are numbers only for GCRA.
/// @retval others as tatcell_limit_info.
/// Thread: any. Cost: none. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_export(
    limit: *const tatcell_limit_t,
    numbers: *mut tatcell_limit_numbers_t,
) -> i32 {
    args!(c, limit = c.any_limit(limit), made = limit.numbers().map_err(limit_code), out = c.report(numbers));
    out.put(&tatcell_limit_numbers_t {
        size: 0,
        flags: limit_flags(&limit.0),
        bits: made.bits,
        shift_left: made.shift_left,
        shift_right: made.shift_right,
        epoch: made.epoch,
        emission_q: made.emission_q,
        burst_q: made.burst_q,
        horizon_q: made.horizon_q,
        window_q: made.window_q,
        soft_q: made.soft_q,
        delay_q: made.delay_q,
        debt_q: made.debt_q,
        penalty_q: made.penalty_q,
        burst: made.burst,
        room: made.room,
    });
    TATCELL_PASS
}

/// Reports the numbers of a table: its size, span, skew, sweep interval and others.
///
/// @param table handle, also a read-only one; not NULL.
/// @param info  started from TATCELL_TABLE_INFO_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_SIZE info->size is not set.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: any. Cost: none. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_info(
    table: *const tatcell_table_t,
    info: *mut tatcell_table_info_t,
) -> i32 {
    args!(c, table = c.seen(table), out = c.report(info));
    let made = look!(table, t => t.info());
    out.put(&tatcell_table_info_t {
        size: 0,
        flags: if made.exclusive { TATCELL_TABLE_EXCLUSIVE } else { 0 },
        policy: made.policy as u32,
        hash: made.hash as u32,
        tag_bits: made.tag_bits,
        resolution: made.resolution,
        slots: made.slots,
        lines: made.lines,
        image_bytes: made.image_bytes,
        horizon: made.horizon,
        skew: made.skew,
        window: made.window,
        span: made.span,
        sweep_interval: made.sweep_interval,
        claim_lifetime: made.claim_lifetime,
        tick_hz: made.tick_hz,
        generation: made.generation,
        algorithm: if made.overrides { TATCELL_ALGORITHM_OVERRIDES } else { made.algorithm as u32 },
        count_bits: made.count_bits,
        guard: made.guard,
        border_error: made.border_error,
        clock: made.clock as u32,
        reserved: 0,
    });
    TATCELL_PASS
}

/// Exports the numbers of a table in q-units, for a program that reads and writes slots without the library.
///
/// @param table   handle, also a read-only one; not NULL.
/// @param numbers started from TATCELL_TABLE_NUMBERS_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_ALGORITHM the table's algorithm is not GCRA; there are numbers only for GCRA.
/// @retval others as tatcell_table_info.
/// Thread: any. Cost: none. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_export(
    table: *const tatcell_table_t,
    numbers: *mut tatcell_table_numbers_t,
) -> i32 {
    args!(
        c,
        table = c.seen(table),
        out = c.report(numbers),
        made = look!(table, t => t.numbers()).map_err(table_code)
    );
    out.put(&tatcell_table_numbers_t {
        size: 0,
        flags: if made.exclusive { TATCELL_TABLE_EXCLUSIVE } else { 0 },
        policy: made.policy as u32,
        hash: made.hash as u32,
        shift_left: made.shift_left,
        shift_right: made.shift_right,
        lines: made.lines,
        header_bytes: made.header_bytes,
        mask: made.mask,
        horizon_q: made.horizon_q,
        window_q: made.window_q,
        claim_lifetime_q: made.claim_lifetime_q,
        grace_q: made.grace_q,
        generation: made.generation,
    });
    TATCELL_PASS
}

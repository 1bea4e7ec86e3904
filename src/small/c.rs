//! The C ABI of `include/tatcell_small.h`, for firmware: `tatcell_small_*` and `tatcell_small32_*`.
//!
//! Unlike the functions of `tatcell.h`, these check no pointer and no limit. Cell and limit are static objects of the
//! firmware, with C types, and each check would cost bytes on every call path. The answer is one number (0 passes), so
//! there is no pointer for a result either.

use super::cell::{Small, Small32};
use super::table::Head;
use super::{section_works, SmallLimit, SmallLimit32, SmallLog};
use crate::cell::{Cell, Cell32, ExclusiveCell};
use crate::limit::LimitError;

/// Returns the code of `tatcell.h` for a limit that cannot be made; a test compares the codes.
const fn code(e: LimitError) -> i32 {
    match e {
        LimitError::ZeroRate => -4,
        LimitError::ZeroPeriod => -5,
        LimitError::ZeroBurst => -6,
        LimitError::NotRepresentable => -7,
        // The only other error of the small constructors is `HorizonTooLong`.
        _ => -8,
    }
}

/// `TATCELL_ERR_UNSUPPORTED`.
const UNSUPPORTED: i32 = -26;

/// Wraps the functions, so that the generator of `tatcell.h`, which expands no macro, ignores them.
macro_rules! exports {
    ($($item:item)+) => { $(#[no_mangle] $item)+ };
}

exports! {
    // SAFETY: (each function) the header demands a valid cell and a valid limit.

    pub unsafe extern "C" fn tatcell_small_check(cell: &Cell, limit: &SmallLimit, now: u64, cost: u32) -> Small {
        cell.small_check(limit, now, cost)
    }

    pub unsafe extern "C" fn tatcell_small_check_unit(cell: &Cell, limit: &SmallLimit, now: u64) -> Small {
        cell.small_check1(limit, now)
    }

    pub unsafe extern "C" fn tatcell_small_check_exclusive(
        cell: &mut ExclusiveCell,
        limit: &SmallLimit,
        now: u64,
        cost: u32,
    ) -> Small {
        cell.small_check(limit, now, cost)
    }

    pub unsafe extern "C" fn tatcell_small_reserve(cell: &Cell, limit: &SmallLimit, now: u64, cost: u32) -> Small {
        cell.small_reserve(limit, now, cost)
    }

    pub unsafe extern "C" fn tatcell_small_idle(cell: &Cell, limit: &SmallLimit, now: u64) {
        cell.small_idle(limit, now);
    }

    pub unsafe extern "C" fn tatcell_small_reset(cell: &Cell) {
        cell.reset();
    }

    pub unsafe extern "C" fn tatcell_small32_check(
        cell: &Cell32,
        limit: &SmallLimit32,
        now: u32,
        cost: u32,
    ) -> Small32 {
        cell.small_check(limit, now, cost)
    }

    pub unsafe extern "C" fn tatcell_small32_check_unit(cell: &Cell32, limit: &SmallLimit32, now: u32) -> Small32 {
        cell.small_check1(limit, now)
    }

    pub unsafe extern "C" fn tatcell_small32_reserve(
        cell: &Cell32,
        limit: &SmallLimit32,
        now: u32,
        cost: u32,
    ) -> Small32 {
        cell.small_reserve(limit, now, cost)
    }

    pub unsafe extern "C" fn tatcell_small32_idle(cell: &Cell32, limit: &SmallLimit32, now: u32) {
        cell.small_idle(limit, now);
    }

    pub unsafe extern "C" fn tatcell_small32_reset(cell: &Cell32) {
        cell.reset();
    }

    pub unsafe extern "C" fn tatcell_small_table_seed(table: &Head, seed: &[u8; 8]) {
        // SAFETY: the header demands a table made by its macro.
        unsafe { table.seed::<true>(seed) }
    }

    pub unsafe extern "C" fn tatcell_small_table_hash(table: &Head, key: *const u8, len: u32) -> u32 {
        // SAFETY: the header demands len readable bytes.
        table.hash(unsafe { core::slice::from_raw_parts(key, len as usize) }).unwrap_or(0)
    }

    pub unsafe extern "C" fn tatcell_small_table_check(
        table: &Head,
        now: u32,
        key: *const u8,
        len: u32,
        cost: u32,
    ) -> Small32 {
        // SAFETY: as above.
        match table.hash(unsafe { core::slice::from_raw_parts(key, len as usize) }) {
            // SAFETY: as above.
            Some(hash) => unsafe { table.check::<true>(now, hash, cost) },
            None => Small32::REFUSED,
        }
    }

    pub unsafe extern "C" fn tatcell_small_table_check_hash(
        table: &Head,
        now: u32,
        hash: u32,
        cost: u32,
    ) -> Small32 {
        // SAFETY: as above.
        unsafe { table.check::<true>(now, hash, cost) }
    }

    pub unsafe extern "C" fn tatcell_small_table_check_exclusive(
        table: &Head,
        now: u32,
        key: *const u8,
        len: u32,
        cost: u32,
    ) -> Small32 {
        // SAFETY: as above.
        match table.hash(unsafe { core::slice::from_raw_parts(key, len as usize) }) {
            // SAFETY: as above, and the header demands one caller at a time.
            Some(hash) => unsafe { table.check::<false>(now, hash, cost) },
            None => Small32::REFUSED,
        }
    }

    pub unsafe extern "C" fn tatcell_small_table_sweep(table: &Head, now: u32) {
        // SAFETY: as above.
        unsafe { table.sweep::<true>(now) }
    }

    pub unsafe extern "C" fn tatcell_small_limit_init(
        limit: *mut SmallLimit,
        units: u64,
        period: u64,
        burst: u64,
        max_delay: u64,
    ) -> i32 {
        match SmallLimit::shaped(units, period, burst, max_delay) {
            Ok(made) => {
                // SAFETY: the header demands a place for a limit; it need not hold one yet.
                unsafe { limit.write(made) };
                0
            }
            Err(e) => code(e),
        }
    }

    pub unsafe extern "C" fn tatcell_small32_limit_init(
        limit: *mut SmallLimit32,
        units: u64,
        period: u64,
        burst: u64,
        max_delay: u64,
    ) -> i32 {
        match SmallLimit32::shaped(units, period, burst, max_delay) {
            Ok(made) => {
                // SAFETY: as above.
                unsafe { limit.write(made) };
                0
            }
            Err(e) => code(e),
        }
    }

    pub unsafe extern "C" fn tatcell_small_charge(cell: &Cell, limit: &SmallLimit, now: u64, cost: u32) -> Small {
        cell.small_charge(limit, now, cost)
    }

    pub unsafe extern "C" fn tatcell_small_refund(
        cell: &Cell,
        limit: &SmallLimit,
        now: u64,
        then: u64,
        cost: u32,
    ) -> Small {
        cell.small_refund(limit, now, then, cost)
    }

    pub unsafe extern "C" fn tatcell_small_cancel(
        cell: &Cell,
        limit: &SmallLimit,
        now: u64,
        then: u64,
        wait: u64,
        cost: u32,
    ) -> Small {
        cell.small_cancel(limit, now, then, wait, cost)
    }

    pub unsafe extern "C" fn tatcell_small_debt(cell: &Cell, limit: &SmallLimit, now: u64) -> u64 {
        cell.debt(limit, now)
    }

    pub unsafe extern "C" fn tatcell_small_set_debt(cell: &Cell, limit: &SmallLimit, now: u64, ticks: u64) {
        cell.set_debt(limit, now, ticks);
    }

    pub unsafe extern "C" fn tatcell_small32_charge(
        cell: &Cell32,
        limit: &SmallLimit32,
        now: u32,
        cost: u32,
    ) -> Small32 {
        cell.small_charge(limit, now, cost)
    }

    pub unsafe extern "C" fn tatcell_small32_refund(
        cell: &Cell32,
        limit: &SmallLimit32,
        now: u32,
        then: u32,
        cost: u32,
    ) -> Small32 {
        cell.small_refund(limit, now, then, cost)
    }

    pub unsafe extern "C" fn tatcell_small32_cancel(
        cell: &Cell32,
        limit: &SmallLimit32,
        now: u32,
        then: u32,
        wait: u32,
        cost: u32,
    ) -> Small32 {
        cell.small_cancel(limit, now, then, wait, cost)
    }

    pub unsafe extern "C" fn tatcell_small32_debt(cell: &Cell32, limit: &SmallLimit32, now: u32) -> u32 {
        cell.debt(limit, now)
    }

    pub unsafe extern "C" fn tatcell_small32_set_debt(cell: &Cell32, limit: &SmallLimit32, now: u32, ticks: u32) {
        cell.set_debt(limit, now, ticks);
    }

    pub unsafe extern "C" fn tatcell_small_log(
        log: &SmallLog,
        limit: &SmallLimit32,
        now: u32,
        left_out: *mut u32,
    ) -> u32 {
        match log.check(limit, now) {
            Some(count) => {
                // SAFETY: the header demands a place for the count.
                unsafe { left_out.write(count) };
                1
            }
            None => 0,
        }
    }

    pub unsafe extern "C" fn tatcell_small_section_check() -> i32 {
        if section_works() { 0 } else { UNSUPPORTED }
    }
}

/// A library without std needs a panic handler to link, though nothing here can panic: a test checks that this handler
/// is not in the archive.
#[cfg(not(any(feature = "std", feature = "capi")))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

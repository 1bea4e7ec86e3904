//! One function for each form of a check, whose sizes tests/rust.sh compares.
#![no_std]

use tatcell::{log_limited, small_limit, small_limit32, Cell, Cell32, SmallLimit, SmallLimit32};

const LIMIT: SmallLimit = small_limit!(10 per 1.secs(), 1_000, burst 5);
const LIMIT32: SmallLimit32 = small_limit32!(10 per 1.secs(), 1_000, burst 5);
static IN_MEMORY: SmallLimit = LIMIT;
static IN_MEMORY32: SmallLimit32 = LIMIT32;
static CELL: Cell = Cell::new();
static CELL32: Cell32 = Cell32::new();

/// A limit in memory, 64 bits.
#[no_mangle]
pub extern "C" fn memory64(now: u64) -> bool {
    CELL.check_small(&IN_MEMORY, now, 1).passes()
}

/// A constant limit, 64 bits.
#[no_mangle]
pub extern "C" fn const64(now: u64) -> bool {
    CELL.check_const(LIMIT, now, 1).passes()
}

/// A limit in memory, 32 bits.
#[no_mangle]
pub extern "C" fn memory32(now: u32) -> bool {
    CELL32.check_small(&IN_MEMORY32, now, 1).passes()
}

/// A constant limit, 32 bits.
#[no_mangle]
pub extern "C" fn const32(now: u32) -> bool {
    CELL32.check_const(LIMIT32, now, 1).passes()
}

/// A limit that is made when the program runs, and used once.
#[no_mangle]
pub extern "C" fn made32(units: u32, period: u32, burst: u32) -> bool {
    let limit = SmallLimit32::new(units.into(), period.into(), burst.into());
    limit.is_ok_and(|limit| CELL32.check_small(&limit, 0, 1).passes())
}

/// A limited log line.
#[no_mangle]
pub extern "C" fn line(now: u32) -> u32 {
    log_limited!(now, 2 per 1.secs(), 1_000, burst 3).unwrap_or(u32::MAX)
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

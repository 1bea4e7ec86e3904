//! `tatcell_slip_*`: every n-th refusal is flagged for a cheap answer.

use crate::capi::codes::{TATCELL_NON_CONFORMING, TATCELL_PASS};
use crate::capi::pointers::contract::{args, inside, Plain};
use crate::cell::Slip;

/// Bytes of a tatcell_slip_t.
pub const TATCELL_SLIP_SIZE: usize = 8;
/// Alignment of a tatcell_slip_t.
pub const TATCELL_SLIP_ALIGN: usize = 8;

/// Counts refusals, so that every n-th one gets a cheap answer. A DNS server, for example, sends a truncated one
/// (TC=1): an honest client retries by TCP, and a client with a forged address gains nothing. All-zero memory
/// (static storage, TATCELL_SLIP_INIT) is a fresh counter, which flags the first refusal.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct tatcell_slip_t {
    /// Number of refusals so far. It may be read at any time.
    pub word: u64,
}

const _: () = assert!(size_of::<tatcell_slip_t>() == TATCELL_SLIP_SIZE);
const _: () = assert!(align_of::<tatcell_slip_t>() == TATCELL_SLIP_ALIGN);
const _: () = assert!(size_of::<Slip>() == TATCELL_SLIP_SIZE && align_of::<Slip>() <= TATCELL_SLIP_ALIGN);

// SAFETY: an atomic number.
unsafe impl Plain for Slip {}

const fn code(flagged: bool) -> i32 {
    if flagged {
        TATCELL_PASS
    } else {
        TATCELL_NON_CONFORMING
    }
}

/// Counts one refusal and reports whether it gets the cheap answer. Exactly one of any n refusals in a row does,
/// among all threads that share the counter.
///
/// @param slip not NULL.
/// @param n    one refusal in n gets the answer; 1 = every one; 0 = none, and none is counted. The same in all
///             calls.
/// @retval 0 send the cheap answer.
/// @retval TATCELL_NON_CONFORMING send nothing.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any number on one counter. Cost: one atomic addition, one division. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_slip_check(slip: *mut tatcell_slip_t, n: u32) -> i32 {
    args!(c, slip = c.input::<Slip>(inside(slip)));
    code(slip.check(n))
}

/// Counts one refusal and reports whether it gets the cheap answer, for a counter with one owner, such as a thread.
/// It equals tatcell_slip_check without atomic instructions.
///
/// @param slip not NULL; no other thread uses it during the call.
/// @param n    one refusal in n gets the answer, as for tatcell_slip_check.
/// @retval as tatcell_slip_check.
/// Thread: one at a time on one counter. Cost: one load, one store, one division. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_slip_check_exclusive(slip: *mut tatcell_slip_t, n: u32) -> i32 {
    args!(c, slip = c.owned(inside::<_, Slip>(slip).cast_mut()));
    code(slip.check_exclusive(n))
}

/// Returns sizeof(tatcell_slip_t) of the linked library, to compare with TATCELL_SLIP_SIZE. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_slip_size() -> usize {
    TATCELL_SLIP_SIZE
}

//! `tatcell_limit_spec_parse`: a limit from text.

use core::ffi::c_void;

use super::limit::tatcell_limit_spec_t;
use crate::capi::codes::{TATCELL_ERR_FREQUENCY, TATCELL_ERR_SYNTAX, TATCELL_ERR_TOO_LARGE, TATCELL_PASS};
use crate::capi::pointers::contract::args;
use crate::limit::{LimitSpec, ParseErrorKind};

/// Reads rate and burst of a specification from text, such as "10/s burst 20", "100r/m", "1.5MB/s burst 64kB" or
/// "5/15min".
///
/// The text is an amount of units, a slash and a time, and after that possibly "burst" and an amount. An amount may
/// have a prefix: k, M, G, T for powers of 1000, Ki, Mi, Gi, Ti for powers of 1024. A "B" or "r" after it is ignored.
/// A time is ns, us, ms, s, m (minute), h, d or w, or the name of one, with a number before it or not. The burst counts
/// the first unit, so it is one more than nginx's number. Without "burst" it is the amount of the rate, rounded up to
/// whole units: all units of a period may come at once. The rate is exact.
///
/// On success the fields units, period and burst are set; the others stay as they are. On error nothing is changed.
///
/// @param spec             started from TATCELL_LIMIT_SPEC_INIT; not NULL.
/// @param text             the limit; it need not end with a NUL. Not NULL.
/// @param length           its bytes.
/// @param ticks_per_second frequency of the clock that now is read from; not 0.
/// @param position         on TATCELL_ERR_SYNTAX and TATCELL_ERR_TOO_LARGE, the first byte that cannot be read, or
///                         length if something is missing at the end; NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_SIZE spec->size is not set.
/// @retval TATCELL_ERR_OPTION spec is of a newer header and sets a field that this library does not know.
/// @retval TATCELL_ERR_KEY_LENGTH length exceeds half of the address space.
/// @retval TATCELL_ERR_FREQUENCY ticks_per_second is 0.
/// @retval TATCELL_ERR_SYNTAX the text is no limit.
/// @retval TATCELL_ERR_TOO_LARGE a number of the text, or of the result, needs more than 64 bits.
/// Thread: one writer of spec. Cost: a few 128-bit divisions; O(length). Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_spec_parse(
    spec: *mut tatcell_limit_spec_t,
    text: *const c_void,
    length: usize,
    ticks_per_second: u64,
    position: *mut usize,
) -> i32 {
    args!(
        c,
        given = c.options(spec),
        out = c.report(spec),
        text = c.key(text, length),
        position = c.result_if(position),
    );
    let error = match LimitSpec::parse_bytes(text, ticks_per_second) {
        Ok(LimitSpec { units, period, burst, .. }) => {
            out.put(&tatcell_limit_spec_t { units, period, burst, ..given });
            return TATCELL_PASS;
        }
        Err(error) => error,
    };
    if error.kind == ParseErrorKind::Frequency {
        return TATCELL_ERR_FREQUENCY;
    }
    if let Some(position) = position {
        position.put(error.position);
    }
    match error.kind {
        ParseErrorKind::TooLarge => TATCELL_ERR_TOO_LARGE,
        _ => TATCELL_ERR_SYNTAX,
    }
}

//! `tatcell_table_options_fit`: what fits one table.

use super::options::tatcell_table_options_t;
use crate::capi::codes::{table_code, TATCELL_PASS};
use crate::capi::pointers::contract::{args, Grows};
use crate::table::FitPart;

/// culprit: the burst of a limit.
pub const TATCELL_FIT_BURST: u32 = 1;
/// culprit: its max_room.
pub const TATCELL_FIT_ROOM: u32 = 2;
/// culprit: its max_delay.
pub const TATCELL_FIT_DELAY: u32 = 3;
/// culprit: its max_debt.
pub const TATCELL_FIT_DEBT: u32 = 4;
/// culprit: its penalty.
pub const TATCELL_FIT_PENALTY: u32 = 5;
/// culprit: the skew of the options.
pub const TATCELL_FIT_SKEW: u32 = 6;
/// culprit: the window or half-life of a limit that counts.
pub const TATCELL_FIT_WINDOW: u32 = 7;
/// culprit: the largest count of such a limit.
pub const TATCELL_FIT_COUNT: u32 = 8;

const _: () = assert!(TATCELL_FIT_BURST == FitPart::Burst as u32);
const _: () = assert!(TATCELL_FIT_ROOM == FitPart::Room as u32);
const _: () = assert!(TATCELL_FIT_DELAY == FitPart::Delay as u32);
const _: () = assert!(TATCELL_FIT_DEBT == FitPart::Debt as u32);
const _: () = assert!(TATCELL_FIT_PENALTY == FitPart::Penalty as u32);
const _: () = assert!(TATCELL_FIT_SKEW == FitPart::Skew as u32);
const _: () = assert!(TATCELL_FIT_WINDOW == FitPart::Window as u32);
const _: () = assert!(TATCELL_FIT_COUNT == FitPart::Count as u32);

/// Bytes of a tatcell_table_fit_t in its first release.
pub const TATCELL_TABLE_FIT_MIN: usize = 32;

/// What fits one table. Start from TATCELL_TABLE_FIT_INIT.
#[repr(C)]
pub struct tatcell_table_fit_t {
    /// sizeof(tatcell_table_fit_t); never written.
    pub size: u32,
    /// The most tag bits with which the limits fit, 12..24. 0 if they do not fit with 12: use one table for each limit,
    /// and ask both in a chain (tatcell_chain_check).
    pub tag_bits: u32,
    /// The resolution of a table with that many tag bits: one q-unit is 2^-resolution ticks.
    pub resolution: i32,
    /// A TATCELL_FIT_ constant: the part that takes most of what is needed, if the limits do not fit with the options'
    /// tag bits. Make this one smaller. 0 if they fit.
    pub culprit: u32,
    /// The longest debt of the limits and the skew, in ticks. Unless the options set the skew, it is at least as long
    /// as the debt.
    pub needed: u64,
    /// The longest debt and skew together, in ticks, that a word with the options' tag bits holds.
    pub available: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_table_fit_t {
    const FIRST: usize = TATCELL_TABLE_FIT_MIN;
}
const _: () = assert!(size_of::<tatcell_table_fit_t>() == 4 * 4 + 2 * 8);

/// Reports whether the limits of these options fit one table, with how many tag bits, and which part is in the way if
/// not. Ask it after TATCELL_ERR_SPAN or TATCELL_ERR_UNITS.
///
/// @param options started from TATCELL_TABLE_OPTIONS_INIT; not NULL. The seed may be NULL.
/// @param fit     started from TATCELL_TABLE_FIT_INIT; not NULL.
/// @retval 0 done: fit->culprit is 0 if the limits fit.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval others as tatcell_table_init, for what more room in the word would not cure.
/// Thread: any. Cost: tries each number of tag bits, some thousand divisions. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_options_fit(
    options: *const tatcell_table_options_t,
    fit: *mut tatcell_table_fit_t,
) -> i32 {
    args!(
        c,
        out = c.report(fit),
        given = c.options(options),
        options = c.table_options(&given),
        made = options.fit().map_err(table_code),
    );
    out.put(&tatcell_table_fit_t {
        size: 0,
        tag_bits: made.tag_bits,
        resolution: made.resolution,
        culprit: made.culprit.map_or(0, |part| part as u32),
        needed: made.needed,
        available: made.available,
    });
    TATCELL_PASS
}

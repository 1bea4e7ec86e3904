//! `tatcell_cell_save`, `tatcell_cell_restore` and their forms for 32 bits: cells in files.

use super::cell::tatcell_cell_t;
use super::cell32::tatcell_cell32_t;
use crate::capi::codes::{image_code, TATCELL_PASS};
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, Out, Plain};
use crate::cell::image::{read, save};
use crate::cell::{ImageError, CELL_IMAGE_WORDS};

/// Bytes of a tatcell_cell_image_t.
pub const TATCELL_CELL_IMAGE_SIZE: usize = 40;

/// A saved cell, for a file. All-zero memory is the image of a fresh cell.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct tatcell_cell_image_t {
    /// Mark and version, state word, mark of the limit, clock at the save, check. In the byte order of the machine.
    pub word: [u64; 5],
}

const _: () = assert!(size_of::<tatcell_cell_image_t>() == TATCELL_CELL_IMAGE_SIZE);
const _: () = assert!(CELL_IMAGE_WORDS == 5);

// SAFETY: numbers without padding (asserted).
unsafe impl Plain for tatcell_cell_image_t {}

/// Writes the cell of an image, and the clock at its save. Returns the code.
fn finish(made: Result<(u64, u64), ImageError>, saved: Option<Out<'_, u64>>, put: impl FnOnce(u64)) -> i32 {
    let (code, clock) = match made {
        Ok((word, clock)) => {
            put(word);
            (TATCELL_PASS, clock)
        }
        Err(e @ ImageError::OtherLimit { saved }) => (image_code(e), saved),
        Err(e) => return image_code(e),
    };
    if let Some(saved) = saved {
        saved.put(clock);
    }
    code
}

/// Makes the image of a cell, to be written to a file.
///
/// Write the image to a new file, sync it and rename it over the old one, or keep it within one sector of a disk:
/// then a program that is killed leaves the old image or the new one.
///
/// @param cell  not NULL.
/// @param limit the limit that the cell is used with; 64 bits; not NULL.
/// @param now   the caller's clock, ticks.
/// @param image filled in; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_LIMIT limit is not initialised for 64-bit cells.
/// Thread: any number on one cell. Cost: one load, some 50 instructions. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell_save(
    cell: *const tatcell_cell_t,
    limit: *const tatcell_limit_t,
    now: u64,
    image: *mut tatcell_cell_image_t,
) -> i32 {
    args!(c, cell = c.cell(cell), limit = c.limit64(limit), out = c.result(image));
    out.put(tatcell_cell_image_t { word: save(cell.word(), &limit.0, now) });
    TATCELL_PASS
}

/// Makes a cell from its image.
///
/// The limit must be that of the save, in all that decides what a word means: rate, burst, skew, windows, and the
/// options that lengthen the horizon. For another plan, restore under the limit of the save, then call
/// tatcell_cell_change. On error the cell stays as it is.
///
/// @param cell   overwritten; nobody else may use it meanwhile. Not NULL.
/// @param limit  the limit of the save; 64 bits; not NULL.
/// @param image  not NULL. Zeros give a fresh cell.
/// @param offset ticks: what the new clock reads less what the old one would read at the same moment. 0 for a wall
///               clock, or as long as the clock runs on. The time in between counts as idle time.
/// @param saved  gets the clock at the save, 0 for zeros; also with TATCELL_ERR_OTHER_LIMIT, since the window of
///               another limit may be over. Compare it with the new clock before you trust either. NULL = not
///               wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_IMAGE the words are no image of a cell, or damaged.
/// @retval TATCELL_ERR_VERSION another version of the library saved it, in a form that this one does not know.
/// @retval TATCELL_ERR_OTHER_LIMIT the cell was saved under another limit.
/// @retval TATCELL_ERR_PHASE the limit has aligned windows, and offset is not a whole number of windows.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_LIMIT limit is not initialised for 64-bit cells.
/// Thread: one on the cell. Cost: some 50 instructions. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell_restore(
    cell: *mut tatcell_cell_t,
    limit: *const tatcell_limit_t,
    image: *const tatcell_cell_image_t,
    offset: i64,
    saved: *mut u64,
) -> i32 {
    args!(
        c,
        out = c.result(cell),
        limit = c.limit64(limit),
        image = c.input(image),
        saved = c.result_if(saved)
    );
    finish(read(&image.word, &limit.0, offset, u64::MAX), saved, |word| out.put(tatcell_cell_t { word }))
}

/// As tatcell_cell_save, for a 32-bit cell.
///
/// @param cell  not NULL.
/// @param limit the limit that the cell is used with; 32 bits; not NULL.
/// @param now   the caller's clock, ticks.
/// @param image filled in; not NULL.
/// @retval as tatcell_cell_save.
/// Thread: any number on one cell. Cost: as tatcell_cell_save. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell32_save(
    cell: *const tatcell_cell32_t,
    limit: *const tatcell_limit_t,
    now: u64,
    image: *mut tatcell_cell_image_t,
) -> i32 {
    args!(c, cell = c.cell32(cell), limit = c.limit32(limit), out = c.result(image));
    out.put(tatcell_cell_image_t { word: save(cell.word().into(), &limit.0, now) });
    TATCELL_PASS
}

/// As tatcell_cell_restore, for a 32-bit cell.
///
/// @param cell   overwritten; nobody else may use it meanwhile. Not NULL.
/// @param limit  the limit of the save; 32 bits; not NULL.
/// @param image  not NULL. Zeros give a fresh cell.
/// @param offset ticks, as in tatcell_cell_restore.
/// @param saved  gets the clock at the save, as in tatcell_cell_restore; NULL = not wanted.
/// @retval as tatcell_cell_restore.
/// Thread: one on the cell. Cost: as tatcell_cell_restore. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_cell32_restore(
    cell: *mut tatcell_cell32_t,
    limit: *const tatcell_limit_t,
    image: *const tatcell_cell_image_t,
    offset: i64,
    saved: *mut u64,
) -> i32 {
    args!(
        c,
        out = c.result(cell),
        limit = c.limit32(limit),
        image = c.input(image),
        saved = c.result_if(saved)
    );
    finish(read(&image.word, &limit.0, offset, u32::MAX.into()), saved, |word| {
        out.put(tatcell_cell32_t { word: word as u32 })
    })
}

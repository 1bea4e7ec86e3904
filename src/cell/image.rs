//! The image of a cell: what a program writes to a file so that a count or a debt survives the process.
//!
//! ```text
//!  word 0   "tatCel" 48 | version 16
//!  word 1   the state word
//!  word 2   mark of the limit: of all numbers that decide what the state word means
//!  word 3   the clock at the save, ticks
//!  word 4   check: mixes words 0 to 3
//! ```
//!
//! Words are in the byte order of the machine. An image of zeros is that of a fresh cell, as zeros are everywhere. The
//! check finds files that were written in part or damaged, and no forgery: keep images where only the program writes.
//!
//! Not a way to change a limit: restore under the limit of the save, and then change to the new one.

use super::cell::{Cell, Cell32, ExclusiveCell};
use crate::limit::params::{mix, Params, FLAG_ALIGNED, FLAG_COUNTED};
use crate::limit::{Limit, Limit32};
use crate::sync::{AtomicU32, AtomicU64};

/// The number of words of a [`CellImage`].
///
/// ```
/// use tatcell::{CellImage, CELL_IMAGE_WORDS};
/// assert_eq!(size_of::<CellImage>(), 8 * CELL_IMAGE_WORDS); // the bytes of a file that holds one cell
/// ```
pub const CELL_IMAGE_WORDS: usize = 5;

/// Holds a saved cell: words that a program may write to a file. Zeros are a fresh cell.
///
/// ```
/// use tatcell::{Cell, CellImage, Limit};
/// let (cell, limit) = (Cell::new(), Limit::new(1, 1_000, 5)?);
/// assert!(cell.check(&limit, 50_000, 5).passes());
/// let image: CellImage = cell.save(&limit, 50_000);
/// let bytes: Vec<u8> = image.iter().flat_map(|word| word.to_ne_bytes()).collect(); // to a file
/// assert_eq!(bytes.len(), 40);
/// # Ok::<(), tatcell::LimitError>(())
/// ```
pub type CellImage = [u64; CELL_IMAGE_WORDS];

/// "tatCel" in the high 48 bits, and the version of the image and of all state words.
const FIRST_WORD: u64 = 0x7461_7443_656c_0001;

/// Says why an image does not give a cell.
///
/// ```
/// use tatcell::{Cell, ImageError, Limit};
/// let (cell, limit) = (Cell::new(), Limit::new(1, 1_000, 5)?);
/// assert!(cell.check(&limit, 50_000, 5).passes());
/// let mut image = cell.save(&limit, 50_000);
/// image[1] ^= 1;
/// assert_eq!(Cell::restore(&image, &limit, 0).unwrap_err(), ImageError::Damaged);
/// # Ok::<(), tatcell::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageError {
    /// The words are not the image of a cell, or some of them have changed since the save.
    Damaged,
    /// Another version of the library saved the cell, and this one does not know the form of its image.
    BadVersion,
    /// The cell was saved under another limit. Restore it under that one, and change it to the new one.
    OtherLimit {
        /// The clock at the save: a count of an earlier window may be over by now.
        saved: u64,
    },
    /// The limit has aligned windows, and the offset is not a whole number of them: the windows would start at other
    /// times.
    BadOffset,
}

impl core::fmt::Display for ImageError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            ImageError::Damaged => "the words are no image of a cell, or damaged: use an older file",
            ImageError::BadVersion => "another version of the library saved the cell",
            ImageError::OtherLimit { .. } => {
                "the cell was saved under another limit: restore under that one, then change"
            }
            ImageError::BadOffset => "the offset of aligned windows must be a whole number of windows",
        })
    }
}

impl core::error::Error for ImageError {}

fn mixed(words: &[u64]) -> u64 {
    words.iter().fold(0, |state, word| mix(state, *word))
}

/// Returns the mark of a limit. Limits with one mark give every word the same meaning, at every time.
fn mark(p: &Params) -> u64 {
    let flags = p.flags & (FLAG_ALIGNED | FLAG_COUNTED);
    let small = u64::from_le_bytes([p.shl, p.shr, flags, p.bits, p.algorithm, 0, 0, 0]);
    // The extra numbers of GCRA are a delay and a penalty, which only lengthen the horizon.
    let [a, b] = if flags == 0 { [0; 2] } else { p.extra };
    mixed(&[small, p.units, p.period, p.t_q, p.burst_q, p.horizon_q, p.window_q, a, b])
}

/// Makes the image of a state word.
pub(crate) fn save(word: u64, p: &Params, now: u64) -> CellImage {
    let mut image = [FIRST_WORD, word, mark(p), now, 0];
    image[4] = mixed(&[image[0], image[1], image[2], image[3]]);
    image
}

/// Returns the state word of an image on a clock that is `offset` ticks ahead, and the clock at the save.
pub(crate) fn read(image: &CellImage, p: &Params, offset: i64, mask: u64) -> Result<(u64, u64), ImageError> {
    let [first, word, limit, saved, check] = *image;
    if first | word | limit | saved | check == 0 {
        return Ok((0, 0));
    }
    if first >> 16 != FIRST_WORD >> 16 || check != mixed(&[first, word, limit, saved]) {
        return Err(ImageError::Damaged);
    }
    if first != FIRST_WORD {
        return Err(ImageError::BadVersion);
    }
    if limit != mark(p) {
        return Err(ImageError::OtherLimit { saved });
    }
    let window = if p.flags & FLAG_ALIGNED == 0 { 1 } else { p.period };
    if offset.unsigned_abs().checked_rem(window) != Some(0) {
        return Err(ImageError::BadOffset);
    }
    // Rounded up, because rounding must not shorten a debt. A word that becomes 0 would be a fresh cell.
    let later = (-(-(offset as i128) >> p.shr) << p.shl) as u64;
    let moved = word.wrapping_add(later) & mask;
    Ok((if word == 0 { 0 } else { moved | (moved == 0) as u64 }, saved))
}

macro_rules! images {
    ($cell:ident, $limit:ident, $word:ty, $made:expr) => {
        impl $cell {
            /// Returns the image of the cell, to be written to a file.
            ///
            /// `limit` is the limit that the cell is used with, and `now` the caller's clock in ticks. Write the image
            /// to a new file, sync it, and rename it over the old one, or keep it within one sector of a disk: then a
            /// program that is killed leaves the old image or the new one.
            ///
            /// # Concurrency
            /// Any number of callers; one load. Requests that are decided after it are not in the image.
            pub fn save(&self, limit: &$limit, now: u64) -> CellImage {
                save(self.word().into(), &limit.0, now)
            }

            /// Makes a cell from its image; returns it with the clock at the save.
            ///
            /// `limit` must be that of the save, in everything that decides what the word means: rate, burst, skew,
            /// windows, and the options that lengthen the horizon. `offset` is what the new clock reads minus what the
            /// old clock would read at the same moment: 0 for a wall clock. The time in between counts as idle time.
            ///
            /// Compare the clock at the save with the new clock before you trust either: see the pitfalls.
            ///
            /// # Errors
            /// [`ImageError`] names what does not fit. A fresh cell comes only from zeros.
            ///
            /// ```
            /// use tatcell::{Cell, ImageError, Limit, Outcome};
            /// let limit = Limit::new(1, 1_000, 5).unwrap(); // ticks are milliseconds of a wall clock
            /// let cell = Cell::new();
            /// assert_eq!(cell.check(&limit, 50_000, 5), Outcome::Conforming);
            /// let image = cell.save(&limit, 50_000); // to a file
            ///
            /// let (cell, saved) = Cell::restore(&image, &limit, 0).unwrap();
            /// assert_eq!(saved, 50_000);
            /// assert_eq!(cell.check(&limit, 50_400, 1), Outcome::NonConforming { retry_after: 600 });
            /// let faster = Limit::new(2, 1_000, 5).unwrap();
            /// assert_eq!(Cell::restore(&image, &faster, 0).unwrap_err(), ImageError::OtherLimit { saved: 50_000 });
            /// ```
            pub fn restore(
                image: &CellImage,
                limit: &$limit,
                offset: i64,
            ) -> Result<($cell, u64), ImageError> {
                let (word, saved) = read(image, &limit.0, offset, <$word>::MAX as u64)?;
                Ok(($made(word as $word), saved))
            }
        }
    };
}

images!(Cell, Limit, u64, |word| Cell { word: AtomicU64::new(word) });
images!(ExclusiveCell, Limit, u64, ExclusiveCell::from_word);
images!(Cell32, Limit32, u32, |word| Cell32 { word: AtomicU32::new(word) });

#[cfg(all(test, not(tatcell_loom)))]
#[path = "image_tests.rs"]
mod tests;

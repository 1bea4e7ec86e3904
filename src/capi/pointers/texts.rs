//! Texts from C, and buffers for texts: cut where they end, with the length that was needed.

use core::ffi::{c_char, c_void};

use super::contract::{placed, Contract, Grows};
use super::places::Span;
use crate::capi::codes::{TATCELL_ERR_SIZE, TATCELL_ERR_TOO_LARGE};

/// The most bytes of a text, or of other bytes, that a field takes.
pub(in crate::capi) const MAX_TEXT: usize = 1024;

impl<'a> Contract<'a> {
    /// Returns a text of printable ASCII, or `None` if it has another character.
    ///
    /// Does not call `strlen`: the library has no C library below it.
    pub(in crate::capi) fn printable(self, p: *const c_char) -> Result<Option<&'a str>, i32> {
        let p = p.cast::<u8>();
        placed(p)?;
        for length in 0..=MAX_TEXT {
            // The text has not ended before this byte, so the byte is there.
            match *self.input(p.wrapping_add(length))? {
                0x20..=0x7e => {}
                0 => return Ok(core::str::from_utf8(self.slice(p, length)?).ok()),
                _ => return Ok(None),
            }
        }
        Err(TATCELL_ERR_TOO_LARGE)
    }

    /// Returns a text of this length, which may have any character; 0: as [`printable`](Self::printable), up to a NUL.
    pub(in crate::capi) fn text_of(self, p: *const c_char, length: usize) -> Result<Option<&'a str>, i32> {
        if length == 0 {
            return self.printable(p);
        }
        placed(p)?;
        Ok(self.bytes_if(p.cast(), length)?.and_then(|text| core::str::from_utf8(text).ok()))
    }

    /// Returns bytes of any kind, at most [`MAX_TEXT`]; NULL is `None`.
    pub(in crate::capi) fn bytes_if(self, p: *const c_void, length: usize) -> Result<Option<&'a [u8]>, i32> {
        if p.is_null() {
            return Ok(None);
        }
        if length > MAX_TEXT {
            return Err(TATCELL_ERR_TOO_LARGE);
        }
        self.key(p, length).map(Some)
    }

    /// Returns element `i` of an array of option structures, each of the size that the first one says it has.
    pub(in crate::capi) fn nth_options<T: Grows>(self, first: *const T, i: usize) -> Result<(T, Span), i32> {
        let stride = self.size_of_it(first)?;
        let p = first.wrapping_byte_add(i.wrapping_mul(stride));
        if self.size_of_it(p)? != stride {
            return Err(TATCELL_ERR_SIZE);
        }
        Ok((self.options(p)?, Span::bytes(p, stride)))
    }

    /// Returns a buffer for a text and its NUL; NULL only if it has no bytes. What is read after `put` must lie outside
    /// it.
    pub(in crate::capi) fn room(self, p: *mut c_char, bytes: usize) -> Result<Room<'a>, i32> {
        if bytes == 0 {
            return Ok(Room { to: &mut [], length: 0 });
        }
        Ok(Room { to: self.buffer(p.cast(), bytes)?, length: 0 })
    }
}

/// A buffer for a text. What does not fit is cut, and counted.
pub(in crate::capi) struct Room<'a> {
    to: &'a mut [u8],
    length: usize,
}

impl Room<'_> {
    pub(in crate::capi) fn span(&self) -> Span {
        Span::of(self.to.as_ptr(), self.to.len())
    }

    /// Adds a text, or as much of it as fits.
    pub(in crate::capi) fn put(&mut self, text: &str) {
        let last = self.to.len().saturating_sub(1);
        if let Some(free) = self.to.get_mut(self.length..last) {
            free.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte);
        }
        self.length = self.length.saturating_add(text.len());
    }

    /// Ends the text and returns its whole length.
    pub(in crate::capi) fn end(self) -> usize {
        let last = self.length.min(self.to.len().saturating_sub(1));
        if let Some(end) = self.to.get_mut(last) {
            *end = 0;
        }
        self.length
    }
}

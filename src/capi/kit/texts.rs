//! Texts that C brings, and buffers that get one: cut where they end, with the length that was needed.

use core::ffi::{c_char, c_void};

use super::{key, options, size_of_it, Grows, Span};
use crate::capi::codes::{TATCELL_ERR_NULL, TATCELL_ERR_SIZE, TATCELL_ERR_TOO_LARGE};

/// Longest text and longest bytes that a field takes.
pub(in crate::capi) const MAX_TEXT: usize = 1024;

/// A text of printable ASCII; None where it has another character.
///
/// No `strlen`: the library has no C library below it.
///
/// # Safety
/// The contract; it must end.
pub(in crate::capi) unsafe fn printable<'a>(p: *const c_char) -> Result<Option<&'a str>, i32> {
    if p.is_null() {
        return Err(TATCELL_ERR_NULL);
    }
    for length in 0..=MAX_TEXT {
        // SAFETY: the text has not ended before this byte; the contract.
        match unsafe { p.cast::<u8>().wrapping_add(length).read() } {
            0x20..=0x7e => {}
            0 => {
                // SAFETY: so many bytes are there, and all of them are ASCII.
                let text =
                    unsafe { core::str::from_utf8_unchecked(core::slice::from_raw_parts(p.cast(), length)) };
                return Ok(Some(text));
            }
            _ => return Ok(None),
        }
    }
    Err(TATCELL_ERR_TOO_LARGE)
}

/// Bytes of any kind, at most [`MAX_TEXT`]; NULL is None.
///
/// # Safety
/// The contract.
pub(in crate::capi) unsafe fn bytes_if<'a>(p: *const c_void, length: usize) -> Result<Option<&'a [u8]>, i32> {
    if p.is_null() {
        return Ok(None);
    }
    if length > MAX_TEXT {
        return Err(TATCELL_ERR_TOO_LARGE);
    }
    // SAFETY: passed on.
    unsafe { key(p, length) }.map(Some)
}

/// Number `i` of an array of structures of options, each of the size that the first one says it has.
///
/// # Safety
/// The contract: more than `i` structures.
pub(in crate::capi) unsafe fn nth_options<T: Grows>(first: *const T, i: usize) -> Result<(T, Span), i32> {
    // SAFETY: passed on; the first one is there, and the others lie behind it.
    unsafe {
        let stride = size_of_it(first)?;
        let p = first.wrapping_byte_add(i.wrapping_mul(stride));
        if size_of_it(p)? != stride {
            return Err(TATCELL_ERR_SIZE);
        }
        Ok((options(p)?, Span::bytes(p, stride)))
    }
}

/// A buffer that gets a text. What does not fit is cut, and counted.
pub(in crate::capi) struct Room {
    to: *mut u8,
    bytes: usize,
    length: usize,
}

/// A buffer for a text and its NUL; NULL only where it has no bytes.
///
/// # Safety
/// The contract; nothing that is read after the first text may overlap it.
pub(in crate::capi) unsafe fn room(p: *mut c_char, bytes: usize) -> Result<Room, i32> {
    if p.is_null() && bytes != 0 {
        return Err(TATCELL_ERR_NULL);
    }
    if bytes > isize::MAX as usize {
        return Err(TATCELL_ERR_TOO_LARGE);
    }
    Ok(Room { to: p.cast(), bytes, length: 0 })
}

impl Room {
    pub(in crate::capi) fn span(&self) -> Span {
        Span::bytes(self.to, self.bytes)
    }

    /// Adds a text, or what fits of it.
    pub(in crate::capi) fn put(&mut self, text: &str) {
        let free = self.bytes.saturating_sub(1).saturating_sub(self.length);
        let count = text.len().min(free);
        if count != 0 {
            // SAFETY: `room` checked the buffer, and so many bytes are free behind what it holds; the contract.
            unsafe { self.to.add(self.length).copy_from_nonoverlapping(text.as_ptr(), count) };
        }
        self.length = self.length.saturating_add(text.len());
    }

    /// Ends the text and gives its whole length.
    pub(in crate::capi) fn end(self) -> usize {
        if let Some(last) = self.bytes.checked_sub(1) {
            // SAFETY: as `put`; this byte is the last one, or lies before it.
            unsafe { self.to.add(self.length.min(last)).write(0) };
        }
        self.length
    }
}

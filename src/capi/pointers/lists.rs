//! The lists of a burst: rows of results, pointers, and keys in any form.

use core::ffi::c_void;

use super::contract::{good_size, placed, Contract, Grows, Plain, Report};
use super::places::{Span, Written};
use crate::capi::codes::{TATCELL_ERR_COUNT, TATCELL_ERR_KEY_LENGTH, TATCELL_ERR_OPTION};
use crate::table::Keys;

impl<'a> Contract<'a> {
    /// Returns places for the structures of a burst; NULL means "not wanted".
    pub(in crate::capi) fn rows<T: Grows>(
        self,
        p: *mut T,
        stride: u32,
        count: usize,
    ) -> Result<Option<Rows<'a, T>>, i32> {
        if p.is_null() {
            return Ok(None);
        }
        placed(p)?;
        Ok(Some(Rows { first: p, stride: good_size::<T>(stride as usize)?, count, c: self }))
    }

    /// Returns options where they lie, if their size is that of this release; else `None`.
    #[inline(always)]
    pub(in crate::capi) fn options_in_place<T: Grows>(self, p: *const T) -> Option<&'a T> {
        let size = *self.input(p.cast::<u32>()).ok()? as usize;
        if size == size_of::<T>() {
            self.input(p).ok()
        } else {
            None
        }
    }

    /// Returns options that lie `stride` bytes apart: that is the size of each, whatever it says.
    pub(in crate::capi) fn strided<T: Grows>(
        self,
        first: *const T,
        stride: u32,
        count: usize,
    ) -> Result<Strided<'a, T>, i32> {
        placed(first)?;
        Ok(Strided { first, stride: good_size::<T>(stride as usize)?, count, c: self })
    }

    /// Returns an array of pointers to objects that are only read, none NULL or misaligned; NULL only if it is empty.
    pub(in crate::capi) fn inputs<T: Plain>(
        self,
        p: *const *const T,
        count: usize,
    ) -> Result<&'a [&'a T], i32> {
        let each = self.array(p, count)?;
        each.iter().try_for_each(|&p| placed(p))?;
        // SAFETY: an array of as many pointers, none of them NULL or misaligned, and any bytes are a T; the contract:
        // valid, quiet.
        Ok(unsafe { core::slice::from_raw_parts(each.as_ptr().cast(), each.len()) })
    }

    /// Returns the keys that a burst names; `count` is not 0. A stride that no address can span is out of range.
    pub(in crate::capi) fn keys(
        self,
        (first, stride): (*const c_void, i64),
        each: *const *const c_void,
        length: usize,
        lengths: *const usize,
        count: usize,
    ) -> Result<KeyList<'a>, i32> {
        let place = if each.is_null() {
            placed(first.cast::<u8>())?;
            let stride = isize::try_from(stride).map_err(|_| TATCELL_ERR_OPTION)?;
            KeyPlace::Strided(first.cast(), stride)
        } else {
            let each = self.array(each, count)?;
            each.iter().try_for_each(|&p| placed(p.cast::<u8>()))?;
            KeyPlace::Each(each)
        };
        let lengths = if lengths.is_null() { &[] } else { self.array(lengths, count)? };
        if length > isize::MAX as usize || lengths.iter().any(|&length| length > isize::MAX as usize) {
            return Err(TATCELL_ERR_KEY_LENGTH);
        }
        Ok(KeyList { place, length, lengths, c: self })
    }
}

/// Places for the structures of a burst, each `stride` bytes after the one before.
#[derive(Clone, Copy)]
pub(in crate::capi) struct Rows<'a, T> {
    first: *mut T,
    stride: usize,
    count: usize,
    c: Contract<'a>,
}

impl<T: Grows> Rows<'_, T> {
    /// Writes structure i, except for its size.
    pub(in crate::capi) fn put(self, i: usize, value: &T) {
        if i < self.count {
            let to = self.first.wrapping_byte_add(i.wrapping_mul(self.stride));
            Report { to, bytes: self.stride.min(size_of::<T>()), c: self.c }.put(value);
        }
    }

    pub(in crate::capi) fn span(self) -> Span {
        Span::bytes(self.first, self.count.wrapping_mul(self.stride))
    }
}

/// Options that lie one behind the other.
pub(in crate::capi) struct Strided<'a, T> {
    first: *const T,
    stride: usize,
    count: usize,
    c: Contract<'a>,
}

impl<T: Grows> Strided<'_, T> {
    /// Returns what the library knows of structure i. What it does not know must be 0.
    pub(in crate::capi) fn get(&self, i: usize) -> Result<T, i32> {
        if i >= self.count {
            return Err(TATCELL_ERR_COUNT);
        }
        let p = self.first.wrapping_byte_add(i.wrapping_mul(self.stride));
        self.c.nothing_unknown_in(p, self.stride)?;
        self.c.known_of(p, self.stride)
    }

    pub(in crate::capi) fn span(&self) -> Span {
        Span::bytes(self.first, self.count.wrapping_mul(self.stride))
    }
}

/// The keys of a burst, in place.
#[derive(Clone, Copy)]
pub(in crate::capi) struct KeyList<'a> {
    place: KeyPlace<'a>,
    /// Bytes of each key, unless `lengths` has them one by one.
    length: usize,
    lengths: &'a [usize],
    c: Contract<'a>,
}

#[derive(Clone, Copy)]
enum KeyPlace<'a> {
    /// Key i lies i * stride bytes behind the first.
    Strided(*const u8, isize),
    /// Each key has its own pointer, none of them NULL.
    Each(&'a [*const c_void]),
}

impl KeyList<'_> {
    fn start(&self, i: usize) -> *const u8 {
        match self.place {
            KeyPlace::Strided(first, stride) => first.wrapping_byte_offset((i as isize).wrapping_mul(stride)),
            KeyPlace::Each(each) => {
                each.get(i).copied().unwrap_or_else(|| impossible!(core::ptr::null())).cast()
            }
        }
    }

    fn length_of(&self, i: usize) -> usize {
        if self.lengths.is_empty() {
            return self.length;
        }
        // No key has this length, so the call refuses it.
        self.lengths.get(i).copied().unwrap_or_else(|| impossible!(usize::MAX))
    }

    /// Refuses `count` keys that overlap what is written. The bytes between two keys may overlap it.
    #[inline(always)]
    pub(in crate::capi) fn apart_from(&self, written: &Written, count: usize) -> Result<(), i32> {
        // Tests first the span from the lowest to the highest of both ends: most often nothing else lies there.
        if matches!(self.place, KeyPlace::Strided(..)) && self.lengths.is_empty() {
            let (a, b) = (self.start(0), self.start(count.wrapping_sub(1)));
            let (low, high) = if a.addr() < b.addr() { (a, b) } else { (b, a) };
            let bytes = high.addr().wrapping_sub(low.addr()).saturating_add(self.length);
            if written.apart(Span::bytes(low, bytes)).is_ok() {
                return Ok(());
            }
        }
        (0..count).try_for_each(|i| written.apart(Span::bytes(self.start(i), self.length_of(i))))
    }
}

impl Keys for KeyList<'_> {
    fn reader<const N: usize>(&self) -> Option<impl Fn(usize) -> [u8; N] + Copy> {
        match self.place {
            KeyPlace::Strided(first, stride) if N == self.length && self.lengths.is_empty() => {
                Some(move |i: usize| {
                    let key = first.wrapping_byte_offset((i as isize).wrapping_mul(stride));
                    // SAFETY: key i has N bytes, and bytes have no alignment; the contract: valid, quiet.
                    unsafe { key.cast::<[u8; N]>().read() }
                })
            }
            _ => None,
        }
    }

    fn bytes(&self, i: usize) -> Option<&[u8]> {
        self.c.slice(self.start(i), self.length_of(i)).ok()
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;
    use crate::impossible::tests::answered;
    use crate::limit::LimitSpec;
    use crate::table::{Line, Table, TableError, TableOptions};

    fn contract(frame: &()) -> Contract<'_> {
        // SAFETY: the contract, which these tests keep.
        unsafe { Contract::of(frame) }
    }

    /// Every caller has as many places as keys. With one more, the place gets no hash, least of all the empty key's.
    #[test]
    fn a_place_without_a_key_refuses_the_burst() -> Result<(), TableError> {
        let memory = [const { Line::EMPTY }; 4];
        let table = Table::init(&memory, &TableOptions::new(LimitSpec::new(1, 1_000, 8)).seed([7; 16]))?;
        let (frame, key) = ((), b"key");
        let c = contract(&frame);
        let (each, lengths) = ([key.as_ptr().cast(); 2], [3; 2]);
        let of = |lengths: &[usize], count| {
            let lengths = if lengths.is_empty() { core::ptr::null() } else { lengths.as_ptr() };
            c.keys((core::ptr::null(), 0), each.as_ptr(), 3, lengths, count).map_err(|_| TableError::TooSmall)
        };
        for list in [of(&[], 2)?, of(&lengths, 2)?, KeyList { lengths: &lengths[..1], ..of(&[], 2)? }] {
            let places = if list.lengths.len() == 1 { 2 } else { 3 };
            let mut hashes = [0; 3];
            let made = answered(|| table.hash_keys(&mut hashes[..places], &list));
            assert_eq!(made, Err(TableError::TooManyKeys));
            assert_eq!((hashes[0], hashes[places - 1]), (table.hash(key)?, 0));
        }
        Ok(())
    }

    /// An address of 32 bits cannot span some of them. Cut to 32 bits, 2^32 + 3 would be a stride of 3.
    #[test]
    fn a_stride_is_taken_whole_or_refused() {
        let (frame, keys) = ((), *b"firstother");
        let c = contract(&frame);
        let (first, none) = (keys.as_ptr(), core::ptr::null());
        for stride in [0, 5, -5, 1 << 31, -(1 << 31) - 1, (1 << 32) + 3, i64::MAX, i64::MIN] {
            let list = c.keys((first.cast(), stride), core::ptr::null(), 5, none, 2);
            let wanted = isize::try_from(stride).map(|stride| first.wrapping_byte_offset(stride));
            assert_eq!(list.map(|list| list.start(1)), wanted.map_err(|_| TATCELL_ERR_OPTION), "{stride}");
            // Where each key has its own pointer, the stride is not read.
            let each = [first.cast(); 2];
            assert!(c.keys((none.cast(), stride), each.as_ptr(), 5, none, 2).is_ok(), "{stride}");
        }
    }
}

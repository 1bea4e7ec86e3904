//! The lists of a burst: rows of results, pointers, and keys in any form.

use core::ffi::c_void;
use core::marker::PhantomData;

use super::{array, good_size, known_of, nothing_unknown_in, placed, Grows, Report, Span, Written};
use crate::capi::codes::TATCELL_ERR_KEY_LENGTH;
use crate::table::Keys;

/// Places for the structures of a burst, each `stride` bytes after the one before.
#[derive(Clone, Copy)]
pub(in crate::capi) struct Rows<T> {
    first: *mut T,
    stride: usize,
    count: usize,
}

/// # Safety
/// The contract: `count` structures, `stride` bytes apart.
pub(in crate::capi) unsafe fn rows<T: Grows>(
    p: *mut T,
    stride: u32,
    count: usize,
) -> Result<Option<Rows<T>>, i32> {
    if p.is_null() {
        return Ok(None);
    }
    placed(p)?;
    Ok(Some(Rows { first: p, stride: good_size::<T>(stride as usize)?, count }))
}

impl<T: Grows> Rows<T> {
    /// Writes one of them, but for its size.
    pub(in crate::capi) fn put(self, i: usize, value: &T) {
        if i < self.count {
            let to = self.first.wrapping_byte_add(i.wrapping_mul(self.stride));
            Report { to, bytes: self.stride.min(size_of::<T>()) }.put(value);
        }
    }

    pub(in crate::capi) fn span(self) -> Span {
        Span::bytes(self.first, self.count.wrapping_mul(self.stride))
    }
}

/// Structures of options that are read, each `stride` bytes after the one before; their own sizes are not.
pub(in crate::capi) struct Strided<T> {
    first: *const T,
    stride: usize,
    count: usize,
}

/// # Safety
/// The contract: `count` structures, `stride` bytes apart.
pub(in crate::capi) unsafe fn strided<T: Grows>(
    p: *const T,
    stride: u32,
    count: usize,
) -> Result<Strided<T>, i32> {
    placed(p)?;
    Ok(Strided { first: p, stride: good_size::<T>(stride as usize)?, count })
}

impl<T: Grows> Strided<T> {
    /// What the library knows of structure i; what it does not know must be 0.
    ///
    /// # Safety
    /// The contract of [`strided`]; i is below `count`.
    pub(in crate::capi) unsafe fn get(&self, i: usize) -> Result<T, i32> {
        let at = self.first.wrapping_byte_add(i.wrapping_mul(self.stride));
        // SAFETY: structure i, of `stride` bytes.
        unsafe { nothing_unknown_in(at, self.stride).map(|()| known_of(at, self.stride)) }
    }

    pub(in crate::capi) fn span(&self) -> Span {
        Span::bytes(self.first, self.count.wrapping_mul(self.stride))
    }
}

/// Pointers to objects, each of which was checked.
#[derive(Clone, Copy)]
pub(in crate::capi) struct Pointers<'a, T> {
    each: &'a [*const T],
}

/// An array of pointers, none of them NULL or misaligned; NULL only when it is empty.
///
/// # Safety
/// The contract, for each of them.
pub(in crate::capi) unsafe fn pointers<'a, T>(
    p: *const *const T,
    count: usize,
) -> Result<Pointers<'a, T>, i32> {
    // SAFETY: passed on.
    let each = unsafe { array(p, count) }?;
    each.iter().try_for_each(|&p| placed(p))?;
    Ok(Pointers { each })
}

impl<'a, T> Pointers<'a, T> {
    pub(in crate::capi) fn get(self, i: usize) -> Option<&'a T> {
        // SAFETY: `pointers` checked each; the contract.
        self.each.get(i).map(|&p| unsafe { &*p })
    }
}

/// The keys of a burst, where they lie.
#[derive(Clone, Copy)]
pub(in crate::capi) struct KeyList<'a> {
    place: KeyPlace<'a>,
    /// Bytes of each, unless `lengths` has them one by one.
    length: usize,
    lengths: &'a [usize],
    life: PhantomData<&'a [u8]>,
}

#[derive(Clone, Copy)]
enum KeyPlace<'a> {
    /// Key i lies i * stride bytes behind the first.
    Strided(*const u8, isize),
    /// Each by its own pointer, none of them NULL.
    Each(&'a [*const c_void]),
}

/// The keys that a burst names; `count` is not 0.
///
/// # Safety
/// The contract, for each key.
pub(in crate::capi) unsafe fn keys<'a>(
    (first, stride): (*const c_void, isize),
    each: *const *const c_void,
    length: usize,
    lengths: *const usize,
    count: usize,
) -> Result<KeyList<'a>, i32> {
    let place = if each.is_null() {
        placed(first.cast::<u8>())?;
        KeyPlace::Strided(first.cast(), stride)
    } else {
        // SAFETY: passed on.
        let each = unsafe { array(each, count) }?;
        each.iter().try_for_each(|&p| placed(p.cast::<u8>()))?;
        KeyPlace::Each(each)
    };
    // SAFETY: passed on.
    let lengths = if lengths.is_null() { &[] } else { unsafe { array(lengths, count) }? };
    if length > isize::MAX as usize || lengths.iter().any(|&length| length > isize::MAX as usize) {
        return Err(TATCELL_ERR_KEY_LENGTH);
    }
    Ok(KeyList { place, length, lengths, life: PhantomData })
}

impl KeyList<'_> {
    fn start(&self, i: usize) -> *const u8 {
        match self.place {
            KeyPlace::Strided(first, stride) => first.wrapping_byte_offset((i as isize).wrapping_mul(stride)),
            KeyPlace::Each(each) => each.get(i).copied().unwrap_or(core::ptr::null()).cast(),
        }
    }

    fn length_of(&self, i: usize) -> usize {
        self.lengths.get(i).copied().unwrap_or(self.length)
    }

    /// Refuses keys, `count` of them, that lie in what is written.
    #[inline(always)]
    pub(in crate::capi) fn apart_from(&self, written: &Written, count: usize) -> Result<(), i32> {
        match self.place {
            // From the lowest to the highest: the first and the last of them.
            KeyPlace::Strided(..) if self.lengths.is_empty() => {
                let (a, b) = (self.start(0), self.start(count.wrapping_sub(1)));
                let (low, high) = if a.addr() < b.addr() { (a, b) } else { (b, a) };
                let bytes = high.addr().wrapping_sub(low.addr()).saturating_add(self.length);
                written.apart(Span::bytes(low, bytes))
            }
            _ => (0..count).try_for_each(|i| written.apart(Span::bytes(self.start(i), self.length_of(i)))),
        }
    }
}

impl Keys for KeyList<'_> {
    fn reader<const N: usize>(&self) -> Option<impl Fn(usize) -> [u8; N] + Copy> {
        match self.place {
            KeyPlace::Strided(first, stride) if N == self.length && self.lengths.is_empty() => {
                Some(move |i: usize| {
                    let key = first.wrapping_byte_offset((i as isize).wrapping_mul(stride));
                    // SAFETY: key i, which has N bytes, and bytes have no alignment; the contract.
                    unsafe { key.cast::<[u8; N]>().read() }
                })
            }
            _ => None,
        }
    }

    fn bytes(&self, i: usize) -> &[u8] {
        let start = self.start(i);
        if start.is_null() {
            return &[];
        }
        // SAFETY: key i, not NULL, of a possible length; the contract.
        unsafe { core::slice::from_raw_parts(start, self.length_of(i)) }
    }
}

//! Checks C pointers and makes references of them. `pointers` has all unsafe blocks of the C layer, except for the call
//! of `host` that unmaps memory and an unreachable case in `table/handle.rs`.
//!
//! A function checks what it can see of a pointer: NULL, alignment, the size that a structure says it has, the mark of
//! an initialised object, overlap. It cannot see the rest, which is the header's contract, the same for every `@param`:
//!
//! ```text
//!  valid   what the pointer points to lasts for the call (memory of a table, shaper or queue: as long as its handle;
//!          what a prepared chain names: as long as that), at its stated length
//!  quiet   nobody else writes it during the call, unless the function's line "Thread" allows it: cells and slots are
//!          atomics, limits and handles are read-only once initialised
//!  alone   what the call changes in place (`owned`, `buffer`) overlaps nothing else that it is given; where the header
//!          has an error for that, the function checks it (`apart`) before it forms the reference
//! ```
//!
//! A [`Contract`] says that these hold. [`args`] makes one at the entry of each C function, in its only unsafe step.
//! Only code that holds it can follow the pointers of that call. The references live no longer than the call.
//!
//! Results are written last, through [`Out`], [`Report`] or [`Rows`], when the references to what the call reads are
//! gone. So a result may lie anywhere that nothing else of the call is written.

use core::ffi::{c_char, c_void, CStr};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::places::Span;
use crate::capi::codes::{
    TATCELL_ERR_ALIGN, TATCELL_ERR_COUNT, TATCELL_ERR_KEY_LENGTH, TATCELL_ERR_NULL, TATCELL_ERR_OPTION,
    TATCELL_ERR_SIZE, TATCELL_ERR_TOO_LARGE,
};
use crate::table::MAX_BURST;

/// Proves that the contract holds for the pointers of this call, also for those inside its structures, as the header
/// says.
#[derive(Clone, Copy)]
pub(in crate::capi) struct Contract<'a>(PhantomData<&'a ()>);

/// Checks the arguments of a call in order, under its contract `c`. The C function returns the first error; nothing has
/// changed by then.
macro_rules! args {
    ($c:ident $(, $value:pat = $arg:expr)* $(,)?) => {
        let frame = ();
        // SAFETY: the contract, which the caller of a C function has read in the header; it ends with the function.
        let $c = unsafe { $crate::capi::pointers::contract::Contract::of(&frame) };
        $(let $value = match $arg {
            Ok(value) => value,
            Err(error) => return error,
        };)*
    };
}
pub(in crate::capi) use args;

/// A type of which any bytes are a value.
///
/// # Safety
/// Every initialised byte string of its size is a value, padding aside.
pub(in crate::capi) unsafe trait Plain {}

/// Numbers and pointers. A pointer is followed only as one of the call's.
macro_rules! plain {
    ($($number:ty),+) => {
        // SAFETY: numbers.
        $(unsafe impl Plain for $number {})+
    };
}
plain!(u8, u32, u64, usize);
// SAFETY: an address.
unsafe impl<T> Plain for *const T {}
// SAFETY: as each element.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// An object that the library marks when it initialises it.
///
/// # Safety
/// It starts with a `u64`, and only an initialised object has the mark there: nobody writes it by halves.
pub(in crate::capi) unsafe trait Marked {
    const MARK: u64;
    /// The error for an object without the mark.
    const ERROR: i32;
}

/// The largest size that a structure may say it has.
const LARGEST: usize = 4096;

/// A structure that starts with its own size and grows from release to release.
///
/// # Safety
/// `repr(C)`, starts with `size: u32`, has no padding, and any bytes are a value.
pub(in crate::capi) unsafe trait Grows {
    /// Its size in its first release: the least that a caller may bring.
    const FIRST: usize;
}

// SAFETY: any bytes are a value.
unsafe impl<T: Grows> Plain for T {}

/// Refuses NULL, and an address that is not aligned for a T.
#[inline(always)]
pub(in crate::capi) fn placed<T>(p: *const T) -> Result<(), i32> {
    if p.is_null() {
        Err(TATCELL_ERR_NULL)
    } else if !p.is_aligned() {
        Err(TATCELL_ERR_ALIGN)
    } else {
        Ok(())
    }
}

/// Refuses a length in bytes that no object can have.
pub(in crate::capi) fn possible<T>(p: *const T, bytes: usize) -> Result<(), i32> {
    placed(p)?;
    if bytes > isize::MAX as usize {
        return Err(TATCELL_ERR_TOO_LARGE);
    }
    Ok(())
}

/// Refuses a size that no release has.
#[inline(always)]
pub(super) const fn good_size<T: Grows>(size: usize) -> Result<usize, i32> {
    if size < T::FIRST || size > LARGEST || size % 8 != 0 {
        Err(TATCELL_ERR_SIZE)
    } else {
        Ok(size)
    }
}

/// Returns a pointer to the contents of an opaque object.
#[inline(always)]
pub(in crate::capi) const fn inside<T, U>(p: *const T) -> *const U {
    const { assert!(size_of::<U>() <= size_of::<T>() && align_of::<U>() <= align_of::<T>()) };
    p.cast()
}

impl<'a> Contract<'a> {
    /// # Safety
    /// The contract must hold for `'a`.
    #[inline(always)]
    pub(in crate::capi) unsafe fn of(_frame: &'a ()) -> Contract<'a> {
        Contract(PhantomData)
    }

    /// Returns an object that is only read, or whose every field is an atomic.
    #[inline(always)]
    pub(in crate::capi) fn input<T: Plain>(self, p: *const T) -> Result<&'a T, i32> {
        placed(p)?;
        // SAFETY: not NULL, aligned, and any bytes are a T; the contract: valid, quiet.
        Ok(unsafe { &*p })
    }

    /// Does the same as [`input`](Self::input); NULL is `None`.
    #[inline(always)]
    pub(in crate::capi) fn input_if<T: Plain>(self, p: *const T) -> Result<Option<&'a T>, i32> {
        if p.is_null() {
            return Ok(None);
        }
        self.input(p).map(Some)
    }

    /// Returns an object that only this call uses.
    #[inline(always)]
    pub(in crate::capi) fn owned<T: Plain>(self, p: *mut T) -> Result<&'a mut T, i32> {
        placed(p)?;
        // SAFETY: not NULL, aligned, and any bytes are a T; the contract: valid, quiet, alone.
        Ok(unsafe { &mut *p })
    }

    /// Does the same as [`owned`](Self::owned); NULL is `None`.
    #[inline(always)]
    pub(in crate::capi) fn owned_if<T: Plain>(self, p: *mut T) -> Result<Option<&'a mut T>, i32> {
        if p.is_null() {
            return Ok(None);
        }
        self.owned(p).map(Some)
    }

    /// Returns an initialised object.
    #[inline(always)]
    pub(in crate::capi) fn marked<T: Marked>(self, p: *const T) -> Result<&'a T, i32> {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        if *self.input(p.cast::<u64>())? != T::MARK {
            return Err(T::ERROR);
        }
        // SAFETY: not NULL, aligned as its first word is, and the mark says that it is a T; the contract: valid, quiet.
        Ok(unsafe { &*p })
    }

    /// Does the same as [`marked`](Self::marked) for an object that only this call uses.
    pub(in crate::capi) fn owned_marked<T: Marked>(self, p: *mut T) -> Result<&'a mut T, i32> {
        self.marked(p.cast_const())?;
        // SAFETY: not NULL, aligned, and the mark says that it is a T; the contract: valid, quiet, alone.
        Ok(unsafe { &mut *p })
    }

    /// Returns objects that are only read, one behind the other.
    #[inline(always)]
    pub(in crate::capi) fn slice<T: Plain>(self, p: *const T, count: usize) -> Result<&'a [T], i32> {
        placed(p)?;
        if count > isize::MAX as usize / size_of::<T>() {
            return Err(TATCELL_ERR_TOO_LARGE);
        }
        // SAFETY: not NULL, aligned, of a possible length, and any bytes are a T; the contract: valid, quiet.
        Ok(unsafe { core::slice::from_raw_parts(p, count) })
    }

    /// Returns an array of at most 64 elements; NULL only if it is empty.
    #[inline(always)]
    pub(in crate::capi) fn array<T: Plain>(self, p: *const T, count: usize) -> Result<&'a [T], i32> {
        match count {
            0 => Ok(&[]),
            1..=MAX_BURST => self.slice(p, count),
            _ => Err(TATCELL_ERR_COUNT),
        }
    }

    /// Returns the bytes of a key; not NULL, even if empty.
    #[inline(always)]
    pub(in crate::capi) fn key(self, p: *const c_void, length: usize) -> Result<&'a [u8], i32> {
        let p = p.cast::<u8>();
        placed(p)?;
        if length > isize::MAX as usize {
            return Err(TATCELL_ERR_KEY_LENGTH);
        }
        self.slice(p, length)
    }

    /// Returns an image that is only read.
    pub(in crate::capi) fn words(self, p: *const c_void, bytes: usize) -> Result<&'a [u64], i32> {
        self.slice(p.cast(), bytes / size_of::<u64>())
    }

    /// Returns a buffer that the call fills.
    pub(in crate::capi) fn buffer<T: Plain>(self, p: *mut T, bytes: usize) -> Result<&'a mut [T], i32> {
        possible(p, bytes)?;
        // SAFETY: not NULL, aligned, of a possible length, and any bytes are a T; the contract: valid, quiet, alone.
        Ok(unsafe { core::slice::from_raw_parts_mut(p, bytes / size_of::<T>()) })
    }

    /// Returns a string.
    pub(in crate::capi) fn text(self, p: *const c_char) -> Result<&'a CStr, i32> {
        placed(p)?;
        // SAFETY: not NULL; the contract: valid up to the 0 that ends it, quiet.
        Ok(unsafe { CStr::from_ptr(p) })
    }

    /// Returns the size that a structure says it has.
    #[inline(always)]
    pub(super) fn size_of_it<T: Grows>(self, p: *const T) -> Result<usize, i32> {
        placed(p)?;
        good_size::<T>(*self.input(p.cast::<u32>())? as usize)
    }

    /// Returns what the library knows of a structure that was brought. A shorter one counts as if the rest were 0.
    pub(in crate::capi) fn known<T: Grows>(self, p: *const T) -> Result<T, i32> {
        let size = self.size_of_it(p)?;
        self.known_of(p, size)
    }

    /// Does the same as [`known`](Self::known); a size of 0 stands for that of the first release.
    pub(in crate::capi) fn known_or_zeroed<T: Grows>(self, p: *const T) -> Result<T, i32> {
        placed(p)?;
        let size = *self.input(p.cast::<u32>())? as usize;
        self.known_of(p, if size == 0 { T::FIRST } else { good_size::<T>(size)? })
    }

    /// Does the same as [`known`](Self::known) for a structure of this size, whatever it says.
    pub(super) fn known_of<T: Grows>(self, p: *const T, size: usize) -> Result<T, i32> {
        placed(p)?;
        let size = size.min(size_of::<T>());
        let mut own = MaybeUninit::<T>::zeroed();
        // SAFETY: both have `size` bytes, and any bytes are a T; the contract: valid, quiet.
        unsafe {
            core::ptr::copy_nonoverlapping(p.cast::<u8>(), own.as_mut_ptr().cast::<u8>(), size);
            Ok(own.assume_init())
        }
    }

    /// Returns the part of a structure that a call may touch: no more than the caller says that it has, even if the
    /// library knows more. At least its first release, even if the size is wrong, which `report` finds.
    #[inline(always)]
    pub(in crate::capi) fn reach<T: Grows>(self, p: *const T) -> Span {
        let size = self.input(p.cast::<u32>()).map_or(0, |size| *size as usize);
        Span::bytes(p, size.min(size_of::<T>()).max(T::FIRST))
    }

    /// Refuses a structure of results that overlaps another object; what is NULL overlaps nothing.
    #[inline(always)]
    pub(in crate::capi) fn reach_apart<T: Grows, U>(self, p: *const T, other: *const U) -> Result<(), i32> {
        self.reach(p).apart(Span::of(other, 1))
    }

    /// Refuses a structure that sets fields which the library does not know.
    #[inline(always)]
    fn nothing_unknown<T: Grows>(self, p: *const T) -> Result<(), i32> {
        const { assert!(good_size::<T>(size_of::<T>()).is_ok()) };
        placed(p)?;
        let size = *self.input(p.cast::<u32>())? as usize;
        // Nearly all callers have the same header, so one comparison is enough.
        if size == size_of::<T>() {
            return Ok(());
        }
        self.nothing_unknown_in(p, good_size::<T>(size)?)
    }

    /// Does the same as [`nothing_unknown`](Self::nothing_unknown) in a structure of this size, whatever it says.
    #[inline(always)]
    pub(super) fn nothing_unknown_in<T: Grows>(self, p: *const T, size: usize) -> Result<(), i32> {
        let more = size.saturating_sub(size_of::<T>());
        if more != 0 {
            let rest = self.slice(p.wrapping_add(1).cast::<u8>(), more)?;
            if rest.iter().any(|&byte| byte != 0) {
                return Err(TATCELL_ERR_OPTION);
            }
        }
        Ok(())
    }

    /// Returns options, like [`known`](Self::known). Fields that the library does not know must be 0.
    pub(in crate::capi) fn options<T: Grows>(self, p: *const T) -> Result<T, i32> {
        self.nothing_unknown(p)?;
        self.known(p)
    }

    /// Returns a structure of options and results that only this call uses, in the form of its first release. What
    /// later releases add is read separately.
    #[inline(always)]
    pub(in crate::capi) fn owned_options<T: Grows>(self, p: *mut T) -> Result<&'a mut T, i32> {
        const { assert!(size_of::<T>() == T::FIRST) };
        self.nothing_unknown(p)?;
        self.owned(p)
    }

    /// Does the same as [`owned_options`](Self::owned_options); NULL is `None`.
    #[inline(always)]
    pub(in crate::capi) fn owned_options_if<T: Grows>(self, p: *mut T) -> Result<Option<&'a mut T>, i32> {
        if p.is_null() {
            return Ok(None);
        }
        self.owned_options(p).map(Some)
    }

    /// Returns a place for one result.
    #[inline(always)]
    pub(in crate::capi) fn result<T>(self, p: *mut T) -> Result<Out<'a, T>, i32> {
        placed(p)?;
        Ok(Out { to: NonNull::new(p).ok_or(TATCELL_ERR_NULL)?, c: self })
    }

    /// Does the same as [`result`](Self::result); NULL means "not wanted".
    #[inline(always)]
    pub(in crate::capi) fn result_if<T>(self, p: *mut T) -> Result<Option<Out<'a, T>>, i32> {
        if p.is_null() {
            return Ok(None);
        }
        self.result(p).map(Some)
    }

    /// Returns a place for a structure of results.
    #[inline(always)]
    pub(in crate::capi) fn report<T: Grows>(self, p: *mut T) -> Result<Report<'a, T>, i32> {
        let bytes = self.size_of_it(p)?.min(size_of::<T>());
        Ok(Report { to: p, bytes, c: self })
    }

    /// Does the same as [`report`](Self::report); NULL means "not wanted".
    #[inline(always)]
    pub(in crate::capi) fn report_if<T: Grows>(self, p: *mut T) -> Result<Option<Report<'a, T>>, i32> {
        if p.is_null() {
            return Ok(None);
        }
        self.report(p).map(Some)
    }
}

/// A place for one result, aligned; written last.
pub(in crate::capi) struct Out<'a, T> {
    pub(super) to: NonNull<T>,
    #[allow(dead_code)] // proves that the pointer is valid
    pub(super) c: Contract<'a>,
}

impl<T> Out<'_, T> {
    #[inline(always)]
    pub(in crate::capi) fn put(self, value: T) {
        // SAFETY: not NULL and aligned; the contract: valid, quiet.
        unsafe { self.to.write(value) }
    }

    /// Puts the contents of an opaque object; the rest of it becomes 0.
    pub(in crate::capi) fn put_inside<U>(self, value: U) {
        let place = inside::<T, U>(self.to.as_ptr()).cast_mut();
        // SAFETY: as `put`, and a U fits (asserted by `inside`).
        unsafe {
            self.to.as_ptr().write_bytes(0, 1);
            place.write(value);
        }
    }
}

/// A place for a structure of results, aligned and not NULL, with at least the bytes of its first release; written
/// last.
pub(in crate::capi) struct Report<'a, T> {
    pub(super) to: *mut T,
    pub(super) bytes: usize,
    pub(super) c: Contract<'a>,
}

impl<'a, T: Grows> Report<'a, T> {
    /// Returns the structure where it lies if the caller has the header of this release, as nearly all have. Fields
    /// that are stored there need no copy, which would wait for the stores. Its size is the caller's. Otherwise returns
    /// this place.
    #[inline(always)]
    pub(in crate::capi) fn whole(self) -> Result<&'a mut T, Self> {
        match self.bytes == size_of::<T>() {
            true => self.c.owned(self.to).map_err(|_| self),
            false => Err(self),
        }
    }

    /// Writes what both sides know, except for the size, which is the caller's.
    #[inline(always)]
    pub(in crate::capi) fn put(self, value: &T) {
        let size = size_of::<u32>();
        // SAFETY: both have `bytes` bytes, more than those of the size; the contract: valid, quiet.
        unsafe {
            let (from, to) =
                (core::ptr::from_ref(value).cast::<u8>().add(size), self.to.cast::<u8>().add(size));
            core::ptr::copy_nonoverlapping(from, to, self.bytes - size);
        }
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests;

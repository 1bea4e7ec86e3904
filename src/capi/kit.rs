//! Where C pointers are checked and become references. All unsafe code of the C layer stands here.
//!
//! What a function can see of a pointer it checks: NULL, alignment, the size that a structure says it has, the mark
//! of an initialised object, overlap. What it cannot see is the header's contract, the same for every `@param`:
//!
//! ```text
//!  valid   what the pointer points to lasts for the call (table memory: as long as its handle), at its stated length
//!  quiet   nobody else writes it during the call, unless the function's line "Thread" allows it: cells and slots are
//!          atomics, limits and handles are read-only once initialised
//! ```
//!
//! Both together are called **the contract** below. Results are written last, through [`Out`], [`Report`] or
//! [`Rows`], when the references to what the call reads are gone, so a result may lie anywhere that nothing else of
//! the call is written.

mod lists;
mod places;

use core::ffi::{c_char, c_void, CStr};
use core::mem::MaybeUninit;

use super::codes::{
    TATCELL_ERR_ALIGN, TATCELL_ERR_COUNT, TATCELL_ERR_KEY_LENGTH, TATCELL_ERR_NULL, TATCELL_ERR_OPTION,
    TATCELL_ERR_SIZE, TATCELL_ERR_TOO_LARGE,
};
use crate::table::{Line, MAX_BURST};

pub(super) use lists::{keys, pointers, rows, strided, KeyList, Pointers, Rows};
pub(super) use places::{apart, Span, Written};

/// Checks the arguments of a call in order; the first error is what the C function returns, before anything changed.
macro_rules! args {
    ($($arg:expr),+ $(,)?) => {
        ($({
            // SAFETY: the contract of kit.rs, which the header states for every pointer of every function.
            #[allow(unused_unsafe)]
            let checked: Result<_, i32> = unsafe { $arg };
            match checked {
                Ok(value) => value,
                Err(error) => return error,
            }
        }),+)
    };
}
pub(super) use args;

/// Refuses NULL and what is not aligned for a T.
#[inline(always)]
fn placed<T>(p: *const T) -> Result<(), i32> {
    if p.is_null() {
        Err(TATCELL_ERR_NULL)
    } else if !p.is_aligned() {
        Err(TATCELL_ERR_ALIGN)
    } else {
        Ok(())
    }
}

/// An object that is read, or whose every field is an atomic.
///
/// # Safety
/// The contract; any bytes must be a T.
#[inline(always)]
pub(super) unsafe fn input<'a, T>(p: *const T) -> Result<&'a T, i32> {
    placed(p)?;
    // SAFETY: not NULL and aligned; the contract.
    Ok(unsafe { &*p })
}

/// As [`input`]; NULL is None.
///
/// # Safety
/// As [`input`].
#[inline(always)]
pub(super) unsafe fn input_if<'a, T>(p: *const T) -> Result<Option<&'a T>, i32> {
    if p.is_null() {
        return Ok(None);
    }
    // SAFETY: passed on.
    unsafe { input(p) }.map(Some)
}

/// An object that only this call uses.
///
/// # Safety
/// The contract; any bytes must be a T, and nothing else of the call may overlap it.
#[inline(always)]
pub(super) unsafe fn owned<'a, T>(p: *mut T) -> Result<&'a mut T, i32> {
    placed(p)?;
    // SAFETY: not NULL and aligned; the contract.
    Ok(unsafe { &mut *p })
}

/// As [`owned`]; NULL is None.
///
/// # Safety
/// As [`owned`].
#[inline(always)]
pub(super) unsafe fn owned_if<'a, T>(p: *mut T) -> Result<Option<&'a mut T>, i32> {
    if p.is_null() {
        return Ok(None);
    }
    // SAFETY: passed on.
    unsafe { owned(p) }.map(Some)
}

/// An initialised object: one whose first word is a mark that the library wrote. None where it is not.
///
/// # Safety
/// The contract; `U` starts with a `u64`, and whatever has the mark must be a U.
#[inline(always)]
pub(super) unsafe fn marked<'a, U>(p: *const U, mark: u64) -> Result<Option<&'a U>, i32> {
    // SAFETY: passed on; any bytes are a number.
    let first = unsafe { input(p.cast::<u64>()) }?;
    // SAFETY: aligned for the word, and that is all that a U needs (asserted); the mark says that it is one.
    Ok((*first == mark).then(|| unsafe { &*p }))
}

/// A place for one result; written last.
pub(super) struct Out<T>(*mut T);

/// # Safety
/// The contract.
#[inline(always)]
pub(super) unsafe fn result<T>(p: *mut T) -> Result<Out<T>, i32> {
    placed(p)?;
    Ok(Out(p))
}

/// As [`result`]; NULL means "not wanted".
///
/// # Safety
/// The contract.
#[inline(always)]
pub(super) unsafe fn result_if<T>(p: *mut T) -> Result<Option<Out<T>>, i32> {
    if p.is_null() {
        return Ok(None);
    }
    placed(p)?;
    Ok(Some(Out(p)))
}

impl<T> Out<T> {
    #[inline(always)]
    pub(super) fn put(self, value: T) {
        // SAFETY: `result` checked it; the contract.
        unsafe { self.0.write(value) }
    }

    /// Puts what lies inside an opaque object; the rest of it becomes 0.
    pub(super) fn put_inside<U>(self, value: U) {
        const { assert!(size_of::<U>() <= size_of::<T>() && align_of::<U>() <= align_of::<T>()) };
        // SAFETY: as `put`, and there is room for a U.
        unsafe {
            self.0.write_bytes(0, 1);
            self.0.cast::<U>().write(value);
        }
    }
}

/// Largest size that a structure may say it has.
const LARGEST: usize = 4096;

/// A structure that starts with its own size and grows from release to release.
///
/// # Safety
/// `repr(C)`, starts with `size: u32`, has no padding, and any bytes are valid.
pub(super) unsafe trait Grows {
    /// Its size in the first release that had it: the least that a caller may bring.
    const FIRST: usize;
}

/// The size that a structure says it has.
///
/// # Safety
/// The contract.
#[inline(always)]
unsafe fn size_of_it<T: Grows>(p: *const T) -> Result<usize, i32> {
    placed(p)?;
    // SAFETY: not NULL, aligned, and starts with a u32; the contract.
    let size = unsafe { p.cast::<u32>().read() } as usize;
    good_size::<T>(size)
}

#[inline(always)]
pub(super) const fn good_size<T: Grows>(size: usize) -> Result<usize, i32> {
    if size < T::FIRST || size > LARGEST || size % 8 != 0 {
        Err(TATCELL_ERR_SIZE)
    } else {
        Ok(size)
    }
}

/// What the library knows of a structure that was brought; a shorter one is as if the rest were 0.
///
/// # Safety
/// The contract.
pub(super) unsafe fn known<T: Grows>(p: *const T) -> Result<T, i32> {
    // SAFETY: passed on; it has as many bytes as it says.
    unsafe { Ok(known_of(p, size_of_it(p)?)) }
}

/// As [`known`], of a structure of so many bytes.
///
/// # Safety
/// The contract: at least [`Grows::FIRST`] bytes.
unsafe fn known_of<T: Grows>(p: *const T, bytes: usize) -> T {
    let size = bytes.min(size_of::<T>());
    let mut own = MaybeUninit::<T>::zeroed();
    // SAFETY: both have `size` bytes, and any bytes are a T.
    unsafe {
        core::ptr::copy_nonoverlapping(p.cast::<u8>(), own.as_mut_ptr().cast::<u8>(), size);
        own.assume_init()
    }
}

/// Refuses a structure that uses what the library does not know.
///
/// # Safety
/// The contract.
#[inline(always)]
unsafe fn nothing_unknown<T: Grows>(p: *const T) -> Result<(), i32> {
    // SAFETY: passed on; it has as many bytes as it says.
    unsafe { nothing_unknown_in(p, size_of_it(p)?) }
}

/// As [`nothing_unknown`], of a structure of so many bytes.
///
/// # Safety
/// The contract.
#[inline(always)]
unsafe fn nothing_unknown_in<T>(p: *const T, bytes: usize) -> Result<(), i32> {
    let more = bytes.saturating_sub(size_of::<T>());
    if more == 0 {
        return Ok(());
    }
    // SAFETY: the structure has `more` bytes behind those that the library knows.
    let rest = unsafe { core::slice::from_raw_parts(p.cast::<u8>().add(size_of::<T>()), more) };
    if rest.iter().any(|&byte| byte != 0) {
        return Err(TATCELL_ERR_OPTION);
    }
    Ok(())
}

/// Options: as [`known`], and what the library does not know must be off.
///
/// # Safety
/// The contract.
pub(super) unsafe fn options<T: Grows>(p: *const T) -> Result<T, i32> {
    // SAFETY: passed on.
    unsafe {
        nothing_unknown(p)?;
        known(p)
    }
}

/// A structure of options and results that only this call uses, in the form of its first release; what later releases
/// add is read apart. NULL is None.
///
/// # Safety
/// As [`owned`].
#[inline(always)]
pub(super) unsafe fn owned_options_if<'a, T: Grows>(p: *mut T) -> Result<Option<&'a mut T>, i32> {
    const { assert!(size_of::<T>() == T::FIRST) };
    if p.is_null() {
        return Ok(None);
    }
    // SAFETY: passed on; at least the first release is there.
    unsafe {
        nothing_unknown(p)?;
        owned(p).map(Some)
    }
}

/// A place for a structure of results.
pub(super) struct Report<T> {
    to: *mut T,
    bytes: usize,
}

/// # Safety
/// The contract.
#[inline(always)]
pub(super) unsafe fn report<T: Grows>(p: *mut T) -> Result<Report<T>, i32> {
    // SAFETY: passed on.
    let bytes = unsafe { size_of_it(p) }?.min(size_of::<T>());
    Ok(Report { to: p, bytes })
}

/// As [`report`]; NULL means "not wanted".
///
/// # Safety
/// The contract.
#[inline(always)]
pub(super) unsafe fn report_if<T: Grows>(p: *mut T) -> Result<Option<Report<T>>, i32> {
    if p.is_null() {
        return Ok(None);
    }
    // SAFETY: passed on.
    unsafe { report(p) }.map(Some)
}

impl<T: Grows> Report<T> {
    /// Writes what both sides know, but for the size, which is the caller's.
    #[inline(always)]
    pub(super) fn put(self, value: &T) {
        let size = size_of::<u32>();
        // SAFETY: `report` checked that so many bytes are there, at least `FIRST`; the contract.
        unsafe {
            let (from, to) =
                (core::ptr::from_ref(value).cast::<u8>().add(size), self.to.cast::<u8>().add(size));
            core::ptr::copy_nonoverlapping(from, to, self.bytes - size);
        }
    }
}

/// An array of at most 64 elements; NULL only when it is empty.
///
/// # Safety
/// The contract.
#[inline(always)]
pub(super) unsafe fn array<'a, T>(p: *const T, count: usize) -> Result<&'a [T], i32> {
    if count > MAX_BURST {
        return Err(TATCELL_ERR_COUNT);
    }
    if count == 0 {
        return Ok(&[]);
    }
    placed(p)?;
    // SAFETY: not NULL and aligned, and so many elements; the contract.
    Ok(unsafe { core::slice::from_raw_parts(p, count) })
}

/// The bytes of a key; not NULL, even when empty.
///
/// # Safety
/// The contract.
#[inline(always)]
pub(super) unsafe fn key<'a>(p: *const c_void, length: usize) -> Result<&'a [u8], i32> {
    if p.is_null() {
        return Err(TATCELL_ERR_NULL);
    }
    if length > isize::MAX as usize {
        return Err(TATCELL_ERR_KEY_LENGTH);
    }
    // SAFETY: not NULL, bytes have no alignment, and the length is possible; the contract.
    Ok(unsafe { core::slice::from_raw_parts(p.cast(), length) })
}

/// Refuses a length in bytes that nothing can have.
pub(super) fn possible<T>(p: *const T, bytes: usize) -> Result<(), i32> {
    placed(p)?;
    if bytes > isize::MAX as usize {
        return Err(TATCELL_ERR_TOO_LARGE);
    }
    Ok(())
}

/// Table memory, which stays with the handle.
///
/// # Safety
/// The contract, for as long as the handle: nothing but this library uses the memory, or what it uses are atomics.
pub(super) unsafe fn lines(p: *mut c_void, bytes: usize) -> Result<&'static [Line], i32> {
    let p = p.cast::<Line>();
    possible(p, bytes)?;
    // SAFETY: not NULL, aligned, a possible length, and any bytes are atomics; the contract.
    Ok(unsafe { core::slice::from_raw_parts(p, bytes / size_of::<Line>()) })
}

/// An image that is read.
///
/// # Safety
/// The contract.
pub(super) unsafe fn words<'a>(p: *const c_void, bytes: usize) -> Result<&'a [u64], i32> {
    let p = p.cast::<u64>();
    possible(p, bytes)?;
    // SAFETY: not NULL, aligned and of a possible length; the contract.
    Ok(unsafe { core::slice::from_raw_parts(p, bytes / size_of::<u64>()) })
}

/// A buffer that is filled.
///
/// # Safety
/// The contract; nothing else of the call may overlap it, and any bytes must be a T.
pub(super) unsafe fn buffer<'a, T>(p: *mut T, bytes: usize) -> Result<&'a mut [T], i32> {
    possible(p, bytes)?;
    // SAFETY: not NULL, aligned and of a possible length; the contract.
    Ok(unsafe { core::slice::from_raw_parts_mut(p, bytes / size_of::<T>()) })
}

/// A string.
///
/// # Safety
/// The contract; it must end.
pub(super) unsafe fn text<'a>(p: *const c_char) -> Result<&'a CStr, i32> {
    if p.is_null() {
        return Err(TATCELL_ERR_NULL);
    }
    // SAFETY: not NULL; the contract.
    Ok(unsafe { CStr::from_ptr(p) })
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests;

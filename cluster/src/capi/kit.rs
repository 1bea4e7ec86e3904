//! Where C pointers are checked and become references: NULL, alignment, and the size that a structure says it
//! has. What cannot be seen of a pointer is the header's contract: it is valid for the call at its stated
//! length, nobody writes what is read, and what is written is nobody else's.

use std::ffi::{c_char, c_void, CStr};

use super::codes::{
    TATCELL_CLUSTER_ERR_ALIGN, TATCELL_CLUSTER_ERR_NULL, TATCELL_CLUSTER_ERR_OPTION,
    TATCELL_CLUSTER_ERR_SIZE, TATCELL_CLUSTER_ERR_TOO_LARGE,
};

/// A structure that starts with its own size and grows from release to release.
///
/// # Safety
/// `repr(C)`, starts with `size: u32`, has no padding, all zeros are one, and so is any bytes but for pointers,
/// which are followed only as a pointer of the call.
pub(super) unsafe trait Grows: Copy {
    /// Its size in the first release that had it.
    const FIRST: usize;
    /// One with its size and zeros.
    const EMPTY: Self;
}

const LARGEST: usize = 4_096;

fn placed<T>(p: *const T) -> Result<(), i32> {
    match p {
        p if p.is_null() => Err(TATCELL_CLUSTER_ERR_NULL),
        p if !p.is_aligned() => Err(TATCELL_CLUSTER_ERR_ALIGN),
        _ => Ok(()),
    }
}

/// The size that a structure says it has.
pub(super) fn size_of_given<T: Grows>(p: *const T) -> Result<usize, i32> {
    placed(p)?;
    // SAFETY: not NULL, aligned, and it starts with a u32; the contract: valid.
    let size = unsafe { *p.cast::<u32>() } as usize;
    match size >= T::FIRST && size <= LARGEST && size.is_multiple_of(8) {
        true => Ok(size),
        false => Err(TATCELL_CLUSTER_ERR_SIZE),
    }
}

/// Copies a structure: what it lacks is zeros, and what this library does not know must be zeros.
pub(super) fn given<T: Grows>(p: *const T) -> Result<T, i32> {
    let size = size_of_given(p)?;
    let (known, mut copy) = (size.min(size_of::<T>()), T::EMPTY);
    // SAFETY: valid for its size; any bytes are a T; the copy is this function's own.
    let beyond = unsafe {
        std::ptr::copy_nonoverlapping(p.cast::<u8>(), (&raw mut copy).cast::<u8>(), known);
        std::slice::from_raw_parts(p.cast::<u8>().add(known), size - known)
    };
    match beyond.iter().all(|byte| *byte == 0) {
        true => Ok(copy),
        false => Err(TATCELL_CLUSTER_ERR_OPTION),
    }
}

/// Writes a structure as far as the caller knows it; its size stays.
pub(super) fn fill<T: Grows>(p: *mut T, value: &T) -> Result<(), i32> {
    let known = size_of_given(p)?.min(size_of::<T>()) - 4;
    // SAFETY: valid for its size; nobody else's; past the size field, which is 4 bytes of a structure without padding.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const *value).cast::<u8>().add(4), p.cast::<u8>().add(4), known);
    }
    Ok(())
}

/// The structures of a list, as far apart as the first of them says it is long.
pub(super) fn list<T: Grows>(p: *const T, count: usize) -> Result<Vec<T>, i32> {
    let stride = size_of_given(p)?;
    let bytes = count.checked_mul(stride).filter(|bytes| *bytes <= isize::MAX as usize);
    bytes.ok_or(TATCELL_CLUSTER_ERR_TOO_LARGE)?;
    // SAFETY: within the list, which is valid for `count` strides.
    (0..count).map(|i| given(unsafe { p.byte_add(i * stride) })).collect()
}

/// An object that the library made.
pub(super) fn object<'a, T>(p: *const T) -> Result<&'a T, i32> {
    placed(p)?;
    // SAFETY: not NULL, aligned; the contract: it came from tatcell_cluster_open and was not closed.
    Ok(unsafe { &*p })
}

/// Takes an object back.
pub(super) fn reclaim<T>(p: *mut T) -> Result<Box<T>, i32> {
    placed(p)?;
    // SAFETY: not NULL, aligned; the contract: it came from tatcell_cluster_open, and this is its last use.
    Ok(unsafe { Box::from_raw(p) })
}

/// Any bytes; NULL where there are none.
pub(super) fn bytes<'a>(p: *const c_void, count: usize) -> Result<&'a [u8], i32> {
    if count == 0 {
        return Ok(&[]);
    }
    placed(p.cast::<u8>())?;
    if count > isize::MAX as usize {
        return Err(TATCELL_CLUSTER_ERR_TOO_LARGE);
    }
    // SAFETY: not NULL; the contract: valid for `count` bytes, quiet for the call.
    Ok(unsafe { std::slice::from_raw_parts(p.cast::<u8>(), count) })
}

/// A text; None where it is NULL.
pub(super) fn text<'a>(p: *const c_char) -> Result<Option<&'a str>, i32> {
    if p.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL; the contract: it ends with a zero, and is quiet for the call.
    unsafe { CStr::from_ptr(p) }.to_str().map(Some).map_err(|_| TATCELL_CLUSTER_ERR_OPTION)
}

/// Writes a result; where it is NULL nothing is wanted.
pub(super) fn write_if<T>(p: *mut T, value: T) -> Result<(), i32> {
    if p.is_null() {
        return Ok(());
    }
    placed(p)?;
    // SAFETY: not NULL, aligned; the contract: the caller's, nobody else's.
    unsafe { p.write(value) };
    Ok(())
}

/// Writes a result that is wanted.
pub(super) fn write<T>(p: *mut T, value: T) -> Result<(), i32> {
    placed(p)?;
    write_if(p, value)
}

/// Writes results one after the other.
pub(super) fn write_all<T>(p: *mut T, values: impl IntoIterator<Item = T>) {
    for (i, value) in values.into_iter().enumerate() {
        // SAFETY: the caller checked the place of the first, and that there are as many.
        unsafe { p.add(i).write(value) };
    }
}

/// Whether there is a place for results.
pub(super) fn place<T>(p: *mut T) -> Result<(), i32> {
    placed(p.cast_const())
}

/// Writes a text and its end, as much of it as fits; returns the bytes of all of it, without the end.
pub(super) fn write_text(p: *mut c_char, room: usize, text: &str) -> usize {
    if !p.is_null() && room > 0 {
        let mut fits = text.len().min(room - 1);
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        // SAFETY: the contract: the caller alone owns this room; the text and its NUL fit.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), p.cast::<u8>(), fits);
            p.add(fits).write(0);
        }
    }
    text.len()
}

/// What a C function returns.
pub(super) fn code(result: Result<i32, i32>) -> i32 {
    result.unwrap_or_else(|code| code)
}

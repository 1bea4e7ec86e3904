//! A pinned map of BPF, to attach to the table in it or to look at it: `/sys/fs/bpf/limits`.
//!
//! `tatcell_bpf.h` says how a program keeps a table in a map: an array that can be mapped, with a line in each element.
//! Also to map it for reading alone, the kernel asks for the permission to write its pin: it gives no shared mapping of
//! a map that was opened for reading. With kernel.unprivileged_bpf_disabled, which distributions set, it also asks for
//! CAP_BPF: bpf(2) opens the pin.

use core::ffi::{c_int, CStr};
use core::mem::size_of;

use super::names::File;
use super::{last_error, HostError};
use crate::table::Line;

const BPF_OBJ_GET: c_int = 7;
const BPF_OBJ_GET_INFO_BY_FD: c_int = 15;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_F_MMAPABLE: u32 = 1 << 10;
/// What statfs calls the file system of pins.
const BPF_FS_MAGIC: u32 = 0xcafe_4a11;

/// The start of `union bpf_attr`, for BPF_OBJ_GET.
#[repr(C)]
struct Get {
    path: u64,
    fd: u32,
    flags: u32,
}

/// The same for BPF_OBJ_GET_INFO_BY_FD.
#[repr(C)]
struct Ask {
    fd: u32,
    length: u32,
    info: u64,
}

/// The start of `struct bpf_map_info`.
#[derive(Default)]
#[repr(C)]
struct Info {
    kind: u32,
    id: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

/// Calls bpf(2).
fn bpf<T>(command: c_int, attributes: &T) -> Result<c_int, HostError> {
    // SAFETY: the attributes are those of the command, of the size that is named; what they point to outlives the call.
    let done =
        unsafe { libc::syscall(libc::SYS_bpf, command, core::ptr::from_ref(attributes), size_of::<T>()) };
    if done < 0 {
        return Err(last_error());
    }
    c_int::try_from(done).map_err(|_| HostError::Unsupported)
}

/// Whether a path is in the file system of pins.
fn is_pin(path: &CStr) -> bool {
    let mut found = core::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the path is a string with a terminating 0, and the place is large enough.
    if unsafe { libc::statfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: zeroed, which is a value of it, and written by the call.
    let kind = unsafe { found.assume_init() }.f_type;
    // The type of the field is not the same on all machines; the number has 32 bits.
    kind as u32 == BPF_FS_MAGIC
}

/// Opens a map that is pinned at this path, and returns its bytes; None if the path is no pin.
///
/// # Errors
/// [`HostError::Unsupported`] if it is no array that can be mapped, or not one of lines; [`HostError::System`].
pub(super) fn open(path: &CStr) -> Result<Option<(File, usize)>, HostError> {
    if !is_pin(path) {
        return Ok(None);
    }
    let get = Get { path: path.as_ptr().addr() as u64, fd: 0, flags: 0 };
    let file = File::of(bpf(BPF_OBJ_GET, &get)?);
    let mut info = Info::default();
    let ask = Ask {
        fd: file.fd() as u32,
        length: size_of::<Info>() as u32,
        info: core::ptr::from_mut(&mut info).expose_provenance() as u64,
    };
    bpf(BPF_OBJ_GET_INFO_BY_FD, &ask)?;
    let mapped = info.kind == BPF_MAP_TYPE_ARRAY && info.flags & BPF_F_MMAPABLE != 0;
    // Another kind of object has other numbers here, and a map of other values is no table.
    if !mapped || info.value_size as usize != size_of::<Line>() {
        return Err(HostError::Unsupported);
    }
    let bytes = (info.max_entries as usize).checked_mul(size_of::<Line>()).ok_or(HostError::BadSize)?;
    Ok(Some((file, bytes)))
}

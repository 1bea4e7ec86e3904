//! `tatcell_host_memory_attach_read_only`: memory to look at.

use core::ffi::c_char;

use super::{give, tatcell_host_memory_t};
use crate::capi::pointers::contract::args;
use crate::host::Memory;

/// Maps memory that another process has created, for reading alone: for tatcell_table_attach with
/// TATCELL_TABLE_READ_ONLY.
///
/// It needs no permission to write. The memory may also be a saved image in a file. A store to it ends the process
/// with a signal: give it only to calls that look.
///
/// @param name   the name that the memory was created with, or the path of a file; not NULL.
/// @param bytes  the length that it must have; 0 = any length, which is then in memory->bytes.
/// @param memory started from TATCELL_HOST_MEMORY_INIT; not NULL. Unmap it with tatcell_host_memory_unmap.
/// @retval 0 done.
/// @retval TATCELL_ERR_ABSENT there is no such name; TATCELL_ERR_NOT_READY its creator is not done: ask again.
/// @retval TATCELL_ERR_WRONG_SIZE it has another length.
/// @retval TATCELL_ERR_NAME bad name.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM the errno is in memory->system_error (EACCES: not allowed).
/// Thread: any. Cost: four system calls. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_memory_attach_read_only(
    name: *const c_char,
    bytes: usize,
    memory: *mut tatcell_host_memory_t,
) -> i32 {
    args!(c, name = c.text(name), out = c.place(memory));
    give(Memory::attach_to_read(name, bytes), bytes, out)
}

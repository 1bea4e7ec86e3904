//! `tatcell_table_*`: images, which are attached, restored and saved.

use core::ffi::c_void;

use super::handle::{publish, tatcell_table_t, Any};
use super::options::{tatcell_attach_options_t, How};
use super::seen::{look, own_memory, publish_reader};
use crate::capi::codes::{table_code, TATCELL_ERR_OPTION, TATCELL_ERR_WRONG_SIZE, TATCELL_PASS};
use crate::capi::pointers::contract::{args, possible};
use crate::capi::pointers::places::Span;
use crate::table::{Exclusive, Line, Shared, Table, TableError};

/// Attaches to a table that another process (or this one) has initialised in this memory.
///
/// With TATCELL_TABLE_READ_ONLY the handle only looks. No call stores through it, so the memory may be mapped for
/// reading alone (tatcell_host_memory_attach_read_only). It is for tatcell_table_info, _export, _stats, _next, _top,
/// _may_be, _save and, with a seed, tatcell_table_hash and tatcell_address_prefix_hash. All other calls return
/// TATCELL_ERR_HANDLE. Since 0.4.
///
/// Attach to live memory, not to a copy made while others stored: its bans may not be found. tatcell_table_save makes
/// copies.
///
/// @param table   handle to initialise, outside the memory; not NULL.
/// @param memory  the image, aligned to 64 bytes; not NULL.
/// @param bytes   the same number that it was initialised with.
/// @param options started from TATCELL_ATTACH_OPTIONS_INIT; not NULL. Copied.
/// @retval 0 done.
/// @retval TATCELL_ERR_NOT_READY there is no image yet: ask again once the other process is done.
/// @retval TATCELL_ERR_VERSION another image layout, or a feature or algorithm that this library does not know.
/// @retval TATCELL_ERR_GEOMETRY the image is damaged, or bytes is another number.
/// @retval TATCELL_ERR_SEED the table hashes, and there is no seed; TATCELL_ERR_WRONG_SEED it was made with another
///         seed.
/// @retval TATCELL_ERR_HASH_UNAVAILABLE this processor cannot compute the table's hash.
/// @retval TATCELL_ERR_MODE the image is exclusive and the options ask for a shared one, or the reverse; or it has
///         another policy or tick_hz.
/// @retval TATCELL_ERR_TOO_SMALL bytes is less than a header; TATCELL_ERR_TOO_LARGE more than half of the address
///         space.
/// @retval TATCELL_ERR_OVERLAP the handle lies in the memory.
/// @retval TATCELL_ERR_OPTION unknown flag or value.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field. Nothing is changed on
///         error.
/// Thread: any number, each with its own handle. Cost: reads two lines. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_attach(
    table: *mut tatcell_table_t,
    memory: *mut c_void,
    bytes: usize,
    options: *const tatcell_attach_options_t,
) -> i32 {
    args!(
        c,
        out = c.result(table),
        lines = c.lines(memory, bytes),
        (options, how) = c.attach_options(options),
        () = Span::of(table, 1).apart(Span::bytes(memory, bytes))
    );
    match how {
        How::Shared => publish(Table::<Shared>::attach_as(lines, &options).map(Any::Shared), out),
        How::Exclusive => publish(Table::<Exclusive>::attach_as(lines, &options).map(Any::Exclusive), out),
        How::ReadOnly => publish_reader(Table::attach_as(lines, &options), out),
    }
}

/// Fills memory from an image that tatcell_table_save wrote. Older permits credit nothing afterwards.
///
/// @param table        handle to initialise, outside the memory; not NULL.
/// @param memory       aligned to 64 bytes, not overlapping the image; not NULL.
/// @param bytes        length of the image, rounded down to whole sets.
/// @param image        the saved image, aligned to 8 bytes; not NULL.
/// @param image_bytes  length of the image.
/// @param options      started from TATCELL_ATTACH_OPTIONS_INIT, as for tatcell_table_attach; not NULL. Copied.
/// @param clock_offset reading of the new clock minus the reading that the old clock would have now, ticks.
/// @retval 0 done.
/// @retval TATCELL_ERR_WRONG_SIZE memory and image differ in length.
/// @retval TATCELL_ERR_OVERLAP memory overlaps image or handle.
/// @retval TATCELL_ERR_OPTION also for TATCELL_TABLE_READ_ONLY.
/// @retval others as tatcell_table_attach. Nothing is changed on error.
/// Thread: one, before any other uses the memory. Cost: writes all of it. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_restore(
    table: *mut tatcell_table_t,
    memory: *mut c_void,
    bytes: usize,
    image: *const c_void,
    image_bytes: usize,
    options: *const tatcell_attach_options_t,
    clock_offset: i64,
) -> i32 {
    let others = [Span::of(table, 1), Span::bytes(image, image_bytes)];
    args!(
        c,
        out = c.result(table),
        lines = c.lines(memory, bytes),
        image = c.words(image, image_bytes),
        (options, how) = c.attach_options(options),
        () = Span::bytes(memory, bytes).apart_from(&others)
    );
    let lines = whole_sets(lines);
    let made = match how {
        How::Shared => Table::<Shared>::restore_as(lines, image, &options, clock_offset).map(Any::Shared),
        How::Exclusive => {
            Table::<Exclusive>::restore_as(lines, image, &options, clock_offset).map(Any::Exclusive)
        }
        How::ReadOnly => return TATCELL_ERR_OPTION,
    };
    match made {
        Err(TableError::BufferTooSmall) => TATCELL_ERR_WRONG_SIZE,
        made => publish(made, out),
    }
}

/// Returns the header lines and whole sets; an odd line at the end stays unused, as after init.
fn whole_sets(lines: &'static [Line]) -> &'static [Line] {
    lines.get(..lines.len() & !1).unwrap_or_else(|| impossible!(lines))
}

/// Copies the image of a table, each word whole. Keys that have expired at now are left out.
///
/// @param table handle, also a read-only one; not NULL.
/// @param now   the caller's clock, ticks.
/// @param image buffer outside the table's memory, aligned to 8 bytes; not NULL.
/// @param bytes length of the buffer; image_bytes of tatcell_table_info_t is enough.
/// @param used  gets the number of bytes written; NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_BUFFER the buffer is too small; nothing is written.
/// @retval TATCELL_ERR_OVERLAP the buffer overlaps the table's memory or the handle.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE, TATCELL_ERR_TOO_LARGE bad argument.
/// Thread: during any other call; a live table is saved word by word. Cost: reads all of it. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_save(
    table: *const tatcell_table_t,
    now: u64,
    image: *mut c_void,
    bytes: usize,
    used: *mut usize,
) -> i32 {
    args!(
        c,
        seen = c.seen(table),
        used = c.result_if(used),
        () = possible(image.cast::<u64>(), bytes),
        () = Span::bytes(image, bytes).apart_from(&[own_memory(seen), Span::of(table, 1)]),
        image = c.buffer(image.cast::<u64>(), bytes)
    );
    match look!(seen, t => t.save(now, image)) {
        Ok(n) => {
            if let Some(out) = used {
                out.put(n * size_of::<u64>());
            }
            TATCELL_PASS
        }
        Err(e) => table_code(e),
    }
}

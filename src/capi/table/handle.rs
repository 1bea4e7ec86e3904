//! `tatcell_table_*`, first part: handles and images.

use core::ffi::c_void;

use super::options::{tatcell_attach_options_t, tatcell_table_options_t, TATCELL_TABLE_EXCLUSIVE};
use crate::capi::codes::{table_code, TATCELL_ERR_HANDLE, TATCELL_ERR_WRONG_SIZE, TATCELL_PASS};
use crate::capi::pointers::contract::{args, inside, possible, Contract, Marked, Out};
use crate::capi::pointers::places::Span;
use crate::combine::link::{either, TableRef};
use crate::keys::aes::AesKeys;
use crate::keys::Hasher;
use crate::limit::params::{self, Kind};
use crate::limit::TableLimit;
use crate::table::{Access, Exclusive, Line, Shared, Table, TableError};

/// Bytes of a tatcell_table_t: of the handle, not of the table (see tatcell_table_bytes). This size never changes.
pub const TATCELL_TABLE_HANDLE_SIZE: usize = 512;
/// Alignment of a tatcell_table_t.
pub const TATCELL_TABLE_HANDLE_ALIGN: usize = 8;
/// Alignment of table memory.
pub const TATCELL_TABLE_MEMORY_ALIGN: usize = 64;

/// Handle of a table. It is small, private to one process, and holds the secret seed. All state is in the table
/// memory. An init call initialises the handle. After that it is read-only, and any number of threads may use it at
/// once. The library refuses a zeroed handle, and a handle of another version of the library, with
/// TATCELL_ERR_HANDLE.
#[repr(C, align(8))]
pub struct tatcell_table_t {
    /// Private to the library.
    pub opaque: [u64; 64],
}

/// The contents of a tatcell_table_t.
#[repr(C)]
pub(in crate::capi) struct Handle {
    /// `READY`.
    mark: u64,
    /// Not 0 if the shortest path may be taken: a shared table with a [short](Hasher::Short) hasher.
    short: u64,
    /// What a prepared burst carries: the same for tables that make the same hashes of the same keys. Never 0.
    pub ticket: u64,
    pub table: Any,
}

impl Handle {
    /// Returns the table as `either!` and links take it.
    #[inline(always)]
    pub fn table(&self) -> TableRef<'_> {
        match &self.table {
            Any::Shared(table) => TableRef::Shared(table),
            Any::Exclusive(table) => TableRef::Exclusive(table),
        }
    }
}

/// "tatcell", kind of object, version of `Handle`: raised whenever it, `Table` or `Geometry` change.
const READY: u64 = 0x7461_7463_656c_6807;

/// Either form of a table.
pub(in crate::capi) enum Any {
    Shared(Table<'static, Shared>),
    Exclusive(Table<'static, Exclusive>),
}

const _: () = assert!(size_of::<tatcell_table_t>() == TATCELL_TABLE_HANDLE_SIZE);
const _: () = assert!(align_of::<tatcell_table_t>() == TATCELL_TABLE_HANDLE_ALIGN);
const _: () = assert!(size_of::<Handle>() <= TATCELL_TABLE_HANDLE_SIZE);
const _: () = assert!(align_of::<Handle>() <= TATCELL_TABLE_HANDLE_ALIGN);
const _: () = assert!(align_of::<Line>() == TATCELL_TABLE_MEMORY_ALIGN);

// SAFETY: its mark comes first, and only `publish` writes that, with all of a Handle behind it.
unsafe impl Marked for Handle {
    const MARK: u64 = READY;
    const ERROR: i32 = TATCELL_ERR_HANDLE;
}

/// A handle with which the shortest path may be taken.
#[derive(Clone, Copy)]
pub(in crate::capi) struct Short<'a>(&'a Handle);

impl Handle {
    /// Returns the shortest path if this limit may take it. The limit's mark alone is not enough: a caller's limit may
    /// hold any bytes, and the handle decides what is read as round keys.
    #[inline(always)]
    pub(in crate::capi) fn short(&self, limit: &TableLimit) -> Option<Short<'_>> {
        let short = (self.short != 0).then_some(Short(self))?;
        (limit.0.fingerprint == short.parts().0.whole).then_some(short)
    }
}

impl<'a> Short<'a> {
    /// Returns its table, and the round keys of that.
    #[inline(always)]
    pub(in crate::capi) fn parts(self) -> (&'a Table<'static, Shared>, &'a AesKeys) {
        match &self.0.table {
            Any::Shared(table @ Table { hasher: Hasher::Short(keys), .. }) => (table, keys),
            // SAFETY: `publish` makes no other handle short.
            _ => unsafe { core::hint::unreachable_unchecked() },
        }
    }
}

impl<'a> Contract<'a> {
    /// Returns the contents of a handle.
    #[inline(always)]
    pub(in crate::capi) fn handle(self, p: *const tatcell_table_t) -> Result<&'a Handle, i32> {
        self.marked(inside(p))
    }
}

/// Writes a handle, if there is one, and returns the code.
pub(in crate::capi) fn publish(made: Result<Any, TableError>, out: Out<'_, tatcell_table_t>) -> i32 {
    match made {
        Ok(table) => {
            let ticket = match &table {
                Any::Shared(t) => ticket(t),
                Any::Exclusive(t) => ticket(t),
            };
            let short = matches!(&table, Any::Shared(Table { hasher: Hasher::Short(_), .. })) as u64;
            out.put_inside(Handle { mark: READY, short, ticket, table });
            TATCELL_PASS
        }
        Err(e) => table_code(e),
    }
}

fn ticket<M: Access>(table: &Table<'_, M>) -> u64 {
    let g = &table.geometry;
    params::fingerprint(Kind::Table, [g.seed_check, g.hash as u64, g.lines as u64, g.fingerprint])
}

/// Formats memory as a fresh table, in which all keys are absent.
///
/// @param table   handle to initialise, outside the memory; not NULL.
/// @param memory  aligned to 64 bytes; not NULL. It belongs to the table from now on, at this or any other address.
/// @param bytes   of memory; see tatcell_table_bytes and TATCELL_TABLE_BYTES.
/// @param options started from TATCELL_TABLE_OPTIONS_INIT; not NULL. Copied.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_TOO_SMALL less than two header lines and one set (256 bytes); TATCELL_ERR_TOO_LARGE too
///         large.
/// @retval TATCELL_ERR_OVERLAP the handle lies in the memory.
/// @retval TATCELL_ERR_SEED there is no seed; TATCELL_ERR_HASH_UNAVAILABLE this processor cannot compute the hash.
/// @retval TATCELL_ERR_OPTION a value is unknown or out of range; a table of overrides has a limit; or the claim
///         lifetime is above half of the shortest emission interval, or, if words hold a count, above one unit of
///         time.
/// @retval TATCELL_ERR_SPAN fastest and slowest limit do not fit one word: tatcell_table_options_fit says what
///         does.
/// @retval TATCELL_ERR_ALGORITHM fastest and slowest have different algorithms.
/// @retval TATCELL_ERR_INHERIT a new key cannot inherit a count, and an override cannot be dropped: use
///         TATCELL_FULL_DENY, which also fails closed.
/// @retval TATCELL_ERR_MODE with TATCELL_TABLE_ZEROED: the header is not zero.
/// @retval a limit's error from fastest or slowest. Nothing is changed on error.
/// Thread: one, before any other uses the memory. Cost: writes all of it, unless TATCELL_TABLE_ZEROED is set.
/// Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_init(
    table: *mut tatcell_table_t,
    memory: *mut c_void,
    bytes: usize,
    options: *const tatcell_table_options_t,
) -> i32 {
    args!(
        c,
        out = c.result(table),
        lines = c.lines(memory, bytes),
        given = c.options(options),
        options = c.table_options(&given),
        () = Span::of(table, 1).apart(Span::bytes(memory, bytes))
    );
    let made = if given.flags & TATCELL_TABLE_EXCLUSIVE != 0 {
        Table::<Exclusive>::init_as(lines, &options).map(Any::Exclusive)
    } else {
        Table::<Shared>::init_as(lines, &options).map(Any::Shared)
    };
    publish(made, out)
}

/// Attaches to a table that another process (or this one) has initialised in this memory.
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
        (options, exclusive) = c.attach_options(options),
        () = Span::of(table, 1).apart(Span::bytes(memory, bytes))
    );
    let made = if exclusive {
        Table::<Exclusive>::attach_as(lines, &options).map(Any::Exclusive)
    } else {
        Table::<Shared>::attach_as(lines, &options).map(Any::Shared)
    };
    publish(made, out)
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
        (options, exclusive) = c.attach_options(options),
        () = Span::bytes(memory, bytes).apart_from(&others)
    );
    let lines = whole_sets(lines);
    let made = if exclusive {
        Table::<Exclusive>::restore_as(lines, image, &options, clock_offset).map(Any::Exclusive)
    } else {
        Table::<Shared>::restore_as(lines, image, &options, clock_offset).map(Any::Shared)
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

/// Returns the memory of a table, header included.
pub(in crate::capi) fn own_memory(handle: &Handle) -> Span {
    let (words, slots) = either!(handle.table(), t => (t.image_words(), t.slots));
    let bytes = words.wrapping_mul(size_of::<u64>());
    let header = bytes.wrapping_sub(size_of_val(slots));
    Span::bytes(slots.as_ptr().wrapping_byte_sub(header), bytes)
}

/// Copies the image of a table, each word whole. Keys that have expired at now are left out.
///
/// @param table handle; not NULL.
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
        handle = c.handle(table),
        used = c.result_if(used),
        () = possible(image.cast::<u64>(), bytes),
        () = Span::bytes(image, bytes).apart_from(&[own_memory(handle), Span::of(table, 1)]),
        image = c.buffer(image.cast::<u64>(), bytes)
    );
    match either!(handle.table(), t => t.save(now, image)) {
        Ok(n) => {
            if let Some(out) = used {
                out.put(n * size_of::<u64>());
            }
            TATCELL_PASS
        }
        Err(e) => table_code(e),
    }
}

/// Returns sizeof(tatcell_table_t) of the linked library, to compare with TATCELL_TABLE_HANDLE_SIZE. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_table_handle_size() -> usize {
    TATCELL_TABLE_HANDLE_SIZE
}

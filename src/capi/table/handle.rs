//! `tatcell_table_*`, first part: handles, and fresh tables.

use core::ffi::c_void;

use super::options::{tatcell_table_options_t, TATCELL_TABLE_EXCLUSIVE};
use crate::capi::codes::{table_code, TATCELL_ERR_HANDLE, TATCELL_PASS};
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, inside, Contract, Marked, Out};
use crate::capi::pointers::places::Span;
use crate::combine::link::TableRef;
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
    /// `SHORT` if the shortest path may be taken: a shared table with a [short](Hasher::Short) hasher. Else 0.
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
const READY: u64 = 0x7461_7463_656c_6808;
/// The second mark of a handle with which the shortest path may be taken. It says all that `READY` says.
const SHORT: u64 = !READY;

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

    /// Tests the arguments of a check together, and returns them if the shortest path may be taken with this table and
    /// limit. The limit's mark alone is not enough: a caller's limit may hold any bytes, and the handle decides what is
    /// read as round keys.
    #[inline(always)]
    pub(super) fn short_asked(
        self,
        table: *const tatcell_table_t,
        limit: *const tatcell_limit_t,
        retry: *mut u64,
    ) -> Option<(Short<'a>, &'a TableLimit, Option<Out<'a, u64>>)> {
        const { assert!(core::mem::offset_of!(Handle, short) == 8) };
        let asked =
            self.together_by::<Handle, TableLimit, _>((1, SHORT), inside(table), inside(limit), retry);
        let (table, limit, retry) = asked?;
        let short = Short(table);
        (limit.0.fingerprint == short.parts().0.whole).then_some((short, limit, retry))
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
            let short = matches!(&table, Any::Shared(Table { hasher: Hasher::Short(_), .. }));
            let short = if short { SHORT } else { 0 };
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

/// Returns sizeof(tatcell_table_t) of the linked library, to compare with TATCELL_TABLE_HANDLE_SIZE. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_table_handle_size() -> usize {
    TATCELL_TABLE_HANDLE_SIZE
}

//! Handles of any kind for calls that only look: those of `TATCELL_TABLE_READ_ONLY` among them.

use super::handle::{tatcell_table_t, Any, Handle};
use crate::capi::codes::{table_code, TATCELL_ERR_HANDLE, TATCELL_PASS};
use crate::capi::pointers::contract::{inside, Contract, Marked, Out};
use crate::capi::pointers::places::Span;
use crate::table::{ExclusiveTable, ReadOnlyTable, Table, TableError};

/// The contents of a tatcell_table_t that only looks. It has a mark of its own, so every other call refuses it.
#[repr(C)]
struct Reader {
    mark: u64,
    table: ReadOnlyTable<'static>,
}

/// As the mark of a [`Handle`], for a `Reader`.
const READER: u64 = 0x7461_7463_656c_7207;

const _: () = assert!(size_of::<Reader>() <= size_of::<tatcell_table_t>());

// SAFETY: its mark comes first, and only `publish_reader` writes that, with all of a Reader behind it.
unsafe impl Marked for Reader {
    const MARK: u64 = READER;
    const ERROR: i32 = TATCELL_ERR_HANDLE;
}

/// The table of any handle.
#[derive(Clone, Copy)]
pub(in crate::capi) enum Seen<'a> {
    Shared(&'a Table<'static>),
    Exclusive(&'a ExclusiveTable<'static>),
    ReadOnly(&'a ReadOnlyTable<'static>),
}

impl Handle {
    /// Returns the table for a call that only looks.
    pub(in crate::capi) fn seen(&self) -> Seen<'_> {
        match &self.table {
            Any::Shared(table) => Seen::Shared(table),
            Any::Exclusive(table) => Seen::Exclusive(table),
        }
    }
}

/// Runs an expression that only looks, on a table of any mode.
macro_rules! look {
    ($seen:expr, $t:ident => $run:expr) => {
        match $seen {
            $crate::capi::table::seen::Seen::Shared($t) => $run,
            $crate::capi::table::seen::Seen::Exclusive($t) => $run,
            $crate::capi::table::seen::Seen::ReadOnly($t) => $run,
        }
    };
}
pub(in crate::capi) use look;

impl<'a> Contract<'a> {
    /// Returns the table of a handle, for a call that only looks.
    pub(in crate::capi) fn seen(self, p: *const tatcell_table_t) -> Result<Seen<'a>, i32> {
        match self.handle(p) {
            Ok(handle) => Ok(handle.seen()),
            Err(_) => self.marked::<Reader>(inside(p)).map(|reader| Seen::ReadOnly(&reader.table)),
        }
    }
}

/// Writes a handle that only looks, if there is one, and returns the code.
pub(super) fn publish_reader(
    made: Result<ReadOnlyTable<'static>, TableError>,
    out: Out<'_, tatcell_table_t>,
) -> i32 {
    match made {
        Ok(table) => {
            out.put_inside(Reader { mark: READER, table });
            TATCELL_PASS
        }
        Err(e) => table_code(e),
    }
}

/// Returns the memory of a table, header included.
pub(in crate::capi) fn own_memory(seen: Seen<'_>) -> Span {
    let (words, slots) = look!(seen, t => (t.image_words(), t.slots));
    let bytes = words.wrapping_mul(size_of::<u64>());
    let header = bytes.wrapping_sub(size_of_val(slots));
    Span::bytes(slots.as_ptr().wrapping_byte_sub(header), bytes)
}

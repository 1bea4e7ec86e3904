//! `tatcell_table_migrate`: the debts of a table in memory of another size, or under other options.

use core::ffi::c_void;

use super::codes::{table_code, TATCELL_ERR_TOO_LARGE, TATCELL_PASS};
use super::kit::{args, lines, options, report_if, result, Grows, Report, Span};
use super::table::{either, handle, own_memory, publish, tatcell_table_t, Any};
use super::table_options::{table_options, tatcell_table_options_t, TATCELL_TABLE_EXCLUSIVE};
use crate::table::{Exclusive, Line, Migrated, Shared};

/// Bytes of a tatcell_migrated_t in its first release: the least that a library takes.
pub const TATCELL_MIGRATED_MIN: usize = 48;

/// What became of the debts of a table that was migrated. One debt has as many copies as its key may have sets in the
/// new table; copied, merged and dropped add up to all copies. Nothing was forgiven if dropped, clamped and opened
/// are 0.
#[repr(C)]
pub struct tatcell_migrated_t {
    /// sizeof(tatcell_migrated_t); never written.
    pub size: u32,
    /// 0.
    pub reserved: u32,
    /// Copies that have a slot of the new table.
    pub copied: u64,
    /// Copies that share the slot of a larger debt of the same tag.
    pub merged: u64,
    /// Copies that found their set full of larger debts: forgiven under TATCELL_FULL_ADMIT and TATCELL_FULL_SAMPLED;
    /// otherwise the set stays full until they would have drained.
    pub dropped: u64,
    /// Copies with a debt above the new table's horizon, which was cut to that.
    pub clamped: u64,
    /// Sets whose absent keys may have owed something, where the old table inherits or denies and the new one does
    /// not. They are forgiven.
    pub opened: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_migrated_t {
    const FIRST: usize = TATCELL_MIGRATED_MIN;
}
const _: () = assert!(size_of::<tatcell_migrated_t>() == 2 * 4 + 5 * 8);

fn fill(made: Migrated, out: Option<Report<tatcell_migrated_t>>) {
    let Migrated { copied, merged, dropped, clamped, opened } = made;
    if let Some(out) = out {
        out.put(&tatcell_migrated_t { size: 0, reserved: 0, copied, merged, dropped, clamped, opened });
    }
}

/// Formats memory as a fresh table that knows the debts of another one, in another geometry: other size, policy,
/// resolution, horizon or skew, fewer tag bits. As tatcell_table_init otherwise.
///
/// Every key owes there at least what it owes in the old table, but for what the report calls dropped, clamped or
/// opened; a whole multiple of the slots drops nothing. Permits of the old table are worth nothing in the new one;
/// limits are made anew. Whoever still decides by the old table meanwhile may be forgiven what it charges: stop first.
///
/// @param old      the table so far; not NULL.
/// @param now      the caller's clock, ticks.
/// @param memory   of the new table, aligned to 64 bytes, apart from the old one's; not NULL.
/// @param bytes    of memory; see tatcell_table_bytes.
/// @param options  of the new table, with the old one's hash and seed; started from TATCELL_TABLE_OPTIONS_INIT; not
///                 NULL. Copied.
/// @param table    handle to initialise, another one than old; not NULL.
/// @param migrated started from TATCELL_MIGRATED_INIT: what became of the debts; NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_WRONG_SEED, TATCELL_ERR_HASH the tables do not hash alike.
/// @retval TATCELL_ERR_MODE another tick_hz, where both name one.
/// @retval TATCELL_ERR_OVERLAP two of the memories and handles overlap.
/// @retval TATCELL_ERR_OPTION also more tag bits than the old table has.
/// @retval TATCELL_ERR_HANDLE old is not initialised.
/// @retval others as tatcell_table_init. Nothing is changed on error.
/// Thread: one, before anybody uses the memory; nobody decides by the old table. Cost: reads all of the old table,
/// once or twice, and writes all of the new one. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_migrate(
    old: *const tatcell_table_t,
    now: u64,
    memory: *mut c_void,
    bytes: usize,
    options: *const tatcell_table_options_t,
    table: *mut tatcell_table_t,
    migrated: *mut tatcell_migrated_t,
) -> i32 {
    let handle = args!(handle(old));
    let own = either!(handle, t => own_memory(t));
    let others = [own, Span::of(table, 1), Span::of(old, 1), Span::of(migrated, 1)];
    let (out, lines, given, report, (), ()) = args!(
        result(table),
        lines(memory, bytes),
        self::options(options),
        report_if(migrated),
        Span::bytes(memory, bytes).apart_from(&others),
        Span::of(table, 1).apart_from(&[own, Span::of(old, 1), Span::of(migrated, 1)]),
    );
    let options = args!(table_options(&given));
    let made = if given.flags & TATCELL_TABLE_EXCLUSIVE != 0 {
        either!(handle, t => t.migrate_as::<Exclusive>(lines, &options, now))
            .map(|(table, report)| (Any::Exclusive(table), report))
    } else {
        either!(handle, t => t.migrate_as::<Shared>(lines, &options, now))
            .map(|(table, report)| (Any::Shared(table), report))
    };
    match made {
        Ok((table, made)) => {
            fill(made, report);
            publish(Ok(table), out)
        }
        Err(e) => table_code(e),
    }
}

/// Tells what tatcell_table_migrate into memory of this size would report, without any memory.
///
/// @param old      the table so far; not NULL.
/// @param now      the caller's clock, ticks.
/// @param bytes    of the new table's memory; see tatcell_table_bytes.
/// @param options  as tatcell_table_migrate; not NULL.
/// @param migrated started from TATCELL_MIGRATED_INIT; not NULL.
/// @retval 0 done.
/// @retval others as tatcell_table_migrate. Nothing is changed on error.
/// Thread: beside any other call; only reads. Cost: as the migration. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_migrate_plan(
    old: *const tatcell_table_t,
    now: u64,
    bytes: usize,
    options: *const tatcell_table_options_t,
    migrated: *mut tatcell_migrated_t,
) -> i32 {
    if bytes > isize::MAX as usize {
        return TATCELL_ERR_TOO_LARGE;
    }
    let (handle, given, report) = args!(handle(old), self::options(options), super::kit::report(migrated));
    let options = args!(table_options(&given));
    match either!(handle, t => t.foresee_migration(bytes / size_of::<Line>(), &options, now)) {
        Ok(made) => {
            fill(made, Some(report));
            TATCELL_PASS
        }
        Err(e) => table_code(e),
    }
}

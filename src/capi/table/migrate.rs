//! `tatcell_table_migrate`: a table in another geometry that knows the debts of an old one.

use core::ffi::c_void;

use super::handle::{publish, tatcell_table_t, Any};
use super::options::{tatcell_table_options_t, TATCELL_TABLE_EXCLUSIVE};
use super::seen::own_memory;
use crate::capi::codes::{table_code, TATCELL_PASS};
use crate::capi::pointers::contract::{args, Grows, Out, Report};
use crate::capi::pointers::places::Span;
use crate::combine::link::either;
use crate::table::{Exclusive, Line, Migrated, Shared, Table, TableError};

/// Bytes of a tatcell_migrated_t in its first release: the least size that a library accepts.
pub const TATCELL_MIGRATED_MIN: usize = 48;

/// Report of a migration: what happened to the debts of the old table. The new table gets one copy of a debt for
/// each set that its key may belong to. copied, merged and dropped add up to all copies. Nothing was forgiven if
/// dropped, clamped and opened are 0. (Not in the report: a sliding counter or a decaying level under a limit of
/// another length; see tatcell_table_migrate.)
#[repr(C)]
pub struct tatcell_migrated_t {
    /// sizeof(tatcell_migrated_t); never written.
    pub size: u32,
    /// Always 0.
    pub reserved: u32,
    /// Copies that got a slot of the new table.
    pub copied: u64,
    /// Copies that share the slot of a larger debt with the same tag.
    pub merged: u64,
    /// Copies whose set was full of larger debts. Their debt is forgiven under TATCELL_FULL_ADMIT and
    /// TATCELL_FULL_SAMPLED.
    pub dropped: u64,
    /// Copies whose debt was above the new table's horizon (above that of new_limit, if units are kept), or that had
    /// counted more than the new words hold, and were cut to that.
    pub clamped: u64,
    /// Sets of the new table whose absent keys may have had a debt in the old table, and have none now.
    pub opened: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_migrated_t {
    const FIRST: usize = TATCELL_MIGRATED_MIN;
}
const _: () = assert!(size_of::<tatcell_migrated_t>() == 2 * 4 + 5 * 8);

fn tell(made: &Migrated, out: Report<'_, tatcell_migrated_t>) {
    let Migrated { copied, merged, dropped, clamped, opened } = *made;
    out.put(&tatcell_migrated_t { size: 0, reserved: 0, copied, merged, dropped, clamped, opened });
}

fn finish(
    made: Result<(Any, Migrated), TableError>,
    out: Out<'_, tatcell_table_t>,
    report: Report<'_, tatcell_migrated_t>,
) -> i32 {
    match made {
        Ok((made, told)) => {
            tell(&told, report);
            publish(Ok(made), out)
        }
        Err(e) => table_code(e),
    }
}

/// Formats memory as a fresh table that carries over the debts of another one. The new table may have another size,
/// policy, resolution, horizon or skew, and fewer tag bits. Its seed and hash must be the same.
///
/// In the new table every key owes at least what it owed, except for what the report counts as dropped, clamped or
/// opened. A new table with a whole multiple of the slots drops nothing. Permits of the old table credit nothing in
/// the new one. Make its limits anew.
///
/// A debt keeps its time, so raising a limit does not help a key that has used up its burst. old_limit and new_limit of
/// the options keep units instead. Windows and quotas keep their counts, and the ends of their windows.
///
/// The table does not know the limits of its keys, so the report does not show what another window or half-life does. A
/// fixed window and a linear quota keep count and end under any new length. A sliding counter and a decaying level are
/// read by the length of the limit: under a longer one a key has used less than before, under a shorter one more. With
/// old_limit and new_limit a level is kept, and sliding counters of another length are refused.
///
/// @param table    handle to initialise, outside the memory; not NULL.
/// @param memory   aligned to 64 bytes, outside the old table's; not NULL. Its content is lost.
/// @param bytes    of memory.
/// @param options  of the new table, started from TATCELL_TABLE_OPTIONS_INIT; not NULL. Copied.
/// @param from     handle of the old table; not NULL.
/// @param now      the caller's clock, ticks.
/// @param migrated started from TATCELL_MIGRATED_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_HASH, TATCELL_ERR_WRONG_SEED the tables do not hash alike.
/// @retval TATCELL_ERR_OPTION as tatcell_table_init, or more tag bits than the old table has.
/// @retval TATCELL_ERR_MODE both tables state a frequency of the clock, and the two differ.
/// @retval TATCELL_ERR_ALGORITHM the tables have different algorithms, or hold overrides.
/// @retval TATCELL_ERR_KEEP_WINDOW the windows of old_limit and new_limit differ in length; or without these limits a
///         table of sliding counters would get another unit of time.
/// @retval TATCELL_ERR_OVERLAP the memory overlaps the old table's memory or a handle.
/// @retval others as tatcell_table_init. Nothing is changed on error.
/// Thread: one, before any other uses the memory. Charges that other threads make to the old table meanwhile may be
/// lost. Cost: reads the old table once or twice, writes the new one. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_migrate(
    table: *mut tatcell_table_t,
    memory: *mut c_void,
    bytes: usize,
    options: *const tatcell_table_options_t,
    from: *const tatcell_table_t,
    now: u64,
    migrated: *mut tatcell_migrated_t,
) -> i32 {
    args!(
        c,
        out = c.result(table),
        lines = c.lines(memory, bytes),
        given = c.options(options),
        from_handle = c.handle(from),
        report = c.report(migrated),
        options = c.table_options(&given),
        old = Ok(own_memory(from_handle.seen())),
        () = Span::bytes(memory, bytes).apart_from(&[Span::of(table, 1), Span::of(from, 1), old]),
        () = Span::of(table, 1).apart_from(&[Span::of(from, 1), old])
    );
    let made = if given.flags & TATCELL_TABLE_EXCLUSIVE != 0 {
        either!(from_handle.table(), t => t.migrate_as::<Exclusive>(lines, &options, now))
            .map(|(table, told)| (Any::Exclusive(table), told))
    } else {
        either!(from_handle.table(), t => t.migrate_as::<Shared>(lines, &options, now))
            .map(|(table, told)| (Any::Shared(table), told))
    };
    finish(made, out, report)
}

/// Reports what tatcell_table_migrate would report, without memory for the new table.
///
/// @param from     handle of the old table; not NULL.
/// @param bytes    of the memory that the new table would have.
/// @param options  of the new table, started from TATCELL_TABLE_OPTIONS_INIT; not NULL.
/// @param now      the caller's clock, ticks.
/// @param migrated started from TATCELL_MIGRATED_INIT; not NULL.
/// @retval 0 done.
/// @retval others as tatcell_table_migrate.
/// Thread: during any other call. Cost: as tatcell_table_migrate, but it only reads. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_migrate_foresee(
    from: *const tatcell_table_t,
    bytes: usize,
    options: *const tatcell_table_options_t,
    now: u64,
    migrated: *mut tatcell_migrated_t,
) -> i32 {
    args!(
        c,
        from = c.handle(from),
        given = c.options(options),
        out = c.report(migrated),
        options = c.table_options(&given)
    );
    match either!(from.table(), t => t.foresee_migration(bytes / size_of::<Line>(), &options, now)) {
        Ok(told) => {
            tell(&told, out);
            TATCELL_PASS
        }
        Err(e) => table_code(e),
    }
}

/// Migrates a table in its own memory while nobody calls it. It does what tatcell_table_migrate does into as many
/// slots, for programs that have no second memory or must keep the place of the table.
///
/// The call withdraws the image before it changes the first word. It publishes the image after the last word, with a
/// generation that is one higher. So if the caller is killed meanwhile, tatcell_table_attach and this function return
/// TATCELL_ERR_NOT_READY from then on: format the memory again, or restore a saved image. A second call after success
/// names the old generation and is refused, so no debt is scaled twice. Older permits credit nothing. Attach every
/// other handle again, and make all limits anew.
///
/// @param table      handle to initialise; not NULL. It may be the present handle of the table. Unchanged on error.
/// @param memory     that of the table; not NULL.
/// @param bytes      of memory.
/// @param generation the present one of the table, from tatcell_table_info.
/// @param options    of the table from now on, started from TATCELL_TABLE_OPTIONS_INIT; not NULL. Its
///                   TATCELL_TABLE_EXCLUSIVE must be that of the table.
/// @param now        the caller's clock, ticks.
/// @param migrated   started from TATCELL_MIGRATED_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_MODE the table has another generation, because the migration is done; or the options contradict
///         the table's mode or its clock.
/// @retval TATCELL_ERR_NOT_READY the memory holds no table, or another caller migrates it or was killed in a migration.
/// @retval others as tatcell_table_migrate and tatcell_table_attach. Nothing is changed on error.
/// Thread: one, and nobody else uses the table. Cost: reads and writes the table once. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_migrate_in_place(
    table: *mut tatcell_table_t,
    memory: *mut c_void,
    bytes: usize,
    generation: u64,
    options: *const tatcell_table_options_t,
    now: u64,
    migrated: *mut tatcell_migrated_t,
) -> i32 {
    args!(
        c,
        out = c.result(table),
        lines = c.lines(memory, bytes),
        given = c.options(options),
        report = c.report(migrated),
        options = c.table_options(&given),
        () = Span::bytes(memory, bytes).apart_from(&[Span::of(table, 1)])
    );
    let made = if given.flags & TATCELL_TABLE_EXCLUSIVE != 0 {
        Table::<Exclusive>::migrate_in_place_as(lines, generation, &options, now)
            .map(|(table, told)| (Any::Exclusive(table), told))
    } else {
        Table::<Shared>::migrate_in_place_as(lines, generation, &options, now)
            .map(|(table, told)| (Any::Shared(table), told))
    };
    finish(made, out, report)
}

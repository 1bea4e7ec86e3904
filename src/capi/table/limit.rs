//! `tatcell_limit_init_*table`: limits for the keys of one table.

use super::handle::tatcell_table_t;
use crate::capi::codes::table_code;
use crate::capi::limit::limit::{spec, store, tatcell_limit_spec_t, tatcell_limit_t};
use crate::capi::pointers::contract::args;
use crate::combine::link::either;

/// Makes a limit for the keys of one table. Different keys may have different limits.
///
/// In a table the rate is never exceeded. Rounding lowers it by at most 0.1 % (1 / 1024); tatcell_limit_info
/// reports by how much. It is exact if the emission interval is a whole number of q-units. The limit is valid for
/// every table with the same resolution, horizon, skew and claim lifetime. Other tables refuse it with
/// TATCELL_ERR_FOREIGN.
///
/// @param limit to initialise; not NULL.
/// @param table handle; not NULL.
/// @param spec  started from TATCELL_LIMIT_SPEC_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_TOO_FAST the limit is faster, has a longer horizon, or counts more than the table's options
///         provide for.
/// @retval TATCELL_ERR_ALGORITHM the limit has another algorithm than the table.
/// @retval TATCELL_ERR_HANDLE table is not initialised.
/// @retval others as tatcell_limit_init_spec.
/// Thread: one writer of limit. Cost: as tatcell_limit_init. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_table(
    limit: *mut tatcell_limit_t,
    table: *const tatcell_table_t,
    spec: *const tatcell_limit_spec_t,
) -> i32 {
    args!(
        c,
        limit = c.result(limit),
        table = c.handle(table),
        given = c.options(spec),
        spec = self::spec(&given),
        made = either!(table.table(), t => t.limit(&spec)).map_err(table_code)
    );
    store(Ok(made.0), limit)
}

/// Makes an unlimited limit for one table, for exempt keys: every request conforms to it. These keys use no slot.
///
/// @param limit to initialise; not NULL.
/// @param table handle; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: one writer of limit. Cost: none. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_unlimited_table(
    limit: *mut tatcell_limit_t,
    table: *const tatcell_table_t,
) -> i32 {
    args!(c, limit = c.result(limit), table = c.handle(table));
    store(Ok(either!(table.table(), t => t.unlimited()).0), limit)
}

//! `tatcell_host_table_*`: a table with its memory, seed and limit, in one call.

use core::mem::forget;

use super::{host_code, tatcell_host_memory_t, unmap, TATCELL_HOST_MEMORY_MIN};
use crate::capi::codes::{table_code, TATCELL_PASS};
use crate::capi::limit::limit::{spec, store, tatcell_limit_spec_t, tatcell_limit_t};
use crate::capi::pointers::contract::{args, Grows};
use crate::capi::table::handle::{publish, tatcell_table_t, Any};
use crate::capi::table::options::policy;
use crate::capi::table::upkeep::tatcell_sweeper_t;
use crate::host::{memory_for, random_seed};
use crate::table::{Table, TableOptions};

/// Bytes of a tatcell_host_table_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_HOST_TABLE_MIN: usize = 24
    + size_of::<tatcell_table_t>()
    + size_of::<tatcell_limit_t>()
    + size_of::<tatcell_sweeper_t>()
    + TATCELL_HOST_MEMORY_MIN;

/// A table with its memory, its seed and one limit for all its keys. Start from TATCELL_HOST_TABLE_INIT.
#[repr(C)]
pub struct tatcell_host_table_t {
    /// sizeof(tatcell_host_table_t); never written.
    pub size: u32,
    /// Private to the library.
    pub reserved: u32,
    /// The secret seed of the table, for a second process or a restore.
    pub seed: [u8; 16],
    /// The table, for all calls that take one.
    pub table: tatcell_table_t,
    /// The limit of its keys.
    pub limit: tatcell_limit_t,
    /// Its sweeper, for tatcell_table_sweep_due and tatcell_table_peek_time.
    pub sweeper: tatcell_sweeper_t,
    /// Its memory. memory.system_error is the errno with TATCELL_ERR_SYSTEM.
    pub memory: tatcell_host_memory_t,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_host_table_t {
    const FIRST: usize = TATCELL_HOST_TABLE_MIN;
}
const _: () = assert!(size_of::<tatcell_host_table_t>() == TATCELL_HOST_TABLE_MIN);

impl tatcell_host_table_t {
    const fn none(system_error: i32) -> tatcell_host_table_t {
        tatcell_host_table_t {
            size: 0,
            reserved: 0,
            seed: [0; 16],
            table: tatcell_table_t { opaque: [0; 64] },
            limit: tatcell_limit_t { opaque: [0; 16] },
            sweeper: tatcell_sweeper_t { opaque: 0 },
            memory: tatcell_host_memory_t {
                size: TATCELL_HOST_MEMORY_MIN as u32,
                system_error,
                ..tatcell_host_memory_t::NONE
            },
        }
    }
}

/// Opens a table in which each key has one limit: takes memory from the system, on huge pages if there are any, and a
/// seed from the system's random source, and initialises handle and limit.
///
/// While `keys` keys are in debt at the same time, a new key finds its set full with a chance of one in a million, and
/// then the policy decides. A key takes about 35 bytes. Check a key with
/// tatcell_table_check(&t.table, &t.limit, now, key, length, cost, &retry_after), and call
/// tatcell_table_sweep_due(&t.table, &t.sweeper, now) before.
///
/// @param spec   the limit, started from TATCELL_LIMIT_SPEC_INIT; not NULL. Its ticks are yours.
/// @param keys   keys that are in debt at the same time; not 0.
/// @param policy a TATCELL_FULL_ constant.
/// @param out    started from TATCELL_HOST_TABLE_INIT; not NULL. Close it with tatcell_host_table_close. On error it is
///               empty.
/// @retval 0 done.
/// @retval TATCELL_ERR_TOO_SMALL keys is 0; TATCELL_ERR_TOO_LARGE no table is large enough for them.
/// @retval TATCELL_ERR_OPTION unknown policy.
/// @retval TATCELL_ERR_SYSTEM no memory or no random bytes; the errno is in out->memory.system_error.
/// @retval TATCELL_ERR_UNSUPPORTED the system has no random source.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval others as tatcell_limit_init_spec and tatcell_table_init.
/// Thread: one. Cost: some system calls; writes all of the memory. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_table_open(
    spec: *const tatcell_limit_spec_t,
    keys: usize,
    policy: u32,
    out: *mut tatcell_host_table_t,
) -> i32 {
    let mut made = tatcell_host_table_t::none(0);
    args!(
        c,
        place = c.report(out),
        given = c.options(spec),
        spec = self::spec(&given),
        policy = self::policy(policy),
        table = c.result(&raw mut made.table),
        limit = c.result(&raw mut made.limit),
    );
    let (memory, seed) = match memory_for(keys).and_then(|memory| Ok((memory, random_seed()?))) {
        Ok(both) => both,
        Err(e) => {
            let (code, errno) = host_code(e, keys);
            place.put(&tatcell_host_table_t::none(errno));
            return code;
        }
    };
    args!(c, lines = c.lines(memory.as_ptr().cast(), memory.bytes()));
    let opened = Table::init_as(lines, &TableOptions::new(spec).seed(seed).policy(policy));
    let code = match opened.and_then(|t| Ok((t.limit(&spec)?, t))) {
        Ok((own, opened)) => {
            store(Ok(own.0), limit);
            publish(Ok(Any::Shared(opened)), table)
        }
        Err(e) => table_code(e),
    };
    if code != TATCELL_PASS {
        place.put(&tatcell_host_table_t::none(0));
        return code;
    }
    made.seed = seed;
    made.memory.pages = memory.pages() as u32;
    made.memory.memory = memory.as_ptr().cast();
    made.memory.bytes = memory.bytes();
    forget(memory);
    place.put(&made);
    TATCELL_PASS
}

/// Closes a table that tatcell_host_table_open opened, and unmaps its memory.
///
/// @param table not NULL. The call empties the structure. If it is empty already, the call does nothing.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_SYSTEM munmap failed, because the structure does not describe a mapping; the errno is in
///         table->memory.system_error.
/// Thread: one, once no thread uses the table. Cost: one system call. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_host_table_close(table: *mut tatcell_host_table_t) -> i32 {
    args!(c, now = c.known(table), place = c.report(table));
    let (code, memory) = unmap(c, now.memory);
    let left = if code == TATCELL_PASS { tatcell_host_table_t::none(0) } else { now };
    place.put(&tatcell_host_table_t {
        memory: tatcell_host_memory_t { size: left.memory.size, ..memory },
        ..left
    });
    code
}

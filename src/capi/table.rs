//! `tatcell_table_*`, first part: options, handles and decisions.

use core::mem::{align_of, size_of};

use super::limit::{spec, store, table_limit, tatcell_limit_spec_t, tatcell_limit_t};
use super::{
    code, decision, fill, finish, finish_reservation, input, output, result, table_code, TATCELL_CONTENDED,
    TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE, TATCELL_ERR_MEMORY, TATCELL_ERR_NULL, TATCELL_ERR_OPTION,
    TATCELL_ERR_SIZE, TATCELL_PASS,
};
use crate::answer::{Decision, Outcome, Permit};
use crate::keys::HashKind;
use crate::limit::TableLimit;
use crate::table::{
    Access, Counters, Exclusive, FullPolicy, Line, Request, Shared, Table, TableError, TableOptions,
};

/// Bytes of a tatcell_table_t: the handle, not the table (see tatcell_table_bytes).
pub const TATCELL_TABLE_HANDLE_SIZE: usize = 256;
/// Alignment of a tatcell_table_t.
pub const TATCELL_TABLE_HANDLE_ALIGN: usize = 8;
/// Alignment of table memory.
pub const TATCELL_TABLE_MEMORY_ALIGN: usize = 64;

/// Handle of a table: private to a process, small, holds the secret. All state is in the table memory. Read-only after
/// its init call, and then any number of threads may use it at once. A zeroed one is refused with TATCELL_ERR_HANDLE.
#[repr(C, align(8))]
pub struct tatcell_table_t {
    /// Not for use.
    pub opaque: [u64; 32],
}

/// What lies inside a tatcell_table_t.
#[repr(C)]
struct Handle {
    /// `READY`, or zero in memory that was never initialised.
    ready: u64,
    table: Any,
}

const READY: u64 = 0x7461_7463_656c_6c01;

/// Either form of a table.
pub(super) enum Any {
    Shared(Table<'static, Shared>),
    Exclusive(Table<'static, Exclusive>),
}

const _: () = assert!(size_of::<tatcell_table_t>() == TATCELL_TABLE_HANDLE_SIZE);
const _: () = assert!(align_of::<tatcell_table_t>() == TATCELL_TABLE_HANDLE_ALIGN);
const _: () = assert!(size_of::<Handle>() <= size_of::<tatcell_table_t>());
const _: () = assert!(align_of::<Handle>() <= align_of::<tatcell_table_t>());
const _: () = assert!(align_of::<Line>() == TATCELL_TABLE_MEMORY_ALIGN);

/// Runs an expression on either form.
macro_rules! either {
    ($any:expr, $table:ident => $run:expr) => {
        match $any {
            Any::Shared($table) => $run,
            Any::Exclusive($table) => $run,
        }
    };
}
pub(super) use either;

/// flags: one owner at a time; plain loads and stores.
pub const TATCELL_TABLE_EXCLUSIVE: u32 = 1;
/// flags: use the given resolution instead of choosing one.
pub const TATCELL_TABLE_RESOLUTION: u32 = 2;

/// policy: admit a new key untracked when its set is full.
pub const TATCELL_FULL_ADMIT: u32 = 0;
/// policy: take over the slot with the smallest lead, debt included.
pub const TATCELL_FULL_INHERIT: u32 = 1;
/// policy: refuse a new key when its set is full.
pub const TATCELL_FULL_DENY: u32 = 2;
/// policy: admit; one in 16 takes over the slot with the smallest lead and forgives its debt.
pub const TATCELL_FULL_SAMPLED: u32 = 3;

/// hash: SipHash-1-3 under the table's seed.
pub const TATCELL_HASH_SIPHASH13: u32 = 0;
/// hash: the caller brings hashes; use a keyed hash.
pub const TATCELL_HASH_CALLER: u32 = 1;
/// hash: four rounds of AES under the table's seed, where the processor has AES; a tenth of the time of SipHash.
pub const TATCELL_HASH_AES: u32 = 2;

/// tracking: the key has its own slot; the answer is exact.
pub const TATCELL_TRACKED: u32 = 0;
/// tracking: the set was full and the policy decided; nothing stored.
pub const TATCELL_UNTRACKED: u32 = 1;
/// tracking: the key took over, or was measured against, the smallest debt of a full set.
pub const TATCELL_INHERITED: u32 = 2;
/// tracking: the key took over a slot of a full set, whose debt was forgiven.
pub const TATCELL_FORGIVEN: u32 = 3;

/// decision flags: passes, above the soft threshold.
pub const TATCELL_FLAG_SOFT: u32 = 1;
/// decision flags: passes only because the limit is in shadow mode; uncharged.
pub const TATCELL_FLAG_SHADOW: u32 = 2;
/// decision flags: passes inside the elastic room of the call.
pub const TATCELL_FLAG_ELASTIC: u32 = 4;

const _: () = assert!(TATCELL_FLAG_SOFT == Decision::SOFT);
const _: () = assert!(TATCELL_FLAG_SHADOW == Decision::SHADOW);
const _: () = assert!(TATCELL_FLAG_ELASTIC == Decision::ELASTIC);

/// Options of a table. Start from TATCELL_TABLE_OPTIONS_INIT; a field left 0 is the default.
#[repr(C)]
pub struct tatcell_table_options_t {
    /// sizeof(tatcell_table_options_t).
    pub size: u32,
    /// Any of TATCELL_TABLE_EXCLUSIVE, TATCELL_TABLE_RESOLUTION.
    pub flags: u32,
    /// A TATCELL_FULL_ constant.
    pub policy: u32,
    /// A TATCELL_HASH_ constant.
    pub hash: u32,
    /// 12..24; 0 = 20. Fewer bits, longer span, more tag collisions.
    pub tag_bits: u32,
    /// With TATCELL_TABLE_RESOLUTION: one q-unit is 2^-resolution ticks.
    pub resolution: i32,
    /// The fastest limit that will be used; not NULL.
    pub fastest: *const tatcell_limit_spec_t,
    /// The limit with the longest horizon; NULL = fastest.
    pub slowest: *const tatcell_limit_spec_t,
    /// Ticks by which callers' clocks may be apart or step back; 0 = one horizon.
    pub skew: u64,
    /// Ticks for which a thread stopped inside an insert keeps a slot; 0 = one tick.
    pub claim_lifetime: u64,
    /// 16 secret bytes from the system's random source; NULL only with TATCELL_HASH_CALLER.
    pub seed: *const u8,
}

/// Reads 16 seed bytes.
///
/// # Safety
/// If not NULL, `p` must be valid for 16 bytes.
unsafe fn seed(p: *const u8) -> Option<[u8; 16]> {
    // SAFETY: the caller's contract; bytes have no alignment.
    (!p.is_null()).then(|| unsafe { p.cast::<[u8; 16]>().read() })
}

/// # Safety
/// The pointers inside must be valid or NULL.
unsafe fn options(o: &tatcell_table_options_t) -> Result<TableOptions, i32> {
    if (o.size as usize) < size_of::<tatcell_table_options_t>() {
        return Err(TATCELL_ERR_SIZE);
    }
    if o.flags & !(TATCELL_TABLE_EXCLUSIVE | TATCELL_TABLE_RESOLUTION) != 0 {
        return Err(TATCELL_ERR_OPTION);
    }
    // SAFETY: the caller's contract.
    let fastest = spec(unsafe { input(o.fastest) }?)?;
    let mut options = TableOptions::new(fastest);
    if !o.slowest.is_null() {
        // SAFETY: the caller's contract.
        options = options.slowest(spec(unsafe { input(o.slowest) }?)?);
    }
    options = options.policy(match o.policy {
        TATCELL_FULL_ADMIT => FullPolicy::Admit,
        TATCELL_FULL_INHERIT => FullPolicy::Inherit,
        TATCELL_FULL_DENY => FullPolicy::Deny,
        TATCELL_FULL_SAMPLED => FullPolicy::Sampled,
        _ => return Err(TATCELL_ERR_OPTION),
    });
    match o.hash {
        TATCELL_HASH_SIPHASH13 => {}
        TATCELL_HASH_CALLER => options = options.caller_hash(),
        TATCELL_HASH_AES => options = options.hash(HashKind::Aes),
        _ => return Err(TATCELL_ERR_OPTION),
    }
    // SAFETY: the caller's contract.
    if let Some(seed) = unsafe { seed(o.seed) } {
        options = options.seed(seed);
    }
    if o.tag_bits != 0 {
        options = options.tag_bits(o.tag_bits);
    }
    if o.flags & TATCELL_TABLE_RESOLUTION != 0 {
        options = options.resolution(i8::try_from(o.resolution).map_err(|_| TATCELL_ERR_OPTION)?);
    }
    if o.skew != 0 {
        options = options.skew(o.skew);
    }
    if o.claim_lifetime != 0 {
        options = options.claim_lifetime(o.claim_lifetime);
    }
    Ok(options)
}

/// Table memory from C.
///
/// # Safety
/// `bytes` bytes at `memory` must be valid, and accessed by nothing but this library, for as long as the handle.
unsafe fn lines(memory: *mut core::ffi::c_void, bytes: usize) -> Result<&'static [Line], i32> {
    let memory = memory.cast::<Line>();
    if memory.is_null() {
        return Err(TATCELL_ERR_NULL);
    }
    if !memory.is_aligned() {
        return Err(TATCELL_ERR_ALIGN);
    }
    if bytes > isize::MAX as usize {
        return Err(TATCELL_ERR_MEMORY);
    }
    // SAFETY: the caller's contract; aligned, and any bytes are valid atomics.
    Ok(unsafe { core::slice::from_raw_parts(memory, bytes / size_of::<Line>()) })
}

/// The table behind a handle.
///
/// # Safety
/// As [`input`].
#[inline(always)]
pub(super) unsafe fn handle<'a>(p: *const tatcell_table_t) -> Result<&'a Any, i32> {
    // SAFETY: passed on.
    let opaque = unsafe { input(p) }?;
    if opaque.opaque[0] != READY {
        return Err(TATCELL_ERR_HANDLE);
    }
    // SAFETY: large and aligned enough (asserted above), and READY says that a Handle was written here.
    Ok(unsafe { &(*p.cast::<Handle>()).table })
}

/// Writes a handle.
///
/// # Safety
/// As [`result`].
unsafe fn publish(p: *mut tatcell_table_t, table: Result<Any, TableError>) -> i32 {
    // SAFETY: passed on.
    let made = unsafe { result(p) }.and_then(|p| Ok((p, table.map_err(table_code)?)));
    match made {
        Ok((p, table)) => {
            p.opaque = [0; 32];
            // SAFETY: large and aligned enough (asserted above).
            unsafe { core::ptr::from_mut(p).cast::<Handle>().write(Handle { ready: READY, table }) };
            TATCELL_PASS
        }
        Err(e) => e,
    }
}

/// Formats memory as a fresh table: all keys absent.
///
/// @param table   handle to initialise; not NULL.
/// @param memory  aligned to 64 bytes; not NULL. Belongs to the table from now on, at this or any other address.
/// @param bytes   of memory; see tatcell_table_bytes.
/// @param options started from TATCELL_TABLE_OPTIONS_INIT; not NULL. Copied.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_ERR_MEMORY less than a header line and one set (192 bytes).
/// @retval TATCELL_ERR_SEED no seed.
/// @retval TATCELL_ERR_OPTION a value is unknown or out of range, or the claim lifetime is above half of the shortest
///         emission interval.
/// @retval TATCELL_ERR_SPAN fastest and slowest limit do not fit one word: use fewer tag bits or a smaller burst.
/// @retval a limit's error from fastest or slowest.
/// Nothing is changed on error.
/// Thread: one, before anybody uses the memory. Cost: writes all of it. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_init(
    table: *mut tatcell_table_t,
    memory: *mut core::ffi::c_void,
    bytes: usize,
    options: *const tatcell_table_options_t,
) -> i32 {
    // SAFETY: the caller's contract.
    let parsed = unsafe {
        result(table)
            .and_then(|_| lines(memory, bytes))
            .and_then(|l| Ok((l, input(options)?)))
            .and_then(|(l, o)| Ok((l, self::options(o)?, o.flags & TATCELL_TABLE_EXCLUSIVE != 0)))
    };
    match parsed {
        Ok((lines, options, exclusive)) => {
            let made = if exclusive {
                Table::<Exclusive>::init_as(lines, &options).map(Any::Exclusive)
            } else {
                Table::<Shared>::init_as(lines, &options).map(Any::Shared)
            };
            // SAFETY: the caller's contract.
            unsafe { publish(table, made) }
        }
        Err(e) => e,
    }
}

/// Uses a table that another process (or this one) has initialised in this memory.
///
/// @param table  handle to initialise; not NULL.
/// @param memory the image, aligned to 64 bytes; not NULL.
/// @param bytes  the same number that it was initialised with.
/// @param seed   the 16 secret bytes it was initialised with; NULL if the caller hashes.
/// @param flags  0, or TATCELL_TABLE_EXCLUSIVE for an exclusive image.
/// @retval 0 done.
/// @retval TATCELL_ERR_NOT_READY no image yet: ask again once the other process is done.
/// @retval TATCELL_ERR_VERSION made by a library with another image layout.
/// @retval TATCELL_ERR_GEOMETRY damaged, or bytes is another number.
/// @retval TATCELL_ERR_SEED the table hashes, and seed is NULL.
/// @retval TATCELL_ERR_WRONG_SEED made with another seed.
/// @retval TATCELL_ERR_MODE exclusive and the call wants a shared one, or the other way round.
/// @retval TATCELL_ERR_MEMORY no line at all, or more than a size_t may hold.
/// @retval TATCELL_ERR_OPTION unknown flag.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Nothing is changed on error.
/// Thread: any number, each with its own handle. Cost: reads one line. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_attach(
    table: *mut tatcell_table_t,
    memory: *mut core::ffi::c_void,
    bytes: usize,
    seed: *const u8,
    flags: u32,
) -> i32 {
    if flags & !TATCELL_TABLE_EXCLUSIVE != 0 {
        return TATCELL_ERR_OPTION;
    }
    // SAFETY: the caller's contract.
    match unsafe { result(table).and_then(|_| lines(memory, bytes)) } {
        Ok(lines) => {
            // SAFETY: the caller's contract.
            let seed = unsafe { self::seed(seed) };
            let made = if flags & TATCELL_TABLE_EXCLUSIVE != 0 {
                Table::<Exclusive>::attach_as(lines, seed).map(Any::Exclusive)
            } else {
                Table::<Shared>::attach_as(lines, seed).map(Any::Shared)
            };
            // SAFETY: the caller's contract.
            unsafe { publish(table, made) }
        }
        Err(e) => e,
    }
}

/// Fills memory from an image written by tatcell_table_save.
///
/// @param table        handle to initialise; not NULL.
/// @param memory       aligned to 64 bytes; not NULL.
/// @param bytes        as many as the image, rounded down to whole sets.
/// @param image        the saved image, aligned to 8 bytes; not NULL.
/// @param image_bytes  its length.
/// @param seed         the 16 secret bytes; NULL if the caller hashes.
/// @param flags        0, or TATCELL_TABLE_EXCLUSIVE for an exclusive image.
/// @param clock_offset what the new clock reads less what the old clock would read now, ticks.
/// @retval 0 done.
/// @retval TATCELL_ERR_MEMORY memory and image differ in length.
/// @retval others as tatcell_table_attach. Nothing is changed on error.
/// Thread: one, before anybody uses the memory. Cost: writes all of it. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_restore(
    table: *mut tatcell_table_t,
    memory: *mut core::ffi::c_void,
    bytes: usize,
    image: *const core::ffi::c_void,
    image_bytes: usize,
    seed: *const u8,
    flags: u32,
    clock_offset: i64,
) -> i32 {
    if flags & !TATCELL_TABLE_EXCLUSIVE != 0 {
        return TATCELL_ERR_OPTION;
    }
    // SAFETY: the caller's contract.
    let parsed = unsafe {
        result(table)
            .and_then(|_| lines(memory, bytes))
            .and_then(|l| Ok((whole_sets(l), words(image.cast_mut(), image_bytes)?)))
    };
    match parsed {
        Ok((lines, image)) => {
            // SAFETY: the caller's contract.
            let seed = unsafe { self::seed(seed) };
            let made = if flags & TATCELL_TABLE_EXCLUSIVE != 0 {
                Table::<Exclusive>::restore_as(lines, image, seed, clock_offset).map(Any::Exclusive)
            } else {
                Table::<Shared>::restore_as(lines, image, seed, clock_offset).map(Any::Shared)
            };
            // SAFETY: the caller's contract.
            unsafe { publish(table, made) }
        }
        Err(e) => e,
    }
}

/// The header line and whole sets; an odd line at the end stays unused, as after init.
fn whole_sets(lines: &[Line]) -> &[Line] {
    lines.get(..(lines.len().saturating_sub(1) & !1) + 1).unwrap_or(lines)
}

/// An image buffer from C.
///
/// # Safety
/// `bytes` bytes at `p` must be valid for the call and not be table memory.
pub(super) unsafe fn words<'a>(p: *mut core::ffi::c_void, bytes: usize) -> Result<&'a mut [u64], i32> {
    let p = p.cast::<u64>();
    if p.is_null() {
        return Err(TATCELL_ERR_NULL);
    }
    if !p.is_aligned() {
        return Err(TATCELL_ERR_ALIGN);
    }
    if bytes > isize::MAX as usize {
        return Err(TATCELL_ERR_MEMORY);
    }
    // SAFETY: the caller's contract.
    Ok(unsafe { core::slice::from_raw_parts_mut(p, bytes / size_of::<u64>()) })
}

/// Makes a limit for use with one table. Different keys may have different limits.
///
/// @param table handle; not NULL.
/// @param spec  started from TATCELL_LIMIT_SPEC_INIT; not NULL.
/// @param limit to initialise; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_FOREIGN faster, or longer, than the table's options provided for.
/// @retval TATCELL_ERR_HANDLE table not initialised.
/// @retval others as tatcell_limit_init_spec.
/// Thread: one writer of limit. Cost: as tatcell_limit_init. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_limit(
    table: *const tatcell_table_t,
    spec: *const tatcell_limit_spec_t,
    limit: *mut tatcell_limit_t,
) -> i32 {
    // SAFETY: the caller's contract.
    let made = unsafe { handle(table).and_then(|t| Ok((t, input(spec)?))) }
        .and_then(|(t, s)| Ok((t, self::spec(s)?)))
        .and_then(|(t, s)| either!(t, t => t.limit(&s)).map_err(table_code));
    // SAFETY: the caller's contract.
    code(made.and_then(|l| unsafe { store(limit, l.0) }))
}

/// Makes a limit of this table that everything conforms to, for exempt keys. No slot is used for them.
///
/// @param table handle; not NULL.
/// @param limit to initialise; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: one writer of limit. Cost: none. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_limit_unlimited(
    table: *const tatcell_table_t,
    limit: *mut tatcell_limit_t,
) -> i32 {
    // SAFETY: the caller's contract.
    let made = unsafe { handle(table) }.map(|t| either!(t, t => t.unlimited()));
    // SAFETY: the caller's contract.
    code(made.and_then(|l| unsafe { store(limit, l.0) }))
}

/// A key from C.
///
/// # Safety
/// `len` bytes at `key` must be valid for reads for the call.
#[inline(always)]
pub(super) unsafe fn key<'a>(key: *const core::ffi::c_void, len: usize) -> Result<&'a [u8], i32> {
    if key.is_null() {
        return Err(TATCELL_ERR_NULL);
    }
    if len > isize::MAX as usize {
        return Err(TATCELL_ERR_MEMORY);
    }
    // SAFETY: the caller's contract; bytes have no alignment.
    Ok(unsafe { core::slice::from_raw_parts(key.cast(), len) })
}

/// Handle, limit and hash of a call.
type Call<'a> = (&'a Any, &'a TableLimit);

/// # Safety
/// As [`input`].
#[inline(always)]
pub(super) unsafe fn call<'a>(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
) -> Result<Call<'a>, i32> {
    // SAFETY: passed on.
    unsafe { Ok((handle(table)?, table_limit(limit)?)) }
}

/// Hashes a key with the table's secret, for the _hash and _burst calls.
///
/// @param table   handle; not NULL.
/// @param key     bytes of the key; not NULL, even when empty. Identifying bytes only: padding would make new keys.
/// @param key_len bytes.
/// @param hash    the 64-bit hash: high 32 bits choose the line, low bits are the tag. Not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_HASH the caller hashes for this table.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE, TATCELL_ERR_MEMORY bad argument.
/// Thread: any. Cost: of 16 bytes about 1 ns (AES) or 6 ns (SipHash-1-3). Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_hash(
    table: *const tatcell_table_t,
    key: *const core::ffi::c_void,
    key_len: usize,
    hash: *mut u64,
) -> i32 {
    // SAFETY: the caller's contract.
    let (table, key, out) = unsafe { args!(handle(table), self::key(key, key_len), result(hash)) };
    match either!(table, t => t.hash(key)) {
        Ok(hash) => {
            *out = hash;
            TATCELL_PASS
        }
        Err(e) => table_code(e),
    }
}

/// One decision, out of line so that its values find registers beside the arguments of the C function.
#[inline(never)]
fn check_one<M: Access>(table: &Table<'_, M>, limit: &TableLimit, now: u64, hash: u64, cost: u32) -> Outcome {
    table.check_owned(limit, now, hash, cost)
}

/// Decides one request of a key and charges it if it conforms.
///
/// @param table       handle; not NULL.
/// @param limit       from tatcell_table_limit of this table; not NULL.
/// @param now         the caller's clock, ticks.
/// @param key         bytes of the key; not NULL, even when empty.
/// @param key_len     bytes.
/// @param cost        units; 0 looks and never writes.
/// @param retry_after ticks until the same cost conforms: 0 when it passes or is contended, UINT64_MAX when never.
///                    NULL = not wanted. Not written on error.
/// @retval 0 passes, charged (or untracked, by the policy of the table, when its set is full).
/// @retval TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED does not pass; nothing charged.
/// @retval TATCELL_ERR_HANDLE table not initialised.
/// @retval TATCELL_ERR_LIMIT limit not initialised, or not for a table.
/// @retval TATCELL_ERR_FOREIGN limit of another table.
/// @retval TATCELL_ERR_HASH the caller hashes for this table.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_MEMORY bad argument.
/// Thread: any number, unless the table is exclusive. Cost: a hash, one or two cache lines, one compare-and-swap
/// when it passes; only loads when not. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_check(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    key: *const core::ffi::c_void,
    key_len: usize,
    cost: u32,
    retry_after: *mut u64,
) -> i32 {
    // SAFETY: the caller's contract.
    let ((table, limit), key, retry) =
        unsafe { args!(call(table, limit), self::key(key, key_len), output(retry_after)) };
    let outcome = either!(table, t => match t.hash(key).and_then(|hash| t.own(limit).map(|()| hash)) {
        Ok(hash) => check_one(t, limit, now, hash, cost),
        Err(e) => return table_code(e),
    });
    finish(outcome, retry)
}

/// As tatcell_table_check for a hash made before.
///
/// @param table       handle; not NULL.
/// @param limit       from tatcell_table_limit of this table; not NULL.
/// @param now         the caller's clock, ticks.
/// @param hash        from tatcell_table_hash, or the caller's own keyed hash.
/// @param cost        units; 0 looks and never writes.
/// @param retry_after as tatcell_table_check.
/// @retval as tatcell_table_check.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check less the hash. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_check_hash(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u32,
    retry_after: *mut u64,
) -> i32 {
    // SAFETY: the caller's contract.
    let ((table, limit), retry) = unsafe { args!(call(table, limit), output(retry_after)) };
    let outcome = either!(table, t => match t.own(limit) {
        Ok(()) => check_one(t, limit, now, hash, cost),
        Err(e) => return table_code(e),
    });
    finish(outcome, retry)
}

/// Decides one request with the full answer.
///
/// @param table    handle; not NULL.
/// @param limit    from tatcell_table_limit of this table; not NULL.
/// @param now      the caller's clock, ticks.
/// @param hash     from tatcell_table_hash, or the caller's own keyed hash.
/// @param cost     units; 0 looks and never writes.
/// @param room     elastic room in units above the burst; more than the limit's max_room counts as that. 0 = none.
/// @param out      started from TATCELL_DECISION_INIT; not NULL.
/// @param counters this thread's counters; NULL = off.
/// @retval 0, TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED as out->verdict; charged only when 0.
/// @retval TATCELL_ERR_SIZE out->size is not set.
/// @retval others as tatcell_table_check_hash.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check and one division. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_check_ex(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u32,
    room: u64,
    out: *mut Decision,
    counters: *mut Counters,
) -> i32 {
    // SAFETY: the caller's contract.
    let ((table, limit), out, counters) =
        unsafe { args!(call(table, limit), decision(out), output(counters)) };
    let request = Request { limit, now, cost, room };
    match either!(table, t => t.check_ex(&request, hash, counters)) {
        Ok(made) => fill(out, made),
        Err(e) => table_code(e),
    }
}

/// Tells what a request of this cost would be answered, without charging it. An insert in progress reads as absent.
///
/// @param table handle; not NULL.
/// @param limit from tatcell_table_limit of this table; not NULL.
/// @param now   the caller's clock, ticks.
/// @param hash  from tatcell_table_hash, or the caller's own keyed hash.
/// @param cost  units.
/// @param out   started from TATCELL_DECISION_INIT; not NULL.
/// @retval as tatcell_table_check_ex; never TATCELL_CONTENDED.
/// Thread: any number, unless the table is exclusive; only reads. Cost: one or two cache lines. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_peek(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u32,
    out: *mut Decision,
) -> i32 {
    // SAFETY: the caller's contract.
    let ((table, limit), out) = unsafe { args!(call(table, limit), decision(out)) };
    match either!(table, t => t.peek(limit, now, hash, cost)) {
        Ok(made) => fill(out, made),
        Err(e) => table_code(e),
    }
}

/// Charges after the fact: always, until the debt is the limit's max_debt beyond the burst.
///
/// @param table handle; not NULL.
/// @param limit from tatcell_table_limit of this table; not NULL.
/// @param now   the caller's clock, ticks.
/// @param hash  from tatcell_table_hash, or the caller's own keyed hash.
/// @param cost  units; may be above the burst.
/// @param out   started from TATCELL_DECISION_INIT, or NULL; out->permit.stored tells what was charged.
/// @retval 0 charged, perhaps less than cost.
/// @retval TATCELL_CONTENDED nothing charged, ask again.
/// @retval others as tatcell_table_check_ex.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check_hash. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_charge(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u32,
    out: *mut Decision,
) -> i32 {
    // SAFETY: the caller's contract.
    let out = if out.is_null() { Ok(None) } else { unsafe { decision(out) }.map(Some) };
    // SAFETY: the caller's contract.
    let ((table, limit), out) = unsafe { args!(call(table, limit), out) };
    match either!(table, t => t.charge(limit, now, hash, cost)) {
        Ok(made) => {
            if let Some(out) = out {
                fill(out, made);
            }
            made.verdict
        }
        Err(e) => table_code(e),
    }
}

/// Reserves units of a key for the earliest conforming instant, for shaping.
///
/// @param table     handle; not NULL.
/// @param limit     from tatcell_table_limit of this table, with a max_delay; not NULL.
/// @param now       the caller's clock, ticks.
/// @param hash      from tatcell_table_hash, or the caller's own keyed hash.
/// @param cost      units, at most the burst.
/// @param departure as tatcell_cell_reserve; not NULL.
/// @param permit    for tatcell_table_refund; NULL = not wanted.
/// @retval as tatcell_cell_reserve, and the errors of tatcell_table_check_hash.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check_hash. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_reserve(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u32,
    departure: *mut u64,
    permit: *mut Permit,
) -> i32 {
    // SAFETY: the caller's contract.
    let ((table, limit), departure, permit) =
        unsafe { args!(call(table, limit), result(departure), output(permit)) };
    match either!(table, t => t.reserve(limit, now, hash, cost)) {
        Ok(made) => finish_reservation(made, departure, permit),
        Err(e) => table_code(e),
    }
}

/// Gives back what a permit proves was charged, has not drained since and still lies in the key's slot.
///
/// Under TATCELL_FULL_SAMPLED nothing can be proved and nothing is credited. The permit of the charge that brought a
/// key into the table covers up to one claim lifetime less than was charged. Use a permit once, not after a reset of
/// the key, and of several of one key the newest first (or set TATCELL_LIMIT_STRICT_REFUNDS).
///
/// @param table    handle; not NULL.
/// @param limit    the limit that it was charged under; not NULL.
/// @param now      the caller's clock, ticks.
/// @param hash     of the key that was charged.
/// @param permit   from a decision or reservation; not NULL.
/// @param credited ticks of debt removed, rounded down; NULL = not wanted.
/// @retval 0 done (perhaps nothing was left to give back).
/// @retval TATCELL_CONTENDED nothing changed, ask again.
/// @retval others as tatcell_table_check_hash.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check_hash; never inserts. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_refund(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    permit: *const Permit,
    credited: *mut u64,
) -> i32 {
    // SAFETY: the caller's contract.
    let ((table, limit), permit, credited) =
        unsafe { args!(call(table, limit), input(permit), output(credited)) };
    match either!(table, t => t.refund(limit, now, hash, permit)) {
        Ok(back) => {
            if let Some(out) = credited {
                *out = back.unwrap_or(0);
            }
            if back.is_some() {
                TATCELL_PASS
            } else {
                TATCELL_CONTENDED
            }
        }
        Err(e) => table_code(e),
    }
}

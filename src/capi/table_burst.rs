//! `tatcell_table_*`, the calls for many keys at once.

use core::ffi::c_void;
use core::mem::{align_of, size_of};

use super::limit::tatcell_limit_t;
use super::table::{call, either, handle, key, tatcell_table_t, Any};
use super::{
    decision, input, output, result, table_code, TATCELL_ERR_ALIGN, TATCELL_ERR_COUNT, TATCELL_ERR_MEMORY,
    TATCELL_ERR_NULL, TATCELL_ERR_SIZE, TATCELL_PASS,
};
use crate::answer::Decision;
use crate::table::{Access, Burst, Counters, Table, TableError, MAX_BURST};

/// Most keys in one burst call.
pub const TATCELL_BURST_MAX: u32 = 64;
const _: () = assert!(TATCELL_BURST_MAX as usize == MAX_BURST);

/// Decides up to 64 requests at one now, in order: hashes and prefetches all, then decides.
///
/// The verdicts equal those of single calls in the same order, repeated keys included.
///
/// @param table     handle; not NULL.
/// @param limit     from tatcell_table_limit of this table; not NULL.
/// @param now       the caller's clock, ticks: one clock read per burst.
/// @param keys      key i is key_len bytes at (const char *)keys + i * stride; not NULL unless count is 0.
/// @param key_len   bytes of each key.
/// @param stride    bytes from one key to the next, any number: the keys may lie inside larger structures.
/// @param costs     units of each request; NULL = 1 each.
/// @param count     0..64.
/// @param pass      bit i = 1: request i passes. Not NULL.
/// @param decisions count elements, the first started from TATCELL_DECISION_INIT; NULL = not wanted.
/// @param counters  this thread's counters; NULL = off.
/// @retval 0 decided; see pass. Contended requests have bit 0.
/// @retval TATCELL_ERR_COUNT more than 64.
/// @retval TATCELL_ERR_SIZE decisions[0].size is not set.
/// @retval others as tatcell_table_check. Nothing is decided on error.
/// Thread: any number, unless the table is exclusive. Cost: as single calls, with the cache misses overlapped;
/// fastest without decisions. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_check_burst(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    keys: *const c_void,
    key_len: usize,
    stride: usize,
    costs: *const u32,
    count: u32,
    pass: *mut u64,
    decisions: *mut Decision,
    counters: *mut Counters,
) -> i32 {
    let mut hashes = [0u64; MAX_BURST];
    let Some(hashes) = hashes.get_mut(..count as usize) else { return TATCELL_ERR_COUNT };
    // SAFETY: the caller's contract.
    let (table_of, keys) = unsafe { args!(handle(table), Keys::new(keys, key_len, stride, count)) };
    // SAFETY: the caller's contract.
    if let Err(e) = unsafe { either!(table_of, t => keys.hash(t, hashes)) } {
        return table_code(e);
    }
    // SAFETY: the caller's contract.
    unsafe { burst(table, limit, now, hashes, costs, pass, decisions, counters) }
}

/// As tatcell_table_check_burst for hashes made before, by tatcell_table_prefetch or by the caller.
///
/// @param table     handle; not NULL.
/// @param limit     from tatcell_table_limit of this table; not NULL.
/// @param now       the caller's clock, ticks.
/// @param hashes    count hashes; not NULL unless count is 0.
/// @param costs     units of each request; NULL = 1 each.
/// @param count     0..64.
/// @param pass      bit i = 1: request i passes. Not NULL.
/// @param decisions as tatcell_table_check_burst.
/// @param counters  this thread's counters; NULL = off.
/// @retval as tatcell_table_check_burst.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check_burst. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_check_burst_hash(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hashes: *const u64,
    costs: *const u32,
    count: u32,
    pass: *mut u64,
    decisions: *mut Decision,
    counters: *mut Counters,
) -> i32 {
    // SAFETY: the caller's contract.
    let hashes = unsafe { args!(array(hashes, count)) };
    // SAFETY: the caller's contract.
    unsafe { burst(table, limit, now, hashes, costs, pass, decisions, counters) }
}

/// As tatcell_table_check_burst_hash and, in between its decisions, hashes and prefetches the keys of the next burst.
///
/// For a loop that receives a burst while it decides the one before it: the cache misses of the one pass while the other
/// is decided. The first call decides nothing, the last one prepares nothing:
///
///     uint64_t hashes[2][64], pass = 0;
///     uint32_t count = 0, next;
///     for (int i = 0; (next = receive(keys)) > 0 || count > 0; i ^= 1) {
///         rc = tatcell_table_check_burst_ahead(&table, &limit, now, hashes[i], NULL, count, &pass, NULL,
///                                              keys, sizeof keys[0], sizeof keys[0], next, hashes[i ^ 1]);
///         if (rc < 0) break;
///         forward(pass, count);
///         count = next;
///     }
///
/// That holds for tables with the AES hash and keys of 4 or 16 bytes; otherwise the next burst is hashed and prefetched
/// before this one is decided. Where the caller hashes, use tatcell_table_prefetch_hash and
/// tatcell_table_check_burst_hash.
///
/// @param table       handle; not NULL.
/// @param limit       from tatcell_table_limit of this table; not NULL.
/// @param now         the caller's clock, ticks.
/// @param hashes      count hashes, which the call before this one or tatcell_table_prefetch made; not NULL unless
///                    count is 0.
/// @param costs       units of each request; NULL = 1 each.
/// @param count       0..64; 0 in the first call.
/// @param pass        in, so initialise it: 0 at first, then what the call before this one answered; where most passed,
///                    lines are fetched to be written, which saves a transfer if other cores had them. Out: bit i = 1:
///                    request i passes; unchanged on error. Not NULL.
/// @param counters    this thread's counters; NULL = off.
/// @param next_keys   keys of the next burst, as the keys of tatcell_table_check_burst; not NULL unless next_count
///                    is 0.
/// @param key_len     bytes of each next key.
/// @param stride      bytes from one next key to the next.
/// @param next_count  0..64; 0 when nothing follows.
/// @param next_hashes gets next_count hashes; not NULL unless next_count is 0. Overlaps none of the other arrays.
/// @retval 0 decided; see pass.
/// @retval TATCELL_ERR_MEMORY next_hashes overlaps another array.
/// @retval others as tatcell_table_check_burst. Nothing is decided or hashed on error.
/// Thread: any number, unless the table is exclusive. Cost: that of tatcell_table_prefetch and of
/// tatcell_table_check_burst_hash, less what overlaps. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_check_burst_ahead(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hashes: *const u64,
    costs: *const u32,
    count: u32,
    pass: *mut u64,
    counters: *mut Counters,
    next_keys: *const c_void,
    key_len: usize,
    stride: usize,
    next_count: u32,
    next_hashes: *mut u64,
) -> i32 {
    // SAFETY: the caller's contract.
    let ((table, limit), _, _) =
        unsafe { args!(call(table, limit), place(pass, 1), place(next_hashes, next_count)) };
    // SAFETY: the caller's contract.
    let keys = unsafe { args!(Keys::new(next_keys, key_len, stride, next_count)) };
    // Before any reference is made: `next_hashes` is written while the others are read.
    let next = Range::of(next_hashes, next_count);
    let others =
        [Range::of(hashes, count), Range::of(costs, count), Range::of(pass, 1), Range::of(counters, 1)];
    if next.overlaps(keys.range(next_count)) || others.into_iter().any(|other| next.overlaps(other)) {
        return TATCELL_ERR_MEMORY;
    }
    // SAFETY: the caller's contract.
    let (hashes, costs, counters) =
        unsafe { args!(array(hashes, count), costs_of(costs, count), output(counters)) };
    let next = match next_count {
        0 => &mut [],
        // SAFETY: checked above but for its length, which is the caller's contract.
        _ => unsafe { core::slice::from_raw_parts_mut(next_hashes, next_count as usize) },
    };
    // SAFETY: `place` checked the pointer.
    let burst = Burst { limit, now, hashes, costs, last: unsafe { pass.read() } };
    // SAFETY: the caller's contract.
    match unsafe { either!(table, t => keys.check_ahead(t, &burst, counters, next)) } {
        Ok(bits) => {
            // SAFETY: as above.
            unsafe { pass.write(bits) };
            TATCELL_PASS
        }
        Err(e) => table_code(e),
    }
}

/// Hashes up to 64 keys and starts loading their lines, for a burst call that comes next.
///
/// @param table   handle; not NULL.
/// @param keys    as tatcell_table_check_burst.
/// @param key_len bytes of each key.
/// @param stride  bytes from one key to the next.
/// @param count   0..64.
/// @param hashes  gets count hashes, for tatcell_table_check_burst_hash; not NULL unless count is 0.
/// @retval 0 done.
/// @retval TATCELL_ERR_COUNT more than 64.
/// @retval others as tatcell_table_hash.
/// Thread: any number. Cost: the hashes; changes nothing. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_prefetch(
    table: *const tatcell_table_t,
    keys: *const c_void,
    key_len: usize,
    stride: usize,
    count: u32,
    hashes: *mut u64,
) -> i32 {
    let mut made = [0u64; MAX_BURST];
    let Some(made) = made.get_mut(..count as usize) else { return TATCELL_ERR_COUNT };
    // SAFETY: the caller's contract.
    let (table, keys, _) =
        unsafe { args!(handle(table), Keys::new(keys, key_len, stride, count), place(hashes, count)) };
    // SAFETY: the caller's contract.
    let hashed = either!(table, t => unsafe { keys.hash(t, made) }.map(|()| t.prefetch(made)));
    if let Err(e) = hashed {
        return table_code(e);
    }
    if !made.is_empty() {
        // SAFETY: `array` checked the pointer; count elements are the caller's contract.
        unsafe { core::ptr::copy_nonoverlapping(made.as_ptr(), hashes, made.len()) };
    }
    TATCELL_PASS
}

/// Starts loading the lines of up to 64 hashes made before, for a burst call that comes next.
///
/// @param table  handle; not NULL.
/// @param hashes count hashes; not NULL unless count is 0.
/// @param count  0..64.
/// @retval 0 done.
/// @retval TATCELL_ERR_COUNT more than 64.
/// @retval TATCELL_ERR_HANDLE table not initialised.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any number. Cost: one prefetch a key; changes nothing. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_prefetch_hash(
    table: *const tatcell_table_t,
    hashes: *const u64,
    count: u32,
) -> i32 {
    // SAFETY: the caller's contract.
    let (table, hashes) = unsafe { args!(handle(table), array(hashes, count)) };
    either!(table, t => t.prefetch(hashes));
    TATCELL_PASS
}

/// The keys of a burst: `length` bytes each, every `stride` bytes.
#[derive(Clone, Copy)]
struct Keys {
    first: *const c_void,
    length: usize,
    stride: usize,
}

impl Keys {
    /// # Safety
    /// The first key, if there is one, must be valid for reads.
    unsafe fn new(first: *const c_void, length: usize, stride: usize, count: u32) -> Result<Keys, i32> {
        if count != 0 {
            if first.is_null() {
                return Err(TATCELL_ERR_NULL);
            }
            // SAFETY: the caller's contract. Every key has this length.
            unsafe { key(first, length) }?;
        }
        Ok(Keys { first, length, stride })
    }

    /// From the first to the last of them.
    fn range(self, count: u32) -> Range {
        let steps = (count as usize).saturating_sub(1).wrapping_mul(self.stride);
        let length = if count == 0 { 0 } else { steps.saturating_add(self.length) };
        Range { from: self.first as usize, bytes: length }
    }

    fn at(self, i: usize) -> *const c_void {
        self.first.wrapping_byte_add(i.wrapping_mul(self.stride))
    }

    /// Reads a key of N bytes by its number.
    ///
    /// # Safety
    /// Every key whose number it is given must be valid for reads and N bytes long.
    #[inline(always)]
    unsafe fn reader<const N: usize>(self) -> impl Fn(usize) -> [u8; N] + Copy {
        // SAFETY: the caller's contract.
        move |i| unsafe { self.at(i).cast::<[u8; N]>().read() }
    }

    /// Hashes as many keys as `out` has places.
    ///
    /// # Safety
    /// They must be valid for reads.
    unsafe fn hash<M: Access>(self, table: &Table<'_, M>, out: &mut [u64]) -> Result<(), TableError> {
        // SAFETY: the caller's contract.
        let (long, short) = unsafe { (self.reader::<16>(), self.reader::<4>()) };
        match self.length {
            16 => table.hash_burst(out, long),
            4 => table.hash_burst(out, short),
            _ => out.iter_mut().enumerate().try_for_each(|(i, hash)| {
                // SAFETY: as above; `new` checked the length.
                let key = unsafe { core::slice::from_raw_parts(self.at(i).cast::<u8>(), self.length) };
                *hash = table.hash(key)?;
                Ok(())
            }),
        }
    }

    /// Decides a burst, and hashes and prefetches these keys into `next`.
    ///
    /// # Safety
    /// As many keys as `next` has places must be valid for reads.
    unsafe fn check_ahead<M: Access>(
        self,
        table: &Table<'_, M>,
        burst: &Burst<'_>,
        counters: Option<&mut Counters>,
        next: &mut [u64],
    ) -> Result<u64, TableError> {
        // SAFETY: the caller's contract.
        let (long, short) = unsafe { (self.reader::<16>(), self.reader::<4>()) };
        match self.length {
            16 => table.check_burst_ahead(burst, counters, next, long),
            4 => table.check_burst_ahead(burst, counters, next, short),
            _ => {
                table.own(burst.limit)?;
                // SAFETY: as above.
                unsafe { self.hash(table, next) }?;
                Ok(table.decide_prepared(burst, counters, next))
            }
        }
    }
}

/// Where an array lies; nothing where its pointer is NULL.
#[derive(Clone, Copy)]
struct Range {
    from: usize,
    bytes: usize,
}

impl Range {
    fn of<T>(p: *const T, count: u32) -> Range {
        let bytes = if p.is_null() { 0 } else { count as usize * size_of::<T>() };
        Range { from: p as usize, bytes }
    }

    fn overlaps(self, other: Range) -> bool {
        let apart = other.from.wrapping_sub(self.from) >= self.bytes
            && self.from.wrapping_sub(other.from) >= other.bytes;
        self.bytes != 0 && other.bytes != 0 && !apart
    }
}

/// Checks the place for `count` results, at most 64; NULL only when there are none.
fn place<T>(p: *mut T, count: u32) -> Result<(), i32> {
    match count {
        _ if count as usize > MAX_BURST => Err(TATCELL_ERR_COUNT),
        0 => Ok(()),
        _ if p.is_null() => Err(TATCELL_ERR_NULL),
        _ if !p.is_aligned() => Err(TATCELL_ERR_ALIGN),
        _ => Ok(()),
    }
}

/// An array of at most 64 elements; NULL only when empty.
///
/// # Safety
/// `count` elements at `p` must be valid for reads for the call.
unsafe fn array<'a, T>(p: *const T, count: u32) -> Result<&'a [T], i32> {
    if count as usize > MAX_BURST {
        return Err(TATCELL_ERR_COUNT);
    }
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: passed on.
    unsafe { input(p) }?;
    // SAFETY: not NULL and aligned; the length is the caller's contract.
    Ok(unsafe { core::slice::from_raw_parts(p, count as usize) })
}

/// # Safety
/// As [`array`]; NULL is None.
unsafe fn costs_of<'a>(costs: *const u32, count: u32) -> Result<Option<&'a [u32]>, i32> {
    // SAFETY: the caller's contract.
    Ok(if costs.is_null() { None } else { Some(unsafe { array(costs, count) }?) })
}

/// # Safety
/// The pointers must be as the burst calls document.
#[allow(clippy::too_many_arguments)] // the C signature, handed on
unsafe fn burst(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hashes: &[u64],
    costs: *const u32,
    pass: *mut u64,
    decisions: *mut Decision,
    counters: *mut Counters,
) -> i32 {
    // SAFETY: the caller's contract.
    let ((table, limit), pass, counters) =
        unsafe { args!(call(table, limit), result(pass), output(counters)) };
    // SAFETY: the caller's contract.
    let costs = unsafe { args!(costs_of(costs, hashes.len() as u32)) };
    // The caller's own structure size is the distance from one decision to the next.
    let mut stride = 0;
    if !decisions.is_null() && !hashes.is_empty() {
        // SAFETY: the caller's contract.
        stride = unsafe { args!(decision(decisions)) }.size;
        if stride as usize % align_of::<Decision>() != 0 {
            return TATCELL_ERR_SIZE;
        }
    }
    let burst = Burst { limit, now, hashes, costs, last: 0 };
    let decided = match (decisions.is_null(), counters) {
        (true, None) => either!(table, t => t.check_burst(limit, now, hashes, costs)),
        (true, Some(counters)) => either!(table, t => t.check_burst_counted(&burst, counters)),
        (false, counters) => {
            either!(table, t => t.check_burst_ex(limit, now, hashes, costs, counters, |i, d| {
                let out = decisions.wrapping_byte_add(i * stride as usize);
                // SAFETY: i < count, and the caller has count elements of `stride` bytes, a multiple of the alignment.
                unsafe { out.write(Decision { size: stride, ..*d }) };
            }))
        }
    };
    match decided {
        Ok(bits) => {
            *pass = bits;
            TATCELL_PASS
        }
        Err(e) => table_code(e),
    }
}

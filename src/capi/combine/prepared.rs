//! `tatcell_prepared_chain_*`: a chain whose links are checked once, for requests that bring keys, costs and now.

use core::ffi::c_void;

use super::links::{chain_code, link, tatcell_chain_t, tatcell_link_t, TATCELL_LINK_HASH};
use crate::answer::{Decision, Verdict};
use crate::capi::codes::{
    verdict_code, TATCELL_ERR_COUNT, TATCELL_ERR_HANDLE, TATCELL_ERR_HASH, TATCELL_ERR_LINKS,
    TATCELL_ERR_NULL, TATCELL_ERR_OPTION, TATCELL_NON_CONFORMING, TATCELL_PASS,
};
use crate::capi::decision::{fill, tatcell_decision_t};
use crate::capi::pointers::contract::{args, inside, Contract, Grows, Marked, Plain};
use crate::capi::pointers::places::{Span, Written};
use crate::combine::{ChainBurst, ChainError, PreparedChain, MAX_LINKS};
use crate::keys::Hasher;
use crate::table::{Keys, MAX_BURST};

/// Bytes of a tatcell_prepared_chain_t. This size never changes.
pub const TATCELL_PREPARED_CHAIN_SIZE: usize = 768;
/// Alignment of a tatcell_prepared_chain_t.
pub const TATCELL_PREPARED_CHAIN_ALIGN: usize = 8;

/// The links of a chain, checked once. tatcell_prepared_chain_init initialises it. After that it is read-only, and any
/// number of threads may use it at once. It keeps pointers to the cells, the table handles and the limits of its links.
/// These must stay valid and in place as long as it is used, and no such table handle may be initialised again. The
/// array of links is not needed after the call. The library refuses a zeroed one, and one of another version of the
/// library, with TATCELL_ERR_HANDLE.
#[repr(C, align(8))]
pub struct tatcell_prepared_chain_t {
    /// Private to the library.
    pub opaque: [u64; 96],
}

/// The contents of a tatcell_prepared_chain_t.
#[repr(C)]
struct Inside {
    /// `READY`.
    mark: u64,
    chain: PreparedChain<'static>,
}

/// "tatcell", kind of object, version of `Inside`: raised whenever it, `PreparedChain` or `Link` change.
const READY: u64 = 0x7461_7463_656c_7003;

const _: () = assert!(size_of::<tatcell_prepared_chain_t>() == TATCELL_PREPARED_CHAIN_SIZE);
const _: () = assert!(align_of::<tatcell_prepared_chain_t>() == TATCELL_PREPARED_CHAIN_ALIGN);
const _: () = assert!(size_of::<Inside>() <= TATCELL_PREPARED_CHAIN_SIZE);
const _: () = assert!(align_of::<Inside>() <= TATCELL_PREPARED_CHAIN_ALIGN);

// SAFETY: its mark comes first, and only tatcell_prepared_chain_init writes that, with all of an Inside behind it.
unsafe impl Marked for Inside {
    const MARK: u64 = READY;
    const ERROR: i32 = TATCELL_ERR_HANDLE;
}

/// The key of one link of a prepared chain. The library does not read the key of a link that is a cell.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tatcell_chain_key_t {
    /// In a burst: bytes from the key of one request to that of the next. It may be negative, or 0 to use one key for
    /// all. The call refuses one that a ptrdiff_t cannot hold (TATCELL_ERR_OPTION). A single check does not read it.
    pub stride: i64,
    /// Bytes of the key, of the first request in a burst; not NULL for a link of a table, even if the key is empty.
    pub key: *const c_void,
    /// Bytes of the key.
    pub key_len: usize,
}

// SAFETY: repr(C), integers and pointers without padding (asserted).
unsafe impl Plain for tatcell_chain_key_t {}
const _: () = assert!(size_of::<tatcell_chain_key_t>() == 8 + 2 * size_of::<*const u8>());

/// Bytes of a tatcell_chain_burst_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_CHAIN_BURST_MIN: usize = 24 + 4 * size_of::<*const u8>();

/// Up to 64 requests of a prepared chain at one instant. Start from TATCELL_CHAIN_BURST_INIT. The call only reads it,
/// so it may be used again and again. Set keys or hashes, and leave the other NULL.
#[repr(C)]
pub struct tatcell_chain_burst_t {
    /// sizeof(tatcell_chain_burst_t).
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// Number of requests, 0..64. An empty burst needs no other field.
    pub count: u32,
    /// Must be 0.
    pub reserved: u32,
    /// The caller's clock, ticks.
    pub now: u64,
    /// One for each link: key and stride. The key of request i is at (const char *)key + i * stride.
    pub keys: *const tatcell_chain_key_t,
    /// For each request a hash for each link, one request after the other, from tatcell_table_hash. That of a cell is
    /// not read.
    pub hashes: *const u64,
    /// Units, in the order of hashes; NULL = 1 each.
    pub costs: *const u64,
    /// Gets for each request the ticks until the same costs conform: 0 if it passes or is contended, UINT64_MAX if they
    /// never conform. NULL = not wanted.
    pub retry_after: *mut u64,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_chain_burst_t {
    const FIRST: usize = TATCELL_CHAIN_BURST_MIN;
}
const _: () = assert!(
    size_of::<tatcell_chain_burst_t>() == TATCELL_CHAIN_BURST_MIN && TATCELL_CHAIN_BURST_MIN % 8 == 0
);

impl<'a> Contract<'a> {
    #[inline(always)]
    fn prepared(self, p: *const tatcell_prepared_chain_t) -> Result<&'a PreparedChain<'static>, i32> {
        self.marked::<Inside>(inside(p)).map(|inside| &inside.chain)
    }

    /// Prepares the links of a chain. Whatever keys they have is not read.
    fn prepare(self, p: *const tatcell_chain_t) -> Result<PreparedChain<'static>, i32> {
        let given = self.options(p)?;
        let count = given.count as usize;
        let told = given.permits.addr() | given.decisions.addr() | given.counters.addr();
        let more = given.link_counters.addr() | given.reserved_pointer.addr();
        if told | more != 0 || given.flags | given.reserved != 0 {
            return Err(TATCELL_ERR_OPTION);
        }
        if count == 0 || count > MAX_LINKS {
            return Err(TATCELL_ERR_LINKS);
        }
        let each = self.strided(given.links, given.link_size, count)?;
        let one = |i| -> Result<_, i32> {
            let given: tatcell_link_t = each.get(i)?;
            let by_hash = if given.table.is_null() { 0 } else { TATCELL_LINK_HASH };
            link(self.staying(), &tatcell_link_t { flags: given.flags | by_hash, ..given })
        };
        let mut links = [one(0)?; MAX_LINKS];
        for (i, place) in links.iter_mut().enumerate().take(count).skip(1) {
            *place = one(i)?;
        }
        PreparedChain::new(links.get(..count).unwrap_or_else(|| impossible!(&[]))).map_err(chain_code)
    }

    /// Returns the costs of a request.
    #[inline(always)]
    fn costs(self, p: *const u64, count: usize) -> Result<Option<&'a [u64]>, i32> {
        if p.is_null() {
            return Ok(None);
        }
        self.slice(p, count).map(Some)
    }
}

/// Checks the links of a chain once, for requests that bring keys, costs and now only.
///
/// The call does not read the keys, hashes and costs of the links, because each request brings its own. Each request
/// has the extra units and the room of these links.
///
/// @param prepared to initialise; not NULL.
/// @param chain    started from TATCELL_CHAIN_INIT, without permits, decisions and counters; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_OPTION as tatcell_chain_check, or permits, decisions or counters are set.
/// @retval TATCELL_ERR_TWO_LIMITS one cell has two limits. (One key with two limits is found by the checks.)
/// @retval others as tatcell_chain_check. Nothing is changed on error.
/// Thread: one writer, no reader. Cost: compares each link with those before it. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_prepared_chain_init(
    prepared: *mut tatcell_prepared_chain_t,
    chain: *const tatcell_chain_t,
) -> i32 {
    args!(c, out = c.result(prepared), made = c.prepare(chain));
    out.put_inside(Inside { mark: READY, chain: made });
    TATCELL_PASS
}

/// Decides one request under the limits of a prepared chain: charges all of them if it conforms to all, else none. The
/// answers are those of tatcell_chain_check for the same links.
///
///     tatcell_chain_key_t keys[2] = {{0}};               // link 0: a key of a table; link 1: a cell
///     keys[0].key = &client.sin_addr, keys[0].key_len = 4;
///     if (tatcell_prepared_chain_check(&prepared, now, keys, NULL, NULL) != TATCELL_PASS) return refuse();
///
/// @param prepared from tatcell_prepared_chain_init; not NULL.
/// @param now      the caller's clock, ticks.
/// @param keys     one for each link; not NULL.
/// @param costs    units, one for each link; NULL = 1 each.
/// @param out      started from TATCELL_DECISION_INIT; NULL = not wanted.
/// @retval 0 passes; all links are charged.
/// @retval TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED as tatcell_chain_check.
/// @retval TATCELL_ERR_HANDLE prepared is not initialised.
/// @retval TATCELL_ERR_HASH the caller hashes for a table: use tatcell_prepared_chain_check_hash.
/// @retval TATCELL_ERR_TWO_LIMITS two links with different limits have one key.
/// @retval TATCELL_ERR_COST the costs of one cell or key together exceed 64 bits.
/// @retval TATCELL_ERR_SIZE out->size is not set.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_KEY_LENGTH bad argument. Nothing is changed on error.
/// Thread: any number, unless a table is exclusive. Cost: a hash and a scan for each key and a compare-and-swap for
/// each link, only loads if a link refuses, and 0.6 KiB of stack, if every link is plain (see tatcell_chain_check).
/// Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_prepared_chain_check(
    prepared: *const tatcell_prepared_chain_t,
    now: u64,
    keys: *const tatcell_chain_key_t,
    costs: *const u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        chain = c.prepared(prepared),
        keys = c.slice(keys, chain.count()),
        costs = c.costs(costs, chain.count())
    );
    let hash = |i: usize, hasher: &Hasher| match keys.get(i) {
        Some(key) => Ok(hash_of(hasher, c.key(key.key, key.key_len)?)?),
        None => impossible!(Err(Code(TATCELL_ERR_COUNT))),
    };
    check(c, chain, now, costs, out, hash)
}

/// As tatcell_prepared_chain_check, for hashes made by tatcell_table_hash or by the caller.
///
/// @param prepared from tatcell_prepared_chain_init; not NULL.
/// @param now      the caller's clock, ticks.
/// @param hashes   one for each link, that of a cell is not read; not NULL.
/// @param costs    units, one for each link; NULL = 1 each.
/// @param out      started from TATCELL_DECISION_INIT; NULL = not wanted.
/// @retval as tatcell_prepared_chain_check.
/// Thread: as tatcell_prepared_chain_check. Cost: as that, without a hash. Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_prepared_chain_check_hash(
    prepared: *const tatcell_prepared_chain_t,
    now: u64,
    hashes: *const u64,
    costs: *const u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        chain = c.prepared(prepared),
        hashes = c.slice(hashes, chain.count()),
        costs = c.costs(costs, chain.count())
    );
    let hash = |i: usize, _: &Hasher| hashes.get(i).copied().ok_or(Code(TATCELL_ERR_COUNT));
    check(c, chain, now, costs, out, hash)
}

#[inline(always)]
fn hash_of(hasher: &Hasher, key: &[u8]) -> Result<u64, i32> {
    hasher.hash_one(key).ok_or(TATCELL_ERR_HASH)
}

/// The code of an error.
struct Code(i32);

impl From<i32> for Code {
    fn from(code: i32) -> Code {
        Code(code)
    }
}

impl From<ChainError> for Code {
    fn from(e: ChainError) -> Code {
        Code(chain_code(e))
    }
}

#[inline(always)]
fn check(
    c: Contract<'_>,
    chain: &PreparedChain<'_>,
    now: u64,
    costs: Option<&[u64]>,
    out: *mut tatcell_decision_t,
    hash: impl FnMut(usize, &Hasher) -> Result<u64, Code>,
) -> i32 {
    if !out.is_null() {
        return check_told(c, chain, now, costs, out, hash);
    }
    match chain.cells() {
        0 => check_any(chain, now, costs, hash),
        2 => check_cells::<2>(chain, now, costs),
        _ => check_cells::<3>(chain, now, costs),
    }
}

/// Decides a request of N cells. Out of line, as the next: the call of the C function ends with it.
#[inline(never)]
fn check_cells<const N: usize>(chain: &PreparedChain<'_>, now: u64, costs: Option<&[u64]>) -> i32 {
    match chain.cells_pass::<N>(now, costs) {
        Some(true) => TATCELL_PASS,
        Some(false) => TATCELL_NON_CONFORMING,
        None => code_of(chain.cells_long(now, costs).map_err(Code::from)),
    }
}

/// Decides a request of other links.
#[inline(never)]
fn check_any(
    chain: &PreparedChain<'_>,
    now: u64,
    costs: Option<&[u64]>,
    hash: impl FnMut(usize, &Hasher) -> Result<u64, Code>,
) -> i32 {
    code_of(chain.verdict_by(now, costs, hash))
}

fn code_of(made: Result<Verdict, Code>) -> i32 {
    match made {
        Ok(verdict) => verdict_code(verdict),
        Err(Code(code)) => code,
    }
}

#[inline(never)]
fn check_told(
    c: Contract<'_>,
    chain: &PreparedChain<'_>,
    now: u64,
    costs: Option<&[u64]>,
    out: *mut tatcell_decision_t,
    hash: impl FnMut(usize, &Hasher) -> Result<u64, Code>,
) -> i32 {
    let out = match c.report(out) {
        Ok(out) => out,
        Err(e) => return e,
    };
    match chain.check_by(now, costs, hash) {
        Ok(made) => fill(&made, out),
        Err(Code(code)) => code,
    }
}

/// Most hashes of a burst.
const HASHES: usize = MAX_BURST * MAX_LINKS;

/// Decides up to 64 requests of a prepared chain at one now, in order.
///
///     struct packet { uint8_t source[16], user[16]; } packets[32];
///     tatcell_chain_key_t keys[2] = {{sizeof(struct packet), packets[0].source, 16},
///                                    {sizeof(struct packet), packets[0].user, 16}};
///     tatcell_chain_burst_t burst = TATCELL_CHAIN_BURST_INIT;
///     uint64_t pass;
///     burst.now = now, burst.count = received, burst.keys = keys;
///     if (tatcell_prepared_chain_check_burst(&prepared, &burst, &pass) < 0) return error();
///
/// The verdicts and charges equal those of the same single calls in the same order, including repeated keys. The lines
/// of later requests are prefetched while one is decided.
///
/// @param prepared from tatcell_prepared_chain_init; not NULL.
/// @param burst    started from TATCELL_CHAIN_BURST_INIT; not NULL.
/// @param pass     gets a bit for each request: bit i is 1 if request i passes. Not NULL.
/// @retval 0 decided; see pass. A contended request has bit 0.
/// @retval TATCELL_ERR_COUNT more than 64 requests.
/// @retval TATCELL_ERR_OPTION a flag or a reserved field is set, or both keys and hashes.
/// @retval TATCELL_ERR_OVERLAP retry_after and pass overlap, or retry_after overlaps what the call reads. pass may lie
///         there: it is written last.
/// @retval others as tatcell_prepared_chain_check. On error nothing is decided or charged.
/// Thread: as tatcell_prepared_chain_check. Cost: that of single calls, without most of their cache misses; about 5 KiB
/// of stack. Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_prepared_chain_check_burst(
    prepared: *const tatcell_prepared_chain_t,
    burst: *const tatcell_chain_burst_t,
    pass: *mut u64,
) -> i32 {
    args!(
        c,
        to = c.result(pass),
        chain = c.prepared(prepared),
        given = c.options(burst),
        made = run(c, (prepared, chain), (burst, &given), pass)
    );
    to.put(made);
    TATCELL_PASS
}

fn run(
    c: Contract<'_>,
    (prepared, chain): (*const tatcell_prepared_chain_t, &PreparedChain<'_>),
    (burst, given): (*const tatcell_chain_burst_t, &tatcell_chain_burst_t),
    pass: *const u64,
) -> Result<u64, i32> {
    let (count, links) = (given.count as usize, chain.count());
    let all = count.wrapping_mul(links);
    if given.flags | given.reserved != 0 || !given.keys.is_null() && !given.hashes.is_null() {
        return Err(TATCELL_ERR_OPTION);
    }
    if count > MAX_BURST {
        return Err(TATCELL_ERR_COUNT);
    }
    if count == 0 {
        return Ok(0);
    }
    if given.keys.is_null() && given.hashes.is_null() {
        return Err(TATCELL_ERR_NULL);
    }
    let retries = Span::of(given.retry_after, count);
    Span::of(pass, 1).apart(retries)?;
    let written = &Written::new(retries, [retries, Span::NOTHING, Span::NOTHING, Span::NOTHING]);
    written.apart(c.reach(burst))?;
    written.apart(Span::of(prepared, 1))?;
    written.apart(Span::of(given.hashes, all))?;
    written.apart(Span::of(given.costs, all))?;
    let costs = c.costs(given.costs, all)?;
    let mut own = [0; HASHES];
    let hashes = match given.keys.is_null() {
        true => c.slice(given.hashes, all)?,
        false => {
            written.apart(Span::of(given.keys, links))?;
            for (k, key) in c.slice(given.keys, links)?.iter().enumerate() {
                let Some(hasher) = chain.hasher(k) else { continue };
                let none = core::ptr::null();
                let keys = c.keys((key.key, key.stride), none, key.key_len, none.cast(), count)?;
                keys.apart_from(written, count)?;
                for (i, place) in own.iter_mut().skip(k).step_by(links).enumerate().take(count) {
                    let key = keys.bytes(i).ok_or(TATCELL_ERR_NULL)?;
                    *place = hash_of(hasher, key)?;
                }
            }
            own.get(..all).ok_or_else(|| impossible!(TATCELL_ERR_COUNT))?
        }
    };
    let asked = ChainBurst { chain, now: given.now, hashes, costs };
    if given.retry_after.is_null() {
        return asked.check().map_err(chain_code);
    }
    let retries: &mut [u64] = c.buffer(given.retry_after, count.wrapping_mul(size_of::<u64>()))?;
    let each = |i: usize, refused: Option<&Decision>| {
        if let Some(place) = retries.get_mut(i) {
            *place = refused.map_or(0, |decision| decision.retry_after);
        }
    };
    asked.check_ex(each).map_err(chain_code)
}

/// Returns sizeof(tatcell_prepared_chain_t) of the linked library, to compare with TATCELL_PREPARED_CHAIN_SIZE. Since
/// 0.4.
#[no_mangle]
pub extern "C" fn tatcell_prepared_chain_size() -> usize {
    TATCELL_PREPARED_CHAIN_SIZE
}

//! `tatcell_table_check_burst`: many keys at once, while the next ones are prefetched.

use core::ffi::c_void;

use super::check::refused;
use super::handle::tatcell_table_t;
use crate::capi::codes::{table_code, TATCELL_ERR_COUNT, TATCELL_ERR_OPTION, TATCELL_PASS};
use crate::capi::decision::tatcell_decision_t;
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, placed, Contract, Grows};
use crate::capi::pointers::lists::{KeyList, Rows};
use crate::capi::pointers::places::{apart, Span, Written};
use crate::combine::link::either;
use crate::limit::TableLimit;
use crate::table::{Access, Burst, Counters, NextBurst, Table, MAX_BURST};

/// Most keys in one burst.
pub const TATCELL_BURST_MAX: u32 = 64;
const _: () = assert!(TATCELL_BURST_MAX as usize == MAX_BURST);

/// flags of a burst, when it is decided: its lines were prefetched already (tatcell_table_prefetch), so the call
/// does not prefetch them again. It changes no verdict. Use it with hashes; a burst that was the next one of a call
/// does not need it. Since 0.4.
pub const TATCELL_BURST_PREFETCHED: u32 = 1;

/// Bytes of a tatcell_burst_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_BURST_MIN: usize = 48 + 10 * size_of::<*const u8>() + 8 * MAX_BURST;

/// Up to 64 requests at one instant. Start from TATCELL_BURST_INIT. It may be used again and again.
///
/// Keys have one of three forms: keys (the first key, with stride bytes from each key to the next), key_pointers
/// (one pointer for each key), or hashes. Set one of the three and leave the others NULL.
#[repr(C)]
pub struct tatcell_burst_t {
    /// sizeof(tatcell_burst_t).
    pub size: u32,
    /// 0, or TATCELL_BURST_PREFETCHED.
    pub flags: u32,
    /// Number of requests, 0..64. An empty burst needs no other field.
    pub count: u32,
    /// With decisions: bytes from one decision to the next, sizeof(tatcell_decision_t).
    pub decision_size: u32,
    /// The caller's clock, ticks: read the clock once per burst. The call that has this burst as its next does not
    /// read it.
    pub now: u64,
    /// Result: bit i is 1 if request i passes. Unchanged on error. Before the call it is a hint: the result of an
    /// earlier burst, or 0.
    pub pass: u64,
    /// Shows that the keys are hashed. The call that has this burst as its next sets it, and the call that decides
    /// the burst clears it. Set it to 0 to have the keys hashed again.
    pub prepared: u64,
    /// Bytes from one key to the next. It may be negative, or 0 to use one key many times. The call refuses one that a
    /// ptrdiff_t cannot hold (TATCELL_ERR_OPTION).
    pub stride: i64,
    /// The limit of all requests, from tatcell_limit_init_table. NULL if limits is set.
    pub limit: *const tatcell_limit_t,
    /// One limit for each request. NULL if limit is set.
    pub limits: *const *const tatcell_limit_t,
    /// Key i is at (const char *)keys + i * stride, so keys may lie inside larger structures.
    pub keys: *const c_void,
    /// Key i is at key_pointers[i].
    pub key_pointers: *const *const c_void,
    /// Hashes from tatcell_table_hash, or the caller's own keyed hashes.
    pub hashes: *const u64,
    /// Bytes of each key; NULL = key_len for every key.
    pub key_lens: *const usize,
    /// Bytes of every key, unless key_lens is set. Keys of 4 and 16 bytes are fastest.
    pub key_len: usize,
    /// Units of each request; NULL = 1 each.
    pub costs: *const u32,
    /// Gets the full answers, decision_size bytes apart. Their size fields are neither read nor written. NULL = not
    /// wanted.
    pub decisions: *mut tatcell_decision_t,
    /// This thread's counters; NULL = off.
    pub counters: *mut Counters,
    /// Private to the library: the hashes of a prepared burst.
    pub scratch: [u64; 64],
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_burst_t {
    const FIRST: usize = TATCELL_BURST_MIN;
}
const _: () = assert!(size_of::<tatcell_burst_t>() == TATCELL_BURST_MIN && TATCELL_BURST_MIN % 8 == 0);

/// Decides up to 64 requests at one now, in order. Meanwhile it hashes and prefetches the keys of the next burst.
///
/// The verdicts equal those of single calls in the same order, including repeated keys. A burst without a next one
/// is hashed and prefetched first, so that its cache misses overlap. A loop that receives one burst while it
/// decides the previous one passes both: the cache misses of the next burst are served while this one is decided.
/// The first call decides an empty burst, and the last one has an empty next:
///
///     tatcell_burst_t b[2] = {TATCELL_BURST_INIT, TATCELL_BURST_INIT};
///     b[0].limit = b[1].limit = &limit;
///     for (int i = 0;; i ^= 1) {
///         tatcell_burst_t *burst = &b[i], *next = &b[i ^ 1];
///         next->keys = keys[i ^ 1], next->key_len = next->stride = sizeof keys[0][0];
///         next->count = receive(keys[i ^ 1]);
///         if (burst->count + next->count == 0) break;
///         burst->now = now;
///         rc = tatcell_table_check_burst(&table, burst, next);
///         if (rc < 0) break;
///         forward(burst->pass, burst->count);
///     }
///
/// The keys of the next burst are hashed first. Its lines are prefetched while this burst is decided, or before
/// that if each request has its own limit or if decisions is set.
///
/// @param table handle; not NULL.
/// @param burst the burst to decide; not NULL.
/// @param next  the burst that the next call will decide, under the same table. This call reads its keys, but not
///              its limit, costs or now. Its pass, if set, is a hint: if most of the previous burst passed, lines
///              are prefetched for writing. NULL = nothing follows.
/// @retval 0 decided; see burst->pass. A contended request has bit 0.
/// @retval TATCELL_ERR_COUNT more than 64 requests.
/// @retval TATCELL_ERR_SIZE size or decision_size is not set.
/// @retval TATCELL_ERR_OPTION a flag is unknown, burst and next are the same, or two forms of keys or of limits are
///         set.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer, or neither keys nor hashes, or no limit.
/// @retval TATCELL_ERR_OVERLAP an object that the call writes (both bursts, decisions, counters) overlaps another
///         object of the call.
/// @retval others as tatcell_table_check. On error nothing is decided, hashed or changed.
/// Thread: any number, each with its own bursts, unless the table is exclusive. Cost: as single calls, with the
/// cache misses overlapped; fastest without decisions. Since 0.2.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_check_burst(
    table: *const tatcell_table_t,
    burst: *mut tatcell_burst_t,
    next: *mut tatcell_burst_t,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        () = placed(burst),
        () = two(burst, next),
        burst = c.owned_options(burst),
        next = c.owned_options_if(next),
        work = Work::new(c, burst, next.as_deref(), table.ticket),
        () = either!(table.table(), t => work.run(t, burst, next, table.ticket))
    );
    TATCELL_PASS
}

/// Refuses one burst given twice, and two bursts that overlap.
#[inline(always)]
pub(in crate::capi) fn two(burst: *const tatcell_burst_t, next: *const tatcell_burst_t) -> Result<(), i32> {
    if core::ptr::eq(burst, next) {
        return Err(TATCELL_ERR_OPTION);
    }
    apart(burst, next)
}

/// What was done for a burst before the call that decides it.
#[derive(Clone, Copy)]
pub(in crate::capi) struct Before {
    /// Whether its keys were hashed, into its scratch.
    pub hashed: bool,
    /// Whether its lines were prefetched.
    pub fetched: bool,
}

impl Before {
    #[inline(always)]
    pub(in crate::capi) fn of(b: &tatcell_burst_t, ticket: u64) -> Before {
        let hashed = b.prepared == ticket.wrapping_add(b.count as u64);
        Before { hashed, fetched: hashed | (b.flags & TATCELL_BURST_PREFETCHED != 0) }
    }
}

/// Where the hashes of a burst come from.
#[derive(Clone, Copy)]
pub(in crate::capi) enum Source<'a> {
    /// No requests.
    Empty,
    /// The scratch has them, and their lines were prefetched.
    Scratch,
    /// The caller has them.
    Hashes(&'a [u64]),
    Keys(KeyList<'a>),
}

impl<'a> Source<'a> {
    /// Checks the keys of a burst, which must lie apart from what is written.
    #[inline(always)]
    pub(in crate::capi) fn new(
        c: Contract<'a>,
        b: &tatcell_burst_t,
        prepared: bool,
        written: &Written,
    ) -> Result<Source<'a>, i32> {
        let count = b.count as usize;
        if b.flags & !TATCELL_BURST_PREFETCHED != 0 {
            return Err(TATCELL_ERR_OPTION);
        }
        if count > MAX_BURST {
            return Err(TATCELL_ERR_COUNT);
        }
        let (keys, pointers, hashes) = (!b.keys.is_null(), !b.key_pointers.is_null(), !b.hashes.is_null());
        if keys & pointers | keys & hashes | pointers & hashes {
            return Err(TATCELL_ERR_OPTION);
        }
        if count == 0 {
            return Ok(Source::Empty);
        }
        if hashes {
            written.apart(Span::of(b.hashes, count))?;
            return Ok(Source::Hashes(c.array(b.hashes, count)?));
        }
        if prepared {
            return Ok(Source::Scratch);
        }
        written.apart(Span::of(b.key_pointers, count))?;
        written.apart(Span::of(b.key_lens, count))?;
        let keys = c.keys((b.keys, b.stride), b.key_pointers, b.key_len, b.key_lens, count)?;
        keys.apart_from(written, count)?;
        Ok(Source::Keys(keys))
    }
}

/// One limit for all requests, or one for each.
#[derive(Clone, Copy)]
pub(in crate::capi) enum Limits<'a> {
    One(&'a TableLimit),
    Each(&'a [&'a TableLimit]),
}

impl<'a> Limits<'a> {
    pub(in crate::capi) fn new(
        c: Contract<'a>,
        b: &tatcell_burst_t,
        written: &Written,
    ) -> Result<Limits<'a>, i32> {
        if b.limits.is_null() {
            written.apart(Span::of(b.limit, 1))?;
            return Ok(Limits::One(c.table_limit(b.limit)?));
        }
        if !b.limit.is_null() {
            return Err(TATCELL_ERR_OPTION);
        }
        written.apart(Span::of(b.limits, b.count as usize))?;
        // The table tests whether they are its limits.
        Ok(Limits::Each(c.inputs(b.limits.cast::<*const TableLimit>(), b.count as usize)?))
    }

    pub(in crate::capi) fn get(self, i: usize) -> Option<&'a TableLimit> {
        match self {
            Limits::One(limit) => Some(limit),
            Limits::Each(limits) => limits.get(i).copied(),
        }
    }

    /// Refuses limits of other tables.
    pub(in crate::capi) fn are_of<M: Access>(self, table: &Table<'_, M>, count: usize) -> Result<(), i32> {
        let count = if matches!(self, Limits::One(_)) { 1 } else { count };
        (0..count)
            .filter_map(|i| self.get(i))
            .try_for_each(|limit| table.verify_limit(limit).map_err(|e| refused(e, limit)))
    }
}

/// A call with checked arguments.
struct Work<'a> {
    now: u64,
    source: Source<'a>,
    /// Whether its lines were prefetched.
    fetched: bool,
    limits: Option<Limits<'a>>,
    costs: Option<&'a [u32]>,
    decisions: Option<Rows<'a, tatcell_decision_t>>,
    counters: Option<&'a mut Counters>,
    next: Source<'a>,
    /// What the previous burst passed: a hint.
    last: u64,
}

impl<'a> Work<'a> {
    fn new(
        c: Contract<'a>,
        burst: &tatcell_burst_t,
        next: Option<&tatcell_burst_t>,
        ticket: u64,
    ) -> Result<Work<'a>, i32> {
        let count = burst.count as usize;
        let Before { hashed, fetched } = Before::of(burst, ticket);
        let decisions = c.rows(burst.decisions, burst.decision_size, count)?;
        // What the call writes: both structures, the decisions and the counters.
        let this = Span::of(burst, 1);
        let that = next.map_or(Span::NOTHING, |next| Span::of(next, 1));
        let decided = decisions.map_or(Span::NOTHING, Rows::span);
        let counted = Span::of(burst.counters, 1);
        if !burst.decisions.is_null() || !burst.counters.is_null() {
            decided.apart_from(&[this, that])?;
            counted.apart_from(&[this, that, decided])?;
        }
        let written = &Written::new(this, [this, that, decided, counted]);
        written.apart(Span::of(burst.costs, count))?;
        let costs = if burst.costs.is_null() { None } else { Some(c.array(burst.costs, count)?) };
        Ok(Work {
            now: burst.now,
            source: Source::new(c, burst, hashed, written)?,
            fetched,
            limits: if count == 0 { None } else { Some(Limits::new(c, burst, written)?) },
            costs,
            decisions,
            counters: c.owned_if(burst.counters)?,
            next: next.map_or(Ok(Source::Empty), |next| Source::new(c, next, false, written))?,
            last: next.map_or(burst.pass, |next| next.pass),
        })
    }

    /// Hashes the keys that have no hash yet, prefetches the lines, decides.
    #[inline(always)]
    fn run<M: Access>(
        self,
        table: &Table<'_, M>,
        burst: &mut tatcell_burst_t,
        mut next: Option<&mut tatcell_burst_t>,
        ticket: u64,
    ) -> Result<(), i32> {
        let count = burst.count as usize;
        if let Some(limits) = self.limits {
            limits.are_of(table, count)?;
        }
        let own = burst.scratch.get_mut(..count).ok_or_else(|| impossible!(TATCELL_ERR_COUNT))?;
        if let Source::Keys(keys) = self.source {
            let hashed = match self.fetched {
                true => table.hash_keys(own, &keys),
                false => table.prepare_keys(own, &keys),
            };
            hashed.map_err(table_code)?;
        }
        let hashes: &[u64] = match self.source {
            Source::Hashes(hashes) => hashes,
            _ => own,
        };
        if matches!(self.source, Source::Hashes(_)) && !self.fetched {
            table.prefetch(hashes);
        }
        let ahead = match &mut next {
            Some(next) => {
                next.scratch.get_mut(..next.count as usize).ok_or_else(|| impossible!(TATCELL_ERR_COUNT))?
            }
            None => &mut [],
        };
        let Work { now, costs, counters, .. } = self;
        let made = match (self.limits, self.decisions) {
            (Some(Limits::One(limit)), None) => {
                let next: &[u64] = match &self.next {
                    Source::Keys(keys) => {
                        table.hash_keys(ahead, keys).map_err(table_code)?;
                        ahead
                    }
                    Source::Hashes(next) => next,
                    _ => &[],
                };
                let burst = Burst { limit, now, hashes, costs, last: self.last };
                burst.check(table, counters, NextBurst::hashes(next))
            }
            (limits, decisions) => {
                match &self.next {
                    Source::Keys(keys) => table.prepare_keys(ahead, keys).map_err(table_code)?,
                    Source::Hashes(next) => table.prefetch_both(next),
                    _ => {}
                }
                let request = |i: usize| {
                    let limit = limits?.get(i)?;
                    Some((limit, costs.map_or(Some(1), |costs| costs.get(i).map(|&cost| cost.into()))?))
                };
                let each = decisions.map(|to| move |i, made: &_| to.put(i, &tatcell_decision_t::of(made)));
                Ok(table.decide_each(now, hashes, request, counters, each))
            }
        };
        burst.pass = made.map_err(table_code)?;
        burst.prepared = 0;
        if let Some(next) = next {
            next.prepared = ticket.wrapping_add(next.count.into());
        }
        Ok(())
    }
}

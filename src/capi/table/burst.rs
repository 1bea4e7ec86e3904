//! `tatcell_table_check_burst`: many keys at once, and a look ahead at the next ones.

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
use crate::table::{Access, Burst, Counters, Table, MAX_BURST};

/// Most keys in one burst.
pub const TATCELL_BURST_MAX: u32 = 64;
const _: () = assert!(TATCELL_BURST_MAX as usize == MAX_BURST);

/// Flag of a burst, while it is decided: its lines were asked for (tatcell_table_prefetch), so they are not asked for
/// again. Changes no verdict. For hashes: a burst that was next of a call needs no flag. Since 0.4.
pub const TATCELL_BURST_PREFETCHED: u32 = 1;

/// Bytes of a tatcell_burst_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_BURST_MIN: usize = 48 + 10 * size_of::<*const u8>() + 8 * MAX_BURST;

/// Up to 64 requests at one instant. Start from TATCELL_BURST_INIT; it may be used again and again.
///
/// Keys come in one of three forms: keys (the first one, and stride bytes from each to the next), key_pointers (one
/// pointer each), or hashes. Set one of the three and leave the others NULL.
#[repr(C)]
pub struct tatcell_burst_t {
    /// sizeof(tatcell_burst_t).
    pub size: u32,
    /// 0, or TATCELL_BURST_PREFETCHED.
    pub flags: u32,
    /// Requests, 0..64. An empty burst needs nothing else.
    pub count: u32,
    /// With decisions: bytes from one to the next, sizeof(tatcell_decision_t).
    pub decision_size: u32,
    /// The caller's clock, ticks: one clock read per burst. Not read before the burst is decided.
    pub now: u64,
    /// Result: bit i = 1: request i passes. Unchanged on error. Before that it is a hint: what a burst before this
    /// one answered, or 0.
    pub pass: u64,
    /// Set by the call that has this burst as its next, cleared by deciding it: its keys are hashed. Set it to 0 to
    /// have them hashed again.
    pub prepared: u64,
    /// Bytes from one key to the next; may be negative, or 0 for one key many times.
    pub stride: i64,
    /// The limit of all requests; or NULL, with limits. From tatcell_limit_init_table.
    pub limit: *const tatcell_limit_t,
    /// One limit a request; or NULL, with limit.
    pub limits: *const *const tatcell_limit_t,
    /// Key i is at (const char *)keys + i * stride: keys may lie inside larger structures.
    pub keys: *const c_void,
    /// Key i is at key_pointers[i].
    pub key_pointers: *const *const c_void,
    /// From tatcell_table_hash, or the caller's own keyed hashes.
    pub hashes: *const u64,
    /// Bytes of each key; NULL = key_len each.
    pub key_lens: *const usize,
    /// Bytes of every key, unless key_lens says them one by one. Keys of 4 and 16 bytes are fastest.
    pub key_len: usize,
    /// Units of each request; NULL = 1 each.
    pub costs: *const u32,
    /// Gets the full answers, decision_size bytes apart; their size fields are neither read nor written. NULL = not
    /// wanted.
    pub decisions: *mut tatcell_decision_t,
    /// This thread's counters; NULL = off.
    pub counters: *mut Counters,
    /// Not for use: the hashes of a prepared burst.
    pub scratch: [u64; 64],
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_burst_t {
    const FIRST: usize = TATCELL_BURST_MIN;
}
const _: () = assert!(size_of::<tatcell_burst_t>() == TATCELL_BURST_MIN && TATCELL_BURST_MIN % 8 == 0);

/// Decides up to 64 requests at one now, in order, and hashes and prefetches the keys of the next burst meanwhile.
///
/// The verdicts equal those of single calls in the same order, repeated keys included. Alone, a burst is hashed and
/// prefetched first, so its cache misses overlap. In a loop that receives a burst while it decides the one before it,
/// give both: the misses of the one pass while the other is decided. The first call decides an empty burst, the last
/// one has nothing next:
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
/// The keys of the next burst are hashed first, and its lines are fetched while this one is decided; with a limit of
/// its own for each request, or with decisions, before that.
///
/// @param table handle; not NULL.
/// @param burst what is decided; not NULL.
/// @param next  what will be decided by the next call, under the same table; its keys (not its limit, costs or now)
///              are read now. Its pass, if set, is a hint: where most of the burst before this one passed, lines are
///              fetched to be written. NULL = nothing follows.
/// @retval 0 decided; see burst->pass. Contended requests have bit 0.
/// @retval TATCELL_ERR_COUNT more than 64.
/// @retval TATCELL_ERR_SIZE size or decision_size is not set.
/// @retval TATCELL_ERR_OPTION a flag is unknown, both are the same burst, or there are two forms of keys or of
///         limits.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer, or neither keys nor hashes, or no limit.
/// @retval TATCELL_ERR_OVERLAP what the call writes (both bursts, decisions, counters) overlaps something else of it.
/// @retval others as tatcell_table_check. Nothing is decided, hashed or changed on error.
/// Thread: any number with bursts of their own, unless the table is exclusive. Cost: as single calls, with the cache
/// misses overlapped; fastest without decisions. Since 0.2.
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

/// Refuses one burst given twice, and two that overlap.
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
    /// Its keys were hashed, into its scratch.
    pub hashed: bool,
    /// Its lines were asked for.
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
    /// The scratch has them, and their lines were asked for.
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
        let keys = c.keys((b.keys, b.stride as isize), b.key_pointers, b.key_len, b.key_lens, count)?;
        keys.apart_from(written, count)?;
        Ok(Source::Keys(keys))
    }
}

/// One limit, or one a request.
#[derive(Clone, Copy)]
enum Limits<'a> {
    One(&'a TableLimit),
    Each(&'a [&'a TableLimit]),
}

impl<'a> Limits<'a> {
    fn new(c: Contract<'a>, b: &tatcell_burst_t, written: &Written) -> Result<Limits<'a>, i32> {
        if b.limits.is_null() {
            written.apart(Span::of(b.limit, 1))?;
            return Ok(Limits::One(c.table_limit(b.limit)?));
        }
        if !b.limit.is_null() {
            return Err(TATCELL_ERR_OPTION);
        }
        written.apart(Span::of(b.limits, b.count as usize))?;
        // What a limit is, the table asks.
        Ok(Limits::Each(c.inputs(b.limits.cast::<*const TableLimit>(), b.count as usize)?))
    }

    fn get(self, i: usize) -> Option<&'a TableLimit> {
        match self {
            Limits::One(limit) => Some(limit),
            Limits::Each(limits) => limits.get(i).copied(),
        }
    }

    /// Refuses limits of other tables.
    fn are_of<M: Access>(self, table: &Table<'_, M>, count: usize) -> Result<(), i32> {
        let count = if matches!(self, Limits::One(_)) { 1 } else { count };
        (0..count)
            .filter_map(|i| self.get(i))
            .try_for_each(|limit| table.verify_limit(limit).map_err(|e| refused(e, limit)))
    }
}

/// A checked call.
struct Work<'a> {
    now: u64,
    source: Source<'a>,
    /// Its lines were asked for.
    fetched: bool,
    limits: Option<Limits<'a>>,
    costs: Option<&'a [u32]>,
    decisions: Option<Rows<'a, tatcell_decision_t>>,
    counters: Option<&'a mut Counters>,
    next: Source<'a>,
    /// The hint.
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
        // What the call writes: both structures, decisions and counters.
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

    /// Hashes what must be hashed, asks for the lines, decides.
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
        let own = burst.scratch.get_mut(..count).unwrap_or_else(|| impossible!(&mut []));
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
            Some(next) => next.scratch.get_mut(..next.count as usize).unwrap_or_else(|| impossible!(&mut [])),
            None => &mut [],
        };
        let Work { now, costs, counters, .. } = self;
        let made = match (self.limits, self.decisions) {
            (Some(Limits::One(limit)), None) => {
                let burst = Burst { limit, now, hashes, costs, last: self.last };
                match &self.next {
                    Source::Keys(keys) => table.check_then_keys(&burst, counters, ahead, keys),
                    Source::Hashes(next) => table.check_burst_then(&burst, counters, next),
                    _ => table.check_burst_then(&burst, counters, &[]),
                }
            }
            (limits, decisions) => {
                match &self.next {
                    Source::Keys(keys) => table.prepare_keys(ahead, keys).map_err(table_code)?,
                    Source::Hashes(next) => table.prefetch(next),
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

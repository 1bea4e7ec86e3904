//! `tatcell_table_check_pairs`: many keys at once, each under two limits.

use crate::capi::codes::{table_code, TATCELL_ERR_COUNT, TATCELL_ERR_OPTION, TATCELL_PASS};
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, placed, Contract};
use crate::capi::pointers::places::{Span, Written};
use crate::capi::table::burst::{tatcell_burst_t, two, Before, Source};
use crate::capi::table::check::refused;
use crate::capi::table::handle::{tatcell_table_t, Handle};
use crate::combine::link::either;
use crate::combine::PairBurst;
use crate::keys::second_hash;
use crate::limit::TableLimit;
use crate::table::Counters;

/// Decides up to 64 requests at one now, in order, each under two limits of its key, such as bytes and packets.
///
/// Both limits are charged, or none. The first debt of a key lies in the table at the hash of the key, the second
/// one at tatcell_hash_second of that hash. The verdicts and the charges equal those of a chain of both limits
/// (tatcell_chain_check) for each request in the same order. Before it decides, the call hashes and prefetches the
/// keys of the next burst. burst and next are as for tatcell_table_check_burst, with the differences below.
///
/// @param table        handle; not NULL.
/// @param burst        the burst to decide; its limit and costs are the first of each request. Its limits (one for
///                     each request) and decisions are NULL. Not NULL.
/// @param second       the second limit of all requests, from tatcell_limit_init_table; not NULL unless the burst
///                     is empty.
/// @param second_costs units of each request under the second limit; NULL = 1 each.
/// @param next         the burst that the next call will decide, under the same table. NULL = nothing follows.
/// @retval 0 decided; see burst->pass. A contended request has bit 0.
/// @retval TATCELL_ERR_OPTION as tatcell_table_check_burst, or burst has limits or decisions.
/// @retval others as tatcell_table_check_burst. On error nothing is decided, hashed or changed.
/// Thread: any number, each with its own bursts, unless the table is exclusive. Cost: two scans and two
/// compare-and-swaps for a request that passes, with the cache misses of all requests overlapped. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_check_pairs(
    table: *const tatcell_table_t,
    burst: *mut tatcell_burst_t,
    second: *const tatcell_limit_t,
    second_costs: *const u32,
    next: *mut tatcell_burst_t,
) -> i32 {
    let spans = [Span::of(burst, 1), Span::of(next, 1)];
    args!(
        c,
        table = c.handle(table),
        () = placed(burst),
        () = two(burst, next),
        burst = c.owned_options(burst),
        mut next = c.owned_options_if(next),
        work = Work::new(c, table, burst, next.as_deref(), (second, second_costs), spans),
        pass = work.run(table, burst, next.as_deref_mut())
    );
    finish(table, burst, next, pass)
}

/// Writes what a decided burst and the next one say of themselves.
pub(super) fn finish(
    table: &Handle,
    burst: &mut tatcell_burst_t,
    next: Option<&mut tatcell_burst_t>,
    pass: u64,
) -> i32 {
    burst.pass = pass;
    burst.prepared = 0;
    if let Some(next) = next {
        next.prepared = table.ticket.wrapping_add(next.count.into());
    }
    TATCELL_PASS
}

/// A call with checked arguments.
struct Work<'a> {
    now: u64,
    source: Source<'a>,
    /// Whether the lines were prefetched.
    fetched: bool,
    /// `None` for an empty burst.
    limits: Option<[&'a TableLimit; 2]>,
    costs: [Option<&'a [u32]>; 2],
    counters: Option<&'a mut Counters>,
    next: Source<'a>,
}

impl<'a> Work<'a> {
    fn new(
        c: Contract<'a>,
        table: &Handle,
        burst: &tatcell_burst_t,
        next: Option<&tatcell_burst_t>,
        (second, second_costs): (*const tatcell_limit_t, *const u32),
        [this, that]: [Span; 2],
    ) -> Result<Work<'a>, i32> {
        let count = burst.count as usize;
        let Before { hashed, fetched } = Before::of(burst, table.ticket);
        if !burst.limits.is_null() || !burst.decisions.is_null() {
            return Err(TATCELL_ERR_OPTION);
        }
        let counted = Span::of(burst.counters, 1);
        counted.apart_from(&[this, that])?;
        let written = &Written::new(this, [this, that, counted, Span::NOTHING]);
        for costs in [burst.costs, second_costs] {
            written.apart(Span::of(costs, count))?;
        }
        for limit in [burst.limit, second] {
            written.apart(Span::of(limit, 1))?;
        }
        let source = Source::new(c, burst, hashed, written)?;
        let next = next.map_or(Ok(Source::Empty), |next| Source::new(c, next, false, written))?;
        let given = |p: *const u32| if p.is_null() { Ok(None) } else { c.array(p, count).map(Some) };
        let costs = [given(burst.costs)?, given(second_costs)?];
        let limits =
            if count == 0 { None } else { Some([c.table_limit(burst.limit)?, c.table_limit(second)?]) };
        for limit in limits.iter().flatten() {
            either!(table.table(), t => t.verify_limit(limit)).map_err(|e| refused(e, limit))?;
        }
        let counters = c.owned_if(burst.counters)?;
        Ok(Work { now: burst.now, source, fetched, limits, costs, counters, next })
    }

    /// Hashes the keys that have no hash yet, and decides.
    fn run(
        self,
        table: &Handle,
        burst: &mut tatcell_burst_t,
        next: Option<&mut tatcell_burst_t>,
    ) -> Result<u64, i32> {
        let (hashes, ahead) = hash_both(table, (burst, self.source), (next, self.next))?;
        let table = table.table();
        match self.limits {
            Some(limits) => {
                let pairs = PairBurst { limits, now: self.now, hashes, costs: self.costs };
                pairs.run(table, self.counters, (ahead, !self.fetched)).map_err(table_code)
            }
            None => {
                PairBurst::fetch(table, ahead);
                Ok(0)
            }
        }
    }
}

/// Returns the hashes of a burst and of the next one. Keys are hashed now, into the scratch of their burst.
pub(in crate::capi) fn hash_both<'b>(
    table: &Handle,
    (burst, source): (&'b mut tatcell_burst_t, Source<'b>),
    (next, source_of_next): (Option<&'b mut tatcell_burst_t>, Source<'b>),
) -> Result<(&'b [u64], &'b [u64]), i32> {
    let own = burst.scratch.get_mut(..burst.count as usize).ok_or_else(|| impossible!(TATCELL_ERR_COUNT))?;
    if let Source::Keys(keys) = source {
        either!(table.table(), t => t.hash_keys(own, &keys)).map_err(table_code)?;
    }
    let hashes: &[u64] = match source {
        Source::Hashes(hashes) => hashes,
        _ => own,
    };
    let ahead = match next {
        Some(next) => {
            next.scratch.get_mut(..next.count as usize).ok_or_else(|| impossible!(TATCELL_ERR_COUNT))?
        }
        None => &mut [],
    };
    let ahead: &[u64] = match source_of_next {
        Source::Keys(keys) => {
            either!(table.table(), t => t.hash_keys(ahead, &keys)).map_err(table_code)?;
            ahead
        }
        Source::Hashes(hashes) => hashes,
        _ => &[],
    };
    Ok((hashes, ahead))
}

/// Returns the hash of a key's second debt, computed from the hash of its first one. tatcell_table_check_pairs
/// keeps the second debt there. Use it for single calls on the second debt.
///
/// @param hash from tatcell_table_hash, or the caller's own keyed hash.
/// @return the hash of the second debt.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_hash_second(hash: u64) -> u64 {
    second_hash(hash)
}

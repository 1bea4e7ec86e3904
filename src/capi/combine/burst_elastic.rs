//! Bursts of keys with elastic room, and bursts that are charged after the fact.

use crate::answer::Decision;
use crate::capi::combine::pair::{finish, hash_both};
use crate::capi::decision::tatcell_decision_t;
use crate::capi::pointers::contract::{args, placed, Contract};
use crate::capi::pointers::lists::Rows;
use crate::capi::pointers::places::{Span, Written};
use crate::capi::table::burst::{tatcell_burst_t, two, Before, Limits, Source};
use crate::capi::table::handle::{tatcell_table_t, Handle};
use crate::combine::link::either;
use crate::table::Counters;

/// Decides up to 64 requests like tatcell_table_check_burst, with elastic room for each: this many units above the
/// burst of its limit, at most the max_room of the limit, as the room of tatcell_table_check_ex.
///
/// @param table handle; not NULL.
/// @param burst the burst to decide; not NULL.
/// @param rooms units of room of each request; NULL = none.
/// @param next  the burst that the next call will decide, under the same table. NULL = nothing follows.
/// @retval 0 decided; see burst->pass. A contended request has bit 0.
/// @retval TATCELL_ERR_OVERLAP as tatcell_table_check_burst; rooms, too.
/// @retval others as tatcell_table_check_burst. On error nothing is decided, hashed or changed.
/// Thread: as tatcell_table_check_burst. Cost: as single calls of tatcell_table_check_ex, with the cache misses
/// overlapped. Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_check_burst_room(
    table: *const tatcell_table_t,
    burst: *mut tatcell_burst_t,
    rooms: *const u32,
    next: *mut tatcell_burst_t,
) -> i32 {
    args!(c, code = burst_with(c, table, (burst, next), Asked::Room(rooms)));
    code
}

/// Charges up to 64 keys after the fact, in order, as tatcell_table_charge: for requests that were let through, whose
/// costs are known only now.
///
/// @param table handle; not NULL.
/// @param burst the burst to charge, as for tatcell_table_check_burst; not NULL. Bit i of burst->pass becomes 0 only if
///              request i is not charged: contended, or refused by a full set as in tatcell_table_charge.
/// @param next  the burst that the next call will decide or charge, under the same table. NULL = nothing follows.
/// @retval 0 charged; see burst->pass.
/// @retval others as tatcell_table_check_burst. On error nothing is charged, hashed or changed.
/// Thread: as tatcell_table_check_burst. Cost: as single calls, with the cache misses overlapped. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_charge_burst(
    table: *const tatcell_table_t,
    burst: *mut tatcell_burst_t,
    next: *mut tatcell_burst_t,
) -> i32 {
    args!(c, code = burst_with(c, table, (burst, next), Asked::Charge));
    code
}

/// Decides or charges a burst.
fn burst_with(
    c: Contract<'_>,
    table: *const tatcell_table_t,
    (burst, next): (*mut tatcell_burst_t, *mut tatcell_burst_t),
    asked: Asked,
) -> Result<i32, i32> {
    let spans = [Span::of(burst, 1), Span::of(next, 1)];
    let table = c.handle(table)?;
    placed(burst)?;
    two(burst, next)?;
    let (burst, mut next) = (c.owned_options(burst)?, c.owned_options_if(next)?);
    let work = Work::new(c, table, burst, next.as_deref(), asked, spans)?;
    let pass = work.run(table, burst, next.as_deref_mut())?;
    Ok(finish(table, burst, next, pass))
}

/// What is done for each request.
#[derive(Clone, Copy)]
enum Asked {
    /// It is decided with room; NULL = none.
    Room(*const u32),
    Charge,
}

/// A call with checked arguments.
struct Work<'a> {
    now: u64,
    source: Source<'a>,
    fetched: bool,
    /// `None` for an empty burst.
    limits: Option<Limits<'a>>,
    costs: Option<&'a [u32]>,
    /// `None` = charge.
    rooms: Option<&'a [u32]>,
    decisions: Option<Rows<'a, tatcell_decision_t>>,
    counters: Option<&'a mut Counters>,
    next: Source<'a>,
}

impl<'a> Work<'a> {
    fn new(
        c: Contract<'a>,
        table: &Handle,
        burst: &tatcell_burst_t,
        next: Option<&tatcell_burst_t>,
        asked: Asked,
        [this, that]: [Span; 2],
    ) -> Result<Work<'a>, i32> {
        let count = burst.count as usize;
        let Before { hashed, fetched } = Before::of(burst, table.ticket);
        let decisions = c.rows(burst.decisions, burst.decision_size, count)?;
        let (decided, counted) = (decisions.map_or(Span::NOTHING, Rows::span), Span::of(burst.counters, 1));
        decided.apart_from(&[this, that])?;
        counted.apart_from(&[this, that, decided])?;
        let written = &Written::new(this, [this, that, decided, counted]);
        let units = |p: *const u32| {
            written.apart(Span::of(p, count))?;
            if p.is_null() {
                Ok(None)
            } else {
                c.array(p, count).map(Some)
            }
        };
        let costs = units(burst.costs)?;
        let rooms = match asked {
            Asked::Room(rooms) => Some(units(rooms)?.unwrap_or(&[])),
            Asked::Charge => None,
        };
        let source = Source::new(c, burst, hashed, written)?;
        let limits = if count == 0 { None } else { Some(Limits::new(c, burst, written)?) };
        if let Some(limits) = limits {
            either!(table.table(), t => limits.are_of(t, count))?;
        }
        let counters = c.owned_if(burst.counters)?;
        let next = next.map_or(Ok(Source::Empty), |next| Source::new(c, next, false, written))?;
        Ok(Work { now: burst.now, source, fetched, limits, costs, rooms, decisions, counters, next })
    }

    /// Hashes the keys that have no hash yet, prefetches, and decides or charges.
    fn run(
        self,
        table: &Handle,
        burst: &mut tatcell_burst_t,
        next: Option<&mut tatcell_burst_t>,
    ) -> Result<u64, i32> {
        let (hashes, ahead) = hash_both(table, (burst, self.source), (next, self.next))?;
        let Work { now, fetched, limits, costs, rooms, decisions, counters, .. } = self;
        let request = |i: usize| {
            let limit = limits?.get(i)?;
            Some((limit, costs.map_or(Some(1), |costs| costs.get(i).map(|&cost| cost.into()))?))
        };
        let each = |i: usize, made: &Decision| {
            if let Some(to) = decisions {
                to.put(i, &tatcell_decision_t::of(made));
            }
        };
        Ok(either!(table.table(), t => {
            if !fetched {
                t.prefetch_both(hashes);
            }
            t.prefetch_both(ahead);
            t.decide_elastic((now, hashes), request, rooms, counters, each)
        }))
    }
}

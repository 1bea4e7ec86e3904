//! `tatcell_shaper_*`, second part: reserving what then waits.

use super::group::tatcell_group_t;
use super::shaper::{shaper_code, tatcell_shaper_t, tatcell_waiting_t};
use crate::answer::Decision;
use crate::capi::combine::chain::{link, tatcell_chain_t, tatcell_link_t, Work};
use crate::capi::decision::{fill, tatcell_decision_t};
use crate::capi::pointers::contract::{args, Report};
use crate::capi::pointers::places::Span;
use crate::combine::ShaperError;

/// Fills a decision in and gives its verdict, or the error.
fn finish_submit(made: Result<Decision, ShaperError>, out: Report<'_, tatcell_decision_t>) -> i32 {
    match made {
        Ok(decision) => fill(&decision, out),
        Err(e) => shaper_code(e),
    }
}

/// Reserves a request under one limit and keeps its handle until out->departure.
///
/// Every request goes through the wheel, one that may leave at once too, so that none overtakes another of its flow. A
/// limit's max_delay is its queue's length in time: Q jobs of one unit are Q * T. The wheel is looked at first, so what
/// is refused has reserved nothing, and what is reserved has its place. A now that lies behind one at which a request
/// was taken in counts as that one.
///
/// @param shaper not NULL.
/// @param now    the caller's clock, ticks.
/// @param link   started from TATCELL_LINK_INIT: the cell or key, its limit with a max_delay, and the cost; not NULL.
/// @param group  whose flow it is: it leaves no earlier than any of the group before it, and its delay counts from now
///               all the same (IEEE 802.1Qcr). NULL = none.
/// @param handle yours; comes out when it is due.
/// @param out    started from TATCELL_DECISION_INIT, not in the shaper or its memory: departure, or retry_after; not
///               NULL.
/// @retval 0 reserved; the handle waits.
/// @retval TATCELL_NON_CONFORMING would wait longer than max_delay; TATCELL_NEVER the cost is above the burst;
///         TATCELL_CONTENDED ask again. Nothing is charged, the handle does not wait.
/// @retval TATCELL_ERR_FULL as many wait as the memory holds.
/// @retval TATCELL_ERR_TOO_FAR the limit's max_delay is longer than the horizon.
/// @retval TATCELL_ERR_BEHIND what is long due was not taken out: release first.
/// @retval TATCELL_ERR_ALGORITHM the limit is not of GCRA, which alone knows when a request may leave.
/// @retval TATCELL_ERR_HANDLE shaper not initialised.
/// @retval TATCELL_ERR_OVERLAP out lies in the shaper or its memory.
/// @retval TATCELL_ERR_SIZE, TATCELL_ERR_OPTION, TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_LIMIT,
///         TATCELL_ERR_FOREIGN, TATCELL_ERR_HASH, TATCELL_ERR_KEY_LENGTH as a link of tatcell_chain_check.
/// Nothing is changed on error.
/// Thread: one at a time on a shaper, any number on cells, tables and groups. Cost: O(1), the reservation and three
/// words of the memory. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_shaper_submit(
    shaper: *mut tatcell_shaper_t,
    now: u64,
    link: *const tatcell_link_t,
    group: *mut tatcell_group_t,
    handle: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        shaper = c.shaper(shaper, Span::of(out, 1)),
        to = c.report(out),
        given = c.options(link),
        link = self::link(c, &given),
        group = c.group_if(group)
    );
    let made = match group {
        Some(group) => shaper.submit_in(now, group, &link, handle),
        None => shaper.submit(now, &link, handle),
    };
    finish_submit(made, to)
}

/// As tatcell_shaper_submit under all limits of a chain: departs at the latest of theirs, all charged now.
///
/// Where one limit is shared by many flows, tatcell_shaper_forward keeps that limit's rate exactly; this does not: what
/// one flow holds back leaves later than the shared limit has counted it.
///
/// @param shaper not NULL.
/// @param now    the caller's clock, ticks.
/// @param chain  started from TATCELL_CHAIN_INIT; its permits, decisions and counters are filled in as
///               tatcell_chain_reserve does. Not NULL.
/// @param handle yours; comes out when it is due.
/// @param out    started from TATCELL_DECISION_INIT; not NULL.
/// @retval as tatcell_chain_reserve, and TATCELL_ERR_FULL, TATCELL_ERR_TOO_FAR, TATCELL_ERR_BEHIND, TATCELL_ERR_HANDLE
///         as tatcell_shaper_submit. Nothing is changed on error.
/// Thread: as tatcell_shaper_submit. Cost: that of tatcell_chain_reserve, and three words. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_shaper_submit_chain(
    shaper: *mut tatcell_shaper_t,
    now: u64,
    chain: *const tatcell_chain_t,
    handle: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        shaper = c.shaper(shaper, Span::of(out, 1)),
        to = c.report(out),
        work = Work::new(c, chain, out)
    );
    let made = work.run(|chain, counters, each| shaper.submit_chain_ex(now, chain, handle, counters, each));
    finish_submit(made, to)
}

/// Reserves what has come out at one level under the limit of the next, now, and lets it wait there: it comes out again
/// with its level one higher. A hierarchy: flow within tenant within port.
///
/// A parent is asked when a request gets there, never for a time that lies ahead, which would let everybody else wait
/// behind it. The place that the handle came out of is free until something else is put in: forward first, submit then.
/// What a parent refuses is lost there; what its flow was charged has been used.
///
/// @param shaper  not NULL.
/// @param now     the caller's clock, ticks.
/// @param waiting what tatcell_shaper_release gave; not NULL.
/// @param link    of the next level, started from TATCELL_LINK_INIT; not NULL.
/// @param out     started from TATCELL_DECISION_INIT; not NULL.
/// @retval as tatcell_shaper_submit.
/// Thread: as tatcell_shaper_submit. Cost: the same. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_shaper_forward(
    shaper: *mut tatcell_shaper_t,
    now: u64,
    waiting: *const tatcell_waiting_t,
    link: *const tatcell_link_t,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        shaper = c.shaper(shaper, Span::of(out, 1)),
        to = c.report(out),
        waiting = c.input(waiting),
        given = c.options(link),
        link = self::link(c, &given)
    );
    finish_submit(shaper.forward(now, waiting.into(), &link), to)
}

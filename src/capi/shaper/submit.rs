//! `tatcell_shaper_*`, second part: requests that are reserved and then wait.

use super::group::tatcell_group_t;
use super::shaper::{shaper_code, tatcell_shaper_t, tatcell_waiting_t};
use crate::answer::Decision;
use crate::capi::combine::links::Work;
use crate::capi::combine::links::{link, tatcell_chain_t, tatcell_link_t};
use crate::capi::decision::{fill, tatcell_decision_t};
use crate::capi::pointers::contract::{args, Report};
use crate::combine::ShaperError;

/// Fills a decision in and returns the code of its verdict, or that of the error.
fn finish_submit(made: Result<Decision, ShaperError>, out: Report<'_, tatcell_decision_t>) -> i32 {
    match made {
        Ok(decision) => fill(&decision, out),
        Err(e) => shaper_code(e),
    }
}

/// Reserves a request under one limit and keeps its handle until out->departure.
///
/// Every request goes through the wheel, even if it may leave at once, so that no request overtakes another one of
/// its flow. A limit's max_delay is the length of its queue in time: Q jobs of one unit are Q * T. The call first
/// checks that the wheel has room, so a refused request has reserved nothing, and a reserved request has its place.
/// If now is before the reading of an earlier accepted request, it counts as that reading.
///
/// @param shaper not NULL.
/// @param now    the caller's clock, ticks.
/// @param link   started from TATCELL_LINK_INIT: the cell or key, its limit with a max_delay, and the cost; not
///               NULL.
/// @param group  the group of its flow: the request leaves no earlier than any earlier one of the group, and its
///               delay still counts from now (IEEE 802.1Qcr). NULL = none.
/// @param handle yours; tatcell_shaper_release returns it when it is due.
/// @param out    started from TATCELL_DECISION_INIT, outside the shaper and its memory; gets departure, or
///               retry_after; not NULL.
/// @retval 0 reserved; the handle waits.
/// @retval TATCELL_NON_CONFORMING the request would wait longer than max_delay; TATCELL_NEVER the cost is above the
///         burst; TATCELL_CONTENDED ask again. Nothing is charged, and the handle does not wait.
/// @retval TATCELL_ERR_FULL the shaper holds as many handles as its memory allows.
/// @retval TATCELL_ERR_TOO_FAR the limit's max_delay is longer than the horizon.
/// @retval TATCELL_ERR_BEHIND handles that are long due are still in the shaper: release them first.
/// @retval TATCELL_ERR_ALGORITHM the limit is not of GCRA; other algorithms cannot reserve.
/// @retval TATCELL_ERR_HANDLE shaper is not initialised.
/// @retval TATCELL_ERR_OVERLAP out lies in the shaper or its memory.
/// @retval TATCELL_ERR_SIZE, TATCELL_ERR_OPTION, TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_LIMIT,
///         TATCELL_ERR_FOREIGN, TATCELL_ERR_HASH, TATCELL_ERR_KEY_LENGTH as a link of tatcell_chain_check;
///         TATCELL_ERR_OPTION also if the link has room. Nothing is changed on error.
/// Thread: one at a time on a shaper, any number on cells, tables and groups. Cost: O(1), the reservation and five or
/// six words of the memory. Since 0.3.
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
        shaper = c.shaper(shaper, c.reach(out)),
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

/// Reserves a request under all limits of a chain and keeps its handle until out->departure, the latest departure
/// of the links. All links are charged now.
///
/// If many flows share one limit, tatcell_shaper_forward keeps the rate of that limit exactly, and this call does
/// not: a request that its flow delays leaves later than the shared limit has counted it.
///
/// @param shaper not NULL.
/// @param now    the caller's clock, ticks.
/// @param chain  started from TATCELL_CHAIN_INIT; the call fills in its permits, decisions and counters as
///               tatcell_chain_reserve does. Not NULL.
/// @param handle yours; tatcell_shaper_release returns it when it is due.
/// @param out    started from TATCELL_DECISION_INIT; not NULL.
/// @retval as tatcell_chain_reserve, and TATCELL_ERR_FULL, TATCELL_ERR_TOO_FAR, TATCELL_ERR_BEHIND,
///         TATCELL_ERR_HANDLE as tatcell_shaper_submit. Nothing is changed on error.
/// Thread: as tatcell_shaper_submit. Cost: that of tatcell_chain_reserve, and five or six words. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_shaper_submit_chain(
    shaper: *mut tatcell_shaper_t,
    now: u64,
    chain: *const tatcell_chain_t,
    handle: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, shaper = c.shaper(shaper, c.reach(out)), to = c.report(out));
    match &mut Work::new(c, chain, out) {
        Err(e) => *e,
        Ok(work) => {
            let made =
                work.run(|chain, counters, each| shaper.submit_chain_ex(now, chain, handle, counters, each));
            finish_submit(made, to)
        }
    }
}

/// Reserves a released request under the limit of the next level, and keeps it until its departure there. When
/// released again, its level is one higher. This makes a hierarchy: flow within tenant within port.
///
/// A parent limit is charged when a request reaches it, never for a future time, which would let all other requests
/// wait behind it. The place that the handle left stays free until another handle is put in: forward first, then
/// submit. A request that a parent refuses is lost there; the charge of its flow stays.
///
/// @param shaper  not NULL.
/// @param now     the caller's clock, ticks.
/// @param waiting an entry that tatcell_shaper_release returned; not NULL.
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
        shaper = c.shaper(shaper, c.reach(out)),
        to = c.report(out),
        waiting = c.input(waiting),
        given = c.options(link),
        link = self::link(c, &given)
    );
    finish_submit(shaper.forward(now, waiting.into(), &link), to)
}

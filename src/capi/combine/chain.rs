//! `tatcell_chain_*`: several limits for one request, all or none.

use super::links::{tatcell_chain_t, Work};
use crate::capi::codes::{TATCELL_ERR_NULL, TATCELL_NON_CONFORMING, TATCELL_PASS};
use crate::capi::decision::{fill, fill_if, finish_done, tatcell_decision_t};
use crate::capi::pointers::contract::{args, Contract};

/// Decides one request under several limits: charges all of them if it conforms to all, else none.
///
/// The call first peeks at all links. Then it charges them: first the cells and the keys that have a slot, in the order
/// of the links, then the keys that have none, in the order of the links. If a link then refuses (another thread won
/// the race, or a set of a table is full), the call refunds the links that it has charged. No limit ever passes more
/// than it allows, even if other threads charge meanwhile. Those threads may be refused while a charge waits for its
/// refund.
///
/// Under TATCELL_FULL_INHERIT and TATCELL_FULL_SAMPLED a key without a slot may take over the slot of another key, but
/// not that of another link of the same chain that has a slot when the insert begins. tatcell_chain_charge,
/// tatcell_chain_reserve and extras leave those slots, too.
///
/// out->policy is the index of the link that decided. If the request passes, it is the tightest link: the one whose
/// remaining units are worth the fewest requests like this one (with equal costs, the smallest remaining). If it
/// does not pass, it is the first link that can never pass, else the first one that refuses. All fields are those of
/// that link, flags included, with these exceptions. The flags and amounts of other links are in chain->decisions.
///
/// - retry_after is the longest of all links: at now + retry_after every link passes if nothing else comes, and not a
///   tick before. (If only a race or a full set refused, it is the retry time of the link that refused. If the chain
///   passes, it is 0, or what a limit in shadow mode would have reported.)
/// - departure is the latest of all links, and tracking the first one that is not TATCELL_TRACKED.
/// - TATCELL_FLAG_EXEMPT is set if any link exempts the request.
/// - The permit is zero, because each link has its own in chain->permits. The permits of a refused chain are zero,
///   unless a refund was contended until its last attempt and some link is not plain (see Cost).
///
/// A refused chain leaves nothing charged, with four exceptions: the penalty of a link that refused after the peek;
/// the charge that TATCELL_FULL_SAMPLED stored; a claim lifetime and a q-unit for a key that was inserted and
/// refunded; and the debt that such a key inherited under TATCELL_FULL_INHERIT. That key keeps the slot that it took
/// over.
///
/// @param chain started from TATCELL_CHAIN_INIT; not NULL.
/// @param now   the caller's clock, ticks.
/// @param out   started from TATCELL_DECISION_INIT; NULL = not wanted.
/// @retval 0 passes; all links are charged.
/// @retval TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED does not pass; nothing is charged.
/// @retval TATCELL_ERR_ALGORITHM a link has TATCELL_LINK_OVERRIDES, and its table is not one of overrides.
/// @retval TATCELL_ERR_LINKS no link, or more than 8.
/// @retval TATCELL_ERR_TWO_LIMITS one cell or key has two limits in the chain, which would share one debt.
/// @retval TATCELL_ERR_COST the costs of one cell or key together exceed 64 bits.
/// @retval TATCELL_ERR_SIZE size, link_size, decision_size or out->size is not set.
/// @retval TATCELL_ERR_OPTION an unknown flag, a link with more than one of cell, cell32 and table, or a hash
///         without a table.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer, or a link without cell and table.
/// @retval TATCELL_ERR_OVERLAP objects that the call writes (out, permits, decisions, counters, link_counters) overlap
///         each other, or objects that it reads (chain, links).
/// @retval TATCELL_ERR_LIMIT, TATCELL_ERR_FOREIGN, TATCELL_ERR_HANDLE, TATCELL_ERR_HASH, TATCELL_ERR_KEY_LENGTH a
///         link is wrong, as for tatcell_cell_check and tatcell_table_check. Nothing is changed on error.
/// Thread: any number on the same cells and tables, unless a table is exclusive. Cost: if every link is plain, one scan
/// and one compare-and-swap for each link, and only loads if a link refuses. A plain link has a 64-bit cell or a key
/// that no other link has, a limit of GCRA without options, a cost of 1 to the burst, no extra and no room, or it is a
/// link of overrides. For other links, and for programs built with an older header, a peek and a compare-and-swap for
/// each link. On x86-64 a plain chain takes 0.5 KiB of stack, 0.9 KiB if a key is inserted, and 1.7 KiB if charges are
/// given back. All other calls take about 4 KiB, and so do those with out or with results in the chain. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_chain_check(
    chain: *const tatcell_chain_t,
    now: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c);
    match out.is_null() {
        true => match c.chain_in_place(chain, now) {
            Some(true) => TATCELL_PASS,
            Some(false) => TATCELL_NON_CONFORMING,
            None => check_told(c, chain, now, core::ptr::null_mut()),
        },
        false => check_told(c, chain, now, out),
    }
}

/// A check of which more is wanted than the verdict, or of links that the short way does not know.
#[inline(never)]
fn check_told(c: Contract<'_>, chain: *const tatcell_chain_t, now: u64, out: *mut tatcell_decision_t) -> i32 {
    let to = match c.report_if(out) {
        Ok(to) => to,
        Err(e) => return e,
    };
    // By reference: a move would copy it onto the stack again.
    match &mut Work::new(c, chain, out) {
        Err(e) => *e,
        Ok(work) => {
            let made = match (work.wants_each(), to.is_some()) {
                (true, _) => work.check_each(now),
                (false, true) => work.chain.check(now),
                // The short way did not decide.
                (false, false) => work.chain.check_long(now),
            };
            fill_if(&made, to)
        }
    }
}

/// Charges all links after the fact, for a request that was let through and whose costs are known only now: whatever
/// each limit says, up to its burst plus its max_debt, as tatcell_cell_charge.
///
/// out is as for tatcell_chain_check if it passes; chain->decisions have the units that each link took. A charge needs
/// no room, and extras are charged as well. If an override exempts the request and none bans it, nothing is charged. A
/// ban changes nothing, because the request was let through. tatcell_chain_refund takes the permits.
///
/// Nothing is undone: if one link is not charged, the others are all the same.
///
/// @param chain started from TATCELL_CHAIN_INIT; not NULL.
/// @param now   the caller's clock, ticks.
/// @param out   started from TATCELL_DECISION_INIT; NULL = not wanted.
/// @retval 0 all links are charged, or the request is exempt. A key without a slot in a full set may have 0 units, as
///         in tatcell_table_charge.
/// @retval TATCELL_NON_CONFORMING the key of a link has no slot and its set is full, as in tatcell_table_charge. Each
///         link's decision says whether it is charged; out is that of the first that is not.
/// @retval TATCELL_CONTENDED a link lost 64 swaps to others. Each link's decision says whether it is charged.
/// @retval others as tatcell_chain_check. On error no link is charged.
/// Thread: as tatcell_chain_check. Cost: a scan and a compare-and-swap for each link. Under the two policies that take
/// slots over, a key without a slot takes one more scan for each link. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_chain_charge(
    chain: *const tatcell_chain_t,
    now: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, to = c.report_if(out));
    match &mut Work::new(c, chain, out) {
        Err(e) => *e,
        Ok(work) => fill_if(&work.run(|chain, counters, each| chain.charge_ex(now, counters, each)), to),
    }
}

/// Reports how tatcell_chain_check would decide, without charging anything. It writes chain->decisions (since 0.4),
/// but neither permits nor counters. A decision is in_debt only if the cost of every link is 0.
///
/// @param chain started from TATCELL_CHAIN_INIT; not NULL.
/// @param now   the caller's clock, ticks.
/// @param out   started from TATCELL_DECISION_INIT; not NULL.
/// @retval as tatcell_chain_check; never TATCELL_CONTENDED.
/// Thread: as tatcell_chain_check; only reads. Cost: a peek for each link. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_chain_peek(
    chain: *const tatcell_chain_t,
    now: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, to = c.report(out));
    match &mut Work::new(c, chain, out) {
        Err(e) => *e,
        Ok(work) => {
            work.permits = &mut [];
            fill(&work.run(|chain, _, each| chain.peek_ex(now, each)), to)
        }
    }
}

/// Reserves all links for the earliest instant at which all conform, for shaping; out->departure is the latest
/// departure of the links.
///
/// Each link is charged at arrival, so an aggregate is never charged at a future time. A request that one link
/// delays leaves later than the other links have counted it. A limit that many chains share may then send more than
/// it allows, by the amount that the chains delay. tatcell_shaper_forward avoids this: it charges each limit when a
/// request reaches it.
///
/// A request that would wait longer than the max_delay of any link is refused and charges nothing. out->retry_after
/// is then the time until all links would accept it. The call peeks first and charges in the order of
/// tatcell_chain_check. A request that the peek refuses, or that is banned, leaves nothing charged and takes over no
/// slot. If a link refuses after the peek, what was charged is refunded, with the exceptions of tatcell_chain_check.
/// A limit in shadow mode neither refuses nor delays.
///
/// @param chain started from TATCELL_CHAIN_INIT; not NULL.
/// @param now   the caller's clock, ticks.
/// @param out   started from TATCELL_DECISION_INIT; not NULL. Gets departure, and the other fields as for
///              tatcell_chain_check.
/// @retval 0 reserved; all links are charged.
/// @retval TATCELL_ERR_ALGORITHM a limit is not of GCRA; other algorithms cannot reserve. Nothing is changed.
/// @retval TATCELL_ERR_OPTION as tatcell_chain_check, or a link has room: a reservation has its max_delay.
/// @retval others as tatcell_chain_check; TATCELL_NON_CONFORMING also if the request would wait longer than a
///         max_delay.
/// Thread: as tatcell_chain_check. Cost: a peek, a scan and a compare-and-swap for each link, and one more swap for a
/// refund. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_chain_reserve(
    chain: *const tatcell_chain_t,
    now: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, to = c.report(out));
    match &mut Work::new(c, chain, out) {
        Err(e) => *e,
        Ok(work) => match &work.decide(|chain, counters, each| chain.reserve_ex(now, counters, each)) {
            Err(e) => *e,
            Ok(made) => fill(made, to),
        },
    }
}

/// Gives back the parts of the links' charges that have not drained since, as their permits prove, the last link
/// first.
///
/// Each refunded permit becomes zero, so that none is used twice. Extras are not refunded.
///
/// @param chain with the links and permits of a check or a reserve; not NULL, and its permits not NULL.
/// @param now   the caller's clock, ticks.
/// @retval 0 done (perhaps nothing was left to give back).
/// @retval TATCELL_CONTENDED the charges whose permits are not zero are still charged; ask again.
/// @retval others as tatcell_chain_check.
/// Thread: as tatcell_chain_check. Cost: a compare-and-swap for each link. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_chain_refund(chain: *const tatcell_chain_t, now: u64) -> i32 {
    args!(c, work = Work::new(c, chain, core::ptr::null()));
    if work.permits.is_empty() {
        return TATCELL_ERR_NULL;
    }
    finish_done(work.chain.refund(now, work.permits))
}

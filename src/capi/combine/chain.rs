//! `tatcell_chain_*`: several limits for one request, all or none.

use core::ffi::c_void;

use crate::answer::{Decision, Permit};
use crate::capi::cell::cell::tatcell_cell_t;
use crate::capi::cell::cell32::tatcell_cell32_t;
use crate::capi::codes::{
    TATCELL_ERR_ALGORITHM, TATCELL_ERR_COST, TATCELL_ERR_FOREIGN, TATCELL_ERR_LINKS, TATCELL_ERR_NULL,
    TATCELL_ERR_OPTION, TATCELL_ERR_TWO_LIMITS, TATCELL_NON_CONFORMING, TATCELL_PASS,
};
use crate::capi::decision::{fill, fill_if, finish_done, tatcell_decision_t};
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, possible, Contract, Grows};
use crate::capi::pointers::lists::Rows;
use crate::capi::pointers::places::Span;
use crate::capi::table::check::{hash_of, refused};
use crate::capi::table::handle::tatcell_table_t;
use crate::combine::link::either;
use crate::combine::{Chain, ChainError, Link, MAX_LINKS};
use crate::table::Counters;

/// Most links of a chain.
pub const TATCELL_CHAIN_MAX: u32 = 8;
const _: () = assert!(TATCELL_CHAIN_MAX as usize == MAX_LINKS);

/// link flags: the link names the key of its table by a hash.
pub const TATCELL_LINK_HASH: u32 = 1;
/// link flags: the table is one of overrides, and limit is NULL. While the key is banned in it, the chain is
/// refused. While the key is exempt, the chain passes and charges nothing. A ban by any link outweighs an exemption
/// by another.
pub const TATCELL_LINK_OVERRIDES: u32 = 2;

/// Bytes of a tatcell_link_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_LINK_MIN: usize = 32 + 6 * size_of::<*const u8>();

/// One limit of a chain: a cell or the key of a table, its limit, and the cost in units of that limit. Set one of
/// cell, cell32 and table. Every other field may be 0.
#[repr(C)]
pub struct tatcell_link_t {
    /// sizeof(tatcell_link_t). A chain does not read it, because link_size of the chain gives the distance between
    /// links. A call that takes one link reads it.
    pub size: u32,
    /// 0, or for a table any of TATCELL_LINK_HASH and TATCELL_LINK_OVERRIDES.
    pub flags: u32,
    /// Units. 0 only peeks: the link refuses if a cost of 0 does not conform.
    pub cost: u64,
    /// Units that are charged in addition once the chain has passed. They cannot cause a refusal, they stop at the
    /// burst (and the limit's max_debt), and they are not refunded. A fresh random number from a small range, such
    /// as 0 to 2, keeps an aggregate from revealing how many requests of others it has counted. The rate falls by
    /// the mean of that number.
    pub extra: u64,
    /// With TATCELL_LINK_HASH: the hash of the key.
    pub hash: u64,
    /// The limit, of the kind that the cell or table needs; not NULL, except with TATCELL_LINK_OVERRIDES.
    pub limit: *const tatcell_limit_t,
    /// A 64-bit cell; or NULL.
    pub cell: *mut tatcell_cell_t,
    /// A 32-bit cell; or NULL.
    pub cell32: *mut tatcell_cell32_t,
    /// A table; or NULL.
    pub table: *const tatcell_table_t,
    /// For a table without TATCELL_LINK_HASH: the bytes of the key; not NULL, even when empty.
    pub key: *const c_void,
    /// Bytes of the key.
    pub key_len: usize,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_link_t {
    const FIRST: usize = TATCELL_LINK_MIN;
}
const _: () = assert!(size_of::<tatcell_link_t>() == TATCELL_LINK_MIN && TATCELL_LINK_MIN % 8 == 0);

/// Bytes of a tatcell_chain_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_CHAIN_MIN: usize = 24 + 4 * size_of::<*const u8>();

/// Up to 8 limits that one request must meet together. Start from TATCELL_CHAIN_INIT. The calls only read it, so it
/// may be used again and again.
///
/// The order of the links affects the speed and the reported index. Put the most specific limit first, or the one
/// that is most likely to refuse, and an aggregate over all keys last. Links of one cell, or of one key of a table,
/// become one charge of all their costs, which is reported as the first of these links. They must have the same
/// limit.
#[repr(C)]
pub struct tatcell_chain_t {
    /// sizeof(tatcell_chain_t).
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// Links, 1..8.
    pub count: u32,
    /// Bytes from one link to the next, sizeof(tatcell_link_t).
    pub link_size: u32,
    /// With decisions: bytes from one decision to the next, sizeof(tatcell_decision_t).
    pub decision_size: u32,
    /// Must be 0.
    pub reserved: u32,
    /// The links; not NULL.
    pub links: *const tatcell_link_t,
    /// One permit for each link, for tatcell_chain_refund: what the last check or reserve charged. NULL = not
    /// wanted.
    pub permits: *mut Permit,
    /// Gets the decision of each single link, decision_size bytes apart. Their size fields are neither read nor
    /// written, so zeroed decisions will do. NULL = not wanted.
    pub decisions: *mut tatcell_decision_t,
    /// This thread's counters. They count one decision for a chain, and each key that it inserts. A chain that passes
    /// counts as soft or shadow if any link has that flag. NULL = off.
    pub counters: *mut Counters,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_chain_t {
    const FIRST: usize = TATCELL_CHAIN_MIN;
}
const _: () = assert!(size_of::<tatcell_chain_t>() == TATCELL_CHAIN_MIN && TATCELL_CHAIN_MIN % 8 == 0);

/// Returns the code of a chain error.
pub(in crate::capi) fn chain_code(e: ChainError) -> i32 {
    match e {
        ChainError::Empty | ChainError::TooManyLinks => TATCELL_ERR_LINKS,
        ChainError::ForeignLimit => TATCELL_ERR_FOREIGN,
        ChainError::TwoLimits => TATCELL_ERR_TWO_LIMITS,
        ChainError::BadCost => TATCELL_ERR_COST,
        ChainError::BadAlgorithm => TATCELL_ERR_ALGORITHM,
    }
}

/// Makes a link from C's.
pub(in crate::capi) fn link<'a>(c: Contract<'a>, l: &tatcell_link_t) -> Result<Link<'a>, i32> {
    let by_hash = l.flags & TATCELL_LINK_HASH != 0;
    let forms = [!l.cell.is_null(), !l.cell32.is_null(), !l.table.is_null()];
    match forms.into_iter().filter(|form| *form).count() {
        0 => return Err(TATCELL_ERR_NULL),
        1 => {}
        _ => return Err(TATCELL_ERR_OPTION),
    }
    let overrides = l.flags & TATCELL_LINK_OVERRIDES != 0;
    let unknown = l.flags & !(TATCELL_LINK_HASH | TATCELL_LINK_OVERRIDES) != 0;
    if unknown || (by_hash || overrides) && l.table.is_null() || overrides && !l.limit.is_null() {
        return Err(TATCELL_ERR_OPTION);
    }
    let made = if !l.cell.is_null() {
        Link::cell(c.cell(l.cell)?, c.limit64(l.limit)?, l.cost)
    } else if !l.cell32.is_null() {
        Link::cell32(c.cell32(l.cell32)?, c.limit32(l.limit)?, l.cost)
    } else {
        let table = c.handle(l.table)?;
        let limit = if overrides { None } else { Some(c.table_limit(l.limit)?) };
        if let Some(limit) = limit {
            either!(table.table(), t => t.verify_limit(limit)).map_err(|e| refused(e, limit))?;
        }
        let hash = if by_hash { l.hash } else { hash_of(table, c.key(l.key, l.key_len)?)? };
        match limit {
            Some(limit) => Link::hash(table.table(), limit, hash, l.cost),
            None => Link::overrides(table.table(), hash),
        }
    };
    Ok(made.extra(l.extra))
}

/// A call with checked arguments.
pub(in crate::capi) struct Work<'a> {
    chain: Chain<'a>,
    permits: &'a mut [Permit],
    decisions: Option<Rows<'a, tatcell_decision_t>>,
    counters: Option<&'a mut Counters>,
}

impl<'a> Work<'a> {
    pub(in crate::capi) fn new(
        c: Contract<'a>,
        chain: *const tatcell_chain_t,
        out: *const tatcell_decision_t,
    ) -> Result<Work<'a>, i32> {
        let given = c.options(chain)?;
        let count = given.count as usize;
        if given.flags != 0 || given.reserved != 0 {
            return Err(TATCELL_ERR_OPTION);
        }
        if count == 0 || count > MAX_LINKS {
            return Err(TATCELL_ERR_LINKS);
        }
        let each = c.strided(given.links, given.link_size, count)?;
        let decisions = c.rows(given.decisions, given.decision_size, count)?;
        let bytes = count.wrapping_mul(size_of::<Permit>());
        if !given.permits.is_null() {
            possible(given.permits, bytes)?;
        }
        c.result_if(given.counters)?;
        // The spans that the call writes, and those that it reads.
        let permits = Span::of(given.permits, count);
        let decided = decisions.map_or(Span::NOTHING, Rows::span);
        let read = [c.reach(chain), each.span()];
        let (out, counted) = (c.reach(out), Span::of(given.counters, 1));
        out.apart_from(&read)?;
        permits.apart_from(&[read[0], read[1], out])?;
        decided.apart_from(&[read[0], read[1], out, permits])?;
        counted.apart_from(&[read[0], read[1], out, permits, decided])?;
        let mut links = [link(c, &each.get(0)?)?; MAX_LINKS];
        for (i, place) in links.iter_mut().enumerate().take(count).skip(1) {
            *place = link(c, &each.get(i)?)?;
        }
        let chain = Chain::new(links.get(..count).unwrap_or_else(|| impossible!(&[]))).map_err(chain_code)?;
        let permits = if given.permits.is_null() { &mut [] } else { c.buffer(given.permits, bytes)? };
        Ok(Work { chain, permits, decisions, counters: c.owned_if(given.counters)? })
    }

    /// Returns whether the decision of each link is wanted.
    fn wants_each(&self) -> bool {
        !self.permits.is_empty() || self.decisions.is_some() || self.counters.is_some()
    }

    /// Decides with what is wanted of each link.
    #[inline(never)]
    fn check_each(&mut self, now: u64) -> Decision {
        let Work { chain, permits, decisions, counters } = self;
        chain.check_ex(now, counters.as_deref_mut(), |i, answer| {
            if let Some(permit) = permits.get_mut(i) {
                *permit = answer.permit;
            }
            if let Some(decisions) = decisions {
                decisions.put(i, &tatcell_decision_t::of(answer));
            }
        })
    }

    /// Runs a call and hands out the answers of the links.
    fn decide(
        self,
        call: impl FnOnce(
            &Chain<'_>,
            Option<&mut Counters>,
            &mut dyn FnMut(usize, &Decision),
        ) -> Result<Decision, ChainError>,
    ) -> Result<Decision, i32> {
        self.run(call).map_err(chain_code)
    }

    /// Does the same as [`decide`](Self::decide) for a call with any result.
    pub(in crate::capi) fn run<T>(
        self,
        call: impl FnOnce(&Chain<'_>, Option<&mut Counters>, &mut dyn FnMut(usize, &Decision)) -> T,
    ) -> T {
        let Work { chain, permits, decisions, counters } = self;
        let mut each = |i: usize, answer: &Decision| {
            if let Some(permit) = permits.get_mut(i) {
                *permit = answer.permit;
            }
            if let Some(decisions) = decisions {
                decisions.put(i, &tatcell_decision_t::of(answer));
            }
        };
        call(&chain, counters, &mut each)
    }
}

/// Decides one request under several limits: charges all of them if it conforms to all, else none.
///
/// The call first peeks at all links and then charges them: in order, but keys that are absent last. If a link then
/// refuses (another thread won the race, or a set of a table is full), the call refunds the links that it has
/// charged. No limit ever passes more than it allows, even if other threads charge meanwhile. Those threads may be
/// refused while a charge waits for its refund.
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
///   unless a refund was contended until its last attempt.
///
/// A refused chain leaves nothing charged, with three exceptions: the penalty of a link that refused after the
/// peek; the charge that TATCELL_FULL_SAMPLED stored; and, for a key that was inserted and refunded, a claim
/// lifetime and a q-unit.
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
/// @retval TATCELL_ERR_OVERLAP objects that the call writes (out, permits, decisions, counters) overlap each other,
///         or objects that it reads (chain, links).
/// @retval TATCELL_ERR_LIMIT, TATCELL_ERR_FOREIGN, TATCELL_ERR_HANDLE, TATCELL_ERR_HASH, TATCELL_ERR_KEY_LENGTH a
///         link is wrong, as for tatcell_cell_check and tatcell_table_check. Nothing is changed on error.
/// Thread: any number on the same cells and tables, unless a table is exclusive. Cost: if out and the chain's results
/// are NULL, and every link is plain (GCRA, a cost of 1 to the burst, no option, no extra, a 64-bit cell or a key), one
/// scan and one compare-and-swap for each link, only loads if a link refuses, and 0.5 KiB of stack; a key that is
/// inserted takes 1.2 KiB. Else a peek and a compare-and-swap for each link, and about 4 KiB of stack. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_chain_check(
    chain: *const tatcell_chain_t,
    now: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c);
    if out.is_null() {
        match c.chain_in_place(chain, now) {
            Some(true) => return TATCELL_PASS,
            Some(false) => return TATCELL_NON_CONFORMING,
            None => {}
        }
    }
    check_told(c, chain, now, out)
}

/// A check of which more is wanted than the verdict, or of links that the short way does not know.
#[inline(never)]
fn check_told(c: Contract<'_>, chain: *const tatcell_chain_t, now: u64, out: *mut tatcell_decision_t) -> i32 {
    let to = match c.report_if(out) {
        Ok(to) => to,
        Err(e) => return e,
    };
    // By reference: a move would take its bytes of stack once more.
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
    args!(c, to = c.report(out), work = Work::new(c, chain, out));
    let work = Work { permits: &mut [], ..work };
    fill(&work.run(|chain, _, each| chain.peek_ex(now, each)), to)
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
/// is then the time until all links would accept it. The call reserves every link, and refunds it if another link
/// refuses.
///
/// @param chain started from TATCELL_CHAIN_INIT; not NULL.
/// @param now   the caller's clock, ticks.
/// @param out   started from TATCELL_DECISION_INIT; not NULL. Gets departure, and the other fields as for
///              tatcell_chain_check.
/// @retval 0 reserved; all links are charged.
/// @retval TATCELL_ERR_ALGORITHM a limit is not of GCRA; other algorithms cannot reserve. Nothing is changed.
/// @retval others as tatcell_chain_check; TATCELL_NON_CONFORMING also if the request would wait longer than a
///         max_delay.
/// Thread: as tatcell_chain_check. Cost: a compare-and-swap for each link, and another one for a refund. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_chain_reserve(
    chain: *const tatcell_chain_t,
    now: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        to = c.report(out),
        work = Work::new(c, chain, out),
        made = work.decide(|chain, counters, each| chain.reserve_ex(now, counters, each))
    );
    fill(&made, to)
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

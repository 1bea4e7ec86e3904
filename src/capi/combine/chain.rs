//! `tatcell_chain_*`: several limits for one request, all or none.

use core::ffi::c_void;

use crate::answer::{Decision, Permit};
use crate::capi::cell::cell::tatcell_cell_t;
use crate::capi::cell::cell32::tatcell_cell32_t;
use crate::capi::codes::{
    TATCELL_ERR_ALGORITHM, TATCELL_ERR_COST, TATCELL_ERR_FOREIGN, TATCELL_ERR_LINKS, TATCELL_ERR_NULL,
    TATCELL_ERR_OPTION, TATCELL_ERR_TWO_LIMITS,
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

/// link flags: the key of the table is given by its hash.
pub const TATCELL_LINK_HASH: u32 = 1;
/// link flags: the table is one of overrides, and limit is NULL. The chain is refused while the key is banned there,
/// and passes without charging anything while it is exempt; a ban by any link outweighs an exemption by another.
pub const TATCELL_LINK_OVERRIDES: u32 = 2;

/// Bytes of a tatcell_link_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_LINK_MIN: usize = 32 + 6 * size_of::<*const u8>();

/// One limit of a chain: a cell or the key of a table, the limit it stands under, and the cost in its units. Set
/// one of cell, cell32 and table; everything else may be 0.
#[repr(C)]
pub struct tatcell_link_t {
    /// sizeof(tatcell_link_t). Not read in a chain, which says how far its links are apart; read where a call takes one
    /// link.
    pub size: u32,
    /// 0, or with a table any of TATCELL_LINK_HASH, TATCELL_LINK_OVERRIDES.
    pub flags: u32,
    /// Units; 0 only looks: the chain passes if a cost of 0 does.
    pub cost: u64,
    /// Units that are charged in addition once the chain has passed. They refuse nothing, end at the burst (and the
    /// limit's max_debt), and are not given back. A fresh random number of a small range, 0 to 2 for instance, keeps
    /// an aggregate from telling how many requests of others it has counted; the rate falls by the mean of it.
    pub extra: u64,
    /// With TATCELL_LINK_HASH: the hash of the key.
    pub hash: u64,
    /// Of the kind that cell or table need; not NULL, but for TATCELL_LINK_OVERRIDES.
    pub limit: *const tatcell_limit_t,
    /// A 64-bit cell; or NULL.
    pub cell: *mut tatcell_cell_t,
    /// A 32-bit cell; or NULL.
    pub cell32: *mut tatcell_cell32_t,
    /// A table; or NULL.
    pub table: *const tatcell_table_t,
    /// With a table, but for TATCELL_LINK_HASH: the bytes of the key; not NULL, even when empty.
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

/// Up to 8 limits that one request must meet together. Start from TATCELL_CHAIN_INIT; only read by the calls, so it
/// may be used again and again.
///
/// Order matters for speed and for the index that is reported: the most specific limit, or the most likely to
/// refuse, first; an aggregate over all last. Links of one cell, or of one key of a table, are one charge of all
/// their costs, reported as the first of them; they must stand under one limit.
#[repr(C)]
pub struct tatcell_chain_t {
    /// sizeof(tatcell_chain_t).
    pub size: u32,
    /// 0.
    pub flags: u32,
    /// Links, 1..8.
    pub count: u32,
    /// Bytes from one link to the next, sizeof(tatcell_link_t).
    pub link_size: u32,
    /// With decisions: bytes from one to the next, sizeof(tatcell_decision_t).
    pub decision_size: u32,
    /// 0.
    pub reserved: u32,
    /// What is charged; not NULL.
    pub links: *const tatcell_link_t,
    /// One a link, for tatcell_chain_refund: what the last check or reserve charged. NULL = not wanted.
    pub permits: *mut Permit,
    /// Gets the decision of each link by itself, decision_size bytes apart; their size fields are neither read nor
    /// written. NULL = not wanted.
    pub decisions: *mut tatcell_decision_t,
    /// This thread's counters: one decision a chain, and each key inserted. NULL = off.
    pub counters: *mut Counters,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_chain_t {
    const FIRST: usize = TATCELL_CHAIN_MIN;
}
const _: () = assert!(size_of::<tatcell_chain_t>() == TATCELL_CHAIN_MIN && TATCELL_CHAIN_MIN % 8 == 0);

/// The code of a chain error.
pub(in crate::capi) fn chain_code(e: ChainError) -> i32 {
    match e {
        ChainError::Empty | ChainError::TooManyLinks => TATCELL_ERR_LINKS,
        ChainError::ForeignLimit => TATCELL_ERR_FOREIGN,
        ChainError::TwoLimits => TATCELL_ERR_TWO_LIMITS,
        ChainError::BadCost => TATCELL_ERR_COST,
        ChainError::BadAlgorithm => TATCELL_ERR_ALGORITHM,
    }
}

/// A link of C.
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

/// A checked call.
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
        // What the call writes, and what it reads.
        let permits = Span::of(given.permits, count);
        let decided = decisions.map_or(Span::NOTHING, Rows::span);
        let read = [Span::of(chain, 1), each.span()];
        let (out, counted) = (Span::of(out, 1), Span::of(given.counters, 1));
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

    /// Runs a call and hands the answers of the links out.
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

    /// As [`decide`](Self::decide), of a call with any result.
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
/// All links are looked at first, then charged in order; if one refuses after all (a race was lost, or a set of a
/// table is full), those before it are given back in reverse. No limit ever passes more than it allows, whatever
/// others do meanwhile; they may be refused while a charge waits to be given back.
///
/// out->policy is the index of a link. When the request passes it is the tightest one, whose remaining units are
/// worth the fewest requests like this one (with equal costs: the smallest remaining); when not, the first that can
/// never pass, else the first that refuses. cost, burst, remaining, next_unit and reset_after are of that link.
/// retry_after is the longest of all links: at now + retry_after every link passes if nothing else comes, and not a
/// tick before. (What only a race or a full set refused has the retry time of the link that refused.) The permit is
/// zero: each link has its own, chain->permits. Of a refused chain they are zero, but where giving back was
/// contended to its bound.
///
/// Of a refused chain nothing stays charged but the penalty of the link that refused after the look; what a charge
/// under TATCELL_FULL_SAMPLED stored; and of a key that was inserted and given back a claim lifetime and a q-unit.
///
/// @param chain started from TATCELL_CHAIN_INIT; not NULL.
/// @param now   the caller's clock, ticks.
/// @param out   started from TATCELL_DECISION_INIT; NULL = not wanted.
/// @retval 0 passes, all are charged.
/// @retval TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED does not pass; nothing is charged.
/// @retval TATCELL_ERR_ALGORITHM a link of overrides whose table has none.
/// @retval TATCELL_ERR_LINKS no link, or more than 8.
/// @retval TATCELL_ERR_TWO_LIMITS one cell or key stands under two limits, which would share one debt.
/// @retval TATCELL_ERR_COST the costs of one cell or key exceed 64 bits together.
/// @retval TATCELL_ERR_SIZE size, link_size, decision_size or out->size is not set.
/// @retval TATCELL_ERR_OPTION an unknown flag, a link with more than one of cell, cell32 and table, or a hash
///         without a table.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer, or a link without cell and table.
/// @retval TATCELL_ERR_OVERLAP what the call writes (out, permits, decisions, counters) overlaps each other or what
///         it reads (chain, links).
/// @retval TATCELL_ERR_LIMIT, TATCELL_ERR_FOREIGN, TATCELL_ERR_HANDLE, TATCELL_ERR_HASH, TATCELL_ERR_KEY_LENGTH of a
///         link, as tatcell_cell_check and tatcell_table_check. Nothing is changed on error.
/// Thread: any number on the same cells and tables, unless a table is exclusive. Cost: a look and a
/// compare-and-swap a link when it passes, only loads when the look refuses; about 5 KiB of stack. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_chain_check(
    chain: *const tatcell_chain_t,
    now: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        to = c.report_if(out),
        work = Work::new(c, chain, out),
        made = work.decide(|chain, counters, each| Ok(chain.check_ex(now, counters, each)))
    );
    fill_if(&made, to)
}

/// Tells what tatcell_chain_check would answer, without charging anything. Permits, decisions and counters are left
/// alone.
///
/// @param chain started from TATCELL_CHAIN_INIT; not NULL.
/// @param now   the caller's clock, ticks.
/// @param out   started from TATCELL_DECISION_INIT; not NULL.
/// @retval as tatcell_chain_check; never TATCELL_CONTENDED.
/// Thread: as tatcell_chain_check; only reads. Cost: a look a link. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_chain_peek(
    chain: *const tatcell_chain_t,
    now: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(c, to = c.report(out), work = Work::new(c, chain, out));
    fill(&work.chain.peek(now), to)
}

/// Reserves all links for the earliest instant at which all conform, for shaping: out->departure, the latest of the
/// links'. Each is charged at arrival, so an aggregate is never charged at a future time. What one link holds back
/// leaves later than the others have counted it: a limit that many chains share may then send more than it allows, by
/// what they hold back. tatcell_shaper_forward asks each limit when a request gets there, and does not.
///
/// A request that would wait longer than the max_delay of any link is refused and charges nothing; out->retry_after
/// is the time until all links would accept it. Every link is asked, and given back where another refuses.
///
/// @param chain started from TATCELL_CHAIN_INIT; not NULL.
/// @param now   the caller's clock, ticks.
/// @param out   started from TATCELL_DECISION_INIT: departure, and the rest as for tatcell_chain_check. Not NULL.
/// @retval 0 reserved, all are charged.
/// @retval TATCELL_ERR_ALGORITHM a limit is not of GCRA, which alone knows when a request may leave; nothing is
///         changed.
/// @retval others as tatcell_chain_check; TATCELL_NON_CONFORMING also where it would wait longer than a max_delay.
/// Thread: as tatcell_chain_check. Cost: a compare-and-swap a link, and another where it is given back. Since 0.3.
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

/// Gives back what the permits of the links prove was charged and has not drained since, the last link first. Each
/// that was given back becomes zero, so that none is used twice. Extras are not given back.
///
/// @param chain with the links and permits of a check or a reserve; not NULL, nor its permits.
/// @param now   the caller's clock, ticks.
/// @retval 0 done (perhaps nothing was left to give back).
/// @retval TATCELL_CONTENDED what is left in the permits is still charged; ask again.
/// @retval others as tatcell_chain_check.
/// Thread: as tatcell_chain_check. Cost: a compare-and-swap a link. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_chain_refund(chain: *const tatcell_chain_t, now: u64) -> i32 {
    args!(c, work = Work::new(c, chain, core::ptr::null()));
    if work.permits.is_empty() {
        return TATCELL_ERR_NULL;
    }
    finish_done(work.chain.refund(now, work.permits))
}

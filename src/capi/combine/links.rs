//! The links of a chain from C, and a call of a chain whose arguments are checked.

use core::ffi::c_void;

use crate::answer::{Decision, Permit};
use crate::capi::cell::cell::tatcell_cell_t;
use crate::capi::cell::cell32::tatcell_cell32_t;
use crate::capi::codes::{
    TATCELL_ERR_ALGORITHM, TATCELL_ERR_COST, TATCELL_ERR_COUNT, TATCELL_ERR_FOREIGN, TATCELL_ERR_LINKS,
    TATCELL_ERR_NULL, TATCELL_ERR_OPTION, TATCELL_ERR_TWO_LIMITS,
};
use crate::capi::decision::tatcell_decision_t;
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{possible, Contract, Grows};
use crate::capi::pointers::lists::Rows;
use crate::capi::pointers::places::Span;
use crate::capi::table::check::{hash_of, refused};
use crate::capi::table::handle::tatcell_table_t;
use crate::combine::link::either;
use crate::combine::{Chain, ChainCounters, ChainError, Link, MAX_LINKS};
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
#[derive(Clone, Copy)]
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
    /// Elastic room: units above the burst that this link may take, at most the max_room of its limit. If another
    /// link refuses, they are given back with the rest. Links of one cell or key have the smallest room of them. A
    /// charge needs none, and to reserve with room is TATCELL_ERR_OPTION. Since 0.4.
    pub room: u64,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_link_t {
    const FIRST: usize = TATCELL_LINK_MIN;
}
const _: () = assert!(size_of::<tatcell_link_t>() == TATCELL_LINK_MIN + 8 && TATCELL_LINK_MIN % 8 == 0);

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
    /// One counters object of this thread for each link. It counts as a call for this link alone would: the decision of
    /// the link, also if another link refused, and the key that it inserts. Links of one cell or key count once, for
    /// the first of them. If an override exempts the request, the limits count nothing. NULL = off. Since 0.4.
    pub link_counters: *mut Counters,
    /// Must be NULL.
    pub reserved_pointer: *const c_void,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_chain_t {
    const FIRST: usize = TATCELL_CHAIN_MIN;
}
const _: () = assert!(
    size_of::<tatcell_chain_t>() == TATCELL_CHAIN_MIN + 2 * size_of::<*const u8>()
        && TATCELL_CHAIN_MIN % 8 == 0
);

/// Returns the code of a chain error.
pub(in crate::capi) fn chain_code(e: ChainError) -> i32 {
    match e {
        ChainError::Empty | ChainError::TooManyLinks => TATCELL_ERR_LINKS,
        ChainError::ForeignLimit => TATCELL_ERR_FOREIGN,
        ChainError::TwoLimits => TATCELL_ERR_TWO_LIMITS,
        ChainError::BadCost => TATCELL_ERR_COST,
        ChainError::BadAlgorithm => TATCELL_ERR_ALGORITHM,
        ChainError::BadRoom => TATCELL_ERR_OPTION,
        ChainError::BadCount => TATCELL_ERR_COUNT,
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
    Ok(made.extra(l.extra).room(if overrides { 0 } else { l.room }))
}

/// A call with checked arguments.
pub(in crate::capi) struct Work<'a> {
    pub(super) chain: Chain<'a>,
    pub(super) permits: &'a mut [Permit],
    pub(super) decisions: Option<Rows<'a, tatcell_decision_t>>,
    pub(super) counters: ChainCounters<'a>,
}

impl<'a> Work<'a> {
    pub(in crate::capi) fn new(
        c: Contract<'a>,
        chain: *const tatcell_chain_t,
        out: *const tatcell_decision_t,
    ) -> Result<Work<'a>, i32> {
        let given = c.options(chain)?;
        let count = given.count as usize;
        if given.flags != 0 || given.reserved != 0 || !given.reserved_pointer.is_null() {
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
        c.result_if(given.link_counters)?;
        // The spans that the call writes, and those that it reads.
        let permits = Span::of(given.permits, count);
        let decided = decisions.map_or(Span::NOTHING, Rows::span);
        let read = [c.reach(chain), each.span()];
        let (out, counted) = (c.reach(out), Span::of(given.counters, 1));
        out.apart_from(&read)?;
        permits.apart_from(&[read[0], read[1], out])?;
        decided.apart_from(&[read[0], read[1], out, permits])?;
        counted.apart_from(&[read[0], read[1], out, permits, decided])?;
        let each_counted = Span::of(given.link_counters, count);
        each_counted.apart_from(&[read[0], read[1], out, permits, decided, counted])?;
        let mut links = [link(c, &each.get(0)?)?; MAX_LINKS];
        for (i, place) in links.iter_mut().enumerate().take(count).skip(1) {
            *place = link(c, &each.get(i)?)?;
        }
        let chain = Chain::new(links.get(..count).unwrap_or_else(|| impossible!(&[]))).map_err(chain_code)?;
        let permits = if given.permits.is_null() { &mut [] } else { c.buffer(given.permits, bytes)? };
        let links = match given.link_counters.is_null() {
            true => &mut [],
            false => c.buffer(given.link_counters, count.wrapping_mul(size_of::<Counters>()))?,
        };
        let counters = ChainCounters { chain: c.owned_if(given.counters)?, links };
        Ok(Work { chain, permits, decisions, counters })
    }

    /// Returns whether the decision of each link is wanted.
    pub(super) fn wants_each(&self) -> bool {
        !self.permits.is_empty() || self.decisions.is_some() || self.counters.any()
    }

    /// Decides with what is wanted of each link.
    #[inline(never)]
    pub(super) fn check_each(&mut self, now: u64) -> Decision {
        let Work { chain, permits, decisions, counters } = self;
        chain.check_ex(now, core::mem::take(counters), |i, answer| {
            if let Some(permit) = permits.get_mut(i) {
                *permit = answer.permit;
            }
            if let Some(decisions) = decisions {
                decisions.put(i, &tatcell_decision_t::of(answer));
            }
        })
    }

    /// Runs a call and hands out the answers of the links.
    pub(super) fn decide(
        &mut self,
        call: impl FnOnce(
            &Chain<'_>,
            ChainCounters<'_>,
            &mut dyn FnMut(usize, &Decision),
        ) -> Result<Decision, ChainError>,
    ) -> Result<Decision, i32> {
        self.run(call).map_err(chain_code)
    }

    /// Does the same as [`decide`](Self::decide) for a call with any result. Its stack comes after that of
    /// [`new`](Self::new), not with it.
    #[inline(never)]
    pub(in crate::capi) fn run<T>(
        &mut self,
        call: impl FnOnce(&Chain<'_>, ChainCounters<'_>, &mut dyn FnMut(usize, &Decision)) -> T,
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
        call(chain, core::mem::take(counters), &mut each)
    }
}

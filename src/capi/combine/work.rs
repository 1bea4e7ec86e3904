//! A call of a chain from C whose arguments are checked.

use super::chain::{chain_code, link, tatcell_chain_t};
use crate::answer::{Decision, Permit};
use crate::capi::codes::{TATCELL_ERR_LINKS, TATCELL_ERR_OPTION};
use crate::capi::decision::tatcell_decision_t;
use crate::capi::pointers::contract::{possible, Contract};
use crate::capi::pointers::lists::Rows;
use crate::capi::pointers::places::Span;
use crate::combine::{Chain, ChainCounters, ChainError, MAX_LINKS};
use crate::table::Counters;

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
        self,
        call: impl FnOnce(
            &Chain<'_>,
            ChainCounters<'_>,
            &mut dyn FnMut(usize, &Decision),
        ) -> Result<Decision, ChainError>,
    ) -> Result<Decision, i32> {
        self.run(call).map_err(chain_code)
    }

    /// Does the same as [`decide`](Self::decide) for a call with any result.
    pub(in crate::capi) fn run<T>(
        self,
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
        call(&chain, counters, &mut each)
    }
}

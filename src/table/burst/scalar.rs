//! A burst decided one by one: the loop of plain decisions.
//!
//! Between two swaps of different words a processor retires about eight instructions a cycle and can do little else, so
//! the loop of plain decisions, [`Table::run_plain`], is kept short and free of stores; whatever needs more than one
//! look and one swap leaves it, is decided by itself, and the loop goes on behind it.

use core::ops::Range;

use crate::limit::params::Params;
use crate::limit::TableLimit;
use crate::sync::access::Access;
use crate::table::calls::full_answer::Request;
use crate::table::counters::Counters;
use crate::table::handle::Table;
use crate::table::set::search::{Base, Scan};

/// Up to 64 requests of a table under one limit, at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Burst<'a> {
    /// The limit that applies to all of them.
    pub limit: &'a TableLimit,
    /// The caller's clock, in ticks.
    pub now: u64,
    /// The hashes of their keys, at most [`MAX_BURST`](crate::table::layout::geometry::MAX_BURST).
    pub hashes: &'a [u64],
    /// Units that each asks for, as many as hashes; None = one unit each.
    pub costs: Option<&'a [u32]>,
    /// Verdicts of the burst before this one, 0 for none: a hint. Where more than half as many passed as this burst has
    /// requests, lines are fetched to be written, which saves a transfer if other cores had them; otherwise they are
    /// fetched for reading, so that other cores keep their copies.
    pub last: u64,
}

impl Burst<'_> {
    /// Will most of the lines be written?
    pub(in crate::table) fn writes(&self) -> bool {
        self.last.count_ones() as usize * 2 > self.hashes.len()
    }

    /// Did some pass of the burst before this one, and at least `few` not? (Of 0 nobody knows how many there were.)
    #[cfg_attr(not(tatcell_sse2), allow(dead_code))] // groups ask
    pub(in crate::table) fn denies(&self, few: usize) -> bool {
        self.last != 0 && self.last.count_ones() as usize + few <= self.hashes.len()
    }
}

/// Where a run of decisions ended: at request `at`, with the verdicts before it.
pub(in crate::table) struct Stop {
    pub at: usize,
    pub pass: u64,
}

impl<M: Access> Table<'_, M> {
    /// Decides one by one from request number `at` on: all, or to behind the first run of plain decisions that has
    /// denied `few`.
    #[inline(always)]
    pub(in crate::table) fn decide_from(
        &self,
        burst: &Burst<'_>,
        mut at: usize,
        few: usize,
        mut counters: Option<&mut Counters>,
        ahead: impl Fn(&Self, Range<usize>) + Copy,
    ) -> Stop {
        let Burst { limit, hashes, costs, .. } = *burst;
        // To be counted, a soft pass must be seen one by one.
        let calm = if counters.is_some() { limit.0.soft_q.min(limit.0.burst_q) } else { limit.0.burst_q };
        let mut pass = 0u64;
        loop {
            let one = |_| 1;
            let stop = match (self.wide, costs) {
                (None, None) => self.run_plain::<false>(Base, burst, calm, one, ahead, (at, few)),
                (Some(wide), None) => self.run_plain::<true>(wide, burst, calm, one, ahead, (at, few)),
                (None, Some(c)) => {
                    self.run_plain::<false>(Base, burst, calm, |i| cost_of(c, i), ahead, (at, few))
                }
                (Some(wide), Some(c)) => {
                    self.run_plain::<false>(wide, burst, calm, |i| cost_of(c, i), ahead, (at, few))
                }
            };
            if let Some(counters) = &mut counters {
                counters.count_plain(stop.pass.count_ones(), (stop.at - at) as u32);
            }
            let denied = (stop.at - at) as u32 - stop.pass.count_ones();
            (at, pass) = (stop.at, pass | stop.pass);
            let Some(&hash) = hashes.get(at) else { return Stop { at, pass } };
            if denied as usize == few {
                return Stop { at, pass };
            }
            let cost = costs.map_or(1, |costs| cost_of(costs, at));
            let passes = self.decide_one(burst, hash, cost, counters.as_deref_mut());
            pass |= (passes as u64) << at;
            at += 1;
        }
    }

    /// Decides one request of a burst by itself, most likely of a key that is absent.
    #[inline(always)]
    pub(in crate::table) fn decide_one(
        &self,
        burst: &Burst<'_>,
        hash: u64,
        cost: u64,
        counters: Option<&mut Counters>,
    ) -> bool {
        let Burst { limit, now, .. } = *burst;
        match counters {
            None if limit.0.plain != 0 => self.check_far(limit, now, hash, cost).passes(),
            None => self.check_again(limit, now, hash, cost).passes(),
            Some(counters) => {
                let request = Request { limit, now, cost, room: 0 };
                self.decide_ex(&request, hash, Some(counters)).passes()
            }
        }
    }

    /// Decides from request number `at` on, up to the first that needs more than one look and one swap, or whose lead
    /// ends between `calm` and the burst; with `LEAVES` at most to behind the denied one number `few`.
    ///
    /// Out of line, so that all its values find a register.
    #[inline(never)]
    fn run_plain<const LEAVES: bool>(
        &self,
        scan: impl Scan,
        burst: &Burst<'_>,
        calm: u64,
        cost: impl Fn(usize) -> u64,
        ahead: impl Fn(&Self, Range<usize>),
        (mut at, mut few): (usize, usize),
    ) -> Stop {
        let (layout, now_q, hashes) = (self.geometry.layout, self.now_q(burst.now), burst.hashes);
        let Params { t_q, burst_q, plain, .. } = burst.limit.0;
        let mut pass = 0u64;
        while let Some(&hash) = hashes.get(at) {
            ahead(self, at..at.wrapping_add(1));
            let cost = cost(at);
            if cost.wrapping_sub(1) >= plain {
                break;
            }
            let (set, tag) = self.place(hash);
            let Some((_, slot, word)) = set.find_by::<M>(scan, &layout, tag) else { break };
            // As gcra::plain, without its answer.
            let lead = layout.lead(word ^ tag.0, now_q).wrapping_add(cost.wrapping_mul(t_q));
            if lead <= calm {
                if M::replace(slot, word, layout.live(tag, now_q.wrapping_add(lead))).is_err() {
                    break;
                }
                pass |= 1u64.wrapping_shl(at as u32);
            } else if lead <= burst_q {
                break;
            } else if LEAVES {
                few = few.wrapping_sub(1);
                if few == 0 {
                    at += 1;
                    break;
                }
            }
            at += 1;
        }
        Stop { at, pass }
    }
}

/// What a burst does ahead that has no next one.
#[inline(always)]
pub(in crate::table) fn nothing<T>(_: &T, _: Range<usize>) {}

/// The cost of a request. The call has checked that there are enough; a request without one has a cost above every
/// burst, so it is refused and nobody is charged.
#[inline(always)]
pub(crate) fn cost_of(costs: &[u32], i: usize) -> u64 {
    costs.get(i).map_or_else(|| impossible!(u64::MAX), |&cost| cost.into())
}

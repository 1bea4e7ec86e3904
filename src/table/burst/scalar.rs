//! A burst decided one by one: the loop of plain decisions.
//!
//! A processor overlaps little with a locked swap, so every instruction between two swaps costs time. That is why the
//! loop of [`Table::run_plain`] is short and has no store. A request that needs more than one scan and one swap ends
//! the loop and is decided by a single call. Then the loop goes on with the next request.

use core::ops::Range;

use super::call::{cost_of, Burst};
use super::Which;
use crate::limit::params::Params;
use crate::sync::access::Access;
use crate::table::calls::full_answer::Request;
use crate::table::counters::Counters;
use crate::table::handle::Table;
use crate::table::set::search::{Base, Scan};

/// Where a run of decisions ended: before request `at`, with the verdicts so far.
pub(in crate::table) struct Stop {
    pub at: usize,
    pub pass: u64,
}

impl<M: Access> Table<'_, M> {
    /// Decides one by one from request `at` to the end, or until one run of plain decisions has denied `few` requests.
    #[inline(always)]
    pub(in crate::table) fn decide_from(
        &self,
        burst: &Burst<'_>,
        mut at: usize,
        few: usize,
        mut counters: Option<&mut Counters>,
        ahead: impl Fn(&Self, Range<usize>, Which) + Copy,
    ) -> Stop {
        let Burst { limit, hashes, costs, .. } = *burst;
        // If soft passes are counted, the loop must leave them to a single call, which tells them from other passes.
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

    /// Decides one request of a burst by a single call. Its key is most likely absent.
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

    /// Decides from request `at` to the first one that needs more than one scan and one swap, or whose lead would lie
    /// above `calm` and within the burst. With `LEAVES` it also stops after `few` denied requests.
    ///
    /// Out of line, so that all of its values fit the registers.
    #[inline(never)]
    fn run_plain<const LEAVES: bool>(
        &self,
        scan: impl Scan,
        burst: &Burst<'_>,
        calm: u64,
        cost: impl Fn(usize) -> u64,
        ahead: impl Fn(&Self, Range<usize>, Which),
        (mut at, mut few): (usize, usize),
    ) -> Stop {
        let (layout, now_q, hashes) = (self.geometry.layout, self.now_q(burst.now), burst.hashes);
        let Params { t_q, burst_q, plain, .. } = burst.limit.0;
        let mut pass = 0u64;
        while let Some(&hash) = hashes.get(at) {
            ahead(self, at..at.wrapping_add(1), Which::Both);
            let cost = cost(at);
            if cost.wrapping_sub(1) >= plain {
                break;
            }
            let (set, tag) = self.place(hash);
            let Some((_, slot, word)) = set.find_by::<M>(scan, &layout, tag) else { break };
            // gcra::plain without its answer: a burst needs only the next lead.
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

/// The `ahead` of a burst without a next one.
#[inline(always)]
pub(in crate::table) fn nothing<T>(_: &T, _: Range<usize>, _: Which) {}

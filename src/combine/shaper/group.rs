//! Reservations in a group: none is eligible before one that was made earlier.

use super::eligibility::Group;
use crate::answer::Decision;
use crate::combine::error::ChainError;
use crate::combine::link::Link;

impl Group {
    /// Reserves a request for a flow of this group, like [`Cell::reserve`](crate::Cell::reserve) at the later of `now`
    /// and the group's latest departure. The departure of this request becomes the group's latest.
    ///
    /// The wait from `now` to the departure is at most the limit's `max_delay`. A request that would wait longer
    /// charges nothing and leaves the group as it is; its `retry_after` counts from `now`.
    ///
    /// ```
    /// use tatcell::{Cell, Group, LimitSpec, Link};
    /// // 1 byte a tick, bursts of 3000, frames of 1500.
    /// let limit = LimitSpec::new(1, 1, 3_000).max_delay(100_000).build()?;
    /// let (group, flows) = (Group::new(), [const { Cell::new() }; 2]);
    /// let send = |now, flow: usize| group.reserve(now, &Link::cell(&flows[flow], &limit, 1_500)).unwrap().departure;
    /// assert_eq!([send(0, 0), send(0, 0), send(0, 0)], [0, 0, 1_500]);
    /// assert_eq!(send(0, 1), 1_500); // alone it could leave at once
    /// # Ok::<(), tatcell::LimitError>(())
    /// ```
    ///
    /// # Errors
    /// [`ChainError::ForeignLimit`]; [`ChainError::BadAlgorithm`] unless the limit is a GCRA limit.
    ///
    /// # Concurrency
    /// Any number of callers. The departures are those of the same calls one after the other, in the order of their
    /// departures; a call that began when another had ended comes after it. Cost: a load, the reservation, an atomic
    /// maximum.
    ///
    /// Source: IEEE 802.1Qcr-2020, asynchronous traffic shaping; the flow's bucket is full at TAT - CBS / CIR.
    pub fn reserve(&self, now: u64, link: &Link<'_>) -> Result<Decision, ChainError> {
        link.reserve_from(now, Some(self))
    }
}

impl Link<'_> {
    /// Reserves at now, or at the group's latest departure if that is later.
    pub(super) fn reserve_from(&self, now: u64, group: Option<&Group>) -> Result<Decision, ChainError> {
        self.target.verify_limit()?;
        if !self.target.is_gcra() {
            return Err(ChainError::BadAlgorithm);
        }
        if self.room != 0 {
            return Err(ChainError::BadRoom);
        }
        let from = group.map_or(now, |group| group.eligible().max(now));
        let mut decision = self.target.reserve_from(now, from, self.cost);
        if !decision.passes() {
            return Ok(decision);
        }
        if let Some(group) = group {
            group.raise(decision.departure);
        }
        if self.extra != 0 {
            let charged = self.target.charge(now, self.extra, None, 0);
            if charged.passes() {
                decision.remaining = charged.remaining;
                decision.next_unit = charged.next_unit;
                decision.reset_after = charged.reset_after;
            }
        }
        Ok(decision)
    }
}

//! The shaper: reserves, and keeps what was reserved until its departure.
//!
//! ```text
//!  submit      room in the wheel, and reach?  --no-->  Full, TooFar, Behind: nothing is touched
//!                   | yes
//!              reserve under the limit        --no-->  non-conforming, never, contended: nothing is charged
//!                   | departure, at most max_delay away
//!              wheel
//! ```
//!
//! Invariants:
//!
//! - **Nothing lost, nothing minted.** The wheel is checked first, for any departure that the limit can give. So every
//!   reservation has its place, and nothing is refunded on the way in. With one owner nobody else takes that place.
//! - **A flow's order holds**: reservations of one cell or key have departures that never fall while its clock does not
//!   step back. For a shaper it does not: the latest reading at which it took a request in counts for older ones. And
//!   the wheel keeps equal and close departures in their order. (After a refund of another request of the flow, later
//!   reservations overtake earlier ones: refund only the newest.)
//! - **A flow's queue is bounded**: with unit costs at most `max_delay / T` of its requests wait for a departure that
//!   lies ahead. So a queue of Q jobs is `max_delay` = Q * T.
//! - **The rate holds.** Departures of a flow conform to its limit exactly. A handle is released late by less than a
//!   granularity g plus the caller's own delay d, so in any time t at most `burst + (t + g + d) / T` units leave.
//!
//! Progress: no loop except for the bounded ones of the reservation.
//!
//! Not here: taking one handle out of the middle. Its place in time is gone, because departures behind it have been
//! returned. Mark the payload as dead and drop it when it comes out.

use super::eligibility::Group;
use super::error::ShaperError;
use super::wheel::{Waiting, Wheel};
use crate::answer::Decision;
use crate::combine::chain::Chain;
use crate::combine::counters::ChainCounters;
use crate::combine::error::ChainError;
use crate::combine::link::Link;

/// Reserves for each request the earliest instant at which it conforms, and keeps its handle until then.
///
/// This is the leaky bucket as a queue, for any number of keys. The limits must have a
/// [`max_delay`](crate::LimitSpec::max_delay): the queue's length in time. A queue of Q jobs of one unit has `Q * T`.
///
/// One owner uses a shaper, for instance a core; the cells and tables behind it may be shared with other shapers.
///
/// ```
/// use tatcell::{wheel_words, LimitSpec, Line, Link, Shaper, Table, TableOptions};
/// static TABLE: [Line; 130] = [Line::EMPTY; 130];
///
/// // 1000 packets a second and flow, 2 at once, 10 wait; ticks are microseconds.
/// let spec = LimitSpec::new(1_000, 1_000_000, 2).max_delay(10_000);
/// let table = Table::init(&TABLE, &TableOptions::new(spec).seed([7; 16]))?;
/// let limit = table.limit(&spec)?;
///
/// let mut memory = [0; wheel_words(256, 100)]; // 256 slots of 64 us reach 16 ms ahead
/// let mut shaper = Shaper::new(&mut memory, 256, 64, 0).unwrap();
/// for packet in 0..20 {
///     let flow = Link::key(&table, &limit, b"192.0.2.1", 1)?;
///     let passes = shaper.submit(0, &flow, packet).unwrap().passes();
///     assert_eq!(passes, packet < 12); // 2 leave now and 10 wait; the others would wait too long
/// }
/// let mut sent = 0;
/// for now in (0..20_000).step_by(64) {
///     while let Some(due) = shaper.release(now) {
///         assert_eq!(due.handle, sent); // in order
///         sent += 1;
///     }
/// }
/// assert_eq!(sent, 12);
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Debug)]
pub struct Shaper<'a> {
    wheel: Wheel<'a>,
}

impl<'a> Shaper<'a> {
    /// Makes an empty shaper over a wheel of `slots` slots of `granularity` ticks: see [`Wheel::new`].
    ///
    /// The granularity is how late a request may leave. Choose the slots so that [`horizon`](Wheel::horizon), `(slots -
    /// 1) * granularity`, exceeds the longest `max_delay` by as long as the caller may fail to come back.
    ///
    /// # Errors
    /// The errors of [`Wheel::new`].
    pub fn new(
        memory: &'a mut [u64],
        slots: usize,
        granularity: u64,
        now: u64,
    ) -> Result<Shaper<'a>, ShaperError> {
        Wheel::new(memory, slots, granularity, now).map(|wheel| Shaper { wheel })
    }

    /// Reserves a request under one limit, and lets its handle wait until the decision's `departure`.
    ///
    /// Every request goes through the wheel, even one that may leave at once, so that none overtakes another of its
    /// flow. A request that does not conform (it would wait longer than the limit's `max_delay`: `retry_after` says
    /// when it would not), that never does, or that is contended neither waits nor is charged: drop it, or try again.
    ///
    /// # Errors
    /// [`ShaperError::Full`]; [`TooFar`](ShaperError::TooFar) if the limit's `max_delay` exceeds the horizon;
    /// [`Behind`](ShaperError::Behind); [`Chain`](ShaperError::Chain) with `ForeignLimit`, or with `BadAlgorithm`
    /// unless the limit is a GCRA limit. Nothing is reserved then.
    ///
    /// # Concurrency
    /// Like [`Cell::reserve`](crate::Cell::reserve), for any number of shapers on one cell or table.
    ///
    /// # Cost
    /// O(1): the reservation, a compare-and-swap, and five or six words of the memory.
    pub fn submit(&mut self, now: u64, link: &Link<'_>, handle: u64) -> Result<Decision, ShaperError> {
        self.enter(now, link, None, (handle, 0))
    }

    /// Submits like [`submit`](Shaper::submit), for a flow of a group, whose requests leave in the order of their
    /// eligibility: never before one of the group that was submitted earlier. The delay counts from `now` and includes
    /// what the group made the request wait.
    ///
    /// # Errors
    /// The errors of [`submit`](Shaper::submit). If shapers with different horizons share a group, a flow in shadow
    /// mode may get [`TooFar`](ShaperError::TooFar) after its charge.
    ///
    /// Source: IEEE 802.1Qcr, see [`Group`].
    pub fn submit_in(
        &mut self,
        now: u64,
        group: &Group,
        link: &Link<'_>,
        handle: u64,
    ) -> Result<Decision, ShaperError> {
        self.enter(now, link, Some(group), (handle, 0))
    }

    /// Submits like [`submit`](Shaper::submit), under all limits of a chain: the request departs at the latest of their
    /// departures, charged now. See [`Chain::reserve`]. If many flows share a limit, use [`forward`](Shaper::forward).
    ///
    /// # Errors
    /// The errors of [`submit`](Shaper::submit).
    pub fn submit_chain(
        &mut self,
        now: u64,
        chain: &Chain<'_>,
        handle: u64,
    ) -> Result<Decision, ShaperError> {
        self.submit_chain_ex(now, chain, handle, None, |_, _| ())
    }

    /// Submits like [`submit_chain`](Shaper::submit_chain), with counters and each link's decision as in
    /// [`Chain::reserve_ex`].
    ///
    /// # Errors
    /// The errors of [`submit`](Shaper::submit).
    pub fn submit_chain_ex<'c>(
        &mut self,
        now: u64,
        chain: &Chain<'_>,
        handle: u64,
        counters: impl Into<ChainCounters<'c>>,
        each: impl FnMut(usize, &Decision),
    ) -> Result<Decision, ShaperError> {
        let (now, delay) = (self.wheel.later(now), chain.max_delay()?);
        self.wheel.has_room(now, delay)?;
        let decision = chain.reserve_ex(now, counters, each)?;
        self.keep(now, (handle, 0), decision)
    }

    /// Keeps a handle whose departure was decided elsewhere.
    ///
    /// # Errors
    /// The errors of [`Wheel::insert`].
    pub fn insert(&mut self, now: u64, waiting: Waiting) -> Result<(), ShaperError> {
        self.wheel.insert(now, waiting)
    }

    /// Takes out the next handle that is due at `now`: see [`Wheel::release`].
    pub fn release(&mut self, now: u64) -> Option<Waiting> {
        self.wheel.release(now)
    }

    /// Takes out the first handle, due or not: see [`Wheel::take`]. What was charged for it stays charged.
    pub fn take(&mut self) -> Option<Waiting> {
        self.wheel.take()
    }

    /// Returns when to come back: see [`Wheel::next_departure`].
    pub fn next_departure(&self) -> Option<u64> {
        self.wheel.next_departure()
    }

    /// Returns the wheel, for its numbers.
    pub fn wheel(&self) -> &Wheel<'a> {
        &self.wheel
    }

    /// Reserves under one limit, and lets the request wait.
    pub(super) fn enter(
        &mut self,
        now: u64,
        link: &Link<'_>,
        group: Option<&Group>,
        waiting: (u64, u32),
    ) -> Result<Decision, ShaperError> {
        let (now, delay) = (self.wheel.later(now), link.max_delay()?);
        self.wheel.has_room(now, delay)?;
        let decision = link.reserve_from(now, group)?;
        self.keep(now, waiting, decision)
    }

    /// Lets a reserved request wait. The wheel has room for it: `has_room` was called with the longest delay.
    fn keep(
        &mut self,
        now: u64,
        (handle, level): (u64, u32),
        decision: Decision,
    ) -> Result<Decision, ShaperError> {
        if decision.passes() {
            self.wheel.insert(now, Waiting { handle, departure: decision.departure, level })?;
        }
        Ok(decision)
    }
}

impl Link<'_> {
    /// Returns the longest time that a reservation may have to wait, in ticks.
    fn max_delay(&self) -> Result<u64, ChainError> {
        self.target.verify_limit()?;
        self.target.max_delay().ok_or(ChainError::BadAlgorithm)
    }
}

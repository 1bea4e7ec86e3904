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
//! - **Nothing lost, nothing minted.** The wheel is looked at first, for any departure that the limit can give: what
//!   was reserved always has its place, so there is no refund on the way in. One owner, so nobody takes that place.
//! - **A flow's order holds**: reservations of one cell or key have departures that never fall while its clock does
//!   not step back; for a shaper it does not, as the latest reading at which it took a request in counts for older
//!   ones; and the wheel keeps equal and close departures in their order. (A refund of another request of the flow
//!   moves later reservations ahead of those made before: refund none but the newest.)
//! - **A flow's queue is bounded**: with unit costs at most `max_delay / T` requests of it wait for a departure that
//!   lies ahead. So a queue of Q jobs is `max_delay` = Q * T.
//! - **The rate holds.** Departures of a flow conform to its limit exactly. What is given out is late by less than a
//!   granularity g and by the caller's own delay d, so in any time t at most `burst + (t + g + d) / T` units are.
//!
//! Progress: no loop but the bounded ones of the reservation.
//!
//! Not here: taking one handle out of the middle. Its place in time is gone: departures behind it have been told.
//! Mark the payload as dead and drop it when it comes out.

use super::eligibility::Group;
use super::error::ShaperError;
use super::wheel::{Waiting, Wheel};
use crate::answer::Decision;
use crate::combine::chain::Chain;
use crate::combine::error::ChainError;
use crate::combine::link::Link;
use crate::table::Counters;

/// A shaper: reserves for each request the earliest instant at which it conforms, and keeps its handle until then.
///
/// The leaky bucket as a queue, for any number of keys. The limits must have a
/// [`max_delay`](crate::LimitSpec::max_delay); it is the queue's length in time, and Q jobs of one unit are `Q * T`.
///
/// One owner uses a shaper, a core for instance; the cells and tables behind it may be shared with other shapers.
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
    /// Makes an empty shaper over a wheel of `slots` slots of `granularity` ticks, see [`Wheel::new`].
    ///
    /// Choose the granularity by how late a request may leave, and the slots so that
    /// [`horizon`](Wheel::horizon), `(slots - 1) * granularity`, exceeds the longest `max_delay` by as long as the
    /// caller may fail to come back.
    ///
    /// # Errors
    /// As [`Wheel::new`].
    pub fn new(
        memory: &'a mut [u64],
        slots: usize,
        granularity: u64,
        now: u64,
    ) -> Result<Shaper<'a>, ShaperError> {
        Wheel::new(memory, slots, granularity, now).map(|wheel| Shaper { wheel })
    }

    /// Reserves a request under one limit and lets its handle wait until the decision's `departure`.
    ///
    /// Every request goes through the wheel, one that may leave at once too, so that none overtakes another of its
    /// flow. One that does not conform (it would wait longer than the limit's `max_delay`: `retry_after` says when it
    /// would not), that never does, or that is contended waits nowhere and charged nothing: drop it, or ask again.
    ///
    /// # Errors
    /// [`ShaperError::Full`]; [`TooFar`](ShaperError::TooFar) where the limit's `max_delay` exceeds the horizon;
    /// [`Behind`](ShaperError::Behind); of [`Chain`](ShaperError::Chain) `ForeignLimit`, and `BadAlgorithm` where the
    /// limit is not of GCRA. Nothing is reserved then.
    ///
    /// # Concurrency
    /// As [`Cell::reserve`](crate::Cell::reserve), of any number of shapers on one cell or table.
    ///
    /// # Cost
    /// O(1): the reservation, a compare-and-swap, and three words of the memory.
    pub fn submit(&mut self, now: u64, link: &Link<'_>, handle: u64) -> Result<Decision, ShaperError> {
        self.enter(now, link, None, (handle, 0))
    }

    /// As [`submit`](Shaper::submit) for a flow of a group, whose requests leave in the order of their eligibility:
    /// never before one of the group that was submitted before. The delay counts from `now`, what the group made it
    /// wait included.
    ///
    /// # Errors
    /// As [`submit`](Shaper::submit).
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

    /// As [`submit`](Shaper::submit) under all limits of a chain: departs at the latest of theirs, charged now. See
    /// [`Chain::reserve`]; where one limit is shared by many flows, [`forward`](Shaper::forward) is the better way.
    ///
    /// # Errors
    /// As [`submit`](Shaper::submit).
    pub fn submit_chain(
        &mut self,
        now: u64,
        chain: &Chain<'_>,
        handle: u64,
    ) -> Result<Decision, ShaperError> {
        self.submit_chain_ex(now, chain, handle, None, |_, _| ())
    }

    /// As [`submit_chain`](Shaper::submit_chain), with counters and the decision of each link as
    /// [`Chain::reserve_ex`].
    ///
    /// # Errors
    /// As [`submit`](Shaper::submit).
    pub fn submit_chain_ex(
        &mut self,
        now: u64,
        chain: &Chain<'_>,
        handle: u64,
        counters: Option<&mut Counters>,
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
    /// As [`Wheel::insert`].
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

    /// When to come back: see [`Wheel::next_departure`].
    pub fn next_departure(&self) -> Option<u64> {
        self.wheel.next_departure()
    }

    /// The wheel, for its numbers.
    pub fn wheel(&self) -> &Wheel<'a> {
        &self.wheel
    }

    /// Reserves under one limit; what was reserved waits.
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

    /// Lets wait what was reserved. The wheel has room for it: that was looked at with the longest delay.
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
    /// The longest that a reservation may have to wait, in ticks.
    fn max_delay(&self) -> Result<u64, ChainError> {
        self.target.verify_limit()?;
        self.target.max_delay().ok_or(ChainError::BadAlgorithm)
    }
}

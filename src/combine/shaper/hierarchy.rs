//! A hierarchy of limits, one event after the other: flow within tenant within port.
//!
//! ```text
//!  arrival          e1                        e2                       e3
//!  ----+-------------+-------------------------+------------------------+---------> time
//!      | waits for its flow      waits for its tenant      waits for the port     leaves
//!      '- reserve: flow          '- reserve: tenant        '- reserve: port
//!         at the arrival            at e1                     at e2
//! ```
//!
//! A parent is asked when a request gets there, never for a time that lies ahead: a reservation moves the whole limit
//! to that time, and everybody else's requests behind it. Beside a flow that is overloaded, a tenant that is charged at
//! its flows' departures lets all its flows wait as long as that flow's queue is (`tests/combine/shaper/hierarchy.rs`:
//! 189 seconds instead of 7). Charging all limits at arrival ([`Shaper::submit_chain`]) lets nobody wait for it, but
//! what that flow holds back then leaves when the tenant's time has long been given to others: above the tenant's rate.
//!
//! One wheel holds all levels: a handle comes out with its level, and goes in again one higher.
//!
//! A request that a parent refuses (its `max_delay` is shorter than the queue there) is lost at that parent, as a
//! packet is in any network: what its flow was charged has been used. Give parents a `max_delay` that covers what all
//! children may bring, and there is none.

use super::super::link::Link;
use super::error::ShaperError;
use super::submit::Shaper;
use super::wheel::Waiting;
use crate::answer::Decision;

impl Shaper<'_> {
    /// Reserves what has come out at one level under the limit of the next, at `now`, and lets it wait there: it comes
    /// out again with its `level` one higher.
    ///
    /// ```
    /// use tatcell::{wheel_words, Cell, LimitSpec, Link, Shaper};
    /// let flow_limit = LimitSpec::new(1, 100, 1).max_delay(10_000).build()?;
    /// let port_limit = LimitSpec::new(1, 10, 1).max_delay(10_000).build()?;
    /// let (flows, port) = ([const { Cell::new() }; 2], Cell::new());
    ///
    /// let mut memory = [0; wheel_words(1024, 16)];
    /// let mut shaper = Shaper::new(&mut memory, 1024, 16, 0).unwrap();
    /// for packet in 0..8 {
    ///     let flow = &flows[packet as usize % 2];
    ///     assert!(shaper.submit(0, &Link::cell(flow, &flow_limit, 1), packet).unwrap().passes());
    /// }
    /// let mut sent = Vec::new();
    /// while let Some(now) = shaper.next_departure() {
    ///     let due = shaper.release(now).unwrap();
    ///     match due.level {
    ///         0 => assert!(shaper.forward(now, due, &Link::cell(&port, &port_limit, 1)).unwrap().passes()),
    ///         _ => sent.push((due.handle, now)),
    ///     }
    /// }
    /// // Two flows of one packet every 100 ticks each, and the port lets one through every 10.
    /// assert_eq!(sent[..4], [(0, 0), (1, 10), (2, 100), (3, 110)]);
    /// assert_eq!(sent.len(), 8);
    /// # Ok::<(), tatcell::LimitError>(())
    /// ```
    ///
    /// The place that the handle came out of is free until something else is put in: forward first, submit then.
    ///
    /// # Errors
    /// As [`submit`](Shaper::submit).
    ///
    /// # Concurrency
    /// As [`submit`](Shaper::submit). Cost: the same.
    pub fn forward(&mut self, now: u64, due: Waiting, link: &Link<'_>) -> Result<Decision, ShaperError> {
        self.enter(now, link, None, (due.handle, due.level.wrapping_add(1)))
    }
}

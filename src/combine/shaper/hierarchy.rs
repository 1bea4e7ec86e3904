//! A hierarchy of limits, asked one event after the other: flow within tenant within port.
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
//! to that time, and everybody else's requests behind it. If a tenant were charged at its flows' departures, one
//! overloaded flow would make all its flows wait as long as that flow's queue (`tests/combine/shaper/hierarchy.rs`: 189
//! seconds instead of 7). If all limits are charged at arrival ([`Shaper::submit_chain`]), nobody waits for that flow.
//! But what it holds back then leaves when the tenant's time has long been given to others: above the tenant's rate.
//!
//! One wheel holds all levels: a handle comes out with its level, and goes in again one level higher.
//!
//! A request that a parent refuses (its `max_delay` is shorter than the queue there) is lost at that parent, like a
//! packet in any network: what its flow was charged is used up. Give parents a `max_delay` that covers what all
//! children may bring, and none is lost.

use super::error::ShaperError;
use super::submit::Shaper;
use super::wheel::Waiting;
use crate::answer::Decision;
use crate::combine::link::Link;

impl Shaper<'_> {
    /// Reserves what has come out at one level under the limit of the next, at `now`. It waits there and comes out
    /// again with its `level` one higher.
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
    /// // Two flows of one packet per 100 ticks each; the port passes one per 10.
    /// assert_eq!(sent[..4], [(0, 0), (1, 10), (2, 100), (3, 110)]);
    /// assert_eq!(sent.len(), 8);
    /// # Ok::<(), tatcell::LimitError>(())
    /// ```
    ///
    /// The place that the handle came out of stays free only until something else is put in: forward before you submit.
    ///
    /// # Errors
    /// The errors of [`submit`](Shaper::submit).
    ///
    /// # Concurrency
    /// Like [`submit`](Shaper::submit), at the same cost.
    pub fn forward(&mut self, now: u64, due: Waiting, link: &Link<'_>) -> Result<Decision, ShaperError> {
        self.enter(now, link, None, (due.handle, due.level.wrapping_add(1)))
    }
}

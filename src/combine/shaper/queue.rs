//! The leaky bucket as a queue: one flow, its limit, and its payloads, first in, first out.
//!
//! ```text
//!  push   [ cell: TAT ] --- departure ---> [ d0, p0 ][ d1, p1 ][ d2, p2 ] ..     d0 <= d1 <= d2
//!                                              |
//!  pop    now >= d0 ---------------------------'
//! ```
//!
//! The textbook has a queue of Q places that a process empties by one job every T. Here nothing runs: at arrival the
//! cell says when the job would reach the head, and the queue holds the payload until then. A `max_delay` of `Q * T` is
//! a queue of Q: a job of one unit that finds Q waiting would wait `(Q + 1) * T`, and is refused.
//!
//! With a burst of B the first B jobs after idle do not wait: the textbook's queue is B = 1.
//!
//! A [`Fifo`] holds the payloads: a [`Ring`] of handles in the caller's memory, or, with the feature `heapless`, a
//! `heapless::Deque` of payloads of any type.
//!
//! Invariants: departures never fall from head to tail (one owner, one clock, whose latest reading counts). A request
//! that was refused, for its delay or because the queue is full, charged nothing and gets its payload back.
#![warn(clippy::arithmetic_side_effects)]

use super::error::ShaperError;
use super::wheel::ahead;
use crate::answer::{Decision, Outcome};
use crate::cell::ExclusiveCell;
use crate::combine::error::ChainError;
use crate::limit::Limit;

/// Holds the payloads of a [`LeakyQueue`], each with its departure, first in, first out.
///
/// ```
/// use std::collections::VecDeque;
/// use tatcell::{Fifo, LeakyQueue, LimitSpec};
/// struct Frames(VecDeque<(u64, String)>); // payloads on a heap, where there is one
/// impl Fifo for Frames {
///     type Payload = String;
///     fn put(&mut self, departure: u64, frame: String) -> Result<(), String> {
///         self.0.push_back((departure, frame));
///         Ok(())
///     }
///     fn first(&self) -> Option<u64> {
///         self.0.front().map(|frame| frame.0)
///     }
///     fn take(&mut self) -> Option<String> {
///         self.0.pop_front().map(|frame| frame.1)
///     }
///     fn count(&self) -> usize {
///         self.0.len()
///     }
///     fn room(&self) -> usize {
///         1_000
///     }
/// }
/// let limit = LimitSpec::leaky_bucket(1, 10, 1).max_delay(30).build()?;
/// let mut queue = LeakyQueue::new(limit, Frames(VecDeque::new()), 0).unwrap();
/// assert_eq!(queue.push(0, 1, "hello".into()).unwrap().departure, 0);
/// assert_eq!(queue.pop(0).as_deref(), Some("hello"));
/// # Ok::<(), tatcell::LimitError>(())
/// ```
pub trait Fifo {
    /// The type of a payload.
    type Payload;
    /// Puts a payload in behind the others; gives it back if there is no room.
    fn put(&mut self, departure: u64, payload: Self::Payload) -> Result<(), Self::Payload>;
    /// Returns the departure of the first payload; `None` when empty.
    fn first(&self) -> Option<u64>;
    /// Takes the first payload out.
    fn take(&mut self) -> Option<Self::Payload>;
    /// Returns how many payloads it holds.
    fn count(&self) -> usize;
    /// Returns how many payloads it can hold.
    fn room(&self) -> usize;
}

/// Shapes one flow: a leaky bucket as a queue, with its payloads.
///
/// ```
/// use tatcell::{ring_words, LeakyQueue, LimitSpec, NotQueued, Outcome, Ring};
/// // A job every 10 ms, and a queue of 3 behind the one that leaves at once; ticks are milliseconds.
/// let limit = LimitSpec::leaky_bucket(1, 10, 1).max_delay(30).build()?;
/// let mut memory = [0; ring_words(4)];
/// let mut queue = LeakyQueue::new(limit, Ring::new(&mut memory), 0).unwrap();
/// for frame in 0..4 {
///     assert_eq!(queue.push(0, 1, frame).unwrap().departure, frame * 10);
/// }
/// assert!(matches!(queue.push(0, 1, 4), Err(NotQueued::Full(4))));
/// assert_eq!((queue.pop(0), queue.pop(9), queue.pop(10)), (Some(0), None, Some(1)));
/// assert!(queue.push(10, 1, 4).unwrap().passes()); // 2 wait
/// match queue.push(10, 1, 5) {
///     Err(NotQueued::Refused(5, why)) => assert_eq!(why, Outcome::NonConforming { retry_after: 10 }),
///     other => panic!("{other:?}"),
/// }
/// assert_eq!(queue.next_departure(), Some(20)); // sleep until then
/// # Ok::<(), tatcell::LimitError>(())
/// ```
#[derive(Debug)]
pub struct LeakyQueue<F> {
    limit: Limit,
    cell: ExclusiveCell,
    /// The latest reading of the clock.
    latest: u64,
    fifo: F,
}

/// Gives back a payload that was not queued, and says why. Nothing was charged.
///
/// ```
/// use tatcell::{ring_words, LeakyQueue, LimitSpec, Ring};
/// let limit = LimitSpec::leaky_bucket(1, 10, 1).max_delay(30).build()?;
/// let mut memory = [0; ring_words(1)];
/// let mut queue = LeakyQueue::new(limit, Ring::new(&mut memory), 0).unwrap();
/// assert!(queue.push(0, 1, 7).is_ok());
/// assert_eq!(queue.push(0, 1, 8).unwrap_err().into_payload(), 8); // the caller has it again
/// # Ok::<(), tatcell::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotQueued<P> {
    /// There is no room for it.
    Full(P),
    /// It would wait longer than the limit's `max_delay` (`NonConforming`, with the time until it would not), or its
    /// cost is above the burst (`Never`).
    Refused(P, Outcome),
}

impl<P> NotQueued<P> {
    /// Returns the payload.
    pub fn into_payload(self) -> P {
        match self {
            NotQueued::Full(payload) | NotQueued::Refused(payload, _) => payload,
        }
    }
}

impl<F: Fifo> LeakyQueue<F> {
    /// Makes a queue under a limit, with an empty `fifo` for its payloads. `now` is a reading of the clock.
    ///
    /// Two bounds hold, whichever is reached first: the room of `fifo`, and the limit's `max_delay`.
    ///
    /// # Errors
    /// [`ShaperError::Chain`] with `BadAlgorithm` unless the limit is a GCRA limit; [`ShaperError::TooSmall`] if `fifo`
    /// can hold nothing.
    pub fn new(limit: Limit, fifo: F, now: u64) -> Result<LeakyQueue<F>, ShaperError> {
        if !limit.0.is_gcra() {
            return Err(ChainError::BadAlgorithm.into());
        }
        if fifo.room() == 0 {
            return Err(ShaperError::TooSmall);
        }
        Ok(LeakyQueue { limit, cell: ExclusiveCell::new(), latest: now, fifo })
    }

    /// Queues a payload that costs `cost` units; it may be popped from the decision's `departure` on. Afterwards its
    /// position is [`len`](LeakyQueue::len) - 1.
    ///
    /// # Errors
    /// [`NotQueued`], with the payload. Nothing is charged.
    ///
    /// # Cost
    /// O(1), with a division for the decision.
    pub fn push(
        &mut self,
        now: u64,
        cost: u64,
        payload: F::Payload,
    ) -> Result<Decision, NotQueued<F::Payload>> {
        if self.fifo.count() >= self.fifo.room() {
            return Err(NotQueued::Full(payload));
        }
        self.latest = self.latest.wrapping_add(ahead(now, self.latest));
        let decision = self.cell.reserve(&self.limit, self.latest, cost);
        if !decision.passes() {
            return Err(NotQueued::Refused(payload, decision.outcome()));
        }
        match self.fifo.put(decision.departure, payload) {
            Ok(()) => Ok(decision),
            // There was room. If the Fifo contradicts itself, the unit is lost.
            Err(payload) => Err(NotQueued::Full(payload)),
        }
    }

    /// Takes the first payload out if it is due at `now`.
    ///
    /// # Cost
    /// O(1).
    pub fn pop(&mut self, now: u64) -> Option<F::Payload> {
        if ahead(self.fifo.first()?, now) != 0 {
            return None;
        }
        self.fifo.take()
    }

    /// Takes the first payload out, due or not, for shutting down. What was charged for it stays charged.
    pub fn take(&mut self) -> Option<F::Payload> {
        self.fifo.take()
    }

    /// Returns the departure of the first payload: when to come back. `None` if nothing waits.
    pub fn next_departure(&self) -> Option<u64> {
        self.fifo.first()
    }

    /// Returns the number of payloads that wait.
    pub fn len(&self) -> usize {
        self.fifo.count()
    }

    /// Returns whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.fifo.count() == 0
    }

    /// Returns the limit.
    pub fn limit(&self) -> &Limit {
        &self.limit
    }
}

/// Words of an entry of a [`Ring`].
const ENTRY: usize = 2;

/// Returns the 64-bit words of memory that a [`Ring`] needs for this many handles; saturates.
///
/// ```
/// use tatcell::{ring_words, Fifo, Ring};
/// let mut memory = [0; ring_words(2)];
/// let mut ring = Ring::new(&mut memory);
/// assert_eq!([7, 8, 9].map(|handle| ring.put(0, handle)), [Ok(()), Ok(()), Err(9)]);
/// ```
pub const fn ring_words(handles: usize) -> usize {
    handles.saturating_mul(ENTRY)
}

/// Holds handles in the caller's memory, first in, first out: `[ departure : 64 ][ handle : 64 ]` each.
///
/// ```
/// use tatcell::{ring_words, Fifo, Ring};
/// let mut memory = [0; ring_words(2)];
/// let mut ring = Ring::new(&mut memory);
/// assert_eq!((ring.put(100, 7), ring.put(200, 8), ring.put(300, 9)), (Ok(()), Ok(()), Err(9)));
/// assert_eq!((ring.first(), ring.take(), ring.first()), (Some(100), Some(7), Some(200)));
/// ```
#[derive(Debug)]
pub struct Ring<'a> {
    entries: &'a mut [u64],
    /// The entry that is taken out next; less than `room`.
    head: usize,
    count: usize,
}

impl<'a> Ring<'a> {
    /// Makes an empty ring for as many handles as fit in the memory ([`ring_words`]).
    pub fn new(memory: &'a mut [u64]) -> Ring<'a> {
        Ring { entries: memory, head: 0, count: 0 }
    }

    fn entry(&mut self, at: usize) -> Option<&mut [u64; ENTRY]> {
        let start = at.wrapping_mul(ENTRY);
        self.entries.get_mut(start..start.wrapping_add(ENTRY))?.try_into().ok()
    }
}

impl Fifo for Ring<'_> {
    type Payload = u64;

    fn put(&mut self, departure: u64, handle: u64) -> Result<(), u64> {
        let (room, behind) = (self.room(), self.head.wrapping_add(self.count));
        if self.count >= room {
            return Err(handle);
        }
        // No overflow: both are at most the room, which is at most a sixteenth of the address space.
        let at = if behind < room { behind } else { behind.wrapping_sub(room) };
        let entry = self.entry(at).ok_or(handle)?;
        *entry = [departure, handle];
        self.count = self.count.wrapping_add(1);
        Ok(())
    }

    fn first(&self) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        self.entries.get(self.head.wrapping_mul(ENTRY)).copied()
    }

    fn take(&mut self) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let [_, handle] = *self.entry(self.head)?;
        let next = self.head.wrapping_add(1);
        self.head = if next < self.room() { next } else { 0 };
        self.count = self.count.wrapping_sub(1);
        Some(handle)
    }

    fn count(&self) -> usize {
        self.count
    }

    fn room(&self) -> usize {
        self.entries.len() / ENTRY
    }
}

/// Holds payloads of any type, with their departures, in place: no memory besides the queue's own.
///
/// ```
/// use tatcell::{LeakyQueue, LimitSpec};
/// // A device that takes a command every 10 ms, and a queue of 15; ticks are milliseconds.
/// let limit = LimitSpec::leaky_bucket(1, 10, 1).max_delay(150).build()?;
/// let mut commands = LeakyQueue::new(limit, heapless::Deque::<(u64, [u8; 4]), 16>::new(), 0).unwrap();
/// assert!(commands.push(0, 1, *b"open").is_ok() && commands.push(3, 1, *b"shut").is_ok());
/// assert_eq!((commands.pop(3), commands.pop(9), commands.pop(10)), (Some(*b"open"), None, Some(*b"shut")));
/// # Ok::<(), tatcell::LimitError>(())
/// ```
#[cfg(feature = "heapless")]
impl<P, const N: usize> Fifo for heapless::Deque<(u64, P), N> {
    type Payload = P;

    fn put(&mut self, departure: u64, payload: P) -> Result<(), P> {
        self.push_back((departure, payload)).map_err(|(_, payload)| payload)
    }

    fn first(&self) -> Option<u64> {
        self.front().map(|(departure, _)| *departure)
    }

    fn take(&mut self) -> Option<P> {
        self.pop_front().map(|(_, payload)| payload)
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn room(&self) -> usize {
        self.capacity()
    }
}

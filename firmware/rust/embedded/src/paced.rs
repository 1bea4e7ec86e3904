//! A cell whose tasks wait for their turn, by the clock of embassy-time.

use embassy_time::{Instant, Timer};
use tatcell::{Cell, Outcome, SmallLimit};

/// Why a task does not get its turn; nothing is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The cost is above the burst.
    Never,
    /// It would wait longer than the limit's delay ([`SmallLimit::shaped`]).
    TooLate,
}

/// A cell and its limit under the clock of embassy-time, whose ticks a second are `embassy_time::TICK_HZ`.
///
/// Its tasks either all ask ([`until_ready`](Paced::until_ready)) or all [`reserve`](Paced::reserve). A reservation
/// takes every unit before it is there, so a task that asks while others reserve waits for ever.
///
/// ```
/// use embassy_time::TICK_HZ;
/// use tatcell::small_limit;
/// use tatcell_embedded::Paced;
///
/// static UPLINK: Paced = Paced::new(small_limit!(10 per 1.secs(), TICK_HZ, burst 3));
///
/// async fn send(frame: &[u8]) {
///     if UPLINK.until_ready(1).await.is_ok() {
///         // radio.transmit(frame).await
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Paced {
    cell: Cell,
    limit: SmallLimit,
}

impl Paced {
    /// Makes a fresh cell: the full burst is available.
    pub const fn new(limit: SmallLimit) -> Paced {
        Paced { cell: Cell::new(), limit }
    }

    /// Asks now.
    pub fn check(&self, cost: u32) -> Outcome {
        self.cell.check_small(&self.limit, Instant::now().as_ticks(), cost)
    }

    /// Waits until `cost` units conform, and charges them. Waiting tasks have no order: the first to ask when there are
    /// enough units gets them.
    ///
    /// Dropped while it waits it has charged nothing.
    ///
    /// # Errors
    /// [`Refused::Never`].
    pub async fn until_ready(&self, cost: u32) -> Result<(), Refused> {
        loop {
            match self.check(cost) {
                Outcome::Conforming => return Ok(()),
                Outcome::Never => return Err(Refused::Never),
                Outcome::NonConforming { retry_after } => Timer::after_ticks(retry_after).await,
                // Interrupts won each attempt: a tick later they are done.
                Outcome::Contended => Timer::after_ticks(1).await,
            }
        }
    }

    /// Takes the next place in the line and waits for it: tasks leave in the order in which they asked. The limit needs
    /// a delay ([`SmallLimit::shaped`]), the longest time that one waits.
    ///
    /// Dropped while it waits, it gives its place up: to the next to ask where it was the last in the line, else to
    /// nobody, for those behind it are told when they leave.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn reserve(&self, cost: u32) -> Result<(), Refused> {
        loop {
            let now = Instant::now();
            match self.cell.reserve_small(&self.limit, now.as_ticks(), cost) {
                Ok(0) => return Ok(()),
                Ok(wait) => {
                    let place = Place { paced: self, then: now.as_ticks(), wait, cost };
                    // From the instant of the reservation, however late the executor comes to it.
                    Timer::at(Instant::from_ticks(now.as_ticks().saturating_add(wait))).await;
                    place.leave();
                    return Ok(());
                }
                Err(Outcome::Never) => return Err(Refused::Never),
                Err(Outcome::Contended) => Timer::after_ticks(1).await,
                Err(_) => return Err(Refused::TooLate),
            }
        }
    }
}

/// A place in the line; given up where it is dropped.
struct Place<'a> {
    paced: &'a Paced,
    then: u64,
    wait: u64,
    cost: u32,
}

impl Place<'_> {
    /// Its turn has come: what it took is used.
    fn leave(self) {
        core::mem::forget(self);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let Paced { cell, limit } = self.paced;
        // Contended is the one error, and bounded: interrupts may win a few times, not for ever.
        for _ in 0..4 {
            let now = Instant::now().as_ticks();
            if cell.cancel_small(limit, now, self.then, self.wait, self.cost).is_ok() {
                break;
            }
        }
    }
}

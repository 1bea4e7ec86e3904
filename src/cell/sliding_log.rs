//! Sliding logs: one stamp for each unit of a window, in the caller's memory.
//!
//! ```text
//!  SlidingLog     [ stamp 0 ][ stamp 1 ]  ...  [ stamp N-1 ]   a Cell each: one line of 64 bytes holds 8
//!                       ^ starts at a place hashed from now, takes the first stamp that is free
//! ```
//!
//! Any number of threads, interrupts and processes may use the stamps of a [`SlidingLog`] at once; those of an
//! [`ExclusiveSlidingLog`] have one owner. The value that holds the reference is a view without state.
//!
//! Linearizable except for refunds. A request that passes takes effect at its one successful swap. A stamp that is
//! taken for a caller's `now` stays taken for it, because a replacement is a later time. So when a caller has found the
//! last of N stamps taken, all are, and its refusal takes effect there. During a refund a caller may have found both
//! the unit that came back and the one that replaced it: a refusal too many, never a pass.
//!
//! Progress: a call visits at most N stamps. It loses a swap only to a rival's success; then that stamp is taken, and
//! the call visits the next one. If clocks differ by a window or more, the stamp may still be free and is tried again:
//! after [`MAX_LOST`](crate::MAX_LOST) losses on one stamp the call answers `Contended`, with nothing charged.

use super::cell::{Cell, ExclusiveCell};
use crate::algorithms::gcra::{encode, whole_lead};
use crate::algorithms::sliding_log::{behind, first, Tally, Window};
use crate::answer::{Decision, Outcome, Permit};
use crate::limit::LimitError;

/// The operations, written once for the two forms.
macro_rules! sliding_log {
    (
        $(#[$doc:meta])* $name:ident, $stamps:ty, $get:ident, $iter:ident, $me:ident, ($($recv:tt)+)
    ) => {
        $(#[$doc])*
        pub struct $name<'a> {
            stamps: $stamps,
            window: Window,
        }

        impl<'a> $name<'a> {
            /// Makes a log that allows as many units as it has stamps in every window of `window` ticks.
            ///
            /// A view costs a few comparisons, so each call may make one. Memory of zeros is an empty log.
            ///
            /// # Errors
            /// [`LimitError::ZeroRate`] for no stamps, [`TooManyUnits`](LimitError::TooManyUnits) for 2^32 or more,
            /// [`ZeroPeriod`](LimitError::ZeroPeriod) for a window of 0, [`HorizonTooLong`](LimitError::HorizonTooLong)
            /// for a window of 2^63 - 2^61 ticks or more.
            pub const fn new(stamps: $stamps, window: u64) -> Result<Self, LimitError> {
                match Window::new(stamps.len(), window, None) {
                    Ok(window) => Ok($name { stamps, window }),
                    Err(e) => Err(e),
                }
            }

            /// Sets by how many ticks a reading of the clock may be older than another, instead of 2^61. An older one
            /// finds the log empty.
            ///
            /// # Errors
            /// [`LimitError::HorizonTooLong`] if window and skew together are 2^63 ticks or more.
            pub const fn skew(self, ticks: u64) -> Result<Self, LimitError> {
                match Window::new(self.stamps.len(), self.window.window, Some(ticks)) {
                    Ok(window) => Ok($name { stamps: self.stamps, window }),
                    Err(e) => Err(e),
                }
            }

            /// Returns the most units in a window: the number of stamps.
            pub const fn units(&self) -> u64 {
                self.stamps.len() as u64
            }

            /// Returns the window, in ticks.
            pub const fn window(&self) -> u64 {
                self.window.window
            }

            #[inline(always)]
            const fn lead(window: Window, word: u64, now: u64) -> u64 {
                whole_lead(word, now, u64::MAX, window.both)
            }

            /// Visits all stamps in turn and takes the first that is free. `None` when contended.
            #[inline(always)]
            fn walk($($recv)+, now: u64) -> Option<Tally> {
                let (window, units) = ($me.window, $me.stamps.len());
                let (mut tally, mut place) = (Tally::EMPTY, first(now, units));
                for _ in 0..units {
                    let stamp = $me.stamps.$get(place)?;
                    let wanted = tally.taken.is_none();
                    let (lead, taken) = stamp.update(|word| match Self::lead(window, word, now) {
                        0 if wanted => {
                            let stamp = encode(now, window.window, u64::MAX);
                            ((window.window, Some((place, stamp))), Some(stamp))
                        }
                        lead => ((lead, None), None),
                    })?;
                    tally.count(lead);
                    if wanted {
                        tally.taken = taken;
                    }
                    place = behind(place, units);
                }
                Some(tally)
            }

            /// Decides one request of one unit and takes a stamp if it conforms: iff fewer than N units were charged in
            /// the `window` ticks up to now, including units charged by clocks that are ahead.
            ///
            /// # Concurrency
            /// One compare-and-swap if it conforms, none if not. Cost: up to N loads, a cache line for 8; always N if
            /// refused. No division. Rivals may make `retry_after` too short: it is as of the loads of the stamps.
            #[inline]
            pub fn check($($recv)+, now: u64) -> Outcome {
                let (window, units) = ($me.window, $me.stamps.len());
                let free = encode(now, window.window, u64::MAX);
                let (mut soonest, mut place) = (u64::MAX, first(now, units));
                for _ in 0..units {
                    let Some(stamp) = $me.stamps.$get(place) else { return Outcome::Contended };
                    let lead = stamp.update(|word| match Self::lead(window, word, now) {
                        0 => (0, Some(free)),
                        lead => (lead, None),
                    });
                    match lead {
                        Some(0) => return Outcome::Conforming,
                        Some(lead) => soonest = soonest.min(lead),
                        None => return Outcome::Contended,
                    }
                    place = behind(place, units);
                }
                Outcome::NonConforming { retry_after: soonest }
            }

            /// Decides one request with the full answer: `remaining`, `next_unit` and `reset_after` are exact for the
            /// stamps as they were loaded.
            ///
            /// # Concurrency
            /// Like [`check`](Self::check); always N loads.
            #[inline]
            pub fn check_ex($($recv)+, now: u64) -> Decision {
                match $me.walk(now) {
                    Some(tally) => tally.decision($me.stamps.len(), now, false),
                    None => Decision::contended(1, $me.units()),
                }
            }

            /// Returns what a request would be answered, without charging it. Only reads: N loads.
            pub fn peek(&self, now: u64) -> Decision {
                let mut tally = Tally::EMPTY;
                for stamp in self.stamps.iter() {
                    tally.count(Self::lead(self.window, stamp.word(), now));
                }
                tally.decision(self.stamps.len(), now, true)
            }

            /// Takes the unit of a permit out of the log, if it is still in the window. Returns the units taken out, 1
            /// or 0; `None` when contended (nothing changed, try again).
            ///
            /// Use a permit once, and never one from before a reset. A second use gives back nothing, or the unit of
            /// another request that took the same stamp at the same tick. A caller whose clock is behind the charge
            /// finds the stamp taken until then, because the unit that it replaced may be in that caller's window.
            ///
            /// # Concurrency
            /// One compare-and-swap.
            pub fn refund($($recv)+, now: u64, permit: &Permit) -> Option<u64> {
                let window = $me.window;
                let Some(stamp) = $me.stamps.$get(permit.slot as usize) else { return Some(0) };
                stamp.update(|word| {
                    if permit.stored == 0 || word != permit.tat || Self::lead(window, word, now) == 0 {
                        return (0, None);
                    }
                    (1, Some(word.wrapping_sub(window.window)))
                })
            }

            /// Empties the log.
            pub fn reset($($recv)+) {
                for stamp in $me.stamps.$iter() {
                    stamp.reset();
                }
            }
        }
    };
}

sliding_log! {
    /// Limits requests of one unit exactly: at most N units in every window, for any number of threads.
    ///
    /// It answers "at most 8 logins in any 10 minutes" without borders or approximation, for 8 bytes a unit: N
    /// [`Cell`]s hold a stamp each. 8 cells that are aligned to 64 bytes are one cache line, as a decision reads it; it
    /// pays up to some hundred cells. For weighted costs, for large N and for most limits use a
    /// [`Limit`](crate::Limit), 8 bytes a key.
    ///
    /// ```
    /// use tatcell::{Cell, Outcome, SlidingLog};
    /// static STAMPS: [Cell; 3] = [const { Cell::new() }; 3];
    /// let logins = SlidingLog::new(&STAMPS, 600)?; // 3 in any 600 seconds
    /// assert!(logins.check(1_000).passes() && logins.check(1_200).passes() && logins.check(1_599).passes());
    /// assert_eq!(logins.check(1_599), Outcome::NonConforming { retry_after: 1 }); // when the first one leaves
    /// assert!(logins.check(1_600).passes());
    /// assert_eq!(logins.peek(1_600).retry_after, 200);
    /// # Ok::<(), tatcell::LimitError>(())
    /// ```
    #[derive(Clone, Copy, Debug)]
    SlidingLog, &'a [Cell], get, iter, self, (&self)
}
sliding_log! {
    /// Decides like [`SlidingLog`], for one owner: plain loads and stores, no atomic instruction; never contended.
    ///
    /// ```
    /// use tatcell::{ExclusiveCell, ExclusiveSlidingLog};
    /// let mut stamps = [const { ExclusiveCell::new() }; 5];
    /// let mut log = ExclusiveSlidingLog::new(&mut stamps, 3_600)?; // 5 in any hour, in seconds
    /// assert_eq!([(); 6].map(|()| log.check(100).passes()), [true, true, true, true, true, false]);
    /// # Ok::<(), tatcell::LimitError>(())
    /// ```
    #[derive(Debug)]
    ExclusiveSlidingLog, &'a mut [ExclusiveCell], get_mut, iter_mut, self, (&mut self)
}

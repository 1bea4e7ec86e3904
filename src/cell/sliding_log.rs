//! Sliding logs: a stamp for each unit of a window, in memory of the caller's.
//!
//! ```text
//!  SlidingLog     [ stamp 0 ][ stamp 1 ]  ...  [ stamp N-1 ]   a Cell each: one line of 64 bytes holds 8
//!                       ^ looks from where a hash of now points, takes the first stamp that is free
//! ```
//!
//! Who may touch it: the stamps of a [`SlidingLog`] any number of threads, interrupts and processes; those of an
//! [`ExclusiveSlidingLog`] its one owner. The value with the reference is a view: it holds no state.
//!
//! Linearizable but for refunds. A request that passes takes effect at its one successful swap. A stamp that is taken
//! for a caller stays so for that caller's `now`, since whoever replaces it stamps a later time; so when the last of
//! N stamps has been found taken all are, and a refusal takes effect there. Beside a refund it may have met the unit
//! that came back and the one that went out instead: a refusal too many, never a pass.
//!
//! Progress: at most N stamps are looked at, and a swap is lost only to a rival's success, after which that stamp is
//! taken and the next one is looked at. Where clocks lie a window or more apart it may be free still, and is tried
//! again: at [`MAX_LOST`](crate::MAX_LOST) losses on one stamp the call answers `Contended`, with nothing charged.

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
            /// Makes a log of at most as many units as there are stamps in every window of `window` ticks.
            ///
            /// A view costs a few comparisons, so one can be made for a call. Memory of zeros is an empty log.
            ///
            /// # Errors
            /// [`LimitError::ZeroRate`] no stamps; [`TooManyUnits`](LimitError::TooManyUnits) 2^32 or more;
            /// [`ZeroPeriod`](LimitError::ZeroPeriod) a window of 0;
            /// [`HorizonTooLong`](LimitError::HorizonTooLong) a window of 2^63 - 2^61 ticks or more.
            pub const fn new(stamps: $stamps, window: u64) -> Result<Self, LimitError> {
                match Window::new(stamps.len(), window, None) {
                    Ok(window) => Ok($name { stamps, window }),
                    Err(e) => Err(e),
                }
            }

            /// Tolerates readings of the clock that are older than another by up to this many ticks, instead of 2^61.
            /// An older one finds the log empty.
            ///
            /// # Errors
            /// [`LimitError::HorizonTooLong`]: window and skew together are 2^63 ticks or more.
            pub const fn skew(self, ticks: u64) -> Result<Self, LimitError> {
                match Window::new(self.stamps.len(), self.window.window, Some(ticks)) {
                    Ok(window) => Ok($name { stamps: self.stamps, window }),
                    Err(e) => Err(e),
                }
            }

            /// Most units in a window: the number of stamps.
            pub const fn units(&self) -> u64 {
                self.stamps.len() as u64
            }

            /// The window, in ticks.
            pub const fn window(&self) -> u64 {
                self.window.window
            }

            #[inline(always)]
            const fn lead(window: Window, word: u64, now: u64) -> u64 {
                whole_lead(word, now, u64::MAX, window.both)
            }

            /// Looks at all stamps one after the other and takes the first that is free. None is contended.
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
            /// the `window` ticks up to now, units of clocks ahead included.
            ///
            /// # Concurrency
            /// One compare-and-swap when conforming, none when not. Cost: up to N loads, a line of memory for 8; N
            /// always when refused. No division. Beside rivals the time to come back may be too short: it is that of
            /// the stamps as they were read.
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

            /// Decides one request with the full answer: `remaining`, `next_unit` and `reset_after` are exact, as the
            /// stamps were read.
            ///
            /// # Concurrency
            /// As [`check`](Self::check); always N loads.
            #[inline]
            pub fn check_ex($($recv)+, now: u64) -> Decision {
                match $me.walk(now) {
                    Some(tally) => tally.decision($me.stamps.len(), now, false),
                    None => Decision::contended(1, $me.units()),
                }
            }

            /// Answers what a request would be told, without charging it. Reads only: N loads.
            pub fn peek(&self, now: u64) -> Decision {
                let mut tally = Tally::EMPTY;
                for stamp in self.stamps.iter() {
                    tally.count(Self::lead(self.window, stamp.word(), now));
                }
                tally.decision(self.stamps.len(), now, true)
            }

            /// Takes the unit of a permit out of the log, if it is in the window still. Returns how many units that is,
            /// 1 or 0; `None` when contended (nothing changed, ask again).
            ///
            /// Use a permit once, and none of before a reset: it gives back nothing a second time, or else the unit of
            /// another request of the same tick that took the same stamp. A caller whose clock is behind the charge
            /// finds the stamp taken until then, for what it had replaced may be in that caller's window.
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
    /// A shared sliding log: at most N units in every window, exactly, for requests of one unit; any number of threads.
    ///
    /// The answer to "at most 8 logins in any 10 minutes" that leaves no border and no approximation, for the price of
    /// 8 bytes a unit: N [`Cell`]s hold a stamp each. 8 cells that are aligned to 64 bytes are one line of memory, as a
    /// decision reads it; up to some hundred cells are worth it. For weighted costs, for large N and for most limits
    /// take a [`Limit`](crate::Limit), 8 bytes a key.
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
    /// As [`SlidingLog`] with one owner: plain loads and stores, no atomic instruction; never contended.
    #[derive(Debug)]
    ExclusiveSlidingLog, &'a mut [ExclusiveCell], get_mut, iter_mut, self, (&mut self)
}

//! Meters: one word each that marks packets green, yellow or red, shared by any number of threads or owned by one.
//!
//! ```text
//!  Meter            [    later : W    | difference : b ]   0 = never used: both buckets full
//!  ExclusiveMeter   as Meter, through `&mut`: plain load and store
//! ```
//!
//! The limit determines W, b and the meaning of the difference: `algorithms/meters.rs` draws them. One swap of one word
//! changes two debts and the time they are counted from. So each packet is marked at one instant, and every
//! interleaving gives the colours of some order of the packets, each with its own reading of the clock.
//!
//! Invariants: only a charge, a sweep or a reset writes; red, cost 0 and `Contended` store nothing. A word written
//! under one limit means nothing under another.
//!
//! Progress: lock-free; at most [`MAX_LOST`](crate::MAX_LOST) lost swaps, then `Contended` with nothing charged. It is
//! no queue: a packet that is neither green nor yellow now is red, and no packet waits.

use crate::algorithms::gcra::lead_of;
use crate::algorithms::meters::{self, State};
use crate::answer::{Colour, Marking};
use crate::limit::meter::params::{MeterParams, FLAG_COUNTS_COMMITTED, FLAG_COUNTS_SECOND};
use crate::limit::MeterLimit;
use crate::sync::{update64, AtomicU64, Ordering};

/// Returns the state of a word at a reading of the clock. Every word is valid.
#[inline(always)]
pub(crate) const fn state_of(p: &MeterParams, word: u64, now_q: u64) -> State {
    let b = p.diff_bits as u32;
    // One comparison with 0: without it a meter that was never used would owe whenever the clock is about to wrap.
    let lead = match word {
        0 => 0,
        _ => lead_of(word.wrapping_shr(b), now_q, u64::MAX.wrapping_shr(b), p.window_q),
    };
    State { lead, difference: word & 1u64.wrapping_shl(b).wrapping_sub(1) }
}

/// Returns the word of a state. 0 means never used, so a state that would give 0 is stored one q-unit later.
#[inline(always)]
pub(crate) const fn word_of(p: &MeterParams, state: State, now_q: u64) -> u64 {
    let b = p.diff_bits as u32;
    match now_q.wrapping_add(state.lead).wrapping_shl(b) | state.difference {
        0 => 1u64.wrapping_shl(b),
        word => word,
    }
}

/// Returns whether every reading of the clock from `now` - S on finds the word's meter full.
#[inline]
const fn is_sweepable(p: &MeterParams, word: u64, now_q: u64) -> bool {
    let b = p.diff_bits as u32;
    // H + 2S, which is below 2^W because H + S is below half of that.
    let window = p.window_q.wrapping_add(p.skew_q());
    let oldest = now_q.wrapping_sub(p.skew_q());
    word != 0 && lead_of(word.wrapping_shr(b), oldest, u64::MAX.wrapping_shr(b), window) == 0
}

/// The word after a sweep: never used, but for what a bucket has given that no rate fills.
#[inline]
const fn swept(p: &MeterParams, word: u64, now_q: u64) -> u64 {
    let difference = word & 1u64.wrapping_shl(p.diff_bits as u32).wrapping_sub(1);
    if p.flags & (FLAG_COUNTS_COMMITTED | FLAG_COUNTS_SECOND) == 0 || difference == 0 {
        return 0;
    }
    word_of(p, State { lead: 0, difference }, now_q)
}

/// A three-colour meter: 8 bytes, any number of threads.
///
/// ```
/// use tatcell::{Colour, Meter, MeterLimit, MeterSpec};
/// // RFC 2697: 46 MB/s, 2048 bytes committed, 4096 in excess; ticks are nanoseconds.
/// const LIMIT: MeterLimit = match MeterSpec::rfc2697(46_000_000, 2048, 4096, 1_000_000_000).build() {
///     Ok(limit) => limit,
///     Err(_) => panic!("this meter cannot be represented"),
/// };
/// static METER: Meter = Meter::new();
/// let mark = |now, bytes| METER.check(&LIMIT, now, bytes, Colour::Green).colour;
/// assert_eq!(mark(0, 1500), Colour::Green); // 548 bytes left of the committed burst
/// assert_eq!(mark(0, 1500), Colour::Yellow); // from the excess burst
/// assert_eq!(mark(0, 1500), Colour::Yellow);
/// assert_eq!(mark(0, 1500), Colour::Red); // 1096 bytes left of it
/// assert_eq!(mark(21_000, 1500), Colour::Green); // 21 us later: 966 bytes more in the committed burst
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct Meter {
    word: AtomicU64,
}

impl Meter {
    /// Makes a meter whose buckets are full. All-zero memory is the same.
    #[cfg(not(tatcell_loom))]
    pub const fn new() -> Meter {
        Meter { word: AtomicU64::new(0) }
    }

    /// Makes a meter whose buckets are full (not `const` under the model checker).
    #[cfg(tatcell_loom)]
    pub fn new() -> Meter {
        Meter { word: AtomicU64::new(0) }
    }

    /// Makes a meter from a saved word; any value is valid.
    #[cfg(not(tatcell_loom))]
    pub const fn from_word(word: u64) -> Meter {
        Meter { word: AtomicU64::new(word) }
    }

    /// Reads the state word, for saving or inspection.
    #[inline]
    pub fn word(&self) -> u64 {
        // ORDERING: Relaxed; single word, value only.
        self.word.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn update<A>(&self, step: impl FnMut(u64) -> (A, Option<u64>)) -> Option<A> {
        update64(&self.word, step)
    }

    /// Makes both buckets full. Use it also to change the limit, while nobody checks.
    #[inline]
    pub fn reset(&self) {
        // ORDERING: Relaxed; single word, value only.
        self.word.store(0, Ordering::Relaxed);
    }
}

impl Default for Meter {
    fn default() -> Meter {
        Meter::new()
    }
}

/// Marks packets like [`Meter`], for one owner: plain load and store, no atomic instruction.
///
/// ```
/// use tatcell::{Colour, ExclusiveMeter, MeterSpec};
/// let limit = MeterSpec::rfc2697(1_000, 1_500, 3_000, 1_000).build()?; // bytes; ticks are milliseconds
/// let mut meter = ExclusiveMeter::new();
/// let colours = [1_500; 4].map(|bytes| meter.check(&limit, 0, bytes, Colour::Green).colour);
/// assert_eq!(colours, [Colour::Green, Colour::Yellow, Colour::Yellow, Colour::Red]);
/// # Ok::<(), tatcell::MeterError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct ExclusiveMeter {
    word: u64,
}

impl ExclusiveMeter {
    /// Makes a meter whose buckets are full. All-zero memory is the same.
    pub const fn new() -> ExclusiveMeter {
        ExclusiveMeter { word: 0 }
    }

    /// Makes a meter from a saved word; any value is valid.
    pub const fn from_word(word: u64) -> ExclusiveMeter {
        ExclusiveMeter { word }
    }

    /// Reads the state word, for saving or inspection.
    #[inline]
    pub const fn word(&self) -> u64 {
        self.word
    }

    /// Runs one step; never `None`.
    #[inline(always)]
    fn update<A>(&mut self, mut step: impl FnMut(u64) -> (A, Option<u64>)) -> Option<A> {
        let (answer, next) = step(self.word);
        if let Some(next) = next {
            self.word = next;
        }
        Some(answer)
    }

    /// Makes both buckets full.
    #[inline]
    pub fn reset(&mut self) {
        self.word = 0;
    }
}

/// The operations, written once for both meters.
macro_rules! operations {
    ($meter:ident, $me:ident, ($($recv:tt)+)) => {
        impl $meter {
            /// Marks one packet and charges it unless it is red.
            ///
            /// `now` is the caller's clock in ticks, `cost` in units: the bytes of the packet. `pre` is the colour that
            /// it came with; [`Colour::Green`] for a colour-blind meter. Cost 0 peeks and never writes.
            ///
            /// # Concurrency
            /// One compare-and-swap for green and yellow, one load for red. A reading of the clock that is older than
            /// another by at most the skew can only make colours worse. Cost: O(1), no division.
            ///
            /// Source: RFC 2697, RFC 2698, RFC 4115; MEF 10.3 for the coupling flag.
            #[inline]
            pub fn check($($recv)+, limit: &MeterLimit, now: u64, cost: u64, pre: Colour) -> Marking {
                let p = &limit.0;
                let now_q = p.now_q(now);
                let marked = $me.update(|word| {
                    let (marking, next) = meters::step(p, state_of(p, word, now_q), cost, pre);
                    (marking, next.map(|state| word_of(p, state, now_q)))
                });
                match marked {
                    Some(marking) => marking,
                    None => Marking::CONTENDED,
                }
            }

            /// Returns how a packet of this cost and colour would be marked, without charging it. Only reads.
            #[inline]
            pub fn peek(&self, limit: &MeterLimit, now: u64, cost: u64, pre: Colour) -> Marking {
                let p = &limit.0;
                meters::step(p, state_of(p, self.word(), p.now_q(now)), cost, pre).0
            }

            /// Clears a word that every reading of the clock within the skew finds full, and returns whether it did.
            ///
            /// For meters that may rest for a span: one sweep within each
            /// [`sweep_interval`](crate::MeterInfo::sweep_interval) after a charge prevents a false debt when the word
            /// wraps. Changes no colour.
            ///
            /// # Concurrency
            /// Together with any other call. One load; one compare-and-swap if there is something to clear.
            #[inline]
            pub fn sweep($($recv)+, limit: &MeterLimit, now: u64) -> bool {
                let p = &limit.0;
                let now_q = p.now_q(now);
                let swept = $me.update(|word| match is_sweepable(p, word, now_q) {
                    true => (true, Some(swept(p, word, now_q))),
                    false => (false, None),
                });
                // If newer words won, the meter is in use.
                swept.unwrap_or(false)
            }
        }
    };
}

operations!(Meter, self, (&self));
operations!(ExclusiveMeter, self, (&mut self));

#[cfg(all(test, not(tatcell_loom)))]
#[path = "meter_tests.rs"]
mod tests;

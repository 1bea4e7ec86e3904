//! A piece of a key's time axis on a node: where it lies, and what a request takes from it. Pure.
//!
//! ```text
//!   word      63        56 55                                  0
//!             [generation ][ low: ns since the node started    ]     wraps after 2^56 ns = 2.28 years
//!
//!   node's clock    sent - 1 us        now - hold   low                       hi
//!   ---------------------+----[ lapsed ]-----+-[####|#########################]------->
//!                        |<--- lead --->|          what is left of the piece
//! ```
//!
//! A request of cost c gets `[low', low' + c T)` with `low' = max(low, now - hold)`, if that ends within the piece:
//! parts older than the hold have lapsed.
//!
//! **Bound.** The store grants so that its TAT is at most M ahead of its clock, and `M + hold = B T`. Let request i
//! have a clock reading that corresponds to the store's time x, with x in [s, s + w]. (1) The intervals of all requests
//! of all nodes are disjoint: a grant starts at or above the TAT that it finds and ends at the TAT that it stores, and
//! a node hands out disjoint parts of a piece. (2) An interval starts at or above x - hold. For the node read its clock
//! before it sent the call, and the store ran the script later. A piece is placed by that reading, so it lies early by
//! the time of the way there, and lapses early, never late. (3) An interval ends at or below y + M <= x + M, where y is
//! the time of the grant. No reading from before a piece came takes of it, so a thread that stops between its clock and
//! its call gains nothing. So all intervals lie in [s - hold, s + w + M], and `units * T <= w + hold + M = w + B T`.
//! Delays, deaths, the number of nodes and the size of grants do not occur in that. What a store that lies and clocks
//! that err add to it is proved row by row in `sim/src/table.rs`, the table of docs/CLUSTER.md.
//!
//! **Units that are put back** lower `low`, and are given to other requests again. While a word has one generation, the
//! lengths that requests took are its way up less what lapsed, and its way up is at most the piece and what was put
//! back. The intervals of a window's requests overlap only by what was put back within the window. So that much is
//! added to the bound, whoever vouches for it.
//!
//! T in nanoseconds is rounded down, so a piece on a node is no longer than what was granted. Stretched to that length,
//! starts move up and the end stays within.
#![warn(clippy::arithmetic_side_effects)]

/// Bits of `low`.
const LOW_BITS: u32 = 56;

const LOW: u64 = (1 << LOW_BITS) - 1;

/// A piece is placed this much earlier, because the clock may be read a little after the call was timed.
pub(crate) const PLACE_EARLY_NS: u64 = 1_000;

/// The state of a line: the generation of the piece that it spends, and from where on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub generation: u8,
    pub low: u64,
}

impl Word {
    /// Returns the word in which nothing is left, whatever the piece.
    pub(crate) const fn spent(generation: u8) -> Word {
        Word { generation, low: LOW }
    }

    pub(crate) const fn unpack(word: u64) -> Word {
        Word { generation: (word >> LOW_BITS) as u8, low: word & LOW }
    }

    pub(crate) const fn pack(self) -> u64 {
        (self.generation as u64) << LOW_BITS | self.low & LOW
    }

    /// Takes `length` nanoseconds of a piece that ends at `hi`, not below `floor`; `None` if that much is not left.
    pub(crate) const fn take(self, hi: u64, floor: u64, length: u64) -> Option<Word> {
        let from = if self.low > floor { self.low } else { floor };
        match from.checked_add(length) {
            Some(end) if end <= hi && hi <= LOW => Some(Word { generation: self.generation, low: end }),
            _ => None,
        }
    }
}

impl Word {
    /// Puts up to `units` back into a piece that reaches from `lo`, or from where it has lapsed, to `hi`. Returns how
    /// many were put back; `None` if none was taken that is left.
    pub(crate) const fn put_back(
        self,
        (lo, hi): (u64, u64),
        units: u64,
        unit_ns: u64,
    ) -> Option<(Word, u64)> {
        // A word at which nothing is left of any piece lies beyond the end.
        if self.low > hi {
            return None;
        }
        let (Some(taken), true) = (self.low.checked_sub(lo), unit_ns > 0) else { return None };
        #[allow(clippy::arithmetic_side_effects)] // not 0
        let taken = taken / unit_ns;
        let back = if taken < units { taken } else { units };
        if back == 0 {
            return None;
        }
        // No overflow: no more than was taken.
        let low = self.low.saturating_sub(back.saturating_mul(unit_ns));
        Some((Word { generation: self.generation, low }, back))
    }
}

/// Where a granted piece lies, in nanoseconds of the node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub lo: u64,
    pub hi: u64,
}

impl Piece {
    /// Places `units` that start `lead_us` after the store's moment. Uses the clock reading from before the call was
    /// sent, never the one at which the reply came. Returns `None` if they lie beyond 56 bits.
    pub(crate) const fn place(sent: u64, lead_us: u64, units: u64, unit_ns: u64) -> Option<Piece> {
        let lo = sent.saturating_sub(PLACE_EARLY_NS).saturating_add(lead_us.saturating_mul(1_000));
        let hi = lo.saturating_add(units.saturating_mul(unit_ns));
        if hi < LOW {
            Some(Piece { lo, hi })
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_gives_its_units_once_and_then_none() {
        let piece = Piece::place(5_000, 3, 4, 10).expect("a piece");
        assert_eq!(piece, Piece { lo: 7_000, hi: 7_040 });
        let mut word = Word { generation: 7, low: piece.lo };
        for unit in 1..=4 {
            word = word.take(piece.hi, 0, 10).expect("a unit");
            assert_eq!(word, Word { generation: 7, low: 7_000 + unit * 10 });
            assert_eq!(Word::unpack(word.pack()), word);
        }
        assert_eq!(word.take(piece.hi, 0, 10), None);
    }

    #[test]
    fn what_is_older_than_the_hold_has_lapsed() {
        let word = Word { generation: 0, low: 100 };
        assert_eq!(word.take(200, 190, 10), Some(Word { generation: 0, low: 200 }));
        assert_eq!(word.take(200, 191, 10), None);
        assert_eq!(word.take(200, 0, 101), None);
    }

    #[test]
    fn what_is_put_back_was_taken_of_this_piece_and_has_not_lapsed() {
        let word = |low| Word { generation: 7, low };
        let back = |low, lo, units| word(low).put_back((lo, 200), units, 10).map(|(word, n)| (word.low, n));
        assert_eq!(back(150, 100, 2), Some((130, 2)));
        assert_eq!(back(150, 100, u64::MAX), Some((100, 5)), "no more than was taken");
        assert_eq!(back(155, 100, 9), Some((105, 5)), "whole units");
        assert_eq!(back(150, 135, 9), Some((140, 1)), "the rest has lapsed");
        assert_eq!(back(150, 150, 1), None);
        assert_eq!(back(150, 160, 1), None);
        assert_eq!(back(150, 100, 0), None);
        assert_eq!(word(150).put_back((100, 200), 1, 0), None);
        assert_eq!(Word::spent(7).put_back((0, 200), 1, 10), None);
        assert_eq!(word(201).put_back((100, 200), 1, 10), None);
    }

    #[test]
    fn nothing_is_left_of_a_spent_word_nor_beyond_56_bits() {
        assert_eq!(Word::spent(3).take(u64::MAX, 0, 1), None);
        assert_eq!(Word::spent(3).take(LOW, 0, 1), None);
        assert_eq!(Word { generation: 0, low: 5 }.take(u64::MAX, 0, 1), None);
        assert_eq!(Piece::place(LOW, 0, 1, 1_000), None);
        assert_eq!(Piece::place(0, u64::MAX, u64::MAX, u64::MAX), None);
    }
}

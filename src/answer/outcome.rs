//! The short answer: whether a request passes, or when to come back.

use super::verdict::Verdict;

/// Answers whether a request conforms to its limit, and if not, when the same request would.
///
/// Times are ticks of the caller's clock.
///
/// ```
/// use tatcell::{limit, Cell, Limit, Outcome};
/// static LIMIT: Limit = limit!(10 per 1_000, burst 20); // ticks are milliseconds
/// static CELL: Cell = Cell::new();
/// match CELL.check(&LIMIT, 0, 21) {
///     Outcome::Conforming => panic!("21 units are more than the burst"),
///     Outcome::NonConforming { retry_after } => panic!("no wait helps, not {retry_after} ms"),
///     Outcome::Never => {}     // answer "too large"
///     Outcome::Contended => {} // other threads won: ask again
/// }
/// ```
#[must_use = "a limiter whose verdict is ignored limits nothing"]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request conforms and has been charged (or passes in shadow mode, uncharged).
    Conforming,
    /// The request does not conform; nothing was charged.
    NonConforming {
        /// Ticks after `now` at which the same cost conforms, if nothing else arrives: exact, not a tick early or late.
        retry_after: u64,
    },
    /// The cost is greater than the burst, so the request can never conform. Nothing was charged.
    Never,
    /// Other threads won every attempt at this word. Nothing was charged, and there is no verdict: ask again, or decide
    /// without one. This is rare, and impossible if no other thread writes the word.
    Contended,
}

impl Outcome {
    /// Returns whether the request may pass.
    #[inline]
    pub const fn passes(self) -> bool {
        matches!(self, Outcome::Conforming)
    }

    /// Returns the verdict without the retry time.
    #[inline]
    pub const fn verdict(self) -> Verdict {
        match self {
            Outcome::Conforming => Verdict::Conforming,
            Outcome::NonConforming { .. } => Verdict::NonConforming,
            Outcome::Never => Verdict::Never,
            Outcome::Contended => Verdict::Contended,
        }
    }

    /// Returns the ticks until the same cost conforms: 0 if it passed or if there is no verdict, `u64::MAX` if it never
    /// conforms. [`Decision::retry_after`](crate::Decision::retry_after) is the same number.
    #[inline]
    pub const fn retry_after(self) -> u64 {
        match self {
            Outcome::NonConforming { retry_after } => retry_after,
            Outcome::Never => u64::MAX,
            Outcome::Conforming | Outcome::Contended => 0,
        }
    }

    /// Makes the outcome of a verdict; the retry time counts only if the verdict is `NonConforming`.
    #[inline(always)]
    pub(crate) const fn new(verdict: Verdict, retry_after: u64) -> Outcome {
        match verdict {
            Verdict::Conforming => Outcome::Conforming,
            Verdict::NonConforming => Outcome::NonConforming { retry_after },
            Verdict::Never => Outcome::Never,
            Verdict::Contended => Outcome::Contended,
        }
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    /// An outcome is its verdict and its retry time, and nothing else.
    #[test]
    fn an_outcome_is_a_verdict_with_a_retry_time() {
        let all = [
            (Outcome::Conforming, Verdict::Conforming, 0),
            (Outcome::NonConforming { retry_after: 7 }, Verdict::NonConforming, 7),
            (Outcome::Never, Verdict::Never, u64::MAX),
            (Outcome::Contended, Verdict::Contended, 0),
        ];
        for (outcome, verdict, retry_after) in all {
            assert_eq!((outcome.verdict(), outcome.retry_after()), (verdict, retry_after));
            assert_eq!(Outcome::new(verdict, retry_after), outcome);
            assert_eq!(outcome.passes(), verdict.passes());
        }
    }
}

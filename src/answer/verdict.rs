//! The verdict of one request.

/// Says whether a request passes, and if not, why.
///
/// ```
/// use tatcell::{Cell, Limit, Verdict};
/// let (cell, limit) = (Cell::new(), Limit::new(1, 1_000, 5)?);
/// let verdicts = [5, 1, 6].map(|cost| cell.check_ex(&limit, 0, cost, 0).verdict);
/// assert_eq!(verdicts, [Verdict::Conforming, Verdict::NonConforming, Verdict::Never]);
/// assert_eq!(verdicts.map(Verdict::passes), [true, false, false]);
/// # Ok::<(), tatcell::LimitError>(())
/// ```
#[must_use = "a limiter whose verdict is ignored limits nothing"]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verdict {
    /// Passes: conforming, or let through by a shadow limit (see the flags of a decision).
    Conforming = 0,
    /// Does not pass now; the retry time says when it would.
    NonConforming = 1,
    /// Can never pass: the cost is greater than the burst.
    Never = 2,
    /// No verdict: other threads won every attempt. Nothing was charged.
    Contended = 3,
}

impl Verdict {
    /// Returns whether the request may pass.
    #[inline]
    pub const fn passes(self) -> bool {
        matches!(self, Verdict::Conforming)
    }

    /// The lowest of several verdicts decides: one that no wait helps, then a refusal, then none at all.
    pub(crate) const fn urgency(self) -> u8 {
        match self {
            Verdict::Never => 0,
            Verdict::NonConforming => 1,
            Verdict::Contended => 2,
            Verdict::Conforming => 3,
        }
    }
}

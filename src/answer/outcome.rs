//! The short answer: passes, or when to come back.

/// Answers whether a request conforms to its limit, and if not, when the same request would.
///
/// Times are ticks of the caller's clock.
#[must_use = "a limiter whose verdict is ignored limits nothing"]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request conforms and has been charged (or passes in shadow mode, uncharged).
    Conforming,
    /// The request does not conform; nothing was charged.
    NonConforming {
        /// Ticks after `now` at which the same cost conforms if nothing else arrives: exactly then, and not a
        /// tick before.
        retry_after: u64,
    },
    /// The cost is greater than the burst: the request can never conform. Nothing was charged.
    Never,
    /// Other threads won every attempt at this word; nothing was charged and no verdict was reached. Ask again,
    /// or treat it as the caller sees fit. Rare, and impossible without concurrent writers of the same word.
    Contended,
}

impl Outcome {
    /// Says whether the request may pass.
    #[inline]
    pub const fn passes(self) -> bool {
        matches!(self, Outcome::Conforming)
    }
}

//! The reasons why a limit cannot be made.

/// Says why a limit cannot be made.
///
/// ```
/// use tatcell::{Limit, LimitError, LimitSpec};
/// assert_eq!(Limit::new(1, 1_000, 0), Err(LimitError::ZeroBurst));
/// let error = LimitSpec::new(10, 1_000, 20).soft(21).build().unwrap_err();
/// assert_eq!(error.to_string(), "the soft threshold is above the burst: lower it");
/// ```
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// `units` is 0, so nothing would ever conform. Use `Limit::UNLIMITED` if there is no limit.
    ZeroRate,
    /// `period` is 0 ticks.
    ZeroPeriod,
    /// `burst` is 0, so no request could ever conform.
    ZeroBurst,
    /// The rate is too fast for the resolution (a unit takes less than one q-unit), or the burst times the emission
    /// interval does not fit: choose another resolution, a slower clock or a smaller burst.
    NotRepresentable,
    /// Burst, room, delay, debt, penalty and skew together do not fit the word: choose a coarser resolution, a slower
    /// clock, a smaller allowance or a wider word.
    HorizonTooLong,
    /// The resolution is outside -63..=63.
    BadResolution,
    /// The soft threshold is above the burst.
    BadSoft,
    /// `heal` needs a 64-bit cell with a span above a year: in shorter spans it would turn idle keys into debtors.
    BadHeal,
    /// [`SmallLimit`](crate::SmallLimit) and [`SmallLimit32`](crate::SmallLimit32) have no option except a delay.
    NotSmall,
    /// The algorithm does not have this option, or this word does not have the algorithm.
    BadAlgorithm,
    /// The phase of aligned windows is not below the window.
    BadPhase,
    /// The limit counts more units than the word has bits for next to the time: count in larger units (kilobytes
    /// instead of bytes), or use fewer tag bits.
    TooManyUnits,
    /// In a duty cycle, the longest transmission is not shorter than the time on, or the time on is longer than the
    /// window.
    BadDuty,
    /// A change would lose the window: the two limits' windows differ in length.
    OtherWindow,
    /// A change would lose units: the key has counted more than the new limit's word holds. Make the new limit with a
    /// larger [`max_debt`](crate::LimitSpec::max_debt): the word must hold those units too.
    LargerCount,
}

impl LimitError {
    /// What is wrong and what to change, also for a panic at compile time.
    #[doc(hidden)]
    pub const fn text(self) -> &'static str {
        match self {
            LimitError::ZeroRate => "the rate is 0: give at least 1 unit a period",
            LimitError::ZeroPeriod => "the period is 0: give at least 1 tick",
            LimitError::ZeroBurst => "the burst is 0: give at least 1 unit",
            LimitError::NotRepresentable => {
                "the rate is too fast or the burst too large: use larger units or another resolution"
            }
            LimitError::HorizonTooLong => {
                "burst and allowances are too long for the word: lower them, or use slower ticks"
            }
            LimitError::BadResolution => "the resolution must be -63 to 63",
            LimitError::BadSoft => "the soft threshold is above the burst: lower it",
            LimitError::BadHeal => "heal needs a 64-bit cell with a span of more than a year: leave it out",
            LimitError::NotSmall => "SmallLimit and SmallLimit32 have no option but max_delay: use a Limit",
            LimitError::BadAlgorithm => "the algorithm does not have this option, or this word the algorithm",
            LimitError::BadPhase => "the phase must be below the window",
            LimitError::TooManyUnits => {
                "the limit counts more units than the word has bits for: use larger units, or fewer tag bits"
            }
            LimitError::BadDuty => "a duty cycle needs longest below on, and on at most the window",
            LimitError::OtherWindow => {
                "the windows of the two limits differ in length: keep the length, or reset the key"
            }
            LimitError::LargerCount => {
                "the key has counted more than the new word holds: give the limit a larger max_debt"
            }
        }
    }
}

impl core::fmt::Display for LimitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for LimitError {}

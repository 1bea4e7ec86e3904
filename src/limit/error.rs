//! Why a limit cannot be made.

/// Says why a limit cannot be made.
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// `units` is 0: nothing would ever conform. For no limit use `Limit::UNLIMITED`.
    ZeroRate,
    /// `period` is 0 ticks.
    ZeroPeriod,
    /// `burst` is 0: no request could ever conform.
    ZeroBurst,
    /// The rate is too fast for the resolution (less than one q-unit a unit), or burst times emission interval
    /// does not fit: choose another resolution, a slower clock or a smaller burst.
    NotRepresentable,
    /// Burst, room, delay, debt, penalty and skew together do not fit the word: choose a coarser resolution, a
    /// slower clock, a smaller allowance or a wider word.
    HorizonTooLong,
    /// The resolution is outside -63..=63.
    BadResolution,
    /// The soft threshold is above the burst.
    BadSoft,
    /// `heal` is for 64-bit cells whose span exceeds a year: in shorter ones it would turn idle keys into debtors.
    BadHeal,
    /// [`SmallLimit`](crate::SmallLimit) and [`SmallLimit32`](crate::SmallLimit32) have no option but a delay.
    NotSmall,
    /// The algorithm does not have this option, or this word does not have the algorithm.
    BadAlgorithm,
    /// The phase of aligned windows is not below the window.
    BadPhase,
    /// The limit counts more units than the word has bits for beside the time: count in larger units (kilobytes instead
    /// of bytes), or use fewer tag bits.
    TooManyUnits,
    /// A duty cycle whose longest transmission is not shorter than the time on, or whose time on is longer than the
    /// window.
    BadDuty,
    /// A change would lose the window: the two limits' windows differ in length.
    OtherWindow,
    /// A change would lose units: the key has counted more than the new limit's word holds. Make the new limit with a
    /// larger [`max_debt`](crate::LimitSpec::max_debt), whose units the word must hold, too.
    LargerCount,
}

impl core::fmt::Display for LimitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            LimitError::ZeroRate => "rate is zero",
            LimitError::ZeroPeriod => "period is zero",
            LimitError::ZeroBurst => "burst is zero",
            LimitError::NotRepresentable => "rate or burst cannot be represented at this resolution",
            LimitError::HorizonTooLong => "burst and allowances are too long for the word",
            LimitError::BadResolution => "resolution is outside -63..=63",
            LimitError::BadSoft => "soft threshold is above the burst",
            LimitError::BadHeal => "heal needs a 64-bit cell with a span of more than a year",
            LimitError::NotSmall => "SmallLimit and SmallLimit32 have no option but max_delay",
            LimitError::BadAlgorithm => "the algorithm does not have this option, or this word the algorithm",
            LimitError::BadPhase => "phase is not below the window",
            LimitError::TooManyUnits => "the limit counts more units than the word has bits for",
            LimitError::BadDuty => {
                "longest transmission is not below the time on, or that is above the window"
            }
            LimitError::OtherWindow => "the window cannot be kept: the limits' windows differ in length",
            LimitError::LargerCount => "the count cannot be kept: it is larger than the new word holds",
        })
    }
}

impl core::error::Error for LimitError {}

//! The specification of a meter before it is validated, and the errors of the validation.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

/// Names the standard that a meter marks by.
///
/// ```
/// use tatcell::{MeterKind, MeterSpec};
/// let limit = MeterSpec::rfc4115(1_000, 100, 500, 50, 1_000).build()?; // milliseconds
/// assert_eq!((limit.info().kind, MeterKind::Rfc4115 as u16), (MeterKind::Rfc4115, 4115));
/// # Ok::<(), tatcell::MeterError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum MeterKind {
    /// Single rate: it fills the committed burst, and the overflow fills the excess burst (RFC 2697).
    Rfc2697 = 2697,
    /// Two rates: every packet that is not red pays the peak bucket, green ones also the committed bucket (RFC 2698).
    Rfc2698 = 2698,
    /// Two independent rates: green packets pay the committed bucket, yellow ones the excess bucket (RFC 4115).
    Rfc4115 = 4115,
}

/// Describes a three-colour meter, before it is validated.
///
/// Rates are units per second, bursts are units: bytes as in the RFCs, or packets if each has a cost of 1. `tick_hz` is
/// the frequency of the caller's clock.
///
/// ```
/// use tatcell::{MeterError, MeterSpec};
/// // 46 MB/s committed, 69 MB/s at most, ticks are nanoseconds.
/// let limit = MeterSpec::rfc2698(46_000_000, 2048, 69_000_000, 4096, 1_000_000_000).build()?;
/// assert!(limit.info().span > 8_000_000_000);
/// let slower = MeterSpec::rfc2698(46_000_000, 2048, 45_999_999, 4096, 1_000_000_000).build();
/// assert_eq!(slower, Err(MeterError::PeakBelowCommitted));
/// # Ok::<(), MeterError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterSpec {
    pub(crate) kind: MeterKind,
    pub(crate) coupled: bool,
    pub(crate) cir: u64,
    pub(crate) cbs: u64,
    /// PIR or EIR; 0 for RFC 2697.
    pub(crate) rate2: u64,
    /// PBS or EBS.
    pub(crate) burst2: u64,
    pub(crate) tick_hz: u64,
    pub(crate) span: Option<u64>,
    pub(crate) skew: Option<u64>,
}

impl MeterSpec {
    const fn new(kind: MeterKind, [cir, cbs, rate2, burst2, tick_hz]: [u64; 5]) -> MeterSpec {
        MeterSpec { kind, coupled: false, cir, cbs, rate2, burst2, tick_hz, span: None, skew: None }
    }

    /// Describes a single-rate meter: committed information rate, committed burst, excess burst.
    ///
    /// One of the two bursts may be 0. With a rate of 0 both are given once. Source: RFC 2697.
    pub const fn rfc2697(cir: u64, cbs: u64, ebs: u64, tick_hz: u64) -> MeterSpec {
        MeterSpec::new(MeterKind::Rfc2697, [cir, cbs, 0, ebs, tick_hz])
    }

    /// Describes a two-rate meter: committed information rate and burst, peak information rate and burst.
    ///
    /// The peak rate is at least the committed one, and no burst may be 0, except that of a committed rate of 0. With a
    /// rate of 0 a burst is given once. Source: RFC 2698.
    pub const fn rfc2698(cir: u64, cbs: u64, pir: u64, pbs: u64, tick_hz: u64) -> MeterSpec {
        MeterSpec::new(MeterKind::Rfc2698, [cir, cbs, pir, pbs, tick_hz])
    }

    /// Describes a two-rate meter with independent buckets: committed information rate and burst, excess information
    /// rate and burst.
    ///
    /// A rate may be 0: its burst, which may be 0 too, is then given once. Source: RFC 4115.
    pub const fn rfc4115(cir: u64, cbs: u64, eir: u64, ebs: u64, tick_hz: u64) -> MeterSpec {
        MeterSpec::new(MeterKind::Rfc4115, [cir, cbs, eir, ebs, tick_hz])
    }

    /// Lets overflow of the committed burst of an RFC 4115 meter fill the excess burst: the coupling flag CF = 1 of MEF
    /// 10.3.
    ///
    /// With an excess rate of 0 the meter is that of RFC 2697, and [`info`](crate::MeterLimit::info) says so.
    pub const fn coupled(mut self) -> Self {
        self.coupled = true;
        self
    }

    /// Asks for a word that may rest for at least `ticks`. The default is eight seconds, or less if no word has that.
    ///
    /// A longer span needs a coarser q-unit, and so a larger [rounding](crate::MeterInfo::committed_rounding_ppb).
    pub const fn span(mut self, ticks: u64) -> Self {
        self.span = Some(ticks);
        self
    }

    /// Tolerates a clock that steps back by up to `ticks`. After a longer step the meter reads as full.
    ///
    /// Default: a 64th of the word's range, and at least the horizon. A shorter skew makes false debts shorter and
    /// rarer. [`LimitSpec::skew`](crate::LimitSpec::skew) says what counts as a step.
    pub const fn skew(mut self, ticks: u64) -> Self {
        self.skew = Some(ticks);
        self
    }

    /// Makes the checks of the RFCs, which do not depend on a resolution.
    pub(crate) const fn validate(&self) -> Result<(), MeterError> {
        let MeterSpec { kind, cir, cbs, rate2, burst2, .. } = *self;
        if self.tick_hz == 0 {
            return Err(MeterError::ZeroFrequency);
        }
        match kind {
            MeterKind::Rfc2697 | MeterKind::Rfc2698 if self.coupled => Err(MeterError::BadCoupling),
            MeterKind::Rfc2697 if cbs == 0 && burst2 == 0 => Err(MeterError::ZeroBurst),
            MeterKind::Rfc2698 if rate2 < cir => Err(MeterError::PeakBelowCommitted),
            MeterKind::Rfc2698 if burst2 == 0 => Err(MeterError::ZeroBurst),
            MeterKind::Rfc4115 if cir == 0 && rate2 == 0 && cbs == 0 && burst2 == 0 => {
                Err(MeterError::ZeroRate)
            }
            // A rate that fills nothing is a mistake.
            MeterKind::Rfc2698 | MeterKind::Rfc4115 if cir != 0 && cbs == 0 || rate2 != 0 && burst2 == 0 => {
                Err(MeterError::ZeroBurst)
            }
            _ => Ok(()),
        }
    }
}

/// Says why a meter cannot be made.
///
/// ```
/// use tatcell::{MeterError, MeterSpec};
/// let error = MeterSpec::rfc2698(1_000, 100, 1_000, 0, 1_000).build().unwrap_err();
/// assert_eq!(error, MeterError::ZeroBurst);
/// assert_eq!(error.to_string(), "a burst that the meter needs is zero");
/// ```
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeterError {
    /// Both rates and both bursts are 0: every packet would be red.
    ZeroRate,
    /// A burst that the RFC needs is 0, or that of a rate: nothing would ever get that colour.
    ZeroBurst,
    /// The clock has 0 ticks per second.
    ZeroFrequency,
    /// The peak rate is below the committed rate.
    PeakBelowCommitted,
    /// Only the two independent buckets of RFC 4115 can be coupled.
    BadCoupling,
    /// No resolution fits both rates and bursts into one word: they are too fast for the clock, too large, or too far
    /// apart.
    NotRepresentable,
    /// The longest debt and the skew together exceed half of the word: choose a shorter skew or smaller bursts.
    HorizonTooLong,
    /// No resolution that can represent the rates gives the word the span that was asked for.
    SpanTooShort,
}

impl core::fmt::Display for MeterError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            MeterError::ZeroRate => "all rates and bursts of the meter are zero",
            MeterError::ZeroBurst => "a burst that the meter needs is zero",
            MeterError::ZeroFrequency => "the clock has no ticks",
            MeterError::PeakBelowCommitted => "the peak rate is below the committed rate",
            MeterError::BadCoupling => "only the buckets of RFC 4115 can be coupled",
            MeterError::NotRepresentable => "rates and bursts do not fit one word",
            MeterError::HorizonTooLong => "bursts and skew are too long for the word",
            MeterError::SpanTooShort => "the word cannot have the span that was asked for",
        })
    }
}

impl core::error::Error for MeterError {}

//! Limits and waits as fugit's durations.

use fugit::{Duration, TimerDurationU64};
use tatcell::{LimitError, Outcome, SmallLimit, SmallLimit32};

/// Units and period in ticks of `HZ`. The fraction of the duration goes into the ratio, so that nothing is rounded.
const fn ratio<const HZ: u64, const NOM: u64, const DENOM: u64>(
    units: u64,
    per: Duration<u64, NOM, DENOM>,
) -> Result<(u64, u64), LimitError> {
    let period = match per.as_ticks().checked_mul(NOM) {
        Some(period) => period.checked_mul(HZ),
        None => None,
    };
    match (units.checked_mul(DENOM), period) {
        (Some(units), Some(period)) => Ok((units, period)),
        _ => Err(LimitError::NotRepresentable),
    }
}

/// Makes a limit of `units` per duration for a clock of `HZ` ticks a second.
///
/// ```
/// use fugit::MillisDurationU64;
/// use tatcell::SmallLimit32;
/// const PER_SENDER: SmallLimit32 =
///     match tatcell_embedded::limit32::<32_768, 1, 1_000>(10, MillisDurationU64::from_ticks(500), 3) {
///         Ok(limit) => limit,
///         Err(_) => panic!("cannot be represented"),
///     };
/// assert_eq!(Ok(PER_SENDER), SmallLimit32::new(10, 16_384, 3));
/// ```
///
/// # Errors
/// As [`SmallLimit32::new`].
pub const fn limit32<const HZ: u64, const NOM: u64, const DENOM: u64>(
    units: u64,
    per: Duration<u64, NOM, DENOM>,
    burst: u64,
) -> Result<SmallLimit32, LimitError> {
    match ratio::<HZ, NOM, DENOM>(units, per) {
        Ok((units, period)) => SmallLimit32::new(units, period, burst),
        Err(e) => Err(e),
    }
}

/// As [`limit32`], for clocks of 64 bits.
///
/// # Errors
/// As [`SmallLimit::new`].
pub const fn limit<const HZ: u64, const NOM: u64, const DENOM: u64>(
    units: u64,
    per: Duration<u64, NOM, DENOM>,
    burst: u64,
) -> Result<SmallLimit, LimitError> {
    match ratio::<HZ, NOM, DENOM>(units, per) {
        Ok((units, period)) => SmallLimit::new(units, period, burst),
        Err(e) => Err(e),
    }
}

/// The time until the same request conforms, by a clock of `HZ` ticks a second: none where it has passed, and `None`
/// where no time is known (never, or contended).
pub const fn wait<const HZ: u64>(outcome: Outcome) -> Option<TimerDurationU64<HZ>> {
    match outcome {
        Outcome::Conforming => Some(TimerDurationU64::from_ticks(0)),
        Outcome::NonConforming { retry_after } => Some(TimerDurationU64::from_ticks(retry_after)),
        _ => None,
    }
}

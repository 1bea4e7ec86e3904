//! The numbers of a limit that decide a request, in q-units, for a program that decides by itself.
#![forbid(unsafe_code)]

use super::error::LimitError;
use super::params::{Params, FLAG_HEAL, FLAG_SHADOW, FLAG_STRICT};

/// Lists the numbers that decide a request under GCRA, in q-units, for a program that decides by itself (BPF, an FPGA,
/// a script). A request conforms iff `cost <= burst` and `lead + cost * emission_q <= burst_q`.
///
/// The lead is how far the key's TAT lies ahead of `now >> shift_right << shift_left` if that is in `1..=window_q`,
/// and 0 otherwise. The numbers keep their meaning in every later version.
///
/// ```
/// use tatcell::{limit, Limit};
/// static LIMIT: Limit = limit!(10 per 1_000, burst 20);
/// let numbers = LIMIT.numbers()?;
/// assert_eq!(numbers.burst_q, 20 * numbers.emission_q); // a request of 20 units conforms after idle
/// # Ok::<(), tatcell::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitNumbers {
    /// The bits of the word that hold the TAT.
    pub bits: u32,
    /// A tick is 2^shift_left q-units.
    pub shift_left: u32,
    /// A q-unit is 2^shift_right ticks; one of the two shifts is 0.
    pub shift_right: u32,
    /// The epoch, which permits carry.
    pub epoch: u32,
    /// T, the emission interval; 0 if unlimited, and then everything conforms.
    pub emission_q: u64,
    /// The debt of a whole burst.
    pub burst_q: u64,
    /// H.
    pub horizon_q: u64,
    /// H + S: a word is live iff 1 <= TAT - now <= this.
    pub window_q: u64,
    /// A request that passes above this lead is soft; `u64::MAX` = off.
    pub soft_q: u64,
    /// The most lead that a reservation may build beyond the burst.
    pub delay_q: u64,
    /// The most lead that a charge may build, burst included.
    pub debt_q: u64,
    /// The most lead that a denied request may build, burst included; 0 = denied requests cost nothing.
    pub penalty_q: u64,
    /// The largest cost that can ever conform, in units.
    pub burst: u64,
    /// The most elastic room of a call, in units.
    pub room: u64,
    /// Whether a word that is ahead by more than the window counts as a full debt of one burst.
    pub heal: bool,
    /// Whether a request that would be denied passes, and stores nothing.
    pub shadow: bool,
    /// Whether a permit drains from the moment of its charge on.
    pub strict_refunds: bool,
}

impl LimitNumbers {
    pub(super) const fn of(p: &Params) -> Result<LimitNumbers, LimitError> {
        if !p.is_gcra() {
            return Err(LimitError::BadAlgorithm);
        }
        Ok(LimitNumbers {
            bits: p.bits as u32,
            shift_left: p.shl as u32,
            shift_right: p.shr as u32,
            epoch: p.epoch,
            emission_q: p.t_q,
            burst_q: p.burst_q,
            horizon_q: p.horizon_q,
            window_q: p.window_q,
            soft_q: p.soft_q,
            delay_q: p.delay_q(),
            debt_q: p.debt_q,
            penalty_q: p.penalty_q(),
            burst: p.burst,
            room: p.room,
            heal: p.has(FLAG_HEAL),
            shadow: p.has(FLAG_SHADOW),
            strict_refunds: p.has(FLAG_STRICT),
        })
    }
}

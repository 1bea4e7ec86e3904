//! The numbers of a validated limit in ticks and units, and how far its rate is from the one asked for.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::algorithm::Algorithm;
use super::params::{Params, FLAG_SHADOW};
use super::window::window_units;

/// Reports the numbers of a validated limit.
///
/// ```
/// use tatcell::{limit, Limit};
/// static LIMIT: Limit = limit!(10 per 1_000, burst 20);
/// let info = LIMIT.info();
/// assert_eq!((info.units, info.period, info.burst, info.horizon), (10, 1_000, 20, 2_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitInfo {
    /// The rule by which the limit decides.
    pub algorithm: Algorithm,
    /// The bits of the word that count units next to the time; 0 for GCRA and decay.
    pub count_bits: u32,
    /// Units per period, as asked for; 0 if unlimited.
    pub units: u64,
    /// The period in ticks, as asked for; 0 if unlimited.
    pub period: u64,
    /// The most units that conform at one instant after idle; `u64::MAX` if unlimited.
    pub burst: u64,
    /// T, the emission interval, in q-units; 1 for limits that count units in windows, except quota-linear.
    pub emission_q: u64,
    /// One q-unit of T is 2^-resolution ticks.
    pub resolution: i32,
    /// H, the longest debt that a store can make, in ticks.
    pub horizon: u64,
    /// S, how far the clock may step back, in ticks.
    pub skew: u64,
    /// Ticks after which an untouched word may read as a debt again.
    pub span: u64,
    /// How much slower the rate is than asked for, or how much longer the window is, in billionths, rounded up. The
    /// rate is never faster, and the window never shorter.
    pub rate_error_ppb: u64,
    /// Most ticks by which the end of a window comes later than specified, never earlier: one less than the unit of
    /// time. 0 where that is a tick, and for GCRA.
    pub border_error: u64,
    /// Whether the limit is in shadow mode: it refuses nobody.
    pub shadow: bool,
}

impl LimitInfo {
    pub(super) const fn of(p: &Params) -> LimitInfo {
        let (emission_q, resolution) = p.resolution();
        LimitInfo {
            algorithm: p.algorithm(),
            count_bits: if p.is_gcra() { 0 } else { p.shl as u32 },
            units: p.units,
            period: p.period,
            burst: p.burst,
            emission_q,
            resolution,
            horizon: p.ticks_up(p.horizon_q, 0),
            skew: p.ticks_up(p.window_q.saturating_sub(p.horizon_q), 0),
            span: p.span(),
            rate_error_ppb: rate_error_ppb(p),
            border_error: if p.is_gcra() { 0 } else { 1u64.wrapping_shl(p.shr as u32).wrapping_sub(1) },
            shadow: p.has(FLAG_SHADOW),
        }
    }
}

/// Returns (T_q - T) / T in billionths, where T = period * 2^s / units before it was rounded up.
const fn rate_error_ppb(p: &Params) -> u64 {
    let (exact, made) = if p.is_gcra() {
        // period < 2^64 and shl <= 63, so this is below 2^127; T_q * units exceeds it by less than units << shr, which
        // is at most period (T >= 1).
        ((p.period as u128) << p.shl, (p.t_q as u128).wrapping_mul(p.units as u128) << p.shr)
    } else {
        (p.period as u128, (window_units(p.period, p.shr as u32) as u128) << p.shr)
    };
    let over = made.saturating_sub(exact).saturating_mul(1_000_000_000);
    let up = over.saturating_add(exact.saturating_sub(1));
    match up.checked_div(exact) {
        // This happens if a unit of time is far longer than the window.
        Some(ppb) if ppb > u64::MAX as u128 => u64::MAX,
        Some(ppb) => ppb as u64,
        None => 0,
    }
}

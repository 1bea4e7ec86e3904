//! The fixed-point form of the limits that count: windows of time, and the decaying level.
//!
//! ```text
//! u    2^z ticks       the unit of time; `now` enters as t = floor(now / u)
//! w_u  ceil(w / u)     the window in units of time (decay: the half-life)
//! a    aux bits        what the word holds next to the time; that has the other F = W - a bits
//! H    horizon         how far ahead of t the time may be stored; S, the skew, is added to it
//!
//!      [            time : F            ][    aux : a    ]     a word; one q-unit is u / 2^a
//! ```
//!
//! So a later time is a larger word, whatever it counts. Code that only asks how far a word lies ahead reads it as it
//! reads a TAT: `shl` is a, `shr` is z, and the clock has all aux bits set (`Params::clock_q`).
//!
//! Invariants, checked once here: `1 <= a + 3 <= W`, `H + S < 2^(F-1)`, `(H + S) * u < 2^63`, and every product that an
//! algorithm computes fits 62 bits.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::algorithm::{bits_of, Algorithm};
use super::error::LimitError;
use super::params::{Params, Width, FLAG_ALIGNED, FLAG_COUNTED, FLAG_SHADOW};
use super::spec::LimitSpec;
use crate::time::{ceil_div, max, ticks_to_q_up};

/// log2 of the ticks of a long span: a year of nanoseconds, 2^55 ns = 417 days.
const LONG_SPAN: u32 = 55;
/// The seconds of a year.
const YEAR: u64 = 31_557_600;
/// If the frequency is unknown, a period that is a multiple of this many ticks counts as seconds of nanoseconds.
const NANOS: u64 = 1_000_000_000;
/// No clock needs a span longer than this many ticks: 18 years of nanoseconds.
const LONGEST: u64 = 1 << 59;
/// Units of time that a half-life needs per unit of the limit: a client that never pauses gets at most 1 % too little.
const FINE_DECAY: u64 = 100;
/// Units of time that a resolution chosen here keeps in a half-life, if the clock has as many. The level's fixed point
/// cannot show 2^-27 of a half-life. A large limit keeps `units^2 * FINE_UNITS` instead: so `units` charges at one
/// instant, each rounded up, still leave room for the last one.
const FINE_HALF_LIFE: u64 = 1 << 27;
const FINE_UNITS: u64 = 1 << 10;
/// The largest limit of a decaying level: its fixed point has 32 fractional bits.
const MOST_DECAY: u64 = (1 << 31) - 1;

/// Returns the window in units of 2^z ticks, rounded up. A window of 0 ticks has been refused before.
pub(crate) const fn window_units(window: u64, z: u32) -> u64 {
    (window.wrapping_sub(1) >> z).wrapping_add(1)
}

/// Refuses options that the algorithm does not have.
const fn has_options(spec: &LimitSpec) -> Result<(), LimitError> {
    if spec.burst != spec.units || spec.max_delay != 0 || spec.penalty != 0 {
        return Err(LimitError::BadAlgorithm);
    }
    let windows = matches!(spec.algorithm, Algorithm::FixedWindow);
    if spec.phase.is_some() && !windows {
        return Err(LimitError::BadAlgorithm);
    }
    if let Some(phase) = spec.phase {
        if phase >= spec.period {
            return Err(LimitError::BadPhase);
        }
    }
    let rooms = !matches!(spec.algorithm, Algorithm::QuotaLinear);
    if !rooms && (spec.max_room != 0 || spec.max_debt != 0) {
        return Err(LimitError::BadAlgorithm);
    }
    if spec.heal {
        return Err(LimitError::BadHeal);
    }
    Ok(())
}

/// Returns the most units that a key may ever count.
pub(crate) const fn most(spec: &LimitSpec) -> u64 {
    spec.units.saturating_add(max(spec.max_room, spec.max_debt))
}

/// Validates a specification for a word of `width`. If `shift` is `None`, chooses the resolution.
pub(super) const fn build(spec: &LimitSpec, width: Width, shift: Option<i8>) -> Result<Params, LimitError> {
    if let Some(s) = shift {
        return at(spec, Width { spare: 1, ..width }, s as i32);
    }
    let finest = finest(spec);
    let goals = goals(spec.period, spec.period, 0, 2);
    let mut i = 0;
    while i < goals.len() {
        let goal = goals[i];
        let mut z = finest;
        while z <= 62 && (z == finest || window_units(spec.period, z) >= goal.units) {
            match at(spec, width, (z as i32).wrapping_neg()) {
                Ok(p) if p.span() >= goal.span => return Ok(p),
                Ok(_) | Err(LimitError::HorizonTooLong) => {}
                // A decaying level needs a finer unit.
                Err(LimitError::NotRepresentable) if z > finest => break,
                Err(e) => return Err(e),
            }
            z = z.wrapping_add(1);
        }
        i = i.wrapping_add(1);
    }
    Err(LimitError::HorizonTooLong)
}

/// The least that a unit of time must reach: a span of the word, in ticks, and units in the shortest window.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    pub span: u64,
    pub units: u64,
}

/// Returns the goals for a unit of time, best first: the finest unit that reaches the first possible goal is chosen.
/// The first goal is a span of 1024 of the longest windows and of a year, with at least 1024 units in the shortest
/// window; the second is 64 windows; the third is that the limits fit, with at least `coarsest` units. `tick_hz` tells
/// how long a year is. If it is 0, the year counts only if both periods are whole seconds of nanoseconds.
pub(crate) const fn goals(shortest: u64, longest: u64, tick_hz: u64, coarsest: u64) -> [Goal; 3] {
    let year = match tick_hz {
        0 if shortest % NANOS == 0 && longest % NANOS == 0 => NANOS.saturating_mul(YEAR),
        hz => hz.saturating_mul(YEAR),
    };
    let long = max(longest.saturating_mul(1 << 10), year);
    let some = longest.saturating_mul(64);
    [
        Goal { span: if long < LONGEST { long } else { LONGEST }, units: 1 << 10 },
        Goal { span: if some < LONGEST { some } else { LONGEST }, units: coarsest },
        Goal { span: 0, units: coarsest },
    ]
}

/// Returns z of the finest useful unit of time. That is a tick, except for a decaying level: its fixed point cannot
/// show finer units.
pub(crate) const fn finest(spec: &LimitSpec) -> u32 {
    let mut z = 0u32;
    if let Algorithm::Decay = spec.algorithm {
        let fine = max(FINE_HALF_LIFE, most(spec).saturating_mul(most(spec)).saturating_mul(FINE_UNITS));
        while z < 62 && spec.period >> z.wrapping_add(1) >= fine {
            z = z.wrapping_add(1);
        }
    }
    z
}

/// Validates a specification at one resolution.
pub(super) const fn at(spec: &LimitSpec, width: Width, shift: i32) -> Result<Params, LimitError> {
    within(spec, width, shift, Frame::of(spec))
}

/// The numbers that all limits of the same words share.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    /// The aux bits; at least as many as the limit needs.
    pub aux: u32,
    /// Aligned windows: the units of time by which the clocks of the callers may differ.
    pub guard: u32,
}

impl Frame {
    /// Returns what a limit needs alone.
    pub const fn of(spec: &LimitSpec) -> Frame {
        Frame { aux: spec.algorithm.aux_bits(most(spec)), guard: 0 }
    }
}

/// Validates a specification at one resolution, for words that other limits use too.
pub(crate) const fn within(
    spec: &LimitSpec,
    width: Width,
    shift: i32,
    frame: Frame,
) -> Result<Params, LimitError> {
    if let Err(e) = spec.validate() {
        return Err(e);
    }
    if let Err(e) = has_options(spec) {
        return Err(e);
    }
    // A time is a whole tick, so a finer resolution than the caller's clock is refused.
    if shift > 0 || shift < -62 {
        return Err(LimitError::BadResolution);
    }
    let z = shift.unsigned_abs();
    let (algorithm, most) = (spec.algorithm, most(spec));
    let aux = frame.aux;
    if aux.saturating_add(3) > width.bits || aux < algorithm.aux_bits(most) {
        return Err(LimitError::TooManyUnits);
    }
    let field = width.bits.wrapping_sub(aux);
    let window = window_units(spec.period, z);
    let guard = if spec.phase.is_some() { frame.guard } else { 0 };
    let horizon = algorithm.horizon(window, most).saturating_add(guard as u64);
    let skew = match spec.skew {
        Some(ticks) => ticks_to_q_up(ticks, 0, z),
        None => default_skew(width.bits, field, z, horizon),
    };
    let both = (horizon as u128).wrapping_add(skew as u128);
    // A horizon here is made of whole windows, twice as long as elsewhere, so one spare bit less is kept.
    let spare = if width.spare > 2 { 2 } else { width.spare };
    if both >= 1 << field.wrapping_sub(spare) || both << z >= 1 << 63 {
        return Err(LimitError::HorizonTooLong);
    }
    let (t_q, reciprocal) = match algorithm {
        Algorithm::SlidingCounter if bits_of(most).wrapping_add(bits_of(window)) > 62 => {
            return Err(LimitError::HorizonTooLong);
        }
        // T in parts of a unit of time, as many as the quota: quota * w is below 2^(W - 1).
        Algorithm::QuotaLinear => (window, ceil_div(1 << 64, spec.units as u128).wrapping_sub(1)),
        Algorithm::Decay if most > MOST_DECAY => return Err(LimitError::TooManyUnits),
        Algorithm::Decay if window < most.saturating_mul(FINE_DECAY) => {
            return Err(LimitError::NotRepresentable);
        }
        // 2^(62 + bits of the half-life) / half-life has 63 bits: too large by at most 2^-62 of itself.
        Algorithm::Decay => (1, ceil_div(1 << bits_of(window).wrapping_add(62), window as u128)),
        _ => (1, ceil_div(1 << 64, spec.period as u128).wrapping_sub(1)),
    };
    Ok(Params {
        fingerprint: width.fingerprint,
        t_q,
        burst_q: spec.units.wrapping_mul(t_q),
        plain: 0,
        window_q: (both as u64) << aux,
        horizon_q: horizon << aux,
        soft_q: if spec.soft == 0 { u64::MAX } else { spec.soft.wrapping_mul(t_q) },
        epoch: spec.epoch,
        shl: aux as u8,
        shr: z as u8,
        flags: FLAG_COUNTED
            | (if spec.shadow { FLAG_SHADOW } else { 0 })
            | (if spec.phase.is_some() { FLAG_ALIGNED } else { 0 }),
        bits: width.bits as u8,
        burst: spec.units,
        extra: [
            match (spec.phase, algorithm) {
                (Some(phase), _) => phase,
                (None, Algorithm::Decay) => window,
                (None, _) => 0,
            },
            reciprocal as u64,
        ],
        debt_q: spec.units.saturating_add(spec.max_debt).wrapping_mul(t_q),
        room: spec.max_room,
        units: spec.units,
        period: spec.period,
        algorithm: algorithm as u8,
        reserved: [0; 3],
        guard,
    })
}

/// Returns the default skew by the rule of `rate::default_skew`, in units of time.
pub(crate) const fn default_skew(bits: u32, field: u32, z: u32, horizon: u64) -> u64 {
    if bits == 64 && field.wrapping_add(z) >= LONG_SPAN {
        // An eighth of the word's span, or of the span of the caller's clock if that is shorter.
        let (eighth, whole) = (field.wrapping_sub(3), 61u32.saturating_sub(z));
        return max(horizon, 1 << if eighth < whole { eighth } else { whole });
    }
    let part = 1u64 << field.saturating_sub(6);
    let second = ticks_to_q_up(1 << 30, 0, z);
    max(horizon, if part < second { part } else { second })
}

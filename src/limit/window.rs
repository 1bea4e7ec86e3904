//! The fixed-point form of the limits that count: windows of time, and the decaying level.
//!
//! ```text
//! u    2^z ticks       the unit of time; `now` enters as t = floor(now / u)
//! w_u  ceil(w / u)     the window in units (decay: the half-life)
//! a    aux bits        what the word holds beside the time; F = W - a bits are left for that
//! H    horizon         how far ahead of t the time may be stored; S, the skew, comes on top
//!
//!      [            time : F            ][    aux : a    ]     a word; one q-unit is u / 2^a
//! ```
//!
//! So a later time is a larger word, whatever it counts, and all that knows words only by how far they lie ahead reads
//! these as it reads a TAT: `shl` is a, `shr` is z, and the clock enters with all aux bits set (`Params::clock_q`).
//!
//! Invariants, checked once here: `1 <= a + 3 <= W`, `H + S < 2^(F-1)`, `(H + S) * u < 2^63`, and what an algorithm
//! multiplies fits 62 bits.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::algorithm::{bits_of, Algorithm};
use super::error::LimitError;
use super::params::{Params, Width, FLAG_ALIGNED, FLAG_COUNTED, FLAG_SHADOW};
use super::spec::LimitSpec;
use crate::time::{ceil_div, max, ticks_to_q_up};

/// From this many bits of ticks on, a span is long: a year of nanoseconds, 2^55 = 417 days.
const LONG_SPAN: u32 = 55;
/// Seconds of a year.
const YEAR: u64 = 31_557_600;
/// A period that is a multiple of this many ticks is read as whole seconds of nanoseconds if no clock is named.
const NANOS: u64 = 1_000_000_000;
/// No clock needs a span longer than this many ticks: 18 years of nanoseconds.
const LONGEST: u64 = 1 << 59;
/// Units of time in a half-life for each unit of the limit: an always greedy client then gets at most 1 % too little.
const FINE_DECAY: u64 = 100;
/// Units of time in a half-life that a resolution chosen here keeps, where the clock has as many: 2^-27 of it is below
/// what the level's fixed point can tell, and with so many for each unit and each of them what is rounded up in `units`
/// charges at one instant does not keep the last of them out.
const FINE_HALF_LIFE: u64 = 1 << 27;
const FINE_UNITS: u64 = 1 << 10;
/// Largest limit of a decaying level: its fixed point has 32 bits behind the unit.
const MOST_DECAY: u64 = (1 << 31) - 1;

/// The window in units of 2^z ticks, rounded up. A window of 0 ticks is refused before.
pub(crate) const fn window_units(window: u64, z: u32) -> u64 {
    (window.wrapping_sub(1) >> z).wrapping_add(1)
}

/// Refuses what the algorithm does not have.
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

/// Most units that a key may ever count.
pub(crate) const fn most(spec: &LimitSpec) -> u64 {
    spec.units.saturating_add(max(spec.max_room, spec.max_debt))
}

/// Validates a specification for a word of `width`; `shift` None = chosen here.
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

/// What a unit of time has to give: the span of the word, in ticks, and the units in the shortest window.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    pub span: u64,
    pub units: u64,
}

/// The goals of a chosen unit, best first; the finest unit that reaches one is taken. First 1024 of the longest window
/// and a year with a border within 0.1 %, then 64 windows, then whatever fits in `coarsest` units a window. Without
/// `tick_hz` a year is that of nanoseconds if the periods look like them, else nothing is known of it.
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

/// The finest unit of time that is worth having, as its z: a tick, but for a decaying level, whose fixed point does
/// not tell finer ones apart.
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

/// What limits that share words have in common.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    /// Aux bits, at least those that the limit needs.
    pub aux: u32,
    /// Aligned windows: units of time by which the clocks of several keys' callers may differ.
    pub guard: u32,
}

impl Frame {
    /// What a limit needs alone.
    pub const fn of(spec: &LimitSpec) -> Frame {
        Frame { aux: spec.algorithm.aux_bits(most(spec)), guard: 0 }
    }
}

/// Validates a specification at one resolution, for words that other limits use, too.
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
    // Nothing is finer than the caller's clock: a time is a whole tick.
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
    // Horizons are whole windows here, twice what they are elsewhere: one bit less to spare.
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
        // 2^(62 + bits of the half-life) / half-life, in 63 bits: 2^-62 of itself too large at most.
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

/// As `rate::default_skew`, in units of time.
pub(crate) const fn default_skew(bits: u32, field: u32, z: u32, horizon: u64) -> u64 {
    if bits == 64 && field.wrapping_add(z) >= LONG_SPAN {
        // An eighth of the span, but of that of the caller's clock where that is shorter.
        let (eighth, whole) = (field.wrapping_sub(3), 61u32.saturating_sub(z));
        return max(horizon, 1 << if eighth < whole { eighth } else { whole });
    }
    let part = 1u64 << field.saturating_sub(6);
    let second = ticks_to_q_up(1 << 30, 0, z);
    max(horizon, if part < second { part } else { second })
}

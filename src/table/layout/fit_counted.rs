//! The geometry of a table whose words hold a time and a count: a fixed window, a sliding counter and so on.
//!
//! ```text
//!  [CLAIM:1][tag : t][ time : F                ][ count : a ]      F + a = W = 63 - t
//! ```
//!
//! All limits of the table share the unit of time u = 2^z ticks and the aux bits a: those of the limit that counts the
//! most. The time wraps after 2^F units, so a coarser unit lasts longer and ends windows later. The unit is the finest
//! one that reaches a goal of [`goals`]: one tick, and so exact borders, wherever a tick lasts long enough. If time and
//! count do not both fit, the unit becomes coarser, down to 2^5 units a window. Then the table is refused: use fewer
//! tag bits or larger units of the count.

use super::geometry::{table_width, Content, Geometry};
use super::options::TableOptions;
use super::override_word::OVERRIDE_BITS;
use super::policy::FullPolicy;
use super::word::Layout;
use crate::limit::params::Params;
use crate::limit::window::{default_skew, finest, goals, window_units, within, Frame};
use crate::limit::{LimitError, LimitSpec};
use crate::table::error::TableError;
use crate::time::{max, ticks_to_q_up};

/// A window with fewer units of time is refused, unless one unit is one tick.
const COARSEST: u64 = 1 << 5;

/// Checks that all limits have one algorithm, and returns the most bits that their counts need.
const fn frame_of(options: &TableOptions) -> Result<Frame, TableError> {
    let (fast, slow) = (&options.fastest, &options.slowest);
    if fast.algorithm as u8 != slow.algorithm as u8 {
        return Err(TableError::BadAlgorithm);
    }
    if options.overrides && !matches!(options.policy, FullPolicy::Deny) {
        return Err(TableError::BadPolicy);
    }
    let (a, b) = (Frame::of(fast).aux, Frame::of(slow).aux);
    let aux = if a > b { a } else { b };
    if options.overrides && (aux != OVERRIDE_BITS || slow.phase.is_some()) {
        return Err(TableError::BadAlgorithm);
    }
    if aux != 0 && matches!(options.policy, FullPolicy::Inherit) {
        return Err(TableError::BadPolicy);
    }
    Ok(Frame { aux, guard: 0 })
}

/// Returns D: by how many units of time callers' clocks may differ in an aligned table; 0 if windows are anchored.
///
/// Large enough that a reset's tombstone outlives the last unit of its window by the rest that is reusable.
const fn guard(options: &TableOptions, z: u32, aux: u32) -> Result<u32, TableError> {
    let (fast, slow) = (&options.fastest, &options.slowest);
    if fast.phase.is_none() && slow.phase.is_none() {
        return Ok(0);
    }
    let shortest = if fast.period < slow.period { fast.period } else { slow.period };
    let eighth = window_units(shortest, z) / 8;
    let units = match (options.guard, options.skew) {
        (Some(ticks), _) => ticks_to_q_up(ticks, 0, z),
        (None, Some(skew)) if ticks_to_q_up(skew, 0, z) < eighth => ticks_to_q_up(skew, 0, z),
        (None, _) => eighth,
    };
    // If the count has more bits than a word, nothing is reusable; `within` refuses it.
    let reusable = match 12u64.checked_shr(aux) {
        Some(units) => units,
        None => 0,
    };
    let units = max(units, reusable.wrapping_add(2));
    if units > u32::MAX as u64 {
        return Err(TableError::SpanTooShort);
    }
    Ok(units as u32)
}

/// Chooses the unit of time, and from it the geometry.
pub(in crate::table) const fn choose(options: &TableOptions, lines: u32) -> Result<Geometry, TableError> {
    let frame = match frame_of(options) {
        Ok(frame) => frame,
        Err(e) => return Err(e),
    };
    let (fast, slow) = (&options.fastest, &options.slowest);
    let shortest = if fast.period < slow.period { fast.period } else { slow.period };
    if let Some(shift) = options.shift {
        // Otherwise the table would be made and would then refuse its own limit.
        let coarser = shift < 0 && shift >= -62 && !options.overrides;
        if coarser && too_coarse(shortest, shift.unsigned_abs() as u32) {
            return Err(TableError::Limit(LimitError::NotRepresentable));
        }
        return at(options, lines, shift as i32, frame);
    }
    let longest = max(fast.period, slow.period);
    let (a, b) = (finest(fast), finest(slow));
    let finest = if a < b { a } else { b };
    let goals = goals(shortest, longest, options.tick_hz, COARSEST);
    // An override ends at its unit of time, so that is the finest one that fits.
    let mut i = if options.overrides { goals.len().wrapping_sub(1) } else { 0 };
    while i < goals.len() {
        let goal = goals[i];
        let mut z = finest;
        while z <= 62 && (z == finest || shortest >> z >= goal.units) {
            match at(options, lines, (z as i32).wrapping_neg(), frame) {
                Ok(g) if g.span() >= goal.span => return Ok(g),
                Ok(_) | Err(TableError::SpanTooShort) => {}
                // A decaying level needs a finer unit.
                Err(TableError::Limit(LimitError::NotRepresentable)) if z > finest => break,
                Err(e) => return Err(e),
            }
            z = z.wrapping_add(1);
        }
        i = i.wrapping_add(1);
    }
    Err(TableError::SpanTooShort)
}

/// Returns whether a window of `period` ticks has too few units of 2^z ticks.
const fn too_coarse(period: u64, z: u32) -> bool {
    window_units(period, z) < COARSEST
}

const fn at(options: &TableOptions, lines: u32, shift: i32, frame: Frame) -> Result<Geometry, TableError> {
    if shift > 0 || shift < -62 {
        return Err(TableError::Limit(LimitError::BadResolution));
    }
    let z = shift.unsigned_abs();
    let frame = match guard(options, z, frame.aux) {
        Ok(guard) => Frame { guard, ..frame },
        Err(e) => return Err(e),
    };
    let bits = 63 - options.tag_bits;
    let fast = match params(&options.fastest, bits, shift, frame, 0) {
        Ok(p) => p,
        Err(e) => return Err(e),
    };
    let slow = match params(&options.slowest, bits, shift, frame, 0) {
        Ok(p) => p,
        Err(e) => return Err(e),
    };
    let field = bits.wrapping_sub(frame.aux);
    let horizon = max(fast.horizon_q, slow.horizon_q) >> frame.aux;
    let skew = match options.skew {
        Some(ticks) => ticks_to_q_up(ticks, 0, z),
        None => default_skew(bits, field, z, horizon),
    };
    let window = horizon.saturating_add(skew);
    if window >> field.wrapping_sub(2) != 0 || (window as u128) << z >= 1 << 63 {
        return Err(TableError::SpanTooShort);
    }
    // One unit of time: an insert commits at most one unit later, and every later claim lies above.
    let unit = 1u64 << frame.aux;
    let lifetime = match options.lifetime {
        Some(ticks) if ticks_to_q_up(ticks, frame.aux, z) > max(unit, 2) => {
            return Err(TableError::BadLifetime);
        }
        Some(ticks) => max(ticks_to_q_up(ticks, frame.aux, z), 2),
        // An override may already end at the next unit.
        None if options.overrides => 2,
        None => max(unit, 2),
    };
    let layout = Layout::new(options.tag_bits, window << frame.aux, lifetime);
    let geometry = Geometry {
        layout,
        lines,
        shl: frame.aux as u8,
        shr: z as u8,
        policy: options.policy,
        hash: options.hash,
        horizon: horizon << frame.aux,
        content: if options.overrides {
            Content::Overrides
        } else {
            Content::Debts(options.fastest.algorithm)
        },
        guard: frame.guard,
        filled: [0; 1],
        exclusive: false,
        clock: options.clock as u8,
        seed_check: 0,
        generation: 1,
        tick_hz: options.tick_hz,
        fingerprint: 0,
    };
    Ok(Geometry { fingerprint: geometry.fingerprint_of(), ..geometry })
}

/// Makes the parameters of one limit in words of this shape. The table's skew replaces its own.
const fn params(
    spec: &LimitSpec,
    bits: u32,
    shift: i32,
    frame: Frame,
    fingerprint: u64,
) -> Result<Params, TableError> {
    let spec = LimitSpec { skew: Some(0), ..*spec };
    match within(&spec, table_width(bits, fingerprint), shift, frame) {
        Ok(p) => Ok(p),
        Err(LimitError::HorizonTooLong) => Err(TableError::SpanTooShort),
        Err(e) => Err(TableError::Limit(e)),
    }
}

/// Makes a limit for the words of this table.
pub(in crate::table) const fn limit(g: &Geometry, spec: &LimitSpec) -> Result<Params, TableError> {
    let (frame, shift) = (Frame { aux: g.shl as u32, guard: g.guard }, (g.shr as i32).wrapping_neg());
    match params(spec, g.layout.bits, shift, frame, g.fingerprint) {
        Err(TableError::SpanTooShort) | Err(TableError::Limit(LimitError::TooManyUnits)) => {
            Err(TableError::LimitTooFast)
        }
        // The options' limits determined window, largest count, unit of time, and what aligned windows need.
        Ok(p) if p.horizon_q > g.horizon => Err(TableError::LimitTooFast),
        Ok(_) if g.shr > 0 && too_coarse(spec.period, g.shr as u32) => Err(TableError::LimitTooFast),
        Ok(_) if spec.phase.is_some() && g.guard == 0 => Err(TableError::LimitTooFast),
        Ok(p) => Ok(Params { window_q: g.layout.window, ..p }),
        Err(e) => Err(e),
    }
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "fit_counted_tests.rs"]
mod tests;

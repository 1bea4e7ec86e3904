//! The geometry of a table whose words hold a time and a count: a fixed window, a sliding counter and so on.
//!
//! ```text
//!  [CLAIM:1][tag : t][ time : F                ][ count : a ]      F + a = W = 63 - t
//! ```
//!
//! All limits of the table share the unit of time u = 2^z ticks and the number of aux bits a: that of the limit that
//! counts the most. The unit gives the shortest window at least 2^10 units (0.1 %), or one unit a tick if it has fewer
//! ticks. A coarser unit makes the time wrap later, after 2^F units. If time and count do not both fit, the unit
//! becomes coarser, down to 2^5 units a window. Then the table is refused: use fewer tag bits or larger units of the
//! count.

use super::geometry::{table_width, Content, Geometry};
use super::options::TableOptions;
use super::override_word::OVERRIDE_BITS;
use super::policy::FullPolicy;
use super::word::Layout;
use crate::limit::params::Params;
use crate::limit::window::{default_skew, most, window_units, within, Frame};
use crate::limit::{Algorithm, LimitError, LimitSpec};
use crate::table::error::TableError;
use crate::time::{max, ticks_to_q_up};

/// The fewest units of time in the shortest window, if the resolution is chosen here.
const PRECISE: u64 = 1 << 10;
/// A window with fewer units is refused, unless one unit is one tick.
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
    // An override ends on a whole unit of time, so it uses the finest unit that fits.
    let least = if options.overrides { u64::MAX } else { max(PRECISE, within_decay(fast, slow)) };
    let mut z = 0u32;
    while z < 62 && shortest >> z.wrapping_add(1) >= least {
        z = z.wrapping_add(1);
    }
    loop {
        match at(options, lines, (z as i32).wrapping_neg(), frame) {
            Err(TableError::SpanTooShort) if z < 62 && shortest >> z.wrapping_add(1) >= COARSEST => {
                z = z.wrapping_add(1);
            }
            made => return made,
        }
    }
}

/// Returns whether a window of `period` ticks has too few units of 2^z ticks.
const fn too_coarse(period: u64, z: u32) -> bool {
    window_units(period, z) < COARSEST
}

/// Returns the units in a half-life that keep a greedy client's loss below 1 %, with a margin; 0 for windows.
const fn within_decay(fast: &LimitSpec, slow: &LimitSpec) -> u64 {
    if !matches!(fast.algorithm, Algorithm::Decay) {
        return 0;
    }
    max(most(fast), most(slow)).saturating_mul(128)
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
        filled: [0; 3],
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

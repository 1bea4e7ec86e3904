//! Chooses a table's geometry from its options, and makes the limits that fit it.
//!
//! This file does so for GCRA: it starts at one tick and goes to coarser or to finer units, until the fastest and the
//! slowest limit fit one word. `fit_counted` does so for words that hold a count.

use super::fit_counted;
use super::geometry::{table_width, Content, Geometry, HEADER_LINES};
use super::options::TableOptions;
use super::word::Layout;
use crate::keys::HashKind;
use crate::limit::params::{Params, Width};
use crate::limit::{rate, validate, Algorithm, LimitError, LimitSpec, TableLimit};
use crate::table::error::TableError;
use crate::time::ticks_to_q_up;

/// Chooses a geometry for `lines` lines (header included), or returns why there is none.
pub(crate) const fn choose(options: &TableOptions, lines: usize) -> Result<Geometry, TableError> {
    if options.tag_bits < 12 || options.tag_bits > 24 {
        return Err(TableError::BadTagBits);
    }
    if lines < HEADER_LINES + 2 {
        return Err(TableError::TooSmall);
    }
    let lines = (lines - HEADER_LINES) & !1;
    if lines as u64 > u32::MAX as u64 {
        return Err(TableError::TooLarge);
    }
    if !matches!(options.hash, HashKind::Caller) && options.seed.is_none() {
        return Err(TableError::MissingSeed);
    }
    if !matches!((options.fastest.algorithm, options.slowest.algorithm), (Algorithm::Gcra, Algorithm::Gcra)) {
        return fit_counted::choose(options, lines as u32);
    }
    let width = table_width(63 - options.tag_bits, 0);
    match options.shift {
        Some(s) => at(options, width, lines as u32, s as i32),
        None => {
            // Starts at one tick, which is exact. Too short a span needs a coarser unit, too short an interval a finer.
            let mut s = 0i32;
            let first = at(options, width, lines as u32, s);
            let step = match first {
                Err(TableError::SpanTooShort) => -1,
                Err(TableError::Limit(LimitError::NotRepresentable)) => 1,
                other => return other,
            };
            loop {
                s += step;
                if s < -62 || s > 62 {
                    return Err(TableError::SpanTooShort);
                }
                match at(options, width, lines as u32, s) {
                    Ok(g) => return Ok(g),
                    // No unit is fine enough for the fastest limit and coarse enough for the slowest.
                    Err(TableError::SpanTooShort) if step > 0 => return Err(TableError::SpanTooShort),
                    Err(TableError::Limit(LimitError::NotRepresentable)) if step < 0 => {
                        return Err(TableError::SpanTooShort)
                    }
                    Err(TableError::SpanTooShort) | Err(TableError::Limit(LimitError::NotRepresentable)) => {}
                    Err(e) => return Err(e),
                }
            }
        }
    }
}

const fn at(options: &TableOptions, width: Width, lines: u32, shift: i32) -> Result<Geometry, TableError> {
    let fast = match table_params(&options.fastest, width, shift) {
        Ok(p) => p,
        Err(e) => return Err(e),
    };
    let slow = match table_params(&options.slowest, width, shift) {
        Ok(p) => p,
        Err(e) => return Err(e),
    };
    let t_min = if fast.t_q < slow.t_q { fast.t_q } else { slow.t_q };
    if t_min < 1 << width.precision {
        return Err(TableError::Limit(LimitError::NotRepresentable));
    }
    let horizon = if fast.horizon_q > slow.horizon_q { fast.horizon_q } else { slow.horizon_q };
    let (shl, shr) = (fast.shl, fast.shr);
    let skew = match options.skew {
        Some(ticks) => ticks_to_q_up(ticks, shl as u32, shr as u32),
        None => rate::default_skew(width.bits, shl as u32, shr as u32, horizon),
    };
    let window = match horizon.checked_add(skew) {
        // In ticks H + S stays below 2^63, so that no lead overflows when converted back (attach checks the same).
        Some(w) if w <= 1 << (width.bits - width.spare) && (w as u128) << shr < 1 << 63 => w,
        _ => return Err(TableError::SpanTooShort),
    };
    let lifetime = match options.lifetime {
        Some(ticks) => ticks_to_q_up(ticks, shl as u32, shr as u32),
        None => {
            let tick = 1u64 << shl;
            if tick < t_min / 2 {
                tick
            } else {
                t_min / 2
            }
        }
    };
    // A claim must commit above itself: now + cost > now + G plus the few steps of dropped claims.
    if lifetime > t_min / 2 {
        return Err(TableError::BadLifetime);
    }
    let lifetime = if lifetime < 2 { 2 } else { lifetime };
    let layout = Layout::new(options.tag_bits, window, lifetime);
    let geometry = Geometry {
        layout,
        lines,
        shl,
        shr,
        policy: options.policy,
        hash: options.hash,
        horizon,
        content: Content::Debts(Algorithm::Gcra),
        guard: 0,
        seed_check: 0,
        filled: [0; 1],
        exclusive: false,
        clock: options.clock as u8,
        generation: 1,
        tick_hz: options.tick_hz,
        fingerprint: 0,
    };
    Ok(Geometry { fingerprint: geometry.fingerprint_of(), ..geometry })
}

/// Makes a limit in this table's q-unit, with its horizon inside H.
pub(crate) const fn limit(g: &Geometry, spec: &LimitSpec) -> Result<TableLimit, TableError> {
    if !matches!(g.content, Content::Debts(algorithm) if algorithm as u8 == spec.algorithm as u8) {
        return Err(TableError::BadAlgorithm);
    }
    if !g.is_gcra() {
        return match fit_counted::limit(g, spec) {
            Ok(p) => Ok(TableLimit(p)),
            Err(e) => Err(e),
        };
    }
    let width = table_width(g.layout.bits, g.fingerprint);
    let shift = g.shl as i32 - g.shr as i32;
    // By reference: a move would copy it onto the stack again.
    match &table_params(spec, width, shift) {
        Err(TableError::SpanTooShort) => Err(TableError::LimitTooFast),
        Err(e) => Err(*e),
        Ok(p) => {
            // The claim lifetime and the rate error were chosen for the fastest limit of the options.
            let coarse = p.t_q < 1 << width.precision || p.t_q / 2 < g.layout.lifetime;
            if p.horizon_q > g.horizon || coarse {
                return Err(TableError::LimitTooFast);
            }
            Ok(TableLimit(Params { window_q: g.layout.window, ..*p }))
        }
    }
}

/// Makes the parameters at one resolution. The table's skew applies, so the limit's own is not counted.
const fn table_params(spec: &LimitSpec, width: Width, shift: i32) -> Result<Params, TableError> {
    let spec = LimitSpec { skew: Some(0), ..*spec };
    match validate::at(&spec, width, shift) {
        Ok(p) => Ok(p),
        Err(LimitError::HorizonTooLong) => Err(TableError::SpanTooShort),
        // A burst * T_q beyond 62 bits is a span problem here: a coarser q-unit solves it.
        Err(LimitError::NotRepresentable) if shift > -62 && coarser_helps(&spec, shift) => {
            Err(TableError::SpanTooShort)
        }
        Err(e) => Err(TableError::Limit(e)),
    }
}

/// Returns whether the burst, and not the rate, fails to fit at this resolution.
const fn coarser_helps(spec: &LimitSpec, shift: i32) -> bool {
    let wide = Width { bits: 64, precision: 0, spare: 1, fingerprint: 0 };
    let bare = LimitSpec { burst: 1, max_room: 0, max_delay: 0, max_debt: 0, penalty: 0, soft: 0, ..*spec };
    validate::at(&bare, wide, shift).is_ok()
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "fit_tests.rs"]
mod tests;

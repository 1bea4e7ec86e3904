//! Quota-linear: a quota at any speed, then unit by unit at the quota's rate until the client pauses.
//!
//! ```text
//!  word   [             busy : F             ][mode : 1][          b          ]     b = bits of the quota
//!  bursty                end                      0       used
//!  smooth              ceil(y)                    1       y - 1, below the point    y in units of 2^-b
//!
//!  bursty:  |<--------- w --------->|            used < quota at end: forgotten, the next request starts a window
//!     ------+--x--x-------x---------+----->
//!         start                    end
//!  smooth:  |<--------- w --------->|<- T ->|    the quota was used up at the last x: the next unit passes at end,
//!     ------+--x-xxx----------------+x------+x-> and one every T from then on; the bucket is full again at y
//!         start                    end
//! ```
//!
//! T = ceil(w * 2^b / quota) in units of 2^-b. Bursty is a fixed window of `quota` units from the first request on. The
//! request that uses the quota up in a window that others started passes and makes it smooth. Smooth is a bucket
//! that fills by one unit every T, from `1 - (end - t) / T` at that moment. A line needs one number: Z, the time at
//! which it is empty, or y = Z + quota * T, at which it is full and the key is as good as absent.
//!
//! ```text
//! smooth conforms iff  y - t + cost * T <= quota * T        and then y += cost * T
//! at the switch        y = end + (quota - 1) * T
//! ```
//!
//! Nothing divides but the full answer, and a charge of more than fits. A request of the whole quota that finds no
//! window starts one and uses it up: only others' requests switch, so with a quota of 1 there is no smooth mode, and
//! the limit is one unit in w.
//!
//! No w holds more than 2 * quota units, and the first w from a window's start no more than quota. A busy time that is
//! stored never falls. Wraps after 2^F units of time. Not a penalty: what is refused changes nothing.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::state::{scaled, At, Change, State};
use crate::answer::Numbers;

/// What a request finds.
#[derive(Clone, Copy)]
enum Mode {
    /// The quota less what was used, until the end of the window, so many units of time ahead.
    Bursty { end: u64, used: u64 },
    /// The bucket is full so many 2^-b units of time ahead: y - t.
    Smooth { full: u64 },
}

/// b.
#[inline(always)]
const fn fraction_bits(at: At<'_>) -> u32 {
    (at.p.shl as u32).wrapping_sub(1)
}

/// 2^b - 1.
#[inline(always)]
const fn fraction(at: At<'_>) -> u64 {
    1u64.wrapping_shl(fraction_bits(at)).wrapping_sub(1)
}

/// So many 2^-b units of time in whole ones, rounded up. No overflow: a time ahead has a bit to spare above the mode's.
#[inline(always)]
const fn units_up(at: At<'_>, fine: u64) -> u64 {
    fine.wrapping_add(fraction(at)).wrapping_shr(fraction_bits(at))
}

impl Mode {
    #[inline(always)]
    const fn of(at: At<'_>, state: State) -> Mode {
        let (bits, fraction) = (fraction_bits(at), fraction(at));
        if state.ahead == 0 {
            Mode::Bursty { end: at.window(), used: 0 }
        } else if state.aux.wrapping_shr(bits) == 0 {
            Mode::Bursty { end: state.ahead, used: state.aux }
        } else {
            let place = state.ahead.wrapping_shl(bits) | (state.aux & fraction);
            Mode::Smooth { full: place.wrapping_sub(fraction) }
        }
    }

    #[inline(always)]
    const fn state(self, at: At<'_>) -> State {
        let (bits, fraction) = (fraction_bits(at), fraction(at));
        match self {
            Mode::Bursty { end, used } => State { ahead: end, aux: used },
            Mode::Smooth { full } => {
                let place = full.wrapping_add(fraction);
                State { ahead: place.wrapping_shr(bits), aux: fraction.wrapping_add(1) | (place & fraction) }
            }
        }
    }
}

/// See `any`.
pub(super) fn fit(at: At<'_>, state: State, cost: u64, most: u64) -> Result<State, u64> {
    let p = at.p;
    let next = match Mode::of(at, state) {
        Mode::Bursty { end, used } => {
            let used = used.saturating_add(cost);
            if used.saturating_mul(p.t_q) > most {
                return Err(end);
            }
            if used == p.burst && cost != 0 && state.ahead != 0 {
                let end = end.wrapping_shl(fraction_bits(at));
                Mode::Smooth { full: end.wrapping_add(p.burst_q.wrapping_sub(p.t_q)) }
            } else {
                Mode::Bursty { end, used }
            }
        }
        Mode::Smooth { full } => {
            let full = full.saturating_add(cost.saturating_mul(p.t_q));
            if full > most {
                return Err(units_up(at, full.wrapping_sub(most)));
            }
            Mode::Smooth { full }
        }
    };
    Ok(next.state(at))
}

/// Units that conform now. Divides when smooth.
const fn remaining(at: At<'_>, mode: Mode) -> u64 {
    let p = at.p;
    match mode {
        Mode::Bursty { used, .. } => p.burst.saturating_sub(used),
        Mode::Smooth { full } => match p.burst_q.saturating_sub(full).checked_div(p.t_q) {
            Some(units) => units,
            None => 0,
        },
    }
}

/// See `any`: there is no debt, so what does not fit is not added.
pub(super) fn add(at: At<'_>, state: State, cost: u64) -> (State, u64) {
    let most = at.p.burst_q;
    if let Ok(next) = fit(at, state, cost, most) {
        return (next, cost);
    }
    let added = remaining(at, Mode::of(at, state));
    match fit(at, state, added, most) {
        Ok(next) => (next, added),
        Err(_) => (state, 0),
    }
}

/// See `any`: only into the window that was charged, and while it is bursty.
pub(super) fn refund(at: At<'_>, state: State, charged: State, cost: u64) -> (State, u64) {
    match (Mode::of(at, state), Mode::of(at, charged)) {
        (Mode::Bursty { end, used }, Mode::Bursty { end: own, .. }) if end == own => {
            let back = cost.min(used);
            (Mode::Bursty { end, used: used.saturating_sub(back) }.state(at), back)
        }
        _ => (state, 0),
    }
}

/// See `any`.
pub(super) fn numbers(at: At<'_>, state: State) -> Numbers {
    let p = at.p;
    let mode = Mode::of(at, state);
    let remaining = remaining(at, mode);
    match mode {
        Mode::Bursty { used: 0, .. } => Numbers { remaining, next_unit: 0, reset_after: 0 },
        Mode::Bursty { end, .. } => {
            let end = at.ticks(end);
            Numbers { remaining, next_unit: end, reset_after: end }
        }
        Mode::Smooth { full } => {
            let above = full.wrapping_add(remaining.saturating_add(1).wrapping_mul(p.t_q));
            let next = units_up(at, above.saturating_sub(p.burst_q));
            Numbers { remaining, next_unit: at.ticks(next), reset_after: at.ticks(state.ahead) }
        }
    }
}

/// See `any`: bursty keeps its end and what was used; smooth its time, or how many units the bucket is short of full.
///
/// While the bucket has less than nothing, the window in which the quota was used up is not over, and its end is
/// known: another quota finds that window with those units, as if nobody had used them up. A bucket is never short of
/// more than its quota.
pub(super) fn change(from: At<'_>, to: At<'_>, state: State, how: Change) -> (State, bool) {
    let (old, new) = (from.p, to.p);
    let until = |fine| from.units_in(&to, units_up(from, fine));
    let next = match (Mode::of(from, state), how) {
        (Mode::Bursty { end, used }, _) => Mode::Bursty { end: from.units_in(&to, end), used },
        (smooth, Change::KeepTime) if old.shl == new.shl && old.shr == new.shr => smooth,
        (Mode::Smooth { full }, Change::KeepTime) => {
            Mode::Smooth { full: until(full).wrapping_shl(fraction_bits(to)) }
        }
        (Mode::Smooth { full }, _) => {
            let wait = full.saturating_sub(old.burst_q.wrapping_sub(old.t_q));
            let full = scaled(full, new.t_q, old.t_q).min(new.horizon_q);
            if old.burst == new.burst {
                Mode::Smooth { full }
            } else if wait > old.t_q {
                Mode::Bursty { end: until(wait), used: old.burst }
            } else {
                Mode::Smooth { full: full.min(new.burst_q) }
            }
        }
    };
    match next {
        Mode::Bursty { end, used } => State { ahead: end, aux: used }.cut(fraction_bits(to)),
        smooth => (smooth.state(to), false),
    }
}

/// See `any`: of two that are bursty the later end with the larger count, of two that are smooth the later one. Of one
/// each, a quota that is used up until both are over: how fast the bucket fills, a word does not tell.
pub(super) fn merge(bits: u32, a: State, b: State) -> State {
    if a.ahead == 0 {
        return b;
    }
    if b.ahead == 0 {
        return a;
    }
    let mode = 1u64.wrapping_shl(bits.wrapping_sub(1));
    let ahead = a.ahead.max(b.ahead);
    match (a.aux & mode != 0, b.aux & mode != 0) {
        (false, false) => State { ahead, aux: a.aux.max(b.aux) },
        (true, true) if (a.ahead, a.aux) > (b.ahead, b.aux) => a,
        (true, true) => b,
        _ => State { ahead, aux: mode.wrapping_sub(1) },
    }
}

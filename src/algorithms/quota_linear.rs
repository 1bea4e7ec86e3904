//! Quota-linear: a quota at any speed, then single units at the quota's rate until the client pauses.
//!
//! ```text
//!  word   [             busy : F             ][mode : 1][          b          ]     b = bits of the quota
//!  bursty                end                      0       used units
//!  smooth              ceil(y)                    1       y - 1, below the point    y in parts of a unit of time,
//!                                                                                   as many as the quota
//!
//!  bursty:  |<--------- w --------->|            used < quota at end: forgotten, the next request starts a window
//!     ------+--x--x-------x---------+----->
//!         start                    end
//!  smooth:  |<--------- w --------->|<- T ->|    the quota was used up at the last x: the next unit passes at end,
//!     ------+--x-xxx----------------+x------+x-> and one every T from then on; the bucket is full again at y
//!         start                    end
//! ```
//!
//! T = w / quota exactly: w parts. Bursty mode is a fixed window of `quota` units from the first request on. If a
//! request uses up the quota of a window that earlier requests started, it passes and switches to smooth mode. Smooth
//! mode is a bucket that gains one unit every T; at the switch it holds `1 - (end - t) / T`. One number describes that
//! line: the time Z at which it is empty, or y = Z + quota * T, at which it is full and the key is forgotten.
//!
//! ```text
//! smooth conforms iff  y - t + cost * T <= quota * T        and then y += cost * T
//! at the switch        y = end + (quota - 1) * T
//! ```
//!
//! The reciprocal of the quota turns parts into units of time, so only the full answer divides, and a charge of more
//! than fits. A request of the whole quota that finds no window starts one and uses it up, but does not switch: other
//! requests must have come before. So with a quota of 1 there is no smooth mode, and the limit is one unit in w.
//!
//! No w holds more than 2 * quota units, and the first w from a window's start no more than quota. A stored busy time
//! never falls. Words wrap after 2^F units of time. This is not a penalty: a refused request changes nothing.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::state::{scaled, At, Change, State};
use crate::answer::Numbers;

/// The state that a request finds.
#[derive(Clone, Copy)]
enum Mode {
    /// `used` units of the quota are used until the window's end, which lies `end` units of time ahead.
    Bursty { end: u64, used: u64 },
    /// The bucket is full `full` parts of a unit of time ahead: y - t.
    Smooth { full: u64 },
}

/// Returns the bit of the mode.
#[inline(always)]
const fn mode_bit(at: At<'_>) -> u64 {
    1u64.wrapping_shl((at.p.shl as u32).wrapping_sub(1))
}

/// Returns parts in whole units of time, rounded down, and the remaining parts.
#[inline(always)]
const fn whole(at: At<'_>, parts: u64) -> (u64, u64) {
    let (quota, reciprocal) = (at.p.burst, at.p.reciprocal());
    let units = ((parts as u128).wrapping_mul(reciprocal as u128) >> 64) as u64;
    // The reciprocal is at most one too small, so the product is short by less than one, and its floor by at most one.
    let rest = parts.wrapping_sub(units.wrapping_mul(quota));
    if rest >= quota {
        (units.wrapping_add(1), rest.wrapping_sub(quota))
    } else {
        (units, rest)
    }
}

/// Rounds parts up to whole units of time.
#[inline(always)]
const fn units_up(at: At<'_>, parts: u64) -> u64 {
    let (units, rest) = whole(at, parts);
    units.wrapping_add((rest != 0) as u64)
}

impl Mode {
    #[inline(always)]
    const fn of(at: At<'_>, state: State) -> Mode {
        let bit = mode_bit(at);
        if state.ahead == 0 {
            // A window ends at the first whole unit of time that is not before its exact end.
            Mode::Bursty { end: at.units_until(at.p.period), used: 0 }
        } else if state.aux & bit == 0 {
            Mode::Bursty { end: state.ahead, used: state.aux }
        } else {
            let units = state.ahead.wrapping_sub(1).wrapping_mul(at.p.burst);
            Mode::Smooth { full: units.wrapping_add(state.aux & bit.wrapping_sub(1)).wrapping_add(1) }
        }
    }

    #[inline(always)]
    const fn state(self, at: At<'_>) -> State {
        match self {
            Mode::Bursty { end, used } => State { ahead: end, aux: used },
            Mode::Smooth { full } => {
                let (units, rest) = whole(at, full.wrapping_sub(1));
                State { ahead: units.wrapping_add(1), aux: mode_bit(at) | rest }
            }
        }
    }
}

/// Adds `cost` units if they fit; see `counted`.
pub(super) fn fit(at: At<'_>, state: State, cost: u64, most: u64) -> Result<State, u64> {
    let p = at.p;
    let next = match Mode::of(at, state) {
        Mode::Bursty { end, used } => {
            let used = used.saturating_add(cost);
            if used.saturating_mul(p.t_q) > most {
                return Err(end);
            }
            if used == p.burst && cost != 0 && state.ahead != 0 {
                let end = end.wrapping_mul(p.burst);
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

/// Returns the units that conform now. Divides in smooth mode.
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

/// Adds the units that fit; see `counted`. This algorithm has no debt.
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

/// Takes units back, only from the window that was charged, while it is bursty; see `counted`.
pub(super) fn refund(at: At<'_>, state: State, charged: State, cost: u64) -> (State, u64) {
    match (Mode::of(at, state), Mode::of(at, charged)) {
        (Mode::Bursty { end, used }, Mode::Bursty { end: own, .. }) if end == own => {
            let back = cost.min(used);
            (Mode::Bursty { end, used: used.saturating_sub(back) }.state(at), back)
        }
        _ => (state, 0),
    }
}

/// Returns what is left; see `counted`.
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

/// Converts a state; see `counted`. Bursty mode keeps its end and what was used. Smooth mode keeps its time, or how
/// many units the bucket is short of full.
///
/// While the bucket holds less than nothing, the window in which the quota was used up is not over, and its end is
/// known. Under another quota that window goes on with those units, as if they had not used up the quota. A bucket is
/// never short of more than its quota.
pub(super) fn change(from: At<'_>, to: At<'_>, state: State, how: Change) -> (State, bool) {
    let (old, new) = (from.p, to.p);
    let next = match (Mode::of(from, state), how) {
        (Mode::Bursty { end, used }, _) => Mode::Bursty { end: from.units_in(&to, end), used },
        (Mode::Smooth { .. }, Change::KeepTime) => return (same_time(from, to, state), false),
        (Mode::Smooth { full }, _) => {
            let wait = full.saturating_sub(old.burst_q.wrapping_sub(old.t_q));
            let full = scaled(full, new.t_q, old.t_q);
            let late = from.units_behind(&to).wrapping_mul(new.burst);
            if old.burst == new.burst {
                Mode::Smooth { full: full.saturating_add(late) }
            } else if wait > old.t_q {
                Mode::Bursty { end: from.units_in(&to, units_up(from, wait)), used: old.burst }
            } else {
                Mode::Smooth { full: full.min(new.burst_q).saturating_add(late) }
            }
        }
    };
    match next {
        Mode::Bursty { end, used } => State { ahead: end, aux: used }.cut((new.shl as u32).wrapping_sub(1)),
        smooth => (smooth.state(to), false),
    }
}

/// Returns a smooth state that is full at the same time, rounded up to a unit of time if its parts have another length.
fn same_time(from: At<'_>, to: At<'_>, state: State) -> State {
    let (old, new) = (from.p, to.p);
    let rest = state.aux & mode_bit(from).wrapping_sub(1);
    if old.shr == new.shr && old.burst == new.burst && rest < mode_bit(to) {
        return State { aux: mode_bit(to) | rest, ..state };
    }
    let ahead = from.units_in(&to, state.ahead);
    if new.period == 0 {
        // Nobody knows the quota of the key, and so how many parts a unit of time has: one part of the next unit.
        return State { ahead: ahead.saturating_add(1), aux: mode_bit(to) };
    }
    Mode::Smooth { full: ahead.saturating_mul(new.burst) }.state(to)
}

/// Merges two states; see `counted`. Two bursty ones: the later end with the larger count. Two smooth ones: the later
/// one. One of each: a quota used up until both are over, because a word does not say how fast its bucket fills.
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

#[cfg(all(test, not(tatcell_loom)))]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use crate::limit::params::Params;
    use crate::limit::LimitSpec;

    /// If nobody names the limits, a bucket keeps its time to the part. In other units of time it takes up to one of
    /// each and a part more.
    #[test]
    fn a_bucket_of_a_quota_that_nobody_knows_is_full_no_earlier() {
        let at = |z: i8| LimitSpec::quota_linear(3, 1_000).resolution(-z).build().expect("a limit").0;
        for (z, w, bits) in (0..4).flat_map(|z| (0..4).flat_map(move |w| [(z, w, 0), (z, w, 2)])) {
            let (old, new) = (at(z), Params { shl: at(w).shl + bits, ..at(w) });
            let [from, to] = [old, new].map(|p| Params { period: 0, burst: u64::MAX, extra: [0; 2], ..p });
            for (now, full) in (64..72).flat_map(|now| (1..60).map(move |full| (now, full))) {
                let state = Mode::Smooth { full }.state(At { p: &old, now });
                let moved = change(At { p: &from, now }, At { p: &to, now }, state, Change::KeepTime);
                let Mode::Smooth { full: is } = Mode::of(At { p: &new, now }, moved.0) else {
                    panic!("{full} became bursty")
                };
                let end = |z, full| ((now >> z) * 3 + full) << z;
                let late = end(w, is).checked_sub(end(z, full));
                let most = if z == w { 0 } else { (3 << z) + (4 << w) };
                assert!(late.is_some_and(|late| late <= most), "{full} of 2^{z} to {is} of 2^{w} at {now}");
            }
        }
    }
}

//! The fixed window: at most N units in a window of time, counted from its start.
//!
//! ```text
//!  word   [            busy : F            ][  count : a  ]     a = bits of the largest count
//!
//!  anchored   busy is the end of the window; the first request after it starts the next
//!  aligned    busy is the end of the window that starts at phase + k * w, plus D
//!
//!          |<--------- w --------->|
//!  --------+--x--x--x--------------+---------x-x-x-x-- ...     x: a unit
//!          first                  end        the next window, anchored
//! ```
//!
//! A request conforms iff `count + cost <= units`. An anchored window ends at `ceil((now + w) / u)` if its first unit
//! passed at `now`; an aligned one at `ceil((phase + k * w) / u)`, the first such end above the floored clock. A
//! multiplication by the reciprocal gives `now` modulo w, so no step divides.
//!
//! D is `guard` units of time, by which the clocks of a table's callers may differ. A slot is kept for D longer than
//! its aligned window. Otherwise a clock ahead could reuse it, and give the key behind a second count for that window.
//!
//! Windows of one key never overlap, and each admits at most `units` in any order of calls: a call whose clock is
//! behind counts in the window that the word holds. Two neighbours together admit 2 * units within less than w. Words
//! wrap after 2^F units of time. This is not a sliding window: see `sliding_counter`.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::state::{At, Change, State};
use crate::answer::Numbers;
use crate::limit::params::FLAG_ALIGNED;

/// Returns the ticks from `now` to the end of its aligned window: 1..=w.
#[inline(always)]
const fn until_end(at: At<'_>) -> u64 {
    let p = at.p;
    // Words count floored clocks, so the floored clock decides here too.
    let t = at.now.wrapping_shr(p.shr as u32).wrapping_shl(p.shr as u32);
    // Ticks since the start of some earlier window: t + w - phase, less w if that could overflow.
    let since = if t >= p.phase() {
        t.wrapping_sub(p.phase())
    } else {
        t.wrapping_add(p.period.wrapping_sub(p.phase()))
    };
    let windows = ((since as u128).wrapping_mul(p.reciprocal() as u128) >> 64) as u64;
    // The reciprocal is at most one too small and `since` is below 2^64. So the product is short by less than one, and
    // its floor by at most one window.
    let rest = since.wrapping_sub(windows.wrapping_mul(p.period));
    let rest = if rest >= p.period { rest.wrapping_sub(p.period) } else { rest };
    p.period.wrapping_sub(rest).wrapping_sub(at.now.wrapping_sub(t))
}

/// Returns whether the state's window is over. A table keeps its slot for `guard` longer.
#[inline(always)]
const fn is_over(at: At<'_>, state: State) -> bool {
    state.ahead <= at.p.guard as u64
}

/// Returns the window that a request counts in.
#[inline(always)]
fn current(at: At<'_>, state: State) -> State {
    let p = at.p;
    let aligned = p.has(FLAG_ALIGNED);
    let over = is_over(at, state);
    if !over && !aligned {
        return state;
    }
    let ends = if aligned { until_end(at) } else { p.period };
    let ahead = at.units_until(ends).wrapping_add(p.guard as u64);
    if over {
        State { ahead, aux: 0 }
    } else {
        // The limit's windows have changed, or the clock is behind: a window only gets longer.
        State { ahead: state.ahead.max(ahead), ..state }
    }
}

/// Adds `cost` units if they fit; see `counted`.
pub(super) fn fit(at: At<'_>, state: State, cost: u64, most: u64) -> Result<State, u64> {
    let window = current(at, state);
    let count = window.aux.saturating_add(cost);
    if count <= most {
        Ok(State { aux: count, ..window })
    } else {
        // The wait ends with the window that the word holds; only a charge would store the longer one.
        Err(state.ahead.saturating_sub(at.p.guard as u64))
    }
}

/// Adds the units that the debt cap allows; see `counted`.
pub(super) fn add(at: At<'_>, state: State, cost: u64) -> (State, u64) {
    let window = current(at, state);
    let added = cost.min(at.p.debt_q.saturating_sub(window.aux));
    (State { aux: window.aux.saturating_add(added), ..window }, added)
}

/// Takes units back, only from the window that was charged; see `counted`.
pub(super) fn refund(at: At<'_>, state: State, charged: State, cost: u64) -> (State, u64) {
    if state.ahead != charged.ahead || is_over(at, state) {
        return (state, 0);
    }
    let back = cost.min(state.aux);
    (State { aux: state.aux.saturating_sub(back), ..state }, back)
}

/// Returns what is left; see `counted`.
pub(super) fn numbers(at: At<'_>, state: State) -> Numbers {
    let p = at.p;
    let count = if is_over(at, state) { 0 } else { state.aux };
    let end = if count == 0 { 0 } else { at.ticks(state.ahead.saturating_sub(p.guard as u64)) };
    Numbers { remaining: p.burst.saturating_sub(count), next_unit: end, reset_after: end }
}

/// Converts a state; see `counted`. It keeps its end and its count.
pub(super) fn change(from: At<'_>, to: At<'_>, state: State, _: Change) -> (State, bool) {
    State { ahead: from.units_in(&to, state.ahead), ..state }.cut(to.p.shl as u32)
}

/// Merges two states; see `counted`. The result is the later window with the larger count.
pub(super) fn merge(_: u32, a: State, b: State) -> State {
    State { ahead: a.ahead.max(b.ahead), aux: a.aux.max(b.aux) }
}

//! The fixed window: so many units in a window of time, counted from its start.
//!
//! ```text
//!  word   [            busy : F            ][  count : a  ]     a = bits of the largest count
//!
//!  anchored   busy is the end of the window; the first request after it starts the next
//!  aligned    busy is the end of the window that starts at phase + k * w, and D more
//!
//!          |<--------- w --------->|
//!  --------+--x--x--x--------------+---------x-x-x-x-- ...     x: a unit
//!          first                  end        the next window, anchored
//! ```
//!
//! A request conforms iff `count + cost <= units`. An anchored window ends at `ceil((now + w) / u)` where its first
//! unit passed at `now`; an aligned one at `ceil((phase + k * w) / u)` for the first such end above the floored clock.
//! `now` modulo w comes from a multiplication by the reciprocal, so no step divides.
//!
//! By D = `guard` units of time the clocks of a table's callers may differ: a slot is kept that much longer than its
//! aligned window, or a clock ahead could reuse it and give the key behind a second count for the same window.
//!
//! Windows of one key never overlap and each admits at most `units`, whatever the order of calls: a call whose clock is
//! behind counts in the window that the word holds. Two neighbours together admit 2 * units within less than w. Wraps
//! after 2^F units of time. Not a sliding window: see `sliding_counter`.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::state::{At, Change, State};
use crate::answer::Numbers;
use crate::limit::params::FLAG_ALIGNED;

/// Ticks from `now` to the end of its aligned window: 1..=w.
#[inline(always)]
const fn until_end(at: At<'_>) -> u64 {
    let p = at.p;
    // The floored clock decides, as it does for words.
    let t = at.now.wrapping_shr(p.shr as u32).wrapping_shl(p.shr as u32);
    // Ticks since some start before: t + w - phase, less w where that would overflow.
    let since = if t >= p.phase() {
        t.wrapping_sub(p.phase())
    } else {
        t.wrapping_add(p.period.wrapping_sub(p.phase()))
    };
    let windows = ((since as u128).wrapping_mul(p.reciprocal() as u128) >> 64) as u64;
    // The reciprocal is at most one too small and `since` below 2^64, so the product is short by less than one, and its
    // floor by at most one window.
    let rest = since.wrapping_sub(windows.wrapping_mul(p.period));
    let rest = if rest >= p.period { rest.wrapping_sub(p.period) } else { rest };
    p.period.wrapping_sub(rest).wrapping_sub(at.now.wrapping_sub(t))
}

/// Is its window over? In a table its slot is kept `guard` longer.
#[inline(always)]
const fn is_over(at: At<'_>, state: State) -> bool {
    state.ahead <= at.p.guard as u64
}

/// The window that a request counts in.
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
        // The limit's windows were changed, or the clock is behind: a window only gets longer.
        State { ahead: state.ahead.max(ahead), ..state }
    }
}

/// See `any`.
pub(super) fn fit(at: At<'_>, state: State, cost: u64, most: u64) -> Result<State, u64> {
    let window = current(at, state);
    let count = window.aux.saturating_add(cost);
    if count <= most {
        Ok(State { aux: count, ..window })
    } else {
        // Its own end, not the longer one that only a charge would store.
        Err(state.ahead.saturating_sub(at.p.guard as u64))
    }
}

/// See `any`.
pub(super) fn add(at: At<'_>, state: State, cost: u64) -> (State, u64) {
    let window = current(at, state);
    let added = cost.min(at.p.debt_q.saturating_sub(window.aux));
    (State { aux: window.aux.saturating_add(added), ..window }, added)
}

/// See `any`: only into the window that was charged.
pub(super) fn refund(at: At<'_>, state: State, charged: State, cost: u64) -> (State, u64) {
    if state.ahead != charged.ahead || is_over(at, state) {
        return (state, 0);
    }
    let back = cost.min(state.aux);
    (State { aux: state.aux.saturating_sub(back), ..state }, back)
}

/// See `any`.
pub(super) fn numbers(at: At<'_>, state: State) -> Numbers {
    let p = at.p;
    let count = if is_over(at, state) { 0 } else { state.aux };
    let end = if count == 0 { 0 } else { at.ticks(state.ahead.saturating_sub(p.guard as u64)) };
    Numbers { remaining: p.burst.saturating_sub(count), next_unit: end, reset_after: end }
}

/// See `any`: the same end and the same count.
pub(super) fn change(from: At<'_>, to: At<'_>, state: State, _: Change) -> (State, bool) {
    State { ahead: from.units_in(&to, state.ahead), ..state }.cut(to.p.shl as u32)
}

/// See `any`: the later window, with the larger count.
pub(super) fn merge(_: u32, a: State, b: State) -> State {
    State { ahead: a.ahead.max(b.ahead), aux: a.aux.max(b.aux) }
}

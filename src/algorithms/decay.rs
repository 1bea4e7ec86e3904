//! The decaying level: a count that halves in every half-life, as one time.
//!
//! ```text
//!  word   [                 X : W                  ]   X: the time at which the level falls to 2^-10 units; no count
//!
//!  log2 of the level
//!    limit +. . . . . . . . . . .
//!          |  |\      |\              slope -1/h: the level halves in h
//!          |  | \     | \  |\
//!          |  |  \    |  \ | \        a charge of n adds n to the level, and so moves X
//!          |  |   \   |   \|  \
//!     -10 -+--+----\--+--------\----->
//!             t1    .          X      time
//! ```
//!
//! An exponential decay is a line in log space, so one time describes it: `level = 2^(lead / h - 10)`, where the lead
//! is `X - t`. A request of n units conforms iff `level + n <= units + 2^-10`, and then
//! `X = t + h * (log2(level + n) + 10)`. A key whose lead is 0 is forgotten: its level is at most 2^-10, too little to
//! refuse anything. (If one unit were forgotten, single units would pass without end: each would leave a level of 1 and
//! be forgotten at once. If `level + n <= units` had to hold to the last bit, roundings would keep out the last of
//! `units` single units.)
//!
//! Numbers: time is in units u of 2^z ticks, the level in Q32, logarithms in Q40 (`exp2`). lead / h is a product with
//! the reciprocal of h, so no step divides. All results are rounded up, so the level is never below the exact one,
//! except for what is forgotten: at most 2^-10 units, and hardly more in sum, because each time needs a pause of ten
//! half-lives. The level exceeds the exact one by the rounding of X: at most a unit of time per charge, which is
//! `level * ln 2 / h`. The excess decays too, so a client that never pauses gets at most a share of `units / h` too
//! little. h has at least 100 units of time per unit of the limit (`limit::window`). So every charge moves X, because
//! `h * log2(1 + 1 / units)` is above 1, and only a refund lowers it.
//!
//! Words wrap after 2^W units; see `state`. This is not a rate estimator that weights each event (an "EWMA limiter"
//! such as Finch's), which bounds how close events may come; see docs/algorithms/decay.md.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::exp2::{exp2_up, log2_up};
use super::state::{scaled, At, Change, State};
use crate::answer::{Numbers, Permit};
use crate::limit::params::Params;

/// Log2 of the level that is forgotten, in Q40.
const FORGOTTEN: i64 = -10 << 40;
/// 2^-10 in Q32: a level that counts as nothing.
const NOTHING: u64 = 1 << 22;
/// More half-lives than a level of 31 bits can take.
const FAR: u64 = 64 << 40;

/// Returns lead / h in Q40, rounded up; at most `FAR`.
#[inline(always)]
fn half_lives(p: &Params, lead: u64) -> u64 {
    // The reciprocal has 62 more places than h has bits; its error adds less than 2^-16 of the last place.
    let places = p.half_life().leading_zeros();
    let exact = (lead as u128).wrapping_mul(p.reciprocal() as u128);
    let made = exact.wrapping_shr(86u32.wrapping_sub(places)).wrapping_add(1);
    if made < FAR as u128 {
        made as u64
    } else {
        FAR
    }
}

/// Returns the level of a key that lies `lead` units of time ahead, in Q32, rounded up.
#[inline]
pub(super) fn level(p: &Params, lead: u64) -> u64 {
    if lead == 0 {
        return 0;
    }
    exp2_up((half_lives(p, lead) as i64).wrapping_add(FORGOTTEN))
}

/// Returns how far ahead a key of this level lies, in units of time, rounded up; 0 if the key is forgotten.
#[inline]
fn lead(p: &Params, level: u64) -> u64 {
    let y = log2_up(level).wrapping_sub(FORGOTTEN);
    if y <= 0 {
        return 0;
    }
    // y is below 2^46 and h below 2^63.
    let exact = (y as u128).wrapping_mul(p.half_life() as u128);
    (exact.wrapping_add((1 << 40) - 1) >> 40) as u64
}

/// Returns units in Q32. A level has at most 31 bits before the point (`limit::window`).
#[inline(always)]
const fn q32(units: u64) -> u64 {
    units.wrapping_shl(32)
}

/// Returns the highest level that counts as `units` units.
#[inline(always)]
const fn up_to(units: u64) -> u64 {
    q32(units).saturating_add(NOTHING)
}

/// Returns the largest lead whose level is at most `most`, exactly, by bisection from the logarithm on. It takes at
/// most 64 steps each way. If h is below 2^28, as in a chosen resolution, it takes one or two. Only refusals and full
/// answers call it.
#[inline(never)]
fn largest_lead(p: &Params, most: u64) -> u64 {
    // Both roundings go up, so the level of `above` is above `most`.
    let mut above = lead(p, most);
    let mut step = (p.half_life() >> 32).wrapping_add(1);
    let mut within = above.saturating_sub(step);
    while level(p, within) > most {
        above = within;
        step = step.wrapping_shl(1);
        within = above.saturating_sub(step);
    }
    while above.wrapping_sub(within) > 1 {
        let middle = within.wrapping_add(above.wrapping_sub(within) >> 1);
        if level(p, middle) > most {
            above = middle;
        } else {
            within = middle;
        }
    }
    within
}

/// Adds `cost` units if they fit; see `counted`. Cost 0 tests for a level that charges up to `most` may leave behind.
pub(super) fn fit(at: At<'_>, state: State, cost: u64, most: u64) -> Result<State, u64> {
    let p = at.p;
    if cost == 0 {
        // `charged` adds a unit within a unit, and so it is there for every reading: a wait ends at a border.
        let reached = lead(p, up_to(most)).wrapping_add((p.shr != 0).into());
        return if state.ahead <= reached { Ok(state) } else { Err(state.ahead.wrapping_sub(reached)) };
    }
    let room = up_to(most.saturating_sub(cost));
    let now = level(p, state.ahead);
    if now <= room {
        Ok(charged(at, now.saturating_add(q32(cost))))
    } else {
        Err(state.ahead.saturating_sub(largest_lead(p, room)))
    }
}

/// Adds the units that the debt cap allows; see `counted`.
pub(super) fn add(at: At<'_>, state: State, cost: u64) -> (State, u64) {
    let p = at.p;
    let now = level(p, state.ahead);
    let added = cost.min(up_to(p.debt_q).saturating_sub(now) >> 32);
    if added == 0 {
        return (state, 0);
    }
    (charged(at, now.saturating_add(q32(added))), added)
}

/// The state of a level that a charge has raised. The level was read at the floored clock; a unit of time more keeps
/// what was charged after that from decaying from before it.
#[inline(always)]
fn charged(at: At<'_>, level: u64) -> State {
    State { ahead: lead(at.p, level).wrapping_add(at.units_until(0)), aux: 0 }
}

/// Returns what is left of the charge of a permit, in Q32, rounded down. If the clock is behind the charge, all of it
/// is left, though the level is higher there.
pub(super) fn left(p: &Params, permit: &Permit, now: u64) -> u64 {
    let z = p.shr as u32;
    let age = now.wrapping_shr(z).saturating_sub(permit.tick.wrapping_shr(z));
    if age == 0 {
        return q32(permit.stored);
    }
    // `exp2_up` may have added up to three of the last place.
    let part = exp2_up((half_lives(p, age) as i64).wrapping_neg()).saturating_sub(3);
    ((permit.stored as u128).wrapping_mul(part as u128)).min(u64::MAX as u128) as u64
}

/// Takes `cost` back, which `left` has made in Q32; see `counted`. A clock that is behind by many half-lives may see a
/// level beyond all numbers; that level stays as it is.
pub(super) fn refund(at: At<'_>, state: State, _: State, cost: u64) -> (State, u64) {
    let p = at.p;
    let now = level(p, state.ahead);
    if now == u64::MAX {
        return (state, 0);
    }
    let back = cost.min(now);
    let ahead = lead(p, now.saturating_sub(back)).min(state.ahead);
    (State { ahead, aux: 0 }, back >> 32)
}

/// Returns what is left; see `counted`.
pub(super) fn numbers(at: At<'_>, state: State) -> Numbers {
    let p = at.p;
    let now = level(p, state.ahead);
    if now == 0 {
        return Numbers { remaining: p.burst, next_unit: 0, reset_after: 0 };
    }
    let remaining = up_to(p.burst).saturating_sub(now) >> 32;
    let above = p.burst.saturating_sub(remaining).saturating_sub(1);
    let next = state.ahead.saturating_sub(largest_lead(p, up_to(above)));
    Numbers { remaining, next_unit: at.ticks(next), reset_after: at.ticks(state.ahead) }
}

/// Converts a state; see `counted`. It keeps the level, which decays by the new half-life from now on, or the time.
pub(super) fn change(from: At<'_>, to: At<'_>, state: State, how: Change) -> (State, bool) {
    let ahead = match how {
        Change::KeepTime => from.units_in(&to, state.ahead),
        _ => scaled(state.ahead, to.p.half_life(), from.p.half_life()).saturating_add(from.units_behind(&to)),
    };
    (State { ahead, aux: 0 }, false)
}

/// Merges two states; see `counted`. The later time is the higher level.
pub(super) fn merge(_: u32, a: State, b: State) -> State {
    State { ahead: a.ahead.max(b.ahead), aux: 0 }
}

#[cfg(all(test, not(tatcell_loom)))]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use crate::limit::LimitSpec;

    /// Half-lives of many lengths, in ticks.
    fn params() -> impl Iterator<Item = Params> {
        let lengths =
            (9..57).flat_map(|n| [-1i64, 0, 1, 12_345].map(|d| ((1i64 << n) + (d << n >> 15) + d) as u64));
        lengths.map(|h| LimitSpec::decay(1, h).resolution(0).skew(0).build().expect("a limit").0)
    }

    #[test]
    fn half_lives_are_at_least_the_quotient_and_less_than_two_places_above() {
        for p in params() {
            let h = p.half_life();
            for lead in [1, 2, h - 1, h, h + 1, 3 * h + 7, 11 * h + h / 3] {
                let (made, exact) = ((half_lives(&p, lead) as u128) * h as u128, (lead as u128) << 40);
                assert!(made >= exact && made < exact + 2 * h as u128, "{lead} / {h}");
            }
            assert!(half_lives(&p, u64::MAX >> 1) <= FAR);
        }
    }

    /// The tolerance is what is rounded up, at most 2^-11.
    #[test]
    fn a_level_is_one_unit_ten_half_lives_ahead_and_doubles_with_each() {
        for p in params().filter(|p| p.half_life() > 1 << 20) {
            let h = p.half_life();
            for (ahead, exact) in
                [(1, NOTHING << 1), (9, 1 << 31), (10, 1 << 32), (11, 2 << 32), (20, 1 << 42)]
            {
                let made = level(&p, ahead * h);
                assert!(made >= exact && made < exact + (exact >> 11) + 2, "{ahead} of {h}: {made}");
                let back = lead(&p, exact);
                assert!(back >= ahead * h && back <= ahead * h + (h >> 11), "{exact}: {back}, {h}");
            }
            assert_eq!((lead(&p, up_to(0) - 1), level(&p, 0)), (0, 0), "forgotten");
            assert!(lead(&p, up_to(0) + 100) > 0, "{h}");
        }
    }

    /// With a half-life of 2^39 units of time, the two places that round the logarithm of 1 up are one unit of time.
    #[test]
    fn a_lead_that_is_a_whole_number_is_not_rounded_up() {
        let p = LimitSpec::decay(1, 1 << 39).resolution(0).skew(0).build().expect("a limit").0;
        assert_eq!(lead(&p, 1 << 32), (10 << 39) + 1);
    }

    /// Each unit is rounded up, and still the last one of the limit passes.
    #[test]
    fn single_units_pass_up_to_the_last() {
        let p = LimitSpec::decay(7, 1 << 30).resolution(0).build().expect("a limit").0;
        let at = At { p: &p, now: 0 };
        let mut state = State::ABSENT;
        for unit in 0..7 {
            state = fit(at, state, 1, p.burst_q).unwrap_or_else(|wait| panic!("unit {unit} waits {wait}"));
        }
        assert!(fit(at, state, 1, p.burst_q).is_err());
    }

    #[test]
    fn the_largest_lead_of_a_level_is_just_that() {
        for p in params() {
            for most in [NOTHING, up_to(1), up_to(1) - 1, up_to(7), up_to(1 << 20)] {
                let lead = largest_lead(&p, most);
                assert!(level(&p, lead) <= most && level(&p, lead + 1) > most, "{most} of {}", p.half_life());
            }
        }
    }
}

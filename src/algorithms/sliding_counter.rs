//! The sliding window counter: two fixed windows; the previous one weighs by the share of it that is still in sight.
//!
//! ```text
//!  word   [             busy : F             ][ current : c ][ previous : c ]     c = bits of the largest count
//!
//!                 |<-------- w -------->|<-------- w -------->|
//!         --------+---------------------+----------+----------+------->
//!               start                 roll         |         busy = start + 2 * w
//!                 |<-- e -->|                      |
//!                           t           t + ...    at busy, the current window and all that it weighs are forgotten
//! ```
//!
//! All times are in units of time; w is the window, and t is the floored clock. A request conforms iff
//!
//! ```text
//! previous * (w - e) + (current + cost) * w  <=  units * w        e = max(0, t - start)
//! ```
//!
//! that is, as if the units of the previous window had come evenly. The first window starts with the first request. The
//! others follow without a gap, until the key has been idle for a whole window. From `roll` on, the current count is
//! the previous one, and a new one starts from 0. Answers roll at once; the word rolls with the next charge.
//!
//! Two multiplications decide a request. A refusal divides once, for the exact time to come back. A full answer divides
//! too, and so does a charge that its debt cap cuts.
//!
//! Windows of one key never overlap. One of two neighbours admits at most `units`; if it admitted anything, the other
//! admits fewer. So at most `2 * units - 1` pass within less than w. A clock that is behind its window weighs the whole
//! previous count (e = 0), so it admits no more than a clock at the start. Words wrap after 2^F units of time. The
//! counter is not exact, because "evenly" is a guess: the log of stamps is exact, and `fixed_window` does not guess.
//!
//! Invariant (`limit::window`): c and the bits of w are together at most 62, so no product exceeds 2^62.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::state::{scaled, At, Change, State};
use crate::answer::Numbers;

/// The two windows as a request sees them, rolled to its time.
#[derive(Clone, Copy)]
struct Windows {
    /// w.
    length: u64,
    /// busy - t: above w, and at most 2 * w unless the clock is behind.
    ahead: u64,
    current: u64,
    previous: u64,
}

impl Windows {
    #[inline(always)]
    const fn of(at: At<'_>, state: State) -> Windows {
        let length = at.window();
        if state.ahead == 0 {
            // The first window starts at a whole unit of time: the next one, so that it does not end early.
            let start = at.units_until(0);
            return Windows {
                length,
                ahead: length.wrapping_mul(2).wrapping_add(start),
                current: 0,
                previous: 0,
            };
        }
        let bits = count_bits(at);
        let current = state.aux.wrapping_shr(bits);
        if state.ahead <= length {
            return Windows {
                length,
                ahead: state.ahead.wrapping_add(length),
                current: 0,
                previous: current,
            };
        }
        let mask = 1u64.wrapping_shl(bits).wrapping_sub(1);
        Windows { length, ahead: state.ahead, current, previous: state.aux & mask }
    }

    /// Returns the units of time until the roll.
    #[inline(always)]
    const fn until_roll(&self) -> u64 {
        self.ahead.wrapping_sub(self.length)
    }

    /// Returns what the previous count weighs: its units times the part of its window that is in sight.
    #[inline(always)]
    const fn tail(&self) -> u64 {
        let seen = self.until_roll();
        self.previous.wrapping_mul(if seen < self.length { seen } else { self.length })
    }

    /// Returns whether at most `most` units are counted with `cost` more.
    #[inline(always)]
    const fn has_room(&self, cost: u64, most: u64) -> bool {
        let count = self.current.saturating_add(cost);
        match most.checked_sub(count) {
            Some(left) => self.tail() <= left.wrapping_mul(self.length),
            None => false,
        }
    }

    /// Returns the units of time until `cost` more units fit within `most`, if they do not fit now. Divides.
    const fn wait(&self, cost: u64, most: u64) -> u64 {
        let count = self.current.saturating_add(cost);
        // If `count` fits, the previous count has to shrink until the roll; else the current one, after the roll.
        let (end, left, count) = match most.checked_sub(count) {
            Some(left) => (self.until_roll(), left, self.previous),
            None => (self.ahead, most.saturating_sub(cost), self.current),
        };
        // It may weigh `left * w`; the rest of its window has to go out of sight first.
        match left.wrapping_mul(self.length).checked_div(count) {
            Some(seen) => end.saturating_sub(seen),
            None => 0,
        }
    }

    /// Returns how many units may still come before `most` are counted. Divides.
    const fn room(&self, most: u64) -> u64 {
        let part = self.length.saturating_sub(1);
        let weight = match self.tail().wrapping_add(part).checked_div(self.length) {
            Some(weight) => weight,
            None => 0,
        };
        most.saturating_sub(self.current).saturating_sub(weight)
    }

    /// Returns the state with `cost` more units.
    #[inline(always)]
    const fn count(&self, at: At<'_>, cost: u64) -> State {
        let current = self.current.wrapping_add(cost);
        State { ahead: self.ahead, aux: current.wrapping_shl(count_bits(at)) | self.previous }
    }
}

/// Returns c.
#[inline(always)]
const fn count_bits(at: At<'_>) -> u32 {
    (at.p.shl as u32).wrapping_shr(1)
}

/// Adds `cost` units if they fit; see `counted`.
pub(super) fn fit(at: At<'_>, state: State, cost: u64, most: u64) -> Result<State, u64> {
    let windows = Windows::of(at, state);
    if windows.has_room(cost, most) {
        Ok(windows.count(at, cost))
    } else {
        Err(windows.wait(cost, most))
    }
}

/// Adds the units that the debt cap allows; see `counted`.
pub(super) fn add(at: At<'_>, state: State, cost: u64) -> (State, u64) {
    let (windows, most) = (Windows::of(at, state), at.p.debt_q);
    let added = if windows.has_room(cost, most) { cost } else { windows.room(most) };
    (windows.count(at, added), added)
}

/// Takes units back, only from the window that was charged, while it is the current one; see `counted`. After the roll
/// its current count is 0, so nothing comes back.
pub(super) fn refund(at: At<'_>, state: State, charged: State, cost: u64) -> (State, u64) {
    let windows = Windows::of(at, state);
    if state.ahead != charged.ahead {
        return (state, 0);
    }
    let back = cost.min(windows.current);
    if back == 0 {
        return (state, 0);
    }
    let left = Windows { current: windows.current.saturating_sub(back), ..windows };
    (left.count(at, 0), back)
}

/// Returns what is left; see `counted`.
pub(super) fn numbers(at: At<'_>, state: State) -> Numbers {
    let (windows, most) = (Windows::of(at, state), at.p.burst);
    let remaining = windows.room(most);
    if remaining >= most {
        return Numbers { remaining: most, next_unit: 0, reset_after: 0 };
    }
    Numbers {
        remaining,
        next_unit: at.ticks(windows.wait(remaining.saturating_add(1), most)),
        reset_after: at.ticks(windows.wait(most, most)),
    }
}

/// Converts a state; see `counted`. It keeps both counts and the roll. In other units of time as much of the previous
/// window is in sight, or a little more. If nobody knows the window (its length is 0), the units of time are the same,
/// and the time stays.
pub(super) fn change(from: At<'_>, to: At<'_>, state: State, _: Change) -> (State, bool) {
    let (bits, least) = (count_bits(from), count_bits(to));
    let counts = |ahead, current, previous| {
        let of = |count| State { ahead, aux: count }.cut(least);
        let ((current, cut), (previous, also)) = (of(current), of(previous));
        (State { aux: current.aux.wrapping_shl(least) | previous.aux, ..current }, cut || also)
    };
    if from.p.period == 0 {
        let previous = state.aux & 1u64.wrapping_shl(bits).wrapping_sub(1);
        return counts(state.ahead, state.aux.wrapping_shr(bits), previous);
    }
    let (old, length) = (Windows::of(from, state), to.window());
    let seen = old.until_roll();
    let until_roll = from.units_in(&to, seen).max(scaled(seen, length, old.length));
    match (old.current, old.previous) {
        // Like a word that has not been charged since the roll.
        (0, previous) if until_roll <= length => counts(until_roll, previous, 0),
        (current, previous) => counts(until_roll.saturating_add(length), current, previous),
    }
}

/// Merges two states; see `counted`. The result is the later windows, each with the larger count.
pub(super) fn merge(bits: u32, a: State, b: State) -> State {
    let half = bits.wrapping_shr(1);
    let mask = 1u64.wrapping_shl(half).wrapping_sub(1);
    let current = a.aux.wrapping_shr(half).max(b.aux.wrapping_shr(half));
    let previous = (a.aux & mask).max(b.aux & mask);
    State { ahead: a.ahead.max(b.ahead), aux: current.wrapping_shl(half) | previous }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    /// Windows without a length or without units would divide by zero; they answer at once.
    #[test]
    fn windows_that_count_nothing_let_nobody_wait() {
        let empty = Windows { length: 10, ahead: 15, current: 0, previous: 0 };
        assert_eq!((empty.wait(1, 5), empty.room(5)), (0, 5));
        assert_eq!(Windows { length: 0, ahead: 0, ..empty }.room(5), 5);
    }
}

//! `tatcell_limit_init_*`: limits under the names of their algorithms.

use super::limit::{store, tatcell_limit_t};
use crate::capi::pointers::contract::args;
use crate::limit::{Limit, LimitSpec};

/// Makes a token bucket for 64-bit cells: tokens flow in, and a request takes as many as it costs. It starts full.
///
/// The same limit as tatcell_limit_init under its other name: remaining of a decision is the tokens left, burst less
/// remaining what lies in a leaky bucket as a meter. All three give equal answers.
///
/// @param limit    to initialise; not NULL.
/// @param tokens   per period; not 0.
/// @param period   ticks of the caller's clock; not 0.
/// @param capacity tokens that the bucket holds, at least 1.
/// @retval 0 done.
/// @retval others as tatcell_limit_init.
/// Thread: one writer, nobody reading. Cost: as tatcell_limit_init. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_token_bucket(
    limit: *mut tatcell_limit_t,
    tokens: u64,
    period: u64,
    capacity: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(LimitSpec::token_bucket(tokens, period, capacity).build().map(|l| l.0), limit)
}

/// Makes a leaky bucket as a meter for 64-bit cells: a request pours in what it costs, and units leak out. It starts
/// empty.
///
/// The same limit as tatcell_limit_init under its other name; see tatcell_limit_init_token_bucket. The leaky bucket as
/// a queue is tatcell_cell_reserve.
///
/// @param limit  to initialise; not NULL.
/// @param units  that leak out per period; not 0.
/// @param period ticks of the caller's clock; not 0.
/// @param depth  units that the bucket holds, at least 1.
/// @retval 0 done.
/// @retval others as tatcell_limit_init.
/// Thread: one writer, nobody reading. Cost: as tatcell_limit_init. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_leaky_bucket(
    limit: *mut tatcell_limit_t,
    units: u64,
    period: u64,
    depth: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(LimitSpec::leaky_bucket(units, period, depth).build().map(|l| l.0), limit)
}

/// Makes a fixed window for 64-bit cells: at most units in period ticks, which start with the first request after the
/// last window ended. With TATCELL_LIMIT_ALIGNED in a specification they start at fixed times instead.
///
/// Up to 2 * units may pass within a window's length: all of one window at its end, all of the next at its start. The
/// word holds the end of the window and a count: tatcell_limit_info tells span and resolution. Soft, room, debt and
/// shadow are options of it; a delay, a penalty and heal are not. It cannot be reserved from.
///
/// @param limit  to initialise; not NULL.
/// @param units  per window; not 0.
/// @param period length of a window in ticks of the caller's clock; not 0.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_RATE, TATCELL_ERR_PERIOD a value is 0.
/// @retval TATCELL_ERR_UNITS, TATCELL_ERR_HORIZON too many units, or too long for the word.
/// Thread: one writer, nobody reading. Cost: as tatcell_limit_init. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_window(
    limit: *mut tatcell_limit_t,
    units: u64,
    period: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(Limit::fixed_window(units, period).map(|l| l.0), limit)
}

/// Makes a sliding window counter for 64-bit cells: about units in any period ticks. It counts two windows, and the
/// previous one weighs as much as is still in sight of it; the first starts with the first request.
///
/// An approximation of a log of all stamps, in one word: up to 2 * units - 1 may pass within a window's length where
/// they come in bursts, and a request may be refused that the log would pass. Soft, room, debt and shadow are options
/// of it; a delay, a penalty and heal are not. It cannot be reserved from. A refund credits the current window alone.
/// A refusal and a full answer divide.
///
/// @param limit  to initialise; not NULL.
/// @param units  per window; not 0.
/// @param period length of a window in ticks of the caller's clock; not 0.
/// @retval 0 done.
/// @retval others as tatcell_limit_init_window.
/// Thread: one writer, nobody reading. Cost: as tatcell_limit_init. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_sliding(
    limit: *mut tatcell_limit_t,
    units: u64,
    period: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(Limit::sliding_counter(units, period).map(|l| l.0), limit)
}

/// Makes a quota-linear limit for 64-bit cells: a quota at any speed in period ticks, which start with the first
/// request. A key that uses it up gets, from the end of that window on, one unit after the other at quota / period,
/// until it has paused for long enough to have the whole quota again.
///
/// A greedy key so gets exactly the quota in its first window, and no more bursts; up to 2 * quota may pass within a
/// window's length by a key that stops just short of its quota. A request of the whole quota that starts a window does
/// not count as using it up, so with a quota of 1 there is one request a window. The rate is never faster than asked
/// for. Soft and shadow are options of it; room, debt, a delay, a penalty and heal are not. It cannot be reserved from.
/// A refund credits a window whose quota is not used up. A full answer divides.
///
/// @param limit  to initialise; not NULL.
/// @param quota  units per window; not 0.
/// @param period length of a window in ticks of the caller's clock; not 0.
/// @retval 0 done.
/// @retval others as tatcell_limit_init_window.
/// Thread: one writer, nobody reading. Cost: as tatcell_limit_init. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_quota_linear(
    limit: *mut tatcell_limit_t,
    quota: u64,
    period: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(Limit::quota_linear(quota, period).map(|l| l.0), limit)
}

/// Makes a decaying level for 64-bit cells: every request adds its cost to a level that halves in every half-life, and
/// conforms iff the level is then at most units.
///
/// After idle units pass at one instant; a client that never pauses then gets units * ln 2 / half_life, so for a rate r
/// and a burst b take units = b and half_life = 0.69 * b / r. It is full to the last unit when the level has fallen to
/// 2^-10 units, 10 half-lives after a single one: take 10 units or more. Never above the exact level (but for 2^-10
/// units). A client that never pauses gets too little by a share of at most units / half_life, the half-life in units
/// of time of the word: at least 100 for each unit, so below 1 %. Soft, room, debt and shadow are options of it; a
/// delay, a penalty and heal are not. It cannot be reserved from. A refund gives back what has not decayed, and credits
/// whole units, rounded down.
///
/// @param limit     to initialise; not NULL.
/// @param units     most units of the level, below 2^31; not 0.
/// @param half_life ticks of the caller's clock; not 0.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_RATE, TATCELL_ERR_PERIOD a value is 0.
/// @retval TATCELL_ERR_REPRESENT fewer than 100 ticks of half-life a unit: use a finer clock.
/// @retval TATCELL_ERR_UNITS, TATCELL_ERR_HORIZON too many units, or too long for the word.
/// Thread: one writer, nobody reading. Cost: as tatcell_limit_init. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_decay(
    limit: *mut tatcell_limit_t,
    units: u64,
    half_life: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(Limit::decay(units, half_life).map(|l| l.0), limit)
}

//! `tatcell_limit_init_*`: limits under the names of their algorithms.

use super::limit::{store, tatcell_limit_t};
use crate::algorithms::Change;
use crate::capi::codes::TATCELL_ERR_OPTION;
use crate::capi::pointers::contract::args;
use crate::limit::{Limit, LimitSpec};

/// how: a key keeps its debt in time when its limit changes.
pub const TATCELL_CHANGE_KEEP_TIME: u32 = 0;
/// how: a key keeps its debt in units when its limit changes.
pub const TATCELL_CHANGE_KEEP_UNITS: u32 = 1;
/// how: a key starts with its full burst when its limit changes.
pub const TATCELL_CHANGE_RESET: u32 = 2;

/// Converts C's number for a way to change a limit.
pub(in crate::capi) fn change(how: u32) -> Result<Change, i32> {
    match how {
        TATCELL_CHANGE_KEEP_TIME => Ok(Change::KeepTime),
        TATCELL_CHANGE_KEEP_UNITS => Ok(Change::KeepUnits),
        TATCELL_CHANGE_RESET => Ok(Change::Reset),
        _ => Err(TATCELL_ERR_OPTION),
    }
}

/// Makes a token bucket for 64-bit cells. Tokens flow in at the rate, and a request takes as many as it costs.
///
/// The bucket starts full. A request conforms iff the bucket holds at least cost tokens.
///
/// It is the limit of tatcell_limit_init under another name, as is tatcell_limit_init_leaky_bucket. All three give
/// equal answers. In a decision, remaining is the number of tokens left; burst - remaining is the level of a leaky
/// bucket.
///
/// @param limit    to initialise; not NULL.
/// @param tokens   per period; not 0.
/// @param period   ticks of the caller's clock; not 0.
/// @param capacity tokens that the bucket holds, at least 1.
/// @retval 0 done.
/// @retval others as tatcell_limit_init.
/// Thread: one writer, no reader. Cost: as tatcell_limit_init. Since 0.3.
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

/// Makes a leaky bucket as a meter for 64-bit cells. A request pours in what it costs, and units leak out at the
/// rate.
///
/// The bucket starts empty. A request conforms iff level + cost <= depth, so that the bucket does not overflow.
///
/// It is the limit of tatcell_limit_init under another name; see tatcell_limit_init_token_bucket. For a leaky
/// bucket as a queue, which delays requests, use tatcell_cell_reserve.
///
/// @param limit  to initialise; not NULL.
/// @param units  that leak out per period; not 0.
/// @param period ticks of the caller's clock; not 0.
/// @param depth  units that the bucket holds, at least 1.
/// @retval 0 done.
/// @retval others as tatcell_limit_init.
/// Thread: one writer, no reader. Cost: as tatcell_limit_init. Since 0.3.
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

/// Makes a fixed window for 64-bit cells: at most `units` in a window of `period` ticks.
///
/// A window starts with the first request after the previous window ended. A request conforms iff the units counted
/// in its window and its cost together are at most `units`. A refused cost conforms when the window has ended. With
/// TATCELL_LIMIT_ALIGNED in a specification, windows start at fixed times instead.
///
/// Up to 2 * units may pass within the length of a window: all of one window at its end, and all of the next one at
/// its start. The word holds the end of the window and a count; tatcell_limit_info reports span and resolution. A
/// fixed window can have soft, room, debt and shadow. It cannot have a delay, a penalty or heal, and cannot be
/// reserved from.
///
/// @param limit  to initialise; not NULL.
/// @param units  per window; not 0.
/// @param period length of a window in ticks of the caller's clock; not 0.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_RATE, TATCELL_ERR_PERIOD a value is 0.
/// @retval TATCELL_ERR_UNITS, TATCELL_ERR_HORIZON too many units or too long a window for the word.
/// Thread: one writer, no reader. Cost: as tatcell_limit_init. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_window(
    limit: *mut tatcell_limit_t,
    units: u64,
    period: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(Limit::fixed_window(units, period).map(|l| l.0), limit)
}

/// Makes a sliding window counter for 64-bit cells: about `units` in any `period` ticks.
///
/// The counter cuts time into windows of `period` ticks; the first window of a key starts with its first request.
/// It keeps the counts of the current and the previous window. The previous count is weighted by the part of that
/// window that still lies within the last `period` ticks. A request conforms iff weighted previous count + current
/// count + cost <= units.
///
/// The counter approximates a log of all stamps, in one word. Up to 2 * units - 1 may pass within the length of a
/// window if requests come in bursts. The counter may also refuse a request that the log would pass. It can have
/// soft, room, debt and shadow. It cannot have a delay, a penalty or heal, and cannot be reserved from. A refund
/// credits only the current window. A refusal and a full answer cost one division.
///
/// @param limit  to initialise; not NULL.
/// @param units  per window; not 0.
/// @param period length of a window in ticks of the caller's clock; not 0.
/// @retval 0 done.
/// @retval others as tatcell_limit_init_window.
/// Thread: one writer, no reader. Cost: as tatcell_limit_init. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_sliding(
    limit: *mut tatcell_limit_t,
    units: u64,
    period: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(Limit::sliding_counter(units, period).map(|l| l.0), limit)
}

/// Makes a quota-linear limit for 64-bit cells: a quota at any speed in a window, then a steady rate for a greedy
/// key.
///
/// The window of `period` ticks starts with the first request. Within it a request conforms iff used units + cost
/// <= quota. A key that uses up its quota gets one unit at a time from the end of the window on, at the rate of one
/// quota per period. Its requests then conform by the rule of tatcell_limit_init with burst = quota. Once the key
/// has paused long enough to have the whole quota again, its next request starts a new window.
///
/// A greedy key gets exactly the quota in its first window, and no burst after it. A key that stops just short of
/// its quota may pass up to 2 * quota within the length of a window. A request for the whole quota that starts a
/// window does not count as using it up, so a quota of 1 passes one request a window. The rate never exceeds one
/// quota per period. The limit can have soft and shadow. It cannot have room, debt, a delay, a penalty or heal, and
/// cannot be reserved from. A refund credits a window only if its quota is not used up. A full answer costs a
/// division.
///
/// @param limit  to initialise; not NULL.
/// @param quota  units per window; not 0.
/// @param period length of a window in ticks of the caller's clock; not 0.
/// @retval 0 done.
/// @retval others as tatcell_limit_init_window.
/// Thread: one writer, no reader. Cost: as tatcell_limit_init. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_quota_linear(
    limit: *mut tatcell_limit_t,
    quota: u64,
    period: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(Limit::quota_linear(quota, period).map(|l| l.0), limit)
}

/// Makes a decaying level for 64-bit cells: each request adds its cost to a level that halves in every half-life.
///
/// A request conforms iff level + cost <= units. A refused request does not raise the level.
///
/// After idle, `units` pass at one instant. A client that never pauses then gets units * ln 2 / half_life per tick.
/// For a rate r and a burst b, set units = b and half_life = 0.69 * b / r. The whole burst is available again when
/// the level has fallen to 2^-10 units, which takes 10 half-lives after one unit; use 10 units or more. No more
/// passes than by the exact level, except for 2^-10 units. A client that never pauses gets too little by a share of
/// at most units / half_life, with the half-life in the word's units of time. A unit has at least 100 of these, so
/// the share is below 1 %.
///
/// The limit can have soft, room, debt and shadow. It cannot have a delay, a penalty or heal, and cannot be
/// reserved from. A refund gives back the part that has not decayed, and credits whole units, rounded down.
///
/// @param limit     to initialise; not NULL.
/// @param units     most units of the level, below 2^31; not 0.
/// @param half_life ticks of the caller's clock; not 0.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_RATE, TATCELL_ERR_PERIOD a value is 0.
/// @retval TATCELL_ERR_REPRESENT the half-life has fewer than 100 ticks for each unit: use a finer clock.
/// @retval TATCELL_ERR_UNITS, TATCELL_ERR_HORIZON too many units or too long a half-life for the word.
/// Thread: one writer, no reader. Cost: as tatcell_limit_init. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_decay(
    limit: *mut tatcell_limit_t,
    units: u64,
    half_life: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(Limit::decay(units, half_life).map(|l| l.0), limit)
}

//! `tatcell_table_check_counted`: the verdict of a check and this thread's counters, without the full answer.

use core::ffi::c_void;

use super::check::{hash_of, refused};
use super::handle::{tatcell_table_t, Any, Handle};
use crate::answer::Verdict;
use crate::capi::codes::verdict_code;
use crate::capi::decision::finish;
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, Out};
use crate::capi::pointers::places::Span;
use crate::combine::link::either;
use crate::limit::TableLimit;
use crate::table::{Counters, Request};

/// Decides and counts. The short path finds a live slot of the key in its home line, so the request is tracked. A
/// limit with a soft threshold does not take it: another counter counts its soft passes.
#[inline(always)]
fn check(
    table: &Handle,
    limit: &TableLimit,
    (now, hash): (u64, u64),
    cost: u64,
    retry: Option<Out<'_, u64>>,
    counters: &mut Counters,
) -> i32 {
    let calm = limit.0.soft_q >= limit.0.burst_q;
    if let (Any::Shared(short), true) = (&table.table, calm) {
        if let Some(outcome) = short.check_tracked(limit, now, hash, cost) {
            counters.count_plain(u32::from(outcome.verdict() == Verdict::Conforming), 1);
            return finish(outcome, retry);
        }
    }
    check_far(table, &Request { limit, now, cost, room: 0 }, hash, retry, counters)
}

/// Takes the full answer for the tracking that it names.
#[inline(never)]
fn check_far(
    table: &Handle,
    request: &Request<'_>,
    hash: u64,
    retry: Option<Out<'_, u64>>,
    counters: &mut Counters,
) -> i32 {
    let made = match either!(table.table(), t => t.check_ex(request, hash, Some(counters))) {
        Ok(made) => made,
        Err(e) => return refused(e, request.limit),
    };
    if let Some(retry) = retry {
        let refused = matches!(made.verdict, Verdict::NonConforming | Verdict::Never);
        retry.put(if refused { made.retry_after } else { 0 });
    }
    verdict_code(made.verdict)
}

/// Decides one request of a key like tatcell_table_check, and counts it in this thread's counters. The counters tell
/// what the verdict does not: whether the policy for full sets decided.
///
/// @param table       handle; not NULL.
/// @param limit       from tatcell_limit_init_table of this table; not NULL.
/// @param now         the caller's clock, ticks.
/// @param key         bytes of the key; not NULL, even when empty.
/// @param key_len     bytes.
/// @param cost        units; 0 only peeks and never writes.
/// @param retry_after as for tatcell_table_check. NULL = not wanted.
/// @param counters    this thread's counters; not NULL.
/// @retval TATCELL_ERR_OVERLAP retry_after points into counters.
/// @retval others as tatcell_table_check.
/// Thread: any number, unless the table is exclusive. Cost: as tatcell_table_check and a count; as
/// tatcell_table_check_ex if the key is not in its home line. Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_check_counted(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    cost: u64,
    retry_after: *mut u64,
    counters: *mut Counters,
) -> i32 {
    args!(
        c,
        (table, limit, retry) = c.table_asked(table, limit, retry_after, || c.key(key, key_len).map(drop)),
        () = Span::of(counters, 1).apart(Span::of(retry_after, 1)),
        key = c.key(key, key_len),
        counters = c.owned(counters),
        hash = hash_of(table, key)
    );
    check(table, limit, (now, hash), cost, retry, counters)
}

/// As tatcell_table_check_counted, for a hash made by tatcell_table_hash. Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_check_counted_hash(
    table: *const tatcell_table_t,
    limit: *const tatcell_limit_t,
    now: u64,
    hash: u64,
    cost: u64,
    retry_after: *mut u64,
    counters: *mut Counters,
) -> i32 {
    args!(
        c,
        (table, limit, retry) = c.table_asked(table, limit, retry_after, || Ok(())),
        () = Span::of(counters, 1).apart(Span::of(retry_after, 1)),
        counters = c.owned(counters)
    );
    check(table, limit, (now, hash), cost, retry, counters)
}

//! A node: opened, asked, drained, changed, closed.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

use super::codes::{
    of_change, of_open, of_verdict, TATCELL_CLUSTER_ERR_ABSENT, TATCELL_CLUSTER_ERR_NULL,
    TATCELL_CLUSTER_ERR_SYSTEM, TATCELL_CLUSTER_ERR_TIMEOUT, TATCELL_CLUSTER_ERR_TOO_LARGE,
};
use super::kit;
use super::options::{tatcell_cluster_limit_t, tatcell_cluster_options_t};
use super::wake::Bell;
use crate::cluster::LimitId;
use crate::{Cluster, Completion, Verdict};

/// A node, made by tatcell_cluster_open; what is in it is the library's.
#[allow(non_camel_case_types)]
pub struct tatcell_cluster_t {
    pub(super) cluster: Cluster,
    bell: Arc<Bell>,
}

/// The answer to a request that was pending. Keeps its size.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tatcell_cluster_answer_t {
    /// What the caller gave.
    pub token: u64,
    /// With TATCELL_CLUSTER_DENY: nanoseconds after which it may conform, if nothing else arrives; else 0.
    pub retry_after_ns: u64,
    /// The reading of the node's clock that it was decided for; see tatcell_cluster_now.
    pub reading: u64,
    /// Any result of tatcell_cluster_check but TATCELL_CLUSTER_PENDING.
    pub verdict: i32,
    /// 0.
    pub reserved: i32,
}

fn retry_ns(verdict: Verdict) -> u64 {
    match verdict {
        Verdict::Deny { retry_after } => u64::try_from(retry_after.as_nanos()).unwrap_or(u64::MAX),
        _ => 0,
    }
}

impl From<Completion> for tatcell_cluster_answer_t {
    fn from(Completion { token, verdict, reading }: Completion) -> Self {
        tatcell_cluster_answer_t {
            token,
            retry_after_ns: retry_ns(verdict),
            reading,
            verdict: of_verdict(verdict),
            reserved: 0,
        }
    }
}

/// Opens a node: looks whether the store is one and whether the other nodes agree, and starts the node's thread.
///
/// @param options  started from TATCELL_CLUSTER_OPTIONS_INIT; not NULL. Nothing of it is needed after the call.
/// @param node     where the node is put; not NULL. NULL is put there on an error. Close it: tatcell_cluster_close.
/// @param error    where what is wrong and what to do about it is put as text, cut to fit and ended with a zero;
///                 empty if nothing is wrong. NULL = not wanted.
/// @param room     bytes that error has room for; 512 hold most of them.
/// @retval 0 done.
/// @retval TATCELL_CLUSTER_ERR_NULL, TATCELL_CLUSTER_ERR_ALIGN, TATCELL_CLUSTER_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_CLUSTER_ERR_OPTION, TATCELL_CLUSTER_ERR_LIMIT, TATCELL_CLUSTER_ERR_URL what was given.
/// @retval TATCELL_CLUSTER_ERR_UNREACHABLE, TATCELL_CLUSTER_ERR_REFUSED, TATCELL_CLUSTER_ERR_STORE the store.
/// @retval TATCELL_CLUSTER_ERR_PARAMETERS other nodes were given something else.
/// @retval TATCELL_CLUSTER_ERR_SYSTEM the system.
/// Thread: any. Cost: waits for the store, a few timeouts at most. Since 0.3.
#[no_mangle]
#[must_use]
pub extern "C" fn tatcell_cluster_open(
    options: *const tatcell_cluster_options_t,
    node: *mut *mut tatcell_cluster_t,
    error: *mut c_char,
    room: usize,
) -> i32 {
    kit::write_text(error, room, "");
    if let Err(code) = kit::write(node, std::ptr::null_mut()) {
        return code;
    }
    let opened = || {
        let builder = kit::given(options)?.builder()?;
        let bell = Bell::new().map(Arc::new).map_err(|why| {
            kit::write_text(error, room, &format!("no eventfd: {why}; raise the limit of open files"));
            TATCELL_CLUSTER_ERR_SYSTEM
        })?;
        let rung = bell.clone();
        let cluster = builder.open_with(Some(Box::new(move || rung.ring()))).map_err(|why| {
            kit::write_text(error, room, &why.to_string());
            of_open(&why)
        })?;
        Ok(tatcell_cluster_t { cluster, bell })
    };
    kit::code(opened().and_then(|made| {
        kit::write(node, Box::into_raw(Box::new(made)))?;
        Ok(0)
    }))
}

/// Finds a limit by its name.
///
/// @param node  of tatcell_cluster_open; not NULL.
/// @param name  as in its tatcell_cluster_limit_t; not NULL.
/// @param limit its number for tatcell_cluster_check; not NULL.
/// @retval 0 done.
/// @retval TATCELL_CLUSTER_ERR_ABSENT no limit has this name.
/// @retval TATCELL_CLUSTER_ERR_NULL, TATCELL_CLUSTER_ERR_ALIGN, TATCELL_CLUSTER_ERR_OPTION bad pointer or text.
/// Thread: any. Cost: looks at each name. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_limit(
    node: *const tatcell_cluster_t,
    name: *const c_char,
    limit: *mut u32,
) -> i32 {
    let find = || {
        let (node, name) = (kit::object(node)?, kit::text(name)?.ok_or(TATCELL_CLUSTER_ERR_NULL)?);
        let LimitId(found) = node.cluster.limit(name).ok_or(TATCELL_CLUSTER_ERR_ABSENT)?;
        kit::write(limit, found as u32)?;
        Ok(0)
    };
    kit::code(find())
}

fn number(node: &tatcell_cluster_t, limit: u32) -> Result<LimitId, i32> {
    let known = (limit as usize) < node.cluster.node.limits.len();
    known.then_some(LimitId(limit as usize)).ok_or(TATCELL_CLUSTER_ERR_ABSENT)
}

/// Reads the node's clock: nanoseconds since the machine started.
///
/// @param node of tatcell_cluster_open; not NULL.
/// @return the reading; 0 where node is NULL.
/// Thread: any. Cost: one clock_gettime. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_now(node: *const tatcell_cluster_t) -> u64 {
    kit::object(node).map_or(0, |node| node.cluster.now())
}

/// Decides a request of a key. Never blocks and never calls back.
///
/// @param node           of tatcell_cluster_open; not NULL.
/// @param limit          of tatcell_cluster_limit.
/// @param key            any bytes; NULL only where key_len is 0.
/// @param key_len        how many.
/// @param cost           units, at least 1.
/// @param now            a reading of tatcell_cluster_now that serves many requests; 0 = it is read here. An
///                       older one is stricter.
/// @param token          comes back with the answer where this one is pending; the caller's.
/// @param retry_after_ns with TATCELL_CLUSTER_DENY: nanoseconds after which it may conform, if nothing else
///                       arrives; else 0. NULL = not wanted.
/// @retval TATCELL_CLUSTER_PASS go on: it was charged.
/// @retval TATCELL_CLUSTER_DENY, TATCELL_CLUSTER_NEVER do not.
/// @retval TATCELL_CLUSTER_PENDING the store is asked: exactly one answer comes with the token
///         (tatcell_cluster_drain).
/// @retval TATCELL_CLUSTER_OVERLOADED nothing was asked, no answer comes: 4096 wait already, or as many keys are
///         in use as the options provided for.
/// @retval TATCELL_CLUSTER_ERR_ABSENT no such limit.
/// @retval TATCELL_CLUSTER_ERR_NULL, TATCELL_CLUSTER_ERR_ALIGN, TATCELL_CLUSTER_ERR_TOO_LARGE bad pointer or length.
/// Thread: any number at once. Cost: one or two atomic operations; pending also an allocation. Since 0.3.
#[no_mangle]
#[must_use]
pub extern "C" fn tatcell_cluster_check(
    node: *const tatcell_cluster_t,
    limit: u32,
    key: *const c_void,
    key_len: usize,
    cost: u64,
    now: u64,
    token: u64,
    retry_after_ns: *mut u64,
) -> i32 {
    let check = || {
        let node = kit::object(node)?;
        let (limit, key) = (number(node, limit)?, kit::bytes(key, key_len)?);
        kit::write_if(retry_after_ns, 0)?;
        let now = if now == 0 { node.cluster.now() } else { now };
        let verdict = node.cluster.submit_at(limit, key, cost, now, token);
        kit::write_if(retry_after_ns, retry_ns(verdict))?;
        Ok(of_verdict(verdict))
    };
    kit::code(check())
}

/// Tells the file descriptor that is readable while answers wait, for poll, epoll and their like. It is the
/// node's: do not read, write or close it.
///
/// @param node of tatcell_cluster_open; not NULL.
/// @return an eventfd; TATCELL_CLUSTER_ERR_NULL or _ALIGN where the pointer is bad.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_fd(node: *const tatcell_cluster_t) -> i32 {
    kit::code(kit::object(node).map(|node| node.bell.fd()))
}

/// Takes answers that have come. Where more are left, the descriptor stays readable.
///
/// @param node    of tatcell_cluster_open; not NULL.
/// @param answers room for them; not NULL.
/// @param room    how many; at most 2147483647.
/// @return how many were taken, 0 or more; TATCELL_CLUSTER_ERR_NULL, _ALIGN or _TOO_LARGE for bad arguments.
/// Thread: any number at once; each answer goes to one of them. Never blocks: 0 is also returned while the
///         node's thread puts one in, and the descriptor is readable then. Cost: two system calls. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_drain(
    node: *const tatcell_cluster_t,
    answers: *mut tatcell_cluster_answer_t,
    room: usize,
) -> i32 {
    let drain = || {
        let node = kit::object(node)?;
        kit::place(answers)?;
        let most = i32::try_from(room).map_err(|_| TATCELL_CLUSTER_ERR_TOO_LARGE)?;
        // Before the answers are taken: one that comes meanwhile rings again.
        node.bell.silence();
        let taken = node.cluster.node.answers.try_take(most as usize);
        if taken.as_ref().is_none_or(|(_, more)| *more) {
            node.bell.ring();
        }
        let taken = taken.map_or(Vec::new(), |(taken, _)| taken);
        let count = taken.len() as i32;
        kit::write_all(answers, taken.into_iter().map(tatcell_cluster_answer_t::from));
        Ok(count)
    };
    kit::code(drain())
}

/// Changes the limit of this name on all nodes: rate, burst and reserves. In a window that the change lies in at
/// most R w + B pass, by the larger of both.
///
/// @param node           of tatcell_cluster_open; not NULL.
/// @param limit          what it shall be, started from TATCELL_CLUSTER_LIMIT_INIT; not NULL.
/// @param timeout_ns     how long to wait for the node's thread.
/// @param in_force_ns    nanoseconds until it is in force, on all nodes at once. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_CLUSTER_ERR_ABSENT no limit has this name; TATCELL_CLUSTER_ERR_LIMIT it cannot be shared so.
/// @retval TATCELL_CLUSTER_ERR_CHANGING another change is on its way: try again when it is in force.
/// @retval TATCELL_CLUSTER_ERR_AWAY, TATCELL_CLUSTER_ERR_STORE the store.
/// @retval TATCELL_CLUSTER_ERR_TIMEOUT no answer in time: the change may have been made.
/// @retval TATCELL_CLUSTER_ERR_NULL, TATCELL_CLUSTER_ERR_ALIGN, TATCELL_CLUSTER_ERR_SIZE, TATCELL_CLUSTER_ERR_OPTION
///         bad pointer, size field or text.
/// Thread: any. Cost: waits up to the timeout. Since 0.3.
#[no_mangle]
#[must_use]
pub extern "C" fn tatcell_cluster_change(
    node: *const tatcell_cluster_t,
    limit: *const tatcell_cluster_limit_t,
    timeout_ns: u64,
    in_force_ns: *mut u64,
) -> i32 {
    let change = || {
        let (node, limit) = (kit::object(node)?, kit::given(limit)?.limit()?);
        kit::write_if(in_force_ns, 0)?;
        let after = node.cluster.change(limit, Duration::from_nanos(timeout_ns)).map_err(of_change)?;
        kit::write_if(in_force_ns, u64::try_from(after.as_nanos()).unwrap_or(u64::MAX))?;
        Ok(0)
    };
    kit::code(change())
}

/// Closes a node: gives back what it holds, lets its reserve go, ends its thread, and frees it. Answers that
/// were not taken are lost with it, and so is the descriptor.
///
/// @param node       of tatcell_cluster_open; NULL is done already.
/// @param timeout_ns how long to wait.
/// @retval 0 done.
/// @retval TATCELL_CLUSTER_ERR_TIMEOUT not in time: the thread ends by itself, and what is held lapses. The node
///         is freed all the same.
/// @retval TATCELL_CLUSTER_ERR_ALIGN bad pointer.
/// Thread: one, when no other uses the node any more. Cost: waits up to the timeout. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_close(node: *mut tatcell_cluster_t, timeout_ns: u64) -> i32 {
    if node.is_null() {
        return 0;
    }
    kit::code(kit::reclaim(node).and_then(|node| {
        let done = node.cluster.shutdown(Duration::from_nanos(timeout_ns));
        if done {
            Ok(0)
        } else {
            Err(TATCELL_CLUSTER_ERR_TIMEOUT)
        }
    }))
}

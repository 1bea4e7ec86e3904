//! A node: open it, ask it, drain its answers, change its limits, close it.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

use super::codes::{
    of_change, of_open, of_verdict, text_of, TATCELL_CLUSTER_ERR_ABSENT, TATCELL_CLUSTER_ERR_NULL,
    TATCELL_CLUSTER_ERR_SYSTEM, TATCELL_CLUSTER_ERR_TIMEOUT, TATCELL_CLUSTER_ERR_TOO_LARGE,
};
use super::kit;
use super::options::{tatcell_cluster_limit_t, tatcell_cluster_options_t};
use super::wake::Bell;
use crate::cluster::LimitId;
use crate::{Cluster, Completion, Verdict};

/// A node, made by tatcell_cluster_open. Its content is private to the library.
#[allow(non_camel_case_types)]
pub struct tatcell_cluster_t {
    pub(super) cluster: Cluster,
    bell: Arc<Bell>,
}

/// The answer to a pending request. This size never changes.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tatcell_cluster_answer_t {
    /// The token of the request.
    pub token: u64,
    /// With TATCELL_CLUSTER_DENY: nanoseconds until it may pass, if nothing else arrives; else 0.
    pub retry_after_ns: u64,
    /// The reading of the node's clock for which it was decided; see tatcell_cluster_now.
    pub reading: u64,
    /// Any result of tatcell_cluster_check except TATCELL_CLUSTER_PENDING.
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

/// Opens a node: checks the store, and that the other nodes agree, and starts the node's thread.
///
/// @param options  started from TATCELL_CLUSTER_OPTIONS_INIT; not NULL. Copied.
/// @param node     gets the node, or NULL on error; not NULL. Close the node with tatcell_cluster_close.
/// @param error    gets a text: what is wrong and what to do, cut to fit and ended with a zero; empty without an
///                 error. NULL = not wanted.
/// @param room     bytes of error; 512 are enough for most texts.
/// @retval 0 done.
/// @retval TATCELL_CLUSTER_ERR_NULL, TATCELL_CLUSTER_ERR_ALIGN, TATCELL_CLUSTER_ERR_SIZE bad pointer or size field.
/// @retval TATCELL_CLUSTER_ERR_OPTION, TATCELL_CLUSTER_ERR_LIMIT, TATCELL_CLUSTER_ERR_URL bad option, limit or URL.
/// @retval TATCELL_CLUSTER_ERR_UNREACHABLE, TATCELL_CLUSTER_ERR_REFUSED, TATCELL_CLUSTER_ERR_STORE bad store.
/// @retval TATCELL_CLUSTER_ERR_PARAMETERS other nodes use other parameters.
/// @retval TATCELL_CLUSTER_ERR_SYSTEM no clock, random bytes, eventfd or thread.
/// Thread: any. Cost: waits for the store, a few timeouts at most. If no node has used a limit for a minute, or the
/// store has lost its data, or a change is on its way, waits 1.8 s more for what running nodes know; docs/CLUSTER.md
/// has the exact time. Since 0.3.
#[no_mangle]
#[must_use]
pub extern "C" fn tatcell_cluster_open(
    options: *const tatcell_cluster_options_t,
    node: *mut *mut tatcell_cluster_t,
    error: *mut c_char,
    room: usize,
) -> i32 {
    kit::write_text(error, room, "");
    let opened = || {
        let said = |code| (code, text_of(code).to_string_lossy().into_owned());
        kit::write(node, std::ptr::null_mut()).map_err(said)?;
        let builder = kit::given(options).and_then(|options| options.builder()).map_err(said)?;
        let bell = Bell::new().map(Arc::new).map_err(|why| {
            (TATCELL_CLUSTER_ERR_SYSTEM, format!("no eventfd: {why}; raise the limit of open files"))
        })?;
        let rung = bell.clone();
        let cluster = builder.open_with(Some(Box::new(move || rung.ring())));
        let cluster = cluster.map_err(|why| (of_open(&why), why.to_string()))?;
        kit::write(node, Box::into_raw(Box::new(tatcell_cluster_t { cluster, bell }))).map_err(said)
    };
    kit::code(opened().map(|()| 0).map_err(|(code, why)| {
        kit::write_text(error, room, &why);
        code
    }))
}

/// Finds a limit by its name.
///
/// @param node  from tatcell_cluster_open; not NULL.
/// @param name  as in its tatcell_cluster_limit_t; not NULL.
/// @param limit gets its number for tatcell_cluster_check; not NULL.
/// @retval 0 done.
/// @retval TATCELL_CLUSTER_ERR_ABSENT no limit has this name.
/// @retval TATCELL_CLUSTER_ERR_NULL, TATCELL_CLUSTER_ERR_ALIGN, TATCELL_CLUSTER_ERR_OPTION bad pointer or text.
/// Thread: any. Cost: compares each name. Since 0.3.
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
/// @param node from tatcell_cluster_open; not NULL.
/// @return the reading; 0 if node is NULL.
/// Thread: any. Cost: one clock_gettime. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_now(node: *const tatcell_cluster_t) -> u64 {
    kit::object(node).map_or(0, |node| node.cluster.now())
}

/// Decides one request of a key. It never blocks and never calls back.
///
/// @param node           from tatcell_cluster_open; not NULL.
/// @param limit          from tatcell_cluster_limit.
/// @param key            bytes of the key; NULL only if key_len is 0.
/// @param key_len        bytes.
/// @param cost           units, at least 1.
/// @param now            a reading of tatcell_cluster_now, for any number of requests; 0 = the call reads the clock.
///                       An older reading makes the answer stricter.
/// @param token          yours; comes back with the answer if this request is pending.
/// @param retry_after_ns with TATCELL_CLUSTER_DENY: nanoseconds until it may pass, if nothing else arrives; else 0.
///                       NULL = not wanted.
/// @retval TATCELL_CLUSTER_PASS passes, and is charged.
/// @retval TATCELL_CLUSTER_DENY, TATCELL_CLUSTER_NEVER does not pass.
/// @retval TATCELL_CLUSTER_PENDING the node asked the store: tatcell_cluster_drain will have one answer with the token.
/// @retval TATCELL_CLUSTER_OVERLOADED the node did not ask, and no answer comes: 4096 wait already, or as many keys
///         are in use as the options allow.
/// @retval TATCELL_CLUSTER_ERR_ABSENT no limit has this number.
/// @retval TATCELL_CLUSTER_ERR_NULL, TATCELL_CLUSTER_ERR_ALIGN, TATCELL_CLUSTER_ERR_TOO_LARGE bad pointer or length.
/// Thread: any number at once. Cost: one or two atomic operations; an allocation too if it is pending. Since 0.3.
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

/// Returns the file descriptor that is readable while answers wait, for poll, epoll and similar calls. It belongs to
/// the node: do not read, write or close it.
///
/// @param node from tatcell_cluster_open; not NULL.
/// @return an eventfd; TATCELL_CLUSTER_ERR_NULL or _ALIGN if the pointer is bad.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_fd(node: *const tatcell_cluster_t) -> i32 {
    kit::code(kit::object(node).map(|node| node.bell.fd()))
}

/// Takes answers. If more are left, the descriptor stays readable.
///
/// @param node    from tatcell_cluster_open; not NULL.
/// @param answers gets them; not NULL.
/// @param room    length of answers; at most 2147483647.
/// @return the number of answers taken; TATCELL_CLUSTER_ERR_NULL, _ALIGN or _TOO_LARGE for bad arguments.
/// Thread: any number at once; each answer goes to one of them. It never blocks: while the node's thread adds an
///         answer, it returns 0, and the descriptor stays readable. Cost: two system calls. Since 0.3.
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

/// Changes the limit of this name on all nodes: rate, burst and reserves. In a window that contains the change, at
/// most R w + B pass, where R is the larger of both rates and B the larger of both bursts.
///
/// @param node           from tatcell_cluster_open; not NULL.
/// @param limit          the new limit, started from TATCELL_CLUSTER_LIMIT_INIT; not NULL.
/// @param timeout_ns     nanoseconds to wait for the node's thread.
/// @param in_force_ns    gets the nanoseconds until it is in force, on all nodes at once. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_CLUSTER_ERR_ABSENT no limit has this name; TATCELL_CLUSTER_ERR_LIMIT the new one cannot be shared.
/// @retval TATCELL_CLUSTER_ERR_CHANGING another change is under way: try again when it is in force.
/// @retval TATCELL_CLUSTER_ERR_AWAY, TATCELL_CLUSTER_ERR_STORE the store does not answer, or refuses.
/// @retval TATCELL_CLUSTER_ERR_TIMEOUT no answer came in time: the change may have been made.
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

/// Closes a node: gives back its units and its reserve, ends its thread, and frees it. Answers that were not taken are
/// lost, and the descriptor is closed.
///
/// @param node       from tatcell_cluster_open; NULL = nothing to do.
/// @param timeout_ns nanoseconds to wait.
/// @retval 0 done.
/// @retval TATCELL_CLUSTER_ERR_TIMEOUT not in time: the thread ends by itself, units lapse, and the node is freed.
/// @retval TATCELL_CLUSTER_ERR_ALIGN bad pointer.
/// Thread: one, when no other thread uses the node. Cost: waits up to the timeout. Since 0.3.
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

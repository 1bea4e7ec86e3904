//! Result and error codes. Those from -1 to -37 mean what they do in tatcell.h; -80 to -99 are this header's.

use std::ffi::{c_char, CStr};

use crate::{ChangeError, OpenError, Verdict};

/// The request passes, and is charged.
pub const TATCELL_CLUSTER_PASS: i32 = 0;
/// The request does not pass now; nothing is charged.
pub const TATCELL_CLUSTER_DENY: i32 = 1;
/// The request can never pass: its cost is too great for the limit.
pub const TATCELL_CLUSTER_NEVER: i32 = 2;
/// There is no verdict and no question to the store: the node's queue, answers or keys are full. Nothing is charged.
pub const TATCELL_CLUSTER_OVERLOADED: i32 = 3;
/// There is no verdict yet: the node asked the store, and the answer will come with the token.
pub const TATCELL_CLUSTER_PENDING: i32 = 4;

/// A required pointer is NULL.
pub const TATCELL_CLUSTER_ERR_NULL: i32 = -1;
/// A pointer is not aligned for its type.
pub const TATCELL_CLUSTER_ERR_ALIGN: i32 = -2;
/// The size field of a structure has a value that no header gives it: start from its _INIT macro.
pub const TATCELL_CLUSTER_ERR_SIZE: i32 = -3;
/// An option is unknown or out of range, or a text is not UTF-8.
pub const TATCELL_CLUSTER_ERR_OPTION: i32 = -11;
/// The system provides no clock, random bytes, eventfd or thread.
pub const TATCELL_CLUSTER_ERR_SYSTEM: i32 = -25;
/// No limit has this name or number.
pub const TATCELL_CLUSTER_ERR_ABSENT: i32 = -29;
/// A length exceeds half of the address space, or 2^31 - 1 answers.
pub const TATCELL_CLUSTER_ERR_TOO_LARGE: i32 = -31;
/// There is no limit, two limits have one name, or a limit cannot be shared.
pub const TATCELL_CLUSTER_ERR_LIMIT: i32 = -80;
/// The URL of the store is not valid.
pub const TATCELL_CLUSTER_ERR_URL: i32 = -81;
/// The store does not answer in time, or a certificate is not trusted.
pub const TATCELL_CLUSTER_ERR_UNREACHABLE: i32 = -82;
/// The password is wrong, or the user lacks a right.
pub const TATCELL_CLUSTER_ERR_REFUSED: i32 = -83;
/// The server is too old, or is not what the URL says: a replica, a node of a Redis Cluster, a sentinel.
pub const TATCELL_CLUSTER_ERR_STORE: i32 = -84;
/// Other nodes use a limit of this name and prefix with other parameters.
pub const TATCELL_CLUSTER_ERR_PARAMETERS: i32 = -85;
/// Another change of this limit is under way, or was made in the meantime.
pub const TATCELL_CLUSTER_ERR_CHANGING: i32 = -86;
/// The store is away: it does not answer at present.
pub const TATCELL_CLUSTER_ERR_AWAY: i32 = -87;
/// No answer came in the given time. A change may have been made; a node that closes ends by itself.
pub const TATCELL_CLUSTER_ERR_TIMEOUT: i32 = -88;

/// Nodes of another version of tatcell use the prefix. Since 0.4.
pub const TATCELL_CLUSTER_ERR_FORMAT: i32 = -89;

/// Version of the library: major * 10000 + minor * 100 + patch.
pub const TATCELL_CLUSTER_VERSION: u32 = 400;
/// Version of the C ABI; changes only when a program must be rebuilt.
pub const TATCELL_CLUSTER_ABI_VERSION: u32 = 1;

const DESCRIPTIONS: &[(i32, &CStr)] = &[
    (TATCELL_CLUSTER_PASS, c"pass: within the limit"),
    (TATCELL_CLUSTER_DENY, c"deny: above the limit now"),
    (TATCELL_CLUSTER_NEVER, c"never: the cost is greater than the limit allows at once"),
    (TATCELL_CLUSTER_OVERLOADED, c"overloaded: 4096 requests wait, or all keys are in use: raise keys"),
    (TATCELL_CLUSTER_PENDING, c"pending: the answer of the store will come with the token"),
    (TATCELL_CLUSTER_ERR_NULL, c"a required pointer is NULL"),
    (TATCELL_CLUSTER_ERR_ALIGN, c"a pointer is not aligned for its type"),
    (TATCELL_CLUSTER_ERR_SIZE, c"the size field of a structure is not set: start from its _INIT macro"),
    (TATCELL_CLUSTER_ERR_OPTION, c"an option is unknown or out of range, or a text is not UTF-8"),
    (TATCELL_CLUSTER_ERR_SYSTEM, c"no clock, random bytes, eventfd or thread: raise the system's limits"),
    (TATCELL_CLUSTER_ERR_ABSENT, c"no limit has this name or number: give it to tatcell_cluster_open"),
    (TATCELL_CLUSTER_ERR_TOO_LARGE, c"a length exceeds half of the address space, or 2^31 - 1 answers"),
    (TATCELL_CLUSTER_ERR_LIMIT, c"there is no limit, two limits have one name, or one cannot be shared"),
    (TATCELL_CLUSTER_ERR_URL, c"the URL of the store is not valid; an example: redis://host:6379/"),
    (TATCELL_CLUSTER_ERR_UNREACHABLE, c"the store does not answer: is it running, and is the address right?"),
    (TATCELL_CLUSTER_ERR_REFUSED, c"the store refuses this user: check user, password and rights"),
    (TATCELL_CLUSTER_ERR_STORE, c"the store is older than Redis 6.2, a replica, or not what its URL says"),
    (TATCELL_CLUSTER_ERR_PARAMETERS, c"other nodes have other parameters: take theirs, or another prefix"),
    (TATCELL_CLUSTER_ERR_CHANGING, c"another change of this limit is under way: try again later"),
    (TATCELL_CLUSTER_ERR_AWAY, c"the store is away: try again when it answers"),
    (TATCELL_CLUSTER_ERR_TIMEOUT, c"no answer came in the given time; a change may have been made"),
    (
        TATCELL_CLUSTER_ERR_FORMAT,
        c"nodes of another version use the prefix: stop them, or take another prefix",
    ),
];

/// Returns the description of a result or error code.
///
/// @param code any value that a function of this header returned.
/// @return static text, never NULL; "unknown code" for others.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_strerror(code: i32) -> *const c_char {
    text_of(code).as_ptr()
}

pub(super) fn text_of(code: i32) -> &'static CStr {
    DESCRIPTIONS.iter().find(|(of, _)| *of == code).map_or(c"unknown code", |(_, text)| text)
}

/// Returns the version of the linked library, to compare with TATCELL_CLUSTER_VERSION.
///
/// @return major * 10000 + minor * 100 + patch.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_version() -> u32 {
    TATCELL_CLUSTER_VERSION
}

/// Returns the ABI version of the linked library, to compare with TATCELL_CLUSTER_ABI_VERSION.
///
/// @return the ABI version.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_abi_version() -> u32 {
    TATCELL_CLUSTER_ABI_VERSION
}

pub(super) fn of_verdict(verdict: Verdict) -> i32 {
    match verdict {
        Verdict::Pass => TATCELL_CLUSTER_PASS,
        Verdict::Deny { .. } => TATCELL_CLUSTER_DENY,
        Verdict::Never => TATCELL_CLUSTER_NEVER,
        Verdict::Pending => TATCELL_CLUSTER_PENDING,
        Verdict::Overloaded => TATCELL_CLUSTER_OVERLOADED,
    }
}

pub(super) fn of_open(error: &OpenError) -> i32 {
    match error {
        OpenError::Limits | OpenError::Limit { .. } => TATCELL_CLUSTER_ERR_LIMIT,
        OpenError::Options | OpenError::Reserve(_) => TATCELL_CLUSTER_ERR_OPTION,
        OpenError::Host(_) => TATCELL_CLUSTER_ERR_SYSTEM,
        OpenError::Url(_) => TATCELL_CLUSTER_ERR_URL,
        OpenError::Unreachable(_) | OpenError::Certificate(_) => TATCELL_CLUSTER_ERR_UNREACHABLE,
        OpenError::Refused(_) => TATCELL_CLUSTER_ERR_REFUSED,
        OpenError::OtherFormat(_) => TATCELL_CLUSTER_ERR_FORMAT,
        OpenError::OtherParameters { .. } => TATCELL_CLUSTER_ERR_PARAMETERS,
        _ => TATCELL_CLUSTER_ERR_STORE,
    }
}

pub(super) fn of_change(error: ChangeError) -> i32 {
    match error {
        ChangeError::Unknown => TATCELL_CLUSTER_ERR_ABSENT,
        ChangeError::Limit(_) => TATCELL_CLUSTER_ERR_LIMIT,
        ChangeError::Other { .. } => TATCELL_CLUSTER_ERR_CHANGING,
        ChangeError::Away => TATCELL_CLUSTER_ERR_AWAY,
        ChangeError::Store(_) => TATCELL_CLUSTER_ERR_STORE,
        ChangeError::Unanswered => TATCELL_CLUSTER_ERR_TIMEOUT,
    }
}

//! Result and error codes. Those from -1 to -37 mean what they do in tatcell.h; -80 to -99 are this header's.

use std::ffi::{c_char, CStr};

use crate::{ChangeError, OpenError, Verdict};

/// Within the limit: it was charged.
pub const TATCELL_CLUSTER_PASS: i32 = 0;
/// Beyond the limit now; nothing was charged.
pub const TATCELL_CLUSTER_DENY: i32 = 1;
/// A cost that this limit can never pass.
pub const TATCELL_CLUSTER_NEVER: i32 = 2;
/// Neither decided nor asked: the queue, the answers or the lines of the node are full. Nothing was charged.
pub const TATCELL_CLUSTER_OVERLOADED: i32 = 3;
/// Not decided: the store is asked, and the answer comes with the token.
pub const TATCELL_CLUSTER_PENDING: i32 = 4;

/// A required pointer is NULL.
pub const TATCELL_CLUSTER_ERR_NULL: i32 = -1;
/// A pointer is not aligned for its type.
pub const TATCELL_CLUSTER_ERR_ALIGN: i32 = -2;
/// A structure's size field is not one that any header gives it: start from its _INIT macro.
pub const TATCELL_CLUSTER_ERR_SIZE: i32 = -3;
/// An option is unknown or out of range, or a text is not UTF-8.
pub const TATCELL_CLUSTER_ERR_OPTION: i32 = -11;
/// The system gives no clock, no random bytes, no eventfd or no thread.
pub const TATCELL_CLUSTER_ERR_SYSTEM: i32 = -25;
/// No limit has this name, or this number.
pub const TATCELL_CLUSTER_ERR_ABSENT: i32 = -29;
/// A length is more than half of the address space, or more than 2^31 - 1 answers.
pub const TATCELL_CLUSTER_ERR_TOO_LARGE: i32 = -31;
/// No limit was given, or two of one name, or one that cannot be shared.
pub const TATCELL_CLUSTER_ERR_LIMIT: i32 = -80;
/// The URL of the store cannot be read.
pub const TATCELL_CLUSTER_ERR_URL: i32 = -81;
/// Nothing answers there, or not in time, or its certificate is not trusted.
pub const TATCELL_CLUSTER_ERR_UNREACHABLE: i32 = -82;
/// The password is wrong, or the user may not do what is needed.
pub const TATCELL_CLUSTER_ERR_REFUSED: i32 = -83;
/// What answers is not the store that it should be: too old, a replica, a node of a Redis Cluster, a sentinel.
pub const TATCELL_CLUSTER_ERR_STORE: i32 = -84;
/// A limit is in use under this prefix with other parameters.
pub const TATCELL_CLUSTER_ERR_PARAMETERS: i32 = -85;
/// Another change of this limit is on its way, or was made meanwhile.
pub const TATCELL_CLUSTER_ERR_CHANGING: i32 = -86;
/// The store is away.
pub const TATCELL_CLUSTER_ERR_AWAY: i32 = -87;
/// No answer in the time given: a change may have been made; a node that closes ends by itself.
pub const TATCELL_CLUSTER_ERR_TIMEOUT: i32 = -88;

/// Version of the library: major * 10000 + minor * 100 + patch.
pub const TATCELL_CLUSTER_VERSION: u32 = 400;
/// Version of the C ABI; changes only when a program must be rebuilt.
pub const TATCELL_CLUSTER_ABI_VERSION: u32 = 1;

const DESCRIPTIONS: &[(i32, &CStr)] = &[
    (TATCELL_CLUSTER_PASS, c"pass: within the limit"),
    (TATCELL_CLUSTER_DENY, c"deny: beyond the limit"),
    (TATCELL_CLUSTER_NEVER, c"never: the cost is larger than the limit can pass"),
    (TATCELL_CLUSTER_OVERLOADED, c"overloaded: the queue, the answers or the lines are full"),
    (TATCELL_CLUSTER_PENDING, c"pending: the store is asked"),
    (TATCELL_CLUSTER_ERR_NULL, c"a required pointer is NULL"),
    (TATCELL_CLUSTER_ERR_ALIGN, c"a pointer is not aligned for its type"),
    (TATCELL_CLUSTER_ERR_SIZE, c"a structure has a wrong size field: start from its _INIT macro"),
    (TATCELL_CLUSTER_ERR_OPTION, c"an option is unknown or out of range, or a text is not UTF-8"),
    (TATCELL_CLUSTER_ERR_SYSTEM, c"the system gives no clock, random bytes, eventfd or thread"),
    (TATCELL_CLUSTER_ERR_ABSENT, c"no limit has this name or number"),
    (TATCELL_CLUSTER_ERR_TOO_LARGE, c"a length is too large"),
    (TATCELL_CLUSTER_ERR_LIMIT, c"no limit was given, two of one name, or one that cannot be shared"),
    (TATCELL_CLUSTER_ERR_URL, c"the URL of the store cannot be read"),
    (TATCELL_CLUSTER_ERR_UNREACHABLE, c"the store does not answer: is it running, and is the address right?"),
    (TATCELL_CLUSTER_ERR_REFUSED, c"the store refuses this user: check user, password and rights"),
    (TATCELL_CLUSTER_ERR_STORE, c"the store is too old, a replica, or of another kind than its URL says"),
    (TATCELL_CLUSTER_ERR_PARAMETERS, c"a limit is in use under this prefix with other parameters"),
    (TATCELL_CLUSTER_ERR_CHANGING, c"another change of this limit is on its way"),
    (TATCELL_CLUSTER_ERR_AWAY, c"the store is away"),
    (TATCELL_CLUSTER_ERR_TIMEOUT, c"no answer in the time given"),
];

/// Describes a result or error code.
///
/// @param code any value that a function of this header returned.
/// @return static text, never NULL; "unknown code" for others.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_strerror(code: i32) -> *const c_char {
    DESCRIPTIONS.iter().find(|(of, _)| *of == code).map_or(c"unknown code", |(_, text)| text).as_ptr()
}

/// Tells the library's version, to be compared with TATCELL_CLUSTER_VERSION.
///
/// @return the version.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_version() -> u32 {
    TATCELL_CLUSTER_VERSION
}

/// Tells the library's ABI, to be compared with TATCELL_CLUSTER_ABI_VERSION.
///
/// @return the version of the ABI.
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

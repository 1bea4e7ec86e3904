//! `tatcell_http_*`: header fields of a response, from the decisions that it met.

use core::ffi::{c_char, c_void};
use core::fmt;

use crate::answer::Verdict;
use crate::capi::codes::{
    TATCELL_ERR_FREQUENCY, TATCELL_ERR_HTTP_NAME, TATCELL_ERR_OPTION, TATCELL_ERR_POLICIES,
};
use crate::capi::decision::tatcell_decision_t;
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, Contract, Grows};
use crate::capi::pointers::places::Span;
use crate::capi::pointers::texts::Room;
use crate::http::{Field, Fields, HttpError, Policy, Said, MAX_POLICIES};
use crate::text::Text;

/// field: RateLimit, the units that are left and for how long.
pub const TATCELL_HTTP_RATELIMIT: u32 = 1;
/// field: RateLimit-Policy, the quotas. It is the same in every response.
pub const TATCELL_HTTP_RATELIMIT_POLICY: u32 = 2;
/// field: Retry-After, in seconds.
pub const TATCELL_HTTP_RETRY_AFTER: u32 = 4;
/// field: X-RateLimit-Limit, the burst.
pub const TATCELL_HTTP_X_LIMIT: u32 = 8;
/// field: X-RateLimit-Remaining, the units that are left.
pub const TATCELL_HTTP_X_REMAINING: u32 = 16;
/// field: X-RateLimit-Reset, seconds from now.
pub const TATCELL_HTTP_X_RESET: u32 = 32;
/// fields: all of them.
pub const TATCELL_HTTP_ALL: u32 = 63;

/// Most policies in one response.
pub const TATCELL_HTTP_POLICIES_MAX: u32 = 8;
const _: () = assert!(TATCELL_HTTP_POLICIES_MAX as usize == MAX_POLICIES);

/// Bytes of a tatcell_http_policy_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_HTTP_POLICY_MIN: usize = 24 + 6 * size_of::<*const u8>();

/// A limit as clients know it, and a decision under it. Start from TATCELL_HTTP_POLICY_INIT and set name. Several
/// policies are an array. name, unit and partition have at most 1024 bytes each. The library keeps no pointer after
/// the call.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tatcell_http_policy_t {
    /// sizeof(tatcell_http_policy_t).
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// Distinguishes this policy from others. It is text of the bytes 0x20 to 0x7e, as in a structured-field
    /// string, and ends with a NUL if name_len is 0. The call escapes quotes and backslashes. Not NULL.
    pub name: *const c_char,
    /// Names the unit if it is not a request: "content-bytes", "concurrent-requests" or another name of the
    /// registry. Text as for name. NULL = not stated.
    pub unit: *const c_char,
    /// The part of the clients, users or resources that the quota is for. It may be any bytes, and clients see it
    /// in Base64. NULL = not stated.
    pub partition: *const c_void,
    /// Bytes of partition.
    pub partition_len: usize,
    /// Gives the quota (its burst) and the window: the time in which a whole burst drains, or the length of a
    /// window algorithm's window. A decaying level has none. The limit may be of any kind. NULL = the fields quota
    /// and window apply.
    pub limit: *const tatcell_limit_t,
    /// The decision, from a call that returned no error. Its size may be 0, as in a decision that was zeroed for a
    /// chain. NULL = the policy appears only in RateLimit-Policy.
    pub decision: *const tatcell_decision_t,
    /// Without limit: units in a window. 0 = not stated; the policy then does not appear in RateLimit-Policy.
    pub quota: u64,
    /// Without limit: ticks. 0 = not stated.
    pub window: u64,
    /// Bytes of name; 0 = name ends with a NUL. Since 0.4.
    pub name_len: usize,
    /// Bytes of unit; 0 = unit ends with a NUL. Since 0.4.
    pub unit_len: usize,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_http_policy_t {
    const FIRST: usize = TATCELL_HTTP_POLICY_MIN;
}
const _: () = assert!(size_of::<tatcell_http_policy_t>() == TATCELL_HTTP_POLICY_MIN + 2 * size_of::<usize>());
const _: () = assert!(TATCELL_HTTP_POLICY_MIN % 8 == 0);

/// Returns the code of an error.
pub(in crate::capi) fn http_code(e: HttpError) -> i32 {
    match e {
        HttpError::BadName => TATCELL_ERR_HTTP_NAME,
        HttpError::ZeroFrequency => TATCELL_ERR_FREQUENCY,
        HttpError::TooManyPolicies => TATCELL_ERR_POLICIES,
    }
}

/// Returns what a decision says; refuses one that no call has made.
fn said(d: &tatcell_decision_t) -> Result<Said, i32> {
    let verdicts = [Verdict::Conforming, Verdict::NonConforming, Verdict::Never, Verdict::Contended];
    let verdict = usize::try_from(d.verdict).ok().and_then(|verdict| verdicts.get(verdict));
    match verdict {
        Some(verdict) if d.burst != 0 => Ok(Said {
            verdict: if d.in_debt == 0 { *verdict } else { Verdict::Conforming },
            flags: d.flags,
            burst: d.burst,
            remaining: d.remaining,
            retry_after: d.retry_after,
            reset_after: d.reset_after,
        }),
        _ => Err(TATCELL_ERR_OPTION),
    }
}

/// Returns one policy of the array, which must lie apart from the buffer that is written.
fn policy<'a>(
    c: Contract<'a>,
    first: *const tatcell_http_policy_t,
    i: usize,
    written: Span,
) -> Result<Policy<'a>, i32> {
    let (raw, place) = c.nth_options(first, i)?;
    if raw.flags != 0 {
        return Err(TATCELL_ERR_OPTION);
    }
    let name = c.text_of(raw.name, raw.name_len)?.ok_or(TATCELL_ERR_HTTP_NAME)?;
    let mut spans = [place, Span::of(name.as_ptr(), name.len()), Span::NOTHING, Span::NOTHING];
    let mut policy = Policy::new(name).map_err(http_code)?.quota(raw.quota).window(raw.window);
    if !raw.unit.is_null() {
        let unit = c.text_of(raw.unit, raw.unit_len)?.ok_or(TATCELL_ERR_HTTP_NAME)?;
        spans[2] = Span::of(unit.as_ptr(), unit.len());
        policy = policy.unit(unit).map_err(http_code)?;
    }
    if let Some(partition) = c.bytes_if(raw.partition, raw.partition_len)? {
        spans[3] = Span::of(partition.as_ptr(), partition.len());
        policy = policy.partition(partition);
    }
    if !raw.limit.is_null() {
        if raw.quota != 0 || raw.window != 0 {
            return Err(TATCELL_ERR_OPTION);
        }
        policy = policy.limit(&c.any_limit(raw.limit)?.info());
    }
    if !raw.decision.is_null() {
        policy = policy.say(said(&c.known_or_zeroed(raw.decision)?)?);
    }
    written.apart_from(&spans)?;
    Ok(policy)
}

/// The policies of a call, copied.
struct Policies<'a> {
    all: [Policy<'a>; MAX_POLICIES],
    count: usize,
}

fn policies<'a>(
    c: Contract<'a>,
    first: *const tatcell_http_policy_t,
    count: u32,
    written: Span,
) -> Result<Policies<'a>, i32> {
    let count = count as usize;
    let mut all = [Policy::EMPTY; MAX_POLICIES];
    let Some(places) = all.get_mut(..count) else { return Err(TATCELL_ERR_POLICIES) };
    for (i, place) in places.iter_mut().enumerate() {
        *place = policy(c, first, i, written)?;
    }
    Ok(Policies { all, count })
}

impl<'a> Policies<'a> {
    fn fields(&'a self, ticks_per_second: u64) -> Result<Fields<'a>, i32> {
        let policies = self.all.get(..self.count).unwrap_or_else(|| impossible!(&[]));
        Fields::new(ticks_per_second, policies).map_err(http_code)
    }
}

/// Returns the field of one bit.
fn field(bit: u32) -> Result<Field, i32> {
    Ok(match bit {
        TATCELL_HTTP_RATELIMIT => Field::RateLimit,
        TATCELL_HTTP_RATELIMIT_POLICY => Field::RateLimitPolicy,
        TATCELL_HTTP_RETRY_AFTER => Field::RetryAfter,
        TATCELL_HTTP_X_LIMIT => Field::XLimit,
        TATCELL_HTTP_X_REMAINING => Field::XRemaining,
        TATCELL_HTTP_X_RESET => Field::XReset,
        _ => return Err(TATCELL_ERR_OPTION),
    })
}

/// Where the texts for C go: one form for both functions.
type Sink<'a> = Text<&'a mut dyn FnMut(&str) -> fmt::Result>;

/// Lets `write` fill a buffer, and returns the length.
fn written(mut room: Room<'_>, write: impl FnOnce(&mut Sink<'_>) -> fmt::Result) -> i32 {
    let mut sink = |text: &str| {
        room.put(text);
        Ok(())
    };
    // A `Room` takes everything, so this does not fail.
    let _ = write(&mut Text(&mut sink));
    // Fits: eight policies, with texts of at most 1024 bytes each.
    room.end() as i32
}

/// Writes the value of one header field, which informs the client about the limits that applied to its request.
///
/// Seconds are rounded up and units down. RateLimit is `"name";r=3;t=4` with a member for each policy. Retry-After
/// is the longest wait of all refusals. The X-RateLimit fields describe the policy that refused for longest, or has
/// least left. A field has no value in these cases, and the call returns 0: Retry-After of a request that passes,
/// or can never pass, and of a peek with cost 0, so that a status page (200) has none; all fields except Retry-After
/// (1) of a contended decision; all fields of a limit with TATCELL_LIMIT_SHADOW, and, without its limit, all except
/// RateLimit-Policy of a decision with TATCELL_FLAG_SHADOW; all fields of an unlimited limit.
///
/// Source: draft-ietf-httpapi-ratelimit-headers-11, RFC 9651 (structured fields), RFC 9110 section 10.2.3.
///
/// @param policies         array of count policies; NULL only if count is 0.
/// @param count            0..TATCELL_HTTP_POLICIES_MAX.
/// @param ticks_per_second of the clock that the decisions were made with; not 0.
/// @param field            one TATCELL_HTTP_ constant.
/// @param buffer           gets the text and a NUL, truncated to bytes. NULL only if bytes is 0.
/// @param bytes            of buffer. 0 = nothing is written.
/// @retval 0 or more: the length of the whole text, without its NUL. If it is not less than bytes, the text was
///         truncated.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_SIZE a structure's size is not set, or differs from that of the first.
/// @retval TATCELL_ERR_POLICIES more than 8 policies.
/// @retval TATCELL_ERR_FREQUENCY ticks_per_second is 0.
/// @retval TATCELL_ERR_HTTP_NAME a name or unit has a byte outside of 0x20..0x7e.
/// @retval TATCELL_ERR_LIMIT a limit is not initialised.
/// @retval TATCELL_ERR_OPTION field is not one field, flags is not 0, limit is set together with quota or window,
///         or a decision was not made by a call.
/// @retval TATCELL_ERR_TOO_LARGE name, unit or partition is longer than 1024 bytes, or bytes is impossibly large.
/// @retval TATCELL_ERR_OVERLAP the buffer overlaps an object that the call reads. Nothing is written on error.
/// Thread: any. Cost: one division for each number. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_http_value(
    policies: *const tatcell_http_policy_t,
    count: u32,
    ticks_per_second: u64,
    field: u32,
    buffer: *mut c_char,
    bytes: usize,
) -> i32 {
    args!(
        c,
        field = self::field(field),
        room = c.room(buffer, bytes),
        policies = self::policies(c, policies, count, room.span()),
        fields = policies.fields(ticks_per_second)
    );
    written(room, |out| fields.value(field, out))
}

/// Writes header fields as whole lines: "Name: value" with CR LF each. Fields without a value are left out.
///
/// The order is RateLimit-Policy, RateLimit, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining,
/// X-RateLimit-Reset.
///
///     tatcell_http_policy_t policy = TATCELL_HTTP_POLICY_INIT;
///     policy.name = "burst", policy.limit = &limit, policy.decision = &decision;
///     char lines[512];
///     int32_t length = tatcell_http_lines(&policy, 1, 1000000000, TATCELL_HTTP_ALL, lines, sizeof lines);
///     if (length < 0 || (size_t)length >= sizeof lines) lines[0] = 0;
///
/// @param policies         array of count policies; NULL only if count is 0.
/// @param count            0..TATCELL_HTTP_POLICIES_MAX.
/// @param ticks_per_second of the clock that the decisions were made with; not 0.
/// @param fields           any TATCELL_HTTP_ constants, combined.
/// @param buffer           gets the text and a NUL, truncated to bytes. NULL only if bytes is 0.
/// @param bytes            of buffer. 0 = nothing is written.
/// @retval 0 or more: the length of the whole text, as for tatcell_http_value.
/// @retval TATCELL_ERR_OPTION an unknown field, or as tatcell_http_value.
/// @retval others as tatcell_http_value.
/// Thread: any. Cost: one division for each number. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_http_lines(
    policies: *const tatcell_http_policy_t,
    count: u32,
    ticks_per_second: u64,
    fields: u32,
    buffer: *mut c_char,
    bytes: usize,
) -> i32 {
    if fields & !TATCELL_HTTP_ALL != 0 {
        return TATCELL_ERR_OPTION;
    }
    args!(
        c,
        room = c.room(buffer, bytes),
        policies = self::policies(c, policies, count, room.span()),
        all = policies.fields(ticks_per_second)
    );
    let order = [
        TATCELL_HTTP_RATELIMIT_POLICY,
        TATCELL_HTTP_RATELIMIT,
        TATCELL_HTTP_RETRY_AFTER,
        TATCELL_HTTP_X_LIMIT,
        TATCELL_HTTP_X_REMAINING,
        TATCELL_HTTP_X_RESET,
    ];
    let mut wanted = order.into_iter().filter(|bit| fields & bit != 0).flat_map(field);
    written(room, |out| wanted.try_for_each(|field| all.line(field, out)))
}

//! HTTP fields of a decision: they tell a client about the limits that its request met.
//!
//! ```text
//!  RateLimit-Policy: "burst";q=10;w=5, "bytes";q=65536;qu="content-bytes";w=60     a quota of q units in w seconds
//!  RateLimit: "burst";r=3;t=4, "bytes";r=1204;t=51                                 r units are left for t seconds
//!  Retry-After: 4                                                                  seconds
//!  X-RateLimit-Limit: 10    X-RateLimit-Remaining: 3    X-RateLimit-Reset: 4       the same for one limit
//! ```
//!
//! The first two are those of draft-ietf-httpapi-ratelimit-headers (10 and 11 agree on everything here): lists of
//! structured fields (RFC 9651), with one member per policy. Retry-After is that of RFC 9110, in seconds. The last
//! three have no standard; their reset is in seconds from now, as on the most common servers.
//!
//! # What the fields say
//!
//! | Decision | RateLimit member, X-RateLimit | Retry-After |
//! |---|---|---|
//! | conforming | what is left; t until the whole burst is back | none |
//! | non-conforming | what is left; t as Retry-After | the time to wait; of several, the longest |
//! | never | what is left; t until the whole burst is back | none, and none for the other policies: no wait helps |
//! | contended | none: nothing is known | at least 1 |
//! | peek of cost 0 in debt | as conforming | none: it refuses nobody |
//! | shadow flag | none: the client is not held to it | none: it passes |
//! | any of a limit in shadow mode | none, and none in RateLimit-Policy | as without shadow mode |
//! | unlimited | none | none: it passes |
//!
//! Seconds are rounded up, so that a client that comes back when it was told is not refused again; units are rounded
//! down. If there is a Retry-After, no t is longer, as the draft asks. t is left out if the whole burst is there. A
//! number of more than 15 digits becomes 999999999999999, the largest number of structured fields. A policy without a
//! quota, or of an unlimited limit, has no member in RateLimit-Policy. A field without a value is left out.
//!
//! X-RateLimit describes one limit only: the one with the longest refusal, or else the one with the least left.
//!
//! Nothing is allocated: text goes to any [`core::fmt::Write`], number by number. Each number costs one division.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

mod policy;

use core::fmt::{self, Write};

use crate::answer::Verdict;
use crate::text::Text;
use crate::time::seconds_up;

#[allow(unused_imports)] // the C layer's
pub(crate) use policy::Said;
pub use policy::{HttpError, Policy};

/// The largest integer of structured fields: 15 digits.
const MOST: u64 = 999_999_999_999_999;

/// The most policies in one response.
///
/// ```
/// use tatcell::http::{Fields, HttpError, Policy, MAX_POLICIES};
/// let policies = [Policy::new("burst")?; MAX_POLICIES + 1];
/// assert!(Fields::new(1_000, &policies[..MAX_POLICIES]).is_ok());
/// assert_eq!(Fields::new(1_000, &policies).unwrap_err(), HttpError::TooManyPolicies);
/// # Ok::<(), HttpError>(())
/// ```
pub const MAX_POLICIES: usize = 8;

/// Names a field of a response.
///
/// ```
/// use tatcell::http::Field;
/// assert_eq!([Field::RateLimit, Field::RetryAfter].map(Field::name), ["RateLimit", "Retry-After"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `RateLimit`: what is left, and for how long.
    RateLimit,
    /// `RateLimit-Policy`: the quotas. It is the same in every response, so it can be made once.
    RateLimitPolicy,
    /// `Retry-After`: seconds until the same request conforms.
    RetryAfter,
    /// `X-RateLimit-Limit`: the burst.
    XLimit,
    /// `X-RateLimit-Remaining`: what is left.
    XRemaining,
    /// `X-RateLimit-Reset`: seconds from now until the burst is back, or the request conforms.
    XReset,
}

impl Field {
    /// All fields, in the order of a response.
    pub const ALL: [Field; 6] = [
        Field::RateLimitPolicy,
        Field::RateLimit,
        Field::RetryAfter,
        Field::XLimit,
        Field::XRemaining,
        Field::XReset,
    ];

    /// Returns the name before the colon.
    pub const fn name(self) -> &'static str {
        match self {
            Field::RateLimit => "RateLimit",
            Field::RateLimitPolicy => "RateLimit-Policy",
            Field::RetryAfter => "Retry-After",
            Field::XLimit => "X-RateLimit-Limit",
            Field::XRemaining => "X-RateLimit-Remaining",
            Field::XReset => "X-RateLimit-Reset",
        }
    }
}

/// Writes the fields of one response, for one decision or for all decisions of a request.
///
/// ```
/// use tatcell::http::{Field, Fields, Policy};
/// use tatcell::{limit, Cell, Limit};
/// static LIMIT: Limit = limit!(2 per 1_000, burst 10); // ticks are milliseconds
/// static CELL: Cell = Cell::new();
/// let decided = [Policy::new("burst")?.limit(&LIMIT.info()).decision(&CELL.check_ex(&LIMIT, 0, 7, 0))];
/// let mut line = String::new();
/// Fields::new(1_000, &decided)?.write_lines(&[Field::RateLimit], &mut line)?;
/// assert_eq!(line, "RateLimit: \"burst\";r=3;t=4\r\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    ticks_per_second: u64,
    policies: &'a [Policy<'a>],
}

impl<'a> Fields<'a> {
    /// Takes the frequency of the caller's clock, and the policies with their decisions.
    ///
    /// # Errors
    /// [`HttpError::ZeroFrequency`]; [`HttpError::TooManyPolicies`].
    pub const fn new(ticks_per_second: u64, policies: &'a [Policy<'a>]) -> Result<Fields<'a>, HttpError> {
        if ticks_per_second == 0 {
            Err(HttpError::ZeroFrequency)
        } else if policies.len() > MAX_POLICIES {
            Err(HttpError::TooManyPolicies)
        } else {
            Ok(Fields { ticks_per_second, policies })
        }
    }

    /// Writes the value of one field; writes nothing if it has none.
    ///
    /// # Errors
    /// Those of `out`, which then holds a part of the value.
    pub fn write_value<W: Write + ?Sized>(&self, field: Field, out: &mut W) -> fmt::Result {
        self.value(field, &mut Text(|text: &str| out.write_str(text)))
    }

    /// Writes these fields in this order, each as `Name: value`, carriage return, line feed. Leaves out fields without
    /// a value.
    ///
    /// # Errors
    /// Those of `out`, which then holds a part of the lines.
    pub fn write_lines<W: Write + ?Sized>(&self, fields: &[Field], out: &mut W) -> fmt::Result {
        let out = &mut Text(|text: &str| out.write_str(text));
        fields.iter().try_for_each(|field| self.line(*field, out))
    }

    /// Writes one line, if the field has a value.
    pub(crate) fn line<F: FnMut(&str) -> fmt::Result>(&self, field: Field, out: &mut Text<F>) -> fmt::Result {
        if !self.has(field) {
            return Ok(());
        }
        out.put(field.name())?;
        out.put(": ")?;
        self.value(field, out)?;
        out.put("\r\n")
    }

    /// Writes one value.
    pub(crate) fn value<F: FnMut(&str) -> fmt::Result>(
        &self,
        field: Field,
        out: &mut Text<F>,
    ) -> fmt::Result {
        let number = match field {
            Field::RateLimit => return self.service_limits(out),
            Field::RateLimitPolicy => return self.quota_policies(out),
            Field::RetryAfter => self.retry_after(),
            Field::XLimit => self.tightest().map(|said| said.burst),
            Field::XRemaining => self.tightest().map(|said| said.remaining),
            Field::XReset => self.tightest().map(|said| self.effective_window(said)),
        };
        number.map_or(Ok(()), |number| out.number(number.min(MOST)))
    }

    /// Returns whether the field has a value.
    fn has(&self, field: Field) -> bool {
        match field {
            Field::RateLimitPolicy => self.policies.iter().any(Policy::is_bounded),
            Field::RetryAfter => self.retry_after().is_some(),
            _ => self.tightest().is_some(),
        }
    }

    fn quota_policies<F: FnMut(&str) -> fmt::Result>(&self, out: &mut Text<F>) -> fmt::Result {
        let mut between = "";
        for policy in self.policies.iter().filter(|policy| policy.is_bounded()) {
            out.put(between)?;
            out.string(policy.name)?;
            parameter(out, ";q=", policy.quota)?;
            if let Some(unit) = policy.unit {
                out.put(";qu=")?;
                out.string(unit)?;
            }
            if policy.window != 0 {
                parameter(out, ";w=", self.seconds(policy.window))?;
            }
            out.partition(policy.partition)?;
            between = ", ";
        }
        Ok(())
    }

    fn service_limits<F: FnMut(&str) -> fmt::Result>(&self, out: &mut Text<F>) -> fmt::Result {
        let mut between = "";
        for policy in self.policies {
            let Some(said) = policy.binding() else { continue };
            out.put(between)?;
            out.string(policy.name)?;
            parameter(out, ";r=", said.remaining)?;
            let seconds = self.effective_window(said);
            if seconds != 0 {
                parameter(out, ";t=", seconds)?;
            }
            out.partition(policy.partition)?;
            between = ", ";
        }
        Ok(())
    }

    /// Returns the seconds to wait; `None` if nothing was refused, or if no wait helps.
    fn retry_after(&self) -> Option<u64> {
        let mut longest = None;
        for said in self.policies.iter().filter_map(|policy| policy.said.as_ref()) {
            let seconds = match said.verdict {
                Verdict::Conforming => continue,
                Verdict::Never => return None,
                Verdict::NonConforming => self.seconds(said.retry_after).max(1),
                Verdict::Contended => 1,
            };
            longest = longest.max(Some(seconds));
        }
        longest
    }

    /// Returns the seconds in which the client can use no more than what is left.
    fn effective_window(&self, said: &Said) -> u64 {
        let seconds = match said.verdict {
            Verdict::NonConforming => self.seconds(said.retry_after),
            _ => self.seconds(said.reset_after),
        };
        self.retry_after().map_or(seconds, |most| seconds.min(most))
    }

    /// Returns the decision that X-RateLimit describes: the tightest one, or the first of several.
    fn tightest(&self) -> Option<&'a Said> {
        let mut found: Option<&Said> = None;
        for said in self.policies.iter().filter_map(Policy::binding) {
            if found.is_none_or(|found| said.weight() > found.weight()) {
                found = Some(said);
            }
        }
        found
    }

    /// Rounds up: a client that comes a moment too early would be refused again.
    fn seconds(&self, ticks: u64) -> u64 {
        seconds_up(ticks, self.ticks_per_second)
    }
}

/// Writes a parameter of a member.
fn parameter<F: FnMut(&str) -> fmt::Result>(out: &mut Text<F>, key: &str, number: u64) -> fmt::Result {
    out.put(key)?;
    out.number(number.min(MOST))
}

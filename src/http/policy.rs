//! A limit as clients see it: its name, quota and window, and its decision.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use core::fmt;

use crate::answer::{Decision, Verdict};
use crate::limit::{Algorithm, LimitInfo};
use crate::text::is_string;

/// Says why fields cannot be made.
///
/// ```
/// use tatcell::http::{HttpError, Policy};
/// assert_eq!(Policy::new("naïve").unwrap_err(), HttpError::BadName);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpError {
    /// A name or unit has a character outside of 0x20 to 0x7e, which a structured-field string cannot have.
    BadName,
    /// The clock has 0 ticks per second.
    ZeroFrequency,
    /// There are more than [`MAX_POLICIES`](super::MAX_POLICIES) policies.
    TooManyPolicies,
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HttpError::BadName => "a name or unit has a character outside of 0x20 to 0x7e",
            HttpError::ZeroFrequency => "the clock has 0 ticks a second: give its frequency",
            HttpError::TooManyPolicies => "there are more than 8 policies",
        })
    }
}

impl core::error::Error for HttpError {}

/// The parts of a decision that the fields report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub verdict: Verdict,
    pub flags: u32,
    pub burst: u64,
    pub remaining: u64,
    pub retry_after: u64,
    pub reset_after: u64,
}

impl Said {
    /// Returns whether the decision holds the client to anything that is known.
    const fn binds(&self) -> bool {
        self.burst != u64::MAX
            && self.flags & Decision::SHADOW == 0
            && !matches!(self.verdict, Verdict::Contended)
    }

    /// Orders decisions for X-RateLimit: the longest refusal first, then the least left.
    pub(super) const fn weight(&self) -> (u64, u64) {
        let refusal = match self.verdict {
            Verdict::Conforming | Verdict::Contended => 0,
            Verdict::NonConforming => self.retry_after,
            Verdict::Never => u64::MAX,
        };
        (refusal, u64::MAX.wrapping_sub(self.remaining))
    }
}

/// Names a limit for clients, and holds its decision.
///
/// ```
/// use tatcell::http::{Field, Fields, Policy};
/// use tatcell::{limit, Cell, Limit};
///
/// static LIMIT: Limit = limit!(2 per 1_000, burst 10); // ticks are milliseconds
/// static CELL: Cell = Cell::new();
///
/// let policy = Policy::new("burst")?.limit(&LIMIT.info());
/// let decided = policy.decision(&CELL.check_ex(&LIMIT, 0, 7, 0));
/// let mut lines = heapless::String::<200>::new();
/// Fields::new(1_000, &[decided])?.write_lines(&Field::ALL, &mut lines)?;
/// assert_eq!(
///     lines,
///     "RateLimit-Policy: \"burst\";q=10;w=5\r\nRateLimit: \"burst\";r=3;t=4\r\n\
///      X-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 3\r\nX-RateLimit-Reset: 4\r\n"
/// );
/// let refused = policy.decision(&CELL.check_ex(&LIMIT, 100, 7, 0));
/// let mut wait = heapless::String::<20>::new();
/// Fields::new(1_000, &[refused])?.write_value(Field::RetryAfter, &mut wait)?;
/// assert_eq!(wait, "2"); // 1900 ms, rounded up
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy<'a> {
    pub(super) name: &'a str,
    pub(super) unit: Option<&'a str>,
    pub(super) partition: Option<&'a [u8]>,
    /// In units; 0 = not given, `u64::MAX` = unlimited or in shadow mode: no member in any field.
    pub(super) quota: u64,
    /// In ticks; 0 = not given.
    pub(super) window: u64,
    pub(super) said: Option<Said>,
}

impl<'a> Policy<'a> {
    /// The empty policy.
    #[allow(dead_code)] // the C layer fills an array of them
    pub(crate) const EMPTY: Policy<'static> =
        Policy { name: "", unit: None, partition: None, quota: 0, window: 0, said: None };

    /// Makes a policy with a name, by which clients tell it from others: a String of structured fields.
    ///
    /// # Errors
    /// [`HttpError::BadName`]: a character outside of 0x20 to 0x7e. Quotes and backslashes are escaped.
    pub const fn new(name: &'a str) -> Result<Policy<'a>, HttpError> {
        if !is_string(name) {
            return Err(HttpError::BadName);
        }
        Ok(Policy { name, ..Policy::EMPTY })
    }

    /// Takes quota and window from a limit: its burst, and the time in which a whole burst drains. That promises no
    /// more than the limit: a client that sends the quota in each window keeps to the limit, even all at once.
    ///
    /// For limits that count in windows it takes their length. A decaying level has no window. A limit in
    /// [shadow mode](crate::LimitSpec::shadow) has no member in any field.
    pub const fn limit(self, info: &LimitInfo) -> Policy<'a> {
        if info.shadow {
            return self.quota(u64::MAX);
        }
        match info.algorithm {
            Algorithm::FixedWindow | Algorithm::SlidingCounter | Algorithm::QuotaLinear => {
                return self.quota(info.burst).window(info.period);
            }
            Algorithm::Decay => return self.quota(info.burst),
            _ => {}
        }
        // Below 2^62, which the limit has checked; 0 if it is unlimited.
        let drained = (info.burst as u128).wrapping_mul(info.emission_q as u128);
        let ticks = if info.resolution < 0 {
            drained.wrapping_shl(info.resolution.unsigned_abs())
        } else {
            let part = 1u128.wrapping_shl(info.resolution.unsigned_abs()).wrapping_sub(1);
            drained.wrapping_add(part).wrapping_shr(info.resolution.unsigned_abs())
        };
        let window = if ticks > u64::MAX as u128 { u64::MAX } else { ticks as u64 };
        self.quota(info.burst).window(window)
    }

    /// Sets how many units a window has; 0 = not given, `u64::MAX` = unlimited.
    pub const fn quota(mut self, units: u64) -> Policy<'a> {
        self.quota = units;
        self
    }

    /// Sets how long the window is, in ticks; 0 = not given.
    pub const fn window(mut self, ticks: u64) -> Policy<'a> {
        self.window = ticks;
        self
    }

    /// Names the unit if it is not a request: `content-bytes`, `concurrent-requests`, or another one of the registry.
    ///
    /// # Errors
    /// [`HttpError::BadName`]: a character outside of 0x20 to 0x7e.
    pub const fn unit(mut self, unit: &'a str) -> Result<Policy<'a>, HttpError> {
        if !is_string(unit) {
            return Err(HttpError::BadName);
        }
        self.unit = Some(unit);
        Ok(self)
    }

    /// Says which part of the clients, users or resources the quota is for: any bytes, shown in Base64. The client sees
    /// them, so they must hold nothing secret.
    pub const fn partition(mut self, key: &'a [u8]) -> Policy<'a> {
        self.partition = Some(key);
        self
    }

    /// Adds the decision. A policy without a decision appears only in `RateLimit-Policy`.
    ///
    /// A [peek of cost 0](Decision::in_debt), as for a status page, refuses nobody, so there is no `Retry-After`.
    pub const fn decision(self, decision: &Decision) -> Policy<'a> {
        self.say(Said {
            verdict: if decision.in_debt { Verdict::Conforming } else { decision.verdict },
            flags: decision.flags,
            burst: decision.burst,
            remaining: decision.remaining,
            retry_after: decision.retry_after,
            reset_after: decision.reset_after,
        })
    }

    /// Returns whether it has a member in `RateLimit-Policy`.
    pub(super) const fn is_bounded(&self) -> bool {
        self.quota != 0 && self.quota != u64::MAX
    }

    /// Returns the decision, if it holds the client to anything.
    pub(super) const fn binding(&self) -> Option<&Said> {
        match &self.said {
            Some(said) if said.binds() && self.quota != u64::MAX => Some(said),
            _ => None,
        }
    }

    pub(crate) const fn say(mut self, said: Said) -> Policy<'a> {
        self.said = Some(said);
        self
    }
}

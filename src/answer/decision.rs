//! The full answer of one request.

use super::outcome::Outcome;
use super::permit::Permit;
use super::verdict::Verdict;

/// Says how the table accounted for a decision.
///
/// ```
/// use tatcell::{FullPolicy, Line, LimitSpec, Request, Table, TableOptions, Tracking};
/// let (spec, memory) = (LimitSpec::new(1, 1_000, 5), [const { Line::EMPTY }; 4]); // one set of 16 slots
/// let options = TableOptions::new(spec).seed(*b"16 random bytes!").policy(FullPolicy::Admit);
/// let table = Table::init(&memory, &options)?;
/// let limit = table.limit(&spec)?;
/// let ask = |key: u8| {
///     let request = Request { limit: &limit, now: 0, cost: 1, room: 0 };
///     Ok(table.check_ex(&request, table.hash(&[key])?, None)?.tracking)
/// };
/// let tracked = (0..17).map(ask).collect::<Result<Vec<_>, tatcell::TableError>>()?;
/// assert_eq!(tracked[..16], [Tracking::Tracked; 16]);
/// assert_eq!(tracked[16], Tracking::Untracked); // the 17th key passes, and nothing is stored
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Tracking {
    /// The key has its own slot, or would have had one: the answer is exact.
    #[default]
    Tracked = 0,
    /// The set was full, and the policy decided without storing anything.
    Untracked = 1,
    /// The set was full. The key took over the slot with the smallest lead, with its debt, or was measured against that
    /// debt and refused.
    Inherited = 2,
    /// The set was full. The key took over the slot with the smallest lead, and that debt was forgiven.
    Forgiven = 3,
}

/// Answers everything about one request: the verdict, what is left, when to come back, and the permit for a refund.
///
/// Times are ticks after now, except `departure`; amounts are units. All fields are valid with every verdict except
/// `Contended`, which reads no consistent state: then all numbers except `cost` and `burst` are 0.
///
/// ```
/// use tatcell::{limit, Cell, Limit};
/// static LIMIT: Limit = limit!(10 per 1_000, burst 20); // ticks are milliseconds
/// static CELL: Cell = Cell::new();
/// let passed = CELL.check_ex(&LIMIT, 0, 15, 0);
/// assert!(passed.passes());
/// assert_eq!((passed.remaining, passed.next_unit, passed.reset_after), (5, 100, 1_500));
/// assert_eq!(CELL.check_ex(&LIMIT, 0, 6, 0).retry_after, 100);
/// ```
#[must_use = "a limiter whose verdict is ignored limits nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The verdict: passes, or why not.
    pub verdict: Verdict,
    /// How the table accounted for the decision.
    pub tracking: Tracking,
    /// Any of [`SOFT`](Decision::SOFT), [`SHADOW`](Decision::SHADOW), [`ELASTIC`](Decision::ELASTIC),
    /// [`BANNED`](Decision::BANNED), [`EXEMPT`](Decision::EXEMPT).
    pub flags: u32,
    /// Index of the limit that decided, if the call had several; else 0.
    pub policy: u32,
    /// The units that the request asked for.
    pub cost: u64,
    /// The burst: the most units that conform at one instant after idle.
    pub burst: u64,
    /// The units that would conform right after this decision, rounded down.
    pub remaining: u64,
    /// Ticks until the same cost conforms: 0 if it conforms now, `u64::MAX` if it never will. With the shadow flag, the
    /// ticks that a limit without shadow mode would have returned, or would have made a reservation wait.
    pub retry_after: u64,
    /// Ticks until `remaining` grows by one; 0 if the burst is full.
    pub next_unit: u64,
    /// Ticks until the whole burst is available again, rounded up.
    pub reset_after: u64,
    /// The tick at which the request may leave: now, or later for a reservation; 0 if it does not pass.
    pub departure: u64,
    /// The record of the charge, for a refund.
    pub permit: Permit,
    /// Whole units that the call charged or gave back, rounded down; 0 if none. A [`charge`](crate::Cell::charge) may
    /// take less than its cost. The penalty of a refused request does not count.
    pub units: u64,
    /// A peek of cost 0 found a debt above the burst. It asked for nothing, so it refuses nobody, and [HTTP
    /// fields](crate::http) have no `Retry-After`: right for a status page.
    pub in_debt: bool,
}

impl Decision {
    /// Passed, but above the soft threshold of the limit.
    pub const SOFT: u32 = 1;
    /// Passed, or left without a wait, only because the limit is in [shadow mode](crate::LimitSpec::shadow). Nothing
    /// was charged, unless it is a reservation that would have waited.
    pub const SHADOW: u32 = 2;
    /// Passed inside the elastic room of this call.
    pub const ELASTIC: u32 = 4;
    /// Refused because a [chain](crate::Chain) with a link of overrides found the key banned, until
    /// `now + retry_after`.
    pub const BANNED: u32 = 8;
    /// Passed because a [chain](crate::Chain) with a link of overrides found the key exempt; nothing was charged.
    pub const EXEMPT: u32 = 16;

    /// Makes the answer of a request that lost every attempt to other threads.
    pub(crate) const fn contended(cost: u64, burst: u64) -> Decision {
        Decision {
            verdict: Verdict::Contended,
            tracking: Tracking::Tracked,
            flags: 0,
            policy: 0,
            cost,
            burst,
            remaining: 0,
            retry_after: 0,
            next_unit: 0,
            reset_after: 0,
            departure: 0,
            permit: Permit::NONE,
            units: 0,
            in_debt: false,
        }
    }

    /// Returns this as the answer of a reservation that may not leave before `from`. Shadow mode spares it the wait for
    /// its limit alone.
    #[inline(always)]
    pub(crate) const fn not_before(mut self, from: u64) -> Decision {
        if self.flags & Decision::SHADOW != 0 && self.departure < from {
            self.departure = from;
        }
        self
    }

    /// Returns this as the answer of a peek.
    pub(crate) const fn peeked(self) -> Decision {
        let refused = matches!(self.verdict, Verdict::NonConforming) && self.flags & Decision::BANNED == 0;
        Decision { in_debt: self.cost == 0 && refused, ..self }
    }

    /// Returns the answer of a refund that gave `units` back, from a peek after it.
    pub(crate) const fn refunded(self, now: u64, units: u64) -> Decision {
        let verdict = Verdict::Conforming;
        Decision { verdict, flags: 0, retry_after: 0, departure: now, units, in_debt: false, ..self }
    }

    /// Returns the tokens that are left in the bucket: `remaining`, in the words of a token bucket.
    #[inline]
    pub const fn tokens(&self) -> u64 {
        self.remaining
    }

    /// Returns the units in the bucket, in the words of a leaky bucket as a meter: `burst - remaining`, rounded up to
    /// whole units. Never more than the burst, even if elastic room or a debt lies above it.
    #[inline]
    pub const fn level(&self) -> u64 {
        self.burst.saturating_sub(self.remaining)
    }

    /// Returns whether the request may pass.
    #[inline]
    pub const fn passes(&self) -> bool {
        self.verdict.passes()
    }

    /// Returns the verdict with only its retry time.
    #[inline]
    pub const fn outcome(&self) -> Outcome {
        Outcome::new(self.verdict, self.retry_after)
    }
}

//! The full answer of one request.

use super::outcome::Outcome;
use super::permit::Permit;
use super::verdict::Verdict;

/// Says how the table accounted for a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Tracking {
    /// The key has (or would have had) its own slot: the answer is the exact one.
    #[default]
    Tracked = 0,
    /// The set was full and the policy decided without storing anything.
    Untracked = 1,
    /// The set was full; the key took over the slot with the smallest lead, debt included, or was measured
    /// against it and refused.
    Inherited = 2,
    /// The set was full; the key took over the slot with the smallest lead, whose debt was forgiven.
    Forgiven = 3,
}

/// Answers everything about one request: verdict, what is left, when to come back, and the permit for a refund.
///
/// Times are ticks after now, but for `departure`; amounts are units. Every field is true on every verdict except
/// contended, where nothing was read consistently and all amounts but the burst are 0.
#[must_use = "a limiter whose verdict is ignored limits nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Passes, or why not.
    pub verdict: Verdict,
    /// How the table accounted for it.
    pub tracking: Tracking,
    /// Any of [`SOFT`](Decision::SOFT), [`SHADOW`](Decision::SHADOW), [`ELASTIC`](Decision::ELASTIC),
    /// [`BANNED`](Decision::BANNED), [`EXEMPT`](Decision::EXEMPT).
    pub flags: u32,
    /// Index of the limit that decided, for several limits in one call; 0 otherwise.
    pub policy: u32,
    /// Units the request asked for.
    pub cost: u64,
    /// The burst: most units at one instant after idle.
    pub burst: u64,
    /// Units that would conform right after this decision, rounded down.
    pub remaining: u64,
    /// 0 when conforming, `u64::MAX` when never; otherwise ticks until the same cost conforms. With the shadow flag it
    /// is what would have been answered.
    pub retry_after: u64,
    /// Ticks until remaining grows by one; 0 when the burst is full.
    pub next_unit: u64,
    /// Ticks until the whole burst is available again, rounded up.
    pub reset_after: u64,
    /// Tick at which the request may leave: now, or later for a reservation; 0 when it does not pass.
    pub departure: u64,
    /// What was charged, for a refund.
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
    /// Passed only because the limit is in shadow mode; nothing was charged.
    pub const SHADOW: u32 = 2;
    /// Passed inside the elastic room of this call.
    pub const ELASTIC: u32 = 4;
    /// Refused because its key is banned until `now + retry_after`; in a [chain](crate::Chain) with a link of
    /// overrides.
    pub const BANNED: u32 = 8;
    /// Passed because its key is exempt; nothing was charged. As [`BANNED`](Decision::BANNED).
    pub const EXEMPT: u32 = 16;

    /// The answer when every attempt was lost to other threads.
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

    /// The answer of a peek.
    pub(crate) const fn peeked(self) -> Decision {
        let refused = matches!(self.verdict, Verdict::NonConforming) && self.flags & Decision::BANNED == 0;
        Decision { in_debt: self.cost == 0 && refused, ..self }
    }

    /// The answer of a refund that gave `units` back, from a peek behind it.
    pub(crate) const fn refunded(self, now: u64, units: u64) -> Decision {
        let verdict = Verdict::Conforming;
        Decision { verdict, flags: 0, retry_after: 0, departure: now, units, in_debt: false, ..self }
    }

    /// The tokens left in the bucket: `remaining`, in the words of a token bucket.
    #[inline]
    pub const fn tokens(&self) -> u64 {
        self.remaining
    }

    /// The units in the bucket, in the words of a leaky bucket as a meter: the burst less what remains, rounded up to
    /// whole units. At most the burst, also where elastic room or a debt lie above it.
    #[inline]
    pub const fn level(&self) -> u64 {
        self.burst.saturating_sub(self.remaining)
    }

    /// Says whether the request may pass.
    #[inline]
    pub const fn passes(&self) -> bool {
        self.verdict.passes()
    }

    /// Gives the verdict with the retry time alone.
    #[inline]
    pub const fn outcome(&self) -> Outcome {
        Outcome::new(self.verdict, self.retry_after)
    }
}

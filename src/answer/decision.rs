//! The full answer of one request.

use super::outcome::{Outcome, CONFORMING, CONTENDED, NEVER, NON_CONFORMING};
use super::permit::Permit;

/// Says how the table accounted for a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
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
/// Times are ticks after now; amounts are units. Every field is true on every verdict except contended, where nothing
/// was read consistently and all amounts are 0. The layout is part of the C ABI.
#[must_use = "a limiter whose verdict is ignored limits nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Decision {
    /// Size of this structure in bytes.
    pub size: u32,
    /// 0 passes, 1 non-conforming, 2 never, 3 contended.
    pub verdict: i32,
    /// Flags: 1 soft (above the soft threshold), 2 shadow (would not have passed), 4 elastic (inside the room).
    pub flags: u32,
    /// How the table accounted for it: 0 tracked, 1 untracked, 2 inherited, 3 forgiven.
    pub tracking: u32,
    /// Index of the limit that decided, for several limits in one call; 0 otherwise.
    pub policy: u32,
    /// Units the request asked for.
    pub cost: u32,
    /// The burst: most units at one instant after idle.
    pub limit: u64,
    /// Units that would conform right after this decision, rounded down.
    pub remaining: u64,
    /// 0 when conforming, all ones when never; otherwise ticks until the same cost conforms. With the shadow flag it
    /// is what would have been answered.
    pub retry_after: u64,
    /// Ticks until remaining grows by one; 0 when the burst is full.
    pub next_unit: u64,
    /// Ticks until the whole burst is available again, rounded up.
    pub reset_after: u64,
    /// What was charged, for a refund.
    pub permit: Permit,
}

impl Decision {
    /// Passed, but above the soft threshold of the limit.
    pub const SOFT: u32 = 1;
    /// Passed only because the limit is in shadow mode; nothing was charged.
    pub const SHADOW: u32 = 2;
    /// Passed inside the elastic room of this call.
    pub const ELASTIC: u32 = 4;

    /// The answer when every attempt was lost to other threads.
    pub(crate) const fn contended(cost: u32, limit: u64) -> Decision {
        Decision {
            size: core::mem::size_of::<Decision>() as u32,
            verdict: CONTENDED,
            flags: 0,
            tracking: Tracking::Tracked as u32,
            policy: 0,
            cost,
            limit,
            remaining: 0,
            retry_after: 0,
            next_unit: 0,
            reset_after: 0,
            permit: Permit::NONE,
        }
    }

    /// Says whether the request may pass.
    #[inline]
    pub const fn passes(&self) -> bool {
        self.verdict == CONFORMING
    }

    /// Gives the verdict alone.
    #[inline]
    pub const fn outcome(&self) -> Outcome {
        match self.verdict {
            CONFORMING => Outcome::Conforming,
            NON_CONFORMING => Outcome::NonConforming { retry_after: self.retry_after },
            NEVER => Outcome::Never,
            _ => Outcome::Contended,
        }
    }
}

/// Answers a request to send later: when it may leave, or why it cannot.
#[must_use = "a departure time that is ignored shapes nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// The units are reserved and may leave at `departure`, a tick of the caller's clock (`now` if at once).
    Reserved {
        /// Tick at which the request may leave.
        departure: u64,
        /// What was charged, should the sender give up.
        permit: Permit,
    },
    /// It would have to wait longer than the limit's maximum delay; nothing was charged.
    TooLong {
        /// Ticks until the same request would be accepted.
        retry_after: u64,
    },
    /// The cost is greater than the burst; nothing was charged.
    Never,
    /// Other threads won every attempt; nothing was charged.
    Contended,
}

//! The answers that callers get, and what a node does without the store.

use std::time::Duration;

use crate::script::Fault;
use crate::split::LimitError;

/// Answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Verdict {
    /// Within the limit; the cost was charged.
    Pass,
    /// Beyond the limit; nothing was charged.
    Deny {
        /// When it may conform, if nothing else arrives: as the store said, or the time of a probe while it is away.
        retry_after: Duration,
    },
    /// The cost is above what this limit can ever pass.
    Never,
    /// Not decided: the store is being asked.
    Pending,
    /// Neither decided nor asked: the queue or the lines of the node are full. Nothing was charged.
    Overloaded,
}

impl Verdict {
    /// Returns whether the request passes.
    pub fn passes(self) -> bool {
        self == Verdict::Pass
    }
}

/// Answers a request that was [`Pending`](Verdict::Pending).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The caller's token.
    pub token: u64,
    /// Any verdict except Pending.
    pub verdict: Verdict,
    /// The reading of the node's clock for which it was decided.
    pub reading: u64,
}

/// Says why a limit was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeError {
    /// No limit of this node has this name.
    Unknown,
    /// The limit cannot be shared.
    Limit(LimitError),
    /// Another change is on its way, or was made meanwhile: read the present limit, and then try again.
    Other {
        /// The time until it is in force.
        in_force_after: Duration,
    },
    /// The store is away.
    Away,
    /// The store refuses the change.
    Store(Fault),
    /// No answer came in the given time: the change may have been made.
    Unanswered,
}

impl std::fmt::Display for ChangeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ChangeError::Unknown => f.write_str("no limit of this node has this name"),
            ChangeError::Limit(error) => error.fmt(f),
            ChangeError::Other { in_force_after } => {
                write!(
                    f,
                    "another change of the limit comes into force in {in_force_after:?}; try again then"
                )
            }
            ChangeError::Away => f.write_str("the store is away; try again when it is back"),
            ChangeError::Store(fault) => write!(f, "the store did not make the change: {fault:?}"),
            ChangeError::Unanswered => {
                f.write_str("no answer came in time; the change may have been made: read the limit to see")
            }
        }
    }
}

impl std::error::Error for ChangeError {}

/// Says what a node does with a request that neither its line nor its reserve can pass while the store is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Down {
    /// Denies it. The bound R w + B stays exact.
    #[default]
    Reserve,
    /// Passes it from a share of the store's rate, R_s / N for each node and key, which starts empty. The bound stays
    /// exact if all nodes are cut off; if k of N are, it is R_s w (1 + k/N) + 2 B.
    Share,
    /// Passes it, without a bound, and counts it.
    Open,
}

//! What callers are told, and what a node does without the store.

use std::time::Duration;

use crate::script::Fault;
use crate::split::LimitError;

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Verdict {
    /// Within the limit: it was charged.
    Pass,
    /// Beyond the limit; nothing was charged.
    Deny {
        /// When it may conform, if nothing else arrives: as the store said, or the time of a probe while it is away.
        retry_after: Duration,
    },
    /// A cost that this limit can never pass.
    Never,
    /// Not decided: the store is asked.
    Pending,
    /// Neither decided nor asked: the queue or the lines of the node are full. Nothing was charged.
    Overloaded,
}

impl Verdict {
    /// Whether the request may go on.
    pub fn passes(self) -> bool {
        self == Verdict::Pass
    }
}

/// The answer to a request that was [`Pending`](Verdict::Pending).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What the caller gave.
    pub token: u64,
    /// Anything but Pending.
    pub verdict: Verdict,
    /// The reading of the node's clock for which it was decided.
    pub reading: u64,
}

/// Why a limit was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeError {
    /// No limit of this node has this name.
    Unknown,
    /// The limit cannot be shared so.
    Limit(LimitError),
    /// Another change is on its way, or was made meanwhile: look at what the limit is, and try again then.
    Other {
        /// When it is in force.
        in_force_after: Duration,
    },
    /// The store is away.
    Away,
    /// The store refuses.
    Store(Fault),
    /// No answer in the time given: the change may have been made.
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

/// What a node does with a request that neither its line nor its reserve can pass while the store is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Down {
    /// Denies. The bound R w + B stays exact.
    #[default]
    Reserve,
    /// Passes a node's part of the store's rate, R_s / N for each key, started empty. Exact where all nodes are cut
    /// off; where k of N are, up to R_s w (1 + k/N) + 2 B.
    Share,
    /// Passes. No bound; counted.
    Open,
}

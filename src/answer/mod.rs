//! What a decision answers: the short [`Outcome`], the full [`Decision`], and the [`Permit`] a refund needs.

mod decision;
mod outcome;
mod permit;
mod step;
mod verdict;

pub use decision::{Decision, Tracking};
pub use outcome::Outcome;
pub use permit::Permit;
pub(crate) use step::{Answer, Numbers, Place, Step};
pub use verdict::Verdict;

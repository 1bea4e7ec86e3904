//! What a decision answers: the short [`Outcome`], the full [`Decision`], and the [`Permit`] a refund needs.

mod decision;
mod outcome;
mod permit;
mod step;

pub use decision::{Decision, Reservation, Tracking};
pub use outcome::Outcome;
pub(crate) use outcome::{CONFORMING, NEVER, NON_CONFORMING};
pub use permit::Permit;
pub(crate) use step::{Answer, Step};

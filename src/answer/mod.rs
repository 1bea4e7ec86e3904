//! The answers: the short [`Outcome`], the full [`Decision`], the [`Permit`] that a refund needs, and the [`Marking`]
//! of a meter.

mod decision;
mod marking;
mod outcome;
mod permit;
mod step;
mod verdict;

pub use decision::{Decision, Tracking};
pub use marking::{Colour, Marking};
pub use outcome::Outcome;
pub use permit::Permit;
pub(crate) use step::{units_of, Answer, Numbers, Place, Step};
pub use verdict::Verdict;

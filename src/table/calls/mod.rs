//! One request in one call: the short answer, the full answer, and one request under two limits; units given back.

mod check;
mod credit;
pub(super) mod full_answer;
pub(super) mod look;
pub(super) mod pair;

//! One request in one call: the short answer, the full answer, and one request under two limits.

mod check;
pub(super) mod full_answer;
pub(super) mod look;
pub(super) mod pair;

//! One request in one call: the short answer, the full one, and one key under two limits.

mod check;
pub(super) mod full_answer;
pub(super) mod pair;

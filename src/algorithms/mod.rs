//! The algorithms: pure functions of (state, parameters, now, cost). No atomic, no unsafe, no clock; one file each.

pub(crate) mod gcra;

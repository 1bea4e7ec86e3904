//! The algorithms: pure functions of (state, parameters, now, cost). No atomic, no unsafe, no clock; one file each.
//!
//! What drives a word knows no algorithm: it decodes how far the word's payload lies ahead of `now` (0 where it has
//! expired), asks an [`Operation`] what becomes of that, and stores the result, again as a distance from `now`. While a
//! payload lies ahead its key is busy; from then on the word is as good as absent. That is all that cells and the
//! table's insert protocol know: reuse, sweeps, takeovers and statistics of strangers' words need no more.
//!
//! `gcra` is the one that the hot paths call by name. The others are listed in `counted`, which dispatches at run time;
//! none names another, and all stand on `state`; but `sliding_log`, whose state is many words, which `cell` drives.
#![forbid(unsafe_code)]

mod counted;
mod decay;
mod exp2;
mod fixed_window;
pub(crate) mod gcra;
pub(crate) mod log_gate;
#[cfg(test)]
mod merge_tests;
pub(crate) mod meters;
mod quota_linear;
mod sliding_counter;
pub(crate) mod sliding_log;
mod state;
#[cfg(all(test, not(any(tatcell_loom, tatcell_step))))]
mod w16_tests;

pub(crate) use counted::{change, decision, keeps, merge, no_less, peek, refund, step, Call};
pub use state::Change;
pub(crate) use state::{Kind, Op, Operation, State};

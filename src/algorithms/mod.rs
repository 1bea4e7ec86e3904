//! The algorithms: pure functions of (state, parameters, now, cost). No atomic, no unsafe, no clock; one file each.
//!
//! The code that drives a word knows no algorithm. It decodes how far the word's payload lies ahead of `now` (0 if it
//! has expired), asks an [`Operation`] for the next state, and stores that, again as a distance from `now`. While a
//! payload lies ahead, its key is busy; after that the word is as good as absent. Cells and the table's insert protocol
//! know no more than that, and it is enough to reuse, sweep, take over or count the words of other keys.
//!
//! Hot paths call `gcra` by name. `counted` lists the others and dispatches at run time; none of them names another,
//! and all build on `state`. `log_gate`, `key_log`, `meters` and `sliding_log` stand alone: each has a type of its own
//! in `cell`.
#![forbid(unsafe_code)]

mod counted;
mod decay;
mod exp2;
mod fixed_window;
pub(crate) mod gcra;
pub(crate) mod key_log;
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

pub(crate) use counted::{change, decision, keeps, keeps_word, merge, no_less, peek, refund, step, Call};
pub use state::Change;
pub(crate) use state::{Kind, Op, Operation, State};

//! The algorithms: pure functions of (state, parameters, now, cost). No atomic, no unsafe, no clock; one file each.
//!
//! What drives a word knows no algorithm: it decodes how far the word's payload lies ahead of `now` (0 where it has
//! expired), asks an [`Operation`] what becomes of that, and stores the result, again as a distance from `now`. While a
//! payload lies ahead its key is busy; from then on the word is as good as absent. That is all that cells and the
//! table's insert protocol know: reuse, sweeps, takeovers and statistics of strangers' words need no more.

pub(crate) mod gcra;
pub(crate) mod meters;

use crate::answer::Step;

/// One operation of an algorithm, on the state of one key.
pub(crate) trait Operation {
    /// What the operation does to a state that lies `lead` q-units ahead: the answer, and how far ahead the next one
    /// lies if there is one. 0 is the state of an absent key.
    fn step(&self, lead: u64) -> Step;

    /// What the operation does to an absent key: as `step(0)`, with the common case first.
    fn first_step(&self) -> Step;

    /// Does its limit pass what it would refuse, flagged and uncharged?
    fn shadows(&self) -> bool;

    /// How far ahead a key that has just been inserted lies, where the claim on its slot lies `claim` ahead: at least
    /// that, so that the payload of a slot never falls, and never less than `lead`.
    fn commit_lead(&self, lead: u64, claim: u64) -> u64;
}

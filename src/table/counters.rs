//! Counting decisions, in memory of the caller.

use crate::answer::{Decision, Outcome, Tracking, CONFORMING, NEVER, NON_CONFORMING};

/// Counts decisions. Caller-owned, one per thread, so that no cache line is shared; all zero is a valid start.
///
/// The layout is part of the C ABI. Counters wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Passed and charged (soft, elastic and untracked ones too).
    pub conforming: u64,
    /// Of the conforming: above the soft threshold.
    pub soft: u64,
    /// Passed only because the limit is in shadow mode.
    pub shadow: u64,
    /// Refused for now.
    pub non_conforming: u64,
    /// Refused for ever: cost above the burst.
    pub never: u64,
    /// No verdict: every swap lost to rivals.
    pub contended: u64,
    /// Decided by the full-set policy without a slot.
    pub untracked: u64,
    /// Measured against an inherited slot.
    pub inherited: u64,
    /// Took a slot over and forgave its debt.
    pub forgiven: u64,
    /// New keys that got a slot.
    pub inserted: u64,
}

impl Counters {
    /// Counts `decided` tracked requests of which `passed` conformed, none of them soft.
    #[inline(always)]
    pub(crate) fn count_plain(&mut self, passed: u32, decided: u32) {
        self.conforming = self.conforming.wrapping_add(passed as u64);
        self.non_conforming = self.non_conforming.wrapping_add(decided.wrapping_sub(passed) as u64);
    }

    pub(crate) fn count(&mut self, d: &Decision, inserted: bool) {
        let add = |n: &mut u64, yes: bool| *n = n.wrapping_add(yes as u64);
        let shadow = d.flags & Decision::SHADOW != 0;
        add(&mut self.conforming, d.verdict == CONFORMING && !shadow);
        add(&mut self.shadow, shadow);
        add(&mut self.soft, d.flags & Decision::SOFT != 0);
        add(&mut self.non_conforming, d.verdict == NON_CONFORMING);
        add(&mut self.never, d.verdict == NEVER);
        add(&mut self.contended, d.outcome() == Outcome::Contended);
        add(&mut self.untracked, d.tracking == Tracking::Untracked as u32);
        add(&mut self.inherited, d.tracking == Tracking::Inherited as u32);
        add(&mut self.forgiven, d.tracking == Tracking::Forgiven as u32);
        add(&mut self.inserted, inserted);
    }
}

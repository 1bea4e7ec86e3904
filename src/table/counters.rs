//! Counts of decisions, in the caller's memory.

use crate::answer::{Decision, Tracking, Verdict};

/// Counts decisions. The caller owns the counters. Use one for each thread, so that threads share no cache line.
/// All-zero memory is a valid start.
///
/// The layout is part of the C ABI. Counters wrap.
///
/// ```
/// use tatcell::{Counters, LimitSpec, Line, Request, Table, TableOptions};
/// let spec = LimitSpec::new(10, 1_000_000_000, 20);
/// let lines = [const { Line::EMPTY }; 66];
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// let limit = table.limit(&spec)?;
/// let (mut counters, hash) = (Counters::default(), table.hash(b"192.0.2.1")?);
/// for _ in 0..25 {
///     let request = Request { limit: &limit, now: 0, cost: 1, room: 0 };
///     let _ = table.check_ex(&request, hash, Some(&mut counters))?;
/// }
/// assert_eq!((counters.conforming, counters.non_conforming, counters.inserted), (20, 5, 1));
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Requests that conform and are charged, including soft, elastic and untracked ones.
    pub conforming: u64,
    /// Conforming requests above the soft threshold.
    pub soft: u64,
    /// Requests that pass, or leave without a wait, only because the limit is in shadow mode.
    pub shadow: u64,
    /// Requests that are refused for now.
    pub non_conforming: u64,
    /// Requests that are refused for ever: their cost is above the burst.
    pub never: u64,
    /// Requests without a verdict, because other threads won every swap.
    pub contended: u64,
    /// Requests without a slot, decided by the policy for full sets.
    pub untracked: u64,
    /// Requests that were measured against an inherited slot.
    pub inherited: u64,
    /// Requests that took over a slot and forgave its debt.
    pub forgiven: u64,
    /// New keys that got a slot.
    pub inserted: u64,
    /// 0; reserved for later counts.
    pub reserved: [u64; 6],
}

impl Counters {
    /// The counters of these words, in the order of the fields.
    #[cfg(feature = "host")]
    pub(crate) const fn of_words(words: [u64; 16]) -> Counters {
        let [conforming, soft, shadow, non_conforming, never, contended, rest @ ..] = words;
        let [untracked, inherited, forgiven, inserted, reserved @ ..] = rest;
        Counters {
            conforming,
            soft,
            shadow,
            non_conforming,
            never,
            contended,
            untracked,
            inherited,
            forgiven,
            inserted,
            reserved,
        }
    }

    /// Adds another thread's counts to these.
    pub fn add(&mut self, other: &Counters) {
        let sum = |n: &mut u64, more: u64| *n = n.wrapping_add(more);
        sum(&mut self.conforming, other.conforming);
        sum(&mut self.soft, other.soft);
        sum(&mut self.shadow, other.shadow);
        sum(&mut self.non_conforming, other.non_conforming);
        sum(&mut self.never, other.never);
        sum(&mut self.contended, other.contended);
        sum(&mut self.untracked, other.untracked);
        sum(&mut self.inherited, other.inherited);
        sum(&mut self.forgiven, other.forgiven);
        sum(&mut self.inserted, other.inserted);
    }

    /// Counts `decided` tracked requests of which `passed` conformed, none of them soft.
    #[inline(always)]
    pub(crate) fn count_plain(&mut self, passed: u32, decided: u32) {
        self.conforming = self.conforming.wrapping_add(passed as u64);
        self.non_conforming = self.non_conforming.wrapping_add(decided.wrapping_sub(passed) as u64);
    }

    /// Counts a verdict that has no decision.
    pub(crate) fn count_verdict(&mut self, verdict: Verdict) {
        let count = match verdict {
            Verdict::Conforming => &mut self.conforming,
            Verdict::NonConforming => &mut self.non_conforming,
            Verdict::Never => &mut self.never,
            Verdict::Contended => &mut self.contended,
        };
        *count = count.wrapping_add(1);
    }

    pub(crate) fn count(&mut self, d: &Decision, inserted: bool) {
        let add = |n: &mut u64, yes: bool| *n = n.wrapping_add(yes as u64);
        let shadow = d.flags & Decision::SHADOW != 0;
        add(&mut self.conforming, d.verdict == Verdict::Conforming && !shadow);
        add(&mut self.shadow, shadow);
        add(&mut self.soft, d.flags & Decision::SOFT != 0);
        add(&mut self.non_conforming, d.verdict == Verdict::NonConforming);
        add(&mut self.never, d.verdict == Verdict::Never);
        add(&mut self.contended, d.verdict == Verdict::Contended);
        add(&mut self.untracked, d.tracking == Tracking::Untracked);
        add(&mut self.inherited, d.tracking == Tracking::Inherited);
        add(&mut self.forgiven, d.tracking == Tracking::Forgiven);
        add(&mut self.inserted, inserted);
    }
}

//! Turns jobs into calls, and answers into pieces, refusals and verdicts. Only the store's thread runs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::counts::{add, count};
use crate::demand::{Demand, Waiting};
use crate::limit_version::{At, LimitVersion};
use crate::line::{Taken, When};
use crate::lines::Found;
use crate::miss::Miss;
use crate::node::{nanos, Job, Node};
use crate::piece::Piece;
use crate::random::Random;
use crate::script::{Ask, Grant};
use crate::store::PROBE_MAX;
use crate::sync::Ordering;
use crate::verdict::{Down, Verdict};

/// One call of a batch, and the jobs that wait for it.
pub(crate) struct Call {
    pub limit: usize,
    pub version: Arc<LimitVersion>,
    pub key: Box<[u8]>,
    pub ask: Ask,
    index: usize,
    jobs: Vec<Job>,
    /// Whether this call owns the line, and lets it go when it is settled.
    last_of_line: bool,
}

/// Units to give back: the limit, the key, the stamp of the grant, how many.
pub(crate) type Unused = (usize, Box<[u8]>, String, u64);

/// The state that the store's thread keeps between batches.
pub(crate) struct Batch {
    demands: Vec<Vec<Demand>>,
    pub unused: Vec<Unused>,
    pub random: Random,
}

/// When to come again if the limit has just changed.
const CHANGED_NS: u64 = 1_000_000;

/// How long a key is not asked for after its own fault.
const FAULT_NS: u64 = 50_000_000;

impl Batch {
    pub(crate) fn new(node: &Node, random: Random) -> Batch {
        let demands = node.limits.iter().map(|l| vec![Demand::default(); l.lines.len()]).collect();
        Batch { demands, unused: Vec::new(), random }
    }

    /// Turns jobs into calls: one a key, or one a request if the limit is strict. Answers what it can at once.
    pub(crate) fn prepare(&mut self, node: &Node, jobs: Vec<Job>, up: bool, now: u64) -> Vec<Call> {
        let mut lines: BTreeMap<(usize, usize, u64), Vec<Job>> = BTreeMap::new();
        for job in jobs {
            lines.entry((job.limit, job.index, job.tag)).or_default().push(job);
        }
        let mut calls = Vec::new();
        for ((limit, index, tag), jobs) in lines {
            let found = node.limits[limit].lines.get(index);
            if !found.line.own_for_store(found.at, tag) {
                jobs.into_iter().for_each(|job| answer(node, job, Verdict::Overloaded, now));
                continue;
            }
            // Some are answered now; those that keep waiting are counted again.
            found.line.waits.anew();
            if up {
                self.calls_of(node, found, jobs, now, &mut calls);
            } else {
                without_store(node, found, jobs, false, now);
                found.line.disown();
            }
        }
        calls
    }

    fn calls_of(&mut self, node: &Node, found: Found<'_>, jobs: Vec<Job>, now: u64, calls: &mut Vec<Call>) {
        let first = &jobs[0];
        let (limit, index, tag, key) = (first.limit, first.index, first.tag, first.key.clone());
        let version = first.version.clone();
        // ORDERING: Relaxed; a time. They were queued before a fault that is not over yet.
        if now < found.line.share_until.load(Ordering::Relaxed) {
            without_store(node, found, jobs, true, now);
            return found.line.disown();
        }
        if !node.limits[limit].goes_by(&version, now) {
            changed(node, jobs, now);
            return found.line.disown();
        }
        let ahead = jobs.iter().any(|job| job.waits_for_nobody());
        // An answer that came after they were queued may be enough for them.
        let mut jobs: Vec<Job> = jobs.into_iter().filter(|job| !job.waits_for_nobody()).collect();
        if !version.split.strict {
            jobs = serve(node, &version, found, jobs, now);
        }
        let mut rest = Vec::new();
        for job in jobs {
            match version.denied(found, now, job.cost) {
                Some(retry_after) => answer(node, job, Verdict::Deny { retry_after }, now),
                None => rest.push(job),
            }
        }
        if rest.is_empty() && (!ahead || version.split.strict) {
            return found.line.disown();
        }
        found.line.waits.also(rest.iter().map(|job| job.cost).sum());
        let demand = &mut self.demands[limit][index];
        if demand.tag != tag {
            *demand = Demand::new(tag, version.number, key.clone());
        }
        // ORDERING: Relaxed, all; estimates, and a flag that this thread resets.
        let offered = u64::from(found.line.offered.swap(0, Ordering::Relaxed));
        let shared = found.line.share_used.load(Ordering::Relaxed) != 0;
        let grace_us = if shared { node.grace_us } else { 0 };
        let call = |jobs: Vec<Job>, want, min, last_of_line| {
            let ask = Ask { want, min, spent: 0, grace_us, version: version.number };
            Call { limit, version: version.clone(), key: key.clone(), ask, index, jobs, last_of_line }
        };
        if version.split.strict {
            let last = rest.len().saturating_sub(1);
            for (i, job) in rest.into_iter().enumerate() {
                let cost = job.cost;
                calls.push(call(vec![job], cost, cost, i == last));
            }
        } else {
            let waiting = Waiting {
                units: rest.iter().map(|job| job.cost).sum(),
                largest: rest.iter().map(|job| job.cost).max().unwrap_or(0),
            };
            let (want, min) = demand.ask(&version.split, waiting, offered, now);
            calls.push(call(rest, want, min, true));
        }
    }

    /// Settles the answers of a batch that was sent at `sent`; `now` is later than the last of them.
    pub(crate) fn settle(
        &mut self,
        node: &Node,
        calls: Vec<Call>,
        sent: u64,
        now: u64,
        answers: Vec<Result<Grant, Miss>>,
    ) {
        for (call, reply) in calls.into_iter().zip(answers) {
            let found = node.limits[call.limit].lines.get(call.index);
            let last_of_line = call.last_of_line;
            count(&node.counts.asks);
            // Before any caller is told: if it comes again at once, the old count must not refuse it.
            found.line.waits.anew();
            match reply {
                Ok(grant) => {
                    if call.ask.grace_us > 0 {
                        returned(found, sent.saturating_add(call.ask.grace_us * 1_000));
                    }
                    if call.version.split.strict {
                        self.settle_strict(node, found, call, (sent, now), grant);
                    } else {
                        self.settle_leased(node, found, call, (sent, now), grant);
                    }
                }
                Err(Miss { since: Some(since), .. }) => server_away(node, found, since, call.jobs, now),
                Err(_) => faulted(node, found, call.jobs, now),
            }
            if last_of_line {
                found.line.disown();
            }
        }
    }

    fn settle_leased(
        &mut self,
        node: &Node,
        found: Found<'_>,
        call: Call,
        (sent, now): (u64, u64),
        grant: Grant,
    ) {
        let (split, demand) = (&call.version.split, &mut self.demands[call.limit][call.index]);
        if !node.limits[call.limit].goes_by(&call.version, now) {
            return changed(node, call.jobs, now); // what was granted lapses
        }
        if grant.units > 0 {
            count(&node.counts.grants);
            add(&node.counts.granted_units, grant.units);
            let hot = demand.granted(split, grant.lead_us);
            let placed = Piece::place(sent, grant.lead_us, grant.units, split.unit_ns).is_some_and(|piece| {
                let mark = if hot { piece.lo + (piece.hi - piece.lo) / 2 } else { u64::MAX };
                live_until(found, piece.hi.saturating_add(split.hold_ns));
                found.line.publish(piece, now, mark)
            });
            match placed {
                true => demand.stamp = grant.stamp,
                false => count(&node.counts.unplaced),
            }
            // ORDERING: Relaxed; a time.
            found.line.denied.store(0, Ordering::Relaxed);
        } else {
            let spread = demand.refused(split, call.ask.min, grant.lead_us);
            self.refuse(node, found, split.unit_ns, call.ask.min, sent, &grant, spread);
        }
        for job in serve(node, &call.version, found, call.jobs, now) {
            let soon = nanos(job.cost.max(split.min).saturating_mul(split.unit_ns));
            let retry_after = call.version.denied(found, now, job.cost).unwrap_or(soon);
            answer(node, job, Verdict::Deny { retry_after }, now);
        }
    }

    fn settle_strict(
        &mut self,
        node: &Node,
        found: Found<'_>,
        mut call: Call,
        (sent, now): (u64, u64),
        grant: Grant,
    ) {
        let Some(job) = call.jobs.pop() else { return };
        if !node.limits[call.limit].goes_by(&call.version, now) {
            if grant.units > 0 {
                self.unused.push((call.limit, call.key, grant.stamp, grant.units));
            }
            return changed(node, vec![job], now);
        }
        if grant.units >= job.cost {
            count(&node.counts.grants);
            add(&node.counts.granted_units, grant.units);
            count(&node.counts.passed_answer);
            if !node.tell(job.waiter, Verdict::Pass, now) {
                self.unused.push((call.limit, call.key, grant.stamp, grant.units));
            }
            return;
        }
        self.refuse(node, found, call.version.split.unit_ns, call.ask.min, sent, &grant, 0);
        let retry_after =
            call.version.denied(found, now, job.cost).unwrap_or(nanos(grant.retry_us.saturating_mul(1_000)));
        answer(node, job, Verdict::Deny { retry_after }, now);
    }

    /// Records a refusal as the time at which a cost of 0 would have conformed, so that every cost has its own end.
    #[allow(clippy::too_many_arguments)] // all of one answer
    fn refuse(
        &mut self,
        node: &Node,
        found: Found<'_>,
        unit_ns: u64,
        min: u64,
        sent: u64,
        grant: &Grant,
        spread: u64,
    ) {
        count(&node.counts.refusals);
        let until = sent
            .saturating_add(grant.retry_us.saturating_mul(1_000))
            .saturating_add(self.random.below(spread + 1));
        live_until(found, until);
        // ORDERING: Relaxed; a time.
        found.line.denied.store(until.saturating_sub(min.saturating_mul(unit_ns)).max(1), Ordering::Relaxed);
    }

    /// Takes everything that the lines still hold, to give it back.
    pub(crate) fn collect(&mut self, node: &Node, floor: u64) {
        for (limit, limited) in node.limits.iter().enumerate() {
            let schedule = limited.versions.load();
            let At::Version(version) = schedule.at(floor) else { continue };
            let split = &version.split;
            for (index, demand) in self.demands[limit].iter_mut().enumerate() {
                let found = limited.lines.get(index);
                let of_now = demand.version == version.number && !demand.stamp.is_empty();
                if !of_now || !found.line.own_for_store(found.at, demand.tag) {
                    continue;
                }
                let left = found.line.seize(floor.saturating_sub(split.hold_ns));
                found.line.disown();
                let units = left.checked_div(split.unit_ns).unwrap_or(0);
                if units > 0 {
                    self.unused.push((limit, demand.key.clone(), std::mem::take(&mut demand.stamp), units));
                }
            }
        }
    }
}

impl Job {
    fn waits_for_nobody(&self) -> bool {
        matches!(self.waiter, crate::node::Waiter::None)
    }
}

/// The store knows of the share now. The share goes on for the grace, and the line may be forgotten.
fn returned(found: Found<'_>, until: u64) {
    // ORDERING: Relaxed, both; a time, and a flag of this thread's.
    found.line.share_until.store(until, Ordering::Relaxed);
    found.line.share_used.store(0, Ordering::Relaxed);
}

fn live_until(found: Found<'_>, until: u64) {
    // ORDERING: Relaxed; a time, which only this thread moves while it owns the line.
    found.line.life.fetch_max(until, Ordering::Relaxed);
}

/// Passes the jobs for which a line has enough; returns the others.
fn serve(node: &Node, version: &LimitVersion, found: Found<'_>, jobs: Vec<Job>, now: u64) -> Vec<Job> {
    let split = &version.split;
    let when = When { reading: now, hold: split.hold_ns };
    let mut rest = Vec::new();
    for job in jobs {
        match found.take(job.tag, when, job.cost.saturating_mul(split.unit_ns)) {
            Taken::Yes { .. } => {
                count(&node.counts.passed_answer);
                answer(node, job, Verdict::Pass, now);
            }
            _ => rest.push(job),
        }
    }
    rest
}

/// The limit has changed: nothing of the old one is spent.
fn changed(node: &Node, jobs: Vec<Job>, now: u64) {
    for job in jobs.into_iter().filter(|job| !job.waits_for_nobody()) {
        answer(node, job, Verdict::Deny { retry_after: nanos(CHANGED_NS) }, now);
    }
}

/// The store is there but does not decide this key. No share begins, because others may still be granted its units.
fn faulted(node: &Node, found: Found<'_>, jobs: Vec<Job>, now: u64) {
    let until = now.saturating_add(FAULT_NS);
    // So a share of the time until then is empty.
    local_until(found, until, until);
    for job in jobs.into_iter().filter(|job| !job.waits_for_nobody()) {
        let verdict = if node.down == Down::Open {
            count(&node.counts.passed_open);
            Verdict::Pass
        } else {
            Verdict::Deny { retry_after: nanos(FAULT_NS) }
        };
        answer(node, job, verdict, now);
    }
}

/// The server of the key has been away since `since`; others may be there. Until the next try, requests are decided as
/// `when_down` says.
fn server_away(node: &Node, found: Found<'_>, since: u64, jobs: Vec<Job>, now: u64) {
    local_until(found, since, now.saturating_add(FAULT_NS));
    if node.down == Down::Share {
        // ORDERING: Relaxed; a flag of this thread. From now on workers may use the share.
        found.line.share_used.store(1, Ordering::Relaxed);
    }
    without_store(node, found, jobs, false, now);
}

/// The key is not asked for until `until`, and is decided as `when_down` says; a share begins at `share_from`.
fn local_until(found: Found<'_>, share_from: u64, until: u64) {
    // ORDERING: Relaxed, both; times.
    found.line.share.fetch_max(share_from, Ordering::Relaxed);
    found.line.share_until.store(until, Ordering::Relaxed);
}

/// Answers as `when_down` says: the store is away, or the key is decided without it for a while.
fn without_store(node: &Node, found: Found<'_>, jobs: Vec<Job>, up: bool, now: u64) {
    for job in jobs.into_iter().filter(|job| !job.waits_for_nobody()) {
        let verdict = node.without_store(&job.version, found, now, job.cost, PROBE_MAX, up);
        answer(node, job, verdict, now);
    }
}

fn answer(node: &Node, job: Job, verdict: Verdict, now: u64) {
    if matches!(verdict, Verdict::Deny { .. }) {
        count(&node.counts.denied_answer);
    }
    // A caller that left gets no answer; what a line gave it lapses.
    node.tell(job.waiter, verdict, now);
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
#[path = "settle_tests.rs"]
mod settle_tests;

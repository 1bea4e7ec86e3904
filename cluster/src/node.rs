//! What a node decides by itself: by its line, its reserve, an earlier refusal, or by `when_down` without the store.
//!
//! ```text
//!   check   (a) the key's line ---- enough is left -----------------------------> Pass
//!           (b) the reserve ------- the slot is held and it conforms -----------> Pass      a cold key ends here
//!           (c) an earlier refusal  still holds --------------------------------> Deny
//!           (d) the store --------- up: ask the store's thread -----------------> Pending
//!                                   away: Deny, the share, or Pass, as configured
//! ```
//!
//! The clock reading of a request selects the version of the limit (`limit_version.rs`). If it falls between two
//! versions, or if what is held has ended, the request has neither (a) nor (b). No step waits or locks. The queue to
//! the store's thread has a bound; if it is full, the verdict is Overloaded.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use siphasher::sip::SipHasher13;
use tatcell::Outcome;

use crate::answers::Answers;
use crate::bell::Bell;
use crate::clock::NodeClock;
use crate::counts::{count, Counts};
use crate::limit_version::{At, LimitVersion, Maker, Schedule};
use crate::limit_versions::{LimitVersions, Now};
use crate::line::{Taken, When};
use crate::lines::{Found, Lines};
use crate::reserve::{Right, SlotState};
use crate::split::SharedLimit;
use crate::store::PROBE_MAX;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::verdict::{ChangeError, Completion, Down, Verdict};

/// One limit on this node.
pub(crate) struct Limited {
    pub name: String,
    /// The prefix of its keys in the store.
    pub prefix: String,
    /// The key of its mark.
    pub mark: String,
    /// Its versions; the one in force decides.
    pub versions: LimitVersions,
    /// The time until which what is held may be spent, nanoseconds.
    pub until: AtomicU64,
    pub maker: Mutex<Maker>,
    pub lines: Lines,
}

/// The caller that waits for an answer.
pub(crate) enum Waiter {
    /// Nobody: the ask is for the next piece, or the caller will come again.
    None,
    /// A caller with a token, which drains completions.
    Token(u64),
    /// A thread that waits.
    Thread(SyncSender<Verdict>),
    /// A task that waits.
    #[cfg(feature = "tokio")]
    Task(tokio::sync::oneshot::Sender<Verdict>),
}

/// A task for the store's thread.
pub(crate) struct Job {
    pub limit: usize,
    pub version: Arc<LimitVersion>,
    pub index: usize,
    pub tag: u64,
    pub key: Box<[u8]>,
    pub cost: u64,
    pub waiter: Waiter,
}

/// After which time a change is in force, or why it was not made.
pub(crate) type Changed = Result<Duration, ChangeError>;

/// A change that was asked for.
pub(crate) struct Change {
    pub limit: usize,
    pub to: SharedLimit,
    pub tell: SyncSender<Changed>,
}

/// The state that workers and the store's thread share.
pub(crate) struct Node {
    pub limits: Vec<Limited>,
    pub clock: NodeClock,
    /// With a key that nobody knows.
    pub hasher: SipHasher13,
    pub right: Right,
    pub up: AtomicU32,
    pub closing: AtomicU32,
    /// The time at which the store went away.
    pub since: AtomicU64,
    pub down: Down,
    pub nodes: u32,
    /// How long a change takes, and how long a node may spend what it holds after it last read the mark.
    pub delay: Duration,
    pub changes: Mutex<Vec<Change>>,
    /// How long a key starts from its full debt after a share; within that time every node has come back.
    pub grace_us: u64,
    pub counts: Counts,
    pub queue: SyncSender<Job>,
    /// Rung after something was put where the store's thread looks.
    pub bell: Bell,
    pub answers: Answers,
}

/// One request on its way through the steps.
struct Request<'a> {
    limit: usize,
    version: &'a Arc<LimitVersion>,
    key: &'a [u8],
    tag: u64,
    cost: u64,
    now: u64,
}

pub(crate) fn nanos(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

impl Node {
    /// Returns the nanoseconds until the reserves of all limits are full again; `None` if no limit has one.
    pub(crate) fn full_ns(&self) -> Option<u64> {
        let of = |version: &LimitVersion| version.split.reserve.map(|reserve| reserve.full_ns);
        let both = |schedule: &Schedule| of(&schedule.now).max(of(schedule.newest()));
        self.limits.iter().filter_map(|limited| both(&limited.versions.load())).max()
    }

    /// Returns whether the node has a slot, or why not.
    pub(crate) fn slot_state(&self, now: u64) -> SlotState {
        if self.full_ns().is_none() {
            return SlotState::NotNeeded;
        }
        // ORDERING: Acquire; who sees that the store is away sees since when.
        let away = (self.up.load(Ordering::Acquire) == 0)
            // ORDERING: Relaxed; as above.
            .then(|| nanos(now.saturating_sub(self.since.load(Ordering::Relaxed))));
        self.right.state(now, away, self.limits.iter().all(|limited| limited.holds(now)))
    }

    /// Decides a request; see the top of this file. `reading` is a reading of the node's clock.
    #[inline]
    pub(crate) fn decide(
        &self,
        limit: usize,
        key: &[u8],
        cost: u64,
        reading: u64,
        waiter: Option<impl FnOnce() -> Waiter>,
    ) -> Verdict {
        let limited = &self.limits[limit];
        let (hash, now) = (self.hasher.hash(key), self.clock.of(reading));
        let (held, schedule) = limited.seen(now);
        let version = match schedule.at(now) {
            At::Version(version) => version,
            At::Neither(ns) => {
                count(&self.counts.denied_cached);
                return Verdict::Deny { retry_after: nanos(ns) };
            }
        };
        let request = Request { limit, version, key, tag: version.tag(hash), cost, now };
        let leased = !version.split.strict;
        let found = limited.lines.find(request.tag);
        if cost == 0 {
            let refused = found.and_then(|found| version.denied(found, now, 0));
            return refused.map_or(Verdict::Pass, |retry_after| Verdict::Deny { retry_after });
        }
        if let (Some(found), true) = (found, held && leased && cost <= version.split.largest_cost) {
            // ORDERING: Relaxed; an estimate.
            found.line.offered.fetch_add(cost as u32, Ordering::Relaxed);
            let when = When { reading: now, hold: version.split.hold_ns };
            let length = cost.saturating_mul(version.split.unit_ns);
            if let Taken::Yes { ahead, .. } = found.take(request.tag, when, length) {
                if ahead {
                    self.ask_ahead(&request, found);
                }
                return Verdict::Pass;
            }
        }
        let mut never = true;
        if let (Some((table, of_each)), true) = (&version.reserve, held && now >= version.reserve_from) {
            if self.right.holds(now) {
                match table.check_hash(of_each, now, hash, cost) {
                    Ok(outcome) if outcome.passes() => {
                        count(&self.counts.passed_reserve);
                        if let (Some(found), true) = (found, leased) {
                            self.ask_ahead(&request, found);
                        }
                        return Verdict::Pass;
                    }
                    Ok(Outcome::Never) | Err(_) => {}
                    Ok(_) => never = false,
                }
            }
        }
        if cost > version.split.largest_cost {
            return if never { Verdict::Never } else { Verdict::Deny { retry_after: PROBE_MAX } };
        }
        self.short(limited, &request, found, waiter)
    }

    /// Returns the units of a key that this node would pass now without asking, from its line and its reserve.
    pub(crate) fn left(&self, limit: usize, key: &[u8], reading: u64) -> u64 {
        let limited = &self.limits[limit];
        let (hash, now) = (self.hasher.hash(key), self.clock.of(reading));
        let (true, schedule) = limited.seen(now) else { return 0 };
        let At::Version(version) = schedule.at(now) else { return 0 };
        let tag = version.tag(hash);
        let when = When { reading: now, hold: version.split.hold_ns };
        let pieces = limited.lines.find(tag).map_or([0, 0], |found| found.line.left(found.at, tag, when));
        let units = pieces.map(|length| length.checked_div(version.split.unit_ns).unwrap_or(0));
        let reserve = match &version.reserve {
            Some((table, of_each)) if now >= version.reserve_from && self.right.holds(now) => {
                table.peek(of_each, now, hash, 0).map_or(0, |decision| decision.remaining)
            }
            _ => 0,
        };
        units[0].saturating_add(units[1]).saturating_add(reserve)
    }

    /// Gives units back to a key, as far as this node still holds what they were taken of: its line first, then its
    /// reserve. Returns how many.
    pub(crate) fn give_back(&self, limit: usize, key: &[u8], units: u64, reading: u64) -> u64 {
        let limited = &self.limits[limit];
        let (hash, now) = (self.hasher.hash(key), self.clock.of(reading));
        let (true, schedule) = limited.seen(now) else { return 0 };
        let At::Version(version) = schedule.at(now) else { return 0 };
        let (tag, split) = (version.tag(hash), &version.split);
        let when = When { reading: now, hold: split.hold_ns };
        let of_line = |found: Found<'_>| found.line.put_back(found.at, tag, when, (units, split.unit_ns));
        let line = limited.lines.find(tag).map_or(0, of_line);
        let reserve = match &version.reserve {
            Some((table, of_each)) if now >= version.reserve_from && self.right.holds(now) => {
                table.credit(of_each, now, hash, units.saturating_sub(line)).map_or(0, |after| after.units)
            }
            _ => 0,
        };
        line.saturating_add(reserve)
    }

    /// Steps (c) and (d).
    fn short(
        &self,
        limited: &Limited,
        request: &Request<'_>,
        found: Option<Found<'_>>,
        waiter: Option<impl FnOnce() -> Waiter>,
    ) -> Verdict {
        let Some(found) = found.or_else(|| limited.lines.give(request.tag, request.now)) else {
            count(&self.counts.overloaded);
            return Verdict::Overloaded;
        };
        // ORDERING: Acquire; pairs with the Release of the store's thread, which writes `since` first.
        let up = self.up.load(Ordering::Acquire) != 0;
        // ORDERING: Relaxed; a time.
        let local = found.line.share_until.load(Ordering::Relaxed).saturating_sub(request.now);
        if !up || local > 0 {
            let retry_after = if up { nanos(local).min(PROBE_MAX) } else { PROBE_MAX };
            return self.without_store(request.version, found, request.now, request.cost, retry_after, up);
        }
        if let Some(retry_after) = request.version.denied(found, request.now, request.cost) {
            count(&self.counts.denied_cached);
            return Verdict::Deny { retry_after };
        }
        let split = &request.version.split;
        if split.strict && waiter.is_none() {
            count(&self.counts.pending);
            return Verdict::Pending;
        }
        let cap = if split.strict { split.largest_cost } else { split.most };
        let first = found.line.queue();
        // Only while an ask is under way, because its answer ends the refusal.
        if first {
            found.line.waits.also(request.cost);
        } else if !found.line.waits.add(request.cost, cap) {
            count(&self.counts.denied_cached);
            return Verdict::Deny { retry_after: nanos(split.min.saturating_mul(split.unit_ns)) };
        }
        let nobody = waiter.is_none();
        let waiter = waiter.map_or(Waiter::None, |waiter| waiter());
        if nobody && !first || self.enqueue(request, found, waiter, first) {
            count(&self.counts.pending);
            return Verdict::Pending;
        }
        count(&self.counts.overloaded);
        Verdict::Overloaded
    }

    /// Decides without the store, as `when_down` says.
    pub(crate) fn without_store(
        &self,
        version: &LimitVersion,
        found: Found<'_>,
        now: u64,
        cost: u64,
        retry_after: Duration,
        up: bool,
    ) -> Verdict {
        match self.down {
            Down::Reserve => {}
            Down::Share => {
                // ORDERING: Relaxed; written before `up`, which was read with Acquire.
                let since = self.since.load(Ordering::Relaxed);
                if version.share.take(&found.line.share, since, now, cost) {
                    if !up {
                        // ORDERING: Relaxed; the store's thread reads it when the store is back.
                        found.line.share_used.store(1, Ordering::Relaxed);
                    }
                    count(&self.counts.passed_share);
                    return Verdict::Pass;
                }
            }
            Down::Open => {
                count(&self.counts.passed_open);
                return Verdict::Pass;
            }
        }
        count(&self.counts.denied_down);
        Verdict::Deny { retry_after }
    }

    /// Passes a verdict to a waiter. Returns false if the waiter has left.
    pub(crate) fn tell(&self, waiter: Waiter, verdict: Verdict, now: u64) -> bool {
        match waiter {
            Waiter::None => true,
            Waiter::Thread(thread) => thread.try_send(verdict).is_ok(),
            #[cfg(feature = "tokio")]
            Waiter::Task(task) => task.send(verdict).is_ok(),
            Waiter::Token(token) => {
                self.answers.put(Completion { token, verdict, reading: self.clock.reading(now) });
                true
            }
        }
    }

    /// Asks for the next piece, if nobody does.
    fn ask_ahead(&self, request: &Request<'_>, found: Found<'_>) {
        // ORDERING: Relaxed, both; hints.
        let up = self.up.load(Ordering::Relaxed) != 0
            && request.now >= found.line.share_until.load(Ordering::Relaxed);
        if up && request.version.denied(found, request.now, request.cost).is_none() && found.line.queue() {
            self.enqueue(request, found, Waiter::None, true);
        }
    }

    /// Puts a job into the queue; `first` means that the line was marked for it. Returns false if the queue or the list
    /// of answers is full; then nothing is asked.
    fn enqueue(&self, request: &Request<'_>, found: Found<'_>, waiter: Waiter, first: bool) -> bool {
        let token = matches!(waiter, Waiter::Token(_));
        let sent = (!token || self.answers.reserve()) && self.send(request, found, waiter, token);
        if !sent {
            if first {
                found.line.unqueue();
            }
            // No answer will restart the count.
            found.line.waits.anew();
        }
        sent
    }

    fn send(&self, request: &Request<'_>, found: Found<'_>, waiter: Waiter, token: bool) -> bool {
        let (index, key) = (found.index, request.key.into());
        let Request { limit, tag, cost, .. } = *request;
        let job = Job { limit, version: request.version.clone(), index, tag, key, cost, waiter };
        let sent = self.queue.try_send(job).is_ok();
        self.bell.ring();
        if token && !sent {
            self.answers.release(1);
        }
        sent
    }
}

impl Limited {
    /// Returns the name of a key in the store.
    pub(crate) fn name_of(&self, key: &[u8]) -> Vec<u8> {
        [self.prefix.as_bytes(), key].concat()
    }

    /// Returns whether what is held may be spent, because the mark was read in time.
    #[inline]
    pub(crate) fn holds(&self, now: u64) -> bool {
        // ORDERING: Acquire; pairs with the Release of `adopt`.
        now < self.until.load(Ordering::Acquire)
    }

    /// Returns that, and the schedule, which is read after it: who sees the time of a mark sees what the mark changed.
    #[inline]
    pub(crate) fn seen(&self, now: u64) -> (bool, Now<'_>) {
        (self.holds(now), self.versions.load())
    }

    /// Returns whether units that were granted under this version may be spent now.
    pub(crate) fn goes_by(&self, version: &LimitVersion, now: u64) -> bool {
        let (held, schedule) = self.seen(now);
        held && matches!(schedule.at(now), At::Version(now) if now.number == version.number)
    }
}

//! The marks by which nodes agree on a limit and learn that it changes; see `limit_version.rs`.
//!
//! Version 0 belongs to a node that opens, and 1 to nodes that run and whose limit never changed; each change adds one.
//! If a mark is lost, the node with the highest version writes it again. A node that opens adopts a limit that was
//! changed, whatever it was given. If the limit never changed, it is an error that the nodes were given different ones.
//!
//! **Nodes that run win.** A node that opens may find no mark because the store lost it, or a change that is still to
//! come because the server's clock was set back. It then [waits](turn) until every node that runs and reaches the store
//! has read the mark once more, and has written what it knows. Until then it decides nothing, because opening does not
//! return. A change that any node saw in force stays in force: the mark says so from then on, and each node reads the
//! mark at the moment of a change.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::counts::count;
use crate::error::OpenError;
use crate::limit_version::{Between, LimitVersion, Next, Schedule};
use crate::miss::Miss;
use crate::node::{Limited, Node};
use crate::reserve::SlotState;
use crate::script::{self, Fault, Mark};
use crate::split::SharedLimit;
use crate::store::{Sent, Store, PROBE_MAX};
use crate::sync::Ordering;
use crate::verdict::ChangeError;
use crate::wire::Wire;

/// The least time for which a mark stays after the last node that set it.
const MARK_MS: u64 = 60_000;

/// How often a node reads the marks at most; with many nodes, all together read a mark 100 times a second.
const EVERY: Duration = Duration::from_secs(1);
const EVERY_NODE: Duration = Duration::from_millis(10);

/// How soon a mark is read again that could not be read; a call to a server that is away takes no time.
const AGAIN: Duration = Duration::from_millis(100);

/// The shortest wait for the moment of a change.
const SHORTEST_NS: u64 = 100_000;

/// Returns how often each node reads the marks: at least three times while a change is on its way.
fn every(nodes: u32, delay: Duration) -> Duration {
    EVERY.max(EVERY_NODE.saturating_mul(nodes)).min(delay / 3)
}

/// Returns the time in which every node that runs reads the marks once, also if its connection just broke: it notices
/// when it reads the marks, connects again within a try or two, and then reads them.
fn turn(nodes: u32, delay: Duration) -> Duration {
    every(nodes, delay) + 2 * PROBE_MAX
}

/// The times at which the marks are read.
pub(crate) struct Marks {
    every: Duration,
    /// By the timer.
    next: u64,
}

impl Marks {
    pub(crate) fn new(nodes: u32, delay: Duration) -> Marks {
        Marks { every: every(nodes, delay), next: 0 }
    }

    /// Reads the marks at the next turn, because the store was away.
    pub(crate) fn look_again(&mut self) {
        self.next = 0;
    }

    /// Returns when the marks are read next, by the timer.
    pub(crate) fn next(&self, node: &Node, wire: &Wire) -> u64 {
        // If the node's clock does not run as the timer does, it finds out when it reads them next. If the clock stands
        // still shortly before a change, the thread must not spin until it goes on.
        let turn = turns(node).saturating_sub(wire.now()).max(SHORTEST_NS);
        self.next.min(wire.timer().saturating_add(turn))
    }

    /// Reads the marks if it is time, or if a change has just come into force, and calls `say` with what is new. A mark
    /// that cannot be read is read again soon; if that goes on, what is held ends by itself.
    pub(crate) async fn keep(&mut self, node: &Node, store: &mut Store, mut say: impl FnMut(&str)) {
        if store.wire.timer() < self.next && turns(node) > store.wire.now() {
            return;
        }
        self.next = store.wire.after(self.every);
        let mut marks = SlotState::Held;
        for limited in &node.limits {
            let found = look(node, limited, store, None).await;
            match &found {
                Ok(_) => {}
                Err(Miss { fault: Fault::OtherFormat, .. }) => marks = SlotState::OtherFormat,
                Err(_) if marks == SlotState::Held => marks = SlotState::MarkUnread,
                Err(_) => {}
            }
            match found {
                Ok((mark, _)) if mark.ahead_us > 0 && limited.versions.load().next.is_none() => {
                    // It came into force during the call: the others must hear of it.
                    self.next = 0;
                }
                Ok((_, None)) => {}
                Ok((_, Some(new))) => {
                    count(&node.counts.changes);
                    say(&new);
                }
                // The store has reported that itself.
                Err(Miss { fault: Fault::Lost, .. }) => {
                    self.next = store.wire.after(AGAIN.min(self.every));
                }
                Err(miss) => say(&format!("the mark of limit {:?}: {}", limited.name, miss.said)),
            }
        }
        node.right.marks(marks);
    }
}

/// Returns the time of the next change that comes into force, by the node's clock.
fn turns(node: &Node) -> u64 {
    let of = |limited: &Limited| limited.versions.load().next.as_ref().map(|next| next.between.late);
    node.limits.iter().filter_map(of).min().unwrap_or(u64::MAX)
}

/// Asks for a change.
pub(crate) async fn change(
    node: &Node,
    store: &mut Store,
    limit: usize,
    to: &SharedLimit,
) -> Result<Duration, ChangeError> {
    let (limited, was_up) = (&node.limits[limit], store.is_up());
    let text = limited.maker.lock().unwrap_or_else(PoisonError::into_inner).text(to);
    let before = limited.versions.load().newest().number;
    let delay_us = u64::try_from(node.delay.as_micros()).unwrap_or(u64::MAX);
    match look(node, limited, store, Some((&text, delay_us))).await {
        Ok((mark, _)) if mark.version == before + 1 && mark.next == text && mark.ahead_us > 0 => {
            count(&node.counts.changes);
            Ok(Duration::from_micros(mark.ahead_us))
        }
        Ok((mark, _)) => Err(ChangeError::Other { in_force_after: Duration::from_micros(mark.ahead_us) }),
        Err(Miss { fault: Fault::Lost, .. }) if was_up => Err(ChangeError::Unanswered),
        Err(Miss { fault: Fault::Lost, .. }) => Err(ChangeError::Away),
        Err(Miss { fault, .. }) => Err(ChangeError::Store(fault)),
    }
}

/// Reads the mark of a limit, and adopts it. Returns the mark, and in words what is new.
async fn look(
    node: &Node,
    limited: &Limited,
    store: &mut Store,
    change: Option<(&str, u64)>,
) -> Result<(Mark, Option<String>), Miss> {
    let sent = store.wire.now();
    limited.go_on(sent);
    let mine = limited.versions.load().mark(sent);
    let mark = ask(node, limited, store, &mine, change).await?;
    let new = limited.adopt(&mark, sent, store.wire.now(), node.delay);
    Ok((mark, new.map_err(|fault| Miss::new(fault, "the store holds something else"))?))
}

async fn ask(
    node: &Node,
    limited: &Limited,
    store: &mut Store,
    mine: &Mark,
    change: Option<(&str, u64)>,
) -> Result<Mark, Miss> {
    let (key, ms) = (limited.mark.as_bytes(), life_ms(node.delay));
    let call = |_, by| script::mark(by, key, ms, mine, change);
    let answers = store.batch(&[key], Sent::UntilItRan, call).await;
    answers.each.into_iter().next().unwrap_or_else(|| Err(Miss::new(Fault::Other, "no answer")))
}

/// Adopts the marks of all limits as a node opens. If no node that runs has written one, or if a change is not in force
/// yet, waits until those that run had their [turn], and reads it again.
pub(crate) async fn agree(node: &Node, store: &mut Store) -> Result<(), OpenError> {
    let mut open = Vec::new();
    for limited in &node.limits {
        let ours = limited.versions.load().now.text.clone();
        let mark = agree_on(node, limited, store, false, &ours).await?;
        if mark.version == 0 || mark.ahead_us > 0 {
            open.push((limited, ours));
        }
    }
    if !open.is_empty() {
        store.wire.sleep(turn(node.nodes, node.delay)).await;
    }
    // From here on it is a node that runs.
    for (limited, ours) in open {
        agree_on(node, limited, store, true, &ours).await?;
    }
    Ok(())
}

/// Reads the mark of a limit, as a node that opens or as one that runs, and adopts it. It is an error if the mark
/// differs but was never changed.
async fn agree_on(
    node: &Node,
    limited: &Limited,
    store: &mut Store,
    runs: bool,
    ours: &str,
) -> Result<Mark, OpenError> {
    let sent = store.wire.now();
    let mine = match runs {
        true => limited.versions.load().mark(sent),
        false => Mark { version: 0, ahead_us: 0, next: ours.to_owned(), before: ours.to_owned() },
    };
    let mark = ask(node, limited, store, &mine, None).await?;
    let adopted = limited.adopt(&mark, sent, store.wire.now(), node.delay);
    // A node can adopt a changed limit, but no other number of nodes and no other delay.
    if (mark.version <= 1 && mark.next != ours) || adopted.is_err() {
        let (name, theirs) = (limited.name.clone(), mark.next);
        return Err(OpenError::OtherParameters { name, ours: ours.to_owned(), theirs });
    }
    Ok(mark)
}

/// Returns how long a mark stays; after that, nodes with other parameters may open.
fn life_ms(delay: Duration) -> u64 {
    u64::try_from(delay.as_millis()).unwrap_or(u64::MAX).saturating_mul(2).max(MARK_MS)
}

impl Limited {
    /// Drops what came before a change that is in force.
    fn go_on(&self, now: u64) {
        let schedule = self.versions.load();
        if let Some(next) = schedule.next.as_ref().filter(|next| now >= next.between.late) {
            self.versions.store(Arc::new(Schedule { now: next.version.clone(), next: None }));
        }
    }

    /// Adopts a mark that was asked for at `sent` and came at `received`; returns what is new. A change that came into
    /// force meanwhile stays in force.
    ///
    /// # Errors
    /// The mark is not valid. Nothing else changes then, and what is held ends as if the mark had not come.
    pub(crate) fn adopt(
        &self,
        mark: &Mark,
        sent: u64,
        received: u64,
        delay: Duration,
    ) -> Result<Option<String>, Fault> {
        self.go_on(received);
        let (schedule, number) = (self.versions.load(), mark.version.max(1));
        let (known, between) = (schedule.newest(), Between::of(mark.ahead_us, sent, received));
        let (now, next) = if known.is(number, &mark.next) {
            let next = schedule.next.as_ref().map(|next| {
                let between = next.between.and(between);
                // The server's clock was set back: share and reserve start empty at the new moment.
                let version = match between.late > next.version.share.from {
                    true => self.make(number, &mark.next, between.late, &schedule.now)?,
                    false => next.version.clone(),
                };
                Ok((version, between))
            });
            (schedule.now.clone(), next.transpose()?)
        } else if mark.ahead_us == 0 {
            (self.make(number, &mark.next, between.late, known)?, None)
        } else {
            let now = match schedule.now.is(number - 1, &mark.before) {
                true => schedule.now.clone(),
                false => self.make(number - 1, &mark.before, received, &schedule.now)?,
            };
            let next = self.make(number, &mark.next, between.late, &now)?;
            (now, Some((next, between)))
        };
        let next = next.map(|(version, between)| Next { version, between });
        let after = Duration::from_micros(mark.ahead_us);
        let new = (known.text != mark.next)
            .then(|| format!("limit {:?}: {}, in force after {after:?}", self.name, mark.next));
        self.lines.drains(now.drained_ns().max(next.as_ref().map_or(0, |next| next.version.drained_ns())));
        let new_schedule = Schedule { now, next };
        // Most marks repeat the last one.
        if !new_schedule.is(&schedule) {
            self.versions.store(Arc::new(new_schedule));
        }
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        // A thousandth for the drift of the clocks.
        // ORDERING: Release; pairs with the Acquire of `holds`: who sees the time sees the schedule that belongs to it.
        self.until.store(sent.saturating_add(delay - (delay >> 10)), Ordering::Release);
        Ok(new)
    }

    fn make(
        &self,
        number: u64,
        text: &str,
        from: u64,
        was: &LimitVersion,
    ) -> Result<Arc<LimitVersion>, Fault> {
        let mut maker = self.maker.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = maker.of_text(&self.name, text).ok_or(Fault::ForeignValue)?;
        let version = maker.version(number, limit, Some((was, from)));
        version.map(Arc::new).map_err(|_| Fault::ForeignValue)
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use super::*;
    use crate::clock::NodeClock;
    use crate::limit_versions::Now;
    use crate::random::{Random, Seeds};
    use crate::Cluster;

    const MS: u64 = 1_000_000;

    fn limit(units: u64) -> SharedLimit {
        SharedLimit::new("x", units, Duration::from_secs(1), units).reserve(units as u32 / 10, 100)
    }

    fn node() -> Node {
        node_at(Arc::new(crate::sync::AtomicU64::new(0)))
    }

    fn node_at(clock: Arc<crate::sync::AtomicU64>) -> Node {
        let clock = NodeClock::given(clock);
        let seeds = Seeds::Given(Random::new(1));
        let builder = Cluster::builder("redis://store/", 2).limit(limit(100)).keys(8).log(|_| {});
        builder.node(clock, seeds, None).expect("a node").0
    }

    /// The node reads that its limit of 100 is 200 after this time.
    fn adopt(node: &Node, ahead_ms: u64, sent: u64, received: u64) -> Now<'_> {
        let limited = &node.limits[0];
        let text = |units| limited.maker.lock().expect("no panic").text(&limit(units));
        let (next, before) = (text(200), text(100));
        let mark = Mark { version: 2, ahead_us: ahead_ms * 1_000, next, before };
        limited.adopt(&mark, sent, received, node.delay).expect("a mark");
        limited.versions.load()
    }

    #[test]
    fn a_change_that_comes_into_force_during_a_call_stays_in_force() {
        let node = node();
        let late = adopt(&node, 10_000, 1_000 * MS, 1_001 * MS).next.as_ref().expect("a change").between.late;
        // The server's clock was set back before the call came there.
        let schedule = adopt(&node, 3_600_000, late - 1, late);
        assert!(schedule.next.is_none() && schedule.now.number == 2);
    }

    #[test]
    fn a_change_is_in_force_when_its_moment_is_surely_over() {
        let now = Arc::new(crate::sync::AtomicU64::new(0));
        let node = Arc::new(node_at(now.clone()));
        let between = adopt(&node, 10_000, 1_000 * MS, 1_001 * MS).next.as_ref().expect("a change").between;
        let cluster = Cluster::new(node, None);
        for (at, units) in [(between.early, 100), (between.late - 1, 100), (between.late, 200)] {
            // ORDERING: Relaxed; one thread.
            now.store(at, Ordering::Relaxed);
            assert_eq!(cluster.in_force(cluster.limit("x").expect("it")), limit(units), "at {at}");
        }
    }

    #[test]
    fn a_change_whose_moment_moves_later_starts_empty_at_the_later_moment() {
        let node = node();
        let adopt = |ahead_ms: u64, sent| {
            let schedule = super::tests::adopt(&node, ahead_ms, sent, sent + MS);
            let next = schedule.next.as_ref().expect("a change");
            let full = next.version.split.reserve.expect("a reserve").full_ns;
            assert_eq!(next.version.reserve_from, next.version.share.from + full);
            (next.version.share.from, next.between.late, Arc::as_ptr(&next.version))
        };
        let first = adopt(10_000, 1_000 * MS);
        assert_eq!(first.0, first.1);
        // The next mark knows the moment better.
        let second = adopt(9_000, 2_000 * MS);
        assert!(second.1 < first.1 && second.0 == first.0 && second.2 == first.2, "the same version");
        // The server's clock was set back by an hour.
        let third = adopt(3_608_000, 3_000 * MS);
        assert!(third.1 > first.1 + 3_599_000 * MS);
        assert_eq!(third.0, third.1);
    }
}

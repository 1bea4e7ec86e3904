//! The marks by which nodes agree on what a limit is, and see that it changes; see `limit_version.rs`.
//!
//! Version 0 is that of a node that opens, 1 that of nodes that run and whose limit never changed, and each change is
//! one more. A mark that was lost is written again by whoever has the highest. A node that opens goes by a limit that
//! was changed, whatever it was given; where it was not, others that were given something else are an error.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::counts::count;
use crate::error::OpenError;
use crate::limit_version::{Between, LimitVersion, Next, Schedule};
use crate::node::{Limited, Node};
use crate::script::{self, Fault, Mark};
use crate::split::SharedLimit;
use crate::store::{Miss, Store};
use crate::sync::Ordering;
use crate::verdict::ChangeError;

/// How long a mark stays at least after the last node that set it.
const MARK_MS: u64 = 60_000;

/// When the marks are looked at.
pub(crate) struct Marks {
    every: Duration,
    next: Instant,
}

impl Marks {
    pub(crate) fn new(delay: Duration) -> Marks {
        Marks { every: delay / 3, next: Instant::now() }
    }

    /// They are looked at with the next turn: the store was away.
    pub(crate) fn look_again(&mut self) {
        self.next = Instant::now();
    }

    /// Looks at the marks where it is time; `say` is told what is new. One that cannot be seen is looked for with the
    /// next turn: what is held ends by itself if this goes on.
    pub(crate) fn keep(&mut self, node: &Node, store: &mut Store, mut say: impl FnMut(&str)) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + self.every;
        for limited in &node.limits {
            match look(node, limited, store, None) {
                Ok((_, None)) => {}
                Ok((_, Some(new))) => {
                    count(&node.counts.changes);
                    say(&new);
                }
                // The store has told that itself.
                Err(Miss { fault: Fault::Lost, .. }) => {}
                Err(miss) => say(&format!("the mark of limit {:?}: {}", limited.name, miss.said)),
            }
        }
    }
}

/// Asks for a change.
pub(crate) fn change(
    node: &Node,
    store: &mut Store,
    limit: usize,
    to: &SharedLimit,
) -> Result<Duration, ChangeError> {
    let (limited, was_up) = (&node.limits[limit], store.is_up());
    let text = limited.maker.lock().unwrap_or_else(PoisonError::into_inner).text(to);
    let before = limited.versions.load().newest().number;
    let delay_us = u64::try_from(node.delay.as_micros()).unwrap_or(u64::MAX);
    match look(node, limited, store, Some((&text, delay_us))) {
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

/// Looks at the mark of a limit, and goes by it. Tells it, and in words what is new.
fn look(
    node: &Node,
    limited: &Limited,
    store: &mut Store,
    change: Option<(&str, u64)>,
) -> Result<(Mark, Option<String>), Miss> {
    let sent = node.clock.now();
    limited.go_on(sent);
    let mine = limited.versions.load().mark(sent);
    let mark = ask(node, limited, store, &mine, change)?;
    let new = limited.adopt(&mark, sent, node.clock.now(), node.delay);
    Ok((mark, new.map_err(|fault| Miss::new(fault, "the store holds something else"))?))
}

fn ask(
    node: &Node,
    limited: &Limited,
    store: &mut Store,
    mine: &Mark,
    change: Option<(&str, u64)>,
) -> Result<Mark, Miss> {
    let (key, ms) = (limited.mark.as_bytes(), life_ms(node.delay));
    let answers = store.batch(&[key], |_, by| script::mark(by, key, ms, mine, change));
    answers.each.into_iter().next().unwrap_or_else(|| Err(Miss::new(Fault::Other, "no answer")))
}

/// Goes by the mark of a limit as a node opens: one that says otherwise without having been changed is an error.
pub(crate) fn agree(node: &Node, limited: &Limited, store: &mut Store) -> Result<(), OpenError> {
    let sent = node.clock.now();
    let ours = limited.versions.load().now.text.clone();
    let mine = Mark { version: 0, ..limited.versions.load().mark(sent) };
    let mark = ask(node, limited, store, &mine, None)?;
    let adopted = limited.adopt(&mark, sent, node.clock.now(), node.delay);
    // A node goes by a limit that was changed live; another number of nodes or another delay cannot be followed.
    if (mark.version <= 1 && mark.next != ours) || adopted.is_err() {
        let (name, theirs) = (limited.name.clone(), mark.next);
        return Err(OpenError::OtherParameters { name, ours, theirs });
    }
    Ok(())
}

/// How long a mark stays: nodes that are given something else may open after that.
fn life_ms(delay: Duration) -> u64 {
    u64::try_from(delay.as_millis()).unwrap_or(u64::MAX).saturating_mul(2).max(MARK_MS)
}

impl Limited {
    /// Drops what was before a change that is in force.
    fn go_on(&self, now: u64) {
        let schedule = self.versions.load();
        if let Some(next) = schedule.next.as_ref().filter(|next| now >= next.between.late) {
            self.versions.store(Arc::new(Schedule { now: next.version.clone(), next: None }));
        }
    }

    /// Goes by a mark that was asked for at `sent` and came at `received`; tells what is new.
    ///
    /// # Errors
    /// The mark is none: nothing changes, and what is held ends as if it had not come.
    pub(crate) fn adopt(
        &self,
        mark: &Mark,
        sent: u64,
        received: u64,
        delay: Duration,
    ) -> Result<Option<String>, Fault> {
        let (schedule, number) = (self.versions.load(), mark.version.max(1));
        let (known, between) = (schedule.newest(), Between::of(mark.ahead_us, sent, received));
        let (now, next) = if known.is(number, &mark.next) {
            (
                schedule.now.clone(),
                schedule.next.as_ref().map(|next| (next.version.clone(), next.between.and(between))),
            )
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
        // Most marks say what the last one said.
        if !new_schedule.is(&schedule) {
            self.versions.store(Arc::new(new_schedule));
        }
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        // A thousandth for the clocks' rates.
        // ORDERING: Release; pairs with the Acquire of holds: who sees the time sees the schedule that it is of.
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

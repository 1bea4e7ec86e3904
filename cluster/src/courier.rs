//! The store's thread: takes asks from the queue, sends them in batches, settles the answers, and keeps the marks
//! and the slot.
//!
//! One batch is under way at a time, so a key is asked for once at a time, whoever waits for it. Calls that wait for
//! the next batch are not held back: a batch is what the queue holds when the last one is settled.
//!
//! **The store is away** from the first batch without an answer until a connection is made again; meanwhile whoever
//! waits is answered by the node's mode, and only this thread probes, at 20 to 400 ms. The connection of an unanswered
//! batch is closed: a late answer meets no later call. An ask that was lost is of no harm, what it was granted lapses;
//! what was given back is never given back again.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::counts::{add, count};
use crate::link::{Answers, Link, MAX_BATCH};
use crate::log::Log;
use crate::mark::{self, Change, Marks};
use crate::node::{Job, Node, Waiter, PROBE_MAX};
use crate::script::{self, By, Fault, Grant};
use crate::settle::{Batch, Call};
use crate::slot::Slot;
use crate::sync::Ordering;
use crate::verdict::{ChangeError, Completion};

/// The store's thread.
pub(crate) struct Courier {
    pub node: Arc<Node>,
    pub client: redis::Client,
    pub link: Option<Link>,
    pub timeout: Duration,
    pub slot: Slot,
    marks: Marks,
    pub batch: Batch,
    pub log: Log,
    probe: Probe,
}

/// When the next connection is tried.
struct Probe {
    at: Instant,
    gap: Duration,
}

/// Shortest time between two probes.
const PROBE_MIN: Duration = Duration::from_millis(20);

/// How long the thread sleeps at most where nothing is asked.
const IDLE: Duration = Duration::from_millis(50);

impl Courier {
    pub(crate) fn new(
        node: Arc<Node>,
        client: redis::Client,
        link: Link,
        timeout: Duration,
        slot: Slot,
        log: Log,
    ) -> Courier {
        let batch = Batch::new(&node);
        let probe = Probe { at: Instant::now(), gap: PROBE_MIN };
        let marks = Marks::new(node.delay);
        Courier { node, client, link: Some(link), timeout, slot, marks, batch, log, probe }
    }

    /// Runs until the node closes.
    pub(crate) fn run(mut self, queue: &Receiver<Job>) {
        // ORDERING: Acquire; pairs with the Release of whoever closes.
        while self.node.closing.load(Ordering::Acquire) == 0 {
            if self.link.is_none() {
                self.probe();
            } else if let Err(fault) = self.keep() {
                self.lost(fault);
            }
            self.change();
            match queue.recv_timeout(self.idle()) {
                Ok(job) => {
                    let more = queue.try_iter().take(MAX_BATCH - 1);
                    let jobs: Vec<Job> = std::iter::once(job).chain(more).collect();
                    self.turn(jobs);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.close(queue);
    }

    /// Keeps the marks, and then the slot.
    fn keep(&mut self) -> Result<(), Fault> {
        if let Some(link) = self.link.as_mut() {
            let (node, log) = (&self.node, &self.log);
            let say = |line: &str| log.say(node.clock.now(), &format!("tatcell-cluster: {line}"));
            self.marks.keep(node, link, say)?;
        }
        self.slot.keep(&self.node, self.link.as_mut())
    }

    /// Makes the changes of limits that were asked for.
    fn change(&mut self) {
        let changes = std::mem::take(&mut *self.node.changes.lock().unwrap_or_else(|e| e.into_inner()));
        for Change { limit, to, tell } in changes {
            let made = match self.link.as_mut() {
                None => Ok(Err(ChangeError::Away)),
                Some(link) => mark::change(&self.node, link, limit, &to),
            };
            let answer = made.unwrap_or_else(|fault| {
                self.lost(fault);
                Err(ChangeError::Unanswered)
            });
            // Who asked may have left.
            let _ = tell.try_send(answer);
        }
    }

    fn idle(&self) -> Duration {
        match self.link {
            Some(_) => IDLE,
            None => self.probe.at.saturating_duration_since(Instant::now()).min(IDLE),
        }
    }

    /// One batch.
    fn turn(&mut self, jobs: Vec<Job>) {
        let calls = self.batch.prepare(&self.node, jobs, self.link.is_some());
        let Some(link) = self.link.as_mut().filter(|_| !calls.is_empty()) else { return };
        // Before the sending: pieces are placed by it.
        let sent = self.node.clock.now();
        let answers = ask(link, &self.node, &calls);
        match answers {
            Ok(answers) => {
                count(&self.node.counts.batches);
                add(&self.node.counts.batch_ns, self.node.clock.now().saturating_sub(sent));
                add(&self.node.counts.no_script, answers.with_text);
                if let Some(fault) = self.batch.settle(&self.node, calls, sent, answers.each) {
                    self.say(fault);
                    if fault.breaks_connection() {
                        self.lost(fault);
                    }
                }
                self.give_back();
            }
            Err(fault) => {
                self.lost(fault);
                self.batch.fail(&self.node, calls);
            }
        }
    }

    /// Units of strict grants whose callers had left.
    fn give_back(&mut self) {
        let unused = std::mem::take(&mut self.batch.unused);
        let Some(link) = self.link.as_mut().filter(|_| !unused.is_empty()) else { return };
        let answers = link.batch::<u64>(unused.len(), |i, by| {
            let (limit, key, stamp, units) = &unused[i];
            script::give_back(by, &self.node.limits[*limit].name_of(key), stamp, *units)
        });
        match answers {
            Ok(answers) => add(&self.node.counts.given_back, answers.each.iter().flatten().sum()),
            Err(fault) => self.lost(fault),
        }
    }

    fn say(&mut self, fault: Fault) {
        count(&self.node.counts.faults);
        self.log.say(self.node.clock.now(), &format!("tatcell-cluster: the store answers {fault:?}"));
    }

    /// The store is away from now on.
    fn lost(&mut self, fault: Fault) {
        self.link = None;
        self.probe = Probe { at: Instant::now() + PROBE_MIN, gap: PROBE_MIN };
        count(&self.node.counts.outages);
        // ORDERING: Relaxed; published by the store below.
        self.node.since.store(self.node.clock.now(), Ordering::Relaxed);
        // ORDERING: Release; pairs with the Acquire of the workers: who sees it sees when it began.
        self.node.up.store(0, Ordering::Release);
        self.say(fault);
    }

    fn probe(&mut self) {
        if Instant::now() < self.probe.at {
            return;
        }
        let ping = |mut link: Link| link.query::<String>(&redis::cmd("PING")).map(|_| link);
        match Link::open(&self.client, self.timeout).and_then(ping) {
            Ok(link) => {
                self.link = Some(link);
                // ORDERING: Release; pairs with the Acquire of the workers.
                self.node.up.store(1, Ordering::Release);
                self.marks.look_again();
                self.slot.look_again();
            }
            Err(error) => {
                let gap = (self.probe.gap * 2).min(PROBE_MAX);
                let spread = self.batch.random.below(gap.as_micros() as u64 / 2);
                self.probe = Probe { at: Instant::now() + gap / 2 + Duration::from_micros(spread), gap };
                self.say(Fault::of(&error));
            }
        }
    }

    /// Gives back what is held, lets the slot go, and answers whoever waits.
    fn close(mut self, queue: &Receiver<Job>) {
        // ORDERING: Release; workers decide without the store from here on.
        self.node.up.store(0, Ordering::Release);
        let jobs: Vec<Job> = queue.try_iter().collect();
        self.batch.prepare(&self.node, jobs, false);
        self.batch.collect(&self.node);
        while !self.batch.unused.is_empty() && self.link.is_some() {
            let rest = self.batch.unused.split_off(self.batch.unused.len().min(MAX_BATCH));
            self.give_back();
            self.batch.unused = rest;
        }
        if let Some(link) = self.link.as_mut() {
            self.slot.release(&self.node, link);
        }
    }
}

/// Sends the calls of a batch.
fn ask(link: &mut Link, node: &Node, calls: &[Call]) -> Result<Answers<Grant>, Fault> {
    link.batch(calls.len(), |i, by| command(node, &calls[i], by))
}

fn command(node: &Node, call: &Call, by: By) -> redis::Cmd {
    let limited = &node.limits[call.limit];
    script::grant(by, &limited.name_of(&call.key), &call.form.split, &call.ask)
}

/// Tells a waiter. False: nobody is there any more.
pub(crate) fn tell(node: &Node, waiter: Waiter, verdict: crate::Verdict, now: u64) -> bool {
    match waiter {
        Waiter::None => true,
        Waiter::Thread(thread) => thread.try_send(verdict).is_ok(),
        #[cfg(feature = "tokio")]
        Waiter::Task(task) => task.send(verdict).is_ok(),
        Waiter::Token(token) => {
            let completion = Completion { token, verdict, reading: node.clock.reading(now) };
            // A list, whatever a thread did that held it.
            node.completions.lock().unwrap_or_else(|e| e.into_inner()).push(completion);
            true
        }
    }
}

//! The store's thread: takes asks from the queue, sends them in batches, settles the answers, and keeps the marks and
//! the slot.
//!
//! One batch is under way at a time, so a key is asked for once at a time, however many wait for it. Calls for the next
//! batch are not delayed: when a batch is settled, the next one is what the queue holds.
//!
//! **The store is away** while none of its servers has a connection, and a key while its server has none. Waiting
//! callers are then answered as `when_down` says. A lost ask does no harm, because what it was granted lapses. Units
//! that were given back are never given back again.

use std::future::poll_fn;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError};
use std::task::Poll;

use crate::counts::{add, count};
use crate::log::Log;
use crate::mark::{self, Marks};
use crate::miss::Answers;
use crate::node::{Change, Job, Node};
use crate::random::Random;
use crate::script;
use crate::settle::Batch;
use crate::slot::Slot;
use crate::store::{Sent, Store, MAX_BATCH};
use crate::sync::Ordering;

/// The store's thread.
pub(crate) struct StoreThread {
    pub node: Arc<Node>,
    pub store: Store,
    pub slot: Slot,
    marks: Marks,
    pub batch: Batch,
    pub log: Log,
    /// Whether any server was there when this was last set.
    up: bool,
}

impl StoreThread {
    pub(crate) fn new(node: Arc<Node>, store: Store, slot: Slot, log: Log, random: Random) -> StoreThread {
        let batch = Batch::new(&node, random);
        let marks = Marks::new(node.nodes, node.delay);
        StoreThread { node, store, slot, marks, batch, log, up: true }
    }

    /// Runs until the node closes.
    pub(crate) async fn run(mut self, queue: &Receiver<Job>) {
        // ORDERING: Acquire; pairs with the Release of the thread that closes.
        while self.node.closing.load(Ordering::Acquire) == 0 {
            self.store.tend();
            self.notice();
            if self.up {
                let (node, log, wire) = (&self.node, &self.log, self.store.wire.clone());
                let say = |line: &str| log.say(wire.now(), &format!("tatcell-cluster: {line}"));
                self.marks.keep(node, &mut self.store, say).await;
                self.slot.keep(node, &mut self.store).await;
                self.notice();
            }
            self.change().await;
            let jobs = self.jobs(queue).await;
            if !jobs.is_empty() {
                let step = self.store.wire.step();
                self.turn(jobs).await;
                // It was answered without the store. Time must go on even if the queue is never empty.
                if self.store.wire.step() == step {
                    self.store.wire.pause().await;
                }
            }
        }
        self.close(queue).await;
    }

    /// Waits for jobs, and returns at most a batch of them; or none if there is something else to do.
    async fn jobs(&self, queue: &Receiver<Job>) -> Vec<Job> {
        let (node, store) = (&self.node, &self.store);
        let mut until = store.next();
        if self.up {
            until = until.min(self.slot.next).min(self.marks.next(node, &store.wire));
        }
        let look = || {
            let jobs: Vec<Job> = queue.try_iter().take(MAX_BATCH).collect();
            // ORDERING: Acquire; as in `run`.
            let other = node.closing.load(Ordering::Acquire) != 0
                || !node.changes.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
            (!jobs.is_empty() || other || store.is_done()).then_some(jobs)
        };
        poll_fn(|_| {
            let found = look().or_else(|| {
                node.bell.sleep();
                look()
            });
            if found.is_some() || store.wire.due(until) {
                node.bell.wake_up();
                return Poll::Ready(found.unwrap_or_default());
            }
            store.wire.listen();
            Poll::Pending
        })
        .await
    }

    /// Makes the changes of limits that were asked for.
    async fn change(&mut self) {
        let changes = std::mem::take(&mut *self.node.changes.lock().unwrap_or_else(|e| e.into_inner()));
        for Change { limit, to, tell } in changes {
            let answer = mark::change(&self.node, &mut self.store, limit, &to).await;
            // The caller may have left.
            let _ = tell.try_send(answer);
            self.notice();
        }
    }

    /// Sends one batch and settles it.
    async fn turn(&mut self, jobs: Vec<Job>) {
        let calls = self.batch.prepare(&self.node, jobs, self.up, self.store.wire.now());
        if calls.is_empty() {
            return;
        }
        let limits = &self.node.limits;
        let keys: Vec<Vec<u8>> = calls.iter().map(|call| limits[call.limit].name_of(&call.key)).collect();
        // Read before the sending, because pieces are placed by it.
        let sent = self.store.wire.now();
        let command = |i: usize, by| {
            let call = &calls[i];
            script::grant(by, &keys[i], &call.version.split, &call.ask)
        };
        let answers = self.store.batch(&keys, Sent::UntilItRan, command).await;
        let now = self.store.wire.now();
        if answers.each.iter().any(|answer| answer.is_ok()) {
            count(&self.node.counts.batches);
            add(&self.node.counts.batch_ns, now.saturating_sub(sent));
        }
        self.counted(&answers);
        // Before the settling, so that a caller that is told decides by the present state.
        self.notice();
        self.batch.settle(&self.node, calls, sent, now, answers.each);
        self.give_back().await;
    }

    fn counted<T>(&self, answers: &Answers<T>) {
        add(&self.node.counts.no_script, answers.with_text);
        add(&self.node.counts.redirected, answers.redirected);
    }

    /// Gives back the units that nobody uses: those of strict grants whose callers had left.
    async fn give_back(&mut self) {
        let unused = std::mem::take(&mut self.batch.unused);
        if unused.is_empty() {
            return;
        }
        let limits = &self.node.limits;
        let keys: Vec<Vec<u8>> = unused.iter().map(|(limit, key, ..)| limits[*limit].name_of(key)).collect();
        let command = |i: usize, by| {
            let (.., stamp, units) = &unused[i];
            script::give_back(by, &keys[i], stamp, *units)
        };
        let answers: Answers<u64> = self.store.batch(&keys, Sent::Once, command).await;
        self.counted(&answers);
        add(&self.node.counts.given_back, answers.each.iter().flatten().sum());
        self.notice();
    }

    /// Tells the workers whether the store is there, and the log what went wrong.
    fn notice(&mut self) {
        let up = self.store.is_up();
        if up != self.up {
            self.up = up;
            if up {
                self.marks.look_again();
                self.slot.look_again();
            } else {
                // ORDERING: Relaxed; published by the store below.
                self.node.since.store(self.store.wire.now(), Ordering::Relaxed);
            }
            // ORDERING: Release; pairs with the Acquire of the workers: who sees the flag sees when it was set.
            self.node.up.store(u32::from(up), Ordering::Release);
        }
        add(&self.node.counts.outages, std::mem::take(&mut self.store.losses));
        for said in self.store.troubles.drain(..) {
            count(&self.node.counts.faults);
            self.log.say(self.store.wire.now(), &format!("tatcell-cluster: {said}"));
        }
    }

    /// Gives back what is held, releases the slot, and answers all waiting callers.
    async fn close(mut self, queue: &Receiver<Job>) {
        // ORDERING: Release; from here on workers decide without the store.
        self.node.up.store(0, Ordering::Release);
        let jobs: Vec<Job> = queue.try_iter().collect();
        let now = self.store.wire.now();
        self.batch.prepare(&self.node, jobs, false, now);
        self.batch.collect(&self.node, now);
        while !self.batch.unused.is_empty() && self.store.is_up() {
            let rest = self.batch.unused.split_off(self.batch.unused.len().min(MAX_BATCH));
            self.give_back().await;
            self.batch.unused = rest;
        }
        if self.store.is_up() {
            self.slot.release(&self.node, &mut self.store).await;
        }
    }
}

//! The store's thread: takes asks from the queue, sends them in batches, settles the answers, and keeps the marks and
//! the slot.
//!
//! One batch is under way at a time, so a key is asked for once at a time, however many wait for it. Calls for the next
//! batch are not delayed: when a batch is settled, the next one is what the queue holds.
//!
//! **The store is away** while none of its servers has a connection, and a key while its server has none. Waiting
//! callers are then answered as `when_down` says. A lost ask does no harm, because what it was granted lapses. Units
//! that were given back are never given back again.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::Arc;

use crate::counts::{add, count};
use crate::log::Log;
use crate::mark::{self, Marks};
use crate::miss::Answers;
use crate::node::{Change, Job, Node};
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
    pub(crate) fn new(node: Arc<Node>, store: Store, slot: Slot, log: Log) -> StoreThread {
        let batch = Batch::new(&node);
        let marks = Marks::new(node.nodes, node.delay);
        StoreThread { node, store, slot, marks, batch, log, up: true }
    }

    /// Runs until the node closes.
    pub(crate) fn run(mut self, queue: &Receiver<Job>) {
        // ORDERING: Acquire; pairs with the Release of the thread that closes.
        while self.node.closing.load(Ordering::Acquire) == 0 {
            self.store.tend();
            self.notice();
            if self.up {
                let (node, log) = (&self.node, &self.log);
                let say = |line: &str| log.say(node.clock.now(), &format!("tatcell-cluster: {line}"));
                self.marks.keep(node, &mut self.store, say);
                self.slot.keep(node, &mut self.store);
                self.notice();
            }
            self.change();
            match queue.recv_timeout(self.store.idle()) {
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

    /// Makes the changes of limits that were asked for.
    fn change(&mut self) {
        let changes = std::mem::take(&mut *self.node.changes.lock().unwrap_or_else(|e| e.into_inner()));
        for Change { limit, to, tell } in changes {
            let answer = mark::change(&self.node, &mut self.store, limit, &to);
            // The caller may have left.
            let _ = tell.try_send(answer);
            self.notice();
        }
    }

    /// Sends one batch and settles it.
    fn turn(&mut self, jobs: Vec<Job>) {
        let calls = self.batch.prepare(&self.node, jobs, self.up);
        if calls.is_empty() {
            return;
        }
        let limits = &self.node.limits;
        let keys: Vec<Vec<u8>> = calls.iter().map(|call| limits[call.limit].name_of(&call.key)).collect();
        // Read before the sending, because pieces are placed by it.
        let sent = self.node.clock.now();
        let answers = self.store.batch(&keys, Sent::UntilItRan, |i, by| {
            let call = &calls[i];
            script::grant(by, &keys[i], &call.version.split, &call.ask)
        });
        if answers.each.iter().any(|answer| answer.is_ok()) {
            count(&self.node.counts.batches);
            add(&self.node.counts.batch_ns, self.node.clock.now().saturating_sub(sent));
        }
        self.counted(&answers);
        // Before the settling, so that a caller that is told decides by the present state.
        self.notice();
        self.batch.settle(&self.node, calls, sent, answers.each);
        self.give_back();
    }

    fn counted<T>(&self, answers: &Answers<T>) {
        add(&self.node.counts.no_script, answers.with_text);
        add(&self.node.counts.redirected, answers.redirected);
    }

    /// Gives back the units that nobody uses: those of strict grants whose callers had left.
    fn give_back(&mut self) {
        let unused = std::mem::take(&mut self.batch.unused);
        if unused.is_empty() {
            return;
        }
        let limits = &self.node.limits;
        let keys: Vec<Vec<u8>> = unused.iter().map(|(limit, key, ..)| limits[*limit].name_of(key)).collect();
        let answers: Answers<u64> = self.store.batch(&keys, Sent::Once, |i, by| {
            let (.., stamp, units) = &unused[i];
            script::give_back(by, &keys[i], stamp, *units)
        });
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
                self.node.since.store(self.node.clock.now(), Ordering::Relaxed);
            }
            // ORDERING: Release; pairs with the Acquire of the workers: who sees the flag sees when it was set.
            self.node.up.store(u32::from(up), Ordering::Release);
        }
        add(&self.node.counts.outages, std::mem::take(&mut self.store.losses));
        for said in self.store.troubles.drain(..) {
            count(&self.node.counts.faults);
            self.log.say(self.node.clock.now(), &format!("tatcell-cluster: {said}"));
        }
    }

    /// Gives back what is held, releases the slot, and answers all waiting callers.
    fn close(mut self, queue: &Receiver<Job>) {
        // ORDERING: Release; from here on workers decide without the store.
        self.node.up.store(0, Ordering::Release);
        let jobs: Vec<Job> = queue.try_iter().collect();
        self.batch.prepare(&self.node, jobs, false);
        self.batch.collect(&self.node);
        while !self.batch.unused.is_empty() && self.store.is_up() {
            let rest = self.batch.unused.split_off(self.batch.unused.len().min(MAX_BATCH));
            self.give_back();
            self.batch.unused = rest;
        }
        if self.store.is_up() {
            self.slot.release(&self.node, &mut self.store);
        }
    }
}

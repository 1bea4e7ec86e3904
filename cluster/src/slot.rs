//! Claims one of the N slots, and keeps it.

use std::time::{Duration, Instant};

use crate::node::Node;
use crate::script;
use crate::store::{Answers, Store};

/// What the store's thread knows of its slot.
pub(crate) struct Slot {
    prefix: String,
    nodes: u32,
    holder: String,
    ttl: Duration,
    index: Option<u32>,
    first: u32,
    next: Instant,
}

const CLAIMED: i64 = 1;
const RENEWED: i64 = 2;

impl Slot {
    pub(crate) fn new(prefix: &str, nodes: u32, holder: String, ttl: Duration, first: u32) -> Slot {
        let (prefix, next) = (prefix.to_owned(), Instant::now());
        Slot { prefix, nodes, holder, ttl, index: None, first, next }
    }

    fn key(&self, index: u32) -> String {
        format!("{}:slot:{index}", self.prefix)
    }

    /// Tries the slot again at the next turn, because the store was away.
    pub(crate) fn look_again(&mut self) {
        self.next = Instant::now();
    }

    /// Renews the slot three times in its life, or claims a free one. Skips servers that are away: the next turn tries
    /// again, and a slot that is not renewed ends.
    pub(crate) fn keep(&mut self, node: &Node, store: &mut Store) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + self.ttl / 3;
        let Some(full_ns) = node.full_ns() else { return };
        let slots: Vec<u32> = match self.index {
            Some(index) => vec![index],
            None => (0..self.nodes).map(|i| (self.first + i) % self.nodes).collect(),
        };
        for index in slots {
            let sent = node.clock.now();
            let px = self.ttl.as_nanos() as u64;
            match self.ask(store, index, self.ttl.as_millis() as u64) {
                Some(CLAIMED) => {
                    node.right.claimed(sent, px, full_ns);
                    self.index = Some(index);
                    break;
                }
                Some(RENEWED) => node.right.renewed(sent, px),
                // Another node has it. If this node held it, it is lost; the next turn claims a new one.
                Some(_) if self.index.take().is_some() => node.right.lost(),
                _ => {}
            }
        }
    }

    fn ask(&self, store: &mut Store, index: u32, ms: u64) -> Option<i64> {
        let key = self.key(index);
        let call = |_, by| script::slot(by, key.as_bytes(), &self.holder, ms);
        let answers: Answers<i64> = store.batch(&[key.as_bytes()], call);
        answers.each.into_iter().flatten().next()
    }

    /// Releases the slot.
    pub(crate) fn release(&mut self, node: &Node, store: &mut Store) {
        node.right.lost();
        if let Some(index) = self.index.take() {
            // If this call is lost, the slot ends by itself.
            let _ = self.ask(store, index, 0);
        }
    }
}

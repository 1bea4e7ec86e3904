//! Keeping one of the N slots.

use std::time::{Duration, Instant};

use crate::link::Link;
use crate::node::Node;
use crate::script::{self, By, Fault};

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

    /// The slot is looked at with the next turn: the store was away.
    pub(crate) fn look_again(&mut self) {
        self.next = Instant::now();
    }

    /// Renews the slot three times in its life, or claims a free one.
    ///
    /// # Errors
    /// A fault after which the link must be dropped.
    pub(crate) fn keep(&mut self, node: &Node, link: Option<&mut Link>) -> Result<(), Fault> {
        let Some(link) = link.filter(|_| Instant::now() >= self.next) else { return Ok(()) };
        self.next = Instant::now() + self.ttl / 3;
        let Some(full_ns) = node.full_ns() else { return Ok(()) };
        let slots: Vec<u32> = match self.index {
            Some(index) => vec![index],
            None => (0..self.nodes).map(|i| (self.first + i) % self.nodes).collect(),
        };
        for index in slots {
            let sent = node.clock.now();
            let px = self.ttl.as_nanos() as u64;
            match self.ask(link, index, self.ttl.as_millis() as u64)? {
                Some(CLAIMED) => {
                    node.right.claimed(sent, px, full_ns);
                    self.index = Some(index);
                    break;
                }
                Some(RENEWED) => node.right.renewed(sent, px),
                Some(_) => {
                    // Another's. One that was held is gone; the next turn claims one anew.
                    if self.index.take().is_some() {
                        node.right.lost();
                    }
                }
                None => break,
            }
        }
        Ok(())
    }

    fn ask(&self, link: &mut Link, index: u32, ms: u64) -> Result<Option<i64>, Fault> {
        let call = |_: usize, by: By| script::slot(by, self.key(index).as_bytes(), &self.holder, ms);
        match link.batch::<i64>(1, call)?.each.pop() {
            Some(Ok(answer)) => Ok(Some(answer)),
            Some(Err(fault)) => breaking(Err(fault)).map(|()| None),
            None => Ok(None),
        }
    }

    /// Lets the slot go.
    pub(crate) fn release(&mut self, node: &Node, link: &mut Link) {
        node.right.lost();
        if let Some(index) = self.index.take() {
            // Where this is lost the slot ends by itself.
            let _ = self.ask(link, index, 0);
        }
    }
}

fn breaking(answer: Result<(), Fault>) -> Result<(), Fault> {
    answer.or_else(|fault| if fault.breaks_connection() { Err(fault) } else { Ok(()) })
}

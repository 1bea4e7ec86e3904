//! Keeping one of the N slots, and the marks by which nodes see that they agree on a limit.

use std::time::{Duration, Instant};

use crate::node::Node;
use crate::script;
use crate::store::{Answers, Miss, Store};

/// What the store's thread knows of its slot.
pub(crate) struct Slot {
    prefix: String,
    nodes: u32,
    holder: String,
    ttl: Duration,
    /// Nanoseconds until the reserves of all limits are full again; None where no limit has one.
    full_ns: Option<u64>,
    index: Option<u32>,
    first: u32,
    next: Instant,
}

const CLAIMED: i64 = 1;
const RENEWED: i64 = 2;

/// How long a mark stays after the last node that set it.
const MARK_MS: u64 = 60_000;

impl Slot {
    pub(crate) fn new(
        prefix: &str,
        nodes: u32,
        holder: String,
        ttl: Duration,
        full_ns: Option<u64>,
        first: u32,
    ) -> Slot {
        let (prefix, next) = (prefix.to_owned(), Instant::now());
        Slot { prefix, nodes, holder, ttl, full_ns, index: None, first, next }
    }

    fn key(&self, index: u32) -> String {
        format!("{}:slot:{index}", self.prefix)
    }

    /// The slot is looked at with the next turn: the store was away.
    pub(crate) fn look_again(&mut self) {
        self.next = Instant::now();
    }

    /// Renews the slot and the marks three times in their life, or claims a free slot. What is away is left out: the
    /// next turn tries again, and a slot that is not renewed ends.
    pub(crate) fn keep(&mut self, node: &Node, store: &mut Store) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + self.ttl / 3;
        for limited in &node.limits {
            let _ = mark(store, &mark_key(&self.prefix, &limited.name), &limited.parameters);
        }
        let Some(full_ns) = self.full_ns else { return };
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
                // Another's. One that was held is gone; the next turn claims one anew.
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

    /// Lets the slot go.
    pub(crate) fn release(&mut self, node: &Node, store: &mut Store) {
        node.right.lost();
        if let Some(index) = self.index.take() {
            // Where this is lost the slot ends by itself.
            let _ = self.ask(store, index, 0);
        }
    }
}

/// Under which key the parameters of a limit stand.
pub(crate) fn mark_key(prefix: &str, name: &str) -> String {
    format!("{prefix}:limit:{name}")
}

/// Sets the mark of a limit or keeps it for a while longer; tells what another node has set.
pub(crate) fn mark(store: &mut Store, key: &str, parameters: &str) -> Result<Option<String>, Miss> {
    let set = redis::cmd("SET").arg(key).arg(parameters).arg("NX").arg("PX").arg(MARK_MS).to_owned();
    store.one::<Option<String>>(key.as_bytes(), &set)?;
    let found: Option<String> = store.one(key.as_bytes(), redis::cmd("GET").arg(key))?;
    let other = found.filter(|found| found != parameters);
    if other.is_none() {
        store.one::<i64>(key.as_bytes(), redis::cmd("PEXPIRE").arg(key).arg(MARK_MS))?;
    }
    Ok(other)
}

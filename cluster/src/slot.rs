//! Keeping one of the N slots, and the marks by which nodes see that they agree on a limit.

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

    /// Renews the slot and the marks three times in their life, or claims a free slot.
    ///
    /// # Errors
    /// A fault after which the link must be dropped.
    pub(crate) fn keep(&mut self, node: &Node, link: Option<&mut Link>) -> Result<(), Fault> {
        let Some(link) = link.filter(|_| Instant::now() >= self.next) else { return Ok(()) };
        self.next = Instant::now() + self.ttl / 3;
        for limited in &node.limits {
            let marked = mark(link, &mark_key(&self.prefix, &limited.name), &limited.parameters);
            breaking(marked.map(|_| ()).map_err(|e| Fault::of(&e)))?;
        }
        let Some(full_ns) = self.full_ns else { return Ok(()) };
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

/// Under which key the parameters of a limit stand.
pub(crate) fn mark_key(prefix: &str, name: &str) -> String {
    format!("{prefix}:limit:{name}")
}

/// Sets the mark of a limit or keeps it for a while longer; tells what another node has set.
pub(crate) fn mark(link: &mut Link, key: &str, parameters: &str) -> redis::RedisResult<Option<String>> {
    let set = redis::cmd("SET").arg(key).arg(parameters).arg("NX").arg("PX").arg(MARK_MS).to_owned();
    link.query::<Option<String>>(&set)?;
    let found: Option<String> = link.query(redis::cmd("GET").arg(key))?;
    let other = found.filter(|found| found != parameters);
    if other.is_none() {
        link.query::<i64>(redis::cmd("PEXPIRE").arg(key).arg(MARK_MS))?;
    }
    Ok(other)
}

fn breaking(answer: Result<(), Fault>) -> Result<(), Fault> {
    answer.or_else(|fault| if fault.breaks_connection() { Err(fault) } else { Ok(()) })
}

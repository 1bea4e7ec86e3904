//! The handle of a node.

use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::counts::Metrics;
use crate::limit_version::At;
use crate::node::{Change, Changed, Node, Waiter};
use crate::split::SharedLimit;
use crate::sync::Ordering;
use crate::verdict::{ChangeError, Completion, Verdict};

/// Represents a node of those that share limits: decides by itself while it holds units, and asks the store for more.
///
/// Any number of threads may use it at once. Only [`acquire`](Cluster::acquire), [`change`](Cluster::change) and
/// [`shutdown`](Cluster::shutdown) wait, up to their timeouts. All other calls return without waiting for anything.
///
/// ```no_run
/// use std::time::Duration;
/// use tatcell_cluster::{Cluster, SharedLimit, Verdict};
///
/// // At most four nodes share 1000 a second for each client, 200 at once.
/// let per_client = SharedLimit::new("client", 1_000, Duration::from_secs(1), 200);
/// let node = Cluster::builder("redis://127.0.0.1:6379/", 4).limit(per_client).open()?;
/// let client = node.limit("client").expect("given above");
///
/// match node.acquire(client, b"192.0.2.1", 1, Duration::from_millis(20)) {
///     Verdict::Pass => println!("go on"),
///     Verdict::Deny { retry_after } => println!("again in {retry_after:?}"),
///     other => println!("not decided: {other:?}"),
/// }
/// node.shutdown(Duration::from_secs(1));
/// # Ok::<(), tatcell_cluster::OpenError>(())
/// ```
pub struct Cluster {
    pub(crate) node: Arc<Node>,
    thread: Option<JoinHandle<()>>,
}

/// Identifies a limit of a [`Cluster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitId(pub(crate) usize);

impl Cluster {
    /// Makes a handle; without a thread, somebody else runs the node's machine.
    pub(crate) fn new(node: Arc<Node>, thread: Option<JoinHandle<()>>) -> Cluster {
        Cluster { node, thread }
    }

    /// Finds a limit by its name.
    pub fn limit(&self, name: &str) -> Option<LimitId> {
        self.node.limits.iter().position(|limit| limit.name == name).map(LimitId)
    }

    /// Reads the node's clock, for [`check_at`](Cluster::check_at): nanoseconds since the machine started.
    pub fn now(&self) -> u64 {
        self.node.clock.read()
    }

    /// Decides a request for this key, which may be any bytes, without waiting.
    ///
    /// [`Verdict::Pending`] means that the node has asked for units; a request that comes a round trip later finds
    /// them. For a strict limit use [`submit`](Cluster::submit) or [`acquire`](Cluster::acquire). Here such a limit
    /// passes from the reserve, is denied if the store refused before, or is Pending without an ask. A cost of 0 only
    /// peeks: it is denied while a refusal of the key holds, and passes otherwise; it neither charges nor asks.
    ///
    /// # Cost
    /// One or two compare-and-swaps. If units run out, also an allocation and a place in a queue.
    pub fn check(&self, limit: LimitId, key: &[u8], cost: u64) -> Verdict {
        self.check_at(limit, key, cost, self.now())
    }

    /// Decides like [`check`](Cluster::check), with a clock reading that serves many requests. An older reading is
    /// stricter, never laxer.
    pub fn check_at(&self, limit: LimitId, key: &[u8], cost: u64, reading: u64) -> Verdict {
        self.node.decide(limit.0, key, cost, reading, None::<fn() -> Waiter>)
    }

    /// Decides like [`check`](Cluster::check). If the verdict is Pending, [`drain`](Cluster::drain) later returns the
    /// answer with this token. The caller chooses the tokens. At most 4096 answers are under way or not yet drained;
    /// further requests are [`Verdict::Overloaded`].
    pub fn submit(&self, limit: LimitId, key: &[u8], cost: u64, token: u64) -> Verdict {
        self.submit_at(limit, key, cost, self.now(), token)
    }

    /// Decides like [`submit`](Cluster::submit), with a clock reading that serves many requests.
    pub fn submit_at(&self, limit: LimitId, key: &[u8], cost: u64, reading: u64, token: u64) -> Verdict {
        self.node.decide(limit.0, key, cost, reading, Some(|| Waiter::Token(token)))
    }

    /// Appends the answers that have come to `into`.
    ///
    /// # Concurrency
    /// A lock protects the list of answers; the store's thread and `drain` hold it for a few instructions.
    pub fn drain(&self, into: &mut Vec<Completion>) {
        into.append(&mut self.node.answers.take(usize::MAX));
    }

    /// Decides a request, and waits for the store's answer if it must, up to `timeout`. After that it returns
    /// [`Verdict::Pending`]; units that are granted for it later lapse or are given back.
    pub fn acquire(&self, limit: LimitId, key: &[u8], cost: u64, timeout: Duration) -> Verdict {
        match self.ask(limit, key, cost, self.now()) {
            (Verdict::Pending, Some(told)) => told.recv_timeout(timeout).unwrap_or(Verdict::Pending),
            (verdict, _) => verdict,
        }
    }

    /// Decides a request, and returns where the store's answer will come if the verdict is Pending.
    pub(crate) fn ask(
        &self,
        limit: LimitId,
        key: &[u8],
        cost: u64,
        reading: u64,
    ) -> (Verdict, Option<Receiver<Verdict>>) {
        let mut answer = None;
        let waiter = || {
            let (tell, told) = sync_channel(1);
            answer = Some(told);
            Waiter::Thread(tell)
        };
        let verdict = self.node.decide(limit.0, key, cost, reading, Some(waiter));
        (verdict, answer)
    }

    /// Decides like [`acquire`](Cluster::acquire), without blocking a thread. To drop the future is to time out.
    ///
    /// Needs the feature `tokio`, and a runtime with time.
    #[cfg(feature = "tokio")]
    pub async fn acquire_async(&self, limit: LimitId, key: &[u8], cost: u64, timeout: Duration) -> Verdict {
        let mut answer = None;
        let waiter = || {
            let (tell, told) = tokio::sync::oneshot::channel();
            answer = Some(told);
            Waiter::Task(tell)
        };
        let verdict = self.node.decide(limit.0, key, cost, self.now(), Some(waiter));
        match answer {
            Some(told) if verdict == Verdict::Pending => tokio::time::timeout(timeout, told)
                .await
                .ok()
                .and_then(Result::ok)
                .unwrap_or(Verdict::Pending),
            _ => verdict,
        }
    }

    /// Changes the limit of this name on all nodes: rate, burst and reserves. Returns the time after which it is in
    /// force, on all of them at once: [`change_delay`](crate::Builder::change_delay). A node that has not learned of
    /// the change by then holds nothing. Units admitted before count as that many of the new limit.
    ///
    /// Waits for the store's thread, up to `timeout`. A change stays while nodes run, and for a minute after the last
    /// one stops: write it into the configuration too.
    ///
    /// # Errors
    /// [`ChangeError`] says why the change was not made.
    pub fn change(&self, to: SharedLimit, timeout: Duration) -> Result<Duration, ChangeError> {
        let told = self.ask_for_change(to)?;
        told.recv_timeout(timeout).unwrap_or(Err(ChangeError::Unanswered))
    }

    /// Asks for a change, and returns where the answer will come.
    pub(crate) fn ask_for_change(&self, to: SharedLimit) -> Result<Receiver<Changed>, ChangeError> {
        let limit = self.limit(to.name()).ok_or(ChangeError::Unknown)?.0;
        to.split(self.node.nodes, Duration::ZERO).map_err(ChangeError::Limit)?;
        let (tell, told) = sync_channel(1);
        let mut changes = self.node.changes.lock().unwrap_or_else(|e| e.into_inner());
        changes.push(Change { limit, to, tell });
        drop(changes);
        self.node.bell.ring();
        Ok(told)
    }

    /// Returns the limit as it is now. While the moment of a change is in doubt, for a round trip and a thousandth of
    /// `change_delay`, that is the limit before it.
    pub fn in_force(&self, limit: LimitId) -> SharedLimit {
        let schedule = self.node.limits[limit.0].versions.load();
        match schedule.at(self.node.clock.now()) {
            At::Version(version) => version.limit.clone(),
            At::Neither(_) => schedule.now.limit.clone(),
        }
    }

    /// Returns how many units of a key this node would pass now without asking: those of its line and of its reserve.
    /// All nodes together may have more.
    pub fn left(&self, limit: LimitId, key: &[u8]) -> u64 {
        self.node.left(limit.0, key, self.now())
    }

    /// Gives units back to a key that this node let pass. The caller vouches for them: in any time w, all nodes admit
    /// at most R w + B and what was given back. Never waits or asks.
    ///
    /// Only what this node still holds is given back: units of the piece that its line spends now, as far as they have
    /// not lapsed, and then what the key owes to this node's reserve. The rest drains at the rate of the limit. A
    /// strict limit has no line. Returns how many units were given back.
    pub fn give_back(&self, limit: LimitId, key: &[u8], units: u64) -> u64 {
        self.node.give_back(limit.0, key, units, self.now())
    }

    /// Returns the counters.
    pub fn metrics(&self) -> Metrics {
        // ORDERING: Relaxed; a value.
        let up = self.node.up.load(Ordering::Relaxed) != 0;
        let now = self.node.clock.now();
        self.node.counts.read(up, self.node.right.holds(now), self.node.slot_state(now))
    }

    /// Closes the node: gives back the units that it holds, releases its slot, and answers all waiting callers. Returns
    /// whether that was done in time. If not, it goes on by itself, and what is still held lapses.
    pub fn shutdown(mut self, timeout: Duration) -> bool {
        self.close();
        let until = Instant::now() + timeout;
        let Some(thread) = self.thread.take() else { return true };
        while !thread.is_finished() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        thread.join().is_ok()
    }

    fn close(&self) {
        // ORDERING: Release; pairs with the Acquire of the store's thread.
        self.node.closing.store(1, Ordering::Release);
        self.node.bell.ring();
    }
}

impl Drop for Cluster {
    /// Starts a [`shutdown`](Cluster::shutdown), without waiting for it.
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("metrics", &self.metrics()).finish_non_exhaustive()
    }
}

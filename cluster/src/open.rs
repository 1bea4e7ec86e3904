//! Opening a node: its options, the checks, and the errors.

use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use siphasher::sip::SipHasher13;
use tatcell::host::HostError;

use crate::answers::{Answers, Wake};
use crate::bell::Bell;
use crate::clock::NodeClock;
use crate::cluster::Cluster;
use crate::counts::Counts;
use crate::driver;
use crate::endpoint::{Endpoint, Login, Shape};
use crate::error::OpenError;
use crate::limit_version::{Maker, Schedule};
use crate::limit_versions::LimitVersions;
use crate::lines::Lines;
use crate::log::{Log, Sink};
use crate::node::{Job, Limited, Node};
use crate::opening::Opening;
use crate::random::{Random, Seeds};
use crate::reserve::Right;
use crate::script::FORMAT;
use crate::split::SharedLimit;
use crate::store::PROBE_MAX;
use crate::streams::Streams;
use crate::sync::{AtomicU32, AtomicU64};
#[cfg(feature = "tls")]
use crate::tls::Tls;
use crate::verdict::Down;

/// The number of asks that the queue to the store's thread holds.
const QUEUE: usize = 4_096;

/// Collects the options of a node; see [`Cluster::builder`].
pub struct Builder {
    url: String,
    login: Option<Login>,
    sentinel_login: Option<Login>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    nodes: u32,
    prefix: String,
    limits: Vec<SharedLimit>,
    keys: usize,
    timeout: Duration,
    round_trip: Duration,
    slot_ttl: Duration,
    delay: Duration,
    down: Down,
    sink: Sink,
}

impl Cluster {
    /// Starts the options of a node that shares limits with at most `nodes - 1` others, through the store at this URL.
    pub fn builder(url: &str, nodes: u32) -> Builder {
        Builder::new(url, nodes)
    }
}

impl Builder {
    fn new(url: &str, nodes: u32) -> Builder {
        Builder {
            url: url.to_owned(),
            login: None,
            sentinel_login: None,
            #[cfg(feature = "tls")]
            tls: None,
            nodes,
            prefix: "tatcell".to_owned(),
            limits: Vec::new(),
            keys: 65_536,
            timeout: Duration::from_millis(250),
            round_trip: Duration::from_millis(4),
            slot_ttl: Duration::from_secs(10),
            delay: Duration::from_secs(30),
            down: Down::Reserve,
            sink: Box::new(|line| eprintln!("{line}")),
        }
    }

    /// Sets the user who logs in, whatever the URL says; an empty name is the default user.
    pub fn login(mut self, user: &str, password: &str) -> Self {
        self.login = Some(Login { user: user.to_owned(), password: password.to_owned() });
        self
    }

    /// Sets the user who logs in to sentinels. The user of the URL is only for the servers.
    pub fn sentinel_login(mut self, user: &str, password: &str) -> Self {
        self.sentinel_login = Some(Login { user: user.to_owned(), password: password.to_owned() });
        self
    }

    /// Sets the certificates for a URL that begins with `rediss`. Needs the feature `tls`.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the prefix of all keys of this node in the store; default `tatcell`.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.to_owned();
        self
    }

    /// Adds a limit. Limits do not share keys.
    pub fn limit(mut self, limit: SharedLimit) -> Self {
        self.limits.push(limit);
        self
    }

    /// Sets how many keys of each limit are in use at one time; default 65 536. A key takes about 240 bytes plus its
    /// own length. 16 of those bytes, for the reserve, stay allocated when the node is closed, for the next node.
    pub fn keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// Sets how long a call to the store may take before the store counts as away; default 250 ms.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long a call takes at worst while all is well; default 4 ms. A limit whose pieces would last for less
    /// than two round trips is strict.
    pub fn round_trip(mut self, round_trip: Duration) -> Self {
        self.round_trip = round_trip;
        self
    }

    /// Sets for how long a slot is held without a renewal; default 10 s. After a node has claimed a slot, it waits for
    /// that time, and for the time in which a reserve fills, before it spends its reserve. If the store goes away, the
    /// node spends the reserve for no longer than that time.
    pub fn slot_ttl(mut self, ttl: Duration) -> Self {
        self.slot_ttl = ttl;
        self
    }

    /// Sets how long a [change](Cluster::change) of a limit takes until it is in force; default 30 s. A node may spend
    /// what it holds for the same time after it last heard from the store. All nodes must have the same value.
    pub fn change_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets what happens while the store is away.
    pub fn when_down(mut self, down: Down) -> Self {
        self.down = down;
        self
    }

    /// Sets where lines about faults go, at most one a second; default standard error.
    pub fn log(mut self, sink: impl Fn(&str) + Send + 'static) -> Self {
        self.sink = Box::new(sink);
        self
    }

    /// Opens the node: checks its options and the store, and starts the store's thread. A connection may take up to
    /// four timeouts to each server, and each answer two.
    ///
    /// If the store has no mark of a limit, no node has used the limit for a minute, or the store has lost its data.
    /// The node then waits until running nodes have told the store what the limit is: by default 1.8 s, longer with
    /// more than 100 nodes, and shorter with a `change_delay` below 3 s. It also waits while a change is on its way.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong and what to do.
    pub fn open(self) -> Result<Cluster, OpenError> {
        self.open_with(None)
    }

    /// Opens a node; calls `wake` for each answer.
    pub(crate) fn open_with(self, wake: Option<Wake>) -> Result<Cluster, OpenError> {
        let clock = NodeClock::new().map_err(OpenError::Host)?;
        let streams = Streams {
            timeout: self.timeout,
            #[cfg(feature = "tls")]
            tls: self.tls.clone(),
        };
        let (node, opening, jobs) = self.parts(clock, Seeds::System, wake)?;
        // Reports a certificate that cannot be read now, not at the first connection.
        #[cfg(feature = "tls")]
        if let (Some(tls), true) = (&streams.tls, opening.endpoint.is_tls()) {
            tls.config().map_err(|why| OpenError::Certificate(why.to_string()))?;
        }
        let (thread, opened) = driver::start(node.clone(), streams, opening, jobs)?;
        // The thread answers before it ends; a panic ends the process.
        if let Err(error) = opened.recv().unwrap_or(Err(OpenError::Host(HostError::Unsupported))) {
            let _ = thread.join();
            return Err(error);
        }
        Ok(Cluster::new(node, Some(thread)))
    }

    /// Makes the node, what its machine opens it with, and the other end of its queue.
    pub(crate) fn parts(
        self,
        clock: NodeClock,
        mut seeds: Seeds,
        wake: Option<Wake>,
    ) -> Result<(Arc<Node>, Opening, Receiver<Job>), OpenError> {
        let (node, jobs) = self.node(clock, seeds.split(), wake)?;
        let holder = seeds.draw().map_err(OpenError::Host)?;
        let spread = u128::from_le_bytes(seeds.draw().map_err(OpenError::Host)?);
        let opening = Opening {
            endpoint: self.endpoint()?,
            prefix: self.prefix,
            holder: holder.iter().map(|byte| format!("{byte:02x}")).collect(),
            slot_ttl: self.slot_ttl,
            random: Random::new(spread as u64),
            log: Log::new(self.sink),
        };
        Ok((Arc::new(node), opening, jobs))
    }

    fn endpoint(&self) -> Result<Endpoint, OpenError> {
        let mut endpoint = Endpoint::read(&self.url, self.timeout)?;
        if let Some(login) = &self.login {
            endpoint.log_in(login, false);
        }
        if let Some(login) = &self.sentinel_login {
            endpoint.log_in(login, true);
        }
        Ok(endpoint)
    }

    /// Makes the node without its thread, and the other end of its queue.
    pub(crate) fn node(
        &self,
        clock: NodeClock,
        mut seeds: Seeds,
        wake: Option<Wake>,
    ) -> Result<(Node, Receiver<Job>), OpenError> {
        self.validate()?;
        let limits = self.limits.iter().map(|limit| self.limited(limit, seeds.split()));
        let limits = limits.collect::<Result<Vec<Limited>, OpenError>>()?;
        // A failed connection and the longest wait; twice if the servers must be found first.
        let tries = if self.endpoint()?.shape == Shape::Single { 1 } else { 2 };
        let (queue, jobs) = sync_channel(QUEUE);
        let node = Node {
            limits,
            clock,
            hasher: SipHasher13::new_with_key(&seeds.draw().map_err(OpenError::Host)?),
            right: Right::new(),
            up: AtomicU32::new(1),
            closing: AtomicU32::new(0),
            since: AtomicU64::new(0),
            down: self.down,
            nodes: self.nodes,
            delay: self.delay,
            changes: Mutex::new(Vec::new()),
            grace_us: tries * (self.timeout + PROBE_MAX).as_micros() as u64,
            counts: Counts::new(),
            queue,
            bell: Bell::new(),
            answers: Answers::new(wake),
        };
        Ok((node, jobs))
    }

    fn validate(&self) -> Result<(), OpenError> {
        let names: std::collections::HashSet<&str> = self.limits.iter().map(|l| l.name()).collect();
        if names.is_empty() || names.len() != self.limits.len() {
            return Err(OpenError::Limits);
        }
        let sound = |d: Duration| d.as_millis() > 0 && d <= Duration::from_secs(3_600);
        let times = sound(self.timeout)
            && sound(self.slot_ttl)
            && sound(self.delay)
            && self.round_trip <= Duration::from_secs(3_600);
        if self.prefix.is_empty() || self.prefix.len() > 64 || self.keys == 0 || !times {
            return Err(OpenError::Options);
        }
        Ok(())
    }

    fn limited(&self, limit: &SharedLimit, seeds: Seeds) -> Result<Limited, OpenError> {
        let Builder { nodes, round_trip, keys, delay, .. } = *self;
        let mut maker = Maker { nodes, round_trip, keys, delay, seeds, tables: Vec::new() };
        let version = Arc::new(maker.version(1, limit.clone(), None)?);
        Ok(Limited {
            name: limit.name().to_owned(),
            prefix: format!("{}:{FORMAT}:{:016x}{{}}:", self.prefix, digest(limit.name(), nodes, delay)),
            mark: format!("{}:limit:{}", self.prefix, limit.name()),
            lines: Lines::new(keys, version.drained_ns()),
            versions: LimitVersions::new(Schedule { now: version, next: None }),
            until: AtomicU64::new(u64::MAX),
            maker: Mutex::new(maker),
        })
    }
}

/// FNV-1a of what nodes must agree on for any limit: nodes that do not agree share no key.
fn digest(name: &str, nodes: u32, delay: Duration) -> u64 {
    let text = format!("{name} {nodes} {}", delay.as_millis());
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

//! One world: hosts with nodes, servers, the network between them, and the queue of what happens next.
//!
//! ```text
//!   queue   (time, number, event): the next event, in the order of drawing if two are at one time
//!   host    clock of decisions, timer, node (handle and machine)      visits -> decisions -> what was admitted
//!     |     Connect, Send, Close                                      steps  -> completions
//!   conn    two streams of bytes: delayed, cut, silent, reset
//!     |     commands, replies: doubled, halved, given to others
//!   server  clock, data, scripts
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use tatcell_cluster::sim::LinkId;
use tatcell_cluster::SlotState;

use crate::audit::{Admitted, Way};
use crate::clock::{Time, MS};
use crate::host::Host;
use crate::lua::Scripts;
use crate::net::Conn;
use crate::plan::{Edition, Plan, Shape, What};
use crate::random::Random;
use crate::server::{hash_slot, Server, Slots};

/// What happens at a moment.
#[derive(Debug)]
pub(crate) enum Ev {
    /// A deadline of a node.
    Wake(usize),
    /// Requests come to a host.
    Visit(usize),
    /// A worker that was stopped goes on with the reading that it took: host, generation, reading, moment, key, cost.
    Call(usize, u64, u64, Time, u32, u64),
    /// A host opens its node again, if it is still this generation.
    Reopen(usize, u64),
    /// A connection arrives at its server, or the answer to that at its host.
    Connect(usize),
    Connected(usize),
    /// Bytes arrive.
    ToServer(usize, Vec<u8>),
    ToNode(usize, Vec<u8>),
    /// The second copy of a reply is sent.
    Copy(usize, Vec<u8>),
    /// The end of a stream arrives.
    NodeEnded(usize),
    ServerEnded(usize),
    /// A fault begins or ends, or the copy for it is made.
    Begin(usize),
    End(usize),
    Snapshot,
}

struct Item(Time, u64, Ev);

impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Item {}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Item) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Item) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// A limit that a mark names, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The version of the mark.
    pub version: u64,
    /// The place of its limit in the plan; `None` if it is none of them.
    pub limit: Option<usize>,
    /// When it was written, and when it is in force.
    pub begun: Time,
    /// See `begun`.
    pub in_force: Time,
}

/// What a world shows.
#[derive(Default)]
pub struct Found {
    /// All admissions, in the order of their readings.
    pub admitted: Vec<Admitted>,
    /// Decisions that were asked for.
    pub decisions: u64,
    /// Calls of scripts.
    pub calls: u64,
    /// Steps of machines.
    pub steps: u64,
    /// The longest time from question to answer among admissions that the store decided.
    pub longest: Time,
    /// The longest time from the reading of a clock to the admission by it.
    pub latest: Time,
    /// Units that callers gave back.
    pub back: u64,
    /// The changes, by the marks.
    pub seen: Vec<Seen>,
    /// Whether two marks of one version differ.
    pub disagree: bool,
    /// When asks with an old limit came late.
    pub late_asks: Vec<Time>,
    /// How often a node was not opened because one of another version runs, and whether two of them were open.
    pub refused: u64,
    /// When nodes of two versions were open at one time, the first time.
    pub mixed: Option<Time>,
    /// When a node began to open with an old limit, and when that ended: host, from, to.
    pub opened_old: Vec<(usize, Time, Time)>,
    /// The limit by which a node goes as it has just been opened, as a place in the plan: host, moment, limit.
    pub begins_with: Vec<(usize, Time, Option<usize>)>,
    /// When nodes were open: host, from, to.
    pub open: Vec<(usize, Time, Time)>,
    /// Whether the node of each host has a slot as the world ends, or why not; `None` if it is not open.
    pub slots: Vec<Option<SlotState>>,
    /// What was not as live as it must be.
    pub lazy: Vec<String>,
    /// How many worlds' liveness was looked at.
    pub lively: bool,
    /// The virtual time that passed.
    pub lasted: Time,
    /// Lines for a reader, if they were asked for.
    pub story: Vec<String>,
}

/// A world in play.
pub(crate) struct World<'a> {
    pub plan: &'a Plan,
    pub lua: &'a mut Scripts,
    pub now: Time,
    number: u64,
    queue: BinaryHeap<Reverse<Item>>,
    pub random: Random,
    pub servers: Vec<Server>,
    pub names: Vec<String>,
    pub slots: Option<Slots>,
    /// The server that sentinels name.
    pub primary: usize,
    /// While there are two primaries: the older one, and the mask of the hosts that it answers.
    pub older: Option<(usize, u32)>,
    /// How many servers hold keys; the others are sentinels.
    pub holders: usize,
    /// How many faults stop the servers, or keep them down.
    pub stopped: u32,
    pub down: u32,
    pub hosts: Vec<Host>,
    pub conns: Vec<Conn>,
    pub links: HashMap<(usize, u64, LinkId), usize>,
    /// Which faults are going on.
    pub active: Vec<bool>,
    pub found: Found,
    pub tell: bool,
    /// After the faults: every host asks for the first key as often as it can.
    pub pressing: bool,
    versions: BTreeMap<u64, String>,
}

impl<'a> World<'a> {
    pub(crate) fn new(plan: &'a Plan, lua: &'a mut Scripts, tell: bool) -> World<'a> {
        let mut random = Random::new(plan.seed);
        let holders = match plan.shape {
            Shape::Single => 1,
            Shape::Sentinel => 2,
            Shape::Cluster(servers) => servers,
        };
        let sentinels = if plan.shape == Shape::Sentinel { 3 } else { 0 };
        let mut servers: Vec<Server> = (0..holders + sentinels).map(|_| Server::new()).collect();
        if plan.shape == Shape::Sentinel {
            servers[1].replica = true;
            servers.iter_mut().take(holders).for_each(|server| server.data.has_replica = true);
        }
        let names = (0..servers.len()).map(|i| format!("s{i}:6379")).collect();
        let hosts = (0..plan.hosts).map(|_| Host::new(random.fork())).collect();
        let mut world = World {
            plan,
            lua,
            now: 0,
            number: 0,
            queue: BinaryHeap::new(),
            random,
            servers,
            names,
            slots: matches!(plan.shape, Shape::Cluster(_)).then(|| Slots::even(holders)),
            primary: 0,
            older: None,
            holders,
            stopped: 0,
            down: 0,
            hosts,
            conns: Vec::new(),
            links: HashMap::new(),
            active: vec![false; plan.faults.len()],
            found: Found::default(),
            tell,
            pressing: false,
            versions: BTreeMap::new(),
        };
        for (i, fault) in plan.faults.iter().enumerate() {
            world.at(fault.at, Ev::Begin(i));
            world.at(fault.until.max(fault.at + 1), Ev::End(i));
            if let What::CopyRestored { age } = fault.what {
                world.at(fault.at.saturating_sub(age), Ev::Snapshot);
            }
        }
        world
    }

    pub(crate) fn at(&mut self, time: Time, event: Ev) {
        self.number += 1;
        self.queue.push(Reverse(Item(time.max(self.now), self.number, event)));
    }

    pub(crate) fn say(&mut self, line: impl FnOnce() -> String) {
        if self.tell {
            let line = line();
            self.found.story.push(format!("{:>12.6} {line}", self.now as f64 / 1e9));
        }
    }

    /// Plays until this moment.
    pub(crate) fn until(&mut self, end: Time) {
        while let Some(Reverse(Item(time, ..))) = self.queue.peek() {
            if *time > end {
                break;
            }
            let Some(Reverse(Item(time, _, event))) = self.queue.pop() else { break };
            self.now = time;
            self.happen(event);
        }
        self.now = end;
    }

    fn happen(&mut self, event: Ev) {
        match event {
            Ev::Wake(host) => self.wake(host),
            Ev::Visit(host) => self.visit(host),
            Ev::Call(host, generation, reading, at, key, cost) => {
                self.call(host, generation, reading, at, key, cost)
            }
            Ev::Reopen(host, generation) => self.reopen(host, generation),
            Ev::Connect(conn) => self.connect_arrives(conn),
            Ev::Connected(conn) => self.reaches_node(conn, crate::host::Came::Connected),
            Ev::ToServer(conn, bytes) => self.reaches_server(conn, bytes),
            Ev::ToNode(conn, bytes) => self.reaches_node(conn, crate::host::Came::Bytes(bytes)),
            Ev::Copy(conn, bytes) => self.send_to_node(conn, bytes),
            Ev::NodeEnded(conn) => self.conns[conn].served = false,
            Ev::ServerEnded(conn) => self.reaches_node(conn, crate::host::Came::Closed),
            Ev::Begin(fault) => self.begin(fault),
            Ev::End(fault) => self.end(fault),
            Ev::Snapshot => self.servers.iter_mut().for_each(|server| server.copy = server.data.clone()),
        }
    }

    fn begin(&mut self, fault: usize) {
        let (what, now) = (self.plan.faults[fault].what, self.now);
        self.active[fault] = true;
        self.say(|| format!("fault {fault} begins: {what:?}"));
        let holders = self.holders;
        match what {
            What::ServerStops => self.stopped += 1,
            What::ServerDown | What::DataLost | What::CopyRestored { .. } => {
                self.down += 1;
                self.close_all(|_| true);
            }
            What::ScriptsLost => self.servers.iter_mut().for_each(Server::flush_scripts),
            What::Promoted { lag } => self.promote(lag),
            What::SlotsMove { from, count, to } => {
                let slots = self.slots.as_mut().filter(|slots| slots.moving.is_none());
                if let Some(slots) = slots {
                    // The world may have fewer servers than it had when the fault was drawn.
                    slots.moving = Some((from, from + count, to % holders));
                    // Half of the keys have moved; the others follow when it ends.
                    self.move_keys(|slot| slot % 2 == 0);
                }
            }
            What::ServerSet { by } => self.servers[..holders].iter_mut().for_each(|s| s.clock.set(now, by)),
            What::ServerRuns { ppm } => {
                self.servers[..holders].iter_mut().for_each(|s| s.clock.run(now, ppm))
            }
            What::OneServerSet { server, by } => self.servers[server % holders].clock.set(now, by),
            What::OneServerRuns { server, ppm } => self.servers[server % holders].clock.run(now, ppm),
            What::TwoPrimaries { left } => self.divide(left),
            What::WorkersStop { node, count } => {
                self.stop_workers(node, count, self.plan.faults[fault].until)
            }
            What::NodeUpgraded { node, to } => self.upgrade(node, to),
            What::NodeStops { node, suspended } => {
                self.stop(node);
                if suspended {
                    self.hosts[node].run(now, 0, true);
                }
            }
            What::NodeKilled { node, old } => self.kill(node, old),
            What::NodeCloses { node, old } => self.close_node(node, old),
            What::NodeSet { node, by } => self.hosts[node].clock.set(now, by),
            What::NodeRuns { node, ppm } => self.hosts[node].run(now, ppm, ppm > 0),
            What::Change { node, to } => self.change(node, to),
            What::Delay { .. }
            | What::Lose { .. }
            | What::Cut { .. }
            | What::Double { .. }
            | What::Swap { .. }
            | What::Reset { .. }
            | What::ClaimLost { .. }
            | What::WorkersLate { .. } => {}
        }
    }

    fn end(&mut self, fault: usize) {
        let (what, now) = (self.plan.faults[fault].what, self.now);
        self.active[fault] = false;
        self.say(|| format!("fault {fault} ends: {what:?}"));
        match what {
            What::ServerStops => {
                self.stopped -= 1;
                self.serve_all();
            }
            What::ServerDown => self.down -= 1,
            What::DataLost => {
                self.down -= 1;
                self.servers.iter_mut().for_each(Server::empty);
            }
            What::CopyRestored { .. } => {
                self.down -= 1;
                for server in &mut self.servers {
                    server.empty();
                    server.data = server.copy.clone();
                }
            }
            What::SlotsMove { from, count, to }
                if self
                    .slots
                    .as_ref()
                    .is_some_and(|slots| slots.moving == Some((from, from + count, to % self.holders))) =>
            {
                self.move_keys(|_| true);
                if let Some(slots) = &mut self.slots {
                    let end = (from + count).min(slots.owners.len());
                    slots.owners[from..end].fill(to % self.holders);
                    slots.moving = None;
                }
            }
            What::ServerRuns { .. } => {
                self.servers.iter_mut().for_each(|s| s.clock.run(now, crate::clock::EVEN));
            }
            What::OneServerRuns { server, .. } => {
                self.servers[server % self.holders].clock.run(now, crate::clock::EVEN);
            }
            What::TwoPrimaries { .. } => self.unite(),
            What::NodeUpgraded { node, .. } => self.upgrade(node, Edition::This),
            What::NodeStops { node, suspended } => {
                self.hosts[node].stopped -= 1;
                if suspended {
                    self.hosts[node].run(now, crate::clock::EVEN, true);
                }
                self.resume(node);
            }
            What::NodeRuns { node, .. } => {
                self.hosts[node].run(now, crate::clock::EVEN, true);
                self.resume(node);
            }
            What::NodeKilled { node, .. } | What::NodeCloses { node, .. } => {
                // One that still closes is killed.
                if !self.hosts[node].is_open() {
                    self.end_node(node);
                }
                let generation = self.hosts[node].generation;
                self.at(now, Ev::Reopen(node, generation));
            }
            _ => {}
        }
    }

    /// Hands over keys of the hash slots that move.
    fn move_keys(&mut self, of: impl Fn(usize) -> bool) {
        let Some((from, to, there)) = self.slots.as_ref().and_then(|slots| slots.moving) else { return };
        for server in (0..self.holders).filter(|server| *server != there) {
            // A key takes the rest of its life along, by whatever clock.
            let reads = |server: usize| (self.servers[server].clock.read(self.now) / 1_000_000) as i64;
            let ahead_ms = reads(there) - reads(server);
            let mut data = std::mem::take(&mut self.servers[server].data);
            data.hand_over(&mut self.servers[there].data, ahead_ms, |key| {
                let slot = hash_slot(key);
                (from..to).contains(&slot) && of(slot)
            });
            self.servers[server].data = data;
        }
    }

    /// The replica takes over, and the old primary goes on for these hosts.
    fn divide(&mut self, left: u32) {
        if self.plan.shape != Shape::Sentinel || self.older.is_some() {
            return;
        }
        let old = self.take_over(0);
        self.servers[old].replica = false;
        self.older = Some((old, left));
    }

    /// The older of two primaries follows the newer one.
    fn unite(&mut self) {
        let Some((old, _)) = self.older.take() else { return };
        self.servers[old].replica = true;
        self.servers[old].data = self.servers[self.primary].data.clone();
        self.close_all(|server| server == old);
    }

    /// Whether nothing passes between a host and a server, because they are on two sides.
    pub(crate) fn is_apart(&self, host: usize, server: usize) -> bool {
        self.older.is_some_and(|(old, left)| {
            let at_old = server == old || server == self.holders;
            at_old != (left >> host & 1 == 1)
        })
    }

    /// The replica takes over; the old primary follows it.
    fn promote(&mut self, lag: Time) {
        if self.older.is_none() {
            let old = self.take_over(lag);
            self.close_all(|server| server == old);
        }
    }

    /// Makes the replica the primary. Returns the old one.
    fn take_over(&mut self, lag: Time) -> usize {
        let (old, new) = (self.primary, 1 - self.primary);
        let kept = self.now.saturating_sub(lag);
        for (written, changes) in std::mem::take(&mut self.servers[old].lag) {
            if written <= kept {
                self.servers[new].data.apply(&changes);
            }
        }
        self.servers[new].data.changes();
        self.servers[new].replica = false;
        self.servers[old].replica = true;
        self.servers[old].data = self.servers[new].data.clone();
        self.primary = new;
        old
    }

    /// Reads what a mark says now.
    pub(crate) fn mark(&mut self, server: usize, value: &[u8]) {
        let text = String::from_utf8_lossy(value).into_owned();
        let mut fields = text.split(';');
        // The format: this version's, or a later one's. Nodes of 0.3 write none, and change no limit.
        if !fields.next().is_some_and(|format| format.starts_with('f')) {
            return;
        }
        let (version, from) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let (Ok(version), Ok(from)) = (version.parse::<u64>(), from.parse::<u64>()) else { return };
        let next = fields.next().unwrap_or_default().to_owned();
        match self.versions.get(&version) {
            Some(known) if *known == next => {
                // Once it is in force, or once it was put off, it is known when.
                let (now, clock) = (self.now, &self.servers[server].clock);
                if let Some(seen) = self.found.seen.iter_mut().find(|seen| seen.version == version) {
                    let in_force = clock.when(now, from * 1_000).unwrap_or(Time::MAX);
                    // A `from` that has passed stays in the mark until a script runs on it: it may be refused for its
                    // digest.
                    seen.in_force = if in_force <= now { seen.in_force.min(now) } else { in_force };
                }
                return;
            }
            Some(_) => self.found.disagree = true,
            None => {}
        }
        let limit = self.plan.limits.iter().position(|limit| {
            let (units, burst, (rate, of_burst)) = (limit.units, limit.burst, limit.reserve);
            next.starts_with(&format!("{units} per 1000000000 ns, burst {burst}, reserve {rate}/{of_burst},"))
        });
        let when = self.servers[server].clock.when(self.now, from * 1_000).unwrap_or(Time::MAX);
        let in_force = if from == 0 { self.now } else { when };
        self.found.seen.push(Seen { version, limit, begun: self.now, in_force });
        self.say(|| format!("mark {text}"));
        self.versions.insert(version, next);
    }

    pub(crate) fn admit(&mut self, host: usize, key: u32, at: Time, units: u64, way: Way) {
        self.found.latest = self.found.latest.max(self.now.saturating_sub(at));
        self.found.admitted.push(Admitted { key, at, units, node: host as u32, way });
    }

    /// Draws how long a message to or from a host takes.
    pub(crate) fn latency(&mut self, host: usize, to_server: bool) -> Time {
        let mut takes = self.random.within(30_000, 300_000);
        let mut earliest = 0;
        for (fault, active) in self.plan.faults.iter().zip(&self.active) {
            let mine = |node: Option<usize>| node.is_none_or(|node| node == host);
            match fault.what {
                What::Delay { node, most } if *active && mine(node) => takes += self.random.below(most),
                What::Cut { node, to_server: side } if *active && mine(node) && side == to_server => {
                    earliest = earliest.max(fault.until + MS);
                }
                _ => {}
            }
        }
        takes.max(earliest.saturating_sub(self.now))
    }
}

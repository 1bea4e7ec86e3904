//! A host: its clocks, the node that runs on it, and the requests that come to it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::Arc;
use std::time::Duration;

use tatcell_cluster::sim::{self, Action, Event, Machine, Now};
use tatcell_cluster::{ChangeError, Cluster, LimitId, OpenError, SlotState, Verdict};

use crate::audit::Way;
use crate::clock::{Clock, Time, EVEN, MS, SECOND};
use crate::plan::{Edition, Shape, What};
use crate::random::Random;
use crate::world::{Ev, World};

/// The node of a host.
struct Node {
    /// `None` once it is shut down.
    cluster: Option<Cluster>,
    machine: Machine,
    /// What the handle's clock reads.
    reading: Arc<AtomicU64>,
    limit: Option<LimitId>,
    changes: Vec<Receiver<Result<Duration, ChangeError>>>,
}

/// A request that waits for its answer.
struct Waits {
    key: u32,
    cost: u64,
    asked: Time,
}

pub(crate) struct Host {
    /// The clock of decisions.
    pub clock: Clock,
    /// The clock of waits, which is never set.
    timer: Clock,
    node: Option<Node>,
    /// Counts the nodes that ran here.
    pub generation: u64,
    /// How many faults stop it.
    pub stopped: u32,
    /// What came while it was stopped.
    inbox: Vec<Ev>,
    /// The next wake-up that is in the queue.
    wake: Option<Time>,
    waits: HashMap<u64, Waits>,
    token: u64,
    /// The limit of its configuration, as a place in the plan.
    configured: usize,
    /// The version of its node.
    pub edition: Edition,
    opening: Option<Time>,
    open_since: Option<Time>,
    random: Random,
}

/// What comes to a node by a connection.
#[derive(Debug)]
pub(crate) enum Came {
    Connected,
    Bytes(Vec<u8>),
    Closed,
}

impl Host {
    pub(crate) fn new(mut random: Random) -> Host {
        // Up for a while, so that an hour back is still after the start.
        let up = random.within(4_000, 1_000_000) * SECOND;
        Host {
            clock: Clock::at(up),
            timer: Clock::at(random.within(1, 1_000) * SECOND),
            node: None,
            generation: 0,
            stopped: 0,
            inbox: Vec::new(),
            wake: None,
            waits: HashMap::new(),
            token: 0,
            configured: 0,
            edition: Edition::This,
            opening: None,
            open_since: None,
            random,
        }
    }

    /// Sets the speed of its clocks.
    pub(crate) fn run(&mut self, now: Time, ppm: u64, timer_too: bool) {
        self.clock.run(now, ppm);
        self.timer.run(now, if timer_too { ppm } else { EVEN });
    }

    /// Whether its node is open.
    pub(crate) fn is_open(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.limit.is_some() && node.cluster.is_some())
    }

    /// Returns whether its node has a slot now, or why not; `None` if it is not open.
    pub(crate) fn slot(&self, now: Time) -> Option<SlotState> {
        let node = self.node.as_ref().filter(|_| self.is_open())?;
        node.reading.store(self.clock.read(now), Ordering::Relaxed);
        node.cluster.as_ref().map(|cluster| cluster.metrics().slot)
    }
}

fn key_name(key: u32) -> [u8; 8] {
    let mut name = *b"key-0000";
    let digits = [key / 1_000, key / 100 % 10, key / 10 % 10, key % 10];
    name[4..].iter_mut().zip(digits).for_each(|(at, digit)| *at = b'0' + (digit % 10) as u8);
    name
}

impl World<'_> {
    /// Begins with a node on each host, one after the other.
    pub(crate) fn start(&mut self) {
        for host in 0..self.hosts.len() {
            let at = self.random.below(2) * self.random.below(3 * SECOND);
            self.at(at, Ev::Reopen(host, 0));
            let first = self.hosts[host].random.below(self.plan.gap * 2);
            self.at(first, Ev::Visit(host));
        }
    }

    fn url(&self) -> String {
        match self.plan.shape {
            Shape::Single => "redis://s0:6379/".to_owned(),
            Shape::Sentinel => "redis+sentinel://s2:6379,s3:6379,s4:6379/main".to_owned(),
            Shape::Cluster(servers) => {
                let all: Vec<String> = (0..servers).map(|i| format!("s{i}:6379")).collect();
                format!("redis+cluster://{}", all.join(","))
            }
        }
    }

    pub(crate) fn reopen(&mut self, host: usize, generation: u64) {
        if self.hosts[host].generation != generation || self.hosts[host].node.is_some() {
            return;
        }
        if self.hosts[host].stopped > 0 {
            return self.hosts[host].inbox.push(Ev::Reopen(host, generation));
        }
        let (plan, reading) = (self.plan, self.hosts[host].clock.read(self.now));
        let limit = plan.limits[self.hosts[host].configured].shared();
        let builder = Cluster::builder(&self.url(), plan.slots).limit(limit).keys(plan.keys).log(|_| {});
        let builder = builder
            .timeout(Duration::from_nanos(plan.timeout))
            .slot_ttl(Duration::from_nanos(plan.ttl))
            .change_delay(Duration::from_nanos(plan.delay))
            .when_down(plan.down);
        let shared = Arc::new(AtomicU64::new(reading));
        let seed = self.hosts[host].random.any();
        let (cluster, machine) = match sim::node(builder, seed, shared.clone()) {
            Ok(made) => made,
            Err(error) => {
                self.found.lazy.push(format!("a node cannot be made: {error}"));
                return;
            }
        };
        let (now, at) = (self.now, &mut self.hosts[host]);
        at.generation += 1;
        at.opening = Some(now);
        at.waits.clear();
        at.wake = None;
        at.node =
            Some(Node { cluster: Some(cluster), machine, reading: shared, limit: None, changes: Vec::new() });
        self.say(|| format!("host {host} opens a node"));
        self.step(host, Event::Time);
    }

    /// One step of a node, and what follows from it.
    fn step(&mut self, host: usize, event: Event<'_>) {
        let now = self.now;
        let measure = self.plan.down != tatcell_cluster::Down::Reserve;
        let at = &mut self.hosts[host];
        let Some(node) = &mut at.node else { return };
        let reading = at.clock.read(now);
        node.reading.store(reading, Ordering::Relaxed);
        let before = measured(measure, node.cluster.as_ref());
        self.found.steps += 1;
        let actions = node.machine.step(Now { reading, timer: at.timer.read(now) }, event);
        let after = measured(measure, node.cluster.as_ref());
        let generation = at.generation;
        let mut completions = Vec::new();
        let mut news = Vec::new();
        if let Some(cluster) = &node.cluster {
            if node.limit.is_some() {
                cluster.drain(&mut completions);
            }
        }
        node.changes.retain(|answer| match answer.try_recv() {
            Ok(answer) => {
                news.push(format!("host {host}: a change: {answer:?}"));
                false
            }
            Err(error) => error == std::sync::mpsc::TryRecvError::Empty,
        });
        let opened = match node.limit {
            None => node.machine.opened(),
            Some(_) => None,
        };
        for action in actions {
            match action {
                Action::Connect(link, address) => {
                    let name = address.to_string();
                    let server = self.names.iter().position(|known| *known == name);
                    self.connect(host, link, server.unwrap_or_else(|| panic!("no server {name}")));
                }
                Action::Send(link, bytes) => {
                    if let Some(conn) = self.links.get(&(host, generation, link)).copied() {
                        self.send(conn, bytes);
                    }
                }
                Action::Close(link) => {
                    if let Some(conn) = self.links.get(&(host, generation, link)).copied() {
                        self.hang_up(conn);
                    }
                }
            }
        }
        news.into_iter().for_each(|line| self.say(|| line));
        let way = match way(before, after) {
            Way::Share => Way::Unsure,
            way => way,
        };
        for completion in completions {
            let Some(waits) = self.hosts[host].waits.remove(&completion.token) else { continue };
            if completion.verdict == Verdict::Pass {
                if way == Way::Held {
                    self.found.longest = self.found.longest.max(now - waits.asked);
                }
                self.admit(host, waits.key, now, waits.cost, way);
            }
        }
        match opened {
            Some(Ok(())) => self.opened(host),
            Some(Err(error)) => {
                self.say(|| format!("host {host}: not opened: {error}"));
                self.found.refused += u64::from(matches!(error, OpenError::OtherFormat(_)));
                self.opening_ended(host);
                self.hosts[host].node = None;
                let (wait, generation) = (self.random.within(200 * MS, SECOND), self.hosts[host].generation);
                // As after a change that it did not know, an operator gives it the newest limit.
                let other = matches!(error, OpenError::OtherParameters { .. });
                if other {
                    self.configure(host, false);
                }
                let at = self.now + wait;
                self.at(at, Ev::Reopen(host, generation));
                return;
            }
            None => {}
        }
        let node = self.hosts[host].node.as_ref();
        if node.is_some_and(|node| node.cluster.is_none() && node.machine.is_done()) {
            self.hosts[host].node = None;
        }
        self.plan_wake(host);
    }

    fn opened(&mut self, host: usize) {
        self.say(|| format!("host {host}: open"));
        self.opening_ended(host);
        self.hosts[host].open_since = Some(self.now);
        let edition = self.hosts[host].edition;
        if self.hosts.iter().any(|other| other.is_open() && other.edition != edition) {
            self.found.mixed.get_or_insert(self.now);
        }
        if let Some(node) = &mut self.hosts[host].node {
            node.limit = node.cluster.as_ref().and_then(|cluster| cluster.limit("x"));
            if let (Some(cluster), Some(limit)) = (&node.cluster, node.limit) {
                let goes_by = cluster.in_force(limit);
                let place = self.plan.limits.iter().position(|limit| limit.shared() == goes_by);
                self.found.begins_with.push((host, self.now, place));
            }
        }
    }

    fn opening_ended(&mut self, host: usize) {
        let newest = self.found.seen.iter().rev().find_map(|seen| seen.limit);
        let old = newest.is_some_and(|newest| newest != self.hosts[host].configured);
        if let (Some(from), true) = (self.hosts[host].opening.take(), old) {
            self.found.opened_old.push((host, from, self.now));
        }
    }

    fn plan_wake(&mut self, host: usize) {
        let now = self.now;
        let soon = now + self.random.within(5_000, 100_000);
        let at = &mut self.hosts[host];
        let Some(node) = &at.node else { return };
        let next = match node.machine.deadline() {
            0 => Some(soon),
            u64::MAX => None,
            timer => at.timer.when(now, timer),
        };
        if let Some(next) = next.filter(|next| at.wake.is_none_or(|wake| *next < wake)) {
            at.wake = Some(next);
            self.at(next, Ev::Wake(host));
        }
    }

    pub(crate) fn wake(&mut self, host: usize) {
        let now = self.now;
        let at = &mut self.hosts[host];
        if at.wake != Some(now) {
            return;
        }
        at.wake = None;
        if at.stopped > 0 {
            return at.inbox.push(Ev::Wake(host));
        }
        let due = at.node.as_ref().is_some_and(|node| node.machine.deadline() <= at.timer.read(now));
        match due {
            true => self.step(host, Event::Time),
            false => self.plan_wake(host),
        }
    }

    pub(crate) fn reaches_node(&mut self, conn: usize, came: Came) {
        let (host, generation, link) = {
            let conn = &self.conns[conn];
            (conn.host, conn.generation, conn.link)
        };
        if self.hosts[host].generation != generation || !self.conns[conn].used {
            return;
        }
        if self.hosts[host].stopped > 0 {
            let event = match came {
                Came::Connected => Ev::Connected(conn),
                Came::Bytes(bytes) => Ev::ToNode(conn, bytes),
                Came::Closed => Ev::ServerEnded(conn),
            };
            return self.hosts[host].inbox.push(event);
        }
        match came {
            Came::Connected => self.step(host, Event::Connected(link)),
            Came::Bytes(bytes) => self.step(host, Event::Bytes(link, &bytes)),
            Came::Closed => self.step(host, Event::Closed(link, "reset".to_owned())),
        }
    }

    /// A host goes on: what came meanwhile is there at once.
    pub(crate) fn resume(&mut self, host: usize) {
        if self.hosts[host].stopped > 0 {
            return;
        }
        let now = self.now;
        for event in std::mem::take(&mut self.hosts[host].inbox) {
            if let Ev::Wake(_) = event {
                self.hosts[host].wake = Some(now);
            }
            self.at(now, event);
        }
        self.plan_wake(host);
    }

    /// A host stops. One of its workers has just read its clock.
    pub(crate) fn stop(&mut self, host: usize) {
        let now = self.now;
        let at = &mut self.hosts[host];
        at.stopped += 1;
        let (generation, reading) = (at.generation, at.clock.read(now));
        let calls = (0..4).map(|_| Ev::Call(host, generation, reading, now, 0, 1));
        at.inbox.extend(calls);
    }

    /// So many workers of a host have just read its clock, and go on much later.
    pub(crate) fn stop_workers(&mut self, host: usize, count: u64, until: Time) {
        let (now, generation) = (self.now, self.hosts[host].generation);
        let reading = self.hosts[host].clock.read(now);
        for _ in 0..count {
            let at = until + self.hosts[host].random.below(100 * MS);
            self.at(at, Ev::Call(host, generation, reading, now, 0, 1));
        }
    }

    /// A node is replaced by one of another version, or that one by a node of this one.
    pub(crate) fn upgrade(&mut self, host: usize, to: Edition) {
        self.kill(host, false);
        self.hosts[host].edition = to;
        let (at, generation) = (self.now + self.random.below(100 * MS), self.hosts[host].generation);
        self.at(at, Ev::Reopen(host, generation));
    }

    fn was_open(&mut self, host: usize) {
        if let Some(from) = self.hosts[host].open_since.take() {
            self.found.open.push((host, from, self.now));
        }
    }

    /// The world ends.
    pub(crate) fn finish(&mut self) {
        self.found.slots = self.hosts.iter().map(|host| host.slot(self.now)).collect();
        (0..self.hosts.len()).for_each(|host| self.was_open(host));
    }

    pub(crate) fn kill(&mut self, host: usize, old: bool) {
        self.configure(host, old);
        self.end_node(host);
    }

    pub(crate) fn end_node(&mut self, host: usize) {
        self.opening_ended(host);
        self.was_open(host);
        self.hosts[host].node = None;
        self.hosts[host].generation += 1;
        let generation = self.hosts[host].generation - 1;
        for conn in 0..self.conns.len() {
            let this = &self.conns[conn];
            if this.host == host && this.generation == generation && this.used {
                self.hang_up(conn);
            }
        }
    }

    pub(crate) fn close_node(&mut self, host: usize, old: bool) {
        self.configure(host, old);
        if !self.hosts[host].is_open() {
            return self.kill(host, old);
        }
        if let Some(node) = &mut self.hosts[host].node {
            node.cluster = None;
        }
        self.hosts[host].waits.clear();
        self.was_open(host);
        self.plan_wake(host);
    }

    fn configure(&mut self, host: usize, old: bool) {
        let newest = self.found.seen.iter().rev().find_map(|seen| seen.limit).unwrap_or(0);
        self.hosts[host].configured = if old { 0 } else { newest };
    }

    pub(crate) fn change(&mut self, host: usize, to: usize) {
        let to = self.plan.limits[to].shared();
        if let Some(node) = self.hosts[host].node.as_mut().filter(|node| node.limit.is_some()) {
            let Some(cluster) = &node.cluster else { return };
            if let Ok(answer) = sim::change(cluster, to) {
                node.changes.push(answer);
            }
        }
        self.plan_wake(host);
    }

    /// Requests come to a host.
    pub(crate) fn visit(&mut self, host: usize) {
        let (plan, now, pressing) = (self.plan, self.now, self.pressing);
        let random = &mut self.hosts[host].random;
        let gap = if pressing { plan.press } else { random.below(plan.gap * 2) + 1 };
        let count = if pressing { 2 } else { random.within(1, plan.visit) };
        let key = match () {
            () if pressing => 0,
            () if random.chance(plan.cold) => 2 + random.below(1_000) as u32,
            () => u32::from(random.chance(150)),
        };
        let costs: Vec<u64> = (0..count)
            .map(|_| match random.below(if plan.costs && !pressing { 20 } else { 1 }) {
                1 => 0,
                2..=4 => random.within(1, 9),
                5 => random.within(1, plan.limits[0].burst),
                _ => 1,
            })
            .collect();
        let reading = self.hosts[host].clock.read(now);
        let generation = self.hosts[host].generation;
        let late = plan.faults.iter().zip(&self.active).find_map(|(fault, active)| match fault.what {
            What::WorkersLate { node, most } if *active && node == host => Some(most),
            _ => None,
        });
        let into = if plan.lull > 0 && !pressing { now % plan.lull } else { plan.lull };
        let quiet = plan.lull / 2 + if host > 0 { plan.apart } else { 0 };
        if into < quiet {
            return self.at(now - into + quiet, Ev::Visit(host));
        }
        self.at(now + gap, Ev::Visit(host));
        // Only the last of what came while a host was stopped: that worker had read its clock.
        if self.hosts[host].stopped > 0 {
            return;
        }
        for cost in costs {
            match late {
                Some(most) => {
                    let at = now + self.hosts[host].random.below(most);
                    self.at(at, Ev::Call(host, generation, reading, now, key, cost));
                }
                None => self.call(host, generation, reading, now, key, cost),
            }
        }
    }

    /// Decides one request by a reading that was taken at `at`.
    pub(crate) fn call(&mut self, host: usize, generation: u64, reading: u64, at: Time, key: u32, cost: u64) {
        let now = self.now;
        let measure = self.plan.down != tatcell_cluster::Down::Reserve;
        let this = &mut self.hosts[host];
        if this.generation != generation {
            return;
        }
        if this.stopped > 0 {
            return this.inbox.push(Ev::Call(host, generation, reading, at, key, cost));
        }
        let Some(Node { cluster: Some(cluster), limit: Some(limit), reading: shared, .. }) = &this.node
        else {
            return;
        };
        self.found.decisions += 1;
        shared.store(this.clock.read(now), Ordering::Relaxed);
        let before = measured(measure, Some(cluster));
        let name = key_name(key);
        let kind = this.random.below(20);
        let verdict = match kind {
            // A caller that leaves at once, and wastes what it gets.
            0 if !self.pressing => sim::ask(cluster, *limit, &name, cost, reading).0,
            1..=4 => cluster.check_at(*limit, &name, cost, reading),
            _ => {
                this.token += 1;
                let verdict = cluster.submit_at(*limit, &name, cost, reading, this.token);
                if verdict == Verdict::Pending {
                    this.waits.insert(this.token, Waits { key, cost, asked: at });
                }
                verdict
            }
        };
        let way = way(before, measured(measure, Some(cluster)));
        // As much as the caller says, whatever it was given: the node gives back no more than it still holds.
        let back = match self.plan.back {
            0 => 0,
            of if !self.pressing && this.random.chance(of) => {
                cluster.give_back(*limit, &name, this.random.within(1, 2 * cost.max(4)))
            }
            _ => 0,
        };
        if self.tell && verdict == Verdict::Pass && cost > 0 {
            self.say(|| format!("host {host} passes {cost} of key {key}: {way:?}"));
        }
        if verdict == Verdict::Pass && cost > 0 {
            self.admit(host, key, at, cost, way);
        }
        if back > 0 {
            self.say(|| format!("host {host} gives {back} back to key {key}"));
            self.found.back += back;
            self.admit(host, key, now, back, Way::Back);
        }
        self.plan_wake(host);
    }
}

/// What a node passed without the store: by shares, and open.
fn measured(measure: bool, cluster: Option<&Cluster>) -> (u64, u64) {
    cluster.filter(|_| measure).map_or((0, 0), |cluster| {
        let metrics = cluster.metrics();
        (metrics.passed_share, metrics.passed_open)
    })
}

fn way(before: (u64, u64), after: (u64, u64)) -> Way {
    match () {
        () if after.1 > before.1 => Way::Open,
        () if after.0 > before.0 => Way::Share,
        () => Way::Held,
    }
}

//! What a seed draws: a fleet, its store, its limits, its load, and the faults with their times. A plan is data, so a
//! run that exceeds its bound can be played again with fewer faults.

use std::time::Duration;

use tatcell_cluster::{Down, SharedLimit};

use crate::clock::{Time, EVEN, MS, SECOND};
use crate::later;
use crate::random::Random;

/// A limit of a plan: units a second, burst, and the per mille of both that are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Units a second.
    pub units: u64,
    /// Units at once.
    pub burst: u64,
    /// Per mille of the rate and of the burst for reserves.
    pub reserve: (u32, u32),
}

impl Limit {
    /// Returns it as a node gets it.
    pub fn shared(&self) -> SharedLimit {
        let limit = SharedLimit::new("x", self.units, Duration::from_secs(1), self.burst);
        limit.reserve(self.reserve.0, self.reserve.1)
    }
}

/// The store of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One server.
    Single,
    /// A primary and a replica, and three sentinels.
    Sentinel,
    /// A Redis Cluster with this number of primaries.
    Cluster(usize),
}

/// The version of tatcell that a node has; this one, if it is not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edition {
    /// 0.3.0, whose marks have no format and whose keys have another form.
    Before,
    /// This one.
    #[default]
    This,
    /// One whose marks have the next format.
    Later,
}

/// What goes wrong. `node` is a host; `None` is all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Every message takes up to this long.
    Delay { node: Option<usize>, most: Time },
    /// Connections fall silent: what is sent on them never arrives.
    Lose { node: Option<usize>, per_mille: u64 },
    /// Nothing arrives at the servers until it ends, or nothing at the node.
    Cut { node: Option<usize>, to_server: bool },
    /// Replies come twice, the second one at once or later.
    Double { node: Option<usize>, per_mille: u64, late: bool },
    /// Replies go to another connection of the same server.
    Swap { per_mille: u64 },
    /// Connections are reset: before a command, after it, or within its reply.
    Reset { node: Option<usize>, per_mille: u64 },
    /// The node takes a slot, and its connection is reset before the answer.
    ClaimLost { node: usize },
    /// The servers stop and go on.
    ServerStops,
    /// They go away and come back with all data.
    ServerDown,
    /// They go away and come back without any.
    DataLost,
    /// They go away and come back with a copy of this age.
    CopyRestored { age: Time },
    /// They forget the scripts.
    ScriptsLost,
    /// The replica takes over, without what was written in the last `lag`.
    Promoted { lag: Time },
    /// A part of the hash slots moves to another server.
    SlotsMove { from: usize, count: usize, to: usize },
    /// The servers' clocks are set.
    ServerSet { by: i64 },
    /// They run at another speed, or stand still.
    ServerRuns { ppm: u64 },
    /// The clock of one server is set, so that the servers' clocks differ.
    OneServerSet { server: usize, by: i64 },
    /// It runs at another speed than those of the other servers.
    OneServerRuns { server: usize, ppm: u64 },
    /// The replica takes over, and the old primary goes on: it answers the hosts of this mask, with one of the
    /// sentinels, and the new one answers the others, with the other sentinels.
    TwoPrimaries { left: u32 },
    /// A host stops and goes on, with its clocks or without.
    NodeStops { node: usize, suspended: bool },
    /// Workers of a host are stopped between their clock and their call, for up to this long.
    WorkersLate { node: usize, most: Time },
    /// This number of workers of a host read their clock, and call when the fault ends.
    WorkersStop { node: usize, count: u64 },
    /// A node is killed; it is opened again when the fault ends, with the first limit or with the newest.
    NodeKilled { node: usize, old: bool },
    /// A node is shut down, and opened again.
    NodeCloses { node: usize, old: bool },
    /// A node is replaced by one of another version, until the fault ends.
    NodeUpgraded { node: usize, to: Edition },
    /// A host's clock of decisions is set.
    NodeSet { node: usize, by: i64 },
    /// All its clocks run at another speed.
    NodeRuns { node: usize, ppm: u64 },
    /// A node is asked to change the limit to this one of the plan.
    Change { node: usize, to: usize },
}

impl What {
    /// Its name, for the counts.
    pub fn kind(&self) -> &'static str {
        match self {
            What::Delay { .. } => "delay",
            What::Lose { .. } => "loss",
            What::Cut { to_server: true, .. } => "cut to the servers",
            What::Cut { to_server: false, .. } => "cut to the node",
            What::Double { .. } => "doubled replies",
            What::Swap { .. } => "swapped replies",
            What::Reset { .. } => "resets and half replies",
            What::ClaimLost { .. } => "answer of a claim lost",
            What::ServerStops => "server stops",
            What::ServerDown => "server down",
            What::DataLost => "data lost",
            What::CopyRestored { .. } => "copy restored",
            What::ScriptsLost => "scripts lost",
            What::Promoted { .. } => "replica promoted",
            What::SlotsMove { .. } => "hash slots move",
            What::ServerSet { .. } => "server's clock set",
            What::ServerRuns { ppm: 0 } => "server's clock stands",
            What::ServerRuns { .. } => "server's clock slewed",
            What::OneServerSet { .. } => "one server's clock set",
            What::OneServerRuns { .. } => "one server's clock slewed",
            What::TwoPrimaries { .. } => "two primaries",
            What::NodeStops { suspended: false, .. } => "node stopped",
            What::NodeStops { .. } => "node suspended",
            What::WorkersLate { .. } => "workers late",
            What::WorkersStop { .. } => "workers stop",
            What::NodeUpgraded { to: Edition::Later, .. } => "node of a later version",
            What::NodeUpgraded { .. } => "node of 0.3",
            What::NodeKilled { .. } => "node killed",
            What::NodeCloses { .. } => "node shut down",
            What::NodeSet { .. } => "node's clock set",
            What::NodeRuns { ppm: 0, .. } => "node's clock stands",
            What::NodeRuns { .. } => "node's clock slewed",
            What::Change { .. } => "change",
        }
    }

    /// Whether it can keep a node of this host from the store.
    pub fn hinders(&self, host: usize) -> bool {
        match *self {
            What::Delay { node, .. }
            | What::Lose { node, .. }
            | What::Cut { node, .. }
            | What::Double { node, .. }
            | What::Reset { node, .. } => node.is_none_or(|node| node == host),
            What::ClaimLost { node }
            | What::NodeUpgraded { node, .. }
            | What::NodeStops { node, .. }
            | What::NodeKilled { node, .. }
            | What::NodeCloses { node, .. }
            | What::NodeSet { node, .. }
            | What::NodeRuns { node, .. } => node == host,
            What::Change { .. } | What::WorkersLate { .. } | What::WorkersStop { .. } | What::ScriptsLost => {
                false
            }
            _ => true,
        }
    }
}

/// A fault and its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When it begins.
    pub at: Time,
    /// When it ends.
    pub until: Time,
    /// What it is.
    pub what: What,
}

/// All that a seed draws.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed, also of what is drawn while the world runs.
    pub seed: u64,
    /// The hosts, each with a node.
    pub hosts: usize,
    /// N: the most nodes that have a reserve.
    pub slots: u32,
    /// The store.
    pub shape: Shape,
    /// What nodes do without the store.
    pub down: Down,
    /// The first limit, and those to which it is changed.
    pub limits: Vec<Limit>,
    /// How long a call may take.
    pub timeout: Time,
    /// How long a slot is held.
    pub ttl: Time,
    /// How long a change takes.
    pub delay: Time,
    /// How many keys a node has room for.
    pub keys: usize,
    /// The mean time between two visits at a host, and how many requests a visit has at most.
    pub gap: Time,
    /// See `gap`.
    pub visit: u64,
    /// If above 0: nobody asks for anything in the first part of each such time, so that bursts come back.
    pub lull: Time,
    /// How much longer that part is for all hosts but the first one.
    pub apart: Time,
    /// The time between two visits of the load that looks at liveness.
    pub press: Time,
    /// Per mille of the requests that are for cold keys.
    pub cold: u64,
    /// Whether costs above 1 are drawn.
    pub costs: bool,
    /// Per mille of the decisions after which units are given back.
    pub back: u64,
    /// The end of the faults, and of the load that goes with them.
    pub length: Time,
    /// The faults, by their beginning.
    pub faults: Vec<Fault>,
}

fn limit(random: &mut Random) -> Limit {
    let units = random.of(&[8, 16, 32, 64, 100]);
    let burst = match random.below(10) {
        0 => random.of(&[1, 3, 5]),
        1 => units / 5 + 2,
        2 | 3 => units / 3 + 1,
        4..=7 => units,
        _ => units * 2,
    };
    let reserve = random.of(&[(50, 250), (50, 250), (50, 250), (0, 0), (500, 500), (100, 900)]);
    Limit { units, burst, reserve }
}

fn what(random: &mut Random, plan: &Plan) -> What {
    let node = random.below(plan.hosts as u64) as usize;
    let one = if random.chance(600) { Some(node) } else { None };
    let signed = |random: &mut Random, most: u64| {
        let by = random.of(&[most / 100_000, most / 1_000, most / 100, most]);
        let by = random.within(by / 2, by) as i64;
        if random.chance(500) {
            by
        } else {
            -by
        }
    };
    const HOUR: u64 = 3_600 * SECOND;
    loop {
        return match random.below(27) {
            0 | 1 => {
                What::Delay { node: one, most: random.of(&[2 * MS, 20 * MS, 100 * MS, SECOND, 5 * SECOND]) }
            }
            2 => What::Lose { node: one, per_mille: random.of(&[10, 100]) },
            3 => What::Cut { node: one, to_server: true },
            4 | 5 => What::Cut { node: one, to_server: false },
            6 | 7 => {
                What::Double { node: one, per_mille: random.of(&[10, 100, 300]), late: random.chance(500) }
            }
            8 => What::Swap { per_mille: random.of(&[10, 100]) },
            9 | 10 => What::Reset { node: one, per_mille: random.of(&[10, 100, 400]) },
            11 => What::ServerStops,
            12 => What::ServerDown,
            13 => What::ScriptsLost,
            14 if random.chance(500) => What::DataLost,
            14 => What::CopyRestored { age: random.of(&[100 * MS, SECOND, 5 * SECOND]) },
            15 if plan.shape == Shape::Sentinel => {
                What::Promoted { lag: random.of(&[0, MS, 100 * MS, SECOND]) }
            }
            16 | 17 => match plan.shape {
                Shape::Cluster(servers) => {
                    let from = random.below(16_000) as usize;
                    let to = random.below(servers as u64) as usize;
                    What::SlotsMove { from, count: random.within(1, 6_000) as usize, to }
                }
                _ => continue,
            },
            18 => What::ServerSet { by: signed(random, HOUR) },
            19 if random.chance(300) => What::ServerRuns { ppm: 0 },
            19 => What::ServerRuns { ppm: random.within(950_000, 1_050_000) },
            20 => What::NodeStops { node, suspended: random.chance(150) },
            21 => What::WorkersLate { node, most: random.of(&[MS, 50 * MS, SECOND]) },
            22 | 23 => What::NodeKilled { node, old: random.chance(300) },
            24 => What::NodeCloses { node, old: random.chance(300) },
            25 if random.chance(300) => What::NodeSet { node, by: signed(random, HOUR) },
            25 if random.chance(300) => {
                What::NodeRuns { node, ppm: random.of(&[0, EVEN - 50_000, EVEN + 50_000]) }
            }
            26 if plan.limits.len() > 1 => {
                What::Change { node, to: random.within(1, plan.limits.len() as u64 - 1) as usize }
            }
            _ => continue,
        };
    }
}

/// Seeds from here on draw what `more` adds. Those below stay the worlds in which kept seeds found their faults.
pub const MORE_FROM: u64 = 40_000;

/// From this seed on, one world in four gives units back, and half are large.
pub const BACK_FROM: u64 = 200_000;

/// From this seed on, half of the nodes of another version are of a later one. The others are of 0.3.
pub const LATER_FROM: u64 = 300_000;

/// Draws from numbers of its own: makes a part of the worlds large, and lets slots go from host to host in others.
fn more(plan: &mut Plan) {
    let mut random = Random::new(plan.seed ^ 0x5107_5a11_0f7a_7c11);
    if random.chance(80) {
        return slot_returns(&mut random, plan);
    }
    if !plan.is_large() && random.chance(400) {
        grow(&mut random, plan);
    }
}

/// Makes a world large.
pub(crate) fn grow(random: &mut Random, plan: &mut Plan) {
    plan.length = 20 * SECOND;
    plan.hosts = plan.hosts.max(3);
    if plan.limits.len() == 1 {
        plan.limits.push(limit(random));
        let (node, at) = (random.below(plan.hosts as u64) as usize, random.below(plan.length / 2));
        plan.faults.push(Fault { at, until: at + 1, what: What::Change { node, to: 1 } });
    }
}

/// A node is cut off and loses its slot to another node, which spends its reserve and goes. The first node takes the
/// slot again, and does not get the answer.
fn slot_returns(random: &mut Random, plan: &mut Plan) {
    let spare = plan.hosts - 1;
    plan.slots = plan.slots.min(spare as u32);
    (plan.ttl, plan.length, plan.lull) = (SECOND, 20 * SECOND, 4 * SECOND);
    plan.limits.truncate(1);
    plan.limits[0].burst = plan.limits[0].units;
    plan.limits[0].reserve = random.of(&[(500, 500), (100, 900), (50, 250)]);
    plan.faults.retain(|fault| matches!(fault.what, What::ScriptsLost | What::SlotsMove { .. }));
    let node = random.below(plan.hosts as u64) as usize;
    let other = (node + random.within(1, spare as u64) as usize) % plan.hosts;
    let at = random.within(4 * SECOND, 6 * SECOND);
    let until = at + random.within(1_300 * MS, 3 * SECOND);
    plan.faults.push(Fault {
        at,
        until,
        what: What::Cut { node: Some(node), to_server: random.chance(500) },
    });
    // Shortly after a time without requests, in which all bursts came back.
    let at = random.of(&[14, 18]) * SECOND + random.within(100 * MS, 600 * MS);
    let what = match random.chance(700) {
        true => What::NodeCloses { node: other, old: false },
        false => What::NodeKilled { node: other, old: false },
    };
    plan.faults.push(Fault { at, until: plan.length, what });
    plan.faults.push(Fault { at, until: plan.length, what: What::ClaimLost { node } });
}

impl Plan {
    /// Draws the plan of a seed.
    pub fn of(seed: u64) -> Plan {
        let mut random = Random::new(seed ^ 0x7a7c_e11a_17be_115e);
        let slots = random.within(1, 4) as u32;
        let hosts = (u64::from(slots) + random.below(3)).clamp(2, 5) as usize;
        let changes = random.chance(650);
        let first = limit(&mut random);
        let mut limits = vec![first];
        if changes {
            limits.extend((0..random.within(1, 2)).map(|_| limit(&mut random)));
        }
        let mut plan = Plan {
            seed,
            hosts,
            slots,
            shape: random.of(&[
                Shape::Single,
                Shape::Single,
                Shape::Single,
                Shape::Sentinel,
                Shape::Cluster(2),
                Shape::Cluster(3),
            ]),
            down: random.of(&[Down::Reserve, Down::Reserve, Down::Share, Down::Open]),
            limits,
            timeout: random.of(&[50 * MS, 100 * MS, 250 * MS]),
            ttl: random.of(&[SECOND, 2 * SECOND, 4 * SECOND]),
            delay: random.of(&[300 * MS, SECOND, 3 * SECOND]),
            keys: random.of(&[16, 64, 256]),
            gap: 0,
            lull: if seed.is_multiple_of(3) { [4, 7][(seed / 3 % 2) as usize] * SECOND } else { 0 },
            apart: 0,
            press: 2 * MS,
            visit: random.of(&[3, 10, 30]),
            cold: random.of(&[0, 20, 200]),
            costs: random.chance(300),
            back: if seed >= BACK_FROM && seed % 4 == 1 { 50 } else { 0 },
            length: random.of(&[6 * SECOND, 12 * SECOND, 20 * SECOND, 20 * SECOND, 20 * SECOND]),
            faults: Vec::new(),
        };
        // All hosts together ask for a multiple of the largest rate, so that the bounds are reached.
        let most = plan.limits.iter().map(|limit| limit.units).max().unwrap_or(1);
        let offered = most * random.of(&[2, 4, 8]) / plan.hosts as u64;
        plan.gap = (SECOND * (plan.visit + 1) / 2 / offered.max(1)).clamp(5 * MS, SECOND);
        let count = random.of(&[0, 1, 2, 2, 3, 3, 4, 5, 6, 8]);
        let mut faults: Vec<Fault> = (0..count)
            .map(|_| {
                let at = random.below(plan.length * 8 / 10);
                let long = random.of(&[50 * MS, 300 * MS, SECOND, 3 * SECOND, 6 * SECOND]);
                let until = (at + random.within(long / 4, long)).min(plan.length);
                Fault { at, until, what: what(&mut random, &plan) }
            })
            .collect();
        if changes {
            let node = random.below(hosts as u64) as usize;
            let at = random.below(plan.length / 2);
            faults.push(Fault { at, until: at + 1, what: What::Change { node, to: 1 } });
        }
        plan.faults = faults;
        if seed >= MORE_FROM {
            more(&mut plan);
        }
        if seed >= later::FROM {
            later::draw(&mut plan);
            let most = plan.limits.iter().map(|limit| limit.units).max().unwrap_or(1);
            plan.press = SECOND / (5 * most.max(1));
        }
        plan.faults.sort_by_key(|fault| fault.at);
        plan
    }

    /// By how much the clocks of two servers may differ at most.
    pub fn apart_by(&self) -> Time {
        let of = |fault: &Fault| match fault.what {
            What::OneServerSet { by, .. } => by.unsigned_abs(),
            What::OneServerRuns { ppm, .. } => (fault.until - fault.at) / EVEN * ppm.abs_diff(EVEN),
            _ => 0,
        };
        self.faults.iter().map(of).sum()
    }

    /// Whether it has a fault of each of these kinds.
    pub fn has(&self, kinds: &[String]) -> bool {
        kinds.iter().all(|kind| self.faults.iter().any(|fault| fault.what.kind() == kind))
    }

    /// Whether the world is of the size that half of them must have.
    pub fn is_large(&self) -> bool {
        let change = self.faults.iter().any(|fault| matches!(fault.what, What::Change { .. }));
        self.length >= 20 * SECOND && self.hosts >= 3 && change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_worlds_are_large() {
        let large = (200_000..204_000).filter(|seed| Plan::of(*seed).is_large()).count();
        assert!(large >= 2_000, "{large} of 4000");
    }
}

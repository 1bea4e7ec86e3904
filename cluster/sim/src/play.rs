//! Plays a plan, judges it, and finds the fewest faults with which it still fails.

use std::collections::BTreeMap;
use std::time::Duration;

use tatcell_cluster::SlotState;

use crate::audit::{Way, HAIR};
use crate::clock::{Time, EVEN, MS, SECOND};
use crate::judge::{judge, mixed, wrong_openers, Check};
use crate::later;
use crate::lua::Scripts;
use crate::plan::{Plan, What};
use crate::world::{Found, World};

/// How a world went.
pub struct Outcome {
    /// What was found.
    pub found: Found,
    /// Each bound, with what is allowed.
    pub checks: Vec<Check>,
    /// What is wrong, in words; empty if nothing is.
    pub wrong: Vec<String>,
}

/// How long the load that looks at the rate goes on.
const PRESS: Time = 4 * SECOND;

/// The part of the rate that a key must get once all faults have ended and [`settles`] has passed.
const LIVE: f64 = 0.9;

/// Returns how long after the faults all must be well again; `None` if this plan's liveness is not looked at.
///
/// A node connects anew within two tries and a timeout (twice, because the servers must be found), takes a slot that
/// another one may have held for its life, waits for its life, and until the reserve is full. A change may be on its
/// way, a key may owe its full debt and the grace.
pub fn settles(plan: &Plan) -> Option<Time> {
    let full = plan.limits.iter().map(|limit| {
        let split = limit.shared().split(plan.slots, Duration::from_millis(4)).expect("a split");
        let drains = limit.burst * SECOND / limit.units;
        (split.reserve.map_or(0, |reserve| reserve.full_ns), drains)
    });
    let (full, drains) = full.fold((0, 0), |all, one| (all.0.max(one.0), all.1.max(one.1)));
    let connects = 2 * (plan.timeout + 800 * MS);
    let settles = connects + 3 * plan.ttl + full + plan.delay + 3 * drains + 2 * SECOND;
    // A clock that no system sets, or hash slots that another node still holds by a server's clock of before.
    let set = |what: &What| match *what {
        What::NodeSet { .. } | What::NodeRuns { ppm: 0, .. } => true,
        What::NodeStops { suspended, .. } => suspended,
        What::ServerSet { by } => by < 0,
        What::ServerRuns { ppm } => ppm < EVEN,
        What::OneServerSet { .. } | What::OneServerRuns { .. } => true,
        // The marks of another version stay for a minute.
        What::NodeUpgraded { .. } => true,
        _ => false,
    };
    // It takes as long as the rest of a world.
    let one_of = if plan.seed < later::FROM { 4 } else { 16 };
    (plan.seed.is_multiple_of(one_of)
        && settles <= 30 * SECOND
        && !plan.faults.iter().any(|fault| set(&fault.what)))
    .then_some(settles)
}

/// Plays a plan.
pub fn play(plan: &Plan, lua: &mut Scripts, tell: bool) -> Outcome {
    let calls = lua.calls();
    let mut world = World::new(plan, lua, tell);
    world.start();
    world.until(plan.length);
    if let Some(settles) = settles(plan) {
        look_at_liveness(&mut world, plan.length + settles);
    }
    world.finish();
    world.found.lasted = world.now;
    world.found.calls = world.lua.calls() - calls;
    world.found.late_asks = world.servers.iter().flat_map(|server| server.late_asks.clone()).collect();
    let mut found = world.found;
    let checks = judge(plan, &mut found);
    let over = checks.iter().filter(|check| check.worst.excess > check.allowed + HAIR);
    let mut wrong: Vec<String> = over
        .map(|check| {
            let Check { what, worst, allowed } = check;
            let (from, to) = (worst.from as f64 / 1e9, worst.to as f64 / 1e9);
            format!(
                "{what}: key {} from {from:.3} to {to:.3} s: {:.2} over, {allowed:.2} allowed",
                worst.key, worst.excess
            )
        })
        .collect();
    wrong.extend(wrong_openers(plan, &found));
    wrong.extend(mixed(plan, &found));
    wrong.append(&mut found.lazy);
    Outcome { found, checks, wrong }
}

fn look_at_liveness(world: &mut World<'_>, from: Time) {
    let plan = world.plan;
    world.until(from);
    world.pressing = true;
    // The next visit of each host may lie behind a time without requests.
    world.until(from + plan.lull / 2 + 2 * plan.gap + SECOND);
    let begun = world.now;
    let before = world.found.admitted.len();
    world.until(begun + PRESS);
    world.found.lively = true;
    let now = world.now;
    let open = (0..plan.hosts).filter(|host| world.hosts[*host].is_open()).count();
    if open < plan.hosts {
        world.found.lazy.push(format!("{open} of {} nodes are open", plan.hosts));
    }
    let slots: Vec<Option<SlotState>> = world.hosts.iter().map(|host| host.slot(now)).collect();
    let holders = slots.iter().filter(|slot| **slot == Some(SlotState::Held)).count();
    let in_force = world.found.seen.iter().rev().find_map(|seen| seen.limit).unwrap_or(0);
    let limit = plan.limits[in_force];
    let split = limit.shared().split(plan.slots, Duration::from_millis(4)).expect("a split");
    let wanted = open.min(plan.slots as usize);
    if split.reserve.is_some() && holders < wanted {
        world.found.lazy.push(format!("{holders} of {wanted} reserves are held: {slots:?}"));
    }
    // No other reason is true now: the store answers, and all that a holder before may have spent has drained.
    let others = match split.reserve {
        Some(_) => SlotState::AllTaken,
        None => SlotState::NotNeeded,
    };
    let untrue = |slot: &SlotState| *slot != others && (split.reserve.is_none() || *slot != SlotState::Held);
    if slots.iter().flatten().any(untrue) {
        world.found.lazy.push(format!("a node has no slot and says why, and it is not so: {slots:?}"));
    }
    let reserve = split.reserve.map_or(0.0, |r| r.units as f64 * 1e9 / r.period_ns as f64);
    let idle = reserve * (f64::from(plan.slots) - holders as f64);
    let passed: u64 = world.found.admitted[before..]
        .iter()
        .filter(|a| a.key == 0 && a.way == Way::Held)
        .map(|a| a.units)
        .sum();
    let held = split.hold_ns as f64 / split.unit_ns as f64;
    let least = LIVE * (limit.units as f64 - idle) * (PRESS / SECOND) as f64 - held - 2.0;
    if (passed as f64) < least {
        world.found.lazy.push(format!("{passed} units in {} s, {least:.1} must pass", PRESS / SECOND));
    }
}

/// Leaves out faults, then hosts, then time, as long as the world still fails. Returns the smallest plan found.
pub fn shrink(plan: &Plan, lua: &mut Scripts) -> Plan {
    smallest(plan, |plan| !play(plan, lua, false).wrong.is_empty())
}

fn smallest(plan: &Plan, mut fails: impl FnMut(&Plan) -> bool) -> Plan {
    let mut best = plan.clone();
    loop {
        let mut shorter = None;
        for leave_out in (0..best.faults.len()).rev() {
            let mut plan = best.clone();
            plan.faults.remove(leave_out);
            if fails(&plan) {
                shorter = Some(plan);
                break;
            }
        }
        match shorter {
            Some(plan) => best = plan,
            None => break,
        }
    }
    while best.hosts > 1 {
        let mut plan = best.clone();
        plan.hosts -= 1;
        let last = plan.hosts;
        plan.faults.retain(|fault| !of_host(&fault.what, last));
        if !fails(&plan) {
            break;
        }
        best = plan;
    }
    while best.length > SECOND {
        let mut plan = best.clone();
        plan.length -= SECOND;
        if plan.faults.iter().any(|fault| fault.until > plan.length) || !fails(&plan) {
            break;
        }
        best = plan;
    }
    best
}

fn of_host(what: &What, host: usize) -> bool {
    match *what {
        What::Delay { node, .. }
        | What::Lose { node, .. }
        | What::Cut { node, .. }
        | What::Double { node, .. }
        | What::Reset { node, .. } => node == Some(host),
        What::ClaimLost { node }
        | What::NodeUpgraded { node, .. }
        | What::NodeStops { node, .. }
        | What::WorkersLate { node, .. }
        | What::WorkersStop { node, .. }
        | What::NodeKilled { node, .. }
        | What::NodeCloses { node, .. }
        | What::NodeSet { node, .. }
        | What::NodeRuns { node, .. }
        | What::Change { node, .. } => node == host,
        _ => false,
    }
}

/// The sums of many worlds.
#[derive(Default)]
pub struct Tally {
    /// Worlds, and those of them that are large.
    pub worlds: u64,
    /// See `worlds`.
    pub large: u64,
    /// Worlds whose liveness was looked at.
    pub lively: u64,
    /// Decisions, and units that passed.
    pub decisions: u64,
    /// See `decisions`.
    pub units: u64,
    /// Units that were given back.
    pub back: u64,
    /// Calls of scripts.
    pub calls: u64,
    /// Virtual seconds.
    pub seconds: u64,
    /// Steps of machines.
    pub steps: u64,
    /// How often nodes of another version were refused.
    pub refused: u64,
    /// Faults, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// The worst excess without an allowance, and the one that is nearest to its allowance.
    pub strictly: Option<(f64, u64)>,
    /// Units above R w + B, those allowed, and the seed.
    pub nearest: Option<(f64, f64, u64)>,
}

impl Tally {
    /// Adds a world.
    pub fn add(&mut self, plan: &Plan, outcome: &Outcome) {
        self.worlds += 1;
        self.large += u64::from(plan.is_large());
        self.lively += u64::from(outcome.found.lively);
        self.decisions += outcome.found.decisions;
        self.calls += outcome.found.calls;
        self.refused += outcome.found.refused;
        self.steps += outcome.found.steps;
        let admitted = outcome.found.admitted.iter().filter(|a| a.way != Way::Back);
        self.units += admitted.map(|a| a.units).sum::<u64>();
        self.back += outcome.found.back;
        self.seconds += outcome.found.lasted / SECOND;
        plan.faults.iter().for_each(|fault| *self.faults.entry(fault.what.kind()).or_default() += 1);
        for check in &outcome.checks {
            let (excess, allowed) = (check.worst.excess, check.allowed);
            if allowed == 0.0 && self.strictly.is_none_or(|(most, _)| excess > most) {
                self.strictly = Some((excess, plan.seed));
            }
            if allowed >= 1.0 && self.nearest.is_none_or(|(most, of, _)| excess * of > most * allowed) {
                self.nearest = Some((excess, allowed, plan.seed));
            }
        }
    }
}

impl Tally {
    /// Adds the sums of other worlds.
    pub fn and(mut self, other: Tally) -> Tally {
        self.worlds += other.worlds;
        self.large += other.large;
        self.lively += other.lively;
        self.decisions += other.decisions;
        self.units += other.units;
        self.back += other.back;
        self.calls += other.calls;
        self.refused += other.refused;
        self.steps += other.steps;
        self.seconds += other.seconds;
        other.faults.iter().for_each(|(kind, count)| *self.faults.entry(kind).or_default() += count);
        let strictly = self.strictly.into_iter().chain(other.strictly);
        self.strictly = strictly.max_by(|a, b| a.0.total_cmp(&b.0));
        let nearest = self.nearest.into_iter().chain(other.nearest);
        self.nearest = nearest.max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        self
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { worlds, large, lively, decisions, calls, units, back, seconds, refused, steps, .. } =
            self;
        writeln!(
            f,
            "{worlds} worlds, {large} of 20 s with 3 nodes and a change, {lively} looked at for liveness"
        )?;
        writeln!(
            f,
            "{seconds} virtual seconds, {decisions} decisions, {units} units admitted, {back} given back"
        )?;
        writeln!(
            f,
            "{steps} steps, {calls} calls of scripts, {refused} nodes of another version refused by name"
        )?;
        let faults: Vec<String> = self.faults.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        writeln!(f, "faults: {}", faults.join(", "))?;
        if let Some((excess, seed)) = self.strictly {
            writeln!(f, "worst excess where none is allowed: {excess:.3} units (seed {seed})")?;
        }
        if let Some((excess, allowed, seed)) = self.nearest {
            write!(f, "worst beside its allowance: {excess:.2} of {allowed:.2} units (seed {seed})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Fault;

    #[test]
    fn a_world_that_fails_shrinks_to_what_it_fails_by() {
        let fault = |at: Time, what| Fault { at: at * SECOND, until: (at + 1) * SECOND, what };
        let faults = vec![
            fault(1, What::NodeKilled { node: 3, old: false }),
            fault(2, What::DataLost),
            fault(3, What::ServerStops),
            fault(4, What::Change { node: 1, to: 1 }),
            fault(9, What::ServerDown),
        ];
        let plan = Plan { hosts: 5, length: 20 * SECOND, faults: faults.clone(), ..Plan::of(200_000) };
        // It fails by a loss of data before a change, and not before 6 s.
        let fails = |plan: &Plan| {
            let has = |fault: &Fault| plan.faults.contains(fault);
            has(&faults[1]) && has(&faults[3]) && plan.length >= 6 * SECOND
        };
        assert!(fails(&plan));
        let least = smallest(&plan, fails);
        assert_eq!(least.faults, [faults[1], faults[3]]);
        // Host 1 is that of the change.
        assert_eq!((least.hosts, least.length), (2, 6 * SECOND));
    }
}

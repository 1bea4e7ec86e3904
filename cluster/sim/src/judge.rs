//! What a world may admit, from the faults that its plan has, and whether it admitted more.
//!
//! ```text
//!   limits     |---- first ----|---- after a change ----|----
//!   windows    of each part by its own R and B; of the whole run by the larger of all, store and reserves apart
//!   allowed    the rows of the page for each fault that happened by the end of the part
//! ```
//!
//! A clock that is set, or data that is lost, while a change is on its way may leave both limits in use. Then the parts
//! before and after it count as one.

use std::time::Duration;

use tatcell_cluster::{Down, SharedLimit, Split};

use crate::audit::{worst, Admitted, Way, Worst};
use crate::clock::{Time, EVEN, SECOND};
use crate::plan::{Fault, Plan, What};
use crate::table::{row, Case};
use crate::world::{Found, Seen};

/// The worst of a part of the run, beside what is allowed.
#[derive(Clone, Debug)]
pub struct Check {
    /// What was looked at.
    pub what: String,
    /// The worst window, above R w + B.
    pub worst: Worst,
    /// The units that the faults may add.
    pub allowed: f64,
}

/// A part of the run, and the limits that were in force in it.
#[derive(Clone, Debug)]
struct Part {
    from: Time,
    to: Time,
    limits: Vec<usize>,
    /// Whether more than one of them may have been in use at one time.
    both: bool,
}

/// The sums of parts: the larger store and the larger reserves.
struct Bound {
    case: Case,
    rate: f64,
    burst: f64,
}

fn split(plan: &Plan, limit: usize) -> (SharedLimit, Split) {
    let limit = plan.limits[limit].shared();
    let split = limit.split(plan.slots, Duration::from_millis(4)).expect("limits of plans can be shared");
    (limit, split)
}

/// Whether a limit of the plan asks the store for each decision.
pub fn is_strict(plan: &Plan, limit: usize) -> bool {
    split(plan, limit).1.strict
}

fn bound(plan: &Plan, limits: &[usize]) -> Bound {
    let mut case = Case::default();
    let mut store_burst: f64 = 0.0;
    for limit in limits {
        let (shared, split) = split(plan, *limit);
        let of = Case::of(&shared, &split, plan.slots);
        store_burst = store_burst.max(split.burst as f64);
        case = Case {
            ahead: case.ahead.max(of.ahead),
            hold: case.hold.max(of.hold),
            rate: case.rate.max(of.rate),
            burst: case.burst.max(of.burst),
            store_rate: case.store_rate.max(of.store_rate),
            reserve: case.reserve.max(of.reserve),
            reserve_rate: case.reserve_rate.max(of.reserve_rate),
            nodes: of.nodes,
            ..case
        };
    }
    let rate = case.store_rate + case.nodes * case.reserve_rate;
    let burst = store_burst + case.nodes * case.reserve;
    Bound { case, rate, burst }
}

fn seconds(time: Time) -> f64 {
    time as f64 / 1e9
}

/// Returns what one fault may add.
fn adds(plan: &Plan, fault: &Fault, case: &Case) -> f64 {
    let window = seconds(fault.until - fault.at);
    let by = |by: i64| by.unsigned_abs() as f64 / 1e9;
    let part = |ppm: u64| (ppm as f64 / EVEN as f64 - 1.0).abs();
    let with = |name: &str, case: Case| (row(name).units)(&case);
    // A server takes over whose clock is ahead of that of the one before.
    let ahead = || with("server's clock set forward", Case { by: seconds(plan.apart_by()), ..*case });
    match fault.what {
        What::DataLost | What::CopyRestored { .. } => with("data lost", Case { away: window, ..*case }),
        What::Promoted { .. } => with("replica promoted", *case) + ahead(),
        What::SlotsMove { .. } => ahead(),
        What::TwoPrimaries { .. } => {
            // The one that goes on knows of a slot until it ends.
            let window = window + seconds(plan.ttl);
            with("two primaries", Case { window, ..*case }) + ahead()
        }
        What::ServerSet { by: x } | What::OneServerSet { by: x, .. } if x > 0 => {
            with("server's clock set forward", Case { by: by(x), ..*case })
        }
        What::ServerRuns { ppm } | What::OneServerRuns { ppm, .. } if ppm > EVEN => {
            with("server's clock fast", Case { part: part(ppm), window, ..*case })
        }
        What::NodeSet { by: x, .. } if x < 0 => {
            with("node's clock set back or stopped", Case { by: by(x), ..*case })
        }
        What::NodeSet { by: x, .. } => with("node's clock set forward or fast", Case { by: by(x), ..*case }),
        What::NodeStops { suspended: true, .. } | What::NodeRuns { ppm: 0, .. } => {
            with("node's clock set back or stopped", Case { by: window, ..*case })
        }
        What::NodeRuns { ppm, .. } if ppm > EVEN => {
            with("node's clock set forward or fast", Case { part: part(ppm), window, ..*case })
        }
        What::NodeRuns { ppm, .. } => {
            // Beside a server that is fast, both parts count.
            let fast = plan.faults.iter().filter_map(|other| match other.what {
                What::ServerRuns { ppm } | What::OneServerRuns { ppm, .. }
                    if ppm > EVEN && other.at < fault.until && other.until > fault.at =>
                {
                    Some(part(ppm))
                }
                _ => None,
            });
            let both = part(ppm) * (1.1 + fast.sum::<f64>());
            with("node's clock slow", Case { part: both, ..*case })
        }
        _ => 0.0,
    }
}

/// Whether a fault while a change is on its way may leave both limits in use for a while.
fn unsettles(plan: &Plan, what: &What) -> bool {
    // The mark may go to a server with another clock.
    if matches!(what, What::SlotsMove { .. }) {
        return plan.apart_by() > 0;
    }
    matches!(
        what,
        What::ServerSet { .. }
            | What::ServerRuns { .. }
            | What::OneServerSet { .. }
            | What::OneServerRuns { .. }
            | What::TwoPrimaries { .. }
            | What::NodeSet { .. }
            | What::NodeRuns { .. }
            | What::NodeStops { suspended: true, .. }
            | What::DataLost
            | What::CopyRestored { .. }
            | What::Promoted { .. }
    )
}

/// Whether a fault takes the marks from the store.
fn loses_marks(what: &What) -> bool {
    match *what {
        What::DataLost | What::CopyRestored { .. } | What::Promoted { .. } | What::TwoPrimaries { .. } => {
            true
        }
        What::ServerSet { by } | What::OneServerSet { by, .. } => by > 50 * SECOND as i64,
        _ => false,
    }
}

/// Whether a change that was in force may have been undone: the store lost it, a node opened with an old limit, and no
/// node that knew of it could tell the store before that.
fn undone(plan: &Plan, found: &Found, change: &Seen) -> bool {
    let lost = plan.faults.iter().filter(|fault| loses_marks(&fault.what) && fault.until >= change.begun);
    let copies = |fault: &Fault| match fault.what {
        What::CopyRestored { age } => fault.at.saturating_sub(age) < change.in_force,
        What::Promoted { lag } => fault.at.saturating_sub(lag) < change.in_force,
        _ => false,
    };
    lost.into_iter().any(|fault| {
        let opened = found.opened_old.iter().filter(|(.., to)| *to >= fault.at);
        let untold = |(opener, _, to): &(usize, Time, Time)| {
            let told = |host: usize| {
                let was_open = found
                    .open
                    .iter()
                    .any(|(h, from, until)| *h == host && *from + SECOND < fault.at && *until >= *to);
                let hindered = plan.faults.iter().any(|other| {
                    other != fault
                        && other.what.hinders(host)
                        && other.at <= *to
                        && other.until + SECOND >= fault.at
                });
                was_open && !hindered
            };
            !(0..plan.hosts).any(|host| host != *opener && told(host))
        };
        copies(fault) || opened.into_iter().any(untold)
    })
}

/// Divides the run by its changes.
fn parts(plan: &Plan, found: &Found) -> Vec<Part> {
    let mut parts = vec![Part { from: 0, to: Time::MAX, limits: vec![0], both: found.disagree }];
    let mut changes: Vec<&Seen> = found.seen.iter().filter(|seen| seen.version > 1).collect();
    changes.sort_by_key(|seen| seen.in_force);
    for change in changes {
        let Some(limit) = change.limit else { continue };
        let around = |fault: &Fault| {
            unsettles(plan, &fault.what)
                && fault.at <= change.in_force.saturating_add(2 * SECOND)
                && fault.until + 2 * SECOND >= change.begun
        };
        let last = parts.last_mut().expect("the first part");
        if found.disagree || plan.faults.iter().any(around) || undone(plan, found, change) {
            last.limits.push(limit);
            last.both = true;
            continue;
        }
        last.to = change.in_force;
        parts.push(Part { from: change.in_force, to: Time::MAX, limits: vec![limit], both: false });
    }
    parts
}

fn check(plan: &Plan, found: &Found, what: String, part: &Part, whole: bool) -> Option<Check> {
    let Bound { case, rate, burst } = bound(plan, &part.limits);
    let mut allowed = 0.0;
    for fault in plan.faults.iter().filter(|fault| fault.at < part.to) {
        allowed += adds(plan, fault, &case);
    }
    if part.limits.iter().any(|limit| is_strict(plan, *limit)) {
        allowed += case.rate * (seconds(found.longest) + 1e-6);
        if whole && part.limits.len() > 1 {
            allowed += case.burst / 8.0;
        }
    }
    if part.both {
        let window = seconds(found.lasted);
        allowed += (row("change lost").units)(&Case { window, ..case });
    }
    let within =
        |a: &&Admitted| matches!(a.way, Way::Held | Way::Back) && (part.from..part.to).contains(&a.at);
    let within: Vec<Admitted> = found.admitted.iter().filter(within).copied().collect();
    let worst = worst(&within, rate, burst, found.latest)?;
    Some(Check { what, worst, allowed })
}

/// Looks at everything that a world admitted.
pub fn judge(plan: &Plan, found: &mut Found) -> Vec<Check> {
    found.admitted.sort_by_key(|a| a.at);
    let parts = parts(plan, found);
    let mut limits: Vec<usize> = parts.iter().flat_map(|part| part.limits.clone()).collect();
    limits.dedup();
    let both = parts.iter().any(|part| part.both);
    let whole = Part { from: 0, to: Time::MAX, limits, both };
    let mut checks: Vec<Check> =
        check(plan, found, "the whole run".to_owned(), &whole, true).into_iter().collect();
    // An old ask that comes late lets a key drain at its old rate until its next ask.
    if parts.len() > 1 && found.late_asks == 0 {
        for (i, part) in parts.iter().enumerate() {
            checks.extend(check(plan, found, format!("part {i}"), part, false));
        }
    }
    checks.extend(shares(plan, found, &whole.limits));
    checks
}

/// Finds nodes that opened with another limit than the one in force, although a node that knew of it could tell.
pub fn wrong_openers(plan: &Plan, found: &Found) -> Vec<String> {
    let parts = parts(plan, found);
    let after = |part: &Part| if part.from == 0 { 0 } else { part.from.saturating_add(SECOND / 10) };
    let wrong = found.begins_with.iter().filter_map(|(host, at, limit)| {
        let part = parts.iter().find(|part| (after(part)..part.to).contains(at))?;
        let sure = !part.both && part.limits.len() == 1;
        let same = limit.is_some_and(|limit| plan.limits[limit] == plan.limits[part.limits[0]]);
        (sure && !same).then(|| {
            let seconds = seconds(*at);
            format!(
                "host {host} opened at {seconds:.3} s with limit {limit:?}, in force is {}",
                part.limits[0]
            )
        })
    });
    wrong.collect()
}

/// Finds nodes of two versions that were open at one time, although the store kept its marks.
pub fn mixed(plan: &Plan, found: &Found) -> Option<String> {
    let at = found.mixed?;
    let lost = plan.faults.iter().any(|fault| fault.at <= at && loses_marks(&fault.what));
    (!lost).then(|| format!("nodes of two versions are open at {:.3} s", seconds(at)))
}

/// Each node's shares by themselves: R_s / N, and a part of the burst.
fn shares(plan: &Plan, found: &Found, limits: &[usize]) -> Vec<Check> {
    if plan.down != Down::Share {
        return Vec::new();
    }
    let Bound { case, .. } = bound(plan, limits);
    let burst = limits.iter().map(|limit| split(plan, *limit).1.burst).max().unwrap_or(0);
    let burst = (burst as f64 / case.nodes).max(1.0);
    let slack = |host: usize| {
        let set = plan.faults.iter().filter_map(|fault| match fault.what {
            What::NodeSet { node, by } if node == host => Some(by.unsigned_abs() as f64 / 1e9),
            What::NodeRuns { node, ppm } if node == host && ppm > EVEN => {
                Some(seconds(fault.until - fault.at))
            }
            What::WorkersLate { node, most } if node == host => Some(seconds(most)),
            What::WorkersStop { node, .. } if node == host => Some(seconds(fault.until - fault.at) + 0.1),
            What::NodeStops { node, .. } if node == host => Some(seconds(fault.until - fault.at)),
            _ => None,
        });
        set.sum::<f64>() * case.store_rate / case.nodes
    };
    let of = |host: usize| {
        let within = |a: &&Admitted| a.way == Way::Share && a.node == host as u32;
        let within: Vec<Admitted> = found.admitted.iter().filter(within).copied().collect();
        let worst = worst(&within, case.store_rate / case.nodes, burst, 0)?;
        Some(Check { what: format!("shares of host {host}"), worst, allowed: slack(host) })
    };
    (0..plan.hosts).filter_map(of).collect()
}

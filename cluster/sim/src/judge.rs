//! What a world may admit, from the faults that its plan has, and whether it admitted more.
//!
//! ```text
//!   limits     |---- first ----|---- after a change ----|----
//!   windows    of each part by its own R and B; of the whole run by the larger of all, store and reserves apart
//!   allowed    the rows of the page for each fault that began before the window's end
//! ```
//!
//! A clock that is set, or data that is lost, while a change is on its way may leave both limits in use. Then the time
//! until each node has read the marks again is a part with both.

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
    /// When more than one of them may have been in use at one time.
    both: Vec<Both>,
}

/// A time in which two limits may have been in use.
#[derive(Clone, Copy, Debug)]
struct Both {
    from: Time,
    to: Time,
    /// The copy that undid the change, if nothing else is to blame.
    copy: Option<Fault>,
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

/// Returns what one fault may add to a window. `to` is the last moment at which anything in it was decided.
fn adds(plan: &Plan, fault: &Fault, case: &Case, from: Time, to: Time) -> f64 {
    if fault.at > to {
        return 0.0;
    }
    let until = fault.until.min(to);
    let lasted = seconds(until - fault.at);
    let by = |by: i64| by.unsigned_abs() as f64 / 1e9;
    let within = seconds(until.saturating_sub(fault.at.max(from)));
    let faster = |ppm: u64, than: u64| ppm as f64 / than as f64 - 1.0;
    let with = |name: &str, case: Case| (row(name).units)(&case);
    // A server takes over whose clock is ahead of that of the one before.
    let ahead = || with("server's clock set forward", Case { by: seconds(plan.apart_by()), ..*case });
    match fault.what {
        What::DataLost | What::CopyRestored { .. } => {
            with("data lost", Case { away: seconds(fault.until - fault.at), ..*case })
        }
        What::Promoted { .. } => with("replica promoted", *case) + ahead(),
        What::SlotsMove { .. } => ahead(),
        What::TwoPrimaries { .. } => {
            // The one that goes on knows of a slot until it ends.
            let window = lasted + seconds(plan.ttl);
            with("two primaries", Case { window, ..*case }) + ahead()
        }
        What::ServerSet { by: x } | What::OneServerSet { by: x, .. } if x > 0 => {
            with("server's clock set forward", Case { by: by(x), ..*case })
        }
        What::ServerRuns { ppm } | What::OneServerRuns { ppm, .. } if ppm > EVEN => {
            with("server's clock fast", Case { part: faster(ppm, EVEN), window: within, ..*case })
        }
        What::NodeSet { by: x, .. } if x < 0 => {
            with("node's clock set back or stopped", Case { by: by(x), ..*case })
        }
        What::NodeSet { by: x, .. } => with("node's clock set forward or fast", Case { by: by(x), ..*case }),
        What::NodeStops { suspended: true, .. } | What::NodeRuns { ppm: 0, .. } => {
            with("node's clock set back or stopped", Case { by: lasted, ..*case })
        }
        What::NodeRuns { ppm, .. } if ppm > EVEN => {
            let part = faster(ppm, EVEN);
            with("node's clock set forward or fast", Case { part, window: within, ..*case })
        }
        What::NodeRuns { ppm, .. } => {
            // A server may be fast at the same time.
            let speed = plan.faults.iter().filter_map(|other| match other.what {
                What::ServerRuns { ppm } | What::OneServerRuns { ppm, .. }
                    if other.at < until && other.until > fault.at =>
                {
                    Some(ppm)
                }
                _ => None,
            });
            let part = faster(speed.max().unwrap_or(EVEN).max(EVEN), ppm);
            with("node's clock slow", Case { part, ..*case })
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

/// How long it takes until each node that reaches the store has read the mark twice, or has connected and read it.
const READ: Time = 2 * SECOND;

/// Returns the faults by which a change that was in force may have been undone: the store lost it, a node opened with
/// an old limit, and no node that knew of it could tell the store before that; or the store got a copy of before. The
/// second list has the copies.
fn undone(plan: &Plan, found: &Found, change: &Seen) -> (Vec<Fault>, Vec<Fault>) {
    let lost = plan.faults.iter().filter(|fault| loses_marks(&fault.what) && fault.until >= change.begun);
    let copies = |fault: &Fault| match fault.what {
        What::CopyRestored { age } => fault.at.saturating_sub(age) < change.in_force,
        What::Promoted { lag } => fault.at.saturating_sub(lag) < change.in_force,
        _ => false,
    };
    let untold = |fault: &Fault| {
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
        opened.into_iter().any(untold)
    };
    let (copied, lost): (Vec<&Fault>, Vec<&Fault>) = lost.partition(|fault| copies(fault));
    let lost = lost.into_iter().filter(|fault| untold(fault)).copied().collect();
    (lost, copied.into_iter().copied().collect())
}

/// Returns when a node of one of these hosts reaches the store again, if it has trouble at `at` to do so.
fn back(plan: &Plan, hosts: std::ops::Range<usize>, at: Time) -> Time {
    let mut back = at;
    let hinders = |fault: &&Fault| hosts.clone().any(|host| fault.what.hinders(host));
    // In the order of their beginnings.
    for fault in plan.faults.iter().filter(hinders) {
        if fault.at <= back && fault.until + READ > back {
            back = fault.until + READ;
        }
    }
    back
}

/// By how much a fault shifts the moment at which a change comes into force.
fn shifts(plan: &Plan, fault: &Fault) -> Time {
    let lasts = fault.until - fault.at;
    match fault.what {
        What::ServerSet { by } | What::OneServerSet { by, .. } | What::NodeSet { by, .. } => {
            by.unsigned_abs()
        }
        What::ServerRuns { ppm } | What::OneServerRuns { ppm, .. } | What::NodeRuns { ppm, .. } => {
            (u128::from(lasts) * u128::from(ppm.abs_diff(EVEN)) / u128::from(EVEN)) as Time
        }
        What::NodeStops { .. } => lasts,
        _ => plan.apart_by(),
    }
}

/// Returns when the limits before and after a change may both have been in use; `None` if never.
fn both(plan: &Plan, found: &Found, change: &Seen) -> Option<Both> {
    let around = |fault: &&Fault| {
        unsettles(plan, &fault.what)
            && fault.at <= change.in_force.saturating_add(READ)
            && fault.until + READ >= change.begun
    };
    let around: Vec<&Fault> = plan.faults.iter().filter(around).collect();
    let (lost, copied) = undone(plan, found, change);
    let from = match (found.disagree || !around.is_empty(), lost.iter().chain(&copied).next()) {
        (true, _) => change.begun,
        (false, Some(_)) => lost.iter().chain(&copied).map(|fault| fault.at).min()?,
        (false, None) => return None,
    };
    let copy = match (&copied[..], from > change.begun && lost.is_empty()) {
        ([copy], true) => Some(*copy),
        _ => None,
    };
    let mut ends = vec![from, change.in_force.min(found.lasted)];
    ends.extend(around.iter().map(|fault| fault.until.saturating_add(shifts(plan, fault))));
    ends.extend(lost.iter().chain(&copied).map(|fault| fault.until));
    ends.extend(found.opened_old.iter().map(|(.., to)| *to).filter(|to| *to >= from));
    // Two marks of one version: until the last one.
    ends.extend(found.seen.iter().filter(|_| found.disagree).map(|seen| seen.begun));
    // As the page says: each node reads the marks once a second, and twice after a copy.
    let read = if copied.is_empty() { SECOND } else { READ };
    let last = ends.into_iter().max()?.saturating_add(read).min(found.lasted);
    Some(Both { from, to: back(plan, 0..plan.hosts, last), copy })
}

/// Whether a node that knew of a change before the store lost it can tell the store, each time that this happened.
fn stays_known(plan: &Plan, found: &Found, change: &Seen, both: &Both) -> bool {
    let lost =
        |fault: &&Fault| loses_marks(&fault.what) && fault.until >= change.begun && fault.at <= both.to;
    plan.faults.iter().filter(lost).all(|lost| {
        (0..plan.hosts).any(|host| {
            let heard = plan.faults.iter().all(|other| {
                other == lost
                    || !other.what.hinders(host)
                    || other.until + READ < change.begun
                    || other.at > lost.at
            });
            let open = |(h, from, until): &(usize, Time, Time)| {
                *h == host && *from + READ < lost.at && *until >= both.to.min(found.lasted)
            };
            heard && lost.at > change.begun + READ && found.open.iter().any(open)
        })
    })
}

/// Divides the run by its changes, and by the ends of times in which two limits may be in use.
fn parts(plan: &Plan, found: &Found) -> Vec<Part> {
    let mut parts = vec![Part { from: 0, to: Time::MAX, limits: vec![0], both: Vec::new() }];
    let mut changes: Vec<&Seen> = found.seen.iter().filter(|seen| seen.version > 1).collect();
    changes.sort_by_key(|seen| seen.in_force);
    let part = |from: Time, limits: Vec<usize>| Part { from, to: Time::MAX, limits, both: Vec::new() };
    for (i, change) in changes.iter().enumerate() {
        let Some(limit) = change.limit else { continue };
        let next = changes[i + 1..].iter().map(|change| change.begun).min().unwrap_or(found.lasted);
        let last = parts.last_mut().expect("the first part");
        let mut begins = change.in_force;
        if let Some(both) = both(plan, found, change) {
            let before = last.limits.clone();
            // It was undone later: until then it is in force.
            if both.from > change.in_force && both.from < next {
                last.to = change.in_force;
                parts.push(Part { to: both.from, ..part(change.in_force, vec![limit]) });
                parts.push(part(both.from, before));
            }
            let last = parts.last_mut().expect("the first part");
            last.limits.push(limit);
            last.both.push(both);
            begins = begins.max(both.to);
            if found.disagree || begins >= next || !stays_known(plan, found, change, &both) {
                continue;
            }
        }
        parts.last_mut().expect("the first part").to = begins;
        parts.push(part(begins, vec![limit]));
    }
    parts
}

/// Returns what the time in which two limits were in use adds to a window: the smaller one.
fn adds_both(plan: &Plan, part: &Part, both: &Both, from: Time, to: Time) -> f64 {
    if both.from > to {
        return 0.0;
    }
    let cases = part.limits.iter().map(|limit| bound(plan, &[*limit]).case);
    let (mut rates, mut bursts): (Vec<f64>, Vec<f64>) = cases.map(|case| (case.rate, case.burst)).unzip();
    let second = |list: &mut Vec<f64>| {
        list.sort_by(|a, b| b.total_cmp(a));
        list[1.min(list.len() - 1)]
    };
    let window = seconds(both.to.min(to).saturating_sub(both.from.max(from)));
    let Bound { case, .. } = bound(plan, &part.limits);
    let case = Case { rate: second(&mut rates), burst: second(&mut bursts), window, ..case };
    match both.copy {
        Some(copy) => {
            let away = seconds(copy.until - copy.at);
            (row("change undone by a copy").units)(&Case { away, ..case })
        }
        None => (row("change lost").units)(&case),
    }
}

/// Looks at what the store granted and the reserves, or at that and the shares together.
fn check(plan: &Plan, found: &Found, what: &str, part: &Part, whole: bool, shares: bool) -> Option<Check> {
    let Bound { case, rate, burst } = bound(plan, &part.limits);
    let mut strict = 0.0;
    if part.limits.iter().any(|limit| is_strict(plan, *limit)) {
        strict += case.rate * (seconds(found.longest) + 1e-6);
        if whole && part.limits.len() > 1 {
            strict += case.burst / 8.0;
        }
    }
    let counts = |way: Way| matches!(way, Way::Held | Way::Back) || shares && way != Way::Open;
    let within = |a: &&Admitted| counts(a.way) && (part.from..part.to).contains(&a.at);
    let within: Vec<Admitted> = found.admitted.iter().filter(within).copied().collect();
    let what = format!("{what}{}", if shares { ", with shares" } else { "" });
    let shares = Shares::of(plan, found, part, &within);
    let worst = worst(&within, rate, burst, found.latest, |a, from, to| {
        let shared = shares.add(a.key, from, to);
        // What was decided by a reading of this window.
        let to = to.saturating_add(found.latest);
        let by_copy = |fault: &Fault| part.both.iter().any(|both| both.copy.as_ref() == Some(fault));
        let faults = plan.faults.iter().filter(|fault| !by_copy(fault));
        let faults: f64 = faults.map(|fault| adds(plan, fault, &case, from, to)).sum();
        let both: f64 = part.both.iter().map(|both| adds_both(plan, part, both, from, to)).sum();
        strict + faults + both + shared
    })?;
    Some(Check { what, worst, allowed: worst.allowed })
}

/// Looks at everything that a world admitted.
pub fn judge(plan: &Plan, found: &mut Found) -> Vec<Check> {
    found.admitted.sort_by_key(|a| a.at);
    let parts = parts(plan, found);
    let limits: Vec<usize> = parts.iter().flat_map(|part| part.limits.clone()).collect();
    let both = parts.iter().flat_map(|part| part.both.clone()).collect();
    let whole = Part { from: 0, to: Time::MAX, limits, both };
    let mut checks = Vec::new();
    let mut look = |what: String, part: &Part, is_whole: bool| {
        checks.extend(check(plan, found, &what, part, is_whole, false));
        if plan.down == Down::Share {
            checks.extend(check(plan, found, &what, part, is_whole, true));
            checks.extend(shares(plan, found, &what, part));
        }
    };
    look("the whole run".to_owned(), &whole, true);
    for (i, part) in parts.iter().enumerate() {
        // An old ask that comes late lets a key drain at its old rate until its next ask.
        let late = found.late_asks.iter().any(|at| (part.from..part.to).contains(at));
        if parts.len() > 1 && !late {
            look(format!("part {i}"), part, false);
        }
    }
    checks
}

/// Finds nodes that opened with another limit than the one in force, although a node that knew of it could tell.
pub fn wrong_openers(plan: &Plan, found: &Found) -> Vec<String> {
    let parts = parts(plan, found);
    let after = |part: &Part| if part.from == 0 { 0 } else { part.from.saturating_add(SECOND / 10) };
    let wrong = found.begins_with.iter().filter_map(|(host, at, limit)| {
        let part = parts.iter().find(|part| (after(part)..part.to).contains(at))?;
        let sure = !found.disagree && part.both.is_empty() && part.limits.len() == 1;
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

/// What the shares of each node may pass, and who used some.
struct Shares {
    /// Units a second, units at once, and what is added, for each host.
    hosts: Vec<(f64, f64, f64)>,
    used: Vec<Admitted>,
}

impl Shares {
    fn of(plan: &Plan, found: &Found, part: &Part, within: &[Admitted]) -> Shares {
        let used = |a: &&Admitted| matches!(a.way, Way::Share | Way::Unsure);
        let used: Vec<Admitted> = within.iter().filter(used).copied().collect();
        let of = |limits: &[usize]| {
            let Bound { case, .. } = bound(plan, limits);
            let burst = limits.iter().map(|limit| split(plan, *limit).1.burst).max().unwrap_or(0);
            (case, (burst as f64 / case.nodes).max(1.0))
        };
        let (case, burst) = of(&part.limits);
        let host = |host: usize| {
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
            let mut slack = set.sum::<f64>() * case.store_rate / case.nodes;
            let window = back(plan, host..host + 1, part.from).saturating_sub(part.from);
            let before =
                found.seen.iter().filter(|seen| seen.begun < part.from).filter_map(|seen| seen.limit);
            let before: Vec<usize> = before.chain([0]).filter(|limit| !part.limits.contains(limit)).collect();
            if part.from > 0 && window > 0 && !before.is_empty() {
                let case = Case { window: seconds(window), ..of(&before).0 };
                slack += (row("share through a change").units)(&case);
            }
            (case.store_rate / case.nodes, burst, slack)
        };
        let hosts = if used.is_empty() { Vec::new() } else { (0..plan.hosts).map(host).collect() };
        Shares { hosts, used }
    }

    /// Returns what they may pass of a key in a window.
    fn add(&self, key: u32, from: Time, to: Time) -> f64 {
        let used = |host: u32| {
            self.used.iter().any(|a| a.node == host && a.key == key && (from..=to).contains(&a.at))
        };
        let hosts = self.hosts.iter().zip(0..).filter(|(_, host)| used(*host));
        hosts.map(|((rate, burst, slack), _)| rate * seconds(to - from) + burst + slack).sum()
    }
}

/// Each node's shares by themselves: R_s / N, and a part of the burst.
fn shares(plan: &Plan, found: &Found, what: &str, part: &Part) -> Vec<Check> {
    let within = |a: &&Admitted| a.way == Way::Share && (part.from..part.to).contains(&a.at);
    let within: Vec<Admitted> = found.admitted.iter().filter(within).copied().collect();
    let shares = Shares::of(plan, found, part, &within);
    let of = |(host, (rate, burst, slack)): (usize, &(f64, f64, f64))| {
        let own: Vec<Admitted> = within.iter().filter(|a| a.node == host as u32).copied().collect();
        let worst = worst(&own, *rate, *burst, 0, |_, _, _| *slack)?;
        Some(Check { what: format!("{what}, shares of host {host}"), worst, allowed: worst.allowed })
    };
    shares.hosts.iter().enumerate().filter_map(of).collect()
}

//! Limits that change while nodes run: every admission is audited against R w + B of the old, the new, and both limits.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::audit::{Audit, HAIR};
use common::load::{node, patient, SECOND};
use common::proxy::Proxy;
use common::{server_or_skip, until, Server};
use tatcell_cluster::{Builder, ChangeError, Cluster, Down, LimitError, SharedLimit, Verdict};

const DELAY: Duration = Duration::from_millis(900);

fn limit(units: u64, burst: u64) -> SharedLimit {
    SharedLimit::new("x", units, SECOND, burst)
}

fn open(url: &str, limit: SharedLimit) -> Cluster {
    node(url, 3, limit, |builder| patient(builder).change_delay(DELAY))
}

/// Admissions of a unit: between which readings each was decided.
type Admitted = Vec<(u64, u64)>;

/// Asks for one key until `stop`; strict limits by waiting.
fn ask(node: &Cluster, strict: bool, stop: &AtomicBool) -> Admitted {
    let (x, mut admitted) = (node.limit("x").expect("it"), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let reading = node.now();
        let verdict = match strict {
            false => node.check_at(x, b"key", 1, reading),
            true => node.acquire(x, b"key", 1, Duration::from_millis(300)),
        };
        if verdict.passes() {
            admitted.push((reading, if strict { node.now() } else { reading }));
        }
        std::thread::sleep(Duration::from_micros(if strict { 500 } else { 20 }));
    }
    admitted
}

/// The audit of those whose readings lie in a range.
fn audit(admitted: &Admitted, range: std::ops::Range<u64>) -> Audit {
    let mut audit = Audit::default();
    let within = admitted.iter().filter(|(_, at)| range.contains(at));
    within.for_each(|(asked, at)| audit.add_between(0, *asked, *at, 1));
    audit
}

/// Runs nodes while `meanwhile` changes something; returns all admissions.
fn play(nodes: &[Cluster], strict: bool, meanwhile: impl FnOnce()) -> Admitted {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = |node| {
            scope.spawn({
                let stop = &stop;
                move || ask(node, strict, stop)
            })
        };
        let workers: Vec<_> = nodes.iter().map(worker).collect();
        meanwhile();
        stop.store(true, Ordering::Relaxed);
        workers.into_iter().flat_map(|w| w.join().expect("a worker")).collect()
    })
}

/// Changes the limit one second into a run; audits before, after, and all of it. Returns units after it a second.
fn changes(server: &Server, from: (u64, u64), to: (u64, u64), strict: bool) -> f64 {
    let nodes = [0, 1, 2].map(|_| open(&server.url(), limit(from.0, from.1)));
    // The store made the change between these two readings, which lie far apart if this thread waits for a core.
    let (asked, told) = (AtomicU64::new(0), AtomicU64::new(0));
    let admitted = play(&nodes, strict, || {
        std::thread::sleep(SECOND + SECOND / 2);
        let before = nodes[0].now();
        let after = nodes[1].change(limit(to.0, to.1), 10 * SECOND).expect("changed");
        asked.store(before + after.as_nanos() as u64, Ordering::Relaxed);
        told.store(nodes[0].now() + after.as_nanos() as u64, Ordering::Relaxed);
        assert!(after > DELAY / 2 && after <= DELAY, "{after:?}");
        std::thread::sleep(after + 2 * SECOND);
    });
    // The nodes agree on it within what a thousandth of the delay and a round trip leave in doubt.
    let (asked, told, doubt) = (asked.into_inner(), told.into_inner(), 20_000_000);
    let (before, after) = (audit(&admitted, 0..asked - doubt), audit(&admitted, told + doubt..u64::MAX));
    for node in &nodes {
        let x = node.limit("x").expect("it");
        until("it goes by it", || node.in_force(x) == limit(to.0, to.1));
        assert_eq!(node.metrics().changes, 1);
    }
    let most = (from.0.max(to.0) as f64, from.1.max(to.1) as f64);
    let all = audit(&admitted, 0..u64::MAX).replay_between(most.0, most.1);
    let before = before.replay_between(from.0 as f64, from.1 as f64);
    let after = after.replay_between(to.0 as f64, to.1 as f64);
    println!("{from:?} to {to:?}: before {before:?}, after {after:?}, all {all:?}");
    for found in [&before, &after, &all] {
        assert!(found.excess <= HAIR, "{found:?}");
    }
    after.units as f64 / after.seconds
}

#[test]
fn a_change_is_in_force_on_all_nodes_at_once_and_mints_nothing() {
    for (from, to) in [((2_000, 400), (300, 400)), ((300, 900), (4_000, 400)), ((500, 100), (500, 1_000))] {
        let Some(server) = server_or_skip(&[]) else { return };
        let rate = changes(&server, from, to, false);
        assert!(rate > 0.5 * to.0 as f64, "{rate} a second of {to:?}");
    }
}

#[test]
fn a_strict_limit_becomes_leased_and_a_leased_one_strict() {
    let Some(server) = server_or_skip(&[]) else { return };
    assert!(changes(&server, (20, 4), (1_000, 400), true) > 500.0);
    let Some(server) = server_or_skip(&[]) else { return };
    assert!(changes(&server, (1_000, 400), (20, 4), true) > 10.0);
}

#[test]
fn a_node_that_does_not_hear_of_a_change_holds_nothing_when_it_is_in_force() {
    let Some(server) = server_or_skip(&[]) else { return };
    let way = Proxy::before(server.port());
    // 200 s of burst, of which a piece may wait 25 s; a reserve of 333.
    let slow = || limit(20, 4_000);
    // The second one finds the store away after a quarter of a second.
    let nodes = [open(&server.url(), slow()), node(&way.url(), 3, slow(), |b| b.change_delay(DELAY))];
    let at = AtomicU64::new(0);
    let x = nodes[1].limit("x").expect("it");
    // Asked for that fast, it is granted large pieces; then it is asked slowly, so that one lasts.
    let mut passed = 0;
    for _ in 0..20_000 {
        let metrics = nodes[1].metrics();
        if metrics.granted_units + metrics.passed_reserve > passed + 200 {
            break;
        }
        passed += u64::from(nodes[1].check(x, b"key", 1).passes());
        std::thread::sleep(Duration::from_micros(100));
    }
    way.silent(true);
    let after = nodes[0].change(limit(4_000, 4_000), 10 * SECOND).expect("changed");
    at.store(nodes[0].now() + after.as_nanos() as u64, Ordering::Relaxed);
    let (mut held, mut late) = (0, 0);
    while nodes[1].now() < at.load(Ordering::Relaxed) + 2 * SECOND.as_nanos() as u64 {
        let reading = nodes[1].now();
        let passed = u64::from(nodes[1].check_at(x, b"key", 1, reading).passes());
        *if reading < at.load(Ordering::Relaxed) { &mut held } else { &mut late } += passed;
        std::thread::sleep(Duration::from_millis(7));
    }
    println!("{passed} passed, and {held} of what it held before, {late} after");
    assert!(held > 0, "it held nothing to begin with");
    assert_eq!(late, 0);
    assert_eq!(nodes[1].in_force(x), slow(), "it heard of it");
    way.silent(false);
    until("it has heard of it", || nodes[1].in_force(x) == limit(4_000, 4_000));
    until("it is granted to", || nodes[1].acquire(x, b"fresh", 1, SECOND) == Verdict::Pass);
}

#[test]
fn a_change_outlives_a_store_that_loses_all_and_nodes_that_open_go_by_it() {
    let Some(mut server) = server_or_skip(&[]) else { return };
    let nodes = [0, 1].map(|_| open(&server.url(), limit(100, 100)));
    let x = nodes[0].limit("x").expect("it");
    let after = nodes[0].change(limit(200, 300), 10 * SECOND).expect("changed");
    // The other one has heard of it by then, and the mark is written again by either.
    std::thread::sleep(DELAY / 2);
    server.restart();
    // Opened in between, with what it was.
    let early = open(&server.url(), limit(100, 100));
    std::thread::sleep(after);
    // And later, with what it never was.
    let late = open(&server.url(), limit(1, 1));
    let all = || [&nodes[0], &nodes[1], &early, &late];
    until("all go by it", || all().iter().all(|node| node.in_force(x) == limit(200, 300)));
    drop((nodes, early, late));
}

/// A node opens with the old limit after a change is in force and the store has lost its data, or after the server's
/// clock was set back by half a minute.
#[test]
fn a_node_that_opens_after_a_fault_of_the_store_does_not_bring_the_old_limit_back() {
    // M/T of the new limit: what a store that lost its data grants once more. Nothing for the clock.
    for (fault, most) in [("data", 263.0), ("clock", 1.0)] {
        let Some(server) = server_or_skip(&[]) else { return };
        let (old, new) = (|| limit(4_000, 400), || limit(400, 400));
        let nodes = [0, 1].map(|_| open(&server.url(), old()));
        std::thread::sleep(nodes[0].change(new(), 10 * SECOND).expect("changed"));
        // All windows of before are over.
        std::thread::sleep(SECOND);
        let mut late = Admitted::new();
        let mut admitted = play(&nodes, false, || {
            std::thread::sleep(SECOND);
            match fault {
                "data" => server.say::<()>(&["FLUSHALL"]).expect("ok"),
                _ => set_back(&server, 30),
            }
            let third = [open(&server.url(), old())];
            late = play(&third, false, || std::thread::sleep(2 * SECOND));
        });
        let by_third = late.len();
        admitted.extend(late);
        let found = audit(&admitted, 0..u64::MAX).replay_between(400.0, 400.0);
        println!("{fault}: {found:?}, {by_third} by the third, at most {most} more");
        assert!(found.excess <= most + HAIR, "{fault}: {found:?}");
        assert!(by_third > 20, "the third takes no part: {by_third}");
    }
}

/// In the mode `Share`, a node that is cut off does not hear of a change: it goes on with its share of the old limit.
#[test]
fn a_share_through_a_change_adds_its_part_of_the_old_rate_as_long_as_the_cut_lasts() {
    let Some(server) = server_or_skip(&[]) else { return };
    let way = Proxy::before(server.port());
    let (old, new) = (limit(4_000, 400), limit(400, 400));
    let here = open(&server.url(), old.clone());
    let share = |builder: Builder| builder.when_down(Down::Share).timeout(SECOND / 10).change_delay(DELAY);
    let cut_off = [node(&way.url(), 3, old, share)];
    let mut in_force = 0;
    let admitted = play(&cut_off, false, || {
        way.silent(true);
        let after = here.change(new.clone(), 10 * SECOND).expect("changed");
        in_force = here.now() + after.as_nanos() as u64;
        std::thread::sleep(after + 2 * SECOND);
    });
    let late = admitted.iter().filter(|(_, at)| *at > in_force).count() as f64;
    let seconds = (here.now() - in_force) as f64 / 1e9;
    // R_s is 3800 a second, and 133 of the burst may have been saved up.
    let most = 3_800.0 / 3.0 * seconds + 133.0;
    println!("{late} in {seconds} s after the change, at most {most}");
    assert!(late > 400.0 / 3.0 * seconds && late <= most);
}

/// Sets the server's clock back, as far as limits can tell: all times that it wrote lie that much later.
fn set_back(server: &Server, seconds: u64) {
    let shift = "for _, key in ipairs(redis.call('KEYS', 'tatcell:*')) do \
         local value, by = redis.call('GET', key), ARGV[1] \
         local v, from, rest = string.match(value, '^(%d+);(%d+);(.*)$') \
         local u, more = string.match(value, '^(%d+):(.+)$') \
         if v then value = string.format('%s;%.0f;%s', v, from + by, rest) end \
         if u then value = string.format('%.0f:%s', u + by, more) end \
         redis.call('SET', key, value, 'KEEPTTL') end";
    let by = (seconds * 1_000_000).to_string();
    server.say::<redis::Value>(&["EVAL", shift, "0", &by]).expect("set");
}

#[test]
fn what_cannot_be_changed_is_said_and_changes_nothing() {
    let Some(mut server) = server_or_skip(&[]) else { return };
    let nodes = [0, 1].map(|_| open(&server.url(), limit(100, 100)));
    let unknown = SharedLimit::new("y", 1, SECOND, 1);
    assert_eq!(nodes[0].change(unknown, SECOND), Err(ChangeError::Unknown));
    assert_eq!(nodes[0].change(limit(100, 0), SECOND), Err(ChangeError::Limit(LimitError::ZeroBurst)));
    assert!(nodes[0].change(limit(200, 100), 10 * SECOND).is_ok());
    let second = nodes[1].change(limit(300, 100), 10 * SECOND).expect_err("one is on its way");
    println!("{second}");
    assert!(matches!(second, ChangeError::Other { in_force_after } if in_force_after > Duration::ZERO));
    std::thread::sleep(DELAY + DELAY / 2);
    let x = nodes[0].limit("x").expect("it");
    until("both go by the first", || nodes.iter().all(|node| node.in_force(x) == limit(200, 100)));
    assert!(nodes[1].change(limit(300, 100), 10 * SECOND).is_ok());
    server.kill();
    while nodes[0].metrics().up {
        let _ = nodes[0].acquire(nodes[0].limit("x").expect("it"), b"k", 1, Duration::from_millis(10));
    }
    assert_eq!(nodes[0].change(limit(400, 100), SECOND), Err(ChangeError::Away));
}

//! Nodes that share a store: every admission is audited against R w + B, in good times and bad.

mod common;

use std::cell::Cell;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::audit::{Audit, Found};
use common::load::{node, patient, patiently, play, within, Load, HOT, SECOND};
use common::{long, server_or_skip, until, Server};
use tatcell_cluster::{Cluster, Down, SharedLimit, Verdict};

#[test]
fn a_hot_key_is_admitted_its_rate_and_never_more() {
    let Some(server) = server_or_skip(&[]) else { return };
    let limit = SharedLimit::new("x", 10_000, SECOND, 1_000);
    let nodes: Vec<Cluster> = (0..3).map(|_| node(&server.url(), 3, limit.clone(), patient)).collect();
    let mut units = 0;
    let round = || {
        let found = play(&nodes, HOT, Duration::from_secs(2), || {}).replay(10_000.0, 1_000.0);
        units += found.units;
        found
    };
    // 5 % of the rate are the reserves', of which each node has a third.
    patiently(round, |found| found.units as f64 > 0.6 * 10_000.0 * found.seconds);
    for node in &nodes {
        let metrics = node.metrics();
        println!("{metrics:?}");
        assert!(metrics.up && metrics.grants > 0 && metrics.faults == 0);
        // Leased: a call to the store now and then, not one a decision.
        assert!(metrics.asks * 4 < units, "{metrics:?}");
    }
}

/// Closed loops count more than an ask can bring while it is under way: that must not end the asking.
#[test]
fn asking_without_a_pause_stalls_nothing_and_gains_nothing() {
    let Some(server) = server_or_skip(&[]) else { return };
    for (rate, burst) in [(10_000, 1_000), (100, 9)] {
        let limit = SharedLimit::new("x", rate, SECOND, burst).reserve(0, 0);
        let nodes =
            [0, 1].map(|_| node(&server.url(), 2, limit.clone(), |b| b.prefix(&format!("at-{rate}"))));
        let worker = |node: &Cluster| {
            let (x, mut audit, end) =
                (node.limit("x").expect("it"), Audit::default(), Instant::now() + 2 * SECOND);
            while Instant::now() < end {
                let reading = node.now();
                for _ in 0..16 {
                    if node.check_at(x, &[0; 4], 1, reading).passes() {
                        audit.add(0, reading, 1);
                    }
                }
            }
            audit
        };
        let round = || {
            let mut all = Audit::default();
            std::thread::scope(|scope| {
                let workers = [&nodes[0], &nodes[0], &nodes[1]].map(|node| scope.spawn(move || worker(node)));
                workers.into_iter().for_each(|w| all.join(w.join().expect("a worker")));
            });
            all.replay(rate as f64, burst as f64)
        };
        patiently(round, |found| found.units > rate * 2 * 7 / 10);
    }
}

#[test]
fn costs_of_many_keys_are_admitted_their_rate_and_never_more() {
    let Some(server) = server_or_skip(&[]) else { return };
    let limit = SharedLimit::new("x", 200, SECOND, 100);
    let nodes: Vec<Cluster> = (0..2).map(|_| node(&server.url(), 2, limit.clone(), |b| b)).collect();
    let load = Load { keys: 40, zipf: false, largest_cost: 7, pause: Duration::from_micros(50) };
    // More than the bursts.
    let round = || play(&nodes, load, Duration::from_secs(2), || {}).replay(200.0, 100.0);
    patiently(round, |found| found.units > 40 * 100);
}

#[test]
fn a_small_limit_is_strict_and_exact() {
    let Some(server) = server_or_skip(&[]) else { return };
    let limit = SharedLimit::new("x", 20, SECOND, 3);
    let nodes: Vec<Cluster> = (0..3).map(|_| node(&server.url(), 3, limit.clone(), patient)).collect();
    let load = Load { pause: Duration::from_millis(1), ..HOT };
    // Exact at the moments of the store, each between a reading before and one after.
    let round = || play(&nodes, load, Duration::from_secs(2), || {}).replay_between(20.0, 3.0);
    patiently(round, |found| found.units >= 35);
    let denied = nodes[0].acquire(nodes[0].limit("x").expect("it"), b"k", 4, SECOND);
    assert_eq!(denied, Verdict::Never);
    // A unit in a minute: nothing comes back between two calls.
    let limit = SharedLimit::new("x", 1, 60 * SECOND, 3);
    let nodes = [0, 1].map(|_| node(&server.url(), 3, limit.clone(), |b| patient(b).prefix("slow")));
    let one = nodes[0].limit("x").expect("it");
    for _ in 0..3 {
        assert_eq!(nodes[0].acquire(one, b"k", 1, 10 * SECOND), Verdict::Pass);
    }
    assert!(matches!(nodes[1].acquire(one, b"k", 1, 10 * SECOND), Verdict::Deny { .. }));
    // And from what it was told before, without a call.
    let asks = nodes[1].metrics().asks;
    assert!(matches!(nodes[1].check(one, b"k", 1), Verdict::Deny { .. }));
    assert_eq!(nodes[1].metrics().asks, asks);
}

/// The store is stopped for two seconds in the middle of four.
fn stopped(server: &Server, nodes: u32, down: Down) -> (Found, Vec<Cluster>) {
    let limit = SharedLimit::new("x", 1_000, SECOND, 500);
    let nodes: Vec<Cluster> =
        (0..nodes).map(|_| node(&server.url(), nodes, limit.clone(), |b| b.when_down(down))).collect();
    let audit = play(&nodes, HOT, Duration::from_secs(5), || {
        std::thread::sleep(SECOND);
        server.stop();
        std::thread::sleep(2 * SECOND);
        server.go_on();
    });
    (audit.replay(1_000.0, 500.0), nodes)
}

#[test]
fn while_the_store_is_stopped_the_reserve_keeps_the_bound() {
    let Some(server) = server_or_skip(&[]) else { return };
    let (found, nodes) = stopped(&server, 2, Down::Reserve);
    within(&found);
    for node in &nodes {
        let metrics = node.metrics();
        assert!(metrics.outages >= 1 && metrics.denied_down > 0, "{metrics:?}");
        until("it is there again", || node.metrics().up);
    }
}

#[test]
fn while_the_store_is_stopped_shares_keep_the_bound_and_pass_more() {
    let Some(server) = server_or_skip(&[]) else { return };
    let shared = Cell::new(0);
    let round = || {
        let (found, nodes) = stopped(&server, 2, Down::Share);
        shared.set(nodes.iter().map(|n| n.metrics().passed_share).sum());
        println!("{shared:?} passed by shares");
        found
    };
    // Two seconds of 1000 a second less the reserves'.
    patiently(round, |_| shared.get() > 1_000);
}

/// The control of the two above: the same load and outage, and a mode without a bound.
#[test]
fn an_open_gate_exceeds_the_bound() {
    let Some(server) = server_or_skip(&[]) else { return };
    let (found, _) = stopped(&server, 2, Down::Open);
    assert!(found.excess > 1_000.0, "the audit did not see it: {found:?}");
}

#[test]
fn scripts_that_are_flushed_are_sent_again() {
    let Some(server) = server_or_skip(&[]) else { return };
    let limit = SharedLimit::new("x", 5_000, SECOND, 500);
    let nodes: Vec<Cluster> = (0..2).map(|_| node(&server.url(), 2, limit.clone(), patient)).collect();
    let found = play(&nodes, HOT, 2 * SECOND, || {
        for _ in 0..10 {
            let mut connection = server.connect();
            redis::cmd("SCRIPT").arg("FLUSH").query::<()>(&mut connection).expect("flushed");
            std::thread::sleep(Duration::from_millis(150));
        }
    });
    let found = found.replay(5_000.0, 500.0);
    within(&found);
    for node in &nodes {
        let metrics = node.metrics();
        assert!(metrics.no_script > 0 && metrics.outages == 0 && metrics.faults == 0, "{metrics:?}");
    }
}

#[test]
fn a_store_that_loses_all_admits_what_it_had_granted_once_more() {
    let Some(mut server) = server_or_skip(&[]) else { return };
    let limit = SharedLimit::new("x", 100, SECOND, 1_000);
    let nodes: Vec<Cluster> = (0..2).map(|_| node(&server.url(), 2, limit.clone(), |b| b)).collect();
    let lead = limit.split(2, Duration::from_millis(4)).expect("a split").largest_cost as f64;
    let granted = || nodes.iter().map(|n| n.metrics().granted_units).sum::<u64>();
    let found = play(&nodes, HOT, 4 * SECOND, || {
        std::thread::sleep(2 * SECOND);
        server.restart();
        let before = granted();
        until("it is granted once more", || granted() > before + lead as u64 / 2);
    });
    let found = found.replay(100.0, 1_000.0);
    println!("{found:?}, at most {lead} more");
    assert!(found.excess > 0.0 && found.excess <= lead, "{found:?}");
}

const CHILD: &str = "TATCELL_CLUSTER_CHILD";

/// A node in a process of its own: writes the reading of each admission.
#[test]
fn child_node() {
    let Ok(url) = std::env::var(CHILD) else { return };
    let limit = SharedLimit::new("x", 10_000, SECOND, 1_000);
    let node = Cluster::builder(&url, 3).limit(limit).keys(64).log(|_| {}).open().expect("a node");
    let (limit, mut out) = (node.limit("x").expect("it"), std::io::stdout().lock());
    loop {
        let reading = node.now();
        if node.check_at(limit, &0u32.to_le_bytes(), 1, reading).passes() {
            let mut line = [0u8; 16];
            line[..8].copy_from_slice(b"ADMITTED");
            line[8..].copy_from_slice(&reading.to_le_bytes());
            out.write_all(&line).and_then(|()| out.flush()).expect("a pipe");
        }
    }
}

#[test]
fn killed_nodes_mint_nothing() {
    let Some(server) = server_or_skip(&[]) else { return };
    let limit = SharedLimit::new("x", 10_000, SECOND, 1_000);
    let nodes: Vec<Cluster> = (0..2).map(|_| node(&server.url(), 3, limit.clone(), |b| b)).collect();
    let (mut theirs, mut killed) = (Vec::new(), 0);
    // In the long form once a second for a minute.
    let (kills, life) = if long() { (60, SECOND) } else { (5, Duration::from_millis(400)) };
    let mut audit = play(&nodes, HOT, (life + Duration::from_millis(100)) * kills, || {
        for _ in 0..kills {
            let mut child = Command::new(std::env::current_exe().expect("this program"))
                .args(["child_node", "--exact", "--nocapture", "--test-threads=1"])
                .env(CHILD, server.url())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a child");
            let mut out = child.stdout.take().expect("its output");
            let (begun, begins) = std::sync::mpsc::channel();
            let reader = std::thread::spawn(move || {
                let mut bytes = vec![0; 64];
                out.read_exact(&mut bytes)?;
                begun.send(()).expect("the test waits");
                out.read_to_end(&mut bytes).map(|_| bytes)
            });
            // However long it takes to open.
            begins.recv_timeout(30 * SECOND).expect("it admits something");
            std::thread::sleep(life);
            child.kill().expect("killed");
            child.wait().expect("its end");
            theirs.push(reader.join().expect("a reader").expect("its output"));
            killed += 1;
        }
    });
    let mut units = 0;
    for bytes in &theirs {
        let begins = bytes.windows(8).position(|w| w == b"ADMITTED").unwrap_or(bytes.len());
        for line in bytes[begins..].chunks_exact(16) {
            assert_eq!(&line[..8], b"ADMITTED");
            audit.add(0, u64::from_le_bytes(line[8..].try_into().expect("8 bytes")), 1);
            units += 1;
        }
    }
    println!("{killed} killed, which had admitted {units}");
    assert!(units > 50, "the children hardly took part");
    within(&audit.replay(10_000.0, 1_000.0));
}

//! Stores that lose data, or whose clock is set: how much more is admitted, and that it is no more than stated.

mod common;

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::load::{node, patient, play, within, HOT, SECOND};
use common::proxy::Proxy;
use common::{server_or_skip, until, Server};
use tatcell_cluster::{Builder, Cluster, SharedLimit};

/// M/T in units: a promise that was forgotten in full.
fn lead(limit: &SharedLimit, nodes: u32) -> f64 {
    limit.split(nodes, Duration::from_millis(4)).expect("a split").largest_cost as f64
}

fn two(url: &str, limit: &SharedLimit) -> Vec<Cluster> {
    (0..2).map(|_| node(url, 2, limit.clone(), patient)).collect()
}

#[test]
fn a_log_that_is_written_in_time_loses_nothing_by_a_crash() {
    let log = ["--appendonly", "yes", "--appendfsync", "always"];
    let Some(mut server) = server_or_skip(&log) else { return };
    let limit = SharedLimit::new("x", 100, SECOND, 1_000);
    let nodes = two(&server.url(), &limit);
    let audit = play(&nodes, HOT, 4 * SECOND, || {
        for _ in 0..3 {
            std::thread::sleep(SECOND);
            server.restart();
        }
    });
    within(&audit.replay(100.0, 1_000.0));
    until("both are there again", || nodes.iter().all(|n| n.metrics().up));
    assert!(nodes.iter().all(|n| n.metrics().outages >= 3), "{nodes:?}");
}

/// Slots are lost with the rest: a node that is cut off goes on with its own, and another claims it.
#[test]
fn a_store_that_loses_all_while_slots_are_held_adds_a_reserve_at_most() {
    let Some(mut server) = server_or_skip(&[]) else { return };
    // One reserve of half of the rate and of the burst: beside it nothing else would be seen.
    let limit = SharedLimit::new("x", 400, SECOND, 1_000).reserve(500, 500);
    let (proxy, ttl) = (Proxy::before(server.port()), 2 * SECOND);
    let with = |b: Builder| b.slot_ttl(ttl);
    let first = node(&proxy.url(), 1, limit.clone(), with);
    until("the first holds the slot", || first.metrics().reserve_held);
    let nodes = [first, node(&server.url(), 1, limit.clone(), with)];
    let held = || [0, 1].map(|i: usize| nodes[i].metrics().reserve_held);
    let (mut cut_off, mut soon) = (false, false);
    let audit = play(&nodes, HOT, 6 * SECOND, || {
        std::thread::sleep(SECOND);
        proxy.silent(true);
        server.restart();
        std::thread::sleep(ttl / 8);
        (cut_off, soon) = (held()[0], held()[1]);
        std::thread::sleep(2 * ttl);
        proxy.silent(false);
    });
    let (found, most) = (audit.replay(400.0, 1_000.0), lead(&limit, 1) + 500.0);
    println!("{found:?}, at most {most} more");
    assert!(
        cut_off && !soon,
        "the first goes on until its slot ends, and the second waits: {cut_off}, {soon}"
    );
    assert!(found.excess <= most, "{found:?}");
    until("the slot has one holder", || held().iter().filter(|held| **held).count() == 1);
}

/// The replica is cut off for this long before it takes over. It does not know what was granted meanwhile.
#[test]
fn a_replica_that_lacks_the_last_grants_admits_them_once_more() {
    let Some(primary) = server_or_skip(&[]) else { return };
    let replica = Server::start(&["--replicaof", "127.0.0.1", &primary.port().to_string()]);
    until("the replica follows", || replica.info("master_link_status").as_deref() == Some("up"));
    let proxy = Proxy::before(primary.port());
    let limit = SharedLimit::new("x", 300, SECOND, 1_000).reserve(0, 0);
    let nodes = two(&proxy.url(), &limit);
    let granted = || nodes.iter().map(|n| n.metrics().granted_units).sum::<u64>();
    let mut lacking = 0;
    let audit = play(&nodes, HOT, 4 * SECOND, || {
        std::thread::sleep(3 * SECOND / 2);
        let at = granted();
        replica.say::<()>(&["REPLICAOF", "NO", "ONE"]).expect("ok");
        std::thread::sleep(SECOND);
        proxy.switch(replica.port());
        // Those of the batch that was under way are among them.
        lacking = granted() - at + 1;
    });
    let found = audit.replay(300.0, 1_000.0);
    println!("{found:?}, {lacking} granted that the replica lacked");
    assert!(lacking > 200 && found.excess > 50.0, "nothing was lost: {found:?}");
    assert!(found.excess <= lacking as f64 && found.excess <= lead(&limit, 2), "{found:?}");
}

/// Sets the clock of the server by so much, as far as limits can tell: all that it told lies as much elsewhere. (A
/// server cannot be run on a clock of its own: its timers run by the system's.)
fn set_clock(server: &Server, seconds: i64) {
    let shift = "for _, key in ipairs(redis.call('KEYS', 'tatcell:*{}:*')) do \
         local u, f = string.match(redis.call('GET', key), '^(%d+):(.+)$') \
         redis.call('SET', key, string.format('%.0f:%s', u - ARGV[1], f), 'KEEPTTL') end";
    let by = (seconds * 1_000_000).to_string();
    server.say::<redis::Value>(&["EVAL", shift, "0", &by]).expect("set");
}

#[test]
fn a_server_whose_clock_is_set_forward_admits_that_much_of_the_axis_more_and_back_nothing() {
    let Some(server) = server_or_skip(&[]) else { return };
    for (seconds, most) in [(1, 300.0), (3, 875.0), (-3, 0.0), (-600, 0.0)] {
        let limit = SharedLimit::new("x", 300, SECOND, 1_000).reserve(0, 0);
        server.say::<()>(&["FLUSHALL"]).expect("ok");
        let nodes = two(&server.url(), &limit);
        let granted = || nodes.iter().map(|n| n.metrics().granted_units).sum::<u64>();
        let audit = play(&nodes, HOT, 6 * SECOND, || {
            std::thread::sleep(3 * SECOND / 2);
            set_clock(&server, seconds);
            // Clamped: the key has its full debt, and is denied no longer than that takes.
            std::thread::sleep(3 * SECOND);
            let at = granted();
            if seconds > 0 {
                until("it is granted again", || granted() > at + 150);
            }
        });
        let found = audit.replay(300.0, 1_000.0);
        println!("{seconds} s: {found:?}, at most {most} more");
        // A unit for the rounding of what lies between two readings of the clock.
        assert!(found.excess <= most + 1.0, "{seconds}: {found:?}");
        assert!(found.excess > most * 0.2 || seconds < 0, "nothing was seen of it: {found:?}");
    }
}

const CHILD: &str = "TATCELL_LIES_CHILD";

/// A node in a process of its own: writes the reading of each admission.
#[test]
fn child_node() {
    let Ok(url) = std::env::var(CHILD) else { return };
    let limit = SharedLimit::new("x", 5_000, SECOND, 1_000);
    let node = Cluster::builder(&url, 3).limit(limit).keys(64).log(|_| {}).open().expect("a node");
    let x = node.limit("x").expect("it");
    loop {
        let reading = node.now();
        if node.check_at(x, &0u32.to_le_bytes(), 1, reading).passes() {
            println!("ADMITTED {reading}");
        }
    }
}

/// A process that stands still holds pieces, and its reading is old when it goes on.
#[test]
fn a_node_that_is_stopped_and_goes_on_adds_nothing() {
    let Some(server) = server_or_skip(&[]) else { return };
    let limit = SharedLimit::new("x", 5_000, SECOND, 1_000);
    let nodes: Vec<Cluster> = (0..2).map(|_| node(&server.url(), 3, limit.clone(), |b: Builder| b)).collect();
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["child_node", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, server.url())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut out = child.stdout.take().expect("its output");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let mut audit = play(&nodes, HOT, 4 * SECOND, || {
        for _ in 0..10 {
            for signal in [libc::SIGSTOP, libc::SIGCONT] {
                std::thread::sleep(Duration::from_millis(150));
                common::signal(&child, signal);
            }
        }
    });
    child.kill().expect("killed");
    child.wait().expect("its end");
    let text = reader.join().expect("a reader").expect("its output");
    let readings = text.lines().filter_map(|line| line.split("ADMITTED ").nth(1)?.parse::<u64>().ok());
    let units = readings.map(|reading| audit.add(0, reading, 1)).count();
    println!("{units} by the one that was stopped ten times");
    assert!(units > 500, "{units}");
    within(&audit.replay(5_000.0, 1_000.0));
}

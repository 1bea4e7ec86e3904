//! Typical loads: a steady one below the limit, a few keys that ask without a pause, one node that gets all requests
//! for a key. Each has its bound, what is admitted, and how seldom the store is asked.

mod common;

use std::cell::Cell;
use std::time::{Duration, Instant};

use common::audit::Audit;
use common::load::{node, patient, patiently, play, Load, HOT, SECOND};
use common::{server_or_skip, until};
use tatcell_cluster::{Cluster, Metrics, SharedLimit, Verdict};

fn four(url: &str, limit: &SharedLimit) -> Vec<Cluster> {
    let nodes: Vec<Cluster> = (0..4).map(|_| node(url, 4, limit.clone(), patient)).collect();
    until("all hold a slot", || nodes.iter().all(|node| node.metrics().reserve_held));
    nodes
}

fn sum(nodes: &[Cluster], of: fn(&Metrics) -> u64) -> u64 {
    nodes.iter().map(|node| of(&node.metrics())).sum()
}

/// Each node is asked 2000 times a second, at times of their own: four fifths of the limit.
#[test]
fn a_steady_load_below_the_limit_passes_and_is_seldom_asked_about() {
    let Some(server) = server_or_skip(&[]) else { return };
    let nodes = four(&server.url(), &SharedLimit::new("x", 10_000, SECOND, 1_000));
    let worker = |node: &Cluster| {
        let (x, begun) = (node.limit("x").expect("it"), Instant::now());
        let (mut audit, mut refused, mut asked) = (Audit::default(), 0, 0);
        while begun.elapsed() < 3 * SECOND {
            // Those that are due; more where the machine was busy.
            while f64::from(asked) < begun.elapsed().as_secs_f64() * 2_000.0 {
                asked += 1;
                let reading = node.now();
                match node.check_at(x, &0u32.to_le_bytes(), 1, reading) {
                    Verdict::Pass => audit.add(0, reading, 1),
                    _ => refused += 1,
                }
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        (audit, refused)
    };
    let (asks, refused) = (Cell::new(0), Cell::new(0));
    let round = || {
        let (mut all, asked) = (Audit::default(), sum(&nodes, |metrics| metrics.asks));
        refused.set(0);
        std::thread::scope(|scope| {
            let workers: Vec<_> = nodes.iter().map(|node| scope.spawn(move || worker(node))).collect();
            for worker in workers {
                let (audit, by_it) = worker.join().expect("a worker");
                all.join(audit);
                refused.set(refused.get() + by_it);
            }
        });
        asks.set(sum(&nodes, |metrics| metrics.asks) - asked);
        println!("{refused:?} refused or put off, {asks:?} asks");
        all.replay(10_000.0, 1_000.0)
    };
    // A load below the limit passes.
    patiently(round, |found| found.units > 4 * refused.get() && asks.get() * 10 < found.units);
}

#[test]
fn keys_that_ask_without_a_pause_get_their_rate_and_cost_the_store_little() {
    let Some(server) = server_or_skip(&[]) else { return };
    let nodes = four(&server.url(), &SharedLimit::new("x", 100, SECOND, 20));
    let load = Load { keys: 20, pause: Duration::ZERO, ..HOT };
    // More than a second's worth.
    let round = || play(&nodes, load, 2 * SECOND, || {}).replay(100.0, 20.0);
    patiently(round, |found| found.units > 20 * 100);
    let (asks, refused) = (sum(&nodes, |m| m.asks), sum(&nodes, |m| m.denied_cached));
    assert!(asks * 50 < refused, "{asks} asks beside {refused} refusals");
}

/// The reserves of the other three are stranded: 3.75 % of the rate.
#[test]
fn a_key_of_one_node_alone_gets_all_but_the_reserves_of_the_others() {
    let Some(server) = server_or_skip(&[]) else { return };
    let nodes = four(&server.url(), &SharedLimit::new("x", 10_000, SECOND, 1_000));
    let load = Load { pause: Duration::from_micros(20), ..HOT };
    let round = || play(&nodes[..1], load, 3 * SECOND, || {}).replay(10_000.0, 1_000.0);
    let most = 0.9625 * 10_000.0;
    patiently(round, |found| found.units as f64 > 0.7 * most * found.seconds);
    println!("{} asks", sum(&nodes, |m| m.asks));
    assert_eq!(sum(&nodes[1..], |m| m.asks), 0);
}

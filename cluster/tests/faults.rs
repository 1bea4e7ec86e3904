//! Networks and servers that fail between the nodes and a store that tells the truth: none of that adds to the bound.

mod common;

use std::cell::Cell;
use std::time::{Duration, Instant};

use common::audit::HAIR;
use common::load::{node, patient, patiently, play, within, Load, HOT, SECOND};
use common::proxy::{Faults, Proxy};
use common::{server_or_skip, until, Server};
use tatcell_cluster::{Builder, Cluster, Down, SharedLimit};

const MS: Duration = Duration::from_millis(1);

fn quick(builder: Builder) -> Builder {
    builder.timeout(100 * MS)
}

#[test]
fn answers_that_come_late_add_nothing() {
    let Some(server) = server_or_skip(&[]) else { return };
    let proxy = Proxy::before(server.port());
    // Pieces last 31 ms, and most lapse on their way; placed by when they come they would be 1500 units late.
    let limit = SharedLimit::new("x", 10_000, SECOND, 2_500).reserve(0, 0);
    let nodes: Vec<Cluster> = (0..3).map(|_| node(&proxy.url(), 3, limit.clone(), |b| b)).collect();
    let audit = play(&nodes, HOT, 3 * SECOND, || {
        for delay in [5, 120, 20, 0, 150] {
            proxy.faults(Faults { delay: delay * MS, ..Faults::default() });
            std::thread::sleep(500 * MS);
        }
    });
    within(&audit.replay(10_000.0, 2_500.0));
    assert!(nodes.iter().all(|n| n.metrics().grants > 5), "a node took no part");
}

#[test]
fn answers_that_are_cut_after_the_script_ran_add_nothing() {
    let Some(server) = server_or_skip(&[]) else { return };
    // A small limit asks seldom: of its answers more are cut.
    for (rate, burst, strict, often) in [(5_000, 1_000, false, 20), (20, 3, true, 100)] {
        let proxy = Proxy::before(server.port());
        let limit = SharedLimit::new("x", rate, SECOND, burst);
        let nodes: Vec<Cluster> = (0..3)
            .map(|i| {
                let url = if i < 2 { proxy.url() } else { server.url() };
                node(&url, 3, limit.clone(), |b| quick(b).prefix(&format!("at-{rate}")))
            })
            .collect();
        let audit = play(&nodes, HOT, 4 * SECOND, || {
            proxy.faults(Faults { cut: often, half: often, ..Faults::default() });
            std::thread::sleep(3 * SECOND);
            until("enough are cut", || proxy.cuts() > 10);
            proxy.faults(Faults::default());
        });
        let found = match strict {
            true => audit.replay_between(rate as f64, burst as f64),
            false => audit.replay(rate as f64, burst as f64),
        };
        println!("{} answers cut, {found:?}", proxy.cuts());
        assert!(found.excess <= HAIR, "{found:?}");
        assert!(found.units > rate * 2, "{found:?}");
        let outages: u64 = nodes.iter().map(|n| n.metrics().outages).sum();
        assert!(outages > 5, "{outages}");
        until("all are there again", || nodes.iter().all(|n| n.metrics().up));
    }
}

#[test]
fn answers_that_come_twice_add_nothing_and_are_noticed() {
    let Some(server) = server_or_skip(&[]) else { return };
    for (rate, burst, strict) in [(1_000, 1_000, false), (10_000, 2_500, false), (20, 3, true)] {
        let proxy = Proxy::before(server.port());
        let limit = SharedLimit::new("x", rate, SECOND, burst);
        let with = |b: Builder| quick(b).prefix(&format!("at-{rate}"));
        let nodes: Vec<Cluster> = (0..3).map(|_| node(&proxy.url(), 3, limit.clone(), with)).collect();
        let outages = || nodes.iter().map(|n| n.metrics().outages).sum::<u64>();
        let audit = play(&nodes, HOT, 5 * SECOND, || {
            proxy.faults(Faults { twice: 300, ..Faults::default() });
            std::thread::sleep(4 * SECOND);
            until("they are noticed", || proxy.copies() > 20 && outages() > 10);
            proxy.faults(Faults::default());
        });
        let found = match strict {
            true => audit.replay_between(rate as f64, burst as f64),
            false => audit.replay(rate as f64, burst as f64),
        };
        println!("{} answers came twice, {} connections closed, {found:?}", proxy.copies(), outages());
        assert!(found.excess <= HAIR, "{found:?}");
        assert!(found.units > rate, "nothing passes: {found:?}");
        until("all are there again", || nodes.iter().all(|n| n.metrics().up));
    }
}

/// Four nodes, of which two see nothing of the store for two seconds.
fn half_cut_off(server: &Server, down: Down) -> (common::audit::Audit, Vec<Cluster>) {
    let proxy = Proxy::before(server.port());
    let limit = SharedLimit::new("x", 1_000, SECOND, 500);
    let with = |b: Builder| b.when_down(down).prefix(&format!("{down:?}"));
    let cut_off = (0..2).map(|_| node(&proxy.url(), 4, limit.clone(), |b| with(quick(b))));
    let others = (0..2).map(|_| node(&server.url(), 4, limit.clone(), |b| with(patient(b))));
    let nodes: Vec<Cluster> = cut_off.chain(others).collect();
    let audit = play(&nodes, HOT, 5 * SECOND, || {
        std::thread::sleep(SECOND);
        proxy.silent(true);
        std::thread::sleep(2 * SECOND);
        proxy.silent(false);
    });
    (audit, nodes)
}

#[test]
fn two_of_four_that_are_cut_off_keep_the_bound_of_their_mode() {
    let Some(server) = server_or_skip(&[]) else { return };
    let (audit, nodes) = half_cut_off(&server, Down::Reserve);
    within(&audit.replay(1_000.0, 500.0));
    assert!(nodes[..2].iter().all(|n| n.metrics().denied_down > 0), "{nodes:?}");
    until("all are there again", || nodes.iter().all(|n| n.metrics().up));
    assert!(nodes[2..].iter().all(|n| n.metrics().outages == 0), "{nodes:?}");
    let shared = Cell::new(0);
    let round = || {
        let (audit, nodes) = half_cut_off(&server, Down::Share);
        shared.set(nodes.iter().map(|n| n.metrics().passed_share).sum());
        println!("{shared:?} by shares, of 2 s of half of 950 a second");
        // R_s w (1 + k/N) + 2 B: half as much again.
        audit.replay(1_500.0, 1_000.0)
    };
    patiently(round, |_| shared.get() > 600);
}

#[test]
fn a_full_store_denies_and_goes_on_when_there_is_room() {
    let Some(server) = server_or_skip(&["--maxmemory-policy", "noeviction"]) else {
        return;
    };
    let limit = SharedLimit::new("x", 1_000, SECOND, 500).reserve(0, 0);
    let nodes: Vec<Cluster> = (0..2).map(|_| node(&server.url(), 2, limit.clone(), patient)).collect();
    let grants = || nodes.iter().map(|n| n.metrics().grants).sum::<u64>();
    let audit = play(&nodes, HOT, 4 * SECOND, || {
        std::thread::sleep(SECOND);
        server.say::<()>(&["CONFIG", "SET", "maxmemory", "1"]).expect("ok");
        // Answers come in their order: no grant of before is still on its way.
        until("both hear of it", || nodes.iter().all(|n| n.metrics().faults > 0));
        let (at, faults, begun) = (grants(), nodes[0].metrics().faults, Instant::now());
        std::thread::sleep(SECOND);
        assert_eq!(grants(), at, "a full store grants nothing");
        let faults = (nodes[0].metrics().faults - faults) as f64 / begun.elapsed().as_secs_f64();
        // Once in 50 ms, not once a request.
        assert!((2.0..=40.0).contains(&faults), "{faults} faults a second");
        server.say::<()>(&["CONFIG", "SET", "maxmemory", "0"]).expect("ok");
        until("it goes on", || grants() > at + 5);
    });
    within(&audit.replay(1_000.0, 500.0));
    assert!(nodes.iter().all(|n| n.metrics().up && n.metrics().outages == 0), "{nodes:?}");
}

/// One node more than slots: it has no reserve, and takes one over from a node that closes, after the wait.
#[test]
fn one_node_more_than_slots_has_no_reserve_until_one_closes() {
    let Some(server) = server_or_skip(&[]) else { return };
    // Reserves of 40 % of the rate and of the burst: all that cold keys are admitted.
    let limit = SharedLimit::new("x", 100, SECOND, 60).reserve(400, 400);
    let mut nodes: Vec<Cluster> = (0..4).map(|_| node(&server.url(), 3, limit.clone(), |b| b)).collect();
    let holders = |nodes: &[Cluster]| nodes.iter().filter(|n| n.metrics().reserve_held).count();
    until("three hold a slot", || holders(&nodes) == 3);
    let load = Load { keys: 500, zipf: true, ..HOT };
    let mut audit = play(&nodes, load, 2 * SECOND, || {});
    let held = |n: &Cluster| n.metrics().reserve_held;
    until("three still hold one", || holders(&nodes) == 3);
    let gone = nodes.iter().position(held).expect("one of them");
    let reserved: u64 = nodes.iter().map(|n| n.metrics().passed_reserve).sum();
    assert!(reserved > 1_000, "{reserved}");
    // It closes, and the fourth has the slot after the wait: 0.6 s, until the reserve is full again.
    drop(nodes.remove(gone));
    let mut soon = 0;
    audit.join(play(&nodes, load, 3 * SECOND, || {
        std::thread::sleep(300 * MS);
        soon = holders(&nodes);
        until("the fourth holds it", || holders(&nodes) == 3);
    }));
    assert!(soon < 3, "a slot that was just claimed counts at once");
    within(&audit.replay(100.0, 60.0));
}

/// The first keys are hot and most are seen once, by all nodes; costs of 1 to 4.
#[test]
fn zipf_and_spoofed_loads_keep_the_bound_of_every_key() {
    let Some(server) = server_or_skip(&[]) else { return };
    for (name, zipf, keys) in [("zipf", true, 100_000), ("spoofed", false, 2_000_000)] {
        let limit = SharedLimit::new("x", 100, SECOND, 40);
        let with = |b: Builder| patient(b).prefix(name).keys(20_000).slot_ttl(SECOND);
        let nodes: Vec<Cluster> = (0..4).map(|_| node(&server.url(), 4, limit.clone(), with)).collect();
        until("all hold a slot", || nodes.iter().all(|n| n.metrics().reserve_held));
        let load = Load { keys, zipf, largest_cost: if zipf { 4 } else { 1 }, pause: 50 * MS / 1_000 };
        let sum =
            |of: fn(&tatcell_cluster::Metrics) -> u64| nodes.iter().map(|n| of(&n.metrics())).sum::<u64>();
        let (asks, reserved) = (Cell::new(0), Cell::new(0));
        let round = || {
            let (asked, by_reserves) = (sum(|m| m.asks), sum(|m| m.passed_reserve));
            let found = play(&nodes, load, 3 * SECOND, || {}).replay(100.0, 40.0);
            asks.set(sum(|m| m.asks) - asked);
            reserved.set(sum(|m| m.passed_reserve) - by_reserves);
            println!("{name}: {} units, {asks:?} asks, {reserved:?} by reserves", found.units);
            found
        };
        // A node that comes too late to renew its slot has no reserve for a while. A key that is seen once is no ask.
        patiently(round, |found| {
            let seldom = zipf || asks.get() * 20 < found.units;
            found.units > 10_000 && reserved.get() * 5 > found.units && seldom
        });
    }
}

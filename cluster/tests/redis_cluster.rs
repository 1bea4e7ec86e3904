//! Nodes on a Redis Cluster: keys are spread, hash slots move and primaries die under load; every admission is audited.

mod common;

use std::cell::Cell;
use std::time::Duration;

use common::fleet::RedisCluster;
use common::load::{node, patient, patiently, play, within, Load, SECOND};
use common::{server_or_skip, until, Server};
use tatcell_cluster::{Cluster, Down, OpenError, SharedLimit, Verdict};

const MANY: Load = Load { keys: 300, zipf: false, largest_cost: 3, pause: Duration::from_micros(50) };

/// Leased, and without a reserve: every key is asked for.
fn limit() -> SharedLimit {
    SharedLimit::new("x", 100, SECOND, 100).reserve(0, 0)
}

fn keys_of(server: &Server) -> usize {
    let keys: Vec<Vec<u8>> = server.say(&["KEYS", "tatcell:*{}:*"]).expect("keys");
    keys.len()
}

#[test]
fn keys_are_spread_and_hash_slots_move_under_load() {
    let Some(cluster) = RedisCluster::start_or_skip(3, 0) else {
        return;
    };
    // No connection breaks, and what happens is by ASK and MOVED alone.
    let nodes: Vec<Cluster> = (0..2).map(|_| node(&cluster.url(), 2, limit(), patient)).collect();
    let audit = play(&nodes, MANY, 6 * SECOND, || {
        std::thread::sleep(SECOND);
        until("the keys are spread", || cluster.servers.iter().all(|server| keys_of(server) > 50));
        // 1000 hash slots of the first go to the second, key by key, and come back.
        for (from, to) in [(0, 1), (1, 0)] {
            let words =
                ["reshard", &format!("127.0.0.1:{}", cluster.servers[0].port()), "--cluster-slots", "1000"];
            let mut words: Vec<String> = words.iter().map(|w| w.to_string()).collect();
            words.extend(["--cluster-from".into(), cluster.id(from), "--cluster-to".into(), cluster.id(to)]);
            cluster.manage(&words);
            let before: u64 = nodes.iter().map(|n| n.metrics().grants).sum();
            std::thread::sleep(Duration::from_millis(300));
            until("it goes on", || nodes.iter().map(|n| n.metrics().grants).sum::<u64>() > before);
        }
    });
    let found = audit.replay(100.0, 100.0);
    within(&found);
    assert!(found.units as f64 > 0.5 * 300.0 * 100.0 * found.seconds.min(6.0), "{found:?}");
    for node in &nodes {
        let metrics = node.metrics();
        println!("{metrics:?}");
        assert!(metrics.redirected > 0 && metrics.outages == 0 && metrics.up, "{metrics:?}");
    }
}

/// One step after the other: MOVING, so the old one says ASK for keys that it lacks; MOVED; and back.
#[test]
fn a_key_is_followed_by_ask_and_by_moved() {
    let Some(cluster) = RedisCluster::start_or_skip(3, 0) else { return };
    // A unit in a minute: what is charged stays charged.
    let limit = SharedLimit::new("x", 1, 60 * SECOND, 10).reserve(0, 0);
    let open = || {
        Cluster::builder(&cluster.url(), 2)
            .limit(limit.clone())
            .keys(64)
            .timeout(10 * SECOND)
            .log(|_| {})
            .open()
            .expect("a node")
    };
    let node = open();
    let (x, most) = (node.limit("x").expect("it"), 8);
    let passes = |node: &Cluster| node.acquire(x, b"k{tag}", 1, 10 * SECOND).passes();
    assert!(passes(&node));
    // Where the key is: what stands in braces in it must not count.
    let here = cluster.servers.iter().position(|s| keys_of(s) == 1).expect("it is somewhere");
    let there = (here + 1) % 3;
    let (from, to) = (&cluster.servers[here], &cluster.servers[there]);
    let names: Vec<String> = from.say(&["KEYS", "tatcell:*{}:*"]).expect("keys");
    let slot: u64 = from.say(&["CLUSTER", "KEYSLOT", &names[0]]).expect("a slot");
    let bare: u64 = from.say(&["CLUSTER", "KEYSLOT", "tag"]).expect("a slot");
    assert_ne!(slot, bare, "an attacker could choose the server of a key");
    let (slot, old, new) = (slot.to_string(), cluster.id(here), cluster.id(there));
    to.say::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &old]).expect("ok");
    from.say::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &new]).expect("ok");
    assert!(passes(&node));
    assert_eq!(node.metrics().redirected, 0, "the key has not moved");
    let port = to.port().to_string();
    from.say::<String>(&["MIGRATE", "127.0.0.1", &port, &names[0], "0", "10000"]).expect("moved");
    to.say::<()>(&["SCRIPT", "FLUSH"]).expect("ok");
    assert!(passes(&node) && passes(&node));
    let asked = node.metrics().redirected;
    assert!(asked > 0 && node.metrics().no_script > 0, "{:?}", node.metrics());
    assert_eq!((keys_of(from), keys_of(to)), (0, 1));
    for server in [to, from, &cluster.servers[(here + 2) % 3]] {
        server.say::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &new]).expect("ok");
    }
    let rest = (0..20).filter(|_| passes(&node)).count();
    assert!(node.metrics().redirected > asked);
    let second = open();
    assert_eq!(4 + rest, most, "on its way from server to server the key lost or gained units");
    assert!(!passes(&second));
    assert_eq!(node.metrics().faults + node.metrics().outages, 0, "{:?}", node.metrics());
}

#[test]
fn a_primary_that_dies_is_replaced_and_the_others_go_on() {
    let Some(mut cluster) = RedisCluster::start_or_skip(3, 1) else {
        return;
    };
    let nodes: Vec<Cluster> = (0..2).map(|_| node(&cluster.url(), 2, limit(), |b| b)).collect();
    let granted = |nodes: &[Cluster]| nodes.iter().map(|n| n.metrics().granted_units).sum::<u64>();
    let mut between = 0;
    let audit = play(&nodes, MANY, 9 * SECOND, || {
        std::thread::sleep(SECOND);
        cluster.servers[0].kill();
        std::thread::sleep(Duration::from_millis(200));
        let before = granted(&nodes);
        let is_promoted = || cluster.servers[3..].iter().any(|s| s.info("role").as_deref() == Some("master"));
        // Two thirds of 300 keys of 100 a second: it takes a few tenths of a second, and the promotion longer.
        until("the others go on", || granted(&nodes) > before + 3_000 || is_promoted());
        between = granted(&nodes) - before;
        until("two of three are there", || nodes.iter().all(|n| n.metrics().up));
        until("a replica is promoted", is_promoted);
        let promoted = cluster.servers[3..].iter().find(|s| s.info("role").as_deref() == Some("master"));
        let promoted = promoted.expect("one").port();
        // All keys are granted to again: the writes of the promoted one grow.
        let writes = || {
            let server = cluster.servers.iter().find(|s| s.port() == promoted).expect("it");
            server.info("total_commands_processed").and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
        };
        let at = writes();
        until("it is asked", || writes() > at + 1_000);
    });
    println!("{between} units while a third of the keys was away");
    assert!(between > 3_000, "the others were held up: {between}");
    // It took a second and more to promote: what was lost had drained, M/T = 87 units at 100 a second.
    within(&audit.replay(100.0, 100.0));
}

#[test]
fn shares_of_a_part_of_the_keys_begin_empty_and_end_with_a_full_debt() {
    let Some(mut cluster) = RedisCluster::start_or_skip(3, 0) else { return };
    let nodes = [node(&cluster.url(), 1, limit(), |b| b.when_down(Down::Share))];
    let shared = Cell::new(0);
    let round = || {
        let before = nodes[0].metrics().passed_share;
        let audit = play(&nodes, MANY, 6 * SECOND, || {
            std::thread::sleep(SECOND);
            cluster.servers[0].stop();
            std::thread::sleep(3 * SECOND / 2);
            cluster.servers[0].go_on();
        });
        println!("{:?}", nodes[0].metrics());
        until("it is there", || nodes[0].metrics().up);
        shared.set(nodes[0].metrics().passed_share - before);
        audit.replay(100.0, 100.0)
    };
    // A third of 300 keys at 100 a second for 1.5 s.
    patiently(round, |_| shared.get() > 5_000);
    cluster.servers[0].kill();
}

#[test]
fn what_is_wrong_with_a_redis_cluster_is_said() {
    let with =
        |url: &str, nodes| patient(Cluster::builder(url, nodes)).limit(limit()).keys(64).log(|_| {}).open();
    let error = |url: &str| {
        let error = with(url, 2).expect_err("an error");
        println!("{error}");
        error
    };
    let Some(server) = server_or_skip(&[]) else { return };
    let as_cluster = |server: &Server| format!("redis+cluster://127.0.0.1:{}", server.port());
    assert!(matches!(error(&as_cluster(&server)), OpenError::NotACluster(_)));
    let lonely = Server::start(&["--cluster-enabled", "yes"]);
    assert!(matches!(error(&as_cluster(&lonely)), OpenError::NotACluster(_)));
    assert!(matches!(error("redis+cluster://127.0.0.1:1"), OpenError::Unreachable(_)));
    let Some(mut cluster) = RedisCluster::start_or_skip(3, 0) else {
        return;
    };
    assert!(matches!(error(&cluster.servers[0].url()), OpenError::ClusterMode));
    // Another's parameters, wherever the mark is.
    let first = with(&cluster.url(), 2).expect("a node");
    let three = with(&cluster.url(), 3).expect_err("refused");
    assert!(matches!(three, OpenError::OtherParameters { .. }));
    assert_eq!(first.acquire(first.limit("x").expect("it"), b"k", 1, 10 * SECOND), Verdict::Pass);
    cluster.servers[2].kill();
    assert!(matches!(error(&cluster.url()), OpenError::Unreachable(why) if why.contains("127.0.0.1")));
}

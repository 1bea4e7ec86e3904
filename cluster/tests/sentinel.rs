//! Nodes that ask sentinels for the primary, and follow it: every admission is audited.

mod common;

use std::time::Duration;

use common::fleet::{Watched, SENTINELS};
use common::load::{node, patient, play, within, HOT, SECOND};
use common::{until, Server};
use tatcell_cluster::{Builder, Cluster, OpenError, SharedLimit, Verdict};

fn limit() -> SharedLimit {
    SharedLimit::new("x", 1_000, SECOND, 1_000)
}

fn login(builder: Builder) -> Builder {
    builder.sentinel_login("", SENTINELS)
}

#[test]
fn a_failover_under_load_is_followed_and_keeps_the_bound() {
    let Some(mut fleet) = Watched::start_or_skip() else { return };
    let url = fleet.url("main");
    let nodes: Vec<Cluster> = (0..2).map(|_| node(&url, 2, limit(), login)).collect();
    let (mut before, mut after) = (0, 0);
    let granted = |nodes: &[Cluster]| nodes.iter().map(|n| n.metrics().granted_units).sum::<u64>();
    let mut killed = Duration::ZERO;
    let audit = play(&nodes, HOT, 8 * SECOND, || {
        std::thread::sleep(SECOND);
        fleet.primary.kill();
        before = granted(&nodes);
        let begun = std::time::Instant::now();
        until("the nodes are at the new primary", || nodes.iter().all(|n| n.metrics().up));
        until("the replica is promoted", || fleet.replica.info("role").as_deref() == Some("master"));
        until("it grants", || granted(&nodes) > before + 100);
        killed = begun.elapsed();
        std::thread::sleep(2 * SECOND);
        after = granted(&nodes);
    });
    println!("{killed:?} until it granted again, {} units in 2 s after", after - before);
    assert!(after - before > 1_000, "it does not go on at the new primary");
    // What the replica lacked had drained before it was promoted: nothing is above the bound.
    within(&audit.replay(1_000.0, 1_000.0));
    for node in &nodes {
        assert!(node.metrics().outages >= 1, "{:?}", node.metrics());
        until("it is there", || node.metrics().up);
    }
}

/// The primary is there all the time and takes what it is told, and the sentinels have another one: nothing breaks that
/// would make a node look.
#[test]
fn a_primary_that_is_replaced_while_it_is_well_is_left() {
    let Some(fleet) = Watched::start_or_skip() else { return };
    let nodes = [node(&fleet.url("main"), 1, limit().reserve(0, 0), login)];
    let audit = play(&nodes, HOT, 5 * SECOND, || {
        std::thread::sleep(SECOND);
        fleet.replica.say::<()>(&["REPLICAOF", "NO", "ONE"]).expect("ok");
        let port = fleet.replica.port().to_string();
        for sentinel in &fleet.sentinels {
            let mut sentinel = sentinel.connect_as("default", SENTINELS).expect("a connection");
            for words in [&["REMOVE", "main"][..], &["MONITOR", "main", "127.0.0.1", &port, "2"]] {
                redis::cmd("SENTINEL").arg(words).query::<()>(&mut sentinel).expect("ok");
            }
        }
        let said = || fleet.replica.info("cmdstat_evalsha").or(fleet.replica.info("cmdstat_eval"));
        let at = said();
        until("the new one is asked", || said() != at);
        until("it grants", || nodes[0].metrics().up);
    });
    assert_eq!(fleet.primary.info("role").as_deref(), Some("master"));
    // What the old one granted until the node looked, the new one does not know: M/T at most.
    let found = audit.replay(1_000.0, 1_000.0);
    println!("{found:?}");
    assert!(found.excess <= 875.0, "{found:?}");
    until("it is there", || nodes[0].metrics().up);
}

/// The first sentinel names another primary: it was cut off, or somebody has tampered with it.
fn mislead(fleet: &Watched) -> Server {
    let other = Server::start(&[]);
    let mut sentinel = fleet.sentinels[0].connect_as("default", SENTINELS).expect("a connection");
    for words in [&["REMOVE", "main"][..], &["MONITOR", "main", "127.0.0.1", &other.port().to_string(), "2"]]
    {
        redis::cmd("SENTINEL").arg(words).query::<()>(&mut sentinel).expect("ok");
    }
    other
}

fn is_asked(server: &Server) -> bool {
    server.info("cmdstat_evalsha").or(server.info("cmdstat_eval")).is_some()
}

#[test]
fn one_sentinel_of_three_does_not_decide() {
    let Some(fleet) = Watched::start_or_skip() else { return };
    let other = mislead(&fleet);
    let nodes = [node(&fleet.url("main"), 1, limit(), |builder| patient(login(builder)))];
    let audit = play(&nodes, HOT, 3 * SECOND, || {});
    within(&audit.replay(1_000.0, 1_000.0));
    assert!(is_asked(&fleet.primary) && !is_asked(&other), "the first one decided");
    assert!(nodes[0].metrics().granted_units > 100, "{:?}", nodes[0].metrics());
}

/// A third one is silent, so one names the primary and one the other server.
#[test]
fn one_sentinel_of_two_that_answer_moves_no_node() {
    let Some(fleet) = Watched::start_or_skip() else { return };
    let nodes = [node(&fleet.url("main"), 1, limit(), login)];
    fleet.sentinels[2].stop();
    let other = mislead(&fleet);
    let audit = play(&nodes, HOT, 4 * SECOND, || {});
    within(&audit.replay(1_000.0, 1_000.0));
    assert!(is_asked(&fleet.primary) && !is_asked(&other), "the first one decided");
    fleet.sentinels[2].go_on();
}

#[test]
fn what_is_wrong_with_sentinels_is_said() {
    let Some(fleet) = Watched::start_or_skip() else { return };
    let error = |url: &str, with: fn(Builder) -> Builder| {
        let builder = patient(Cluster::builder(url, 2)).limit(limit()).keys(64).log(|_| {});
        let error = with(builder).open().expect_err("an error");
        println!("{error}");
        error
    };
    assert!(matches!(error(&fleet.url("other"), login), OpenError::UnknownPrimary(name) if name == "other"));
    assert!(matches!(error(&fleet.url("main"), |b| b), OpenError::Refused(_)));
    assert!(matches!(error(&fleet.url("main"), |b| b.sentinel_login("", "wrong")), OpenError::Refused(_)));
    assert!(matches!(error("redis+sentinel://127.0.0.1:1/main", login), OpenError::Unreachable(_)));
    let server = format!("redis+sentinel://127.0.0.1:{}/main", fleet.primary.port());
    assert!(matches!(error(&server, |b| b), OpenError::NotSentinels(_)));
    let sentinel = format!("redis://:{SENTINELS}@127.0.0.1:{}/", fleet.sentinels[0].port());
    assert!(matches!(error(&sentinel, |b| b), OpenError::Sentinel));
    // One that answers is enough, and whoever is asked first need not be there.
    let some = fleet.url("main").replace("://", "://127.0.0.1:1,");
    let node = login(patient(Cluster::builder(&some, 2)).limit(limit()).keys(64)).open().expect("a node");
    assert_eq!(node.acquire(node.limit("x").expect("it"), b"k", 1, 10 * SECOND), Verdict::Pass);
}

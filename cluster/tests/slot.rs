//! A slot whose claim was answered and the answer lost: the node has it, and may spend its reserve only after the wait.

mod common;

use std::time::Duration;

use common::proxy::Proxy;
use common::{server_or_skip, until, Server};
use tatcell_cluster::{Cluster, SharedLimit};

const SECOND: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_millis(900);
const SLOT: &str = "tatcell:slot:0";

/// The only node of a limit whose reserve is full 2 s after it was empty.
fn open(url: &str) -> Cluster {
    let limit = SharedLimit::new("x", 500, SECOND, 2_000).reserve(500, 250);
    // However busy the machine is: a server that is there answers within this.
    let builder = Cluster::builder(url, 1).limit(limit).keys(64).slot_ttl(TTL).timeout(10 * SECOND);
    builder.log(|_| {}).open().expect("a node")
}

fn holder(server: &Server) -> String {
    server.say::<Option<String>>(&["GET", SLOT]).expect("a reply").unwrap_or_default()
}

#[test]
fn a_first_claim_whose_answer_is_lost_gives_the_reserve_and_is_released() {
    let Some(server) = server_or_skip(&[]) else { return };
    let proxy = Proxy::before(server.port());
    proxy.cut_next(SLOT);
    let node = open(&proxy.url());
    until("the answer to the claim is lost", || proxy.cuts() == 1);
    assert!(!holder(&server).is_empty(), "the store has it");
    assert!(!node.metrics().reserve_held);
    until("the node spends its reserve", || node.metrics().reserve_held);
    assert!(node.shutdown(SECOND));
    assert_eq!(holder(&server), "", "released");
}

#[test]
fn a_claim_whose_answer_is_lost_waits_as_any_claim() {
    let Some(server) = server_or_skip(&[]) else { return };
    let proxy = Proxy::before(server.port());
    let node = open(&proxy.url());
    until("the node spends its reserve", || node.metrics().reserve_held);
    let own = holder(&server);
    // Another node has the slot, spends its reserve, and ends.
    server.say::<()>(&["SET", SLOT, "another", "PX", "400"]).expect("ok");
    until("it has lost its slot", || !node.metrics().reserve_held);
    let cuts = proxy.cuts();
    proxy.cut_next(SLOT);
    // It asks once a turn, and the other one may still hold the slot: the answer to that is lost as well.
    let mut begun = node.now();
    until("it has the slot again", || {
        let now = node.now();
        if holder(&server) == own {
            return true;
        }
        begun = now;
        if proxy.cuts() > cuts {
            proxy.cut_next(SLOT);
        }
        false
    });
    until("it spends its reserve again", || node.metrics().reserve_held);
    // Since the last reading at which it had no slot. The claim was sent up to a turn before: the life of a slot, and
    // two seconds until an empty reserve is full.
    let waited = Duration::from_nanos(node.now() - begun);
    println!("{waited:?}");
    assert!(waited > TTL + SECOND, "{waited:?}");
}

//! Every kind of reply of a real server: a grant, or a fault by its name, never a pass.

mod common;

use std::time::Duration;

use common::{server_or_skip, Server};
use tatcell_cluster::script::{give_back, grant, slot, Ask, By, Fault, Grant};
use tatcell_cluster::{SharedLimit, Split};

const ONE: Ask = Ask { want: 1, min: 1, spent: 0, grace_us: 0, version: 1 };

fn split() -> Split {
    let limit = SharedLimit::new("x", 1, Duration::from_secs(3_600), 10).reserve(0, 0);
    limit.split(1, Duration::from_millis(1)).expect("a limit")
}

fn ask(connection: &mut redis::Connection, by: By, key: &str) -> Result<Grant, Fault> {
    grant(by, key.as_bytes(), &split(), &ONE).query(connection).map_err(|e| Fault::of(&e))
}

fn set(connection: &mut redis::Connection, words: &[&str]) {
    redis::cmd(words[0]).arg(&words[1..]).query::<redis::Value>(connection).expect("a reply");
}

fn with_server(arguments: &[&str], body: impl FnOnce(&Server, &mut redis::Connection)) {
    if let Some(server) = server_or_skip(arguments) {
        body(&server, &mut server.connect());
    }
}

#[test]
fn a_call_without_its_script_did_not_run_and_goes_again_with_the_text() {
    with_server(&[], |_, con| {
        assert_eq!(ask(con, By::Digest, "k"), Err(Fault::NoScript));
        assert_eq!(redis::cmd("EXISTS").arg("k").query(con), Ok(0));
        assert_eq!(ask(con, By::Text, "k").map(|g| g.units), Ok(1));
        assert_eq!(ask(con, By::Digest, "k").map(|g| g.units), Ok(1));
        set(con, &["SCRIPT", "FLUSH"]);
        assert_eq!(ask(con, By::Digest, "k"), Err(Fault::NoScript));
    });
}

#[test]
fn exactly_the_burst_is_granted_and_then_the_time_is_told() {
    with_server(&[], |_, con| {
        for unit in 0..split().largest_cost {
            assert_eq!(ask(con, By::Text, "k").map(|g| g.units), Ok(1), "unit {unit}");
        }
        let refused = ask(con, By::Text, "k").expect("a reply");
        assert_eq!((refused.units, refused.stamp.as_str()), (0, ""));
        let unit_us = 3_600_000_000;
        assert!(refused.retry_us > 0 && refused.retry_us <= unit_us, "{refused:?}");
    });
}

#[test]
fn a_grant_is_given_back_once_and_only_while_it_is_the_last() {
    with_server(&[], |_, con| {
        let first = ask(con, By::Text, "k").expect("a grant");
        let back = |con: &mut redis::Connection, stamp: &str| -> u64 {
            let (taken,) = give_back(By::Text, b"k", stamp, 1).query(con).expect("a reply");
            taken
        };
        assert_eq!(back(con, &first.stamp), 1);
        assert_eq!(back(con, &first.stamp), 0);
        let again = ask(con, By::Text, "k").expect("a grant");
        let later = ask(con, By::Text, "k").expect("a grant");
        assert_eq!(back(con, &again.stamp), 0);
        assert_eq!(back(con, &later.stamp), 1);
        let next = ask(con, By::Text, "k").expect("a grant");
        assert_eq!(next.stamp, later.stamp, "what was given back is granted again");
    });
}

#[test]
fn a_slot_has_one_holder_until_it_lets_go() {
    with_server(&[], |_, con| {
        let mut say = |holder: &str, ms: u64| -> i64 {
            let (code,) = slot(By::Text, b"s", holder, ms).query(con).expect("a reply");
            code
        };
        assert_eq!((say("a", 60_000), say("b", 60_000), say("a", 60_000)), (1, 0, 2));
        assert_eq!((say("b", 0), say("a", 0), say("a", 0)), (0, 2, 0));
        assert_eq!(say("b", 60_000), 1);
    });
}

#[test]
fn a_foreign_value_is_a_fault() {
    with_server(&[], |_, con| {
        set(con, &["SET", "text", "hello"]);
        assert_eq!(ask(con, By::Text, "text"), Err(Fault::ForeignValue));
        set(con, &["RPUSH", "list", "1"]);
        assert_eq!(ask(con, By::Text, "list"), Err(Fault::ForeignValue));
    });
}

#[test]
fn a_full_store_is_a_fault() {
    with_server(&["--maxmemory-policy", "noeviction"], |_, con| {
        set(con, &["CONFIG", "SET", "maxmemory", "1"]);
        assert_eq!(ask(con, By::Text, "k"), Err(Fault::OutOfMemory));
    });
}

#[test]
fn a_replica_is_a_fault() {
    let port = "1"; // nobody listens there
    with_server(&["--replica-serve-stale-data", "yes"], |_, con| {
        set(con, &["REPLICAOF", "127.0.0.1", port]);
        assert_eq!(ask(con, By::Text, "k"), Err(Fault::ReadOnly));
        set(con, &["CONFIG", "SET", "replica-serve-stale-data", "no"]);
        assert_eq!(ask(con, By::Text, "k"), Err(Fault::NotNow));
    });
}

#[test]
fn a_node_of_a_redis_cluster_is_a_fault() {
    let cluster = ["--cluster-enabled", "yes"];
    let Some(other) = server_or_skip(&cluster) else { return };
    with_server(&cluster, |_, con| {
        assert_eq!(ask(con, By::Text, "k"), Err(Fault::NotNow), "no slot is assigned");
        set(con, &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
        let mut tries = 0;
        while ask(con, By::Text, "k").is_err() && tries < 500 {
            tries += 1;
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(ask(con, By::Text, "k").map(|g| g.units), Ok(1), "one node that has all slots");
        // The slot of the key becomes another node's, which takes it only where it is empty.
        set(con, &["DEL", "k"]);
        let slot: u64 = redis::cmd("CLUSTER").arg("KEYSLOT").arg("k").query(con).expect("a slot");
        set(con, &["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string()]);
        let id: String = redis::cmd("CLUSTER").arg("MYID").query(&mut other.connect()).expect("an id");
        let take = ["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &id];
        while redis::cmd(take[0]).arg(&take[1..]).query::<redis::Value>(con).is_err() && tries < 1_000 {
            tries += 1;
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(ask(con, By::Text, "k"), Err(Fault::Elsewhere));
    });
}

#[test]
fn a_user_without_rights_is_a_fault() {
    with_server(&[], |server, con| {
        set(con, &["ACL", "SETUSER", "u", "on", ">secret", "~other*", "+@all"]);
        let mut user = server.connect_as("u", "secret").expect("a connection");
        assert_eq!(ask(&mut user, By::Text, "k"), Err(Fault::Refused));
        assert_eq!(ask(&mut user, By::Text, "other").map(|g| g.units), Ok(1));
        let wrong = server.connect_as("u", "wrong").err().map(|e| Fault::of(&e));
        assert_eq!(wrong, Some(Fault::Refused));
    });
}

#[test]
fn a_silent_or_dead_store_is_lost() {
    let Some(mut server) = server_or_skip(&[]) else { return };
    let mut con = server.connect();
    assert!(ask(&mut con, By::Text, "k").is_ok());
    con.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    server.stop();
    assert_eq!(ask(&mut con, By::Digest, "k"), Err(Fault::Lost));
    server.go_on();
    let mut con = server.connect();
    assert!(ask(&mut con, By::Text, "k").is_ok());
    server.kill();
    assert_eq!(ask(&mut con, By::Digest, "k"), Err(Fault::Lost));
}

/// A store that was started anew and reads what it had written, slowly.
#[test]
fn a_store_that_is_loading_is_a_fault_for_a_while() {
    // It answers once in 1024 commands of its log, which take half a second.
    let slowly = ["--key-load-delay", "300"];
    let log = ["--appendonly", "yes", "--appendfsync", "always"];
    let Some(mut server) = server_or_skip(&[&log[..], &slowly].concat()) else {
        return;
    };
    let mut all = redis::pipe();
    for i in 0..8_000 {
        all.cmd("SET").arg(format!("key{i}")).arg("value");
    }
    all.query::<redis::Value>(&mut server.connect()).expect("set");
    assert_eq!(ask(&mut server.connect(), By::Text, "k").map(|grant| grant.units), Ok(1));
    server.restart();
    let (mut connection, begun, mut refused) = (server.connect(), std::time::Instant::now(), 0);
    while let Err(fault) = ask(&mut connection, By::Text, "k") {
        assert_eq!(fault, Fault::NotNow);
        refused += 1;
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("refused {refused} times in {:?}", begun.elapsed());
    assert!(refused > 1, "{refused}");
}

#[test]
fn what_only_other_servers_say_is_named_too() {
    use redis::{ErrorKind, RedisError, ServerErrorKind};
    let of = |kind| Fault::of(&RedisError::from((ErrorKind::Server(kind), "said")));
    assert_eq!(of(ServerErrorKind::Moved), Fault::Elsewhere);
    assert_eq!(of(ServerErrorKind::Ask), Fault::Elsewhere);
    assert_eq!(of(ServerErrorKind::BusyLoading), Fault::NotNow);
    assert_eq!(of(ServerErrorKind::TryAgain), Fault::NotNow);
    assert_eq!(of(ServerErrorKind::CrossSlot), Fault::Other);
    assert!(Fault::Lost.breaks_connection() && !Fault::NotNow.breaks_connection());
}

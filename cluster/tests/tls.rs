//! Stores that speak TLS: whom a node trusts, who must show a certificate, and the errors.

mod common;

use std::time::Duration;

use common::load::{play, within, Load, SECOND};
use common::tls::{by_tls, file, redis_cli, server_or_skip};
use common::{have_or_skip, until, Server};
use tatcell_cluster::{Cluster, OpenError, SharedLimit, Tls, Verdict};

fn open(server: &Server, tls: Tls) -> Result<Cluster, OpenError> {
    let url = format!("rediss://127.0.0.1:{}/", server.port());
    let limit = SharedLimit::new("x", 100, SECOND, 100);
    let builder = Cluster::builder(&url, 2).limit(limit).keys(64).tls(tls).timeout(10 * SECOND).log(|_| {});
    builder.open().inspect_err(|error| println!("{error}"))
}

fn works(node: &Cluster) {
    let x = node.limit("x").expect("it");
    assert_eq!(node.acquire(x, b"k", 1, 10 * SECOND), Verdict::Pass);
}

#[test]
fn a_store_is_trusted_by_its_authority_and_by_no_other() {
    let no_client = ["--tls-auth-clients", "no"];
    let Some(server) = server_or_skip("server", &no_client) else { return };
    works(&open(&server, Tls::new().authorities(file(&server, "ours.pem"))).expect("a node"));
    let other = open(&server, Tls::new().authorities(file(&server, "others.pem")));
    assert!(matches!(other, Err(OpenError::Certificate(_))), "{other:?}");
    let system = open(&server, Tls::new());
    assert!(matches!(system, Err(OpenError::Certificate(_))), "{system:?}");
    let nonsense =
        open(&server, Tls::new().authorities("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----"));
    assert!(matches!(nonsense, Err(OpenError::Certificate(_))), "{nonsense:?}");
    // Whoever does not ask for TLS hears nothing of use, and is told so.
    let limit = SharedLimit::new("x", 100, SECOND, 100);
    let plain = Cluster::builder(&format!("redis://127.0.0.1:{}/", server.port()), 2).limit(limit).keys(64);
    assert!(matches!(plain.open(), Err(OpenError::Unreachable(_))));
}

#[test]
fn a_certificate_of_another_name_is_refused() {
    let no_client = ["--tls-auth-clients", "no"];
    let Some(server) = server_or_skip("elsewhere", &no_client) else {
        return;
    };
    let ours = || Tls::new().authorities(file(&server, "ours.pem"));
    let other = open(&server, ours());
    assert!(matches!(other, Err(OpenError::Certificate(_))), "{other:?}");
    // The client of the store has a word for not looking, which is not heard here.
    let url = format!("rediss://127.0.0.1:{}/#insecure", server.port());
    let limit = SharedLimit::new("x", 100, SECOND, 100);
    let unseen = Cluster::builder(&url, 2).limit(limit).keys(64).tls(ours()).timeout(10 * SECOND).open();
    println!("{unseen:?}");
    assert!(unseen.is_err());
}

#[test]
fn a_store_that_asks_for_a_certificate_is_shown_one() {
    let Some(server) = server_or_skip("server", &[]) else { return };
    let trusting = || Tls::new().authorities(file(&server, "ours.pem"));
    let none = open(&server, trusting());
    assert!(matches!(none, Err(OpenError::Certificate(_))), "{none:?}");
    let node = open(&server, trusting().client(file(&server, "client.pem"), file(&server, "client.key")));
    works(&node.expect("a node"));
}

/// Three primaries that speak TLS alone, to clients and to each other. The certificates are the first one's; the last
/// one shows that of this name.
fn cluster_or_skip(last: &str) -> Option<Vec<Server>> {
    if !have_or_skip("redis-cli", "redis-tools") {
        return None;
    }
    let more = ["--tls-cluster", "yes", "--tls-replication", "yes", "--cluster-enabled", "yes"];
    let first = server_or_skip("server", &more)?;
    let of_first = first.folder().to_owned();
    let another = |certificate| Server::start_at(|port, _| by_tls(port, &of_first, certificate, &more));
    let (second, third) = (another("server"), another(last));
    let servers = vec![first, second, third];
    let at: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    let mut words = vec!["--cluster", "create"];
    words.extend(at.iter().map(String::as_str));
    words.push("--cluster-yes");
    redis_cli(&servers[0], servers[0].folder(), &words);
    let serves = |i| say(&servers, i, &["CLUSTER", "INFO"]).contains("cluster_state:ok");
    until("all serve", || (0..servers.len()).all(serves));
    Some(servers)
}

/// What one of them says; the certificates are the first one's.
fn say(servers: &[Server], server: usize, words: &[&str]) -> String {
    redis_cli(&servers[server], servers[0].folder(), words)
}

/// MOVED and ASK name servers that no connection was made to by the URL: they, too, are asked by TLS, and trusted by
/// the same authority alone.
#[test]
fn a_redis_cluster_is_asked_by_tls_and_its_hash_slots_move_under_load() {
    let Some(servers) = cluster_or_skip("server") else { return };
    let (ours, others) = (file(&servers[0], "ours.pem"), file(&servers[0], "others.pem"));
    let (cert, key) = (file(&servers[0], "client.pem"), file(&servers[0], "client.key"));
    let open = |scheme: &str, tls: Tls| {
        let url = format!("{scheme}://127.0.0.1:{}", servers[0].port());
        let limit = SharedLimit::new("x", 100, SECOND, 100).reserve(0, 0);
        let builder = Cluster::builder(&url, 2).limit(limit).keys(4_096).tls(tls).timeout(10 * SECOND);
        builder.log(|_| {}).open().inspect_err(|error| println!("{error}"))
    };
    let trusting = || Tls::new().authorities(ours.clone()).client(cert.clone(), key.clone());
    let stranger = open("rediss+cluster", Tls::new().authorities(others).client(cert.clone(), key.clone()));
    assert!(matches!(stranger, Err(OpenError::Certificate(_))), "{stranger:?}");
    let nobody = open("rediss+cluster", Tls::new().authorities(ours.clone()));
    assert!(matches!(nobody, Err(OpenError::Certificate(_))), "{nobody:?}");
    let plain = open("redis+cluster", trusting());
    assert!(matches!(plain, Err(OpenError::Unreachable(_))), "{plain:?}");

    let nodes = [0, 1].map(|_| open("rediss+cluster", trusting()).expect("a node"));
    let keys = |i| say(&servers, i, &["DBSIZE"]).trim().parse::<u64>().expect("a number");
    let load = Load { keys: 300, zipf: false, largest_cost: 3, pause: Duration::from_micros(50) };
    let audit = play(&nodes, load, 4 * SECOND, || {
        std::thread::sleep(SECOND);
        until("the keys are spread", || (0..3).all(|i| keys(i) > 50));
        let id = |i| say(&servers, i, &["CLUSTER", "MYID"]).trim().to_owned();
        let (from, to, at) = (id(0), id(1), format!("127.0.0.1:{}", servers[0].port()));
        let words = ["--cluster", "reshard", &at, "--cluster-slots", "500", "--cluster-from", &from];
        say(&servers, 0, &[&words[..], &["--cluster-to", &to, "--cluster-yes"]].concat());
    });
    let found = audit.replay(100.0, 100.0);
    within(&found);
    assert!(found.units as f64 > 0.5 * 300.0 * 100.0 * found.seconds.min(4.0), "{found:?}");
    for node in &nodes {
        let metrics = node.metrics();
        println!("{metrics:?}");
        assert!(metrics.redirected > 0 && metrics.outages == 0 && metrics.up, "{metrics:?}");
    }
}

/// The URL names one with the right name, and that one names the other two.
#[test]
fn a_server_of_another_name_in_a_redis_cluster_is_refused() {
    let Some(servers) = cluster_or_skip("elsewhere") else { return };
    let (cert, key) = (file(&servers[0], "client.pem"), file(&servers[0], "client.key"));
    let tls = Tls::new().authorities(file(&servers[0], "ours.pem")).client(cert, key);
    let url = format!("rediss+cluster://127.0.0.1:{}", servers[0].port());
    let limit = SharedLimit::new("x", 100, SECOND, 100);
    let other = Cluster::builder(&url, 2).limit(limit).keys(64).tls(tls).timeout(10 * SECOND).open();
    let at = format!("127.0.0.1:{}", servers[2].port());
    assert!(matches!(&other, Err(OpenError::Certificate(why)) if why.contains(&at)), "{other:?}");
}

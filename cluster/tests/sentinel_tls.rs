//! Sentinels, a primary and its replica that speak only TLS, to clients and to each other: whom a node trusts, and that
//! it follows a failover.

mod common;

use std::time::Duration;

use common::load::{node, play, within, HOT, SECOND};
use common::tls::{ask, by_tls, file, server_or_skip, written};
use common::{have_or_skip, until, Server};
use tatcell_cluster::{Builder, Cluster, OpenError, SharedLimit, Tls, Verdict};

/// The certificates lie in the primary's folder.
struct Watched {
    primary: Server,
    replica: Server,
    sentinels: Vec<Server>,
}

impl Watched {
    /// The primary shows the certificate of this name.
    fn start_or_skip(certificate: &str) -> Option<Watched> {
        if !have_or_skip("redis-cli", "redis-tools") {
            return None;
        }
        let by_tls_too = ["--tls-replication", "yes"];
        let primary = server_or_skip(certificate, &by_tls_too)?;
        let (at, folder) = (primary.port().to_string(), primary.folder().to_owned());
        let follow = [&by_tls_too[..], &["--replicaof", "127.0.0.1", &at]].concat();
        let replica = Server::start_at(|port, _| by_tls(port, &folder, "server", &follow));
        let sentinel = |_| {
            Server::start_at(|port, own| {
                let watch = format!(
                    "bind 127.0.0.1\nsentinel monitor main 127.0.0.1 {at} 2\n\
                     sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n"
                );
                let tls = written(&by_tls(port, &folder, "server", &by_tls_too));
                let file = own.join("sentinel.conf");
                std::fs::write(&file, watch + &tls).expect("a configuration");
                vec![file.display().to_string(), "--sentinel".into()]
            })
        };
        let fleet = Watched { sentinels: (0..3).map(sentinel).collect(), primary, replica };
        let follows = || fleet.say(&fleet.replica, &["INFO", "replication"]).contains("link_status:up");
        until("the replica follows", follows);
        until("the sentinels know each other and the replica", || {
            fleet.sentinels.iter().all(|sentinel| {
                let said = fleet.say(sentinel, &["SENTINEL", "MASTER", "main"]);
                let of = |name| said.lines().skip_while(|line| *line != name).nth(1);
                (of("num-slaves"), of("num-other-sentinels")) == (Some("1"), Some("2"))
            })
        });
        Some(fleet)
    }

    /// Empty where it does not answer.
    fn say(&self, server: &Server, words: &[&str]) -> String {
        ask(server, self.primary.folder(), words).unwrap_or_default()
    }

    fn url(&self, scheme: &str) -> String {
        let hosts: Vec<String> = self.sentinels.iter().map(|s| format!("127.0.0.1:{}", s.port())).collect();
        format!("{scheme}://{}/main", hosts.join(","))
    }

    /// Shows the client's certificate, and trusts the authority of this name.
    fn tls(&self, authority: &str) -> Tls {
        let (cert, key) = (file(&self.primary, "client.pem"), file(&self.primary, "client.key"));
        Tls::new().authorities(file(&self.primary, authority)).client(cert, key)
    }

    fn open(&self, scheme: &str, tls: Tls) -> Result<Cluster, OpenError> {
        let limit = SharedLimit::new("x", 100, SECOND, 100);
        let builder = Cluster::builder(&self.url(scheme), 2).limit(limit).keys(64).tls(tls);
        builder.timeout(10 * SECOND).log(|_| {}).open().inspect_err(|error| println!("{error}"))
    }
}

#[test]
fn a_failover_by_sentinels_that_speak_tls_is_followed_and_keeps_the_bound() {
    let Some(mut fleet) = Watched::start_or_skip("server") else {
        return;
    };
    let (url, limit) = (fleet.url("rediss+sentinel"), SharedLimit::new("x", 1_000, SECOND, 1_000));
    let with = |builder: Builder| builder.tls(fleet.tls("ours.pem"));
    let nodes: Vec<Cluster> = (0..2).map(|_| node(&url, 2, limit.clone(), with)).collect();
    let granted = || nodes.iter().map(|node| node.metrics().granted_units).sum::<u64>();
    let mut after = 0;
    let audit = play(&nodes, HOT, 8 * SECOND, || {
        std::thread::sleep(SECOND);
        until("the primary is asked", || granted() > 100);
        fleet.primary.kill();
        let promoted = || fleet.say(&fleet.replica, &["INFO", "replication"]).contains("role:master");
        until("the replica is promoted", promoted);
        until("the nodes are there", || nodes.iter().all(|node| node.metrics().up));
        let before = granted();
        until("it grants", || granted() > before + 100);
        std::thread::sleep(Duration::from_secs(2));
        after = granted() - before;
    });
    println!("{after} units by the new primary");
    assert!(after > 1_000, "it does not go on at the new primary");
    within(&audit.replay(1_000.0, 1_000.0));
    for node in &nodes {
        assert!(node.metrics().outages >= 1, "{:?}", node.metrics());
        until("it is there", || node.metrics().up);
    }
}

#[test]
fn sentinels_that_speak_tls_are_trusted_as_servers_are() {
    let Some(fleet) = Watched::start_or_skip("server") else { return };
    let node = fleet.open("rediss+sentinel", fleet.tls("ours.pem")).expect("a node");
    assert_eq!(node.acquire(node.limit("x").expect("it"), b"k", 1, 10 * SECOND), Verdict::Pass);
    let stranger = fleet.open("rediss+sentinel", fleet.tls("others.pem"));
    assert!(matches!(stranger, Err(OpenError::Certificate(_))), "{stranger:?}");
    let nobody = fleet.open("rediss+sentinel", Tls::new().authorities(file(&fleet.primary, "ours.pem")));
    assert!(matches!(nobody, Err(OpenError::Certificate(_))), "{nobody:?}");
    let plain = fleet.open("redis+sentinel", fleet.tls("ours.pem"));
    assert!(matches!(plain, Err(OpenError::Unreachable(_))), "{plain:?}");
}

/// The sentinels have the right name, and the primary that they name has another one.
#[test]
fn a_primary_of_another_name_is_refused_whoever_names_it() {
    let Some(fleet) = Watched::start_or_skip("elsewhere") else { return };
    let other = fleet.open("rediss+sentinel", fleet.tls("ours.pem"));
    assert!(matches!(other, Err(OpenError::Certificate(_))), "{other:?}");
}

//! Stores that speak TLS: who is trusted, who is asked for a certificate, and what is said where it is wrong.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::load::{play, within, Load, SECOND};
use common::{have_or_skip, program, until, Server};
use tatcell_cluster::{Cluster, OpenError, SharedLimit, Tls, Verdict};

/// Two authorities, a certificate of a server and one of a client by the first, and keys.
const CERTIFICATES: &str = "set -e
authority() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=$1 \
    -keyout $1.key -out $1.pem; }
certificate() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=$1 -keyout $1.key \
    -out $1.csr; printf \"$2\" > $1.ext; openssl x509 -req -in $1.csr -CA ours.pem -CAkey ours.key -CAcreateserial \
    -days 2 -extfile $1.ext -out $1.pem; }
authority ours; authority others
certificate server 'subjectAltName=IP:127.0.0.1'
certificate elsewhere 'subjectAltName=DNS:elsewhere.example'
certificate client 'extendedKeyUsage=clientAuth'";

fn certificates(folder: &Path) {
    let mut made = Command::new("sh");
    made.args(["-c", CERTIFICATES]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::piped());
    let made = made.output().expect("sh");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A server that speaks TLS alone, with this certificate; or a line that says why there is none.
fn server_or_skip(test: &str, certificate: &str, more: &[&str]) -> Option<Server> {
    if !have_or_skip(test, &program(), "redis-server") || !have_or_skip(test, "openssl", "openssl") {
        return None;
    }
    let tried = Command::new(program()).args(["--tls-port", "1", "--port", "0"]).output().expect("a program");
    let said = String::from_utf8_lossy(&[tried.stdout, tried.stderr].concat()).into_owned();
    if said.contains("Bad directive") || said.contains("Failed finding TLS support") {
        println!("SKIP {test}: {} was built without TLS; apt-get install redis-server", program());
        return None;
    }
    Some(Server::start_at(|port, folder| {
        certificates(folder);
        by_tls(port, folder, certificate, more)
    }))
}

/// Arguments of a server that speaks TLS alone, with a certificate that lies in this folder.
fn by_tls(port: u16, folder: &Path, certificate: &str, more: &[&str]) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let (cert, key) = (file(&format!("{certificate}.pem")), file(&format!("{certificate}.key")));
    let (port, authority) = (port.to_string(), file("ours.pem"));
    let usual = ["--port", "0", "--tls-port", &port, "--tls-cert-file", &cert, "--tls-key-file", &key];
    usual.iter().chain(&["--tls-ca-cert-file", &authority]).chain(more).map(|a| a.to_string()).collect()
}

fn file(server: &Server, name: &str) -> Vec<u8> {
    std::fs::read(server.folder().join(name)).expect("a file")
}

fn open(server: &Server, tls: Tls) -> Result<Cluster, OpenError> {
    let url = format!("rediss://127.0.0.1:{}/", server.port());
    let limit = SharedLimit::new("x", 100, SECOND, 100);
    let builder = Cluster::builder(&url, 2).limit(limit).keys(64).tls(tls).timeout(10 * SECOND).log(|_| {});
    builder.open().inspect_err(|error| println!("{error}"))
}

fn works(node: &Cluster) {
    let x = node.limit("x").expect("it");
    assert_eq!(node.acquire(x, b"k", 1, SECOND), Verdict::Pass);
}

#[test]
fn a_store_is_trusted_by_its_authority_and_by_no_other() {
    let no_client = ["--tls-auth-clients", "no"];
    let Some(server) = server_or_skip("a_store_is_trusted", "server", &no_client) else { return };
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
    let Some(server) = server_or_skip("a_certificate_of_another_name", "elsewhere", &no_client) else {
        return;
    };
    let other = open(&server, Tls::new().authorities(file(&server, "ours.pem")));
    assert!(matches!(other, Err(OpenError::Certificate(_))), "{other:?}");
}

#[test]
fn a_store_that_asks_for_a_certificate_is_shown_one() {
    let Some(server) = server_or_skip("a_store_that_asks_for_a_certificate", "server", &[]) else { return };
    let trusting = || Tls::new().authorities(file(&server, "ours.pem"));
    let none = open(&server, trusting());
    assert!(matches!(none, Err(OpenError::Certificate(_))), "{none:?}");
    let node = open(&server, trusting().client(file(&server, "client.pem"), file(&server, "client.key")));
    works(&node.expect("a node"));
}

/// Three primaries that speak TLS alone, to clients and to each other. The certificates are the first one's.
fn cluster_or_skip(test: &str) -> Option<Vec<Server>> {
    if !have_or_skip(test, "redis-cli", "redis-tools") {
        return None;
    }
    let more = ["--tls-cluster", "yes", "--tls-replication", "yes", "--cluster-enabled", "yes"];
    let first = server_or_skip(test, "server", &more)?;
    let of_first = first.folder().to_owned();
    let another = || Server::start_at(|port, _| by_tls(port, &of_first, "server", &more));
    let (second, third) = (another(), another());
    let servers = vec![first, second, third];
    let at: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    let mut words = vec!["--cluster", "create"];
    words.extend(at.iter().map(String::as_str));
    words.push("--cluster-yes");
    redis_cli(&servers, 0, &words);
    let serves = |i| redis_cli(&servers, i, &["CLUSTER", "INFO"]).contains("cluster_state:ok");
    until("all serve", || (0..servers.len()).all(serves));
    Some(servers)
}

/// What redis-cli prints, by TLS.
fn redis_cli(servers: &[Server], server: usize, words: &[&str]) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["--tls", "--cacert", "ours.pem", "--cert", "client.pem", "--key", "client.key"]);
    command.args(["-p", &servers[server].port().to_string()]).args(words);
    let done = command.current_dir(servers[0].folder()).stdin(Stdio::null()).output().expect("redis-cli");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&done.stderr));
    said
}

/// MOVED and ASK name servers that no connection was made to by the URL: they, too, are asked by TLS, and trusted by
/// the same authority alone.
#[test]
fn a_redis_cluster_is_asked_by_tls_and_its_hash_slots_move_under_load() {
    let Some(servers) = cluster_or_skip("a_redis_cluster_is_asked_by_tls") else { return };
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
    let keys = |i| redis_cli(&servers, i, &["DBSIZE"]).trim().parse::<u64>().expect("a number");
    let load = Load { keys: 300, zipf: false, largest_cost: 3, pause: Duration::from_micros(50) };
    let audit = play(&nodes, load, 4 * SECOND, || {
        std::thread::sleep(SECOND);
        let spread = [0, 1, 2].map(keys);
        assert!(spread.iter().all(|keys| *keys > 50), "{spread:?}");
        let id = |i| redis_cli(&servers, i, &["CLUSTER", "MYID"]).trim().to_owned();
        let (from, to, at) = (id(0), id(1), format!("127.0.0.1:{}", servers[0].port()));
        let words = ["--cluster", "reshard", &at, "--cluster-slots", "500", "--cluster-from", &from];
        redis_cli(&servers, 0, &[&words[..], &["--cluster-to", &to, "--cluster-yes"]].concat());
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

//! Stores that speak TLS: who is trusted, who is asked for a certificate, and what is said where it is wrong.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::load::SECOND;
use common::{have_or_skip, program, Server};
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
        let (cert, key) = (format!("{certificate}.pem"), format!("{certificate}.key"));
        let port = port.to_string();
        let usual = ["--port", "0", "--tls-port", &port, "--tls-cert-file", &cert, "--tls-key-file", &key];
        usual.iter().chain(&["--tls-ca-cert-file", "ours.pem"]).chain(more).map(|a| a.to_string()).collect()
    }))
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

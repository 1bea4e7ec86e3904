//! Servers that speak TLS alone, and the certificates for them.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{have_or_skip, program, skip, Server};

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

pub fn certificates(folder: &Path) {
    let mut made = Command::new("sh");
    made.args(["-c", CERTIFICATES]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::piped());
    let made = made.output().expect("sh");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A server that speaks TLS alone, with this certificate; or a line that says why there is none.
pub fn server_or_skip(certificate: &str, more: &[&str]) -> Option<Server> {
    speaks_tls_or_skip().then(|| {
        Server::start_at(|port, folder| {
            certificates(folder);
            by_tls(port, folder, certificate, more)
        })
    })
}

/// Whether servers here can speak TLS; where they cannot, says in one line that the test is skipped.
pub fn speaks_tls_or_skip() -> bool {
    if !have_or_skip(&program(), "redis-server") || !have_or_skip("openssl", "openssl") {
        return false;
    }
    let tried = Command::new(program()).args(["--tls-port", "1", "--port", "0"]).output().expect("a program");
    let said = String::from_utf8_lossy(&[tried.stdout, tried.stderr].concat()).into_owned();
    if said.contains("Bad directive") || said.contains("Failed finding TLS support") {
        skip(&format!("{} was built without TLS; apt-get install redis-server", program()));
        return false;
    }
    true
}

/// Arguments of a server that speaks TLS alone, with a certificate that lies in this folder.
pub fn by_tls(port: u16, folder: &Path, certificate: &str, more: &[&str]) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let (cert, key) = (file(&format!("{certificate}.pem")), file(&format!("{certificate}.key")));
    let (port, authority) = (port.to_string(), file("ours.pem"));
    let usual = ["--port", "0", "--tls-port", &port, "--tls-cert-file", &cert, "--tls-key-file", &key];
    usual.iter().chain(&["--tls-ca-cert-file", &authority]).chain(more).map(|a| a.to_string()).collect()
}

/// A certificate or key that lies in a server's folder.
pub fn file(server: &Server, name: &str) -> Vec<u8> {
    std::fs::read(server.folder().join(name)).expect("a file")
}

/// What redis-cli prints that asks a server by TLS, with the certificates of this folder.
pub fn redis_cli(server: &Server, certificates: &Path, words: &[&str]) -> String {
    ask(server, certificates, words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// The same of a server that may not answer: one that is promoted just now ends the connections that it has.
pub fn ask(server: &Server, certificates: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new("redis-cli");
    command.args(["--tls", "--cacert", "ours.pem", "--cert", "client.pem", "--key", "client.key"]);
    command.args(["-p", &server.port().to_string()]).args(words);
    let done = command.current_dir(certificates).stdin(Stdio::null()).output().expect("redis-cli");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    match done.status.success() {
        true => Ok(said),
        false => Err(said + &String::from_utf8_lossy(&done.stderr)),
    }
}

/// Arguments as the lines of a configuration.
pub fn written(arguments: &[String]) -> String {
    let pairs = arguments.chunks(2).map(|pair| format!("{}\n", pair.join(" ").trim_start_matches('-')));
    pairs.collect()
}

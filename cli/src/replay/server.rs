//! The server that is asked: by `CL.THROTTLE`, as redis-cell and tatcell-throttled have it, by Envoy's rate limit
//! service, or by HTTP.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use data_encoding::HEXLOWER;
use redis::{Client, ConnectionAddr, IntoConnectionInfo};
use ureq::http::uri::{Authority, Scheme, Uri};

use super::grpc::{self, Target};
use crate::emit::Numbers;
use crate::failure::Failure;
use crate::key::{KeySpec, Part};
use crate::limit::Chained;

/// What `--to` may be.
const FORMS: &str = "redis://HOST:PORT, grpc://HOST:PORT/DOMAIN or http://HOST:PORT/PATH";

/// Where a part of the key goes in a request of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Path,
    Header(String),
}

enum Kind {
    /// The client, the limit as the command has it, and what stands before each key.
    Throttle { client: Client, limit: Numbers, prefix: String },
    /// What each call has in common.
    Grpc(Target),
    /// The address with its port, the host and the path that were named, and where the parts of a key go.
    Http { address: SocketAddr, host: String, path: String, places: Vec<Place> },
}

/// A server, by its URL.
pub struct Server {
    kind: Kind,
    timeout: Duration,
}

/// A connection to it.
pub enum Connection {
    /// By Redis' protocol.
    Throttle(redis::Connection),
    /// By gRPC.
    Grpc(grpc::Connection),
    /// By HTTP.
    Http(ureq::Agent),
}

/// Why a request has no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// No request can be what the record says.
    Unsendable(String),
    /// The server gave none that counts.
    Failed(String),
}

impl From<String> for Unanswered {
    fn from(what: String) -> Unanswered {
        Unanswered::Failed(what)
    }
}

/// Finds the address of a host; only this machine's, unless others are allowed.
fn find(host: &str, port: u16, remote: bool) -> Result<SocketAddr, Failure> {
    let fail = |what: String| Failure::Input(format!("{host}: {what}"));
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut found = (bare, port).to_socket_addrs().map_err(|error| fail(error.to_string()))?;
    let first = found.next().ok_or_else(|| fail("it has no address".into()))?;
    if !remote && !first.ip().is_loopback() {
        return Err(Failure::Usage(format!(
            "{host} is not this machine: a replay charges a server's clients and loads it; give --remote if it may"
        )));
    }
    Ok(first)
}

/// Returns the port of a URL, or the usual one if it has none.
fn port(authority: &Authority, usual: u16) -> Result<u16, String> {
    let text = authority.as_str();
    let (_, place) = text.rsplit_once('@').unwrap_or(("", text));
    match place.strip_prefix(authority.host()).and_then(|port| port.strip_prefix(':')) {
        Some("") | None => Ok(usual),
        Some(port) => match port.parse() {
            Ok(port @ 1..) => Ok(port),
            _ => Err(format!("port {port:?}: use 1 to 65535")),
        },
    }
}

/// Where the parts of a key go.
fn places(key: &KeySpec) -> Result<Vec<Place>, String> {
    let place = |(field, part): (&String, &Part)| match (part, &**field) {
        (Part::Path { .. }, _) => Ok(Place::Path),
        (_, "address") => Ok(Place::Header("x-forwarded-for".into())),
        (Part::Pattern(_), _) => Err("a pattern is not a path that can be asked for: use --key path".into()),
        (_, "host") => Ok(Place::Header("host".into())),
        (_, field) => match field.strip_prefix("http_") {
            Some(header) => Ok(Place::Header(header.replace('_', "-"))),
            None => Err(format!("a request has no {field}: use address, path, host or http_NAME")),
        },
    };
    key.fields().iter().zip(key.parts()).map(place).collect()
}

/// A path as a request has it: what may not stand there is written as its number.
fn escaped(path: &[u8]) -> String {
    let mut text = String::new();
    for byte in path {
        match byte {
            b'!' | b'$'..=b';' | b'=' | b'@'..=b'Z' | b'_' | b'a'..=b'z' | b'~' => {
                text.push(char::from(*byte))
            }
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

impl Server {
    /// Reads the URL, and says what cannot be asked there.
    pub fn new(
        url: &str,
        limit: &Chained,
        key: &KeySpec,
        (cost, entries): (Option<&str>, &[String]),
        remote: bool,
        timeout: Duration,
    ) -> Result<Server, Failure> {
        let fail = |what: String| Failure::Usage(format!("--to {}: {what}", super::without_password(url)));
        if !entries.is_empty() && !url.starts_with("grpc:") {
            return Err(fail("--entry is for grpc://: leave it out".into()));
        }
        if url.starts_with("redis:") || url.starts_with("redis+unix:") || url.starts_with("unix:") {
            let [rung] = &limit.rungs[..] else {
                return Err(fail("CL.THROTTLE asks for one limit: give --limit without \"and\"".into()));
            };
            if !rung.asked.is_gcra() || rung.lengths.is_some() {
                return Err(fail(
                    "CL.THROTTLE has a rate and a burst, as in --limit \"10/s burst 20\"".into(),
                ));
            }
            let mut info = url.into_connection_info().map_err(|error| fail(error.to_string()))?;
            if let ConnectionAddr::Tcp(host, port) = info.addr().clone() {
                let address = find(&host, port, remote)?;
                info = info.set_addr(ConnectionAddr::Tcp(address.ip().to_string(), port));
            }
            let client = Client::open(info).map_err(|error| fail(error.to_string()))?;
            let limit = Numbers::of(&rung.asked).map_err(fail)?;
            let random = tatcell::host::random_seed()
                .map_err(|error| Failure::Input(format!("no random prefix: {error}")))?;
            let prefix = HEXLOWER.encode(&random[..4]);
            let prefix = format!("replay-{prefix}:");
            return Ok(Server { kind: Kind::Throttle { client, limit, prefix }, timeout });
        }
        let uri: Uri = url.parse().map_err(|error| fail(format!("{error}")))?;
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(fail(format!("use {FORMS}")));
        };
        if scheme.as_str() == "grpc" {
            let domain = uri.path().trim_start_matches('/').to_owned();
            if domain.is_empty() || uri.query().is_some() {
                return Err(fail("the rules have a domain: use grpc://HOST:PORT/DOMAIN".into()));
            }
            let entries = grpc::entries(entries, key).map_err(fail)?;
            let address = find(authority.host(), port(authority, 8081).map_err(fail)?, remote)?;
            let target = Target { address, host: authority.to_string(), domain, entries };
            return Ok(Server { kind: Kind::Grpc(target), timeout });
        }
        if *scheme != Scheme::HTTP {
            return Err(fail(format!("no TLS and no other protocol: use {FORMS}")));
        }
        if let Some(cost) = cost {
            return Err(fail(format!("a request of HTTP costs 1: leave --cost {cost} out")));
        }
        let address = find(authority.host(), port(authority, 80).map_err(fail)?, remote)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let places = places(key).map_err(fail)?;
        Ok(Server { kind: Kind::Http { address, host: authority.to_string(), path, places }, timeout })
    }

    /// Returns how wrong its clock may be: the others count finer than servers of HTTP, some of which look at it each
    /// few milliseconds.
    pub fn clock_error(&self) -> Duration {
        match self.kind {
            Kind::Throttle { .. } | Kind::Grpc(_) => Duration::from_millis(1),
            Kind::Http { .. } => Duration::from_millis(10),
        }
    }

    fn late(&self) -> String {
        format!("no answer within {:?}", self.timeout)
    }

    /// What went wrong at a server of `CL.THROTTLE`, on one line.
    fn failed(&self, error: &redis::RedisError) -> String {
        match error.is_timeout() {
            true => self.late(),
            false => error.to_string().replace('\n', ", "),
        }
    }

    /// Connects. For HTTP that is done by the first request.
    pub fn connect(&self) -> Result<Connection, String> {
        match &self.kind {
            Kind::Throttle { client, .. } => {
                let fail = |error| self.failed(&error);
                let connection = client.get_connection_with_timeout(self.timeout).map_err(fail)?;
                connection.set_read_timeout(Some(self.timeout)).map_err(fail)?;
                connection.set_write_timeout(Some(self.timeout)).map_err(fail)?;
                Ok(Connection::Throttle(connection))
            }
            Kind::Grpc(target) => target.connect(self.timeout).map(Connection::Grpc),
            Kind::Http { .. } => {
                let config = ureq::Agent::config_builder()
                    .http_status_as_error(false)
                    .max_redirects(0)
                    .max_redirects_will_error(false)
                    .proxy(None)
                    .timeout_global(Some(self.timeout))
                    .user_agent(concat!("tatcell/", env!("CARGO_PKG_VERSION")))
                    .build();
                Ok(Connection::Http(config.into()))
            }
        }
    }

    /// Asks for one request of a key. Returns whether it passed.
    pub fn ask(&self, connection: &mut Connection, texts: &[Vec<u8>], cost: u64) -> Result<bool, Unanswered> {
        match (&self.kind, connection) {
            (Kind::Throttle { limit, prefix, .. }, Connection::Throttle(connection)) => {
                let mut key = prefix.clone().into_bytes();
                // Each part has its length before it, because there may be spaces in a part.
                for text in texts {
                    key.extend(format!("{}:", text.len()).into_bytes());
                    key.extend(text);
                }
                let mut command = redis::cmd("CL.THROTTLE");
                command.arg(key).arg(limit.burst - 1).arg(limit.units).arg(limit.seconds).arg(cost);
                let answer: Vec<i64> = command.query(connection).map_err(|error| self.failed(&error))?;
                match answer[..] {
                    [0, ..] => Ok(true),
                    [1, ..] => Ok(false),
                    _ => Err(format!("it answered {answer:?} to CL.THROTTLE").into()),
                }
            }
            (Kind::Grpc(target), Connection::Grpc(connection)) => {
                let message = target.message(texts, cost).map_err(Unanswered::Unsendable)?;
                Ok(target.ask(connection, message, self.timeout)?)
            }
            (Kind::Http { address, host, path, places }, Connection::Http(agent)) => {
                let mut target = path.clone();
                if let Some(at) = places.iter().position(|place| *place == Place::Path) {
                    target = escaped(&texts[at]);
                }
                if !target.starts_with('/') {
                    return Err(Unanswered::Unsendable(format!("{target:?} is no path")));
                }
                let mut request = agent.get(format!("http://{address}{target}"));
                let named = places.iter().any(|place| *place == Place::Header("host".into()));
                if !named {
                    request = request.header("host", host);
                }
                for (place, text) in places.iter().zip(texts) {
                    if let Place::Header(name) = place {
                        // A network is sent as its first address.
                        let end = text.iter().position(|byte| *byte == b'/' && name == "x-forwarded-for");
                        request = request.header(name, &text[..end.unwrap_or(text.len())]);
                    }
                }
                let fail = |error| match error {
                    ureq::Error::Http(_) => Unanswered::Unsendable(error.to_string()),
                    ureq::Error::Timeout(_) => Unanswered::Failed(self.late()),
                    _ => Unanswered::Failed(error.to_string()),
                };
                let mut response = request.call().map_err(fail)?;
                // To its end: then the connection is used again. The reader has wrapped its errors.
                io::copy(&mut response.body_mut().as_reader(), &mut io::sink())
                    .map_err(|error| fail(error.into()))?;
                match response.status().as_u16() {
                    429 | 503 => Ok(false),
                    status if status < 500 => Ok(true),
                    status => Err(format!("it answered {status}").into()),
                }
            }
            _ => Err("a connection of another protocol".to_owned().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str, key: &str, limit: &str) -> Result<Server, Failure> {
        let limit = Chained::parse(limit).expect("a limit");
        let key = KeySpec::parse(key).expect("a key");
        Server::new(url, &limit, &key, (None, &[]), false, Duration::from_secs(1))
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_its_reason() {
        for (url, key, limit, want) in [
            ("ftp://127.0.0.1/", "address", "5/s", "use redis://"),
            ("grpc://127.0.0.1", "address", "5/s", "use grpc://HOST:PORT/DOMAIN"),
            ("grpc://192.0.2.1/edge", "address", "5/s", "192.0.2.1 is not this machine"),
            ("https://127.0.0.1/", "address", "5/s", "no TLS"),
            ("http://127.0.0.1:99999/", "address", "5/s", "port \"99999\": use 1 to 65535"),
            ("http://me@[::1]:x/", "address", "5/s", "port \"x\": use 1 to 65535"),
            ("grpc://127.0.0.1:80811/edge", "address", "5/s", "port \"80811\": use 1 to 65535"),
            ("127.0.0.1:6379", "address", "5/s", "or http://HOST:PORT/PATH"),
            ("redis://127.0.0.1", "address", "5/s and 9/s", "asks for one limit"),
            ("redis://127.0.0.1", "address", "fixed 5/s", "has a rate and a burst"),
            ("http://127.0.0.1/", "path=/a/*", "5/s", "a pattern is not a path"),
            ("http://127.0.0.1/", "user", "5/s", "a request has no user"),
            ("http://192.0.2.1/", "address", "5/s", "192.0.2.1 is not this machine"),
            ("redis://192.0.2.1", "address", "5/s", "192.0.2.1 is not this machine"),
        ] {
            let Err(Failure::Usage(message)) = server(url, key, limit) else { panic!("{url} is asked") };
            assert!(message.contains(want), "{url}: {message}");
        }
        for url in ["http://127.0.0.1:80/x?y", "http://[::1]:80/", "http://localhost"] {
            assert!(server(url, "address+path+http_x_key", "5/s and 9/min").is_ok(), "{url}");
        }
        assert!(server("redis://[::1]/", "address", "5/s burst 9").is_ok());
        let limit = Chained::parse("5/s").expect("a limit");
        let key = KeySpec::parse("address").expect("a key");
        let far = Server::new("http://192.0.2.1/", &limit, &key, (None, &[]), true, Duration::from_secs(1));
        assert!(far.is_ok(), "with --remote");
    }

    #[test]
    fn a_path_keeps_what_may_stand_there() {
        assert_eq!(escaped(b"/a-b_c/%20;x=1,2"), "/a-b_c/%20;x=1,2");
        assert_eq!(escaped("/a b/ü\"<>".as_bytes()), "/a%20b/%C3%BC%22%3C%3E");
    }
}

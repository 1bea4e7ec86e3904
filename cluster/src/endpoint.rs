//! Where the store is: its URL and logins, and how to find its servers and connect to them. That may wait for several
//! servers, so it is a task of its own, unless a node is being opened.
//!
//! ```text
//!   redis://[user:password@]host[:port][/database]                        a single server
//!   redis+unix:///path[?db=..&user=..&pass=..]                            the same through a socket file
//!   redis+sentinel://[user:password@]host[:port][,host..]/name[/database] the primary that sentinels name
//!   redis+cluster://[user:password@]host[:port][,host..]                  the primaries of a Redis Cluster
//!   rediss..                                                              with TLS
//! ```

use std::time::Duration;

use redis::{Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue, IntoConnectionInfo};
use redis::{RedisError, RedisResult, ServerErrorKind, Value};

use crate::error::OpenError;
use crate::link::Link;
use crate::map::{host_of, Map};
use crate::wire::Wire;

/// The kind of store at the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Single,
    /// The name of the primary.
    Sentinel(String),
    Cluster,
}

/// A user and a password; an empty user is the default one.
#[derive(Clone)]
pub(crate) struct Login {
    pub user: String,
    pub password: String,
}

/// The place of the store, and the logins for it.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub shape: Shape,
    /// The addresses that were given.
    pub given: Vec<ConnectionAddr>,
    /// The connection settings for servers that hold keys, and for sentinels.
    info: ConnectionInfo,
    sentinel: ConnectionInfo,
    pub timeout: Duration,
}

const SENTINEL_PORT: u16 = 26_379;
const SERVER_PORT: u16 = 6_379;

impl Endpoint {
    /// Parses a URL.
    pub(crate) fn read(url: &str, timeout: Duration) -> Result<Endpoint, OpenError> {
        let wrong = |why: &str| OpenError::Url(why.to_owned());
        let of = |url: &str| {
            let info = url.into_connection_info();
            info.map_err(|e| OpenError::Url(e.detail().map_or_else(|| e.to_string(), str::to_owned)))
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it does not begin with a scheme"))?;
        let (scheme, kind) = match scheme.split_once('+') {
            Some((scheme, kind @ ("sentinel" | "cluster"))) => (scheme, kind),
            _ => {
                let info = of(url)?;
                let endpoint = Endpoint::new(Shape::Single, vec![info.addr().clone()], info, timeout);
                return Ok(endpoint);
            }
        };
        let (login, rest) = rest.rsplit_once('@').map_or(("", rest), |(login, rest)| (login, rest));
        let login = if login.is_empty() { String::new() } else { format!("{login}@") };
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (shape, database, port) = if kind == "cluster" {
            if !path.is_empty() {
                return Err(wrong("a Redis Cluster has one database, so nothing may follow the addresses"));
            }
            (Shape::Cluster, "", SERVER_PORT)
        } else {
            let (name, database) = path.split_once('/').unwrap_or((path, ""));
            if name.is_empty() {
                return Err(wrong("the name of the primary is missing: redis+sentinel://host:port/name"));
            }
            (Shape::Sentinel(name.to_owned()), database, SENTINEL_PORT)
        };
        let mut given = Vec::new();
        let mut first = None;
        for host in hosts.split(',') {
            // The part after the bracket of an IPv6 address.
            let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
            let host = if has_port { host.to_owned() } else { format!("{host}:{port}") };
            let info = of(&format!("{scheme}://{login}{host}/{database}"))?;
            given.push(info.addr().clone());
            first.get_or_insert(info);
        }
        let info = first.ok_or_else(|| wrong("it has no address"))?;
        Ok(Endpoint::new(shape, given, info, timeout))
    }

    fn new(shape: Shape, given: Vec<ConnectionAddr>, info: ConnectionInfo, timeout: Duration) -> Endpoint {
        let sentinel = info.clone().set_redis_settings(Default::default());
        Endpoint { shape, given, info, sentinel, timeout }
    }

    /// Sets the login for the servers, or for the sentinels.
    pub(crate) fn log_in(&mut self, login: &Login, sentinels: bool) {
        let info = if sentinels { &mut self.sentinel } else { &mut self.info };
        let mut settings = info.redis_settings().clone().set_password(&login.password);
        if !login.user.is_empty() {
            settings = settings.set_username(&login.user);
        }
        *info = info.clone().set_redis_settings(settings);
    }

    #[cfg(feature = "tls")]
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.info.addr(), ConnectionAddr::TcpTls { .. })
    }

    /// Returns the address of a server of this store, with TLS if the store has it.
    pub(crate) fn address(&self, host: &str, port: u16) -> ConnectionAddr {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        match self.info.addr() {
            ConnectionAddr::TcpTls { insecure, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: None }
            }
            _ => ConnectionAddr::Tcp(host, port),
        }
    }

    /// Returns the address that a server redirects to. If it names no host, its own host is meant.
    pub(crate) fn named(&self, by: &ConnectionAddr, name: &str) -> Option<ConnectionAddr> {
        let (host, port) = name.rsplit_once(':')?;
        let host = if matches!(host, "" | "?") { host_of(by)? } else { host };
        Some(self.address(host, port.parse().ok()?))
    }

    /// Connects to a server that holds keys. A primary that sentinels name must say itself that it is one.
    pub(crate) async fn connect(&self, wire: &Wire, at: &ConnectionAddr) -> RedisResult<Link> {
        let mut link = Link::open(wire, at, self.info.redis_settings(), self.timeout).await?;
        link.query::<Value>(&redis::cmd("PING")).await?;
        if matches!(self.shape, Shape::Sentinel(_)) {
            let info: String = link.query(redis::cmd("INFO").arg("replication")).await?;
            // Nothing else will do, because an answer to another call says nothing of a role.
            if !info.lines().any(|line| line == "role:master") {
                let kind = ErrorKind::Server(ServerErrorKind::ReadOnly);
                return Err(RedisError::from((kind, "the primary that the sentinels name is a replica")));
            }
        }
        Ok(link)
    }

    /// Asks a server one question, over a connection of its own.
    async fn ask<T: FromRedisValue>(
        &self,
        wire: &Wire,
        at: &ConnectionAddr,
        login: &ConnectionInfo,
        question: &Cmd,
    ) -> RedisResult<T> {
        let mut link = Link::open(wire, at, login.redis_settings(), self.timeout).await?;
        link.query(question).await
    }

    /// Finds the servers that hold keys. It asks the `known` ones of before as well as those given.
    pub(crate) async fn find(&self, wire: &Wire, known: &[ConnectionAddr]) -> Result<Map, OpenError> {
        match &self.shape {
            Shape::Single => Ok(Map::of_one(self.given[0].clone())),
            Shape::Sentinel(name) => self.ask_sentinels(wire, name, known).await,
            Shape::Cluster => self.ask_cluster(wire, known).await,
        }
    }

    /// Returns the primary that most of the answering sentinels name.
    async fn ask_sentinels(
        &self,
        wire: &Wire,
        name: &str,
        known: &[ConnectionAddr],
    ) -> Result<Map, OpenError> {
        let ask = redis::cmd("SENTINEL").arg("get-master-addr-by-name").arg(name).to_owned();
        let (mut votes, mut unknown, mut trouble) = (Vec::<(ConnectionAddr, u32)>::new(), false, None);
        for at in &self.given {
            match self.ask::<Option<(String, u16)>>(wire, at, &self.sentinel, &ask).await {
                Ok(Some((host, port))) => {
                    let named = self.address(&host, port);
                    match votes.iter_mut().find(|(at, _)| *at == named) {
                        Some((_, votes)) => *votes += 1,
                        None => votes.push((named, 1)),
                    }
                }
                Ok(None) => unknown = true,
                Err(error) => trouble = Some(OpenError::at(at, error)),
            }
        }
        // Of equals, the one in use: no half of the sentinels moves a node. If none is in use, the first.
        let most = votes.into_iter().rev().max_by_key(|(at, votes)| (*votes, known.contains(at)));
        match (most, trouble) {
            (Some((at, _)), _) => Ok(Map::of_one(at)),
            (None, _) if unknown => Err(OpenError::UnknownPrimary(name.to_owned())),
            (None, Some(OpenError::Store(why))) => Err(OpenError::NotSentinels(why)),
            (None, trouble) => Err(trouble.unwrap_or(OpenError::UnknownPrimary(name.to_owned()))),
        }
    }

    async fn ask_cluster(&self, wire: &Wire, known: &[ConnectionAddr]) -> Result<Map, OpenError> {
        let ask = redis::cmd("CLUSTER").arg("SLOTS").to_owned();
        let mut trouble = None;
        let given = self.given.iter().filter(|at| !known.contains(at));
        for at in known.iter().chain(given) {
            match self.ask::<Value>(wire, at, &self.info, &ask).await {
                Ok(answer) => match Map::of_slots(&answer, at, |host, port| self.address(host, port)) {
                    Some(map) => return Ok(map),
                    None => trouble = Some(OpenError::NotACluster("no hash slot is served".into())),
                },
                Err(error)
                    if error.detail().is_some_and(|said| said.contains("cluster support disabled")) =>
                {
                    trouble = Some(OpenError::NotACluster(error.to_string()));
                }
                Err(error) => trouble = Some(OpenError::at(at, error)),
            }
        }
        Err(trouble.unwrap_or(OpenError::Url("it has no address".into())))
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn read(url: &str) -> Endpoint {
        Endpoint::read(url, SECOND).unwrap_or_else(|e| panic!("{url}: {e}"))
    }

    fn tcp(host: &str, port: u16) -> ConnectionAddr {
        ConnectionAddr::Tcp(host.to_owned(), port)
    }

    #[test]
    fn urls_of_every_shape_are_read() {
        let single = read("redis://u:p%40s@h:1/3");
        assert_eq!((single.shape, &single.given[..]), (Shape::Single, &[tcp("h", 1)][..]));
        let settings = single.info.redis_settings().clone();
        assert_eq!((settings.username(), settings.password(), settings.db()), (Some("u"), Some("p@s"), 3));
        assert!(matches!(&read("redis+unix:///tmp/s").given[0], ConnectionAddr::Unix(p) if p.ends_with("s")));

        let sentinel = read("redis+sentinel://:p@a,b:7,[::1]/main/2");
        assert_eq!(sentinel.shape, Shape::Sentinel("main".into()));
        assert_eq!(sentinel.given, [tcp("a", 26_379), tcp("b", 7), tcp("::1", 26_379)]);
        assert_eq!(sentinel.info.redis_settings().db(), 2);
        assert_eq!(sentinel.info.redis_settings().password(), Some("p"));
        assert_eq!(
            sentinel.sentinel.redis_settings().password(),
            None,
            "sentinels have passwords of their own"
        );

        let cluster = read("redis+cluster://u:p@a:1,b");
        assert_eq!(
            (cluster.shape.clone(), &cluster.given[..]),
            (Shape::Cluster, &[tcp("a", 1), tcp("b", 6_379)][..])
        );
        assert_eq!(cluster.named(&tcp("a", 1), "c:9"), Some(tcp("c", 9)));
        assert_eq!(cluster.named(&tcp("a", 1), ":9"), Some(tcp("a", 9)));
        assert_eq!(cluster.named(&tcp("a", 1), "2001:db8::1:9"), Some(tcp("2001:db8::1", 9)));
        assert_eq!(cluster.named(&tcp("a", 1), "c"), None);
    }

    #[test]
    fn urls_that_cannot_be_read_are_errors() {
        for url in [
            "nonsense",
            "http://h/",
            "redis+other://h/",
            "redis+sentinel://h/",
            "redis+sentinel://h",
            "redis+sentinel:///name",
            "redis+sentinel://h:port/name",
            "redis+sentinel://h/name/database",
            "redis+cluster://h/1",
            "redis+cluster://",
        ] {
            let error = Endpoint::read(url, SECOND).map(|p| p.given).expect_err(url);
            assert!(matches!(error, OpenError::Url(_)), "{url}: {error}");
        }
    }

    #[test]
    fn a_login_that_is_given_apart_counts() {
        let mut endpoint = read("redis+sentinel://a/main");
        endpoint.log_in(&Login { user: "u".into(), password: "p".into() }, false);
        endpoint.log_in(&Login { user: String::new(), password: "s".into() }, true);
        let (servers, sentinels) = (endpoint.info.redis_settings(), endpoint.sentinel.redis_settings());
        assert_eq!((servers.username(), servers.password()), (Some("u"), Some("p")));
        assert_eq!((sentinels.username(), sentinels.password()), (None, Some("s")));
    }
}

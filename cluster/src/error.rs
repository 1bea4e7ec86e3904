//! Why a node cannot be opened, and what to do about it.

use std::fmt;

use redis::{ConnectionAddr, RedisError};
use tatcell::host::HostError;
use tatcell::TableError;

use crate::script::Fault;
use crate::split::LimitError;

/// Says why a node cannot be opened, and what to do about it.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL of the store cannot be parsed.
    Url(String),
    /// No limit was given, or two have the same name.
    Limits,
    /// A limit cannot be shared.
    Limit {
        /// Its name.
        name: String,
        /// What is wrong with it.
        error: LimitError,
    },
    /// The prefix is empty or longer than 64 bytes, or a duration is 0 or longer than an hour.
    Options,
    /// The system has no clock or no random bytes.
    Host(HostError),
    /// The table of a reserve cannot be made.
    Reserve(TableError),
    /// Nothing answers at the address, or not in time.
    Unreachable(String),
    /// The password is wrong, or the user lacks a right.
    Refused(String),
    /// A certificate is not trusted or cannot be read.
    Certificate(String),
    /// The store is too old.
    TooOld(String),
    /// The URL names a single server, and the store is a node of a Redis Cluster.
    ClusterMode,
    /// The URL names a Redis Cluster, and the store is none; or none of its hash slots is served.
    NotACluster(String),
    /// The URL names sentinels, and a server that is none answers.
    NotSentinels(String),
    /// The sentinels know no primary of this name.
    UnknownPrimary(String),
    /// The URL names a single server, and it is a sentinel.
    Sentinel,
    /// The store is a replica.
    Replica,
    /// The prefix is in use with other parameters.
    OtherParameters {
        /// The name of the limit.
        name: String,
        /// What this node was given.
        ours: String,
        /// What the others were given.
        theirs: String,
    },
    /// Nodes of another version of tatcell use the prefix; the text names the formats of both.
    OtherFormat(String),
    /// The store gives an unexpected answer.
    Store(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Url(why) => write!(
                f,
                "the URL of the store is not valid: {why}; use redis://[user:password@]host:port/, redis+unix:///path, \
                 redis+sentinel://host:port,host:port/name or redis+cluster://host:port,host:port; rediss for TLS"
            ),
            OpenError::Limits => f.write_str("no limit was given, or two have one name: give each its own"),
            OpenError::Limit { name, error } => write!(f, "limit {name:?}: {error}"),
            OpenError::Options => f.write_str(
                "an option is out of range: the prefix takes 1 to 64 bytes, a time 1 ms to 1 h, keys 1 or more",
            ),
            OpenError::Host(error) => write!(f, "the system has no clock, random bytes or thread: {error}"),
            OpenError::Reserve(error) => write!(f, "no table for the reserve: {error}; ask for fewer keys"),
            OpenError::Unreachable(why) => {
                write!(f, "the store does not answer: {why}; is it running, and is the address right?")
            }
            OpenError::Refused(why) => write!(
                f,
                "the store refuses this user: {why}; check user and password, and allow +eval +evalsha +get +set +del \
                 +time +info +ping on the keys of the prefix, and +cluster|slots +asking in a Redis Cluster"
            ),
            OpenError::Certificate(why) => write!(
                f,
                "a certificate is refused: {why}; give the authority that signed the store's (or name its file in \
                 SSL_CERT_FILE), and this node's certificate if the store asks for one; the store's must contain \
                 the name or address that the node connects to"
            ),
            OpenError::TooOld(version) => write!(f, "the store has version {version}; Redis 6.2 or Valkey is needed"),
            OpenError::ClusterMode => f.write_str(
                "the server belongs to a Redis Cluster; use the URL redis+cluster://host:port,host:port",
            ),
            OpenError::NotACluster(why) => write!(
                f,
                "the server is no Redis Cluster that works: {why}; use redis://host:port/ for a single server, or \
                 create the cluster first"
            ),
            OpenError::NotSentinels(why) => write!(
                f,
                "the server is no sentinel: {why}; name the sentinels (their usual port is 26379), or the server \
                 itself as redis://host:port/"
            ),
            OpenError::UnknownPrimary(name) => write!(
                f,
                "the sentinels know no primary {name:?}; use the name in `sentinel monitor` of their configuration"
            ),
            OpenError::Sentinel => f.write_str(
                "the server is a sentinel; use the URL redis+sentinel://host:port,host:port/name of its primary",
            ),
            OpenError::Replica => f.write_str("the server is a replica; use the URL of its primary"),
            OpenError::OtherParameters { name, ours, theirs } => write!(
                f,
                "other nodes use limit {name:?} under this prefix with other parameters ({theirs}; here {ours}); \
                 take theirs, another prefix or another name, or stop the other nodes for a minute"
            ),
            OpenError::OtherFormat(why) => write!(
                f,
                "nodes of another version of tatcell use this prefix: {why}; stop them for a minute, or take another \
                 prefix"
            ),
            OpenError::Store(why) => write!(f, "the store gave an unexpected answer: {why}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl OpenError {
    /// Returns the error for a server's answer, or for its silence.
    pub(crate) fn at(at: &ConnectionAddr, error: RedisError) -> OpenError {
        OpenError::of(Fault::of(&error), format!("{at}: {error}"))
    }

    /// Returns the error for an answer that belongs to another call.
    pub(crate) fn out_of_step(at: &ConnectionAddr) -> OpenError {
        OpenError::Store(format!(
            "{at}: the answer belongs to another call; does a proxy send answers twice?"
        ))
    }

    pub(crate) fn of(fault: Fault, said: String) -> OpenError {
        match fault {
            // rustls reports this if it does not trust the other end, or the other end does not trust it.
            Fault::Lost if said.contains("ertificate") => OpenError::Certificate(said),
            Fault::Lost => OpenError::Unreachable(said),
            Fault::Refused => OpenError::Refused(said),
            Fault::ReadOnly => OpenError::Replica,
            Fault::Elsewhere => OpenError::ClusterMode,
            Fault::OtherFormat => OpenError::OtherFormat(said),
            _ => OpenError::Store(said),
        }
    }
}

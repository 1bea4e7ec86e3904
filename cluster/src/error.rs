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
    /// The store gives an unexpected answer.
    Store(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Url(why) => write!(
                f,
                "not the URL of a store: {why}; redis://[user:password@]host:port/, redis+unix:///path, \
                 redis+sentinel://host:port,host:port/name or redis+cluster://host:port,host:port, and rediss with TLS"
            ),
            OpenError::Limits => f.write_str("give at least one limit, and each a name of its own"),
            OpenError::Limit { name, error } => write!(f, "limit {name:?}: {error}"),
            OpenError::Options => f.write_str(
                "the prefix must have 1 to 64 bytes, times must be above 0 and at most an hour, keys at least 1",
            ),
            OpenError::Host(error) => write!(f, "the system gives no clock or no random bytes: {error:?}"),
            OpenError::Reserve(error) => write!(f, "no table for the reserve: {error:?}; ask for fewer keys"),
            OpenError::Unreachable(why) => {
                write!(f, "the store does not answer: {why}; is it running, and is the address right?")
            }
            OpenError::Refused(why) => write!(
                f,
                "the store refuses this user: {why}; check user and password, and allow +eval +evalsha +get +set +del \
                 +time +info +ping on the keys of the prefix, of a Redis Cluster +cluster|slots and +asking \
                 too"
            ),
            OpenError::Certificate(why) => write!(
                f,
                "a certificate is refused: {why}; give the authority that signed the store's (or name its file in \
                 SSL_CERT_FILE), and a certificate of this node's where the store asks for one; the store's must \
                 carry the name or address that is connected to"
            ),
            OpenError::TooOld(version) => write!(f, "the store is version {version}; Redis 6.2 or Valkey is needed"),
            OpenError::ClusterMode => f.write_str(
                "the store is a node of a Redis Cluster; name it as one: redis+cluster://host:port,host:port",
            ),
            OpenError::NotACluster(why) => write!(
                f,
                "the store is no Redis Cluster that serves: {why}; name a single server as redis://host:port/, or \
                 create the cluster first"
            ),
            OpenError::NotSentinels(why) => write!(
                f,
                "what answers is no sentinel: {why}; name the sentinels (their port is mostly 26379), or the server \
                 itself as redis://host:port/"
            ),
            OpenError::UnknownPrimary(name) => write!(
                f,
                "the sentinels know no primary {name:?}; the name is that of `sentinel monitor` in their configuration"
            ),
            OpenError::Sentinel => f.write_str(
                "the store is a sentinel; name it as one, and the primary: redis+sentinel://host:port,host:port/name",
            ),
            OpenError::Replica => f.write_str("the store is a replica; name its primary"),
            OpenError::OtherParameters { name, ours, theirs } => write!(
                f,
                "limit {name:?} is in use under this prefix with other parameters ({theirs}; here {ours}); take \
                 another prefix or name, or stop the other nodes for a minute"
            ),
            OpenError::Store(why) => write!(f, "the store answers what it should not: {why}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl OpenError {
    /// Returns the error for a server's answer, or for its silence.
    pub(crate) fn at(at: &ConnectionAddr, error: RedisError) -> OpenError {
        OpenError::of(Fault::of(&error), format!("{at}: {error}"))
    }

    pub(crate) fn of(fault: Fault, said: String) -> OpenError {
        match fault {
            // rustls reports this if it does not trust the other end, or the other end does not trust it.
            Fault::Lost if said.contains("ertificate") => OpenError::Certificate(said),
            Fault::Lost => OpenError::Unreachable(said),
            Fault::Refused => OpenError::Refused(said),
            Fault::ReadOnly => OpenError::Replica,
            Fault::Elsewhere => OpenError::ClusterMode,
            _ => OpenError::Store(said),
        }
    }
}

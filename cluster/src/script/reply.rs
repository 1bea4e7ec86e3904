//! What comes back from the store: a grant, or why there is none. A fault is never a pass.

use redis::{ErrorKind, FromRedisValue, ParsingError, RedisError, ServerErrorKind, Value};

/// The reply of [`GRANT`](super::GRANT). All times are relative to the moment at which the script ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Units granted; 0 = fewer than asked for at least are there.
    pub units: u64,
    /// Where the piece starts: microseconds ahead of then, rounded down.
    pub lead_us: u64,
    /// Microseconds until the fewest units asked for exist; 0 where something was granted.
    pub retry_us: u64,
    /// The key's value after the grant, for [`give_back`](super::give_back); empty where nothing was granted.
    pub stamp: String,
}

/// What a limit is by its mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Higher by one with each change.
    pub version: u64,
    /// Microseconds until `next` is in force; 0 where it is.
    pub ahead_us: u64,
    /// What the limit is, or will be.
    pub next: String,
    /// What it was until then.
    pub before: String,
}

impl FromRedisValue for Grant {
    fn from_redis_value(value: Value) -> Result<Grant, ParsingError> {
        let (units, lead_us, retry_us, stamp) = redis::from_redis_value(value)?;
        Ok(Grant { units, lead_us, retry_us, stamp })
    }
}

impl FromRedisValue for Mark {
    fn from_redis_value(value: Value) -> Result<Mark, ParsingError> {
        let (version, ahead_us, next, before) = redis::from_redis_value(value)?;
        Ok(Mark { version, ahead_us, next, before })
    }
}

/// Why a call to the store had no answer that decides. What to do about it follows from the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The store does not have the script: the call did not run; send it with the text.
    NoScript,
    /// READONLY: a replica. Reconnect; whoever is primary is found there.
    ReadOnly,
    /// LOADING, MASTERDOWN, CLUSTERDOWN, TRYAGAIN, BUSY: for a while. The connection stays.
    NotNow,
    /// OOM: the store is full and evicts nothing.
    OutOfMemory,
    /// MOVED or ASK: the key is another node's, this store being part of a Redis Cluster.
    Elsewhere,
    /// NOAUTH, WRONGPASS, NOPERM: the password or the rights of the user changed.
    Refused,
    /// The key holds something that no node wrote.
    ForeignValue,
    /// No reply in time, or the connection broke: the call may have run. The connection must be closed, so that a late
    /// reply meets no later call.
    Lost,
    /// Any other error, or a reply of another shape.
    Other,
}

impl Fault {
    /// Tells the kind of an error.
    pub fn of(error: &RedisError) -> Fault {
        if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() {
            return Fault::Lost;
        }
        match error.kind() {
            ErrorKind::Server(kind) => match kind {
                ServerErrorKind::NoScript => Fault::NoScript,
                ServerErrorKind::ReadOnly => Fault::ReadOnly,
                ServerErrorKind::BusyLoading
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::TryAgain => Fault::NotNow,
                ServerErrorKind::Moved | ServerErrorKind::Ask => Fault::Elsewhere,
                ServerErrorKind::NoPerm => Fault::Refused,
                // What a script may not do is said in words only; the second ones are Redis 7.2's and Valkey's.
                _ if error.detail().is_some_and(|said| {
                    said.contains("user executing the script can't") || said.contains("ACL failure in script")
                }) =>
                {
                    Fault::Refused
                }
                _ => Fault::by_code(error.code()),
            },
            ErrorKind::AuthenticationFailed => Fault::Refused,
            _ => Fault::by_code(error.code()),
        }
    }

    fn by_code(code: Option<&str>) -> Fault {
        match code {
            Some("OOM") => Fault::OutOfMemory,
            Some("BUSY") => Fault::NotNow,
            Some("NOAUTH" | "WRONGPASS" | "NOPERM") => Fault::Refused,
            Some("TATCELL" | "WRONGTYPE") => Fault::ForeignValue,
            _ => Fault::Other,
        }
    }

    /// Whether the connection is of no more use.
    pub fn breaks_connection(self) -> bool {
        matches!(self, Fault::Lost | Fault::ReadOnly | Fault::Refused | Fault::Elsewhere)
    }
}

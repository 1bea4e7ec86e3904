//! The replies of the store: a grant, or why there is none. A fault is never a pass.

use redis::{ErrorKind, FromRedisValue, ParsingError, RedisError, ServerErrorKind, Value};

/// Holds the reply of [`GRANT`](super::GRANT). All times are relative to the moment at which the script ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The units granted; 0 if fewer exist than the ask's minimum.
    pub units: u64,
    /// Where the piece starts: microseconds after that moment, rounded down.
    pub lead_us: u64,
    /// Microseconds until the ask's minimum exists; 0 if something was granted.
    pub retry_us: u64,
    /// The key's value after the grant, for [`give_back`](super::give_back); empty if nothing was granted.
    pub stamp: String,
}

/// Holds the parameters of a limit, as its mark has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Higher by one with each change.
    pub version: u64,
    /// Microseconds until `next` is in force; 0 if it is.
    pub ahead_us: u64,
    /// The present limit, or the coming one.
    pub next: String,
    /// The limit until then.
    pub before: String,
}

/// Takes the reply of the call with this id, or `None` if the reply is that of another call, or has another shape.
pub(crate) fn of_call<T: FromRedisValue>(reply: Value, id: &[u8]) -> Option<T> {
    let Value::Array(mut fields) = reply else { return None };
    let of = fields.pop()?;
    if !matches!(&of, Value::BulkString(of) if of == id) {
        return None;
    }
    let rest = if fields.len() == 1 { fields.pop()? } else { Value::Array(fields) };
    redis::from_redis_value(rest).ok()
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

/// Says why a call to the store has no answer that decides. The kind determines what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The store does not have the script. The call did not run; send it with the text.
    NoScript,
    /// READONLY: the server is a replica. Connect anew, to whichever server is primary then.
    ReadOnly,
    /// LOADING, MASTERDOWN, CLUSTERDOWN, TRYAGAIN, BUSY: temporary. The connection stays.
    NotNow,
    /// OOM: the store is full and evicts nothing.
    OutOfMemory,
    /// MOVED or ASK: this store is part of a Redis Cluster, and another server has the key.
    Elsewhere,
    /// NOAUTH, WRONGPASS, NOPERM: the password or the user's rights have changed.
    Refused,
    /// The key holds a value that no node wrote.
    ForeignValue,
    /// Nodes of another version of tatcell wrote the mark of the limit.
    OtherFormat,
    /// No reply in time, a reply of another shape, or the connection broke: the call may have run. Close the
    /// connection, so that a late reply cannot be taken for that of a later call.
    Lost,
    /// Any other error.
    Other,
}

impl Fault {
    /// Returns the kind of an error.
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
                // A script's missing right is reported only in words; the second form is that of Redis 7.2 and Valkey.
                _ if error.detail().is_some_and(|said| {
                    said.contains("user executing the script can't") || said.contains("ACL failure in script")
                }) =>
                {
                    Fault::Refused
                }
                _ => Fault::by_code(error.code()),
            },
            ErrorKind::AuthenticationFailed => Fault::Refused,
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Fault::Lost,
            _ => Fault::by_code(error.code()),
        }
    }

    fn by_code(code: Option<&str>) -> Fault {
        match code {
            Some("OOM") => Fault::OutOfMemory,
            Some("BUSY") => Fault::NotNow,
            Some("NOAUTH" | "WRONGPASS" | "NOPERM") => Fault::Refused,
            Some("TATCELLFORMAT") => Fault::OtherFormat,
            Some("TATCELL" | "WRONGTYPE") => Fault::ForeignValue,
            _ => Fault::Other,
        }
    }

    /// Returns whether the connection is unusable.
    pub fn breaks_connection(self) -> bool {
        matches!(self, Fault::Lost | Fault::ReadOnly | Fault::Refused | Fault::Elsewhere)
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use super::*;

    fn text(s: &str) -> Value {
        Value::BulkString(s.into())
    }

    #[test]
    fn a_reply_counts_only_for_the_call_with_its_id() {
        let code = |of: &str| Value::Array(vec![Value::Int(2), text(of)]);
        assert_eq!(of_call::<i64>(code("17"), b"17"), Some(2));
        assert_eq!(of_call::<i64>(code("16"), b"17"), None, "another call's");
        assert_eq!(of_call::<i64>(code("17 "), b"17"), None);
        let grant = |fields: Vec<Value>| of_call::<Grant>(Value::Array(fields), b"17");
        let all = || vec![Value::Int(5), Value::Int(7), Value::Int(0), text("1:2:3:4:5"), text("17")];
        let expected = Grant { units: 5, lead_us: 7, retry_us: 0, stamp: "1:2:3:4:5".into() };
        assert_eq!(grant(all()), Some(expected));
        for wrong in 0..4 {
            let mut fields = all();
            fields.remove(wrong);
            assert_eq!(grant(fields), None, "without field {wrong}");
        }
    }

    #[test]
    fn a_reply_of_another_shape_counts_for_no_call() {
        let mark = Value::Array(vec![Value::Int(1), Value::Int(0), text("n"), text("b"), text("17")]);
        assert!(of_call::<Mark>(mark.clone(), b"17").is_some());
        assert_eq!(of_call::<Grant>(mark.clone(), b"17"), None);
        assert_eq!(of_call::<i64>(mark, b"17"), None);
        let others = [
            Value::Nil,
            Value::Okay,
            Value::Int(17),
            text("17"),
            Value::SimpleString("PONG".into()),
            Value::Array(vec![]),
            Value::Array(vec![text("17")]),
            Value::Array(vec![text("x"), text("17")]),
            Value::Array(vec![Value::Int(1), Value::Int(17)]),
        ];
        for other in others {
            assert_eq!(of_call::<i64>(other.clone(), b"17"), None, "{other:?}");
        }
    }
}

//! Which server has a key. Pure.
//!
//! A single server, or the primary that sentinels name, has all keys. In a Redis Cluster a key belongs to one of 16 384
//! hash slots: CRC16 of its name, or of the part between the first `{` and the `}` after it, if that is not empty. Each
//! hash slot belongs to one primary.

use redis::{ConnectionAddr, Value};

pub(crate) const HASH_SLOTS: u16 = 16_384;

/// The servers, and the owner of each hash slot.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub servers: Vec<ConnectionAddr>,
    /// By hash slot. If empty, the first server owns all of them.
    owners: Vec<u16>,
}

/// The owner of a hash slot that nobody serves.
const NOBODY: u16 = u16::MAX;

impl Map {
    /// Makes a map of one server that has all keys.
    pub(crate) fn of_one(server: ConnectionAddr) -> Map {
        Map { servers: vec![server], owners: Vec::new() }
    }

    /// Returns the server of a key, as its place in the list.
    pub(crate) fn server_of(&self, key: &[u8]) -> Option<usize> {
        if self.owners.is_empty() {
            return Some(0);
        }
        let owner = self.owners[usize::from(hash_slot(key))];
        (owner != NOBODY).then_some(usize::from(owner))
    }

    /// Returns the place of a server in the list; adds the server if it is not there.
    pub(crate) fn place_of(&mut self, server: ConnectionAddr) -> usize {
        let known = self.servers.iter().position(|at| *at == server);
        known.unwrap_or_else(|| {
            self.servers.push(server);
            self.servers.len() - 1
        })
    }

    /// Records that another server owns a hash slot from now on.
    pub(crate) fn moved(&mut self, slot: u16, server: usize) {
        if let (Some(owner), Ok(server)) = (self.owners.get_mut(usize::from(slot)), u16::try_from(server)) {
            *owner = server;
        }
    }

    /// Parses the answer of the server `asked` to CLUSTER SLOTS: a list of first slot, last slot, primary, replicas. A
    /// server is host, port, and more. An unknown host means the server that was asked.
    pub(crate) fn of_slots(
        answer: &Value,
        asked: &ConnectionAddr,
        address: impl Fn(&str, u16) -> ConnectionAddr,
    ) -> Option<Map> {
        let Value::Array(ranges) = answer else { return None };
        let mut map = Map { servers: Vec::new(), owners: vec![NOBODY; usize::from(HASH_SLOTS)] };
        for range in ranges {
            let Value::Array(range) = range else { return None };
            let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = &range[..] else {
                return None;
            };
            let [host, Value::Int(port), ..] = &primary[..] else { return None };
            let host = match host {
                Value::BulkString(host) => std::str::from_utf8(host).ok()?,
                _ => "",
            };
            let host = if matches!(host, "" | "?") { host_of(asked)? } else { host };
            let server = u16::try_from(map.place_of(address(host, u16::try_from(*port).ok()?))).ok()?;
            let slots = usize::try_from(*first).ok()?..=usize::try_from(*last).ok()?;
            map.owners.get_mut(slots)?.fill(server);
        }
        (!map.servers.is_empty()).then_some(map)
    }
}

/// Returns the host of an address.
pub(crate) fn host_of(address: &ConnectionAddr) -> Option<&str> {
    match address {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => Some(host),
        _ => None,
    }
}

/// Returns the hash slot of a key.
pub(crate) fn hash_slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|b| *b == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|b| *b == b'}')?;
        (close > 0).then_some(&rest[..close])
    });
    crc16(tag.unwrap_or(key)) % HASH_SLOTS
}

/// CRC-16/XMODEM: polynomial 0x1021, from 0.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| (crc << 1) ^ (0x1021 * (crc >> 15)))
    })
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use super::*;

    fn address(host: &str, port: u16) -> ConnectionAddr {
        ConnectionAddr::Tcp(host.to_owned(), port)
    }

    #[test]
    fn hash_slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(hash_slot(b"123456789"), 0x31c3 % HASH_SLOTS);
        assert_eq!(hash_slot(b"{user1000}.following"), hash_slot(b"user1000"));
        assert_eq!(hash_slot(b"foo{}{bar}"), crc16(b"foo{}{bar}") % HASH_SLOTS);
        assert_eq!(hash_slot(b"foo{{bar}}zap"), hash_slot(b"{bar"));
        assert_eq!(hash_slot(b"foo{bar}{zap}"), hash_slot(b"bar"));
        assert_eq!(hash_slot(b"foo{bar"), crc16(b"foo{bar") % HASH_SLOTS);
    }

    fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
        let server = Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())]);
        Value::Array(vec![Value::Int(first), Value::Int(last), server.clone(), server])
    }

    #[test]
    fn a_map_has_an_owner_for_what_is_served_and_follows_what_moved() {
        let host = |name: &str| Value::BulkString(name.as_bytes().to_vec());
        let slot = i64::from(hash_slot(b"k"));
        let answer = Value::Array(vec![
            range(0, slot - 1, host("a"), 1),
            range(slot, slot, Value::Nil, 2),
            range(slot + 1, 16_000, host("a"), 1),
        ]);
        let mut map = Map::of_slots(&answer, &address("asked", 9), address).expect("a map");
        assert_eq!(map.servers, [address("a", 1), address("asked", 2)]);
        assert_eq!(map.server_of(b"k"), Some(1));
        let unserved = (0u32..).map(|i| i.to_string()).find(|k| hash_slot(k.as_bytes()) > 16_000);
        assert_eq!(map.server_of(unserved.expect("one").as_bytes()), None);
        let new = map.place_of(address("c", 3));
        map.moved(hash_slot(b"k"), new);
        assert_eq!((new, map.place_of(address("c", 3)), map.server_of(b"k")), (2, 2, Some(2)));
        map.moved(u16::MAX, 0);
        assert_eq!(Map::of_one(address("a", 1)).server_of(b"k"), Some(0));
    }

    #[test]
    fn an_answer_of_another_shape_is_no_map() {
        let host = Value::BulkString(b"a".to_vec());
        for wrong in [
            Value::Nil,
            Value::Array(vec![]),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 16_384, host.clone(), 1)]),
            Value::Array(vec![range(5, -1, host.clone(), 1)]),
            Value::Array(vec![range(5, 3, host.clone(), 1)]),
            Value::Array(vec![range(0, 1, host, 70_000)]),
        ] {
            let map = Map::of_slots(&wrong, &address("asked", 9), address);
            assert!(map.is_none_or(|m| m.server_of(b"k").is_none()), "{wrong:?}");
        }
    }
}

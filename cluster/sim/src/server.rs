//! A server of the store: it keeps data by a clock of its own, runs the scripts, and answers what a node sends.

use rustc_hash::FxHashMap;

use crate::clock::{Clock, Time};
use crate::data::{Changes, Data, Set};
use crate::lua::Scripts;
use crate::plan::Edition;
use crate::resp::{self, Reply};

/// Where a server's clock stands as a world begins: some day of 2026.
const EPOCH: u64 = 1_790_000_000_000_000_000;

/// A server that holds keys, or a sentinel.
pub struct Server {
    /// Its clock, nanoseconds.
    pub clock: Clock,
    /// What it keeps.
    pub data: Data,
    /// A copy of its data as of an earlier moment.
    pub copy: Data,
    /// The scripts that it knows, by their digests.
    scripts: FxHashMap<Vec<u8>, usize>,
    /// Whether it refuses to write.
    pub replica: bool,
    /// Changes on their way to its replica, with the moment at which they arrive.
    pub lag: Vec<(Time, Changes)>,
    /// The latest version of a limit under which each key was asked for, to notice asks that come late.
    latest: FxHashMap<Vec<u8>, u64>,
    /// When asks of an older version came after one of a newer version.
    pub late_asks: Vec<Time>,
}

/// The hash slots of a Redis Cluster, as all its servers know them.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    /// Who has each hash slot.
    pub owners: Vec<usize>,
    /// Hash slots on their way: the first one, the one after the last, and where to.
    pub moving: Option<(usize, usize, usize)>,
}

/// How many hash slots there are.
pub const HASH_SLOTS: usize = 16_384;

/// Who is asked, and by whom.
pub struct Around<'a> {
    /// The number of this server.
    pub me: usize,
    /// The servers' names, `host:port`.
    pub names: &'a [String],
    /// The hash slots, if it is part of a Redis Cluster.
    pub slots: Option<&'a Slots>,
    /// The server that this sentinel names, if it is a sentinel.
    pub primary: Option<usize>,
    /// Whether the last command of this connection was ASKING.
    pub asking: bool,
    /// The version of the node.
    pub edition: Edition,
}

/// CRC16 (XMODEM) of a key, or of the part of it that is in braces.
pub fn hash_slot(key: &[u8]) -> usize {
    let tag = key.iter().position(|b| *b == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        rest.iter().position(|b| *b == b'}').filter(|close| *close > 0).map(|close| &rest[..close])
    });
    let crc = tag.unwrap_or(key).iter().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            (crc << 1) ^ if crc >> 15 != 0 { 0x1021 } else { 0 }
        })
    });
    usize::from(crc) % HASH_SLOTS
}

impl Slots {
    /// Divides the hash slots evenly.
    pub fn even(servers: usize) -> Slots {
        Slots { owners: (0..HASH_SLOTS).map(|slot| slot * servers / HASH_SLOTS).collect(), moving: None }
    }

    /// Returns where the slot is on its way to.
    pub fn goes_to(&self, slot: usize) -> Option<usize> {
        self.moving.filter(|(from, to, _)| (*from..*to).contains(&slot)).map(|(.., there)| there)
    }

    fn reply(&self, names: &[String]) -> Reply {
        let mut list = Vec::new();
        let mut from = 0;
        for run in self.owners.chunk_by(|a, b| a == b) {
            let (host, port) = names[run[0]].rsplit_once(':').unwrap_or_default();
            let server = Reply::Array(vec![
                resp::text(host),
                Reply::Integer(port.parse().unwrap_or(0)),
                resp::text("id"),
            ]);
            list.push(Reply::Array(vec![
                Reply::Integer(from as i64),
                Reply::Integer((from + run.len() - 1) as i64),
                server,
            ]));
            from += run.len();
        }
        Reply::Array(list)
    }
}

fn error(text: &str) -> Reply {
    Reply::Error(text.to_owned())
}

impl Server {
    /// Makes an empty server.
    pub fn new() -> Server {
        Server {
            clock: Clock::at(EPOCH),
            data: Data::default(),
            copy: Data::default(),
            scripts: FxHashMap::default(),
            replica: false,
            lag: Vec::new(),
            latest: FxHashMap::default(),
            late_asks: Vec::new(),
        }
    }

    /// Forgets all scripts.
    pub fn flush_scripts(&mut self) {
        self.scripts.clear();
    }

    /// Forgets everything.
    pub fn empty(&mut self) {
        self.data.empty();
        self.scripts.clear();
    }

    /// Answers one command.
    pub fn answer(&mut self, lua: &mut Scripts, now: Time, words: &[&[u8]], around: &Around<'_>) -> Reply {
        let now_us = self.clock.read(now) / 1_000;
        let name = words.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
        let rest = &words[1.min(words.len())..];
        match (&name[..], rest) {
            (b"PING", _) => Reply::SimpleString(b"PONG".to_vec()),
            (b"AUTH" | b"SELECT" | b"CLIENT" | b"ASKING", _) => Reply::SimpleString(b"OK".to_vec()),
            (b"TIME", []) => {
                let parts = [now_us / 1_000_000, now_us % 1_000_000];
                Reply::Array(parts.map(|part| resp::text(&part.to_string())).into())
            }
            (b"INFO", _) => resp::text(&format!(
                "redis_version:7.2.0\r\nredis_mode:{}\r\ncluster_enabled:{}\r\nrole:{}\r\n",
                if around.primary.is_some() { "sentinel" } else { "standalone" },
                u8::from(around.slots.is_some()),
                if self.replica { "slave" } else { "master" },
            )),
            (b"SENTINEL", [ask, _]) if ask.eq_ignore_ascii_case(b"get-master-addr-by-name") => {
                let Some(primary) = around.primary else { return error("ERR unknown command 'SENTINEL'") };
                let (host, port) = around.names[primary].rsplit_once(':').unwrap_or_default();
                Reply::Array(vec![resp::text(host), resp::text(port)])
            }
            (b"CLUSTER", [ask]) if ask.eq_ignore_ascii_case(b"slots") => match around.slots {
                Some(slots) => slots.reply(around.names),
                None => error("ERR This instance has cluster support disabled"),
            },
            (b"GET", [key]) => match self.moved(key, around) {
                Some(moved) => moved,
                None => {
                    self.data.get(key, now_us).map_or(Reply::Null, |value| Reply::BulkString(value.to_vec()))
                }
            },
            (b"DEL", [key]) => match self.moved(key, around) {
                Some(moved) => moved,
                None => Reply::Integer(i64::from(self.data.del(key, now_us))),
            },
            (b"SET", [key, value, options @ ..]) => match (self.moved(key, around), Set::read(options)) {
                (Some(moved), _) => moved,
                (None, Err(said)) => error(said),
                (None, Ok(_)) if self.replica => {
                    error("READONLY You can't write against a read only replica.")
                }
                (None, Ok(set)) => match self.data.set(key, value, set, now_us) {
                    true => Reply::SimpleString(b"OK".to_vec()),
                    false => Reply::Null,
                },
            },
            (b"EVAL" | b"EVALSHA", [script, count, key, argv @ ..]) if *count == b"1" => {
                if around.primary.is_some() {
                    return error("ERR unknown command 'EVALSHA'");
                }
                if let Some(moved) = self.moved(key, around) {
                    return moved;
                }
                let number = if name == b"EVAL" {
                    match lua.number(script) {
                        Ok(number) => number,
                        Err(said) => return Reply::Error(format!("ERR Error compiling script: {said}")),
                    }
                } else {
                    match self.scripts.get(*script) {
                        Some(number) => *number,
                        None => return error("NOSCRIPT No matching script. Please use EVAL."),
                    }
                };
                if name == b"EVAL" && !self.scripts.contains_key(lua.digest(number).as_bytes()) {
                    self.scripts.insert(lua.digest(number).as_bytes().to_vec(), number);
                }
                if self.replica {
                    return error("READONLY You can't write against a read only replica.");
                }
                if lua.is_grant(number) {
                    self.notice(now, key, argv);
                }
                lua.run((number, around.edition), key, argv, &mut self.data, now_us)
            }
            _ => error("ERR unknown command"),
        }
    }

    /// Notices an ask for units of an older version of its limit than one that came before.
    fn notice(&mut self, now: Time, key: &[u8], argv: &[&[u8]]) {
        let version = argv.get(9).and_then(|version| std::str::from_utf8(version).ok()?.parse::<u64>().ok());
        let version = version.unwrap_or(0);
        match self.latest.get_mut(key) {
            Some(latest) => {
                if version > 0 && version < *latest {
                    self.late_asks.push(now);
                }
                *latest = version.max(*latest);
            }
            None => {
                self.latest.insert(key.to_vec(), version);
            }
        }
    }

    /// Says where a key is, if it is not here.
    fn moved(&self, key: &[u8], around: &Around<'_>) -> Option<Reply> {
        let (slots, slot) = (around.slots?, hash_slot(key));
        let owner = slots.owners[slot];
        let to =
            |word: &str, server: usize| Some(Reply::Error(format!("{word} {slot} {}", around.names[server])));
        match slots.goes_to(slot) {
            Some(there) if there == around.me && around.asking => None,
            Some(there) if owner == around.me && !self.data.has(key) => to("ASK", there),
            _ if owner == around.me => None,
            _ => to("MOVED", owner),
        }
    }
}

impl Default for Server {
    fn default() -> Server {
        Server::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;
    use tatcell_cluster::script::{GRANT, SLOT};

    fn words<'a>(list: &[&'a str]) -> Vec<&'a [u8]> {
        list.iter().map(|word| word.as_bytes()).collect()
    }

    fn alone<'a>() -> Around<'a> {
        Around { me: 0, names: &[], slots: None, primary: None, asking: false, edition: Edition::This }
    }

    #[test]
    fn shipped_scripts_run_by_text_and_then_by_digest() {
        let (mut server, mut lua) = (Server::new(), Scripts::new().expect("Lua"));
        let number = lua.number(SLOT.as_bytes()).expect("Lua");
        let digest = lua.digest(number).to_owned();
        fn by<'a>(word: &'a str, name: &'a str, ms: &'a str) -> Vec<&'a [u8]> {
            words(&[word, name, "1", "s", "me", ms, "7"])
        }
        let mut say = |words: &[&[u8]], now| server.answer(&mut lua, now, words, &alone());
        let no = say(&by("EVALSHA", &digest, "1000"), 0);
        assert!(matches!(&no, Reply::Error(text) if text.starts_with("NOSCRIPT")), "{no:?}");
        let code = |code| Reply::Array(vec![Reply::Integer(code), resp::text("7")]);
        assert_eq!(say(&by("EVAL", SLOT, "1000"), 0), code(1));
        assert_eq!(say(&by("EVALSHA", &digest, "1000"), SECOND), code(2));
        // It is gone once the clock reads more than when it ends.
        assert_eq!(say(&by("EVALSHA", &digest, "1000"), 2 * SECOND + 2_000_000), code(1));
        assert_eq!(say(&by("EVALSHA", &digest, "0"), 2 * SECOND + 3_000_000), code(2));
        assert_eq!(say(&by("EVALSHA", &digest, "0"), 2 * SECOND + 3_000_000), code(0));
        assert_eq!(say(&words(&["GET", "s"]), 2 * SECOND), Reply::Null);
    }

    #[test]
    fn a_grant_is_a_list_of_whole_numbers_and_a_text() {
        let (mut server, mut lua) = (Server::new(), Scripts::new().expect("Lua"));
        // A unit takes 10 ms and a half of 2^-26 us; ten units fit.
        let call = words(&[
            "EVAL", GRANT, "1", "k", "10000", "1", "100000", "10", "4", "1", "0", "0", "1200000", "1", "9",
        ]);
        let Reply::Array(reply) = server.answer(&mut lua, 5, &call, &alone()) else { panic!("a list") };
        assert_eq!(reply[..3], [Reply::Integer(4), Reply::Integer(0), Reply::Integer(0)]);
        assert_eq!(reply[3], resp::text("1790000000040000:4:10000:1:1"));
        assert_eq!(reply[4], resp::text("9"));
        let foreign = words(&["SET", "k", "nonsense"]);
        server.answer(&mut lua, 5, &foreign, &alone());
        let reply = server.answer(&mut lua, 5, &call, &alone());
        assert!(matches!(&reply, Reply::Error(text) if text.starts_with("TATCELL the value")), "{reply:?}");
    }

    #[test]
    fn keys_that_move_are_asked_for_where_they_are() {
        assert_eq!(hash_slot(b"123456789"), 0x31c3);
        assert_eq!(hash_slot(b"a{123456789}b"), 0x31c3);
        let (mut server, mut lua) = (Server::new(), Scripts::new().expect("Lua"));
        let names = ["a:1".to_owned(), "b:2".to_owned()];
        let mut slots = Slots::even(2);
        let key = "123456789"; // in the second half of the hash slots
        let get = words(&["GET", key]);
        let mut say = |me, slots: &Slots, asking| {
            let around = Around {
                me,
                names: &names,
                slots: Some(slots),
                primary: None,
                asking,
                edition: Edition::This,
            };
            server.answer(&mut lua, 0, &get, &around)
        };
        assert_eq!(say(0, &slots, false), error("MOVED 12739 b:2"));
        assert_eq!(say(1, &slots, false), Reply::Null);
        slots.moving = Some((12_000, 13_000, 0));
        assert_eq!(say(1, &slots, false), error("ASK 12739 a:1"));
        assert_eq!(say(0, &slots, false), error("MOVED 12739 b:2"));
        assert_eq!(say(0, &slots, true), Reply::Null);
    }
}

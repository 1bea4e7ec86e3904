//! Connections: two streams of bytes, each with its delays and faults, and what a server does with what comes.

use tatcell_cluster::sim::LinkId;

use crate::clock::{Time, MS};
use crate::plan::{Edition, Shape, What};
use crate::resp::{self, Reply};
use crate::server::Around;
use crate::world::{Ev, World};

/// A connection.
pub(crate) struct Conn {
    pub host: usize,
    pub generation: u64,
    pub link: LinkId,
    pub server: usize,
    /// When the last message of each direction arrives: bytes keep their order.
    last_up: Time,
    last_down: Time,
    /// Nothing arrives any more, in either direction.
    silent: bool,
    /// Whether the server, and the node, has its end open.
    pub served: bool,
    pub used: bool,
    /// The version of the node.
    edition: Edition,
    input: Vec<u8>,
    asking: bool,
}

/// What a fault does to a reply.
enum Fate {
    Comes,
    ComesTwice { late: bool },
    GoesElsewhere,
    IsCut,
    IsLost,
}

impl World<'_> {
    /// A node connects to a server.
    pub(crate) fn connect(&mut self, host: usize, link: LinkId, server: usize) {
        let generation = self.hosts[host].generation;
        let conn = self.conns.len();
        self.conns.push(Conn {
            host,
            generation,
            link,
            server,
            last_up: 0,
            last_down: 0,
            silent: false,
            served: false,
            used: true,
            edition: self.hosts[host].edition,
            input: Vec::new(),
            asking: false,
        });
        self.links.insert((host, generation, link), conn);
        let at = self.now + self.latency(host, true);
        if !self.is_apart(host, server) {
            self.at(at, Ev::Connect(conn));
        }
    }

    pub(crate) fn connect_arrives(&mut self, conn: usize) {
        let server = self.conns[conn].server;
        let down = self.down > 0 && server < self.holders;
        self.conns[conn].served = !down;
        let at = self.arrival(conn, false);
        self.at(at, if down { Ev::ServerEnded(conn) } else { Ev::Connected(conn) });
    }

    /// A node writes.
    pub(crate) fn send(&mut self, conn: usize, bytes: Vec<u8>) {
        if self.loses(conn) {
            return;
        }
        let at = self.arrival(conn, true);
        self.at(at, Ev::ToServer(conn, bytes));
    }

    /// A node closes its end. What it sent before still arrives.
    pub(crate) fn hang_up(&mut self, conn: usize) {
        self.conns[conn].used = false;
        let at = self.arrival(conn, true);
        self.at(at, Ev::NodeEnded(conn));
    }

    /// Draws when a message of this connection arrives.
    fn arrival(&mut self, conn: usize, up: bool) -> Time {
        let at = self.now + self.latency(self.conns[conn].host, up);
        let conn = &mut self.conns[conn];
        let last = if up { &mut conn.last_up } else { &mut conn.last_down };
        *last = at.max(*last + 1);
        *last
    }

    /// Draws whether the connection falls silent.
    fn loses(&mut self, conn: usize) -> bool {
        let (host, server) = (self.conns[conn].host, self.conns[conn].server);
        if self.is_apart(host, server) {
            self.conns[conn].silent = true;
        }
        for (fault, active) in self.plan.faults.iter().zip(&self.active) {
            if let (What::Lose { node, per_mille }, true) = (fault.what, *active) {
                if node.is_none_or(|node| node == host) && self.random.chance(per_mille) {
                    self.conns[conn].silent = true;
                }
            }
        }
        self.conns[conn].silent
    }

    pub(crate) fn send_to_node(&mut self, conn: usize, bytes: Vec<u8>) {
        if bytes.is_empty() || !self.conns[conn].served || self.loses(conn) {
            return;
        }
        let at = self.arrival(conn, false);
        self.at(at, Ev::ToNode(conn, bytes));
    }

    /// The server's end breaks.
    pub(crate) fn reset(&mut self, conn: usize) {
        if std::mem::take(&mut self.conns[conn].served) {
            self.conns[conn].input.clear();
            let at = self.arrival(conn, false);
            self.at(at, Ev::ServerEnded(conn));
        }
    }

    /// Resets the connections to some of the servers that hold keys.
    pub(crate) fn close_all(&mut self, of: impl Fn(usize) -> bool) {
        for conn in 0..self.conns.len() {
            let server = self.conns[conn].server;
            if server < self.holders && of(server) {
                self.reset(conn);
            }
        }
    }

    pub(crate) fn reaches_server(&mut self, conn: usize, bytes: Vec<u8>) {
        let this = &mut self.conns[conn];
        if this.served {
            match this.input.is_empty() {
                true => this.input = bytes,
                false => this.input.extend_from_slice(&bytes),
            }
            self.serve(conn);
        }
    }

    /// The servers go on with what came meanwhile.
    pub(crate) fn serve_all(&mut self) {
        (0..self.conns.len()).for_each(|conn| self.serve(conn));
    }

    /// Answers all whole commands that came.
    fn serve(&mut self, conn: usize) {
        let server = self.conns[conn].server;
        if self.stopped > 0 && server < self.holders || self.conns[conn].input.is_empty() {
            return;
        }
        let (mut out, mut read) = (Vec::new(), 0);
        let input = std::mem::take(&mut self.conns[conn].input);
        while self.conns[conn].served {
            let Ok(Some((words, length))) = resp::command(&input[read..]) else { break };
            read += length;
            if self.resets(conn) {
                self.send_to_node(conn, std::mem::take(&mut out));
                return self.reset(conn);
            }
            let answer = self.run(conn, &words);
            let fate = if self.loses_claim(conn, &words, &answer) { Fate::IsLost } else { self.fate(conn) };
            let mut reply = Vec::new();
            resp::write(&answer, &mut reply);
            match fate {
                Fate::Comes => out.append(&mut reply),
                Fate::ComesTwice { late: false } => {
                    out.extend_from_slice(&reply);
                    out.append(&mut reply);
                }
                Fate::ComesTwice { late: true } => {
                    out.extend_from_slice(&reply);
                    let at = self.now + self.random.below(20 * MS);
                    self.at(at, Ev::Copy(conn, reply));
                }
                Fate::GoesElsewhere => {
                    self.send_to_node(conn, std::mem::take(&mut out));
                    let others: Vec<usize> = (0..self.conns.len())
                        .filter(|other| {
                            let other = &self.conns[*other];
                            other.served && other.used && other.server == server
                        })
                        .collect();
                    if !others.is_empty() {
                        let other = self.random.of(&others);
                        self.send_to_node(other, reply);
                    }
                }
                Fate::IsCut => {
                    let half = self.random.below(reply.len() as u64) as usize;
                    out.extend_from_slice(&reply[..half]);
                    self.send_to_node(conn, std::mem::take(&mut out));
                    return self.reset(conn);
                }
                Fate::IsLost => {
                    self.send_to_node(conn, std::mem::take(&mut out));
                    return self.reset(conn);
                }
            }
        }
        self.conns[conn].input = input[read..].to_vec();
        self.send_to_node(conn, out);
    }

    fn run(&mut self, conn: usize, words: &[&[u8]]) -> Reply {
        let server = self.conns[conn].server;
        let around = Around {
            me: server,
            names: &self.names,
            slots: self.slots.as_ref(),
            primary: (server >= self.holders).then_some(match self.older {
                Some((old, _)) if server == self.holders => old,
                _ => self.primary,
            }),
            asking: self.conns[conn].asking,
            edition: self.conns[conn].edition,
        };
        let at = &mut self.servers[server];
        let reply = at.answer(self.lua, self.now, words, &around);
        let changes = at.data.changes();
        if self.plan.shape == Shape::Sentinel && server == self.primary && !changes.is_empty() {
            at.lag.push((self.now, changes));
        }
        self.conns[conn].asking = words[0].eq_ignore_ascii_case(b"ASKING");
        let mark = match words {
            [_, _, _, key, ..] if key.ends_with(b":limit:x") => {
                let now_us = at.clock.read(self.now) / 1_000;
                at.data.get(key, now_us).map(<[u8]>::to_vec)
            }
            _ => None,
        };
        if let Some(value) = mark {
            self.mark(server, &value);
        }
        if let ([_, _, _, key, arguments @ ..], true) = (words, self.tell) {
            let host = self.conns[conn].host;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let arguments: Vec<String> = arguments.iter().map(|argument| text(argument)).collect();
            let (key, arguments) = (text(key), arguments.join(" "));
            self.say(|| format!("host {host} at server {server}: {key} {arguments} -> {reply:?}"));
        }
        reply
    }

    fn resets(&mut self, conn: usize) -> bool {
        matches!(self.draw(conn, true), Fate::IsLost)
    }

    /// Whether this is the answer by which a node learns that it has a slot, and is lost. Each fault loses one.
    fn loses_claim(&mut self, conn: usize, words: &[&[u8]], answer: &Reply) -> bool {
        let host = self.conns[conn].host;
        let Some(fault) = (0..self.active.len()).find(|fault| {
            self.active[*fault] && self.plan.faults[*fault].what == What::ClaimLost { node: host }
        }) else {
            return false;
        };
        let of_slot = matches!(words, [_, _, _, key, ..] if key.windows(6).any(|part| part == b":slot:"));
        let claimed = matches!(answer, Reply::Array(list) if list.first() == Some(&Reply::Integer(1)));
        if of_slot && claimed {
            self.active[fault] = false;
        }
        of_slot && claimed
    }

    fn fate(&mut self, conn: usize) -> Fate {
        self.draw(conn, false)
    }

    fn draw(&mut self, conn: usize, before: bool) -> Fate {
        let host = self.conns[conn].host;
        for (fault, active) in self.plan.faults.iter().zip(&self.active) {
            let mine = |node: Option<usize>| node.is_none_or(|node| node == host);
            match fault.what {
                What::Reset { node, per_mille }
                    if *active && mine(node) && self.random.chance(per_mille / 3) =>
                {
                    return if self.random.chance(500) || before { Fate::IsLost } else { Fate::IsCut };
                }
                What::Double { node, per_mille, late }
                    if *active && !before && mine(node) && self.random.chance(per_mille) =>
                {
                    return Fate::ComesTwice { late };
                }
                What::Swap { per_mille } if *active && !before && self.random.chance(per_mille) => {
                    return Fate::GoesElsewhere;
                }
                _ => {}
            }
        }
        Fate::Comes
    }
}

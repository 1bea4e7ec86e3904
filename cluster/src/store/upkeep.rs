//! The upkeep of the servers: it connects to those that are away, and searches for the servers that hold the keys. No
//! call waits for it.

use std::time::Duration;

use redis::{ConnectionAddr, RedisResult};

use super::{Store, PROBE_MAX, PROBE_MIN};
use crate::endpoint::Shape;
use crate::error::OpenError;
use crate::link::Link;
use crate::map::Map;
use crate::script::Fault;
use crate::wire::{later, Wire};

/// The least time between two searches for the servers, and how often sentinels are asked without a reason: a primary
/// that was replaced may still answer.
const LOOK_GAP: Duration = Duration::from_millis(200);
const LOOK_USUAL: Duration = Duration::from_secs(1);

/// One server, and the connection to it.
pub(super) struct Server {
    pub at: ConnectionAddr,
    pub link: Option<Link>,
    /// Since when there is no connection.
    pub since: u64,
    /// When to try again, by the timer.
    pub next: u64,
    pub gap: Duration,
    pub connecting: bool,
}

/// The result of a task.
pub(super) enum Done {
    Connected(ConnectionAddr, RedisResult<Link>),
    Found(Result<Map, OpenError>),
}

impl Store {
    /// Returns when there is something to tend, by the timer; earlier if a task is [done](Self::is_done).
    pub(crate) fn next(&self) -> u64 {
        let waiting = self.servers.iter().filter(|server| server.link.is_none() && !server.connecting);
        let look = if self.looking { u64::MAX } else { self.next_look() };
        waiting.map(|server| server.next).fold(look, u64::min)
    }

    /// Returns whether there is something to tend now: a task is done, or a connection has ended by itself.
    pub(crate) fn is_done(&self) -> bool {
        !self.done.borrow().is_empty() || self.servers.iter().any(|server| server.ended().is_some())
    }

    /// Takes the results that have come, and starts what is due. Never waits.
    pub(crate) fn tend(&mut self) {
        let done = std::mem::take(&mut *self.done.borrow_mut());
        for done in done {
            match done {
                Done::Connected(at, link) => self.connected(&at, link),
                Done::Found(found) => {
                    self.looking = false;
                    match found {
                        Ok(map) => self.take(map),
                        Err(error) => self.troubles.push(format!("no servers found: {error}")),
                    }
                }
            }
        }
        for server in 0..self.servers.len() {
            if let Some(why) = self.servers[server].ended() {
                self.lost(server, Fault::Lost, &why);
            }
        }
        let now = self.wire.timer();
        for server in &mut self.servers {
            if server.link.is_none() && !server.connecting && now >= server.next {
                server.connecting = true;
                let (endpoint, at, done) = (self.endpoint.clone(), server.at.clone(), self.done.clone());
                let wire = self.wire.clone();
                self.wire.spawn(async move {
                    let link = endpoint.connect(&wire, &at).await;
                    done.borrow_mut().push(Done::Connected(at, link));
                });
            }
        }
        if !self.looking && now >= self.next_look() {
            (self.look, self.looked, self.looking) = (false, now, true);
            let (endpoint, mut known, done) =
                (self.endpoint.clone(), self.map.servers.clone(), self.done.clone());
            // A server that was cut off from the others keeps answering what it knew, so each search begins with
            // another one.
            let from = self.random.below(known.len() as u64) as usize;
            known.rotate_left(from);
            let wire = self.wire.clone();
            self.wire.spawn(async move {
                let found = endpoint.find(&wire, &known).await;
                done.borrow_mut().push(Done::Found(found));
            });
        }
    }

    /// Returns when to search for the servers, by the timer.
    fn next_look(&self) -> u64 {
        let away = self.servers.iter().any(|server| server.link.is_none());
        match self.endpoint.shape {
            Shape::Single => u64::MAX,
            _ if self.look || away => later(self.looked, LOOK_GAP),
            Shape::Sentinel(_) => later(self.looked, LOOK_USUAL),
            Shape::Cluster => u64::MAX,
        }
    }

    pub(super) fn connected(&mut self, at: &ConnectionAddr, link: RedisResult<Link>) {
        let Some(server) = self.servers.iter_mut().find(|server| server.at == *at) else { return };
        server.connecting = false;
        match link {
            Ok(link) => server.link = Some(link),
            Err(error) => {
                server.gap = (server.gap * 2).min(PROBE_MAX);
                let spread = self.random.below(server.gap.as_micros() as u64 / 2);
                server.next = self.wire.after(server.gap / 2 + Duration::from_micros(spread));
                self.troubles.push(format!("{:?}: {at}: {error}", Fault::of(&error)));
            }
        }
    }

    /// Replaces the servers. Connections to those that stay are kept.
    fn take(&mut self, map: Map) {
        let mut old = std::mem::take(&mut self.servers);
        let of = |at: &ConnectionAddr| match old.iter().position(|server| server.at == *at) {
            Some(known) => old.swap_remove(known),
            None => Server::away(at.clone(), &self.wire),
        };
        self.servers = map.servers.iter().map(of).collect();
        self.map = map;
    }
}

impl Server {
    /// Makes a server without a connection, which is tried at once.
    pub(super) fn away(at: ConnectionAddr, wire: &Wire) -> Server {
        let (since, next) = (wire.now(), wire.timer());
        Server { at, link: None, since, next, gap: PROBE_MIN, connecting: false }
    }

    /// Returns why the connection has ended by itself, if it has.
    fn ended(&self) -> Option<String> {
        self.link.as_ref()?.ended()
    }
}

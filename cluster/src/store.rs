//! The servers of the store and their connections. It sends batches of calls, each call to the server that has its key,
//! and returns an answer for each.
//!
//! ```text
//!   batch   key -> hash slot -> server    written to all servers, then read from each in turn: a round
//!           NOSCRIPT   the call did not run: send it once more with the text
//!           MOVED      it did not run: the hash slot now belongs to another server; send it once more, there
//!           ASK        it did not run: send it once more there, this time only
//!           nothing    close the connection, so that a late answer cannot be taken for that of a later call
//!           another id or shape: the answer belongs to another call; close the connection
//!   tend    connects to servers that are away, every 20 to 400 ms, and finds the servers: in tasks of their own, so
//!           that a server that is away does not delay calls to another
//! ```
//!
//! A server is **away** from the moment at which its connection breaks until there is a new one. A call for a key of
//! such a server takes no time and returns a [`Miss`], which says since when.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use redis::{Cmd, ConnectionAddr, FromRedisValue, RedisError, RedisResult};
use upkeep::{Done, Server};

use crate::endpoint::{Endpoint, Shape};
use crate::error::OpenError;
use crate::map::Map;
use crate::miss::{Answers, Miss};
use crate::random::Random;
use crate::script::{self, By, Fault};
use crate::wire::Wire;

mod upkeep;

/// The most calls of a batch.
pub(crate) const MAX_BATCH: usize = 64;

/// The longest time between two probes of a store that is away.
pub(crate) const PROBE_MAX: Duration = Duration::from_millis(400);

/// The shortest time between two tries to connect; the longest is [`PROBE_MAX`].
const PROBE_MIN: Duration = Duration::from_millis(20);

/// How often a node that opens tries to make a stream to a server, each within the timeout. One that is made too late
/// waits for the next try, so a stream may take this many timeouts.
const OPEN_TRIES: u32 = 4;

/// How often a call is sent: its key may move, then its hash slot, and the new server may lack the script.
const ROUNDS: usize = 5;

/// The servers of the store.
pub(crate) struct Store {
    pub wire: Wire,
    endpoint: Rc<Endpoint>,
    map: Map,
    /// In the order of the map.
    servers: Vec<Server>,
    done: Rc<RefCell<Vec<Done>>>,
    looking: bool,
    look: bool,
    looked: u64,
    random: Random,
    /// The id of the last call that was sent.
    id: u64,
    /// The faults since this list was last taken.
    pub troubles: Vec<String>,
    /// The connections that broke since then.
    pub losses: u64,
}

/// One call on its way.
#[derive(Clone, Copy)]
struct Sending {
    call: usize,
    server: usize,
    by: By,
    asking: bool,
    /// The id of this sending; its answer has the same.
    id: u64,
}

/// Tries again while a stream was not made in time.
async fn tries<T>(
    wire: &Wire,
    mut attempt: impl AsyncFnMut() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let mut left = OPEN_TRIES;
    loop {
        let late = wire.late();
        let result = attempt().await;
        left -= 1;
        match result {
            Err(_) if left > 0 && wire.late() > late => {}
            Err(OpenError::Unreachable(why)) if left < OPEN_TRIES - 1 => {
                let why = format!("{why}, try {} of {OPEN_TRIES}", OPEN_TRIES - left);
                return Err(OpenError::Unreachable(why));
            }
            result => return result,
        }
    }
}

/// How often a call may be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Again, if the server says that it did not run.
    UntilItRan,
    /// Once, whatever the server says: to run twice would mint units, and an error has no id by which to see whether it
    /// is the answer to this call.
    Once,
}

impl Store {
    /// Finds the servers and connects to all of them.
    ///
    /// # Errors
    /// Those of opening a node.
    pub(crate) async fn open(wire: Wire, endpoint: Endpoint, mut random: Random) -> Result<Store, OpenError> {
        let map = tries(&wire, || endpoint.find(&wire, &[])).await?;
        let mut servers = Vec::new();
        for at in &map.servers {
            let connect =
                async || endpoint.connect(&wire, at).await.map_err(|error| OpenError::at(at, error));
            let link = tries(&wire, connect).await?;
            servers.push(Server { link: Some(link), ..Server::away(at.clone(), &wire) });
        }
        Ok(Store {
            endpoint: Rc::new(endpoint),
            map,
            servers,
            done: Rc::default(),
            looking: false,
            look: false,
            looked: wire.timer(),
            // So that no two nodes have the same ids, even if something mixes their connections up.
            id: random.below(1 << 62),
            random,
            troubles: Vec::new(),
            losses: 0,
            wire,
        })
    }

    /// Returns the kind of store at the given address.
    pub(crate) fn shape(&self) -> &Shape {
        &self.endpoint.shape
    }

    /// Returns whether any server is there.
    pub(crate) fn is_up(&self) -> bool {
        self.servers.iter().any(|server| server.link.is_some())
    }

    /// Returns the servers that are there, each with a key of its own that begins with `prefix`.
    pub(crate) fn servers(&self, prefix: &str) -> Vec<(String, ConnectionAddr)> {
        let mut keys: Vec<Option<String>> = vec![None; self.servers.len()];
        // So many that almost certainly every server gets one.
        for i in 0..1_000_000u32 {
            let key = format!("{prefix}{i}");
            if let Some(slot) = self.map.server_of(key.as_bytes()).and_then(|at| keys.get_mut(at)) {
                slot.get_or_insert(key);
            }
            if keys.iter().all(Option::is_some) {
                break;
            }
        }
        self.servers.iter().zip(keys).filter_map(|(s, key)| Some((key?, s.at.clone()))).collect()
    }

    /// Sends one command to a server, and returns its answer.
    pub(crate) async fn query<T: FromRedisValue>(
        &mut self,
        at: &ConnectionAddr,
        command: &Cmd,
    ) -> RedisResult<T> {
        let link = self.servers.iter_mut().find(|server| server.at == *at).and_then(|s| s.link.as_mut());
        link.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?.query(command).await
    }

    /// Sends the calls in one go, each to the server of its key.
    pub(crate) async fn batch<T: FromRedisValue>(
        &mut self,
        keys: &[impl AsRef<[u8]>],
        sent: Sent,
        command: impl Fn(usize, By) -> Cmd,
    ) -> Answers<T> {
        let by = if sent == Sent::Once { By::Text } else { By::Digest };
        let mut each: Vec<Result<T, Miss>> = Vec::new();
        let mut open = Vec::new();
        for (call, key) in keys.iter().enumerate() {
            each.push(Err(Miss::new(Fault::Elsewhere, "each server sends this key to another one")));
            match self.map.server_of(key.as_ref()) {
                Some(server) => open.push(Sending { call, server, by, asking: false, id: 0 }),
                None => {
                    self.look = true;
                    each[call] = Err(Miss::new(Fault::NotNow, "no server serves the hash slot of the key"));
                }
            }
        }
        let (mut with_text, mut redirected) = (0, 0);
        for _ in 0..ROUNDS {
            let (mut again, broken) = (Vec::new(), self.round(&mut open, &command, &mut each).await);
            for (sending, error) in broken {
                let fault = Fault::of(&error);
                match (fault, &self.endpoint.shape) {
                    (Fault::NoScript, _) if sending.by == By::Text => {
                        self.out_of_step(sending.server);
                        each[sending.call] = Err(self.away(sending.server));
                    }
                    (Fault::NoScript, _) => {
                        with_text += 1;
                        again.push(Sending { by: By::Text, ..sending });
                    }
                    (Fault::Elsewhere, Shape::Cluster) if sent == Sent::Once => {
                        each[sending.call] = Err(Miss::new(Fault::NotNow, &error.to_string()));
                    }
                    (Fault::Elsewhere, Shape::Cluster) => match self.redirect(sending, &error).await {
                        Some(there) => {
                            redirected += 1;
                            again.push(there);
                        }
                        None => each[sending.call] = Err(Miss::new(Fault::NotNow, &error.to_string())),
                    },
                    _ => {
                        let miss = Miss::new(fault, &error.to_string());
                        self.troubles.push(miss.said.clone());
                        self.look |= matches!(fault, Fault::NotNow | Fault::ReadOnly);
                        if fault.breaks_connection() {
                            self.close(sending.server);
                        }
                        each[sending.call] = Err(miss);
                    }
                }
            }
            open = again;
            if open.is_empty() {
                break;
            }
        }
        Answers { each, with_text, redirected }
    }

    /// Writes to all servers, then reads from each. Returns the calls that the servers answered with an error.
    async fn round<T: FromRedisValue>(
        &mut self,
        open: &mut [Sending],
        command: &impl Fn(usize, By) -> Cmd,
        each: &mut [Result<T, Miss>],
    ) -> Vec<(Sending, RedisError)> {
        open.sort_by_key(|sending| sending.server);
        // A server that sends its answers slowly is late too, so every round ends within two timeouts.
        let end = self.wire.after(2 * self.endpoint.timeout);
        for group in open.chunk_by_mut(|a, b| a.server == b.server) {
            let mut packed = Vec::new();
            for sending in group.iter_mut() {
                if sending.asking {
                    redis::cmd("ASKING").write_packed_command(&mut packed);
                }
                self.id = self.id.wrapping_add(1);
                sending.id = self.id;
                command(sending.call, sending.by).arg(sending.id).write_packed_command(&mut packed);
            }
            let server = group[0].server;
            if let Some(Err(error)) = self.servers[server].link.as_mut().map(|link| link.write(packed)) {
                self.lost(server, Fault::of(&error), &error.to_string());
            }
        }
        let mut errors = Vec::new();
        for sending in open.iter() {
            let answer = &mut each[sending.call];
            let Some(link) = self.servers[sending.server].link.as_mut() else {
                *answer = Err(self.away(sending.server));
                continue;
            };
            let mut reply = link.read(end).await;
            if sending.asking && reply.is_ok() {
                reply = link.read(end).await;
            }
            match reply {
                Ok(value) => match value.extract_error() {
                    Ok(value) => match script::of_call(value, sending.id.to_string().as_bytes()) {
                        Some(value) => *answer = Ok(value),
                        None => {
                            self.out_of_step(sending.server);
                            *answer = Err(self.away(sending.server));
                        }
                    },
                    Err(error) => errors.push((*sending, error)),
                },
                Err(error) => {
                    self.lost(sending.server, Fault::of(&error), &error.to_string());
                    *answer = Err(self.away(sending.server));
                }
            }
        }
        errors
    }

    /// Redirects a call that the server sent elsewhere. Returns `None` if there is no connection to that server.
    async fn redirect(&mut self, sending: Sending, error: &RedisError) -> Option<Sending> {
        let (name, slot) = error.redirect_node()?;
        let at = self.endpoint.named(&self.servers[sending.server].at, name)?;
        let server = self.map.place_of(at.clone());
        if server == self.servers.len() {
            // Only once for each new server, so a caller waits for one connection at most.
            let link = self.endpoint.connect(&self.wire, &at).await;
            self.servers.push(Server::away(at.clone(), &self.wire));
            self.connected(&at, link);
        }
        let asking = matches!(error.kind(), redis::ErrorKind::Server(redis::ServerErrorKind::Ask));
        if !asking {
            self.map.moved(slot, server);
            self.look = true;
        }
        self.servers[server].link.is_some().then_some(Sending { server, asking, ..sending })
    }

    fn away(&self, server: usize) -> Miss {
        let Server { at, since, .. } = &self.servers[server];
        Miss { since: Some(*since), ..Miss::new(Fault::Lost, &format!("{at} is away")) }
    }

    /// Closes an unusable connection; the server is away until there is another one.
    fn close(&mut self, server: usize) {
        let server = &mut self.servers[server];
        if server.link.take().is_some() {
            self.losses += 1;
            server.since = self.wire.now();
            server.gap = PROBE_MIN;
            server.next = self.wire.after(PROBE_MIN);
        }
    }

    fn out_of_step(&mut self, server: usize) {
        self.lost(
            server,
            Fault::Lost,
            "the answer belongs to another call: does a proxy send answers twice?",
        );
    }

    fn lost(&mut self, server: usize, fault: Fault, said: &str) {
        self.troubles.push(format!("{fault:?}: {}: {said}", self.servers[server].at));
        self.look = true;
        self.close(server);
    }
}

//! A connection to one server of the store: commands out, answers in, over a stream of bytes.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use redis::{Cmd, ConnectionAddr, ErrorKind, FromRedisValue, Parser, RedisConnectionInfo};
use redis::{RedisError, RedisResult, Value};

use crate::script::Fault;
use crate::wire::{late, later, LinkId, Unread, Wire};

/// One connection. It closes its stream when it is dropped.
pub(crate) struct Link {
    wire: Wire,
    id: LinkId,
    parser: Parser,
    timeout: Duration,
}

impl Link {
    /// Connects and logs in. Each wait ends within the timeout.
    pub(crate) async fn open(
        wire: &Wire,
        at: &ConnectionAddr,
        login: &RedisConnectionInfo,
        timeout: Duration,
    ) -> RedisResult<Link> {
        let id = wire.connect(at, timeout).await?;
        let mut link = Link { wire: wire.clone(), id, parser: Parser::new(), timeout };
        if let Some(password) = login.password() {
            let mut auth = redis::cmd("AUTH");
            if let Some(user) = login.username() {
                auth.arg(user);
            }
            let answer: RedisResult<Value> = link.query(auth.arg(password)).await;
            answer.map_err(|error| match Fault::of(&error) {
                Fault::Lost => error,
                _ => RedisError::from((
                    ErrorKind::AuthenticationFailed,
                    "the server refuses the login",
                    error.to_string(),
                )),
            })?;
        }
        if login.db() != 0 {
            link.query::<Value>(redis::cmd("SELECT").arg(login.db())).await?;
        }
        Ok(link)
    }

    /// Sends one command and returns its answer.
    pub(crate) async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        self.write(command.get_packed_command())?;
        let end = self.wire.after(2 * self.timeout);
        let answer = self.read(end).await?.extract_error()?;
        Ok(redis::from_redis_value(answer)?)
    }

    /// Sends packed commands. The caller must read each of their answers once.
    pub(crate) fn write(&mut self, packed: Vec<u8>) -> RedisResult<()> {
        Ok(self.wire.send(self.id, packed)?)
    }

    /// Returns the next answer, which may be an error of the server. Waits until `end`, and no longer than the timeout
    /// for each piece of it.
    ///
    /// # Errors
    /// The connection is unusable.
    pub(crate) async fn read(&mut self, end: u64) -> RedisResult<Value> {
        poll_fn(|_| {
            let mut unread = Unread { wire: &self.wire, id: self.id, starved: false };
            match self.parser.parse_value(&mut unread) {
                Err(_) if unread.starved => {}
                parsed => return Poll::Ready(parsed),
            }
            if let Some(why) = self.wire.ended(self.id) {
                return Poll::Ready(Err(std::io::Error::other(why).into()));
            }
            let piece = later(self.wire.touched(self.id), self.timeout);
            match self.wire.due(piece.min(end)) {
                true => Poll::Ready(Err(late(self.timeout).into())),
                false => Poll::Pending,
            }
        })
        .await
    }

    /// Returns why the connection is unusable while no call is under way: it has ended by itself, or it has bytes that
    /// belong to no call.
    pub(crate) fn ended(&self) -> Option<String> {
        let unasked = || "it sends what nobody asked for: does a proxy send answers twice?".to_owned();
        self.wire.ended(self.id).or_else(|| self.wire.has_unread(self.id).then(unasked))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.wire.close(self.id);
    }
}

//! The connection to the store: batches of calls, each with its own answer or fault.

use std::time::Duration;

use redis::{Client, Cmd, Connection, FromRedisValue, RedisResult};

use crate::script::{By, Fault};

/// Most calls of a batch.
pub(crate) const MAX_BATCH: usize = 64;

/// One connection to one server.
pub(crate) struct Link {
    connection: Connection,
}

/// What each call of a batch came to, and how many had to be sent with their text.
pub(crate) struct Answers<T> {
    pub each: Vec<Result<T, Fault>>,
    pub with_text: u64,
}

impl Link {
    /// Connects; every later call ends within the timeout.
    pub(crate) fn open(client: &Client, timeout: Duration) -> RedisResult<Link> {
        let connection = client.get_connection_with_timeout(timeout)?;
        connection.set_read_timeout(Some(timeout))?;
        connection.set_write_timeout(Some(timeout))?;
        Ok(Link { connection })
    }

    /// One command.
    pub(crate) fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        command.query(&mut self.connection)
    }

    /// Sends the calls in one go. Exactly those that found no script did not run, and go again with the text.
    ///
    /// # Errors
    /// The fault of the whole batch: any of its calls may have run, and the link must be dropped.
    pub(crate) fn batch<T: FromRedisValue>(
        &mut self,
        calls: usize,
        command: impl Fn(usize, By) -> Cmd,
    ) -> Result<Answers<T>, Fault> {
        let all: Vec<usize> = (0..calls).collect();
        let mut each = self.send(&all, |call| command(call, By::Digest))?;
        let lacking = |(call, answer): (usize, &Result<T, Fault>)| {
            matches!(answer, Err(Fault::NoScript)).then_some(call)
        };
        let again: Vec<usize> = each.iter().enumerate().filter_map(lacking).collect();
        if !again.is_empty() {
            for (call, answer) in again.iter().zip(self.send(&again, |call| command(call, By::Text))?) {
                each[*call] = answer;
            }
        }
        Ok(Answers { each, with_text: again.len() as u64 })
    }

    fn send<T: FromRedisValue>(
        &mut self,
        calls: &[usize],
        command: impl Fn(usize) -> Cmd,
    ) -> Result<Vec<Result<T, Fault>>, Fault> {
        let mut pipe = redis::pipe();
        calls.iter().for_each(|call| {
            pipe.add_command(command(*call));
        });
        let replies: Vec<RedisResult<T>> =
            pipe.ignore_errors().query(&mut self.connection).map_err(|e| Fault::of(&e))?;
        if replies.len() != calls.len() {
            return Err(Fault::Lost);
        }
        Ok(replies.into_iter().map(|reply| reply.map_err(|e| Fault::of(&e))).collect())
    }
}

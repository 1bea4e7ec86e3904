//! A connection to one server of the store.

use std::time::Duration;

use redis::{Client, Cmd, Connection, FromRedisValue, RedisResult, Value};

/// One connection.
pub(crate) struct Link {
    connection: Connection,
}

impl Link {
    /// Connects; every later wait ends within the timeout.
    pub(crate) fn open(client: &Client, timeout: Duration) -> RedisResult<Link> {
        let connection = client.get_connection_with_timeout(timeout)?;
        connection.set_read_timeout(Some(timeout))?;
        connection.set_write_timeout(Some(timeout))?;
        Ok(Link { connection })
    }

    /// One command and its answer.
    pub(crate) fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        command.query(&mut self.connection)
    }

    /// Writes commands that were packed; their answers are to be read, each once.
    pub(crate) fn write(&mut self, packed: &[u8]) -> RedisResult<()> {
        self.connection.send_packed_command(packed)
    }

    /// Reads the next answer, an error of the server being one.
    ///
    /// # Errors
    /// The connection is of no more use.
    pub(crate) fn read(&mut self) -> RedisResult<Value> {
        self.connection.recv_response()
    }
}

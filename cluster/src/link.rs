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

    /// Sends one command and returns its answer.
    pub(crate) fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        command.query(&mut self.connection)
    }

    /// Writes packed commands. The caller must read each of their answers once.
    pub(crate) fn write(&mut self, packed: &[u8]) -> RedisResult<()> {
        self.connection.send_packed_command(packed)
    }

    /// Reads the next answer, which may be an error of the server.
    ///
    /// # Errors
    /// The connection is unusable.
    pub(crate) fn read(&mut self) -> RedisResult<Value> {
        self.connection.recv_response()
    }
}

//! One connection: reads what has come, answers all of it, and writes the answers at once.
//!
//! ```text
//!   read --> every whole command is answered --> write --> read ...
//!
//!   a client that does not read its answers is not read from either, so they never pile up
//!   stop, QUIT, a protocol error: answer what has come, close the sending side, then read and drop input until the
//!   client closes too, or for a second; closing at once would discard the answers (RST)
//! ```

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tatcell_door::Stop;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::resp;
use crate::server::{Server, Tally};
use crate::session::{Flow, Session};

/// Answers are written once they reach this many bytes, even if commands are left.
const WRITE: usize = 32 * 1024;

/// After this many bytes the other connections have their turn, so that one that sends without a pause delays them by
/// about 500 calls.
const TURN: usize = 32 * 1024;

/// The most reads after the stop: a client that keeps sending is not read for ever.
const LAST_READS: usize = 64;

const LINGER: Duration = Duration::from_secs(1);

/// Serves a client until it closes, is silent for too long, or the server stops.
///
/// # Errors
/// The error of the connection.
pub async fn serve(server: Arc<Server>, stream: TcpStream, id: u64, mut stop: Stop) -> io::Result<()> {
    let session = Session::new(id, !server.has_password());
    let (input, output) = (BytesMut::new(), Vec::new());
    let tally = Tally::default();
    let mut connection = Connection { server, stream, session, input, output, tally, greeted: false };
    let idle = connection.server.idle;
    let greet = Instant::now() + connection.server.greet.min(idle.unwrap_or(Duration::MAX));
    let (mut flow, mut turn) = (Flow::On, 0);
    while flow == Flow::On && !stop.is_said() {
        connection.input.reserve(4 * 1024);
        // A client that trickles its first command is as silent as one that sends nothing.
        let greeted = connection.greeted;
        let silent = async {
            match idle {
                _ if !greeted => tokio::time::sleep_until(greet).await,
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            read = connection.stream.read_buf(&mut connection.input) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                flow = connection.answer().await?;
                turn += read;
                if turn >= TURN {
                    turn = 0;
                    tokio::task::yield_now().await;
                }
            }
            () = stop.said() => {}
            () = silent => return Ok(()),
        }
    }
    for _ in 0..LAST_READS {
        if flow == Flow::Close {
            break;
        }
        connection.input.reserve(4 * 1024);
        match connection.stream.try_read_buf(&mut connection.input) {
            Ok(0) | Err(_) => break,
            Ok(_) => flow = connection.answer().await?,
        }
    }
    connection.stream.shutdown().await?;
    let _ = tokio::time::timeout(LINGER, connection.drop_the_rest()).await;
    Ok(())
}

struct Connection {
    server: Arc<Server>,
    stream: TcpStream,
    session: Session,
    input: BytesMut,
    output: Vec<u8>,
    tally: Tally,
    /// Whether a whole command has come.
    greeted: bool,
}

impl Connection {
    /// Answers every whole command that has come.
    async fn answer(&mut self) -> io::Result<Flow> {
        let flow = self.commands().await;
        self.server.count(&mut self.tally);
        let flow = flow?;
        self.write().await?;
        Ok(flow)
    }

    async fn commands(&mut self) -> io::Result<Flow> {
        loop {
            let used = match resp::parse(&self.input) {
                Ok(None) => return Ok(Flow::On),
                Ok(Some((args, used))) => {
                    if !args.is_empty() {
                        self.greeted = true;
                        let flow =
                            self.session.run(&self.server, &args, &mut self.output, &mut self.tally).await;
                        if flow == Flow::Close {
                            return Ok(flow);
                        }
                        while self.session.next(&self.server, &mut self.output, &mut self.tally).await {
                            self.write_if_long().await?;
                        }
                    }
                    used
                }
                Err(why) => {
                    self.tally.malformed += 1;
                    resp::error(&mut self.output, &format!("ERR Protocol error: {why}"));
                    return Ok(Flow::Close);
                }
            };
            self.input.advance(used);
            self.write_if_long().await?;
        }
    }

    async fn write_if_long(&mut self) -> io::Result<()> {
        if self.output.len() >= WRITE {
            self.write().await?;
        }
        Ok(())
    }

    async fn write(&mut self) -> io::Result<()> {
        // A client that reads no answer is silent, too.
        match self.server.idle {
            None => self.stream.write_all(&self.output).await?,
            Some(idle) => tokio::time::timeout(idle, self.stream.write_all(&self.output)).await??,
        }
        self.output.clear();
        // A long reply does not keep its memory.
        if self.output.capacity() > 2 * WRITE {
            self.output.shrink_to(WRITE);
        }
        Ok(())
    }

    async fn drop_the_rest(&mut self) -> io::Result<()> {
        loop {
            self.input.clear();
            self.input.reserve(4 * 1024);
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(());
            }
        }
    }
}

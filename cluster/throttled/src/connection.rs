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

use bytes::BufMut;
use tatcell_door::Stop;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::batch::{self, Batch};
use crate::resp::{self, MAX_COMMAND};
use crate::server::{Server, Tally};
use crate::session::{self, Flow, Session};

/// Answers are written before they reach this many bytes, even if commands are left.
const WRITE: usize = 32 * 1024;

/// The most bytes by which an answer is longer than its command.
const MORE: usize = 4 * 1024;

/// The most bytes of answers that wait to be written: those of one long command, or those of many, whose buffer may be
/// twice as long.
const ANSWERS: usize = if MAX_COMMAND + MORE > 2 * WRITE { MAX_COMMAND + MORE } else { 2 * WRITE };

/// The most bytes that a connection takes: a command, answers, a batch, whose buffer may be twice as long, what a
/// session keeps, and its task.
pub const HELD: usize = MAX_COMMAND + ANSWERS + 2 * batch::BYTES + session::KEPT + TASK;
const TASK: usize = 8 * 1024;

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
    let idle = server.idle;
    let answers = Answers { stream, bytes: Vec::new(), idle };
    let tally = Tally::default();
    let mut connection = Connection { server, answers, session, input: Vec::new(), tally, greeted: false };
    let greet = Instant::now() + connection.server.greet.min(idle.unwrap_or(Duration::MAX));
    let (mut flow, mut turn) = (Flow::On, 0);
    while matches!(flow, Flow::On) && !stop.is_said() {
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
            read = connection.read() => {
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
        if matches!(flow, Flow::Close) {
            break;
        }
        match connection.try_read() {
            Ok(0) | Err(_) => break,
            Ok(_) => flow = connection.answer().await?,
        }
    }
    connection.answers.stream.shutdown().await?;
    let _ = tokio::time::timeout(LINGER, connection.drop_the_rest()).await;
    Ok(())
}

struct Connection {
    server: Arc<Server>,
    answers: Answers,
    session: Session,
    input: Vec<u8>,
    tally: Tally,
    /// Whether a whole command has come.
    greeted: bool,
}

impl Connection {
    /// Returns the room for what comes. The buffer's length doubles from 4 KiB to that of the longest command.
    fn room(input: &mut Vec<u8>) -> impl BufMut + '_ {
        let room = MAX_COMMAND - input.len();
        input.reserve(room.min(4 * 1024));
        input.limit(room)
    }

    async fn read(&mut self) -> io::Result<usize> {
        let mut room = Connection::room(&mut self.input);
        self.answers.stream.read_buf(&mut room).await
    }

    fn try_read(&mut self) -> io::Result<usize> {
        let mut room = Connection::room(&mut self.input);
        self.answers.stream.try_read_buf(&mut room)
    }

    /// Answers every whole command that has come.
    async fn answer(&mut self) -> io::Result<Flow> {
        let flow = self.commands().await;
        self.server.count(&mut self.tally);
        let flow = flow?;
        self.answers.write().await?;
        Ok(flow)
    }

    async fn commands(&mut self) -> io::Result<Flow> {
        let mut at = 0;
        loop {
            match resp::parse(&self.input[at..]) {
                Ok(None) => {
                    self.input.drain(..at);
                    return Ok(Flow::On);
                }
                Ok(Some((args, used))) => {
                    at += used;
                    if args.is_empty() {
                        continue;
                    }
                    self.greeted = true;
                    self.answers.make_room(used).await?;
                    let out = &mut self.answers.bytes;
                    match self.session.run(&self.server, &args, out, &mut self.tally).await {
                        Flow::On => {}
                        Flow::Run(batch) => self.run(batch).await?,
                        Flow::Close => return Ok(Flow::Close),
                    }
                }
                Err(why) => {
                    self.tally.malformed += 1;
                    resp::error(&mut self.answers.bytes, &format!("ERR Protocol error: {why}"));
                    return Ok(Flow::Close);
                }
            }
        }
    }

    /// Runs a batch. Its answers are written as those of other commands are.
    async fn run(&mut self, batch: Batch) -> io::Result<()> {
        for (args, used) in batch.commands() {
            self.answers.make_room(used).await?;
            self.session.one(&self.server, &args, &mut self.answers.bytes, &mut self.tally).await;
        }
        Ok(())
    }

    async fn drop_the_rest(&mut self) -> io::Result<()> {
        loop {
            self.input.clear();
            if self.read().await? == 0 {
                return Ok(());
            }
        }
    }
}

/// The stream, and the answers that wait to be written to it.
struct Answers {
    stream: TcpStream,
    bytes: Vec<u8>,
    idle: Option<Duration>,
}

impl Answers {
    /// Makes room for the answer to a command of this length.
    async fn make_room(&mut self, command: usize) -> io::Result<()> {
        let most = command + MORE;
        if self.bytes.len() + most > WRITE {
            self.write().await?;
            if most > WRITE {
                self.bytes.reserve_exact(most);
            }
        }
        Ok(())
    }

    async fn write(&mut self) -> io::Result<()> {
        // A client that reads no answer is silent, too.
        match self.idle {
            None => self.stream.write_all(&self.bytes).await?,
            Some(idle) => tokio::time::timeout(idle, self.stream.write_all(&self.bytes)).await??,
        }
        debug_assert!(self.bytes.capacity() <= ANSWERS, "{}", self.bytes.capacity());
        self.bytes.clear();
        self.bytes.shrink_to(2 * WRITE);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tatcell_door::Settings;

    use super::*;
    use crate::commands::COMMANDS;
    use crate::server::ServerSettings;

    #[test]
    fn an_answer_is_at_most_so_much_longer_than_its_command() {
        let settings = Settings::file("none", "").and_then(ServerSettings::take).expect("settings");
        let server = Server::new(&settings, settings.keeper.open(&[]).expect("tables"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let mut session = Session::new(u64::MAX >> 1, true);
        let long = [0xff; 60_000];
        let kinds: [&[&[u8]]; 7] =
            [&[], &[b"INFO"], &[b"GETKEYS", b"DEL"], &[b"GETNAME"], &[b"SETNAME"], &[b"3"], &[b"0"]];
        let rests: [Vec<&[u8]>; 5] =
            [vec![], vec![&long[..]], vec![&long[..256]], vec![&b""[..]; 29], vec![&b"cl.throttle"[..]; 29]];
        let mut most = 0;
        for (name, ..) in COMMANDS {
            for (kind, rest) in kinds.iter().flat_map(|kind| rests.iter().map(move |rest| (kind, rest))) {
                let words: Vec<&[u8]> =
                    [name.as_bytes()].into_iter().chain(kind.iter().chain(rest).copied()).collect();
                let (mut bytes, mut out) = (Vec::new(), Vec::new());
                resp::array_of(&mut bytes, words.len());
                words.iter().for_each(|word| resp::bulk(&mut bytes, word));
                let Ok(Some((args, used))) = resp::parse(&bytes) else { panic!("{words:?}") };
                runtime.block_on(session.one(&server, &args, &mut out, &mut Tally::default()));
                most = most.max(out.len().saturating_sub(used));
                assert!(out.len() <= used + MORE, "{words:?}: {}", out.len());
            }
        }
        // Some answers are nearly as long.
        assert!(most > MORE / 4, "{most}");
    }
}

//! Runs the machine of a node: the thread, its sockets, its clock and its waiting. It decides nothing.
//!
//! The thread waits for its sockets, the bell and the machine's deadline at once. A stream is made by a thread of its
//! own, because to find a name's address waits, sometimes for seconds. If the machine gives up before, the next one that
//! it asks for at this address takes what that thread makes. So no more threads run than the machine waits for, and an
//! address that is found slowly is found.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};
use redis::ConnectionAddr;
use tatcell::host::HostError;

use crate::error::OpenError;
use crate::machine::Machine;
use crate::node::{Job, Node};
use crate::opening::Opening;
use crate::streams::{Stream, Streams};
use crate::wire::{Action, Event, LinkId, Now};

/// The token of the bell; that of a stream is its number, which is above 0.
const BELL: Token = Token(0);

/// How many bytes are read at once.
const READ: usize = 1 << 14;

type Made = (ConnectionAddr, io::Result<Stream>);

/// The streams to one address that are being made.
#[derive(Default)]
struct Making {
    /// Threads that make one.
    threads: usize,
    /// Who wants one, in order; the machine may have given some of them up.
    waiting: VecDeque<LinkId>,
    /// One that came after its machine gave up.
    spare: Option<Stream>,
}

/// Where the thread says whether the node could be opened.
pub(crate) type Opened = Receiver<Result<(), OpenError>>;

struct Driver {
    node: Arc<Node>,
    machine: Machine,
    started: Instant,
    steps: u64,
    poll: Poll,
    waker: Arc<Waker>,
    streams: Streams,
    /// `None` while it is being made.
    links: HashMap<LinkId, Option<Stream>>,
    making: HashMap<String, Making>,
    made: (Sender<Made>, Receiver<Made>),
    /// Events that came up while the machine's actions were done.
    events: VecDeque<(LinkId, io::Result<Stream>)>,
    opened: SyncSender<Result<(), OpenError>>,
    buffer: Box<[u8]>,
}

/// Starts the thread of a node. It says whether the node could be opened.
pub(crate) fn start(
    node: Arc<Node>,
    streams: Streams,
    opening: Opening,
    jobs: Receiver<Job>,
) -> Result<(JoinHandle<()>, Opened), OpenError> {
    let system =
        |error: io::Error| OpenError::Host(HostError::System(error.raw_os_error().unwrap_or_default()));
    let poll = Poll::new().map_err(system)?;
    let waker = Arc::new(Waker::new(poll.registry(), BELL).map_err(system)?);
    let by_bell = waker.clone();
    // If it cannot be woken, it wakes by itself at its deadline.
    node.bell.set_wake(move || drop(by_bell.wake()));
    let (tell, opened) = sync_channel(1);
    let run = move || {
        let machine = Machine::new(node.clone(), opening, jobs);
        let driver = Driver {
            node,
            machine,
            started: Instant::now(),
            steps: 0,
            poll,
            waker,
            streams,
            links: HashMap::new(),
            making: HashMap::new(),
            made: channel(),
            events: VecDeque::new(),
            opened: tell,
            buffer: vec![0; READ].into(),
        };
        driver.run();
    };
    let thread = Builder::new().name("tatcell-cluster".into()).spawn(run).map_err(system)?;
    Ok((thread, opened))
}

impl Driver {
    fn run(mut self) {
        let mut events = Events::with_capacity(64);
        self.step(Event::Time);
        while !self.machine.is_done() {
            let (deadline, now) = (self.machine.deadline(), self.timer());
            let timeout = (deadline != u64::MAX).then(|| Duration::from_nanos(deadline.saturating_sub(now)));
            // It fails if a signal comes.
            if self.poll.poll(&mut events, timeout).is_err() {
                events.clear();
            }
            let steps = self.steps;
            while let Ok((at, made)) = self.made.1.try_recv() {
                self.made(&at, made);
            }
            for event in events.iter().filter(|event| event.token() != BELL) {
                let id = LinkId(event.token().0 as u64);
                if event.is_writable() {
                    self.write(id, Stream::flush);
                }
                if event.is_readable() || event.is_read_closed() || event.is_error() {
                    self.read(id, event.is_read_closed() || event.is_error());
                }
            }
            if self.steps == steps || !self.events.is_empty() {
                self.step(Event::Time);
            }
        }
    }

    fn timer(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Steps the machine, and does what it says.
    fn step(&mut self, event: Event<'_>) {
        self.step_once(event);
        while let Some((id, result)) = self.events.pop_front() {
            match result.and_then(|stream| self.link(id, stream)) {
                Ok(()) => self.step_once(Event::Connected(id)),
                Err(error) => self.step_once(Event::Closed(id, error.to_string())),
            }
        }
        if let Some(opened) = self.machine.opened() {
            // The opener waits for it.
            let _ = self.opened.try_send(opened);
        }
    }

    fn step_once(&mut self, event: Event<'_>) {
        self.steps = self.steps.wrapping_add(1);
        let now = Now { reading: self.node.clock.read(), timer: self.timer() };
        for action in self.machine.step(now, event) {
            match action {
                Action::Connect(id, at) => self.connect(id, at),
                Action::Send(id, bytes) => self.write(id, |stream| stream.send(bytes)),
                Action::Close(id) => drop(self.links.remove(&id)),
            }
        }
    }

    fn connect(&mut self, id: LinkId, at: ConnectionAddr) {
        self.links.insert(id, None);
        let making = self.making.entry(at.to_string()).or_default();
        if let Some(stream) = making.spare.take() {
            return self.events.push_back((id, Ok(stream)));
        }
        making.waiting.retain(|id| self.links.contains_key(id));
        making.waiting.push_back(id);
        if making.threads >= making.waiting.len() {
            return;
        }
        let (streams, tell, waker) = (self.streams.clone(), self.made.0.clone(), self.waker.clone());
        let make = move || {
            let made = streams.connect(&at);
            // If nobody takes it, the node was closed.
            let _ = tell.send((at, made));
            let _ = waker.wake();
        };
        match Builder::new().name("tatcell-connect".into()).spawn(make) {
            Ok(_) => making.threads += 1,
            Err(error) => self.events.push_back((id, Err(error))),
        }
    }

    /// A thread is done: the first one that still waits takes the stream.
    fn made(&mut self, at: &ConnectionAddr, made: io::Result<Stream>) {
        let Some(making) = self.making.get_mut(&at.to_string()) else { return };
        making.threads -= 1;
        making.waiting.retain(|id| self.links.contains_key(id));
        match making.waiting.pop_front() {
            Some(id) => {
                self.events.push_back((id, made));
                self.step(Event::Time);
            }
            None => making.spare = made.ok(),
        }
    }

    fn link(&mut self, id: LinkId, mut stream: Stream) -> io::Result<()> {
        // If the machine gave up meanwhile, the stream is dropped.
        let Some(link) = self.links.get_mut(&id) else { return Ok(()) };
        stream.register(self.poll.registry(), Token(id.0 as usize))?;
        *link = Some(stream);
        Ok(())
    }

    fn write(&mut self, id: LinkId, write: impl FnOnce(&mut Stream) -> io::Result<()>) {
        let Some(Some(stream)) = self.links.get_mut(&id) else { return };
        if let Err(error) = write(stream) {
            self.events.push_back((id, Err(error)));
        }
    }

    /// Reads all that has come; up to the end, if the other end is `closed`.
    fn read(&mut self, id: LinkId, closed: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        // The machine may drop the stream meanwhile.
        while let Some(Some(stream)) = self.links.get_mut(&id) {
            match stream.read(&mut buffer) {
                Ok(0) => {
                    self.step(Event::Closed(id, "the server closed the connection".into()));
                    break;
                }
                Ok(read) => {
                    self.step(Event::Bytes(id, &buffer[..read]));
                    if read < buffer.len() && !closed && self.drained(id) {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.step(Event::Closed(id, error.to_string()));
                    break;
                }
            }
        }
        self.buffer = buffer;
    }

    /// Returns whether a short read says that the socket has no more.
    fn drained(&self, id: LinkId) -> bool {
        matches!(self.links.get(&id), Some(Some(stream)) if stream.is_plain())
    }
}

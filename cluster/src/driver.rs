//! Runs the machine of a node: the thread, its sockets, its clock and its waiting. It decides nothing.
//!
//! The thread waits for its sockets, the bell and the machine's deadline at once. **Bytes come before time**: it tells
//! the machine all that has come until a time, from every socket, before it steps with that time. So if the process was
//! stopped, answers that lie in the sockets count as come in time.
//!
//! A stream is made by a thread of its own, because to find a name's address waits, sometimes for seconds. If the
//! machine gives up before, the next one that it asks for at this address takes what that thread makes. So no more
//! threads run than the machine waits for, and an address that is found slowly is found.

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

/// How many bytes are read at once, and how often from one stream before the machine is stepped: a server that sends
/// without an end must not keep the thread. The machine takes four times as much before it gives such a server up.
const READ: usize = 1 << 14;
const READS: usize = 16;

/// How long a stream is kept that came after its machine gave up: longer than the machine waits between two tries. The
/// server may have closed an older one, and counts it as a client.
const SPARE: Duration = Duration::from_secs(2);

type Made = (ConnectionAddr, io::Result<Stream>);

/// The streams to one address that are being made.
#[derive(Default)]
struct Making {
    /// Threads that make one.
    threads: usize,
    /// Who wants one, in order; the machine may have given some of them up.
    waiting: VecDeque<LinkId>,
    /// One that came after its machine gave up, and when.
    spare: Option<(Stream, u64)>,
}

/// Where the thread says whether the node could be opened.
pub(crate) type Opened = Receiver<Result<(), OpenError>>;

struct Driver {
    node: Arc<Node>,
    machine: Machine,
    started: Instant,
    /// The time of the timer until which everything that came was told.
    time: u64,
    poll: Poll,
    waker: Arc<Waker>,
    streams: Streams,
    /// `None` while it is being made.
    links: HashMap<LinkId, Option<Stream>>,
    making: HashMap<String, Making>,
    made: (Sender<Made>, Receiver<Made>),
    /// Streams from which more can be read.
    unfinished: Vec<LinkId>,
    /// Whether something was told since the last step.
    told: bool,
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
        Driver::new(node, machine, (poll, waker), streams, tell).run();
    };
    let thread = Builder::new().name("tatcell-cluster".into()).spawn(run).map_err(system)?;
    Ok((thread, opened))
}

impl Driver {
    fn new(
        node: Arc<Node>,
        machine: Machine,
        (poll, waker): (Poll, Arc<Waker>),
        streams: Streams,
        opened: SyncSender<Result<(), OpenError>>,
    ) -> Driver {
        Driver {
            node,
            machine,
            started: Instant::now(),
            time: 0,
            poll,
            waker,
            streams,
            links: HashMap::new(),
            making: HashMap::new(),
            made: channel(),
            unfinished: Vec::new(),
            told: false,
            opened,
            buffer: vec![0; READ].into(),
        }
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(64);
        self.step();
        while !self.machine.is_done() {
            self.turn(&mut events);
        }
    }

    /// Waits until there is something to do, and steps the machine.
    fn turn(&mut self, events: &mut Events) {
        let (deadline, now) = (self.machine.deadline(), self.timer());
        let timeout = (deadline != u64::MAX).then(|| Duration::from_nanos(deadline.saturating_sub(now)));
        self.wait(events, if self.unfinished.is_empty() { timeout } else { Some(Duration::ZERO) });
        self.time = self.timer();
        self.drop_old();
        self.take(events);
        if self.machine.deadline() <= self.time {
            // Something may be late at this time, so what came before it must be known.
            self.wait(events, Some(Duration::ZERO));
            self.take(events);
        }
        self.step();
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) {
        // It fails if a signal comes.
        if self.poll.poll(events, timeout).is_err() {
            events.clear();
        }
    }

    /// Tells the machine what has come.
    fn take(&mut self, events: &Events) {
        while let Ok((at, made)) = self.made.1.try_recv() {
            self.made(&at, made);
        }
        for id in std::mem::take(&mut self.unfinished) {
            self.read(id, true);
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
    }

    fn timer(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn tell(&mut self, event: Event<'_>) {
        self.machine.tell(self.time, event);
        self.told = true;
    }

    /// Steps the machine, and does what it says, until that brings nothing new.
    fn step(&mut self) {
        loop {
            self.told = false;
            // After the bytes were read, because what they say is no older than their answer.
            let now = Now { reading: self.node.clock.read(), timer: self.time };
            for action in self.machine.step(now, Event::Time) {
                match action {
                    Action::Connect(id, at) => self.connect(id, at),
                    Action::Send(id, bytes) => self.write(id, |stream| stream.send(bytes)),
                    Action::Close(id) => drop(self.links.remove(&id)),
                }
            }
            if !self.told {
                break;
            }
        }
        if let Some(opened) = self.machine.opened() {
            // The opener waits for it.
            let _ = self.opened.try_send(opened);
        }
    }

    /// Drops streams that nobody has asked for in time. Some step comes every few seconds.
    fn drop_old(&mut self) {
        let (now, spare) = (self.time, SPARE.as_nanos() as u64);
        for making in self.making.values_mut() {
            making.spare.take_if(|(_, since)| now.saturating_sub(*since) > spare);
        }
        self.making.retain(|_, making| making.threads > 0 || making.spare.is_some());
    }

    fn connect(&mut self, id: LinkId, at: ConnectionAddr) {
        self.links.insert(id, None);
        let making = self.making.entry(at.to_string()).or_default();
        if let Some((stream, _)) = making.spare.take() {
            return self.link(id, Ok(stream));
        }
        making.waiting.retain(|id| self.links.contains_key(id));
        making.waiting.push_back(id);
        self.make(at);
    }

    /// Starts a thread that makes a stream, if more are wanted than are being made.
    fn make(&mut self, at: ConnectionAddr) {
        let Some(making) = self.making.get_mut(&at.to_string()) else { return };
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
            Err(error) => {
                if let Some(id) = making.waiting.pop_back() {
                    self.tell(Event::Closed(id, error.to_string()));
                }
            }
        }
    }

    /// A thread is done: the first one that still waits takes the stream.
    fn made(&mut self, at: &ConnectionAddr, made: io::Result<Stream>) {
        let Some(making) = self.making.get_mut(&at.to_string()) else { return };
        making.threads -= 1;
        making.waiting.retain(|id| self.links.contains_key(id));
        if matches!(&made, Err(error) if error.kind() == io::ErrorKind::TimedOut) {
            // It may have begun long before whoever waits now asked. When that one is late, the machine knows itself.
            return self.make(at.clone());
        }
        match making.waiting.pop_front() {
            Some(id) => self.link(id, made),
            None => {
                if let Ok(stream) = made {
                    making.spare = Some((stream, self.time));
                }
            }
        }
    }

    fn link(&mut self, id: LinkId, made: io::Result<Stream>) {
        // If the machine gave up meanwhile, the stream is dropped.
        let Some(link) = self.links.get_mut(&id) else { return };
        let made = made.and_then(|mut stream| {
            stream.register(self.poll.registry(), Token(id.0 as usize))?;
            *link = Some(stream);
            Ok(())
        });
        match made {
            Ok(()) => self.tell(Event::Connected(id)),
            Err(error) => self.tell(Event::Closed(id, error.to_string())),
        }
    }

    fn write(&mut self, id: LinkId, write: impl FnOnce(&mut Stream) -> io::Result<()>) {
        let Some(Some(stream)) = self.links.get_mut(&id) else { return };
        if let Err(error) = write(stream) {
            self.tell(Event::Closed(id, error.to_string()));
        }
    }

    /// Reads what has come, up to a bound. If the other end is `closed`, a short read is not the last one.
    fn read(&mut self, id: LinkId, closed: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut more = READS;
        while more > 0 {
            let Some(Some(stream)) = self.links.get_mut(&id) else { break };
            match stream.read(&mut buffer) {
                Ok(0) => {
                    self.tell(Event::Closed(id, "the server closed the connection".into()));
                    break;
                }
                Ok(read) => {
                    more -= 1;
                    self.tell(Event::Bytes(id, &buffer[..read]));
                    if read < buffer.len() && !closed && self.drained(id) {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.tell(Event::Closed(id, error.to_string()));
                    break;
                }
            }
        }
        if more == 0 && !self.unfinished.contains(&id) {
            // No new edge says so.
            self.unfinished.push(id);
        }
        self.buffer = buffer;
    }

    /// Returns whether a short read says that the socket has no more.
    fn drained(&self, id: LinkId) -> bool {
        matches!(self.links.get(&id), Some(Some(stream)) if stream.is_plain())
    }
}

#[cfg(all(test, unix, not(tatcell_cluster_loom)))]
#[path = "driver_tests.rs"]
mod driver_tests;

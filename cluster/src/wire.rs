//! The edge of the store's machine: time and bytes come in, actions go out. No I/O happens here, and no clock is read.
//!
//! ```text
//!   Event   Time, Connected, Bytes, Closed  --->  step(now, event)  --->  Connect, Send, Close   Action
//!                                                 deadline()        --->  when to step again at the latest
//! ```
//!
//! The tasks of the machine share one [`Wire`]. Each waits by asking again at each step: whether its bytes are here, or
//! its time has come. The earliest of all times that they wait for is the deadline.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::{poll_fn, Future};
use std::io::{self, Read};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use redis::ConnectionAddr;

use crate::clock::NodeClock;

/// The time of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// A reading of the node's clock, by which requests are decided; nanoseconds.
    pub reading: u64,
    /// The time by which the machine waits, nanoseconds since any moment. It never goes back.
    pub timer: u64,
}

/// Identifies a stream of bytes to a server. No number is used twice by one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

/// What has happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// Only time has passed, or a worker rang.
    Time,
    /// A stream that was asked for is there.
    Connected(LinkId),
    /// Bytes came, in their order.
    Bytes(LinkId, &'a [u8]),
    /// A stream could not be made, or has ended. The text says why.
    Closed(LinkId, String),
}

/// What to do now.
#[derive(Debug)]
pub enum Action {
    /// Make a stream to this address, and report `Connected` or `Closed`.
    Connect(LinkId, ConnectionAddr),
    /// Write all of these bytes, after those that were given before.
    Send(LinkId, Vec<u8>),
    /// Drop the stream. Later events of it are ignored.
    Close(LinkId),
}

/// The most bytes of a stream that nobody has asked for.
const MAX_UNREAD: usize = 1 << 20;

/// A task besides the machine's main one.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Default)]
struct Stream {
    connected: bool,
    /// Why it ended.
    ended: Option<String>,
    unread: VecDeque<u8>,
    /// When something was last sent or received.
    touched: u64,
}

struct Inner {
    now: Now,
    streams: BTreeMap<LinkId, Stream>,
    last: u64,
    actions: Vec<Action>,
    deadline: u64,
    /// Whether the main task waits for the bell too.
    listens: bool,
    tasks: Vec<Task>,
    /// How many streams were not made in time.
    late: u64,
    /// How many steps there were.
    steps: u64,
}

/// What the tasks of a machine share.
#[derive(Clone)]
pub(crate) struct Wire {
    inner: Rc<RefCell<Inner>>,
    clock: NodeClock,
}

pub(crate) fn later(timer: u64, time: Duration) -> u64 {
    timer.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl Wire {
    pub(crate) fn new(clock: NodeClock) -> Wire {
        let inner = Inner {
            now: Now::default(),
            streams: BTreeMap::new(),
            last: 0,
            actions: Vec::new(),
            deadline: u64::MAX,
            listens: false,
            tasks: Vec::new(),
            late: 0,
            steps: 0,
        };
        Wire { inner: Rc::new(RefCell::new(inner)), clock }
    }

    /// Records what has happened, at a time of the timer.
    pub(crate) fn take(&self, timer: u64, event: Event<'_>) {
        let inner = &mut *self.inner.borrow_mut();
        let (Event::Connected(id) | Event::Bytes(id, _) | Event::Closed(id, _)) = &event else { return };
        let Some(stream) = inner.streams.get_mut(id) else { return };
        match event {
            Event::Connected(_) => (stream.connected, stream.touched) = (true, timer),
            Event::Bytes(_, bytes) if stream.unread.len() + bytes.len() <= MAX_UNREAD => {
                stream.unread.extend(bytes);
                stream.touched = timer;
            }
            Event::Bytes(..) => stream.ended = Some("it sends more than it was asked for".into()),
            Event::Closed(_, why) => stream.ended = Some(why),
            Event::Time => {}
        }
    }

    /// Sets the time of a step.
    pub(crate) fn set(&self, now: Now) {
        let inner = &mut *self.inner.borrow_mut();
        (inner.now, inner.steps) = (now, inner.steps.wrapping_add(1));
    }

    /// Returns the number of this step.
    pub(crate) fn step(&self) -> u64 {
        self.inner.borrow().steps
    }

    /// Forgets the deadline of the last step; whoever still waits names its time again.
    pub(crate) fn begin(&self) {
        let inner = &mut *self.inner.borrow_mut();
        (inner.deadline, inner.listens) = (u64::MAX, false);
    }

    /// Says that the bell ends the wait of this step too.
    pub(crate) fn listen(&self) {
        self.inner.borrow_mut().listens = true;
    }

    pub(crate) fn listens(&self) -> bool {
        self.inner.borrow().listens
    }

    pub(crate) fn actions(&self) -> Vec<Action> {
        std::mem::take(&mut self.inner.borrow_mut().actions)
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.inner.borrow().deadline
    }

    /// Starts a task; it ends with the machine.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.inner.borrow_mut().tasks.push(Box::pin(task));
    }

    /// Takes the tasks that were started since the last call.
    pub(crate) fn spawned(&self) -> Vec<Task> {
        std::mem::take(&mut self.inner.borrow_mut().tasks)
    }

    /// Returns the time of this step by the node's clock: nanoseconds since a second before the node started.
    pub(crate) fn now(&self) -> u64 {
        self.clock.of(self.inner.borrow().now.reading)
    }

    /// Returns the time of this step by the timer.
    pub(crate) fn timer(&self) -> u64 {
        self.inner.borrow().now.timer
    }

    /// Returns the timer's time that much later.
    pub(crate) fn after(&self, time: Duration) -> u64 {
        later(self.timer(), time)
    }

    /// Returns whether the time has come; if not, the machine is stepped then at the latest.
    pub(crate) fn due(&self, until: u64) -> bool {
        let inner = &mut *self.inner.borrow_mut();
        let due = inner.now.timer >= until;
        if !due {
            inner.deadline = inner.deadline.min(until);
        }
        due
    }

    /// Lets the machine be stepped again at once, with a new time.
    pub(crate) async fn pause(&self) {
        let step = self.step();
        poll_fn(|_| {
            if self.step() != step {
                return Poll::Ready(());
            }
            self.inner.borrow_mut().deadline = 0;
            Poll::Pending
        })
        .await;
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        let until = self.after(time);
        poll_fn(|_| if self.due(until) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Makes a stream, within the timeout.
    pub(crate) async fn connect(&self, at: &ConnectionAddr, timeout: Duration) -> io::Result<LinkId> {
        let (id, until) = {
            let inner = &mut *self.inner.borrow_mut();
            inner.last += 1;
            let id = LinkId(inner.last);
            inner.streams.insert(id, Stream::default());
            inner.actions.push(Action::Connect(id, at.clone()));
            (id, later(inner.now.timer, timeout))
        };
        let connected = poll_fn(|_| match self.inner.borrow().streams.get(&id) {
            Some(Stream { ended: Some(why), .. }) => Poll::Ready(Err(io::Error::other(why.clone()))),
            Some(Stream { connected: true, .. }) => Poll::Ready(Ok(id)),
            _ => Poll::Pending,
        });
        let connected = self.within(until, timeout, connected).await;
        if let Err(error) = &connected {
            self.inner.borrow_mut().late += u64::from(error.kind() == io::ErrorKind::TimedOut);
            self.close(id);
        }
        connected
    }

    /// Returns how many streams were not made in time. The next one to such an address may be there at once.
    pub(crate) fn late(&self) -> u64 {
        self.inner.borrow().late
    }

    /// Waits for a stream until a time.
    async fn within<T>(
        &self,
        until: u64,
        timeout: Duration,
        mut result: impl Future<Output = io::Result<T>> + Unpin,
    ) -> io::Result<T> {
        poll_fn(|context| match Pin::new(&mut result).poll(context) {
            Poll::Pending if self.due(until) => {
                let why = format!("no connection within {timeout:?} (name, TCP and TLS)");
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
            }
            polled => polled,
        })
        .await
    }

    /// Sends bytes.
    pub(crate) fn send(&self, id: LinkId, bytes: Vec<u8>) -> io::Result<()> {
        let inner = &mut *self.inner.borrow_mut();
        if let Some(stream) = inner.streams.get_mut(&id) {
            if let Some(why) = &stream.ended {
                return Err(io::Error::other(why.clone()));
            }
            stream.touched = inner.now.timer;
        }
        inner.actions.push(Action::Send(id, bytes));
        Ok(())
    }

    /// Returns why a stream has ended, if it has. It may have unread bytes.
    pub(crate) fn ended(&self, id: LinkId) -> Option<String> {
        self.inner.borrow().streams.get(&id)?.ended.clone()
    }

    /// Returns whether a stream has bytes that were not read.
    pub(crate) fn has_unread(&self, id: LinkId) -> bool {
        self.inner.borrow().streams.get(&id).is_some_and(|stream| !stream.unread.is_empty())
    }

    /// Returns when something was last sent or received.
    pub(crate) fn touched(&self, id: LinkId) -> u64 {
        self.inner.borrow().streams.get(&id).map_or(0, |stream| stream.touched)
    }

    /// Drops a stream.
    pub(crate) fn close(&self, id: LinkId) {
        let inner = &mut *self.inner.borrow_mut();
        if inner.streams.remove(&id).is_some() {
            inner.actions.push(Action::Close(id));
        }
    }
}

/// The error of what did not come in time.
pub(crate) fn late(timeout: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {timeout:?}"))
}

/// Reads what has come; `starved` says that there was nothing more.
pub(crate) struct Unread<'a> {
    pub wire: &'a Wire,
    pub id: LinkId,
    pub starved: bool,
}

impl Read for Unread<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let inner = &mut *self.wire.inner.borrow_mut();
        let read = inner.streams.get_mut(&self.id).map_or(Ok(0), |stream| stream.unread.read(into))?;
        self.starved = read == 0;
        if self.starved && !into.is_empty() {
            // The parser keeps what it has, and goes on when it is called again.
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(read)
    }
}

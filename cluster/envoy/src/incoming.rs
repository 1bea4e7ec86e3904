//! The connections of proxies: a bounded number, and none that stays idle for long.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tatcell_door::{accept, Stop};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

/// Counts connections.
#[derive(Debug)]
pub(crate) struct Clients {
    places: Arc<Semaphore>,
    most: usize,
    turned_away: AtomicU64,
}

/// When a connection asked for something the last time.
#[derive(Clone, Debug)]
pub(crate) struct Used(Arc<(Instant, AtomicU64)>);

/// How long a connection may keep its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Until it has sent the first bytes of HTTP/2.
    pub greet: Duration,
    /// Without a request.
    pub idle: Duration,
}

/// After this many bytes without a pause the other connections have their turn.
const TURN: usize = 16 * 1024;

/// The bytes with which every client of HTTP/2 begins.
const PREFACE: usize = 24;

/// A connection, and its place among the clients.
pub(crate) struct Client {
    stream: TcpStream,
    used: Used,
    times: Times,
    /// The bytes that came, as far as they matter.
    greeted: usize,
    /// The bytes that were read without a pause.
    turn: usize,
    sleep: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl Clients {
    /// Allows this many at once.
    pub(crate) fn new(most: usize) -> Clients {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Clients { places: Arc::new(Semaphore::new(most)), most, turned_away: AtomicU64::new(0) }
    }

    /// Returns how many are connected, and how many were turned away.
    pub(crate) fn counts(&self) -> (u64, u64) {
        // ORDERING: Relaxed; a value.
        let turned_away = self.turned_away.load(Ordering::Relaxed);
        ((self.most - self.places.available_permits()) as u64, turned_away)
    }

    /// Accepts until the stop. A connection that does not greet in time, or asks nothing for long, is closed.
    pub(crate) fn incoming(
        self: Arc<Clients>,
        listener: TcpListener,
        times: Times,
        mut stop: Stop,
    ) -> ReceiverStream<io::Result<Client>> {
        let (send, receive) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(stream) = accept("tatcell-ratelimit", &listener, &mut stop).await {
                let Ok(place) = self.places.clone().try_acquire_owned() else {
                    // ORDERING: Relaxed; a value.
                    self.turned_away.fetch_add(1, Ordering::Relaxed);
                    continue;
                };
                let _: io::Result<()> = stream.set_nodelay(true);
                let used = Used(Arc::new((Instant::now(), AtomicU64::new(0))));
                let sleep = Box::pin(tokio::time::sleep(times.greet.min(times.idle)));
                let client = Client { stream, used, times, greeted: 0, turn: 0, sleep, _place: place };
                if send.send(Ok(client)).await.is_err() {
                    return;
                }
            }
        });
        ReceiverStream::new(receive)
    }
}

impl Used {
    /// Says that a request has come.
    pub(crate) fn now(&self) {
        let (begin, ms) = &*self.0;
        // ORDERING: Relaxed; a value.
        ms.store(begin.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        let (begin, ms) = &*self.0;
        // ORDERING: Relaxed; a value.
        *begin + Duration::from_millis(ms.load(Ordering::Relaxed))
    }
}

impl Connected for Client {
    type ConnectInfo = Used;

    fn connect_info(&self) -> Used {
        self.used.clone()
    }
}

impl AsyncRead for Client {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.sleep.as_mut().poll(context).is_ready() {
            // Bytes alone do not count: a client that only answers pings is silent.
            let greet = self.used.0 .0 + self.times.greet;
            let until = match self.greeted < PREFACE {
                true => greet.min(self.used.last() + self.times.idle),
                false => self.used.last() + self.times.idle,
            };
            if until <= Instant::now() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.sleep.as_mut().reset(until);
        }
        if self.turn >= TURN {
            self.turn = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        let came = into.filled().len() - before;
        self.greeted = self.greeted.saturating_add(came);
        self.turn = if read.is_ready() { self.turn + came } else { 0 };
        read
    }
}

impl AsyncWrite for Client {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

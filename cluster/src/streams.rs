//! Streams of bytes to servers: TCP, socket files, and TLS over TCP. To make one waits for the network. Afterwards no
//! call waits.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use mio::event::Source;
use mio::{Interest, Registry, Token};
use redis::ConnectionAddr;

#[cfg(feature = "tls")]
use crate::tls::{Session, Tls};

/// How streams are made.
#[derive(Clone)]
pub(crate) struct Streams {
    pub timeout: Duration,
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
}

/// One stream.
pub(crate) struct Stream {
    socket: Socket,
    #[cfg(feature = "tls")]
    session: Option<Session>,
    /// What the system did not take yet, from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
}

pub(crate) enum Socket {
    Tcp(mio::net::TcpStream),
    #[cfg(unix)]
    Unix(mio::net::UnixStream),
}

impl Streams {
    /// Makes a stream; waits for the network, up to the timeout for each address of the host and each wait of TLS.
    pub(crate) fn connect(&self, at: &ConnectionAddr) -> io::Result<Stream> {
        match at {
            ConnectionAddr::Tcp(host, port) => {
                let socket = self.tcp(host, *port)?;
                socket.set_nonblocking(true)?;
                Ok(Stream::new(Socket::Tcp(mio::net::TcpStream::from_std(socket))))
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => {
                let socket = std::os::unix::net::UnixStream::connect(path)?;
                socket.set_nonblocking(true)?;
                Ok(Stream::new(Socket::Unix(mio::net::UnixStream::from_std(socket))))
            }
            #[cfg(feature = "tls")]
            ConnectionAddr::TcpTls { host, port, insecure, .. } => {
                let mut socket = self.tcp(host, *port)?;
                socket.set_read_timeout(Some(self.timeout))?;
                socket.set_write_timeout(Some(self.timeout))?;
                let session = Session::open(self.tls.as_ref(), host, *insecure, &mut socket);
                let session = session.map_err(|error| self.said(error, "TLS"))?;
                socket.set_nonblocking(true)?;
                let stream = Stream::new(Socket::Tcp(mio::net::TcpStream::from_std(socket)));
                Ok(Stream { session: Some(session), ..stream })
            }
            _ => Err(io::Error::other("this build has no connection of this kind")),
        }
    }

    fn tcp(&self, host: &str, port: u16) -> io::Result<std::net::TcpStream> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (host, port).to_socket_addrs()? {
            match self.tcp_to(&address) {
                Ok(socket) => return Ok(socket),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn tcp_to(&self, address: &SocketAddr) -> io::Result<std::net::TcpStream> {
        let socket = std::net::TcpStream::connect_timeout(address, self.timeout);
        let socket = socket.map_err(|error| self.said(error, "TCP"))?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    /// Says of a wait that took too long what it was for: the system says "resource temporarily unavailable".
    fn said(&self, error: io::Error, of: &str) -> io::Error {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                io::Error::new(io::ErrorKind::TimedOut, format!("{of}: no answer within {:?}", self.timeout))
            }
            _ => error,
        }
    }
}

impl Stream {
    fn new(socket: Socket) -> Stream {
        Stream {
            socket,
            #[cfg(feature = "tls")]
            session: None,
            unsent: Vec::new(),
            sent: 0,
        }
    }

    /// Reads what has come. Returns 0 at the end of the stream.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(session) = &mut self.session {
            return session.read(&mut self.socket, into);
        }
        self.socket.read(into)
    }

    /// Writes as much as the system takes, and keeps the rest for [`flush`](Self::flush).
    pub(crate) fn send(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        #[cfg(feature = "tls")]
        if let Some(session) = &mut self.session {
            session.write(&bytes)?;
            return session.flush(&mut self.socket);
        }
        if self.sent == self.unsent.len() {
            (self.unsent, self.sent) = (bytes, 0);
        } else {
            self.unsent.extend(bytes);
        }
        self.flush()
    }

    /// Writes what was kept.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        #[cfg(feature = "tls")]
        if let Some(session) = &mut self.session {
            return session.flush(&mut self.socket);
        }
        while self.sent < self.unsent.len() {
            match self.socket.write(&self.unsent[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns whether bytes are read as they come, so that a short read took all of them.
    pub(crate) fn is_plain(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.session.is_none();
        #[cfg(not(feature = "tls"))]
        true
    }

    /// Watches the stream: edges only.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        match &mut self.socket {
            Socket::Tcp(socket) => socket.register(registry, token, both),
            #[cfg(unix)]
            Socket::Unix(socket) => socket.register(registry, token, both),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.read(into),
            #[cfg(unix)]
            Socket::Unix(socket) => socket.read(into),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.write(bytes),
            #[cfg(unix)]
            Socket::Unix(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

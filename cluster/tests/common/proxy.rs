//! A proxy on loopback between nodes and a server, which delays, swallows, cuts and redirects.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Random;

/// What is done to answers, each by chance, in thousandths.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    /// Every answer is late by this.
    pub delay: Duration,
    /// The connection is closed instead of the answer: the script ran, and nobody is told.
    pub cut: u64,
    /// Half of the answer comes, and then a reset.
    pub half: u64,
    /// The answer comes twice. Half of the second copies come at once, the others just before the next answer.
    pub twice: u64,
}

struct Shared {
    target: AtomicU32,
    faults: Mutex<Faults>,
    /// Nothing passes, either way, and no connection ends.
    silent: AtomicU32,
    streams: Mutex<Vec<TcpStream>>,
    random: Mutex<Random>,
    cuts: AtomicU64,
    copies: AtomicU64,
    /// The answer to the next request that contains this is cut.
    cut_next: Mutex<Option<String>>,
}

pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Starts between a port of its own and the server's.
    pub fn before(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let shared = Arc::new(Shared {
            target: AtomicU32::new(server.into()),
            faults: Mutex::default(),
            silent: AtomicU32::new(0),
            streams: Mutex::default(),
            random: Mutex::new(Random(7)),
            cuts: AtomicU64::new(0),
            copies: AtomicU64::new(0),
            cut_next: Mutex::default(),
        });
        let of_all = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = of_all.clone();
                std::thread::spawn(move || shared.serve(client));
            }
        });
        Proxy { port, shared }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub fn faults(&self, faults: Faults) {
        *self.shared.faults.lock().expect("them") = faults;
    }

    /// The next request that contains this reaches the server; the connection ends instead of its answer.
    pub fn cut_next(&self, request: &str) {
        *self.shared.cut_next.lock().expect("it") = Some(request.to_owned());
    }

    /// How many answers were cut.
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::Relaxed)
    }

    /// How many answers came twice.
    pub fn copies(&self) -> u64 {
        self.shared.copies.load(Ordering::Relaxed)
    }

    /// Nothing passes from now on, or again.
    pub fn silent(&self, silent: bool) {
        self.shared.silent.store(u32::from(silent), Ordering::Relaxed);
    }

    /// Connections end, and new ones go to another server.
    pub fn switch(&self, server: u16) {
        self.shared.target.store(server.into(), Ordering::Relaxed);
        for stream in self.shared.streams.lock().expect("them").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn serve(self: Arc<Self>, mut client: TcpStream) {
        self.wait();
        let target = self.target.load(Ordering::Relaxed) as u16;
        let Ok(mut server) = TcpStream::connect(("127.0.0.1", target)) else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let both = [&client, &server].map(|s| s.try_clone().expect("a handle"));
        self.streams.lock().expect("them").extend(both);
        let (mut answers, mut to_client) =
            (server.try_clone().expect("a handle"), client.try_clone().expect("a handle"));
        let shared = self.clone();
        let cut = Arc::new(AtomicU32::new(0));
        let cut_now = cut.clone();
        std::thread::spawn(move || {
            let (mut bytes, mut copy) = ([0; 65_536], Vec::new());
            while let Ok(n @ 1..) = answers.read(&mut bytes) {
                if cut_now.load(Ordering::Relaxed) != 0 {
                    shared.cuts.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                if !shared.answer(&bytes[..n], &mut copy, &mut to_client) {
                    break;
                }
            }
            let _ = (answers.shutdown(Shutdown::Both), to_client.shutdown(Shutdown::Both));
        });
        let mut bytes = [0; 65_536];
        while let Ok(n @ 1..) = client.read(&mut bytes) {
            self.wait();
            let mut next = self.cut_next.lock().expect("it");
            if next.as_ref().is_some_and(|part| String::from_utf8_lossy(&bytes[..n]).contains(part.as_str()))
            {
                *next = None;
                cut.store(1, Ordering::Relaxed);
            }
            drop(next);
            if server.write_all(&bytes[..n]).is_err() {
                break;
            }
        }
        let _ = (server.shutdown(Shutdown::Both), client.shutdown(Shutdown::Both));
    }

    fn wait(&self) {
        while self.silent.load(Ordering::Relaxed) != 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Passes an answer on, or not. False: the connection ends.
    fn answer(&self, bytes: &[u8], copy: &mut Vec<u8>, client: &mut TcpStream) -> bool {
        let faults = *self.faults.lock().expect("them");
        std::thread::sleep(faults.delay);
        self.wait();
        let chance = self.random.lock().expect("it").below(1_000);
        if chance < faults.cut {
            self.cuts.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if chance < faults.cut + faults.half {
            self.cuts.fetch_add(1, Ordering::Relaxed);
            let _ = client.write_all(&bytes[..bytes.len() / 2]);
            reset(client);
            return false;
        }
        let mut all = std::mem::take(copy);
        all.extend(bytes);
        if chance < faults.cut + faults.half + faults.twice {
            self.copies.fetch_add(1, Ordering::Relaxed);
            if chance.is_multiple_of(2) { &mut all } else { copy }.extend(bytes);
        }
        client.write_all(&all).is_ok()
    }
}

/// The end of the connection is a reset.
fn reset(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = std::mem::size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: a socket of this process, and a structure of the size that is told.
    let set = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size,
        )
    };
    assert_eq!(set, 0);
}

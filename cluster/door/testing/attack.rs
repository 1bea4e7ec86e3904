//! Attacks on a server, with a good client next to them. Each has a bound in time and in count.
//!
//! `make -C cluster attacks` runs them for [`LONG`] each, and prints the rows of the table on the servers' pages. `make
//! -C cluster test` runs them briefly. Memory and answers are asserted, never times.

#![allow(dead_code)] // each server's tests use a part

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::common::{http, Server, PATIENCE};

const LONG: Duration = Duration::from_secs(8);
const SHORT: Duration = Duration::from_millis(700);

/// Returns whether this is the measurement.
pub fn is_long() -> bool {
    std::env::var_os("TATCELL_ATTACKS").is_some()
}

/// How long an attack lasts.
pub fn time() -> Duration {
    if is_long() {
        LONG
    } else {
        SHORT
    }
}

/// Runs an attack next to a good client, which fails if it is not answered, and prints a row. The server may take up to
/// `most` MiB more than before.
pub fn attack(
    server: &Server,
    name: &str,
    most: u64,
    mut good: impl FnMut() + Send,
    attack: impl FnOnce(Instant),
) {
    good();
    let (before, cpu, begun) = (server.rss(), server.cpu(), Instant::now());
    let (done, peak) = (AtomicBool::new(false), AtomicU64::new(before));
    // ORDERING: Relaxed, all; values, read after the join or again and again.
    let (mut took, passed, used) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                peak.fetch_max(server.rss(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let asks = scope.spawn(|| {
            let mut took = Vec::new();
            // It is asked at least ten times, however busy the machine is.
            while !done.load(Ordering::Relaxed) || took.len() < 10 {
                let asked = Instant::now();
                good();
                took.push(asked.elapsed());
                std::thread::sleep(Duration::from_millis(2));
            }
            took
        });
        attack(begun + time());
        let (passed, used) = (begun.elapsed(), server.cpu() - cpu);
        done.store(true, Ordering::Relaxed);
        (asks.join().expect("the good client"), passed, used)
    });
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() * percent).div_ceil(100) - 1].as_secs_f64() * 1e3;
    let peak = peak.load(Ordering::Relaxed);
    println!(
        "| {name} | {before} -> {peak} MiB | {:.0} % | {:.1} ms | {:.1} ms | {} |",
        100.0 * used.as_secs_f64() / passed.as_secs_f64(),
        at(50),
        at(99),
        took.len()
    );
    assert!(
        peak <= before + most,
        "{name}: {before} MiB before, then {peak} MiB, {most} MiB more are allowed"
    );
}

/// The attack that takes the last descriptors: half of the connections wait in the system's queue, which may have 128
/// places. The server must not try again without a pause.
pub fn without_descriptors(server: &Server, end: Instant) {
    let _held = connections(&server.address, 120);
    server.line_with("cannot accept connections, and tries again");
    let (before, begun) = (server.cpu(), Instant::now());
    std::thread::sleep(end.saturating_duration_since(begun));
    let took = server.cpu() - before;
    assert!(took < Duration::from_millis(200) + begun.elapsed() / 2, "{took:?}");
}

/// Opens `count` connections.
pub fn connections(address: &str, count: usize) -> Vec<TcpStream> {
    let connect = |_| TcpStream::connect(address).expect("the server");
    (0..count).map(connect).collect()
}

/// Sends until the end, on each connection a piece in turn, with a pause between two rounds. A connection that the
/// server has closed is opened anew.
pub fn trickle(address: &str, count: usize, end: Instant, pause: Duration, piece: impl Fn(usize) -> Vec<u8>) {
    let mut all = connections(address, count);
    let mut rounds = vec![0; count];
    while Instant::now() < end {
        for (stream, round) in all.iter_mut().zip(&mut rounds) {
            match stream.write_all(&piece(*round)) {
                Ok(()) => *round += 1,
                Err(_) => {
                    (*stream, *round) = (TcpStream::connect(address).expect("the server"), 0);
                }
            }
        }
        std::thread::sleep(pause);
    }
}

/// Sends these bytes again and again until the end and reads nothing: as much as the server takes.
pub fn flood(address: &str, count: usize, end: Instant, greeting: &[u8], bytes: &[u8]) {
    let mut all = connections(address, count);
    for stream in &mut all {
        stream.write_all(greeting).expect("sent");
        stream.set_nonblocking(true).expect("no waiting");
    }
    let mut sent = vec![0; count];
    while Instant::now() < end {
        let mut stuck = true;
        for (stream, sent) in all.iter_mut().zip(&mut sent) {
            match stream.write(&bytes[*sent..]) {
                Ok(n) => (*sent, stuck) = ((*sent + n) % bytes.len(), false),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(_) => {
                    *stream = TcpStream::connect(address).expect("the server");
                    (*sent, stuck) = (0, false);
                    stream.write_all(greeting).expect("sent");
                    stream.set_nonblocking(true).expect("no waiting");
                }
            }
        }
        if stuck {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Sends these bytes on one connection after the other and reads all answers, until the end; at most `most` times.
pub fn again(address: &str, end: Instant, most: usize, mut bytes: impl FnMut(usize) -> Vec<u8>) {
    for i in 0..most {
        if Instant::now() >= end {
            return;
        }
        let mut stream = TcpStream::connect(address).expect("the server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let _ = stream.write_all(&bytes(i)).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut buffer = [0; 65_536];
        while stream.read(&mut buffer).is_ok_and(|n| n > 0) {}
    }
}

/// Opens connections and closes every other one at once, with half a greeting sent, until the end.
pub fn half_open(address: &str, end: Instant, half: &[u8]) {
    let mut kept = Vec::new();
    while Instant::now() < end {
        if let Ok(mut stream) = TcpStream::connect(address) {
            let _ = stream.write_all(half);
            if kept.len() % 2 == 0 && kept.len() < 300 {
                let _ = stream.shutdown(Shutdown::Write);
            }
            kept.push(stream);
        }
        if kept.len() >= 300 {
            kept.truncate(150);
        }
    }
}

/// Asks for the metrics, 64 at a time, and reads none, until the end.
pub fn unread_pages(server: &Server, end: Instant) {
    let mut open: Vec<TcpStream> = Vec::new();
    while Instant::now() < end {
        let mut more = connections(&server.metrics, 64);
        for stream in &mut more {
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
        }
        open.truncate(128);
        open.splice(0..0, more);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Asks for health behind silent connections, and checks that it did not wait for them: the youngest ones are still
/// open, and the server closes each after 5 s.
pub fn health_behind_silent(server: &Server) {
    let silent = connections(&server.metrics, 200);
    assert!(http(&server.metrics, "/healthz").0.contains("200"));
    let open = |stream: &&TcpStream| {
        stream.set_nonblocking(true).expect("no waiting");
        stream.peek(&mut [0]).is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
    };
    let open = silent[140..].iter().filter(open).count();
    assert_eq!(open, 60, "of the youngest ones");
}

/// Checks that a page has this text, however its lines are broken.
pub fn page_says(page: &str, text: &str) {
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(text), "the page does not say: {text}");
}

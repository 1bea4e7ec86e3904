//! Clients that want the server's memory, its places, its descriptors or its processor.

#[path = "../../door/testing/attack.rs"]
mod attack;
mod common;
#[path = "attacks/held.rs"]
mod held;

use std::time::{Duration, Instant};

use attack::{
    again, attack, connections, flood, half_open, health_behind_silent, trickle, without_descriptors,
};
use common::{command, numbers, Client, Reply, Server, PROGRAM};

/// A client whose every call is answered, and right.
fn good(server: &Server) -> impl FnMut() + Send {
    let mut client = server.connect();
    move || assert_eq!(client.say("CL.THROTTLE good 4 1 1000 0"), numbers([0, 5, 5, -1, 0]))
}

const CONNECTIONS: usize = 300;

#[test]
fn attacks_take_bounded_memory_and_hold_up_nobody() {
    let server = Server::start(&[]);
    let address = server.address.as_str();
    let run = |name: &str, most: u64, how: &dyn Fn(Instant)| attack(&server, name, most, good(&server), how);
    let wait = |end: Instant| std::thread::sleep(end.saturating_duration_since(Instant::now()));
    run("nothing", 16, &wait);
    run("300 silent connections", 32, &|end| {
        let _silent = connections(address, CONNECTIONS);
        wait(end);
    });
    let call = command("CL.THROTTLE slow 4 1 1000");
    run("300 connections that send a byte each 10 ms", 32, &|end| {
        let piece = |round: usize| vec![call[round % call.len()]];
        trickle(address, CONNECTIONS, end, Duration::from_millis(10), piece);
    });
    // All of a command but its last byte. The buffer of a connection grows to twice that.
    let giant = [&b"*1\r\n$65000\r\n"[..], &[b'x'; 65_000], b"\r"].concat();
    run("300 connections with an unfinished command of 64 KiB", 64, &|end| {
        trickle(address, CONNECTIONS, end, Duration::from_millis(50), |round| match round {
            0 => giant.clone(),
            _ => Vec::new(),
        });
    });
    run("commands that say to be longer than is allowed", 16, &|end| {
        again(address, end, usize::MAX, |i| match i % 3 {
            0 => b"*1\r\n$1073741824\r\n".to_vec(),
            1 => b"*2147483647\r\n".to_vec(),
            _ => vec![b'x'; 100_000],
        });
    });
    run("arrays in arrays, without end", 16, &|end| {
        again(address, end, usize::MAX, |_| b"*1\r\n".repeat(100_000));
    });
    run("100 connections that send calls and read no answer", 64, &|end| {
        flood(address, 100, end, b"", &command("CL.THROTTLE greedy 4 1 1000").repeat(100));
    });
    let batch = [command("MULTI"), command(&format!("ECHO {}", "x".repeat(60_000)))].concat();
    run("300 connections with a batch of 60 KB that never ends", 96, &|end| {
        trickle(address, CONNECTIONS, end, Duration::from_millis(50), |round| match round {
            0 => batch.clone(),
            _ => Vec::new(),
        });
    });
    run("connections that close in the middle of a command", 32, &|end| half_open(address, end, &call[..9]));
    run("new keys, as many as come", 64, &|end| {
        let mut client = Client::to(address);
        let mut key = 0u64;
        while Instant::now() < end {
            let calls: Vec<u8> =
                (key..key + 500).flat_map(|key| command(&format!("CL.THROTTLE k{key} 4 1 100000"))).collect();
            client.send(&calls);
            (0..500).for_each(|_| assert!(matches!(client.reply(), Some(Reply::Array(_)))));
            key += 500;
        }
    });
    run("new limits, in every range", 200, &|end| {
        let mut client = Client::to(address);
        let mut burst = 0u64;
        while Instant::now() < end {
            burst = (burst + 98_765_432) % (1 << 32);
            let period = 1u64 << (burst % 30);
            let said = client.say(&format!("CL.THROTTLE k{burst} {burst} {} {period}", 1 + burst / 7));
            assert!(matches!(said, Reply::Array(_) | Reply::Error(_)));
        }
    });
}

#[test]
fn without_descriptors_the_clients_that_are_connected_are_served() {
    let server = Server::start_with_files(64, PROGRAM, &[]);
    attack(&server, "no descriptors left", 16, good(&server), |end| without_descriptors(&server, end));
    assert_eq!(server.connect().say("PING"), Reply::Simple("PONG".into()));
}

#[test]
fn a_connection_that_does_not_begin_is_closed_and_one_that_has_begun_stays() {
    let server = Server::start(&["--greet", "2s"]);
    let (mut silent, mut slow, mut begun) = (server.connect(), server.connect(), server.connect());
    assert_eq!(begun.say("PING"), Reply::Simple("PONG".into()));
    // Empty lines are no command.
    slow.send(b"\r\n\r\n*1\r\n$4\r\nPI");
    assert_eq!((silent.reply(), slow.reply()), (None, None));
    std::thread::sleep(Duration::from_millis(2_400));
    assert_eq!(begun.say("PING"), Reply::Simple("PONG".into()));
}

#[test]
fn health_is_told_behind_silent_connections() {
    health_behind_silent(&Server::start(&[]));
}

//! Clients that want the server's memory, its places, its descriptors or its processor.

#[path = "../../door/testing/attack.rs"]
mod attack;
mod common;
#[path = "attacks/held.rs"]
mod held;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use attack::{attack, connections, flood, half_open, health_behind_silent, trickle, without_descriptors};
use common::{Client, Rules, Server, PATIENCE, PROGRAM};
use prost::Message;
use tatcell_ratelimit::grpc::METHOD;

const RULES: &str = "
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: year, requests_per_unit: 4000000000}
";

/// The begin of a connection of HTTP/2, with empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Headers of a call that does not end: its message is still to come.
fn open_stream(number: u32) -> Vec<u8> {
    // POST, http, a path and a content type, none of which the server has to remember.
    let mut block = vec![0x83, 0x86, 0x04, METHOD.len() as u8];
    block.extend_from_slice(METHOD.as_bytes());
    block.extend_from_slice(b"\x0f\x10\x10application/grpc");
    frame(1, 4, number, &block)
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(&server.address).expect("the server");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Waits until the server has closed the connection.
fn closed(mut stream: TcpStream) -> bool {
    let mut bytes = [0; 4_096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return e.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Sends these bytes, in pieces, on connections that greet and that read what comes; until the end.
fn speak(server: &Server, end: Instant, mut piece: impl FnMut(u32) -> Vec<u8>) {
    while Instant::now() < end {
        let mut stream = connect(server);
        let mut answers = stream.try_clone().expect("a clone");
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while answers.read(&mut bytes).is_ok_and(|n| n > 0) {}
        });
        let mut round = 0;
        // The server may end a connection that behaves like this.
        if stream.write_all(PREFACE).is_ok() {
            while Instant::now() < end && round < 400 && stream.write_all(&piece(round)).is_ok() {
                round += 1;
            }
        }
        let _ = stream.shutdown(std::net::Shutdown::Both);
        reader.join().expect("the reader");
    }
}

/// Reads a frame: its kind, its stream and what it carries.
fn next_frame(stream: &mut TcpStream) -> std::io::Result<(u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    let mut payload = vec![0; number(&head[..3]) as usize];
    stream.read_exact(&mut payload)?;
    Ok((head[3], number(&head[5..]), payload))
}

/// A client whose every request is answered, and passes.
fn good(server: &Server) -> impl FnMut() + Send {
    let client = Client::to(&server.address);
    move || assert!(client.left("edge", &["user=good"]).0)
}

const CONNECTIONS: usize = 300;

#[test]
fn attacks_take_bounded_memory_and_hold_up_nobody() {
    let rules = Rules::new(RULES);
    let server = rules.start(&[]);
    let address = server.address.as_str();
    let run = |name: &str, most: u64, how: &dyn Fn(Instant)| attack(&server, name, most, good(&server), how);
    let wait = |end: Instant| std::thread::sleep(end.saturating_duration_since(Instant::now()));
    run("nothing", 16, &wait);
    run("300 silent connections", 32, &|end| {
        let _silent = connections(address, CONNECTIONS);
        wait(end);
    });
    run("300 connections that send a byte each 10 ms", 48, &|end| {
        let bytes = [PREFACE, &open_stream(1)].concat();
        let pause = Duration::from_millis(10);
        trickle(address, CONNECTIONS, end, pause, |round| {
            bytes.get(round).map_or(vec![], |byte| vec![*byte])
        });
    });
    run("streams that never end, as many as come", 64, &|end| {
        speak(&server, end, |round| {
            (0..1_000).flat_map(|i| open_stream(2 * (round * 1_000 + i) + 1)).collect()
        });
    });
    run("streams that are opened and reset at once", 64, &|end| {
        speak(&server, end, |round| {
            let streams = (0..500).map(|i| 2 * (round * 500 + i) + 1);
            streams
                .flat_map(|number| [open_stream(number), frame(3, 0, number, &8u32.to_be_bytes())].concat())
                .collect()
        });
    });
    run("headers without end", 64, &|end| {
        speak(&server, end, |round| match round {
            0 => frame(1, 0, 1, &[0x83]),
            // A field without an index: its name is "a", and its value 16 000 bytes.
            _ => frame(9, 0, 1, &[&[0, 1, b'a', 0x7f, 0x81, 0x7c][..], &[b'x'; 16_000]].concat()),
        });
    });
    run("messages of 16 MiB in 64 streams", 64, &|end| {
        speak(&server, end, |round| match round {
            0 => (0..64).flat_map(|i| open_stream(2 * i + 1)).collect(),
            // The length of a message, and a part of it; the window of the connection is soon used up.
            1..=4 => frame(0, 0, 2 * round - 1, &[&[0, 1, 0, 0, 0][..], &[b'x'; 16_000]].concat()),
            _ => {
                std::thread::sleep(Duration::from_millis(50));
                frame(6, 0, 0, &[0; 8])
            }
        });
    });
    run("100 connections that send pings and read no answer", 64, &|end| {
        flood(address, 100, end, PREFACE, &frame(6, 0, 0, &[7; 8]).repeat(1_000));
    });
    run("100 connections that send settings and read no answer", 64, &|end| {
        flood(address, 100, end, PREFACE, &frame(4, 0, 0, &[]).repeat(1_000));
    });
    run("connections that close in the middle of the greeting", 32, &|end| {
        half_open(address, end, &PREFACE[..20]);
    });
    run("new keys, as many as come", 64, &|end| {
        let client = Client::to(address);
        let mut key = 0;
        while Instant::now() < end {
            let users: Vec<String> = (key..key + 100).map(|key| format!("user=k{key}")).collect();
            let users: Vec<&str> = users.iter().map(String::as_str).collect();
            let _ = client.left("edge", &users);
            key += 100;
        }
    });
    run("reloads of nested rules", 48, &|end| {
        let deep = ["- ".repeat(5_000), "[".repeat(100_000), "{a: ".repeat(50_000), "a: {".repeat(5_000)];
        for deep in deep.iter().cycle() {
            rules.write(&format!("domain: d\ndescriptors:\n  {deep}\n"));
            server.signal(libc::SIGHUP);
            server.line_with("the old rules stay in force: ");
            if Instant::now() >= end {
                break;
            }
        }
    });
    // Answers that nobody reads: 100 statuses each, in as many streams as are allowed.
    let users: Vec<String> = (0..100).map(|user| format!("user=u{user}")).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let ask = common::request("edge", &users).encode_to_vec();
    let ask = [&[0][..], &(ask.len() as u32).to_be_bytes(), &ask].concat();
    let asks: Vec<u8> =
        (0..3_000).flat_map(|i| [open_stream(2 * i + 1), frame(0, 1, 2 * i + 1, &ask)].concat()).collect();
    run("100 connections that ask and read no answer", 200, &|end| {
        flood(address, 100, end, PREFACE, &asks);
    });
}

#[test]
fn a_message_that_is_too_long_is_an_error() {
    let rules = Rules::new(RULES);
    let server = rules.start(&[]);
    let client = Client::to(&server.address);
    let long = format!("user={}", "x".repeat(40_000));
    let answer = client.ask(common::request("edge", &[&long]));
    assert!(answer.is_err_and(|e| e.code() == tonic::Code::OutOfRange));
    assert!(client.left("edge", &["user=a"]).0);
}

#[test]
fn a_request_that_does_not_end_is_given_up_after_10_s() {
    let rules = Rules::new(RULES);
    let server = rules.start(&[]);
    let mut stream = connect(&server);
    stream.write_all(&[PREFACE, &open_stream(1)].concat()).expect("sent");
    let begun = Instant::now();
    // An answer or the end of the stream, as the server likes.
    while !matches!(next_frame(&mut stream).expect("a frame"), (1 | 3, 1, _)) {}
    assert!(begun.elapsed() >= Duration::from_secs(9), "{:?}", begun.elapsed());
}

#[test]
fn clients_beyond_the_most_are_turned_away_and_places_come_back() {
    let rules = Rules::new(RULES);
    let server = rules.start(&["--max-clients", "3"]);
    let silent: Vec<TcpStream> = (0..3).map(|_| connect(&server)).collect();
    let connected = "tatcell_ratelimit_connected";
    let wait = |count: u64| {
        let begun = Instant::now();
        while server.metric(connected) != count {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait(3);
    assert!(closed(connect(&server)));
    assert_eq!(server.metric("tatcell_ratelimit_turned_away_total"), 1);
    drop(silent);
    wait(0);
    assert!(Client::to(&server.address).left("edge", &["user=a"]).0);
}

#[test]
fn a_connection_that_asks_nothing_is_closed() {
    let rules = Rules::new(RULES);
    // So long that a busy machine does not let it pass between two requests.
    let server = rules.start(&["--idle", "2s"]);
    // One that says nothing, and one that only greets.
    let mut greets = connect(&server);
    greets.write_all(PREFACE).expect("sent");
    let begun = Instant::now();
    assert!(closed(connect(&server)) && closed(greets));
    assert!(begun.elapsed() < PATIENCE);
    // One that asks goes on.
    let client = Client::to(&server.address);
    for _ in 0..5 {
        assert!(client.left("edge", &["user=a"]).0);
        std::thread::sleep(Duration::from_millis(600));
    }
}

#[test]
fn without_descriptors_the_clients_that_are_connected_are_served() {
    let rules = Rules::new(RULES);
    let server = Server::start_with_files(64, PROGRAM, &["--rules", &rules.path()]);
    attack(&server, "no descriptors left", 16, good(&server), |end| without_descriptors(&server, end));
    assert!(Client::to(&server.address).left("edge", &["user=a"]).0);
}

#[test]
fn a_connection_that_does_not_greet_is_closed_and_one_that_has_greeted_stays() {
    let rules = Rules::new(RULES);
    let server = rules.start(&["--greet", "2s"]);
    let (silent, mut half, mut greets) = (connect(&server), connect(&server), connect(&server));
    greets.write_all(PREFACE).expect("sent");
    half.write_all(&PREFACE[..23]).expect("sent");
    assert!(closed(silent) && closed(half));
    std::thread::sleep(Duration::from_millis(2_400));
    assert_eq!(server.metric("tatcell_ratelimit_connected"), 1);
    drop(greets);
}

#[test]
fn health_is_told_behind_silent_connections() {
    health_behind_silent(&Rules::new(RULES).start(&[]));
}

//! Clients that want the server's memory, its places, its descriptors or its processor.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::{http, Client, Rules, Server, PATIENCE, PROGRAM};
use tatcell_ratelimit::grpc::METHOD;

const RULES: &str = "
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: year, requests_per_unit: 1000}
";

/// The begin of a connection of HTTP/2, with empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Headers of a call that does not end: its message is still to come.
fn open_stream(number: u32) -> Vec<u8> {
    // POST, http, a path and a content type, none of which the server has to remember.
    let mut block = vec![0x83, 0x86, 0x04, METHOD.len() as u8];
    block.extend_from_slice(METHOD.as_bytes());
    block.extend_from_slice(b"\x0f\x10\x10application/grpc");
    let mut frame = (block.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[1, 4]);
    frame.extend_from_slice(&number.to_be_bytes());
    frame.extend_from_slice(&block);
    frame
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
            Err(e) => return e.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn streams_that_never_end_take_bounded_memory_and_hold_up_nobody() {
    let rules = Rules::new("streams", RULES);
    let server = rules.start(&[]);
    let client = Client::to(&server.address);
    assert!(client.left("edge", &["user=a"]).0);
    let before = server.rss();
    let mut most = 0;
    for _ in 0..4 {
        let mut stream = connect(&server);
        stream.write_all(PREFACE).expect("sent");
        let mut answers = stream.try_clone().expect("a clone");
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while answers.read(&mut bytes).is_ok_and(|n| n > 0) {}
        });
        for group in 0..100 {
            let frames: Vec<u8> = (0..1_000).flat_map(|i| open_stream(2 * (group * 1_000 + i) + 1)).collect();
            // The server may end a connection that behaves like this.
            if stream.write_all(&frames).is_err() {
                break;
            }
        }
        most = most.max(server.rss());
        let begun = Instant::now();
        assert!(client.left("edge", &["user=a"]).0);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let _ = stream.shutdown(std::net::Shutdown::Both);
        reader.join().expect("the reader");
    }
    println!("{before} MiB before, at most {most} MiB after 400 000 streams");
    assert!(most < before + 64, "{before} MiB, then {most} MiB");
}

#[test]
fn a_message_that_is_too_long_is_an_error() {
    let rules = Rules::new("long", RULES);
    let server = rules.start(&[]);
    let client = Client::to(&server.address);
    let long = format!("user={}", "x".repeat(40_000));
    let answer = client.ask(common::request("edge", &[&long]));
    assert!(answer.is_err_and(|e| e.code() == tonic::Code::OutOfRange));
    assert!(client.left("edge", &["user=a"]).0);
}

#[test]
fn clients_beyond_the_most_are_turned_away_and_places_come_back() {
    let rules = Rules::new("places", RULES);
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
    let rules = Rules::new("silent-client", RULES);
    let server = rules.start(&["--idle", "300ms"]);
    // One that says nothing, and one that only greets.
    let mut greets = connect(&server);
    greets.write_all(PREFACE).expect("sent");
    let begun = Instant::now();
    assert!(closed(connect(&server)) && closed(greets));
    assert!(begun.elapsed() < Duration::from_secs(10));
    // One that asks goes on.
    let client = Client::to(&server.address);
    for _ in 0..8 {
        assert!(client.left("edge", &["user=a"]).0);
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn without_descriptors_it_waits_without_using_the_processor() {
    let rules = Rules::new("descriptors", RULES);
    let server = Server::start_with_files(40, PROGRAM, &["--rules", &rules.path()]);
    let client = Client::to(&server.address);
    let mut held: Vec<TcpStream> = (0..60).map(|_| connect(&server)).collect();
    server.line_with("cannot accept connections, and tries again");
    let before = server.cpu();
    std::thread::sleep(Duration::from_secs(2));
    let took = server.cpu() - before;
    assert!(took < Duration::from_millis(500), "{took:?} of 2 s");
    assert!(client.left("edge", &["user=a"]).0, "who is connected is served");
    held.clear();
    assert!(Client::to(&server.address).left("edge", &["user=a"]).0);
}

#[test]
fn health_is_told_behind_silent_connections() {
    let rules = Rules::new("healthz", RULES);
    let server = rules.start(&[]);
    let silent: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(&server.metrics).expect("the pages")).collect();
    let begun = Instant::now();
    assert!(http(&server.metrics, "/healthz").0.contains("200"));
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    drop(silent);
}

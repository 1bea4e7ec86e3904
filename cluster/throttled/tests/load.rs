//! Many clients, slow clients, threads that compete for one key, and the stop.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{command, Client, Reply, Server};

#[test]
fn a_thousand_connections_are_served_side_by_side() {
    let server = Server::start(&[]);
    let mut clients: Vec<Client> = (0..1_000).map(|_| server.connect()).collect();
    // All ask before any reads.
    for round in 1..=3 {
        clients.iter_mut().for_each(|client| client.send(&command("CL.THROTTLE all 2999 1 10000")));
        let passed = clients.iter_mut().map(|client| client.reply().expect("a reply"));
        let passed =
            passed.filter(|reply| matches!(reply, Reply::Array(list) if list[0] == Reply::Number(0))).count();
        assert_eq!(passed, 1_000, "round {round}");
    }
    let Reply::Array(seen) = clients[0].say("CL.THROTTLE all 2999 1 10000 0") else { panic!("no answer") };
    assert_eq!(seen[..3], [0, 3_000, 0].map(Reply::Number));
    assert_eq!(server.metric("tatcell_throttled_connected"), 1_000);
    drop(clients);
    let begun = Instant::now();
    while server.metric("tatcell_throttled_connected") > 0 {
        assert!(begun.elapsed() < common::PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn connections_that_fight_for_one_key_pass_exactly_its_burst() {
    let server = Server::start(&["--threads", "4"]);
    let address = server.address.as_str();
    let passed: i64 = std::thread::scope(|scope| {
        let ask = || {
            let mut client = Client::to(address);
            let mut passed = 0;
            for _ in 0..100 {
                client.send(&command("CL.THROTTLE one 4999 1 10000").repeat(100));
                for _ in 0..100 {
                    let Some(Reply::Array(list)) = client.reply() else { panic!("no answer") };
                    passed += i64::from(list[0] == Reply::Number(0));
                }
            }
            passed
        };
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().map(|client| client.join().expect("a client")).sum()
    });
    assert_eq!(passed, 5_000);
    assert_eq!(server.metric("tatcell_throttled_undecided_total"), 0);
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody_and_gets_every_answer_later() {
    let server = Server::start(&[]);
    let mut slow = TcpStream::connect(&server.address).expect("the server");
    slow.set_write_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    // Until neither side takes any more.
    let calls = command("CL.THROTTLE slow 0 1 1000").repeat(1_000);
    let (mut sent, mut whole) = (0, false);
    while sent < 400 << 20 {
        match slow.write(&calls[sent % calls.len()..]) {
            Ok(n) => sent += n,
            Err(_) => {
                whole = true;
                break;
            }
        }
    }
    assert!(whole, "the server took {sent} bytes from a client that reads nothing");
    let begun = Instant::now();
    let mut other = server.connect();
    (0..1_000).for_each(|_| assert_eq!(other.say("PING"), Reply::Simple("PONG".into())));
    println!("{sent} bytes were taken; 1000 others in {:?}", begun.elapsed());
    // The rest of the call that was cut, and then all answers.
    let mut reader = slow.try_clone().expect("a clone");
    let length = calls.len() / 1_000;
    let rest = (length - sent % length) % length;
    let last = calls[length - rest..length].to_vec();
    let writer = std::thread::spawn(move || {
        slow.set_write_timeout(None).expect("no timeout");
        slow.write_all(&last).expect("the rest");
        slow.shutdown(std::net::Shutdown::Write).expect("shut down");
    });
    let mut said = Vec::new();
    reader.read_to_end(&mut said).expect("answers");
    writer.join().expect("the writer");
    let answers = said.iter().filter(|byte| **byte == b'*').count();
    assert_eq!(answers, (sent + rest) / length);
}

#[test]
fn a_stop_loses_no_answer() {
    let server = Server::start(&[]);
    let answers = AtomicU64::new(0);
    let last = std::thread::scope(|scope| {
        // So few that each reads what waits for it while the server lingers, a second.
        for i in 0..5 {
            let (mut client, answers) = (server.connect(), &answers);
            scope.spawn(move || {
                let calls = command(&format!("CL.THROTTLE key{i} 9 1 1000")).repeat(50);
                // Until the server closes: what it decided, it must have answered.
                let mut sender = client.0.get_ref().try_clone().expect("a clone");
                let writer = std::thread::spawn(move || while sender.write_all(&calls).is_ok() {});
                while let Some(reply) = client.reply() {
                    assert!(matches!(reply, Reply::Array(_)), "{reply:?}");
                    // ORDERING: Relaxed; a value, read after the join.
                    answers.fetch_add(1, Ordering::Relaxed);
                }
                drop(client.0.get_ref().shutdown(std::net::Shutdown::Both));
                writer.join().expect("the writer");
            });
        }
        let begun = Instant::now();
        // ORDERING: Relaxed; a value.
        while answers.load(Ordering::Relaxed) <= 10_000 {
            assert!(begun.elapsed() < common::PATIENCE, "nothing is answered");
            std::thread::sleep(Duration::from_millis(100));
        }
        server.signal(libc::SIGTERM);
        server.ended()
    });
    // ORDERING: Relaxed; the threads have ended.
    let answers = answers.load(Ordering::Relaxed);
    println!("{answers} answers; {last}");
    assert!(last.starts_with(&format!("{answers} decided, ")), "{answers} answers, but {last}");
    assert!(last.ends_with(" 0 clients cut off"), "{last}");
}

#[test]
fn a_stop_waits_for_a_client_that_does_not_read_no_longer_than_it_was_told() {
    let server = Server::start(&["--stop-within", "4s"]);
    let mut slow = TcpStream::connect(&server.address).expect("the server");
    slow.set_write_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    let calls = command("CL.THROTTLE slow 0 1 1000").repeat(1_000);
    // Until the server takes nothing any more, and not only for as long as it does not run.
    let (mut sent, mut refused) = (0, 0);
    while refused < 5 {
        refused = match slow.write(&calls[sent % calls.len()..]) {
            Ok(n) => {
                sent += n;
                0
            }
            Err(_) => refused + 1,
        };
    }
    // An idle one is closed at once, and new ones find nobody.
    let mut idle = server.connect();
    assert_eq!(idle.say("PING"), Reply::Simple("PONG".into()));
    let begun = Instant::now();
    let (address, metrics) = (server.address.clone(), server.metrics.clone());
    server.signal(libc::SIGTERM);
    assert_eq!(idle.reply(), None);
    drop(idle);
    while TcpStream::connect(&address).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(3), "it goes on listening");
    }
    assert!(common::http(&metrics, "/healthz").0.contains("503"));
    let last = server.ended();
    assert!(last.ends_with(" 1 clients cut off"), "{last}");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_silent_connection_is_closed_where_that_was_set() {
    // So long that a busy machine does not let it pass between two calls.
    let server = Server::start(&["--idle", "2s"]);
    let mut client = server.connect();
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(600));
        assert_eq!(client.say("PING"), Reply::Simple("PONG".into()));
    }
    let begun = Instant::now();
    assert_eq!(client.reply(), None);
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

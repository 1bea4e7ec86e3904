//! Clients that make the server hold as much for each connection as it can. The bound is that of the page.

use std::time::{Duration, Instant};

use tatcell_throttled::connection::HELD;

use super::attack::{attack, flood, page_says, trickle};
use super::common::{command, Redis, Reply, Server};
use super::good;

/// The MiB that a number of connections may take, and 8 for everything else.
fn held(count: usize) -> u64 {
    (count * HELD).div_ceil(1 << 20) as u64 + 8
}

/// A command of these words, which may be any bytes.
fn bytes(words: &[&[u8]]) -> Vec<u8> {
    let mut all = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        all.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        all.extend_from_slice(&[word, &b"\r\n"[..]].concat());
    }
    all
}

/// The longest batch of small commands: DEL with as many keys of one byte as fit.
fn small_words() -> Vec<u8> {
    let del = command(&format!("DEL{}", " k".repeat(31)));
    [command("MULTI"), del.repeat(65_536 / del.len())].concat()
}

#[test]
fn the_page_says_what_a_connection_holds() {
    let each = (HELD * 10).div_ceil(1 << 20);
    let all = (HELD * 10_000).div_ceil(1 << 30);
    let said = format!(
        "holds at most {}.{} MiB ([attacks](#attacks)), so 10 000 of them at most {all} GiB",
        each / 10,
        each % 10
    );
    page_says(include_str!("../../README.md"), &said);
}

#[test]
fn attacks_that_fill_what_a_connection_may_hold() {
    let server = Server::start(&[]);
    let address = server.address.as_str();
    let run = |name: &str, most: u64, how: &dyn Fn(Instant)| attack(&server, name, most, good(&server), how);
    // All of a batch runs at EXEC: the answers must be written as they come.
    for (count, name) in [(30, 64_000), (30, 256)] {
        let named = [command(&format!("CLIENT SETNAME {}", "x".repeat(name))), command("MULTI")].concat();
        let batch = [named, command("CLIENT GETNAME").repeat(1_000), command("EXEC")].concat();
        run(
            &format!("{count} connections that execute 1000 times CLIENT GETNAME, of {name} bytes"),
            held(count),
            &|end| {
                flood(address, count, end, b"", &batch);
            },
        );
    }
    let batch = small_words();
    run("300 connections with a batch of small words that never ends", held(300), &|end| {
        trickle(address, 300, end, Duration::from_millis(50), |round| match round {
            0 => batch.clone(),
            _ => Vec::new(),
        });
    });
    let batch =
        [command("MULTI"), command(&format!("ECHO {}", "x".repeat(65_000))), command("EXEC")].concat();
    run("200 connections with a batch, a long answer and a long command at once", held(200), &|end| {
        flood(address, 200, end, b"", &batch);
    });
    let long = [0xff; 65_000];
    let echoed = [
        bytes(&[b"CL.THROTTLE", b"k", &long, b"1", b"1"]),
        bytes(&[b"COMMAND", b"GETKEYS", b"DEL", &long]),
        bytes(&[&long]),
        bytes(&[b"CLIENT", &long]),
        bytes(&[b"PING", &long]),
    ];
    run("200 connections whose long words come back, and are not read", held(200), &|end| {
        flood(address, 200, end, b"", &echoed.concat());
    });
    assert_eq!(server.connect().say("PING"), Reply::Simple("PONG".into()));
}

#[test]
fn attacks_on_a_server_with_a_store_take_what_the_page_says() {
    let Some(redis) = Redis::start_or_skip(&[]) else { return };
    let url = redis.url();
    let limit =
        ["--store", &url, "--nodes", "1", "--keys", "10000", "--limit", "4 1 1000", "--store-wait", "5s"];
    let server = Server::start(&limit);
    let good = || {
        let mut client = server.connect();
        move || assert_eq!(client.say("PING"), Reply::Simple("PONG".into()))
    };
    let call = |key: usize| {
        let key = format!("{}{key:05}", "k".repeat(60_000));
        bytes(&[b"CL.THROTTLE", key.as_bytes(), b"4", b"1", b"1000"])
    };
    // 60 MB of keys, and a node keeps the key of each line.
    attack(&server, "1000 new keys of 60 KB at least, behind a store", 24, good(), |end| {
        let mut client = server.connect();
        for key in (0..).take_while(|key| *key < 1_000 || Instant::now() < end) {
            client.send(&call(key));
            assert!(matches!(client.reply(), Some(Reply::Array(_))));
        }
    });
    redis.signal(libc::SIGSTOP);
    attack(&server, "300 connections whose calls wait for a silent store", held(300), good(), |end| {
        flood(&server.address, 300, end, b"", &(0..20).flat_map(call).collect::<Vec<u8>>());
    });
    redis.signal(libc::SIGCONT);
}

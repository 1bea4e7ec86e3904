//! What clients may send, and what they get.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::{command, counted_down, numbers, Client, Random, Reply, Server};

fn error(reply: Reply) -> String {
    match reply {
        Reply::Error(text) => text,
        other => panic!("no error: {other:?}"),
    }
}

#[test]
fn the_documented_examples_of_redis_cell_have_its_replies() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    assert_eq!(client.say("CL.THROTTLE user123 15 30 60 1"), numbers([0, 16, 15, -1, 2]));
    assert_eq!(client.say("cl.throttle user124 15 30 60"), numbers([0, 16, 15, -1, 2]));
    assert_eq!(client.say("CL.THROTTLE user123-read-rate 15 30 60"), numbers([0, 16, 15, -1, 2]));
    assert_eq!(client.say("CL.THROTTLE user123-write-rate 5 10 60"), numbers([0, 6, 5, -1, 6]));
    // Its own end-to-end test.
    loop {
        let begun = Instant::now();
        assert_eq!(client.say("CL.THROTTLE user 0 1 2 1"), numbers([0, 1, 0, -1, 2]));
        let second = client.say("CL.THROTTLE user 0 1 2 1");
        // The unit may be free again on a machine that took two seconds for it.
        if begun.elapsed() < Duration::from_secs(2) {
            counted_down(&second, [1, 1, 0, 2, 2], begun);
            break;
        }
        assert_eq!(client.say("DEL user"), Reply::Number(1));
    }
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(client.say("CL.THROTTLE user 0 1 2 1"), numbers([0, 1, 0, -1, 2]));
    // Too much for ever, a look, and several at once.
    assert_eq!(client.say("CL.THROTTLE many 4 1 100 6"), numbers([1, 5, 5, -1, 0]));
    assert_eq!(client.say("CL.THROTTLE many 4 1 100 0"), numbers([0, 5, 5, -1, 0]));
    let begun = Instant::now();
    assert_eq!(client.say("CL.THROTTLE many 4 1 100 5"), numbers([0, 5, 0, -1, 500]));
    counted_down(&client.say("CL.THROTTLE many 4 1 100 2"), [1, 5, 0, 200, 500], begun);
}

#[test]
fn a_key_keeps_its_debt_as_a_time_when_its_parameters_change() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let begun = Instant::now();
    assert_eq!(client.say("CL.THROTTLE k 9 1 1000 3"), numbers([0, 10, 7, -1, 3000]));
    // 3000 s of debt are 15 units of 200 s.
    counted_down(&client.say("CL.THROTTLE k 99 30 6000 0"), [0, 100, 85, -1, 3000], begun);
    assert_eq!(client.say("DEL k nobody"), Reply::Number(1));
    assert_eq!(client.say("CL.THROTTLE k 9 1 10 0"), numbers([0, 10, 10, -1, 0]));
}

#[test]
fn a_negative_quantity_gives_back_what_is_owed_and_no_more() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let begun = Instant::now();
    assert_eq!(client.say("CL.THROTTLE k 4 1 1000 4"), numbers([0, 5, 1, -1, 4000]));
    counted_down(&client.say("CL.THROTTLE k 4 1 1000 -2"), [0, 5, 3, -1, 2000], begun);
    assert_eq!(client.say("CL.THROTTLE k 4 1 1000 -9223372036854775808"), numbers([0, 5, 5, -1, 0]));
    assert_eq!(client.say("CL.THROTTLE k 4 1 1000 5"), numbers([0, 5, 0, -1, 5000]));
    // A key that owes nothing gets nothing.
    assert_eq!(client.say("CL.THROTTLE other 4 1 1000 -3"), numbers([0, 5, 5, -1, 0]));
    // A moment of the last two has drained, and a part of a unit counts as a whole one.
    assert_eq!(server.metric("tatcell_throttled_given_back_total"), 4);
    assert_eq!(server.metric("tatcell_throttled_limited_total"), 0);
    assert_eq!(server.metric("tatcell_live_keys{table=\"2^5 ns\"}"), 1);
}

#[test]
fn the_limits_of_one_connection_are_kept_apart() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    // More periods than a session keeps limits at hand: some take the place of another.
    for burst in 0..5 {
        for round in [1, 2] {
            for period in (1..=20).map(|n| n * 1_000) {
                let said = client.say(&format!("CL.THROTTLE k{burst}-{period} {burst} 1 {period}"));
                let passes = burst + 1 >= round;
                let (left, owed) = if passes { (burst + 1 - round, round) } else { (0, 1) };
                let retry = if passes { -1 } else { period };
                assert_eq!(said, numbers([i64::from(!passes), burst + 1, left, retry, owed * period]));
            }
        }
    }
}

#[test]
fn what_is_wrong_with_a_call_is_said_and_the_next_one_goes_on() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    for (words, said) in [
        ("CL.THROTTLE k 1 1", "Usage: CL.THROTTLE <key>"),
        ("CL.THROTTLE k 1 1 1 1 1", "Usage"),
        ("CL.THROTTLE k x 1 1", "Couldn't parse as integer: x"),
        ("CL.THROTTLE k 1 1 1 1.5", "Couldn't parse as integer: 1.5"),
        ("CL.THROTTLE k 1 0 1", "Zero rates are not supported"),
        ("CL.THROTTLE k 1 1 0", "Zero rates are not supported"),
        ("CL.THROTTLE k 1 1 -5", "period must not be negative"),
        ("CL.THROTTLE k 9223372036854775807 1 9223372036854775807", "cannot be kept"),
        ("CL.THROTTLE k 1 10000000000 1", "more than 8000000000, one each 0.125 ns"),
        ("CL.THROTTLE k 4294967296 1 1", "a burst of 4294967297 units is above the most, 4294967296"),
        ("GET k", "unknown command 'GET'"),
        ("ECHO", "wrong number of arguments"),
        ("AUTH x", "without any password configured"),
        ("SELECT 3", "out of range"),
        ("HELLO 4", "NOPROTO"),
        ("CLIENT KILL x", "CLIENT has only"),
        (&format!("CLIENT SETNAME {}", "x".repeat(257)), "a client's name has at most 256 bytes"),
        (&format!("HELLO 3 SETNAME {}", "x".repeat(257)), "a client's name has at most 256 bytes"),
        (&format!("CL.THROTTLE k {} 1 1", "x".repeat(9_000)), &format!("integer: {}", "x".repeat(64))),
    ] {
        let text = error(client.say(words));
        assert!(text.contains(said), "{words}: {text}");
        assert_eq!(client.say("PING"), Reply::Simple("PONG".into()));
    }
    assert_eq!(server.metric("tatcell_throttled_errors_total"), 19);
    assert_eq!(server.metric("tatcell_throttled_decided_total"), 0);
}

#[test]
fn the_rest_of_what_clients_send_is_answered() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    assert_eq!(client.say("PING hello"), Reply::Bulk(b"hello".to_vec()));
    assert_eq!(client.say("ECHO hello"), Reply::Bulk(b"hello".to_vec()));
    assert_eq!(client.say("SELECT 0"), Reply::Simple("OK".into()));
    assert_eq!(client.say("CLIENT SETNAME me"), Reply::Simple("OK".into()));
    assert_eq!(client.say("CLIENT GETNAME"), Reply::Bulk(b"me".to_vec()));
    assert_eq!(client.say("CLIENT SETINFO lib-name x"), Reply::Simple("OK".into()));
    assert!(matches!(client.say("CLIENT ID"), Reply::Number(1..)));
    assert!(matches!(client.say("HELLO 3"), Reply::Array(pairs) if pairs.len() == 14));
    assert!(matches!(client.say("COMMAND"), Reply::Array(list) if list.len() == 16));
    assert_eq!(client.say("COMMAND DOCS"), Reply::Array(vec![]));
    let Reply::Array(info) = client.say("COMMAND INFO cl.throttle nothing") else { panic!("no array") };
    assert!(matches!(&info[0], Reply::Array(entry) if entry.len() == 7), "{info:?}");
    assert_eq!(info[1], Reply::Null);
    let key = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
    assert_eq!(client.say("COMMAND GETKEYS CL.THROTTLE k 1 1 1"), Reply::Array(vec![key("k")]));
    assert_eq!(client.say("COMMAND GETKEYS UNLINK a b"), Reply::Array(vec![key("a"), key("b")]));
    assert!(error(client.say("COMMAND GETKEYS PING")).contains("no key arguments"));
    assert_eq!(client.say("UNLINK nobody"), Reply::Number(0));
    // Without a password the default user has any, and there is no other user.
    assert_eq!(client.say("AUTH default x"), Reply::Simple("OK".into()));
    assert!(error(client.say("AUTH bob x")).starts_with("WRONGPASS"));
    assert!(error(client.say("HELLO 3 AUTH bob x")).starts_with("WRONGPASS"));
    assert!(matches!(client.say("INFO"), Reply::Bulk(text) if text.starts_with(b"# Server\r\n")));
    assert_eq!(client.say("RESET"), Reply::Simple("RESET".into()));
    client.send(b"\r\nPING\r\n  ping  x \r\n*0\r\n");
    assert_eq!(client.reply(), Some(Reply::Simple("PONG".into())));
    assert_eq!(client.reply(), Some(Reply::Bulk(b"x".to_vec())));
    assert_eq!(client.say("QUIT"), Reply::Simple("OK".into()));
    assert_eq!(client.reply(), None);
}

#[test]
fn a_batch_is_decided_at_its_end_and_charged_once() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let queued = Reply::Simple("QUEUED".into());
    assert_eq!(client.say("MULTI"), Reply::Simple("OK".into()));
    for _ in 0..3 {
        assert_eq!(client.say("CL.THROTTLE k 1 1 1000"), queued);
    }
    assert_eq!(client.say("PING"), queued);
    let mut other = server.connect();
    assert_eq!(other.say("CL.THROTTLE k 1 1 1000 0"), numbers([0, 2, 2, -1, 0]), "nothing is charged yet");
    let replies = vec![
        numbers([0, 2, 1, -1, 1000]),
        numbers([0, 2, 0, -1, 2000]),
        numbers([1, 2, 0, 1000, 2000]),
        Reply::Simple("PONG".into()),
    ];
    assert_eq!(client.say("EXEC"), Reply::Array(replies));
    // What is wrong in a batch is told at once, and nothing of it runs.
    assert_eq!(client.say("MULTI"), Reply::Simple("OK".into()));
    assert!(error(client.say("MULTI")).contains("nested"));
    assert!(error(client.say("GET k")).contains("unknown command"));
    // Their replies are so long that a batch of them would take megabytes.
    for long in ["COMMAND", "INFO"] {
        assert!(error(client.say(long)).contains("cannot be in a batch"));
    }
    assert_eq!(client.say("CL.THROTTLE q 1 1 1000"), queued);
    assert!(error(client.say("EXEC")).starts_with("EXECABORT"));
    assert_eq!(client.say("MULTI"), Reply::Simple("OK".into()));
    assert_eq!(client.say("CL.THROTTLE q 1 1 1000"), queued);
    assert_eq!(client.say("DISCARD"), Reply::Simple("OK".into()));
    assert_eq!(client.say("CL.THROTTLE q 1 1 1000 0"), numbers([0, 2, 2, -1, 0]));
    for alone in ["EXEC", "DISCARD"] {
        assert!(error(client.say(alone)).contains("without MULTI"));
    }
    // A batch is bounded, and RESET ends one.
    assert_eq!(client.say("MULTI"), Reply::Simple("OK".into()));
    (0..1_024).for_each(|_| assert_eq!(client.say("PING"), queued));
    assert!(error(client.say("PING")).contains("at most 1024 commands"));
    assert_eq!(client.say("RESET"), Reply::Simple("RESET".into()));
    assert_eq!(client.say("PING"), Reply::Simple("PONG".into()));
}

#[test]
fn a_client_that_waits_as_long_as_it_was_told_passes() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    // A unit takes half a millisecond, and a second and 0.9 ms.
    client.send(&command("CL.THROTTLE fast 0 2000 1").repeat(50));
    for _ in 0..50 {
        let Some(Reply::Array(list)) = client.reply() else { panic!("no answer") };
        assert!(matches!((&list[0], &list[3]), (Reply::Number(0), _) | (_, Reply::Number(1))), "{list:?}");
    }
    for i in 0..3 {
        let call = format!("CL.THROTTLE slow{i} 0 10000 10009");
        client.send(&command(&call).repeat(2));
        assert_eq!(client.reply(), Some(numbers([0, 1, 0, -1, 2])));
        let Some(Reply::Array(list)) = client.reply() else { panic!("no answer") };
        assert_eq!(list[0], Reply::Number(1));
        let Reply::Number(wait) = list[3] else { panic!("{list:?}") };
        std::thread::sleep(Duration::from_secs(wait as u64));
        assert_eq!(client.say(&call), numbers([0, 1, 0, -1, 2]));
    }
}

#[test]
fn a_password_is_asked_for_and_every_other_one_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    std::fs::write(&file, "right\n").expect("a file");
    let server = Server::start(&["--password-file", file.to_str().expect("a path")]);
    let mut client = server.connect();
    for words in ["CL.THROTTLE k 1 1 1", "PING", "INFO", "DEL k", "HELLO 3", "nonsense"] {
        let text = error(client.say(words));
        assert!(text.starts_with("NOAUTH") || words == "nonsense", "{words}: {text}");
    }
    for wrong in ["wrong", "righ", "rightx", "Right", "other right"] {
        assert!(error(client.say(&format!("AUTH {wrong}"))).starts_with("WRONGPASS"), "{wrong}");
    }
    assert!(error(client.say("HELLO 3 AUTH default wrong")).starts_with("WRONGPASS"));
    assert!(error(client.say("CL.THROTTLE k 1 1 1")).starts_with("NOAUTH"));
    assert_eq!(client.say("AUTH default right"), Reply::Simple("OK".into()));
    assert_eq!(client.say("CL.THROTTLE k 1 1 1"), numbers([0, 2, 1, -1, 1]));
    assert_eq!(client.say("RESET"), Reply::Simple("RESET".into()));
    assert!(error(client.say("PING")).starts_with("NOAUTH"));
    assert!(matches!(client.say("HELLO 2 AUTH default right SETNAME me"), Reply::Array(_)));
    assert_eq!(client.say("CLIENT GETNAME"), Reply::Bulk(b"me".to_vec()));
}

#[test]
fn commands_may_come_in_any_pieces_and_many_at_once() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let begun = Instant::now();
    let calls: Vec<u8> = (0..40).flat_map(|_| command("CL.THROTTLE pieces 49 1 1000 1")).collect();
    let mut random = Random(7);
    let mut rest = &calls[..];
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(1 + random.below(30.min(rest.len() as u64)) as usize);
        client.send(piece);
        rest = more;
        if random.below(4) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    for i in 1..=40 {
        let Some(Reply::Array(mut list)) = client.reply() else { panic!("no answer to call {i}") };
        // Seconds that have passed since have drained.
        let (debt, passed) = (1000 * i, begun.elapsed().as_secs() as i64 + 1);
        let owed = matches!(list[4], Reply::Number(owed) if (debt - passed..=debt).contains(&owed));
        assert!(owed, "call {i}: {list:?}");
        list[4] = Reply::Number(debt);
        assert_eq!(Reply::Array(list), numbers([0, 50, 50 - i, -1, debt]), "call {i}");
    }
    // 50 000 at once, and read only afterwards: the server must not hold their answers, nor lose one.
    let mut sender = client.0.get_ref().try_clone().expect("a clone");
    let writer = std::thread::spawn(move || {
        let call = command("CL.THROTTLE flood 0 1 1000 1").repeat(50_000);
        sender.write_all(&call).expect("sent");
    });
    assert_eq!(client.reply(), Some(numbers([0, 1, 0, -1, 1000])));
    for i in 1..50_000 {
        let Some(Reply::Array(list)) = client.reply() else { panic!("no answer to call {i}") };
        assert_eq!(list[..3], [1, 1, 0].map(Reply::Number), "call {i}");
        assert!(
            matches!(list[3..], [Reply::Number(1..=1000), Reply::Number(1..=1000)]),
            "call {i}: {list:?}"
        );
    }
    writer.join().expect("the writer");
}

#[test]
fn malformed_bytes_end_the_connection_with_an_error_and_no_other() {
    let server = Server::start(&[]);
    let mut healthy = server.connect();
    let cases = [
        &b"*x\r\n"[..],
        b"*1\r\n$99999999\r\n",
        b"*1\r\nPING\r\n",
        b"*99\r\n",
        b"PING \"x\"\r\n",
        &[b'x'; 5_000],
    ];
    for bytes in cases {
        let mut client = server.connect();
        client.send(&[&command("PING")[..], bytes].concat());
        assert_eq!(client.reply(), Some(Reply::Simple("PONG".into())));
        assert!(error(client.reply().expect("an error")).starts_with("ERR Protocol error"));
        assert_eq!(client.reply(), None);
        assert_eq!(healthy.say("PING"), Reply::Simple("PONG".into()));
    }
    assert_eq!(server.metric("tatcell_throttled_malformed_total"), cases.len() as u64);
    // A form that a browser was made to send: nothing of it is run.
    let mut client = server.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\n\r\nCL.THROTTLE k 0 1 1000\r\n");
    assert_eq!(client.reply(), None);
    assert_eq!(server.metric("tatcell_throttled_decided_total"), 0);
}

/// Random bytes, and commands in which bytes were changed, left out or put in.
#[test]
fn ten_thousand_damaged_streams_leave_the_server_well() {
    const STREAMS: u64 = 10_000;
    let server = Server::start(&[]);
    let mut random = Random(0x7e57);
    let whole = [
        command("CL.THROTTLE k 15 30 60 1"),
        command("HELLO 3 AUTH default x"),
        b"CL.THROTTLE k 15 30 60\r\n".to_vec(),
        command("CLIENT SETNAME y"),
    ];
    for stream in 0..STREAMS {
        let mut bytes: Vec<u8> = match random.below(4) {
            0 => (0..random.below(200)).map(|_| random.any() as u8).collect(),
            _ => (0..=random.below(4)).flat_map(|_| whole[random.below(4) as usize].clone()).collect(),
        };
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(3) {
                _ if bytes.is_empty() => bytes.push(b'*'),
                0 => bytes[at] = b"\r\n*$-0919x\0\xff"[random.below(12) as usize],
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, random.any() as u8),
            }
        }
        let mut client = TcpStream::connect(&server.address).expect("the server");
        client.set_read_timeout(Some(common::PATIENCE)).expect("a timeout");
        let _ = client.write_all(&bytes);
        client.shutdown(std::net::Shutdown::Write).expect("shut down");
        // Whatever it says, it says it in its protocol, and then it ends.
        let mut said = Vec::new();
        let _ = client.read_to_end(&mut said);
        let first = said.first().copied();
        assert!(matches!(first, None | Some(b'-' | b'*' | b'+' | b'%' | b':')), "stream {stream}: {said:?}");
    }
    assert_eq!(server.connect().say("PING"), Reply::Simple("PONG".into()));
    println!("{} ended with a protocol error", server.metric("tatcell_throttled_malformed_total"));
    assert!(server.metric("tatcell_throttled_malformed_total") > STREAMS / 10);
    assert!(server.metric("tatcell_throttled_decided_total") > STREAMS / 10);
}

#[test]
fn clients_beyond_the_most_are_told_and_places_come_back() {
    let server = Server::start(&["--max-clients", "3"]);
    let mut clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.say("PING"), Reply::Simple("PONG".into())));
    let mut fourth = server.connect();
    assert_eq!(fourth.reply(), Some(Reply::Error("ERR max number of clients reached".into())));
    assert_eq!(fourth.reply(), None);
    clients.pop();
    while server.metric("tatcell_throttled_connected") == 3 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.connect().say("PING"), Reply::Simple("PONG".into()));
    assert_eq!(server.metric("tatcell_throttled_turned_away_total"), 1);
}

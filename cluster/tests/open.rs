//! Opening, closing, slots: an error comes at once and in words, and nothing ever hangs a caller.

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use common::{server_or_skip, until, Server};
use tatcell_cluster::{Builder, Cluster, Down, LimitError, OpenError, SharedLimit, Verdict};

const SECOND: Duration = Duration::from_secs(1);

fn limit() -> SharedLimit {
    SharedLimit::new("x", 100, SECOND, 1_000)
}

/// However busy the machine is: a server that is there answers within this.
fn builder(url: &str, nodes: u32) -> Builder {
    Cluster::builder(url, nodes).limit(limit()).keys(64).timeout(2 * SECOND).log(|_| {})
}

fn error(builder: Builder) -> OpenError {
    let begun = Instant::now();
    let error = builder.open().expect_err("an error");
    println!("{error}");
    // What to do about it stands behind what is wrong.
    let advice = match &error {
        OpenError::Unreachable(_) => "is it running, and is the address right?",
        OpenError::Refused(_) => "check user and password, and allow +eval",
        OpenError::TooOld(_) => "Redis 6.2 or Valkey is needed",
        OpenError::OtherParameters { .. } => {
            "take theirs, another prefix or another name, or stop the other nodes"
        }
        OpenError::Replica => "use the URL of its primary",
        OpenError::ClusterMode => "use the URL redis+cluster://",
        _ => "",
    };
    assert!(error.to_string().contains(advice), "{error}");
    assert!(begun.elapsed() < 20 * SECOND, "it took {:?}", begun.elapsed());
    error
}

/// A call on a fresh connection.
fn say(server: &Server, words: &[&str]) -> redis::Value {
    redis::cmd(words[0]).arg(&words[1..]).query(&mut server.connect()).expect("a reply")
}

#[test]
fn what_is_given_wrongly_is_said_before_the_store_is_asked() {
    let nowhere = "redis://127.0.0.1:1/";
    let open = |with: fn(Builder) -> Builder| error(with(Cluster::builder(nowhere, 4).log(|_| {})));
    assert!(matches!(open(|b| b), OpenError::Limits));
    assert!(matches!(open(|b| b.limit(limit()).limit(limit())), OpenError::Limits));
    assert!(matches!(open(|b| b.limit(limit()).prefix("")), OpenError::Options));
    assert!(matches!(open(|b| b.limit(limit()).keys(0)), OpenError::Options));
    assert!(matches!(open(|b| b.limit(limit()).timeout(Duration::ZERO)), OpenError::Options));
    let none = open(|b| b.limit(SharedLimit::new("x", 0, SECOND, 1)));
    assert!(matches!(none, OpenError::Limit { error: LimitError::ZeroUnits, .. }));
    assert!(matches!(error(builder("nonsense", 4)), OpenError::Url(_)));
}

#[test]
fn a_store_that_is_not_there_or_silent_is_unreachable() {
    assert!(matches!(error(builder("redis://127.0.0.1:1/", 4)), OpenError::Unreachable(_)));
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://{}/", silent.local_addr().expect("its address"));
    assert!(matches!(error(builder(&url, 4)), OpenError::Unreachable(_)));
}

#[test]
fn a_store_that_is_too_old_is_named_with_its_version() {
    let old = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://{}/", old.local_addr().expect("its address"));
    std::thread::spawn(move || {
        for stream in old.incoming() {
            let (mut stream, mut bytes) = (stream.expect("a connection"), [0; 4_096]);
            while let Ok(n @ 1..) = stream.read(&mut bytes) {
                // A simple answer to every command, and a version to INFO.
                let text = String::from_utf8_lossy(&bytes[..n]).into_owned();
                for _ in text.matches('*') {
                    let info = "redis_version:6.0.16\r\nrole:master";
                    let answer = match text.contains("INFO") && !text.contains("SETINFO") {
                        true => format!("${}\r\n{info}\r\n", info.len()),
                        false => "+OK\r\n".into(),
                    };
                    let _ = stream.write_all(answer.as_bytes());
                }
            }
        }
    });
    assert!(matches!(error(builder(&url, 4)), OpenError::TooOld(version) if version == "6.0.16"));
}

#[test]
fn a_wrong_password_or_too_few_rights_are_refused() {
    let Some(server) = server_or_skip(&["--requirepass", "right"]) else { return };
    let with = |user: &str| builder(&format!("redis://{user}127.0.0.1:{}/", server.port()), 4);
    assert!(matches!(error(with("")), OpenError::Refused(_)));
    assert!(matches!(error(with(":wrong@")), OpenError::Refused(_)));
    assert!(with(":right@").open().is_ok());
    let mut connection = server.connect_as("default", "right").expect("a connection");
    let mut user = |words: &[&str]| redis::cmd("ACL").arg("SETUSER").arg(words).query::<()>(&mut connection);
    let rights = ["eval", "evalsha", "get", "set", "del", "time", "info", "ping"];
    user(&["few", "on", ">few", "~tatcell:*", "+client"]).expect("a user");
    for lacking in rights {
        for right in rights {
            user(&["few", &format!("{}{right}", if right == lacking { '-' } else { '+' })]).expect("a user");
        }
        let error = error(with("few:few@"));
        assert!(matches!(error, OpenError::Refused(_)), "without {lacking}: {error:?}");
    }
    user(&["few", "+ping"]).expect("a user");
    let node = with("few:few@").open().expect("all that the message names is enough");
    let x = node.limit("x").expect("it");
    assert_eq!(node.acquire(x, b"k", 1, 10 * SECOND), Verdict::Pass);
    assert!(node.shutdown(SECOND));
}

#[test]
fn a_login_that_is_given_apart_and_a_socket_file_do_as_well() {
    let arguments = ["--requirepass", "right", "--unixsocket", "store.sock"];
    let Some(server) = server_or_skip(&arguments) else { return };
    assert!(builder(&server.url(), 4).login("default", "right").open().is_ok());
    assert!(matches!(error(builder(&server.url(), 4).login("", "wrong")), OpenError::Refused(_)));
    let socket = format!("redis+unix://{}", server.folder().join("store.sock").display());
    let node = builder(&socket, 4).login("", "right").open().expect("a node");
    assert_eq!(node.acquire(node.limit("x").expect("it"), b"k", 1, 10 * SECOND), Verdict::Pass);
    assert!(matches!(error(builder(&format!("{socket}-no"), 4)), OpenError::Unreachable(_)));
}

#[test]
fn a_replica_and_a_node_of_a_redis_cluster_are_named() {
    let Some(server) = server_or_skip(&[]) else { return };
    say(&server, &["REPLICAOF", "127.0.0.1", "1"]);
    assert!(matches!(error(builder(&server.url(), 4)), OpenError::Replica));
    let Some(server) = server_or_skip(&["--cluster-enabled", "yes"]) else { return };
    assert!(matches!(error(builder(&server.url(), 4)), OpenError::ClusterMode));
}

#[test]
fn a_prefix_in_use_with_other_parameters_is_refused() {
    let Some(server) = server_or_skip(&[]) else { return };
    let _first = builder(&server.url(), 4).open().expect("a node");
    assert!(builder(&server.url(), 4).open().is_ok());
    assert!(matches!(error(builder(&server.url(), 5)), OpenError::OtherParameters { .. }));
    let with = |limit| Cluster::builder(&server.url(), 4).limit(limit).timeout(2 * SECOND).log(|_| {});
    let other = with(SharedLimit::new("x", 100, SECOND, 999));
    assert!(matches!(error(other), OpenError::OtherParameters { name, .. } if name == "x"));
    let faster = with(SharedLimit::new("x", 101, SECOND, 1_000));
    assert!(matches!(error(faster), OpenError::OtherParameters { .. }));
    assert!(builder(&server.url(), 5).prefix("another").open().is_ok());
}

#[test]
fn nothing_hangs_a_caller_while_the_store_is_silent() {
    let Some(server) = server_or_skip(&[]) else { return };
    for (prefix, limit) in [("leased", limit()), ("strict", SharedLimit::new("x", 10, SECOND, 3))] {
        let open = || {
            let node = Cluster::builder(&server.url(), 2).limit(limit.clone()).prefix(prefix).keys(64);
            node.log(|_| {}).open()
        };
        // It waits for the store a quarter of a second, which a busy machine may need to open.
        let node = (0..20).find_map(|_| open().ok()).expect("a node");
        let x = node.limit("x").expect("it");
        server.stop();
        let (begun, mut acquired, mut checked) = (Instant::now(), Vec::new(), Vec::new());
        for i in 0..50u32 {
            let one = Instant::now();
            assert!(!node.acquire(x, &i.to_le_bytes(), 1, Duration::from_millis(20)).passes());
            acquired.push(one.elapsed());
            let one = Instant::now();
            assert!(!node.check(x, &i.to_le_bytes(), 1).passes());
            checked.push(one.elapsed());
        }
        println!("50 of each in {:?}, {:?}", begun.elapsed(), node.metrics());
        // A busy machine holds up a few of them, and a silent store would hold up all.
        for (took, most) in [(&mut acquired, 500), (&mut checked, 200)] {
            took.sort_unstable();
            assert!(took[25] < Duration::from_millis(most) && took[49] < 20 * SECOND, "{took:?}");
        }
        let begun = Instant::now();
        node.shutdown(2 * SECOND);
        assert!(begun.elapsed() < 20 * SECOND);
        server.go_on();
    }
}

#[test]
fn a_node_that_is_shut_down_gives_back_what_it_held() {
    let Some(server) = server_or_skip(&[]) else { return };
    // A unit in a minute: nothing comes by itself while the test runs.
    let limit = SharedLimit::new("x", 1, 60 * SECOND, 1_000).reserve(0, 0);
    let patient = || Cluster::builder(&server.url(), 2).timeout(10 * SECOND);
    let open = || patient().limit(limit.clone()).keys(64).log(|_| {}).open();
    let first = open().expect("a node");
    let x = first.limit("x").expect("it");
    for _ in 0..5 {
        assert_eq!(first.acquire(x, b"k", 10, 10 * SECOND), Verdict::Pass);
    }
    let held = first.metrics().granted_units - 50;
    // Hold something for sure: a large ask, of which a part is spent.
    assert_eq!(first.acquire(x, b"other", 1, 10 * SECOND), Verdict::Pass);
    assert!(first.shutdown(5 * SECOND));
    let second = open().expect("a node");
    let most = limit.split(2, Duration::from_millis(4)).expect("a split").largest_cost;
    let mut left = 0;
    while second.acquire(second.limit("x").expect("it"), b"k", 1, 10 * SECOND).passes() {
        left += 1;
    }
    println!("{held} were held, {left} of {most} were left");
    assert_eq!(left, most - 50);
}

#[test]
fn a_reserve_passes_without_the_store_while_its_slot_is_held() {
    let Some(mut server) = server_or_skip(&[]) else { return };
    let ttl = 2 * SECOND;
    // One node may hold a reserve: 250 of the burst, full again after 5 s; the slot of a second one is taken.
    let limit = SharedLimit::new("x", 1_000, SECOND, 100).reserve(500, 250);
    let open = || {
        let builder = Cluster::builder(&server.url(), 1).limit(limit.clone()).keys(64).slot_ttl(ttl);
        builder.timeout(10 * SECOND).log(|_| {}).open()
    };
    let (first, second) = (open().expect("a node"), open().expect("a node"));
    let x = first.limit("x").expect("it");
    assert!(!first.metrics().reserve_held, "a slot that was just claimed counts at once");
    let holds = || [&first, &second].map(|node| node.metrics().reserve_held);
    until("one holds the slot", || holds().contains(&true));
    let holders = holds();
    assert_eq!(holders.iter().filter(|held| **held).count(), 1, "{holders:?}");
    let (holder, other) = if holders[0] { (&first, &second) } else { (&second, &first) };
    server.kill();
    let passed = |node: &Cluster| (0..100).filter(|_| node.check(x, b"cold", 1).passes()).count();
    let begun = Instant::now();
    let (with, without) = (passed(holder), passed(other));
    // A quarter of the burst, and half of the rate.
    let most = 26.0 + 500.0 * begun.elapsed().as_secs_f64();
    assert!(with >= 25 && with as f64 <= most && without == 0, "{with} and {without}, at most {most}");
    std::thread::sleep(ttl);
    assert_eq!(passed(holder), 0, "the slot is another's by now, for all that this node knows");
}

#[test]
fn a_share_goes_on_for_its_rate() {
    let Some(mut server) = server_or_skip(&[]) else { return };
    let limit = SharedLimit::new("x", 1_000, SECOND, 1_000).reserve(0, 0);
    let open = Cluster::builder(&server.url(), 4).limit(limit).keys(64).when_down(Down::Share);
    let node = open.timeout(10 * SECOND).log(|_| {}).open().expect("a node");
    let x = node.limit("x").expect("it");
    let killed = Instant::now();
    server.kill();
    while node.metrics().up {
        let _ = node.acquire(x, b"k", 1, Duration::from_millis(10));
    }
    let (begun, mut passed) = (Instant::now(), 0);
    let base = node.metrics().passed_share;
    while begun.elapsed() < SECOND {
        passed += u32::from(node.check(x, b"k", 1).passes());
        std::thread::sleep(Duration::from_micros(200));
    }
    // And what was saved up if this thread did not run for a while.
    passed += (0..300).filter(|_| node.check(x, b"k", 1).passes()).count() as u32;
    // A quarter of 1000 a second.
    let most = 250.0 * killed.elapsed().as_secs_f64() + 1.0;
    println!("{passed} passed in a second, {base} before; at most {most} of both");
    assert!(passed >= 200 && f64::from(passed) + base as f64 <= most, "{passed}");
}

#[test]
fn faults_are_logged_once_a_second() {
    let Some(mut server) = server_or_skip(&[]) else { return };
    let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = lines.clone();
    let node = builder(&server.url(), 2);
    let node =
        node.log(move |line| log.lock().expect("a list").push(line.to_owned())).open().expect("a node");
    let begun = Instant::now();
    server.kill();
    let x = node.limit("x").expect("it");
    while begun.elapsed() < 2 * SECOND + SECOND / 2 {
        let _ = node.acquire(x, b"k", 1, Duration::from_millis(10));
    }
    let lines = lines.lock().expect("a list").clone();
    println!("{lines:?}");
    let most = begun.elapsed().as_secs() as usize + 2;
    assert!((2..=most).contains(&lines.len()) && lines.iter().all(|l| l.contains("Lost")));
    assert!(node.metrics().faults > lines.len() as u64);
    let mut text = String::new();
    node.metrics().prometheus(&mut text).expect("a string");
    let line = |line: &str| text.lines().any(|of| of == line);
    assert!(line("tatcell_cluster_up 0") && line("tatcell_cluster_outages_total 1"), "{text}");
    let states: Vec<&str> = text.lines().filter(|of| of.starts_with("tatcell_cluster_slot{state=")).collect();
    assert_eq!((states.len(), states.iter().filter(|of| of.ends_with(" 1")).count()), (11, 1), "{text}");
}

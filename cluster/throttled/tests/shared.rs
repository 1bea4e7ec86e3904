//! Servers that share their limits through a redis-server of the test's own.

mod common;

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use common::{Redis, Reply, Server};

fn start(redis: &Redis, more: &[&str]) -> Server {
    let url = redis.url();
    let shared = [
        "--store",
        &url,
        "--nodes",
        "2",
        "--limit",
        "1000/10s burst 1000",
        "--limit",
        "4 1 1000",
        "--keys",
        "1000",
    ];
    Server::start(&[&shared[..], more].concat())
}

/// A store that answers nobody on its first connections, and from then on as `redis` does. Returns its URL.
fn silent_at_first(redis: &Redis, connections: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (url, port) = (format!("redis://{}/", listener.local_addr().expect("it")), redis.1);
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for client in listener.incoming().flatten() {
            if silent.len() < connections {
                silent.push(client);
                continue;
            }
            let store = TcpStream::connect(("127.0.0.1", port)).expect("the store");
            for (mut from, mut to) in [(&client, &store), (&store, &client)]
                .map(|(from, to)| (from.try_clone().expect("a clone"), to.try_clone().expect("a clone")))
            {
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
        }
    });
    url
}

fn first(reply: Reply) -> i64 {
    match reply {
        Reply::Array(list) => match list[0] {
            Reply::Number(limited) => limited,
            _ => panic!("{list:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_store_that_is_silent_for_a_moment_is_asked_again_at_the_start() {
    let Some(redis) = Redis::start_or_skip(&[]) else { return };
    let shared = |url: &str| ["--store", url, "--nodes", "2", "--limit", "4 1 1000"].map(str::to_owned);
    let words = shared(&silent_at_first(&redis, 2));
    let server = Server::start(&words.each_ref().map(String::as_str));
    assert_eq!(first(server.connect().say("CL.THROTTLE few 4 1 1000")), 0);
    // One that stays silent is not waited for.
    let words = shared(&silent_at_first(&redis, usize::MAX));
    let line = common::refused(common::PROGRAM, &words.each_ref().map(String::as_str));
    assert!(line.contains("the store does not answer"), "{line}");
}

#[test]
fn two_servers_pass_together_what_one_would() {
    use tatcell::host::{unlink, ReadOnlyCounters};
    let Some(redis) = Redis::start_or_skip(&[]) else { return };
    let names = [0, 1].map(|i| format!("/tatcell-shared-{}-{i}", std::process::id()));
    let servers = names.each_ref().map(|name| start(&redis, &["--store-wait", "5s", "--counters", name]));
    let mut clients = servers.each_ref().map(Server::connect);
    // Strict: five at once, and each is known everywhere.
    let passed = (0..40).filter(|i| first(clients[i % 2].say("CL.THROTTLE few 4 1 1000")) == 0).count();
    assert_eq!(passed, 5);
    // Leased: 1000 at once, 100 a second.
    let (begun, mut passed, mut asked) = (Instant::now(), 0u64, 0u64);
    while begun.elapsed() < Duration::from_secs(2) || passed <= 500 {
        assert!(begun.elapsed() < common::PATIENCE, "{passed} of {asked} passed");
        for client in &mut clients {
            passed += u64::from(first(client.say("CL.THROTTLE many 999 1000 10")) == 0);
            asked += 1;
        }
    }
    let all_passed = passed + 5;
    let most = 1_000 + (100.0 * begun.elapsed().as_secs_f64()) as u64;
    println!("{passed} of {asked} passed; at most {most}");
    assert!(passed <= most, "{passed} of at most {most}");
    // Of two times 5 and 1000.
    assert_eq!(clients[0].say("CL.THROTTLE few 4 1 1000 6"), common::numbers([1, 5, 0, -1, 5_000]));
    let wrong = clients[0].say("CL.THROTTLE few 4 2 1000");
    assert!(
        matches!(wrong, Reply::Error(text) if text.contains("not one of the limits that this server shares"))
    );
    assert!(matches!(clients[0].say("DEL few"), Reply::Error(text) if text.contains("in the store")));
    assert!(servers[0].metric("tatcell_cluster_asks_total") > 0);
    for server in servers {
        server.signal(libc::SIGTERM);
        assert!(server.ended().ends_with(" 0 clients cut off"));
    }
    // What both have counted, when they have stopped: the call for 6 of 5 units never passes.
    let mut sum = tatcell::Counters::default();
    for name in names {
        let name = std::ffi::CString::new(name).expect("a name");
        sum.add(&ReadOnlyCounters::attach(&name).expect("counters").sum());
        unlink(&name).expect("a name");
    }
    let decided = sum.conforming + sum.non_conforming;
    assert_eq!((sum.conforming, decided, sum.never), (all_passed, asked + 40, 1));
}

#[test]
fn a_store_that_is_silent_is_an_error_and_then_a_refusal_and_never_a_pass() {
    let Some(redis) = Redis::start_or_skip(&[]) else { return };
    let server = start(&redis, &["--store-wait", "30ms"]);
    let mut client = server.connect();
    redis.signal(libc::SIGSTOP);
    let (begun, mut late, mut denied) = (Instant::now(), 0, 0);
    while late == 0 || denied == 0 || begun.elapsed() < Duration::from_millis(800) {
        assert!(begun.elapsed() < common::PATIENCE, "{late} late, {denied} denied");
        match client.say("CL.THROTTLE k 4 1 1000") {
            Reply::Error(text) if text.starts_with("TRYAGAIN") => late += 1,
            reply => {
                assert_eq!(first(reply), 1);
                denied += 1;
            }
        }
    }
    redis.signal(libc::SIGCONT);
    println!("{late} late, {denied} denied");
    let begun = Instant::now();
    loop {
        let reply = client.say("CL.THROTTLE k2 4 1 1000");
        if matches!(&reply, Reply::Array(list) if list[0] == Reply::Number(0)) {
            break;
        }
        assert!(begun.elapsed() < common::PATIENCE, "{reply:?}");
    }
}

//! A driver against a server in the same thread, over a socket file: what is written into it can be read at once, and
//! the test moves the driver's clock. Nothing depends on how long something takes.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use super::*;
use crate::clock::NodeClock;
use crate::random::Seeds;
use crate::{Cluster, SharedLimit};

const SECOND: Duration = Duration::from_secs(1);

/// A driver that has connected, and the server's end of the connection.
struct World {
    driver: Driver,
    events: Events,
    server: UnixStream,
    opened: Opened,
    folder: tempfile::TempDir,
    listener: UnixListener,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store");
        let listener = UnixListener::bind(&path).expect("a socket file");
        let limit = SharedLimit::new("x", 100, SECOND, 100).reserve(0, 0);
        let builder = Cluster::builder(&format!("redis+unix://{}", path.display()), 1).limit(limit).keys(8);
        let clock = NodeClock::new().expect("a clock");
        // So long that only the test makes something late.
        let builder = builder.timeout(3_600 * SECOND).log(|_| {});
        let (node, opening, jobs) = builder.parts(clock, Seeds::System, None).expect("a node");
        let poll = Poll::new().expect("a poll");
        let waker = Arc::new(Waker::new(poll.registry(), BELL).expect("a waker"));
        let streams = Streams {
            timeout: SECOND,
            #[cfg(feature = "tls")]
            tls: None,
        };
        let (tell, opened) = sync_channel(1);
        let machine = Machine::new(node.clone(), opening, jobs);
        let mut driver = Driver::new(node, machine, (poll, waker), streams, tell);
        driver.step();
        let mut events = Events::with_capacity(64);
        // The thread that connects wakes it.
        while driver.links.values().all(Option::is_none) {
            driver.turn(&mut events);
        }
        let (server, _) = listener.accept().expect("a connection");
        World { driver, events, server, opened, folder, listener }
    }

    /// Waits for a command, and returns the bytes.
    fn asked(&mut self) -> String {
        let mut bytes = [0; 4_096];
        let read = self.server.read(&mut bytes).expect("a command");
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    fn turn(&mut self) {
        self.driver.turn(&mut self.events);
    }

    /// Lets the process stand still for longer than anything may take.
    fn stall(&mut self) {
        self.driver.started = self.driver.started.checked_sub(9_000 * SECOND).expect("a time before");
    }
}

#[test]
fn an_answer_that_came_while_the_process_stood_still_is_not_late() {
    let mut world = World::new();
    assert!(world.asked().contains("PING"));
    world.server.write_all(b"+PONG\r\n").expect("written");
    world.turn();
    assert!(world.asked().contains("INFO"));
    // More than one read takes.
    let info = format!("redis_version:7.0.15\r\nredis_mode:standalone\r\n{}", "x".repeat(40_000));
    write!(world.server, "${}\r\n{info}\r\n", info.len()).expect("written");
    world.stall();
    world.turn();
    assert!(world.opened.try_recv().is_err(), "it goes on");
    assert!(world.asked().contains("EVAL"));
    // And if it did not come, it is late.
    world.stall();
    world.turn();
    let why = world.opened.try_recv().expect("an end").expect_err("no answer").to_string();
    assert!(why.contains("no answer within 3600s"), "{why}");
}

#[test]
fn a_server_that_sends_more_than_a_turn_reads_is_read_on_without_a_new_edge() {
    let mut world = World::new();
    world.driver.buffer = vec![0; 8].into();
    assert!(world.asked().contains("PING"));
    let pong = format!("+{}\r\n", "x".repeat(20 * READS));
    world.server.write_all(pong.as_bytes()).expect("written");
    world.turn();
    assert_eq!(world.driver.unfinished.len(), 1, "the turn has an end");
    while !world.driver.unfinished.is_empty() {
        world.turn();
    }
    assert!(world.asked().contains("INFO"));
}

#[test]
fn a_stream_that_came_too_late_is_kept_for_the_next_try_but_not_for_long() {
    for (age, is_used) in [(SPARE, true), (SPARE + Duration::from_nanos(1), false)] {
        let mut world = World::new();
        let (id, driver) = (LinkId(1), &mut world.driver);
        let at = ConnectionAddr::Unix(world.folder.path().join("store"));
        assert!(world.listener.local_addr().is_ok(), "it is there");
        driver.links.insert(id, None);
        let stream = driver.streams.connect(&at).expect("a stream");
        driver.making.insert(at.to_string(), Making { threads: 1, ..Making::default() });
        driver.links.clear();
        driver.made(&at, Ok(stream));
        driver.time += age.as_nanos() as u64;
        driver.drop_old();
        assert_eq!(driver.making.contains_key(&at.to_string()), is_used);
        driver.connect(LinkId(2), at.clone());
        assert_eq!(driver.links[&LinkId(2)].is_some(), is_used);
        assert!(driver.making[&at.to_string()].spare.is_none());
    }
}

#[test]
fn a_thread_that_was_late_is_followed_by_another_while_somebody_waits() {
    let mut world = World::new();
    let (at, driver) = (ConnectionAddr::Unix(world.folder.path().join("store")), &mut world.driver);
    driver.links.insert(LinkId(2), None);
    let making = Making { threads: 1, waiting: VecDeque::from([LinkId(2)]), spare: None };
    driver.making.insert(at.to_string(), making);
    // It was made for a try that was given up.
    driver.made(&at, Err(io::ErrorKind::TimedOut.into()));
    assert!(!driver.told && driver.making[&at.to_string()].threads == 1);
    let (_, made) = driver.made.1.recv().expect("a thread that makes another");
    driver.made(&at, made);
    assert!(driver.links[&LinkId(2)].is_some());
    // Another error is told.
    driver.links.insert(LinkId(3), None);
    let making = Making { threads: 1, waiting: VecDeque::from([LinkId(3)]), spare: None };
    driver.making.insert(at.to_string(), making);
    driver.told = false;
    driver.made(&at, Err(io::ErrorKind::ConnectionRefused.into()));
    assert!(driver.told && driver.making[&at.to_string()].threads == 0);
}

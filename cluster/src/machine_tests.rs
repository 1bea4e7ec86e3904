//! A machine against answers that a test makes up: bytes that come one by one, late, or not at all. Nothing waits here,
//! because the test says what time it is.

use std::sync::Arc;

use redis::Value;

use super::*;
use crate::clock::NodeClock;
use crate::random::{Random, Seeds};
use crate::wire::LinkId;
use crate::{Builder, Cluster, SharedLimit, Verdict};

const MS: u64 = 1_000_000;

/// A node, and a store with a single server that says what the test wants.
struct World {
    cluster: Cluster,
    machine: Machine,
    time: u64,
    /// Bytes that come at once.
    piece: usize,
    actions: Vec<String>,
}

fn builder() -> Builder {
    let limit = SharedLimit::new("x", 1_000, std::time::Duration::from_secs(1), 1_000).reserve(0, 0);
    Cluster::builder("redis://:secret@store/3", 1).limit(limit).keys(8).log(|_| {})
}

impl World {
    fn new(piece: usize) -> World {
        let clock = Arc::new(crate::sync::AtomicU64::new(0));
        let seeds = Seeds::Given(Random::new(1));
        let (node, opening, jobs) = builder().parts(NodeClock::given(clock), seeds, None).expect("a node");
        let cluster = Cluster::new(node.clone(), None);
        let machine = Machine::new(node, opening, jobs);
        World { cluster, machine, time: 1_000 * MS, piece, actions: Vec::new() }
    }

    /// Steps, and answers what is sent until there is nothing more to do. Returns whether something was sent.
    fn step(&mut self, event: Event<'_>, answer: &dyn Fn(&[Vec<u8>]) -> Vec<u8>) {
        let now = |time| Now { reading: time, timer: time };
        let mut todo = self.machine.step(now(self.time), event);
        while !todo.is_empty() {
            for action in std::mem::take(&mut todo) {
                let (id, bytes) = match action {
                    Action::Connect(id, at) => {
                        self.actions.push(format!("connect {at}"));
                        todo.extend(self.machine.step(now(self.time), Event::Connected(id)));
                        continue;
                    }
                    Action::Close(_) => {
                        self.actions.push("close".into());
                        continue;
                    }
                    Action::Send(id, bytes) => (id, bytes),
                };
                let mut answers = Vec::new();
                for call in calls(&bytes) {
                    self.actions.push(String::from_utf8_lossy(&call[0]).into());
                    answers.extend(answer(&call));
                }
                for piece in answers.chunks(self.piece) {
                    todo.extend(self.machine.step(now(self.time), Event::Bytes(id, piece)));
                }
            }
        }
    }

    /// Lets time pass up to the machine's deadline.
    fn wait(&mut self, answer: &dyn Fn(&[Vec<u8>]) -> Vec<u8>) {
        self.time = self.time.max(self.machine.deadline());
        self.step(Event::Time, answer);
    }

    fn opened(&mut self) -> Option<Result<(), String>> {
        self.machine.opened().map(|opened| opened.map_err(|why| why.to_string()))
    }
}

/// The words of each command.
fn calls(mut bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut calls = Vec::new();
    while !bytes.is_empty() {
        let Ok(Value::Array(words)) = redis::Parser::new().parse_value(&mut bytes) else {
            panic!("no command")
        };
        let word = |word| redis::from_redis_value::<Vec<u8>>(word).expect("a word");
        calls.push(words.into_iter().map(word).collect());
    }
    calls
}

/// Answers as a server with no debt and no mark does.
fn sound(call: &[Vec<u8>]) -> Vec<u8> {
    let text = |n: usize| String::from_utf8_lossy(&call[n]).into_owned();
    let bulk = |s: &str| format!("${}\r\n{s}\r\n", s.len());
    let id = bulk(&text(call.len() - 1));
    let said = match (text(0).as_str(), call.len()) {
        ("AUTH" | "SELECT", _) => "+OK\r\n".to_owned(),
        ("PING", _) => "+PONG\r\n".to_owned(),
        ("INFO", _) => bulk("redis_version:7.0.15\r\nredis_mode:standalone\r\n"),
        // A slot: holder, time, id.
        (_, 7) => format!("*2\r\n:1\r\n{id}"),
        // A mark: time, version, next, before, ahead, change, delay, id.
        (_, 12) => format!("*5\r\n:{}\r\n:0\r\n{}{}{id}", text(5), bulk(&text(6)), bulk(&text(7))),
        // A grant of what is wanted, but not of what cannot be granted.
        (_, 15) if text(8).parse::<u64>().expect("a number") > 500 => {
            format!("*5\r\n:0\r\n:0\r\n:9\r\n$0\r\n\r\n{id}")
        }
        (_, 15) => format!("*5\r\n:{}\r\n:0\r\n:0\r\n{}{id}", text(8), bulk("1:0:1000:0:1")),
        (_, 6) => format!("*2\r\n:1\r\n{id}"),
        other => panic!("{other:?}"),
    };
    said.into_bytes()
}

fn nothing(_: &[Vec<u8>]) -> Vec<u8> {
    Vec::new()
}

#[test]
fn a_node_is_opened_asks_and_is_closed_in_steps_whatever_the_pieces_of_the_answers() {
    let run = |piece| {
        let mut world = World::new(piece);
        world.step(Event::Time, &sound);
        assert_eq!(world.opened(), None, "it waits for the turn of other nodes");
        world.wait(&sound);
        assert_eq!((world.opened(), world.time), (Some(Ok(())), 2_800 * MS));
        let limit = world.cluster.limit("x").expect("a limit");
        assert_eq!(world.cluster.submit_at(limit, b"key", 3, world.time, 7), Verdict::Pending);
        assert_eq!(world.machine.deadline(), 0, "a worker rang");
        world.step(Event::Time, &sound);
        let mut answers = Vec::new();
        world.cluster.drain(&mut answers);
        assert_eq!(answers.iter().map(|a| (a.token, a.verdict)).collect::<Vec<_>>(), [(7, Verdict::Pass)]);
        assert_eq!(
            world.cluster.check_at(limit, b"key", 1, world.time),
            Verdict::Pass,
            "the rest of the piece"
        );
        drop(std::mem::replace(&mut world.cluster, World::new(1).cluster));
        world.step(Event::Time, &sound);
        assert!(world.machine.is_done() && world.machine.deadline() == u64::MAX);
        world.actions
    };
    let whole = run(usize::MAX);
    assert_eq!(whole[..4], ["connect store:6379", "AUTH", "SELECT", "PING"]);
    for piece in [1, 2, 7, 64] {
        assert_eq!(run(piece), whole, "{piece}");
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up_after_the_timeout() {
    let mut world = World::new(1);
    world.step(Event::Time, &nothing);
    assert_eq!((world.actions.len(), world.machine.deadline()), (2, 1_250 * MS));
    world.wait(&nothing);
    let said = world.opened().expect("an end").expect_err("no store");
    assert!(said.contains("no answer within 250ms"), "{said}");
    assert!(world.machine.is_done() && world.actions.ends_with(&["close".into()]));
}

/// Steps without an answer, up to the deadline.
fn without_a_stream(world: &mut World) -> Vec<Action> {
    world.time = world.time.max(world.machine.deadline());
    world.machine.step(Now { reading: world.time, timer: world.time }, Event::Time)
}

#[test]
fn a_stream_that_is_not_made_is_given_up_after_four_timeouts() {
    let mut world = World::new(1);
    let actions = world.machine.step(Now { reading: 0, timer: world.time }, Event::Time);
    assert!(matches!(actions[..], [Action::Connect(LinkId(1), _)]));
    for id in 2..=4 {
        let actions = without_a_stream(&mut world);
        assert!(matches!(actions[..], [Action::Close(_), Action::Connect(LinkId(new), _)] if new == id));
        assert_eq!((world.time, world.opened()), (1_000 * MS + 250 * MS * (id - 1), None));
    }
    assert!(matches!(without_a_stream(&mut world)[..], [Action::Close(LinkId(4))]));
    assert_eq!(world.time, 2_000 * MS);
    let said = world.opened().expect("an end").expect_err("no store");
    assert!(said.contains("no connection within 250ms (name, TCP and TLS), try 4 of 4"), "{said}");
}

/// As with TLS over a long way: whoever makes the stream has it when the machine tries again.
#[test]
fn a_stream_that_comes_too_late_opens_the_node_at_the_next_try() {
    let mut world = World::new(1);
    world.machine.step(Now { reading: 0, timer: world.time }, Event::Time);
    without_a_stream(&mut world);
    world.step(Event::Connected(LinkId(2)), &sound);
    world.wait(&sound);
    assert_eq!(world.opened(), Some(Ok(())));
}

#[test]
fn what_ends_while_nobody_asks_is_noticed_and_connected_again() {
    let mut world = World::new(9);
    world.step(Event::Time, &sound);
    world.wait(&sound);
    assert_eq!(world.opened(), Some(Ok(())));
    world.actions.clear();
    world.step(Event::Closed(LinkId(1), "reset".into()), &sound);
    assert!(!world.cluster.metrics().up);
    world.wait(&sound);
    assert!(world.cluster.metrics().up);
    assert_eq!(world.actions[..2], ["close", "connect store:6379"]);
}

#[test]
fn a_server_that_sends_what_nobody_asked_for_is_left() {
    for ends in [false, true] {
        let mut world = World::new(9);
        world.step(Event::Time, &sound);
        world.wait(&sound);
        assert_eq!(world.opened(), Some(Ok(())));
        world.actions.clear();
        if ends {
            world.machine.tell(world.time, Event::Bytes(LinkId(1), b"+OK\r\n"));
            world.step(Event::Closed(LinkId(1), "reset".into()), &sound);
        } else {
            world.step(Event::Bytes(LinkId(1), b"+OK\r\n"), &sound);
        }
        assert!(!world.cluster.metrics().up);
        assert_eq!(world.actions, ["close"]);
    }
}

/// Answers a read of the mark: the limit changes after `us`. Answers everything else like [`sound`].
fn changes_in(call: &[Vec<u8>], us: u64) -> Vec<u8> {
    if call.len() != 12 {
        return sound(call);
    }
    let text = |n: usize| String::from_utf8_lossy(&call[n]).replace("burst 1000,", "burst 900,");
    let bulk = |s: &str| format!("${}\r\n{s}\r\n", s.len());
    format!("*5\r\n:2\r\n:{us}\r\n{}{}{}", bulk(&text(6)), bulk(&text(7)), bulk(&text(11))).into_bytes()
}

/// Otherwise the other nodes would believe a later moment if the server's clock is set back.
#[test]
fn a_change_that_comes_into_force_while_its_mark_is_read_is_said_at_once() {
    let mut world = World::new(usize::MAX);
    world.step(Event::Time, &sound);
    world.wait(&sound);
    assert_eq!(world.opened(), Some(Ok(())));
    // The mark is read once a second: the next time shortly before the change.
    world.wait(&|call| changes_in(call, 1_000_100));
    let call = std::cell::RefCell::new(Vec::new());
    world.wait(&|asked| {
        call.replace(asked.to_vec());
        Vec::new()
    });
    assert_eq!(call.borrow().len(), 12);
    world.time += 10 * MS;
    let answer = changes_in(&call.borrow(), 50);
    world.actions.clear();
    world.step(Event::Bytes(LinkId(1), &answer), &|asked| {
        call.replace(asked.to_vec());
        sound(asked)
    });
    assert_eq!(world.actions.len(), 1, "it is read again: {:?}", world.actions);
    assert_eq!(call.borrow()[8], b"0", "in force by this node's clock");
}

/// A whole and valid reply, but not that of a script: the connection is not in step, as if it had another id.
#[test]
fn an_answer_of_another_shape_is_not_used_and_closes_the_connection() {
    for other in [&b":1\r\n"[..], b"+OK\r\n", b"$-1\r\n", b"*0\r\n", b"*1\r\n*0\r\n"] {
        let mut world = World::new(9);
        world.step(Event::Time, &sound);
        world.wait(&sound);
        let limit = world.cluster.limit("x").expect("a limit");
        assert_eq!(world.cluster.submit_at(limit, b"key", 3, world.time, 7), Verdict::Pending);
        world.actions.clear();
        world.step(Event::Time, &|call| if call.len() == 15 { other.to_vec() } else { sound(call) });
        let mut answers = Vec::new();
        world.cluster.drain(&mut answers);
        assert!(answers.iter().all(|answer| answer.verdict != Verdict::Pass), "{other:?}: {answers:?}");
        assert_eq!(world.cluster.metrics().granted_units, 0);
        assert!(!world.cluster.metrics().up && world.actions.contains(&"close".to_owned()), "{other:?}");
    }
}

#[test]
fn a_server_that_sends_more_than_an_answer_is_left() {
    let mut world = World::new(9);
    world.step(Event::Time, &nothing);
    let flood = [&b"+"[..], &vec![b'x'; 1 << 20]].concat();
    world.step(Event::Bytes(LinkId(1), &flood), &nothing);
    assert!(world.opened().is_some_and(|opened| opened.is_err_and(|why| why.contains("more than"))));
}

#[test]
fn time_goes_on_while_the_queue_is_never_empty() {
    let mut world = World::new(9);
    world.step(Event::Time, &sound);
    world.wait(&sound);
    let limit = world.cluster.limit("x").expect("a limit");
    for token in 0..150 {
        assert_eq!(world.cluster.submit_at(limit, b"key", 1, world.time, token), Verdict::Pending);
    }
    // They are answered without the store, which takes no time.
    let mut answered = Vec::new();
    for (many, event) in
        [(64, Event::Closed(LinkId(1), "reset".into())), (128, Event::Time), (150, Event::Time)]
    {
        world.step(event, &nothing);
        world.cluster.drain(&mut answered);
        assert_eq!((answered.len(), world.machine.deadline()), (many, 0), "a step has an end");
    }
}

#[test]
fn units_are_given_back_as_far_as_the_line_still_holds_them() {
    let mut world = World::new(9);
    world.step(Event::Time, &sound);
    world.wait(&sound);
    let limit = world.cluster.limit("x").expect("a limit");
    let give_back = |world: &World, units| world.machine.node.give_back(0, b"key", units, world.time);
    assert_eq!(give_back(&world, 5), 0, "it holds nothing");
    assert_eq!(world.cluster.submit_at(limit, b"key", 3, world.time, 7), Verdict::Pending);
    world.step(Event::Time, &sound);
    let take = |world: &World| world.cluster.check_at(limit, b"key", 1, world.time) == Verdict::Pass;
    let held = (0..).take_while(|_| take(&world)).count() as u64;
    assert!(held > 0);
    assert_eq!(give_back(&world, 2), 2);
    assert_eq!((take(&world), take(&world), take(&world)), (true, true, false));
    assert_eq!(give_back(&world, 1_000), held + 3, "all of the piece");
    assert_eq!((0..).take_while(|_| take(&world)).count() as u64, held + 3);
    // A hold later it has lapsed.
    world.time += 1_000 * MS;
    assert_eq!(give_back(&world, 1_000), 0);
}

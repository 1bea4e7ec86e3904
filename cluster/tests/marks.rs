//! The marks by which nodes agree on a limit: the shipped script by a clock that the test sets, and nodes whose store
//! loses its marks, or whose server's clock is set back.

mod common;

use std::time::{Duration, Instant};

use common::{server_or_skip, until, Server};
use tatcell_cluster::script::{self, By, Mark, FORMAT, MARK};
use tatcell_cluster::{Cluster, OpenError, SharedLimit, SlotState};

const SECOND: Duration = Duration::from_secs(1);
/// How long a change takes in the tests of the script, in microseconds.
const DELAY: u64 = 30_000_000;
const NOW: u64 = 1_700_000_000_000_000;

/// A server whose clock the test sets, for the script of marks.
struct Marks {
    connection: redis::Connection,
    text: String,
}

impl Marks {
    fn on(server: &Server) -> Marks {
        // The clock is the last argument.
        let text = format!(
            "local real, ARGV, now = redis, {{unpack(ARGV, 1, #ARGV - 1)}}, tonumber(ARGV[#ARGV])
             local redis = {{ error_reply = real.error_reply, call = function(name, ...)
               if name == 'TIME' then return {{ math.floor(now / 1000000), now % 1000000 }} end
               return real.call(name, ...)
             end }}
             {MARK}"
        );
        Marks { connection: server.connect(), text }
    }

    /// A node that knows `mine` reads the mark at this time.
    fn read(&mut self, now: u64, mine: (u64, &str, u64), change: Option<&str>) -> (u64, u64, String) {
        let (version, next, ahead_us) = mine;
        let mine = Mark { version, ahead_us, next: next.into(), before: "old".into() };
        let shipped = script::mark(By::Text, b"m", 60_000, &mine, change.map(|to| (to, DELAY)));
        let mut call = redis::cmd("EVAL");
        call.arg(&self.text).arg(1).arg("m");
        for argument in shipped.args_iter().skip(4) {
            if let redis::Arg::Simple(bytes) = argument {
                call.arg(bytes);
            }
        }
        let mark: Mark = call.arg(now).query(&mut self.connection).expect("a mark");
        (mark.version, mark.ahead_us, mark.next)
    }
}

fn new(ahead: u64) -> (u64, u64, String) {
    (2, ahead, "new".into())
}

#[test]
fn a_change_that_a_node_saw_in_force_stays_so_if_the_clock_is_set_back() {
    let Some(server) = server_or_skip(&[]) else { return };
    let mut marks = Marks::on(&server);
    assert_eq!(marks.read(NOW, (0, "old", 0), None), (0, 0, "old".into()));
    assert_eq!(marks.read(NOW, (1, "old", 0), Some("new")), new(DELAY));
    assert_eq!(marks.read(NOW + 10, (2, "new", DELAY), None), new(DELAY - 10));
    // Set back while it is on its way: it comes later, for all.
    assert_eq!(marks.read(NOW - 5, (0, "old", 0), None), new(DELAY + 5));
    assert_eq!(marks.read(NOW + DELAY, (2, "new", 1), None), new(0));
    for back in [1, DELAY, 3_600_000_000] {
        assert_eq!(marks.read(NOW - back, (0, "old", 0), None), new(0), "set back by {back}");
    }
}

#[test]
fn a_node_that_changed_by_its_own_clock_says_so_to_the_others() {
    let Some(server) = server_or_skip(&[]) else { return };
    let mut marks = Marks::on(&server);
    assert_eq!(marks.read(NOW, (1, "old", 0), Some("new")), new(DELAY));
    // Nobody read it before the clock was set back.
    assert_eq!(marks.read(NOW, (0, "new", 0), None), new(DELAY), "one that opens knows nothing");
    assert_eq!(marks.read(NOW, (1, "old", 0), None), new(DELAY), "nor one that did not hear of it");
    assert_eq!(marks.read(NOW, (2, "another", 0), None), new(DELAY), "nor one of another change");
    assert_eq!(marks.read(NOW, (2, "new", 0), None), new(0));
    assert_eq!(marks.read(NOW, (0, "old", 0), None), new(0));
    // And so the next change is possible.
    assert_eq!(marks.read(NOW, (2, "new", 0), Some("newer")), (3, DELAY, "newer".into()));
}

#[test]
fn a_mark_that_was_lost_is_that_of_the_nodes_that_run() {
    let Some(server) = server_or_skip(&[]) else { return };
    let mut marks = Marks::on(&server);
    // One that opens, another one, and a node that runs.
    assert_eq!(marks.read(NOW, (0, "old", 0), None), (0, 0, "old".into()));
    assert_eq!(marks.read(NOW, (0, "old", 0), None), (0, 0, "old".into()), "still not of a node that runs");
    assert_eq!(marks.read(NOW, (2, "new", 0), None), new(0));
    assert_eq!(marks.read(NOW, (1, "old", 0), None), new(0));
    // A change that is on its way.
    server.say::<()>(&["FLUSHALL"]).expect("ok");
    assert_eq!(marks.read(NOW, (0, "old", 0), None), (0, 0, "old".into()));
    assert_eq!(marks.read(NOW, (2, "new", 70), None), new(70));
    assert_eq!(marks.read(NOW + 70, (0, "old", 0), None), new(0));
}

/// What the store keeps, by the table of docs/CLUSTER.md: how each tells the format that it has.
#[test]
fn marks_keys_and_slots_have_the_forms_of_the_page() {
    let Some(server) = server_or_skip(&[]) else { return };
    // So slow that its key stays for 20 s.
    let node = open(&server, 1);
    let x = node.limit("x").expect("it");
    assert!(node.acquire(x, b"k", 20, 10 * SECOND).passes());
    until("it has a slot", || {
        server.say::<Vec<String>>(&["KEYS", "tatcell:slot:?"]).is_ok_and(|k| k.len() == 1)
    });
    let parameters = "1 per 1000000000 ns, burst 400, reserve 50/250, 3 nodes, changes take 3000 ms";
    let mark = format!("f{FORMAT};1;0;{parameters};{parameters}");
    assert_eq!(server.say(&["GET", "tatcell:limit:x"]), Ok(mark));
    let keys: Vec<String> = server.say(&["KEYS", "tatcell:*{}:*"]).expect("keys");
    let [key] = &keys[..] else { panic!("one key: {keys:?}") };
    let digest = key.strip_prefix(&format!("tatcell:{FORMAT}:")).and_then(|rest| rest.strip_suffix("{}:k"));
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(digest.is_some_and(|digest| digest.len() == 16 && is_hex(digest)), "{key}");
    let value: String = server.say(&["GET", key]).expect("a value");
    let fields: Vec<u64> = value.split(':').map(|field| field.parse().expect("a number")).collect();
    assert_eq!((fields.len(), fields[4]), (5, 1), "{value}");
    let slots: Vec<String> = server.say(&["KEYS", "tatcell:slot:?"]).expect("keys");
    let holder: String = server.say(&["GET", &slots[0]]).expect("a holder");
    assert!(holder.len() == 32 && is_hex(&holder), "{holder}");
    // A call names its script by the digest of its text, so a reply has the form of the node that asks.
    let of_page = include_str!("../../docs/CLUSTER.md");
    for form in [format!("`f{FORMAT};version;from;next;before`"), format!("`prefix:{FORMAT}:digest{{}}:key`")]
    {
        assert!(of_page.contains(&form), "{form}");
    }
}

/// What nodes of 0.3, early builds of 0.4 and a later version write; and a text that no node wrote.
const OTHERS: [(&str, &str); 4] = [
    ("400 per 1000000000 ns, burst 400, 3 nodes, reserve 50/250", "has no format, as in tatcell 0.3"),
    ("2;0;new;old", "has no format, as in tatcell 0.3"),
    ("f3;2;0;new;old;more", "has format 3; this node has format 2"),
    ("f2;2;0;new;old;more", "is not a mark"),
];

#[test]
fn marks_of_other_formats_are_refused_by_name_and_stay() {
    let Some(server) = server_or_skip(&[]) else { return };
    for (other, why) in OTHERS {
        server.say::<()>(&["SET", "tatcell:limit:x", other]).expect("ok");
        let builder = Cluster::builder(&server.url(), 3).limit(limit(400)).keys(64).log(|_| {});
        let error = builder.timeout(10 * SECOND).open().expect_err("refused");
        println!("{error}");
        assert_eq!(matches!(error, OpenError::OtherFormat(_)), why.contains("format"), "{error:?}");
        assert!(error.to_string().contains("tatcell:limit:x") && error.to_string().contains(why), "{error}");
        assert_eq!(server.say(&["GET", "tatcell:limit:x"]), Ok(other.to_owned()));
    }
}

/// The store loses its data, and nodes of a later version are there first.
#[test]
fn a_node_that_runs_refuses_a_mark_of_a_later_version_by_name_and_goes_on_when_it_is_gone() {
    let Some(server) = server_or_skip(&[]) else { return };
    let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = lines.clone();
    let builder = Cluster::builder(&server.url(), 3).limit(limit(400)).keys(64).slot_ttl(SECOND);
    let log = move |line: &str| log.lock().expect("a list").push(line.to_owned());
    let node = builder.change_delay(CHANGE).timeout(10 * SECOND).log(log).open().expect("a node");
    let x = node.limit("x").expect("it");
    until("it has its reserve", || node.metrics().slot == SlotState::Held);
    server.say::<()>(&["SET", "tatcell:limit:x", OTHERS[2].0]).expect("ok");
    until("what it holds has ended", || node.metrics().slot == SlotState::OtherFormat);
    let said = lines.lock().expect("a list").clone();
    assert!(said.iter().any(|line| line.contains("tatcell:limit:x has format 3")), "{said:?}");
    assert_eq!(server.say(&["GET", "tatcell:limit:x"]), Ok(OTHERS[2].0.to_owned()), "nothing is lost");
    assert!(!node.acquire(x, b"new", 1, SECOND).passes(), "it spends nothing");
    server.say::<()>(&["DEL", "tatcell:limit:x"]).expect("ok");
    until("it goes on", || {
        node.metrics().slot == SlotState::Held && node.acquire(x, b"new", 1, SECOND).passes()
    });
}

fn limit(units: u64) -> SharedLimit {
    SharedLimit::new("x", units, SECOND, 400)
}

/// Nodes read the marks once a second.
const CHANGE: Duration = Duration::from_secs(3);

fn open(server: &Server, units: u64) -> Cluster {
    let builder = Cluster::builder(&server.url(), 3).limit(limit(units)).keys(64).log(|_| {});
    // However busy the machine is: a server that is there answers within this.
    builder.change_delay(CHANGE).timeout(10 * SECOND).open().expect("a node")
}

fn is_in_force(node: &Cluster, units: u64) -> bool {
    node.in_force(node.limit("x").expect("it")) == limit(units)
}

/// Two nodes after a change from 4000 to 400 a second.
fn changed(server: &Server) -> [Cluster; 2] {
    let nodes = [0, 1].map(|_| open(server, 4_000));
    let after = nodes[0].change(limit(400), 10 * SECOND).expect("changed");
    std::thread::sleep(after);
    until("it is in force", || nodes.iter().all(|node| is_in_force(node, 400)));
    nodes
}

/// Sets the clock of the server back, as far as marks can tell.
fn set_back(server: &Server, seconds: u64) {
    let shift = "local v, f, r = string.match(redis.call('GET', KEYS[1]), '^(f%d+;%d+);(%d+);(.*)$') \
         redis.call('SET', KEYS[1], string.format('%s;%.0f;%s', v, f + ARGV[1], r), 'KEEPTTL')";
    let by = (seconds * 1_000_000).to_string();
    server.say::<redis::Value>(&["EVAL", shift, "1", "tatcell:limit:x", &by]).expect("set");
}

#[test]
fn a_node_that_opens_after_the_clock_was_set_back_goes_by_the_change() {
    let Some(server) = server_or_skip(&[]) else { return };
    let nodes = changed(&server);
    // At once, and after every node has read the mark again.
    for wait in [Duration::ZERO, SECOND] {
        std::thread::sleep(wait);
        set_back(&server, 30);
        for configured in [400, 4_000] {
            let third = open(&server, configured);
            assert!(is_in_force(&third, 400), "after {wait:?}, with {configured}");
        }
        assert!(nodes.iter().all(|node| is_in_force(node, 400)));
    }
}

#[test]
fn a_node_that_opens_after_the_store_lost_its_data_goes_by_the_change() {
    for restart in [false, true] {
        let Some(mut server) = server_or_skip(&[]) else { return };
        let nodes = changed(&server);
        if restart {
            server.restart();
        } else {
            server.say::<()>(&["FLUSHALL"]).expect("ok");
        }
        let third = open(&server, 4_000);
        assert!(is_in_force(&third, 400), "restarted: {restart}");
        assert!(nodes.iter().all(|node| is_in_force(node, 400)));
        let after = third.change(limit(200), 10 * SECOND).expect("its version counts on");
        std::thread::sleep(after);
        until("all go by it", || nodes.iter().chain([&third]).all(|node| is_in_force(node, 200)));
    }
}

#[test]
fn a_first_start_on_an_empty_store_waits_for_nodes_that_may_run_and_the_next_one_does_not() {
    let Some(server) = server_or_skip(&[]) else { return };
    let begun = Instant::now();
    let first = open(&server, 400);
    let waited = begun.elapsed();
    // On a busy machine one may take as long, and not each of them.
    let next = [0, 1, 2].map(|_| {
        let begun = Instant::now();
        assert!(is_in_force(&open(&server, 400), 400));
        begun.elapsed()
    });
    println!("{waited:?}, then {next:?}");
    let wait = Duration::from_millis(1_800);
    assert!(waited >= wait && next.iter().any(|next| *next < wait) && is_in_force(&first, 400));
}

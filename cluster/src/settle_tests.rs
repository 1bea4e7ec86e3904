//! What answers lead to, without a store: these tests make the answers up.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::*;
use crate::clock::NodeClock;
use crate::line::When;
use crate::node::Waiter;
use crate::random::Seeds;
use crate::script::Fault;
use crate::sync::{AtomicU64, Ordering};
use crate::{Cluster, SharedLimit};

const MS: u64 = 1_000_000;

fn clock() -> NodeClock {
    NodeClock::new().expect("a clock")
}

/// A limit of one unit a millisecond, without a reserve.
fn node(burst: u64) -> (Node, Receiver<Job>, Batch) {
    node_with(burst, Down::Reserve)
}

fn node_with(burst: u64, down: Down) -> (Node, Receiver<Job>, Batch) {
    let limit = SharedLimit::new("x", 1_000, Duration::from_secs(1), burst).reserve(0, 0);
    let node = Cluster::builder("redis://127.0.0.1/", 1).limit(limit).keys(8);
    let (node, jobs) = node.when_down(down).node(clock(), Seeds::System, None).expect("a node");
    let batch = Batch::new(&node, Random::new(1));
    (node, jobs, batch)
}

/// A request whose token is its cost.
fn submit(node: &Node, cost: u64) -> Verdict {
    node.decide(0, b"key", cost, node.clock.read(), Some(|| Waiter::Token(cost)))
}

/// The answers so far, as (token, verdict).
fn answers(node: &Node) -> Vec<(u64, Verdict)> {
    let list = node.answers.take(usize::MAX);
    list.into_iter().map(|a| (a.token, a.verdict)).collect()
}

fn missed(fault: Fault) -> Result<Grant, Miss> {
    Err(Miss::new(fault, "said"))
}

fn granted(units: u64, lead_us: u64) -> Result<Grant, Miss> {
    Ok(Grant { units, lead_us, retry_us: 0, stamp: "1:0:1000:0:1".into() })
}

fn refused(retry_us: u64) -> Result<Grant, Miss> {
    Ok(Grant { retry_us, ..Grant::default() })
}

#[test]
fn a_piece_lies_by_the_time_of_sending() {
    let (node, jobs, mut batch) = node(1_000);
    assert_eq!(submit(&node, 1), Verdict::Pending);
    let calls = batch.prepare(&node, jobs.try_iter().collect(), true, node.clock.now());
    let (index, tag) = (calls[0].index, calls[0].jobs[0].tag);
    // Sent half a second before the answer is settled; the piece begins 480 ms after the sending.
    let sent = node.clock.now() - 500 * MS;
    batch.settle(&node, calls, sent, node.clock.now(), vec![granted(10, 480_000)]);
    assert_eq!(answers(&node), [(1, Verdict::Pass)]);
    let when = When { reading: node.clock.now() + MS, hold: 1_000 * MS };
    let second = node.limits[0].lines.get(index).take(tag, when, MS);
    let begins = sent - crate::piece::PLACE_EARLY_NS + 480 * MS;
    assert!(matches!(second, Taken::Yes { end, .. } if end == begins + 2 * MS), "{second:?}, {begins}");
}

#[test]
fn a_piece_that_lapsed_on_its_way_passes_nobody() {
    let (node, jobs, mut batch) = node(1_000);
    assert_eq!(submit(&node, 1), Verdict::Pending);
    let calls = batch.prepare(&node, jobs.try_iter().collect(), true, node.clock.now());
    // The hold is 125 ms, and the whole piece is older.
    let sent = node.clock.now() - 500 * MS;
    batch.settle(&node, calls, sent, node.clock.now(), vec![granted(10, 0)]);
    assert!(matches!(answers(&node)[..], [(1, Verdict::Deny { .. })]));
}

#[test]
fn who_waits_is_passed_in_turn_while_the_grant_lasts() {
    let (node, jobs, mut batch) = node(1_000);
    for cost in [3, 4, 5, 2] {
        assert_eq!(submit(&node, cost), Verdict::Pending);
    }
    let calls = batch.prepare(&node, jobs.try_iter().collect(), true, node.clock.now());
    assert_eq!((calls.len(), calls[0].ask.want, calls[0].ask.min), (1, 14, 5), "one ask a key");
    let sent = node.clock.now();
    batch.settle(&node, calls, sent, node.clock.now(), vec![granted(9, 0)]);
    let verdicts: Vec<bool> = answers(&node).iter().map(|(_, v)| v.passes()).collect();
    let passed: u64 = 3 + 4 + 2;
    assert_eq!(verdicts.iter().filter(|p| **p).count(), 3, "{passed} of 9 units, and 5 do not fit");
}

#[test]
fn a_refusal_counts_for_each_cost_by_its_own_end_and_no_ask_goes_out() {
    let (node, jobs, mut batch) = node(1_000);
    assert_eq!(submit(&node, 100), Verdict::Pending);
    let calls = batch.prepare(&node, jobs.try_iter().collect(), true, node.clock.now());
    let min = calls[0].ask.min;
    assert_eq!(min, 100);
    let sent = node.clock.now();
    // 100 units exist in 80 ms: 20 now, and 50 in 30 ms.
    batch.settle(&node, calls, sent, node.clock.now(), vec![refused(80_000)]);
    assert!(matches!(answers(&node)[..], [(100, Verdict::Deny { .. })]));
    let Verdict::Deny { retry_after } = submit(&node, 300) else { panic!("300 are further away") };
    // The spread is at most half the time of the fewest units.
    let (least, most) = (Duration::from_millis(230), Duration::from_millis(280 + 51));
    let passed = nanos(node.clock.now() - sent);
    assert!(retry_after + passed > least && retry_after < most, "{retry_after:?}");
    assert!(jobs.try_iter().next().is_none());
    while matches!(submit(&node, 10), Verdict::Deny { .. }) {
        assert!(node.clock.now() < sent + 45 * MS, "10 units could be there");
    }
}

#[test]
fn a_fault_passes_nobody_and_is_not_repeated_at_once() {
    let (node, jobs, mut batch) = node(1_000);
    assert_eq!(submit(&node, 1), Verdict::Pending);
    let calls = batch.prepare(&node, jobs.try_iter().collect(), true, node.clock.now());
    let sent = node.clock.now();
    batch.settle(&node, calls, sent, node.clock.now(), vec![missed(Fault::OutOfMemory)]);
    assert!(matches!(answers(&node)[..], [(1, Verdict::Deny { .. })]));
    assert!(matches!(submit(&node, 1), Verdict::Deny { .. }));
    assert!(jobs.try_iter().next().is_none());
}

/// The store is there: it may grant to others what a share would pass, and a share without a beginning is full.
#[test]
fn a_fault_of_one_key_begins_no_share_and_opens_only_an_open_gate() {
    for (down, passes) in [(Down::Reserve, false), (Down::Share, false), (Down::Open, true)] {
        let (node, jobs, mut batch) = node_with(1_000, down);
        assert_eq!(submit(&node, 1), Verdict::Pending);
        let calls = batch.prepare(&node, jobs.try_iter().collect(), true, node.clock.now());
        let sent = node.clock.now();
        batch.settle(&node, calls, sent, node.clock.now(), vec![missed(Fault::NotNow)]);
        let verdicts: Vec<bool> = answers(&node).iter().map(|(_, v)| v.passes()).collect();
        assert_eq!(verdicts, [passes], "{down:?}");
        assert_eq!(submit(&node, 1).passes(), passes, "{down:?}, and at once again");
        assert!(jobs.try_iter().next().is_none());
    }
}

/// A unit takes a day here: the fault must not last that long.
#[test]
fn a_fault_is_over_as_soon_at_a_low_rate() {
    let limit = SharedLimit::new("x", 1, Duration::from_secs(86_400), 3).reserve(0, 0);
    let (node, jobs) = Cluster::builder("redis://127.0.0.1/", 1)
        .limit(limit)
        .keys(8)
        .node(clock(), Seeds::System, None)
        .expect("a node");
    let mut batch = Batch::new(&node, Random::new(1));
    assert_eq!(submit(&node, 1), Verdict::Pending);
    let calls = batch.prepare(&node, jobs.try_iter().collect(), true, node.clock.now());
    let sent = node.clock.now();
    batch.settle(&node, calls, sent, node.clock.now(), vec![missed(Fault::NotNow)]);
    let again = submit(&node, 1);
    let soon = Duration::from_nanos(FAULT_NS);
    assert!(matches!(again, Verdict::Deny { retry_after } if retry_after <= soon), "{again:?}");
    while matches!(submit(&node, 1), Verdict::Deny { .. }) {
        assert!(node.clock.now() < sent + 1_000 * MS, "still denied");
    }
}

/// One of several servers is away. The others are there, so the node does not count as cut off.
#[test]
fn a_key_whose_server_is_away_is_decided_by_the_mode_and_begins_anew_when_it_is_back() {
    for down in [Down::Reserve, Down::Share, Down::Open] {
        let (node, jobs, mut batch) = node_with(1_000, down);
        assert_eq!(submit(&node, 1), Verdict::Pending);
        let calls = batch.prepare(&node, jobs.try_iter().collect(), true, node.clock.now());
        let (since, sent) = (node.clock.now(), node.clock.now());
        let away = Miss { since: Some(since), ..Miss::new(Fault::Lost, "away") };
        batch.settle(&node, calls, sent, node.clock.now(), vec![Err(away)]);
        let passed = (0..20).filter(|_| submit(&node, 1).passes()).count();
        let until = node.clock.now();
        // The only node: its share is the whole rate, a unit a millisecond, and starts empty.
        match down {
            Down::Reserve => assert_eq!(passed, 0),
            Down::Open => assert_eq!(passed, 20),
            Down::Share => assert!(passed as u64 <= (until - since) / MS, "{passed} in {} ns", until - since),
        }
        assert!(jobs.try_iter().next().is_none(), "nobody looks again so soon");
        // The next try tells the store of the share.
        while submit(&node, 1) != Verdict::Pending {
            assert!(node.clock.now() < sent + 1_000 * MS, "nobody looks again");
        }
        let calls = batch.prepare(&node, jobs.try_iter().collect(), true, node.clock.now());
        assert_eq!(calls[0].ask.grace_us > 0, down == Down::Share, "{down:?}");
    }
}

/// Virtual machines are suspended, and clocks are set: whatever the time is, a piece is spent once.
#[test]
fn a_clock_that_is_set_passes_no_more_than_what_is_held() {
    for (steps, all) in [([5_000, 0], 10), ([-500, 0], 10), ([-500, 500], 100), ([5_000, -5_000], 100)] {
        let (mut node, jobs, mut batch) = node(1_000);
        // Not the machine's, which has little behind it after a start.
        let clock = Arc::new(AtomicU64::new(0));
        node.clock = NodeClock::given(Arc::clone(&clock));
        let mut time = 10_000i64;
        // ORDERING: Relaxed; one thread.
        let set = |time: i64| clock.store(time as u64 * MS, Ordering::Relaxed);
        set(time);
        assert_eq!(submit(&node, 1), Verdict::Pending);
        let calls = batch.prepare(&node, jobs.try_iter().collect(), true, node.clock.now());
        let sent = node.clock.now();
        batch.settle(&node, calls, sent, node.clock.now(), vec![granted(100, 0)]);
        let mut passed = answers(&node).len() + (0..9).filter(|_| submit(&node, 1).passes()).count();
        assert_eq!(passed, 10);
        for step in steps {
            time += step;
            set(time);
            passed += (0..200).filter(|_| submit(&node, 1).passes()).count();
        }
        // Some lapse; none comes back.
        assert!(passed <= all, "{passed} of {all} by steps of {steps:?} ms");
    }
}

#[test]
fn an_answer_for_a_line_that_changed_hands_is_nobodys() {
    let (node, jobs, mut batch) = node(1_000);
    assert_eq!(submit(&node, 1), Verdict::Pending);
    let mut jobs: Vec<Job> = jobs.try_iter().collect();
    jobs[0].tag ^= 2;
    assert!(batch.prepare(&node, jobs, true, node.clock.now()).is_empty());
    assert_eq!(answers(&node), [(1, Verdict::Overloaded)]);
}

#[test]
fn a_strict_limit_asks_once_for_each_request() {
    let (node, jobs, mut batch) = node(5);
    assert!(node.limits[0].versions.load().now.split.strict);
    for cost in [1, 2, 1] {
        assert_eq!(submit(&node, cost), Verdict::Pending);
    }
    let calls = batch.prepare(&node, jobs.try_iter().collect(), true, node.clock.now());
    let asks: Vec<(u64, u64)> = calls.iter().map(|c| (c.ask.want, c.ask.min)).collect();
    assert_eq!(asks, [(1, 1), (2, 2), (1, 1)]);
    let sent = node.clock.now();
    batch.settle(
        &node,
        calls,
        sent,
        node.clock.now(),
        vec![granted(1, 0), refused(40_000), granted(1, 1_000)],
    );
    let verdicts: Vec<bool> = answers(&node).iter().map(|(_, v)| v.passes()).collect();
    assert_eq!(verdicts, [true, false, true]);
}

#[test]
fn a_full_queue_is_overloaded_and_ends_when_it_is_read() {
    let (node, jobs, mut batch) = node(1_000_000);
    let keys: Vec<[u8; 2]> = (0..5_000u16).map(u16::to_le_bytes).collect();
    let ask = |key: &[u8]| node.decide(0, key, 1, node.clock.read(), Some(|| Waiter::Token(1)));
    // There are eight lines, so most keys find none; those that do fill the queue.
    let verdicts: Vec<Verdict> = keys.iter().cycle().take(60_000).map(|key| ask(key)).collect();
    assert!(verdicts.contains(&Verdict::Pending) && verdicts.contains(&Verdict::Overloaded));
    let calls = batch.prepare(&node, jobs.try_iter().collect(), true, node.clock.now());
    let (sent, count) = (node.clock.now(), calls.len());
    batch.settle(&node, calls, sent, node.clock.now(), (0..count).map(|_| granted(50_000, 0)).collect());
    assert!(answers(&node).iter().all(|(_, v)| v.passes()));
}

/// A caller that is told asks again at once, on the telling thread: nothing counted before may refuse it.
#[test]
fn who_is_told_of_an_answer_may_wait_for_the_next_one_at_once() {
    for (burst, cost) in [(1_000, 200), (5, 5)] {
        let limit = SharedLimit::new("x", 1_000, Duration::from_secs(1), burst).reserve(0, 0);
        let builder = Cluster::builder("redis://127.0.0.1/", 1).limit(limit).keys(8);
        let (seat, again) = (Arc::new(OnceLock::<Node>::new()), Arc::new(Mutex::new(Vec::new())));
        let (told, verdicts) = (seat.clone(), again.clone());
        let wake = Box::new(move || {
            let verdict = submit(told.get().expect("a node"), cost);
            verdicts.lock().expect("a list").push(verdict);
        });
        let (node, jobs) = builder.node(clock(), Seeds::System, Some(wake)).expect("a node");
        let node = seat.get_or_init(|| node);
        let mut batch = Batch::new(node, Random::new(1));
        assert_eq!(submit(node, cost), Verdict::Pending);
        for round in 1..=3 {
            let calls = batch.prepare(node, jobs.try_iter().collect(), true, node.clock.now());
            let (sent, count) = (node.clock.now(), calls.len());
            assert_eq!(count, 1, "one request waits");
            batch.settle(node, calls, sent, node.clock.now(), vec![granted(cost, 0)]);
            assert!(answers(node).iter().all(|(_, verdict)| verdict.passes()));
            assert_eq!(*again.lock().expect("a list"), vec![Verdict::Pending; round], "burst {burst}");
        }
        // While its ask is under way, there is no room for as much again.
        let calls = batch.prepare(node, jobs.try_iter().collect(), true, node.clock.now());
        assert_eq!(calls.len(), 1);
        assert!(matches!(submit(node, cost), Verdict::Deny { .. }), "what goes on waiting is counted");
    }
}

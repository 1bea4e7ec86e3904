//! What a store carries: simulates single keys of every popularity, and sums the asks over a Zipf distribution of keys.
//! Nodes ask, place and spend by the shipped arithmetic ([`Demand`], [`Piece`], [`Word`], [`Split`]). The store grants
//! as the script does, in integers of nanoseconds. Arrivals are a Poisson stream, which a balancer spreads evenly over
//! all nodes, or over ten of them for each key. An answer takes 300 us.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::demand::{Demand, Waiting};
use crate::piece::{Piece, Word};
use crate::random::Random;
use crate::{SharedLimit, Split};

const TRIP_NS: u64 = 300_000;
/// The limit of each key.
const RATE: f64 = 100.0;
const BURST: f64 = 4_000.0;
/// The most simulated arrivals of a key.
const ARRIVALS: u64 = 30_000;

#[derive(Default)]
struct Node {
    pieces: VecDeque<(Word, u64)>,
    mark: u64,
    demand: Demand,
    offered: u64,
    denied: u64,
    asking: bool,
    has_line: bool,
    /// The reserve: its units, and when it had them.
    level: f64,
    at: u64,
}

/// The totals of one key.
#[derive(Clone, Copy, Default)]
struct Sums {
    arrivals: f64,
    passed: f64,
    reserve: f64,
    asks: f64,
    /// The share of the time in which the store holds the key.
    alive: f64,
}

/// Simulates one key that gets `per_second` requests a second from all nodes together.
fn play(split: &Split, nodes: u64, per_second: f64, random: &mut Random) -> Sums {
    // What passed, in a bucket of the whole limit: the bound must hold here too.
    let (mut level, mut last, mut before) = (0.0f64, 0u64, 0.0);
    let mut all: HashMap<u64, Node> = HashMap::new();
    let mut answers: VecDeque<(u64, u64, u64, u64, u64)> = VecDeque::new();
    let (mut tat, mut now, mut sums, mut alive_ns) = (0u64, 1_000_000_000u64, Sums::default(), 0u64);
    let uniform = |random: &mut Random| (random.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64;
    let (begun, lead_ns) = (now, split.lead.ns_down());
    // At least two drains of the debt, so that the first burst does not dominate.
    let arrivals = ((split.lead.ns_down() as f64 * 4e-9 * per_second) as u64).clamp(200, ARRIVALS);
    for _ in 0..arrivals {
        now += (-uniform(random).ln() * 1e9 / per_second).min(1e15) as u64;
        while let Some((due, id, sent, want, min)) = answers.front().copied().filter(|a| a.0 <= now) {
            answers.pop_front();
            let node = all.entry(id).or_default();
            node.asking = false;
            // The ask reaches the store halfway.
            let at = due - TRIP_NS / 2;
            let lead = tat.saturating_sub(at);
            let fit = lead_ns.saturating_sub(lead) / split.unit_ns;
            if fit >= min {
                let units = want.min(min.max(fit / 2));
                let start = tat.max(at);
                alive_ns += (start + units * split.unit_ns) - start.max(tat);
                tat = start + units * split.unit_ns;
                let hot = node.demand.granted(split, lead / 1_000);
                if let Some(piece) = Piece::place(sent, lead / 1_000, units, split.unit_ns) {
                    if node.pieces.len() < 2 {
                        node.mark = if hot { piece.lo + (piece.hi - piece.lo) / 2 } else { u64::MAX };
                        node.pieces.push_back((Word { generation: 0, low: piece.lo }, piece.hi));
                    }
                }
                node.denied = 0;
            } else {
                let spread = node.demand.refused(split, min, lead / 1_000);
                let retry = (lead + min * split.unit_ns).saturating_sub(lead_ns);
                node.denied =
                    (sent + retry + random.below(spread + 1)).saturating_sub(min * split.unit_ns).max(1);
            }
        }
        level = (level - (now - last) as f64 * RATE * 1e-9).max(0.0) + sums.passed - before;
        (last, before) = (now, sums.passed);
        assert!(level <= BURST + 0.01, "{level} at {per_second} a second");
        sums.arrivals += 1.0;
        let id = random.below(nodes);
        let node = all.entry(id).or_default();
        node.offered += 1;
        let refused = |node: &Node| node.denied > 0 && now < node.denied + split.min * split.unit_ns;
        let mut ask = |node: &mut Node, waits: u64, sums: &mut Sums| {
            if !node.asking {
                let waiting = Waiting { units: waits, largest: waits };
                let offered = std::mem::take(&mut node.offered);
                let (want, min) = node.demand.ask(split, waiting, offered, now);
                answers.push_back((now + TRIP_NS, id, now, want, min));
                (node.asking, node.has_line) = (true, true);
                sums.asks += 1.0;
            }
        };
        let floor = now.saturating_sub(split.hold_ns);
        let mut taken = false;
        while let Some((word, hi)) = node.pieces.front_mut() {
            if let Some(next) = word.take(*hi, floor, split.unit_ns) {
                (*word, taken) = (next, true);
                break;
            }
            node.pieces.pop_front();
        }
        if taken {
            sums.passed += 1.0;
            let newest = node.pieces.len() == 1 && node.pieces[0].0.low > node.mark;
            if newest && !refused(node) {
                ask(node, 0, &mut sums);
            }
            continue;
        }
        if let Some(reserve) = split.reserve {
            let rate = reserve.units as f64 / reserve.period_ns as f64;
            node.level = (node.level - (now - node.at) as f64 * rate).max(0.0);
            node.at = now;
            if node.level + 1.0 <= reserve.burst as f64 {
                node.level += 1.0;
                sums.passed += 1.0;
                sums.reserve += 1.0;
                if node.has_line && !refused(node) {
                    ask(node, 0, &mut sums);
                }
                continue;
            }
        }
        if !refused(node) {
            // A request that waits is answered a round trip later; if it passes, it is part of what was granted.
            ask(node, 1, &mut sums);
        }
    }
    sums.alive = (alive_ns as f64 / (now - begun).max(1) as f64).min(1.0);
    sums
}

/// Sums over all keys: the first ten ranks one by one, then ranges that double, each by its middle rank.
fn fleet(limit: &SharedLimit, nodes: u32, of_a_key: u64, keys: f64, per_second: f64) -> (Sums, f64) {
    let split = limit.split(nodes, Duration::from_millis(4)).expect("a limit");
    assert!(!split.strict, "its hold is too short to be leased");
    let harmonic = keys.ln() + 0.577_215_664_9;
    let (mut random, mut all, mut alive, mut rank) = (Random::new(11), Sums::default(), 0.0, 1.0f64);
    while rank <= keys {
        let last = if rank < 10.0 { rank } else { (rank * 2.0 - 1.0).min(keys) };
        let (count, rate) = (last - rank + 1.0, per_second / harmonic / (rank * last).sqrt());
        let one = play(&split, of_a_key, rate, &mut random);
        let weight = count * rate / one.arrivals;
        all.arrivals += one.arrivals * weight;
        all.passed += one.passed * weight;
        all.reserve += one.reserve * weight;
        all.asks += one.asks * weight;
        alive += one.alive * count;
        rank = last + 1.0;
    }
    (all, alive)
}

#[test]
fn capacity_of_a_store_is_a_small_part_of_the_decisions() {
    println!(
        "nodes  of a key   keys  decisions/s    asks/s  asks a decision  by reserves  keys in the store"
    );
    for (nodes, of_a_key, keys, per_second, most) in [
        (10, 10, 1e6, 1e5, 0.2),
        (100, 100, 1e7, 1e6, 0.3),
        (1_000, 1_000, 1e9, 1e6, 0.4),
        (1_000, 1_000, 1e9, 1e7, 0.4),
        (1_000, 10, 1e9, 1e6, 0.5),
        (1_000, 10, 1e9, 1e7, 0.5),
    ] {
        // A limit for clients: 100 a second, 4000 at once, so that each of 1000 nodes has one unit in its reserve.
        let limit = SharedLimit::new("x", RATE as u64, Duration::from_secs(1), BURST as u64);
        let (sums, alive) = fleet(&limit, nodes, of_a_key, keys, per_second);
        let (asks, reserve) = (sums.asks / sums.arrivals, sums.reserve / sums.arrivals);
        println!(
            "{nodes:5}  {of_a_key:8}  {keys:5.0e}  {per_second:11.0e}  {:8.0}  {asks:15.4}  {reserve:11.3}  {:17.0}",
            asks * per_second,
            alive
        );
        assert!((sums.arrivals / per_second - 1.0).abs() < 0.1, "the ranges miss some of the keys");
        assert!(asks < most, "{asks}");
    }
}

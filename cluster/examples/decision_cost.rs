//! Makes one kind of decision again and again, for valgrind to count:
//! `cargo run --release --example decision_cost -- redis://127.0.0.1:6379/ ROW`, where ROW is `lease`, `reserve` or
//! `refused`.
//!
//! ```text
//!   lease      a hot key, by its line              one key, one piece that lasts
//!   reserve    cold keys, by this node's reserve   4096 keys in turn
//!   refused    a key that the store has refused    one key
//! ```
//!
//! The clock is read once before, so the count is a decision, from key to verdict, with the loop around it. The program
//! checks afterwards which way was taken, and fails if it was another one. `make count` counts all three.

use std::error::Error;
use std::time::Duration;

use tatcell_cluster::{Cluster, LimitId, Metrics, SharedLimit};

/// The number of decisions that are counted, and of those before them.
const N: u64 = 1 << 14;

const SECOND: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(row)) = (arguments.next(), arguments.next()) else {
        return Err("usage: decision_cost URL ROW".into());
    };
    // The reserve of the second one is nearly the whole limit.
    let (limit, keys) = match &*row {
        "lease" => (SharedLimit::new("row", 50_000_000, SECOND, 5_000_000_000).reserve(0, 0), 1),
        "reserve" => (SharedLimit::new("row", 100, SECOND, 100).reserve(900, 900), 4_096),
        "refused" => (SharedLimit::new("row", 1, 3_600 * SECOND, 9).reserve(0, 0), 1),
        _ => return Err(format!("there is no row {row}").into()),
    };
    let builder = Cluster::builder(&url, 1).limit(limit).keys(65_536).prefix(&format!("decision-cost-{row}"));
    let node = builder.slot_ttl(Duration::from_millis(500)).timeout(10 * SECOND).open()?;
    let limit = node.limit("row").ok_or("a limit")?;
    let keys: Vec<[u8; 8]> = (0..keys).map(u64::to_le_bytes).collect();
    match &*row {
        "reserve" => {
            while !node.metrics().reserve_held {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        // The store answers the first ones, until a piece is held or a refusal is known.
        _ => {
            for _ in 0..20 {
                let _ = node.acquire(limit, &keys[0], 1, 10 * SECOND);
            }
        }
    }
    let (now, before) = (node.now(), node.metrics());
    let first = counted(&node, limit, &keys, now);
    let passed = counted_decisions(&node, limit, &keys, now);
    let after = node.metrics();
    let taken = |of: fn(&Metrics) -> u64| of(&after) - of(&before);
    let (reserve, refused) = (taken(|m| m.passed_reserve), taken(|m| m.denied_cached));
    // The node does not count what passes by a line.
    let expected = match &*row {
        "lease" => (2 * N, 0, 0),
        "reserve" => (2 * N, 2 * N, 0),
        _ => (0, 0, 2 * N),
    };
    match (first + passed, reserve, refused) == expected && taken(|m| m.pending) == 0 {
        true => Ok(()),
        false => Err(format!("{row} was not decided its way: {first} and {passed} passed, {after:?}").into()),
    }
}

/// Valgrind collects in this function, which it knows by its name.
#[inline(never)]
fn counted_decisions(node: &Cluster, limit: LimitId, keys: &[[u8; 8]], now: u64) -> u64 {
    counted(node, limit, keys, now)
}

#[inline(always)]
fn counted(node: &Cluster, limit: LimitId, keys: &[[u8; 8]], now: u64) -> u64 {
    let mut passed = 0;
    for key in keys.iter().cycle().take(N as usize) {
        passed += u64::from(node.check_at(limit, key, 1, now).passes());
    }
    passed
}

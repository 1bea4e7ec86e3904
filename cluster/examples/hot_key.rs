//! Two nodes share a limit of 10 000 a second for a key, and each asks for it as fast as it can. Prints what they
//! decided, what passed, and how often they asked the store.
//!
//! `cargo run --release -p tatcell-cluster --example hot_key -- redis://127.0.0.1:6379/`

use std::error::Error;
use std::time::{Duration, Instant};

use tatcell_cluster::{Cluster, SharedLimit};

const TIME: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("give the URL of a store: redis://127.0.0.1:6379/")?;
    let open = || {
        let limit = SharedLimit::new("hot", 10_000, Duration::from_secs(1), 1_000);
        Cluster::builder(&url, 2).prefix("hot_key").limit(limit).keys(1_024).open()
    };
    let nodes = [open()?, open()?];
    let results =
        std::thread::scope(|scope| nodes.each_ref().map(|node| scope.spawn(|| ask(node))).map(|t| t.join()));
    for (node, result) in nodes.into_iter().zip(results) {
        let (decided, passed) = result.map_err(|_| "a worker panicked")?;
        let metrics = node.metrics();
        let trip = metrics.batch_ns / metrics.batches.max(1) / 1_000;
        println!(
            "{:.2} M decisions/s, {:.0} passed/s, {} asks (1 in {}), round trip {trip} us, reserve {}",
            decided as f64 / TIME.as_secs_f64() / 1e6,
            passed as f64 / TIME.as_secs_f64(),
            metrics.asks,
            decided / metrics.asks.max(1),
            metrics.passed_reserve
        );
        node.shutdown(Duration::from_secs(1));
    }
    Ok(())
}

/// Asks for one unit after another; returns how many requests were decided and how many passed.
fn ask(node: &Cluster) -> (u64, u64) {
    let Some(limit) = node.limit("hot") else { return (0, 0) };
    let (mut decided, mut passed, end) = (0, 0, Instant::now() + TIME);
    while Instant::now() < end {
        // One reading of the clock for a burst of requests.
        let reading = node.now();
        for _ in 0..32 {
            passed += u64::from(node.check_at(limit, b"198.51.100.7", 1, reading).passes());
            decided += 1;
        }
    }
    (decided, passed)
}

//! Limits from one unit a day to 1e8 a second, and costs from 0 to more than the burst.

mod common;

use std::time::Duration;

use common::audit::HAIR;
use common::load::{node, patient, play, Load, SECOND};
use common::server_or_skip;
use tatcell_cluster::{Cluster, SharedLimit, Verdict};

const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn limits_of_every_size_keep_their_bound_and_admit_their_burst() {
    let Some(server) = server_or_skip(&[]) else { return };
    let sizes = [
        (1, DAY, 1, 1),
        (1, DAY, 20, 3),
        (1, 60 * SECOND, 1_000, 9),
        (7, 3 * SECOND, 2, 1),
        (10_000, SECOND, 1_000, 50),
        (100_000, SECOND, 500, 400),
        (1_000_000, SECOND, 1_000_000, 40_000),
        (100_000_000, SECOND, 100_000_000, 4_000_000),
        (100_000_000, SECOND, 10_000, 5_000),
    ];
    for (i, (units, period, burst, largest_cost)) in sizes.into_iter().enumerate() {
        let limit = SharedLimit::new("x", units, period, burst).reserve(0, 0);
        let split = limit.split(2, Duration::from_millis(4)).expect("a split");
        let with = |b: tatcell_cluster::Builder| patient(b).prefix(&format!("size-{i}"));
        let nodes: Vec<Cluster> = (0..2).map(|_| node(&server.url(), 2, limit.clone(), with)).collect();
        let load = Load { keys: 1, zipf: false, largest_cost, pause: Duration::from_micros(200) };
        let rate = units as f64 / period.as_secs_f64();
        let audit = play(&nodes, load, SECOND, || {});
        // A strict limit is exact by the store's clock, whose moments are whole microseconds.
        let (found, slack) = match split.strict {
            true => (audit.replay_between(rate, burst as f64), rate * 1e-6 + HAIR),
            false => (audit.replay(rate, burst as f64), HAIR),
        };
        println!("{units} in {period:?}, burst {burst}, strict {}: {found:?}", split.strict);
        assert!(found.excess <= slack, "{found:?}");
        let all = split.largest_cost as f64;
        // What one node holds the other cannot have until it lapses.
        assert!(found.units as f64 > all / 2.0 - 2.0 * largest_cost as f64, "{found:?} of {all} at once");
    }
}

#[test]
fn costs_of_nothing_charge_nothing_and_those_above_the_burst_never_pass() {
    let Some(server) = server_or_skip(&[]) else { return };
    for (name, burst) in [("leased", 100), ("strict", 5)] {
        // A unit in a minute: nothing comes back while the test runs.
        let limit = SharedLimit::new("x", 1, 60 * SECOND, burst).reserve(0, 0);
        let split = limit.split(1, Duration::from_millis(4)).expect("a split");
        assert_eq!(split.strict, name == "strict");
        // However busy the machine is: an answer that does not come is another matter.
        let node = node(&server.url(), 1, limit, |b| b.prefix(name).timeout(10 * SECOND));
        let x = node.limit("x").expect("it");
        let ask = |key: &[u8], cost| node.acquire(x, key, cost, 10 * SECOND);
        for _ in 0..100 {
            assert_eq!(ask(b"k", 0), Verdict::Pass);
        }
        assert_eq!(node.metrics().asks, 0, "a look that asks");
        // All that a key can be granted at once, in one piece; a leased limit has paid the hold of it.
        assert_eq!(split.largest_cost, if split.strict { burst } else { burst * 7 / 8 });
        for never in [split.largest_cost + 1, burst + 1, u64::MAX] {
            assert_eq!(ask(b"k", never), Verdict::Never, "{name} {never}");
        }
        assert_eq!(ask(b"k", split.largest_cost), Verdict::Pass, "{name}: costs of 0 took some of it");
        // The store refuses it, and what it said is kept.
        let refused = ask(b"k", 1);
        assert!(matches!(refused, Verdict::Deny { .. }), "{name}: {refused:?}");
        assert_eq!(node.metrics().refusals, 1, "{name}: refused by another than the store");
        assert!(matches!(ask(b"k", 0), Verdict::Deny { .. }), "{name}: nothing was kept");
        assert_eq!(ask(b"other", split.largest_cost), Verdict::Pass);
    }
}

//! The goals, and whether this run met them. Minimum over rounds against minimum over rounds.

use crate::suite::Suite;

enum Bound {
    /// At most this many ns.
    Ns(f64),
    /// At most this multiple of another row.
    Times(f64, &'static str),
    /// At least this many times faster than another row.
    Faster(f64, &'static str),
}

use Bound::{Faster, Ns, Times};

/// What every build must keep.
const GATES: &[(&str, Bound)] = &[
    ("cell.conforming", Times(1.3, "floor.cmpxchg")),
    ("cell.denied", Ns(1.5)),
    ("cell.exclusive", Ns(2.0)),
    ("table1e6.single", Ns(70.0)),
    ("table1e6.burst32", Ns(25.0)),
];

/// Where the design wants to get.
const DESIGN: &[(&str, Bound)] = &[
    ("cell.conforming", Times(1.1, "floor.cmpxchg")),
    ("cell.denied", Ns(1.0)),
    ("cell.exclusive", Ns(1.5)),
    ("table1e6.burst32", Times(1.25, "floor1e6.two_phase32")),
    ("table1e6.next32", Times(1.25, "floor1e6.ahead32")),
    ("table1e6.next64", Times(1.25, "floor1e6.ahead64")),
    ("table1e6.next32", Faster(8.0, "peer1e6.foldhash")),
    ("table1e6.next32", Faster(20.0, "peer1e6.governor")),
    ("table1e6.single", Faster(2.0, "peer1e6.foldhash")),
];

/// Ours beside the peer that answers the same question.
const PAIRS: &[(&str, &[&str])] = &[
    ("cell.conforming", &["peer.governor_conforming", "peer.ratelimit_conforming"]),
    ("cell.denied", &["peer.governor_denied", "peer.ratelimit_denied"]),
    ("table1e3.single", &["peer1e3.foldhash", "peer1e3.governor"]),
    ("table1e3.single_denied", &["peer1e3.foldhash_denied", "peer1e3.governor_denied"]),
    ("table1e5.single", &["peer1e5.foldhash", "peer1e5.governor"]),
    ("table1e5.next32", &["peer1e5.foldhash", "peer1e5.governor"]),
    ("table1e6.single", &["peer1e6.foldhash", "peer1e6.governor"]),
    ("table1e6.single_denied", &["peer1e6.foldhash_denied", "peer1e6.governor_denied"]),
    ("table1e6.next32", &["peer1e6.foldhash", "peer1e6.governor"]),
    ("table1e6.next32_denied", &["peer1e6.foldhash_denied", "peer1e6.governor_denied"]),
    ("churn.single", &["churn.governor"]),
    ("churn.next32", &["churn.governor"]),
];

pub fn print(suite: &Suite) {
    println!("\nbeside the peers (how many times faster; minimum over rounds)");
    for (id, peers) in PAIRS {
        let Some(ours) = suite.row(id) else { continue };
        let faster = |peer: &&str| Some(format!("{:.2} x {peer}", suite.row(peer)?.min() / ours.min()));
        let faster: Vec<String> = peers.iter().filter_map(faster).collect();
        println!("  {id:<24} {:7.2} ns  {}", ours.min(), faster.join(", "));
    }
    for (title, goals) in [("goals", GATES), ("design goals", DESIGN)] {
        println!("\n{title} (minimum over rounds)");
        for (id, bound) in goals {
            if let Some(line) = judge(suite, id, bound) {
                println!("  {line}");
            }
        }
    }
}

/// One line, or None where a row of it was not run.
fn judge(suite: &Suite, id: &str, bound: &Bound) -> Option<String> {
    let ns = suite.row(id)?.min();
    let (wanted, most) = match bound {
        Ns(most) => (format!("<= {most} ns"), *most),
        Times(times, other) => {
            let floor = suite.row(other)?.min();
            (format!("<= {times} x {other} ({floor:.2})"), times * floor)
        }
        Faster(times, other) => {
            let peer = suite.row(other)?.min();
            (format!(">= {times} x faster than {other} ({peer:.2})"), peer / times)
        }
    };
    let by = (ns / most - 1.0) * 100.0;
    let verdict =
        if ns <= most { format!("met, {:.0} % to spare", -by) } else { format!("MISSED by {by:.0} %") };
    Some(format!("{id:<24} {ns:7.2} ns  {wanted:<48} {verdict}"))
}

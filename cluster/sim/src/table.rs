//! What each event may add to `R w + B`: the table of docs/CLUSTER.md as a Rust table, with the proof of each row. The
//! auditor computes what a world may exceed from the functions. The page's test compares the words, and computes the
//! page's examples from the functions.

use tatcell_cluster::{SharedLimit, Split};

/// The numbers of one event, in the letters of the page. Rates are units per second, times are seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Case {
    /// M/T: the units that the store may grant ahead.
    pub ahead: f64,
    /// The hold, in units.
    pub hold: f64,
    /// R and B.
    pub rate: f64,
    /// B.
    pub burst: f64,
    /// R_s.
    pub store_rate: f64,
    /// The burst of one node's reserve.
    pub reserve: f64,
    /// Its rate.
    pub reserve_rate: f64,
    /// N.
    pub nodes: f64,
    /// f: how long the store was away.
    pub away: f64,
    /// x: by how much a clock was set, or how long it stood still.
    pub by: f64,
    /// r: the part of its own time by which a clock is behind another one, or by which it is fast.
    pub part: f64,
    /// w, or for how long something went on.
    pub window: f64,
}

/// One row of the page.
pub struct Row {
    /// Its name in the simulation.
    pub name: &'static str,
    /// Its first cell on the page.
    pub event: &'static str,
    /// Its second cell on the page, or the beginning of it.
    pub most: &'static str,
    /// The same in units. The comment at each row says why it is no more: the proof.
    pub units: fn(&Case) -> f64,
    /// The numbers of the page's example: f, x, r and w.
    pub example: Case,
}

/// No fault.
const NONE: Case = Case {
    ahead: 0.0,
    hold: 0.0,
    rate: 0.0,
    burst: 0.0,
    store_rate: 0.0,
    reserve: 0.0,
    reserve_rate: 0.0,
    nodes: 0.0,
    away: 0.0,
    by: 0.0,
    part: 0.0,
    window: 0.0,
};

impl Case {
    /// Fills in what follows from a limit and how it is divided.
    pub fn of(limit: &SharedLimit, split: &Split, nodes: u32) -> Case {
        let (units, period, burst) = limit.parameters();
        let rate = units as f64 / period.as_secs_f64();
        let reserve_rate = split.reserve.map_or(0.0, |r| r.units as f64 * 1e9 / r.period_ns as f64);
        let store_rate = rate - reserve_rate * f64::from(nodes);
        Case {
            ahead: split.largest_cost as f64 + 1.0,
            hold: split.hold_ns as f64 / 1e9 * store_rate,
            rate,
            burst: burst as f64,
            store_rate,
            reserve: split.reserve.map_or(0.0, |r| r.burst as f64),
            reserve_rate,
            nodes: f64::from(nodes),
            ..Case::default()
        }
    }
}

fn lost(case: &Case) -> f64 {
    (case.ahead - case.store_rate * case.away).max(0.0)
}

/// The rows, in the order of the page.
pub const ROWS: &[Row] = &[
    // The store grants at most M ahead, so pieces from before the loss end at most M after it. It grants again from f
    // after it: at most M - f of the axis is granted twice. Another node may take a slot whose holder still spends.
    Row {
        name: "data lost",
        event: "the store loses its data",
        most: "max(0, M/T - R_s f), and a reserve if the slots of reserves are lost too",
        units: |case| lost(case) + case.reserve,
        example: Case { away: 0.1, ..NONE },
    },
    // The same for the grants that are lacking.
    Row {
        name: "replica promoted",
        event: "a replica that lacks the last grants takes over",
        most: "those grants, at most M/T - R_s f",
        units: lost,
        example: Case { away: 0.1, ..NONE },
    },
    // Each of both grants by itself: one axis more, of length M + d. A slot that both give away is a reserve more, for
    // each of the N.
    Row {
        name: "two primaries",
        event: "two servers are primaries at the same time for d, and some nodes ask one and some the other",
        most: "M/T + R_s d; and, because both give the slots away, the reserves and their part of R d",
        units: |case| {
            let reserves = case.nodes * (case.reserve + case.reserve_rate * case.window);
            case.ahead + case.store_rate * case.window + reserves
        },
        example: Case { window: 1.0, ..NONE },
    },
    // A debt is shorter by x at once, and is at most M.
    Row {
        name: "server's clock set forward",
        event: "the server's clock is set forward by x, or a server whose clock is ahead by x takes over. A clock that \
                is set back adds nothing",
        most: "min(M/T, R_s x)",
        units: |case| case.ahead.min(case.store_rate * case.by),
        example: Case { by: 0.1, ..NONE },
    },
    // What the node holds lapses by its clock, so it may come x late, in the next window: its pieces, which are at most
    // M + hold long, and its reserve. A reserve goes on at its rate when its slot is another one's, for x.
    Row {
        name: "node's clock set back or stopped",
        event: "a node's clock is set back by x, or stands still for x",
        most: "the units in its pieces and its reserve, and its part of R x",
        units: |case| case.ahead + case.hold + case.reserve + case.reserve_rate * case.by,
        example: Case { by: 0.1, ..NONE },
    },
    // A reserve is a bucket by the node's clock: it has x or r w more to fill. Pieces lapse early.
    Row {
        name: "node's clock set forward or fast",
        event: "a node's clock is set forward by x, or is faster than the server's by the fraction r; windows of the \
                server's time",
        most: "its reserve, but no more than its part of R x; or r times its part of R w",
        units: |case| case.reserve.min(case.reserve_rate * case.by) + case.part * case.reserve_rate * case.window,
        example: Case { part: 0.01, window: 10.0, ..NONE },
    },
    // A piece ends by the node's clock. Over its life of at most M + hold that clock is behind by r of it.
    Row {
        name: "node's clock slow",
        event: "a node's clock is slower than the server's, which gains the fraction r on it; windows of the server's \
                time",
        most: "r (M + hold) / T",
        units: |case| case.part * (case.ahead + case.hold),
        example: Case { part: 0.01, ..NONE },
    },
    // The store grants r w more of the axis in w, and pieces end as in the row before.
    Row {
        name: "server's clock fast",
        event: "the same, or the server's clock is faster than the nodes' by r; windows of the nodes' readings",
        most: "r (R_s w + (M + hold) / T), for as long as it lasts",
        units: |case| case.part * (case.store_rate * case.window + case.ahead + case.hold),
        example: Case { part: 0.01, window: 10.0, ..NONE },
    },
    // The share is a bucket of the rate R_s / N and the burst B_s / N of the old limit.
    Row {
        name: "share through a change",
        event: "a node in the mode `Share` is cut off when a change comes into force: it goes on with the old limit",
        most: "R_s / N of the old limit for each such node and each second until it is back, and B / N of the old \
               burst",
        units: |case| (case.store_rate * case.window + case.burst) / case.nodes,
        example: Case { window: 1.0, ..NONE },
    },
    // Each node goes by one of both limits, each of which has its own R w + B.
    Row {
        name: "change lost",
        event: "the store loses its data after a change, and a node opens with the old limit while no node that \
                knows of the change reaches the store for the wait of a first start (below)",
        most: "both limits are in use until such a node is back, and then until each node has read the mark \
               again (1 s)",
        units: |case| case.rate * case.window + case.burst,
        example: Case { window: 1.0, ..NONE },
    },
    // Both of the above.
    Row {
        name: "change undone by a copy",
        event: "the store is restored from a copy that was made before a change",
        most: "the first row, and both limits are in use until each node has read the mark twice (2 s)",
        units: |case| lost(case) + case.reserve + case.rate * case.window + case.burst,
        example: Case { away: 0.1, window: 2.0, ..NONE },
    },
];

/// Finds a row by its name.
pub fn row(name: &str) -> &'static Row {
    ROWS.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The rows of the page's first table, joined where a line was wrapped.
    #[test]
    fn the_page_has_these_rows_in_this_order() {
        let page = include_str!("../../../docs/CLUSTER.md");
        let table =
            page.split_once("| Event | Additional units, at most | Example |\n").expect("the table").1;
        let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).skip(1).collect();
        assert_eq!(rows.len(), ROWS.len(), "as many rows as there are here");
        for (row, line) in ROWS.iter().zip(rows) {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            assert_eq!(cells[0], row.event);
            assert!(cells[1].starts_with(row.most), "{}: {}", row.name, cells[1]);
            // The units of the example, as the function has them: 1000 a second, a burst of 1000, four nodes.
            let limit = SharedLimit::new("x", 1_000, Duration::from_secs(1), 1_000);
            let split = limit.split(4, Duration::from_millis(4)).expect("a split");
            let Case { away, by, part, window, .. } = row.example;
            let case = Case { away, by, part, window, ..Case::of(&limit, &split, 4) };
            let told = format!("{:.0}", (row.units)(&case));
            assert_eq!(cells[2].split_once(": ").map(|(_, units)| units), Some(&told[..]), "{}", row.name);
            for (value, unit) in [(away, "s"), (by, "s"), (part * 100.0, "%"), (window, "s")] {
                let is_told = cells[2].contains(&format!(" {value} {unit}"));
                assert!(value == 0.0 || is_told, "{}: {value} {unit}", row.name);
            }
        }
    }
}

//! What each event may add to `R w + B`: the table of docs/CLUSTER.md as a Rust table. The page's test compares the
//! words, and the auditor computes what a world may exceed from the functions.

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
    /// r: by which part a clock is slower or faster.
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
    /// The same in units.
    pub units: fn(&Case) -> f64,
}

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
    Row {
        name: "data lost",
        event: "the store loses its data",
        most: "max(0, M/T - R_s f), and a reserve if the slots of reserves are lost too",
        units: |case| lost(case) + case.reserve,
    },
    Row {
        name: "replica promoted",
        event: "a replica that lacks the last grants takes over",
        most: "those grants, at most M/T - R_s f",
        units: lost,
    },
    Row {
        name: "two primaries",
        event: "two servers are primaries at the same time for d, and some nodes ask one and some the other",
        most: "M/T + R_s d; and, because both give the slots away, the reserves and their part of R d",
        units: |case| {
            let reserves = case.nodes * (case.reserve + case.reserve_rate * case.window);
            case.ahead + case.store_rate * case.window + reserves
        },
    },
    Row {
        name: "server's clock set forward",
        event: "the server's clock is set forward by x, or a server whose clock is ahead by x takes over. A clock that \
                is set back adds nothing",
        most: "min(M/T, R_s x)",
        units: |case| case.ahead.min(case.store_rate * case.by),
    },
    Row {
        name: "node's clock set back or stopped",
        event: "a node's clock is set back by x, or stands still for x",
        most: "the units in its pieces and its reserve, and its part of R x",
        units: |case| case.ahead + case.hold + case.reserve + case.reserve_rate * case.by,
    },
    Row {
        name: "node's clock set forward or fast",
        event: "a node's clock is set forward by x, or is faster than the server's by the fraction r; windows of the \
                server's time",
        most: "its reserve, but no more than its part of R x; or r times its part of R w",
        units: |case| case.reserve.min(case.reserve_rate * case.by) + case.part * case.reserve_rate * case.window,
    },
    Row {
        name: "node's clock slow",
        event: "a node's clock is slower than the server's by the fraction r; windows of the server's time",
        most: "r (M + hold) / T",
        units: |case| case.part * (case.ahead + case.hold),
    },
    Row {
        name: "server's clock fast",
        event: "the same, or the server's clock is faster than the nodes' by r; windows of the nodes' readings",
        most: "r (R_s w + (M + hold) / T), for as long as it lasts",
        units: |case| case.part * (case.store_rate * case.window + case.ahead + case.hold),
    },
    Row {
        name: "share through a change",
        event: "a node in the mode `Share` is cut off when a change comes into force: it goes on with the old limit",
        most: "R_s / N of the old limit for each such node and each second until it is back, and B / N of the old \
               burst",
        units: |case| (case.store_rate * case.window + case.burst) / case.nodes,
    },
    Row {
        name: "change lost",
        event: "the store loses its data after a change, and a node opens with the old limit while no node that \
                knows of the change reaches the store for the wait of a first start (below)",
        most: "both limits are in use until such a node is back, and then until each node has read the mark \
               again (1 s)",
        units: |case| case.rate * case.window + case.burst,
    },
    Row {
        name: "change undone by a copy",
        event: "the store is restored from a copy that was made before a change",
        most: "the first row, and both limits are in use until each node has read the mark twice (2 s)",
        units: |case| lost(case) + case.reserve + case.rate * case.window + case.burst,
    },
];

/// Finds a row by its name.
pub fn row(name: &str) -> &'static Row {
    ROWS.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the page's first table, joined where a line was wrapped.
    #[test]
    fn the_page_has_these_rows_in_this_order() {
        let page = include_str!("../../../docs/CLUSTER.md");
        let table = page.split_once("| Event | Additional units, at most |\n").expect("the table").1;
        let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).skip(1).collect();
        assert_eq!(rows.len(), ROWS.len(), "as many rows as there are here");
        for (row, line) in ROWS.iter().zip(rows) {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            assert_eq!(cells[0], row.event);
            assert!(cells[1].starts_with(row.most), "{}: {}", row.name, cells[1]);
        }
    }
}

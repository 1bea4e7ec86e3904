//! Audits a run: every admission of every node against R w + B.

use std::collections::HashMap;

use crate::record::{Figures, Record, FLOOD, HOT};
use crate::schedule::{BURST, END, RATE};

/// The results of a run of four nodes.
pub struct Run {
    /// The readings of all nodes, in seconds from the start.
    pub hot: Vec<f64>,
    /// The most units above R w + B: of the hot key, of any other key, and of the hot key at half the rate.
    pub excess: [f64; 3],
    pub flood: usize,
    pub zipf: usize,
    /// The figures of the nodes that were not killed.
    pub figures: Vec<Figures>,
}

/// Collects the admissions that the nodes report, and audits them.
pub fn judge(records: Vec<Record>, figures: Vec<Figures>, start: u64) -> Run {
    let mut by_key: HashMap<u64, Vec<u64>> = HashMap::new();
    records.iter().for_each(|r| by_key.entry(r.key).or_default().push(r.reading));
    by_key.values_mut().for_each(|list| list.sort_unstable());
    let hot = by_key.remove(&HOT).unwrap_or_default();
    let others = by_key.values().map(|list| excess(list, RATE)).fold(f64::MIN, f64::max);
    Run {
        excess: [excess(&hot, RATE), others, excess(&hot, RATE / 2)],
        flood: by_key.keys().filter(|key| **key >= FLOOD).count(),
        zipf: by_key.iter().filter(|(key, _)| **key < FLOOD).map(|(_, list)| list.len()).sum(),
        hot: hot.iter().map(|at| at.saturating_sub(start) as f64 / 1e9).collect(),
        figures,
    }
}

/// Returns the most units above R w + B in any window; `readings` are in order.
fn excess(readings: &[u64], rate: u64) -> f64 {
    let (mut level, mut last, mut top) = (0.0f64, 0, 0.0);
    for at in readings {
        level = (level - (at - last) as f64 * rate as f64 / 1e9).max(0.0) + 1.0;
        (last, top) = (*at, f64::max(top, level));
    }
    top - BURST as f64
}

impl Run {
    /// Returns the admissions of the hot key per second, between two times.
    pub fn rate(&self, from: f64, to: f64) -> f64 {
        self.hot.iter().filter(|at| (from..to).contains(*at)).count() as f64 / (to - from)
    }

    /// Returns decisions per second of a node, asks per decision, and for the hot key p50, p99 and the longest, ns.
    pub fn speed(&self) -> [f64; 5] {
        let of = |i: usize| self.figures.iter().map(move |f| f[i] as f64);
        let nodes = self.figures.len().max(1) as f64;
        let decisions = of(0).sum::<f64>();
        let mean = |i| of(i).sum::<f64>() / nodes;
        [
            decisions / nodes / END,
            of(1).sum::<f64>() / decisions.max(1.0),
            mean(2),
            mean(3),
            of(4).fold(0.0, f64::max),
        ]
    }
}

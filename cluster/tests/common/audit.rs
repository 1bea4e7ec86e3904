//! Every admission of all nodes, replayed against the bound R w + B.
#![allow(dead_code)] // each test uses a part

use std::collections::HashMap;

/// Holds admissions by key: the clock reading for which each was decided, and its units.
///
/// The store decides a call at a moment of its own. A node knows only that this moment lies between its readings before
/// the question and after the answer. Both are kept: [`replay`](Audit::replay) uses the latter, and
/// [`replay_between`](Audit::replay_between) uses only what is certain.
#[derive(Default)]
pub struct Audit {
    by_key: HashMap<u32, Vec<Admission>>,
}

#[derive(Clone, Copy)]
struct Admission {
    asked: u64,
    reading: u64,
    units: u64,
}

/// What an audit found.
#[derive(Debug)]
pub struct Found {
    pub units: u64,
    /// Most units above R w + B of any key in any window; below 0 where none came near.
    pub excess: f64,
    pub seconds: f64,
}

impl Audit {
    pub fn add(&mut self, key: u32, reading: u64, units: u64) {
        self.add_between(key, reading, reading, units);
    }

    /// Adds one that was decided between two readings.
    pub fn add_between(&mut self, key: u32, asked: u64, reading: u64, units: u64) {
        self.by_key.entry(key).or_default().push(Admission { asked, reading, units });
    }

    pub fn join(&mut self, other: Audit) {
        for (key, list) in other.by_key {
            self.by_key.entry(key).or_default().extend(list);
        }
    }

    /// Replays them: a bucket of `rate` a second and this burst overflows by the excess.
    pub fn replay(mut self, rate: f64, burst: f64) -> Found {
        let mut found = Found { units: 0, excess: f64::MIN, seconds: 0.0 };
        let (mut first, mut end) = (u64::MAX, 0);
        for list in self.by_key.values_mut() {
            list.sort_unstable_by_key(|a| a.reading);
            let (mut level, mut last) = (0.0f64, list[0].reading);
            first = first.min(last);
            for Admission { reading, units, .. } in list.iter() {
                level = (level - (reading - last) as f64 * rate / 1e9).max(0.0) + *units as f64;
                found.excess = found.excess.max(level - burst);
                found.units += units;
                last = *reading;
            }
            end = end.max(last);
        }
        found.seconds = end.saturating_sub(first) as f64 / 1e9;
        found
    }

    /// Replays them by what is certain: in any window, those that were both asked and answered within it must be at
    /// most R w + B. Nothing more can be known without the store's clock. If it holds for every window, there are
    /// moments between asking and answer at which all of them conform.
    pub fn replay_between(mut self, rate: f64, burst: f64) -> Found {
        let mut excess = f64::MIN;
        for list in self.by_key.values_mut() {
            list.sort_unstable_by_key(|a| a.reading);
            let mut begins: Vec<u64> = list.iter().map(|a| a.asked).collect();
            begins.sort_unstable();
            let drained = |time: u64| (time - begins[0]) as f64 * rate / 1e9;
            let (mut windows, mut open) = (Windows::of(begins.len()), 0);
            for admission in list.iter() {
                while begins.get(open).is_some_and(|begin| *begin <= admission.reading) {
                    windows.open(open, drained(begins[open]));
                    open += 1;
                }
                let begun_by_then = begins.partition_point(|begin| *begin <= admission.asked);
                windows.add_to_first(begun_by_then, admission.units as f64);
                excess = excess.max(windows.most() - drained(admission.reading) - burst);
            }
        }
        Found { excess, ..self.replay(rate, burst) }
    }
}

/// A number for each open window, by its beginning, and the largest of them. A binary tree: each node adds to all nodes
/// below it.
struct Windows {
    /// Of a node: what it adds, and the most of what is below it with that.
    nodes: Vec<(f64, f64)>,
    leaves: usize,
}

impl Windows {
    fn of(count: usize) -> Windows {
        let leaves = count.next_power_of_two();
        Windows { nodes: vec![(0.0, f64::MIN); 2 * leaves], leaves }
    }

    /// Opens the next one: what was added until now was for those before it.
    fn open(&mut self, index: usize, value: f64) {
        self.nodes[self.leaves + index].1 = value;
        self.look_above(self.leaves + index);
    }

    fn look_above(&mut self, mut node: usize) {
        while node > 1 {
            node /= 2;
            self.look(node);
        }
    }

    fn look(&mut self, node: usize) {
        let below = self.nodes[2 * node].1.max(self.nodes[2 * node + 1].1);
        self.nodes[node].1 = below + self.nodes[node].0;
    }

    /// Adds to the first `count` of them.
    fn add_to_first(&mut self, count: usize, units: f64) {
        let (mut node, mut left) = (1, count);
        let mut size = self.leaves;
        // Down to where the count ends; what lies wholly before it is added to as a whole.
        while left > 0 && left < size {
            size /= 2;
            if left >= size {
                self.add_to(2 * node, units);
                left -= size;
                node = 2 * node + 1;
            } else {
                node *= 2;
            }
        }
        if left > 0 {
            self.add_to(node, units);
        }
        self.look_above(node);
    }

    fn add_to(&mut self, node: usize, units: f64) {
        self.nodes[node].0 += units;
        self.nodes[node].1 += units;
    }

    fn most(&self) -> f64 {
        self.nodes[1].1
    }
}

/// Rounding of the replay, units.
pub const HAIR: f64 = 0.01;

#[test]
fn the_audit_sees_one_unit_too_many() {
    let mut audit = Audit::default();
    (0..10).for_each(|_| audit.add(1, 5_000_000_000, 1));
    audit.add(1, 5_100_000_000, 1);
    audit.add(2, 5_050_000_000, 3);
    let found = audit.replay(10.0, 10.0);
    assert!(found.excess.abs() < HAIR && found.units == 14, "{found:?}");
    let mut audit = Audit::default();
    (0..10).for_each(|_| audit.add(1, 5_000_000_000, 1));
    audit.add(1, 5_099_000_000, 1);
    assert!(audit.replay(10.0, 10.0).excess > 0.0);
}

#[test]
fn the_audit_by_what_is_sure_sees_one_unit_too_many_and_no_more() {
    // Ten at once, and one more that may have come a tenth of a second later, or surely came a little earlier.
    for (answered, sure) in [(5_100_000_000, false), (5_099_000_000, true)] {
        let mut audit = Audit::default();
        (0..10).for_each(|_| audit.add_between(1, 5_000_000_000, 5_000_000_000, 1));
        audit.add_between(1, 5_000_000_000, answered, 1);
        assert_eq!(audit.replay_between(10.0, 10.0).excess > 1e-9, sure);
    }
    // Asked before the window: it may have been decided then.
    let mut audit = Audit::default();
    (0..10).for_each(|_| audit.add_between(1, 5_000_000_000, 5_000_000_000, 1));
    audit.add_between(1, 4_000_000_000, 5_000_000_000, 1);
    assert!(audit.replay_between(10.0, 10.0).excess < 1e-9);
    // Against every window, one by one.
    let mut random = super::Random(7);
    for round in 0..200 {
        let mut audit = Audit::default();
        let mut all = Vec::new();
        for _ in 0..=random.below(40) {
            let asked = 1_000 + random.below(1_000);
            let (reading, units) = (asked + random.below(300), 1 + random.below(5));
            audit.add_between(3, asked, reading, units);
            all.push((asked, reading, units));
        }
        let windows = all.iter().flat_map(|from| all.iter().map(|to| (from.0, to.1)));
        let excess = windows.filter(|(from, to)| from <= to).map(|(from, to)| {
            let within = all.iter().filter(|a| a.0 >= from && a.1 <= to).map(|a| a.2).sum::<u64>();
            within as f64 - (to - from) as f64 * 0.02 - 4.0
        });
        let (found, slow) = (audit.replay_between(2e7, 4.0).excess, excess.fold(f64::MIN, f64::max));
        assert!((found - slow).abs() < 1e-6, "round {round}: {found} {slow}");
    }
}

//! Every admission of all nodes, replayed against the bound R w + B.
#![allow(dead_code)] // each test uses a part

use std::collections::HashMap;

/// Admissions: the reading of the clock that each was decided for, and its units, by key.
#[derive(Default)]
pub struct Audit {
    by_key: HashMap<u32, Vec<(u64, u64)>>,
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
        self.by_key.entry(key).or_default().push((reading, units));
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
            list.sort_unstable();
            let (mut level, mut last) = (0.0f64, list[0].0);
            first = first.min(last);
            for (reading, units) in list.iter() {
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

//! What was admitted, and the worst window of each key: exact, because a bucket that drains at R and never holds less
//! than nothing is at its highest exactly what the worst window has above `R w`.

use rustc_hash::FxHashMap;

use crate::clock::Time;

/// One admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The key.
    pub key: u32,
    /// The moment of the world at which the clock was read by which it was decided.
    pub at: Time,
    /// Its units.
    pub units: u64,
    /// The node.
    pub node: u32,
    /// What decided.
    pub way: Way,
}

/// What decided a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// What the store granted, or the reserve.
    Held,
    /// A share, because the store was away.
    Share,
    /// Nothing, because the store was away.
    Open,
    /// One of several answers of a step, of which some were passed by shares: in no sum.
    Unsure,
    /// Nothing was admitted: the caller gave these units back.
    Back,
}

/// The worst window of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    /// Units above `rate w + burst`; below 0 if the bound was not reached.
    pub excess: f64,
    /// The units that may be added to this window; 0 if the bound was not reached.
    pub allowed: f64,
    /// The key.
    pub key: u32,
    /// Where its worst window ends and begins.
    pub from: Time,
    /// Its end.
    pub to: Time,
}

/// Rounding of the audit, units.
pub const HAIR: f64 = 0.01;

/// Returns the worst window of all keys, among admissions in the order of `at`: that which is nearest to what may be
/// added to it, or farthest above. So what may be added to a later window excuses none. What was given back in a window
/// is taken off; also what was given back up to `late` after it, because an answer may come that long after its
/// reading.
pub fn worst(
    list: &[Admitted],
    rate: f64,
    burst: f64,
    late: Time,
    mut allowed: impl FnMut(&Admitted, Time, Time) -> f64,
) -> Option<Worst> {
    let mut keys: FxHashMap<u32, (f64, Time, Time)> = FxHashMap::default();
    let mut worst: Option<(f64, Worst)> = None;
    let gives_back = list.iter().any(|a| a.way == Way::Back);
    for (i, a) in list.iter().enumerate() {
        let (level, last, since) = keys.entry(a.key).or_insert((0.0, a.at, a.at));
        let drained = *level - (a.at - *last) as f64 * rate / 1e9;
        *last = a.at;
        if a.way == Way::Back {
            *level = drained - a.units as f64;
            continue;
        }
        if drained <= 0.0 {
            *since = a.at;
        }
        *level = drained.max(0.0) + a.units as f64;
        let after = if gives_back { &list[i + 1..] } else { &[] };
        let after = after.iter().take_while(|b| b.at <= a.at.saturating_add(late));
        let after: u64 = after.filter(|b| b.key == a.key && b.way == Way::Back).map(|b| b.units).sum();
        let excess = *level - after as f64 - burst;
        let allowed = if excess > 0.0 { allowed(a, *since, a.at) } else { 0.0 };
        let rank = if excess > 0.0 { excess / (allowed + HAIR) } else { excess };
        if worst.as_ref().is_none_or(|(most, _)| rank > *most) {
            worst = Some((rank, Worst { excess, allowed, key: a.key, from: *since, to: a.at }));
        }
    }
    worst.map(|(_, worst)| worst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;
    use crate::random::Random;

    #[test]
    fn the_worst_window_is_that_of_all_windows_one_by_one() {
        let mut random = Random::new(3);
        for round in 0..400 {
            let mut list: Vec<Admitted> = (0..=random.below(30))
                .map(|_| Admitted {
                    key: random.below(2) as u32,
                    at: random.below(SECOND),
                    units: random.within(1, 4),
                    node: 0,
                    way: if round >= 200 && random.chance(200) { Way::Back } else { Way::Held },
                })
                .collect();
            list.sort_by_key(|a| a.at);
            let late = [0, SECOND / 10][round % 2];
            let sum = |from: &Admitted, to: &Admitted| {
                let of = |way: Way, until: Time| {
                    let within =
                        list.iter().filter(|a| a.key == from.key && a.at >= from.at && a.at <= until);
                    within.filter(|a| a.way == way).map(|a| a.units).sum::<u64>() as f64
                };
                let passed = of(Way::Held, to.at) - of(Way::Back, to.at + late);
                passed - (to.at - from.at) as f64 * 20.0 / 1e9 - 3.0
            };
            let held = || list.iter().filter(|a| a.way == Way::Held);
            let pairs = held().flat_map(|from| held().map(move |to| (from, to)));
            let pairs = pairs.filter(|(from, to)| from.key == to.key && from.at <= to.at);
            let slow = pairs.map(|(from, to)| sum(from, to)).fold(f64::MIN, f64::max);
            let found = worst(&list, 20.0, 3.0, late, |_, _, _| 0.0).map_or(f64::MIN, |found| found.excess);
            assert!((found - slow).abs() < 1e-6, "{found} {slow}");
        }
    }

    #[test]
    fn what_may_be_added_later_excuses_no_earlier_window() {
        let at = |at: Time, units: u64| Admitted { key: 0, at, units, node: 0, way: Way::Held };
        let list = [at(SECOND, 4), at(9 * SECOND, 13)];
        // Above the burst of 3: 1 at first, when nothing may be added, and 10 of 20 later.
        let found = worst(&list, 1.0, 3.0, 0, |_, _, to| if to > 5 * SECOND { 20.0 } else { 0.0 });
        let found = found.expect("a window");
        assert_eq!((found.excess, found.allowed, found.to), (1.0, 0.0, SECOND));
    }
}

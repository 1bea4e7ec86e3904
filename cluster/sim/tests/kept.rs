//! The seeds that once found a fault. The planted faults of `dev/planted` are found by this test.

use std::time::Duration;

use tatcell_cluster_sim::clock::{Time, MS, SECOND};
use tatcell_cluster_sim::kept::KEPT;
use tatcell_cluster_sim::lua::Scripts;
use tatcell_cluster_sim::plan::{Fault, Limit, Plan, Shape, What};
use tatcell_cluster_sim::play::play;
use tatcell_cluster_sim::table::Case;

#[test]
fn kept_seeds_stay_within_their_bounds() {
    let mut lua = Scripts::new().expect("Lua");
    let mut wrong = Vec::new();
    for (name, seed) in KEPT {
        let outcome = play(&Plan::of(*seed), &mut lua, false);
        if !outcome.wrong.is_empty() {
            wrong.push(format!("seed {seed} ({name}): {}", outcome.wrong.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Nodes whose marks and keys have another form stand for a version that does not exist yet.
#[test]
fn nodes_of_two_versions_are_never_open_at_one_time_and_the_second_is_refused_by_name() {
    let mut lua = Scripts::new().expect("Lua");
    let upgraded =
        |node, at, until| Fault { at: at * SECOND, until: until * SECOND, what: What::NodeUpgraded { node } };
    for (faults, refused, between) in [
        // A node of this version runs, and one of the other comes.
        (vec![upgraded(1, 5, 10)], 1, 5..10),
        // One of the other version runs, and one of this version comes.
        (vec![upgraded(0, 0, 20), upgraded(1, 0, 8)], 1, 8..20),
    ] {
        let limits = vec![Limit { units: 100, burst: 100, reserve: (50, 250) }];
        let plan = Plan {
            hosts: 2,
            slots: 2,
            shape: Shape::Single,
            limits,
            length: 20 * SECOND,
            faults,
            ..Plan::of(100_001)
        };
        let outcome = play(&plan, &mut lua, false);
        assert_eq!(outcome.wrong, Vec::<String>::new());
        assert!(outcome.found.refused > 3 && outcome.found.mixed.is_none());
        let within = |from: &Time| (between.start * SECOND..between.end * SECOND).contains(from);
        let opened = outcome.found.open.iter().filter(|(host, from, _)| *host == refused && within(from));
        assert_eq!(opened.count(), 0, "{:?}", outcome.found.open);
        assert!(!outcome.found.admitted.is_empty());
    }
}

/// The clause about reserves in the page's row of two primaries: without it, this world admits more than the row.
#[test]
fn two_primaries_give_the_slots_away_twice() {
    let mut lua = Scripts::new().expect("Lua");
    let limit = Limit { units: 100, burst: 100, reserve: (500, 500) };
    let (at, until) = (6 * SECOND, 18 * SECOND);
    let plan = Plan {
        hosts: 4,
        slots: 2,
        shape: Shape::Sentinel,
        limits: vec![limit],
        ttl: SECOND,
        lull: 0,
        visit: 10,
        gap: 20 * MS,
        length: 20 * SECOND,
        faults: vec![Fault { at, until, what: What::TwoPrimaries { left: 0b0011 } }],
        ..Plan::of(100_001)
    };
    let outcome = play(&plan, &mut lua, false);
    assert_eq!(outcome.wrong, Vec::<String>::new());
    let split = limit.shared().split(plan.slots, Duration::from_millis(4)).expect("a split");
    let case = Case::of(&limit.shared(), &split, plan.slots);
    let without = case.ahead + case.store_rate * (until - at + plan.ttl) as f64 / 1e9;
    let check = &outcome.checks[0];
    assert!(check.worst.excess > without && check.worst.excess <= check.allowed, "{check:?} {without}");
}

#[test]
fn a_seed_is_one_world() {
    let mut lua = Scripts::new().expect("Lua");
    for seed in [3, 17, 42] {
        let play = |lua: &mut Scripts| play(&Plan::of(seed), lua, true).found;
        let (first, again) = (play(&mut lua), play(&mut lua));
        assert!(first.admitted == again.admitted && first.story == again.story, "seed {seed}");
        assert!(!first.admitted.is_empty());
    }
}

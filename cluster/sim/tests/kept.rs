//! The seeds that once found a fault. The planted faults of `dev/planted` are found by this test.

use std::time::Duration;

use tatcell_cluster::{Down, SlotState};
use tatcell_cluster_sim::audit::{worst, Way, HAIR};
use tatcell_cluster_sim::clock::{Time, MS, SECOND};
use tatcell_cluster_sim::kept::KEPT;
use tatcell_cluster_sim::lua::Scripts;
use tatcell_cluster_sim::plan::{Edition, Fault, Limit, Plan, Shape, What};
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

/// One version is 0.3.0 or a later one, the other this one.
#[test]
fn nodes_of_two_versions_are_never_open_at_one_time_and_the_second_is_refused_by_name() {
    let mut lua = Scripts::new().expect("Lua");
    let all = [Edition::Before, Edition::Later].into_iter().flat_map(|to| {
        let upgraded = move |node, at, until| Fault {
            at: at * SECOND,
            until: until * SECOND,
            what: What::NodeUpgraded { node, to },
        };
        [
            // A node of this version runs, and one of the other comes.
            (vec![upgraded(1, 5, 10)], 1, 5..10),
            // One of the other version runs, and one of this version comes.
            (vec![upgraded(0, 0, 20), upgraded(1, 0, 8)], 1, 8..20),
        ]
    });
    for (faults, refused, between) in all {
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

/// The page's promise for the mode `Share`: if all nodes are cut off at one time, no more than R w + B, and what a
/// share has more than its part because it is a whole unit.
#[test]
fn shares_stay_within_the_bound_if_all_nodes_are_cut_off() {
    let mut lua = Scripts::new().expect("Lua");
    let (mut shared, mut wrong) = (0, Vec::new());
    for seed in 200_000..200_150 {
        let mut plan = Plan { down: Down::Share, back: 0, costs: false, ..Plan::of(seed) };
        plan.slots = plan.hosts as u32;
        plan.limits.truncate(1);
        let at = SECOND * (4 + seed % 4);
        let until = at + SECOND / 2 * (1 + seed % 5);
        let what = if seed % 2 == 0 { What::ServerStops } else { What::ServerDown };
        plan.length = until + 4 * SECOND;
        plan.faults = vec![Fault { at, until, what }];
        let limit = plan.limits[0].shared();
        let split = limit.split(plan.slots, Duration::from_millis(4)).expect("a split");
        if split.strict {
            continue;
        }
        let found = play(&plan, &mut lua, false).found;
        shared += found.admitted.iter().filter(|a| a.way == Way::Share).count();
        let (rate, burst) = (plan.limits[0].units as f64, plan.limits[0].burst as f64);
        let whole = f64::from(plan.slots) - split.burst as f64;
        let worst = worst(&found.admitted, rate, burst + whole.max(0.0), 0, |_, _, _| 0.0).expect("some");
        if worst.excess > HAIR {
            wrong.push(format!("seed {seed}: {worst:?} {:?} {:?}", plan.shape, plan.faults));
        }
    }
    assert!(wrong.is_empty() && shared > 1_000, "{shared}\n{}", wrong.join("\n"));
}

/// A steady load on these many nodes, whose limit may be changed from 100 a second to 16; times in seconds.
fn from_100_to_16((nodes, down): (u32, Down), length: Time, faults: &[(Time, Time, What)]) -> Plan {
    let limit = |units| Limit { units, burst: units, reserve: (0, 0) };
    let fault = |&(at, until, what)| Fault { at: at * SECOND, until: until * SECOND, what };
    Plan {
        hosts: nodes as usize,
        slots: nodes,
        shape: Shape::Single,
        down,
        limits: vec![limit(100), limit(16)],
        delay: SECOND,
        lull: 0,
        cold: 0,
        costs: false,
        back: 0,
        gap: 20 * MS,
        length: length * SECOND,
        faults: faults.iter().map(fault).collect(),
        ..Plan::of(100_001)
    }
}

/// The page's row of a share through a change: without it, this world admits more than it may.
#[test]
fn a_node_that_is_cut_off_through_a_change_goes_on_with_its_share_of_the_old_limit() {
    let mut lua = Scripts::new().expect("Lua");
    let plan = from_100_to_16(
        (2, Down::Share),
        16,
        &[(6, 15, What::Cut { node: Some(1), to_server: false }), (8, 9, What::Change { node: 0, to: 1 })],
    );
    let outcome = play(&plan, &mut lua, false);
    assert_eq!(outcome.wrong, Vec::<String>::new());
    let check =
        outcome.checks.iter().find(|check| check.what == "part 1, shares of host 1").expect("a check");
    // Some 6 s at 50 a second instead of 8.
    assert!(check.worst.excess > 150.0 && check.worst.excess <= check.allowed, "{check:?}");
    let joint = outcome.checks.iter().find(|check| check.what == "part 1, with shares").expect("a check");
    assert!(joint.worst.excess > 150.0 && joint.worst.excess <= joint.allowed, "{joint:?}");
}

/// The page's row of a copy of before a change: both limits may be in use, but before it and 2 s later only one.
#[test]
fn a_change_that_a_copy_undoes_is_in_force_again_when_the_marks_were_read_twice() {
    let mut lua = Scripts::new().expect("Lua");
    let plan = from_100_to_16(
        (3, Down::Reserve),
        20,
        &[
            (3, 4, What::Change { node: 0, to: 1 }),
            // It opens with the old limit, and finds the old mark.
            (9, 11, What::NodeKilled { node: 2, old: true }),
            (10, 11, What::CopyRestored { age: 8 * SECOND }),
        ],
    );
    let outcome = play(&plan, &mut lua, false);
    assert_eq!(outcome.wrong, Vec::<String>::new());
    let part = |i: usize| {
        let check = outcome.checks.iter().find(|check| check.what == format!("part {i}")).expect("a check");
        (check.worst.from as f64 / 1e9, check.worst.to as f64 / 1e9, check.allowed)
    };
    for (i, within) in [(1, 3.9..10.0), (3, 13.0..20.0)] {
        let (from, to, allowed) = part(i);
        assert!(within.start <= from && to <= within.end && allowed == 0.0, "{:?}", part(i));
    }
    let late = &outcome.found.late_asks;
    assert!(late.iter().any(|at| (11 * SECOND..14 * SECOND).contains(at)), "both are in use: {late:?}");
}

/// Each reason is that of a world in which it is true as the world ends.
#[test]
fn a_node_without_a_slot_says_why() {
    let mut lua = Scripts::new().expect("Lua");
    let fault = |(at, until), what| Fault { at: at * SECOND, until: until * SECOND, what };
    let reserve = Limit { units: 100, burst: 100, reserve: (50, 250) };
    let plan = Plan {
        hosts: 2,
        slots: 2,
        shape: Shape::Single,
        limits: vec![reserve],
        ttl: SECOND,
        delay: SECOND,
        length: 20 * SECOND,
        faults: Vec::new(),
        ..Plan::of(100_001)
    };
    let mut ends_with = |plan: Plan| play(&plan, &mut lua, false).found.slots;
    let held = Some(SlotState::Held);
    assert_eq!(ends_with(plan.clone()), [held, held]);

    let mut slots = ends_with(Plan { hosts: 3, ..plan.clone() });
    slots.retain(|slot| *slot != held);
    assert_eq!(slots, [Some(SlotState::AllTaken)]);

    let none = vec![Limit { reserve: (0, 0), ..reserve }];
    assert_eq!(ends_with(Plan { limits: none, ..plan.clone() }), [Some(SlotState::NotNeeded); 2]);

    let slots = ends_with(Plan { ttl: 60 * SECOND, ..plan.clone() });
    assert!(slots.iter().all(|slot| matches!(slot, Some(SlotState::Waits { .. }))), "{slots:?}");

    let down = vec![fault((10, 30), What::ServerDown)];
    for slot in ends_with(Plan { faults: down, ..plan.clone() }) {
        let Some(SlotState::Away { since }) = slot else { panic!("{slot:?}") };
        assert_eq!(since.as_secs(), 9, "away since some time after 10 s: {since:?}");
    }

    // While the first node is cut off, the store loses its data, and a node of a later version comes first.
    let later = vec![
        fault((5, 30), What::NodeUpgraded { node: 1, to: Edition::Later }),
        fault((8, 13), What::Cut { node: Some(0), to_server: true }),
        fault((9, 10), What::DataLost),
    ];
    assert_eq!(ends_with(Plan { faults: later, ..plan })[0], Some(SlotState::OtherFormat));
}

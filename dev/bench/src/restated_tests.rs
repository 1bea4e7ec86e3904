//! The goals, their restated forms, the rows and the counts fit together.

use super::*;
use crate::count::ROWS;
use crate::goals::{name, Asked, GOALS};

fn goals() -> impl Iterator<Item = &'static Asked> {
    GOALS.iter().flat_map(|(_, goals)| goals.iter())
}

#[test]
fn no_restated_goal_asks_for_less_than_one_and_a_half_of_its_floor() {
    for (goal, Restated { floor, wanted, .. }) in goals() {
        let loosest = match floor {
            Same(..) | Bare(_) | Two(_) | Call(..) | Instructions(_) => *wanted <= 1.5,
            Gain(_) => *wanted >= 0.9,
            More(_) => *wanted <= 12.0,
        };
        assert!(loosest, "{}: {wanted}", name(goal));
    }
}

/// Peers and C are there only where their libraries are, floors with other instructions only on this processor.
#[cfg(target_arch = "x86_64")]
#[test]
fn every_row_that_a_goal_or_its_floor_names_exists() {
    let suite = crate::rows::all(
        crate::suite::Wanted::Exactly(String::new()),
        None,
        Some(crate::cpu::Cpus { main: 0, other: Some(1) }),
    );
    let exists = |id: &str| {
        let elsewhere = id.starts_with("c.") || id.starts_with("peer");
        elsewhere || suite.why_skipped(id).is_some() || suite.known.iter().any(|known| known == id)
    };
    for (goal, restated) in goals() {
        let mut ids: Vec<String> = goal.rows().into_iter().map(str::to_owned).collect();
        match restated.floor {
            Same(floor, others) => ids.extend([floor.into(), format!("{floor}_{others}")]),
            Gain(floor) | Two(floor) => ids.extend([format!("{floor}_1"), format!("{floor}_2")]),
            Call(c, bare) => ids.extend([c.into(), bare.into()]),
            Bare(floor) | Instructions(floor) | More(floor) => ids.push(floor.into()),
        }
        for id in ids {
            assert!(exists(&id), "{}: there is no row {id}", name(goal));
        }
    }
}

#[test]
fn every_count_that_a_restated_goal_needs_is_made() {
    for (goal, restated) in goals() {
        if let Same(floor, _) | Instructions(floor) | More(floor) = restated.floor {
            for id in [counted(floor), counted(goal.judged())] {
                assert!(ROWS.contains(&id.as_str()), "{}: {id} is not counted", name(goal));
            }
        }
    }
}

//! That the goals, their restated forms, the rows and the counts fit: no goal can be missed without a floor beside it.

use super::*;
use crate::count::ROWS;
use crate::goals::GOALS;

fn goals() -> impl Iterator<Item = &'static Goal> {
    GOALS.iter().flat_map(|(_, goals)| goals.iter())
}

fn restated_of(goal: &Goal) -> Vec<&'static Restated> {
    let name = name(goal);
    RESTATED.iter().filter(|restated| restated.goals.contains(&name.as_str())).collect()
}

#[test]
fn every_goal_is_restated_beside_one_floor() {
    for goal in goals() {
        assert_eq!(restated_of(goal).len(), 1, "{}", name(goal));
    }
}

#[test]
fn nothing_is_restated_that_is_no_goal() {
    let names: Vec<String> = goals().map(name).collect();
    for name in RESTATED.iter().flat_map(|restated| restated.goals) {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
}

#[test]
fn no_restated_goal_asks_for_less_than_one_and_a_half_of_its_floor() {
    for Restated { floor, wanted, goals, .. } in RESTATED {
        let loosest = match floor {
            Same(..) | Bare(_) | Two(_) | Call(..) | Instructions(_) => *wanted <= 1.5,
            Gain(_) => *wanted >= 0.9,
            More(_) => *wanted <= 12.0,
        };
        assert!(loosest, "{goals:?}: {wanted}");
    }
}

/// Peers and C are there only where their libraries are, floors with other instructions only on this processor.
#[cfg(target_arch = "x86_64")]
#[test]
fn every_row_that_a_goal_or_its_floor_names_exists() {
    let suite = crate::rows(
        crate::suite::Wanted::Exactly(String::new()),
        None,
        Some(crate::cpu::Cpus { main: 0, other: Some(1) }),
    );
    let exists = |id: &str| {
        let elsewhere = id.starts_with("c.") || id.starts_with("peer");
        elsewhere || suite.why_skipped(id).is_some() || suite.known.iter().any(|known| known == id)
    };
    for goal in goals() {
        let mut ids: Vec<String> = goal.rows().into_iter().map(str::to_owned).collect();
        for Restated { floor, .. } in restated_of(goal) {
            match *floor {
                Same(floor, others) => ids.extend([floor.into(), format!("{floor}_{others}")]),
                Gain(floor) | Two(floor) => ids.extend([format!("{floor}_1"), format!("{floor}_2")]),
                Call(c, bare) => ids.extend([c.into(), bare.into()]),
                Bare(floor) | Instructions(floor) | More(floor) => ids.push(floor.into()),
            }
        }
        for id in ids {
            assert!(exists(&id), "{}: there is no row {id}", name(goal));
        }
    }
}

#[test]
fn every_count_that_a_restated_goal_needs_is_made() {
    for goal in goals() {
        for Restated { floor, .. } in restated_of(goal) {
            if let Same(floor, _) | Instructions(floor) | More(floor) = *floor {
                for id in [counted(floor), counted(goal.judged())] {
                    assert!(ROWS.contains(&id.as_str()), "{}: {id} is not counted", name(goal));
                }
            }
        }
    }
}

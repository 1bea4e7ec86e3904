//! What docs/ATTACKS.md claims about the figures.

use crate::world::Flood;
use crate::{Figures, AIMED};

/// A claim: its name, and whether it holds.
type Claim = (&'static str, fn(&Figures) -> bool);

/// How far a share in percent may lie from the published one; the short form sees a second of each.
const POINTS: f64 = 1.0;

/// Load, times the memory, and the published share of their excess that lasting abusers pass, in percent.
const LASTING: [(f64, usize, f64); 6] =
    [(1.0, 1, 10.2), (2.0, 1, 49.9), (2.0, 2, 10.3), (4.0, 1, 74.9), (4.0, 2, 50.0), (4.0, 4, 10.2)];

/// The claims; those of the short form are the same.
pub const CLAIMS: [Claim; 17] = [
    ("admit_and_sampled_refuse_no_innocent", |f| {
        f.floods[..2].iter().all(|rows| all(rows, |r| r.innocents_refused < 0.1))
    }),
    ("admit_and_sampled_hold_abusers_to_a_tenth_above_their_rate", |f| {
        f.floods[..2].iter().all(|rows| all(rows, |r| r.abusers < 1.1))
    }),
    ("deny_and_inherit_give_abusers_no_more_than_their_rate", |f| {
        f.floods[2..].iter().all(|rows| all(rows, |r| r.abusers <= 1.01))
    }),
    ("deny_and_inherit_refuse_innocents_from_twice_the_capacity_on", |f| {
        f.floods[2..].iter().all(|rows| all(&rows[1..], |r| r.innocents_refused > 20.0))
    }),
    ("lasting_abusers_at_half_load_get_next_to_nothing_more", |f| lasting(f, 0.5, 1) < 1.0),
    ("lasting_abusers_at_load_1_get_a_tenth_of_their_excess", |f| is_published(f, 1.0)),
    ("lasting_abusers_at_load_2_get_half_of_their_excess", |f| is_published(f, 2.0)),
    ("lasting_abusers_at_load_4_get_three_quarters_of_their_excess", |f| is_published(f, 4.0)),
    ("twice_the_memory_cures_load_1_and_four_times_load_2", |f| {
        lasting(f, 1.0, 2) < 1.0 && lasting(f, 2.0, 4) < 1.0
    }),
    ("eight_times_the_memory_cures_load_4", |f| lasting(f, 4.0, 8) < 1.0),
    ("an_even_evader_gets_its_rate_and_little_more_at_load_10", |f| {
        evaders(f, 10.0, |given| given.iter().all(|x| *x < 1.35))
    }),
    ("an_even_evader_gets_half_more_at_load_30_and_under_sampled_a_tenth", |f| {
        evaders(f, 30.0, |[admit, sampled, deny, inherit]| {
            *admit < 1.6 && *sampled < 1.2 && deny.max(*inherit) < 1.05
        })
    }),
    ("keys_lie_in_the_sets_that_the_aim_is_taken_by", |f| f.elsewhere.0 > 0 && f.elsewhere.1 == 0),
    ("a_million_keys_are_aimed_in_five_ways", |f| {
        f.aimed.len() == 5 && f.aimed.iter().all(|aim| aim.keys == AIMED)
    }),
    ("no_set_is_aimed_at_without_the_seed", |f| f.aimed.iter().all(|aim| aim.distance < 5.0)),
    ("strangers_are_taken_for_live_keys_as_often_as_the_formula_says", |f| {
        let (_, seen, expected) = *f.collisions;
        (seen as f64 - expected).abs() <= 3.0 * expected.sqrt()
    }),
    ("sets_fill_as_erlang_b_says", |f| {
        f.full.iter().all(|(_, seen, erlang)| (seen / erlang - 1.0).abs() < 0.12)
    }),
];

/// At least one row, and each holds.
fn all(rows: &[Flood], holds: fn(&Flood) -> bool) -> bool {
    !rows.is_empty() && rows.iter().all(holds)
}

/// What lasting abusers of a load pass of their excess with so many times the memory.
fn lasting(f: &Figures, load: f64, memory: usize) -> f64 {
    let row = f.lasting.iter().find(|(l, _)| *l == load);
    row.map_or(f64::NAN, |(_, shares)| shares[memory.ilog2() as usize])
}

/// What lasting abusers of a load pass is what was published of them.
fn is_published(f: &Figures, load: f64) -> bool {
    let mut rows = LASTING.iter().filter(|row| row.0 == load).peekable();
    rows.peek().is_some()
        && rows.all(|(load, memory, share)| (lasting(f, *load, *memory) - share).abs() <= POINTS)
}

/// There are evaders below a flood of this load, and it holds for each.
fn evaders(f: &Figures, load: f64, holds: fn(&[f64; 4]) -> bool) -> bool {
    let mut rows = f.evaders.iter().filter(|row| row.0 == load).peekable();
    rows.peek().is_some() && rows.all(|row| holds(&row.2))
}

//! The long form: `cargo test --release --test explorer -- --ignored --nocapture`.
//!
//! TATCELL_STATES says how many states of random worlds are enough, here and in `resets` (1e8).

use super::inserts::evicting_each_other;
use super::model::{Op, Permits, Placement, Policy, Rules, World};
use super::weakened::refunded_neighbours;
use super::{charge, clocks_apart, holds, random, size_from, EXACT, FORGIVING, NOW, SHARED, X, Y};

/// At most 2 million states in one world, and 1e8 with clocks close and with clocks units apart: minutes each.
#[test]
#[ignore = "minutes"]
fn long_random_worlds_hold() {
    let enough = size_from("TATCELL_STATES", 100_000_000) as usize;
    random::explore_up_to(enough, 2, 2_000, 2_000_000, false, Permits::default());
    random::explore_up_to(enough, 6, 1_000, 2_000_000, true, Permits::default());
}

#[test]
#[ignore = "minutes"]
fn long_four_threads_clocks_apart() {
    // Any slot: above 40 million states and 5 GB.
    let w = World { placement: Placement::First, ..clocks_apart(3, &[0, 0, 2, 3]) };
    holds("four threads, three slots", &w, EXACT);
    let mut w = World { placement: Placement::First, ..clocks_apart(2, &[0, 0, 2, 3]) };
    w.may_give_up = true;
    w.scripts[0].push(charge(X, NOW + 3));
    w.scripts[2].push(Op::Refund { of: 0, now: NOW + 3 });
    holds("a second call and a refund, giving up", &w, EXACT);
}

#[test]
#[ignore = "minutes"]
fn long_four_threads_refunds_and_sweeps() {
    let refund = Op::Refund { of: 0, now: NOW };
    let mut w = refunded_neighbours();
    w.scripts[0].push(refund);
    w.scripts[2] = vec![charge(Y, NOW), charge(X, NOW), Op::Refund { of: 1, now: NOW }];
    holds("refunds of two keys", &w, EXACT);
    w.may_give_up = true;
    w.scripts[2] = vec![charge(X, NOW), refund];
    holds("refunds of two keys, giving up", &w, EXACT);
}

#[test]
#[ignore = "minutes"]
fn long_takeovers_of_three_keys() {
    let mut w = evicting_each_other(Policy::Inherit);
    holds("Inherit, four threads, two lines", &w, SHARED);
    w.may_give_up = true;
    w.scripts.pop();
    holds("Inherit, three threads, two lines, giving up", &w, SHARED);
    let mut w = evicting_each_other(Policy::Sampled);
    w.rules = Rules::SampledRises;
    holds("Sampled without a fall, four threads, two lines", &w, FORGIVING);
}

//! Worlds of other calls: bursts against single calls, and charges after the fact.

use super::check::Check;
use super::search::holds;
use super::step_inserts::{world, EXACT};
use super::world::{check, Op, World, NOW, T, X, Y, Z};
use crate::limit::LimitSpec;
use crate::table::layout::policy::FullPolicy;

#[test]
fn a_burst_beside_single_calls_admits_no_more() {
    let burst = Op::Burst { keys: &[X, Y, X], now: NOW };
    let w = world(&[0, 8], FullPolicy::Admit).thread(&[burst]).thread(&[check(X, NOW)]);
    holds("a burst and an insert", &w, EXACT);
    let w = World::shared(LimitSpec::new(1, T, 2), FullPolicy::Deny, 2, &[0, 8]);
    let live = [w.live(X, NOW + 5), w.live(Z, NOW + 1)];
    let w = w.start(0, live[0]).start(1, live[1]).thread(&[burst]).thread(&[check(X, NOW)]);
    holds("a burst on a live slot and one that expires", &w.thread(&[check(Y, NOW + 2)]), EXACT);
    // Room for one unit: storing instead of swapping would admit two.
    let w = World::shared(LimitSpec::new(1, T, 2), FullPolicy::Admit, 2, &[0, 8]);
    let live = w.live(X, NOW + T);
    let w = w.start(0, live).thread(&[Op::Burst { keys: &[X, Z], now: NOW }]).thread(&[check(X, NOW)]);
    holds("a burst where there is room for one", &w, EXACT);
}

#[test]
fn a_charge_after_the_fact_is_never_lost_to_an_insert() {
    let spec = LimitSpec::new(1, T, 1).max_debt(2);
    let checks = &[Check::OneLive, Check::ClaimsRise, Check::NothingExtra, Check::Conserves, Check::Progress];
    let w = World::shared(spec, FullPolicy::Admit, 2, &[0, 8]);
    let w = w.thread(&[Op::Charge { key: X, now: NOW, cost: 2 }]).thread(&[check(X, NOW)]);
    holds("a charge and inserts", &w.thread(&[check(X, NOW)]), checks);
}

//! Worlds of tables that count: fixed windows and sliding counters through claim, commit, takeover and a window's end.

use super::check::Check;
use super::search::holds;
use super::world::{check, Op, World, NOW, T, X, Y, Z};
use crate::limit::LimitSpec;
use crate::table::layout::policy::FullPolicy;

/// Bits of the count.
const BITS: u32 = 2;
/// Units of a window of T ticks.
const UNITS: u64 = 2;

fn checks(units: u64) -> [Check; 4] {
    [Check::OneLive, Check::ClaimsRise, Check::Units(units), Check::Progress]
}

fn counting(spec: LimitSpec, policy: FullPolicy) -> World {
    World::shared(spec, policy, 1, &[0, 8])
}

/// LIVE(key) of a fixed window that ends at `end` and holds `count`.
fn window(w: &World, key: u64, end: u64, count: u64) -> u64 {
    w.live(key, end << BITS | count)
}

#[test]
fn inserts_of_one_instant_count_in_one_window() {
    for spec in [LimitSpec::fixed_window(UNITS, T), LimitSpec::sliding_counter(UNITS, T)] {
        let two = Op::Check { key: X, now: NOW, cost: 2 };
        let w = counting(spec, FullPolicy::Admit).thread(&[two]).thread(&[two]).thread(&[check(X, NOW)]);
        holds("counts: three inserts", &w, &checks(UNITS));
    }
}

#[test]
fn a_window_that_ends_between_the_clocks_is_not_counted_twice() {
    let spec = LimitSpec::fixed_window(UNITS, T);
    let w = counting(spec, FullPolicy::Admit);
    // The stranger's window is over by the clocks that are ahead.
    let stranger = window(&w, Y, NOW + 1, 1);
    let w = w.start(0, stranger).thread(&[check(X, NOW)]).thread(&[check(X, NOW + 2)]);
    holds("counts: a stranger's window ends", &w.thread(&[check(X, NOW + 2)]), &checks(UNITS));
    // The key's own window ends between load and swap: charges before that count in the old one, so the units of two
    // windows may pass, minus the one that was used.
    let w = counting(spec, FullPolicy::Admit);
    let own = window(&w, X, NOW + 1, 1);
    let w = w.start(0, own).thread(&[check(X, NOW), check(X, NOW)]).thread(&[check(X, NOW + 1)]);
    holds("counts: a roll beside charges", &w.thread(&[check(X, NOW + 1)]), &checks(2 * UNITS - 1));
}

#[test]
fn a_sliding_window_rolls_once() {
    let spec = LimitSpec::sliding_counter(UNITS, T);
    let w = counting(spec, FullPolicy::Admit).thread(&[check(X, NOW), check(X, NOW + T)]);
    let w = w.thread(&[check(X, NOW + T + 1)]).thread(&[check(X, NOW + T - 1)]);
    holds("sliding: rolls beside a late clock", &w, &checks(2 * UNITS - 1));
}

#[test]
fn a_window_given_up_for_another_key_is_forgotten_once() {
    let spec = LimitSpec::fixed_window(UNITS, T);
    let w = counting(spec, FullPolicy::Deny);
    let full = [window(&w, Y, NOW + 2, 2), window(&w, Z, NOW + 1, 1)];
    let w = w.start(0, full[0]).start(1, full[1]).thread(&[check(X, NOW + 1)]).thread(&[check(X, NOW + 2)]);
    holds("counts: a full set", &w.thread(&[check(Z, NOW)]), &checks(UNITS));
}

#[test]
fn refunds_and_resets_of_windows_give_back_what_was_taken() {
    for spec in [LimitSpec::fixed_window(UNITS, T), LimitSpec::sliding_counter(UNITS, T)] {
        let w = counting(spec, FullPolicy::Admit);
        let w = w.thread(&[check(X, NOW), Op::Refund { of: 0, now: NOW }, check(X, NOW)]);
        let w = w.thread(&[check(X, NOW), Op::Reset { key: X, now: NOW }]);
        holds("counts: a refund beside a reset", &w, &checks(UNITS));
        let w = counting(spec, FullPolicy::Admit);
        let w = w.thread(&[check(X, NOW), Op::Refund { of: 0, now: NOW }]).thread(&[check(X, NOW)]);
        holds("counts: a refund beside charges", &w.thread(&[check(X, NOW)]), &checks(UNITS));
    }
}

#[test]
fn decaying_debts_are_taken_over_whole() {
    let spec = LimitSpec::decay(2, 1000 * T);
    let w = World::shared(spec, FullPolicy::Inherit, 1, &[0, 8]);
    let w = w.thread(&[check(X, NOW)]).thread(&[check(X, NOW)]).thread(&[check(Y, NOW)]);
    holds("decay: x x y", &w, &checks(2));
}

//! Worlds of migrations during inserts, refunds, sweeps and takeovers, and with different clocks; and weakened
//! migrations, whose faults must be found.

use std::vec::Vec;

use super::check::Check;
use super::migration::{shipped, How};
use super::search::{breaks, holds};
use super::step_inserts::{world, EXACT};
use super::world::{check, Op, World, NOW, T, X, Y, Z};
use crate::limit::LimitSpec;
use crate::sync::access::Shared;
use crate::sync::step_atomic::own;
use crate::sync::{AtomicU64, Ordering};
use crate::table::handle::Table;
use crate::table::layout::image::Line;
use crate::table::layout::options::TableOptions;
use crate::table::layout::policy::FullPolicy;

const DEBTS: [Check; 2] = [Check::MigratedDebts, Check::MigratedAll];
const SAFE: &[Check] = &[Check::OneLive, Check::ClaimsRise, Check::KeyEnvelope, Check::Progress];
const FULL: &[Check] = &[Check::OneLive, Check::ClaimsRise, Check::SetEnvelope, Check::Progress];

/// Resolution and number of sets of new tables: like the old one, twice as large, four ticks a q-unit.
const TARGETS: [(i8, usize); 3] = [(0, 1), (0, 2), (-2, 1)];

fn migrate(now: u64) -> Op {
    Op::Migrate { now }
}

/// Checks a world with each kind of new table.
fn holds_into_each(name: &str, checks: &[Check], world: impl Fn() -> World) {
    let checks = [checks, &DEBTS].concat();
    for (resolution, sets) in TARGETS {
        let name = std::format!("{name}, into {sets} sets of resolution {resolution}");
        holds(&name, &world().migrating(resolution, sets, shipped), &checks);
    }
}

#[test]
fn a_migration_beside_inserts_has_every_debt_once() {
    for policy in [FullPolicy::Admit, FullPolicy::Deny] {
        holds_into_each("a migration beside inserts", EXACT, || {
            let w = world(&[0, 8], policy);
            let stranger = w.live(Y, NOW + 1);
            let w = w.start(0, stranger).thread(&[check(X, NOW)]);
            w.thread(&[check(X, NOW + 2)]).thread(&[migrate(NOW + 1)])
        });
        holds_into_each("a migration after an insert, beside others", EXACT, || {
            let w = world(&[0, 8], policy).thread(&[check(X, NOW + 1), migrate(NOW + 3)]);
            w.thread(&[check(Y, NOW + 1)]).thread(&[check(X, NOW + 2)])
        });
    }
}

/// Z has gone and its slot is taken. X loses its slot and moves to one that is read later.
#[test]
fn a_migration_beside_a_key_that_moves_has_it_once() {
    holds_into_each("a migration beside moves", EXACT, || {
        let w = World::shared(LimitSpec::new(1, T, 1), FullPolicy::Admit, 2, &[0, 8, 9]);
        let words = [w.live(X, NOW + 1), w.live(Z, NOW - 20), w.live(Y, NOW + T)];
        let w = w.start(0, words[0]).start(1, words[1]).start(2, words[2]);
        let w = w.thread(&[check(4, NOW + 4), check(5, NOW + 4), check(X, NOW + 4)]);
        w.thread(&[check(4, NOW + 4), migrate(NOW)])
    });
}

#[test]
fn a_migration_beside_refunds_resets_and_sweeps_has_what_is_left() {
    let refund = Op::Refund { of: 0, now: NOW + 1 };
    holds_into_each("a migration beside refunds", EXACT, || {
        let w = world(&[0, 8], FullPolicy::Admit);
        let expired = w.live(Y, NOW - w.table.geometry.layout.window - 100);
        let w = w.start(0, expired).thread(&[check(X, NOW), refund]);
        w.thread(&[Op::Sweep { slot: 0, now: NOW }]).thread(&[check(Z, NOW), migrate(NOW + 1)])
    });
    holds_into_each("a migration after a refund", EXACT, || {
        let w = World::shared(LimitSpec::new(1, T, 2), FullPolicy::Admit, 2, &[0, 8]);
        let live = w.live(X, NOW + T);
        let w = w.start(0, live).thread(&[check(X, NOW), refund, migrate(NOW + 2)]);
        w.thread(&[check(X, NOW)]).thread(&[check(Y, NOW + 1)])
    });
    holds_into_each("a migration beside a reset", SAFE, || {
        let w = world(&[0, 8], FullPolicy::Admit);
        let live = w.live(Z, NOW + T);
        let w = w.start(1, live).thread(&[check(X, NOW), Op::Reset { key: X, now: NOW }, check(X, NOW)]);
        w.thread(&[check(Y, NOW), migrate(NOW + 3)])
    });
}

#[test]
fn a_migration_beside_takeovers_has_their_debts() {
    holds_into_each("a migration beside takeovers", FULL, || {
        let w = World::shared(LimitSpec::new(1, T, 2), FullPolicy::Inherit, 2, &[0, 8]);
        let olds = [w.live(Z, NOW + T), w.live(4, NOW + T + 7)];
        let w = w.start(0, olds[0]).start(1, olds[1]).thread(&[check(X, NOW)]);
        w.thread(&[check(Y, NOW), migrate(NOW + 3)]).thread(&[check(Z, NOW + 2)])
    });
    holds_into_each("a migration beside takeovers of the dead", FULL, || {
        let w = World::shared(LimitSpec::new(1, T, 2), FullPolicy::Inherit, 2, &[0, 8]);
        let (dead, live) = (w.claim(X, NOW + T + 11), w.live(4, NOW + T + 7));
        let w = w.start(0, dead).start(1, live).thread(&[check(X, NOW)]);
        w.thread(&[migrate(NOW + 3)]).thread(&[check(Z, NOW + 2)])
    });
}

#[test]
fn a_migration_by_clocks_units_apart_has_every_debt_once() {
    for (late, at) in [(T + 2, 0), (T + 2, T + 3), (3 * T - 1, 2 * T)] {
        holds_into_each("a migration, clocks units apart", SAFE, || {
            let w = World::shared(LimitSpec::new(1, T, 2), FullPolicy::Admit, 2, &[0, 8]);
            let live = w.live(X, NOW + T);
            let w = w.start(0, live).thread(&[check(X, NOW), migrate(NOW - at)]);
            w.thread(&[check(X, NOW - late), check(Y, NOW)]).thread(&[check(Z, NOW - late)])
        });
    }
}

/// A world whose migrations are made in this way.
pub(super) fn weakened(resolution: i8, how: How<Shared>) -> World {
    let w = World::shared(LimitSpec::new(1, T, 4), FullPolicy::Admit, 2, &[0, 8]);
    let words = [w.live(Z, NOW - 20), w.live(Y, NOW + T + 2)];
    let w = w.start(0, words[0]).start(1, words[1]).thread(&[check(X, NOW), check(Y, NOW)]);
    w.thread(&[check(Y, NOW), migrate(NOW + 3)]).migrating(resolution, 1, how)
}

/// Migrates a private copy of the table, which holds what `look` finds in its words.
fn of_a_copy(
    table: &Table<'_>,
    lines: &[Line],
    options: &TableOptions,
    now: u64,
    look: impl Fn(&AtomicU64) -> u64,
) -> Vec<u64> {
    let memory: [Line; 4] = [Line::EMPTY; 4];
    own(&memory);
    let copy = Table::init(&memory, options).expect("as its own");
    for (to, from) in copy.slots.iter().zip(table.slots) {
        for (to, from) in to.words.iter().zip(&from.words) {
            // ORDERING: Relaxed; nobody else has it.
            to.store(look(from), Ordering::Relaxed);
        }
    }
    shipped(&copy, lines, options, now)
}

/// Drops the words that differ between two loads.
fn of_two_looks(table: &Table<'_>, lines: &[Line], options: &TableOptions, now: u64) -> Vec<u64> {
    of_a_copy(table, lines, options, now, |word| {
        // ORDERING: Relaxed; single words.
        let first = word.load(Ordering::Relaxed);
        if word.load(Ordering::Relaxed) == first {
            first
        } else {
            0
        }
    })
}

/// Reads words in two halves, like a 32-bit machine without 64-bit loads.
fn of_halves(table: &Table<'_>, lines: &[Line], options: &TableOptions, now: u64) -> Vec<u64> {
    of_a_copy(table, lines, options, now, |word| {
        // ORDERING: Relaxed; single words.
        let high = word.load(Ordering::Relaxed) >> 32 << 32;
        word.load(Ordering::Relaxed) & u64::from(u32::MAX) | high
    })
}

/// Loses the last word that has a debt.
pub(super) fn one_dropped(table: &Table<'_>, lines: &[Line], options: &TableOptions, now: u64) -> Vec<u64> {
    let mut words = shipped(table, lines, options, now);
    if let Some(last) = words.iter_mut().rev().find(|word| **word != 0) {
        *last = 0;
    }
    words
}

/// Rounds debts down to the new q-unit.
fn rounded_down(table: &Table<'_>, lines: &[Line], options: &TableOptions, now: u64) -> Vec<u64> {
    let words = shipped(table, lines, options, now);
    words.into_iter().map(|word| word.saturating_sub(u64::from(word != 0))).collect()
}

/// Puts a word of a key into both lines.
pub(super) fn one_twice(table: &Table<'_>, lines: &[Line], options: &TableOptions, now: u64) -> Vec<u64> {
    let mut words = shipped(table, lines, options, now);
    words[15] = words.iter().copied().max().unwrap_or(0);
    words
}

#[test]
fn step_must_fail_migrations_that_lose_or_make_debts() {
    let (lost, made) = ("a migration lost a debt", "a migration made a debt that nobody had");
    for resolution in [0, -2] {
        holds("as shipped", &weakened(resolution, shipped), &[EXACT, &DEBTS].concat());
        breaks("one word dropped", &weakened(resolution, one_dropped), &DEBTS, lost);
        breaks("rounded down", &weakened(resolution, rounded_down), &DEBTS, lost);
        breaks("one word twice", &weakened(resolution, one_twice), &DEBTS, made);
    }
    breaks("words of two looks", &weakened(0, of_two_looks), &DEBTS, lost);
    breaks("words in halves", &weakened(0, of_halves), &DEBTS, made);
}

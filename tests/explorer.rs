//! An exhaustive explorer of the insert protocol of the keyed table.
//!
//! Every interleaving of two to four threads over two or three slots is visited, one atomic access per
//! step, and every state is checked:
//!
//! * at most one LIVE word per key, under every policy but Sampled;
//! * every claim is above all earlier ones of its slot, so no claim word recurs;
//! * no key is admitted more than `(1 + R + F) * (L + last - first)`, the first of these less what it owed at the
//!   start where clocks are equal. L is the burst in time, first and last are the readings used, R the resets of the
//!   key that left a tombstone, F the calls of other keys where `last - first` is a unit or more (a clock so far
//!   ahead may give a slot away that a clock behind still counts) and else 0. A refund counts with what it gave
//!   back, as of its own instant;
//! * a permit of before a reset of its key gives back at most `G + 14 + d`, d being the largest difference of the
//!   clocks in use at one instant: a tombstone lies at least 2 above the TAT that it forgave and is taken once it
//!   lies G + 16 or less ahead. See below for permits refunded out of order;
//! * no word carries more debt than was charged, so a refused or contended call charged nothing;
//! * under Inherit with equal clocks the words of the set account for every unit admitted, and with
//!   clocks apart the set admits at most one bucket per slot and reset;
//! * from every state every unfinished thread ends when it runs alone, and a fresh call of a present or an
//!   absent key ends alone: at once (Contended only where unexpired claims fill the set), and with a
//!   tracked admission once everything has expired. A thread that dies is a thread that is not run again,
//!   so this covers the death of any threads at any step. A fresh call that is refused writes nothing. Behind a
//!   fresh reset a whole burst is not refused.
//!
//! Three rules are tighter than claim and commit alone, because the explorer found the need. A charge that
//! commits a claim can give back only `tat - v`: a whole refund lets the payload fall below the version,
//! the claim word recurs in the same instant, and a stale committer doubles the key
//! (`weakened_refunds_are_caught`). Under Inherit an EMPTY word with an odd payload is a debt and no free
//! slot: it is taken over like a LIVE word, or else refused calls would raise it. And a reset leaves a tombstone, an
//! even EMPTY above the TAT, which nobody takes until it has drained to G + 16: left LIVE with a small lead, a slot
//! reset by an old reading lets a claim recur (`weakened_reset_that_leaves_a_live_word_is_caught`, 28 steps). The
//! 16 is the table's own: a unit is 64 here, and a claim and its drop raise a slot by 4, so that four drops of one
//! slot in one instant leave it reusable; beyond that it waits a few q-units.
//!
//! What the shipped rules do not promise, each pinned by a test that would fail if they did:
//!
//! * Permits refunded in another order than the reverse of their charges. A refund lowers the TAT under the permits
//!   of later charges; from then on those give back what has drained (`a_refund_out_of_order_gives_back_..`), pass a
//!   tombstone (`a_refund_out_of_order_outlives_a_reset`), and outlive the key's slot: lowering its next life below
//!   the claim, they let that claim recur, and an insert that has stalled since doubles the key
//!   (`a_permit_of_an_earlier_life_..`). A permit good for its own slot only, and for what it stored less the time
//!   since its charge, does none of this (`Permits`).
//! * A permit of an earlier life of its key that comes back by a reading two units behind an insert's does the last of
//!   these too, whatever the order (`a_refund_units_late_..`, 41 steps). One whose charge was by a clock a unit behind,
//!   and that comes back by a reading at which it has not drained though it has for others, lets a claim recur
//!   (`a_late_refund_of_before_a_reset_..`). In the words of one life no refund can. In the worlds drawn at random
//!   permits come back by a clock that is up to date, where clocks are units apart.
//! * Sampled lets a payload fall at a takeover (`sampled_can_double_a_key_that_others_evict`).
//!
//! Where an insert goes is free: the shipped order (an EMPTY slot, else the longest expired) is one mode, any
//! reusable slot by the choice of the world another.
//!
//! What is not modelled: weak memory (the models in `loom_*.rs` do that; here every access is sequentially
//! consistent), wrap of the payload and clocks apart by more than the skew, tag collisions. A sweep here takes a word
//! as soon as it has expired, the table's much later. The bounds on passes are modelled by threads that may give up
//! before any pass but the first.
//!
//! Each rule that is weakened on purpose must be caught: `weakened_*`.

#[path = "explorer/calls.rs"]
mod calls;
#[path = "explorer/check.rs"]
mod check;
#[path = "explorer/inserts.rs"]
mod inserts;
#[path = "explorer/long.rs"]
mod long;
#[path = "explorer/model.rs"]
mod model;
#[path = "explorer/protocol.rs"]
mod protocol;
#[path = "explorer/random.rs"]
mod random;
#[path = "explorer/resets.rs"]
mod resets;
#[path = "explorer/search.rs"]
mod search;
#[path = "explorer/store.rs"]
mod store;
#[path = "explorer/weakened.rs"]
mod weakened;
#[path = "explorer/words.rs"]
mod words;

/// A number from the environment, for tests whose size can be chosen.
fn size_from(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse::<f64>().ok()).map_or(default, |n| n as u64)
}

use check::Check;
use model::{Op, Permits, Placement, Policy, Rules, Word, World};
use search::Search;

const X: u8 = 0;
const Y: u8 = 1;
const Z: u8 = 2;
const NOW: i32 = 256;
const UNIT: i32 = 64;
const EXACT: &[Check] =
    &[Check::OneLive, Check::ClaimsRise, Check::KeyEnvelope, Check::NothingExtra, Check::Progress];
const FORGIVING: &[Check] = &[Check::OneLive, Check::Progress];
const SHARED: &[Check] = &[Check::OneLive, Check::ClaimsRise, Check::SetEnvelope, Check::Progress];

fn charge(key: u8, now: i32) -> Op {
    Op::Charge { key, now, units: 1 }
}

fn world(slots: usize, policy: Policy, scripts: &[&[Op]]) -> World {
    World {
        slots,
        order: [[0, 1, 2]; 4],
        unit: UNIT,
        limit: UNIT,
        lifetime: 2,
        horizon: 4 * UNIT,
        policy,
        rules: Rules::Shipped,
        permits: Permits::default(),
        placement: Placement::EmptyThenOldest,
        history: false,
        skew: None,
        may_give_up: false,
        scripts: scripts.iter().map(|s| s.to_vec()).collect(),
        initial: [Word(0); 3],
    }
}

fn holds(name: &str, world: &World, checks: &[Check]) {
    let found = Search::new(world.clone(), checks).run(usize::MAX);
    println!("{name}: {} states", found.states);
    if let Some(what) = found.violation {
        panic!("{name}: {what}");
    }
}

/// The world breaks this and nothing else before it; gives the steps of the shortest schedule.
fn breaks(world: &World, checks: &[Check], what: &str) -> usize {
    let found = Search::new(world.clone(), checks).run(usize::MAX);
    let broken = found.violation.unwrap_or_else(|| panic!("it holds, in {} states: {what}", found.states));
    let first = broken.lines().next().unwrap();
    println!("{:?}, {:?}: {} states: {first}", world.rules, world.permits, found.states);
    assert!(first.starts_with(what), "{broken}");
    found.steps
}

/// A weakened rule is caught by this, and the shipped rules hold in the same world.
fn caught_by(rules: Rules, world: &World, checks: &[Check], what: &str) -> usize {
    holds("shipped rules", world, checks);
    breaks(&World { rules, ..world.clone() }, checks, what)
}

/// Slot 0 expires between the clocks of the threads, all of one key.
fn clocks_apart(slots: usize, readings: &[i32]) -> World {
    let scripts: Vec<Vec<Op>> = readings.iter().map(|d| vec![charge(X, NOW + d)]).collect();
    let scripts: Vec<&[Op]> = scripts.iter().map(|s| &s[..]).collect();
    let mut w = world(slots, Policy::Admit, &scripts);
    w.placement = Placement::Any;
    w.initial[0] = Word::live(Y, NOW + 1);
    w
}

#[test]
fn random_worlds_hold() {
    random::explore(1, 60, 150_000, false, Permits::default());
}

#[test]
fn random_worlds_with_clocks_units_apart_hold() {
    random::explore(3, 50, 100_000, true, Permits::default());
}

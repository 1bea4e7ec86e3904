//! Models of marks: no interleaving of two packets of a flow breaks an envelope, and the colours are those of an order
//! where that is promised.
//!
//! Both debts are known keys, so each is one word; the models of the table show how keys are inserted. See
//! `table/models/loom_kit.rs` for the bounds and for what loom does not show.

use std::sync::atomic::{AtomicBool, Ordering as Plain};
use std::sync::Arc;

use crate::answer::Colour;
use crate::combine::mark::Mark;
use crate::keys::second_hash;
use crate::limit::{LimitSpec, TableLimit};
use crate::table::models::loom_kit::{explore, race, race3, Bound, NOW};
use crate::table::{Line, Table, TableOptions};

/// Emission interval of the committed limit in ticks; the second one is as fast. One q-unit a tick.
const T: u64 = 1 << 16;
const HASH: u64 = 0x1234_5678_9abc_def0;

/// A table of one flow that has `committed` and `second` units left, after one unit of each was used up.
struct World {
    table: Table<'static>,
    limits: [TableLimit; 2],
}

impl World {
    fn new(committed: u64, second: u64) -> Arc<World> {
        let specs = [committed, second].map(|burst| LimitSpec::new(1, T, burst + 1));
        let longest = specs[(second > committed) as usize];
        // Loom makes its atomics anew in every execution, and forgets them with it.
        let lines: std::vec::Vec<Line> = (0..4).map(|_| Line::default()).collect();
        let lines: &'static [Line] = std::boxed::Box::leak(lines.into_boxed_slice());
        let table =
            Table::init(lines, &TableOptions::new(longest).caller_hash().resolution(0)).expect("table");
        let limits = specs.map(|spec| table.limit(&spec).expect("limit"));
        for (limit, hash) in limits.iter().zip([HASH, second_hash(HASH)]) {
            assert!(table.check_hash(limit, NOW, hash, 1).expect("own").passes());
        }
        Arc::new(World { table, limits })
    }

    /// Returns what both debts have left.
    fn left(&self) -> [u64; 2] {
        let left = |i: usize, hash| self.table.peek(&self.limits[i], NOW, hash, 0).expect("own").remaining;
        [left(0, HASH), left(1, second_hash(HASH))]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Peak,
    Excess,
}

fn packet(world: &Arc<World>, kind: Kind, cost: u64) -> impl FnOnce() -> Colour + 'static {
    let world = world.clone();
    move || {
        let [committed, second] = &world.limits;
        let mark = match kind {
            Kind::Peak => Mark::rfc2698(committed, second),
            Kind::Excess => Mark::rfc4115(committed, second),
        };
        mark.check(&world.table, NOW, HASH, cost, Colour::Green).expect("own").colour
    }
}

/// Returns the colours of packets of these costs, one after the other.
fn one_by_one<const N: usize>(
    kind: Kind,
    [mut committed, mut second]: [u64; 2],
    costs: [u64; N],
) -> [Colour; N] {
    let pay = |left: &mut u64, cost: u64| match left.checked_sub(cost) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    };
    costs.map(|cost| match kind {
        Kind::Peak if !pay(&mut second, cost) => Colour::Red,
        Kind::Excess if !pay(&mut committed, cost) => match pay(&mut second, cost) {
            true => Colour::Yellow,
            false => Colour::Red,
        },
        Kind::Peak if !pay(&mut committed, cost) => Colour::Yellow,
        _ => Colour::Green,
    })
}

/// Returns whether these are the colours of some order of two packets.
fn is_of_an_order(kind: Kind, bursts: [u64; 2], [a, b]: [u64; 2], colours: [Colour; 2]) -> bool {
    let [second, first] = one_by_one(kind, bursts, [b, a]);
    colours == one_by_one(kind, bursts, [a, b]) || colours == [first, second]
}

/// Returns what is left once green and yellow packets have paid.
fn paid(kind: Kind, [committed, second]: [u64; 2], costs: &[u64], colours: &[Colour]) -> [u64; 2] {
    let sum = |which: &[Colour]| -> u64 {
        costs.iter().zip(colours).filter(|(_, colour)| which.contains(colour)).map(|(cost, _)| cost).sum()
    };
    let second_paid = match kind {
        Kind::Peak => sum(&[Colour::Green, Colour::Yellow]),
        Kind::Excess => sum(&[Colour::Yellow]),
    };
    let green = sum(&[Colour::Green]);
    assert!(green <= committed && second_paid <= second, "an envelope is broken: {colours:?}");
    [committed - green, second - second_paid]
}

/// Two packets of different costs at one clock reading: colours of an order, and both debts owe what was paid, for both
/// kinds and every pair of small bursts and costs. Does not show: more threads, different clock readings.
#[test]
fn loom_two_packets_get_the_colours_of_an_order() {
    static SWAPPED: AtomicBool = AtomicBool::new(false);
    for kind in [Kind::Peak, Kind::Excess] {
        for bursts in [[1, 2], [2, 3], [3, 1]] {
            for costs in [[1, 1], [1, 2], [2, 1]] {
                explore("mark: two packets", Bound::First(3), move || {
                    let world = World::new(bursts[0], bursts[1]);
                    let (a, b) = race(packet(&world, kind, costs[0]), packet(&world, kind, costs[1]));
                    assert!(
                        is_of_an_order(kind, bursts, costs, [a, b]),
                        "the colours of no order: {a:?} {b:?}"
                    );
                    assert_eq!(world.left(), paid(kind, bursts, &costs, &[a, b]));
                    SWAPPED.fetch_or(a > b, Plain::Relaxed);
                });
            }
        }
    }
    assert!(SWAPPED.load(Plain::Relaxed), "no packet ever overtook the other");
}

/// Three packets of one cost: as many green and yellow ones as in any order. Does not show: other costs.
#[test]
fn loom_three_packets_share_the_bursts() {
    for (kind, wanted) in [(Kind::Peak, [1, 1, 1]), (Kind::Excess, [1, 2, 0])] {
        explore("mark: three packets", Bound::At(1, 3), move || {
            let world = World::new(1, 2);
            let one = || packet(&world, kind, 1);
            let (a, b, c) = race3(one(), one(), one());
            let colours = [a, b, c];
            let count = |colour| colours.iter().filter(|c| **c == colour).count();
            assert_eq!([Colour::Green, Colour::Yellow, Colour::Red].map(count), wanted);
            assert_eq!(world.left(), paid(kind, [1, 2], &[1; 3], &colours));
        });
    }
}

/// MUST FAIL: peeking at the committed limit and charging it afterwards lets two packets be green for one.
#[test]
#[should_panic(expected = "an envelope is broken")]
fn loom_weak_mark_that_believes_its_look_is_caught() {
    explore("mark, weakened: look, then charge", Bound::Exhaustive, || {
        let world = World::new(1, 2);
        let believe = || {
            let world = world.clone();
            move || {
                let [committed, second] = &world.limits;
                let fits = |limit, hash| world.table.peek(limit, NOW, hash, 1).expect("own").passes();
                let pay = |limit, hash| {
                    let _ = world.table.charge(limit, NOW, hash, 1, None).expect("own");
                };
                if !fits(second, second_hash(HASH)) {
                    return Colour::Red;
                }
                pay(second, second_hash(HASH));
                if !fits(committed, HASH) {
                    return Colour::Yellow;
                }
                pay(committed, HASH);
                Colour::Green
            }
        };
        let (a, b) = race(believe(), believe());
        paid(Kind::Peak, [1, 2], &[1, 1], &[a, b]);
    });
}

/// MUST FAIL: a mark that asks the committed limit first, and believes that what it passes will pass the peak limit,
/// charges the committed burst for red packets.
#[test]
#[should_panic(expected = "the colours of no order")]
fn loom_weak_mark_that_asks_in_the_wrong_order_is_caught() {
    explore("mark, weakened: committed before peak", Bound::Exhaustive, || {
        let world = World::new(1, 1);
        let wrong = |cost: u64| {
            let world = world.clone();
            move || {
                let [committed, second] = &world.limits;
                let ask = |limit, hash| world.table.check_hash(limit, NOW, hash, cost).expect("own").passes();
                let green = ask(committed, HASH);
                match ask(second, second_hash(HASH)) {
                    false => Colour::Red,
                    true if green => Colour::Green,
                    true => Colour::Yellow,
                }
            }
        };
        let (a, b) = race(wrong(1), wrong(1));
        assert!(is_of_an_order(Kind::Peak, [1, 1], [1, 1], [a, b]), "the colours of no order: {a:?} {b:?}");
    });
}

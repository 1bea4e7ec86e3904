//! How many swaps a call loses before it gives up, with the shipped code and rivals that win every swap.

use std::boxed::Box;
use std::cell::Cell;

use crate::answer::Verdict;
use crate::limit::LimitSpec;
use crate::sync::access::sealed::Sealed;
use crate::sync::access::Access;
use crate::sync::{AtomicU64, Ordering, MAX_LOST};
use crate::table::burst::call::{Burst, NextBurst};
use crate::table::calls::full_answer::Request;
use crate::table::counters::Counters;
use crate::table::error::TableError;
use crate::table::handle::Table;
use crate::table::layout::image::Line;
use crate::table::layout::options::{AttachOptions, TableOptions};
use crate::table::layout::policy::FullPolicy;

const NOW: u64 = 1 << 30;
const X: u64 = 1;

std::thread_local! {
    static LOST: Cell<u32> = const { Cell::new(0) };
    /// How many swaps are lost; the others succeed.
    static RIVALS: Cell<u32> = const { Cell::new(0) };
    /// How many swaps succeed before one is lost.
    static SPARED: Cell<u32> = const { Cell::new(0) };
}

/// Loses swaps to a rival that moves the word on, like a charge of one tick or the drop of a claim.
enum Loses {}

impl Sealed for Loses {}

impl Access for Loses {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        // ORDERING: Relaxed; one thread.
        assert_eq!(slot.load(Ordering::Relaxed), old, "a swap of what is not there");
        if SPARED.get() > 0 {
            SPARED.set(SPARED.get() - 1);
        } else if LOST.get() < RIVALS.get() {
            LOST.set(LOST.get() + 1);
            let found = old.wrapping_add(2);
            slot.store(found, Ordering::Relaxed);
            return Err(found);
        }
        slot.store(new, Ordering::Relaxed);
        Ok(())
    }

    fn fence() {}
}

/// A table in which the key of X owes two units, or is absent.
fn table(present: bool, rivals: u32) -> Table<'static, Loses> {
    made(present, rivals).1
}

/// The same with its memory.
fn made(present: bool, rivals: u32) -> (&'static [Line; 4], Table<'static, Loses>) {
    let spec = spec();
    let memory: &'static [Line; 4] = Box::leak(Box::new([Line::EMPTY; 4]));
    let options = TableOptions::new(spec).caller_hash().resolution(0).policy(FullPolicy::Deny);
    RIVALS.set(0);
    let table = Table::init_as(memory, &options).unwrap();
    if present {
        let limit = table.limit(&spec).unwrap();
        assert!(table.check_hash(&limit, NOW, X, 2).unwrap().passes());
    }
    LOST.set(0);
    RIVALS.set(rivals);
    (memory, table)
}

fn spec() -> LimitSpec {
    LimitSpec::new(1, 4096, 64).max_debt(2).max_delay(4096)
}

type Call = fn(&Table<'_, Loses>) -> Verdict;

fn verdict(passes: bool) -> Verdict {
    if passes {
        Verdict::Conforming
    } else {
        Verdict::Contended
    }
}

/// Every call that swaps, how many lost swaps it survives, and whether it inserts.
const CALLS: [(&str, Call, u32, bool); 8] = [
    (
        "check",
        |t| verdict(t.check_hash(&t.limit(&spec()).unwrap(), NOW, X, 1).unwrap().passes()),
        MAX_LOST,
        true,
    ),
    ("check_ex", |t| ex(t, 1), MAX_LOST - 1, true),
    (
        "charge",
        |t| t.charge(&t.limit(&spec()).unwrap(), NOW, X, 1, None).unwrap().verdict,
        MAX_LOST - 1,
        true,
    ),
    (
        "reserve",
        |t| t.reserve(&t.limit(&spec()).unwrap(), NOW, X, 1, None).unwrap().verdict,
        MAX_LOST - 1,
        true,
    ),
    (
        "burst",
        |t| {
            let limit = t.limit(&spec()).unwrap();
            verdict(Burst::new(&limit, NOW, &[X]).check(t, None, NextBurst::NONE).unwrap() == 1)
        },
        MAX_LOST,
        true,
    ),
    (
        "counted burst",
        |t| {
            let limit = t.limit(&spec()).unwrap();
            let burst = Burst { costs: Some(&[1]), ..Burst::new(&limit, NOW, &[X]) };
            verdict(burst.check(t, Some(&mut Counters::default()), NextBurst::NONE).unwrap() == 1)
        },
        MAX_LOST,
        true,
    ),
    ("reset", |t| verdict(t.reset_key(NOW, X)), MAX_LOST - 1, false),
    (
        "refund",
        |t| {
            let rivals = RIVALS.replace(0);
            let limit = t.limit(&spec()).unwrap();
            let request = Request { limit: &limit, now: NOW, cost: 1, room: 0 };
            let permit = t.check_ex(&request, X, None).unwrap().permit;
            RIVALS.set(rivals);
            verdict(t.refund(&limit, NOW, X, &permit).unwrap().is_some())
        },
        MAX_LOST - 1,
        false,
    ),
];

fn ex(t: &Table<'_, Loses>, cost: u64) -> Verdict {
    let limit = t.limit(&spec()).unwrap();
    t.check_ex(&Request { limit: &limit, now: NOW, cost, room: 0 }, X, None).unwrap().verdict
}

#[test]
fn a_call_gives_up_at_exactly_the_documented_number_of_lost_swaps() {
    for (name, call, survives, _) in CALLS {
        for rivals in 0..=MAX_LOST + 4 {
            let table = table(true, rivals);
            let wanted = if rivals <= survives { Verdict::Conforming } else { Verdict::Contended };
            assert_eq!(call(&table), wanted, "{name}, {rivals} lost");
            assert_eq!(LOST.get(), rivals.min(survives + 1), "{name}, {rivals} lost");
        }
    }
}

/// A request of a burst makes attempts before it counts losses: that of the loop or of the group, a second one of a
/// group, and one more if the key is in its second line.
#[test]
fn a_request_of_a_burst_gives_up_at_exactly_the_documented_number_of_lost_swaps() {
    for (second, groups, lane) in [
        (false, false, 0),
        (true, false, 0),
        (false, true, 0),
        (true, true, 0),
        (false, true, 3),
        (true, true, 3),
    ] {
        let survives = MAX_LOST + u32::from(second) + u32::from(groups);
        for rivals in 0..=MAX_LOST + 5 {
            let (_, mut table) = made(!second, 0);
            let limit = table.limit(&spec()).unwrap();
            let strangers = 2..=9;
            for key in strangers.clone().chain([X]) {
                assert!(table.check_hash(&limit, NOW, key, 1).unwrap().passes());
            }
            if groups && table.wide.is_none() && table.half.is_none() {
                let (test, name) = (std::thread::current(), "groups");
                let test = test.name().unwrap_or_default();
                return std::println!(
                    "SKIP {test}_by_{name}: this processor has no such step; run it on one that has"
                );
            }
            table.at_once = groups;
            let one_by_one = [1; 24];
            let mut hashes: std::vec::Vec<u64> = strangers.cycle().take(24).collect();
            hashes[lane as usize] = X;
            let costs = (!groups).then_some(&one_by_one[..]);
            let burst = Burst { costs, ..Burst::new(&limit, NOW, &hashes) };
            LOST.set(0);
            RIVALS.set(rivals);
            SPARED.set(lane);
            let pass = burst.check(&table, None, NextBurst::hashes(&[])).unwrap();
            let passes = pass >> lane & 1 == 1;
            assert_eq!(
                passes,
                rivals <= survives,
                "second line {second}, groups {groups}, lane {lane}, {rivals} lost"
            );
        }
    }
}

/// An absent key has no word for a first attempt. It loses its claim or its commit; at the bound, if its own claim is
/// left, it tries once to take that back.
#[test]
fn an_insert_gives_up_at_the_bound_and_leaves_no_charge() {
    for (name, call, ..) in CALLS.into_iter().filter(|(.., inserts)| *inserts) {
        for rivals in 0..=MAX_LOST + 4 {
            let table = table(false, rivals);
            let wanted = if rivals < MAX_LOST { Verdict::Conforming } else { Verdict::Contended };
            assert_eq!(call(&table), wanted, "{name}, {rivals} lost");
            assert!(LOST.get() <= MAX_LOST + 1, "{name}: {} of {rivals} lost", LOST.get());
            if wanted == Verdict::Contended {
                assert_eq!(table.stats(NOW).live, 0, "{name}, {rivals} lost");
            }
        }
    }
}

/// The slot changes hands after some losses, and these still count.
#[test]
fn losses_count_on_where_a_slot_changes_hands() {
    for moved in 1..MAX_LOST {
        let (memory, _) = made(true, MAX_LOST + 4);
        MOVES.set(moved);
        let table: Table<'_, Moves> = Table::attach_as(memory, &AttachOptions::new()).unwrap();
        let limit = table.limit(&spec()).unwrap();
        let request = Request { limit: &limit, now: NOW, cost: 1, room: 0 };
        let verdict = table.check_ex(&request, X, None).unwrap().verdict;
        assert_eq!(verdict, Verdict::Contended, "moved after {moved}");
        assert_eq!(LOST.get(), MAX_LOST, "moved after {moved}");
    }
}

std::thread_local! {
    static MOVES: Cell<u32> = const { Cell::new(0) };
}

/// Does the same as [`Loses`], but after some losses another key has the slot, also when the call loads it again.
enum Moves {}

impl Sealed for Moves {}

impl Access for Moves {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        let found = Loses::replace(slot, old, new);
        if LOST.get() == MOVES.get() {
            // Another key took the slot; ours is absent now.
            let other = old ^ (1 << 50 | 1 << 51);
            slot.store(other, Ordering::Relaxed);
            return Err(other);
        }
        found
    }

    fn fence() {}
}

/// Loses commits to rivals that drop the claim, so each race costs the scans of a whole insert.
enum Drops {}

impl Sealed for Drops {}

impl Access for Drops {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        const CLAIM: u64 = 1 << 63;
        // ORDERING: Relaxed; one thread.
        let found = slot.load(Ordering::Relaxed);
        if found != old {
            return Err(found);
        }
        if old & CLAIM != 0 && LOST.get() < RIVALS.get() {
            LOST.set(LOST.get() + 1);
            let dropped = old.wrapping_add(2) & ((1 << 40) - 1);
            slot.store(dropped, Ordering::Relaxed);
            return Err(dropped);
        }
        slot.store(new, Ordering::Relaxed);
        Ok(())
    }

    fn fence() {}
}

/// The bound on scans is not tighter than that on swaps: an insert that may lose one more swap has a scan left for it.
#[test]
fn an_insert_has_looks_for_all_the_swaps_that_it_may_lose() {
    for rivals in 0..=MAX_LOST + 4 {
        let (memory, _) = made(false, 0);
        let table: Table<'_, Drops> = Table::attach_as(memory, &AttachOptions::new()).unwrap();
        RIVALS.set(rivals);
        let limit = table.limit(&spec()).unwrap();
        let passes = table.check_hash(&limit, NOW, X, 1).unwrap().passes();
        assert_eq!(passes, rivals < MAX_LOST, "{rivals} lost");
    }
}

/// A ban that loses too many swaps says so, and the key's override is as it was.
#[test]
fn a_ban_that_is_contended_says_so_and_bans_nobody() {
    let mut told = 0;
    for rivals in 0..=2 * MAX_LOST {
        let memory: &'static [Line; 4] = Box::leak(Box::new([Line::EMPTY; 4]));
        let options = TableOptions::overrides(1 << 20).caller_hash();
        RIVALS.set(0);
        let table: Table<'_, Loses> = Table::init_as(memory, &options).unwrap();
        LOST.set(0);
        RIVALS.set(rivals);
        let made = table.ban(NOW, X, NOW + 1_000);
        RIVALS.set(0);
        assert_eq!(table.overridden(NOW, X).unwrap().is_some(), made.is_ok(), "{rivals} lost");
        if rivals < MAX_LOST {
            assert_eq!(made, Ok(()), "{rivals} lost");
        } else {
            assert!(matches!(made, Ok(()) | Err(TableError::Contended)), "{rivals} lost: {made:?}");
        }
        told += u32::from(made.is_err());
    }
    assert!(told > 2, "{told}");
}

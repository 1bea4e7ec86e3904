//! What the reset of a key leaves in its set, and that no claim word ever recurs, with the shipped code.

use std::boxed::Box;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::vec::Vec;

use crate::sync::access::sealed::Sealed;
use crate::sync::access::{Access, Shared};
use crate::table::layout::fit::{choose, limit};

use crate::algorithms::{Kind, Op};
use crate::answer::Verdict;
use crate::limit::{LimitSpec, TableLimit};
use crate::sync::{AtomicU64, Ordering};
use crate::table::layout::options::TableOptions;
use crate::table::layout::policy::FullPolicy;
use crate::table::layout::word::Layout;
use crate::table::set::set::Set;

const T: u64 = 4096;
const BURST: u64 = 8;

/// One set of 16 slots, and what all threads agree on.
struct World {
    layout: Layout,
    limit: TableLimit,
    lines: [[AtomicU64; 8]; 2],
}

impl World {
    fn new() -> &'static World {
        let spec = LimitSpec::new(1, T, BURST);
        let options = TableOptions::new(spec).caller_hash().resolution(0);
        let geometry = choose(&options, 4).unwrap();
        let limit = limit(&geometry, &spec).unwrap();
        let lines = core::array::from_fn(|_| core::array::from_fn(|_| AtomicU64::new(0)));
        Box::leak(Box::new(World { layout: geometry.layout, limit, lines }))
    }

    fn set(&self) -> Set<'_, 8> {
        Set { home: &self.lines[0], next: &self.lines[1], line: 0 }
    }

    fn check<A: Access>(&self, key: u64, now: u64, cost: u64) -> bool {
        let op = Op::new(&self.limit.0, Kind::Check, cost, 0);
        let tag = self.layout.tag(key);
        let done = self.set().run::<A, _>(&self.layout, FullPolicy::Admit, tag, now, &op, false);
        done.answer.is_some_and(|a| a.verdict == Verdict::Conforming)
    }

    fn reset(&self, key: u64, now: u64) -> bool {
        self.set().reset::<Shared>(&self.layout, self.layout.tag(key), now)
    }

    fn words(&self) -> Vec<u64> {
        // ORDERING: Relaxed; the threads have been joined, or there is only one.
        self.lines.iter().flatten().map(|slot| slot.load(Ordering::Relaxed)).collect()
    }
}

std::thread_local! {
    /// Every claim that was ever placed, with its slot.
    static CLAIMS: RefCell<HashSet<(usize, u64)>> = RefCell::new(HashSet::new());
    static RECURRED: Cell<u32> = const { Cell::new(0) };
}

/// The shared form, which records each claim that it places.
struct Recorded;

impl Sealed for Recorded {}

impl Access for Recorded {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        Shared::replace(slot, old, new)?;
        let fresh =
            || CLAIMS.with(|claims| claims.borrow_mut().insert((core::ptr::from_ref(slot) as usize, new)));
        if new >> 63 == 1 && !fresh() {
            RECURRED.with(|n| n.set(n.get() + 1));
        }
        Ok(())
    }

    fn fence() {}
}

/// A thread that stalls before its commit must not find a later claim that equals its own. In whatever order keys come,
/// are reset and swept, by different clocks and without refunds, no claim word recurs in its slot.
#[test]
fn no_claim_word_recurs_in_a_slot_whatever_is_reset_by_whichever_clock() {
    let mut seed = 1u64;
    let mut random = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for round in 0..300u64 {
        let w = World::new();
        CLAIMS.with(|claims| claims.borrow_mut().clear());
        let start = (1u64 << 30) + (round << 24);
        for step in 0..400u64 {
            // Few readings, so that two of them often coincide; up to three units behind the newest.
            let now = start + step / 8 * (T / 4) - random(13) * (T / 4);
            let key = 1 + random(18);
            match random(8) {
                0 => assert!(w.set().reset::<Recorded>(&w.layout, w.layout.tag(key), now)),
                _ => drop(w.check::<Recorded>(key, now, 1 + random(3))),
            }
        }
    }
    assert_eq!(RECURRED.with(Cell::get), 0);
}

/// A reset leaves a tombstone: no key takes the slot until the debt has drained, and its payload never falls.
#[test]
fn a_reset_leaves_a_tombstone_until_its_debt_has_drained() {
    const X: u64 = 1;
    let (w, now) = (World::new(), 1u64 << 30);
    assert!(w.check::<Shared>(X, now, 5));
    let debt = w.words()[0];
    assert!(w.reset(X, now));
    let tombstone = w.words()[0];
    let version = tombstone & w.layout.mask;
    assert!(w.layout.is_empty(tombstone) && version % 2 == 0 && version > (debt & w.layout.mask) + 1);
    // The key is full at once, in another slot.
    assert!(w.check::<Shared>(X, now, BURST) && !w.check::<Shared>(X, now, 1));
    assert_eq!(w.words()[0], tombstone, "somebody took it");
    assert!(w.layout.is_live_of(w.words()[1], w.layout.tag(X)));
    // Fourteen of fifteen other keys find a slot; the last one passes untracked. None takes the tombstone.
    let inserted = (2..=16).filter(|key| w.check::<Shared>(*key, now, 1)).count();
    assert_eq!((inserted, w.words()[0]), (15, tombstone));
    assert!(w.reset(X, now) && w.reset(X, now), "an absent key is full already");
    // Once drained, it is taken first, and the new word lies above it.
    let later = now + 5 * T + 8;
    assert!(w.check::<Shared>(99, later, 1));
    let taken = w.words()[0];
    assert!(w.layout.is_live_of(taken, w.layout.tag(99)) && taken & w.layout.mask > version);
}

//! What `settle` does with what it finds in a set: slots chosen, claims dropped or scanned twice, swaps lost, and the
//! answers of a full set. The tests put words into a set of their own; rivals act inside the swaps.

use std::boxed::Box;
use std::cell::Cell;

use crate::algorithms::{Kind, Op};
use crate::answer::{Tracking, Verdict};
use crate::limit::LimitSpec;
use crate::sync::access::sealed::Sealed;
use crate::sync::access::{Access, Ways};
use crate::sync::{AtomicU64, Ordering, MAX_LOST};
use crate::table::handle::Table;
use crate::table::layout::image::Line;
use crate::table::layout::options::TableOptions;
use crate::table::layout::policy::FullPolicy;
use crate::table::layout::word::Tag;
use crate::table::set::attempt::{Ask, Done, Met};
use crate::table::set::set::Seen;

/// Q-units are ticks; a unit costs T of them.
const NOW: u64 = 1 << 30;
const T: u64 = 4096;
const X: u64 = 1;
const HOME: usize = 2;

std::thread_local! {
    static FENCES: Cell<u32> = const { Cell::new(0) };
    static LOST: Cell<u32> = const { Cell::new(0) };
    /// Whether every swap is lost, to a rival that moves the word on.
    static LOSE: Cell<bool> = const { Cell::new(false) };
    /// The word to which the next swap is lost, if it is not 0.
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

enum Rivals {}

impl Sealed for Rivals {}

impl Access for Rivals {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        // ORDERING: Relaxed here and below; one thread.
        assert_eq!(slot.load(Ordering::Relaxed), old, "a swap of what is not there");
        let taken = TAKEN.replace(0);
        let word = match () {
            () if taken != 0 => taken,
            () if LOSE.get() => old.wrapping_add(2),
            () => new,
        };
        slot.store(word, Ordering::Relaxed);
        if word == new {
            return Ok(());
        }
        LOST.set(LOST.get() + 1);
        Err(word)
    }

    fn fence() {
        FENCES.set(FENCES.get() + 1);
    }
}

/// A table of one set.
struct World {
    memory: &'static [Line; 4],
    table: Table<'static, Rivals>,
    policy: FullPolicy,
    spec: LimitSpec,
}

impl World {
    fn new(policy: FullPolicy) -> World {
        let spec = LimitSpec::new(1, T, 64).penalty(2);
        let memory: &'static [Line; 4] = Box::leak(Box::new([Line::EMPTY; 4]));
        let options = TableOptions::new(spec).caller_hash().resolution(0).policy(policy);
        let table = Table::init_as(memory, &options).unwrap();
        FENCES.set(0);
        LOST.set(0);
        LOSE.set(false);
        World { memory, table, policy, spec }
    }

    /// The slot at a position in search order.
    fn slot(&self, at: usize) -> &AtomicU64 {
        &self.memory[HOME + at / 8].words[at % 8]
    }

    fn word(&self, at: usize) -> u64 {
        self.slot(at).load(Ordering::Relaxed)
    }

    fn put(&self, at: usize, word: u64) {
        self.slot(at).store(word, Ordering::Relaxed);
    }

    fn live(&self, tag: u64, tat: u64) -> u64 {
        let layout = &self.table.geometry.layout;
        layout.live(layout.tag(tag), tat)
    }

    /// A claim on an EMPTY slot, `later` versions above the first.
    fn claim(&self, tag: u64, later: u64) -> u64 {
        let layout = &self.table.geometry.layout;
        layout.claim_of_reusable(layout.tag(tag), 0, NOW) + 2 * later
    }

    /// Fills every slot with a stranger that still owes a unit.
    fn fill(&self) {
        (0..16).for_each(|at| self.put(at, self.live(100 + at as u64, NOW + T)));
    }

    fn settle(&self, cost: u64, met: Met) -> Done {
        let limit = self.table.limit(&self.spec).unwrap();
        let op = Op::new(&limit.0, Kind::Check, cost, 0);
        let (set, tag) = self.table.place(X);
        assert_eq!((set.line, tag), (0, Tag(self.table.geometry.layout.one)));
        let layout = &self.table.geometry.layout;
        let ask = Ask { layout, policy: self.policy, tag, now_q: NOW, op: &op, sample: false, kept: 0 };
        set.settle(Ways::of::<Rivals>(), ask.any(), met)
    }
}

fn verdict(done: &Done) -> Option<Verdict> {
    done.answer.as_ref().map(|answer| answer.verdict)
}

fn own(at: usize, word: u64) -> Met {
    Met { looks: 1, lost: 0, own: Some(Seen { at, word }) }
}

#[test]
fn an_insert_takes_the_first_empty_slot_else_the_one_that_has_been_expired_longest() {
    for oldest in [0, 4, 11, 15] {
        let w = World::new(FullPolicy::Admit);
        (0..16).for_each(|at| w.put(at, w.live(100 + at as u64, NOW - 1000 - at as u64 % 3)));
        w.put(oldest, w.live(99, NOW - 5000));
        let done = w.settle(1, Met::default());
        assert_eq!((done.inserted, done.slot as usize), (true, oldest));
        w.put(oldest, w.live(99, NOW - 5000));
        for empty in [13, 9] {
            w.put(empty, 0);
        }
        let done = w.settle(1, Met::default());
        assert_eq!((done.inserted, done.slot), (true, 9), "the oldest is {oldest}");
    }
}

#[test]
fn an_insert_that_is_alone_takes_the_same_slot() {
    for (oldest, empty) in [(0, 9), (4, 13), (11, 2), (15, 8)] {
        let w = World::new(FullPolicy::Admit);
        let limit = w.table.limit(&w.spec).unwrap();
        (0..16).for_each(|at| w.put(at, w.live(100 + at as u64, NOW - 1000)));
        w.put(oldest, w.live(99, NOW - 5000));
        assert!(w.table.check_hash(&limit, NOW, X, 1).unwrap().passes());
        assert_eq!(w.word(oldest), w.live(X, NOW + T), "the oldest is {oldest}");
        w.put(oldest, w.live(99, NOW - 5000));
        w.put(empty, 0);
        assert!(w.table.check_hash(&limit, NOW, X, 1).unwrap().passes());
        let there: std::vec::Vec<usize> = (0..16).filter(|at| w.word(*at) == w.live(X, NOW + T)).collect();
        assert_eq!(there, [empty], "the oldest is {oldest}");
    }
}

#[test]
fn of_equal_debts_the_first_in_search_order_is_inherited() {
    let w = World::new(FullPolicy::Inherit);
    w.fill();
    let done = w.settle(1, Met::default());
    assert_eq!((done.inserted, done.slot, done.tracking), (true, 0, Tracking::Inherited));
    w.fill();
    w.put(6, w.live(50, NOW + T - 1));
    assert_eq!(w.settle(1, Met::default()).slot, 6, "the smallest debt");
}

#[test]
fn a_claim_of_its_own_is_dropped_where_the_key_is_found_live_or_refused_or_contended() {
    let w = World::new(FullPolicy::Inherit);
    let layout = w.table.geometry.layout;
    w.put(5, w.live(X, NOW + T));
    w.put(3, w.claim(X, 0));
    let done = w.settle(1, own(3, w.word(3)));
    assert_eq!((verdict(&done), done.slot, done.inserted), (Some(Verdict::Conforming), 5, false));
    assert!(layout.is_empty(w.word(3)) && w.word(5) == w.live(X, NOW + 2 * T));

    // A rival's lower claim, on a debt that leaves no room: found twice, then refused. No penalty is stored there.
    let w = World::new(FullPolicy::Inherit);
    w.put(1, layout.claim_of_debt(layout.tag(X), w.live(100, NOW + 64 * T)));
    w.put(3, w.claim(X, 0));
    let before = w.word(1);
    let done = w.settle(1, own(3, w.word(3)));
    assert_eq!((verdict(&done), done.inserted), (Some(Verdict::NonConforming), false));
    assert_eq!((done.tracking, w.word(1)), (Tracking::Inherited, before));
    assert!(layout.is_empty(w.word(3)));

    let w = World::new(FullPolicy::Inherit);
    w.put(3, w.claim(X, 0));
    let done = w.settle(1, Met { looks: 1, lost: MAX_LOST, own: own(3, w.word(3)).own });
    assert!(verdict(&done).is_none() && layout.is_empty(w.word(3)));
}

#[test]
fn a_claim_is_committed_where_two_looks_with_a_fence_between_saw_it_unchanged() {
    // Its own claim, seen when it was placed: one fence and one scan.
    let w = World::new(FullPolicy::Admit);
    w.put(3, w.claim(X, 0));
    assert!(w.settle(1, own(3, w.word(3))).inserted);
    assert_eq!(FENCES.get(), 1);
    // Another claim in the same slot, or the same claim in another slot: one more scan.
    for (met, found) in [((3, 1), (3, 0)), ((4, 0), (3, 0))] {
        let w = World::new(FullPolicy::Admit);
        w.put(found.0, w.claim(X, found.1));
        let done = w.settle(1, own(met.0, w.claim(X, met.1)));
        assert!(done.inserted && done.slot == 3, "{met:?}");
        assert_eq!(FENCES.get(), 2, "{met:?}");
    }
    // The first scan of a request has nothing that it must follow.
    let w = World::new(FullPolicy::Admit);
    w.put(3, w.claim(X, 0));
    assert!(w.settle(1, Met::default()).inserted);
    assert_eq!(FENCES.get(), 1);
}

#[test]
fn an_insert_gives_up_after_so_many_lost_swaps() {
    // Each claim loses its swap, or each commit does.
    for placed in [false, true] {
        let w = World::new(FullPolicy::Admit);
        if placed {
            w.put(3, w.claim(X, 0));
        }
        LOSE.set(true);
        let done = w.settle(1, Met::default());
        assert!(verdict(&done).is_none(), "placed {placed}");
        assert_eq!(LOST.get(), MAX_LOST, "placed {placed}");
    }
}

#[test]
fn a_slot_that_a_stranger_took_meanwhile_is_not_charged() {
    let w = World::new(FullPolicy::Admit);
    w.put(0, w.live(X, NOW + T));
    let stranger = w.live(100, NOW + T);
    TAKEN.set(stranger);
    let done = w.settle(1, Met::default());
    assert_eq!((verdict(&done), done.inserted, done.slot), (Some(Verdict::Conforming), true, 1));
    assert_eq!(w.word(0), stranger);
    // A slot of its own key that was charged meanwhile is charged again.
    let w = World::new(FullPolicy::Admit);
    w.put(0, w.live(X, NOW + T));
    TAKEN.set(w.live(X, NOW + 3 * T));
    let done = w.settle(1, Met::default());
    assert_eq!((done.inserted, w.word(0)), (false, w.live(X, NOW + 4 * T)));
}

#[test]
fn a_look_at_an_absent_key_is_answered_by_no_policy() {
    for policy in [FullPolicy::Admit, FullPolicy::Deny, FullPolicy::Inherit] {
        let w = World::new(policy);
        w.fill();
        let done = w.settle(0, Met::default());
        assert_eq!((verdict(&done), done.tracking), (Some(Verdict::Conforming), Tracking::Tracked));
        assert_eq!(w.word(0), w.live(100, NOW + T), "{policy:?}");
    }
}

#[test]
fn a_set_of_claims_or_tombstones_is_answered_by_the_policy_or_not_at_all() {
    use FullPolicy::{Admit, Deny, Inherit};
    let claims =
        [(Admit, Some(Verdict::Conforming), 0), (Deny, Some(Verdict::NonConforming), 1), (Inherit, None, 0)];
    for (policy, expected, wait) in claims {
        let w = World::new(policy);
        (0..16).for_each(|at| w.put(at, w.claim(100 + at as u64, 0)));
        let done = w.settle(1, Met::default());
        assert_eq!(verdict(&done), expected, "{policy:?}");
        let given = done.answer.map_or((0, 0), |answer| (answer.stored, answer.wait));
        assert_eq!(given, (0, wait), "{policy:?}: nothing is stored, so nothing can be given back");
    }
    // The request waits for words that a reset left.
    let w = World::new(Inherit);
    let layout = w.table.geometry.layout;
    (0..16).for_each(|at| w.put(at, layout.tombstone(w.live(9, NOW + T * (1 + at as u64)))));
    let done = w.settle(1, Met::default());
    assert_eq!(verdict(&done), Some(Verdict::NonConforming));
    assert_eq!(done.answer.map(|answer| answer.wait), Some(layout.tombstone_lead(w.word(0), NOW)));
}

/// By hash and clock together: of many keys at one instant, and of one key at many instants, some are sampled, not all.
#[test]
fn one_request_in_sixteen_takes_a_slot_of_a_sampled_table() {
    use crate::sync::Shared;
    use crate::table::calls::full_answer::Request;
    let spec = LimitSpec::new(1, 1 << 24, 64);
    let options = TableOptions::new(spec).caller_hash().resolution(0).policy(FullPolicy::Sampled);
    let memory: &'static [Line; 4] = Box::leak(Box::new([Line::EMPTY; 4]));
    let table = Table::<Shared>::init_as(memory, &options).unwrap();
    let limit = table.limit(&spec).unwrap();
    let taken = |hash: u64, now: u64| {
        let request = Request { limit: &limit, now, cost: 1, room: 0 };
        table.check_ex(&request, hash, None).unwrap().tracking == Tracking::Forgiven
    };
    let fill = |now: u64| {
        let tags = &table.geometry.layout;
        for (at, slot) in memory[HOME..].iter().flat_map(|line| &line.words).enumerate() {
            slot.store(tags.live(tags.tag(1 << 19 | at as u64), now + (32 << 24)), Ordering::Relaxed);
        }
    };
    // The keys have the same low bits. The clock has none or all of the bits in which the keys differ.
    for now in [1 << 30, (1 << 30) + 0xf_ffff] {
        fill(now);
        let count = (1..4096).filter(|key| taken(key << 4 | 5, now)).count();
        assert!((150..400).contains(&count), "{count} of 4095 keys at {now}");
    }
    fill(1 << 30);
    let count = (0..4096).filter(|tick| taken(1 << 18 | *tick, (1 << 30) + 16 * tick)).count();
    assert!((150..400).contains(&count), "{count} at 4096 instants");
}

//! Eight threads on one set: inserts, bursts, sweeps, attaches, refunds, saves and migrations at once, by different
//! clocks.
//!
//! Loom and the explorer run every schedule of few calls, with the plain searches. Here many calls and the vector
//! searches run on real threads. Each thread may yield its processor before a swap and at a fence, by its own random
//! numbers, so that two cores are enough for many schedules. When all have ended, there must be one LIVE word a key and
//! no claim, no key admitted above its burst, and in its word what was admitted minus what was given back. The same
//! holds for what a save or a migration made meanwhile, except for later charges. Worlds with weakened swaps must fail.
//!
//! TATCELL_SCHEDULES is the number of rounds of a world.

use std::boxed::Box;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize as Count, Ordering as Plain};
use std::sync::{Barrier, Mutex};
use std::vec::Vec;

use crate::limit::LimitSpec;
use crate::sync::access::sealed::Sealed;
use crate::sync::access::{Access, Shared};
use crate::sync::{AtomicU64, Ordering};
use crate::table::burst::call::{Burst, NextBurst};
use crate::table::burst::scalar::nothing;
use crate::table::calls::full_answer::Request;
use crate::table::counters::Counters;
use crate::table::handle::Table;
use crate::table::layout::image::Line;
use crate::table::layout::options::{AttachOptions, TableOptions};
use crate::table::layout::policy::FullPolicy;
use crate::table::set::search::Base;

const T: u64 = 4096;
const NOW: u64 = 1 << 30;
/// The hashes of the keys: tags of the set. The third key has the other line as its home.
const X: u64 = 1;
const Y: u64 = 2;
const Z: u64 = 1 << 63 | 3;
const KEYS: [u64; 3] = [X, Y, Z];
const SEED: u64 = 20_261_122;

std::thread_local! {
    /// The random number of a thread that decides whether it yields; 0: it never does.
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// Lets another thread run, now and then.
fn may_yield() {
    let x = DRAWN.get();
    // A xorshift, which keeps 0 at 0.
    let x = x ^ x << 13;
    let x = x ^ x >> 7;
    let x = x ^ x << 17;
    DRAWN.set(x);
    if x % 4 == 1 {
        std::thread::yield_now();
    }
}

/// The shipped swaps, with a point before each at which another thread may run.
enum Yields {}

impl Sealed for Yields {}

impl Access for Yields {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        may_yield();
        Shared::replace(slot, old, new)
    }

    fn fence() {
        may_yield();
        Shared::fence();
    }
}

/// Stores where it should swap.
enum Stores {}

impl Sealed for Stores {}

impl Access for Stores {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, _old: u64, new: u64) -> Result<(), u64> {
        may_yield();
        // ORDERING: Relaxed; it is wrong whatever the ordering.
        slot.store(new, Ordering::Relaxed);
        Ok(())
    }

    fn fence() {
        may_yield();
    }
}

/// Leaves the higher claims of its key in place.
enum NoKill {}

impl Sealed for NoKill {}

impl Access for NoKill {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        const TAG: u64 = 0xf_ffff << 43;
        if old >> 63 == 1 && new & TAG == 0 {
            return Ok(());
        }
        Yields::replace(slot, old, new)
    }

    fn fence() {
        Yields::fence();
    }
}

fn spec() -> LimitSpec {
    LimitSpec::new(1, T, 2)
}

fn options(policy: FullPolicy) -> TableOptions {
    TableOptions::new(spec()).caller_hash().resolution(0).policy(policy).skew(16 * T)
}

/// Keys that ended without a slot because another one inherited it.
static TAKEN: Count = Count::new(0);

/// A table of one set, and what was admitted to its keys.
struct World {
    lines: [Line; 4],
    policy: FullPolicy,
    /// For each key, the units admitted and the ticks given back.
    sums: Mutex<[(u64, u64); 3]>,
}

type Call<'w> = Box<dyn FnOnce() + Send + 'w>;

impl World {
    /// Most slots hold claims that outlive the world; the others expire or are swept between the clocks.
    fn new<A: Access>(policy: FullPolicy) -> World {
        let lines = core::array::from_fn(|_| Line::new());
        let w = World { lines, policy, sums: Mutex::new([(0, 0); 3]) };
        let table: Table<'_, A> = Table::init_as(&w.lines, &options(policy)).expect("init");
        let layout = table.geometry.layout;
        let live = |key: u64, tat| layout.live(layout.tag(key), tat);
        let free =
            [(8, 0), (1, live(8, NOW + 1)), (0, live(9, NOW - layout.window - 5)), (9, live(7, NOW - 9))];
        // Under Inherit there are fewer slots than keys.
        let free = if policy == FullPolicy::Inherit { &free[..2] } else { &free };
        for number in 0..16 {
            let far = layout.claim_of_debt(layout.tag(0x100 + number as u64), NOW + layout.window - 3 * T);
            let word = free.iter().find(|(n, _)| *n == number).map_or(far, |(_, word)| *word);
            // ORDERING: Relaxed; before the threads start.
            w.lines[2 + number / 8].words[number % 8].store(word, Ordering::Relaxed);
        }
        w
    }

    fn table<A: Access>(&self) -> Table<'_, A> {
        Table::attach_as(&self.lines, &AttachOptions::new()).expect("attach")
    }

    fn admit(&self, key: u64, units: u64, back: u64) {
        let at = KEYS.iter().position(|k| *k == key).expect("a key");
        let mut sums = self.sums.lock().expect("nobody panics with it");
        sums[at] = (sums[at].0 + units, sums[at].1 + back);
    }

    fn check<A: Access>(&self, key: u64, now: u64) {
        let table = self.table::<A>();
        let limit = table.limit(&spec()).expect("limit");
        let passed = table.check_hash(&limit, now, key, 1).expect("its own limit").passes();
        self.admit(key, u64::from(passed), 0);
    }

    fn burst<A: Access>(&self, keys: &[u64], now: u64, counted: bool) {
        let table = self.table::<A>();
        let limit = table.limit(&spec()).expect("limit");
        let mut counters = Counters::default();
        let counted_by = counted.then_some(&mut counters);
        let pass = Burst::new(&limit, now, keys).check(&table, counted_by, NextBurst::NONE);
        let pass = pass.expect("its own limit");
        assert!(!counted || counters.conforming == u64::from(pass.count_ones()), "counted {counters:?}");
        for (i, key) in keys.iter().enumerate() {
            self.admit(*key, pass >> i & 1, 0);
        }
    }

    /// Decides a burst in groups: by the vector step that this processor has, or by the plain step of two lanes.
    fn groups<A: Access>(&self, keys: &[u64], now: u64) {
        let table = self.table::<A>();
        let limit = table.limit(&spec()).expect("limit");
        let burst = Burst::new(&limit, now, keys);
        let pass = match (keys.len() >= 8, table.wide.filter(|_| keys.len() % 2 == 0), table.half) {
            (true, Some(wide), _) => table.decide_groups::<_, 8>(wide, &burst, 0, None, nothing),
            (true, None, Some(half)) => table.decide_groups::<_, 8>(half, &burst, 0, None, nothing),
            _ => table.decide_groups::<Base, 2>(Base, &burst, 0, None, nothing),
        };
        for (i, key) in keys.iter().enumerate() {
            self.admit(*key, pass >> i & 1, 0);
        }
    }

    /// Makes a charge and gives it back at once.
    fn refund<A: Access>(&self, key: u64, now: u64) {
        let table = self.table::<A>();
        let limit = table.limit(&spec()).expect("limit");
        let request = Request { limit: &limit, now, cost: 1, room: 0 };
        let d = table.check_ex(&request, key, None).expect("its own limit");
        let back = table.refund(&limit, now, key, &d.permit).expect("its own limit").unwrap_or(0);
        self.admit(key, u64::from(d.passes()), back);
    }

    /// A save makes a table with each key once, and nothing that was never charged.
    fn save<A: Access>(&self, now: u64) {
        let table = self.table::<A>();
        let mut image = std::vec![0; table.image_words()];
        table.save(now, &mut image).expect("room for it");
        let to: [Line; 4] = core::array::from_fn(|_| Line::new());
        Table::<A>::restore_as(&to, &image, &AttachOptions::new(), 0).expect("restore");
        holds::<A>(&to, self.policy, None);
    }

    fn migrate<A: Access>(&self, now: u64) {
        let to: [Line; 6] = core::array::from_fn(|_| Line::new());
        let (new, _) = self.table::<A>().migrate_as::<A>(&to, &options(self.policy), now).expect("migrate");
        for key in KEYS {
            let (lives, lead) = lives(&to, &new, key);
            assert!(lives <= 1 && lead <= 2 * T + 64, "migrated: {lives} live words of one key, {lead} owed");
        }
    }

    /// The calls of eight threads.
    fn calls<A: Access>(&self) -> Vec<Call<'_>> {
        let call = |run: fn(&World)| Box::new(move || run(self)) as Call<'_>;
        std::vec![
            call(|w| (0..2).for_each(|_| w.check::<A>(X, NOW))),
            call(|w| {
                w.table::<A>().sweep(NOW + 10, 0, 16);
                w.check::<A>(X, NOW + 10);
            }),
            call(|w| {
                w.burst::<A>(&[X, Y, X, Z], NOW, false);
                w.groups::<A>(&[Y, X, Z, X], NOW + 1);
            }),
            call(|w| {
                w.groups::<A>(&[Z, X, Y, X, Z, Y, X, Y, Z], NOW);
                w.burst::<A>(&[Y, Z], NOW + 2, true);
            }),
            call(|w| (0..2).for_each(|_| w.refund::<A>(Y, NOW))),
            call(|w| {
                w.check::<A>(Z, NOW + 10);
                let _ = w.table::<A>().stats(NOW);
                w.check::<A>(Y, NOW + 3);
            }),
            call(|w| {
                w.save::<A>(NOW);
                w.check::<A>(Z, NOW);
            }),
            call(|w| {
                w.migrate::<A>(NOW);
                w.burst::<A>(&[Z, X], NOW + 10, true);
            }),
        ]
    }

    /// Checks what must hold when all have ended.
    fn check_end<A: Access>(&self) {
        let sums = *self.sums.lock().expect("nobody panics with it");
        holds::<A>(&self.lines, self.policy, Some(sums));
    }
}

/// Counts the live words of a key in a table, and sums what they owe.
fn lives<A: Access>(lines: &[Line], table: &Table<'_, A>, key: u64) -> (usize, u64) {
    let layout = table.geometry.layout;
    let (set, tag) = table.place(key);
    let _ = lines;
    // ORDERING: Relaxed; nobody changes them now.
    let words = set.home.iter().chain(set.next).map(|word| word.load(Ordering::Relaxed));
    let live = words.filter(|word| layout.is_live_of(*word, tag));
    live.fold((0, 0), |(n, lead), word| (n + 1, lead + layout.lead(word, NOW)))
}

fn holds<A: Access>(lines: &[Line; 4], policy: FullPolicy, sums: Option<[(u64, u64); 3]>) {
    let table: Table<'_, A> = Table::attach_as(lines, &AttachOptions::new()).expect("attach");
    let layout = table.geometry.layout;
    let inherits = table.policy() == FullPolicy::Inherit;
    for (i, key) in KEYS.into_iter().enumerate() {
        let (count, lead) = lives(lines, &table, key);
        assert!(count <= 1, "two live words of one key");
        assert!(lead <= 2 * T + 64, "a debt that nobody had: {lead}");
        let Some((admitted, back)) = sums.map(|sums| sums[i]) else { continue };
        if inherits {
            TAKEN.fetch_add(usize::from(count == 0 && admitted != 0), Plain::Relaxed);
            continue;
        }
        assert!(admitted * T <= 2 * T + back + 16, "admitted more than its burst: {admitted}, {back} back");
        // Clocks differ by up to 10 ticks, and the permit of an insert excludes its claim.
        assert!(lead + 16 + back >= admitted * T, "a charge was lost: {admitted}, {back} back, {lead} owed");
    }
    if let Some(sums) = sums.filter(|_| inherits) {
        let (admitted, back) = sums.iter().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        assert!(
            admitted * T <= 2 * (2 * T + 16) + back,
            "admitted more than two slots: {admitted}, {back} back"
        );
        let words = lines[2..].iter().flat_map(|line| &line.words);
        // ORDERING: Relaxed; nobody changes them now.
        let words = words.map(|word| word.load(Ordering::Relaxed));
        let debts = words.filter(|word| layout.is_live(*word) || layout.holds_debt(*word, NOW));
        let owed: u64 = debts.map(|word| layout.lead(word, NOW)).sum();
        assert!(
            owed + 16 + back >= admitted * T,
            "a debt was forgiven: {admitted}, {back} back, {owed} owed"
        );
    }
    let words = lines[2..].iter().flat_map(|line| &line.words);
    // ORDERING: Relaxed; nobody changes them now.
    let claims = words
        .map(|word| word.load(Ordering::Relaxed))
        .filter(|word| layout.is_claim(*word) && layout.tag_field(*word) >> layout.bits < 0x100);
    assert!(sums.is_none() || claims.count() == 0, "a claim was left behind under {policy:?}");
}

/// Returns how many rounds a world runs.
fn rounds(usual: u64) -> u64 {
    let Ok(asked) = std::env::var("TATCELL_SCHEDULES") else { return usual };
    let number = asked.parse::<f64>().ok().filter(|n| *n >= 20.0);
    number.unwrap_or_else(|| panic!("TATCELL_SCHEDULES={asked} is no number of rounds")) as u64
}

/// Runs rounds of the eight threads, each with its own random numbers.
fn run<A: Access>(policy: FullPolicy, rounds: u64) {
    for round in 0..rounds {
        let w = World::new::<A>(policy);
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for (i, call) in w.calls::<A>().into_iter().enumerate() {
                let start = &start;
                scope.spawn(move || {
                    DRAWN.set((SEED + round) << 3 | i as u64);
                    start.wait();
                    call();
                    DRAWN.set(0);
                });
            }
        });
        w.check_end::<A>();
    }
    std::println!("schedules: {rounds} rounds of 8 threads, {policy:?}");
}

#[test]
fn eight_threads_admit_no_key_above_its_burst() {
    run::<Yields>(FullPolicy::Deny, rounds(3_000));
}

#[test]
fn eight_threads_forgive_no_debt_that_is_inherited() {
    run::<Yields>(FullPolicy::Inherit, rounds(3_000));
    let taken = TAKEN.load(Plain::Relaxed);
    std::println!("schedules: {taken} keys lost their slot");
    assert!(taken > 100, "hardly a slot was taken over");
}

/// Checks that a weakened world fails, by a rule that the weakening breaks: which one depends on the schedule.
fn fails<A: Access>(broken: &[&str]) {
    let failed = std::panic::catch_unwind(|| run::<A>(FullPolicy::Deny, 100_000));
    let panic = failed.expect_err("the weakened world holds");
    let said = panic.downcast_ref::<std::string::String>().map_or("", |said| said.as_str());
    let said = panic.downcast_ref::<&str>().copied().unwrap_or(said);
    assert!(broken.iter().any(|rule| said.contains(rule)), "it failed by something else: {said}");
}

#[test]
fn stores_for_swaps_are_seen_by_eight_threads() {
    fails::<Stores>(&["admitted more than its burst", "a charge was lost", "two live words of one key"]);
}

#[test]
fn claims_that_are_left_are_seen_by_eight_threads() {
    fails::<NoKill>(&["a claim was left behind"]);
}

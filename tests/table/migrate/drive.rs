//! Keys that continue after a migration or a restore, each compared with its own exact bucket: no units are added.

use std::collections::HashMap;

use crate::common::oracle::Oracle;
use crate::common::{cases, memory, Rng};
use tatcell::{AttachOptions, FullPolicy, LimitSpec, Request, Table, TableOptions, Tracking};

/// 3 units in 1 000 003 ticks, 8 at once: no emission interval is a whole number of q-units.
const SPEC: LimitSpec = LimitSpec::new(3, 1_000_003, 8);
const T: u64 = 1_000_003 / 3;

fn exact() -> Oracle {
    Oracle::exact(3, 1_000_003, 8)
}

/// The keys of a world, each with its bucket.
struct World {
    buckets: Vec<(u64, Oracle)>,
    /// Keys that the policy let pass without a slot.
    lost: HashMap<u64, ()>,
    now: u64,
    passed: u64,
}

impl World {
    fn new(keys: u64, rng: &mut Rng) -> World {
        // Few tags once they are narrow, many while they are wide.
        let buckets =
            (0..keys).map(|_| rng.next() & !0xfff | rng.below(16)).map(|hash| (hash, exact())).collect();
        World { buckets, lost: HashMap::new(), now: 1 << 40, passed: 0 }
    }

    /// Random requests, most of them of the keys that are served last; time goes on `pace` a request.
    fn drive(&mut self, table: &Table<'_>, requests: u64, pace: u64, rng: &mut Rng) {
        let limit = table.limit(&SPEC).unwrap();
        for _ in 0..requests {
            self.now += rng.below(2 * pace);
            let i = rng.below(self.buckets.len() as u64) as usize;
            let (hash, bucket) = &mut self.buckets[i];
            let request = Request { limit: &limit, now: self.now, cost: rng.within(1, 8), room: 0 };
            let decision = table.check_ex(&request, *hash, None).unwrap();
            if decision.passes() && decision.tracking == Tracking::Untracked {
                self.lost.insert(*hash, ());
            }
            if !decision.passes() || self.lost.contains_key(hash) {
                continue;
            }
            self.passed += 1;
            let exact = bucket.check(self.now as u128, request.cost as u32, 0);
            assert_eq!(exact.verdict, 0, "{hash:x} mints at {}: {decision:?}", self.now);
        }
    }
}

/// Through six tables; with `any` of any size, else of a whole multiple of the one before.
fn chain(policy: impl Fn(&mut Rng) -> FullPolicy, load: u64, any: bool, resolutions: &[i8], rng: &mut Rng) {
    let mut lines = 2 * rng.within(1, 6) as usize;
    let mut world = World::new(lines as u64 * load, rng);
    let mut bits = 24;
    let options = |policy, bits, shift| {
        TableOptions::new(SPEC).caller_hash().policy(policy).tag_bits(bits).resolution(shift)
    };
    let mut shift = rng.pick(resolutions);
    let memories: Vec<_> = (0..6).map(|_| memory(2 + 12 * 243)).collect();
    let first = options(policy(rng), bits, shift);
    let mut table = Table::init(&memories[0][..lines + 2], &first).unwrap();
    for next in &memories[1..] {
        world.drive(&table, 400, 2 * T / world.buckets.len() as u64 * 3, rng);
        lines = if any { 2 * rng.within(1, 16) as usize } else { lines * rng.within(1, 3) as usize };
        bits = rng.within(12, bits as u64) as u32;
        shift = rng.pick(resolutions);
        let options = options(policy(rng), bits, shift);
        let (new, report) = table.migrate(&next[..lines + 2], &options, world.now).unwrap();
        assert!(any || report.dropped == 0, "{report:?}");
        assert_eq!(report.opened, 0);
        table = new;
    }
    world.drive(&table, 400, 3 * T / world.buckets.len() as u64, rng);
    assert!(world.passed > 100, "{} passed", world.passed);
}

#[test]
fn whole_multiples_mint_nothing_under_admit() {
    cases(60, |rng| chain(|_| FullPolicy::Admit, 3, false, &[0], rng));
}

#[test]
fn other_resolutions_mint_nothing() {
    cases(60, |rng| chain(|_| FullPolicy::Admit, 3, false, &[0, 2, -2, 4, -5], rng));
}

/// Even where debts are dropped: who was dropped inherits as much or more, or is denied until it has drained.
#[test]
fn any_size_mints_nothing_under_policies_that_mint_nothing() {
    for load in [6, 12, 30] {
        cases(40, |rng| chain(|_| FullPolicy::Inherit, load, true, &[0], rng));
        cases(40, |rng| chain(|_| FullPolicy::Deny, load, true, &[0], rng));
        let either = |rng: &mut Rng| rng.pick(&[FullPolicy::Inherit, FullPolicy::Deny]);
        cases(40, |rng| chain(either, load, true, &[0], rng));
    }
}

/// A table in units of 256 ticks floors its clock; the exact bucket on the clock of the new table did not.
#[test]
fn a_finer_clock_finds_no_more_than_the_exact_bucket_has() {
    let (old_lines, new_lines) = (memory(4), memory(4));
    let spec = LimitSpec::new(1, 1 << 20, 8);
    let options = |shift| TableOptions::new(spec).caller_hash().resolution(shift);
    let old = Table::init(&old_lines, &options(-8)).unwrap();
    let start = (1 << 40) + 255;
    assert!(old.check_hash(&old.limit(&spec).unwrap(), start, 7, 8).unwrap().passes());
    let (new, report) = old.migrate(&new_lines, &options(0), start + 45).unwrap();
    assert!(report.is_whole());
    let passes_at = |now| new.check_hash(&new.limit(&spec).unwrap(), now, 7, 1).unwrap().passes();
    assert!(!passes_at(start + (1 << 20) - 1), "a tick too early");
    assert!(passes_at(start + (1 << 20)));
}

/// When a unit passes again after the burst of 8 was taken at `start`, by an exact bucket of 2^20 ticks a unit.
const fn again(start: u64) -> u64 {
    start + (1 << 20)
}

/// A clock of whole ticks, then one of 32: what the debt is above whole q-units is not forgotten, wherever in a q-unit
/// it began and is moved.
#[test]
fn a_coarser_clock_finds_no_more_than_the_exact_bucket_has() {
    let spec = LimitSpec::new(1, 1 << 20, 8);
    let options = |shift| TableOptions::new(spec).caller_hash().resolution(shift);
    for (began, moved) in (0..32).flat_map(|began| [0, 1, 13, 31].map(|moved| (began, moved))) {
        let (old_lines, new_lines) = (memory(4), memory(4));
        let old = Table::init(&old_lines, &options(0)).unwrap();
        let start = (1 << 40) + began;
        assert!(old.check_hash(&old.limit(&spec).unwrap(), start, 7, 8).unwrap().passes());
        let (new, report) = old.migrate(&new_lines, &options(-5), (1 << 40) + 64 + moved).unwrap();
        assert!(report.is_whole());
        let passes_at = |now| new.check_hash(&new.limit(&spec).unwrap(), now, 7, 1).unwrap().passes();
        assert!(!passes_at(again(start) - 1), "a tick too early: began at {began}, moved at {moved}");
        assert!(passes_at(again(start) + 64), "began at {began}, moved at {moved}");
    }
}

/// A clock of 32 ticks that jumps by any number of ticks: the restored debt is over no tick before the saved one was.
#[test]
fn a_restored_debt_passes_no_tick_before_the_exact_bucket() {
    let spec = LimitSpec::new(1, 1 << 20, 8);
    let options = TableOptions::new(spec).caller_hash().resolution(-5);
    for offset in (-70..70).chain([-(1 << 39) + 5, (1 << 50) + 21]) {
        let (old_lines, new_lines) = (memory(4), memory(4));
        let old = Table::init(&old_lines, &options).unwrap();
        let start = 1u64 << 40;
        assert!(old.check_hash(&old.limit(&spec).unwrap(), start, 7, 8).unwrap().passes());
        let mut image = vec![0; old.image_words()];
        old.save(start + 64, &mut image).unwrap();
        let new = Table::restore(&new_lines, &image, &AttachOptions::new(), offset).unwrap();
        let passes_at = |now: u64| {
            let now = now.wrapping_add(offset as u64);
            new.check_hash(&new.limit(&spec).unwrap(), now, 7, 1).unwrap().passes()
        };
        assert!(!passes_at(again(start) - 1), "a tick too early: offset {offset}");
        assert!(passes_at(again(start) + 32), "offset {offset}");
    }
}

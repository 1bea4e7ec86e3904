//! Groups against single calls: random bursts, with the plain step and with vectors, and cases that are rare in them.
//!
//! `TATCELL_BURSTS` is the number of random bursts in all. A run of 1e8 (`cargo test --release --lib --features std
//! groups_decide_count_and_store`, AMD EPYC of family 26, 2026-11-23) made 3.2e9 decisions without a difference, in 214
//! s of processor time.

use std::cell::RefCell;
use std::vec::Vec;

use super::*;
use crate::answer::{Decision, Tracking, Verdict};
use crate::limit::params::random;
use crate::limit::{LimitSpec, TableLimit};
use crate::sync::{Exclusive, Shared};
use crate::table::burst::call::NextBurst;
use crate::table::calls::full_answer::Request;
use crate::table::layout::image::lines_for;
use crate::table::layout::options::TableOptions;
use crate::table::layout::policy::FullPolicy;
use crate::table::set::search::Base;

const NOW: u64 = 1 << 40;
const T: u64 = 4_096;

fn memory() -> &'static mut [Line] {
    Vec::leak((0..lines_for(64)).map(|_| Line::new()).collect())
}

fn words<M: Access>(table: &Table<'_, M>) -> Vec<u64> {
    // ORDERING: Relaxed; one thread.
    table.slots.iter().flat_map(|line| &line.words).map(|word| word.load(Ordering::Relaxed)).collect()
}

/// How a burst is decided. Each way must call `ahead` for every request once, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the plain step, with two lanes or eight.
    Two,
    Eight,
    /// By a vector step, if this processor has it.
    Widest,
    Half,
    /// By the public call, which chooses; the same without AVX-512.
    Usual,
    UsualHalf,
}

const WAYS: [Way; 6] = [Way::Two, Way::Eight, Way::Widest, Way::Half, Way::Usual, Way::UsualHalf];

impl Way {
    fn decide<M: Access>(self, table: &Table<'_, M>, burst: &Burst<'_>, c: &mut Option<Counters>) -> u64 {
        let asked = RefCell::new(Vec::new());
        let ahead = |_: &Table<'_, M>, i, _| asked.borrow_mut().push(i);
        // The scalar loop decides the first few, as it does in a shared table.
        let from = if matches!(self, Way::Usual | Way::UsualHalf) { 0 } else { burst.hashes.len() % 5 };
        let first = Burst { hashes: &burst.hashes[..from], ..*burst };
        let pass = table.decide_from(&first, 0, usize::MAX, c.as_mut(), ahead).pass;
        let counters = c.as_mut();
        let groups = match (self, table.wide, table.half) {
            (Way::Two, _, _) => table.decide_groups::<Base, 2>(Base, burst, from, counters, ahead),
            (Way::Widest, Some(wide), _) => {
                table.decide_groups::<_, LANES>(wide, burst, from, counters, ahead)
            }
            (Way::Half, _, Some(half)) => table.decide_groups::<_, LANES>(half, burst, from, counters, ahead),
            (Way::Eight | Way::Widest | Way::Half, _, _) => {
                table.decide_groups::<Base, 8>(Base, burst, from, counters, ahead)
            }
            (Way::Usual | Way::UsualHalf, _, _) => {
                return burst.check(table, counters, NextBurst::NONE).expect("its own limit")
            }
        };
        assert!(
            asked.into_inner().into_iter().flatten().eq(0..burst.hashes.len()),
            "not each was asked ahead once"
        );
        pass | groups
    }

    /// The index in `Seen::by_step` of the step that is used. `None` if the public call chooses.
    fn step<M: Access>(self, table: &Table<'_, M>) -> Option<usize> {
        match self {
            Way::Usual | Way::UsualHalf => None,
            Way::Half if table.half.is_some() => Some(1),
            Way::Widest if table.wide.is_some() => Some(2),
            _ => Some(0),
        }
    }
}

/// Asks the standard library which steps this processor has. If the table did not find one of them, that is a defect.
#[cfg(tatcell_sse2)]
fn steps_here() -> [bool; 3] {
    use std::arch::is_x86_feature_detected as has;
    let wide = has!("avx512f") && has!("avx512dq") && has!("avx512bw") && has!("avx512vl");
    [true, has!("avx2"), wide && has!("avx512vbmi2")]
}

#[cfg(not(tatcell_sse2))]
fn steps_here() -> [bool; 3] {
    [true, false, false]
}

/// Prints which steps this processor lacks, so that nothing tests them here.
fn say_what_is_absent(test: &str) {
    for (here, name) in steps_here().into_iter().zip(["plain", "avx2", "avx512"]) {
        if !here {
            std::println!("SKIP {test}_by_{name}: this processor has no such step; run it on one that has");
        }
    }
}

/// A table with one configuration, and a second one for single calls.
struct World<M: Access> {
    table: Table<'static, M>,
    singles: Table<'static, M>,
    limit: TableLimit,
    way: Way,
    counters: [Option<Counters>; 2],
    seen: Seen,
    what: std::string::String,
}

type Init<M> = fn(&'static mut [Line], &TableOptions) -> Table<'static, M>;

impl<M: Access> World<M> {
    fn new(init: Init<M>, options: TableOptions, spec: &LimitSpec, way: Way, counted: bool) -> World<M> {
        let (mut table, singles) = (init(memory(), &options), init(memory(), &options));
        if way == Way::UsualHalf {
            table.wide = None;
        }
        table.at_once = counted;
        let limit = singles.limit(spec).expect("a limit");
        let counters = [counted.then(Counters::default); 2];
        let what = std::format!("{way:?} {:?} counted {counted} exclusive {}", options, M::EXCLUSIVE);
        World { table, singles, limit, way, counters, seen: Seen::default(), what }
    }

    /// The number of the key's slot in its set, if it has one.
    fn at(&self, hash: u64) -> Option<usize> {
        let (set, tag) = self.singles.place(hash);
        set.find(&self.singles.geometry.layout, tag).map(|(at, _, _)| at)
    }

    /// Decides a burst in both tables, compares the verdicts and returns them.
    fn burst(&mut self, now: u64, hashes: &[u64]) -> u64 {
        let had: Vec<Option<usize>> = hashes.iter().map(|&hash| self.at(hash)).collect();
        let (mut took, mut expected) = (false, 0u64);
        for (i, &hash) in hashes.iter().enumerate() {
            self.seen.behind += u64::from(took && had[i].is_some() && self.at(hash).is_none());
            let request = Request { limit: &self.limit, now, cost: 1, room: 0 };
            let counters = self.counters[0].as_mut();
            let Decision { verdict, tracking, .. } =
                self.singles.check_ex(&request, hash, counters).expect("its own limit");
            expected |= u64::from(verdict.passes()) << i;
            let (inherited, forgiven) = (tracking == Tracking::Inherited, tracking == Tracking::Forgiven);
            let takes = verdict == Verdict::Conforming && (inherited || forgiven);
            took |= takes;
            self.seen.inherited += u64::from(takes && inherited);
            self.seen.forgiven += u64::from(takes && forgiven);
        }
        // `last` is a hint, so any value must do.
        let last = [0, u64::MAX, now][(now % 3) as usize];
        let burst = Burst { last, ..Burst::new(&self.limit, now, hashes) };
        let pass = self.way.decide(&self.table, &burst, &mut self.counters[1]);
        assert_eq!(pass, expected, "verdicts of {hashes:x?} at {now}: {}", self.what);
        let seen = &mut self.seen;
        seen.passed += u64::from(pass.count_ones());
        seen.denied += hashes.len() as u64 - u64::from(pass.count_ones());
        seen.second += had.iter().flatten().filter(|&&at| at >= 8).count() as u64;
        seen.last += had.iter().flatten().filter(|&&at| at == 7).count() as u64;
        if let Some(step) = self.way.step(&self.table).filter(|_| hashes.len() >= 16) {
            seen.by_step[step] += 1;
        }
        pass
    }

    fn same(&self) {
        assert_eq!(words(&self.table), words(&self.singles), "{}", self.what);
        assert_eq!(self.counters[1], self.counters[0], "{}", self.what);
    }
}

/// What occurred in random bursts.
#[derive(Default, Debug)]
struct Seen {
    passed: u64,
    denied: u64,
    /// Requests whose key was in the second line; in the last word of a line.
    second: u64,
    last: u64,
    /// Counted requests that inserted their key; that passed above the soft limit.
    inserted: u64,
    soft: u64,
    /// Slots taken over, with the debt inherited or forgiven; requests whose key lost its slot to an earlier request.
    inherited: u64,
    forgiven: u64,
    behind: u64,
    /// Bursts of two groups or more by the plain step, by AVX2 and by AVX-512.
    by_step: [u64; 3],
}

impl Seen {
    fn add<M: Access>(&mut self, w: &World<M>) {
        let counters = w.counters[1].unwrap_or_default();
        self.passed += w.seen.passed;
        self.denied += w.seen.denied;
        self.second += w.seen.second;
        self.last += w.seen.last;
        self.inserted += counters.inserted;
        self.soft += counters.soft;
        self.inherited += w.seen.inherited;
        self.forgiven += w.seen.forgiven;
        self.behind += w.seen.behind;
        self.by_step = core::array::from_fn(|i| self.by_step[i] + w.seen.by_step[i]);
    }
}

fn play<M: Access>(init: Init<M>, seed: u64, bursts: u64, seen: &mut Seen) {
    let mut s = seed;
    let mut pick = |n: u64| random(&mut s) % n;
    let policies = [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled];
    let tag_bits = 12 + pick(13) as u32;
    let counted = pick(2) == 0;
    let way = WAYS[pick(6) as usize];
    let spec = LimitSpec::new(1, T, 1 + pick(6));
    // Groups do not count soft passes. The public call then decides one by one, but the other ways would not.
    let may_be_soft = !counted || matches!(way, Way::Usual | Way::UsualHalf);
    let spec = if pick(3) == 0 && may_be_soft { spec.soft(1) } else { spec };
    let options = TableOptions::new(spec).caller_hash().tag_bits(tag_bits);
    let options = options.policy(policies[pick(4) as usize]);
    // Few keys that come often; as many keys as fit; more than fit.
    let keys = [3, 20, 45, 100][pick(4) as usize];
    let mut w = World::new(init, options, &spec, way, counted);
    let (salt, mut now) = (pick(u64::MAX), NOW + pick(1 << 30));
    for round in 0..bursts {
        let steps = [0, 1, 300, 20_000, 1 << 22];
        let step = steps[pick(5) as usize];
        now += pick(1 + step);
        let n = pick(65) as usize;
        let hashes: Vec<u64> = (0..n).map(|_| random(&mut (salt ^ pick(keys)))).collect();
        w.burst(now, &hashes);
        if round % 64 == 63 {
            w.same();
        }
    }
    w.same();
    seen.add(&w);
}

fn shared(lines: &'static mut [Line], options: &TableOptions) -> Table<'static, Shared> {
    Table::init(lines, options).expect("a table")
}

fn owned(lines: &'static mut [Line], options: &TableOptions) -> Table<'static, Exclusive> {
    Table::init_exclusive(lines, options).expect("a table")
}

#[test]
fn groups_decide_count_and_store_as_single_calls_do() {
    const EACH: u64 = 250;
    let asked = std::env::var("TATCELL_BURSTS").ok().and_then(|n| n.parse::<f64>().ok());
    let first: u64 = std::env::var("TATCELL_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(20_261_122);
    let worlds = asked.map_or(400, |n| n as u64 / EACH).max(8);
    let mut seen = Seen::default();
    for i in 0..worlds {
        // Each world has a seed of its own, which is enough to repeat it.
        let seed = first.wrapping_add(i);
        match i % 3 {
            0 => play(owned, seed, EACH, &mut seen),
            _ => play(shared, seed, EACH, &mut seen),
        }
    }
    std::println!("bursts: {} of seeds from {first}, {seen:?}", worlds * EACH);
    let Seen { passed, denied, second, last, inserted, soft, inherited, forgiven, behind, by_step } = seen;
    let all = [passed, denied, second, last, inserted, soft, inherited, forgiven, behind];
    assert!(all.iter().all(|&n| n > 100), "not all came up: {seen:?}");
    // Each step that this processor has was used, and no other.
    assert_eq!(by_step.map(|n| n > 100), steps_here(), "steps: {seen:?}");
    say_what_is_absent("groups_decide_count_and_store_as_single_calls_do");
}

/// A hash with this home line and tag.
fn hash(line: u64, lines: u64, tag: u64) -> u64 {
    ((line << 32).div_ceil(lines) << 32) + tag
}

/// Fills both lines of set 0 with keys whose tags start at 0x100. Key i owes `owe(i)` units.
fn fill<M: Access>(w: &mut World<M>, owe: impl Fn(u64) -> u32) -> Vec<u64> {
    let lines = w.table.slots.len() as u64;
    let keys: Vec<u64> = (0..16).map(|i| hash(0, lines, 0x100 + i)).collect();
    for (i, &key) in keys.iter().enumerate() {
        for _ in 0..owe(i as u64) {
            w.burst(NOW, &[key]);
        }
    }
    w.same();
    keys
}

/// An insert by an earlier lane takes over the slot of a later key, after the later lane was decoded as denied or as
/// passing.
#[test]
fn a_lane_behind_an_insert_is_decided_anew() {
    let spec = LimitSpec::new(1, T, 2);
    for (way, all_denied) in WAYS.into_iter().flat_map(|way| [(way, false), (way, true)]) {
        for policy in [FullPolicy::Inherit, FullPolicy::Sampled, FullPolicy::Admit, FullPolicy::Deny] {
            let mut took = 0;
            for tag in 0..64 {
                let options = TableOptions::new(spec).caller_hash().policy(policy).resolution(0);
                let mut w = World::new(shared, options, &spec, way, true);
                let keys = fill(&mut w, |i| if all_denied || i % 8 != 1 { 2 } else { 1 });
                let before = w.counters[0].map_or(0, |counters| counters.inserted);
                let new = hash(0, w.table.slots.len() as u64, 0x1000 + tag);
                // The new key comes after the requests that no group decides, in each lane of a group in turn.
                let burst: Vec<u64> = [&keys[..6 + tag as usize % 9], &[new], &keys, &keys].concat();
                w.burst(NOW, &burst);
                w.same();
                took += w.counters[0].map_or(0, |counters| counters.inserted) - before;
            }
            // If all are denied, a key that inherits a debt is denied too, so it takes no slot over.
            let takes = match policy {
                FullPolicy::Inherit => !all_denied,
                FullPolicy::Sampled => true,
                _ => false,
            };
            assert_eq!(took > 0, takes, "{way:?} {policy:?}: {took} took a slot over");
        }
    }
}

/// One key many times: each lane loses its swap to the lane before it, and the last lanes are denied.
#[test]
fn one_key_in_all_lanes_is_charged_up_to_its_burst() {
    let spec = LimitSpec::new(1, T, 11);
    for way in WAYS {
        let mut w = World::new(owned, TableOptions::new(spec).caller_hash(), &spec, way, true);
        assert_eq!(w.burst(NOW, &[5; 64]), (1 << 11) - 1, "{way:?}: new");
        assert_eq!(w.burst(NOW + 7 * T, &[5; 40]), (1 << 7) - 1, "{way:?}: known");
        let mut w = World::new(shared, TableOptions::new(spec).caller_hash(), &spec, way, true);
        assert_eq!(w.burst(NOW, &[5; 64]), (1 << 11) - 1, "{way:?}: new");
        assert_eq!(w.burst(NOW + 7 * T, &[5; 40]), (1 << 7) - 1, "{way:?}: known");
        w.same();
    }
}

/// Keys in every word of both lines, including the last word of each, in one group and the next.
#[test]
fn each_word_of_a_set_is_found() {
    let spec = LimitSpec::new(1, T, 3);
    for way in WAYS {
        let options = TableOptions::new(spec).caller_hash().policy(FullPolicy::Deny);
        let mut w = World::new(shared, options, &spec, way, true);
        let keys = fill(&mut w, |i| 1 + i as u32 % 3);
        let (pass, expected) =
            (w.burst(NOW, &keys), (0..16).fold(0, |bits, i| bits | u64::from(i % 3 != 2) << i));
        assert_eq!(pass, expected, "{way:?}");
        // None of these keys is there: the last word, which always counts as a match, must not be taken for one.
        let lines = w.table.slots.len() as u64;
        let others: Vec<u64> = (0..32).map(|i| hash(0, lines, 0x2000 + i)).collect();
        assert_eq!(w.burst(NOW, &others), 0, "{way:?}");
        w.same();
    }
}

/// Each vector step that this processor has against the plain one, array by array, for words of every kind.
#[cfg(tatcell_sse2)]
#[test]
fn vectors_place_search_and_decode_as_plain_code_does() {
    say_what_is_absent("vectors_place_search_and_decode_as_plain_code_does");
    let (mut s, mut missed) = (7, 0);
    for tag_bits in 12..=24 {
        let spec = LimitSpec::new(1, T, 5);
        let table = shared(memory(), &TableOptions::new(spec).caller_hash().tag_bits(tag_bits));
        let limit = table.limit(&spec).expect("a limit");
        assert_eq!(
            [true, table.half.is_some(), table.wide.is_some()],
            steps_here(),
            "other steps than there are"
        );
        for _ in 0..3_000 {
            let now = random(&mut s);
            let hashes: [u64; 8] = core::array::from_fn(|_| match random(&mut s) % 8 {
                0 => random(&mut s) << 32,
                _ => random(&mut s),
            });
            let burst = Burst::new(&limit, now, &hashes);
            let (rule, layout) = (table.rule(&burst), &table.geometry.layout);
            for slot in table.slots.iter().flat_map(|line| &line.words) {
                // Words of these keys and of others, near now and anywhere, claims and empty words.
                let tag = layout.tag(hashes[random(&mut s) as usize % 8]);
                let near = rule.now.wrapping_add(random(&mut s) % (8 * T)).wrapping_sub(T);
                let word = match random(&mut s) % 6 {
                    0 => random(&mut s),
                    1 => layout.live(tag, rule.now.wrapping_add(layout.past - random(&mut s) % 3)),
                    2 => layout.live(tag, near) | 1 << 63,
                    3 => near & layout.mask,
                    _ => layout.live(tag, near),
                };
                // ORDERING: Relaxed; one thread.
                slot.store(word, Ordering::Relaxed);
            }
            let plain = step_of(Base, &rule, &hashes);
            let wide = table.wide.map(|wide| step_of(wide, &rule, &hashes));
            let half = table.half.map(|half| step_of(half, &rule, &hashes));
            for (step, absent) in [wide, half].into_iter().flatten() {
                assert_eq!(step, plain.0, "{tag_bits} bits of tag, {hashes:x?} at {now}");
                assert_eq!(absent.or(plain.1), plain.1, "{tag_bits} bits of tag, {hashes:x?} at {now}");
            }
            missed += plain.1.map_or(0, u32::count_ones);
        }
    }
    assert!((1..13 * 3_000 * 8).contains(&missed), "{missed} keys were not in their home line");
}

/// What A, B and C store: tags, slot addresses, words, new words, live and pass. New words are 0 in lanes that do not
/// pass, because those are not swapped in. And which keys are not in their home line, if B says it.
#[cfg(tatcell_sse2)]
fn step_of<S: Step<8>>(step: S, rule: &Rule<'_>, hashes: &[u64; 8]) -> ([[u64; 8]; 6], Option<u32>) {
    let line = &rule.slots[0];
    let homes = &mut Homes([line; 8]);
    let mut side = Side { tags: [0; 8], slots: [&line.words[0]; 8] };
    let mut words = Words { old: [0; 8], new: [0; 8] };
    step.place(rule, homes, &mut side, hashes);
    let homes_at = homes.0.map(|home| core::ptr::from_ref(home) as u64);
    let absent = step.search(rule, homes, &mut side);
    let Decoded { live, pass } = step.decode(rule, &side, &mut words);
    let bits = |bits: u32| core::array::from_fn(|i| u64::from(bits >> i & 1));
    let new = core::array::from_fn(|i| if pass >> i & 1 == 1 { words.new[i] } else { 0 });
    let slots = side.slots.map(|slot| core::ptr::from_ref(slot) as u64);
    assert!(homes_at.iter().zip(&slots).all(|(home, slot)| (0..64).contains(&(slot - home))), "not its line");
    let absent = matches!(S::AHEAD, Which::Home).then_some(absent);
    ([side.tags, slots, words.old, new, bits(live), bits(pass)], absent)
}

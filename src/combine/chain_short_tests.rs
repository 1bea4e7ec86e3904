//! The short way against the long way: a world each, the same requests, and every answer and every word is the same.
//!
//! The short way makes all swaps before it inserts keys. So this asks the long way in that order: first the links that
//! have a word. Where the order decides nothing (the peek refuses), the links come in their own order.

use std::vec::Vec;

use super::*;
use crate::cell::Cell;
use crate::combine::Link;
use crate::limit::{Limit, LimitSpec, TableLimit};
use crate::sync::Ordering;
use crate::table::{Counters, ExclusiveTable, FullPolicy, Line, Table, TableOptions};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }
}

/// A link by number: of a cell, of a key of the shared table, of one of the exclusive table, or of an override.
#[derive(Clone, Copy, Debug)]
struct Ask {
    of: u64,
    key: u64,
    limit: usize,
    cost: u64,
    extra: u64,
}

struct World<'m> {
    cells: [Cell; 3],
    limits: Vec<Limit>,
    shared: Table<'m>,
    own: ExclusiveTable<'m>,
    keyed: Vec<TableLimit>,
    bans: &'m Table<'m>,
}

/// All that a chain answers.
type Told = (Decision, Vec<Decision>, Counters);

impl<'m> World<'m> {
    fn new(
        lines: &'m [Line],
        own: &'m mut [Line],
        specs: &[LimitSpec],
        options: TableOptions,
        policies: [FullPolicy; 2],
        bans: &'m Table<'m>,
    ) -> World<'m> {
        let shared = Table::init(lines, &options.policy(policies[0])).expect("a table");
        World {
            cells: [Cell::new(), Cell::new(), Cell::new()],
            limits: specs.iter().map(|spec| spec.build().expect("a limit")).collect(),
            keyed: specs.iter().map(|spec| shared.limit(spec).expect("a limit")).collect(),
            own: Table::init_exclusive(own, &options.policy(policies[1])).expect("a table"),
            shared,
            bans,
        }
    }

    fn chain(&self, asks: &[Ask]) -> Option<Chain<'_>> {
        let link = |&Ask { of, key, limit, cost, extra }: &Ask| {
            let link = match of {
                0 => Link::cell(&self.cells[key as usize % 3], &self.limits[limit], cost),
                1 => Link::hash(&self.shared, &self.keyed[limit], key, cost),
                2 => Link::hash(&self.own, &self.keyed[limit], key, cost),
                _ => Link::overrides(self.bans, key),
            };
            link.extra(extra)
        };
        Chain::new(&asks.iter().map(link).collect::<Vec<_>>()).ok()
    }

    fn is_known(&self, ask: &Ask) -> bool {
        match ask.of {
            0 | 3 => true,
            1 => self.shared.known(ask.key).is_some(),
            _ => self.own.known(ask.key).is_some(),
        }
    }

    fn words(&self) -> Vec<u64> {
        let lines = self.shared.slots.iter().chain(self.own.slots).flat_map(|line| &line.words);
        // ORDERING: Relaxed; one thread.
        let words = lines.map(|slot| slot.load(Ordering::Relaxed));
        self.cells.iter().map(Cell::word).chain(words).collect()
    }

    /// Decides the long way, with the links that have a word before those that have none.
    fn expected(&self, asks: &[Ask], now: u64) -> Option<Told> {
        let chain = self.chain(asks)?;
        if !chain.short
            || overriding(&chain, now, &[Seen::Absent; MOST]).is_some()
            || !chain.peek(now).passes()
        {
            return Some(long(&chain, now));
        }
        let (known, absent): (Vec<usize>, Vec<usize>) =
            (0..asks.len()).partition(|&i| self.is_known(&asks[i]));
        let order: Vec<usize> = known.into_iter().chain(absent).collect();
        let ordered: Vec<Ask> = order.iter().map(|&i| asks[i]).collect();
        let (_, each, Counters { inserted, .. }) = long(&self.chain(&ordered)?, now);
        let mut answers: Answers = [None; MAX_LINKS];
        order.iter().zip(each).for_each(|(&i, decision)| answers[i] = Some(decision));
        let (mut each, mut counters) = (Vec::new(), Counters::default());
        let bits = (1 << inserted) - 1; // as many, whichever links they are of
        let whole = chain.finish(&answers, bits, Some(&mut counters).into(), |_, told| each.push(*told));
        Some((whole, each, counters))
    }
}

fn told(chain: &Chain<'_>, now: u64) -> Told {
    let (mut each, mut counters) = (Vec::new(), Counters::default());
    let whole = chain.check_ex(now, Some(&mut counters), |_, decision| each.push(*decision));
    (whole, each, counters)
}

fn long(chain: &Chain<'_>, now: u64) -> Told {
    let mut chain = *chain;
    chain.short = false;
    told(&chain, now)
}

/// Returns a hash that shares no tag with that of another small number.
fn spread(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// How often each way was gone.
#[derive(Debug, Default)]
struct Ways {
    passed: u64,
    refused: u64,
    inserted: u64,
    late: u64,
    overridden: u64,
    long: u64,
}

/// Runs a world of its own: its limits, policy and keys come from the seed.
fn run(seed: u64, rounds: u64, ways: &mut Ways) {
    let mut random = Random(seed);
    let resolution = [0, 4, -4][random.below(3) as usize];
    let specs: Vec<LimitSpec> = (0..4)
        .map(|i| {
            let burst = 1 + random.below(12);
            let spec = LimitSpec::new(1 + random.below(5), 1 << 12, burst).resolution(resolution).max_debt(8);
            let spec = if random.below(3) == 0 { spec.soft(1 + random.below(burst)) } else { spec };
            // The last one is never plain.
            if i == 3 {
                spec.penalty(1)
            } else {
                spec
            }
        })
        .collect();
    let policies = [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled];
    // A charge of one table may have to be given back because the other refuses.
    let policy = [0, 1].map(|_| policies[random.below(4) as usize]);
    let fastest = LimitSpec::new(5, 1 << 12, 13).max_debt(8).penalty(1).resolution(resolution);
    let slowest = LimitSpec::new(1, 1 << 12, 13).max_debt(8).penalty(1).resolution(resolution);
    let options = TableOptions::new(fastest).slowest(slowest).caller_hash();
    let lines: [[Line; 6]; 2] = core::array::from_fn(|_| [const { Line::EMPTY }; 6]);
    let mut own: [[Line; 6]; 2] = core::array::from_fn(|_| [const { Line::EMPTY }; 6]);
    let [own_a, own_b] = &mut own;
    let banned: [Line; 18] = [const { Line::EMPTY }; 18];
    let bans = Table::init(&banned, &TableOptions::overrides(1 << 20).caller_hash()).expect("a table");
    let short = World::new(&lines[0], own_a, &specs, options, policy, &bans);
    let long = World::new(&lines[1], own_b, &specs, options, policy, &bans);
    // Few keys leave the sets room, many fill them, and do for long where time goes slowly. Some share set and tag.
    let (keys, steps) = (1 + random.below(160), if random.below(2) == 0 { 1 << 14 } else { 1 << 6 });
    let mut now = 1 << 40;
    for round in 0..rounds {
        now += [0, 0, 1, random.below(steps / 32), random.below(steps)][random.below(5) as usize];
        let at = if random.below(8) == 0 { now - random.below(1 << 10) } else { now };
        // Worlds of even seeds store no override.
        if seed % 2 == 1 && random.below(32) == 0 {
            let (key, until) = (spread(random.below(8)), at + 1 + random.below(steps) * 8);
            let set =
                if random.below(2) == 0 { bans.ban(at, key, until) } else { bans.exempt(at, key, until) };
            set.expect("room for eight");
        }
        let count = 1 + random.below(8).min(random.below(8));
        let plain = random.below(10) != 0;
        let asks: Vec<Ask> = (0..count)
            .map(|_| {
                let (of, key) = (random.below(3), random.below(keys));
                // A key has one limit, as one cell has.
                let limit = if of == 0 { key % 3 } else { key } as usize % if plain { 3 } else { 4 };
                let hash = if key % 7 == 0 { key | 1 << 31 } else { spread(key) };
                let key = if of == 0 { key } else { hash };
                let extra = u64::from(!plain && random.below(3) == 0);
                if random.below(12) == 0 {
                    return Ask { of: 3, key: spread(random.below(8)), limit, cost: 0, extra: 0 };
                }
                Ask { of, key, limit, cost: 1 + random.below(4) - u64::from(!plain), extra }
            })
            .collect();
        let (Some(chain), Some(wanted)) = (short.chain(&asks), long.expected(&asks, at)) else {
            assert_eq!(short.chain(&asks).is_some(), long.chain(&asks).is_some());
            continue;
        };
        let mut all = [Seen::Absent; MAX_LINKS];
        let place = || std::format!("seed {seed}, round {round}, {policy:?}: {asks:?} at {at}");
        // One call in three of each form: with all that is told, the decision, the verdict.
        match random.below(3) {
            0 => assert_eq!(told(&chain, at), wanted, "{}", place()),
            1 => assert_eq!(chain.check(at), wanted.0, "{}", place()),
            _ if chain.short => {
                let verdict = match decide(&chain, at, &mut all) {
                    Short::Passes => Verdict::Conforming,
                    Short::Refused { .. } => Verdict::NonConforming,
                    Short::Late { .. } => {
                        ways.late += 1;
                        Verdict::NonConforming
                    }
                    Short::Overridden { exempts, .. } => {
                        ways.overridden += 1;
                        match exempts {
                            false => Verdict::NonConforming,
                            true => Verdict::Conforming,
                        }
                    }
                    Short::Long => panic!("nobody contends: {}", place()),
                };
                assert_eq!(verdict, wanted.0.verdict, "{}", place());
            }
            _ => assert_eq!(chain.verdict(at), wanted.0.verdict, "{}", place()),
        }
        assert_eq!(short.words(), long.words(), "{}", place());
        ways.inserted += wanted.2.inserted;
        match (chain.short, wanted.0.passes()) {
            (false, _) => ways.long += 1,
            (true, true) => ways.passed += 1,
            (true, false) => ways.refused += 1,
        }
    }
}

fn run_all(chains: u64) {
    let mut ways = Ways::default();
    for seed in 0..100 {
        run(seed, chains / 100, &mut ways);
    }
    std::println!("{ways:?}");
    let Ways { passed, refused, inserted, late, overridden, long } = ways;
    let least = passed.min(refused).min(inserted).min(long);
    assert!(least > chains / 50 && late.min(overridden) > chains / 1_000, "a way is hardly gone: {ways:?}");
}

#[test]
fn the_short_way_answers_and_stores_what_the_long_way_does() {
    run_all(100_000);
}

/// The long form: `cargo test --release --lib short_way_in_1e7_chains -- --ignored`.
#[test]
#[ignore = "minutes"]
fn the_short_way_in_1e7_chains_answers_and_stores_what_the_long_way_does() {
    run_all(10_000_000);
}

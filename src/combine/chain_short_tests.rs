//! Both ways of a chain against a reference: a world each, the same requests, and every answer and every word is the
//! same.
//!
//! The reference makes the single calls of the links in the order that is defined: first the links that have a word,
//! then the keys that have none, each of which takes over no slot of another link. For that it hides the words of the
//! other links from the call. Charges after the fact and reservations are compared with it, too.

use std::vec::Vec;

use super::*;
use crate::cell::Cell;
use crate::combine::chain::Charge;
use crate::combine::link::either;
use crate::combine::Link;
use crate::limit::params::random;
use crate::limit::{Limit, LimitSpec, TableLimit};
use crate::sync::{AtomicU64, Ordering};
use crate::table::{Counters, ExclusiveTable, FullPolicy, Line, Table, TableOptions};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        random(&mut self.0) % n
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

    fn words(&self) -> Vec<u64> {
        let lines = self.shared.slots.iter().chain(self.own.slots).flat_map(|line| &line.words);
        // ORDERING: Relaxed; one thread.
        let words = lines.map(|slot| slot.load(Ordering::Relaxed));
        self.cells.iter().map(Cell::word).chain(words).collect()
    }

    /// Charges by single calls, in the order of the links; nothing if the request is exempt.
    fn reference_charge(&self, asks: &[Ask], now: u64) -> Option<()> {
        let (chain, mut answers) = (self.chain(asks)?, [None; MAX_LINKS]);
        chain.look(now, &mut answers, false);
        let charges = &chain.charges[..chain.count];
        for extra in [false, true] {
            for (i, charge) in charges.iter().enumerate().filter(|_| !chain.is_exempt(&answers)) {
                let units = if extra { charge.extra } else { charge.cost };
                let hidden = hide_others(charges, i, now);
                if units != 0 || !extra {
                    let _ = charge.target.charge(now, units, None, 0);
                }
                // ORDERING: Relaxed; one thread.
                hidden.iter().for_each(|(slot, word)| slot.store(*word, Ordering::Relaxed));
            }
        }
        Some(())
    }

    /// Decides by single calls.
    fn reference(&self, asks: &[Ask], now: u64, reserves: bool) -> Option<Told> {
        let chain = self.chain(asks)?;
        let (mut answers, mut inserted): (Answers, u64) = ([None; MAX_LINKS], 0);
        chain.look(now, &mut answers, reserves);
        let all_pass = |answers: &Answers| answers.iter().flatten().all(Decision::passes);
        if all_pass(&answers) && !chain.is_exempt(&answers) {
            let charges = &chain.charges[..chain.count];
            let (known, absent): (Vec<usize>, Vec<usize>) =
                (0..chain.count).partition(|&i| match charges[i].target {
                    Target::Key(table, Some(_), hash) => either!(table, t => t.known(hash).is_some()),
                    _ => true,
                });
            for i in known.into_iter().chain(absent) {
                let hidden = hide_others(charges, i, now);
                let (target, mut made) = (charges[i].target, Counters::default());
                let answer = match reserves {
                    true => target.reserve(now, charges[i].cost, Some(&mut made), 0),
                    false => target.check(now, charges[i].cost, charges[i].room, Some(&mut made), 0),
                };
                // ORDERING: Relaxed; one thread.
                hidden.iter().for_each(|(slot, word)| slot.store(*word, Ordering::Relaxed));
                inserted |= made.inserted << i;
                answers[i] = Some(Decision { flags: answer.flags & !Decision::EXEMPT, ..answer });
                if !answer.passes() {
                    break;
                }
            }
            // A pass of the charges takes the extras, each beside hidden words of the others.
            if all_pass(&answers) {
                for i in 0..chain.count {
                    let hidden = hide_others(charges, i, now);
                    let mut alone = chain;
                    (0..chain.count)
                        .filter(|other| *other != i)
                        .for_each(|other| alone.charges[other].extra = 0);
                    alone.charge_extras(now, &mut answers);
                    // ORDERING: Relaxed; one thread.
                    hidden.iter().for_each(|(slot, word)| slot.store(*word, Ordering::Relaxed));
                }
            } else {
                for (charge, answer) in charges.iter().zip(&mut answers).rev() {
                    let Some(answer) = answer else { continue };
                    let permit = core::mem::replace(&mut answer.permit, Permit::NONE);
                    if permit == Permit::NONE || charge.target.refund(now, &permit) {
                        answer.units = 0;
                    }
                }
            }
        }
        let (mut each, mut counters) = (Vec::new(), Counters::default());
        let whole = chain.finish(&answers, inserted, Some(&mut counters).into(), |_, told| each.push(*told));
        Some((whole, each, counters))
    }
}

/// Makes claims of strangers of the words that hold a debt of another link than this one: no insert takes a claim
/// over. Returns the slots, and what was there.
fn hide_others<'a>(charges: &[Charge<'a>], i: usize, now: u64) -> Vec<(&'a AtomicU64, u64)> {
    let Target::Key(table, Some(_), own) = charges[i].target else { return Vec::new() };
    let (slots, geometry) = either!(table, t => (t.slots, &t.geometry));
    let (layout, now_q) = (&geometry.layout, geometry.clock_q(now));
    if matches!(geometry.policy, FullPolicy::Admit | FullPolicy::Deny) {
        return Vec::new();
    }
    let tags: Vec<_> = charges
        .iter()
        .filter_map(|charge| match charge.target {
            Target::Key(of, Some(_), hash) if of.is(&table) && hash != own => Some(layout.tag(hash)),
            _ => None,
        })
        .collect();
    let end = layout.live(layout.tag(own), now_q.wrapping_add(layout.window / 2));
    // The tag of a stranger: one that no link has.
    let stranger = (1..).map(|n| layout.tag(n)).find(|tag| *tag != layout.tag(own) && !tags.contains(tag));
    let claim = layout.claim_of_debt(stranger.expect("a tag"), end);
    let mut hidden = Vec::new();
    for slot in slots.iter().flat_map(|line| &line.words) {
        // ORDERING: Relaxed; one thread.
        let word = slot.load(Ordering::Relaxed);
        let is_others = tags.iter().any(|tag| layout.is_live_of(word, *tag));
        if is_others && layout.lead(word, now_q) != 0 {
            slot.store(claim, Ordering::Relaxed);
            hidden.push((slot, word));
        }
    }
    hidden
}

fn told(chain: &Chain<'_>, now: u64) -> Told {
    let (mut each, mut counters) = (Vec::new(), Counters::default());
    let whole = chain.check_ex(now, Some(&mut counters), |_, decision| each.push(*decision));
    (whole, each, counters)
}

fn reserved(chain: &Chain<'_>, now: u64) -> Told {
    let (mut each, mut counters) = (Vec::new(), Counters::default());
    let whole = chain.reserve_ex(now, Some(&mut counters), |_, decision| each.push(*decision));
    (whole.expect("limits of GCRA without room"), each, counters)
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
    charges: u64,
    reservations: u64,
}

/// Runs a world of its own: its limits, policy and keys come from the seed.
fn run(seed: u64, rounds: u64, ways: &mut Ways) {
    let mut random = Random(seed);
    let resolution = [0, 4, -4][random.below(3) as usize];
    let specs: Vec<LimitSpec> = (0..4)
        .map(|i| {
            let burst = 1 + random.below(12);
            let spec = LimitSpec::new(1 + random.below(5), 1 << 12, burst).resolution(resolution).max_debt(8);
            let spec = spec.max_delay(random.below(1 << 13));
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
    let slowest =
        LimitSpec::new(1, 1 << 12, 13).max_debt(8).penalty(1).resolution(resolution).max_delay(1 << 13);
    let options = TableOptions::new(fastest).slowest(slowest).caller_hash();
    let lines: [[Line; 6]; 3] = core::array::from_fn(|_| [const { Line::EMPTY }; 6]);
    let mut own: [[Line; 6]; 3] = core::array::from_fn(|_| [const { Line::EMPTY }; 6]);
    let [own_a, own_b, own_c] = &mut own;
    let banned: [Line; 18] = [const { Line::EMPTY }; 18];
    let bans = Table::init(&banned, &TableOptions::overrides(1 << 20).caller_hash()).expect("a table");
    let short = World::new(&lines[0], own_a, &specs, options, policy, &bans);
    let slow = World::new(&lines[1], own_b, &specs, options, policy, &bans);
    let reference = World::new(&lines[2], own_c, &specs, options, policy, &bans);
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
        let place = || std::format!("seed {seed}, round {round}, {policy:?}: {asks:?} at {at}");
        // One call in eight of those that have one form.
        let form = random.below(16);
        if form < 2 && short.chain(&asks).is_some() {
            let [a, b] = [&short, &slow].map(|world| world.chain(&asks).expect("a chain"));
            if form == 0 {
                assert_eq!(a.charge(at), b.charge(at), "a charge, {}", place());
                reference.reference_charge(&asks, at).expect("a chain");
                ways.charges += 1;
            } else {
                let wanted = reference.reference(&asks, at, true).expect("a chain");
                assert_eq!([a, b].map(|chain| reserved(&chain, at)), [wanted.clone(), wanted], "{}", place());
                ways.reservations += 1;
            }
            assert_eq!(short.words(), reference.words(), "form {form}, {}", place());
            assert_eq!(slow.words(), reference.words(), "form {form}, {}", place());
            continue;
        }
        let (Some(chain), Some(wanted)) = (short.chain(&asks), reference.reference(&asks, at, false)) else {
            assert_eq!(short.chain(&asks).is_some(), reference.chain(&asks).is_some());
            continue;
        };
        let mut all = [Seen::Absent; MAX_LINKS];
        let made = slow.chain(&asks).map(|chain| long(&chain, at));
        assert_eq!(made, Some(wanted.clone()), "the long way, {}", place());
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
        assert_eq!(short.words(), reference.words(), "{}", place());
        assert_eq!(slow.words(), reference.words(), "the long way, {}", place());
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
    let Ways { passed, refused, inserted, late, overridden, long, charges: charged, reservations } = ways;
    let least = passed.min(refused).min(inserted).min(long).min(charged).min(reservations);
    assert!(least > chains / 50 && late.min(overridden) > chains / 1_000, "a way is hardly gone: {ways:?}");
}

#[test]
fn both_ways_answer_and_store_what_single_calls_do_in_the_defined_order() {
    // `TATCELL_CHAINS=1e7` in the long form.
    let chains = std::env::var("TATCELL_CHAINS").ok().and_then(|n| n.parse::<f64>().ok());
    run_all(chains.unwrap_or(1e5) as u64);
}

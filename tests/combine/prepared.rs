//! Prepared chains and bursts of them against chains made for each request, on worlds of their own.

use crate::common::{memory, Rng};
use tatcell::{
    Cell, Cell32, Chain, ChainBurst, ChainError, ExclusiveTable, Limit, Limit32, LimitSpec, Line, Link,
    PreparedChain, Table, TableLimit, TableOptions, MAX_LINKS,
};

/// What a link is of, its limit, and its extra units and room.
#[derive(Clone, Copy)]
struct Kind {
    of: u64,
    limit: usize,
    extra: u64,
    room: u64,
}

struct World<'m> {
    cells: [Cell; 4],
    small: [Cell32; 2],
    limits: Vec<Limit>,
    limits32: Vec<Limit32>,
    shared: Table<'m>,
    own: ExclusiveTable<'m>,
    keyed: Vec<TableLimit>,
    bans: Table<'m>,
}

/// Two plain limits, and one with each option that the short way does not know.
fn specs() -> [LimitSpec; 4] {
    let spec = LimitSpec::new(8, 1 << 10, 6);
    [spec, LimitSpec::new(16, 1 << 10, 12), spec.max_room(2), spec.penalty(3)]
}

impl<'m> World<'m> {
    fn new([shared, own, bans]: &'m mut [Vec<Line>; 3]) -> World<'m> {
        let options = TableOptions::new(specs()[1]).slowest(specs()[2].max_debt(8)).caller_hash();
        let shared = Table::init(shared, &options).expect("a table");
        World {
            cells: [const { Cell::new() }; 4],
            small: [const { Cell32::new() }; 2],
            limits: specs().iter().map(|spec| spec.build().expect("a limit")).collect(),
            limits32: specs().iter().map(|spec| spec.build32().expect("a limit")).collect(),
            keyed: specs().iter().map(|spec| shared.limit(spec).expect("a limit")).collect(),
            own: Table::init_exclusive(own, &options).expect("a table"),
            bans: Table::init(bans, &TableOptions::overrides(1 << 20).caller_hash()).expect("a table"),
            shared,
        }
    }

    fn links(&self, kinds: &[Kind], hashes: &[u64], costs: &[u64]) -> Vec<Link<'_>> {
        let link = |((kind, &hash), &cost): ((&Kind, &u64), &u64)| {
            let Kind { of, limit, extra, room } = *kind;
            match of {
                0..=3 => Link::cell(&self.cells[of as usize], &self.limits[limit], cost),
                4..=6 => Link::hash(&self.shared, &self.keyed[limit], hash, cost),
                7..=8 => Link::hash(&self.own, &self.keyed[limit], hash, cost),
                9 => Link::cell32(&self.small[0], &self.limits32[limit], cost),
                _ => return Link::overrides(&self.bans, hash),
            }
            .extra(extra)
            .room(room)
        };
        kinds.iter().zip(hashes).zip(costs).map(link).collect()
    }
}

fn kinds(rng: &mut Rng) -> Vec<Kind> {
    // Mostly links that the short way knows.
    let odd = rng.below(4) == 0;
    let count = 1 + rng.below(if odd { MAX_LINKS as u64 } else { 3 });
    let kind = |_| Kind {
        of: match rng.below(if odd { 11 } else { 10 }) {
            // Overrides are for the short way, too.
            9 if !odd => 10,
            of => of,
        },
        limit: rng.below(if odd { 4 } else { 2 }) as usize,
        extra: if odd && rng.below(4) == 0 { rng.below(3) } else { 0 },
        room: if odd && rng.below(4) == 0 { rng.below(3) } else { 0 },
    };
    (0..count).map(kind).collect()
}

/// Ends of requests that were met: passes, refusals, refusals for good, and errors.
#[derive(Debug, Default)]
struct Met([usize; 4]);

fn memories() -> [Vec<Line>; 3] {
    [memory(6), memory(6), memory(6)]
}

/// One request of each form: hashes and costs.
fn request(rng: &mut Rng, kinds: &[Kind]) -> (Vec<u64>, Vec<u64>) {
    let hash = |_: &Kind| (1 + rng.below(6)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hashes = kinds.iter().map(hash).collect();
    let cost = |_: &Kind| {
        if rng.below(12) == 0 {
            [0, 13, u64::MAX][rng.below(3) as usize]
        } else {
            1 + rng.below(3)
        }
    };
    (hashes, kinds.iter().map(cost).collect())
}

#[test]
fn a_prepared_chain_answers_as_a_chain_made_for_the_request() {
    let mut met = Met::default();
    for seed in 0..400 {
        let (mut rng, mut places) = (Rng(seed), [memories(), memories()]);
        let [one, other] = &mut places;
        let (ours, theirs) = (World::new(one), World::new(other));
        let kinds = kinds(&mut rng);
        let count = kinds.len();
        let different: Vec<u64> = (0..count as u64).collect();
        let prepared = match PreparedChain::new(&ours.links(&kinds, &[0; 8], &[u64::MAX; 8])) {
            Ok(prepared) => prepared,
            Err(e) => {
                // What is wrong for all keys is wrong for different ones.
                let chain = Chain::new(&theirs.links(&kinds, &different, &vec![1; count]));
                assert_eq!(chain.err(), Some(e), "seed {seed}");
                continue;
            }
        };
        let mut now = 1 << 30;
        for i in 0..100 {
            now += rng.below(200);
            if rng.below(8) == 0 {
                let key = (1 + rng.below(6)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let ban = |world: &World<'_>| match i % 2 {
                    0 => world.bans.ban(now, key, now + 300),
                    _ => world.bans.exempt(now, key, now + 300),
                };
                assert_eq!(ban(&ours), ban(&theirs));
            }
            let (hashes, costs) = request(&mut rng, &kinds);
            let unit = rng.below(4) == 0;
            let given = if unit { vec![1; count] } else { costs.clone() };
            let asked = (!unit).then_some(costs.as_slice());
            let chain = Chain::new(&theirs.links(&kinds, &hashes, &given));
            let at = format!("seed {seed}, request {i}");
            match (chain, rng.below(3)) {
                (Err(e), _) => {
                    met.0[3] += 1;
                    assert_eq!(prepared.verdict(now, &hashes, asked), Err(e), "{at}");
                    assert_eq!(prepared.check(now, &hashes, asked).err(), Some(e), "{at}");
                }
                (Ok(chain), 0) => {
                    let wanted = chain.check(now);
                    met.0[(wanted.verdict as usize).min(2)] += 1;
                    assert_eq!(prepared.check(now, &hashes, asked).expect("no error"), wanted, "{at}");
                }
                (Ok(chain), 1) => {
                    let made = prepared.chain(&hashes, asked).expect("no error");
                    assert_eq!(made.check(now), chain.check(now), "{at}");
                }
                (Ok(chain), _) => {
                    let wanted = chain.verdict(now);
                    met.0[(wanted as usize).min(2)] += 1;
                    assert_eq!(prepared.verdict(now, &hashes, asked), Ok(wanted), "{at}");
                }
            }
        }
    }
    assert!(met.0.iter().all(|times| *times > 500), "{met:?}");
}

#[test]
fn a_burst_of_chains_answers_as_single_chains_in_its_order() {
    let (mut passed, mut refused, mut errors) = (0, 0, 0);
    for seed in 0..300 {
        let (mut rng, mut places) = (Rng(seed), [memories(), memories()]);
        let [one, other] = &mut places;
        let (ours, theirs) = (World::new(one), World::new(other));
        let kinds = kinds(&mut rng);
        let links = |world| World::links(world, &kinds, &[0; 8], &[1; 8]);
        let (Ok(prepared), Ok(single)) =
            (PreparedChain::new(&links(&ours)), PreparedChain::new(&links(&theirs)))
        else {
            continue;
        };
        let mut now = 1 << 30;
        for i in 0..20 {
            now += rng.below(2_000);
            let requests: Vec<_> = (0..rng.below(65)).map(|_| request(&mut rng, &kinds)).collect();
            let (hashes, costs): (Vec<Vec<u64>>, Vec<Vec<u64>>) = requests.iter().cloned().unzip();
            let (hashes, costs) = (hashes.concat(), costs.concat());
            let asked = (rng.below(4) != 0).then_some(costs.as_slice());
            let burst = ChainBurst { chain: &prepared, now, hashes: &hashes, costs: asked };
            let bad = requests
                .iter()
                .find_map(|(hashes, costs)| single.chain(hashes, asked.map(|_| costs.as_slice())).err());
            let at = format!("seed {seed}, burst {i}");
            if let Some(e) = bad {
                errors += 1;
                // And nothing was decided: the next bursts say so.
                assert_eq!(burst.check(), Err(e), "{at}");
                continue;
            }
            let mut wanted = Vec::new();
            for (hashes, costs) in &requests {
                wanted.push(single.check(now, hashes, asked.map(|_| costs.as_slice())).expect("no error"));
            }
            let bit = |(i, passes): (usize, bool)| u64::from(passes) << i;
            let pass = wanted.iter().map(|d| d.passes()).enumerate().map(bit).sum();
            if rng.below(2) == 0 {
                assert_eq!(burst.check(), Ok(pass), "{at}");
            } else {
                let mut told = 0;
                let made = burst.check_ex(|i, decision| {
                    assert_eq!(i, told, "{at}");
                    told += 1;
                    assert_eq!(decision.copied(), Some(wanted[i]).filter(|d| !d.passes()), "{at}: {i}");
                });
                assert_eq!((made, told), (Ok(pass), requests.len()), "{at}");
            }
            passed += pass.count_ones() as usize;
            refused += requests.len() - pass.count_ones() as usize;
        }
    }
    assert!(passed > 5_000 && refused > 5_000 && errors > 100, "{passed} {refused} {errors}");
}

#[test]
fn wrong_numbers_of_hashes_costs_and_requests_are_refused() {
    let (cell, limit) = (Cell::new(), LimitSpec::new(1, 1_000, 100).build().expect("a limit"));
    let other = Cell::new();
    let chain =
        PreparedChain::new(&[Link::cell(&cell, &limit, 1), Link::cell(&other, &limit, 1)]).expect("a chain");
    assert_eq!(chain.count(), 2);
    for (hashes, costs) in [(1, None), (3, None), (2, Some(1)), (2, Some(3))] {
        let (hashes, costs) = (vec![0; hashes], costs.map(|count| vec![1; count]));
        let costs = costs.as_deref();
        assert_eq!(chain.verdict(0, &hashes, costs), Err(ChainError::BadCount));
        assert_eq!(chain.check(0, &hashes, costs).err(), Some(ChainError::BadCount));
        assert_eq!(chain.chain(&hashes, costs).err(), Some(ChainError::BadCount));
    }
    for (hashes, costs) in [(3, None), (130, None), (4, Some(2)), (4, Some(5))] {
        let (hashes, costs) = (vec![0; hashes], costs.map(|count| vec![1; count]));
        let burst = ChainBurst { chain: &chain, now: 0, hashes: &hashes, costs: costs.as_deref() };
        assert_eq!(burst.check(), Err(ChainError::BadCount));
        assert_eq!(burst.check_ex(|_, _| panic!("nothing is decided")), Err(ChainError::BadCount));
    }
    assert_eq!(PreparedChain::new(&[]).err(), Some(ChainError::Empty));
    assert_eq!(PreparedChain::new(&[Link::cell(&cell, &limit, 1); 9]).err(), Some(ChainError::TooManyLinks));
    assert_eq!(cell.peek(&limit, 0, 1).remaining, 100);
    assert!(ChainError::BadCount.to_string().contains("64"));
}

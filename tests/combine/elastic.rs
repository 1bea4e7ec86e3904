//! Room, charges after the fact and counters of each link: a chain does what calls for each link in order do.

use crate::common::{cases, memory, Rng};
use tatcell::{
    Address, Burst, Cell, Cell32, Chain, ChainCounters, ChainError, Counters, Decision, FullPolicy, Ladder,
    LadderBurst, LadderLimits, Limit, Limit32, LimitSpec, Line, Link, NextBurst, Permit, Request, Table,
    TableLimit, TableOptions, Verdict,
};

/// The same cells and keys twice: one for chains, one for single calls.
struct World {
    cells: [Cell; 2],
    small: Cell32,
    lines: Vec<Line>,
}

impl World {
    fn new() -> World {
        World { cells: [Cell::new(), Cell::new()], small: Cell32::new(), lines: memory(34) }
    }
}

struct Limits {
    cells: [Limit; 2],
    small: Limit32,
    key: LimitSpec,
}

fn limits(rng: &mut Rng) -> Limits {
    let mut spec = || {
        let spec = LimitSpec::new(1, 1 << 12, rng.within(1, 6)).resolution(0);
        spec.max_room(rng.below(5)).max_debt(rng.below(9)).soft(1)
    };
    Limits {
        cells: [spec().build().unwrap(), spec().build().unwrap()],
        small: spec().build32().unwrap(),
        key: spec(),
    }
}

struct One<'w> {
    world: &'w World,
    limits: &'w Limits,
    table: &'w Table<'w>,
    limit: &'w TableLimit,
}

impl One<'_> {
    fn links(&self, asked: &[(u64, u64)]) -> Vec<Link<'_>> {
        let of = |i: usize| match i {
            0 | 1 => Link::cell(&self.world.cells[i], &self.limits.cells[i], asked[i].0),
            2 => Link::cell32(&self.world.small, &self.limits.small, asked[i].0),
            _ => Link::hash(self.table, self.limit, 7 + i as u64, asked[i].0),
        };
        (0..asked.len()).map(|i| of(i).room(asked[i].1)).collect()
    }

    fn check(&self, i: usize, now: u64, (cost, room): (u64, u64), counters: &mut Counters) -> Decision {
        let Limits { cells, small, .. } = self.limits;
        match i {
            0 | 1 => self.world.cells[i].check_ex(&cells[i], now, cost, room),
            2 => self.world.small.check_ex(small, now, cost, room),
            _ => {
                let request = Request { limit: self.limit, now, cost, room };
                self.table.check_ex(&request, 7 + i as u64, Some(counters)).unwrap()
            }
        }
    }

    fn charge(&self, i: usize, now: u64, cost: u64) -> Decision {
        let Limits { cells, small, .. } = self.limits;
        match i {
            0 | 1 => self.world.cells[i].charge(&cells[i], now, cost),
            2 => self.world.small.charge(small, now, cost),
            _ => self.table.charge(self.limit, now, 7 + i as u64, cost, None).unwrap(),
        }
    }

    fn refund(&self, i: usize, now: u64, permit: &Permit) {
        let Limits { cells, small, .. } = self.limits;
        let back = match i {
            0 | 1 => self.world.cells[i].refund(&cells[i], now, permit),
            2 => self.world.small.refund(small, now, permit),
            _ => self.table.refund(self.limit, now, 7 + i as u64, permit).unwrap(),
        };
        assert!(back.is_some());
    }

    /// What each owes, in ticks.
    fn debts(&self, now: u64) -> [u64; 4] {
        let Limits { cells, small, .. } = self.limits;
        let key = self.table.peek(self.limit, now, 10, 0).unwrap();
        [
            self.world.cells[0].peek(&cells[0], now, 0).reset_after,
            self.world.cells[1].peek(&cells[1], now, 0).reset_after,
            self.world.small.peek(small, now, 0).reset_after,
            key.reset_after,
        ]
    }
}

fn told(d: &Decision) -> (Verdict, u32, u64, u64, u64, u64) {
    (d.verdict, d.flags, d.remaining, d.retry_after, d.reset_after, d.units)
}

/// A chain whose links have room, and charges of it, against the same calls one by one: refused iff one of them is, and
/// then nothing is owed of it, also of what came from room.
#[test]
fn chains_with_room_and_charges_are_single_calls_in_order() {
    let mut seen = [0; 3];
    let count = core::cell::RefCell::new(&mut seen);
    cases(60, |rng| {
        let limits = limits(rng);
        let worlds = [World::new(), World::new()];
        let options = TableOptions::new(limits.key).seed([5; 16]).resolution(0);
        let [a, b] = [0, 1].map(|i| Table::init(&worlds[i].lines, &options).unwrap());
        let limit = a.limit(&limits.key).unwrap();
        let at = |table, world| One { world, limits: &limits, table, limit: &limit };
        let (chained, single) = (at(&a, &worlds[0]), at(&b, &worlds[1]));
        let mut now = 1 << 20;
        // The key is there, so that no claim is owed of a refused call.
        for one in [&chained, &single] {
            assert!(one.charge(3, now, 1).passes());
        }
        for _ in 0..200 {
            now += if rng.one_in(2) { 0 } else { rng.scaled(17) };
            let asked: [(u64, u64); 4] = core::array::from_fn(|_| (rng.below(3), rng.below(6)));
            let links = chained.links(&asked);
            let chain = Chain::new(&links).unwrap();
            let mut each = Vec::new();
            if rng.one_in(8) {
                let whole = chain.charge_ex(now, None, |i, d| each.push((i, told(d))));
                assert!(whole.passes());
                for (i, (cost, _)) in asked.iter().enumerate() {
                    assert_eq!(each[i], (i, told(&single.charge(i, now, *cost))), "charge of link {i}");
                }
                count.borrow_mut()[2] += 1;
            } else {
                let (mut of_links, mut of_single) = ([Counters::default(); 4], [Counters::default(); 4]);
                let counters = ChainCounters { chain: None, links: &mut of_links };
                let whole = chain.check_ex(now, counters, |i, d| each.push((i, told(d))));
                let mut permits = Vec::new();
                let refused = asked.iter().enumerate().find_map(|(i, asked)| {
                    let d = single.check(i, now, *asked, &mut of_single[i]);
                    if d.passes() {
                        permits.push(d.permit);
                        assert!(
                            !whole.passes() || each[i] == (i, told(&d)),
                            "link {i}: {:?} {:?}",
                            each[i],
                            told(&d)
                        );
                        return None;
                    }
                    Some(i)
                });
                assert_eq!(whole.passes(), refused.is_none(), "{asked:?}");
                if refused.is_some() {
                    for (i, permit) in permits.iter().enumerate().rev() {
                        single.refund(i, now, permit);
                    }
                    let only = |d: &Counters| d.conforming + d.non_conforming + d.never;
                    assert!(of_links.iter().all(|d| only(d) == 1), "{of_links:?}");
                    for (i, (_, of)) in each.iter().enumerate() {
                        assert_eq!(of.0.passes(), of_links[i].conforming == 1);
                    }
                } else {
                    assert_eq!(of_links[3], of_single[3], "a key counts as in a call of its own");
                }
                count.borrow_mut()[whole.passes() as usize] += 1;
            }
            assert_eq!(chained.debts(now), single.debts(now), "{asked:?}");
        }
    });
    assert!(seen.iter().all(|n| *n > 300), "{seen:?}");
}

/// Room is what makes the difference, and its retry time is exact.
#[test]
fn the_retry_time_of_a_chain_with_room_is_exact_to_the_tick() {
    let limit = LimitSpec::new(1, 1_000, 2).max_room(3).resolution(0).build().unwrap();
    let cells = [Cell::new(), Cell::new()];
    let chain = |room| {
        let links = [Link::cell(&cells[0], &limit, 1).room(5), Link::cell(&cells[1], &limit, 1).room(room)];
        Chain::new(&links).unwrap()
    };
    assert!([(); 2].iter().all(|()| chain(0).check(0).passes()));
    assert_eq!((chain(0).check(0).policy, chain(0).peek(0).retry_after), (1, 1_000));
    // Room above the limit's own counts as much as the limit has.
    for _ in 0..3 {
        let passed = chain(9).check(0);
        assert_eq!((passed.passes(), passed.flags & Decision::ELASTIC), (true, Decision::ELASTIC));
    }
    for refused in [chain(9).peek(0), chain(9).check(0)] {
        assert_eq!((refused.verdict, refused.retry_after), (Verdict::NonConforming, 1_000));
    }
    assert_eq!((chain(1).peek(0).policy, chain(1).peek(0).retry_after), (0, 3_000));
    assert!(!chain(1).check(2_999).passes() && chain(1).check(3_000).passes());
}

/// Of one debt that stands twice, the smaller room counts.
#[test]
fn links_of_one_cell_have_the_smallest_room_of_them() {
    let limit = LimitSpec::new(1, 1_000, 2).max_room(9).build().unwrap();
    for (rooms, passes) in [([4, 4], true), ([4, 3], false), ([3, 9], false), ([9, 4], true)] {
        let cell = Cell::new();
        let links = rooms.map(|room| Link::cell(&cell, &limit, 3).room(room));
        assert_eq!(Chain::new(&links).unwrap().check(0).passes(), passes, "{rooms:?}");
        assert_eq!(cell.peek(&limit, 0, 0).reset_after, if passes { 6_000 } else { 0 });
    }
}

/// A reservation has a delay instead.
#[test]
fn nothing_is_reserved_with_room() {
    let limit = LimitSpec::new(1, 1_000, 2).max_room(3).max_delay(5_000).build().unwrap();
    let cell = Cell::new();
    let link = Link::cell(&cell, &limit, 1).room(1);
    assert_eq!(Chain::new(&[link]).unwrap().reserve(0), Err(ChainError::BadRoom));
    assert_eq!(tatcell::Group::new().reserve(0, &link), Err(ChainError::BadRoom));
    assert_eq!(cell.peek(&limit, 0, 0).reset_after, 0);
    assert!(ChainError::BadRoom.to_string().contains("max_delay"));
}

/// An exemption charges nothing; a ban that came after the request was let through changes nothing, and outweighs the
/// exemption by another link.
#[test]
fn a_charge_of_an_exempt_key_charges_nobody_and_that_of_a_banned_one_all() {
    let limit = LimitSpec::new(1, 1_000, 2).max_debt(8).build().unwrap();
    let lines = memory(34);
    let overrides = Table::init(&lines, &TableOptions::overrides(1 << 20).caller_hash()).unwrap();
    overrides.exempt(0, 1, 10_000).unwrap();
    overrides.ban(0, 2, 10_000).unwrap();
    for (hashes, owed, flags) in [
        (vec![3], 5_000, [0; 2]),
        (vec![1], 0, [Decision::EXEMPT, 0]),
        (vec![2], 5_000, [Decision::BANNED, 0]),
        (vec![1, 2], 5_000, [0, Decision::BANNED]),
        (vec![2, 1], 5_000, [Decision::BANNED, 0]),
    ] {
        let (cell, mut links) = (Cell::new(), Vec::new());
        links.extend(hashes.iter().map(|hash| Link::overrides(&overrides, *hash)));
        links.push(Link::cell(&cell, &limit, 5));
        let (mut whole, mut of_links) = (Counters::default(), [Counters::default(); 3]);
        let counters = ChainCounters { chain: Some(&mut whole), links: &mut of_links };
        let mut each = Vec::new();
        let decision = Chain::new(&links).unwrap().charge_ex(0, counters, |_, d| each.push(d.flags));
        assert_eq!((decision.passes(), whole.conforming), (true, 1), "{hashes:?}");
        assert_eq!(cell.peek(&limit, 0, 0).reset_after, owed, "{hashes:?}");
        assert_eq!(each[..hashes.len()], flags[..hashes.len()]);
        let of_limit = of_links[hashes.len()].conforming;
        assert_eq!(of_limit, u64::from(owed != 0), "{hashes:?}: an exempt request asks no limit");
        assert_eq!(of_links[0].conforming, 1);
    }
}

/// A ban refuses although another link exempts: the limits are asked and counted, and nobody is charged.
#[test]
fn a_ban_outweighs_an_exemption_in_counters_and_reservations() {
    let limit = LimitSpec::new(1, 1_000, 2).max_delay(8_000).build().unwrap();
    let lines = memory(34);
    let overrides = Table::init(&lines, &TableOptions::overrides(1 << 20).caller_hash()).unwrap();
    overrides.exempt(0, 1, 10_000).unwrap();
    overrides.ban(0, 2, 10_000).unwrap();
    for (hashes, reserves) in [[1, 2], [2, 1], [2, 3]].into_iter().flat_map(|all| [(all, false), (all, true)])
    {
        let cell = Cell::new();
        let [a, b] = hashes.map(|hash| Link::overrides(&overrides, hash));
        let chain = Chain::new(&[a, b, Link::cell(&cell, &limit, 1)]).unwrap();
        let mut of_links = [Counters::default(); 3];
        let counters = ChainCounters { chain: None, links: &mut of_links };
        let decision = match reserves {
            true => chain.reserve_ex(0, counters, |_, _| ()).unwrap(),
            false => chain.check_ex(0, counters, |_, _| ()),
        };
        let place = format!("{hashes:?}, reserves: {reserves}");
        assert_eq!((decision.verdict, decision.retry_after), (Verdict::NonConforming, 10_000), "{place}");
        assert_eq!(decision.flags, Decision::BANNED, "{place}");
        assert_eq!(of_links.map(|link| link.conforming + link.non_conforming), [1, 1, 1], "{place}");
        assert_eq!(cell.peek(&limit, 0, 0).reset_after, 0, "{place}");
    }
}

/// An extra is charged with a charge, as with a check.
#[test]
fn a_charge_takes_the_extra_and_its_permits_give_the_rest_back() {
    let limit = LimitSpec::new(1, 1_000, 2).max_debt(8).build().unwrap();
    let cells = [Cell::new(), Cell::new()];
    let links = [Link::cell(&cells[0], &limit, 4), Link::cell(&cells[1], &limit, 4).extra(2)];
    let (chain, mut permits) = (Chain::new(&links).unwrap(), [Permit::NONE; 2]);
    assert!(chain.charge_ex(0, None, |i, d| permits[i] = d.permit).passes());
    let debts = || [0, 1].map(|i: usize| cells[i].peek(&limit, 0, 0).reset_after);
    assert_eq!(debts(), [4_000, 6_000]);
    assert!(chain.refund(0, &mut permits));
    assert_eq!(debts(), [0, 2_000]);
}

/// A key without a slot in a full set is the one thing that no charge reaches. `Deny` says so in every form, and the
/// other links are charged; `Admit` passes with 0 units.
#[test]
fn a_charge_that_finds_a_full_set_says_that_it_charged_nothing_there() {
    let spec = LimitSpec::new(1, 1_000, 8);
    let busy = spec.build().unwrap();
    for (policy, verdict) in
        [(FullPolicy::Deny, Verdict::NonConforming), (FullPolicy::Admit, Verdict::Conforming)]
    {
        let (lines, ladder) = (memory(4), Ladder::DEFAULT);
        let options = ladder.table_options(&spec).unwrap().seed([7; 16]).policy(policy);
        let table = Table::init(&lines, &options).unwrap();
        let limit = table.limit(&spec).unwrap();
        for key in 0..200u64 {
            let _ = table.check_hash(&limit, 0, key << 33 | key.wrapping_mul(0x9e37_79b9), 8).unwrap();
        }
        assert_eq!(table.stats(0).live, 16, "{policy:?}");
        let (stranger, cell) = (u64::MAX / 3, Cell::new());
        let made = table.charge(&limit, 0, stranger, 3, None).unwrap();
        assert_eq!((made.verdict, made.units), (verdict, 0), "{policy:?}");

        let links = [Link::hash(&table, &limit, stranger, 3).extra(1), Link::cell(&cell, &busy, 3)];
        let mut each = Vec::new();
        let whole = Chain::new(&links).unwrap().charge_ex(0, None, |_, d| each.push((d.verdict, d.units)));
        // The tightest link, or the one that refuses.
        let named = u32::from(verdict.passes());
        assert_eq!((whole.verdict, whole.policy), (verdict, named), "{policy:?}");
        assert_eq!(each, [(verdict, 0), (Verdict::Conforming, 3)], "{policy:?}");
        assert_eq!(cell.peek(&busy, 0, 0).remaining, 5, "{policy:?}: the other link is charged");

        let bit = u64::from(verdict.passes());
        let hashes = [stranger];
        let burst = Burst { costs: Some(&[3]), ..Burst::new(&limit, 0, &hashes) };
        assert_eq!(burst.charge(&table, None, NextBurst::NONE, |_, _| ()), Ok(bit), "{policy:?}");
        let limits = LadderLimits::new(&table, &ladder, &spec).unwrap();
        let addresses = [Address::from([192, 0, 2, 1])];
        let burst = LadderBurst::new(&limits, 0, &addresses);
        assert_eq!(burst.charge(&table, None, |_, _, _| ()), Ok(bit), "{policy:?}");
        assert_eq!(table.peek(&limit, 0, stranger, 0).unwrap().reset_after, 0, "{policy:?}");
    }
}

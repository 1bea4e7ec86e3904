//! Bursts of addresses and overrides before the limits of a ladder: what single calls in order do.

use crate::common::{cases, memory, Rng};
use std::net::IpAddr;
use tatcell::{
    Address, ChainCounters, Counters, Decision, Ladder, LadderBurst, LadderLimits, LadderOverrides,
    LimitSpec, Override, Permit, PrefixLengths, Table, TableError, TableOptions, Verdict,
};

const ASKED: PrefixLengths<'static> = PrefixLengths { v4: &[24, 32], v6: &[128, 48] };
/// The same among more lengths than are prefetched together.
const MANY: PrefixLengths<'static> = PrefixLengths {
    v4: &[31, 30, 29, 28, 27, 26, 25, 23, 22, 24, 32],
    v6: &[127, 126, 128, 125, 124, 123, 122, 121, 120, 119, 118, 117, 116, 115, 114, 113, 48],
};

fn random_address(rng: &mut Rng) -> Address {
    let host = rng.below(4) as u8;
    Address::from(match rng.below(3) {
        0 => IpAddr::from([198, 51, 100 + 16 * rng.below(3) as u8, host]),
        1 => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, host]),
        _ => IpAddr::from([0x20, 1, 0xd, 0xb8, 0, rng.below(3) as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]),
    })
}

/// What one address gets: its override, or else its tiers, by calls that stood before.
fn one_call(
    (limits, table): (&LadderLimits, &Table<'_>),
    bans: Option<&Table<'_>>,
    now: u64,
    (address, cost, room): (&Address, u64, u64),
    counters: &mut Counters,
) -> (Decision, [Permit; 8]) {
    let mut permits = [Permit::NONE; 8];
    let found = bans.and_then(|bans| bans.overridden_address(now, *address, ASKED).unwrap());
    let chain = limits.chain_with_room(table, address, cost, room).unwrap();
    let decision = match found.map(|(found, _)| found) {
        None => chain.check_ex(now, Some(counters), |i, d| permits[i] = d.permit),
        Some(found) => {
            let (verdict, flags, retry_after) = match found {
                Override::Banned { retry_after } => (Verdict::NonConforming, Decision::BANNED, retry_after),
                Override::Exempt { .. } => (Verdict::Conforming, Decision::EXEMPT, 0),
            };
            let count =
                if verdict.passes() { &mut counters.conforming } else { &mut counters.non_conforming };
            *count += 1;
            let d = chain.peek(now);
            Decision { verdict, flags, retry_after, policy: 8, ..d }
        }
    };
    (decision, permits)
}

fn told(d: &Decision) -> (Verdict, u32, u32, u64, u64) {
    (d.verdict, d.flags, d.policy, d.retry_after, d.cost)
}

#[test]
fn a_burst_of_addresses_is_single_calls_in_order() {
    let mut seen = [0; 4];
    let count = std::cell::RefCell::new(&mut seen);
    cases(40, |rng| {
        let ladder = Ladder::DEFAULT;
        let spec = LimitSpec::new(10, 1_000, rng.within(1, 4)).max_room(3).max_debt(20);
        let memories = [memory(258), memory(258), memory(66), memory(258)];
        let options = ladder.table_options(&spec).unwrap().seed([3; 16]);
        let [a, b, c] = [0, 1, 3].map(|i| Table::init(&memories[i], &options).unwrap());
        let [of_a, of_b, of_c] = [&a, &b, &c].map(|table| LadderLimits::new(table, &ladder, &spec).unwrap());
        let bans = Table::init(&memories[2], &TableOptions::overrides(1 << 30).seed([4; 16])).unwrap();
        let asked = rng.pick(&[ASKED, MANY]);
        let overrides = rng.one_in(2).then(|| LadderOverrides::new(&bans, asked));
        let mut now = 1 << 20;
        let (mut counters, mut expected) = (Counters::default(), Counters::default());
        for _ in 0..30 {
            now += rng.scaled(10);
            let (v4, v6) = (rng.pick(&[24, 32]), rng.pick(&[48, 128]));
            match rng.below(8) {
                0 => bans.ban_address(now, random_address(rng), v4, v6, now + 200).unwrap(),
                1 => bans.exempt_address(now, random_address(rng), v4, v6, now + 200).unwrap(),
                _ => {}
            }
            let n = rng.below(65) as usize;
            let addresses: Vec<_> = (0..n).map(|_| random_address(rng)).collect();
            let costs: Vec<_> = (0..n).map(|_| rng.below(3) as u32).collect();
            let rooms: Vec<_> = (0..n).map(|_| rng.below(5) as u32).collect();
            let (with_costs, with_rooms) = (rng.one_in(2), rng.one_in(2));
            let burst = LadderBurst {
                costs: with_costs.then_some(&costs[..]),
                rooms: with_rooms.then_some(&rooms[..]),
                overrides,
                ..LadderBurst::new(&of_a, now, &addresses)
            };
            // The verdicts alone, of another table that gets the same requests.
            let alone = LadderBurst { limits: &of_c, ..burst }.verdicts(&c).unwrap();
            let mut each = Vec::new();
            let pass = burst.check(&a, Some(&mut counters), |i, d, p| each.push((i, told(d), *p))).unwrap();
            for (i, address) in addresses.iter().enumerate() {
                let cost = if with_costs { costs[i].into() } else { 1 };
                let room = if with_rooms { rooms[i].into() } else { 0 };
                let bans = overrides.map(|_| &bans);
                let (d, permits) = one_call((&of_b, &b), bans, now, (address, cost, room), &mut expected);
                assert_eq!(each[i], (i, told(&d), permits), "request {i} of {n}");
                assert_eq!(pass >> i & 1 == 1, d.passes());
                let kind = if d.flags & (Decision::BANNED | Decision::EXEMPT) != 0 { 2 } else { 0 };
                count.borrow_mut()[kind + usize::from(d.passes())] += 1;
            }
            assert_eq!((each.len(), counters), (n, expected));
            assert_eq!(alone, pass);
            if rng.one_in(3) {
                let burst = LadderBurst {
                    overrides,
                    costs: Some(&costs),
                    ..LadderBurst::new(&of_a, now, &addresses)
                };
                let all = burst.charge(&a, None, |_, d, _| assert!(d.passes())).unwrap();
                let other = LadderBurst { limits: &of_c, ..burst };
                assert_eq!(other.charge(&c, None, |_, _, _| ()).unwrap(), all);
                assert_eq!(all.count_ones() as usize, n);
                for (i, address) in addresses.iter().enumerate() {
                    let found =
                        overrides.and_then(|_| bans.overridden_address(now, *address, ASKED).unwrap());
                    if !matches!(found, Some((Override::Exempt { .. }, _))) {
                        assert!(of_b.chain(&b, address, costs[i].into()).unwrap().charge(now).passes());
                    }
                }
            }
        }
    });
    assert!(seen.iter().all(|n| *n > 100), "{seen:?}");
}

/// The room of a tier is that of one address times its multiplier, and each tier counts for itself.
#[test]
fn tiers_have_their_share_of_the_room_and_count_for_themselves() {
    let ladder = Ladder::DEFAULT;
    let spec = LimitSpec::new(10, 1_000, 4).max_room(2);
    let lines = memory(258);
    let table = Table::init(&lines, &ladder.table_options(&spec).unwrap().seed([3; 16])).unwrap();
    let limits = LadderLimits::new(&table, &ladder, &spec).unwrap();
    // A /64 has twice the limit of an address: 8 units, and 4 of room.
    let hosts: Vec<_> = (0..16u8)
        .map(|host| Address::from([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]))
        .collect();
    let mut tiers = [Counters::default(); 8];
    for (room, passed) in [(0, 8), (1, 2), (2, 2)] {
        let rooms = [room; 16];
        let burst = LadderBurst { rooms: Some(&rooms), ..LadderBurst::new(&limits, 0, &hosts) };
        let counters = ChainCounters { chain: None, links: &mut tiers };
        let pass = burst.check(&table, counters, |_, _, _| ()).unwrap();
        assert_eq!(pass.count_ones(), passed, "with room {room}");
    }
    let refused = tiers.map(|tier| tier.non_conforming);
    assert_eq!(refused[1], 3 * 16 - 12, "{refused:?}");
    assert_eq!([refused[0], refused[3], tiers[0].conforming, tiers[7].conforming], [0, 0, 48, 0]);
}

#[test]
fn every_error_shows_before_the_first_decision() {
    let (ladder, spec) = (Ladder::DEFAULT, LimitSpec::new(10, 1_000, 4));
    let memories = [memory(258), memory(258), memory(34), memory(34)];
    let options = ladder.table_options(&spec).unwrap();
    let table = Table::init(&memories[0], &options.seed([3; 16])).unwrap();
    let limits = LadderLimits::new(&table, &ladder, &spec).unwrap();
    let own = Table::init(&memories[1], &options.caller_hash()).unwrap();
    let bans = Table::init(&memories[2], &TableOptions::overrides(1 << 30).seed([4; 16])).unwrap();
    let own_bans = Table::init(&memories[3], &TableOptions::overrides(1 << 30).caller_hash()).unwrap();
    let addresses = [Address::from([192, 0, 2, 1]), Address::from([1; 16])];
    let burst = LadderBurst::new(&limits, 0, &addresses);
    let over =
        |table, lengths| LadderBurst { overrides: Some(LadderOverrides::new(table, lengths)), ..burst };
    let wide = PrefixLengths { v4: &[], v6: &[129] };
    let many = [addresses[0]; 65];
    for (burst, e) in [
        (LadderBurst { costs: Some(&[1]), ..burst }, TableError::BadCosts),
        (LadderBurst { rooms: Some(&[1; 3]), ..burst }, TableError::BadCosts),
        (LadderBurst { addresses: &many, ..burst }, TableError::TooManyKeys),
        (over(&table, ASKED), TableError::BadAlgorithm),
        (over(&bans, wide), TableError::BadPrefix),
        (over(&own_bans, PrefixLengths { v4: &[], v6: &[128] }), TableError::BadHashKind),
    ] {
        assert_eq!(burst.check(&table, None, |_, _, _| panic!("decided")), Err(e), "{e}");
        assert_eq!(burst.charge(&table, None, |_, _, _| panic!("charged")), Err(e), "{e}");
        assert_eq!(burst.verdicts(&table), Err(e), "{e}");
    }
    assert_eq!(burst.check(&own, None, |_, _, _| panic!("decided")), Err(TableError::BadHashKind));
    assert_eq!(LadderBurst { addresses: &[], ..burst }.verdicts(&table), Ok(0));
    assert_eq!(LadderBurst { addresses: &[], ..burst }.check(&table, None, |_, _, _| ()), Ok(0));
    assert_eq!(table.stats(0).live, 0);
    let with = LadderOverrides::new(&own_bans, ASKED);
    assert_eq!(limits.check_with(&table, &with, 0, &addresses[0], 1), Err(TableError::BadHashKind));
}

/// The single call: an exempt address passes without a charge, a banned one is refused without a charge.
#[test]
fn one_call_asks_overrides_and_limits() {
    let (ladder, spec) = (Ladder::DEFAULT, LimitSpec::new(10, 1_000, 1));
    let memories = [memory(258), memory(34)];
    let table = Table::init(&memories[0], &ladder.table_options(&spec).unwrap().seed([3; 16])).unwrap();
    let limits = LadderLimits::new(&table, &ladder, &spec).unwrap();
    let bans = Table::init(&memories[1], &TableOptions::overrides(1 << 30).seed([4; 16])).unwrap();
    let with = LadderOverrides::new(&bans, ASKED);
    let address = |host| Address::from([192, 0, 2, host]);
    bans.ban_address(0, address(0), 24, 64, 500).unwrap();
    bans.exempt_address(0, address(9), 32, 64, 500).unwrap();
    let call = |now, host| limits.check_with(&table, &with, now, &address(host), 1).unwrap();
    for _ in 0..3 {
        let (banned, exempt) = (call(0, 1), call(0, 9));
        assert_eq!((banned.verdict, banned.flags), (Verdict::NonConforming, Decision::BANNED));
        assert_eq!(
            (banned.retry_after, banned.policy, limits.tier(&address(1), banned.policy)),
            (500, 8, None)
        );
        assert_eq!((exempt.verdict, exempt.flags, exempt.policy), (Verdict::Conforming, Decision::EXEMPT, 8));
    }
    assert_eq!(table.stats(0).live, 0, "nobody is charged");
    let passed = [1, 1, 9, 9].map(|host| call(500, host).passes());
    assert_eq!(passed, [true, false, true, false], "the overrides are over");
}

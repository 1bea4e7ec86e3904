//! Canonical addresses, ladders of prefixes, and one call per address: against one exact bucket per prefix, and under
//! floods of forged addresses.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};

use crate::common::oracle::Oracle;
use crate::common::{cases, memory, Rng};
use tatcell::{
    Address, Chain, Ladder, LadderError, LadderLimits, LimitError, LimitSpec, Line, Permit, Rung, Table,
    TableError, TableOptions,
};

fn address(text: &str) -> Address {
    Address::from(text.parse::<IpAddr>().expect("an address"))
}

fn rung(bits: u8, multiplier: u32) -> Rung {
    Rung { bits, multiplier }
}

#[test]
fn an_address_has_one_form_however_it_is_written() {
    for (written, canonical) in [
        ("192.0.2.1", "192.0.2.1"),
        ("0.0.0.0", "0.0.0.0"),
        // RFC 4291, 2.5.5.2
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        // RFC 6052, 2.4: its example of the well-known prefix
        ("64:ff9b::192.0.2.33", "192.0.2.33"),
        ("64:ff9b::ffff:ffff", "255.255.255.255"),
        // RFC 3056
        ("2002:c000:201::1", "192.0.2.1"),
        ("2002:c000:201:ffff:1:2:3:4", "192.0.2.1"),
        // Left alone: one bit beside each prefix, a network's own NAT64, Teredo, ::/96.
        ("::fffe:192.0.2.1", "::fffe:192.0.2.1"),
        ("::1:ffff:192.0.2.1", "::1:ffff:192.0.2.1"),
        ("64:ff9b::1:192.0.2.1", "64:ff9b::1:192.0.2.1"),
        ("64:ff9a::192.0.2.1", "64:ff9a::192.0.2.1"),
        ("64:ff9b:1::192.0.2.1", "64:ff9b:1::192.0.2.1"),
        ("2003:c000:201::1", "2003:c000:201::1"),
        ("2001:0:c000:201::1", "2001:0:c000:201::1"),
        ("::192.0.2.1", "::c000:201"),
        ("::1", "::1"),
        ("::", "::"),
    ] {
        let found = address(written);
        let wanted: IpAddr = canonical.parse().unwrap();
        let bytes = match wanted {
            IpAddr::V4(a) => a.octets().to_vec(),
            IpAddr::V6(a) => a.octets().to_vec(),
        };
        assert_eq!((found.is_v4(), found.bytes()), (wanted.is_ipv4(), &bytes[..]), "{written}");
        let raw = match written.parse().unwrap() {
            IpAddr::V4(a) => a.octets().to_vec(),
            IpAddr::V6(a) => a.octets().to_vec(),
        };
        assert_eq!(Address::new(&raw), Some(found), "{written}");
    }
    for length in [0, 3, 5, 8, 15, 17, 32] {
        assert_eq!(Address::new(&vec![0; length]), None, "{length} bytes");
    }
}

#[test]
fn keys_of_prefixes_have_family_length_and_the_bits_of_the_prefix() {
    for (text, bits, key) in [
        ("192.0.2.255", 32, &[4, 32, 192, 0, 2, 255][..]),
        ("192.0.2.255", 25, &[4, 25, 192, 0, 2, 128]),
        ("192.0.2.255", 24, &[4, 24, 192, 0, 2]),
        ("192.0.255.1", 20, &[4, 20, 192, 0, 240]),
        ("192.0.255.1", 0, &[4, 0]),
        ("192.0.2.1", 33, &[4, 32, 192, 0, 2, 1]),
        ("2001:db8:ffff::1", 32, &[6, 32, 0x20, 1, 0xd, 0xb8]),
        ("2001:db8:ffff::1", 35, &[6, 35, 0x20, 1, 0xd, 0xb8, 0xe0]),
        ("2001:db8::1", 255, &[6, 128, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
    ] {
        assert_eq!(address(text).prefix(bits).as_ref(), key, "{text}/{bits}");
    }
    cases(2_000, |rng| {
        let bytes = (rng.next() as u128) << 64 | rng.next() as u128;
        let found = Address::from(Ipv6Addr::from(bytes));
        let bits = rng.below(129) as u8;
        let masked = if bits == 0 { 0 } else { bytes & (u128::MAX << (128 - bits)) };
        let key = found.prefix(bits);
        let length = (bits as usize).div_ceil(8);
        assert_eq!(key.as_ref()[..2], [6, bits]);
        assert_eq!(key.as_ref()[2..], masked.to_be_bytes()[..length], "/{bits}");
    });
}

#[test]
fn bad_ladders_are_refused_by_name() {
    let good = [rung(64, 1)];
    let many: Vec<Rung> = (0..9).map(|i| rung(32 - i, 1)).collect();
    for (v4, error) in [
        (&[][..], LadderError::BadCount),
        (&many[..], LadderError::BadCount),
        (&[rung(33, 1)], LadderError::BadLength),
        (&[rung(32, 0)], LadderError::BadMultiplier),
        (&[rung(24, 1), rung(24, 2)], LadderError::BadOrder),
        (&[rung(24, 1), rung(32, 2)], LadderError::BadOrder),
        (&[rung(32, 2), rung(24, 1)], LadderError::BadOrder),
    ] {
        assert_eq!(Ladder::new(v4, &good), Err(error), "{v4:?}");
    }
    assert_eq!(Ladder::new(&good, &good), Err(LadderError::BadLength), "64 bits of 32");
    assert_eq!(Ladder::new(&[rung(32, 1)], &[rung(129, 1)]), Err(LadderError::BadLength));
    assert_eq!(Ladder::new(&[rung(32, 1)], &[]), Err(LadderError::BadCount));
    assert!(Ladder::new(&many[..8], &[rung(128, 1), rung(0, u32::MAX)]).is_ok());
    let texts: HashSet<String> =
        [LadderError::BadCount, LadderError::BadLength, LadderError::BadMultiplier, LadderError::BadOrder]
            .map(|e| e.to_string())
            .into();
    assert_eq!(texts.len(), 4);
}

const SECOND: u64 = 1_000_000_000;

/// 10 a second, 5 at once for an address; ticks are nanoseconds.
const SPEC: LimitSpec = LimitSpec::new(10, SECOND, 5);

fn options(ladder: &Ladder, spec: &LimitSpec) -> TableOptions {
    ladder.table_options(spec).expect("options").seed([7; 16])
}

#[test]
fn tables_and_limits_that_do_not_fit_are_refused() {
    let (ladder, lines) = (Ladder::DEFAULT, memory(130));
    let narrow = Table::init(&lines, &TableOptions::new(SPEC).seed([7; 16])).unwrap();
    assert_eq!(LadderLimits::new(&narrow, &ladder, &SPEC).err(), Some(TableError::LimitTooFast));
    let lines = memory(130);
    let table = Table::init(&lines, &options(&ladder, &SPEC)).unwrap();
    let limits = LadderLimits::new(&table, &ladder, &SPEC).unwrap();
    let huge = LimitSpec::new(u64::MAX / 2, SECOND, 5);
    let too_large = TableError::Limit(LimitError::NotRepresentable);
    assert_eq!(LadderLimits::new(&table, &ladder, &huge).err(), Some(too_large));
    assert_eq!(ladder.table_options(&huge).err(), Some(too_large));
    let zero = LimitSpec::new(10, SECOND, 0);
    assert_eq!(
        LadderLimits::new(&table, &ladder, &zero).err(),
        Some(TableError::Limit(LimitError::ZeroBurst))
    );
    assert_eq!(limits.check(&narrow, 0, &address("192.0.2.1"), 1), Err(TableError::ForeignLimit));
    let lines = memory(130);
    let caller = Table::init(&lines, &ladder.table_options(&SPEC).unwrap().caller_hash()).unwrap();
    assert_eq!(limits.check(&caller, 0, &address("192.0.2.1"), 1), Err(TableError::BadHashKind));
    assert_eq!((narrow.stats(0).live, caller.stats(0).live), (0, 0));
}

/// Whatever the numbers, a table made by `table_options` has room for every tier.
#[test]
fn options_of_a_ladder_provide_for_all_its_tiers() {
    let lines = memory(4);
    cases(2_000, |rng| {
        let mut spec =
            LimitSpec::new(rng.within(1, 1_000), rng.within(1_000_000, 1 << 40), rng.within(1, 5_000));
        if rng.one_in(2) {
            let most = rng.below(5_000);
            spec = spec.max_debt(most).penalty(rng.below(most + 1)).soft(1);
        }
        let mut rungs = vec![rung(32, 1 + rng.below(3) as u32)];
        while rungs.len() < 4 {
            let last = rungs[rungs.len() - 1];
            rungs.push(rung(last.bits - 1 - rng.below(7) as u8, last.multiplier + rng.below(400) as u32));
        }
        let ladder = Ladder::new(&rungs, &rungs).unwrap();
        match Table::init(&lines, &options(&ladder, &spec)) {
            Ok(table) => assert!(LadderLimits::new(&table, &ladder, &spec).is_ok(), "{ladder:?} {spec:?}"),
            Err(e) => assert_eq!(e, TableError::SpanTooShort, "{ladder:?} {spec:?}"),
        }
    });
}

/// Tiers of windows: each counts for itself, and a table made by `table_options` has room for all.
#[test]
fn tiers_of_windows_count_for_themselves() {
    for spec in [
        LimitSpec::fixed_window(3, SECOND),
        LimitSpec::sliding_counter(3, SECOND),
        LimitSpec::quota_linear(3, SECOND),
    ] {
        let (ladder, lines) = (Ladder::DEFAULT, memory(130));
        let table = Table::init(&lines, &options(&ladder, &spec)).unwrap();
        let limits = LadderLimits::new(&table, &ladder, &spec).unwrap();
        let asked = (0..3u8).flat_map(|host| [host; 5]);
        let passed = asked.filter(|host| {
            let host = Address::from([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, *host]);
            limits.check(&table, SECOND, &host, 1).unwrap().passes()
        });
        assert_eq!(passed.map(u64::from).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1], "{spec:?}");
    }
}

fn random_address(rng: &mut Rng) -> IpAddr {
    let host = rng.below(6) as u8;
    match rng.below(2) {
        // Few of each: hosts, networks, and networks of networks.
        0 => IpAddr::from([198, 51, 100 + 16 * rng.below(3) as u8, host]),
        _ => {
            let mut bytes = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host];
            bytes[5 + rng.below(3) as usize] = rng.below(3) as u8;
            IpAddr::from(bytes)
        }
    }
}

/// A bucket for each prefix, kept by its text; all or none; the first that refuses is named.
#[test]
fn every_tier_answers_as_an_exact_bucket_of_its_prefix() {
    cases(40, |rng| {
        let ladder = if rng.one_in(2) {
            Ladder::DEFAULT
        } else {
            Ladder::new(&[rung(32, 1), rung(19, 3)], &[rung(128, 1), rung(57, 1), rung(44, 2), rung(0, 5)])
                .unwrap()
        };
        // Exact in every tier: 64 q-units of 2^4 a unit, divided by 1 to 768.
        let spec = LimitSpec::new(1, 768 * 3 * 5 * 1024, rng.within(1, 4));
        let lines = memory(258);
        let table = Table::init(&lines, &options(&ladder, &spec)).unwrap();
        let limits = LadderLimits::new(&table, &ladder, &spec).unwrap();
        let s = table.resolution();
        let mut buckets: HashMap<(bool, u8, Vec<u8>), Oracle> = HashMap::new();
        let (mut now, mut refused) = (rng.below(1 << 30), HashSet::new());
        for _ in 0..400 {
            now += if rng.one_in(2) { 0 } else { rng.scaled(23) };
            let written = random_address(rng);
            let (found, cost) = (Address::from(written), rng.pick(&[1, 1, 2]));
            let tiers = ladder.rungs(found.is_v4());
            let keys: Vec<_> = tiers
                .iter()
                .map(|t| {
                    let bits: u128 = match written {
                        IpAddr::V4(a) => (u32::from(a) as u128) << 96,
                        IpAddr::V6(a) => u128::from(a),
                    };
                    let kept = if t.bits == 0 { 0 } else { bits & (u128::MAX << (128 - t.bits)) };
                    (found.is_v4(), t.bits, kept.to_be_bytes().to_vec())
                })
                .collect();
            let mut answers = Vec::new();
            for (key, tier) in keys.iter().zip(tiers) {
                let t_q = ((768u64 * 3 * 5 * 1024) << s.max(0)).div_ceil(tier.multiplier as u64);
                assert!(s >= 0);
                let burst = spec_burst(&spec) * tier.multiplier as u64;
                let bucket = buckets.entry(key.clone()).or_insert_with(|| Oracle::fixed(t_q, s, burst));
                answers.push(bucket.peek(now as u128, cost));
            }
            let d = limits.check(&table, now, &found, cost.into()).unwrap();
            let worst = [2, 1].into_iter().find_map(|bad| answers.iter().position(|a| a.verdict == bad));
            match worst {
                Some(at) => {
                    let retry = answers.iter().map(|a| a.retry_after).max().unwrap();
                    assert_eq!((d.verdict as i32, d.policy as usize), (answers[at].verdict, at), "{written}");
                    assert_eq!(d.retry_after, retry, "{written}");
                    assert_eq!(limits.tier(&found, d.policy), Some(tiers[at]));
                    refused.insert((found.is_v4(), tiers[at].bits));
                }
                None => {
                    assert!(d.passes(), "{written} {d:?}");
                    keys.iter().for_each(|key| {
                        buckets.get_mut(key).unwrap().check(now as u128, cost, 0);
                    });
                }
            }
        }
        assert!(refused.len() > 2, "hardly a tier refused: {refused:?}");
    });
}

fn spec_burst(spec: &LimitSpec) -> u64 {
    spec.build().expect("a limit").burst()
}

/// A flood from forged addresses of one network, each new: no address is over its limit, the network's tier holds.
#[test]
fn a_flood_of_forged_addresses_is_held_by_the_tier_of_its_network() {
    let ladder = Ladder::DEFAULT;
    let lines: Vec<Line> = memory(1 << 12);
    let table = Table::init(&lines, &options(&ladder, &SPEC)).unwrap();
    let limits = LadderLimits::new(&table, &ladder, &SPEC).unwrap();
    let mut rng = Rng(1);
    // Ten seconds of 20 000 a second from random hosts of one /64 and of one /24.
    let (mut passed6, mut passed4, mut tiers) = (0u64, 0u64, HashMap::new());
    for i in 0..200_000u64 {
        let now = i * 50_000;
        let mut host = [0x20, 1, 0xd, 0xb8, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0];
        host[8..].copy_from_slice(&rng.next().to_be_bytes());
        let v4 = [198, 51, 100, rng.below(256) as u8];
        for (found, passed) in [(Address::from(host), &mut passed6), (Address::from(v4), &mut passed4)] {
            let d = limits.check(&table, now, &found, 1).unwrap();
            *passed += d.passes() as u64;
            if !d.passes() {
                *tiers.entry(limits.tier(&found, d.policy).unwrap().bits).or_insert(0u64) += 1;
            }
        }
    }
    // Twice, and 32 times, 5 at once and 10 a second for 10 seconds.
    let (most6, most4) = (2 * (5 + 100), 32 * (5 + 100));
    assert!(passed6 <= most6 && passed6 > most6 * 98 / 100, "{passed6} of {most6}");
    assert!(passed4 <= most4 && passed4 > most4 * 95 / 100, "{passed4} of {most4}");
    assert!(tiers[&64] > 190_000 && tiers[&24] > 100_000, "{tiers:?}");
    // A neighbour in the same /48 is served, one in another network too.
    for innocent in ["2001:db8:1:3::1", "203.0.113.1"] {
        assert!(limits.check(&table, 10 * SECOND, &address(innocent), 1).unwrap().passes(), "{innocent}");
    }
    println!("{passed6} of one /64, {passed4} of one /24; refused by {tiers:?}");
}

#[test]
fn all_forms_of_an_address_share_one_debt() {
    let ladder = Ladder::DEFAULT;
    let lines = memory(130);
    let table = Table::init(&lines, &options(&ladder, &SPEC)).unwrap();
    let limits = LadderLimits::new(&table, &ladder, &SPEC).unwrap();
    let forms =
        ["192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::192.0.2.1", "2002:c000:201::7", "2002:c000:201:8::9"];
    for form in forms {
        assert!(limits.check(&table, 0, &address(form), 1).unwrap().passes());
    }
    for form in forms {
        assert!(!limits.check(&table, 0, &address(form), 1).unwrap().passes(), "{form}");
    }
    assert_eq!(table.stats(0).live, 4, "a slot a tier");
}

#[test]
fn a_chain_of_an_address_gives_all_its_prefixes_back() {
    let ladder = Ladder::DEFAULT;
    let lines = memory(130);
    let table = Table::init(&lines, &options(&ladder, &SPEC)).unwrap();
    let limits = LadderLimits::new(&table, &ladder, &SPEC).unwrap();
    let chain: Chain<'_> = limits.chain(&table, &address("2001:db8::1"), 5).unwrap();
    let mut permits = [Permit::NONE; 5];
    // Of another tick than the inserts, whose claims are not given back.
    assert!(chain.check(0).passes());
    let later = SECOND;
    assert!(chain.check_ex(later, None, |i, d| permits[i] = d.permit).passes());
    assert_eq!((chain.peek(later).policy, chain.peek(later).retry_after), (0, SECOND / 2));
    assert!(chain.refund(later, &mut permits));
    let again = chain.peek(later);
    assert_eq!((again.passes(), again.remaining), (true, 5));
}

#[test]
fn the_limits_of_a_ladder_are_those_of_its_rungs() {
    let ladder = Ladder::new(&[rung(32, 1), rung(24, 16)], &[rung(64, 2)]).expect("a ladder");
    let spec = LimitSpec::new(10, 1_000, 5);
    let lines = memory(34);
    let table = Table::init(&lines, &options(&ladder, &spec)).expect("a table");
    let limits = LadderLimits::new(&table, &ladder, &spec).expect("limits");
    let bursts = |v4| limits.limits(v4).iter().map(|limit| limit.burst()).collect::<Vec<_>>();
    assert_eq!((bursts(true), bursts(false)), (vec![5, 80], vec![10]));
    // A link of one of them is charged with the ladder.
    let hash = table.hash(address("192.0.2.1").prefix(24).as_ref()).expect("a hash");
    assert!(limits.check(&table, 0, &address("192.0.2.1"), 3).expect("a decision").passes());
    let network = table.peek(&limits.limits(true)[1], 0, hash, 1).expect("a decision");
    assert_eq!(network.remaining, 77);
}

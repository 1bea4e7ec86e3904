//! Bans and exemptions of addresses and networks: one key however an address is written, the longest prefix first.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::common::{memory, Rng};
use tatcell::{Address, Line, Override, PrefixLengths, Table, TableError, TableOptions};

const DAY: u64 = 86_400_000;
const ALL: PrefixLengths = PrefixLengths { v4: &[0, 8, 16, 24, 32], v6: &[48, 0, 64, 16, 128, 32] };

fn table(lines: &[Line]) -> Table<'_> {
    Table::init(lines, &TableOptions::overrides(365 * DAY).seed([9; 16])).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// "address/bits"
fn network(text: &str) -> (IpAddr, u8) {
    let (address, bits) = text.split_once('/').expect("a network");
    (ip(address), bits.parse().expect("a length"))
}

/// The lengths by which these are banned; 0xff for one that is not.
fn banned<const N: usize>(table: &Table<'_>, asked: [&str; N]) -> [u8; N] {
    asked.map(|text| match table.overridden_address(10, ip(text), ALL).unwrap() {
        Some((Override::Banned { retry_after: 990 }, bits)) => bits,
        None => 0xff,
        other => panic!("{text}: {other:?}"),
    })
}

/// Every way to write 192.0.2.1.
const SAME: [&str; 4] = ["192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::192.0.2.1", "2002:c000:201:7::9"];

#[test]
fn a_ban_holds_for_every_way_to_write_the_address() {
    for written in SAME {
        let lines = memory(130);
        let table = table(&lines);
        table.ban_address(0, ip(written), 32, 64, 1_000).unwrap();
        assert_eq!(banned(&table, SAME), [32; 4], "banned as {written}");
        assert_eq!(banned(&table, ["192.0.2.2", "::ffff:192.0.2.2", "2002:c000:202::"]), [0xff; 3]);
        assert_eq!(table.lift_address(10, ip(SAME[1]), 32, 64), Ok(true));
        assert_eq!(banned(&table, SAME), [0xff; 4]);
        table.ban_address(0, ip(written), 24, 64, 1_000).unwrap();
        assert_eq!(banned(&table, ["192.0.2.2", "::ffff:192.0.2.2", "192.0.3.1"]), [24, 24, 0xff]);
        assert_eq!(table.ban_address(0, ip(written), 33, 64, 1_000), Err(TableError::BadPrefix));
    }
}

#[test]
fn a_network_is_the_ipv4_network_that_it_is_written_as() {
    for (written, same) in [
        ("192.0.2.77/24", Some("192.0.2.77/24")),
        ("0.0.0.0/0", Some("0.0.0.0/0")),
        ("::ffff:192.0.2.0/120", Some("192.0.2.0/24")),
        ("::ffff:192.0.2.1/128", Some("192.0.2.1/32")),
        ("::ffff:192.0.2.0/97", Some("192.0.2.0/1")),
        ("64:ff9b::192.0.2.0/120", Some("192.0.2.0/24")),
        ("2002:c000:200::/40", Some("192.0.2.0/24")),
        ("2002:c000:200::/17", Some("192.0.2.0/1")),
        // One router, and what lies behind it.
        ("2002:c000:201::/48", Some("192.0.2.1/32")),
        ("2002:c000:201:7::/64", Some("192.0.2.1/32")),
        ("2002:c000:201:7::1/128", Some("192.0.2.1/32")),
        ("2001:db8::1/128", Some("2001:db8::1/128")),
        // All of a range, and more than that, written as an address of the range.
        ("::ffff:0:0/96", None),
        ("64:ff9b::/96", None),
        ("2002::/16", None),
        ("::ffff:192.0.2.1/64", None),
        ("::ffff:0:0/0", None),
        ("64:ff9b::/32", None),
        ("2002::/15", None),
        // Longer than the address.
        ("192.0.2.1/33", None),
        ("192.0.2.1/128", None),
        ("::1/129", None),
    ] {
        let (address, bits) = network(written);
        let same = same.map(network).map(|(same, bits)| (Address::from(same), bits));
        assert_eq!(Address::network(address, bits), same, "{written}");
    }
}

/// They contain ::ffff:0:0/96, 64:ff9b::/96 or 2002::/16, whose addresses are IPv4.
#[test]
fn a_network_around_a_range_of_ipv4_is_one_of_ipv6_addresses_only() {
    for (written, inside, bits) in [
        ("::/0", "2001:db8::1", 0),
        ("::/64", "::1", 64),
        ("::/16", "::1", 16),
        ("2000::/3", "2001:db8::1", 3),
    ] {
        let lines = memory(130);
        let table = table(&lines);
        let (address, length) = network(written);
        let (address, length) = Address::network(address, length).expect("IPv6");
        table.ban_address(0, address, length, length, 1_000).unwrap();
        let asked = PrefixLengths { v4: &[0, 16, 32], v6: &[0, 3, 15, 16, 64, 96, 128] };
        let found = |text| table.overridden_address(10, ip(text), asked).unwrap().map(|(_, bits)| bits);
        assert_eq!(found(inside), Some(bits), "{written}");
        for v4 in SAME.into_iter().chain(["::ffff:0:0", "64:ff9b::", "2002::"]) {
            assert_eq!(found(v4), None, "{written} bans {v4}");
        }
    }
}

#[test]
fn the_longest_prefix_that_is_asked_wins_and_one_that_is_not_asked_does_not_count() {
    let lines = memory(258);
    let table = table(&lines);
    table.ban_address(0, ip("10.0.0.0"), 8, 8, 1_000).unwrap();
    table.exempt_address(0, ip("10.1.0.0"), 16, 16, 1_000).unwrap();
    table.ban_address(0, ip("10.1.2.0"), 24, 255, 1_000).unwrap();
    table.exempt_address(0, ip("2001:db8::"), 255, 32, 1_000).unwrap();
    let (ban, exempt) = (Override::Banned { retry_after: 990 }, Override::Exempt { left: 990 });
    let ask = |text, v4: &[u8]| table.overridden_address(10, ip(text), PrefixLengths { v4, v6: &[48, 32] });
    for (text, v4, wanted) in [
        ("10.1.2.3", &[8, 16, 24, 32][..], Some((ban, 24))),
        ("10.1.2.3", &[32, 24, 16, 8], Some((ban, 24))),
        ("::ffff:10.1.2.3", &[16, 24, 8], Some((ban, 24))),
        ("10.1.3.3", &[8, 16, 24, 32], Some((exempt, 16))),
        ("10.2.3.3", &[8, 16, 24, 32], Some((ban, 8))),
        ("10.1.2.3", &[8, 32], Some((ban, 8))),
        ("10.1.2.3", &[32], None),
        ("10.1.2.3", &[], None),
        ("11.1.2.3", &[8, 16, 24, 32, 0], None),
        ("2001:db8:9::1", &[0], Some((exempt, 32))),
    ] {
        assert_eq!(ask(text, v4), Ok(wanted), "{text} by {v4:?}");
    }
    // The address itself, and nothing else.
    assert_eq!(table.overridden_address(10, ip("10.1.2.3"), PrefixLengths::WHOLE), Ok(None));
    table.ban_address(10, ip("10.1.2.3"), 32, 64, 1_000).unwrap();
    assert_eq!(table.overridden_address(10, ip("10.1.2.3"), PrefixLengths::WHOLE), Ok(Some((ban, 32))));
    for lengths in [PrefixLengths { v4: &[33], v6: &[] }, PrefixLengths { v4: &[], v6: &[129] }] {
        assert_eq!(table.overridden_address(10, ip("::1"), lengths), Err(TableError::BadPrefix));
    }
    let debts = memory(18);
    let debts =
        Table::init(&debts, &TableOptions::new(tatcell::LimitSpec::new(1, 1_000, 1)).seed([9; 16])).unwrap();
    let none = PrefixLengths { v4: &[], v6: &[] };
    assert_eq!(debts.overridden_address(10, ip("::1"), none), Err(TableError::BadAlgorithm));
}

/// Against a list of networks, each compared bit by bit with the canonical address.
#[test]
fn random_networks_decide_as_a_list_of_them_would() {
    const SEED: u64 = 45;
    println!("seed {SEED}");
    let (mut rng, mut seen) = (Rng(SEED), [0; 2]);
    for _ in 0..200 {
        let lines = memory(1_026);
        let table = table(&lines);
        let mut held: Vec<(bool, u8, u128, bool)> = Vec::new();
        let near = |rng: &mut Rng| match rng.below(4) {
            0 => IpAddr::from(Ipv4Addr::from(0xc000_0200 | rng.scaled(12) as u32)),
            1 => IpAddr::from(Ipv6Addr::from(0xffff_c000_0200 | rng.scaled(12) as u128)),
            2 => IpAddr::from(Ipv6Addr::from(
                (0x2002_c000_0200 | rng.scaled(12) as u128) << 80 | u128::from(rng.next()),
            )),
            _ => IpAddr::from(Ipv6Addr::from(0x2001_0db8 << 96 | (rng.scaled(64) as u128) << 60)),
        };
        // What an address is: its family, and its bits from the top.
        let bits_of = |address: IpAddr| {
            let canonical = Address::from(address);
            let bits = canonical.bytes().iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
            (canonical.is_v4(), if canonical.is_v4() { bits << 96 } else { bits })
        };
        let same = |a: u128, b: u128, bits: u8| bits == 0 || (a ^ b) >> (128 - bits) == 0;
        for _ in 0..30 {
            let (written, bits) = (near(&mut rng), rng.pick(&[8, 16, 24, 32, 40, 48, 64, 112, 120, 128]));
            let Some((address, length)) = Address::network(written, bits) else { continue };
            let (v4, from) = bits_of(written);
            let exempt = rng.one_in(2);
            let done = if exempt {
                table.exempt_address(0, address, length, length, 1_000)
            } else {
                table.ban_address(0, address, length, length, 1_000)
            };
            if done == Err(TableError::OverrideClash) {
                continue;
            }
            done.unwrap();
            held.retain(|old| !(old.0 == v4 && old.1 == length && same(old.2, from, length)));
            held.push((v4, length, from, exempt));
        }
        let lengths = PrefixLengths { v4: &[8, 16, 24, 32], v6: &[16, 32, 48, 64, 112, 128] };
        for _ in 0..100 {
            let address = near(&mut rng);
            let (v4, from) = bits_of(address);
            let asked = if v4 { lengths.v4 } else { lengths.v6 };
            let wanted = held
                .iter()
                .filter(|old| old.0 == v4 && asked.contains(&old.1) && same(old.2, from, old.1))
                .max_by_key(|old| old.1)
                .map(|old| (old.3, old.1));
            let found = table.overridden_address(10, address, lengths).unwrap();
            let found = found.map(|(made, bits)| (matches!(made, Override::Exempt { .. }), bits));
            assert_eq!(found, wanted, "{address}");
            seen[usize::from(found.is_some())] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > 2_000), "{seen:?}");
}

#[test]
fn the_hash_of_a_prefix_is_that_of_its_key() {
    let lines = memory(18);
    let table = table(&lines);
    for text in SAME {
        let address = Address::from(ip(text));
        assert_eq!(address.prefix_of(24, 56), Some(address.prefix(24)));
        assert_eq!(table.prefix_hash(&address, 24, 56), table.hash(&[4, 24, 192, 0, 2]));
    }
    let native = Address::from(ip("2001:db8:1:2ff::1"));
    assert_eq!(table.prefix_hash(&native, 24, 56), table.hash(&[6, 56, 0x20, 1, 0xd, 0xb8, 0, 1, 2]));
    assert_eq!([native.prefix_of(33, 129), Address::from([0; 4]).prefix_of(33, 56)], [None; 2]);
    assert_eq!(table.prefix_hash(&native, 24, 129), Err(TableError::BadPrefix));
    let lines = memory(18);
    let hashes = Table::init(&lines, &TableOptions::overrides(DAY).caller_hash()).unwrap();
    assert_eq!(hashes.prefix_hash(&native, 24, 56), Err(TableError::BadHashKind));
    assert_eq!(hashes.ban_address(0, ip("::1"), 32, 128, 10), Err(TableError::BadHashKind));
}

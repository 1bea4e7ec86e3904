//! Addresses, prefixes and ladders: one address has one key, different addresses have different keys, as in std.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tatcell::{
    Address, AttachOptions, HashKind, Ladder, LadderError, LadderLimits, LimitSpec, Rung, Table, TableOptions,
};

use super::pool::piece;
use crate::data::Data;

/// An address of 16 bytes: any, or one with an IPv4 address in it.
fn v6(data: &mut Data<'_>) -> [u8; 16] {
    let mut bytes: [u8; 16] = core::array::from_fn(|_| data.byte());
    match data.below(8) {
        0 => bytes[..12].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]),
        1 => bytes[..12].copy_from_slice(&[0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]),
        2 => bytes[..2].copy_from_slice(&[0x20, 0x02]),
        3 => bytes[..12].fill(0),
        _ => {}
    }
    bytes
}

/// What std and the standards say an address is: IPv4-mapped, NAT64 and 6to4 addresses are their IPv4 address.
fn canonical(bytes: [u8; 16]) -> IpAddr {
    let address = Ipv6Addr::from(bytes);
    let s = address.segments();
    let v4 = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match s {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        _ => IpAddr::V6(address),
    }
}

/// The first bits of an address, the rest 0, as one number.
fn top_bits(bytes: &[u8], bits: u32) -> u128 {
    let number = bytes.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
    let width = bytes.len() as u32 * 8;
    number.checked_shr(width - bits.min(width)).unwrap_or(0)
}

pub fn run(input: &[u8]) {
    let data = &mut Data(input);
    let (a, b) = (v6(data), if data.flag() { v6(data) } else { twin(data) });
    let (first, second) = (Address::from(a), Address::from(b));
    for (address, bytes) in [(first, a), (second, b)] {
        let want = canonical(bytes);
        let same = match want {
            IpAddr::V4(v4) => address.is_v4() && address.bytes() == v4.octets(),
            IpAddr::V6(v6) => !address.is_v4() && address.bytes() == v6.octets(),
        };
        assert!(same && Address::from(want) == address, "{want} became {address:?}");
        assert_eq!(Address::new(&bytes), Some(address));
        assert_eq!(Address::new(address.bytes()), Some(address), "canonical twice is canonical once");
    }
    assert_eq!(canonical(a) == canonical(b), first == second);
    let length = data.below(32) as usize;
    assert_eq!(Address::new(&[7; 32][..length]).is_some(), length == 4 || length == 16);

    // Keys of prefixes are equal where family, length and bits are, and nowhere else.
    let (p, q) = (data.byte(), data.byte());
    let most = |address: &Address| address.bytes().len() as u32 * 8;
    let cut = |address: &Address, bits: u8| {
        let bits = u32::from(bits).min(most(address));
        (address.is_v4(), bits, top_bits(address.bytes(), bits))
    };
    let (x, y) = (first.prefix(p), second.prefix(q));
    assert_eq!(x.as_ref() == y.as_ref(), cut(&first, p) == cut(&second, q), "{first:?}/{p} {second:?}/{q}");
    let key = x.as_ref();
    assert_eq!((key[0], u32::from(key[1])), (if first.is_v4() { 4 } else { 6 }, cut(&first, p).1));
    assert_eq!(key.len(), 2 + cut(&first, p).1.div_ceil(8) as usize);
    hashes(data, key);
    ladder(data, &[first, second]);
}

/// Addresses that are the same, or nearly.
fn twin(data: &mut Data<'_>) -> [u8; 16] {
    let [a, b, c, d] = core::array::from_fn(|_| data.byte());
    match data.below(3) {
        0 => [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d],
        1 => [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d],
        _ => [0x20, 0x02, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    }
}

/// Another byte or another length is another hash, by either keyed hash; equal keys have equal ones.
fn hashes(data: &mut Data<'_>, key: &[u8]) {
    let mut other = key.to_vec();
    match data.below(3) {
        0 => other.push(0),
        1 => drop(other.pop()),
        _ => {
            let at = usize::from(data.byte()) % other.len();
            other[at] ^= 1 << data.below(8);
        }
    }
    for kind in [HashKind::SipHash13, HashKind::Aes].into_iter().filter(|kind| kind.is_available()) {
        let memory = piece();
        let options = TableOptions::new(LimitSpec::new(1, 1_000, 8)).hash(kind).seed([7; 16]);
        let table = Table::init(memory.lines(4), &options).expect("good options");
        let attached =
            Table::attach(memory.lines(4), &AttachOptions::new().seed([7; 16])).expect("made above");
        let hash = table.hash(key);
        assert_eq!(attached.hash(key), hash);
        assert_ne!(table.hash(&other), hash, "{kind:?}: {key:?} and {other:?}");
    }
}

/// Any rungs are refused, or fall in length and do not fall in what they allow; and then each address has its limits.
fn ladder(data: &mut Data<'_>, addresses: &[Address; 2]) {
    let rungs = |data: &mut Data<'_>| -> Vec<Rung> {
        let count = data.below(10);
        (0..count).map(|_| Rung { bits: data.byte(), multiplier: data.scaled(32) as u32 }).collect()
    };
    let (v4, v6) = (rungs(data), rungs(data));
    let in_order = |rungs: &[Rung], most: u8| {
        let each = |rung: &Rung| rung.bits <= most && rung.multiplier > 0;
        let order = |two: &[Rung]| two[0].bits > two[1].bits && two[0].multiplier <= two[1].multiplier;
        (1..=8).contains(&rungs.len()) && rungs.iter().all(each) && rungs.windows(2).all(order)
    };
    let made = Ladder::new(&v4, &v6);
    assert_eq!(made.is_ok(), in_order(&v4, 32) && in_order(&v6, 128), "{v4:?} {v6:?}: {made:?}");
    let ladder = match made {
        Ok(ladder) => {
            assert_eq!((ladder.rungs(true), ladder.rungs(false)), (&v4[..], &v6[..]));
            ladder
        }
        Err(
            LadderError::BadCount
            | LadderError::BadLength
            | LadderError::BadMultiplier
            | LadderError::BadOrder,
        ) => Ladder::DEFAULT,
        Err(other) => panic!("{other:?}"),
    };
    let spec = LimitSpec::new(1 + data.scaled(10), 1 + data.scaled(30), 1 + data.scaled(8));
    let Ok(options) = ladder.table_options(&spec) else { return };
    let memory = piece();
    let Ok(table) = Table::init(memory.lines(18), &options.caller_hash()) else { return };
    let Ok(limits) = LadderLimits::new(&table, &ladder, &spec) else { return };
    assert_eq!(limits.ladder().rungs(true), ladder.rungs(true));
    for address in addresses {
        let count = ladder.rungs(address.is_v4()).len() as u32;
        assert!(limits.tier(address, count).is_none());
        assert_eq!(limits.tier(address, 0).as_ref(), ladder.rungs(address.is_v4()).first());
    }
}

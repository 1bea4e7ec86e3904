//! The natural path of a Rust server that limits by address: a clock is read, the prefix of an address becomes a key,
//! and one check decides. Next to governor as it is shipped, with its own clock and hash, keyed by the address. And the
//! parts of it that have no table: an address is read, and its prefix becomes a key.

use std::hint::black_box;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::rc::Rc;

use governor::{Quota, RateLimiter};
use tatcell::host::TickClock;
use tatcell::{Address, HashKind, LimitSpec, Outcome, Table, TableError, TableLimit, TableOptions};

use crate::cells::CELL;
use crate::fixtures::{slots_for, visits};
use crate::keys::{key, Stream};
use crate::memory::Memory;
use crate::suite::{Body, Mix, Suite};

/// Units a second and burst, which nobody here uses up.
const RATE: u32 = 50_000_000;

pub fn add(suite: &mut Suite) {
    suite.add("address.from", "Address::from, IPv6", Mix::All, CELL, |_| {
        parts(|address| usize::from(!black_box(Address::from(address)).is_v4()))
    });
    suite.add("address.prefix", "Address::from, prefix of 64 bits, IPv6", Mix::All, CELL, |_| {
        parts(|address| usize::from(!black_box(Address::from(address).prefix(64)).as_ref().is_empty()))
    });
    let clock = match TickClock::calibrate(20_000_000) {
        Ok(clock) => clock,
        Err(_) => return suite.skip("ip", "this processor has no counter that is a clock"),
    };
    for (name, count) in [("1", 1), ("1e5", 100_000)] {
        let text = format!("{name} addresses, TickClock, prefix of 64 bits, check");
        suite.add(&format!("ip.prefix_{name}"), &text, Mix::All, visits(count), |_| {
            ours(clock, count, |table, limit, now, address| {
                let prefix = address.prefix_of(32, 64).ok_or(TableError::BadPrefix)?;
                table.check(limit, now, prefix.as_ref(), 1)
            })
        });
        let text = format!("{name} addresses, TickClock, hash of a prefix of 64 bits, check");
        suite.add(&format!("ip.prefix_hash_{name}"), &text, Mix::All, visits(count), |_| {
            ours(clock, count, |table, limit, now, address| {
                table.check_hash(limit, now, table.prefix_hash(address, 32, 64)?, 1)
            })
        });
        let text = format!("{name} addresses, governor as shipped, with its clock");
        suite.add(&format!("ip.governor_{name}"), &text, Mix::All, visits(count), |_| governor(count));
    }
}

/// One address of a /64 of its own.
fn address(id: u64) -> IpAddr {
    let key = key(id);
    let (network, host) = key.split_at(8);
    let mut octets = [0; 16];
    octets[..8].copy_from_slice(host);
    octets[8..].copy_from_slice(network);
    octets[0] = 0x20;
    octets[1] = 0x01;
    IpAddr::V6(Ipv6Addr::from(octets))
}

/// What becomes of each address alone, of a thousand.
fn parts(one: impl Fn(IpAddr) -> usize + 'static) -> Body {
    let addresses: Vec<IpAddr> = (0..1024).map(address).collect();
    Box::new(move |n| {
        let each = addresses.iter().cycle().take(n as usize);
        each.map(|&address| one(black_box(address)) as u64).sum()
    })
}

type Decided = Result<Outcome, TableError>;

fn ours(
    clock: TickClock,
    count: u32,
    check: impl Fn(&Table<'_>, &TableLimit, u64, &Address) -> Decided + 'static,
) -> Body {
    let memory = Rc::new(Memory::new(tatcell::lines_for(slots_for(count as usize)) * 64));
    let spec = LimitSpec::new(u64::from(RATE), clock.ticks_per_sec(), u64::from(RATE));
    let options = TableOptions::new(spec).seed(*b"not so secret 16").hash(HashKind::Aes);
    let mut stream = Stream::uniform(count);
    Table::init(memory.lines(), &options).expect("a table");
    Box::new(move |n| {
        let attach = tatcell::AttachOptions::new().seed(*b"not so secret 16");
        let table = Table::attach(memory.lines(), &attach).expect("a table");
        let (limit, mut passed) = (table.limit(&spec).expect("a limit"), 0);
        let (ids, turn) = stream.take(n as usize);
        for &id in ids {
            let address = Address::from(black_box(address(turn.id(id))));
            let decided = check(&table, &limit, clock.now(), &address);
            passed += u64::from(decided.is_ok_and(|outcome| outcome.passes()));
        }
        passed
    })
}

fn governor(count: u32) -> Body {
    let rate = NonZeroU32::new(RATE).expect("not 0");
    let limiter = RateLimiter::keyed(Quota::per_second(rate));
    let mut stream = Stream::uniform(count);
    Box::new(move |n| {
        let (ids, turn) = stream.take(n as usize);
        ids.iter().filter(|&&id| limiter.check_key(&black_box(address(turn.id(id)))).is_ok()).count() as u64
    })
}

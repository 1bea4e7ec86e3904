//! Tables of 64 slots with more keys than room, under each policy; keyed by SipHash, by the caller, and in bursts.

use crate::digest::Trace;
use tatcell::{
    Access, Burst, Counters, Exclusive, ExclusiveTable, FullPolicy, LimitSpec, Line, NextBurst, Permit,
    Request, Shared, Table, TableError, TableOptions,
};

pub const POLICIES: [FullPolicy; 4] =
    [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled];
/// Two of header and 64 slots.
const LINES: usize = 10;
const EVENTS: u64 = 8_000;
const KEYED: u64 = 24_000;
const BURSTS: u64 = 2_000;
/// Keys of a table: a quarter more than slots, and their debts overlap.
const KEYS: u64 = 80;
const SEED: [u8; 16] = *b"0123456789abcdef";

const FAST: LimitSpec =
    LimitSpec::new(1_000, 1_000_000_000, 12).soft(8).max_room(3).max_delay(9_000_000).max_debt(5);
const SLOW: LimitSpec = LimitSpec::new(100, 1_000_000_000, 6).epoch(3);

fn options() -> TableOptions {
    TableOptions::new(FAST).slowest(SLOW)
}

const fn name(policy: FullPolicy) -> &'static str {
    match policy {
        FullPolicy::Admit => "table-admit",
        FullPolicy::Inherit => "table-inherit",
        FullPolicy::Deny => "table-deny",
        FullPolicy::Sampled => "table-sampled",
    }
}

pub fn shared(policy: FullPolicy, flip: Option<u64>) -> Trace {
    let lines = [Line::EMPTY; LINES];
    let mut t = Trace::new(name(policy), EVENTS, flip);
    match Table::<Shared>::init(&lines, &options().policy(policy).caller_hash()) {
        Ok(table) => drive(&mut t, &table),
        Err(e) => t.table_error(e),
    }
    t
}

pub fn exclusive(policy: FullPolicy, flip: Option<u64>) -> Trace {
    let mut lines = [Line::EMPTY; LINES];
    let mut t = Trace::new(name(policy), EVENTS, flip);
    match ExclusiveTable::init_exclusive(&mut lines, &options().policy(policy).caller_hash()) {
        Ok(table) => drive(&mut t, &table),
        Err(e) => t.table_error(e),
    }
    t
}

/// Every operation, the hash brought along.
fn drive<M: Access>(t: &mut Trace, table: &Table<'_, M>) {
    let (Ok(fast), Ok(slow)) = (table.limit(&FAST), table.limit(&SLOW)) else {
        return t.table_error(TableError::ForeignLimit);
    };
    let mut counters = Counters::default();
    let mut permit = (0, Permit::NONE);
    let mut sweep = 0;
    // The clock of a table wraps with its word, long before this u64 does.
    let mut now: u64 = 1 << 50;
    for _ in 0..EVENTS {
        now = t.step(now, 18);
        let r = t.random();
        let key = (r >> 8) % KEYS;
        let hash = (key + 1).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(32);
        let limit = if key % 4 == 0 { &slow } else { &fast };
        let cost = u64::from(t.cost(limit.burst()));
        match r % 32 {
            0..=3 => {
                let request = Request { limit, now, cost, room: (r >> 16) % 5 };
                match table.check_ex(&request, hash, Some(&mut counters)) {
                    Ok(d) => {
                        t.decision(&d);
                        permit = (hash, d.permit);
                    }
                    Err(e) => t.table_error(e),
                }
            }
            4 => match table.charge(limit, now, hash, cost, Some(&mut counters)) {
                Ok(d) => t.decision(&d),
                Err(e) => t.table_error(e),
            },
            5..=6 => {
                match table.refund(limit, now, permit.0, &permit.1) {
                    Ok(left) => t.put(left.unwrap_or(u64::MAX)),
                    Err(e) => t.table_error(e),
                }
                permit.1 = Permit::NONE;
            }
            7..=9 => match table.reserve(limit, now, hash, cost, Some(&mut counters)) {
                Ok(d) => {
                    t.decision(&d);
                    permit = (hash, d.permit);
                }
                Err(e) => t.table_error(e),
            },
            10 => match table.peek(limit, now, hash, cost) {
                Ok(d) => t.decision(&d),
                Err(e) => t.table_error(e),
            },
            11 if r >> 60 == 0 => t.put(table.reset_key(now, hash) as u64),
            12 => {
                sweep = table.sweep(now, sweep, 5);
                t.put(sweep as u64);
            }
            13 if r >> 60 == 0 => {
                let s = table.stats(now);
                for value in [s.load_ppm as u64, s.slots, s.live, s.claims, s.expired] {
                    t.put(value);
                }
                s.debt.into_iter().for_each(|value| t.put(value));
            }
            14 => {
                let found = table.next_live(now, ((r >> 8) % 64) as usize);
                t.put(found.map_or(u64::MAX, |s| s.reset_after ^ (s.tag as u64) << 32 ^ s.number as u64));
            }
            _ => match table.check_hash(limit, now, hash, cost) {
                Ok(outcome) => t.outcome(outcome),
                Err(e) => t.table_error(e),
            },
        }
        t.next();
    }
    let c = counters;
    for value in [
        c.conforming,
        c.soft,
        c.shadow,
        c.non_conforming,
        c.never,
        c.contended,
        c.untracked,
        c.inherited,
        c.forgiven,
        c.inserted,
    ] {
        t.put(value);
    }
}

/// Plain checks of byte keys under SipHash, and at the end the image: header and every slot.
pub fn keyed(flip: Option<u64>) -> Trace {
    let lines = [Line::EMPTY; LINES];
    let mut t = Trace::new("table-siphash", KEYED, flip);
    let table = match Table::init(&lines, &options().seed(SEED)) {
        Ok(table) => table,
        Err(e) => {
            t.table_error(e);
            return t;
        }
    };
    let Ok(limit) = table.limit(&FAST) else { return t };
    let mut now: u64 = u64::MAX - (1 << 36);
    for _ in 0..KEYED {
        now = t.step(now, 18);
        // Keys of 1 to 20 bytes, in network order.
        let id = t.random() % KEYS;
        let mut key = [0u8; 20];
        let long = id as usize % 20 + 1;
        for (i, byte) in key.iter_mut().enumerate() {
            *byte = (id as u8).wrapping_mul(i as u8 + 3);
        }
        let cost = u64::from(t.cost(limit.burst()));
        match table.check(&limit, now, &key[..long], cost) {
            Ok(outcome) => t.outcome(outcome),
            Err(e) => t.table_error(e),
        }
        t.next();
    }
    let mut image = [0u64; LINES * 8];
    match table.save(now, &mut image) {
        Ok(words) => t.put(words as u64),
        Err(e) => t.table_error(e),
    }
    image.into_iter().for_each(|word| t.put(word));
    t
}

/// Bursts of up to 64 requests with repeated keys.
pub fn burst(flip: Option<u64>) -> Trace {
    let mut lines = [Line::EMPTY; LINES];
    let mut t = Trace::new("table-burst", BURSTS, flip);
    let table: Table<'_, Exclusive> = match Table::init_exclusive(&mut lines, &options().seed(SEED)) {
        Ok(table) => table,
        Err(e) => {
            t.table_error(e);
            return t;
        }
    };
    let Ok(limit) = table.limit(&FAST) else { return t };
    let mut now: u64 = 1 << 40;
    for _ in 0..BURSTS {
        now = t.step(now, 24);
        let count = (t.random() % 65) as usize;
        let (mut hashes, mut costs) = ([0u64; 64], [0u32; 64]);
        for (hash, cost) in hashes.iter_mut().zip(&mut costs).take(count) {
            let key = (t.random() % 48) as u32;
            *hash = table.hash(&key.to_be_bytes()).unwrap_or(0);
            *cost = t.cost(3);
        }
        let burst = Burst { costs: Some(&costs[..count]), ..Burst::new(&limit, now, &hashes[..count]) };
        match burst.check(&table, None, NextBurst::NONE) {
            Ok(pass) => t.passed(pass, count as u32),
            Err(e) => t.table_error(e),
        }
        t.next();
    }
    t
}

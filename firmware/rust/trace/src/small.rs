//! The small forms: plain limits on native words, and the small keyed table, through wraps of their clocks.

use crate::digest::Trace;
use tatcell::{
    Cell, Cell32, ExclusiveCell, FullPolicy, Outcome, SmallLimit, SmallLimit32, SmallSlot, SmallTable,
};

const KEYS: usize = 4;
const EVENTS: u64 = 16_000;
pub const POLICIES: [FullPolicy; 3] = [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny];

macro_rules! must {
    ($limit:expr) => {
        match $limit {
            Ok(limit) => limit,
            Err(_) => panic!("a limit of the trace is not valid"),
        }
    };
}

const LIMITS: [SmallLimit; KEYS] = [
    must!(SmallLimit::shaped(10, 1_000_000_000, 20, 300_000_000)),
    must!(SmallLimit::shaped(125_000_000, 1_000_000_000, 96_000, 5_000)),
    must!(SmallLimit::shaped(3, 1_000_000_007, 9, 1)),
    must!(SmallLimit::new(1, 86_400_000_000_000, 3)),
];

const LIMITS32: [SmallLimit32; KEYS] = [
    must!(SmallLimit32::shaped(10, 1_000_000, 20, 300_000)),
    must!(SmallLimit32::shaped(1, 1_000, 1_000, 2_000)),
    must!(SmallLimit32::shaped(3, 1_000_000, 9, 1)),
    must!(SmallLimit32::new(64, 1_000, 128)),
];

const BURSTS: [[u64; KEYS]; 2] = [[20, 96_000, 9, 3], [20, 1_000, 9, 128]];

macro_rules! section {
    ($function:ident, $name:literal, $cell:ident, $word:ty, $limits:ident, $bursts:expr, $bits:literal, $start:expr) => {
        pub fn $function(flip: Option<u64>) -> Trace {
            // An exclusive cell needs `mut`, a shared one does not.
            #[allow(unused_mut)]
            let mut cells = [const { $cell::new() }; KEYS];
            let mut t = Trace::new($name, EVENTS, flip);
            let mut now: $word = $start;
            for _ in 0..EVENTS {
                now = t.step(now as u64, $bits) as $word;
                let r = t.random();
                let key = ((r >> 8) % KEYS as u64) as usize;
                let (cell, limit) = (&mut cells[key], &$limits[key]);
                let cost = t.cost($bursts[key]);
                match r % 16 {
                    0..=2 => match cell.reserve_small(limit, now, cost) {
                        Ok(wait) => t.put(wait as u64),
                        Err(outcome) => t.outcome(outcome),
                    },
                    3..=5 => t.outcome(cell.check_unit(limit, now)),
                    6 => cell.idle(limit, now),
                    _ => t.outcome(cell.check_small(limit, now, cost)),
                }
                t.put(cells[key].word() as u64);
                t.next();
            }
            t
        }
    };
}

section!(cell, "small-cell", Cell, u64, LIMITS, BURSTS[0], 34, u64::MAX - (1 << 42));
section!(exclusive, "small-cell-exclusive", ExclusiveCell, u64, LIMITS, BURSTS[0], 34, u64::MAX - (1 << 42));
section!(cell32, "small-cell32", Cell32, u32, LIMITS32, BURSTS[1], 19, u32::MAX - (1 << 25));

/// 64 slots, 80 keys of 1 to 20 bytes.
pub fn table(policy: FullPolicy, flip: Option<u64>) -> Trace {
    const LIMIT: SmallLimit32 = must!(SmallLimit32::new(1_000, 1_000_000, 12));
    let name = match policy {
        FullPolicy::Admit => "small-table-admit",
        FullPolicy::Inherit => "small-table-inherit",
        _ => "small-table-deny",
    };
    let mut t = Trace::new(name, EVENTS, flip);
    let mut slots = [SmallSlot::EMPTY; 64];
    let mut table = match SmallTable::new(&mut slots, LIMIT, policy) {
        Ok(table) => table,
        Err(e) => {
            t.table_error(e);
            return t;
        }
    };
    table.seed(*b"8 random");
    let mut now = u32::MAX - (1 << 24);
    for _ in 0..EVENTS {
        now = t.step(now as u64, 8) as u32;
        let id = t.random() % 80;
        let mut key = [0u8; 20];
        for (i, byte) in key.iter_mut().enumerate() {
            *byte = (id as u8).wrapping_mul(i as u8 + 3) ^ 0x5a;
        }
        let cost = t.cost(12);
        if t.random() % 4096 == 0 {
            table.sweep(now);
        }
        match table.check(now, &key[..id as usize % 20 + 1], cost) {
            Ok(outcome) => t.outcome(outcome),
            Err(e) => t.table_error(e),
        }
        t.next();
    }
    t.put(table.full() as u64);
    let peek: Outcome = table.check_hash(now, 0x1234_5678, 0);
    t.outcome(peek);
    t
}

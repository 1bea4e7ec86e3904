//! Fixtures: a table with all its keys in it, its limit, its stream and its time; each is made once, and rows with the
//! same needs share it. A fixture is chosen for its mix and the order of its keys:
//!
//! ```text
//! conforming  each key comes at half its rate: about half the words are live, half expired
//! denied      each key has one unit in 1024 of its visits and spent it: nearly every decision is a denied hit
//! mixed       each key comes at its rate and has a burst of 1: every other request passes
//! Zipf        the most frequent key comes at half its rate; nearly all other words have expired when they come again
//! each turn   each key comes once a pass, at an instant of its own, and has drained when it comes again; no new ones
//! paced       each key may come 200 times a second by a clock that is read: see paced
//! staggered   each key comes at an instant of its own and has drained when it comes again: see stagger
//! churn       every key is new; it occupies its slot for as long as a quarter of all slots need to fill
//! ```
//!
//! A table has room for at least twice its keys; a few keys in a thousand find their set full at first and get a
//! slot when one expires.

use std::cell::RefCell;
use std::rc::Rc;

use tatcell::{
    lines_for, Access, Burst, Exclusive, FullPolicy, HashKind, LimitSpec, NextBurst, Shared, Table,
    TableOptions,
};

use crate::fixture::{keyed, keyed4, mix64, Fixture};
use crate::keys::{harmonic, key, Stream};
use crate::memory::Memory;
use crate::steps::{ahead, lone};
use crate::suite::{Mix, DT};
use crate::traffic::Traffic;

const SEED: [u8; 16] = *b"not so secret 16";

/// Slots of a table for this many keys: load 0.48 at most.
pub const fn slots_for(keys: usize) -> usize {
    keys * 21 / 10
}

/// Untimed and timed decisions of a visit: enough to fill the caches again.
pub const fn visits(keys: u32) -> (u64, u64) {
    match keys {
        0..=4_096 => (1 << 13, 1 << 16),
        4_097..=200_000 => (1 << 17, 1 << 17),
        _ => (1 << 19, 1 << 18),
    }
}

/// Period and burst under which a stream of `keys` uniform keys does what `mix` says; the peers get the same.
pub fn spec(keys: u32, mix: Mix) -> (u64, u64) {
    let visit = u64::from(keys) * DT;
    match mix {
        Mix::Deny => (visit * 1024, 1),
        Mix::Mixed => (visit, 1),
        _ => (visit / 2, 32),
    }
}

/// The same for a conforming Zipf stream.
pub fn zipf_spec(keys: u32) -> (u64, u64) {
    ((DT as f64 * harmonic(keys) / 2.0) as u64, 32)
}

/// The emission interval that keeps a quarter of the slots of the 1e6 table busy when every key is new.
pub const CHURN_PERIOD: u64 = slots_for(1_000_000) as u64 / 4 * DT;

/// The emission interval of paced requests: 5 ms, a key may come 200 times a second.
pub const PACED_PERIOD: u64 = 5_000_000;

/// Live slots of 100 slots where keys come in turn.
const LOAD_OF_TURNS: u64 = 5;

/// Who hashes.
#[derive(Clone, Copy, PartialEq)]
pub enum Hashing {
    /// The table, by the fastest keyed hash of this processor: AES, or SipHash where there is none.
    Fast,
    /// The table, by SipHash-1-3.
    Sip,
    /// The caller, by something that costs next to nothing.
    Caller,
}

impl Hashing {
    pub fn kind(self) -> HashKind {
        match self {
            Hashing::Fast if HashKind::Aes.is_available() => HashKind::Aes,
            Hashing::Caller => HashKind::Caller,
            _ => HashKind::SipHash13,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    Uniform,
    Zipf,
    /// Uniform, from one or two threads: each key comes at a quarter or at half of its rate.
    Threads,
    /// Each key in turn; loads of tables too large for a stream of all their keys.
    EachTurn,
    /// Uniform, under a clock that is read.
    Paced,
    /// Every key new.
    Churn,
    /// Keys that the caller inserts, each in turn; `home` tells two such tables apart.
    Cycle {
        home: bool,
    },
    /// Known keys in turn and new ones between them, which their rows insert.
    Staggered(Traffic),
}

/// What a table is filled with and asked.
#[derive(Clone, Copy, PartialEq)]
pub struct What {
    pub keys: u32,
    pub mix: Mix,
    pub hashing: Hashing,
    /// Bytes of a key: 4 or 16.
    pub bytes: usize,
    pub order: Order,
    pub policy: FullPolicy,
    /// Ask for huge pages.
    pub huge: bool,
}

impl What {
    pub fn new(keys: u32) -> What {
        let (mix, hashing, order) = (Mix::Pass, Hashing::Fast, Order::Uniform);
        What { keys, mix, hashing, bytes: 16, order, policy: FullPolicy::Admit, huge: true }
    }

    fn spec(&self) -> (u64, u64) {
        match self.order {
            Order::Uniform | Order::Cycle { .. } => spec(self.keys, self.mix),
            Order::Threads => (u64::from(self.keys) * DT / 4, 32),
            Order::Zipf => zipf_spec(self.keys),
            Order::EachTurn => (self.slots() as u64 * LOAD_OF_TURNS / 100 * DT, 32),
            Order::Paced => (PACED_PERIOD, 32),
            Order::Churn => (CHURN_PERIOD, 1),
            Order::Staggered(traffic) => (traffic.period, 32),
        }
    }

    fn slots(&self) -> usize {
        match self.order {
            Order::Staggered(traffic) => traffic.slots,
            _ => slots_for(self.keys as usize),
        }
    }

    fn stream(&self) -> Stream {
        match self.order {
            Order::Zipf => Stream::zipf(self.keys),
            Order::Staggered(traffic) => traffic.stream(),
            Order::EachTurn => Stream::turns(self.keys),
            _ => Stream::uniform(self.keys),
        }
    }

    /// The hash that the rows of this table use.
    fn hash<M: Access>(&self) -> fn(&Table<'static, M>, u64) -> u64 {
        match (self.hashing, self.bytes) {
            (Hashing::Caller, _) => mix64,
            (_, 4) => keyed4,
            _ => keyed,
        }
    }
}

/// The shared tables of a run.
#[derive(Default)]
pub struct Fixtures(Vec<(What, Rc<RefCell<Fixture<Shared>>>)>);

impl Fixtures {
    pub fn get(&mut self, what: What, notes: &mut Vec<String>) -> Rc<RefCell<Fixture<Shared>>> {
        if let Some((_, fixture)) = self.0.iter().find(|(known, _)| *known == what) {
            return fixture.clone();
        }
        let fixture = another(what, notes);
        self.0.push((what, fixture.clone()));
        fixture
    }
}

/// A table that no other row has, in memory of its own.
pub fn another(what: What, notes: &mut Vec<String>) -> Rc<RefCell<Fixture<Shared>>> {
    let init = |memory: &mut Memory, o: &TableOptions| Table::init(memory.lines(), o).expect("a table");
    Rc::new(RefCell::new(make(init, what, notes)))
}

/// A table with one owner.
pub fn exclusive(what: What, notes: &mut Vec<String>) -> Fixture<Exclusive> {
    let init = |memory: &mut Memory, o: &TableOptions| {
        Table::init_exclusive(memory.lines_mut(), o).expect("a table")
    };
    make(init, what, notes)
}

fn make<M: Access>(
    init: fn(&mut Memory, &TableOptions) -> Table<'static, M>,
    what: What,
    notes: &mut Vec<String>,
) -> Fixture<M> {
    let What { keys, order, policy, hashing, .. } = what;
    let (period, burst) = what.spec();
    let spec = LimitSpec::new(1, period, burst);
    let bytes = lines_for(what.slots()) * 64;
    let mut memory = if what.huge { Memory::new(bytes) } else { Memory::small_pages(bytes) };
    let options = TableOptions::new(spec).policy(policy).hash(hashing.kind());
    let options = if hashing == Hashing::Caller { options } else { options.seed(SEED) };
    let table = init(&mut memory, &options);
    let note = format!("{keys} keys: {} on huge pages", memory.huge_pages());
    if what.huge && keys >= 1_000_000 && !notes.contains(&note) {
        notes.push(note);
    }
    let limit = table.limit(&spec).expect("a limit");
    let mut fixture = Fixture { table, limit, stream: what.stream(), now: 1 << 40, fresh: 0 };
    if order == Order::EachTurn {
        turn(&mut fixture, keys);
    } else if !matches!(order, Order::Churn | Order::Cycle { .. } | Order::Staggered(_)) {
        fill(&mut fixture, &what, period);
    }
    fixture
}

/// Lets each key come once, one after the other.
fn turn<M: Access>(fixture: &mut Fixture<M>, keys: u32) {
    let mut left = u64::from(keys);
    while left > 0 {
        let n = left.min(1 << 18).next_multiple_of(64);
        ahead::<M, 64, 16>(fixture, n, key);
        left = left.saturating_sub(n);
    }
}

/// Inserts all keys, then lets time pass until the mix is what it will be.
fn fill<M: Access>(fixture: &mut Fixture<M>, what: &What, period: u64) {
    let hash = what.hash::<M>();
    insert(fixture, hash, 0..u64::from(what.keys));
    match what.mix {
        Mix::Deny | Mix::Rivals | Mix::Bare => {}
        Mix::Pass | Mix::All => fixture.now += period,
        Mix::Mixed => {
            for _ in 0..8 {
                lone::<M, 64>(fixture, u64::from(what.keys / 2).next_multiple_of(64), hash);
            }
        }
    }
}

/// One unit of each key, all at the same instant.
pub fn insert<M: Access>(
    fixture: &Fixture<M>,
    hash: impl Fn(&Table<'static, M>, u64) -> u64,
    ids: impl Iterator<Item = u64>,
) {
    let hashes: Vec<u64> = ids.map(|id| hash(&fixture.table, id)).collect();
    for burst in hashes.chunks(64) {
        let burst = Burst::new(&fixture.limit, fixture.now, burst);
        let _ = burst.check(&fixture.table, None, NextBurst::NONE);
    }
}

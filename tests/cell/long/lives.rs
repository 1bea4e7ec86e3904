//! Lives of keys: two dozen in every form of a limiter, each compared with an exact bucket, over days of virtual time.
//!
//! Arrivals are staggered, and costs vary. Clocks step back by up to the skew, and forward by up to a quarter of a
//! table's span, so that the words of tables wrap about once in a life. The words of 32-bit cells wrap as time passes,
//! and those of other cells if the resolution is fine enough. Requests are checked with and without elastic room,
//! charged after the fact, reserved, and peeked at. They also come in bursts of up to 64 of many keys, which tables
//! decide by groups. Limits change and change back, permits are refunded, keys reset, slots swept. Every answer must be
//! that of the bucket.

use super::calls::{burst, change, check, peek, refund, reset, Charged, Op};
use crate::common::oracle::Oracle;
use crate::common::{hash_of, memory, Rng, Seed};
use tatcell::{
    Cell, Cell32, ExclusiveCell, ExclusiveTable, Limit, Limit32, LimitSpec, Table, TableLimit, TableOptions,
};

pub const KEYS: usize = 24;
/// A set for each key: what a reset leaves takes a slot until it has drained, and no set may fill.
const LINES: usize = 2 * KEYS;
/// Steps of a life.
const STEPS: u64 = 10_000;
/// Decisions of a life that are compared: fewer than there are on average.
pub const DECISIONS: u64 = 95_000;

/// What is counted. Decisions by their form; beside them what some of these were, and what is not a decision.
pub const NAMES: [&str; 15] = [
    "Cell",
    "ExclusiveCell",
    "Cell32",
    "Table",
    "ExclusiveTable",
    "requests in bursts of 24 and more of one cost *",
    "requests in other bursts *",
    "checks with room *",
    "charges *",
    "reservations *",
    "looks *",
    "refunds of something *",
    "changes of rate *",
    "passed *",
    "refused *",
];
/// The least of each, in thousandths of all decisions.
pub const SHARES: [u64; 15] = [200, 200, 150, 200, 200, 200, 20, 60, 50, 50, 8, 3, 1, 90, 70];
pub const CELL32: usize = 2;
pub const GROUPED: usize = 5;
pub const LISTED: usize = 6;
const KIND: usize = 7;
const REFUNDED: usize = 11;
const CHANGED: usize = 12;
pub const PASSED: usize = 13;
pub type Counts = [u64; NAMES.len()];

/// One key in the cells, its bucket, and a permit of each form that has not been used.
pub struct Key {
    pub hash: u64,
    pub cell: Cell,
    pub own: ExclusiveCell,
    pub small: Cell32,
    /// A word of 32 bits that came out as 0 is stored as 1, a q-unit more: it sits out until it has drained.
    pub out: bool,
    pub oracle: Oracle,
    /// Which of the two limits applies.
    pub slow: usize,
    pub permit: Option<Charged>,
}

impl Key {
    /// No word of 32 bits may be forgotten for a span: it is made fresh where its key has drained by every clock.
    fn sweep(&mut self, top: u64, world: &World<'_>) {
        let idle = self.oracle.grains(top.into()).saturating_sub(self.oracle.tat);
        if self.oracle.tat == 0 || !self.out && idle < world.idle32 {
            return;
        }
        if self.oracle.lead((top - world.skew).into()) == 0 {
            self.small.reset();
            self.out = false;
            if let Some(charged) = &mut self.permit {
                charged.small = None;
            }
        }
    }
}

/// The limits that apply to keys, as made for cells and for the tables, and the tables.
pub struct World<'m> {
    pub table: Table<'m>,
    pub one: ExclusiveTable<'m>,
    pub cells: [Limit; 2],
    pub small: Option<[Limit32; 2]>,
    pub tables: [TableLimit; 2],
    /// Buckets of both limits, fresh.
    pub buckets: [Oracle; 2],
    pub skew: u64,
    /// For so many q-units a word of 32 bits may be forgotten.
    idle32: u128,
}

/// The limits of a life, and what they have in common.
struct Shape {
    specs: [LimitSpec; 2],
    s: i8,
    skew: u64,
    room: u64,
    debt: u64,
    delay: u64,
    soft: u64,
    /// Ticks of a unit of the faster one, and its burst.
    unit: u64,
    burst: u64,
}

impl Shape {
    fn any(rng: &mut Rng) -> Shape {
        // Two thirds of them so small that 32 bits hold them.
        let (scale, most, finest) = if rng.one_in(3) { (24, 40, 6) } else { (16, 16, 3) };
        let s = rng.within(0, finest) as i8;
        let (period, units) = (rng.within(1 << 12, 1 << scale), rng.within(1, 4));
        let burst = rng.within(1, most);
        let (unit, slow) = (period / units, rng.within(1, burst));
        let mut some = |most: u64| if rng.one_in(2) { rng.within(1, most) } else { 0 };
        let (room, debt, delay, soft) = (some(burst), some(burst), some(unit * burst), some(slow));
        let skew = rng.below(4 * unit * burst) + 1;
        let fast = LimitSpec::new(units, period, burst);
        let slow = LimitSpec::new(units, period * rng.within(2, 5) + rng.below(7), slow);
        let specs = [fast, slow].map(|spec| spec.max_room(room).max_debt(debt).max_delay(delay).soft(soft));
        Shape { specs, s, skew, room, debt, delay, soft, unit, burst }
    }

    fn cells(&self) -> [Limit; 2] {
        self.specs.map(|spec| spec.resolution(self.s).skew(self.skew).build().expect("it fits by far"))
    }

    fn small(&self) -> Option<[Limit32; 2]> {
        let [fast, slow] = self.specs.map(|spec| spec.resolution(self.s).skew(self.skew).build32().ok());
        Some([fast?, slow?])
    }

    fn bucket(&self, limit: &Limit) -> Oracle {
        let (t_q, s) = limit.emission_interval();
        let mut bucket = Oracle::fixed(t_q, s, limit.burst());
        bucket.room = self.room.into();
        bucket.debt = self.debt.into();
        bucket.delay = u128::from(self.delay) << s;
        bucket.soft = if self.soft == 0 { u128::MAX } else { self.soft.into() };
        bucket
    }

    fn step(&self, rng: &mut Rng) -> u64 {
        match rng.below(4_096) {
            1..=64 => rng.below(self.unit * self.burst + 2),
            65..=1_024 => rng.below(self.unit + 2),
            1_025..=2_048 => rng.below(self.unit / 16 + 2),
            _ => 0,
        }
    }

    /// Half the lives begin a little before the words of their cells wrap, those of 32 bits with them.
    fn start(&self, rng: &mut Rng) -> u64 {
        if self.s > 0 && rng.one_in(2) {
            (rng.within(1, (1 << self.s) - 1) << (64 - self.s)) - rng.below(1 << 30)
        } else {
            rng.next() >> 2 | 1 << 61
        }
    }
}

/// A life. Returns what it compared.
pub fn life(seed: u64) -> Counts {
    let _shown = Seed(seed);
    let mut rng = Rng(seed);
    let shape = Shape::any(&mut rng);
    let [fast, slow] = shape.specs;
    let options = TableOptions::new(fast).slowest(slow).caller_hash().resolution(shape.s).skew(shape.skew);
    let (lines, mut lines_of_one) = (memory(2 + LINES), memory(2 + LINES));
    let table = Table::init(&lines, &options).expect("it fits by far");
    let one = ExclusiveTable::init_exclusive(&mut lines_of_one, &options).expect("as the shared one");
    let (cells, small) = (shape.cells(), shape.small());
    let span = small.as_ref().map_or(0, |small| small[0].info().span.min(small[1].info().span));
    let idle32 = u128::from(span / 2) << shape.s;
    let tables = shape.specs.map(|spec| table.limit(&spec).expect("of this table"));
    let buckets = cells.each_ref().map(|limit| shape.bucket(limit));
    let world = World { table, one, cells, small, tables, buckets, skew: shape.skew, idle32 };
    let start = shape.start(&mut rng);
    let mut keys: [Key; KEYS] = core::array::from_fn(|k| Key {
        hash: hash_of(2 * k as u32 + (k as u32 & 1), LINES as u32, rng.within(1, 0xf_ffff) as u32),
        cell: Cell::new(),
        own: ExclusiveCell::new(),
        small: Cell32::new(),
        out: false,
        oracle: world.buckets[0].clone(),
        slow: 0,
        permit: None,
    });
    let (mut top, mut counts) = (start, [0; NAMES.len()]);
    let far = world.table.info().span / 4;
    for _ in 0..STEPS {
        top += shape.step(&mut rng);
        if rng.one_in(4_096) {
            // No word may be forgotten for a span; a sweep sees to it.
            top += rng.below(far);
            world.table.sweep(top, 0, world.table.slots());
            world.one.sweep(top, 0, world.one.slots());
        }
        let now = if rng.one_in(16) { top - rng.below(shape.skew + 1).min(rng.scaled(40)) } else { top };
        let now = now.max(start);
        keys.iter_mut().for_each(|key| key.sweep(top, &world));
        let key = &mut keys[rng.below(KEYS as u64) as usize];
        match rng.below(1_024) {
            0 => reset(key, &world, now),
            1..=32 => counts[CHANGED] += u64::from(change(key, &world, now)),
            33..=150 => counts[REFUNDED] += u64::from(refund(key, &world, now)),
            151..=170 => {
                counts[KIND + 3] += 5;
                peek(key, &world, now, &mut rng, &mut counts);
            }
            171..=202 => burst(&mut keys, &world, now, &mut rng, &mut counts),
            203..=322 => {
                counts[KIND + 1] += 5;
                check(key, &world, now, Op::Charge, &mut rng, &mut counts);
            }
            323..=442 => {
                counts[KIND + 2] += 5;
                check(key, &world, now, Op::Reserve, &mut rng, &mut counts);
            }
            443..=592 => {
                counts[KIND] += 5;
                check(key, &world, now, Op::Room, &mut rng, &mut counts);
            }
            _ => check(key, &world, now, Op::Check, &mut rng, &mut counts),
        }
    }
    counts
}

//! The requests that attackers and others send to a table in virtual time, and their results.

use tatcell::{
    full_set_ppb, FullPolicy, LimitSpec, Line, Request, Table, TableLimit, TableOptions, Tracking,
};

/// A tick is a microsecond. Each key: ten a second, twenty at once.
pub const SECOND: u64 = 1_000_000;
pub const RATE: u64 = 10;
pub const BURST: u64 = 20;
/// Slots of the table; loads are shares of these.
pub const SLOTS: usize = 8_192;

pub const POLICIES: [(FullPolicy, &str); 4] = [
    (FullPolicy::Admit, "Admit"),
    (FullPolicy::Sampled, "Sampled"),
    (FullPolicy::Deny, "Deny"),
    (FullPolicy::Inherit, "Inherit"),
];

fn spec() -> LimitSpec {
    LimitSpec::new(RATE, SECOND, BURST)
}

/// SplitMix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 1.0) / (1u64 << 53) as f64
    }

    /// Ticks to the next event of a Poisson stream with this rate a second.
    fn gap(&mut self, a_second: f64) -> f64 {
        -self.unit().ln() / a_second * SECOND as f64
    }
}

/// A table of some slots, and its limit.
pub struct Bed {
    table: Table<'static>,
    limit: TableLimit,
}

impl Bed {
    pub fn new(slots: usize, policy: FullPolicy) -> Bed {
        let lines: Vec<Line> = (0..2 + slots / 8).map(|_| Line::new()).collect();
        let options = TableOptions::new(spec()).seed([7; 16]).policy(policy);
        let table = Table::init(lines.leak(), &options).expect("it fits");
        let limit = table.limit(&spec()).expect("of this table");
        Bed { table, limit }
    }

    fn ask(&self, now: f64, key: u64) -> (bool, Tracking) {
        let hash = self.table.hash(&key.to_le_bytes()).expect("it has a seed");
        let request = Request { limit: &self.limit, now: now as u64, cost: 1, room: 0 };
        let d = self.table.check_ex(&request, hash, None).expect("its own limit");
        (d.passes(), d.tracking)
    }
}

/// What a flood of forged keys does to others.
#[derive(Clone, Copy)]
pub struct Flood {
    pub load: f64,
    /// Of the innocents' requests, percent.
    pub innocents_refused: f64,
    /// What the abusers get, over what their limit allows.
    pub abusers: f64,
    /// Of the flood, percent.
    pub flood_admitted: f64,
}

/// 500 innocents of 2 a second and 20 abusers of 100, beside keys that come once each, enough to fill `load` tables.
pub fn flood(policy: FullPolicy, load: f64, seconds: u64) -> Flood {
    let (bed, mut rng) = (Bed::new(SLOTS, policy), Rng(1));
    let rates = [500.0 * 2.0, 20.0 * 100.0, load * SLOTS as f64 * RATE as f64];
    let all: f64 = rates.iter().sum();
    let (mut asked, mut passed) = ([0u64; 3], [0u64; 3]);
    // The attack stands before anything is counted.
    let (begin, end) = (SECOND as f64 * 3.0, SECOND as f64 * (3.0 + seconds as f64));
    let (mut now, mut fresh) = (1e9, 1u64 << 32);
    let start = now;
    while now < start + end {
        now += rng.gap(all);
        let which = rng.unit() * all;
        let (who, key) = if which < rates[0] {
            (0, rng.next() % 500)
        } else if which < rates[0] + rates[1] {
            (1, 1_000 + rng.next() % 20)
        } else {
            fresh += 1;
            (2, fresh)
        };
        let passes = bed.ask(now, key).0;
        if now >= start + begin {
            asked[who] += 1;
            passed[who] += u64::from(passes);
        }
    }
    let share = |who: usize| passed[who] as f64 / asked[who].max(1) as f64;
    Flood {
        load,
        innocents_refused: 100.0 * (1.0 - share(0)),
        abusers: passed[1] as f64 / (20 * RATE * seconds) as f64,
        flood_admitted: 100.0 * share(2),
    }
}

/// Of what lasting abusers of three times the rate ask beyond it, the share that passes, in percent: `load * SLOTS` of
/// them on a table of `slots`.
pub fn lasting(policy: FullPolicy, load: f64, slots: usize, seconds: u64) -> f64 {
    let (bed, mut rng) = (Bed::new(slots, policy), Rng(2));
    let keys = (load * SLOTS as f64) as u64;
    let asked = keys as f64 * 3.0 * RATE as f64;
    let (mut now, mut passed) = (1e9, 0u64);
    // The bursts are spent and the slots taken before anything is counted.
    let (begin, end) = (now + 5.0 * SECOND as f64, now + (5 + seconds) as f64 * SECOND as f64);
    while now < end {
        now += rng.gap(asked);
        let passes = bed.ask(now, rng.next() % keys).0;
        passed += u64::from(passes && now >= begin);
    }
    let fair = (keys * RATE * seconds) as f64;
    (passed as f64 - fair).max(0.0) / (2.0 * fair) * 100.0
}

/// What an evader gets who asks evenly, `rho` a second, below a flood that fills `load` tables of so many slots: times
/// its rate, in so many seconds.
pub fn evader(policy: FullPolicy, slots: usize, load: f64, rho: u64, seconds: u64) -> f64 {
    let (bed, mut rng) = (Bed::new(slots, policy), Rng(3));
    let flood = load * slots as f64 * RATE as f64;
    let (mut now, mut fresh, mut passed) = (1e9, 1u64 << 40, 0u64);
    // Thirty of them, out of step.
    const EVADERS: u64 = 30;
    let step = SECOND as f64 / (rho * EVADERS) as f64;
    let (mut turn, mut due) = (0u64, now);
    let (begin, end) = (now + 4.0 * SECOND as f64, now + (4 + seconds) as f64 * SECOND as f64);
    while now < end {
        now += rng.gap(flood);
        while due <= now {
            let passes = bed.ask(due, turn % EVADERS).0;
            passed += u64::from(passes && due >= begin);
            (turn, due) = (turn + 1, due + step);
        }
        fresh += 1;
        bed.ask(now, fresh);
    }
    passed as f64 / (EVADERS * RATE * seconds) as f64
}

/// Sets of the table that is aimed at, of two lines each.
const SETS: usize = 512;

/// What came of keys of one family.
pub struct Aim {
    pub name: &'static str,
    /// How many different keys it has.
    pub keys: usize,
    /// The largest distance of a set's share of them from the mean, in standard deviations.
    pub distance: f64,
}

/// Numbers with one bit that is set, then with two, and so on, each once.
fn few_bits() -> impl Iterator<Item = u64> {
    (1..=64).flat_map(|bits| {
        let first = u64::MAX >> (64 - bits);
        let next = move |n: &u64| {
            let (low, up) = (*n & n.wrapping_neg(), n.checked_add(*n & n.wrapping_neg())?);
            Some(up | (*n ^ up) >> 2 >> low.trailing_zeros())
        };
        std::iter::successors(Some(first), next)
    })
}

/// A table with a number of sets and a seed.
fn seeded<'a>(lines: &'a [Line], seed: &[u8; 16]) -> Table<'a> {
    Table::init(lines, &TableOptions::new(spec()).seed(*seed)).expect("it fits")
}

/// The set of a key, by its hash.
fn set(table: &Table<'_>, key: u64) -> usize {
    let hash = table.hash(&key.to_le_bytes()).expect("it has a seed");
    (((hash >> 32) * (2 * SETS as u64)) >> 33) as usize
}

/// Where keys land that a network's attacker would choose, who does not know the seed, so many of each family: those of
/// the last one all meet in one set of a table of his own, which has another seed.
pub fn aimed(keys: usize) -> Vec<Aim> {
    let lines: [Vec<Line>; 2] = [(); 2].map(|()| (0..2 + 2 * SETS).map(|_| Line::new()).collect());
    let (table, own) = (seeded(&lines[0], b"an unknown seed."), seeded(&lines[1], b"a seed of his. ."));
    let aim = |name, keys: &mut dyn Iterator<Item = u64>| {
        let mut keys: Vec<u64> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        let mut counts = vec![0u64; SETS];
        keys.iter().for_each(|key| counts[set(&table, *key)] += 1);
        let mean = keys.len() as f64 / SETS as f64;
        let far = |n: &u64| (*n as f64 - mean).abs() / mean.sqrt();
        Aim { name, keys: keys.len(), distance: counts.iter().map(far).fold(0.0, f64::max) }
    };
    vec![
        aim("counted up", &mut (0..).take(keys)),
        aim("counted in the highest bits", &mut (0..1 << 20).map(|i| i << 44).take(keys)),
        aim("numbers of one to five bits", &mut few_bits().take(keys)),
        aim("multiples of the number of lines", &mut (0..).map(|i| i * 2 * SETS as u64).take(keys)),
        aim(
            "of one set of a table with another seed",
            &mut (0..).filter(|key| set(&own, *key) == 7).take(keys),
        ),
    ]
}

/// Of so many keys, those whose slot does not lie in the set that `aimed` counts them in.
pub fn elsewhere(keys: u64) -> u64 {
    let lines: Vec<Line> = (0..2 + 2 * SETS).map(|_| Line::new()).collect();
    let table = seeded(&lines, b"an unknown seed.");
    let limit = table.limit(&spec()).expect("of this table");
    let lies_elsewhere = |key: &u64| {
        // A minute after the one before, which owes nothing any more.
        let now = (1 + key) * 60 * SECOND;
        let _ = table.check_hash(&limit, now, table.hash(&key.to_le_bytes()).expect("it has a seed"), 1);
        table.next_live(now, 0).map(|slot| slot.number as usize / 16) != Some(set(&table, *key))
    };
    (0..keys).filter(lies_elsewhere).count() as u64
}

/// Strangers taken for a live key among so many lookups in a full table: seen, and by 16 different tags of 20 bits.
pub fn collisions(lookups: u64) -> (u64, f64) {
    let lines: Vec<Line> = (0..2 + 128).map(|_| Line::new()).collect();
    let options = TableOptions::new(spec()).caller_hash().policy(FullPolicy::Deny);
    let table = Table::init(&lines, &options).expect("it fits");
    let limit = table.limit(&spec()).expect("of this table");
    let mut rng = Rng(4);
    while table.stats(0).live < 1_024 {
        for _ in 0..4_096 {
            let _ = table.check_hash(&limit, 0, rng.next(), BURST);
        }
    }
    let found = (0..lookups).filter(|_| {
        let known = table.peek(&limit, 0, rng.next(), 1);
        known.is_ok_and(|d| d.remaining < BURST)
    });
    (found.count() as u64, lookups as f64 * 16.0 / (1u64 << 20) as f64)
}

/// The share of new keys that find their set full, by keys that come once each: seen, and Erlang B.
pub fn full_sets(load: f64, keys: u64) -> (f64, f64) {
    let (bed, mut rng) = (Bed::new(SLOTS, FullPolicy::Deny), Rng(5));
    let (mut now, mut full, mut counted) = (1e9, 0u64, 0u64);
    for key in 0..keys {
        now += rng.gap(load * SLOTS as f64 * RATE as f64);
        let untracked = bed.ask(now, key).1 == Tracking::Untracked;
        if key > 4 * SLOTS as u64 {
            counted += 1;
            full += u64::from(untracked);
        }
    }
    (full as f64 / counted as f64, full_set_ppb((load * 1e6) as u64) as f64 / 1e9)
}

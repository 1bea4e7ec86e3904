//! Random calls at chosen times, compared with redis-cell's rule in 128-bit integers.

#[path = "common/mod.rs"]
mod common;

use std::collections::HashMap;

use common::Random;
use tatcell_door::{Keeper, KeeperSettings, Limit, Rate, Settings};
use tatcell_throttled::throttle;

/// In each table.
const CALLS: u64 = 50_000;

/// Everything here is in parts of a nanosecond, the finest unit of time of a table.
const NS: i128 = 1 << 13;

/// redis-cell's rule over one TAT, with the time of a unit as it is kept.
fn rule(tat: &mut i128, now: i128, unit: i128, burst: i128, quantity: i128) -> [i64; 5] {
    let new = now.max(*tat) + unit * quantity;
    let early = new - unit * burst - now;
    let limited = early > 0;
    if !limited && quantity > 0 {
        *tat = new;
    }
    let debt = (*tat - now).max(0);
    let whole = |value: i128| i64::try_from(value).expect("a number");
    let seconds = |time: i128| whole((time + NS * 1_000_000_000 - 1) / (NS * 1_000_000_000));
    let retry = if limited && quantity <= burst { seconds(early).max(1) } else { -1 };
    // Parameters may have changed since: what is owed may be more than this burst.
    let left = ((unit * burst - debt) / unit).max(0);
    [i64::from(limited), whole(burst), whole(left), retry, seconds(debt)]
}

/// The words of a call: bursts, counts and periods of every size, with usual ones among them.
fn words(random: &mut Random) -> [String; 3] {
    let sized = |random: &mut Random, digits: u64| {
        let digits = random.below(digits + 1) as u32;
        random.below(10u64.pow(digits))
    };
    let usual = [1, 2, 5, 10, 60, 100, 1_000, 3_600, 86_400];
    let period = match random.below(2) {
        0 => usual[random.below(9) as usize],
        _ => 1 + sized(random, 5),
    };
    let count = match random.below(2) {
        0 => usual[random.below(9) as usize],
        _ => 1 + sized(random, 6),
    };
    [sized(random, 5), count, period].map(|value| value.to_string())
}

/// The tables: resolution, and how far time goes at most between two calls: 2^this times 1024 units of its time. The
/// last five are wide ones, for bursts that no usual one has.
const TABLES: [(i32, u64); 11] = [
    (6, 30),
    (0, 30),
    (-5, 30),
    (-10, 30),
    (-15, 23),
    (-20, 18),
    (13, 30),
    (12, 30),
    (3, 30),
    (-4, 30),
    (-12, 22),
];

fn is_wide(resolution: i32) -> bool {
    ![6, 0, -5, -10, -15, -20].contains(&resolution)
}

/// The words of a call that needs a wide table: half to all of its horizon, 2^44 units of time, and many units.
fn wide_words(random: &mut Random, resolution: i32) -> [String; 3] {
    let drains = (1u128 << (43 - resolution)) as u64;
    let drains = drains + random.below(drains / 8 * 7);
    let burst = (1 << (27 + random.below(5))) + random.below(1 << 27);
    let period = 1 + random.below(100);
    let count = u128::from(burst) * u128::from(period) * 1_000_000_000 / u128::from(drains);
    [burst - 1, count.max(1) as u64, period].map(|value| value.to_string())
}

#[test]
fn replies_are_those_of_redis_cells_rule() {
    for (resolution, far) in TABLES {
        let mut settings = Settings::file("", "keys = 2000").expect("settings");
        let keeper = KeeperSettings::take(&mut settings).and_then(|s| s.open(&[])).expect("a keeper");
        let seen = run(&keeper, resolution, far);
        println!("unit of time 2^{} ns: {} passed, {} limited", -resolution, seen[0], seen[1]);
        assert!(seen.iter().all(|count| *count > CALLS / 100), "{seen:?}");
    }
}

/// Passed and limited.
fn run(keeper: &Keeper, resolution: i32, far: u64) -> [u64; 2] {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut random = Random(20_261_122);
    let mut tats: HashMap<u64, i128> = HashMap::new();
    let (mut now, mut seen) = (1u64 << 40, [0, 0]);
    for call in 0..CALLS {
        let (rate, limit, unit) = draw(keeper, &mut random, resolution);
        let size = random.below(far);
        // Whole units of time: a reading between two is cut.
        let step = random.below(1 << size) << 10;
        let ns = |q: u64| if resolution > 0 { q >> resolution } else { q << -resolution };
        now += ns(step);
        // Now and then a silence, up to twice the time after which words come round.
        if far == 30 && random.below(1_000) == 0 {
            now += ns(random.below(if is_wide(resolution) { 1 << 48 } else { 1 << 44 }) >> 10 << 10);
        }
        let size = random.below(18);
        let quantity = match random.below(4) {
            _ if is_wide(resolution) => random.below(rate.burst / 2),
            0 => random.below(20),
            1 => random.below(1 << size),
            _ => 1,
        };
        let key = random.below(200);
        let tat = tats.entry(key).or_default();
        let expected = rule(tat, i128::from(now) * NS, unit, i128::from(rate.burst), i128::from(quantity));
        let bytes = key.to_le_bytes();
        let answer = keeper.decide(&limit, &bytes, quantity, now);
        let replied = throttle::integers(&runtime.block_on(answer).expect("an answer"), &rate);
        assert_eq!(replied, expected, "call {call} at {now}: {rate:?}, {quantity} of key {key}");
        seen[usize::from(replied[0] == 1)] += 1;
    }
    seen
}

/// A limit of this table, and its unit's time.
fn draw(keeper: &Keeper, random: &mut Random, resolution: i32) -> (Rate, Limit, i128) {
    loop {
        let words = match is_wide(resolution) {
            true => wide_words(random, resolution),
            false => words(random),
        };
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let rate = throttle::rate(&words).expect("a rate");
        let Ok(limit) = keeper.limit(&rate) else { continue };
        let Limit::Local(kept) = &limit else { panic!("a limit of the tables") };
        if kept.unit().1 == resolution {
            // The table as its documentation draws it.
            let unit = i128::from(kept.unit().0) << (13 - resolution);
            let asked = i128::from(rate.period) * 1_000_000_000 * NS;
            let made = unit * i128::from(rate.units);
            assert!(made >= asked && made <= asked + asked / 1_000, "{rate:?}");
            return (rate, limit, unit);
        }
    }
}

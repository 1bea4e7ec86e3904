//! Sparse logs: words of a table wrap while nobody comes, and still no client is refused that owes nothing.

use std::collections::{BTreeMap, BTreeSet};

use tatcell::{FullPolicy, LimitSpec, Line, Table, TableOptions};
use tatcell_cli::limit::{Chained, Rung};
use tatcell_cli::plan::order::{Held, RUNGS};
use tatcell_cli::plan::replay::{Common, Replay};

use crate::oracle::{smallest_burst, words_of, Bucket};
use crate::Random;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 86_400 * SECOND;

/// The limits, and for how long each remembers what a client was charged. `and` and `ladder` are in one list.
const LIMITS: [(&str, u64); 14] = [
    ("1/min burst 1", MINUTE),
    ("1/min burst 5", 5 * MINUTE),
    ("7/min burst 3", MINUTE),
    ("100/h burst 10", 6 * MINUTE),
    ("1/h burst 2", 120 * MINUTE),
    ("10/s burst 20", 2 * SECOND),
    ("fixed 5/min", MINUTE),
    ("fixed 3/h", 60 * MINUTE),
    ("sliding 5/min", 2 * MINUTE),
    ("sliding 20/h", 120 * MINUTE),
    ("quota 5/min", 3 * MINUTE),
    ("decay 10/min burst 10", 12 * MINUTE),
    ("10/s burst 4 and 1/min burst 3 and fixed 4/min", 3 * MINUTE),
    ("ladder 1/min burst 2", 2 * MINUTE),
];

/// Requests of some clients, from milliseconds to months apart: times and clients.
fn log(random: &mut Random, clients: u64) -> Vec<(u64, u64)> {
    let mut now = 1_700_000_000 * SECOND;
    // Up to 1 ms, 10 ms and so on to 200 days, each as often; or none.
    let gap = |random: &mut Random| {
        let most = 2 * 10u64.pow(6 + random.below(11) as u32);
        random.below(most).min(200 * DAY) * u64::from(random.below(4) > 0)
    };
    let mut log = Vec::new();
    for _ in 0..250 {
        now += gap(random);
        let count = if random.below(4) == 0 { 1 + random.below(25) } else { 1 };
        log.extend(std::iter::repeat_n((now, random.below(clients)), count as usize));
    }
    log
}

fn replay(limit: &str, slots: usize) -> Replay {
    let limit = Chained::parse(limit).expect("a limit");
    // A ladder counts by prefixes, which have hashes of their own.
    let place = |(at, rung): (usize, &Rung)| if rung.lengths.is_some() { at + 1 } else { 0 };
    let places: Vec<_> = limit.rungs.iter().enumerate().map(place).collect();
    let window = std::time::Duration::from_secs(60);
    let common = Common { seed: [7; 16], slots, window, max_keys: 1_000 };
    Replay::new(limit, &places, FullPolicy::Admit, &common).expect("a replay")
}

fn held(time: u64, client: u64) -> Held {
    let hash = Random(client + 1).next();
    let wide = std::array::from_fn::<_, RUNGS, _>(|place| hash.rotate_left(place as u32 + 1) ^ 0x55);
    Held { time, number: 0, cost: 1, hash, wide, key: client as u32, is_v4: true }
}

/// Ticks of a unit of time of a table of windows, by what it says of itself.
fn unit(spec: LimitSpec) -> u64 {
    let lines = [const { Line::EMPTY }; 4];
    let table = Table::init(&lines, &TableOptions::new(spec).seed([0; 16]).tick_hz(SECOND));
    table.expect("a table").info().border_error + 1
}

/// A fixed window, by the rule on its page.
struct Window {
    units: u64,
    length: u64,
    unit: u64,
    until: u64,
    count: u64,
}

impl Window {
    fn passes(&mut self, now: u64) -> bool {
        if now / self.unit >= self.until {
            (self.until, self.count) = ((now + self.length).div_ceil(self.unit), 0);
        }
        self.count += 1;
        self.count <= self.units
    }
}

#[test]
fn a_client_that_owes_nothing_is_never_refused() {
    let (mut refused, mut after_silence, mut exact) = (BTreeMap::new(), 0, 0);
    for round in 0..16u64 {
        for (limit, memory) in LIMITS {
            let mut random = Random(round);
            let log = log(&mut random, 1 + round % 6);
            let mut replay = replay(limit, if round % 2 == 0 { 1 << 10 } else { 1 << 16 });
            let asked = replay.asked.rungs[0].asked.clone();
            let (units, period, burst) = asked.spec.numbers();
            let most = if limit.contains(" and ") { 3 } else { burst };
            let is_bucket = asked.is_gcra() && replay.asked.rungs.len() == 1;
            let mut buckets = BTreeMap::<u64, Bucket>::new();
            let mut windows = BTreeMap::<u64, Window>::new();
            let mut passed = BTreeMap::<u64, Vec<u64>>::new();
            let mut last = 0;
            for (now, client) in log {
                let passes = replay.ask(&held(now, client), 1).expect("an answer");
                let charged = passed.entry(client).or_default();
                // Times are rounded to units, by less than the millionth part of a window.
                let owed =
                    charged.iter().filter(|then| now - **then <= memory + memory / 1_000).count() as u64;
                assert!(passes || owed + 1 > most, "round {round}, {limit}: {owed} of {most} at {now}");
                if is_bucket {
                    let new = || Bucket::new(units, period, burst);
                    let want = buckets.entry(client).or_insert_with(new).passes(now, 1);
                    assert_eq!(passes, want, "round {round}, {limit} at {now}");
                    exact += 1;
                } else if limit.starts_with("fixed") {
                    let unit = unit(asked.spec);
                    let new = || Window { units, length: period, unit, until: 0, count: 0 };
                    let want = windows.entry(client).or_insert_with(new).passes(now);
                    assert_eq!(passes, want, "round {round}, {limit} at {now}");
                    exact += 1;
                }
                if passes {
                    charged.push(now);
                } else {
                    *refused.entry(limit).or_insert(0) += 1;
                }
                after_silence += u64::from(now - last > DAY && last > 0);
                last = now;
            }
        }
    }
    // Each limit refuses those that do owe.
    assert!(LIMITS.iter().all(|(limit, _)| refused.get(limit) > Some(&100)), "{refused:?}");
    assert!(after_silence > 5_000 && exact > 50_000, "{after_silence} {exact}");
}

/// Whole numbers that do not divide a period, and some that do.
fn rate(random: &mut Random) -> (String, u64, u64) {
    let (unit, period) =
        [("s", SECOND), ("min", MINUTE), ("h", 60 * MINUTE), ("d", DAY)][random.below(4) as usize];
    let most = [40, 200, 1_000][random.below(3) as usize];
    let units = 1 + random.below(most);
    (format!("{units}/{unit}"), units, period)
}

#[test]
fn with_the_burst_that_is_needed_nobody_is_refused_and_with_less_somebody_is() {
    let folder = crate::folder("rounding");
    let (mut levels, mut rounded, mut larger) = (BTreeSet::new(), 0, 0);
    for round in 0..400 {
        let mut random = Random(1_000 + round);
        let (rate, units, period) = rate(&mut random);
        let grain = [1, 1_000_000, SECOND, SECOND][random.below(4) as usize];
        let (clients, many) = (1 + random.below(4), 20 + random.below(120));
        let mut now = 1_700_000_000 * SECOND;
        let mut requests = BTreeMap::<u64, Vec<(u64, u64)>>::new();
        let mut text = String::from("time,user\n");
        for _ in 0..many {
            // As many as the rate has, at the start of each period; or at the rate; or at any time.
            let (gap, count) = match random.below(4) {
                0 => (period, units.min(60)),
                1 => (period / units, 1),
                2 => (random.below(2 * period / units + 1), 1),
                _ => (0, 1 + random.below(units).min(30)),
            };
            now += gap;
            let (time, client) = (now / grain * grain, random.below(clients));
            for _ in 0..count {
                text += &format!("{}.{:09},u{client}\n", time / SECOND, time % SECOND);
                requests.entry(client).or_default().push((time, 1));
            }
        }
        let file = folder.join("log.csv");
        std::fs::write(&file, text).expect("a file");
        let name = file.to_str().expect("a name");
        let base = [name, "-k", "user", "--slots", "1024"];
        let max = crate::accuracy::plan(&[&base[..], &["-r", &rate]].concat()).rates[0].max;
        let limits = [max, max.saturating_sub(1).max(1)].map(|burst| format!("{rate} burst {burst}"));
        let arguments = ["-r", &rate, "-l", &limits[0], "-l", &limits[1]];
        let report = crate::accuracy::plan(&[&base[..], &arguments].concat());
        assert_eq!(report.limits[0].refused, 0, "round {round}: {}", limits[0]);
        assert!(max == 1 || report.limits[1].refused > 0, "round {round}: {}", limits[1]);
        assert_eq!(report.limits[0].rate_error_ppb, report.rates[0].rate_error_ppb);
        levels.insert(words_of(units, period, max).1);
        rounded += u64::from(report.rates[0].rate_error_ppb > 0);
        let exact = requests.values().map(|requests| smallest_burst(requests, units, period)).max();
        larger += u64::from(Some(max) > exact);
    }
    // Units of time from 1 ns on; rates that tables round; and bursts that would be smaller if they did not.
    assert!(levels.len() > 6 && rounded > 100 && larger > 20, "{levels:?} {rounded} {larger}");
}

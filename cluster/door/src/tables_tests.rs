use super::*;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// How many keys owe something, and how many slots there are, in all tables in use.
fn in_use(tables: &Tables, now: u64) -> (u64, u64) {
    let all = tables.made().map(|(_, made)| made.table.stats(now));
    all.fold((0, 0), |(live, slots), stats| (live + stats.live, slots + stats.slots))
}

fn tables() -> Tables {
    Tables::new(1_000, FullPolicy::Deny).expect("tables")
}

#[test]
fn every_usual_limit_has_a_table_and_the_finest_one() {
    let tables = tables();
    let resolution = |units, period, burst| {
        let limit = tables.limit(units, period, burst);
        limit.unwrap_or_else(|e| panic!("{units} per {period}, {burst}: {e}")).unit().1
    };
    assert_eq!(resolution(50_000_000, SECOND, 100_000_000), 6);
    assert_eq!(resolution(30, 60 * SECOND, 1), 6);
    assert_eq!(resolution(30, 60 * SECOND, 16), 0);
    assert_eq!(resolution(900_000, SECOND, 900_000_000), 0);
    assert_eq!(resolution(1_000, 3_600 * SECOND, 1_000), -5);
    assert_eq!(resolution(100, DAY, 100), -10);
    assert_eq!(resolution(100, 30 * DAY, 100), -15);
    assert_eq!(resolution(1, 36 * 365 * DAY, 1), -20);
    // A wide one, as none of the others has it.
    assert_eq!(resolution(1_000, SECOND, 2_000_000), -5);
    assert_eq!(resolution(4_000_000, 3_600 * SECOND, 4_000_000), -5);
    assert_eq!(resolution(1 << 32, SECOND, 1 << 32), 13);
}

#[test]
fn what_no_table_has_is_said_with_the_change_that_helps() {
    let tables = tables();
    let years = |n: u64| n * 365 * DAY;
    for (units, period, burst, why) in [
        (0, 1, 1, "above 0"),
        (1, 0, 1, "above 0"),
        (1, 1, 0, "above 0"),
        (1 << 20, SECOND, (1 << 32) + 1, "a burst of 4294967297 units is above the most, 4294967296"),
        (1, SECOND, u64::MAX, "give a smaller burst"),
        (8 * SECOND + 1, SECOND, 1, "8000000001 units in 1 s are more than 8000000000, one each 0.125 ns"),
        (u64::MAX, 1, 1, "give fewer units"),
        (1, years(36) + 1, 1, "the burst drains in 1135296000 s, more than 36 years of 365 days"),
        (1, u64::MAX, 1 << 32, "give a smaller burst, or a higher rate"),
    ] {
        let said = tables.limit(units, period, burst).expect_err("no table");
        assert!(said.contains(why), "{units} per {period}, {burst}: {said}");
    }
    // What is next to them is kept.
    for (units, period, burst) in [
        (1 << 20, SECOND, 1 << 32),
        (8 * SECOND, SECOND, 1),
        (8 * SECOND, SECOND, 1 << 32),
        (8, 1, 1),
        (1, years(36), 1),
        (1 << 32, years(36), 1 << 32),
    ] {
        assert!(tables.limit(units, period, burst).is_ok(), "{units} per {period}, {burst}");
    }
    assert!(Tables::new(0, FullPolicy::Deny).is_err() && Tables::new(usize::MAX, FullPolicy::Deny).is_err());
}

/// The units of time of a configuration, in seconds.
const UNITS: [u64; 7] = [1, 60, 3_600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400];

/// Numbers of every size up to 2^32.
fn numbers() -> Vec<u64> {
    let mut all: Vec<u64> = (0..=32).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]).collect();
    all.extend((0..10).flat_map(|digits| [1, 3, 4].map(|first| first * 10u64.pow(digits))));
    all.retain(|number| (1..=1 << 32).contains(number));
    all.sort_unstable();
    all.dedup();
    all
}

/// What is kept of a limit, in integers: units of time, of which 2^-resolution ns are one.
struct Oracle {
    unit: u128,
    resolution: i32,
    burst: u128,
    tat: u128,
}

impl Oracle {
    /// A time of the clock, cut to whole units of time.
    fn at(&self, ns: u64) -> u128 {
        match self.resolution < 0 {
            true => u128::from(ns) >> -self.resolution,
            false => u128::from(ns) << self.resolution,
        }
    }

    fn left(&self, ns: u64) -> u64 {
        let owed = self.tat.saturating_sub(self.at(ns));
        ((self.unit * self.burst).saturating_sub(owed) / self.unit) as u64
    }

    fn take(&mut self, units: u64, ns: u64) {
        self.tat = self.tat.max(self.at(ns)) + self.unit * u128::from(units);
    }
}

#[test]
fn every_number_of_every_unit_of_time_is_kept_and_admits_what_it_says() {
    let tables = tables();
    let mut random: u64 = 27;
    for (number, unit) in numbers().into_iter().flat_map(|number| UNITS.map(|unit| (number, unit))) {
        let period = unit * SECOND;
        let limit = tables.limit(number, period, number);
        let limit = limit.unwrap_or_else(|e| panic!("{number} in {unit} s: {e}"));
        let (q, resolution) = limit.unit();
        let mut oracle = Oracle { unit: q.into(), resolution, burst: number.into(), tat: 0 };
        // At most a thousandth longer than asked for, and never shorter. Both sides in units of 2^-13 ns.
        let (kept, asked) =
            ((u128::from(q) << (13 - resolution)) * u128::from(number), u128::from(period) << 13);
        assert!(asked <= kept && kept <= asked + asked / 1_000, "{number} in {unit} s: {kept} {asked}");
        let mut now = 400 * DAY;
        let key = format!("{number} {unit}");
        let ask = |cost: u64, now: u64| Tables::check(&limit, key.as_bytes(), cost, now).expect("one thread");
        let full = ask(number, now);
        oracle.take(number, now);
        assert!(full.passes() && full.remaining == 0, "{number} in {unit} s: {full:?}");
        assert!(!ask(1, now).passes(), "{number} in {unit} s");
        for _ in 0..20 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            now += ((u128::from(random >> 32) * u128::from(period / 16)) >> 32) as u64;
            let left = oracle.left(now);
            assert_eq!(ask(0, now).remaining, left, "{number} in {unit} s at {now}");
            if left < number {
                assert!(!ask(left + 1, now).passes(), "{number} in {unit} s: {left} are left");
            }
            let cost = left - left / 3;
            assert!(ask(cost, now).passes(), "{number} in {unit} s: {left} are left");
            oracle.take(cost, now);
        }
        assert!(tables.forget(key.as_bytes(), now) || oracle.left(now) == number);
    }
}

#[test]
fn what_is_given_back_can_be_used_again_and_nothing_else() {
    let (number, period) = (1_000, 3_600 * SECOND);
    for policy in [FullPolicy::Admit, FullPolicy::Deny, FullPolicy::Inherit, FullPolicy::Sampled] {
        let tables = Tables::new(1_000, policy).expect("tables");
        let gives = matches!(policy, FullPolicy::Admit | FullPolicy::Deny);
        let limit = tables.limit(number, period, number).expect("a limit");
        let (q, resolution) = limit.unit();
        let mut oracle = Oracle { unit: q.into(), resolution, burst: number.into(), tat: 0 };
        let (mut now, mut random, mut given) = (DAY, 6u64, 0);
        for call in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            now += SECOND + (random >> 32) * 3;
            let units = (random >> 20) % 30;
            // Reads all slots.
            if call % 1_000 == 0 {
                let live = u64::from(oracle.tat > oracle.at(now));
                assert_eq!(in_use(&tables, now).0, live, "{policy:?}, call {call}");
            }
            if random >> 63 == 0 {
                let passes = Tables::check(&limit, b"k", units, now).expect("one thread").passes();
                assert_eq!(passes, units <= oracle.left(now), "{policy:?}, call {call}");
                if passes && units > 0 {
                    oracle.take(units, now);
                }
                continue;
            }
            let owed = oracle.tat.saturating_sub(oracle.at(now));
            let back = if gives { owed.min(oracle.unit * u128::from(units)) } else { 0 };
            let after = limit.credit(b"k", units, now).expect("one thread");
            assert_eq!(u128::from(after.units), back.div_ceil(oracle.unit), "{policy:?}, call {call}");
            oracle.tat -= back;
            // The trace of a credit may have given a unit back meanwhile.
            assert!(
                (oracle.left(now)..=oracle.left(now) + 1).contains(&after.remaining),
                "{policy:?}, call {call}"
            );
            given += after.units;
        }
        assert_eq!(given > 10_000, gives, "{policy:?}: {given}");
    }
}

/// Every burst of at most 2^32 units has a table, however long it drains, and every one above has none.
#[test]
fn what_is_kept_depends_on_the_burst_alone() {
    let tables = tables();
    let drains =
        (0..60).flat_map(|bit| [1u64 << bit, (1 << bit) + (1 << bit) / 7, (1 << bit) + (1 << bit) / 2]);
    for ns in drains.filter(|ns| *ns <= LONGEST) {
        for burst in numbers().into_iter().filter(|burst| burst.div_ceil(8) <= ns) {
            let kept = tables.limit(burst, ns, burst);
            assert!(kept.is_ok(), "{burst} in {ns} ns: {kept:?}");
        }
    }
}

#[test]
fn sweeps_reach_every_slot_within_the_span_of_the_finest_wide_table() {
    let tables = tables();
    let limit = tables.limit(1 << 32, SECOND, 1 << 32).expect("a limit");
    let mut now = DAY;
    for key in 0..500u32 {
        assert!(Tables::check(&limit, &key.to_le_bytes(), 1 << 32, now).is_some_and(|d| d.passes()));
    }
    for second in 0..60 {
        now += SECOND;
        tables.sweep(now);
        assert!(second < 1 || in_use(&tables, now).0 == 0, "after {second} s: {:?}", in_use(&tables, now));
    }
}

/// One limit for each table whose words wrap within months: units, period and burst.
const SHORT: [(u64, u64, u64); 6] = [
    (1_000, SECOND, 10),
    (30, 60 * SECOND, 16),
    (1_000, 3_600 * SECOND, 1_000),
    (100, DAY, 100),
    (1 << 32, SECOND, 1 << 32),
    (4_000_000, 3_600 * SECOND, 4_000_000),
];

/// A process that was stopped for long gets calls before its timer sweeps.
#[test]
fn no_call_finds_a_debt_that_drained_before_a_silence() {
    for (first, (units, period, burst)) in (0..5).flat_map(|first| SHORT.map(|limit| (first, limit))) {
        let tables = tables();
        let limit = tables.limit(units, period, burst).expect("a limit");
        let mut now = 1 << 50;
        for eighths in [0, 1, 4, 7, 8, 9, 16, 40] {
            // Words come round after eight times the horizon and the skew, and the reported span is one less.
            now += limit.made.table.info().span / 7 * eighths;
            let is_free = match first {
                0 => true,
                1 => limit.credit(b"k", burst, now).is_some_and(|d| d.units == 0),
                2 => limit.owed(b"k", now, now) == 0,
                3 => !tables.forget(b"k", now),
                _ => {
                    let mut text = String::new();
                    tables.metrics(now, &mut text);
                    let mut live = text.lines().filter(|line| line.starts_with("tatcell_live_keys{"));
                    live.next().is_some_and(|line| line.ends_with(" 0"))
                }
            };
            let ask = || Tables::check(&limit, b"k", burst, now).expect("one thread").passes();
            assert!(is_free && ask(), "call {first}: {units} per {period}, {burst}, {eighths} eighths");
            assert!(!ask(), "{units} per {period}, {burst}");
        }
    }
}

#[test]
fn a_unit_is_never_shorter_than_asked_for_and_at_most_a_thousandth_longer() {
    let tables = tables();
    for count in (1..2_000).chain([9_999, 77_777, 999_983]) {
        for (period, burst) in [(1, 1), (60, 100), (3_600, 1_000), (86_400, 86_400)] {
            let Ok(limit) = tables.limit(count, period * SECOND, burst) else { continue };
            let (unit, resolution) = limit.unit();
            let kept = unit as f64 * 2f64.powi(-resolution);
            let asked = (period * SECOND) as f64 / count as f64;
            assert!(kept >= asked * (1.0 - 1e-12) && kept <= asked * (1.0 + 1.0 / 1024.0), "{kept} {asked}");
        }
    }
}

#[test]
fn a_key_is_forgotten_and_a_key_that_never_was_owes_nothing() {
    let tables = tables();
    let limits = [tables.limit(1, SECOND, 2), tables.limit(1, DAY, 2)].map(|l| l.expect("a limit"));
    let now = 5 * DAY;
    assert!(!tables.forget(b"k", now));
    for limit in &limits {
        assert!(Tables::check(limit, b"k", 2, now).is_some_and(|d| d.passes()));
        assert!(Tables::check(limit, b"k", 1, now).is_some_and(|d| !d.passes()));
    }
    assert_eq!(in_use(&tables, now).0, 2);
    assert!(tables.forget(b"k", now));
    for limit in &limits {
        assert!(Tables::check(limit, b"k", 2, now).is_some_and(|d| d.passes()));
    }
}

#[test]
fn a_key_that_owes_in_a_full_table_takes_a_slot_over_and_says_so() {
    let tables = Tables::new(1, FullPolicy::Inherit).expect("tables");
    let limit = tables.limit(100, DAY, 100).expect("a limit");
    // The memory is one huge page, however few keys are asked for.
    for key in 0..600_000u32 {
        assert!(Tables::check(&limit, &key.to_le_bytes(), 1, DAY).is_some());
    }
    let (live, slots) = in_use(&tables, DAY);
    assert!(live > slots * 99 / 100, "{live} of {slots}");
    for key in [b"a", b"b", b"c", b"d"] {
        assert_eq!(limit.owe(key, DAY / 2, DAY), Some(true));
        assert!(limit.owed(key, DAY, DAY) >= DAY / 2);
    }
}

#[test]
fn sweeps_reach_every_slot_within_the_span_of_the_finest_table() {
    let tables = tables();
    let limit = tables.limit(1_000, SECOND, 10).expect("a limit");
    let mut now = DAY;
    for key in 0..500u32 {
        assert!(Tables::check(&limit, &key.to_le_bytes(), 10, now).is_some_and(|d| d.passes()));
    }
    // Ten minutes; without a sweep a word of the finest table reads as a debt again after 137 s.
    for second in 0..600 {
        now += SECOND;
        tables.sweep(now);
        assert!(second < 1 || in_use(&tables, now).0 == 0, "after {second} s: {:?}", in_use(&tables, now));
    }
}

#[test]
fn decisions_are_counted_and_written_table_by_table() {
    let tables = tables();
    let fine = tables.limit(1, SECOND, 1).expect("a limit");
    let coarse = tables.limit(1, DAY, 100).expect("a limit");
    for (limit, units, passes) in [(&fine, 1, true), (&fine, 1, false), (&coarse, 101, false)] {
        assert_eq!(Tables::check(limit, b"k", units, DAY).map(|d| d.passes()), Some(passes));
    }
    let mut text = String::new();
    tables.metrics(DAY, &mut text);
    for want in [
        "tatcell_requests_total{table=\"2^-6 ns\",verdict=\"conforming\"} 1\n",
        "tatcell_requests_total{table=\"2^-6 ns\",verdict=\"non_conforming\"} 1\n",
        "tatcell_requests_total{table=\"2^15 ns\",verdict=\"never\"} 1\n",
        "tatcell_new_keys_total{table=\"2^-6 ns\"} 1\n",
        "tatcell_live_keys{table=\"2^-6 ns\"} 1\n",
        "tatcell_live_keys{table=\"2^15 ns\"} 0\n",
        "tatcell_longest_debt_seconds{table=\"2^-6 ns\"} 1.0",
    ] {
        assert!(text.contains(want), "{want}\n{text}");
    }
}

#[test]
fn a_request_is_counted_once_however_often_it_lost_to_other_threads() {
    let table = tables();
    let limit = table.limit(1, SECOND, 1_000).expect("a limit");
    let passes = Tables::check(&limit, b"k", 1, DAY).expect("a decision");
    let lost = Decision { verdict: Verdict::Contended, ..passes };
    let counts = |losses: u32| {
        let (counted, mut tries) = (Counted::default(), 0);
        let decision = until_decided(&counted, |counters| {
            tries += 1;
            match tries <= losses {
                true => counters.contended += 1,
                false => counters.conforming += 1,
            }
            Some(if tries <= losses { lost } else { passes })
        });
        let sum = counted.sum();
        (decision.map(|decision| decision.verdict), sum.conforming, sum.contended)
    };
    assert_eq!(counts(0), (Some(Verdict::Conforming), 1, 0));
    assert_eq!(counts(3), (Some(Verdict::Conforming), 1, 0));
    assert_eq!(counts(ATTEMPTS - 1), (Some(Verdict::Conforming), 1, 0));
    assert_eq!(counts(ATTEMPTS), (None, 0, 1));
}

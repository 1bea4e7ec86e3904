//! Reloads that change limits: what a key has used stays used, and no more. The reference is a plain counter.

mod common;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{request, Random};
use tatcell_door::{Keeper, KeeperSettings, Rate, Settings};
use tatcell_ratelimit::api::{Code, Override, Unit};
use tatcell_ratelimit::read::Source;
use tatcell_ratelimit::service::{Options, RateLimit};

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;

fn sources(text: &str) -> Vec<Source> {
    vec![Source { name: "r.yaml".into(), text: text.into() }]
}

fn settings() -> KeeperSettings {
    KeeperSettings::take(&mut Settings::file("", "keys = 200").expect("settings")).expect("all known")
}

/// A service at a time of the test's own.
struct Service(RateLimit, u64);

impl Service {
    fn open(rules: &str) -> Service {
        let text = format!("domain: d\ndescriptors:\n{rules}");
        Service(RateLimit::open(&sources(&text), settings(), Options::default()).expect("a service"), DAY)
    }

    fn reload(&self, rules: &str) {
        let text = format!("domain: d\ndescriptors:\n{rules}");
        self.0.reload_at(Ok(sources(&text)), || self.1).expect("rules");
    }

    /// Whether it passes, and what is left.
    fn ask(&self, descriptor: &str, hits: u64, sent: Option<(u32, Unit)>) -> (bool, u32) {
        let mut asked = request("d", &[descriptor]);
        asked.descriptors[0].hits_addend = Some(hits);
        let sent = sent.map(|(requests_per_unit, unit)| Override { requests_per_unit, unit: unit.into() });
        asked.descriptors[0].limit = sent;
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let response = runtime.block_on(self.0.decide_at(asked, self.1)).expect("an answer");
        (response.overall_code() == Code::Ok, response.statuses[0].limit_remaining)
    }

    fn left(&self, descriptor: &str) -> u32 {
        self.ask(descriptor, 0, None).1
    }
}

fn user(unit: &str, requests: u32) -> String {
    format!("  - {{key: user, rate_limit: {{unit: {unit}, requests_per_unit: {requests}}}}}\n")
}

#[test]
fn a_raised_limit_leaves_what_was_not_used() {
    let mut service = Service::open(&user("day", 3));
    assert_eq!(service.ask("user=a", 3, None), (true, 0));
    service.1 += 1;
    service.reload(&user("day", 1_000));
    assert_eq!((service.left("user=a"), service.left("user=b")), (997, 1_000));
    assert_eq!(service.ask("user=a", 997, None), (true, 0));
    assert!(!service.ask("user=a", 1, None).0);
}

#[test]
fn a_lowered_limit_has_as_many_units_used_or_all_of_them() {
    let mut service = Service::open(&user("day", 1_000));
    service.ask("user=a", 2, None);
    service.ask("user=b", 500, None);
    service.reload(&user("day", 5));
    assert_eq!((service.left("user=a"), service.left("user=b")), (3, 0));
    // And it comes back at the new rate.
    service.1 += 2 * DAY / 5;
    assert_eq!((service.left("user=a"), service.left("user=b")), (5, 2));
}

#[test]
fn another_unit_of_time_keeps_the_units() {
    let mut service = Service::open(&user("hour", 60));
    service.ask("user=a", 40, None);
    service.reload(&user("day", 100));
    assert_eq!(service.left("user=a"), 60);
    service.reload(&user("second", 70));
    assert_eq!(service.left("user=a"), 30);
    service.1 += SECOND;
    assert_eq!(service.left("user=a"), 70);
}

#[test]
fn two_reloads_without_a_request_between_them_carry_the_units_through_both() {
    let mut service = Service::open(&user("day", 100));
    service.ask("user=a", 60, None);
    service.reload(&user("hour", 10));
    // 4 of the 10 come back.
    service.1 += 4 * HOUR / 10;
    service.reload(&user("day", 100));
    assert_eq!(service.left("user=a"), 94);
}

#[test]
fn a_rule_that_was_taken_out_comes_back_with_what_was_used() {
    let mut service = Service::open(&user("day", 24));
    service.ask("user=a", 20, None);
    service.reload("");
    assert_eq!(service.ask("user=a", 50, None), (true, 0));
    service.1 += 5 * HOUR;
    service.reload(&user("day", 24));
    assert_eq!(service.left("user=a"), 9);
    // A rule for one value takes over, and gives back.
    let own = "  - {key: user, value: a, rate_limit: {unit: day, requests_per_unit: 240}}\n";
    service.reload(&format!("{}{own}", user("day", 24)));
    assert_eq!((service.left("user=a"), service.left("user=b")), (225, 24));
    service.ask("user=a", 5, None);
    service.reload(&user("day", 24));
    assert_eq!((service.left("user=a"), service.left("user=b")), (4, 24));
}

#[test]
fn a_reload_that_changes_nothing_renames_no_key() {
    let service = Service::open(&user("day", 10));
    service.ask("user=a", 4, None);
    for _ in 0..40 {
        service.reload(&format!("{}  - {{key: other}}\n", user("day", 10)));
        service.reload(&user("day", 10));
    }
    assert_eq!(service.left("user=a"), 6);
}

#[test]
fn values_that_share_a_limit_carry_the_units_whoever_of_them_asks() {
    let shared = |requests: u32| {
        let limit = format!("rate_limit: {{unit: day, requests_per_unit: {requests}}}");
        format!("  - {{key: user, value: a*, share_threshold: true, {limit}}}\n")
    };
    // Before the reload, a1 had a limit of its own.
    let own = "  - {key: user, value: a1, rate_limit: {unit: day, requests_per_unit: 100}}\n";
    let service = Service::open(&format!("{}{own}", shared(5)));
    service.ask("user=a2", 5, None);
    service.reload(&shared(10));
    assert_eq!((service.left("user=a1"), service.left("user=a2")), (5, 5));
}

#[test]
fn a_debt_that_drained_under_a_fast_limit_does_not_come_back() {
    let mut service = Service::open(&user("year", 1_000));
    service.ask("user=a", 1_000, None);
    service.reload(&user("second", 10));
    service.1 += 10 * SECOND;
    let last = user("year", 1_000);
    service.reload(&last);
    service.1 += 2 * SECOND;
    // The fast limit has drained, so this reload need not remember it.
    service.reload(&format!("{last}  - {{key: other, rate_limit: {{unit: day, requests_per_unit: 1}}}}\n"));
    assert_eq!(service.left("user=a"), 1_000);
}

/// Words of the table that has limits of a second come round after 2^37 ns.
#[test]
fn a_debt_that_drained_counts_no_more_whatever_is_reloaded_before_or_after_a_silence() {
    let (second, year) = (user("second", 10), user("year", 1_000));
    let mut service = Service::open(&second);
    service.ask("user=a", 10, None);
    service.1 += (1 << 37) - SECOND / 2;
    service.reload(&year);
    service.1 += SECOND;
    assert_eq!(service.left("user=a"), 1_000);
    service.ask("user=a", 1_000, None);
    service.reload(&second);
    assert_eq!(service.left("user=a"), 0);
    service.1 += (1 << 37) - SECOND / 2;
    assert_eq!(service.left("user=a"), 10);
}

#[test]
fn a_request_that_read_the_clock_before_the_reload_gets_nothing_back_twice() {
    let mut service = Service::open(&user("day", 24));
    service.ask("user=a", 24, None);
    service.1 += HOUR;
    service.reload(&user("day", 48));
    // One of 24 came back until the reload.
    service.1 -= HOUR;
    service.ask("user=a", 0, None);
    service.1 += HOUR;
    assert_eq!(service.left("user=a"), 25);
}

#[test]
fn units_that_are_given_back_are_not_used_whatever_is_reloaded() {
    let mut service = Service::open(&user("day", 24));
    let back = |service: &Service, hits: u64| {
        let mut asked = request("d", &["user=a"]);
        (asked.descriptors[0].hits_addend, asked.descriptors[0].is_negative_hits) = (Some(hits), true);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let response = runtime.block_on(service.0.decide_at(asked, service.1)).expect("an answer");
        assert_eq!(response.overall_code(), Code::Ok);
        response.statuses[0].limit_remaining
    };
    service.ask("user=a", 20, None);
    assert_eq!(back(&service, 5), 9);
    // What has drained meanwhile is not given back once more: 15 were used, 10 came back.
    service.1 += 10 * HOUR;
    assert_eq!((service.left("user=a"), back(&service, 9)), (19, 24));
    service.1 += SECOND;
    service.ask("user=a", 20, None);
    service.reload(&user("day", 240));
    assert_eq!((back(&service, 3), service.left("user=a")), (223, 223));
}

/// What a key has used by the reference, and when its word in the table drains.
#[derive(Clone, Copy)]
struct Counter {
    used: f64,
    at: u64,
    drains: u64,
}

/// 6000 requests of twelve keys at random times, with reloads among them.
#[test]
fn no_key_has_more_or_less_than_a_counter_whatever_is_reloaded() {
    const SEED: u64 = 25;
    let mut random = Random(SEED);
    let units = [("minute", Unit::Minute), ("hour", Unit::Hour), ("day", Unit::Day), ("month", Unit::Month)];
    // A limit of a year, so that no change is forgotten meanwhile.
    let year = "  - {key: other, rate_limit: {unit: year, requests_per_unit: 5}}\n";
    let mut service = Service::open(&format!("{year}{}", user("day", 10)));
    let keeper = service.0.keeper();
    let Keeper::Local(tables, _) = &*keeper else { panic!("tables") };
    let time_of = |rate: Rate| {
        let limit = tables.limit(rate.units, rate.period * SECOND, rate.burst).expect("a limit");
        let (unit, resolution) = limit.unit();
        unit as f64 * 2f64.powi(-resolution)
    };
    let mut limit = Some((10.0, time_of(Unit::Day.rate(10))));
    let mut last = limit;
    let (mut counters, mut moved): (HashMap<u64, Counter>, [bool; 12]) = (HashMap::new(), [false; 12]);
    // A key that is given up takes another name.
    let mut names: Vec<u64> = (0..12).collect();
    let (mut reloads, mut passed, mut refused, mut forgotten) = (0, 0, 0, 0);
    for call in 0..6_000 {
        let size = random.below(42);
        service.1 += random.below(1 << size);
        let now = service.1;
        let drained = |of: &Counter, time: f64| (of.used - (now - of.at) as f64 / time).max(0.0);
        if random.below(50) == 0 {
            let (name, unit) = units[random.below(4) as usize];
            let requests = [1, 3, 10, 100, 1_000, 40_000][random.below(6) as usize];
            let out = random.below(6) == 0;
            let rule = if out { String::new() } else { user(name, requests) };
            service.reload(&format!("{year}{rule}"));
            let new = (!out).then(|| (f64::from(requests), time_of(unit.rate(requests))));
            if let (Some((burst, _)), Some((_, time))) = (new, last) {
                for of in counters.values_mut() {
                    *of = Counter { used: drained(of, time).min(burst), at: now, ..*of };
                }
                moved = [true; 12];
            }
            (limit, last, reloads) = (new, new.or(last), reloads + 1);
            continue;
        }
        let key = random.below(12);
        let most = [3, 3, 2_000][random.below(3) as usize];
        let hits = random.below(most);
        let (passes, _) = service.ask(&format!("user={}", names[key as usize]), hits, None);
        let Some((burst, time)) = limit else {
            assert!(passes, "nothing limits it");
            continue;
        };
        let have = counters.get(&key).map_or(0.0, |of| drained(of, time));
        // A table may forget a debt that has drained under the limit under which it was made.
        let late = counters.get(&key).is_some_and(|of| have > 0.0 && now >= of.drains);
        if std::mem::take(&mut moved[key as usize]) && late {
            (forgotten, names[key as usize]) = (forgotten + 1, names[key as usize] + 12);
            counters.remove(&key);
            continue;
        }
        let after = have + hits as f64;
        // A carry rounds up to a unit of the table's time, a thousandth of a request.
        match passes {
            true => assert!(after <= burst + 0.001, "seed {SEED}, call {call}: {after} of {burst}"),
            false => assert!(after > burst - 0.05, "seed {SEED}, call {call}: {after} of {burst}"),
        }
        let used = if passes { after.min(burst) } else { have };
        counters.insert(key, Counter { used, at: now, drains: now + (used * time) as u64 });
        *(if passes { &mut passed } else { &mut refused }) += 1;
    }
    println!("{reloads} reloads, {passed} passed, {refused} refused, {forgotten} came too late");
    assert!(reloads > 80 && passed > 1_000 && refused > 1_000 && forgotten < 200);
}

#[test]
fn units_are_carried_once_while_many_ask() {
    let service = &Service::open(&user("year", 100)).0;
    let (passed, done) = (&AtomicU64::new(0), &AtomicBool::new(false));
    // The year ends after the test.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                // ORDERING: Relaxed, both; values, read after a pause that is long enough or after the join.
                while !done.load(Ordering::Relaxed) {
                    let asked = request("d", &["user=a"]);
                    let answer = runtime.block_on(service.decide_at(asked, DAY)).expect("an answer");
                    passed.fetch_add(u64::from(answer.overall_code() == Code::Ok), Ordering::Relaxed);
                }
            });
        }
        let reload = |requests: u32| {
            let text = format!("domain: d\ndescriptors:\n{}", user("year", requests));
            service.reload_at(Ok(sources(&text)), || DAY).expect("rules");
        };
        let reaches = |most: u64| {
            let begun = std::time::Instant::now();
            // ORDERING: Relaxed; a value.
            while passed.load(Ordering::Relaxed) < most {
                assert!(begun.elapsed() < common::PATIENCE, "{most} do not pass");
                std::thread::yield_now();
            }
        };
        reaches(100);
        for round in 1..=50 {
            reload(100 + 10 * round);
            reaches(u64::from(100 + 10 * round));
        }
        reload(50);
        reload(500);
        reaches(600 + 450);
        // ORDERING: Relaxed; a value.
        done.store(true, Ordering::Relaxed);
    });
    // ORDERING: Relaxed; the threads have ended.
    assert_eq!(passed.load(Ordering::Relaxed), 600 + 450);
}

#[test]
fn limits_of_the_same_entries_share_nothing() {
    let service = Service::open(&user("hour", 10));
    for (key, sent, at_once) in [
        ("a", &[(10, Unit::Hour), (100, Unit::Day)][..], 10),
        ("b", &[(100, Unit::Month), (500, Unit::Year)], 100),
        ("c", &[(20, Unit::Minute), (100, Unit::Hour)], 20),
        ("d", &[(5, Unit::Second), (20, Unit::Minute)], 5),
        // Two numbers of one unit are two limits, too.
        ("e", &[(10, Unit::Hour), (20, Unit::Hour)], 10),
    ] {
        let descriptor = format!("user={key}");
        let mut asked = request("d", &vec![descriptor.as_str(); sent.len()]);
        for (descriptor, (requests_per_unit, unit)) in asked.descriptors.iter_mut().zip(sent) {
            descriptor.limit = Some(Override { requests_per_unit: *requests_per_unit, unit: (*unit).into() });
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let passes = || {
            let answer = runtime.block_on(service.0.decide_at(asked.clone(), service.1)).expect("an answer");
            answer.overall_code() == Code::Ok
        };
        assert_eq!((0..200).take_while(|_| passes()).count(), at_once, "{sent:?}");
        // Nor with the rule's.
        assert_eq!(service.left(&descriptor), 10);
    }
}

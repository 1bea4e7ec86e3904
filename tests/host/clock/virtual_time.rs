//! The default skew in virtual time: which readings get strict answers, and which one forgives a debt.

use super::Rate;
use crate::common::{cases, memory};
use tatcell::{
    Cell, Cell32, ExclusiveCell, ExclusiveTable, FullPolicy, LimitInfo, Line, Outcome, Request, Table,
    TableOptions,
};

const NS: u64 = 1_000_000_000;
const POLICIES: [FullPolicy; 4] =
    [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled];
const HASH: u64 = 0x1234_5678_9abc_def0;

/// Slow and fast, long and short, in ns, us and ms.
const RATES: [Rate; 7] = [
    Rate { units: 1_000, period: NS, burst: 20 },
    Rate { units: 1_000_000, period: NS, burst: 1_000 },
    // 10 Gbit/s in bytes: a 64th of the table's span is below a second
    Rate { units: 1_250_000_000, period: NS, burst: 1_000_000 },
    // one each 10 s: the horizon is above a second
    Rate { units: 1, period: 10 * NS, burst: 10 },
    // one an hour: the q-unit of a table is coarser than a tick
    Rate { units: 1, period: 3_600 * NS, burst: 24 },
    // ticks of a microsecond
    Rate { units: 1_000, period: 1_000_000, burst: 20 },
    // ticks of a millisecond
    Rate { units: 10, period: 1_000, burst: 5 },
];

/// One fresh key of one form.
struct Key {
    name: String,
    info: LimitInfo,
    /// Width of the TAT.
    bits: u32,
    ask: Box<dyn FnMut(u64, u64) -> bool>,
}

impl Key {
    fn new(
        name: String,
        info: LimitInfo,
        bits: u32,
        mut ask: impl FnMut(u64, u64) -> Outcome + 'static,
    ) -> Key {
        let ask = Box::new(move |now, cost| match ask(now, cost) {
            Outcome::Conforming => true,
            Outcome::NonConforming { .. } => false,
            other => panic!("{other:?}"),
        });
        Key { name, info, bits, ask }
    }

    /// How many of `n` requests pass.
    fn passes(&mut self, n: u64, now: u64, cost: u64) -> u64 {
        (0..n).filter(|_| (self.ask)(now, cost)).count() as u64
    }

    /// A reading in q-units.
    fn q(&self, now: u64) -> u128 {
        match self.info.resolution {
            s @ 0.. => u128::from(now) << s,
            s => u128::from(now >> -s),
        }
    }

    /// What the default skew should be, in ticks.
    fn default_skew(&self) -> u64 {
        let (s, horizon) = (self.info.resolution, self.info.horizon);
        let ticks = |bits: i32| if bits >= s { 1u64 << (bits - s) } else { 1 };
        if self.bits == 64 && s <= 9 {
            return ticks(61 + s.min(0));
        }
        // A second of ns is at least one q-unit.
        let second = 1 << 30.max(-s);
        horizon.max(second.min(ticks(self.bits as i32 - 6)))
    }
}

/// A fresh key in every form that can hold this limit, with the answers of the short and of the full call.
fn keys(rate: Rate) -> Vec<Key> {
    let (spec, mut all) = (rate.spec(), Vec::new());
    macro_rules! cell {
        ($cell:ident, $build:ident, $bits:expr) => {
            if let Ok(limit) = spec.$build() {
                let name = |call| format!("{} {call}", stringify!($cell));
                #[allow(unused_mut)] // the owned one needs it
                let (mut a, mut b) = ($cell::new(), $cell::new());
                let short = move |now, cost| a.check(&limit, now, cost);
                let full = move |now, cost| b.check_ex(&limit, now, cost, 0).outcome();
                all.push(Key::new(name("check"), limit.info(), $bits, short));
                all.push(Key::new(name("check_ex"), limit.info(), $bits, full));
            }
        };
    }
    cell!(Cell, build, 64);
    cell!(ExclusiveCell, build, 64);
    cell!(Cell32, build32, 32);
    macro_rules! table {
        ($table:ident, $init:ident, $policy:expr) => {
            for full in [false, true] {
                let lines: &'static mut [Line] = memory(4).leak();
                let options = TableOptions::new(spec).caller_hash().policy($policy);
                let table = $table::$init(lines, &options).unwrap();
                let limit = table.limit(&spec).unwrap();
                let name = format!(
                    "{} {:?} {}",
                    stringify!($table),
                    $policy,
                    if full { "check_ex" } else { "check" }
                );
                all.push(Key::new(name, limit.info(), 43, move |now, cost| {
                    if full {
                        let request = Request { limit: &limit, now, cost, room: 0 };
                        table.check_ex(&request, HASH, None).unwrap().outcome()
                    } else {
                        table.check_hash(&limit, now, HASH, cost).unwrap()
                    }
                }));
            }
        };
    }
    for policy in POLICIES {
        table!(Table, init, policy);
        table!(ExclusiveTable, init_exclusive, policy);
    }
    all
}

/// A cost of which 20 make a burst, or 1.
fn cost(rate: Rate) -> u64 {
    (rate.burst / 20).max(1)
}

#[test]
fn a_reading_two_burst_times_old_admits_none_more() {
    const MS: u64 = 1_000_000;
    let rate = Rate { units: 1_000, period: NS, burst: 20 };
    for start in [0, 1 << 40, (1 << 43) - 80 * MS, u64::MAX - 80 * MS] {
        for mut key in keys(rate) {
            let at = |ms: u64| start.wrapping_add(ms * MS);
            let passed = [100, 59, 100].map(|ms| key.passes(30, at(ms), 1));
            assert_eq!(passed, [20, 0, 0], "{} from {start}", key.name);
            assert_eq!(key.passes(30, at(101), 1), 1, "{} from {start}", key.name);
        }
    }
}

#[test]
fn a_fast_byte_limit_is_strict_for_clocks_60_ms_apart() {
    // 10 Gbit/s: the burst time is 0.8 ms, a table's skew a 64th of its span, 67 ms, a cell's more than a second.
    let rate = RATES[2];
    for mut key in keys(rate) {
        let readings = [NS, NS - 60_000_000, NS, NS - 60_000_000, NS];
        let passed = readings.map(|now| key.passes(30, now, 50_000));
        assert_eq!(passed, [20, 0, 0, 0, 0], "{}", key.name);
    }
}

#[test]
fn the_default_skew_is_a_second_of_ns_a_64th_of_the_span_or_the_horizon() {
    for rate in RATES {
        for key in keys(rate) {
            assert_eq!(key.info.skew, key.default_skew(), "{} {rate:?}: {:?}", key.name, key.info);
        }
    }
    // The same in numbers, form by form.
    let skews = |rate: Rate, form: &str| {
        let all = keys(rate);
        let mut found = all.iter().filter(|k| k.name.starts_with(form)).map(|k| k.info.skew);
        let first = found.next();
        assert!(found.all(|s| Some(s) == first), "{form} {rate:?}");
        first
    };
    let forms = ["Table", "ExclusiveTable", "Cell ", "ExclusiveCell", "Cell32"];
    let of = |rate| forms.map(|form| skews(rate, form));
    assert_eq!(of(RATES[0]), [1 << 30, 1 << 30, 1 << 61, 1 << 61, 1 << 26].map(Some));
    assert_eq!(of(RATES[2])[..4], [1 << 26, 1 << 26, 1 << 30, 1 << 30].map(Some));
    assert_eq!(of(RATES[3])[..4], [100 * NS, 100 * NS, 1 << 61, 1 << 61].map(Some));
}

#[test]
fn readings_back_to_exactly_the_skew_are_strict_and_one_tick_more_forgives() {
    for rate in RATES {
        let (cost, n) = (cost(rate), rate.burst / cost(rate));
        for start in [1u64 << 62, 3 << 61] {
            // Whole q-units; a tick more is then one q-unit more, however coarse it is.
            for mut key in keys(rate) {
                let skew = key.info.skew;
                assert_eq!(key.passes(n + 10, start, cost), n, "{} {rate:?}", key.name);
                for back in [1, skew / 2, skew - 1, skew] {
                    assert_eq!(
                        key.passes(n + 10, start - back, cost),
                        0,
                        "{} {rate:?} back {back}",
                        key.name
                    );
                    assert_eq!(key.passes(n + 10, start, cost), 0, "{} {rate:?} after {back}", key.name);
                }
                // The documented edge: the debt is forgiven, and is then one of the old time.
                assert_eq!(key.passes(n + 10, start - skew - 1, cost), n, "{} {rate:?}", key.name);
                assert_eq!(key.passes(n + 10, start, cost), n, "{} {rate:?}", key.name);
            }
        }
    }
}

#[test]
fn a_skew_that_is_given_counts_instead_of_the_default() {
    // What the default was once: one burst time.
    let rate = RATES[0];
    let (spec, skew) = (rate.spec(), rate.burst_time());
    let lines = memory(4);
    let table = Table::init(&lines, &TableOptions::new(spec).caller_hash().skew(skew)).unwrap();
    let (keyed, wide) = (table.limit(&spec).unwrap(), spec.skew(skew).build().unwrap());
    assert_eq!([keyed.info().skew, wide.info().skew], [skew; 2]);
    let cell = Cell::new();
    let passes = |ms: u64| {
        let now = ms * 1_000_000;
        let count = |ask: &dyn Fn() -> Outcome| (0..30).filter(|_| ask() == Outcome::Conforming).count();
        [count(&|| table.check_hash(&keyed, now, HASH, 1).unwrap()), count(&|| cell.check(&wide, now, 1))]
    };
    assert_eq!([100, 80, 100].map(passes), [[20; 2], [0; 2], [0; 2]]);
    assert_eq!([79, 100].map(passes), [[20; 2]; 2]);
}

#[test]
fn readings_within_the_skew_get_the_answers_of_a_tat_that_never_falls() {
    cases(300, |rng| {
        let rate = rng.pick(&RATES);
        let (t, unit) = (rate.period.div_ceil(rate.units), cost(rate));
        for mut key in keys(rate) {
            let (t_q, skew) = (u128::from(key.info.emission_q), key.info.skew);
            let burst_q = t_q * u128::from(rate.burst);
            // The largest reading so far, the model's TAT, units admitted, the first reading admitted.
            let (mut high, mut tat, mut admitted, mut first) = (1u64 << 62, 0, 0, None);
            for step in 0..120 {
                high += if rng.one_in(3) { rng.below(t * unit * 2 + 2) } else { 0 };
                let back = match rng.below(5) {
                    0 => skew,
                    1 => rng.below(skew + 1),
                    2 => rng.scaled(62).min(skew),
                    _ => 0,
                };
                let (now, cost) = (high - back, unit * rng.within(1, 3));
                let after = tat.max(key.q(now)) + t_q * u128::from(cost);
                let conforms = after <= key.q(now) + burst_q;
                assert_eq!((key.ask)(now, cost), conforms, "{} {rate:?} step {step}: {back} back", key.name);
                if conforms {
                    (tat, admitted) = (after, admitted + cost);
                    first.get_or_insert(key.q(now));
                }
            }
            let elapsed = key.q(high) - first.unwrap_or(key.q(high));
            assert!(u128::from(admitted) * t_q <= burst_q + elapsed, "{} {rate:?}: {admitted}", key.name);
        }
    });
}

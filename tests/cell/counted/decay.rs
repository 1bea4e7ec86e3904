//! Decaying levels against the exact ones: never below them, and above them by no more than is stated.
//!
//! TATCELL_COUNTED_STEPS sets the number of decisions. A run of 2e8
//! (`cargo test --release --test cell counted every_decision_is_that_of_a_level`, AMD EPYC of family 26, 2026-11-23):
//! 138 575 797 passed, 61 424 203 refused, 676 971 of forgotten keys, none outside the bounds; 191 s of processor time.

use super::frame::{ask, cost, refuses, Clock};
use crate::common::{cases, size_from, Rng};
use tatcell::{Cell, Decision, ExclusiveCell, Limit, LimitError, LimitSpec, Permit, Verdict};

/// A level below which a key may be forgotten.
const FORGOTTEN: f64 = 1.0 / 1024.0;
/// What the oracle itself does not know: f64 after many steps.
const UNSURE: f64 = 1e-9;

/// A level that halves in every half-life: a number and the time that it is of.
#[derive(Clone, Copy, Debug)]
struct Level {
    level: f64,
    at: u64,
    half_life: f64,
}

impl Level {
    /// The level at a time, before or after.
    fn of(&self, t: u64) -> f64 {
        if self.level <= 0.0 {
            return 0.0;
        }
        self.level * self.decay(self.at, t)
    }

    /// What is left of a unit of `from` at `to`.
    fn decay(&self, from: u64, to: u64) -> f64 {
        ((from as i64 - to as i64) as f64 / self.half_life).exp2()
    }

    fn set(&mut self, t: u64, level: f64) {
        (self.at, self.level) = (t, level.max(0.0));
    }
}

/// The exact level of what was charged, in ticks, and the highest that the stated errors allow, in units of time.
pub struct Oracle {
    shift: u32,
    exact: Level,
    high: Level,
    units: f64,
}

impl Oracle {
    pub fn new(limit: &Limit) -> Oracle {
        let info = limit.info();
        assert!(info.resolution <= 0);
        let shift = -info.resolution as u32;
        let half_life = ((info.period - 1) >> shift) + 1;
        let level = |half_life: u64| Level { level: 0.0, at: 0, half_life: half_life as f64 };
        Oracle { shift, exact: level(info.period), high: level(half_life), units: info.units as f64 }
    }

    /// From now on this number of units.
    pub fn retune(&mut self, units: u64) {
        self.units = units as f64;
    }

    /// What rounding a level to a time may add: a unit of time, one more where a charge came after the floored clock,
    /// and four places of a Q40 logarithm.
    fn rounded(&self, now: u64, level: f64) -> f64 {
        let units = if now & ((1 << self.shift) - 1) == 0 { 1.0 } else { 2.0 };
        level * (units / self.high.half_life + 4.0 / 2f64.powi(40)).exp2()
    }

    /// The level that was read: two places of Q32, two of Q40.
    fn read(&self, now: u64) -> f64 {
        self.high.of(now >> self.shift) * (2.0 / 2f64.powi(40)).exp2() + 2.0 / 2f64.powi(32)
    }

    pub fn charged(&mut self, now: u64, cost: f64, forgotten: bool) {
        let high = if forgotten { cost } else { self.read(now) + cost };
        self.high.set(now >> self.shift, self.rounded(now, high));
        self.exact.set(now, self.exact.of(now) + cost);
    }

    /// `cost` was charged at `then`; what its refund gives back decays.
    pub fn refunded(&mut self, now: u64, then: u64, cost: f64, kept: bool) {
        // Taken out where f64 can tell it from the rest: a clock behind sees a level of any size.
        let seen = now.max(then);
        self.exact.set(seen, self.exact.of(seen) - cost * self.exact.decay(then, seen));
        if kept && self.read(now) < 2f64.powi(31) {
            let part = self.high.decay(then >> self.shift, seen >> self.shift);
            let back = cost * (part * (1.0 - UNSURE) - 6.0 / 2f64.powi(32));
            // A level below the smallest that a word has is none at this time, and the smallest to a clock behind.
            let rest = self.rounded(now, self.read(now) - back).max(FORGOTTEN);
            self.high.set(now >> self.shift, rest);
        }
    }

    /// The answer is one that the exact level, or one above it by no more than the stated error, would give.
    pub fn judge(&self, now: u64, cost: u64, made: &Decision, forgotten: bool) {
        let (exact, high, cost) = (self.exact.of(now), self.read(now), cost as f64);
        if forgotten {
            // Some of it may be left of what was forgotten before, ten half-lives ago.
            assert!(exact <= FORGOTTEN * 1.01, "forgot a level of {exact} at {now}, {:?}", self.exact);
        } else {
            assert!(high >= FORGOTTEN * (1.0 - UNSURE), "remembers a level of {high}");
        }
        match made.verdict {
            Verdict::Conforming => {
                let most = self.units * (1.0 + UNSURE) + 2.01 * FORGOTTEN;
                assert!(exact + cost <= most, "{exact} + {cost} passed");
            }
            Verdict::NonConforming => {
                assert!(
                    high + cost > (self.units + FORGOTTEN) * (1.0 - UNSURE),
                    "{exact} to {high} + {cost} was refused"
                );
            }
            Verdict::Never => assert!(cost > self.units),
            Verdict::Contended => panic!("contended alone"),
        }
    }
}

fn any_limit(rng: &mut Rng) -> Limit {
    loop {
        let units = 1 + rng.scaled(20);
        let half_life = units * 100 + rng.scaled(44);
        let spec = LimitSpec::decay(units, half_life);
        let made = if rng.one_in(3) { spec.resolution(-(rng.below(8) as i8)).build() } else { spec.build() };
        match made {
            Ok(limit) => return limit,
            Err(e) => assert_eq!(e, LimitError::NotRepresentable, "{spec:?}"),
        }
    }
}

#[test]
fn every_decision_is_that_of_a_level_no_lower_than_the_exact_one_and_hardly_higher() {
    let steps = size_from("TATCELL_COUNTED_STEPS", 4e5 as u64) / 1_000;
    let seen = std::cell::Cell::new([0u64; 4]);
    cases(steps, |rng| {
        let limit = any_limit(rng);
        let (mut clock, mut oracle) = (Clock::new(rng, &limit), Oracle::new(&limit));
        let mut cell = ExclusiveCell::new();
        let mut last: Option<(u64, f64, Permit)> = None;
        let mut counts = seen.get();
        for _ in 0..1_000 {
            clock.step(rng);
            let now = clock.now;
            let cost = cost(rng, limit.burst());
            let forgotten = cell.peek(&limit, now, 1).remaining == limit.burst();
            if let (true, Some((then, units, permit))) = (rng.one_in(12), last.take()) {
                let kept = permit.tat.wrapping_sub(now >> -limit.info().resolution) as i64 > 0 && !forgotten;
                let back = cell.refund(&limit, now, &permit).unwrap() as f64;
                assert!(back <= units && (kept || back == 0.0));
                oracle.refunded(now, then, units, kept);
                counts[2] += u64::from(kept);
            }
            let forgotten = cell.peek(&limit, now, 1).remaining == limit.burst();
            let made = ask(&mut cell, &limit, now, cost);
            oracle.judge(now, cost, &made, forgotten);
            if made.passes() {
                oracle.charged(now, cost as f64, forgotten);
                last = Some((now, cost as f64, made.permit));
            }
            counts[usize::from(!made.passes())] += 1;
            counts[3] += u64::from(forgotten);
        }
        seen.set(counts);
    });
    let [passed, refused, refunded, forgotten] = seen.get();
    println!("{passed} passed, {refused} refused, {refunded} refunded, {forgotten} forgotten");
    assert!(passed > steps * 100 && refused > steps * 100, "the streams do not test");
    assert!(refunded > steps && forgotten > steps, "the streams do not test");
}

/// Units that a client is given that asks for one whenever the answer says that it may, in some half-lives after the
/// first burst, beside those that the exact level gives: one in every h * log2(units / (units - 1)).
fn greedy(units: u64, half_life: u64) -> (f64, f64) {
    let limit = LimitSpec::decay(units, half_life).resolution(0).build().unwrap();
    let mut cell = ExclusiveCell::new();
    let start = 1 << 40;
    assert!(cell.check(&limit, start, units).passes());
    let (mut now, mut passed) = (start, 0);
    let end = start + 8 * half_life;
    loop {
        now += cell.peek(&limit, now, 1).retry_after;
        if now > end {
            break;
        }
        assert!(cell.check(&limit, now, 1).passes());
        passed += 1;
    }
    let most = units as f64 + FORGOTTEN;
    let each = half_life as f64 * (most / (most - 1.0)).log2();
    (passed as f64, 8.0 * half_life as f64 / each)
}

#[test]
fn a_client_that_never_pauses_gets_the_sustained_rate_less_units_by_half_life_at_most() {
    for units in [2, 3, 10, 100, 1_000, 20_000] {
        for factor in [100, 137, 1_000, 30_011] {
            let half_life = units * factor + 3;
            let (got, ideal) = greedy(units, half_life);
            let (loss, stated) = (1.0 - got / ideal, units as f64 / half_life as f64);
            println!("{units} units, half-life {half_life}: {got} of {ideal:.1}, {:.4} % less", loss * 100.0);
            assert!(got <= ideal + 1e-6, "more than the exact level gives");
            assert!(got >= ideal * (1.0 - stated) - 1.0, "{got} of {ideal}, {stated} allowed");
            // The sustained rate of the documentation.
            let rate = 8.0 * units as f64 * std::f64::consts::LN_2;
            assert!(units < 10 || (got / rate - 1.0).abs() < 0.08, "{got} is far from {rate}");
        }
    }
}

#[test]
fn the_level_halves_in_a_half_life() {
    let limit = Limit::decay(1_000, 1 << 30).unwrap();
    let cell = Cell::new();
    assert!(cell.check(&limit, 77, 1_000).passes());
    for n in 1..=19 {
        let now = 77 + (n << 30) + 1024;
        let exact = 1_000.0 * (-(n as f64)).exp2();
        assert_eq!(cell.peek(&limit, now, 1).remaining, (1_000.0 - exact).floor() as u64, "{n} half-lives");
    }
    // log2(1000) + 10 half-lives, and it is forgotten.
    assert_eq!(cell.peek(&limit, 77 + (20 << 30), 1).remaining, 1_000);
}

#[test]
fn single_units_are_not_admitted_without_end() {
    // What forgetting a level of one unit would do.
    let limit = Limit::decay(5, 10_000).unwrap();
    let cell = Cell::new();
    let passed = (0..100_000).filter(|now| cell.check(&limit, *now, 1).passes()).count();
    let ideal = 5.0 + 10.0 / 1.25f64.log2();
    assert!(passed as f64 <= ideal && passed as f64 >= ideal - 1.0, "{passed} of {ideal}");
}

#[test]
fn a_refund_gives_back_what_has_not_decayed() {
    let limit = Limit::decay(1_000, 1 << 30).unwrap();
    let cell = Cell::new();
    let first = cell.check_ex(&limit, 100, 600, 0);
    let second = cell.check_ex(&limit, 100, 400, 0);
    assert_eq!(cell.refund(&limit, 100, &first.permit), Some(600));
    assert_eq!(cell.peek(&limit, 100, 1).remaining, 600);
    let later = 100 + (1 << 30);
    assert_eq!(cell.refund(&limit, later, &second.permit), Some(199)); // rounded down
    assert_eq!(cell.peek(&limit, later, 1).remaining, 1_000);

    // A unit comes back, a part at a time where nobody sees whole units.
    let cell = Cell::new();
    assert!(cell.check(&limit, 100, 999).passes());
    let last = cell.check_ex(&limit, 100, 1, 0);
    assert_eq!(cell.refund(&limit, 1_000_000, &last.permit), Some(0));
    assert!(cell.peek(&limit, 1_000_000, 1).passes());

    // Long ago: nothing is left, and nothing is stored.
    let made = cell.check_ex(&limit, 2_000_000, 1, 0);
    let word = cell.word();
    assert_eq!(cell.refund(&limit, 40 << 30, &made.permit), Some(0));
    let other = Permit { epoch: 1, ..made.permit };
    assert_eq!(cell.refund(&limit, 2_000_000, &other), Some(0));
    assert_eq!(cell.word(), word);
}

#[test]
fn a_clock_that_steps_back_sees_a_higher_level() {
    let limit = Limit::decay(100, 1 << 20).unwrap();
    let cell = Cell::new();
    let now = 1 << 30;
    assert!(cell.check(&limit, now, 50).passes());
    let mut last = 50;
    for back in [1 << 10, 1 << 17, 1 << 18, 1 << 19] {
        let seen = cell.peek(&limit, now - back, 1).remaining;
        assert!(seen < last, "{seen} a step of {back} before {last}");
        last = seen;
    }
    assert_eq!(cell.peek(&limit, now - (1 << 20) - 1, 1).remaining, 0);
    assert_eq!(
        cell.peek(&limit, 0, 1).retry_after,
        now + cell.peek(&limit, now, 1).next_unit - exactly(&cell, &limit, now)
    );
}

#[test]
fn a_refund_by_a_clock_far_behind_does_not_forget_the_level() {
    let limit = Limit::decay(1_000, 1 << 20).unwrap();
    let cell = Cell::new();
    let now = 1 << 40;
    assert!(cell.check(&limit, now, 999).passes());
    let last = cell.check_ex(&limit, now, 1, 0);
    // 2^1000 times the level: more than any number here.
    assert_eq!(cell.refund(&limit, now - (1_000 << 20), &last.permit), Some(0));
    assert_eq!(cell.peek(&limit, now, 1).remaining, 0);
    assert_eq!(cell.refund(&limit, now - (1 << 20), &last.permit), Some(1));
    assert_eq!(cell.peek(&limit, now, 1).remaining, 0, "half a unit: it had not decayed where the clock was");
}

/// How much earlier than `next_unit` one unit conforms, which it does already at `now`.
fn exactly(cell: &Cell, limit: &Limit, now: u64) -> u64 {
    let mut early = 0;
    while cell.peek(limit, now - early - 1, 1).passes() {
        early += 1;
    }
    early + cell.peek(limit, now, 1).next_unit
}

/// Also where a unit of time is several ticks, from every tick of one, and for a look at a debt.
#[test]
fn a_wait_ends_at_its_tick_in_units_of_any_length() {
    let mut random = Rng(11);
    for i in 0..120i8 {
        let limit = LimitSpec::decay(10, 2_000_000).max_debt(200).resolution(-(i % 7)).build().unwrap();
        let (cell, start) = (Cell::new(), random.below(1 << 40));
        let _ = cell.charge(&limit, start, random.within(1, 100));
        let later = start + random.below(100_000);
        let _ = cell.charge(&limit, later, random.within(10, 100));
        for now in later..later + 70 {
            for cost in [0, 1, 7] {
                let look = cell.peek(&limit, now, cost);
                let (end, is_late) = (now + look.retry_after, !look.passes());
                assert!(cell.peek(&limit, end, cost).passes(), "{cost} at {now}, units of 2^{}: late", i % 7);
                assert!(!is_late || !cell.peek(&limit, end - 1, cost).passes(), "{cost} at {now}: early");
            }
        }
    }
}

#[test]
fn soft_room_debt_and_shadow_are_options_of_decay_too() {
    let spec = LimitSpec::decay(10, 1_000_000);
    let limit = spec.soft(6).max_room(5).build().unwrap();
    let cell = Cell::new();
    assert_eq!(cell.check_ex(&limit, 1, 6, 0).flags, 0);
    assert_eq!(cell.check_ex(&limit, 1, 4, 0).flags, Decision::SOFT);
    assert!(!cell.check_ex(&limit, 1, 1, 0).passes());
    let elastic = cell.check_ex(&limit, 1, 3, 99);
    assert_eq!(elastic.flags, Decision::SOFT | Decision::ELASTIC);
    assert!(!cell.check_ex(&limit, 1, 3, 99).passes() && cell.check_ex(&limit, 1, 2, 99).passes());

    // A whole burst at once is no more than the burst, and a look at what it leaves conforms.
    let limit = spec.max_room(5).build().unwrap();
    let cell = Cell::new();
    assert_eq!(cell.check_ex(&limit, 1, 10, 5).flags, 0);
    assert!(cell.peek(&limit, 1, 0).passes());
    // No more is a burst of single units, though each was rounded up.
    let single = Cell::new();
    assert!((0..10).all(|_| single.check_ex(&limit, 1, 1, 0).flags == 0));
    assert!(!single.check(&limit, 1, 1).passes() && single.peek(&limit, 1, 0).passes());
    let above = Cell::new();
    assert_eq!(above.check_ex(&limit, 1, 11, 5).flags, Decision::ELASTIC);
    let look = above.peek(&limit, 1, 0);
    assert!(!look.passes());
    assert!(above.peek(&limit, 1 + look.retry_after, 0).passes());
    assert!(!above.peek(&limit, look.retry_after, 0).passes());

    let limit = spec.max_debt(20).build().unwrap();
    let cell = Cell::new();
    assert_eq!(cell.charge(&limit, 1, 25).permit.stored, 25);
    assert_eq!(cell.charge(&limit, 1, u64::MAX).permit.stored, 5);
    assert_eq!(cell.charge(&limit, 1, 25).permit.stored, 0);
    assert_eq!(cell.peek(&limit, 1, 1).remaining, 0);

    let limit = spec.shadow().build().unwrap();
    let cell = Cell::new();
    assert!(cell.check(&limit, 1, 10).passes());
    let passed = cell.check_ex(&limit, 1, 1, 0);
    assert_eq!((passed.flags, passed.permit.stored), (Decision::SHADOW, 0));
    assert!(passed.retry_after > 100_000 && passed.retry_after < 200_000);
}

#[test]
fn what_decay_does_not_have_is_refused_by_name() {
    let spec = LimitSpec::decay(10, 1_000_000);
    let all = [
        (spec.max_delay(1), LimitError::BadAlgorithm),
        (spec.penalty(1), LimitError::BadAlgorithm),
        (spec.aligned(0), LimitError::BadAlgorithm),
        (spec.heal(), LimitError::BadHeal),
        (spec.resolution(1), LimitError::BadResolution),
        (spec.resolution(-63), LimitError::BadResolution),
        (spec.resolution(-10), LimitError::NotRepresentable),
        (spec.soft(11), LimitError::BadSoft),
        (spec.skew(u64::MAX), LimitError::HorizonTooLong),
        (LimitSpec::decay(0, 1_000), LimitError::ZeroRate),
        (LimitSpec::decay(1, 0), LimitError::ZeroPeriod),
        (LimitSpec::decay(10, 999), LimitError::NotRepresentable),
        (LimitSpec::decay(10, 1_000).max_debt(11), LimitError::NotRepresentable),
        (LimitSpec::decay(1 << 31, 1 << 40), LimitError::TooManyUnits),
        (LimitSpec::decay(1, 1 << 40).max_room((1 << 31) - 1), LimitError::TooManyUnits),
        (LimitSpec::decay(u64::MAX, 1 << 40), LimitError::TooManyUnits),
        (LimitSpec::decay(1 << 20, u64::MAX), LimitError::HorizonTooLong),
    ];
    refuses(spec, &all);
    assert!(LimitSpec::decay(10, 1_000).build().is_ok());
    assert!(LimitSpec::decay((1 << 31) - 1, 1 << 40).build().is_ok());

    let limit = spec.build().unwrap();
    assert_eq!((limit.info().count_bits, limit.info().rate_error_ppb), (0, 0));
}

//! Quota-linear against its definition by two modes and a bucket, in unbounded rational arithmetic.

use super::frame::{ask, cost, refuses, Clock};
use crate::common::{cases, size_from, Rng};
use tatcell::{Cell, Decision, ExclusiveCell, Limit, LimitError, LimitSpec, Verdict};

fn any_spec(rng: &mut Rng) -> LimitSpec {
    let window =
        rng.pick(&[2, 7, 64, 1_000, 60_000, 1_000_003, 60_000_000_000]) * (1 + rng.below(9)) + rng.below(4);
    let quota = match rng.below(3) {
        0 => 1 << rng.below(20),
        _ => 1 + rng.scaled(20),
    };
    let spec = LimitSpec::quota_linear(quota, window);
    match rng.below(4) {
        0 => spec.resolution(-(rng.below(64 - window.leading_zeros() as u64) as i8)),
        _ => spec,
    }
}

/// The definition: a bucket that holds the quota, which fills at once when a window is over (bursty), or by `rate`
/// units in a unit of time, a fraction (smooth). Its content is a fraction with the rate's denominator.
pub struct Oracle {
    u: i128,
    w: i128,
    period: i128,
    quota: i128,
    rate: (i128, i128),
    bucket: i128,
    time: i128,
    smooth: bool,
    fresh: bool,
}

impl Oracle {
    pub fn new(limit: &Limit) -> Oracle {
        let info = limit.info();
        let u = 1i128 << (info.count_bits as i32 - 1 - info.resolution);
        let (period, quota) = (info.period as i128, info.units as i128);
        let w = (period + u - 1) / u;
        Oracle { u, w, period, quota, rate: (quota, w), bucket: 0, time: 0, smooth: false, fresh: true }
    }

    pub fn check(&mut self, now: u64, cost: u64) -> Verdict {
        let (t, cost) = (now as i128 / self.u, cost as i128);
        if cost > self.quota {
            return Verdict::Never;
        }
        let (up, down) = self.rate;
        if self.smooth {
            self.bucket += (t - self.time) * up;
            self.time = t;
        }
        let full = if self.smooth { self.bucket >= self.quota * down } else { self.time + self.w <= t };
        if self.fresh || full {
            // A window ends at the first whole unit of time that is not before its exact end.
            let start = (now as i128 + self.period + self.u - 1) / self.u - self.w;
            (self.bucket, self.time, self.smooth, self.fresh) =
                ((self.quota - cost) * down, start, false, false);
        } else if !self.smooth && self.bucket == cost * down {
            // What flows in until the window's end is spent, and one unit more has come by then.
            let rest = self.time + self.w - t;
            (self.bucket, self.time, self.smooth) = (down - rest * up, t, true);
        } else if self.bucket >= cost * down {
            self.bucket -= cost * down;
        } else {
            return Verdict::NonConforming;
        }
        Verdict::Conforming
    }

    /// The window that was charged last, by its start; none where that made the key smooth, or it was.
    pub fn charged(&self) -> Option<i128> {
        (!self.smooth).then_some(self.time)
    }

    /// Gives back what was charged to that window, while it goes on and its quota is not used up.
    pub fn refund(&mut self, now: u64, charged: Option<i128>, units: u64) -> u64 {
        let goes_on = now as i128 / self.u < self.time + self.w;
        if self.fresh || self.smooth || charged != Some(self.time) || !goes_on {
            return 0;
        }
        let down = self.rate.1;
        let back = (self.quota - self.bucket / down).min(units.into());
        self.bucket += back * down;
        back as u64
    }
}

#[test]
fn every_decision_is_that_of_the_definition() {
    let steps = size_from("TATCELL_COUNTED_STEPS", 3e6 as u64) / 1_000;
    let seen = std::cell::Cell::new([0u64; 4]);
    cases(steps, |rng| {
        let spec = any_spec(rng);
        let Ok(limit) = spec.build() else {
            // A coarse unit of time and a large quota.
            return assert_eq!(spec.build().unwrap_err(), LimitError::HorizonTooLong, "{spec:?}");
        };
        let mut oracle = Oracle::new(&limit);
        let (mut clock, mut cell) = (Clock::new(rng, &limit), ExclusiveCell::new());
        let mut counts = seen.get();
        for _ in 0..1_000 {
            clock.step(rng);
            let cost = cost(rng, limit.burst());
            let (want, bursty) = (oracle.check(clock.now, cost), !oracle.smooth);
            let got = ask(&mut cell, &limit, clock.now, cost).verdict;
            assert_eq!(got, want, "{spec:?} now {} cost {cost}", clock.now);
            counts[usize::from(got.passes()) * 2 + usize::from(bursty)] += 1;
        }
        seen.set(counts);
    });
    let counts = seen.get();
    println!("refused smooth, bursty; passed smooth, bursty: {counts:?}");
    assert!(counts.iter().all(|n| *n > steps * 50), "{counts:?}: the streams do not test");
    assert!(counts.iter().sum::<u64>() > steps * 990, "{counts:?}: too many limits were refused");
}

#[test]
fn smooth_units_come_at_the_quota_s_rate_to_the_tick_however_long_that_lasts() {
    for (quota, w) in [(3, 10), (7, 100), (10, 1_000), (97, 1_000), (999, 1_000), (1_000, 7), (65_537, 1_000)]
    {
        let limit = Limit::quota_linear(quota, w).unwrap();
        let cell = Cell::new();
        let start = 1 << 40;
        assert!(cell.check(&limit, start, 1).passes() && cell.check(&limit, start, quota - 1).passes());
        let mut now = start;
        for k in 0..3_000u128 {
            now += cell.peek(&limit, now, 1).retry_after;
            assert!(cell.check(&limit, now, 1).passes());
            // Exactly `end + k * w / quota`, on whole ticks.
            let (at, w, quota) = ((now - start) as u128, w as u128, quota as u128);
            assert_eq!(at, w + (k * w).div_ceil(quota), "unit {k}");
        }
    }
}

/// How many requests pass before the first refusal, where one comes every `T * d / n` ticks.
fn before_refusal(cell: &Cell, limit: &Limit, from: u64, every: u64) -> u64 {
    (0..).take_while(|k| cell.check(limit, from + k * every, 1).passes()).count() as u64
}

#[test]
fn a_client_at_several_times_the_limit_gets_the_quota_where_a_bucket_gives_more() {
    // T = 27 720 ticks is a multiple of each d / n.
    const T: u64 = 27_720;
    let (q, w) = (1_000, 1_000 * T);
    let (limit, bucket) = (Limit::quota_linear(q, w).unwrap(), Limit::new(q, w, q).unwrap());
    for (n, d) in [(2, 1), (3, 1), (4, 1), (5, 1), (10, 1), (3, 2), (5, 4), (11, 10)] {
        let (start, every) = (1 << 40, T * d / n);
        // A bucket of q gives q * a / (a - 1) before it refuses, a = n / d: at twice the limit 2q.
        let linear = (q - 1) * n / (n - d) + 1;
        assert_eq!(before_refusal(&Cell::new(), &bucket, start, every), linear, "bucket, {n} / {d}");
        assert!((linear as f64 / q as f64 - n as f64 / (n - d) as f64).abs() < 0.02);
        // Quota-linear: the quota, and no more until the window is over.
        let cell = Cell::new();
        assert_eq!(before_refusal(&cell, &limit, start, every), q, "quota-linear, {n} / {d}");
        let end = start + w;
        assert!(!cell.check(&limit, end - 1, 1).passes());
        // From then on it is that bucket, of which a pause has filled all but two units.
        let linear = (q - 2) * n / (n - d) + 1;
        let pause = end + (q - 2) * T;
        assert_eq!(before_refusal(&cell, &limit, pause, every), linear, "smooth, {n} / {d}");
        // One T more and it would have been full, so bursty: exactly the quota again.
        let cell = Cell::new();
        assert_eq!(before_refusal(&cell, &limit, start, every), q);
        assert_eq!(before_refusal(&cell, &limit, end + (q - 1) * T, every), q, "bursty again, {n} / {d}");
    }
}

#[test]
fn a_quota_of_one_is_one_request_a_window() {
    let limit = Limit::quota_linear(1, 1_000).unwrap();
    let cell = Cell::new();
    for start in [5_000, 6_000, 7_500, 8_500] {
        assert!(cell.check(&limit, start, 1).passes());
        for now in [start, start + 1, start + 999] {
            assert_eq!(cell.peek(&limit, now, 1).retry_after, start + 1_000 - now);
        }
    }
    // The same for a request of the whole quota that starts a window: the quota comes back at once, not one by one.
    let limit = Limit::quota_linear(10, 1_000).unwrap();
    let cell = Cell::new();
    for start in [5_000, 6_000, 7_000] {
        assert!(cell.check(&limit, start, 10).passes());
        assert_eq!(cell.peek(&limit, start, 10).retry_after, 1_000);
    }
    // Of others, the request that uses the quota up makes the key smooth.
    assert!(cell.check(&limit, 8_000, 1).passes() && cell.check(&limit, 8_000, 9).passes());
    assert_eq!(cell.peek(&limit, 8_000, 1).retry_after, 1_000);
    assert_eq!(cell.peek(&limit, 8_000, 10).retry_after, 1_900);
}

/// Most units that passed within any interval shorter than `w`.
fn most_within(passes: &[(u64, u64)], w: u64) -> u64 {
    let (mut first, mut sum, mut most) = (0, 0, 0);
    for &(at, units) in passes {
        sum += units;
        while passes[first].0 + w <= at {
            sum -= passes[first].1;
            first += 1;
        }
        most = most.max(sum);
    }
    most
}

#[test]
fn no_stream_passes_more_than_twice_the_quota_in_a_window_length() {
    let most = std::cell::Cell::new(0f64);
    cases(400, |rng| {
        let (quota, w) = (1 + rng.scaled(8), 2 + rng.scaled(12));
        let limit = Limit::quota_linear(quota, w).unwrap();
        let cell = Cell::new();
        let (mut now, mut passes) = (1 << 40, vec![]);
        for _ in 0..2_000 {
            now += match rng.below(6) {
                0 => cell.peek(&limit, now, 1).reset_after,
                1 => cell.peek(&limit, now, 1).reset_after.saturating_sub(1),
                2 => rng.below(w),
                _ => rng.below(w / 16 + 2),
            };
            let left = cell.peek(&limit, now, 1).remaining;
            let cost = match rng.below(4) {
                0 => left.saturating_sub(1),
                1 => left,
                _ => 1 + rng.below(quota),
            };
            if cost > 0 && cell.check(&limit, now, cost).passes() {
                passes.push((now, cost));
            }
        }
        let within = most_within(&passes, w);
        assert!(within <= 2 * quota, "{within} of {quota} within less than {w}");
        most.set(most.get().max(within as f64 / quota as f64));
    });
    assert!(most.get() > 1.9, "the streams do not come near the bound: {}", most.get());
}

#[test]
fn a_clock_that_steps_back_admits_no_more_than_the_one_that_was_ahead() {
    cases(400, |rng| {
        let limit = LimitSpec::quota_linear(20, 1_000).build().unwrap();
        let cell = Cell::new();
        let now = 100_000 + rng.below(10_000);
        for _ in 0..=rng.below(4) {
            let _ = cell.check(&limit, now - rng.below(1_500), 1 + rng.below(20));
        }
        let _ = cell.check(&limit, now, 1 + rng.below(20));
        let ahead = cell.peek(&limit, now, 1).remaining;
        for back in [1, 10, 500, 999, 1_000, 1_001, 5_000, 50_000] {
            let behind = cell.peek(&limit, now - back, 1).remaining;
            assert!(behind <= ahead, "a step back by {back} minted: {behind} of {ahead}");
        }
    });
}

#[test]
fn a_refund_returns_units_to_a_window_whose_quota_is_not_used_up() {
    let limit = Limit::quota_linear(10, 1_000).unwrap();
    let cell = Cell::new();
    let first = cell.check_ex(&limit, 100, 4, 0);
    let second = cell.check_ex(&limit, 200, 5, 0);
    assert_eq!(cell.refund(&limit, 300, &first.permit), Some(4));
    assert_eq!(cell.peek(&limit, 300, 1).remaining, 5);
    assert_eq!(cell.refund(&limit, 300, &second.permit), Some(5));
    assert_eq!((cell.peek(&limit, 300, 1).remaining, cell.peek(&limit, 300, 1).reset_after), (10, 0));
    // The window goes on, and whoever uses it up now makes it smooth.
    let third = cell.check_ex(&limit, 400, 2, 0);
    let last = cell.check_ex(&limit, 400, 8, 0);
    assert!(last.passes());
    assert_eq!(cell.peek(&limit, 400, 2).retry_after, 800);
    let word = cell.word();
    for permit in [&first.permit, &third.permit, &last.permit] {
        assert_eq!((cell.refund(&limit, 500, permit), cell.word()), (Some(0), word));
    }
    // Nor into a window of later.
    let cell = Cell::new();
    let early = cell.check_ex(&limit, 100, 4, 0);
    assert!(cell.check(&limit, 1_100, 9).passes());
    // The second clock is behind: for it the first window goes on.
    for now in [1_100, 1_099] {
        assert_eq!(cell.refund(&limit, now, &early.permit), Some(0));
    }
    assert_eq!(cell.peek(&limit, 1_100, 1).remaining, 1);
}

#[test]
fn a_charge_takes_what_is_left_and_builds_no_debt() {
    let limit = Limit::quota_linear(10, 1_000).unwrap();
    let cell = Cell::new();
    assert_eq!(cell.charge(&limit, 1, 4).permit.stored, 4);
    assert_eq!(cell.charge(&limit, 1, 25).permit.stored, 6);
    // Smooth by now: nothing flows in before the window is over.
    assert_eq!(cell.charge(&limit, 1, 25).permit.stored, 0);
    assert_eq!(cell.charge(&limit, 1_000, 25).permit.stored, 0);
    assert_eq!(cell.charge(&limit, 1_350, 25).permit.stored, 4);
    assert_eq!(cell.peek(&limit, 1_350, 1).retry_after, 51);
    // A window that a charge of more than the quota starts.
    let cell = Cell::new();
    assert_eq!(cell.charge(&limit, 1, 25).permit.stored, 10);
    assert_eq!(cell.peek(&limit, 1, 10).retry_after, 1_000);
}

#[test]
fn soft_and_shadow_are_options_of_quota_linear_too() {
    let spec = LimitSpec::quota_linear(10, 1_000);
    let limit = spec.soft(6).build().unwrap();
    let cell = Cell::new();
    assert_eq!(cell.check_ex(&limit, 1, 6, 0).flags, 0);
    assert_eq!(cell.check_ex(&limit, 1, 1, 0).flags, Decision::SOFT);
    // The one that uses the quota up is soft, and nothing else.
    assert_eq!(cell.check_ex(&limit, 1, 3, 99).flags, Decision::SOFT);
    assert_eq!(cell.check_ex(&limit, 1_001, 1, 99).flags, Decision::SOFT);
    // Seven of ten have flowed in: four are missing with this one.
    assert_eq!(cell.check_ex(&limit, 1_701, 1, 0).flags, 0);

    let limit = spec.shadow().build().unwrap();
    let cell = Cell::new();
    assert!(cell.check(&limit, 1, 1).passes() && cell.check(&limit, 1, 9).passes());
    let passed = cell.check_ex(&limit, 1, 2, 0);
    assert_eq!((passed.flags, passed.permit.stored, passed.retry_after), (Decision::SHADOW, 0, 1_100));
}

#[test]
fn what_quota_linear_does_not_have_is_refused_by_name() {
    let spec = LimitSpec::quota_linear(10, 1_000);
    let all = [
        (spec.max_room(1), LimitError::BadAlgorithm),
        (spec.max_debt(1), LimitError::BadAlgorithm),
        (spec.max_delay(1), LimitError::BadAlgorithm),
        (spec.penalty(1), LimitError::BadAlgorithm),
        (spec.aligned(0), LimitError::BadAlgorithm),
        (spec.heal(), LimitError::BadHeal),
        (spec.resolution(1), LimitError::BadResolution),
        (LimitSpec::quota_linear(0, 1_000), LimitError::ZeroRate),
        (LimitSpec::quota_linear(1, 0), LimitError::ZeroPeriod),
        (LimitSpec::quota_linear(u64::MAX, 1_000), LimitError::TooManyUnits),
        (LimitSpec::quota_linear(1 << 61, 1_000), LimitError::TooManyUnits),
        (LimitSpec::quota_linear(1 << 59, 1_000), LimitError::HorizonTooLong),
        (spec.skew(u64::MAX), LimitError::HorizonTooLong),
        (spec.soft(11), LimitError::BadSoft),
    ];
    refuses(spec, &all);
}

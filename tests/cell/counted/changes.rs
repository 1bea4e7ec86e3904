//! A key whose limit changes, beside a plain counter: what it has used stays used, and no more.
//!
//! The limits of a chain have quotas of any size, so their words have counts of any number of bits.

use crate::common::{cases, size_from, Rng};
use tatcell::{Algorithm, Cell, Change, Decision, ExclusiveCell, Limit, LimitError, LimitInfo, LimitSpec};

const KINDS: [fn(u64, u64) -> LimitSpec; 3] =
    [LimitSpec::fixed_window, LimitSpec::sliding_counter, LimitSpec::quota_linear];
const HOWS: [Change; 2] = [Change::KeepUnits, Change::KeepTime];

/// The same key in a shared and in an exclusive cell.
struct Key {
    cell: Cell,
    own: ExclusiveCell,
}

impl Key {
    fn new() -> Key {
        Key { cell: Cell::new(), own: ExclusiveCell::new() }
    }

    fn ask(&mut self, limit: &Limit, now: u64, cost: u64) -> Decision {
        let (shared, own) = (self.cell.check_ex(limit, now, cost, 0), self.own.check_ex(limit, now, cost, 0));
        assert_eq!(shared, own);
        shared
    }

    fn change(&mut self, old: &Limit, new: &Limit, now: u64, how: Change) -> Result<bool, LimitError> {
        let (shared, own) = (self.cell.change(old, new, now, how), self.own.change(old, new, now, how));
        assert_eq!((shared, self.cell.word()), (own, self.own.word()));
        shared
    }
}

/// A window of whole ticks, from its first request on, or from `phase` on.
#[derive(Default)]
struct Counter {
    end: u64,
    used: u64,
}

impl Counter {
    fn is_over(&self, now: u64) -> bool {
        now >= self.end
    }

    fn starts(&mut self, now: u64, w: u64, phase: Option<u64>) {
        let end = match phase {
            Some(phase) => now + w - (now + w - phase) % w,
            None => now + w,
        };
        *self = Counter { end, used: 0 };
    }
}

/// Most units that a word of this limit counts, which may hold two counts, or a bit beside the count.
fn most(limit: &Limit) -> u64 {
    let LimitInfo { count_bits, algorithm, .. } = limit.info();
    let bits = match algorithm {
        Algorithm::SlidingCounter => count_bits / 2,
        Algorithm::QuotaLinear => count_bits - 1,
        _ => count_bits,
    };
    (1 << bits) - 1
}

/// Some 600 000 decisions and changes. If a unit of time is a tick, every answer equals the counter's. If it is more, a
/// window may end late by less than one unit, and nothing is asked then.
#[test]
fn a_window_keeps_its_count_and_its_end_through_limits_of_any_size() {
    let (mut changes, mut refused) = (0, 0);
    let steps = size_from("TATCELL_COUNTED_STEPS", 600) * 3;
    let counts = std::cell::Cell::new((0, 0));
    cases(300, |rng| {
        let w = rng.pick(&[1 << 10, 60_000, 1_000_003, 3_600_000, 86_400_000_000_000]) + rng.below(3);
        let phase = rng.one_in(2).then(|| rng.below(w));
        let any = |rng: &mut Rng| loop {
            let spec = LimitSpec::fixed_window(1 + rng.scaled(40), w);
            let spec = phase.map_or(spec, |phase| spec.aligned(phase));
            if let Ok(limit) = spec.max_debt(rng.scaled(20)).build() {
                break limit;
            }
        };
        let (mut limit, mut key, mut counter) = (any(rng), Key::new(), Counter::default());
        let mut now = 1 << 50;
        let mut late = 1;
        for _ in 0..steps {
            now += rng.below(w / 20 + 2);
            late = late.max(1 << -limit.info().resolution);
            // The word may not know yet that the window is over.
            let since =
                phase.map_or(now.checked_sub(counter.end).unwrap_or(late), |phase| (now + w - phase) % w);
            now += if since < late { late } else { 0 };
            if rng.one_in(6) {
                let (new, how) = (any(rng), rng.pick(&HOWS));
                let used = if counter.is_over(now) { 0 } else { counter.used };
                let fits = used <= most(&new);
                let want = if fits { Ok(true) } else { Err(LimitError::LargerCount) };
                assert_eq!(key.change(&limit, &new, now, how), want, "{used} under {new:?}");
                counts.set((counts.get().0 + u64::from(fits), counts.get().1 + u64::from(!fits)));
                limit = if fits { new } else { limit };
                let left = key.cell.peek(&limit, now, 1).remaining;
                assert_eq!(left, limit.burst().saturating_sub(used), "{used} of {limit:?} at {now}");
                continue;
            }
            if counter.is_over(now) {
                counter.starts(now, w, phase);
            }
            let left = limit.burst().saturating_sub(counter.used);
            let up_to = rng.pick(&[1, 1 + left / 2, 1 + left, 2 + limit.burst()]);
            let cost = 1 + rng.below(up_to);
            let made = key.ask(&limit, now, cost);
            assert_eq!(made.passes(), cost <= left, "{cost} of {left} left of {limit:?} at {now}");
            match (made.passes(), counter.used) {
                (true, _) => counter.used += cost,
                // What is refused starts no window.
                (false, 0) => counter.end = 0,
                (false, _) => {}
            }
            if made.remaining == 0 && cost <= limit.burst() && !made.passes() {
                let end = now + made.retry_after;
                assert!(end >= counter.end && end < counter.end + late, "{end} for {}", counter.end);
            }
        }
    });
    (changes, refused) = (changes + counts.get().0, refused + counts.get().1);
    assert!(changes > 10_000 && refused > 1_000, "{changes} changes, {refused} refused");
}

/// Two windows of ticks: the count of this one, and of the one before.
struct Windows {
    w: u64,
    start: u64,
    current: u64,
    previous: u64,
}

impl Windows {
    fn roll(&mut self, now: u64) {
        match now.saturating_sub(self.start) / self.w {
            0 => {}
            1 => (self.start, self.previous, self.current) = (self.start + self.w, self.current, 0),
            _ => (self.start, self.previous, self.current) = (now, 0, 0),
        }
    }

    fn left(&self, now: u64, units: u64) -> u64 {
        let tail = u128::from(self.previous) * u128::from(self.w - (now - self.start));
        let all = u128::from(self.current) + tail.div_ceil(self.w.into());
        u128::from(units).saturating_sub(all) as u64
    }
}

#[test]
fn a_sliding_counter_keeps_both_counts_through_limits_of_any_size() {
    let counts = std::cell::Cell::new((0, 0));
    let steps = size_from("TATCELL_COUNTED_STEPS", 600) * 2;
    cases(200, |rng| {
        let w = 1 + rng.scaled(16);
        let any = |rng: &mut Rng| {
            let spec = LimitSpec::sliding_counter(1 + rng.scaled(18), w).resolution(0);
            spec.max_debt(rng.scaled(18)).build().unwrap()
        };
        let (mut limit, mut key, mut now) = (any(rng), Key::new(), 1 << 50);
        let mut counter = Windows { w, start: now, current: 0, previous: 0 };
        for _ in 0..steps {
            now += rng.below(w / 10 + 2);
            counter.roll(now);
            if counter.current + counter.previous == 0 {
                counter.start = now;
            }
            if rng.one_in(6) {
                let (new, how) = (any(rng), rng.pick(&HOWS));
                let fits = counter.current.max(counter.previous) <= most(&new);
                let want = if fits { Ok(true) } else { Err(LimitError::LargerCount) };
                assert_eq!(key.change(&limit, &new, now, how), want);
                counts.set((counts.get().0 + u64::from(fits), counts.get().1 + u64::from(!fits)));
                limit = if fits { new } else { limit };
                assert_eq!(key.cell.peek(&limit, now, 1).remaining, counter.left(now, limit.burst()));
                continue;
            }
            let left = counter.left(now, limit.burst());
            let up_to = rng.pick(&[1, 1 + left / 2, 1 + left]);
            let cost = 1 + rng.below(up_to);
            let made = key.ask(&limit, now, cost);
            assert_eq!(made.passes(), cost <= left, "{cost} of {left} left of {limit:?} at {now}");
            counter.current += if made.passes() { cost } else { 0 };
        }
    });
    assert!(counts.get().0 > 10_000 && counts.get().1 > 1_000, "{:?}", counts.get());
}

/// The quota that others used up is used up for as long as the window lasts; then units come one by one, and a key is
/// as many units short of full as it was.
#[test]
fn a_quota_keeps_what_was_used_of_it_through_limits_of_any_size() {
    let (counts, steps) = (std::cell::Cell::new([0; 4]), size_from("TATCELL_COUNTED_STEPS", 600) * 3);
    let count = |i: usize| {
        let mut all = counts.get();
        all[i] += 1;
        counts.set(all);
    };
    cases(200, |rng| {
        let w = (1 << 14) + rng.scaled(20);
        let any = |rng: &mut Rng| {
            LimitSpec::quota_linear(1 + rng.scaled(14), w).resolution(0).build().expect("a limit")
        };
        let (mut limit, mut key, mut now) = (any(rng), Key::new(), 1 << 50);
        // A window that goes on: its end, what was used, and whether others used the quota up.
        let mut window = None;
        for _ in 0..steps {
            now += rng.below(w / 10 + 2);
            let units = limit.burst();
            if let Some((end, _, up)) = window {
                // In the time of its last unit a window that is used up is like a bucket that fills.
                if now + if up { w / units + 2 } else { 0 } >= end {
                    (window, now) = (None, now.max(end));
                }
            }
            let before = key.cell.peek(&limit, now, 1);
            let is_new = before.reset_after == 0;
            if let Some((_, used, _)) = window {
                assert_eq!(before.remaining, units.saturating_sub(used), "{window:?} at {now}");
            }
            if rng.one_in(5) {
                let new = any(rng);
                let used = window.map_or(0, |(_, used, _)| used);
                let made = key.change(&limit, &new, now, Change::KeepUnits);
                if made == Err(LimitError::LargerCount) {
                    let used = if before.remaining == 0 { units } else { used };
                    assert!(used > most(&new), "{used} under {new:?}");
                    count(0);
                    continue;
                }
                assert_eq!(made, Ok(true));
                let left = key.cell.peek(&new, now, 1).remaining;
                match &mut window {
                    Some((_, used, up)) => {
                        assert_eq!(left, new.burst().saturating_sub(*used), "{used} of {units} to {new:?}");
                        *up &= new.burst() == units;
                        count(1);
                    }
                    None if is_new => assert_eq!(left, new.burst()),
                    None => {
                        let same = (new.burst() + before.remaining).saturating_sub(units);
                        assert_eq!(left, same, "{} of {units} left, to {}", before.remaining, new.burst());
                        count(2);
                    }
                }
                limit = new;
                continue;
            }
            let up_to = rng.pick(&[1, 1 + before.remaining / 2, 1 + before.remaining]);
            let cost = 1 + rng.below(up_to);
            let made = key.ask(&limit, now, cost);
            assert_eq!(made.passes(), cost <= before.remaining, "{cost} of {before:?} at {now}");
            match (&mut window, made.passes()) {
                (Some((_, used, up)), true) => {
                    *used += cost;
                    *up = *used == units;
                }
                (None, true) if is_new => window = Some((now + w, cost, false)),
                _ => {}
            }
        }
        count(3);
    });
    let [refused, kept, smooth, _] = counts.get();
    assert!(refused > 1_000 && kept > 1_000 && smooth > 1_000, "{:?}", counts.get());
}

/// Later, too, nobody has more than if the old limit had stayed, but for the units by which the limits differ.
#[test]
fn other_units_of_time_never_leave_more() {
    let less = std::cell::Cell::new((0, 0));
    cases(60_000, |rng| {
        let w = (1 << 14) + rng.scaled(34);
        let kind = rng.pick(&KINDS);
        let any = |rng: &mut Rng, units: Option<u64>| loop {
            let (z, units) = (rng.below(9) as i8, units.unwrap_or(1 + rng.scaled(12)));
            if let Ok(limit) = kind(units, w).resolution(-z).build() {
                break (limit, 1 << z);
            }
        };
        let (old, unit) = any(rng, None);
        let same = rng.one_in(3).then(|| old.burst());
        let (new, other) = any(rng, same);
        let mut now = (1 << 50) + rng.scaled(20);
        let mut cell = ExclusiveCell::new();
        for _ in 0..5 {
            let cost = 1 + rng.below(old.burst());
            let _ = cell.check(&old, now, cost);
            now += rng.below(w / 3);
        }
        let mut moved = cell.clone();
        match moved.change(&old, &new, now, Change::KeepUnits) {
            Ok(true) => {}
            told => return assert_eq!(told, Err(LimitError::LargerCount)),
        }
        let mut timed = cell.clone();
        if timed.change(&old, &new, now, Change::KeepTime) == Ok(true) {
            let (was, is) = (cell.peek(&old, now, 1).reset_after, timed.peek(&new, now, 1).reset_after);
            let sliding = new.info().algorithm == Algorithm::SlidingCounter;
            assert!(sliding || is >= was && is < was + other, "{was} became {is}: {old:?} to {new:?}");
        }
        for later in [0, rng.below(w), w + rng.below(w)] {
            let stays = cell.peek(&old, now + later, 1);
            let is = moved.peek(&new, now + later, 1).remaining;
            let most = (stays.remaining + new.burst()).saturating_sub(old.burst());
            // A window in units of time lasts longer by up to one of them, and a floored clock lies up to one behind.
            // So more of a window is in sight, and a bucket in finer units fills faster.
            let is_quota = new.info().algorithm == Algorithm::QuotaLinear;
            let exact = later == 0 || is_quota && other >= unit;
            let longer = if exact { 0 } else { old.burst() * 2 * (unit + other) / w + 1 };
            let quota = is_quota && old.burst() != new.burst();
            if later == 0 || !quota && (stays.reset_after > 0 || old.burst() >= new.burst()) {
                assert!(is <= most + longer, "{is} of {most}, {later} later: {old:?} to {new:?}");
                less.set((less.get().0 + 1, less.get().1 + u64::from(is < most)));
            }
        }
    });
    let (all, less) = less.get();
    assert!(all > 50_000 && less * 3 < all, "{less} of {all} left less");
}

#[test]
fn a_level_stays_and_decays_by_the_new_half_life() {
    cases(20_000, |rng| {
        let any = |rng: &mut Rng| loop {
            let (units, h) = (1 + rng.scaled(12), 1 << rng.within(20, 40));
            if let Ok(limit) = LimitSpec::decay(units, h + rng.below(h)).build() {
                break limit;
            }
        };
        let (old, new, mut now) = (any(rng), any(rng), (1 << 50) + rng.scaled(20));
        let mut cell = ExclusiveCell::new();
        for _ in 0..3 {
            let cost = 1 + rng.below(old.burst());
            let _ = cell.check(&old, now, cost);
            now += rng.below(old.info().period);
        }
        let level =
            |cell: &ExclusiveCell, limit: &Limit, now| limit.burst() - cell.peek(limit, now, 1).remaining;
        let (mut moved, before) = (cell.clone(), level(&cell, &old, now));
        match moved.change(&old, &new, now, Change::KeepUnits) {
            Ok(true) => {}
            told => {
                // A word is made for twice the power of two that is above the limit.
                assert!(before + 1 >= 4 << new.burst().ilog2(), "{before} of {new:?}");
                return assert_eq!(told, Err(LimitError::LargerCount));
            }
        }
        let short = level(&moved, &new, now);
        assert!(short.abs_diff(before.min(new.burst())) <= 1, "{before} became {short}: {old:?} to {new:?}");
        let half = level(&moved, &new, now + new.info().period);
        assert!(
            half <= before / 2 + 1 && half + 1 >= (before / 2).min(new.burst()),
            "{before} became {half}"
        );
        // As a time it takes as long as before until it is forgotten.
        let mut timed = cell.clone();
        if timed.change(&old, &new, now, Change::KeepTime) == Ok(true) {
            let (was, is) = (cell.peek(&old, now, 1).reset_after, timed.peek(&new, now, 1).reset_after);
            let units = [&old, &new].map(|limit| 1u64 << -limit.info().resolution);
            assert!(is >= was && is < was + units[0] + units[1], "{was} became {is}");
        }
    });
}

/// The clock of a coarser unit lies behind: what it reads as the past must not make a level fall or a bucket fill.
#[test]
fn a_coarser_clock_forgets_nothing_earlier() {
    cases(3_000, |rng| {
        let (spec, z) = (rng.pick(&[LimitSpec::quota_linear, LimitSpec::decay]), rng.within(1, 8) as i8);
        let [old, new] = [0, -z].map(|s| spec(5, 1 << 17).resolution(s).build().unwrap());
        let (mut now, mut cell) = ((1 << 50) + rng.below(1 << 10), ExclusiveCell::new());
        for _ in 0..5 {
            let _ = cell.check(&old, now, 1);
            now += rng.below(1 << 12);
        }
        let was = cell.peek(&old, now, 1).reset_after;
        assert_eq!(cell.change(&old, &new, now, Change::KeepUnits), Ok(true));
        let is = cell.peek(&new, now, 1).reset_after;
        assert!(is >= was && is <= was + (16 << z), "{was} became {is}: {old:?} to {new:?}");
    });
}

/// By the clock of the change the window is over. In a word of other bits a clock that is behind it finds no room.
#[test]
fn a_clock_behind_a_change_finds_the_window_that_it_knows_or_no_room() {
    let quota = |units| LimitSpec::fixed_window(units, 1_000).build().unwrap();
    for (units, left) in [(12, 8), (100, 0)] {
        let (old, new, cell) = (quota(10), quota(units), Cell::new());
        assert!(cell.check(&old, 5, 4).passes());
        assert_eq!(cell.change(&old, &new, 1_005, Change::KeepUnits), Ok(true));
        assert_eq!([1_004, 1_005].map(|now| cell.peek(&new, now, 1).remaining), [left, units]);
    }
}

#[test]
fn what_cannot_be_kept_is_named_and_nothing_is_changed() {
    let limits = [
        LimitSpec::new(10, 1_000, 10),
        LimitSpec::fixed_window(10, 1_000),
        LimitSpec::sliding_counter(10, 1_000),
        LimitSpec::quota_linear(10, 1_000),
        LimitSpec::decay(10, 1_000),
    ];
    for (i, old) in limits.map(|spec| spec.build().unwrap()).iter().enumerate() {
        let mut key = Key::new();
        assert!(key.ask(old, 5, 9).passes());
        let word = key.cell.word();
        let mut refused = |new: &LimitSpec, why| {
            for how in HOWS {
                assert_eq!(key.change(old, &new.build().unwrap(), 6, how), Err(why), "{i} to {new:?}");
                assert_eq!(key.cell.word(), word);
            }
        };
        for (_, other) in limits.iter().enumerate().filter(|(j, _)| i != *j) {
            refused(other, LimitError::BadAlgorithm);
        }
        if (1..=3).contains(&i) {
            refused(&KINDS[i - 1](10, 1_001), LimitError::OtherWindow);
            refused(&KINDS[i - 1](7, 1_000), LimitError::LargerCount);
        }
        for how in HOWS {
            assert_eq!(key.change(old, old, 6, how), Ok(true));
            assert_eq!(key.cell.word(), word, "the same limit");
        }
        assert_eq!(key.change(old, &limits[(i + 1) % 5].build().unwrap(), 6, Change::Reset), Ok(true));
    }
}

//! Windows in tables with default options, next to references in exact arithmetic that count in ticks.
//!
//! If the unit of time is a tick, every verdict and wait equals the reference's. Otherwise nothing is admitted early,
//! and nothing later than the reported error allows.

use crate::common::{cases, memory, size_from, Rng};
use tatcell::{AttachOptions, LimitSpec, Outcome, Table, TableError, TableLimit, TableOptions};

/// One limit and the reference's state of one key, in ticks.
enum Exact {
    /// The end of the window and its count. `phase` if aligned.
    Fixed { window: i128, units: i128, phase: Option<i128>, end: i128, count: i128 },
    /// The start of the current window, its count and the one before.
    Sliding { window: i128, units: i128, start: i128, count: i128, before: i128 },
    /// Bursty until `end`, or smooth: full again at `end` + `over` / `units`.
    Quota { window: i128, units: i128, end: i128, used: i128, over: Option<i128> },
}

impl Exact {
    /// Whether `cost` conforms at `now`, and then the key is charged; else how long to wait, or `None` for ever.
    fn check(&mut self, now: u64, cost: u64) -> Result<(), i128> {
        let (now, cost) = (i128::from(now), i128::from(cost));
        match self {
            Exact::Fixed { window, units, phase, end, count } => {
                if *end <= now {
                    *end = phase
                        .map_or(now + *window, |phase| now + *window - (now - phase).rem_euclid(*window));
                    *count = 0;
                }
                if *count + cost > *units {
                    return Err(*end - now);
                }
                *count += cost;
                Ok(())
            }
            Exact::Sliding { window, units, start, count, before } => {
                let w = *window;
                // Windows follow each other until the key has been idle for a whole one. A refusal changes nothing.
                let (from, current, previous) = match (now - *start).div_euclid(w) {
                    0 => (*start, *count, *before),
                    1 => (*start + w, 0, *count),
                    _ => (now, 0, 0),
                };
                if previous * (from + w - now) + (current + cost) * w <= *units * w {
                    (*start, *count, *before) = (from, current + cost, previous);
                    return Ok(());
                }
                // Until the previous count weighs little enough, or after the roll the current one does.
                let (end, left, weighed) = match *units - current - cost {
                    left if left >= 0 => (from + w, left, previous),
                    _ => (from + 2 * w, *units - cost, current),
                };
                Err(end - now - left * w / weighed)
            }
            Exact::Quota { window, units, end, used, over } => {
                if let Some(debt) = over {
                    // How long until the bucket is full, in parts of a tick: `units` of them.
                    let full = (*end - now) * *units + *debt;
                    if full > 0 {
                        let late = full + (cost - *units) * *window;
                        if late > 0 {
                            return Err((late + *units - 1) / *units);
                        }
                        *debt += cost * *window;
                        return Ok(());
                    }
                }
                if over.is_some() || *end <= now {
                    (*end, *used, *over) = (now + *window, cost, None);
                    return Ok(());
                }
                if *used + cost > *units {
                    return Err(*end - now);
                }
                *used += cost;
                if *used == *units {
                    *over = Some((*units - 1) * *window);
                }
                Ok(())
            }
        }
    }
}

/// A limit of one of four kinds.
#[derive(Clone, Copy)]
struct Kind {
    kind: u64,
    units: u64,
    phase: u64,
}

impl Kind {
    fn any(rng: &mut Rng, window: u64, fewest: u64) -> Kind {
        Kind { kind: rng.below(4), units: fewest + rng.scaled(11), phase: rng.below(window) }
    }

    fn spec(self, window: u64) -> LimitSpec {
        match self.kind {
            0 => LimitSpec::fixed_window(self.units, window),
            1 => LimitSpec::fixed_window(self.units, window).aligned(self.phase),
            2 => LimitSpec::sliding_counter(self.units, window),
            _ => LimitSpec::quota_linear(self.units, window),
        }
    }

    fn exact(self, window: u64) -> Exact {
        let (window, units) = (i128::from(window), i128::from(self.units));
        match self.kind {
            0 => Exact::Fixed { window, units, phase: None, end: 0, count: 0 },
            1 => Exact::Fixed { window, units, phase: Some(self.phase.into()), end: 0, count: 0 },
            2 => Exact::Sliding { window, units, start: -2 * window, count: 0, before: 0 },
            _ => Exact::Quota { window, units, end: 0, used: 0, over: None },
        }
    }
}

/// One key's requests: often at the moment that was told, a tick before it, or a tick after.
fn follow(rng: &mut Rng, table: &Table<'_>, limit: &TableLimit, exact: &mut Exact, steps: u64) -> [u64; 3] {
    let (info, mut now, mut wait, mut seen) = (limit.info(), 1 << 40 | rng.scaled(40), 0u64, [0; 3]);
    for _ in 0..steps {
        now += match rng.below(6) {
            0 => wait,
            1 => wait.saturating_sub(1),
            2 => wait + 1,
            3 => rng.below(info.period / info.units + 1),
            4 => rng.below(info.period + 2),
            _ => 0,
        };
        let cost = if rng.one_in(4) { 1 + rng.below(info.units) } else { 1 };
        let got = table.check(limit, now, b"key", cost).unwrap();
        let want = exact.check(now, cost);
        match (got, want) {
            (Outcome::Conforming, Ok(())) => seen[0] += 1,
            (Outcome::NonConforming { retry_after }, Err(exact)) => {
                assert_eq!(i128::from(retry_after), exact, "{info:?} at {now}, cost {cost}");
                seen[1] += 1;
            }
            _ => panic!("{info:?} at {now}, cost {cost}: {got:?}, and exactly {want:?}"),
        }
        wait = match got {
            Outcome::NonConforming { retry_after } => retry_after,
            _ => 0,
        };
        seen[2] += 1;
    }
    seen
}

#[test]
fn every_decision_and_wait_is_exact_where_the_unit_of_time_is_a_tick() {
    let steps = size_from("TATCELL_COUNTED_STEPS", 3e6 as u64) / 1_000;
    let (seen, coarse) = (std::cell::Cell::new([0u64; 3]), std::cell::Cell::new(0u64));
    cases(steps, |rng| {
        let window = rng.pick(&[60, 900, 86_400, 900_000, 86_400_000, 1_000_003]) * (1 + rng.below(9));
        let (kind, lines) = (Kind::any(rng, window, 1), memory(4));
        let (spec, mut exact) = (kind.spec(window), kind.exact(window));
        let mut options = TableOptions::new(spec).seed([7; 16]);
        if rng.one_in(2) {
            let slower = kind.spec(window * (1 + rng.below(30)));
            options = if rng.one_in(2) {
                options.slowest(slower)
            } else {
                TableOptions::new(slower).seed([7; 16]).slowest(spec)
            };
        }
        let table = match Table::init(&lines, &options) {
            Ok(table) => table,
            // Twice 12 bits of counts and a window of days.
            Err(e) => return assert_eq!(e, TableError::SpanTooShort, "{spec:?}"),
        };
        let limit = table.limit(&spec).unwrap();
        assert_eq!(limit.info().border_error, table.info().border_error);
        if limit.info().border_error != 0 {
            return coarse.set(coarse.get() + 1);
        }
        let counts = follow(rng, &table, &limit, &mut exact, 1_000);
        seen.set(core::array::from_fn(|i| seen.get()[i] + counts[i]));
    });
    let [passed, refused, all] = seen.get();
    println!("{passed} passed, {refused} refused of {all}; {} tables with a coarser unit", coarse.get());
    assert!(all > steps * 500 && passed > all / 4 && refused > all / 4, "the streams do not test");
}

/// A key that uses its quota up in two requests, at random moments of one window: when the next unit conforms.
#[test]
fn a_coarser_unit_of_time_ends_no_window_early_and_none_later_than_reported() {
    let worst = std::cell::Cell::new(0);
    cases(20_000, |rng| {
        let window = rng.pick(&[1_000, 1_000_000_000, 60_000_000_000, 900_000_000_000]) * (1 + rng.below(9))
            + rng.below(3);
        let (kind, lines) = (Kind::any(rng, window, 2), memory(4));
        let (spec, mut exact) = (kind.spec(window), kind.exact(window));
        let Ok(table) = Table::init(&lines, &TableOptions::new(spec).seed([7; 16]).tick_hz(1_000_000_000))
        else {
            return;
        };
        let limit = table.limit(&spec).unwrap();
        let (info, start) = (limit.info(), 1 << 50 | rng.scaled(50));
        let mut now = start;
        for cost in [info.units - 1, 1] {
            assert!(table.check(&limit, now, b"key", cost).unwrap().passes());
            assert_eq!(exact.check(now, cost), Ok(()));
            now += rng.below(window - (now - start));
        }
        let wait = match table.check(&limit, now, b"key", 1).unwrap() {
            Outcome::NonConforming { retry_after } => retry_after,
            // The window of an aligned limit ended between the two.
            _ => return,
        };
        let Err(exactly) = exact.check(now, 1) else { panic!("{info:?}: refused at {now}, and exactly not") };
        let late = i128::from(wait) - exactly;
        // The sliding counter starts at the next unit of time, reads the floored clock, and its window is rounded up.
        let most = i128::from(info.border_error) * if kind.kind == 2 { 3 } else { 1 };
        assert!((0..=most).contains(&late), "{info:?} at {now}: {late} late");
        worst.set(worst.get().max(late));
        assert!(!table.check(&limit, now + wait - 1, b"key", 1).unwrap().passes(), "{info:?}: before {wait}");
        assert!(table.check(&limit, now + wait, b"key", 1).unwrap().passes(), "{info:?}: after {wait}");
    });
    println!("at most {} ticks late", worst.get());
    assert!(worst.get() > 1 << 10, "every unit is a tick: the streams do not test");
}

#[test]
fn an_image_keeps_its_unit_of_time_for_those_who_attach() {
    let (spec, lines) = (LimitSpec::fixed_window(5, 900_000), memory(4));
    let old = Table::init(&lines, &TableOptions::new(spec).seed([7; 16]).resolution(-9)).unwrap();
    let limit = old.limit(&spec).unwrap();
    assert!(old.check(&limit, 1_000, b"key", 5).unwrap().passes());
    let table = Table::attach(&lines, &AttachOptions::new().seed([7; 16])).unwrap();
    let limit = table.limit(&spec).unwrap();
    assert_eq!((table.info().border_error, limit.info().border_error), (511, 511));
    // The window ends at 901 000 ticks, and in this image at the next multiple of 512.
    let retry_after = 901_000u64.next_multiple_of(512) - 2_000;
    assert_eq!(table.check(&limit, 2_000, b"key", 1), Ok(Outcome::NonConforming { retry_after }));
}

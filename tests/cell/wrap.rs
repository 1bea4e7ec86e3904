//! The wrap of the state word: it never makes extra units, and makes false debts only where documented.

use crate::common::oracle::{seen, Oracle};
use crate::common::{cases, Rng};
use tatcell::{Cell, Cell32, Decision, Limit, Limit32, LimitSpec, SmallLimit32};

enum Word {
    Wide(Cell, Limit),
    Narrow(Cell32, Limit32),
}

impl Word {
    fn check(&self, now: u64, cost: u32) -> Decision {
        match self {
            Word::Wide(cell, limit) => cell.check_ex(limit, now, cost.into(), 0),
            Word::Narrow(cell, limit) => cell.check_ex(limit, now, cost.into(), 0),
        }
    }

    fn interval(&self) -> (u64, i32) {
        match self {
            Word::Wide(_, limit) => limit.emission_interval(),
            Word::Narrow(_, limit) => limit.emission_interval(),
        }
    }

    fn span(&self) -> u64 {
        match self {
            Word::Wide(_, limit) => limit.span(),
            Word::Narrow(_, limit) => limit.span(),
        }
    }

    fn word(&self) -> u64 {
        match self {
            Word::Wide(cell, _) => cell.word(),
            Word::Narrow(cell, _) => cell.word().into(),
        }
    }

    fn reset(&self) {
        match self {
            Word::Wide(cell, _) => cell.reset(),
            Word::Narrow(cell, _) => cell.reset(),
        }
    }
}

/// Runs across the wrap of the word, starting `before` ticks short of it, with busy traffic.
fn busy_across(rng: &mut Rng, word: Word, burst: u64, skew: u64, start: u128) {
    let (t_q, s) = word.interval();
    let mut oracle = Oracle::fixed(t_q, s, burst);
    let unit = (oracle.t * oracle.den / oracle.num) as u64 + 1;
    let (mut now, mut latest) = (start, start);
    for _ in 0..400 {
        now += rng.pick(&[0, 1, unit / 3, unit, unit * burst]) as u128;
        latest = latest.max(now);
        now = (now - rng.below(unit / 2) as u128).max(latest - skew as u128);
        let cost = rng.within(0, burst + 1) as u32;
        let expected = oracle.check(now, cost, 0);
        let decision = word.check(now as u64, cost);
        let answer = seen(&decision);
        if decision.permit.stored > 0 {
            assert_eq!(decision.permit.tat, word.word(), "the permit names another word at {now:#x}");
        }
        // A TAT of exactly 0 is stored as 1: one q-unit more, in one of 2^W cases.
        if oracle.tat as u64 == 0 {
            word.reset();
            oracle.tat = 0;
        } else {
            assert_eq!(answer, expected, "cost {cost} at {now:#x}");
        }
    }
}

#[test]
fn busy_words_decide_exactly_across_the_wrap() {
    cases(600, |rng| {
        let (burst, t) = (rng.within(1, 9), rng.within(1 << 10, 1 << 14));
        let s = rng.within(0, 6) as i8;
        let spec = LimitSpec::new(1, t, burst).resolution(s).skew(1 << 18);
        let back = rng.below(t * burst * 3) as u128;
        // 64 bits of q-units: the wrap of the word comes 2^(64-s) ticks after 0.
        let word = Word::Wide(Cell::new(), spec.build().unwrap());
        busy_across(rng, word, burst, 1 << 18, (1u128 << (64 - s)) - back);
        let word = Word::Narrow(Cell32::new(), spec.build32().unwrap());
        let turns = rng.within(1, 1 << 20) as u128;
        busy_across(rng, word, burst, 1 << 18, (turns << (32 - s)) - back);
        // Coarser than a tick.
        let s = -(s as i32);
        let spec = spec.resolution(s as i8);
        let word = Word::Narrow(Cell32::new(), spec.build32().unwrap());
        busy_across(rng, word, burst, 1 << 18, (1u128 << (32 - s)) - back);
    });
}

/// Idle times up to many spans: a false debt may show, a minted unit may not.
fn idle_across(rng: &mut Rng, word: &Word, burst: u64, window: u128, bits: u32) -> (u64, u64) {
    let (t_q, s) = word.interval();
    let mut oracle = Oracle::fixed(t_q, s, burst);
    let (mut now, mut false_debts, mut long) = (rng.next() as u128, 0, 0);
    for _ in 0..50 {
        // Half of them close to a whole turn, where phantoms live.
        let turn = (1u128 << bits) * oracle.den / oracle.num;
        let idle = match rng.below(3) {
            0 => rng.scaled(bits) as u128 * oracle.den / oracle.num,
            1 => turn * rng.within(1, 3) as u128 - rng.scaled(20) as u128,
            _ => turn * rng.within(1, 3) as u128 + rng.scaled(20) as u128,
        };
        now += idle;
        long += (idle > word.span() as u128) as u64;
        let lead = oracle.lead(now);
        let answer = seen(&word.check(now as u64, 1));
        let expected = oracle.check(now, 1, 0);
        if answer != expected {
            // Only after an idle time longer than the span, only against the key, and for no longer than H + S.
            assert!(idle > word.span() as u128, "false debt after {idle} of {}", word.span());
            assert!(answer.remaining <= expected.remaining, "minted: {answer:?} for {expected:?}");
            assert!(answer.verdict >= expected.verdict);
            let most = oracle.ticks(now, lead.max(window) + t_q as u128);
            assert!(answer.reset_after <= most, "{} above {most}", answer.reset_after);
            false_debts += 1;
            word.reset();
            oracle.tat = 0;
        }
    }
    (false_debts, long)
}

#[test]
fn long_idle_words_show_false_debts_only_beyond_the_span() {
    let mut total = (0, 0);
    for seed in 0..400 {
        let mut rng = Rng(seed);
        let _shown = crate::common::Seed(seed);
        let (burst, t) = (rng.within(1, 9), rng.within(1 << 10, 1 << 14));
        let s = rng.within(0, 8) as i32 - 4;
        let spec = LimitSpec::new(1, t, burst).resolution(s as i8).skew(1 << 10);
        let limit = spec.build32().unwrap();
        let skew = 1u128 << (10 + s);
        let window = burst as u128 * limit.emission_interval().0 as u128 + skew;
        let word = Word::Narrow(Cell32::new(), limit);
        let found = idle_across(&mut rng, &word, burst, window, 32);
        total = (total.0 + found.0, total.1 + found.1);
        if s >= 0 {
            let limit = spec.build().unwrap();
            let word = Word::Wide(Cell::new(), limit);
            let window = burst as u128 * limit.emission_interval().0 as u128 + skew;
            let found = idle_across(&mut rng, &word, burst, window, 64);
            total = (total.0 + found.0, total.1 + found.1);
        }
    }
    // The test looked where they live: it must have met some, or it shows nothing.
    assert!(total.0 > 100 && total.1 > 1_000, "{total:?}");
}

#[test]
fn debt_that_ends_exactly_at_the_wrap_is_not_an_empty_word() {
    // TAT = 2^W = 0, which would read as fresh: it is stored as 1.
    let spec = LimitSpec::new(1, 1 << 12, 3).resolution(0);
    let wide = Word::Wide(Cell::new(), spec.build().unwrap());
    let narrow = Word::Narrow(Cell32::new(), spec.build32().unwrap());
    for (word, wrap) in [(wide, 0u64), (narrow, 1 << 40)] {
        let now = wrap.wrapping_sub(3 << 12);
        assert!(word.check(now, 3).passes());
        let d = word.check(now, 1);
        assert!(!d.passes() && d.retry_after == (1 << 12) + 1, "{d:?}");
        assert!(!word.check(now + (1 << 12), 1).passes() && word.check(now + (1 << 12) + 1, 1).passes());
    }
}

#[test]
fn wrap_over_admits_nothing_in_the_long_run() {
    // Greedy traffic over many turns of a 32-bit word: the envelope holds over the whole run.
    for (t, burst, s) in [(1_000u64, 3u64, 6i8), (70_000, 5, 3), (1 << 22, 7, 0)] {
        let limit = LimitSpec::new(1, t, burst).resolution(s).build32().unwrap();
        let cell = Cell32::new();
        let mut rng = Rng(t);
        let (mut now, mut admitted) = (0u64, 0u64);
        for _ in 0..200_000 {
            now += if rng.one_in(50) { rng.scaled(36) } else { rng.below(t) };
            admitted += cell.check(&limit, now, 1).passes() as u64;
            assert!(admitted <= burst + now / t, "{admitted} at {now}");
        }
        assert!(now > 8 << (32 - s));
    }
}

/// 200 000 limits whose resolution the library chooses, on cells that a tick counter of 32 bits feeds.
#[test]
fn a_tick_counter_of_32_bits_that_wraps_passes_no_unit_extra() {
    const SEED: u64 = 32;
    println!("seed {SEED}");
    let (mut rng, mut made, mut small, mut tight) = (Rng(SEED), 0, 0, 0);
    while made < 200_000 {
        let (units, period, burst) = (rng.scaled(24).max(1), rng.scaled(40).max(1), rng.scaled(16).max(1));
        let delay = rng.scaled(30) * rng.below(2);
        let Ok(limit) = LimitSpec::new(units, period, burst).max_delay(delay).build32() else { continue };
        (made, tight) = (made + 1, tight + u64::from(limit.span() < 7 << 29 && limit.info().resolution == 0));
        let one = (period / units + 1).min(1 << 24);
        // The whole burst shortly before the wrap. A little later what has drained may pass, and not a unit more.
        let before = 0u32.wrapping_sub(1 + rng.below(2 * one) as u32);
        let later = rng.below(4 * one);
        let (now, over) =
            (before.wrapping_add(later as u32), 1 + later as u128 * units as u128 / period as u128);
        let over = u64::try_from(over).unwrap_or(u64::MAX).min(u32::MAX.into());
        let cell = Cell32::new();
        assert!(cell.check(&limit, before.into(), burst).passes());
        assert!(
            !cell.check(&limit, now.into(), over).passes(),
            "{units} per {period}, burst {burst}: {over} pass {later} ticks after {before:#x}"
        );
        if let Ok(limit) = SmallLimit32::shaped(units, period, burst, delay) {
            small += 1;
            let cell = Cell32::new();
            assert!(cell.check_small(&limit, before, burst as u32).passes());
            assert!(!cell.check_small(&limit, now, over as u32).passes(), "{units} per {period}, small");
        }
    }
    assert!(
        small > 50_000 && tight > 1_000,
        "{small} small ones, {tight} with less than seven eighths of the word"
    );
}

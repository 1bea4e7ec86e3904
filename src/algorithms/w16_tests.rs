//! Words of 16 bits, exhausted: every algorithm against its textbook rule.
//!
//! The tests visit every state that a sequence of requests reaches from an absent key. In each they try every cost at
//! every time until all is forgotten, and then at longer times within the word's span. Clocks start at many places of
//! the span, so the words wrap. A computed 0 is stored as 1, which may refuse one unit more: such steps are left out
//! here, and `w16_encoded_leads_decode_to_themselves` covers them.

#![allow(clippy::arithmetic_side_effects)]

use std::collections::HashSet;
use std::vec::Vec;

use super::decay::level as level_of;
use super::gcra::{encode, whole_lead};
use super::{step, Kind, Op};
use crate::answer::Verdict;
use crate::limit::params::{Params, Width, FINGERPRINT_CELL64};
use crate::limit::window::{within, Frame};
use crate::limit::{rate, LimitSpec};

const MASK: u64 = 0xffff;
const WIDTH: Width = Width { bits: 16, precision: 0, spare: 1, fingerprint: FINGERPRINT_CELL64 };

/// The state of a textbook rule: up to two times or counts, in whole ticks, and whether there is any.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Book {
    live: bool,
    smooth: bool,
    at: u64,
    now: u64,
    before: u64,
}

/// A rule: returns the next state if `n` units may pass at `t`.
type Rule = fn(&Params, Book, u64, u64) -> Option<Book>;

fn token_bucket(p: &Params, book: Book, t: u64, n: u64) -> Option<Book> {
    // `now` is the tokens in ticks at `at`.
    let full = p.burst * p.period;
    let tokens = if book.live { (book.now + (t - book.at)).min(full) } else { full };
    let left = tokens.checked_sub(n * p.period)?;
    Some(Book { live: left < full, at: t, now: left, ..Book::default() })
}

fn fixed(p: &Params, book: Book, t: u64, n: u64) -> Option<Book> {
    let book = if book.live && t < book.at + p.period {
        book
    } else {
        Book { live: true, at: t, ..Book::default() }
    };
    (book.now + n <= p.units).then_some(Book { now: book.now + n, ..book })
}

fn aligned(p: &Params, book: Book, t: u64, n: u64) -> Option<Book> {
    let start = t - (t + p.period - p.phase()) % p.period;
    fixed(p, book, t, n).filter(|_| book.live && book.at == start).or_else(|| {
        let fresh = Book { live: true, at: start, now: n, ..Book::default() };
        (!book.live || book.at != start).then_some(fresh).filter(|_| n <= p.units)
    })
}

fn sliding(p: &Params, book: Book, t: u64, n: u64) -> Option<Book> {
    let w = p.period;
    let book = match book.live.then(|| (t - book.at) / w) {
        Some(0) => book,
        Some(1) => Book { at: book.at + w, now: 0, before: book.now, ..book },
        _ => Book { live: true, at: t, ..Book::default() },
    };
    let weight = book.before * (w - (t - book.at)) + (book.now + n) * w;
    (weight <= p.units * w).then_some(Book { now: book.now + n, ..book })
}

fn quota_linear(p: &Params, book: Book, t: u64, n: u64) -> Option<Book> {
    // T is a whole number of ticks here. `at` is the window's end, or the time at which the bucket is full.
    let (w, emission) = (p.period, p.period / p.units);
    let begins = !book.live || t >= book.at;
    let book = if begins { Book { live: true, at: t + w, ..Book::default() } } else { book };
    if book.smooth {
        let at = book.at + n * emission;
        return (at <= t + p.units * emission).then_some(Book { at, ..book });
    }
    let used = book.now + n;
    if used > p.units {
        None
    } else if used == p.units && !begins {
        Some(Book { smooth: true, at: book.at - emission + p.units * emission, now: 0, ..book })
    } else {
        Some(Book { now: used, ..book })
    }
}

/// The same key as another one with the same future.
fn relative(book: Book, t: u64) -> Book {
    Book { at: if book.live { book.at.wrapping_sub(t) } else { 0 }, ..book }
}

/// Visits every state from an absent key on, with a clock that starts at `start`; returns their number.
fn exhaust(p: &Params, rule: Rule, memory: u64, start: u64) -> usize {
    let far = (1u64 << (16 - if p.algorithm == 0 { 0 } else { p.shl })) - (p.window_q >> p.shl) - 2;
    let waits: Vec<u64> = (0..=memory + 2).chain([far / 2, far - 1, far]).collect();
    let mut seen = HashSet::new();
    let mut open = Vec::from([(0u64, start, Book::default())]);
    while let Some((word, at, book)) = open.pop() {
        for wait in &waits {
            let t = at + wait;
            let clock = p.clock_q(t);
            let lead = whole_lead(word, clock, MASK, p.window_q);
            if !seen.insert((lead, relative(book, t))) {
                continue;
            }
            for cost in 1..=p.burst + 1 {
                let done = step(&Op::new(p, Kind::Check, cost, 0), t, lead);
                let want = if cost <= p.burst { rule(p, book, t, cost) } else { None };
                let passes = done.answer.verdict == Verdict::Conforming;
                assert_eq!(
                    passes,
                    want.is_some(),
                    "cost {cost} at {t}, {wait} after {at}, word {word:#x}, {p:?}"
                );
                if let (Some(next), Some(book)) = (done.store, want) {
                    if clock.wrapping_add(next) & MASK != 0 {
                        open.push((encode(clock, next, MASK), t, book));
                    }
                }
            }
        }
    }
    seen.len()
}

fn exhaust_all(name: &str, p: &Params, rule: Rule, memory: u64) {
    // Starts near the wrap, and throughout the span. The clock is wider than the word.
    let span = 1u64 << 16;
    let starts = (1..span).step_by(4_093).chain(span - memory - 4..span);
    let all = starts.clone().count();
    let states: usize = starts.map(|start| exhaust(p, rule, memory, (7 << 16) + start)).sum();
    std::println!("{name}: {states} states");
    // At least one state for each wait until the key is forgotten.
    assert!(states > all * memory as usize, "{name}: {states} states");
}

fn counted(spec: LimitSpec) -> Params {
    within(&spec.skew(40), WIDTH, 0, Frame::of(&spec)).unwrap_or_else(|e| panic!("{spec:?}: {e}"))
}

#[test]
fn w16_gcra_is_the_token_bucket_in_every_state() {
    for (period, burst) in [(1, 7), (3, 4), (5, 5), (11, 1), (7, 6)] {
        let spec = LimitSpec::new(1, period, burst).skew(40);
        let p = rate::at(&spec, WIDTH, 0).unwrap_or_else(|e| panic!("{spec:?}: {e}"));
        exhaust_all("gcra", &p, token_bucket, period * burst);
    }
}

#[test]
fn w16_fixed_windows_are_the_textbooks_in_every_state() {
    for (units, window) in [(1, 9), (3, 7), (5, 16)] {
        exhaust_all("fixed", &counted(LimitSpec::fixed_window(units, window)), fixed, window);
        let p = counted(LimitSpec::fixed_window(units, window).aligned(window / 3));
        exhaust_all("aligned", &p, aligned, window);
    }
}

#[test]
fn w16_sliding_counters_are_the_textbooks_in_every_state() {
    for (units, window) in [(1, 9), (3, 7), (6, 12)] {
        exhaust_all("sliding", &counted(LimitSpec::sliding_counter(units, window)), sliding, 2 * window);
    }
}

#[test]
fn w16_quota_linear_is_the_textbooks_in_every_state() {
    // The quota divides the window, so T is a whole number of ticks.
    for (units, window) in [(1, 9), (3, 9), (6, 12), (7, 28)] {
        exhaust_all(
            "quota-linear",
            &counted(LimitSpec::quota_linear(units, window)),
            quota_linear,
            2 * window,
        );
    }
}

#[test]
fn w16_decaying_levels_are_never_below_the_exact_ones_and_hardly_above_in_every_state() {
    for (units, half_life) in [(1, 100), (3, 400), (10, 1_000)] {
        let p = counted(LimitSpec::decay(units, half_life));
        let h = half_life as f64;
        for lead in 0..=p.horizon_q {
            let exact = if lead == 0 { 0.0 } else { (lead as f64 / h - 10.0).exp2() };
            let made = level_of(&p, lead) as f64 / 2f64.powi(32);
            assert!(
                made >= exact * (1.0 - 1e-12) && made <= exact * (1.0 + 1e-8) + 1e-8,
                "{lead}: {made}, {exact}"
            );
            for cost in 1..=units {
                let done = step(&Op::new(&p, Kind::Check, cost, 0), 1 << 20, lead);
                let sum = exact + cost as f64;
                let passes = done.answer.verdict == Verdict::Conforming;
                let most = units as f64 + 1.0 / 1024.0;
                assert!(passes == (sum <= most) || (sum - most).abs() < 1e-6, "{lead} {cost}: {sum}");
                if let Some(next) = done.store {
                    let ideal = h * (sum.log2() + 10.0);
                    assert!(
                        next as f64 >= ideal - 1e-6 && next as f64 <= ideal + 1.001,
                        "{lead} {cost}: {next}, {ideal}"
                    );
                }
            }
        }
    }
}

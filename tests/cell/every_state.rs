//! Small meters and small sliding logs in every state that any requests and waits reach, compared with the exact
//! buckets of each RFC and with a list of admissions. Clocks start at the wrap and elsewhere.
//!
//! `src/algorithms/w16_tests.rs` exhausts everything else in words of 16 bits. These two have no such width: a meter's
//! word has 64 bits, of which at least 20 are time, and a stamp of a log has 64. So bursts, rates and windows are small
//! here, because a state depends on them. The width only decides where a word wraps, and clocks start there.

use std::collections::HashSet;

use crate::meters::oracle::{all_four, build, Oracle, Rfc};
use tatcell::Colour::{Green, Red, Yellow};
use tatcell::{ExclusiveCell, ExclusiveMeter, ExclusiveSlidingLog};

/// Visits every state of a meter from a fresh one on, its clock starting at `start`; gives their number.
fn exhaust_meter(rfc: Rfc, start: u64) -> usize {
    let limit = build(rfc.spec());
    let info = limit.info();
    assert!(
        info.resolution >= 0,
        "each rate is a whole number of ticks a unit, and a tick of q-units: {rfc:?}"
    );
    // Until both buckets are full again, whatever there was.
    let memory = (rfc.cbs + rfc.burst2) * rfc.hz / rfc.cir;
    let relative = |word: u64, at: u64| word.wrapping_sub(at << info.resolution << (64 - info.word_bits));
    let full = Oracle { last: start, ..Oracle::new(rfc) };
    let (mut seen, mut open) = (HashSet::new(), Vec::from([(0u64, start, full)]));
    while let Some((word, at, book)) = open.pop() {
        for wait in 0..=memory + 1 {
            let t = at + wait;
            let mut book = book;
            book.fill(t);
            // Where both are full the word is as good as none.
            let idle = book.tokens == Oracle::new(rfc).tokens;
            if !seen.insert((if idle && wait > 0 { 0 } else { relative(word, t) }, book.tokens)) {
                continue;
            }
            for (cost, pre) in
                (0..=rfc.cbs.max(rfc.burst2) + 1).flat_map(|c| [(c, Green), (c, Yellow), (c, Red)])
            {
                let mut meter = ExclusiveMeter::from_word(word);
                let want = book.colour(cost, pre);
                let got = meter.check(&limit, t, cost, pre).colour;
                assert_eq!(
                    got, want,
                    "{cost} units that came {pre:?} at {t}, {wait} after {at}: {rfc:?} {book:?}"
                );
                assert_eq!(meter.word() != word, cost > 0 && want != Red, "stored, or not: {rfc:?} {book:?}");
                // A word that comes out as 0 is stored a q-unit later.
                let moved = meter.word() == 1 << (64 - info.word_bits);
                if cost > 0 && want != Red && !moved {
                    let mut book = book;
                    book.charge(cost, want);
                    open.push((meter.word(), t, book));
                }
            }
        }
    }
    seen.len()
}

#[test]
fn meters_mark_as_the_exact_buckets_in_every_state() {
    for (cir, cbs, rate2, burst2) in [(3, 3, 6, 4), (4, 5, 4, 3), (6, 2, 12, 5), (12, 1, 12, 1)] {
        for rfc in all_four(cir, cbs, rate2, burst2, 12) {
            let info = build(rfc.spec()).info();
            let span = 1u64 << (info.word_bits as i32 - info.resolution);
            // At a start of the word's clock and before its wrap.
            let starts = [1, 777, span / 2 - 7, span - 60, 3 * span - 13];
            let states: Vec<usize> = starts.into_iter().map(|start| exhaust_meter(rfc, start)).collect();
            println!("{rfc:?}: {states:?} states");
            assert!(states.iter().all(|n| *n > 3), "{states:?}");
        }
    }
}

/// A log of `units` units in every window of `window` ticks, from an empty one on.
fn exhaust_log(units: usize, window: u64, start: u64) -> usize {
    let (mut seen, mut open) = (HashSet::new(), Vec::from([(vec![0u64; units], start, Vec::<u64>::new())]));
    while let Some((words, at, admitted)) = open.pop() {
        for wait in 0..=window + 1 {
            let t = at.wrapping_add(wait);
            let age = |then: &u64| t.wrapping_sub(*then);
            let book: Vec<u64> = admitted.iter().copied().filter(|then| age(then) < window).collect();
            let lead =
                |word: &u64| if *word == 0 { 0 } else { word.wrapping_sub(t).min(window + 1) % (window + 1) };
            let mut leads: Vec<u64> = words.iter().map(lead).collect();
            leads.sort_unstable();
            if !seen.insert((leads, book.iter().map(age).collect::<Vec<_>>())) {
                continue;
            }
            let mut stamps: Vec<ExclusiveCell> =
                words.iter().map(|word| ExclusiveCell::from_word(*word)).collect();
            let mut log = ExclusiveSlidingLog::new(&mut stamps, window).unwrap();
            let left = |then: &u64| window - age(then);
            let looked = log.peek(t);
            assert_eq!(looked.remaining, (units - book.len()) as u64, "{units} in {window} at {t}: {book:?}");
            assert_eq!(
                looked.reset_after,
                book.iter().map(left).max().unwrap_or(0),
                "{window} at {t}: {book:?}"
            );
            let d = log.check_ex(t);
            assert_eq!(d.passes(), book.len() < units, "{units} in {window} at {t}: {book:?}");
            let soonest = book.iter().map(left).min().unwrap_or(0);
            assert_eq!(
                d.retry_after,
                if d.passes() { 0 } else { soonest },
                "{units} in {window} at {t}: {book:?}"
            );
            // A stamp that comes out as 0 is stored a tick later.
            if d.passes() && t.wrapping_add(window) != 0 {
                let admitted = book.into_iter().chain([t]).collect();
                open.push((stamps.iter().map(ExclusiveCell::word).collect(), t, admitted));
            }
        }
    }
    seen.len()
}

#[test]
fn sliding_logs_are_the_list_of_what_was_admitted_in_every_state() {
    for (units, window) in [(1, 1), (1, 9), (2, 6), (3, 5), (3, 9), (4, 7)] {
        let starts = [1, 50, 1 << 40, u64::MAX - 3, u64::MAX - 40];
        let states: Vec<usize> = starts.into_iter().map(|start| exhaust_log(units, window, start)).collect();
        println!("{units} in {window}: {states:?} states");
        assert!(states.iter().all(|n| *n > window as usize), "{states:?}");
    }
}

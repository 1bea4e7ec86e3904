//! Models of the log gate and of slip: each line is written or reported exactly once, and exactly one of n refusals is
//! flagged. Weakenings must break this. For bounds and for what loom does not show see `table/models/loom_kit.rs`.

use std::sync::Arc;

use crate::algorithms::key_log;
use crate::algorithms::log_gate::{Pace, Step};
use crate::cell::{KeyLogGate, LeftOut, LogGate, LogLine, Slip};
use crate::sync::{AtomicU64, Ordering};
use crate::table::models::loom_kit::{explore, race, race3, Bound, NOW};

/// An interval in ticks that is exact.
const I: u64 = 1000;

/// Counts the lines left out, and those that written lines reported.
fn sums(lines: &[LogLine]) -> (u32, u32) {
    lines.iter().fold((0, 0), |(out, told), line| match line {
        LogLine::LeaveOut => (out + 1, told),
        LogLine::Write { left_out } => (out, told + left_out),
    })
}

fn written(lines: &[LogLine]) -> usize {
    lines.iter().filter(|line| matches!(line, LogLine::Write { .. })).count()
}

/// Three lines at once at a fresh gate: one is written, two are counted. Does not show: different clocks.
#[test]
fn three_lines_at_once_write_one_and_count_two() {
    explore("log: 3 threads x 1 line", Bound::Exhaustive, || {
        let gate = Arc::new(LogGate::new());
        let (a, b, c) = (gate.clone(), gate.clone(), gate.clone());
        let (a, b, c) = race3(move || a.line(NOW, I), move || b.line(NOW, I), move || c.line(NOW, I));
        assert_eq!(written(&[a, b, c]), 1, "not exactly one line");
        assert_eq!(gate.left_out(), 2, "a line was neither written nor counted");
        assert_eq!((gate.take(), gate.left_out()), (Some(2), 0), "what was taken is still there");
    });
}

/// Two threads whose clocks pass the interval: whichever line is written when, each line left out is reported once.
/// Does not show: more threads, the saturation.
fn lines_across_an_interval(check: fn(&LogGate, u64) -> LogLine, name: &str) {
    explore(name, Bound::Exhaustive, move || {
        let gate = Arc::new(LogGate::new());
        let first = gate.line(NOW, I);
        assert_eq!(first, LogLine::Write { left_out: 0 });
        let (a, b) = (gate.clone(), gate.clone());
        let (a, b) = race(
            move || [check(&a, NOW + I / 2), check(&a, NOW + I)],
            move || [check(&b, NOW + I / 2), check(&b, NOW + I)],
        );
        let lines = [a, b].concat();
        let (out, told) = sums(&lines);
        assert_eq!(told + gate.left_out(), out, "a count was lost or told twice: {lines:?}");
        assert_eq!(written(&lines), 1, "not one line an interval: {lines:?}");
    });
}

#[test]
fn lines_left_out_are_told_of_once_across_an_interval() {
    lines_across_an_interval(|gate, now| gate.line(now, I), "log: 2 threads x 2 lines");
}

/// A count is taken while lines are written and counted: nothing is lost, nothing is reported twice.
#[test]
fn what_is_taken_is_told_by_no_line() {
    explore("log: take beside 2 lines", Bound::Exhaustive, || {
        let gate = Arc::new(LogGate::new());
        let lines = [gate.line(NOW, I), gate.line(NOW, I)];
        assert_eq!(sums(&lines), (1, 0));
        let (a, b, c) = (gate.clone(), gate.clone(), gate.clone());
        let (a, b, taken) = race3(move || a.line(NOW + 1, I), move || b.line(NOW + I, I), move || c.take());
        let (out, told) = sums(&[a, b]);
        let taken = taken.expect("contended with two rivals");
        assert_eq!(told + taken + gate.left_out(), out + 1, "a count was lost or told twice");
    });
}

/// Stores a line where the shipped gate swaps.
fn stored(gate: &LogGate, now: u64) -> LogLine {
    // ORDERING: Relaxed; single word, value only, here and below.
    match Pace::of(I).step(gate.word().load(Ordering::Relaxed), now) {
        Step::Write { left_out, word } => {
            gate.word().store(word, Ordering::Relaxed);
            LogLine::Write { left_out }
        }
        Step::LeaveOut => gate.line(now, I),
    }
}

/// A line that overwrites the count of another loses it, or both lines are written.
#[test]
#[should_panic(expected = "a count was lost")]
fn store_for_the_swap_of_a_line_is_caught() {
    lines_across_an_interval(stored, "MUST FAIL: a line is stored");
}

/// Counts by load and store where the shipped gate adds.
fn counted_by_store(gate: &LogGate, now: u64) -> LogLine {
    // ORDERING: Relaxed; single word, value only, here and below.
    let word = gate.word().load(Ordering::Relaxed);
    match Pace::of(I).step(word, now) {
        Step::LeaveOut => {
            gate.word().store(word + 1, Ordering::Relaxed);
            LogLine::LeaveOut
        }
        Step::Write { .. } => gate.line(now, I),
    }
}

/// A count that overwrites the line of another makes its word old again, and a second line is written.
#[test]
#[should_panic(expected = "not one line an interval")]
fn store_for_the_addition_of_a_count_is_caught() {
    lines_across_an_interval(counted_by_store, "MUST FAIL: a count is stored");
}

/// Keys whose tags differ.
const KEYS: [u64; 2] = [1, 2];

/// Two threads write and leave out lines of these keys across an interval. Every line is written or reported once. What
/// is left at the end has a tag only if all of it is of that key; and with one key it has its tag. Does not show: three
/// keys, the saturation.
fn keyed_lines(keys: [u64; 2], line: fn(&KeyLogGate, u64, u64) -> Option<LeftOut>, name: &'static str) {
    explore(name, Bound::Exhaustive, move || {
        let gate = Arc::new(KeyLogGate::new());
        assert_eq!(gate.line(NOW, I, keys[0]), Some(LeftOut::default()));
        let (a, b) = (gate.clone(), gate.clone());
        let (a, b) = race(
            move || [line(&a, NOW + 1, keys[0]), line(&a, NOW + I, keys[0])],
            move || [line(&b, NOW + 1, keys[1]), line(&b, NOW + I, keys[1])],
        );
        let rest = gate.take().expect("nobody else is there");
        let lines = [a, b].concat();
        let told: u32 = lines.iter().flatten().map(|before| before.count).sum();
        let written = lines.iter().flatten().count();
        assert_eq!(written, 1, "not one line an interval");
        assert_eq!(told + rest.count, 3, "a count was lost or told twice: {lines:?} {rest:?}");
        if keys[0] == keys[1] {
            let all = lines.iter().flatten().chain([&rest]).filter(|part| part.count != 0);
            all.for_each(|part| assert!(part.is_of(keys[0]), "whose lines? {part:?}"));
        }
        // The lines of each key that nobody reported, if each thread's own written line came last.
        for (key, other) in [(0, 1), (1, 0)] {
            let out = [a, b].map(|lines| lines.iter().filter(|line| line.is_none()).count() as u32);
            if keys[0] != keys[1] && rest.is_of(keys[key]) {
                assert!(rest.count <= out[key], "{rest:?} has lines of key {other}");
            }
        }
    });
}

#[test]
fn a_gate_of_one_key_always_has_its_tag() {
    keyed_lines([KEYS[0]; 2], |gate, now, key| gate.line(now, I, key), "key log: one key");
}

#[test]
fn a_tag_stands_for_all_lines_that_are_left() {
    keyed_lines(KEYS, |gate, now, key| gate.line(now, I, key), "key log: two keys");
}

/// Adds, and never looks at whose lines it found.
fn added_blindly(gate: &KeyLogGate, now: u64, key: u64) -> Option<LeftOut> {
    // ORDERING: Relaxed; single word, value only, here and below.
    match key_log::step(Pace::of(I), gate.word().load(Ordering::Relaxed), now, KeyLogGate::tag(key)) {
        key_log::Step::LeaveOut => {
            gate.word().fetch_add(1, Ordering::Relaxed);
            None
        }
        _ => gate.line(now, I, key),
    }
}

/// MUST FAIL: lines of two keys stand under the tag of one.
#[test]
#[should_panic(expected = "has lines of key")]
fn a_line_that_keeps_the_tag_of_another_key_is_caught() {
    keyed_lines(KEYS, added_blindly, "MUST FAIL: a tag is kept");
}

fn flags(flagged: &[bool]) -> usize {
    flagged.iter().filter(|flag| **flag).count()
}

/// Three refusals, n = 3, after any number before them: exactly one is flagged. Does not show: the wrap.
#[test]
fn of_n_refusals_of_several_threads_one_is_flagged() {
    for before in 0..3 {
        explore("slip: 3 threads x 1 refusal", Bound::Exhaustive, move || {
            let slip = Arc::new(Slip::new());
            for _ in 0..before {
                slip.check(3);
            }
            let (a, b, c) = (slip.clone(), slip.clone(), slip.clone());
            let (a, b, c) = race3(move || a.check(3), move || b.check(3), move || c.check(3));
            assert_eq!(flags(&[a, b, c]), 1, "not one of three");
        });
    }
}

/// Loads and stores where the shipped counter adds.
#[test]
#[should_panic(expected = "not one of two")]
fn store_for_the_addition_of_a_refusal_is_caught() {
    explore("MUST FAIL: slip by load and store", Bound::Exhaustive, || {
        let slip = Arc::new(AtomicU64::new(0));
        let next = |slip: Arc<AtomicU64>| {
            // ORDERING: Relaxed; single word, value only, here and below.
            let number = slip.load(Ordering::Relaxed);
            slip.store(number + 1, Ordering::Relaxed);
            number % 2 == 0
        };
        let (a, b) = (slip.clone(), slip.clone());
        let (a, b) = race(move || next(a), move || next(b));
        assert_eq!(flags(&[a, b]), 1, "not one of two");
    });
}

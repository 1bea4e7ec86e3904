//! The handling of refusals: log lines against an oracle of whole numbers, and flags of slip, also among threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Barrier;

use crate::common::cases;
use tatcell::{KeyLogGate, LeftOut, LogGate, LogLine, Slip, SmallLimit32, SmallLog};

/// A gate in exact arithmetic, for intervals that are exact: when the next line may be written, and what was left out.
#[derive(Default)]
struct Oracle {
    next: Option<u64>,
    left_out: u32,
}

impl Oracle {
    fn check(&mut self, interval: u64, now: u64) -> LogLine {
        // A clock that is behind by up to one interval finds the line still written.
        if self.next.is_some_and(|next| now < next && next - now <= 2 * interval) {
            self.left_out += 1;
            return LogLine::LeaveOut;
        }
        self.next = Some(now + interval);
        LogLine::Write { left_out: std::mem::take(&mut self.left_out) }
    }
}

#[test]
fn every_line_is_answered_as_by_the_oracle() {
    cases(400, |rng| {
        let interval = rng.within(0, 2047);
        let (gate, mut oracle) = (LogGate::new(), Oracle::default());
        let mut now = rng.scaled(62);
        for _ in 0..500 {
            now = match rng.below(8) {
                0 => now.saturating_sub(rng.below(3 * interval + 2)),
                1 => now + interval,
                2 => now + rng.below(3 * interval + 2),
                _ => now + rng.below(interval / 8 + 1),
            };
            assert_eq!(gate.line(now, interval), oracle.check(interval, now), "{interval} at {now}");
            assert_eq!(gate.left_out(), oracle.left_out);
            if rng.one_in(50) {
                assert_eq!(gate.take(), Some(std::mem::take(&mut oracle.left_out)));
            }
        }
    });
}

/// The same lines as of a gate without keys; and the tag is that of the key of all lines that were left out.
#[test]
fn a_gate_that_knows_keys_writes_the_same_lines_and_says_whose_it_left_out() {
    let mut seen = [0u32; 3];
    let count = std::cell::RefCell::new(&mut seen);
    cases(300, |rng| {
        let interval = rng.within(1, 2047);
        let (gate, mut oracle) = (KeyLogGate::new(), Oracle::default());
        let keys: Vec<u64> = (0..rng.within(1, 3)).map(|_| rng.next()).collect();
        let (mut now, mut out) = (rng.scaled(40), Vec::<u64>::new());
        let expected = |out: &[u64]| {
            let one = out.windows(2).all(|two| two[0] == two[1]);
            let tag = out.first().filter(|_| one).map_or(0, |key| KeyLogGate::tag(*key));
            count.borrow_mut()[if out.is_empty() { 0 } else { 1 + usize::from(one) }] += 1;
            LeftOut { count: out.len() as u32, tag }
        };
        for _ in 0..500 {
            now += if rng.one_in(4) { interval } else { rng.below(interval / 4 + 1) };
            let key = rng.pick(&keys);
            let line = gate.line(now, interval, key);
            match oracle.check(interval, now) {
                LogLine::Write { .. } => {
                    assert_eq!(line, Some(expected(&out)), "{interval} at {now}");
                    out.clear();
                }
                LogLine::LeaveOut => {
                    assert_eq!(line, None, "{interval} at {now}");
                    out.push(key);
                }
            }
            assert_eq!(gate.left_out(), expected(&out));
            if rng.one_in(50) {
                assert_eq!(gate.take(), Some(expected(&out)));
                (oracle.left_out, _) = (0, out.clear());
            }
        }
    });
    assert!(seen.iter().all(|n| *n > 10_000), "{seen:?}");
}

/// Threads with one key share a gate: every line is written or reported once, and always under the key's tag.
#[test]
fn threads_of_one_key_always_find_its_tag() {
    const LINES: u32 = 100_000;
    let (gate, clock, start) = (KeyLogGate::new(), AtomicU32::new(0), Barrier::new(4));
    let told: u64 = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| {
            scope.spawn(|| {
                start.wait();
                let mut told = 0;
                for _ in 0..LINES {
                    let now = clock.fetch_add(1, Ordering::Relaxed);
                    if let Some(before) = gate.line(u64::from(now / 8), 50, 77) {
                        assert!(before.count == 0 || before.is_of(77), "{before:?}");
                        told += u64::from(before.count) + 1;
                    }
                }
                told
            })
        });
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    let rest = gate.take().unwrap();
    assert_eq!(told + u64::from(rest.count), 4 * u64::from(LINES));
    assert!(rest.count == 0 || rest.is_of(77));
}

#[test]
fn lines_of_any_interval_keep_their_distance_and_lose_no_count() {
    cases(400, |rng| {
        let interval = rng.scaled(50).max(1);
        let gate = LogGate::new();
        let (mut now, mut last, mut left_out, mut told) = (rng.scaled(60), None, 0u64, 0u64);
        for _ in 0..2000 {
            let steps = rng.within(1, 64);
            now += rng.below(interval / steps + 2);
            match gate.line(now, interval) {
                LogLine::LeaveOut => left_out += 1,
                LogLine::Write { left_out } => {
                    assert!(last.is_none_or(|last| now - last >= interval), "{interval}: too early at {now}");
                    last = Some(now);
                    told += u64::from(left_out);
                }
            }
            let waited = now - last.expect("the first line is written");
            assert!(waited <= interval + interval / 256 + 3, "{interval}: no line for {waited}");
        }
        assert_eq!(told + u64::from(gate.left_out()), left_out);
    });
}

#[cfg(target_has_atomic = "64")] // its clock and its sums
#[test]
fn threads_lose_no_line_and_tell_of_none_twice() {
    use std::sync::atomic::AtomicU64;

    const LINES: u64 = 100_000;
    let gate = LogGate::new();
    let (clock, left_out, told, written) =
        (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (gate, clock, left_out, told, written) = (&gate, &clock, &left_out, &told, &written);
            scope.spawn(move || {
                for line in 0..LINES {
                    let now = clock.fetch_add(u64::from(line % 4 == thread), Ordering::Relaxed);
                    match gate.line(now, 1000) {
                        LogLine::LeaveOut => left_out.fetch_add(1, Ordering::Relaxed),
                        LogLine::Write { left_out } => {
                            written.fetch_add(1, Ordering::Relaxed);
                            told.fetch_add(left_out.into(), Ordering::Relaxed)
                        }
                    };
                    if line % 1000 == 0 {
                        told.fetch_add(gate.take().unwrap_or(0).into(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let [left_out, told, written] = [left_out, told, written].map(AtomicU64::into_inner);
    assert_eq!(left_out + written, 4 * LINES);
    assert_eq!(told + u64::from(gate.left_out()), left_out);
    assert!(written >= LINES / 1000, "{written} lines");
}

/// The same of the small form, which takes a count that others add to by one swap.
#[test]
fn threads_lose_no_line_of_a_small_log_and_tell_of_none_twice() {
    const LINES: u32 = 100_000;
    let limit = SmallLimit32::new(1, 4, 2).expect("a limit");
    let (log, clock, start) = (SmallLog::new(), AtomicU32::new(0), Barrier::new(4));
    let each: Vec<[u64; 3]> = std::thread::scope(|scope| {
        let lines = || {
            start.wait();
            (0..LINES).fold([0; 3], |[written, left_out, told], line| {
                let now = clock.fetch_add(u32::from(line % 2 == 0), Ordering::Relaxed);
                match log.check(&limit, now) {
                    Some(more) => [written + 1, left_out, told + u64::from(more)],
                    None => [written, left_out + 1, told],
                }
            })
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(lines)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect()
    });
    let [written, left_out, told] = [0, 1, 2].map(|i| each.iter().map(|thread| thread[i]).sum::<u64>());
    assert_eq!(written + left_out, 4 * u64::from(LINES));
    assert_eq!(told + u64::from(log.left_out()), left_out);
    assert!(written > 10_000 && left_out > 10_000, "{written} and {left_out} lines: the threads do not test");
}

#[test]
fn of_any_n_consecutive_refusals_exactly_one_is_flagged() {
    for n in [1, 2, 3, 5, 10, 97] {
        let mut slip = Slip::new();
        let flags: Vec<bool> =
            (0..1000).map(|i| if i % 3 == 0 { slip.check_exclusive(n) } else { slip.check(n) }).collect();
        assert!(flags[0], "the first refusal gets its answer");
        for window in flags.windows(n as usize) {
            assert_eq!(window.iter().filter(|flag| **flag).count(), 1, "n = {n}");
        }
        assert_eq!(slip.refusals(), 1000);
    }
}

#[test]
fn a_slip_of_0_flags_and_counts_none() {
    let mut slip = Slip::new();
    assert!(!(0..100).any(|_| slip.check(0) || slip.check_exclusive(0)));
    assert_eq!(slip.refusals(), 0);
}

#[test]
fn threads_share_one_flag_in_n() {
    let slip = Slip::new();
    let flagged: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..70_000).filter(|_| slip.check(7)).count() as u64)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).sum()
    });
    assert_eq!(flagged, 4 * 70_000 / 7);
}

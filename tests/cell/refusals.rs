//! The handling of refusals: log lines against an oracle of whole numbers, and flags of slip, also among threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Barrier;

use crate::common::cases;
use tatcell::{LogGate, LogLine, Slip, SmallLimit32, SmallLog};

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

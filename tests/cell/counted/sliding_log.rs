//! Sliding logs against a list of all admissions, and against their own promise for every window.

use std::collections::VecDeque;

use crate::common::{cases, size_from, Rng};
use tatcell::{
    Cell, Decision, ExclusiveCell, ExclusiveSlidingLog, LimitError, Outcome, Permit, SlidingLog, Verdict,
};

fn stamps(n: usize) -> Vec<Cell> {
    (0..n).map(|_| Cell::new()).collect()
}

/// A stream of readings: bursts, gaps around the window, steps back, long idle times.
pub struct Clock {
    pub top: u64,
    pub now: u64,
    pub window: u64,
    pub skew: u64,
}

impl Clock {
    pub fn step(&mut self, rng: &mut Rng) {
        let w = self.window;
        self.top += match rng.below(200) {
            0 => rng.below(1 << 40),
            1..=4 => rng.below(3 * w + 1),
            5..=24 => {
                self.now = self.top.saturating_sub(rng.below(self.skew + 1).min(rng.scaled(48)));
                return;
            }
            25..=34 => w.saturating_sub(1) + rng.below(3),
            35..=110 => 0,
            _ => rng.below(w / 8 + 2),
        };
        self.now = self.top;
    }
}

/// All that was admitted and not refunded, oldest first.
#[derive(Default)]
pub struct Oracle {
    times: VecDeque<i128>,
    /// Of what was refunded, a window before its charge: until that, a clock behind finds its stamp taken.
    held: Vec<i128>,
}

impl Oracle {
    /// Units later than `now - w`, those of clocks ahead included.
    pub fn inside(&self, now: u64, w: u64) -> usize {
        self.times.iter().chain(&self.held).filter(|&&t| t > now as i128 - w as i128).count()
    }

    pub fn admit(&mut self, at: u64) {
        let at = at as i128;
        let place = self.times.partition_point(|&t| t <= at);
        self.times.insert(place, at);
    }

    pub fn refund(&mut self, at: u64, w: u64) {
        let place = self.times.iter().position(|&t| t == at as i128).expect("it was admitted");
        self.times.remove(place);
        self.held.push(at as i128 - w as i128);
    }

    /// No window of length w holds more than `most`, looked for around `at`.
    pub fn holds(&self, at: u64, w: u64, most: usize) -> bool {
        let (at, w) = (at as i128, w as i128);
        let near: Vec<_> = self.times.iter().filter(|&&t| t > at - w && t < at + w).collect();
        near.windows(most + 1).all(|some| some[most] - some[0] >= w)
    }

    pub fn forget(&mut self, before: i128) {
        while self.times.front().is_some_and(|&t| t < before) {
            self.times.pop_front();
        }
        self.held.retain(|&t| t >= before);
    }
}

/// Asks both forms, short and full, and looks before: all agree, and every number is exact.
pub fn ask(shared: &[Cell], own: &mut [ExclusiveCell], window: u64, skew: u64, now: u64) -> Decision {
    let log = SlidingLog::new(shared, window).unwrap().skew(skew).unwrap();
    let looked = log.peek(now);
    let made = log.check_ex(now);
    let mut twin = ExclusiveSlidingLog::new(own, window).unwrap().skew(skew).unwrap();
    assert_eq!(twin.check(now), made.outcome());
    assert_eq!(looked.outcome(), made.outcome(), "a look promises another answer");
    let after = log.peek(now);
    let copy = |now: u64| log.peek(now);
    assert_eq!(
        (made.remaining, made.next_unit, made.reset_after),
        (after.remaining, after.next_unit, after.reset_after)
    );
    assert_eq!((made.cost, made.burst), (1, shared.len() as u64));
    if made.remaining < made.burst {
        assert_eq!(copy(now + made.next_unit - 1).remaining, made.remaining);
        assert!(copy(now + made.next_unit).remaining > made.remaining);
        assert!(copy(now + made.reset_after - 1).remaining < made.burst);
        assert_eq!(copy(now + made.reset_after).remaining, made.burst);
    } else {
        assert_eq!((made.next_unit, made.reset_after), (0, 0));
    }
    match made.verdict {
        Verdict::Conforming => {
            assert_eq!((made.retry_after, made.permit.stored, made.departure), (0, 1, now))
        }
        Verdict::NonConforming => {
            assert_eq!((made.permit, made.remaining, looked), (Permit::NONE, 0, made));
            assert!(!copy(now + made.retry_after - 1).passes() && copy(now + made.retry_after).passes());
        }
        other => panic!("{other:?}"),
    }
    for (a, b) in shared.iter().zip(own.iter()) {
        assert_eq!(a.word(), b.word(), "shared and exclusive log differ");
    }
    made
}

#[test]
fn every_decision_is_that_of_the_list_and_no_window_holds_more_than_its_units() {
    let steps = size_from("TATCELL_COUNTED_STEPS", 1e6 as u64) / 2_000;
    let seen = std::cell::Cell::new([0u64; 4]);
    cases(steps, |rng| {
        let n = 1 + rng.scaled(5) as usize;
        let window = rng.pick(&[1, 2, 3, 10, 1_000, 60_000, 1 << 30]) * (1 + rng.below(7));
        let skew = rng.pick(&[0, 1, window / 2, window, 20 * window]);
        let start = (1 << 20) + 40 * window + rng.scaled(61);
        let mut clock = Clock { top: start, now: start, window, skew };
        let (shared, mut own) = (stamps(n), vec![ExclusiveCell::new(); n]);
        let (mut oracle, mut newest) = (Oracle::default(), 0);
        let mut last: Option<(u64, Permit)> = None;
        let mut counts = seen.get();
        for _ in 0..2_000 {
            clock.step(rng);
            let now = clock.now;
            if rng.one_in(16) {
                if let Some((at, permit)) = last.take() {
                    let log = SlidingLog::new(&shared, window).unwrap().skew(skew).unwrap();
                    let mut twin = ExclusiveSlidingLog::new(&mut own, window).unwrap().skew(skew).unwrap();
                    let back = log.refund(now, &permit).unwrap();
                    assert_eq!(twin.refund(now, &permit), Some(back));
                    assert_eq!(
                        back,
                        u64::from(at as i128 > now as i128 - window as i128),
                        "not its own unit"
                    );
                    if back == 1 {
                        oracle.refund(at, window);
                        counts[3] += 1;
                    }
                    assert_eq!(log.refund(now, &permit), Some(0), "a permit was good twice");
                }
            }
            let inside = oracle.inside(now, window);
            let made = ask(&shared, &mut own, window, skew, now);
            if made.passes() {
                oracle.admit(now);
                newest = now.max(newest);
                last = Some((now, made.permit));
                assert!(oracle.holds(now, window, n), "more than {n} in a window of {window} around {now}");
            } else {
                assert!(inside >= n, "refused with {inside} of {n} in the window of {window} before {now}");
            }
            // Of clocks that only go forward the answer is that of the list, and the count too.
            if now >= newest {
                assert_eq!(made.passes(), inside < n);
                assert_eq!(made.remaining, (n - oracle.inside(now, window)) as u64);
            } else {
                counts[2] += 1;
            }
            counts[usize::from(!made.passes())] += 1;
            oracle.forget(clock.top as i128 - skew as i128 - 3 * window as i128);
        }
        seen.set(counts);
    });
    let [passed, refused, behind, refunded] = seen.get();
    println!("{passed} passed, {refused} refused, {behind} by clocks behind, {refunded} refunded");
    let least = steps * 20;
    assert!(
        passed > least * 5 && refused > least * 5 && behind > least && refunded > least,
        "{:?}",
        seen.get()
    );
}

#[test]
fn a_unit_leaves_exactly_a_window_after_it_came() {
    let cells = stamps(8);
    let log = SlidingLog::new(&cells, 1_000).unwrap();
    assert_eq!((log.units(), log.window()), (8, 1_000));
    for now in 0..8 {
        assert!(log.check(100 * now).passes());
    }
    assert_eq!(log.check(999), Outcome::NonConforming { retry_after: 1 });
    assert!(log.check(1_000).passes());
    assert_eq!(log.check(1_000), Outcome::NonConforming { retry_after: 100 });
    let full = log.peek(1_000);
    assert_eq!((full.remaining, full.next_unit, full.reset_after), (0, 100, 1_000));
    log.reset();
    assert_eq!(log.peek(1_000).remaining, 8);
}

#[test]
fn a_clock_behind_finds_the_units_of_those_ahead() {
    let cells = stamps(2);
    let log = SlidingLog::new(&cells, 1_000).unwrap().skew(500).unwrap();
    assert!(log.check(10_000).passes() && log.check(10_100).passes());
    for back in [0, 1, 100, 399, 400] {
        let answer = log.peek(10_000 - back);
        assert_eq!(
            (answer.passes(), answer.retry_after, answer.reset_after),
            (false, 1_000 + back, 1_100 + back)
        );
    }
    // Older than the skew behind the one, then behind both: they are forgotten, as documented.
    assert_eq!((log.peek(9_599).remaining, log.peek(9_500).remaining, log.peek(9_499).remaining), (1, 1, 2));
}

#[test]
fn a_refund_is_not_seen_by_a_clock_that_may_need_what_it_replaced() {
    let cells = stamps(1);
    let log = SlidingLog::new(&cells, 1_000).unwrap();
    assert!(log.check(1_000).passes());
    let second = log.check_ex(2_000);
    assert_eq!(log.refund(2_000, &second.permit), Some(1));
    // The first unit is in the window of 1999, though its stamp is gone.
    assert_eq!(log.check(1_999), Outcome::NonConforming { retry_after: 1 });
    assert!(log.check(2_000).passes());
}

#[test]
fn permits_of_other_places_and_of_the_past_give_back_nothing() {
    let cells = stamps(2);
    let log = SlidingLog::new(&cells, 1_000).unwrap();
    let made = log.check_ex(5_000);
    assert!(log.check(5_001).passes());
    let words = || cells.iter().map(Cell::word).collect::<Vec<_>>();
    let before = words();
    let mut wrong = [made.permit; 4];
    wrong[0].slot ^= 1;
    wrong[1].slot = 2;
    wrong[2].tat ^= 1;
    wrong[3] = Permit::NONE;
    for permit in &wrong {
        assert_eq!(log.refund(5_500, permit), Some(0));
    }
    assert_eq!(log.refund(6_000, &made.permit), Some(0), "its unit had left");
    assert_eq!(words(), before);
}

#[test]
fn a_wrap_of_the_clock_refuses_at_most_and_never_admits() {
    let cells = stamps(3);
    let log = SlidingLog::new(&cells, 1_000).unwrap();
    let start = u64::MAX - 999;
    for more in [0, 1, 2] {
        assert!(log.check(start + more).passes());
    }
    // The first leaves at 2^64, which would be a stamp of 0: it stays a tick longer.
    assert_eq!(log.check(u64::MAX), Outcome::NonConforming { retry_after: 2 });
    assert_eq!(log.check(0), Outcome::NonConforming { retry_after: 1 });
    assert!(
        log.check(1).passes() && log.check(1).passes() && !log.check(1).passes() && log.check(2).passes()
    );
    // After nearly a whole span an old stamp counts once more, for no longer than window and skew.
    let cells = stamps(1);
    let log = SlidingLog::new(&cells, 1_000).unwrap().skew(50).unwrap();
    assert!(log.check(7_000).passes());
    assert!(log.peek(8_000).passes() && log.peek(6_949).passes());
    assert!(!log.peek(6_950).passes());
}

#[test]
fn what_cannot_be_a_log_is_refused_by_name() {
    let cells = stamps(2);
    assert_eq!(SlidingLog::new(&[], 5).unwrap_err(), LimitError::ZeroRate);
    assert_eq!(ExclusiveSlidingLog::new(&mut [], 5).unwrap_err(), LimitError::ZeroRate);
    assert_eq!(SlidingLog::new(&cells, 0).unwrap_err(), LimitError::ZeroPeriod);
    let most = (1 << 63) - (1 << 61) - 1;
    assert!(SlidingLog::new(&cells, most).is_ok());
    assert_eq!(SlidingLog::new(&cells, most + 1).unwrap_err(), LimitError::HorizonTooLong);
    assert_eq!(SlidingLog::new(&cells, u64::MAX).unwrap_err(), LimitError::HorizonTooLong);
    let log = SlidingLog::new(&cells, 1_000).unwrap();
    assert!(log.skew((1 << 63) - 1_001).is_ok());
    assert_eq!(log.skew((1 << 63) - 1_000).unwrap_err(), LimitError::HorizonTooLong);
    assert_eq!(log.skew(u64::MAX).unwrap_err(), LimitError::HorizonTooLong);
}

/// Threads that draw their readings from one clock, and are behind by as much as the scheduler keeps them.
#[cfg(target_has_atomic = "64")] // their clock
#[test]
fn threads_admit_together_no_more_than_the_units_of_any_window() {
    use std::sync::atomic::{AtomicU64, Ordering};

    let (calls, threads) = (size_from("TATCELL_LOG_CALLS", 200_000), 4);
    for (n, window) in [(1, 7), (8, 50), (8, 5_000), (100, 1_000)] {
        let (cells, clock) = (stamps(n), AtomicU64::new(1 << 32));
        let log = SlidingLog::new(&cells, window).unwrap();
        let mut all: Vec<(u64, bool)> = std::thread::scope(|scope| {
            let each: Vec<_> = (0..threads)
                .map(|id| {
                    let (log, clock) = (&log, &clock);
                    scope.spawn(move || {
                        let mut rng = Rng(id);
                        (0..calls / threads)
                            .map(|_| {
                                let now = clock.fetch_add(rng.below(3), Ordering::Relaxed);
                                (now, log.check(now).passes())
                            })
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            each.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        all.sort_unstable();
        let admitted: Vec<u64> = all.iter().filter(|(_, passed)| *passed).map(|(now, _)| *now).collect();
        let over = admitted.windows(n + 1).filter(|some| some[n] - some[0] < window).count();
        assert_eq!(over, 0, "{over} windows of {window} with more than {n} of {} units", admitted.len());
        // And no stamp was lost: what fits the time was admitted, less what clocks behind were refused.
        let time = clock.load(Ordering::Relaxed) - (1 << 32);
        let fits = (time / window) * n as u64;
        assert!(
            admitted.len() as u64 * 2 > fits.min(calls),
            "{} of {fits} in {n} a {window}",
            admitted.len()
        );
    }
}

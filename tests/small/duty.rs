//! Duty cycles: a radio that sends as much as it may, for a year, and every sliding hour of it.

use std::collections::VecDeque;

use crate::common::Rng;
use tatcell::{Cell, Cell32, LimitError, Outcome, SmallLimit, SmallLimit32};

const HOUR: u64 = 3_600_000;
const YEAR: u64 = 365 * 24 * HOUR;
/// One percent of an hour, and the longest packet.
const ON: u64 = 36_000;
const LONGEST: u64 = 1_500;

/// The transmissions of the last window, and the most that any window held.
struct Air {
    window: u64,
    sent: VecDeque<(u64, u64)>,
    held: u64,
    most: u64,
    total: u64,
}

impl Air {
    fn new(window: u64) -> Air {
        Air { window, sent: VecDeque::new(), held: 0, most: 0, total: 0 }
    }

    /// A transmission from `start` on. As a window moves on, it gains until its end leaves a transmission, or until
    /// its begin enters one, and then it holds the same until its end leaves one. So those windows hold most that end
    /// with a transmission: each of them is looked at, with the part of the oldest one that is still inside.
    fn send(&mut self, start: u64, ticks: u64) {
        self.sent.push_back((start, ticks));
        self.held += ticks;
        self.total += ticks;
        let begin = (start + ticks).saturating_sub(self.window);
        while let Some(&(first, ticks)) = self.sent.front() {
            if first + ticks > begin {
                // The part before the window.
                self.most = self.most.max(self.held - begin.saturating_sub(first));
                break;
            }
            self.held -= ticks;
            self.sent.pop_front();
        }
    }
}

/// Sends for a year, as much as the limit lets, by a clock of 32 bits that starts near its wrap.
fn year(limit: &SmallLimit32, rng: &mut Rng, packet: impl Fn(&mut Rng) -> u64, sleeps: bool) -> Air {
    let (cell, mut air) = (Cell32::new(), Air::new(HOUR));
    let (mut now, mut swept) = (u64::from(u32::MAX) - 60_000, 0);
    let end = now + YEAR;
    let mut ticks = packet(rng);
    while now < end {
        match cell.check_small(limit, now as u32, ticks as u32) {
            Outcome::Conforming => {
                air.send(now, ticks);
                now += ticks;
                ticks = packet(rng);
                if sleeps && rng.one_in(100) {
                    // Deep sleep, the clock goes on: minutes, or past the span; then at least once per sweep interval.
                    now += rng.below(HOUR * 24 * 30) >> rng.below(12);
                }
            }
            Outcome::NonConforming { retry_after } => now += retry_after,
            other => panic!("{other:?}"),
        }
        while swept + u64::from(limit.sweep_interval()) < now {
            swept += u64::from(limit.sweep_interval());
            if swept > now - u64::from(limit.sweep_interval()) {
                cell.idle(limit, now as u32);
            }
        }
    }
    air
}

#[test]
fn no_sliding_hour_of_a_year_is_above_its_duty_cycle() {
    let limit = SmallLimit32::duty(ON, HOUR, LONGEST).unwrap();
    let rng = &mut Rng(0x5eed_0201);
    let any = |rng: &mut Rng| rng.within(50, LONGEST);
    for (name, air) in [
        ("packets of 50 to 1500 ms", year(&limit, rng, any, false)),
        ("packets of 50 ms", year(&limit, rng, |_| 50, false)),
        ("packets of 1500 ms", year(&limit, rng, |_| LONGEST, false)),
        ("packets of 50 to 1500 ms, with deep sleep", year(&limit, rng, any, true)),
    ] {
        println!("{name}: at most {} ms in any hour, {} ms in the mean", air.most, air.total * HOUR / YEAR);
        assert!(air.most <= ON, "{name}: {} ms in an hour", air.most);
        if !name.contains("sleep") {
            // The rate that the burst leaves, less the last 0.1 % of the fixed point; and an hour that uses the burst.
            let mean = air.total * HOUR / YEAR;
            assert!(mean >= (ON - LONGEST) * 999 / 1_000 - 1, "{name}: only {mean} ms in the mean");
            assert!(air.most >= ON - LONGEST, "{name}: at most {} ms", air.most);
        }
    }
}

#[test]
fn the_obvious_limit_breaks_the_law() {
    let obvious = SmallLimit32::new(ON, HOUR, ON).unwrap();
    let air = year(&obvious, &mut Rng(0x5eed_0202), |_| 50, false);
    println!("{} ms in an hour", air.most);
    assert!(air.most > 71_000, "{} ms in an hour: this test sees what is above the law", air.most);
}

#[test]
fn every_duty_cycle_keeps_every_window() {
    let mut rng = Rng(0x5eed_0203);
    let mut made = 0;
    for round in 0..400 {
        let window = rng.within(10, 20_000);
        let on = rng.within(2, window);
        let longest = rng.within(1, on - 1);
        let (Ok(narrow), Ok(wide)) =
            (SmallLimit32::duty(on, window, longest), SmallLimit::duty(on, window, longest))
        else {
            continue;
        };
        made += 1;
        let (a, b) = (Cell32::new(), Cell::new());
        let (mut air, mut other) = (Air::new(window), Air::new(window));
        let (mut now, mut then) = (0, 0);
        for _ in 0..300 {
            let ticks = rng.within(1, longest);
            if rng.one_in(20) {
                now += rng.below(3 * window);
            }
            if let Outcome::NonConforming { retry_after } = a.check_small(&narrow, now as u32, ticks as u32) {
                now += retry_after;
                assert!(a.check_small(&narrow, now as u32, ticks as u32).passes());
            }
            air.send(now, ticks);
            now += ticks;
            if let Outcome::NonConforming { retry_after } = b.check_small(&wide, then, ticks as u32) {
                then += retry_after;
                assert!(b.check_small(&wide, then, ticks as u32).passes());
            }
            other.send(then, ticks);
            then += ticks;
        }
        for held in [air.most, other.most] {
            assert!(held <= on, "round {round}: {held} of {on} in {window}, longest {longest}");
        }
    }
    assert!(made > 300, "{made}");
}

#[test]
fn a_duty_cycle_that_is_none_is_refused() {
    for (on, window, longest) in [(10, 100, 10), (10, 100, 11), (101, 100, 5), (0, 100, 0)] {
        assert_eq!(SmallLimit32::duty(on, window, longest), Err(LimitError::BadDuty));
        assert_eq!(SmallLimit::duty(on, window, longest), Err(LimitError::BadDuty));
    }
    assert_eq!(SmallLimit32::duty(10, 100, 0), Err(LimitError::ZeroBurst));
    // All of the time, but for what a burst takes in advance.
    assert!(SmallLimit32::duty(100, 100, 10).is_ok() && SmallLimit::duty(100, 100, 10).is_ok());
}

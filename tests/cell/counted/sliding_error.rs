//! The error of the sliding window counter, on friendly and on hostile streams: compared with the exact log of what it
//! admitted itself, and with the other limiters of the same units and window.

use std::collections::VecDeque;

use crate::common::Rng;
use tatcell::{Cell, Limit};

/// Ticks of a window. So many that two requests of a stream rarely share one by chance.
const W: u64 = 1 << 32;
/// Requests of a random stream.
const REQUESTS: usize = 400_000;
/// Long before this nothing has come.
const START: u64 = W << 8;

/// Ticks until the next of the events that come at random, so many in a window on average.
fn gap(rng: &mut Rng, rate: f64) -> u64 {
    let uniform = (rng.next() >> 11) as f64 / (1u64 << 53) as f64;
    (-(1.0 - uniform).ln() / rate * W as f64) as u64
}

/// Requests that come at random: `load` times the limit on average.
fn poisson(units: u64, load: f64) -> Vec<u64> {
    let (mut rng, mut now) = (Rng(units), START);
    let next = |_| {
        now += gap(&mut rng, units as f64 * load);
        now
    };
    (0..REQUESTS).map(next).collect()
}

/// Poisson at twice the load for a random time, then nothing for a random time: a window each on average.
fn on_off(units: u64, load: f64) -> Vec<u64> {
    let (mut rng, mut now, mut out) = (Rng(units), START, vec![]);
    while out.len() < REQUESTS {
        let end = now + gap(&mut rng, 1.0);
        loop {
            now += gap(&mut rng, 2.0 * units as f64 * load);
            if now >= end {
                break;
            }
            out.push(now);
        }
        now = end + gap(&mut rng, 1.0);
    }
    out
}

/// Somebody who knows where the windows end: one request that starts the first, the rest shortly before its end, and
/// as many as the limit a little earlier in the next.
fn edge_attack(units: u64) -> Vec<u64> {
    let burst = |count: u64, from: u64| (0..count).map(move |k| from + k);
    let rounds = (0..1_000).map(|round| START + round * 4 * W);
    let round = |start: u64| {
        let (end, earlier) = (start + W - W / 200, start + 2 * W - W / 100);
        burst(1, start).chain(burst(units - 1, end)).chain(burst(units, earlier))
    };
    rounds.flat_map(round).collect()
}

/// Stamps of what was admitted in the window's length that ends now.
#[derive(Default)]
struct Log {
    stamps: VecDeque<u64>,
    most: usize,
}

impl Log {
    fn within(&mut self, now: u64) -> u64 {
        while self.stamps.front().is_some_and(|first| first + W <= now) {
            self.stamps.pop_front();
        }
        self.stamps.len() as u64
    }

    fn admit(&mut self, now: u64) {
        self.stamps.push_back(now);
        self.within(now);
        self.most = self.most.max(self.stamps.len());
    }
}

/// What one stream makes of the limiters.
struct Figures {
    /// Decisions of the sliding counter that the exact log of its own admissions would not have made, in percent.
    passed_in_error: f64,
    refused_in_error: f64,
    /// Most units within any window's length over the limit: exact log, sliding counter, fixed window, GCRA.
    most: [f64; 4],
}

fn measure(units: u64, stream: &[u64]) -> Figures {
    let limits = [
        Limit::sliding_counter(units, W).unwrap(),
        Limit::fixed_window(units, W).unwrap(),
        Limit::new(units, W, units).unwrap(),
    ];
    let cells = [Cell::new(), Cell::new(), Cell::new()];
    let [mut exact, mut logs @ ..]: [Log; 4] = Default::default();
    let (mut passed_in_error, mut refused_in_error) = (0u64, 0u64);
    for &now in stream {
        if exact.within(now) < units {
            exact.admit(now);
        }
        let fits = logs[0].within(now) < units;
        let passed = [0, 1, 2].map(|i| cells[i].check(&limits[i], now, 1).passes());
        for (log, _) in logs.iter_mut().zip(passed).filter(|(_, passed)| *passed) {
            log.admit(now);
        }
        passed_in_error += u64::from(passed[0] && !fits);
        refused_in_error += u64::from(!passed[0] && fits);
    }
    let share = |n: u64| n as f64 * 100.0 / stream.len() as f64;
    let over = |log: &Log| log.most as f64 / units as f64;
    let most = [over(&exact), over(&logs[0]), over(&logs[1]), over(&logs[2])];
    Figures { passed_in_error: share(passed_in_error), refused_in_error: share(refused_in_error), most }
}

#[test]
fn its_error_is_the_one_that_is_documented() {
    // Poisson and edge: the figures of the study that this algorithm was chosen by, with other random numbers; on-off,
    // and how much of the edge attack is refused in error: measured here first, for these streams.
    let rows = [
        ("Poisson 10, 0.5", 10, poisson(10, 0.5), 0.90, 1.16, [1.0, 1.3, 1.7, 1.8]),
        ("Poisson 10, 0.95", 10, poisson(10, 0.95), 5.2, 12.1, [1.0, 1.5, 1.9, 1.9]),
        ("Poisson 100, 0.5", 100, poisson(100, 0.5), 0.0, 0.0, [0.8, 0.8, 0.8, 0.8]),
        ("Poisson 100, 0.8", 100, poisson(100, 0.8), 0.84, 0.14, [1.0, 1.11, 1.15, 1.21]),
        ("Poisson 1000, 0.8", 1_000, poisson(1_000, 0.8), 0.0, 0.0, [0.92, 0.92, 0.92, 0.92]),
        ("Poisson 1000, 1.2", 1_000, poisson(1_000, 1.2), 16.6, 8.9, [1.0, 1.03, 1.15, 1.25]),
        ("on-off 100, 0.4", 100, on_off(100, 0.4), 0.39, 0.05, [1.0, 1.2, 1.2, 1.25]),
        ("on-off 100, 0.8", 100, on_off(100, 0.8), 10.0, 14.0, [1.0, 1.5, 1.8, 1.99]),
        ("edge attack 100", 100, edge_attack(100), 49.0, 0.0, [1.0, 1.98, 1.99, 1.99]),
    ];
    println!(
        "{:<18} passed in error %  refused in error %  most in w / limit: log sliding fixed gcra",
        "stream"
    );
    for (name, units, stream, passed_in_error, refused_in_error, most) in rows {
        let made = measure(units, &stream);
        println!(
            "{name:<18} {:>17.2} {:>17.2}  {:.2?}",
            made.passed_in_error, made.refused_in_error, made.most
        );
        let near = |made: f64, wanted: f64| (made - wanted).abs() <= 0.1 + 0.15 * wanted;
        assert!(
            near(made.passed_in_error, passed_in_error),
            "{name}: {} % passed in error, {passed_in_error} documented",
            made.passed_in_error
        );
        assert!(
            near(made.refused_in_error, refused_in_error),
            "{name}: {} % refused in error, {refused_in_error} documented",
            made.refused_in_error
        );
        for (made, wanted) in made.most.iter().zip(most) {
            assert!((made - wanted).abs() < 0.125, "{name}: {made} times the limit, {wanted} documented");
        }
        assert!(made.most[0] <= 1.0 && made.most[1] < 2.0, "{name}: above the bound");
    }
}

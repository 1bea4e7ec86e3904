//! How much a lease takes ahead, and what it does with it: compared step by step with a model in whole ticks.

use crate::common::Rng;
use tatcell::{Cell, Lease, Limit, LimitSpec, Outcome};

/// What a lease is, after the text of its module: absolute ticks, units, no wraps.
#[derive(Default)]
struct Model {
    batch: u64,
    /// The cell that the piece was taken from, and the piece; what is below `now` has lapsed.
    of: Option<usize>,
    holds: bool,
    low: u64,
    high: u64,
    /// Units wanted ahead at the last refill.
    wanted: u64,
    /// The TAT of each cell.
    tats: [u64; 2],
}

/// Emission interval and burst of a limit whose unit of time is a tick.
#[derive(Clone, Copy)]
struct Rate {
    t: u64,
    burst: u64,
}

impl Rate {
    fn limit(self) -> Limit {
        LimitSpec::new(1, self.t, self.burst).resolution(0).build().unwrap()
    }
}

impl Model {
    /// Where the piece begins at `now`: its end where nothing is left.
    fn low_at(&self, cell: usize, now: u64) -> u64 {
        if self.holds && self.of == Some(cell) {
            self.low.max(now).min(self.high)
        } else {
            self.high
        }
    }

    fn held(&self, cell: usize, now: u64) -> u64 {
        self.high - self.low_at(cell, now)
    }

    fn check(&mut self, cell: usize, rate: Rate, now: u64, cost: u64) -> Outcome {
        let (t, most_debt) = (rate.t, rate.t * rate.burst);
        let lead = self.tats[cell].saturating_sub(now);
        let (low, held, charge) = (self.low_at(cell, now), self.held(cell, now), cost * t);
        if charge <= held {
            self.low = low + charge;
            return Outcome::Conforming;
        }
        if cost > rate.burst {
            return Outcome::Never;
        }
        let next = lead + charge;
        if !self.holds && next > most_debt {
            return Outcome::NonConforming { retry_after: next - most_debt };
        }
        // Too poor to take this cost once more from half of what is left: the plain check.
        if !self.holds && (most_debt - next) / 2 < charge {
            self.tats[cell] = now + next;
            return Outcome::Conforming;
        }
        let mine = self.of == Some(cell);
        let lapsed = mine && self.holds && low > self.low;
        let most = match self.batch {
            0 => rate.burst / 16,
            batch => batch.min(rate.burst),
        };
        let last = if mine { self.wanted.min(most) } else { 0 };
        let first = lead + (charge - held);
        if first > most_debt {
            let over = first - most_debt;
            if held == 0 {
                (self.holds, self.wanted) = (false, if lapsed { last / 2 } else { last });
                return Outcome::NonConforming { retry_after: over };
            }
            // What is missing shrinks until the piece begins to lapse, stands still, and shrinks again.
            let retry_after = if over <= low - now { over } else { over + held };
            return Outcome::NonConforming { retry_after };
        }
        let more = (2 * last + cost).min(most);
        self.wanted = if lapsed && first > most_debt / 2 { last / 2 } else { more };
        let mut ahead = self.wanted;
        while ahead * t > (most_debt - first) / 2 {
            ahead /= 2;
        }
        if ahead < cost {
            ahead = 0;
        }
        (self.of, self.holds) = (Some(cell), ahead != 0);
        (self.low, self.high) = (now + first, now + first + ahead * t);
        self.tats[cell] = self.high;
        Outcome::Conforming
    }

    fn give_back(&mut self, cell: usize, now: u64) -> u64 {
        let (low, held) = (self.low_at(cell, now), self.held(cell, now));
        self.holds = false;
        if held == 0 || self.tats[cell] != self.high {
            return 0;
        }
        self.tats[cell] = low;
        held
    }
}

/// Two cells, two limits of one resolution, plain callers beside the lease.
#[test]
fn a_lease_takes_holds_and_gives_back_what_its_text_says() {
    let rates = |t, burst, other| [Rate { t, burst }, Rate { t, burst: other }];
    let mut seen = [0u64; 6];
    for (seed, (batch, rates)) in [
        (0, rates(10, 64, 1_024)),
        (0, rates(8, 1_024, 64)),
        (1, rates(7, 12, 12)),
        (8, rates(10, 64, 8)),
        (32, rates(6, 100, 30)),
        (300, rates(4, 1_000, 40)),
        (5_000, rates(10, 1_000, 100)),
        (u32::MAX, rates(2, 8, 4)),
    ]
    .into_iter()
    .enumerate()
    {
        let mut random = Rng(0x9e37_79b9_7f4a_7c15 ^ (seed as u64) << 32);
        let cells = [Cell::new(), Cell::new()];
        let limits = rates.map(Rate::limit);
        let mut lease = Lease::with_batch(batch);
        let mut model = Model { batch: batch.into(), ..Model::default() };
        let mut now = 1 << 40;
        for step in 0..60_000 {
            let what = || format!("batch {batch}, step {step} at {now}");
            let cell = usize::from(random.below(12) == 0);
            let at = usize::from(random.below(6) == 0);
            let (rate, limit) = (rates[at], &limits[at]);
            let cost = match random.below(12) {
                0 => rate.burst,
                1 => 1 + random.below(rate.burst + 1),
                n => 1 + n / 6,
            };
            match random.below(16) {
                0 => {
                    assert_eq!(
                        lease.give_back(&cells[cell], limit, now),
                        model.give_back(cell, now),
                        "{}",
                        what()
                    );
                }
                1 | 2 => {
                    let lead = model.tats[cell].saturating_sub(now);
                    if lead + cost * rate.t <= rate.burst * rate.t {
                        model.tats[cell] = now + lead + cost * rate.t;
                    }
                    let _ = cells[cell].check(limit, now, cost);
                }
                _ => {
                    let outcome = lease.check(&cells[cell], limit, now, cost);
                    assert_eq!(outcome, model.check(cell, rate, now, cost), "{}", what());
                    seen[match outcome {
                        Outcome::Conforming => usize::from(model.holds),
                        Outcome::NonConforming { .. } => 2 + usize::from(model.holds),
                        _ => 4,
                    }] += 1;
                }
            }
            for (i, cell) in cells.iter().enumerate() {
                assert_eq!(cell.word(), model.tats[i], "cell {i}, {}", what());
                let held = model.held(i, now);
                assert_eq!(lease.held(cell, limit, now), held / rate.t, "cell {i}, {}", what());
                seen[5] += u64::from(held != 0);
            }
            now += match random.below(16) {
                0..8 => 0,
                8..11 => random.below(rate.t),
                11..14 => rate.t * (1 + random.below(3)),
                14 => random.below(rate.t * rate.burst / 2 + 1),
                _ => random.below(2 * rate.t * rate.burst),
            };
        }
    }
    assert!(seen.iter().all(|&n| n > 500), "not all came up: {seen:?}");
}

/// The cell is deep in the debt of a wider limit, and would say no; what the lease holds was paid before.
#[test]
fn a_look_conforms_while_something_is_held() {
    let [wide, narrow] = [1_000, 64].map(|burst| Rate { t: 10, burst }.limit());
    let (cell, mut lease, now) = (Cell::new(), Lease::with_batch(8), 1 << 40);
    while lease.held(&cell, &narrow, now) == 0 {
        assert!(lease.check(&cell, &narrow, now, 1).passes());
    }
    assert!(cell.check(&wide, now, 500).passes());
    assert!(!cell.check(&narrow, now, 0).passes());
    assert!(lease.check(&cell, &narrow, now, 0).passes());
}

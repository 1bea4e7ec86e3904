//! Leases: the bound, what a hoarder can reach, refusals, exact retry times, clocks that step and wrap. lease_policy.rs
//! compares what a lease takes, holds and gives back at each step with a model.
use proptest::prelude::*;
use tatcell::{Cell, Change, ExclusiveCell, Lease, Limit, LimitSpec, Outcome};

/// Replays admitted requests in order of time on a fresh cell: all conform iff every window is within its bound.
fn within_the_limit(limit: &Limit, mut admitted: Vec<(u64, u32)>) -> Result<(), String> {
    admitted.sort_by_key(|a| a.0);
    let mut oracle = ExclusiveCell::new();
    for (i, &(now, cost)) in admitted.iter().enumerate() {
        if !oracle.check(limit, now, cost.into()).passes() {
            return Err(format!(
                "request {i} of {} at {now}, cost {cost}, is above the limit",
                admitted.len()
            ));
        }
    }
    Ok(())
}

/// Passes requests of cost 1 at one instant until one is refused; at most `most`.
fn spend(lease: &mut Lease, cell: &Cell, limit: &Limit, now: u64, most: u64) -> u64 {
    (0..most).take_while(|_| lease.check(cell, limit, now, 1).passes()).count() as u64
}

/// Spends one by one until the lease holds at least `units` ahead.
fn fill(lease: &mut Lease, cell: &Cell, limit: &Limit, now: u64, units: u64) -> u64 {
    let mut spent = 0;
    while lease.held(cell, limit, now) < units {
        assert!(lease.check(cell, limit, now, 1).passes());
        spent += 1;
    }
    spent
}

/// N owners take what they can at 0 and wait `idle` ticks; then everybody spends what passes, at once and for
/// `window` ticks. Gives the units admitted in that window.
fn hoard(limit: &Limit, cell: &Cell, leases: &mut [Lease], idle: u64, window: u64) -> u64 {
    for lease in leases.iter_mut() {
        // Warm up to full batches, then hold one.
        spend(lease, cell, limit, 0, 1 << 20);
    }
    let calm = 1_000_000;
    for lease in leases.iter_mut() {
        let _ = lease.check(cell, limit, calm, 1);
    }
    let start = calm + idle;
    let mut admitted = 0;
    for lease in leases.iter_mut() {
        admitted += spend(lease, cell, limit, start, 1 << 20);
    }
    for now in start + 1..=start + window {
        for lease in leases.iter_mut() {
            admitted += spend(lease, cell, limit, now, 1 << 20);
        }
    }
    admitted
}

#[test]
fn hoarding_leases_reach_the_bound_of_the_cell_and_no_unit_more() {
    for (n, t, burst, batch) in
        [(1, 10, 64, 32), (4, 10, 64, 8), (8, 3, 100, 100), (2, 1, 1000, 0), (3, 7, 5, 1)]
    {
        let limit = Limit::new(1, t, burst).unwrap();
        for idle in [burst * t, burst * t / 2 + n as u64 * t, 10 * burst * t, batch as u64 * t / 2] {
            for window in [0, 1, t, 10 * t, burst * t] {
                let cell = Cell::new();
                let mut leases: Vec<Lease> = (0..n).map(|_| Lease::with_batch(batch)).collect();
                let admitted = hoard(&limit, &cell, &mut leases, idle, window);
                let bound = burst + window / t;
                assert!(
                    admitted <= bound,
                    "{admitted} > {bound}: n {n}, T {t}, idle {idle}, window {window}"
                );
                if idle >= burst * t {
                    assert_eq!(admitted, bound, "not tight: n {n}, T {t}, idle {idle}, window {window}");
                }
            }
        }
    }
}

#[test]
fn a_cost_above_the_burst_is_never_and_a_huge_one_does_not_wrap() {
    let limit = Limit::new(1, 1 << 50, 1000).unwrap();
    let (cell, mut lease) = (Cell::new(), Lease::with_batch(100));
    fill(&mut lease, &cell, &limit, 0, 7);
    for cost in [1001, 1 << 14, u32::MAX] {
        assert_eq!(lease.check(&cell, &limit, 0, cost.into()), Outcome::Never);
    }
}

#[test]
fn cost_zero_looks_and_writes_nothing_to_the_cell() {
    let limit = Limit::new(1, 100, 4).unwrap();
    let (cell, mut lease) = (Cell::new(), Lease::new());
    assert_eq!(lease.check(&cell, &limit, 7, 0), Outcome::Conforming);
    assert_eq!(cell.word(), 0);
}

#[test]
fn options_that_are_not_plain_go_to_the_cell() {
    let shadow = LimitSpec::new(1, 100, 2).shadow().build().unwrap();
    let penalty = LimitSpec::new(1, 100, 2).penalty(1).build().unwrap();
    for limit in [shadow, penalty, Limit::UNLIMITED] {
        let (cell, twin, mut lease) = (Cell::new(), Cell::new(), Lease::with_batch(50));
        for now in [0, 0, 0, 0, 10, 90, 100, 300, 301] {
            assert_eq!(lease.check(&cell, &limit, now, 1), twin.check(&limit, now, 1));
            assert_eq!(cell.word(), twin.word());
        }
    }
}

#[test]
fn a_lease_of_another_cell_or_resolution_starts_empty() {
    let limit = Limit::new(1, 1_000_000, 100).unwrap();
    let finer = LimitSpec::new(1, 1_000_000, 100).resolution(4).build().unwrap();
    let (a, b) = (Cell::new(), Cell::new());
    for (cell, next) in [(&b, &finer), (&a, &limit)] {
        a.reset();
        let mut lease = Lease::with_batch(32);
        fill(&mut lease, &a, &finer, 0, 7);
        assert_eq!(lease.held(cell, next, 0), 0);
        a.reset();
        assert_eq!(spend(&mut lease, cell, next, 0, 1 << 20), 100);
    }
}

#[test]
fn a_piece_taken_last_is_given_back_exactly() {
    let limit = Limit::new(1, 1_000, 100).unwrap();
    let (cell, twin, mut lease) = (Cell::new(), Cell::new(), Lease::with_batch(16));
    let passed = fill(&mut lease, &cell, &limit, 50, 7);
    let held = lease.held(&cell, &limit, 50);
    for _ in 0..passed {
        assert!(twin.check(&limit, 50, 1).passes());
    }
    assert_eq!(lease.give_back(&cell, &limit, 50), held * 1_000);
    assert_eq!(cell.word(), twin.word());
    assert_eq!(lease.held(&cell, &limit, 50), 0);
    assert_eq!(lease.give_back(&cell, &limit, 50), 0);
}

#[test]
fn a_piece_below_another_is_not_given_back_but_lapses() {
    let limit = Limit::new(1, 1_000, 100).unwrap();
    let (cell, mut a, mut b) = (Cell::new(), Lease::with_batch(16), Lease::with_batch(16));
    fill(&mut a, &cell, &limit, 0, 7);
    fill(&mut b, &cell, &limit, 0, 7);
    let word = cell.word();
    assert_eq!(a.give_back(&cell, &limit, 0), 0);
    assert_eq!(cell.word(), word);
    // A cell lowered by a's piece would pass b's twice once it is as low as b's piece.
    for now in (0..40_000).step_by(1_000) {
        let (cell, mut a, mut b) = (Cell::new(), Lease::with_batch(16), Lease::with_batch(16));
        fill(&mut a, &cell, &limit, 0, 7);
        fill(&mut b, &cell, &limit, 0, 7);
        a.give_back(&cell, &limit, 0);
        let plain = (0..).take_while(|_| cell.check(&limit, now, 1).passes()).count() as u64;
        assert!(plain + spend(&mut b, &cell, &limit, now, 1 << 20) <= 100);
    }
    // 100 ticks * units later the cell is full again, lost units included.
    assert_eq!(cell.peek(&limit, 100_000, 1).remaining, 100);
}

#[test]
fn reset_admits_at_most_what_was_held_once_more() {
    let limit = Limit::new(1, 10, 64).unwrap();
    let cell = Cell::new();
    let mut leases: Vec<Lease> = (0..4).map(|_| Lease::with_batch(8)).collect();
    for lease in &mut leases {
        fill(lease, &cell, &limit, 0, 3);
    }
    let held: u64 = leases.iter().map(|l| l.held(&cell, &limit, 0)).sum();
    assert!((12..=4 * 8).contains(&held));
    cell.reset();
    let admitted: u64 = leases.iter_mut().map(|l| spend(l, &cell, &limit, 0, 1 << 20)).sum();
    assert_eq!(admitted, 64 + held);
}

#[test]
fn an_idle_lease_does_not_wake_when_the_word_wraps() {
    // 1e9 a second in ns: 2^-16 tick, so the word wraps after 2^48 ticks.
    let limit = Limit::new(1_000_000_000, 1_000_000_000, 1 << 12).unwrap();
    assert_eq!(limit.emission_interval(), (1 << 16, 16));
    for wraps in [1u64, 2, 7, 1000] {
        let (cell, mut lease) = (Cell::new(), Lease::with_batch(1 << 10));
        fill(&mut lease, &cell, &limit, 1, 1 << 10);
        cell.reset(); // as a sweep of idle cells would
        let now = 1 + (wraps << 48);
        assert_eq!(lease.held(&cell, &limit, now), 0);
        assert_eq!(spend(&mut lease, &cell, &limit, now, 1 << 20), 1 << 12);
    }
}

#[test]
fn a_clock_that_steps_back_within_the_skew_admits_nothing_more() {
    let limit = LimitSpec::new(1, 10, 64).skew(1_000).build().unwrap();
    let (cell, mut lease) = (Cell::new(), Lease::with_batch(32));
    let base = 100_000;
    let mut admitted = fill(&mut lease, &cell, &limit, base, 7);
    for back in [1, 10, 300, 999] {
        admitted += spend(&mut lease, &cell, &limit, base - back, 1 << 20);
    }
    assert_eq!(admitted + spend(&mut lease, &cell, &limit, base, 1 << 20), 64);
    // Beyond it the cell forgives, and the lease forgets.
    let (cell, mut lease) = (Cell::new(), Lease::with_batch(32));
    fill(&mut lease, &cell, &limit, base, 7);
    assert!(lease.held(&cell, &limit, base - 500) > 0);
    assert_eq!(lease.held(&cell, &limit, base - 5_000), 0);
}

/// Threads with one common clock, each with a lease; one in eight requests asks the cell itself. Every admission is
/// written down with the time its thread had read.
#[test]
#[cfg(target_has_atomic = "64")]
fn threads_with_leases_stay_within_the_limit() {
    use std::sync::atomic::{AtomicU64, Ordering};
    for (round, batch) in [(1u64, 1), (2, 8), (3, 64), (4, 0)] {
        // A preempted thread comes back with an old reading: the skew covers all of the run.
        let limit = LimitSpec::new(1, 3, 256).skew(1 << 20).build().unwrap();
        let (cell, clock) = (Cell::new(), AtomicU64::new(0));
        let mut admitted: Vec<(u64, u32)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u64)
                .map(|id| {
                    let (cell, clock, limit) = (&cell, &clock, &limit);
                    scope.spawn(move || {
                        let mut lease = Lease::with_batch(batch);
                        let mut random = round << 8 | id | 1 << 63;
                        let mut mine = Vec::new();
                        for _ in 0..50_000 {
                            random ^= random << 13;
                            random ^= random >> 7;
                            random ^= random << 17;
                            // ORDERING: Relaxed; a clock that is only counted.
                            let now = clock.fetch_add(random >> 40 & 1, Ordering::Relaxed);
                            let cost = 1 + (random >> 48) as u32 % 4;
                            let outcome = match random & 63 {
                                0 => {
                                    lease.give_back(cell, limit, now);
                                    continue;
                                }
                                1..8 => cell.check(limit, now, cost.into()),
                                _ => lease.check(cell, limit, now, cost.into()),
                            };
                            if outcome.passes() {
                                mine.push((now, cost));
                            }
                        }
                        mine
                    })
                })
                .collect();
            threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
        });
        admitted.sort_by_key(|a| a.0);
        let total: u64 = admitted.iter().map(|a| a.1 as u64).sum();
        let ticks = admitted.last().unwrap().0;
        assert!(total <= 256 + ticks / 3, "{total} in {ticks} ticks");
        println!("batch {batch}: {total} of at most {}", 256 + ticks / 3);
        within_the_limit(&limit, admitted).unwrap();
    }
}

/// One step of the property: who asks, after how many ticks, for how much.
fn steps() -> impl Strategy<Value = Vec<(u8, u16, u8, u8)>> {
    // (who, ticks since the last step, cost, what): what 0 gives back, 1 asks the cell itself, else checks the lease.
    prop::collection::vec((0u8..4, prop_oneof![Just(0u16), 0u16..40, 0u16..2000], 1u8..9, 0u8..12), 1..400)
}

#[derive(Debug, Clone)]
struct Setup {
    units: u64,
    period: u64,
    burst: u64,
    batch: u32,
    shift: Option<i8>,
}

fn setups() -> impl Strategy<Value = Setup> {
    (1u64..5, 1u64..60, 1u64..120, 0u32..40, prop_oneof![Just(None), (-3i8..20).prop_map(Some)])
        .prop_map(|(units, period, burst, batch, shift)| Setup { units, period, burst, batch, shift })
}

fn build(s: &Setup) -> Option<Limit> {
    let mut spec = LimitSpec::new(s.units, s.period, s.burst);
    if let Some(shift) = s.shift {
        spec = spec.resolution(shift);
    }
    spec.build().ok()
}

/// Runs the steps; gives the lease states, the admitted requests and the last outcome.
fn run(limit: &Limit, batch: u32, steps: &[(u8, u16, u8, u8)]) -> Result<Vec<(u64, u32)>, TestCaseError> {
    let cell = Cell::new();
    let mut leases: Vec<Lease> = (0..4).map(|_| Lease::with_batch(batch)).collect();
    let mut now = 12_345;
    let mut admitted = Vec::new();
    for &(who, ticks, cost, what) in steps {
        now += ticks as u64;
        let cost = cost as u32;
        let outcome = match what {
            0 => {
                leases[who as usize].give_back(&cell, limit, now);
                continue;
            }
            1 => cell.check(limit, now, cost.into()),
            _ => leases[who as usize].check(&cell, limit, now, cost.into()),
        };
        match outcome {
            Outcome::Conforming => admitted.push((now, cost)),
            Outcome::NonConforming { retry_after } => {
                prop_assert!(retry_after > 0);
                // Not refused while the cell still has the units.
                prop_assert!(!cell.peek(limit, now, cost.into()).passes());
            }
            Outcome::Never => prop_assert!(cost as u64 > limit.burst()),
            Outcome::Contended => prop_assert!(false, "contended alone"),
        }
    }
    Ok(admitted)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_schedule_of_leases_and_plain_callers_exceeds_the_limit(setup in setups(), steps in steps()) {
        let Some(limit) = build(&setup) else { return Ok(()) };
        let admitted = run(&limit, setup.batch, &steps)?;
        within_the_limit(&limit, admitted).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn a_refused_request_passes_exactly_at_its_retry_time(setup in setups(), steps in steps(), cost in 1u32..9) {
        let Some(limit) = build(&setup) else { return Ok(()) };
        // The same history three times: asked, one tick early, on time.
        let mut retry = 0;
        for ask in 0..3 {
            let cell = Cell::new();
            let mut leases: Vec<Lease> = (0..4).map(|_| Lease::with_batch(setup.batch)).collect();
            let mut now = 12_345;
            for &(who, ticks, cost, _) in &steps {
                now += ticks as u64;
                let _ = leases[who as usize].check(&cell, &limit, now, (cost as u32).into());
            }
            let when = now + match ask { 0 => 0, 1 => retry - 1, _ => retry };
            match (ask, leases[0].check(&cell, &limit, when, cost.into())) {
                (0, Outcome::NonConforming { retry_after }) => retry = retry_after,
                (0, _) => return Ok(()),
                (1, outcome) => prop_assert!(!outcome.passes(), "passed a tick early"),
                (_, outcome) => prop_assert!(outcome.passes(), "refused on time"),
            }
        }
    }
}

/// Given back first, units that a lease took stay used through a change as those of the cell do, and no more. Under a
/// limit that counts a lease takes nothing ahead, so there is nothing to give back.
#[test]
fn a_change_keeps_what_a_lease_spent_and_no_more() {
    let gcra = |units| LimitSpec::new(units, 3_600_000, units);
    let quota = |units| LimitSpec::fixed_window(units, 3_600_000);
    for [old, new] in [[gcra(60), gcra(600)], [gcra(600), gcra(100)], [quota(60), quota(600)]] {
        let [old, new] = [old, new].map(|spec| spec.build().unwrap());
        let (cell, mut lease) = (Cell::new(), Lease::with_batch(8));
        assert_eq!((0..45).filter(|_| lease.check(&cell, &old, 5, 1).passes()).count(), 45);
        let _ = lease.give_back(&cell, &old, 5);
        assert_eq!(cell.change(&old, &new, 5, Change::KeepUnits), Ok(true));
        let left = (0..1_000).filter(|_| lease.check(&cell, &new, 5, 1).passes()).count();
        assert_eq!(left as u64, new.burst() - 45);
    }
}

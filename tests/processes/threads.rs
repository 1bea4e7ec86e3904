//! Many threads on one key: together they are admitted what a single thread would be.
#![cfg(target_has_atomic = "64")]

use crate::common::{memory, size_from, Rng};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Barrier;
use tatcell::{
    Burst, Cell, Cell32, Counters, FullPolicy, LimitSpec, NextBurst, Outcome, Permit, Request, Table,
    TableLimit, TableOptions, Tracking,
};

const THREADS: u64 = 4;

fn rounds() -> u64 {
    size_from("TATCELL_ROUNDS", 20_000)
}

/// Runs `each` for every (thread, round); all threads start a round together, and `after` runs between rounds.
fn in_rounds(rounds: u64, each: impl Fn(u64, u64) + Sync, mut after: impl FnMut(u64)) {
    // A spinning rendezvous that yields, so that fewer processors than threads do as well.
    let (arrived, round_open) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (each, arrived, round_open) = (&each, &arrived, &round_open);
            scope.spawn(move || {
                for round in 1..=rounds {
                    wait(|| round_open.load(SeqCst) >= round);
                    if round_open.load(SeqCst) == u64::MAX {
                        return;
                    }
                    each(thread, round);
                    arrived.fetch_add(1, SeqCst);
                }
            });
        }
        let _stop = Stop(&round_open);
        for round in 1..=rounds {
            round_open.store(round, SeqCst);
            wait(|| arrived.load(SeqCst) == THREADS * round);
            after(round);
        }
    });
}

/// Sends the threads home when a round fails, or the test would wait for them.
struct Stop<'a>(&'a AtomicU64);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(u64::MAX, SeqCst);
        }
    }
}

fn wait(ready: impl Fn() -> bool) {
    let mut spins = 0;
    while !ready() {
        spins += 1;
        if spins > 100 {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Asks until there is a verdict; `contended` charged nothing.
fn verdict(mut ask: impl FnMut() -> Outcome) -> bool {
    loop {
        match ask() {
            Outcome::Conforming => return true,
            Outcome::Contended => std::hint::spin_loop(),
            _ => return false,
        }
    }
}

/// Asks for so many units of a key by bursts, again for those that were contended; gives how many passed.
fn burst(table: &Table<'_>, limit: &TableLimit, now: u64, key: u64, units: usize) -> u64 {
    let (mut left, mut passed) = (units, 0);
    while left > 0 {
        let mut counters = Counters::default();
        let hashes = &[key; 64][..left];
        let pass = Burst::new(limit, now, hashes).check(table, Some(&mut counters), NextBurst::NONE).unwrap();
        passed += u64::from(pass.count_ones());
        left = counters.contended as usize;
    }
    passed
}

#[test]
fn threads_at_one_instant_admit_exactly_the_burst() {
    const B: u64 = 7;
    let spec = LimitSpec::new(1, 1 << 12, B);
    let lines = memory(6);
    let options = TableOptions::new(spec).caller_hash().policy(FullPolicy::Deny);
    let table = Table::init(&lines, &options).unwrap();
    let (wide, narrow, keyed) = (spec.build().unwrap(), spec.build32().unwrap(), table.limit(&spec).unwrap());
    let (cell, cell32) = (Cell::new(), Cell32::new());
    let admitted = [const { AtomicU64::new(0) }; 6];
    let now = |round: u64| round * (B << 13);
    let count = |which: usize, passes: bool| admitted[which].fetch_add(passes as u64, Relaxed);
    let fresh = |round: u64, from: u64| (1 << 63) | (round % 1_000 + from);
    in_rounds(
        rounds(),
        |_, round| {
            let now = now(round);
            for _ in 0..4 {
                count(0, verdict(|| cell.check(&wide, now, 1)));
                count(1, verdict(|| cell32.check(&narrow, now, 1)));
                // A key that has its slot, and one that is new in every round.
                count(2, verdict(|| table.check_hash(&keyed, now, 5, 1).unwrap()));
                count(3, verdict(|| table.check_hash(&keyed, now, fresh(round, 1), 1).unwrap()));
            }
            for (which, key) in [(4, 6), (5, fresh(round, 2_000))] {
                admitted[which].fetch_add(burst(&table, &keyed, now, key, 4), Relaxed);
            }
        },
        |round| {
            let forms = ["Cell", "Cell32", "Table", "Table, new key", "Burst", "Burst, new key"];
            for (form, n) in forms.iter().zip(&admitted) {
                assert_eq!(n.swap(0, Relaxed), B, "{form}, round {round}");
            }
        },
    );
}

/// All threads ask as fast as they can, at one instant, until each is refused. Contended is asked again.
fn drain(rounds: u64, burst: u64, form: &str, ask: impl Fn(u64) -> Outcome + Sync) {
    drain_units(rounds, burst, form, |now| u64::from(verdict(|| ask(now))));
}

/// The same for a form that asks for some units at once: it gives how many passed.
fn drain_units(rounds: u64, burst: u64, form: &str, ask: impl Fn(u64) -> u64 + Sync) {
    let admitted = AtomicU64::new(0);
    in_rounds(
        rounds,
        |_, round| {
            let mut passed = 0;
            loop {
                match ask(round << 40) {
                    0 => break,
                    units => passed += units,
                }
            }
            admitted.fetch_add(passed, Relaxed);
        },
        |round| assert_eq!(admitted.swap(0, Relaxed), burst, "{form}, round {round}"),
    );
}

#[test]
fn threads_that_drain_a_large_burst_admit_exactly_it() {
    // Long enough for all threads to be at it, whenever they wake up.
    const B: u64 = 1_000_000;
    let spec = LimitSpec::new(1, 1 << 10, B).resolution(0);
    let rounds = rounds() / 4_000;
    let (wide, cell) = (spec.build().unwrap(), Cell::new());
    drain(rounds, B, "Cell, short answer", |now| cell.check(&wide, now, 1));
    cell.reset();
    drain(rounds, B, "Cell, full answer", |now| cell.check_ex(&wide, now, 1, 0).outcome());
    let lines = memory(4);
    let table = Table::init(&lines, &TableOptions::new(spec).caller_hash()).unwrap();
    let keyed = table.limit(&spec).unwrap();
    // A span of the table's word is 2^43 ticks: rounds are 2^40 apart.
    drain(rounds, B, "Table", |now| table.check_hash(&keyed, now, 7, 1).unwrap());
    let request = |now| Request { limit: &keyed, now, cost: 1, room: 0 };
    drain(rounds, B, "Table, full", |now| table.check_ex(&request(now), 8, None).unwrap().outcome());
    // Threads that burst beside threads that ask for one unit after the other.
    let turn = AtomicU64::new(0);
    drain_units(rounds, B, "Table, bursts", |now| match turn.fetch_add(1, Relaxed) % 4 {
        0 => u64::from(verdict(|| table.check_hash(&keyed, now, 9, 1).unwrap())),
        n => burst(&table, &keyed, now, 9, 8 * n as usize),
    });
    let narrow = LimitSpec::new(1, 16, B).resolution(0).build32().unwrap();
    let cell = Cell32::new();
    // Rounds are 2^28 ticks apart in the 32-bit word.
    drain(rounds, B, "Cell32", |now| cell.check(&narrow, now >> 12, 1));
}

#[test]
fn every_admission_of_every_thread_is_in_the_word() {
    // One instant, and a burst that nobody reaches: the debt is the sum of what passed.
    const B: u64 = 1 << 28;
    let spec = LimitSpec::new(1, 1 << 10, B).resolution(0);
    let lines = memory(4);
    let table = Table::init(&lines, &TableOptions::new(spec).caller_hash().tag_bits(12)).unwrap();
    let (wide, keyed, now) = (spec.build().unwrap(), table.limit(&spec).unwrap(), 1 << 40);
    let (cell, admitted) = (Cell::new(), [const { AtomicU64::new(0) }; 3]);
    // Tens of milliseconds a thread, so that they meet whenever they wake up.
    let each = rounds() * 400;
    in_rounds(
        1,
        |_, _| {
            let mut passed = [0; 3];
            for _ in 0..each {
                passed[0] += cell.check(&wide, now, 1).passes() as u64;
            }
            for _ in 0..each {
                passed[1] += table.check_hash(&keyed, now, 3, 1).unwrap().passes() as u64;
            }
            for _ in 0..each / 9 {
                let pass = Burst::new(&keyed, now, &[4; 8]).check(&table, None, NextBurst::NONE).unwrap();
                passed[2] += u64::from(pass.count_ones());
                passed[2] += table.check_hash(&keyed, now, 4, 1).unwrap().passes() as u64;
            }
            for (sum, n) in admitted.iter().zip(passed) {
                sum.fetch_add(n, Relaxed);
            }
        },
        |_| (),
    );
    let looks = [cell.peek(&wide, now, 0), table.peek(&keyed, now, 3, 0).unwrap()];
    let looks = [looks[0], looks[1], table.peek(&keyed, now, 4, 0).unwrap()];
    let debt = looks.map(|d| d.reset_after);
    for (form, (debt, sum)) in ["Cell", "Table", "Table, bursts"].iter().zip(debt.iter().zip(&admitted)) {
        let n = sum.load(Relaxed);
        assert_eq!(*debt, n << 10, "{form}: {n} admitted");
        assert!(n > THREADS * each * 9 / 10, "{form}: contended too often: {n}");
    }
}

#[test]
fn threads_with_their_own_clocks_stay_below_the_envelope() {
    const B: u64 = 5;
    const T: u64 = 1 << 11;
    let spec = LimitSpec::new(1, T, B);
    let lines = memory(4);
    // A thread that is stopped after reading its clock is behind by all the others do meanwhile: the skew covers it.
    let table = Table::init(&lines, &TableOptions::new(spec).caller_hash().skew(1 << 36)).unwrap();
    let (wide, keyed) = (spec.build().unwrap(), table.limit(&spec).unwrap());
    let cell = Cell::new();
    let (clock, admitted) = (AtomicU64::new(1 << 20), [const { AtomicU64::new(0) }; 3]);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cell, clock, admitted, table) = (&cell, &clock, &admitted, &table);
            scope.spawn(move || {
                let mut rng = Rng(thread);
                for _ in 0..rounds() * 4 {
                    let now = clock.fetch_add(rng.below(T / 3), Relaxed) - rng.below(T / 2);
                    admitted[0].fetch_add(verdict(|| cell.check(&wide, now, 1)) as u64, Relaxed);
                    admitted[1]
                        .fetch_add(verdict(|| table.check_hash(&keyed, now, 9, 1).unwrap()) as u64, Relaxed);
                    admitted[2].fetch_add(burst(table, &keyed, now, 10, 2), Relaxed);
                }
            });
        }
    });
    let elapsed = clock.load(Relaxed) - (1 << 20) + T;
    for (form, n) in ["Cell", "Table", "Table, bursts"].iter().zip(&admitted) {
        let n = n.load(Relaxed);
        assert!(n <= B + elapsed / T, "{form}: {n} above {}", B + elapsed / T);
        assert!(n > elapsed / T / 2, "{form}: {n} of {elapsed} ticks is too few to show anything");
    }
}

#[test]
fn refunds_and_charges_conserve_what_they_move() {
    // One instant, a huge burst: what is left at the end is what was charged and not given back, to the unit.
    const B: u64 = 1 << 26;
    let spec = LimitSpec::new(1, 1 << 10, B).max_debt(1);
    let lines = memory(4);
    let options = TableOptions::new(spec).caller_hash().tag_bits(12);
    let table = Table::init(&lines, &options).unwrap();
    let (wide, keyed) = (spec.build().unwrap(), table.limit(&spec).unwrap());
    let (t_cell, t_table) = (wide.emission_interval().0, keyed.emission_interval().0);
    let (cell, now, hash) = (Cell::new(), 1 << 40, 3);
    // The permit of an insert leaves out the claim lifetime: insert first.
    assert!(table.check_hash(&keyed, now, hash, 1).unwrap().passes());
    let (in_cell, in_table) = (AtomicU64::new(0), AtomicU64::new(t_table));
    let barrier = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cell, table, in_cell, in_table, barrier) = (&cell, &table, &in_cell, &in_table, &barrier);
            scope.spawn(move || {
                let mut rng = Rng(thread);
                let mut permits: Vec<(Permit, Permit)> = Vec::new();
                barrier.wait();
                for _ in 0..rounds() {
                    if rng.one_in(4) {
                        let passed = burst(table, &keyed, now, hash, 3);
                        in_table.fetch_add(passed * t_table, Relaxed);
                    }
                    let cost = rng.within(1, 9) as u32;
                    if rng.one_in(2) || permits.is_empty() {
                        let (a, b) = if rng.one_in(2) {
                            (cell.check_ex(&wide, now, cost.into(), 0), {
                                let request = Request { limit: &keyed, now, cost: cost.into(), room: 0 };
                                table.check_ex(&request, hash, None).unwrap()
                            })
                        } else {
                            (
                                cell.charge(&wide, now, cost.into()),
                                table.charge(&keyed, now, hash, cost.into(), None).unwrap(),
                            )
                        };
                        for (d, t, sum) in [(&a, t_cell, in_cell), (&b, t_table, in_table)] {
                            // Contended charged nothing.
                            assert_eq!(d.permit.stored, if d.passes() { cost as u64 * t } else { 0 });
                            sum.fetch_add(d.permit.stored, Relaxed);
                        }
                        permits.push((a.permit, b.permit));
                    } else {
                        let (a, b) = permits.swap_remove(rng.below(permits.len() as u64) as usize);
                        let mut back = None;
                        while back.is_none() {
                            back = cell.refund(&wide, now, &a);
                        }
                        in_cell.fetch_sub(a.stored, Relaxed);
                        back = None;
                        while back.is_none() {
                            back = table.refund(&keyed, now, hash, &b).unwrap();
                        }
                        in_table.fetch_sub(b.stored, Relaxed);
                    }
                }
            });
        }
    });
    let tick = |t: u64| t >> 10;
    let (cell, table) = (cell.peek(&wide, now, 0), table.peek(&keyed, now, hash, 0).unwrap());
    assert_eq!(cell.reset_after, in_cell.load(Relaxed).div_ceil(tick(t_cell)));
    assert_eq!(table.reset_after, in_table.load(Relaxed).div_ceil(tick(t_table)));
}

#[test]
fn threads_in_a_full_set_admit_no_more_than_its_slots_under_inherit() {
    // Forty keys on sixteen slots at one instant: sixteen bursts, whoever takes over whom.
    const B: u64 = 3;
    let spec = LimitSpec::new(1, 1 << 12, B);
    let lines = memory(4);
    let options = TableOptions::new(spec).caller_hash().policy(FullPolicy::Inherit);
    let table = Table::init(&lines, &options).unwrap();
    let limit = table.limit(&spec).unwrap();
    let (admitted, contended) = (AtomicU64::new(0), AtomicU64::new(0));
    in_rounds(
        rounds() / 10,
        |thread, round| {
            let mut rng = Rng(round << 8 | thread);
            let mut counters = Counters::default();
            for _ in 0..40 {
                let mut hash = || rng.below(2) << 63 | rng.within(1, 40);
                let hashes = [hash(), hash(), hash()];
                if hashes[0] % 2 == 0 {
                    let burst = Burst::new(&limit, round << 20, &hashes);
                    burst.check(&table, Some(&mut counters), NextBurst::NONE).unwrap();
                    continue;
                }
                let hash = hashes[0];
                let request = Request { limit: &limit, now: round << 20, cost: 1, room: 0 };
                let d = table.check_ex(&request, hash, Some(&mut counters)).unwrap();
                assert_ne!(d.tracking, Tracking::Untracked);
            }
            admitted.fetch_add(counters.conforming, Relaxed);
            contended.fetch_add(counters.contended, Relaxed);
        },
        |round| {
            let n = admitted.swap(0, Relaxed);
            assert!(n <= 16 * B, "round {round}: {n}");
            assert!(table.stats(round << 20).live <= 16);
        },
    );
    println!("contended: {}", contended.load(Relaxed));
}

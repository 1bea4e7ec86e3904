//! The long run: `cargo test --release --features std --test long --test kill -- --ignored --nocapture`.
//!
//! Sizes by environment: TATCELL_DECISIONS here (1e9 of each test), TATCELL_KILLS in `kill` (1e5), TATCELL_RACES in
//! `race`. Seeds are numbers from 0; one that fails is printed, and TATCELL_SEED=it runs that one alone.

mod common;
#[path = "long/lives.rs"]
mod lives;

use common::oracle::Oracle;
use common::{memory, seed_from_environment, size_from, Rng, Seed};
use tatcell::{Cell, Cell32, LimitSpec, Outcome, Request, Table, TableOptions};

/// One random limit, `steps` decisions in three forms beside the exact bucket.
fn block(seed: u64, steps: u64) {
    let _shown = Seed(seed);
    let mut rng = Rng(seed);
    let s = rng.within(0, 6) as i8;
    let units = 1u64 << rng.within(0, s as u64);
    let (period, burst) = (rng.within(1 << 11, 1 << 16) * units, rng.within(1, 64));
    let spec = LimitSpec::new(units, period, burst).resolution(s);
    let lines = memory(4);
    let table = Table::init(&lines, &TableOptions::new(spec).caller_hash().resolution(s)).unwrap();
    let (wide, narrow, keyed) = (spec.build().unwrap(), spec.build32(), table.limit(&spec).unwrap());
    let (cell, cell32, hash) = (Cell::new(), Cell32::new(), rng.next());
    let mut oracle = Oracle::exact(units, period, burst);
    let unit = period / units;
    let (mut now, mut wrapped) = (rng.next() >> 20, false);
    for _ in 0..steps {
        // The 32-bit word is idle for less than its span.
        now += match rng.below(16) {
            0 => rng.below(unit * burst + 2),
            1..=4 => rng.below(unit + 2),
            _ => 0,
        };
        let cost = match rng.below(16) {
            0 => rng.next() as u32,
            1 => burst as u32 + 1,
            2 => 0,
            3..=5 => rng.within(1, burst) as u32,
            _ => 1,
        };
        if wrapped && oracle.lead(now as u128) == 0 {
            cell32.reset();
            wrapped = false;
        }
        let expected = oracle.check(now as u128, cost, 0);
        let outcome = match expected.verdict {
            0 => Outcome::Conforming,
            1 => Outcome::NonConforming { retry_after: expected.retry_after },
            _ => Outcome::Never,
        };
        assert_eq!(cell.check(&wide, now, cost.into()), outcome, "{spec:?} {cost} at {now}");
        // A TAT of exactly 2^32 is stored as 1, one q-unit more: that word sits out until it has drained.
        let tat = (oracle.tat << s) / units as u128;
        if tat as u32 == 0 && oracle.lead(now as u128) > 0 {
            wrapped = true;
        }
        if let (Ok(narrow), false) = (&narrow, wrapped) {
            assert_eq!(cell32.check(narrow, now, cost.into()), outcome, "{spec:?} {cost} at {now}");
        }
        let d =
            table.check_ex(&Request { limit: &keyed, now, cost: cost.into(), room: 0 }, hash, None).unwrap();
        let answer = (d.verdict as i32, d.remaining, d.retry_after, d.next_unit, d.reset_after);
        let e = expected;
        assert_eq!(answer, (e.verdict, e.remaining, e.retry_after, e.next_unit, e.reset_after), "{spec:?}");
    }
}

/// Runs this many blocks on all processors, or the one that TATCELL_SEED names; sums what they return.
fn blocks<const N: usize>(count: u64, block: impl Fn(u64) -> [u64; N] + Sync) -> [u64; N] {
    let add = |a: [u64; N], b: [u64; N]| core::array::from_fn(|i| a[i] + b[i]);
    if let Some(seed) = seed_from_environment() {
        return block(seed);
    }
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    std::thread::scope(|scope| {
        let run = |thread| (thread..count).step_by(threads as usize).map(&block).fold([0; N], add);
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        all.into_iter().map(|thread| thread.join().expect("its panic says why")).fold([0; N], add)
    })
}

#[test]
#[ignore = "minutes: 1e9 decisions"]
fn a_billion_decisions_equal_the_exact_bucket() {
    // Three forms a step.
    let count = size_from("TATCELL_DECISIONS", 1_000_000_000).div_ceil(3 * 10_000);
    let [done] = blocks(count, |seed| {
        block(seed, 10_000);
        [30_000]
    });
    println!("{done} decisions");
}

#[test]
#[ignore = "minutes: 1e9 decisions"]
fn a_billion_decisions_of_keys_that_live_for_days_equal_the_exact_bucket() {
    let count = size_from("TATCELL_DECISIONS", 1_000_000_000).div_ceil(lives::FORMS * 20_000);
    let [passed, refused] = blocks(count, |seed| lives::life(seed, 20_000));
    println!(
        "{} decisions in {count} lives, of which passed: {}",
        (passed + refused) * lives::FORMS,
        passed * lives::FORMS
    );
    assert!(passed > count * 1_000 && refused > count * 1_000 || count < 2, "the streams do not test");
}

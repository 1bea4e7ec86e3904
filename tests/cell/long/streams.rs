//! Streams of requests for one key from limit to limit: two cells and a table against the exact bucket with an exact
//! rate.

use crate::common::oracle::Oracle;
use crate::common::{memory, Rng, Seed};
use tatcell::{Cell, Cell32, LimitSpec, Outcome, Request, Table, TableOptions};

/// What is counted: decisions of each form that were compared.
pub const FORMS: [&str; 3] = ["Cell", "Cell32", "Table"];

/// One random limit, `steps` decisions in three forms beside the exact bucket. How many of each were compared.
pub fn stream(seed: u64, steps: u64) -> [u64; 3] {
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
    let mut compared = [0; 3];
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
            compared[1] += 1;
        }
        let d =
            table.check_ex(&Request { limit: &keyed, now, cost: cost.into(), room: 0 }, hash, None).unwrap();
        let answer = (d.verdict as i32, d.remaining, d.retry_after, d.next_unit, d.reset_after);
        let e = expected;
        assert_eq!(answer, (e.verdict, e.remaining, e.retry_after, e.next_unit, e.reset_after), "{spec:?}");
        compared[0] += 1;
        compared[2] += 1;
    }
    compared
}

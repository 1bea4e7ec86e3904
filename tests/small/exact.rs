//! Small cells and tables against exact buckets in whole ticks; the oracle uses nothing of the library.

use crate::common::{cases, Rng};
use tatcell::{
    Cell, Cell32, ExclusiveCell, FullPolicy, Outcome, SmallLimit, SmallLimit32, SmallSlot, SmallTable,
};

/// A bucket of whole ticks. Its TAT never falls.
#[derive(Clone, Copy)]
struct Bucket {
    t: u64,
    burst: u64,
    tat: u64,
}

impl Bucket {
    /// What is missing, in ticks; None = the cost is above the burst.
    fn wait(&self, now: u64, cost: u32) -> Option<u64> {
        let next = self.tat.saturating_sub(now) + u64::from(cost) * self.t;
        (u64::from(cost) <= self.burst).then(|| next.saturating_sub(self.burst * self.t))
    }

    fn charge(&mut self, now: u64, cost: u32) {
        if cost > 0 {
            self.tat = self.tat.max(now) + u64::from(cost) * self.t;
        }
    }

    fn check(&mut self, now: u64, cost: u32) -> Outcome {
        match self.wait(now, cost) {
            None => Outcome::Never,
            Some(0) => {
                self.charge(now, cost);
                Outcome::Conforming
            }
            Some(retry_after) => Outcome::NonConforming { retry_after },
        }
    }

    fn reserve(&mut self, now: u64, cost: u32, delay: u64) -> Option<u64> {
        let wait = self.wait(now, cost).filter(|wait| *wait <= delay)?;
        self.charge(now, cost);
        Some(wait)
    }
}

/// A limit whose interval is whole ticks, and short enough for a trace of 2^20 ticks not to wrap.
fn bucket(rng: &mut Rng) -> Bucket {
    let (t, burst) = (rng.within(1, 1 << 10), rng.within(1, 40));
    Bucket { t, burst, tat: 0 }
}

/// The next reading: forward by up to a burst, or back to no older than a burst before the latest.
fn step(rng: &mut Rng, b: &Bucket, now: u64, latest: u64) -> u64 {
    let all = b.t * b.burst;
    match rng.below(5) {
        0 => now.saturating_sub(rng.below(all + 1)).max(latest.saturating_sub(all)),
        1 | 2 => now + rng.below(b.t + 1),
        _ => now + rng.below(all / 4 + 2),
    }
}

fn cost(rng: &mut Rng, burst: u64) -> u32 {
    rng.pick(&[0, 1, 1, 1, 2, burst as u32, burst as u32 + 1])
}

#[test]
fn small_cells_answer_as_exact_buckets_swept_or_not() {
    cases(3_000, |rng| {
        let b = bucket(rng);
        let delay = rng.below(4) * b.t;
        let (mut plain, mut shaped) = (b, [b; 2]);
        let wide = SmallLimit::shaped(1, b.t, b.burst, delay).unwrap();
        let narrow = SmallLimit32::shaped(1, b.t, b.burst, delay).unwrap();
        let (checked, mut owned, small) = (Cell::new(), ExclusiveCell::new(), Cell32::new());
        let (reserved, short) = (Cell::new(), Cell32::new());
        let (mut now, mut latest) = (1u64 << 12, 1u64 << 12);
        for _ in 0..60 {
            now = step(rng, &b, now, latest);
            latest = latest.max(now);
            let cost = cost(rng, b.burst);
            if rng.one_in(4) {
                // What owes nothing now may owe for a clock that is behind.
                checked.idle(&wide, now);
                owned.idle(&wide, now);
                small.idle(&narrow, now as u32);
                continue;
            }
            let what = format!("1 per {}, burst {}, delay {delay}: {cost} at {now}", b.t, b.burst);
            let wanted = plain.check(now, cost);
            assert_eq!(checked.check_small(&wide, now, cost), wanted, "{what}");
            assert_eq!(owned.check_small(&wide, now, cost), wanted, "{what}, one owner");
            assert_eq!(small.check_small(&narrow, now as u32, cost), wanted, "{what}, 32 bits");
            let wanted = plain.check(now, 1);
            assert_eq!(checked.check_unit(&wide, now), wanted, "{what}, a unit");
            assert_eq!(owned.check_small(&wide, now, 1), wanted, "{what}, a unit of one owner");
            assert_eq!(small.check_unit(&narrow, now as u32), wanted, "{what}, a unit in 32 bits");
            let wanted = shaped[0].reserve(now, cost, delay);
            assert_eq!(reserved.reserve_small(&wide, now, cost).ok(), wanted, "{what}, reserved");
            let wanted = shaped[1].reserve(now, cost, delay);
            let got = short.reserve_small(&narrow, now as u32, cost).ok().map(u64::from);
            assert_eq!(got, wanted, "{what}, reserved in 32 bits");
        }
    });
}

#[test]
fn small_tables_answer_as_an_exact_bucket_per_key() {
    cases(3_000, |rng| {
        let b = bucket(rng);
        let limit = SmallLimit32::new(1, b.t, b.burst).unwrap();
        let policy = rng.pick(&[FullPolicy::Admit, FullPolicy::Deny, FullPolicy::Inherit]);
        // 16 keys, so no set is full; and each has its slot from the start, so that nobody takes one that has drained
        // where a clock that is behind still counts it.
        let mut slots = [SmallSlot::EMPTY; 64];
        let sets = rng.within(1, 4) as usize;
        let mut table = SmallTable::new(&mut slots[..sets * 16], limit, policy).unwrap();
        table.seed(rng.next().to_le_bytes());
        let mut keys = [b; 16];
        let (mut now, mut latest) = (1u64 << 12, 1u64 << 12);
        for (id, key) in keys.iter_mut().enumerate() {
            let got = table.check(now as u32, &(id as u64).to_be_bytes(), 1);
            assert_eq!(got, Ok(key.check(now, 1)));
        }
        for _ in 0..100 {
            now = step(rng, &b, now, latest);
            latest = latest.max(now);
            let (id, cost) = (rng.below(16), cost(rng, b.burst));
            if rng.one_in(16) {
                table.sweep(now as u32);
            }
            let wanted = keys[id as usize].check(now, cost);
            let got = table.check(now as u32, &id.to_be_bytes(), cost);
            assert_eq!(got, Ok(wanted), "1 per {}, burst {}: {cost} of {id} at {now}", b.t, b.burst);
        }
    });
}

#[test]
fn a_small_table_spreads_its_keys_over_all_its_sets() {
    let limit = SmallLimit32::new(1, 10, 1).unwrap();
    let mut slots = [SmallSlot::EMPTY; 256];
    let mut table = SmallTable::new(&mut slots, limit, FullPolicy::Deny).unwrap();
    table.seed(*b"any seed");
    // 4 keys a set of 16 slots on the average: none is full, unless some sets are not used.
    for id in 0..64u64 {
        assert!(table.check(0, &id.to_be_bytes(), 1).unwrap().passes(), "{id}");
    }
    assert_eq!(table.full(), 0);
}

#[test]
fn a_full_set_admits_what_its_slots_hold() {
    cases(300, |rng| {
        let b = bucket(rng);
        let limit = SmallLimit32::new(1, b.t, b.burst).unwrap();
        for policy in [FullPolicy::Deny, FullPolicy::Inherit] {
            let mut slots = [SmallSlot::EMPTY; 16];
            let mut table = SmallTable::new(&mut slots, limit, policy).unwrap();
            table.seed(rng.next().to_le_bytes());
            let mut admitted = 0;
            for _ in 0..40 * b.burst {
                admitted +=
                    u64::from(table.check(1 << 12, &rng.below(40).to_be_bytes(), 1).unwrap().passes());
            }
            // Each slot at most its burst, whoever it is handed to.
            assert!(admitted <= 16 * b.burst, "{policy:?}: {admitted} of {}", 16 * b.burst);
            let late = (0..400u64).filter(|id| table.check(1 << 12, &id.to_be_bytes(), 1).unwrap().passes());
            let late = late.count() as u64;
            assert!(late + admitted <= 16 * b.burst, "{policy:?}: {late} after {admitted}");
        }
    });
}

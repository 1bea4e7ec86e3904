//! The small forms give the answers of the big ones: same words, same verdicts, same times.

use crate::common::Rng;
use tatcell::{
    Cell, Cell32, Decision, ExclusiveCell, FullPolicy, Limit, Limit32, LimitError, LimitSpec, Outcome,
    SmallLimit, SmallLimit32, SmallSlot, SmallTable, TableError,
};

fn limits<T>(rng: &mut Rng, make: impl Fn(u64, u64, u64) -> Result<T, LimitError>) -> ((u64, u64, u64), T) {
    loop {
        let asked = (rng.scaled(24).max(1), rng.scaled(34).max(1), rng.scaled(14).max(1));
        if let Ok(limit) = make(asked.0, asked.1, asked.2) {
            return (asked, limit);
        }
    }
}

#[test]
fn small_64_bit_checks_equal_the_big_ones() {
    let mut rng = Rng(0x5eed_0001);
    for round in 0..2_000 {
        let ((units, period, burst), small) = limits(&mut rng, SmallLimit::new);
        let big = Limit::new(units, period, burst).unwrap();
        let (a, b, c) = (Cell::new(), Cell::new(), &mut ExclusiveCell::new());
        let mut now = rng.next() >> rng.below(64);
        for step in 0..200 {
            let cost = rng.scaled(16) as u32;
            let what = || {
                format!(
                    "round {round} step {step}: {units} per {period}, burst {burst}, now {now}, cost {cost}"
                )
            };
            let wanted = a.check(&big, now, cost.into());
            assert_eq!(b.check_small(&small, now, cost), wanted, "{}", what());
            assert_eq!(c.check_small(&small, now, cost), wanted, "{}", what());
            assert_eq!(b.word(), a.word(), "{}", what());
            assert_eq!(c.word(), a.word(), "{}", what());
            assert_eq!(b.check_unit(&small, now), a.check(&big, now, 1), "{}", what());
            c.check_small(&small, now, 1).passes();
            now = now.wrapping_add((rng.scaled(40) * period.div_ceil(units).min(1 << 20)) >> 20);
        }
    }
}

#[test]
fn small_32_bit_checks_equal_the_big_ones_across_wraps_of_the_clock() {
    let mut rng = Rng(0x5eed_0002);
    let mut wraps = 0;
    for round in 0..2_000 {
        let ((units, period, burst), small) = limits(&mut rng, SmallLimit32::new);
        let big = LimitSpec::new(units, period, burst).build32().unwrap();
        let (a, b) = (Cell32::new(), Cell32::new());
        let mut now = u64::from(u32::MAX) - rng.scaled(24);
        for step in 0..200 {
            let cost = rng.scaled(12) as u32;
            let what = || {
                format!(
                    "round {round} step {step}: {units} per {period}, burst {burst}, now {now}, cost {cost}"
                )
            };
            assert_eq!(
                b.check_small(&small, now as u32, cost),
                a.check(&big, now, cost.into()),
                "{}",
                what()
            );
            assert_eq!(b.check_unit(&small, now as u32), a.check(&big, now, 1), "{}", what());
            assert_eq!(b.word(), a.word(), "{}", what());
            let later = now + ((rng.scaled(20) * period.div_ceil(units).min(1 << 12)) >> 8);
            wraps += u32::from(later >> 32 != now >> 32);
            now = later;
        }
    }
    assert!(wraps > 100, "only {wraps} wraps");
}

#[test]
fn small_reservations_equal_the_big_ones() {
    let mut rng = Rng(0x5eed_0003);
    for round in 0..1_000 {
        let delay = rng.scaled(20);
        let ((units, period, burst), small) = limits(&mut rng, |u, p, b| SmallLimit::shaped(u, p, b, delay));
        let ((u32s, p32, b32), small32) = limits(&mut rng, |u, p, b| SmallLimit32::shaped(u, p, b, delay));
        let big = LimitSpec::new(units, period, burst).max_delay(delay).build().unwrap();
        let big32 = LimitSpec::new(u32s, p32, b32).max_delay(delay).build32().unwrap();
        let (a, b, c, d) = (Cell::new(), Cell::new(), Cell32::new(), Cell32::new());
        let mut now = rng.scaled(40);
        for step in 0..100 {
            let cost = rng.scaled(12) as u32;
            let short = |d: Decision| match d.outcome() {
                Outcome::Conforming => Ok(d.departure.wrapping_sub(now)),
                Outcome::NonConforming { .. } => Err(Outcome::NonConforming { retry_after: 0 }),
                other => Err(other),
            };
            let what = || format!("round {round} step {step}, now {now}, cost {cost}, delay {delay}");
            assert_eq!(
                b.reserve_small(&small, now, cost),
                short(a.reserve(&big, now, cost.into())),
                "{}",
                what()
            );
            let small = d.reserve_small(&small32, now as u32, cost).map(u64::from);
            assert_eq!(small, short(c.reserve(&big32, now, cost.into())), "32 bits, {}", what());
            assert_eq!((b.word(), d.word()), (a.word(), c.word()), "{}", what());
            now += rng.scaled(16);
        }
    }
}

#[test]
fn a_swept_cell_never_reads_as_a_debt_and_a_live_one_is_left_alone() {
    const LIMIT: SmallLimit32 = match SmallLimit32::new(1, 1_000, 5) {
        Ok(limit) => limit,
        Err(_) => panic!(),
    };
    // T = 1000, H = 5000, S = 2^26, a 64th of the span. Charged at 0: TAT 5000.
    const WINDOW: u32 = 5_000 + (1 << 26);
    let charged = || {
        let cell = Cell32::new();
        assert!(cell.check_small(&LIMIT, 0, 5).passes());
        cell
    };
    let unswept = charged();
    assert!(!unswept.check_small(&LIMIT, 0u32.wrapping_sub(1), 5).passes(), "the false debt after a wrap");
    for (now, emptied) in [
        (4_999, false),
        (5_000, false),
        (5_000 + WINDOW, false),
        (5_001 + WINDOW, true),
        (3_000_000_000, true),
    ] {
        let cell = charged();
        cell.idle(&LIMIT, now);
        assert_eq!(cell.word() == 0, emptied, "at {now}");
    }
    let swept = charged();
    swept.idle(&LIMIT, LIMIT.sweep_interval());
    assert!(swept.check_small(&LIMIT, 0u32.wrapping_sub(1), 5).passes());
}

#[test]
fn options_that_a_small_limit_lacks_are_refused() {
    let soft = LimitSpec::new(1, 1_000_000, 5).soft(3).build().unwrap();
    assert_eq!(SmallLimit::from_limit(&soft), Err(LimitError::NotSmall));
    let penal = LimitSpec::new(1, 1_000, 5).penalty(1).build32().unwrap();
    assert_eq!(SmallLimit32::from_limit(&penal), Err(LimitError::NotSmall));
    assert_eq!(SmallLimit::from_limit(&Limit::UNLIMITED), Err(LimitError::NotSmall));
    assert_eq!(SmallLimit32::from_limit(&Limit32::UNLIMITED), Err(LimitError::NotSmall));
    // A q-unit is a tick at most, and 2^-31 of one at least.
    let fixed = |spec: LimitSpec, shift| spec.resolution(shift).build().unwrap();
    let (slow, fast) = (LimitSpec::new(1, 1 << 20, 5), LimitSpec::new(1 << 20, 1, 5));
    assert!(SmallLimit::from_limit(&fixed(slow, 0)).is_ok());
    assert_eq!(SmallLimit::from_limit(&fixed(slow, -1)), Err(LimitError::HorizonTooLong));
    assert!(SmallLimit::from_limit(&fixed(fast, 31)).is_ok());
    assert_eq!(SmallLimit::from_limit(&fixed(fast, 32)), Err(LimitError::NotRepresentable));
    // A day in microseconds does not fit 32 bits at one tick a q-unit.
    assert_eq!(SmallLimit32::new(1, 86_400_000_000, 1), Err(LimitError::HorizonTooLong));
    assert_eq!(SmallLimit::new(0, 1, 1), Err(LimitError::ZeroRate));
}

/// The skew follows the horizon from ten bits of fraction on; up to nine it is an eighth of the word's span.
#[test]
fn a_small_limit_has_the_window_of_the_big_one_whatever_its_fraction() {
    for (interval, shift) in [(1 << 16, 0), (1 << 12, 4), (128, 9), (64, 10), (4, 14), (1, 16)] {
        // A horizon below any skew, and one above that of its fraction.
        for delay in [0, 1 << 45, (1 << (61 - shift)) + interval] {
            let spec = LimitSpec::new(1, interval, 3).max_delay(delay);
            let limit = spec.build().unwrap();
            assert_eq!(limit.emission_interval().1, shift);
            let small = SmallLimit::shaped(1, interval, 3, delay);
            assert_eq!(small, SmallLimit::from_limit(&limit), "{interval} and {delay}");
        }
    }
}

/// A look at a key that has drained would otherwise be a debt for a clock that is behind.
#[test]
fn a_look_into_a_small_table_writes_nothing() {
    let limit = SmallLimit32::new(1, 1_000, 3).unwrap();
    let mut slots: Vec<SmallSlot> = (0..16).map(|_| SmallSlot::EMPTY).collect();
    let mut table = SmallTable::new(&mut slots, limit, FullPolicy::Deny).unwrap();
    table.seed([7; 8]);
    assert_eq!(table.check(0, b"key", 3), Ok(Outcome::Conforming));
    assert_eq!(table.check(5_000, b"key", 0), Ok(Outcome::Conforming));
    assert_eq!(table.check(4_500, b"key", 3), Ok(Outcome::Conforming));
}

#[test]
fn a_full_set_is_answered_by_the_policy_and_counted() {
    let limit = SmallLimit32::new(1, 1_000, 5).unwrap();
    for policy in [FullPolicy::Admit, FullPolicy::Deny, FullPolicy::Inherit] {
        let mut slots = [const { SmallSlot::EMPTY }; 16];
        let mut table = SmallTable::new(&mut slots, limit, policy).unwrap();
        // Sixteen keys, the first with the smallest debt: 1 unit, then 2.
        for hash in 1..=16 {
            assert!(table.check_hash(0, hash, if hash == 1 { 1 } else { 2 }).passes());
        }
        assert_eq!(table.full(), 0);
        assert!(table.check_hash(0, 99, 0).passes(), "a look is no insert");
        let answers: Vec<Outcome> = (0..6).map(|_| table.check_hash(0, 99, 1)).collect();
        let passed = answers.iter().filter(|a| a.passes()).count();
        match policy {
            FullPolicy::Admit => assert_eq!((passed, table.full()), (6, 6)),
            FullPolicy::Deny => {
                assert_eq!((passed, table.full()), (0, 6));
                assert_eq!(answers[0], Outcome::NonConforming { retry_after: 1_000 });
                assert!(table.check_hash(1_000, 99, 1).passes(), "the first slot has drained");
            }
            // Took over a debt of one unit: four left of five, and then it has a slot.
            _ => assert_eq!((passed, table.full()), (4, 1)),
        }
    }
}

#[test]
fn a_small_table_without_a_seed_or_memory_decides_nothing() {
    let limit = SmallLimit32::new(1, 1_000, 5).unwrap();
    let mut slots = [const { SmallSlot::EMPTY }; 16];
    let mut table = SmallTable::new(&mut slots, limit, FullPolicy::Admit).unwrap();
    assert_eq!(table.check(0, b"key", 1), Err(TableError::MissingSeed));
    table.seed([1; 8]);
    assert_eq!(table.check(0, b"key", 1), Ok(Outcome::Conforming));
    // A seed is none where all of it is 0.
    table.seed([1, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(table.check(0, b"other key", 1), Ok(Outcome::Conforming));
    let most: Vec<SmallSlot> = (0..16 << 16).map(|_| SmallSlot::EMPTY).collect();
    assert!(SmallTable::shared(&most, limit, FullPolicy::Admit).is_ok());
    let more: Vec<SmallSlot> = (0..(16 << 16) + 16).map(|_| SmallSlot::EMPTY).collect();
    assert_eq!(SmallTable::shared(&more, limit, FullPolicy::Admit).err(), Some(TableError::TooLarge));
    let few = &mut [const { SmallSlot::EMPTY }; 15];
    assert_eq!(SmallTable::new(few, limit, FullPolicy::Admit).err(), Some(TableError::TooSmall));
    let mut slots = [const { SmallSlot::EMPTY }; 16];
    assert_eq!(SmallTable::new(&mut slots, limit, FullPolicy::Sampled).err(), Some(TableError::NotSmall));
}

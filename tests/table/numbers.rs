//! The numbers that a limit and a table export lead to the library's decisions, and to the slots that it uses.

use crate::common::Rng;
use tatcell::{
    Cell, HashKind, LimitError, LimitNumbers, LimitSpec, Line, Outcome, Table, TableError, TableOptions,
};

const SECOND: u64 = 1_000_000_000;

/// One request by the numbers alone: passes, and the next word.
fn decide(n: &LimitNumbers, word: u64, mask: u64, now: u64, cost: u64) -> (bool, u64) {
    let clock = now >> n.shift_right << n.shift_left;
    let ahead = word.wrapping_sub(clock) & mask;
    let lead = if word != 0 && ahead.wrapping_sub(1) < n.window_q { ahead } else { 0 };
    let passes = cost <= n.burst && lead + cost * n.emission_q <= n.burst_q;
    let next = clock.wrapping_add(lead + cost * n.emission_q) & mask;
    (passes, if passes && cost != 0 { next } else { word })
}

#[test]
fn numbers_of_a_limit_decide_as_its_cell() {
    for (seed, shift) in [(3u64, None), (4, Some(8)), (5, Some(-6))] {
        let mut x = Rng(seed);
        let mut spec = LimitSpec::new(1000, SECOND, 9);
        if let Some(shift) = shift {
            spec = spec.resolution(shift);
        }
        let limit = spec.build().unwrap();
        let numbers = limit.numbers().unwrap();
        let (cell, mut word, mut now, mut denied) = (Cell::new(), 0, 1, 0);
        for step in 0..20_000 {
            let cost = x.next() % 12;
            now += x.next() % 6_000_000;
            let (passes, next) = decide(&numbers, word, u64::MAX, now, cost);
            let outcome = cell.check(&limit, now, cost);
            assert_eq!(outcome == Outcome::Conforming, passes, "seed {seed}, step {step}");
            assert_eq!(cell.word(), next, "seed {seed}, step {step}");
            word = next;
            denied += u32::from(!passes);
        }
        assert!(denied > 1000, "{denied}");
    }
}

#[test]
fn numbers_of_a_table_find_the_slot_of_a_key_and_its_word() {
    let spec = LimitSpec::new(10, SECOND, 5);
    let memory: Vec<Line> = (0..34).map(|_| Line::new()).collect();
    let table = Table::init(&memory, &TableOptions::new(spec).seed(*b"0123456789abcdef")).unwrap();
    let (limit, numbers) = (table.limit(&spec).unwrap(), table.numbers().unwrap());
    let n = limit.numbers().unwrap();
    assert_eq!((numbers.lines, numbers.header_bytes, numbers.hash), (32, 128, HashKind::SipHash13));
    assert_eq!((n.shift_left, n.shift_right), (numbers.shift_left, numbers.shift_right));
    assert_eq!(n.window_q, numbers.window_q);
    assert!(n.horizon_q <= numbers.horizon_q && !numbers.exclusive);
    for key in 0u32..40 {
        let hash = table.hash(&key.to_le_bytes()).unwrap();
        let now = SECOND * u64::from(key + 1);
        assert_eq!(table.check_hash(&limit, now, hash, 2), Ok(Outcome::Conforming));
        // An empty table: the key's slot is among those of its set, with its tag and the TAT of two units.
        let home = ((hash >> 32) * u64::from(numbers.lines)) >> 32;
        let tag = hash.wrapping_mul(numbers.mask + 1) & !numbers.mask & (u64::MAX >> 1);
        let (_, tat) = decide(&n, 0, numbers.mask, now, 2);
        let mut image = vec![0; table.image_words()];
        table.save(now, &mut image).unwrap();
        let set = numbers.header_bytes as usize / 8 + (home / 2) as usize * 16;
        assert!(image[set..set + 16].contains(&(tag | tat)), "key {key}");
    }
}

#[test]
fn numbers_are_those_of_gcra_alone() {
    let window = LimitSpec::fixed_window(10, SECOND);
    assert_eq!(window.build().unwrap().numbers(), Err(LimitError::BadAlgorithm));
    let memory: Vec<Line> = (0..4).map(|_| Line::new()).collect();
    let table = Table::init(&memory, &TableOptions::new(window).seed(*b"0123456789abcdef")).unwrap();
    assert_eq!(table.numbers(), Err(TableError::BadAlgorithm));
    assert_eq!(table.limit(&window).unwrap().numbers(), Err(LimitError::BadAlgorithm));
}

//! Images: any words are refused or restored, at any offset of the clock. Saving, restoring and migrating a table never
//! lowers a debt.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use tatcell::{AttachOptions, FullPolicy, LimitSpec, Table, TableOptions};

use super::{hostile_word, pool::piece};
use crate::common::words;
use crate::data::Data;

const LINES: usize = 6;
const WORDS: usize = LINES * 8;

pub fn run(input: &[u8]) {
    let data = &mut Data(input);
    match data.below(3) {
        0 => hostile(data),
        1 => whole(data),
        _ => faithful(data),
    }
}

fn options(data: &mut Data<'_>) -> (LimitSpec, TableOptions) {
    let spec = match data.below(6) {
        0 => LimitSpec::fixed_window(10, 1_000_000),
        1 => LimitSpec::sliding_counter(10, 1_000_000),
        2 => LimitSpec::quota_linear(10, 1_000_000),
        3 => LimitSpec::decay(10, 1_000_000),
        _ => LimitSpec::new(1, 1 + data.scaled(20), 8),
    };
    let options = TableOptions::new(spec).caller_hash().tag_bits(data.pick(&[12, 16, 20]));
    let deny = options.policy(FullPolicy::Deny);
    (spec, if data.flag() { deny } else { options })
}

/// Any bits of a saved image, any length, any offset.
fn hostile(data: &mut Data<'_>) {
    let (spec, options) = options(data);
    let (one, two) = (piece(), piece());
    let Ok(table) = Table::init(one.lines(LINES), &options) else { return };
    let (now, offset) = (data.word(), data.sharp() as i64);
    let mut image = [0; WORDS + 8];
    assert_eq!(table.save(now, &mut image), Ok(WORDS));
    for _ in 0..data.below(4) {
        let word = &mut image[data.below(16) as usize];
        *word = if data.flag() { *word ^ 1 << data.below(64) } else { data.sharp() };
    }
    for word in &mut image[16..] {
        if data.flag() {
            *word = hostile_word(data, now, 43);
        }
    }
    let words_given = if data.rarely() { data.below(WORDS as u64 + 9) as usize } else { WORDS };
    let lines_given = if data.rarely() { data.below(9) as usize } else { LINES };
    let to = two.lines(lines_given);
    let before: Vec<u64> = words(to).iter().map(|word| word.load(Relaxed)).collect();
    match Table::restore(to, &image[..words_given], &AttachOptions::new(), offset) {
        Ok(restored) => {
            assert!(restored.slots() <= lines_given * 8, "more than the memory holds");
            let there = now.wrapping_add(offset as u64);
            // One word a tag and set.
            let mut seen = Vec::new();
            let mut from = 0;
            while let Some(slot) = restored.next_live(there, from) {
                assert!(!seen.contains(&(slot.number / 16, slot.tag)), "two words of one tag: {slot:?}");
                seen.push((slot.number / 16, slot.tag));
                from = slot.number as usize + 1;
            }
            if let Ok(limit) = restored.limit(&spec) {
                for hash in [1, 2, 3 << 32 | 4] {
                    let made = restored.peek(&limit, there, hash, 1).expect("its own limit");
                    assert!(made.remaining <= limit.burst());
                }
            }
        }
        Err(_) => {
            let after: Vec<u64> = words(to).iter().map(|word| word.load(Relaxed)).collect();
            assert_eq!(after, before, "a refused image changed the memory");
        }
    }
}

/// Debts by set and tag, the longest of each.
fn debts(table: &Table<'_>, now: u64) -> BTreeMap<(u32, u32), u64> {
    let (mut all, mut from) = (BTreeMap::new(), 0);
    while let Some(slot) = table.next_live(now, from) {
        let longest = all.entry((slot.number / 16, slot.tag)).or_insert(0);
        *longest = slot.reset_after.max(*longest);
        from = slot.number as usize + 1;
    }
    all
}

/// Whatever is in the slots: what is saved of it and restored has each debt, the longest of a tag, and no shorter.
fn whole(data: &mut Data<'_>) {
    let (one, two) = (piece(), piece());
    let spec = LimitSpec::new(1, 1 << 12, 8);
    let table = Table::init(one.lines(LINES), &TableOptions::new(spec).caller_hash()).expect("good options");
    let now = data.word();
    let shift = table.resolution();
    let now_q = if shift >= 0 { now << shift } else { now >> -shift };
    for slot in &words(one.lines(LINES))[16..] {
        if data.flag() {
            slot.store(hostile_word(data, now_q, 43), Relaxed);
        }
    }
    let mut image = [0; WORDS];
    assert_eq!(table.save(now, &mut image), Ok(WORDS));
    let offset = data.sharp() as i64;
    let restored =
        Table::restore(two.lines(LINES), &image, &AttachOptions::new(), offset).expect("its own image");
    let after = debts(&restored, now.wrapping_add(offset as u64));
    for (key, debt) in debts(&table, now) {
        let kept = after.get(&key).copied().unwrap_or(0);
        assert!(kept >= debt, "the debt of {key:?} was {debt} and is {kept}, offset {offset} at {now}");
    }
}

/// What requests left in a table is there after a restore and after a migration.
fn faithful(data: &mut Data<'_>) {
    let (spec, options) = options(data);
    let (one, two, three) = (piece(), piece(), piece());
    let Ok(table) = Table::init(one.lines(LINES), &options) else { return };
    let limit = table.limit(&spec).expect("what the table was made for");
    let info = table.info();
    let mut now = (1 << 45) + data.scaled(44);
    let keys: [u64; 5] = core::array::from_fn(|k| data.word() & !7 | (k as u64 + 2));
    for _ in 0..40 {
        if data.is_empty() {
            break;
        }
        now += data.scaled(14);
        let (key, cost) = (data.pick(&keys), 1 + data.below(4));
        let _ = table.check_hash(&limit, now, key, cost).expect("its own limit");
    }
    let mut image = [0; WORDS];
    assert_eq!(table.save(now, &mut image), Ok(WORDS));
    let offset = data.scaled(44) as i64 * if data.flag() { 1 } else { -1 };
    let restored =
        Table::restore(two.lines(LINES), &image, &AttachOptions::new(), offset).expect("its own image");
    let there = now.wrapping_add(offset as u64);
    let fixed = options.resolution(info.resolution as i8);
    let larger = 2 + 4 * (1 + data.below(4) as usize);
    let moved = table.migrate(three.lines(larger), &fixed, now);
    let (moved, report) = moved.expect("the same limits");
    let (restored_limit, moved_limit) = (restored.limit(&spec), moved.limit(&spec));
    let (restored_limit, moved_limit) = (restored_limit.expect("the same"), moved_limit.expect("the same"));
    let unit = if info.resolution < 0 { 1u64 << -info.resolution } else { 1 };
    for &key in &keys {
        let before = table.peek(&limit, now, key, 1).expect("its own limit");
        let kept = restored.peek(&restored_limit, there, key, 1).expect("its own limit");
        assert!(kept.remaining <= before.remaining, "minted by a restore: {before:?}, {kept:?}");
        assert!(kept.reset_after <= before.reset_after + unit, "longer by a restore: {before:?}, {kept:?}");
        let there = moved.peek(&moved_limit, now, key, 1).expect("its own limit");
        assert!(
            there.remaining <= before.remaining || !report.is_whole(),
            "minted by a migration: {before:?}, {there:?}, {report:?}"
        );
    }
}

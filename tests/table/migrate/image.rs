//! Migration of memory: errors, parts, words that are not live, hostile words.

use std::sync::atomic::Ordering::Relaxed;

use crate::common::{cases, hash_of, memory, words, Rng};
use tatcell::{
    AttachOptions, Exclusive, FullPolicy, HashKind, LimitSpec, Line, Migrated, Shared, Table, TableError,
    TableOptions,
};

const T: u64 = 1 << 20;
const SPEC: LimitSpec = LimitSpec::new(1, T, 8);
const NOW: u64 = 1 << 40;
const SEED: [u8; 16] = *b"a seed for tests";

fn options() -> TableOptions {
    TableOptions::new(SPEC).caller_hash()
}

fn contents(lines: &[Line]) -> Vec<u64> {
    words(lines).iter().map(|word| word.load(Relaxed)).collect()
}

fn scribble(lines: &[Line]) -> Vec<u64> {
    let mut rng = Rng(7);
    words(lines).iter().for_each(|word| word.store(rng.next(), Relaxed));
    contents(lines)
}

#[test]
fn a_refused_migration_changes_nothing() {
    let (old_lines, new_lines) = (memory(10), memory(18));
    let before = scribble(&new_lines);
    let keyed = TableOptions::new(SPEC).seed(SEED).tick_hz(1000);
    let old = Table::init(&old_lines, &keyed).unwrap();
    let _ = old.check(&old.limit(&SPEC).unwrap(), NOW, b"a key", 3).unwrap();
    let image = contents(&old_lines);
    let cases = [
        (keyed.seed([1; 16]), TableError::WrongSeed),
        (TableOptions::new(SPEC), TableError::MissingSeed),
        (keyed.caller_hash(), TableError::BadHashKind),
        (keyed.tag_bits(21), TableError::TagTooWide),
        (keyed.tag_bits(25), TableError::BadTagBits),
        (keyed.tick_hz(1001), TableError::BadMode),
        (keyed.claim_lifetime(T), TableError::BadLifetime),
    ];
    for (options, error) in cases {
        assert_eq!(old.migrate(&new_lines, &options, NOW).err(), Some(error));
        assert_eq!(old.foresee_migration(18, &options, NOW), Err(error));
        let mut report = Migrated::default();
        assert_eq!(old.migrate_part::<Shared>(&new_lines, &options, NOW, 0, 16, &mut report), Err(error));
        assert_eq!(report, Migrated::default());
    }
    if HashKind::Aes.is_available() {
        let options = keyed.hash(HashKind::Aes);
        assert_eq!(old.migrate(&new_lines, &options, NOW).err(), Some(TableError::BadHashKind));
    }
    assert_eq!(old.migrate(&new_lines[..3], &keyed, NOW).err(), Some(TableError::TooSmall));
    assert_eq!(old.migrate(&old_lines, &keyed, NOW).err(), Some(TableError::Overlap));
    assert_eq!(old.migrate(&old_lines[..4], &keyed, NOW).err(), Some(TableError::Overlap), "the old header");
    assert_eq!((contents(&new_lines), contents(&old_lines)), (before, image.clone()));

    // What is the caller's word: no frequency, or the same.
    for options in [keyed, keyed.tick_hz(0)] {
        let (new, report) = old.migrate(&new_lines, &options, NOW).unwrap();
        assert_eq!(report, Migrated { copied: 2, ..Migrated::default() });
        assert!(!new.check(&new.limit(&SPEC).unwrap(), NOW, b"a key", 6).unwrap().passes());
    }
    assert_eq!(contents(&old_lines), image, "the old table is only read");
}

#[test]
fn overlap_at_either_end_is_found() {
    let lines = memory(40);
    let old = Table::init(&lines[15..25], &options()).unwrap();
    for (from, to, is_apart) in
        [(0, 15, true), (25, 40, true), (0, 16, false), (24, 40, false), (0, 40, false)]
    {
        let refused = old.migrate(&lines[from..to], &options(), NOW).err();
        assert_eq!(refused, if is_apart { None } else { Some(TableError::Overlap) }, "{from}..{to}");
    }
}

#[test]
fn parts_make_the_same_table_as_one_call() {
    cases(10, |rng| {
        let (old_lines, whole_lines, part_lines) = (memory(50), memory(71), memory(71));
        scribble(&part_lines);
        let old = Table::init(&old_lines, &options()).unwrap();
        let limit = old.limit(&SPEC).unwrap();
        for _ in 0..300 {
            let _ = old.check_hash(&limit, NOW, rng.next(), rng.within(1, 8)).unwrap();
        }
        let options = options().tag_bits(16).policy(FullPolicy::Inherit);
        let (_, report) = old.migrate(&whole_lines, &options, NOW + T).unwrap();
        let (mut sum, mut from) = (Migrated::default(), 0);
        let attach = |lines| Table::attach(lines, &AttachOptions::new()).err();
        loop {
            let part = |options: &TableOptions, from, count, sum: &mut Migrated| {
                old.migrate_part::<Shared>(&part_lines, options, NOW + T, from, count, sum)
            };
            let next = part(&options, from, rng.below(100) as usize, &mut sum).unwrap();
            assert!(next % 16 == 0 && (next > from || next == 0));
            if next == 0 {
                break;
            }
            assert_eq!(attach(&part_lines), Some(TableError::NotReady), "half a table is none");
            let before = contents(&part_lines);
            let other = options.policy(FullPolicy::Deny);
            assert_eq!(part(&other, next, 1, &mut Migrated::default()), Err(TableError::NotReady));
            assert_eq!(part(&options, next + 16, 1, &mut Migrated::default()), Err(TableError::NotReady));
            let exclusive =
                old.migrate_part::<Exclusive>(&part_lines, &options, NOW, next, 1, &mut Migrated::default());
            assert_eq!((exclusive, contents(&part_lines)), (Err(TableError::NotReady), before));
            from = next;
        }
        assert_eq!((sum, attach(&part_lines)), (report, None));
        // The line at the end is used by neither.
        assert_eq!(contents(&part_lines)[..70 * 8], contents(&whole_lines)[..70 * 8]);
    });
}

/// The words of a new table of one set, from those of an old one; LIVE words last.
fn moved(policies: [FullPolicy; 2], tag_bits: u32, old_words: &[u64]) -> (Vec<u64>, Migrated) {
    let (old_lines, mut new_lines) = (memory(4), memory(4));
    let old = Table::init(&old_lines, &options().policy(policies[0])).unwrap();
    words(&old_lines)[16..].iter().zip(old_words).for_each(|(slot, word)| slot.store(*word, Relaxed));
    let options = options().policy(policies[1]).tag_bits(tag_bits);
    let (_, report) = old.migrate_exclusive(&mut new_lines, &options, NOW).unwrap();
    let mut new_words: Vec<u64> =
        contents(&new_lines)[16..].iter().copied().filter(|word| *word != 0).collect();
    new_words.sort();
    (new_words, report)
}

#[test]
fn claims_tombstones_and_debts_of_nobody_are_not_copied() {
    let (even, odd) = (NOW + 5 * T, NOW + 5 * T + 1);
    let not_live = [1 << 63 | 3 << 43 | even, 1 << 63 | 3 << 43 | odd, even, odd, 3 << 43 | NOW];
    for old in [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled] {
        for new in [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled] {
            assert_eq!(moved([old, new], 20, &not_live), (vec![], Migrated::default()));
        }
    }
}

#[test]
fn a_full_set_that_mints_nothing_keeps_speaking_for_absent_keys() {
    use FullPolicy::{Admit, Deny, Inherit, Sampled};
    let set = |word: &dyn Fn(u64) -> u64| (1..=16).map(word).collect::<Vec<u64>>();
    // A set of live words is as full in the new table.
    let live = set(&|i| i << 43 | (NOW + T * i / 2));
    for policies in [[Inherit, Inherit], [Deny, Deny], [Inherit, Deny], [Deny, Inherit]] {
        assert_eq!(moved(policies, 20, &live).0, live);
    }
    // Tags that differ in their high bits alone become one, and the places left must not be free: 2.25 T is what an
    // absent key may owe.
    let alike = set(&|i| i << 55 | 5 << 43 | (NOW + 2 * T + T * i / 4));
    let (largest, floor) = (5 << 51 | (NOW + 6 * T), NOW + 2 * T + T / 4);
    let all = Migrated { copied: 1, merged: 15, ..Migrated::default() };
    let expect = |rest: u64| ([&[rest; 15][..], &[largest]].concat(), all);
    for old in [Inherit, Deny] {
        assert_eq!(moved([old, Inherit], 12, &alike), expect(floor | 1));
        // Claim lifetime 2, so a grace of 18.
        assert_eq!(moved([old, Deny], 12, &alike), expect(floor + 20));
        for new in [Admit, Sampled] {
            assert_eq!(moved([old, new], 12, &alike), (vec![largest], Migrated { opened: 1, ..all }));
        }
    }
    for old in [Admit, Sampled] {
        assert_eq!(moved([old, Inherit], 12, &alike), (vec![largest], all));
    }
    // A free slot, an expired one or an insert in progress: the set is not full.
    for word in [0, 9 << 43 | NOW, 1 << 63 | 9 << 43 | (NOW + 2)] {
        let words: Vec<u64> = alike[1..].iter().copied().chain([word]).collect();
        assert_eq!(moved([Inherit, Inherit], 12, &words).0, [largest]);
    }
    // The debt of a takeover, in a claim or dropped, and a tombstone hold their slot.
    for word in [1 << 63 | 9 << 43 | (floor + 1), floor + 1, floor + 6] {
        let words: Vec<u64> = alike[1..].iter().copied().chain([word]).collect();
        let rest = word & ((1 << 43) - 1) | 1;
        assert_eq!(moved([Inherit, Inherit], 12, &words).0, [&[rest; 15][..], &[largest]].concat());
    }
}

#[test]
fn a_small_debt_beside_a_full_set_is_raised_to_its_floor() {
    let (old_lines, new_lines) = (memory(6), memory(4));
    let options = options().policy(FullPolicy::Inherit);
    let old = Table::init(&old_lines, &options).unwrap();
    let (limit, small) = (old.limit(&SPEC).unwrap(), hash_of(2, 4, 7));
    for i in 1..=16u64 {
        assert!(old
            .check_hash(&limit, NOW, hash_of(0, 4, (i << 12 | 5) as u32), 3 + i / 4)
            .unwrap()
            .passes());
    }
    assert!(old.check_hash(&limit, NOW, small, 1).unwrap().passes());
    let (new, report) = old.migrate(&new_lines, &options.tag_bits(12), NOW).unwrap();
    assert_eq!(report, Migrated { copied: 2, merged: 15, ..Migrated::default() });
    let owed = |hash| new.peek(&new.limit(&SPEC).unwrap(), NOW, hash, 0).unwrap().reset_after;
    assert_eq!((owed(hash_of(0, 2, 5)), owed(small), owed(hash_of(0, 2, 6))), (7 * T, 3 * T, 0));
    let mut seen = (0..16).filter_map(|i| words(&new_lines).get(16 + i)).map(|w| w.load(Relaxed));
    assert!(seen.all(|word| (word - NOW) & ((1 << 51) - 1) >= 3 * T), "whoever comes takes over 3 T");
}

#[test]
fn any_word_in_any_slot_is_valid_input() {
    cases(2000, |rng| {
        let (old_lines, new_lines) = (memory(6), memory(10));
        let old = Table::init(&old_lines, &options().policy(FullPolicy::Inherit)).unwrap();
        let near =
            |rng: &mut Rng| NOW.wrapping_add(rng.next() % (16 * T)).wrapping_sub(4 * T) & ((1 << 43) - 1);
        for slot in &words(&old_lines)[16..] {
            let word = match rng.below(3) {
                0 => rng.next(),
                1 => rng.next() << 63 | rng.below(5) << 43 | near(rng),
                _ => rng.below(1 << 20) << 43 | near(rng),
            };
            slot.store(word, Relaxed);
        }
        let now = if rng.one_in(2) { NOW } else { rng.next() };
        let shift = rng.within(0, 12) as i8 - 8;
        let options = options().resolution(shift).tag_bits(rng.within(12, 20) as u32);
        let Ok((new, report)) = old.migrate(&new_lines, &options, now) else { return };
        assert_eq!(new.stats(now).live, report.copied);
    });
}

/// The last slot done, the table is ready, and that is told by 0 at once.
#[test]
fn the_part_that_ends_with_the_last_slot_is_the_last() {
    let (old_lines, new_lines) = (memory(10), memory(18));
    let old = Table::init(&old_lines, &options()).unwrap();
    let part = |from, count| {
        old.migrate_part::<Shared>(&new_lines, &options(), NOW, from, count, &mut Migrated::default())
    };
    assert_eq!([part(0, 128), part(0, 113), part(0, usize::MAX)], [Ok(0); 3]);
    assert_eq!((part(0, 112), part(112, 16)), (Ok(112), Ok(0)));
    assert_eq!(Table::attach(&new_lines, &AttachOptions::new()).err(), None);
}

/// Words that count mean what they say only in the same bits, unit of time and guard.
#[test]
fn tables_that_count_move_into_others_of_their_algorithm() {
    let window = |units| LimitSpec::fixed_window(units, 1 << 20).aligned(0);
    let like = TableOptions::new(window(5)).caller_hash().resolution(-2).guard(1_000);
    let (old_lines, new_lines) = (memory(10), memory(18));
    let old = Table::init(&old_lines, &like).unwrap();
    let moved = |options: &TableOptions| old.migrate(&new_lines, options, NOW).err();
    assert_eq!(moved(&like), None);
    assert_eq!(moved(&like.skew(1 << 21).policy(FullPolicy::Deny)), None, "what may be another one");
    for other in [
        like.resolution(-1),
        like.guard(2_000),
        TableOptions::new(window(50)).caller_hash().resolution(-2).guard(1_000),
        TableOptions::new(window(50)).caller_hash().resolution(-2).guard(2_000),
    ] {
        assert_eq!(moved(&other), None, "{other:?}");
    }
    for other in [LimitSpec::new(5, 1 << 20, 5), LimitSpec::sliding_counter(5, 1 << 20)] {
        assert_eq!(
            moved(&TableOptions::new(other).caller_hash()),
            Some(TableError::BadAlgorithm),
            "{other:?}"
        );
    }
}

//! The image: attach, save and restore, hostile memory, and the sweep across a wrap.

use crate::common::{cases, hash_of, memory, words, Rng};
use std::sync::atomic::Ordering::Relaxed;
use tatcell::{
    Access, AttachOptions, Burst, Counters, ExclusiveTable, FullPolicy, LimitSpec, Line, NextBurst, Outcome,
    Permit, Request, Table, TableError, TableOptions, Tracking,
};

const SPEC: LimitSpec = LimitSpec::new(1, 1 << 12, 8);
const SEED: Option<[u8; 16]> = Some(*b"a seed for tests");
const POLICIES: [FullPolicy; 4] =
    [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled];

fn with(seed: Option<[u8; 16]>) -> AttachOptions {
    seed.map_or(AttachOptions::new(), |seed| AttachOptions::new().seed(seed))
}

fn options() -> TableOptions {
    TableOptions::new(SPEC).seed(SEED.unwrap())
}

#[test]
fn attach_waits_for_the_magic_and_sees_the_same_table() {
    let lines = memory(7);
    assert_eq!(Table::attach(&lines, &with(SEED)).err(), Some(TableError::NotReady));
    assert_eq!(Table::attach(&lines[..0], &with(SEED)).err(), Some(TableError::TooSmall));
    let table = Table::init(&lines, &options().policy(FullPolicy::Inherit)).unwrap();
    let again = Table::attach(&lines, &with(SEED)).unwrap();
    let limit = again.limit(&SPEC).unwrap();
    assert_eq!(limit, table.limit(&SPEC).unwrap());
    assert_eq!((again.slots(), again.policy()), (32, FullPolicy::Inherit));
    assert_eq!((again.resolution(), again.sweep_interval()), (table.resolution(), table.sweep_interval()));
    assert!(table.check(&limit, 0, b"k", 8).unwrap().passes());
    assert!(!again.check(&limit, 0, b"k", 1).unwrap().passes());
    // Lines that are not there, or too many.
    assert_eq!(Table::attach(&lines[..1], &with(SEED)).err(), Some(TableError::TooSmall));
    for n in [2, 3, 4, 5] {
        assert_eq!(Table::attach(&lines[..n], &with(SEED)).err(), Some(TableError::BadGeometry), "{n} lines");
    }
    assert!(Table::attach(&lines[..6], &with(SEED)).is_ok(), "the odd line at the end is not used");
    assert_eq!(Table::attach(&lines, &with(None)).err(), Some(TableError::MissingSeed));
    assert_eq!(Table::attach(&lines, &with(Some([0; 16]))).err(), Some(TableError::WrongSeed));
    words(&lines)[0].fetch_add(1, Relaxed);
    assert_eq!(Table::attach(&lines, &with(SEED)).err(), Some(TableError::BadVersion));
    words(&lines)[0].store(0, Relaxed);
    assert_eq!(Table::attach(&lines, &with(SEED)).err(), Some(TableError::NotReady));
}

#[test]
fn exclusive_and_shared_images_refuse_each_other() {
    let mut lines = memory(4);
    assert!(Table::init(&lines, &options()).is_ok());
    assert_eq!(ExclusiveTable::attach_exclusive(&mut lines, &with(SEED)).err(), Some(TableError::BadMode));
    assert!(ExclusiveTable::init_exclusive(&mut lines, &options()).is_ok());
    assert!(ExclusiveTable::attach_exclusive(&mut lines, &with(SEED)).is_ok());
    assert_eq!(Table::attach(&lines, &with(SEED)).err(), Some(TableError::BadMode));
}

/// Every call of a table, with whatever is in its slots.
fn every_call<M: Access>(table: &Table<'_, M>, spec: &LimitSpec, rng: &mut Rng, now: u64) {
    let Ok(limit) = table.limit(spec) else { return };
    let hash = hash_of(rng.below(2) as u32, 2, rng.within(1, 4) as u32);
    let cost = rng.pick(&[0, 1, 8, 9, u64::MAX]);
    let d = table.check_ex(&Request { limit: &limit, now, cost, room: rng.next() }, hash, None).unwrap();
    assert!(d.remaining <= limit.burst());
    let mut permit = d.permit;
    if rng.one_in(2) {
        permit = Permit {
            tat: rng.next(),
            stored: rng.next(),
            tick: now.wrapping_sub(rng.below(1 << 16)),
            generation: rng.below(2),
            slot: rng.next() as u32,
            ..Permit::NONE
        };
    }
    let _ = table.refund(&limit, now, hash, &permit).unwrap();
    let _ = table.check_hash(&limit, now, hash, cost).unwrap();
    let _ = table.peek(&limit, now, hash, cost).unwrap();
    let _ = table.charge(&limit, now, hash, cost, None).unwrap();
    let _ = table.reserve(&limit, now, hash, cost, None).unwrap();
    let hashes: Vec<u64> = (0..8).map(|_| rng.next()).collect();
    table.prefetch(&hashes);
    let mut counters = Counters::default();
    let burst = Burst::new(&limit, now, &hashes);
    burst.check_ex(table, Some(&mut counters), NextBurst::NONE, |_, _| ()).unwrap();
    let _ = burst.check(table, None, NextBurst::NONE).unwrap();
    let _ = table.reset_key(now, hash);
    let stats = table.stats(now);
    assert!(stats.live + stats.claims + stats.expired <= stats.slots);
    assert_eq!(stats.debt.iter().sum::<u64>(), stats.live);
    let _ = table.next_live(now, rng.below(100) as usize);
    let (from, count) = (rng.scaled(64) as usize, rng.scaled(64) as usize);
    let _ = table.sweep(now, from, count);
    let mut image = vec![0; table.image_words()];
    table.save(now, &mut image).unwrap();
}

/// A word that means something to keys with tags 1 to 4: any kind, near to now or anywhere.
fn hostile_word(rng: &mut Rng, now_q: u64, bits: u32) -> u64 {
    let payload =
        if rng.one_in(2) { now_q.wrapping_add(rng.next() % 100_000).wrapping_sub(5_000) } else { rng.next() };
    let payload = payload & ((1 << bits) - 1);
    match rng.below(5) {
        0 => rng.next(),
        1 => payload,
        2 => rng.below(5) << bits | payload,
        3 => 1 << 63 | rng.below(5) << bits | payload,
        _ => (rng.next() & 1) << 63 | rng.within(1, 60) << bits | payload,
    }
}

#[test]
fn any_word_in_any_slot_is_valid_input() {
    for policy in POLICIES {
        cases(3_000, |rng| {
            let (lines, mut owned) = (memory(4), memory(4));
            let options = TableOptions::new(SPEC.max_room(2)).caller_hash().policy(policy);
            let table = Table::init(&lines, &options).unwrap();
            let exclusive = ExclusiveTable::init_exclusive(&mut owned, &options).unwrap();
            let now = rng.next();
            for _ in 0..3 {
                let image: Vec<u64> = (0..16).map(|_| hostile_word(rng, now, 43)).collect();
                for (slot, word) in words(&lines)[16..].iter().zip(&image) {
                    slot.store(*word, Relaxed);
                }
                let mut saved = vec![0; 32];
                exclusive.save(now, &mut saved).unwrap();
                saved[16..].copy_from_slice(&image);
                let mut fresh = memory(4);
                let restored =
                    ExclusiveTable::restore_exclusive(&mut fresh, &saved, &with(None), rng.next() as i64)
                        .unwrap();
                for _ in 0..4 {
                    let now = now.wrapping_add(rng.scaled(40));
                    every_call(&table, &SPEC, rng, now);
                    every_call(&restored, &SPEC, rng, now);
                }
            }
        });
    }
}

#[test]
fn hostile_words_stop_no_key_for_longer_than_the_window() {
    // Whatever a neighbour wrote, a key gets a verdict, and its burst after the longest debt a word can show.
    for policy in POLICIES {
        cases(2_000, |rng| {
            let lines = memory(4);
            let table = Table::init(&lines, &TableOptions::new(SPEC).caller_hash().policy(policy)).unwrap();
            let limit = table.limit(&SPEC).unwrap();
            let now = rng.next() >> 1;
            for slot in &words(&lines)[16..] {
                slot.store(hostile_word(rng, now, 43), Relaxed);
            }
            let hash = hash_of(rng.below(2) as u32, 2, rng.within(1, 4) as u32);
            let mut outcome = table.check_hash(&limit, now, hash, 1).unwrap();
            // Dead claims that fill a set give no verdict until they expire, which is the neighbour's doing.
            for later in [1, 1 << 18] {
                if outcome == Outcome::Contended {
                    outcome = table.check_hash(&limit, now + later, hash, 1).unwrap();
                }
            }
            assert_ne!(outcome, Outcome::Contended, "{policy:?}");
            let window = 16 << 12;
            let d = table.check_ex(
                &Request { limit: &limit, now: now + (2 << 18), cost: 8, room: 0 },
                hash,
                None,
            );
            let d = d.unwrap();
            // A phantom may have come back meanwhile only if the test waited a whole span.
            assert!(d.passes() && d.tracking != Tracking::Untracked, "{policy:?} {d:?} after {window}");
        });
    }
}

#[test]
fn an_abandoned_claim_is_committed_for_its_key_and_never_below_its_version() {
    // A thread with a clock ahead claimed a slot for this key and died. Whoever comes commits the claim in its place,
    // in the same slot, and the payload does not fall: or a stalled thread could meet the same claim again.
    for policy in POLICIES {
        let lines = memory(4);
        let table = Table::init(&lines, &TableOptions::new(SPEC).caller_hash().policy(policy)).unwrap();
        let limit = table.limit(&SPEC).unwrap();
        let (bits, tag, now) = (43, 9u64, 1u64 << 30);
        for ahead in [0u64, 2, 100, 1 << 12, 5 << 12, 8 << 12] {
            for slot in 0..16 {
                words(&lines)[16..].iter().for_each(|w| w.store(0, Relaxed));
                words(&lines)[16 + slot].store(1 << 63 | tag << bits | (now + ahead), Relaxed);
                assert_eq!(table.peek(&limit, now, tag, 0).unwrap().remaining, 8, "a claim reads as absent");
                assert_eq!(table.check_hash(&limit, now, tag, 0), Ok(Outcome::Conforming));
                let word = words(&lines)[16 + slot].load(Relaxed);
                assert_eq!(word >> 63, 1, "a look leaves it alone");
                let d = table.check_ex(&Request { limit: &limit, now, cost: 1, room: 0 }, tag, None).unwrap();
                let tat = now + ahead.max(1 << 12);
                assert_eq!(
                    words(&lines)[16 + slot].load(Relaxed),
                    tag << bits | tat,
                    "{policy:?} ahead {ahead}"
                );
                assert_eq!((d.outcome(), d.reset_after), (Outcome::Conforming, tat - now));
                // The permit ends at the version, so that a refund does not lower it either.
                assert_eq!(d.permit.stored, (1u64 << 12).saturating_sub(ahead));
                let _ = table.refund(&limit, now, tag, &d.permit).unwrap();
                assert!(words(&lines)[16 + slot].load(Relaxed) >= tag << bits | (now + ahead));
            }
        }
    }
}

#[test]
fn of_two_abandoned_claims_the_lower_is_committed_and_the_higher_dropped() {
    for home in 0..2 {
        let lines = memory(4);
        let table = Table::init(&lines, &TableOptions::new(SPEC).caller_hash()).unwrap();
        let limit = table.limit(&SPEC).unwrap();
        let (hash, now) = (hash_of(home, 2, 9), 1u64 << 30);
        for (low, high) in [(0, 1), (3, 12), (7, 8), (14, 15)] {
            words(&lines)[16..].iter().for_each(|w| w.store(0, Relaxed));
            for slot in [low, high] {
                words(&lines)[16 + slot].store(1 << 63 | 9 << 43 | (now + 2), Relaxed);
            }
            assert_eq!(table.check_hash(&limit, now, hash, 8), Ok(Outcome::Conforming));
            // Address order, whatever the home line is.
            assert_eq!(words(&lines)[16 + low].load(Relaxed), 9 << 43 | (now + (8 << 12)), "home {home}");
            assert_eq!(words(&lines)[16 + high].load(Relaxed), now + 4, "empty, above the claim");
            assert!(!table.check_hash(&limit, now, hash, 1).unwrap().passes());
        }
    }
}

#[test]
fn contended_is_counted_and_charges_nothing() {
    // Sixteen inserts of strangers in progress: under Inherit there is no debt to measure against, so no verdict.
    let lines = memory(4);
    let options = TableOptions::new(SPEC).caller_hash().policy(FullPolicy::Inherit);
    let table = Table::init(&lines, &options).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    for (i, slot) in words(&lines)[16..].iter().enumerate() {
        slot.store(1 << 63 | (i as u64 + 100) << 43 | 1_002, Relaxed);
    }
    let snapshot = || words(&lines).iter().map(|w| w.load(Relaxed)).collect::<Vec<_>>();
    let (before, mut counters) = (snapshot(), Counters::default());
    let request = Request { limit: &limit, now: 1_000, cost: 1, room: 0 };
    let d = table.check_ex(&request, 9, Some(&mut counters)).unwrap();
    assert_eq!((d.outcome(), d.permit), (Outcome::Contended, Permit::NONE));
    assert_eq!(counters, Counters { contended: 1, ..Counters::default() });
    assert_eq!(table.check_hash(&limit, 1_000, 9, 1), Ok(Outcome::Contended));
    assert_eq!(snapshot(), before);
    // The claims expire, and with them the reason.
    assert_eq!(table.check_hash(&limit, 1_002, 9, 1), Ok(Outcome::Conforming));
}

#[test]
fn corrupted_headers_are_refused_or_usable_but_never_fatal() {
    let good = memory(6);
    Table::init(&good, &options()).unwrap();
    let header: Vec<u64> = words(&good)[..16].iter().map(|w| w.load(Relaxed)).collect();
    let mut accepted = 0;
    cases(30_000, |rng| {
        let lines = memory(6);
        for (i, word) in words(&lines)[..16].iter().enumerate() {
            word.store(header[i], Relaxed);
        }
        for _ in 0..rng.within(1, 3) {
            let word = &words(&lines)[rng.within(1, 15) as usize];
            let old = word.load(Relaxed);
            word.store(if rng.one_in(2) { old ^ 1 << rng.below(64) } else { rng.scaled(64) }, Relaxed);
        }
        for slot in &words(&lines)[16..] {
            slot.store(hostile_word(rng, 0, 43), Relaxed);
        }
        for seed in [SEED, None] {
            match Table::attach(&lines, &with(seed)) {
                Ok(table) => {
                    assert_eq!(table.slots(), 32, "never beyond the memory");
                    let now = rng.next();
                    every_call(&table, &SPEC, rng, now);
                    every_call(&table, &LimitSpec::new(1, 1 << 16, 1), rng, now);
                }
                Err(
                    TableError::BadGeometry
                    | TableError::BadVersion
                    | TableError::BadMode
                    | TableError::HashUnavailable
                    | TableError::WrongSeed
                    | TableError::MissingSeed,
                ) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
    });
    for bit in 0..64 {
        let lines = memory(6);
        for (i, word) in words(&lines)[..16].iter().enumerate() {
            word.store(header[i] ^ if i == 0 { 1 << bit } else { 0 }, Relaxed);
        }
        let error = Table::attach(&lines, &with(SEED)).err();
        let expected = if bit < 16 { TableError::BadVersion } else { TableError::NotReady };
        assert_eq!(error, Some(expected), "bit {bit}");
        accepted += 1;
    }
    assert_eq!(accepted, 64);
}

#[test]
fn restored_table_continues_exactly_under_the_new_clock() {
    for shift in [-4i8, 0, 3] {
        cases(150, |rng| {
            let spec = LimitSpec::new(1, 1 << 15, 8);
            let options = TableOptions::new(spec).seed(SEED.unwrap()).resolution(shift);
            let (old, new) = (memory(6), memory(6));
            let table = Table::init(&old, &options).unwrap();
            let limit = table.limit(&spec).unwrap();
            let mut now = 1 << 40 | rng.next() >> 20;
            let hashes: Vec<u64> = (0..12u8).map(|i| table.hash(&[i]).unwrap()).collect();
            for _ in 0..100 {
                now += rng.below(1 << 13);
                table
                    .check_hash(&limit, now, rng.pick(&hashes), (rng.within(1, 3) as u32).into())
                    .unwrap()
                    .passes();
            }
            let mut image = vec![0; table.image_words()];
            assert_eq!(table.save(now, &mut image), Ok(48));
            let kept = image[16..].iter().filter(|w| **w != 0).count();
            assert_eq!(kept as u64, table.stats(now).live, "expired words are dropped, live ones kept");
            // A whole number of q-units: exact. Both directions, and far.
            let offset = (rng.next() as i64 >> rng.within(1, 62)) & -16;
            let restored = Table::restore(&new, &image, &with(SEED), offset).unwrap();
            for _ in 0..200 {
                now += rng.below(1 << 12);
                let (hash, cost) = (rng.pick(&hashes), rng.within(0, 9) as u32);
                let there = now.wrapping_add(offset as u64);
                let answer = table.check_hash(&limit, now, hash, cost.into()).unwrap();
                assert_eq!(
                    restored.check_hash(&limit, there, hash, cost.into()).unwrap(),
                    answer,
                    "offset {offset}"
                );
            }
        });
    }
}

#[test]
fn restore_with_a_fraction_of_a_q_unit_never_shortens_a_debt() {
    cases(500, |rng| {
        let spec = LimitSpec::new(1, 1 << 16, 8);
        let options = TableOptions::new(spec).seed(SEED.unwrap()).resolution(-5);
        let (old, new) = (memory(4), memory(4));
        let table = Table::init(&old, &options).unwrap();
        let limit = table.limit(&spec).unwrap();
        let (now, hash) = (1 << 40 | rng.next() >> 30, table.hash(b"k").unwrap());
        assert!(table.check_hash(&limit, now, hash, (rng.within(1, 8) as u32).into()).unwrap().passes());
        let mut image = vec![0; table.image_words()];
        table.save(now, &mut image).unwrap();
        let offset = rng.next() as i64 >> 30;
        let restored = Table::restore(&new, &image, &with(SEED), offset).unwrap();
        let before = table.peek(&limit, now, hash, 0).unwrap().reset_after;
        let after = restored.peek(&limit, now.wrapping_add(offset as u64), hash, 0).unwrap().reset_after;
        assert!((before..before + 32).contains(&after), "{before} -> {after}, offset {offset}");
    });
}

#[test]
fn restore_refuses_what_does_not_fit() {
    let (lines, more) = (memory(6), memory(8));
    let table = Table::init(&lines, &options()).unwrap();
    let mut image = vec![0; table.image_words() + 8];
    assert_eq!(table.save(0, &mut image), Ok(48));
    image.truncate(48);
    // Another table lies where the image is to go.
    let fresh = memory(6);
    let other = Table::init(&fresh, &options()).unwrap();
    let (limit, hash) = (other.limit(&SPEC).unwrap(), other.hash(b"k").unwrap());
    assert!(other.check_hash(&limit, 7, hash, 1).unwrap().passes());
    let before: Vec<u64> = words(&fresh).iter().map(|w| w.load(Relaxed)).collect();
    assert_eq!(Table::restore(&fresh, &image, &with(Some([0; 16])), 0).err(), Some(TableError::WrongSeed));
    assert_eq!(Table::restore(&fresh, &image, &with(None), 0).err(), Some(TableError::MissingSeed));
    for lines in [&more[..], &more[..4], &more[..7], &more[..0]] {
        assert_eq!(Table::restore(lines, &image, &with(SEED), 0).err(), Some(TableError::BufferTooSmall));
    }
    for n in [0, 7, 8, 15, 16, 24, 31, 32, 40, 47] {
        let error = Table::restore(&fresh, &image[..n], &with(SEED), 0).err();
        assert_eq!(error, Some(TableError::BadGeometry), "{n} words");
    }
    let mut owned = memory(6);
    assert_eq!(
        ExclusiveTable::restore_exclusive(&mut owned, &image, &with(SEED), 0).err(),
        Some(TableError::BadMode)
    );
    image[0] ^= 1;
    assert_eq!(Table::restore(&fresh, &image, &with(SEED), 0).err(), Some(TableError::BadVersion));
    image[0] = 0;
    assert_eq!(Table::restore(&fresh, &image, &with(SEED), 0).err(), Some(TableError::NotReady));
    // Refused restores leave the memory alone.
    assert!(words(&fresh).iter().map(|w| w.load(Relaxed)).eq(before));
    assert!(Table::attach(&fresh, &with(SEED)).is_ok());
}

/// 24 tag bits and fine q-units: the 39-bit payload wraps after 2^31 ticks.
fn narrow(lines: &[Line]) -> (Table<'_>, tatcell::TableLimit) {
    let options = TableOptions::new(SPEC).seed(SEED.unwrap()).tag_bits(24).resolution(8);
    let table = Table::init(lines, &options).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    (table, limit)
}

#[test]
fn sweep_changes_no_decision() {
    cases(60, |rng| {
        let (a, b) = (memory(10), memory(10));
        let ((plain, limit), (swept, _)) = (narrow(&a), narrow(&b));
        let (mut now, mut at) = (rng.next() >> 20, 0);
        let hashes: Vec<u64> = (0..40u8).map(|i| plain.hash(&[i]).unwrap()).collect();
        for _ in 0..2_000 {
            now += if rng.one_in(50) { rng.scaled(18) } else { rng.below(1 << 11) };
            // The sweeper's clock may be ahead or behind by the skew, which is 8 units here.
            let skewed = (now + (8 << 12)).wrapping_sub(rng.below(16 << 12));
            at = swept.sweep(skewed, at, rng.below(20) as usize);
            assert!(at < swept.slots());
            let (hash, cost) = (rng.pick(&hashes), rng.within(0, 4) as u32);
            let expected = plain.check_hash(&limit, now, hash, cost.into()).unwrap();
            assert_eq!(swept.check_hash(&limit, now, hash, cost.into()).unwrap(), expected);
        }
    });
}

#[test]
fn sweep_removes_the_false_debts_of_a_wrap() {
    let turn = 1u64 << 31;
    let (a, b) = (memory(10), memory(10));
    let ((plain, limit), (swept, _)) = (narrow(&a), narrow(&b));
    assert!(plain.sweep_interval() > turn / 2 && plain.sweep_interval() < turn);
    let start = 1u64 << 33;
    let mut false_debts = 0;
    for turns in 1..50u64 {
        let idle = turn - (turns << 9);
        let now = start + turns * (2 * turn);
        let key = turns.to_le_bytes();
        for table in [&plain, &swept] {
            assert_eq!(table.check(&limit, now, &key, 8), Ok(Outcome::Conforming));
        }
        // One whole sweep on the way, well inside the interval, in small steps.
        let (mut at, mut steps) = (0, 0);
        loop {
            at = swept.sweep(now + swept.sweep_interval() / 2 + steps, at, 5);
            steps += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(steps, 64 / 5 + 1);
        assert_eq!(swept.stats(now + idle).live, 0);
        assert_eq!(swept.check(&limit, now + idle, &key, 8), Ok(Outcome::Conforming), "turn {turns}");
        false_debts += !plain.check(&limit, now + idle, &key, 8).unwrap().passes() as u64;
    }
    assert!(false_debts > 40, "the unswept table shows what the sweep is for: {false_debts}");
}

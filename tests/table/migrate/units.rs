//! Migrations that keep units: each key beside a counter of what it has used.

use crate::common::oracle::Oracle;
use crate::common::{cases, hash_of, memory, size_from, Rng};
use tatcell::{
    Change, FullPolicy, LimitError, LimitSpec, Migrated, Request, Table, TableError, TableLimit, TableOptions,
};

const KEY: u64 = 7 << 40 | 7;

fn options(spec: LimitSpec) -> TableOptions {
    TableOptions::new(spec).caller_hash()
}

fn left(table: &Table<'_>, limit: &TableLimit, now: u64, hash: u64) -> u64 {
    table.peek(limit, now, hash, 1).unwrap().remaining
}

/// The incident: a client has used its 60 an hour up, and the limit is raised tenfold.
#[test]
fn a_raised_limit_leaves_what_a_counter_would() {
    let few = LimitSpec::new(60, 3_600_000, 60);
    for (burst, keep, remaining, retry_after) in
        [(600, true, 540, 0), (60, true, 0, 6_000), (600, false, 0, 6_000), (60, false, 0, 3_246_000)]
    {
        let (many, lines) = (LimitSpec::new(600, 3_600_000, burst), [memory(4), memory(4)]);
        let old = Table::init(&lines[0], &options(few)).unwrap();
        let request = Request { limit: &old.limit(&few).unwrap(), now: 0, cost: 60, room: 0 };
        let permit = old.check_ex(&request, KEY, None).unwrap().permit;
        let to = options(many).slowest(few);
        let to = if keep { to.keep_units(few, many) } else { to };
        assert_eq!(old.foresee_migration(4, &to, 0).unwrap(), Migrated { copied: 1, ..Migrated::default() });
        let (new, report) = old.migrate(&lines[1], &to, 0).unwrap();
        assert!(report.is_whole());
        let limit = new.limit(&many).unwrap();
        assert_eq!(new.refund(&limit, 0, KEY, &permit), Ok(Some(0)), "a permit of before");
        let told = new.peek(&limit, 0, KEY, 1).unwrap();
        assert_eq!(
            (told.remaining, told.retry_after),
            (remaining, retry_after),
            "{burst}, units kept: {keep}"
        );
    }
}

/// The clock of a table, which is rounded down to its q-units.
fn clock(of: &TableLimit, now: u64) -> u128 {
    let shr = of.info().resolution.min(0).unsigned_abs();
    u128::from(now >> shr << shr)
}

/// The exact bucket of a limit, in which `lead` q-units of an old limit count as the units that they were there. A
/// grain is a q-unit divided by those that a unit of the old limit takes.
fn counter(limit: &TableLimit, old: &TableLimit, lead: u128, now: u64) -> Oracle {
    let ((t, s), parts) = (limit.emission_interval(), u128::from(old.emission_interval().0));
    let whole = Oracle::fixed(t, s, limit.burst());
    let mut made = Oracle { t: whole.t * parts, num: whole.num * parts, ..whole.clone() };
    made.tat = made.grains(clock(limit, now)) + (lead * whole.t).min(made.burst * made.t);
    made
}

/// A million decisions: none passes that the counter refuses, and none is refused that it would pass a q-unit later.
#[test]
fn no_key_has_more_or_less_than_a_counter_after_any_change_of_rate() {
    const KEYS: usize = 40;
    let (rounds, seen) = (size_from("TATCELL_COUNTED_STEPS", 600), std::cell::Cell::new([0; 3]));
    let any = |rng: &mut Rng| {
        let spec = LimitSpec::new(1 + rng.scaled(10), (1 << 12) + rng.scaled(30), 1 + rng.scaled(8));
        (spec, options(spec).resolution(rng.pick(&[0, 0, 0, 2, -3])))
    };
    cases(8 * rounds, |rng| {
        let (mut now, memories) = (1 << 40, [memory(2 + 32), memory(2 + 64)]);
        let ((old, from), (new, to)) = (any(rng), any(rng));
        let Ok(table) = Table::init(&memories[0], &from) else { return };
        let limit = table.limit(&old).unwrap();
        let (t, s) = limit.emission_interval();
        let mut keys: Vec<_> = (2..KEYS as u64 + 2)
            .map(|tag| (rng.next() << 20 | tag, Oracle::fixed(t, s, limit.burst())))
            .collect();
        let pace = |limit: &TableLimit| limit.info().period / limit.info().units / KEYS as u64 * 4 + 2;
        for _ in 0..400 {
            now += rng.below(pace(&limit));
            let (key, bucket) = &mut keys[rng.below(KEYS as u64) as usize];
            let cost = 1 + rng.below(limit.burst());
            let passes = table.check_hash(&limit, now, *key, cost).unwrap().passes();
            assert_eq!(passes, bucket.check(clock(&limit, now), cost as u32, 0).verdict == 0);
        }
        let memory = rng.pick(&[&memories[1], &memories[1][..2 + 32]]);
        let Ok((moved, report)) = table.migrate(memory, &to.keep_units(old, new), now) else { return };
        let next = moved.limit(&new).unwrap();
        for (key, bucket) in &mut keys {
            let exact = counter(&next, &limit, bucket.lead(clock(&limit, now)), now);
            let remaining = exact.peek(clock(&next, now), 1).remaining;
            assert_eq!(left(&moved, &next, now, *key), remaining, "{old:?} to {new:?}");
            *bucket = exact;
        }
        let [mut all, mut passed, mut cut] = seen.get();
        for _ in 0..400 {
            now += rng.below(pace(&next));
            let (key, bucket) = &mut keys[rng.below(KEYS as u64) as usize];
            let cost = 1 + rng.below(next.burst());
            let passes = moved.check_hash(&next, now, *key, cost).unwrap().passes();
            let told = bucket.check(clock(&next, now), cost as u32, 0);
            if passes {
                assert_eq!(told.verdict, 0, "{cost} of {key:x} at {now}, {old:?} to {new:?}");
            } else if told.verdict == 0 {
                // Rounded up, by less than a q-unit.
                bucket.tat -= u128::from(cost) * bucket.t;
                let over = bucket.lead(clock(&next, now)) + u128::from(cost) * bucket.t;
                assert!(bucket.burst * bucket.t - over < t.into(), "{cost} of {key:x} refused at {now}");
            }
            (all, passed) = (all + 1, passed + u64::from(passes));
        }
        cut += report.clamped;
        seen.set([all, passed, cut]);
    });
    let [all, passed, cut] = seen.get();
    assert!(all > 1_000 * rounds && passed * 10 > all && cut > 0, "{passed} of {all} passed, {cut} cut");
}

/// Rules by which a table counts, for quotas and windows.
const COUNTED: [fn(u64, u64) -> LimitSpec; 3] =
    [LimitSpec::fixed_window, LimitSpec::sliding_counter, LimitSpec::quota_linear];

/// With other bits for the count, other units of time, other tags. A window keeps its count and its end, whether the
/// limits are named or not; to keep the units of a quota that is used up, they are.
#[test]
fn a_count_is_kept_in_other_bits_and_other_units_of_time() {
    let seen = std::cell::Cell::new([0; 4]);
    cases(6_000, |rng| {
        let (w, kind) = ((1 << 12) + rng.scaled(30), rng.below(3) as usize);
        let phase = (kind == 0 && rng.one_in(2)).then(|| rng.below(w));
        let any = |rng: &mut Rng| {
            let spec = COUNTED[kind](1 + rng.scaled(12), w);
            let spec = phase.map_or(spec, |phase| spec.aligned(phase));
            let made = options(spec).tag_bits(rng.pick(&[20, 16, 12])).policy(FullPolicy::Deny);
            (spec, if rng.one_in(2) { made } else { made.resolution(-(rng.below(8) as i8)) })
        };
        let ((old, from), (new, to), memories) = (any(rng), any(rng), [memory(2 + 8), memory(2 + 16)]);
        let Ok(table) = Table::init(&memories[0], &from.tag_bits(20)) else { return };
        let (limit, mut now) = (table.limit(&old).unwrap(), (1 << 40) + rng.scaled(40));
        let keys: Vec<u64> = (2..22).map(|tag| rng.next() << 20 | tag).collect();
        for key in keys.iter().cycle().take(60) {
            now += rng.below(w / 40);
            let _ = table.check_hash(&limit, now, *key, 1 + rng.below(limit.burst())).unwrap();
        }
        let named = rng.one_in(2);
        let to = if named { to.keep_units(old, new) } else { to };
        let (moved, report) = match table.migrate(&memories[1], &to, now) {
            Ok(made) => made,
            Err(e) => {
                let weight = e == TableError::Limit(LimitError::OtherWindow);
                return assert!(weight && !named && kind == 1 || e == TableError::SpanTooShort, "{e:?}");
            }
        };
        let (next, units) = (moved.limit(&new).unwrap(), [&table, &moved].map(|t| 1 << -t.info().resolution));
        let unit: u64 = units.iter().sum();
        for key in keys {
            let [is, was] = [(&moved, &next), (&table, &limit)].map(|(t, l)| t.peek(l, now, key, 1).unwrap());
            let exact = (next.burst() + was.remaining).saturating_sub(limit.burst());
            match kind {
                // To a clock of larger units a window that has just ended has not.
                0 if was.reset_after == 0 && is.reset_after <= units[1] => continue,
                // A bucket that fills keeps its time. If nobody knows its quota, it may be full a unit later.
                2 if !named => {
                    let late = is.reset_after.checked_sub(was.reset_after);
                    assert!(late.is_some_and(|late| late < 2 * units[1]), "{was:?} became {is:?}");
                    continue;
                }
                // Up to a unit of time more of the window before is in sight. A coarser clock lies behind.
                1 | 2 if units[0] != units[1] => {
                    let more = match kind {
                        1 => limit.burst() * 2 * unit / w + 1,
                        _ if units[0] > units[1] => 0,
                        _ => next.burst() * units[1] / w + 1,
                    };
                    assert!(is.remaining <= exact && is.remaining + more >= exact, "{was:?} became {is:?}");
                }
                _ => assert_eq!(is.remaining, exact, "{was:?} became {is:?}, {report:?}"),
            }
            if kind == 0 && was.reset_after > 0 {
                assert!(is.reset_after.abs_diff(was.reset_after) <= unit, "{was:?} became {is:?}");
            }
            let [mut all, mut some, mut cut, mut other] = seen.get();
            (all, some) = (all + 1, some + u64::from(was.remaining < limit.burst() && is.remaining > 0));
            (cut, other) = (cut + report.clamped, other + u64::from(units[0] != units[1]));
            seen.set([all, some, cut, other]);
        }
    });
    let [all, some, cut, other] = seen.get();
    assert!(all > 50_000 && some > 20_000 && cut > 0 && other > 1_000, "{:?}", seen.get());
}

/// What a full set says of keys that it has no slot for is a number of units, too.
#[test]
fn absent_keys_of_a_full_set_owe_as_many_units() {
    let [few, many] = [60, 600].map(|units| LimitSpec::new(units, 3_600_000, units));
    for policy in [FullPolicy::Inherit, FullPolicy::Deny] {
        let lines = [memory(4), memory(4)];
        let old = Table::init(&lines[0], &options(few).policy(policy)).unwrap();
        let limit = old.limit(&few).unwrap();
        (0..16).for_each(|tag| {
            assert!(old.check_hash(&limit, 0, hash_of(tag % 2, 2, 1 + tag), 20).unwrap().passes())
        });
        let to = options(many).policy(policy).keep_units(few, many);
        let (new, report) = old.migrate(&lines[1], &to, 0).unwrap();
        assert!(report.is_whole());
        let (next, stranger) = (new.limit(&many).unwrap(), hash_of(0, 2, 99));
        let request = Request { limit: &next, now: 0, cost: 1, room: 0 };
        let told = new.check_ex(&request, stranger, None).unwrap();
        match policy {
            FullPolicy::Inherit => assert_eq!(told.remaining, 600 - 20 - 1),
            // 20 units of 6 s.
            _ => assert_eq!(told.retry_after, 120_000),
        }
    }
}

/// 27 units were used a tick ago, and the new limit has a window, or a half-life, three times as long. A word with a
/// count and an end says the same under it. A sliding counter and a level do not, and no report can know that. A level
/// is kept if both limits are named.
#[test]
fn a_longer_window_reads_counts_with_an_end_as_they_were_and_others_as_less() {
    let used = |table: &Table<'_>, limit: &TableLimit| limit.burst() - left(table, limit, 1_001, KEY);
    for (kind, exact) in COUNTED
        .into_iter()
        .zip([true, false, true])
        .chain([(LimitSpec::decay as fn(u64, u64) -> LimitSpec, false)])
    {
        let ([old, new], memories) = ([kind(28, 26_000), kind(97, 78_000)], [memory(4), memory(4)]);
        let table = Table::init(&memories[0], &options(old)).unwrap();
        let limit = table.limit(&old).unwrap();
        assert!(table.check_hash(&limit, 1_000, KEY, 27).unwrap().passes());
        let before = used(&table, &limit);
        let after = |to: &TableOptions| {
            let (moved, report) = table.migrate(&memories[1], to, 1_001)?;
            assert!(report.is_whole(), "{old:?}");
            moved.limit(&new).map(|limit| used(&moved, &limit))
        };
        let without = after(&options(new)).unwrap();
        assert!(
            if exact { without == before } else { without < before },
            "{old:?}: {before} became {without}"
        );
        match after(&options(new).slowest(old).keep_units(old, new)) {
            Ok(with) => assert_eq!((old, with), (LimitSpec::decay(28, 26_000), before)),
            Err(e) => assert_eq!(e, TableError::Limit(LimitError::OtherWindow), "{old:?}"),
        }
    }
}

#[test]
fn limits_that_keep_nothing_are_named() {
    let (few, lines) = (LimitSpec::new(60, 3_600_000, 60), [memory(4), memory(4)]);
    let with = |spec: LimitSpec| options(few).keep_units(few, spec);
    assert_eq!(Table::init(&lines[0], &with(few)).err(), Some(TableError::NothingToKeep));
    let old = Table::init(&lines[0], &options(few)).unwrap();
    let refused = |options: &TableOptions| old.migrate(&lines[1], options, 0).err();
    // Each limit must be one of its table.
    let fast = LimitSpec::new(60, 3_000, 60);
    assert_eq!(refused(&with(fast)), Some(TableError::LimitTooFast));
    assert_eq!(refused(&options(fast).keep_units(fast, fast)), Some(TableError::LimitTooFast));
    assert_eq!(refused(&with(LimitSpec::fixed_window(60, 1_000))), Some(TableError::BadAlgorithm));
    let bad = LimitSpec::new(0, 1_000, 60);
    assert_eq!(refused(&with(bad)), Some(TableError::Limit(LimitError::ZeroRate)));
    let memories = [memory(4), memory(4)];
    for kind in COUNTED {
        let old = Table::init(&memories[0], &options(kind(60, 1_000))).unwrap();
        let to = options(kind(60, 2_000)).keep_units(kind(60, 1_000), kind(60, 2_000));
        let refused = old.migrate(&memories[1], &to, 0).err();
        assert_eq!(refused, Some(TableError::Limit(LimitError::OtherWindow)));
    }
}

/// Two limits of one table; keys go from one to the other and back, some of them again and again.
#[test]
fn keys_of_several_limits_are_changed_by_their_names() {
    cases(3_000, |rng| {
        let (w, kind) = ((1 << 14) + rng.scaled(24), rng.below(4) as usize);
        let any = |rng: &mut Rng| match COUNTED.get(kind) {
            Some(made) => made(1 + rng.scaled(8), w),
            None => LimitSpec::new(1 + rng.scaled(4), w, 1 + rng.scaled(8)),
        };
        let (specs, lines) = ([any(rng), any(rng)], memory(2 + 8));
        let made = TableOptions::new(specs[0]).slowest(specs[1]).caller_hash().skew(8 * w);
        let Ok(table) = Table::init(&lines, &made.policy(FullPolicy::Deny)) else { return };
        let [Ok(a), Ok(b)] = specs.map(|spec| table.limit(&spec)) else { return };
        let (mut limits, mut now) = ([&a, &b], (1 << 40) + rng.scaled(30));
        for _ in 0..40 {
            now += rng.below(w / 8);
            let [old, new] = limits;
            let _ = table.check_hash(old, now, KEY, 1 + rng.below(old.burst())).unwrap();
            let other = table.check_ex(&Request { limit: old, now, cost: 1, room: 0 }, !KEY, None).unwrap();
            let was = table.peek(old, now, KEY, 1).unwrap();
            assert_eq!(table.change(old, new, now, KEY, Change::KeepUnits), Ok(true));
            let is = table.peek(new, now, KEY, 1).unwrap();
            assert_eq!(table.peek(old, now, !KEY, 1).unwrap().remaining, other.remaining, "another key");
            let exact = (new.burst() + was.remaining).saturating_sub(old.burst());
            if was.remaining == 0 {
                // What it has used may be more than the old limit has.
                assert!(is.remaining <= exact, "{was:?} became {is:?}");
                limits = [new, old];
                continue;
            }
            // Of a bucket that is nearly full a claim lifetime and some q-units stay.
            let least = is.reset_after <= 20 << -table.info().resolution.min(0);
            assert!(is.remaining == exact || least && is.remaining + 1 == exact, "{was:?} became {is:?}");
            limits = [new, old];
        }
        assert_eq!(table.change(limits[0], limits[1], now, KEY, Change::Reset), Ok(true));
        assert_eq!(left(&table, limits[1], now, KEY), limits[1].burst());
        assert_eq!(
            table.change(&a, &b, now, 1 << 50, Change::KeepUnits),
            Ok(true),
            "an absent key stays absent"
        );
        assert!(table.stats(now).live <= 1, "{:?}", table.stats(now));
    });
}

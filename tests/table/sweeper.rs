//! A [`Sweeper`] lets nobody wait who owes nothing, whatever the silence, and forgives nobody.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Barrier;

use crate::common::{memory, AtomicU64, Rng, Seed};
use tatcell::{AttachOptions, Cell, LimitSpec, Override, Sweeper, Table, TableOptions};

const NS: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * NS;
const BURST: u64 = 5;

/// Limits of a burst, whose words have spans of 260 ms to years, and the ticks of a second.
fn limits() -> Vec<(LimitSpec, u64)> {
    let of = |units, period, hz| (LimitSpec::new(units, period, BURST), hz);
    vec![
        of(10, NS, NS),
        of(5, 900 * NS, NS),
        of(1, NS / 1_000_000, NS),
        of(5, 24 * HOUR, NS),
        of(7, 3 * NS, NS),
        (LimitSpec::new(50_000_000_000, NS, 64_000), NS),
        of(10, 1_000, 1_000),
        of(1, 3, 1_000),
        (LimitSpec::fixed_window(BURST, 900 * NS), NS),
        (LimitSpec::sliding_counter(BURST, NS), NS),
        (LimitSpec::quota_linear(BURST, HOUR), NS),
        (LimitSpec::decay(BURST, HOUR), NS),
        (LimitSpec::fixed_window(1_000_000, 30 * 24 * HOUR), NS),
    ]
}

/// The longest time that a debt of the whole burst takes to drain.
fn drain(table: &Table<'_>) -> u64 {
    table.info().horizon + table.info().border_error
}

/// A time after which the words of now have wrapped, and count once more if nobody swept.
fn wrapped(table: &Table<'_>, random: &mut Rng) -> u64 {
    let (span, window) = (table.info().span, table.info().window);
    span.saturating_add(window).saturating_mul(random.within(1, 3)) - random.below(window)
}

#[test]
fn who_owes_nothing_passes_after_any_silence() {
    for ((spec, hz), bits) in limits().into_iter().flat_map(|limit| [12, 20, 24].map(|bits| (limit, bits))) {
        let lines = memory(600);
        let options = TableOptions::new(spec).seed([7; 16]).tag_bits(bits);
        // Some do not fit so many tag bits.
        let Ok(table) = Table::init(&lines, &options) else { continue };
        let (limit, sweeper) = (table.limit(&spec).unwrap(), Sweeper::new());
        let (drain, mut random) = (drain(&table), Rng(u64::from(bits)));
        let _seed = Seed(random.0);
        let day = 24 * 3_600 * hz;
        let mut now = random.below(1 << 40);
        for i in 0..1_000u64 {
            let gap = match i % 10 {
                // Just before and after a word wraps, when an old debt counts once more.
                0..=5 => wrapped(&table, &mut random),
                6 => 3_600 * hz,
                7 => 36 * 3_600 * hz,
                8 => 100 * day,
                _ => random.scaled(54),
            };
            let key = random.below(40).to_le_bytes();
            let (hash, burst) = (table.hash(&key).unwrap(), limit.info().burst);
            let seen = table.peek(&limit, sweeper.peek_time(&table, now), hash, burst).unwrap();
            assert!(seen.passes(), "{spec:?} {bits} bits: peek {i}: {seen:?}");
            sweeper.sweep(&table, now);
            let pass = table.check(&limit, now, &key, burst).unwrap();
            assert!(pass.passes(), "{spec:?} {bits} bits: call {i}: {pass:?}");
            now += gap.max(drain).min(150 * day);
        }
    }
}

/// The same requests, rare and frequent, by a table and by a cell for each key, whose words never wrap here.
#[test]
fn a_table_that_is_called_at_any_gaps_decides_as_cells_do() {
    for (spec, hz) in limits().into_iter().take(8) {
        let lines = memory(2_100);
        let table = Table::init(&lines, &TableOptions::new(spec).seed([7; 16])).unwrap();
        if table.info().resolution < 0 {
            continue; // rounds its intervals up
        }
        let (limit, sweeper) = (table.limit(&spec).unwrap(), Sweeper::new());
        let (own, mut random) = (spec.build().unwrap(), Rng(hz));
        let _seed = Seed(random.0);
        let cells: Vec<_> = (0..300).map(|_| Cell::new()).collect();
        let (span, drain) = (table.info().span, drain(&table));
        let (mut now, mut refused) = (1, 0);
        for i in 0..60_000u64 {
            let which = random.below(300);
            let cost = random.within(1, own.info().burst);
            sweeper.sweep(&table, now);
            let got = table.check(&limit, now, &which.to_le_bytes(), cost).unwrap().passes();
            assert_eq!(
                got,
                cells[which as usize].check(&own, now, cost).passes(),
                "{spec:?}: call {i} at {now}"
            );
            refused += u64::from(!got);
            now += match random.below(1_000) {
                0 => wrapped(&table, &mut random).min(1 << 50),
                1..=9 => random.below(span / 3).min(1 << 50),
                10..=99 => random.below(drain),
                _ => random.below(drain / 100 + 1),
            };
        }
        assert!(refused > 1_000, "{spec:?}: {refused}");
    }
}

/// Threads come at one instant after a silence. None is refused for old debts, and no charge is lost.
#[test]
fn threads_that_end_a_silence_together_lose_no_charge() {
    let spec = LimitSpec::new(10, NS, 20);
    let lines = memory(2_050);
    let table = Table::init(&lines, &TableOptions::new(spec).seed([7; 16])).unwrap();
    let (limit, sweeper) = (table.limit(&spec).unwrap(), Sweeper::new());
    let (rounds, threads) = (if cfg!(debug_assertions) { 60 } else { 300 }, 4);
    let (clock, barrier) = (AtomicU64::new(1), Barrier::new(threads));
    let passed: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (table, limit, sweeper, clock, barrier, passed) =
                (&table, &limit, &sweeper, &clock, &barrier, &passed);
            scope.spawn(move || {
                for round in 0..rounds {
                    let now = clock.load(Ordering::Relaxed);
                    let ask = |key: &str, cost| {
                        sweeper.sweep(table, now);
                        table.check(limit, now, key.as_bytes(), cost).unwrap().passes()
                    };
                    // All of these owe nothing. Those of other rounds left old debts in the slots.
                    let own = (0..400).filter(|i| !ask(&format!("{thread}/{i}"), 20)).count();
                    assert_eq!(own, 0, "round {round}: keys that owe nothing were refused");
                    let shared = (0..20).filter(|_| ask("shared", 1)).count();
                    passed[round % 2].fetch_add(shared, Ordering::Relaxed);
                    if barrier.wait().is_leader() {
                        assert_eq!(passed[round % 2].swap(0, Ordering::Relaxed), 20, "round {round}");
                        // 2.4 hours less a second: the debts of this round count once more.
                        clock.fetch_add((1 << 43) - NS, Ordering::Relaxed);
                    }
                    barrier.wait();
                }
            });
        }
    });
}

#[test]
fn a_clock_that_is_set_back_is_swept_on() {
    let spec = LimitSpec::new(10, NS, 20);
    let lines = memory(66);
    let table = Table::init(&lines, &TableOptions::new(spec).seed([7; 16])).unwrap();
    let (limit, sweeper) = (table.limit(&spec).unwrap(), Sweeper::new());
    sweeper.sweep(&table, 100 * 24 * HOUR);
    let mut now = HOUR;
    for i in 0..3_000 {
        sweeper.sweep(&table, now);
        assert!(table.check(&limit, now, b"a", 20).unwrap().passes(), "call {i}");
        now += if i % 2 == 0 { 1 << 41 } else { (1 << 43) - (1 << 41) - NS };
    }
}

/// A reading that is far behind forgives no debt, and neither does a look that is far ahead.
#[test]
fn an_older_reading_forgives_no_debt() {
    let spec = LimitSpec::new(10, NS, 20);
    let lines = memory(66);
    let table = Table::init(&lines, &TableOptions::new(spec).seed([7; 16])).unwrap();
    let (limit, sweeper) = (table.limit(&spec).unwrap(), Sweeper::new());
    sweeper.sweep(&table, HOUR);
    assert!(table.check(&limit, HOUR, b"a", 20).unwrap().passes());
    for now in
        [HOUR - 1, HOUR / 2, 1, HOUR, HOUR.wrapping_sub(240 * HOUR), HOUR, HOUR.wrapping_sub(240 * HOUR)]
    {
        sweeper.sweep(&table, now);
        assert_eq!(sweeper.peek_time(&table, HOUR), HOUR);
        sweeper.peek_time(&table, 24 * HOUR);
        assert!(!table.check(&limit, HOUR, b"a", 1).unwrap().passes());
    }
}

/// A debt that was made just before a part was due is over for one caller, and not yet for one within the skew.
#[test]
fn a_silence_forgives_no_reading_within_the_skew() {
    for (spec, _) in limits() {
        let lines = memory(66);
        let table = Table::init(&lines, &TableOptions::new(spec).seed([7; 16])).unwrap();
        let (limit, sweeper, info) = (table.limit(&spec).unwrap(), Sweeper::new(), table.info());
        sweeper.sweep(&table, HOUR);
        let now = HOUR + info.sweep_interval / 4 - 1;
        sweeper.sweep(&table, now);
        assert!(table.check(&limit, now, b"a", limit.info().burst).unwrap().passes());
        let over = now + table.next_live(now, 0).unwrap().reset_after;
        sweeper.sweep(&table, now + info.horizon + 2);
        let found = table.next_live(over - 1, 0);
        assert!(found.is_some_and(|slot| slot.reset_after > 0), "{spec:?}: {found:?}");
    }
}

/// Overrides that are rare, whose words wrap between two looks, end at their tick for good.
#[test]
fn an_override_that_ended_stays_over_after_any_silence() {
    let lines = memory(34);
    let longest = 60 * NS;
    let table = Table::init(&lines, &TableOptions::overrides(longest).seed([7; 16])).unwrap();
    let (sweeper, info, mut random) = (Sweeper::new(), table.info(), Rng(7));
    let _seed = Seed(random.0);
    let mut ends = [(0u64, false); 30];
    let (mut now, mut seen) = (1, 0);
    for i in 0..30_000u64 {
        sweeper.sweep(&table, now);
        let key = random.below(30);
        let (end, is_exempt) = &mut ends[key as usize];
        let hash = table.hash(&key.to_le_bytes()).unwrap();
        let left = end.saturating_sub(now);
        let found = table.overridden(now, hash).unwrap();
        let want = (left > 0).then_some(if *is_exempt {
            Override::Exempt { left }
        } else {
            Override::Banned { retry_after: left }
        });
        assert_eq!(found, want, "look {i} at {now}");
        seen += u64::from(found.is_some());
        if found.is_none() && random.below(3) == 0 {
            (*end, *is_exempt) = (now + random.within(1, longest), random.below(2) == 0);
            let put = if *is_exempt { table.exempt(now, hash, *end) } else { table.ban(now, hash, *end) };
            if put.is_err() {
                *end = 0; // its set is full
            }
        }
        now += match random.below(20) {
            0 => wrapped(&table, &mut random),
            1 => info.sweep_interval / 4 + random.below(3) - 1,
            2..=5 => random.below(2 * longest),
            _ => random.below(longest / 100),
        };
    }
    assert!(seen > 500, "{seen}");
}

/// A table that slept in an image, or that moves before or after a silence, holds no old debt, and a new one is kept.
#[test]
fn a_silence_ends_across_a_restore_and_a_migration() {
    let spec = LimitSpec::new(10, NS, 20);
    let (options, seed) = (TableOptions::new(spec).seed([7; 16]), AttachOptions::new().seed([7; 16]));
    let (a, b, c) = (memory(66), memory(66), memory(130));
    // 2.4 hours less a second: the debt would count once more. And a second: half of it is left.
    for (gap, passes) in [((1 << 43) - NS, true), (NS, false)] {
        for offset in [0, -50 * NS as i64, (-3 * HOUR as i64), 5 * HOUR as i64] {
            let (table, sweeper, now) = (Table::init(&a, &options).unwrap(), Sweeper::new(), HOUR);
            let limit = table.limit(&spec).unwrap();
            sweeper.sweep(&table, now);
            assert!(table.check(&limit, now, b"a", 20).unwrap().passes());

            let mut image = [0; 66 * 8];
            sweeper.sweep(&table, now);
            table.save(now, &mut image).unwrap();
            let restored = Table::restore(&b, &image, &seed, offset).unwrap();
            let (fresh, by_new_clock) = (Sweeper::new(), now.wrapping_add_signed(offset));
            fresh.sweep(&restored, by_new_clock);
            let later = by_new_clock.wrapping_add(gap);
            fresh.sweep(&restored, later);
            let got = restored.check(&limit, later, b"a", 20).unwrap();
            assert_eq!(got.passes(), passes, "restored with {offset} after {gap}: {got:?}");

            let later = now + gap;
            for move_time in [now, later] {
                sweeper.sweep(&table, move_time);
                let (moved, _) = table.migrate(&c, &options, move_time).unwrap();
                let fresh = Sweeper::new();
                fresh.sweep(&moved, move_time);
                fresh.sweep(&moved, later);
                let got = moved.check(&moved.limit(&spec).unwrap(), later, b"a", 20).unwrap();
                assert_eq!(got.passes(), passes, "moved at {move_time}, asked at {later}: {got:?}");
            }
        }
    }
}

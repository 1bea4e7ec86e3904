//! Bans and exemptions of keys until a time: exact to the tick, against a model, among threads, in chains and images.

use std::collections::HashMap;

use crate::common::{cases, memory, Rng};
use tatcell::{
    limit, AttachOptions, Cell, Chain, ChainError, Counters, Decision, ExclusiveTable, FullPolicy, Group,
    Limit, LimitSpec, Line, Link, Override, Permit, Slot, Table, TableError, TableOptions, Verdict, WordKind,
};

/// Milliseconds.
const DAY: u64 = 86_400_000;
/// More than the units of time that a word which is lowered stays ahead.
const FLOOR: u64 = 10;

fn options() -> TableOptions {
    TableOptions::overrides(365 * DAY).seed([9; 16])
}

fn table(lines: &[Line]) -> Table<'_> {
    Table::init(lines, &options()).unwrap()
}

#[test]
fn a_ban_ends_at_its_tick_and_an_exemption_too() {
    let lines = memory(18);
    let table = table(&lines);
    assert_eq!(
        (table.info().resolution, table.info().overrides),
        (0, true),
        "milliseconds of a year are exact"
    );
    for (i, left) in [1, 2, 3, 100, DAY, 365 * DAY].into_iter().enumerate() {
        let (now, key) = ((1 << 40) + i as u64, (1 << 32) | (i as u64 + 1));
        table.ban(now, key, now + left).unwrap();
        table.exempt(now, !key, now + left).unwrap();
        for passed in [0, left / 2, left - 1] {
            let rest = left - passed;
            let found = [key, !key].map(|key| table.overridden(now + passed, key).unwrap().unwrap());
            assert_eq!(found, [Override::Banned { retry_after: rest }, Override::Exempt { left: rest }]);
        }
        assert_eq!([key, !key].map(|key| table.overridden(now + left, key).unwrap()), [None, None]);
    }
}

/// Of a year in nanoseconds a unit is 131 us: a ban is rounded up to it, an exemption down.
#[test]
fn a_coarse_unit_lengthens_bans_and_shortens_exemptions() {
    cases(200, |rng| {
        let lines = memory(4);
        let table =
            Table::init(&lines, &TableOptions::overrides(365 * DAY * 1_000_000).seed([9; 16])).unwrap();
        let unit = 1u64 << 17;
        assert_eq!(table.info().resolution, -17);
        let now = rng.next() >> 1;
        let until = now + rng.within(unit, 1 << 50);
        table.ban(now, 1, until).unwrap();
        table.exempt(now, 2, until).unwrap();
        let (late, early) = (until.next_multiple_of(unit), until / unit * unit);
        let asked = now + rng.below(early - now);
        assert_eq!(table.overridden(asked, 1), Ok(Some(Override::Banned { retry_after: late - asked })));
        assert_eq!(table.overridden(asked, 2), Ok(Some(Override::Exempt { left: early - asked })));
        assert_eq!(table.overridden(late - 1, 1), Ok(Some(Override::Banned { retry_after: 1 })));
        assert_eq!((table.overridden(late, 1), table.overridden(early, 2)), (Ok(None), Ok(None)));
        assert_eq!(table.exempt(now, 3, now / unit * unit + unit - 1), Err(TableError::BadUntil));
    });
}

/// What a key is, and when it ends; what it holds besides costs a slot and says nothing.
#[derive(Clone, Copy)]
struct Held {
    banned: bool,
    until: u64,
}

/// Random bans, exemptions and lifts, longer and shorter, beside a map, from any start of the clock.
#[test]
fn overrides_are_those_of_a_map() {
    for (exclusive, start) in [(false, 1 << 40), (true, u64::MAX - 3 * DAY), (false, u64::MAX - 1_000)] {
        let (a, mut b) = (memory(130), memory(130));
        let shared = (!exclusive).then(|| table(&a));
        let owned = exclusive.then(|| ExclusiveTable::init_exclusive(&mut b, &options()).unwrap());
        macro_rules! either {
            ($t:ident => $run:expr) => {
                match (&shared, &owned) {
                    (Some($t), _) => $run,
                    (_, Some($t)) => $run,
                    _ => unreachable!(),
                }
            };
        }
        let (mut rng, mut model, mut now) = (Rng(start), HashMap::<u64, Held>::new(), start);
        let (mut seen, mut lifted) = ([0u64; 3], 0);
        let ahead = |until: u64, now: u64| until.wrapping_sub(now) as i64;
        for step in 0..200_000 {
            now = now.wrapping_add(rng.scaled(12));
            let key = rng.below(150).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let held = model.get(&key).copied().filter(|held| ahead(held.until, now) > 0);
            let wanted = held.map(|held| match (held.banned, held.until.wrapping_sub(now)) {
                (true, retry_after) => Override::Banned { retry_after },
                (false, left) => Override::Exempt { left },
            });
            assert_eq!(either!(t => t.overridden(now, key)), Ok(wanted), "step {step}");
            seen[wanted.map_or(0, |found| 1 + matches!(found, Override::Banned { .. }) as usize)] += 1;
            match rng.below(8) {
                0 => {
                    assert_eq!(either!(t => t.lift(now, key)), Ok(held.is_some()), "step {step}");
                    model.remove(&key);
                    lifted += held.is_some() as u64;
                }
                kind @ (1 | 2) => {
                    let until = now.wrapping_add(FLOOR + rng.scaled(20));
                    let banned = kind == 1;
                    let made = match banned {
                        true => either!(t => t.ban(now, key, until)),
                        false => either!(t => t.exempt(now, key, until)),
                    };
                    assert_eq!(made, Ok(()), "step {step}");
                    model.insert(key, Held { banned, until });
                }
                3 if step % 64 == 0 => {
                    either!(t => t.sweep(now, 0, usize::MAX));
                }
                _ => {}
            }
        }
        assert!(seen.iter().all(|&n| n > 5_000) && lifted > 2_000, "{seen:?}, {lifted} lifted");
    }
}

/// Ends that come nearer: a ban at most some units later than said, an exemption not at all.
#[test]
fn an_end_that_is_moved_very_near_stays_on_the_strict_side() {
    for left in 1..FLOOR {
        let lines = memory(4);
        let table = table(&lines);
        for key in [1, 2] {
            table.ban(1_000, key, 1_000 + DAY).unwrap();
        }
        table.ban(1_000, 1, 1_000 + left).unwrap();
        table.exempt(1_000, 2, 1_000 + left).unwrap();
        let ban = (0..DAY).take_while(|t| table.overridden(1_000 + t, 1) != Ok(None)).count() as u64;
        assert!((left..FLOOR).contains(&ban), "a ban of {left} lasts {ban}");
        for t in 0..2 * FLOOR {
            let found = table.overridden(1_000 + t, 2).unwrap();
            assert!(
                t < left && found == Some(Override::Exempt { left: left - t }) || found.is_none(),
                "{found:?}"
            );
        }
    }
}

/// A stranger meets the word of an override now and then, and is never taken for its key.
#[test]
fn no_stranger_is_overridden() {
    let lines = memory(66);
    let table = Table::init(&lines, &options().tag_bits(16)).unwrap();
    let mut rng = Rng(4);
    let keys: Vec<u64> = (0..100).map(|_| rng.next()).collect();
    keys.iter().for_each(|key| table.exempt(0, *key, DAY).unwrap());
    let strangers: Vec<u64> = (0..2_000_000).map(|_| rng.next()).collect();
    assert!(strangers.iter().all(|key| table.overridden(1, *key) == Ok(None)), "a stranger is exempt");
    assert!(keys.iter().all(|key| table.overridden(1, *key) == Ok(Some(Override::Exempt { left: DAY - 1 }))));
    // So often the first word alone would have done.
    let tag = |hash: u64| (hash & 0xffff).max(1);
    let home = |hash: u64| ((hash >> 32) * 64) >> 32 & !1;
    let met = strangers.iter().filter(|s| keys.iter().any(|k| tag(*k) == tag(**s) && home(*k) == home(**s)));
    let met: Vec<&u64> = met.collect();
    assert!(met.len() > 40, "{} strangers met a word", met.len());
    // Whoever overrides such a stranger is told, and nobody's override changes.
    let before = table.stats(1);
    for stranger in met {
        assert_eq!(table.lift(1, *stranger), Ok(false));
        assert!(table.reset_key(1, *stranger), "who holds no override has none to lift");
        assert_eq!(table.ban(1, *stranger, 2 * DAY), Err(TableError::OverrideClash));
    }
    assert_eq!(table.stats(1), before);
    assert!(keys.iter().all(|key| table.overridden(1, *key) == Ok(Some(Override::Exempt { left: DAY - 1 }))));
}

/// Statistics and walks count overrides that are in force, and nothing else that the table stores of them.
#[test]
fn what_is_counted_and_listed_is_what_overrides_somebody() {
    let key_of = |number: u64| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    cases(300, |rng| {
        let lines = memory(34);
        let longest = if rng.below(2) == 0 { DAY } else { DAY * 1_000_000 };
        let table = Table::init(&lines, &TableOptions::overrides(longest).seed([9; 16])).unwrap();
        let mut now = 1 << 40;
        for _ in 0..40 {
            let (key, until) = (key_of(rng.below(6)), now + 1 + rng.below(longest));
            match rng.below(5) {
                0 | 1 => table.ban(now, key, until).unwrap(),
                2 | 3 => drop(table.exempt(now, key, until)),
                _ => drop(table.lift(now, key).unwrap()),
            }
            now += rng.below(longest / 4);
            let found: Vec<_> =
                (0..6).filter_map(|number| table.overridden(now, key_of(number)).unwrap()).collect();
            let mut left: Vec<_> = found
                .iter()
                .map(|found| match found {
                    Override::Banned { retry_after } => *retry_after,
                    Override::Exempt { left } => *left,
                })
                .collect();
            left.sort_unstable_by(|a, b| b.cmp(a));
            let exemptions = found.iter().filter(|found| matches!(found, Override::Exempt { .. })).count();
            let stats = table.stats(now);
            let want = (found.len() as u64, exemptions as u64, left.first().copied().unwrap_or(0));
            assert_eq!((stats.live, stats.exemptions, stats.longest), want);
            assert_eq!(stats.debt.iter().sum::<u64>(), stats.live);
            let mut top = [Slot::default(); 16];
            let listed = table.top(now, &mut top);
            assert_eq!(top[..listed].iter().map(|slot| slot.reset_after).collect::<Vec<_>>(), left);
            let kind = |kind| (0..256).filter(|n| table.slot_word(now, *n).unwrap().kind == kind).count();
            let kinds = [kind(WordKind::Ban), kind(WordKind::Exemption), kind(WordKind::Live)];
            assert_eq!(kinds, [found.len() - exemptions, exemptions, 0]);
            // Both words of each hold a slot.
            assert!((stats.load_ppm + 1) * stats.slots > 2_000_000 * stats.live);
        }
    });
}

/// A full set is an error of whoever bans, and loses nothing.
#[test]
fn a_full_set_is_told_and_no_override_is_lost() {
    let lines = memory(4);
    let table = table(&lines);
    let mut held = Vec::new();
    let mut rng = Rng(8);
    let full = loop {
        let key = rng.next();
        match table.ban(5, key, DAY) {
            Ok(()) => held.push(key),
            Err(e) => break (key, e),
        }
    };
    assert_eq!((full.1, held.len(), table.stats(5).live), (TableError::FullSet, 8, 8));
    assert_eq!((table.stats(5).load_ppm, table.stats(5).full_sets), (1_000_000, 1));
    assert_eq!(table.overridden(5, full.0), Ok(None));
    assert!(held
        .iter()
        .all(|key| table.overridden(5, *key) == Ok(Some(Override::Banned { retry_after: DAY - 5 }))));
    // Those that are there can be changed; what is lifted makes room once its witness has ended.
    table.ban(5, held[0], 2 * DAY).unwrap();
    assert_eq!(table.lift(5, held[1]), Ok(true));
    assert_eq!(table.ban(5 + FLOOR, full.0, DAY), Err(TableError::FullSet));
    assert_eq!(table.ban(DAY, full.0, 3 * DAY), Ok(()));
    assert_eq!(table.overridden(DAY, held[0]), Ok(Some(Override::Banned { retry_after: DAY })));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let (a, b, c) = (memory(4), memory(4), memory(4));
    let table = table(&a);
    let spec = LimitSpec::new(10, 1_000, 5);
    let debts = Table::init(&b, &TableOptions::new(spec).seed([9; 16])).unwrap();
    let year = 365 * DAY;
    for (now, until) in [(5, 5), (5, 4), (5, 0), (5, 5 + year + 2), (5, u64::MAX), (u64::MAX, u64::MAX)] {
        assert_eq!(table.ban(now, 1, until), Err(TableError::BadUntil), "from {now} until {until}");
        assert_eq!(table.exempt(now, 1, until), Err(TableError::BadUntil), "from {now} until {until}");
    }
    assert_eq!(table.stats(5).load_ppm, 0);
    assert_eq!(debts.ban(0, 1, 5), Err(TableError::BadAlgorithm));
    assert_eq!(debts.exempt(0, 1, 5), Err(TableError::BadAlgorithm));
    assert_eq!(debts.lift(0, 1), Err(TableError::BadAlgorithm));
    assert_eq!(debts.overridden(0, 1), Err(TableError::BadAlgorithm));
    for spec in [spec, LimitSpec::fixed_window(3, year)] {
        assert_eq!(table.limit(&spec), Err(TableError::BadAlgorithm), "no debts in a table of overrides");
    }
    let limit = debts.limit(&spec).unwrap();
    assert_eq!(table.check_hash(&limit, 0, 1, 1), Err(TableError::ForeignLimit));
    for policy in [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Sampled] {
        assert_eq!(Table::init(&c, &options().policy(policy)).err(), Some(TableError::BadPolicy));
    }
    assert!(Table::init(&c, &TableOptions::overrides(0).seed([9; 16])).is_err());
    assert!(Table::init(&c, &TableOptions::overrides(u64::MAX).seed([9; 16])).is_err());
    // A ban by a clock that a rival's is ahead of.
    table.ban(100, 1, 200).unwrap();
    assert_eq!(table.overridden(90, 1), Ok(Some(Override::Banned { retry_after: 110 })));
}

/// An image keeps its overrides, moved with its clock.
#[test]
fn images_keep_overrides_and_what_they_are_made_for() {
    let (a, b, c) = (memory(18), memory(18), memory(18));
    let table = table(&a);
    table.ban(1_000, 11, 1_000 + DAY).unwrap();
    table.exempt(1_000, 22, 1_000 + 2 * DAY).unwrap();
    table.ban(1_000, 33, 1_000 + DAY).unwrap();
    table.lift(1_000, 33).unwrap();
    let mut image = vec![0; table.image_words()];
    table.save(1_500, &mut image).unwrap();
    let attach = AttachOptions::new().seed([9; 16]);
    let restored = Table::restore(&b, &image, &attach, 500).unwrap();
    assert_eq!(restored.overridden(2_000, 11), Ok(Some(Override::Banned { retry_after: DAY - 500 })));
    assert_eq!(restored.overridden(2_000, 22), Ok(Some(Override::Exempt { left: 2 * DAY - 500 })));
    assert_eq!(restored.overridden(2_000, 33), Ok(None));
    let attached = Table::attach(&a, &attach).unwrap();
    assert_eq!(attached.overridden(1_000, 11), Ok(Some(Override::Banned { retry_after: DAY })));
    let bigger = memory(34);
    let moved = table.migrate(&bigger, &options(), 1_000);
    assert_eq!(moved.err(), Some(TableError::BadAlgorithm), "a witness could be taken for an override");
    // Counts of windows are none: neither image is taken for the other.
    let windows =
        Table::init(&c, &TableOptions::new(LimitSpec::fixed_window(3, 365 * DAY)).seed([9; 16])).unwrap();
    assert_eq!(windows.ban(0, 1, 5), Err(TableError::BadAlgorithm));
}

// ---- chains ---------------------------------------------------------------------------------------------------------

static TWO: Limit = limit!(1 per 1_000, burst 2);

#[test]
fn a_chain_asks_the_override_before_its_limits() {
    let lines = memory(18);
    let table = table(&lines);
    let cell = Cell::new();
    let chain = Chain::new(&[Link::overrides(&table, 7), Link::cell(&cell, &TWO, 1)]).unwrap();
    let passed = chain.check(0);
    assert_eq!(
        (passed.verdict, passed.policy, passed.remaining, passed.flags),
        (Verdict::Conforming, 1, 1, 0)
    );
    table.ban(0, 7, 5_000).unwrap();
    let mut counters = Counters::default();
    let refused = chain.check_ex(10, Some(&mut counters), |_, _| ());
    assert_eq!((refused.verdict, refused.policy), (Verdict::NonConforming, 0));
    assert_eq!((refused.retry_after, refused.flags), (4_990, Decision::BANNED));
    assert_eq!((chain.peek(4_999).retry_after, counters.non_conforming), (1, 1));
    assert_eq!(chain.reserve(10).unwrap().flags, Decision::BANNED);
    assert_eq!(cell.peek(&TWO, 0, 0).remaining, 1, "nobody is charged for a banned request");
    table.exempt(10, 7, 5_000).unwrap();
    for _ in 0..10 {
        let mut permits = [Permit::NONE; 2];
        let passed = chain.check_ex(10, None, |i, d| permits[i] = d.permit);
        assert_eq!(
            (passed.verdict, passed.flags, passed.retry_after),
            (Verdict::Conforming, Decision::EXEMPT, 0)
        );
        assert_eq!(permits, [Permit::NONE; 2]);
        assert!(chain.reserve(10).unwrap().passes() && chain.peek(10).flags == Decision::EXEMPT);
    }
    assert_eq!(cell.peek(&TWO, 10, 0).remaining, 1, "nobody is charged for an exempt request");
    assert_eq!(table.lift(10, 7), Ok(true));
    assert!(chain.check(10).passes() && !chain.check(10).passes());
    assert_eq!(chain.check(10).flags, 0);
}

/// Of an exempt request the limits refuse nothing and flag nothing, also where they would.
#[test]
fn an_exemption_passes_what_the_limits_refuse_and_says_so_at_its_own_link() {
    let lines = memory(18);
    let table = table(&lines);
    let (cell, soft) = (Cell::new(), Cell::new());
    let warned = LimitSpec::new(1, 1_000, 2).soft(1).build().unwrap();
    for _ in 0..2 {
        assert!(cell.check(&TWO, 0, 1).passes());
    }
    assert!(soft.check(&warned, 0, 1).passes());
    let links = [Link::overrides(&table, 7), Link::cell(&cell, &TWO, 1), Link::cell(&soft, &warned, 1)];
    let chain = Chain::new(&links).unwrap();
    assert_eq!((chain.check(0).verdict, chain.peek(0).policy), (Verdict::NonConforming, 1));
    table.exempt(0, 7, 5_000).unwrap();
    for reserves in [false, true] {
        let mut each = Vec::new();
        let mut tell =
            |i: usize, d: &Decision| each.push((i, d.verdict, d.flags, d.retry_after, d.departure));
        let whole = match reserves {
            false => chain.check_ex(3, None, &mut tell),
            true => chain.reserve_ex(3, None, &mut tell).unwrap(),
        };
        assert_eq!((whole.verdict, whole.flags, whole.departure), (Verdict::Conforming, Decision::EXEMPT, 3));
        let wanted = [(0, Decision::EXEMPT), (1, 0), (2, 0)];
        assert_eq!(each, wanted.map(|(i, flags)| (i, Verdict::Conforming, flags, 0, 3)));
    }
    assert_eq!((chain.peek(3).verdict, chain.peek(3).flags), (Verdict::Conforming, Decision::EXEMPT));
    assert_eq!(
        (cell.peek(&TWO, 0, 0).remaining, soft.peek(&warned, 0, 0).remaining),
        (0, 1),
        "none is charged"
    );
}

#[test]
fn an_override_alone_answers_with_its_times() {
    let lines = memory(18);
    let table = table(&lines);
    let link = Link::overrides(&table, 7);
    let (chain, group) = (Chain::new(&[link]).unwrap(), Group::new());
    let passed = chain.check(40);
    assert_eq!((passed.departure, passed.next_unit, passed.reset_after), (40, 0, 0));
    group.raise(90);
    assert_eq!(group.reserve(40, &link).unwrap().departure, 90, "behind what its group has let go");
    table.ban(40, 7, 540).unwrap();
    let times = |d: Decision| (d.retry_after, d.next_unit, d.reset_after, d.departure);
    for refused in [chain.check(50), chain.peek(50), group.reserve(50, &link).unwrap()] {
        assert_eq!((refused.verdict, times(refused)), (Verdict::NonConforming, (490, 490, 490, 0)));
    }
    assert_eq!(group.eligible(), 90);
}

#[test]
fn a_ban_outweighs_an_exemption_and_a_wrong_table_is_refused() {
    let (a, b, c) = (memory(18), memory(18), memory(18));
    let (clients, networks) = (table(&a), table(&b));
    let cell = Cell::new();
    let chain = Chain::new(&[
        Link::overrides(&clients, 7),
        Link::overrides(&networks, 7),
        Link::cell(&cell, &TWO, 1),
    ])
    .unwrap();
    clients.exempt(0, 7, 1_000).unwrap();
    networks.ban(0, 7, 1_000).unwrap();
    let refused = chain.check(0);
    assert_eq!(
        (refused.verdict, refused.policy, refused.flags),
        (Verdict::NonConforming, 1, Decision::BANNED)
    );
    assert!(!chain.reserve(0).unwrap().passes());
    assert_eq!(cell.peek(&TWO, 0, 0).remaining, 2);
    let debts = Table::init(&c, &TableOptions::new(LimitSpec::new(1, 1_000, 2)).seed([9; 16])).unwrap();
    let wrong = [Link::overrides(&debts, 7), Link::cell(&cell, &TWO, 1)];
    assert_eq!(Chain::new(&wrong).err(), Some(ChainError::BadAlgorithm));
}

// ---- threads --------------------------------------------------------------------------------------------------------

/// A ban that is made longer and longer has no gap, whoever looks; and nobody ever sees one that was not set.
#[cfg(target_has_atomic = "64")] // its clock
#[test]
fn threads_see_each_change_as_a_whole() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    let lines = memory(34);
    let table = table(&lines);
    let (clock, looks, done) = (AtomicU64::new(1 << 30), AtomicU64::new(0), AtomicBool::new(false));
    for key in [1, 2] {
        table.ban(1 << 30, key, (1 << 30) + 1_000).unwrap();
    }
    std::thread::scope(|scope| {
        let setters = [1, 2].map(|key| {
            let (table, clock, looks) = (&table, &clock, &looks);
            scope.spawn(move || {
                let mut round = 0;
                // On a busy machine the other thread may start late.
                while round < 30_000 || looks.load(Ordering::Relaxed) < 100 {
                    round += 1;
                    let now = clock.fetch_add(20, Ordering::Relaxed);
                    // Two threads set each other's key, too.
                    for key in [key, 3 - key] {
                        while table.ban(now, key, now + 100_000_000) == Err(TableError::Contended) {}
                    }
                    match now % 3 {
                        0 => while table.exempt(now, 10 + key, now + 500) == Err(TableError::Contended) {},
                        1 => while table.lift(now, 10 + key) == Err(TableError::Contended) {},
                        _ => while table.ban(now, 10 + key, now + 500) == Err(TableError::Contended) {},
                    }
                }
            })
        });
        let looker = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let now = clock.load(Ordering::Relaxed);
                for key in [1, 2] {
                    let found = table.overridden(now, key).unwrap();
                    assert!(matches!(found, Some(Override::Banned { .. })), "a gap at {now}");
                }
                assert_eq!([20, 21, 22].map(|key| table.overridden(now, key)), [Ok(None); 3]);
                looks.fetch_add(1, Ordering::Relaxed);
            }
        });
        setters.into_iter().for_each(|setter| setter.join().unwrap());
        done.store(true, Ordering::Relaxed);
        looker.join().unwrap();
    });
    let now = clock.into_inner();
    // Slots that are held.
    let stats = table.stats(now);
    assert!(stats.load_ppm * stats.slots <= 8_000_000, "{stats:?}");
}

/// Of a short and a long ban that two threads set at once one stands, and as long as it says.
#[test]
fn of_two_bans_at_once_one_stands_until_its_end() {
    let lines = memory(34);
    let table = table(&lines);
    let barrier = std::sync::Barrier::new(2);
    let (mut short, mut long) = (0, 0);
    // In turns one thread lets the other go first, so that both orders occur on one processor too.
    let give_way = |turn: bool| turn.then(std::thread::yield_now);
    std::thread::scope(|scope| {
        let rival = scope.spawn(|| {
            for round in 0..5_000u64 {
                barrier.wait();
                give_way(round % 2 == 0);
                while table.ban(round * 1_000, round % 7, round * 1_000 + 500) == Err(TableError::Contended) {
                }
                barrier.wait();
            }
        });
        for round in 0..5_000u64 {
            let (now, key) = (round * 1_000, round % 7);
            barrier.wait();
            give_way(round % 2 == 1);
            while table.ban(now, key, now + 900) == Err(TableError::Contended) {}
            barrier.wait();
            let Ok(Some(Override::Banned { retry_after })) = table.overridden(now, key) else {
                panic!("no ban stands in round {round}");
            };
            assert!(matches!(retry_after, 500 | 900), "{retry_after}");
            let last = table.overridden(now + retry_after - 1, key);
            assert_eq!(
                last,
                Ok(Some(Override::Banned { retry_after: 1 })),
                "round {round}: of {retry_after}"
            );
            *if retry_after == 500 { &mut short } else { &mut long } += 1;
        }
        rival.join().unwrap();
    });
    assert!(short > 20 && long > 20, "{short} short, {long} long: no race");
}

/// A clock that goes on elsewhere by less than a unit: a ban may grow by a unit, an exemption never.
#[test]
fn a_restore_lengthens_no_exemption() {
    let options = TableOptions::overrides(365 * DAY * 1_000_000).seed([9; 16]);
    let unit = 1u64 << 17;
    for offset in [1, -1, unit as i64 - 1, unit as i64 + 1, -(unit as i64) - 1] {
        let (a, b) = (memory(4), memory(4));
        let table = Table::init(&a, &options).unwrap();
        let (now, until) = (1_000 * unit, 5_000 * unit);
        table.ban(now, 1, until).unwrap();
        table.exempt(now, 2, until).unwrap();
        let mut image = vec![0; table.image_words()];
        table.save(now, &mut image).unwrap();
        let restored = Table::restore(&b, &image, &AttachOptions::new().seed([9; 16]), offset).unwrap();
        let (now, until) = (now.wrapping_add_signed(offset), until.wrapping_add_signed(offset));
        let left = |key| match restored.overridden(now, key).unwrap().unwrap() {
            Override::Banned { retry_after } => retry_after,
            Override::Exempt { left } => left,
        };
        assert!(now + left(2) <= until, "{offset}: exempt until {}, said {until}", now + left(2));
        assert!(now + left(1) >= until, "{offset}: banned until {}, said {until}", now + left(1));
    }
}

#[test]
fn a_reset_lifts_and_touches_nobody_else() {
    let lines = memory(4);
    let table = table(&lines);
    table.ban(1_000, 1, 2_000).unwrap();
    table.ban(1_000, 2, 2_000).unwrap();
    assert!(table.reset_key(1_000, 1) && table.reset_key(1_000, 3));
    assert_eq!(table.overridden(1_000, 1), Ok(None));
    assert!(matches!(table.overridden(1_000, 2), Ok(Some(Override::Banned { .. }))));
    table.exempt(1_000, 1, 2_000).unwrap(); // neither a clash nor a slot that is nobody's
    assert!(matches!(table.overridden(1_000, 1), Ok(Some(Override::Exempt { .. }))));
}

#[test]
fn options_of_limits_make_no_table_of_overrides() {
    let lines = memory(4);
    for slowest in [LimitSpec::fixed_window(100, DAY), LimitSpec::fixed_window(3, DAY).aligned(0)] {
        assert!(matches!(Table::init(&lines, &options().slowest(slowest)), Err(TableError::BadAlgorithm)));
    }
}

/// The figures of the guide.
#[test]
fn how_often_to_sweep_is_told() {
    let lines = memory(4);
    let nanoseconds = Table::init(&lines, &TableOptions::overrides(60_000_000_000).seed([9; 16])).unwrap();
    assert_eq!(nanoseconds.sweep_interval() / 60_000_000_000, 32);
    let lines = memory(4);
    assert_eq!(table(&lines).sweep_interval() / (365 * DAY), 65);
}

//! Full sets: what each policy answers, stores, counts, and lets through.

use crate::common::{cases, hash_of, in_shadow, memory, Rng};
use tatcell::{
    Burst, Counters, Decision, FullPolicy, LimitSpec, Line, NextBurst, Outcome, Permit, Request, Table,
    TableLimit, TableOptions, Tracking,
};

const T: u64 = 1 << 12;
const B: u64 = 8;
const SPEC: LimitSpec = LimitSpec::new(1, T, B);
const POLICIES: [FullPolicy; 4] =
    [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled];

fn table(lines: &[Line], policy: FullPolicy) -> (Table<'_>, TableLimit) {
    let table = Table::init(lines, &TableOptions::new(SPEC).caller_hash().policy(policy)).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    (table, limit)
}

/// Key `tag` of set 0, home line by its parity.
fn key(tag: u32) -> u64 {
    hash_of(tag % 2, 4, tag)
}

/// Sixteen keys fill set 0; key i (from 1) has `costs(i)` units of debt.
fn fill(table: &Table<'_>, limit: &TableLimit, now: u64, cost: impl Fn(u32) -> u32) {
    for tag in 1..=16 {
        let request = Request { limit, now, cost: cost(tag).into(), room: 0 };
        let d = table.check_ex(&request, key(tag), None).unwrap();
        assert!(d.passes() && d.tracking == Tracking::Tracked, "{tag}: {d:?}");
    }
    assert_eq!(table.stats(now).live, 16);
}

fn ask(table: &Table<'_>, limit: &TableLimit, now: u64, hash: u64, cost: u32) -> (Decision, Counters) {
    let mut counters = Counters::default();
    let d = table
        .check_ex(&Request { limit, now, cost: cost.into(), room: 0 }, hash, Some(&mut counters))
        .unwrap();
    (d, counters)
}

#[test]
fn admit_passes_untracked_without_a_permit_and_evicts_nobody() {
    let lines = memory(6);
    let (table, limit) = table(&lines, FullPolicy::Admit);
    fill(&table, &limit, 0, |_| 2);
    for _ in 0..100 {
        let (d, counters) = ask(&table, &limit, 0, key(99), 1);
        assert_eq!((d.verdict as i32, d.tracking), (0, Tracking::Untracked));
        assert_eq!(d.permit, Permit::NONE);
        assert_eq!(counters, Counters { conforming: 1, untracked: 1, ..Counters::default() });
        assert_eq!(table.check_hash(&limit, 0, key(99), 8), Ok(Outcome::Conforming));
    }
    assert_eq!(ask(&table, &limit, 0, key(99), 9).0.outcome(), Outcome::Never);
    for tag in 1..=16 {
        assert_eq!(table.peek(&limit, 0, key(tag), 0).unwrap().remaining, 6);
    }
    // It gets its slot as soon as one drains.
    assert_eq!(ask(&table, &limit, 2 * T - 1, key(99), 1).0.tracking, Tracking::Untracked);
    assert_eq!(ask(&table, &limit, 2 * T, key(99), 1).0.tracking, Tracking::Tracked);
    // Another set is not full.
    let (d, counters) = ask(&table, &limit, 0, hash_of(2, 4, 99), 1);
    assert_eq!((d.tracking, counters.inserted), (Tracking::Tracked, 1));
}

#[test]
fn deny_refuses_until_exactly_the_first_slot_drains() {
    cases(200, |rng| {
        let lines = memory(6);
        let (table, limit) = table(&lines, FullPolicy::Deny);
        let now = rng.next() >> 24;
        let costs: Vec<u32> = (0..17).map(|_| rng.within(2, B) as u32).collect();
        fill(&table, &limit, now, |tag| costs[tag as usize]);
        let now = now + rng.below(T);
        let (d, counters) = ask(&table, &limit, now, key(99), 1);
        assert_eq!((d.verdict as i32, d.tracking, d.permit), (1, Tracking::Untracked, Permit::NONE));
        assert_eq!(counters, Counters { non_conforming: 1, untracked: 1, ..Counters::default() });
        let (early, _) = ask(&table, &limit, now + d.retry_after - 1, key(99), 1);
        assert_eq!(early.outcome(), Outcome::NonConforming { retry_after: 1 });
        let (then, _) = ask(&table, &limit, now + d.retry_after, key(99), 1);
        assert_eq!((then.verdict as i32, then.tracking), (0, Tracking::Tracked));
    });
}

#[test]
fn inherit_takes_the_smallest_debt_over_with_its_debt() {
    let lines = memory(6);
    let (table, limit) = table(&lines, FullPolicy::Inherit);
    fill(&table, &limit, 0, |tag| if tag == 11 { 3 } else { 6 });
    // 3 units inherited, 5 wanted: fits.
    let (d, counters) = ask(&table, &limit, 0, key(99), 5);
    assert_eq!((d.verdict as i32, d.tracking, d.remaining), (0, Tracking::Inherited, 0));
    let expected = Counters { conforming: 1, inherited: 1, inserted: 1, ..Counters::default() };
    assert_eq!(counters, expected);
    assert!(d.reset_after >= 8 * T && d.reset_after <= 8 * T + 2, "{d:?}");
    // The key whose slot went is absent, and is measured against the least of the rest: 6 units.
    let (d, counters) = ask(&table, &limit, 0, key(11), 3);
    assert_eq!((d.verdict as i32, d.tracking), (1, Tracking::Inherited));
    assert_eq!(counters, Counters { non_conforming: 1, inherited: 1, ..Counters::default() });
    assert!((T..=T + 2).contains(&d.retry_after), "{d:?}");
    let (then, _) = ask(&table, &limit, d.retry_after, key(11), 3);
    assert!(then.passes());
    assert_eq!(table.stats(0).live, 16);
}

#[test]
fn inherit_never_over_admits_however_keys_come_and_go() {
    // All keys of a set share its 16 slots: no more than 16 bursts and 16 rates pass, whatever the keys do.
    cases(20, |rng| {
        let lines = memory(4);
        let (table, limit) = table(&lines, FullPolicy::Inherit);
        let keys = rng.pick(&[17u64, 24, 100, 10_000]);
        let start = 1 << 20;
        let (mut now, mut admitted) = (start, 0u64);
        for _ in 0..20_000 {
            now += rng.below(T / 8);
            let cost = rng.within(1, 3) as u32;
            let hash = hash_of(rng.below(2) as u32, 2, rng.within(1, keys) as u32);
            admitted +=
                cost as u64 * table.check_hash(&limit, now, hash, cost.into()).unwrap().passes() as u64;
            let most = 16 * (B * T + (now - start)) / T;
            assert!(admitted <= most, "{admitted} above {most}");
        }
        assert!(admitted > 1_000);
    });
}

#[test]
fn sampled_takes_over_about_one_in_sixteen_and_forgives() {
    let lines = memory(6);
    let (table, limit) = table(&lines, FullPolicy::Sampled);
    let (mut forgiven, mut untracked) = (0, 0);
    let (n, mut sum) = (20_000, Counters::default());
    for i in 0..n {
        let now = (1 << 20) + (i << 16);
        fill(&table, &limit, now, |_| 3);
        let (d, counters) = ask(&table, &limit, now, key(100 + i as u32), 2);
        assert_eq!((d.verdict as i32, counters.conforming), (0, 1));
        sum.add(&counters);
        if d.tracking == Tracking::Forgiven {
            assert_eq!((counters.forgiven, counters.inserted), (1, 1));
            let d = table.peek(&limit, now, key(100 + i as u32), 0).unwrap();
            assert_eq!((d.remaining, d.reset_after), (6, 2 * T), "the victim's debt is forgiven");
            assert_eq!(table.refund(&limit, now, key(100 + i as u32), &d.permit), Ok(Some(0)));
            forgiven += 1;
        } else {
            assert_eq!((d.tracking, d.permit), (Tracking::Untracked, Permit::NONE));
            assert_eq!((counters.untracked, counters.inserted), (1, 0));
            untracked += 1;
        }
    }
    assert_eq!(forgiven + untracked, n);
    let each = Counters { conforming: n, untracked, forgiven, inserted: forgiven, ..Counters::default() };
    assert_eq!(sum, each, "added up, the counts of the calls");
    // 1250 expected, standard deviation 34.
    assert!((1_100..1_400).contains(&forgiven), "{forgiven} of {n}");
}

#[test]
fn sampled_refunds_nothing_and_inherit_only_in_the_same_slot() {
    let lines = memory(6);
    let (sampled, limit) = table(&lines, FullPolicy::Sampled);
    let (d, _) = ask(&sampled, &limit, 0, key(1), 4);
    assert!(d.permit.stored > 0);
    assert_eq!(sampled.refund(&limit, 0, key(1), &d.permit), Ok(Some(0)));
    let lines = memory(6);
    let (inherit, limit) = table(&lines, FullPolicy::Inherit);
    let (d, _) = ask(&inherit, &limit, 0, key(1), 4);
    let moved = Permit { slot: d.permit.slot + 1, ..d.permit };
    assert_eq!(inherit.refund(&limit, 0, key(1), &moved), Ok(Some(0)));
    assert_eq!(inherit.refund(&limit, 0, key(1), &d.permit), Ok(Some(d.permit.stored)));
    // A key that lost its slot has nothing to give back.
    let (first, _) = ask(&inherit, &limit, 1 << 20, key(1), 1);
    for tag in 2..=16 {
        assert!(ask(&inherit, &limit, 1 << 20, key(tag), 4).0.passes());
    }
    let (taken, _) = ask(&inherit, &limit, 1 << 20, key(99), 1);
    assert_eq!((taken.tracking, taken.permit.slot), (Tracking::Inherited, first.permit.slot));
    let before = inherit.peek(&limit, 1 << 20, key(99), 0).unwrap();
    assert_eq!(inherit.refund(&limit, 1 << 20, key(1), &first.permit), Ok(Some(0)));
    assert_eq!(inherit.peek(&limit, 1 << 20, key(99), 0).unwrap(), before);
}

#[test]
fn refund_mints_nothing_under_any_policy() {
    // Per key (per set under Inherit): admitted and not given back stays below the envelope.
    for policy in [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny] {
        cases(30, |rng| {
            let lines = memory(4);
            let (table, limit) = table(&lines, policy);
            let keys = if matches!(policy, FullPolicy::Inherit) { 40 } else { 12 };
            let (start, mut permits) = (1u64 << 20, Vec::new());
            let mut now = start;
            // Debt in q-units, at most what was charged and not refunded.
            let mut charged = vec![0u64; keys + 1];
            for _ in 0..5_000 {
                now += rng.below(T / 8);
                let tag = rng.within(1, keys as u64) as usize;
                let hash = hash_of(tag as u32 % 2, 2, tag as u32);
                if rng.one_in(3) && !permits.is_empty() {
                    let (tag, hash, permit): (usize, u64, Permit) =
                        permits.swap_remove(rng.below(permits.len() as u64) as usize);
                    charged[tag] -= table.refund(&limit, now, hash, &permit).unwrap().unwrap();
                } else {
                    let (d, _) = ask(&table, &limit, now, hash, rng.within(1, 4) as u32);
                    if d.passes() && d.tracking != Tracking::Untracked {
                        charged[tag] += d.cost * T;
                        permits.push((tag, hash, d.permit));
                    }
                }
                let most = B * T + (now - start);
                if matches!(policy, FullPolicy::Inherit) {
                    let total: u64 = charged.iter().sum();
                    assert!(total <= 16 * most, "{policy:?}: {total} above 16 * {most}");
                } else {
                    assert!(charged[tag] <= most, "{policy:?} key {tag}: {} above {most}", charged[tag]);
                }
            }
        });
    }
}

#[test]
fn admit_never_over_admits_what_it_tracks() {
    // Overfull sets: tracked admissions of a key stay in its envelope, untracked ones are reported.
    for policy in [FullPolicy::Admit, FullPolicy::Deny] {
        let lines = memory(4);
        let (table, limit) = table(&lines, policy);
        let mut rng = Rng(8);
        let start = 1u64 << 20;
        let (mut now, mut tracked, mut untracked) = (start, vec![0u64; 61], 0);
        for _ in 0..200_000 {
            now += rng.below(T / 64);
            let tag = rng.within(1, 60) as u32;
            let (d, _) = ask(&table, &limit, now, hash_of(tag % 2, 2, tag), 1);
            if d.tracking == Tracking::Untracked {
                untracked += 1;
            } else if d.passes() {
                tracked[tag as usize] += 1;
                assert!(tracked[tag as usize] <= B + (now - start) / T, "{policy:?} key {tag}");
            }
        }
        assert!(untracked > 1_000 && tracked.iter().sum::<u64>() > 1_000);
    }
}

#[test]
fn charge_and_reserve_in_a_full_set_store_nothing_and_give_no_permit() {
    for policy in POLICIES {
        let lines = memory(6);
        let (table, limit) = table(&lines, policy);
        fill(&table, &limit, 0, |_| 8);
        let before = table.stats(0);
        let d = table.charge(&limit, 0, key(99), 1, None).unwrap();
        match policy {
            FullPolicy::Deny => assert_eq!((d.verdict as i32, d.permit), (1, Permit::NONE)),
            FullPolicy::Admit => assert_eq!((d.verdict as i32, d.permit), (0, Permit::NONE)),
            // Debts are inherited up to the cap: nothing is left to charge.
            FullPolicy::Inherit => assert_eq!((d.verdict as i32, d.permit.stored), (0, 0)),
            FullPolicy::Sampled => assert!(d.passes()),
        }
        if !matches!(policy, FullPolicy::Sampled) {
            assert_eq!(table.stats(0).live, before.live, "{policy:?}");
        }
    }
}

#[test]
fn a_shadow_limit_passes_flagged_where_a_full_set_refuses() {
    for policy in [FullPolicy::Deny, FullPolicy::Inherit] {
        let lines = memory(6);
        let (table, limit) = table(&lines, policy);
        let shadow = table.limit(&SPEC.shadow()).unwrap();
        fill(&table, &limit, 0, |_| 8);
        let before = table.stats(0);
        let mut counters = Counters::default();
        let request = Request { limit: &shadow, now: 0, cost: 1, room: 0 };
        let d = table.check_ex(&request, key(99), Some(&mut counters)).unwrap();
        assert_eq!((d.outcome(), d.flags), (Outcome::Conforming, Decision::SHADOW), "{policy:?}");
        // What would have been answered, and no permit.
        let refused = ask(&table, &limit, 0, key(99), 1).0;
        assert_eq!(
            (d.retry_after, d.permit, d.tracking),
            (refused.retry_after, Permit::NONE, refused.tracking)
        );
        assert!(!refused.passes() && d.departure == 0);
        assert_eq!((counters.shadow, counters.conforming, counters.non_conforming), (1, 0, 0));
        assert!(table.check_hash(&shadow, 0, key(99), 1).unwrap().passes());
        assert_eq!(Burst::new(&shadow, 0, &[key(99); 3]).check(&table, None, NextBurst::NONE), Ok(7));
        assert_eq!(table.stats(0), before, "{policy:?}: something was stored");
        // A charge has no shadow.
        assert!(
            !table.charge(&shadow, 0, key(99), 1, None).unwrap().passes() || policy == FullPolicy::Inherit
        );
    }
}

/// Under each policy a reservation of a limit in shadow mode stores what it stores without, and leaves at once.
#[test]
fn reservations_in_shadow_mode_leave_at_once_where_a_full_set_delays_or_refuses() {
    for policy in POLICIES {
        let (lines, seen) = ([memory(6), memory(6)], std::cell::RefCell::new([0; 4]));
        let spec = SPEC.max_delay(6 * T);
        let [plain, trial] = [spec, spec.shadow()]
            .iter()
            .zip(&lines)
            .map(|(spec, lines)| {
                let options = TableOptions::new(*spec).caller_hash().policy(policy);
                let table = Table::init(lines, &options).unwrap();
                let limit = table.limit(spec).unwrap();
                (table, limit)
            })
            .collect::<Vec<_>>()
            .try_into()
            .ok()
            .unwrap();
        cases(20, |rng| {
            let mut now = rng.below(1 << 20);
            for _ in 0..500 {
                now += rng.below(T / 2);
                let (hash, cost) = (key(rng.within(1, 40) as u32), rng.within(0, B + 1));
                let [(wanted, plainly), (got, tried)] = [&plain, &trial].map(|(table, limit)| {
                    let mut counters = Counters::default();
                    let d = table.reserve(limit, now, hash, cost, Some(&mut counters)).unwrap();
                    (d, counters)
                });
                assert_eq!(got, in_shadow(wanted, now, now), "{policy:?}");
                let held = u64::from(got.flags & Decision::SHADOW != 0);
                let of =
                    Counters { conforming: 1 - held, shadow: held, non_conforming: 0, never: 0, ..plainly };
                assert_eq!(tried, of, "{policy:?}");
                assert_eq!(plain.0.stats(now), trial.0.stats(now), "{policy:?}");
                let untracked = got.tracking == Tracking::Untracked;
                seen.borrow_mut()[held as usize * 2 + untracked as usize] += 1;
            }
        });
        for tag in 1..=40 {
            let left =
                [&plain, &trial].map(|(table, limit)| table.peek(limit, 1 << 20, key(tag), 0).unwrap());
            assert_eq!(left[0].remaining, left[1].remaining, "{policy:?}");
        }
        let seen = seen.into_inner();
        assert!(seen[0] > 100 && seen[2] > 100, "{policy:?}: {seen:?}");
        let refuses = matches!(policy, FullPolicy::Deny);
        assert!(!refuses || seen[3] > 100, "{policy:?}: {seen:?}");
    }
}

//! The pure functions, in every case if the word is small enough.

#![allow(clippy::arithmetic_side_effects)]

use super::*;
use crate::answer::{Place, Tracking};
use crate::limit::params::{random, Width, FLAGS_NOT_PLAIN};
use crate::limit::rate::build;
use crate::limit::LimitSpec;

const MASK: u64 = 0xffff;

#[test]
fn w16_decode_is_the_true_lead_for_every_word_and_every_window() {
    // The definition, unbounded: TAT - now in (-(2^16 - w), w]; 1..=w is a lead, the rest is none. All 2^16 differences
    // times all windows below half the span. Only the difference decides, so one `now` would do.
    for window in 1u64..1 << 15 {
        let now = window.wrapping_mul(0x9e37) & MASK;
        for ahead in window as i64 - 0xffff..=window as i64 {
            let true_lead = ahead.max(0) as u64;
            let tat = (now as i64 + ahead) as u64 & MASK;
            if lead_of(tat, now, MASK, window) != true_lead {
                panic!("tat {tat} now {now} window {window}");
            }
        }
    }
}

#[test]
fn w16_decode_depends_on_the_difference_alone_but_for_empty() {
    for now in [0u64, 1, 2, 255, 4_096, 32_767, 32_768, 65_534, 65_535] {
        for window in [1u64, 2, 3, 100, 4_095, 8_192, 32_766, 32_767] {
            for tat in 0..=MASK {
                let lead = lead_of(tat, now, MASK, window);
                assert_eq!(lead, lead_of(tat.wrapping_sub(now) & MASK, 0, MASK, window));
                // The caller's clock is wider than the word.
                assert_eq!(lead, lead_of(tat, now + (7 << 16), MASK, window));
                assert!(lead <= window);
                let whole = if tat == 0 { 0 } else { lead };
                assert_eq!(whole_lead(tat, now, MASK, window), whole);
            }
        }
    }
}

#[test]
fn w16_encoded_leads_decode_to_themselves() {
    for window in [1u64, 2, 100, 8_192, 32_767] {
        for now in (0..=MASK).step_by(251).chain([MASK]) {
            for lead in (1..=window).step_by(1 + window as usize / 1_024) {
                let word = encode(now, lead, MASK);
                assert!(word != 0 && word <= MASK);
                let decoded = whole_lead(word, now, MASK, window);
                // A computed 0 is stored as 1: one q-unit of false debt, never less than was charged.
                let zero = (now + lead) & MASK == 0;
                assert_eq!(
                    decoded,
                    if zero && lead < window {
                        lead + 1
                    } else if zero {
                        0
                    } else {
                        lead
                    }
                );
            }
        }
    }
}

#[test]
fn a_charge_fits_up_to_the_limit_and_is_too_much_by_the_rest() {
    for (lead, charge, limit) in (0u64..1 << 15).map(|n| (n & 31, n >> 5 & 31, n >> 10)) {
        let sum = lead + charge;
        assert_eq!(fits(lead, charge, limit), if sum <= limit { Ok(sum) } else { Err(sum - limit) });
    }
    // The largest that a limit can have: H + S below 2^63.
    let far = u64::MAX >> 1;
    assert_eq!((fits(far, far, far), fits(far, 0, far)), (Err(far), Ok(far)));
}

#[test]
fn w16_false_debts_are_the_documented_share_of_idle_times() {
    // A word left alone: of 2^16 idle times after it has drained, exactly `window` read as a debt.
    for window in [1u64, 100, 8_192] {
        let phantoms = (0..=MASK).filter(|idle| lead_of(1, 1 + idle, MASK, window) != 0).count();
        assert_eq!(phantoms as u64, window);
    }
}

fn some_params(seed: &mut u64) -> Params {
    loop {
        let shift = (random(seed) % 24) as i8 - 4;
        let spec =
            LimitSpec::new(1 + random(seed) % 999, 1 + random(seed) % 99_999_999, 1 + random(seed) % 500);
        let spec = match random(seed) % 4 {
            0 => spec.max_room(random(seed) % 9).soft(1),
            1 => spec.max_debt(random(seed) % 9).max_delay(random(seed) % 9_999),
            _ => spec,
        };
        if let Ok(p) = build(&spec, Width::CELL64, Some(shift)) {
            return p;
        }
    }
}

#[test]
fn plain_equals_check_where_it_decides() {
    let mut seed = 3;
    let (mut decided, mut other) = (0, 0);
    for _ in 0..300_000 {
        let mut p = some_params(&mut seed);
        if random(&mut seed) % 8 == 0 {
            p.flags = (random(&mut seed) % 8) as u8;
            p.plain = if p.flags & FLAGS_NOT_PLAIN == 0 { p.burst } else { 0 };
        }
        let near = (random(&mut seed) % (p.burst + 2)) * p.t_q;
        let lead = near.saturating_add(random(&mut seed) % 3).saturating_sub(1).min(p.window_q);
        let cost = match random(&mut seed) % 4 {
            0 => 0,
            1 => random(&mut seed),
            _ => random(&mut seed) % (p.burst + 2),
        };
        let room = random(&mut seed) % 3;
        let first = Op::new(&p, Kind::Check, cost, room).first_step();
        assert_eq!(first, check(&p, 0, cost, room), "{p:?} {cost} {room}");
        let full = check(&p, lead, cost, 0);
        match plain(&p, lead, cost) {
            Plain::Store(next) => {
                assert_eq!((full.answer.verdict, full.store), (Verdict::Conforming, Some(next)));
            }
            Plain::Wait(q) => {
                assert_eq!(
                    (full.answer.verdict, full.answer.wait, full.store),
                    (Verdict::NonConforming, q, None)
                );
            }
            Plain::Other => {
                assert!(cost == 0 || cost > p.burst || p.flags != 0);
                other += 1;
                continue;
            }
        }
        decided += 1;
    }
    assert!(decided > 100_000 && other > 10_000, "{decided} {other}");
}

#[test]
fn plain_word_is_plain_on_the_lead_of_a_word_encoded() {
    let mut seed = 4;
    let mut seen = [0; 5];
    for _ in 0..300_000 {
        let p = some_params(&mut seed);
        let now = match random(&mut seed) % 3 {
            0 => random(&mut seed),
            1 => 0u64.wrapping_sub(random(&mut seed) % (p.window_q + 2)),
            _ => 0u64.wrapping_sub((1 + random(&mut seed) % p.burst) * p.t_q),
        };
        let word = match random(&mut seed) % 4 {
            0 => 0,
            1 => random(&mut seed),
            2 => now.wrapping_add(p.window_q).wrapping_add(random(&mut seed) % 3),
            _ => now.wrapping_add(random(&mut seed) % p.burst_q).wrapping_sub(1),
        };
        let cost = random(&mut seed) % (p.burst + 2);
        let lead = whole_lead(word, now, u64::MAX, p.window_q);
        let (wanted, kind) = match plain(&p, lead, cost) {
            Plain::Store(next) if now.wrapping_add(next) == 0 => (None, 0),
            Plain::Store(next) => (Some(Ok(encode(now, next, u64::MAX))), 1 + (lead > 0) as usize),
            Plain::Wait(q) => (Some(Err(q)), 3),
            Plain::Other => (None, 4),
        };
        assert_eq!(plain_word(&p, word, now, u64::MAX, cost), wanted, "{p:?} {word} {now} {cost}");
        seen[kind] += 1;
    }
    assert!(seen.iter().all(|&n| n > 300), "{seen:?}");
}

#[test]
fn w16_plain_words_are_those_of_every_lead() {
    // Every word at some instants, with every plain cost; the clock is wider than the word.
    let p = Params {
        t_q: 900,
        burst: 7,
        plain: 7,
        burst_q: 6_300,
        horizon_q: 6_300,
        window_q: 8_000,
        ..some_params(&mut 9)
    };
    for now in [0, 1, 30_000, 65_535 - 6_300, 65_535 - 899, 65_535 - 900, 65_535, 65_536 * 3 - 1_800] {
        for word in 0..=MASK {
            for cost in 0..=8 {
                let lead = whole_lead(word, now, MASK, p.window_q);
                let wanted = match plain(&p, lead, cost) {
                    Plain::Store(next) if now.wrapping_add(next) & MASK == 0 => None,
                    Plain::Store(next) => Some(Ok(encode(now, next, MASK))),
                    Plain::Wait(q) => Some(Err(q)),
                    Plain::Other => None,
                };
                assert_eq!(plain_word(&p, word, now, MASK, cost), wanted, "{word} {now} {cost}");
            }
        }
    }
}

#[test]
fn no_step_overflows_at_the_ends_of_its_range() {
    // The widest limits that are accepted, every lead that a word can show, every cost. (Overflow panics here.)
    let specs = [
        LimitSpec::new(1, (1 << 62) - 1, 1).skew(0),
        LimitSpec::new(1, 1, (1 << 62) - 1).resolution(0).skew(0),
        LimitSpec::new(1, 1 << 30, 1 << 31).skew(1 << 61).max_debt(1 << 31).max_room(1 << 31),
        LimitSpec::new(1, 1 << 20, 1 << 40).max_delay((1 << 62) - 1).skew(0),
        LimitSpec::new(1, 1 << 20, 1 << 41).penalty(1 << 41).skew(1 << 60),
    ];
    for spec in specs {
        let p = build(&spec, Width::CELL64, spec.shift).unwrap_or_else(|e| panic!("{spec:?}: {e}"));
        for lead in [0, 1, p.t_q, p.burst_q, p.horizon_q, p.window_q] {
            for cost in [0, 1, 2, u32::MAX as u64, p.burst, p.burst.saturating_add(1), u64::MAX] {
                for step in [
                    check(&p, lead, cost, 0),
                    check(&p, lead, cost, u64::MAX),
                    peek(&p, lead, cost, p.room),
                    charge(&p, lead, cost),
                    reserve(&p, lead, cost, 0),
                    reserve(&p, lead, cost, 1),
                    reserve(&p, lead, cost, p.delay_q()),
                    reserve(&p, lead, cost, p.horizon_q),
                    refund(lead, p.burst_q),
                ] {
                    let a = step.answer;
                    assert!(a.lead <= p.window_q && step.store.is_none_or(|l| l <= p.window_q));
                    for now in [0, 1, u64::MAX] {
                        let d = a.decision(
                            &p,
                            now,
                            cost,
                            Tracking::Tracked,
                            Permit::NONE,
                            numbers(&p, a.lead, now),
                        );
                        assert!(
                            d.remaining <= p.burst
                                && (d.verdict == Verdict::Never || d.retry_after < 1 << 63)
                        );
                        assert_eq!(d.tokens() + d.level(), p.burst);
                    }
                }
            }
        }
    }
}

#[test]
fn credit_is_bounded_by_what_was_stored_and_what_is_left() {
    let mut seed = 5;
    for _ in 0..200_000 {
        let p = some_params(&mut seed);
        let now = random(&mut seed);
        let stored = random(&mut seed) % (p.horizon_q + 1);
        let left = (random(&mut seed) % (2 * p.horizon_q)) as i64 - (p.horizon_q / 2) as i64;
        let tat = p.now_q(now).wrapping_add(left as u64);
        let permit = Permit { tat, stored, tick: now, generation: 3, ..Permit::NONE };
        let back = credit(&p, &permit, 3, now, u64::MAX);
        let expected = if left <= 0 || left as u64 > p.horizon_q { 0 } else { stored.min(left as u64) };
        assert_eq!(back, expected);
        assert_eq!(credit(&Params { epoch: 1, ..p }, &permit, 3, now, u64::MAX), 0);
        assert_eq!(credit(&p, &permit, 4, now, u64::MAX), 0);
    }
}

#[test]
fn a_permit_older_than_the_horizon_credits_nothing_however_the_word_has_wrapped() {
    let mut seed = 6;
    let mut credited = 0;
    for _ in 0..200_000 {
        let p = some_params(&mut seed);
        let now = random(&mut seed);
        let stored = p.horizon_q / 2 + 1;
        let permit = Permit { tat: p.now_q(now).wrapping_add(stored), stored, tick: now, ..Permit::NONE };
        let horizon = p.ticks_up(p.horizon_q, 0);
        let skew = p.ticks_up(p.window_q - p.horizon_q, 0);
        // Narrow words wrap often within 64 bits of ticks.
        for mask in [u64::MAX, (1 << 51) - 1, (1 << 39) - 1] {
            let at = |tick: u64| credit(&p, &Permit { tick, ..permit }, 0, now, mask);
            if p.horizon_q < mask {
                assert_eq!(at(now), stored);
                credited += 1;
            }
            for older in [1, 2, random(&mut seed) >> 1, mask / 2 + 1, i64::MAX as u64 - horizon] {
                let age = horizon.saturating_add(older).min(i64::MAX as u64);
                assert_eq!(at(now.wrapping_sub(age)), 0, "{age} ticks old, {p:?}");
            }
            // A clock that has stepped back by more than the skew does not know the charge.
            if skew < i64::MAX as u64 {
                assert_eq!(at(now.wrapping_add(skew + 1)), 0, "{p:?}");
            }
        }
    }
    assert!(credited > 200_000, "{credited}");
}

/// Each rule of the steps by its numbers, at T = 10, a burst of 4 and all options.
#[test]
fn steps_by_their_numbers() {
    let spec = LimitSpec::new(1, 10, 4).max_room(2).max_delay(20).max_debt(6).epoch(3);
    let p = spec.resolution(0).build().expect("a limit").0;
    assert_eq!(p.t_q, 10);
    // A charge reports what it leaves, up to the cap of the debt.
    let made = charge(&p, 20, 3);
    assert_eq!((made.answer.lead, made.answer.stored, made.store), (50, 30, Some(50)));
    let capped = charge(&p, p.debt_q - 1, 3);
    assert_eq!((capped.answer.lead, capped.answer.stored), (p.debt_q, 1));
    // A call gets no more room than the limit has.
    for (lead, room, fits) in
        [(30, 0, true), (40, 0, false), (40, 1, true), (50, 2, true), (51, 2, false), (60, 9, false)]
    {
        let passes = check(&p, lead, 1, room).answer.verdict == Verdict::Conforming;
        assert_eq!(passes, fits, "lead {lead} room {room}");
    }
    // A peek reports what is, not what a charge would leave.
    assert_eq!((peek(&p, 20, 1, 0).answer.lead, peek(&p, 20, 1, 0).store), (20, None));
    // A departure is at most the maximum delay away.
    for (lead, verdict) in
        [(30, Verdict::Conforming), (50, Verdict::Conforming), (51, Verdict::NonConforming)]
    {
        let made = reserve(&p, lead, 1, 0).answer;
        assert_eq!(
            (made.verdict, made.wait),
            (verdict, if lead == 51 { 1 } else { lead - 30 }),
            "lead {lead}"
        );
    }
    // A permit belongs to its epoch.
    let place = Place { now: 1_000, mask: u64::MAX, generation: 1, slot: 0 };
    let permit = charge(&p, 0, 2).answer.permit(&p, place);
    let of = |epoch| Permit { epoch, ..permit };
    assert_eq!([3, 2, 4].map(|epoch| credit(&p, &of(epoch), 1, 1_000, u64::MAX)), [20, 0, 0]);
    assert_eq!(credit(&p, &permit, 2, 1_000, u64::MAX), 0, "another generation");
    // A refund gives back at most what is owed.
    assert_eq!((refund(15, 20).answer.lead, refund(15, 20).answer.stored), (0, 15));
}

fn of(spec: LimitSpec) -> Params {
    spec.build().expect("a limit").0
}

/// Every operation that stores a lead flags one above the soft threshold, but not one that equals it.
#[test]
fn a_charge_and_a_reservation_above_the_soft_threshold_are_flagged() {
    let p = of(LimitSpec::new(1, 1 << 20, 5).soft(3).max_debt(5).max_delay(5 << 20).resolution(0));
    let lead = |units: u64| units << 20;
    for (start, cost, soft) in [(0, 3, false), (0, 4, true), (2, 1, false), (2, 2, true), (5, 1, true)] {
        let flags = if soft { Decision::SOFT } else { 0 };
        assert_eq!(charge(&p, lead(start), cost).answer.flags, flags, "charge {cost} at {start}");
        assert_eq!(reserve(&p, lead(start), cost, 0).answer.flags, flags, "reserve {cost} at {start}");
    }
    assert_eq!(charge(&p, lead(3) + 1, 0).answer.flags, Decision::SOFT);
    assert_eq!(charge(&p, lead(3), 0).answer.flags, 0);
}

/// A limit without an interval leaves no debt to count in units.
#[test]
fn a_debt_under_no_limit_is_none_in_units() {
    let (mut none, new) = (of(LimitSpec::new(1, 1 << 20, 5)), of(LimitSpec::new(1, 1 << 10, 5)));
    none.t_q = 0;
    assert_eq!(change(&none, &new, 5, 0, Change::KeepUnits), (0, false));
    assert_ne!(change(&new, &new, 5, 0, Change::KeepUnits).0, 0);
}

/// A permit covers what lies above the claim, and a commit is no earlier than the claim.
#[test]
fn a_commit_lies_no_earlier_than_its_claim_and_a_permit_is_for_what_lies_above() {
    let p = of(LimitSpec::new(1, 1 << 20, 5));
    let op = Op::new(&p, Kind::Check, 1, 0);
    assert_eq!([(5, 3), (3, 5), (4, 4), (0, 9)].map(|(a, b)| op.commit_lead(a, b)), [5, 5, 4, 9]);
    assert_eq!([(5, 3), (3, 5), (4, 4), (0, 9)].map(|(a, b)| op.refundable(a, b)), [3, 3, 4, 0]);
}

/// A reservation that may not leave before `ahead` is charged from there on, and refused beyond the longest delay.
#[test]
fn a_reservation_ahead_is_charged_from_there_and_refused_beyond_the_delay() {
    let p = of(LimitSpec::new(1, 100, 2).max_delay(1_000).resolution(0));
    let made = |lead, ahead| reserve(&p, lead, 1, ahead);
    for (lead, ahead, next, wait) in [
        (0, 0, 100, 0),
        (0, 50, 150, 50),
        (50, 50, 150, 50),
        (90, 50, 190, 50),
        (400, 50, 500, 300),
        (0, 1_000, 1_100, 1_000),
    ] {
        let step = made(lead, ahead);
        assert_eq!((step.store, step.answer.wait), (Some(next), wait), "{ahead} ahead of {lead}");
    }
    for (lead, ahead, late) in
        [(0, 1_001, 1), (50, 1_500, 500), (0, u64::MAX, u64::MAX - 1_000), (1_150, 1_001, 50)]
    {
        let step = made(lead, ahead);
        assert_eq!(
            (step.store, step.answer.verdict),
            (None, Verdict::NonConforming),
            "{ahead} ahead of {lead}"
        );
        assert_eq!(step.answer.wait, late, "{ahead} ahead of {lead}");
    }
}

#[test]
fn the_first_step_of_any_operation_is_that_of_an_absent_key() {
    let mut seed = 3;
    for _ in 0..20_000 {
        let p = some_params(&mut seed);
        let (cost, amount) = (random(&mut seed) % (p.burst + 3), random(&mut seed) % 3 * (p.t_q / 2));
        for kind in [Kind::Check, Kind::Charge, Kind::Reserve, Kind::Refund] {
            let op = Op::new(&p, kind, cost, amount);
            assert_eq!(op.first_step(), op.step(0), "{op:?}");
        }
    }
}

//! Three-colour meters: published tables, refusals, clocks, words, figures and threads.

pub mod oracle;
mod properties;
mod rates_of_0;
mod told;
mod traffic;

use crate::common::{cases, Rng};
use oracle::{all_four, build, Rfc};
use tatcell::Colour::{Green, Red, Yellow};
use tatcell::{Colour, Meter, MeterError, MeterKind, MeterLimit, MeterSpec, Verdict};
use traffic::Traffic;

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Takes all that a meter gives at one instant, a unit at a time.
fn drain(meter: &Meter, limit: &MeterLimit, now: u64) {
    let passed = (0..20_000).take_while(|_| meter.check(limit, now, 1, Green).passes()).count();
    assert!(passed < 20_000, "a meter that has no end");
}

// ---- tables of others -----------------------------------------------------------------------------------------------

/// The table of DPDK's own test (app/test/test_meter.c): a fresh meter, one packet a second later.
#[test]
fn a_fresh_meter_gives_the_colours_of_dpdks_table() {
    for hz in [SECOND, 3_000_000_000, 1_000_000] {
        for rfc in all_four(46_000_000, 2048, 69_000_000, 4096, hz) {
            let limit = build(rfc.spec());
            let table = [
                (Green, [Green, Yellow, Yellow, Red]),
                (Yellow, [Yellow, Yellow, Yellow, Red]),
                (Red, [Red, Red, Red, Red]),
            ];
            for (pre, colours) in table {
                for (cost, colour) in [2047, 2049, 4095, 4097].into_iter().zip(colours) {
                    let meter = Meter::new();
                    let marking = meter.check(&limit, 7 * hz + hz, cost, pre);
                    assert_eq!(marking.colour, colour, "{rfc:?}: {cost} bytes that came {pre:?}");
                    assert_eq!(marking.passes(), colour != Red);
                    assert_eq!(meter.word() != 0, colour != Red, "{rfc:?}: red stored, or another did not");
                }
            }
        }
    }
}

#[test]
fn bursts_are_given_to_the_last_unit_and_not_one_more() {
    // Whole q-units a byte, so that charging a byte at a time rounds nothing.
    for rfc in all_four(125_000_000, 2048, 250_000_000, 4096, SECOND) {
        let limit = build(rfc.spec());
        let meter = Meter::new();
        let mut passed = [0u64; 3];
        for _ in 0..10_000 {
            passed[meter.check(&limit, SECOND, 1, Green).colour as usize] += 1;
        }
        // Of RFC 2698 the peak burst is paid by green packets, too.
        let yellow = if rfc.kind == MeterKind::Rfc2698 { 4096 - 2048 } else { 4096 };
        assert_eq!(passed, [2048, yellow, 10_000 - 2048 - yellow], "{rfc:?}");
    }
}

// ---- what is refused ------------------------------------------------------------------------------------------------

#[test]
fn meters_that_their_rfc_forbids_are_refused_by_name() {
    use MeterError::*;
    let cases = [
        (MeterSpec::rfc2697(1, 0, 0, SECOND), ZeroBurst),
        (MeterSpec::rfc2697(0, 0, 0, SECOND), ZeroBurst),
        (MeterSpec::rfc2697(1, 1, 1, 0), ZeroFrequency),
        (MeterSpec::rfc2697(1, 1, 1, SECOND).coupled(), BadCoupling),
        (MeterSpec::rfc2698(1, 1, 0, 1, SECOND), PeakBelowCommitted),
        (MeterSpec::rfc2698(0, 1, 0, 0, SECOND), ZeroBurst),
        (MeterSpec::rfc2698(1, 0, 1, 1, SECOND), ZeroBurst),
        (MeterSpec::rfc2698(1, 1, 1, 0, SECOND), ZeroBurst),
        (MeterSpec::rfc2698(2, 1, 1, 1, SECOND), PeakBelowCommitted),
        (MeterSpec::rfc2698(1, 1, 1, 1, 0), ZeroFrequency),
        (MeterSpec::rfc2698(1, 1, 1, 1, SECOND).coupled(), BadCoupling),
        (MeterSpec::rfc4115(0, 0, 0, 0, SECOND), ZeroRate),
        (MeterSpec::rfc4115(1, 0, 1, 1, SECOND), ZeroBurst),
        (MeterSpec::rfc4115(1, 1, 1, 0, SECOND), ZeroBurst),
        (MeterSpec::rfc4115(1, 1, 1, 1, 0), ZeroFrequency),
        (MeterSpec::rfc4115(1, 0, 1, 1, SECOND).coupled(), ZeroBurst),
        // What no word has room for.
        (MeterSpec::rfc2697(0, 1 << 20, 1 << 44, SECOND), NotRepresentable),
        (MeterSpec::rfc2697(0, 1 << 44, 1 << 20, SECOND), HorizonTooLong),
        (MeterSpec::rfc2698(0, 1 << 44, 1, 1, SECOND), NotRepresentable),
        (MeterSpec::rfc4115(1, 1, 0, u64::MAX, SECOND), NotRepresentable),
        (MeterSpec::rfc2697(u64::MAX, 1 << 63, 1 << 63, SECOND), NotRepresentable),
        (MeterSpec::rfc2698(1, u64::MAX, u64::MAX, u64::MAX, SECOND), NotRepresentable),
        (MeterSpec::rfc4115(1, 1 << 40, u64::MAX >> 1, 1, SECOND), NotRepresentable),
        (MeterSpec::rfc2697(1_000_000, 1500, 1500, SECOND).skew(u64::MAX), HorizonTooLong),
        (MeterSpec::rfc2697(12_500_000_000, 4_000_000, 4_000_000, SECOND).span(1 << 50), SpanTooShort),
    ];
    for (spec, error) in cases {
        assert_eq!(spec.build(), Err(error), "{spec:?}");
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn meters_that_their_rfc_allows_are_made() {
    for spec in [
        MeterSpec::rfc2697(1, 1, 0, SECOND),
        MeterSpec::rfc2697(1, 0, 1, SECOND),
        MeterSpec::rfc2697(0, 1, 0, SECOND),
        MeterSpec::rfc2697(0, 0, 1, SECOND),
        MeterSpec::rfc2697(0, (1 << 43) - (1 << 19) - 1, 1 << 19, SECOND),
        MeterSpec::rfc2698(0, 0, 0, 1, SECOND),
        MeterSpec::rfc2698(0, 0, 1, 1, SECOND),
        MeterSpec::rfc2698(0, 1, 1, 1, SECOND),
        MeterSpec::rfc4115(0, 1, 0, 0, SECOND),
        MeterSpec::rfc4115(0, 0, 0, 1, SECOND).coupled(),
        MeterSpec::rfc2698(1, 1, 1, 1, SECOND),
        MeterSpec::rfc2698(1_000, 9_000, 1_000, 1, SECOND),
        MeterSpec::rfc4115(1, 1, 0, 0, SECOND),
        MeterSpec::rfc4115(0, 0, 1, 1, SECOND),
        MeterSpec::rfc4115(0, 0, 1, 1, SECOND).coupled(),
        MeterSpec::rfc4115(1, 1, 0, 1, SECOND).coupled(),
        MeterSpec::rfc2697(1, 1, 1, 1),
        MeterSpec::rfc2697(u64::MAX, 1, 1, u64::MAX),
    ] {
        let info = build(spec).info();
        assert!(info.word_bits >= 20 && info.span > 0 && info.horizon > 0, "{spec:?}: {info:?}");
    }
}

/// MEF 10.3: with an excess rate of 0 the coupled meter is that of RFC 2697.
#[test]
fn a_coupled_meter_without_an_excess_rate_is_rfc_2697() {
    let coupled = build(MeterSpec::rfc4115(1_000_000, 1500, 0, 9000, SECOND).coupled());
    assert_eq!(coupled, build(MeterSpec::rfc2697(1_000_000, 1500, 9000, SECOND)));
    assert_eq!(coupled.info().kind, MeterKind::Rfc2697);
}

// ---- coupling -------------------------------------------------------------------------------------------------------

/// The coupling flag by hand: 1 byte a microsecond each, C 1000, E 4000.
#[test]
fn what_overflows_a_coupled_committed_bucket_fills_the_excess_bucket() {
    let spec = MeterSpec::rfc4115(1_000_000, 1000, 1_000_000, 4000, SECOND);
    for (spec, rate) in [(spec, 1), (spec.coupled(), 2)] {
        let (limit, meter) = (build(spec), Meter::new());
        let us = 1_000u64;
        let mark = |now: u64, cost, pre| meter.check(&limit, now * us, cost, pre).colour;
        assert_eq!(mark(0, 4000, Yellow), Yellow); // E is empty, C full: all of C's rate overflows
        assert_eq!(mark(100, 100 * rate + 1, Yellow), Red);
        assert_eq!(mark(100, 100 * rate, Yellow), Yellow);
        assert_eq!(mark(100, 1000, Green), Green); // now C is empty, and takes its rate for itself
        assert_eq!(mark(600, 501, Yellow), Red);
        assert_eq!(mark(600, 500, Yellow), Yellow);
        assert_eq!(mark(1100, 500, Yellow), Yellow); // E has 0, C 1000: full since now
        assert_eq!(mark(1200, 100 * rate + 1, Yellow), Red);
        assert_eq!(mark(1200, 100 * rate, Yellow), Yellow);
    }
}

// ---- clocks ---------------------------------------------------------------------------------------------------------

/// rte_meter fills its buckets when the clock is one cycle behind; these do not, up to the skew.
#[test]
fn a_clock_that_steps_back_refills_nothing() {
    for rfc in all_four(46_000_000, 2048, 69_000_000, 4096, 3 * SECOND) {
        let limit = build(rfc.spec());
        let skew = limit.info().skew;
        for back in [1, 2, 1_000, skew / 2, skew - 1, skew] {
            let (meter, now) = (Meter::new(), 1 << 45);
            drain(&meter, &limit, now);
            let word = meter.word();
            for cost in [1, 64, 2048, 4096] {
                for pre in [Green, Yellow] {
                    assert_eq!(
                        meter.check(&limit, now - back, cost, pre).colour,
                        Red,
                        "{rfc:?}, {back} ticks back"
                    );
                }
            }
            assert_eq!(meter.word(), word);
        }
    }
}

/// A bucket that drained between two charges does not drain again for a clock between them.
#[test]
fn a_bucket_that_was_full_at_a_charge_owes_at_older_readings() {
    for rfc in all_four(1_000_000, 1000, 1_000_000, 1000, SECOND) {
        let (limit, meter) = (build(rfc.spec()), Meter::new());
        assert_eq!(meter.check(&limit, SECOND, 1000, Green).colour, Green);
        // Both buckets are full again, and this charge says so.
        assert!(meter.check(&limit, 2 * SECOND, 1, Green).passes());
        // By a clock half a millisecond behind each has 500 units less; the newer clock had them already.
        let passed =
            (0..4000).filter(|_| meter.check(&limit, 2 * SECOND - 500_000, 1, Green).passes()).count();
        let full = if matches!(rfc.kind, MeterKind::Rfc2698) { 1000 } else { 2000 };
        assert!(passed < full - 500, "{rfc:?}: {passed} of {full}");
    }
}

#[test]
fn any_start_of_the_clock_and_its_wrap_give_the_same_colours() {
    for rfc in all_four(125_000_000, 9000, 250_000_000, 20_000, SECOND) {
        let limit = build(rfc.spec());
        let info = limit.info();
        let range = info.span + info.horizon + info.skew;
        let run = |start: u64| {
            let (meter, mut rng) = (Meter::new(), Rng(5));
            let mut traffic = Traffic::new(rfc, true, info.horizon, 0);
            let each = |_| {
                let p = traffic.next(&mut rng);
                meter.check(&limit, start.wrapping_add(p.now), p.cost, p.pre)
            };
            (0..20_000).map(each).collect::<Vec<_>>()
        };
        let first = run(1 << 40);
        for start in
            [0, 1, range - 1, range - info.horizon, range * 77 - 100, u64::MAX - 1, u64::MAX - 100_000]
        {
            assert!(run(start) == first, "{rfc:?} from {start}");
        }
    }
}

/// An idle meter is full up to its span, and beyond it owes falsely for at most the stated share of idle times and for
/// at most H + S; a sweep in between leaves nothing of that.
#[test]
fn idle_meters_owe_nothing_within_the_span_and_rarely_beyond() {
    for rfc in all_four(12_500_000_000, 1_000_000, 18_750_000_000, 4_000_000, SECOND) {
        let limit = build(rfc.spec());
        let info = limit.info();
        let range = info.span + info.horizon + info.skew;
        let (mut rng, mut wrong, n) = (Rng(9), 0, 100_000);
        for _ in 0..n {
            let meter = Meter::new();
            let now = rng.next() >> 8;
            for i in 0..20 {
                let _ = meter.check(&limit, now + i * 100, rng.within(64, 9000), Green);
            }
            let last = now + 2_000;
            let full = |at: u64| meter.peek(&limit, at, 1_000_000, Green).colour == Green;
            assert!(
                full(last + rng.within(info.horizon, info.span - info.horizon)),
                "{rfc:?}: owes within its span"
            );
            let late = last + range + rng.below(range);
            if !full(late) {
                wrong += 1;
                assert!(full(late + info.horizon + info.skew), "{rfc:?}: a false debt longer than H + S");
            }
            // From here on the word is looked at no more: one sweep within each interval.
            let mut at = last;
            while late - at > info.sweep_interval {
                at += info.sweep_interval;
                meter.sweep(&limit, at);
            }
            assert_eq!(meter.word(), 0);
        }
        let share = (info.horizon + info.skew) as f64 / range as f64;
        let bound = n as f64 * share + 6.0 * (n as f64 * share).sqrt();
        assert!(wrong > 0 && (wrong as f64) < bound, "{rfc:?}: {wrong} of {n}, bound {bound}");
    }
}

/// A sweep forgets nothing that a reading within the skew could still see.
#[test]
fn a_sweep_changes_no_colour() {
    for rfc in all_four(46_000_000, 2048, 69_000_000, 4096, SECOND) {
        let limit = build(rfc.spec());
        let info = limit.info();
        let (meter, now) = (Meter::new(), 1 << 45);
        assert!(!meter.sweep(&limit, now), "nothing to forget");
        drain(&meter, &limit, now);
        // The word's later time: when everything has drained.
        let drained = (now..now + 2 * info.horizon)
            .find(|&at| meter.peek(&limit, at, 2048, Green).colour == Green)
            .expect("drains");
        for at in [now, drained, drained + info.skew / 2] {
            assert!(!meter.sweep(&limit, at), "{rfc:?}: forgotten while a clock can see it");
        }
        assert!(!meter.sweep(&limit, now - info.skew), "{rfc:?}: forgotten by an old clock");
        assert!(meter.sweep(&limit, now + info.horizon + info.skew + 1));
        assert_eq!(meter.word(), 0);
    }
}

// ---- looks and words ------------------------------------------------------------------------------------------------

#[test]
fn looks_change_nothing_and_answer_as_the_check_would() {
    cases(200, |rng| {
        let rfc = all_four(46_000_000, 2048, 69_000_000, 4096, SECOND)[rng.below(4) as usize];
        let (limit, meter) = (build(rfc.spec()), Meter::new());
        let mut now = 0;
        for _ in 0..200 {
            now += rng.below(30_000);
            let (cost, pre) = (rng.below(5000), rng.pick(&[Green, Yellow, Red]));
            let word = meter.word();
            let looked = meter.peek(&limit, now, cost, pre);
            let _ = meter.check(&limit, now, 0, pre);
            assert_eq!(meter.word(), word, "a look wrote");
            let marked = meter.check(&limit, now, cost, pre);
            assert_eq!(marked, looked);
            assert_eq!(meter.word() != word, marked.passes() && cost != 0, "red wrote, or a charge did not");
        }
        meter.reset();
        assert_eq!(meter.word(), 0);
        assert_eq!(meter.check(&limit, now, 2048, Green).colour, Green);
    });
}

#[test]
fn never_is_for_costs_above_every_burst_that_the_colour_may_use() {
    let verdicts = |rfc: &Rfc, cost, pre| Meter::new().check(&build(rfc.spec()), SECOND, cost, pre).verdict;
    for rfc in all_four(46_000_000, 4096, 69_000_000, 2048, SECOND) {
        let peak = rfc.kind == MeterKind::Rfc2698;
        for (cost, pre, verdict) in [
            (2048, Green, Verdict::Conforming),
            (4096, Green, if peak { Verdict::Never } else { Verdict::Conforming }),
            (4097, Green, Verdict::Never),
            (u64::MAX, Green, Verdict::Never),
            (2048, Yellow, Verdict::Conforming),
            (2049, Yellow, Verdict::Never),
            (u64::MAX, Yellow, Verdict::Never),
            (0, Red, Verdict::NonConforming),
            (u64::MAX, Red, Verdict::NonConforming),
        ] {
            assert_eq!(verdicts(&rfc, cost, pre), verdict, "{rfc:?}: {cost} that came {pre:?}");
        }
    }
}

/// What an empty bucket refuses now is not refused for ever.
#[test]
fn red_for_want_of_tokens_is_not_never() {
    for rfc in all_four(46_000_000, 2048, 69_000_000, 4096, SECOND) {
        let (limit, meter) = (build(rfc.spec()), Meter::new());
        drain(&meter, &limit, SECOND);
        for (cost, verdict) in
            [(2048, Verdict::NonConforming), (2049, Verdict::NonConforming), (4097, Verdict::Never)]
        {
            assert_eq!(meter.check(&limit, SECOND, cost, Green).verdict, verdict, "{rfc:?}: {cost}");
        }
    }
}

/// Any 64-bit value is a word: no panic, red stores nothing, and what is stored is a state like any other, which drains
/// within H + S.
#[test]
fn hostile_words_are_words() {
    cases(64, |rng| {
        let rfc = all_four(46_000_000, 2048, 69_000_000, 4096, 3 * SECOND)[rng.below(4) as usize];
        let limit = build(rfc.spec());
        let info = limit.info();
        for _ in 0..10_000 {
            let now = rng.scaled(64);
            let meter = Meter::from_word(rng.scaled(64));
            let word = meter.word();
            let marking = meter.check(&limit, now, rng.within(1, 5000), rng.pick(&[Green, Yellow, Red]));
            assert_eq!(meter.word() != word, marking.passes());
            let later = now.wrapping_add(2 * (info.horizon + info.skew)).wrapping_add(1);
            if marking.passes() {
                assert_eq!(meter.peek(&limit, later, 2048, Green).colour, Green, "{word:#x} at {now}");
            }
        }
    });
}

// ---- figures --------------------------------------------------------------------------------------------------------

/// Meters of real links fit, with these words: rates in B/s, ticks in ns, one minute of span asked for.
#[test]
fn links_of_up_to_400_gbit_fit_one_word() {
    let minute = 60 * SECOND;
    let rows = [
        (MeterSpec::rfc2697(12_500_000_000, 4_000_000, 4_000_000, SECOND), 41, 4),
        (MeterSpec::rfc2697(1_250_000_000, 1_000_000, 1_000_000, SECOND), 40, 4),
        (MeterSpec::rfc2698(8_000, 8_000, 125_000_000, 64_000, SECOND), 35, -1),
    ];
    for (spec, word_bits, resolution) in rows {
        let info = build(spec.span(minute)).info();
        assert!(info.span >= minute);
        assert_eq!((info.word_bits, info.resolution), (word_bits, resolution), "{spec:?}");
    }
    let fast = build(MeterSpec::rfc2697(50_000_000_000, 4_000_000, 4_000_000, SECOND)).info();
    assert!(fast.span >= 8 * SECOND && fast.committed_rounding_ppb < SECOND, "{fast:?}");
    // The default span is a wish: bursts this large leave two seconds, and are refused only who asks for more.
    let large = MeterSpec::rfc2697(50_000_000_000, 64_000_000, 64_000_000, SECOND);
    let span = build(large).info().span;
    assert!((2 * SECOND..8 * SECOND).contains(&span), "{span}");
    assert!(build(large.span(span)).info().span == span);
    assert_eq!(large.span(span + 1).build(), Err(MeterError::SpanTooShort));
}

// ---- threads --------------------------------------------------------------------------------------------------------

/// Four threads on one meter and one counting clock: no envelope of any RFC is broken, and the committed one is used.
#[cfg(target_has_atomic = "64")] // their clock and their sums
#[test]
fn threads_on_one_meter_break_no_envelope() {
    use std::sync::atomic::{AtomicU64, Ordering};

    let (threads, packets) = (4, 20_000);
    for (i, rfc) in all_four(1_250_000_000, 20_000, 1_875_000_000, 30_000, SECOND).into_iter().enumerate() {
        for aware in [false, true] {
            // A skew of seconds: a thread may be stopped for long beside a clock that others drive.
            let limit = build(rfc.spec().span(600 * SECOND));
            let (meter, clock, passed) =
                (Meter::new(), AtomicU64::new(1 << 40), [const { AtomicU64::new(0) }; 2]);
            std::thread::scope(|scope| {
                for seed in 0..threads {
                    let (meter, clock, passed, limit) = (&meter, &clock, &passed, &limit);
                    scope.spawn(move || {
                        let mut rng = Rng(seed);
                        for _ in 0..packets {
                            // About three times what is committed.
                            let now = clock.fetch_add(200, Ordering::Relaxed);
                            let pre = if aware && rng.one_in(4) { Yellow } else { Green };
                            let cost = rng.within(64, 1500);
                            let marking = meter.check(limit, now, cost, pre);
                            if marking.passes() {
                                passed[marking.colour as usize].fetch_add(cost, Ordering::Relaxed);
                            }
                        }
                    });
                }
            });
            let ticks = (clock.into_inner() - 200 - (1 << 40)) as u128;
            let [green, yellow] = passed.map(AtomicU64::into_inner);
            let most = |burst: u64, rate: u64| (burst as u128 + ticks * rate as u128 / SECOND as u128) as u64;
            let committed = most(rfc.cbs, rfc.cir);
            assert!(green <= committed, "{rfc:?}: {green} green of {committed}");
            assert!(green > committed / 10 * 9, "{rfc:?}: {green} green of {committed}");
            let (yellows, both) = match i {
                0 => (most(rfc.burst2, rfc.cir), most(rfc.cbs + rfc.burst2, rfc.cir)),
                1 => (u64::MAX, most(rfc.burst2, rfc.rate2)),
                2 => (most(rfc.burst2, rfc.rate2), u64::MAX),
                _ => {
                    let both = rfc.cir + rfc.rate2;
                    (most(rfc.burst2, both), most(rfc.cbs + rfc.burst2, both))
                }
            };
            assert!(
                yellow > 0 && yellow <= yellows && green + yellow <= both,
                "{rfc:?}: {green} and {yellow}"
            );
        }
    }
}

#[test]
fn colours_order_from_good_to_bad() {
    assert!(Green < Yellow && Yellow < Red);
    assert_eq!([Green, Yellow, Red].map(|colour: Colour| colour as u8), [0, 1, 2]);
}

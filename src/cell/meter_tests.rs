//! The word of a meter: exhaustively for a word of few bits, and against debts that were never packed.

use std::vec::Vec;

use super::{state_of, word_of, ExclusiveMeter, Meter};
use crate::algorithms::meters::{self, step, Debts};
use crate::answer::Colour::{self, Green, Red, Yellow};
use crate::limit::meter::params::{MeterParams, FLAG_COUPLED};
use crate::limit::{MeterKind, MeterSpec};

const KINDS: [MeterKind; 3] = [MeterKind::Rfc2697, MeterKind::Rfc2698, MeterKind::Rfc4115];

fn spec(kind: MeterKind, [cir, cbs, rate2, burst2]: [u64; 4], hz: u64) -> MeterSpec {
    match kind {
        MeterKind::Rfc2697 => MeterSpec::rfc2697(cir, cbs, burst2, hz),
        MeterKind::Rfc2698 => MeterSpec::rfc2698(cir, cbs, rate2, burst2, hz),
        MeterKind::Rfc4115 => MeterSpec::rfc4115(cir, cbs, rate2, burst2, hz),
    }
}

fn made(kind: MeterKind, numbers: [u64; 4], hz: u64, coupled: bool) -> MeterParams {
    let spec = spec(kind, numbers, hz);
    let spec = if coupled { spec.coupled() } else { spec };
    spec.build().expect("a meter").0
}

/// Makes a meter whose word has 10 bits of time; the difference below them uses 5 of its 54 bits. Bursts of 12 and 9
/// units, one q-unit and tick each.
fn narrow(kind: MeterKind, coupled: bool) -> MeterParams {
    let p = made(kind, [1, 12, 1, 9], 1, coupled);
    let (hc, h2) = (12, 9);
    let horizon_q = if kind == MeterKind::Rfc2697 { hc + h2 } else { hc };
    let diff_bits = 54;
    assert_eq!((p.shl, p.shr), (p.shl, 0));
    // T = 1 q-unit exactly.
    let bucket = |burst| crate::limit::meter::params::Bucket { burst, m: 1, add: 0, k: 0 };
    MeterParams {
        committed: bucket(hc),
        second: bucket(h2),
        horizon_q,
        window_q: horizon_q + 40,
        bias: if kind == MeterKind::Rfc2697 { 0 } else { hc },
        diff_bits,
        shl: 0,
        shr: 0,
        ..p
    }
}

/// Every word of 10 bits of time, with every difference that a charge can store, at every reading of the clock: the
/// debts are those of the definition, and a word reads back as the debts that were stored.
#[test]
fn every_narrow_word_reads_as_it_was_written() {
    const RANGE: u64 = 1 << 10;
    for (kind, coupled) in KINDS.map(|kind| (kind, false)).into_iter().chain([(MeterKind::Rfc4115, true)]) {
        let p = narrow(kind, coupled);
        let window = p.window_q;
        for (c, s) in (0..=12u64).flat_map(|c| (0..=9u64).map(move |s| (c, s))) {
            // In RFC 2697 the second debt is that of both buckets.
            let own = if kind == MeterKind::Rfc2697 { c + s } else { s };
            let written = Debts { committed: c, second: own };
            for at in 0..RANGE {
                let word = word_of(&p, meters::state::<true>(&p, written), at);
                assert_ne!(word, 0);
                let shifted = (word >> 54) != (at + c.max(own)) % RANGE;
                // The one word that would be 0 is stored a q-unit later.
                let later = c.max(own) + shifted as u64;
                assert!(!shifted || word == 1 << 54);
                for passed in (0..RANGE).step_by(if at % 97 == 0 { 1 } else { 61 }) {
                    let found = meters::debts::<true>(&p, state_of(&p, word, (at + passed) % RANGE));
                    // Seen from now, the later time lies ahead, or behind, or around the wrap.
                    let lead = (later + RANGE - passed) % RANGE;
                    let live = lead >= 1 && lead <= window;
                    let drained = later as i64 - lead as i64;
                    let want = |debt: u64| if live { (debt + shifted as u64) as i64 - drained } else { 0 };
                    let mut second = want(own);
                    if coupled && live && want(c) < 0 {
                        second += want(c); // the rates are equal
                    }
                    let wanted = Debts { committed: want(c).max(0) as u64, second: second.max(0) as u64 };
                    assert_eq!(found, wanted, "{kind:?} {written:?} stored at {at}, read {passed} later");
                }
            }
        }
    }
}

/// Debts as 128-bit numbers with the time of the last charge: the same rounding, but no word and no window.
#[derive(Clone, Copy)]
struct Unpacked {
    debts: [i128; 2],
    last: u64,
    used: bool,
}

impl Unpacked {
    fn step(&mut self, p: &MeterParams, now_q: u64, cost: u64, pre: Colour) -> Colour {
        let passed = if self.used { now_q as i128 - self.last as i128 } else { 0 };
        let [mut l1, mut l2] = self.debts.map(|debt| debt - passed);
        if p.flags & FLAG_COUPLED != 0 && l1 < 0 && self.used {
            l2 -= (-l1 * p.ratio as i128) >> 32;
        }
        (l1, l2) = (l1.max(0), l2.max(0));
        let fits = |i: usize, debt: i128| {
            let bucket = [p.committed, p.second][i];
            let (m, k) = (bucket.m as i128, bucket.k as u32);
            // In exact terms: debt + cost * M / 2^k <= B * M / 2^k.
            cost <= bucket.burst && (debt << k) + cost as i128 * m <= bucket.burst as i128 * m
        };
        let charge = |i: usize| {
            let bucket = [p.committed, p.second][i];
            (cost as i128 * bucket.m as i128 + bucket.add as i128) >> bucket.k
        };
        let single = p.kind == 2697;
        let second = if single { fits(1, l2 - l1) } else { fits(1, l2) };
        let colour = match (p.kind, pre) {
            (_, Red) => Red,
            (2698, _) if !second => Red,
            (2698, Green) if fits(0, l1) => Green,
            (2698, _) => Yellow,
            (_, Green) if fits(0, l1) => Green,
            _ if second => Yellow,
            _ => Red,
        };
        if colour != Red {
            l1 += if colour == Green { charge(0) } else { 0 };
            l2 += match (p.kind, colour) {
                (2697, Green) => charge(0),
                (2698, _) | (_, Yellow) => charge(1),
                _ => 0,
            };
            *self = Unpacked { debts: [l1, l2], last: now_q, used: true };
        }
        colour
    }
}

/// The packed word and the unpacked debts mark every packet the same: packing loses and makes up nothing.
#[test]
fn a_packed_word_marks_as_unpacked_debts_do() {
    let mut random = 7u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let rates = [8_000, 46_000_000, 1_250_000_000, 50_000_000_000];
    for (kind, coupled) in KINDS.map(|kind| (kind, false)).into_iter().chain([(MeterKind::Rfc4115, true)]) {
        for (rate, numbers) in rates.iter().flat_map(|rate| {
            [(9_000, 9_000), (4_000_000, 500_000)].map(|(b1, b2)| (*rate, [*rate, b1, rate / 2 * 3, b2]))
        }) {
            let p = made(kind, numbers, 3_000_000_000, coupled);
            let mut unpacked = Unpacked { debts: [0; 2], last: 0, used: false };
            let (mut word, mut now, mut colours) = (0, 1u64 << 50, [0u32; 3]);
            let mut charged = now;
            for i in 0..20_000 {
                let cost = 1 + next(9_000);
                let fair = (cost as u128 * 3_000_000_000 / rate as u128) as u64;
                now += match next(200) {
                    0 => next(fair * 4_000 + 1).min(p.ticks_up(p.horizon_q) * 8),
                    1..100 => 0,
                    _ => next(fair + 2),
                };
                // A word that rests this long must have been swept.
                if now - charged > p.sweep_interval() {
                    (word, charged) = (0, now);
                }
                // One reading in fifty is old, by less than the skew.
                let back = if next(50) == 0 { next(p.ticks_up(p.horizon_q) / 8 + 1) } else { 0 };
                let now_q = p.now_q(now - back);
                let pre = [Green, Green, Yellow, Red][next(4) as usize];
                let (marking, stored) = step(&p, state_of(&p, word, now_q), cost, pre);
                let state = unpacked.step(&p, now_q, cost, pre);
                assert_eq!(
                    marking.colour, state,
                    "{kind:?} {coupled} {numbers:?}, packet {i}: {cost} {pre:?}"
                );
                if let Some(state) = stored {
                    assert!(state.difference >> p.diff_bits == 0, "the difference left its field");
                    (word, charged) = (word_of(&p, state, now_q), now);
                }
                colours[marking.colour as usize] += 1;
            }
            assert!(colours.iter().all(|&n| n > 300), "{kind:?} {numbers:?}: {colours:?}");
        }
    }
}

/// Parameters of every sort keep the promises of their module: every sum of a step fits.
#[test]
fn parameters_keep_their_bounds() {
    let numbers: Vec<u64> =
        [1u64, 3, 8_000, 46_000_000, 12_500_000_000, 1 << 40, u64::MAX].into_iter().collect();
    let (mut good, mut bad) = (0, 0);
    for kind in KINDS {
        for cir in &numbers {
            for rate2 in &numbers {
                for burst in [1, 1500, 4_000_000, 1 << 45] {
                    for hz in [1, 1_000, 1_000_000_000, u64::MAX] {
                        let Ok(limit) = spec(kind, [*cir, burst, *rate2, burst / 2 + 1], hz).build() else {
                            bad += 1;
                            continue;
                        };
                        let p = limit.0;
                        good += 1;
                        assert!(p.diff_bits <= 44 && p.window_q < 1 << (63 - p.diff_bits), "{p:?}");
                        assert!((p.window_q as u128) << p.shr < 1 << 63, "{p:?}");
                        for bucket in [p.committed, p.second] {
                            let all = bucket.burst as u128 * bucket.m as u128;
                            assert!(all + (1 << bucket.k) < 1 << 62 && bucket.add < 1 << bucket.k, "{p:?}");
                            // A charge is at least what the units cost, and less than one q-unit more.
                            for n in [1, bucket.burst / 2, bucket.burst] {
                                let exact = n as u128 * bucket.m as u128;
                                let charged = (bucket.charge(n) as u128) << bucket.k;
                                assert!(
                                    charged + n as u128 >= exact && charged < exact + (1 << bucket.k),
                                    "{p:?}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(good > 500 && bad > 100, "{good} {bad}");
}

/// Rivals mark this many packets while one is being marked: all are in the word at the end, except one that gave up.
#[test]
fn a_packet_that_a_rival_overtakes_is_marked_on_what_the_rival_left() {
    let limit = MeterSpec::rfc2697(1, 100, 100, 1).build().expect("a meter");
    let left_of = |meter: &Meter| (0..=100).rev().find(|n| meter.peek(&limit, 0, *n, Green).colour == Green);
    for rivals in 0..=u64::from(crate::sync::MAX_LOST) {
        let (meter, mut left) = (Meter::new(), rivals);
        let charged = |word| {
            let (_, state) = step(&limit.0, state_of(&limit.0, word, 0), 50, Green);
            word_of(&limit.0, state.expect("room for it"), 0)
        };
        let done = meter.update(|word| {
            if left > 0 {
                left -= 1;
                assert_eq!(meter.check(&limit, 0, 1, Green).colour, Green);
            }
            ((), Some(charged(word)))
        });
        let own = if rivals < u64::from(crate::sync::MAX_LOST) { 50 } else { 0 };
        assert_eq!((done.is_some(), left_of(&meter)), (own == 50, Some(100 - rivals - own)), "{rivals} lost");
    }
}

/// With one owner and without: the same colours, the same words.
#[test]
fn a_meter_with_one_owner_is_the_same_meter() {
    let mut random = 1u64;
    let mut below = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    for kind in KINDS {
        let limit = spec(kind, [1_000, 3_000, 2_000, 4_000], 1_000_000).build().expect("a meter");
        let (shared, mut owned) = (Meter::new(), ExclusiveMeter::new());
        let (mut now, mut seen) = (1 << 40, [0; 3]);
        for step in 0..20_000 {
            now += below(1_000_000) * below(2);
            let (bytes, colour) = (below(1_600), [Green, Yellow, Red][below(3) as usize]);
            assert_eq!(owned.peek(&limit, now, bytes, colour), shared.peek(&limit, now, bytes, colour));
            let marking = shared.check(&limit, now, bytes, colour);
            assert_eq!(owned.check(&limit, now, bytes, colour), marking, "{kind:?}, step {step}");
            seen[marking.colour as usize % 3] += 1;
            match below(200) {
                0 => {
                    shared.reset();
                    owned.reset();
                }
                1 => {
                    now += 1 << 50;
                    assert_eq!(owned.sweep(&limit, now), shared.sweep(&limit, now));
                }
                2 => owned = ExclusiveMeter::from_word(shared.word()),
                _ => {}
            }
            assert_eq!(owned.word(), shared.word(), "{kind:?}, step {step}");
        }
        assert!(seen.iter().all(|&n| n > 500), "{kind:?}: {seen:?}");
    }
}

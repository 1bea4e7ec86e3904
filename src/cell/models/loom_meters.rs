//! Models of the meters: every interleaving of packets on one word marks them as some order of them would.
//!
//! All threads of a model share one clock reading, so that their charges can be summed exactly. See
//! `table/models/loom_kit.rs` for the bounds and for what loom does not show. Nothing is shown of more threads or
//! packets than are named.

use std::sync::atomic::{AtomicUsize, Ordering as Plain};
use std::sync::Arc;

use crate::algorithms::meters::step;
use crate::answer::Colour::{self, Green, Red, Yellow};
use crate::answer::Verdict;
use crate::cell::meter::{state_of, word_of, Meter};
use crate::limit::{MeterLimit, MeterSpec};
use crate::sync::MAX_LOST;
use crate::sync::{AtomicU64, Ordering};
use crate::table::models::loom_kit::{explore, race, race3, Bound, NOW};

/// One unit a tick at each rate, so nothing rounds.
const HZ: u64 = 1_000_000;

/// The four meters with committed burst 2 and second burst 3: 2697, 2698, 4115, 4115 coupled.
fn limits() -> [MeterLimit; 4] {
    let independent = MeterSpec::rfc4115(HZ, 2, HZ, 3, HZ);
    [
        MeterSpec::rfc2697(HZ, 2, 3, HZ),
        MeterSpec::rfc2698(HZ, 2, HZ, 3, HZ),
        independent,
        independent.coupled(),
    ]
    .map(|spec| spec.build().expect("a meter"))
}

/// Returns the number of packets of each colour, and the word, after packets of cost 1 that came with these colours.
fn serial(limit: &MeterLimit, packets: &[Colour]) -> ([usize; 3], u64) {
    let (p, mut word, mut colours) = (&limit.0, 0, [0; 3]);
    let now_q = p.now_q(NOW);
    for pre in packets {
        let (marking, next) = step(p, state_of(p, word, now_q), 1, *pre);
        word = next.map_or(word, |state| word_of(p, state, now_q));
        colours[marking.colour as usize] += 1;
    }
    (colours, word)
}

fn count(colours: &[Colour]) -> [usize; 3] {
    [Green, Yellow, Red].map(|colour| colours.iter().filter(|c| **c == colour).count())
}

/// Two threads, three packets each, of equal size and colour: every schedule gives the colours and the word of the only
/// serial order. Does not show: different clocks, packets that differ.
#[test]
fn two_threads_of_three_packets_mark_as_one_would() {
    for (kind, limit) in limits().into_iter().enumerate() {
        let bound = if kind == 0 { Bound::Exhaustive } else { Bound::First(3) };
        explore(&std::format!("meter {kind}: 2 threads x 3 packets"), bound, move || {
            let meter = Arc::new(Meter::new());
            let (a, b) = (meter.clone(), meter.clone());
            let (a, b) = race(
                move || [0; 3].map(|_| a.check(&limit, NOW, 1, Green).colour),
                move || [0; 3].map(|_| b.check(&limit, NOW, 1, Green).colour),
            );
            let marked = [a, b].concat();
            assert_eq!((count(&marked), meter.word()), serial(&limit, &[Green; 6]), "no serial order");
        });
    }
}

/// A packet that came green, one that came yellow, and a peek: both packets are charged, and the peek sees none, one or
/// both of them. Does not show: different clocks.
#[test]
fn packets_of_two_colours_and_a_look_are_serial() {
    for (kind, limit) in limits().into_iter().enumerate() {
        explore(&std::format!("meter {kind}: green, yellow and a look"), Bound::Exhaustive, move || {
            let meter = Arc::new(Meter::new());
            let (a, b, c) = (meter.clone(), meter.clone(), meter.clone());
            let (green, yellow, looked) = race3(
                move || a.check(&limit, NOW, 2, Green).colour,
                move || b.check(&limit, NOW, 1, Yellow).colour,
                move || c.peek(&limit, NOW, 2, Green).colour,
            );
            assert_eq!((green, yellow), (Green, Yellow), "a packet met the other's bucket");
            // The green packet leaves nothing of C.
            assert!(matches!(looked, Green | Yellow | Red));
            let last = meter.peek(&limit, NOW, 2, Green).colour;
            let after = if kind == 1 { Red } else { Yellow };
            assert_eq!(last, after, "a charge was lost");
            assert!(looked <= last, "the look saw more debt than there was");
        });
    }
}

/// A sweep during a packet: either may come first, and the packet's charge stays. Does not show: several sweeps.
#[test]
fn a_sweep_beside_a_packet_loses_no_charge() {
    explore("meter: sweep beside a packet", Bound::Exhaustive, || {
        let [limit, ..] = limits();
        let info = limit.info();
        let meter = Arc::new(Meter::new());
        let old = NOW - info.horizon - info.skew - 100;
        assert!(meter.check(&limit, old, 2, Green).passes());
        let (a, b) = (meter.clone(), meter.clone());
        let (marking, _) = race(move || a.check(&limit, NOW, 2, Green), move || b.sweep(&limit, NOW));
        assert_eq!(marking.colour, Green);
        assert_eq!(meter.word(), serial(&limit, &[Green; 2]).1, "the charge was swept away, or is not whole");
    });
}

/// A call that loses every swap to a rival is contended, and the word holds only what the rival charged. Contended is
/// reached. Does not show: several rivals.
#[test]
fn contended_packet_charges_nothing() {
    static REACHED: AtomicUsize = AtomicUsize::new(0);
    explore("meter: contended", Bound::Exhaustive, || {
        let limit = MeterSpec::rfc2697(HZ, 64, 64, HZ).build().expect("a meter");
        let meter = Arc::new(Meter::new());
        let (a, b) = (meter.clone(), meter.clone());
        let (marking, _) = race(
            move || a.check(&limit, NOW, 1, Green),
            move || (0..MAX_LOST).for_each(|_| assert!(b.check(&limit, NOW, 1, Green).passes())),
        );
        let contended = marking.verdict == Verdict::Contended;
        REACHED.fetch_add(contended as usize, Plain::Relaxed);
        assert_eq!(marking.colour, if contended { Red } else { Green });
        let charged = MAX_LOST as usize + !contended as usize;
        assert_eq!(
            meter.word(),
            serial(&limit, &std::vec![Green; charged]).1,
            "a charge was lost or made up"
        );
    });
    assert!(REACHED.load(Plain::Relaxed) > 0, "the model never reached the bound");
}

/// MUST FAIL: stores where the meter swaps, like a meter that is not shared.
fn store(word: &AtomicU64, limit: &MeterLimit) -> Colour {
    let (p, now_q) = (&limit.0, limit.0.now_q(NOW));
    // ORDERING: Relaxed; single word, value only. What is wrong is the missing comparison.
    let (marking, next) = step(p, state_of(p, word.load(Ordering::Relaxed), now_q), 1, Green);
    if let Some(state) = next {
        // ORDERING: Relaxed; as above.
        word.store(word_of(p, state, now_q), Ordering::Relaxed);
    }
    marking.colour
}

#[test]
#[should_panic(expected = "more green than the committed burst")]
fn must_fail_a_store_for_the_swap_marks_too_much_green() {
    let [limit, ..] = limits();
    explore("meter: store for swap", Bound::Exhaustive, move || {
        let word = Arc::new(AtomicU64::new(0));
        let (a, b) = (word.clone(), word.clone());
        let (a, b) =
            race(move || [0; 2].map(|_| store(&a, &limit)), move || [0; 2].map(|_| store(&b, &limit)));
        assert!(count(&[a, b].concat())[0] <= 2, "more green than the committed burst");
    });
}

#[test]
#[should_panic(expected = "more green than the committed burst")]
fn must_fail_two_words_swapped_apart_mark_too_much_green() {
    // Two swaps, of the later time and of the difference: a packet between them finds half of a charge.
    let limit = MeterSpec::rfc4115(HZ, 2, HZ, 3, HZ).build().expect("a meter");
    explore("meter: time and difference apart", Bound::Exhaustive, move || {
        let halves = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let (a, b) = (halves.clone(), halves.clone());
        let mark = move |halves: &[AtomicU64; 2]| {
            let (p, b) = (&limit.0, limit.0.diff_bits);
            // ORDERING: Relaxed; what is wrong is that there are two words.
            let seen = [0, 1].map(|i| halves[i].load(Ordering::Relaxed));
            let now_q = p.now_q(NOW);
            let (marking, next) = step(p, state_of(p, seen[0] << b | seen[1], now_q), 1, Green);
            if let Some(state) = next {
                let word = word_of(p, state, now_q);
                for (i, new) in [word >> b, word & ((1 << b) - 1)].into_iter().enumerate() {
                    // ORDERING: Relaxed; as above.
                    let _ = halves[i].compare_exchange(seen[i], new, Ordering::Relaxed, Ordering::Relaxed);
                }
            }
            marking.colour
        };
        let (a, b) = race(move || [0; 2].map(|_| mark(&a)), move || [0; 2].map(|_| mark(&b)));
        assert!(count(&[a, b].concat())[0] <= 2, "more green than the committed burst");
    });
}

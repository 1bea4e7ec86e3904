//! The packed slot word, exhaustively at 16 payload bits.

#![allow(clippy::arithmetic_side_effects)]

use super::*;

/// 16 payload bits: 47 bits of tag, which only these tests use.
fn small(window: u64, lifetime: u64) -> Layout {
    let layout = Layout::new(47, window, lifetime);
    assert_eq!((layout.bits, layout.mask), (16, 0xffff));
    layout
}

fn nows() -> impl Iterator<Item = u64> {
    [0u64, 1, 2, 1_000, 32_767, 65_534, 65_535, 65_536, 1 << 40, u64::MAX].into_iter()
}

#[test]
fn every_word_is_exactly_one_of_empty_live_and_claim() {
    let layout = Layout::new(20, 1 << 40, 2);
    let mut word = 1u64;
    for _ in 0..100_000 {
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ word >> 11;
        // Tag 0 is made common enough to occur with and without the claim bit.
        let word = if word & 7 == 0 { word & (CLAIM | layout.mask) } else { word };
        let kinds = [layout.is_empty(word), layout.is_live(word), layout.is_claim(word)];
        assert_eq!(kinds.iter().filter(|k| **k).count(), 1, "{word:#x}");
        let tag = Tag(layout.tag_field(word));
        assert_eq!(
            layout.is_claim_of(word, tag),
            layout.is_claim(word) || layout.is_empty(word) && word & CLAIM != 0
        );
    }
}

#[test]
fn tag_is_the_low_bits_of_the_hash_and_never_zero() {
    for bits in 12..=24 {
        let layout = Layout::new(bits, 1 << 20, 2);
        for hash in [0u64, 1, 2, 0xfff, 0x1000, 0xff_ffff, 0x100_0000, u64::MAX, u64::MAX << 32, 1 << 31] {
            let low = hash & ((1 << bits) - 1);
            assert_eq!(layout.tag(hash).0, (if low == 0 { 1 } else { low }) << (63 - bits));
            assert_eq!(layout.tag(hash).0 & (CLAIM | layout.mask), 0);
        }
    }
}

#[test]
fn claims_are_above_what_the_slot_held_even_and_alive() {
    for (window, lifetime) in [(8_192u64, 2u64), (8_192, 100), (100, 3), (8_192, 4_096)] {
        let layout = small(window, lifetime);
        let (x, y) = (layout.tag(0x1234_5678), layout.tag(0x77));
        for now in nows() {
            for payload in 0..=layout.mask {
                for old in [payload, y.0 | payload, y.0 | CLAIM | payload] {
                    if !layout.is_reusable(old, now) {
                        continue;
                    }
                    let claim = layout.claim_of_reusable(x, old, now);
                    assert!(layout.is_claim_of(claim, x) && !Layout::is_takeover(claim));
                    let ahead = claim.wrapping_sub(now) & layout.mask;
                    // All-zero memory has no version. Any other word's payload, read with this clock, lies below.
                    let held = if old == 0 { 0 } else { layout.lead(old, now) };
                    assert!(ahead > held, "{old:#x} at {now:#x}");
                    assert!(
                        (lifetime..=held.max(lifetime) + 2).contains(&ahead),
                        "{old:#x} at {now:#x}: {ahead}"
                    );
                    assert_ne!(claim, old, "a claim of a reusable slot is a new word");
                }
            }
        }
    }
}

#[test]
fn takeover_claims_are_the_next_odd_payload_and_keep_the_debt() {
    let layout = small(8_192, 2);
    let (x, y) = (layout.tag(3), layout.tag(5));
    for payload in 0..=layout.mask {
        for old in [payload, y.0 | payload] {
            let claim = layout.claim_of_debt(x, old);
            assert!(layout.is_claim_of(claim, x) && Layout::is_takeover(claim));
            let up = layout.payload(claim).wrapping_sub(payload) & layout.mask;
            assert!(up == 1 || up == 2);
            // Inherit commits on no less than the debt taken over.
            for now in nows() {
                let (debt, kept) = (layout.lead(old, now), layout.lead(claim.wrapping_sub(1), now));
                assert!(kept >= debt || debt == layout.window, "{old:#x} at {now:#x}: {debt} -> {kept}");
            }
        }
    }
}

#[test]
fn dropped_claims_are_empty_above_with_the_same_parity() {
    let layout = small(8_192, 2);
    let tag = layout.tag(9);
    for payload in 0..=layout.mask {
        let claim = tag.0 | CLAIM | payload;
        let empty = layout.dropped(claim);
        assert!(layout.is_empty(empty) && empty <= layout.mask);
        assert_eq!(empty, (payload + 2) & layout.mask);
        assert_eq!(Layout::is_takeover(empty), Layout::is_takeover(claim));
        // Claim, drop, claim: never the same word again.
        for now in nows() {
            if layout.is_reusable(empty, now)
                && !layout.holds_debt(empty, now)
                && layout.lead(claim, now) != 0
            {
                assert_ne!(layout.claim_of_reusable(tag, empty, now), claim);
            }
        }
    }
}

#[test]
fn only_words_long_expired_are_swept_and_to_words_without_debt() {
    for window in [100u64, 4_096, 8_192] {
        let layout = small(window, 2);
        let tag = layout.tag(9);
        for now in nows() {
            for payload in 0..=layout.mask {
                for word in [payload, tag.0 | payload, tag.0 | CLAIM | payload] {
                    if !layout.is_sweepable(word, now) {
                        continue;
                    }
                    // Expired for every clock that is at most H + S behind.
                    for behind in [0, 1, window / 2, window] {
                        assert_eq!(layout.lead(word, now.wrapping_sub(behind)), 0, "{word:#x} at {now:#x}");
                    }
                    let swept = layout.swept(now);
                    assert!(layout.is_empty(swept) && !Layout::is_takeover(swept));
                    assert!(!layout.holds_debt(swept, now) && !layout.is_sweepable(swept, now));
                    // Above the word it replaces (words with a tag are swept once they are H + S old), and not ahead of
                    // a caller whose clock is behind by the skew.
                    let (up, age) =
                        (swept.wrapping_sub(word) & layout.mask, now.wrapping_sub(word) & layout.mask);
                    assert!(up >= 1 && (age - window..=age - window + 1).contains(&up));
                    assert_eq!(layout.lead(swept, now.wrapping_sub(window - 1)), 0);
                }
            }
            assert!(!layout.is_sweepable(0, now), "zero memory stays zero");
        }
    }
}

#[test]
fn every_word_is_swept_before_it_can_come_back_as_a_debt() {
    // A live word that drains at 0 and is swept at least once an `interval` is gone before it reads as a debt again.
    for window in [100u64, 4_096, 8_192] {
        let layout = small(window, 2);
        let word = layout.live(layout.tag(9), 0);
        let interval = layout.mask - 2 * window;
        let first = (1..).find(|&now| layout.is_sweepable(word, now)).unwrap();
        let again = (first..).find(|&now| layout.lead(word, now) != 0).unwrap();
        assert!(first + interval <= again, "sweepable from {first}, a debt at {again}, interval {interval}");
    }
}

/// The table's decode is a copy: it equals that of the cells for every distance in a word of 20 bits.
#[test]
fn w20_leads_of_the_table_are_those_of_the_cells() {
    for window in [1u64, 2, 100, (1 << 17) - 1, 1 << 17] {
        let l = Layout::new(43, window, 2);
        for now in [0, 1, (1 << 20) - 3, u64::MAX - 7, 0x0123_4567_89ab_cdef] {
            for d in 0..=l.mask {
                let tat = now.wrapping_add(d) & l.mask;
                let wanted = crate::algorithms::gcra::lead_of(tat, now, l.mask, window);
                assert_eq!(l.lead(l.field | tat, now), wanted, "{d} from {now}, window {window}");
            }
        }
    }
}

#[test]
fn only_what_has_expired_is_reusable() {
    let l = small(64, 8);
    let tag = l.tag(5);
    for now in nows() {
        for ahead in 0..=l.window + 2 {
            let owes = (1..=l.window).contains(&ahead);
            let payload = now.wrapping_add(ahead) & l.mask;
            for word in [tag.0 | payload, tag.0 | CLAIM | payload] {
                assert_eq!(l.is_reusable(word, now), !owes, "{word:x} at {now}");
            }
            // EMPTY words: a tombstone is not reusable until only `grace` of it is left; an odd one always is.
            let even = payload & !1;
            let waits = even != 0 && l.lead(even, now) > l.grace;
            assert_eq!(l.is_reusable(even, now), !waits, "{even:x} at {now}");
            assert!(l.is_reusable(payload | 1, now));
        }
    }
}

#[test]
fn tombstones_and_debts_of_dropped_takeovers_are_told_by_tag_parity_and_lead_alone() {
    let layout = small(8_192, 100);
    let key = layout.tag(0x1234);
    for now in nows() {
        for payload in 0..=layout.mask {
            let (lead, odd) = (layout.lead(payload, now), payload & 1 == 1);
            // An EMPTY word, with the claim bit clear and set.
            for word in [payload, CLAIM | payload] {
                let reset = !odd && word != 0;
                assert_eq!(
                    layout.tombstone_lead(word, now),
                    if reset { lead } else { 0 },
                    "{word:#x} at {now}"
                );
                assert_eq!(layout.holds_debt(word, now), odd && lead != 0, "{word:#x} at {now}");
            }
            for word in [key.0 | payload, key.0 | CLAIM | payload] {
                assert_eq!(layout.tombstone_lead(word, now), 0, "{word:#x} at {now}");
                assert!(!layout.holds_debt(word, now), "{word:#x} at {now}");
            }
        }
    }
}

#[test]
fn a_tombstone_is_the_next_even_version_above_the_word_and_never_that_of_an_unused_slot() {
    let layout = small(8_192, 100);
    let key = layout.tag(0x1234);
    for payload in 0..=layout.mask {
        let made = layout.tombstone(key.0 | payload);
        let above = ((payload + 3) & !1) & layout.mask;
        assert_eq!(made, if above == 0 { 2 } else { above }, "{payload:#x}");
        assert!(layout.is_empty(made) && made & 1 == 0);
    }
    assert_eq!([layout.mask, layout.mask - 1].map(|last| layout.tombstone(key.0 | last)), [2, 2]);
}

/// An EMPTY word is a version: a sweep takes it after a quarter of the span, a word with a tag after a window.
#[test]
fn the_version_of_an_empty_slot_outlives_a_quarter_of_the_span() {
    let layout = small(100, 2);
    let key = layout.tag(0x1234);
    let quarter = layout.mask / 4;
    for now in nows() {
        let at = |age: u64| now.wrapping_sub(age) & layout.mask;
        for (age, empty, tagged) in [
            (0, false, false),
            (100, false, false),
            (101, false, true),
            (quarter, false, true),
            (quarter + 1, true, true),
            (2 * quarter, true, true),
        ] {
            let word = at(age);
            assert_eq!(layout.is_sweepable(word, now), empty && word != 0, "{age} at {now}");
            assert_eq!(layout.is_sweepable(key.0 | word, now), tagged, "{age} at {now}");
        }
    }
}

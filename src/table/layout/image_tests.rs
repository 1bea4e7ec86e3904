//! The header: reading returns what was written.

use super::*;
use crate::keys::HashKind;
use crate::limit::params::random;
use crate::limit::LimitSpec;
use crate::table::layout::fit::choose;
use crate::table::layout::options::TableOptions;

fn options(seed: &mut u64) -> TableOptions {
    let policies = [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled];
    let spec = LimitSpec::new(1 + random(seed) % 5_000, 1 << (random(seed) % 62), 1 + random(seed) % 50);
    let mut options = TableOptions::new(spec)
        .policy(policies[random(seed) as usize % 4])
        .tag_bits(12 + (random(seed) % 13) as u32);
    if random(seed) % 2 == 0 {
        options = options.skew(random(seed) >> (random(seed) % 64));
    }
    if random(seed) % 2 == 0 {
        options = options.resolution(((random(seed) % 130) as i64 - 65) as i8);
    }
    if random(seed) % 2 == 0 {
        options = options.tick_hz(random(seed) >> 1);
    }
    if random(seed) % 4 == 0 {
        options = options.claim_lifetime(random(seed) >> (random(seed) % 64));
    }
    if random(seed) % 2 == 0 {
        options.caller_hash()
    } else {
        options.seed([5; 16])
    }
}

#[test]
fn any_geometry_that_init_accepts_survives_the_header() {
    let mut seed = 1;
    let mut accepted = 0;
    for case in 0..200_000 {
        let lines = 4 + (random(&mut seed) % 6) as usize;
        let options = options(&mut seed);
        let Ok(g) = choose(&options, lines) else { continue };
        accepted += 1;
        let (_, check) = Hasher::new(options.hash, options.seed.as_ref()).unwrap();
        let exclusive = random(&mut seed) % 2 == 0;
        let g = Geometry { seed_check: check, exclusive, ..g };
        let with = |seed: Option<[u8; 16]>| AttachOptions { seed, ..AttachOptions::new() };
        let memory: [Line; 9] = core::array::from_fn(|_| Line::new());
        format(&memory[..g.lines as usize + HEADER_LINES], &g, exclusive, |_| 0);
        let header = load(&memory).unwrap();
        let read = |lines, options: AttachOptions, exclusive| {
            super::read(&header, lines, &options, Some(exclusive)).map(|(geometry, _)| geometry)
        };
        let right = with(options.seed);
        assert_eq!(read(lines, right, exclusive), Ok(g), "case {case}: {options:?}");
        assert_eq!(read(lines, right.policy(g.policy).tick_hz(g.tick_hz), exclusive), Ok(g));
        assert_eq!(read(lines, right, !exclusive), Err(TableError::BadMode));
        assert_eq!(read(lines, right.tick_hz(g.tick_hz + 1), exclusive), Err(TableError::BadMode));
        let other = if g.policy == FullPolicy::Deny { FullPolicy::Admit } else { FullPolicy::Deny };
        assert_eq!(read(lines, right.policy(other), exclusive), Err(TableError::BadMode));
        assert_eq!(read(lines + 2, right, exclusive), Err(TableError::BadGeometry));
        assert!((g.layout.window as u128) << g.shr < 1 << 63, "case {case}: {options:?}");
        if options.seed.is_some() {
            assert_eq!(read(lines, with(None), exclusive), Err(TableError::MissingSeed));
            assert_eq!(read(lines, with(Some([6; 16])), exclusive), Err(TableError::WrongSeed));
        }
    }
    assert!(accepted > 10_000, "{accepted}");
}

/// Makes the header of a small table, and returns what it was made from.
fn sample() -> (Geometry, [u64; HEADER_WORDS], AttachOptions) {
    let spec = LimitSpec::new(1, 1 << 20, 3);
    let options =
        TableOptions::new(spec).policy(FullPolicy::Deny).seed([7; 16]).skew(5 << 20).tick_hz(1_000_000);
    let (_, check) = Hasher::new(options.hash, options.seed.as_ref()).unwrap();
    let g = Geometry { seed_check: check, exclusive: true, ..choose(&options, 7).unwrap() };
    let memory: [Line; 6] = core::array::from_fn(|_| Line::new());
    format(&memory, &g, true, |_| 0);
    (g, load(&memory).unwrap(), AttachOptions::new().seed([7; 16]))
}

#[test]
fn header_layout_is_the_documented_one() {
    // Layout version 2, word for word: shared memory and saved images depend on it.
    let (g, words, options) = sample();
    let shape = 4 << 32 | 20 << 24 | 2 << 4 | 1;
    let mut expected = [0; HEADER_WORDS];
    let known = [0x7461_7463_656c_0002, shape, 3 << 20, 8 << 20, 2, g.seed_check, 0, 0, 1, 1_000_000];
    expected[..known.len()].copy_from_slice(&known);
    assert_eq!(words, expected);
    let hasher = Hasher::new(HashKind::SipHash13, options.seed.as_ref()).unwrap().0;
    assert_eq!(hasher.hash(b"tatcell seed check"), Some(g.seed_check));
}

#[test]
fn what_a_header_has_that_is_unknown_here_is_refused() {
    let (g, words, options) = sample();
    let read = |words: &[u64; HEADER_WORDS]| super::read(words, 7, &options, Some(true)).map(|(g, _)| g);
    assert_eq!(read(&words), Ok(g));
    for bit in 0..64 {
        let with = |word: usize| {
            let mut words = words;
            words[word] ^= 1 << bit;
            read(&words)
        };
        assert_eq!(with(6), Err(TableError::BadVersion), "feature {bit}");
        assert_eq!(with(7), Err(TableError::BadVersion), "algorithm, aux bits, form and guard, {bit}");
        for word in 10..HEADER_WORDS - 1 {
            assert_eq!(with(word), Err(TableError::BadGeometry), "word {word}, bit {bit}");
        }
        // The last word is a clock. One that is unknown here is kept, and decides nothing.
        let clock = match bit {
            0..8 => Ok(Geometry { clock: 1 << bit, ..g }),
            _ => Err(TableError::BadGeometry),
        };
        assert_eq!(with(HEADER_WORDS - 1), clock, "clock, bit {bit}");
        assert_eq!(with(8), Ok(Geometry { generation: 1 ^ 1 << bit, ..g }));
    }
    // A known algorithm with a count that does not fit the word or the algorithm is refused.
    for (word, known) in [
        (1 | 7 << 8, true),
        (1 | 40 << 8, true),
        (1 | 41 << 8, false),
        (2 | 1 << 8, false),
        (4, true),
        (4 | 1 << 8, false),
    ] {
        let mut words = words;
        // Whole units of time and a policy, as tables that count have.
        let word = word | 1 << 16;
        (words[1], words[2], words[3], words[7]) = (4 << 32 | 20 << 24 | 1, 1 << 40, 1 << 40, word);
        assert_eq!(read(&words).is_ok(), known, "{word:#x}: {:?}", read(&words));
    }
    for mode in 2..16 {
        let mut words = words;
        words[1] = words[1] & !15 | mode;
        assert_eq!(read(&words), Err(TableError::BadGeometry), "mode {mode}");
    }
}

/// A lead of H + S stays below 2^63 ticks. The window is at most an eighth of the span, a quarter where words count.
#[test]
fn a_window_is_accepted_up_to_its_part_of_the_span_and_no_further() {
    let (_, words, options) = sample();
    for (rule, spare) in [(0, 60), (1 << 16 | 7 << 8 | 1, 61)] {
        for tag_bits in [12u64, 20, 24] {
            let read = |window: u64| {
                let mut words = words;
                words[1] = 4 << 32 | tag_bits << 24 | 1;
                (words[2], words[3], words[7]) = (window, window, rule);
                super::read(&words, 7, &options, Some(true)).map(|(g, _)| g.layout.window)
            };
            let most = 1u64 << (spare - tag_bits);
            assert_eq!(read(most), Ok(most), "{tag_bits} tag bits");
            for window in [most + 128, most + most / 2, 2 * most, 4 * most] {
                assert_eq!(read(window), Err(TableError::BadGeometry), "{tag_bits} tag bits, {window:#x}");
            }
        }
    }
}

#[test]
fn a_header_that_breaks_one_rule_is_refused() {
    let (_, words, options) = sample();
    let read = |shift: i8, rule: u64, horizon: u64, window: u64| {
        let mut words = words;
        words[1] = 4 << 32 | 20 << 24 | u64::from(shift as u8) << 16 | 1;
        (words[2], words[3], words[7]) = (horizon, window, rule);
        super::read(&words, 7, &options, Some(true)).map(|_| ())
    };
    let refused = Err(TableError::BadGeometry);
    let fixed = |aux: u64| 1 << 16 | aux << 8 | 1;
    // At least three of the 43 bits belong to the time.
    assert_eq!(read(0, fixed(40), 1 << 40, 1 << 40), Ok(()));
    assert_eq!(read(0, fixed(41), 1 << 41, 1 << 41), refused);
    // H and H + S are both whole units of time.
    for (horizon, window, sound) in
        [(64, 128, true), (65, 129, false), (64, 129, false), (65, 128, false), (96, 160, false)]
    {
        assert_eq!(
            read(0, fixed(6), horizon, window),
            if sound { Ok(()) } else { refused },
            "{horizon} {window}"
        );
    }
    // H + S is less than 2^63 ticks, and H is at most H + S.
    assert_eq!(read(-22, 0, 1 << 40, 1 << 40), Ok(()));
    assert_eq!(read(-23, 0, 1 << 39, 1 << 40), refused);
    assert_eq!(read(0, 0, 0, 1 << 20), refused);
    assert_eq!(read(0, 0, (1 << 20) + 1, 1 << 20), refused);
    // Two reserved words that are not zero do not cancel each other.
    let mut both = words;
    (both[11], both[12]) = (1, 1);
    assert_eq!(super::read(&both, 7, &options, Some(true)).map(|_| ()), refused);
    // A table of overrides has two bits beside a time, and no guard.
    let overrides = |aux: u64, guard: u64| read_rule(guard << 32 | 1 << 16 | aux << 8 | 5);
    assert_eq!(overrides(2, 0), Some((Content::Overrides, 2, 0)));
    for (aux, guard) in [(3, 0), (1, 0), (2, 1)] {
        assert_eq!(overrides(aux, guard), None, "{aux} bits, guard {guard}");
    }
    // Only a table of overrides says that none was ever stored, and only by 1.
    let unused = |rule: u64, word: u64| {
        let mut words = words;
        (words[7], words[10]) = (rule, word);
        super::read(&words, 7, &options, Some(true)).is_ok()
    };
    let overrides = 1 << 16 | 2 << 8 | 5;
    assert_eq!([0, 1, 2, u64::MAX].map(|word| unused(overrides, word)), [true, true, false, false]);
    assert_eq!([0, 1].map(|word| unused(words[7], word)), [true, false]);
}

/// If a save read a key in two places, one word is kept with what both counted, wherever the clock stands.
#[test]
fn of_two_words_of_a_tag_one_is_kept_with_what_both_counted() {
    let mut seed = 7;
    for spec in [
        LimitSpec::new(10, 1_000, 20),
        LimitSpec::fixed_window(10, 1_000),
        LimitSpec::sliding_counter(10, 1_000),
        LimitSpec::quota_linear(10, 1_000),
        LimitSpec::decay(10, 1_000),
    ] {
        let g = choose(&TableOptions::new(spec).caller_hash(), 6).unwrap();
        let (layout, aux) = (g.layout, g.aux_mask());
        let (tag, stranger) = (layout.tag(7), layout.tag(8));
        for case in 0..2_000 {
            // Clocks anywhere, also where a payload wraps.
            let clock = match case % 4 {
                0 => random(&mut seed) % (4 * g.horizon),
                1 => layout.mask - random(&mut seed) % (2 * g.horizon),
                // Clocks at which a reading that lies a part of the span earlier wraps.
                2 => (layout.mask / 8 * (case as u64 / 4 % 8))
                    .wrapping_sub(random(&mut seed) % (2 * g.horizon)),
                _ => random(&mut seed),
            } & layout.mask
                | aux;
            // No state is absent.
            let mut lead = || aux + 1 + random(&mut seed) % (g.horizon - aux);
            let (a, b) = (lead(), if case % 8 == 0 { 0 } else { lead() });
            let b = if b == 0 { a } else { b };
            let word = |tag, lead: u64| layout.live(tag, clock.wrapping_add(lead));
            let mut slots = [word(stranger, 3 * (aux + 1)); 32];
            let (i, j) = (16 + (case % 5) as usize, 16 + 5 + (case % 11) as usize);
            (slots[i], slots[j]) = (word(tag, a), word(tag, b));
            // The same tag in another set is another key.
            slots[3] = word(tag, g.horizon);
            let kept = [i, j].map(|at| !is_outdone(&g, &slots, at, slots[at]));
            if g.is_gcra() {
                assert_eq!(kept, [a >= b, a < b], "{spec:?}: {a:#x} and {b:#x}");
                assert_eq!(merged(&g, &slots, i, slots[i]), slots[i]);
                continue;
            }
            assert_eq!(kept, [true, false], "{spec:?}: {a:#x} and {b:#x}");
            let both = word(tag, g.merge(a, b));
            assert_eq!(merged(&g, &slots, i, slots[i]), both, "{spec:?} at {clock:#x}: {a:#x} and {b:#x}");
            // The kept debt of a takeover has no tag and stays as it is.
            assert_eq!(merged(&g, &slots, i, word(tag, a) & layout.mask), word(tag, a) & layout.mask);
        }
    }
}

/// The parity of the word survives, even if the new clock is an odd number of q-units apart.
#[test]
fn the_debt_of_a_dropped_takeover_stays_odd_and_as_large() {
    let spec = LimitSpec::new(1, 4096, 64);
    let options = TableOptions::new(spec).caller_hash().resolution(0).policy(FullPolicy::Inherit);
    let g = choose(&options, 4).unwrap();
    for (debt, offset) in [(9_001, 0), (9_001, 1), (9_001, 6), (9_001, -1), (9_001, 12_345)] {
        let mut image = [0; 4 * SLOTS_PER_LINE];
        image[0] = FIRST_WORD;
        image[1..HEADER_WORDS].copy_from_slice(&header(&g, false));
        image[HEADER_WORDS + 5] = debt;
        let memory: [Line; 4] = core::array::from_fn(|_| Line::new());
        super::restore(&memory, &image, &AttachOptions::new(), false, offset).unwrap();
        // ORDERING: Relaxed; one thread.
        let word = memory[HEADER_LINES].words[5].load(Ordering::Relaxed);
        let moved = (debt as i64 + offset) as u64;
        assert!(word & 1 == 1 && (moved..=moved + 1).contains(&word), "{word} of {debt} by {offset}");
    }
}

//! The header: what is written is what is read.

use super::super::options::TableOptions;
use super::*;
use crate::limit::LimitSpec;

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*seed ^ *seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

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
        let lines = 3 + (random(&mut seed) % 6) as usize;
        let options = options(&mut seed);
        let Ok(g) = Geometry::choose(&options, lines) else { continue };
        accepted += 1;
        let secret = options.seed.as_ref();
        let (_, check) = Hasher::new(options.hash, secret).unwrap();
        let g = Geometry { seed_check: check, ..g };
        let read = |header: &[AtomicU64; 8], lines, seed, exclusive| {
            super::read(header, lines, seed, exclusive).map(|(geometry, _)| geometry)
        };
        let memory: [Line; 8] = core::array::from_fn(|_| Line::new());
        let exclusive = random(&mut seed) % 2 == 0;
        format(&memory[..g.lines as usize + 1], &g, exclusive, |_| 0);
        let header = &memory[0].words;
        assert_eq!(read(header, lines, secret, exclusive), Ok(g), "case {case}: {options:?}");
        assert_eq!(read(header, lines, secret, !exclusive), Err(TableError::BadMode));
        assert_eq!(read(header, lines + 2, secret, exclusive), Err(TableError::BadGeometry));
        // No lead that a slot can show overflows the way back to ticks.
        assert!((g.layout.window as u128) << g.shr < 1 << 63, "case {case}: {options:?}");
        if secret.is_some() {
            assert_eq!(read(header, lines, None, exclusive), Err(TableError::MissingSeed));
            let other = [6; 16];
            assert_eq!(read(header, lines, Some(&other), exclusive), Err(TableError::WrongSeed));
        }
    }
    assert!(accepted > 10_000, "{accepted}");
}

#[test]
fn header_layout_is_the_documented_one() {
    // Layout version 1, byte for byte: shared memory and saved images depend on it.
    let spec = LimitSpec::new(1, 1 << 20, 3);
    let options = TableOptions::new(spec).policy(FullPolicy::Deny).seed([7; 16]).skew(5 << 20);
    let g = Geometry::choose(&options, 6).unwrap();
    let memory: [Line; 5] = core::array::from_fn(|_| Line::new());
    let (hasher, check) = Hasher::new(options.hash, options.seed.as_ref()).unwrap();
    format(&memory, &Geometry { seed_check: check, ..g }, true, |_| 0);
    let words: [u64; 8] = core::array::from_fn(|i| memory[0].words[i].load(Ordering::Relaxed));
    let shape = 4 << 32 | 20 << 24 | 2 << 4 | 1;
    assert_eq!(hasher.hash(b"tatcell seed check"), Some(check));
    assert_eq!(words, [0x7461_7463_656c_0001, shape, 3 << 20, 8 << 20, 2, check, 0, 0]);
}

//! The hash, the mapping to lines and tags, and the sizing helpers, against independent computations.

use crate::common::{hash_of, memory, words, Rng};
use std::sync::atomic::Ordering;
use tatcell::{
    full_set_ppb, lines_for, lines_for_load, FullPolicy, HashKind, LimitSpec, Request, Table, TableOptions,
    Tracking,
};

const SPEC: LimitSpec = LimitSpec::new(1, 1 << 12, 8);

/// SipHash-c-d, written from the paper.
fn siphash(c: u32, d: u32, key: &[u8; 16], data: &[u8]) -> u64 {
    let word = |b: &[u8]| b.iter().rev().fold(0u64, |w, &x| w << 8 | x as u64);
    let (k0, k1) = (word(&key[..8]), word(&key[8..]));
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let round = |v: &mut [u64; 4]| {
        v[0] = v[0].wrapping_add(v[1]);
        v[2] = v[2].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[1]);
        v[0] = v[0].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].rotate_left(32);
    };
    let whole = data.len() / 8 * 8;
    let last = word(&data[whole..]) | (data.len() as u64) << 56;
    for m in data[..whole].chunks(8).map(word).chain([last]) {
        v[3] ^= m;
        (0..c).for_each(|_| round(&mut v));
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    (0..d).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn counting<const N: usize>() -> [u8; N] {
    std::array::from_fn(|i| i as u8)
}

#[test]
fn the_tests_own_siphash_gives_the_papers_vector() {
    // Appendix A of the SipHash paper: key 00..0f, message 00..0e, SipHash-2-4.
    assert_eq!(siphash(2, 4, &counting(), &counting::<15>()), 0xa129_ca61_49be_45e5);
}

#[test]
fn table_hash_is_siphash_1_3_of_the_seed() {
    let lines = memory(4);
    let mut rng = Rng(1);
    for len in 0..70 {
        let seed: [u8; 16] = if len < 35 { counting() } else { std::array::from_fn(|_| rng.next() as u8) };
        let table = Table::init(&lines, &TableOptions::new(SPEC).seed(seed)).unwrap();
        let key: Vec<u8> = (0..len).map(|i| if len % 2 == 0 { i as u8 } else { rng.next() as u8 }).collect();
        assert_eq!(table.hash(&key), Ok(siphash(1, 3, &seed, &key)), "length {len}");
        // The image stores a check value, not the seed.
        let check = words(&lines)[5].load(Ordering::Relaxed);
        assert_eq!(check, siphash(1, 3, &seed, b"tatcell seed check"));
        let secret = |w: u64| w == u64::from_le_bytes(seed[..8].try_into().unwrap());
        assert!(words(&lines)[..16].iter().all(|w| !secret(w.load(Ordering::Relaxed))));
    }
}

/// Of keys `30 31 32 ..` of so many bytes under the seed `00 01 .. 0f`: what a program says that was written from
/// FIPS 197 and the drawing in `keys::aes`, and that gives the round of FIPS 197, appendix B.
const AES_VECTORS: [(usize, u64); 9] = [
    (0, 0x436b_947d_e963_ee26),
    (3, 0x4f45_d940_e090_cabc),
    (4, 0xd527_e99e_6b0a_02fc),
    (5, 0x05ae_95df_aae2_a92f),
    (15, 0x5689_b341_d832_62aa),
    (16, 0x95f5_9244_724d_ccf0),
    (17, 0x6a0c_3058_e66f_8454),
    (32, 0x8028_6e89_0607_c28f),
    (33, 0x008a_3b97_9a8a_169a),
];

#[test]
fn aes_hash_is_the_documented_one_for_keys_of_every_length() {
    if !HashKind::Aes.is_available() {
        println!("SKIP aes_hash_is_the_documented_one_for_keys_of_every_length: this processor has no AES");
        return;
    }
    let lines = memory(4);
    let options = TableOptions::new(SPEC).seed(counting()).hash(HashKind::Aes);
    let table = Table::init(&lines, &options).unwrap();
    for (length, hash) in AES_VECTORS {
        let key: Vec<u8> = (0x30..).take(length).collect();
        assert_eq!(table.hash(&key), Ok(hash), "{length} bytes");
    }
    // Bursts hash by value.
    let mut hashes = [[0; 3]; 2];
    table.hash_burst(&mut hashes[0], |_| [0x30u8, 0x31, 0x32, 0x33]).unwrap();
    table.hash_burst(&mut hashes[1], |_| std::array::from_fn::<u8, 16, _>(|i| 0x30 + i as u8)).unwrap();
    assert_eq!(hashes, [[AES_VECTORS[2].1; 3], [AES_VECTORS[5].1; 3]]);
    // Keys that differ in zeros at their end alone are different keys.
    let mut found: Vec<u64> = (0..50).map(|length| table.hash(&[0; 50][..length]).unwrap()).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 50);
}

#[test]
fn line_is_multiply_shift_of_the_high_half_and_tag_the_low_bits() {
    // (hash, slot lines, tag bits) -> (home line, tag). Layout version 1: these never change.
    let vectors = [
        (0x0000_0000_0000_0000, 2, 20, 0, 1),
        (0x7fff_ffff_ffff_ffff, 2, 20, 0, 0xf_ffff),
        (0x8000_0000_0000_0001, 2, 20, 1, 1),
        (0xffff_ffff_1234_5678, 2, 20, 1, 0x4_5678),
        (0x5555_5555_0000_0abc, 6, 12, 1, 0xabc),
        (0x5555_5556_0000_0000, 6, 12, 2, 1),
        (0xaaaa_aaaa_ffff_f000, 6, 12, 3, 1),
        (0xaaaa_aaab_00ff_ffff, 6, 24, 4, 0xff_ffff),
        (0xffff_ffff_fe00_0000, 10, 24, 9, 1),
        (0x1999_9999_8000_0002, 10, 16, 0, 2),
        (0x1999_999a_8000_0002, 10, 16, 1, 2),
    ];
    for (hash, slot_lines, tag_bits, line, tag) in vectors {
        let lines = memory(slot_lines + 2);
        let options = TableOptions::new(SPEC).caller_hash().tag_bits(tag_bits);
        let table = Table::init(&lines, &options).unwrap();
        let limit = table.limit(&SPEC).unwrap();
        assert!(table.check_hash(&limit, 0, hash, 1).unwrap().passes());
        let slot = table.next_live(0, 0).unwrap();
        assert_eq!((slot.number / 8, slot.tag), (line, tag), "{hash:#x} {slot_lines} {tag_bits}");
        // The word itself: claim clear, tag, TAT = one unit.
        let word = words(&lines)[16 + line as usize * 8].load(Ordering::Relaxed);
        assert_eq!(word, (tag as u64) << (63 - tag_bits) | 1 << 12, "{hash:#x}");
    }
}

#[test]
fn overflow_goes_to_the_neighbour_line_and_tags_decide_within_a_set() {
    let lines = memory(8);
    let table = Table::init(&lines, &TableOptions::new(SPEC).caller_hash()).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    for home in 0..6u32 {
        for tag in 1..=16 {
            assert!(table
                .check_hash(&limit, home as u64 * (1 << 20), hash_of(home, 6, tag), 1)
                .unwrap()
                .passes());
        }
        let now = home as u64 * (1 << 20);
        let numbers: Vec<u32> =
            std::iter::successors(table.next_live(now, 0), |s| table.next_live(now, s.number as usize + 1))
                .map(|s| s.number)
                .collect();
        let first = home / 2 * 16;
        assert_eq!(numbers, (first..first + 16).collect::<Vec<_>>(), "home {home}");
    }
    // Same set and tag are one key, another tag is another.
    let now = 1 << 40;
    assert!(table.check_hash(&limit, now, hash_of(0, 6, 5), 8).unwrap().passes());
    assert!(!table.check_hash(&limit, now, hash_of(1, 6, 5), 1).unwrap().passes());
    assert!(table.check_hash(&limit, now, hash_of(0, 6, 6), 1).unwrap().passes());
    assert!(table.check_hash(&limit, now, hash_of(2, 6, 5), 1).unwrap().passes());
}

/// Erlang B in floating point.
fn erlang_b(servers: u32, offered: f64) -> f64 {
    (1..=servers).fold(1.0, |b, n| offered * b / (n as f64 + offered * b))
}

#[test]
fn full_set_chance_is_erlang_b() {
    for ppm in [0, 1, 1_000, 50_000, 250_000, 500_000, 600_000, 700_000, 1_000_000, 2_000_000, 10_000_000] {
        let expected = erlang_b(16, 16.0 * ppm as f64 / 1e6) * 1e9;
        let found = full_set_ppb(ppm) as f64;
        assert!((found - expected).abs() <= 1.0 + expected * 1e-6, "{ppm}: {found} for {expected}");
    }
    // Rounded to the nearest: never off by more than half a billionth, and what 2^-32 of a load makes.
    for ppm in (1..4_000).map(|n| n * 317) {
        let expected = erlang_b(16, 16.0 * ppm as f64 / 1e6) * 1e9;
        let found = full_set_ppb(ppm) as f64;
        assert!((found - expected).abs() <= 0.55, "{ppm}: {found} for {expected}");
    }
    // Any load is an answer, and more load is never a smaller chance.
    let mut last = 0;
    for bits in 0..64 {
        let chance = full_set_ppb(1 << bits);
        assert!(chance >= last && chance <= 1_000_000_000, "{bits}: {chance}");
        last = chance;
    }
    assert!(full_set_ppb(u64::MAX) >= last);
    // The figures of the documentation.
    assert!((3_000..5_000).contains(&full_set_ppb(250_000)));
    assert!((4_000_000..6_000_000).contains(&full_set_ppb(500_000)));
    assert!((15_000_000..20_000_000).contains(&full_set_ppb(600_000)));
}

#[test]
fn simulated_tables_fill_as_erlang_b_says() {
    // One-unit keys arriving at random: each holds its slot for T. 1024 slots, loads 0.5 and 0.7.
    for alpha in [0.5, 0.7] {
        let lines = memory(2 + 128);
        let options = TableOptions::new(SPEC).seed([3; 16]).policy(FullPolicy::Deny);
        let table = Table::init(&lines, &options).unwrap();
        let limit = table.limit(&SPEC).unwrap();
        let mut rng = Rng(17);
        // Ticks between keys are exponential: T / (alpha * 1024) on average.
        let mean = 4_096.0 / (alpha * 1_024.0);
        let (mut clock, mut blocked, n) = (1e6, 0u64, 400_000u64);
        for i in 0..n {
            clock += -mean * ((rng.next() >> 11) as f64 / (1u64 << 53) as f64 + 1e-18).ln();
            let hash = table.hash(&i.to_le_bytes()).unwrap();
            let request = Request { limit: &limit, now: clock as u64, cost: 1, room: 0 };
            let d = table.check_ex(&request, hash, None).unwrap();
            blocked += (d.tracking == Tracking::Untracked && i > n / 10) as u64;
        }
        let found = blocked as f64 / (n as f64 * 0.9);
        let expected = full_set_ppb((alpha * 1e6) as u64) as f64 / 1e9;
        assert!((found / expected - 1.0).abs() < 0.12, "load {alpha}: {found} for {expected}");
    }
}

#[test]
fn sizes_meet_their_target_and_are_not_twice_too_large() {
    for busy in [0u64, 1, 16, 1_000, 100_000, 10_000_000] {
        for target in [10u64, 1_000, 100_000, 10_000_000, 500_000_000] {
            let lines = lines_for_load(busy, target);
            assert!(lines >= 4 && lines % 2 == 0, "{busy} {target}: {lines}");
            let slots = (lines as u64 - 2) * 8;
            let chance = full_set_ppb((busy * 1_000_000).div_ceil(slots));
            assert!(chance <= target, "{busy} busy in {slots}: {chance} above {target}");
            if slots > 32 && target <= 500_000_000 {
                let half = full_set_ppb((busy * 1_000_000).div_ceil(slots / 2));
                assert!(half > target, "{busy} busy: half of {slots} slots would do for {target}");
            }
        }
    }
    assert_eq!(lines_for_load(u64::MAX, 1_000), 0, "no such table");
    // The most slots that there may be, at the largest load that is looked for, and one more.
    let most = (1u128 << 34).min(usize::MAX as u128 / 16);
    let busy = (most * 3_999_999 / 1_000_000) as u64;
    assert_eq!(lines_for_load(busy, 1_000_000_000), lines_for(most as usize));
    assert_eq!(lines_for_load(busy + 1, 1_000_000_000), 0, "more slots than that");
    for (slots, lines) in [(0, 4), (1, 4), (16, 4), (17, 6), (32, 6), (33, 8), (1 << 20, (1 << 17) + 2)] {
        assert_eq!(lines_for(slots), lines, "{slots} slots");
        assert!((lines_for(slots) - 2) * 8 >= slots);
    }
    assert!(lines_for(usize::MAX) as u64 > 1 << 40 || usize::BITS < 64);
}

/// Part of the ABI: the sequence of SplitMix64 from 0 and from 1234567, as its author's program prints it.
#[test]
fn the_second_hash_is_splitmix64() {
    let step = 0x9e37_79b9_7f4a_7c15_u64;
    for (number, expected) in [
        (0, 0xe220_a839_7b1d_cdaf),
        (step, 0x6e78_9e6a_a1b9_65f4),
        (step.wrapping_mul(2), 0x06c4_5d18_8009_454f),
        (step.wrapping_mul(3), 0xf88b_b8a8_724c_81ec),
        (1_234_567, 6_457_827_717_110_365_317),
        (step.wrapping_add(1_234_567), 3_203_168_211_198_807_973),
    ] {
        assert_eq!(tatcell::second_hash(number), expected, "{number:#x}");
    }
}

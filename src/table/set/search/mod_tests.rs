//! The vector search against the plain loop.

use super::*;

#[test]
fn vector_search_equals_the_loop_for_every_position_and_tag() {
    let mut seed = 9u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed ^ seed >> 29
    };
    for bits in 12..=24u32 {
        let head = !0u64 << (63 - bits);
        for _ in 0..20_000 {
            let want = random() & head & !(1 << 63);
            let line = crate::table::layout::image::Line::new();
            let mut expected = 0;
            for (i, word) in line.words.iter().enumerate() {
                let value = match random() % 4 {
                    0 => want | random() & !head,
                    1 => want | 1 << 63 | random() & !head,
                    2 => (want ^ 1 << (63 - bits + random() as u32 % bits)) | random() & !head,
                    _ => random(),
                };
                word.store(value, Ordering::Relaxed);
                expected |= ((value & head == want) as u32) << i;
            }
            let (layout, tag) = (Layout::new(bits, 1, 2), Tag(want));
            assert_eq!(Base.matches(&line.words, &layout, tag), spread::<Base>(expected), "{bits} tag bits");
            if let Some(wide) = Avx512::detect() {
                let found = wide.matches(&line.words, &layout, tag);
                assert_eq!(found, spread::<Avx512>(expected), "{bits} tag bits, AVX-512");
            }
        }
    }
}

/// Spreads one bit a slot to the bits that a search returns for it.
fn spread<S: Scan>(slots: u32) -> u32 {
    let of_slot = |i: u32| if slots >> i & 1 == 1 { ((1 << S::BITS) - 1) << (S::BITS * i) } else { 0 };
    (0..8).map(of_slot).sum()
}

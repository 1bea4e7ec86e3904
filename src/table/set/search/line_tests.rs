//! The scans against the plain functions of a word.

use super::*;
use crate::sync::Ordering;
use crate::table::layout::image::Line;

#[test]
fn looks_tell_tags_empty_and_oldest_slots_for_every_kind_of_word() {
    let mut seed = 11u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed ^ seed >> 29
    };
    for tag_bits in 12..=24 {
        for _ in 0..20_000 {
            let window = random() % (1 << (60 - tag_bits)) + 1;
            let layout = Layout::new(tag_bits, window, 2);
            let (tag, now) = (layout.tag(random()), random());
            let lines = [Line::new(), Line::new()];
            let (mut tagged, mut empty, mut oldest) = (0, 0, None);
            for (i, slot) in lines.iter().flat_map(|line| &line.words).enumerate() {
                // Payloads around both ends of the window, and anywhere.
                let ahead = [0, 1, window, window + 1, random() % window, random()];
                let payload = now.wrapping_add(ahead[random() as usize % 6]).wrapping_sub(random() % 2);
                let head = match random() % 4 {
                    0 => 0,
                    1 => layout.tag(random()).0,
                    _ => tag.0,
                };
                let word = random() & 1 << 63 | head | payload & layout.mask;
                slot.store(word, Ordering::Relaxed);
                tagged |= (layout.has_tag(word, tag) as u32) << i;
                empty |= (layout.is_empty(word) as u32) << i;
                // The plain definition: the greatest time since the window's end, the first of several.
                if layout.lead(word, now) == 0 && oldest.is_none_or(|(age, _)| layout.age(word, now) > age) {
                    oldest = Some((layout.age(word, now), i));
                }
            }
            let oldest = oldest.map(|(_, i)| i);
            let [home, next] = [0, 1].map(|i: usize| Words::load(&lines[i].words));
            assert_eq!(home.tagged(&layout, tag), tagged & 255, "{layout:?} {lines:?}");
            assert_eq!(Words::tagged_in(&home, &next, &layout, tag), tagged, "{layout:?} {lines:?}");
            assert_eq!(Words::tagged_in(&home, &next, &layout, Tag(0)), empty, "{layout:?} {lines:?}");
            assert_eq!(Words::oldest(&home, &next, &layout, now), oldest, "{layout:?} {now} {lines:?}");
            let [home, next] = [0, 1].map(|i: usize| words::Words::load(&lines[i].words));
            assert_eq!(home.tagged(&layout, tag), tagged & 255);
            assert_eq!(words::Words::tagged_in(&home, &next, &layout, tag), tagged);
            assert_eq!(words::Words::tagged_in(&home, &next, &layout, Tag(0)), empty);
            assert_eq!(
                words::Words::oldest(&home, &next, &layout, now),
                oldest,
                "{layout:?} {now} {lines:?}"
            );
        }
    }
}

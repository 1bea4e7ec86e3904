//! The bits below the time in a word of an override; see [`overrides`](crate::table::overrides).
#![forbid(unsafe_code)]

use super::word::Layout;

/// Bits of what an override is, below its time.
pub(in crate::table) const OVERRIDE_BITS: u32 = 2;
pub(in crate::table) const NONE: u64 = 0;
pub(in crate::table) const EXEMPT: u64 = 1;
pub(in crate::table) const BAN: u64 = 2;
pub(in crate::table) const WITNESS: u64 = 3;
const _: () = assert!(WITNESS < 1 << OVERRIDE_BITS);

/// Returns whether the word is LIVE and a ban or an exemption.
pub(in crate::table) fn is_override(layout: &Layout, word: u64) -> bool {
    layout.is_live(word) && matches!(word & WITNESS, BAN | EXEMPT)
}

/// Returns whether the word is LIVE and an exemption.
pub(in crate::table) fn is_exemption(layout: &Layout, word: u64) -> bool {
    layout.is_live(word) && word & WITNESS == EXEMPT
}

/// Returns whether the word is LIVE and a witness.
pub(in crate::table) fn is_witness(layout: &Layout, word: u64) -> bool {
    layout.is_live(word) && word & WITNESS == WITNESS
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_live_word_is_what_its_two_bits_say_and_others_are_nothing() {
        let layout = Layout::new(20, 1 << 20, 16);
        let tag = layout.tag(7);
        for aux in [NONE, EXEMPT, BAN, WITNESS] {
            for time in [0, 4, 1 << 30] {
                let live = layout.live(tag, time | aux);
                assert_eq!(is_override(&layout, live), aux == BAN || aux == EXEMPT, "{live:#x}");
                assert_eq!(is_exemption(&layout, live), aux == EXEMPT, "{live:#x}");
                assert_eq!(is_witness(&layout, live), aux == WITNESS, "{live:#x}");
                // A claim, and an EMPTY slot.
                for word in [live | 1 << 63, time | aux] {
                    let all = [is_override, is_exemption, is_witness].map(|is| is(&layout, word));
                    assert_eq!(all, [false; 3], "{word:#x}");
                }
            }
        }
    }
}

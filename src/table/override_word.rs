//! What the words of overrides say below their time; see [`overrides`](super::overrides).
#![forbid(unsafe_code)]

use super::word::Layout;
use crate::limit::OVERRIDE_BITS;

pub(super) const NONE: u64 = 0;
pub(super) const EXEMPT: u64 = 1;
pub(super) const BAN: u64 = 2;
pub(super) const WITNESS: u64 = 3;
const _: () = assert!(WITNESS < 1 << OVERRIDE_BITS);

/// Is this LIVE word a ban or an exemption?
pub(super) fn is_override(layout: &Layout, word: u64) -> bool {
    layout.is_live(word) && matches!(word & WITNESS, BAN | EXEMPT)
}

/// Is this LIVE word an exemption?
pub(super) fn is_exemption(layout: &Layout, word: u64) -> bool {
    layout.is_live(word) && word & WITNESS == EXEMPT
}

/// Is this LIVE word a witness?
pub(super) fn is_witness(layout: &Layout, word: u64) -> bool {
    layout.is_live(word) && word & WITNESS == WITNESS
}

//! The table in memory: one header line and lines of slots, position-independent.
//!
//! ```text
//!  line 0   header   word 0  magic 48 | layout version 16        published last, with Release
//!                    word 1  lines 32 | tag bits 8 | resolution 8 (signed) | hash 8 | policy 4 | mode 4
//!                    word 2  H, q-units
//!                    word 3  H + S, q-units
//!                    word 4  G, claim lifetime, q-units
//!                    word 5  seed check value (0 where the caller hashes)
//!                    word 6, 7   0
//!  line 1.. slots    8 words each, see word.rs
//! ```
//!
//! Words are in the byte order of the machine. Several processes may map the image at different addresses: one
//! initialises, the others attach once the magic is there; attaching copies the geometry to private memory and
//! never reads it again, so a hostile or broken neighbour can spoil answers, not memory safety. Any 64-bit value is
//! a valid slot.

use super::error::TableError;
use super::geometry::{Geometry, SLOTS_PER_LINE};
use super::policy::FullPolicy;
use super::word::Layout;
use crate::keys::{HashKind, Hasher};
use crate::sync::{AtomicU64, Ordering};

/// "tatcel" in the high 48 bits.
const MAGIC: u64 = 0x7461_7463_656c_0000;
/// Changes whenever header, word layout or hash mapping change.
pub const LAYOUT_VERSION: u16 = 1;

const MODE_EXCLUSIVE: u64 = 1;

/// One cache line of table memory: eight words. All zero is valid and empty.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Line {
    pub(crate) words: [AtomicU64; SLOTS_PER_LINE],
}

impl Line {
    /// An empty line.
    #[cfg(not(tatcell_loom))]
    #[allow(clippy::declare_interior_mutable_const)] // the point: `[Line::EMPTY; N]` makes N separate lines
    pub const EMPTY: Line = Line { words: [const { AtomicU64::new(0) }; SLOTS_PER_LINE] };

    /// Makes an empty line.
    pub fn new() -> Line {
        Line { words: core::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl Default for Line {
    fn default() -> Line {
        Line::new()
    }
}

/// Lines of memory (header included) for at least `slots` slots.
pub const fn lines_for(slots: usize) -> usize {
    let slots = if slots < 16 { 16 } else { slots };
    // Whole sets of two lines.
    slots.div_ceil(2 * SLOTS_PER_LINE).saturating_mul(2).saturating_add(1)
}

/// Packs header word 1.
fn shape(g: &Geometry, exclusive: bool) -> u64 {
    let shift = (g.shl as i8).wrapping_sub(g.shr as i8) as u8;
    let tag_bits = 63 - g.layout.bits;
    (g.lines as u64) << 32
        | (tag_bits as u64) << 24
        | (shift as u64) << 16
        | (g.hash as u64) << 8
        | (g.policy as u64) << 4
        | if exclusive { MODE_EXCLUSIVE } else { 0 }
}

/// Writes a fresh image: slots first, magic last. `slot(i)` is the word of slot i.
pub(crate) fn format(lines: &[Line], g: &Geometry, exclusive: bool, slot: impl Fn(usize) -> u64) {
    let Some((header, slots)) = lines.split_first() else { return };
    // ORDERING: Relaxed throughout; nobody may use the image before it is published below.
    header.words[0].store(0, Ordering::Relaxed);
    for (i, word) in slots.iter().flat_map(|line| &line.words).enumerate() {
        word.store(slot(i), Ordering::Relaxed);
    }
    write_header(&header.words, g, exclusive);
}

fn write_header(words: &[AtomicU64; SLOTS_PER_LINE], g: &Geometry, exclusive: bool) {
    let values = [shape(g, exclusive), g.horizon, g.layout.window, g.layout.lifetime, g.seed_check, 0, 0];
    for (word, value) in words.iter().skip(1).zip(values) {
        // ORDERING: Relaxed; published by the Release store below.
        word.store(value, Ordering::Relaxed);
    }
    // ORDERING: Release; pairs with the Acquire load in `read`: whoever sees the magic sees header and slots.
    words[0].store(MAGIC | LAYOUT_VERSION as u64, Ordering::Release);
}

/// Reads and validates a header for an image of `lines` lines in all.
pub(crate) fn read(
    words: &[AtomicU64; SLOTS_PER_LINE],
    lines: usize,
    seed: Option<&[u8; 16]>,
    exclusive: bool,
) -> Result<(Geometry, Hasher), TableError> {
    // ORDERING: Acquire; pairs with the Release store of the magic.
    let magic = words[0].load(Ordering::Acquire);
    if magic & !0xffff != MAGIC {
        return Err(TableError::NotReady);
    }
    if magic & 0xffff != LAYOUT_VERSION as u64 {
        return Err(TableError::BadVersion);
    }
    // ORDERING: Relaxed; published by the magic. Each word is read once and only the copy is used.
    let [_, shape, horizon, window, lifetime, check, ..] =
        core::array::from_fn::<u64, 8, _>(|i| words[i & 7].load(Ordering::Relaxed));
    let (slot_lines, tag_bits) = ((shape >> 32) as u32, (shape >> 24) as u8 as u32);
    let shift = (shape >> 16) as u8 as i8;
    let hash = HashKind::from_number((shape >> 8) as u8);
    let policy = FullPolicy::from_number((shape >> 4) as u8 & 15);
    let (Some(hash), Some(policy)) = (hash, policy) else { return Err(TableError::BadGeometry) };
    let sound = (12..=24).contains(&tag_bits)
        && (-63..=63).contains(&shift)
        && slot_lines >= 2
        && slot_lines % 2 == 0
        && slot_lines as usize == lines.saturating_sub(1) & !1
        && horizon != 0
        && horizon <= window
        && window <= 1 << (60 - tag_bits)
        && (2..=window).contains(&lifetime)
        && (window as u128) << shift.min(0).unsigned_abs() < 1 << 63;
    if !sound {
        return Err(TableError::BadGeometry);
    }
    if (shape & 15 == MODE_EXCLUSIVE) != exclusive {
        return Err(TableError::BadMode);
    }
    let (hasher, own_check) = Hasher::new(hash, seed)?;
    if own_check != check {
        return Err(TableError::WrongSeed);
    }
    let geometry = Geometry {
        layout: Layout::new(tag_bits, window, lifetime),
        lines: slot_lines,
        shl: shift.max(0) as u8,
        shr: shift.min(0).unsigned_abs(),
        policy,
        hash,
        horizon,
        seed_check: check,
    };
    Ok((geometry, hasher))
}

/// Copies an image, each word whole, dropping what has expired at `now_q`. Returns the words written.
pub(crate) fn save(
    slots: &[Line],
    g: &Geometry,
    exclusive: bool,
    now_q: u64,
    out: &mut [u64],
) -> Result<usize, TableError> {
    let need = (slots.len() + 1) * SLOTS_PER_LINE;
    let Some((header, body)) = out.get_mut(..need).and_then(|o| o.split_at_mut_checked(SLOTS_PER_LINE))
    else {
        return Err(TableError::BufferTooSmall);
    };
    let scratch = Line::new();
    write_header(&scratch.words, g, exclusive);
    for (to, word) in header.iter_mut().zip(&scratch.words) {
        // ORDERING: Relaxed; a local copy.
        *to = word.load(Ordering::Relaxed);
    }
    for (to, slot) in body.iter_mut().zip(slots.iter().flat_map(|line| &line.words)) {
        // ORDERING: Relaxed; each word is whole, and a saved image is as of the reading of each word.
        let word = slot.load(Ordering::Relaxed);
        *to = kept(&g.layout, word, now_q);
    }
    Ok(need)
}

/// What a saved image keeps of a word: live debts, and debts that a takeover holds in a claim or dropped claim.
fn kept(layout: &Layout, word: u64, now_q: u64) -> u64 {
    if layout.lead(word, now_q) == 0 {
        0
    } else if layout.is_live(word) {
        word
    } else if Layout::is_takeover(word) {
        layout.payload(word)
    } else {
        0
    }
}

/// Fills fresh memory from a saved image whose clock is `offset` ticks behind the new one.
pub(crate) fn restore(
    lines: &[Line],
    image: &[u64],
    options: &RestoreOptions<'_>,
) -> Result<(Geometry, Hasher), TableError> {
    if image.len() < 3 * SLOTS_PER_LINE || image.len() % SLOTS_PER_LINE != 0 {
        return Err(TableError::BadGeometry);
    }
    let scratch = Line::new();
    for (word, value) in scratch.words.iter().zip(image) {
        // ORDERING: Relaxed; a local copy.
        word.store(*value, Ordering::Relaxed);
    }
    let (g, hasher) = read(&scratch.words, image.len() / SLOTS_PER_LINE, options.seed, options.exclusive)?;
    if lines.len() != g.lines as usize + 1 {
        return Err(TableError::BufferTooSmall);
    }
    // Towards later: a debt is not shortened by rounding.
    let moved = options.offset as i128;
    let moved = if g.shr > 0 { -((-moved) >> g.shr) } else { moved << g.shl } as u64;
    format(lines, &g, options.exclusive, |i| {
        let word = image.get(SLOTS_PER_LINE + i).copied().unwrap_or(0);
        if word == 0 {
            return 0;
        }
        let payload = word.wrapping_add(moved) & g.layout.mask;
        // A kept debt of a takeover stays odd.
        let payload = if g.layout.is_empty(word) { payload | 1 } else { payload };
        word & !g.layout.mask | payload
    });
    Ok((g, hasher))
}

/// How an image is restored.
pub(crate) struct RestoreOptions<'a> {
    pub seed: Option<&'a [u8; 16]>,
    pub exclusive: bool,
    pub offset: i64,
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "image_tests.rs"]
mod tests;

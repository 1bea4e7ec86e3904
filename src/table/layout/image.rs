//! The table in memory: a header of two lines, then the lines of slots. Position-independent.
//!
//! ```text
//!  line 0   header   word 0  magic 48 | layout version 16        published last, with Release
//!                    word 1  lines 32 | tag bits 8 | resolution 8 (signed) | hash 8 | policy 4 | mode 4
//!                    word 2  H, q-units
//!                    word 3  H + S, q-units
//!                    word 4  G, claim lifetime, q-units
//!                    word 5  seed check value (0 where the caller hashes)
//!                    word 6  incompatible features: a bit that a library does not know makes it refuse the image
//!                    word 7  guard 32 | form 16 | aux bits 8 | content 8   all 0 is GCRA; form of others 1
//!  line 1            word 8  generation: raised by each restore; permits carry it
//!                    word 9  ticks per second, 0 = unknown
//!                    word 10 1 = no override was ever stored; 0 = perhaps, and in every table of debts
//!                    word 11..14   0
//!                    word 15  the callers' clock, a `TableClock`; 0 = unknown
//!  line 2.. slots    8 words each, see word.rs
//! ```
//!
//! Words are in the byte order of the machine. Several processes may map the image at different addresses. One
//! initialises it, and the others attach once the magic is there. Attaching copies the geometry to private memory and
//! never reads it again, so a hostile or broken neighbour can spoil answers, not memory safety. Any 64-bit value is a
//! valid slot.
//!
//! Word 10 is the only word of the header that changes. The first override stores 0 there, and only a fresh image has 1
//! again. A library that does not know the word refuses the image while it is 1, so none can store an override without
//! clearing it. Such a library leaves 0, which asks for every override.

use super::geometry::{Content, Geometry, HEADER_LINES, MIN_SLOTS, SLOTS_PER_LINE};
use super::options::AttachOptions;
use super::override_word::{is_exemption, is_override, is_witness, OVERRIDE_BITS};
use super::policy::FullPolicy;
use super::word::Layout;
use crate::keys::{HashKind, Hasher};
use crate::limit::Algorithm;
use crate::sync::{fence, AtomicU64, Ordering};
use crate::table::error::TableError;

/// "tatcel" in the high 48 bits.
const MAGIC: u64 = 0x7461_7463_656c_0000;
/// The version of header, word layout and hash mapping. Version 1 had a header of one line.
///
/// ```
/// // Name it in the name of shared memory: then a newer program makes a new table next to the old one.
/// assert_eq!(format!("/limits.v{}", tatcell::LAYOUT_VERSION), "/limits.v2");
/// ```
pub const LAYOUT_VERSION: u16 = 2;
/// Words of the header.
const HEADER_WORDS: usize = HEADER_LINES * SLOTS_PER_LINE;

const MODE_EXCLUSIVE: u64 = 1;

/// Word 10 of a table in which no override was ever stored.
pub(in crate::table) const UNUSED: u64 = 1;
/// Where that word is: line and word.
const UNUSED_AT: (usize, usize) = (1, 2);

/// Holds one cache line of table memory: eight words. All zero is valid and empty.
///
/// ```
/// use tatcell::Line;
/// static MEMORY: [Line; 130] = [Line::EMPTY; 130]; // a header of two lines, 1024 slots
/// assert_eq!((size_of::<Line>(), align_of_val(&MEMORY)), (64, 64));
/// ```
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Line {
    pub(crate) words: [AtomicU64; SLOTS_PER_LINE],
}

impl Line {
    /// The empty line: all words are zero.
    #[cfg(not(tatcell_loom))]
    #[allow(clippy::declare_interior_mutable_const)] // intended: `[Line::EMPTY; N]` makes N separate lines
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

/// Returns the lines of memory (header included) for at least `slots` slots.
///
/// ```
/// assert_eq!(tatcell::lines_for(512), 2 + 64); // the header, and 8 slots a line
/// ```
pub const fn lines_for(slots: usize) -> usize {
    let slots = if slots < 16 { 16 } else { slots };
    // Whole sets of two lines.
    slots.div_ceil(2 * SLOTS_PER_LINE).saturating_mul(2).saturating_add(HEADER_LINES)
}

/// Packs header word 1.
fn shape(g: &Geometry, exclusive: bool) -> u64 {
    let shift = g.resolution() as i8 as u8;
    let tag_bits = 63 - g.layout.bits;
    (g.lines as u64) << 32
        | (tag_bits as u64) << 24
        | (shift as u64) << 16
        | (g.hash as u64) << 8
        | (g.policy as u64) << 4
        | if exclusive { MODE_EXCLUSIVE } else { 0 }
}

/// Version of the states in words that hold a count: changes when the word of an algorithm does.
const FORM: u64 = 1;

/// Packs header word 7.
fn rule(g: &Geometry) -> u64 {
    if g.is_gcra() {
        return 0;
    }
    (g.guard as u64) << 32 | FORM << 16 | (g.shl as u64) << 8 | g.content.number() as u64
}

/// Reads header word 7: content, aux bits, guard. None where this library does not know it.
fn read_rule(word: u64) -> Option<(Content, u8, u32)> {
    let content = Content::of(word as u8)?;
    let (aux, guard) = ((word >> 8) as u8, (word >> 32) as u32);
    let (form, sound) = match content {
        Content::Debts(Algorithm::Gcra) => (0, aux == 0 && guard == 0),
        Content::Debts(Algorithm::Decay) => (FORM, aux == 0 && guard == 0),
        Content::Debts(Algorithm::FixedWindow) => (FORM, aux != 0),
        Content::Debts(_) => (FORM, aux > 1 && guard == 0),
        Content::Overrides => (FORM, aux as u32 == OVERRIDE_BITS && guard == 0),
    };
    (sound && word >> 16 & 0xffff == form).then_some((content, aux, guard))
}

/// Returns the words of a header from word 1 on.
pub(in crate::table) fn header(g: &Geometry, exclusive: bool) -> [u64; HEADER_WORDS - 1] {
    let mut words = [0; HEADER_WORDS - 1];
    let known = [shape(g, exclusive), g.horizon, g.layout.window, g.layout.lifetime, g.seed_check, 0];
    let known = known.into_iter().chain([rule(g), g.generation, g.tick_hz]);
    words.iter_mut().zip(known).for_each(|(word, value)| *word = value);
    let [.., clock] = &mut words;
    *clock = g.clock.into();
    words
}

/// Returns the word that says whether an override was ever stored.
pub(in crate::table) fn unused(head: &[Line]) -> Option<&AtomicU64> {
    head.get(UNUSED_AT.0)?.words.get(UNUSED_AT.1)
}

/// Word 0 of a published image.
pub(in crate::table) const FIRST_WORD: u64 = MAGIC | LAYOUT_VERSION as u64;

/// Returns the header of an image, and its word 0.
pub(in crate::table) fn head(lines: &[Line]) -> Option<(&[Line], &AtomicU64)> {
    let head = lines.get(..HEADER_LINES)?;
    Some((head, head.first()?.words.first()?))
}

/// Writes a fresh image: slots first, magic last. `slot(i)` returns the word of slot i.
pub(crate) fn format(lines: &[Line], g: &Geometry, exclusive: bool, slot: impl Fn(usize) -> u64) {
    let Some((head, magic)) = head(lines) else { return };
    let slots = lines.get(HEADER_LINES..).unwrap_or_else(|| impossible!(&[]));
    // ORDERING: Relaxed throughout; nobody may use the image before it is published below.
    magic.store(0, Ordering::Relaxed);
    let mut all = 0;
    for (i, word) in slots.iter().flat_map(|line| &line.words).enumerate() {
        let value = slot(i);
        word.store(value, Ordering::Relaxed);
        all |= value;
    }
    publish(head, magic, g, exclusive, all == 0);
}

/// Writes a fresh image in zero memory, touching only the header. Returns false if the header is not zero.
pub(crate) fn format_zeroed(lines: &[Line], g: &Geometry, exclusive: bool) -> bool {
    let Some((head, magic)) = head(lines) else { return false };
    // ORDERING: Relaxed; nobody may use the memory before it is published below.
    let zero = head.iter().flat_map(|line| &line.words).all(|word| word.load(Ordering::Relaxed) == 0);
    if zero {
        publish(head, magic, g, exclusive, true);
    }
    zero
}

/// Writes the header, magic last. `empty`: no slot holds anything.
pub(in crate::table) fn publish(
    head: &[Line],
    magic: &AtomicU64,
    g: &Geometry,
    exclusive: bool,
    empty: bool,
) {
    for (word, value) in head.iter().flat_map(|line| &line.words).skip(1).zip(header(g, exclusive)) {
        // ORDERING: Relaxed; published by the Release store below.
        word.store(value, Ordering::Relaxed);
    }
    if let Some(word) = unused(head).filter(|_| empty && g.content == Content::Overrides) {
        // ORDERING: Relaxed; published by the Release store below.
        word.store(UNUSED, Ordering::Relaxed);
    }
    // ORDERING: Release; pairs with the Acquire load in `load`: a thread that sees the magic sees header and slots.
    magic.store(FIRST_WORD, Ordering::Release);
}

/// Copies the header of an image. Reads each word once, and no other word before the magic is there. Only the copy is
/// used.
pub(crate) fn load(lines: &[Line]) -> Option<[u64; HEADER_WORDS]> {
    let head = lines.get(..HEADER_LINES)?;
    let mut from = head.iter().flat_map(|line| &line.words);
    let mut words = [0; HEADER_WORDS];
    let (magic, rest) = words.split_first_mut()?;
    // ORDERING: Relaxed, then an Acquire fence, which pairs with the Release store of the magic. Memory that is mapped
    // for reading alone may be read by relaxed loads only.
    *magic = from.next()?.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    if *magic & !0xffff == MAGIC {
        // ORDERING: Relaxed; published by the magic.
        rest.iter_mut().zip(from).for_each(|(to, word)| *to = word.load(Ordering::Relaxed));
    }
    Some(words)
}

/// Validates a header for an image of `lines` lines in all. `mode` is [`Mode::IMAGE`](crate::sync::Mode): who only
/// looks takes an image of either mode, and needs no seed.
pub(crate) fn read(
    words: &[u64; HEADER_WORDS],
    lines: usize,
    options: &AttachOptions,
    mode: Option<bool>,
) -> Result<(Geometry, Hasher), TableError> {
    let [magic, shape, horizon, window, lifetime, check, features, rule, rest @ ..] = *words;
    let [generation, tick_hz, unused, rest @ .., clock] = rest;
    if magic & !0xffff != MAGIC {
        return Err(TableError::NotReady);
    }
    // What this library does not know it refuses: here no feature, and some algorithms.
    let rule = read_rule(rule).filter(|_| magic & 0xffff == LAYOUT_VERSION as u64 && features == 0);
    let Some((content, aux, guard)) = rule else { return Err(TableError::BadVersion) };
    let counts = !matches!(content, Content::Debts(Algorithm::Gcra));
    let (slot_lines, tag_bits) = ((shape >> 32) as u32, (shape >> 24) as u8 as u32);
    let shift = (shape >> 16) as u8 as i8;
    let hash = HashKind::from_number((shape >> 8) as u8);
    let policy = FullPolicy::from_number((shape >> 4) as u8 & 15);
    let (Some(hash), Some(policy)) = (hash, policy) else { return Err(TableError::BadGeometry) };
    let sound = (12..=24).contains(&tag_bits)
        && (-63..=63).contains(&shift)
        && shape & 15 <= MODE_EXCLUSIVE
        && slot_lines >= 2
        && slot_lines % 2 == 0
        && slot_lines as usize == lines.saturating_sub(HEADER_LINES) & !1
        && horizon != 0
        && horizon <= window
        && aux as u32 + 3 <= 63 - tag_bits
        && window <= 1 << (60 - tag_bits + counts as u32)
        && (horizon | window) & ((1u64 << aux) - 1) == 0
        && !(counts && shift > 0)
        && !(aux != 0 && matches!(policy, FullPolicy::Inherit))
        && (2..=window).contains(&lifetime)
        && ((window >> aux) as u128) << shift.min(0).unsigned_abs() < 1 << 63
        && (!counts || lifetime <= (1 << aux).max(2))
        && unused <= if content == Content::Overrides { UNUSED } else { 0 }
        && clock <= u8::MAX.into()
        && rest.iter().fold(0, |all, word| all | word) == 0;
    if !sound {
        return Err(TableError::BadGeometry);
    }
    let exclusive = shape & 15 == MODE_EXCLUSIVE;
    let as_asked = mode.is_none_or(|asked| asked == exclusive)
        && options.policy.is_none_or(|asked| asked == policy)
        && options.tick_hz.is_none_or(|asked| asked == tick_hz);
    if !as_asked {
        return Err(TableError::BadMode);
    }
    let hasher = match (mode, &options.seed) {
        (None, None) => Hasher::none(),
        (_, seed) => {
            let (hasher, own_check) = Hasher::new(hash, seed.as_ref())?;
            if own_check != check {
                return Err(TableError::WrongSeed);
            }
            hasher
        }
    };
    let layout = Layout::new(tag_bits, window, lifetime);
    let (shl, shr) = (if counts { aux } else { shift.max(0) as u8 }, shift.min(0).unsigned_abs());
    let mut geometry = Geometry {
        layout,
        lines: slot_lines,
        shl,
        shr,
        policy,
        hash,
        horizon,
        content,
        guard,
        filled: [0; 1],
        exclusive,
        clock: clock as u8,
        seed_check: check,
        generation,
        tick_hz,
        fingerprint: 0,
    };
    geometry.fingerprint = geometry.fingerprint_of();
    Ok((geometry, hasher))
}

/// Copies an image, each word whole, without what has expired at `now_q`. Returns the number of words written.
///
/// An override is two words, so a second pass over overrides looks for witnesses that arrived during the first.
pub(crate) fn save(
    slots: &[Line],
    g: &Geometry,
    exclusive: bool,
    now_q: u64,
    out: &mut [u64],
) -> Result<usize, TableError> {
    let need = (slots.len() + HEADER_LINES) * SLOTS_PER_LINE;
    let Some((head, body)) = out.get_mut(..need).and_then(|o| o.split_at_mut_checked(HEADER_WORDS)) else {
        return Err(TableError::BufferTooSmall);
    };
    let words = core::iter::once(FIRST_WORD).chain(header(g, exclusive));
    head.iter_mut().zip(words).for_each(|(to, word)| *to = word);
    for (to, slot) in body.iter_mut().zip(slots.iter().flat_map(|line| &line.words)) {
        // ORDERING: Relaxed; each word is loaded whole, and a saved image has each word as of its load.
        let word = slot.load(Ordering::Relaxed);
        *to = kept(&g.layout, word, now_q);
    }
    if g.content == Content::Overrides {
        // ORDERING: Acquire; pairs with the Release swaps that placed what was read: a witness was there before each.
        fence(Ordering::Acquire);
        for (to, slot) in body.iter_mut().zip(slots.iter().flat_map(|line| &line.words)) {
            // ORDERING: Relaxed; single word, value only, behind the fence.
            let word = kept(&g.layout, slot.load(Ordering::Relaxed), now_q);
            if is_witness(&g.layout, word) && !is_override(&g.layout, *to) {
                *to = word;
            }
        }
    }
    Ok(need)
}

/// Returns what a saved image keeps of a word: a live debt, or one that a takeover holds in a claim or dropped claim.
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

/// Fills fresh memory from a saved image whose clock is `offset` ticks behind the new one. Raises the generation by
/// one, because what older permits know about the time axis is no longer true.
pub(crate) fn restore(
    lines: &[Line],
    image: &[u64],
    options: &AttachOptions,
    exclusive: bool,
    offset: i64,
) -> Result<(Geometry, Hasher), TableError> {
    let (Some((header, body)), 0) = (image.split_first_chunk(), image.len() % SLOTS_PER_LINE) else {
        return Err(TableError::BadGeometry);
    };
    let (mut g, hasher) = read(header, image.len() / SLOTS_PER_LINE, options, Some(exclusive))?;
    if lines.len() != g.lines as usize + HEADER_LINES {
        return Err(TableError::BufferTooSmall);
    }
    g.generation = g.generation.wrapping_add(1);
    // Later for all words, because rounding must not shorten a debt; earlier for exemptions: it must not lengthen one.
    let later = (-(-(offset as i128) >> g.shr) << g.shl) as u64;
    let earlier = ((offset as i128 >> g.shr) << g.shl) as u64;
    let exempts = |word| g.content == Content::Overrides && is_exemption(&g.layout, word);
    format(lines, &g, exclusive, |i| {
        let word = body.get(i).copied().unwrap_or_else(|| impossible!(0));
        let word = if word == 0 || is_outdone(&g, body, i, word) { 0 } else { merged(&g, body, i, word) };
        if word == 0 {
            return 0;
        }
        let moved = if exempts(word) { earlier } else { later };
        let payload = word.wrapping_add(moved) & g.layout.mask;
        // The debt of a takeover stays odd.
        let payload = if g.layout.is_empty(word) { payload | 1 } else { payload };
        word & !g.layout.mask | payload
    });
    Ok((g, hasher))
}

/// Iterates over the other words of the set of word `i`, with their indices.
fn set_of(slots: &[u64], i: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
    let first = i - i % MIN_SLOTS;
    let set = slots.get(first..first + MIN_SLOTS).unwrap_or_else(|| impossible!(&[]));
    (first..).zip(set.iter().copied()).filter(move |(j, _)| *j != i)
}

/// Returns whether another word of the set with the same tag replaces this one. A save of a table in use may have read
/// a key in two places, because the key moved meanwhile. One word per tag is kept: the one with the later TAT, or,
/// where words count, the first, which gets what both have counted.
fn is_outdone(g: &Geometry, slots: &[u64], i: usize, word: u64) -> bool {
    let layout = &g.layout;
    layout.is_live(word)
        && set_of(slots, i).any(|(j, other)| {
            let ahead = other.wrapping_sub(word) & layout.mask;
            let later = ahead != 0 && ahead <= layout.mask / 2 || ahead == 0 && j < i;
            (other ^ word) & !layout.mask == 0 && if g.is_gcra() { later } else { j < i }
        })
}

/// Returns the word with what all words of its tag have counted.
fn merged(g: &Geometry, slots: &[u64], i: usize, word: u64) -> u64 {
    let layout = &g.layout;
    if g.is_gcra() || !layout.is_live(word) {
        return word;
    }
    // Measures from a clock before all of them: saved words lie within one window, less than a quarter of the span.
    let clock = word.wrapping_sub(layout.mask / 4) & layout.mask | g.aux_mask();
    let ahead = |word: u64| word.wrapping_sub(clock) & layout.mask;
    let same = set_of(slots, i).filter(|(_, other)| (other ^ word) & !layout.mask == 0);
    let lead = same.fold(ahead(word), |lead, (_, other)| g.merge(lead, ahead(other)));
    word & !layout.mask | clock.wrapping_add(lead) & layout.mask
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "image_tests.rs"]
mod tests;

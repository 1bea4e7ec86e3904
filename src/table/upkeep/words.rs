//! The words of a table, decoded: for developers and for programs that look into a table.
#![forbid(unsafe_code)]

use crate::sync::access::Mode;
use crate::sync::Ordering;
use crate::table::handle::Table;
use crate::table::layout::geometry::Content;
use crate::table::layout::override_word::{is_exemption, is_witness};

/// What a slot's word is.
///
/// ```
/// use tatcell::{LimitSpec, Line, Table, TableOptions, WordKind};
/// let (spec, lines) = (LimitSpec::new(10, 1_000, 20), [const { Line::EMPTY }; 66]); // milliseconds
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// assert!(table.check(&table.limit(&spec)?, 0, b"192.0.2.1", 20)?.passes());
/// let number = table.next_live(0, 0).unwrap().number as usize;
/// let kind = |now| table.slot_word(now, number).map(|slot| slot.kind);
/// assert_eq!((kind(1_999), kind(2_001)), (Some(WordKind::Live), Some(WordKind::Expired)));
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WordKind {
    /// Nothing that counts: never used, swept, or a claim that was dropped.
    Empty,
    /// The debt of a key.
    Live,
    /// The debt of a key, drained: as good as empty.
    Expired,
    /// A key is being inserted, or was when its thread stopped.
    Claim,
    /// What a reset left: no key gets the slot until the debt that it held has drained.
    Tombstone,
    /// The debt of an insert that took the slot over and gave up.
    Dropped,
    /// A ban of a key.
    Ban,
    /// An exemption of a key.
    Exemption,
    /// The second word of an override.
    Witness,
    /// A ban or an exemption that was lifted, or cannot hold: it keeps its slot until it would have ended.
    Lifted,
}

/// One slot, as of its load.
///
/// ```
/// use tatcell::{LimitSpec, Line, Table, TableOptions, WordKind};
/// let spec = LimitSpec::new(10, 1_000_000_000, 20);
/// let lines = [const { Line::EMPTY }; 66];
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// let limit = table.limit(&spec)?;
/// assert!(table.check(&limit, 0, b"192.0.2.1", 20)?.passes());
/// let words = (0..table.slots()).filter_map(|number| table.slot_word(0, number));
/// assert_eq!(words.filter(|word| word.kind == WordKind::Live).count(), 1);
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotWord {
    /// The number of the slot.
    pub number: u32,
    /// The word as it is.
    pub word: u64,
    /// What it is.
    pub kind: WordKind,
    /// The tag of its key, the low bits of the hash; 0 = none.
    pub tag: u32,
    /// The payload: a time in q-units that wraps, with a count in its low bits where the table has one.
    pub payload: u64,
    /// How far the payload lies ahead of now, in q-units; 0 = it has expired.
    pub lead: u64,
}

impl<M: Mode> Table<'_, M> {
    /// Decodes the word of one slot; `None` after the last.
    ///
    /// # Concurrency
    /// Together with any other call; one load.
    pub fn slot_word(&self, now: u64, number: usize) -> Option<SlotWord> {
        let g = &self.geometry;
        let layout = &g.layout;
        // ORDERING: Relaxed; single word, value only.
        let word = self.word(number)?.load(Ordering::Relaxed);
        let lead = layout.lead(word, g.clock_q(now));
        let overrides = g.content == Content::Overrides;
        let kind = match lead {
            _ if layout.is_claim(word) => WordKind::Claim,
            0 if layout.is_empty(word) => WordKind::Empty,
            _ if layout.is_empty(word) && word & 1 == 1 => WordKind::Dropped,
            _ if layout.is_empty(word) => WordKind::Tombstone,
            0 => WordKind::Expired,
            _ if overrides && is_witness(layout, word) => WordKind::Witness,
            _ if overrides && !g.counts(word, lead) => WordKind::Lifted,
            _ if overrides && is_exemption(layout, word) => WordKind::Exemption,
            _ if overrides => WordKind::Ban,
            _ => WordKind::Live,
        };
        let tag = (layout.tag_field(word) >> layout.bits) as u32;
        Some(SlotWord { number: number as u32, word, kind, tag, payload: layout.payload(word), lead })
    }
}

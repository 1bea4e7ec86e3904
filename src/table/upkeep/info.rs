//! What a table reports about itself.
#![forbid(unsafe_code)]

use crate::keys::HashKind;
use crate::limit::Algorithm;
use crate::sync::access::Mode;
use crate::table::handle::Table;
use crate::table::layout::clock::TableClock;
use crate::table::layout::geometry::{Content, SLOTS_PER_LINE};
use crate::table::layout::policy::FullPolicy;
use crate::time::ticks_up;

/// Reports the numbers of a table; times are ticks.
///
/// ```
/// use tatcell::{LimitSpec, Line, Table, TableOptions};
/// let spec = LimitSpec::new(10, 1_000_000_000, 20);
/// let lines = [const { Line::EMPTY }; 66];
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// let limit = table.limit(&spec)?;
/// let info = table.info();
/// assert_eq!((info.slots, info.image_bytes), (512, 66 * 64));
/// assert!(info.tag_bits >= 12 && !info.exclusive);
/// # let _ = limit;
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableInfo {
    /// Slots, without the header.
    pub slots: u64,
    /// Lines of 8 slots, without the header.
    pub lines: u64,
    /// Bytes of the image, header included.
    pub image_bytes: u64,
    /// The policy for full sets.
    pub policy: FullPolicy,
    /// How keys are hashed.
    pub hash: HashKind,
    /// Bits of a slot's tag.
    pub tag_bits: u32,
    /// One q-unit is 2^-resolution ticks. Where words hold a count, one unit of time is.
    pub resolution: i32,
    /// The algorithm of all its limits. Until 0.5 a table of overrides, which has none, reports a deprecated value.
    pub algorithm: Algorithm,
    /// Does it hold [overrides](crate::Override) instead of debts?
    pub overrides: bool,
    /// Bits of a slot that count units, next to the time; 0 for GCRA and decay.
    pub count_bits: u32,
    /// Aligned windows: ticks by which callers' clocks may differ; else 0.
    pub guard: u64,
    /// H, the longest debt that a slot can hold.
    pub horizon: u64,
    /// S: an older reading than this finds no debt.
    pub skew: u64,
    /// H + S, how long a false debt can last.
    pub window: u64,
    /// Ticks after which an untouched slot may read as a debt again.
    pub span: u64,
    /// Ticks within which every slot should be swept once.
    pub sweep_interval: u64,
    /// How long a thread that was stopped inside an insert keeps the slot.
    pub claim_lifetime: u64,
    /// Ticks per second, as the table's maker said; 0 = unknown.
    pub tick_hz: u64,
    /// The callers' clock, as the table's maker said.
    pub clock: TableClock,
    /// How often the table was restored or migrated, plus one.
    pub generation: u64,
    /// Whether the table has one owner at a time.
    pub exclusive: bool,
    /// Most ticks by which a window of this table ends later than specified: one less than its unit of time. 0 where
    /// that is a tick, and for GCRA.
    pub border_error: u64,
}

impl<M: Mode> Table<'_, M> {
    /// Returns everything about this table, for reports.
    pub fn info(&self) -> TableInfo {
        let g = &self.geometry;
        let ticks = |q: u64| ticks_up(q, 0, g.shl, g.shr);
        TableInfo {
            slots: self.slots() as u64,
            lines: self.slots.len() as u64,
            image_bytes: (self.image_words() * (64 / SLOTS_PER_LINE)) as u64,
            policy: g.policy,
            hash: g.hash,
            tag_bits: 63u32.saturating_sub(g.layout.bits),
            resolution: self.resolution(),
            algorithm: match g.content {
                Content::Debts(algorithm) => algorithm,
                #[allow(deprecated)] // what 0.3 reports
                Content::Overrides => Algorithm::Overrides,
            },
            overrides: g.content == Content::Overrides,
            count_bits: g.aux_mask().count_ones(),
            guard: (g.guard as u64) << g.shr,
            horizon: ticks(g.horizon),
            skew: ticks(g.layout.window.saturating_sub(g.horizon)),
            window: ticks(g.layout.window),
            span: g.span(),
            sweep_interval: self.sweep_interval(),
            claim_lifetime: ticks(g.layout.lifetime),
            tick_hz: g.tick_hz,
            clock: TableClock::of(g.clock),
            generation: g.generation,
            exclusive: self.is_exclusive(),
            border_error: if g.is_gcra() { 0 } else { (1u64 << g.shr).wrapping_sub(1) },
        }
    }
}

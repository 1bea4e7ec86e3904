//! The geometry of a table: how its words are laid out and decoded. It is chosen once, from the options.

use super::policy::FullPolicy;
use super::word::Layout;
use crate::algorithms::merge;
use crate::keys::HashKind;
use crate::limit::params::{self, Kind, Params, Width};
use crate::limit::{Algorithm, TableLimit};
use crate::time::now_q;

/// Lines of the header.
pub(crate) const HEADER_LINES: usize = 2;
/// The number of slots in a 64-byte line.
///
/// ```
/// use tatcell::{Line, SLOTS_PER_LINE};
/// assert_eq!(size_of::<Line>(), 8 * SLOTS_PER_LINE); // a slot is a 64-bit word
/// ```
pub const SLOTS_PER_LINE: usize = 8;
/// The smallest number of slots of a table: one set of two lines.
///
/// ```
/// use tatcell::{Line, LimitSpec, Table, TableOptions, MIN_SLOTS};
/// let lines = [const { Line::EMPTY }; 4]; // a header of two lines, and one set
/// let options = TableOptions::new(LimitSpec::per_second(10)).seed(*b"16 random bytes!");
/// assert_eq!(Table::init(&lines, &options)?.slots(), MIN_SLOTS);
/// assert!(Table::init(&lines[..3], &options).is_err());
/// # Ok::<(), tatcell::TableError>(())
/// ```
pub const MIN_SLOTS: usize = 16;
/// The largest number of keys in one burst call.
///
/// ```
/// use tatcell::{Burst, LimitSpec, Line, NextBurst, Table, TableOptions, MAX_BURST};
/// let (spec, lines) = (LimitSpec::new(10, 1_000, 20), [const { Line::EMPTY }; 66]);
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// let (limit, hashes) = (table.limit(&spec)?, [table.hash(b"192.0.2.1")?; 100]);
/// let mut passed = 0;
/// for part in hashes.chunks(MAX_BURST) {
///     passed += Burst::new(&limit, 0, part).check(&table, None, NextBurst::NONE)?.count_ones();
/// }
/// assert_eq!(passed, 20);
/// # Ok::<(), tatcell::TableError>(())
/// ```
pub const MAX_BURST: usize = 64;

/// What the words of a table hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// What keys owe under limits of this algorithm.
    Debts(Algorithm),
    /// Bans and exemptions.
    Overrides,
}

/// Its number. No algorithm has it.
const OVERRIDES: u8 = 5;

impl Content {
    /// Its number, in an image and in the fingerprint of limits.
    pub const fn number(self) -> u8 {
        match self {
            Content::Debts(algorithm) => algorithm as u8,
            Content::Overrides => OVERRIDES,
        }
    }

    /// The content of a number.
    pub fn of(number: u8) -> Option<Content> {
        match number {
            OVERRIDES => Some(Content::Overrides),
            _ => Algorithm::of(number.into()).map(Content::Debts),
        }
    }
}

/// The geometry of a table: validated, private to the process, never re-read from shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub layout: Layout,
    /// Lines of slots (without the header), even, at least 2.
    pub lines: u32,
    /// One tick is 2^shl q-units. In words that hold a count: the number of its bits.
    pub shl: u8,
    /// One q-unit is 2^shr ticks. In words that hold a count: one unit of time is.
    pub shr: u8,
    pub policy: FullPolicy,
    pub hash: HashKind,
    /// Zeros, so that the compiler leaves no byte unset: see `keys::hash::Zeros`.
    pub filled: [u8; 1],
    /// Whether the image has one owner at a time, for handles that only look. Others know it by their type.
    pub exclusive: bool,
    /// The number of a [`TableClock`](super::clock::TableClock), as the image has it.
    pub clock: u8,
    /// H of the table, in q-units.
    pub horizon: u64,
    /// By which all its words are read.
    pub content: Content,
    /// Aligned windows: units of time by which callers' clocks may differ.
    pub guard: u32,
    /// Shows whether another process has the same seed; 0 if the caller hashes.
    pub seed_check: u64,
    /// Raised by each restore: a permit of another generation gives nothing back.
    pub generation: u64,
    /// Ticks per second; 0 = unknown.
    pub tick_hz: u64,
    /// The value that all limits of this table carry: see [`Geometry::fingerprint_of`].
    pub fingerprint: u64,
}

impl Geometry {
    /// Returns the fingerprint of this table's limits: it covers all that decides what a limit's numbers mean and
    /// whether they are safe here. A limit of another resolution would misread the slots. One with a longer horizon
    /// would find a debt expired. One for a longer claim lifetime would be charged wrongly by an insert. One of another
    /// algorithm would read states that mean something else.
    pub const fn fingerprint_of(&self) -> u64 {
        let Geometry { layout, .. } = self;
        let shift = (self.shl as u64) << 8 | self.shr as u64;
        let kind = (self.content.number() as u64) << 16 | (self.guard as u64) << 32;
        let claims = layout.lifetime << 6 | layout.bits as u64;
        params::fingerprint(Kind::Table, [kind | shift, self.horizon, layout.window, claims])
    }

    /// Returns whether its words hold a TAT and nothing else.
    #[inline(always)]
    pub const fn is_gcra(&self) -> bool {
        matches!(self.content, Content::Debts(Algorithm::Gcra))
    }

    /// One state of a key for two, as q-units ahead of one clock: it owes at least what either does.
    pub fn merge(&self, a: u64, b: u64) -> u64 {
        match self.content {
            Content::Debts(algorithm) => merge(algorithm, self.shl as u32, a, b),
            Content::Overrides => a.max(b),
        }
    }

    /// Returns the mask of the count in a word; 0 for GCRA.
    #[inline(always)]
    pub const fn aux_mask(&self) -> u64 {
        if self.is_gcra() {
            0
        } else {
            (1u64 << self.shl) - 1
        }
    }

    /// Converts the caller's clock as `Params::clock_q` does.
    #[inline(always)]
    pub const fn clock_q(&self, now: u64) -> u64 {
        now_q(now, self.shl, self.shr) | self.aux_mask()
    }

    /// Returns the resolution s: one q-unit, or unit of time, is `2^-s` ticks.
    pub const fn resolution(&self) -> i32 {
        let shl = if self.is_gcra() { self.shl as i32 } else { 0 };
        shl - self.shr as i32
    }

    /// Returns a limit of this table that every request conforms to.
    pub const fn unlimited(&self) -> TableLimit {
        let mut p = Params::unlimited(table_width(self.layout.bits, self.fingerprint));
        p.shl = self.shl;
        p.shr = self.shr;
        p.horizon_q = 0;
        TableLimit(p)
    }

    /// Returns the ticks after which an untouched slot may read as a debt again: 2^bits - H - S q-units, rounded down.
    /// Saturates.
    pub const fn span(&self) -> u64 {
        self.ticks_down((1u128 << self.layout.bits).saturating_sub(self.layout.window as u128))
    }

    /// Returns the ticks within which every slot must be swept once so that no returning key meets a false debt.
    /// Saturates.
    pub const fn sweep_interval(&self) -> u64 {
        // A sweep empties a word only after it has been expired for more than H + S.
        self.ticks_down((self.layout.mask - 2 * self.layout.window) as u128)
    }

    /// Returns q-units in ticks, rounded down. Saturates.
    const fn ticks_down(&self, q: u128) -> u64 {
        let ticks = (q >> self.shl) << self.shr;
        if ticks > u64::MAX as u128 {
            u64::MAX
        } else {
            ticks as u64
        }
    }
}

/// Returns the width of a slot word with `bits` payload bits.
pub(in crate::table) const fn table_width(bits: u32, fingerprint: u64) -> Width {
    Width { bits, precision: 10, spare: 3, fingerprint }
}

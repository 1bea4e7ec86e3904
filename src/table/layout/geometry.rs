//! The geometry of a table: how its words are laid out and decoded, chosen once from the options.

use super::policy::FullPolicy;
use super::word::Layout;
use crate::keys::HashKind;
use crate::limit::params::{self, Kind, Params, Width};
use crate::limit::{Algorithm, TableLimit};
use crate::time::now_q;

/// Lines of the header.
pub(crate) const HEADER_LINES: usize = 2;
/// Slots of one 64-byte line.
pub const SLOTS_PER_LINE: usize = 8;
/// The fewest slots of a table: one set of two lines.
pub const MIN_SLOTS: usize = 16;
/// Most keys of one burst call.
pub const MAX_BURST: usize = 64;

/// The geometry of a table: validated, private to the process, never re-read from shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub layout: Layout,
    /// Lines of slots (without the header), even, at least 2.
    pub lines: u32,
    /// A tick is 2^shl q-units; where words hold a count, its bits.
    pub shl: u8,
    /// A q-unit is 2^shr ticks; where words hold a count, a unit of time is.
    pub shr: u8,
    pub policy: FullPolicy,
    pub hash: HashKind,
    /// Zeros, in the place that the compiler would leave unset: see `keys::hash::Zeros`.
    pub filled: [u8; 3],
    /// H of the table, q-units.
    pub horizon: u64,
    /// By which all its words are read.
    pub algorithm: Algorithm,
    /// Aligned windows: units of time by which callers' clocks may differ.
    pub guard: u32,
    /// Tells whether another process has the same seed; 0 where the caller hashes.
    pub seed_check: u64,
    /// Raised by each restore: permits of another generation are worth nothing.
    pub generation: u64,
    /// Ticks per second, 0 = unsaid.
    pub tick_hz: u64,
    /// What the limits of this table carry: see [`Geometry::fingerprint_of`].
    pub fingerprint: u64,
}

impl Geometry {
    /// The fingerprint of this table's limits: tied to all that decides what a limit's numbers mean and whether they
    /// are safe here. A limit of another resolution would misread the slots, one of a longer horizon would find a debt
    /// expired, one made for a longer claim lifetime would be charged wrongly by an insert. One of another algorithm
    /// would read states that mean something else.
    pub const fn fingerprint_of(&self) -> u64 {
        let Geometry { layout, .. } = self;
        let shift = (self.shl as u64) << 8 | self.shr as u64;
        let kind = (self.algorithm as u64) << 16 | (self.guard as u64) << 32;
        let claims = layout.lifetime << 6 | layout.bits as u64;
        params::fingerprint(Kind::Table, [kind | shift, self.horizon, layout.window, claims])
    }

    /// Are its words' times TATs alone?
    #[inline(always)]
    pub const fn is_gcra(&self) -> bool {
        matches!(self.algorithm, Algorithm::Gcra)
    }

    /// What a word counts beside its time: all its bits set.
    #[inline(always)]
    pub const fn aux_mask(&self) -> u64 {
        if self.is_gcra() {
            0
        } else {
            (1u64 << self.shl) - 1
        }
    }

    /// The caller's clock, as `Params::clock_q`.
    #[inline(always)]
    pub const fn clock_q(&self, now: u64) -> u64 {
        now_q(now, self.shl, self.shr) | self.aux_mask()
    }

    /// The resolution s: one q-unit, or unit of time, is `2^-s` ticks.
    pub const fn resolution(&self) -> i32 {
        let shl = if self.is_gcra() { self.shl as i32 } else { 0 };
        shl - self.shr as i32
    }

    /// A limit of this table that everything conforms to.
    pub const fn unlimited(&self) -> TableLimit {
        let mut p = Params::unlimited(table_width(self.layout.bits, self.fingerprint));
        p.shl = self.shl;
        p.shr = self.shr;
        p.horizon_q = 0;
        TableLimit(p)
    }

    /// Ticks after which an untouched slot may read as a debt again: 2^bits - H - S q-units, rounded down. Saturates.
    pub const fn span(&self) -> u64 {
        self.ticks_down((1u128 << self.layout.bits).saturating_sub(self.layout.window as u128))
    }

    /// Ticks within which every slot must be swept once so that no returning key meets a false debt. Saturates.
    pub const fn sweep_interval(&self) -> u64 {
        // A sweep leaves words alone until they have expired by H + S.
        self.ticks_down((self.layout.mask - 2 * self.layout.window) as u128)
    }

    const fn ticks_down(&self, q: u128) -> u64 {
        let ticks = (q >> self.shl) << self.shr;
        if ticks > u64::MAX as u128 {
            u64::MAX
        } else {
            ticks as u64
        }
    }
}

/// A slot word of `bits` payload bits.
pub(in crate::table) const fn table_width(bits: u32, fingerprint: u64) -> Width {
    Width { bits, precision: 10, spare: 3, fingerprint }
}

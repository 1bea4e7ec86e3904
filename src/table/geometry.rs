//! The geometry of a table: how its words are laid out and decoded, chosen once from the options.

use super::error::TableError;
use super::options::TableOptions;
use super::policy::FullPolicy;
use super::word::Layout;
use crate::keys::HashKind;
use crate::limit::params::{self, Kind, Params, Width};
use crate::limit::{rate, validate};
use crate::limit::{LimitError, LimitSpec, TableLimit};
use crate::time::ticks_to_q_up;

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
    pub shl: u8,
    pub shr: u8,
    pub policy: FullPolicy,
    pub hash: HashKind,
    /// H of the table, q-units.
    pub horizon: u64,
    /// Tells whether another process has the same seed; 0 where the caller hashes.
    pub seed_check: u64,
    /// Raised by each restore: permits of another generation are worth nothing.
    pub generation: u64,
    /// Ticks per second, 0 = unsaid.
    pub tick_hz: u64,
    /// What the limits of this table carry: see [`Geometry::mark_of`].
    pub mark: u64,
}

impl Geometry {
    /// Chooses a geometry for `lines` lines (header included), or says why there is none.
    pub const fn choose(options: &TableOptions, lines: usize) -> Result<Geometry, TableError> {
        if options.tag_bits < 12 || options.tag_bits > 24 {
            return Err(TableError::BadTagBits);
        }
        if lines < HEADER_LINES + 2 {
            return Err(TableError::TooSmall);
        }
        let lines = (lines - HEADER_LINES) & !1;
        if lines as u64 > u32::MAX as u64 {
            return Err(TableError::TooLarge);
        }
        if !matches!(options.hash, HashKind::Caller) && options.seed.is_none() {
            return Err(TableError::MissingSeed);
        }
        let width = table_width(63 - options.tag_bits, 0);
        match options.shift {
            Some(s) => Geometry::at(options, width, lines as u32, s as i32),
            None => {
                // From one tick towards coarser, then finer: exact ticks where they fit.
                let mut s = 0i32;
                let first = Geometry::at(options, width, lines as u32, s);
                let step = match first {
                    Err(TableError::SpanTooShort) => -1,
                    Err(TableError::Limit(LimitError::NotRepresentable)) => 1,
                    other => return other,
                };
                loop {
                    s += step;
                    if s < -62 || s > 62 {
                        return Err(TableError::SpanTooShort);
                    }
                    match Geometry::at(options, width, lines as u32, s) {
                        Ok(g) => return Ok(g),
                        // Too coarse for the fastest before fine enough for the slowest, or the other way round.
                        Err(TableError::SpanTooShort) if step > 0 => return Err(TableError::SpanTooShort),
                        Err(TableError::Limit(LimitError::NotRepresentable)) if step < 0 => {
                            return Err(TableError::SpanTooShort)
                        }
                        Err(TableError::SpanTooShort)
                        | Err(TableError::Limit(LimitError::NotRepresentable)) => {}
                        Err(e) => return Err(e),
                    }
                }
            }
        }
    }

    const fn at(
        options: &TableOptions,
        width: Width,
        lines: u32,
        shift: i32,
    ) -> Result<Geometry, TableError> {
        let fast = match table_params(&options.fastest, width, shift) {
            Ok(p) => p,
            Err(e) => return Err(e),
        };
        let slow = match table_params(&options.slowest, width, shift) {
            Ok(p) => p,
            Err(e) => return Err(e),
        };
        let t_min = if fast.t_q < slow.t_q { fast.t_q } else { slow.t_q };
        if t_min < 1 << width.precision {
            return Err(TableError::Limit(LimitError::NotRepresentable));
        }
        let horizon = if fast.horizon_q > slow.horizon_q { fast.horizon_q } else { slow.horizon_q };
        let (shl, shr) = (fast.shl, fast.shr);
        let skew = match options.skew {
            Some(ticks) => ticks_to_q_up(ticks, shl as u32, shr as u32),
            None => rate::default_skew(width.bits, shl as u32, shr as u32, horizon),
        };
        let window = match horizon.checked_add(skew) {
            // In ticks it stays below 2^63, so that no lead overflows on its way back (attach checks the same).
            Some(w) if w <= 1 << (width.bits - width.spare) && (w as u128) << shr < 1 << 63 => w,
            _ => return Err(TableError::SpanTooShort),
        };
        let lifetime = match options.lifetime {
            Some(ticks) => ticks_to_q_up(ticks, shl as u32, shr as u32),
            None => {
                let tick = 1u64 << shl;
                if tick < t_min / 2 {
                    tick
                } else {
                    t_min / 2
                }
            }
        };
        // A claim must commit above itself: now + cost > now + G and the few steps of dropped claims.
        if lifetime > t_min / 2 {
            return Err(TableError::BadLifetime);
        }
        let lifetime = if lifetime < 2 { 2 } else { lifetime };
        let layout = Layout::new(options.tag_bits, window, lifetime);
        Ok(Geometry {
            layout,
            lines,
            shl,
            shr,
            policy: options.policy,
            hash: options.hash,
            horizon,
            seed_check: 0,
            generation: 1,
            tick_hz: options.tick_hz,
            mark: Geometry::mark_of(&layout, horizon, shl, shr),
        })
    }

    /// The mark of this table's limits: tied to all that decides what a limit's numbers mean and whether they are safe
    /// here. A limit of another resolution would misread the slots, one of a longer horizon would find a debt expired,
    /// one made for a longer claim lifetime would be charged wrongly by an insert.
    pub const fn mark_of(layout: &Layout, horizon: u64, shl: u8, shr: u8) -> u64 {
        let shift = (shl as u64) << 8 | shr as u64;
        params::mark(Kind::Table, [shift, horizon, layout.window, layout.lifetime << 6 | layout.bits as u64])
    }

    /// A limit in this table's q-unit, with its horizon inside H.
    pub const fn limit(&self, spec: &LimitSpec) -> Result<TableLimit, TableError> {
        let width = table_width(self.layout.bits, self.mark);
        let shift = self.shl as i32 - self.shr as i32;
        let mut p = match table_params(spec, width, shift) {
            Ok(p) => p,
            Err(TableError::SpanTooShort) => return Err(TableError::LimitTooFast),
            Err(e) => return Err(e),
        };
        // The claim lifetime and the rate error were sized for the fastest limit of the options.
        let coarse = p.t_q < 1 << width.precision || p.t_q / 2 < self.layout.lifetime;
        if p.horizon_q > self.horizon || coarse {
            return Err(TableError::LimitTooFast);
        }
        p.window_q = self.layout.window;
        Ok(TableLimit(p))
    }

    /// A limit of this table that everything conforms to.
    pub const fn unlimited(&self) -> TableLimit {
        let mut p = Params::unlimited(table_width(self.layout.bits, self.mark));
        p.shl = self.shl;
        p.shr = self.shr;
        p.horizon_q = 0;
        TableLimit(p)
    }

    /// Ticks within which every slot must be swept once so that no returning key meets a false debt. Saturates.
    pub const fn sweep_interval(&self) -> u64 {
        // A sweep leaves words alone until they have expired by H + S.
        let q = (self.layout.mask - 2 * self.layout.window) as u128;
        let ticks = (q >> self.shl) << self.shr;
        if ticks > u64::MAX as u128 {
            u64::MAX
        } else {
            ticks as u64
        }
    }
}

/// A slot word of `bits` payload bits.
const fn table_width(bits: u32, mark: u64) -> Width {
    Width { bits, precision: 10, spare: 3, mark }
}

/// Parameters at one resolution; the skew is the table's, so the limit's own is not counted.
const fn table_params(spec: &LimitSpec, width: Width, shift: i32) -> Result<Params, TableError> {
    let spec = LimitSpec { skew: Some(0), ..*spec };
    match validate::at(&spec, width, shift) {
        Ok(p) => Ok(p),
        Err(LimitError::HorizonTooLong) => Err(TableError::SpanTooShort),
        // burst * T_q beyond 62 bits is a span problem here: a coarser q-unit cures it.
        Err(LimitError::NotRepresentable) if shift > -62 && coarser_helps(&spec, shift) => {
            Err(TableError::SpanTooShort)
        }
        Err(e) => Err(TableError::Limit(e)),
    }
}

/// Is the burst, not the rate, what does not fit at this resolution?
const fn coarser_helps(spec: &LimitSpec, shift: i32) -> bool {
    let one = LimitSpec { burst: 1, ..*spec };
    let wide = Width { bits: 64, precision: 0, spare: 1, mark: 0 };
    let bare = LimitSpec { max_room: 0, max_delay: 0, max_debt: 0, penalty: 0, soft: 0, ..one };
    validate::at(&bare, wide, shift).is_ok()
}

//! What a table is made with, why it may be refused, and the geometry that results.

use super::hash::HashKind;
use super::word::Layout;
use crate::limit::{LimitError, LimitSpec, TableLimit};
use crate::params::{ticks_to_q_up, Params, Width, KIND_TABLE};

/// Slots of one 64-byte line.
pub const SLOTS_PER_LINE: usize = 8;
/// The fewest slots of a table: one set of two lines.
pub const MIN_SLOTS: usize = 16;
/// Most keys of one burst call.
pub const MAX_BURST: usize = 64;

/// What happens to a new key when all 16 slots of its set hold live keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum FullPolicy {
    /// Admit it untracked: fails open, evicts nobody. A key that keeps coming gets a slot as soon as one drains.
    #[default]
    Admit = 0,
    /// Take over the slot with the smallest lead, debt included: fails closed, never over-admits, may deny innocents
    /// under a flood.
    Inherit = 1,
    /// Refuse it until a slot drains.
    Deny = 2,
    /// Admit it; one in 16 takes over the slot with the smallest lead, whose debt is forgiven.
    Sampled = 3,
}

impl FullPolicy {
    pub(crate) const fn from_number(n: u8) -> Option<FullPolicy> {
        match n {
            0 => Some(FullPolicy::Admit),
            1 => Some(FullPolicy::Inherit),
            2 => Some(FullPolicy::Deny),
            3 => Some(FullPolicy::Sampled),
            _ => None,
        }
    }
}

/// Says why a table, or a call on it, was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// Fewer lines than the header and one set.
    TooSmall,
    /// More than 2^31 sets.
    TooLarge,
    /// A limit of the options is not valid.
    Limit(LimitError),
    /// Fastest and slowest limit do not fit the word together: use fewer tag bits, a smaller burst or skew, or two
    /// tables.
    SpanTooShort,
    /// The tag width is outside 12..=24.
    BadTagBits,
    /// The claim lifetime is longer than half the smallest emission interval.
    BadLifetime,
    /// A keyed hash needs a secret seed, and there is no default.
    MissingSeed,
    /// This processor cannot compute the hash that was asked for, or that the image uses.
    HashUnavailable,
    /// The table hashes by itself and the call brought a hash, or the other way round.
    BadHashKind,
    /// The limit was made for another table: another resolution or a longer horizon.
    ForeignLimit,
    /// More than 64 keys, or costs and keys that differ in number.
    BadCount,
    /// The memory is not a table image, or is not initialised yet: ask again once the initialising process is done.
    NotReady,
    /// The image has another layout version.
    BadVersion,
    /// The image's geometry contradicts itself or its size.
    BadGeometry,
    /// The image was made with another seed.
    WrongSeed,
    /// A shared form was asked of an exclusive image, or the other way round.
    BadMode,
    /// The buffer is too small for the image.
    BufferTooSmall,
    /// A small table has no sampled policy.
    NotSmall,
}

impl core::fmt::Display for TableError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            TableError::TooSmall => "memory is smaller than a header and one set",
            TableError::TooLarge => "table has more than 2^31 sets",
            TableError::Limit(e) => return e.fmt(f),
            TableError::SpanTooShort => "fastest and slowest limit do not fit one word: use fewer tag bits",
            TableError::BadTagBits => "tag width is outside 12..=24",
            TableError::BadLifetime => "claim lifetime is longer than half an emission interval",
            TableError::MissingSeed => "a keyed hash needs a secret seed",
            TableError::HashUnavailable => "this processor cannot compute the table's hash",
            TableError::BadHashKind => "the call does not match the hash kind of the table",
            TableError::ForeignLimit => "limit was made for another table",
            TableError::BadCount => "more than 64 keys, or costs of another number",
            TableError::NotReady => "memory holds no initialised table",
            TableError::BadVersion => "image has another layout version",
            TableError::BadGeometry => "image geometry is not valid",
            TableError::WrongSeed => "image was made with another seed",
            TableError::BadMode => "image is exclusive, or shared, and the other form was asked for",
            TableError::BufferTooSmall => "buffer is too small for the image",
            TableError::NotSmall => "a small table has no sampled policy",
        })
    }
}

impl core::error::Error for TableError {}

/// Describes a table. Sizes come from the memory, the rest from here.
///
/// ```
/// use tatcell::{FullPolicy, LimitSpec, TableOptions};
/// let per_client = LimitSpec::new(10, 1_000_000_000, 20);
/// let options = TableOptions::new(per_client).seed([7; 16]).policy(FullPolicy::Inherit);
/// # let _ = options;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    pub(crate) fastest: LimitSpec,
    pub(crate) slowest: LimitSpec,
    pub(crate) policy: FullPolicy,
    pub(crate) hash: HashKind,
    pub(crate) seed: Option<[u8; 16]>,
    pub(crate) tag_bits: u32,
    pub(crate) shift: Option<i8>,
    pub(crate) skew: Option<u64>,
    pub(crate) lifetime: Option<u64>,
}

impl TableOptions {
    /// Starts options for a table in which every key has this limit.
    pub const fn new(limit: LimitSpec) -> TableOptions {
        TableOptions {
            fastest: limit,
            slowest: limit,
            policy: FullPolicy::Admit,
            hash: HashKind::SipHash13,
            seed: None,
            tag_bits: 20,
            shift: None,
            skew: None,
            lifetime: None,
        }
    }

    /// Names the limit with the longest horizon, where keys have different limits (`new` names the fastest).
    pub const fn slowest(mut self, limit: LimitSpec) -> Self {
        self.slowest = limit;
        self
    }

    /// Chooses what happens when a set is full.
    pub const fn policy(mut self, policy: FullPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Gives the secret seed of the hash: 16 bytes from the system's random source, never a constant.
    pub const fn seed(mut self, seed: [u8; 16]) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Lets the caller hash; see [`HashKind::Caller`].
    pub const fn caller_hash(self) -> Self {
        self.hash(HashKind::Caller)
    }

    /// Chooses the hash. [`HashKind::is_available`] tells whether this processor can compute it.
    pub const fn hash(mut self, kind: HashKind) -> Self {
        self.hash = kind;
        self
    }

    /// Sets the tag width, 12..=24 bits (default 20). A stranger is mistaken for a live key with chance
    /// 16 * 2^-bits at full load; each bit less doubles the span of the word.
    pub const fn tag_bits(mut self, bits: u32) -> Self {
        self.tag_bits = bits;
        self
    }

    /// Fixes the resolution of all limits of the table: one q-unit is `2^-shift` ticks.
    pub const fn resolution(mut self, shift: i8) -> Self {
        self.shift = Some(shift);
        self
    }

    /// Sets how far callers' clocks may be apart or step back, in ticks (default: the horizon).
    pub const fn skew(mut self, ticks: u64) -> Self {
        self.skew = Some(ticks);
        self
    }

    /// Sets the claim lifetime, in ticks (default: one): how long a thread that was stopped inside an insert keeps
    /// the slot from others. Larger than the usual clock difference between threads saves retries.
    pub const fn claim_lifetime(mut self, ticks: u64) -> Self {
        self.lifetime = Some(ticks);
        self
    }
}

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
}

impl Geometry {
    /// Chooses a geometry for `lines` lines (header included), or says why there is none.
    pub const fn choose(options: &TableOptions, lines: usize) -> Result<Geometry, TableError> {
        if options.tag_bits < 12 || options.tag_bits > 24 {
            return Err(TableError::BadTagBits);
        }
        if lines < 3 {
            return Err(TableError::TooSmall);
        }
        let lines = (lines - 1) & !1;
        if lines as u64 > u32::MAX as u64 {
            return Err(TableError::TooLarge);
        }
        if !matches!(options.hash, HashKind::Caller) && options.seed.is_none() {
            return Err(TableError::MissingSeed);
        }
        let width = Width { bits: 63 - options.tag_bits, precision: 10, spare: 3, kind: KIND_TABLE };
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
            None => horizon,
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
        Ok(Geometry {
            layout: Layout::new(options.tag_bits, window, lifetime),
            lines,
            shl,
            shr,
            policy: options.policy,
            hash: options.hash,
            horizon,
            seed_check: 0,
        })
    }

    /// A limit in this table's q-unit, with its horizon inside H.
    pub const fn limit(&self, spec: &LimitSpec) -> Result<TableLimit, TableError> {
        let width = Width { bits: self.layout.bits, precision: 10, spare: 3, kind: KIND_TABLE };
        let shift = self.shl as i32 - self.shr as i32;
        let mut p = match table_params(spec, width, shift) {
            Ok(p) => p,
            Err(TableError::SpanTooShort) => return Err(TableError::ForeignLimit),
            Err(e) => return Err(e),
        };
        // The claim lifetime and the rate error were sized for the fastest limit of the options.
        let coarse = p.t_q < 1 << width.precision || p.t_q / 2 < self.layout.lifetime;
        if p.horizon_q > self.horizon || coarse {
            return Err(TableError::ForeignLimit);
        }
        p.window_q = self.layout.window;
        Ok(TableLimit(p))
    }

    /// A limit of this table that everything conforms to.
    pub const fn unlimited(&self) -> TableLimit {
        let mut p = Params::unlimited(KIND_TABLE);
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

/// Parameters at one resolution; the skew is the table's, so the limit's own is not counted.
const fn table_params(spec: &LimitSpec, width: Width, shift: i32) -> Result<Params, TableError> {
    let spec = LimitSpec { skew: Some(0), ..*spec };
    match Params::at(&spec, width, shift) {
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
    let wide = Width { bits: 64, precision: 0, spare: 1, kind: KIND_TABLE };
    let bare = LimitSpec { max_room: 0, max_delay: 0, max_debt: 0, penalty: 0, soft: 0, ..one };
    Params::at(&bare, wide, shift).is_ok()
}

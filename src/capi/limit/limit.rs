//! `tatcell_limit_*` and `tatcell_limit32_*`: limits and their specifications.

use crate::capi::codes::{
    limit_code, TATCELL_ERR_ALGORITHM, TATCELL_ERR_FOREIGN, TATCELL_ERR_LIMIT, TATCELL_ERR_OPTION,
    TATCELL_PASS,
};
use crate::capi::pointers::contract::{args, inside, Contract, Grows, Marked, Out, Plain};
use crate::limit::params::{is_of, Kind, Params, FINGERPRINT_CELL32, FINGERPRINT_CELL64};
use crate::limit::{Algorithm, Limit, Limit32, LimitError, LimitSpec, TableLimit};

/// Bytes of a tatcell_limit_t. This size never changes.
pub const TATCELL_LIMIT_SIZE: usize = 128;
/// Alignment of a tatcell_limit_t.
pub const TATCELL_LIMIT_ALIGN: usize = 8;

/// A validated limit. A tatcell_limit_init or tatcell_limit32_init function initialises it. After that it is
/// read-only, and any number of threads may use it at once. It may be copied. The library refuses a zeroed limit,
/// and a limit of another version of the library, with TATCELL_ERR_LIMIT.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct tatcell_limit_t {
    /// Private to the library.
    pub opaque: [u64; 16],
}

const _: () = assert!(size_of::<tatcell_limit_t>() == TATCELL_LIMIT_SIZE);
const _: () = assert!(align_of::<tatcell_limit_t>() == TATCELL_LIMIT_ALIGN);
const _: () =
    assert!(size_of::<Params>() <= TATCELL_LIMIT_SIZE && align_of::<Params>() <= TATCELL_LIMIT_ALIGN);
const _: () = assert!(core::mem::offset_of!(Params, fingerprint) == 0);

/// flags: a word that is ahead of now by more than horizon and skew counts as a full debt of one burst. Without the
/// flag it counts as no debt. Only 64-bit cells with a resolution of at most 9, whose span exceeds a year of
/// nanoseconds, accept the flag; other limits return TATCELL_ERR_OPTION.
pub const TATCELL_LIMIT_HEAL: u32 = 1;
/// flags: a request that does not conform passes. It carries TATCELL_FLAG_SHADOW and is not charged. A reservation
/// leaves at once. If it would have waited, it carries the flag, is charged as without shadow mode (so the limit tells
/// what its queue would be), and retry_after is that wait. If it would have been refused, it carries the flag and is
/// not charged.
pub const TATCELL_LIMIT_SHADOW: u32 = 2;
/// flags: use the resolution of the specification. Without the flag the library chooses one.
pub const TATCELL_LIMIT_RESOLUTION: u32 = 4;
/// flags: several refunds of one key are safe in any order, because permits drain from the moment of their charge.
/// Only GCRA needs the flag; other algorithms accept it and ignore it.
pub const TATCELL_LIMIT_STRICT_REFUNDS: u32 = 8;
/// flags: fixed windows start at phase, phase + period and so on, at the same times for all keys.
pub const TATCELL_LIMIT_ALIGNED: u32 = 16;
/// skew: tolerate no backward step at all.
pub(in crate::capi) const TATCELL_SKEW_NONE: u64 = u64::MAX;

const FLAGS: u32 = TATCELL_LIMIT_HEAL
    | TATCELL_LIMIT_SHADOW
    | TATCELL_LIMIT_RESOLUTION
    | TATCELL_LIMIT_STRICT_REFUNDS
    | TATCELL_LIMIT_ALIGNED;

/// algorithm: GCRA. It is exact, and equals a token bucket and a leaky bucket as a meter.
pub const TATCELL_ALGORITHM_GCRA: u32 = 0;
/// algorithm: fixed window. At most `units` pass in a window of `period` ticks, which starts with its first
/// request. Up to twice as many may pass within the length of a window.
pub const TATCELL_ALGORITHM_FIXED_WINDOW: u32 = 1;
/// algorithm: sliding window counter. About `units` pass in any `period` ticks, by the counts of two windows. Up to
/// twice as many may pass within the length of a window.
pub const TATCELL_ALGORITHM_SLIDING_COUNTER: u32 = 2;
/// algorithm: quota-linear. At most `units`, the quota, pass in a window of `period` ticks. A key that uses up the
/// quota then gets one unit at a time at the rate units / period, until it pauses.
pub const TATCELL_ALGORITHM_QUOTA_LINEAR: u32 = 3;
/// algorithm: decay. Each request raises a level that halves in every period; the level stays at most `units`.
pub const TATCELL_ALGORITHM_DECAY: u32 = 4;
/// algorithm of a tatcell_table_info_t: a table of overrides. No limit has this algorithm.
pub const TATCELL_ALGORITHM_OVERRIDES: u32 = 5;

const _: () = assert!(TATCELL_ALGORITHM_GCRA == Algorithm::Gcra as u32);
const _: () = assert!(TATCELL_ALGORITHM_FIXED_WINDOW == Algorithm::FixedWindow as u32);
const _: () = assert!(TATCELL_ALGORITHM_SLIDING_COUNTER == Algorithm::SlidingCounter as u32);
const _: () = assert!(TATCELL_ALGORITHM_QUOTA_LINEAR == Algorithm::QuotaLinear as u32);
const _: () = assert!(TATCELL_ALGORITHM_DECAY == Algorithm::Decay as u32);

/// Bytes of a tatcell_limit_spec_t in its first release: the least size that a library accepts.
pub const TATCELL_LIMIT_SPEC_MIN: usize = 88;

/// A limit with all its options. Start from TATCELL_LIMIT_SPEC_INIT. A field that is 0 is off or has its default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tatcell_limit_spec_t {
    /// sizeof(tatcell_limit_spec_t).
    pub size: u32,
    /// Any of the TATCELL_LIMIT_ flags, combined.
    pub flags: u32,
    /// Units per period.
    pub units: u64,
    /// The period, in ticks of the caller's clock.
    pub period: u64,
    /// Most units that conform at one instant after idle. Algorithms other than GCRA: 0, or the value of units.
    pub burst: u64,
    /// Units: a request that passes above this debt carries TATCELL_FLAG_SOFT. 0 = off; at most burst.
    pub soft: u64,
    /// Units: the most elastic room that a call may ask for.
    pub max_room: u64,
    /// Ticks: a reserve call refuses a departure that is further away.
    pub max_delay: u64,
    /// Units: a charge call may raise the debt this far beyond the burst.
    pub max_debt: u64,
    /// Units: refused requests are charged too, until the debt is this far beyond the burst. 0 = a refused request
    /// costs nothing.
    pub penalty: u64,
    /// Ticks by which one reading of the clock may be older than another. 0 = default (see TIME; state it for wall
    /// clocks and coarse ticks), TATCELL_SKEW_NONE = none. For a limit of a table, the skew of the table applies
    /// instead.
    pub skew: u64,
    /// With TATCELL_LIMIT_RESOLUTION: one q-unit is 2^-resolution ticks, -63..63. For algorithms other than GCRA, a
    /// unit of time in the word is 2^-resolution ticks, -62..0.
    pub resolution: i32,
    /// Permits carry this number. A refund of a permit from another epoch credits nothing.
    pub epoch: u32,
    /// A TATCELL_ALGORITHM_ constant.
    pub algorithm: u32,
    /// Must be 0.
    pub reserved: u32,
    /// With TATCELL_LIMIT_ALIGNED: a tick at which a window starts. It must be below period.
    pub phase: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_limit_spec_t {
    const FIRST: usize = TATCELL_LIMIT_SPEC_MIN;
}
const _: () = assert!(size_of::<tatcell_limit_spec_t>() == 6 * 4 + 10 * 8);

/// Converts a specification from C.
pub(in crate::capi) fn spec(s: &tatcell_limit_spec_t) -> Result<LimitSpec, i32> {
    let aligned = s.flags & TATCELL_LIMIT_ALIGNED != 0;
    if s.flags & !FLAGS != 0 || s.reserved != 0 || !aligned && s.phase != 0 {
        return Err(TATCELL_ERR_OPTION);
    }
    let algorithm = Algorithm::of(s.algorithm).ok_or(TATCELL_ERR_OPTION)?;
    if aligned && algorithm != Algorithm::FixedWindow {
        return Err(TATCELL_ERR_OPTION);
    }
    let burst = if s.burst == 0 && algorithm != Algorithm::Gcra { s.units } else { s.burst };
    let mut spec = LimitSpec::new(s.units, s.period, burst)
        .algorithm(algorithm)
        .soft(s.soft)
        .max_room(s.max_room)
        .max_delay(s.max_delay)
        .max_debt(s.max_debt)
        .penalty(s.penalty)
        .epoch(s.epoch);
    if s.skew != 0 {
        spec = spec.skew(if s.skew == TATCELL_SKEW_NONE { 0 } else { s.skew });
    }
    if s.flags & TATCELL_LIMIT_RESOLUTION != 0 {
        spec = spec.resolution(i8::try_from(s.resolution).map_err(|_| TATCELL_ERR_OPTION)?);
    }
    if s.flags & TATCELL_LIMIT_HEAL != 0 {
        spec = spec.heal();
    }
    if s.flags & TATCELL_LIMIT_STRICT_REFUNDS != 0 {
        spec = spec.strict_refunds();
    }
    if s.flags & TATCELL_LIMIT_SHADOW != 0 {
        spec = spec.shadow();
    }
    if aligned {
        spec = spec.aligned(s.phase);
    }
    Ok(spec)
}

// SAFETY: Params start with their mark, and any bytes are Params.
unsafe impl Marked for Limit {
    const MARK: u64 = FINGERPRINT_CELL64;
    const ERROR: i32 = TATCELL_ERR_LIMIT;
}
// SAFETY: as `Limit`.
unsafe impl Marked for Limit32 {
    const MARK: u64 = FINGERPRINT_CELL32;
    const ERROR: i32 = TATCELL_ERR_LIMIT;
}
// SAFETY: Params: numbers without padding.
unsafe impl Plain for TableLimit {}

impl<'a> Contract<'a> {
    /// A limit for 64-bit cells.
    #[inline(always)]
    pub(in crate::capi) fn limit64(self, p: *const tatcell_limit_t) -> Result<&'a Limit, i32> {
        self.marked(inside(p))
    }

    /// A limit for 32-bit cells.
    #[inline(always)]
    pub(in crate::capi) fn limit32(self, p: *const tatcell_limit_t) -> Result<&'a Limit32, i32> {
        self.marked(inside(p))
    }

    /// Returns what may be a limit of some table; the table compares its mark.
    #[inline(always)]
    pub(in crate::capi) fn table_limit(self, p: *const tatcell_limit_t) -> Result<&'a TableLimit, i32> {
        self.input(inside(p))
    }

    /// Returns a limit of any kind.
    pub(in crate::capi) fn any_limit(self, p: *const tatcell_limit_t) -> Result<&'a TableLimit, i32> {
        let limit = self.table_limit(p)?;
        let p = &limit.0;
        // Half of a table's mark is not known here, so the numbers must agree as well.
        let sound = p.t_q.wrapping_mul(p.burst) == p.burst_q || p.t_q == 0 && p.burst == u64::MAX;
        match p.fingerprint {
            FINGERPRINT_CELL64 | FINGERPRINT_CELL32 => Ok(limit),
            mark if is_of(mark, Kind::Table) && sound => Ok(limit),
            _ => Err(TATCELL_ERR_LIMIT),
        }
    }
}

/// Returns the code for a limit that is not of the table it was used with.
#[cold]
pub(in crate::capi) fn not_own(limit: &TableLimit) -> i32 {
    if is_of(limit.0.fingerprint, Kind::Table) {
        TATCELL_ERR_FOREIGN
    } else {
        TATCELL_ERR_LIMIT
    }
}

/// Refuses a limit whose algorithm cannot do what only GCRA can.
#[inline(always)]
pub(in crate::capi) fn only_gcra(limit: &Params) -> Result<&Params, i32> {
    if limit.is_gcra() {
        Ok(limit)
    } else {
        Err(TATCELL_ERR_ALGORITHM)
    }
}

/// Writes a limit, if there is one, and returns the code.
pub(in crate::capi) fn store(made: Result<Params, LimitError>, out: Out<'_, tatcell_limit_t>) -> i32 {
    match made {
        Ok(params) => {
            out.put_inside(params);
            TATCELL_PASS
        }
        Err(e) => limit_code(e),
    }
}

/// Makes a limit for 64-bit cells: `units` per `period` ticks, and at most `burst` units at one instant after idle.
///
/// The algorithm is GCRA. One unit costs T = period / units ticks. The lead of a key is the time until its debt has
/// drained. A request conforms iff lead + cost * T <= burst * T, and then adds cost * T to the lead.
///
/// The rate is never exceeded. Rounding lowers it by at most 15.3 ppm; tatcell_limit_info reports by how much. On
/// error the limit is not changed.
///
/// @param limit  to initialise; not NULL.
/// @param units  units per period; not 0.
/// @param period ticks of the caller's clock; not 0.
/// @param burst  units, at least 1.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_RATE, TATCELL_ERR_PERIOD, TATCELL_ERR_BURST a value is 0.
/// @retval TATCELL_ERR_REPRESENT the rate is too fast for the clock, or the burst is too large.
/// @retval TATCELL_ERR_HORIZON the longest debt does not fit the word.
/// Thread: one writer, no reader. Cost: a few 128-bit divisions; not for the hot path. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init(
    limit: *mut tatcell_limit_t,
    units: u64,
    period: u64,
    burst: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(Limit::new(units, period, burst).map(|l| l.0), limit)
}

/// Makes a limit for 64-bit cells from a rate per second and the frequency of the caller's clock.
///
/// A request conforms by the rule of tatcell_limit_init.
///
/// @param limit            to initialise; not NULL.
/// @param units_per_second the rate; not 0.
/// @param ticks_per_second frequency of the clock that now is read from; not 0.
/// @param burst            units, at least 1.
/// @retval 0 done.
/// @retval others as tatcell_limit_init.
/// Thread: one writer, no reader. Cost: as tatcell_limit_init. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_rate(
    limit: *mut tatcell_limit_t,
    units_per_second: u64,
    ticks_per_second: u64,
    burst: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(Limit::from_rate(units_per_second, ticks_per_second, burst).map(|l| l.0), limit)
}

/// Makes a limit for 64-bit cells from a specification with options.
///
/// The field algorithm selects the rule by which a request conforms; the constructor of each algorithm states it.
///
/// @param limit to initialise; not NULL.
/// @param spec  started from TATCELL_LIMIT_SPEC_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_SIZE spec->size is not set.
/// @retval TATCELL_ERR_OPTION unknown flag or algorithm; resolution out of range; TATCELL_LIMIT_HEAL for a limit
///         that does not accept it; TATCELL_LIMIT_ALIGNED for another algorithm than fixed windows; a phase without
///         that flag; or the structure is of a newer header and sets a field that this library does not know.
/// @retval TATCELL_ERR_SOFT the soft threshold is above the burst.
/// @retval TATCELL_ERR_ALGORITHM the algorithm does not have one of the options, or its burst is neither 0 nor
///         units.
/// @retval TATCELL_ERR_PHASE phase is not below period.
/// @retval TATCELL_ERR_UNITS the bits of the word next to the time cannot count so high.
/// @retval others as tatcell_limit_init.
/// Thread: one writer, no reader. Cost: as tatcell_limit_init. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_spec(
    limit: *mut tatcell_limit_t,
    spec: *const tatcell_limit_spec_t,
) -> i32 {
    args!(c, limit = c.result(limit), given = c.options(spec), spec = self::spec(&given));
    store(spec.build().map(|l| l.0), limit)
}

/// Makes an unlimited limit for 64-bit cells: every request conforms to it.
///
/// @param limit to initialise; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: one writer, no reader. Cost: none. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_unlimited(limit: *mut tatcell_limit_t) -> i32 {
    args!(c, limit = c.result(limit));
    store(Ok(Limit::UNLIMITED.0), limit)
}

/// Makes a limit for 32-bit cells: `units` per `period` ticks, and at most `burst` units at one instant after idle.
///
/// A request conforms by the rule of tatcell_limit_init. The rate is never exceeded. Rounding lowers it by at most
/// 0.1 %. It is exact if the emission interval is a whole number of ticks; tatcell_limit_info reports it. Prefer
/// milliseconds to nanoseconds: a q-unit is a tick or less, and horizon and skew must be below 2^31 q-units.
///
/// @param limit  to initialise; not NULL.
/// @param units  units per period; not 0.
/// @param period ticks of the caller's clock; not 0.
/// @param burst  units, at least 1.
/// @retval 0 done.
/// @retval TATCELL_ERR_HORIZON horizon and skew are not below 2^31 q-units. Take a slower clock, a smaller burst, or
///         tatcell_limit32_init_spec with a shorter skew.
/// @retval others as tatcell_limit_init.
/// Thread: one writer, no reader. Cost: as tatcell_limit_init. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit32_init(
    limit: *mut tatcell_limit_t,
    units: u64,
    period: u64,
    burst: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(Limit32::new(units, period, burst).map(|l| l.0), limit)
}

/// Makes a limit for 32-bit cells from a rate per second and the frequency of the caller's clock.
///
/// @param limit            to initialise; not NULL.
/// @param units_per_second the rate; not 0.
/// @param ticks_per_second frequency of the clock that now is read from; not 0.
/// @param burst            units, at least 1.
/// @retval 0 done.
/// @retval others as tatcell_limit32_init.
/// Thread: one writer, no reader. Cost: as tatcell_limit_init. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit32_init_rate(
    limit: *mut tatcell_limit_t,
    units_per_second: u64,
    ticks_per_second: u64,
    burst: u64,
) -> i32 {
    args!(c, limit = c.result(limit));
    store(Limit32::from_rate(units_per_second, ticks_per_second, burst).map(|l| l.0), limit)
}

/// Makes a limit for 32-bit cells from a specification with options.
///
/// With TATCELL_LIMIT_RESOLUTION and a negative resolution, a q-unit is longer than a tick. The clock must not wrap
/// then.
///
/// @param limit to initialise; not NULL.
/// @param spec  started from TATCELL_LIMIT_SPEC_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_HORIZON horizon and skew are not below 2^31 q-units.
/// @retval others as tatcell_limit_init_spec.
/// Thread: one writer, no reader. Cost: as tatcell_limit_init. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit32_init_spec(
    limit: *mut tatcell_limit_t,
    spec: *const tatcell_limit_spec_t,
) -> i32 {
    args!(c, limit = c.result(limit), given = c.options(spec), spec = self::spec(&given));
    store(spec.build32().map(|l| l.0), limit)
}

/// Makes an unlimited limit for 32-bit cells: every request conforms to it.
///
/// @param limit to initialise; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: one writer, no reader. Cost: none. Since 0.2.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit32_init_unlimited(limit: *mut tatcell_limit_t) -> i32 {
    args!(c, limit = c.result(limit));
    store(Ok(Limit32::UNLIMITED.0), limit)
}

/// Returns sizeof(tatcell_limit_t) of the linked library, to compare with TATCELL_LIMIT_SIZE. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_limit_size() -> usize {
    TATCELL_LIMIT_SIZE
}

/// Returns TATCELL_SKEW_NONE, for languages that cannot read the macros of this header.
///
/// @return ticks that mean "no skew".
/// Thread: any. Cost: none. Since 0.2.
#[no_mangle]
pub extern "C" fn tatcell_skew_none() -> u64 {
    TATCELL_SKEW_NONE
}

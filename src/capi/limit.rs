//! `tatcell_limit_*`: limits and their specifications.

use core::mem::{align_of, size_of};

use super::{code, input, limit_code, result, TATCELL_ERR_LIMIT, TATCELL_ERR_OPTION, TATCELL_ERR_SIZE};
use crate::limit::params::{Params, KIND_CELL32, KIND_CELL64, KIND_TABLE};
use crate::limit::{Limit, Limit32, LimitSpec, TableLimit};

/// Bytes of a tatcell_limit_t.
pub const TATCELL_LIMIT_SIZE: usize = 112;
/// Alignment of a tatcell_limit_t.
pub const TATCELL_LIMIT_ALIGN: usize = 8;

/// A validated limit. Initialise it with a tatcell_limit_init function or tatcell_table_limit; read-only afterwards,
/// and then any number of threads may use it at once. A zeroed one is refused with TATCELL_ERR_LIMIT.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct tatcell_limit_t {
    /// Not for use.
    pub opaque: [u64; 14],
}

const _: () = assert!(size_of::<tatcell_limit_t>() == TATCELL_LIMIT_SIZE);
const _: () = assert!(align_of::<tatcell_limit_t>() == TATCELL_LIMIT_ALIGN);
const _: () = assert!(size_of::<Params>() <= size_of::<tatcell_limit_t>());
const _: () = assert!(align_of::<Params>() <= align_of::<tatcell_limit_t>());

/// flags: a word ahead of now by more than horizon and skew counts as a full debt (64-bit cells only).
pub const TATCELL_LIMIT_HEAL: u32 = 1;
/// flags: pass what would have been denied, flagged and uncharged.
pub const TATCELL_LIMIT_SHADOW: u32 = 2;
/// flags: use the given resolution instead of choosing one.
pub const TATCELL_LIMIT_RESOLUTION: u32 = 4;
/// flags: several refunds of one key are safe in any order; permits drain from the moment of their charge on.
pub const TATCELL_LIMIT_STRICT_REFUNDS: u32 = 8;
/// skew: tolerate no backward step at all.
pub const TATCELL_SKEW_NONE: u64 = u64::MAX;

/// A limit with all its options. Start from TATCELL_LIMIT_SPEC_INIT; a field left 0 is off or the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tatcell_limit_spec_t {
    /// sizeof(tatcell_limit_spec_t).
    pub size: u32,
    /// Any of the TATCELL_LIMIT_ flags.
    pub flags: u32,
    /// Units per period.
    pub units: u64,
    /// Ticks of the caller's clock.
    pub period: u64,
    /// Most units at one instant after idle.
    pub burst: u64,
    /// Units: passes above this debt carry TATCELL_FLAG_SOFT. 0 = off; at most burst.
    pub soft: u64,
    /// Units: most elastic room a call may ask for.
    pub max_room: u64,
    /// Ticks: reserve refuses departures further away.
    pub max_delay: u64,
    /// Units: charge may go this far beyond the burst.
    pub max_debt: u64,
    /// Units: denied requests are charged too, until this far beyond the burst. 0 = denied requests cost nothing.
    pub penalty: u64,
    /// Ticks by which the clock may step back. 0 = default, TATCELL_SKEW_NONE = none. In a table the table's counts.
    pub skew: u64,
    /// With TATCELL_LIMIT_RESOLUTION: one q-unit is 2^-resolution ticks, -63..63.
    pub resolution: i32,
    /// Permits carry it; a refund of another epoch credits nothing.
    pub epoch: u32,
}

/// A specification from C.
pub(super) fn spec(s: &tatcell_limit_spec_t) -> Result<LimitSpec, i32> {
    if (s.size as usize) < size_of::<tatcell_limit_spec_t>() {
        return Err(TATCELL_ERR_SIZE);
    }
    let known =
        TATCELL_LIMIT_HEAL | TATCELL_LIMIT_SHADOW | TATCELL_LIMIT_RESOLUTION | TATCELL_LIMIT_STRICT_REFUNDS;
    if s.flags & !known != 0 {
        return Err(TATCELL_ERR_OPTION);
    }
    let mut spec = LimitSpec::new(s.units, s.period, s.burst)
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
    Ok(spec)
}

/// The limit behind a C pointer, of one kind.
unsafe fn params<'a>(p: *const tatcell_limit_t, kind: u8) -> Result<&'a Params, i32> {
    // SAFETY: passed on.
    let limit = unsafe { input(p) }?;
    // SAFETY: larger and at least as aligned (asserted above), and any bytes are valid integers.
    let params = unsafe { &*core::ptr::from_ref(limit).cast::<Params>() };
    if params.kind == kind {
        Ok(params)
    } else {
        Err(TATCELL_ERR_LIMIT)
    }
}

/// # Safety
/// As [`input`].
#[inline(always)]
pub(super) unsafe fn limit64<'a>(p: *const tatcell_limit_t) -> Result<&'a Limit, i32> {
    // SAFETY: passed on; Limit is a transparent Params.
    unsafe { params(p, KIND_CELL64).map(|p| &*core::ptr::from_ref(p).cast()) }
}

/// # Safety
/// As [`input`].
#[inline(always)]
pub(super) unsafe fn limit32<'a>(p: *const tatcell_limit_t) -> Result<&'a Limit32, i32> {
    // SAFETY: passed on; Limit32 is a transparent Params.
    unsafe { params(p, KIND_CELL32).map(|p| &*core::ptr::from_ref(p).cast()) }
}

/// # Safety
/// As [`input`].
#[inline(always)]
pub(super) unsafe fn table_limit<'a>(p: *const tatcell_limit_t) -> Result<&'a TableLimit, i32> {
    // SAFETY: passed on; TableLimit is a transparent Params.
    unsafe { params(p, KIND_TABLE).map(|p| &*core::ptr::from_ref(p).cast()) }
}

/// Writes a limit.
///
/// # Safety
/// As [`result`].
pub(super) unsafe fn store(p: *mut tatcell_limit_t, params: Params) -> Result<i32, i32> {
    // SAFETY: passed on.
    let out = unsafe { result(p) }?;
    *out = tatcell_limit_t { opaque: [0; 14] };
    // SAFETY: large and aligned enough (asserted above).
    unsafe { core::ptr::from_mut(out).cast::<Params>().write(params) };
    Ok(0)
}

/// Makes a limit for 64-bit cells: units per period ticks, at most burst units at one instant after idle.
///
/// The rate is never exceeded; it is at most 15 ppm lower. Not changed on error.
///
/// @param limit  to initialise; not NULL.
/// @param units  units per period; not 0.
/// @param period ticks of the caller's clock; not 0.
/// @param burst  units, at least 1.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_RATE, TATCELL_ERR_PERIOD, TATCELL_ERR_BURST a value is 0.
/// @retval TATCELL_ERR_REPRESENT too fast for the clock, or burst too large.
/// @retval TATCELL_ERR_HORIZON too long for the word.
/// Thread: one writer, nobody reading. Cost: a few 128-bit divisions; not for the hot path. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init(
    limit: *mut tatcell_limit_t,
    units: u64,
    period: u64,
    burst: u64,
) -> i32 {
    let made = Limit::new(units, period, burst).map_err(limit_code);
    // SAFETY: the caller's contract.
    code(made.and_then(|l| unsafe { store(limit, l.0) }))
}

/// Makes a limit for 64-bit cells from a rate and the frequency of the caller's clock.
///
/// @param limit            to initialise; not NULL.
/// @param units_per_second not 0.
/// @param ticks_per_second frequency of the clock that now is read from; not 0.
/// @param burst            units, at least 1.
/// @retval 0 done.
/// @retval others as tatcell_limit_init.
/// Thread: one writer, nobody reading. Cost: as tatcell_limit_init. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_rate(
    limit: *mut tatcell_limit_t,
    units_per_second: u64,
    ticks_per_second: u64,
    burst: u64,
) -> i32 {
    let made = Limit::from_rate(units_per_second, ticks_per_second, burst).map_err(limit_code);
    // SAFETY: the caller's contract.
    code(made.and_then(|l| unsafe { store(limit, l.0) }))
}

/// Makes a limit for 64-bit cells with options.
///
/// @param limit to initialise; not NULL.
/// @param spec  started from TATCELL_LIMIT_SPEC_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_SIZE spec->size is not set.
/// @retval TATCELL_ERR_OPTION unknown flag, resolution out of range, or TATCELL_LIMIT_HEAL for a word below 64 bits.
/// @retval TATCELL_ERR_SOFT soft threshold above the burst.
/// @retval others as tatcell_limit_init.
/// Thread: one writer, nobody reading. Cost: as tatcell_limit_init. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_spec(
    limit: *mut tatcell_limit_t,
    spec: *const tatcell_limit_spec_t,
) -> i32 {
    // SAFETY: the caller's contract.
    let made = unsafe { input(spec) }.and_then(self::spec).and_then(|s| s.build().map_err(limit_code));
    // SAFETY: the caller's contract.
    code(made.and_then(|l| unsafe { store(limit, l.0) }))
}

/// Makes a limit for 32-bit cells with options.
///
/// @param limit to initialise; not NULL.
/// @param spec  started from TATCELL_LIMIT_SPEC_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_HORIZON horizon and skew must stay below an eighth of 2^32 q-units, or half of it with
///         TATCELL_LIMIT_RESOLUTION.
/// @retval others as tatcell_limit_init_spec.
/// Thread: one writer, nobody reading. Cost: as tatcell_limit_init. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_spec32(
    limit: *mut tatcell_limit_t,
    spec: *const tatcell_limit_spec_t,
) -> i32 {
    // SAFETY: the caller's contract.
    let made = unsafe { input(spec) }.and_then(self::spec).and_then(|s| s.build32().map_err(limit_code));
    // SAFETY: the caller's contract.
    code(made.and_then(|l| unsafe { store(limit, l.0) }))
}

/// Makes a limit for 64-bit cells that everything conforms to.
///
/// @param limit to initialise; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: one writer, nobody reading. Cost: none. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn tatcell_limit_init_unlimited(limit: *mut tatcell_limit_t) -> i32 {
    // SAFETY: the caller's contract.
    code(unsafe { store(limit, Limit::UNLIMITED.0) })
}

/// Gives sizeof(tatcell_limit_t) of the linked library, to compare with TATCELL_LIMIT_SIZE.
///
/// @return bytes.
/// Thread: any. Cost: none. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_limit_size() -> usize {
    TATCELL_LIMIT_SIZE
}

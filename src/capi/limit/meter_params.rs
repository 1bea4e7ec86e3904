//! `tatcell_meter_params_*`: the rates and bursts of meters, and the numbers that result from them.

use super::limit::TATCELL_SKEW_NONE;
use crate::capi::codes::{meter_code, TATCELL_ERR_LIMIT, TATCELL_ERR_OPTION, TATCELL_PASS};
use crate::capi::pointers::contract::{args, inside, Contract, Grows, Marked};
use crate::limit::meter::params::{MeterParams, FINGERPRINT_METER};
use crate::limit::{MeterLimit, MeterSpec};

/// Bytes of a tatcell_meter_params_t. This size never changes.
pub const TATCELL_METER_PARAMS_SIZE: usize = 192;
/// Alignment of a tatcell_meter_params_t.
pub const TATCELL_METER_PARAMS_ALIGN: usize = 8;

/// kind: one rate, two bursts (RFC 2697). Units that overflow the committed burst fill the excess burst.
pub const TATCELL_METER_RFC2697: u32 = 2697;
/// kind: committed and peak rate (RFC 2698). Green and yellow packets are charged to the peak burst, and green ones
/// also to the committed burst.
pub const TATCELL_METER_RFC2698: u32 = 2698;
/// kind: committed and excess rate (RFC 4115). Green packets are charged to the committed burst, and yellow ones to
/// the excess burst.
pub const TATCELL_METER_RFC4115: u32 = 4115;

/// flags: units that overflow the committed burst fill the excess burst, as with the coupling flag CF = 1 of MEF
/// 10.3. Only for TATCELL_METER_RFC4115. With an excess rate of 0 the meter is that of RFC 2697.
pub const TATCELL_METER_COUPLED: u32 = 1;

/// The validated rates and bursts of meters. tatcell_meter_params_init initialises it. After that it is read-only,
/// and any number of threads and meters may use it at once. It may be copied. The library refuses zeroed
/// parameters, and parameters of another version of the library, with TATCELL_ERR_LIMIT. A meter belongs to one set
/// of parameters: to change it, reset the meter.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct tatcell_meter_params_t {
    /// Private to the library.
    pub opaque: [u64; 24],
}

const _: () = assert!(size_of::<tatcell_meter_params_t>() == TATCELL_METER_PARAMS_SIZE);
const _: () = assert!(align_of::<tatcell_meter_params_t>() == TATCELL_METER_PARAMS_ALIGN);
const _: () = assert!(size_of::<MeterParams>() <= TATCELL_METER_PARAMS_SIZE);
const _: () = assert!(align_of::<MeterParams>() <= TATCELL_METER_PARAMS_ALIGN);
const _: () = assert!(core::mem::offset_of!(MeterParams, fingerprint) == 0);

/// Bytes of a tatcell_meter_spec_t in its first release: the least size that a library accepts.
pub const TATCELL_METER_SPEC_MIN: usize = 72;
/// Bytes of a tatcell_meter_info_t in its first release: the least size that a library accepts.
pub const TATCELL_METER_INFO_MIN: usize = 136;

/// A meter as its RFC describes it. Start from TATCELL_METER_SPEC_INIT. Rates are units a second, and bursts are
/// units. Units are bytes as in the RFCs, or packets if the cost of each is 1.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tatcell_meter_spec_t {
    /// sizeof(tatcell_meter_spec_t).
    pub size: u32,
    /// TATCELL_METER_COUPLED or 0.
    pub flags: u32,
    /// A TATCELL_METER_RFC constant; there is no default.
    pub kind: u32,
    /// Must be 0.
    pub reserved: u32,
    /// The committed information rate.
    pub cir: u64,
    /// The committed burst.
    pub cbs: u64,
    /// The peak rate (RFC 2698, at least cir) or the excess rate (RFC 4115); 0 for RFC 2697.
    pub rate2: u64,
    /// The peak burst (RFC 2698) or the excess burst.
    pub burst2: u64,
    /// Ticks per second of the clock that now is read from; not 0.
    pub tick_hz: u64,
    /// Ticks for which a meter may be idle without a sweep. 0 = eight seconds if possible. Any other span that is
    /// not possible returns TATCELL_ERR_SHORT_SPAN. Longer spans round more.
    pub span: u64,
    /// Ticks by which a reading may be older than another. 0 = default (the horizon, or a 64th of the word's range
    /// if that is longer), TATCELL_SKEW_NONE = none.
    pub skew: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_meter_spec_t {
    const FIRST: usize = TATCELL_METER_SPEC_MIN;
}
const _: () = assert!(size_of::<tatcell_meter_spec_t>() == 4 * 4 + 7 * 8);

/// The numbers of a meter. Times are ticks.
#[repr(C)]
pub struct tatcell_meter_info_t {
    /// sizeof(tatcell_meter_info_t); never written.
    pub size: u32,
    /// TATCELL_METER_COUPLED or 0.
    pub flags: u32,
    /// A TATCELL_METER_RFC constant; TATCELL_METER_RFC2697 for a coupled meter with an excess rate of 0.
    pub kind: u32,
    /// Bits of the word that hold the later time. The other bits hold the difference.
    pub word_bits: u32,
    /// One q-unit is 2^-resolution ticks.
    pub resolution: i32,
    /// A unit of the committed rate takes committed_m / 2^committed_k q-units.
    pub committed_k: u32,
    /// A unit of the second rate takes second_m / 2^second_k q-units.
    pub second_k: u32,
    /// Always 0.
    pub reserved: u32,
    /// As specified.
    pub cir: u64,
    /// As specified.
    pub cbs: u64,
    /// As specified.
    pub rate2: u64,
    /// As specified.
    pub burst2: u64,
    /// Ticks per second, as specified.
    pub tick_hz: u64,
    /// See committed_k. 0 for a rate of 0.
    pub committed_m: u64,
    /// See second_k. 0 for a rate of 0.
    pub second_m: u64,
    /// H, the longest debt that a store can make. Without any rate no debt drains: UINT64_MAX, like skew and span.
    pub horizon: u64,
    /// S. A reading that is older than another by more than this finds the meter full.
    pub skew: u64,
    /// Ticks after which an untouched meter may read as a debt again, for at most horizon and skew.
    pub span: u64,
    /// A meter that may be idle needs one tatcell_meter_sweep within this many ticks.
    pub sweep_interval: u64,
    /// The most by which rounding raises a charge of the committed bucket, in billionths of a unit: one q-unit. 0
    /// if a unit takes a whole number of q-units.
    pub committed_rounding_ppb: u64,
    /// The same for the second bucket.
    pub second_rounding_ppb: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_meter_info_t {
    const FIRST: usize = TATCELL_METER_INFO_MIN;
}
const _: () = assert!(size_of::<tatcell_meter_info_t>() == 8 * 4 + 13 * 8);

/// Converts a specification from C.
fn spec(s: &tatcell_meter_spec_t) -> Result<MeterSpec, i32> {
    let mut spec = match s.kind {
        TATCELL_METER_RFC2697 if s.rate2 == 0 => MeterSpec::rfc2697(s.cir, s.cbs, s.burst2, s.tick_hz),
        TATCELL_METER_RFC2698 => MeterSpec::rfc2698(s.cir, s.cbs, s.rate2, s.burst2, s.tick_hz),
        TATCELL_METER_RFC4115 => MeterSpec::rfc4115(s.cir, s.cbs, s.rate2, s.burst2, s.tick_hz),
        _ => return Err(TATCELL_ERR_OPTION),
    };
    if s.flags & !TATCELL_METER_COUPLED != 0 || s.reserved != 0 {
        return Err(TATCELL_ERR_OPTION);
    }
    if s.flags & TATCELL_METER_COUPLED != 0 {
        spec = spec.coupled();
    }
    if s.span != 0 {
        spec = spec.span(s.span);
    }
    if s.skew != 0 {
        spec = spec.skew(if s.skew == TATCELL_SKEW_NONE { 0 } else { s.skew });
    }
    Ok(spec)
}

// SAFETY: MeterParams start with their mark, and any bytes are MeterParams.
unsafe impl Marked for MeterLimit {
    const MARK: u64 = FINGERPRINT_METER;
    const ERROR: i32 = TATCELL_ERR_LIMIT;
}

impl<'a> Contract<'a> {
    /// Parameters.
    #[inline(always)]
    pub(in crate::capi) fn meter_params(
        self,
        p: *const tatcell_meter_params_t,
    ) -> Result<&'a MeterLimit, i32> {
        self.marked(inside(p))
    }
}

/// Makes the parameters of a meter. On error they are not changed.
///
/// No rate is ever exceeded. Rounding may lower a rate; tatcell_meter_params_info reports by how much. A rate may be 0
/// (a library of 0.3 returns TATCELL_ERR_RATE, or takes the burst of a rate of 0 for 0). The burst of that rate is then
/// given once: nothing fills it again, except tatcell_meter_reset.
///
/// @param params to initialise; not NULL.
/// @param spec   started from TATCELL_METER_SPEC_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_SIZE spec->size is not set.
/// @retval TATCELL_ERR_OPTION unknown kind or flag; a second rate for RFC 2697; TATCELL_METER_COUPLED for another
///         kind than RFC 4115; or the structure is of a newer header and sets a field that this library does not
///         know.
/// @retval TATCELL_ERR_RATE both rates and both bursts of RFC 4115 are 0.
/// @retval TATCELL_ERR_BURST a burst that the RFC needs is 0: both for RFC 2697, that of a rate above 0 for RFC 2698
///         and RFC 4115, the peak burst for RFC 2698.
/// @retval TATCELL_ERR_PERIOD tick_hz is 0.
/// @retval TATCELL_ERR_PEAK the peak rate is below the committed rate.
/// @retval TATCELL_ERR_REPRESENT a rate is too fast for the clock, a value is too large, or the rates are too far
///         apart.
/// @retval TATCELL_ERR_HORIZON bursts and skew are too long for the word.
/// @retval TATCELL_ERR_SHORT_SPAN the word cannot have this span.
/// Thread: one writer, no reader. Cost: about a thousand 128-bit divisions; not for the hot path. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_meter_params_init(
    params: *mut tatcell_meter_params_t,
    spec: *const tatcell_meter_spec_t,
) -> i32 {
    args!(c, out = c.result(params), given = c.options(spec), spec = self::spec(&given));
    match spec.build() {
        Ok(limit) => {
            out.put_inside(limit.0);
            TATCELL_PASS
        }
        Err(e) => meter_code(e),
    }
}

/// Reports the numbers of a meter: its word, its times, and by how much rounding raises a charge.
///
/// @param params not NULL.
/// @param info   started from TATCELL_METER_INFO_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_LIMIT params is not initialised.
/// @retval TATCELL_ERR_SIZE info->size is not set.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any. Cost: two 128-bit divisions. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_meter_params_info(
    params: *const tatcell_meter_params_t,
    info: *mut tatcell_meter_info_t,
) -> i32 {
    args!(c, limit = c.meter_params(params), out = c.report(info));
    let made = limit.info();
    out.put(&tatcell_meter_info_t {
        size: 0,
        flags: if made.coupled { TATCELL_METER_COUPLED } else { 0 },
        kind: made.kind as u32,
        word_bits: made.word_bits,
        resolution: made.resolution,
        committed_k: made.committed_emission.1,
        second_k: made.second_emission.1,
        reserved: 0,
        cir: made.cir,
        cbs: made.cbs,
        rate2: made.rate2,
        burst2: made.burst2,
        tick_hz: made.tick_hz,
        committed_m: made.committed_emission.0,
        second_m: made.second_emission.0,
        horizon: made.horizon,
        skew: made.skew,
        span: made.span,
        sweep_interval: made.sweep_interval,
        committed_rounding_ppb: made.committed_rounding_ppb,
        second_rounding_ppb: made.second_rounding_ppb,
    });
    TATCELL_PASS
}

/// Returns sizeof(tatcell_meter_params_t) of the linked library, to compare with TATCELL_METER_PARAMS_SIZE. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_meter_params_size() -> usize {
    TATCELL_METER_PARAMS_SIZE
}

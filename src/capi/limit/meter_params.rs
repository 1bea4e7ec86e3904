//! `tatcell_meter_params_*`: the rates and bursts of meters, and what they came out as.

use super::limit::TATCELL_SKEW_NONE;
use crate::capi::codes::{meter_code, TATCELL_ERR_LIMIT, TATCELL_ERR_OPTION, TATCELL_PASS};
use crate::capi::pointers::contract::{args, inside, Contract, Grows, Marked};
use crate::limit::meter::params::{MeterParams, FINGERPRINT_METER};
use crate::limit::{MeterLimit, MeterSpec};

/// Bytes of a tatcell_meter_params_t; it never grows.
pub const TATCELL_METER_PARAMS_SIZE: usize = 192;
/// Alignment of a tatcell_meter_params_t.
pub const TATCELL_METER_PARAMS_ALIGN: usize = 8;

/// kind: one rate, two bursts (RFC 2697). What overflows the committed burst fills the excess burst.
pub const TATCELL_METER_RFC2697: u32 = 2697;
/// kind: committed and peak rate (RFC 2698). Green and yellow pay the peak burst, green the committed one as well.
pub const TATCELL_METER_RFC2698: u32 = 2698;
/// kind: committed and excess rate (RFC 4115). Green pays the committed burst, yellow the excess one.
pub const TATCELL_METER_RFC4115: u32 = 4115;

/// flags: what overflows the committed burst fills the excess burst, as the coupling flag CF = 1 of MEF 10.3 has it.
/// For TATCELL_METER_RFC4115 only; with an excess rate of 0 the meter is that of RFC 2697.
pub const TATCELL_METER_COUPLED: u32 = 1;

/// The validated rates and bursts of meters. Initialise it with tatcell_meter_params_init; read-only afterwards, and
/// then any number of threads and meters may use it at once. It may be copied. A zeroed one, and one of another version
/// of the library, is refused with TATCELL_ERR_LIMIT. A meter belongs to one: to change it, reset the meter.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct tatcell_meter_params_t {
    /// Not for use.
    pub opaque: [u64; 24],
}

const _: () = assert!(size_of::<tatcell_meter_params_t>() == TATCELL_METER_PARAMS_SIZE);
const _: () = assert!(align_of::<tatcell_meter_params_t>() == TATCELL_METER_PARAMS_ALIGN);
const _: () = assert!(size_of::<MeterParams>() <= TATCELL_METER_PARAMS_SIZE);
const _: () = assert!(align_of::<MeterParams>() <= TATCELL_METER_PARAMS_ALIGN);
const _: () = assert!(core::mem::offset_of!(MeterParams, fingerprint) == 0);

/// Bytes of a tatcell_meter_spec_t in its first release: the least that a library takes.
pub const TATCELL_METER_SPEC_MIN: usize = 72;
/// Bytes of a tatcell_meter_info_t in its first release: the least that a library takes.
pub const TATCELL_METER_INFO_MIN: usize = 136;

/// A meter as its RFC describes it. Start from TATCELL_METER_SPEC_INIT. Rates are units a second, bursts units: bytes
/// as the RFCs have it, or packets where the cost of each is 1.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tatcell_meter_spec_t {
    /// sizeof(tatcell_meter_spec_t).
    pub size: u32,
    /// TATCELL_METER_COUPLED or 0.
    pub flags: u32,
    /// A TATCELL_METER_RFC constant; there is no default.
    pub kind: u32,
    /// 0.
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
    /// Ticks for which a meter may rest without a sweep. 0 = eight seconds where that can be had; another number that
    /// cannot is TATCELL_ERR_SHORT_SPAN. Longer spans round more.
    pub span: u64,
    /// Ticks by which a reading may be older than another. 0 = default (the horizon, or a 64th of the word's range
    /// where that is longer), TATCELL_SKEW_NONE = none.
    pub skew: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_meter_spec_t {
    const FIRST: usize = TATCELL_METER_SPEC_MIN;
}
const _: () = assert!(size_of::<tatcell_meter_spec_t>() == 4 * 4 + 7 * 8);

/// What a meter came out as; times are ticks.
#[repr(C)]
pub struct tatcell_meter_info_t {
    /// sizeof(tatcell_meter_info_t); never written.
    pub size: u32,
    /// TATCELL_METER_COUPLED or 0.
    pub flags: u32,
    /// A TATCELL_METER_RFC constant; TATCELL_METER_RFC2697 for a coupled meter with an excess rate of 0.
    pub kind: u32,
    /// Bits of the word that hold the later time; the others hold the difference.
    pub word_bits: u32,
    /// One q-unit is 2^-resolution ticks.
    pub resolution: i32,
    /// A unit of the committed rate takes committed_m / 2^committed_k q-units.
    pub committed_k: u32,
    /// A unit of the second rate takes second_m / 2^second_k q-units.
    pub second_k: u32,
    /// 0.
    pub reserved: u32,
    /// As asked for.
    pub cir: u64,
    /// As asked for; 0 where no rate fills it.
    pub cbs: u64,
    /// As asked for.
    pub rate2: u64,
    /// As asked for; 0 where no rate fills it.
    pub burst2: u64,
    /// Ticks per second, as said.
    pub tick_hz: u64,
    /// See committed_k.
    pub committed_m: u64,
    /// See second_k.
    pub second_m: u64,
    /// H, the longest debt that a store can make.
    pub horizon: u64,
    /// S: a reading older than another by more than this finds the meter full.
    pub skew: u64,
    /// After so many ticks an untouched meter may read as a debt again, for at most horizon and skew.
    pub span: u64,
    /// Within so many ticks a meter that may rest wants one tatcell_meter_sweep.
    pub sweep_interval: u64,
    /// The most that a charge of the committed bucket takes too much, in billionths of a unit: one q-unit. 0 where a
    /// unit takes a whole number of q-units.
    pub committed_rounding_ppb: u64,
    /// The same of the second bucket.
    pub second_rounding_ppb: u64,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_meter_info_t {
    const FIRST: usize = TATCELL_METER_INFO_MIN;
}
const _: () = assert!(size_of::<tatcell_meter_info_t>() == 8 * 4 + 13 * 8);

/// A specification from C.
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

// SAFETY: MeterParams, which start with their mark; any bytes are MeterParams.
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

/// Makes the parameters of a meter. Not changed on error.
///
/// No rate is ever exceeded; what rounding takes, tatcell_meter_params_info tells.
///
/// @param params to initialise; not NULL.
/// @param spec   started from TATCELL_METER_SPEC_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_SIZE spec->size is not set.
/// @retval TATCELL_ERR_OPTION unknown kind or flag, a second rate for RFC 2697, or TATCELL_METER_COUPLED for another
///         kind than RFC 4115; or the structure is of a newer header and uses what this library does not know.
/// @retval TATCELL_ERR_RATE a rate is 0 that the RFC needs: cir for RFC 2697, one of both for RFC 2698, both for RFC
///         4115.
/// @retval TATCELL_ERR_BURST a burst is 0 that the RFC needs: both for RFC 2697, one of both for RFC 2698, that of a
///         rate for RFC 4115.
/// @retval TATCELL_ERR_PERIOD tick_hz is 0.
/// @retval TATCELL_ERR_PEAK the peak rate is below the committed rate.
/// @retval TATCELL_ERR_REPRESENT too fast for the clock, too large, or rates too far from each other.
/// @retval TATCELL_ERR_HORIZON bursts and skew are too long for the word.
/// @retval TATCELL_ERR_SHORT_SPAN the word cannot have the span that was asked for.
/// Thread: one writer, nobody reading. Cost: about a thousand 128-bit divisions; not for the hot path. Since 0.3.
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

/// Tells what a meter came out as: its word, its times, and what rounding takes.
///
/// @param params not NULL.
/// @param info   started from TATCELL_METER_INFO_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_LIMIT params not initialised.
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

/// Gives sizeof(tatcell_meter_params_t) of the linked library, to compare with TATCELL_METER_PARAMS_SIZE.
///
/// @return bytes.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_meter_params_size() -> usize {
    TATCELL_METER_PARAMS_SIZE
}

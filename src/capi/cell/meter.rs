//! `tatcell_meter_*`: three-colour meters, shared; and the `_exclusive` form for one owner.

use crate::answer::{Colour, Marking};
use crate::capi::codes::{verdict_code, TATCELL_ERR_OPTION, TATCELL_PASS};
use crate::capi::limit::meter_params::tatcell_meter_params_t;
use crate::capi::pointers::contract::{args, inside, Contract, Out, Plain};
use crate::cell::{ExclusiveMeter, Meter};

/// Bytes of a tatcell_meter_t.
pub const TATCELL_METER_SIZE: usize = 8;
/// Alignment of a tatcell_meter_t.
pub const TATCELL_METER_ALIGN: usize = 8;

/// A packet within the committed rate and burst. A colour-blind meter treats every incoming packet as green.
pub const TATCELL_GREEN: u32 = 0;
/// A packet above the committed rate and burst, within the second rate and burst.
pub const TATCELL_YELLOW: u32 = 1;
/// A packet above both.
pub const TATCELL_RED: u32 = 2;

const _: () = assert!(TATCELL_GREEN == Colour::Green as u32);
const _: () = assert!(TATCELL_YELLOW == Colour::Yellow as u32);
const _: () = assert!(TATCELL_RED == Colour::Red as u32);

/// One shared meter. All-zero memory (static storage, calloc, TATCELL_METER_INIT) is a meter whose buckets are
/// full.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct tatcell_meter_t {
    /// The state word. Copy it to save a meter. 0 = full.
    pub word: u64,
}

const _: () = assert!(size_of::<tatcell_meter_t>() == TATCELL_METER_SIZE);
const _: () = assert!(align_of::<tatcell_meter_t>() == TATCELL_METER_ALIGN);
const _: () = assert!(size_of::<Meter>() == TATCELL_METER_SIZE && align_of::<Meter>() <= TATCELL_METER_ALIGN);
const _: () = assert!(size_of::<ExclusiveMeter>() == TATCELL_METER_SIZE);

/// Converts C's number for the colour that a packet came with.
pub(in crate::capi) fn colour(pre: u32) -> Result<Colour, i32> {
    match pre {
        TATCELL_GREEN => Ok(Colour::Green),
        TATCELL_YELLOW => Ok(Colour::Yellow),
        TATCELL_RED => Ok(Colour::Red),
        _ => Err(TATCELL_ERR_OPTION),
    }
}

// SAFETY: an atomic number.
unsafe impl Plain for Meter {}
// SAFETY: a number.
unsafe impl Plain for ExclusiveMeter {}

impl<'a> Contract<'a> {
    /// Returns a meter that others may use: same size and alignment, and every access is atomic.
    #[inline(always)]
    fn meter(self, p: *const tatcell_meter_t) -> Result<&'a Meter, i32> {
        self.input(inside(p))
    }
}

/// Writes the colour and returns the code of a marking.
#[inline(always)]
pub(in crate::capi) fn finish(marking: Marking, out: Option<Out<'_, u32>>) -> i32 {
    if let Some(out) = out {
        out.put(marking.colour as u32);
    }
    verdict_code(marking.verdict)
}

/// Marks one packet green, yellow or red, and charges it unless it is red.
///
/// Sources: RFC 2697, RFC 2698, RFC 4115; MEF 10.3 for TATCELL_METER_COUPLED.
///
/// @param meter  not NULL.
/// @param params of this meter; not NULL.
/// @param now    the caller's clock, ticks.
/// @param cost   units: the bytes of the packet; 0 only peeks and never writes.
/// @param pre    the colour that the packet came with; TATCELL_GREEN for a colour-blind meter.
/// @param colour gets the packet's colour: TATCELL_GREEN, TATCELL_YELLOW or TATCELL_RED. A packet without verdict
///               is red. NULL = not wanted. Not written on error.
/// @retval 0 green or yellow; charged unless cost is 0.
/// @retval TATCELL_NON_CONFORMING red, as is every packet that came red; nothing is charged.
/// @retval TATCELL_NEVER red, and always will be: the cost is above every burst that its incoming colour may use.
/// @retval TATCELL_CONTENDED no verdict; nothing is charged.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_LIMIT params is not initialised.
/// @retval TATCELL_ERR_OPTION pre is not a colour.
/// Thread: any number on one meter. Cost: one compare-and-swap if it charges, else one load. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_meter_check(
    meter: *mut tatcell_meter_t,
    params: *const tatcell_meter_params_t,
    now: u64,
    cost: u64,
    pre: u32,
    colour: *mut u32,
) -> i32 {
    args!(
        c,
        meter = c.meter(meter),
        limit = c.meter_params(params),
        pre = self::colour(pre),
        out = c.result_if(colour)
    );
    finish(meter.check(limit, now, cost, pre), out)
}

/// Marks one packet and charges it unless it is red, for a meter with one owner. It equals tatcell_meter_check with
/// a plain load and store, without atomic instructions.
///
/// @param meter  not NULL; no other thread uses it during the call.
/// @param params of this meter; not NULL.
/// @param now    the caller's clock, ticks.
/// @param cost   units; 0 only peeks and never writes.
/// @param pre    the colour that the packet came with; TATCELL_GREEN for a colour-blind meter.
/// @param colour gets the packet's colour, as for tatcell_meter_check; NULL = not wanted.
/// @retval as tatcell_meter_check; never TATCELL_CONTENDED.
/// Thread: one at a time on one meter. Cost: one load, one store. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_meter_check_exclusive(
    meter: *mut tatcell_meter_t,
    params: *const tatcell_meter_params_t,
    now: u64,
    cost: u64,
    pre: u32,
    colour: *mut u32,
) -> i32 {
    args!(
        c,
        meter = c.owned(inside::<_, ExclusiveMeter>(meter).cast_mut()),
        limit = c.meter_params(params),
        pre = self::colour(pre),
        out = c.result_if(colour)
    );
    finish(meter.check(limit, now, cost, pre), out)
}

/// Reports how a packet would be marked, without charging it.
///
/// @param meter  not NULL.
/// @param params of this meter; not NULL.
/// @param now    the caller's clock, ticks.
/// @param cost   units.
/// @param pre    the colour that the packet came with; TATCELL_GREEN for a colour-blind meter.
/// @param colour gets the packet's colour, as for tatcell_meter_check; NULL = not wanted.
/// @retval as tatcell_meter_check; never TATCELL_CONTENDED.
/// Thread: any number on one meter; only reads. Cost: one load. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_meter_peek(
    meter: *const tatcell_meter_t,
    params: *const tatcell_meter_params_t,
    now: u64,
    cost: u64,
    pre: u32,
    colour: *mut u32,
) -> i32 {
    args!(
        c,
        meter = c.meter(meter),
        limit = c.meter_params(params),
        pre = self::colour(pre),
        out = c.result_if(colour)
    );
    finish(meter.peek(limit, now, cost, pre), out)
}

/// Empties the word of a meter that is full for every reading of the clock within the skew, so that the word cannot
/// wrap into a false debt.
///
/// A meter that may be idle needs one sweep within each sweep_interval of tatcell_meter_info_t. A sweep changes no
/// colour.
///
/// @param meter  not NULL.
/// @param params of this meter; not NULL.
/// @param now    the caller's clock, ticks.
/// @param swept  gets 1 if the word was emptied, else 0. NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_LIMIT bad argument.
/// Thread: any number on one meter. Cost: one load, and one compare-and-swap if it empties the word. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_meter_sweep(
    meter: *mut tatcell_meter_t,
    params: *const tatcell_meter_params_t,
    now: u64,
    swept: *mut u32,
) -> i32 {
    args!(c, meter = c.meter(meter), limit = c.meter_params(params), out = c.result_if(swept));
    let done = meter.sweep(limit, now);
    if let Some(out) = out {
        out.put(done.into());
    }
    TATCELL_PASS
}

/// Makes both buckets of a meter full. Use it also to change to other parameters, while no thread checks.
///
/// @param meter not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any number on one meter. Cost: one store. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_meter_reset(meter: *mut tatcell_meter_t) -> i32 {
    args!(c, meter = c.meter(meter));
    meter.reset();
    TATCELL_PASS
}

/// Returns sizeof(tatcell_meter_t) of the linked library, to compare with TATCELL_METER_SIZE. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_meter_size() -> usize {
    TATCELL_METER_SIZE
}

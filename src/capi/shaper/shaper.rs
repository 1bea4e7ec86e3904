//! `tatcell_shaper_*`, first part: handles that wait for their departure, in a timing wheel in the caller's memory.

use core::ffi::c_void;

use crate::capi::codes::{
    TATCELL_END, TATCELL_ERR_BEHIND, TATCELL_ERR_FULL, TATCELL_ERR_HANDLE, TATCELL_ERR_TOO_FAR,
    TATCELL_ERR_TOO_LARGE, TATCELL_ERR_TOO_SMALL, TATCELL_ERR_WHEEL, TATCELL_PASS,
};
use crate::capi::combine::links::chain_code;
use crate::capi::pointers::contract::{args, inside, possible, Contract, Grows, Marked, Plain};
use crate::capi::pointers::places::Span;
use crate::combine::{wheel_words, Shaper, ShaperError, Waiting};

/// Bytes of a tatcell_shaper_t: of the handle, not of its memory (see tatcell_shaper_bytes). This size never
/// changes.
pub const TATCELL_SHAPER_SIZE: usize = 256;
/// Alignment of a tatcell_shaper_t, and of its memory.
pub const TATCELL_SHAPER_ALIGN: usize = 8;
/// Bytes of a tatcell_waiting_t. This size never changes.
pub const TATCELL_WAITING_SIZE: usize = 24;
/// Bytes of a tatcell_shaper_info_t in its first release: the least size that a library accepts.
pub const TATCELL_SHAPER_INFO_MIN: usize = 40;

/// Handle of a shaper. A shaper reserves for each request the earliest instant at which it conforms, and keeps a
/// handle of yours until then. It is the leaky bucket as a queue, for any number of keys.
///
/// One owner uses a shaper and its memory, such as a core: no two calls on it may run at the same time. Shapers may
/// share their cells and tables. The library refuses a zeroed handle, and a handle of another version of the
/// library, with TATCELL_ERR_HANDLE. Do not copy the handle.
///
/// The memory is a timing wheel with slots of `granularity` ticks. A waiting handle is released at a now at or
/// after its departure, late by less than a slot. Each flow is released in its order.
#[repr(C, align(8))]
pub struct tatcell_shaper_t {
    /// Private to the library.
    pub opaque: [u64; 32],
}

/// A handle that waits in a shaper.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tatcell_waiting_t {
    /// Your handle: an index, a pointer, a file descriptor.
    pub handle: u64,
    /// The tick from which on the handle may leave.
    pub departure: u64,
    /// Number of limits that the request has passed, for tatcell_shaper_forward; 0 is the first level.
    pub level: u32,
    /// 0.
    pub reserved: u32,
}

/// The numbers of a shaper.
#[repr(C)]
pub struct tatcell_shaper_info_t {
    /// sizeof(tatcell_shaper_info_t); never written.
    pub size: u32,
    /// Always 0.
    pub reserved: u32,
    /// Number of handles that wait.
    pub waiting: u64,
    /// Most handles that can wait.
    pub capacity: u64,
    /// Ticks of a slot.
    pub granularity: u64,
    /// How far ahead of now a departure may lie, in ticks: the span of all slots except one.
    pub horizon: u64,
}

/// The contents of a tatcell_shaper_t.
#[repr(C)]
struct Handle {
    /// `READY`.
    mark: u64,
    memory: Span,
    shaper: Shaper<'static>,
}

/// "tatcell", kind of object, version of `Handle`: raised whenever it, `Shaper` or `Wheel` change.
const READY: u64 = 0x7461_7463_656c_7701;

const _: () = assert!(size_of::<tatcell_shaper_t>() == TATCELL_SHAPER_SIZE);
const _: () = assert!(align_of::<tatcell_shaper_t>() == TATCELL_SHAPER_ALIGN);
const _: () = assert!(size_of::<Handle>() <= TATCELL_SHAPER_SIZE);
const _: () = assert!(align_of::<Handle>() <= TATCELL_SHAPER_ALIGN);
const _: () = assert!(size_of::<tatcell_waiting_t>() == TATCELL_WAITING_SIZE);
const _: () = assert!(size_of::<tatcell_shaper_info_t>() == TATCELL_SHAPER_INFO_MIN);

// SAFETY: its mark comes first, and only `tatcell_shaper_init` writes that, with all of the rest.
unsafe impl Marked for Handle {
    const MARK: u64 = READY;
    const ERROR: i32 = TATCELL_ERR_HANDLE;
}
// SAFETY: numbers without padding (asserted).
unsafe impl Plain for tatcell_waiting_t {}
// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_shaper_info_t {
    const FIRST: usize = TATCELL_SHAPER_INFO_MIN;
}

impl From<Waiting> for tatcell_waiting_t {
    fn from(w: Waiting) -> tatcell_waiting_t {
        tatcell_waiting_t { handle: w.handle, departure: w.departure, level: w.level, reserved: 0 }
    }
}

impl From<&tatcell_waiting_t> for Waiting {
    fn from(w: &tatcell_waiting_t) -> Waiting {
        Waiting { handle: w.handle, departure: w.departure, level: w.level }
    }
}

/// Returns the code of a shaper's error.
pub(in crate::capi) fn shaper_code(e: ShaperError) -> i32 {
    match e {
        ShaperError::BadSlots | ShaperError::BadGranularity => TATCELL_ERR_WHEEL,
        ShaperError::TooSmall => TATCELL_ERR_TOO_SMALL,
        ShaperError::TooLarge => TATCELL_ERR_TOO_LARGE,
        ShaperError::Full => TATCELL_ERR_FULL,
        ShaperError::TooFar => TATCELL_ERR_TOO_FAR,
        ShaperError::Behind => TATCELL_ERR_BEHIND,
        ShaperError::Chain(e) => chain_code(e),
    }
}

impl<'a> Contract<'a> {
    /// Returns a shaper that only this call uses, and that lies apart from everything else that the call writes.
    pub(in crate::capi) fn shaper(
        self,
        p: *mut tatcell_shaper_t,
        written: Span,
    ) -> Result<&'a mut Shaper<'static>, i32> {
        let inner = inside::<_, Handle>(p).cast_mut();
        let memory = self.marked(inner.cast_const())?.memory;
        written.apart_from(&[memory, Span::of(p, 1)])?;
        Ok(&mut self.owned_marked(inner)?.shaper)
    }
}

/// Returns the bytes of memory for this many slots and handles, as TATCELL_SHAPER_BYTES does.
///
/// @param slots   a power of two from 64 to 4096.
/// @param handles most handles that can wait at once.
/// @return bytes; SIZE_MAX if the number does not fit a size_t.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_shaper_bytes(slots: u32, handles: u32) -> usize {
    wheel_words(slots as usize, handles as usize).saturating_mul(size_of::<u64>())
}

/// Makes an empty shaper.
///
/// Choose the granularity by how late a request may leave. Choose the slots such that (slots - 1) * granularity
/// exceeds the longest max_delay. The excess is the longest time for which you may fail to call
/// tatcell_shaper_release.
///
/// @param shaper      handle to initialise, outside the memory; not NULL.
/// @param memory      aligned to 8 bytes; not NULL. It belongs to the shaper from now on.
/// @param bytes       of memory; see tatcell_shaper_bytes and TATCELL_SHAPER_BYTES. The bytes next to the slots
///                    hold handles.
/// @param slots       a power of two from 64 to 4096.
/// @param granularity ticks of a slot, a power of two.
/// @param now         the caller's clock, ticks.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_WHEEL slots or granularity is no such power of two, or slots * granularity is 2^62 or more.
/// @retval TATCELL_ERR_TOO_SMALL the memory holds no handle; TATCELL_ERR_TOO_LARGE it holds 2^32 - 1 handles, or is
///         more than half of the address space.
/// @retval TATCELL_ERR_OVERLAP the handle lies in the memory. Nothing is changed on error.
/// Thread: one. Cost: writes 8 bytes for every 64 slots. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_shaper_init(
    shaper: *mut tatcell_shaper_t,
    memory: *mut c_void,
    bytes: usize,
    slots: u32,
    granularity: u64,
    now: u64,
) -> i32 {
    let all = Span::bytes(memory, bytes);
    args!(
        c,
        out = c.result(shaper),
        () = possible(memory.cast::<u64>(), bytes),
        () = Span::of(shaper, 1).apart(all),
        words = c.kept::<u64>(memory.cast(), bytes)
    );
    match Shaper::new(words, slots as usize, granularity, now) {
        Ok(shaper) => {
            out.put_inside(Handle { mark: READY, memory: all, shaper });
            TATCELL_PASS
        }
        Err(e) => shaper_code(e),
    }
}

/// Inserts a handle whose departure was decided elsewhere.
///
/// @param shaper  not NULL.
/// @param now     the caller's clock, ticks.
/// @param waiting handle, departure and level; not NULL.
/// @retval 0 it waits; a departure that has passed is due at once.
/// @retval TATCELL_ERR_FULL, TATCELL_ERR_BEHIND as tatcell_shaper_submit; TATCELL_ERR_TOO_FAR departure is beyond
///         the horizon.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument. Nothing is changed on error.
/// Thread: one at a time on a shaper. Cost: O(1), five or six words of the memory. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_shaper_insert(
    shaper: *mut tatcell_shaper_t,
    now: u64,
    waiting: *const tatcell_waiting_t,
) -> i32 {
    args!(c, shaper = c.shaper(shaper, Span::NOTHING), waiting = c.input(waiting));
    shaper.insert(now, waiting.into()).map_or_else(shaper_code, |()| TATCELL_PASS)
}

/// Removes the handles that are due, in order, up to `most` of them.
///
/// @param shaper not NULL.
/// @param now    the caller's clock, ticks.
/// @param due    gets the removed handles; outside the shaper and its memory; not NULL unless most is 0.
/// @param most   most handles to remove; other due handles stay for the next call.
/// @param count  gets the number of removed handles; not NULL. If it is less than most, nothing else is due.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// @retval TATCELL_ERR_OVERLAP due lies in the shaper or its memory. Nothing is changed on error.
/// Thread: one at a time on a shaper. Cost: O(1) for each removed handle, and once more. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_shaper_release(
    shaper: *mut tatcell_shaper_t,
    now: u64,
    due: *mut tatcell_waiting_t,
    most: u32,
    count: *mut u32,
) -> i32 {
    let most = most as usize;
    let bytes = most.saturating_mul(TATCELL_WAITING_SIZE);
    args!(
        c,
        counted = c.result(count),
        () = if most == 0 { Ok(()) } else { possible(due, bytes) },
        shaper = c.shaper(shaper, Span::bytes(due, bytes)),
        rows = if most == 0 { Ok(&mut [][..]) } else { c.buffer(due, bytes) }
    );
    let mut taken = 0;
    for row in rows {
        let Some(waiting) = shaper.release(now) else { break };
        *row = waiting.into();
        taken += 1;
    }
    counted.put(taken);
    TATCELL_PASS
}

/// Removes the first handle even if it is not due, for shutting down. Its charge stays.
///
/// @param shaper not NULL.
/// @param first  gets the handle; not NULL.
/// @retval 0 done.
/// @retval TATCELL_END nothing waits.
/// @retval TATCELL_ERR_OVERLAP the result lies in the shaper or its memory.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: one at a time on a shaper. Cost: O(1). Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_shaper_take(
    shaper: *mut tatcell_shaper_t,
    first: *mut tatcell_waiting_t,
) -> i32 {
    args!(c, out = c.result(first), shaper = c.shaper(shaper, Span::of(first, 1)));
    match shaper.take() {
        Some(waiting) => {
            out.put(waiting.into());
            TATCELL_PASS
        }
        None => TATCELL_END,
    }
}

/// Reports the departure of the next handle, for a timer. Nothing is due before it.
///
/// @param shaper    not NULL.
/// @param departure gets the tick; not NULL.
/// @retval 0 done.
/// @retval TATCELL_END nothing waits.
/// @retval TATCELL_ERR_OVERLAP the result lies in the shaper or its memory.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: one at a time on a shaper. Cost: O(1). Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_shaper_next(shaper: *mut tatcell_shaper_t, departure: *mut u64) -> i32 {
    args!(c, out = c.result(departure), shaper = c.shaper(shaper, Span::of(departure, 1)));
    match shaper.next_departure() {
        Some(departure) => {
            out.put(departure);
            TATCELL_PASS
        }
        None => TATCELL_END,
    }
}

/// Reports the numbers of a shaper.
///
/// @param shaper not NULL.
/// @param info   started from TATCELL_SHAPER_INFO_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_OVERLAP the result lies in the shaper or its memory.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_SIZE, TATCELL_ERR_HANDLE bad argument.
/// Thread: one at a time on a shaper. Cost: none. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_shaper_info(
    shaper: *mut tatcell_shaper_t,
    info: *mut tatcell_shaper_info_t,
) -> i32 {
    args!(c, out = c.report(info), shaper = c.shaper(shaper, c.reach(info)));
    let wheel = shaper.wheel();
    out.put(&tatcell_shaper_info_t {
        size: 0,
        reserved: 0,
        waiting: wheel.len() as u64,
        capacity: wheel.capacity() as u64,
        granularity: wheel.granularity(),
        horizon: wheel.horizon(),
    });
    TATCELL_PASS
}

/// Returns sizeof(tatcell_shaper_t) of the linked library, to compare with TATCELL_SHAPER_SIZE. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_shaper_size() -> usize {
    TATCELL_SHAPER_SIZE
}

//! `tatcell_leaky_queue_*`: one flow and its payloads, the leaky bucket as a queue.

use core::ffi::c_void;

use super::shaper::shaper_code;
use crate::answer::Outcome;
use crate::capi::codes::{TATCELL_END, TATCELL_ERR_FULL, TATCELL_ERR_HANDLE, TATCELL_PASS};
use crate::capi::decision::finish;
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::pointers::contract::{args, inside, possible, Contract, Marked, Out};
use crate::capi::pointers::places::Span;
use crate::combine::{ring_words, LeakyQueue, NotQueued, Ring};

/// Bytes of a tatcell_leaky_queue_t: of the handle, not of its memory (see tatcell_leaky_queue_bytes). This size
/// never changes.
pub const TATCELL_LEAKY_QUEUE_SIZE: usize = 256;
/// Alignment of a tatcell_leaky_queue_t, and of its memory.
pub const TATCELL_LEAKY_QUEUE_ALIGN: usize = 8;

/// Handle of a leaky bucket as a queue. It has one flow with its limit and its cell, and the handles of the flow's
/// payloads. They leave first in, first out, each from its departure on.
///
/// No background process empties it, because the departure is known at arrival. A max_delay of Q * T is a queue of
/// Q. A queue whose memory is full earlier refuses as well. With a burst of B, the first B payloads after idle do
/// not wait; the textbook's queue has B = 1. For many flows, use tatcell_shaper_t.
///
/// One owner uses a queue and its memory. The library refuses a zeroed handle, and a handle of another version of
/// the library, with TATCELL_ERR_HANDLE. Do not copy the handle.
#[repr(C, align(8))]
pub struct tatcell_leaky_queue_t {
    /// Private to the library.
    pub opaque: [u64; 32],
}

/// The contents of a tatcell_leaky_queue_t.
#[repr(C)]
struct Handle {
    /// `READY`.
    mark: u64,
    capacity: usize,
    queue: LeakyQueue<Ring<'static>>,
}

/// "tatcell", kind of object, version of `Handle`: raised whenever it, `LeakyQueue` or `Params` change.
const READY: u64 = 0x7461_7463_656c_7101;

const _: () = assert!(size_of::<tatcell_leaky_queue_t>() == TATCELL_LEAKY_QUEUE_SIZE);
const _: () = assert!(align_of::<tatcell_leaky_queue_t>() == TATCELL_LEAKY_QUEUE_ALIGN);
const _: () = assert!(size_of::<Handle>() <= TATCELL_LEAKY_QUEUE_SIZE);
const _: () = assert!(align_of::<Handle>() <= TATCELL_LEAKY_QUEUE_ALIGN);

// SAFETY: its mark comes first, and only `tatcell_leaky_queue_init` writes that, with all of the rest.
unsafe impl Marked for Handle {
    const MARK: u64 = READY;
    const ERROR: i32 = TATCELL_ERR_HANDLE;
}

impl<'a> Contract<'a> {
    /// Returns a queue that only this call uses.
    fn queue(self, p: *mut tatcell_leaky_queue_t) -> Result<&'a mut Handle, i32> {
        self.owned_marked(inside::<_, Handle>(p).cast_mut())
    }
}

/// Returns the bytes of memory for this many payloads, as TATCELL_LEAKY_QUEUE_BYTES does.
///
/// @param handles most payloads that can wait at once.
/// @return bytes; SIZE_MAX if the number does not fit a size_t.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_leaky_queue_bytes(handles: u32) -> usize {
    ring_words(handles as usize).saturating_mul(size_of::<u64>())
}

/// Makes an empty queue under a limit.
///
/// @param queue  handle to initialise, outside the memory; not NULL.
/// @param memory aligned to 8 bytes; not NULL. It belongs to the queue from now on.
/// @param bytes  of memory, 16 a payload; see tatcell_leaky_queue_bytes and TATCELL_LEAKY_QUEUE_BYTES.
/// @param limit  64-bit limit with a max_delay; not NULL. Copied.
/// @param now    the caller's clock, ticks.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_LIMIT limit is not initialised for 64-bit cells; TATCELL_ERR_ALGORITHM it is not of GCRA.
/// @retval TATCELL_ERR_TOO_SMALL the memory holds no payload; TATCELL_ERR_TOO_LARGE it is half of the address
///         space.
/// @retval TATCELL_ERR_OVERLAP handle, memory and limit overlap. Nothing is changed on error.
/// Thread: one. Cost: none. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_leaky_queue_init(
    queue: *mut tatcell_leaky_queue_t,
    memory: *mut c_void,
    bytes: usize,
    limit: *const tatcell_limit_t,
    now: u64,
) -> i32 {
    let all = Span::bytes(memory, bytes);
    args!(
        c,
        out = c.result(queue),
        () = possible(memory.cast::<u64>(), bytes),
        () = Span::of(queue, 1).apart(all),
        () = Span::of(limit, 1).apart_from(&[all, Span::of(queue, 1)]),
        limit = c.limit64(limit),
        words = c.kept::<u64>(memory.cast(), bytes)
    );
    let capacity = words.len() / ring_words(1);
    match LeakyQueue::new(*limit, Ring::new(words), now) {
        Ok(queue) => {
            out.put_inside(Handle { mark: READY, capacity, queue });
            TATCELL_PASS
        }
        Err(e) => shaper_code(e),
    }
}

/// Queues a payload. From its departure on, tatcell_leaky_queue_pop returns its handle.
///
/// @param queue       not NULL.
/// @param now         the caller's clock, ticks. A reading before that of an earlier push counts as the earlier
///                    one's.
/// @param cost        units, at most the burst.
/// @param handle      yours.
/// @param departure   if queued, gets the tick from which on the payload may leave; NULL = not wanted.
/// @param retry_after gets the ticks until the payload would be queued, 0 if it is; NULL = not wanted.
/// @retval 0 queued.
/// @retval TATCELL_NON_CONFORMING the payload would wait longer than max_delay; TATCELL_NEVER the cost is above the
///         burst. Nothing is charged.
/// @retval TATCELL_ERR_FULL the memory holds no more payloads. Nothing is charged.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: one at a time on a queue. Cost: O(1), a division. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_leaky_queue_push(
    queue: *mut tatcell_leaky_queue_t,
    now: u64,
    cost: u64,
    handle: u64,
    departure: *mut u64,
    retry_after: *mut u64,
) -> i32 {
    args!(c, departs = c.result_if(departure), retry = c.result_if(retry_after), own = c.queue(queue));
    match own.queue.push(now, cost, handle) {
        Ok(made) => {
            if let Some(out) = departs {
                out.put(made.departure);
            }
            finish(Outcome::Conforming, retry)
        }
        Err(NotQueued::Refused(_, why)) => finish(why, retry),
        Err(NotQueued::Full(_)) => TATCELL_ERR_FULL,
    }
}

/// Writes what was found, if anything.
fn put(found: Option<u64>, out: Out<'_, u64>) -> i32 {
    match found {
        Some(value) => {
            out.put(value);
            TATCELL_PASS
        }
        None => TATCELL_END,
    }
}

/// Removes the first payload if it is due.
///
/// @param queue  not NULL.
/// @param now    the caller's clock, ticks.
/// @param handle gets its handle; not NULL.
/// @retval 0 done.
/// @retval TATCELL_END nothing is due.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: one at a time on a queue. Cost: O(1). Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_leaky_queue_pop(
    queue: *mut tatcell_leaky_queue_t,
    now: u64,
    handle: *mut u64,
) -> i32 {
    args!(c, out = c.result(handle), own = c.queue(queue));
    put(own.queue.pop(now), out)
}

/// Removes the first payload even if it is not due, for shutting down. Its charge stays.
///
/// @param queue  not NULL.
/// @param handle gets its handle; not NULL.
/// @retval 0 done.
/// @retval TATCELL_END nothing waits.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: one at a time on a queue. Cost: O(1). Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_leaky_queue_take(
    queue: *mut tatcell_leaky_queue_t,
    handle: *mut u64,
) -> i32 {
    args!(c, out = c.result(handle), own = c.queue(queue));
    put(own.queue.take(), out)
}

/// Reports the departure of the first payload, for a timer.
///
/// @param queue     not NULL.
/// @param departure gets the tick; not NULL.
/// @retval 0 done.
/// @retval TATCELL_END nothing waits.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: one at a time on a queue. Cost: O(1). Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_leaky_queue_next(
    queue: *mut tatcell_leaky_queue_t,
    departure: *mut u64,
) -> i32 {
    args!(c, out = c.result(departure), own = c.queue(queue));
    put(own.queue.next_departure(), out)
}

/// Reports how many payloads wait, and how many can wait.
///
/// @param queue    not NULL.
/// @param waiting  gets the number that wait; NULL = not wanted.
/// @param capacity gets the number that the memory holds; NULL = not wanted.
/// @retval 0 done.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN, TATCELL_ERR_HANDLE bad argument.
/// Thread: one at a time on a queue. Cost: none. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_leaky_queue_count(
    queue: *mut tatcell_leaky_queue_t,
    waiting: *mut usize,
    capacity: *mut usize,
) -> i32 {
    args!(c, waits = c.result_if(waiting), room = c.result_if(capacity), own = c.queue(queue));
    let (count, capacity) = (own.queue.len(), own.capacity);
    if let Some(out) = waits {
        out.put(count);
    }
    if let Some(out) = room {
        out.put(capacity);
    }
    TATCELL_PASS
}

/// Returns sizeof(tatcell_leaky_queue_t) of the linked library, to compare with TATCELL_LEAKY_QUEUE_SIZE. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_leaky_queue_size() -> usize {
    TATCELL_LEAKY_QUEUE_SIZE
}

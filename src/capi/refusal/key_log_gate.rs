//! `tatcell_key_log_*`: a log gate that knows whose lines it counts.

use crate::capi::codes::{TATCELL_CONTENDED, TATCELL_NON_CONFORMING, TATCELL_PASS};
use crate::capi::pointers::contract::{args, inside, Out, Plain};
use crate::cell::{KeyLogGate, LeftOut};

/// Bytes of a tatcell_key_log_t.
pub const TATCELL_KEY_LOG_SIZE: usize = 8;
/// Alignment of a tatcell_key_log_t.
pub const TATCELL_KEY_LOG_ALIGN: usize = 8;
/// The largest count of lines left out of a tatcell_key_log_t. It means this many or more.
pub const TATCELL_KEY_LOG_MOST: u32 = 33554432;

/// A log gate like tatcell_log_t that also knows the key of the lines that it counts. All-zero memory (static storage,
/// TATCELL_KEY_LOG_INIT) is a fresh gate, which lets the first line be written.
///
/// Make an array of gates and choose one by a hash of the key. A gate keeps a tag of 14 bits of the hash, not the key:
/// keep the name of the last key next to each gate, or compare the tags of the keys that you know. Two keys have equal
/// tags with a probability of 2^-14, whatever chose their gate. One gate has one interval.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct tatcell_key_log_t {
    /// The time of the next line, a tag, and the number of lines left out. 0 = fresh.
    pub word: u64,
}

const _: () = assert!(size_of::<tatcell_key_log_t>() == TATCELL_KEY_LOG_SIZE);
const _: () = assert!(align_of::<tatcell_key_log_t>() == TATCELL_KEY_LOG_ALIGN);
const _: () = assert!(size_of::<KeyLogGate>() == TATCELL_KEY_LOG_SIZE);
const _: () = assert!(align_of::<KeyLogGate>() <= TATCELL_KEY_LOG_ALIGN);
const _: () = assert!(TATCELL_KEY_LOG_MOST == KeyLogGate::MOST_LEFT_OUT);

// SAFETY: an atomic number.
unsafe impl Plain for KeyLogGate {}

fn put(told: LeftOut, left_out: Option<Out<'_, u32>>, tag: Option<Out<'_, u32>>) {
    for (place, value) in [(left_out, told.count), (tag, told.tag)] {
        if let Some(place) = place {
            place.put(value);
        }
    }
}

/// Decides whether to write one log line about a key, or to count it and leave it out.
///
///     static tatcell_key_log_t gates[256];
///     uint32_t more, tag;
///     if (tatcell_key_log_line(&gates[hash & 255], now, hash, 1000000000, &more, &tag) == TATCELL_PASS) {
///         const char *whose = tag == tatcell_key_log_tag(hash) ? "of it" : tag ? "of another" : "of several";
///         if (more) fprintf(stderr, "%s refused, and %u lines %s were not logged\n", address, more, whose);
///         else fprintf(stderr, "%s refused\n", address);
///     }
///
/// Lines are written as often as by tatcell_log_line, and each is written or counted exactly once. A gate that was
/// unused for 2^13 intervals or more may, with a probability of 2^-12, leave out lines for two more intervals.
///
/// A tag stands for all lines of the count; a gate that only one key uses always has the tag of this key. While another
/// thread is inside a call, that thread's one line may be reported under the tag of the others.
///
/// @param log      not NULL.
/// @param now      the caller's clock, ticks.
/// @param hash     the hash of the key, from tatcell_table_hash or the caller's own.
/// @param interval ticks from one written line to the next; 0 writes every line. The same in all calls.
/// @param left_out gets the number of lines left out since the last written one; 0 if this line is left out, too.
///                 TATCELL_KEY_LOG_MOST means this many or more. NULL = not wanted; the count of a written line is
///                 then lost.
/// @param tag      gets the tag of the key of these lines (tatcell_key_log_tag); 0 if they are of several keys, or if
///                 there are none. NULL = not wanted.
/// @retval 0 write the line.
/// @retval TATCELL_NON_CONFORMING do not write it: it is counted.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any number on one gate. Cost: a load and an atomic addition if the line is left out; one compare-and-swap if
/// it is written, or if its key is another one than that of the lines before it. Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_key_log_line(
    log: *mut tatcell_key_log_t,
    now: u64,
    hash: u64,
    interval: u64,
    left_out: *mut u32,
    tag: *mut u32,
) -> i32 {
    args!(
        c,
        log = c.input::<KeyLogGate>(inside(log)),
        left_out = c.result_if(left_out),
        tag = c.result_if(tag)
    );
    let line = log.line(now, interval, hash);
    put(line.unwrap_or_default(), left_out, tag);
    match line {
        Some(_) => TATCELL_PASS,
        None => TATCELL_NON_CONFORMING,
    }
}

/// Takes the count of lines left out, for a summary line from a timer or at the end of the program. It does not change
/// when the next line may be written.
///
/// @param log      not NULL.
/// @param left_out gets the number of lines left out and not reported before; TATCELL_KEY_LOG_MOST means this many or
///                 more. Not NULL.
/// @param tag      gets the tag of their key; 0 if they are of several keys, or if there are none. NULL = not wanted.
/// @retval 0 taken; also if the count was 0.
/// @retval TATCELL_CONTENDED nothing was taken and left_out is 0; ask again.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any number on one gate. Cost: one compare-and-swap, or one load if the count is 0. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_key_log_take(
    log: *mut tatcell_key_log_t,
    left_out: *mut u32,
    tag: *mut u32,
) -> i32 {
    args!(c, log = c.input::<KeyLogGate>(inside(log)), left_out = c.result(left_out), tag = c.result_if(tag));
    let taken = log.take();
    put(taken.unwrap_or_default(), Some(left_out), tag);
    match taken {
        Some(_) => TATCELL_PASS,
        None => TATCELL_CONTENDED,
    }
}

/// Returns the tag by which a tatcell_key_log_t knows a key.
///
/// @param hash the hash of the key.
/// @return 1 to 16383.
/// Thread: any. Cost: none. Since 0.4.
#[no_mangle]
pub extern "C" fn tatcell_key_log_tag(hash: u64) -> u32 {
    KeyLogGate::tag(hash)
}

/// Returns sizeof(tatcell_key_log_t) of the linked library, to compare with TATCELL_KEY_LOG_SIZE.
///
/// @return bytes.
/// Thread: any. Cost: none. Since 0.4.
#[no_mangle]
pub extern "C" fn tatcell_key_log_size() -> usize {
    TATCELL_KEY_LOG_SIZE
}

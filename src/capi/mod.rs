//! The C ABI: checks pointers, forms references, calls Rust. No logic lives here and nothing imports it.
//!
//! Every function is listed in `include/tatcell.map`; a test compares that list with the archive.
#![allow(non_camel_case_types)]
#![allow(dead_code)] // the constants are the C contract; Rust uses only some
#![allow(clippy::missing_safety_doc)] // the C contract is in each doc comment, for both languages

/// Evaluates checked arguments in order; the first error is what the C function returns, before anything changed.
macro_rules! args {
    ($($arg:expr),+ $(,)?) => {
        ($(match $arg {
            Ok(value) => value,
            Err(error) => return error,
        }),+)
    };
}

mod cell;
mod cell32;
#[cfg(all(feature = "host", not(tatcell_loom)))]
mod host;
mod lease;
mod limit;
mod table;
mod table_burst;
mod table_ops;

use core::ffi::c_char;

use crate::answer::{Decision, Outcome, Permit, Reservation};
use crate::limit::LimitError;
use crate::table::TableError;

/// Passes: conforming, or let through by a soft threshold or shadow mode (see the flags of a decision).
pub const TATCELL_PASS: i32 = 0;
/// Does not pass now; the retry time tells when it would.
pub const TATCELL_NON_CONFORMING: i32 = 1;
/// Can never pass: the cost is greater than the burst.
pub const TATCELL_NEVER: i32 = 2;
/// No verdict: other threads won every attempt. Nothing was charged; ask again or decide yourself.
pub const TATCELL_CONTENDED: i32 = 3;

/// An iteration is over: no more live slots.
pub const TATCELL_END: i32 = 4;

/// A required pointer is NULL.
pub const TATCELL_ERR_NULL: i32 = -1;
/// A pointer is not aligned for its type (table memory: TATCELL_TABLE_MEMORY_ALIGN).
pub const TATCELL_ERR_ALIGN: i32 = -2;
/// A structure's size field is 0 or too small: start from its _INIT macro.
pub const TATCELL_ERR_SIZE: i32 = -3;
/// The rate is 0.
pub const TATCELL_ERR_RATE: i32 = -4;
/// The period is 0.
pub const TATCELL_ERR_PERIOD: i32 = -5;
/// The burst is 0.
pub const TATCELL_ERR_BURST: i32 = -6;
/// Rate or burst cannot be represented at this resolution.
pub const TATCELL_ERR_REPRESENT: i32 = -7;
/// Burst and allowances together are too long for the word.
pub const TATCELL_ERR_HORIZON: i32 = -8;
/// The limit was not initialised, or for another kind of word.
pub const TATCELL_ERR_LIMIT: i32 = -9;
/// The limit was made for another table.
pub const TATCELL_ERR_FOREIGN: i32 = -10;
/// An option is out of range or unknown, or options contradict each other.
pub const TATCELL_ERR_OPTION: i32 = -11;
/// A keyed hash needs 16 secret bytes.
pub const TATCELL_ERR_SEED: i32 = -12;
/// The memory is too small, or too large, for a table or an image.
pub const TATCELL_ERR_MEMORY: i32 = -13;
/// Fastest and slowest limit do not fit one slot word: use fewer tag bits.
pub const TATCELL_ERR_SPAN: i32 = -14;
/// The table handle was not initialised.
pub const TATCELL_ERR_HANDLE: i32 = -15;
/// The memory holds no table image, or none yet.
pub const TATCELL_ERR_NOT_READY: i32 = -16;
/// The image has another layout version.
pub const TATCELL_ERR_VERSION: i32 = -17;
/// The image's geometry is not valid or does not match its size.
pub const TATCELL_ERR_GEOMETRY: i32 = -18;
/// The image was made with another seed.
pub const TATCELL_ERR_WRONG_SEED: i32 = -19;
/// The image is exclusive and the call wants a shared one, or the other way round.
pub const TATCELL_ERR_MODE: i32 = -20;
/// The caller hashes for this table (TATCELL_HASH_CALLER) and the call brought a key.
pub const TATCELL_ERR_HASH: i32 = -21;
/// More than 64 keys in a burst.
pub const TATCELL_ERR_COUNT: i32 = -22;
/// The soft threshold is above the burst.
pub const TATCELL_ERR_SOFT: i32 = -23;

/// This processor cannot compute the hash that was asked for, or that the image uses.
pub const TATCELL_ERR_HASH_UNAVAILABLE: i32 = -24;
/// A system call failed; the errno is in system_error.
pub const TATCELL_ERR_SYSTEM: i32 = -25;
/// This system or processor does not have it.
pub const TATCELL_ERR_UNSUPPORTED: i32 = -26;
/// A name is neither "/name" nor an absolute path, or it is too long.
pub const TATCELL_ERR_NAME: i32 = -27;
/// Something with this name exists already.
pub const TATCELL_ERR_EXISTS: i32 = -28;
/// Nothing with this name exists.
pub const TATCELL_ERR_ABSENT: i32 = -29;

/// Version of the library: major * 10000 + minor * 100 + patch.
pub const TATCELL_VERSION: u32 = 100;
/// Version of the C ABI; changes only when a program must be rebuilt.
pub const TATCELL_ABI_VERSION: u32 = 0;
/// Version of the table image.
pub const TATCELL_LAYOUT_VERSION: u32 = 1;
const _: () = assert!(TATCELL_LAYOUT_VERSION == crate::table::LAYOUT_VERSION as u32);

/// Gives the version of the linked library, to compare with TATCELL_VERSION.
///
/// @return major * 10000 + minor * 100 + patch.
/// Thread: any. Cost: none. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_version() -> u32 {
    TATCELL_VERSION
}

/// Gives the ABI version of the linked library, to compare with TATCELL_ABI_VERSION.
///
/// @return the ABI version.
/// Thread: any. Cost: none. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_abi_version() -> u32 {
    TATCELL_ABI_VERSION
}

/// Describes a result or error code.
///
/// @param code any value that a function of this library returned.
/// @return static text, never NULL; "unknown code" for others.
/// Thread: any. Cost: none. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_strerror(code: i32) -> *const c_char {
    let text = match code {
        TATCELL_PASS => c"passes",
        TATCELL_NON_CONFORMING => c"does not conform now",
        TATCELL_NEVER => c"cost is greater than the burst: can never conform",
        TATCELL_CONTENDED => c"contended: nothing charged, no verdict",
        TATCELL_END => c"no more live slots",
        TATCELL_ERR_NULL => c"a required pointer is NULL",
        TATCELL_ERR_ALIGN => c"a pointer is not aligned for its type",
        TATCELL_ERR_SIZE => c"a structure's size field is not set, or too small",
        TATCELL_ERR_RATE => c"rate is zero",
        TATCELL_ERR_PERIOD => c"period is zero",
        TATCELL_ERR_BURST => c"burst is zero",
        TATCELL_ERR_REPRESENT => c"rate or burst cannot be represented at this resolution",
        TATCELL_ERR_HORIZON => c"burst and allowances are too long for the word",
        TATCELL_ERR_LIMIT => c"limit is not initialised, or for another kind of word",
        TATCELL_ERR_FOREIGN => c"limit was made for another table",
        TATCELL_ERR_OPTION => c"an option is unknown or out of range",
        TATCELL_ERR_SEED => c"a keyed hash needs 16 secret bytes",
        TATCELL_ERR_MEMORY => c"memory is too small or too large",
        TATCELL_ERR_SPAN => c"fastest and slowest limit do not fit one word: use fewer tag bits",
        TATCELL_ERR_HANDLE => c"table handle is not initialised",
        TATCELL_ERR_NOT_READY => c"memory holds no initialised table",
        TATCELL_ERR_VERSION => c"image has another layout version",
        TATCELL_ERR_GEOMETRY => c"image geometry is not valid",
        TATCELL_ERR_WRONG_SEED => c"image was made with another seed",
        TATCELL_ERR_MODE => c"image is exclusive, or shared, and the other form was asked for",
        TATCELL_ERR_HASH => c"the caller hashes for this table, and the call brought a key",
        TATCELL_ERR_HASH_UNAVAILABLE => c"this processor cannot compute the table's hash",
        TATCELL_ERR_COUNT => c"more than 64 keys",
        TATCELL_ERR_SOFT => c"soft threshold is above the burst",
        TATCELL_ERR_SYSTEM => c"a system call failed",
        TATCELL_ERR_UNSUPPORTED => c"not available on this system or processor",
        TATCELL_ERR_NAME => c"name is neither /name nor an absolute path, or too long",
        TATCELL_ERR_EXISTS => c"the name exists already",
        TATCELL_ERR_ABSENT => c"the name does not exist",
        _ => c"unknown code",
    };
    text.as_ptr()
}

/// The code of a limit error.
const fn limit_code(e: LimitError) -> i32 {
    match e {
        LimitError::ZeroRate => TATCELL_ERR_RATE,
        LimitError::ZeroPeriod => TATCELL_ERR_PERIOD,
        LimitError::ZeroBurst => TATCELL_ERR_BURST,
        LimitError::NotRepresentable => TATCELL_ERR_REPRESENT,
        LimitError::HorizonTooLong => TATCELL_ERR_HORIZON,
        LimitError::BadSoft => TATCELL_ERR_SOFT,
        LimitError::BadResolution | LimitError::BadHeal | LimitError::NotSmall => TATCELL_ERR_OPTION,
    }
}

/// The code of a table error.
const fn table_code(e: TableError) -> i32 {
    match e {
        TableError::Limit(e) => limit_code(e),
        TableError::TooSmall | TableError::TooLarge | TableError::BufferTooSmall => TATCELL_ERR_MEMORY,
        TableError::SpanTooShort => TATCELL_ERR_SPAN,
        TableError::BadTagBits | TableError::BadLifetime | TableError::NotSmall => TATCELL_ERR_OPTION,
        TableError::MissingSeed => TATCELL_ERR_SEED,
        TableError::BadHashKind => TATCELL_ERR_HASH,
        TableError::HashUnavailable => TATCELL_ERR_HASH_UNAVAILABLE,
        TableError::ForeignLimit => TATCELL_ERR_FOREIGN,
        TableError::BadCount => TATCELL_ERR_COUNT,
        TableError::NotReady => TATCELL_ERR_NOT_READY,
        TableError::BadVersion => TATCELL_ERR_VERSION,
        TableError::BadGeometry => TATCELL_ERR_GEOMETRY,
        TableError::WrongSeed => TATCELL_ERR_WRONG_SEED,
        TableError::BadMode => TATCELL_ERR_MODE,
    }
}

/// Ends a function: a pass code, or the error.
fn code(result: Result<i32, i32>) -> i32 {
    match result {
        Ok(code) | Err(code) => code,
    }
}

/// A reference from a C pointer.
///
/// # Safety
/// If not NULL and aligned, `p` must be valid for reads of T for the call.
unsafe fn input<'a, T>(p: *const T) -> Result<&'a T, i32> {
    if p.is_null() {
        Err(TATCELL_ERR_NULL)
    } else if !p.is_aligned() {
        Err(TATCELL_ERR_ALIGN)
    } else {
        // SAFETY: checked here what can be checked; the rest is the caller's contract.
        Ok(unsafe { &*p })
    }
}

/// A place for one result; NULL is allowed and means "not wanted".
///
/// # Safety
/// If not NULL, `p` must be valid for writes of T for the call.
unsafe fn output<'a, T>(p: *mut T) -> Result<Option<&'a mut T>, i32> {
    if p.is_null() {
        Ok(None)
    } else if !p.is_aligned() {
        Err(TATCELL_ERR_ALIGN)
    } else {
        // SAFETY: as above.
        Ok(Some(unsafe { &mut *p }))
    }
}

/// A place for one result that must be there.
///
/// # Safety
/// As [`output`].
unsafe fn result<'a, T>(p: *mut T) -> Result<&'a mut T, i32> {
    // SAFETY: passed on.
    unsafe { output(p) }?.ok_or(TATCELL_ERR_NULL)
}

/// A decision to fill in: its size says how much the caller has room for.
///
/// # Safety
/// As [`output`].
unsafe fn decision<'a>(p: *mut Decision) -> Result<&'a mut Decision, i32> {
    // SAFETY: passed on.
    let d = unsafe { result(p) }?;
    if (d.size as usize) < core::mem::size_of::<Decision>() {
        return Err(TATCELL_ERR_SIZE);
    }
    Ok(d)
}

/// Fills a decision in and gives its verdict. The size stays the caller's: fields that a newer header has beyond this
/// library's stay as they were.
fn fill(out: &mut Decision, made: Decision) -> i32 {
    *out = Decision { size: out.size, ..made };
    made.verdict
}

/// Writes the retry time and gives the code of an outcome.
///
/// One question a match: the four cases together would become an indirect jump in every function that ends here.
#[inline(always)]
fn finish(outcome: Outcome, retry_after: Option<&mut u64>) -> i32 {
    let (code, ticks) = match outcome {
        Outcome::Conforming => (TATCELL_PASS, 0),
        Outcome::NonConforming { retry_after } => (TATCELL_NON_CONFORMING, retry_after),
        other => rare(other),
    };
    if let Some(out) = retry_after {
        *out = ticks;
    }
    code
}

#[cold]
fn rare(outcome: Outcome) -> (i32, u64) {
    match outcome {
        Outcome::Never => (TATCELL_NEVER, u64::MAX),
        _ => (TATCELL_CONTENDED, 0),
    }
}

/// Writes departure and permit and gives the code of a reservation; when refused, `departure` gets the retry time.
fn finish_reservation(r: Reservation, departure: &mut u64, permit: Option<&mut Permit>) -> i32 {
    let (code, ticks, charged) = match r {
        Reservation::Reserved { departure, permit } => (TATCELL_PASS, departure, permit),
        Reservation::TooLong { retry_after } => (TATCELL_NON_CONFORMING, retry_after, Permit::NONE),
        Reservation::Never => (TATCELL_NEVER, u64::MAX, Permit::NONE),
        Reservation::Contended => (TATCELL_CONTENDED, 0, Permit::NONE),
    };
    *departure = ticks;
    if let Some(out) = permit {
        *out = charged;
    }
    code
}

/// A library without std needs a panic handler to link, though nothing here can panic: a test asserts that this
/// one is not in the archive.
#[cfg(not(feature = "std"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

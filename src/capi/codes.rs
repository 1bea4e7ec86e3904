//! Result and error codes: a number means one thing, for ever.

use core::ffi::c_char;

use crate::answer::Verdict;
use crate::cell::ImageError;
use crate::limit::{LimitError, MeterError};
use crate::table::TableError;

/// The request passes. It conforms, or a soft threshold or shadow mode lets it pass (see the flags of a decision).
pub const TATCELL_PASS: i32 = 0;
/// The request does not pass now; retry_after is the time until it would.
pub const TATCELL_NON_CONFORMING: i32 = 1;
/// The request can never pass: its cost is greater than the burst.
pub const TATCELL_NEVER: i32 = 2;
/// There is no verdict, because other threads won every attempt. Nothing was charged; ask again, or decide
/// yourself.
pub const TATCELL_CONTENDED: i32 = 3;
/// There is nothing more: an iteration is over, or nothing waits or is due.
pub const TATCELL_END: i32 = 4;

/// A required pointer is NULL.
pub const TATCELL_ERR_NULL: i32 = -1;
/// A pointer is not aligned for its type (table memory: TATCELL_TABLE_MEMORY_ALIGN).
pub const TATCELL_ERR_ALIGN: i32 = -2;
/// The size field of a structure has a value that no header gives it: start from its _INIT macro.
pub const TATCELL_ERR_SIZE: i32 = -3;
/// The rate is 0.
pub const TATCELL_ERR_RATE: i32 = -4;
/// The period is 0.
pub const TATCELL_ERR_PERIOD: i32 = -5;
/// The burst is 0.
pub const TATCELL_ERR_BURST: i32 = -6;
/// Rate or burst cannot be represented at this resolution.
pub const TATCELL_ERR_REPRESENT: i32 = -7;
/// The burst and the allowances together are too long for the word.
pub const TATCELL_ERR_HORIZON: i32 = -8;
/// The limit was not initialised by this version of the library, or it is for another kind of word.
pub const TATCELL_ERR_LIMIT: i32 = -9;
/// The limit was made for a table with another resolution, horizon, skew or claim lifetime.
pub const TATCELL_ERR_FOREIGN: i32 = -10;
/// An option is out of range or unknown, or options contradict each other.
pub const TATCELL_ERR_OPTION: i32 = -11;
/// A keyed hash needs 16 secret bytes.
pub const TATCELL_ERR_SEED: i32 = -12;
// -13 was TATCELL_ERR_MEMORY of ABI 0, which meant all of -30 to -34 and -36.
/// The fastest and the slowest limit do not fit one slot word: use fewer tag bits.
pub const TATCELL_ERR_SPAN: i32 = -14;
/// The handle of a table, a sliding log, a shaper or a queue was not initialised by this version of the library.
pub const TATCELL_ERR_HANDLE: i32 = -15;
/// The memory holds no table image yet, because its creator is not done: ask again.
pub const TATCELL_ERR_NOT_READY: i32 = -16;
/// The image has another layout version, or a feature or algorithm that this library does not know.
pub const TATCELL_ERR_VERSION: i32 = -17;
/// The image's geometry is not valid or does not match its size.
pub const TATCELL_ERR_GEOMETRY: i32 = -18;
/// The image was made with another seed.
pub const TATCELL_ERR_WRONG_SEED: i32 = -19;
/// The image is exclusive or shared, or has a policy or clock frequency, contrary to the options; or memory that
/// should be zero is not.
pub const TATCELL_ERR_MODE: i32 = -20;
/// The caller hashes for this table (TATCELL_HASH_CALLER), but the call has a key.
pub const TATCELL_ERR_HASH: i32 = -21;
/// A burst has more than 64 keys.
pub const TATCELL_ERR_COUNT: i32 = -22;
/// The soft threshold is above the burst.
pub const TATCELL_ERR_SOFT: i32 = -23;
/// This processor cannot compute the hash of the options or of the image.
pub const TATCELL_ERR_HASH_UNAVAILABLE: i32 = -24;
/// A system call failed; the errno is in system_error.
pub const TATCELL_ERR_SYSTEM: i32 = -25;
/// This system or processor does not support the function.
pub const TATCELL_ERR_UNSUPPORTED: i32 = -26;
/// A name is neither "/name" nor an absolute path to a file, or it is too long.
pub const TATCELL_ERR_NAME: i32 = -27;
/// Something with this name exists already.
pub const TATCELL_ERR_EXISTS: i32 = -28;
/// Nothing with this name exists.
pub const TATCELL_ERR_ABSENT: i32 = -29;
/// A length is too small: memory of a table below two header lines and one set (256 bytes), an image below its
/// header, or 0 where bytes are needed.
pub const TATCELL_ERR_TOO_SMALL: i32 = -30;
/// A length exceeds half of the address space, the largest table, or the most that the function accepts.
pub const TATCELL_ERR_TOO_LARGE: i32 = -31;
/// Two objects of one call overlap, and the call writes one of them.
pub const TATCELL_ERR_OVERLAP: i32 = -32;
/// A key is longer than half of the address space.
pub const TATCELL_ERR_KEY_LENGTH: i32 = -33;
/// The buffer is too small for the image.
pub const TATCELL_ERR_BUFFER: i32 = -34;
/// The limit is faster, or has a longer horizon, than the table's options provide for.
pub const TATCELL_ERR_TOO_FAST: i32 = -35;
/// The length of the memory differs from that of the image, or from the expected one.
pub const TATCELL_ERR_WRONG_SIZE: i32 = -36;
/// The folder of a file to be created does not exist, or is not a folder.
pub const TATCELL_ERR_FOLDER: i32 = -37;
/// The limit's algorithm does not support this option or operation, or this kind of word or this table does not
/// support the algorithm.
pub const TATCELL_ERR_ALGORITHM: i32 = -38;
/// The phase of aligned windows is not below the length of a window.
pub const TATCELL_ERR_PHASE: i32 = -39;
/// The limit counts more units than the bits next to the time in the word can hold: count in larger units, or use
/// fewer tag bits.
pub const TATCELL_ERR_UNITS: i32 = -40;
/// A new key cannot inherit a count, and an override cannot be dropped: use TATCELL_FULL_DENY.
pub const TATCELL_ERR_INHERIT: i32 = -41;
/// An override does not end after now, or it ends further ahead than the table's options provide for.
pub const TATCELL_ERR_UNTIL: i32 = -42;
/// The set of the key is full, in a table of overrides: this override is not stored.
pub const TATCELL_ERR_FULL_SET: i32 = -43;
/// The override of another key occupies the place of this one, by chance. Neither is changed.
pub const TATCELL_ERR_CLASH: i32 = -44;
/// A prefix is longer than the address, or a network is no IPv4 network although its address is IPv4
/// (tatcell_address_network).
pub const TATCELL_ERR_PREFIX: i32 = -45;
/// A change would lose the window: the windows of the two limits differ in length. Nothing is changed.
pub const TATCELL_ERR_KEEP_WINDOW: i32 = -46;
/// A change would lose units: the key has counted more than the new limit's word holds. Nothing is changed. Make the
/// new limit with a larger max_debt: its word must hold those units too.
pub const TATCELL_ERR_KEEP_COUNT: i32 = -47;
/// The words are not the image of a cell, or some of them have changed since the save.
pub const TATCELL_ERR_IMAGE: i32 = -48;
/// A cell was saved under another limit. Restore it under that one, then change it to the new one.
pub const TATCELL_ERR_OTHER_LIMIT: i32 = -49;
/// The peak rate of a meter or a mark is below its committed rate.
pub const TATCELL_ERR_PEAK: i32 = -50;
/// The word of a meter cannot have the span of the specification: ask for a shorter span, or use smaller bursts.
pub const TATCELL_ERR_SHORT_SPAN: i32 = -51;
/// The name or unit of a policy has a byte that a structured-field string cannot have.
pub const TATCELL_ERR_HTTP_NAME: i32 = -55;
/// A clock has 0 ticks a second.
pub const TATCELL_ERR_FREQUENCY: i32 = -56;
/// A response has more than 8 policies.
pub const TATCELL_ERR_POLICIES: i32 = -57;
/// A text is not a limit such as "10/s burst 20".
pub const TATCELL_ERR_SYNTAX: i32 = -58;
/// A chain has no link, or more than 8.
pub const TATCELL_ERR_LINKS: i32 = -60;
/// One cell or key has two limits in a chain, which would share one debt.
pub const TATCELL_ERR_TWO_LIMITS: i32 = -61;
/// The costs of one cell or key together exceed 64 bits.
pub const TATCELL_ERR_COST: i32 = -62;
/// A family of a ladder has more than 8 rungs, a prefix is longer than an address, lengths do not fall, or a
/// multiplier falls or is 0.
pub const TATCELL_ERR_LADDER: i32 = -63;
/// An address has neither 4 nor 16 bytes.
pub const TATCELL_ERR_ADDRESS: i32 = -64;
/// A shaper or a queue holds as many handles as its memory allows.
pub const TATCELL_ERR_FULL: i32 = -65;
/// A shaper holds handles that are long due, and its slots do not reach from there to the new departure.
pub const TATCELL_ERR_BEHIND: i32 = -66;
/// The number of slots is not a power of two from 64 to 4096, or the ticks of a slot are not a power of two, or are
/// too many.
pub const TATCELL_ERR_WHEEL: i32 = -67;
/// A departure may lie beyond the horizon of a shaper; for a limit, its max_delay does.
pub const TATCELL_ERR_TOO_FAR: i32 = -68;
/// A call that returns only the verdict decides plain links alone: see tatcell_chain_verdict.
pub const TATCELL_ERR_NOT_PLAIN: i32 = -69;

/// Version of the library: major * 10000 + minor * 100 + patch.
pub const TATCELL_VERSION: u32 = 400;
/// Version of the C ABI; changes only when a program must be rebuilt.
// The only place: build.rs, the makefiles and the export list read this line.
pub const TATCELL_ABI_VERSION: u32 = 1;
/// Version of the table image.
pub const TATCELL_LAYOUT_VERSION: u32 = 2;

const _: () = assert!(TATCELL_LAYOUT_VERSION == crate::table::LAYOUT_VERSION as u32);
const _: () = assert!(TATCELL_VERSION == number(env!("CARGO_PKG_VERSION")));

/// Converts "1.2.3" to 10203; numbers have two digits. The name of a pre-release, behind a hyphen, does not count.
const fn number(text: &str) -> u32 {
    let (mut all, mut part, mut rest) = (0u32, 0u32, text.as_bytes());
    while let [byte, more @ ..] = rest {
        rest = more;
        match byte {
            b'-' => break,
            b'.' => (all, part) = (all.wrapping_add(part).wrapping_mul(100), 0),
            _ => part = part.wrapping_mul(10).wrapping_add(byte.wrapping_sub(b'0') as u32),
        }
    }
    all.wrapping_add(part)
}

/// Returns the version of the linked library, to compare with TATCELL_VERSION.
///
/// @return major * 10000 + minor * 100 + patch.
/// Thread: any. Cost: none. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_version() -> u32 {
    TATCELL_VERSION
}

/// Returns the ABI version of the linked library, to compare with TATCELL_ABI_VERSION.
///
/// @return the ABI version.
/// Thread: any. Cost: none. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_abi_version() -> u32 {
    TATCELL_ABI_VERSION
}

/// Names and describes the codes, each once.
macro_rules! describe {
    ($($code:ident $text:literal)+) => {
        const fn text_of(code: i32) -> Option<&'static str> {
            match code {
                $($code => Some(concat!($text, "\0")),)+
                _ => None,
            }
        }

        const fn name_of(code: i32) -> Option<&'static str> {
            match code {
                $($code => Some(concat!(stringify!($code), "\0")),)+
                _ => None,
            }
        }
    };
}

describe! {
    TATCELL_PASS "passes"
    TATCELL_NON_CONFORMING "does not conform now"
    TATCELL_NEVER "cost is greater than the burst: can never conform"
    TATCELL_CONTENDED "contended: nothing charged, no verdict"
    TATCELL_END "nothing more"
    TATCELL_ERR_NULL "a required pointer is NULL"
    TATCELL_ERR_ALIGN "a pointer is not aligned for its type"
    TATCELL_ERR_SIZE "the size field of a structure is not set: start from its _INIT macro"
    TATCELL_ERR_RATE "the rate is 0: give at least 1 unit a period"
    TATCELL_ERR_PERIOD "the period is 0: give at least 1 tick"
    TATCELL_ERR_BURST "the burst is 0: give at least 1 unit"
    TATCELL_ERR_REPRESENT "the rate is too fast or the burst too large: use larger units or another resolution"
    TATCELL_ERR_HORIZON "burst and allowances are too long for the word: lower them, or use slower ticks"
    TATCELL_ERR_LIMIT "the limit is not initialised, or for another kind of word"
    TATCELL_ERR_FOREIGN "the limit was made for another table: use tatcell_limit_init_table"
    TATCELL_ERR_OPTION "an option is unknown or out of range, or contradicts another"
    TATCELL_ERR_SEED "a keyed hash needs 16 secret bytes: use tatcell_host_random"
    TATCELL_ERR_SPAN "fastest and slowest limit do not fit one word: tatcell_table_options_fit says what does"
    TATCELL_ERR_HANDLE "the handle is not initialised by this version of the library"
    TATCELL_ERR_NOT_READY "the memory holds no table yet: ask again"
    TATCELL_ERR_VERSION "the image has a layout version or feature that this library does not know"
    TATCELL_ERR_GEOMETRY "the image's geometry is not valid"
    TATCELL_ERR_WRONG_SEED "the image was made with another seed: give that one"
    TATCELL_ERR_MODE "the image has another mode, policy or clock, or the memory is not zero"
    TATCELL_ERR_HASH "the caller hashes for this table: pass a hash, not a key"
    TATCELL_ERR_COUNT "a burst has more than 64 keys: split it"
    TATCELL_ERR_SOFT "the soft threshold is above the burst: lower it"
    TATCELL_ERR_HASH_UNAVAILABLE "this processor cannot compute the table's hash: use SipHash"
    TATCELL_ERR_SYSTEM "a system call failed: system_error has the errno"
    TATCELL_ERR_UNSUPPORTED "this system or processor does not support the function"
    TATCELL_ERR_NAME "the name is neither /name nor an absolute path to a file, or too long"
    TATCELL_ERR_EXISTS "the name exists already: attach to it, or unlink it"
    TATCELL_ERR_ABSENT "the name does not exist: create it"
    TATCELL_ERR_TOO_SMALL "a length is too small (memory of a table: 256 bytes at least)"
    TATCELL_ERR_TOO_LARGE "a length exceeds half of the address space, or the most that the function takes"
    TATCELL_ERR_OVERLAP "two objects of the call overlap, and it writes one of them"
    TATCELL_ERR_KEY_LENGTH "a key is longer than half of the address space"
    TATCELL_ERR_BUFFER "the buffer is too small for the image"
    TATCELL_ERR_TOO_FAST "the limit is faster or longer than the table's options: change fastest or slowest"
    TATCELL_ERR_WRONG_SIZE "the memory has another size than the image, or than expected"
    TATCELL_ERR_FOLDER "the folder of the path does not exist: make it first"
    TATCELL_ERR_ALGORITHM "the algorithm does not support this option, operation, word or table"
    TATCELL_ERR_PHASE "the phase must be below the window, and an offset a whole number of windows"
    TATCELL_ERR_UNITS "the limit counts more units than the word has bits for: use larger units"
    TATCELL_ERR_INHERIT "a count cannot be inherited, an override cannot be dropped: use TATCELL_FULL_DENY"
    TATCELL_ERR_UNTIL "the override has ended, or ends too far ahead for the table's options"
    TATCELL_ERR_FULL_SET "the set of the key is full, the override is not stored: use more slots"
    TATCELL_ERR_CLASH "the override of another key occupies this place"
    TATCELL_ERR_PREFIX "the prefix is longer than the address, or a whole range of IPv4 addresses inside IPv6"
    TATCELL_ERR_KEEP_WINDOW "the windows of the two limits differ in length: keep the length, or reset the key"
    TATCELL_ERR_KEEP_COUNT "the key has counted more than the new word holds: give the limit a larger max_debt"
    TATCELL_ERR_IMAGE "the words are no image of a cell, or damaged: use an older file"
    TATCELL_ERR_OTHER_LIMIT "the cell was saved under another limit: restore under that one, then change"
    TATCELL_ERR_HTTP_NAME "a name or unit has a byte outside of 0x20 to 0x7e"
    TATCELL_ERR_FREQUENCY "the clock has 0 ticks a second: give its frequency"
    TATCELL_ERR_POLICIES "there are more than 8 policies"
    TATCELL_ERR_SYNTAX "the text is not a limit such as \"10/s burst 20\""
    TATCELL_ERR_PEAK "the peak rate is below the committed rate: raise it"
    TATCELL_ERR_SHORT_SPAN "the word cannot have this span: ask for less, or use smaller bursts"
    TATCELL_ERR_LINKS "a chain must have 1 to 8 links"
    TATCELL_ERR_TWO_LIMITS "one cell or key has two limits: give each limit its own cell or key"
    TATCELL_ERR_COST "the costs of one cell or key exceed 64 bits together"
    TATCELL_ERR_LADDER "a family needs 1 to 8 rungs whose lengths fall and whose multipliers do not"
    TATCELL_ERR_ADDRESS "an address must have 4 or 16 bytes"
    TATCELL_ERR_FULL "no room for another handle: take out those due, or give more memory"
    TATCELL_ERR_BEHIND "handles have been due for too long: take them out first"
    TATCELL_ERR_WHEEL "slots must be a power of two from 64 to 4096, and their ticks one that is not too long"
    TATCELL_ERR_TOO_FAR "the departure may lie beyond the horizon: use more or longer slots"
    TATCELL_ERR_NOT_PLAIN "a link is not plain: use the check, which decides every link"
}

/// Returns the description of a result or error code.
///
/// @param code any value that a function of this library returned.
/// @return static text, never NULL; "unknown code" for others.
/// Thread: any. Cost: none. Since 0.1.
#[no_mangle]
pub extern "C" fn tatcell_strerror(code: i32) -> *const c_char {
    text_of(code).map_or(c"unknown code".as_ptr(), |text| text.as_ptr().cast())
}

/// Returns the name of a result or error code in this header, such as "TATCELL_ERR_NULL".
///
/// @param code any value that a function of this library returned.
/// @return static text, never NULL; "unknown" for others.
/// Thread: any. Cost: none. Since 0.2.
#[no_mangle]
pub extern "C" fn tatcell_strerror_name(code: i32) -> *const c_char {
    name_of(code).map_or(c"unknown".as_ptr(), |name| name.as_ptr().cast())
}

/// Returns the code of a verdict.
pub(super) const fn verdict_code(verdict: Verdict) -> i32 {
    verdict as i32
}

const _: () = assert!(TATCELL_PASS == verdict_code(Verdict::Conforming));
const _: () = assert!(TATCELL_NON_CONFORMING == verdict_code(Verdict::NonConforming));
const _: () = assert!(TATCELL_NEVER == verdict_code(Verdict::Never));
const _: () = assert!(TATCELL_CONTENDED == verdict_code(Verdict::Contended));

/// Returns the code of a limit error.
pub(super) const fn limit_code(e: LimitError) -> i32 {
    match e {
        // In C a macro makes duty cycles, so no function returns their error.
        LimitError::ZeroRate | LimitError::BadDuty => TATCELL_ERR_RATE,
        LimitError::ZeroPeriod => TATCELL_ERR_PERIOD,
        LimitError::ZeroBurst => TATCELL_ERR_BURST,
        LimitError::NotRepresentable => TATCELL_ERR_REPRESENT,
        LimitError::HorizonTooLong => TATCELL_ERR_HORIZON,
        LimitError::BadSoft => TATCELL_ERR_SOFT,
        LimitError::BadResolution | LimitError::BadHeal | LimitError::NotSmall => TATCELL_ERR_OPTION,
        LimitError::BadAlgorithm => TATCELL_ERR_ALGORITHM,
        LimitError::BadPhase => TATCELL_ERR_PHASE,
        LimitError::TooManyUnits => TATCELL_ERR_UNITS,
        LimitError::OtherWindow => TATCELL_ERR_KEEP_WINDOW,
        LimitError::LargerCount => TATCELL_ERR_KEEP_COUNT,
    }
}

/// Returns the code of an error of a cell's image.
pub(super) const fn image_code(e: ImageError) -> i32 {
    match e {
        ImageError::Damaged => TATCELL_ERR_IMAGE,
        ImageError::BadVersion => TATCELL_ERR_VERSION,
        ImageError::OtherLimit { .. } => TATCELL_ERR_OTHER_LIMIT,
        ImageError::BadOffset => TATCELL_ERR_PHASE,
    }
}

/// Returns the code of a meter error.
pub(super) const fn meter_code(e: MeterError) -> i32 {
    match e {
        MeterError::ZeroRate => TATCELL_ERR_RATE,
        MeterError::ZeroBurst => TATCELL_ERR_BURST,
        MeterError::ZeroFrequency => TATCELL_ERR_PERIOD,
        MeterError::PeakBelowCommitted => TATCELL_ERR_PEAK,
        MeterError::BadCoupling => TATCELL_ERR_OPTION,
        MeterError::NotRepresentable => TATCELL_ERR_REPRESENT,
        MeterError::HorizonTooLong => TATCELL_ERR_HORIZON,
        MeterError::SpanTooShort => TATCELL_ERR_SHORT_SPAN,
    }
}

/// Returns the code of a table error.
pub(super) const fn table_code(e: TableError) -> i32 {
    match e {
        TableError::Limit(e) => limit_code(e),
        TableError::TooSmall => TATCELL_ERR_TOO_SMALL,
        TableError::TooLarge => TATCELL_ERR_TOO_LARGE,
        TableError::BufferTooSmall => TATCELL_ERR_BUFFER,
        TableError::SpanTooShort => TATCELL_ERR_SPAN,
        TableError::BadTagBits
        | TableError::TagTooWide
        | TableError::BadLifetime
        | TableError::NotSmall
        | TableError::BadCosts
        | TableError::NothingToKeep => TATCELL_ERR_OPTION,
        TableError::Overlap => TATCELL_ERR_OVERLAP,
        TableError::BadAlgorithm => TATCELL_ERR_ALGORITHM,
        TableError::BadPolicy => TATCELL_ERR_INHERIT,
        TableError::PeakBelowCommitted => TATCELL_ERR_PEAK,
        TableError::BadUntil => TATCELL_ERR_UNTIL,
        TableError::FullSet => TATCELL_ERR_FULL_SET,
        TableError::OverrideClash => TATCELL_ERR_CLASH,
        TableError::BadPrefix => TATCELL_ERR_PREFIX,
        TableError::Contended => TATCELL_CONTENDED,
        TableError::MissingSeed => TATCELL_ERR_SEED,
        TableError::BadHashKind => TATCELL_ERR_HASH,
        TableError::HashUnavailable => TATCELL_ERR_HASH_UNAVAILABLE,
        TableError::ForeignLimit => TATCELL_ERR_FOREIGN,
        TableError::LimitTooFast => TATCELL_ERR_TOO_FAST,
        TableError::TooManyKeys => TATCELL_ERR_COUNT,
        TableError::NotReady => TATCELL_ERR_NOT_READY,
        TableError::BadVersion => TATCELL_ERR_VERSION,
        TableError::BadGeometry => TATCELL_ERR_GEOMETRY,
        TableError::WrongSeed => TATCELL_ERR_WRONG_SEED,
        TableError::BadMode => TATCELL_ERR_MODE,
    }
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "codes_tests.rs"]
mod tests;

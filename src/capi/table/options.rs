//! `tatcell_table_options_t` and `tatcell_attach_options_t`: what a table is made, attached and restored with.

use core::ffi::c_void;

use crate::capi::codes::{TATCELL_ERR_HASH_UNAVAILABLE, TATCELL_ERR_OPTION, TATCELL_PASS};
use crate::capi::limit::limit::{spec, tatcell_limit_spec_t};
use crate::capi::pointers::contract::{Contract, Grows};
use crate::keys::HashKind;
use crate::table::{AttachOptions, FullPolicy, TableClock, TableOptions};

/// flags: one owner at a time uses the table; it uses plain loads and stores.
pub const TATCELL_TABLE_EXCLUSIVE: u32 = 1;
/// flags of table options: use the resolution of the options. Without the flag the library chooses one.
pub const TATCELL_TABLE_RESOLUTION: u32 = 2;
/// flags of attach options: the image must have the policy of the options.
pub const TATCELL_TABLE_POLICY: u32 = 4;

/// flags of table options: the memory is all zero, as from the system; init writes only the header. Since 0.4.
pub const TATCELL_TABLE_ZEROED: u32 = 8;

/// flags of attach options: only look at the table, whether it is shared or exclusive. The handle needs no seed, and
/// the memory may be mapped for reading alone. Since 0.4.
pub const TATCELL_TABLE_READ_ONLY: u32 = 16;

/// clock: not stated. Since 0.4.
pub const TATCELL_CLOCK_UNKNOWN: u32 = 0;
/// clock: CLOCK_MONOTONIC, also its coarse form. Since 0.4.
pub const TATCELL_CLOCK_MONOTONIC: u32 = 1;
/// clock: CLOCK_BOOTTIME, which runs while the system sleeps. Since 0.4.
pub const TATCELL_CLOCK_BOOTTIME: u32 = 2;
/// clock: CLOCK_REALTIME, the wall clock since 1970. Since 0.4.
pub const TATCELL_CLOCK_REALTIME: u32 = 3;
/// clock: CLOCK_MONOTONIC_RAW, the oscillator without corrections. Since 0.4.
pub const TATCELL_CLOCK_RAW: u32 = 4;
/// clock: the processor's counter (tatcell_host_ticks); tick_hz is its frequency. Since 0.4.
pub const TATCELL_CLOCK_COUNTER: u32 = 5;

const _: () = assert!(TATCELL_CLOCK_UNKNOWN == TableClock::Unknown as u32);
const _: () = assert!(TATCELL_CLOCK_MONOTONIC == TableClock::Monotonic as u32);
const _: () = assert!(TATCELL_CLOCK_BOOTTIME == TableClock::Boottime as u32);
const _: () = assert!(TATCELL_CLOCK_REALTIME == TableClock::Realtime as u32);
const _: () = assert!(TATCELL_CLOCK_RAW == TableClock::Raw as u32);
const _: () = assert!(TATCELL_CLOCK_COUNTER == TableClock::Counter as u32);

/// policy: if its set is full, a new key passes untracked.
pub const TATCELL_FULL_ADMIT: u32 = 0;
/// policy: if its set is full, a new key takes over the slot with the smallest lead, and inherits that debt.
pub const TATCELL_FULL_INHERIT: u32 = 1;
/// policy: if its set is full, a new key is refused.
pub const TATCELL_FULL_DENY: u32 = 2;
/// policy: if its set is full, a new key passes untracked. One in 16 takes over the slot with the smallest lead,
/// whose debt is forgiven.
pub const TATCELL_FULL_SAMPLED: u32 = 3;

const _: () = assert!(TATCELL_FULL_ADMIT == FullPolicy::Admit as u32);
const _: () = assert!(TATCELL_FULL_INHERIT == FullPolicy::Inherit as u32);
const _: () = assert!(TATCELL_FULL_DENY == FullPolicy::Deny as u32);
const _: () = assert!(TATCELL_FULL_SAMPLED == FullPolicy::Sampled as u32);

/// hash: SipHash-1-3 under the table's seed.
pub const TATCELL_HASH_SIPHASH13: u32 = 0;
/// hash: the caller passes hashes. Use a keyed hash.
pub const TATCELL_HASH_CALLER: u32 = 1;
/// hash: four rounds of AES under the table's seed, on processors with AES instructions. It takes a tenth of the
/// time of SipHash. Use it for keys of one length: keys of different lengths may collide without the seed if the
/// longer one ends in zero bytes.
pub const TATCELL_HASH_AES: u32 = 2;

const _: () = assert!(TATCELL_HASH_SIPHASH13 == HashKind::SipHash13 as u32);
const _: () = assert!(TATCELL_HASH_CALLER == HashKind::Caller as u32);
const _: () = assert!(TATCELL_HASH_AES == HashKind::Aes as u32);

/// Bytes of a tatcell_table_options_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_TABLE_OPTIONS_MIN: usize = 48 + 4 * size_of::<*const u8>();

/// Options of a table. Start from TATCELL_TABLE_OPTIONS_INIT. A field that is 0 has its default.
#[repr(C)]
pub struct tatcell_table_options_t {
    /// sizeof(tatcell_table_options_t).
    pub size: u32,
    /// Any of TATCELL_TABLE_EXCLUSIVE, TATCELL_TABLE_RESOLUTION, TATCELL_TABLE_ZEROED.
    ///
    /// With TATCELL_TABLE_ZEROED the caller promises that the memory is all zero: from mmap, calloc or static
    /// storage. Its pages are then touched when their first key comes, and init does not wait for them (0.4 to 2.5
    /// s a GiB). If no decision may wait for a page, touch the memory before the first request. Init refuses a
    /// header that is not zero. It does not read the slots: a slot that is not zero acts as the debt of another key
    /// until it drains.
    pub flags: u32,
    /// A TATCELL_FULL_ constant: how the table decides a new key whose set is full.
    pub policy: u32,
    /// A TATCELL_HASH_ constant.
    pub hash: u32,
    /// Bits of the tag of a key, 12..24; 0 = 20. Each bit less doubles the span and the default skew. At full load,
    /// a new key shares the slot of another key with probability 16 * 2^-tag_bits.
    pub tag_bits: u32,
    /// With TATCELL_TABLE_RESOLUTION: one q-unit is 2^-resolution ticks.
    pub resolution: i32,
    /// The fastest limit that the table will serve. Not NULL, except for a table of overrides.
    pub fastest: *const tatcell_limit_spec_t,
    /// The limit with the longest horizon; NULL = fastest.
    pub slowest: *const tatcell_limit_spec_t,
    /// 16 secret bytes from the system's random source (tatcell_host_random). NULL only with TATCELL_HASH_CALLER.
    pub seed: *const u8,
    /// Must be NULL.
    pub reserved: *const c_void,
    /// Ticks by which callers' readings may differ or step back; 0 = max(horizon, min(span / 64, 2^30)). That is 12
    /// days of milliseconds: state it for wall clocks and coarse ticks (see TIME).
    pub skew: u64,
    /// Ticks for which a thread that stopped inside an insert keeps a slot, at least two q-units; 0 = one tick.
    pub claim_lifetime: u64,
    /// Ticks per second of the callers' clock; 0 = not stated. Processes that attach can ask for it. A table of
    /// windows takes a unit of time with which its words last a year of this clock.
    pub tick_hz: u64,
    /// For tables of aligned windows: ticks by which callers' clocks may differ; 0 = an eighth of the window, or
    /// skew if that is less. The table keeps a slot this much longer than its window.
    pub guard: u64,
    /// Ticks. If not 0, the table is one of overrides (tatcell_table_ban), which end at most this far ahead. Then
    /// fastest and slowest must be NULL, and policy TATCELL_FULL_DENY or 0. Its unit of time is the finest one with
    /// which this time fits the word. With 20 tag bits that is one tick for less than 2^38 - 1 ticks, and 2^17
    /// ticks (131 us) for a year of nanoseconds.
    pub overrides: u64,
    /// Both NULL: in a migration a debt keeps its time, so under a higher rate it is worth more units. Both set: it
    /// keeps its units. Every key of the old table has the limit old_limit, and every key of the new table has
    /// new_limit: a key that has used 60 units has used 60 units afterwards, or all of them if new_limit has fewer.
    /// Each word is scaled once, rounded up. A word does not say its limit, so this is for tables of one limit. Limits
    /// of one rate with different bursts are one limit here; then new_limit is the one with the largest burst and
    /// allowances. If keys have several limits, call tatcell_table_change for each key. Since 0.4.
    pub old_limit: *const tatcell_limit_spec_t,
    /// See old_limit. tatcell_table_init refuses both with TATCELL_ERR_OPTION. Since 0.4.
    pub new_limit: *const tatcell_limit_spec_t,
    /// A TATCELL_CLOCK_ constant: the callers' clock. The image keeps it for programs that only look at the table. It
    /// decides nothing. Libraries before 0.4 refuse an image whose clock is not 0. Since 0.4.
    pub clock: u32,
    /// Must be 0. Since 0.4.
    pub reserved_number: u32,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_table_options_t {
    const FIRST: usize = TATCELL_TABLE_OPTIONS_MIN;
}
const _: () = assert!(size_of::<tatcell_table_options_t>() == 8 * 4 + 6 * size_of::<*const u8>() + 5 * 8);

/// Bytes of a tatcell_attach_options_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_ATTACH_OPTIONS_MIN: usize = 24 + 2 * size_of::<*const u8>();

/// Options of a process that attaches or restores a table. Start from TATCELL_ATTACH_OPTIONS_INIT. The image must
/// match each of the fields that are set, else the call returns TATCELL_ERR_MODE. The options change nothing in the
/// image.
#[repr(C)]
pub struct tatcell_attach_options_t {
    /// sizeof(tatcell_attach_options_t).
    pub size: u32,
    /// TATCELL_TABLE_EXCLUSIVE for an exclusive image; TATCELL_TABLE_POLICY if the image must have the policy
    /// below; TATCELL_TABLE_READ_ONLY to look at an image of either mode.
    pub flags: u32,
    /// With TATCELL_TABLE_POLICY: a TATCELL_FULL_ constant; otherwise 0.
    pub policy: u32,
    /// Must be 0.
    pub reserved: u32,
    /// The 16 secret bytes that the table was made with; NULL if the caller hashes. With TATCELL_TABLE_READ_ONLY it may
    /// be NULL; then tatcell_table_hash returns TATCELL_ERR_SEED.
    pub seed: *const u8,
    /// Must be NULL.
    pub reserved_pointer: *const c_void,
    /// Ticks per second that the table must have been made with; 0 = any.
    pub tick_hz: u64,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_attach_options_t {
    const FIRST: usize = TATCELL_ATTACH_OPTIONS_MIN;
}
const _: () = assert!(size_of::<tatcell_attach_options_t>() == 4 * 4 + 2 * size_of::<*const u8>() + 8);

/// How a caller attaches.
pub(in crate::capi) enum How {
    Shared,
    Exclusive,
    ReadOnly,
}

pub(in crate::capi) fn policy(number: u32) -> Result<FullPolicy, i32> {
    u8::try_from(number).ok().and_then(FullPolicy::from_number).ok_or(TATCELL_ERR_OPTION)
}

fn clock(number: u32) -> Result<TableClock, i32> {
    match number {
        0..=TATCELL_CLOCK_COUNTER => Ok(TableClock::of(number as u8)),
        _ => Err(TATCELL_ERR_OPTION),
    }
}

fn hash_kind(number: u32) -> Result<HashKind, i32> {
    u8::try_from(number).ok().and_then(HashKind::from_number).ok_or(TATCELL_ERR_OPTION)
}

impl Contract<'_> {
    /// Converts options from C.
    pub(in crate::capi) fn table_options(self, o: &tatcell_table_options_t) -> Result<TableOptions, i32> {
        let unknown =
            o.flags & !(TATCELL_TABLE_EXCLUSIVE | TATCELL_TABLE_RESOLUTION | TATCELL_TABLE_ZEROED) != 0;
        if unknown || !o.reserved.is_null() || o.reserved_number != 0 {
            return Err(TATCELL_ERR_OPTION);
        }
        let made = match o.overrides {
            0 => {
                let slowest = if o.slowest.is_null() { o.fastest } else { o.slowest };
                let (fastest, slowest) = (self.options(o.fastest)?, self.options(slowest)?);
                TableOptions::new(spec(&fastest)?).slowest(spec(&slowest)?).policy(policy(o.policy)?)
            }
            longest => {
                if !o.fastest.is_null() || !o.slowest.is_null() {
                    return Err(TATCELL_ERR_OPTION);
                }
                // 0 means the default here, as elsewhere.
                let given = if o.policy == TATCELL_FULL_ADMIT { TATCELL_FULL_DENY } else { o.policy };
                TableOptions::overrides(longest).policy(policy(given)?)
            }
        };
        let mut made = made.hash(hash_kind(o.hash)?).tick_hz(o.tick_hz).clock(clock(o.clock)?);
        if let Some(seed) = self.seed(o.seed)? {
            made = made.seed(seed);
        }
        if o.tag_bits != 0 {
            made = made.tag_bits(o.tag_bits);
        }
        if o.flags & TATCELL_TABLE_RESOLUTION != 0 {
            made = made.resolution(i8::try_from(o.resolution).map_err(|_| TATCELL_ERR_OPTION)?);
        }
        if o.skew != 0 {
            made = made.skew(o.skew);
        }
        if o.claim_lifetime != 0 {
            made = made.claim_lifetime(o.claim_lifetime);
        }
        if o.guard != 0 {
            made = made.guard(o.guard);
        }
        if o.flags & TATCELL_TABLE_ZEROED != 0 {
            made = made.zeroed();
        }
        match (o.old_limit.is_null(), o.new_limit.is_null()) {
            (true, true) => {}
            (false, false) => {
                let (old, new) = (self.options(o.old_limit)?, self.options(o.new_limit)?);
                made = made.keep_units(spec(&old)?, spec(&new)?);
            }
            _ => return Err(TATCELL_ERR_OPTION),
        }
        Ok(made)
    }

    /// Converts attach options from C, and returns also how the table is attached.
    pub(in crate::capi) fn attach_options(
        self,
        p: *const tatcell_attach_options_t,
    ) -> Result<(AttachOptions, How), i32> {
        let o = self.options(p)?;
        let how = match o.flags & (TATCELL_TABLE_EXCLUSIVE | TATCELL_TABLE_READ_ONLY) {
            0 => How::Shared,
            TATCELL_TABLE_EXCLUSIVE => How::Exclusive,
            TATCELL_TABLE_READ_ONLY => How::ReadOnly,
            _ => return Err(TATCELL_ERR_OPTION),
        };
        let known = TATCELL_TABLE_EXCLUSIVE | TATCELL_TABLE_READ_ONLY | TATCELL_TABLE_POLICY;
        let unknown = o.flags & !known != 0;
        if unknown || o.reserved != 0 || !o.reserved_pointer.is_null() {
            return Err(TATCELL_ERR_OPTION);
        }
        let mut made = AttachOptions::new();
        if let Some(seed) = self.seed(o.seed)? {
            made = made.seed(seed);
        }
        if o.flags & TATCELL_TABLE_POLICY != 0 {
            made = made.policy(policy(o.policy)?);
        } else if o.policy != 0 {
            return Err(TATCELL_ERR_OPTION);
        }
        if o.tick_hz != 0 {
            made = made.tick_hz(o.tick_hz);
        }
        Ok((made, how))
    }

    /// Returns 16 secret bytes; NULL is `None`.
    fn seed(self, p: *const u8) -> Result<Option<[u8; 16]>, i32> {
        Ok(self.input_if(p.cast::<[u8; 16]>())?.copied())
    }
}

/// Reports whether this processor can compute a hash.
///
/// @param hash a TATCELL_HASH_ constant.
/// @retval 0 it can.
/// @retval TATCELL_ERR_HASH_UNAVAILABLE it cannot.
/// @retval TATCELL_ERR_OPTION there is no such constant.
/// Thread: any. Cost: may query the processor, about 20 us on a virtual machine. Since 0.2.
#[no_mangle]
pub extern "C" fn tatcell_hash_available(hash: u32) -> i32 {
    match hash_kind(hash) {
        Ok(kind) if kind.is_available() => TATCELL_PASS,
        Ok(_) => TATCELL_ERR_HASH_UNAVAILABLE,
        Err(e) => e,
    }
}

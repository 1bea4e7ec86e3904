//! `tatcell_table_ban_address` and what goes with it: overrides of addresses and networks.

use core::ffi::c_void;

use super::handle::{tatcell_table_t, Handle};
use super::overrides::{ban, exempt, found_as, lift};
use crate::capi::codes::{table_code, TATCELL_ERR_OPTION, TATCELL_ERR_PREFIX, TATCELL_PASS};
use crate::capi::pointers::contract::{args, Contract, Grows};
use crate::combine::link::either;
use crate::table::PrefixLengths;

/// Bytes of a tatcell_prefix_lengths_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_PREFIX_LENGTHS_MIN: usize = 16 + 2 * size_of::<*const u8>();

/// Most lengths of one family: every one that an IPv6 address has.
const MOST: usize = 129;

/// The lengths of the prefixes that are asked for an address, in any order: one probe each. Start from
/// TATCELL_PREFIX_LENGTHS_INIT.
#[repr(C)]
pub struct tatcell_prefix_lengths_t {
    /// sizeof(tatcell_prefix_lengths_t).
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// Number of lengths for IPv4, at most 129; 0 = the address itself, 32.
    pub v4_count: u32,
    /// Number of lengths for IPv6, at most 129; 0 = the address itself, 128.
    pub v6_count: u32,
    /// The lengths for IPv4, 0 (all addresses) to 32; NULL if v4_count is 0.
    pub v4: *const u8,
    /// The lengths for IPv6, 0 to 128; NULL if v6_count is 0.
    pub v6: *const u8,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_prefix_lengths_t {
    const FIRST: usize = TATCELL_PREFIX_LENGTHS_MIN;
}
const _: () = assert!(
    size_of::<tatcell_prefix_lengths_t>() == TATCELL_PREFIX_LENGTHS_MIN
        && TATCELL_PREFIX_LENGTHS_MIN % 8 == 0
);

impl<'a> Contract<'a> {
    /// The lengths to ask; NULL is the address itself.
    pub(in crate::capi) fn lengths(
        self,
        p: *const tatcell_prefix_lengths_t,
    ) -> Result<PrefixLengths<'a>, i32> {
        if p.is_null() {
            return Ok(PrefixLengths::WHOLE);
        }
        let copied;
        let given = match self.options_in_place(p) {
            Some(given) => given,
            None => {
                copied = self.options(p)?;
                &copied
            }
        };
        if given.flags != 0 {
            return Err(TATCELL_ERR_OPTION);
        }
        let family = |p: *const u8, count: u32, whole: &'static [u8]| match count as usize {
            0 => Ok(whole),
            count if count > MOST => Err(TATCELL_ERR_PREFIX),
            count => self.slice(p, count),
        };
        let PrefixLengths { v4, v6 } = PrefixLengths::WHOLE;
        Ok(PrefixLengths {
            v4: family(given.v4, given.v4_count, v4)?,
            v6: family(given.v6, given.v6_count, v6)?,
        })
    }

    /// The handle, and the hash of the prefix of an address.
    fn network(
        self,
        table: *const tatcell_table_t,
        (address, address_len): (*const c_void, usize),
        (v4_bits, v6_bits): (u32, u32),
    ) -> Result<(&'a Handle, u64), i32> {
        let table = self.handle(table)?;
        let address = self.address(address, address_len)?;
        let (v4, v6) = self.bits_of(v4_bits, v6_bits);
        Ok((table, either!(table.table(), t => t.prefix_hash(&address, v4, v6)).map_err(table_code)?))
    }
}

/// Bans an address, or all addresses of its network, until a time: as tatcell_table_ban for a key.
///
/// The key is made here, so one ban holds for every way to write an address: 192.0.2.1 and ::ffff:192.0.2.1 are the
/// same (tatcell_address_canonical). With v4_bits 32 and v6_bits 64, an IPv4 address is banned alone, however it is
/// written, and an IPv6 address with its /64. For a network that people write, such as 192.0.2.0/24 in a list, take
/// what tatcell_address_network returns. An IPv6 network bans no IPv4 address, not even ::/0.
///
/// Ask with tatcell_table_overridden_address. A link of a chain takes the hash of one prefix
/// (tatcell_address_prefix_hash).
///
/// @param table       handle of a table of overrides; not NULL.
/// @param now         the caller's clock, ticks.
/// @param address     in network order, as in in_addr and in6_addr; not NULL.
/// @param address_len bytes: 4 or 16.
/// @param v4_bits     length of the prefix of an IPv4 address: 0 (all addresses) to 32 (itself).
/// @param v6_bits     length of the prefix of an IPv6 address: 0 to 128.
/// @param until       a reading of the clock after now, at most options.overrides ahead.
/// @retval TATCELL_ERR_ADDRESS address_len is neither 4 nor 16.
/// @retval TATCELL_ERR_PREFIX v4_bits is above 32 and the address is IPv4, or v6_bits is above 128 and it is IPv6.
/// @retval others as tatcell_table_ban.
/// Thread: as tatcell_table_ban. Cost: the same. Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_ban_address(
    table: *const tatcell_table_t,
    now: u64,
    address: *const c_void,
    address_len: usize,
    v4_bits: u32,
    v6_bits: u32,
    until: u64,
) -> i32 {
    args!(c, (table, hash) = c.network(table, (address, address_len), (v4_bits, v6_bits)));
    ban(table, now, hash, until)
}

/// Exempts an address, or all addresses of its network, until a time: as tatcell_table_exempt for a key.
///
/// @param table       handle of a table of overrides; not NULL.
/// @param now         the caller's clock, ticks.
/// @param address     in network order; not NULL.
/// @param address_len bytes: 4 or 16.
/// @param v4_bits     length of the prefix of an IPv4 address; see tatcell_table_ban_address.
/// @param v6_bits     length of the prefix of an IPv6 address.
/// @param until       a reading of the clock after now, at most options.overrides ahead.
/// @retval TATCELL_ERR_ADDRESS, TATCELL_ERR_PREFIX as tatcell_table_ban_address.
/// @retval others as tatcell_table_exempt.
/// Thread: as tatcell_table_ban. Cost: the same. Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_exempt_address(
    table: *const tatcell_table_t,
    now: u64,
    address: *const c_void,
    address_len: usize,
    v4_bits: u32,
    v6_bits: u32,
    until: u64,
) -> i32 {
    args!(c, (table, hash) = c.network(table, (address, address_len), (v4_bits, v6_bits)));
    exempt(table, now, hash, until)
}

/// Ends the override of an address or of a network at once: as tatcell_table_lift for a key. Overrides of longer and
/// shorter prefixes stay.
///
/// @param table       handle of a table of overrides; not NULL.
/// @param now         the caller's clock, ticks.
/// @param address     in network order; not NULL.
/// @param address_len bytes: 4 or 16.
/// @param v4_bits     length of the prefix of an IPv4 address; see tatcell_table_ban_address.
/// @param v6_bits     length of the prefix of an IPv6 address.
/// @retval TATCELL_ERR_ADDRESS, TATCELL_ERR_PREFIX as tatcell_table_ban_address.
/// @retval others as tatcell_table_lift.
/// Thread: as tatcell_table_ban. Cost: as tatcell_table_lift. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_table_lift_address(
    table: *const tatcell_table_t,
    now: u64,
    address: *const c_void,
    address_len: usize,
    v4_bits: u32,
    v6_bits: u32,
) -> i32 {
    args!(c, (table, hash) = c.network(table, (address, address_len), (v4_bits, v6_bits)));
    lift(table, now, hash)
}

/// Reports whether an address is banned or exempt, for how long, and by which prefix. It only reads.
///
/// It probes once for each length that is asked. The longest prefix with an override decides: an exempt /32 inside a
/// banned /24 is exempt. A prefix whose length is not asked does not count.
///
/// @param table       handle of a table of overrides; not NULL.
/// @param now         the caller's clock, ticks.
/// @param address     in network order; not NULL. An IPv4 address may be written as an IPv6 one.
/// @param address_len bytes: 4 or 16.
/// @param lengths     started from TATCELL_PREFIX_LENGTHS_INIT; NULL = the address itself only.
/// @param kind        gets TATCELL_OVERRIDE_NONE, TATCELL_OVERRIDE_BAN or TATCELL_OVERRIDE_EXEMPT; not NULL.
/// @param left        gets the ticks until the override ends, for a ban the retry time; 0 if there is none. NULL = not
///                    wanted.
/// @param bits        gets the length of the prefix that decided, at most 32 for IPv4; 0 if there is none. NULL = not
///                    wanted.
/// @retval 0 kind, left and bits are written; on any other result none is.
/// @retval TATCELL_ERR_ADDRESS address_len is neither 4 nor 16.
/// @retval TATCELL_ERR_PREFIX a length is above 32 or 128, or a family has more than 129 lengths.
/// @retval TATCELL_ERR_SIZE, TATCELL_ERR_OPTION lengths->size is not set; its flags are not 0.
/// @retval others as tatcell_table_overridden.
/// Thread: as tatcell_table_ban. Cost: for each length as tatcell_table_overridden. Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_overridden_address(
    table: *const tatcell_table_t,
    now: u64,
    address: *const c_void,
    address_len: usize,
    lengths: *const tatcell_prefix_lengths_t,
    kind: *mut u32,
    left: *mut u64,
    bits: *mut u32,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        address = c.address(address, address_len),
        lengths = c.lengths(lengths),
        kind = c.result(kind),
        left = c.result_if(left),
        bits = c.result_if(bits),
        found = either!(table.table(), t => t.overridden_address(now, address, lengths)).map_err(table_code)
    );
    let (what, ticks) = found_as(found.map(|(found, _)| found));
    kind.put(what);
    if let Some(left) = left {
        left.put(ticks);
    }
    if let Some(bits) = bits {
        bits.put(found.map_or(0, |(_, bits)| bits.into()));
    }
    TATCELL_PASS
}

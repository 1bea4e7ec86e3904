//! `tatcell_address_*`, and addresses as arguments.

use core::ffi::c_void;
use core::net::IpAddr;

use crate::capi::codes::{table_code, TATCELL_ERR_ADDRESS, TATCELL_ERR_PREFIX, TATCELL_PASS};
use crate::capi::pointers::contract::{args, Contract};
use crate::capi::table::handle::tatcell_table_t;
use crate::capi::table::seen::look;
use crate::keys::Address;

/// Most bytes of the key of a prefix.
pub const TATCELL_PREFIX_KEY_MAX: usize = 18;

impl Contract<'_> {
    /// An address in its canonical form: 4 or 16 bytes.
    #[inline(always)] // else a ladder needs 48 bytes of stack more
    pub(in crate::capi) fn address(self, p: *const c_void, length: usize) -> Result<Address, i32> {
        self.written(p, length).map(Address::from)
    }

    /// An address as it is written: 4 or 16 bytes.
    fn written(self, p: *const c_void, length: usize) -> Result<IpAddr, i32> {
        if length != 4 && length != 16 {
            return Err(TATCELL_ERR_ADDRESS);
        }
        let bytes = self.key(p, length)?;
        match (bytes.first_chunk::<4>(), bytes.first_chunk::<16>()) {
            (_, Some(all)) => Ok(IpAddr::from(*all)),
            (Some(all), None) => Ok(IpAddr::from(*all)),
            (None, None) => Err(TATCELL_ERR_ADDRESS),
        }
    }

    /// The lengths of the prefix of an IPv4 and of an IPv6 address. What no byte holds is longer than any address.
    pub(in crate::capi) fn bits_of(self, v4: u32, v6: u32) -> (u8, u8) {
        let bits = |bits: u32| u8::try_from(bits).unwrap_or(u8::MAX);
        (bits(v4), bits(v6))
    }
}

/// The bytes of an address, and zeros.
fn padded(address: &Address) -> [u8; 16] {
    let mut all = [0; 16];
    all.iter_mut().zip(address.bytes()).for_each(|(to, from)| *to = *from);
    all
}

/// Returns the canonical form of an address. An IPv4 address that is written as an IPv6 address becomes the IPv4
/// address.
///
/// This applies to IPv4-mapped addresses (::ffff:0:0/96, RFC 4291), to the well-known prefix of NAT64
/// (64:ff9b::/96, RFC 6052) and to 6to4 (2002::/16, RFC 3056). For 6to4 it is the router's address, the same for
/// all hosts behind it. Teredo and all other addresses stay as they are. The ladder calls apply this function
/// themselves.
///
/// @param address       in network order; not NULL.
/// @param address_len   bytes: 4 or 16.
/// @param canonical     gets 16 bytes: the first canonical_len are the address, the rest are 0. May be address
///                      itself. Not NULL.
/// @param canonical_len gets 4 or 16; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_ADDRESS address_len is neither 4 nor 16.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_address_canonical(
    address: *const c_void,
    address_len: usize,
    canonical: *mut u8,
    canonical_len: *mut usize,
) -> i32 {
    args!(
        c,
        address = c.address(address, address_len),
        bytes = c.result(canonical.cast::<[u8; 16]>()),
        length = c.result(canonical_len)
    );
    bytes.put(padded(&address));
    length.put(address.bytes().len());
    TATCELL_PASS
}

/// Reads a network as people write it, address/bits: the canonical address, and how many bits of that count.
///
/// An IPv4 network inside IPv6 is that IPv4 network: ::ffff:192.0.2.0/120, 64:ff9b::192.0.2.0/120 and
/// 2002:c000:200::/40 are 192.0.2.0/24. A prefix longer than 2002:aabb:ccdd::/48 is that router. A network that
/// contains a whole range of such addresses and more, like ::/0, holds for IPv6 only: it contains no IPv4 address,
/// however that is written.
///
/// Give the result to tatcell_table_ban_address, with bits as v4_bits and as v6_bits.
///
/// @param address       in network order; not NULL.
/// @param address_len   bytes: 4 or 16.
/// @param bits          length of the prefix, in bits of the address as it is written.
/// @param canonical     gets 16 bytes as from tatcell_address_canonical. May be address itself. Not NULL.
/// @param canonical_len gets 4 or 16; not NULL.
/// @param canonical_bits gets 0 to 32, or 0 to 128; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_ADDRESS address_len is neither 4 nor 16.
/// @retval TATCELL_ERR_PREFIX bits is more than the address has. Or the address is an IPv4 address inside IPv6, and
///         the network is not inside that range: ::ffff:0:0/96, 64:ff9b::/96, 2002::/16, and shorter prefixes.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any. Cost: none. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_address_network(
    address: *const c_void,
    address_len: usize,
    bits: u32,
    canonical: *mut u8,
    canonical_len: *mut usize,
    canonical_bits: *mut u32,
) -> i32 {
    args!(
        c,
        address = c.written(address, address_len),
        (bits, _) = Ok(c.bits_of(bits, bits)),
        (made, count) = Address::network(address, bits).ok_or(TATCELL_ERR_PREFIX),
        bytes = c.result(canonical.cast::<[u8; 16]>()),
        length = c.result(canonical_len),
        bits = c.result(canonical_bits)
    );
    bytes.put(padded(&made));
    length.put(made.bytes().len());
    bits.put(count.into());
    TATCELL_PASS
}

/// Makes the key of an address's network, so that all its addresses have one debt: with 24 and 56 the /24 of an IPv4
/// address and the /56 of an IPv6 one. An IPv4 address that is written as an IPv6 one is IPv4
/// (tatcell_address_canonical).
///
/// The key has the family, the length and the prefix, so that no two networks have the same key. The ladder calls use
/// the same keys.
///
/// @param address     in network order; not NULL.
/// @param address_len bytes: 4 or 16.
/// @param v4_bits     length of the prefix of an IPv4 address: 0 (all addresses) to 32.
/// @param v6_bits     length of the prefix of an IPv6 address: 0 to 128.
/// @param prefix      gets TATCELL_PREFIX_KEY_MAX bytes: the first prefix_len are the key, the rest are 0. Not NULL.
/// @param prefix_len  gets the bytes of the key; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_ADDRESS address_len is neither 4 nor 16.
/// @retval TATCELL_ERR_PREFIX v4_bits is above 32 and the address is IPv4, or v6_bits is above 128 and it is IPv6.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any. Cost: none. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_address_prefix_key(
    address: *const c_void,
    address_len: usize,
    v4_bits: u32,
    v6_bits: u32,
    prefix: *mut u8,
    prefix_len: *mut usize,
) -> i32 {
    args!(
        c,
        address = c.address(address, address_len),
        (v4, v6) = Ok(c.bits_of(v4_bits, v6_bits)),
        made = address.prefix_of(v4, v6).ok_or(TATCELL_ERR_PREFIX),
        bytes = c.result(prefix.cast::<[u8; TATCELL_PREFIX_KEY_MAX]>()),
        length = c.result(prefix_len)
    );
    let mut all = [0; TATCELL_PREFIX_KEY_MAX];
    all.iter_mut().zip(made.as_ref()).for_each(|(to, from)| *to = *from);
    bytes.put(all);
    length.put(made.as_ref().len());
    TATCELL_PASS
}

/// Hashes the key of an address's network (tatcell_address_prefix_key) for a table, for the calls that take a hash.
///
/// @param table       handle; not NULL.
/// @param address     in network order; not NULL.
/// @param address_len bytes: 4 or 16.
/// @param v4_bits     length of the prefix of an IPv4 address: 0 (all addresses) to 32.
/// @param v6_bits     length of the prefix of an IPv6 address: 0 to 128.
/// @param hash        gets the hash; not NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_HANDLE table is not initialised.
/// @retval TATCELL_ERR_HASH the caller hashes for this table; TATCELL_ERR_SEED a read-only handle has no seed.
/// @retval others as tatcell_address_prefix_key.
/// Thread: any. Cost: one hash of 3 to 18 bytes. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_address_prefix_hash(
    table: *const tatcell_table_t,
    address: *const c_void,
    address_len: usize,
    v4_bits: u32,
    v6_bits: u32,
    hash: *mut u64,
) -> i32 {
    args!(
        c,
        table = c.seen(table),
        address = c.address(address, address_len),
        (v4, v6) = Ok(c.bits_of(v4_bits, v6_bits)),
        hash = c.result(hash),
        made = look!(table, t => t.prefix_hash(&address, v4, v6)).map_err(table_code)
    );
    hash.put(made);
    TATCELL_PASS
}

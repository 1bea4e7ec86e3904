//! `tatcell_address_canonical`, and addresses as arguments.

use core::ffi::c_void;

use crate::capi::codes::{TATCELL_ERR_ADDRESS, TATCELL_PASS};
use crate::capi::pointers::contract::{args, Contract};
use crate::keys::Address;

impl Contract<'_> {
    /// Returns an address of 4 or 16 bytes.
    pub(super) fn address(self, p: *const c_void, length: usize) -> Result<Address, i32> {
        if length != 4 && length != 16 {
            return Err(TATCELL_ERR_ADDRESS);
        }
        Address::new(self.key(p, length)?).ok_or(TATCELL_ERR_ADDRESS)
    }
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
    let mut all = [0; 16];
    all.iter_mut().zip(address.bytes()).for_each(|(to, from)| *to = *from);
    bytes.put(all);
    length.put(address.bytes().len());
    TATCELL_PASS
}

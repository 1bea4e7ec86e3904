//! Addresses in one form, and the keys of their prefixes.
//!
//! ```text
//!  key of a prefix   [ family: 4 or 6 ][ length in bits ][ the bytes of the prefix, its last bits 0 ]
//!  192.0.2.1/24      [       4        ][       24       ][ 192, 0, 2 ]
//!  2001:db8::1/56    [       6        ][       56       ][ 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0 ]
//! ```
//!
//! Family and length come first, so no two prefixes have the same bytes. An IPv4 address can also be written in IPv6;
//! one host must not get two keys that way:
//!
//! | written as | becomes | source |
//! |---|---|---|
//! | `::ffff:a.b.c.d`, IPv4-mapped | a.b.c.d | RFC 4291, 2.5.5.2 |
//! | `64:ff9b::a.b.c.d`, NAT64 well-known prefix | a.b.c.d | RFC 6052, 2.1 |
//! | `2002:aabb:ccdd::/48`, 6to4 | the router, a.b.c.d: one key for all hosts behind it | RFC 3056, 2 |
//!
//! Everything else stays as it is: Teredo (2001::/32, RFC 4380), in which the client chooses the NAT whose IPv4 address
//! is used; a network's own NAT64 prefixes, which only that network knows; and the unspecified, loopback and
//! IPv4-compatible addresses of ::/96.
#![forbid(unsafe_code)]

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Holds an IPv4 or IPv6 address in its canonical form: an IPv4 address inside an IPv6 one becomes that IPv4 address.
///
/// ```
/// use tatcell::Address;
/// let mapped = Address::from(core::net::Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0xc000, 0x0201));
/// assert_eq!(Address::from([192, 0, 2, 1]), mapped);
/// assert_eq!(mapped.prefix(24).as_ref(), [4, 24, 192, 0, 2]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    v4: bool,
    /// 4 bytes if it is IPv4, else all 16.
    bytes: [u8; 16],
}

impl Address {
    /// Takes the 4 bytes of an IPv4 address or the 16 of an IPv6 address, in network order (`in_addr`, `in6_addr`).
    /// Returns `None` for any other length.
    pub fn new(bytes: &[u8]) -> Option<Address> {
        match bytes.len() {
            4 => bytes.first_chunk::<4>().map(|bytes| Address::from(*bytes)),
            16 => bytes.first_chunk::<16>().map(|bytes| Address::from(*bytes)),
            _ => None,
        }
    }

    /// Returns whether it is an IPv4 address, which may have come inside an IPv6 address.
    pub const fn is_v4(&self) -> bool {
        self.v4
    }

    /// Returns its bytes in network order: 4 or 16.
    pub fn bytes(&self) -> &[u8] {
        let length = if self.v4 { 4 } else { 16 };
        self.bytes.get(..length).unwrap_or_else(|| impossible!(&self.bytes))
    }

    /// Reads a network as people write it, `address/bits`: its canonical address, and how many bits of that count.
    ///
    /// An IPv4 network inside IPv6 is that IPv4 network: `::ffff:192.0.2.0/120`, `64:ff9b::192.0.2.0/120` and
    /// `2002:c000:200::/40` are `192.0.2.0/24`. What is longer than `2002:aabb:ccdd::/48` is its router. A network that
    /// contains a whole range of such addresses and more, like `::/0`, is one of IPv6 addresses only.
    ///
    /// None if the address has fewer bits, or if it is an IPv4 address inside IPv6 and the network is not inside that
    /// range: `::ffff:0:0/96` would be all of IPv4, and `::ffff:192.0.2.1/64` no IPv4 address at all.
    ///
    /// ```
    /// use tatcell::Address;
    /// let network = |text: &str, bits| Address::network(text.parse().unwrap(), bits);
    /// assert_eq!(network("::ffff:192.0.2.0", 120), Some((Address::from([192, 0, 2, 0]), 24)));
    /// assert_eq!([network("::ffff:192.0.2.0", 96), network("192.0.2.0", 33)], [None; 2]);
    /// ```
    pub fn network(address: IpAddr, bits: u8) -> Option<(Address, u8)> {
        let canonical = Address::from(address);
        // Of an IPv4 address inside IPv6, the bits of the range come first.
        let (before, least, most) = match address {
            IpAddr::V4(_) => (0, 0, 32),
            IpAddr::V6(_) if !canonical.v4 => (0, 0, 128),
            IpAddr::V6(a) if a.octets().starts_with(&[0x20, 0x02]) => (16, 17, 128),
            IpAddr::V6(_) => (96, 97, 128),
        };
        if bits < least || bits > most {
            return None;
        }
        Some((canonical, bits.wrapping_sub(before).min(if canonical.v4 { 32 } else { 128 })))
    }

    /// The key of its prefix: `v4` bits of an IPv4 address, `v6` bits of an IPv6 one. None if it has fewer.
    #[inline]
    pub fn prefix_of(&self, v4: u8, v6: u8) -> Option<PrefixKey> {
        let (bits, most) = if self.v4 { (v4, 32) } else { (v6, 128) };
        if bits > most {
            return None;
        }
        Some(self.prefix(bits))
    }

    /// The key of its prefix of this length. A length above that of the address means the whole address.
    pub fn prefix(&self, bits: u8) -> PrefixKey {
        let (words, length) = self.prefix_words(bits);
        let mut key = PrefixKey { bytes: [0; 18], length };
        let words = key.bytes.chunks_mut(8).zip(words);
        words.for_each(|(to, word)| to.copy_from_slice(word.to_le_bytes().get(..to.len()).unwrap_or(&[])));
        key
    }

    /// Returns the key of its prefix as little-endian words, 0 behind its end, and its length.
    #[inline(always)]
    pub(crate) fn prefix_words(&self, bits: u8) -> ([u64; 3], u8) {
        let (family, most) = if self.v4 { (4, 32) } else { (6, 128) };
        let ([first, last], bits) = (self.words(), bits.min(most));
        // Requests ask for the same lengths again and again, so that the processor predicts this branch.
        let (first, last) = match bits > 64 {
            true => (first, last & kept(bits - 64)),
            false => (first & kept(bits), 0),
        };
        let head = [first << 16 | (bits as u64) << 8 | family, last << 16 | first >> 48];
        ([head[0], head[1], last >> 48], 2 + ((bits + 7) >> 3))
    }

    /// Makes it of its bytes as little-endian words.
    #[inline(always)]
    fn of(v4: bool, [first, last]: [u64; 2]) -> Address {
        let mut bytes = [0; 16];
        let (to_first, to_last) = bytes.split_at_mut(8);
        to_first.copy_from_slice(&first.to_le_bytes());
        to_last.copy_from_slice(&last.to_le_bytes());
        Address { v4, bytes }
    }

    /// Returns its bytes as little-endian words.
    #[inline(always)]
    pub(crate) fn words(&self) -> [u64; 2] {
        let whole = u128::from_le_bytes(self.bytes);
        [whole as u64, (whole >> 64) as u64]
    }
}

/// Returns the mask of the first `bits` bits, at most 64, of 8 bytes in network order that were loaded little-endian.
#[inline(always)]
const fn kept(bits: u8) -> u64 {
    match bits {
        0 => 0,
        bits => (i64::MIN >> (bits - 1)).swap_bytes() as u64,
    }
}

/// Holds the bytes that identify a prefix: family, length, and the prefix itself. Made by [`Address::prefix`].
///
/// ```
/// use tatcell::Address;
/// let host = Address::from([192, 0, 2, 1]);
/// assert_eq!(host.prefix(24), Address::from([192, 0, 2, 200]).prefix(24));
/// assert_ne!(host.prefix(24).as_ref(), host.prefix(32).as_ref());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Aligned, so that the compiler stores and moves it in whole words: a check loads the words just after.
#[repr(C, align(8))]
pub struct PrefixKey {
    bytes: [u8; 18],
    length: u8,
}

impl AsRef<[u8]> for PrefixKey {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // All bytes are a key that no other prefix has.
        self.bytes.get(..self.length as usize).unwrap_or_else(|| impossible!(&self.bytes))
    }
}

impl From<[u8; 4]> for Address {
    fn from(bytes: [u8; 4]) -> Address {
        Address::of(true, [u32::from_le_bytes(bytes).into(), 0])
    }
}

impl From<[u8; 16]> for Address {
    fn from(bytes: [u8; 16]) -> Address {
        let whole = u128::from_le_bytes(bytes);
        let [first, last] = [whole as u64, (whole >> 64) as u64];
        let (high, low) = (first.swap_bytes(), last.swap_bytes());
        // 6to4, 2002::/16.
        if high >> 48 == 0x2002 {
            return Address::of(true, [u64::from(((high >> 16) as u32).swap_bytes()), 0]);
        }
        // IPv4-mapped, ::ffff:0:0/96, and NAT64, 64:ff9b::/96.
        if high == 0 && low >> 32 == 0xffff || high == 0x0064_ff9b_0000_0000 && low >> 32 == 0 {
            return Address::of(true, [u64::from((low as u32).swap_bytes()), 0]);
        }
        Address::of(false, [first, last])
    }
}

impl From<Ipv4Addr> for Address {
    fn from(address: Ipv4Addr) -> Address {
        Address::from(address.octets())
    }
}

impl From<Ipv6Addr> for Address {
    fn from(address: Ipv6Addr) -> Address {
        Address::from(address.octets())
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Address {
        match address {
            IpAddr::V4(address) => Address::from(address),
            IpAddr::V6(address) => Address::from(address),
        }
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;
    use crate::impossible::tests::answered;

    #[test]
    fn a_prefix_of_a_wrong_length_is_still_a_key_of_its_own() {
        let wrong = |octet| PrefixKey { length: 19, ..Address::from([192, 0, octet, 1]).prefix(24) };
        answered(|| assert_ne!(wrong(2).as_ref(), wrong(3).as_ref()));
    }
}

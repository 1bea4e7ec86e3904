//! The prefixes of an address, hashed with keyed AES.
//!
//! ```text
//!  byte of the key   0        1        2 ... 15                      16, 17
//!  holds             family   length   the address, by a mask of     its last two bytes, if the prefix has
//!                                      the bits that the prefix has  more than 112 bits
//! ```
//!
//! A ladder asks for the same lengths again and again, so it holds a [`Cut`] for each.

use super::address::Address;
use super::aes::{AesKeys, State};

/// Returns the hash of the key of one prefix, [`Address::prefix_words`]. Where the length is a constant, its
/// mask is one, too: this is faster than masks in memory then.
#[inline(always)]
pub(crate) fn hash_words(keys: &AesKeys, ([low, high, tail], length): ([u64; 3], u8)) -> u64 {
    let [k0, k1, k2, k3, k4, k5] = &keys.keys;
    let mut state = State::of([k0[0] ^ length as u64 ^ low, k0[1] ^ high]);
    state = state.round(k1).round(k2).round(k3).round(k4);
    if length > 16 {
        state = state.xor(State::of([tail, 0])).round(k1).round(k2).round(k3).round(k4);
    }
    state.round(k5).low()
}

/// What an address keeps in the key of a prefix of one length, and the bytes before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Where the mask of the first 16 bytes of the key is in [`KEPT`].
    mask: u8,
    /// The family, with the length of the key as it is mixed in; then the length of the prefix.
    head: u16,
}

impl Cut {
    /// A length above that of the address means the whole address.
    #[inline(always)]
    pub const fn new(v4: bool, bits: u8) -> Cut {
        let (family, most) = if v4 { (4, 32) } else { (6, 128) };
        let bits = if bits < most { bits } else { most };
        let length = 2 + ((bits + 7) >> 3);
        Cut { mask: (bits & 7) << 5 | (16 - (bits >> 3)), head: (bits as u16) << 8 | family ^ length as u16 }
    }

    /// Returns the length of the prefix.
    #[inline(always)]
    pub const fn bits(self) -> u8 {
        (self.head >> 8) as u8
    }
}

/// Eight rows, one for each number of bits beyond whole bytes: 18 whole bytes, those bits, and bytes of which nothing
/// is kept. 16 bytes follow each index that a `u8` can be.
#[repr(align(64))]
struct Kept([u8; 256 + 16]);
static KEPT: Kept = Kept({
    let (mut bytes, mut at) = ([0; 256 + 16], 0);
    while at < 256 {
        bytes[at] = match at % 32 {
            0..18 => 0xff,
            18 => !(0xff >> (at / 32)),
            _ => 0,
        };
        at += 1;
    }
    bytes
});

/// An address of which several prefixes are hashed.
#[derive(Clone, Copy)]
pub(crate) struct Whole {
    /// The first 14 bytes of the address, where the key of a prefix has them.
    head: State,
    /// The last two.
    tail: u16,
}

impl Whole {
    #[inline(always)]
    pub fn of(address: &Address) -> Whole {
        let [first, last] = address.words();
        Whole { head: State::of([first << 16, last << 16 | first >> 48]), tail: (last >> 48) as u16 }
    }

    /// Returns the hash of the key of a prefix, [`Address::prefix`].
    #[inline(always)]
    pub fn hash(&self, keys: &AesKeys, cut: Cut) -> u64 {
        let [k0, k1, k2, k3, k4, k5] = &keys.keys;
        let Kept(kept) = &KEPT;
        let mask = kept.get(cut.mask as usize..).and_then(|kept| kept.first_chunk());
        let mut state = self.head.and(mask.unwrap_or_else(|| impossible!(&[0xff; 16])));
        state = state.xor(State::at(k0)).xor(State::of([cut.head.into(), 0]));
        state = state.round(k1).round(k2).round(k3).round(k4);
        if cut.bits() > 112 {
            let tail = self.tail & (u16::MAX << (128 - cut.bits())).swap_bytes();
            state = state.xor(State::of([tail.into(), 0])).round(k1).round(k2).round(k3).round(k4);
        }
        state.round(k5).low()
    }
}

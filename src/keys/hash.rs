//! Maps a key to a 64-bit hash, and a hash to line and tag.
//!
//! ```text
//!  hash   63                32 31            t t-1        0
//!        [    line: high 32   |                |    tag    ]
//!
//!  home line = (high32 * lines) >> 32          (multiply-shift: any even number of lines)
//!  set       = home line and home line ^ 1
//!  tag       = low t bits, 0 becoming 1
//! ```
//!
//! This mapping is ABI: caller-supplied hashes, shared images and saved images depend on it.
//!
//! A table shows which keys collide, so the hash must be keyed with a secret: if an attacker knows the hash, he can
//! fill the set of a victim. The hash of a network card (Toeplitz RSS) is linear, so it is not enough.
#![forbid(unsafe_code)]

use core::hash::Hasher as _;

use siphasher::sip::SipHasher13;

use super::address::Address;
use super::aes::{self, AesKeys};
use super::prefixes::{self, Cut, Whole};

/// Says how the keys of a table are hashed. The image stores the number.
///
/// ```
/// use tatcell::HashKind;
/// let fastest = if HashKind::Aes.is_available() { HashKind::Aes } else { HashKind::SipHash13 };
/// assert!(fastest.is_available());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum HashKind {
    /// SipHash-1-3 of the key's bytes under the table's secret seed.
    #[default]
    SipHash13 = 0,
    /// The caller hashes: only the `_hash` calls work, and no seed is needed. Use a keyed hash.
    Caller = 1,
    /// Four rounds of AES under keys made from the table's secret seed. It takes a tenth of the time of SipHash, and is
    /// refused if the processor has no AES.
    ///
    /// For keys of one length, such as addresses. If strangers choose keys of several lengths, use SipHash: some keys
    /// of different lengths collide under every seed, such as the empty key and the key of one byte 1.
    Aes = 2,
}

impl HashKind {
    pub(crate) const fn from_number(n: u8) -> Option<HashKind> {
        match n {
            0 => Some(HashKind::SipHash13),
            1 => Some(HashKind::Caller),
            2 => Some(HashKind::Aes),
            _ => None,
        }
    }

    /// Returns whether this processor can compute the hash. The caller's own hash is always available.
    pub fn is_available(self) -> bool {
        !matches!(self, HashKind::Aes) || aes::available()
    }
}

/// The secret of a table: 16 bytes, as two little-endian words.
#[derive(Clone, Copy)]
pub(crate) struct Seed {
    k0: u64,
    k1: u64,
}

impl Seed {
    pub const fn new(bytes: &[u8; 16]) -> Seed {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *bytes;
        Seed {
            k0: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            k1: u64::from_le_bytes([i, j, k, l, m, n, o, p]),
        }
    }

    /// Returns SipHash-1-3 of `key`.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.k0, self.k1);
        hasher.write(key);
        hasher.finish()
    }

    /// Does the same as [`hash`](Seed::hash), for a key by value: a key in registers stays there until the call.
    #[inline(never)]
    fn hash_value<const N: usize>(&self, key: [u8; N]) -> u64 {
        self.hash(&key)
    }

    #[inline(never)]
    fn hash_any(&self, key: &[u8]) -> u64 {
        self.hash(key)
    }

    /// Makes six round keys; each half is a hash of its own.
    fn aes_keys(&self) -> AesKeys {
        let half = |i: usize, j: usize| self.hash(&[b'a', b'e', b's', i as u8, j as u8]);
        AesKeys::new(core::array::from_fn(|i| [half(i, 0), half(i, 1)]))
    }

    /// Returns a value that the image stores, so that another process can check that it has the same seed. One hash of
    /// a fixed string reveals nothing about the hashes of other strings.
    pub fn check_value(&self) -> u64 {
        self.hash(b"tatcell seed check")
    }
}

/// Why there is no hasher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoHasher {
    /// This processor cannot compute the hash.
    Unavailable,
    /// A keyed hash needs a seed.
    MissingSeed,
}

/// How a table hashes, with its keys.
#[derive(Clone, Copy)]
pub(crate) enum Hasher {
    // First, so that one test finds it.
    /// AES on a processor for which [`aes::is_short`] is true.
    Short(AesKeys),
    Aes(AesKeys),
    Sip(Seed, #[allow(dead_code)] Zeros<{ AES_WORDS - 2 }>),
    Caller(#[allow(dead_code)] Zeros<AES_WORDS>),
}

/// The size of the round keys in words.
const AES_WORDS: usize = size_of::<AesKeys>() / size_of::<u64>();

/// Fills the bytes in which another kind has keys. A handle of C is the caller's memory, and the caller may compare or
/// store all of it: it must not contain old bytes of the stack.
#[derive(Clone, Copy)]
pub(crate) struct Zeros<const N: usize>(#[allow(dead_code)] [u64; N]); // copied, not read

impl Hasher {
    /// Makes the hasher of a kind, and the value by which an image recognises its seed.
    pub fn new(kind: HashKind, seed: Option<&[u8; 16]>) -> Result<(Hasher, u64), NoHasher> {
        if !kind.is_available() {
            return Err(NoHasher::Unavailable);
        }
        let seed = match (kind, seed) {
            (HashKind::Caller, _) => return Ok((Hasher::none(), 0)),
            (_, None) => return Err(NoHasher::MissingSeed),
            (_, Some(seed)) => Seed::new(seed),
        };
        let check = seed.check_value();
        Ok(match kind {
            HashKind::Aes if aes::is_short() => (Hasher::Short(seed.aes_keys()), check),
            HashKind::Aes => (Hasher::Aes(seed.aes_keys()), check),
            _ => (Hasher::Sip(seed, Zeros([0; AES_WORDS - 2])), check),
        })
    }

    /// Makes the hasher of a caller who only looks, and has no seed: it hashes nothing.
    pub const fn none() -> Hasher {
        Hasher::Caller(Zeros([0; AES_WORDS]))
    }

    /// Does the same as [`hash`](Hasher::hash) for 4 or 16 bytes. Only the hash is out of line: with a further call for
    /// the choice SipHash took 16 instructions more, and AES two less.
    #[inline(always)]
    pub fn hash_whole<const N: usize>(&self, key: [u8; N]) -> Option<u64> {
        match self {
            Hasher::Sip(seed, _) => Some(seed.hash_value(key)),
            Hasher::Short(keys) | Hasher::Aes(keys) => Some(aes::hash_value(keys, key)),
            Hasher::Caller(_) => None,
        }
    }

    /// Hashes the key of a prefix, [`Address::prefix`]; returns `None` if the caller hashes.
    #[inline(always)]
    pub fn hash_prefix(&self, address: &Address, bits: u8) -> Option<u64> {
        match self {
            Hasher::Short(keys) | Hasher::Aes(keys) => {
                Some(prefixes::hash_words(keys, address.prefix_words(bits)))
            }
            Hasher::Sip(seed, _) => Some(seed.hash_any(address.prefix(bits).as_ref())),
            Hasher::Caller(_) => None,
        }
    }

    /// Does the same as [`hash`](Hasher::hash) for a key whose request hashes only few: no round key is in a register.
    #[allow(dead_code)] // the C layer asks
    #[inline(always)]
    pub fn hash_one(&self, key: &[u8]) -> Option<u64> {
        match self {
            Hasher::Short(keys) => aes::hash_short(keys, key).or_else(|| Some(aes::any(keys, key))),
            _ => self.hash_other(key),
        }
    }

    #[inline(never)]
    fn hash_other(&self, key: &[u8]) -> Option<u64> {
        self.hash(key)
    }

    /// Hashes the keys of many prefixes, and calls `then` with the number and the hash of each. The kind is chosen once
    /// for all.
    #[inline(always)]
    pub fn hash_prefixes(
        &self,
        address: &Address,
        cuts: impl Iterator<Item = Cut>,
        to: &mut [u64],
        then: impl Fn(usize, u64),
    ) -> Option<()> {
        match self {
            Hasher::Short(keys) | Hasher::Aes(keys) => {
                let whole = Whole::of(address);
                for (i, (hash, cut)) in to.iter_mut().zip(cuts).enumerate() {
                    *hash = whole.hash(keys, cut);
                    then(i, *hash);
                }
            }
            Hasher::Sip(seed, _) => {
                for (i, (hash, cut)) in to.iter_mut().zip(cuts).enumerate() {
                    *hash = seed.hash_any(address.prefix(cut.bits()).as_ref());
                    then(i, *hash);
                }
            }
            Hasher::Caller(_) => return None,
        }
        Some(())
    }

    /// Returns whether it hashes keys, so that the caller does not.
    #[inline(always)]
    pub fn is_own(&self) -> bool {
        !matches!(self, Hasher::Caller(_))
    }

    /// Hashes a key; returns `None` if the caller hashes.
    #[inline(always)]
    pub fn hash(&self, key: &[u8]) -> Option<u64> {
        match self {
            Hasher::Short(keys) | Hasher::Aes(keys) => Some(aes::hash(keys, key)),
            Hasher::Caller(_) => None,
            // The usual lengths go by value, so that the caller's key need not have an address.
            Hasher::Sip(seed, _) => Some(match (key.first_chunk::<16>(), key.first_chunk::<4>()) {
                (Some(whole), _) if key.len() == 16 => seed.hash_value(*whole),
                (_, Some(whole)) if key.len() == 4 => seed.hash_value(*whole),
                _ => seed.hash_any(key),
            }),
        }
    }
}

/// Returns the home line of a hash; below `lines`.
#[inline(always)]
pub(crate) const fn home_line(hash: u64, lines: u32) -> usize {
    home_of(hash, lines as u64)
}

/// Does the same as [`home_line`] for a number of lines that is 64 bits wide; it is below 2^32.
#[inline(always)]
pub(crate) const fn home_of(hash: u64, lines: u64) -> usize {
    (((hash >> 32) * lines) >> 32) as usize
}

/// Returns the hash of a key's second debt in a table, from the hash of its first. For single calls on the second debt:
/// checks, charges, resets.
///
/// This is part of the ABI, as the hash itself is: the finaliser of SplitMix64, which is one to one.
///
/// ```
/// use tatcell::{second_hash, LimitSpec, Line, Table, TableOptions};
/// let spec = LimitSpec::new(10, 1_000_000_000, 20);
/// let lines = [const { Line::EMPTY }; 66];
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// let limit = table.limit(&spec)?;
/// let hash = table.hash(b"192.0.2.1")?;
/// assert!(table.check_hash(&limit, 0, second_hash(hash), 20)?.passes());
/// assert_eq!(table.peek(&limit, 0, hash, 1)?.remaining, 20); // the first debt is another one
/// # Ok::<(), tatcell::TableError>(())
/// ```
pub const fn second_hash(hash: u64) -> u64 {
    let z = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_its_number_alone() {
        for kind in [HashKind::SipHash13, HashKind::Caller, HashKind::Aes] {
            assert_eq!(HashKind::from_number(kind as u8), Some(kind));
        }
        assert!((3..=u8::MAX).all(|number| HashKind::from_number(number).is_none()));
    }

    #[test]
    fn aes_is_available_where_the_processor_has_it_and_the_others_everywhere() {
        assert!(HashKind::SipHash13.is_available() && HashKind::Caller.is_available());
        #[cfg(tatcell_sse2)]
        assert_eq!(HashKind::Aes.is_available(), std::is_x86_feature_detected!("aes"));
        #[cfg(not(any(tatcell_sse2, tatcell_aes_arm)))]
        assert!(!HashKind::Aes.is_available());
    }

    #[test]
    fn a_prefix_hashes_as_its_key() {
        let seed = Some(b"0123456789abcdef");
        let bytes: [u8; 16] = core::array::from_fn(|i| (i * 37 + 0x21) as u8);
        for kind in [HashKind::SipHash13, HashKind::Aes, HashKind::Caller] {
            let Ok((hasher, _)) = Hasher::new(kind, seed) else { continue };
            for address in [Address::from(bytes), Address::from([192, 0, 2, 200])] {
                for bits in 0..=130 {
                    let (whole, key) = (hasher.hash_prefix(&address, bits), address.prefix(bits));
                    assert_eq!(whole, hasher.hash(key.as_ref()), "{kind:?}, {bits} bits");
                    let (cuts, mut hashes) = ([Cut::new(address.is_v4(), bits); 2], [0; 2]);
                    let many = hasher.hash_prefixes(&address, cuts.into_iter(), &mut hashes, |_, _| ());
                    assert_eq!(many.map(|()| hashes), whole.map(|hash| [hash; 2]), "{kind:?}, {bits} bits");
                }
            }
        }
    }

    #[test]
    fn a_whole_key_hashes_as_a_slice_of_it() {
        let seed = Some(b"0123456789abcdef");
        for kind in [HashKind::SipHash13, HashKind::Aes, HashKind::Caller] {
            let Ok((hasher, _)) = Hasher::new(kind, seed) else { continue };
            let (four, sixteen) = (*b"four", *b"sixteen bytes ..");
            assert_eq!(hasher.hash_whole(four), hasher.hash(&four), "{kind:?}");
            assert_eq!(hasher.hash_whole(sixteen), hasher.hash(&sixteen), "{kind:?}");
            assert_eq!(hasher.hash(&four).is_none(), kind == HashKind::Caller);
        }
    }
}

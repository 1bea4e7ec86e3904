//! The keys of an input, numbered. Exact up to a number of keys, beyond that a sample of them, chosen by their hash.
//!
//! When there are too many keys, half of them go, by one more bit of their hash. A key that is left has been there from
//! its first record on, so what is counted of it is exact; only how many keys there are is then estimated.

use hashbrown::HashTable;

/// The number of a key that is not in the sample.
pub const NO_KEY: u32 = u32::MAX;

/// Bytes of a key that stand next to its hash. An IPv6 address with its length has 18.
const SHORT: usize = 22;

/// A key: its bytes, if they are few, else where they stand. One cache line says whether it is the one looked for.
#[derive(Clone, Copy)]
struct Known {
    hash: u64,
    /// Up to [`SHORT`], else [`LONG`].
    length: u8,
    bytes: [u8; SHORT],
}

/// The length of a key that stands elsewhere: `bytes` begins with where it starts and ends.
const LONG: u8 = u8::MAX;

/// Bytes that long keys may have for each of the most keys: more are too many keys, too.
pub const LONG_BYTES: usize = 128;

/// Numbers keys from 0 on.
pub struct Keys {
    index: HashTable<u32>,
    known: Vec<Known>,
    /// The bytes of long keys.
    long: Vec<u8>,
    most: usize,
    /// Bits of the hash that must be 0.
    level: u32,
    /// The hashes of keys that are always kept, sorted.
    pinned: Vec<u64>,
    /// How many of the numbered keys, and of the bytes of long ones, are theirs: they do not count as too many.
    kept: (usize, usize),
}

/// Spreads the hash anew: the tables use its bits for places and tags.
fn spread(hash: u64) -> u64 {
    (hash ^ (hash >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Keys {
    /// Starts with room for `most` keys; keys with a pinned hash are always kept.
    pub fn new(most: usize, mut pinned: Vec<u64>) -> Keys {
        pinned.sort_unstable();
        Keys {
            index: HashTable::new(),
            known: Vec::new(),
            long: Vec::new(),
            most: most.clamp(1, NO_KEY as usize - 1),
            level: 0,
            pinned,
            kept: (0, 0),
        }
    }

    /// Returns how many keys are numbered.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns for how many keys each numbered one stands.
    pub fn one_in(&self) -> u64 {
        1 << self.level
    }

    fn in_sample(&self, hash: u64) -> bool {
        spread(hash).leading_zeros() >= self.level
    }

    /// Returns for how many keys this one stands: 0 for one that is here only because it is pinned.
    pub fn weight(&self, key: usize) -> u64 {
        if self.in_sample(self.known[key].hash) {
            self.one_in()
        } else {
            0
        }
    }

    /// Returns the bytes of a key.
    pub fn bytes(&self, key: usize) -> &[u8] {
        let known = &self.known[key];
        if known.length != LONG {
            return &known.bytes[..usize::from(known.length)];
        }
        let place =
            |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| known.bytes[at + byte])) as usize;
        &self.long[place(0)..place(8)]
    }

    /// Returns the number of a key that is there.
    pub fn find(&self, bytes: &[u8], hash: u64) -> Option<u32> {
        let is = |key: &u32| self.known[*key as usize].hash == hash && self.bytes(*key as usize) == bytes;
        self.index.find(hash, is).copied()
    }

    /// Returns the number of a key, and whether it is new.
    pub fn number(&mut self, bytes: &[u8], hash: u64) -> (u32, bool) {
        let is_pinned = self.pinned.binary_search(&hash).is_ok();
        if self.level > 0 && !is_pinned && !self.in_sample(hash) {
            return (NO_KEY, false);
        }
        if let Some(key) = self.find(bytes, hash) {
            return (key, false);
        }
        let key = self.known.len() as u32;
        let mut known = Known { hash, length: bytes.len() as u8, bytes: [0; SHORT] };
        if bytes.len() <= SHORT {
            known.bytes[..bytes.len()].copy_from_slice(bytes);
        } else {
            let (start, end) = (self.long.len() as u64, (self.long.len() + bytes.len()) as u64);
            known.length = LONG;
            known.bytes[..8].copy_from_slice(&start.to_le_bytes());
            known.bytes[8..16].copy_from_slice(&end.to_le_bytes());
            self.long.extend_from_slice(bytes);
        }
        if is_pinned {
            self.kept.0 += 1;
            self.kept.1 += if known.length == LONG { bytes.len() } else { 0 };
        }
        self.known.push(known);
        self.index.insert_unique(hash, key, |key| self.known[*key as usize].hash);
        (key, true)
    }

    /// Returns whether there are too many keys, or too many bytes of long ones, besides those that are always kept. A
    /// single key of up to 1 MiB may stay.
    pub fn is_over(&self) -> bool {
        let bytes = self.most.saturating_mul(LONG_BYTES).max(1 << 20);
        self.known.len() - self.kept.0 > self.most || self.long.len() - self.kept.1 > bytes
    }

    /// Drops half of the keys. Returns the new number of each old one.
    pub fn halve(&mut self) -> Vec<u32> {
        self.level += 1;
        let mut kept = Keys::new(self.most, std::mem::take(&mut self.pinned));
        kept.level = self.level;
        let to = (0..self.len()).map(|key| kept.number(self.bytes(key), self.known[key].hash).0).collect();
        *self = kept;
        to
    }

    /// Returns about how many bytes the keys take.
    pub fn memory(&self) -> usize {
        self.index.allocation_size() + self.known.capacity() * size_of::<Known>() + self.long.capacity()
    }
}

/// Counts keys by their hashes: exactly up to a number of keys, and beyond that by a sample of them.
pub struct Distinct {
    seen: HashTable<u64>,
    most: usize,
    /// Bits of the hash that must be 0.
    level: u32,
}

impl Distinct {
    /// Starts with room for `most` keys.
    pub fn new(most: usize) -> Distinct {
        Distinct { seen: HashTable::new(), most: most.max(1), level: 0 }
    }

    /// Counts a key, the first time that it comes.
    pub fn add(&mut self, hash: u64) {
        let in_sample = |hash: u64, level: u32| spread(hash).leading_zeros() >= level;
        if !in_sample(hash, self.level) || self.seen.find(hash, |known| *known == hash).is_some() {
            return;
        }
        self.seen.insert_unique(hash, hash, |known| *known);
        while self.seen.len() > self.most && self.level < 64 {
            self.level += 1;
            let level = self.level;
            self.seen.retain(|known| in_sample(*known, level));
        }
    }

    /// Returns how many keys came. It is an estimate if [`one_in`](Self::one_in) is above 1.
    pub fn count(&self) -> u64 {
        (self.seen.len() as u64).saturating_mul(self.one_in())
    }

    /// Returns for how many keys each counted one stands.
    pub fn one_in(&self) -> u64 {
        1u64.checked_shl(self.level).unwrap_or(u64::MAX)
    }
}

/// Keeps what belongs to the keys that are left, `width` values each.
pub fn keep<T: Copy>(values: &mut Vec<T>, width: usize, to: &[u32]) {
    let mut kept = 0;
    for (old, new) in to.iter().enumerate() {
        if *new != NO_KEY {
            values.copy_within(old * width..(old + 1) * width, kept * width);
            kept += 1;
        }
    }
    values.truncate(kept * width);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(key: u64) -> u64 {
        key.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(23).wrapping_mul(0xca5a_8263_9512_1157)
    }

    #[test]
    fn a_sample_keeps_what_it_counts_exact() {
        let mut keys = Keys::new(500, vec![hash(17), hash(18)]);
        let mut counts: Vec<u64> = Vec::new();
        for round in 0..5 {
            for key in 0..4_000u64 {
                let (number, new) = keys.number(&key.to_le_bytes(), hash(key));
                if new {
                    counts.push(0);
                }
                if number != NO_KEY {
                    counts[number as usize] += 1;
                }
                while keys.is_over() {
                    let to = keys.halve();
                    keep(&mut counts, 1, &to);
                }
            }
            assert!(counts.iter().all(|count| *count == round + 1), "round {round}");
        }
        assert_eq!(counts.len(), keys.len());
        assert!(keys.len() <= 500 && keys.one_in() >= 8);
        assert!(keys.find(&17u64.to_le_bytes(), hash(17)).is_some(), "a pinned key stays");
        let estimate: u64 = (0..keys.len()).map(|key| keys.weight(key)).sum();
        assert!((3_000..5_000).contains(&estimate), "{estimate} keys of 4000");
    }

    #[test]
    fn keys_that_are_always_kept_are_never_too_many() {
        let mut keys = Keys::new(1, (0..200).map(hash).collect());
        for key in (0..200u64).chain([1_000]) {
            keys.number(&[&key.to_le_bytes()[..], &[b'x'; 30_000]].concat(), hash(key));
            assert!(!keys.is_over(), "{key}");
        }
        keys.number(b"another", hash(1_001));
        while keys.is_over() {
            keys.halve();
        }
        assert!(
            keys.len() <= 201 && keys.one_in() < 1 << 20,
            "{} keys, one in {}",
            keys.len(),
            keys.one_in()
        );
        assert!((0..200).all(|key: u64| {
            keys.find(&[&key.to_le_bytes()[..], &[b'x'; 30_000]].concat(), hash(key)).is_some()
        }));
    }

    #[test]
    fn distinct_keys_are_counted_exactly_until_there_are_too_many() {
        let mut distinct = Distinct::new(1_000);
        for key in (0..1_000).chain(0..1_000) {
            distinct.add(hash(key));
        }
        assert_eq!((distinct.count(), distinct.one_in()), (1_000, 1));
        for key in 0..20_000 {
            distinct.add(hash(key));
        }
        assert!((18_000..22_000).contains(&distinct.count()), "{}", distinct.count());
        assert!(distinct.one_in() >= 32 && distinct.seen.len() <= 1_000);
    }

    #[test]
    fn long_keys_are_sampled_by_their_bytes() {
        let mut keys = Keys::new(10_000, Vec::new());
        for key in 0..10_000u64 {
            keys.number(&[&key.to_le_bytes()[..], &[b'x'; 992]].concat(), hash(key));
            while keys.is_over() {
                keys.halve();
            }
            assert!(keys.memory() < 3 * 10_000 * LONG_BYTES, "{} bytes of {key} keys", keys.memory());
        }
        assert!((500..=1_280).contains(&keys.len()) && keys.one_in() == 8, "{} keys", keys.len());
    }

    #[test]
    fn keys_of_one_hash_stay_apart() {
        let mut keys = Keys::new(10, Vec::new());
        assert_eq!(keys.number(b"a", 7), (0, true));
        assert_eq!(keys.number(b"b", 7), (1, true));
        assert_eq!(keys.number(b"a", 7), (0, false));
        let long = [b'x'; 300];
        assert_eq!(keys.number(&long, 7), (2, true));
        assert_eq!(keys.number(&long[..299], 7), (3, true));
        assert_eq!(keys.number(&long, 7), (2, false));
        let lengths: Vec<_> = (0..4).map(|key| keys.bytes(key).len()).collect();
        assert_eq!((keys.bytes(0), keys.bytes(1), lengths), (&b"a"[..], &b"b"[..], vec![1, 1, 300, 299]));
    }
}

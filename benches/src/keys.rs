//! Keys and the order in which they come: the same for ours and for the peers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Loaded for each key, so that no compiler hashes the prefix in advance.
static PREFIX: AtomicU64 = AtomicU64::new(u64::from_ne_bytes(*b"\x20\x01\x0d\xb8\x00\x00\x00\x01"));

/// A 16-byte key, as an IPv6 address is one: a constant prefix and a varying half.
#[inline(always)]
pub fn key(id: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&PREFIX.load(Relaxed).to_ne_bytes());
    key[8..].copy_from_slice(&id.to_be_bytes());
    key
}

/// A small generator with a fixed seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// An endless stream of key numbers below `n`, uniform: a fixed random sequence, repeated with other keys.
///
/// It is read in order, four bytes a decision, so that the stream itself costs no cache miss. Each repetition moves
/// all numbers on: a key that chance made frequent would otherwise stay frequent for ever and exceed its limit.
pub struct Stream {
    ids: Vec<u32>,
    at: usize,
    turn: Turn,
}

/// How far the numbers of this repetition are moved on.
#[derive(Clone, Copy)]
pub struct Turn {
    by: u32,
    n: u32,
}

impl Turn {
    #[inline(always)]
    pub fn id(self, raw: u32) -> u64 {
        let id = raw + self.by;
        u64::from(if id >= self.n { id - self.n } else { id })
    }
}

impl Stream {
    pub fn uniform(n: u32) -> Stream {
        let length = if n <= 4096 { 1 << 17 } else { 1 << 21 };
        let mut random = Random(u64::from(n));
        let ids = (0..length).map(|_| (((random.next() >> 32) * u64::from(n)) >> 32) as u32).collect();
        Stream { ids, at: 0, turn: Turn { by: 0, n } }
    }

    /// The next `n` raw numbers, at most 2^17 of them (2^21 for more than 4096 keys); `Turn::id` makes keys of them.
    #[inline(always)]
    pub fn take(&mut self, n: usize) -> (&[u32], Turn) {
        if self.at + n > self.ids.len() {
            self.at = 0;
            // 0.618 n, so that repetitions spread evenly.
            let by = u64::from(self.turn.by) + u64::from(self.turn.n) * 618_034 / 1_000_000;
            self.turn.by = (by % u64::from(self.turn.n)) as u32;
        }
        let from = self.at;
        self.at = from + n;
        (&self.ids[from..from + n], self.turn)
    }
}

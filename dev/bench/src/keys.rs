//! Keys, and the stream of a fixture, which is their order: the same for ours and for the peers.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// Loaded for each key, by a read that no compiler leaves out: half of a key is not to be known in advance.
static PREFIX: AtomicU64 = AtomicU64::new(u64::from_ne_bytes(*b"\x20\x01\x0d\xb8\x00\x00\x00\x01"));
static NETWORK: AtomicU32 = AtomicU32::new(10 << 24);

/// A 16-byte key, as an IPv6 address is one: a constant prefix and a varying half.
#[inline(always)]
pub fn key(id: u64) -> [u8; 16] {
    let mut key = [0; 16];
    // SAFETY: a word that nobody writes.
    let prefix = unsafe { PREFIX.as_ptr().read_volatile() };
    key[..8].copy_from_slice(&prefix.to_ne_bytes());
    key[8..].copy_from_slice(&id.to_be_bytes());
    key
}

/// A 4-byte key: an IPv4 address of 10.0.0.0/8, for numbers below 2^24.
#[inline(always)]
pub fn key4(id: u64) -> [u8; 4] {
    // SAFETY: a word that nobody writes.
    let network = unsafe { NETWORK.as_ptr().read_volatile() };
    (network | id as u32).to_be_bytes()
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

    /// Below n.
    pub fn below(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32
    }

    pub fn shuffle(&mut self, ids: &mut [u32]) {
        for i in (1..ids.len()).rev() {
            ids.swap(i, self.below(i as u32 + 1) as usize);
        }
    }

    /// In [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// An endless stream of key numbers below `n`: a fixed random sequence, repeated.
///
/// It is read in order, four bytes a decision, so that the stream itself costs no cache miss. Each repetition of a
/// uniform stream moves all numbers on: a key that chance made frequent would otherwise stay frequent for ever and
/// exceed its limit.
pub struct Stream {
    ids: Vec<u32>,
    at: usize,
    turn: Turn,
    /// Added to `turn.by` at each repetition.
    stride: u32,
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
        let ids = (0..length).map(|_| random.below(n)).collect();
        // 0.618 n, so that repetitions spread evenly.
        let stride = (u64::from(n) * 618_034 / 1_000_000) as u32;
        Stream { ids, at: 0, turn: Turn { by: 0, n }, stride }
    }

    /// `passes` times all numbers below `n`, each pass in the same random order. Numbers from `known` on grow by `n` a
    /// pass, so that none of them comes twice.
    pub fn passes(n: u32, known: u32, passes: u32) -> Stream {
        let mut order: Vec<u32> = (0..n).collect();
        Random(u64::from(n)).shuffle(&mut order);
        let pass = |p: u32| order.iter().map(move |&id| if id < known { id } else { id + p * n });
        Stream::cycle((0..passes).flat_map(pass).collect())
    }

    /// All numbers below `n` (2^21 at least) in turn, again and again: hashed, they fall anywhere.
    pub fn turns(n: u32) -> Stream {
        let length = 1 << 21;
        Stream { ids: (0..length).collect(), at: 0, turn: Turn { by: 0, n }, stride: length }
    }

    /// Zipf with exponent 1: rank k comes with probability 1 / (k H(n)). Ranks are scattered over the numbers.
    pub fn zipf(n: u32) -> Stream {
        let mut sum = 0.0;
        // upto[k] = H(k), so rank k + 1 owns [upto[k], upto[k + 1]).
        let mut upto = vec![0.0];
        upto.extend((1..=n).map(|k| {
            sum += 1.0 / f64::from(k);
            sum
        }));
        let mut random = Random(u64::from(n));
        let ids = (0..1 << 21).map(|_| scatter(rank(&upto, random.unit() * sum), n)).collect();
        Stream { ids, at: 0, turn: Turn { by: 0, n }, stride: 0 }
    }

    /// These numbers in this order, again and again.
    pub fn cycle(ids: Vec<u32>) -> Stream {
        Stream { ids, at: 0, turn: Turn { by: 0, n: u32::MAX }, stride: 0 }
    }

    /// The next `n` raw numbers, at most 2^17 of them (2^21 for more than 4096 keys); `Turn::id` makes keys of them.
    #[inline(always)]
    pub fn take(&mut self, n: usize) -> (&[u32], Turn) {
        if self.at + n > self.ids.len() {
            self.at = 0;
            let by = u64::from(self.turn.by) + u64::from(self.stride);
            self.turn.by = (by % u64::from(self.turn.n)) as u32;
        }
        let from = self.at;
        self.at = from + n;
        (&self.ids[from..from + n], self.turn)
    }
}

/// H(n), the sum of 1/k up to n.
pub fn harmonic(n: u32) -> f64 {
    (1..=n).map(|k| 1.0 / f64::from(k)).sum()
}

/// The k with upto[k] <= at < upto[k + 1]: estimated by H(k) = ln k + 0.5772, then corrected, so it is exact.
fn rank(upto: &[f64], at: f64) -> u32 {
    let last = upto.len() - 2;
    let mut k = ((at - 0.577_215_664_9).exp() as usize).min(last);
    while k > 0 && upto[k] > at {
        k -= 1;
    }
    while k < last && upto[k + 1] <= at {
        k += 1;
    }
    k as u32
}

/// A fixed permutation of the numbers below n (n not a multiple of the prime).
fn scatter(rank: u32, n: u32) -> u32 {
    (u64::from(rank) * 2_654_435_761 % u64::from(n)) as u32
}

//! The set of visited states: packed into 64-bit words, whole, in the order found.

use super::model::{Pc, Permit, State, Thread, Word, MAX_SLOTS};

/// Words of a packed thread, and of a state before its threads.
pub const PER_THREAD: usize = 3;
pub const BEFORE: usize = 2;

/// That list is the queue as well and, with one parent per state, the trace of a violation.
pub struct Visited {
    pub stride: usize,
    pub words: Vec<u64>,
    pub parents: Vec<u32>,
    table: Vec<u32>,
}

impl Visited {
    pub fn new(threads: usize) -> Visited {
        Visited { stride: BEFORE + PER_THREAD * threads, words: vec![], parents: vec![], table: vec![] }
    }

    fn hash(words: &[u64]) -> usize {
        let mut h = 0u64;
        for w in words {
            h = (h.rotate_left(23) ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        (h ^ h >> 31) as usize
    }

    pub fn len(&self) -> usize {
        self.parents.len()
    }

    pub fn get(&self, i: usize) -> &[u64] {
        &self.words[i * self.stride..(i + 1) * self.stride]
    }

    pub fn insert(&mut self, packed: &[u64], parent: usize) {
        if self.len() * 2 >= self.table.len() {
            let mask = (self.table.len() * 2).max(1 << 12) - 1;
            let mut table = vec![u32::MAX; mask + 1];
            for i in 0..self.len() {
                let mut at = Self::hash(self.get(i)) & mask;
                while table[at] != u32::MAX {
                    at = (at + 1) & mask;
                }
                table[at] = i as u32;
            }
            self.table = table;
        }
        let mask = self.table.len() - 1;
        let mut at = Self::hash(packed) & mask;
        while self.table[at] != u32::MAX {
            if self.get(self.table[at] as usize) == packed {
                return;
            }
            at = (at + 1) & mask;
        }
        self.table[at] = self.len() as u32;
        self.words.extend_from_slice(packed);
        self.parents.push(parent as u32);
    }
}

pub fn pack_thread(t: &Thread) -> [u64; PER_THREAD] {
    let pc = t.pc as u64;
    let small = u64::from(t.script) | u64::from(t.op) << 2 | pc << 5 | u64::from(t.at) << 7;
    let small = small | u64::from(t.own.0) << 9 | u64::from(t.known.0) << 11 | u64::from(t.begun) << 13;
    let seen = t.seen.iter().fold(0, |acc, w| acc << 16 | u64::from(w.0));
    let permits = t.permits.iter().fold(0, |acc, p| {
        assert!(p.tat < 4096, "the permit does not fit its packing");
        acc << 24
            | u64::from(p.tat) << 12
            | u64::from(p.stored) << 4
            | u64::from(p.slot) << 2
            | u64::from(p.void)
    });
    [
        small | u64::from(t.known.1 .0) << 16 | u64::from(t.verdicts) << 32,
        seen | u64::from(t.own.1 .0) << 48,
        permits,
    ]
}

pub fn unpack_thread(w: &[u64]) -> Thread {
    let bits = |from: u32, n: u32| w[0] >> from & ((1 << n) - 1);
    let seen = |i: u32| Word((w[1] >> (32 - 16 * i)) as u16);
    let permit = |i: u32| {
        let p = w[2] >> (24 - 24 * i);
        Permit {
            tat: (p >> 12 & 0xfff) as u16,
            stored: (p >> 4) as u8,
            slot: (p >> 2 & 3) as u8,
            void: p & 1 == 1,
        }
    };
    Thread {
        script: bits(0, 2) as u8,
        op: bits(2, 3) as u8,
        pc: [Pc::Scan, Pc::Act, Pc::Drop, Pc::Look][bits(5, 2) as usize],
        at: bits(7, 2) as u8,
        seen: [seen(0), seen(1), seen(2)],
        own: (bits(9, 2) as u8, Word((w[1] >> 48) as u16)),
        known: (bits(11, 2) as u8, Word(bits(16, 16) as u16)),
        permits: [permit(0), permit(1)],
        verdicts: bits(32, 16) as u16,
        begun: bits(13, 1) == 1,
    }
}

/// Packs a state; threads with equal scripts are interchangeable and kept sorted.
pub fn pack(s: &State, threads: usize, out: &mut Vec<u64>) {
    out.clear();
    out.push(s.slots.iter().fold(0, |acc, w| acc << 16 | u64::from(w.0)));
    out.push(s.highest.iter().fold(u64::from(s.recurred), |acc, v| acc << 16 | u64::from(*v)));
    let mut packed = [[0; PER_THREAD]; 4];
    for (to, t) in packed.iter_mut().zip(&s.threads[..threads]) {
        *to = pack_thread(t);
    }
    // Sorted by script first: only threads with equal scripts are interchangeable.
    for i in 1..threads {
        let mut j = i;
        while j > 0 && (packed[j - 1][0] & 3, packed[j - 1]) > (packed[j][0] & 3, packed[j]) {
            packed.swap(j - 1, j);
            j -= 1;
        }
    }
    packed[..threads].iter().for_each(|t| out.extend_from_slice(t));
}

pub fn unpack(w: &[u64], threads: usize) -> State {
    let mut s = State { recurred: w[1] >> 48 & 1 == 1, ..State::default() };
    for i in 0..MAX_SLOTS {
        let shift = 16 * (MAX_SLOTS - 1 - i);
        s.slots[i] = Word((w[0] >> shift) as u16);
        s.highest[i] = (w[1] >> shift) as u16;
    }
    for i in 0..threads {
        s.threads[i] = unpack_thread(&w[BEFORE + PER_THREAD * i..]);
    }
    s
}

//! Shared by the integration tests: the oracle, the forms under test, a seeded generator.
#![allow(dead_code)] // every test binary uses its own part

pub mod forms;
pub mod oracle;

use tatcell::{Decision, LimitSpec, Line, Table, TableOptions, Verdict};

/// A small generator (SplitMix64): the same numbers on every host.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.next() as u128 * n as u128) >> 64) as u64
    }

    /// A number in `low..=high`.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A number of random magnitude below `2^bits`.
    pub fn scaled(&mut self, bits: u32) -> u64 {
        let width = self.within(0, bits as u64) as u32;
        if width == 0 {
            0
        } else {
            self.next() >> (64 - width)
        }
    }
}

/// What a reservation from `from` on is answered in shadow mode, by the answer without.
pub fn in_shadow(plain: Decision, now: u64, from: u64) -> Decision {
    let (from, flags) = (from.max(now), plain.flags | Decision::SHADOW);
    match plain.verdict {
        Verdict::Conforming if plain.departure == from => plain,
        Verdict::Conforming => {
            Decision { flags, retry_after: plain.departure - now, departure: from, ..plain }
        }
        _ => Decision { verdict: Verdict::Conforming, flags, departure: from, ..plain },
    }
}

/// Prints the seed of a case that fails.
pub struct Seed(pub u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with seed {:#x}", self.0);
        }
    }
}

/// The seed that is to be run again, alone: TATCELL_SEED, as a failure prints it.
pub fn seed_from_environment() -> Option<u64> {
    let text = std::env::var("TATCELL_SEED").ok()?;
    let (digits, radix) = text.strip_prefix("0x").map_or((&*text, 10), |digits| (digits, 16));
    Some(u64::from_str_radix(digits, radix).expect("TATCELL_SEED is a number"))
}

/// Runs `case` with `n` seeds that are the same in every run, or with the one of the environment.
pub fn cases(n: u64, case: impl Fn(&mut Rng)) {
    let again = seed_from_environment();
    for i in 0..again.map_or(n, |_| 1) {
        let seed = again.unwrap_or_else(|| Rng(i).next());
        let _shown = Seed(seed);
        case(&mut Rng(seed));
    }
}

/// A number from the environment, for tests whose size can be chosen.
pub fn size_from(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse::<f64>().map(|n| n as u64).unwrap_or(default),
        Err(_) => default,
    }
}

#[cfg(not(target_has_atomic = "64"))]
pub use portable_atomic::AtomicU64;
#[cfg(target_has_atomic = "64")]
pub use std::sync::atomic::AtomicU64;

/// Zeroed table memory.
pub fn memory(lines: usize) -> Vec<Line> {
    (0..lines).map(|_| Line::EMPTY).collect()
}

/// The raw words of table memory, header first. `Line` is `repr(C)` of eight 64-bit atomics.
pub fn words(lines: &[Line]) -> &[AtomicU64] {
    // SAFETY: the layout of `Line` is 8 atomic words; atomics may be shared.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 8) }
}

/// A hash with this home line (of `lines` slot lines) and this tag.
pub fn hash_of(line: u32, lines: u32, tag: u32) -> u64 {
    // The smallest high half that multiply-shift maps to `line`.
    let high = ((line as u64) << 32).div_ceil(lines as u64);
    high << 32 | tag as u64
}

/// A table of one set, full: slot 0 drained before slot 8 did, and both so long ago that a sweep by `now` may empty
/// them; the others, of tags from 100 on, owe until 4 `t` after `now`.
pub fn two_drained(lines: &[Line], t: u64, now: u64) -> Table<'_> {
    let spec = LimitSpec::new(1, t, 7);
    let table = Table::init(lines, &TableOptions::new(spec).caller_hash().skew(t)).unwrap();
    let limit = table.limit(&spec).unwrap();
    let insert = |line: u32, tag: u32, at: u64, cost: u64| {
        assert!(table.check_hash(&limit, at, hash_of(line, 2, tag), cost).unwrap().passes());
    };
    insert(0, 1, now - 128 * t, 1);
    insert(1, 2, now - 64 * t, 1);
    (0..14).for_each(|i| insert(i % 2, 100 + i, now - t, 5));
    table
}

//! The oracle: an exact token bucket per source in 128-bit integers, run beside the gate over the log of
//! every decision it makes.
//!
//! It holds tokens where the library holds a theoretical arrival time, so the two share no formula. A
//! token bucket is charged with what the gate admitted, not with what the oracle would have: each decision
//! is judged alone, and one wrong verdict does not make later right ones look wrong.

use crate::schedule::{abuser_index, class_of, source_of, Class, ABUSERS, LIMIT_BURST, LIMIT_PER_SEC};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// One unit, in the oracle's measure: at R units a second, a microsecond is worth R of these.
const UNIT: i128 = 1_000_000;
/// Bytes of one decision in the log: u64 time in microseconds, u32 address, u32 verdict.
pub const RECORD_BYTES: usize = 16;

/// What the oracle says of one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Agrees,
    OverAdmitted,
    WronglyRefused,
}

/// One source's exact token bucket.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    level: i128,
    at_us: u64,
}

impl TokenBucket {
    /// Returns a full token bucket.
    pub fn full(now_us: u64) -> Self {
        TokenBucket { level: i128::from(LIMIT_BURST) * UNIT, at_us: now_us }
    }

    /// Judges a verdict of the gate for one unit, and takes the unit if the gate let it pass.
    pub fn judge(&mut self, now_us: u64, passed: bool) -> Judgement {
        let elapsed = i128::from(now_us.saturating_sub(self.at_us));
        self.at_us = self.at_us.max(now_us);
        self.level = (self.level + elapsed * i128::from(LIMIT_PER_SEC)).min(i128::from(LIMIT_BURST) * UNIT);
        let conforms = self.level >= UNIT;
        if passed {
            self.level -= UNIT;
        }
        match (passed, conforms) {
            (true, false) => Judgement::OverAdmitted,
            (false, true) => Judgement::WronglyRefused,
            _ => Judgement::Agrees,
        }
    }
}

/// Everything the log has shown so far.
#[derive(Default)]
pub struct Audit {
    sources: HashMap<u32, TokenBucket>,
    read: u64,
    /// Decisions judged, and how many of them were wrong in each direction.
    pub decisions: u64,
    pub over_admitted: u64,
    pub wrongly_refused: u64,
    /// Log lines that name an address nobody sends from.
    pub strangers: u64,
    /// Times of the first and last decision.
    pub first_us: u64,
    pub last_us: u64,
    pub admitted: [u64; 4],
    pub refused: [u64; 4],
    pub abuser_admitted: [u64; ABUSERS as usize],
}

impl Audit {
    /// Number of sources the gate has decided about.
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Units that one source may have had by now: rate x time + burst.
    pub fn allowance(&self) -> u64 {
        (self.last_us - self.first_us) * LIMIT_PER_SEC / 1_000_000 + LIMIT_BURST
    }

    /// Judges what the gate has appended since the last call, and returns how many decisions that was.
    pub fn follow(&mut self, log: &File) -> std::io::Result<u64> {
        let mut chunk = vec![0u8; 4096 * RECORD_BYTES];
        let before = self.decisions;
        loop {
            let n = log.read_at(&mut chunk, self.read)? / RECORD_BYTES * RECORD_BYTES;
            if n == 0 {
                return Ok(self.decisions - before);
            }
            self.read += n as u64;
            for record in chunk[..n].chunks_exact(RECORD_BYTES) {
                let now_us = u64::from_ne_bytes(record[..8].try_into().expect("8 bytes"));
                let address = u32::from_be_bytes(record[8..12].try_into().expect("4 bytes"));
                let passed = u32::from_ne_bytes(record[12..].try_into().expect("4 bytes")) != 0;
                self.decision(now_us, address, passed);
            }
        }
    }

    /// Judges one decision.
    pub fn decision(&mut self, now_us: u64, address: u32, passed: bool) {
        if self.decisions == 0 {
            self.first_us = now_us;
        }
        self.decisions += 1;
        self.last_us = now_us;
        match self.sources.entry(address).or_insert_with(|| TokenBucket::full(now_us)).judge(now_us, passed) {
            Judgement::Agrees => {}
            Judgement::OverAdmitted => self.over_admitted += 1,
            Judgement::WronglyRefused => self.wrongly_refused += 1,
        }
        let Some(source) = source_of(address) else {
            self.strangers += 1;
            return;
        };
        let class: Class = class_of(source);
        if passed {
            self.admitted[class as usize] += 1;
            if let Some(i) = abuser_index(source) {
                self.abuser_admitted[i] += 1;
            }
        } else {
            self.refused[class as usize] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::address_of;

    #[test]
    fn full_token_bucket_admits_the_burst_at_one_instant_and_no_more() {
        let mut tokens = TokenBucket::full(5);
        for _ in 0..LIMIT_BURST {
            assert_eq!(tokens.judge(5, true), Judgement::Agrees);
        }
        assert_eq!(tokens.judge(5, false), Judgement::Agrees);
        assert_eq!(tokens.judge(5, true), Judgement::OverAdmitted);
    }

    #[test]
    fn empty_token_bucket_conforms_exactly_one_emission_interval_later() {
        let mut tokens = TokenBucket::full(0);
        (0..LIMIT_BURST).for_each(|_| assert_eq!(tokens.judge(0, true), Judgement::Agrees));
        let mut early = tokens;
        assert_eq!(early.judge(99_999, false), Judgement::Agrees);
        assert_eq!(early.judge(100_000, false), Judgement::WronglyRefused);
        assert_eq!(tokens.judge(99_999, true), Judgement::OverAdmitted);
    }

    #[test]
    fn idle_time_fills_up_to_the_burst_and_not_beyond() {
        let mut tokens = TokenBucket::full(0);
        tokens.judge(0, true);
        for _ in 0..LIMIT_BURST {
            assert_eq!(tokens.judge(1 << 60, true), Judgement::Agrees);
        }
        assert_eq!(tokens.judge(1 << 60, true), Judgement::OverAdmitted);
    }

    #[test]
    fn one_wrong_verdict_is_counted_once() {
        let mut tokens = TokenBucket::full(0);
        (0..LIMIT_BURST).for_each(|_| assert_eq!(tokens.judge(0, true), Judgement::Agrees));
        assert_eq!(tokens.judge(0, true), Judgement::OverAdmitted);
        assert_eq!(tokens.judge(200_000, true), Judgement::Agrees);
    }

    #[test]
    fn audit_counts_by_class_and_knows_strangers() {
        let mut audit = Audit::default();
        let abuser = address_of(crate::schedule::POLITE);
        for i in 0..30 {
            audit.decision(1_000, abuser, i < LIMIT_BURST);
        }
        audit.decision(1_001_000, address_of(0), true);
        audit.decision(1_001_000, 0x7f00_0001, true);
        assert_eq!((audit.over_admitted, audit.wrongly_refused), (0, 0));
        assert_eq!((audit.admitted[1], audit.refused[1], audit.abuser_admitted[0]), (20, 10, 20));
        assert_eq!((audit.admitted[0], audit.strangers, audit.sources()), (1, 1, 3));
        assert_eq!(audit.allowance(), LIMIT_PER_SEC + LIMIT_BURST);
    }
}

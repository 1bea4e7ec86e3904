//! The short calls for one key: a verdict, and when to come back.
//!
//! ```text
//!  check ---> hash_whole -> check_hash   is the limit this table's, what is now in q-units: mostly one comparison
//!    |                        |
//!  check_sized, check_whole --+          a q-unit is a tick, and a key of 4 or 16 bytes is hashed in registers
//!                             |
//!                          check_home    inline: the home line searched once, one attempt on what is found there
//!                             |
//!                          check_far     the other line: one attempt, or an insert
//!                             |
//!                          run_as        the long way: scans both lines again, waits for rivals
//! ```
//!
//! A check is bound by the cache miss of its line, unless the processor runs ahead to the next request. So what counts
//! is how few instructions lie between two swaps. Each path out of line repeats the work done before it; it gets only
//! hash and clock.

use crate::algorithms::gcra::{self, Plain};
use crate::algorithms::{Kind, Op};
use crate::answer::Outcome;
use crate::keys::aes;
use crate::limit::TableLimit;
use crate::sync::access::Access;
use crate::sync::{back_off, AtomicU64};
use crate::table::error::TableError;
use crate::table::handle::Table;
use crate::table::layout::word::Tag;
use crate::table::set::attempt::{Done, PlainCheck};
use crate::table::set::search::{Avx512, Base, Scan};

impl<'m, M: Access> Table<'m, M> {
    /// Decides one request of a key and charges it if it conforms.
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`], [`TableError::BadHashKind`]. Nothing is touched then.
    ///
    /// # Concurrency
    /// Any number of threads and processes may call this. For a known key a conforming request costs one hash, one or
    /// two cache lines and one compare-and-swap; a refused one does no swap.
    #[inline(always)]
    pub fn check(&self, limit: &TableLimit, now: u64, key: &[u8], cost: u64) -> Result<Outcome, TableError> {
        // The usual lengths are passed by value, so that nothing needs the address of the caller's key. If the compiler
        // knows the length, no test remains.
        match (key.first_chunk::<16>(), key.first_chunk::<4>()) {
            (Some(whole), _) if key.len() == 16 => self.check_sized(limit, now, *whole, cost),
            (_, Some(whole)) if key.len() == 4 => self.check_sized(limit, now, *whole, cost),
            _ => self.check_any(limit, now, key, cost),
        }
    }

    /// Checks a key of 4 or 16 bytes: one attempt inline if it is hashed in registers and a q-unit is a tick.
    #[inline(always)]
    fn check_sized<const N: usize>(
        &self,
        limit: &TableLimit,
        now: u64,
        key: [u8; N],
        cost: u64,
    ) -> Result<Outcome, TableError> {
        // SAFETY: in Rust only a table makes a `TableLimit`; the C layer does not call this.
        if let Some(hash) = unsafe { self.short(limit) }.and_then(|keys| aes::hash_short(keys, &key)) {
            return Ok(match self.check_whole(limit, now, hash, cost) {
                Some(outcome) => outcome,
                None => self.check_far(limit, now, hash, cost),
            });
        }
        self.check_general(limit, now, key, cost)
    }

    /// Checks a key of 4 or 16 bytes in any table. Out of line, to spare the registers of the shortest path.
    #[inline(never)]
    fn check_general<const N: usize>(
        &self,
        limit: &TableLimit,
        now: u64,
        key: [u8; N],
        cost: u64,
    ) -> Result<Outcome, TableError> {
        let hash = self.hasher.hash_whole(key).ok_or(TableError::BadHashKind)?;
        self.check_hash(limit, now, hash, cost)
    }

    /// Does the same as [`check`](Table::check) for any table and any key.
    #[inline(never)]
    fn check_any(&self, limit: &TableLimit, now: u64, key: &[u8], cost: u64) -> Result<Outcome, TableError> {
        self.check_hash(limit, now, self.hash(key)?, cost)
    }

    /// Decides like [`check`](Table::check), for a hash made before by [`hash`](Table::hash) or by the caller.
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`].
    #[inline(always)]
    pub fn check_hash(
        &self,
        limit: &TableLimit,
        now: u64,
        hash: u64,
        cost: u64,
    ) -> Result<Outcome, TableError> {
        // For most limits one comparison shows that the limit is this table's and that its q-units are ticks.
        let now_q = if limit.0.fingerprint == self.whole {
            now
        } else if limit.0.fingerprint == self.timed {
            self.now_q(now)
        } else {
            // A limit that counts, which no attempt decides, or one of another table.
            self.verify_limit(limit)?;
            return Ok(self.check_again(limit, now, hash, cost));
        };
        Ok(self.check_at(limit, (now, now_q), hash, cost))
    }

    /// Does the same as [`check_hash`](Table::check_hash) under a limit of this table.
    #[allow(dead_code)] // the C layer's bursts of different limits call it
    #[inline(always)]
    pub(crate) fn check_owned(&self, limit: &TableLimit, now: u64, hash: u64, cost: u64) -> Outcome {
        match self.check_near(limit, self.now_q(now), hash, cost, |q| limit.0.ticks_up(q, now)) {
            Some(outcome) => outcome,
            None if limit.0.is_gcra() => self.check_far(limit, now, hash, cost),
            None => self.check_again(limit, now, hash, cost),
        }
    }

    #[inline(always)]
    fn check_at(&self, limit: &TableLimit, now: (u64, u64), hash: u64, cost: u64) -> Outcome {
        match self.check_near(limit, now.1, hash, cost, |q| limit.0.ticks_up(q, now.0)) {
            Some(outcome) => outcome,
            None => self.check_far(limit, now.0, hash, cost),
        }
    }

    /// Does the same as [`check_hash`](Table::check_hash) under a limit of this table whose q-units are ticks, if one
    /// attempt in the home line decides.
    #[inline(always)]
    pub(crate) fn check_whole(&self, limit: &TableLimit, now: u64, hash: u64, cost: u64) -> Option<Outcome> {
        self.check_near(limit, now, hash, cost, |q| q)
    }

    /// Returns what one attempt on a live slot of the home line decides. So the request is tracked. `None`: that does
    /// not decide it, or the limit counts or is not this table's.
    #[allow(dead_code)] // the C layer asks
    #[inline(always)]
    pub(crate) fn check_tracked(
        &self,
        limit: &TableLimit,
        now: u64,
        hash: u64,
        cost: u64,
    ) -> Option<Outcome> {
        if limit.0.fingerprint == self.whole {
            return self.check_whole(limit, now, hash, cost);
        }
        if limit.0.fingerprint != self.timed {
            return None;
        }
        self.check_near(limit, self.now_q(now), hash, cost, |q| limit.0.ticks_up(q, now))
    }

    #[inline(always)]
    fn check_near(
        &self,
        limit: &TableLimit,
        now_q: u64,
        hash: u64,
        cost: u64,
        ticks: impl FnOnce(u64) -> u64,
    ) -> Option<Outcome> {
        match self.wide {
            Some(wide) => self.check_home::<Avx512>(wide, limit, now_q, hash, cost, ticks),
            None => self.check_home(Base, limit, now_q, hash, cost, ticks),
        }
    }

    /// The hot path: one attempt on the key's live slot in its home line. Everything else is out of line.
    #[inline(always)]
    fn check_home<S: Scan>(
        &self,
        scan: S,
        limit: &TableLimit,
        now_q: u64,
        hash: u64,
        cost: u64,
        ticks: impl FnOnce(u64) -> u64,
    ) -> Option<Outcome> {
        // Tested before the words fill the registers.
        if !gcra::is_plain(&limit.0, cost) {
            return None;
        }
        let (set, tag) = self.place(hash);
        let found = set.find_home::<M>(scan, &self.geometry.layout, tag)?;
        self.attempt(found, tag, limit, now_q, cost, ticks)
    }

    /// Makes one attempt on a live slot. Returns `None` if the request is not plain (`Plain::Other`) or lost to a
    /// rival.
    #[inline(always)]
    pub(super) fn attempt(
        &self,
        (slot, word): (&AtomicU64, u64),
        tag: Tag,
        limit: &TableLimit,
        now_q: u64,
        cost: u64,
        ticks: impl FnOnce(u64) -> u64,
    ) -> Option<Outcome> {
        let (p, layout) = (&limit.0, &self.geometry.layout);
        // For a live word of this key `word ^ tag` is the payload, without a mask.
        match gcra::plain(p, layout.lead(word ^ tag.0, now_q), cost) {
            Plain::Wait(q) => Some(Outcome::NonConforming { retry_after: ticks(q) }),
            Plain::Store(lead) => {
                let next = layout.live(tag, now_q.wrapping_add(lead));
                M::replace(slot, word, next).ok().map(|()| Outcome::Conforming)
            }
            Plain::Other => None,
        }
    }

    /// Decides for a key that is not in its home line: one attempt in the other line, or an insert; else like
    /// [`check_again`](Self::check_again). GCRA limits only: to handle the others too would double its stack.
    #[inline(never)]
    pub(crate) fn check_far(&self, limit: &TableLimit, now: u64, hash: u64, cost: u64) -> Outcome {
        if let Some(outcome) = self.attempt_far(limit, now, hash, cost) {
            return outcome;
        }
        if limit.0.t_q == 0 {
            return Outcome::Conforming;
        }
        // A plain cost gets here only if it lost a swap or met a claim of its key: an absent key was inserted above.
        if !M::EXCLUSIVE && gcra::is_plain(&limit.0, cost) {
            back_off(1);
        }
        let op = Op::new(&limit.0, Kind::Check, cost, 0);
        short_answer(&self.run_as(hash, self.now_q(now), &op), limit, now)
    }

    /// Makes one attempt in the other line, or an insert. Without vectors the words of two lines take stack, perhaps of
    /// a kernel. There this is a call, so that the stack is free again for what follows.
    #[cfg_attr(tatcell_sse2, inline(always))]
    #[cfg_attr(not(tatcell_sse2), inline(never))]
    fn attempt_far(&self, limit: &TableLimit, now: u64, hash: u64, cost: u64) -> Option<Outcome> {
        let ((set, tag), now_q) = (self.place(hash), self.now_q(now));
        let layout = &self.geometry.layout;
        match set.second(layout, tag) {
            Ok((slot, word)) if layout.is_live_of(word, tag) => {
                self.attempt((slot, word), tag, limit, now_q, cost, |q| limit.0.ticks_up(q, now))
            }
            Err(next) if gcra::is_plain(&limit.0, cost) => {
                let op = PlainCheck(Op::new(&limit.0, Kind::Check, cost, 0));
                let done = set.insert_behind::<M, _>(self.ask(tag, hash, now_q, &op), next)?;
                Some(short_answer(&done, limit, now))
            }
            _ => None,
        }
    }

    /// Decides under any limit of this table, without a first attempt: limits that count, options, peeks. Out of line,
    /// to spare the registers of bursts.
    #[inline(never)]
    pub(crate) fn check_again(&self, limit: &TableLimit, now: u64, hash: u64, cost: u64) -> Outcome {
        if limit.0.t_q == 0 {
            return Outcome::Conforming;
        }
        let op = Op::new(&limit.0, Kind::Check, cost, 0);
        short_answer(&self.run(hash, now, &op), limit, now)
    }
}

#[inline(always)]
fn short_answer(done: &Done, limit: &TableLimit, now: u64) -> Outcome {
    match done.answer {
        Some(answer) => answer.outcome(&limit.0, now),
        None => Outcome::Contended,
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;
    use crate::limit::LimitSpec;
    use crate::table::layout::image::Line;
    use crate::table::layout::options::TableOptions;

    /// The bursts of the C layer call both, under limits that count, wait or refuse nothing.
    #[test]
    fn a_check_under_an_own_limit_answers_as_one_under_any() -> Result<(), TableError> {
        for spec in [
            LimitSpec::new(3, 1_000, 3),
            LimitSpec::new(3, 1_000, 3).penalty(5),
            LimitSpec::fixed_window(3, 1_000),
            LimitSpec::sliding_counter(3, 1_000),
        ] {
            let memory: [[Line; 6]; 2] = core::array::from_fn(|_| core::array::from_fn(|_| Line::new()));
            let options = TableOptions::new(spec).caller_hash();
            let (own, any) = (Table::init(&memory[0], &options)?, Table::init(&memory[1], &options)?);
            let (limit, other) = (own.limit(&spec)?, any.limit(&spec)?);
            let mut passed = 0;
            for i in 0..400u64 {
                let (now, hash, cost) = (5_000 + 7 * i, (i % 9).wrapping_mul(0x9e37_79b9_7f4a_7c15), i % 3);
                let told = any.check_hash(&other, now, hash, cost)?;
                assert_eq!(own.check_owned(&limit, now, hash, cost), told, "{spec:?}: {i}");
                passed += u32::from(cost != 0 && told.passes());
            }
            assert!((5..200).contains(&passed), "{spec:?}: {passed}");
            for i in 0..9 {
                assert_eq!(own.check_owned(&own.unlimited(), 9_000, i, u64::MAX), Outcome::Conforming);
            }
        }
        Ok(())
    }
}

//! Many keys at once: hash and prefetch all, then decide in order.
//!
//! A single decision on a large table waits for one cache miss. A burst starts all its misses before it needs the
//! first, so they overlap. The verdicts are those of single calls in the same order, repeated keys included.
//!
//! ```text
//!  check_burst         prefetch 0 1 2 ... n-1 | decide 0 1 2 ... n-1                the first miss is waited for
//!  prefetch, then      prefetch the next burst | decide this one                    no miss is waited for
//!  check_burst_ahead   hash next 0 1 .. | prefetch next 0, decide 0, prefetch next 1, decide 1 ...
//! ```
//!
//! How a burst is decided: one by one ([`scalar`]), or in groups of eight ([`simd`]) where the processor has
//! the vectors for it and they pay.

#[cfg(feature = "capi")]
pub(super) mod list;
mod prepared;
pub(super) mod scalar;
#[cfg(any(tatcell_sse2, test))]
pub(super) mod simd;

use core::ops::Range;

use super::calls::full_answer::Request;
use super::counters::Counters;
use super::error::TableError;
use super::handle::Table;
use super::layout::geometry::MAX_BURST;
use super::layout::image::Line;
use crate::answer::Decision;
use crate::keys::aes;
use crate::keys::{home_line, Hasher};
use crate::limit::TableLimit;
use crate::sync::access::Access;
use scalar::{cost_of, nothing, Burst};

impl<M: Access> Table<'_, M> {
    /// Hashes many keys of one length: `hashes[i]` becomes the hash of `key(i)`.
    ///
    /// # Errors
    /// [`TableError::BadHashKind`] where the caller hashes, unless there is nothing to hash.
    pub fn hash_burst<const N: usize>(
        &self,
        hashes: &mut [u64],
        key: impl Fn(usize) -> [u8; N],
    ) -> Result<(), TableError> {
        if hashes.is_empty() {
            return Ok(());
        }
        // The choice of the hash is made outside the loop.
        match &self.hasher {
            Hasher::Short(keys) | Hasher::Aes(keys) => {
                hashes.iter_mut().enumerate().for_each(|(i, h)| *h = aes::hash(keys, &key(i)))
            }
            Hasher::Sip(seed, _) => hashes.iter_mut().enumerate().for_each(|(i, h)| *h = seed.hash(&key(i))),
            Hasher::Caller(_) => return Err(TableError::BadHashKind),
        }
        Ok(())
    }

    /// Starts loading the lines of these hashes into the cache, for a burst that comes next. Changes nothing.
    #[inline]
    pub fn prefetch(&self, hashes: &[u64]) {
        self.prefetch_as(hashes, false);
    }

    #[inline(always)]
    fn prefetch_as(&self, hashes: &[u64], write: bool) {
        let write = write && !M::EXCLUSIVE;
        for &hash in hashes {
            prefetch_set(self.slots.as_ptr(), self.geometry.lines, hash, write);
        }
    }

    /// Decides up to 64 requests at one `now`, in order; bit i of the result is 1 if request i passes.
    ///
    /// `costs` None = one unit each. The answers equal those of single calls in the same order.
    ///
    /// # Errors
    /// [`TableError::TooManyKeys`], [`TableError::ForeignLimit`]; nothing is decided then.
    ///
    /// # Concurrency
    /// As [`check_hash`](Table::check_hash); other threads may come in between two decisions of a burst.
    pub fn check_burst(
        &self,
        limit: &TableLimit,
        now: u64,
        hashes: &[u64],
        costs: Option<&[u32]>,
    ) -> Result<u64, TableError> {
        let burst = Burst { limit, now, hashes, costs, last: 0 };
        self.burst_ready(&burst)?;
        self.prefetch(hashes);
        Ok(self.decide(&burst, None, nothing))
    }

    /// As [`check_burst`](Table::check_burst), and counts the decisions; the cost of counting is a few percent.
    ///
    /// # Errors
    /// As [`check_burst`](Table::check_burst); nothing is counted then.
    pub fn check_burst_counted(&self, burst: &Burst<'_>, counters: &mut Counters) -> Result<u64, TableError> {
        self.burst_ready(burst)?;
        self.prefetch_as(burst.hashes, burst.writes());
        Ok(self.decide(burst, Some(counters), nothing))
    }

    /// Hashes the next burst, and decides this one as [`check_burst`](Table::check_burst) while it starts loading the
    /// lines of the next: `next[i]` becomes the hash of `key(i)`.
    ///
    /// For a loop that receives a burst while it decides the one before it: the cache misses of the one pass while the
    /// other is decided. `hashes` should have been prefetched, as the last call did; `next` may have another length, 0
    /// when nothing follows. Hashes that are at hand: [`check_burst_then`](Table::check_burst_then).
    ///
    /// ```
    /// # use tatcell::{Burst, Line, LimitSpec, Table, TableOptions};
    /// # static MEMORY: [Line; 66] = [Line::EMPTY; 66];
    /// # let spec = LimitSpec::new(10, 1_000_000_000, 20);
    /// # let table = Table::init(&MEMORY, &TableOptions::new(spec).seed([7; 16]))?;
    /// # let limit = table.limit(&spec)?;
    /// # let bursts: [[[u8; 4]; 2]; 3] = [[[192, 0, 2, 1]; 2]; 3];
    /// # let mut passed = 0;
    /// let mut pass = 0; // verdicts of the last burst
    /// let mut hashes = [0; 2]; // of the burst that is decided
    /// let mut next = [0; 2]; // of the burst behind it
    /// table.hash_burst(&mut hashes, |i| bursts[0][i])?;
    /// table.prefetch(&hashes);
    /// for burst in &bursts[1..] {
    ///     let requests = Burst { limit: &limit, now: 1_000, hashes: &hashes, costs: None, last: pass };
    ///     pass = table.check_burst_ahead(&requests, None, &mut next, |i| burst[i])?;
    ///     # passed += pass.count_ones();
    ///     (hashes, next) = (next, hashes);
    /// }
    /// pass = table.check_burst(&limit, 1_000, &hashes, None)?;
    /// # passed += pass.count_ones();
    /// # assert_eq!(passed, 6);
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Errors
    /// As [`check_burst`](Table::check_burst), and [`TableError::TooManyKeys`] for more than 64 next keys,
    /// [`TableError::BadHashKind`] where the caller hashes, unless nothing follows. Nothing is decided or hashed then.
    pub fn check_burst_ahead<const N: usize>(
        &self,
        burst: &Burst<'_>,
        counters: Option<&mut Counters>,
        next: &mut [u64],
        key: impl Fn(usize) -> [u8; N] + Copy,
    ) -> Result<u64, TableError> {
        self.burst_ready(burst)?;
        if next.len() > MAX_BURST {
            return Err(TableError::TooManyKeys);
        }
        // Not in between: what lies between two swaps takes its time there, and here it takes less.
        self.hash_burst(next, key)?;
        Ok(self.decide_prepared(burst, counters, next))
    }

    /// Decides a burst that was prefetched before and, in between, prefetches `next`.
    pub(super) fn decide_prepared(
        &self,
        burst: &Burst<'_>,
        counters: Option<&mut Counters>,
        next: &[u64],
    ) -> u64 {
        if next.is_empty() || cfg!(not(tatcell_prefetch)) {
            return self.decide(burst, counters, nothing);
        }
        match burst.writes() && !M::EXCLUSIVE {
            true => self.decide_fetching::<true>(burst, counters, next),
            false => self.decide_fetching::<false>(burst, counters, next),
        }
    }

    // The loop has the table in registers, so it hands it over.
    #[inline(always)]
    fn decide_fetching<const WRITE: bool>(
        &self,
        burst: &Burst<'_>,
        counters: Option<&mut Counters>,
        next: &[u64],
    ) -> u64 {
        let ahead = move |table: &Self, these: Range<usize>| {
            let ask = |hash| prefetch_set(table.slots.as_ptr(), table.geometry.lines, hash, WRITE);
            match next.get(these.clone()) {
                Some(hashes) => hashes.iter().for_each(|&hash| ask(hash)),
                // The next burst ends among them, or before.
                None => next.get(these.start..).unwrap_or(&[]).iter().for_each(|&hash| ask(hash)),
            }
        };
        let pass = self.decide(burst, counters, ahead);
        ahead(self, burst.hashes.len()..next.len());
        pass
    }

    /// Decides in order, calling `ahead(self, these)` before these decisions.
    #[inline(always)]
    fn decide(
        &self,
        burst: &Burst<'_>,
        counters: Option<&mut Counters>,
        ahead: impl Fn(&Self, Range<usize>) + Copy,
    ) -> u64 {
        #[cfg(any(tatcell_sse2, test))]
        if self.may_group(burst, counters.is_some()) {
            return self.decide_by(burst, counters, ahead);
        }
        self.decide_from(burst, 0, usize::MAX, counters, ahead).pass
    }

    /// As [`check_burst`](Table::check_burst), with the full answer of each request handed to `each` in order.
    ///
    /// # Errors
    /// As [`check_burst`](Table::check_burst).
    pub fn check_burst_ex(
        &self,
        limit: &TableLimit,
        now: u64,
        hashes: &[u64],
        costs: Option<&[u32]>,
        mut counters: Option<&mut Counters>,
        mut each: impl FnMut(usize, &Decision),
    ) -> Result<u64, TableError> {
        self.burst_ready(&Burst { limit, now, hashes, costs, last: 0 })?;
        self.prefetch(hashes);
        let mut pass = 0u64;
        for (i, &hash) in hashes.iter().enumerate() {
            let cost = costs.map_or(1, |costs| cost_of(costs, i));
            let request = Request { limit, now, cost, room: 0 };
            let decision = self.check_ex(&request, hash, counters.as_deref_mut())?;
            pass |= (decision.passes() as u64) << i;
            each(i, &decision);
        }
        Ok(pass)
    }

    pub(super) fn burst_ready(&self, burst: &Burst<'_>) -> Result<(), TableError> {
        self.verify_limit(burst.limit)?;
        let count = burst.hashes.len();
        if count > MAX_BURST {
            return Err(TableError::TooManyKeys);
        }
        if burst.costs.is_some_and(|costs| costs.len() != count) {
            return Err(TableError::BadCosts);
        }
        Ok(())
    }
}

/// Asks for both lines of a set: a new key looks at all of it, and a few known keys are in the second. Only the home
/// line is likely to be written, and only it goes to the first cache: most keys never read the second one, but whoever
/// does without having asked for it waits for memory.
#[inline(always)]
fn prefetch_set(slots: *const Line, lines: u32, hash: u64, write: bool) {
    let home = home_line(hash, lines);
    // Both are lines of the table, and any address may be prefetched.
    match write {
        true => prefetch_to_write(slots, home),
        false => prefetch_line::<false>(slots.wrapping_add(home).cast()),
    }
    prefetch_line::<true>(slots.wrapping_add(home ^ 1).cast());
}

/// Asks the processor for a line, into the first cache or (`OUTER`) the second; nothing where there is no such
/// instruction.
#[inline(always)]
fn prefetch_line<const OUTER: bool>(line: *const u8) {
    #[cfg(all(tatcell_prefetch, target_arch = "x86_64"))]
    {
        use core::arch::x86_64::{_mm_prefetch, _MM_HINT_T0, _MM_HINT_T1};
        // SAFETY: a prefetch of any address is harmless, and this one is a line of the table.
        unsafe {
            match OUTER {
                true => _mm_prefetch::<_MM_HINT_T1>(line.cast()),
                false => _mm_prefetch::<_MM_HINT_T0>(line.cast()),
            }
        }
    }
    #[cfg(all(tatcell_prefetch, target_arch = "aarch64"))]
    // SAFETY: a prefetch of any address is harmless, and this one is a line of the table.
    unsafe {
        match OUTER {
            true => {
                core::arch::asm!("prfm pldl2keep, [{0}]", in(reg) line, options(nostack, preserves_flags, readonly));
            }
            false => {
                core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) line, options(nostack, preserves_flags, readonly));
            }
        }
    }
    #[cfg(not(tatcell_prefetch))]
    let _ = line;
}

/// As [`prefetch_line`], for line `at`, which will be written. Compilers make a reading prefetch of their own hint for
/// it, unless told of the instruction; processors without it take it for no operation.
#[inline(always)]
fn prefetch_to_write(slots: *const Line, at: usize) {
    #[cfg(tatcell_prefetch)]
    // SAFETY: a prefetch of any address is harmless, and this one is a line of the table.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("prefetchw [{0} + {1}]", in(reg) slots, in(reg) at * size_of::<Line>(),
            options(nostack, preserves_flags, readonly));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("prfm pstl1keep, [{0}, {1}]", in(reg) slots, in(reg) at * size_of::<Line>(),
            options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(tatcell_prefetch))]
    let _ = (slots, at);
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "mod_tests.rs"]
mod tests;

//! Many keys at once: load the lines of all of them early, then decide in order.
//!
//! A single check on a large table waits for one cache miss. A burst starts its misses before it needs the first line,
//! so they overlap. The verdicts are those of single calls in the same order, also if a key occurs twice.
//!
//! ```text
//!  NextBurst::NONE     prefetch 0 1 2 .. n-1 | decide 0 1 2 .. n-1                       waits for the first miss
//!  NextBurst::hashes   prefetch next 0, decide 0, prefetch next 1, decide 1 ..           waits for none
//!  NextBurst::keys     hash next 0 1 2 .. | prefetch next 0, decide 0, prefetch next 1 ..
//!    of an empty burst  hash next 0, prefetch next 0, hash next 1, prefetch next 1 ..
//! ```
//!
//! [`call`] has the public call, [`elastic`] the bursts with room and those charged after the fact, and [`forwards`]
//! older forms. Requests are decided one by one ([`scalar`]), or in groups of eight ([`simd`]) if the processor has
//! vectors with which groups are faster. [`list`] reads the keys of C.

pub(super) mod call;
mod elastic;
mod forwards;
#[cfg(feature = "capi")]
pub(super) mod list;
pub(super) mod scalar;
#[cfg(any(tatcell_sse2, test))]
pub(super) mod simd;

use core::ops::Range;

use super::counters::Counters;
use super::error::TableError;
use super::handle::Table;
use super::layout::image::Line;
use crate::keys::aes;
use crate::keys::{home_line, Hasher};
use crate::sync::access::Access;
use call::Burst;
use scalar::nothing;

impl<M: Access> Table<'_, M> {
    /// Hashes many keys of one length: sets `hashes[i]` to the hash of `key(i)`. It does not prefetch them;
    /// [`NextBurst::keys`](crate::NextBurst::keys) does both.
    ///
    /// # Errors
    /// [`TableError::BadHashKind`] if the caller hashes, unless `hashes` is empty.
    pub fn hash_burst<const N: usize>(
        &self,
        hashes: &mut [u64],
        key: impl Fn(usize) -> [u8; N],
    ) -> Result<(), TableError> {
        if hashes.is_empty() {
            return Ok(());
        }
        // The hash is chosen once, outside the loop.
        match &self.hasher {
            Hasher::Short(keys) | Hasher::Aes(keys) => {
                hashes.iter_mut().enumerate().for_each(|(i, h)| *h = aes::hash(keys, &key(i)))
            }
            Hasher::Sip(seed, _) => hashes.iter_mut().enumerate().for_each(|(i, h)| *h = seed.hash(&key(i))),
            Hasher::Caller(_) => return Err(TableError::BadHashKind),
        }
        Ok(())
    }

    /// Hashes many keys like [`hash_burst`](Table::hash_burst), and prefetches the lines of each key as soon as it is
    /// hashed. So the first miss starts early, and a burst with no other to decide meanwhile waits less for it.
    fn prepare<const N: usize>(
        &self,
        hashes: &mut [u64],
        key: impl Fn(usize) -> [u8; N],
    ) -> Result<(), TableError> {
        if let Hasher::Short(keys) | Hasher::Aes(keys) = &self.hasher {
            hashes.iter_mut().enumerate().for_each(|(i, place)| {
                *place = aes::hash(keys, &key(i));
                self.prefetch(core::slice::from_ref(place));
            });
            return Ok(());
        }
        // A SipHash takes as long as a miss, so a loop for it here would only make the library larger.
        self.hash_burst(hashes, key)?;
        self.prefetch(hashes);
        Ok(())
    }

    /// Starts to load the lines of these hashes into the cache, for calls that follow. Changes nothing, and takes any
    /// number of hashes.
    #[inline]
    pub fn prefetch(&self, hashes: &[u64]) {
        self.prefetch_as(hashes, false);
    }

    /// Starts to load the home line of a hash alone, where memory is busy with the lines of many keys and few of them are
    /// new.
    #[inline(always)]
    pub(crate) fn prefetch_home(&self, hash: u64) {
        prefetch_line::<false>(self.slots.as_ptr().wrapping_add(home_line(hash, self.geometry.lines)).cast());
    }

    #[inline(always)]
    fn prefetch_as(&self, hashes: &[u64], write: bool) {
        let write = write && !M::EXCLUSIVE;
        for &hash in hashes {
            prefetch_set(self.slots.as_ptr(), self.geometry.lines, hash, write);
        }
    }

    /// Decides a burst with no other to prefetch. Out of line and without the tests for counters that it does not need,
    /// because that took the fewest instructions in callers of every kind.
    #[inline(always)]
    fn decide_alone(&self, burst: &Burst<'_>, counters: Option<&mut Counters>) -> u64 {
        match counters {
            None => self.decide_plain(burst),
            Some(counters) => self.decide_counted(burst, counters),
        }
    }

    #[inline(never)]
    fn decide_plain(&self, burst: &Burst<'_>) -> u64 {
        self.decide(burst, None, nothing)
    }

    #[inline(never)]
    fn decide_counted(&self, burst: &Burst<'_>, counters: &mut Counters) -> u64 {
        self.decide(burst, Some(counters), nothing)
    }

    /// Decides a burst, and prefetches `next` between the decisions.
    fn decide_prefetching(&self, burst: &Burst<'_>, counters: Option<&mut Counters>, next: &[u64]) -> u64 {
        if cfg!(not(tatcell_prefetch)) {
            return self.decide_alone(burst, counters);
        }
        match burst.writes() && !M::EXCLUSIVE {
            true => self.decide_fetching::<true>(burst, counters, next),
            false => self.decide_fetching::<false>(burst, counters, next),
        }
    }

    // `ahead` gets the table as an argument, because the loop that calls it has the table in registers.
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
                // The next burst is shorter than this one.
                None => next.get(these.start..).unwrap_or(&[]).iter().for_each(|&hash| ask(hash)),
            }
        };
        let pass = self.decide(burst, counters, ahead);
        ahead(self, burst.hashes.len()..next.len());
        pass
    }

    /// Decides in order, and calls `ahead(self, range)` before the decisions of each range of requests.
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
}

/// Prefetches both lines of a set: a request for a new key scans both, and a few known keys are in the second one.
///
/// The home line goes into the first-level cache, and `write` says whether it will probably be written. The second line
/// goes into the second-level cache: most requests never read it, but one that does would otherwise wait for memory.
#[inline(always)]
fn prefetch_set(slots: *const Line, lines: u32, hash: u64, write: bool) {
    let home = home_line(hash, lines);
    match write {
        true => prefetch_to_write(slots, home),
        false => prefetch_line::<false>(slots.wrapping_add(home).cast()),
    }
    prefetch_line::<true>(slots.wrapping_add(home ^ 1).cast());
}

/// Prefetches a line into the first-level cache, or with `OUTER` into the second-level one. Does nothing on a processor
/// without such an instruction.
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

/// Prefetches line `at` into the first-level cache for writing. In assembly, because compilers turn their own write
/// hint into a prefetch for reading unless they know that the processor has this instruction. A processor without it
/// executes it as no operation.
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

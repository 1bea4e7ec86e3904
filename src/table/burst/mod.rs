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
//!                       (many keys, if the processor drops prefetches: hash all of them first)
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

/// Which lines of a set are prefetched.
#[derive(Clone, Copy)]
pub(super) enum Which {
    Both,
    /// The home line. Who decides the request asks for the second one if it needs it.
    #[cfg_attr(not(any(tatcell_sse2, test)), allow(dead_code))]
    Home,
}

/// So many prefetches at a time are not dropped: AMD's Zen 2 and Zen 3 have room for 22 and 24 misses.
#[cfg(tatcell_sse2)]
const UNDER_WAY: usize = 16;

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
        // Processors that drop prefetches hash all keys first.
        if let (false, Hasher::Short(keys) | Hasher::Aes(keys)) = (self.drops(hashes.len()), &self.hasher) {
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

    /// Prefetches both lines of each hash, for decisions one by one: nothing else would ask for the second line of a
    /// new key before it is needed.
    pub(crate) fn prefetch_both(&self, hashes: &[u64]) {
        for &hash in hashes {
            prefetch_set(self.slots.as_ptr(), self.geometry.lines, hash, false);
        }
    }

    /// Starts to load the home line of a hash alone, where memory is busy with the lines of many keys and few of them
    /// are new.
    #[inline(always)]
    pub(crate) fn prefetch_home(&self, hash: u64) {
        prefetch_line::<false>(self.slots.as_ptr().wrapping_add(home_line(hash, self.geometry.lines)).cast());
    }

    #[inline(always)]
    fn prefetch_as(&self, hashes: &[u64], write: bool) {
        let write = write && !M::EXCLUSIVE;
        #[cfg(tatcell_sse2)]
        if self.drops(hashes.len()) {
            return self.prefetch_many(hashes, write);
        }
        for &hash in hashes {
            prefetch_set(self.slots.as_ptr(), self.geometry.lines, hash, write);
        }
    }

    /// Returns whether this processor may drop some of `count` prefetches. Those with AVX2 and without AVX-512 have
    /// room for few misses.
    #[inline(always)]
    fn drops(&self, count: usize) -> bool {
        #[cfg(tatcell_sse2)]
        return count >= simd::FEWEST && self.wide.is_none() && self.half.is_some();
        #[cfg(not(tatcell_sse2))]
        {
            let _ = count;
            false
        }
    }

    /// Starts to load the home lines of many hashes: the first few by prefetches, the others by loads. A processor with
    /// no room for one more miss drops a prefetch, but never a load. The groups that decide such a burst prefetch the
    /// second lines of the keys that need them ([`simd`]).
    #[cfg(tatcell_sse2)]
    #[inline(never)]
    fn prefetch_many(&self, hashes: &[u64], write: bool) {
        let (slots, lines) = (self.slots.as_ptr(), self.geometry.lines);
        let (first, rest) = hashes.split_at(hashes.len().min(UNDER_WAY));
        for &hash in first {
            prefetch_home(slots, home_line(hash, lines), write);
        }
        for &hash in rest {
            let home = home_line(hash, lines);
            if write {
                prefetch_to_write(slots, home);
            }
            load_line(slots.wrapping_add(home));
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
        let ahead = move |table: &Self, these: Range<usize>, which: Which| {
            let (slots, lines) = (table.slots.as_ptr(), table.geometry.lines);
            let ask = |hash| match which {
                Which::Both => prefetch_set(slots, lines, hash, WRITE),
                Which::Home => prefetch_home(slots, home_line(hash, lines), WRITE),
            };
            match next.get(these.clone()) {
                Some(hashes) => hashes.iter().for_each(|&hash| ask(hash)),
                // The next burst is shorter than this one.
                None => next.get(these.start..).unwrap_or(&[]).iter().for_each(|&hash| ask(hash)),
            }
        };
        let pass = self.decide(burst, counters, ahead);
        self.prefetch_as(next.get(burst.hashes.len()..).unwrap_or(&[]), WRITE);
        pass
    }

    /// Decides in order, and calls `ahead(self, range, which)` before the decisions of each range of requests.
    #[inline(always)]
    fn decide(
        &self,
        burst: &Burst<'_>,
        counters: Option<&mut Counters>,
        ahead: impl Fn(&Self, Range<usize>, Which) + Copy,
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
    prefetch_home(slots, home, write);
    prefetch_line::<true>(slots.wrapping_add(home ^ 1).cast());
}

/// Prefetches line `home` into the first-level cache.
#[inline(always)]
fn prefetch_home(slots: *const Line, home: usize, write: bool) {
    match write {
        true => prefetch_to_write(slots, home),
        false => prefetch_line::<false>(slots.wrapping_add(home).cast()),
    }
}

/// Loads a word of a line, and does nothing with it. In assembly, because a compiler drops a load that nobody uses.
#[cfg(tatcell_sse2)]
#[inline(always)]
fn load_line(line: *const Line) {
    // SAFETY: `line` is a line of the table; one aligned load of 8 bytes.
    // ORDERING: Relaxed; nobody uses the value.
    unsafe {
        core::arch::asm!("mov {0}, [{1}]", out(reg) _, in(reg) line, options(nostack, preserves_flags, readonly));
    }
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

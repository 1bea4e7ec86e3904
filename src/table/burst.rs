//! Many keys at once: hash and prefetch all, then decide in order.
//!
//! A single decision on a large table waits for one cache miss. A burst starts all its misses before it needs the
//! first, so they overlap. The verdicts are those of single calls in the same order, repeated keys included.

use super::handle::{Request, Table};
use super::hash::home_line;
use super::insert::Access;
use super::operate::Counters;
use super::options::{TableError, MAX_BURST};
use crate::limit::TableLimit;
use crate::outcome::Decision;

impl<M: Access> Table<'_, M> {
    /// Starts loading the lines of these hashes into the cache, for a burst that comes next. Changes nothing.
    #[inline]
    pub fn prefetch(&self, hashes: &[u64]) {
        for &hash in hashes {
            self.prefetch_one(hash);
        }
    }

    #[inline(always)]
    pub(crate) fn prefetch_one(&self, hash: u64) {
        // Both lines of the set: a new key looks at all of it.
        let home = home_line(hash, self.geometry.lines);
        for at in [home, home ^ 1] {
            if let Some(line) = self.slots.get(at) {
                prefetch_line(core::ptr::from_ref(line).cast());
            }
        }
    }

    /// Decides up to 64 requests at one `now`, in order; bit i of the result is 1 if request i passes.
    ///
    /// `costs` None = one unit each. The answers equal those of single calls in the same order.
    ///
    /// # Errors
    /// [`TableError::BadCount`], [`TableError::ForeignLimit`]; nothing is decided then.
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
        self.burst_ready(limit, hashes, costs)?;
        self.prefetch(hashes);
        let mut pass = 0u64;
        for (i, &hash) in hashes.iter().enumerate() {
            let outcome = self.check_owned(limit, now, hash, cost_of(costs, i));
            pass |= (outcome.passes() as u64) << i;
        }
        Ok(pass)
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
        self.burst_ready(limit, hashes, costs)?;
        self.prefetch(hashes);
        let mut pass = 0u64;
        for (i, &hash) in hashes.iter().enumerate() {
            let request = Request { limit, now, cost: cost_of(costs, i), room: 0 };
            let decision = self.check_ex(&request, hash, counters.as_deref_mut())?;
            pass |= (decision.passes() as u64) << i;
            each(i, &decision);
        }
        Ok(pass)
    }

    fn burst_ready(
        &self,
        limit: &TableLimit,
        hashes: &[u64],
        costs: Option<&[u32]>,
    ) -> Result<(), TableError> {
        self.own(limit)?;
        if hashes.len() > MAX_BURST || costs.is_some_and(|c| c.len() != hashes.len()) {
            return Err(TableError::BadCount);
        }
        Ok(())
    }
}

#[inline(always)]
fn cost_of(costs: Option<&[u32]>, i: usize) -> u32 {
    match costs {
        Some(costs) => costs.get(i).copied().unwrap_or(1),
        None => 1,
    }
}

/// Asks the processor for a line; nothing where there is no such instruction.
#[inline(always)]
fn prefetch_line(line: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(tatcell_loom)))]
    {
        use core::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: a prefetch of any address is harmless, and this one is a line of the table.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
    }
    #[cfg(all(target_arch = "aarch64", not(tatcell_loom)))]
    // SAFETY: a prefetch of any address is harmless, and this one is a line of the table.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(tatcell_loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = line;
}

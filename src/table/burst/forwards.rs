//! The burst methods of 0.3, for one more version. Each forwards to [`Burst::check`] or [`Burst::check_ex`].

use super::call::{Burst, NextBurst};
use crate::answer::Decision;
use crate::limit::TableLimit;
use crate::sync::access::Access;
use crate::table::counters::Counters;
use crate::table::error::TableError;
use crate::table::handle::Table;

impl<M: Access> Table<'_, M> {
    /// Decides a burst that stands alone. Replaced by [`Burst::check`], whose errors it returns.
    #[deprecated(since = "0.4.0", note = "use `Burst::check` with `NextBurst::NONE`")]
    pub fn check_burst(
        &self,
        limit: &TableLimit,
        now: u64,
        hashes: &[u64],
        costs: Option<&[u32]>,
    ) -> Result<u64, TableError> {
        Burst { costs, ..Burst::new(limit, now, hashes) }.check(self, None, NextBurst::NONE)
    }

    /// Decides and counts a burst that stands alone. Replaced by [`Burst::check`], whose errors it returns.
    #[deprecated(since = "0.4.0", note = "use `Burst::check` with `NextBurst::NONE`")]
    pub fn check_burst_counted(&self, burst: &Burst<'_>, counters: &mut Counters) -> Result<u64, TableError> {
        burst.check(self, Some(counters), NextBurst::NONE)
    }

    /// Decides a burst while the next one, given as keys, is prefetched. Replaced by [`Burst::check`], whose errors it
    /// returns.
    #[deprecated(since = "0.4.0", note = "use `Burst::check` with `NextBurst::keys`")]
    pub fn check_burst_ahead<const N: usize>(
        &self,
        burst: &Burst<'_>,
        counters: Option<&mut Counters>,
        next: &mut [u64],
        key: impl Fn(usize) -> [u8; N] + Copy,
    ) -> Result<u64, TableError> {
        burst.check(self, counters, NextBurst::keys(next, key))
    }

    /// Decides a burst that stands alone, with the full answers. Replaced by [`Burst::check_ex`], whose errors it
    /// returns.
    #[deprecated(since = "0.4.0", note = "use `Burst::check_ex` with `NextBurst::NONE`")]
    pub fn check_burst_ex(
        &self,
        limit: &TableLimit,
        now: u64,
        hashes: &[u64],
        costs: Option<&[u32]>,
        counters: Option<&mut Counters>,
        each: impl FnMut(usize, &Decision),
    ) -> Result<u64, TableError> {
        let burst = Burst { costs, ..Burst::new(limit, now, hashes) };
        burst.check_ex(self, counters, NextBurst::NONE, each)
    }
}

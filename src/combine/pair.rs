//! Bursts of keys with two limits each: bytes and packets, peak and committed.
//!
//! ```text
//!  hash of a key ----------------> slot of its first debt      both are prefetched, loaded, and charged together
//!        '-- second_hash ---> slot of its second debt          or not at all
//! ```
//!
//! One table holds both debts, at two hashes: a mixing step makes the second one from the first. So a key is hashed
//! once, and its debts lie in unrelated sets. (Two tables would need a second handle and image, and a second hash if
//! their seeds differ.)
#![forbid(unsafe_code)]

use super::chain::Chain;
use super::link::{Link, TableRef};
use crate::keys::second_hash;
use crate::limit::TableLimit;
use crate::sync::Access;
use crate::table::{cost_of, Counters, Half, Table, TableError, MAX_BURST};

/// Decides up to 64 requests of a table at one instant, each under two limits: both are charged, or none.
///
/// ```
/// use tatcell::{second_hash, LimitSpec, Line, PairBurst, Table, TableOptions};
/// static MEMORY: [Line; 130] = [Line::EMPTY; 130];
///
/// // 100 packets and 100 000 bytes a second for each source; ticks are microseconds.
/// let (packets, bytes) = (LimitSpec::new(100, 1_000_000, 10), LimitSpec::new(100_000, 1_000_000, 4_000));
/// let table = Table::init(&MEMORY, &TableOptions::new(bytes).slowest(packets).seed([7; 16]))?;
/// let limits = [&table.limit(&packets)?, &table.limit(&bytes)?];
/// let mut hashes = [0; 4];
/// table.hash_burst(&mut hashes, |i| [[192, 0, 2, 1], [192, 0, 2, 2]][i / 3])?;
/// let burst = PairBurst { limits, now: 0, hashes: &hashes, costs: [None, Some(&[1_500; 4])] };
/// assert_eq!(burst.check(&table, None, &[])?, 0b1011); // the third packet of the first source is one too many
/// assert_eq!(table.peek(limits[0], 0, hashes[0], 1)?.remaining, 8); // not charged for it
/// assert_eq!(table.peek(limits[1], 0, second_hash(hashes[0]), 1)?.remaining, 1_000);
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PairBurst<'a> {
    /// The two limits of each request.
    pub limits: [&'a TableLimit; 2],
    /// The caller's clock, in ticks.
    pub now: u64,
    /// The hashes of the keys, at most [`MAX_BURST`]. The first debt lies at the hash, the second at its
    /// [`second_hash`].
    pub hashes: &'a [u64],
    /// Units that each request asks for under either limit, as many as hashes; `None` = one unit each.
    pub costs: [Option<&'a [u32]>; 2],
}

impl PairBurst<'_> {
    /// Decides in order; bit i of the result is 1 if request i passes. `next` are the hashes of the next burst,
    /// prefetched meanwhile.
    ///
    /// The answers equal those of a [`Chain`] of both limits for each request in the same order, repeated keys
    /// included. What others may see, and what stays of a lost race, is also that of a chain.
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`], [`TableError::TooManyKeys`] (also for `next`), [`TableError::BadCosts`]. Nothing
    /// is decided then.
    ///
    /// # Concurrency
    /// Like [`Chain::check`].
    ///
    /// # Cost
    /// Two lookups and two compare-and-swaps for a request that passes, with the cache misses of all overlapped.
    pub fn check<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        counters: Option<&mut Counters>,
        next: &[u64],
    ) -> Result<u64, TableError> {
        self.run(table.into(), counters, (next, true))
    }

    /// Decides like [`check`](PairBurst::check), for a burst whose hashes were the `next` of the previous call: no line
    /// is prefetched twice.
    ///
    /// # Errors
    /// The errors of [`check`](PairBurst::check).
    pub fn check_ahead<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        counters: Option<&mut Counters>,
        next: &[u64],
    ) -> Result<u64, TableError> {
        self.run(table.into(), counters, (next, false))
    }

    pub(crate) fn run(
        &self,
        table: TableRef<'_>,
        counters: Option<&mut Counters>,
        (next, fetch): (&[u64], bool),
    ) -> Result<u64, TableError> {
        let count = self.hashes.len();
        if count > MAX_BURST || next.len() > MAX_BURST {
            return Err(TableError::TooManyKeys);
        }
        if self.costs.iter().flatten().any(|costs| costs.len() != count) {
            return Err(TableError::BadCosts);
        }
        match table {
            TableRef::Shared(t) => self.decide(t, table, counters, next, fetch),
            TableRef::Exclusive(t) => self.decide(t, table, counters, next, fetch),
        }
    }

    /// Prefetches the lines of both debts of keys that come next.
    #[cfg(feature = "capi")]
    pub(crate) fn fetch(table: TableRef<'_>, hashes: &[u64]) {
        match table {
            TableRef::Shared(t) => fetch_both(t, hashes),
            TableRef::Exclusive(t) => fetch_both(t, hashes),
        }
    }

    fn decide<M: Access>(
        &self,
        table: &Table<'_, M>,
        any: TableRef<'_>,
        mut counters: Option<&mut Counters>,
        next: &[u64],
        fetch: bool,
    ) -> Result<u64, TableError> {
        let [first, second] = self.limits;
        table.verify_limit(first)?;
        table.verify_limit(second)?;
        if fetch {
            fetch_both(table, self.hashes);
        }
        fetch_both(table, next);
        // A soft pass must be noticed to be counted. The short path is for GCRA: all limits of a table are, or none.
        let seen = counters.is_some() && (first.0.soft_q != u64::MAX || second.0.soft_q != u64::MAX);
        let plain = first.0.is_gcra() && !seen;
        let mut pass = 0u64;
        for (i, &hash) in self.hashes.iter().enumerate() {
            let [a, b] = self.costs.map(|side| side.map_or(1, |costs| cost_of(costs, i)));
            let half = Half { limit: first, hash, cost: a };
            let other = Half { limit: second, hash: second_hash(hash), cost: b };
            let decided = if plain { table.check_pair(self.now, half, other) } else { None };
            let passes = match decided {
                Some(passes) => {
                    if let Some(counters) = &mut counters {
                        counters.count_plain(passes.into(), 1);
                    }
                    passes
                }
                None => long_way(any, self.now, [half, other], counters.as_deref_mut()),
            };
            pass |= (passes as u64).wrapping_shl(i as u32);
        }
        Ok(pass)
    }
}

/// Prefetches the lines of both debts.
pub(super) fn fetch_both<M: Access>(table: &Table<'_, M>, hashes: &[u64]) {
    let mut seconds = [0; MAX_BURST];
    seconds.iter_mut().zip(hashes).for_each(|(second, hash)| *second = second_hash(*hash));
    table.prefetch_both(hashes);
    table.prefetch_both(seconds.get(..hashes.len()).unwrap_or_else(|| impossible!(&[])));
}

/// Decides everything but the common case, by a chain of both limits.
#[cold]
#[inline(never)]
fn long_way(table: TableRef<'_>, now: u64, halves: [Half<'_>; 2], counters: Option<&mut Counters>) -> bool {
    let links = halves.map(|half| Link::hash(table, half.limit, half.hash, half.cost));
    // No chain is refused here: both limits are the table's, and a key's hash is a fixed point of the mixing step only
    // with a chance of 2^-64; such a key is refused.
    Chain::new(&links).is_ok_and(|chain| chain.check_ex(now, counters, |_, _| ()).passes())
}

//! The call that decides a burst, and what it takes: the [`Burst`], and the [`NextBurst`] that it prefetches meanwhile.

use crate::answer::Decision;
use crate::limit::TableLimit;
use crate::sync::access::Access;
use crate::table::calls::full_answer::Request;
use crate::table::counters::Counters;
use crate::table::error::TableError;
use crate::table::handle::Table;
use crate::table::layout::geometry::MAX_BURST;

/// Up to 64 requests of a table under one limit, at one instant. [`check`](Burst::check) decides them.
#[derive(Clone, Copy, Debug)]
pub struct Burst<'a> {
    /// The limit that applies to all of them.
    pub limit: &'a TableLimit,
    /// The caller's clock, in ticks.
    pub now: u64,
    /// The hashes of their keys, at most [`MAX_BURST`].
    pub hashes: &'a [u64],
    /// Units of each request, one number for each hash. `None` means one unit each.
    pub costs: Option<&'a [u32]>,
    /// A hint that changes no verdict: the verdicts of the burst before this one, or 0. If more passed there than half
    /// of the requests here, lines are prefetched for writing. That saves a transfer if another core wrote them last.
    /// Otherwise they are prefetched for reading, so other cores keep their copies.
    pub last: u64,
}

/// The burst that comes after the one that [`Burst::check`] decides: none, hashes, or keys.
///
/// ```
/// use tatcell::{Burst, LimitSpec, Line, NextBurst, Table, TableOptions};
/// let spec = LimitSpec::new(10, 1_000_000_000, 20);
/// let lines = [const { Line::EMPTY }; 66];
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// let limit = table.limit(&spec)?;
/// let hashes = [table.hash(b"192.0.2.1")?; 25];
/// let verdicts = Burst::new(&limit, 0, &hashes).check(&table, None, NextBurst::NONE)?; // this burst alone
/// assert_eq!(verdicts.count_ones(), 20);
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Debug)]
pub struct NextBurst<'a, F = fn(usize) -> [u8; 0]>(pub(super) Next<'a, F>);

#[derive(Debug)]
pub(super) enum Next<'a, F> {
    Nothing,
    Hashes(&'a [u64]),
    Keys(&'a mut [u64], F),
}

impl<'a> NextBurst<'a> {
    /// Says that the burst which is decided stands alone: no call had it as its next burst, and nothing follows it.
    pub const NONE: NextBurst<'static> = NextBurst(Next::Nothing);

    /// Gives the next burst as up to 64 hashes. They are empty if nothing follows.
    pub const fn hashes(hashes: &'a [u64]) -> NextBurst<'a> {
        NextBurst(Next::Hashes(hashes))
    }
}

impl<'a, F> NextBurst<'a, F> {
    /// Gives the next burst as up to 64 keys of one length: the call sets `hashes[i]` to the hash of `key(i)`.
    pub const fn keys<const N: usize>(hashes: &'a mut [u64], key: F) -> NextBurst<'a, F>
    where
        F: Fn(usize) -> [u8; N],
    {
        NextBurst(Next::Keys(hashes, key))
    }

    fn len(&self) -> usize {
        match &self.0 {
            Next::Nothing => 0,
            Next::Hashes(hashes) => hashes.len(),
            Next::Keys(hashes, _) => hashes.len(),
        }
    }
}

impl<'a> Burst<'a> {
    /// Makes a burst whose requests cost one unit each.
    pub const fn new(limit: &'a TableLimit, now: u64, hashes: &'a [u64]) -> Burst<'a> {
        Burst { limit, now, hashes, costs: None, last: 0 }
    }

    /// Decides the requests in order, and prefetches the next burst meanwhile. Bit i of the result is 1 if request i
    /// passes. `counters` counts the verdicts.
    ///
    /// The verdicts equal those of single calls in the same order, also if a key occurs twice. `next` says what the
    /// call loads into the cache, and when:
    ///
    /// | `next` | lines of this burst | lines of the next burst |
    /// |---|---|---|
    /// | [`NextBurst::NONE`] | prefetched first, so their cache misses overlap | - |
    /// | [`NextBurst::hashes`] | were the next ones of the last call, so not again | prefetched between the decisions |
    /// | [`NextBurst::keys`] | the same | hashed first, then prefetched between the decisions |
    ///
    /// A loop receives one burst while it decides the previous one, and waits for no cache miss. Its first call decides
    /// an empty burst, and its last one has an empty next burst:
    ///
    /// ```
    /// use tatcell::{Burst, Line, LimitSpec, NextBurst, Table, TableOptions};
    /// static MEMORY: [Line; 66] = [Line::EMPTY; 66];
    ///
    /// let spec = LimitSpec::new(10, 1_000_000_000, 5); // 10 a second, 5 at once; ticks are nanoseconds
    /// let table = Table::init(&MEMORY, &TableOptions::new(spec).seed([7; 16]))?;
    /// let limit = table.limit(&spec)?;
    /// let received = [[[192, 0, 2, 1]; 2]; 3]; // three bursts of two packets, all from one source
    ///
    /// let (mut hashes, mut next) = ([0; 2], [0; 2]); // of the burst to decide, and of the one after it
    /// let (now, mut last, mut passed) = (1_000, 0, 0);
    /// Burst::new(&limit, now, &[]).check(&table, None, NextBurst::keys(&mut hashes, |i| received[0][i]))?;
    /// for keys in &received[1..] {
    ///     let burst = Burst { last, ..Burst::new(&limit, now, &hashes) };
    ///     last = burst.check(&table, None, NextBurst::keys(&mut next, |i| keys[i]))?;
    ///     passed += last.count_ones();
    ///     (hashes, next) = (next, hashes);
    /// }
    /// last = Burst::new(&limit, now, &hashes).check(&table, None, NextBurst::hashes(&[]))?;
    /// passed += last.count_ones();
    /// assert_eq!((passed, last), (5, 0b01)); // the sixth packet is one too many
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`]; [`TableError::TooManyKeys`] for more than 64 requests or next keys;
    /// [`TableError::BadCosts`] unless there is one cost for each hash; [`TableError::BadHashKind`] if there are keys
    /// to hash and the caller hashes. On error nothing is decided, counted or hashed.
    ///
    /// # Concurrency
    /// As [`Table::check_hash`]: any number of threads, unless the table is exclusive. Other threads may come in
    /// between two decisions of a burst. A contended request does not pass.
    ///
    /// # Cost
    /// One scan and one compare-and-swap for each request that passes, with the cache misses overlapped. Counting adds
    /// a few percent.
    #[inline(always)]
    pub fn check<M: Access, const N: usize>(
        &self,
        table: &Table<'_, M>,
        counters: Option<&mut Counters>,
        next: NextBurst<'_, impl Fn(usize) -> [u8; N]>,
    ) -> Result<u64, TableError> {
        self.verify(table, &next)?;
        let next: &[u64] = match next.0 {
            Next::Nothing => {
                table.prefetch_as(self.hashes, self.writes());
                &[]
            }
            Next::Hashes(hashes) => hashes,
            Next::Keys(hashes, key) if self.hashes.is_empty() => {
                return table.prepare(hashes, key).map(|()| 0)
            }
            Next::Keys(hashes, key) => {
                // All of them before the first decision: an instruction between two swaps costs more time.
                table.hash_burst(hashes, key)?;
                hashes
            }
        };
        Ok(match next {
            [] => table.decide_alone(self, counters),
            next => table.decide_prefetching(self, counters, next),
        })
    }

    /// Decides the requests in order, and hands the full answer of each to `each`. Bit i of the result is 1 if request
    /// i passes.
    ///
    /// The verdicts, errors and arguments are those of [`check`](Burst::check). The next burst is prefetched before the
    /// first decision.
    ///
    /// ```
    /// # use tatcell::{Burst, Line, LimitSpec, NextBurst, Table, TableOptions};
    /// # static MEMORY: [Line; 66] = [Line::EMPTY; 66];
    /// # let spec = LimitSpec::new(10, 1_000_000_000, 5);
    /// # let table = Table::init(&MEMORY, &TableOptions::new(spec).seed([7; 16]))?;
    /// # let limit = table.limit(&spec)?;
    /// let hashes = [table.hash(b"192.0.2.1")?; 2];
    /// let mut remaining = [0; 2];
    /// let burst = Burst { costs: Some(&[1, 3]), ..Burst::new(&limit, 0, &hashes) };
    /// burst.check_ex(&table, None, NextBurst::NONE, |i, decision| remaining[i] = decision.remaining)?;
    /// assert_eq!(remaining, [4, 1]);
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Errors
    /// As [`check`](Burst::check).
    ///
    /// # Cost
    /// Each request costs as much as [`Table::check_ex`], with the cache misses overlapped.
    pub fn check_ex<M: Access, const N: usize>(
        &self,
        table: &Table<'_, M>,
        counters: Option<&mut Counters>,
        next: NextBurst<'_, impl Fn(usize) -> [u8; N]>,
        each: impl FnMut(usize, &Decision),
    ) -> Result<u64, TableError> {
        self.start(table, next)?;
        let request = |i| Some((self.limit, self.cost(i)));
        Ok(table.decide_each(self.now, self.hashes, request, counters, Some(each)))
    }

    /// Refuses a limit of another table, too many requests or next keys, and costs that are not one for each request.
    #[inline(always)]
    pub(super) fn verify<M: Access, F>(
        &self,
        table: &Table<'_, M>,
        next: &NextBurst<'_, F>,
    ) -> Result<(), TableError> {
        table.verify_limit(self.limit)?;
        let (count, following) = (self.hashes.len(), next.len());
        if count > MAX_BURST || following > MAX_BURST {
            return Err(TableError::TooManyKeys);
        }
        if self.costs.is_some_and(|costs| costs.len() != count) {
            return Err(TableError::BadCosts);
        }
        Ok(())
    }

    /// Will most of the lines be written?
    pub(in crate::table) fn writes(&self) -> bool {
        self.last.count_ones() as usize * 2 > self.hashes.len()
    }

    /// Returns whether some requests of the last burst passed, and at least `few` did not, if it had as many as this
    /// one. False if `last` is 0, because then there may have been no last burst.
    #[cfg_attr(not(tatcell_sse2), allow(dead_code))] // only groups call it
    pub(in crate::table) fn denies(&self, few: usize) -> bool {
        self.last != 0 && self.last.count_ones() as usize + few <= self.hashes.len()
    }
}

impl<M: Access> Table<'_, M> {
    /// Decides one by one, under limits that the caller has verified, until `request` returns `None`. `each` gets the
    /// full answers in order.
    pub(crate) fn decide_each<'l>(
        &self,
        now: u64,
        hashes: &[u64],
        request: impl Fn(usize) -> Option<(&'l TableLimit, u64)>,
        mut counters: Option<&mut Counters>,
        mut each: Option<impl FnMut(usize, &Decision)>,
    ) -> u64 {
        let mut pass = 0u64;
        for (i, &hash) in hashes.iter().enumerate() {
            let Some((limit, cost)) = request(i) else { break };
            let passes = if counters.is_none() && each.is_none() {
                self.check_owned(limit, now, hash, cost).passes()
            } else {
                let request = Request { limit, now, cost, room: 0 };
                let decision = self.decide_ex(&request, hash, counters.as_deref_mut());
                if let Some(each) = &mut each {
                    each(i, &decision);
                }
                decision.passes()
            };
            pass |= (passes as u64).wrapping_shl(i as u32);
        }
        pass
    }
}

/// Returns the cost of request i. The call has verified that there is one for each; a request without one would get a
/// cost above every burst, so it would be refused and nobody charged.
#[inline(always)]
pub(crate) fn cost_of(costs: &[u32], i: usize) -> u64 {
    costs.get(i).map_or_else(|| impossible!(u64::MAX), |&cost| cost.into())
}

//! Many requests of a prepared chain at one instant.
//!
//! ```text
//!  requests   0   1   2 ...         AHEAD          each request: the hashes of its links, one after the other
//!             ^                     ^
//!             decided by single     its lines are
//!             calls, in order       prefetched meanwhile
//! ```

use super::error::ChainError;
use super::prepared::PreparedChain;
use crate::answer::Decision;
use crate::table::MAX_BURST;

/// How many requests ahead lines are prefetched.
const AHEAD: usize = 8;

/// Up to 64 requests at one instant under a [`PreparedChain`].
///
/// ```
/// use tatcell::{ChainBurst, LimitSpec, Line, Link, PreparedChain, Table, TableOptions};
/// static MEMORY: [Line; 66] = [Line::EMPTY; 66];
///
/// // For each address 3, for each user 2; ticks are milliseconds.
/// let (of_address, of_user) = (LimitSpec::new(10, 1_000, 3), LimitSpec::new(10, 1_000, 2));
/// let table = Table::init(&MEMORY, &TableOptions::new(of_address).seed([7; 16]))?;
/// let limits = [table.limit(&of_address)?, table.limit(&of_user)?];
/// let chain =
///     PreparedChain::new(&[Link::hash(&table, &limits[0], 0, 1), Link::hash(&table, &limits[1], 0, 1)])?;
///
/// let [address, alice, bob] = [table.hash(b"4192.0.2.1")?, table.hash(b"ualice")?, table.hash(b"ubob")?];
/// let hashes = [address, alice, address, alice, address, alice, address, bob, address, bob];
/// let burst = ChainBurst { chain: &chain, now: 0, hashes: &hashes, costs: None };
/// assert_eq!(burst.check()?, 0b01011); // the third of alice and the fourth of the address are refused
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ChainBurst<'a> {
    /// The limits of each request.
    pub chain: &'a PreparedChain<'a>,
    /// The caller's clock, in ticks.
    pub now: u64,
    /// For each request a hash for each link, one request after the other. That of a cell is not used.
    pub hashes: &'a [u64],
    /// Units, in the order of the hashes; `None` means one unit each.
    pub costs: Option<&'a [u64]>,
}

impl ChainBurst<'_> {
    /// Decides the requests in order. Bit i of the result is 1 if request i passes.
    ///
    /// The verdicts and charges are those of [`PreparedChain::verdict`] for each request in the same order, repeated
    /// keys included. Contended requests do not pass.
    ///
    /// # Errors
    /// The errors of [`PreparedChain::verdict`] for any of the requests; [`ChainError::BadCount`] for more than 64
    /// requests. Nothing is decided then.
    ///
    /// # Concurrency
    /// Like [`Chain::check`](crate::Chain::check); other threads may act between two requests.
    ///
    /// # Cost
    /// That of single calls, without most of their cache misses.
    pub fn check(&self) -> Result<u64, ChainError> {
        self.run(|chain, hashes, costs, _| Ok(chain.verdict_of(self.now, hashes, costs)?.passes()))
    }

    /// Decides like [`check`](ChainBurst::check), and calls `each` for each request: with its decision if it does not
    /// pass, else with `None`.
    ///
    /// # Errors
    /// The errors of [`check`](ChainBurst::check).
    pub fn check_ex(&self, mut each: impl FnMut(usize, Option<&Decision>)) -> Result<u64, ChainError> {
        self.run(|chain, hashes, costs, i| {
            let refused = chain.refusal_of(self.now, hashes, costs)?;
            each(i, refused.as_ref());
            Ok(refused.is_none())
        })
    }

    /// Returns the hashes and the costs of request i.
    #[inline(always)]
    fn request(&self, i: usize) -> (&[u64], Option<&[u64]>) {
        let (links, from) = (self.chain.count(), i.wrapping_mul(self.chain.count()));
        (part(self.hashes, from, links), self.costs.map(|costs| part(costs, from, links)))
    }

    #[inline(always)]
    fn run(
        &self,
        mut decide: impl FnMut(&PreparedChain<'_>, &[u64], Option<&[u64]>, usize) -> Result<bool, ChainError>,
    ) -> Result<u64, ChainError> {
        let (chain, links) = (self.chain, self.chain.count().max(1));
        let count = self.hashes.len() / links;
        if count > MAX_BURST
            || self.hashes.len() % links != 0
            || self.costs.is_some_and(|costs| costs.len() != self.hashes.len())
        {
            return Err(ChainError::BadCount);
        }
        // Every error shows before the first decision.
        if chain.may_err() {
            (0..count).try_for_each(|i| chain.verify(self.request(i)))?;
        }
        (0..count.min(AHEAD)).for_each(|i| chain.prefetch(self.request(i).0));
        let mut pass = 0u64;
        for i in 0..count {
            chain.prefetch(self.request(i.wrapping_add(AHEAD)).0);
            let (hashes, costs) = self.request(i);
            pass |= (decide(chain, hashes, costs, i)? as u64).wrapping_shl(i as u32);
        }
        Ok(pass)
    }
}

/// Returns `count` numbers; none behind the last request.
#[inline(always)]
fn part(all: &[u64], from: usize, count: usize) -> &[u64] {
    all.get(from..from.wrapping_add(count)).unwrap_or(&[])
}

//! A chain whose links are checked once. A request brings only what changes: hashes of keys, costs and `now`.
//!
//! ```text
//!  new      links: limits, tables, cells that occur twice, links of one table      once, before the first request
//!  request  hashes, costs ----> are all costs plain, are keys of one table different?
//!                               yes: short way (short.rs), no link is copied       no: a Chain of these links
//! ```
//!
//! `prepared_burst.rs` decides many requests, with the lines of those ahead prefetched.

use super::chain::Chain;
use super::error::ChainError;
use super::link::{either, Link, Target, MAX_LINKS};
use super::short::{self, note, overriding, All, Links, Short};
use crate::answer::{Decision, Verdict};
use crate::keys::Hasher;
use crate::table::Override;

/// Holds the links of a [`Chain`] that is asked again and again. Threads may share it.
///
/// [`new`](PreparedChain::new) checks the links once. Each request then brings a hash and a cost for each link. The
/// answers are those of a [`Chain`] of the same links.
///
/// ```
/// use tatcell::{limit, Cell, Limit, LimitSpec, Line, Link, PreparedChain, Table, TableOptions};
/// static MEMORY: [Line; 66] = [Line::EMPTY; 66];
/// static ALL: Cell = Cell::new();
/// static OF_ALL: Limit = limit!(1_000 per 1_000, burst 3); // ticks are milliseconds
///
/// let spec = LimitSpec::new(10, 1_000, 2);
/// let table = Table::init(&MEMORY, &TableOptions::new(spec).seed([7; 16]))?;
/// let limit = table.limit(&spec)?;
/// // The hash and the costs of these links do not matter.
/// let chain = PreparedChain::new(&[Link::hash(&table, &limit, 0, 1), Link::cell(&ALL, &OF_ALL, 1)])?;
///
/// let one = table.hash(b"192.0.2.1")?;
/// assert!(chain.verdict(0, &[one, 0], None)?.passes());
/// assert!(chain.verdict(0, &[one, 0], None)?.passes());
/// assert_eq!(chain.check(0, &[one, 0], Some(&[1, 1]))?.retry_after, 100); // the limit of the key
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct PreparedChain<'a> {
    pub(super) links: [Link<'a>; MAX_LINKS],
    count: usize,
    /// Whether the short way knows all links, if their costs are plain.
    short: bool,
    /// Whether a link is a key.
    keys: bool,
    /// Whether a link is an override.
    overrides: bool,
    /// Whether two links are keys of one table.
    shares: bool,
    /// The number of links if they are two or three plain cells, which `short_cells.rs` decides; else 0.
    pub(super) cells: u8,
    /// For each link the links before it that are keys of the same table, one bit each.
    same: [u8; MAX_LINKS],
}

impl<'a> PreparedChain<'a> {
    /// Prepares 1 to [`MAX_LINKS`] links. Their hashes and costs are not used, because each request brings its own.
    /// Each request has the extra units and the elastic room of these links.
    ///
    /// # Errors
    /// [`ChainError`], as [`Chain::new`] reports for links of different keys.
    ///
    /// # Cost
    /// Compares each link with those before it; reads no word.
    pub fn new(links: &[Link<'a>]) -> Result<PreparedChain<'a>, ChainError> {
        let first = links.first().ok_or(ChainError::Empty)?;
        let mut all = [*first; MAX_LINKS];
        let own = all.get_mut(..links.len()).ok_or(ChainError::TooManyLinks)?;
        for ((i, to), link) in own.iter_mut().enumerate().zip(links) {
            *to = Link { target: link.target.with_hash(i as u64), cost: 0, ..*link };
        }
        // Refuses what is wrong whatever the keys are: they are different here.
        Chain::new(own)?;
        let mut made = PreparedChain {
            links: all,
            count: links.len(),
            short: true,
            keys: false,
            overrides: false,
            shares: false,
            cells: 0,
            same: [0; MAX_LINKS],
        };
        for ((i, link), same) in links.iter().enumerate().zip(&mut made.same) {
            let knows = matches!(link.target, Target::Cell(..) | Target::Key(..));
            made.keys |= matches!(link.target, Target::Key(..));
            made.overrides |= link.target.is_overrides();
            made.short &= knows && link.extra | link.room == 0;
            for (j, before) in links.iter().enumerate().take(i) {
                match (&link.target, &before.target) {
                    (Target::Key(a, ..), Target::Key(b, ..)) if a.is(b) => {
                        *same |= 1u8.wrapping_shl(j as u32)
                    }
                    (a, b) => made.short &= !a.is(b),
                }
            }
            made.shares |= *same != 0;
        }
        let in_cells = links.iter().all(|link| matches!(link.target, Target::Cell(..)));
        if in_cells && made.short && (2..=3).contains(&made.count) {
            made.cells = made.count as u8;
        }
        Ok(made)
    }

    /// Returns the number of links.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Decides one request: charges all links if it conforms to all, else none. This is the fastest form.
    ///
    /// `hashes` has one for each link, made by the link's table; that of a cell is not used. `costs` has one for each
    /// link; `None` means one unit each.
    ///
    /// # Errors
    /// [`ChainError::BadCount`] unless there are as many hashes and costs as links; [`ChainError::TwoLimits`] and
    /// [`ChainError::BadCost`] if two links name one key. Nothing is touched then.
    ///
    /// # Concurrency
    /// Like [`Chain::check`].
    ///
    /// # Cost
    /// One lookup and one compare-and-swap for each link, only loads if the request is refused; no link is copied.
    #[inline]
    pub fn verdict(&self, now: u64, hashes: &[u64], costs: Option<&[u64]>) -> Result<Verdict, ChainError> {
        let mut asked = Asked::of(self, costs);
        asked.take(hashes, true)?;
        match self.cells {
            0 => asked.verdict(now),
            _ => self.cells_verdict(now, costs),
        }
    }

    /// Does the same as [`verdict`](PreparedChain::verdict), with the hash that `hash` makes of each key. As many costs
    /// as links are given.
    #[allow(dead_code)] // the C layer asks
    #[inline(always)]
    pub(crate) fn verdict_by<E: From<ChainError>>(
        &self,
        now: u64,
        costs: Option<&[u64]>,
        hash: impl FnMut(usize, &Hasher) -> Result<u64, E>,
    ) -> Result<Verdict, E> {
        let mut asked = Asked::of(self, costs);
        asked.hash(true, hash)?;
        Ok(asked.verdict(now)?)
    }

    /// Decides like [`verdict`](PreparedChain::verdict), with the decision of [`Chain::check`].
    ///
    /// # Errors
    /// The errors of [`verdict`](PreparedChain::verdict).
    pub fn check(&self, now: u64, hashes: &[u64], costs: Option<&[u64]>) -> Result<Decision, ChainError> {
        let mut asked = Asked::of(self, costs);
        asked.take(hashes, true)?;
        asked.decision(now)
    }

    /// Does the same as [`check`](PreparedChain::check), in the way of [`verdict_by`](PreparedChain::verdict_by).
    #[allow(dead_code)] // the C layer asks
    #[inline(always)]
    pub(crate) fn check_by<E: From<ChainError>>(
        &self,
        now: u64,
        costs: Option<&[u64]>,
        hash: impl FnMut(usize, &Hasher) -> Result<u64, E>,
    ) -> Result<Decision, E> {
        let mut asked = Asked::of(self, costs);
        asked.hash(true, hash)?;
        Ok(asked.decision(now)?)
    }

    /// Decides like [`verdict`](PreparedChain::verdict) a request whose lines are prefetched.
    #[inline(always)]
    pub(super) fn verdict_of(
        &self,
        now: u64,
        hashes: &[u64],
        costs: Option<&[u64]>,
    ) -> Result<Verdict, ChainError> {
        let mut asked = Asked::of(self, costs);
        asked.take(hashes, false)?;
        asked.verdict(now)
    }

    /// Decides like [`check`](PreparedChain::check) a request whose lines are prefetched; returns `None` if it passes.
    #[inline(always)]
    pub(super) fn refusal_of(
        &self,
        now: u64,
        hashes: &[u64],
        costs: Option<&[u64]>,
    ) -> Result<Option<Decision>, ChainError> {
        let mut asked = Asked::of(self, costs);
        asked.take(hashes, false)?;
        match asked.refusal(now) {
            Some(refusal) => Ok(refusal),
            None => asked.long_way(now).map(|made| (!made.passes()).then_some(made)),
        }
    }

    /// Makes the chain of one request, for all that a chain can do: count, peek, charge, reserve, refund.
    ///
    /// # Errors
    /// The errors of [`verdict`](PreparedChain::verdict).
    pub fn chain(&self, hashes: &[u64], costs: Option<&[u64]>) -> Result<Chain<'a>, ChainError> {
        let mut asked = Asked::of(self, costs);
        asked.take(hashes, true)?;
        asked.chain()
    }

    /// Returns whether some keys or costs of a request are an error.
    pub(super) fn may_err(&self) -> bool {
        self.shares || !self.short
    }

    /// Refuses keys and costs that are an error: only equal keys can be one, or links that the short way does not know.
    pub(super) fn verify(&self, (hashes, costs): (&[u64], Option<&[u64]>)) -> Result<(), ChainError> {
        if self.short && !self.has_twice(hashes) {
            return Ok(());
        }
        self.chain(hashes, costs).map(drop)
    }

    /// Returns whether two links are one key of one table. Out of line for the reason of `swap_all` in `short.rs`: a
    /// chain of two keys took 44 ns instead of 32 on a Zen 4.
    #[cold]
    #[inline(never)]
    fn has_twice(&self, hashes: &[u64]) -> bool {
        let mut twice = false;
        // Loops, because chains of iterators stay calls here.
        for (i, (same, hash)) in self.same.iter().zip(hashes).enumerate().take(self.count) {
            for (j, before) in hashes.iter().enumerate().take(i) {
                twice |= same.wrapping_shr(j as u32) & 1 != 0 && before == hash;
            }
        }
        twice
    }

    /// Returns what hashes the key of link i, if it has one.
    #[allow(dead_code)] // the C layer asks
    #[inline(always)]
    pub(crate) fn hasher(&self, i: usize) -> Option<&'a Hasher> {
        match self.links.get(i)?.target {
            Target::Key(table, ..) => Some(either!(table, t => &t.hasher)),
            _ => None,
        }
    }

    /// Prefetches the lines of a request's keys.
    #[inline(always)]
    pub(super) fn prefetch(&self, hashes: &[u64]) {
        for (link, hash) in self.links.iter().zip(hashes) {
            link.target.with_hash(*hash).prefetch();
        }
    }
}

/// Returns the cost of link i.
#[inline(always)]
fn cost_of(costs: Option<&[u64]>, i: usize) -> u64 {
    // As many costs as links; no limit passes a cost that is missing.
    costs.map_or(1, |costs| costs.get(i).copied().unwrap_or_else(|| impossible!(u64::MAX)))
}

/// One request of a prepared chain, as links of the short way. The lines of its keys are prefetched.
pub(super) struct Asked<'a, 'r> {
    chain: &'r PreparedChain<'a>,
    hashes: [u64; MAX_LINKS],
    costs: Option<&'r [u64]>,
    /// Whether the short way knows all links. That of a cell may still have a cost that is not plain: the look finds
    /// out.
    short: bool,
}

impl<'a, 'r> Asked<'a, 'r> {
    /// Makes a request whose keys are not hashed yet.
    #[inline(always)]
    pub(super) fn of(chain: &'r PreparedChain<'a>, costs: Option<&'r [u64]>) -> Asked<'a, 'r> {
        Asked { chain, hashes: [0; MAX_LINKS], costs, short: chain.short }
    }

    /// Hashes the keys of a request, prefetches their lines, and tests whether the short way knows them. In place: a
    /// hash that was just stored is slow to move.
    #[inline(always)]
    fn hash<E>(
        &mut self,
        fetch: bool,
        mut hash: impl FnMut(usize, &Hasher) -> Result<u64, E>,
    ) -> Result<(), E> {
        let PreparedChain { links, count, keys, shares, .. } = self.chain;
        if !keys {
            return Ok(());
        }
        // `bits` has each value of the last six bits of a hash; `again`: one value came twice.
        let (mut bits, mut again) = (0u64, false);
        for (i, (link, place)) in links.iter().zip(&mut self.hashes).enumerate().take(*count) {
            if let Target::Key(table, limit, _) = link.target {
                let (made, cost) = (hash(i, either!(table, t => &t.hasher))?, cost_of(self.costs, i));
                *place = made;
                again |= bits.wrapping_shr(made as u32) & 1 != 0;
                bits |= 1u64.wrapping_shl(made as u32);
                // An override is only asked.
                self.short &= limit.is_none_or(|limit| either!(table, t => t.is_plain(limit, cost)));
                if fetch {
                    Target::Key(table, limit, made).prefetch();
                }
            }
        }
        if *shares && again {
            self.short &= !self.chain.has_twice(&self.hashes);
        }
        Ok(())
    }

    /// Takes the hashes of a request, as many as links.
    #[inline(always)]
    fn take(&mut self, hashes: &[u64], fetch: bool) -> Result<(), ChainError> {
        let count = self.chain.count;
        if hashes.len() != count || self.costs.is_some_and(|costs| costs.len() != count) {
            return Err(ChainError::BadCount);
        }
        self.hash(fetch, |i, _| hashes.get(i).copied().ok_or(ChainError::BadCount))
    }

    #[inline(always)]
    fn verdict(&self, now: u64) -> Result<Verdict, ChainError> {
        match self.passes(now) {
            Some(true) => Ok(Verdict::Conforming),
            Some(false) => Ok(Verdict::NonConforming),
            None => Ok(self.long_way(now)?.verdict),
        }
    }

    #[inline(always)]
    fn decision(&self, now: u64) -> Result<Decision, ChainError> {
        match self.check(now) {
            Some(decision) => Ok(decision),
            None => self.long_way(now),
        }
    }

    /// Decides if the short way can, and returns whether the request passes.
    #[inline(always)]
    fn passes(&self, now: u64) -> Option<bool> {
        if !self.short {
            return None;
        }
        // A link that can never pass would decide instead of one that refuses.
        short::passes(self, now).filter(|passes| *passes || self.is_plain())
    }

    /// Decides if the short way can, in a frame of its own.
    #[inline(never)]
    fn check(&self, now: u64) -> Option<Decision> {
        let mut made = Decision::contended(0, 0);
        (self.short && self.is_plain() && short::check(self, now, &mut made)).then_some(made)
    }

    /// Decides like [`check`](Asked::check); `Some(None)` means that the request passes.
    #[inline(always)]
    fn refusal(&self, now: u64) -> Option<Option<Decision>> {
        (self.short && self.is_plain()).then(|| short::refusal(self, now)).flatten()
    }

    /// Decides by a chain, for links or costs that the short way does not know.
    #[cold]
    #[inline(never)]
    pub(super) fn long_way(&self, now: u64) -> Result<Decision, ChainError> {
        Ok(self.chain()?.check_long(now))
    }

    fn chain(&self) -> Result<Chain<'a>, ChainError> {
        let mut links = self.chain.links;
        for (i, link) in links.iter_mut().enumerate().take(self.chain.count) {
            let (target, cost) = self.at(i).ok_or_else(|| impossible!(ChainError::BadCount))?;
            (link.target, link.cost) = (target, if target.is_overrides() { 0 } else { cost });
        }
        Chain::new(links.get(..self.chain.count).unwrap_or_else(|| impossible!(&[])))
    }

    /// Returns whether one inequality decides each link.
    fn is_plain(&self) -> bool {
        let is_plain = |(target, cost): (Target<'_>, u64)| target.is_plain(cost) || target.is_overrides();
        (0..self.chain.count).all(|i| self.at(i).is_some_and(is_plain))
    }
}

impl<'a> Links<'a> for Asked<'a, '_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.chain.count
    }

    #[inline(always)]
    fn at(&self, i: usize) -> Option<(Target<'a>, u64)> {
        let (link, hash) = (self.chain.links.get(i)?, *self.hashes.get(i)?);
        Some((link.target.with_hash(hash), cost_of(self.costs, i)))
    }

    #[inline(always)]
    fn look(&self, now: u64, all: &mut All<'a>) -> Result<bool, Short> {
        let (mut absent, links) = (false, self.chain.links.iter().zip(&self.hashes));
        for (i, ((link, hash), seen)) in links.zip(all).enumerate().take(self.chain.count) {
            absent |= note(link.target.look_as(now, *hash, cost_of(self.costs, i)), i, seen)?;
        }
        Ok(absent)
    }

    #[inline(always)]
    fn overridden(&self, now: u64, all: &All<'a>) -> Option<Override> {
        if self.chain.overrides {
            overriding(self, now, all)
        } else {
            None
        }
    }

    /// They are prefetched.
    #[inline(always)]
    fn prefetch(&self, _: usize) {}
}

impl core::fmt::Debug for PreparedChain<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PreparedChain").field("links", &self.count).finish_non_exhaustive()
    }
}

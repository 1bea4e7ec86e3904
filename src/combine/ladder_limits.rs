//! The limits of a ladder of prefixes, and one call for an address: it charges all prefixes of the address, or none.
//!
//! A table keeps one debt for each prefix that was lately seen. Its keys are those of [`Address::prefix`]. The `policy`
//! of a refusal is the most specific tier that refuses: the longest prefix is looked at first. For verdicts see
//! [`Order`](super::ladder_look::Order).

use super::chain::Chain;
use super::ladder_look::{hash_all, Order, Rungs};
use super::ladder_overrides::LadderOverrides;
use super::link::{either, Link, TableRef, Target};
use super::short;
use crate::answer::Decision;
use crate::keys::{Address, Ladder, Rung, MAX_RUNGS};
use crate::limit::{Algorithm, LimitError, LimitSpec, TableLimit};
use crate::table::{TableError, TableOptions};

/// Holds the limits of all tiers of a [`Ladder`], made once for a table.
///
/// ```
/// use tatcell::{Address, Ladder, LadderLimits, LimitSpec, Line, Table};
/// static MEMORY: [Line; 1026] = [Line::EMPTY; 1026];
///
/// let (ladder, spec) = (Ladder::DEFAULT, LimitSpec::new(10, 1_000_000_000, 5)); // of one address
/// let table = Table::init(&MEMORY, &ladder.table_options(&spec)?.seed([7; 16]))?;
/// let limits = LadderLimits::new(&table, &ladder, &spec)?;
///
/// // One host after the other of one /64, which has twice the limit of an address.
/// let mut passed = 0;
/// let mut refused_by = None;
/// for host in 0..100 {
///     let address = Address::from([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
///     let decision = limits.check(&table, 0, &address, 1)?;
///     match decision.passes() {
///         true => passed += 1,
///         false => refused_by = limits.tier(&address, decision.policy),
///     }
/// }
/// assert_eq!((passed, refused_by.unwrap().bits), (10, 64));
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LadderLimits {
    pub(super) ladder: Ladder,
    pub(super) v4: [TableLimit; MAX_RUNGS],
    pub(super) v6: [TableLimit; MAX_RUNGS],
}

impl LadderLimits {
    /// Makes the limit of each tier: `spec` for one address; for the others units, burst and every other amount of
    /// units times the multiplier.
    ///
    /// # Errors
    /// [`TableError::Limit`] for an invalid specification; [`TableError::LimitTooFast`] if the table's options do not
    /// provide for a tier, as those of [`table_options`](Ladder::table_options) do.
    pub fn new<'a>(
        table: impl Into<TableRef<'a>>,
        ladder: &Ladder,
        spec: &LimitSpec,
    ) -> Result<LadderLimits, TableError> {
        let table = table.into();
        let blank = table.unlimited();
        let mut made = LadderLimits { ladder: *ladder, v4: [blank; MAX_RUNGS], v6: [blank; MAX_RUNGS] };
        made.fill(table, ladder, spec)?;
        Ok(made)
    }

    /// Returns the error that [`fill`](LadderLimits::fill) would return. It writes nothing.
    #[allow(dead_code)] // the C layer asks
    #[inline(never)]
    pub(crate) fn verify(table: TableRef<'_>, ladder: &Ladder, spec: &LimitSpec) -> Result<(), TableError> {
        let mut made = table.unlimited();
        let mut rungs = ladder.rungs(true).iter().chain(ladder.rungs(false));
        rungs.try_for_each(|rung| tier_limit(table, spec, rung, &mut made))
    }

    /// Makes the limits of all tiers in place: they have 2 KiB, and a stack may have little more. On error some are
    /// made.
    #[inline(never)]
    pub(crate) fn fill(
        &mut self,
        table: TableRef<'_>,
        ladder: &Ladder,
        spec: &LimitSpec,
    ) -> Result<(), TableError> {
        self.ladder = *ladder;
        for (v4, limits) in [(true, &mut self.v4), (false, &mut self.v6)] {
            limits.fill(table.unlimited());
            for (rung, limit) in ladder.rungs(v4).iter().zip(limits) {
                tier_limit(table, spec, rung, limit)?;
            }
        }
        Ok(())
    }

    /// Decides one request of an address: charges all its prefixes if it conforms to the limit of each, else none.
    /// `policy` is the index of a tier, see [`tier`](LadderLimits::tier); everything else is as for [`Chain::check`].
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`] for a table that the limits were not made for; [`TableError::BadHashKind`] if the
    /// caller hashes. Nothing is touched then.
    ///
    /// # Concurrency
    /// Like [`Chain::check`].
    ///
    /// # Cost
    /// For each tier a hash, a lookup of one or two cache lines, and a compare-and-swap; only loads if the request is
    /// refused. A limit with options, or of another algorithm than GCRA, takes a second lookup.
    pub fn check<'a>(
        &'a self,
        table: impl Into<TableRef<'a>>,
        now: u64,
        address: &Address,
        cost: u64,
    ) -> Result<Decision, TableError> {
        let table = table.into();
        let mut made = Decision::contended(cost, 0);
        match self.check_short(table, now, (address, cost), None, &mut made)? {
            true => Ok(made),
            false => self.check_long(table, now, address, cost),
        }
    }

    /// Decides if the short way can, in a frame of its own, and writes the decision. The overrides are those that
    /// [`LadderOverrides::if_used`] returned. Returns false, nothing charged, if the long way must decide.
    #[inline(never)]
    pub(crate) fn check_short(
        &self,
        table: TableRef<'_>,
        now: u64,
        (address, cost): (&Address, u64),
        overrides: Option<&LadderOverrides<'_>>,
        to: &mut Decision,
    ) -> Result<bool, TableError> {
        let (then, order) = (|rungs: &Rungs<'_>| short::check(rungs, now, to), Order::Longest);
        let made = self.with_rungs(table, (address, cost), overrides, order, then);
        Ok(made?.unwrap_or(false))
    }

    #[inline(never)]
    pub(crate) fn check_long<'a>(
        &'a self,
        table: TableRef<'a>,
        now: u64,
        address: &Address,
        cost: u64,
    ) -> Result<Decision, TableError> {
        Ok(self.chain(table, address, cost)?.check_long(now))
    }

    /// Decides like [`check`](LadderLimits::check) if the short way can, and returns whether the request passes. The
    /// overrides are those that [`LadderOverrides::if_used`] returned.
    #[allow(dead_code)] // the C layer asks
    #[inline(never)]
    pub(crate) fn passes(
        &self,
        table: TableRef<'_>,
        now: u64,
        address: &Address,
        cost: u64,
        overrides: Option<&LadderOverrides<'_>>,
    ) -> Result<Option<bool>, TableError> {
        let (then, order) = (|rungs: &Rungs<'_>| short::passes(rungs, now), Order::Ends);
        let made = self.with_rungs(table, (address, cost), overrides, order, then);
        Ok(made?.flatten())
    }

    /// Returns whether the short way knows the limits and the cost.
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`] for a table that the limits were not made for.
    #[allow(dead_code)] // the C layer asks
    #[cold]
    #[inline(never)]
    pub(crate) fn are_plain(
        &self,
        table: TableRef<'_>,
        address: &Address,
        cost: u64,
    ) -> Result<bool, TableError> {
        let [first, ..] = if address.is_v4() { &self.v4 } else { &self.v6 };
        either!(table, t => t.verify_limit(first))?;
        Ok(Target::Key(table, Some(first), 0).is_plain(cost))
    }

    /// Hashes the prefixes of an address, prefetches their lines, and runs `then` with them: moving a hash that was
    /// just stored is slow. Returns `None` if the short way does not know the limits or the cost.
    #[inline(always)]
    fn with_rungs<'a, T>(
        &'a self,
        table: TableRef<'a>,
        (address, cost): (&'a Address, u64),
        overrides: Option<&'a LadderOverrides<'a>>,
        order: Order,
        then: impl FnOnce(&Rungs<'a>) -> T,
    ) -> Result<Option<T>, TableError> {
        let v4 = address.is_v4();
        let (each, limits) = (self.ladder.rungs(v4), if v4 { &self.v4 } else { &self.v6 });
        let [first, ..] = limits;
        // The others differ in units alone, and have no smaller burst.
        if !Target::Key(table, Some(first), 0).is_plain(cost) {
            return Ok(None);
        }
        let overrides = overrides.map(|overrides| (overrides, address));
        let (hashes, count) = ([0; MAX_RUNGS], each.len());
        let mut rungs = Rungs { table, limits, hashes, count, cost, overrides, order };
        let fetch = |_, hash| either!(table, t => t.prefetch(core::slice::from_ref(&hash)));
        hash_all(table, address, &self.ladder, &mut rungs.hashes, fetch)?;
        Ok(Some(then(&rungs)))
    }

    /// Makes the chain of an address, for all that a chain can do: peek, count, charge, reserve, refund.
    ///
    /// # Errors
    /// The errors of [`check`](LadderLimits::check).
    pub fn chain<'a>(
        &'a self,
        table: impl Into<TableRef<'a>>,
        address: &Address,
        cost: u64,
    ) -> Result<Chain<'a>, TableError> {
        self.chain_with_room(table, address, cost, 0)
    }

    /// Makes a chain like [`chain`](LadderLimits::chain) with elastic room, in units of one address: each tier has its
    /// multiplier times as many, as of everything in units.
    ///
    /// # Errors
    /// The errors of [`check`](LadderLimits::check).
    pub fn chain_with_room<'a>(
        &'a self,
        table: impl Into<TableRef<'a>>,
        address: &Address,
        cost: u64,
        room: u64,
    ) -> Result<Chain<'a>, TableError> {
        let table = table.into();
        let (v4, mut hashes) = (address.is_v4(), [0; MAX_RUNGS]);
        hash_all(table, address, &self.ladder, &mut hashes, |_, _| ())?;
        self.chain_of(table, v4, &hashes, cost, room)
    }

    /// Makes that chain from the hashes of the prefixes.
    pub(super) fn chain_of<'a>(
        &'a self,
        table: TableRef<'a>,
        v4: bool,
        hashes: &[u64; MAX_RUNGS],
        cost: u64,
        room: u64,
    ) -> Result<Chain<'a>, TableError> {
        let (rungs, limits) = (self.ladder.rungs(v4), if v4 { &self.v4 } else { &self.v6 });
        let [any, ..] = limits;
        let mut links = [Link::hash(table, any, 0, cost); MAX_RUNGS];
        for (((link, limit), rung), hash) in links.iter_mut().zip(limits).zip(rungs).zip(hashes) {
            *link = Link::hash(table, limit, *hash, cost).room(room.saturating_mul(rung.multiplier.into()));
        }
        // Prefixes of different lengths are different keys, each with one limit. Only another table can be refused.
        Chain::new(links.get(..rungs.len()).unwrap_or_else(|| impossible!(&[])))
            .map_err(|_| TableError::ForeignLimit)
    }

    /// Returns the tier that the `policy` of a decision means for an address.
    pub fn tier(&self, address: &Address, policy: u32) -> Option<Rung> {
        self.ladder.rungs(address.is_v4()).get(policy as usize).copied()
    }

    /// Returns the limits of IPv4 or of IPv6, one for each of the ladder's [rungs](Ladder::rungs): for links of a
    /// [`Chain`] that asks other limits too.
    pub fn limits(&self, v4: bool) -> &[TableLimit] {
        let limits = if v4 { &self.v4 } else { &self.v6 };
        limits.get(..self.ladder.rungs(v4).len()).unwrap_or_else(|| impossible!(&[]))
    }

    /// Returns the ladder that the limits were made for.
    pub fn ladder(&self) -> &Ladder {
        &self.ladder
    }
}

impl Ladder {
    /// Returns options of a table that has room for all tiers, given the limit of one address. Seed, policy and the
    /// rest are still to be chosen.
    ///
    /// # Errors
    /// [`TableError::Limit`] if the largest multiplier does not fit.
    pub fn table_options(&self, spec: &LimitSpec) -> Result<TableOptions, TableError> {
        let (fastest, slowest) = self.specs(spec).map_err(TableError::Limit)?;
        Ok(TableOptions::new(fastest).slowest(slowest))
    }

    /// Returns the fastest limit of its tiers, and one that is longer than each of them.
    pub(crate) fn specs(&self, spec: &LimitSpec) -> Result<(LimitSpec, LimitSpec), LimitError> {
        if spec.algorithm != Algorithm::Gcra {
            // Windows have one length, and no burst of their own.
            return Ok((times(spec, self.widest())?, *spec));
        }
        // A table rounds the emission interval of each tier up, by at most a 1024th.
        let units = spec.burst.saturating_add(spec.max_room.max(spec.max_debt).max(spec.penalty));
        let burst = spec.burst.saturating_add(units / 512).saturating_add(1);
        Ok((times(spec, self.widest())?, LimitSpec { burst, ..*spec }))
    }
}

/// Makes the limit of one tier. A frame of its own gives its stack back before the next one.
#[inline(never)]
fn tier_limit(
    table: TableRef<'_>,
    spec: &LimitSpec,
    rung: &Rung,
    to: &mut TableLimit,
) -> Result<(), TableError> {
    // By reference: a move would copy it onto the stack again.
    match &times(spec, rung.multiplier) {
        Err(e) => Err(TableError::Limit(*e)),
        Ok(tier) => match &table.limit(tier) {
            Err(e) => Err(*e),
            Ok(limit) => {
                *to = *limit;
                Ok(())
            }
        },
    }
}

/// Returns a limit with all units multiplied.
fn times(spec: &LimitSpec, multiplier: u32) -> Result<LimitSpec, LimitError> {
    let all = |units: u64| units.checked_mul(multiplier.into()).ok_or(LimitError::NotRepresentable);
    Ok(LimitSpec {
        units: all(spec.units)?,
        burst: all(spec.burst)?,
        soft: all(spec.soft)?,
        max_room: all(spec.max_room)?,
        max_debt: all(spec.max_debt)?,
        penalty: all(spec.penalty)?,
        ..*spec
    })
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_prefix_has_so_many_times_all_that_is_in_units() {
        let spec = LimitSpec::new(10, 1_000, 20).soft(15).max_room(3).max_debt(4).penalty(5).max_delay(70);
        let more = times(&spec, 7).expect("it fits");
        let units = [more.units, more.burst, more.soft, more.max_room, more.max_debt, more.penalty];
        assert_eq!(units, [70, 140, 105, 21, 28, 35]);
        assert_eq!((more.period, more.max_delay), (1_000, 70), "a time is not multiplied");
        for large in [spec.soft(u64::MAX / 2), spec.max_room(u64::MAX / 2), spec.max_debt(u64::MAX / 2)] {
            assert!(times(&large, 7).is_err());
        }
    }

    /// The emission interval of a tier may be a 1024th longer than asked for, and so may its debts.
    #[test]
    fn the_slowest_limit_of_a_ladder_is_longer_by_what_rounding_takes_and_not_by_more() {
        for (burst, room) in [(1, 0), (512, 0), (1_000, 0), (1 << 20, 0), (3, 1 << 20), (1 << 30, 1 << 10)] {
            let spec = LimitSpec::new(10, 1_000, burst).max_room(room);
            let (_, slowest) = Ladder::DEFAULT.specs(&spec).expect("it fits");
            let more = slowest.burst.saturating_sub(burst);
            let all = burst.saturating_add(room);
            assert!(more > all / 1024 && more <= all / 512 + 1, "{burst} and {room}: {more}");
        }
    }
}

//! Many addresses under the limits of a ladder, and overrides that are asked before the limits.
//!
//! ```text
//!  address i    overrides: banned ----> refused, nothing charged        addresses ahead    hashed, their lines
//!                          exempt ----> passes, nothing charged                            prefetched meanwhile
//!                          neither ---> chain of its prefixes: all or none
//! ```
//!
//! Each address is decided as by a call of its own, in order: [`Table::overridden_address`](crate::Table), then
//! [`LadderLimits::check`]. A burst of one address is one call for both.

use super::counters::ChainCounters;
use super::ladder_limits::LadderLimits;
use super::ladder_overrides::{overridden, LadderOverrides};
use super::link::TableRef;
use crate::answer::{Decision, Permit};
use crate::keys::{Address, MAX_RUNGS};
use crate::table::{cost_of, Override, TableError};

/// Up to 64 requests of addresses at one instant, under the limits of a ladder. One address is a burst, too.
///
/// ```
/// use tatcell::{Address, Decision, Ladder, LadderBurst, LadderLimits, LadderOverrides};
/// use tatcell::{LimitSpec, Line, PrefixLengths, Table, TableOptions};
/// static MEMORY: [Line; 1026] = [Line::EMPTY; 1026];
/// static BANS: [Line; 130] = [Line::EMPTY; 130];
///
/// let (ladder, spec) = (Ladder::DEFAULT, LimitSpec::new(10, 1_000, 2)); // of one address; milliseconds
/// let table = Table::init(&MEMORY, &ladder.table_options(&spec)?.seed([7; 16]))?;
/// let limits = LadderLimits::new(&table, &ladder, &spec)?;
/// let bans = Table::init(&BANS, &TableOptions::overrides(86_400_000).seed([8; 16]))?;
/// bans.ban_address(0, [198, 51, 100, 0], 24, 56, 60_000)?;
///
/// let addresses = [[192, 0, 2, 1], [198, 51, 100, 7], [192, 0, 2, 1], [192, 0, 2, 1]].map(Address::from);
/// let asked = PrefixLengths { v4: &[32, 24], v6: &[128, 56] };
/// let overrides = Some(LadderOverrides::new(&bans, asked));
/// let burst = LadderBurst { overrides, ..LadderBurst::new(&limits, 0, &addresses) };
/// let pass = burst.check(&table, None, |i, decision, _| {
///     assert_eq!(decision.flags & Decision::BANNED != 0, i == 1);
/// })?;
/// assert_eq!(pass, 0b0101); // one is banned, and the last is the third of two
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy)]
pub struct LadderBurst<'a> {
    /// The limits of all tiers.
    pub limits: &'a LadderLimits,
    /// The caller's clock, in ticks.
    pub now: u64,
    /// The addresses, at most [`MAX_BURST`](crate::MAX_BURST).
    pub addresses: &'a [Address],
    /// Units of each request, one number for each address. `None` means one unit each.
    pub costs: Option<&'a [u32]>,
    /// Elastic room of each request, in units of one address: see [`LadderLimits::chain_with_room`]. `None` means none.
    pub rooms: Option<&'a [u32]>,
    /// What bans and exempts addresses. `None` means nothing.
    pub overrides: Option<LadderOverrides<'a>>,
}

impl<'a> LadderBurst<'a> {
    /// Makes a burst whose requests cost one unit each, without room and overrides.
    pub const fn new(limits: &'a LadderLimits, now: u64, addresses: &'a [Address]) -> LadderBurst<'a> {
        LadderBurst { limits, now, addresses, costs: None, rooms: None, overrides: None }
    }

    /// Decides the requests in order. Bit i of the result is 1 if request i passes. `each` gets the decision of each
    /// address, and the permits of its tiers for [`Chain::refund`](crate::Chain::refund).
    ///
    /// Verdicts and charges are those of single calls in the same order, also if an address occurs twice. A banned
    /// address is refused and an exempt one passes, and neither is charged. Then the decision has
    /// [`BANNED`](Decision::BANNED) or [`EXEMPT`](Decision::EXEMPT), and its `policy` is the number of no tier: 8.
    ///
    /// `counters` count one decision for each address, and in `links[i]` those of tier i. No tier counts an address
    /// that an override decides.
    ///
    /// # Errors
    /// Those of [`LadderLimits::check`] and of [`overridden_address`](crate::Table::overridden_address);
    /// [`TableError::TooManyKeys`] for more than 64 addresses; [`TableError::BadCosts`] unless there are as many costs
    /// and rooms as addresses. Nothing is decided then.
    ///
    /// # Concurrency
    /// Like [`Chain::check`](crate::Chain::check); other threads may act between two addresses. A contended request
    /// does not pass.
    ///
    /// # Cost
    /// That of single calls, without most of their cache misses: the lines of the next addresses are prefetched.
    pub fn check<'c>(
        &self,
        table: impl Into<TableRef<'a>>,
        counters: impl Into<ChainCounters<'c>>,
        each: impl FnMut(usize, &Decision, &[Permit; MAX_RUNGS]),
    ) -> Result<u64, TableError> {
        self.run(table.into(), false, counters.into(), each)
    }

    /// Charges the requests after the fact, in order: each tier of an address, whatever its limit would have said, as
    /// [`Chain::charge`](crate::Chain::charge). An exempt address is not charged; a banned one is, because it was let
    /// through. Bit i is 0 only if a tier of request i was contended, or refused by a full set; under `Admit` and
    /// `Sampled` a full set charges nothing, and the bit is 1. Rooms have no effect.
    ///
    /// # Errors
    /// As [`check`](LadderBurst::check); nothing is charged then.
    pub fn charge<'c>(
        &self,
        table: impl Into<TableRef<'a>>,
        counters: impl Into<ChainCounters<'c>>,
        each: impl FnMut(usize, &Decision, &[Permit; MAX_RUNGS]),
    ) -> Result<u64, TableError> {
        self.run(table.into(), true, counters.into(), each)
    }

    fn run(
        &self,
        table: TableRef<'a>,
        charges: bool,
        mut counters: ChainCounters<'_>,
        mut each: impl FnMut(usize, &Decision, &[Permit; MAX_RUNGS]),
    ) -> Result<u64, TableError> {
        self.decide_each(table, |i, address, hashes, found| {
            let mut permits = [Permit::NONE; MAX_RUNGS];
            let decision = match found {
                Some(found @ Override::Exempt { .. }) => self.overridden(i, found, &mut counters),
                Some(found @ Override::Banned { .. }) if !charges => self.overridden(i, found, &mut counters),
                _ => {
                    let room = self.rooms.map_or(0, |rooms| rooms.get(i).map_or(0, |&room| room.into()));
                    let chain = self.limits.chain_of(table, address.is_v4(), hashes, self.cost(i), room)?;
                    let counters =
                        ChainCounters { chain: counters.chain.as_deref_mut(), links: &mut *counters.links };
                    let keep = |tier: usize, answer: &Decision| {
                        if let Some(permit) = permits.get_mut(tier) {
                            *permit = answer.permit;
                        }
                    };
                    match charges {
                        true => chain.charge_ex(self.now, counters, keep),
                        false => chain.check_ex(self.now, counters, keep),
                    }
                }
            };
            each(i, &decision, &permits);
            Ok(decision.passes())
        })
    }

    pub(super) fn cost(&self, i: usize) -> u64 {
        self.costs.map_or(1, |costs| cost_of(costs, i))
    }

    /// Returns the decision of an override, which no tier counts.
    fn overridden(&self, i: usize, found: Override, counters: &mut ChainCounters<'_>) -> Decision {
        let decision = overridden(self.now, self.cost(i), found);
        if let Some(counters) = &mut counters.chain {
            counters.count(&decision, false);
        }
        decision
    }
}

impl LadderLimits {
    /// Decides one request of an address like [`check`](LadderLimits::check), unless an override decides it: a burst
    /// of one address ([`LadderBurst::check`]).
    ///
    /// # Errors
    /// The errors of [`LadderBurst::check`].
    ///
    /// # Concurrency
    /// Like [`Chain::check`](crate::Chain::check).
    pub fn check_with<'a>(
        &'a self,
        table: impl Into<TableRef<'a>>,
        overrides: &LadderOverrides<'a>,
        now: u64,
        address: &Address,
        cost: u64,
    ) -> Result<Decision, TableError> {
        let (table, overrides) = (table.into(), overrides.if_used()?);
        let mut made = Decision::contended(cost, 0);
        match self.check_short(table, now, (address, cost), overrides, &mut made)? {
            true => Ok(made),
            false => {
                // Its errors come before an override decides.
                let chain = self.chain(table, address, cost)?;
                let found = overrides.and_then(|overrides| overrides.look(now, address));
                Ok(found.map_or_else(|| chain.check_long(now), |found| overridden(now, cost, found)))
            }
        }
    }
}

impl core::fmt::Debug for LadderBurst<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LadderBurst").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

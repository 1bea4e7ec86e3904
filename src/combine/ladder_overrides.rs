//! The overrides that are asked before the limits of a ladder.

use super::link::{either, override_answer, TableRef};
use crate::answer::Decision;
use crate::keys::{Address, MAX_RUNGS};
use crate::table::{Override, PrefixLengths, TableError, PREFIXES_AT_ONCE};

/// A table of overrides, and the lengths of the prefixes that are asked in it, for
/// [`LadderBurst`](crate::LadderBurst).
///
/// ```
/// use tatcell::{Address, Ladder, LadderLimits, LadderOverrides, LimitSpec, Line, PrefixLengths, Table, TableOptions};
/// let (memory, bans) = ([const { Line::EMPTY }; 130], [const { Line::EMPTY }; 130]);
/// let (ladder, spec) = (Ladder::DEFAULT, LimitSpec::new(10, 1_000, 2)); // of one address; milliseconds
/// let table = Table::init(&memory, &ladder.table_options(&spec)?.seed([7; 16]))?;
/// let limits = LadderLimits::new(&table, &ladder, &spec)?;
/// let bans = Table::init(&bans, &TableOptions::overrides(86_400_000).seed([8; 16]))?;
/// bans.ban_address(0, [198, 51, 100, 0], 24, 56, 60_000)?;
///
/// let overrides = LadderOverrides::new(&bans, PrefixLengths { v4: &[32, 24], v6: &[128, 56] });
/// let ask = |address: [u8; 4]| limits.check_with(&table, &overrides, 0, &Address::from(address), 1);
/// assert!(!ask([198, 51, 100, 7])?.passes() && ask([192, 0, 2, 1])?.passes());
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy)]
pub struct LadderOverrides<'a> {
    /// A table made by [`TableOptions::overrides`](crate::TableOptions::overrides).
    pub table: TableRef<'a>,
    /// The longest prefix with an override decides, of these.
    pub lengths: PrefixLengths<'a>,
}

impl<'a> LadderOverrides<'a> {
    /// Names a table of either mode, and the lengths to ask.
    pub fn new(table: impl Into<TableRef<'a>>, lengths: PrefixLengths<'a>) -> LadderOverrides<'a> {
        LadderOverrides { table: table.into(), lengths }
    }

    /// Checks what does not depend on the address. Returns `None` if no address has an override.
    #[inline(always)]
    pub(crate) fn if_used(&self) -> Result<Option<&LadderOverrides<'a>>, TableError> {
        Ok(either!(self.table, t => t.asks(self.lengths))?.then_some(self))
    }

    /// Looks for the override of an address. `if_used` has checked the rest.
    #[inline(always)]
    pub(super) fn look(&self, now: u64, address: &Address) -> Option<Override> {
        either!(self.table, t => t.look_address(now, address, self.lengths)).map(|(found, _)| found)
    }

    /// Hashes the first prefixes that are asked for an address, and prefetches their lines.
    #[inline(always)]
    pub(super) fn fetch(&self, address: &Address, hashes: &mut [u64; PREFIXES_AT_ONCE]) {
        either!(self.table, t => t.fetch_address(address, self.lengths, hashes));
    }

    /// Looks like [`look`](LadderOverrides::look), with the hashes that [`fetch`](LadderOverrides::fetch) made. Out of
    /// line, once for all kinds of bursts.
    #[inline(never)]
    pub(super) fn look_fetched(
        &self,
        now: u64,
        address: &Address,
        hashes: &[u64; PREFIXES_AT_ONCE],
    ) -> Option<Override> {
        either!(self.table, t => t.look_fetched(now, address, self.lengths, hashes)).map(|(found, _)| found)
    }
}

/// Returns the decision of an override of an address.
pub(super) fn overridden(now: u64, cost: u64, found: Override) -> Decision {
    Decision { policy: MAX_RUNGS as u32, cost, ..override_answer(now, Some(found)) }
}

impl core::fmt::Debug for LadderOverrides<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LadderOverrides").field("lengths", &self.lengths).finish_non_exhaustive()
    }
}

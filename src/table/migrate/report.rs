//! What a migration reports about the debts that it copied.
#![forbid(unsafe_code)]

/// Reports what became of the debts of a migrated table. A debt has as many copies as its key may have sets in the new
/// table; `copied`, `merged` and `dropped` add up to all copies.
///
/// ```
/// use tatcell::{LimitSpec, Line, Table, TableOptions};
/// let (old, new) = ([const { Line::EMPTY }; 66], [const { Line::EMPTY }; 66]);
/// let spec = LimitSpec::new(10, 1_000, 20); // ticks are milliseconds
/// let options = TableOptions::new(spec).seed(*b"16 random bytes!");
/// let table = Table::init(&old, &options)?;
/// assert!(table.check(&table.limit(&spec)?, 0, b"192.0.2.1", 20)?.passes());
/// let (_, report) = table.migrate(&new, &options, 0)?;
/// assert_eq!((report.copied, report.merged, report.is_whole()), (1, 0, true));
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Migrated {
    /// Copies that got a slot of the new table.
    pub copied: u64,
    /// Copies that share the slot of a larger debt of the same tag.
    pub merged: u64,
    /// Copies that found their set full of larger debts. Under `Admit` and `Sampled` they are forgiven; under `Inherit`
    /// and `Deny` the set stays full until they would have drained.
    pub dropped: u64,
    /// Copies of any of these kinds whose debt was above the new table's horizon and was cut to it. A finer resolution
    /// cuts a full debt by what the coarser one had rounded up.
    pub clamped: u64,
    /// Sets of the new table whose absent keys may have owed something, which is forgiven. Only if the old table
    /// inherits or denies and the new one does not.
    pub opened: u64,
}

impl Migrated {
    /// Returns whether nothing was forgiven, whatever the policy. Not in the report: a key under a sliding counter or a
    /// decaying level that gets a longer window or half-life; see [`Table::migrate`](crate::Table::migrate).
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.dropped | self.clamped | self.opened == 0
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_migration_is_whole_where_nothing_was_dropped_cut_or_opened() {
        for (dropped, clamped, opened) in (0..27).map(|n| (n % 3, n / 3 % 3, n / 9)) {
            let told = Migrated { copied: 5, merged: 3, dropped, clamped, opened };
            assert_eq!(told.is_whole(), (dropped, clamped, opened) == (0, 0, 0), "{told:?}");
        }
    }
}

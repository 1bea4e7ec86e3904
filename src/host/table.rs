//! A table that owns its memory, made by one call.

use super::{random_seed, HostError, Memory};
use crate::answer::Outcome;
use crate::limit::{LimitSpec, TableLimit};
use crate::table::{lines_for_load, FullPolicy, Line, Sweeper, Table, TableError, TableOptions};

/// The chance, in billionths, that a new key finds its set full while as many keys as asked for hold a slot.
pub(crate) const FULL_SET_PPB: u64 = 1_000;

/// A table together with its memory, its seed and one limit for all its keys.
///
/// For programs that want nothing special: anonymous memory, on huge pages if the system has them, and a seed from the
/// system's random source. It moves, and its memory is unmapped when it is dropped. Threads share it by reference. Its
/// checks sweep it, so it needs no timer, however rarely they come.
///
/// ```
/// use tatcell::{host::{now_ns, Clock, OwnedTable}, FullPolicy, LimitSpec};
/// let clients = OwnedTable::open(&LimitSpec::per_second(10).burst(20), 100_000, FullPolicy::Admit)?;
/// let now = now_ns(Clock::Monotonic)?;
/// assert!(clients.check(now, b"192.0.2.1", 20).passes());
/// assert!(!clients.check(now, b"192.0.2.1", 1).passes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OwnedTable {
    limit: TableLimit,
    table: Table<'static>,
    sweeper: Sweeper,
    // Holds what `table` points to, and unmaps it.
    memory: Memory,
}

/// Says why a table could not be opened.
///
/// ```
/// use tatcell::host::{HostError, OpenError, OwnedTable};
/// use tatcell::{FullPolicy, LimitError, LimitSpec, TableError};
/// let open = |rate, keys| OwnedTable::open(&LimitSpec::per_second(rate), keys, FullPolicy::Admit).err();
/// assert_eq!(open(10, 0), Some(OpenError::Host(HostError::BadSize)));
/// assert_eq!(open(0, 100), Some(OpenError::Table(TableError::Limit(LimitError::ZeroRate))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The system gave no memory or no random bytes.
    Host(HostError),
    /// The limit or the policy is not possible.
    Table(TableError),
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            OpenError::Host(error) => error.fmt(f),
            OpenError::Table(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for OpenError {}

impl From<HostError> for OpenError {
    fn from(error: HostError) -> OpenError {
        OpenError::Host(error)
    }
}

impl From<TableError> for OpenError {
    fn from(error: TableError) -> OpenError {
        OpenError::Table(error)
    }
}

/// Memory for a table in which a new key finds its set full with a chance of 1e-6 while `keys` keys hold a slot.
pub(crate) fn memory_for(keys: usize) -> Result<Memory, HostError> {
    // 0 lines: no table is large enough.
    let lines = if keys == 0 { 0 } else { lines_for_load(keys as u64, FULL_SET_PPB) };
    Memory::huge(lines.checked_mul(size_of::<Line>()).ok_or(HostError::BadSize)?)
}

impl OwnedTable {
    /// Opens a table in which each key has this limit, for `keys` keys that are in debt at the same time.
    ///
    /// With that many, a new key finds its set full with a chance of one in a million, and then the policy decides. A
    /// key takes 34 to 36 bytes then. The ticks of the limit are the caller's, as everywhere. Writes all of the memory.
    ///
    /// # Errors
    /// [`OpenError::Table`]: the limit does not fit a table, or the policy is not for its algorithm.
    /// [`OpenError::Host`]: no memory, no random bytes, or `keys` is 0 or too large for any table.
    pub fn open(limit: &LimitSpec, keys: usize, policy: FullPolicy) -> Result<OwnedTable, OpenError> {
        OwnedTable::open_with(&TableOptions::new(*limit).policy(policy), limit, keys)
    }

    /// Opens a table like [`open`](OwnedTable::open), with options for more than one limit: those of a
    /// [ladder](crate::Ladder::table_options), for instance. Their seed is replaced by the system's random bytes.
    ///
    /// ```
    /// use tatcell::{host::OwnedTable, Address, Ladder, LadderLimits, LimitSpec};
    /// let (ladder, spec) = (Ladder::DEFAULT, LimitSpec::per_second(10).burst(5)); // of one address
    /// let table = OwnedTable::open_with(&ladder.table_options(&spec)?, &spec, 100_000)?;
    /// let limits = LadderLimits::new(table.table(), &ladder, &spec)?;
    /// assert!(limits.check(table.table(), 0, &Address::from([192, 0, 2, 1]), 5)?.passes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`open`](OwnedTable::open); [`TableError::LimitTooFast`] if the options do not provide for the
    /// limit.
    pub fn open_with(
        options: &TableOptions,
        limit: &LimitSpec,
        keys: usize,
    ) -> Result<OwnedTable, OpenError> {
        let memory = memory_for(keys)?;
        // SAFETY: the mapping stays where it is until `memory` is dropped, and `table` is lent out only for as long as
        // this object lives.
        let lines: &'static [Line] = unsafe { &*core::ptr::from_ref(memory.lines()) };
        let table = Table::init(lines, &options.seed(random_seed()?))?;
        Ok(OwnedTable { limit: table.limit(limit)?, table, sweeper: Sweeper::new(), memory })
    }

    /// Asks whether `cost` units of a key pass now, under the limit of the table. Sweeps first. See [`Table::check`].
    pub fn check(&self, now: u64, key: &[u8], cost: u64) -> Outcome {
        self.sweep(now);
        match self.table.check(&self.limit, now, key, cost) {
            Ok(outcome) => outcome,
            // The limit is the table's, and the table hashes.
            Err(_) => impossible!(Outcome::Contended),
        }
    }

    /// Sweeps what is due by now. Call it before each call on [`table`](OwnedTable::table): it forgets what was charged
    /// without it. See [`Sweeper::sweep`].
    ///
    /// ```
    /// use tatcell::{host::OwnedTable, FullPolicy, LimitSpec};
    /// let clients = OwnedTable::open(&LimitSpec::per_second(10).burst(20), 100_000, FullPolicy::Admit)?;
    /// let (now, key) = (1, clients.table().hash(b"192.0.2.1")?);
    /// clients.sweep(now);
    /// assert!(clients.table().check_hash(clients.limit(), now, key, 20)?.passes());
    /// // After 2.4 hours without a call the debt would count once more.
    /// let now = (1 << 43) - 1_000_000_000;
    /// clients.sweep(now);
    /// assert!(clients.table().check_hash(clients.limit(), now, key, 20)?.passes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sweep(&self, now: u64) {
        self.sweeper.sweep(&self.table, now);
    }

    /// Returns the table, for every other call. [Sweep](OwnedTable::sweep) before each.
    pub fn table(&self) -> &Table<'_> {
        &self.table
    }

    /// Returns the limit of its keys.
    pub fn limit(&self) -> &TableLimit {
        &self.limit
    }

    /// Returns the memory of the table.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

//! One limit of a chain: what is charged, under which limit, and how much.

use super::error::ChainError;
use crate::answer::{Decision, Permit, Verdict};
use crate::cell::{Cell, Cell32};
use crate::limit::{Limit, Limit32, LimitSpec, TableLimit};
use crate::table::{Counters, ExclusiveTable, Override, Request, Table, TableError};

/// The largest number of links of a [`Chain`](crate::Chain).
///
/// ```
/// use tatcell::{Cell, Chain, ChainError, Limit, Link, MAX_LINKS};
/// let (cells, limit) = ([const { Cell::new() }; MAX_LINKS + 1], Limit::new(1, 1_000, 5)?);
/// let links = cells.each_ref().map(|cell| Link::cell(cell, &limit, 1));
/// assert!(Chain::new(&links[..MAX_LINKS]).is_ok());
/// assert_eq!(Chain::new(&links).unwrap_err(), ChainError::TooManyLinks);
/// # Ok::<(), tatcell::LimitError>(())
/// ```
pub const MAX_LINKS: usize = 8;

/// Refers to a table of either mode. References to tables convert into it.
///
/// ```
/// use tatcell::{LimitSpec, Line, Table, TableOptions, TableRef};
/// let spec = LimitSpec::new(10, 1_000_000_000, 20);
/// let lines = [const { Line::EMPTY }; 66];
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// let limit = table.limit(&spec)?;
/// let either = TableRef::from(&table); // a shared one, or one with one owner
/// assert_eq!(either.hash(b"192.0.2.1"), table.hash(b"192.0.2.1"));
/// # let _ = limit;
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy)]
pub enum TableRef<'a> {
    /// A table that threads and processes share.
    Shared(&'a Table<'a>),
    /// A table with one owner.
    Exclusive(&'a ExclusiveTable<'a>),
}

impl<'a, 'm: 'a> From<&'a Table<'m>> for TableRef<'a> {
    fn from(table: &'a Table<'m>) -> TableRef<'a> {
        TableRef::Shared(table)
    }
}

impl<'a, 'm: 'a> From<&'a ExclusiveTable<'m>> for TableRef<'a> {
    fn from(table: &'a ExclusiveTable<'m>) -> TableRef<'a> {
        TableRef::Exclusive(table)
    }
}

/// Runs an expression on a table of either mode.
macro_rules! either {
    ($table:expr, $t:ident => $run:expr) => {
        match $table {
            $crate::combine::TableRef::Shared($t) => $run,
            $crate::combine::TableRef::Exclusive($t) => $run,
        }
    };
}
pub(crate) use either;

impl TableRef<'_> {
    /// Hashes a key with the table's secret.
    ///
    /// # Errors
    /// [`TableError::BadHashKind`] if the caller hashes.
    pub fn hash(&self, key: &[u8]) -> Result<u64, TableError> {
        either!(self, t => t.hash(key))
    }

    pub(super) fn limit(&self, spec: &LimitSpec) -> Result<TableLimit, TableError> {
        either!(self, t => t.limit(spec))
    }

    pub(super) fn unlimited(&self) -> TableLimit {
        either!(self, t => t.unlimited())
    }

    /// Returns whether both have the same slots.
    #[inline(always)]
    pub(crate) fn is(&self, other: &TableRef<'_>) -> bool {
        either!(self, a => either!(other, b => core::ptr::eq(a.slots, b.slots)))
    }
}

/// Names one limit of a [`Chain`](crate::Chain): a cell or the key of a table, its limit, and the cost in the units of
/// that limit.
///
/// ```
/// use tatcell::{limit, Cell, Chain, Limit, Link};
/// static PACKETS: Limit = limit!(100 per 1_000, burst 10);
/// static BYTES: Limit = limit!(50_000 per 1_000, burst 3_000);
/// let (packets, bytes) = (Cell::new(), Cell::new());
/// let links = [Link::cell(&packets, &PACKETS, 1), Link::cell(&bytes, &BYTES, 1_500)];
/// let decided = [(); 3].map(|()| Chain::new(&links).map(|chain| chain.check(0).passes()));
/// assert_eq!(decided, [Ok(true), Ok(true), Ok(false)]); // the third packet has too many bytes
/// ```
#[derive(Clone, Copy)]
pub struct Link<'a> {
    pub(super) target: Target<'a>,
    pub(super) cost: u64,
    pub(super) extra: u64,
    pub(super) room: u64,
}

/// What holds the debt, and its limit.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    Cell(&'a Cell, &'a Limit),
    Cell32(&'a Cell32, &'a Limit32),
    /// Without a limit this is the override of the key, which is never charged.
    Key(TableRef<'a>, Option<&'a TableLimit>, u64),
}

impl<'a> Link<'a> {
    const fn new(target: Target<'a>, cost: u64) -> Link<'a> {
        Link { target, cost, extra: 0, room: 0 }
    }

    /// Makes a link of a cell. Cost 0 only peeks: the chain passes if a cost of 0 does.
    pub const fn cell(cell: &'a Cell, limit: &'a Limit, cost: u64) -> Link<'a> {
        Link::new(Target::Cell(cell, limit), cost)
    }

    /// Makes a link of a 32-bit cell.
    pub const fn cell32(cell: &'a Cell32, limit: &'a Limit32, cost: u64) -> Link<'a> {
        Link::new(Target::Cell32(cell, limit), cost)
    }

    /// Makes a link of a key of a table of either mode.
    ///
    /// # Errors
    /// [`TableError::BadHashKind`] if the caller hashes.
    pub fn key(
        table: impl Into<TableRef<'a>>,
        limit: &'a TableLimit,
        key: &[u8],
        cost: u64,
    ) -> Result<Link<'a>, TableError> {
        let table = table.into();
        Ok(Link::hash(table, limit, table.hash(key)?, cost))
    }

    /// Makes a link like [`key`](Link::key), for a hash made before.
    pub fn hash(table: impl Into<TableRef<'a>>, limit: &'a TableLimit, hash: u64, cost: u64) -> Link<'a> {
        Link::new(Target::Key(table.into(), Some(limit), hash), cost)
    }

    /// Makes a link of the [override](crate::Table::ban) of a key, from a table of overrides, by the key's hash there.
    /// While the key is banned the chain is refused, with [`Decision::BANNED`]. While it is exempt the chain passes
    /// without charging anything, with [`Decision::EXEMPT`]. A ban by any link outweighs an exemption by another.
    pub fn overrides(table: impl Into<TableRef<'a>>, hash: u64) -> Link<'a> {
        Link::new(Target::Key(table.into(), None, hash), 0)
    }

    /// Returns whether it is one of overrides. An error names a limit, or overrides, that its table does not have.
    #[allow(dead_code)] // the C layer asks
    pub(crate) fn overrides_or_limit(&self) -> Result<bool, ChainError> {
        self.target.verify_limit().map(|()| self.target.is_overrides())
    }

    /// Returns whether the short way of a chain takes it.
    #[allow(dead_code)] // the C layer asks
    pub(crate) fn is_plain(&self) -> bool {
        self.extra | self.room == 0 && self.target.is_plain(self.cost)
    }

    /// Returns whether both hold one debt.
    #[allow(dead_code)] // the C layer asks
    pub(crate) fn is_debt_of(&self, other: &Link<'_>) -> bool {
        self.target.is(&other.target)
    }

    /// Charges this many units more once the chain has passed, like [`charge`](crate::Cell::charge). The extra refuses
    /// nothing, ends at the burst (and the limit's `max_debt`), and is not given back. A request that passes only by
    /// shadow mode is charged it, too.
    ///
    /// For an aggregate, a limit over all clients. An attacker who can make it refuse, and sees which requests passed,
    /// can count the requests of others by what is left. With a fresh random number from a small range here (0 to 2,
    /// say), and the aggregate as the last link, what is left reveals nothing. The rate falls by the mean of the extra.
    ///
    /// Source: K. Man and others, "DNS Cache Poisoning Attack Reloaded" (CCS 2020, CVE-2020-25705), and how Linux has
    /// since changed its global limit of ICMP: randomised, asked first and charged last.
    #[must_use]
    pub const fn extra(mut self, units: u64) -> Link<'a> {
        self.extra = units;
        self
    }

    /// Gives this link elastic room, as the `room` of [`Cell::check_ex`](crate::Cell::check_ex): this many units above
    /// the burst are admitted, at most the limit's `max_room`. What was taken of it is given back with the rest if
    /// another link refuses. A link of overrides has none, and a charge needs none. To reserve with it is an error:
    /// a reservation has the limit's `max_delay`.
    #[must_use]
    pub const fn room(mut self, units: u64) -> Link<'a> {
        self.room = units;
        self
    }
}

impl<'a> Target<'a> {
    /// Returns the same target with another key, if it has one.
    #[inline(always)]
    pub(super) fn with_hash(self, hash: u64) -> Target<'a> {
        match self {
            Target::Key(table, limit, _) => Target::Key(table, limit, hash),
            cell => cell,
        }
    }
}

impl Target<'_> {
    /// Refuses a limit that its table would refuse.
    pub fn verify_limit(&self) -> Result<(), ChainError> {
        match self {
            Target::Key(table, Some(limit), _) => {
                either!(table, t => t.verify_limit(limit)).map_err(|_| ChainError::ForeignLimit)
            }
            Target::Key(table, None, _) => {
                either!(table, t => t.holds_overrides()).map_err(|_| ChainError::BadAlgorithm)
            }
            _ => Ok(()),
        }
    }

    /// Returns whether its limit knows when a request may leave.
    pub fn is_gcra(&self) -> bool {
        match self {
            Target::Cell(_, limit) => limit.0.is_gcra(),
            Target::Cell32(_, limit) => limit.0.is_gcra(),
            Target::Key(_, Some(limit), _) => limit.0.is_gcra(),
            Target::Key(_, None, _) => true,
        }
    }

    /// Returns whether both hold one debt. Memory that is mapped twice is not recognised.
    #[inline(always)]
    pub fn is(&self, other: &Target<'_>) -> bool {
        match (self, other) {
            (Target::Cell(a, _), Target::Cell(b, _)) => core::ptr::eq(*a, *b),
            (Target::Cell32(a, _), Target::Cell32(b, _)) => core::ptr::eq(*a, *b),
            (Target::Key(a, _, x), Target::Key(b, _, y)) => x == y && a.is(b),
            _ => false,
        }
    }

    /// Returns whether both have one limit.
    pub fn has_limit_of(&self, other: &Target<'_>) -> bool {
        match (self, other) {
            (Target::Cell(_, a), Target::Cell(_, b)) => a == b,
            (Target::Cell32(_, a), Target::Cell32(_, b)) => a == b,
            (Target::Key(_, a, _), Target::Key(_, b, _)) => a == b,
            _ => false,
        }
    }

    /// Returns whether it is a limited key without a slot.
    pub fn is_absent(&self) -> bool {
        matches!(self, Target::Key(_, Some(_), _)) && self.slot_of(self) == 0
    }

    /// Returns whether it is a limited key without a slot that may take over that of another key.
    pub fn may_take_over(&self) -> bool {
        match self {
            Target::Key(table, Some(_), _) => either!(table, t => t.takes_over()) && self.is_absent(),
            _ => false,
        }
    }

    /// Returns the slots that an insert of this key must not take over because they are those of `other`: none, unless
    /// its table may take slots over. As in [`check`](Target::check).
    pub fn kept(&self, other: &Target<'_>) -> u32 {
        match self {
            Target::Key(table, Some(_), _) if either!(table, t => t.takes_over()) => self.slot_of(other),
            _ => 0,
        }
    }

    /// Returns the slot of `other` in the set of this key, one bit for its position in search order; 0 if it has none.
    #[inline(never)]
    fn slot_of(&self, other: &Target<'_>) -> u32 {
        match (self, other) {
            (Target::Key(table, _, hash), Target::Key(of, Some(_), other)) if table.is(of) => {
                either!(table, t => t.slot_beside(*hash, *other))
            }
            _ => 0,
        }
    }

    pub const fn is_overrides(&self) -> bool {
        matches!(self, Target::Key(_, None, _))
    }

    /// A link of cost 0 takes part in the verdict of the chain, so its refusal counts.
    pub fn peek(&self, now: u64, cost: u64, room: u64) -> Decision {
        match self {
            Target::Cell(cell, limit) => cell.peek_with(limit, now, cost, room),
            Target::Cell32(cell, limit) => cell.peek_with(limit, now, cost, room),
            Target::Key(table, Some(limit), hash) => {
                either!(table, t => t.peek_with(limit, (now, *hash), cost, room))
            }
            Target::Key(table, None, hash) => overriding(now, *table, *hash),
        }
    }

    /// Returns what [`reserve`](Target::reserve) would answer under a limit of GCRA, without charging anything.
    pub fn peek_reserve(&self, now: u64, cost: u64) -> Decision {
        match self {
            Target::Cell(cell, limit) => cell.peek_reserve(limit, now, cost),
            Target::Cell32(cell, limit) => cell.peek_reserve(limit, now, cost),
            Target::Key(table, Some(limit), hash) => {
                either!(table, t => t.peek_reserve(limit, (now, *hash), cost))
            }
            Target::Key(table, None, hash) => overriding(now, *table, *hash),
        }
    }

    /// Returns whether [`peek`](Target::peek) would pass.
    pub fn would_pass(&self, now: u64, cost: u64, room: u64) -> bool {
        let answer = match self {
            Target::Cell(cell, limit) => cell.look(limit, now, cost, room),
            Target::Cell32(cell, limit) => cell.look(limit, now, cost, room),
            Target::Key(table, Some(limit), hash) => {
                either!(table, t => t.answer_of(limit, (now, *hash), cost, room))
            }
            Target::Key(_, None, _) => return self.peek(now, cost, 0).passes(),
        };
        answer.verdict.passes()
    }

    /// Checks the target; a key without a slot takes over none of the slots in `kept`.
    pub fn check(
        &self,
        now: u64,
        cost: u64,
        room: u64,
        counters: Option<&mut Counters>,
        kept: u32,
    ) -> Decision {
        match self {
            Target::Cell(cell, limit) => cell.check_ex(limit, now, cost, room),
            Target::Cell32(cell, limit) => cell.check_ex(limit, now, cost, room),
            Target::Key(table, Some(limit), hash) => {
                let request = Request { limit, now, cost, room };
                either!(table, t => t.check_beside(&request, *hash, counters, kept))
            }
            Target::Key(table, None, hash) => overriding(now, *table, *hash),
        }
    }

    /// Reserves under a limit of GCRA; a key without a slot takes over none of the slots in `kept`.
    pub fn reserve(&self, now: u64, cost: u64, counters: Option<&mut Counters>, kept: u32) -> Decision {
        match self {
            Target::Cell(cell, limit) => cell.reserve(limit, now, cost),
            Target::Cell32(cell, limit) => cell.reserve(limit, now, cost),
            Target::Key(table, Some(limit), hash) => {
                either!(table, t => t.reserve_beside(limit, (now, *hash), cost, counters, kept))
            }
            Target::Key(table, None, hash) => overriding(now, *table, *hash),
        }
    }

    /// Reserves like [`reserve`](Self::reserve), from tick `from` on, which is not before now.
    pub fn reserve_from(&self, now: u64, from: u64, cost: u64) -> Decision {
        match self {
            Target::Cell(cell, limit) => cell.reserve_from(limit, now, from, cost),
            Target::Cell32(cell, limit) => cell.reserve_from(limit, now, from, cost),
            Target::Key(table, Some(limit), hash) => {
                owned(limit, cost, either!(table, t => t.reserve_from(limit, (now, from), *hash, cost)))
            }
            Target::Key(_, None, _) => {
                let answer = self.peek(now, cost, 0);
                Decision { departure: if answer.passes() { from } else { 0 }, ..answer }
            }
        }
    }

    /// Returns the longest delay of a reservation, in ticks; `None` if its limit has none.
    pub fn max_delay(&self) -> Option<u64> {
        match self {
            Target::Cell(_, limit) => limit.max_delay(),
            Target::Cell32(_, limit) => limit.max_delay(),
            Target::Key(_, Some(limit), _) => limit.max_delay(),
            Target::Key(_, None, _) => Some(0),
        }
    }

    /// Charges the target; a key without a slot takes over none of the slots in `kept`.
    pub fn charge(&self, now: u64, units: u64, counters: Option<&mut Counters>, kept: u32) -> Decision {
        match self {
            Target::Cell(cell, limit) => cell.charge(limit, now, units),
            Target::Cell32(cell, limit) => cell.charge(limit, now, units),
            Target::Key(table, Some(limit), hash) => {
                either!(table, t => t.charge_owned(limit, (now, *hash), units, counters, kept))
            }
            Target::Key(table, None, hash) => overriding(now, *table, *hash),
        }
    }

    /// Returns false when contended: nothing was given back.
    pub fn refund(&self, now: u64, permit: &Permit) -> bool {
        match self {
            Target::Cell(cell, limit) => cell.refund(limit, now, permit).is_some(),
            Target::Cell32(cell, limit) => cell.refund(limit, now, permit).is_some(),
            Target::Key(table, Some(limit), hash) => {
                either!(table, t => t.refund(limit, now, *hash, permit)).is_ok_and(|back| back.is_some())
            }
            Target::Key(_, None, _) => true,
        }
    }
}

/// Unwraps the answer of a table whose limit [`Target::verify_limit`] has checked, so that it refuses no call.
fn owned(limit: &TableLimit, cost: u64, made: Result<Decision, TableError>) -> Decision {
    made.unwrap_or(Decision::contended(cost, limit.burst()))
}

/// Returns the answer of an override, or of none: a banned key has nothing left, others have more than can be counted.
/// Out of line, because links of limits are the common case.
#[cold]
#[inline(never)]
fn overriding(now: u64, table: TableRef<'_>, hash: u64) -> Decision {
    override_answer(now, either!(table, t => t.look(now, hash)))
}

/// Returns the answer of this override.
pub(super) fn override_answer(now: u64, found: Option<Override>) -> Decision {
    let (flags, retry_after) = match found {
        Some(Override::Banned { retry_after }) => (Decision::BANNED, retry_after),
        Some(Override::Exempt { .. }) => (Decision::EXEMPT, 0),
        None => (0, 0),
    };
    let none = Decision { flags, ..Decision::contended(0, u64::MAX) };
    if retry_after != 0 {
        let verdict = Verdict::NonConforming;
        return Decision { verdict, retry_after, next_unit: retry_after, reset_after: retry_after, ..none };
    }
    Decision { verdict: Verdict::Conforming, remaining: u64::MAX, departure: now, ..none }
}

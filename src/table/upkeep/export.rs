//! The numbers in q-units with which a program can read and write a table's slots by itself.
#![forbid(unsafe_code)]

use crate::keys::HashKind;
use crate::sync::access::Mode;
use crate::table::error::TableError;
use crate::table::handle::Table;
use crate::table::layout::geometry::{HEADER_LINES, SLOTS_PER_LINE};
use crate::table::layout::policy::FullPolicy;

/// Holds the numbers, in q-units, with which a program can read and write the slots of a GCRA table by itself (BPF:
/// `tatcell_bpf.h`). The seed is not among them: the caller has it.
///
/// The home line of a hash is `(hash >> 32) * lines >> 32`. The tag is the low bits of the hash, in their place: `hash
/// * (mask + 1)` without bit 63 and without the bits of `mask`, or `mask + 1` if that is 0.
///
/// ```
/// use tatcell::{LimitSpec, Line, Table, TableOptions};
/// let (spec, lines) = (LimitSpec::new(10, 1_000, 20), [const { Line::EMPTY }; 66]);
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// let numbers = table.numbers()?;
/// assert_eq!((numbers.lines, numbers.header_bytes), (64, 128));
/// assert!(numbers.window_q > numbers.horizon_q && numbers.window_q <= numbers.mask);
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableNumbers {
    /// The policy for full sets.
    pub policy: FullPolicy,
    /// How keys are hashed.
    pub hash: HashKind,
    /// One tick is 2^shift_left q-units.
    pub shift_left: u32,
    /// One q-unit is 2^shift_right ticks; at least one of both shifts is 0.
    pub shift_right: u32,
    /// Lines of 8 slots, without the header.
    pub lines: u32,
    /// Bytes of the header. The slots follow it.
    pub header_bytes: u32,
    /// The payload bits of a slot word. The tag lies above them, and the claim bit on top.
    pub mask: u64,
    /// H, the longest debt that a slot can hold.
    pub horizon_q: u64,
    /// H + S: a slot is live iff 1 <= payload - now <= this.
    pub window_q: u64,
    /// The claim lifetime.
    pub claim_lifetime_q: u64,
    /// How far ahead the version of an empty slot may lie so that the slot can still be taken.
    pub grace_q: u64,
    /// The generation of the table, which permits carry.
    pub generation: u64,
    /// Whether the table has one owner at a time.
    pub exclusive: bool,
}

impl<M: Mode> Table<'_, M> {
    /// Returns what a program must know to read and write this table's slots by itself.
    ///
    /// ```
    /// use tatcell::{Line, LimitSpec, Table, TableOptions};
    /// let spec = LimitSpec::new(10, 1_000_000_000, 20);
    /// let memory = [const { Line::EMPTY }; 66];
    /// let table = Table::init(&memory, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
    /// let (numbers, hash) = (table.numbers()?, table.hash(b"192.0.2.1")?);
    /// let home = (hash >> 32) * u64::from(numbers.lines) >> 32;
    /// assert!(home < 64);
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Errors
    /// [`TableError::BadAlgorithm`] if the table's algorithm is not GCRA.
    pub fn numbers(&self) -> Result<TableNumbers, TableError> {
        let g = &self.geometry;
        if !g.is_gcra() {
            return Err(TableError::BadAlgorithm);
        }
        Ok(TableNumbers {
            policy: g.policy,
            hash: g.hash,
            shift_left: g.shl.into(),
            shift_right: g.shr.into(),
            lines: g.lines,
            header_bytes: (HEADER_LINES * SLOTS_PER_LINE * size_of::<u64>()) as u32,
            mask: g.layout.mask,
            horizon_q: g.horizon,
            window_q: g.layout.window,
            claim_lifetime_q: g.layout.lifetime,
            grace_q: g.layout.grace,
            generation: g.generation,
            exclusive: self.is_exclusive(),
        })
    }
}

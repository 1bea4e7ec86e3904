//! The numbers of a table that read and write its slots, in q-units, for a program that does it by itself.
#![forbid(unsafe_code)]

use crate::keys::HashKind;
use crate::sync::access::Access;
use crate::table::error::TableError;
use crate::table::handle::Table;
use crate::table::layout::geometry::{HEADER_LINES, SLOTS_PER_LINE};
use crate::table::layout::policy::FullPolicy;

/// The numbers that read and write the slots of a table of GCRA, in q-units, for a program that does it by itself (BPF:
/// `tatcell_bpf.h`). The seed is not among them: it is the caller's.
///
/// The home line of a hash is `(hash >> 32) * lines >> 32`; the tag, the hash's low bits in their place, is
/// `hash * (mask + 1)` without bit 63 and without the bits of `mask`, and `mask + 1` where that is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableNumbers {
    /// The full-set policy.
    pub policy: FullPolicy,
    /// How keys are hashed.
    pub hash: HashKind,
    /// A tick is 2^shift_left q-units.
    pub shift_left: u32,
    /// A q-unit is 2^shift_right ticks; one of both shifts is 0.
    pub shift_right: u32,
    /// Lines of 8 slots, without the header.
    pub lines: u32,
    /// Bytes of the header, which the slots follow.
    pub header_bytes: u32,
    /// The payload's bits of a slot word; above it lie the tag, and the claim bit on top.
    pub mask: u64,
    /// H.
    pub horizon_q: u64,
    /// H + S: a slot is live iff 1 <= payload - now <= this.
    pub window_q: u64,
    /// The claim lifetime.
    pub claim_lifetime_q: u64,
    /// How far an empty slot's version may lie ahead and still be taken.
    pub grace_q: u64,
    /// Permits carry it.
    pub generation: u64,
    /// Is there one owner at a time?
    pub exclusive: bool,
}

impl<M: Access> Table<'_, M> {
    /// Gives what a program needs to know that reads and writes this table's slots by itself.
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
    /// [`TableError::BadAlgorithm`]: the table's algorithm is not GCRA, and these numbers are.
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
            exclusive: M::EXCLUSIVE,
        })
    }
}

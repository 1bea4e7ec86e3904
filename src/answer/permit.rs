//! The record of a charge, which a refund needs.

/// Proves what a charge stored, so that a later refund can give back no more than that.
///
/// A refund gives back the part of the charge that has not drained yet. A permit carries the tick of its charge, so it
/// credits nothing once it is older than the limit's horizon, however long the clock has run. A permit of a table
/// carries the table's generation, so it credits nothing after a restore of the table. It also credits nothing after a
/// reset of its key. The permit of a request that was not charged (refused, untracked, of cost 0, or a check that
/// passes only by shadow mode) is all zero and credits nothing.
///
/// If the charge inserted its key into a table, the permit covers up to one claim lifetime and one q-unit less than the
/// charge.
///
/// ```
/// use tatcell::{limit, Cell, Limit};
/// static LIMIT: Limit = limit!(10 per 1_000, burst 20); // ticks are milliseconds
/// static CELL: Cell = Cell::new();
/// let charged = CELL.check_ex(&LIMIT, 0, 15, 0);
/// assert_eq!(CELL.refund(&LIMIT, 100, &charged.permit), Some(1_400)); // one unit has drained meanwhile
/// assert_eq!(CELL.peek(&LIMIT, 100, 1).remaining, 20);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Permit {
    /// The time in the word after the charge, in q-units (GCRA: the TAT), with a count if the word has one. For a
    /// sliding log, the stamp.
    pub tat: u64,
    /// The stored charge, in q-units, or in units if the limit counts units; 0 if nothing was charged.
    pub stored: u64,
    /// The caller's clock at the charge, in ticks.
    pub tick: u64,
    /// The generation of the table that charged; 0 for cells.
    pub generation: u64,
    /// The epoch of the limit that charged.
    pub epoch: u32,
    /// The charged slot (tables) or stamp (sliding logs); else 0.
    pub slot: u32,
    /// Always 0.
    pub reserved: [u64; 3],
}

impl Permit {
    /// The permit of a request that charged nothing.
    pub const NONE: Permit =
        Permit { tat: 0, stored: 0, tick: 0, generation: 0, epoch: 0, slot: 0, reserved: [0; 3] };
}

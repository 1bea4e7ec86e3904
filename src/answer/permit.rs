//! What a refund needs to know of a charge.

/// Proves what a charge stored, so that a later refund can give back no more than that.
///
/// A permit is worth what it charged and has not drained since, and nothing once it is older than the limit's horizon,
/// however long the clock has run: it carries the tick of its charge. In a table it is worth nothing after a reset of
/// its key and after a restore of the table: it carries the table's generation. The permit of a request that was not
/// charged (denied, untracked, shadow, cost 0) is all zero and refunds nothing.
///
/// The charge that inserts its key into a table stores in its permit what lies above its claim: up to one claim
/// lifetime and one q-unit less than it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Permit {
    /// The time in the word after the charge, in q-units (GCRA: the TAT), a count with it; of a sliding log the stamp.
    pub tat: u64,
    /// What the charge stored, in q-units, or in units where the limit counts them; 0 = nothing.
    pub stored: u64,
    /// The caller's clock at the charge, in ticks.
    pub tick: u64,
    /// Generation of the table that charged; 0 for cells.
    pub generation: u64,
    /// Epoch of the limit that charged.
    pub epoch: u32,
    /// Slot that was charged (tables), or stamp (sliding logs), else 0.
    pub slot: u32,
    /// 0.
    pub reserved: [u64; 3],
}

impl Permit {
    /// The permit of a request that charged nothing.
    pub const NONE: Permit =
        Permit { tat: 0, stored: 0, tick: 0, generation: 0, epoch: 0, slot: 0, reserved: [0; 3] };
}

//! What a refund needs to know of a charge.

/// Proves what a charge stored, so that a later refund can give back no more than that.
///
/// A charge that inserts its key into a table stores in its permit up to one claim lifetime less than it cost.
/// The permit of a request that was not charged (denied, untracked, shadow, cost 0) is all zero and refunds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Permit {
    /// TAT after the charge, in q-units.
    pub tat: u64,
    /// What the charge stored, in q-units; 0 = nothing.
    pub stored: u64,
    /// Epoch of the limit that charged.
    pub epoch: u32,
    /// Slot that was charged (tables), else 0.
    pub slot: u32,
}

impl Permit {
    /// The permit of a request that charged nothing.
    pub const NONE: Permit = Permit { tat: 0, stored: 0, epoch: 0, slot: 0 };
}

//! Seeds that found a fault. They are played again on the mended code. Four faults were in the code as it was:
//!
//! - `late-cuts`: an ask from before a change came after it, and cut the debt that the key had by then.
//! - `credit-floor`: a part of a unit was given back and not counted.
//! - `share-forgotten`: a line was given away before the node's share of its key had drained.
//! - `share-twice`: a change came into force while the store was away, and gave the share of that time again.
//!
//! The others are planted by `dev/planted/sim-NAME.patch`.

/// The name of the fault, and the seed that showed it.
pub const KEPT: &[(&str, u64)] = &[
    ("late-cuts", 332),
    ("share-forgotten", 7933),
    ("share-twice", 40311),
    ("mark-undone", 2827),
    ("credit-floor", 200293),
    ("no-id", 97),
    ("half-unpaid", 2),
    ("give-back-used", 0),
    ("give-back-stamp", 0),
    ("no-lapse", 38),
    ("share-rate", 20),
    ("hold-unpaid", 100157),
    ("connects-once", 36),
    ("clamp-lost", 97),
    ("slot-no-wait", 177),
    ("debt-forgotten", 288),
    ("opener-wins", 38077),
    ("slot-renewed", 43757),
    ("pieces-stay", 100015),
    ("held-for-ever", 100284),
    ("debt-keeps-time", 103059),
    ("placed-by-receipt", 100780),
    ("old-readings", 100368),
];

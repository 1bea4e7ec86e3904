//! Seeds that found a fault, and what it was: `late-cuts` in the code as it was (a second ask of before a change cut
//! the debt of after it), `credit-floor` (parts of units were given back and not counted), `share-forgotten` (a line was given away before the node's share of its key had drained), and
//! `share-twice` (a change that came into force while the store was away gave the share of that time again); the others
//! planted by `dev/planted/sim-NAME.patch`. They are played again on the mended code.

/// The name of the fault, and the seed that showed it.
pub const KEPT: &[(&str, u64)] = &[
    ("late-cuts", 332),
    ("share-forgotten", 7933),
    ("share-twice", 40311),
    ("mark-undone", 6),
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
